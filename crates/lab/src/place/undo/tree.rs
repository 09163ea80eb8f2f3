//! Removing a directory with all that is in it, and nothing that is not.

use crate::place::device::{FileId, file_id};
use rustix::{
    fs::{AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags, openat, openat2, unlinkat},
    io::Errno,
};
use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

/// Removes a directory that a load worked in.
///
/// The argument why nothing else goes: the directory is opened and recognised by its number, and everything is removed
/// relative to that descriptor. To every directory below the kernel itself is told to follow no symbolic link, to leave
/// the directory by no name, and to cross into no mount (`RESOLVE_NO_XDEV`), a bind mount included. So what is removed
/// is in the tree that was made, whatever is renamed, linked or mounted meanwhile.
///
/// # Errors
/// EXDEV where something is mounted in it; what is left then stays.
pub(crate) fn remove(path: &Path, id: FileId) -> io::Result<()> {
    let top = File::from(openat(CWD, path, DIRECTORY, Mode::empty())?);
    if file_id(&top.metadata()?).inode != id.inode {
        return Err(io::Error::other("another directory has taken its place"));
    }
    empty(top.as_fd())?;
    std::fs::remove_dir(path)
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn empty(directory: BorrowedFd<'_>) -> io::Result<()> {
    loop {
        // A directory may hide names from a reader that removes them as it goes: it is read until it is empty.
        let mut found = false;
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            found = true;
            match unlinkat(directory, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                // EPERM is what POSIX has for a directory, and what an immutable file gives.
                Err(Errno::ISDIR | Errno::PERM) => {
                    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
                    let below = match openat2(directory, name, DIRECTORY, Mode::empty(), resolve) {
                        Ok(below) => below,
                        Err(Errno::XDEV) => return Err(io::Error::other("something is mounted in it")),
                        Err(Errno::NOTDIR) => return Err(Errno::PERM.into()),
                        Err(errno) => return Err(errno.into()),
                    };
                    empty(below.as_fd())?;
                    drop(below);
                    unlinkat(directory, name, AtFlags::REMOVEDIR)?;
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        if !found {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink, process::Command};

    fn id(path: &Path) -> FileId {
        file_id(&fs::symlink_metadata(path).expect("there"))
    }

    #[test]
    fn all_of_a_tree_goes_and_nothing_it_points_to() {
        let place = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let (tree, other) = (place.path().join("tree"), place.path().join("other"));
        fs::create_dir_all(tree.join("a/b/c")).expect("made");
        fs::create_dir(&other).expect("made");
        fs::write(other.join("precious"), "data").expect("written");
        for number in 0..3000 {
            fs::write(tree.join(format!("a/b/{number}")), "").expect("written");
        }
        symlink(&other, tree.join("link")).expect("linked");
        symlink(other.join("precious"), tree.join("a/link")).expect("linked");
        assert!(remove(&tree, id(&other)).is_err(), "not the directory that was made");
        assert!(tree.join("a/b/c").exists());
        remove(&tree, id(&tree)).expect("removed");
        assert!(!tree.exists());
        assert_eq!(fs::read(other.join("precious")).expect("still there"), b"data");
        symlink(&other, &tree).expect("linked");
        assert!(remove(&tree, id(&other)).is_err(), "a link in the directory's place");
        assert!(other.join("precious").exists());
    }

    #[test]
    fn a_mount_in_a_tree_is_not_entered() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: mounting needs root");
            return;
        }
        let place = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let (tree, other) = (place.path().join("tree"), place.path().join("other"));
        fs::create_dir_all(tree.join("a/mounted")).expect("made");
        fs::create_dir(&other).expect("made");
        fs::write(other.join("precious"), "data").expect("written");
        // A bind mount of the same filesystem: its device number gives nothing away.
        let bind = Command::new("mount").arg("--bind").args([&other, &tree.join("a/mounted")]).status();
        assert!(bind.expect("mount starts").success());
        let refused = remove(&tree, id(&tree)).map_err(|error| error.to_string());
        let precious = other.join("precious").exists();
        assert!(Command::new("umount").arg(tree.join("a/mounted")).status().expect("umount starts").success());
        assert_eq!(refused, Err("something is mounted in it".to_owned()));
        assert!(precious);
        remove(&tree, id(&tree)).expect("removed");
        assert!(other.join("precious").exists());
    }
}
