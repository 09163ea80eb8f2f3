//! FFSB's metadata operation: two mkdir, one rmdir, one rename, of random directories in a directory of their own.

use super::directories::locked;
use crate::fileset::Files;
use crate::io::Io;
use crate::measure::Call;
use crate::worker::{Attempt, Worker};

/// All four. A directory that another thread is working on is not drawn.
pub(super) fn metadata<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    let group = worker.group;
    let fileset = worker.fileset(&group.actions[index]);
    let files = worker.files(fileset);
    make(worker, files)?;
    make(worker, files)?;
    if let Some(number) = take(worker, files) {
        files.layout.made_directory(&mut worker.path, number);
        let removed = worker.call(Call::Rmdir, |worker| worker.io.rmdir(files.metadata(), worker.path.as_c()));
        if removed.is_err() {
            locked(&files.metadata_directories).existing.push(number);
        }
        removed?;
    }
    if let Some(number) = take(worker, files) {
        let fresh = locked(&files.metadata_directories).fresh();
        files.layout.made_directory(&mut worker.path, number);
        files.layout.made_directory(&mut worker.other_path, fresh);
        let renamed = worker.call(Call::Rename, |worker| {
            worker.io.rename(files.metadata(), worker.path.as_c(), files.metadata(), worker.other_path.as_c())
        });
        locked(&files.metadata_directories).existing.push(if renamed.is_ok() { fresh } else { number });
        renamed?;
    }
    Ok(())
}

fn make<E: Io>(worker: &mut Worker<'_, E>, files: &Files) -> Attempt<()> {
    let number = locked(&files.metadata_directories).fresh();
    files.layout.made_directory(&mut worker.path, number);
    worker.call(Call::Mkdir, |worker| worker.io.mkdir(files.metadata(), worker.path.as_c()))?;
    locked(&files.metadata_directories).existing.push(number);
    Ok(())
}

/// Takes a random one out of the list, so that no other thread works on it.
fn take<E: Io>(worker: &mut Worker<'_, E>, files: &Files) -> Option<u64> {
    let mut directories = locked(&files.metadata_directories);
    let count = directories.existing.len() as u64;
    directories.take(worker.random.below(count))
}
