//! Making directories with those above them.

use crate::Owner;
use crate::path::{DIRECTORY, directory_of, open_directory_of};
use rustix::fs::{Mode, mkdirat, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

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
    let above = open_directory_of(path)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn no_directory_is_made_where_another_users_link_leads() {
        let place = tempfile::tempdir().expect("a directory");
        let (shared, elsewhere) = (place.path().join("shared"), place.path().join("elsewhere"));
        [&shared, &elsewhere].into_iter().for_each(|path| std::fs::create_dir(path).expect("made"));
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
}
