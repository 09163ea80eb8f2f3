#![expect(unsafe_code, reason = "file descriptors are plain numbers here, owned by the operations")]
//! The system calls, one function each. File descriptors are plain numbers in the operation loop: whoever opens
//! one closes it.

use rustix::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use rustix::fs::{self, AtFlags, FallocateFlags, Mode, OFlags, RawDir, ResolveFlags, Timespec, Timestamps, XattrFlags};
use rustix::io::{self, Errno, retry_on_intr};
use rustix::path::Arg;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) type Result<T> = std::result::Result<T, Errno>;

/// Where a part of a file begins, and how long it is; 0 for as far as the file goes.
pub(crate) type Part = (u64, u64);

/// What becomes of the blocks of a part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Allocated,
    /// The same, and the size stays.
    Reserved,
    Freed,
    /// Of a device (BLKDISCARD).
    Discarded,
}

const ATTRIBUTE: &CStr = c"user.fstone";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fd {
    pub(crate) number: i32,
    /// Which of the files that had this number, where it stays open for long; 0 where the thread that opened it closes it.
    pub(crate) generation: u32,
}

impl Fd {
    /// One that the calling thread has just opened, for reading and writing or for less.
    pub(crate) const fn open(number: i32) -> Self {
        Self { number, generation: 0 }
    }

    /// The same as one that stays open, for reading and writing, and that other threads may use.
    pub(crate) const fn kept(self, generation: u32) -> Self {
        Self { generation, ..self }
    }

    #[inline]
    pub(crate) fn borrow(&self) -> BorrowedFd<'_> {
        // SAFETY: an `Fd` comes from `open` and is closed once, by the operation or table that owns it, after its
        // last use. The null engine's pretended ones never come here.
        unsafe { BorrowedFd::borrow_raw(self.number) }
    }
}

#[inline]
pub(crate) fn open(directory: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> Result<Fd> {
    let (flags, mode) = (flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o644));
    // No part of the path may be a link then, not the last one alone: somebody may put one in place of a directory while the load runs.
    // It costs nothing that could be measured.
    let resolve = if flags.contains(OFlags::NOFOLLOW) { ResolveFlags::NO_SYMLINKS } else { ResolveFlags::empty() };
    let fd = retry_on_intr(|| open_resolved(directory, path, flags, mode, resolve))?;
    Ok(Fd::open(fd.into_raw_fd()))
}

