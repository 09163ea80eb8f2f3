//! Phases, and the groups of threads that run in them.

use super::actions::Actions;
use super::io::{FsyncPolicy, IoOverrides, OpenPolicy};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The most threads of a phase: the engine counts them in 12 bits of a shared word.
pub const MAXIMUM_THREADS: u64 = 4000;

/// A stretch of the load with its own threads and end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    pub name: String,
    /// Whether its operations are in the figures. Ageing and warm-up are not.
    pub measured: bool,
    /// Run side by side.
    pub groups: Vec<ThreadGroup>,
    /// When it ends; at the latest when every group has reached its own stop.
    pub stop: Stop,
    /// In a load of many ranks: rank r works on the files of rank r + this, in the state in which their last phase left them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rank_shift: u32,
    /// The same, on the files of a rank that is this many nodes further on, or this many ranks if all are on one node.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub node_shift: u32,
    /// Whether everything that is dirty on the machine is written back before it begins (sync).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub syncs: bool,
    /// Which caches of the machine's kernel are dropped then, by the numbers of vm.drop_caches: 1 for data, 2 for names and inodes, 3 for
    /// both; 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drops_caches: u32,
}

impl Phase {
    pub fn new(name: impl Into<String>, groups: Vec<ThreadGroup>, stop: Stop) -> Self {
        let name = name.into();
        Self { name, measured: true, groups, stop, rank_shift: 0, node_shift: 0, syncs: false, drops_caches: 0 }
    }

    /// A phase whose operations are in no figures.
    pub fn unmeasured(name: impl Into<String>, groups: Vec<ThreadGroup>, stop: Stop) -> Self {
        Self { measured: false, ..Self::new(name, groups, stop) }
    }

