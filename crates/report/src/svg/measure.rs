//! How wide text will be, before any font is known.
//!
//! Widths are DejaVu Sans's, the widest of the common sans-serif fonts, so that what fits here fits in Helvetica, Arial,
//! Segoe, Roboto and Liberation Sans too: text is never clipped or drawn over other text, at most a little loose.

use crate::text::wrap_by;
use unicode_width::UnicodeWidthChar;

/// How much wider bold text is, at most.
pub(super) const BOLD: f64 = 1.14;

/// Advance widths of ' ' to '~' in thousandths of the font size.
const ASCII: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636,
    636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863,
    748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635,
    615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636,
    337, 636, 838,
];

/// The width of a text at a font size, in the same unit.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let thousandths: u32 = text.chars().map(|c| u32::from(advance(c))).sum();
    f64::from(thousandths) / 1000.0 * size
}

fn advance(c: char) -> u16 {
    if let Some(width) = (c as usize).checked_sub(32).and_then(|index| ASCII.get(index)) {
        return *width;
    }
    match c.width() {
        Some(0) => 0,
        Some(2) => 1050,
        // '±', '×', '−', '≥' are as wide as '+'.
        _ => 838,
    }
}

pub(super) fn wrap(text: &str, size: f64, limit: f64) -> Vec<String> {
    wrap_by(text, &|part| text_width(part, size) <= limit)
}

/// At most `lines` lines no wider than `limit`; an ellipsis where something was left out.
pub(super) fn wrap_to(text: &str, size: f64, limit: f64, lines: usize) -> Vec<String> {
    let mut wrapped = wrap(text, size, limit);
    if wrapped.len() > lines {
        wrapped.truncate(lines);
        if let Some(last) = wrapped.last_mut() {
            while text_width(&format!("{last}…"), size) > limit && last.pop().is_some() {}
            last.push('…');
        }
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_font() {
        assert_eq!(text_width("0", 1000.0), 636.0);
        assert_eq!(text_width("~", 1000.0), 838.0);
        assert_eq!(text_width("Wi", 1000.0), 989.0 + 278.0);
        assert!(text_width("漢字", 10.0) > 20.0);
    }

    #[test]
    fn what_is_left_out_is_seen() {
        let lines = wrap_to("one two three four five six", 10.0, 60.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with('…') && text_width(&lines[1], 10.0) <= 60.0, "{lines:?}");
    }
}
