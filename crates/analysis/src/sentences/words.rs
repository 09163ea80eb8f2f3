//! Names, differences and figures in words.

use crate::{
    number::{Scale, grouped},
    table::{Entry, HARDLY},
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
pub fn amount(shift: Shift) -> String {
    if shift.estimate >= DOUBLE {
        return format!("{} times as high", multiple(shift));
    }
    let word = if shift.estimate < 0.0 { "lower" } else { "higher" };
    format!("{} {word}", span(&[shift]))
}

/// "6–9 % higher than ext4", "2.1–2.4 times as high as ext4".
pub(super) fn amount_against(shift: Shift, other: &str) -> String {
    let conjunction = if shift.estimate >= DOUBLE { "as" } else { "than" };
    format!("{} {conjunction} {other}", amount(shift))
}

/// What an option does to a figure: "raises fsck by 6–9 %", "makes fsck 2.1–2.4 times as high", "changes fsck by −2 to +3 %".
pub(super) fn effect(shift: Shift, differs: bool, figure: &str) -> String {
    match shift.estimate {
        _ if !differs && shift.interval.high > HARDLY => format!("has an unknown effect on {figure}"),
        _ if !differs && shift.interval.low == 0.0 && shift.interval.high == 0.0 => format!("does not change {figure}"),
        _ if !differs => format!("changes {figure} by {}", either_way(shift)),
        estimate if estimate >= DOUBLE => format!("makes {figure} {} times as high", multiple(shift)),
        estimate if estimate < 0.0 => format!("lowers {figure} by {}", span(&[shift])),
        _ => format!("raises {figure} by {}", span(&[shift])),
    }
}

/// What is known of two rows that are not called different: "−2 to +3 %".
pub fn either_way(shift: Shift) -> String {
    let (low, high) = (shift.interval.low, shift.interval.high);
    if high > 10.0 * HARDLY {
        return format!("{} % to over +10,000 %", grouped(100.0 * low.max(-1.0), 0));
    }
    let decimals = decimals(100.0 * (high - low));
    let end = |share: f64| {
        let text = grouped(100.0 * share.max(-1.0), decimals);
        let is_none = text.bytes().all(|digit| b"0.".contains(&digit));
        if share > 0.0 && !is_none { format!("+{text}") } else { text }
    };
    format!("{} to {} %", end(low), end(high))
}

fn multiple(shift: Shift) -> String {
    let (low, high) = (1.0 + shift.interval.low, 1.0 + shift.interval.high);
    let decimals = usize::from(low < 100.0);
    let (low, high) = (grouped(low, decimals), grouped(high, decimals));
    if low == high { low } else { format!("{low}–{high}") }
}

/// The ends of one or several shifts of rows that differ, as positive percentages: "6–9 %", "up to 9 %" where the smaller end would look like
/// none. What cannot be negative falls by 100 % at most.
pub(super) fn span(shifts: &[Shift]) -> String {
    let falls = shifts[0].estimate < 0.0;
    let ends = shifts.iter().flat_map(|shift| [shift.interval.low, shift.interval.high]);
    let ends: Vec<f64> = ends.map(|end| if falls { -end.max(-1.0) } else { end }).map(|end| end * 100.0).collect();
    let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let decimals = decimals(high - low);
    // Almost all is not all.
    if falls && low < 100.0 && low > 99.99 {
        return "more than 99.99 %".to_owned();
    }
    let (low, high) = (grouped(low, decimals), grouped(high, decimals));
    let is_none = |text: &str| text.bytes().all(|digit| b"0.".contains(&digit));
    match (is_none(&low), low == high) {
        (true, true) => "less than 0.01 %".to_owned(),
        (true, false) => format!("up to {high} %"),
        (false, true) => format!("{low} %"),
        (false, false) => format!("{low}–{high} %"),
    }
}

/// Of percentages that are so far apart.
fn decimals(width: f64) -> usize {
    match width {
        wide if wide >= 2.0 => 0,
        narrow if narrow >= 0.2 => 1,
        _ => 2,
    }
}

/// A mean and its interval in words, for titles and screen readers.
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
        None if entry.counted_nothing() => format!("{} in each of {trials}", scale.with_unit(mean)),
        None => format!("{} ({trials}, so no interval)", scale.with_unit(mean)),
    }
}
