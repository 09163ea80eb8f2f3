//! What a disk's data is on: its image, or for a while a crash state in its place.

use super::spec::{DiskSpec, Showing};
use crate::power::{Change, LogWriter, Shown};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

/// Where sectors are read and written. With a log, what is written to the image is also written there.
#[derive(Debug)]
pub(crate) struct Medium {
    image: File,
    host_cache: bool,
    zeros_as_holes: bool,
    log: Option<LogWriter>,
    showing: Showing,
    layer: Option<Layer>,
}

impl Medium {
    pub(crate) fn new(spec: &DiskSpec, image: File, log: Option<LogWriter>, showing: &Showing) -> Self {
        if !spec.host_cache {
            // No reading ahead: the guest does its own, and what it did not ask for would have to be dropped again. Not
            // every filesystem knows the advice; then nothing is lost but a little speed.
            let _ = fadvise(&image, 0, None, Advice::Random);
        }
        let &DiskSpec { host_cache, zeros_as_holes, .. } = spec;
        Self { image, host_cache, zeros_as_holes, log, showing: Arc::clone(showing), layer: None }
    }

    /// The same, with what this image holds wherever nothing is written.
    pub(crate) fn over(self, base: File) -> Self {
        Self { layer: Some(Layer { base, own: Mutex::default() }), ..self }
    }

    /// To be called before the image is written.
    fn own(&self, at: u64, bytes: u64) -> io::Result<()> {
        self.layer.as_ref().map_or(Ok(()), |layer| layer.own(&self.image, at, bytes))
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
            None => match &self.layer {
                Some(layer) => layer.read_exact_at(&self.image, buffer, at),
                None => self.image.read_exact_at(buffer, at),
            },
        }
    }

    pub(crate) fn write_all_at(&self, piece: &[u8], at: u64) -> io::Result<()> {
        if let Some(written) = self.shown(|shown| shown.write_all_at(piece, at)) {
            return written;
        }
        self.own(at, piece.len() as u64)?;
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
        self.own(at, bytes)?;
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
            None => self.own(at, bytes).and_then(|()| punch(&self.image, at, bytes)),
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
        // Of a crash state nothing is in the image.
        if !self.host_cache && self.shown(|_| ()).is_none() {
            // An image without a page cache of its own (tmpfs) cannot be cold, and the advice does nothing.
            let _ = fadvise(&self.image, at, bytes, Advice::DontNeed);
        }
    }

    pub(crate) fn position_in_log(&self) -> Change {
        Change::Write { data_at: self.log.as_ref().map_or(0, LogWriter::position) }
    }
}

/// What an image has of its own, over another one.
#[derive(Debug)]
struct Layer {
    base: File,
    /// The blocks that were written: first → end. They neither overlap nor touch.
    own: Mutex<BTreeMap<u64, u64>>,
}

/// A write of less than this copies the rest.
const BLOCK: u64 = 4096;

impl Layer {
    fn read_exact_at(&self, image: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = buffer;
        let mut from = at;
        while !rest.is_empty() {
            let block = from / BLOCK;
            let before = own.range(..=block).next_back().filter(|(_, end)| **end > block);
            let (file, end) = match before {
                Some((_, end)) => (image, *end),
                None => (&self.base, own.range(block..).next().map_or(u64::MAX, |(first, _)| *first)),
            };
            let bytes = end.saturating_mul(BLOCK).saturating_sub(from).min(rest.len() as u64);
            let (piece, behind) = rest.split_at_mut(bytes as usize);
            file.read_exact_at(piece, from)?;
            (rest, from) = (behind, from + bytes);
        }
        Ok(())
    }

    /// Makes a range the image's own. What its first and last blocks hold beside it is copied.
    fn own(&self, image: &File, at: u64, bytes: u64) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let end = at + bytes;
        let (mut first, mut last) = (at / BLOCK, end.div_ceil(BLOCK));
        for block in [first, last - 1] {
            let is_whole = block * BLOCK >= at && (block + 1) * BLOCK <= end;
            if is_whole || own.range(..=block).next_back().is_some_and(|(_, end)| *end > block) {
                continue;
            }
            let mut data = [0; BLOCK as usize];
            // A disk may end within a block.
            let length = image.metadata()?.len().saturating_sub(block * BLOCK).min(BLOCK);
            let data = &mut data[..length as usize];
            self.base.read_exact_at(data, block * BLOCK)?;
            image.write_all_at(data, block * BLOCK)?;
        }
        while let Some((&start, &end)) = own.range(..=last).next_back().filter(|(_, end)| **end >= first) {
            own.remove(&start);
            (first, last) = (first.min(start), last.max(end));
        }
        own.insert(first, last);
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes, zeros and discards of any sectors, beside the same in memory.
    #[test]
    fn a_layer_over_an_image_is_a_copy_of_it() {
        const BYTES: usize = (96 << 12) + 512;
        let mut state = 7_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut expected: Vec<u8> = (0..BYTES).map(|_| draw(256) as u8).collect();
        let (base, image) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        base.write_all_at(&expected, 0).unwrap();
        base.write_all_at(b"behind it", BYTES as u64).unwrap();
        image.set_len(BYTES as u64).unwrap();
        let spec = DiskSpec { zeros_as_holes: true, ..DiskSpec::new("") };
        let medium = Medium::new(&spec, image, None, &Showing::default()).over(base.try_clone().unwrap());
        let before = expected.clone();
        for _ in 0..400 {
            let first = draw(BYTES as u64 / 512);
            let sectors = 1 + draw(24).min(BYTES as u64 / 512 - first - 1);
            let (at, bytes) = (first * 512, sectors * 512);
            let place = &mut expected[at as usize..(at + bytes) as usize];
            match draw(6) {
                0 => medium.discard(at, bytes).unwrap(),
                1 => medium.zero(at, bytes, false).unwrap(),
                2 => medium.write_all_at(&vec![0; bytes as usize], at).unwrap(),
                kind => {
                    place.fill(kind as u8);
                    medium.write_all_at(place, at).unwrap();
                    continue;
                }
            }
            place.fill(0);
        }
        let mut read = vec![1; BYTES];
        for at in (0..BYTES).step_by(512 * 37) {
            let end = (at + 512 * 37).min(BYTES);
            medium.read_exact_at(&mut read[at..end], at as u64).unwrap();
        }
        assert!(read == expected, "differs at {:?}", read.iter().zip(&expected).position(|(one, other)| one != other));
        base.read_exact_at(&mut read, 0).unwrap();
        assert!(read == before, "the image below was written");
    }
}
