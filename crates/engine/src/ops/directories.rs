//! Directories beside the fileset's own: made, and removed again.

use crate::fileset::{Files, Numbered};
use crate::io::Io;
use crate::measure::Call;
use crate::worker::{Attempt, Incomplete, Worker};
use rustix::io::Errno;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) fn locked(numbered: &Mutex<Numbered>) -> MutexGuard<'_, Numbered> {
    numbered.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fileset<'a, E: Io>(worker: &mut Worker<'a, E>, index: usize) -> &'a Files {
    let group = worker.group;
    let fileset = worker.fileset(&group.actions[index]);
    worker.files(fileset)
}

/// Makes a directory in the fileset's own.
pub(super) fn mkdir<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    let files = fileset(worker, index);
    let number = locked(&files.made_directories).fresh();
    files.layout.made_directory(&mut worker.path, number);
    worker.call(Call::Mkdir, |worker| worker.io.mkdir(files.directory(), worker.path.as_c()))?;
    locked(&files.made_directories).existing.push(number);
    Ok(())
}

/// Removes one that [`mkdir`] made.
pub(super) fn rmdir<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    let files = fileset(worker, index);
    let taken = {
        let mut made = locked(&files.made_directories);
        let count = made.existing.len() as u64;
        made.take(worker.random.below(count))
    };
    let Some(number) = taken else { return Err(Incomplete::fault(Call::Choose, Errno::NOENT)) };
    files.layout.made_directory(&mut worker.path, number);
    let removed = worker.call(Call::Rmdir, |worker| worker.io.rmdir(files.directory(), worker.path.as_c()));
    if let Err(incomplete) = removed {
        locked(&files.made_directories).existing.push(number);
        return Err(incomplete);
    }
    Ok(())
}
