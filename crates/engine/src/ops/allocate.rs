//! A file's size and its blocks.

use super::transfer::each_block;
use crate::io::{Io, Space};
use crate::measure::Call;
use crate::worker::{Attempt, Worker};
use fstone_model::workload::Transfer;
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
        let space = if punch { Space::Freed } else { Space::Allocated };
        worker.call(Call::Fallocate, |worker| worker.io.fallocate(fd, (0, size_bytes), space))?;
        if !punch {
            worker.files(picked.fileset).table.raise_size(picked.file, size_bytes);
        }
        Ok(())
    })
}

/// Frees blocks of a file, or discards those of a device.
pub(super) fn trim<E: Io>(worker: &mut Worker<'_, E>, index: usize, transfer: &Transfer) -> Attempt<()> {
    worker.with_open_file(index, OFlags::WRONLY, |worker, picked, fd| {
        let (call, space) = match worker.files(picked.fileset).device {
            Some(_) => (Call::Discard, Space::Discarded),
            None => (Call::Fallocate, Space::Freed),
        };
        each_block(worker, index, transfer, picked, |worker, offset, length| {
            worker.call(call, |worker| worker.io.fallocate(fd, (offset, length as u64), space))?;
            worker.done.calls += 1;
            Ok(())
        })
    })
}
