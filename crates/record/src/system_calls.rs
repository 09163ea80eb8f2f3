//! The system calls that are recorded, for the tracer and for logs of strace.

use crate::call::Kind;
use libc::c_long;

/// Only older architectures have these. A log may come from one.
macro_rules! older {
    ($($name:ident),+) => {$(
        #[cfg(target_arch = "x86_64")]
        use libc::$name;
        #[cfg(not(target_arch = "x86_64"))]
        const $name: c_long = -1;
    )+};
}

older!(
    SYS_open,
    SYS_creat,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_getdents,
    SYS_mkdir,
    SYS_rmdir,
    SYS_unlink,
    SYS_rename,
    SYS_link,
    SYS_symlink,
    SYS_mknod,
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat
);
/// Newer than libc's list; the same on every architecture.
const SYS_FCHMODAT2: c_long = 452;
const SYS_FILE_GETATTR: c_long = 468;
const SYS_FILE_SETATTR: c_long = 469;

pub(crate) const SYS_SETXATTRAT: c_long = 463;
pub(crate) const SYS_GETXATTRAT: c_long = 464;
pub(crate) const SYS_LISTXATTRAT: c_long = 465;
pub(crate) const SYS_REMOVEXATTRAT: c_long = 466;

/// Calls with arguments in a structure. The tracer reads it; of a log's they are counted.
pub(crate) const WITH_STRUCTURES: [(c_long, &str); 4] = [
    (SYS_SETXATTRAT, "setxattrat"),
    (SYS_GETXATTRAT, "getxattrat"),
    (SYS_LISTXATTRAT, "listxattrat"),
    (SYS_REMOVEXATTRAT, "removexattrat"),
];

