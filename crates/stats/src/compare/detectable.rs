//! What could have been found: how far apart two groups have to be for the test to tell them apart.

use std::f64::consts::PI;

use super::exact::{lower_critical, mann_whitney_null};
use super::rank_tests::EXACT_PRODUCT;
use crate::distribution::normal_quantile;
use crate::random::{Random, derive_seed};

/// How often a difference must be found to count as detectable.
pub const POWER: f64 = 0.8;

/// Simulated pairs of groups: enough for the [`POWER`] quantile to be within 3 % of itself.
const SIMULATED: usize = 2000;

/// The smallest shift, in standard deviations of a figure, that the Mann–Whitney test of `n` against `m` figures finds at
/// a two-sided `level` in the share `power` of all cases, for normal figures. `None` when it could find none, however large.
///
/// The test calls the groups different when enough of the n·m differences lie on one side, so in a simulated pair of
/// groups the smallest shift that it would find is an order statistic of the differences; the answer is a quantile of
/// those. Large groups: the test's asymptotic efficiency against t is 3/π (Hodges & Lehmann, "The efficiency of some
/// nonparametric competitors of the t-test", 1956).
pub fn detectable_shift(n: usize, m: usize, level: f64, power: f64) -> Option<f64> {
    if n == 0 || m == 0 || level <= 0.0 {
        return None;
    }
    if n * m > EXACT_PRODUCT {
        let spread = (PI / 3.0 * (1.0 / n as f64 + 1.0 / m as f64)).sqrt();
        return Some((normal_quantile(1.0 - level / 2.0) + normal_quantile(power)) * spread);
    }
    let (critical, below) = lower_critical(&mann_whitney_null(n, m), level / 2.0);
    if below > level / 2.0 {
        return None;
    }
    let needed = n * m - critical + 1;
    // Seeded by what is asked, so that the same question has the same answer.
    let mut random = Random::new(derive_seed(n as u64, m as u64));
    let mut draw = || normal_quantile((random.below(1 << 53) as f64 + 0.5) / (1_u64 << 53) as f64);
    let mut found: Vec<f64> = (0..SIMULATED)
        .map(|_| {
            let baseline: Vec<f64> = (0..n).map(|_| draw()).collect();
            let other: Vec<f64> = (0..m).map(|_| draw()).collect();
            let mut gaps: Vec<f64> = baseline.iter().flat_map(|b| other.iter().map(move |o| b - o)).collect();
            *gaps.select_nth_unstable_by(needed - 1, f64::total_cmp).1
        })
        .collect();
    let place = (power * SIMULATED as f64) as usize;
    Some(found.select_nth_unstable_by(place, f64::total_cmp).1.max(0.0))
}

/// About how many figures in either group it takes to find a shift of `shift` standard deviations; never fewer than
/// `fewest`. `None` when more than a million would not do.
pub fn figures_needed(shift: f64, level: f64, fewest: usize) -> Option<usize> {
    let critical = normal_quantile(1.0 - level / 2.0);
    // The second term is for small groups (Guenther, "Sample size formulas for normal theory t tests", 1981).
    let needed = PI / 3.0 * (2.0 * ((critical + normal_quantile(POWER)) / shift).powi(2) + critical.powi(2) / 4.0);
    let needed = needed.ceil();
    (needed <= 1e6).then(|| fewest.max(needed as usize))
}

#[cfg(test)]
mod tests {
    use super::super::mann_whitney;
    use super::*;
    use crate::Sample;

    #[test]
    fn the_shift_is_found_as_often_as_claimed() {
        for (n, m, level) in [(4, 4, 0.05), (6, 6, 0.05 / 9.0), (10, 10, 0.05), (5, 12, 0.01), (30, 31, 0.01)] {
            let shift = detectable_shift(n, m, level, POWER).expect("enough figures");
            let mut random = Random::new(99);
            let mut draw = || random.normal();
            let rounds = 1500;
            let found = (0..rounds)
                .filter(|_| {
                    let baseline = Sample::new((0..n).map(|_| draw()).collect()).unwrap();
                    let other = Sample::new((0..m).map(|_| draw() + shift).collect()).unwrap();
                    mann_whitney(&baseline, &other).p <= level
                })
                .count();
            let share = found as f64 / rounds as f64;
            assert!((share - POWER).abs() < 0.04, "{n} against {m} at {level}: {share}");
        }
    }

    #[test]
    fn too_few_figures_find_nothing() {
        assert_eq!(detectable_shift(3, 3, 0.05, POWER), None);
        assert_eq!(detectable_shift(5, 5, 0.05 / 9.0, POWER), None, "0.0079 is more than a ninth of 0.05");
        assert_eq!(detectable_shift(0, 9, 0.05, POWER), None);
        let (few, many) =
            (detectable_shift(5, 5, 0.05, POWER).unwrap(), detectable_shift(20, 20, 0.05, POWER).unwrap());
        assert!(few > 2.0 * many && many > 0.5, "{few} {many}");
    }

    #[test]
    fn figures_needed_find_it() {
        for shift in [0.5, 1.0, 2.0] {
            let needed = figures_needed(shift, 0.05, 4).unwrap();
            let found = detectable_shift(needed, needed, 0.05, POWER).unwrap();
            assert!((found / shift - 1.0).abs() < 0.15, "{needed} figures find {found}, not {shift}");
        }
        assert_eq!(figures_needed(100.0, 0.05, 4), Some(4));
        assert_eq!(figures_needed(0.0, 0.05, 4), None);
    }
}
