//! What a disk was asked to do, exactly.

use super::fault::Operation;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskCounters {
    pub reads: u64,
    pub read_bytes: u64,
    /// Write requests, write-zeroes included.
    pub writes: u64,
    pub write_bytes: u64,
    pub flushes: u64,
    pub discards: u64,
    pub discard_bytes: u64,
    /// Time from arrival to completion of all reads, nanoseconds.
    pub read_ns: u64,
    pub write_ns: u64,
    pub flush_ns: u64,
    pub injected_errors: u64,
    pub stalled: u64,
    /// Requests that failed because the host could not do them; the first reason is in `host_error`.
    pub host_errors: u64,
    pub guest_errors: u64,
    /// What the host said first ("No space left on device").
    pub host_error: Option<String>,
    /// The guest switched its write cache off: every write was made durable by itself.
    pub write_through: bool,
}

impl DiskCounters {
    pub(crate) const fn arrived(&mut self, operation: Operation, bytes: u64) {
        match operation {
            Operation::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Operation::Write => {
                self.writes += 1;
                self.write_bytes += bytes;
            }
            Operation::Flush => self.flushes += 1,
            Operation::Discard => {
                self.discards += 1;
                self.discard_bytes += bytes;
            }
        }
    }

    pub(crate) const fn completed(&mut self, operation: Operation, took_ns: u64) {
        match operation {
            Operation::Read => self.read_ns += took_ns,
            Operation::Write => self.write_ns += took_ns,
            Operation::Flush => self.flush_ns += took_ns,
            Operation::Discard => {}
        }
    }

    /// What happened since an earlier look at the same disk; nothing where the two looks are the wrong way round, as a guest that
    /// names its marks wrongly can have it.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            writes: self.writes.saturating_sub(earlier.writes),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
            flushes: self.flushes.saturating_sub(earlier.flushes),
            discards: self.discards.saturating_sub(earlier.discards),
            discard_bytes: self.discard_bytes.saturating_sub(earlier.discard_bytes),
            read_ns: self.read_ns.saturating_sub(earlier.read_ns),
            write_ns: self.write_ns.saturating_sub(earlier.write_ns),
            flush_ns: self.flush_ns.saturating_sub(earlier.flush_ns),
            injected_errors: self.injected_errors.saturating_sub(earlier.injected_errors),
            stalled: self.stalled.saturating_sub(earlier.stalled),
            host_errors: self.host_errors.saturating_sub(earlier.host_errors),
            guest_errors: self.guest_errors.saturating_sub(earlier.guest_errors),
            host_error: self.host_error.clone(),
            write_through: self.write_through,
        }
    }
}

/// Marks older than this many are forgotten. A trial has two for each of its steps, one for each state of a power cut, and one
/// for each 5 ms of a load that is watched: five minutes, in some 10 MB.
const KEPT_MARKS: usize = 1 << 16;

/// The counts as they were each time that the guest asked for the disk's name. The answer names the mark, so a guest
/// can tell between which two of its requests an interval began or ended, however late the host hears of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks {
    /// How many there were before the first one kept.
    forgotten: u64,
    kept: std::collections::VecDeque<DiskCounters>,
}

impl Marks {
    /// Sets one and gives its number.
    pub(crate) fn set(&mut self, counters: DiskCounters) -> u64 {
        if self.kept.len() == KEPT_MARKS {
            self.kept.pop_front();
            self.forgotten += 1;
        }
        self.kept.push_back(counters);
        self.forgotten + self.kept.len() as u64 - 1
    }

    pub(crate) fn get(&self, number: u64) -> Option<DiskCounters> {
        let index = usize::try_from(number.checked_sub(self.forgotten)?).ok()?;
        self.kept.get(index).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_marks_are_forgotten_and_numbers_go_on() {
        let mut marks = Marks::default();
        let counters = |reads| DiskCounters { reads, ..DiskCounters::default() };
        for number in 0..KEPT_MARKS as u64 + 2 {
            assert_eq!(marks.set(counters(number)), number);
        }
        assert_eq!(marks.get(1), None);
        assert_eq!(marks.get(2), Some(counters(2)));
        assert_eq!(marks.get(KEPT_MARKS as u64 + 1), Some(counters(KEPT_MARKS as u64 + 1)));
        assert_eq!(marks.get(KEPT_MARKS as u64 + 2), None);
    }
}
