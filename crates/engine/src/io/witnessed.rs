//! The engines that reach a filesystem, with a [`Witness`] that writes down what the kernel acknowledged.
//!
//! Every descriptor costs a look at its file's inode number more, so only loads whose promises are to be checked run on it. What
//! `mmap-write` writes is never taken for promised.

use super::{Completion, Direction, Fd, Io, Part, Real, Result, Setup, SetupError, Space, kernel};
use crate::data::stamp;
use crate::promises::{Change, FileId, Made, Witness};
use fstone_model::workload::OpenSync;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::fs::{Advice, FileType, OFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Witnessed {
    inner: Real,
    witness: Witness,
    /// Paths of the directories that names are relative to, by descriptor. These stay open as long as the load runs.
    directories: HashMap<i32, String>,
    /// Those that are open to be synced.
    opened: HashMap<i32, Arc<str>>,
    /// Which files this thread has worked on, by descriptor. Asking the kernel each time would be two system calls more for
    /// every write that is synced, and a guest's system calls are slow.
    files: HashMap<i32, (u32, FileId)>,
    queued: Vec<Option<Queued>>,
    /// Whether writes are durable when they return.
    synchronous: bool,
}

#[derive(Clone, Copy)]
enum Queued {
    Write(Writing),
    /// An fsync of a file, and whether its names are durable with it.
    Sync {
        begun: u64,
        file: FileId,
        names: bool,
    },
}

#[derive(Clone, Copy)]
struct Writing {
    begun: u64,
    file: FileId,
    offset: u64,
    length: u64,
    says: Option<(u64, u64)>,
}

impl Witnessed {
    fn writing(&mut self, fd: Fd, data: &[u8], offset: u64) -> Result<Writing> {
        let (file, length, says) = (self.file(fd)?, data.len() as u64, stamp::says(data, offset));
        Ok(Writing { file, offset, length, says, begun: self.witness.tick() })
    }

    fn path(&mut self, directory: BorrowedFd<'_>, path: &CStr) -> Arc<str> {
        let number = directory.as_raw_fd();
        let parent = self.directories.entry(number).or_insert_with(|| {
            let link = format!("/proc/thread-self/fd/{number}");
            std::fs::read_link(link).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
        });
        format!("{parent}/{}", path.to_string_lossy()).into()
    }

    /// The file that a descriptor is of. What other threads closed meanwhile has another generation when its number comes again.
    fn file(&mut self, fd: Fd) -> Result<FileId> {
        if let Some((generation, file)) = self.files.get(&fd.number)
            && *generation == fd.generation
        {
            return Ok(*file);
        }
        let file = self.witness.file(kernel::inode(fd)?);
        // One without a generation was opened and is closed by this thread, or nothing is known of its end.
        if fd.generation != 0 {
            self.files.insert(fd.number, (fd.generation, file));
        }
        Ok(file)
    }

    fn find(&self, directory: BorrowedFd<'_>, path: &CStr, name: &Arc<str>) {
        if self.witness.knows(name) {
            return;
        }
        let begun = self.witness.tick();
        let found = kernel::lstat(directory, path).ok();
        if let Some(found) = found.filter(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile) {
            self.witness.opened(begun, name, found.st_ino, false);
        }
    }

    fn open_or_make(&mut self, directory: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> Result<(Fd, bool)> {
        if flags.contains(OFlags::CREATE) {
            match self.inner.open(directory, path, flags | OFlags::EXCL) {
                Err(Errno::EXIST) if !flags.contains(OFlags::EXCL) => {}
                made => return made.map(|fd| (fd, true)),
            }
        }
        Ok((self.inner.open(directory, path, flags)?, false))
    }

    /// A write returned. One that failed may have written some of its data.
    fn wrote(&self, Writing { begun, file, offset, length, says }: Writing, got: Result<usize>) {
        let durable = self.synchronous;
        match got {
            Ok(0) => {}
            Ok(got) => self.witness.changed(begun, Change::Wrote { file, offset, bytes: got as u64, says, durable }),
            Err(_) => self.made(begun, file, offset..offset + length, Made::Unknown),
        }
    }

    fn made(&self, begun: u64, file: FileId, part: Range<u64>, what: Made) {
        self.witness.changed(begun, Change::Made { file, part, what });
    }

    /// Makes a call that changes a part of a file, and writes down what became of it, by what the call returned. What a call did
    /// that failed is not known.
    fn making<T: Copy>(
        &mut self,
        fd: Fd,
        at_most: Range<u64>,
        call: impl FnOnce(&mut Real) -> Result<T>,
        made: impl FnOnce(T) -> (Range<u64>, Made),
    ) -> Result<T> {
        let file = self.file(fd)?;
        let begun = self.witness.tick();
        let got = call(&mut self.inner);
        let (part, what) = got.map_or((at_most, Made::Unknown), made);
        self.made(begun, file, part, what);
        got
    }

    /// Makes a call, and writes the change down if the kernel acknowledged it.
    fn acknowledged(&mut self, change: Change, call: impl FnOnce(&mut Real) -> Result<()>) -> Result<()> {
        let begun = self.witness.tick();
        call(&mut self.inner)?;
        self.witness.changed(begun, change);
        Ok(())
    }
}

impl Io for Witnessed {
    const REAL: bool = true;

    fn new(setup: Setup) -> std::result::Result<Self, SetupError> {
        let witness = setup.witness.clone().unwrap_or_default();
        let queued = vec![None; setup.depth as usize];
        let synchronous = setup.sync != OpenSync::None;
        let inner = Real::new(setup)?;
        let (directories, opened, files) = Default::default();
        Ok(Self { inner, witness, directories, opened, files, queued, synchronous })
    }

    fn read(&mut self, fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.inner.read(fd, buffer, offset)
    }

    fn write(&mut self, fd: Fd, data: &[u8], offset: u64) -> Result<usize> {
        let writing = self.writing(fd, data, offset)?;
        let got = self.inner.write(fd, data, offset);
        self.wrote(writing, got);
        got
    }

    fn slot(&mut self, slot: u32) -> &mut [u8] {
        self.inner.slot(slot)
    }

    fn push(&mut self, slot: u32, direction: Direction, fd: Fd, length: usize, offset: u64) -> Result<()> {
        self.queued[slot as usize] = match direction {
            Direction::Read => None,
            Direction::Write => {
                let says = stamp::says(&self.inner.slot(slot)[..length], offset);
                let (file, length) = (self.file(fd)?, length as u64);
                Some(Queued::Write(Writing { file, offset, length, says, begun: self.witness.tick() }))
            }
        };
        self.inner.push(slot, direction, fd, length, offset)
    }

    fn push_fsync(&mut self, slot: u32, fd: Fd, data_only: bool) -> Result<()> {
        let file = self.file(fd)?;
        self.queued[slot as usize] = Some(Queued::Sync { begun: self.witness.tick(), file, names: !data_only });
        self.inner.push_fsync(slot, fd, data_only)
    }

    fn submit(&mut self) -> Result<()> {
        self.inner.submit()
    }

    fn complete(&mut self, least: u32, wait: Option<Duration>, mut each: impl FnMut(Completion)) -> Result<()> {
        let mut done = Vec::new();
        self.inner.complete(least, wait, |completion| {
            done.push(completion);
            each(completion);
        })?;
        for completion in done {
            match (self.queued[completion.slot as usize].take(), completion.outcome) {
                (Some(Queued::Write(writing)), got) => self.wrote(writing, got),
                (Some(Queued::Sync { begun, file, names }), Ok(_)) => {
                    self.witness.changed(begun, Change::Synced { file, names });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn mapping(&self) -> u64 {
        self.witness.tick()
    }

    fn mapped(&mut self, fd: Fd, begun: u64, size: u64) {
        if let Ok(file) = self.file(fd) {
            self.made(begun, file, 0..size, Made::Mapped);
        }
    }

    fn keep(&mut self, files: &[Fd]) {
        self.inner.keep(files);
    }

    fn open(&mut self, directory: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> Result<Fd> {
        let name = self.path(directory, path);
        let begun = self.witness.tick();
        let (fd, made) = self.open_or_make(directory, path, flags)?;
        self.files.remove(&fd.number);
        if flags.contains(OFlags::DIRECTORY) {
            let path = name.strip_suffix("/.").map_or_else(|| Arc::clone(&name), Arc::from);
            self.opened.insert(fd.number, path);
        } else {
            let (file, _) = self.witness.opened(begun, &name, kernel::inode(fd)?, made);
            self.files.insert(fd.number, (fd.generation, file));
            if flags.contains(OFlags::TRUNC) && !made {
                self.made(begun, file, 0..u64::MAX, Made::End);
            }
        }
        Ok(fd)
    }

    fn close(&mut self, fd: Fd) -> Result<()> {
        self.files.remove(&fd.number);
        self.opened.remove(&fd.number);
        self.inner.close(fd)
    }

    fn fsync(&mut self, fd: Fd) -> Result<()> {
        if let Some(directory) = self.opened.get(&fd.number).cloned() {
            return self.acknowledged(Change::SyncedNames { directory }, |inner| inner.fsync(fd));
        }
        let file = self.file(fd)?;
        self.acknowledged(Change::Synced { file, names: true }, |inner| inner.fsync(fd))
    }

    fn fdatasync(&mut self, fd: Fd) -> Result<()> {
        let file = self.file(fd)?;
        self.acknowledged(Change::Synced { file, names: false }, |inner| inner.fdatasync(fd))
    }

    fn advise(&mut self, fd: Fd, part: Part, advice: Advice) -> Result<()> {
        self.inner.advise(fd, part, advice)
    }

    fn syncfs(&mut self, directory: BorrowedFd<'_>) -> Result<()> {
        self.acknowledged(Change::SyncedAll, |inner| inner.syncfs(directory))
    }

    fn truncate(&mut self, fd: Fd, size_bytes: u64) -> Result<()> {
        let rest = size_bytes..u64::MAX;
        self.making(fd, rest.clone(), |inner| inner.truncate(fd, size_bytes), |()| (rest, Made::End))
    }

    fn fallocate(&mut self, fd: Fd, part: Part, space: Space) -> Result<()> {
        let (from, to) = (part.0, part.0 + part.1);
        let allocate = |inner: &mut Real| inner.fallocate(fd, part, space);
        match space {
            Space::Allocated => self.making(fd, to..to, allocate, |()| (to..to, Made::Copied)),
            Space::Reserved | Space::Discarded => allocate(&mut self.inner),
            Space::Freed => {
                let punch = |inner: &mut Real| allocate(inner).map(|()| kernel::length(fd));
                let zeros = |length: u64| (from..to.min(length).max(from), Made::Zeros);
                self.making(fd, from..to, punch, |length| length.map_or((from..to, Made::Unknown), zeros)).map(drop)
            }
        }
    }

    fn stat(&mut self, directory: BorrowedFd<'_>, path: &CStr) -> Result<()> {
        self.inner.stat(directory, path)
    }

    fn unlink(&mut self, directory: BorrowedFd<'_>, path: &CStr) -> Result<()> {
        let name = self.path(directory, path);
        self.acknowledged(Change::Unnamed { path: name }, |inner| inner.unlink(directory, path))
    }

    fn rename(&mut self, from_in: BorrowedFd<'_>, from: &CStr, to_in: BorrowedFd<'_>, to: &CStr) -> Result<()> {
        let names = (self.path(from_in, from), self.path(to_in, to));
        self.find(from_in, from, &names.0);
        let change = Change::Renamed { from: names.0, to: names.1 };
        self.acknowledged(change, |inner| inner.rename(from_in, from, to_in, to))
    }

    fn link(&mut self, directory: BorrowedFd<'_>, from: &CStr, to: &CStr) -> Result<()> {
        let name = self.path(directory, to);
        self.inner.link(directory, from, to)?;
        self.witness.linked(name);
        Ok(())
    }

    fn symlink(&mut self, directory: BorrowedFd<'_>, target: &CStr, path: &CStr) -> Result<()> {
        let name = self.path(directory, path);
        self.inner.symlink(directory, target, path)?;
        self.witness.linked(name);
        Ok(())
    }

    fn mkdir(&mut self, directory: BorrowedFd<'_>, path: &CStr) -> Result<()> {
        self.inner.mkdir(directory, path)
    }

    fn rmdir(&mut self, directory: BorrowedFd<'_>, path: &CStr) -> Result<()> {
        self.inner.rmdir(directory, path)
    }

    fn chmod(&mut self, directory: BorrowedFd<'_>, path: &CStr, mode: u32) -> Result<()> {
        self.inner.chmod(directory, path, mode)
    }

    fn utimens(&mut self, directory: BorrowedFd<'_>, path: &CStr, seconds: i64) -> Result<()> {
        self.inner.utimens(directory, path, seconds)
    }

    fn setxattr(&mut self, fd: Fd, value: &[u8]) -> Result<()> {
        self.inner.setxattr(fd, value)
    }

    fn getxattr(&mut self, fd: Fd, value: &mut [u8]) -> Result<usize> {
        self.inner.getxattr(fd, value)
    }

    fn copy_file_range(&mut self, from: Fd, to: Fd, length: u64) -> Result<usize> {
        // What is copied has the stamps of another file.
        let begins = kernel::position(to)?;
        let at_most = begins..begins.saturating_add(length);
        let copy = |inner: &mut Real| inner.copy_file_range(from, to, length);
        let made = |got: usize| match got as u64 {
            0 => (begins..begins, Made::Unknown),
            got => (begins..begins + got, Made::Copied),
        };
        self.making(to, at_most, copy, made)
    }

    fn reflink(&mut self, from: Fd, to: Fd) -> Result<()> {
        let clone = |inner: &mut Real| inner.reflink(from, to).map(|()| kernel::length(to));
        let made =
            |length: Result<u64>| length.map_or((0..u64::MAX, Made::Unknown), |length| (0..length, Made::Copied));
        self.making(to, 0..u64::MAX, clone, made).map(drop)
    }

    fn list(&mut self, fd: Fd, buffer: &mut [MaybeUninit<u8>], each: impl FnMut(&CStr, Option<bool>)) -> Result<u64> {
        self.inner.list(fd, buffer, each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_number_that_comes_again_is_another_file() {
        let place = tempfile::tempdir().unwrap();
        let directory = std::fs::File::open(place.path()).unwrap();
        let witness = Witness::new();
        let engine = || {
            let witness = Some(witness.clone());
            let setup = Setup { threads: 2, witness, ..Setup::of_test(1) };
            Witnessed::new(setup).unwrap()
        };
        let (mut first, mut second) = (engine(), engine());
        let make = |engine: &mut Witnessed, name: &CStr| {
            engine.open(directory.as_fd(), name, OFlags::RDWR | OFlags::CREATE).unwrap()
        };
        let save = |engine: &mut Witnessed, fd: Fd, stamp: u64| {
            let mut block = [0; stamp::UNIT];
            stamp::write(&mut block, stamp, 0, 1);
            engine.write(fd, &block, 0).unwrap();
            engine.fsync(fd).unwrap();
        };
        let one = make(&mut first, c"one").kept(7);
        save(&mut first, one, 1);
        second.close(one).unwrap();
        let two = make(&mut second, c"two").kept(8);
        if two.number != one.number {
            // Another test of this process got the number in between.
            first.files.insert(two.number, first.files[&one.number]);
        }
        save(&mut first, two, 2);
        let kept = witness.look(witness.now(), true);
        assert_eq!((kept.checked, kept.broken), (6, 0), "data, length and name of each: {:?}", kept.first);
        std::fs::write(place.path().join("two"), [0; stamp::UNIT]).unwrap();
        assert_eq!(witness.look(witness.now(), true).broken, 1);
        second.close(two).unwrap();
    }

    /// By what the kernel makes of it, and by what was there before, which is all that is left where a disk forgets it.
    #[test]
    fn what_calls_leave_and_make_is_promised_by_the_next_sync() {
        type Calls<'a> = &'a dyn Fn(&mut Witnessed, Fd, Fd) -> Result<()>;
        const UNIT: u64 = stamp::UNIT as u64;
        let longer = |io: &mut Witnessed, fd, space| io.fallocate(fd, (32 * UNIT, 32 * UNIT), space);
        let freed = |io: &mut Witnessed, fd, at| io.fallocate(fd, (at * UNIT, 8 * UNIT), Space::Freed);
        let mapped = |io: &mut Witnessed, fd| {
            let begun = io.mapping();
            io.mapped(fd, begun, 32 * UNIT);
        };
        let cases: [(Calls<'_>, bool); 11] = [
            (&|io, fd, _| freed(io, fd, 8).map(|()| mapped(io, fd)), false),
            (&|io, fd, _| io.truncate(fd, 8 * UNIT), true),
            (&|io, fd, _| io.truncate(fd, 64 * UNIT), true),
            (&|io, fd, _| longer(io, fd, Space::Allocated), true),
            (&|io, fd, _| longer(io, fd, Space::Reserved), false),
            (&|io, fd, _| freed(io, fd, 8), true),
            // Behind its end.
            (&|io, fd, _| freed(io, fd, 64), false),
            (&|io, fd, other| io.copy_file_range(other, fd, 64 * UNIT).map(drop), true),
            // Calls that fail: they are of no length.
            (&|io, fd, _| io.fallocate(fd, (UNIT, 0), Space::Allocated).err().map(drop).ok_or(Errno::IO), false),
            (&|io, fd, _| io.fallocate(fd, (0, 0), Space::Freed).err().map(drop).ok_or(Errno::IO), false),
            (&|io, fd, other| io.reflink(other, fd).or_else(|_| io.truncate(fd, UNIT)), true),
        ];
        for (number, (calls, is_promised)) in cases.into_iter().enumerate() {
            let place = tempfile::tempdir().unwrap();
            let directory = std::fs::File::open(place.path()).unwrap();
            std::fs::write(place.path().join("other"), [7; 64 * stamp::UNIT]).unwrap();
            let witness = Witness::new();
            let mut io = Witnessed::new(Setup { witness: Some(witness.clone()), ..Setup::of_test(1) }).unwrap();
            let fd = io.open(directory.as_fd(), c"a", OFlags::RDWR | OFlags::CREATE).unwrap();
            let other = io.open(directory.as_fd(), c"other", OFlags::RDONLY).unwrap();
            let mut data = vec![0; 32 * stamp::UNIT];
            stamp::write(&mut data, 1, 0, 1);
            io.write(fd, &data, 0).unwrap();
            io.fsync(fd).unwrap();
            calls(&mut io, fd, other).unwrap();
            let broken = || witness.look(witness.now(), true).broken;
            let after = std::fs::read(place.path().join("a")).unwrap();
            let put = |content: &[u8]| std::fs::write(place.path().join("a"), content).unwrap();
            for synced in [false, true] {
                put(&after);
                assert_eq!(broken(), 0, "{number}, synced {synced}");
                put(&data);
                assert_eq!(broken() > 0, synced && is_promised, "{number}, synced {synced}: as it was before");
                let mut damaged = after.clone();
                damaged[3] ^= 1;
                put(&damaged);
                // Copies have data of another file.
                assert_eq!(broken() > 0, !matches!(number, 7 | 10), "{number}, synced {synced}: what was to stay");
                put(&after);
                io.fdatasync(fd).unwrap();
            }
        }
    }
}
