//! A profile that was read: what it asks for, whichever dialect said it.

use crate::Diagnostics;
use fstone_model::workload::{Amount, SizeDistribution};
use std::time::Duration;

fstone_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Dialect: name {
        /// 4.x: one list of settings and `[config0]`; the run time is an argument.
        V4 => "4.x",
        /// 5.x: counted sections, inheritance, integers.
        V5 => "5.x",
        /// 6.0: sections in any order, sizes with suffixes, `clone`.
        V6 => "6.0",
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The file's name without directory and extension.
    pub name: String,
    pub dialect: Dialect,
    /// How long to run; zero only builds the filesets.
    pub time: Duration,
    pub direct: bool,
    /// Random offsets are multiples of 4096; `directio` implies it.
    pub aligned: bool,
    /// Shell command to run between building and benchmarking.
    pub callout: Option<String>,
    pub filesystems: Vec<Filesystem>,
    pub groups: Vec<Group>,
    pub warnings: Option<Diagnostics>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Filesystem {
    pub location: String,
    /// Directories below `data`.
    pub directories: u64,
    pub amount: Amount,
    /// Sizes of files, at the start and of every create.
    pub sizes: SizeDistribution,
    pub create_block_bytes: u64,
    /// Use a fileset that is there already and fits.
    pub reuse: bool,
    pub ageing: Option<Ageing>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Ageing {
    pub group: Group,
    /// Until the filesystem is used to this share, 0 to 1.
    pub utilization: f64,
    /// Size of the writes of the files it starts from.
    pub block_bytes: u64,
}

/// Threads that draw operations from the same mix.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub threads: u32,
    /// The only filesystem they work on, by index; all of them when `None`.
    pub bound_to: Option<u32>,
    /// Weights that are not 0, in the order of [`Op::ALL`].
    pub weights: Vec<(Op, u32)>,
    pub read: ReadSettings,
    pub write: WriteSettings,
    pub delay: Duration,
    pub stats: Option<Stats>,
}

/// How a group reads. Sizes are bytes; 0 where the profile does not say and no operation needs it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadSettings {
    /// Every block at an offset of its own.
    pub random: bool,
    /// How much one read operation reads.
    pub size_bytes: u64,
    /// How much one system call reads.
    pub block_bytes: u64,
    /// Bytes to skip after each block, when reading with skips.
    pub skip_bytes: Option<u64>,
}

/// How a group writes. Sizes are bytes; 0 where the profile does not say and no operation needs it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteSettings {
    pub random: bool,
    /// How much one write or append operation writes.
    pub size_bytes: u64,
    pub block_bytes: u64,
    /// Whether `write` ends with an fsync (5.x).
    pub fsync: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    pub ignored: Vec<&'static str>,
    /// Ranges to count calls in, milliseconds.
    pub ranges: Vec<(f64, f64)>,
}

/// The system calls whose latency FFSB knows, in the order it prints them.
pub const CALLS: [&str; 8] = ["open", "read", "write", "create", "lseek", "unlink", "close", "stat"];

fstone_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Op: weight_keyword, ALL {
        Read => "read_weight",
        Readall => "readall_weight",
        Write => "write_weight",
        Create => "create_weight",
        Append => "append_weight",
        Delete => "delete_weight",
        Metaop => "metaop_weight",
        Createdir => "createdir_weight",
        Stat => "stat_weight",
        Writeall => "writeall_weight",
        WriteallFsync => "writeall_fsync_weight",
        OpenClose => "open_close_weight",
        WriteFsync => "write_fsync_weight",
        CreateFsync => "create_fsync_weight",
        AppendFsync => "append_fsync_weight",
    }
}

impl Op {
    /// Its name in FFSB's output.
    pub fn name(self) -> &'static str {
        self.weight_keyword().trim_end_matches("_weight")
    }

    pub const fn ages(self) -> bool {
        matches!(self, Self::Create | Self::Append | Self::Delete | Self::CreateFsync | Self::AppendFsync)
    }

    pub const fn moves_data(self) -> bool {
        !matches!(self, Self::Delete | Self::Metaop | Self::Createdir | Self::Stat | Self::OpenClose)
    }

    /// Whether it needs `write_blocksize`.
    pub(super) const fn writes(self) -> bool {
        self.moves_data() && !matches!(self, Self::Read | Self::Readall)
    }

    /// Whether it needs `write_size`.
    pub(super) const fn writes_an_amount(self) -> bool {
        matches!(self, Self::Write | Self::WriteFsync | Self::Append | Self::AppendFsync)
    }

    pub(super) const fn creates(self) -> bool {
        matches!(self, Self::Create | Self::CreateFsync)
    }
}
