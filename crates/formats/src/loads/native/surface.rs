//! The workload file as it is written: every table and key there is, defined once.

use crate::{
    decode::{At, Count, Decode, Flag, Listed, Node, Nothing, Real, Share, Size, Text, Time, Word, table, wrong_type},
    diagnostic::{Diagnostic, Report},
};
use fstone_model::workload::{
    Arrivals, CpuPolicy, ErrorPolicy, Existing, FileChoice, FinalSync, IoEngineKind, MAXIMUM_FILES, MAXIMUM_THREADS,
    OpenPolicy, OpenSync, TransactionRule,
};
use serde_json::{Value, json};
use toml::de::DeValue;

/// A number of files, directories, operations or weights, from 1.
type Number = Count<1, { u64::MAX }>;
/// A number that fits 32 bits.
type Small = Count<1, { u32::MAX as u64 }>;
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
        /// What is done, one phase after the other, all threads meeting in between. Without any, files are made and that is all.
        "phase" => phase: Vec<At<PhaseSurface>>;
        /// How data gets to and from the files, where a group of threads says nothing else.
        "io" => io: IoSurface;
        /// What written data looks like.
        "data" => data: DataSurface;
        /// What an operation's error does: "stop" ends the load (the default), "continue" goes on. It is recorded either way.
        "on-error" => on_error: Listed<ErrorPolicy>;
        /// How data is made durable at the end, inside the measured interval: "syncfs" (the default), "everything" or "none".
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
        /// Where, relative to the load's directory; that directory itself unless given.
        "directory" => directory: Text;
        /// This many files.
        "files" => files: Count<0, MAXIMUM_FILES>;
        /// Files until their sizes reach this sum.
        "bytes" => bytes: Size;
        /// Files until the filesystem is used to this share.
        "utilization" => utilization: Share;
        /// The directories the files are in: a number of them side by side, or a table. None unless given.
        "directories" => directories: DirectoriesSurface;
        /// How large files are, at the start and when they are created: a size, or a table with a distribution.
        "size" => size: SizeSurface, required;
        /// Files are called this and a number. "file" unless given.
        "file-prefix" => file_prefix: Text;
        /// The whole name of the fileset's one file, in place of a prefix and a number.
        "file-name" => file_name: Text;
        /// Directories are called this and a number. "dir" unless given.
        "directory-prefix" => directory_prefix: Text;
        /// Share of the files that exist at the start; the rest are names to be created. All unless given.
        "preallocated" => preallocated: Share;
        /// Size of the writes that make the files. 64 KiB unless given.
        "build-block" => build_block: Size;
        /// What to do with files that are there already: "rebuild" (the default), "reuse" those that fit, or "require" them.
        "existing" => existing: Listed<Existing>;
        /// Whether data is written to the files as they are made; they are sparse otherwise. True unless given.
        "fill" => fill: Flag;
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
        /// A tree; files are in its leaves.
        "tree" => tree: TreeSurface;
    }
    one of ["count", "tree"]
}

