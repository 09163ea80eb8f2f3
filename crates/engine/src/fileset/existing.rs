//! What becomes of a file that is there already and has a name of the fileset's: the one place where that is decided.
//!
//! In a directory that is the load's own, or carries fstone's mark, such files were made by a load, and a load may make them anew. Elsewhere
//! they may be the user's own. A load writes to them only where one of its operations writes; it does not lay them out, lengthen or replace them.

use super::site::BuildContext;
use super::{Files, PathBuffer};
use crate::io::kernel;
use crate::options::Ownership;
use fstone_model::workload::Existing;
use rustix::fd::BorrowedFd;
use rustix::fs::{Advice, FileType, OFlags, SeekFrom, Stat, seek};
use rustix::io::Errno;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExistingFile {
    /// It is used as it is with so many bytes, even if it is shorter than one that the load would make.
    Used(u64),
    /// What is missing of it is written, from so many bytes on.
    Extended(u64),
    Replaced,
    /// It is not used, for this reason, and the load is refused.
    Refused(&'static str),
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

impl ExistingFile {
    /// Of a file that is to have so many bytes. `entry` is what has its name, and `target` what a link with that name leads to.
    pub(super) fn of(
        entry: &Stat,
        target: Option<&Stat>,
        wanted: u64,
        existing: Existing,
        site: &BuildContext<'_>,
    ) -> Self {
        let ownership = site.options.ownership;
        if !ownership.is_shared_directory() {
            return Self::Replaced;
        }
        if existing == Existing::Rebuild {
            return match ownership {
                _ if !is_regular(entry) => Self::Refused("no regular file"),
                _ if !site.changes => Self::Refused("it would be made anew, only to be read"),
                Ownership::ByName if entry.st_size > 0 => Self::Refused("not empty"),
                _ => Self::Replaced,
            };
        }
        let Some(file) = target.filter(|target| is_regular(target)) else {
            return Self::Refused("no regular file");
        };
        let size = file.st_size as u64;
        match site.prepares && size < wanted {
            true if site.depot.ledger().is_some() => Self::Refused("too short, and without stamps"),
            true => Self::Extended(size),
            false => Self::Used(size),
        }
    }
}

/// How much of a fileset's files has no data, and of how much: holes, and blocks that were allocated and not written, which the kernel reads as
/// zeros without asking the device. `parts` gives where what is looked at of a file of this size begins and ends. The first files, and the
/// first pieces of each part, stand for all.
pub(crate) fn without_data(files: &Files, parts: impl Fn(u64) -> Vec<(u64, u64)>) -> (u64, u64) {
    const FILES: usize = 1000;
    let mut path = PathBuffer::default();
    let (mut missing, mut all) = (0, 0);
    for file in files.table.live_files().take(FILES) {
        files.layout.file(&mut path, file, files.table.renamed(file));
        let Ok(fd) = kernel::open(files.directory(), path.as_c(), OFlags::RDONLY | OFlags::NONBLOCK) else { continue };
        // Behind its end there is no hole: a read there fails.
        let there = kernel::size(fd).unwrap_or(u64::MAX);
        // What a filesystem without this call has counts as data.
        for (begin, end) in parts(files.table.size(file)) {
            let (of_part, looked_at) = holes(fd.borrow(), (begin, end.min(there))).unwrap_or_default();
            missing += of_part;
            all += looked_at;
        }
        let _ = kernel::close(fd);
    }
    (missing, all)
}

/// The parts of a file that have begin and length, each byte once, by begin and end.
pub(crate) fn union(mut parts: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    parts.sort_unstable();
    let mut all: Vec<(u64, u64)> = Vec::new();
    for (begin, length) in parts.into_iter().filter(|(_, length)| *length > 0) {
        match all.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(begin + length),
            _ => all.push((begin, begin + length)),
        }
    }
    all
}

/// Drops the cached pages of a fileset's files, as fio does when it has laid them out.
pub(crate) fn drop_cached(files: &Files) {
    let mut path = PathBuffer::default();
    for file in files.table.live_files() {
        files.layout.file(&mut path, file, files.table.renamed(file));
        let Ok(fd) = kernel::open(files.directory(), path.as_c(), OFlags::RDONLY | OFlags::NONBLOCK) else { continue };
        // It is advice: a filesystem that takes none is no error of the load.
        let _ = kernel::advise(fd, (0, 0), Advice::DontNeed);
        let _ = kernel::close(fd);
    }
}

fn holes(fd: BorrowedFd<'_>, (begin, end): (u64, u64)) -> Result<(u64, u64), Errno> {
    const PIECES: usize = 10_000;
    let (mut missing, mut at) = (0, begin);
    for _ in 0..PIECES {
        if at >= end {
            break;
        }
        let data = match seek(fd, SeekFrom::Data(at)) {
            Ok(data) => data.min(end),
            Err(Errno::NXIO) => end,
            Err(errno) => return Err(errno),
        };
        missing += data - at;
        at = if data == end { end } else { seek(fd, SeekFrom::Hole(data))?.max(data + 1).min(end) };
    }
    Ok((missing, at - begin))
}

#[derive(Clone, Copy)]
pub(super) struct Planned {
    pub(super) size: u64,
    pub(super) fate: Option<ExistingFile>,
}

#[cfg(test)]
mod tests {
    use super::{holes, union};
    use std::os::{fd::AsFd, unix::fs::FileExt};

    #[test]
    fn what_several_read_is_looked_at_once() {
        assert_eq!(union(vec![(63, 1), (0, 1), (0, 4), (3, 2), (9, 0)]), [(0, 5), (63, 64)]);
    }

    #[test]
    fn holes_are_counted_of_the_part_that_is_read() {
        let file = tempfile::tempfile_in("/var/tmp").expect("made");
        file.set_len(1 << 20).expect("sized");
        file.write_all_at(&[1; 256 << 10], 512 << 10).expect("written");
        for (part, expected) in [
            ((0, 1 << 20), (768 << 10, 1 << 20)),
            ((512 << 10, 768 << 10), (0, 256 << 10)),
            ((640 << 10, 896 << 10), (128 << 10, 256 << 10)),
            ((0, 128 << 10), (128 << 10, 128 << 10)),
            ((5, 5), (0, 0)),
        ] {
            assert_eq!(holes(file.as_fd(), part).expect("it can be looked at"), expected, "{part:?}");
        }
    }
}
