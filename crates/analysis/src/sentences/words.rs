//! Names, differences and figures in words.

use crate::{
    number::{Scale, grouped},
    table::Entry,
    text::counted,
};
use fstone_stats::{CONFIDENCE_TEXT, compare::Shift};

/// Puts a name of several words in quotation marks, to show where it ends.
pub(super) fn quoted(name: &str) -> String {
    if name.contains(' ') { format!("“{name}”") } else { name.to_owned() }
}

/// From here on a share reads better as a multiple.
const DOUBLE: f64 = 1.0;

/// "6–9 % higher", "31–35 % lower", "2.1–2.4 times as high".
#[must_use]
pub fn amount(shift: Shift) -> String {
    let (low, high) = (shift.interval.low, shift.interval.high);
    if shift.estimate >= DOUBLE {
        let (low, high) = (grouped(1.0 + low, 1), grouped(1.0 + high, 1));
        return if low == high { format!("{low} times as high") } else { format!("{low}–{high} times as high") };
    }
    let word = if shift.estimate < 0.0 { "lower" } else { "higher" };
    format!("{} {word}", span(&[shift]))
}

/// "6–9 % higher than ext4", "2.1–2.4 times as high as ext4".
pub(super) fn amount_against(shift: Shift, other: &str) -> String {
    let conjunction = if shift.estimate >= DOUBLE { "as" } else { "than" };
    format!("{} {conjunction} {other}", amount(shift))
}

/// The ends of one or several shifts as positive percentages: "6–9 %".
pub(super) fn span(shifts: &[Shift]) -> String {
    let ends = shifts.iter().flat_map(|shift| [shift.interval.low, shift.interval.high]);
    let ends: Vec<f64> =
        ends.map(|end| if shifts[0].estimate < 0.0 { -end } else { end }).map(|end| end * 100.0).collect();
    let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let decimals = if high - low >= 2.0 {
        0
    } else if high - low >= 0.2 {
        1
    } else {
        2
    };
    let (low, high) = (grouped(low, decimals), grouped(high, decimals));
    if low == high { format!("{low} %") } else { format!("{low}–{high} %") }
}

/// A mean and its interval in words, for titles and screen readers.
#[must_use]
pub fn in_words(scale: &Scale, entry: &Entry) -> String {
    let Some(mean) = entry.mean() else { return "no figure".to_owned() };
    let trials = counted(entry.values.len(), "trial");
    match entry.interval {
        Some(interval) => format!(
            "{} ({CONFIDENCE_TEXT} interval {} to {}, mean of {trials})",
            scale.with_unit(mean),
            scale.number(interval.low),
            scale.with_unit(interval.high),
        ),
        None => format!("{} ({trials}, so no interval)", scale.with_unit(mean)),
    }
}
