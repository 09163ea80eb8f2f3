//! The workload: what a load does, whichever format it was written in.
//!
//! A [`Workload`] has [`Fileset`]s (the files it works on) and [`Phase`]s, run one after the other with a barrier
//! between them. A phase has [`ThreadGroup`]s, run side by side. A thread of a group performs [`Action`]s, chosen
//! by weight, in a fixed sequence, or by a ratio. Nothing here is executed: the engine does that.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The most threads of a phase: the engine counts each in 12 bits of what they share.
pub const MAXIMUM_THREADS: u64 = 4000;
/// The most files, and directories, of a fileset. The engine keeps 16 bytes in memory for each: 1.6 GB.
pub const MAXIMUM_FILES: u64 = 100_000_000;
/// Size of the writes that make files, where nothing else is said.
pub const DEFAULT_BUILD_BLOCK_BYTES: u64 = 64 << 10;

/// A load on a directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// A short name, such as the profile's.
    pub name: String,
    /// The files it works on. Actions refer to them by index. Each is built and made durable just before the first
    /// phase that works on it, and at the latest before the first measured phase: what an earlier ageing phase left
    /// behind is on the filesystem before the measured files are (FFSB).
    pub filesets: Vec<Fileset>,
    /// Run one after the other, all threads meeting in between. Without any, filesets are built and that is all (FFSB
    /// `time=0`, sysbench `prepare`).
    pub phases: Vec<Phase>,
    /// How data gets to and from the files, where a group of threads has nothing else.
    pub io: IoSettings,
    /// What the data looks like.
    pub data: DataPattern,
    /// What an errno does.
    pub on_error: ErrorPolicy,
    /// How the last measured phase's data is made durable. Its time is inside the measured interval.
    pub final_sync: FinalSync,
    /// A shell command to run after filesets are built and synced, before the first measured phase (FFSB callout).
    pub callout: Option<String>,
    /// Length of one point of the throughput and latency series.
    pub series_interval: Duration,
}

/// A set of files under a directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fileset {
    /// Name for messages and results.
    pub name: String,
    /// Where: relative to the load's directory; empty is the directory itself. Never with `..`; absolute only in the
    /// FFSB drop-in, which works in the directories its profile names (a study refuses that).
    pub directory: String,
    /// How many files, or how much data, to start with.
    pub amount: Amount,
    /// The directories below.
    pub directories: Directories,
    /// How file sizes are drawn, at the start and by every create.
    pub size: SizeDistribution,
    /// How files and directories are called.
    pub naming: Naming,
    /// Share of the files, 0 to 1, that exist before the first phase; the rest are names only (filebench `prealloc`).
    pub preallocated: f64,
    /// Size of the writes that build it.
    pub build_block_bytes: u64,
    /// What to do with files that are there already.
    pub existing: Existing,
    /// Whether to write the files' data while building; otherwise they are sparse (truncated to size).
    pub fill: bool,
}

impl Fileset {
    /// Files of this name and size in the load's directory itself, with everything else as it usually is.
    #[must_use]
    pub fn new(name: impl Into<String>, amount: Amount, size: SizeDistribution) -> Self {
        Self {
            name: name.into(),
            directory: String::new(),
            amount,
            directories: Directories::Flat { count: 0, root_too: false },
            size,
            naming: Naming::default(),
            preallocated: 1.0,
            build_block_bytes: DEFAULT_BUILD_BLOCK_BYTES,
            existing: Existing::Rebuild,
            fill: true,
        }
    }

