//! How much larger: Hodges–Lehmann shifts with intervals, and Cliff's δ.

use serde::{Deserialize, Serialize};

use super::exact::{coin_sums, lower_critical, mann_whitney_null};
use super::rank_tests::{EXACT_BLOCKS, EXACT_PRODUCT};
use crate::Sample;
use crate::distribution::normal_quantile;
use crate::interval::{Interval, IntervalMethod};

/// A difference to a baseline: in the metric's unit, or relative (0.05 is 5 % more than the
/// baseline).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    pub estimate: f64,
    /// Its interval; look at `confidence`, which tiny groups cannot bring to what was asked.
    pub interval: Interval,
}

impl Shift {
    /// The same with the other one as the baseline, for a difference.
    pub(super) fn reversed(self) -> Self {
        Self { estimate: -self.estimate, interval: self.interval.negated() }
    }

    /// The same with the other one as the baseline, for a relative shift:
    /// 25 % more one way is 20 % less the other way.
    pub(super) fn relative_reversed(self) -> Self {
        let logarithm = self.map(f64::ln_1p);
        logarithm.reversed().map(f64::exp_m1)
    }

    pub fn reaching_none(self) -> Self {
        self.reaching(0.0)
    }

    pub fn reaching(self, value: f64) -> Self {
        let (low, high) = (self.interval.low.min(value), self.interval.high.max(value));
        Self { interval: Interval { low, high, ..self.interval }, ..self }
    }

    /// The same with an interval of no values below 0 if the direction is positive, or above if it is negative.
    pub fn on_side(self, direction: f64) -> Self {
        let Interval { low, high, .. } = self.interval;
        let (low, high) = match direction {
            up if up > 0.0 => (low.max(0.0), high.max(0.0)),
            down if down < 0.0 => (low.min(0.0), high.min(0.0)),
            _ => (low, high),
        };
        Self { interval: Interval { low, high, ..self.interval }, ..self }
    }

    /// The same, one of many intervals that hold together with this confidence.
    pub(super) fn claiming(self, confidence: f64) -> Self {
        Self { interval: Interval { confidence, ..self.interval }, ..self }
    }

    pub(super) fn map(self, increasing: impl Fn(f64) -> f64) -> Self {
        Self { estimate: increasing(self.estimate), interval: self.interval.map(increasing) }
    }
}

/// The Hodges–Lehmann shift from `baseline` to `other`: the median of all m·n differences.
///
/// Hodges & Lehmann (1963); the interval inverts the Mann–Whitney test (Moses; Hollander & Wolfe
/// §4.3), so zero lies outside it exactly when that test, at the same level and without ties, calls
/// the groups different. Exact up to m·n = 900, normal approximation above.
pub fn hodges_lehmann(baseline: &Sample, other: &Sample, confidence: f64) -> Shift {
    let (baselines, others) = (baseline.sorted(), other.sorted());
    // The larger the baseline, the more of the others are at most `shift` above it.
    let at_most = |shift: f64| {
        let mut until = 0;
        let of = |b: &f64| {
            until += others[until..].iter().take_while(|o| *o - b <= shift).count();
            until
        };
        baselines.iter().map(of).sum()
    };
    let (n, m) = (baseline.n(), other.n());
    let null = (n * m <= EXACT_PRODUCT).then(|| mann_whitney_null(n, m));
    let variance = (n * m * (n + m + 1)) as f64 / 12.0;
    invert(&Estimates { count: n * m, at_most }, null.as_deref(), variance, confidence, n.min(m))
}

/// [`hodges_lehmann`] on the logarithms: the shift as a share of the baseline, with the baseline's
/// own scatter in the interval. `None` unless every figure is positive.
pub fn relative_shift(baseline: &Sample, other: &Sample, confidence: f64) -> Option<Shift> {
    let shift = hodges_lehmann(&logarithms(baseline)?, &logarithms(other)?, confidence);
    Some(shift.map(f64::exp_m1))
}

/// The Hodges–Lehmann shift over blocks, each a pair (baseline, other): the median of the Walsh
/// averages of the differences; its interval inverts the signed-rank test (Tukey; Hollander & Wolfe
/// §3.2–3.3). Exact up to 60 blocks. `None` without a block.
pub fn blocked_shift(pairs: &[(f64, f64)], confidence: f64) -> Option<Shift> {
    let differences: Vec<f64> = pairs.iter().map(|(baseline, other)| other - baseline).collect();
    walsh(&differences, confidence)
}

