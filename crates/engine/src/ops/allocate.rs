//! A file's size and its blocks.

use crate::io::Io;
use crate::measure::Call;
use crate::worker::{Attempt, Worker};
use rustix::fs::OFlags;

pub(super) fn truncate<E: Io>(worker: &mut Worker<'_, E>, index: usize, size_bytes: u64) -> Attempt<()> {
    worker.with_open_file(index, OFlags::WRONLY, |worker, picked, fd| {
        worker.call(Call::Truncate, |worker| worker.io.truncate(fd, size_bytes))?;
        worker.files(picked.fileset).table.set_size(picked.file, size_bytes);
        Ok(())
    })
}

/// Allocates or punches from the start. Allocating may make the file larger, and the table follows.
pub(super) fn fallocate<E: Io>(worker: &mut Worker<'_, E>, index: usize, size_bytes: u64, punch: bool) -> Attempt<()> {
    worker.with_open_file(index, OFlags::WRONLY, |worker, picked, fd| {
        worker.call(Call::Fallocate, |worker| worker.io.fallocate(fd, size_bytes, punch))?;
        if !punch {
            worker.files(picked.fileset).table.raise_size(picked.file, size_bytes);
        }
        Ok(())
    })
}