/// As openat where the kernel (before 5.6) or a container has no openat2.
#[inline]
pub(crate) fn open_resolved(
    directory: BorrowedFd<'_>,
    path: impl Arg + Copy,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd> {
    if resolve.is_empty() || NO_OPENAT2.load(Ordering::Relaxed) {
        return fs::openat(directory, path, flags, mode);
    }
    // Unlike openat, it refuses a mode where nothing is made.
    let of_new = if flags.contains(OFlags::CREATE) { mode } else { Mode::empty() };
    match fs::openat2(directory, path, flags, of_new, resolve) {
        // A container's filter forbids what it does not know with EPERM, which also has other meanings: openat tells.
        Err(errno @ (Errno::NOSYS | Errno::PERM)) => {
            NO_OPENAT2.fetch_or(errno == Errno::NOSYS, Ordering::Relaxed);
            fs::openat(directory, path, flags, mode)
        }
        opened => opened,
    }
}

static NO_OPENAT2: AtomicBool = AtomicBool::new(false);

pub(crate) fn inode(fd: Fd) -> Result<u64> {
    Ok(fs::fstat(fd.borrow())?.st_ino)
}

pub(crate) fn length(fd: Fd) -> Result<u64> {
    Ok(u64::try_from(fs::fstat(fd.borrow())?.st_size).unwrap_or(0))
}

/// Where the next call goes that does not say where.
pub(crate) fn position(fd: Fd) -> Result<u64> {
    fs::tell(fd.borrow())
}

#[inline]
pub(crate) fn close(fd: Fd) -> Result<()> {
    // SAFETY: the caller owns it and gives it up here. `close` is called by number to learn its error, which
    // `OwnedFd` would hide: NFS and quotas report failed writes there.
    if unsafe { libc::close(fd.number) } == 0 {
        return Ok(());
    }
    match std::io::Error::last_os_error().raw_os_error() {
        // Linux has closed it all the same.
        Some(libc::EINTR) | None => Ok(()),
        Some(number) => Err(Errno::from_raw_os_error(number)),
    }
}

#[inline]
pub(crate) fn read(fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
    retry_on_intr(|| io::pread(fd.borrow(), &mut *buffer, offset))
}

#[inline]
pub(crate) fn write(fd: Fd, data: &[u8], offset: u64) -> Result<usize> {
    retry_on_intr(|| io::pwrite(fd.borrow(), data, offset))
}

/// preadv2.
#[cold]
pub(crate) fn read_with(fd: Fd, buffer: &mut [u8], offset: u64, flags: u32) -> Result<usize> {
    let flags = io::ReadWriteFlags::from_bits_retain(flags);
    retry_on_intr(|| io::preadv2(fd.borrow(), &mut [std::io::IoSliceMut::new(buffer)], offset, flags))
}

/// pwritev2.
#[cold]
pub(crate) fn write_with(fd: Fd, data: &[u8], offset: u64, flags: u32) -> Result<usize> {
    let flags = io::ReadWriteFlags::from_bits_retain(flags);
    retry_on_intr(|| io::pwritev2(fd.borrow(), &[std::io::IoSlice::new(data)], offset, flags))
}

pub(crate) fn fsync(fd: Fd) -> Result<()> {
    retry_on_intr(|| fs::fsync(fd.borrow()))
}

pub(crate) fn fdatasync(fd: Fd) -> Result<()> {
    retry_on_intr(|| fs::fdatasync(fd.borrow()))
}

/// Of the whole file.
pub(crate) fn sync_file_range(fd: Fd, flags: u32) -> Result<()> {
    // SAFETY: the call is given numbers alone.
    retry_on_intr(|| match unsafe { libc::sync_file_range(fd.number, 0, 0, flags) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    })
}

/// Tells the kernel how a part of a file is used. [`fs::Advice::DontNeed`] drops what the page cache holds of it and need not write back.
pub(crate) fn advise(fd: Fd, (offset, length): Part, advice: fs::Advice) -> Result<()> {
    fs::fadvise(fd.borrow(), offset, std::num::NonZeroU64::new(length), advice)
}

pub(crate) fn syncfs(directory: BorrowedFd<'_>) -> Result<()> {
    retry_on_intr(|| fs::syncfs(directory))
}

pub(crate) fn truncate(fd: Fd, size_bytes: u64) -> Result<()> {
    retry_on_intr(|| fs::ftruncate(fd.borrow(), size_bytes))
}

pub(crate) fn fallocate(fd: Fd, (offset, length): Part, space: Space) -> Result<()> {
    let mode = match space {
        Space::Allocated => FallocateFlags::empty(),
        Space::Reserved => FallocateFlags::KEEP_SIZE,
        Space::Freed => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        Space::Discarded => return retry_on_intr(|| discard(fd, [offset, length])),
    };
    retry_on_intr(|| fs::fallocate(fd.borrow(), mode, offset, length))
}

fn discard(fd: Fd, range: [u64; 2]) -> Result<()> {
    /// _IO(0x12, 119), the same on every architecture whose ioctl numbers are the generic ones.
    const BLKDISCARD: u32 = 0x1277;
    // SAFETY: the kernel reads two u64 at the pointer, which is to a live local of that type.
    match unsafe { libc::ioctl(fd.number, libc::c_ulong::from(BLKDISCARD) as _, range.as_ptr()) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

#[inline]
pub(crate) fn stat(directory: BorrowedFd<'_>, path: &CStr) -> Result<fs::Stat> {
    fs::statat(directory, path, AtFlags::empty())
}

pub(crate) fn lstat(directory: BorrowedFd<'_>, path: &CStr) -> Result<fs::Stat> {
    fs::statat(directory, path, AtFlags::SYMLINK_NOFOLLOW)
}

pub(crate) fn size(fd: Fd) -> Result<u64> {
    let stat = fs::fstat(fd.borrow())?;
    match fs::FileType::from_raw_mode(stat.st_mode) {
        fs::FileType::BlockDevice => fs::seek(fd.borrow(), fs::SeekFrom::End(0)),
        _ => Ok(u64::try_from(stat.st_size).unwrap_or(0)),
    }
}

#[inline]
pub(crate) fn unlink(directory: BorrowedFd<'_>, path: &CStr) -> Result<()> {
    fs::unlinkat(directory, path, AtFlags::empty())
}

pub(crate) fn rename(from_in: BorrowedFd<'_>, from: &CStr, to_in: BorrowedFd<'_>, to: &CStr) -> Result<()> {
    fs::renameat(from_in, from, to_in, to)
}

pub(crate) fn link(directory: BorrowedFd<'_>, from: &CStr, to: &CStr) -> Result<()> {
    fs::linkat(directory, from, directory, to, AtFlags::empty())
}

pub(crate) fn symlink(directory: BorrowedFd<'_>, target: &CStr, path: &CStr) -> Result<()> {
    fs::symlinkat(target, directory, path)
}

pub(crate) fn mkdir(directory: BorrowedFd<'_>, path: &CStr) -> Result<()> {
    fs::mkdirat(directory, path, Mode::from_raw_mode(0o755))
}

pub(crate) fn rmdir(directory: BorrowedFd<'_>, path: &CStr) -> Result<()> {
    fs::unlinkat(directory, path, AtFlags::REMOVEDIR)
}

pub(crate) fn chmod(directory: BorrowedFd<'_>, path: &CStr, mode: u32) -> Result<()> {
    fs::chmodat(directory, path, Mode::from_raw_mode(mode), AtFlags::empty())
}

pub(crate) fn utimens(directory: BorrowedFd<'_>, path: &CStr, seconds: i64) -> Result<()> {
    let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    fs::utimensat(directory, path, &times, AtFlags::empty())
}

pub(crate) fn setxattr(fd: Fd, value: &[u8]) -> Result<()> {
    fs::fsetxattr(fd.borrow(), ATTRIBUTE, value, XattrFlags::empty())
}

pub(crate) fn getxattr(fd: Fd, value: &mut [u8]) -> Result<usize> {
    fs::fgetxattr(fd.borrow(), ATTRIBUTE, value)
}

pub(crate) fn copy_file_range(from: Fd, to: Fd, length: u64) -> Result<usize> {
    let length = usize::try_from(length).unwrap_or(usize::MAX >> 1);
    retry_on_intr(|| fs::copy_file_range(from.borrow(), None, to.borrow(), None, length))
}

pub(crate) fn reflink(from: Fd, to: Fd) -> Result<()> {
    fs::ioctl_ficlone(to.borrow(), from.borrow())
}

/// Calls `each` with the name of every entry but "." and "..", and whether it is a directory (`None` when the
/// filesystem does not tell).
pub(crate) fn list(fd: Fd, buffer: &mut [MaybeUninit<u8>], mut each: impl FnMut(&CStr, Option<bool>)) -> Result<u64> {
    let mut entries = 0;
    let mut directory = RawDir::new(fd.borrow(), buffer);
    while let Some(entry) = directory.next() {
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        entries += 1;
        let kind = match entry.file_type() {
            fs::FileType::Unknown => None,
            kind => Some(kind.is_dir()),
        };
        each(entry.file_name(), kind);
    }
    Ok(entries)
}
