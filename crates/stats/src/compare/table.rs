//! All the rows of a table against each other.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::blocks::Blocks;
use super::holm::holm;
use super::letters::letters;
use super::rank_tests::{RankTest, mann_whitney, signed_rank, smallest_p_independent};
use super::shift::{Shift, blocked_relative_shift, blocked_shift, cliffs_delta, hodges_lehmann, relative_shift};
use crate::Sample;

/// The confidence of every shift's interval. Not adjusted for the number of pairs: an interval says
/// how large a difference is; whether there is one is the adjusted p-value's to say.
pub const SHIFT_CONFIDENCE: f64 = 0.95;

/// The signed-rank test moves in steps of 2 / 2^blocks, so over a large table it could only call a
/// pair different if nearly every block agreed. It is used when its smallest p is at least this
/// many times below what the table asks for, two blocks to spare; else the Mann–Whitney test is,
/// whose steps are far finer. Chosen by simulation (CALIBRATION.md).
const BLOCKED_HEADROOM: f64 = 4.0;

/// Two rows by themselves: the test and the same test turned into intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairComparison {
    /// The rank test.
    pub test: RankTest,
    /// other − baseline, in the metric's unit.
    pub shift: Shift,
    /// The same as a share of the baseline; `None` unless every figure is positive.
    pub relative: Option<Shift>,
}

/// Two independent samples: Mann–Whitney and the Hodges–Lehmann shift.
#[must_use]
pub fn independent_comparison(baseline: &Sample, other: &Sample) -> PairComparison {
    PairComparison {
        test: mann_whitney(baseline, other),
        shift: hodges_lehmann(baseline, other, SHIFT_CONFIDENCE),
        relative: relative_shift(baseline, other, SHIFT_CONFIDENCE),
    }
}

/// Two rows over blocks, each a pair (baseline, other): signed ranks and the shift of the
/// differences. What a block shares cancels, so this finds more than [`independent_comparison`]
/// when there is drift. `None` without a block.
#[must_use]
pub fn blocked_comparison(pairs: &[(f64, f64)]) -> Option<PairComparison> {
    Some(PairComparison {
        test: signed_rank(pairs),
        shift: blocked_shift(pairs, SHIFT_CONFIDENCE)?,
        relative: blocked_relative_shift(pairs, SHIFT_CONFIDENCE),
    })
}

/// Which trials belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking<'a> {
    /// The samples were taken independently (two runs; two machines).
    Independent,
    /// Complete randomised blocks: the k-th figure of every sample comes from block k.
    Complete,
    /// The block of every figure of every sample, in the samples' order, for when trials are
    /// missing.
    Blocks(&'a [Vec<usize>]),
}

/// Which test a pair was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairTest {
    /// Mann–Whitney, with the Hodges–Lehmann shift of two samples.
    MannWhitney,
    /// The same, after dividing each figure by how its block did on the other rows of the table.
    MannWhitneyAdjusted,
    /// Signed ranks over the blocks that both have, with the shift of their differences.
    SignedRank,
}

/// One pair of rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pairwise {
    /// The row that shift and δ are told against.
    pub baseline: usize,
    /// The other row.
    pub other: usize,
    /// The test that was used.
    pub test: PairTest,
    /// Its two-sided p-value, for this pair alone.
    pub p: f64,
    /// Holm-adjusted over all pairs of the table: compare this with α.
    pub adjusted_p: f64,
    /// Whether the table calls the two different.
    pub differs: bool,
    /// Whether, with so many figures and so many rows, any figures at all could have made them
    /// differ.
    pub can_differ: bool,
    /// other − baseline, in the metric's unit.
    pub shift: Shift,
    /// The same as a share of the baseline; `None` unless every figure is positive.
    pub relative: Option<Shift>,
    /// Cliff's δ, from −1 (other always smaller) to 1 (other always larger).
    pub cliffs_delta: f64,
}

impl Pairwise {
    fn reversed(self) -> Self {
        Self {
            baseline: self.other,
            other: self.baseline,
            shift: self.shift.reversed(),
            relative: self.relative.map(Shift::relative_reversed),
            cliffs_delta: -self.cliffs_delta,
            ..self
        }
    }
}

/// What a report has to say when a table could not have shown a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerNote {
    /// Pairs that no figures could have made differ.
    pub powerless_pairs: usize,
    /// All pairs.
    pub pairs: usize,
    /// The fewest repeats of every row with which every pair *could* differ. More are needed to
    /// find a difference that is not glaring.
    pub repeats_needed: usize,
}

/// All rows of a table, compared pair by pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The share of tables in which any pair at all may be called different by mistake.
    pub alpha: f64,
    /// How many rows.
    pub rows: usize,
    /// Every pair once, the earlier row as the baseline, in the order (0, 1), (0, 2), …
    pub pairs: Vec<Pairwise>,
    /// For each row its letters: rows that share one cannot be told apart. `None` when there are
    /// too many groups for letters.
    pub letters: Option<Vec<String>>,
}

