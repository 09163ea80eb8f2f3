//! Drift: does the figure depend on when it was measured?
//!
//! The Mann–Kendall test (Mann 1945; Kendall 1975) of figure against run order, with the Theil–Sen
//! slope (Theil 1950; Sen 1968). Over many cells their seasonal forms with the cell as the season:
//! only figures of one cell are compared, so that cells of any magnitude add up (Hirsch, Slack &
//! Smith, "Techniques of trend analysis for monthly water quality data", Water Resources Research
//! 18, 1982). Subtracting each cell's median and testing all figures as one sequence would be
//! simpler, but with three repeats it called 10 % of steady runs drifting at the 5 % level: the
//! residuals of one cell are not independent.
//!
//! A jump between blocks that all cells share counts as drift too; it does depend on when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Sample;
use crate::distribution::normal_two_sided;
use crate::rank::Midranks;
use crate::sample::median_in_place;

/// Up to this many pairs, without ties, the test is exact; beyond, the normal approximation is
/// excellent.
const EXACT_PAIRS: usize = 2000;

/// A longer cell is thinned evenly to this many for the slope, whose pairs grow with the square.
const MAX_SLOPE_FIGURES: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunPoint {
    /// When: the trial's number in run order, or seconds since the start. Finite.
    pub position: f64,
    /// Whose: any number that is the same for all trials of a cell.
    pub cell: usize,
    /// The figure, in the metric's unit. Finite.
    pub value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    pub n: usize,
    /// Kendall's τ-b between figure and order, over the pairs of one cell: −1 always falling, 1
    /// always rising.
    pub tau: f64,
    /// The two-sided p-value of the Mann–Kendall test.
    pub p: f64,
    /// Whether `p` was counted rather than approximated.
    pub exact: bool,
    /// The Theil–Sen slope times the length of the run, as a share (0.05: figures rose by 5 % from the first trial to the last), by
    /// logarithms where all figures are positive. Never below −1 unless figures are negative; `None` when no cell's median
    /// differs from 0.
    pub relative_change: Option<f64>,
}

/// Drift over the trials of one cell; `None` for a single figure.
pub fn drift_of_sample(sample: &Sample) -> Option<Drift> {
    let place = |(position, &value): (usize, &f64)| (position as f64, value);
    drift(&[sample.values().iter().enumerate().map(place).collect()])
}

