//! Which system calls are recorded, and where their arguments are.

use crate::call::Kind;
use libc::{AT_FDCWD, AT_REMOVEDIR, AT_SYMLINK_NOFOLLOW, O_CREAT, O_TRUNC, O_WRONLY};
use std::os::raw::c_long;

/// What a call asks for; strings and structures are still in the memory of the program.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asked {
    pub(super) what: What,
    /// The directory's descriptor, and the address of the name; an address of 0 stands for the descriptor itself.
    pub(super) at: Option<(i32, u64)>,
    pub(super) to: Option<(i32, u64)>,
    /// A string that is no name in a directory: the target of a symbolic link, the name of an attribute.
    pub(super) text: u64,
    pub(super) fd: Option<i32>,
    pub(super) other: Option<i32>,
    pub(super) offset: i64,
    pub(super) length: u64,
    pub(super) flags: u32,
    pub(super) mode: u32,
    /// An array of `iovec`s whose lengths count, a structure, or where an offset is, by the kind.
    pub(super) pointer: u64,
    /// Where the offset of the other file is.
    pub(super) other_pointer: u64,
    pub(super) count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Call(Kind),
    /// Changes the table of descriptors and is no call to a filesystem.
    Duplicate,
    CloseRange,
}

impl Default for What {
    fn default() -> Self {
        Self::Call(Kind::Open)
    }
}

fn on(kind: Kind, fd: u64) -> Asked {
    Asked { what: What::Call(kind), fd: Some(fd as i32), ..Asked::default() }
}

fn named(kind: Kind, directory: u64, name: u64) -> Asked {
    Asked { what: What::Call(kind), at: Some((directory as i32, name)), ..Asked::default() }
}

fn two(kind: Kind, from: (u64, u64), to: (u64, u64)) -> Asked {
    Asked { to: Some((to.0 as i32, to.1)), ..named(kind, from.0, from.1) }
}

const HERE: u64 = AT_FDCWD as u64;
const NOFOLLOW: u32 = AT_SYMLINK_NOFOLLOW as u32;
/// Newer than libc's list; the same on every architecture.
const SYS_FCHMODAT2: c_long = 452;
pub(crate) const FICLONE: u32 = 0x4004_9409;
pub(crate) const FICLONERANGE: u32 = 0x4020_940D;

