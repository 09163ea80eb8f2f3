//! Looking at directories.

use crate::fileset::MARK;
use crate::io::{Io, kernel};
use crate::measure::Call;
use crate::worker::{Attempt, Incomplete, Worker};
use fstone_model::workload::Sharing;
use rustix::fd::BorrowedFd;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;

const LISTING_BYTES: usize = 32 << 10;

fn listing_buffer<E: Io>(worker: &mut Worker<'_, E>) -> Vec<MaybeUninit<u8>> {
    let mut buffer = std::mem::take(&mut worker.listing);
    if buffer.is_empty() {
        buffer.resize(LISTING_BYTES, MaybeUninit::uninit());
    }
    buffer
}

/// Opens, lists and closes the directory that `worker.path` names.
fn list<E: Io>(
    worker: &mut Worker<'_, E>,
    directory: BorrowedFd<'_>,
    each: impl FnMut(&CStr, Option<bool>),
) -> Attempt<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | worker.load.links();
    let fd = worker.call(Call::Open, |worker| worker.io.open(directory, worker.path.as_c(), flags))?;
    let mut buffer = listing_buffer(worker);
    let attempt = worker.call(Call::Readdir, |worker| worker.io.list(fd, &mut buffer, each)).map(drop);
    worker.listing = buffer;
    worker.close_after(fd, attempt)
}

/// Lists one directory that holds files of the set, drawn uniformly.
pub(super) fn readdir<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    let group = worker.group;
    let fileset = worker.fileset(&group.actions[index]);
    let files = worker.files(fileset);
    let holder = worker.random.below(files.layout.holders());
    files.layout.holder(&mut worker.path, holder);
    list(worker, files.directory(), |_, _| {})?;
    Ok(())
}

/// Walks the whole fileset, stat-ing each entry. Where the filesets of several ranks are in one directory, each lists all of it and
/// stats its own entries: what the others have is no part of its fileset, and would be looked at as often as there are ranks.
pub(super) fn walk<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    let group = worker.group;
    let fileset = worker.fileset(&group.actions[index]);
    let files = worker.files(fileset);
    let in_common = files.spec.ranks == Sharing::Names;
    let is_ours = |name: &CStr, is_directory: Option<bool>| {
        let ours = |directory| files.layout.is_ours(name.to_bytes(), directory);
        !in_common || is_directory.map_or_else(|| ours(true) || ours(false), ours)
    };
    let mut pending = vec![CString::from(c".")];
    while let Some(directory) = pending.pop() {
        if worker.told_to_stop() {
            return Err(Incomplete::Stopped);
        }
        worker.path.clear().text(directory.to_bytes());
        let mut names: Vec<(CString, Option<bool>)> = Vec::new();
        let listed = list(worker, files.directory(), |name, kind| {
            if name.to_bytes() != MARK.as_bytes() && is_ours(name, kind) {
                names.push((name.to_owned(), kind));
            }
        });
        match listed {
            // It went while we were on the way to it, which is no failure of the walk.
            Err(Incomplete::Fault(fault)) if fault.errno() == Errno::NOENT && directory.as_c_str() != c"." => continue,
            other => other?,
        }
        for (name, kind) in names {
            worker.path.clear().text(directory.to_bytes()).text(b"/").text(name.to_bytes());
            let is_directory = worker.call(Call::Stat, |worker| {
                if !E::REAL {
                    return Ok(false);
                }
                match kernel::lstat(files.directory(), worker.path.as_c()) {
                    Ok(stat) => Ok(kind.unwrap_or((stat.st_mode & libc::S_IFMT) == libc::S_IFDIR)),
                    Err(Errno::NOENT) => Ok(false),
                    Err(errno) => Err(errno),
                }
            })?;
            if is_directory {
                pending.push(worker.path.as_c().to_owned());
            }
        }
    }
    Ok(())
}