impl Comparison {
    /// The pair told against `baseline`; `None` when a row is not there or the two are the same.
    #[must_use]
    pub fn pair(&self, baseline: usize, other: usize) -> Option<Pairwise> {
        let find = |a, b| self.pairs.iter().find(|p| (p.baseline, p.other) == (a, b)).copied();
        find(baseline, other).or_else(|| Some(find(other, baseline)?.reversed()))
    }

    /// Whether any figures at all could have made any two rows differ. When not, "no difference
    /// found" says nothing about the filesystems, and a report must say that.
    #[must_use]
    pub fn can_ever_differ(&self) -> bool {
        self.pairs.iter().any(|pair| pair.can_differ)
    }

    /// What to tell the reader when some pairs could not have differed.
    #[must_use]
    pub fn power_note(&self) -> Option<PowerNote> {
        let powerless_pairs = self.pairs.iter().filter(|pair| !pair.can_differ).count();
        (powerless_pairs > 0).then(|| PowerNote {
            powerless_pairs,
            pairs: self.pairs.len(),
            repeats_needed: repeats_needed(self.pairs.len(), self.alpha),
        })
    }
}

/// Compares every row with every other, with the family-wise error held at `alpha`.
///
/// Each pair: a rank test (see [`PairTest`]), its shift and Cliff's δ (always of the figures as
/// measured); over the table Holm's correction and letters. No test draws random
/// numbers, so no seed is needed.
///
/// With blocks, what a block does to all rows must not hide what rows do. Signed ranks take it out
/// completely, when there are blocks enough for a table of this size; else the two rows are first
/// cleared of what the other rows show of each block. Which of these is used hangs on the numbers
/// of blocks and rows and on the *other* rows, never on the figures of the pair, so choosing costs
/// no false alarms; what is left of a block's effect makes the two rows more alike, which errs on
/// the safe side.
///
/// # Panics
/// When `alpha` is not strictly between 0 and 1, or when the block lists do not match the samples
/// or name a block twice in one sample.
#[must_use]
pub fn compare_all(samples: &[Sample], alpha: f64, blocking: Blocking<'_>) -> Comparison {
    assert!(0.0 < alpha && alpha < 1.0, "an alpha of {alpha} means nothing");
    let rows = samples.len();
    let all_pairs: Vec<(usize, usize)> = (0..rows).flat_map(|i| (i + 1..rows).map(move |j| (i, j))).collect();
    let blocks = Blocks::new(samples, blocking);
    let finest = alpha / (all_pairs.len() as f64 * BLOCKED_HEADROOM);
    let (mut pairs, tests): (Vec<Pairwise>, Vec<RankTest>) =
        all_pairs.iter().map(|&(i, j)| compare_pair(samples, blocks.as_ref(), finest, i, j)).unzip();
    let adjusted = holm(&tests.iter().map(|test| test.p).collect::<Vec<_>>());
    let best_case = holm(&tests.iter().map(|test| test.smallest_p).collect::<Vec<_>>());
    for (pair, (adjusted_p, best_p)) in pairs.iter_mut().zip(adjusted.into_iter().zip(best_case)) {
        pair.adjusted_p = adjusted_p;
        pair.differs = adjusted_p <= alpha;
        pair.can_differ = best_p <= alpha;
    }
    let different: HashMap<(usize, usize), bool> =
        all_pairs.into_iter().zip(pairs.iter().map(|pair| pair.differs)).collect();
    let letters = letters(rows, |i, j| different[&(i, j)]);
    Comparison { alpha, rows, pairs, letters }
}

/// `finest`: the p-value that signed ranks must be able to reach to be used.
fn compare_pair(
    samples: &[Sample],
    blocks: Option<&Blocks<'_>>,
    finest: f64,
    baseline: usize,
    other: usize,
) -> (Pairwise, RankTest) {
    let (a, b) = (&samples[baseline], &samples[other]);
    let signed_ranks = || {
        let pairs = blocks?.pairs(baseline, other);
        let found = blocked_comparison(&pairs)?;
        (found.test.smallest_p <= finest).then_some((PairTest::SignedRank, found))
    };
    let adjusted = || {
        let (a, b) = blocks?.adjusted(baseline, other)?;
        Some((PairTest::MannWhitneyAdjusted, independent_comparison(&a, &b)))
    };
    let (test, found) =
        signed_ranks().or_else(adjusted).unwrap_or_else(|| (PairTest::MannWhitney, independent_comparison(a, b)));
    let pair = Pairwise {
        baseline,
        other,
        test,
        p: found.test.p,
        // These three are the table's to say and are filled in there.
        adjusted_p: found.test.p,
        differs: false,
        can_differ: false,
        shift: found.shift,
        relative: found.relative,
        cliffs_delta: cliffs_delta(a, b),
    };
    (pair, found.test)
}