    /// Time that it, or each of its groups, is limited to.
    pub fn time_limit(&self) -> Option<Duration> {
        let of_groups: Option<Vec<Duration>> =
            self.groups.iter().map(|group| Some(group.start_delay + group.stop.time?)).collect();
        self.stop.time.into_iter().chain(of_groups.and_then(|all| all.into_iter().max())).min()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

const fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_one(number: &u64) -> bool {
    *number == 1
}

/// When a phase or a group of threads ends: at whichever comes first of those given. Threads finish the operation
/// they are in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    pub time: Option<Duration>,
    /// After this many operations of all its threads together.
    pub operations: Option<u64>,
    /// After this many bytes moved by all its threads together.
    pub bytes: Option<u64>,
    /// When every thread has gone through its actions once (a sequence, or every file).
    pub once_through: bool,
    /// When the filesystem is used to this share, 0 to 1 (FFSB ageing): the one that holds the fileset of the group's
    /// first action.
    pub utilization: Option<f64>,
    /// Of a phase: as soon as one of its threads is done by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_done: bool,
    /// For a phase that ends by time: when the time is over, groups continue until each has performed as many operations as the group of
    /// the rank that performed most (a stonewall that wears out).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wear_out: bool,
    /// When the filesystem is full: a write that finds no room (ENOSPC, EDQUOT) ends it and is no error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

/// Threads that do the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadGroup {
    pub name: String,
    pub threads: u32,
    pub actions: Actions,
    #[serde(default, skip_serializing_if = "IoOverrides::is_empty")]
    pub io: IoOverrides,
    pub open: OpenPolicy,
    /// Pause of a thread after each operation, or after as many operations as [`Self::think_every`] says.
    pub think_time: Duration,
    /// Operations of a thread between two pauses, at least 1. Requests in flight complete before a pause begins.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub think_every: u64,
    /// A pause also begins when the last one has been over for so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_after: Option<Duration>,
    /// How long the thread computes, at the begin of each pause, before it sleeps.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub think_spin: Duration,
    /// Target rate of the whole group in operations per second; latency then counts from the intended start.
    pub rate_per_second: Option<f64>,
    /// Bytes per second wanted of the whole group, in place of operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// Of a mix, in place of a rate of all: one of the operations that do not write, and one of those that write. Where one of the two has
    /// none, it is performed whenever the other is not due.
    #[serde(default, skip_serializing_if = "no_rates")]
    pub direction_rates: [Option<Rate>; 2],
    #[serde(default, skip_serializing_if = "Arrivals::is_even")]
    pub arrivals: Arrivals,
    /// Whether the clean pages of a file in the page cache are dropped when the file is opened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invalidate: bool,
    /// The same of all files that the thread keeps open, again whenever it has moved so many bytes: with the bytes of a pass over them
    /// each pass begins cold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalidate_every: Option<u64>,
    #[serde(default, skip_serializing_if = "Advice::is_none")]
    pub advice: Advice,
    #[serde(default, skip_serializing_if = "Region::is_whole")]
    pub region: Region,
    /// How long after the start of the phase its threads start. Its own stop counts from there.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub start_delay: Duration,
    /// The CPUs its threads run on, by the kernel's numbers; empty for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    #[serde(default, skip_serializing_if = "CpuPolicy::is_shared")]
    pub cpu_policy: CpuPolicy,
    pub fsync: FsyncPolicy,
    /// An end of its own, before the phase's.
    pub stop: Stop,
    /// Whether the report has a series of each of its actions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_series: bool,
    #[serde(default, skip_serializing_if = "Batches::is_usual")]
    pub batches: Batches,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_target: Option<LatencyTarget>,
    /// Whether its threads go on where those of the group of its name ended in the phase before, which does the same: with their cursors, the
    /// random orders of their blocks, and their tours. Operations and bytes of its stop count from the begin of that one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// In which order each thread goes through the files of all its filesets, if it does so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tour: Option<Tour>,
    /// Groups with the same one count together where a step asks what all have done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// Operations on a file before the tour goes on to another one; at least 1. Of a tour [`Tour::OneByOne`] it has no effect.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub tour_operations: u64,
    /// Files that a thread has open at once, at least 1: on its tour it opens a file for the first block of it, begins no other while so many are
    /// not finished, and closes each when it is. `None` means that all stay open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tour_open: Option<u64>,
    /// Of one thread with a sequence of two actions: so many operations of the first, then as many of the second, and what is left of these when its
    /// `operations` come to an end. `None` means that the two alternate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_rate: Option<LeastRate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
    /// Errors after which its threads go on, whatever else the load does after one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goes_on_after: Vec<Tolerated>,
}

/// The part of an operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailedPart {
    Read,
    /// Also what allocates, discards and makes durable.
    Write,
    Verify,
}

impl FailedPart {
    /// Of a call, as reports name it; `None` of one that moves nothing.
    pub fn of(call: &str) -> Option<Self> {
        match call {
            "read" => Some(Self::Read),
            "write" | "fallocate" | "BLKDISCARD" | "fsync" | "fdatasync" | "sync_file_range" => Some(Self::Write),
            "verify" => Some(Self::Verify),
            _ => None,
        }
    }
}

/// An error after which a thread goes on. It is recorded like others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tolerated {
    pub part: FailedPart,
    /// 0 for a failed verification, which has none.
    pub errno: i32,
}

impl Tolerated {
    pub fn covers(&self, call: &str, errno: i32) -> bool {
        FailedPart::of(call) == Some(self.part) && (self.part == FailedPart::Verify || errno == self.errno)
    }
}

/// A target rate, per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    Operations(f64),
    Bytes(u64),
}

fn no_rates(rates: &[Option<Rate>; 2]) -> bool {
    *rates == [None; 2]
}

/// What each thread has to move per second, in its reads and in its writes if it has them. From its third second on, one that falls below in an
/// interval ends the group with an error (EIO).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeastRate {
    /// Bytes per second; 0 for any.
    pub bytes: u64,
    /// Operations per second; 0 for any.
    pub operations: u64,
    /// The interval.
    pub every: Duration,
    /// Bytes and operations of writes, where theirs differ from those of reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_writes: Option<(u64, u64)>,
}

impl LeastRate {
    /// Bytes and operations of one direction.
    pub fn of(&self, writes: bool) -> (u64, u64) {
        self.of_writes.filter(|_| writes).unwrap_or((self.bytes, self.operations))
    }
}

