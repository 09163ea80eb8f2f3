//! The workload file as it is written: its tables and keys. Those that are used in several places are in `action`, `transfer`,
//! `sizes` and `steps`.

use super::{
    action::ActionSurface,
    sizes::SizeSurface,
    steps::StepSurface,
    transfer::{DistributionWord, PatternWord},
    value::Small,
};
use crate::decode::{At, Count, Flag, InPlace, Listed, OrTable, Real, Share, Size, Text, Time, Word, table};
use fstone_model::workload::{
    Advice, Arrivals, CpuPolicy, ErrorPolicy, Existing, FileChoice, FinalSync, IoEngineKind, MAXIMUM_FILES,
    MAXIMUM_THREADS, OpenPolicy, OpenSync, PaceUnit, Sharing, Tour, TransactionRule,
};

type Number = Count<1, { u64::MAX }>;
/// A number of threads; more do not help and exhaust the machine.
type Threads = Count<1, MAXIMUM_THREADS>;
/// The largest number of a CPU that the kernel can be asked for.
const MAXIMUM_CPU: u64 = 1023;

table! {
    /// A load on a directory: the files it works on, and what threads do to them, phase after phase.
    pub(crate) struct WorkloadFile {
        /// A short name.
        "name" => name: Text, required;
        /// The files it works on.
        "fileset" => fileset: Vec<At<FilesetSurface>>, required;
        /// What the load does, phase by phase; all threads meet between phases. Without phases, files are only made.
        "phase" => phase: Vec<At<PhaseSurface>>;
        /// How data is read and written, unless a group of threads overrides it.
        "io" => io: IoSurface;
        /// What written data looks like.
        "data" => data: DataSurface;
        /// What happens if an operation fails: "stop" ends the load (the default), "stop-group" the group, "continue" nothing. The error is recorded in each case.
        "on-error" => on_error: Listed<ErrorPolicy>;
        /// How data is made durable at the end of each measured phase, inside its interval: "syncfs" (the default), "everything" or "none".
        "final-sync" => final_sync: Listed<FinalSync>;
        /// A shell command to run once the files are made and durable, before the first measured phase.
        "callout" => callout: Text;
        /// Length of one point of the throughput and latency series. 1 s unless given.
        "series-interval" => series_interval: Time;
    }
}

table! {
    /// Files under a directory. Exactly one of `files`, `bytes` and `utilization` says how much there is at the start.
    pub(crate) struct FilesetSurface {
        /// Its name.
        "name" => name: Text, required;
        /// Its directory, relative to the load's; the load's directory itself unless given.
        "directory" => directory: Text;
        /// This many files.
        "files" => files: Count<0, MAXIMUM_FILES>;
        /// Files until their sizes reach this sum.
        "bytes" => bytes: Size;
        /// Files until this share of the filesystem is used.
        "utilization" => utilization: Share;
        /// The directories that hold the files: a number of directories side by side, or a table. None unless given.
        "directories" => directories: DirectoriesSurface;
        /// Names of empty directories beside the files, for `mkdir` and `rmdir`. None unless given.
        "leaf-directories" => leaf_directories: Count<0, MAXIMUM_FILES>;
        /// The sizes of files, at the start and when they are created: a size, or a table with a distribution.
        "size" => size: SizeSurface, required;
        /// File names are this prefix and a number. "file" unless given.
        "file-prefix" => file_prefix: Text;
        /// The full name of the fileset's only file, instead of a prefix and a number.
        "file-name" => file_name: Text;
        /// Directory names are this prefix and a number. "dir" unless given.
        "directory-prefix" => directory_prefix: Text;
        /// Names of leaf directories are this prefix and a number. Unless given, they continue the names of the other directories.
        "leaf-prefix" => leaf_prefix: Text;
        /// Share of the files and leaf directories that exist at the start; the rest are names to be created. All unless given.
        "preallocated" => preallocated: Share;
        /// Size of the writes that make the files. 64 KiB unless given.
        "build-block" => build_block: Size;
        /// What to do with existing files: "rebuild" (the default), "reuse" those that fit, "require" them, or "assume" without looking that they exist.
        "existing" => existing: Listed<Existing>;
        /// Whether data is written to the files as they are made; they are sparse otherwise. True unless given.
        "fill" => fill: Flag;
        /// Whether blocks are allocated for files that are not filled, if the filesystem can do that. False unless given.
        "allocate" => allocate: Flag;
        /// Whether files that are not filled are empty at first, whatever their `size`, and grow as they are written. False unless given.
        "grows" => grows: Flag;
        /// Whether missing files are made when a thread opens them, and not before. False unless given.
        "made-when-opened" => made_when_opened: Flag;
        /// Who owns the files in a load of many ranks (docs/clusters.md): each rank its own, in a separate directory ("private", the default) or told apart by "names" in one directory; all ranks together ("shared"); or each rank its own "regions" of shared files.
        "ranks" => ranks: Listed<Sharing>;
    }
    one of ["files", "bytes", "utilization"]
}

