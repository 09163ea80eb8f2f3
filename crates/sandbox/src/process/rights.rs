//! The user that a guest's process runs as, and what Landlock permits it.
//!
//! A guest's kernel is an ordinary process, and may be hostile. It is never root: started by root it becomes another user, without any
//! capability, and cannot change back.

#![expect(unsafe_code, reason = "users, capabilities and Landlock between clone and exec, where nothing may allocate")]

use fstone_files::Owner;
use rustix::fd::{FromRawFd, OwnedFd};
use std::ffi::CStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown};
use std::path::Path;
use std::sync::OnceLock;

/// `nobody` and `nogroup` on every Linux.
const NOBODY: u32 = 65534;

/// The user that guests run as, where that is not the one who runs fstone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl User {
    /// With `sudo` the caller, otherwise `nobody`. `None` if this process is not root, or is root of a namespace that has no other
    /// user: then it has only the rights of an ordinary user outside.
    pub(super) fn of_guests() -> Option<Self> {
        let or_nobody = |number: Option<u32>| number.filter(|&number| number != 0).unwrap_or(NOBODY);
        let caller = Owner::caller().filter(|owner| owner.user != 0);
        let user =
            Self { uid: or_nobody(caller.map(|owner| owner.user)), gid: or_nobody(caller.map(|owner| owner.group)) };
        let is_there = has("/proc/self/uid_map", user.uid) && has("/proc/self/gid_map", user.gid);
        (rustix::process::geteuid().is_root() && is_there).then_some(user)
    }

    /// Lets this user read a file, enter a directory or connect to a socket of root's, through its group. Links are left alone.
    pub(super) fn lend(self, path: &Path) -> io::Result<()> {
        let facts = fs::symlink_metadata(path)?;
        if facts.is_symlink() {
            return Ok(());
        }
        lchown(path, None, Some(self.gid))?;
        let more = match facts.file_type() {
            kind if kind.is_dir() => 0o050,
            kind if kind.is_socket() => 0o060,
            _ => 0o040,
        };
        fs::set_permissions(path, Permissions::from_mode(facts.mode() & 0o7777 | more))
    }

    /// Gives this user all rights to a directory that root has just made.
    pub(super) fn share(self, directory: &Path) -> io::Result<()> {
        lchown(directory, None, Some(self.gid))?;
        fs::set_permissions(directory, Permissions::from_mode(0o770))
    }

    pub(super) fn can_read(self, facts: &fs::Metadata) -> bool {
        self.may(facts, 0o4)
    }

    fn may(self, facts: &fs::Metadata, bit: u32) -> bool {
        let shift = match (facts.uid() == self.uid, facts.gid() == self.gid) {
            (true, _) => 6,
            (_, true) => 3,
            _ => 0,
        };
        facts.mode() >> shift & bit != 0
    }

    /// Whether this user can read a file and enter all directories above it. What is not there is no obstacle.
    pub(super) fn reaches(self, path: &Path) -> bool {
        let Ok(path) = fs::canonicalize(path) else { return true };
        let passes = |part: &Path, bit| fs::metadata(part).is_ok_and(|facts| self.may(&facts, bit));
        passes(&path, 0o4) && path.ancestors().skip(1).all(|above| passes(above, 0o1))
    }
}

/// Whether a guest has groups besides its user's own, such as one that may read /etc/shadow: only root can give them up.
pub(super) fn keeps_groups(user: Option<User>) -> bool {
    let own = rustix::process::getegid();
    user.is_none() && rustix::process::getgroups().map_or(true, |groups| groups.iter().any(|group| *group != own))
}

/// The capability of this process to read files of other users, as a set; 0 if it has none.
pub(super) fn capability_to_read() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let permitted = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapPrm:")?.trim(), 16).ok());
    [READ_SEARCH, OVERRIDE].into_iter().find(|one| permitted.is_some_and(|all| all & u64::from(*one) != 0)).unwrap_or(0)
}

