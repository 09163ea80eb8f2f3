//! The files that a load works on.

use serde::{Deserialize, Serialize};

/// The most files and the most directories of a fileset. The engine keeps 16 bytes in memory for each: 1.6 GB.
pub const MAXIMUM_FILES: u64 = 100_000_000;

pub const DEFAULT_BUILD_BLOCK_BYTES: u64 = 64 << 10;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A set of files under a directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fileset {
    pub name: String,
    /// Where: relative to the load's directory; empty is the directory itself. Never with `..`; absolute only in the
    /// FFSB drop-in, which works in the directories its profile names (a study refuses that).
    pub directory: String,
    /// How many files, or how much data, to start with.
    pub amount: Amount,
    pub directories: Directories,
    /// Names of empty directories beside the files, in the directories that hold them: [`Operation::Mkdir`](super::Operation::Mkdir)
    /// creates those that do not exist, and [`Operation::Rmdir`](super::Operation::Rmdir) removes those that do, in rotation (filebench
    /// `leafdirs`). With 0, `Mkdir` creates directories with new names in the fileset's own directory, and `Rmdir` removes any of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub leaf_directories: u64,
    /// How file sizes are drawn, at the start and by every create.
    pub size: SizeDistribution,
    pub naming: Naming,
    /// Share of the files and leaf directories, 0 to 1, that exist before the first phase; the rest are names only (filebench `prealloc`).
    pub preallocated: f64,
    pub build_block_bytes: u64,
    pub existing: Existing,
    /// Whether to write the files' data while building; otherwise they are sparse (truncated to size), or have blocks without data.
    pub fill: bool,
    /// Whether files that are not filled have their blocks allocated (fallocate), where the filesystem can.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allocate: bool,
    /// Whether files that are not filled are empty at first, whatever their size, and grow as they are written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grows: bool,
    /// Whether files that are missing are made when a thread opens them, and not before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made_when_opened: bool,
    #[serde(default, skip_serializing_if = "Sharing::is_private")]
    pub ranks: Sharing,
}

impl Fileset {
    /// Files of this name and size in the load's directory itself, with defaults for everything else.
    pub fn new(name: impl Into<String>, amount: Amount, size: SizeDistribution) -> Self {
        Self {
            name: name.into(),
            directory: String::new(),
            amount,
            directories: Directories::Flat { count: 0, root_too: false },
            leaf_directories: 0,
            size,
            naming: Naming::default(),
            preallocated: 1.0,
            build_block_bytes: DEFAULT_BUILD_BLOCK_BYTES,
            existing: Existing::Rebuild,
            fill: true,
            allocate: false,
            grows: false,
            made_when_opened: false,
            ranks: Sharing::Private,
        }
    }

    /// Whether it is below the load's directory and everything it makes is below its own: the rule for all but the drop-ins.
    pub fn stays_below(&self) -> bool {
        let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains('\0');
        (self.directory.is_empty() || self.directory.split('/').all(plain))
            && !self.naming.prefixes().any(|name| name.contains('/'))
    }

