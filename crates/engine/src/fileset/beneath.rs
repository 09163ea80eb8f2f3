//! Nothing of a fileset leads out of the load's directory.
//!
//! A directory may have come from somebody else, its mark included. A symbolic link in place of a file or directory, or a
//! second name of a file elsewhere, would have the load write what is not below its directory. All this is looked at
//! once, while filesets are set up; the load itself then opens by name.

use super::Layout;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;
use std::io::Result;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How a name leads elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// It is a symbolic link.
    Link,
    /// Its file has other names, which may be anywhere.
    OtherNames,
}

/// Opens a directory below another, making what is missing and following no link on the way.
pub(super) fn open_below(base: &Path, relative: &str) -> std::result::Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut directory = openat(CWD, base, flags, Mode::empty())?;
    for part in relative.split('/').filter(|part| !part.is_empty()) {
        match mkdirat(&directory, part, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        directory = openat(&directory, part, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(directory)
}

/// The first name of the layout's that leads elsewhere; symbolic links before files with other names.
pub(super) fn leads_elsewhere(directory: &Path, layout: &Layout) -> Result<Option<(PathBuf, Elsewhere)>> {
    let mut shared = None;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let is_file = layout.number_of(name.as_bytes()).is_some();
        let is_directory = layout.is_ours(name.as_bytes(), true);
        if kind.is_symlink() && (is_file || is_directory) {
            return Ok(Some((entry.path(), Elsewhere::Link)));
        }
        if kind.is_dir() && is_directory {
            match leads_elsewhere(&entry.path(), layout)? {
                Some((path, Elsewhere::OtherNames)) => shared = shared.or(Some(path)),
                found @ Some(_) => return Ok(found),
                None => {}
            }
        } else if kind.is_file() && is_file && entry.metadata()?.nlink() > 1 {
            shared = shared.or(Some(entry.path()));
        }
    }
    Ok(shared.map(|path| (path, Elsewhere::OtherNames)))
}