/// Whether a directory belongs to this process's user, and only the user that guests run as may enter it besides.
pub(super) fn is_private(directory: &Path) -> io::Result<bool> {
    let facts = fs::symlink_metadata(directory)?;
    let lent = User::of_guests().is_some_and(|user| user.gid == facts.gid());
    let others = facts.mode() & 0o077 & if lent { !0o050 } else { !0 };
    Ok(facts.is_dir() && facts.uid() == rustix::process::geteuid().as_raw() && others == 0)
}

/// Lets a guest read a file of its directory, if it runs as another user than this process.
pub(crate) fn lend(path: &Path) -> io::Result<()> {
    User::of_guests().map_or(Ok(()), |user| user.lend(path))
}

/// Whether a map of user_namespaces(7) has this number: lines of "inside outside count".
fn has(map: &str, number: u32) -> bool {
    let map = fs::read_to_string(map).unwrap_or_default();
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
        let (Some(first), Some(_), Some(count)) = (numbers.next(), numbers.next(), numbers.next()) else {
            return false;
        };
        (first..first + count).contains(&u64::from(number))
    })
}

/// Rights of linux/landlock.h.
mod access {
    pub(super) const EXECUTE: u64 = 1 << 0;
    pub(super) const WRITE_FILE: u64 = 1 << 1;
    pub(super) const READ_FILE: u64 = 1 << 2;
    pub(super) const READ_DIR: u64 = 1 << 3;
    pub(super) const REMOVE_DIR: u64 = 1 << 4;
    pub(super) const REMOVE_FILE: u64 = 1 << 5;
    pub(super) const MAKE_DIR: u64 = 1 << 7;
    pub(super) const MAKE_REG: u64 = 1 << 8;
    pub(super) const MAKE_SOCK: u64 = 1 << 9;
    pub(super) const TRUNCATE: u64 = 1 << 14;
    pub(super) const IOCTL_DEV: u64 = 1 << 15;
    pub(super) const RESOLVE_UNIX: u64 = 1 << 16;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Read and execute.
    Read,
    /// The same, and connect to sockets.
    ReadAndConnect,
    Write,
    /// Everything that a guest's kernel does in a directory of its own.
    Own,
}

impl Access {
    pub(super) fn bits(self, is_directory: bool, version: u32) -> u64 {
        use access::{
            EXECUTE, IOCTL_DEV, MAKE_DIR, MAKE_REG, MAKE_SOCK, READ_DIR, READ_FILE, REMOVE_DIR, REMOVE_FILE,
            RESOLVE_UNIX, TRUNCATE, WRITE_FILE,
        };
        let read = EXECUTE | READ_FILE | READ_DIR;
        let of_files = EXECUTE | READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV | RESOLVE_UNIX;
        let bits = match self {
            Self::Read => read,
            Self::ReadAndConnect => read | RESOLVE_UNIX,
            Self::Write => READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV,
            // User-mode Linux executes the file that is its memory.
            Self::Own => {
                read | WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | RESOLVE_UNIX
            }
        };
        bits & handled(version) & if is_directory { u64::MAX } else { of_files }
    }
}

/// All rights that this version knows, each of which a ruleset takes away.
const fn handled(version: u32) -> u64 {
    let newest = match version {
        0 => return 0,
        1 => 12,
        2 => 13,
        3 | 4 => 14,
        5..=8 => 15,
        _ => 16,
    };
    (1 << (newest + 1)) - 1
}

/// The version of Landlock from which it refuses connections to sockets that have names.
pub(super) const NAMED_SOCKETS: u32 = 9;
/// The same for signals and abstract sockets.
pub(super) const SCOPES: u32 = 6;
/// The same for TCP.
const TCP: u32 = 4;

/// The version of this kernel's Landlock; 0 if it has none (before 5.13, or switched off).
pub(super) fn landlock_version() -> u32 {
    const VERSION: u32 = 1;
    static FOUND: OnceLock<u32> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: with this flag the kernel takes no structure, and answers with a number.
        let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION) };
        u32::try_from(version).unwrap_or(0)
    })
}

