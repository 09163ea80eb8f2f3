//! A seeded permutation of 0..n for any n up to 2^63, computed, not stored.
//!
//! A balanced Feistel network permutes the smallest even power of two that holds n; a result outside is permuted
//! again until it falls inside ("cycle walking", Black and Rogaway 2002). The power is at most 4 n, so that takes less
//! than four rounds on average.

use crate::random::scatter;

const ROUNDS: u64 = 4;

/// Where `index` goes. `index` must be below `space`.
#[inline]
pub(crate) fn permute(index: u64, space: u64, seed: u64) -> u64 {
    debug_assert!(index < space.max(1) && space <= 1 << 63);
    if space < 2 {
        return 0;
    }
    let half_bits = (64 - (space - 1).leading_zeros()).div_ceil(2);
    let mask = (1u64 << half_bits) - 1;
    let mut value = index;
    loop {
        let (mut left, mut right) = (value >> half_bits, value & mask);
        for round in 0..ROUNDS {
            let mixed = scatter(right ^ seed.wrapping_add(round << 56));
            (left, right) = (right, (left ^ mixed) & mask);
        }
        value = (left << half_bits) | right;
        if value < space {
            return value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn every_number_is_hit_once(space in 1u64..5000, seed in any::<u64>()) {
            let hit: HashSet<u64> = (0..space).map(|index| permute(index, space, seed)).collect();
            prop_assert_eq!(hit.len() as u64, space);
            prop_assert!(hit.iter().all(|number| *number < space));
        }

        #[test]
        fn large_spaces_stay_inside(space in 1u64 << 40..=1 << 63, place in 0.0f64..1.0, seed in any::<u64>()) {
            let index = ((space as f64 * place) as u64).min(space - 1);
            let next = (index + 1) % space;
            prop_assert!(permute(index, space, seed) < space);
            prop_assert_ne!(permute(index, space, seed), permute(next, space, seed));
        }
    }

    #[test]
    fn neighbours_do_not_stay_neighbours() {
        let space = 100_000;
        let close = (1..space).filter(|i| permute(*i, space, 9).abs_diff(permute(i - 1, space, 9)) < 100).count();
        // Of random pairs, a share of about 200 / space is that close.
        assert!((100..320).contains(&close), "{close}");
    }
}