table! {
    /// A tree of directories.
    pub(crate) struct TreeSurface {
        /// Subdirectories of each.
        "width" => width: Small, required;
        /// Levels.
        "depth" => depth: Small, required;
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

/// `size`: one size, or a distribution.
#[derive(Debug, Clone)]
pub(crate) enum SizeSurface {
    /// All alike.
    Fixed(u64),
    /// Drawn.
    Table(Box<SizeTable>),
}

table! {
    /// How sizes are drawn.
    pub(crate) struct SizeTable {
        /// Uniformly from `from` to below `below`.
        "uniform" => uniform: UniformSurface;
        /// One of these, by weight.
        "weighted" => weighted: Vec<At<WeightedSize>>;
        /// Gamma.
        "gamma" => gamma: GammaSurface;
        /// Lognormal.
        "lognormal" => lognormal: LognormalSurface;
    }
    one of ["uniform", "weighted", "gamma", "lognormal"]
}

table! {
    /// Uniform sizes.
    pub(crate) struct UniformSurface {
        /// The smallest size.
        "from" => from: Size, required;
        /// The first size that is too large.
        "below" => below: Size, required;
    }
}

table! {
    /// A size and its weight.
    pub(crate) struct WeightedSize {
        /// The size.
        "size" => size: Size, required;
        /// Its weight.
        "weight" => weight: Small, required;
    }
}

table! {
    /// Gamma-distributed sizes.
    pub(crate) struct GammaSurface {
        /// Their mean.
        "mean" => mean: Size, required;
        /// The shape parameter; 1.5 is usual.
        "shape" => shape: Real, required;
    }
}

table! {
    /// Lognormally distributed sizes.
    pub(crate) struct LognormalSurface {
        /// Their median.
        "median" => median: Size, required;
        /// Standard deviation of the logarithm.
        "sigma" => sigma: Real, required;
    }
}

impl Decode for SizeSurface {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        if node.get_ref().is_table() {
            return SizeTable::decode(node, report).map(|table| Self::Table(Box::new(table)));
        }
        Size::decode(node, report).map(|Size(bytes)| Self::Fixed(bytes))
    }

    fn schema() -> Value {
        json!({ "anyOf": [Size::schema(), SizeTable::schema()] })
    }

    fn expected() -> String {
        "a size such as \"4 KiB\", or { uniform = { from = \"4 KiB\", below = \"512 KiB\" } }".into()
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
        /// When it ends: at whichever comes first, and at the latest when every group has ended.
        "stop" => stop: StopSurface;
    }
}

table! {
    /// When a phase or a group of threads ends: at whichever comes first of those given. Threads finish the operation they are in.
    pub(crate) struct StopSurface {
        /// After this time.
        "time" => time: Time;
        /// After this many operations of all its threads together.
        "operations" => operations: Number;
        /// After this much was moved by all its threads together.
        "bytes" => bytes: Size;
        /// When every thread has gone through its actions once. False unless given.
        "once-through" => once_through: Flag;
        /// When the filesystem is used to this share.
        "utilization" => utilization: Share;
    }
}

table! {
    /// Threads that do the same: a `mix` of actions drawn by weight, a `sequence` of them again and again, or a `ratio` of two.
    pub(crate) struct GroupSurface {
        /// Its name.
        "name" => name: Text, required;
        /// How many threads. 1 unless given.
        "threads" => threads: Threads;
        /// Actions, drawn by weight for each operation.
        "mix" => mix: Vec<At<ActionSurface>>;
        /// Actions, one after the other, again and again.
        "sequence" => sequence: Vec<At<ActionSurface>>;
        /// Two actions in a ratio, counted over all threads.
        "ratio" => ratio: RatioSurface;
        /// How its data gets to and from the files, where that differs from the file's `io`: the same keys.
        "io" => io: IoSurface;
        /// Whether files are opened for every operation ("per-operation", the default) or stay open ("keep-open").
        "open" => open: Listed<OpenPolicy>;
        /// Whether what the page cache holds of a file is dropped when it is opened, unless it is yet to be written. False unless given.
        "invalidate" => invalidate: Flag;
        /// Pause of a thread after each operation. None unless given.
        "think-time" => think_time: Time;
        /// Operations per second wanted of the whole group; latency is then counted from the intended start.
        "rate" => rate: Real;
        /// Bytes per second wanted of the whole group, in place of a `rate` of operations.
        "bandwidth" => bandwidth: Size;
        /// How the operations of a `rate` follow each other: at equal distances ("even", the default) or at random ("poisson").
        "arrivals" => arrivals: Listed<Arrivals>;
        /// The part of each file that a thread reads and overwrites: "whole" (the default), "split" into one for each thread, or a table that says where.
        "region" => region: RegionSurface;
        /// How long after the phase's begin the group begins. At once unless given.
        "start-delay" => start_delay: Time;
        /// The CPUs its threads run on, by number. Any unless given.
        "cpus" => cpus: Vec<At<Count<0, MAXIMUM_CPU>>>;
        /// Whether each thread runs on any of the `cpus` ("shared", the default) or on one of them, in turn ("split").
        "cpu-policy" => cpu_policy: Listed<CpuPolicy>;
        /// Fsyncs that belong to the group rather than to an operation.
        "fsync" => fsync: FsyncSurface;
        /// An end of its own, before the phase's.
        "stop" => stop: StopSurface;
    }
    one of ["mix", "sequence", "ratio"]
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
        /// How much later the next thread's begins. All threads have the same part unless given.
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
        /// Whether every file is fsynced, before the next operation and by whichever thread comes next, or only the one just worked on (the default).
        "all-files" => all_files: Flag;
        /// Whether a periodic fsync counts as an operation. False unless given.
        "counted" => counted: Flag;
        /// Whether each thread fsyncs every file when it ends. False unless given.
        "at-end" => at_end: Flag;
        /// fdatasync in place of fsync, also where an action ends with an fsync. False unless given.
        "data-only" => data_only: Flag;
    }
}

