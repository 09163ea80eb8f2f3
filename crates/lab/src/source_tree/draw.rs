//! Seeded draws: Xoshiro256++ (Blackman & Vigna 2021), and quantile tables read backwards.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(super) struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// The stream at `place` under a seed; each part is folded in with SplitMix64's finaliser (Steele et al. 2014).
    pub(super) fn new(seed: u64, place: &[u64]) -> Self {
        let seed = place.iter().fold(seed, |state, part| {
            let mut z = state.wrapping_add((part + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform below `bound` (multiply-shift; the bias is below bound / 2^64).
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Uniform in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    pub(super) fn weighted<'a, T>(&mut self, items: &'a [(T, f64)]) -> &'a T {
        let total: f64 = items.iter().map(|(_, weight)| weight).sum();
        let mut left = self.unit() * total;
        for (item, weight) in items {
            left -= weight;
            if left < 0.0 {
                return item;
            }
        }
        &items[items.len() - 1].0
    }

    /// From a table of (quantile in %, value), values interpolated in their logarithm so that long tails stay long.
    pub(super) fn quantile(&mut self, table: &[(f64, f64)]) -> f64 {
        let at = self.unit() * 100.0;
        let next = table.iter().position(|(percent, _)| *percent > at).unwrap_or(table.len() - 1).max(1);
        let ((low, from), (high, to)) = (table[next - 1], table[next]);
        let share = (at - low) / (high - low);
        ((from + 1.0).ln() + share * ((to + 1.0).ln() - (from + 1.0).ln())).exp() - 1.0
    }
}
