//! The agent's hold on a filesystem of the study's own: what is mounted, by its identity, and the processes that were started.
//!
//! The agent has a pid namespace and mounts of its own. Whatever the study's commands start or mount is gone with
//! it, so the order below matters for peace only: unmount, remove, then end the daemons. One that ended before the unmount
//! would leave a mount on which everything hangs.

use crate::place::mount::{MountEntry, Mounter};
use rustix::{
    mount::{MountFlags, mount},
    process::{Pid, Signal, getpid, kill_process},
};
use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long what a command began may take to be seen: a daemon that mounts in the background, or goes after an unmount.
pub(crate) const SETTLING: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(5);

/// A mount as the kernel knows it. A path alone is no identity: something else may be mounted over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mounted {
    pub(crate) place: PathBuf,
    id: u64,
    device: (u32, u32),
}

impl Mounted {
    fn of(entry: &MountEntry) -> Self {
        Self { place: entry.target.clone(), id: entry.id, device: entry.device }
    }

    fn is(&self, entry: &MountEntry) -> bool {
        *self == Self::of(entry)
    }

    /// What is mounted at a place, the last of several.
    pub(crate) fn at(place: &Path, mounter: &dyn Mounter) -> io::Result<Option<Self>> {
        let mounts = mounter.mounts()?;
        Ok(mounts.iter().rfind(|entry| entry.target == place).map(Self::of))
    }

    pub(crate) fn is_there(&self, mounter: &dyn Mounter) -> io::Result<bool> {
        Ok(mounter.mounts()?.iter().any(|entry| self.is(entry)))
    }
}

#[derive(Debug)]
pub(crate) struct OwnGround {
    pub(crate) directory: PathBuf,
    /// Where each client mounts it.
    pub(crate) mounts: Vec<PathBuf>,
    /// What is mounted, in the order in which that was done.
    pub(crate) mounted: Vec<Mounted>,
    /// Whether `make` could not be started, or was a script that lacked a program.
    pub(crate) lacked_its_program: bool,
    /// What runs since `make`: its servers. `None` where processes are not this trial's alone.
    servers: Option<HashSet<i32>>,
}

impl OwnGround {
    /// An agent in a pid namespace of its own gets a /proc of its own: the one of the host has other numbers, by which programs find
    /// the wrong process or none.
    pub(crate) fn new(directory: PathBuf, mounts: Vec<PathBuf>, agent: bool) -> io::Result<Self> {
        let alone = agent && is_in_its_own_namespace();
        if alone {
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            mount("proc", "/proc", "proc", flags, None).map_err(io::Error::from)?;
        }
        Ok(Self {
            directory,
            mounts,
            mounted: Vec::new(),
            lacked_its_program: false,
            servers: alone.then(HashSet::new),
        })
    }

    /// `make` is done: what runs now are servers, which stay until the end.
    pub(crate) fn made(&mut self) {
        if let Some(servers) = &mut self.servers {
            servers.extend(others().into_iter().map(|(pid, _)| pid));
        }
    }

    /// A mount command that failed, or was stopped, may have mounted all the same: what is there where nothing is known to be is
    /// its work, in a namespace in which nobody else mounts.
    pub(crate) fn take_in_strays(&mut self, mounter: &dyn Mounter) -> io::Result<()> {
        for place in &self.mounts {
            if self.mounted.iter().all(|mounted| mounted.place != *place) {
                self.mounted.extend(Mounted::at(place, mounter)?);
            }
        }
        Ok(())
    }

    /// Ends every process that is left, nothing being mounted any more. What has to be said of it: a server ends with its
    /// trial as a matter of course, a mount's daemon should have ended with the mount.
    pub(crate) fn end_daemons(&self) -> Option<String> {
        let servers = self.servers.as_ref()?;
        let strays = || others().into_iter().filter(|(pid, _)| !servers.contains(pid)).collect::<Vec<_>>();
        wait(SETTLING, || strays().is_empty());
        let strays = strays();
        for signal in [Signal::TERM, Signal::KILL] {
            for (pid, _) in others() {
                if let Some(pid) = Pid::from_raw(pid) {
                    // It may have ended meanwhile; no number of the namespace is anybody else's.
                    let _ = kill_process(pid, signal);
                }
            }
            if wait(SETTLING, || others().is_empty()) {
                break;
            }
        }
        let names: Vec<String> = strays.into_iter().map(|(pid, name)| format!("{name} ({pid})")).collect();
        (!names.is_empty()).then(|| format!("still running after the unmount, and ended: {}", names.join(", ")))
    }
}

/// Whether /proc shows this process under another number than it has itself, which is so in a pid namespace that came after
/// that /proc. Only there are all processes this trial's.
fn is_in_its_own_namespace() -> bool {
    let shown = fs::read_link("/proc/self").ok().and_then(|link| link.to_str()?.parse::<i32>().ok());
    shown.is_some_and(|shown| shown != getpid().as_raw_nonzero().get())
}

pub(crate) fn wait(limit: Duration, holds: impl Fn() -> bool) -> bool {
    let since = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if since.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(LOOK);
    }
}

/// Every process of the namespace that has not ended, with its name, but for this one and the first, which keeps the rest.
fn others() -> Vec<(i32, String)> {
    let own = getpid().as_raw_nonzero().get();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let living = pids.filter(|pid| *pid != own && *pid != 1).filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, state) = named(&stat)?;
        (!matches!(state, 'Z' | 'X')).then(|| (pid, name.to_owned()))
    });
    living.collect()
}

/// Name and state in /proc/PID/stat: `12 (a name) S 1 …`.
fn named(stat: &str) -> Option<(&str, char)> {
    let (before, after) = stat.rsplit_once(") ")?;
    Some((before.split_once('(')?.1, after.chars().next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::mount::FakeMounter;

    #[test]
    fn a_name_with_brackets_hides_no_state() {
        assert_eq!(named("12 (a) S (b) Z 1 2"), Some(("a) S (b", 'Z')));
        assert_eq!(named("rubbish"), None);
    }

    #[test]
    fn nothing_is_ended_where_processes_are_not_the_trials_own() {
        let ground = OwnGround::new("/nowhere".into(), Vec::new(), false).expect("nothing to do");
        assert_eq!(ground.end_daemons(), None);
    }

    #[test]
    fn what_is_not_mounted_is_not_found() {
        let found = Mounted::at(Path::new("/nowhere"), &FakeMounter::new()).expect("a fake");
        assert_eq!(found, None);
    }
}