    /// Where [`Operation::Metadata`](super::Operation::Metadata) works: a directory `meta` beside the fileset's own (`data` → `meta`, `fs1/data` →
    /// `fs1/meta`), or in it when the fileset's is the load's directory itself.
    pub fn metadata_directory(&self) -> String {
        match self.directory.rsplit_once('/') {
            Some((parent, _)) => format!("{parent}/meta"),
            None => "meta".to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    Files(u64),
    /// Files until their sizes reach this sum (FFSB init_size).
    Bytes(u64),
    /// Files until the filesystem is used to this share, 0 to 1 (FFSB init_util).
    Utilization(f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Directories {
    /// This many directories side by side; files go uniformly into them and, when `root_too`, into their parent.
    /// With 0 all files are in one directory.
    Flat {
        count: u64,
        /// Whether the parent directory takes its share of files as well (FFSB does so).
        root_too: bool,
    },
    /// A tree: every directory has `width` subdirectories, `depth` levels deep; files are in the leaves.
    Tree { width: u32, depth: u32 },
    /// A tree whose directories are filled one after the other (mdtest): one directory at the top, `depth` levels below it, each directory
    /// with `width` subdirectories. They are numbered level by level, and called by these numbers; the first has the files (and leaf
    /// directories) 0 to `each` - 1, the next `each` are in the second, and so on. The last directory has what is left. Files are made and removed
    /// depth first, and used in the order of their numbers.
    Filled {
        width: u32,
        /// Levels below the directory at the top.
        depth: u32,
        /// Files of each directory.
        each: u64,
        /// Files and leaf directories are then numbered as if the directories above had theirs.
        leaves_only: bool,
    },
}

impl Directories {
    /// Directories of a filled tree, and how many of them are above its last level. Both saturate at `u64::MAX`.
    pub fn of_tree(width: u32, depth: u32) -> (u64, u64) {
        let mut above = 0_u64;
        let mut level = 1_u64;
        for _ in 0..depth {
            above = above.saturating_add(level);
            level = level.saturating_mul(u64::from(width.max(1)));
        }
        (above.saturating_add(level), above)
    }
}

/// How file sizes are drawn. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeDistribution {
    Fixed(u64),
    /// Uniform in `minimum..maximum`; `maximum` itself is never drawn unless equal to `minimum`.
    Uniform {
        minimum: u64,
        maximum: u64,
    },
    /// One of these, by weight: (bytes, weight).
    Weighted(Vec<(u64, u32)>),
    /// Gamma with this mean and shape (filebench's default has shape 1.5).
    Gamma {
        mean: u64,
        shape: f64,
    },
    /// Lognormal with this median and σ of ln(size).
    Lognormal {
        median: u64,
        sigma: f64,
    },
}

impl SizeDistribution {
    /// The smallest and the largest block that can be drawn, if there are bounds. A range gives multiples of its
    /// smallest size only, so that the next block is at an offset that direct I/O allows.
    pub fn block_bounds(&self) -> Option<(u64, u64)> {
        match self {
            Self::Fixed(bytes) => Some((*bytes, *bytes)),
            Self::Uniform { minimum, maximum } => {
                let last = maximum.saturating_sub(1).max(*minimum);
                Some((*minimum, last - last.checked_rem(*minimum).unwrap_or(0)))
            }
            Self::Weighted(sizes) => {
                let drawn = || sizes.iter().filter(|(_, weight)| *weight > 0).map(|(bytes, _)| *bytes);
                drawn().min().zip(drawn().max())
            }
            Self::Gamma { .. } | Self::Lognormal { .. } => None,
        }
    }

    /// The approximate size of a file: the mean, or the median if the distribution has no simple mean.
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
    /// Leaf directories are called this and a number from 0; like other directories, with numbers above theirs, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf_prefix: Option<String>,
}

/// The placeholder in a name for the rank's number in a load of many ranks; 0 in any other load.
pub const RANK: &str = "{rank}";
/// The same in eight digits.
pub const PADDED_RANK: &str = "{rank:08}";

pub fn has_rank(name: &str) -> bool {
    name.contains(RANK) || name.contains(PADDED_RANK)
}

impl Naming {
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        [&self.file_prefix, &self.directory_prefix].into_iter().chain(&self.leaf_prefix).map(String::as_str)
    }

    pub fn prefixes_mut(&mut self) -> impl Iterator<Item = &mut String> {
        [&mut self.file_prefix, &mut self.directory_prefix].into_iter().chain(&mut self.leaf_prefix)
    }

    /// Whether some prefix has the placeholder for the rank's number, and none has a digit after it, so that the names of two ranks differ.
    pub fn names_ranks(&self) -> bool {
        let plain = |prefix: &str| prefix.replace(PADDED_RANK, RANK);
        let whole = self.exact.then(|| plain(&self.file_prefix));
        has_rank(&self.file_prefix)
            && self.prefixes().map(plain).all(|prefix| {
                let ends = |rest: &str| rest.is_empty() && whole.as_ref() == Some(&prefix);
                let mut rests = prefix.split(RANK).skip(1);
                rests.all(|rest| ends(rest) || rest.starts_with(|first: char| !first.is_ascii_digit()))
            })
    }
}

impl Default for Naming {
    fn default() -> Self {
        Self { file_prefix: "file".into(), directory_prefix: "dir".into(), exact: false, leaf_prefix: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Existing {
    Rebuild,
    /// Use them when names, sizes and counts fit, else build anew.
    Reuse,
    /// They must exist and be large enough; anything else is an error (sysbench `run`).
    Require,
    /// They are assumed to exist and are not looked up beforehand, which would bring them into caches (mdtest `-T`). A missing file is an
    /// error of the operation that misses it.
    Assume,
}

/// Whose the files of a fileset are, in a load of many ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Each rank has a fileset of its own, in a directory of its own (`rank0`, `rank1`, …).
    #[default]
    Private,
    /// Each rank has a fileset of its own, all in the same directory: names begin with `rank0-`, `rank1-`, …, or have the rank's number where
    /// [`RANK`] is in them. Directories whose names have no rank number are then shared.
    Names,
    /// There is one fileset for all ranks, each of which works on all of it. Rank 0 makes it.
    Shared,
    /// There is one fileset for all ranks, and rank r of n works on the r-th of n equal parts of each file. Rank 0 makes it.
    Regions,
}

impl Sharing {
    pub fn is_private(&self) -> bool {
        *self == Self::Private
    }

    /// Whether all ranks work on the same files.
    pub const fn is_common(self) -> bool {
        matches!(self, Self::Shared | Self::Regions)
    }
}
