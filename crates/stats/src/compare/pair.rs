//! Two rows by themselves, by ranks.

use serde::{Deserialize, Serialize};

use super::rank_tests::{RankTest, mann_whitney, signed_rank};
use super::shift::{Shift, blocked_relative_shift, blocked_shift, hodges_lehmann, relative_shift};
use crate::Sample;

/// Two rows by themselves: the test and the same test turned into intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairComparison {
    pub test: RankTest,
    /// other − baseline, in the metric's unit.
    pub shift: Shift,
    /// The same as a share of the baseline; `None` unless every figure is positive.
    pub relative: Option<Shift>,
}

/// Two independent samples: Mann–Whitney and the Hodges–Lehmann shift, whose intervals are of `confidence`.
pub fn independent_comparison(baseline: &Sample, other: &Sample, confidence: f64) -> PairComparison {
    PairComparison {
        test: mann_whitney(baseline, other),
        shift: hodges_lehmann(baseline, other, confidence),
        relative: relative_shift(baseline, other, confidence),
    }
}

/// Two rows over blocks, each a pair (baseline, other): signed ranks and the shift of the
/// differences. What a block shares cancels, so this finds more than [`independent_comparison`]
/// when there is drift. `None` without a block.
pub fn blocked_comparison(pairs: &[(f64, f64)], confidence: f64) -> Option<PairComparison> {
    Some(PairComparison {
        test: signed_rank(pairs),
        shift: blocked_shift(pairs, confidence)?,
        relative: blocked_relative_shift(pairs, confidence),
    })
}