table! {
    /// One kind of operation as a group performs it: exactly one operation, and on which files.
    pub(crate) struct ActionSurface {
        /// What results call it; its operation's key unless given.
        "name" => name: Text;
        /// In a mix, its share of all operations is weight / sum of weights. 1 unless given.
        "weight" => weight: Small;
        /// On which fileset; "*" draws one for each operation. The only one unless given, or "*" when there are several.
        "fileset" => fileset: Text;
        /// Which file: "uniform" (the default), "round-robin", "concatenated", "partitioned", or the "same" as the action before.
        "choice" => choice: Listed<FileChoice>;
        /// How transactions are counted: "one" per operation (the default), "whole-blocks" moved, or "begun-blocks".
        "transactions" => transactions: Listed<TransactionRule>;
        /// Make a new file of a size drawn from the fileset, write it, close it.
        "create" => create: CreateSurface;
        /// Read data.
        "read" => read: TransferSurface;
        /// Overwrite data in place.
        "write" => write: TransferSurface;
        /// Write at the end.
        "append" => append: TransferSurface;
        /// Read through a memory mapping.
        "mmap-read" => mmap_read: TransferSurface;
        /// Write through a memory mapping.
        "mmap-write" => mmap_write: TransferSurface;
        /// Open and close a file.
        "open-close" => open_close: Nothing;
        /// fsync a file.
        "fsync" => fsync: Nothing;
        /// fdatasync a file.
        "fdatasync" => fdatasync: Nothing;
        /// fsync the directory that a file is in, which makes its name durable.
        "fsync-directory" => fsync_directory: Nothing;
        /// syncfs.
        "syncfs" => syncfs: Nothing;
        /// Set a file's size.
        "truncate" => truncate: LengthSurface;
        /// Allocate without writing, from a file's start.
        "fallocate" => fallocate: LengthSurface;
        /// Free a file's blocks, from its start.
        "punch-hole" => punch_hole: LengthSurface;
        /// Remove a file.
        "unlink" => unlink: Nothing;
        /// Rename a file within its directory.
        "rename" => rename: Nothing;
        /// Rename a file into another fileset, or to a new name in its own.
        "move" => move_: MoveSurface;
        /// Make a hard link and keep it.
        "link" => link: Nothing;
        /// Make a symbolic link and keep it.
        "symlink" => symlink: Nothing;
        /// Make a directory.
        "mkdir" => mkdir: Nothing;
        /// Remove a directory that mkdir made.
        "rmdir" => rmdir: Nothing;
        /// FFSB's metaop: two mkdir, one rmdir and one rename.
        "metadata" => metadata: Nothing;
        /// List one directory.
        "readdir" => readdir: Nothing;
        /// Walk the whole fileset, stat-ing each entry.
        "walk" => walk: Nothing;
        /// stat a file.
        "stat" => stat: Nothing;
        /// chmod a file.
        "chmod" => chmod: Nothing;
        /// Set a file's times.
        "utimens" => utimens: Nothing;
        /// Set an extended attribute.
        "setxattr" => setxattr: AttributeSurface;
        /// Get it.
        "getxattr" => getxattr: Nothing;
        /// copy_file_range into a new file.
        "copy-file-range" => copy_file_range: Nothing;
        /// Clone into a new file (FICLONE).
        "reflink" => reflink: Nothing;
    }
    one of [
        "create", "read", "write", "append", "mmap-read", "mmap-write", "open-close", "fsync", "fdatasync",
        "fsync-directory", "syncfs",
        "truncate", "fallocate", "punch-hole", "unlink", "rename", "move", "link", "symlink", "mkdir", "rmdir", "metadata",
        "readdir", "walk", "stat", "chmod", "utimens", "setxattr", "getxattr", "copy-file-range", "reflink",
    ]
}

table! {
    /// The making of a file.
    pub(crate) struct CreateSurface {
        /// Size of each write, or a table with a distribution; the file stays empty unless given.
        "block" => block: SizeSurface;
        /// Whether to fsync before the close. False unless given.
        "fsync" => fsync: Flag;
    }
}

table! {
    /// A movement of data within a file.
    pub(crate) struct TransferSurface {
        /// How much per operation: a size, "block" for one block, or "whole" for the file (the default).
        "size" => size: ExtentSurface;
        /// How much per system call: a size, or a table with a distribution, by which each is drawn.
        "block" => block: SizeSurface, required;
        /// Where: "from-start" (the default); "from-random" on; on from a "cursor" of the thread, or a "shared-cursor"; every block at "random"; a block and then a "skip".
        "pattern" => pattern: Listed<PatternWord>;
        /// Random offsets are multiples of this; of the block, or the smallest block, unless given.
        "align" => align: Size;
        /// How random offsets are drawn: "uniform" (the default), "permutation", { zipf = 1.2 } or { gauss = 0.1 }.
        "distribution" => distribution: DistributionSurface;
        /// How much is skipped after each block.
        "skip" => skip: Size;
        /// Whether to fsync the file after the transfer. False unless given.
        "fsync" => fsync: Flag;
        /// Of mmap-write: whether to msync what was written. False unless given.
        "msync" => msync: Flag;
    }
}