/// What each is, and what its arguments are, a letter each: `d` a directory for the next name, `p` and `q` names, `t` a text, `r` one that
/// is returned, `f` and `o` descriptors, `u` one of no file, `n` a length, `@` and `>` offsets, `x` flags, `m` a mode, `v` vectors, `b` what is
/// read or written, `a` an attribute's value, `s` what stat(2) says, `h` how to open. strace writes an offset as one argument where the kernel takes two.
pub(crate) const CALLS: &[(c_long, &str, Kind, &str)] = &[
    (SYS_open, "open", Kind::Open, "pxm"),
    (SYS_creat, "creat", Kind::Open, "pm"),
    (libc::SYS_openat, "openat", Kind::Open, "dpxm"),
    (libc::SYS_openat2, "openat2", Kind::Open, "dph"),
    (libc::SYS_close, "close", Kind::Close, "f"),
    (libc::SYS_read, "read", Kind::Read, "fbn"),
    (libc::SYS_pread64, "pread64", Kind::Pread, "f-n@"),
    (libc::SYS_readv, "readv", Kind::Readv, "fv"),
    (libc::SYS_preadv, "preadv", Kind::Preadv, "fv-@"),
    (libc::SYS_preadv2, "preadv2", Kind::Preadv, "fv-@x"),
    (libc::SYS_write, "write", Kind::Write, "fbn"),
    (libc::SYS_pwrite64, "pwrite64", Kind::Pwrite, "fbn@"),
    (libc::SYS_writev, "writev", Kind::Writev, "fv"),
    (libc::SYS_pwritev, "pwritev", Kind::Pwritev, "fv-@"),
    (libc::SYS_pwritev2, "pwritev2", Kind::Pwritev, "fv-@x"),
    (libc::SYS_lseek, "lseek", Kind::Seek, "f@x"),
    (libc::SYS_fsync, "fsync", Kind::Fsync, "f"),
    (libc::SYS_fdatasync, "fdatasync", Kind::Fdatasync, "f"),
    (libc::SYS_sync_file_range, "sync_file_range", Kind::SyncRange, "f@nx"),
    (libc::SYS_syncfs, "syncfs", Kind::Syncfs, "f"),
    (libc::SYS_sync, "sync", Kind::Sync, ""),
    (libc::SYS_truncate, "truncate", Kind::Truncate, "pn"),
    (libc::SYS_ftruncate, "ftruncate", Kind::Ftruncate, "fn"),
    (libc::SYS_fallocate, "fallocate", Kind::Fallocate, "fx@n"),
    (libc::SYS_fadvise64, "fadvise64", Kind::Fadvise, "f@nx"),
    (libc::SYS_readahead, "readahead", Kind::Readahead, "f@n"),
    (libc::SYS_statfs, "statfs", Kind::Statfs, "p"),
    (libc::SYS_fstatfs, "fstatfs", Kind::Fstatfs, "f"),
    (libc::SYS_msync, "msync", Kind::Msync, "-nx"),
    (libc::SYS_open_by_handle_at, "open_by_handle_at", Kind::OpenByHandle, "--x"),
    (libc::SYS_name_to_handle_at, "name_to_handle_at", Kind::Handle, "dp"),
    (SYS_FILE_GETATTR, "file_getattr", Kind::GetAttributes, "dp"),
    (SYS_FILE_SETATTR, "file_setattr", Kind::SetAttributes, "dp"),
    (SYS_stat, "stat", Kind::Stat, "ps"),
    (SYS_lstat, "lstat", Kind::Stat, "ps"),
    (libc::SYS_fstat, "fstat", Kind::Fstat, "fs"),
    (libc::SYS_newfstatat, "newfstatat", Kind::Stat, "dpsx"),
    (libc::SYS_statx, "statx", Kind::Stat, "dpx-s"),
    (SYS_access, "access", Kind::Access, "pm"),
    (libc::SYS_faccessat, "faccessat", Kind::Access, "dpm"),
    (libc::SYS_faccessat2, "faccessat2", Kind::Access, "dpmx"),
    (SYS_readlink, "readlink", Kind::Readlink, "prn"),
    (libc::SYS_readlinkat, "readlinkat", Kind::Readlink, "dprn"),
    (SYS_getdents, "getdents", Kind::Getdents, "f-n"),
    (libc::SYS_getdents64, "getdents64", Kind::Getdents, "f-n"),
    (SYS_mkdir, "mkdir", Kind::Mkdir, "pm"),
    (libc::SYS_mkdirat, "mkdirat", Kind::Mkdir, "dpm"),
    (SYS_rmdir, "rmdir", Kind::Rmdir, "p"),
    (SYS_unlink, "unlink", Kind::Unlink, "p"),
    (libc::SYS_unlinkat, "unlinkat", Kind::Unlink, "dpx"),
    (SYS_rename, "rename", Kind::Rename, "pq"),
    (libc::SYS_renameat, "renameat", Kind::Rename, "dpdq"),
    (libc::SYS_renameat2, "renameat2", Kind::Rename, "dpdqx"),
    (SYS_link, "link", Kind::Link, "pq"),
    (libc::SYS_linkat, "linkat", Kind::Link, "dpdqx"),
    (SYS_symlink, "symlink", Kind::Symlink, "tp"),
    (libc::SYS_symlinkat, "symlinkat", Kind::Symlink, "tdp"),
    (SYS_mknod, "mknod", Kind::Mknod, "pm"),
    (libc::SYS_mknodat, "mknodat", Kind::Mknod, "dpm"),
    (SYS_chmod, "chmod", Kind::Chmod, "pm"),
    (libc::SYS_fchmodat, "fchmodat", Kind::Chmod, "dpm"),
    (SYS_FCHMODAT2, "fchmodat2", Kind::Chmod, "dpmx"),
    (libc::SYS_fchmod, "fchmod", Kind::Fchmod, "fm"),
    (SYS_chown, "chown", Kind::Chown, "p"),
    (SYS_lchown, "lchown", Kind::Chown, "p"),
    (libc::SYS_fchownat, "fchownat", Kind::Chown, "dp--x"),
    (libc::SYS_fchown, "fchown", Kind::Fchown, "f"),
    (SYS_utime, "utime", Kind::Utimens, "p"),
    (SYS_utimes, "utimes", Kind::Utimens, "p"),
    (SYS_futimesat, "futimesat", Kind::Utimens, "dp"),
    (libc::SYS_utimensat, "utimensat", Kind::Utimens, "dp-x"),
    (libc::SYS_setxattr, "setxattr", Kind::Setxattr, "ptanx"),
    (libc::SYS_lsetxattr, "lsetxattr", Kind::Setxattr, "ptanx"),
    (libc::SYS_fsetxattr, "fsetxattr", Kind::Fsetxattr, "ftanx"),
    (libc::SYS_getxattr, "getxattr", Kind::Getxattr, "pt-n"),
    (libc::SYS_lgetxattr, "lgetxattr", Kind::Getxattr, "pt-n"),
    (libc::SYS_fgetxattr, "fgetxattr", Kind::Fgetxattr, "ft-n"),
    (libc::SYS_listxattr, "listxattr", Kind::Listxattr, "p-n"),
    (libc::SYS_llistxattr, "llistxattr", Kind::Listxattr, "p-n"),
    (libc::SYS_flistxattr, "flistxattr", Kind::Flistxattr, "f-n"),
    (libc::SYS_removexattr, "removexattr", Kind::Removexattr, "pt"),
    (libc::SYS_lremovexattr, "lremovexattr", Kind::Removexattr, "pt"),
    (libc::SYS_fremovexattr, "fremovexattr", Kind::Fremovexattr, "ft"),
    (libc::SYS_flock, "flock", Kind::Flock, "fx"),
    (libc::SYS_sendfile, "sendfile", Kind::Sendfile, "of@n"),
    (libc::SYS_copy_file_range, "copy_file_range", Kind::CopyRange, "f@o>n"),
    (libc::SYS_splice, "splice", Kind::Splice, "f@o>n"),
    (libc::SYS_mmap, "mmap", Kind::Map, "-nxxf@"),
    (libc::SYS_io_uring_enter, "io_uring_enter", Kind::Uring, "un"),
    (libc::SYS_io_submit, "io_submit", Kind::Aio, "-n"),
];