pub(crate) type DirectoriesSurface = OrTable<Count<0, MAXIMUM_FILES>, DirectoriesTable>;

table! {
    /// Directories side by side (`count`), or a tree of them (`tree`).
    pub(crate) struct DirectoriesTable {
        /// This many, side by side.
        "count" => count: Count<0, MAXIMUM_FILES>;
        /// Whether the parent of these directories also holds files. False unless given.
        "parent-too" => parent_too: Flag;
        /// A tree. Files are in its leaves, or fill its directories one after the other.
        "tree" => tree: TreeSurface;
    }
    one of ["count", "tree"]
}

impl InPlace for DirectoriesTable {
    const EXPECTED: &'static str =
        "a number, { count = 100, parent-too = true } or { tree = { width = 10, depth = 2 } }";
}

table! {
    /// A tree of directories.
    pub(crate) struct TreeSurface {
        /// Subdirectories of each directory.
        "width" => width: Small, required;
        /// Levels below the top. 0 (only the top) needs `each`.
        "depth" => depth: Count<0, 1000>, required;
        /// Files per directory: directories are filled one after the other, level by level from a single directory at the top. Unless given, files are scattered over the leaves, and there is no single directory at the top.
        "each" => each: Count<1, MAXIMUM_FILES>;
        /// With `each`: whether only the directories of the last level hold files. False unless given.
        "leaves-only" => leaves_only: Flag;
    }
}

table! {
    /// A stretch of the load with its own threads and end.
    pub(crate) struct PhaseSurface {
        /// Its name.
        "name" => name: Text, required;
        /// Whether its operations count in the figures; set it to false for ageing and warm-up. True unless given.
        "measured" => measured: Flag;
        /// Groups of threads, side by side.
        "group" => group: Vec<At<GroupSurface>>, required;
        /// When it ends: at the first of these limits, or when all groups have ended.
        "stop" => stop: StopSurface;
        /// In a load of many ranks: rank r works on the files of rank r + this number, as they are at that time. Unless given, each rank works on its own files.
        "rank-shift" => rank_shift: Count<0, { u32::MAX as u64 }>;
        /// The same, with the files of the rank in the same position on the node that is this many nodes further on. With a single node, as `rank-shift`.
        "node-shift" => node_shift: Count<0, { u32::MAX as u64 }>;
        /// Whether all dirty data of the machine is written back (sync) before the phase. False unless given.
        "sync-first" => syncs: Flag;
        /// Caches of the machine that are dropped before the phase, as root: 1 for data, 2 for names and inodes, 3 for both. None unless given.
        "drop-caches" => drops_caches: Count<0, 3>;
    }
}

