//! What threads do: operations, where in which files, and how the next is chosen.

use super::fileset::SizeDistribution;
use serde::{Deserialize, Serialize};

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