/// A ruleset that takes everything away; `None` where the kernel has no Landlock.
pub(super) fn ruleset() -> io::Result<Option<OwnedFd>> {
    /// `struct landlock_ruleset_attr`; older kernels take it if what they do not know is zero.
    #[repr(C)]
    struct Attributes {
        files: u64,
        network: u64,
        scoped: u64,
    }
    let version = landlock_version();
    if version == 0 {
        return Ok(None);
    }
    let from = |first| if version >= first { 0b11 } else { 0 };
    let attributes = Attributes { files: handled(version), network: from(TCP), scoped: from(SCOPES) };
    // SAFETY: the structure lives as long as the call, which is given its size; what it returns is a descriptor of ours.
    unsafe {
        let size = std::mem::size_of::<Attributes>();
        match libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, size, 0) {
            ..0 => Err(io::Error::last_os_error()),
            ruleset => Ok(Some(OwnedFd::from_raw_fd(ruleset as i32))),
        }
    }
}

/// Adds a rule; a path that is not there is passed over.
///
/// # Safety
/// Async-signal-safe system calls only: for the child of a fork.
pub(super) unsafe fn allow(ruleset: i32, path: &CStr, access: u64) -> bool {
    const PATH_BENEATH: libc::c_int = 1;
    #[repr(C, packed)]
    struct Beneath {
        access: u64,
        parent: i32,
    }
    // SAFETY: a C string, and a structure of linux/landlock.h that lives as long as the call.
    unsafe {
        let parent = libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
        if parent < 0 {
            return true;
        }
        let rule = Beneath { access, parent };
        let added = libc::syscall(libc::SYS_landlock_add_rule, ruleset, PATH_BENEATH, &raw const rule, 0) == 0;
        libc::close(parent);
        added
    }
}

/// CAP_DAC_READ_SEARCH and CAP_DAC_OVERRIDE of linux/capability.h. The latter writes as well, which Landlock has to prevent.
const READ_SEARCH: u32 = 1 << 2;
const OVERRIDE: u32 = 1 << 1;

/// From linux/capability.h: two words for each set, and the calling thread.
const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// SECBIT_NOROOT and its lock of linux/securebits.h: to execute a program as user 0 gives no capabilities.
const NO_ROOT: libc::c_ulong = 1 << 0 | 1 << 1;

/// Becomes this user, and gives up all capabilities for good but those in this set, which has one at most.
///
/// # Safety
/// Async-signal-safe system calls only: for the child of a fork, between clone and exec.
pub(super) unsafe fn give_up(user: Option<User>, groups: &[libc::gid_t], kept: u32) -> bool {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Sets {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    // SAFETY: plain system calls; the structures are those of linux/capability.h, and live as long as the call. By number, for libc's own
    // functions change all threads of a process.
    unsafe {
        // Refused without the right to set them; then there is nothing to lock either.
        libc::prctl(libc::PR_SET_SECUREBITS, NO_ROOT, 0, 0, 0);
        if let Some(User { uid, gid }) = user {
            libc::prctl(libc::PR_SET_KEEPCAPS, libc::c_ulong::from(kept != 0), 0, 0, 0);
            if libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) != 0
                || libc::syscall(libc::SYS_setresgid, gid, gid, gid) != 0
                || libc::syscall(libc::SYS_setresuid, uid, uid, uid) != 0
            {
                return false;
            }
        }
        let header = Header { version: CAPABILITY_VERSION_3, pid: 0 };
        let none = Sets { effective: 0, permitted: 0, inheritable: 0 };
        let sets = [Sets { effective: kept, permitted: kept, inheritable: kept }, none];
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) != 0 {
            return false;
        }
        let number = libc::c_ulong::from(kept.trailing_zeros());
        kept == 0 || libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, number, 0, 0) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_version_is_asked_for_what_it_does_not_know() {
        let all = [Access::Read, Access::ReadAndConnect, Access::Write, Access::Own];
        for version in 1..=10 {
            assert!(all.iter().all(|access| access.bits(true, version) & !handled(version) == 0), "{version}");
        }
        assert_eq!((handled(1), handled(3), handled(9)), (0x1fff, 0x7fff, 0x1_ffff));
        assert_eq!(Access::Read.bits(false, 1), access::EXECUTE | access::READ_FILE);
        assert_eq!(Access::Read.bits(true, 0), 0);
    }
}