    /// Whether names of its own can be names of the other, in the same directory.
    #[must_use]
    pub fn shares_names_with(&self, other: &Self) -> bool {
        // "file" and a number is "file1" and a number, too.
        let meet = |one: &str, other: &str| {
            let rest = one.strip_prefix(other).or_else(|| other.strip_prefix(one));
            rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let (one, another) = (&self.naming, &other.naming);
        let files_meet = match (one.exact, another.exact) {
            (true, true) => one.file_prefix == another.file_prefix,
            (true, false) => {
                one.file_prefix.starts_with(&another.file_prefix) && meet(&one.file_prefix, &another.file_prefix)
            }
            (false, true) => {
                another.file_prefix.starts_with(&one.file_prefix) && meet(&one.file_prefix, &another.file_prefix)
            }
            (false, false) => meet(&one.file_prefix, &another.file_prefix),
        };
        let mixed =
            meet(&one.file_prefix, &another.directory_prefix) || meet(&one.directory_prefix, &another.file_prefix);
        // A fileset without directories of its own makes none by that name.
        let directories = meet(&one.directory_prefix, &another.directory_prefix) && !(one.exact || another.exact);
        self.directory == other.directory && (files_meet || mixed || directories)
    }

    /// Whether it is below the load's directory, and what it makes is below its own: the rule for all but the drop-ins.
    #[must_use]
    pub fn stays_below(&self) -> bool {
        let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains('\0');
        let names = [&self.naming.file_prefix, &self.naming.directory_prefix];
        (self.directory.is_empty() || self.directory.split('/').all(plain))
            && !names.iter().any(|name| name.contains('/'))
    }

    /// Where [`Operation::Metadata`] works: a directory `meta` beside the fileset's own (`data` → `meta`, `fs1/data` →
    /// `fs1/meta`), or in it when the fileset's is the load's directory itself.
    #[must_use]
    pub fn metadata_directory(&self) -> String {
        match self.directory.rsplit_once('/') {
            Some((parent, _)) => format!("{parent}/meta"),
            None => "meta".to_owned(),
        }
    }
}

/// How much a fileset holds at the start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// This many files.
    Files(u64),
    /// Files until their sizes reach this sum (FFSB init_size).
    Bytes(u64),
    /// Files until the filesystem is used to this share, 0 to 1 (FFSB init_util).
    Utilization(f64),
}

/// The directories of a fileset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Directories {
    /// This many directories side by side; files go uniformly into them and, when `root_too`, into their parent.
    /// With 0 all files are in one directory.
    Flat {
        /// How many.
        count: u64,
        /// Whether the parent directory takes its share of files as well (FFSB does so).
        root_too: bool,
    },
    /// A tree: every directory has `width` subdirectories, `depth` levels deep; files are in the leaves.
    Tree {
        /// Subdirectories per directory.
        width: u32,
        /// Levels below the fileset's directory.
        depth: u32,
    },
}

/// How file sizes are drawn. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeDistribution {
    /// All alike.
    Fixed(u64),
    /// Uniform in `minimum..maximum`; `maximum` itself is never drawn unless equal to `minimum`.
    Uniform {
        /// Smallest size.
        minimum: u64,
        /// First size that is too large.
        maximum: u64,
    },
    /// One of these, by weight: (bytes, weight).
    Weighted(Vec<(u64, u32)>),
    /// Gamma with this mean and shape (filebench's default has shape 1.5).
    Gamma {
        /// Mean size.
        mean: u64,
        /// The shape parameter.
        shape: f64,
    },
    /// Lognormal with this median and σ of ln(size).
    Lognormal {
        /// Median size.
        median: u64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
}

impl SizeDistribution {
    /// The smallest and the largest size that can be drawn, where there are bounds.
    #[must_use]
    pub fn bounds(&self) -> Option<(u64, u64)> {
        match self {
            Self::Fixed(bytes) => Some((*bytes, *bytes)),
            Self::Uniform { minimum, maximum } => Some((*minimum, maximum.saturating_sub(1).max(*minimum))),
            Self::Weighted(sizes) => {
                let drawn = || sizes.iter().filter(|(_, weight)| *weight > 0).map(|(bytes, _)| *bytes);
                drawn().min().zip(drawn().max())
            }
            Self::Gamma { .. } | Self::Lognormal { .. } => None,
        }
    }

