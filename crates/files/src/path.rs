//! Following a path, past no link that another user could have made.

use crate::{Trust, trust::place_of};
use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

pub(crate) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Longest chain of links that is followed: the kernel's own limit.
const LINKS: usize = 40;

pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path of what is there, without links. A link that another user could have made is an error.
///
/// # Errors
/// Those of open(2), and of such a link.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    let (there, found) = walk(path)?;
    found.map(|_| there).ok_or_else(|| Errno::NOENT.into())
}

/// The same, if nothing is there yet, too: where it would be made.
///
/// # Errors
/// As [`resolve`], and if there is no directory for it.
pub fn destination(path: &Path) -> io::Result<PathBuf> {
    Ok(walk(path)?.0)
}

/// The number under which this process has a path's file open, if the path leads to one of these (`/dev/stderr`, `/dev/fd/3`).
pub fn descriptor(path: &Path) -> io::Result<Option<RawFd>> {
    let Ok(own) = std::fs::canonicalize("/proc/self/fd") else { return Ok(None) };
    let (there, _) = walk_until(path, Some(&own))?;
    let number = there.strip_prefix(&own).ok().and_then(Path::to_str);
    Ok(number.and_then(|number| number.parse().ok()))
}

/// Opens the directory of a path to make files in, not to read. A link that leads there must be one that nobody else could have made.
pub(crate) fn open_directory_of(path: &Path) -> io::Result<File> {
    let found = walk(directory_of(path))?.1.ok_or(Errno::NOENT)?;
    if found.metadata()?.is_dir() { Ok(found) } else { Err(Errno::NOTDIR.into()) }
}

/// Resolves the links of a path, and opens what is there with `O_PATH`. A link that another user could have made is an error. The
/// last part need not exist.
///
/// Each part is looked up in the directory that was opened before it. So a directory that is exchanged for a link meanwhile does not
/// lead elsewhere.
pub(crate) fn walk(path: &Path) -> io::Result<(PathBuf, Option<File>)> {
    walk_until(path, None)
}

/// The same, but a link in this directory that is the last part is not followed.
fn walk_until(path: &Path, end: Option<&Path>) -> io::Result<(PathBuf, Option<File>)> {
    let absolute = std::path::absolute(path)?;
    let mut rest: VecDeque<OsString> = parts(&absolute);
    let (mut there, mut links) = (PathBuf::from("/"), 0);
    let mut opened = vec![look(CWD, &there)?];
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            if there.pop() {
                opened.pop();
            }
            continue;
        }
        let Some(directory) = opened.last() else { break };
        let next = there.join(&part);
        let found = match look(directory, Path::new(&part)) {
            Err(Errno::NOENT) if rest.is_empty() => return Ok((next, None)),
            found => found?,
        };
        let facts = found.metadata()?;
        if !facts.is_symlink() || rest.is_empty() && end == Some(&*there) {
            there = next;
            opened.push(found);
            continue;
        }
        links += 1;
        if links > LINKS {
            return Err(Errno::LOOP.into());
        }
        if is_others(directory, &facts)? {
            let words = format!("{} is a link that another user could have put there", next.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, words));
        }
        let target = PathBuf::from(OsString::from_vec(readlinkat(&found, "", Vec::new())?.into_bytes()));
        if target.is_absolute() {
            there = PathBuf::from("/");
            opened.truncate(1);
        }
        for part in parts(&target).into_iter().rev() {
            rest.push_front(part);
        }
    }
    Ok((there, opened.pop()))
}

/// Opens a part of a path for nothing but its facts, and to look further in it.
fn look(directory: impl AsFd, part: &Path) -> Result<File, Errno> {
    let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Without DIRECTORY, the kernel does not mount what an automounter has for the place.
    match openat(&directory, part, how | OFlags::DIRECTORY, Mode::empty()) {
        Err(Errno::NOTDIR) => Ok(openat(&directory, part, how, Mode::empty())?.into()),
        opened => Ok(opened?.into()),
    }
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
fn is_others(directory: &File, link: &Metadata) -> io::Result<bool> {
    let trust = Trust::here();
    Ok(trust.judge(&place_of(directory), &directory.metadata()?).is_some() || !trust.includes(link.uid()))
}
