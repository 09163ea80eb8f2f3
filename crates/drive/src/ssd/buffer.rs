//! What is in the write buffer: sectors, and until when.

use std::collections::BTreeMap;
use std::ops::Range;

/// Of the page that gathers: nobody knows yet.
const OPEN: u64 = u64::MAX;

#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// By first sector: end, and until when.
    pieces: BTreeMap<u64, (u64, u64)>,
    /// What the page that gathers has.
    open: Vec<u64>,
    /// So many pieces are too many: those that were programmed are dropped.
    most: usize,
}

impl Buffer {
    /// Takes sectors into the page that gathers. What was there of them is older.
    pub(super) fn add(&mut self, now_ns: u64, sectors: Range<u64>) {
        if self.pieces.len() >= self.most {
            self.pieces.retain(|_, (_, until_ns)| *until_ns > now_ns);
            self.most = 2 * self.pieces.len() + 1024;
        }
        self.forget(&sectors);
        self.open.push(sectors.start);
        self.pieces.insert(sectors.start, (sectors.end, OPEN));
    }

    pub(super) fn programmed(&mut self, at_ns: u64) {
        for start in self.open.drain(..) {
            if let Some((_, until_ns)) = self.pieces.get_mut(&start).filter(|(_, until_ns)| *until_ns == OPEN) {
                *until_ns = at_ns;
            }
        }
    }

    pub(super) fn holds(&self, now_ns: u64, sectors: &Range<u64>) -> bool {
        let before = self.pieces.range(..=sectors.start).next_back().map_or(sectors.start, |(start, _)| *start);
        let mut at = sectors.start;
        for (&start, &(end, until_ns)) in self.pieces.range(before..sectors.end) {
            if start > at || until_ns <= now_ns {
                break;
            }
            at = at.max(end);
        }
        at >= sectors.end
    }

    fn forget(&mut self, sectors: &Range<u64>) {
        let before = self.pieces.range(..sectors.start).next_back().map_or(sectors.start, |(start, _)| *start);
        let touched: Vec<u64> = self.pieces.range(before..sectors.end).map(|(start, _)| *start).collect();
        for start in touched {
            let Some(&(end, until_ns)) = self.pieces.get(&start).filter(|(end, _)| *end > sectors.start) else {
                continue;
            };
            self.pieces.remove(&start);
            if start < sectors.start {
                self.pieces.insert(start, (sectors.start, until_ns));
            }
            if end > sectors.end {
                self.pieces.insert(sectors.end, (end, until_ns));
                if until_ns == OPEN {
                    self.open.push(sectors.end);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Buffer;

    #[test]
    fn sectors_are_there_until_their_page_is_programmed() {
        let mut buffer = Buffer::default();
        buffer.add(0, 0..8);
        buffer.add(0, 8..16);
        assert!(buffer.holds(u64::MAX - 1, &(3..12)) && !buffer.holds(0, &(3..17)));
        buffer.programmed(100);
        assert!(buffer.holds(99, &(0..16)) && !buffer.holds(100, &(0..8)));
        // The middle is written again: only that is newer.
        buffer.add(50, 4..10);
        assert!(buffer.holds(99, &(0..16)) && buffer.holds(100, &(4..10)) && !buffer.holds(100, &(4..11)));
        // A part of the page that gathers is written again: it leaves with the rest.
        buffer.add(50, 5..6);
        buffer.programmed(200);
        assert!(buffer.holds(199, &(4..10)) && !buffer.holds(200, &(6..10)) && !buffer.holds(200, &(5..6)));
        assert!(!buffer.holds(0, &(100..101)));
    }
}
