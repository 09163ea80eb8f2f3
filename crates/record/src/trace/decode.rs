//! Which system calls are recorded, and where their arguments are.

use crate::call::Kind;
use crate::system_calls::{CALLS, SYS_GETXATTRAT, SYS_LISTXATTRAT, SYS_REMOVEXATTRAT, SYS_SETXATTRAT};
use libc::{AT_FDCWD, AT_REMOVEDIR, AT_SYMLINK_NOFOLLOW, O_CREAT, O_TRUNC, O_WRONLY};
use std::collections::HashMap;
use std::os::raw::c_long;
use std::sync::LazyLock;

/// As seccomp(2) and ptrace(2) have it.
#[cfg(target_arch = "x86_64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
pub(super) const ARCHITECTURE: u32 = 0xC000_00B7;

/// What a call asks for; strings and structures are still in the memory of the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
    /// An array of `iovec`s whose lengths count, what is written, a structure, or where an offset is, by the kind. Of a wait its time, whose
    /// second word counts `count` ns; without one `length` is the time in ns.
    pub(super) pointer: u64,
    /// Where the offset of the other file is.
    pub(super) other_pointer: u64,
    pub(super) count: u64,
}

impl Asked {
    pub(super) const fn waits(&self) -> bool {
        matches!(self.what, What::Sleep | What::Limited(_))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Call(Kind),
    /// Changes the table of descriptors and is no call to a filesystem.
    Duplicate,
    CloseRange,
    Unshare,
    /// Not recorded: a stop there tells its time from that of waiting for other threads. The clock is in `mode`.
    Sleep,
    /// A wait with a time limit, which is a sleep if it returns this.
    Limited(i64),
    /// A sleep or a wait that a signal has interrupted goes on.
    Again,
}

impl Default for What {
    fn default() -> Self {
        Self::Call(Kind::Open)
    }
}

/// A wait that returns this when its time is over. The time is a `timespec` at the pointer.
fn limited(over: i32, pointer: u64) -> Asked {
    Asked { what: What::Limited(over.into()), pointer, count: 1, ..Asked::default() }
}

/// The same with a time in ms; a negative one has no end.
fn limited_ms(ms: u64) -> Asked {
    Asked { length: (ms as i32).max(0) as u64 * 1_000_000, ..limited(0, 0) }
}

fn on(kind: Kind, fd: u64) -> Asked {
    Asked { what: What::Call(kind), fd: Some(fd as i32), ..Asked::default() }
}

/// Of the first `struct open_how`.
const HOW_BYTES: u64 = 24;
/// Of the first `struct xattr_args`.
const XATTR_BYTES: u64 = 16;
/// The part of futex(2)'s operation that is no flag.
pub(super) const FUTEX_COMMAND: i32 = 0x7f;
const HERE: i32 = AT_FDCWD;
const NOFOLLOW: u32 = AT_SYMLINK_NOFOLLOW as u32;
pub(crate) const FICLONE: u32 = 0x4004_9409;
pub(crate) const FICLONERANGE: u32 = 0x4020_940D;

/// Other requests of ioctl(2) about a file's blocks and attributes: FIDEDUPERANGE, FS_IOC_FIEMAP, FS_IOC_GETFLAGS and SETFLAGS,
/// FS_IOC_FSGETXATTR and FSSETXATTR; and FS_IOC_RESVSP, UNRESVSP, both with 64 bits, and ZERO_RANGE, which are older than fallocate(2).
pub(super) const REQUESTS: [u32; 11] = [
    0xC018_9436,
    0xC020_660B,
    0x8008_6601,
    0x4008_6602,
    0x801C_581F,
    0x401C_5820,
    0x4030_5828,
    0x4030_5829,
    0x4030_582A,
    0x4030_582B,
    0x4030_5839,
];

/// Kind and arguments of a call of the table.
fn known(number: u64) -> Option<(Kind, &'static str)> {
    static BY_NUMBER: LazyLock<HashMap<u64, (Kind, &str)>> = LazyLock::new(|| {
        let there = CALLS.iter().filter(|(number, ..)| *number >= 0);
        there.map(|(number, _, kind, roles)| (*number as u64, (*kind, *roles))).collect()
    });
    BY_NUMBER.get(&number).copied()
}

/// The arguments where the table has them.
fn by_table(kind: Kind, roles: &str, a: [u64; 6]) -> Asked {
    let mut asked = Asked { what: What::Call(kind), ..Asked::default() };
    let mut directory = HERE;
    for (role, value) in roles.bytes().zip(a) {
        match role {
            b'd' => directory = value as i32,
            b'p' => asked.at = Some((std::mem::replace(&mut directory, HERE), value)),
            b'q' => asked.to = Some((std::mem::replace(&mut directory, HERE), value)),
            b't' => asked.text = value,
            b'f' | b'u' => asked.fd = Some(value as i32),
            b'o' => asked.other = Some(value as i32),
            b'n' => asked.length = value,
            b'@' if kind.is_copy() => asked.pointer = value,
            b'@' => asked.offset = value as i64,
            b'>' => asked.other_pointer = value,
            b'x' => asked.flags = value as u32,
            b'm' => asked.mode = value as u32,
            b'v' => (asked.pointer, asked.count) = (value, a[2]),
            b'h' | b'b' | b'a' => asked.pointer = value,
            _ => {}
        }
    }
    asked
}

/// `None` for calls that are not recorded.
pub(super) fn decode(number: u64, a: [u64; 6]) -> Option<Asked> {
    use Kind as K;
    let of_table = || known(number).map(|(kind, roles)| by_table(kind, roles, a));
    let asked = match number as c_long {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat => Asked { flags: (O_CREAT | O_WRONLY | O_TRUNC) as u32, ..of_table()? },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lstat | libc::SYS_lchown => Asked { flags: NOFOLLOW, ..of_table()? },
        libc::SYS_lsetxattr | libc::SYS_lgetxattr | libc::SYS_llistxattr | libc::SYS_lremovexattr => {
            let asked = of_table()?;
            Asked { flags: asked.flags | NOFOLLOW, ..asked }
        }
        SYS_SETXATTRAT | SYS_GETXATTRAT | SYS_LISTXATTRAT | SYS_REMOVEXATTRAT => {
            let kind = match number as c_long {
                SYS_SETXATTRAT => K::Setxattr,
                SYS_GETXATTRAT => K::Getxattr,
                SYS_LISTXATTRAT => K::Listxattr,
                _ => K::Removexattr,
            };
            let is_list = kind == K::Listxattr;
            Asked {
                what: What::Call(kind),
                at: Some((a[0] as i32, a[1])),
                flags: a[2] as u32 & NOFOLLOW,
                text: if is_list { 0 } else { a[3] },
                length: if is_list { a[4] } else { 0 },
                other_pointer: if a[5] >= XATTR_BYTES { a[4] } else { 0 },
                ..Asked::default()
            }
        }
        libc::SYS_io_uring_setup => Asked { what: What::Call(K::PolledRing), pointer: a[1], ..Asked::default() },
        libc::SYS_unlinkat => {
            let kind = if a[2] as i32 & AT_REMOVEDIR == 0 { K::Unlink } else { K::Rmdir };
            Asked { what: What::Call(kind), flags: 0, ..of_table()? }
        }
        libc::SYS_close_range => Asked {
            what: What::CloseRange,
            offset: a[0] as u32 as i64,
            length: a[1],
            flags: a[2] as u32,
            ..on(K::Close, 0)
        },
        libc::SYS_unshare => Asked { what: What::Unshare, flags: a[0] as u32, ..Asked::default() },
        libc::SYS_nanosleep => Asked { what: What::Sleep, ..limited(0, a[0]) },
        libc::SYS_clock_nanosleep => {
            Asked { what: What::Sleep, mode: a[0] as u32, flags: a[1] as u32, ..limited(0, a[2]) }
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => limited_ms(a[2]),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => limited_ms(a[3]),
        #[cfg(target_arch = "x86_64")]
        // A `timeval`.
        libc::SYS_select => Asked { count: 1000, ..limited(0, a[4]) },
        libc::SYS_epoll_pwait => limited_ms(a[3]),
        libc::SYS_ppoll => limited(0, a[2]),
        libc::SYS_epoll_pwait2 => limited(0, a[3]),
        libc::SYS_pselect6 | libc::SYS_io_getevents => limited(0, a[4]),
        libc::SYS_rt_sigtimedwait => limited(-libc::EAGAIN, a[2]),
        libc::SYS_semtimedop => limited(-libc::EAGAIN, a[3]),
        libc::SYS_mq_timedsend | libc::SYS_mq_timedreceive => {
            let (mode, flags) = (libc::CLOCK_REALTIME as u32, libc::TIMER_ABSTIME as u32);
            Asked { mode, flags, ..limited(-libc::ETIMEDOUT, a[4]) }
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_pause => limited(0, 0),
        libc::SYS_rt_sigsuspend => limited(0, 0),
        libc::SYS_restart_syscall => Asked { what: What::Again, ..Asked::default() },
        libc::SYS_futex => {
            let is_until = a[1] as i32 & FUTEX_COMMAND == libc::FUTEX_WAIT_BITSET;
            let is_wall = a[1] as i32 & libc::FUTEX_CLOCK_REALTIME != 0;
            let clock = if is_wall { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
            let flags = if is_until { libc::TIMER_ABSTIME as u32 } else { 0 };
            Asked { mode: clock as u32, flags, ..limited(-libc::ETIMEDOUT, a[3]) }
        }
        libc::SYS_dup | libc::SYS_dup3 => Asked { what: What::Duplicate, ..on(K::Open, a[0]) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_dup2 => Asked { what: What::Duplicate, ..on(K::Open, a[0]) },
        libc::SYS_fcntl => match a[1] as i32 {
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => Asked { what: What::Duplicate, ..on(K::Open, a[0]) },
            libc::F_SETFL => Asked { flags: a[2] as u32, ..on(K::SetFlags, a[0]) },
            _ => Asked { flags: a[1] as u32, pointer: a[2], ..on(K::Lock, a[0]) },
        },
        // With -1 it is where the file is, and moves on.
        libc::SYS_preadv2 | libc::SYS_pwritev2 => {
            let asked = Asked { flags: a[5] as u32, ..of_table()? };
            match asked.what {
                What::Call(K::Preadv) if asked.offset == -1 => Asked { what: What::Call(K::Readv), offset: 0, ..asked },
                What::Call(K::Pwritev) if asked.offset == -1 => {
                    Asked { what: What::Call(K::Writev), offset: 0, ..asked }
                }
                _ => asked,
            }
        }
        libc::SYS_bind => Asked { what: What::Call(K::Bind), pointer: a[1], count: a[2], ..Asked::default() },
        // The kernel reads no structure that is shorter.
        libc::SYS_openat2 if a[3] < HOW_BYTES => Asked { pointer: 0, ..of_table()? },
        // The filter lets no other request stop.
        libc::SYS_ioctl if a[1] as u32 == FICLONERANGE => {
            Asked { other: Some(a[0] as i32), pointer: a[2], ..on(K::Reflink, 0) }
        }
        libc::SYS_ioctl if REQUESTS.contains(&(a[1] as u32)) => on(K::Ioctl, a[0]),
        libc::SYS_ioctl => Asked { other: Some(a[0] as i32), ..on(K::Reflink, a[2]) },
        libc::SYS_mmap => Asked { flags: a[2] as u32 & 7 | (a[3] as u32 & 3) << 3, ..of_table()? },
        libc::SYS_clone => Asked { what: What::Call(K::Spawn), flags: a[0] as u32, ..Asked::default() },
        libc::SYS_clone3 => Asked { what: What::Call(K::Spawn), pointer: a[0], ..Asked::default() },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_fork => Asked { what: What::Call(K::Spawn), ..Asked::default() },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_vfork => {
            Asked { what: What::Call(K::Spawn), flags: (libc::CLONE_VM | libc::CLONE_VFORK) as u32, ..Asked::default() }
        }
        libc::SYS_wait4 => Asked { what: What::Call(K::Wait), ..Asked::default() },
        libc::SYS_waitid => Asked { what: What::Call(K::Wait), pointer: a[2], ..Asked::default() },
        _ => of_table()?,
    };
    Some(asked)
}
