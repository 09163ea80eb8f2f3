//! What is told while a fileset is built or removed, and what ends that.

use crate::error::LoadError;
use crate::options::{Progress, RunOptions};
use crate::peers::Peers;
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(200);

pub(super) struct SetupProgress<'a> {
    options: &'a RunOptions<'a>,
    last: Cell<Instant>,
    started: Instant,
    directories: Cell<u64>,
}

impl<'a> SetupProgress<'a> {
    pub(super) fn new(options: &'a RunOptions<'a>) -> Self {
        let now = Instant::now();
        Self { options, last: Cell::new(now), started: now, directories: Cell::new(0) }
    }

    pub(super) fn directories(&self) -> u64 {
        self.directories.get()
    }

    /// Heeds cancellation, and the end of the load of all ranks.
    pub(super) fn goes_on(&self) -> Result<(), LoadError> {
        if self.options.cancel.load(Ordering::Relaxed) {
            return Err(LoadError::Interrupted(None));
        }
        if self.options.observer.peers().is_some_and(Peers::parted) { Err(LoadError::Parted) } else { Ok(()) }
    }

    /// Counts a directory that was made or removed, beside so many files and bytes.
    pub(super) fn one_directory(&self, files: u64, bytes: u64) -> Result<(), LoadError> {
        self.directories.set(self.directories.get() + 1);
        self.breathe(files, bytes)
    }

    pub(super) fn breathe(&self, files: u64, bytes: u64) -> Result<(), LoadError> {
        self.goes_on()?;
        let done = files + self.directories.get();
        let since = self.last.get();
        // A look at the clock every 64 files is enough, unless files are large.
        if (done.is_multiple_of(64) || bytes > files << 20) && since.elapsed() >= INTERVAL {
            self.options.observer.progress(&Progress {
                phase: "setup".into(),
                elapsed: self.started.elapsed(),
                operations: done,
                bytes,
                interval: since.elapsed(),
                ..Progress::default()
            });
            self.last.set(Instant::now());
        }
        Ok(())
    }
}
