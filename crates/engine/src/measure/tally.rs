//! What one thread counts during one point of the series.

use fstone_model::Histogram;
use fstone_model::histogram::{BUCKETS, bucket_of};
use fstone_model::load::{OverTime, ThreadReport};

/// Counts per bucket of one point of the series. Points are handed over every minute or more often, so 32 bits are
/// enough; a thread that performs four actions thus needs at most 70 KiB, and the kernel lends only the pages used.
#[derive(Debug)]
pub(crate) struct Latencies {
    counts: Option<Box<[u32]>>,
    pub(super) sum_ns: u64,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: None, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Latencies {
    #[inline(always)]
    pub(crate) fn record(&mut self, latency_ns: u64) {
        let counts = self.counts.get_or_insert_with(zeros);
        counts[bucket_of(latency_ns)] += 1;
        self.sum_ns += latency_ns;
        // New extremes are rare: two branches cost less than two stores.
        if latency_ns < self.min_ns {
            self.min_ns = latency_ns;
        }
        if latency_ns > self.max_ns {
            self.max_ns = latency_ns;
        }
    }

    /// Adds what was recorded since the last [`Self::drain`] to another sum.
    fn add_to(&self, whole: &mut ThreadSum) {
        if self.is_empty() {
            return;
        }
        whole.sum_ns += u128::from(self.sum_ns);
        whole.min_ns = whole.min_ns.min(self.min_ns);
        whole.max_ns = whole.max_ns.max(self.max_ns);
        for bucket in bucket_of(self.min_ns)..=bucket_of(self.max_ns) {
            whole.counts[bucket] += u64::from(self.counts.as_ref().map_or(0, |counts| counts[bucket]));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.min_ns > self.max_ns
    }

    /// Calls `each` with every bucket that is not empty, in order, and starts anew.
    pub(super) fn drain(&mut self, mut each: impl FnMut(usize, u32)) {
        if let Some(counts) = self.counts.as_mut().filter(|_| self.min_ns <= self.max_ns) {
            for bucket in bucket_of(self.min_ns)..=bucket_of(self.max_ns) {
                let count = std::mem::take(&mut counts[bucket]);
                if count > 0 {
                    each(bucket, count);
                }
            }
        }
        (self.sum_ns, self.min_ns, self.max_ns) = (0, u64::MAX, 0);
    }
}

#[cold]
fn zeros() -> Box<[u32]> {
    vec![0; BUCKETS].into_boxed_slice()
}

/// Points without operations that are sampled at once: a day of half seconds.
const MOST_IDLE: u64 = 172_800;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    /// Data system calls.
    pub(crate) calls: u64,
}

impl Done {
    pub(crate) const fn one_read(bytes: usize) -> Self {
        Self { read_bytes: bytes as u64, written_bytes: 0, calls: 1 }
    }
}

//
// In another order than in [`Done`]: side by side they would be added two at a time, and loading as a pair what was
// just stored one by one holds the processor up for longer than all the additions take.
#[derive(Debug, Default)]
pub(crate) struct ActionTally {
    pub(crate) read_bytes: u64,
    pub(crate) invocations: u64,
    pub(crate) written_bytes: u64,
    pub(crate) transactions: u64,
    pub(crate) calls: u64,
    pub(crate) errors: u64,
    pub(crate) missed: u64,
    pub(crate) latency: Latencies,
    /// What an operation of this action usually does, and how many transactions it is.
    usual: (Done, u64),
    /// How many did that and are not in the counts above yet: of the fastest operations five additions would be a tenth.
    usually: u64,
}

impl ActionTally {
    pub(crate) fn expect(&mut self, done: Done, transactions: u64) {
        self.settle();
        self.usual = (done, transactions);
    }

    #[inline(always)]
    pub(crate) fn is_usual(&self, done: Done) -> bool {
        done.calls > 0 && self.usual.0 == done
    }

    #[inline(always)]
    pub(crate) fn completed_as_usual(&mut self, latency_ns: u64) {
        self.usually += 1;
        self.latency.record(latency_ns);
    }

