//! Permutation tests on the figures themselves, for when the mean is what matters.

use serde::{Deserialize, Serialize};

use crate::Sample;
use crate::random::Random;
use crate::sample::mean;

/// Up to this many relabellings every one is tried (10 against 10 has 184,756).
pub const MAX_ENUMERATED: u64 = 200_000;

/// Otherwise this many are drawn; with the observed one they make 10,000, so p moves in steps of
/// 0.0001.
pub const DRAWN: u64 = 9_999;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// The difference of the means. Exact when the groups differ in nothing but, perhaps, their
    /// place.
    Means,
    /// That, over its standard error (Welch's t). Stays near its level when the groups scatter
    /// differently and are of different size (Janssen 1997; Chung & Romano, Annals of Statistics
    /// 41, 2013).
    Studentised,
}

/// The result of a permutation test, two-sided.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PermutationTest {
    /// mean(other) − mean(baseline), or the mean difference over blocks.
    pub difference: f64,
    /// The share of relabellings at least as far from zero as the observed one.
    pub p: f64,
    pub exact: bool,
}

/// The two-sample permutation test (Fisher 1935; Pitman 1937).
///
/// Every relabelling when there are at most [`MAX_ENUMERATED`], else [`DRAWN`] seeded ones with the
/// observed one counted in, so that p is never 0 (Phipson & Smyth, "Permutation p-values should
/// never be zero", 2010).
pub fn permutation_test(baseline: &Sample, other: &Sample, difference: Difference, seed: u64) -> PermutationTest {
    let mut pooled: Vec<f64> = other.values().iter().chain(baseline.values()).copied().collect();
    let center = mean(&pooled);
    for value in &mut pooled {
        *value -= center;
    }
    let m = other.n();
    let test = Relabelling::new(&pooled, m, difference);
    let observed = test.distance(pooled[..m].iter().copied());
    let (p, exact) = match combinations(pooled.len(), m) {
        Some(ways) if ways <= MAX_ENUMERATED => {
            let extreme = masks(pooled.len(), m)
                .filter(|mask| {
                    let chosen = (0..pooled.len()).filter(|i| mask >> i & 1 == 1);
                    as_far(test.distance(chosen.map(|i| pooled[i])), observed)
                })
                .count();
            (extreme as f64 / ways as f64, true)
        }
        _ => {
            let mut random = Random::new(seed);
            let p = drawn_p(|| {
                random.shuffle_prefix(&mut pooled, m);
                as_far(test.distance(pooled[..m].iter().copied()), observed)
            });
            (p, false)
        }
    };
    PermutationTest { difference: other.mean() - baseline.mean(), p, exact }
}

/// The permutation test over blocks (baseline, other): under the null the two may be swapped within
/// each block, which flips the sign of its difference (Fisher 1935, Darwin's maize).
///
/// Exact up to 2^17 sign patterns, seeded draws above. `None` without a block.
pub fn sign_flip_test(pairs: &[(f64, f64)], seed: u64) -> Option<PermutationTest> {
    let differences: Vec<f64> = pairs.iter().map(|(baseline, other)| other - baseline).collect();
    if differences.is_empty() {
        return None;
    }
    let n = differences.len();
    let observed = differences.iter().sum::<f64>().abs();
    let patterns = u32::try_from(n).ok().and_then(|n| 1_u64.checked_shl(n));
    let (p, exact) = match patterns {
        Some(patterns) if patterns <= MAX_ENUMERATED => {
            let extreme = (0..patterns)
                .filter(|mask| {
                    let signed = differences.iter().enumerate().map(|(i, d)| if mask >> i & 1 == 1 { -d } else { *d });
                    as_far(signed.sum::<f64>().abs(), observed)
                })
                .count();
            (extreme as f64 / patterns as f64, true)
        }
        _ => {
            let mut random = Random::new(seed);
            let p = drawn_p(|| {
                let signed = differences.iter().map(|d| if random.coin() { -d } else { *d });
                as_far(signed.sum::<f64>().abs(), observed)
            });
            (p, false)
        }
    };
    Some(PermutationTest { difference: mean(&differences), p, exact })
}

