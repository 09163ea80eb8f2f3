//! Files that a thread's program holds open from one action to the next.

use super::attempt::{Attempt, Incomplete};
use super::held::Held;
use super::picked::Picked;
use super::thread::Worker;
use crate::fileset::{Draw, Hold};
use crate::io::{Fd, Io};
use crate::measure::Call;
use fstone_model::workload::Operation;
use rustix::fs::OFlags;
use rustix::io::Errno;

impl<E: Io> Worker<'_, E> {
    #[inline(never)]
    pub(super) fn by_handle(&mut self, index: usize, handle: usize) -> Attempt<Picked> {
        let group = self.group;
        match group.actions[index].operation {
            Operation::Unlink => self.last_of_handle(index, handle),
            Operation::Stat if self.handles.open(handle).is_none() => self.choose_freely(index),
            _ => self.opened_in(index, handle).map(|(picked, _)| picked),
        }
    }

    /// What is open in the handle; if nothing is, a file is opened.
    pub(crate) fn opened_in(&mut self, index: usize, handle: usize) -> Attempt<(Picked, Fd)> {
        let (held, fd) = match self.handles.open(handle) {
            Some(open) => open,
            None => self.open_in(index, handle)?,
        };
        Ok((Picked { fileset: held.fileset, file: held.file, hold: Hold::Free, position: None }, fd))
    }

    pub(crate) fn open_in(&mut self, index: usize, handle: usize) -> Attempt<(Held, Fd)> {
        if self.handles.open(handle).is_some() {
            return Err(Incomplete::fault(Call::Open, Errno::BUSY));
        }
        let picked = self.choose_freely(index)?;
        let files = self.files(picked.fileset);
        if self.load.measured {
            files.table.touch(picked.file);
        }
        let access = if self.group.writes_by(handle) { OFlags::RDWR } else { OFlags::RDONLY };
        match self.open(&picked, access) {
            Ok(fd) => {
                let wanted = files.table.size(picked.file);
                Ok((self.keep_in(handle, &picked, fd, wanted), fd))
            }
            Err(incomplete) => {
                self.release(&picked);
                Err(incomplete)
            }
        }
    }

    /// Leaves an open file, held as it was picked, in a handle that has none.
    pub(crate) fn keep_in(&mut self, handle: usize, picked: &Picked, fd: Fd, wanted: u64) -> Held {
        let Picked { fileset, file, hold, .. } = *picked;
        let held = Held { fileset, file, fd: Some(fd), hold, cursor: 0, wanted };
        self.handles.put(handle, Some(held));
        self.previous = Some((fileset, file));
        held
    }

    /// Closes what is open in a handle. The handle remembers which file it was.
    pub(crate) fn close_handle(&mut self, handle: usize) -> Attempt<()> {
        let Some((held, fd)) = self.handles.open(handle) else {
            return Err(Incomplete::fault(Call::Close, Errno::BADF));
        };
        self.handles.put(handle, Some(Held { fd: None, ..held }));
        self.previous = Some((held.fileset, held.file));
        let closed = self.call(Call::Close, |worker| worker.io.close(fd));
        self.files(held.fileset).table.release(held.file, held.hold);
        closed
    }

    /// The file that was open in the handle last, alone. One that somebody has open stays.
    fn last_of_handle(&mut self, index: usize, handle: usize) -> Attempt<Picked> {
        let Some(held) = self.handles.last(handle) else { return self.choose_freely(index) };
        if held.fd.is_some() {
            return Err(Incomplete::Missed);
        }
        self.handles.put(handle, None);
        let picked = Picked { fileset: held.fileset, file: held.file, hold: Hold::Alone, position: None };
        match self.files(held.fileset).table.take(held.file, Hold::Alone) {
            Draw::File(_) => Ok(picked),
            _ => Err(Incomplete::Missed),
        }
    }

    pub(crate) fn close_handles(&mut self) {
        for handle in 0..self.handles.count() {
            let Some((held, fd)) = self.handles.open(handle) else { continue };
            self.handles.put(handle, None);
            if let Err(errno) = self.io.close(fd) {
                self.load.collector.error((&self.group.spec.name, "end"), Call::Close.name(), "", errno, None);
            }
            self.files(held.fileset).table.release(held.file, held.hold);
        }
    }
}
