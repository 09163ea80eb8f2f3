//! Rank tests: Mann–Whitney for independent groups, signed ranks for blocks.

use serde::{Deserialize, Serialize};

use super::exact::{coin_sums, mann_whitney_null, subset_sums, two_sided};
use crate::Sample;
use crate::distribution::normal_two_sided;
use crate::rank::Midranks;

/// Up to this product of the group sizes the Mann–Whitney distribution is counted: 30 against 30, the
/// usual limit of repeats, takes some 50 µs. Above it the normal approximation is good.
pub(super) const EXACT_PRODUCT: usize = 900;

/// The same with ties, which take far longer to count (20 against 20: 0.4 ms; 30 against 30: 10 ms).
const EXACT_PRODUCT_TIED: usize = 400;

/// Up to this many blocks the signed-rank distribution is counted.
pub(super) const EXACT_BLOCKS: usize = 60;

/// The result of a rank test, two-sided.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RankTest {
    /// Mann–Whitney: the pairs (one figure of each group) in which `other` is larger, ties counting
    /// half. Signed ranks: the rank sum of the blocks in which `other` is larger.
    pub statistic: f64,
    /// The two-sided p-value: how often a difference at least so far from balance comes by chance.
    pub p: f64,
    /// Whether `p` was counted rather than approximated.
    pub exact: bool,
    /// The smallest p-value that groups of these sizes can ever give, whatever the figures.
    pub smallest_p: f64,
}

/// The Mann–Whitney test (Mann & Whitney 1947) of whether either group tends to be larger.
///
/// Small groups: the exact permutation distribution, over midranks when there are ties; p is twice
/// the smaller tail. Large groups: the normal approximation with tie and continuity correction
/// (Hollander & Wolfe, "Nonparametric Statistical Methods", §4.1).
pub fn mann_whitney(baseline: &Sample, other: &Sample) -> RankTest {
    let (n, m) = (baseline.n(), other.n());
    let pooled: Vec<f64> = baseline.values().iter().chain(other.values()).copied().collect();
    let ranks = Midranks::of(&pooled);
    let doubled_sum: usize = ranks.doubled[n..].iter().sum();
    let statistic = doubled_sum as f64 / 2.0 - (m * (m + 1)) as f64 / 2.0;
    let ties = ranks.has_ties();
    let exact = n * m <= if ties { EXACT_PRODUCT_TIED } else { EXACT_PRODUCT };
    let p = if exact && !ties {
        two_sided(&mann_whitney_null(n, m), statistic as usize)
    } else if exact {
        // The rank sum of either group says the same; the smaller group's is quicker to count.
        let (size, observed) = if m <= n { (m, doubled_sum) } else { (n, ranks.doubled[..n].iter().sum()) };
        two_sided(&subset_sums(&ranks.doubled, size), observed)
    } else {
        let (n, m) = (n as f64, m as f64);
        let total = n + m;
        let ties = ranks.sum_over_groups(|t| t.powi(3) - t) / (total * (total - 1.0));
        let variance = n * m / 12.0 * (total + 1.0 - ties);
        approximate(statistic - n * m / 2.0, variance)
    };
    RankTest { statistic, p, exact, smallest_p: smallest_p_independent(n, m) }
}

/// The Wilcoxon signed-rank test (Wilcoxon 1945) over blocks, each a pair (baseline, other).
///
/// It is the permutation test that swaps the two within each block, on ranks, so one wild block
/// cannot decide it. Blocks without a difference are ranked and then left out (Pratt, "Remarks on
/// zeros and ties in the Wilcoxon signed rank procedures", JASA 54, 1959). Exact, ties included, up
/// to 60 blocks; tie-corrected normal with continuity correction above.
pub fn signed_rank(pairs: &[(f64, f64)]) -> RankTest {
    let differences: Vec<f64> = pairs.iter().map(|(baseline, other)| other - baseline).collect();
    let sizes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
    let ranks = Midranks::of(&sizes);
    let moved: Vec<(f64, usize)> = differences.iter().copied().zip(ranks.doubled).filter(|(d, _)| *d != 0.0).collect();
    let scores: Vec<usize> = moved.iter().map(|(_, rank)| *rank).collect();
    let positive: usize = moved.iter().filter(|(d, _)| *d > 0.0).map(|(_, rank)| rank).sum();
    let exact = pairs.len() <= EXACT_BLOCKS;
    let p = if exact {
        two_sided(&coin_sums(&scores), positive)
    } else {
        // Each doubled score is in or out by a fair coin: mean score/2, variance score²/4.
        let scores = scores.iter().map(|&s| s as f64 / 2.0);
        let (mean, variance) = scores.fold((0.0, 0.0), |(mean, variance), s| (mean + s / 2.0, variance + s * s / 4.0));
        approximate(positive as f64 / 2.0 - mean, variance)
    };
    RankTest { statistic: positive as f64 / 2.0, p, exact, smallest_p: smallest_p_blocked(pairs.len()) }
}

/// With continuity correction; the statistics move in steps of at least ½.
fn approximate(distance: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    normal_two_sided((distance.abs() - 0.5).max(0.0) / variance.sqrt())
}

/// 2 / C(n + m, n): all of one group above all of the other, either way round.
pub(super) fn smallest_p_independent(n: usize, m: usize) -> f64 {
    let small = n.min(m);
    let ways = (1..=small).fold(1.0, |ways, k| ways * (n + m - small + k) as f64 / k as f64);
    (2.0 / ways).min(1.0)
}

/// 2 / 2^blocks: the same sign in every block.
pub(super) fn smallest_p_blocked(blocks: usize) -> f64 {
    2.0 * 0.5_f64.powf(blocks.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values.to_vec()).unwrap()
    }

    #[test]
    fn three_against_three_cannot_reach_one_in_twenty() {
        let test = mann_whitney(&sample(&[1., 2., 3.]), &sample(&[101., 102., 103.]));
        assert!((test.p - 0.1).abs() < 1e-12 && (test.smallest_p - 0.1).abs() < 1e-12);
        assert_eq!(test.statistic, 9.0);
    }

    #[test]
    fn five_against_five_separated() {
        // The case the dependency survey found wrong in a published crate: 2 / C(10, 5).
        let test = mann_whitney(&sample(&[1., 2., 3., 4., 5.]), &sample(&[6., 7., 8., 9., 10.]));
        assert!((test.p - 2.0 / 252.0).abs() < 1e-12 && test.exact);
    }

    #[test]
    fn all_tied_is_no_evidence() {
        assert_eq!(mann_whitney(&sample(&[2.0; 4]), &sample(&[2.0; 6])).p, 1.0);
        assert_eq!(mann_whitney(&sample(&[2.0; 40]), &sample(&[2.0; 40])).p, 1.0);
        assert_eq!(signed_rank(&[(1.0, 1.0); 4]).p, 1.0);
        assert_eq!(signed_rank(&[(1.0, 1.0); 80]).p, 1.0);
        assert_eq!(signed_rank(&[]).p, 1.0);
    }

    #[test]
    fn smallest_p_values() {
        assert!((smallest_p_independent(10, 10) - 2.0 / 184_756.0).abs() < 1e-18);
        assert_eq!(smallest_p_independent(1, 1), 1.0);
        assert_eq!(smallest_p_blocked(6), 2.0 / 64.0);
        assert_eq!(smallest_p_blocked(0), 1.0);
    }
}