table! {
    /// When a phase or a group of threads ends: at whichever comes first of those given. Threads finish the operation they are in.
    pub(crate) struct StopSurface {
        /// After this time.
        "time" => time: Time;
        /// After this many operations of all its threads together.
        "operations" => operations: Number;
        /// After all its threads together have moved this much.
        "bytes" => bytes: Size;
        /// When every thread has performed its actions once. False unless given.
        "once-through" => once_through: Flag;
        /// When this share of the filesystem is used.
        "utilization" => utilization: Share;
        /// Phases only: as soon as one of its threads is done by itself. False unless given.
        "first-done" => first_done: Flag;
        /// Phases with a `time` only: when the time is up, each group continues until it has done as many operations as the same group of the fastest rank. False unless given.
        "wear-out" => wear_out: Flag;
        /// When the filesystem is full: a write without room (ENOSPC, EDQUOT) is the end and no error. False unless given.
        "full" => full: Flag;
    }
}

table! {
    /// Threads that do the same: a `mix` of actions drawn by weight, a `sequence` of them again and again, a `ratio` of two, or a `program`.
    pub(crate) struct GroupSurface {
        /// Its name.
        "name" => name: Text, required;
        /// Number of threads. 1 unless given.
        "threads" => threads: Threads;
        /// Actions, drawn by weight for each operation.
        "mix" => mix: Vec<At<ActionSurface>>;
        /// Actions, repeated in order.
        "sequence" => sequence: Vec<At<ActionSurface>>;
        /// Two actions in a ratio, counted over all threads.
        "ratio" => ratio: RatioSurface;
        /// Steps, repeated in order; their actions can share open files through handles.
        "program" => program: Vec<At<StepSurface>>;
        /// How its data is read and written, if that differs from the `io` at the top; the same keys.
        "io" => io: IoSurface;
        /// Whether files are opened for every operation ("per-operation", the default) or stay open: one descriptor for each thread ("keep-open") or for all threads ("keep-shared").
        "open" => open: Listed<OpenPolicy>;
        /// Whether a file's clean pages are dropped from the page cache when it is opened. False unless given.
        "invalidate" => invalidate: Flag;
        /// The clean pages of all files that a thread keeps open are dropped again each time the thread has moved this much. With the size of one pass over the files, each pass but the first starts cold; the first does with `invalidate`. Never unless given.
        "invalidate-every" => invalidate_every: Size;
        /// Advice to the kernel about how a file will be read, given when it is opened: "sequential", "random" or "none" (the default).
        "advice" => advice: Listed<Advice>;
        /// Pause of a thread after each operation, or after every `think-every` operations. None unless given.
        "think-time" => think_time: Time;
        /// Operations of a thread between two pauses; requests in flight complete before a pause begins. 1 unless given.
        "think-every" => think_every: Number;
        /// A pause also begins when this time has passed since the last one; without `think-every` only then.
        "think-after" => think_after: Time;
        /// How much of each pause the thread computes, at its begin, instead of sleeping. None unless given.
        "think-spin" => think_spin: Time;
        /// Target rate of the whole group, in operations per second. Latency then counts from the intended start.
        "rate" => rate: Real;
        /// Target rate of the whole group in bytes per second, instead of a `rate` of operations.
        "bandwidth" => bandwidth: Size;
        /// Of a mix, instead of a rate of the whole group: operations per second that do not write. Where only one of reads and writes has a rate, the others are performed whenever none is due.
        "read-rate" => read_rate: Real;
        /// The same in bytes per second.
        "read-bandwidth" => read_bandwidth: Size;
        /// The same for operations that write.
        "write-rate" => write_rate: Real;
        /// The same in bytes per second.
        "write-bandwidth" => write_bandwidth: Size;
        /// How the operations of a `rate` follow each other: at equal intervals ("even", the default) or at random ("poisson").
        "arrivals" => arrivals: Listed<Arrivals>;
        /// The part of each file that a thread reads and overwrites: "whole" (the default), "split" into one part for each thread, or a table.
        "region" => region: RegionSurface;
        /// How long after the start of the phase the group starts. At once unless given.
        "start-delay" => start_delay: Time;
        /// The CPUs its threads run on, by number. Any unless given.
        "cpus" => cpus: Vec<At<Count<0, MAXIMUM_CPU>>>;
        /// Whether each thread runs on any of the `cpus` ("shared", the default) or on one of them, in turn ("split").
        "cpu-policy" => cpu_policy: Listed<CpuPolicy>;
        /// Fsyncs that belong to the group rather than to an operation.
        "fsync" => fsync: FsyncSurface;
        /// When the group ends, if before the phase; the same keys.
        "stop" => stop: StopSurface;
        /// Whether the report (`fstone load --json`) has the throughput and latency of each of its actions over time, in addition to those of the whole load. False unless given.
        "own-series" => own_series: Flag;
        /// How requests are submitted and collected if a thread has several in flight. Unless given, all that the queue has room for are submitted together, and each is collected and replaced as soon as it is complete.
        "batches" => batches: BatchesSurface;
        /// A latency limit: each thread searches for the largest queue depth that meets it, from 1 up to the group's. Groups of the same name in later phases use that depth. None unless given.
        "latency-target" => latency_target: LatencyTargetSurface;
        /// Whether its threads continue where those of the group of the same name ended in the previous phase, which must do the same. The operations and bytes of `stop` count from the start of that group. False unless given.
        "continues" => continues: Flag;
        /// Each thread finishes all files of its filesets before it starts any of them again: with a block of each file "in-turn", each file to its end ("one-by-one"), or a file "drawn" for each block. No tour unless given.
        "tour" => tour: Listed<Tour>;
        /// Groups with the same name here count together for a `finish` without `of`. Each group counts alone unless given.
        "process" => process: Text;
        /// Of a tour in turn or drawn: operations on a file before the next file. 1 unless given.
        "tour-operations" => tour_operations: Number;
        /// Of a tour: files that a thread has open at once. Each is opened for its first block and closed when it is finished. All stay open unless given.
        "tour-open" => tour_open: Number;
        /// Of one thread with a `sequence` of two: this many operations of the first, then as many of the second, and the rest of these at the end of the group's `operations`. They alternate unless given.
        "backlog" => backlog: Number;
        /// What each thread has to move per second, in its reads and in its writes. From its third second on, one that moves less in an interval ends the group with an error. Nothing unless given.
        "least-rate" => least_rate: LeastRateSurface;
        /// A group of one thread ends when its rate is steady. Never unless given.
        "steady" => steady: SteadySurface;
        /// Errors after which its threads go on, whatever `on-error` says. None unless given.
        "goes-on-after" => goes_on_after: GoesOnSurface;
    }
    one of ["mix", "sequence", "ratio", "program"]
}

