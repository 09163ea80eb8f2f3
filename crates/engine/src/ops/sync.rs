//! Making data durable.

use crate::io::Io;
use crate::measure::{Call, Done};
use crate::run::{Outcome, Worker};
use rustix::fs::OFlags;

/// fsync of one file.
pub(super) fn fsync<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Outcome<Done> {
    worker.with_open_file(index, OFlags::RDONLY, |worker, _, fd| {
        worker.call(Call::Fsync, |worker| worker.io.fsync(fd))?;
        Ok(Done::default())
    })
}

/// fdatasync of one file.
pub(super) fn fdatasync<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Outcome<Done> {
    worker.with_open_file(index, OFlags::RDONLY, |worker, _, fd| {
        worker.call(Call::Fdatasync, |worker| worker.io.fdatasync(fd))?;
        Ok(Done::default())
    })
}

/// syncfs of the fileset's filesystem.
pub(super) fn syncfs<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Outcome<Done> {
    let group = worker.group;
    let fileset = worker.fileset(&group.actions[index]);
    let directory = worker.files(fileset).directory();
    worker.path.clear().text(b".").end();
    worker.call(Call::Syncfs, |worker| worker.io.syncfs(directory))?;
    Ok(Done::default())
}