    /// About how large a file is: the mean, or the median where the mean is another.
    #[must_use]
    pub fn typical_bytes(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Uniform { minimum, maximum } => minimum.midpoint(*maximum),
            Self::Weighted(sizes) => {
                let sum: u128 = sizes.iter().map(|(bytes, weight)| u128::from(*bytes) * u128::from(*weight)).sum();
                let weights: u128 = sizes.iter().map(|(_, weight)| u128::from(*weight)).sum();
                u64::try_from(sum / weights.max(1)).unwrap_or(u64::MAX)
            }
            Self::Gamma { mean: bytes, .. } | Self::Lognormal { median: bytes, .. } => *bytes,
        }
    }
}

/// How files and directories of a fileset are called. K counts from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Naming {
    /// Files are called prefix + K.
    pub file_prefix: String,
    /// Directories are called prefix + K.
    pub directory_prefix: String,
    /// Whether the prefix is the whole name of the fileset's one file (fio's `filename`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
}

impl Default for Naming {
    fn default() -> Self {
        Self { file_prefix: "file".into(), directory_prefix: "dir".into(), exact: false }
    }
}

/// What to do with a fileset's files that exist before the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Existing {
    /// Remove them and build anew.
    Rebuild,
    /// Use them when names, sizes and counts fit, else build anew.
    Reuse,
    /// They have to be there and large enough; anything else is an error (sysbench `run`).
    Require,
}

/// A stretch of the load with its own threads and end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Name for messages and results.
    pub name: String,
    /// Whether its operations are in the figures. Ageing and warm-up are not.
    pub measured: bool,
    /// Run side by side.
    pub groups: Vec<ThreadGroup>,
    /// When it ends; at the latest when every group has reached a stop of its own.
    pub stop: Stop,
}

/// When a phase or a group of threads ends: at whichever comes first of those given. Threads finish the operation
/// they are in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// After this time.
    pub time: Option<Duration>,
    /// After this many operations of all its threads together.
    pub operations: Option<u64>,
    /// After this many bytes moved by all its threads together.
    pub bytes: Option<u64>,
    /// When every thread has gone through its actions (a sequence, or every file once) once.
    pub once_through: bool,
    /// When the filesystem is used to this share, 0 to 1 (FFSB ageing): the one that holds the fileset of the group's
    /// first action.
    pub utilization: Option<f64>,
}

/// Threads that do the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadGroup {
    /// Name for messages and results.
    pub name: String,
    /// How many threads.
    pub threads: u32,
    /// What each does.
    pub actions: Actions,
    /// How its data gets to and from files, where that differs from the rest of the workload.
    #[serde(default, skip_serializing_if = "IoOverrides::is_empty")]
    pub io: IoOverrides,
    /// Whether files are opened for every operation or stay open.
    pub open: OpenPolicy,
    /// Pause of a thread after each operation.
    pub think_time: Duration,
    /// Operations per second wanted of the whole group; latency is then counted from the intended start.
    pub rate_per_second: Option<f64>,
    /// Bytes per second wanted of the whole group, in place of operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// How the operations of [`Self::rate_per_second`] follow each other.
    #[serde(default, skip_serializing_if = "Arrivals::is_even")]
    pub arrivals: Arrivals,
    /// Whether what the page cache holds of a file is dropped when the file is opened, as far as it is not dirty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invalidate: bool,
    /// The part of each file that a thread reads and overwrites.
    #[serde(default, skip_serializing_if = "Region::is_whole")]
    pub region: Region,
    /// How long after the phase's begin its threads begin. Its own stop counts from there.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub start_delay: Duration,
    /// The CPUs its threads run on, by the kernel's numbers; empty for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// Which of these each thread runs on.
    #[serde(default, skip_serializing_if = "CpuPolicy::is_shared")]
    pub cpu_policy: CpuPolicy,
    /// Periodic and final fsyncs of the group.
    pub fsync: FsyncPolicy,
    /// An end of its own, before the phase's.
    pub stop: Stop,
}

