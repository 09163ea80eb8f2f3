//! One figure of two runs, tested.

use crate::table::Entry;
use fstone_stats::{
    CONFIDENCE, Sample,
    compare::{Shift, independent_comparison},
};

/// Two figures, tested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The two-sided p-value, for this pair alone.
    pub p: f64,
    /// Holm-adjusted over the comparison: compare this with 5 %.
    pub adjusted_p: f64,
    /// The smallest p-value that so many figures could have given.
    pub smallest_p: f64,
    /// How many seeds both runs have, where both are in virtual time: figures are compared seed by seed then, and nothing is
    /// left to chance.
    pub seeds: Option<usize>,
    /// Whether that would have survived the correction: whether any figures at all could have made these two differ.
    pub can_differ: bool,
    /// The smallest difference, as a share of the baseline, that so many trials which scatter like these would have told
    /// in [`fstone_stats::compare::POWER`] of all cases; `None` when none could have been, or it is no share.
    pub detectable: Option<f64>,
    /// About how many trials of the row, in both runs, it takes to find a difference of the threshold as often.
    pub trials_for_threshold: Option<usize>,
    /// other − baseline, in the metric's unit.
    pub shift: Shift,
    /// The same as a share of the baseline; `None` unless every figure is positive.
    pub relative: Option<Shift>,
}

/// Two independent samples; what the correction over all pairs decides is left to it.
pub(super) fn pair(baseline: &Entry, other: &Entry) -> Option<Pair> {
    let sample = |entry: &Entry| Sample::new(entry.values.iter().map(|value| value.value).collect()).ok();
    let found = independent_comparison(&sample(baseline)?, &sample(other)?, CONFIDENCE);
    Some(Pair {
        p: found.test.p,
        adjusted_p: found.test.p,
        smallest_p: found.test.smallest_p,
        seeds: None,
        // The correction's to say.
        can_differ: false,
        detectable: None,
        trials_for_threshold: None,
        shift: found.shift,
        relative: found.relative,
    })
}
