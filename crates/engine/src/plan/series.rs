//! When the files of a group are due to be fsynced, one after the other.
//!
//! The group's threads share one count: after so many operations, if any of them writes, every file is due once, and
//! no thread begins another operation before all of them have been given out. Each of these fsyncs is a piece of work
//! like an operation, taken by whichever thread comes next (sysbench). What is done in which order then depends on
//! nothing but the operations, whatever the number of threads.

use crossbeam_utils::CachePadded;
use fstone_model::workload::FsyncPolicy;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const MOST_OPERATIONS: u64 = SINCE;

const SINCE: u64 = (1 << 31) - 1;
const DIRTY: u64 = 1 << 31;
const FILE_SHIFT: u32 = 32;

/// The count: operations since the last series (31 bits), whether one of them writes, and the next file (32 bits).
#[derive(Debug)]
pub(crate) struct Series {
    /// How many operations are between two fsyncs, and between two fdatasyncs, which are due where no fsync is; 0 for none.
    every: u64,
    data_every: u64,
    /// After how many operations what is due begins anew.
    cycle: u64,
    counts_writes: bool,
    state: CachePadded<AtomicU64>,
}

impl Series {
    pub(crate) fn new(policy: &FsyncPolicy) -> Self {
        let every = policy.every_operations.min(MOST_OPERATIONS);
        Self {
            every,
            data_every: policy.data_every,
            cycle: cycle_of(policy).unwrap_or(every.max(1)),
            counts_writes: policy.counts_writes,
            state: CachePadded::default(),
        }
    }

    /// The file to fsync before anything else is done, as a number below `files`, and whether an fdatasync will do.
    pub(crate) fn due(&self, files: u64) -> Option<(u64, bool)> {
        let mut state = self.state.load(Ordering::Relaxed);
        while let Some(data) = self.is_due(state) {
            let file = state >> FILE_SHIFT;
            let next = if file + 1 < files { state + (1 << FILE_SHIFT) } else { state & SINCE };
            match self.state.compare_exchange_weak(state, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return (file < files).then_some((file, data)),
                Err(seen) => state = seen,
            }
        }
        None
    }

    #[inline]
    fn is_due(&self, state: u64) -> Option<bool> {
        if state & DIRTY == 0 {
            return None;
        }
        let since = state & SINCE;
        if since == 0 {
            return Some(self.every == 0);
        }
        if self.data_every == 0 {
            return None;
        }
        match (since.is_multiple_of(self.every), since.is_multiple_of(self.data_every)) {
            (true, _) => Some(false),
            (false, true) => Some(true),
            (false, false) => None,
        }
    }

    /// Counts an operation; `false` when a file is to be fsynced first.
    pub(crate) fn begin(&self, writes: bool) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while self.is_due(state).is_none() {
            if self.counts_writes && !writes {
                return true;
            }
            let since = ((state & SINCE) + 1) % self.cycle;
            let next = since | (state & DIRTY) | if writes { DIRTY } else { 0 };
            match self.state.compare_exchange_weak(state, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(seen) => state = seen,
            }
        }
        false
    }
}

/// After how many operations fsyncs and fdatasyncs fall together again; `None` where there are no such fsyncs, or it is more than
/// [`MOST_OPERATIONS`].
pub(crate) fn cycle_of(policy: &FsyncPolicy) -> Option<u64> {
    let (every, data) = (policy.every_operations, policy.data_every);
    let (mut greatest, mut rest) = (every, data);
    while rest > 0 {
        (greatest, rest) = (rest, greatest % rest);
    }
    let cycle = if every == 0 || data == 0 { every.max(data) } else { (every / greatest.max(1)).saturating_mul(data) };
    (1..=MOST_OPERATIONS).contains(&cycle).then_some(cycle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every(every_operations: u64) -> Series {
        Series::new(&FsyncPolicy { every_operations, ..FsyncPolicy::default() })
    }

    /// What fio 3.33 does for fsync=4 and fdatasync=6, as strace shows it.
    #[test]
    fn fsyncs_and_fdatasyncs_are_due_side_by_side() {
        let policy = FsyncPolicy { every_operations: 4, data_every: 6, counts_writes: true, ..FsyncPolicy::default() };
        let series = Series::new(&policy);
        let mut calls = Vec::new();
        for write in 1..=28 {
            // What only reads is not counted.
            assert!(series.begin(true) && (write % 2 == 0 || series.begin(false)));
            while let Some((_, data)) = series.due(1) {
                calls.push((write, data));
            }
        }
        let (fsync, data) = (false, true);
        let wanted = [
            (4, fsync),
            (6, data),
            (8, fsync),
            (12, fsync),
            (16, fsync),
            (18, data),
            (20, fsync),
            (24, fsync),
            (28, fsync),
        ];
        assert_eq!(calls, wanted);
        assert_eq!(cycle_of(&policy), Some(12));
        assert_eq!(cycle_of(&FsyncPolicy { every_operations: 999_999, data_every: 1_000_000, ..policy }), None);
    }

    #[test]
    fn every_file_is_due_once_after_so_many_operations() {
        let series = every(3);
        for _ in 0..2 {
            assert_eq!(series.due(2), None);
            // One write among three operations is enough.
            assert!(series.begin(false) && series.begin(true) && series.begin(false));
            assert!(!series.begin(true));
            assert_eq!((series.due(2), series.due(2), series.due(2)), (Some((0, false)), Some((1, false)), None));
        }
        // Nothing was written, so nothing is due.
        assert!((0..10).all(|_| series.begin(false)));
        assert_eq!(series.due(2), None);
    }

    #[test]
    fn without_files_nothing_is_due() {
        let series = every(1);
        assert!(series.begin(true));
        assert_eq!(series.due(0), None);
        assert!(series.begin(true));
    }
}
