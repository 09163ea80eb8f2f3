//! The I/O engines: how an operation's calls reach the kernel.
//!
//! [`Io`] has one method per call. The operation loop is compiled for the null engine, where a call costs nothing, for psync, where a cached
//! read costs so little that anything more is seen, and once for all others ([`Real`]), where a branch chooses the engine of a call.
//!
//! | engine | data | everything else |
//! |---|---|---|
//! | null | nothing | nothing |
//! | psync | pread, pwrite | plain calls |
//! | falloc | pread, fallocate | plain calls |
//! | splice | splice, vmsplice | plain calls |
//! | io_uring | a ring, many in flight | plain calls |
//! | libaio | io_submit, many in flight | plain calls |
//! | mmap | memory copies | plain calls |
//!
//! Those that reach a filesystem can be observed by a [`Witness`](crate::Witness) (`witnessed.rs`), for loads whose promises are checked after a power cut. A
//! [`CallLog`] takes down what they ask (`logged.rs`).

mod aio;
pub(crate) mod kernel;
mod logged;
pub(crate) mod mapping;
mod mmap;
mod null;
pub(crate) mod plain;
mod psync;
mod real;
mod slots;
mod splice;
mod uring;
mod witnessed;

pub(crate) use kernel::{Fd, Part, Result, Space};
pub(crate) use null::Null;
pub(crate) use psync::Psync;
pub(crate) use real::Real;
pub(crate) use witnessed::Witnessed;

use crate::promises::Witness;
use fstone_model::workload::{IoEngineKind, IoSettings, OpenSync};
pub(crate) use rustix::fd::BorrowedFd;
pub(crate) use rustix::fs::{Advice, OFlags};
use rustix::io::Errno;
pub(crate) use std::ffi::CStr;
pub(crate) use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn name_of(engine: IoEngineKind) -> &'static str {
    match engine {
        IoEngineKind::Null => "null",
        IoEngineKind::Psync => "psync",
        IoEngineKind::IoUring => "io_uring",
        IoEngineKind::Libaio => "libaio",
        IoEngineKind::Mmap => "mmap",
        IoEngineKind::Falloc => "falloc",
        IoEngineKind::Splice => "splice",
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) engine: IoEngineKind,
    pub(crate) depth: u32,
    pub(crate) block_bytes: usize,
    /// Threads of the phase: what a process may have is divided among them.
    pub(crate) threads: u32,
    /// Whether writes are to be durable when they return. Files are opened with the flag of this name.
    pub(crate) sync: OpenSync,
    pub(crate) polled: bool,
    pub(crate) flags: TransferFlags,
    pub(crate) witness: Option<Witness>,
    pub(crate) log: Option<Arc<dyn CallLog>>,
}

#[cfg(test)]
impl Setup {
    /// So many requests of 4 KiB in flight, as files are by default.
    pub(crate) fn of_test(depth: u32) -> Self {
        let (sync, flags) = (OpenSync::None, TransferFlags::default());
        let engine = IoEngineKind::Psync;
        Self { engine, depth, block_bytes: 4096, threads: 1, sync, polled: false, flags, witness: None, log: None }
    }
}

/// Flags of preadv2 and pwritev2, and of their like in other engines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TransferFlags {
    pub(crate) read: u32,
    pub(crate) write: u32,
}

impl TransferFlags {
    /// What the settings come to. Unlike psync, a ring polls as a whole.
    pub(crate) fn of(io: IoSettings) -> Self {
        // linux/fs.h. The kernel has them since 4.6, 4.14, 6.14 and 6.11.
        const HIPRI: u32 = 0x1;
        const NOWAIT: u32 = 0x8;
        const ATOMIC: u32 = 0x40;
        const DONTCACHE: u32 = 0x80;
        let set = |flag: u32, wanted: bool| if wanted { flag } else { 0 };
        let both = set(HIPRI, io.polled && io.engine == IoEngineKind::Psync)
            | set(NOWAIT, io.no_wait)
            | set(DONTCACHE, io.uncached);
        Self { read: both, write: both | set(ATOMIC, io.atomic) }
    }

    #[inline]
    pub(crate) fn on(self, direction: Direction) -> u32 {
        match direction {
            Direction::Read => self.read,
            Direction::Write => self.write,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// A queued request that is done: its slot, and how many bytes it moved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completion {
    pub(crate) slot: u32,
    pub(crate) outcome: std::result::Result<usize, Errno>,
}

/// Why an engine cannot be set up: the call and its errno, and what may help.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetupError {
    pub(crate) call: &'static str,
    pub(crate) errno: Errno,
    pub(crate) cure: &'static str,
}

/// Takes down calls before they are made, in the threads that make them.
pub trait CallLog: std::fmt::Debug + Send + Sync {
    /// One of open, close, read, write, trim, sync and datasync of a file, named from the working directory on, and the part of it: offset and
    /// length.
    fn call(&self, file: &str, call: &'static str, part: (u64, u64));
}

/// The calls of one thread.
pub(crate) trait Io: Sized {
    /// Whether anything reaches a filesystem at all.
    const REAL: bool;

