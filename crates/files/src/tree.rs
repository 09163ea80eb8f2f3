//! Directories of fstone's own, and removing them with their contents and nothing else.
//!
//! Nothing is removed because of its name alone. This is the only place that empties directories.

use crate::path::{DIRECTORY, directory_of};
use crate::temporary;
use crate::trust::{Trust, is_own};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, ResolveFlags, chmod, fchmod, flock, mkdirat, openat,
    openat2, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Identifies a file or directory, to distinguish it from another that has taken its name. Inode numbers are reused, so the time
/// at which it was made counts as well, where the filesystem records that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Number of its filesystem's device: (major, minor). A reboot or another mount may change it.
    pub device: (u32, u32),
    pub inode: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_unix_ns: Option<u64>,
}

impl FileIdentity {
    pub fn of(facts: &Metadata) -> Self {
        let made = facts.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        Self {
            device: (rustix::fs::major(facts.dev()), rustix::fs::minor(facts.dev())),
            inode: facts.ino(),
            made_unix_ns: made.and_then(|made| u64::try_from(made.as_nanos()).ok()),
        }
    }

    pub fn is(self, facts: &Metadata) -> bool {
        let found = Self::of(facts);
        self.inode == found.inode
            && match (self.made_unix_ns, found.made_unix_ns) {
                (Some(made), Some(found)) => made == found,
                _ => self.device == found.device,
            }
    }
}

/// Removes a directory that was made before.
///
/// The argument why nothing else goes: the directory is opened and recognised by its identity, and everything is removed
/// relative to that descriptor. Every directory below is opened with flags by which the kernel follows no symbolic link, does
/// not leave the directory, and enters no mount (`RESOLVE_NO_XDEV`), not even a bind mount. So what is removed is in the tree
/// that was made, whatever is renamed, linked or mounted meanwhile.
///
/// # Errors
/// Where something is mounted on it, or in it; what is left then stays.
pub fn remove_tree(path: &Path, identity: FileIdentity) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = openat(CWD, directory_of(path), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let name_in_parent = CString::new(name.as_bytes())?;
    let found = File::from(open_on_mount(parent.as_fd(), &name_in_parent, DIRECTORY | OFlags::PATH).map_err(refused)?);
    if !identity.is(&found.metadata()?) {
        return Err(taken());
    }
    let top = readable(found.as_fd())?;
    empty(top.as_fd(), top.as_fd(), 0)?;
    drop(top);
    remove_emptied(parent.as_fd(), name, identity)
}

/// Removes a tree in a directory that is held open, in the same way. A missing one counts as removed.
///
/// # Errors
/// As [`remove_tree`].
pub fn remove_tree_in(directory: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let name = CString::new(name)?;
    let below = match open_below(directory, &name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        below => below?,
    };
    empty(below.as_fd(), below.as_fd(), 0)?;
    Ok(unlinkat(directory, &name, AtFlags::REMOVEDIR)?)
}

/// The first file or directory below one that is held open which is none of those that `is_made` accepts, by its path there and whether it
/// is a directory. Links and special files are never accepted.
///
/// # Errors
/// Where something is mounted in it; those of reading it.
pub fn first_other(directory: BorrowedFd<'_>, is_made: &dyn Fn(&Path, bool) -> bool) -> io::Result<Option<PathBuf>> {
    other_below(directory, Path::new(""), 0, is_made)
}

fn other_below(
    directory: BorrowedFd<'_>,
    above: &Path,
    depth: u32,
    is_made: &dyn Fn(&Path, bool) -> bool,
) -> io::Result<Option<PathBuf>> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let path = above.join(OsStr::from_bytes(name.to_bytes()));
        let kind = match entry.file_type() {
            FileType::Unknown => FileType::from_raw_mode(statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode),
            known => known,
        };
        let is_directory = kind == FileType::Directory;
        if !(is_directory || kind == FileType::RegularFile) || !is_made(&path, is_directory) || depth > MOST_MADE {
            return Ok(Some(path));
        }
        if is_directory {
            let below = open_below(directory, name)?;
            let other = other_below(below.as_fd(), &path, depth + 1, is_made)?;
            if other.is_some() {
                return Ok(other);
            }
        }
    }
    Ok(None)
}