/// What is the same for every relabelling of one pooled, centred sample.
struct Relabelling {
    size: f64,
    rest: f64,
    sum: f64,
    squares: f64,
    difference: Difference,
}

impl Relabelling {
    fn new(pooled: &[f64], size: usize, difference: Difference) -> Self {
        Self {
            size: size as f64,
            rest: (pooled.len() - size) as f64,
            sum: pooled.iter().sum(),
            squares: pooled.iter().map(|v| v * v).sum(),
            difference,
        }
    }

    /// |difference| when `chosen` are the figures of one group.
    fn distance(&self, chosen: impl Iterator<Item = f64>) -> f64 {
        let (sum, squares) = chosen.fold((0.0, 0.0), |(s, q), v| (s + v, q + v * v));
        let means = (sum / self.size - (self.sum - sum) / self.rest).abs();
        if self.difference == Difference::Means {
            return means;
        }
        let error =
            squared_error(sum, squares, self.size) + squared_error(self.sum - sum, self.squares - squares, self.rest);
        // Rounding leaves a little in place of an exact zero; `squares` is the scale of what was
        // summed.
        if error > 1e-14 * self.squares {
            means / error.sqrt()
        } else if means > 1e-7 * self.squares.sqrt() {
            f64::INFINITY
        } else {
            0.0
        }
    }
}

fn squared_error(sum: f64, squares: f64, count: f64) -> f64 {
    if count < 2.0 {
        return 0.0;
    }
    ((squares - sum * sum / count) / (count - 1.0) / count).max(0.0)
}

/// Relabellings that tie with the observed one must count; sums in another order differ in the last
/// bits.
fn as_far(distance: f64, observed: f64) -> bool {
    distance >= observed * (1.0 - 1e-9)
}

fn drawn_p(mut as_far: impl FnMut() -> bool) -> f64 {
    let extreme = (0..DRAWN).filter(|_| as_far()).count() as u64;
    (extreme + 1) as f64 / (DRAWN + 1) as f64
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
        let means = permutation_test(&a, &b, Difference::Means, 1);
        assert!(means.exact);
        assert!((means.p - 0.043_290_043_290_043_29).abs() < 1e-12, "{means:?}");
        let studentised = permutation_test(&a, &b, Difference::Studentised, 1);
        assert!((studentised.p - 0.041_125_541_125_541_13).abs() < 1e-12, "{studentised:?}");
    }

    #[test]
    fn drawing_is_near_enumerating() {
        let a: Vec<f64> = (0..12).map(|i| f64::from(i * i % 17)).collect();
        let b: Vec<f64> = (0..12).map(|i| f64::from(i * i % 13) + 3.0).collect();
        let (a, b) = (sample(&a), sample(&b));
        let drawn = permutation_test(&a, &b, Difference::Means, 1);
        let again = permutation_test(&a, &b, Difference::Means, 1);
        assert!(!drawn.exact);
        assert_eq!(drawn, again);
        let other_way = permutation_test(&b, &a, Difference::Studentised, 2);
        assert!((drawn.p - other_way.p).abs() < 0.02, "{drawn:?} {other_way:?}");
    }

    #[test]
    fn constant_groups() {
        let (a, b) = (sample(&[1.0; 4]), sample(&[2.0; 4]));
        for difference in [Difference::Means, Difference::Studentised] {
            assert!((permutation_test(&a, &b, difference, 1).p - 2.0 / 70.0).abs() < 1e-12);
            assert_eq!(permutation_test(&a, &a, difference, 1).p, 1.0);
        }
    }

    #[test]
    fn sign_flips() {
        let pairs = [(1.0, 2.0), (3.0, 5.0), (2.0, 2.5), (4.0, 4.75), (1.0, 1.25), (6.0, 9.0)];
        let test = sign_flip_test(&pairs, 1).unwrap();
        assert_eq!((test.p, test.exact), (2.0 / 64.0, true));
        assert_eq!(sign_flip_test(&[], 1), None);
        let many: Vec<(f64, f64)> = (0..100).map(|i| (0.0, f64::from(i % 7) - 2.5)).collect();
        let test = sign_flip_test(&many, 1).unwrap();
        assert!(!test.exact && test.p > 0.0 && test.p < 0.1, "{test:?}");
    }
}
