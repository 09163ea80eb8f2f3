//! A disk to be served, and what its server shares.

use super::counters::{DiskCounters, Marks};
use super::fault::Fault;
use super::speed::Speed;
use crate::power::{CrashState, Log, LogError, LogSpec, LogWriter, Mirror, Shown, States};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

/// What the disk's name, in a guest the file `serial` of its directory in sysfs, begins with. The number of a
/// [mark](super::Disk::mark) follows: asking for the name sets one.
pub const MARK_PREFIX: &str = "fstone-mark-";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskSpec {
    /// The image, an existing file; its size is the disk's.
    pub image: PathBuf,
    /// What the disk holds at first instead of what the image does: another image, which is not written. Not with a log.
    pub base: Option<PathBuf>,
    /// Logical block: 512 or 4096.
    pub sector_bytes: u32,
    /// Whether the guest may give blocks back (they become holes in the image).
    pub discard: bool,
    /// Whether what the guest read or flushed may stay in the host's page cache. Reading it again then costs no more than
    /// memory does, even after the guest dropped its own caches.
    pub host_cache: bool,
    /// Whether zeros that the guest writes become holes in the image. A disk that is larger than its host's then takes a
    /// mkfs that clears every inode table, but a write costs another system call.
    pub zeros_as_holes: bool,
    pub speed: Speed,
    pub faults: Vec<Fault>,
    pub log: Option<LogSpec>,
}

impl DiskSpec {
    /// A sound disk with 512-byte sectors, as fast as the device below the image, that can discard.
    pub fn new(image: impl Into<PathBuf>) -> Self {
        Self {
            image: image.into(),
            base: None,
            sector_bytes: 512,
            discard: true,
            host_cache: false,
            zeros_as_holes: false,
            speed: Speed::default(),
            faults: Vec::new(),
            log: None,
        }
    }
}

/// What a disk and whoever serves it both know.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared {
    pub(super) counters: Arc<Mutex<DiskCounters>>,
    pub(super) marks: Arc<Mutex<Marks>>,
    pub(super) transport: Arc<AtomicU64>,
    pub(super) log: Option<LogWriter>,
    pub(super) showing: Showing,
}

/// The crash state that a disk shows in place of its image, if it shows one. Whoever serves the disk may change it while no
/// request is under way.
pub(crate) type Showing = Arc<Mutex<Option<Shown>>>;

impl Shared {
    pub(crate) fn new(spec: &DiskSpec, image: &File) -> io::Result<Self> {
        let log = spec.log.as_ref().map(|log| LogWriter::new(log, image, spec.sector_bytes)).transpose()?;
        Ok(Self { log, ..Self::default() })
    }

    pub(crate) fn counters(&self) -> DiskCounters {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn marks(&self) -> Marks {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn log(&self) -> Option<Result<Log, LogError>> {
        self.log.as_ref().map(LogWriter::take)
    }

    /// Begins the log of a disk that keeps one anew; its files go, without a name, into this directory.
    pub(crate) fn begin_log_anew(&self, image: &File, directory: &Path) -> io::Result<()> {
        self.log.as_ref().map_or(Ok(()), |log| log.begin_anew(image, directory))
    }

    /// Shows a crash state in place of the image, or the image again when there is none.
    pub(crate) fn show(&self, state: Option<(&mut States, CrashState)>, directory: &Path) -> io::Result<()> {
        let shown = state.map(|(states, state)| states.shown(state, directory)).transpose()?;
        *self.showing.lock().unwrap_or_else(PoisonError::into_inner) = shown;
        Ok(())
    }

    pub(crate) fn mirror(&self, mirror: &mut Mirror) -> io::Result<bool> {
        let showing = self.showing.lock().unwrap_or_else(PoisonError::into_inner);
        showing.as_ref().map_or(Ok(false), |shown| mirror.hold(shown).map(|()| true))
    }
}
