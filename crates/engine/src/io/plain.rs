//! Calls as the kernel has them, for the engines that have no other way.
//!
//! [`Io`](super::Io) has no bodies for them: whoever implements it lists the calls that it leaves to the kernel, or passes each on. What is
//! forgotten does not compile.

/// Each call with its arguments, what it gives, and what it gives where nothing reaches a filesystem.
macro_rules! plain {
    (@open) => { $crate::io::plain::plain! { @call open(directory: $crate::io::BorrowedFd<'_>, path: &$crate::io::CStr, flags: $crate::io::OFlags) -> $crate::io::Fd, $crate::io::Fd::open(0) } };
    (@close) => { $crate::io::plain::plain! { @call close(fd: $crate::io::Fd) -> (), () } };
    (@truncate) => { $crate::io::plain::plain! { @call truncate(fd: $crate::io::Fd, size_bytes: u64) -> (), () } };
    (@fsync) => { $crate::io::plain::plain! { @call fsync(fd: $crate::io::Fd) -> (), () } };
    (@fdatasync) => { $crate::io::plain::plain! { @call fdatasync(fd: $crate::io::Fd) -> (), () } };
    (@advise) => { $crate::io::plain::plain! { @call advise(fd: $crate::io::Fd, part: $crate::io::Part, advice: $crate::io::Advice) -> (), () } };
    (@syncfs) => { $crate::io::plain::plain! { @call syncfs(directory: $crate::io::BorrowedFd<'_>) -> (), () } };
    (@fallocate) => { $crate::io::plain::plain! { @call fallocate(fd: $crate::io::Fd, part: $crate::io::Part, space: $crate::io::Space) -> (), () } };
    (@unlink) => { $crate::io::plain::plain! { @call unlink(directory: $crate::io::BorrowedFd<'_>, path: &$crate::io::CStr) -> (), () } };
    (@rename) => { $crate::io::plain::plain! { @call rename(from_in: $crate::io::BorrowedFd<'_>, from: &$crate::io::CStr, to_in: $crate::io::BorrowedFd<'_>, to: &$crate::io::CStr) -> (), () } };
    (@link) => { $crate::io::plain::plain! { @call link(directory: $crate::io::BorrowedFd<'_>, from: &$crate::io::CStr, to: &$crate::io::CStr) -> (), () } };
    (@symlink) => { $crate::io::plain::plain! { @call symlink(directory: $crate::io::BorrowedFd<'_>, target: &$crate::io::CStr, path: &$crate::io::CStr) -> (), () } };
    (@mkdir) => { $crate::io::plain::plain! { @call mkdir(directory: $crate::io::BorrowedFd<'_>, path: &$crate::io::CStr) -> (), () } };
    (@rmdir) => { $crate::io::plain::plain! { @call rmdir(directory: $crate::io::BorrowedFd<'_>, path: &$crate::io::CStr) -> (), () } };
    (@chmod) => { $crate::io::plain::plain! { @call chmod(directory: $crate::io::BorrowedFd<'_>, path: &$crate::io::CStr, mode: u32) -> (), () } };
    (@utimens) => { $crate::io::plain::plain! { @call utimens(directory: $crate::io::BorrowedFd<'_>, path: &$crate::io::CStr, seconds: i64) -> (), () } };
    (@setxattr) => { $crate::io::plain::plain! { @call setxattr(fd: $crate::io::Fd, value: &[u8]) -> (), () } };
    (@getxattr) => { $crate::io::plain::plain! { @call getxattr(fd: $crate::io::Fd, value: &mut [u8]) -> usize, 0 } };
    (@copy_file_range) => { $crate::io::plain::plain! { @call copy_file_range(from: $crate::io::Fd, to: $crate::io::Fd, length: u64) -> usize, length as usize } };
    (@reflink) => { $crate::io::plain::plain! { @call reflink(from: $crate::io::Fd, to: $crate::io::Fd) -> (), () } };
    (@list) => { $crate::io::plain::plain! { @call list(fd: $crate::io::Fd, buffer: &mut [$crate::io::MaybeUninit<u8>], each: impl FnMut(&$crate::io::CStr, Option<bool>)) -> u64, 0 } };
    (@stat) => {
        #[inline]
        fn stat(&mut self, directory: $crate::io::BorrowedFd<'_>, path: &$crate::io::CStr) -> $crate::io::Result<()> {
            if Self::REAL { $crate::io::kernel::stat(directory, path).map(drop) } else { Ok(()) }
        }
    };
    (@call $name:ident($($argument:ident: $type:ty),+) -> $result:ty, $nothing:expr) => {
        #[inline]
        fn $name(&mut self, $($argument: $type),+) -> $crate::io::Result<$result> {
            if Self::REAL { $crate::io::kernel::$name($($argument),+) } else { Ok($nothing) }
        }
    };
    ($($call:ident)*) => {
        $($crate::io::plain::plain!(@$call);)*
    };
}

pub(crate) use plain;
