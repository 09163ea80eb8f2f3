//! Runs on one machine notice each other.
//!
//! Two runs with different work directories do not get in each other's way, but they compete for the processors, memory
//! and disk, and both measure that. Every run holds a read lock on the first byte of a file that all users of the machine
//! share; asking for a write lock then tells of any other holder. The kernel drops the lock with its process, so a killed
//! run leaves nothing behind. A run that waits for its turn holds a second lock meanwhile, so that of several waiting runs
//! only one goes on at a time.
//!
//! A process loses its record locks when it closes *any* descriptor of the file, so nothing else may open it.
#![expect(unsafe_code, reason = "rustix cannot ask who holds a record lock")]

use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, open},
    io::Errno,
};
use std::{
    fs::{File, Permissions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

const LOOK: Duration = Duration::from_millis(200);

/// The file that all runs of this machine share, whoever starts them: never on a network filesystem, and writable by
/// everybody on every Linux system.
pub fn shared_file() -> PathBuf {
    PathBuf::from("/dev/shm/fstone.lock")
}

/// This process among the runs of the machine, until it is dropped.
#[derive(Debug)]
pub struct Presence {
    file: File,
}

impl Presence {
    /// Joins the runs of this machine at once.
    ///
    /// # Errors
    /// When the shared file cannot be had. Other runs then go unnoticed, which is no reason not to run.
    pub fn enter(path: &Path) -> io::Result<Self> {
        let presence = Self { file: shared(path)? };
        record_lock(&presence.file, libc::F_SETLK, libc::F_RDLCK)?;
        Ok(presence)
    }

    /// Joins them once no other run is going on. `waiting` is called, once, with the run that is waited for. `None` when
    /// `cancel` becomes true first.
    pub fn enter_after_others(
        path: &Path,
        cancel: &AtomicBool,
        mut waiting: impl FnMut(&str),
    ) -> io::Result<Option<Self>> {
        let presence = Self { file: shared(path)? };
        let mut told = false;
        let mut tell = |who: &str| {
            if !std::mem::replace(&mut told, true) {
                waiting(who);
            }
        };
        loop {
            if cancel.load(Ordering::Acquire) {
                return Ok(None);
            }
            match flock(&presence.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => match presence.other() {
                    None => break,
                    Some(who) => tell(&who),
                },
                Err(Errno::WOULDBLOCK) => tell("another run that is waiting too"),
                Err(errno) => return Err(errno.into()),
            }
            std::thread::sleep(LOOK);
        }
        record_lock(&presence.file, libc::F_SETLK, libc::F_RDLCK)?;
        flock(&presence.file, FlockOperation::Unlock)?;
        Ok(Some(presence))
    }

    /// Another run that is going on now: its process and command line.
    pub fn other(&self) -> Option<String> {
        let found = record_lock(&self.file, libc::F_GETLK, libc::F_WRLCK).ok()?;
        if found.l_type == libc::F_UNLCK as libc::c_short {
            return None;
        }
        // Another container's processes have no number here.
        if found.l_pid <= 0 {
            return Some("a process of another container".to_owned());
        }
        let command = std::fs::read(format!("/proc/{}/cmdline", found.l_pid)).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).trim_end_matches('\0').replace('\0', " ");
        Some(format!("process {}: {command}", found.l_pid))
    }
}

/// Opens the shared file, or makes it. It holds nothing, and whoever makes it can do no more than hold locks on it: no link
/// is followed, and what is no regular file is not used.
fn shared(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = loop {
        match open(path, flags, Mode::empty()) {
            Err(Errno::NOENT) => {}
            other => break File::from(other?),
        }
        // Not both at once: in a sticky directory the kernel lets root create no file that is there and another user's.
        match open(path, flags | OFlags::CREATE | OFlags::EXCL, Mode::RUSR | Mode::RGRP | Mode::ROTH) {
            Err(Errno::EXIST) => {}
            other => {
                let file = File::from(other?);
                // Whatever this user's umask says, the runs of others have to see it.
                file.set_permissions(Permissions::from_mode(0o444))?;
                break file;
            }
        }
    };
    let facts = file.metadata()?;
    if facts.is_file() && facts.nlink() <= 1 {
        Ok(file)
    } else {
        Err(io::Error::other(format!("{} is not a plain file", path.display())))
    }
}

/// Asks about, or sets, a record lock of this process on the first byte (fcntl_locking(2)).
fn record_lock(file: &File, request: libc::c_int, kind: libc::c_int) -> io::Result<libc::flock> {
    // SAFETY: flock is plain data for which all zeroes are valid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_len = 1;
    // SAFETY: the kernel reads one flock from the pointer, and for F_GETLK writes one to it; it is to a live local.
    match unsafe { libc::fcntl(file.as_raw_fd(), request, &raw mut lock) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(lock),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_file_is_shared() {
        let directory = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let (file, link) = (directory.path().join("lock"), directory.path().join("link"));
        let alone = Presence::enter(&file).expect("made");
        assert_eq!(alone.other(), None, "its own lock is none of another's");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        assert!(Presence::enter(&link).is_err());
        assert!(Presence::enter(directory.path()).is_err());
    }
}
