//! With `sudo`, results belong to the user who called.
//!
//! Only files that are made here change owner: an existing file keeps its owner. SQLite gives the files it
//! makes beside the store (`-wal`, `-shm`) the store's own owner when it runs as root, so that they follow.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub user: u32,
    pub group: u32,
}

impl Owner {
    /// The user who called `sudo`: `SUDO_UID` and `SUDO_GID`, when this process is root. `None` otherwise, and when
    /// they are not numbers.
    pub fn caller() -> Option<Self> {
        let effective = rustix::process::geteuid().as_raw();
        let variable = |name| std::env::var(name).ok();
        Self::from_sudo(effective, variable("SUDO_UID").as_deref(), variable("SUDO_GID").as_deref())
    }

    fn from_sudo(effective_user: u32, sudo_uid: Option<&str>, sudo_gid: Option<&str>) -> Option<Self> {
        if effective_user != 0 {
            return None;
        }
        Some(Self { user: sudo_uid?.parse().ok()?, group: sudo_gid?.parse().ok()? })
    }
}

/// Makes a new, empty file for its owner alone, which is `owner` if given; `None` when something of that name is there already.
///
/// # Errors
/// Those of open(2) and fchown(2).
pub fn create_file(path: &Path, owner: Option<Owner>) -> io::Result<Option<File>> {
    // create_new never follows a symbolic link, so root does not make a file where somebody's link points.
    let file = match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        Err(error) => return Err(error),
    };
    if let Some(owner) = owner {
        fchown(&file, Some(owner.user), Some(owner.group))?;
    }
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_gives_away_and_only_to_numbers() {
        let owner = Owner { user: 1000, group: 100 };
        assert_eq!(Owner::from_sudo(0, Some("1000"), Some("100")), Some(owner));
        assert_eq!(Owner::from_sudo(1000, Some("1000"), Some("100")), None);
        assert_eq!(Owner::from_sudo(0, None, Some("100")), None);
        assert_eq!(Owner::from_sudo(0, Some("root"), Some("100")), None);
        assert_eq!(Owner::from_sudo(0, Some("-1"), Some("100")), None);
    }

    #[test]
    fn a_symbolic_link_is_not_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let link = directory.path().join("store.db");
        std::os::unix::fs::symlink(directory.path().join("elsewhere"), &link).expect("a link");
        assert!(create_file(&link, None).expect("no error").is_none());
        assert!(!directory.path().join("elsewhere").exists());
    }
}
