//! A sample: what one metric of one cell showed over its trials.

use serde::{Deserialize, Serialize};

/// Why a list of figures is not a sample; completes "failed to make a sample: …".
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SampleError {
    #[error("there is no figure in it; a cell without a completed trial has an outcome, not a sample")]
    Empty,
    #[error("figure number {index} is {value}, which is not a finite number")]
    NotFinite {
        /// Position in run order, from 0.
        index: usize,
        value: f64,
    },
}

/// Figures of one metric in the order in which they were measured.
///
/// Invariants, enforced at construction: at least one figure; every figure finite. The run order
/// is kept (drift can only be seen in it) beside a sorted copy (everything else wants that).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Sample {
    values: Vec<f64>,
    sorted: Vec<f64>,
}

impl Sample {
    /// Takes figures in run order.
    ///
    /// # Errors
    /// When there is no figure, or one that is not finite.
    pub fn new(values: Vec<f64>) -> Result<Self, SampleError> {
        if values.is_empty() {
            return Err(SampleError::Empty);
        }
        if let Some((index, &value)) = values.iter().enumerate().find(|(_, v)| !v.is_finite()) {
            return Err(SampleError::NotFinite { index, value });
        }
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        Ok(Self { values, sorted })
    }

    /// The figures in run order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// How many figures there are; at least 1.
    pub fn n(&self) -> usize {
        self.values.len()
    }

    pub fn mean(&self) -> f64 {
        mean(&self.values)
    }

    pub fn median(&self) -> f64 {
        median_of_sorted(&self.sorted)
    }

    pub fn min(&self) -> f64 {
        self.sorted[0]
    }

    pub fn max(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }

    /// The standard deviation with divisor n − 1; 0 for a single figure.
    pub fn stddev(&self) -> f64 {
        variance(&self.values).sqrt()
    }

    /// The median absolute deviation from the median, unscaled
    /// (multiply by 1.4826 to compare it with a standard deviation).
    pub fn mad(&self) -> f64 {
        let center = self.median();
        let mut deviations: Vec<f64> = self.values.iter().map(|v| (v - center).abs()).collect();
        median_in_place(&mut deviations)
    }

    pub fn is_constant(&self) -> bool {
        self.min() == self.max()
    }

    pub fn summary(&self) -> Summary {
        Summary {
            n: self.n(),
            mean: self.mean(),
            median: self.median(),
            min: self.min(),
            max: self.max(),
            stddev: self.stddev(),
            mad: self.mad(),
        }
    }
}

impl TryFrom<Vec<f64>> for Sample {
    type Error = SampleError;

    fn try_from(values: Vec<f64>) -> Result<Self, SampleError> {
        Self::new(values)
    }
}

impl From<Sample> for Vec<f64> {
    fn from(sample: Sample) -> Self {
        sample.values
    }
}

/// What a table prints about a sample. All but `n` are in the metric's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub n: usize,
    pub mean: f64,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// The standard deviation with divisor n − 1; 0 when n = 1.
    pub stddev: f64,
    /// The unscaled median absolute deviation from the median.
    pub mad: f64,
}

/// The mean of a non-empty slice, computed about its first value so that figures with a large
/// common offset (nanosecond time stamps, bytes) lose nothing, and a constant slice gives itself.
pub(crate) fn mean(values: &[f64]) -> f64 {
    let origin = values[0];
    origin + values.iter().map(|v| v - origin).sum::<f64>() / values.len() as f64
}

/// The variance with divisor n − 1, two-pass; 0 for fewer than two values.
pub(crate) fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let center = mean(values);
    let squares: f64 = values.iter().map(|v| (v - center).powi(2)).sum();
    squares / (values.len() - 1) as f64
}

pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    let upper = sorted[n / 2];
    if n % 2 == 1 { upper } else { f64::midpoint(sorted[n / 2 - 1], upper) }
}

/// The median of a non-empty slice; reorders it. O(n): Theil–Sen asks for a million slopes.
pub(crate) fn median_in_place(values: &mut [f64]) -> f64 {
    let n = values.len();
    let (below, &mut upper, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    if n % 2 == 1 {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    f64::midpoint(lower, upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_no_sample() {
        assert_eq!(Sample::new(vec![]), Err(SampleError::Empty));
        let error = Sample::new(vec![1.0, f64::INFINITY]).unwrap_err();
        assert_eq!(error, SampleError::NotFinite { index: 1, value: f64::INFINITY });
        assert!(matches!(Sample::new(vec![f64::NAN]), Err(SampleError::NotFinite { index: 0, .. })));
    }

    #[test]
    fn summary_of_a_known_sample() {
        // numpy 2.4.6: mean 5, std(ddof=1) 2.13808993529939…, median 4.5; MAD by hand 0.5.
        let sample = Sample::new(vec![9.0, 2.0, 4.0, 4.0, 5.0, 4.0, 7.0, 5.0]).unwrap();
        let summary = sample.summary();
        assert_eq!((summary.n, summary.mean, summary.median), (8, 5.0, 4.5));
        assert_eq!((summary.min, summary.max, summary.mad), (2.0, 9.0, 0.5));
        assert!((summary.stddev - 2.138_089_935_299_395).abs() < 1e-15);
        assert_eq!(sample.values()[0], 9.0, "run order is kept");
    }

    #[test]
    fn a_single_figure_has_no_spread() {
        let summary = Sample::new(vec![3.5]).unwrap().summary();
        assert_eq!((summary.stddev, summary.mad, summary.median), (0.0, 0.0, 3.5));
    }

    #[test]
    fn a_constant_sample_has_exactly_no_spread() {
        let sample = Sample::new(vec![0.1; 30]).unwrap();
        assert_eq!((sample.mean(), sample.stddev()), (0.1, 0.0));
    }

    #[test]
    fn a_large_offset_costs_no_precision() {
        let sample = Sample::new(vec![1e15 + 1.0, 1e15 + 2.0, 1e15 + 3.0]).unwrap();
        assert_eq!(sample.stddev(), 1.0);
    }

    #[test]
    fn both_medians_agree() {
        for n in 1..20 {
            let mut values: Vec<f64> = (0..n).map(|i| f64::from((i * 7919) % 31)).collect();
            let sample = Sample::new(values.clone()).unwrap();
            assert_eq!(median_in_place(&mut values), sample.median());
        }
    }
}
