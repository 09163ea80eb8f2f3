//! A fileset, or one thread's share of it, seen as one space of numbered positions.

use crate::fileset::FileTable;

/// The files of a set as they were when a phase began, in the order of their numbers.
#[derive(Debug)]
pub(crate) enum Roster {
    Dense(u64),
    Listed(Vec<u32>),
}

impl Roster {
    pub(crate) fn new(table: &FileTable) -> Self {
        let live = table.live();
        if (0..live).all(|file| table.is_live(file as u32)) {
            return Self::Dense(live);
        }
        Self::Listed(table.live_files().collect())
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Dense(count) => *count,
            Self::Listed(files) => files.len() as u64,
        }
    }

    /// The `index`-th file; `index` must be below the length.
    #[inline]
    pub(crate) fn get(&self, index: u64) -> u32 {
        match self {
            Self::Dense(_) => index as u32,
            Self::Listed(files) => files[index as usize],
        }
    }
}

/// Positions of every `step`-th file from `first` on, numbered through.
#[derive(Debug)]
pub(crate) struct Space {
    first: u64,
    step: u64,
    positions: Positions,
    total: u64,
}

#[derive(Debug)]
enum Positions {
    Equal(u64),
    /// Sums up to and including each file.
    Sums(Vec<u64>),
}

impl Space {
    pub(crate) fn new(roster: &Roster, first: u64, step: u64, positions_of: impl Fn(u32) -> u64) -> Self {
        let step = step.max(1);
        let mut files = (first..roster.len()).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        let count = (roster.len().saturating_sub(first)).div_ceil(step);
        let each = if count == 0 { 0 } else { positions_of(roster.get(first)) };
        let equal = files.clone().all(|index| positions_of(roster.get(index)) == each);
        let (positions, total) = if equal {
            (Positions::Equal(each), each * count)
        } else {
            let mut sum = 0;
            let mut sums = Vec::with_capacity(count as usize);
            for index in &mut files {
                sum += positions_of(roster.get(index));
                sums.push(sum);
            }
            (Positions::Sums(sums), sum)
        };
        Self { first, step, positions, total }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The index in the roster of the file that holds a position, and the position within it. `position` must be
    /// below the total.
    #[inline]
    pub(crate) fn locate(&self, position: u64) -> (u64, u64) {
        let (index, inside) = match &self.positions {
            Positions::Equal(each) if position < *each => (0, position),
            Positions::Equal(each) => (position / each.max(&1), position % each.max(&1)),
            Positions::Sums(sums) => {
                let index = sums.partition_point(|sum| *sum <= position);
                let before = if index == 0 { 0 } else { sums[index - 1] };
                (index as u64, position - before)
            }
        };
        (self.first + index * self.step, inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn positions_are_numbered_through(sizes in prop::collection::vec(0u64..5, 1..30), first in 0u64..4, step in 1u64..5, equal in any::<bool>()) {
            let sizes = if equal { vec![3; sizes.len()] } else { sizes };
            let roster = Roster::Dense(sizes.len() as u64);
            let space = Space::new(&roster, first, step, |file| sizes[file as usize]);
            let expected: Vec<(u64, u64)> = (first..sizes.len() as u64)
                .step_by(step as usize)
                .flat_map(|file| (0..sizes[file as usize]).map(move |inside| (file, inside)))
                .collect();
            let found: Vec<(u64, u64)> = (0..space.total()).map(|position| space.locate(position)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_roster_lists_what_lives() {
        let table = FileTable::new(4);
        for _ in 0..4 {
            let file = table.begin_create().expect("room");
            table.finish_create(file, 1);
        }
        assert!(matches!(Roster::new(&table), Roster::Dense(4)));
        assert_eq!(table.take(1, crate::fileset::Hold::Alone), crate::fileset::Draw::File(1));
        table.remove(1);
        let roster = Roster::new(&table);
        assert_eq!((0..roster.len()).map(|index| roster.get(index)).collect::<Vec<u32>>(), [0, 2, 3]);
    }
}