/// Removes a directory that is empty by now. The kernel has no call to remove what is open, so it is compared once more.
fn remove_emptied(parent: BorrowedFd<'_>, name: &OsStr, identity: FileIdentity) -> io::Result<()> {
    let now = openat(parent, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if !identity.is(&File::from(now).metadata()?) {
        return Err(taken());
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

fn taken() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "another directory has taken its place")
}

/// Makes a directory for its owner alone, which must not be there, and identifies it. It is empty at that moment: nothing goes with it later
/// that another user may have put in its place meanwhile.
///
/// # Errors
/// Those of mkdir(2), and if another directory has taken its place.
pub fn make_empty_directory(path: &Path) -> io::Result<FileIdentity> {
    Ok(FileIdentity::of(&open_new_directory(path)?.metadata()?))
}

/// The same, opened.
pub fn open_new_directory(path: &Path) -> io::Result<File> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = openat(CWD, directory_of(path), DIRECTORY - OFlags::NOFOLLOW, Mode::empty())?;
    make_in(parent.as_fd(), name)
}

fn make_in(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
    mkdirat(parent, name, Mode::RWXU)?;
    open_empty(parent, name)
}

fn open_empty(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
    let made = openat(parent, name, DIRECTORY, Mode::empty())?;
    for entry in Dir::read_from(&made)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Err(taken());
        }
    }
    Ok(made.into())
}

/// Removes a directory that is identified by its path alone, because it is in a directory of fstone's own. It must belong to this
/// user. A missing one counts as removed.
///
/// # Errors
/// As [`remove_tree`]; if it is no directory, or belongs to somebody else.
pub fn remove_own_tree(path: &Path) -> io::Result<()> {
    let top = match openat(CWD, path, DIRECTORY, Mode::empty()) {
        Ok(top) => File::from(top),
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    };
    let facts = top.metadata()?;
    if !is_own(&facts) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    remove_tree(path, FileIdentity::of(&facts))
}

/// A directory for its owner alone, with a name that cannot be guessed and that contains its inode number. It is removed when this
/// value is dropped. Until then it is locked; one that is not locked was left by a process that was killed.
#[derive(Debug)]
pub struct OwnDirectory {
    path: PathBuf,
    /// None if it stays.
    identity: Option<FileIdentity>,
    /// Holds the lock.
    handle: File,
}

