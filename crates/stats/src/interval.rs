//! Confidence intervals of one sample.
//!
//! Everybody publishes [`interval95`]. What it is, and why it is not plain BCa:
//!
//! The bootstrap of a small sample is too narrow twice over: its variance is short by (n − 1)/n,
//! and it uses normal where Student's quantiles are due (Hesterberg, "What Teachers Should Know
//! About the Bootstrap", The American Statistician 69(4), 2015, §4.1.3). No rule that only reads
//! percentiles can repair that at n = 3: a percentile never leaves the sample's range, and the
//! range of three figures holds the mean of a symmetric distribution in 1 − 2·(1/2)³ = 75 % of
//! cases. So the *distances* from the mean to the BCa ends are stretched by t(n − 1) / z · √(n / (n
//! − 1)), Hesterberg's factor applied to the interval and not to the level, and each end is the
//! farther of that and Student's own. Symmetric samples get Student's interval, a few per cent
//! wider; skewed samples get BCa's asymmetry. CALIBRATION.md has the measured coverage.
//!
//! The interval is of the **mean**. For the median no distribution-free interval reaches 95 % below
//! six figures (the whole range covers it in 1 − 2^(1 − n) of cases), and studies repeat thrice.
//!
//! Its promise is about figures that vary independently. Slow drift makes it too wide, which is
//! safe; correlated trials make it too narrow, which [`crate::drift`] is there to reveal.

use serde::{Deserialize, Serialize};

use crate::Sample;
use crate::distribution::{normal_cdf, normal_quantile, student_quantile};
use crate::random::Random;
use crate::sample::mean;

/// Resamples behind a published interval. With 2,000 an end moves by about 2 % of the half-width
/// from seed to seed, below the 10 % and more by which it moves from sample to sample, and a report
/// with ten thousand of them still takes about a second.
pub const RESAMPLES: usize = 2000;

/// The figures below which an interval is shown but marked: its width is then mostly guesswork
/// (at n = 4 the standard deviation it rests on is itself known to about ± 40 %).
pub const RELIABLE_FROM: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalMethod {
    /// Every figure was the same, so the interval is that figure.
    Constant,
    /// Bias-corrected and accelerated bootstrap.
    Bca,
    /// The farther of Student's t and BCa stretched for small samples.
    StudentBca,
    /// Student's t, with the scatter of a table's rows moderated by one another.
    Student,
    /// Tukey's studentised range, for all pairs of a table at once.
    Tukey,
    /// Hodges–Lehmann, ends from the exact null distribution of the rank test.
    HodgesLehmannExact,
    /// Hodges–Lehmann, ends from the normal approximation to that distribution.
    HodgesLehmannNormal,
    /// From the least to the most: of figures without noise there is nothing to estimate.
    Range,
}

/// A confidence interval, ends included. Invariant: `low <= high`, both finite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end, in the metric's unit.
    pub low: f64,
    /// The upper end, in the metric's unit.
    pub high: f64,
    /// The confidence it claims, between 0 and 1. Exact rank intervals of few figures claim less
    /// than was asked for, because no more is to be had (3 against 3: 0.9).
    pub confidence: f64,
    pub method: IntervalMethod,
    /// How many figures its width rests on: the smaller group's, when there are two; in a table whose rows share what is known of
    /// their scatter, the degrees of freedom and one.
    pub n: usize,
}

impl Interval {
    pub(crate) fn constant(value: f64, confidence: f64, n: usize) -> Self {
        Self { low: value, high: value, confidence, method: IntervalMethod::Constant, n }
    }

    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether it rests on enough figures ([`RELIABLE_FROM`]) to be shown without a mark.
    pub fn is_reliable(&self) -> bool {
        self.n >= RELIABLE_FROM
    }

    pub(crate) fn negated(self) -> Self {
        Self { low: -self.high, high: -self.low, ..self }
    }

    /// The interval of f(x) for an increasing f.
    pub(crate) fn map(self, increasing: impl Fn(f64) -> f64) -> Self {
        Self { low: increasing(self.low), high: increasing(self.high), ..self }
    }
}

/// The 95 % interval of the mean that everybody publishes; `None` for a single figure.
///
/// A constant sample gives an interval of no width. Mark it when it is not
/// [`is_reliable`](Interval::is_reliable). For a cell whose repeats a
/// [stopping rule](crate::stopping) decided, [`row_means`](crate::compare::row_means) at the level
/// [`LOOKED`](crate::stopping::LOOKED) gives what is published.
pub fn interval95(sample: &Sample, seed: u64) -> Option<Interval> {
    interval(sample, 0.95, seed)
}

