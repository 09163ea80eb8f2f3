//! Change points by energy statistics.

use serde::{Deserialize, Serialize};

use crate::distribution::student_two_sided;
use crate::random::{Random, derive_seed};
use crate::sample::{mean, median_in_place};
use crate::{ROUNDING, Sample};

/// Longer series are averaged in batches down to at most this many points: a scan costs the square.
pub(super) const MAX_POINTS: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePointOptions {
    /// The fewest points between two changes; at least 2.
    pub min_segment: usize,
    /// The p-value up to which a change is one.
    pub significance: f64,
    /// How many permutations the p-value rests on; p moves in steps of 1 / (permutations + 1).
    pub permutations: usize,
    /// How many neighbouring points are moved together when permuting: 1 for independent points
    /// (runs on different days), more when neighbours are alike (seconds of one trial).
    pub block: usize,
}

impl Default for ChangePointOptions {
    /// For independent points, such as one cell's figure over many runs.
    fn default() -> Self {
        Self { min_segment: 3, significance: 0.01, permutations: 499, block: 1 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// The first point after the change.
    pub index: usize,
    /// The permutation p-value of the split, within the stretch in which it was found.
    pub p: f64,
    /// The median from the change before (or the start) to this one.
    pub before: f64,
    /// The median from this change to the next (or the end).
    pub after: f64,
}

/// Change points of a series, in order.
///
/// E-divisive: Matteson & James, "A Nonparametric Approach for Multiple Change Point Analysis of
/// Multivariate Data", JASA 109 (2014): binary segmentation at the largest energy distance (α = 1),
/// each split tested by permuting its stretch. As is usual in performance work the right-hand side
/// always reaches to the stretch's end (Daly et al., "The Use of Change Point Detection to Identify
/// Software Performance Regressions in a Continuous Integration System", ICPE 2020). Neighbours
/// move in blocks when the points are dependent (Kirch, "Block permutation principles for the
/// change analysis of dependent data", JSPI 137, 2007).
///
/// About ten points are the fewest among which a change can be significant at 1 %.
///
/// # Panics
/// When `min_segment` is below 2 or `block` is 0.
pub fn change_points(series: &Sample, options: &ChangePointOptions, seed: u64) -> Vec<ChangePoint> {
    assert!(options.min_segment >= 2, "a segment of one point has no distribution");
    assert!(options.block >= 1, "a block of no points cannot be moved");
    let batch = batch_size(series.n());
    let points = batched(series.values(), batch);
    let mut found = Vec::new();
    split(&points, 0, options, seed, &mut found);
    found.sort_unstable_by_key(|(index, _)| *index);
    let values = series.values();
    let edges: Vec<usize> =
        std::iter::once(0).chain(found.iter().map(|(index, _)| index * batch)).chain([values.len()]).collect();
    let level = |from: usize, to: usize| median_in_place(&mut values[from..to].to_vec());
    let sides = edges.windows(3).map(|e| (e[1], level(e[0], e[1]), level(e[1], e[2])));
    sides.zip(found).map(|((index, before, after), (_, p))| ChangePoint { index, p, before, after }).collect()
}

/// Fewer points than this before them do not show how far points scatter.
const FEWEST_BEFORE: usize = 3;

/// As many as it takes where none of them differs from another: fewer agree by chance, as counts of two values do.
pub const FEWEST_STILL: usize = 7;

/// After so few points more, too few of all orders are more extreme for a change point to be significant.
const NEWEST: usize = 5;

/// Whether the newest points lie apart from all before them, from which on, and the p-value: Student's t of their mean against those
/// before, with the scatter of these, corrected for the numbers of points that are tried. Points that never varied differ by anything.
pub fn newest_apart(values: &[f64], options: &ChangePointOptions) -> Option<(usize, f64)> {
    let of = |count: usize| {
        let first = values.len().checked_sub(count).filter(|first| *first >= FEWEST_BEFORE)?;
        let (before, after) = values.split_at(first);
        let (before, after) = (Sample::new(before.to_vec()).ok()?, Sample::new(after.to_vec()).ok()?);
        let apart = (after.mean() - before.mean()).abs();
        let is_one_side = after.min() > before.max() || after.max() < before.min();
        let scatter = before.stddev();
        if scatter <= ROUNDING * before.mean().abs() && before.n() < FEWEST_STILL {
            return None;
        }
        let error = scatter * (1.0 / before.n() as f64 + 1.0 / count as f64).sqrt();
        let p = if apart == 0.0 { 1.0 } else { student_two_sided(apart / error, before.n() as f64 - 1.0) };
        let p = p * NEWEST as f64;
        // How much of the squares about the mean of all points this split explains.
        let explained = apart.powi(2) * (before.n() * count) as f64 / values.len() as f64;
        (is_one_side && p <= options.significance).then_some((first, p, explained))
    };
    let best = (1..=NEWEST).filter_map(of).max_by(|a, b| a.2.total_cmp(&b.2));
    best.map(|(first, p, _)| (first, p))
}

/// How many points agree before the newest ones, which differ from them, if they are too few for [`newest_apart`] to say that this is more than
/// chance.
pub fn newest_unproven(values: &[f64]) -> Option<usize> {
    let first = *values.first()?;
    let agrees = |value: &&f64| (*value - first).abs() <= ROUNDING * first.abs();
    let before = values.iter().take_while(agrees).count();
    let after = &values[before..];
    let is_one_side = after.iter().all(|value| *value > first) || after.iter().all(|value| *value < first);
    let is_some = !after.is_empty() && after.len() <= NEWEST && !after.iter().any(|value| agrees(&value));
    ((2..FEWEST_STILL).contains(&before) && is_some && is_one_side).then_some(before)
}

pub(super) fn batch_size(points: usize) -> usize {
    points.div_ceil(MAX_POINTS)
}

/// Means of `batch` neighbours; a last incomplete batch is left out, because its mean scatters
/// more.
pub(super) fn batched(values: &[f64], batch: usize) -> Vec<f64> {
    values.chunks_exact(batch).map(mean).collect()
}

/// Finds changes in `points`, which begin at `offset`, and adds (index, p) of each.
fn split(points: &[f64], offset: usize, options: &ChangePointOptions, seed: u64, found: &mut Vec<(usize, f64)>) {
    let Some((index, energy)) = best_split(points, options.min_segment) else { return };
    // A stream of its own for every stretch, so that a change found does not alter the next test.
    let own_seed = derive_seed(derive_seed(seed, offset as u64), points.len() as u64);
    let Some(p) = split_p(points, energy, options, own_seed) else { return };
    found.push((offset + index, p));
    split(&points[..index], offset, options, seed, found);
    split(&points[index..], offset + index, options, seed, found);
}

/// The split with the largest scaled energy distance Q̂ (Matteson & James eq. 7), if a split is
/// possible.
fn best_split(points: &[f64], min_segment: usize) -> Option<(usize, f64)> {
    let n = points.len();
    let distance_to = |value: f64, others: &[f64]| others.iter().map(|o| (value - o).abs()).sum::<f64>();
    let (mut left, mut right, mut cross) = (0.0, 0.0, 0.0);
    for i in 0..n {
        right += distance_to(points[i], &points[i + 1..]);
    }
    let mut best = None;
    for (moved, &value) in points.iter().enumerate() {
        // `value` leaves the right side and joins the left.
        let to_left = distance_to(value, &points[..moved]);
        let to_right = distance_to(value, &points[moved + 1..]);
        left += to_left;
        right -= to_right;
        cross += to_right - to_left;
        let (a, b) = (moved + 1, n - moved - 1);
        if a < min_segment || b < min_segment {
            continue;
        }
        let (a, b) = (a as f64, b as f64);
        let energy = 2.0 * cross / (a * b) - 2.0 * left / (a * (a - 1.0)) - 2.0 * right / (b * (b - 1.0));
        let scaled = a * b / (a + b) * energy;
        if best.is_none_or(|(_, largest)| scaled > largest) {
            best = Some((moved + 1, scaled));
        }
    }
    best
}

/// The p-value of a split, `None` as soon as it cannot be significant any more.
fn split_p(points: &[f64], energy: f64, options: &ChangePointOptions, seed: u64) -> Option<f64> {
    let mut random = Random::new(seed);
    let mut blocks: Vec<&[f64]> = points.chunks(options.block).collect();
    let total = (options.permutations + 1) as f64;
    let mut as_large = 1_usize;
    for _ in 0..options.permutations {
        random.shuffle(&mut blocks);
        let permuted = blocks.concat();
        let (_, largest) = best_split(&permuted, options.min_segment)?;
        as_large += usize::from(largest >= energy * (1.0 - 1e-9));
        if as_large as f64 / total > options.significance {
            return None;
        }
    }
    let p = as_large as f64 / total;
    (p <= options.significance).then_some(p)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repeatable wobble without trend, within ± 0.5.
    fn wobble(i: usize) -> f64 {
        ((i * 7919 + i * i * 31) % 101) as f64 / 100.0 - 0.5
    }

    fn series(length: usize, level: impl Fn(usize) -> f64) -> Sample {
        Sample::new((0..length).map(|i| level(i) + wobble(i)).collect()).unwrap()
    }

    fn indices(series: &Sample) -> Vec<usize> {
        change_points(series, &ChangePointOptions::default(), 5).iter().map(|c| c.index).collect()
    }

    #[test]
    fn energy_of_a_split_matches_its_definition() {
        let points = [1.0, 1.5, 0.5, 4.0, 4.5, 5.0, 3.5];
        let mean_over = |a: &[f64], b: &[f64], ordered: bool| {
            let mut sum = 0.0;
            let mut count = 0.0;
            for (i, x) in a.iter().enumerate() {
                for (j, y) in b.iter().enumerate() {
                    if !ordered || i < j {
                        sum += (x - y).abs();
                        count += 1.0;
                    }
                }
            }
            sum / count
        };
        let by_definition = |at: usize| {
            let (a, b) = points.split_at(at);
            let energy = 2.0 * mean_over(a, b, false) - mean_over(a, a, true) - mean_over(b, b, true);
            (a.len() * b.len()) as f64 / points.len() as f64 * energy
        };
        let (at, energy) = best_split(&points, 2).unwrap();
        assert_eq!(at, 3);
        assert!((energy - by_definition(3)).abs() < 1e-12);
        assert!((2..=5).all(|other| by_definition(other) <= energy));
        assert_eq!(best_split(&points[..3], 2), None);
    }

    #[test]
    fn finds_steps_where_they_are() {
        assert_eq!(indices(&series(60, |i| if i < 25 { 10.0 } else { 12.0 })), [25]);
        let two = series(90, |i| if (30..60).contains(&i) { 8.0 } else { 10.0 });
        assert_eq!(indices(&two), [30, 60]);
        let found = change_points(&two, &ChangePointOptions::default(), 5);
        assert!((found[0].before - 10.0).abs() < 0.3 && (found[0].after - 8.0).abs() < 0.3);
        assert!(found.iter().all(|c| c.p <= 0.01));
    }

    #[test]
    fn finds_none_where_there_is_none() {
        assert!(indices(&series(80, |_| 5.0)).is_empty());
        assert!(indices(&Sample::new(vec![3.0; 50]).unwrap()).is_empty());
        assert!(indices(&Sample::new(vec![3.0]).unwrap()).is_empty());
    }

    #[test]
    fn newest_points_lie_apart_as_often_as_promised() {
        let mut random = Random::new(4);
        let mut normal = || random.normal();
        let (series, mut wrong) = (6000, 0);
        for length in [4, 6, 9, 12, 13, 30] {
            for _ in 0..series / 6 {
                let values: Vec<f64> = (0..length).map(|_| normal()).collect();
                wrong += usize::from(newest_apart(&values, &ChangePointOptions::default()).is_some());
            }
        }
        assert!(wrong * 100 <= series * 12 / 10, "{wrong} of {series} at 1 %");
        let level = |from: usize| (0..20).map(|i| if i < from { 10.0 } else { 5.0 } + wobble(i)).collect::<Vec<_>>();
        let found = |from: usize| newest_apart(&level(from), &ChangePointOptions::default()).map(|(first, _)| first);
        assert_eq!([found(20), found(19), found(18), found(15)], [None, Some(19), Some(18), Some(15)]);
        let one_low = [100.1, 99.8, 100.3, 99.9, 100.0, 100.2, 99.9, 100.1, 99.7, 50.0];
        let found = newest_apart(&one_low, &ChangePointOptions::default()).map(|(first, _)| first);
        assert_eq!(found, Some(9), "the last but one is the lowest of the others by chance");
        // From the first such run on there is always a finding.
        for before in 7..12 {
            for after in 1..8 {
                let level = |i: usize| if i < before { 100.0 } else { 50.0 };
                let values: Vec<f64> = (0..before + after).map(|i| level(i) + wobble(i)).collect();
                let options = ChangePointOptions::default();
                let changes = change_points(&Sample::new(values.clone()).unwrap(), &options, 5);
                let found = changes
                    .last()
                    .map(|change| change.index)
                    .or(newest_apart(&values, &options).map(|(first, _)| first));
                assert_eq!(found, Some(before), "{before} points, then {after}");
            }
        }
        // Few points that scatter, as after a change, show that one lies apart; as few that agree do not.
        let apart = |values: &[f64]| newest_apart(values, &ChangePointOptions::default()).map(|(first, _)| first);
        assert_eq!(apart(&[50.2, 49.7, 50.1, 49.9, 20.0]), Some(4));
        assert_eq!(apart(&[50.2, 49.7, 50.1, 49.9, 49.0]), None);
        assert_eq!([apart(&[0.1, 0.1, 0.1, 0.2]), apart(&[0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2])], [None, Some(7)]);
        for (values, unproven) in [
            (&[5.0, 5.0, 5.0, 9.0, 8.0][..], Some(3)),
            (&[5.0; 6], None),
            (&[5.0, 5.0, 5.0, 9.0, 4.0], None),
            (&[5.0, 5.0, 5.1, 9.0, 5.0], None),
            (&[5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 9.0], None),
        ] {
            assert_eq!(newest_unproven(values), unproven, "{values:?}");
        }
        assert_eq!(newest_apart(&[5.0, 5.0, 9.0], &ChangePointOptions::default()), None, "too few before");
    }

    /// A change halves the level; the few points after it, picked by where the change was found, must not look more alike than they are.
    #[test]
    fn newest_points_after_a_change_lie_apart_as_often_as_promised() {
        let mut random = Random::new(6);
        let mut normal = || random.normal();
        let (series, mut wrong) = (1000, 0);
        let options = ChangePointOptions { permutations: 199, ..ChangePointOptions::default() };
        for after in [4, 5, 6, 8] {
            for _ in 0..series / 4 {
                let level = |i: usize| if i < 10 { 100.0 } else { 50.0 };
                let values: Vec<f64> = (0..10 + after).map(|i| level(i) + normal()).collect();
                let changes = change_points(&Sample::new(values.clone()).unwrap(), &options, 5);
                let since = changes.last().map_or(0, |change| change.index);
                wrong += usize::from(since > 0 && newest_apart(&values[since..], &options).is_some());
            }
        }
        assert!(wrong * 100 <= series * 12 / 10, "{wrong} of {series} at 1 %");
    }

    #[test]
    fn a_long_series_is_batched_and_indexed_in_its_own_points() {
        let long = series(2000, |i| if i < 1500 { 10.0 } else { 11.0 });
        assert_eq!(indices(&long), [1500]);
    }
}
