//! What a disk's data is on: its image, or for a while a crash state in its place.

use super::spec::{DiskSpec, Showing};
use crate::power::{Change, LogWriter, Shown};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError};

/// Where sectors are read and written. With a log, what is written to the image is also written there.
#[derive(Debug)]
pub(crate) struct Medium {
    image: File,
    host_cache: bool,
    zeros_as_holes: bool,
    log: Option<LogWriter>,
    showing: Showing,
}

impl Medium {
    pub(crate) fn new(spec: &DiskSpec, image: File, log: Option<LogWriter>, showing: &Showing) -> Self {
        if !spec.host_cache {
            // No reading ahead: the guest does its own, and what it did not ask for would have to be dropped again. Not
            // every filesystem knows the advice; then nothing is lost but a little speed.
            let _ = fadvise(&image, 0, None, Advice::Random);
        }
        let &DiskSpec { host_cache, zeros_as_holes, .. } = spec;
        Self { image, host_cache, zeros_as_holes, log, showing: Arc::clone(showing) }
    }

    fn shown<T>(&self, with: impl FnOnce(&mut Shown) -> T) -> Option<T> {
        // Without a log there is nothing to be shown.
        self.log.as_ref()?;
        self.showing.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(with)
    }

    /// The log, unless what is asked for concerns a crash state.
    pub(crate) fn log(&self) -> Option<&LogWriter> {
        self.log.as_ref().filter(|_| self.shown(|_| ()).is_none())
    }

    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        match self.shown(|shown| shown.read_exact_at(buffer, at)) {
            Some(read) => read,
            None => self.image.read_exact_at(buffer, at),
        }
    }

    pub(crate) fn write_all_at(&self, piece: &[u8], at: u64) -> io::Result<()> {
        if let Some(written) = self.shown(|shown| shown.write_all_at(piece, at)) {
            return written;
        }
        let hole = self.zeros_as_holes && is_zeros(piece) && punch(&self.image, at, piece.len() as u64).is_ok();
        if !hole {
            self.image.write_all_at(piece, at)?;
        }
        if let Some(log) = &self.log {
            log.add_data(piece);
        }
        Ok(())
    }

    /// Makes a range zeros, as holes where that can be and may be.
    pub(crate) fn zero(&self, at: u64, bytes: u64, hole: bool) -> io::Result<()> {
        if self.shown(|shown| shown.zero(at, bytes)).is_some() {
            return Ok(());
        }
        if (hole || self.zeros_as_holes) && punch(&self.image, at, bytes).is_ok() {
            return Ok(());
        }
        const PIECE: u64 = 1 << 20;
        let zeros = vec![0u8; bytes.min(PIECE) as usize];
        let mut done = 0;
        while done < bytes {
            let piece = &zeros[..(bytes - done).min(PIECE) as usize];
            self.image.write_all_at(piece, at + done)?;
            done += piece.len() as u64;
        }
        Ok(())
    }

    pub(crate) fn discard(&self, at: u64, bytes: u64) -> io::Result<()> {
        match self.shown(|shown| shown.zero(at, bytes)) {
            Some(()) => Ok(()),
            None => punch(&self.image, at, bytes),
        }
    }

    /// Has everything that was written on the host's disk. A crash state is never kept.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match self.shown(|_| ()) {
            Some(()) => Ok(()),
            None => self.image.sync_data(),
        }
    }

    /// Drops a range from the host's page cache: what was read, which a disk would not hold in memory. All of it when
    /// `bytes` is none: once it is durable, what was written; until then the cache is the disk's volatile write cache. The
    /// kernel keeps pages that are not clean.
    pub(crate) fn drop_behind(&self, at: u64, bytes: Option<NonZeroU64>) {
        if !self.host_cache {
            // An image without a page cache of its own (tmpfs) cannot be cold, and the advice does nothing.
            let _ = fadvise(&self.image, at, bytes, Advice::DontNeed);
        }
    }

    pub(crate) fn position_in_log(&self) -> Change {
        Change::Write { data_at: self.log.as_ref().map_or(0, LogWriter::position) }
    }
}

/// Whether there is nothing but zeros. Compared a page at a time, which ends early and still runs at the speed of memory.
fn is_zeros(piece: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    piece.chunks(ZEROS.len()).all(|page| *page == ZEROS[..page.len()])
}

fn punch(image: &File, at: u64, bytes: u64) -> io::Result<()> {
    Ok(fallocate(image, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, bytes)?)
}