table! {
    /// Errors, by their numbers (errno).
    pub(crate) struct GoesOnSurface {
        /// Of reads; 61 (ENODATA) is a read behind a file's end. None unless given.
        "read" => read: Vec<At<Count<1, 4095>>>;
        /// Of writes, and of what allocates, discards and makes durable. None unless given.
        "write" => write: Vec<At<Count<1, 4095>>>;
        /// Whether after a failed verification. False unless given.
        "verify" => verify: Flag;
    }
}

table! {
    /// A rate to keep.
    pub(crate) struct LeastRateSurface {
        /// Bytes per second. Any unless given.
        "bandwidth" => bandwidth: Size;
        /// Operations per second. Any unless given.
        "rate" => rate: Number;
        /// Bytes per second of writes, if `bandwidth` and `rate` are those of reads alone. Any unless given.
        "write-bandwidth" => write_bandwidth: Size;
        /// The same in operations. Any unless given.
        "write-rate" => write_rate: Number;
        /// The interval. 1 s unless given.
        "every" => every: Time;
    }
}

table! {
    /// When a rate is steady. A sample is taken each second.
    pub(crate) struct SteadySurface {
        /// Whether bytes per second are judged instead of operations per second. False unless given.
        "bytes" => bytes: Flag;
        /// Whether the slope of the line through the samples is judged, per second, instead of the largest distance of a sample from their mean. False unless given.
        "slope" => slope: Flag;
        /// It must be below this, per second.
        "below" => below: Real;
        /// It must be below this share of the mean.
        "share" => share: Share;
        /// Seconds whose samples are judged. 60 s unless given.
        "window" => window: Time;
        /// Time before the first sample. None unless given.
        "ramp" => ramp: Time;
    }
    one of ["below", "share"]
}

