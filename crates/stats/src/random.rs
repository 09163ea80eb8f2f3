//! Seeded random draws, the same on every platform.
//!
//! The generator is Xoshiro256++ (Blackman & Vigna, "Scrambled linear pseudorandom number
//! generators", ACM TOMS 47(4), 2021). The mapping from its 64-bit words to indices lives here, not
//! in another crate, so that a seed printed in a report keeps its meaning when dependencies move.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

#[derive(Debug, Clone)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A uniform index below `bound`.
    ///
    /// Multiply-shift (Lemire, "Fast random integer generation in an interval", 2019) without the
    /// rejection step: the bias is below `bound / 2^64`, far under what any resampling can see.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        debug_assert!(bound > 0, "no index lies below zero");
        let wide = u128::from(self.0.next_u64()) * bound as u128;
        (wide >> 64) as usize
    }

    /// Fisher–Yates; afterwards the first `count` items are a uniform random selection.
    pub(crate) fn shuffle_prefix<T>(&mut self, items: &mut [T], count: usize) {
        for i in 0..count.min(items.len()) {
            let j = i + self.below(items.len() - i);
            items.swap(i, j);
        }
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        self.shuffle_prefix(items, items.len());
    }

    /// Of mean 0 and standard deviation 1.
    #[cfg(test)]
    pub(crate) fn normal(&mut self) -> f64 {
        crate::distribution::normal_quantile((self.below(1 << 40) as f64 + 0.5) / (1_u64 << 40) as f64)
    }
}

/// A seed for the `index`-th independent use of `seed`, so that two uses never share a stream.
///
/// The finaliser of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014).
pub(crate) fn derive_seed(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add((index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut random = Random::new(42);
        let drawn: Vec<usize> = (0..8).map(|_| random.below(1000)).collect();
        assert_eq!(drawn, [814, 318, 983, 701, 793, 588, 125, 605]);
    }

    #[test]
    fn indices_are_in_bounds_and_even() {
        let mut random = Random::new(1);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[random.below(7)] += 1;
        }
        // Binomial(70 000, 1/7) has a standard deviation of 93; five of them is 463.
        assert!(counts.iter().all(|&c| c.abs_diff(10_000) < 463), "{counts:?}");
    }

    #[test]
    fn a_shuffle_keeps_the_items() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(9).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn derived_seeds_differ() {
        let mut seeds: Vec<u64> = (0..1000).map(|i| derive_seed(7, i)).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 1000);
    }
}
