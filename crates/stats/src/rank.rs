//! Midranks and ties.

/// Ranks of a set of values, ties sharing their mean rank, doubled so that they are whole numbers.
pub(crate) struct Midranks {
    /// Twice the rank of each value, in the order given.
    pub(crate) doubled: Vec<usize>,
    /// The sizes of the groups of equal values (1 for a value that stands alone).
    pub(crate) group_sizes: Vec<usize>,
}

impl Midranks {
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
        let mut doubled = vec![0; values.len()];
        let mut group_sizes = Vec::new();
        let mut start = 0;
        // `==` and not `total_cmp`, so that 0 and −0 are tied.
        for group in order.chunk_by(|&i, &j| values[i] == values[j]) {
            // Ranks start + 1 … start + len have the mean start + (len + 1) / 2.
            let rank = 2 * start + group.len() + 1;
            for &index in group {
                doubled[index] = rank;
            }
            group_sizes.push(group.len());
            start += group.len();
        }
        Self { doubled, group_sizes }
    }

    pub(crate) fn has_ties(&self) -> bool {
        self.group_sizes.iter().any(|&size| size > 1)
    }

    /// Σ f(t) over the sizes t of the groups.
    pub(crate) fn sum_over_groups(&self, f: impl Fn(f64) -> f64) -> f64 {
        self.group_sizes.iter().map(|&t| f(t as f64)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_share_their_mean_rank() {
        let ranks = Midranks::of(&[3.0, 1.0, 3.0, 2.0, 3.0]);
        assert_eq!(ranks.doubled, [8, 2, 8, 4, 8]);
        assert_eq!(ranks.group_sizes, [1, 1, 3]);
        assert!(ranks.has_ties());
        assert!(Midranks::of(&[0.0, -0.0]).has_ties());
        assert!(!Midranks::of(&[0.0, 1.0]).has_ties());
    }
}
