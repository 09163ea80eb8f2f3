//! The write cache: extents that are acknowledged and not on the platters, each with the number of its oldest write.

use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Debug, Default)]
pub(super) struct Writes {
    /// By first sector: end, number of the oldest write in it.
    extents: BTreeMap<u64, (u64, u64)>,
    sectors: u64,
    newest: u64,
    /// Where the last extent that was taken ended.
    last_written: u64,
}

impl Writes {
    pub(super) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    pub(super) const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// The number of the last write.
    pub(super) const fn newest(&self) -> u64 {
        self.newest
    }

    /// The number of the oldest write that is not on the platters; but for the one that the heads are at.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.extents.values().map(|(_, oldest)| *oldest).min()
    }

    pub(super) fn holds(&self, sectors: &Range<u64>) -> bool {
        self.extents.range(..=sectors.start).next_back().is_some_and(|(_, (end, _))| *end >= sectors.end)
    }

    /// Takes a write in; what touches it becomes one extent with it.
    pub(super) fn add(&mut self, sectors: Range<u64>) {
        self.newest += 1;
        let (mut first, mut end, mut oldest) = (sectors.start, sectors.end, self.newest);
        while let Some((&start, &(other_end, other_oldest))) = self.extents.range(..=end).next_back()
            && other_end >= first
        {
            self.extents.remove(&start);
            self.sectors -= other_end - start;
            first = first.min(start);
            end = end.max(other_end);
            oldest = oldest.min(other_oldest);
        }
        self.extents.insert(first, (end, oldest));
        self.sectors += end - first;
    }

    /// Extents in ascending order from where the last was taken, and from the first after the last.
    pub(super) fn near(&self, count: usize) -> impl Iterator<Item = Range<u64>> {
        let whole = self.extents.range(self.last_written..).chain(self.extents.range(..self.last_written));
        whole.take(count).map(|(start, (end, _))| *start..*end)
    }

    /// Takes the beginning of an extent out, or all of it.
    pub(super) fn take(&mut self, sectors: &Range<u64>) {
        let Some((end, oldest)) = self.extents.remove(&sectors.start) else { return };
        if sectors.end < end {
            self.extents.insert(sectors.end, (end, oldest));
        }
        self.sectors -= sectors.end.min(end) - sectors.start;
        self.last_written = sectors.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_that_touch_become_one_and_keep_their_age() {
        let mut writes = Writes::default();
        writes.add(0..8);
        writes.add(16..24);
        assert_eq!((writes.sectors(), writes.oldest()), (16, Some(1)));
        writes.add(8..16);
        assert_eq!(writes.extents.iter().collect::<Vec<_>>(), [(&0, &(24, 1))]);
        writes.add(4..12);
        assert_eq!((writes.sectors(), writes.newest()), (24, 4));
        assert!(writes.holds(&(3..24)) && !writes.holds(&(3..25)));
        writes.add(100..108);
        assert_eq!(writes.near(9).collect::<Vec<_>>(), [0..24, 100..108]);
        writes.take(&(0..16));
        assert_eq!((writes.sectors(), writes.oldest()), (16, Some(1)));
        assert_eq!(writes.near(1).next(), Some(16..24));
        writes.take(&(16..24));
        assert_eq!((writes.sectors(), writes.oldest()), (8, Some(5)));
    }
}
