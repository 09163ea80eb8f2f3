//! Brute force for small samples, recorded values of scipy 1.17.1 (numpy 2.4.6) for larger ones.

use fstone_stats::compare::{
    blocked_comparison, cliffs_delta, hodges_lehmann, letters, mann_whitney, permutation_test, signed_rank,
};

use crate::sample;

const A: [f64; 12] = [96.0, 93.4, 98.8, 102.1, 105.7, 100.5, 97.2, 96.1, 103.7, 108.2, 101.4, 93.8];
const B: [f64; 14] = [99.2, 112.0, 105.0, 95.3, 103.6, 98.2, 100.9, 101.6, 100.4, 106.8, 103.75, 101.1, 106.0, 108.1];
const DIFFERENCES: [f64; 12] = [-0.02, 0.66, 0.12, 0.6, 2.401, 0.979, -1.076, 2.234, 0.848, -0.441, 1.407, 0.518];

fn close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-10, "{actual} is not {expected}");
}

fn pairs(differences: &[f64]) -> Vec<(f64, f64)> {
    differences.iter().map(|d| (0.0, *d)).collect()
}

fn relabellings(pooled: &[f64], size: usize) -> Vec<(Vec<f64>, Vec<f64>)> {
    (0..1_u32 << pooled.len())
        .filter(|mask| mask.count_ones() as usize == size)
        .map(|mask| {
            let chosen = |i: &usize| mask >> i & 1 == 1;
            let (first, second): (Vec<usize>, Vec<usize>) = (0..pooled.len()).partition(chosen);
            let values = |indices: Vec<usize>| indices.into_iter().map(|i| pooled[i]).collect();
            (values(first), values(second))
        })
        .collect()
}

/// U by its definition: pairs in which `other` is larger, ties counting half.
fn u(baseline: &[f64], other: &[f64]) -> f64 {
    let all = baseline.iter().flat_map(|b| other.iter().map(move |o| (b, o)));
    all.map(|(b, o)| f64::from(u8::from(o > b)) + 0.5 * f64::from(u8::from(o == b))).sum()
}

fn share(extreme: usize, all: usize) -> f64 {
    extreme as f64 / all as f64
}

#[test]
fn mann_whitney_is_the_permutation_test_of_its_statistic() {
    let cases: [(&[f64], &[f64]); 6] = [
        (&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]),
        (&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0]),
        (&[1.0, 5.0, 2.0], &[3.0, 4.0, 9.0, 7.0, 8.0]),
        (&[1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 5.0], &[2.0, 3.0, 4.0, 4.0, 5.0, 6.0]),
        (&[1.0, 1.0, 1.0, 2.0], &[1.0, 2.0]),
        (&[7.0], &[1.0, 2.0, 3.0]),
    ];
    for (a, b) in cases {
        let pooled: Vec<f64> = a.iter().chain(b).copied().collect();
        let all = relabellings(&pooled, a.len());
        let below = all.iter().filter(|(x, y)| u(x, y) <= u(a, b)).count();
        let above = all.iter().filter(|(x, y)| u(x, y) >= u(a, b)).count();
        let brute_force = (2.0 * share(below.min(above), all.len())).min(1.0);
        let found = mann_whitney(&sample(a), &sample(b));
        close(found.p, brute_force);
        close(found.statistic, u(a, b));
        close(mann_whitney(&sample(b), &sample(a)).p, brute_force);
    }
}

#[test]
fn mann_whitney_agrees_with_scipy() {
    // mannwhitneyu(B, A, method="exact")
    let found = mann_whitney(&sample(&A), &sample(&B));
    close(found.statistic, 115.0);
    close(found.p, 0.117_926_007_227_389_37);
    // permutation_test(rank sum, n_resamples=inf), with ties
    let tied = mann_whitney(&sample(&[1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 5.0]), &sample(&[2.0, 3.0, 4.0, 4.0, 5.0, 6.0]));
    close(tied.p, 0.132_867_132_867_132_86);
}

