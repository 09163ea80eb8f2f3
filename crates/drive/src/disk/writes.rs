//! The write cache: what is acknowledged and not on the platters, in pieces, each with the number of its oldest write and when its data is
//! there.

use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Debug, Clone, Copy)]
struct Piece {
    end: u64,
    oldest: u64,
    /// When its data has come over the interface.
    there_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Writes {
    /// By first sector. Pieces that touch stay apart: a stream that grows at its end while its
    /// beginning is written out would have the number of its first write for ever, and a flush would wait as long.
    pieces: BTreeMap<u64, Piece>,
    sectors: u64,
    newest: u64,
}

impl Writes {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) const fn sectors(&self) -> u64 {
        self.sectors
    }

    pub(super) const fn newest(&self) -> u64 {
        self.newest
    }

    /// The number of the oldest write that is not on the platters; but for the one that the heads are at.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.pieces.values().map(|piece| piece.oldest).min()
    }

    pub(super) fn holds(&self, sectors: &Range<u64>) -> bool {
        let before = self.pieces.range(..=sectors.start).next_back().map_or(sectors.start, |(start, _)| *start);
        let mut at = sectors.start;
        for (start, piece) in self.pieces.range(before..sectors.end) {
            if *start > at {
                break;
            }
            at = at.max(piece.end);
        }
        at >= sectors.end
    }

    pub(super) fn next_ns(&self, now_ns: u64) -> Option<u64> {
        self.pieces.values().map(|piece| piece.there_ns).filter(|there_ns| *there_ns > now_ns).min()
    }

    /// Takes a write in, whose data is there at some time. What of it was there already keeps its age: who waits for the older write waits
    /// for this one.
    pub(super) fn add(&mut self, sectors: Range<u64>, there_ns: u64) {
        self.newest += 1;
        let before = self.pieces.range(..=sectors.start).next_back().map_or(sectors.start, |(start, _)| *start);
        let there: Vec<Range<u64>> =
            self.pieces.range(before..sectors.end).map(|(start, piece)| *start..piece.end).collect();
        let mut at = sectors.start;
        for gap_end in there.iter().map(|piece| piece.start).chain([sectors.end]) {
            if at < gap_end {
                self.pieces.insert(at, Piece { end: gap_end, oldest: self.newest, there_ns });
                self.sectors += gap_end - at;
            }
            let end = there.iter().find(|piece| piece.start == gap_end).map_or(gap_end, |piece| piece.end);
            at = at.max(end);
        }
    }

    /// Runs of pieces that touch, in ascending order from a sector on, and from the first after the last: of each at most
    /// so many sectors, and only writes with numbers up to this one whose data is there.
    pub(super) fn near(&self, from: u64, count: usize, most: u64, up_to: u64, now_ns: u64) -> Vec<Range<u64>> {
        let whole = self.pieces.range(from..).chain(self.pieces.range(..from));
        let mut runs: Vec<Range<u64>> = Vec::with_capacity(count);
        // Where the pieces that touch the last run end.
        let mut touches = None;
        let may = |piece: &Piece| piece.oldest <= up_to && piece.there_ns <= now_ns;
        for (&start, &Piece { end, .. }) in whole.filter(|(_, piece)| may(piece)) {
            if touches == Some(start)
                && let Some(run) = runs.last_mut()
            {
                run.end = end.min(run.start + most);
            } else if runs.len() == count {
                break;
            } else {
                runs.push(start..end.min(start + most));
            }
            touches = Some(end);
        }
        runs
    }

    pub(super) fn take(&mut self, sectors: &Range<u64>) {
        while let Some((&start, &piece)) = self.pieces.range(sectors.start..sectors.end).next() {
            self.pieces.remove(&start);
            let taken = piece.end.min(sectors.end);
            if taken < piece.end {
                self.pieces.insert(taken, piece);
            }
            self.sectors -= taken - start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(writes: &Writes, count: usize, most: u64, up_to: u64) -> String {
        format!("{:?}", writes.near(0, count, most, up_to, 0))
    }

    #[test]
    fn writes_that_touch_are_one_run_and_each_keeps_its_age() {
        let mut writes = Writes::default();
        writes.add(0..8, 0);
        writes.add(16..24, 0);
        assert_eq!((writes.sectors(), writes.oldest()), (16, Some(1)));
        writes.add(8..16, 0);
        assert_eq!(near(&writes, 9, 100, u64::MAX), "[0..24]");
        assert_eq!(near(&writes, 9, 100, 2), "[0..8, 16..24]");
        assert_eq!(near(&writes, 9, 12, u64::MAX), "[0..12]");
        writes.add(4..12, 0);
        assert_eq!((writes.sectors(), writes.newest()), (24, 4));
        assert!(writes.holds(&(3..24)) && !writes.holds(&(3..25)) && !writes.holds(&(30..31)));
        writes.add(100..108, 0);
        assert_eq!(near(&writes, 9, 100, u64::MAX), "[0..24, 100..108]");
        assert_eq!(near(&writes, 1, 100, u64::MAX), "[0..24]");
        writes.take(&(0..18));
        assert_eq!((writes.sectors(), writes.oldest()), (14, Some(2)));
        assert_eq!(near(&writes, 1, 100, u64::MAX), "[18..24]");
        writes.take(&(18..24));
        assert_eq!((writes.sectors(), writes.oldest()), (8, Some(5)));
        // What covers a piece and more.
        writes.add(90..120, 0);
        assert_eq!((writes.sectors(), writes.oldest()), (30, Some(5)));
        assert_eq!(near(&writes, 9, 100, 5), "[100..108]");
        assert!(writes.holds(&(90..120)));
    }

    #[test]
    fn a_stream_that_grows_does_not_keep_its_first_age() {
        let mut writes = Writes::default();
        for step in 0..10 {
            writes.add(step * 8..step * 8 + 8, 0);
            if step > 0 {
                writes.take(&(step * 8 - 8..step * 8));
            }
        }
        assert_eq!(writes.oldest(), Some(10));
    }

    #[test]
    fn what_is_on_its_way_is_not_written_yet() {
        let mut writes = Writes::default();
        writes.add(0..8, 0);
        writes.add(8..16, 50);
        writes.add(24..32, 30);
        assert_eq!(format!("{:?}", writes.near(0, 9, 100, u64::MAX, 29)), "[0..8]");
        assert_eq!(format!("{:?}", writes.near(0, 9, 100, u64::MAX, 50)), "[0..16, 24..32]");
        assert_eq!([0, 30, 50].map(|now_ns| writes.next_ns(now_ns)), [Some(30), Some(50), None]);
    }
}
