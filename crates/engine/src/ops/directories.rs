//! Directories beside the fileset's own: made, looked at, renamed, and removed again. Of a fileset with leaf directories, these: as with files by
//! rotation, a thread that finds none is done.

use crate::fileset::{Files, Hold, Numbered};
use crate::io::Io;
use crate::measure::Call;
use crate::pattern::permute;
use crate::worker::{Attempt, Incomplete, Worker};
use fstone_model::workload::{FileChoice, Operation};
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) fn locked(numbered: &Mutex<Numbered>) -> MutexGuard<'_, Numbered> {
    numbered.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fileset<'a, E: Io>(worker: &mut Worker<'a, E>, index: usize) -> &'a Files {
    let group = worker.group;
    let fileset = worker.fileset(&group.actions[index]);
    worker.files(fileset)
}

pub(super) fn mkdir<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    let files = fileset(worker, index);
    if files.spec.leaf_directories > 0 {
        return make_leaf(worker, files);
    }
    let number = locked(&files.made_directories).fresh();
    files.layout.made_directory(&mut worker.path, number);
    worker.call(Call::Mkdir, |worker| worker.io.mkdir(files.directory(), worker.path.as_c()))?;
    locked(&files.made_directories).existing.push(number);
    Ok(())
}

pub(super) fn rmdir<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    let files = fileset(worker, index);
    if files.spec.leaf_directories > 0 {
        return remove_leaf(worker, files, index);
    }
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

fn make_leaf<E: Io>(worker: &mut Worker<'_, E>, files: &Files) -> Attempt<()> {
    let from = files.layout.depth_first(files.next_leaf_name.fetch_add(1, Ordering::Relaxed));
    let Some((leaf, passed)) = files.leaves.begin_create_from(from) else { return Err(Incomplete::Exhausted) };
    files.next_leaf_name.fetch_add(passed, Ordering::Relaxed);
    files.layout.leaf(&mut worker.path, leaf, false);
    let made = worker.call(Call::Mkdir, |worker| worker.io.mkdir(files.directory(), worker.path.as_c()));
    match made {
        Ok(_) => files.leaves.finish_create(leaf, 0),
        Err(_) => files.leaves.remove(leaf),
    }
    made.map(drop)
}

/// The next that is there, held alone: the next in a random order, where the action says so.
fn take_leaf<E: Io>(worker: &Worker<'_, E>, files: &Files, index: usize) -> Attempt<u32> {
    let removes = matches!(worker.group.actions[index].operation, Operation::Rmdir);
    let turn = files.next_leaf.fetch_add(1, Ordering::Relaxed);
    let live = files.leaves.live().max(1);
    let from = match worker.group.actions[index].choice {
        FileChoice::Shuffled => permute(turn % live, live, worker.load.shuffle_seed()),
        _ if removes => files.layout.depth_first(turn % files.leaves.names()),
        _ => turn,
    };
    let Some((leaf, passed)) = files.leaves.take_from(from, Hold::Alone) else {
        // Those that others are making or removing are not there.
        return Err(if files.leaves.live() == 0 { Incomplete::Exhausted } else { Incomplete::Missed });
    };
    if worker.group.actions[index].choice != FileChoice::Shuffled {
        files.next_leaf.fetch_add(passed, Ordering::Relaxed);
    }
    Ok(leaf)
}

pub(super) fn stat<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    let files = fileset(worker, index);
    let leaf = take_leaf(worker, files, index)?;
    files.layout.leaf(&mut worker.path, leaf, files.leaves.renamed(leaf));
    let known = worker.call(Call::Stat, |worker| worker.io.stat(files.directory(), worker.path.as_c()));
    files.leaves.release(leaf, Hold::Alone);
    known.map(drop)
}

pub(super) fn rename<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    let files = fileset(worker, index);
    let leaf = take_leaf(worker, files, index)?;
    let renamed = files.leaves.renamed(leaf);
    files.layout.leaf(&mut worker.path, leaf, renamed);
    files.layout.leaf(&mut worker.other_path, leaf, !renamed);
    let given = worker.call(Call::Rename, |worker| {
        worker.io.rename(files.directory(), worker.path.as_c(), files.directory(), worker.other_path.as_c())
    });
    if given.is_ok() {
        files.leaves.rename(leaf);
    }
    files.leaves.release(leaf, Hold::Alone);
    given.map(drop)
}

fn remove_leaf<E: Io>(worker: &mut Worker<'_, E>, files: &Files, index: usize) -> Attempt<()> {
    let leaf = take_leaf(worker, files, index)?;
    files.layout.leaf(&mut worker.path, leaf, files.leaves.renamed(leaf));
    let removed = worker.call(Call::Rmdir, |worker| worker.io.rmdir(files.directory(), worker.path.as_c()));
    match removed {
        Ok(_) => files.leaves.remove(leaf),
        Err(_) => files.leaves.release(leaf, Hold::Alone),
    }
    removed.map(drop)
}
