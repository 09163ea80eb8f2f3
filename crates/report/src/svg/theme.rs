//! Colours and text of all figures.
//!
//! The palette is Okabe and Ito's ("Color Universal Design", 2008), which readers with any of the common colour
//! blindnesses can tell apart, with its light members darkened to 3:1 against white, and lightened for dark pages. No
//! figure relies on colour alone: series differ in the shape of their marks or stand in panels of their own.

/// How many series a plot can distinguish.
pub(super) const SERIES: usize = 7;

/// (light, dark) of series 0 to [`SERIES`] - 1.
const PALETTE: [(&str, &str); SERIES] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#f5935a"),
    ("#00805c", "#2fc79b"),
    ("#b0568a", "#dc93bf"),
    ("#a87000", "#e6a93a"),
    ("#4d5fa8", "#a3b0ec"),
    ("#5b5b5b", "#b9b9b9"),
];

struct Role {
    rule: &'static str,
    light: &'static str,
    dark: &'static str,
}

const ROLES: [Role; 7] = [
    Role { rule: ".fs-t{fill:C}", light: "#1c1e21", dark: "#e6e6e3" },
    Role { rule: ".fs-m{fill:C}", light: "#5a5f66", dark: "#a5aab0" },
    // Text on a line keeps a margin of the background.
    Role { rule: ".fs text{stroke:C}", light: "#ffffff", dark: "#16181b" },
    Role { rule: ".fs-grid{stroke:C}", light: "#e3e4e6", dark: "#33373c" },
    Role { rule: ".fs-axis{stroke:C}", light: "#8a8f96", dark: "#7b8087" },
    Role { rule: ".fs-ghost{stroke:C}", light: "#cfd1d4", dark: "#484d53" },
    Role { rule: ".fs-paper{fill:C}", light: "#ffffff", dark: "#16181b" },
];

const FIXED: &str = ".fs{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,\
'Liberation Sans',sans-serif;font-size:12px;font-variant-numeric:tabular-nums}\
.fs text{stroke-width:3px;stroke-linejoin:round;paint-order:stroke}\
.fs-b{font-weight:600}.fs-s{font-size:11px}.fs-h{font-size:14px;font-weight:600}.fs-e{text-anchor:end}\
.fs-c{text-anchor:middle}.fs-grid,.fs-axis,.fs-ghost{fill:none;stroke-width:1}.fs-zero{stroke-dasharray:3 3}\
.fs-device{stroke-width:1.6;stroke-dasharray:1.6 3.2}\
.fs-dots{fill:none;stroke:currentColor;stroke-linecap:round;stroke-width:4.4;stroke-opacity:.5}\
.fs-bar{stroke:currentColor;stroke-width:2;fill:none}.fs-rough{stroke-dasharray:3 2}\
.fs-cap{stroke:currentColor;stroke-width:1.4;fill:none}\
.fs-mark{fill:currentColor}.fs-hollow{fill:none;stroke:currentColor;stroke-width:1.6}\
.fs-band{fill:currentColor;fill-opacity:.16}.fs-line{fill:none;stroke:currentColor;stroke-width:1.8;\
stroke-linejoin:round}.fs-thin{fill:none;stroke:currentColor;stroke-width:1;stroke-opacity:.35;\
stroke-linejoin:round}";

/// The style sheet of all figures: light, and dark where the reader prefers it, but never on paper.
pub(crate) fn style() -> String {
    format!("{FIXED}{}@media screen and (prefers-color-scheme:dark){{{}}}", roles(false), roles(true))
}

fn roles(dark: bool) -> String {
    let mut rules = String::new();
    for role in &ROLES {
        rules.push_str(&role.rule.replace('C', if dark { role.dark } else { role.light }));
    }
    for (index, (light, dark_color)) in PALETTE.iter().enumerate() {
        rules.push_str(&format!(".fs-{index}{{color:{}}}", if dark { dark_color } else { light }));
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance by WCAG 2.
    fn luminance(color: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&color[at..at + 2], 16).expect("a colour")) / 255.0;
            if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn marks_and_text_stand_out_from_the_page() {
        let paper = ROLES.iter().find(|role| role.rule.contains("paper")).expect("there is one");
        for (light, dark) in PALETTE {
            assert!(contrast(light, paper.light) >= 3.0, "{light}");
            assert!(contrast(dark, paper.dark) >= 3.0, "{dark}");
        }
        for role in ROLES.iter().filter(|role| role.rule.starts_with(".fs-t") || role.rule.starts_with(".fs-m")) {
            assert!(
                contrast(role.light, paper.light) >= 4.5 && contrast(role.dark, paper.dark) >= 4.5,
                "{}",
                role.rule
            );
        }
    }
}
