//! Robust outlier marks. Marks only: nothing in this crate ever drops a figure.

use serde::{Deserialize, Serialize};

use crate::Sample;

/// Beyond this modified z-score a figure is marked (Iglewicz & Hoaglin, for ten figures and more).
pub const THRESHOLD: f64 = 3.5;

/// The same for 5, 6, 7, 8 and 9 figures, whose MAD is often small by chance. Simulated (400,000
/// normal samples each) so that of clean figures no more are marked than 3.5 marks of ten, 1.6 %;
/// 3.5 itself would mark 5.4 % at n = 5, one clean sample in five.
const SMALL_SAMPLE_THRESHOLDS: [f64; 5] = [7.0, 4.6, 4.8, 3.9, 4.0];

/// Below this many figures nothing is marked: with three, two that happen to lie close together
/// would make an outlier of the third.
pub const MIN_FIGURES: usize = 5;

pub fn small_sample_threshold() -> f64 {
    SMALL_SAMPLE_THRESHOLDS.into_iter().fold(THRESHOLD, f64::max)
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Outlier {
    /// Its place in run order, from 0.
    pub index: usize,
    pub value: f64,
    /// Its modified z-score: how many (robust) standard deviations from the median, with sign.
    pub score: f64,
}

/// The figures whose modified z-score exceeds [`THRESHOLD`] (more below ten figures), in run order.
///
/// Iglewicz & Hoaglin, "How to Detect and Handle Outliers" (1993): 0.6745 (x − median) / MAD. When
/// more than half of the figures are equal the MAD is 0; then the mean absolute deviation from the
/// median takes its place, (x − median) / (1.2533 · mean deviation), as IBM SPSS does.
pub fn outliers(sample: &Sample) -> Vec<Outlier> {
    let n = sample.n();
    if n < MIN_FIGURES || sample.is_constant() {
        return Vec::new();
    }
    let center = sample.median();
    let mad = sample.mad();
    let (scale, threshold) = if mad > 0.0 {
        let small = SMALL_SAMPLE_THRESHOLDS.get(n - MIN_FIGURES);
        // 0.6745 is the upper quartile of the standard normal.
        (mad / 0.674_489_750_196_081_7, small.copied().unwrap_or(THRESHOLD))
    } else {
        let deviations: f64 = sample.values().iter().map(|v| (v - center).abs()).sum();
        // √(π/2) makes the mean absolute deviation of a normal sample its standard deviation.
        (std::f64::consts::FRAC_PI_2.sqrt() * deviations / n as f64, THRESHOLD)
    };
    let score = |value: f64| (value - center) / scale;
    let scored = sample.values().iter().enumerate();
    scored
        .map(|(index, &value)| Outlier { index, value, score: score(value) })
        .filter(|outlier| outlier.score.abs() > threshold)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(values: &[f64]) -> Vec<usize> {
        let found = outliers(&Sample::new(values.to_vec()).unwrap());
        found.into_iter().map(|outlier| outlier.index).collect()
    }

    #[test]
    fn one_wild_figure_is_marked_wherever_it_is() {
        assert_eq!(marked(&[10.0, 10.2, 50.0, 9.9, 10.1, 10.0]), [2]);
        assert_eq!(marked(&[-50.0, 10.2, 9.9, 10.1, 10.0, 10.3]), [0]);
    }

    #[test]
    fn two_wild_figures_do_not_hide_each_other() {
        assert_eq!(marked(&[10.0, 10.2, 50.0, 9.9, 10.1, 10.0, 51.0]), [2, 6]);
    }

    #[test]
    fn score_by_hand() {
        // Median 3, MAD 1: 0.6745 · (100 − 3) / 1.
        let found = outliers(&Sample::new(vec![1.0, 2.0, 3.0, 4.0, 100.0]).unwrap());
        assert_eq!(found.len(), 1);
        assert!((found[0].score - 65.425_505_769_019_93).abs() < 1e-9);
    }

    #[test]
    fn mostly_equal_figures_fall_back() {
        assert_eq!(marked(&[5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 6.0]), [8]);
        assert!(marked(&[5.0; 9]).is_empty());
    }

    #[test]
    fn ordinary_and_tiny_samples_have_none() {
        assert!(marked(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).is_empty());
        assert!(marked(&[1.0, 1.0, 100.0]).is_empty());
    }
}
