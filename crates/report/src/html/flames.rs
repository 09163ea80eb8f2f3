//! Flame graphs: where kernels that count their work did it, drawn once for all widths, in shares of the page.

use crate::{
    number::grouped,
    text::{joined, line, xml},
};
use fstone_analysis::profile::{Call, Profile, profiles};
use fstone_model::Dataset;
use std::fmt::Write;

/// Of all drawings of a page.
const MOST_BYTES: usize = 240_000;

/// Calls with a smaller share are not drawn: the first of these with which a drawing is small enough.
const LEAST_SHARES: [f64; 5] = [0.002, 0.005, 0.01, 0.02, 0.04];

const LINE: usize = 18;

#[derive(Default)]
pub(super) struct Flames {
    /// (what it is of, the drawing).
    pub(super) drawn: Vec<(String, String)>,
    /// The place of the one with the most work, which is open.
    pub(super) open: usize,
    pub(super) note: String,
}

pub(super) fn flames(dataset: &Dataset) -> Flames {
    let profiles: Vec<Profile> = profiles(dataset).into_iter().filter(|profile| !profile.calls.is_empty()).collect();
    let room = MOST_BYTES / profiles.len().max(1);
    let kind = |row: &str| {
        let cell = dataset.run.plan.cells.iter().find(|cell| cell.label == row);
        cell.map_or("", |cell| &*cell.filesystem.kind)
    };
    let flame = |profile: &Profile| {
        let mut drawings = LEAST_SHARES.iter().map(|least| draw(profile, kind(&profile.row), *least));
        let drawing = drawings.find(|drawing| drawing.len() <= room)?;
        let each = grouped(profile.instructions / profile.operations, 0);
        let per = if profile.operations > 1.0 { "instructions for each operation" } else { "instructions" };
        let name = format!("{}, {}: {each} {per}", line(&profile.row), line(&profile.step));
        Some((profile.instructions, (name, drawing)))
    };
    let drawn: Vec<(f64, (String, String))> = profiles.iter().filter_map(flame).collect();
    let open = (0..drawn.len()).max_by(|one, other| drawn[*one].0.total_cmp(&drawn[*other].0)).unwrap_or_default();
    let drawn: Vec<_> = drawn.into_iter().map(|(_, flame)| flame).collect();
    let missing = profiles.len() - drawn.len();
    let note = if missing > 0 { format!("{missing} more would make the page too large.") } else { String::new() };
    Flames { drawn, open, note }
}

/// The outermost calls are at the top. Names that do not fit are cut off; a pointer gets them whole.
fn draw(profile: &Profile, kind: &str, least: f64) -> String {
    let all: f64 = profile.calls.iter().filter(|call| call.depth == 1).map(|call| call.all).sum();
    let share = |call: &Call| call.all / all.max(1.0);
    let mut boxes = String::new();
    let mut deepest = 0;
    // By depth, where the next call begins.
    let mut begins = vec![0.0];
    for call in &profile.calls {
        begins.truncate(call.depth);
        let x = begins[call.depth - 1];
        begins[call.depth - 1] += share(call);
        begins.push(x);
        if share(call) < least {
            continue;
        }
        deepest = deepest.max(call.depth);
        let name = xml(&line(&call.function));
        let (class, label) = match share(call) {
            share if share < 0.03 => ("", String::new()),
            share if share < 0.12 => ("n", format!("<text>{name}</text>")),
            _ => ("", format!("<text>{name}</text>")),
        };
        let own = if call.function.contains(kind) && !kind.is_empty() { "o" } else { "" };
        let classes = joined(&[own, class], " ");
        let classes = if classes.is_empty() { classes } else { format!(" class=\"{classes}\"") };
        let _ = write!(
            boxes,
            "<svg{classes} x=\"{:.2}%\" y=\"{}\" width=\"{:.2}%\"><title>{name}: {:.1} %</title><rect/>{label}</svg>",
            x * 100.0,
            (call.depth - 1) * LINE,
            share(call) * 100.0,
            share(call) * 100.0
        );
    }
    format!(
        "<svg class=\"flame\" role=\"img\" aria-label=\"Flame graph of the kernel's work of {}, {}\" width=\"100%\" height=\"{}\">{boxes}</svg>",
        xml(&line(&profile.row)),
        xml(&line(&profile.step)),
        deepest * LINE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_lie_below_their_callers_and_small_ones_are_left_out() {
        let call = |depth, function: &str, all| Call { depth, function: function.into(), own: 0.0, all };
        let calls =
            vec![call(1, "sys_open", 75.0), call(2, "ext4_<a>", 50.0), call(2, "walk", 25.0), call(1, "segv", 25.0)];
        let profile = Profile {
            row: "ext4".into(),
            step: "create".into(),
            instructions: 100.0,
            operations: 10.0,
            functions: Vec::new(),
            tasks: Vec::new(),
            calls,
        };
        let drawing = draw(&profile, "ext4", 0.01);
        for expected in [
            "height=\"36\"",
            "<svg x=\"0.00%\" y=\"0\" width=\"75.00%\"><title>sys_open: 75.0 %</title><rect/><text>sys_open</text></svg>",
            "<svg class=\"o\" x=\"0.00%\" y=\"18\" width=\"50.00%\"><title>ext4_&lt;a&gt;: 50.0 %</title>",
            "x=\"50.00%\" y=\"18\" width=\"25.00%\"><title>walk",
            "x=\"75.00%\" y=\"0\" width=\"25.00%\"><title>segv",
        ] {
            assert!(drawing.contains(expected), "{expected}: {drawing}");
        }
        assert!(!draw(&profile, "ext4", 0.3).contains("walk"));
    }
}
