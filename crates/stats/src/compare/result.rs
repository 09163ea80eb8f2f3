//! What a comparison of a table's rows says.

use serde::{Deserialize, Serialize};

use super::rank_tests::smallest_p_independent;
use super::shift::Shift;
use crate::interval::Interval;
use crate::{ALPHA, Sample};

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
    /// The same of figures without noise, so that those which agree do not agree by chance.
    Noiseless(&'a [Vec<usize>]),
    /// The same of figures of which further trials have shown that nothing moves them, however few these are.
    Proven(&'a [Vec<usize>]),
}

impl Blocking<'_> {
    /// The block of every figure; `None` for independent samples.
    pub(super) fn of(self, samples: &[Sample]) -> Option<Vec<Vec<usize>>> {
        let blocks: Vec<Vec<usize>> = match self {
            Blocking::Independent => return None,
            Blocking::Complete => samples.iter().map(|sample| (0..sample.n()).collect()).collect(),
            Blocking::Blocks(blocks) | Blocking::Noiseless(blocks) | Blocking::Proven(blocks) => blocks.to_vec(),
        };
        assert_eq!(blocks.len(), samples.len(), "one list of blocks for every sample");
        for (sample, blocks) in samples.iter().zip(&blocks) {
            assert_eq!(blocks.len(), sample.n(), "one block for every figure");
        }
        Some(blocks)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// The share of tables in which any pair at all may be called different by mistake; what intervals claim is 1 less this.
    pub alpha: f64,
    /// What tests and intervals are worked out at to keep to that: less where one has looked before.
    pub nominal: f64,
}

impl Level {
    /// Everything is looked at once, when all trials are done.
    pub const FIXED: Self = Self { alpha: ALPHA, nominal: ALPHA };

    /// # Panics
    /// When a level is not strictly between 0 and 1.
    pub(super) fn checked(self) -> Self {
        for alpha in [self.alpha, self.nominal] {
            assert!(0.0 < alpha && alpha < 1.0, "an alpha of {alpha} means nothing");
        }
        self
    }

    /// A p-value as it has to be to be compared with alpha.
    pub(super) fn adjusted(self, p: f64) -> f64 {
        (p * (self.alpha / self.nominal)).min(1.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Ratios: the analysis is of logarithms, a row's mean is geometric. For positive quantities, whose scatter grows with their
    /// size; a rate and the time that it takes then give the same answer.
    Ratios,
    /// Differences: the analysis is of the figures as they are, a row's mean is arithmetic. For shares of a whole, and for what can
    /// be zero or negative.
    Differences,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Rows + blocks by least squares, and Tukey's studentised range.
    Means,
    /// Rank tests, because the residuals are grossly non-normal.
    Ranks,
    /// Nothing varies but the rows: figures are compared as such.
    Exact,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairTest {
    /// The studentised range of all rows' means.
    Tukey,
    /// None: neither row varies.
    Exact,
    /// Mann–Whitney, with the Hodges–Lehmann shift of two samples.
    MannWhitney,
    /// The same, after dividing each figure by how its block did on the other rows of the table.
    MannWhitneyAdjusted,
    /// Signed ranks over the blocks that both have, with the shift of their differences.
    SignedRank,
    /// None: no block holds both rows, and no other rows link their blocks. What differs between the blocks, a machine for
    /// example, would count as a difference between the rows.
    NoCommonBlock,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pairwise {
    /// The row that shift and δ are told against.
    pub baseline: usize,
    pub other: usize,
    pub test: PairTest,
    /// Its two-sided p-value, for this pair alone.
    pub p: f64,
    /// Adjusted for all pairs of the table: compare this with α.
    pub adjusted_p: f64,
    pub differs: bool,
    /// Whether, with so many figures and so many rows, any figures at all could have made them
    /// differ.
    pub can_differ: bool,
    /// other − baseline, in the metric's unit. Its interval holds for all pairs of the table at once, and holds 0 exactly when the
    /// two are not called different.
    pub shift: Shift,
    /// The same as a share of the baseline; `None` where figures are not positive, or the baseline may be none.
    pub relative: Option<Shift>,
    /// Cliff's δ, from −1 (other always smaller) to 1 (other always larger).
    pub cliffs_delta: f64,
}

impl Pairwise {
    pub fn is_compared(&self) -> bool {
        self.test != PairTest::NoCommonBlock
    }

    pub(super) fn reversed(self) -> Self {
        Self {
            baseline: self.other,
            other: self.baseline,
            shift: self.shift.reversed(),
            // The inverse of what may be nothing has no bound.
            relative: self.relative.map(Shift::relative_reversed).filter(|shift| shift.interval.high.is_finite()),
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
    pub pairs: usize,
    /// The fewest repeats of every row with which every pair *could* differ. More are needed to
    /// find a difference that is not glaring. 0 where repeats do not help, since perturbed guests failed.
    pub repeats_needed: usize,
}

/// What a row comes to, on the metric's own scale.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RowMean {
    /// The mean that suits the scale, over all blocks: what a block did to all rows is in it, whether the row has a figure there
    /// or not.
    pub estimate: f64,
    /// Its interval, which leaves out what the blocks did to all rows alike. Of two rows that are not called different the
    /// intervals overlap. `None` when nothing is known of the scatter.
    pub interval: Option<Interval>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The share of tables in which any pair at all may be called different by mistake.
    pub alpha: f64,
    pub rows: usize,
    pub basis: Basis,
    pub scale: Scale,
    pub means: Vec<RowMean>,
    /// Whether figures do not vary but from row to row and block to block, be it by chance.
    pub still: bool,
    /// The fewest repeats of every row with which every pair could differ.
    pub repeats_needed: usize,
    /// Every pair once, the earlier row as the baseline, in the order (0, 1), (0, 2), …
    pub pairs: Vec<Pairwise>,
    /// For each row its letters: rows that share one cannot be told apart, and rows that were not compared share none. `None` when there are
    /// too many groups for letters.
    pub letters: Option<Vec<String>>,
}

impl Comparison {
    /// The pair told against `baseline`; `None` when a row is not there or the two are the same.
    pub fn pair(&self, baseline: usize, other: usize) -> Option<Pairwise> {
        let find = |a, b| self.pairs.iter().find(|p| (p.baseline, p.other) == (a, b)).copied();
        find(baseline, other).or_else(|| Some(find(other, baseline)?.reversed()))
    }

    /// Whether any figures at all could have made any two rows differ. When not, "no difference
    /// found" says nothing about the filesystems, and a report must say that.
    pub fn can_ever_differ(&self) -> bool {
        self.pairs.iter().any(|pair| pair.can_differ)
    }

    /// What to tell the reader when some pairs had too few trials to differ.
    pub fn power_note(&self) -> Option<PowerNote> {
        let compared = || self.pairs.iter().filter(|pair| pair.is_compared());
        let powerless_pairs = compared().filter(|pair| !pair.can_differ).count();
        let pairs = compared().count();
        (powerless_pairs > 0).then_some(PowerNote { powerless_pairs, pairs, repeats_needed: self.repeats_needed })
    }
}

/// The fewest repeats with which the Mann–Whitney test can survive a correction over `pairs`.
pub fn repeats_needed(pairs: usize, alpha: f64) -> usize {
    let fits = |n: &usize| smallest_p_independent(*n, *n) * pairs as f64 <= alpha;
    // C(2n, n) passes 10^15 before n = 30, so this ends soon for any table and any sane alpha.
    (2..500).find(fits).unwrap_or(500)
}