/// The fewest repeats with which the Mann–Whitney test can survive Holm's correction over `pairs`.
#[must_use]
pub fn repeats_needed(pairs: usize, alpha: f64) -> usize {
    let fits = |n: &usize| smallest_p_independent(*n, *n) * pairs as f64 <= alpha;
    // C(2n, n) passes 10^15 before n = 30, so this ends soon for any table and any sane alpha.
    (2..500).find(fits).unwrap_or(500)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values.to_vec()).unwrap()
    }

    fn row(start: f64, n: usize) -> Sample {
        Sample::new((0..n).map(|i| start + (i * 7 % 10) as f64 / 10.0).collect()).unwrap()
    }

    #[test]
    fn three_repeats_cannot_tell_anything_apart_and_it_is_said() {
        let rows = [sample(&[1., 2., 3.]), sample(&[101., 102., 103.])];
        let comparison = compare_all(&rows, 0.05, Blocking::Independent);
        assert!(!comparison.can_ever_differ());
        assert!(!comparison.pairs[0].differs);
        let note = comparison.power_note().unwrap();
        assert_eq!((note.powerless_pairs, note.pairs, note.repeats_needed), (1, 1, 4));
        assert_eq!(comparison.letters.unwrap(), ["a", "a"]);
    }

    #[test]
    fn rows_far_apart_differ() {
        let rows = [row(1.0, 10), row(50.0, 10), row(1.05, 10)];
        let comparison = compare_all(&rows, 0.05, Blocking::Independent);
        assert_eq!(comparison.power_note(), None);
        assert_eq!(comparison.letters.as_ref().unwrap(), &["a", "b", "a"]);
        let forward = comparison.pair(0, 1).unwrap();
        assert!(forward.differs && forward.cliffs_delta == 1.0);
        assert!((forward.shift.estimate - 49.0).abs() < 1e-9);
        let backward = comparison.pair(1, 0).unwrap();
        assert_eq!((backward.baseline, backward.other, backward.cliffs_delta), (1, 0, -1.0));
        assert!(backward.shift.interval.contains(-49.0));
        assert!(backward.relative.unwrap().estimate < -0.9);
        assert_eq!(comparison.pair(1, 1), None);
    }

    #[test]
    fn blocks_take_shared_drift_out() {
        // The drift over the run is twenty times the difference, which is the same in every block.
        let base: Vec<f64> = (0..12).map(|k| 100.0 + 2.0 * f64::from(k)).collect();
        let wobble = [0.1, -0.1, 0.05, 0.0, -0.07, 0.02, 0.09, -0.03, 0.04, -0.06, 0.01, 0.08];
        let other: Vec<f64> = base.iter().zip(wobble).map(|(v, w)| v + 1.0 + w).collect();
        let rows = [sample(&base), sample(&other)];
        let apart = compare_all(&rows, 0.05, Blocking::Independent);
        let blocked = compare_all(&rows, 0.05, Blocking::Complete);
        assert!(!apart.pairs[0].differs);
        assert_eq!(blocked.pairs[0].test, PairTest::SignedRank);
        assert!(blocked.pairs[0].differs && blocked.pairs[0].shift.interval.half_width() < 0.2);
    }

    #[test]
    fn missing_trials_are_paired_by_their_blocks() {
        let full: Vec<f64> = (0..12).map(f64::from).collect();
        let blocks_full: Vec<usize> = (0..12).collect();
        let gaps: Vec<f64> = full.iter().filter(|v| **v != 3.0).map(|v| v + 0.5).collect();
        let blocks_gaps: Vec<usize> = (0..12).filter(|b| *b != 3).collect();
        let rows = [sample(&full), sample(&gaps)];
        let blocks = [blocks_full, blocks_gaps];
        let comparison = compare_all(&rows, 0.05, Blocking::Blocks(&blocks));
        let pair = comparison.pairs[0];
        assert_eq!(pair.test, PairTest::SignedRank);
        assert_eq!((pair.shift.estimate, pair.shift.interval.n), (0.5, 11));
        assert_eq!(pair.shift.interval.half_width(), 0.0);
    }

    #[test]
    fn few_blocks_and_many_rows_fall_back_to_finer_steps() {
        let rows: Vec<Sample> = (0..8).map(|i| row(f64::from(i) * 10.0 + 1.0, 10)).collect();
        let comparison = compare_all(&rows, 0.05, Blocking::Complete);
        assert!(comparison.pairs.iter().all(|p| p.test != PairTest::SignedRank && p.differs));
        assert_eq!(comparison.letters.unwrap().concat(), "abcdefgh");
    }

    #[test]
    fn one_row_or_none_is_a_table_too() {
        assert_eq!(compare_all(&[row(1.0, 3)], 0.05, Blocking::Complete).letters.unwrap(), ["a"]);
        assert!(compare_all(&[], 0.05, Blocking::Independent).pairs.is_empty());
    }
}