/// `None` for calls that are not recorded.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn decode(number: u64, a: [u64; 6]) -> Option<Asked> {
    use Kind as K;
    let asked = match number as c_long {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => Asked { flags: a[1] as u32, mode: a[2] as u32, ..named(K::Open, HERE, a[0]) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat => {
            Asked { flags: (O_CREAT | O_WRONLY | O_TRUNC) as u32, mode: a[1] as u32, ..named(K::Open, HERE, a[0]) }
        }
        libc::SYS_openat => Asked { flags: a[2] as u32, mode: a[3] as u32, ..named(K::Open, a[0], a[1]) },
        libc::SYS_openat2 => Asked { pointer: a[2], ..named(K::Open, a[0], a[1]) },
        libc::SYS_close => on(K::Close, a[0]),
        libc::SYS_close_range => Asked {
            what: What::CloseRange,
            offset: a[0] as u32 as i64,
            length: a[1],
            flags: a[2] as u32,
            ..on(K::Close, 0)
        },
        libc::SYS_dup | libc::SYS_dup3 => Asked { what: What::Duplicate, ..on(K::Open, a[0]) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_dup2 => Asked { what: What::Duplicate, ..on(K::Open, a[0]) },
        libc::SYS_fcntl => match a[1] as i32 {
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => Asked { what: What::Duplicate, ..on(K::Open, a[0]) },
            libc::F_SETFL => Asked { flags: a[2] as u32, ..on(K::SetFlags, a[0]) },
            _ => Asked { flags: a[1] as u32, pointer: a[2], ..on(K::Lock, a[0]) },
        },
        libc::SYS_read => Asked { length: a[2], ..on(K::Read, a[0]) },
        libc::SYS_pread64 => Asked { length: a[2], offset: a[3] as i64, ..on(K::Pread, a[0]) },
        libc::SYS_readv => Asked { pointer: a[1], count: a[2], ..on(K::Readv, a[0]) },
        libc::SYS_preadv => Asked { pointer: a[1], count: a[2], offset: a[3] as i64, ..on(K::Preadv, a[0]) },
        // With -1 it is where the file is, and moves on.
        libc::SYS_preadv2 | libc::SYS_pwritev2 => {
            let kind = match (number as c_long, a[3] as i64) {
                (libc::SYS_preadv2, -1) => K::Readv,
                (libc::SYS_preadv2, _) => K::Preadv,
                (_, -1) => K::Writev,
                _ => K::Pwritev,
            };
            let offset = (a[3] as i64).max(if matches!(kind, K::Readv | K::Writev) { 0 } else { i64::MIN });
            Asked { pointer: a[1], count: a[2], offset, flags: a[5] as u32, ..on(kind, a[0]) }
        }
        libc::SYS_write => Asked { length: a[2], ..on(K::Write, a[0]) },
        libc::SYS_pwrite64 => Asked { length: a[2], offset: a[3] as i64, ..on(K::Pwrite, a[0]) },
        libc::SYS_writev => Asked { pointer: a[1], count: a[2], ..on(K::Writev, a[0]) },
        libc::SYS_pwritev => Asked { pointer: a[1], count: a[2], offset: a[3] as i64, ..on(K::Pwritev, a[0]) },
        libc::SYS_lseek => Asked { offset: a[1] as i64, flags: a[2] as u32, ..on(K::Seek, a[0]) },
        libc::SYS_fsync => on(K::Fsync, a[0]),
        libc::SYS_fdatasync => on(K::Fdatasync, a[0]),
        libc::SYS_sync_file_range => {
            Asked { offset: a[1] as i64, length: a[2], flags: a[3] as u32, ..on(K::SyncRange, a[0]) }
        }
        libc::SYS_syncfs => on(K::Syncfs, a[0]),
        libc::SYS_sync => Asked { what: What::Call(K::Sync), ..Asked::default() },
        libc::SYS_truncate => Asked { length: a[1], ..named(K::Truncate, HERE, a[0]) },
        libc::SYS_ftruncate => Asked { length: a[1], ..on(K::Ftruncate, a[0]) },
        libc::SYS_fallocate => {
            Asked { flags: a[1] as u32, offset: a[2] as i64, length: a[3], ..on(K::Fallocate, a[0]) }
        }
        libc::SYS_readahead => Asked { offset: a[1] as i64, length: a[2], ..on(K::Readahead, a[0]) },
        libc::SYS_statfs => named(K::Statfs, HERE, a[0]),
        libc::SYS_fstatfs => on(K::Fstatfs, a[0]),
        libc::SYS_msync => Asked { what: What::Call(K::Msync), length: a[1], flags: a[2] as u32, ..Asked::default() },
        libc::SYS_open_by_handle_at => {
            Asked { what: What::Call(K::OpenByHandle), flags: a[2] as u32, ..Asked::default() }
        }
        libc::SYS_bind => Asked { what: What::Call(K::Bind), pointer: a[1], ..Asked::default() },
        libc::SYS_fadvise64 => Asked { offset: a[1] as i64, length: a[2], flags: a[3] as u32, ..on(K::Fadvise, a[0]) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_stat => named(K::Stat, HERE, a[0]),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lstat => Asked { flags: NOFOLLOW, ..named(K::Stat, HERE, a[0]) },
        libc::SYS_fstat => on(K::Fstat, a[0]),
        libc::SYS_newfstatat => Asked { flags: a[3] as u32, ..named(K::Stat, a[0], a[1]) },
        libc::SYS_statx => Asked { flags: a[2] as u32, ..named(K::Stat, a[0], a[1]) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_access => Asked { mode: a[1] as u32, ..named(K::Access, HERE, a[0]) },
        libc::SYS_faccessat => Asked { mode: a[2] as u32, ..named(K::Access, a[0], a[1]) },
        libc::SYS_faccessat2 => Asked { mode: a[2] as u32, flags: a[3] as u32, ..named(K::Access, a[0], a[1]) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_readlink => Asked { length: a[2], ..named(K::Readlink, HERE, a[0]) },
        libc::SYS_readlinkat => Asked { length: a[3], ..named(K::Readlink, a[0], a[1]) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_getdents => Asked { length: a[2], ..on(K::Getdents, a[0]) },
        libc::SYS_getdents64 => Asked { length: a[2], ..on(K::Getdents, a[0]) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir => Asked { mode: a[1] as u32, ..named(K::Mkdir, HERE, a[0]) },
        libc::SYS_mkdirat => Asked { mode: a[2] as u32, ..named(K::Mkdir, a[0], a[1]) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rmdir => named(K::Rmdir, HERE, a[0]),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink => named(K::Unlink, HERE, a[0]),
        libc::SYS_unlinkat if a[2] as i32 & AT_REMOVEDIR != 0 => named(K::Rmdir, a[0], a[1]),
        libc::SYS_unlinkat => named(K::Unlink, a[0], a[1]),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => two(K::Rename, (HERE, a[0]), (HERE, a[1])),
        libc::SYS_renameat => two(K::Rename, (a[0], a[1]), (a[2], a[3])),
        libc::SYS_renameat2 => Asked { flags: a[4] as u32, ..two(K::Rename, (a[0], a[1]), (a[2], a[3])) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link => two(K::Link, (HERE, a[0]), (HERE, a[1])),
        libc::SYS_linkat => Asked { flags: a[4] as u32, ..two(K::Link, (a[0], a[1]), (a[2], a[3])) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink => Asked { text: a[0], ..named(K::Symlink, HERE, a[1]) },
        libc::SYS_symlinkat => Asked { text: a[0], ..named(K::Symlink, a[1], a[2]) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mknod => Asked { mode: a[1] as u32, ..named(K::Mknod, HERE, a[0]) },
        libc::SYS_mknodat => Asked { mode: a[2] as u32, ..named(K::Mknod, a[0], a[1]) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => Asked { mode: a[1] as u32, ..named(K::Chmod, HERE, a[0]) },
        libc::SYS_fchmodat => Asked { mode: a[2] as u32, ..named(K::Chmod, a[0], a[1]) },
        SYS_FCHMODAT2 => Asked { mode: a[2] as u32, flags: a[3] as u32, ..named(K::Chmod, a[0], a[1]) },
        libc::SYS_fchmod => Asked { mode: a[1] as u32, ..on(K::Fchmod, a[0]) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown => named(K::Chown, HERE, a[0]),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => Asked { flags: NOFOLLOW, ..named(K::Chown, HERE, a[0]) },
        libc::SYS_fchownat => Asked { flags: a[4] as u32, ..named(K::Chown, a[0], a[1]) },
        libc::SYS_fchown => on(K::Fchown, a[0]),
        libc::SYS_utimensat => Asked { flags: a[3] as u32, ..named(K::Utimens, a[0], a[1]) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime | libc::SYS_utimes => named(K::Utimens, HERE, a[0]),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => named(K::Utimens, a[0], a[1]),
        libc::SYS_setxattr => Asked { text: a[1], length: a[3], ..named(K::Setxattr, HERE, a[0]) },
        libc::SYS_lsetxattr => Asked { text: a[1], length: a[3], flags: NOFOLLOW, ..named(K::Setxattr, HERE, a[0]) },
        libc::SYS_fsetxattr => Asked { text: a[1], length: a[3], ..on(K::Fsetxattr, a[0]) },
        libc::SYS_getxattr => Asked { text: a[1], length: a[3], ..named(K::Getxattr, HERE, a[0]) },
        libc::SYS_lgetxattr => Asked { text: a[1], length: a[3], flags: NOFOLLOW, ..named(K::Getxattr, HERE, a[0]) },
        libc::SYS_fgetxattr => Asked { text: a[1], length: a[3], ..on(K::Fgetxattr, a[0]) },
        libc::SYS_listxattr => Asked { length: a[2], ..named(K::Listxattr, HERE, a[0]) },
        libc::SYS_llistxattr => Asked { length: a[2], flags: NOFOLLOW, ..named(K::Listxattr, HERE, a[0]) },
        libc::SYS_flistxattr => Asked { length: a[2], ..on(K::Flistxattr, a[0]) },
        libc::SYS_removexattr => Asked { text: a[1], ..named(K::Removexattr, HERE, a[0]) },
        libc::SYS_lremovexattr => Asked { text: a[1], flags: NOFOLLOW, ..named(K::Removexattr, HERE, a[0]) },
        libc::SYS_fremovexattr => Asked { text: a[1], ..on(K::Fremovexattr, a[0]) },
        libc::SYS_flock => Asked { flags: a[1] as u32, ..on(K::Flock, a[0]) },
        libc::SYS_sendfile => Asked { other: Some(a[0] as i32), pointer: a[2], length: a[3], ..on(K::Sendfile, a[1]) },
        libc::SYS_copy_file_range => {
            let other_pointer = a[3];
            Asked { other: Some(a[2] as i32), pointer: a[1], other_pointer, length: a[4], ..on(K::CopyRange, a[0]) }
        }
        libc::SYS_splice => {
            let other_pointer = a[3];
            Asked { other: Some(a[2] as i32), pointer: a[1], other_pointer, length: a[4], ..on(K::Splice, a[0]) }
        }
        // The filter lets no other request stop.
        libc::SYS_ioctl if a[1] as u32 == FICLONERANGE => {
            Asked { other: Some(a[0] as i32), pointer: a[2], ..on(K::Reflink, 0) }
        }
        libc::SYS_ioctl => Asked { other: Some(a[0] as i32), ..on(K::Reflink, a[2]) },
        libc::SYS_mmap => Asked {
            length: a[1],
            flags: a[2] as u32 & 7 | (a[3] as u32 & 3) << 3,
            offset: a[5] as i64,
            ..on(K::Map, a[4])
        },
        libc::SYS_io_uring_enter => Asked { length: a[1], ..on(K::Uring, a[0]) },
        libc::SYS_io_submit => Asked { what: What::Call(K::Aio), length: a[1], ..Asked::default() },
        libc::SYS_clone => Asked { what: What::Call(K::Spawn), flags: a[0] as u32, ..Asked::default() },
        libc::SYS_clone3 => Asked { what: What::Call(K::Spawn), pointer: a[0], ..Asked::default() },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_fork => Asked { what: What::Call(K::Spawn), ..Asked::default() },
        libc::SYS_vfork => Asked { what: What::Call(K::Spawn), flags: libc::CLONE_VFORK as u32, ..Asked::default() },
        libc::SYS_wait4 => Asked { what: What::Call(K::Wait), ..Asked::default() },
        libc::SYS_waitid => Asked { what: What::Call(K::Wait), pointer: a[2], ..Asked::default() },
        _ => return None,
    };
    Some(asked)
}