/// A group of one thread ends when its rate is steady: a sample is taken each second, and those of a window are judged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// Whether it is bytes per second, or operations.
    pub bytes: bool,
    /// Whether the slope of the line through the samples has to be small (per second), or the largest distance of any of them to their mean.
    pub slope: bool,
    /// It is below this.
    pub limit: f64,
    /// Whether the limit is a share of the mean, 0 to 1.
    pub relative: bool,
    /// In whole seconds.
    pub window: Duration,
    /// Time before the first sample.
    pub ramp: Duration,
}

/// The order in which a thread goes through files, each until it is finished: then through those that are left, and when all are finished
/// through all again.
///
/// Its actions are a mix of reads and overwrites of one block each, at random places or by a cursor of the thread. Which file comes next
/// says the tour, in place of their choice; which action, their weights among those on its fileset. They share where they are in a file: a
/// permutation is one for all that have the same grid of places, so that each place comes once, and a cursor goes on behind the last block
/// that any action of its direction, reading or writing, has moved there. What is left of a block at a file's end is left out. A file is finished when the action that is drawn has no block
/// left: a permutation has given each, or a cursor is at the end. If there is an action at random places of the same direction beside the
/// cursor, that goes on in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tour {
    /// Each file in turn.
    InTurn,
    /// Each file to its end before the next.
    OneByOne,
    /// Any that is left, drawn.
    Drawn,
}

/// A latency target: each thread of a group searches for the largest queue depth that meets it, from 1 up to the group's. Groups of
/// the same name in later phases keep to what was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyTarget {
    pub latency: Duration,
    /// Share of the requests that have to keep it, above 0 to 1.
    pub share: f64,
    pub window: Duration,
    /// Whether a thread that has found it continues, and keeps searching. Otherwise all such threads of the phase end together, when
    /// each has kept its depth for a window in which none changed.
    pub follow: bool,
}

/// How a thread that can have several requests in flight submits them, and how it goes on when its queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batches {
    /// Requests that are submitted together, 1 or more; `None` means all that the queue has room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submit: Option<u32>,
    /// It waits until at least so many requests are done; 1 or more.
    pub least: u32,
    /// It submits more when no more than this many are in flight; `None` means as soon as one completes.
    pub refill_at: Option<u32>,
    /// It takes note of at most so many that are done before it goes on, and no fewer than `least`; `None` means of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
}

impl Default for Batches {
    fn default() -> Self {
        Self { submit: None, least: 1, refill_at: None, most: None }
    }
}

impl Batches {
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl ThreadGroup {
    /// Whether its threads go on after an error of this call, whatever else the load does.
    pub fn tolerates(&self, call: &str, errno: i32) -> bool {
        self.goes_on_after.iter().any(|tolerated| tolerated.covers(call, errno))
    }

    /// Threads that do this as fast as they can, with defaults for everything else.
    pub fn new(name: impl Into<String>, threads: u32, actions: Actions) -> Self {
        Self {
            name: name.into(),
            threads,
            actions,
            io: IoOverrides::default(),
            open: OpenPolicy::PerOperation,
            think_time: Duration::ZERO,
            think_every: 1,
            think_after: None,
            think_spin: Duration::ZERO,
            rate_per_second: None,
            bytes_per_second: None,
            direction_rates: [None; 2],
            arrivals: Arrivals::Even,
            invalidate: false,
            invalidate_every: None,
            advice: Advice::None,
            region: Region::Whole,
            start_delay: Duration::ZERO,
            cpus: Vec::new(),
            cpu_policy: CpuPolicy::Shared,
            fsync: FsyncPolicy::default(),
            stop: Stop::default(),
            own_series: false,
            batches: Batches::default(),
            latency_target: None,
            continues: false,
            tour: None,
            process: None,
            tour_operations: 1,
            tour_open: None,
            backlog: None,
            least_rate: None,
            steady: None,
            goes_on_after: Vec::new(),
        }
    }

    pub fn is_paced(&self) -> bool {
        self.rate_per_second.is_some() || self.bytes_per_second.is_some() || !no_rates(&self.direction_rates)
    }

    /// Whether some rate is one of bytes.
    pub fn is_paced_by_bytes(&self) -> bool {
        self.bytes_per_second.is_some()
            || self.direction_rates.iter().flatten().any(|rate| matches!(rate, Rate::Bytes(_)))
    }
}

/// The part of a file that a thread reads and overwrites. Its access pattern stays within it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Region {
    #[default]
    Whole,
    /// Thread t of n has the t-th of n equal parts, which begin at multiples of 4 KiB if they are large enough.
    Split,
    /// Thread t has what begins at `offset_bytes` + t × `step_bytes`.
    At {
        offset_bytes: u64,
        /// How much; to the file's end unless given.
        length_bytes: Option<u64>,
        step_bytes: u64,
    },
    /// Of a load of many ranks: the rank's part of the file, or, split, the thread's part of that.
    OfRank { rank: u32, ranks: u32, split: bool },
}

