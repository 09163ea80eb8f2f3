//! Calls as the kernel has them, for the engines that have no other way.
//!
//! [`Io`](super::Io) has no bodies for them: whoever implements it lists the calls that it leaves to the kernel, or passes each on. What is
//! forgotten does not compile.

macro_rules! plain {
    (@open) => {
        #[inline]
        fn open(&mut self, directory: rustix::fd::BorrowedFd<'_>, path: &std::ffi::CStr, flags: rustix::fs::OFlags) -> $crate::io::Result<$crate::io::Fd> {
            if Self::REAL { $crate::io::kernel::open(directory, path, flags) } else { Ok($crate::io::Fd::open(0)) }
        }
    };
    (@close) => {
        #[inline]
        fn close(&mut self, fd: $crate::io::Fd) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::close(fd) } else { Ok(()) }
        }
    };
    (@truncate) => {
        #[inline]
        fn truncate(&mut self, fd: $crate::io::Fd, size_bytes: u64) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::truncate(fd, size_bytes) } else { Ok(()) }
        }
    };
    (@fsync) => {
        #[inline]
        fn fsync(&mut self, fd: $crate::io::Fd) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::fsync(fd) } else { Ok(()) }
        }
    };
    (@fdatasync) => {
        #[inline]
        fn fdatasync(&mut self, fd: $crate::io::Fd) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::fdatasync(fd) } else { Ok(()) }
        }
    };
    (@advise) => {
        #[inline]
        fn advise(&mut self, fd: $crate::io::Fd, part: $crate::io::Part, advice: rustix::fs::Advice) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::advise(fd, part, advice) } else { Ok(()) }
        }
    };
    (@syncfs) => {
        #[inline]
        fn syncfs(&mut self, directory: rustix::fd::BorrowedFd<'_>) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::syncfs(directory) } else { Ok(()) }
        }
    };
    (@fallocate) => {
        #[inline]
        fn fallocate(&mut self, fd: $crate::io::Fd, part: $crate::io::Part, space: $crate::io::Space) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::fallocate(fd, part, space) } else { Ok(()) }
        }
    };
    (@stat) => {
        #[inline]
        fn stat(&mut self, directory: rustix::fd::BorrowedFd<'_>, path: &std::ffi::CStr) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::stat(directory, path).map(drop) } else { Ok(()) }
        }
    };
    (@unlink) => {
        #[inline]
        fn unlink(&mut self, directory: rustix::fd::BorrowedFd<'_>, path: &std::ffi::CStr) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::unlink(directory, path) } else { Ok(()) }
        }
    };
    (@rename) => {
        #[inline]
        fn rename(&mut self, from_in: rustix::fd::BorrowedFd<'_>, from: &std::ffi::CStr, to_in: rustix::fd::BorrowedFd<'_>, to: &std::ffi::CStr) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::rename(from_in, from, to_in, to) } else { Ok(()) }
        }
    };
    (@link) => {
        #[inline]
        fn link(&mut self, directory: rustix::fd::BorrowedFd<'_>, from: &std::ffi::CStr, to: &std::ffi::CStr) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::link(directory, from, to) } else { Ok(()) }
        }
    };
    (@symlink) => {
        #[inline]
        fn symlink(&mut self, directory: rustix::fd::BorrowedFd<'_>, target: &std::ffi::CStr, path: &std::ffi::CStr) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::symlink(directory, target, path) } else { Ok(()) }
        }
    };
    (@mkdir) => {
        #[inline]
        fn mkdir(&mut self, directory: rustix::fd::BorrowedFd<'_>, path: &std::ffi::CStr) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::mkdir(directory, path) } else { Ok(()) }
        }
    };
    (@rmdir) => {
        #[inline]
        fn rmdir(&mut self, directory: rustix::fd::BorrowedFd<'_>, path: &std::ffi::CStr) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::rmdir(directory, path) } else { Ok(()) }
        }
    };
    (@chmod) => {
        #[inline]
        fn chmod(&mut self, directory: rustix::fd::BorrowedFd<'_>, path: &std::ffi::CStr, mode: u32) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::chmod(directory, path, mode) } else { Ok(()) }
        }
    };
    (@utimens) => {
        #[inline]
        fn utimens(&mut self, directory: rustix::fd::BorrowedFd<'_>, path: &std::ffi::CStr, seconds: i64) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::utimens(directory, path, seconds) } else { Ok(()) }
        }
    };
    (@setxattr) => {
        #[inline]
        fn setxattr(&mut self, fd: $crate::io::Fd, value: &[u8]) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::setxattr(fd, value) } else { Ok(()) }
        }
    };
    (@getxattr) => {
        #[inline]
        fn getxattr(&mut self, fd: $crate::io::Fd, value: &mut [u8]) -> $crate::io::Result<usize> {
            if Self::REAL { $crate::io::kernel::getxattr(fd, value) } else { Ok(0) }
        }
    };
    (@copy_file_range) => {
        #[inline]
        fn copy_file_range(&mut self, from: $crate::io::Fd, to: $crate::io::Fd, length: u64) -> $crate::io::Result<usize> {
            if Self::REAL { $crate::io::kernel::copy_file_range(from, to, length) } else { Ok(length as usize) }
        }
    };
    (@reflink) => {
        #[inline]
        fn reflink(&mut self, from: $crate::io::Fd, to: $crate::io::Fd) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::reflink(from, to) } else { Ok(()) }
        }
    };
    (@list) => {
        #[inline]
        fn list(&mut self, fd: $crate::io::Fd, buffer: &mut [std::mem::MaybeUninit<u8>], each: impl FnMut(&std::ffi::CStr, Option<bool>)) -> $crate::io::Result<u64> {
            if Self::REAL { $crate::io::kernel::list(fd, buffer, each) } else { Ok(0) }
        }
    };
    ($($call:ident)*) => {
        $($crate::io::plain::plain!(@$call);)*
    };
}

pub(crate) use plain;
