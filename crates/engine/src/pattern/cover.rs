//! Places that come once each, where each time a row of them is taken whose length is drawn: the random map of fio.

use super::permute;
use crate::random::derive;

/// Which places of a file were taken in this round. They come in the order of a permutation; what another row has covered is passed over,
/// and a row ends where the next place was taken before.
#[derive(Debug, Default)]
pub(crate) struct Cover {
    places: u64,
    round: u64,
    /// Places of the permutation that were looked at in this round.
    turn: u64,
    /// A bit for each place.
    taken: Vec<u64>,
}

impl Cover {
    /// First place and length of the next row, of at most so many of these places.
    pub(crate) fn next(&mut self, places: u64, most: u64, seed: u64) -> (u64, u64) {
        if self.places != places {
            *self = Self { places, taken: vec![0; places.div_ceil(64) as usize], ..Self::default() };
        }
        if places == 0 {
            return (0, 0);
        }
        loop {
            if self.turn == places {
                self.turn = 0;
                self.round += 1;
                self.taken.fill(0);
            }
            let first = permute(self.turn, places, derive(seed, &[self.round]));
            self.turn += 1;
            if self.is_taken(first) {
                continue;
            }
            let end = places.min(first.saturating_add(most.max(1)));
            let row = (first..end).take_while(|place| !self.is_taken(*place)).count() as u64;
            for place in first..first + row {
                self.taken[(place / 64) as usize] |= 1 << (place % 64);
            }
            return (first, row);
        }
    }

    fn is_taken(&self, place: u64) -> bool {
        self.taken[(place / 64) as usize] >> (place % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_round_takes_every_place_once(places in 1u64..300, lengths in prop::collection::vec(1u64..20, 1..8), seed in any::<u64>()) {
            let mut cover = Cover::default();
            let mut lengths = lengths.iter().cycle();
            for _ in 0..3 {
                let mut taken = vec![0; places as usize];
                let mut left = places;
                while left > 0 {
                    let most = *lengths.next().expect("endless");
                    let (first, row) = cover.next(places, most, seed);
                    prop_assert!((1..=most).contains(&row));
                    taken[first as usize..(first + row) as usize].iter_mut().for_each(|count| *count += 1);
                    left -= row.min(left);
                }
                prop_assert!(taken.iter().all(|count| *count == 1), "{taken:?}");
            }
        }
    }
}