impl ThreadGroup {
    /// Threads that do this as fast as they can, with everything else as it usually is.
    #[must_use]
    pub fn new(name: impl Into<String>, threads: u32, actions: Actions) -> Self {
        Self {
            name: name.into(),
            threads,
            actions,
            io: IoOverrides::default(),
            open: OpenPolicy::PerOperation,
            think_time: Duration::ZERO,
            rate_per_second: None,
            bytes_per_second: None,
            arrivals: Arrivals::Even,
            invalidate: false,
            region: Region::Whole,
            start_delay: Duration::ZERO,
            cpus: Vec::new(),
            cpu_policy: CpuPolicy::Shared,
            fsync: FsyncPolicy::default(),
            stop: Stop::default(),
        }
    }

    /// Whether it goes at a given rate rather than as fast as it can.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.rate_per_second.is_some() || self.bytes_per_second.is_some()
    }
}

/// The part of a file that a thread reads and overwrites. What it finds by a pattern is within it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Region {
    /// All of it.
    #[default]
    Whole,
    /// Thread t of n has the t-th of n equal parts, which begin at multiples of 4 KiB where they are that large.
    Split,
    /// Thread t has what begins at `offset_bytes` + t × `step_bytes`.
    At {
        /// Where the first thread's begins.
        offset_bytes: u64,
        /// How much; to the file's end unless given.
        length_bytes: Option<u64>,
        /// How much later the next thread's begins.
        step_bytes: u64,
    },
}

impl Region {
    fn is_whole(&self) -> bool {
        *self == Self::Whole
    }

    /// Begin and length of the part of a file of this size that thread `thread` of `threads` has.
    #[must_use]
    pub fn of(&self, size: u64, thread: u64, threads: u64) -> (u64, u64) {
        match *self {
            Self::Whole => (0, size),
            Self::Split => {
                let share = size / threads.max(1);
                let share = if share < SPLIT_BYTES { share } else { share / SPLIT_BYTES * SPLIT_BYTES };
                let begin = share * thread;
                (begin, if thread + 1 == threads { size - begin } else { share })
            }
            Self::At { offset_bytes, length_bytes, step_bytes } => {
                let begin = offset_bytes.saturating_add(step_bytes.saturating_mul(thread)).min(size);
                (begin, length_bytes.unwrap_or(u64::MAX).min(size - begin))
            }
        }
    }
}

/// Where parts of a file begin.
const SPLIT_BYTES: u64 = 4096;

/// How the operations of a rate follow each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// At equal distances.
    #[default]
    Even,
    /// Each at a moment that has nothing to do with the others' (a Poisson process): the gaps are exponential, with the rate's
    /// mean.
    Poisson,
}

impl Arrivals {
    fn is_even(&self) -> bool {
        *self == Self::Even
    }
}

/// Which of a group's CPUs a thread runs on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuPolicy {
    /// Any of them.
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

/// How a thread chooses what to do next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "a group has one of them, and nobody copies it while it runs")]
#[serde(rename_all = "kebab-case")]
pub enum Actions {
    /// By weight, drawn for each operation.
    Mix(Vec<Weighted>),
    /// One after the other, again and again.
    Sequence(Vec<Action>),
    /// `first` while (firsts+1)/(seconds+1) < ratio, else `second`, counted over all threads (sysbench rndrw). A thread
    /// that keeps transfers of buffered files in flight counts them whenever it has filled its queue.
    Ratio {
        /// Usually a read.
        first: Action,
        /// Usually a write.
        second: Action,
        /// firsts per second.
        ratio: f64,
    },
}

