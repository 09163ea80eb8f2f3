//! What a guest's process is kept from, put together for one confinement, and its own directory.

#![expect(unsafe_code, reason = "they take effect between clone and exec")]

use super::error::SpawnError;
use super::rights::{self, Access, User, lend};
use super::root::{self, Root};
use super::{Confined, c_string, filter};
use fstone_files::{OwnDirectory, remove_own_tree};
use rustix::fd::{AsRawFd, OwnedFd};
use std::ffi::CString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

pub(super) struct Limits {
    /// The new root, in a mount namespace.
    pub(super) root: Option<Root>,
    user: Option<User>,
    /// Supplementary groups.
    groups: Vec<libc::gid_t>,
    /// Its only capability, in a set; to read what it needs, where it has no root of its own.
    kept: u32,
    ruleset: Option<OwnedFd>,
    /// Paths, and what Landlock is to allow with them.
    rules: Vec<(CString, u64)>,
    pub(super) filter: Vec<libc::sock_filter>,
}

impl Limits {
    pub(super) fn new(
        confined: &Confined,
        (own, program): (&Path, &Path),
        apart: bool,
        memory: Option<&SharedMemory>,
    ) -> Result<Self, SpawnError> {
        let limit = |cause| SpawnError::Resource { what: "limit the guest's rights", cause };
        let (user, version) = (User::of_guests(), rights::landlock_version());
        let needed = || std::iter::once(program).chain(confined.needed.iter().map(PathBuf::as_path));
        let unreachable = user.filter(|_| !apart).and_then(|user| {
            let path = needed().filter(|path| path.is_absolute()).find(|path| !user.reaches(path))?;
            Some((user.uid, path.to_owned()))
        });
        let mut kept = 0;
        if let Some((user, path)) = unreachable {
            // Landlock limits what can be read by it to what is shown below.
            kept = rights::capability_to_read();
            if kept == 0 || version == 0 {
                return Err(SpawnError::Unreachable { user, path });
            }
        }
        let mut allowed: Vec<(PathBuf, Access)> = Vec::new();
        if apart {
            allowed.push(("/".into(), Access::Read));
        } else {
            let system = root::system(kept == 0 && !rights::keeps_groups(user));
            let system = system.chain(root::DEVICES).chain(["/proc"]).map(PathBuf::from);
            let shown = confined.needed.iter().chain(&confined.readable).cloned();
            allowed.extend(system.chain(shown).map(|path| (path, Access::Read)));
        }
        allowed.push((own.to_owned(), Access::ReadAndConnect));
        allowed.push(("/dev/null".into(), Access::Write));
        allowed.extend(confined.writable.iter().map(|path| (path.clone(), Access::Write)));
        allowed.extend(confined.outputs.map(|name| (own.join(name), Access::Own)));
        let memory = memory.map(SharedMemory::place).or_else(|| Some(own.join(confined.memory?.0)));
        allowed.extend(memory.map(|place| (place, Access::Own)));
        let rules = allowed.into_iter().filter(|(path, _)| version > 0 && path.exists()).map(|(path, access)| {
            let bits = access.bits(path.is_dir(), version);
            Ok((c_string(path).map_err(limit)?, bits))
        });
        let devices = confined.writable.iter().filter_map(|path| fs::metadata(path).ok());
        // User-mode Linux locks an image of its own disk driver.
        let may_lock = confined.writable.iter().any(|path| path.is_file());
        Ok(Self {
            root: apart.then(|| Root::new(confined, own, user)).transpose().map_err(limit)?,
            user,
            groups: devices.filter(|facts| facts.file_type().is_char_device()).map(|facts| facts.gid()).collect(),
            kept,
            ruleset: rights::ruleset().map_err(limit)?,
            rules: rules.collect::<Result<_, SpawnError>>()?,
            filter: if filter::is_possible() { filter::program(confined.may_trace, may_lock) } else { Vec::new() },
        })
    }

    /// What a hostile process is not kept from within these limits, in one line; `None` if there is nothing.
    pub(super) fn not_enforced(&self) -> Option<String> {
        let mut may = Vec::new();
        if self.root.is_none() {
            let version = rights::landlock_version();
            may.extend((version == 0).then_some("read and write what its user may"));
            may.extend((self.kept != 0).then_some("read files of root's below /usr and /opt"));
            may.extend((version < rights::NAMED_SOCKETS).then_some("connect to sockets that have names"));
            may.extend(
                (version < rights::SCOPES)
                    .then_some("send signals to its user's other processes, and connect to abstract sockets"),
            );
            may.push("fill the disk that its directory is on");
        }
        may.extend(self.filter.is_empty().then_some("make every system call that its user may"));
        let reason = if self.root.is_some() { "has no seccomp" } else { "refuses namespaces" };
        (!may.is_empty()).then(|| format!("this host {reason}, so a hostile guest could {}", may.join(", ")))
    }

