//! When the files of a group are due to be fsynced, one after the other.
//!
//! The group's threads share one count: after so many operations, if any of them writes, every file is due once, and
//! no thread begins another operation before all of them have been given out. Each of these fsyncs is a piece of work
//! like an operation, taken by whichever thread comes next (sysbench). What is done in which order then depends on
//! nothing but the operations, whatever the number of threads.

use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most operations between two series.
pub(crate) const MOST_OPERATIONS: u64 = SINCE;

const SINCE: u64 = (1 << 31) - 1;
const DIRTY: u64 = 1 << 31;
const FILE_SHIFT: u32 = 32;

/// The count: operations since the last series (31 bits), whether one of them writes, and the next file (32 bits).
#[derive(Debug)]
pub(crate) struct Series {
    every: u64,
    state: CachePadded<AtomicU64>,
}

impl Series {
    /// A series after every so many operations, of which there are at least 1 and at most [`MOST_OPERATIONS`].
    pub(crate) fn new(every: u64) -> Self {
        Self { every: every.clamp(1, MOST_OPERATIONS), state: CachePadded::default() }
    }

    /// The file to fsync before anything else is done, as a number below `files`.
    pub(crate) fn due(&self, files: u64) -> Option<u64> {
        let mut state = self.state.load(Ordering::Relaxed);
        while is_due(state) {
            let file = state >> FILE_SHIFT;
            let next = if file + 1 < files { state + (1 << FILE_SHIFT) } else { 0 };
            match self.state.compare_exchange_weak(state, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return (file < files).then_some(file),
                Err(seen) => state = seen,
            }
        }
        None
    }

    /// Counts an operation; `false` when a file is to be fsynced first.
    pub(crate) fn begin(&self, writes: bool) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while !is_due(state) {
            let since = ((state & SINCE) + 1) % self.every;
            let next = since | (state & DIRTY) | if writes { DIRTY } else { 0 };
            match self.state.compare_exchange_weak(state, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(seen) => state = seen,
            }
        }
        false
    }
}

fn is_due(state: u64) -> bool {
    state & SINCE == 0 && state & DIRTY != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_due_once_after_so_many_operations() {
        let series = Series::new(3);
        for _ in 0..2 {
            assert_eq!(series.due(2), None);
            // One write among three operations is enough.
            assert!(series.begin(false) && series.begin(true) && series.begin(false));
            assert!(!series.begin(true));
            assert_eq!((series.due(2), series.due(2), series.due(2)), (Some(0), Some(1), None));
        }
        // Nothing was written, so nothing is due.
        assert!((0..10).all(|_| series.begin(false)));
        assert_eq!(series.due(2), None);
    }

    #[test]
    fn without_files_nothing_is_due() {
        let series = Series::new(1);
        assert!(series.begin(true));
        assert_eq!(series.due(0), None);
        assert!(series.begin(true));
    }
}