    /// Brings the counts up to date.
    pub(crate) fn settle(&mut self) {
        let (many, (done, transactions)) = (std::mem::take(&mut self.usually), self.usual);
        self.invocations += many;
        self.transactions += many * transactions;
        self.read_bytes += many * done.read_bytes;
        self.written_bytes += many * done.written_bytes;
        self.calls += many * done.calls;
    }

    #[inline(always)]
    pub(crate) fn completed(&mut self, done: Done, transactions: u64, latency_ns: u64) {
        self.invocations += 1;
        self.transactions += transactions;
        self.read_bytes += done.read_bytes;
        self.written_bytes += done.written_bytes;
        self.calls += done.calls;
        self.latency.record(latency_ns);
    }
}

fstone_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[repr(u32)]
    pub(crate) enum Call: name, ALL {
        Open => "open",
        Create => "create",
        Read => "read",
        Write => "write",
        Close => "close",
        Unlink => "unlink",
        Stat => "stat",
        Fsync => "fsync",
        Fdatasync => "fdatasync",
        SyncFileRange => "sync_file_range",
        Syncfs => "syncfs",
        Rename => "rename",
        Link => "link",
        Symlink => "symlink",
        Mkdir => "mkdir",
        Rmdir => "rmdir",
        Readdir => "readdir",
        Chmod => "chmod",
        Utimens => "utimens",
        Setxattr => "setxattr",
        Getxattr => "getxattr",
        Truncate => "truncate",
        Fallocate => "fallocate",
        Discard => "BLKDISCARD",
        CopyFileRange => "copy_file_range",
        Reflink => "reflink",
        Mmap => "mmap",
        Msync => "msync",
        Munmap => "munmap",
        /// Choosing a file: no system call, but it can fail when there is none.
        Choose => "choose a file",
        Verify => "verify",
    }
}

impl Call {
    pub(crate) const COUNT: usize = Self::ALL.len();

    pub(crate) fn is_by_descriptor(self) -> bool {
        match self {
            Self::Read
            | Self::Write
            | Self::Fsync
            | Self::Fdatasync
            | Self::SyncFileRange
            | Self::Setxattr
            | Self::Getxattr
            | Self::Truncate
            | Self::Fallocate
            | Self::Discard
            | Self::Mmap
            | Self::Msync
            | Self::Munmap
            | Self::Verify => true,
            Self::Open
            | Self::Create
            | Self::Close
            | Self::Unlink
            | Self::Stat
            | Self::Syncfs
            | Self::Rename
            | Self::Link
            | Self::Symlink
            | Self::Mkdir
            | Self::Rmdir
            | Self::Readdir
            | Self::Chmod
            | Self::Utimens
            | Self::CopyFileRange
            | Self::Reflink
            | Self::Choose => false,
        }
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }
}

#[derive(Debug)]
pub(crate) struct ThreadTally {
    pub(crate) actions: Vec<ActionTally>,
    /// By [`Call`]; filled only in groups whose operations are made of several calls.
    pub(crate) calls: Vec<Latencies>,
    pub(crate) group_fsyncs: GroupFsyncTally,
}

#[derive(Debug, Default)]
pub(crate) struct GroupFsyncTally {
    pub(crate) periodic: Fsyncs,
    pub(crate) at_end: Fsyncs,
    /// From the begin of an operation that wrote to the end of the fsync after it.
    pub(crate) commits: Latencies,
}

#[derive(Debug, Default)]
pub(crate) struct Fsyncs {
    pub(crate) count: u64,
    pub(crate) latency: Latencies,
}

impl Fsyncs {
    pub(crate) fn record(&mut self, latency_ns: u64) {
        self.count += 1;
        self.latency.record(latency_ns);
    }
}

/// What one thread did in the whole of a phase.
#[derive(Debug)]
pub(crate) struct ThreadSum {
    counts: Box<[u64]>,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    /// Bytes and operations of the present point of the series: of reads and of writes.
    point: [(u64, u64); 2],
    /// The same until now.
    moved: [(u64, u64); 2],
    over_time: [OverTime; 2],
}