impl Actions {
    /// All actions there are, in order.
    #[must_use]
    pub fn all(&self) -> Vec<&Action> {
        match self {
            Self::Mix(mix) => mix.iter().map(|weighted| &weighted.action).collect(),
            Self::Sequence(actions) => actions.iter().collect(),
            Self::Ratio { first, second, .. } => vec![first, second],
        }
    }
}

/// An action and its weight in a mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Weighted {
    /// Its share of all operations is weight / sum of weights.
    pub weight: u32,
    /// What is done.
    pub action: Action,
}

/// One kind of operation as a group performs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// What results call it, in the words of the format it came from ("readall").
    pub name: String,
    /// What is done.
    pub operation: Operation,
    /// On which filesets: one, or drawn uniformly from all when `None`.
    pub fileset: Option<u32>,
    /// Which file of the fileset.
    pub choice: FileChoice,
    /// How its transactions are counted.
    pub transactions: TransactionRule,
    /// Sizes of its blocks, each drawn by itself, where they are not alike: [`SizeDistribution::Uniform`], which gives
    /// multiples of the smallest, or [`SizeDistribution::Weighted`]. The operation's block is the largest of them then, and
    /// an operation of the extent of one block moves one that is drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<SizeDistribution>,
}

/// Which file an action works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileChoice {
    /// Any live file, uniformly.
    Uniform,
    /// One after the other, by a cursor that the group's threads share.
    RoundRobin,
    /// The fileset is one concatenated space; the transfer's pattern says where in it (sysbench).
    Concatenated,
    /// The files are dealt out: thread t of n has files t, t+n, t+2n, …
    Partitioned,
    /// The file the same thread's previous action worked on (sequences: create, write, fsync).
    Same,
}

impl Action {
    /// This operation on a file of the fileset, drawn uniformly.
    #[must_use]
    pub fn new(name: impl Into<String>, operation: Operation, fileset: Option<u32>) -> Self {
        Self {
            name: name.into(),
            operation,
            fileset,
            choice: FileChoice::Uniform,
            transactions: TransactionRule::One,
            blocks: None,
        }
    }

    /// Whether the action works on this fileset.
    #[must_use]
    pub fn works_on(&self, fileset: usize) -> bool {
        let is_it = |index: u32| index as usize == fileset;
        self.fileset.is_none_or(is_it) || self.operation.nature().to.is_some_and(is_it)
    }
}

/// How many transactions an operation counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransactionRule {
    /// One.
    One,
    /// Whole blocks moved: ⌊bytes / block⌋; but 1 when something less than a block was moved.
    BlocksFloor,
    /// Blocks begun: ⌈bytes / block⌉.
    BlocksCeil,
}

/// What is done to a file or directory. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Make a new file of a size drawn from the fileset (O_CREAT|O_RDWR|O_TRUNC), write it, optionally fsync, close.
    Create {
        /// Size of each write; 0 makes an empty file.
        block_bytes: u64,
        /// Whether to fsync before the close.
        fsync: bool,
    },
    /// Read or overwrite data of an existing file.
    Read(Transfer),
    /// Overwrite data in place.
    Write(Transfer),
    /// Write at the end (O_APPEND).
    Append(Transfer),
    /// Read through a memory mapping.
    MmapRead(Transfer),
    /// Write through a memory mapping.
    MmapWrite {
        /// What is written.
        transfer: Transfer,
        /// Whether to msync(MS_SYNC) it.
        msync: bool,
    },
    /// Open and close.
    OpenClose,
    /// fsync.
    Fsync,
    /// fdatasync.
    Fdatasync,
    /// fsync of the directory that a file is in: what makes its name durable.
    FsyncDirectory,
    /// syncfs.
    Syncfs,
    /// Set the size.
    Truncate {
        /// The new size.
        size_bytes: u64,
    },
    /// Allocate without writing.
    Fallocate {
        /// How much, from the start.
        size_bytes: u64,
        /// FALLOC_FL_PUNCH_HOLE instead of allocating.
        punch: bool,
    },
    /// Remove a file.
    Unlink,
    /// Rename a file within its directory.
    Rename,
    /// Rename a file into another fileset (Maildir's `tmp` → `new`), or to a new name of its own, which may be in another
    /// directory.
    Move {
        /// The fileset, by its index.
        to: u32,
    },
    /// Make a hard link and keep it.
    Link,
    /// Make a symbolic link and keep it.
    Symlink,
    /// Make a directory.
    Mkdir,
    /// Remove a directory that `Mkdir` made.
    Rmdir,
    /// FFSB's metaop: two mkdir, then one rmdir and one rename, all of random directories under
    /// [`Fileset::metadata_directory`]. It counts once.
    Metadata,
    /// List one directory of the fileset.
    Readdir,
    /// Walk the whole fileset, stat-ing each entry.
    Walk,
    /// stat.
    Stat,
    /// chmod.
    Chmod,
    /// Set access and modification time.
    Utimens,
    /// Set an extended attribute of this many bytes.
    Setxattr {
        /// Value size.
        value_bytes: u32,
    },
    /// Get it.
    Getxattr,
    /// copy_file_range into a new file.
    CopyFileRange,
    /// FICLONE into a new file.
    Reflink,
}

