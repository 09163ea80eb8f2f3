//! The workload file as it is written: its tables and keys. Those that are used in several places are in `action`, `transfer`,
//! `sizes` and `steps`.

use super::{
    action::ActionSurface,
    sizes::SizeSurface,
    steps::StepSurface,
    transfer::{DistributionWord, PatternWord},
    value::Small,
};
use crate::{
    decode::{At, Count, Decode, Flag, Listed, Node, Real, Share, Size, Text, Time, Word, table, wrong_type},
    diagnostic::Report,
};
use fstone_model::workload::{
    Advice, Arrivals, CpuPolicy, ErrorPolicy, Existing, FileChoice, FinalSync, IoEngineKind, MAXIMUM_FILES,
    MAXIMUM_THREADS, OpenPolicy, OpenSync, PaceUnit, Sharing, Tour, TransactionRule,
};
use serde_json::{Value, json};
use toml::de::DeValue;

/// A number of files, directories, operations or weights, from 1.
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
        /// What is done, one phase after the other; all threads meet in between. Without phases, files are only made.
        "phase" => phase: Vec<At<PhaseSurface>>;
        /// How data gets to and from the files, unless a group of threads says otherwise.
        "io" => io: IoSurface;
        /// What written data looks like.
        "data" => data: DataSurface;
        /// What an operation's error does: "stop" ends the load (the default), "continue" goes on. It is recorded either way.
        "on-error" => on_error: Listed<ErrorPolicy>;
        /// How data is made durable at the end of measured phases, inside the measured interval: "syncfs" (the default), "everything" or "none".
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
        /// Files until the filesystem is used to this share.
        "utilization" => utilization: Share;
        /// The directories the files are in: a number of them side by side, or a table. None unless given.
        "directories" => directories: DirectoriesSurface;
        /// Names of empty directories beside the files, for `mkdir` and `rmdir`. None unless given.
        "leaf-directories" => leaf_directories: Count<0, MAXIMUM_FILES>;
        /// How large files are, at the start and when they are created: a size, or a table with a distribution.
        "size" => size: SizeSurface, required;
        /// File names are this and a number. "file" unless given.
        "file-prefix" => file_prefix: Text;
        /// The whole name of the fileset's one file, in place of a prefix and a number.
        "file-name" => file_name: Text;
        /// Directory names are this and a number. "dir" unless given.
        "directory-prefix" => directory_prefix: Text;
        /// Leaf directory names are this and a number. Like those of other directories, with higher numbers, unless given.
        "leaf-prefix" => leaf_prefix: Text;
        /// Share of the files and leaf directories that exist at the start; the rest are names to be created. All unless given.
        "preallocated" => preallocated: Share;
        /// Size of the writes that make the files. 64 KiB unless given.
        "build-block" => build_block: Size;
        /// What to do with existing files: "rebuild" (the default), "reuse" those that fit, "require" them, or "assume" without looking that they exist.
        "existing" => existing: Listed<Existing>;
        /// Whether data is written to the files as they are made; they are sparse otherwise. True unless given.
        "fill" => fill: Flag;
        /// Whether files that are not filled have their blocks allocated, where the filesystem can. False unless given.
        "allocate" => allocate: Flag;
        /// Which rank the files belong to in a load of many ranks: each rank's own in a directory of its own ("private", the default), its own by their "names" in one directory (the rank's number stands where a prefix has `{rank}`, in eight digits where it has `{rank:08}`, or in front), "shared" by all, or shared with "regions" that are each rank's own.
        "ranks" => ranks: Listed<Sharing>;
    }
    one of ["files", "bytes", "utilization"]
}

/// `directories`: a number, or a table.
#[derive(Debug, Clone)]
pub(crate) enum DirectoriesSurface {
    /// Side by side.
    Count(u64),
    /// With more to say.
    Table(Box<DirectoriesTable>),
}