table! {
    /// Where a file is moved to.
    pub(crate) struct MoveSurface {
        /// The fileset it is in from then on, with the name that is free next.
        "to" => to: Text, required;
    }
}

table! {
    /// A length from a file's start.
    pub(crate) struct LengthSurface {
        /// The length.
        "size" => size: Size, required;
    }
}

table! {
    /// An extended attribute.
    pub(crate) struct AttributeSurface {
        /// Size of its value. Kernels take at most 64 KiB.
        "size" => size: Size, required;
    }
}

/// How much an operation moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExtentSurface {
    Whole,
    Block,
    Bytes(u64),
}

/// The word for a whole file.
pub(crate) const WHOLE: &str = "whole";
/// The word for one block.
pub(crate) const BLOCK: &str = "block";

impl Decode for ExtentSurface {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        match node.get_ref().as_str() {
            Some(WHOLE) => Some(Self::Whole),
            Some(BLOCK) => Some(Self::Block),
            _ => Size::decode(node, report).map(|Size(bytes)| Self::Bytes(bytes)),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "enum": [WHOLE, BLOCK] }, Size::schema()] })
    }

    fn expected() -> String {
        format!("a size such as \"4 KiB\", \"{BLOCK}\" or \"{WHOLE}\"")
    }
}

/// The kinds of pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternWord {
    FromStart,
    FromRandom,
    Cursor,
    SharedCursor,
    Random,
    Skip,
}

/// How random offsets are drawn.
#[derive(Debug, Clone)]
pub(crate) enum DistributionSurface {
    Word(DistributionWord),
    Table(DistributionTable),
}

/// The distributions without a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DistributionWord {
    Uniform,
    Permutation,
}

table! {
    /// The distributions with a parameter.
    pub(crate) struct DistributionTable {
        /// Zipf with this exponent.
        "zipf" => zipf: Real;
        /// Normal around the middle, with this standard deviation as a share of the space.
        "gauss" => gauss: Real;
    }
    one of ["zipf", "gauss"]
}

impl Decode for DistributionSurface {
    fn decode(node: &Node<'_>, report: &mut Report) -> Option<Self> {
        match node.get_ref() {
            DeValue::String(text) => {
                let word = DistributionWord::WORDS.iter().find(|(word, _)| word == text);
                if word.is_none() {
                    report.push(
                        Diagnostic::error(node.span(), format!("unknown distribution `{text}`"))
                            .label(format!("expected {}", Self::expected())),
                    );
                }
                word.map(|(_, word)| Self::Word(*word))
            }
            DeValue::Table(_) => DistributionTable::decode(node, report).map(Self::Table),
            _ => {
                wrong_type(node, &Self::expected(), report);
                None
            }
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [Listed::<DistributionWord>::schema(), DistributionTable::schema()] })
    }

    fn expected() -> String {
        "\"uniform\", \"permutation\", { zipf = 1.2 } or { gauss = 0.1 }".into()
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
    ErrorPolicy { "stop" => Stop, "continue" => Continue }
    FinalSync { "none" => None, "syncfs" => Syncfs, "everything" => Everything }
    Existing { "rebuild" => Rebuild, "reuse" => Reuse, "require" => Require }
    Arrivals { "even" => Even, "poisson" => Poisson }
    CpuPolicy { "shared" => Shared, "split" => Split }
    OpenPolicy { "per-operation" => PerOperation, "keep-open" => KeepOpen }
    OpenSync { "none" => None, "sync" => Sync, "dsync" => Dsync }
    IoEngineKind { "psync" => Psync, "io-uring" => IoUring, "libaio" => Libaio, "mmap" => Mmap, "null" => Null }
    FileChoice {
        "uniform" => Uniform, "round-robin" => RoundRobin, "concatenated" => Concatenated,
        "partitioned" => Partitioned, "same" => Same,
    }
    TransactionRule { "one" => One, "whole-blocks" => BlocksFloor, "begun-blocks" => BlocksCeil }
    PatternWord {
        "from-start" => FromStart, "from-random" => FromRandom, "cursor" => Cursor,
        "shared-cursor" => SharedCursor, "random" => Random, "skip" => Skip,
    }
    DistributionWord { "uniform" => Uniform, "permutation" => Permutation }
    RegionWord { "whole" => Whole, "split" => Split }
}
