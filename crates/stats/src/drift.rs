//! Drift: does the figure depend on when it was measured?
//!
//! The Mann–Kendall test (Mann 1945; Kendall 1975) of figure against run order and the Theil–Sen slope (Theil
//! 1950; Sen 1968). A run with many cells is tested as one sequence after each figure is divided by its cell's
//! median: randomised blocks spread every cell over the run, so what is left follows the clock alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Sample;
use crate::distribution::normal_two_sided;
use crate::rank::Midranks;
use crate::sample::median_in_place;

/// Up to this many figures without ties the test is exact.
const EXACT_FIGURES: usize = 50;

/// Longer sequences are thinned evenly to this many for the slope, whose pairs grow with the square.
const MAX_SLOPE_FIGURES: usize = 1500;

/// One trial's figure at its place in the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunPoint {
    /// When: the trial's number in run order, or seconds since the start.
    pub position: f64,
    /// Whose: any number that is the same for all trials of a cell.
    pub cell: usize,
    /// The figure, in the metric's unit.
    pub value: f64,
}

/// Whether and how far figures drifted over a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// How many figures were used.
    pub n: usize,
    /// Kendall's τ between figure and order (τ-b with ties): −1 always falling, 1 always rising.
    pub tau: f64,
    /// The two-sided p-value of the Mann–Kendall test.
    pub p: f64,
    /// Whether `p` was counted rather than approximated.
    pub exact: bool,
    /// The Theil–Sen slope times the length of the run, as a share of the median (0.05: it rose by 5 % from the
    /// first trial to the last); `None` when the median is 0.
    pub relative_change: Option<f64>,
}

impl Drift {
    /// Whether the order shows, at the 5 % level.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.p <= 0.05
    }
}

/// Drift over the trials of one cell; `None` for a single figure.
#[must_use]
pub fn drift_of_sample(sample: &Sample) -> Option<Drift> {
    let positions: Vec<f64> = (0..sample.n()).map(|i| i as f64).collect();
    let median = sample.median();
    let scale = (median != 0.0).then_some(median.abs());
    drift(&positions, sample.values(), scale)
}

/// Drift over a whole run; `None` when fewer than two figures tell anything.
///
/// Left out, because they tell nothing: cells with a single trial, and cells whose median is 0. Positions must
/// be finite; their order is the run's and that of `points` does not matter.
#[must_use]
pub fn drift_of_run(points: &[RunPoint]) -> Option<Drift> {
    let mut cells: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for point in points {
        cells.entry(point.cell).or_default().push(point.value);
    }
    let medians: BTreeMap<usize, f64> = cells
        .into_iter()
        .filter(|(_, values)| values.len() > 1)
        .map(|(cell, mut values)| (cell, median_in_place(&mut values)))
        .filter(|(_, median)| *median != 0.0)
        .collect();
    let mut residuals: Vec<(f64, f64)> = points
        .iter()
        .filter_map(|point| {
            let median = medians.get(&point.cell)?;
            Some((point.position, (point.value - median) / median.abs()))
        })
        .collect();
    residuals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (positions, values): (Vec<f64>, Vec<f64>) = residuals.into_iter().unzip();
    drift(&positions, &values, Some(1.0))
}

/// `positions` ascending; `scale` is what a change is a share of.
fn drift(positions: &[f64], values: &[f64], scale: Option<f64>) -> Option<Drift> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let ranks = Midranks::of(values);
    let rising: i64 = (0..n)
        .flat_map(|i| ranks.doubled[i + 1..].iter().map(move |later| (i, *later)))
        .map(|(i, later)| (later > ranks.doubled[i]) as i64 - (later < ranks.doubled[i]) as i64)
        .sum();
    let exact = n <= EXACT_FIGURES && !ranks.has_ties();
    let p = if exact { exact_p(n, rising) } else { approximate_p(n, rising, &ranks) };
    let pairs = (n * (n - 1)) as f64 / 2.0;
    let untied = pairs - ranks.sum_over_groups(|t| t * (t - 1.0) / 2.0);
    let tau = if untied > 0.0 { rising as f64 / (pairs * untied).sqrt() } else { 0.0 };
    let change = theil_sen(positions, values) * (positions[n - 1] - positions[0]);
    Some(Drift { n, tau, p, exact, relative_change: scale.map(|scale| change / scale) })
}