table! {
    /// Directories side by side (`count`), or a tree of them (`tree`).
    pub(crate) struct DirectoriesTable {
        /// This many side by side.
        "count" => count: Count<0, MAXIMUM_FILES>;
        /// Whether files are in the parent of those side by side as well. False unless given.
        "parent-too" => parent_too: Flag;
        /// A tree; files are in its leaves, or fill its directories one after the other.
        "tree" => tree: TreeSurface;
    }
    one of ["count", "tree"]
}

table! {
    /// A tree of directories.
    pub(crate) struct TreeSurface {
        /// Subdirectories of each.
        "width" => width: Small, required;
        /// Levels. With `each` there may be none but the top.
        "depth" => depth: Count<0, 1000>, required;
        /// Files of each directory: those of one after those of another, level by level from a single directory at the top. Unless given, files are scattered over the leaves, and there is no single directory at the top.
        "each" => each: Count<1, MAXIMUM_FILES>;
        /// With `each`: whether only the directories of the last level have files. False unless given.
        "leaves-only" => leaves_only: Flag;
    }
}

impl Decode for DirectoriesSurface {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        match node.get_ref() {
            DeValue::Integer(_) => {
                Count::<0, MAXIMUM_FILES>::decode(node, report).map(|Count(count)| Self::Count(count))
            }
            DeValue::Table(_) => DirectoriesTable::decode(node, report).map(|table| Self::Table(Box::new(table))),
            _ => {
                wrong_type(node, &Self::expected(), report);
                None
            }
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [Count::<0, MAXIMUM_FILES>::schema(), DirectoriesTable::schema()] })
    }

    fn expected() -> String {
        "a number, { count = 100, parent-too = true } or { tree = { width = 10, depth = 2 } }".into()
    }
}

table! {
    /// A stretch of the load with its own threads and end.
    pub(crate) struct PhaseSurface {
        /// Its name.
        "name" => name: Text, required;
        /// Whether its operations are in the figures; those of ageing and warm-up are not. True unless given.
        "measured" => measured: Flag;
        /// Groups of threads, side by side.
        "group" => group: Vec<At<GroupSurface>>, required;
        /// When it ends: at the first of these limits, and at the latest when every group has ended.
        "stop" => stop: StopSurface;
        /// In a load of many ranks: rank r works on the files of rank r + this, as they are then. On its own unless given.
        "rank-shift" => rank_shift: Count<0, { u32::MAX as u64 }>;
        /// The same, on those of the rank in its place on the node that is so many further on; with one node, as `rank-shift`.
        "node-shift" => node_shift: Count<0, { u32::MAX as u64 }>;
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
        /// When every thread has run through its actions once. False unless given.
        "once-through" => once_through: Flag;
        /// When the filesystem is used to this share.
        "utilization" => utilization: Share;
        /// Of a phase: as soon as one of its threads is done by itself. False unless given.
        "first-done" => first_done: Flag;
        /// Of a phase with a `time`: when it is over, each group continues until it has done as many operations as that of the fastest rank. False unless given.
        "wear-out" => wear_out: Flag;
    }
}

