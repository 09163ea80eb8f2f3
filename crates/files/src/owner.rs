//! With `sudo`, results belong to the user who called.
//!
//! Only files that are made here change owner: an existing file keeps its owner. SQLite gives the files it
//! makes beside the store (`-wal`, `-shm`) the store's own owner when it runs as root, so that they follow.

use crate::directory_of;
use crate::regular::resolve;
use crate::tree::DIRECTORY;
use rustix::fs::{Mode, mkdirat, open, openat};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

/// A user and a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub user: u32,
    /// Group id.
    pub group: u32,
}

impl Owner {
    /// The user who called `sudo`: `SUDO_UID` and `SUDO_GID`, when this process is root. `None` otherwise, and when
    /// they are not numbers.
    #[must_use]
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

/// Makes a directory and its missing parents for their owner alone, which is `owner` if given. Nothing is made where a link leads
/// that another user could have made.
///
/// # Errors
/// Those of mkdir(2) and chown(2), and of such a link. An existing directory is not an error.
pub fn create_directories(path: &Path, owner: Option<Owner>) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let around = || io::Error::new(io::ErrorKind::InvalidInput, "\"..\" below a directory that is not there");
    let name = path.file_name().ok_or_else(around)?;
    create_directories(directory_of(path), owner)?;
    let above = resolve(directory_of(path))?;
    let above = open(&above, DIRECTORY, Mode::empty())?;
    match mkdirat(&above, name, Mode::RWXU) {
        Ok(()) => {
            let Some(owner) = owner else { return Ok(()) };
            let made = File::from(openat(&above, name, DIRECTORY, Mode::empty())?);
            match made.metadata()?.uid() == rustix::process::geteuid().as_raw() {
                true => fchown(&made, Some(owner.user), Some(owner.group)),
                false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "another directory has taken its place")),
            }
        }
        Err(Errno::EXIST) if path.is_dir() => Ok(()),
        Err(errno) => Err(errno.into()),
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
    use std::os::unix::fs::PermissionsExt;

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
    fn no_directory_is_made_where_another_users_link_leads() {
        let place = tempfile::tempdir().expect("a directory");
        let (shared, elsewhere) = (place.path().join("shared"), place.path().join("elsewhere"));
        [&shared, &elsewhere].map(|path| std::fs::create_dir(path).expect("made"));
        std::os::unix::fs::symlink(&elsewhere, shared.join("link")).expect("a link");
        let mode = |mode| std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(mode)).expect("changed");
        mode(0o777);
        let error = create_directories(&shared.join("link/a/b"), None).expect_err("anybody could have made the link");
        assert!(error.to_string().contains("another user could have put there"), "{error}");
        assert_eq!(std::fs::read_dir(&elsewhere).expect("readable").count(), 0);
        mode(0o700);
        create_directories(&shared.join("link/a/b"), None).expect("this user's own link");
        assert_eq!(std::fs::metadata(elsewhere.join("a/b")).expect("made").mode() & 0o777, 0o700);
        create_directories(&shared.join("link/a/b"), None).expect("it is there");
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
