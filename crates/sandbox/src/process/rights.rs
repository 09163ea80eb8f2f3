//! What a guest's process may do to the host: read, and write in the places that it was given.
//!
//! A guest's kernel is an ordinary process with the rights of the user who started it, and with `sudo` that is root. So
//! the process gives them up before it becomes the kernel: Landlock takes away every write outside of its own places,
//! and no capability is left but the one to read files of other users.

#![expect(unsafe_code, reason = "capabilities and Landlock between clone and exec, where nothing may allocate")]

use landlock::{ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset};
use landlock::{RulesetAttr, RulesetCreatedAttr};
use rustix::fd::OwnedFd;
use std::io;
use std::path::{Path, PathBuf};

/// The rights of Linux 6.2: those of later versions are about devices and sockets.
const NEWEST: ABI = ABI::V3;

/// CAP_DAC_READ_SEARCH of linux/capability.h.
const READ_SEARCH: u32 = 2;

/// From linux/capability.h: two words for each set, and the calling thread.
const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// SECBIT_NOROOT and its lock of linux/securebits.h: to execute a program as user 0 gives no capabilities.
const NO_ROOT: libc::c_ulong = 1 << 0 | 1 << 1;

/// A place where a guest may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Writable {
    /// Everything below a directory, or a file.
    Below(PathBuf),
    /// A directory for temporary files that others use too: regular files may be made and removed.
    Temporary(PathBuf),
}

impl Writable {
    fn path(&self) -> &Path {
        match self {
            Self::Below(path) | Self::Temporary(path) => path,
        }
    }

    fn access(&self) -> BitFlags<AccessFs> {
        match self {
            Self::Below(path) if path.is_dir() => AccessFs::from_write(NEWEST),
            Self::Below(_) => AccessFs::WriteFile | AccessFs::Truncate,
            Self::Temporary(_) => AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile,
        }
    }
}

/// A ruleset that forbids every write but in these places; `None` where the kernel has no Landlock (before 5.13, or
/// switched off). A place that is not there is passed over.
pub(crate) fn ruleset(places: &[Writable]) -> io::Result<Option<OwnedFd>> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(NEWEST))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    for place in places {
        let Ok(path) = PathFd::new(place.path()) else { continue };
        ruleset = ruleset.add_rule(PathBeneath::new(path, place.access())).map_err(io::Error::other)?;
    }
    Ok(ruleset.into())
}

/// Gives the rights up, for good.
///
/// # Safety
/// Async-signal-safe system calls only: for the child of a fork, between clone and exec.
pub(super) unsafe fn give_up(ruleset: Option<i32>) -> bool {
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
    // SAFETY: plain system calls; the structures are those of linux/capability.h, and live as long as the call.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return false;
        }
        if let Some(ruleset) = ruleset
            && libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) != 0
        {
            return false;
        }
        if libc::geteuid() != 0 {
            // Has no capabilities, or loses those over its own namespace when it executes a program.
            return true;
        }
        // Refused without the right to set them; then there is nothing to lock either.
        libc::prctl(libc::PR_SET_SECUREBITS, NO_ROOT, 0, 0, 0);
        let header = Header { version: CAPABILITY_VERSION_3, pid: 0 };
        let mut held = [Sets { effective: 0, permitted: 0, inheritable: 0 }; 2];
        if libc::syscall(libc::SYS_capget, &raw const header, held.as_mut_ptr()) != 0 {
            return false;
        }
        let kept = held[0].permitted & 1 << READ_SEARCH;
        let sets = [
            Sets { effective: kept, permitted: kept, inheritable: kept },
            Sets { effective: 0, permitted: 0, inheritable: 0 },
        ];
        if libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) != 0 {
            return false;
        }
        kept == 0
            || libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, libc::c_ulong::from(READ_SEARCH), 0, 0)
                == 0
    }
}
