//! What must hold for any figures.

use fstone_stats::compare::{
    blocked_shift, cliffs_delta, hodges_lehmann, holm, letters, mann_whitney, permutation_test, relative_shift,
    signed_rank,
};
use fstone_stats::drift::drift_of_sample;
use fstone_stats::interval::bca;
use fstone_stats::outliers::outliers;
use fstone_stats::series::{ChangePointOptions, change_points};
use fstone_stats::{Blocking, Level, Sample, Scale, compare_all, interval95};
use proptest::prelude::*;

/// Figures on a coarse grid, so that ties are common.
fn figures(length: std::ops::Range<usize>) -> impl Strategy<Value = Sample> {
    prop::collection::vec(1_u32..200, length)
        .prop_map(|v| Sample::new(v.into_iter().map(|x| f64::from(x) / 4.0).collect()).unwrap())
}

fn moved(sample: &Sample, factor: f64, offset: f64) -> Sample {
    Sample::new(sample.values().iter().map(|v| v * factor + offset).collect()).unwrap()
}

/// Equal but for rounding, relative to the size of the figures.
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn intervals_move_and_stretch_with_the_figures(
        sample in figures(2..12), power in -3_i32..4, offset in -64_i32..64, seed: u64,
    ) {
        // Powers of two and quarters: the moved figures themselves are not rounded.
        let (factor, offset) = (2_f64.powi(power), f64::from(offset));
        let other = moved(&sample, factor, offset);
        let expected = interval95(&sample, seed).unwrap();
        let found = interval95(&other, seed).unwrap();
        prop_assert!(near(found.low, expected.low * factor + offset));
        prop_assert!(near(found.high, expected.high * factor + offset));
        prop_assert!(found.low <= other.mean() && other.mean() <= found.high);
    }

    #[test]
    fn bootstrap_ends_stay_in_the_range(sample in figures(2..12), seed: u64) {
        let found = bca(&sample, 0.95, 200, seed).unwrap();
        prop_assert!(found.low <= found.high);
        prop_assert!(found.low >= sample.min() - 1e-9 && found.high <= sample.max() + 1e-9);
    }

    #[test]
    fn tests_do_not_care_which_is_the_baseline(a in figures(1..9), b in figures(1..9)) {
        let (forward, backward) = (mann_whitney(&a, &b), mann_whitney(&b, &a));
        prop_assert!(near(forward.p, backward.p));
        prop_assert!((0.0..=1.0).contains(&forward.p));
        prop_assert!(near(forward.statistic + backward.statistic, (a.n() * b.n()) as f64));
        prop_assert!(near(cliffs_delta(&a, &b), -cliffs_delta(&b, &a)));
        let (forward, backward) = (permutation_test(&a, &b, 1).p, permutation_test(&b, &a, 1).p);
        prop_assert!(near(forward, backward) && forward > 0.0);
        let (forward, backward) = (hodges_lehmann(&a, &b, 0.95), hodges_lehmann(&b, &a, 0.95));
        prop_assert!(near(forward.estimate, -backward.estimate));
        prop_assert!(near(forward.interval.low, -backward.interval.high));
        prop_assert!(forward.interval.contains(forward.estimate));
    }

    #[test]
    fn the_smallest_p_is_a_bound(a in figures(1..9), b in figures(1..9)) {
        let test = mann_whitney(&a, &b);
        prop_assert!(test.p >= test.smallest_p - 1e-12);
    }

    #[test]
    fn ranks_do_not_care_about_scale(a in figures(1..9), b in figures(1..9)) {
        let logarithms = |s: &Sample| {
            Sample::new(s.values().iter().map(|v| v.ln()).collect()).unwrap()
        };
        prop_assert_eq!(mann_whitney(&a, &b), mann_whitney(&logarithms(&a), &logarithms(&b)));
    }

    #[test]
    fn a_shift_is_found_again(a in figures(2..10), shift in -40_i32..40) {
        let shift = f64::from(shift);
        let b = moved(&a, 1.0, shift);
        prop_assert!(near(hodges_lehmann(&a, &b, 0.95).estimate, shift));
        let pairs: Vec<(f64, f64)> =
            a.values().iter().copied().zip(b.values().iter().copied()).collect();
        prop_assert!(near(blocked_shift(&pairs, 0.95).unwrap().estimate, shift));
        let tripled = relative_shift(&a, &moved(&a, 3.0, 0.0), 0.95).unwrap();
        prop_assert!(near(tripled.estimate, 2.0));
    }

    /// Test and interval are the same statement, when there are no ties.
    #[test]
    fn zero_is_outside_the_interval_exactly_when_the_test_is_significant(
        a in figures(4..9), b in figures(4..9),
    ) {
        // An offset that is no multiple of the grid rules ties between the groups out.
        let b = moved(&b, 1.0, 0.1);
        let distinct = |s: &Sample| s.sorted().windows(2).all(|w| w[0] < w[1]);
        prop_assume!(distinct(&a) && distinct(&b));
        let significant = mann_whitney(&a, &b).p <= 0.05 + 1e-12;
        let interval = hodges_lehmann(&a, &b, 0.95).interval;
        prop_assert_eq!(significant, !interval.contains(0.0));
    }

    #[test]
    fn signed_ranks_do_not_care_about_direction(differences in prop::collection::vec(-20_i32..20, 0..14)) {
        let pairs: Vec<(f64, f64)> = differences.iter().map(|d| (0.0, f64::from(*d))).collect();
        let swapped: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
        prop_assert!(near(signed_rank(&pairs).p, signed_rank(&swapped).p));
    }

    #[test]
    fn holm_is_monotone_and_never_bolder(p_values in prop::collection::vec(0.0..=1.0_f64, 0..20)) {
        let adjusted = holm(&p_values);
        for (i, p) in p_values.iter().enumerate() {
            prop_assert!(adjusted[i] >= *p && adjusted[i] <= 1.0);
            prop_assert!(adjusted[i] <= (p * p_values.len() as f64).min(1.0) + 1e-12);
            for (j, q) in p_values.iter().enumerate() {
                prop_assert!(p > q || adjusted[i] <= adjusted[j]);
            }
        }
    }

    #[test]
    fn letters_say_what_the_tests_said(pattern in prop::collection::vec(any::<bool>(), 66)) {
        // Twelve rows have 66 pairs.
        let place = |i: usize, j: usize| j * (j - 1) / 2 + i;
        if let Some(found) = letters(12, |i, j| pattern[place(i, j)]) {
            for j in 0..12 {
                for i in 0..j {
                    let shared = found[i].chars().any(|letter| found[j].contains(letter));
                    prop_assert_eq!(shared, !pattern[place(i, j)]);
                }
            }
        }
    }

    #[test]
    fn a_table_is_consistent(
        rows in prop::collection::vec(figures(6..7), 1..6), blocked: bool, spread in 0_u32..200,
    ) {
        let rows: Vec<Sample> = rows
            .iter()
            .enumerate()
            .map(|(i, row)| moved(row, 1.0, (i as u32 * spread) as f64))
            .collect();
        let blocking = if blocked { Blocking::Complete } else { Blocking::Independent };
        let table = compare_all(&rows, Scale::Ratios, Level::FIXED, blocking);
        prop_assert_eq!(table.pairs.len(), rows.len() * (rows.len() - 1) / 2);
        let letters = table.letters.as_ref().unwrap();
        for pair in &table.pairs {
            prop_assert!(pair.adjusted_p >= pair.p);
            prop_assert_eq!(pair.differs, pair.adjusted_p <= 0.05);
            // What was called impossible must not have happened.
            prop_assert!(pair.can_differ || !pair.differs);
            let (i, j) = (pair.baseline, pair.other);
            let shared = letters[i].chars().any(|letter| letters[j].contains(letter));
            prop_assert_eq!(shared, !pair.differs);
            let there_and_back = table.pair(j, i).unwrap();
            prop_assert!(near(there_and_back.shift.estimate, -pair.shift.estimate));
        }
    }

    #[test]
    fn drift_backwards_is_drift_the_other_way(sample in figures(2..15)) {
        let mut values = sample.values().to_vec();
        values.reverse();
        let forward = drift_of_sample(&sample).unwrap();
        let backward = drift_of_sample(&Sample::new(values).unwrap()).unwrap();
        prop_assert!(near(forward.p, backward.p) && near(forward.tau, -backward.tau));
        let changes = (forward.relative_change.unwrap(), backward.relative_change.unwrap());
        prop_assert!(near((1.0 + changes.0) * (1.0 + changes.1), 1.0), "one undoes the other");
    }

    #[test]
    fn marks_move_with_the_figures(sample in figures(1..20), offset in -64_i32..64) {
        let other = moved(&sample, 4.0, f64::from(offset));
        let indices = |s: &Sample| outliers(s).iter().map(|o| o.index).collect::<Vec<_>>();
        prop_assert_eq!(indices(&sample), indices(&other));
    }

    #[test]
    fn change_points_are_inside_and_apart(sample in figures(1..40), seed: u64) {
        let options = ChangePointOptions { permutations: 99, ..ChangePointOptions::default() };
        let found = change_points(&sample, &options, seed);
        let edges: Vec<usize> = std::iter::once(0)
            .chain(found.iter().map(|change| change.index))
            .chain([sample.n()])
            .collect();
        prop_assert!(found.is_empty() || edges.windows(2).all(|e| e[1] - e[0] >= 3));
        prop_assert_eq!(&found, &change_points(&sample, &options, seed));
    }
}
