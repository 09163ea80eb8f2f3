//! Files that get their name when they are complete.
//!
//! Until then they have no name at all, so that nothing is left if their process is killed. Where the filesystem has no such
//! files, they have a name that cannot be guessed and that contains their inode number, and their process holds a lock on them.
//! If one is not locked, its process was killed, and it is removed when the next is made in the same directory.

use crate::Owner;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, linkat, open, openat, renameat_with};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

/// How the names of these files begin and end.
const BEGINNING: &str = ".fstone-";
const END: &str = ".part";

/// The rights to a new file: its owner's alone.
const MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A file beside its future name; it is gone unless it gets that name. Only its owner may read it.
#[derive(Debug)]
pub struct Temporary {
    file: File,
    directory: PathBuf,
    /// Its name, if it has one already.
    path: Option<PathBuf>,
}

impl Temporary {
    /// Makes an empty file in the directory of `path`, owned by the caller of `sudo`.
    ///
    /// # Errors
    /// Those of open(2) and fchown(2).
    pub fn beside(path: &Path) -> io::Result<Self> {
        Self::owned(path, Owner::caller())
    }

    /// The same, owned by `owner` if given, and else by this process's user.
    ///
    /// # Errors
    /// Those of open(2) and fchown(2).
    pub fn owned(path: &Path, owner: Option<Owner>) -> io::Result<Self> {
        let directory = directory_of(path).to_owned();
        let (file, path) = match temporary(&directory, OFlags::empty())? {
            Some(file) => (file, None),
            None => {
                remove_left(&directory);
                let (file, path) = named(&directory)?;
                (file, Some(path))
            }
        };
        if let Some(owner) = owner {
            fchown(&file, Some(owner.user), Some(owner.group))?;
        }
        Ok(Self { file, directory, path })
    }

    /// What is to be written.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name, replacing any file of that name. It is on the disk by then.
    ///
    /// # Errors
    /// Those of fsync(2), link(2) and rename(2).
    pub fn replace(mut self, path: &Path) -> io::Result<()> {
        // Some filesystems report only now that there was no space. The old file is still there.
        self.file.sync_all()?;
        let from = match self.path.take() {
            Some(from) => from,
            None => {
                // A link replaces nothing, so it needs a name first, and a kill may leave it.
                remove_left(&self.directory);
                let _ = flock(&self.file, FlockOperation::NonBlockingLockExclusive);
                let from = self.directory.join(name(&unguessable()?, self.file.metadata()?.ino()));
                link(&self.file, &from)?;
                from
            }
        };
        fs::rename(self.path.insert(from), path)?;
        self.path = None;
        Ok(())
    }

    /// Gives the file its name. An existing file of that name stays, wherever it came from.
    ///
    /// # Errors
    /// Those of fsync(2), rename(2) and link(2): [`io::ErrorKind::AlreadyExists`] when the name is taken.
    pub fn publish(mut self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        let Some(from) = &self.path else { return link(&self.file, path) };
        match renameat_with(CWD, from, CWD, path, RenameFlags::NOREPLACE) {
            // The filesystem cannot do that (NFS). A link never replaces anything; the other name goes with `self`.
            Err(Errno::INVAL | Errno::NOSYS) => fs::hard_link(from, path),
            other => {
                other?;
                self.path = None;
                Ok(())
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // An error cannot be reported here, and the next one made in this directory tries again.
            let _ = fs::remove_file(path);
        }
    }
}

/// A file in a directory that never gets a name: nothing is left of it when it is closed, be it by a kill. Where the filesystem
/// has none, it has a name until it is open.
///
/// # Errors
/// When it cannot be made.
pub fn nameless(directory: &Path) -> io::Result<File> {
    match nameless_where_possible(directory)? {
        Some(file) => Ok(file),
        None => named_for_a_moment(directory),
    }
}

/// The same; `None` where the filesystem has none.
///
/// # Errors
/// As [`nameless`].
pub fn nameless_where_possible(directory: &Path) -> io::Result<Option<File>> {
    // EXCL: it never gets a name.
    temporary(directory, OFlags::EXCL)
}

/// A word of 128 random bits, for a name.
///
/// # Errors
/// Those of getrandom(2).
pub fn unguessable() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// The directory in which a path's last part is.
#[must_use]
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn temporary(directory: &Path, more: OFlags) -> io::Result<Option<File>> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | more;
    match open(directory, flags, MODE) {
        Ok(file) => Ok(Some(file.into())),
        // What filesystems without them say (procfs: EPERM), and kernels that do not know the flag (open(2)).
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT | Errno::PERM) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, open, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

fn named_for_a_moment(directory: &Path) -> io::Result<File> {
    let (file, path) = named(directory)?;
    fs::remove_file(path)?;
    Ok(file)
}

/// A locked file with the name by which [`remove_left`] recognises it.
fn named(directory: &Path) -> io::Result<(File, PathBuf)> {
    let word = unguessable()?;
    let first = directory.join(format!("{BEGINNING}{word}{END}"));
    let how = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, &first, how, MODE)?);
    // Before it has the name by which it can be removed. Where there are no locks, nothing is removed.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    let path = directory.join(name(&word, file.metadata()?.ino()));
    fs::rename(&first, &path)?;
    Ok((file, path))
}

