//! Making data durable.

use crate::io::Io;
use crate::measure::Call;
use crate::worker::{Attempt, Worker};
use rustix::fs::OFlags;

pub(super) fn fsync<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    worker.with_open_file(index, OFlags::RDONLY, |worker, _, fd| {
        worker.timed_call(Call::Fsync, |worker| worker.io.fsync(fd))?;
        Ok(())
    })
}

pub(super) fn fdatasync<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    worker.with_open_file(index, OFlags::RDONLY, |worker, _, fd| {
        worker.timed_call(Call::Fdatasync, |worker| worker.io.fdatasync(fd))?;
        Ok(())
    })
}

pub(super) fn fsync_directory<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    worker.with_file(index, |worker, picked| {
        let files = worker.files(picked.fileset);
        files.layout.holder(&mut worker.path, files.layout.holder_of(picked.file));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let fd = worker.call(Call::Open, |worker| worker.io.open(files.directory(), worker.path.as_c(), flags))?;
        let synced = worker.timed_call(Call::Fsync, |worker| worker.io.fsync(fd));
        worker.close_after(fd, synced)
    })
}

pub(super) fn syncfs<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    let group = worker.group;
    let fileset = worker.fileset(&group.actions[index]);
    let directory = worker.files(fileset).directory();
    worker.path.clear().text(b".");
    worker.timed_call(Call::Syncfs, |worker| worker.io.syncfs(directory))?;
    Ok(())
}
