//! What a load of stamped data wrote last to each place of its files. A filesystem that loses a write gives an older state
//! back, whose stamps are in order: only who remembers the last generation can tell.

use super::stamp::{self, Expected, Mismatch, UNIT};
use crate::random::scatter;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Parts with a lock of their own, so that threads seldom wait for each other.
const PARTS: u64 = 64;

/// File and offset of a run's first byte.
type Start = (u64, u64);

#[derive(Debug, Clone, Copy)]
struct Run {
    end: u64,
    expected: Expected,
}

/// The states of all places, in runs: about 50 bytes of memory for each write that was not overwritten whole.
#[derive(Debug)]
pub(crate) struct Ledger {
    parts: Vec<Mutex<BTreeMap<Start, Run>>>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { parts: (0..PARTS).map(|_| Mutex::default()).collect() }
    }
}

impl Ledger {
    fn part(&self, file: u64) -> MutexGuard<'_, BTreeMap<Start, Run>> {
        let part = &self.parts[(scatter(file) % PARTS) as usize];
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn created(&self, file: u64) {
        assign(&mut self.part(file), file, 0, u64::MAX, Expected::Nothing);
    }

    pub(crate) fn wrote(&self, file: u64, offset: u64, length: u64, generation: u64) {
        assign(&mut self.part(file), file, offset, offset + length, Expected::Generation(generation));
    }

    /// A write failed, and may have changed any part of its place.
    pub(crate) fn unsure(&self, file: u64, offset: u64, length: u64) {
        assign(&mut self.part(file), file, offset, offset + length, Expected::Anything);
    }

    /// Begin and end of the first piece between two places that was written in one go, of this generation or a later one.
    pub(crate) fn written(&self, file: u64, from: u64, until: u64, since: u64) -> Option<(u64, u64)> {
        if from >= until {
            return None;
        }
        let part = self.part(file);
        // One that begins before may reach into it.
        let before = part.range(..(file, from)).next_back().filter(|((of, _), run)| *of == file && run.end > from);
        let inside = part.range((file, from)..(file, until));
        let is_it = |run: &Run| matches!(run.expected, Expected::Generation(generation) if generation >= since);
        let (start, run) = before.into_iter().chain(inside).find(|(_, run)| is_it(run))?;
        Some((start.1.max(from), run.end.min(until)))
    }

    /// Where a file ends at the earliest: the end of the last write.
    pub(crate) fn end(&self, file: u64) -> u64 {
        let part = self.part(file);
        let is_it = |run: &&Run| matches!(run.expected, Expected::Generation(_));
        part.range((file, 0)..=(file, u64::MAX)).rev().map(|(_, run)| run).find(is_it).map_or(0, |run| run.end)
    }

    /// Checks a block read from `offset`, a multiple of [`UNIT`]. The error says where in the block the first wrong unit is.
    pub(crate) fn check(&self, block: &[u8], file: u64, offset: u64) -> Result<(), (usize, Mismatch)> {
        let part = self.part(file);
        for (number, unit) in block.chunks(UNIT).enumerate() {
            let start = number * UNIT;
            let at = offset + start as u64;
            let run = part.range(..=(file, at)).next_back();
            // Of files that were there before the load, it knows only that they are stamped.
            let expected = match run {
                Some(((of, _), run)) if *of == file && run.end > at => run.expected,
                _ => Expected::Stamped,
            };
            stamp::check(unit, file, at, expected).map_err(|mismatch| (start, mismatch))?;
        }
        Ok(())
    }
}

fn assign(runs: &mut BTreeMap<Start, Run>, file: u64, start: u64, end: u64, expected: Expected) {
    let mut behind = None;
    if let Some(((of, _), run)) = runs.range_mut(..(file, start)).next_back()
        && *of == file
        && run.end > start
    {
        behind = (run.end > end).then_some(*run);
        run.end = start;
    }
    let inside: Vec<Start> = runs.range((file, start)..(file, end)).map(|(start, _)| *start).collect();
    for start in inside {
        behind = runs.remove(&start).filter(|run| run.end > end).or(behind);
    }
    if let Some(run) = behind {
        runs.insert((file, end), run);
    }
    runs.insert((file, start), Run { end, expected });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_last_generation_is_right() {
        let ledger = Ledger::default();
        let written = |generation| {
            let mut block = [0; 2 * UNIT];
            stamp::write(&mut block, 7, 0, generation);
            block
        };
        assert_eq!(ledger.check(&written(5), 7, 0), Ok(()), "what was there before may have any");
        ledger.created(7);
        assert_eq!(ledger.check(&[0; UNIT], 7, 0), Ok(()));
        assert_eq!(ledger.check(&written(5), 7, 0), Err((0, Mismatch::Unwritten)));
        ledger.wrote(7, 0, 2 * UNIT as u64, 5);
        assert_eq!(ledger.check(&written(5), 7, 0), Ok(()));
        ledger.wrote(7, UNIT as u64, UNIT as u64, 6);
        assert_eq!(ledger.check(&written(5), 7, 0), Err((UNIT, Mismatch::Outdated)));
        assert_eq!(ledger.check(&written(6), 7, 0), Err((0, Mismatch::Outdated)));
        ledger.unsure(7, 0, 2 * UNIT as u64);
        assert_eq!(ledger.check(&written(5), 7, 0), Ok(()));
        assert_eq!(ledger.check(&written(6), 7, 0), Ok(()));
    }

    #[test]
    fn pieces_that_were_written_come_in_order() {
        let ledger = Ledger::default();
        ledger.created(7);
        for (offset, length, generation) in [(0, 64, 1), (16, 8, 5), (24, 8, 6), (100, 50, 7)] {
            ledger.wrote(7, offset, length, generation);
        }
        let pieces = |from, until, since| -> Vec<(u64, u64)> {
            std::iter::successors(ledger.written(7, from, until, since), |(_, end)| {
                ledger.written(7, *end, until, since)
            })
            .collect()
        };
        assert_eq!(pieces(0, 1000, 5), [(16, 24), (24, 32), (100, 150)]);
        assert_eq!(pieces(0, 1000, 0), [(0, 16), (16, 24), (24, 32), (32, 64), (100, 150)]);
        assert_eq!(pieces(20, 120, 5), [(20, 24), (24, 32), (100, 120)]);
        assert_eq!(pieces(0, 1000, 8), []);
        assert_eq!(ledger.written(8, 0, 1000, 0), None);
    }

    proptest! {
        #[test]
        fn runs_are_what_was_assigned_last(writes in prop::collection::vec((0u64..2, 0u64..40, 1u64..20), 0..60)) {
            let mut runs = BTreeMap::new();
            let mut model = vec![None; 120];
            for (generation, (file, start, length)) in (1..).zip(writes) {
                assign(&mut runs, file, start, start + length, Expected::Generation(generation));
                model[(file * 60 + start) as usize..(file * 60 + start + length) as usize].fill(Some(generation));
            }
            for (place, expected) in (0u64..).zip(&model) {
                let (file, at) = (place / 60, place % 60);
                let found = runs.range(..=(file, at)).next_back().filter(|((of, _), run)| *of == file && run.end > at);
                let found = found.map(|(_, run)| run.expected);
                prop_assert_eq!(found, expected.map(Expected::Generation));
            }
        }
    }
}
