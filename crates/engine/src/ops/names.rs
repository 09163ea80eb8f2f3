//! A file's names: unlink, rename, links.

use crate::io::Io;
use crate::measure::Call;
use crate::worker::{Attempt, Incomplete, Worker};
use rustix::io::Errno;

/// Removes a file. Its name is the next to be created.
#[inline]
pub(super) fn unlink<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    let picked = worker.choose(index)?;
    let files = worker.files(picked.fileset);
    if worker.load.measured {
        files.table.touch(picked.file);
    }
    worker.name(&picked);
    let removed = worker.call(Call::Unlink, |worker| worker.io.unlink(files.directory(), worker.path.as_c()));
    if let Err(incomplete) = removed {
        worker.release(&picked);
        return Err(incomplete);
    }
    let forgotten = worker.forget(&picked);
    files.table.remove(picked.file);
    forgotten
}

/// Gives a file its other name, in the same directory.
pub(super) fn rename<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    worker.with_file(index, |worker, picked| {
        let files = worker.files(picked.fileset);
        let renamed = files.table.renamed(picked.file);
        worker.name(picked);
        files.layout.file(&mut worker.other_path, picked.file, !renamed);
        worker.call(Call::Rename, |worker| {
            worker.io.rename(files.directory(), worker.path.as_c(), files.directory(), worker.other_path.as_c())
        })?;
        files.table.rename(picked.file);
        Ok(())
    })
}

/// Moves a file into a fileset, where it gets the name that is free next.
pub(super) fn relocate<E: Io>(worker: &mut Worker<'_, E>, index: usize, to: usize) -> Attempt<()> {
    let picked = worker.choose(index)?;
    let (from, into) = (worker.files(picked.fileset), worker.files(to));
    if worker.load.measured {
        from.table.touch(picked.file);
    }
    let Some(file) = into.table.begin_create() else {
        worker.release(&picked);
        return Err(Incomplete::fault(Call::Choose, Errno::NFILE));
    };
    worker.name(&picked);
    into.layout.file(&mut worker.other_path, file, false);
    let renamed = worker.call(Call::Rename, |worker| {
        worker.io.rename(from.directory(), worker.path.as_c(), into.directory(), worker.other_path.as_c())
    });
    if let Err(incomplete) = renamed {
        into.table.remove(file);
        worker.release(&picked);
        return Err(incomplete);
    }
    let size = from.table.size(picked.file);
    let forgotten = worker.forget(&picked);
    from.table.remove(picked.file);
    into.table.finish_create(file, size);
    if worker.load.measured {
        into.table.touch(file);
    }
    worker.previous = Some((to, file));
    forgotten
}

pub(super) fn link<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    worker.with_file(index, |worker, picked| {
        let files = worker.files(picked.fileset);
        worker.name(picked);
        files.layout.link(&mut worker.other_path, picked.file, false, files.fresh_link());
        worker.call(Call::Link, |worker| {
            worker.io.link(files.directory(), worker.path.as_c(), worker.other_path.as_c())
        })?;
        Ok(())
    })
}

/// Makes a symbolic link beside the file, to its bare name.
pub(super) fn symlink<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    worker.with_file(index, |worker, picked| {
        let files = worker.files(picked.fileset);
        files.layout.bare_name(&mut worker.other_path, picked.file, files.table.renamed(picked.file));
        files.layout.link(&mut worker.path, picked.file, true, files.fresh_link());
        worker.call(Call::Symlink, |worker| {
            worker.io.symlink(files.directory(), worker.other_path.as_c(), worker.path.as_c())
        })?;
        Ok(())
    })
}