/// The interval of [`interval95`] at another confidence, strictly between 0 and 1.
///
/// # Panics
/// When `confidence` is not strictly between 0 and 1.
pub fn interval(sample: &Sample, confidence: f64, seed: u64) -> Option<Interval> {
    let bootstrap = bca(sample, confidence, RESAMPLES, seed)?;
    if bootstrap.method == IntervalMethod::Constant {
        return Some(bootstrap);
    }
    let n = sample.n() as f64;
    let upper_tail = f64::midpoint(1.0, confidence);
    let t = student_quantile(upper_tail, n - 1.0);
    let stretch = t / normal_quantile(upper_tail) * (n / (n - 1.0)).sqrt();
    let center = sample.mean();
    let student = t * sample.stddev() / n.sqrt();
    Some(Interval {
        low: center - student.max(stretch * (center - bootstrap.low)),
        high: center + student.max(stretch * (bootstrap.high - center)),
        method: IntervalMethod::StudentBca,
        ..bootstrap
    })
}

/// The bias-corrected and accelerated bootstrap interval of the mean; `None` for a single figure.
///
/// Efron, "Better Bootstrap Confidence Intervals", JASA 82 (1987); Efron & Tibshirani, "An
/// Introduction to the Bootstrap" (1993), §14.3. The bias correction counts ties as half. The
/// acceleration comes from the jackknife (their eq. 14.15). Order statistics are rounded outwards.
///
/// As it stands it covers far less than it claims below about 20 figures: publish [`interval95`].
///
/// # Panics
/// When `confidence` is not strictly between 0 and 1, or with fewer than 100 resamples.
pub fn bca(sample: &Sample, confidence: f64, resamples: usize, seed: u64) -> Option<Interval> {
    assert!(0.0 < confidence && confidence < 1.0, "a confidence of {confidence} means nothing");
    assert!(resamples >= 100, "{resamples} resamples have no tails to read an interval from");
    let n = sample.n();
    if n < 2 {
        return None;
    }
    if sample.is_constant() {
        return Some(Interval::constant(sample.min(), confidence, n));
    }
    // Centred and scaled, so that ties between resamples are found at any magnitude, and so that
    // shifting and scaling a sample shifts and scales its interval.
    let center = sample.mean();
    let scale = sample.max() - sample.min();
    let values: Vec<f64> = sample.values().iter().map(|v| (v - center) / scale).collect();
    let acceleration = acceleration_of_mean(&values);
    let mut replicates = replicate(&values, resamples, seed);
    let bias = bias_correction(&replicates);
    let z = normal_quantile(f64::midpoint(1.0, confidence));
    let adjusted = |z: f64| {
        let shifted = bias + z;
        // The acceleration of a mean is below 1/6, so this stays positive for any usual level;
        // beyond that the end is the outermost resample.
        normal_cdf(bias + shifted / (1.0 - acceleration * shifted).max(0.01))
    };
    let low = order_statistic(&mut replicates, adjusted(-z));
    let high = order_statistic(&mut replicates, adjusted(z));
    Some(Interval {
        low: center + scale * low,
        high: center + scale * high,
        confidence,
        method: IntervalMethod::Bca,
        n,
    })
}

fn replicate(values: &[f64], resamples: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    let n = values.len();
    let mut drawn = vec![0.0; n];
    (0..resamples)
        .map(|_| {
            drawn.fill_with(|| values[random.below(n)]);
            drawn.iter().sum::<f64>() / n as f64
        })
        .collect()
}

/// z₀, from the share of replicates below the observed mean, which is 0 (Efron & Tibshirani eq. 14.14).
fn bias_correction(replicates: &[f64]) -> f64 {
    // Values have a range of 1, so rounding in a sum of n of them is far below this.
    let tolerance = 1e-12;
    let below = replicates.iter().filter(|&&r| r < -tolerance).count();
    let tied = replicates.iter().filter(|&&r| r.abs() <= tolerance).count();
    let count = replicates.len() as f64;
    let share = (below as f64 + tied as f64 / 2.0) / count;
    // A share of 0 or 1 would give an infinite correction; half a replicate is what was resolved.
    normal_quantile(share.clamp(0.5 / count, 1.0 - 0.5 / count))
}