    /// # Safety
    /// Async-signal-safe system calls only. For good.
    pub(super) unsafe fn take_effect(&self) -> bool {
        // SAFETY: for the child of a fork, as this is.
        unsafe {
            let ruleset = self.ruleset.as_ref().map(AsRawFd::as_raw_fd);
            // Before it is another user, who need not reach these paths.
            if let Some(ruleset) = ruleset
                && !self.rules.iter().all(|(path, access)| rights::allow(ruleset, path, *access))
            {
                return false;
            }
            rights::give_up(self.user, &self.groups, self.kept)
                && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && ruleset.is_none_or(|ruleset| libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) == 0)
        }
    }
}

/// Makes the directories that it writes, empty, and lets it read what else is in its directory. In a directory that is not private to this
/// process's user nothing is touched.
pub(super) fn make_own_places(confined: &Confined, directory: &Path) -> io::Result<()> {
    if !rights::is_private(directory)? {
        let problem = "it has to be a directory with mode 0700 that belongs to the user who runs fstone";
        return Err(io::Error::other(format!("{}: {problem}", directory.display())));
    }
    for name in confined.outputs.into_iter().chain(confined.memory.map(|(name, _)| name)) {
        let place = directory.join(name);
        // Left over from an earlier guest in the same directory, which user-mode Linux would take for a running one.
        match fs::symlink_metadata(&place) {
            Ok(facts) if facts.is_dir() => remove_own_tree(&place)?,
            Ok(_) => fs::remove_file(&place)?,
            Err(_) => {}
        }
        fs::DirBuilder::new().mode(0o700).create(&place)?;
    }
    lend(directory)?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_file() || kind.is_socket() {
            lend(&entry.path())?;
        }
    }
    Ok(())
}

const PREFIX: &str = ".fstone-";

/// Where the guest's memory is if the guest has no filesystem of its own for it: a directory of its user's own in the host's
/// shared memory, so that it can change nothing else there.
#[derive(Debug)]
pub(super) struct SharedMemory(OwnDirectory);

impl SharedMemory {
    /// `None` where the host has no shared memory, or the guest needs none: its own directory does then.
    pub(super) fn make(confined: &Confined, own: &Path) -> io::Result<Option<Self>> {
        let user = User::of_guests();
        if let Some(user) = user {
            let own_places = confined.outputs.into_iter().chain(confined.memory.map(|(name, _)| name));
            own_places.map(|name| own.join(name)).try_for_each(|place| user.share(&place))?;
        }
        let (Some((name, _)), shared) = (confined.memory, Path::new("/dev/shm")) else { return Ok(None) };
        if !shared.is_dir() {
            return Ok(None);
        }
        OwnDirectory::remove_left(shared, PREFIX);
        let directory = OwnDirectory::make(shared, PREFIX)?;
        let memory = Self(directory);
        fs::DirBuilder::new().mode(0o700).create(memory.place())?;
        if let Some(user) = user {
            // For that user alone: others may be in its group.
            lchown(memory.place(), Some(user.uid), Some(user.gid))?;
            fs::set_permissions(memory.0.path(), Permissions::from_mode(0o711))?;
        }
        fs::remove_dir(own.join(name))?;
        symlink(memory.place(), own.join(name))?;
        Ok(Some(memory))
    }

    fn place(&self) -> PathBuf {
        self.0.path().join("memory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kill_left_in_shared_memory_is_removed_by_the_next_guest() {
        let confined = Confined { memory: Some(("memory", 1 << 20)), ..Confined::default() };
        let places = [(); 2].map(|()| tempfile::tempdir().expect("possible in a test"));
        let make = |number: usize| {
            let own = places[number].path();
            fs::create_dir(own.join("memory"))
                .and_then(|()| SharedMemory::make(&confined, own))
                .expect("possible in a test")
        };
        let Some(killed) = make(0) else { return eprintln!("skipped: this host has no shared memory") };
        let left = killed.0.path().to_owned();
        fs::write(left.join("file"), "data").expect("possible in a test");
        // As a kill leaves it: it is there, and its lock is not held any more.
        let aside = left.with_extension("aside");
        fs::rename(&left, &aside).expect("possible in a test");
        drop(killed);
        fs::rename(&aside, &left).expect("possible in a test");
        let living = make(1).expect("there is shared memory");
        assert!(!left.exists() && living.0.path().exists());
        let path = living.0.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }
}