#[test]
fn large_mann_whitney_with_ties_agrees_with_scipy() {
    // mannwhitneyu(b, a, method="asymptotic"): 850, 0.1095244345475393
    let a = [
        95., 99., 97., 99., 96., 100., 100., 99., 97., 99., 97., 96., 101., 97., 104., 102., 94., 101., 97., 100.,
        100., 94., 99., 99., 103., 96., 102., 97., 99., 97., 104., 102., 107., 102., 103.,
    ];
    let b = [
        104., 99., 101., 105., 100., 102., 101., 103., 100., 101., 102., 101., 98., 104., 97., 97., 97., 104., 100.,
        98., 98., 102., 98., 97., 103., 97., 100., 101., 100., 101., 105., 99., 97., 95., 100., 100., 102., 100., 100.,
        99.,
    ];
    let found = mann_whitney(&sample(&a), &sample(&b));
    assert!(!found.exact);
    close(found.statistic, 850.0);
    close(found.p, 0.109_524_434_547_539_3);
}

#[test]
fn the_exact_test_ends_where_the_approximation_is_good() {
    // mannwhitneyu(b, a): 30 against 30 exact, 30 against 31 asymptotic (its exact p is 0.043 601…)
    let row = |n: u32, shift: f64| -> Vec<f64> { (0..n).map(|i| f64::from((i * 37) % 101) + shift).collect() };
    let counted = mann_whitney(&sample(&row(30, 0.0)), &sample(&row(30, 14.3)));
    let approximated = mann_whitney(&sample(&row(30, 0.0)), &sample(&row(31, 14.3)));
    assert!(counted.exact && !approximated.exact);
    close(counted.p, 0.065_399_114_713_278_9);
    close(approximated.p, 0.044_171_344_908_442_6);
}

#[test]
fn signed_ranks_are_the_sign_flip_test_of_their_statistic() {
    let cases: [&[f64]; 4] = [
        &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0],
        &[1.0, -1.0, 2.0, 2.0, 2.0, -3.0, 4.0],
        &[0.0, 0.0, 1.0, -1.0, 2.0, 3.0],
        &[5.0],
    ];
    for differences in cases {
        let observed = signed_rank(&pairs(differences));
        let statistics: Vec<f64> = (0..1_u32 << differences.len())
            .map(|mask| {
                let flip = |(i, d): (usize, &f64)| if mask >> i & 1 == 1 { -d } else { *d };
                let flipped: Vec<f64> = differences.iter().enumerate().map(flip).collect();
                signed_rank(&pairs(&flipped)).statistic
            })
            .collect();
        let center = statistics.iter().sum::<f64>() / statistics.len() as f64;
        let distance = (observed.statistic - center).abs();
        let extreme = statistics.iter().filter(|s| (*s - center).abs() >= distance - 1e-9).count();
        close(observed.p, share(extreme, statistics.len()));
    }
}

#[test]
fn signed_ranks_agree_with_scipy() {
    // wilcoxon(d, method="exact"): min(T+, T−) = 13
    let found = signed_rank(&pairs(&DIFFERENCES));
    close(found.statistic, 78.0 - 13.0);
    close(found.p, 0.042_480_468_75);
    // wilcoxon(d, zero_method="pratt", correction=True, method="asymptotic"): 755
    let many = [
        -0.3, -0.3, -0.7, 0.3, 1.4, -0.0, 0.7, 2.2, -0.9, 0.6, -0.0, -0.8, -0.7, 0.3, 0.7, -0.2, 0.4, 1.0, 0.6, 1.2,
        0.8, 0.8, 2.1, 0.9, 0.4, 1.0, -0.6, -0.0, 1.1, 0.9, 1.8, 0.3, -1.2, 2.2, 1.4, -0.8, 1.7, 0.3, -1.5, -0.1, -0.2,
        1.9, -0.5, 0.0, 0.0, -0.1, -0.6, 0.5, 1.4, 0.9, -0.6, -0.8, 0.4, -0.4, -0.3, -1.4, 2.3, 1.2, -0.7, 1.2, 1.6,
        -2.1, -0.2, -0.1, 0.9, 0.2, 0.1, 0.2, 2.2, 2.5,
    ];
    let found = signed_rank(&pairs(&many));
    assert!(!found.exact);
    assert!((found.p - 0.004_984_968_556_624_715).abs() < 1e-9, "{found:?}");
}

