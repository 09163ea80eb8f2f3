//! The directory that a run makes its images and mount points in, and that no other run uses at the same time.

use crate::device::file_id;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

const LOCK_NAME: &str = "fstone.lock";

/// A work directory, locked.
#[derive(Debug)]
pub struct WorkDirectory {
    path: PathBuf,
    lock: File,
    /// Whether it was made by us, and is removed when empty.
    made: bool,
}

/// Why a work directory cannot be had; completes "failed to use the work directory: ".
#[derive(Debug, thiserror::Error)]
pub enum WorkDirectoryError {
    /// It cannot be made or written.
    #[error("{}: {source}; name another with --work-directory", path.display())]
    File {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another run uses it.
    #[error("{}: in use by {holder}; wait for it, or name another with --work-directory", path.display())]
    Locked {
        /// Which.
        path: PathBuf,
        /// Who: process id, host and command line.
        holder: String,
    },
}

impl WorkDirectory {
    /// Makes it where it is missing, and locks it.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn lock(path: &Path) -> Result<Self, WorkDirectoryError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| WorkDirectoryError::File { path, source }
        };
        let made = !path.exists();
        // Only for its owner: images hold what was measured, and the mount points what was mounted.
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed(path))?;
        // Mount points are compared with the mount table, which knows no symbolic links.
        let path = fs::canonicalize(path).map_err(failed(path))?;
        let lock_path = path.join(LOCK_NAME);
        let mut lock = loop {
            let lock = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW)
                .open(&lock_path)
                .map_err(failed(&lock_path))?;
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                // Another run may have removed the file, in `remove`, after we opened it: then this lock is of a file
                // that nobody finds any more.
                Ok(()) => match (fs::metadata(&lock_path), lock.metadata()) {
                    (Ok(named), Ok(held)) if file_id(&named) == file_id(&held) => break lock,
                    _ => {}
                },
                Err(Errno::WOULDBLOCK) => {
                    let mut holder = String::new();
                    let read = (&lock).take(1024).read_to_string(&mut holder);
                    let known = read.is_ok() && !holder.trim().is_empty();
                    let holder = if known { holder.trim().to_owned() } else { "another run".to_owned() };
                    return Err(WorkDirectoryError::Locked { path, holder });
                }
                Err(errno) => return Err(failed(&lock_path)(errno.into())),
            }
        };
        let command: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let holder = format!("process {} ({})\n", std::process::id(), crate::command::typed(&command));
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| lock.write_all(holder.as_bytes()))
            .map_err(failed(&lock_path))?;
        Ok(Self { path, lock, made })
    }

    /// Where it is, without symbolic links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it up: removes the lock file, and the directory where it was made for this and is empty.
    pub fn remove(self) {
        // Still locked, so nobody else can be at work in it. Both may fail without harm.
        let _ = fs::remove_file(self.path.join(LOCK_NAME));
        if self.made {
            let _ = fs::remove_dir(&self.path);
        }
        drop(self.lock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_is_refused_with_the_holder_named() {
        let parent = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let path = parent.path().join("deep/work");
        let first = WorkDirectory::lock(&path).expect("free");
        let error = WorkDirectory::lock(&path).expect_err("taken").to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        first.remove();
        assert!(!path.exists());
        let again = WorkDirectory::lock(&path).expect("free again");
        drop(again);
        WorkDirectory::lock(&path).expect("a dropped lock is free, its file notwithstanding");
    }
}