/// [`blocked_shift`] as a share of the baseline; `None` unless every figure is positive.
pub fn blocked_relative_shift(pairs: &[(f64, f64)], confidence: f64) -> Option<Shift> {
    let ratios: Option<Vec<f64>> = pairs.iter().map(|(b, o)| (*b > 0.0 && *o > 0.0).then(|| (o / b).ln())).collect();
    Some(walsh(&ratios?, confidence)?.map(f64::exp_m1))
}

/// Cliff's δ: P(other > baseline) − P(other < baseline), from −1 to 1.
///
/// Cliff, "Dominance statistics", Psychological Bulletin 114 (1993). 0 is complete overlap; ± 1
/// means that the two do not overlap at all.
pub fn cliffs_delta(baseline: &Sample, other: &Sample) -> f64 {
    let sorted = baseline.sorted();
    let balance: f64 = other
        .values()
        .iter()
        .map(|o| {
            let below = sorted.partition_point(|b| b < o) as f64;
            let above = (sorted.len() - sorted.partition_point(|b| b <= o)) as f64;
            below - above
        })
        .sum();
    balance / (baseline.n() * other.n()) as f64
}

fn logarithms(sample: &Sample) -> Option<Sample> {
    let logarithms = sample.values().iter().map(|v| v.ln()).collect();
    if sample.min() > 0.0 { Sample::new(logarithms).ok() } else { None }
}

fn walsh(differences: &[f64], confidence: f64) -> Option<Shift> {
    let n = differences.len();
    if n == 0 {
        return None;
    }
    let mut sorted = differences.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // The larger the one of two, the fewer of the others make an average of at most `shift` with it.
    let at_most = |shift: f64| {
        let mut until = n;
        let of = |(place, a): (usize, &f64)| {
            until -= sorted[..until].iter().rev().take_while(|b| f64::midpoint(*a, **b) > shift).count();
            until.saturating_sub(place)
        };
        sorted.iter().enumerate().map(of).sum()
    };
    let averages = Estimates { count: n * (n + 1) / 2, at_most };
    let null = (n <= EXACT_BLOCKS).then(|| coin_sums(&(1..=n).collect::<Vec<_>>()));
    let variance = (n * (n + 1) * (2 * n + 1)) as f64 / 24.0;
    Some(invert(&averages, null.as_deref(), variance, confidence, n))
}

/// Elementary estimates by how many of them are at most a shift. There are a million of two samples of a thousand; to find one by its
/// rank among them takes some sixty counts, each as long as the samples are.
struct Estimates<F> {
    count: usize,
    at_most: F,
}