/// A name that only this file has, and no copy of it.
fn name(word: &str, inode: u64) -> String {
    format!("{BEGINNING}{word}-{inode}{END}")
}

/// Whether a name is one that [`name`] gives to the file with this number.
fn is_named_by_us(found: &str, inode: u64) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let word = found.strip_prefix(BEGINNING).and_then(|rest| rest.get(..32));
    word.is_some_and(|word| word.bytes().all(is_digit) && name(word, inode) == found)
}

/// Removes what killed processes left here. What cannot be removed stays, which does no harm.
fn remove_left(directory: &Path) {
    let user = rustix::process::geteuid().as_raw();
    let caller = Owner::caller().map_or(user, |caller| caller.user);
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let is_ours = |found: io::Result<fs::Metadata>| {
            found.is_ok_and(|found| {
                found.is_file()
                    && found.nlink() == 1
                    && [user, caller].contains(&found.uid())
                    && name.to_str().is_some_and(|name| is_named_by_us(name, found.ino()))
            })
        };
        if !is_ours(entry.metadata()) {
            continue;
        }
        // Neither a link nor a pipe is followed or waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = open(&path, flags, Mode::empty()).map(File::from) else { continue };
        if is_ours(file.metadata()) && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Both kinds of files, whichever the filesystem has.
    fn both(path: &Path) -> [Temporary; 2] {
        let directory = directory_of(path).to_owned();
        let (file, name) = named(&directory).expect("made");
        [Temporary::beside(path).expect("made"), Temporary { file, directory, path: Some(name) }]
    }

    #[test]
    fn a_name_that_was_taken_meanwhile_stays_whose_it_is_unless_it_is_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        fs::write(&path, "somebody's").expect("ours");
        for temporary in both(&path) {
            let error = temporary.publish(&path).expect_err("it is taken");
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
            assert_eq!(fs::read_to_string(&path).expect("there"), "somebody's");
        }
        for (number, temporary) in both(&path).into_iter().enumerate() {
            write!(temporary.file(), "{number}").expect("written");
            assert_eq!(temporary.file().metadata().expect("open").mode() & 0o777, 0o600);
            temporary.replace(&path).expect("replaced");
            assert_eq!(fs::read_to_string(&path).expect("there"), number.to_string());
        }
        for (number, temporary) in both(&path).into_iter().enumerate() {
            temporary.publish(&directory.path().join(number.to_string())).expect("free");
        }
        drop(both(&path));
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 3, "nothing beside them");
    }

    #[test]
    fn what_is_not_complete_has_no_name_where_it_need_not_have_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let names = || fs::read_dir(directory.path()).expect("readable").count();
        let temporary = Temporary::beside(&directory.path().join("file")).expect("made");
        assert_eq!(names(), usize::from(temporary.path.is_some()));
        drop(temporary);
        let never = [nameless(directory.path()).expect("made"), named_for_a_moment(directory.path()).expect("made")];
        for file in never {
            let facts = file.metadata().expect("open");
            assert_eq!((facts.nlink(), facts.mode() & 0o777, names()), (0, 0o600, 0));
        }
        if let Some(never) = nameless_where_possible(directory.path()).expect("asked") {
            assert!(link(&never, &directory.path().join("name")).is_err());
        }
        assert!(nameless(&directory.path().join("missing")).is_err());
    }

    #[test]
    fn what_a_kill_left_of_a_replacement_is_removed_by_the_next() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        let killed = Temporary::beside(&path).expect("made");
        if killed.path.is_some() {
            return eprintln!("skipped: this filesystem has no files without names");
        }
        // Between the two calls that give it its name.
        let left =
            directory.path().join(name(&unguessable().expect("random"), killed.file.metadata().expect("open").ino()));
        link(&killed.file, &left).expect("linked");
        drop(killed);
        Temporary::beside(&path).expect("made").replace(&path).expect("replaced");
        assert!(!left.exists() && path.exists());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let (_lock, living) = named(directory.path()).expect("made");
        let (lock, left) = named(directory.path()).expect("made");
        drop(lock);
        // A user's files of such names: a copy has another number.
        let word = "0123456789abcdef0123456789abcdef";
        let kept = ["report.part", ".fstone-1-1.part", ".fstone-0-1.part", &format!(".fstone-{word}-1.part")];
        for name in kept {
            fs::write(path(name), "").expect("ours");
        }
        let (_, linked) = named(directory.path()).expect("made");
        fs::hard_link(&linked, path("another name")).expect("ours");
        fs::create_dir(path(&name(word, 2))).expect("ours");
        std::os::unix::fs::symlink(path(kept[0]), path(&name(word, 3))).expect("ours");
        remove_left(directory.path());
        assert!(!left.exists(), "nobody holds it");
        assert!(living.exists(), "this one is being written");
        assert!(linked.exists(), "it has another name");
        for name in kept.map(str::to_owned).into_iter().chain([name(word, 2), name(word, 3)]) {
            assert!(path(&name).exists(), "{name}");
        }
    }
}