/// The jackknife acceleration of a mean, in closed form: Σd³ / (6 (Σd²)^1.5) with d = x − x̄.
fn acceleration_of_mean(centred: &[f64]) -> f64 {
    let m = mean(centred);
    let squares: f64 = centred.iter().map(|v| (v - m).powi(2)).sum();
    let cubes: f64 = centred.iter().map(|v| (v - m).powi(3)).sum();
    cubes / (6.0 * squares.powf(1.5))
}

/// The ⌊(B + 1)p⌋-th smallest below the middle and the ⌈(B + 1)p⌉-th above it: outwards.
fn order_statistic(replicates: &mut [f64], probability: f64) -> f64 {
    let count = replicates.len();
    let position = (count + 1) as f64 * probability;
    let rank = if probability < 0.5 { position.floor() } else { position.ceil() };
    let index = (rank as usize).clamp(1, count) - 1;
    *replicates.select_nth_unstable_by(index, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values.to_vec()).unwrap()
    }

    /// The spatial test data, column A, of Efron & Tibshirani (table 14.1).
    const SPATIAL_A: [f64; 26] = [
        48., 36., 20., 29., 42., 42., 20., 42., 22., 41., 45., 14., 6., 0., 33., 28., 34., 4., 32., 24., 47., 41., 24.,
        26., 30., 41.,
    ];

    #[test]
    fn one_figure_has_no_interval_and_equal_figures_have_one_without_width() {
        assert_eq!(interval95(&sample(&[4.0]), 1), None);
        let constant = interval95(&sample(&[0.3; 4]), 1).unwrap();
        assert_eq!((constant.low, constant.high), (0.3, 0.3));
        assert_eq!(constant.method, IntervalMethod::Constant);
        assert!(!constant.is_reliable());
        assert!(interval95(&sample(&[0.3; 5]), 1).unwrap().is_reliable());
    }

    #[test]
    fn a_seed_gives_one_interval() {
        let data = sample(&SPATIAL_A);
        assert_eq!(interval95(&data, 7), interval95(&data, 7));
        assert_ne!(interval95(&data, 7), interval95(&data, 8));
    }

    /// scipy 1.17.1: bootstrap((A,), np.mean, confidence_level=0.95, method="BCa",
    /// n_resamples=400000, rng=default_rng(1)) = (24.115…, 34.269…).
    #[test]
    fn bca_of_a_mean_agrees_with_scipy() {
        let found = bca(&sample(&SPATIAL_A), 0.95, 40_000, 3).unwrap();
        assert!((found.low - 24.115).abs() < 0.15, "{found:?}");
        assert!((found.high - 34.269).abs() < 0.15, "{found:?}");
    }

    #[test]
    fn acceleration_agrees_with_the_jackknife_definition() {
        let values = [1.0, 2.0, 4.0, 9.0, 3.5];
        let leave_one_out: Vec<f64> = (0..values.len())
            .map(|skip| {
                let rest: Vec<f64> = values.iter().enumerate().filter(|(i, _)| *i != skip).map(|(_, v)| *v).collect();
                mean(&rest)
            })
            .collect();
        let center = mean(&leave_one_out);
        let cubes: f64 = leave_one_out.iter().map(|v| (center - v).powi(3)).sum();
        let squares: f64 = leave_one_out.iter().map(|v| (center - v).powi(2)).sum();
        let expected = cubes / (6.0 * squares.powf(1.5));
        assert!((acceleration_of_mean(&values) - expected).abs() < 1e-12);
    }

    #[test]
    fn the_published_interval_is_never_narrower_than_students() {
        // scipy 1.17.1: t.interval(0.95, 2, loc=2, scale=1/sqrt(3)) = (-0.484137…, 4.484137…)
        let found = interval95(&sample(&[1.0, 2.0, 3.0]), 5).unwrap();
        assert!(found.low <= -0.484_137 && found.high >= 4.484_137, "{found:?}");
        assert!(found.half_width() < 1.2 * 2.484_137, "{found:?}");
    }

    #[test]
    fn a_long_right_tail_stretches_the_right_arm() {
        let data = sample(&[1.0, 1.1, 1.2, 1.0, 1.1, 1.3, 1.1, 1.0, 1.2, 4.0]);
        let found = interval95(&data, 5).unwrap();
        let center = data.mean();
        assert!(found.high - center > 1.3 * (center - found.low), "{found:?}");
    }
}
