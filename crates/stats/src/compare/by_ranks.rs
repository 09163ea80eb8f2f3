//! The rows of a table compared by ranks, where means would mislead.

use super::blocks::Blocks;
use super::pair::{PairComparison, blocked_comparison, independent_comparison};
use super::result::{Blocking, Level, PairTest, Pairwise};
use super::shift::{Shift, cliffs_delta};
use crate::Sample;

/// The signed-rank test moves in steps of 2 / 2^blocks, so over a large table it could only call a
/// pair different if nearly every block agreed. It is used when its smallest p is at least this
/// many times below what the table asks for, two blocks to spare; else the Mann–Whitney test is,
/// whose steps are far finer. Chosen by simulation (CALIBRATION.md).
const BLOCKED_HEADROOM: f64 = 4.0;

/// Every pair of rows, with the family-wise error held at `level` by Bonferroni's correction. Holm's finds a little more, but no
/// intervals belong to it; here each interval is the very test of its pair, turned round.
///
/// With blocks, what a block does to all rows must not hide what rows do. Signed ranks take it out completely, when there are
/// blocks enough for a table of this size; else the two rows are first cleared of what the other rows show of each block. Which of
/// these is used depends on the numbers of blocks and rows and on the *other* rows, never on the figures of the pair, so choosing
/// costs no false alarms; what is left of a block's effect makes the two rows more alike, which errs on the safe side.
pub fn compare_by_ranks(samples: &[Sample], level: Level, blocking: Blocking<'_>) -> Vec<Pairwise> {
    let rows = samples.len();
    let all_pairs: Vec<(usize, usize)> = (0..rows).flat_map(|i| (i + 1..rows).map(move |j| (i, j))).collect();
    let blocks = Blocks::new(samples, blocking);
    let of_pair = level.nominal / all_pairs.len() as f64;
    all_pairs.iter().map(|&(i, j)| compare_pair(samples, blocks.as_ref(), (level, of_pair), i, j)).collect()
}

/// `of_pair`: the share of the level that this pair has.
fn compare_pair(
    samples: &[Sample],
    blocks: Option<&Blocks<'_>>,
    (level, of_pair): (Level, f64),
    baseline: usize,
    other: usize,
) -> Pairwise {
    let confidence = 1.0 - of_pair;
    let signed_ranks = || {
        let found = blocked_comparison(&blocks?.pairs(baseline, other), confidence)?;
        (found.test.smallest_p <= of_pair / BLOCKED_HEADROOM).then_some((PairTest::SignedRank, found))
    };
    let adjusted = || {
        let (a, b) = blocks?.adjusted(baseline, other)?;
        Some((PairTest::MannWhitneyAdjusted, independent_comparison(&a, &b, confidence)))
    };
    let (a, b) = (&samples[baseline], &samples[other]);
    let (test, found) = signed_ranks()
        .or_else(adjusted)
        .unwrap_or_else(|| (PairTest::MannWhitney, independent_comparison(a, b, confidence)));
    let PairComparison { test: of_ranks, shift, relative } = found;
    let differs = of_ranks.p <= of_pair && !shift.interval.contains(0.0);
    // Ties, and groups too small for this confidence, let the interval end short of what the test says.
    let agreeing = |shift: Shift| if differs { shift } else { shift.reaching_none() };
    Pairwise {
        baseline,
        other,
        test,
        p: of_ranks.p,
        adjusted_p: (of_ranks.p * (level.alpha / of_pair)).min(1.0),
        differs,
        can_differ: of_ranks.smallest_p <= of_pair,
        shift: agreeing(shift).claiming(1.0 - level.alpha),
        // Signed ranks of ratios and of differences can disagree.
        relative: relative
            .filter(|ratio| !differs || same_side(ratio, &shift))
            .map(|shift| agreeing(shift).claiming(1.0 - level.alpha)),
        cliffs_delta: cliffs_delta(a, b),
    }
}

/// Whether both intervals leave out 0, on the same side.
fn same_side(a: &Shift, b: &Shift) -> bool {
    !a.interval.contains(0.0) && !b.interval.contains(0.0) && (a.estimate > 0.0) == (b.estimate > 0.0)
}