/// P(|S| ≥ |s|) over all orders, by counting inversions (Kendall, "Rank Correlation Methods").
fn exact_p(n: usize, rising: i64) -> f64 {
    // Inserting the k-th item makes 0 … k − 1 inversions, each as likely.
    let mut inversions = vec![1.0_f64];
    for k in 2..=n {
        let mut next = vec![0.0; inversions.len() + k - 1];
        for (count, probability) in inversions.iter().enumerate() {
            for slot in &mut next[count..count + k] {
                *slot += probability / k as f64;
            }
        }
        inversions = next;
    }
    let pairs = (n * (n - 1) / 2) as i64;
    let extreme = inversions.iter().enumerate().filter(|(count, _)| (pairs - 2 * *count as i64).abs() >= rising.abs());
    extreme.map(|(_, probability)| probability).sum::<f64>().min(1.0)
}

/// Tie-corrected normal approximation with continuity correction (Kendall; Gilbert 1987, §16.4).
fn approximate_p(n: usize, rising: i64, ranks: &Midranks) -> f64 {
    let term = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let variance = (term(n as f64) - ranks.sum_over_groups(term)) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    normal_two_sided((rising.abs() as f64 - 1.0).max(0.0) / variance.sqrt())
}

/// The median slope over all pairs at different positions; 0 without one.
fn theil_sen(positions: &[f64], values: &[f64]) -> f64 {
    let step = values.len().div_ceil(MAX_SLOPE_FIGURES);
    let points: Vec<(f64, f64)> = positions.iter().copied().zip(values.iter().copied()).step_by(step).collect();
    let mut slopes: Vec<f64> = points
        .iter()
        .enumerate()
        .flat_map(|(i, a)| points[i + 1..].iter().map(move |b| (b.0 - a.0, b.1 - a.1)))
        .filter(|(run, _)| *run > 0.0)
        .map(|(run, rise)| rise / run)
        .collect();
    if slopes.is_empty() { 0.0 } else { median_in_place(&mut slopes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Drift {
        drift_of_sample(&Sample::new(values.to_vec()).unwrap()).unwrap()
    }

    /// scipy 1.17.1: kendalltau(range(n), y, method="exact"), theilslopes(y, range(n)).
    #[test]
    fn agrees_with_scipy() {
        let found = of(&[3.1, 2.9, 3.4, 3.6, 3.3, 3.9, 4.1, 3.8]);
        assert!(found.exact);
        assert!((found.tau - 0.642_857_142_857_142_8).abs() < 1e-12, "{found:?}");
        assert!((found.p - 0.031_150_793_650_793_65).abs() < 1e-12, "{found:?}");
        assert!((found.relative_change.unwrap() - 0.326_666_666_666_666_5).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn three_figures_in_order_prove_nothing() {
        let found = of(&[1.0, 2.0, 3.0]);
        assert!((found.p - 1.0 / 3.0).abs() < 1e-12 && found.tau == 1.0);
        assert!((found.relative_change.unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn constant_figures_do_not_drift() {
        let found = of(&[2.0; 20]);
        assert_eq!((found.p, found.tau, found.relative_change), (1.0, 0.0, Some(0.0)));
        assert_eq!(drift_of_sample(&Sample::new(vec![1.0]).unwrap()), None);
        assert_eq!(of(&[-1.0, 0.0, 1.0]).relative_change, None);
    }

    #[test]
    fn drift_shared_by_cells_of_different_size_is_found() {
        // 17 cells, three blocks, each cell of its own magnitude, 3 % up over the run.
        let points: Vec<RunPoint> = (0..51)
            .map(|i| {
                let cell = (i * 5) % 17;
                let noise = ((i * 37) % 11) as f64 / 11.0 - 0.5;
                let relative = 1.0 + 0.03 * i as f64 / 50.0 + 0.004 * noise;
                RunPoint { position: i as f64, cell, value: 10_f64.powi(cell as i32 % 5) * relative }
            })
            .collect();
        let found = drift_of_run(&points).unwrap();
        assert!(found.p < 1e-6 && found.n == 51, "{found:?}");
        assert!((found.relative_change.unwrap() - 0.03).abs() < 0.01, "{found:?}");
        let mut shuffled = points.clone();
        shuffled.reverse();
        assert_eq!(drift_of_run(&shuffled), Some(found));
    }

    #[test]
    fn cells_that_tell_nothing_are_left_out() {
        let point = |position, cell, value| RunPoint { position, cell, value };
        assert_eq!(drift_of_run(&[point(0.0, 0, 1.0), point(1.0, 1, 5.0)]), None);
        assert_eq!(drift_of_run(&[point(0.0, 0, 0.0), point(1.0, 0, 0.0)]), None);
        assert_eq!(drift_of_run(&[]), None);
    }

    #[test]
    fn a_long_run_is_thinned_and_not_refused() {
        let values: Vec<f64> = (0..4000).map(|i| 100.0 + f64::from(i) * 0.01).collect();
        let found = of(&values);
        assert!(found.p < 1e-9 && (found.relative_change.unwrap() - 40.0 / 120.0).abs() < 1e-3);
    }
}
