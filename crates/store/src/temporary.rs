//! A temporary file that gets its real name when it is complete.
//!
//! Its maker holds a lock on it. One that is no longer locked belongs to a process that was killed, and is removed
//! when the next is made in the same directory: nothing else has such a name.

use crate::{Owner, create_file};
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, open, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Files that this process has made.
static MADE: AtomicU32 = AtomicU32::new(1);

/// How the names of these files begin and end; between the two are two numbers.
const BEGINNING: &str = ".fstone-";
const END: &str = ".part";

/// A file beside its future name; it is removed unless it gets that name.
#[derive(Debug)]
pub struct Temporary {
    file: File,
    path: PathBuf,
}

impl Temporary {
    /// Makes an empty file in the directory of `path`, owned by the caller of `sudo`.
    ///
    /// # Errors
    /// Those of open(2) and fchown(2).
    pub fn beside(path: &Path) -> io::Result<Self> {
        let directory = directory_of(path);
        remove_stale(directory);
        // Another process may consider it stale before it is locked.
        for _ in 0..3 {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let own = directory.join(format!("{BEGINNING}{}-{number}{END}", std::process::id()));
            let Some(file) = create_file(&own, Owner::caller())? else { continue };
            // Without locks, no process considers it stale either.
            let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
            if locked != Err(Errno::WOULDBLOCK) && file.metadata()?.nlink() > 0 {
                return Ok(Self { file, path: own });
            }
        }
        Err(io::Error::other(format!("temporary files in {} are in the way", directory.display())))
    }

    /// What is to be written.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name, replacing any file of that name. It is on the disk by then.
    ///
    /// # Errors
    /// Those of fsync(2) and rename(2).
    pub fn replace(self, path: &Path) -> io::Result<()> {
        // Some filesystems report only now that there was no space. The old file is still there.
        self.file.sync_all()?;
        fs::rename(&self.path, path)
    }

    /// Gives the file its name. An existing file of that name stays, wherever it came from.
    ///
    /// # Errors
    /// Those of fsync(2), rename(2) and link(2): [`io::ErrorKind::AlreadyExists`] when the name is taken.
    pub fn publish(self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        match renameat_with(CWD, &self.path, CWD, path, RenameFlags::NOREPLACE) {
            // The filesystem cannot do that (NFS). A link never replaces anything; the other name goes with `self`.
            Err(Errno::INVAL | Errno::NOSYS) => fs::hard_link(&self.path, path),
            other => Ok(other?),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Once it has its name there is nothing to remove, and nobody can handle an error here.
        let _ = fs::remove_file(&self.path);
    }
}

/// The directory in which a path's last part is.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes what killed processes left here. What cannot be removed stays, which does no harm.
fn remove_stale(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(is_temporary)) {
        let path = entry.path();
        // Neither a link nor a pipe is followed or waited for.
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = open(&path, flags, Mode::empty()).map(File::from) else { continue };
        let is_ours = file.metadata().is_ok_and(|found| found.is_file() && found.nlink() == 1);
        if is_ours && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Whether a name is one of those that [`Temporary::beside`] gives.
fn is_temporary(name: &str) -> bool {
    let numbers = name.strip_prefix(BEGINNING).and_then(|rest| rest.strip_suffix(END));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.and_then(|numbers| numbers.split_once('-')).is_some_and(|(one, other)| is_number(one) && is_number(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_name_that_is_taken_stays_whose_it_is_unless_it_is_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        fs::write(&path, "somebody's").expect("ours");
        let error = Temporary::beside(&path).expect("made").publish(&path).expect_err("it is taken");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
        assert_eq!(fs::read_to_string(&path).expect("there"), "somebody's");
        let other = Temporary::beside(&path).expect("made");
        other.file().write_all(b"ours").expect("written");
        other.replace(&path).expect("replaced");
        assert_eq!(fs::read_to_string(&path).expect("there"), "ours");
        Temporary::beside(&path).expect("made").publish(&directory.path().join("new")).expect("free");
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 2, "nothing beside them");
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let living = Temporary::beside(&path("file")).expect("made");
        let kept = ["report.part", ".fstone-1-.part", ".fstone-x-1.part", ".fstone-1-1.part.txt", "fstone-1-1.part"];
        for name in kept.into_iter().chain([".fstone-123-4.part"]) {
            fs::write(path(name), "").expect("ours");
        }
        // Names may be given to anything.
        fs::create_dir(path(".fstone-9-9.part")).expect("ours");
        std::os::unix::fs::symlink(path(kept[0]), path(".fstone-8-8.part")).expect("ours");
        fs::hard_link(path(kept[0]), path(".fstone-7-7.part")).expect("ours");
        drop(Temporary::beside(&path("file")).expect("made"));
        assert!(!path(".fstone-123-4.part").exists(), "nobody holds it");
        assert!(living.path.exists(), "this one is being written");
        for name in kept.into_iter().chain([".fstone-9-9.part", ".fstone-8-8.part", ".fstone-7-7.part"]) {
            assert!(path(name).exists(), "{name}");
        }
    }
}