/// A movement of data within a file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// How much per operation.
    pub extent: Extent,
    /// How much per system call; the last may be shorter.
    pub block_bytes: u64,
    /// Where.
    pub pattern: Pattern,
    /// Whether to fsync the file after the transfer, within the operation.
    pub fsync: bool,
}

/// How much one operation moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// The whole file.
    Whole,
    /// This many bytes (or less, where the file ends).
    Bytes(u64),
}

/// Where in a file an operation moves data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// From the start on.
    FromStart,
    /// Sequentially from an offset drawn uniformly.
    FromRandom {
        /// Offsets are multiples of this; 1 for any.
        align_bytes: u64,
    },
    /// From where the last operation ended, wrapping round; one cursor for all threads of the group, or one each.
    Cursor {
        /// Whether the threads share it.
        shared: bool,
    },
    /// Every block at an offset of its own.
    Random {
        /// How offsets are drawn.
        distribution: Distribution,
        /// Offsets are multiples of this; 1 for any.
        align_bytes: u64,
    },
    /// From the start, a block, then skip, and again.
    Skip {
        /// Bytes passed over between blocks.
        skip_bytes: u64,
    },
}

/// How random offsets are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// Zipf with exponent theta (> 0); ranks are scattered over the space by a fixed permutation.
    Zipf {
        /// The exponent.
        theta: f64,
    },
    /// Normal around the middle with this standard deviation, as a share of the space, cut off at its ends.
    Gauss {
        /// Standard deviation / space.
        deviation: f64,
    },
    /// Each block exactly once, in a seeded random order, then again in another.
    Permutation,
}

/// How long files stay open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpenPolicy {
    /// Open and close within every operation (FFSB).
    PerOperation,
    /// All files of the fileset are opened once, before the phase (sysbench, fio).
    KeepOpen,
}

/// Fsyncs that belong to a group rather than to an operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsyncPolicy {
    /// After every this many operations of the group, when something was written since; 0 = never. With `all_files`
    /// before the next operation is begun (so not after the last), else by the thread that performed the operation.
    pub every_operations: u64,
    /// Whether every file of the filesets is fsynced (sysbench), a file at a time by whichever thread comes next, or
    /// only the file just worked on.
    pub all_files: bool,
    /// Whether each periodic fsync counts as one of the operations that [`Stop::operations`] limits and that a rate
    /// paces (sysbench).
    pub counted: bool,
    /// Whether each thread fsyncs every file when it ends.
    pub at_end: bool,
    /// fdatasync in place of fsync, also where an action of the group ends with an fsync.
    pub data_only: bool,
}