impl<F: Fn(f64) -> usize> Estimates<F> {
    /// The one that `below` others precede in ascending order.
    fn at(&self, below: usize) -> f64 {
        // Bits of floating-point numbers in their order: those of negative ones run the other way.
        const SIGN: u64 = 1 << 63;
        let key = |bits: u64| if bits & SIGN == 0 { bits | SIGN } else { !bits };
        let number = |key: u64| f64::from_bits(if key & SIGN == 0 { !key } else { key & !SIGN });
        let (mut low, mut high) = (key(f64::NEG_INFINITY.to_bits()), key(f64::INFINITY.to_bits()));
        while low < high {
            let middle = low + (high - low) / 2;
            if (self.at_most)(number(middle)) > below {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        // Zero has two keys, of which the smaller is −0.
        number(low) + 0.0
    }

    fn median(&self) -> f64 {
        let upper = self.at(self.count / 2);
        if self.count % 2 == 1 { upper } else { f64::midpoint(self.at(self.count / 2 - 1), upper) }
    }
}

/// The median and the c-th smallest and largest of the elementary estimates, c from the null
/// distribution of the statistic that counts those above a shift, or from its normal approximation.
fn invert(
    estimates: &Estimates<impl Fn(f64) -> usize>,
    null: Option<&[f64]>,
    variance: f64,
    confidence: f64,
    n: usize,
) -> Shift {
    assert!(0.0 < confidence && confidence < 1.0, "a confidence of {confidence} means nothing");
    let count = estimates.count;
    let tail = (1.0 - confidence) / 2.0;
    let (c, confidence, method) = if let Some(null) = null {
        let (c, below) = lower_critical(null, tail);
        // Two tails: what is outside. It can exceed 1 only for one against one, where nothing is
        // known.
        (c, (1.0 - 2.0 * below).max(0.0), IntervalMethod::HodgesLehmannExact)
    } else {
        let c = count as f64 / 2.0 + normal_quantile(tail) * variance.sqrt();
        ((c.floor() as usize).max(1), confidence, IntervalMethod::HodgesLehmannNormal)
    };
    Shift {
        estimate: estimates.median(),
        interval: Interval { low: estimates.at(c - 1), high: estimates.at(count - c), confidence, method, n },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values.to_vec()).unwrap()
    }

    #[test]
    fn three_against_three_claims_what_it_has() {
        let shift = hodges_lehmann(&sample(&[1., 2., 4.]), &sample(&[11., 12., 15.]), 0.95);
        assert_eq!(shift.estimate, 10.0);
        assert_eq!((shift.interval.low, shift.interval.high), (7.0, 14.0));
        assert!((shift.interval.confidence - 0.9).abs() < 1e-12);
    }

    #[test]
    fn estimates_are_found_by_their_rank() {
        let mut random = crate::random::Random::new(3);
        for n in 1..12_usize {
            let mut draw = |n: usize| -> Vec<f64> { (0..n).map(|_| (random.below(9) as f64 - 4.0) / 8.0).collect() };
            let (a, b) = (draw(n), draw(n + 2));
            let mut differences: Vec<f64> = a.iter().flat_map(|a| b.iter().map(move |b| b - a)).collect();
            let mut averages: Vec<f64> =
                (0..n).flat_map(|i| (i..n).map(move |j| (i, j))).map(|(i, j)| f64::midpoint(a[i], a[j])).collect();
            differences.sort_by(f64::total_cmp);
            averages.sort_by(f64::total_cmp);
            let by_groups = hodges_lehmann(&sample(&a), &sample(&b), 0.5);
            let by_blocks = walsh(&a, 0.5).unwrap();
            for (shift, sorted) in [(by_groups, &differences), (by_blocks, &averages)] {
                assert_eq!(shift.estimate, crate::sample::median_of_sorted(sorted));
                for end in [shift.interval.low, shift.interval.high] {
                    assert!(sorted.contains(&end), "{end} is none of {sorted:?}");
                }
            }
            let at_most = |shift: f64| averages.iter().filter(|average| **average <= shift).count();
            let estimates = Estimates { count: averages.len(), at_most };
            let found: Vec<f64> = (0..averages.len()).map(|below| estimates.at(below)).collect();
            assert_eq!(found, averages);
        }
    }

    #[test]
    fn a_ratio_read_backwards_is_the_inverse_ratio() {
        let (a, b) = (sample(&[1., 2., 4., 5.]), sample(&[3., 6., 7., 9.]));
        let forward = relative_shift(&a, &b, 0.95).unwrap();
        let backward = relative_shift(&b, &a, 0.95).unwrap();
        let reversed = forward.relative_reversed();
        assert!((reversed.estimate - backward.estimate).abs() < 1e-12);
        assert!((reversed.interval.low - backward.interval.low).abs() < 1e-12);
        assert!((reversed.interval.high - backward.interval.high).abs() < 1e-12);
    }

    #[test]
    fn a_ratio_needs_positive_figures() {
        assert!(relative_shift(&sample(&[0.0, 1.0]), &sample(&[1.0]), 0.95).is_none());
        assert!(blocked_relative_shift(&[(1.0, -1.0)], 0.95).is_none());
        assert!(blocked_shift(&[], 0.95).is_none());
    }

    #[test]
    fn dominance() {
        assert_eq!(cliffs_delta(&sample(&[1., 2.]), &sample(&[3., 4.])), 1.0);
        assert_eq!(cliffs_delta(&sample(&[3., 4.]), &sample(&[1., 2.])), -1.0);
        assert_eq!(cliffs_delta(&sample(&[1., 2.]), &sample(&[1., 2.])), 0.0);
    }
}
