//! Files mapped into memory: reads and writes are copies, and the kernel moves pages when it likes.

use super::mapping::Mapping;
use super::{Fd, Part, Result, Setup, kernel};
use fstone_model::workload::OpenSync;
use rustix::fd::BorrowedFd;
use rustix::fs::{Advice, OFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::CStr;

/// Mappings that a process may have where the kernel does not say (its own default).
const USUAL_MAPPINGS: usize = 65_530;

#[derive(Debug, Default)]
struct Mapped {
    mapping: Option<Mapping>,
    writable: bool,
    /// Which of the files that had this number it is of.
    generation: u32,
    advice: Option<Advice>,
}

#[derive(Debug)]
pub(crate) struct Mmap {
    /// By descriptor.
    files: Vec<Mapped>,
    /// Descriptors in the order in which they were mapped. Some may not be any more.
    mapped: VecDeque<i32>,
    /// How many of them at most: the kernel limits the mappings of a process.
    most: usize,
    /// Whether writes are to be durable when they return: the flag of an open file has no bearing on its mapping.
    sync: OpenSync,
}

/// A thread's share of the mappings that the kernel lets a process have; half of them are left for everything else.
fn share(threads: u32) -> usize {
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    let most = text.trim().parse().unwrap_or(USUAL_MAPPINGS);
    (most / 2 / threads.max(1) as usize).max(1)
}

impl Mmap {
    fn file(&mut self, fd: Fd) -> &mut Mapped {
        let index = usize::try_from(fd.number).unwrap_or(0);
        if self.files.len() <= index {
            self.files.resize_with(index + 1, Mapped::default);
        }
        &mut self.files[index]
    }

    /// What is mapped is forgotten where the number has become another file's. One that stays open was perhaps opened by
    /// another thread, so the kernel is asked whether it can be written.
    fn renew(&mut self, fd: Fd) -> Result<()> {
        if self.file(fd).generation != fd.generation {
            self.forget(fd)?;
            // One that this thread has just opened, and keeps from now on, is the one that was advised.
            let advice = self.file(fd).advice.filter(|_| self.file(fd).generation == 0);
            let writable = rustix::fs::fcntl_getfl(fd.borrow())? & OFlags::RWMODE == OFlags::RDWR;
            *self.file(fd) = Mapped { mapping: None, writable, generation: fd.generation, advice };
        }
        Ok(())
    }

    fn forget(&mut self, fd: Fd) -> Result<()> {
        self.file(fd).mapping.take().map_or(Ok(()), Mapping::unmap)
    }

    fn make_room(&mut self) -> Result<()> {
        while self.mapped.len() >= self.most {
            let Some(number) = self.mapped.pop_front() else { break };
            self.forget(Fd::open(number))?;
        }
        Ok(())
    }

    /// A mapping that reaches `end`, or as far as the file does.
    fn reaching(&mut self, fd: Fd, end: u64) -> Result<Option<&Mapping>> {
        self.renew(fd)?;
        let known = self.file(fd).mapping.as_ref().map_or(0, Mapping::len) as u64;
        if known < end {
            let size = kernel::size(fd)?;
            if size > known {
                self.forget(fd)?;
                self.make_room()?;
                self.mapped.push_back(fd.number);
                let writable = self.file(fd).writable;
                let mapping = Mapping::new(fd, size, writable, true)?;
                if let Some(advice) = self.file(fd).advice {
                    mapping.advise(advice);
                }
                self.file(fd).mapping = Some(mapping);
            }
        }
        Ok(self.file(fd).mapping.as_ref())
    }

    /// A failed access leaves an empty page in the mapping, which nobody may take for the file's.
    fn settle(&mut self, fd: Fd, result: Result<usize>) -> Result<usize> {
        if result.is_err() {
            self.forget(fd)?;
        }
        result
    }
}

impl Mmap {
    pub(super) fn new(setup: &Setup) -> Self {
        Self { files: Vec::new(), mapped: VecDeque::new(), most: share(setup.threads), sync: setup.sync }
    }

    pub(super) fn read(&mut self, fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let result = match self.reaching(fd, offset + buffer.len() as u64)? {
            Some(mapping) => mapping.read(buffer, offset),
            None => Ok(0),
        };
        self.settle(fd, result)
    }

    pub(super) fn write(&mut self, fd: Fd, data: &[u8], offset: u64) -> Result<usize> {
        let end = offset + data.len() as u64;
        let reaches = self.reaching(fd, end)?.is_some_and(|mapping| mapping.len() as u64 >= end);
        if !reaches {
            kernel::truncate(fd, end)?;
        }
        let sync = self.sync;
        let result = match self.reaching(fd, end)? {
            Some(mapping) => mapping.write(data, offset).and_then(|written| match sync {
                OpenSync::Dsync => mapping.msync(offset, written).map(|()| written),
                OpenSync::None | OpenSync::Sync => Ok(written),
            }),
            None => Err(Errno::NODATA),
        };
        if sync == OpenSync::Sync && result.is_ok() {
            kernel::fsync(fd)?;
        }
        self.settle(fd, result)
    }

    pub(super) fn open(&mut self, directory: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> Result<Fd> {
        let fd = kernel::open(directory, path, flags)?;
        // The number may be one that another thread closed: whatever was mapped by it is not ours.
        self.forget(fd)?;
        let writable = flags & OFlags::RWMODE == OFlags::RDWR;
        *self.file(fd) = Mapped { writable, generation: fd.generation, ..Mapped::default() };
        Ok(fd)
    }

    pub(super) fn close(&mut self, fd: Fd) -> Result<()> {
        let forgotten = self.forget(fd);
        self.file(fd).advice = None;
        kernel::close(fd)?;
        forgotten
    }

    pub(super) fn advise(&mut self, fd: Fd, part: Part, advice: Advice) -> Result<()> {
        match advice {
            // What is mapped is not dropped.
            Advice::DontNeed => self.forget(fd)?,
            Advice::Random | Advice::Sequential => {
                self.renew(fd)?;
                self.file(fd).advice = Some(advice);
                if let Some(mapping) = &self.file(fd).mapping {
                    mapping.advise(advice);
                }
            }
            _ => {}
        }
        kernel::advise(fd, part, advice)
    }

    pub(super) fn truncate(&mut self, fd: Fd, size_bytes: u64) -> Result<()> {
        self.forget(fd)?;
        kernel::truncate(fd, size_bytes)
    }
}

impl Drop for Mmap {
    fn drop(&mut self) {
        for mapping in self.files.drain(..).filter_map(|file| file.mapping) {
            // The files themselves are closed, and the figures taken.
            let _ = mapping.unmap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn the_oldest_mapping_makes_room() {
        let files: Vec<std::fs::File> = (0..5u8)
            .map(|number| {
                let mut file = tempfile::tempfile().expect("a temporary file");
                file.write_all(&[number; 100]).expect("room");
                file
            })
            .collect();
        let mut io = Mmap { files: Vec::new(), mapped: VecDeque::new(), most: 2, sync: OpenSync::None };
        for _ in 0..3 {
            for (number, file) in (0u8..).zip(&files) {
                let mut buffer = [9; 100];
                let fd = Fd::open(file.as_raw_fd()).kept(1);
                assert_eq!(io.read(fd, &mut buffer, 0), Ok(100));
                assert_eq!(buffer, [number; 100]);
                assert!(io.files.iter().filter(|file| file.mapping.is_some()).count() <= 2);
            }
        }
    }

    /// Advice on a descriptor does not reach the faults of its mapping.
    #[test]
    fn a_mapping_is_advised_as_its_file() {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&[1; 8192]).expect("room");
        for (advice, flag) in [(Advice::Random, " rr"), (Advice::Sequential, " sr")] {
            let mut io = Mmap { files: Vec::new(), mapped: VecDeque::new(), most: 2, sync: OpenSync::None };
            let fd = Fd::open(file.as_raw_fd());
            io.advise(fd, (0, 0), advice).expect("it is known");
            // As files are that stay open.
            assert_eq!(io.read(fd.kept(1), &mut [0; 100], 0), Ok(100));
            let inode = format!(" {} ", std::os::unix::fs::MetadataExt::ino(&file.metadata().expect("it is open")));
            let maps = std::fs::read_to_string("/proc/self/smaps").expect("procfs");
            let mapping = maps.lines().skip_while(|line| !line.contains("deleted") || !line.contains(&inode));
            let flags = mapping.skip(1).find(|line| line.starts_with("VmFlags:")).expect("it is mapped");
            assert!(flags.contains(flag), "{flags}");
        }
    }
}