impl Region {
    fn is_whole(&self) -> bool {
        *self == Self::Whole
    }

    /// Start and length of the part that thread `thread` of `threads` has in a file of this size.
    pub fn of(&self, size: u64, thread: u64, threads: u64) -> (u64, u64) {
        match *self {
            Self::Whole => (0, size),
            Self::Split => part(size, thread, threads),
            Self::OfRank { rank, ranks, split } => {
                let (begin, length) = part(size, u64::from(rank), u64::from(ranks));
                let (within, length) = if split { part(length, thread, threads) } else { (0, length) };
                (begin + within, length)
            }
            Self::At { offset_bytes, length_bytes, step_bytes } => {
                let begin = offset_bytes.saturating_add(step_bytes.saturating_mul(thread)).min(size);
                (begin, length_bytes.unwrap_or(u64::MAX).min(size - begin))
            }
        }
    }
}

/// Begin and length of one of so many equal parts of a file.
fn part(size: u64, number: u64, of: u64) -> (u64, u64) {
    let share = size / of.max(1);
    let share = if share < SPLIT_BYTES { share } else { share / SPLIT_BYTES * SPLIT_BYTES };
    let begin = share * number;
    (begin, if number + 1 == of { size - begin } else { share })
}

const SPLIT_BYTES: u64 = 4096;

/// What the kernel is told of how a file is read (posix_fadvise): it reads further ahead, or not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    #[default]
    None,
    Sequential,
    Random,
}

impl Advice {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// How the operations of a rate follow each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    #[default]
    Even,
    /// Each at a time independent of the others (a Poisson process): the gaps are exponential, with the rate's
    /// mean.
    Poisson,
}

impl Arrivals {
    fn is_even(&self) -> bool {
        *self == Self::Even
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuPolicy {
    #[default]
    Shared,
    /// One: thread t of a group the t-th, beginning again after the last.
    Split,
}

impl CpuPolicy {
    fn is_shared(&self) -> bool {
        *self == Self::Shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_split_file_are_disjoint_and_all_of_it() {
        for size in [0, 1, 7, 4096, 10_000, 100_000, 1 << 20, (1 << 30) + 17] {
            for threads in [1, 2, 3, 7] {
                let mut end = 0;
                for thread in 0..threads {
                    let (begin, length) = Region::Split.of(size, thread, threads);
                    assert_eq!(begin, end, "{size} {thread} of {threads}");
                    assert!(begin % 4096 == 0 || size / threads < 4096);
                    end = begin + length;
                }
                assert_eq!(end, size);
            }
        }
    }

    #[test]
    fn a_region_ends_with_the_file() {
        let region = |length_bytes| Region::At { offset_bytes: 100, length_bytes, step_bytes: 50 };
        assert_eq!(region(Some(50)).of(1000, 2, 4), (200, 50));
        assert_eq!(region(None).of(1000, 2, 4), (200, 800));
        assert_eq!(region(Some(500)).of(260, 2, 4), (200, 60));
        assert_eq!(region(None).of(150, 2, 4), (150, 0));
    }
}