table! {
    /// Threads that do the same: a `mix` of actions drawn by weight, a `sequence` of them again and again, a `ratio` of two, or a `program`.
    pub(crate) struct GroupSurface {
        /// Its name.
        "name" => name: Text, required;
        /// How many threads. 1 unless given.
        "threads" => threads: Threads;
        /// Actions, drawn by weight for each operation.
        "mix" => mix: Vec<At<ActionSurface>>;
        /// Actions, in order, again and again.
        "sequence" => sequence: Vec<At<ActionSurface>>;
        /// Two actions in a ratio, counted over all threads.
        "ratio" => ratio: RatioSurface;
        /// Steps, in order, again and again; their actions may share open files by handles.
        "program" => program: Vec<At<StepSurface>>;
        /// How its data gets to and from the files, if that differs from the file's `io`; the same keys.
        "io" => io: IoSurface;
        /// Whether files are opened for every operation ("per-operation", the default) or stay open ("keep-open").
        "open" => open: Listed<OpenPolicy>;
        /// Whether a file's clean pages are dropped from the page cache when it is opened. False unless given.
        "invalidate" => invalidate: Flag;
        /// The clean pages of all files that a thread keeps open are dropped again whenever it has moved this much: with the size of one pass over them, each pass starts cold. Never unless given.
        "invalidate-every" => invalidate_every: Size;
        /// What the kernel is told of how a file is read when it is opened: "sequential", "random" or "none" (the default).
        "advice" => advice: Listed<Advice>;
        /// Pause of a thread after each operation, or after so many as `think-every` says. None unless given.
        "think-time" => think_time: Time;
        /// Operations of a thread between two pauses; what is in flight is done before one begins. 1 unless given.
        "think-every" => think_every: Number;
        /// Operations per second wanted of the whole group; latency is then counted from the intended start.
        "rate" => rate: Real;
        /// Bytes per second wanted of the whole group, in place of a `rate` of operations.
        "bandwidth" => bandwidth: Size;
        /// How the operations of a `rate` follow each other: at equal intervals ("even", the default) or at random ("poisson").
        "arrivals" => arrivals: Listed<Arrivals>;
        /// The part of each file that a thread reads and overwrites: "whole" (the default), "split" into one for each thread, or a table that says where.
        "region" => region: RegionSurface;
        /// How long after the start of the phase the group starts. At once unless given.
        "start-delay" => start_delay: Time;
        /// The CPUs its threads run on, by number. Any unless given.
        "cpus" => cpus: Vec<At<Count<0, MAXIMUM_CPU>>>;
        /// Whether each thread runs on any of the `cpus` ("shared", the default) or on one of them, in turn ("split").
        "cpu-policy" => cpu_policy: Listed<CpuPolicy>;
        /// Fsyncs that belong to the group rather than to an operation.
        "fsync" => fsync: FsyncSurface;
        /// An end of its own, before the phase's.
        "stop" => stop: StopSurface;
        /// Whether the report (`fstone load --json`) has the throughput and latency of each of its actions over time, beside those of the whole load. False unless given.
        "own-series" => own_series: Flag;
        /// How completed requests are collected if a thread has several in flight. Unless given, each is collected at once and replaced by another.
        "batches" => batches: BatchesSurface;
        /// A latency limit: each thread searches for the largest queue depth that meets it, from 1 up to the group's. Groups of the same name in later phases use that depth. None unless given.
        "latency-target" => latency_target: LatencyTargetSurface;
        /// Whether its threads continue where those of the group of the same name ended in the phase before, which must do the same: with their cursors, the random orders of their blocks, and their tours. The operations and bytes of its `stop` count from the start of that group. False unless given.
        "continues" => continues: Flag;
        /// Each thread goes through the files of all its filesets and finishes each before it begins any anew: a block of each "in-turn", each to its end ("one-by-one"), or "drawn" for each block. The actions of its `mix` share the order of random blocks and the position in a file. No tour unless given.
        "tour" => tour: Listed<Tour>;
    }
    one of ["mix", "sequence", "ratio", "program"]
}

table! {
    /// How a thread goes on when its queue is full.
    pub(crate) struct BatchesSurface {
        /// It waits until at least this many requests are done. 1 unless given.
        "least" => least: Small;
        /// It starts others when at most this many are in flight. As soon as one is done unless given.
        "refill-at" => refill_at: Count<0, { u32::MAX as u64 }>;
    }
}

table! {
    /// A latency to keep.
    pub(crate) struct LatencyTargetSurface {
        /// No more than this.
        "latency" => latency: Time, required;
        /// Share of the requests that must meet it. All unless given.
        "share" => share: Share;
        /// How long each depth is tried. 1 s unless given.
        "window" => window: Time;
        /// Whether the group keeps running when it has found the depth, and adjusts it as latency changes. Otherwise it ends with the other searching groups, and needs a phase that is not measured.
        "follow" => follow: Flag;
    }
}

/// `region`: a word, or where.
#[derive(Debug, Clone)]
pub(crate) enum RegionSurface {
    Word(RegionWord),
    Table(RegionTable),
}