impl Default for ThreadSum {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            point: Default::default(),
            moved: Default::default(),
            over_time: Default::default(),
        }
    }
}

impl ThreadSum {
    /// Takes in what is about to be handed over; periodic fsyncs as well where they count as operations.
    pub(crate) fn add(&mut self, tally: &ThreadTally, fsyncs_count: bool) {
        let fsyncs = fsyncs_count.then_some(&tally.group_fsyncs.periodic.latency);
        for latencies in tally.actions.iter().map(|action| &action.latency).chain(fsyncs) {
            latencies.add_to(self);
        }
        for action in &tally.actions {
            let sums = self.point.iter_mut().zip(&mut self.moved);
            for ((point, moved), bytes) in sums.zip([action.read_bytes, action.written_bytes]) {
                let operations = if bytes > 0 { action.invocations } else { 0 };
                *point = (point.0 + bytes, point.1 + operations);
                *moved = (moved.0 + bytes, moved.1 + operations);
            }
        }
    }

    pub(crate) fn moved(&self) -> [(u64, u64); 2] {
        self.moved
    }

    /// The present point of the series is over, and so many follow it in which the thread was to work and did nothing. It was at work
    /// in all of the present one (`whole`), or that is no sample. `moves` is whether it reads, and writes, at all.
    pub(crate) fn point_over(&mut self, seconds: f64, whole: bool, idle: u64, moves: [bool; 2]) {
        let points = std::mem::take(&mut self.point);
        for ((over_time, (bytes, operations)), _) in
            self.over_time.iter_mut().zip(points).zip(moves).filter(|(_, moves)| *moves)
        {
            let mut take = |bytes: u64, operations: u64| {
                over_time.bytes.take(bytes as f64 / seconds);
                over_time.operations.take(operations as f64 / seconds);
            };
            if whole {
                take(bytes, operations);
            }
            (0..idle.min(MOST_IDLE)).for_each(|_| take(0, 0));
        }
    }

    pub(crate) fn report(&self, group: &str) -> ThreadReport {
        let latency = Histogram::from_counts(&self.counts, self.sum_ns, self.min_ns, self.max_ns);
        ThreadReport {
            group: group.to_owned(),
            operations: latency.count(),
            busy_ns: u64::try_from(latency.sum_ns()).unwrap_or(u64::MAX),
            latency,
            over_time: self.over_time,
            ..ThreadReport::default()
        }
    }
}

impl ThreadTally {
    pub(crate) fn new(actions: usize) -> Self {
        Self {
            actions: (0..actions).map(|_| ActionTally::default()).collect(),
            calls: (0..Call::COUNT).map(|_| Latencies::default()).collect(),
            group_fsyncs: GroupFsyncTally::default(),
        }
    }

    /// Has the actions of another, and expects the same of them. It must be empty.
    pub(super) fn become_like(&mut self, other: &Self) {
        self.actions.resize_with(other.actions.len(), ActionTally::default);
        for (action, other) in self.actions.iter_mut().zip(&other.actions) {
            action.usual = other.usual;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draining_gives_everything_once() {
        let mut latencies = Latencies::default();
        for value in [0, 5, 5, 1_000_000, u64::MAX >> 1] {
            latencies.record(value);
        }
        let mut seen = Vec::new();
        latencies.drain(|bucket, count| seen.push((bucket, count)));
        assert_eq!(seen, [(0, 1), (5, 2), (bucket_of(1_000_000), 1), (BUCKETS - 1, 1)]);
        latencies.drain(|_, _| panic!("nothing is left"));
        latencies.record(7);
        latencies.drain(|bucket, count| assert_eq!((bucket, count), (7, 1)));
    }

    #[test]
    fn calls_are_listed_in_their_own_order() {
        for (index, call) in Call::all().enumerate() {
            assert_eq!(index, call as usize);
            assert!(!call.name().is_empty());
        }
    }
}
