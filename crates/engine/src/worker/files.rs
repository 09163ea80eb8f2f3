//! Files that operations work with: chosen, held, opened, closed and let go.

use super::attempt::Attempt;
use super::descriptors::Kept;
use super::picked::Picked;
use super::thread::Worker;
use crate::io::{Fd, Io};
use crate::measure::Call;
use fstone_model::workload::{self, Region};
use rustix::fd::BorrowedFd;
use rustix::fs::{Advice, OFlags};
use std::ops::Range;

impl<E: Io> Worker<'_, E> {
    /// Chooses a file for the action, does `work` with it, and lets go of it.
    #[inline(always)]
    pub(crate) fn with_file<T>(
        &mut self,
        index: usize,
        work: impl FnOnce(&mut Self, &Picked) -> Attempt<T>,
    ) -> Attempt<T> {
        let picked = self.choose(index)?;
        if self.load.measured {
            self.files(picked.fileset).table.touch(picked.file);
        }
        let attempt = work(self, &picked);
        self.release(&picked);
        attempt
    }

    /// The same for operations that need the file open; those that keep files open do not open it again.
    #[inline]
    pub(crate) fn with_open_file<T>(
        &mut self,
        index: usize,
        flags: OFlags,
        work: impl FnOnce(&mut Self, &Picked, Fd) -> Attempt<T>,
    ) -> Attempt<T> {
        let (picked, fd) = self.open_chosen(index, flags)?;
        let attempt = work(self, &picked, fd);
        self.close_chosen(index, &picked, fd, attempt)
    }

    #[inline(always)]
    pub(crate) fn open_chosen(&mut self, index: usize, flags: OFlags) -> Attempt<(Picked, Fd)> {
        if let Some(handle) = self.group.actions[index].handle {
            return self.opened_in(index, handle);
        }
        let picked = self.choose(index)?;
        if self.load.measured {
            self.files(picked.fileset).table.touch(picked.file);
        }
        let keep = self.group.spec.open.keeps();
        match if keep { self.kept(&picked) } else { self.open(&picked, flags) } {
            Ok(fd) => Ok((picked, fd)),
            Err(incomplete) => {
                self.release(&picked);
                Err(incomplete)
            }
        }
    }

    #[inline(always)]
    pub(crate) fn close_chosen<T>(&mut self, index: usize, picked: &Picked, fd: Fd, attempt: Attempt<T>) -> Attempt<T> {
        let keep = self.group.spec.open.keeps() || self.group.actions[index].handle.is_some();
        let attempt = if keep { attempt } else { self.close_after(fd, attempt) };
        self.release(picked);
        attempt
    }

    pub(super) fn open(&mut self, picked: &Picked, flags: OFlags) -> Attempt<Fd> {
        self.name(picked);
        let directory = self.files(picked.fileset).directory();
        let flags = self.data_flags(flags) | self.files(picked.fileset).when_opened();
        self.opened(directory, flags)
    }

    /// Opens the file at the worker's path as its group opens files: cold, if it says so. What is still to be written back
    /// stays in the cache. The files that the load itself builds are synced before its first phase, so they are cold.
    #[inline(always)]
    pub(crate) fn opened(&mut self, directory: BorrowedFd<'_>, flags: OFlags) -> Attempt<Fd> {
        self.opened_for(self.number..self.number + 1, directory, flags)
    }

    /// The same for these threads of the group.
    #[inline(always)]
    fn opened_for(&mut self, threads: Range<u64>, directory: BorrowedFd<'_>, flags: OFlags) -> Attempt<Fd> {
        let fd = self.call(Call::Open, |worker| worker.io.open(directory, worker.path.as_c(), flags))?;
        if self.group.spec.invalidate || self.group.spec.advice != workload::Advice::None {
            self.make_as_wanted(fd, threads);
        }
        Ok(fd)
    }

    /// Drops what is cached of a file that was opened, and advises the kernel of its use, as the group says. That is no part of opening it.
    #[inline(never)]
    fn make_as_wanted(&mut self, fd: Fd, threads: Range<u64>) {
        let started = self.load.clock.now();
        for thread in threads {
            if self.group.spec.invalidate {
                self.advise(fd, thread, Advice::DontNeed);
            }
            match self.group.spec.advice {
                workload::Advice::None => {}
                workload::Advice::Sequential => self.advise(fd, thread, Advice::Sequential),
                workload::Advice::Random => self.advise(fd, thread, Advice::Random),
            }
        }
        self.aside += self.load.clock.now() - started;
        self.mark = 0;
    }

    /// Advises the kernel of the part of the file that a thread works on.
    fn advise(&mut self, fd: Fd, thread: u64, advice: Advice) {
        let part = match self.group.spec.region {
            // The kernel's offsets have a sign.
            region @ Region::At { .. } => region.of(i64::MAX as u64, thread, u64::from(self.group.spec.threads)),
            Region::Whole | Region::Split | Region::OfRank { .. } => (0, 0),
        };
        // It is advice: a filesystem that takes none is no error of the load.
        let _ = self.io.advise(fd, part, advice);
    }

    /// Whether the thread has moved as much with this as its group says is a pass.
    pub(crate) fn pass_is_over(&mut self, moved: u64) -> bool {
        let Some(every) = self.group.spec.invalidate_every else { return false };
        self.moved += moved;
        let over = self.moved >= every;
        if over {
            self.moved %= every.max(1);
        }
        over
    }

    #[inline(never)]
    pub(crate) fn drop_kept(&mut self) {
        let files = self.load.files;
        for fileset in &self.group.filesets {
            for file in files[*fileset].table.live_files() {
                let fd = match &self.load.kept {
                    Kept::Own => self.own.get(*fileset, file),
                    Kept::Shared(shared) => shared.get(self.group.descriptors, *fileset, file),
                };
                if let Some(fd) = fd {
                    self.advise(fd, self.number, Advice::DontNeed);
                }
            }
        }
    }

    /// Closes a file; an error of closing counts when there was none before.
    #[inline]
    pub(crate) fn close_after<T>(&mut self, fd: Fd, attempt: Attempt<T>) -> Attempt<T> {
        let closed = self.call(Call::Close, |worker| worker.io.close(fd));
        let value = attempt?;
        closed?;
        Ok(value)
    }

    #[inline(always)]
    pub(crate) fn kept(&mut self, picked: &Picked) -> Attempt<Fd> {
        let known = match &self.load.kept {
            Kept::Own => self.own.get(picked.fileset, picked.file),
            Kept::Shared(shared) => shared.get(self.group.descriptors, picked.fileset, picked.file),
        };
        match known {
            Some(fd) => Ok(fd),
            None => self.keep_open(picked),
        }
    }

    #[cold]
    fn keep_open(&mut self, picked: &Picked) -> Attempt<Fd> {
        self.name(picked);
        let directory = self.files(picked.fileset).directory();
        let flags = self.data_flags(self.group.access()) | self.files(picked.fileset).when_opened();
        let (started, before) = (self.load.clock.now(), self.aside);
        let threads = match self.load.kept {
            Kept::Own => self.number..self.number + 1,
            Kept::Shared(_) => 0..u64::from(self.group.spec.threads),
        };
        let opened = self.opened_for(threads, directory, flags)?;
        if self.group.spec.tour_open.is_some() {
            // Opening is no part of the operation that it is for.
            (self.aside, self.mark) = (before + self.load.clock.now() - started, 0);
        }
        match &self.load.kept {
            Kept::Own => Ok(self.own.put(picked.fileset, picked.file, opened)),
            Kept::Shared(shared) => match shared.put(self.group.descriptors, picked.fileset, picked.file, opened) {
                Ok(fd) => Ok(fd),
                Err(theirs) => {
                    self.call(Call::Close, |worker| worker.io.close(opened))?;
                    Ok(theirs)
                }
            },
        }
    }

    /// Closes the kept descriptor of a file that is about to go, if there is one, whichever group keeps it.
    pub(crate) fn forget(&mut self, picked: &Picked) -> Attempt<()> {
        let Kept::Shared(shared) = &self.load.kept else { return Ok(()) };
        shared.take(picked.fileset, picked.file).try_for_each(|fd| self.call(Call::Close, |worker| worker.io.close(fd)))
    }

    /// Closes a file that the thread keeps open; what went wrong is an error of its.
    pub(crate) fn close_own(&mut self, picked: &Picked) -> Attempt<()> {
        let Some(fd) = self.own.take(picked.fileset, picked.file) else { return Ok(()) };
        self.call(Call::Close, |worker| worker.io.close(fd))
    }

    pub(crate) fn close_kept(&mut self) {
        for fd in std::mem::take(&mut self.own).into_all() {
            if let Err(errno) = self.io.close(fd) {
                self.load.collector.error((&self.group.spec.name, "end"), Call::Close.name(), "", errno, None);
            }
        }
    }
}
