//! The memory by which the ranks of one machine speak: a filesystem of the agent's own in place of everybody's /dev/shm.
//!
//! Launchers and ranks leave files there when they are killed, and two of them could take the same names. In the agent's own mounts nobody else
//! sees them, and they are gone with the agent.

use fstone_sandbox::agent::{is_agent, is_guest};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::path::Path;

/// Where POSIX has it, and Open MPI and MPICH look for it.
const PLACE: &str = "/dev/shm";

/// It is there until this is dropped.
pub(super) struct SharedMemory(());

impl SharedMemory {
    /// `None` where this process has no mounts of its own, where there is no such directory, or where what is `used` is in it.
    pub(super) fn apart(used: &[&Path]) -> Option<Self> {
        let own_mounts = is_agent() && !is_guest() && rustix::process::geteuid().is_root();
        let is_used = || {
            let place = Path::new(PLACE).canonicalize().unwrap_or_default();
            used.iter().any(|path| path.canonicalize().is_ok_and(|path| path.starts_with(&place)))
        };
        if !own_mounts || is_used() {
            return None;
        }
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("fstone", PLACE, "tmpfs", flags, c"mode=1777").ok().map(|()| Self(()))
    }

    /// What has Open MPI's launcher keep its own files there, and TMPDIR stays the user's. It is the same place on all nodes: its ranks
    /// are told one for all, and refuse one for the launcher's node beside that. Nothing where the user says where they are to be.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let of_user = |prefix: &&str| {
            ["", "local_", "remote_"].iter().any(|of| std::env::var_os(format!("{prefix}_{of}tmpdir_base")).is_some())
        };
        let ours = ["OMPI_MCA_orte", "PRTE_MCA_prte"].into_iter().filter(|prefix| !of_user(prefix));
        ours.map(|prefix| (format!("{prefix}_tmpdir_base"), PLACE.into())).collect()
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // A rank that hangs in the kernel may still have it; the agent's end takes it away then.
        let _ = unmount(PLACE, UnmountFlags::DETACH);
    }
}
