//! Places that come once each, where each time a row of them is taken whose length is drawn: the random map of fio.

use crate::random::derive;

/// Which places of a file were taken in this round. A row begins at a place that is drawn or, if that was taken, at the next free one, as
/// in fio: so most rows follow another, and few begin inside of what is free. A row ends where the next place was taken before, and a
/// round when all are.
#[derive(Debug, Default)]
pub(crate) struct Cover {
    places: u64,
    round: u64,
    rows: u64,
    left: u64,
    /// A bit for each place.
    taken: Vec<u64>,
}

impl Cover {
    pub(crate) fn is_full(&self) -> bool {
        self.places > 0 && self.left == 0
    }

    /// First place and length of the next row, of at most so many of these places.
    pub(crate) fn next(&mut self, places: u64, most: u64, seed: u64) -> (u64, u64) {
        if self.places != places {
            *self = Self { places, left: places, taken: vec![0; places.div_ceil(64) as usize], ..Self::default() };
        }
        if places == 0 {
            return (0, 0);
        }
        if self.left == 0 {
            *self =
                Self { round: self.round + 1, left: places, taken: std::mem::take(&mut self.taken), places, rows: 0 };
            self.taken.fill(0);
        }
        let drawn = derive(seed, &[self.round, self.rows]);
        let drawn = ((u128::from(drawn) * u128::from(places)) >> 64) as u64;
        // One is free.
        let first = self.free_from(drawn).or_else(|| self.free_from(0)).unwrap_or(0);
        let end = places.min(first.saturating_add(most.max(1)));
        let row = (first..end).take_while(|place| !self.is_taken(*place)).count() as u64;
        for place in first..first + row {
            self.taken[(place / 64) as usize] |= 1 << (place % 64);
        }
        self.rows += 1;
        self.left -= row;
        (first, row)
    }

    fn free_from(&self, place: u64) -> Option<u64> {
        let mut word = (place / 64) as usize;
        let mut free = !self.taken[word] & (u64::MAX << (place % 64));
        while free == 0 {
            word += 1;
            free = !*self.taken.get(word)?;
        }
        let found = word as u64 * 64 + u64::from(free.trailing_zeros());
        (found < self.places).then_some(found)
    }

    fn is_taken(&self, place: u64) -> bool {
        self.taken[(place / 64) as usize] >> (place % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
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

    /// fio 3.33 needs 12,860 blocks for `size=256m bssplit=4k/50:64k/50`, and 3,007 for `bsrange=4k-256k`.
    #[test]
    fn a_round_has_as_many_rows_as_in_fio() {
        let rows = |mut draw: Box<dyn FnMut() -> u64>| {
            let (mut cover, mut left, mut rows) = (Cover::default(), 65_536, 0);
            while left > 0 {
                left -= cover.next(65_536, draw(), 7).1;
                rows += 1;
            }
            rows
        };
        let (mut first, mut second) = (Random::new(1), Random::new(2));
        let split = rows(Box::new(move || if first.below(2) == 0 { 1 } else { 16 }));
        let range = rows(Box::new(move || 1 + second.below(64)));
        assert!((12_400..13_200).contains(&split), "{split}");
        assert!((2_850..3_200).contains(&range), "{range}");
    }
}