/// How data gets to and from files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoSettings {
    /// The I/O engine.
    pub engine: IoEngineKind,
    /// O_DIRECT (filesets are still built through the page cache).
    pub direct: bool,
    /// O_SYNC, O_DSYNC or neither.
    pub sync: OpenSync,
    /// Requests in flight per thread, for engines that can have more than one.
    pub queue_depth: u32,
}

impl Default for IoSettings {
    fn default() -> Self {
        Self { engine: IoEngineKind::Psync, direct: false, sync: OpenSync::None, queue_depth: 1 }
    }
}

/// What a group of threads has otherwise than its workload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IoOverrides {
    /// See [`IoSettings::engine`]. The null engine is for a whole workload.
    pub engine: Option<IoEngineKind>,
    /// See [`IoSettings::direct`].
    pub direct: Option<bool>,
    /// See [`IoSettings::sync`].
    pub sync: Option<OpenSync>,
    /// See [`IoSettings::queue_depth`].
    pub queue_depth: Option<u32>,
}

impl IoOverrides {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The settings, with what differs.
    #[must_use]
    pub fn over(&self, io: IoSettings) -> IoSettings {
        IoSettings {
            engine: self.engine.unwrap_or(io.engine),
            direct: self.direct.unwrap_or(io.direct),
            sync: self.sync.unwrap_or(io.sync),
            queue_depth: self.queue_depth.unwrap_or(io.queue_depth),
        }
    }
}

/// The I/O engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoEngineKind {
    /// Does nothing, instantly: what remains is fstone's own cost.
    Null,
    /// pread, pwrite and the other plain system calls.
    Psync,
    /// io_uring.
    IoUring,
    /// The kernel's own AIO, io_submit and io_getevents: in flight with O_DIRECT only.
    Libaio,
    /// Memory mappings.
    Mmap,
}

impl IoEngineKind {
    /// Whether it can have more than one request in flight.
    #[must_use]
    pub fn queues(self) -> bool {
        match self {
            Self::IoUring | Self::Libaio | Self::Null => true,
            Self::Psync | Self::Mmap => false,
        }
    }
}

/// Synchronous open flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpenSync {
    /// Neither.
    None,
    /// O_SYNC.
    Sync,
    /// O_DSYNC.
    Dsync,
}

/// What written data looks like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DataPattern {
    /// Share that a compressor can remove, 0 to 1.
    pub compressible: f64,
    /// Share of blocks that equal another block, 0 to 1.
    pub duplicate: f64,
    /// Whether every block carries file, offset, generation and checksum, and is verified when read.
    pub stamped: bool,
}

impl Default for DataPattern {
    /// Incompressible, without duplicates, not verified.
    fn default() -> Self {
        Self { compressible: 0.0, duplicate: 0.0, stamped: false }
    }
}

/// What an operation's error does. It is recorded either way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorPolicy {
    /// Ends the load.
    #[default]
    Stop,
    /// The thread goes on with its next operation.
    Continue,
}

/// How data is made durable when the threads are done, inside the measured interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinalSync {
    /// Not at all.
    None,
    /// syncfs on the load's filesystem.
    Syncfs,
    /// sync: every filesystem of the machine (FFSB).
    Everything,
}

impl Workload {
    /// How a group's data gets to and from files.
    #[must_use]
    pub fn io_of(&self, group: &ThreadGroup) -> IoSettings {
        group.io.over(self.io)
    }

    /// The phases whose operations are in the figures.
    pub fn measured_phases(&self) -> impl Iterator<Item = &Phase> {
        self.phases.iter().filter(|phase| phase.measured)
    }

    /// Time that the measured phases are limited to, if every one of them is.
    #[must_use]
    pub fn time_limit(&self) -> Option<Duration> {
        self.measured_phases().map(|phase| phase.stop.time).sum()
    }

    /// Threads of the largest measured phase.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.measured_phases().map(|phase| phase.groups.iter().map(|group| group.threads).sum()).max().unwrap_or(0)
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