#[test]
fn shifts_agree_with_numpy() {
    // The sorted differences and the 46th of each end, from the exact null distribution of U.
    let shift = hodges_lehmann(&sample(&A), &sample(&B), 0.95);
    close(shift.estimate, 3.225);
    close(shift.interval.low, -0.7);
    close(shift.interval.high, 7.3);
    close(shift.interval.confidence, 0.953_646_106_215_765_6);
    // The sorted Walsh averages and the 14th of each end.
    let blocked = blocked_comparison(&pairs(&DIFFERENCES), 0.95).unwrap();
    close(blocked.shift.estimate, 0.661_25);
    close(blocked.shift.interval.low, 0.0385);
    close(blocked.shift.interval.high, 1.417);
    close(blocked.shift.interval.confidence, 0.957_519_531_25);
    assert_eq!(blocked.relative, None, "a baseline of 0 has no share");
}

/// An exact interval covers exactly what it claims: over all relabellings of distinct values, the
/// share in which the interval of the shift holds 0 is the claimed confidence.
#[test]
fn shift_intervals_cover_what_they_claim() {
    let pooled = [0.0, 1.3, 2.9, 4.1, 7.7, 11.0, 18.5, 30.2, 51.0, 83.9];
    for (size, confidence) in [(3, 0.9), (4, 0.95), (5, 0.95), (5, 0.8)] {
        let all = relabellings(&pooled[..2 * size], size);
        let intervals: Vec<_> =
            all.iter().map(|(a, b)| hodges_lehmann(&sample(a), &sample(b), confidence).interval).collect();
        let covering = intervals.iter().filter(|interval| interval.contains(0.0)).count();
        close(share(covering, all.len()), intervals[0].confidence);
        assert!(intervals[0].confidence >= confidence - 1e-12);
    }
}

#[test]
fn permutation_tests_match_enumeration() {
    let (a, b) = (&A[..5], &B[..4]);
    let pooled: Vec<f64> = a.iter().chain(b).copied().collect();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let means = |x: &[f64], y: &[f64]| (mean(y) - mean(x)).abs();
    let p_of = |statistic: &dyn Fn(&[f64], &[f64]) -> f64| {
        let all = relabellings(&pooled, a.len());
        let extreme = all.iter().filter(|(x, y)| statistic(x, y) >= statistic(a, b) * (1.0 - 1e-9)).count();
        share(extreme, all.len())
    };
    let found = permutation_test(&sample(a), &sample(b), 1);
    close(found.p, p_of(&means));
    close(found.difference, mean(b) - mean(a));
}

#[test]
fn cliffs_delta_is_u_rescaled() {
    let expected = 2.0 * u(&A, &B) / (A.len() * B.len()) as f64 - 1.0;
    close(cliffs_delta(&sample(&A), &sample(&B)), expected);
}

#[test]
fn letters_of_every_pattern_of_five_rows() {
    let all_pairs: Vec<(usize, usize)> = (0..5).flat_map(|i| (i + 1..5).map(move |j| (i, j))).collect();
    for pattern in 0..1_u32 << all_pairs.len() {
        let differ = |i: usize, j: usize| {
            let place = all_pairs.iter().position(|pair| *pair == (i, j)).unwrap();
            pattern >> place & 1 == 1
        };
        let found = letters(5, differ).unwrap();
        for &(i, j) in &all_pairs {
            let share_a_letter = found[i].chars().any(|letter| found[j].contains(letter));
            assert_eq!(share_a_letter, !differ(i, j), "{found:?}");
        }
        assert!(found.iter().all(|letters| !letters.is_empty()));
        assert!(found[0].starts_with('a'));
    }
}