impl OwnDirectory {
    /// Makes one in a directory that is there. Its name begins with `prefix`.
    ///
    /// # Errors
    /// Those of mkdir(2) and rename(2).
    pub fn make(above: &Path, prefix: &str) -> io::Result<Self> {
        let parent = openat(CWD, above, DIRECTORY - OFlags::NOFOLLOW, Mode::empty())?;
        let word = temporary::unguessable()?;
        let first = format!("{prefix}{word}");
        let handle = make_in(parent.as_fd(), first.as_ref())?;
        let facts = handle.metadata()?;
        if !is_own(&facts) {
            return Err(taken());
        }
        // Before it has the name by which it can be removed. Where there are no locks, nothing is removed.
        let _ = flock(&handle, FlockOperation::NonBlockingLockExclusive);
        let name = own_name(prefix, &word, facts.ino());
        renameat_with(&parent, &first, &parent, &name, rustix::fs::RenameFlags::empty())?;
        Ok(Self { path: above.join(name), identity: Some(FileIdentity::of(&facts)), handle })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// It itself, whatever its path leads to by now.
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// It stays, and is no longer locked.
    pub fn keep(mut self) {
        self.identity = None;
    }

    /// The same with another beginning of its name, by which [`Self::left`] tells it from what a kill left. Returns its path.
    ///
    /// # Errors
    /// Those of rename(2). It stays then as well, with the name that it had.
    pub fn keep_as(mut self, prefix: &str) -> io::Result<PathBuf> {
        self.identity = None;
        let inode = self.handle.metadata()?.ino();
        let name = self.path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let word =
            name.strip_suffix(format!("-{inode}").as_str()).and_then(|name| name.get(name.len().checked_sub(32)?..));
        let kept = self.path.with_file_name(own_name(prefix, word.ok_or(io::ErrorKind::InvalidInput)?, inode));
        fs::rename(&self.path, &kept)?;
        Ok(kept)
    }

    /// Removes those that killed processes left in a directory that machines do not share. What cannot be removed stays.
    pub fn remove_left(above: &Path, prefix: &str) {
        drop(Self::left(above, prefix));
    }

    /// Those that are not locked: what killed processes left in a directory that machines do not share, and what was kept. None
    /// where another user can rename: that user could give any directory of this user's such a name. In a sticky directory only
    /// its owner can.
    pub fn left(above: &Path, prefix: &str) -> Vec<Self> {
        let mut left = Vec::new();
        let Ok(real) = fs::canonicalize(above) else { return left };
        if !matches!(Trust::here().exchangeable(&real), Ok(None)) {
            return left;
        }
        for entry in fs::read_dir(&real).into_iter().flatten().flatten() {
            let (path, name) = (above.join(entry.file_name()), entry.file_name());
            let Ok(handle) = openat(CWD, entry.path(), DIRECTORY, Mode::empty()).map(File::from) else { continue };
            let is_left = handle.metadata().is_ok_and(|facts| {
                let word = name.to_str().and_then(|name| name.strip_prefix(prefix)?.get(..32));
                // Made for its owner alone. What is for another user in it may be entered, but not listed.
                let is_private = facts.mode() & 0o066 == 0;
                is_own(&facts) && is_private && word.is_some_and(|word| *name == *own_name(prefix, word, facts.ino()))
            });
            if is_left
                && flock(&handle, FlockOperation::NonBlockingLockExclusive).is_ok()
                && let Ok(facts) = handle.metadata()
            {
                left.push(Self { path, identity: Some(FileIdentity::of(&facts)), handle });
            }
        }
        left
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        // An error cannot be reported here.
        let _ = self.identity.map(|identity| remove_tree(&self.path, identity));
    }
}

fn own_name(prefix: &str, word: &str, inode: u64) -> String {
    format!("{prefix}{word}-{inode}")
}

/// As openat2 with the flags below: a name of one part leads beneath its directory, and the mounts are compared.
fn open_on_same_mount(directory: BorrowedFd<'_>, name: &CStr, how: OFlags) -> Result<OwnedFd, Errno> {
    let mount = |open: BorrowedFd<'_>| {
        let facts = fs::read_to_string(format!("/proc/self/fdinfo/{}", open.as_raw_fd())).map_err(|_| Errno::NOSYS)?;
        facts.lines().find(|line| line.starts_with("mnt_id:")).map(str::to_owned).ok_or(Errno::NOSYS)
    };
    let below = openat(directory, name, how, Mode::empty())?;
    if mount(directory)? == mount(below.as_fd())? { Ok(below) } else { Err(Errno::XDEV) }
}

/// Opens a directory to read it. Its owner takes the right to, if it has none.
fn readable(found: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let place = format!("/proc/self/fd/{}", found.as_raw_fd());
    let open = || openat(CWD, &place, DIRECTORY - OFlags::NOFOLLOW, Mode::empty());
    match open() {
        Err(Errno::ACCESS) => chmod(&place, Mode::RWXU).and_then(|()| open()),
        opened => opened,
    }
}

/// Opens what is in a directory by its name there: no link, and nothing that is mounted.
fn open_on_mount(directory: BorrowedFd<'_>, name: &CStr, how: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    match openat2(directory, name, how, Mode::empty(), resolve) {
        // Before Linux 5.6, or refused by a container's filter.
        Err(Errno::NOSYS | Errno::PERM) => open_on_same_mount(directory, name, how),
        opened => opened,
    }
}

