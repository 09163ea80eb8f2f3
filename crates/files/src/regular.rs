//! Opening regular files for writing, and nothing else.

use crate::{Owner, create_file, directory_of, tree::is_own};
use rustix::fs::{CWD, Mode, OFlags, open, openat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, FileType, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// Longest chain of links that is followed: the kernel's own limit.
const LINKS: usize = 40;

/// The user that the kernel shows as owner if this user namespace has no number for the real one (user_namespaces(7)).
const OVERFLOW_USER: u32 = 65534;

/// The path of a regular file with all links resolved; `None` if there is no such file yet.
///
/// Nothing is opened, because opening a device can have effects, and closing a descriptor of the file would release this
/// process's locks on it (fcntl_locking(2)).
///
/// # Errors
/// If it is no regular file, or if a link leads there that another user could have made. Those of lstat(2).
pub fn regular(path: &Path) -> io::Result<Option<PathBuf>> {
    let looked = resolve(path).and_then(|there| {
        refuse_irregular(fs::symlink_metadata(&there)?.file_type())?;
        Ok(there)
    });
    match looked {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The same; makes an empty file where there is none, owned by `owner` if given.
///
/// # Errors
/// As [`regular`], and those of [`create_file`].
pub fn regular_or_new(path: &Path, owner: Option<Owner>) -> io::Result<PathBuf> {
    let there = resolve(path)?;
    create_file(&there, owner)?;
    refuse_irregular(fs::symlink_metadata(&there)?.file_type())?;
    Ok(there)
}

/// Opens a regular file for reading and writing, or makes it for its owner alone. `append` writes to its end only. It is
/// never a link.
///
/// # Errors
/// As [`regular`], and those of open(2).
pub fn open_or_create(path: &Path, append: bool) -> io::Result<File> {
    let how = OFlags::RDWR | OFlags::CLOEXEC | if append { OFlags::APPEND } else { OFlags::empty() };
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let directory = resolve(directory_of(path))?;
    let directory = open(&directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
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

/// Resolves the links of a path. A link that another user could have made is an error. The last part need not exist.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let mut rest: VecDeque<OsString> = parts(&absolute);
    let (mut there, mut links) = (PathBuf::from("/"), 0);
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            there.pop();
            continue;
        }
        let next = there.join(&part);
        let found = match fs::symlink_metadata(&next) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound && rest.is_empty() => return Ok(next),
            Err(error) => return Err(error),
        };
        if !found.is_symlink() {
            there = next;
            continue;
        }
        links += 1;
        if links > LINKS {
            return Err(Errno::LOOP.into());
        }
        if is_others(&fs::metadata(&there)?, &found) {
            let words = format!("{} is a link that another user could have put there", next.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, words));
        }
        let target = fs::read_link(&next)?;
        if target.is_absolute() {
            there = PathBuf::from("/");
        }
        for part in parts(&target).into_iter().rev() {
            rest.push_front(part);
        }
    }
    Ok(there)
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let part = |part| match part {
        Component::Normal(part) => Some(part.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(part).collect()
}

/// Whether another user could have put a link in its directory, or could exchange it.
fn is_others(directory: &Metadata, link: &Metadata) -> bool {
    let user = rustix::process::geteuid().as_raw();
    // In a user namespace, what belongs to users outside, root among them, is shown as the overflow user's.
    let outside =
        fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| map.split_whitespace().ne(["0", "0", "4294967295"]));
    let is_trusted = |owner: u32| {
        owner == 0
            || owner == user
            || Owner::caller().is_some_and(|caller| caller.user == owner)
            || (outside && owner == OVERFLOW_USER)
    };
    // A user's own group usually has no other members.
    let own_group = directory.uid() == user && directory.gid() == rustix::process::getegid().as_raw();
    let others = if own_group { 0o002 } else { 0o022 };
    let is_open = directory.mode() & others != 0 && directory.mode() & 0o1000 == 0;
    is_open || !is_trusted(directory.uid()) || !is_trusted(link.uid())
}