table! {
    /// How a thread submits requests, and how it goes on when its queue is full.
    pub(crate) struct BatchesSurface {
        /// This many requests are submitted together. All that the queue has room for unless given.
        "submit" => submit: Small;
        /// The thread waits until at least this many requests are complete. 1 unless given.
        "least" => least: Small;
        /// The thread starts others when at most this many are in flight. As soon as one is complete unless given.
        "refill-at" => refill_at: Count<0, { u32::MAX as u64 }>;
        /// The thread takes note of at most this many that are complete, and no fewer than `least`, before it starts others. Of all unless given.
        "most" => most: Small;
    }
}

table! {
    /// A latency to keep.
    pub(crate) struct LatencyTargetSurface {
        /// The largest latency that meets the target.
        "latency" => latency: Time, required;
        /// Share of the requests that must meet it. All unless given.
        "share" => share: Share;
        /// How long each depth is tried. 1 s unless given.
        "window" => window: Time;
        /// Whether the group keeps running after it has found the depth, and adjusts it as latency changes. Otherwise it ends together with the other searching groups, and must be in a phase that is not measured.
        "follow" => follow: Flag;
    }
}

pub(crate) type RegionSurface = OrTable<Listed<RegionWord>, RegionTable>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegionWord {
    Whole,
    Split,
}

table! {
    /// A part of each file.
    pub(crate) struct RegionTable {
        /// Where the first thread's part begins. At the start of the file unless given.
        "offset" => offset: Size;
        /// Length of a thread's part. To the end of the file unless given.
        "length" => length: Size;
        /// Distance from the start of one thread's part to the start of the next. All threads have the same part unless given.
        "step" => step: Size;
    }
}

impl InPlace for RegionTable {
    const EXPECTED: &'static str =
        "\"whole\", \"split\" or { offset = \"1 GiB\", length = \"64 MiB\", step = \"64 MiB\" }";
}

table! {
    /// Two actions in a ratio.
    pub(crate) struct RatioSurface {
        /// How many of the first per one of the second.
        "value" => value: Real, required;
        /// Usually a read.
        "first" => first: ActionSurface, required;
        /// Usually a write.
        "second" => second: ActionSurface, required;
    }
}

table! {
    /// Fsyncs of a group.
    pub(crate) struct FsyncSurface {
        /// After every so many operations of the group, if something was written since the last fsync. Never unless given.
        "every" => every: Number;
        /// Whether every file is fsynced (before the next operation, by the thread that comes next) or only the last one used (the default).
        "all-files" => all_files: Flag;
        /// Whether the last one used is fsynced before the next operation begins, so not after the last operation. False unless given.
        "between" => between: Flag;
        /// With `between`: after the last operation, too. False unless given.
        "after-last" => after_last: Flag;
        /// Whether a periodic fsync counts as an operation. False unless given.
        "counted" => counted: Flag;
        /// Whether each thread fsyncs every file when it ends. False unless given.
        "at-end" => at_end: Flag;
        /// Whether fdatasync replaces fsync, also if an action ends with an fsync. False unless given.
        "data-only" => data_only: Flag;
        /// Whether only operations that write are counted. False unless given.
        "counts-writes" => counts_writes: Flag;
        /// Alone or in addition to `every`: an fdatasync after every so many operations, if no fsync is due. Never unless given.
        "data-every" => data_every: Number;
        /// With `tour-open`: each file before it is closed. False unless given.
        "at-close" => at_close: Flag;
        /// With `between`: sync_file_range of the whole file instead of these fdatasyncs, with the sum of the kernel's flags: 1 to wait before, 2 to write, 4 to wait after. 0 unless given.
        "range-flags" => range_flags: Count<0, 7>;
    }
}

