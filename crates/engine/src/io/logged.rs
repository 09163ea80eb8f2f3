//! An engine whose calls on open files are noted in a [`CallLog`] before they are made, and opens once they have succeeded.

use super::{CallLog, Completion, Direction, Fd, Io, Part, Result, Space};
use rustix::fd::BorrowedFd;
use rustix::fs::{Advice, OFlags};
use std::collections::HashMap;
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Logged<E> {
    inner: E,
    log: Arc<dyn CallLog>,
    working_directory: PathBuf,
    /// By descriptor, with its generation.
    names: HashMap<i32, (u32, Arc<str>)>,
}

impl<E: Io> Logged<E> {
    pub(super) fn new(inner: E, log: Arc<dyn CallLog>) -> Self {
        Self { inner, log, working_directory: std::env::current_dir().unwrap_or_default(), names: HashMap::new() }
    }

    fn name(&mut self, fd: Fd) -> Arc<str> {
        if let Some((generation, name)) = self.names.get(&fd.number)
            && *generation == fd.generation
        {
            return name.clone();
        }
        let path = std::fs::read_link(format!("/proc/thread-self/fd/{}", fd.number)).unwrap_or_default();
        let name: Arc<str> = path.strip_prefix(&self.working_directory).unwrap_or(&path).to_string_lossy().into();
        self.names.insert(fd.number, (fd.generation, name.clone()));
        name
    }

    fn note(&mut self, call: &'static str, fd: Fd, part: Part) {
        let name = self.name(fd);
        self.log.call(&name, call, part);
    }

    pub(super) fn read(&mut self, fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.note("read", fd, (offset, buffer.len() as u64));
        self.inner.read(fd, buffer, offset)
    }

    pub(super) fn write(&mut self, fd: Fd, data: &[u8], offset: u64) -> Result<usize> {
        self.note("write", fd, (offset, data.len() as u64));
        self.inner.write(fd, data, offset)
    }

    pub(super) fn slot(&mut self, slot: u32) -> &mut [u8] {
        self.inner.slot(slot)
    }

    pub(super) fn push(&mut self, slot: u32, direction: Direction, fd: Fd, length: usize, offset: u64) -> Result<()> {
        let call = match direction {
            Direction::Read => "read",
            Direction::Write => "write",
        };
        self.note(call, fd, (offset, length as u64));
        self.inner.push(slot, direction, fd, length, offset)
    }

    pub(super) fn push_fsync(&mut self, slot: u32, fd: Fd, data_only: bool) -> Result<()> {
        self.note(if data_only { "datasync" } else { "sync" }, fd, (0, 0));
        self.inner.push_fsync(slot, fd, data_only)
    }

    pub(super) fn submit(&mut self) -> Result<()> {
        self.inner.submit()
    }

    pub(super) fn complete(
        &mut self,
        least: u32,
        wait: Option<Duration>,
        each: &mut dyn FnMut(Completion),
    ) -> Result<()> {
        self.inner.complete(least, wait, each)
    }

    pub(super) fn keep(&mut self, files: &[Fd]) {
        self.inner.keep(files);
    }

    pub(super) fn open(&mut self, directory: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> Result<Fd> {
        let fd = self.inner.open(directory, path, flags)?;
        // What had the number before may have been closed elsewhere.
        self.names.remove(&fd.number);
        self.note("open", fd, (0, 0));
        Ok(fd)
    }

    pub(super) fn close(&mut self, fd: Fd) -> Result<()> {
        self.note("close", fd, (0, 0));
        self.names.remove(&fd.number);
        self.inner.close(fd)
    }

    pub(super) fn fsync(&mut self, fd: Fd) -> Result<()> {
        self.note("sync", fd, (0, 0));
        self.inner.fsync(fd)
    }

    pub(super) fn fdatasync(&mut self, fd: Fd) -> Result<()> {
        self.note("datasync", fd, (0, 0));
        self.inner.fdatasync(fd)
    }

    pub(super) fn advise(&mut self, fd: Fd, part: Part, advice: Advice) -> Result<()> {
        self.inner.advise(fd, part, advice)
    }

    pub(super) fn truncate(&mut self, fd: Fd, size_bytes: u64) -> Result<()> {
        self.inner.truncate(fd, size_bytes)
    }

    pub(super) fn fallocate(&mut self, fd: Fd, part: Part, space: Space) -> Result<()> {
        if matches!(space, Space::Freed | Space::Discarded) {
            self.note("trim", fd, part);
        }
        self.inner.fallocate(fd, part, space)
    }
}
