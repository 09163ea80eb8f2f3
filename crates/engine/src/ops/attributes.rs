//! What is known about a file: stat, open and close, mode, times, extended attributes.

use crate::io::Io;
use crate::measure::Call;
use crate::worker::{Attempt, Worker};
use rustix::fs::OFlags;
use rustix::io::Errno;

const VALUE_BYTES: usize = 64 << 10;

#[inline]
pub(super) fn stat<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    worker.with_file(index, |worker, picked| {
        worker.name(picked);
        let directory = worker.files(picked.fileset).directory();
        worker.call(Call::Stat, |worker| worker.io.stat(directory, worker.path.as_c()))?;
        Ok(())
    })
}

/// open and close, also where files are kept open otherwise.
pub(super) fn open_close<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    worker.with_file(index, |worker, picked| {
        worker.name(picked);
        let directory = worker.files(picked.fileset).directory();
        let flags = worker.data_flags(OFlags::RDONLY);
        let fd = worker.opened(directory, flags)?;
        worker.close_after(fd, Ok(()))
    })
}

/// chmod, to one of two modes by turns.
pub(super) fn chmod<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    worker.with_file(index, |worker, picked| {
        worker.name(picked);
        let directory = worker.files(picked.fileset).directory();
        let mode = if worker.random.below(2) == 0 { 0o644 } else { 0o640 };
        worker.call(Call::Chmod, |worker| worker.io.chmod(directory, worker.path.as_c(), mode))?;
        Ok(())
    })
}

/// Access and modification time, to a moment of the first 2^31 seconds.
pub(super) fn utimens<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    worker.with_file(index, |worker, picked| {
        worker.name(picked);
        let directory = worker.files(picked.fileset).directory();
        let seconds = worker.random.below(1 << 31) as i64;
        worker.call(Call::Utimens, |worker| worker.io.utimens(directory, worker.path.as_c(), seconds))?;
        Ok(())
    })
}

pub(super) fn setxattr<E: Io>(worker: &mut Worker<'_, E>, index: usize, value_bytes: u32) -> Attempt<()> {
    worker.with_open_file(index, OFlags::RDONLY, |worker, picked, fd| {
        let destination = worker.destination(picked, 0);
        worker.source.prepare(value_bytes as usize, destination);
        worker.call(Call::Setxattr, |worker| worker.io.setxattr(fd, worker.source.block()))?;
        Ok(())
    })
}

/// Gets it. A file that has none counts as done: the lookup was made.
pub(super) fn getxattr<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    worker.with_open_file(index, OFlags::RDONLY, |worker, _, fd| {
        worker.call(Call::Getxattr, |worker| {
            let room = worker.buffer.bytes().len().min(VALUE_BYTES);
            match worker.io.getxattr(fd, &mut worker.buffer.bytes_mut()[..room]) {
                Err(Errno::NODATA) => Ok(0),
                other => other,
            }
        })?;
        Ok(())
    })
}