/// Drift over a whole run; `None` when no cell has two trials. The order of `points` does not
/// matter.
pub fn drift_of_run(points: &[RunPoint]) -> Option<Drift> {
    let mut cells: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    for point in points {
        cells.entry(point.cell).or_default().push((point.position, point.value));
    }
    let mut cells: Vec<Vec<(f64, f64)>> = cells.into_values().collect();
    for cell in &mut cells {
        cell.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    drift(&cells)
}

/// Kendall's S of one cell, and what its null distribution depends on.
struct Kendall {
    n: usize,
    /// Rising pairs less falling ones.
    s: i64,
    ranks: Midranks,
}

impl Kendall {
    fn of(cell: &[(f64, f64)]) -> Self {
        let values: Vec<f64> = cell.iter().map(|(_, value)| *value).collect();
        let ranks = Midranks::of(&values);
        let mut s = 0;
        for (i, earlier) in ranks.doubled.iter().enumerate() {
            for later in &ranks.doubled[i + 1..] {
                s += i64::from(later > earlier) - i64::from(later < earlier);
            }
        }
        Self { n: values.len(), s, ranks }
    }

    fn pairs(&self) -> usize {
        self.n * (self.n - 1) / 2
    }

    fn untied_pairs(&self) -> f64 {
        self.pairs() as f64 - self.ranks.sum_over_groups(|t| t * (t - 1.0) / 2.0)
    }

    /// Of S over all orders, corrected for ties (Kendall; Gilbert 1987, §16.4).
    fn variance(&self) -> f64 {
        let term = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
        (term(self.n as f64) - self.ranks.sum_over_groups(term)) / 18.0
    }
}

/// Each cell's (position, value), by ascending position.
fn drift(cells: &[Vec<(f64, f64)>]) -> Option<Drift> {
    let cells: Vec<&[(f64, f64)]> = cells.iter().map(Vec::as_slice).filter(|cell| cell.len() > 1).collect();
    if cells.is_empty() {
        return None;
    }
    let kendalls: Vec<Kendall> = cells.iter().map(|cell| Kendall::of(cell)).collect();
    let s: i64 = kendalls.iter().map(|k| k.s).sum();
    let pairs: usize = kendalls.iter().map(Kendall::pairs).sum();
    let exact = pairs <= EXACT_PAIRS && !kendalls.iter().any(|k| k.ranks.has_ties());
    let p = if exact {
        let sizes: Vec<usize> = kendalls.iter().map(|k| k.n).collect();
        exact_p(&sizes, pairs, s)
    } else {
        let variance: f64 = kendalls.iter().map(Kendall::variance).sum();
        // S moves in steps of two between neighbouring orders: a correction of one.
        let distance = (s.abs() as f64 - 1.0).max(0.0);
        if variance > 0.0 { normal_two_sided(distance / variance.sqrt()) } else { 1.0 }
    };
    let untied: f64 = kendalls.iter().map(Kendall::untied_pairs).sum();
    Some(Drift {
        n: kendalls.iter().map(|k| k.n).sum(),
        tau: if untied > 0.0 { s as f64 / (pairs as f64 * untied).sqrt() } else { 0.0 },
        p,
        exact,
        relative_change: relative_change(&cells),
    })
}

/// P(|S| ≥ |s|) over all orders within each cell, by counting inversions (Kendall, "Rank
/// Correlation Methods").
fn exact_p(sizes: &[usize], pairs: usize, s: i64) -> f64 {
    // Inserting a cell's k-th figure makes 0 … k − 1 inversions, each as likely.
    let mut inversions = vec![1.0_f64];
    for k in sizes.iter().flat_map(|&n| 2..=n) {
        let mut next = vec![0.0; inversions.len() + k - 1];
        for (count, probability) in inversions.iter().enumerate() {
            for slot in &mut next[count..count + k] {
                *slot += probability / k as f64;
            }
        }
        inversions = next;
    }
    let s_of = |count: usize| pairs as i64 - 2 * count as i64;
    let extreme = inversions.iter().enumerate().filter(|(count, _)| s_of(*count).abs() >= s.abs());
    extreme.map(|(_, probability)| probability).sum::<f64>().min(1.0)
}

/// The median slope over all pairs of one cell times the length of the run, as a share: of the logarithms where all figures are positive,
/// so that nothing falls by more than all there is, else relative to the cell's median.
fn relative_change(cells: &[&[(f64, f64)]]) -> Option<f64> {
    let values = || cells.iter().flat_map(|cell| cell.iter().map(|(_, value)| *value));
    let positive = values().all(|value| value > 0.0);
    let mut slopes = Vec::new();
    for cell in cells {
        let median = median_in_place(&mut cell.iter().map(|(_, value)| *value).collect::<Vec<_>>());
        if median == 0.0 {
            continue;
        }
        let step = cell.len().div_ceil(MAX_SLOPE_FIGURES);
        let thinned: Vec<&(f64, f64)> = cell.iter().step_by(step).collect();
        for (i, earlier) in thinned.iter().enumerate() {
            for later in &thinned[i + 1..] {
                let run = later.0 - earlier.0;
                if run > 0.0 {
                    let rise = if positive { (later.1 / earlier.1).ln() } else { (later.1 - earlier.1) / median.abs() };
                    slopes.push(rise / run);
                }
            }
        }
    }
    let positions = || cells.iter().flat_map(|cell| cell.iter().map(|(position, _)| *position));
    let first = positions().fold(f64::INFINITY, f64::min);
    let last = positions().fold(f64::NEG_INFINITY, f64::max);
    let change = (!slopes.is_empty()).then(|| median_in_place(&mut slopes) * (last - first))?;
    Some(match positive {
        true => change.exp_m1(),
        false if values().all(|value| value >= 0.0) => change.max(-1.0),
        false => change,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Drift {
        drift_of_sample(&Sample::new(values.to_vec()).unwrap()).unwrap()
    }

    /// scipy 1.17.1: kendalltau(range(8), y, method="exact"); expm1(7 * theilslopes(log(y), range(8)).slope).
    #[test]
    fn agrees_with_scipy() {
        let found = of(&[3.1, 2.9, 3.4, 3.6, 3.3, 3.9, 4.1, 3.8]);
        assert!(found.exact);
        assert!((found.tau - 0.642_857_142_857_142_8).abs() < 1e-12, "{found:?}");
        assert!((found.p - 0.031_150_793_650_793_65).abs() < 1e-12, "{found:?}");
        let change = found.relative_change.unwrap();
        assert!((change - 0.3781886771815143).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn three_figures_in_order_prove_nothing() {
        let found = of(&[1.0, 2.0, 3.0]);
        assert!((found.p - 1.0 / 3.0).abs() < 1e-12 && found.tau == 1.0);
        assert!((found.relative_change.unwrap() - 2.0).abs() < 1e-12, "from 1 to 3");
        assert!((of(&[3.0, 2.0, 1.0]).relative_change.unwrap() + 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(of(&[9.0, 4.0, 1.0, 0.0, 0.0]).relative_change, Some(-1.0), "there is no less than nothing");
    }

    #[test]
    fn constant_figures_do_not_drift() {
        let found = of(&[2.0; 20]);
        assert_eq!((found.p, found.tau, found.relative_change), (1.0, 0.0, Some(0.0)));
        assert_eq!(drift_of_sample(&Sample::new(vec![1.0]).unwrap()), None);
        assert_eq!(of(&[-1.0, 0.0, 1.0]).relative_change, None);
    }

    /// All 6 · 24 orders of a cell of three and one of four.
    #[test]
    fn exact_over_cells_matches_enumeration() {
        fn orders(n: usize) -> Vec<Vec<usize>> {
            if n == 0 {
                return vec![vec![]];
            }
            let shorter = orders(n - 1);
            let insert = |order: &Vec<usize>, at: usize| {
                let mut longer = order.clone();
                longer.insert(at, n);
                longer
            };
            shorter.iter().flat_map(|o| (0..n).map(move |at| insert(o, at))).collect()
        }
        let s_of = |order: &[usize]| {
            Kendall::of(&order.iter().enumerate().map(|(i, v)| (i as f64, *v as f64)).collect::<Vec<_>>()).s
        };
        let all: Vec<i64> =
            orders(3).iter().flat_map(|a| orders(4).into_iter().map(move |b| s_of(a) + s_of(&b))).collect();
        for s in -9..=9 {
            let extreme = all.iter().filter(|other| other.abs() >= i64::abs(s)).count();
            let expected = extreme as f64 / all.len() as f64;
            assert!((exact_p(&[3, 4], 9, s) - expected).abs() < 1e-12, "{s}");
        }
    }

    #[test]
    fn drift_shared_by_cells_of_different_magnitude_is_found() {
        // 17 cells, three blocks, 3 % up over the run.
        let points: Vec<RunPoint> = (0..51_u32)
            .map(|i| {
                let cell = (i * 5) % 17;
                let noise = f64::from((i * 37) % 11) / 11.0 - 0.5;
                let relative = 1.0 + 0.03 * f64::from(i) / 50.0 + 0.004 * noise;
                let value = 10_f64.powi((cell % 5) as i32) * relative;
                RunPoint { position: f64::from(i), cell: cell as usize, value }
            })
            .collect();
        let found = drift_of_run(&points).unwrap();
        assert!(found.p < 1e-6 && found.n == 51, "{found:?}");
        assert!((found.relative_change.unwrap() - 0.03).abs() < 0.01, "{found:?}");
        let mut reversed = points.clone();
        reversed.reverse();
        assert_eq!(drift_of_run(&reversed), Some(found));
    }

    #[test]
    fn cells_that_tell_nothing_are_left_out() {
        let point = |position, cell, value| RunPoint { position, cell, value };
        assert_eq!(drift_of_run(&[point(0.0, 0, 1.0), point(1.0, 1, 5.0)]), None);
        assert_eq!(drift_of_run(&[]), None);
        let zero = drift_of_run(&[point(0.0, 0, 0.0), point(1.0, 0, 0.0)]).unwrap();
        assert_eq!((zero.p, zero.relative_change), (1.0, None));
    }

    #[test]
    fn a_long_run_is_thinned_and_not_refused() {
        let values: Vec<f64> = (0..4000).map(|i| 100.0 + f64::from(i) * 0.01).collect();
        let found = of(&values);
        assert!(found.p < 1e-9 && (found.relative_change.unwrap() - 0.4).abs() < 0.01);
    }
}
