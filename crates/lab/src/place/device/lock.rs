//! One run at a time on a named device.

use super::Refusal;
use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, open},
    io::Errno,
};
use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, Instant},
};

/// How long udev, which locks a device while it probes it, is waited for.
const PROBE: Duration = Duration::from_secs(3);

/// A device that no other run uses, until this is dropped.
///
/// It is a BSD lock on the device node, which keeps udev from probing as well; it does not keep anybody from mounting or
/// writing, which the exclusive opens are for. As long as the node is open the kernel gives the device's number to no
/// other device, even when this one is unplugged: who has compared the number has compared the device.
#[derive(Debug)]
pub struct DeviceLock {
    _node: Option<File>,
}

impl DeviceLock {
    #[cfg(any(test, feature = "fakes"))]
    pub(super) const fn of_nothing() -> Self {
        Self { _node: None }
    }

    /// An exclusive open instead of a lock: the kernel keeps everybody else who opens it so, and every mount, away.
    pub(super) fn hold(path: &Path, number: (u32, u32)) -> Result<Self, Refusal> {
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let node = open(path, flags, Mode::empty())
            .map_err(|errno| Refusal::InUse { path: path.to_owned(), errno: errno.raw_os_error() })?;
        let node = File::from(node);
        match node.metadata() {
            Ok(facts) if super::split_number(facts.rdev()) == number => Ok(Self { _node: Some(node) }),
            _ => Err(Refusal::Changed(path.to_owned())),
        }
    }

    pub(super) fn take(path: &Path, number: (u32, u32)) -> Result<Self, Refusal> {
        let unexamined = |errno: Errno| Refusal::Unexamined {
            path: path.to_owned(),
            words: std::io::Error::from(errno).to_string(),
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let node = File::from(open(path, flags, Mode::empty()).map_err(unexamined)?);
        match node.metadata() {
            Ok(facts) if super::split_number(facts.rdev()) == number => {}
            _ => return Err(Refusal::Changed(path.to_owned())),
        }
        let started = Instant::now();
        loop {
            match flock(&node, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _node: Some(node) }),
                Err(Errno::WOULDBLOCK) if started.elapsed() < PROBE => std::thread::sleep(Duration::from_millis(50)),
                Err(Errno::WOULDBLOCK) => {
                    return Err(Refusal::Locked { path: path.to_owned(), holder: holder_of(&node) });
                }
                Err(errno) => return Err(unexamined(errno)),
            }
        }
    }
}

/// Who holds the lock, by proc_locks(5): `1: FLOCK ADVISORY WRITE 1234 00:06:123 0 EOF`.
fn holder_of(node: &File) -> String {
    let unknown = || "another process".to_owned();
    let (Ok(facts), Ok(locks)) = (node.metadata(), fs::read_to_string("/proc/locks")) else { return unknown() };
    let (major, minor) = super::split_number(facts.dev());
    let wanted = format!("{major:02x}:{minor:02x}:{}", facts.ino());
    let process = locks.lines().filter(|line| line.contains("FLOCK")).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| *word == wanted)?;
        words.get(at.checked_sub(1)?).copied()
    });
    let Some(process) = process else { return unknown() };
    let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    format!("process {process} ({})", command.trim())
}