    fn new(setup: Setup) -> std::result::Result<Self, SetupError>;

    fn read(&mut self, fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize>;

    fn write(&mut self, fd: Fd, data: &[u8], offset: u64) -> Result<usize>;

    /// The buffer of a queue's slot. Only on engines that queue.
    fn slot(&mut self, _slot: u32) -> &mut [u8] {
        &mut []
    }

    /// Queues a transfer of the first `length` bytes of the slot's buffer. Only on engines that queue.
    fn push(&mut self, _slot: u32, _direction: Direction, _fd: Fd, _length: usize, _offset: u64) -> Result<()> {
        Err(Errno::OPNOTSUPP)
    }

    /// Queues an fsync or fdatasync, which moves no bytes. It covers writes that are complete when it is submitted. Only on engines that queue.
    fn push_fsync(&mut self, _slot: u32, _fd: Fd, _data_only: bool) -> Result<()> {
        Err(Errno::OPNOTSUPP)
    }

    /// Submits what is queued, without waiting. Only on engines that queue.
    fn submit(&mut self) -> Result<()> {
        Err(Errno::OPNOTSUPP)
    }

    /// Submits what is queued, waits for at least `least`, but no longer than `wait`, and calls `each` with what is
    /// done. Only on engines that queue.
    fn complete(&mut self, _least: u32, _wait: Option<Duration>, _each: impl FnMut(Completion)) -> Result<()> {
        Err(Errno::OPNOTSUPP)
    }

    /// A file is to be written to through a mapping; what is returned is for [`mapped`](Self::mapped).
    fn mapping(&self) -> u64 {
        0
    }

    /// A file of so many bytes was written to through a mapping, in any places.
    fn mapped(&mut self, _fd: Fd, _begun: u64, _size: u64) {}

    /// Tells that these files stay open as long as the engine is used, under these numbers.
    fn keep(&mut self, _files: &[Fd]) {}

    fn open(&mut self, directory: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> Result<Fd>;
    fn close(&mut self, fd: Fd) -> Result<()>;
    fn fsync(&mut self, fd: Fd) -> Result<()>;
    fn fdatasync(&mut self, fd: Fd) -> Result<()>;
    fn advise(&mut self, fd: Fd, part: Part, advice: Advice) -> Result<()>;
    fn syncfs(&mut self, directory: BorrowedFd<'_>) -> Result<()>;
    fn truncate(&mut self, fd: Fd, size_bytes: u64) -> Result<()>;
    fn fallocate(&mut self, fd: Fd, part: Part, space: Space) -> Result<()>;
    fn stat(&mut self, directory: BorrowedFd<'_>, path: &CStr) -> Result<()>;
    fn unlink(&mut self, directory: BorrowedFd<'_>, path: &CStr) -> Result<()>;
    fn rename(&mut self, from_in: BorrowedFd<'_>, from: &CStr, to_in: BorrowedFd<'_>, to: &CStr) -> Result<()>;
    fn link(&mut self, directory: BorrowedFd<'_>, from: &CStr, to: &CStr) -> Result<()>;
    fn symlink(&mut self, directory: BorrowedFd<'_>, target: &CStr, path: &CStr) -> Result<()>;
    fn mkdir(&mut self, directory: BorrowedFd<'_>, path: &CStr) -> Result<()>;
    fn rmdir(&mut self, directory: BorrowedFd<'_>, path: &CStr) -> Result<()>;
    fn chmod(&mut self, directory: BorrowedFd<'_>, path: &CStr, mode: u32) -> Result<()>;
    fn utimens(&mut self, directory: BorrowedFd<'_>, path: &CStr, seconds: i64) -> Result<()>;
    fn setxattr(&mut self, fd: Fd, value: &[u8]) -> Result<()>;
    fn getxattr(&mut self, fd: Fd, value: &mut [u8]) -> Result<usize>;
    fn copy_file_range(&mut self, from: Fd, to: Fd, length: u64) -> Result<usize>;
    fn reflink(&mut self, from: Fd, to: Fd) -> Result<()>;
    /// Lists an open directory; gives the number of entries.
    fn list(&mut self, fd: Fd, buffer: &mut [MaybeUninit<u8>], each: impl FnMut(&CStr, Option<bool>)) -> Result<u64>;
}