/// The regions without a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegionWord {
    Whole,
    Split,
}

table! {
    /// A part of each file.
    pub(crate) struct RegionTable {
        /// Where the first thread's part begins. At the file's start unless given.
        "offset" => offset: Size;
        /// How long a thread's part is. To the file's end unless given.
        "length" => length: Size;
        /// How much later the next thread's part begins. All threads have the same part unless given.
        "step" => step: Size;
    }
}

impl Decode for RegionSurface {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        match node.get_ref() {
            DeValue::String(_) => Listed::<RegionWord>::decode(node, report).map(|Listed(word)| Self::Word(word)),
            DeValue::Table(_) => RegionTable::decode(node, report).map(Self::Table),
            _ => {
                wrong_type(node, &Self::expected(), report);
                None
            }
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [Listed::<RegionWord>::schema(), RegionTable::schema()] })
    }

    fn expected() -> String {
        "\"whole\", \"split\" or { offset = \"1 GiB\", length = \"64 MiB\", step = \"64 MiB\" }".into()
    }
}

table! {
    /// Two actions in a ratio.
    pub(crate) struct RatioSurface {
        /// How many of the first for each of the second.
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
        /// After every this many operations of the group, when something was written since. Never unless given.
        "every" => every: Number;
        /// Whether every file is fsynced, before the next operation and by whichever thread comes next, or only the last one used (the default).
        "all-files" => all_files: Flag;
        /// Whether a periodic fsync counts as an operation. False unless given.
        "counted" => counted: Flag;
        /// Whether each thread fsyncs every file when it ends. False unless given.
        "at-end" => at_end: Flag;
        /// fdatasync in place of fsync, also where an action ends with an fsync. False unless given.
        "data-only" => data_only: Flag;
        /// Whether only operations that write count. False unless given.
        "counts-writes" => counts_writes: Flag;
        /// Beside `every`: an fdatasync after every this many operations, where no fsync is due. Never unless given.
        "data-every" => data_every: Number;
    }
}

table! {
    /// How data gets to and from files.
    pub(crate) struct IoSurface {
        /// The I/O engine: "psync" (the default), "io-uring", "libaio", "mmap", or "null", which does nothing.
        "engine" => engine: Listed<IoEngineKind>;
        /// O_DIRECT. False unless given.
        "direct" => direct: Flag;
        /// Open flags: "none" (the default), "sync" (O_SYNC) or "dsync" (O_DSYNC).
        "sync" => sync: Listed<OpenSync>;
        /// Requests in flight per thread. 1 unless given.
        "queue-depth" => queue_depth: Small;
    }
}

table! {
    /// What written data looks like.
    pub(crate) struct DataSurface {
        /// Share that a compressor can remove. None unless given.
        "compressible" => compressible: Share;
        /// Share of blocks that equal another block. None unless given.
        "duplicate" => duplicate: Share;
        /// Whether every block is stamped, and verified when read. False unless given.
        "stamped" => stamped: Flag;
        /// Bytes, as hexadecimal digits, that are repeated from the start of each block in place of random ones; if data is compressible, in place of its zeros. None unless given.
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
    ErrorPolicy { "stop" => Stop, "continue" => Continue }
    FinalSync { "none" => None, "syncfs" => Syncfs, "everything" => Everything }
    Existing { "rebuild" => Rebuild, "reuse" => Reuse, "require" => Require, "assume" => Assume }
    Sharing { "private" => Private, "names" => Names, "shared" => Shared, "regions" => Regions }
    Arrivals { "even" => Even, "poisson" => Poisson }
    CpuPolicy { "shared" => Shared, "split" => Split }
    OpenPolicy { "per-operation" => PerOperation, "keep-open" => KeepOpen }
    OpenSync { "none" => None, "sync" => Sync, "dsync" => Dsync }
    IoEngineKind { "psync" => Psync, "io-uring" => IoUring, "libaio" => Libaio, "mmap" => Mmap, "null" => Null }
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
