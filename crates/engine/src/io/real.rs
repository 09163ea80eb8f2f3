//! The engines that reach a filesystem, as one type.

use super::aio::Aio;
use super::logged::Logged;
use super::mmap::Mmap;
use super::plain::plain;
use super::psync::Psync;
use super::splice::Splice;
use super::uring::Uring;
use super::{Completion, Direction, Fd, Io, Part, Result, Setup, SetupError, Space, kernel};
use fstone_model::workload::IoEngineKind;
use rustix::fd::BorrowedFd;
use rustix::fs::{Advice, OFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::time::Duration;

pub(crate) enum Real {
    Psync(Psync),
    Uring(Box<Uring>),
    Aio(Box<Aio>),
    Mmap(Box<Mmap>),
    Splice(Splice),
    Logged(Box<Logged<Self>>),
}

impl Io for Real {
    const REAL: bool = true;

    plain! {
        syncfs stat unlink rename link symlink mkdir rmdir chmod utimens
        setxattr getxattr copy_file_range reflink list
    }

    fn new(mut setup: Setup) -> std::result::Result<Self, SetupError> {
        if let Some(log) = setup.log.take() {
            return Ok(Self::Logged(Box::new(Logged::new(Self::new(setup)?, log))));
        }
        Ok(match setup.engine {
            IoEngineKind::IoUring => Self::Uring(Box::new(Uring::new(&setup)?)),
            IoEngineKind::Libaio => Self::Aio(Box::new(Aio::new(&setup)?)),
            IoEngineKind::Mmap => Self::Mmap(Box::new(Mmap::new(&setup))),
            IoEngineKind::Splice => Self::Splice(Splice::new()?),
            IoEngineKind::Psync | IoEngineKind::Falloc | IoEngineKind::Null => Self::Psync(Psync::new(setup)?),
        })
    }

    #[inline]
    fn read(&mut self, fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
        match self {
            Self::Psync(io) => io.read(fd, buffer, offset),
            Self::Uring(io) => io.read(fd, buffer, offset),
            Self::Aio(io) => io.read(fd, buffer, offset),
            Self::Mmap(io) => io.read(fd, buffer, offset),
            Self::Splice(io) => io.read(fd, buffer, offset),
            Self::Logged(io) => io.read(fd, buffer, offset),
        }
    }

    #[inline]
    fn write(&mut self, fd: Fd, data: &[u8], offset: u64) -> Result<usize> {
        match self {
            Self::Psync(io) => io.write(fd, data, offset),
            Self::Uring(io) => io.write(fd, data, offset),
            Self::Aio(io) => io.write(fd, data, offset),
            Self::Mmap(io) => io.write(fd, data, offset),
            Self::Splice(io) => io.write(fd, data, offset),
            Self::Logged(io) => io.write(fd, data, offset),
        }
    }

    #[inline]
    fn slot(&mut self, slot: u32) -> &mut [u8] {
        match self {
            Self::Uring(io) => io.slot(slot),
            Self::Aio(io) => io.slot(slot),
            Self::Logged(io) => io.slot(slot),
            Self::Psync(_) | Self::Mmap(_) | Self::Splice(_) => &mut [],
        }
    }

    #[inline]
    fn push(&mut self, slot: u32, direction: Direction, fd: Fd, length: usize, offset: u64) -> Result<()> {
        match self {
            Self::Uring(io) => io.push(slot, direction, fd, length, offset),
            Self::Aio(io) => io.push(slot, direction, fd, length, offset),
            Self::Logged(io) => io.push(slot, direction, fd, length, offset),
            Self::Psync(_) | Self::Mmap(_) | Self::Splice(_) => Err(Errno::OPNOTSUPP),
        }
    }

    fn push_fsync(&mut self, slot: u32, fd: Fd, data_only: bool) -> Result<()> {
        match self {
            Self::Uring(io) => io.push_fsync(slot, fd, data_only),
            Self::Aio(io) => io.push_fsync(slot, fd, data_only),
            Self::Logged(io) => io.push_fsync(slot, fd, data_only),
            Self::Psync(_) | Self::Mmap(_) | Self::Splice(_) => Err(Errno::OPNOTSUPP),
        }
    }

    #[inline]
    fn submit(&mut self) -> Result<()> {
        match self {
            Self::Uring(io) => io.submit(),
            Self::Aio(io) => io.submit(),
            Self::Logged(io) => io.submit(),
            Self::Psync(_) | Self::Mmap(_) | Self::Splice(_) => Err(Errno::OPNOTSUPP),
        }
    }

    #[inline]
    fn complete(&mut self, least: u32, wait: Option<Duration>, mut each: impl FnMut(Completion)) -> Result<()> {
        match self {
            Self::Uring(io) => io.complete(least, wait, each),
            Self::Aio(io) => io.complete(least, wait, each),
            Self::Logged(io) => io.complete(least, wait, &mut each),
            Self::Psync(_) | Self::Mmap(_) | Self::Splice(_) => Err(Errno::OPNOTSUPP),
        }
    }

    fn keep(&mut self, files: &[Fd]) {
        match self {
            Self::Uring(io) => io.keep(files),
            Self::Logged(io) => io.keep(files),
            _ => {}
        }
    }

    #[inline]
    fn open(&mut self, directory: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> Result<Fd> {
        match self {
            Self::Mmap(io) => io.open(directory, path, flags),
            Self::Logged(io) => io.open(directory, path, flags),
            // Nothing is spliced to where a file is appended to.
            Self::Splice(_) => kernel::open(directory, path, flags - OFlags::APPEND),
            _ => kernel::open(directory, path, flags),
        }
    }

    #[inline]
    fn close(&mut self, fd: Fd) -> Result<()> {
        match self {
            Self::Mmap(io) => io.close(fd),
            Self::Logged(io) => io.close(fd),
            _ => kernel::close(fd),
        }
    }

    #[inline]
    fn advise(&mut self, fd: Fd, part: Part, advice: Advice) -> Result<()> {
        match self {
            Self::Mmap(io) => io.advise(fd, part, advice),
            Self::Logged(io) => io.advise(fd, part, advice),
            _ => kernel::advise(fd, part, advice),
        }
    }

    #[inline]
    fn truncate(&mut self, fd: Fd, size_bytes: u64) -> Result<()> {
        match self {
            Self::Mmap(io) => io.truncate(fd, size_bytes),
            Self::Logged(io) => io.truncate(fd, size_bytes),
            _ => kernel::truncate(fd, size_bytes),
        }
    }

    #[inline]
    fn fsync(&mut self, fd: Fd) -> Result<()> {
        match self {
            Self::Logged(io) => io.fsync(fd),
            _ => kernel::fsync(fd),
        }
    }

    #[inline]
    fn fdatasync(&mut self, fd: Fd) -> Result<()> {
        match self {
            Self::Logged(io) => io.fdatasync(fd),
            _ => kernel::fdatasync(fd),
        }
    }

    #[inline]
    fn fallocate(&mut self, fd: Fd, part: Part, space: Space) -> Result<()> {
        match self {
            Self::Logged(io) => io.fallocate(fd, part, space),
            _ => kernel::fallocate(fd, part, space),
        }
    }
}
