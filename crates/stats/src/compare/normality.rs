//! Whether residuals are so far from normal that ranks are the better judge.

use crate::distribution::normal_cdf;
use crate::sample::{mean, variance};

/// The modified Anderson–Darling statistic A²(1 + 0.75/n + 2.25/n²) of a sample whose mean and variance are estimated;
/// 0 where nothing varies.
///
/// Stephens in D'Agostino & Stephens, "Goodness-of-Fit Techniques" (1986), table 4.7.
fn anderson_darling(values: &[f64]) -> f64 {
    let n = values.len();
    let (center, deviation) = (mean(values), variance(values).sqrt());
    if n < 2 || deviation == 0.0 {
        return 0.0;
    }
    let mut scores: Vec<f64> = values.iter().map(|v| (v - center) / deviation).collect();
    scores.sort_unstable_by(f64::total_cmp);
    let terms = (0..n).map(|i| {
        let (below, above) = (normal_cdf(scores[i]), normal_cdf(-scores[n - 1 - i]));
        (2 * i + 1) as f64 * (below.max(1e-300).ln() + above.max(1e-300).ln())
    });
    let size = n as f64;
    let statistic = -size - terms.sum::<f64>() / size;
    statistic * (1.0 + 0.75 / size + 2.25 / (size * size))
}

/// Where the p-value is 0.001 by Stephens' approximation, exp(1.2937 − 5.709 A² + 0.0186 A⁴).
/// Mild departures do not harm comparisons of means (Scheffé, "The Analysis of Variance", 1959, §10), and a test that is ready
/// to see them would replace a better method by a worse one.
const GROSS: f64 = 1.443;

pub(super) fn grossly_non_normal(residuals: &[f64]) -> bool {
    anderson_darling(residuals) > GROSS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// statsmodels 0.15.0: normal_ad(x) = (A², p); the modified statistic is what its p comes from.
    #[test]
    fn agrees_with_statsmodels() {
        let values = [96.0, 93.4, 98.8, 102.1, 105.7, 100.5, 97.2, 96.1, 103.7, 108.2, 101.4, 193.8];
        let statistic = |values: &[f64]| {
            let n = values.len() as f64;
            anderson_darling(values) / (1.0 + 0.75 / n + 2.25 / (n * n))
        };
        assert!((statistic(&values) - 2.701_901_259_871_965).abs() < 1e-9);
        assert!(grossly_non_normal(&values));
        assert!((statistic(&values[..11]) - 0.144_069_747_303_676_72).abs() < 1e-9);
        assert!(!grossly_non_normal(&values[..11]));
        assert!(!grossly_non_normal(&[3.0; 9]));
    }
}
