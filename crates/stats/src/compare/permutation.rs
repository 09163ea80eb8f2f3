//! A permutation test on the figures themselves, for when the mean is what matters.

use crate::Sample;
use crate::random::Random;
use crate::sample::mean;

/// Up to this many relabellings every one is tried (10 against 10 has 184,756).
const MAX_ENUMERATED: u64 = 200_000;

/// Otherwise this many are drawn; with the observed one they make 10,000, so p moves in steps of
/// 0.0001.
const DRAWN: u64 = 9_999;

/// The result of a permutation test, two-sided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PermutationTest {
    /// mean(other) − mean(baseline).
    pub difference: f64,
    /// The share of relabellings at least as far from zero as the observed one.
    pub p: f64,
    pub exact: bool,
}

/// The two-sample permutation test of the means (Fisher 1935; Pitman 1937). Exact when the groups differ in nothing but, perhaps,
/// their place.
///
/// Every relabelling when there are at most `MAX_ENUMERATED`, else `DRAWN` seeded ones with the
/// observed one counted in, so that p is never 0 (Phipson & Smyth, "Permutation p-values should
/// never be zero", 2010).
pub fn permutation_test(baseline: &Sample, other: &Sample, seed: u64) -> PermutationTest {
    let mut pooled: Vec<f64> = other.values().iter().chain(baseline.values()).copied().collect();
    let center = mean(&pooled);
    for value in &mut pooled {
        *value -= center;
    }
    let m = other.n();
    let all: f64 = pooled.iter().sum();
    // |difference| of the means when `sum` is that of one group.
    let distance = |sum: f64| (sum / m as f64 - (all - sum) / baseline.n() as f64).abs();
    let observed = distance(pooled[..m].iter().sum());
    let (p, exact) = match combinations(pooled.len(), m) {
        Some(ways) if ways <= MAX_ENUMERATED => {
            let extreme = masks(pooled.len(), m)
                .filter(|mask| {
                    let chosen = (0..pooled.len()).filter(|i| mask >> i & 1 == 1);
                    as_far(distance(chosen.map(|i| pooled[i]).sum()), observed)
                })
                .count();
            (extreme as f64 / ways as f64, true)
        }
        _ => {
            let mut random = Random::new(seed);
            let drawn = (0..DRAWN).filter(|_| {
                random.shuffle_prefix(&mut pooled, m);
                as_far(distance(pooled[..m].iter().sum()), observed)
            });
            ((drawn.count() + 1) as f64 / (DRAWN + 1) as f64, false)
        }
    };
    PermutationTest { difference: other.mean() - baseline.mean(), p, exact }
}

/// Relabellings that tie with the observed one must count; sums in another order differ in the last
/// bits.
fn as_far(distance: f64, observed: f64) -> bool {
    distance >= observed * (1.0 - 1e-9)
}

/// C(n, k), when it fits and the items fit the bits of a mask.
fn combinations(n: usize, k: usize) -> Option<u64> {
    if n >= 64 {
        return None;
    }
    (1..=k.min(n - k) as u64).try_fold(1_u64, |ways, i| Some(ways.checked_mul(n as u64 - k.min(n - k) as u64 + i)? / i))
}

/// All masks of `n < 64` bits with `k ≥ 1` of them set, in ascending order (Gosper's hack, HAKMEM
/// 175).
fn masks(n: usize, k: usize) -> impl Iterator<Item = u64> {
    let first = (1_u64 << k) - 1;
    std::iter::successors(Some(first), |&mask| {
        let lowest = mask & mask.wrapping_neg();
        let ripple = mask + lowest;
        Some(ripple | (((mask ^ ripple) / lowest) >> 2))
    })
    .take_while(move |mask| mask >> n == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values.to_vec()).unwrap()
    }

    #[test]
    fn masks_are_all_the_combinations() {
        for n in 1..12 {
            for k in 1..=n {
                let found: Vec<u64> = masks(n, k).collect();
                let all = (0..1_u64 << n).filter(|m| m.count_ones() as usize == k).count();
                assert_eq!(found.len(), all);
                assert_eq!(combinations(n, k), Some(all as u64));
                assert!(found.iter().all(|m| m.count_ones() as usize == k));
            }
        }
        assert_eq!(combinations(20, 10), Some(184_756));
    }

    /// scipy 1.17.1: permutation_test((b, a), |difference|, n_resamples=inf,
    /// alternative="greater").
    #[test]
    fn agrees_with_scipy() {
        let a = sample(&[12.1, 11.8, 12.4, 12.0, 12.9, 11.5]);
        let b = sample(&[12.6, 13.1, 12.8, 13.4, 12.2]);
        let means = permutation_test(&a, &b, 1);
        assert!(means.exact);
        assert!((means.p - 0.043_290_043_290_043_29).abs() < 1e-12, "{means:?}");
    }

    #[test]
    fn drawing_is_near_enumerating() {
        let a: Vec<f64> = (0..12).map(|i| f64::from(i * i % 17)).collect();
        let b: Vec<f64> = (0..12).map(|i| f64::from(i * i % 13) + 3.0).collect();
        let (a, b) = (sample(&a), sample(&b));
        let drawn = permutation_test(&a, &b, 1);
        let again = permutation_test(&a, &b, 1);
        assert!(!drawn.exact);
        assert_eq!(drawn, again);
        let other_way = permutation_test(&b, &a, 2);
        assert!((drawn.p - other_way.p).abs() < 0.02, "{drawn:?} {other_way:?}");
    }

    #[test]
    fn constant_groups() {
        let (a, b) = (sample(&[1.0; 4]), sample(&[2.0; 4]));
        assert!((permutation_test(&a, &b, 1).p - 2.0 / 70.0).abs() < 1e-12);
        assert_eq!(permutation_test(&a, &a, 1).p, 1.0);
    }
}