table! {
    /// How data gets to and from files.
    pub(crate) struct IoSurface {
        /// The I/O engine: "psync" (the default), "io-uring", "libaio", "mmap", "falloc", whose writes only allocate blocks, "splice", through a pipe, or "null", which does nothing.
        "engine" => engine: Listed<IoEngineKind>;
        /// O_DIRECT. False unless given.
        "direct" => direct: Flag;
        /// Open flags: "none" (the default), "sync" (O_SYNC) or "dsync" (O_DSYNC).
        "sync" => sync: Listed<OpenSync>;
        /// Requests in flight per thread. 1 unless given.
        "queue-depth" => queue_depth: Small;
        /// Whether completions are polled for instead of waited for; needs `direct`. False unless given.
        "polled" => polled: Flag;
        /// Whether data that is read or written leaves the page cache again (RWF_DONTCACHE, Linux 6.14). False unless given.
        "uncached" => uncached: Flag;
        /// Whether a transfer that would have to wait fails with EAGAIN instead (RWF_NOWAIT). False unless given.
        "no-wait" => no_wait: Flag;
        /// Whether each write is in the file whole or not at all, even after a power cut (RWF_ATOMIC, Linux 6.11); needs `direct`. False unless given.
        "atomic" => atomic: Flag;
    }
}

table! {
    /// What written data looks like.
    pub(crate) struct DataSurface {
        /// Share that compression can remove. None unless given.
        "compressible" => compressible: Share;
        /// Share of blocks that are copies of another block. None unless given.
        "duplicate" => duplicate: Share;
        /// Whether every block is stamped, and verified when read. False unless given.
        "stamped" => stamped: Flag;
        /// Bytes, as hexadecimal digits, that are repeated from the start of each block instead of random bytes; in compressible data, instead of zeros. None unless given.
        "repeat" => repeat: Text;
    }
}

macro_rules! words {
    ($($type:ty { $($word:literal => $value:ident),* $(,)? })*) => {
        $(impl Word for $type {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$value)),*];
        })*
    };
}

words! {
    Advice { "none" => None, "sequential" => Sequential, "random" => Random }
    ErrorPolicy { "stop" => Stop, "stop-group" => StopGroup, "continue" => Continue }
    FinalSync { "none" => None, "syncfs" => Syncfs, "everything" => Everything }
    Existing { "rebuild" => Rebuild, "reuse" => Reuse, "require" => Require, "assume" => Assume }
    Sharing { "private" => Private, "names" => Names, "shared" => Shared, "regions" => Regions }
    Arrivals { "even" => Even, "poisson" => Poisson }
    CpuPolicy { "shared" => Shared, "split" => Split }
    OpenPolicy { "per-operation" => PerOperation, "keep-open" => KeepOpen, "keep-shared" => KeepShared }
    OpenSync { "none" => None, "sync" => Sync, "dsync" => Dsync }
    IoEngineKind { "psync" => Psync, "io-uring" => IoUring, "libaio" => Libaio, "mmap" => Mmap, "falloc" => Falloc, "splice" => Splice, "null" => Null }
    FileChoice {
        "uniform" => Uniform, "round-robin" => RoundRobin, "shuffled" => Shuffled, "concatenated" => Concatenated,
        "partitioned" => Partitioned, "same" => Same, "rotation" => Rotation,
    }
    PaceUnit { "rounds" => Rounds, "operations" => Operations, "transfers" => Transfers, "mebibytes" => Mebibytes }
    Tour { "in-turn" => InTurn, "one-by-one" => OneByOne, "drawn" => Drawn }
    TransactionRule { "one" => One, "whole-blocks" => BlocksFloor, "begun-blocks" => BlocksCeil }
    PatternWord {
        "from-start" => FromStart, "from-random" => FromRandom, "cursor" => Cursor,
        "shared-cursor" => SharedCursor, "random" => Random, "skip" => Skip, "stride" => Stride, "bursts" => Bursts,
        "written" => Written, "runs" => Runs,
    }
    DistributionWord { "uniform" => Uniform, "permutation" => Permutation }
    RegionWord { "whole" => Whole, "split" => Split }
}
