//! Writing to a guest that may never read.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The host's end of the stream to the guest: gives up when not a byte is taken for `patience`.
#[derive(Debug)]
pub(crate) struct Outgoing {
    descriptor: OwnedFd,
    patience: Duration,
}

impl Outgoing {
    pub(crate) fn new(descriptor: OwnedFd, patience: Duration) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&descriptor, true)?;
        Ok(Self { descriptor, patience })
    }
}

impl Write for Outgoing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let patience =
            Timespec { tv_sec: self.patience.as_secs() as i64, tv_nsec: i64::from(self.patience.subsec_nanos()) };
        loop {
            match rustix::io::write(&self.descriptor, bytes) {
                Ok(count) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let mut writable = [PollFd::new(&self.descriptor, PollFlags::OUT)];
                    match poll(&mut writable, Some(&patience)) {
                        Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// When the last byte of a guest arrived.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    start: Instant,
    last_ns: Arc<AtomicU64>,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), last_ns: Arc::new(AtomicU64::new(0)) }
    }

    fn touch(&self) {
        self.last_ns.store(self.start.elapsed().as_nanos() as u64, Ordering::Release);
    }

    /// A number that differs whenever something arrived in between.
    pub(crate) fn stamp(&self) -> u64 {
        self.last_ns.load(Ordering::Acquire)
    }
}

/// The host's end of the stream from the guest; waits for bytes, whatever the descriptor's mode.
#[derive(Debug)]
pub(crate) struct Incoming {
    descriptor: OwnedFd,
    activity: Activity,
}

impl Incoming {
    pub(crate) const fn new(descriptor: OwnedFd, activity: Activity) -> Self {
        Self { descriptor, activity }
    }
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::io::read(&self.descriptor, &mut *buffer) {
                Ok(count) => {
                    self.activity.touch();
                    return Ok(count);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let mut readable = [PollFd::new(&self.descriptor, PollFlags::IN)];
                    let _ = poll(&mut readable, None);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
