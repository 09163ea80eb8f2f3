//! How data gets to and from files, and what it looks like.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpenPolicy {
    /// Open and close within every operation (FFSB).
    PerOperation,
    /// Each thread opens all files of the fileset, before the phase (fio).
    KeepOpen,
    /// All files of the fileset are opened once, before the phase, for all threads of the group (sysbench).
    KeepShared,
}

impl OpenPolicy {
    pub const fn keeps(self) -> bool {
        matches!(self, Self::KeepOpen | Self::KeepShared)
    }
}

/// Fsyncs that belong to a group rather than to an operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsyncPolicy {
    /// After every this many operations of the group, when something was written since; 0 = never. With `all_files`
    /// before the next operation begins (so not after the last), else by the thread that performed the operation.
    pub every_operations: u64,
    /// Whether every file of the filesets is fsynced (sysbench), one file at a time by whichever thread comes next, or
    /// only the file just worked on.
    pub all_files: bool,
    /// Whether the file just worked on is fsynced before the next operation begins (so not after the last).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub between: bool,
    /// Whether one that is due after a thread's last operation is made too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_last: bool,
    /// Whether each periodic fsync counts as one of the operations that [`Stop::operations`](super::Stop::operations) limits and, unless it
    /// comes right after an operation, that a rate paces (sysbench).
    pub counted: bool,
    /// Whether each thread fsyncs every file when it ends.
    pub at_end: bool,
    /// Whether a file is fsynced before a tour closes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_close: bool,
    /// Use fdatasync instead of fsync, also if an action of the group ends with an fsync.
    pub data_only: bool,
    /// Whether only operations that write count towards `every_operations` and `data_every`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_writes: bool,
    /// An fdatasync after every this many operations, where no fsync is due; 0 = never.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub data_every: u64,
    /// In place of those fdatasyncs: sync_file_range of the whole file with these flags of the kernel's; 0 = fdatasync. Needs `between`.
    #[serde(default, skip_serializing_if = "no_flags")]
    pub range_flags: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn no_flags(flags: &u32) -> bool {
    *flags == 0
}

impl FsyncPolicy {
    /// Whether operations are followed by an fsync of their own file, so that each of them has a time until it is durable.
    pub fn commits(&self) -> bool {
        self.every_operations.max(self.data_every) > 0 && !self.all_files && !self.between
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoSettings {
    pub engine: IoEngineKind,
    /// O_DIRECT (filesets are still built through the page cache).
    pub direct: bool,
    pub sync: OpenSync,
    /// Requests in flight per thread, for engines that can have more than one.
    pub queue_depth: u32,
    /// Completions are polled for. [`super::settings`] says what that and the following settings are with each engine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polled: bool,
    /// What was read or written does not stay in the page cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncached: bool,
    /// A transfer that would have to wait fails with EAGAIN instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_wait: bool,
    /// A write is in the file whole or not at all, also after a power cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub atomic: bool,
}

impl IoSettings {
    pub const DEFAULT: Self = Self {
        engine: IoEngineKind::Psync,
        direct: false,
        sync: OpenSync::None,
        queue_depth: 1,
        polled: false,
        uncached: false,
        no_wait: false,
        atomic: false,
    };
}

impl Default for IoSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a group of threads has otherwise than its workload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IoOverrides {
    /// See [`IoSettings::engine`]. The null engine is for a whole workload.
    pub engine: Option<IoEngineKind>,
    pub direct: Option<bool>,
    pub sync: Option<OpenSync>,
    pub queue_depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncached: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_wait: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub atomic: Option<bool>,
}

impl IoOverrides {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn over(&self, io: IoSettings) -> IoSettings {
        IoSettings {
            engine: self.engine.unwrap_or(io.engine),
            direct: self.direct.unwrap_or(io.direct),
            sync: self.sync.unwrap_or(io.sync),
            queue_depth: self.queue_depth.unwrap_or(io.queue_depth),
            polled: self.polled.unwrap_or(io.polled),
            uncached: self.uncached.unwrap_or(io.uncached),
            no_wait: self.no_wait.unwrap_or(io.no_wait),
            atomic: self.atomic.unwrap_or(io.atomic),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IoEngineKind {
    /// Does nothing, instantly: what remains is fstone's own cost.
    Null,
    /// pread, pwrite and the other plain system calls.
    Psync,
    IoUring,
    /// The kernel's own AIO, io_submit and io_getevents: in flight with O_DIRECT only.
    Libaio,
    Mmap,
    /// Writes allocate their blocks (fallocate) and write nothing; all else as with psync.
    Falloc,
    /// Through a pipe.
    Splice,
}

impl IoEngineKind {
    /// Whether it can have more than one request in flight.
    pub fn queues(self) -> bool {
        match self {
            Self::IoUring | Self::Libaio | Self::Null => true,
            Self::Psync | Self::Mmap | Self::Falloc | Self::Splice => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpenSync {
    None,
    Sync,
    Dsync,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataPattern {
    /// Share that a compressor can remove, 0 to 1.
    pub compressible: f64,
    /// Share of blocks, each as it is written, that equal another block, 0 to 1.
    pub duplicate: f64,
    /// Whether every block carries file, offset, generation and checksum, and is verified when read.
    pub stamped: bool,
    /// Bytes that are repeated from the start of each block instead of random ones; for compressible data, instead of the
    /// zeros that make it so. None: random data and zeros.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeat: Vec<u8>,
}

/// The longest bytes that are repeated.
pub const MAXIMUM_REPEAT: usize = 512;

impl Default for DataPattern {
    /// Incompressible, without duplicates, not verified.
    fn default() -> Self {
        Self { compressible: 0.0, duplicate: 0.0, stamped: false, repeat: Vec::new() }
    }
}

/// What an operation's error does. It is recorded either way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorPolicy {
    #[default]
    Stop,
    /// The group ends; other groups and later phases go on.
    StopGroup,
    /// The thread goes on with its next operation.
    Continue,
}

/// How data is made durable when the threads are done, inside the measured interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinalSync {
    None,
    /// syncfs on the load's filesystem.
    Syncfs,
    /// sync: every filesystem of the machine (FFSB).
    Everything,
}
