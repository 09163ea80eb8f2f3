//! Opening regular files for writing, and nothing else.

use crate::path::{open_directory_of, walk};
use crate::{Owner, trust::is_own};
use rustix::fs::{CWD, Mode, OFlags, open, openat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File, FileType, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// The path of a regular file with all links resolved; `None` if there is no such file yet.
///
/// It is opened with `O_PATH` only, because opening a device can have effects, and closing another descriptor of the file would
/// release this process's locks on it (fcntl_locking(2)).
///
/// # Errors
/// If it is no regular file, or if a link leads there that another user could have made. Those of lstat(2).
pub fn regular(path: &Path) -> io::Result<Option<PathBuf>> {
    match walk(path) {
        Ok((there, Some(found))) => {
            refuse_irregular(found.metadata()?.file_type())?;
            Ok(Some(there))
        }
        Ok((_, None)) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The same; makes an empty file where there is none, owned by `owner` if given.
///
/// # Errors
/// As [`regular`], and those of open(2) and fchown(2).
pub fn regular_or_new(path: &Path, owner: Option<Owner>) -> io::Result<PathBuf> {
    Ok(found_or_made(path, owner)?.0)
}

/// Opens a regular file to write it anew, where its rights and other names stay; makes it where there is none, owned by `owner` if
/// given.
///
/// # Errors
/// As [`regular_or_new`], and those of open(2).
pub fn open_anew(path: &Path, owner: Option<Owner>) -> io::Result<File> {
    let (_, found) = found_or_made(path, owner)?;
    reopen(&found, OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC)
}

/// A regular file that is there by now: where it is, and itself, opened for nothing but its facts.
fn found_or_made(path: &Path, owner: Option<Owner>) -> io::Result<(PathBuf, OwnedFd)> {
    let (there, _) = walk(path)?;
    let name = there.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let directory = open_directory_of(&there)?;
    create_in(&directory, name, owner)?;
    let found = openat(&directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let found = File::from(found);
    refuse_irregular(found.metadata()?.file_type())?;
    Ok((there, found.into()))
}

/// Makes a new, empty file for its owner alone, which is `owner` if given; `None` when something of that name is there already.
///
/// # Errors
/// Those of open(2) and fchown(2), and if a link leads there that another user could have made.
pub fn create_file(path: &Path, owner: Option<Owner>) -> io::Result<Option<File>> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    create_in(&open_directory_of(path)?, name, owner)
}

/// The same in a directory that is open.
pub(crate) fn create_in(directory: &File, name: &OsStr, owner: Option<Owner>) -> io::Result<Option<File>> {
    // EXCL never follows a symbolic link, so root does not make a file where somebody's link points.
    let how = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = match openat(directory, name, how, Mode::RUSR | Mode::WUSR) {
        Ok(file) => File::from(file),
        Err(Errno::EXIST) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    if let Some(owner) = owner {
        fchown(&file, Some(owner.user), Some(owner.group))?;
    }
    Ok(Some(file))
}

/// Opens a regular file for reading and writing, or makes it for its owner alone. `append` writes to its end only. It is
/// never a link.
///
/// # Errors
/// As [`regular`], and those of open(2).
pub fn open_or_create(path: &Path, append: bool) -> io::Result<File> {
    let how = OFlags::RDWR | OFlags::CLOEXEC | if append { OFlags::APPEND } else { OFlags::empty() };
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let directory = open_directory_of(path)?;
    loop {
        let found = match openat(&directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Ok(found) => found,
            Err(Errno::NOENT) => {
                let made = openat(&directory, name, how | OFlags::CREATE | OFlags::EXCL, Mode::RUSR | Mode::WUSR);
                match made {
                    Err(Errno::EXIST) => continue,
                    made => return Ok(made?.into()),
                }
            }
            Err(errno) => return Err(errno.into()),
        };
        return reopen(&found, how);
    }
}

/// Removes the rights of all other users to a regular file that belongs to this user, or to the user who called sudo. Returns whether
/// there were any. Another user's file stays as it is. It is no error if the file is missing.
///
/// This does not release locks of this process on the file.
///
/// # Errors
/// Those of open(2) and chmod(2).
pub fn make_private(path: &Path) -> io::Result<bool> {
    let found = match open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(false),
        Err(errno) => return Err(errno.into()),
    };
    let here = format!("/proc/self/fd/{}", found.as_raw_fd());
    let others = |facts: &Metadata| facts.mode() & 0o077 != 0;
    let facts = fs::metadata(&here)?;
    if !facts.is_file() || !others(&facts) || !is_own(&facts) {
        return Ok(false);
    }
    fs::set_permissions(&here, fs::Permissions::from_mode(facts.mode() & 0o700))?;
    // A filesystem without rights accepts the call and changes nothing.
    Ok(!others(&fs::metadata(&here)?))
}

/// Opens for writing what was opened with `O_PATH`, after making sure that it is a regular file.
fn reopen(found: &OwnedFd, how: OFlags) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", found.as_raw_fd());
    refuse_irregular(fs::metadata(&path)?.file_type())?;
    Ok(openat(CWD, path, how, Mode::empty())?.into())
}

fn refuse_irregular(kind: FileType) -> io::Result<()> {
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
        kind if kind.is_block_device() => "it is a disk, and its contents would be lost",
        kind if kind.is_char_device() => "it is a device",
        kind if kind.is_fifo() => "it is a pipe",
        kind if kind.is_symlink() => "it is a link",
        _ => "it is a socket",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{what}; only a regular file is written to")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_is_followed_step_by_step_and_its_file_keeps_its_rights() {
        let place = tempfile::tempdir().expect("a directory");
        let path = |name: &str| place.path().join(name);
        fs::create_dir_all(path("a/b")).expect("made");
        symlink("../a/./b/../file", path("a/link")).expect("linked");
        symlink(path("a/link"), path("first")).expect("linked");
        let real = fs::canonicalize(place.path()).expect("there").join("a/file");
        assert_eq!(regular(&path("first")).expect("no error"), None);
        assert_eq!(regular_or_new(&path("first"), None).expect("made"), real);
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("ours");
        fs::hard_link(&real, path("another")).expect("linked");
        fs::write(&real, "a long text").expect("ours");
        open_anew(&path("first"), None).expect("opened").write_all(b"short").expect("written");
        assert_eq!(fs::read_to_string(path("another")).expect("the same file"), "short");
        assert_eq!(fs::metadata(&real).expect("there").mode() & 0o777, 0o640);
        assert_eq!(regular(&path("first")).expect("no error"), Some(real.clone()));
        symlink("loop", path("loop")).expect("linked");
        for (name, errno) in [("a", None), ("loop", Some(Errno::LOOP.raw_os_error()))] {
            assert_eq!(open_anew(&path(name), None).expect_err("no file").raw_os_error(), errno, "{name}");
        }
        assert_eq!(regular(&path("first/x")).expect_err("it is a file").kind(), io::ErrorKind::NotADirectory);
        assert_eq!(regular(&path("missing/x")).expect("no error"), None);
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).expect("ours");
        open_anew(&path("first"), None).expect_err("anybody could have made the link");
        assert_eq!(fs::read_to_string(&real).expect("there"), "short");
    }

    #[test]
    fn a_symbolic_link_is_not_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let link = directory.path().join("store.db");
        symlink(directory.path().join("elsewhere"), &link).expect("a link");
        assert!(create_file(&link, None).expect("no error").is_none());
        assert!(!directory.path().join("elsewhere").exists());
    }

    #[test]
    fn nothing_is_made_in_a_directory_that_another_users_link_leads_to() {
        let place = tempfile::tempdir().expect("a directory");
        let (shared, mine) = (place.path().join("shared"), place.path().join("mine"));
        [&shared, &mine].into_iter().for_each(|path| fs::create_dir(path).expect("made"));
        symlink(&mine, shared.join("link")).expect("a link");
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).expect("changed");
        create_file(&shared.join("link/file"), None).expect_err("anybody could have made the link");
        assert_eq!(fs::read_dir(&mine).expect("readable").count(), 0);
    }
}