fn open_below(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let opened = match open_on_mount(directory, name, DIRECTORY) {
        Err(Errno::ACCESS) => {
            open_on_mount(directory, name, DIRECTORY | OFlags::PATH).and_then(|found| readable(found.as_fd()))
        }
        opened => opened,
    };
    opened.map_err(|errno| if errno == Errno::NOTDIR { Errno::PERM.into() } else { refused(errno) })
}

fn refused(errno: Errno) -> io::Error {
    match errno {
        Errno::XDEV => io::Error::other("something is mounted in it"),
        errno => errno.into(),
    }
}

/// What is deeper is moved to the top first: each directory on the way costs a descriptor and room on the stack.
const DEPTH: u32 = 64;
/// Nothing that fstone makes is deeper: each costs two descriptors while it is looked through.
const MOST_MADE: u32 = 200;

fn empty(directory: BorrowedFd<'_>, top: BorrowedFd<'_>, depth: u32) -> io::Result<()> {
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
            let unlink = || unlinkat(directory, name, AtFlags::empty());
            let gone = match unlink() {
                // An owner who may not write it, as programs leave theirs.
                Err(Errno::ACCESS) => fchmod(directory, Mode::RWXU).and_then(|()| unlink()),
                gone => gone,
            };
            match gone {
                Ok(()) | Err(Errno::NOENT) => {}
                // EPERM is what POSIX has for a directory, and what an immutable file gives.
                Err(Errno::ISDIR | Errno::PERM) => {
                    let below = open_below(directory, name)?;
                    if depth < DEPTH {
                        empty(below.as_fd(), top, depth + 1)?;
                        drop(below);
                        unlinkat(directory, name, AtFlags::REMOVEDIR)?;
                    } else {
                        // Its owner needs the right to write it for that, too.
                        let _ = fchmod(&below, Mode::RWXU);
                        renameat(directory, name, top, temporary::unguessable()?.as_str())?;
                    }
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
    use std::os::unix::fs::symlink;
    use std::process::Command;

    fn id(path: &Path) -> FileIdentity {
        FileIdentity::of(&fs::symlink_metadata(path).expect("there"))
    }

    #[test]
    fn all_of_a_tree_goes_and_nothing_it_points_to() {
        let place = tempfile::tempdir().expect("temporary directory");
        let (tree, other) = (place.path().join("tree"), place.path().join("other"));
        fs::create_dir_all(tree.join("a/b/c")).expect("made");
        fs::create_dir(&other).expect("made");
        fs::write(other.join("precious"), "data").expect("written");
        for number in 0..3000 {
            fs::write(tree.join(format!("a/b/{number}")), "").expect("written");
        }
        symlink(&other, tree.join("link")).expect("linked");
        symlink(other.join("precious"), tree.join("a/link")).expect("linked");
        assert!(remove_tree(&tree, id(&other)).is_err(), "not the directory that was made");
        assert!(tree.join("a/b/c").exists());
        remove_tree(&tree, id(&tree)).expect("removed");
        assert!(!tree.exists());
        assert_eq!(fs::read(other.join("precious")).expect("still there"), b"data");
        symlink(&other, &tree).expect("linked");
        assert!(remove_tree(&tree, id(&other)).is_err(), "a link in the directory's place");
        assert!(other.join("precious").exists());
    }

    /// Deeper than the kernel's longest path, than descriptors and than a thread's stack reach.
    #[test]
    fn however_deep_a_tree_is_it_goes() {
        let place = tempfile::tempdir().expect("temporary directory");
        let tree = place.path().join("tree");
        fs::create_dir(&tree).expect("made");
        let mut deepest = OwnedFd::from(File::open(&tree).expect("there"));
        for _ in 0..4_000 {
            mkdirat(&deepest, "d", Mode::RWXU).expect("made");
            deepest = openat(&deepest, "d", DIRECTORY, Mode::empty()).expect("there");
        }
        symlink(place.path(), format!("/proc/self/fd/{}/link", deepest.as_raw_fd())).expect("linked");
        remove_tree(&tree, id(&tree)).expect("removed");
        assert!(!tree.exists());
    }

    #[test]
    fn a_mount_in_a_tree_is_not_entered() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: mounting needs root");
            return;
        }
        let place = tempfile::tempdir().expect("temporary directory");
        let (tree, other) = (place.path().join("tree"), place.path().join("other"));
        fs::create_dir_all(tree.join("a/mounted")).expect("made");
        fs::create_dir(&other).expect("made");
        fs::write(other.join("precious"), "data").expect("written");
        // A bind mount of the same filesystem: its device number gives nothing away.
        let bind = Command::new("mount").arg("--bind").args([&other, &tree.join("a/mounted")]).status();
        assert!(bind.expect("mount starts").success());
        let refused = remove_tree(&tree, id(&tree)).map_err(|error| error.to_string());
        let above = File::open(tree.join("a")).expect("there");
        let without_openat2 = open_on_same_mount(above.as_fd(), c"mounted", DIRECTORY).map(drop);
        let top = tree.join("a/mounted");
        let on_top = remove_tree(&top, id(&other)).map_err(|error| error.to_string());
        let in_held = remove_tree_in(above.as_fd(), "mounted").map_err(|error| error.to_string());
        let precious = other.join("precious").exists();
        assert!(Command::new("umount").arg(tree.join("a/mounted")).status().expect("umount starts").success());
        for refused in [refused, on_top, in_held] {
            assert_eq!(refused, Err("something is mounted in it".to_owned()));
        }
        assert_eq!(without_openat2, Err(Errno::XDEV));
        open_on_same_mount(above.as_fd(), c"mounted", DIRECTORY).expect("nothing is mounted there now");
        assert!(precious);
        remove_tree(&tree, id(&tree)).expect("removed");
        assert!(other.join("precious").exists());
    }

    /// In a directory that others may write to, they can exchange names between any two calls.
    #[test]
    fn what_takes_a_directorys_place_meanwhile_stays() {
        let place = tempfile::tempdir().expect("temporary directory");
        let (path, aside) = (place.path().join("made"), place.path().join("aside"));
        let parent = File::open(place.path()).expect("there");
        let identity = make_empty_directory(&path).expect("made");
        make_empty_directory(&path).expect_err("it is there");
        fs::rename(&path, &aside).expect("exchanged");
        fs::create_dir(&path).expect("another");
        remove_emptied(parent.as_fd(), OsStr::new("made"), identity).expect_err("another directory has its name");
        assert!(path.exists());
        fs::write(path.join("precious"), "data").expect("written");
        open_empty(parent.as_fd(), OsStr::new("made")).expect_err("it is not the one that was made");
        remove_tree(&path, identity).expect_err("another directory has its name");
        assert!(path.join("precious").exists());
        remove_tree(&aside, identity).expect("it is the one that was made");
        symlink(place.path(), &aside).expect("linked");
        open_empty(parent.as_fd(), OsStr::new("aside")).expect_err("a link");
    }

    #[test]
    fn a_number_that_was_given_again_is_another_directory() {
        let place = tempfile::tempdir().expect("temporary directory");
        let tree = place.path().join("tree");
        fs::create_dir(&tree).expect("made");
        let before = id(&tree);
        if before.made_unix_ns.is_none() {
            return eprintln!("skipped: this filesystem does not keep when a directory was made");
        }
        fs::remove_dir(&tree).expect("empty");
        // ext4 gives the same number again.
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::create_dir(&tree).expect("made");
        fs::write(tree.join("precious"), "data").expect("written");
        let error = remove_tree(&tree, FileIdentity { inode: id(&tree).inode, ..before }).expect_err("another");
        assert!(error.to_string().contains("another directory"), "{error}");
        assert!(tree.join("precious").exists());
        // Where the moment is not known, the device has to be the same.
        let (now, elsewhere) = (FileIdentity { made_unix_ns: None, ..id(&tree) }, (1, 1));
        assert!(!FileIdentity { device: elsewhere, ..now }.is(&fs::metadata(&tree).expect("there")));
        remove_tree(&tree, now).expect("the same");
    }

    #[test]
    fn an_own_directory_is_private_and_what_a_kill_left_of_one_is_known() {
        let place = tempfile::tempdir().expect("temporary directory");
        let (living, killed) = (OwnDirectory::make(place.path(), "x-"), OwnDirectory::make(place.path(), "x-"));
        let (living, killed) = (living.expect("made"), killed.expect("made"));
        assert_eq!(fs::metadata(living.path()).expect("there").mode() & 0o7777, 0o700);
        let left = killed.path().to_owned();
        fs::write(left.join("file"), "").expect("written");
        // As a kill leaves it: it is there and not locked.
        flock(&killed.handle, FlockOperation::Unlock).expect("unlocked");
        let kept = ["x-", "x-0", &format!("x-{}-1", "0".repeat(32)), "y-0"].map(|name| place.path().join(name));
        kept.iter().for_each(|path| fs::create_dir(path).expect("made"));
        OwnDirectory::remove_left(place.path(), "x-");
        assert!(!left.exists() && living.path().exists());
        assert!(kept.iter().all(|path| path.exists()));
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
        let renamed = OwnDirectory::make(place.path(), "x-").expect("made").keep_as("z-").expect("renamed");
        OwnDirectory::remove_left(place.path(), "x-");
        assert!(renamed.is_dir() && renamed.file_name().is_some_and(|name| name.to_string_lossy().starts_with("z-")));
        OwnDirectory::remove_left(place.path(), "z-");
        assert!(!renamed.exists(), "it is not locked any more");
        symlink(&kept[0], &path).expect("linked");
        remove_own_tree(&path).expect_err("a link is not followed");
        remove_own_tree(&kept[1]).expect("this user's");
        remove_own_tree(&kept[1]).expect("it is gone");
        assert!(kept[0].exists() && !kept[1].exists());
    }
    /// Who may rename in the directory above can give any directory of this user's the name of one that a kill left.
    #[test]
    fn what_another_user_could_have_named_is_not_taken_for_left() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give a directory away");
            return;
        }
        let place = tempfile::tempdir().expect("temporary directory");
        let above = place.path().join("theirs");
        fs::create_dir(&above).expect("made");
        let victim = above.join("victim");
        fs::create_dir(&victim).expect("made");
        fs::write(victim.join("precious"), "data").expect("written");
        let named = above.join(own_name("x-", &"0".repeat(32), id(&victim).inode));
        fs::rename(&victim, &named).expect("renamed");
        let mode = |path: &Path, mode: u32| chmod(path, Mode::from_raw_mode(mode)).expect("ours");
        let owner = |user: u32| std::os::unix::fs::chown(&above, Some(user), None).expect("root may");
        let link = place.path().join("link");
        symlink(&above, &link).expect("linked");
        mode(&named, 0o700);
        owner(65534);
        for directory in [&above, &link] {
            OwnDirectory::remove_left(directory, "x-");
            assert!(named.join("precious").exists(), "its owner can rename it");
        }
        owner(0);
        mode(&above, 0o777);
        OwnDirectory::remove_left(&above, "x-");
        assert!(named.join("precious").exists(), "everybody can rename it");
        mode(&above, 0o1777);
        mode(&named, 0o755);
        OwnDirectory::remove_left(&above, "x-");
        assert!(named.join("precious").exists(), "it was made for others as well");
        mode(&named, 0o700);
        OwnDirectory::remove_left(&link, "x-");
        assert!(!named.exists(), "nobody but this user could have named it");
    }
}
