//! What the ranks of a trial have instead of the machine's: the memory by which they communicate, and their process numbers.
//!
//! Launchers and ranks leave files in /dev/shm when they are killed, and two of them could take the same names. In the agent's own mounts nobody
//! else sees them, and they are gone with the agent. Its processes are also numbered by a namespace of their own, where the machine's /proc has
//! other numbers; ranks look each other up there (UCX, by which MPICH sends, finds no peer otherwise, and MPI_Init fails).

use fstone_sandbox::agent::{is_agent, is_guest};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::path::{Path, PathBuf};

/// The place of POSIX shared memory, which Open MPI and MPICH use.
const MEMORY: &str = "/dev/shm";
const PROCESSES: &str = "/proc";

/// Mounts that last until this is dropped.
pub(super) struct Apart {
    memory: bool,
    processes: bool,
}

impl Apart {
    /// Mounts nothing if this process has no mount namespace of its own. /dev/shm stays the machine's if anything `used` is in it.
    pub(super) fn new(used: &[PathBuf]) -> Self {
        let own_mounts = is_agent() && !is_guest() && rustix::process::geteuid().is_root();
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let numbered_apart = || {
            let seen = Path::new(PROCESSES).join("self").read_link().ok();
            seen.is_none_or(|seen| seen != Path::new(&std::process::id().to_string()))
        };
        let memory = own_mounts && !is_in(Path::new(MEMORY), used);
        let processes = own_mounts && numbered_apart();
        Self {
            memory: memory && mount("fstone", MEMORY, "tmpfs", flags, c"mode=1777").is_ok(),
            processes: processes && mount("proc", PROCESSES, "proc", flags | MountFlags::NOEXEC, None).is_ok(),
        }
    }

    /// Variables that make Open MPI's launcher keep its own files in that memory; TMPDIR stays the user's. Open MPI tells all nodes the
    /// same directory (its ranks reject another one for the launcher's node), and on other nodes /dev/shm is not the trial's own. So there
    /// are no variables if ranks may run on `other_nodes`, or if the user names a directory.
    pub(super) fn variables(&self, other_nodes: bool) -> Vec<(String, String)> {
        let of_user = |prefix: &&str| {
            ["", "local_", "remote_"].iter().any(|of| std::env::var_os(format!("{prefix}_{of}tmpdir_base")).is_some())
        };
        let private = self.memory && !other_nodes;
        let ours = ["OMPI_MCA_orte", "PRTE_MCA_prte"].into_iter().filter(|prefix| private && !of_user(prefix));
        ours.map(|prefix| (format!("{prefix}_tmpdir_base"), MEMORY.into())).collect()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // A rank that hangs in the kernel may still use them; then they end with the agent.
        for (_, place) in
            [(self.memory, MEMORY), (self.processes, PROCESSES)].into_iter().filter(|(mounted, _)| *mounted)
        {
            let _ = unmount(place, UnmountFlags::DETACH);
        }
    }
}

/// Whether any of these is in this directory, or would be once somebody makes it.
fn is_in(directory: &Path, used: &[PathBuf]) -> bool {
    let directory = directory.canonicalize().unwrap_or_default();
    let nearest = |path: &PathBuf| path.ancestors().find_map(|above| above.canonicalize().ok());
    used.iter().filter_map(nearest).any(|path| path.starts_with(&directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_directory_is_named_only_if_all_ranks_run_here() {
        // Nothing is mounted, so nothing may be unmounted.
        let apart = std::mem::ManuallyDrop::new(Apart { memory: true, processes: false });
        assert_eq!(apart.variables(false).len(), 2);
        assert_eq!(apart.variables(true), []);
    }

    #[test]
    fn what_is_in_a_directory_is_found_by_any_of_its_paths() {
        let place = tempfile::tempdir().expect("a directory");
        let path = |name: &str| place.path().join(name);
        std::fs::create_dir(path("memory")).expect("ours");
        std::fs::write(path("memory/program"), b"").expect("ours");
        std::os::unix::fs::symlink(path("memory/program"), path("link")).expect("ours");
        let is_in = |names: &[&str]| is_in(&path("memory"), &names.iter().map(|name| path(name)).collect::<Vec<_>>());
        assert!(is_in(&["memory"]) && is_in(&["link"]) && is_in(&["none", "memory/program"]));
        assert!(is_in(&["memory/none/yet"]));
        assert!(!is_in(&["none", "."]));
    }
}
