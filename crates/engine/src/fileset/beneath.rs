//! Nothing of a fileset leads out of the load's directory.
//!
//! A directory may have come from somebody else, its mark included. A symbolic link in place of a file or directory, or a
//! second name of a file elsewhere, would have the load write what is not below its directory. All this is looked at
//! once, while filesets are set up; the load itself then opens by name. The directory is held open all the while, and
//! nothing is looked for, marked or removed by its path: somebody may have put a link there since.

use super::Layout;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Elsewhere {
    Link,
    /// Its file has other names, which may be anywhere.
    OtherNames,
}

/// A directory that is held open: what is done in it is done there, whatever has taken its name since.
#[derive(Clone, Copy)]
pub(super) struct Held<'a> {
    pub(super) directory: BorrowedFd<'a>,
    /// Its name, for messages.
    pub(super) path: &'a Path,
}

/// What could not be done with what; completes "cannot …".
pub(super) type Failure = (&'static str, PathBuf, Errno);

impl Held<'_> {
    /// Every entry but "." and "..", and what it is.
    pub(super) fn entries(self) -> Result<impl Iterator<Item = Result<(CString, FileType), Failure>>, Failure> {
        let failed = move |errno| ("read", self.path.to_owned(), errno);
        let directory = Dir::read_from(self.directory).map_err(failed)?;
        Ok(directory.filter_map(move |entry| {
            let known = entry.and_then(|entry| {
                let name = entry.file_name();
                let kind = match entry.file_type() {
                    // Not all filesystems tell.
                    FileType::Unknown => {
                        FileType::from_raw_mode(statat(self.directory, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
                    }
                    kind => kind,
                };
                Ok((name.to_owned(), kind))
            });
            match known {
                Ok((name, _)) if matches!(name.to_bytes(), b"." | b"..") => None,
                known => Some(known.map_err(failed)),
            }
        }))
    }

    /// Removes every entry that the layout can have made, directories with what is in them.
    pub(super) fn remove_ours(self, layout: &Layout) -> Result<(), Failure> {
        for entry in self.entries()? {
            let (name, kind) = entry?;
            if !layout.is_ours(name.to_bytes(), kind.is_dir()) {
                continue;
            }
            let path = self.path_of(&name);
            let mut flags = AtFlags::empty();
            if kind.is_dir() {
                let below = self.open(&name)?;
                Held { directory: below.as_fd(), path: &path }.remove_ours(layout)?;
                flags = AtFlags::REMOVEDIR;
            }
            unlinkat(self.directory, &name, flags).map_err(|errno| ("unlink", path, errno))?;
        }
        Ok(())
    }

    /// The first name of the layout's that leads elsewhere; symbolic links before files with other names.
    pub(super) fn leads_elsewhere(self, layout: &Layout) -> Result<Option<(PathBuf, Elsewhere)>, Failure> {
        let mut shared = None;
        for entry in self.entries()? {
            let (name, kind) = entry?;
            let is_file = layout.number_of(name.to_bytes()).is_some();
            let is_directory = layout.is_ours(name.to_bytes(), true);
            let path = self.path_of(&name);
            if kind.is_symlink() && (is_file || is_directory) {
                return Ok(Some((path, Elsewhere::Link)));
            }
            if kind.is_dir() && is_directory {
                let below = self.open(&name)?;
                match (Held { directory: below.as_fd(), path: &path }).leads_elsewhere(layout)? {
                    Some((path, Elsewhere::OtherNames)) => shared = shared.or(Some(path)),
                    found @ Some(_) => return Ok(found),
                    None => {}
                }
            } else if kind.is_file() && is_file {
                let stat = statat(self.directory, &name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_err(|errno| ("stat", path.clone(), errno))?;
                if stat.st_nlink > 1 {
                    shared = shared.or(Some(path));
                }
            }
        }
        Ok(shared.map(|path| (path, Elsewhere::OtherNames)))
    }

    fn open(self, name: &CStr) -> Result<OwnedFd, Failure> {
        openat(self.directory, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
            .map_err(|errno| ("open", self.path_of(name), errno))
    }

    fn path_of(self, name: &CStr) -> PathBuf {
        self.path.join(OsStr::from_bytes(name.to_bytes()))
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a directory below another, making what is missing and following no link on the way.
pub(super) fn open_below(base: &Path, relative: &str) -> Result<OwnedFd, Errno> {
    let mut directory = openat(CWD, base, DIRECTORY, Mode::empty())?;
    for part in relative.split('/').filter(|part| !part.is_empty()) {
        match mkdirat(&directory, part, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        directory = openat(&directory, part, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(directory)
}

/// Opens a directory below another that is there, following no link on the way.
pub(super) fn open_existing(base: &Path, relative: &str) -> Result<OwnedFd, Errno> {
    let mut directory = openat(CWD, base, DIRECTORY, Mode::empty())?;
    for part in relative.split('/').filter(|part| !part.is_empty()) {
        directory = openat(&directory, part, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests_support::fileset;

    /// Whoever owns a directory can put a link in its place while root is at work in it.
    #[test]
    fn what_takes_the_place_of_a_held_directory_is_left_alone() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let [path, moved, victim] = ["x", "moved", "victim"].map(|name| place.path().join(name));
        for directory in [&path, &victim] {
            std::fs::create_dir_all(directory.join("dir0")).expect("writable");
            for name in ["file0", "dir0/file1"] {
                std::fs::write(directory.join(name), b"").expect("writable");
            }
        }
        let opened = open_below(&path, "").expect("it is there");
        std::fs::rename(&path, &moved).expect("renamed");
        std::os::unix::fs::symlink("victim", &path).expect("linked");
        let layout = Layout::new(&fileset(2));
        let held = Held { directory: opened.as_fd(), path: &path };
        std::os::unix::fs::symlink("../victim/dir0", moved.join("dir1")).expect("linked");
        let found = held.leads_elsewhere(&layout).expect("readable").expect("a link is in it");
        assert_eq!(found, (path.join("dir1"), Elsewhere::Link));
        std::fs::remove_file(moved.join("dir1")).expect("ours");
        held.remove_ours(&layout).expect("removed");
        assert_eq!(std::fs::read_dir(&moved).expect("it is there").count(), 0);
        assert!(victim.join("file0").exists() && victim.join("dir0/file1").exists());
    }
}
