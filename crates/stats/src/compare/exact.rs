//! Null distributions of rank statistics, by counting.

/// The permutation distribution of the sum of `size` scores drawn without replacement: the `s`-th
/// entry is the probability of a sum of `s`.
///
/// The dynamic programme of Streitberg & Röhmel, "Exact distributions for permutation and rank
/// tests", Statistical Software Newsletter 12 (1986): midranks (doubled, so that they are whole)
/// are scores like any others, which makes it exact with ties. Counts are kept as floating point:
/// exact below 2^53, and good to 1e-13 above.
pub(super) fn subset_sums(scores: &[usize], size: usize) -> Vec<f64> {
    let mut descending = scores.to_vec();
    descending.sort_unstable_by(|a, b| b.cmp(a));
    let largest: usize = descending.iter().take(size).sum();
    // counts[k][s]: ways to pick k of the scores seen so far with sum s.
    let mut counts = vec![vec![0.0_f64; largest + 1]; size + 1];
    counts[0][0] = 1.0;
    for (seen, &score) in descending.iter().enumerate() {
        for k in (1..=size.min(seen + 1)).rev() {
            let (fewer, these) = counts.split_at_mut(k);
            if score <= largest {
                let sources = &fewer[k - 1][..=largest - score];
                for (target, source) in these[0][score..].iter_mut().zip(sources) {
                    *target += source;
                }
            }
        }
    }
    normalised(counts.swap_remove(size))
}

/// The distribution of the Mann–Whitney U of `n` against `m` distinct values: what [`subset_sums`] of
/// the ranks 1 … n + m gives, in n·nm steps.
///
/// The counts are the coefficients of the Gaussian binomial Π (1 − q^(m + i)) / (1 − q^i), i = 1 … n
/// (Andrews, "The Theory of Partitions", §3.2). A coefficient only depends on lower ones, so the
/// tail, which is small, is exact however large the middle grows.
pub(super) fn mann_whitney_null(n: usize, m: usize) -> Vec<f64> {
    let mut counts = vec![0.0_f64; n * m + 1];
    counts[0] = 1.0;
    for i in 1..=n {
        for u in (m + i..counts.len()).rev() {
            counts[u] -= counts[u - m - i];
        }
        for u in i..counts.len() {
            counts[u] += counts[u - i];
        }
    }
    // Both halves are the same; the lower one has seen fewer roundings.
    for u in 0..counts.len() / 2 {
        counts[n * m - u] = counts[u];
    }
    normalised(counts)
}

/// The distribution of the sum of a random subset of the scores, each in or out by a fair coin:
/// the signed-rank distribution, exact with ties.
pub(super) fn coin_sums(scores: &[usize]) -> Vec<f64> {
    let total: usize = scores.iter().sum();
    let mut probabilities = vec![0.0_f64; total + 1];
    probabilities[0] = 1.0;
    for &score in scores {
        for s in (0..=total).rev() {
            let with = if s >= score { probabilities[s - score] } else { 0.0 };
            probabilities[s] = (probabilities[s] + with) / 2.0;
        }
    }
    probabilities
}

/// Twice the smaller tail, P(S ≤ observed) or P(S ≥ observed), at most 1.
///
/// Doubling, and not counting what is as far from the mean on either side, because with ties and
/// unequal groups the distribution is lopsided: this alone keeps p from falling below what the
/// group sizes allow, and agrees with the interval, which cuts equal tails.
pub(super) fn two_sided(probabilities: &[f64], observed: usize) -> f64 {
    let below: f64 = probabilities[..=observed].iter().sum();
    let above: f64 = probabilities[observed..].iter().sum();
    (2.0 * below.min(above)).min(1.0)
}

/// For ends of a distribution-free interval: the largest `c ≥ 1` with P(S ≤ c − 1) ≤ `tail`, and
/// that probability. When even P(S = 0) exceeds `tail`, `c` is 1: the widest interval there is.
pub(super) fn lower_critical(probabilities: &[f64], tail: f64) -> (usize, f64) {
    let mut below = probabilities[0];
    let mut c = 1;
    while c < probabilities.len() && below + probabilities[c] <= tail {
        below += probabilities[c];
        c += 1;
    }
    (c, below)
}

fn normalised(mut counts: Vec<f64>) -> Vec<f64> {
    let total: f64 = counts.iter().sum();
    for count in &mut counts {
        *count /= total;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subset_sums_match_enumeration() {
        let scores = [2, 5, 5, 8, 12, 12, 13];
        for size in 1..=scores.len() {
            let found = subset_sums(&scores, size);
            let mut expected = vec![0.0; found.len()];
            let mut total = 0.0;
            for mask in 0..1_u32 << scores.len() {
                if mask.count_ones() as usize == size {
                    let sum: usize = (0..scores.len()).filter(|i| mask >> i & 1 == 1).map(|i| scores[i]).sum();
                    expected[sum] += 1.0;
                    total += 1.0;
                }
            }
            for (f, e) in found.iter().zip(&expected) {
                assert!((f - e / total).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn the_quick_null_is_that_of_the_ranks() {
        for (n, m) in [(1, 1), (3, 3), (2, 7), (7, 2), (12, 14), (30, 30)] {
            let ranks: Vec<usize> = (1..=n + m).collect();
            let expected = subset_sums(&ranks, n).split_off(n * (n + 1) / 2);
            let found = mann_whitney_null(n, m);
            assert_eq!(found.len(), expected.len());
            assert!(found.iter().zip(&expected).all(|(f, e)| (f / e - 1.0).abs() < 1e-9));
        }
    }

    #[test]
    fn coin_sums_match_enumeration() {
        let scores = [2, 5, 5, 8];
        let found = coin_sums(&scores);
        let mut expected = vec![0.0; found.len()];
        for mask in 0..16_u32 {
            let sum: usize = (0..4).filter(|i| mask >> i & 1 == 1).map(|i| scores[i]).sum();
            expected[sum] += 1.0 / 16.0;
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn critical_values_of_small_designs() {
        let uniform = vec![0.05; 20];
        assert_eq!(lower_critical(&uniform, 0.025), (1, 0.05));
        let (c, below) = lower_critical(&uniform, 0.151);
        assert_eq!(c, 3);
        assert!((below - 0.15).abs() < 1e-12);
    }
}
