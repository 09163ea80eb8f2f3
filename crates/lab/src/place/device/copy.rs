//! Copies of images: by reference where the filesystem can, otherwise without their holes.

use super::{Space, error::DeviceError};
use fstone_model::units::format_bytes;
use rustix::{
    fs::{Advice, SeekFrom, fadvise, fstatvfs, ioctl_ficlone, seek},
    io::Errno,
};
use sha2::{Digest, Sha256};
use std::{
    cell::Cell,
    fs::File,
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, MetadataExt},
    },
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

const PIECE_BYTES: u64 = 1 << 20;

/// What a new image begins with, instead of nothing.
#[derive(Debug)]
pub struct Content<'a> {
    pub(crate) image: &'a File,
    /// Whether what was copied is written out and dropped from memory, as after the image itself was made.
    pub(crate) settles: bool,
    pub(crate) stop: &'a AtomicBool,
    /// Whether it went by reference, and how long it took, afterwards.
    pub(crate) copied: Cell<Option<(bool, Duration)>>,
}

impl Content<'_> {
    /// A path by which this process opens the image, for a disk that reads it and writes elsewhere.
    pub(crate) fn by_reference(&self) -> PathBuf {
        self.copied.set(Some((true, Duration::ZERO)));
        format!("/proc/self/fd/{}", self.image.as_raw_fd()).into()
    }

    pub(super) fn fill(&self, to: &File, bytes: u64) -> Result<(), DeviceError> {
        let started = Instant::now();
        let copied = copy(self.image, to, bytes, self.stop).and_then(|by_reference| {
            if self.settles && !by_reference {
                to.sync_data()?;
                // What stays in memory only makes the first reads faster.
                let _ = fadvise(to, 0, None, Advice::DontNeed);
                let _ = fadvise(self.image, 0, None, Advice::DontNeed);
            }
            Ok(by_reference)
        });
        let failed = |cause| DeviceError::Unsuitable { words: format!("failed to copy the aged image: {cause}") };
        self.copied.set(Some((copied.map_err(failed)?, started.elapsed())));
        Ok(())
    }
}

/// Copies the first `bytes` of an image to an empty file. Returns whether that went by reference.
///
/// # Errors
/// Those of the calls; if there is not enough room; [`io::ErrorKind::Interrupted`] after `stop`.
pub(crate) fn copy(from: &File, to: &File, bytes: u64, stop: &AtomicBool) -> io::Result<bool> {
    if ioctl_ficlone(to, from).is_ok() {
        to.set_len(bytes)?;
        return Ok(true);
    }
    let needed = from.metadata()?.blocks() * 512;
    let room = room(to)?;
    if needed > room {
        let words = format!("it needs {}, and {} can be used", format_bytes(needed), format_bytes(room));
        return Err(io::Error::new(io::ErrorKind::StorageFull, words));
    }
    to.set_len(bytes)?;
    let mut buffer = vec![0; PIECE_BYTES as usize];
    let mut at = 0;
    loop {
        at = match seek(from, SeekFrom::Data(at)) {
            Ok(data) if data < bytes => data,
            Ok(_) | Err(Errno::NXIO) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        };
        let end = seek(from, SeekFrom::Hole(at))?.min(bytes);
        while at < end {
            if stop.load(Ordering::Acquire) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let piece = &mut buffer[..(end - at).min(PIECE_BYTES) as usize];
            from.read_exact_at(piece, at)?;
            to.write_all_at(piece, at)?;
            at += piece.len() as u64;
        }
    }
}

/// The SHA-256 of what an image has, wherever its holes are: of each piece that is not all zero, behind its offset.
///
/// # Errors
/// Those of the calls; [`io::ErrorKind::Interrupted`] after `stop`.
pub(crate) fn digest(image: &File, stop: &AtomicBool) -> io::Result<String> {
    let (mut digest, mut buffer) = (Sha256::new(), vec![0; PIECE_BYTES as usize]);
    let bytes = image.metadata()?.len();
    let mut at = 0;
    while let Ok(data) = seek(image, SeekFrom::Data(at)) {
        if stop.load(Ordering::Acquire) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        at = data / PIECE_BYTES * PIECE_BYTES;
        let piece = &mut buffer[..(bytes - at).min(PIECE_BYTES) as usize];
        image.read_exact_at(piece, at)?;
        if piece.iter().any(|byte| *byte != 0) {
            digest.update(at.to_le_bytes());
            digest.update(&*piece);
        }
        at += piece.len() as u64;
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// How many bytes may be written to the filesystem of a file. In memory there is no limit but that of memory.
pub(crate) fn room(file: &File) -> io::Result<u64> {
    let stat = fstatvfs(file)?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    let space = Space { free_bytes: bytes(stat.f_bavail), total_bytes: bytes(stat.f_blocks) };
    Ok(if stat.f_blocks == 0 { u64::MAX } else { space.free_bytes.saturating_sub(space.reserve_bytes()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_data_and_the_holes() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let file = |name| {
            let path = place.path().join(name);
            File::options().read(true).write(true).create_new(true).open(path).expect("made")
        };
        let (from, stop) = (file("from"), AtomicBool::new(false));
        from.set_len(64 << 20).expect("sized");
        from.write_all_at(&[1; 5000], 3 << 20).expect("written");
        from.write_all_at(b"behind", 64 << 20).expect("written");
        let to = file("to");
        let by_reference = copy(&from, &to, 64 << 20, &stop).expect("copied");
        let facts = to.metadata().expect("facts");
        assert!(facts.len() == 64 << 20 && facts.blocks() < 1000, "{facts:?}");
        let mut read = vec![0; 6000];
        to.read_exact_at(&mut read, 3 << 20).expect("read");
        assert!(read[..5000].iter().all(|byte| *byte == 1) && read[5000..].iter().all(|byte| *byte == 0));
        // The same bytes without holes, and one other bit.
        let full = file("full");
        full.write_all_at(&vec![0; 64 << 20], 0).expect("written");
        full.write_all_at(&[1; 5000], 3 << 20).expect("written");
        assert_eq!(digest(&full, &stop).expect("read"), digest(&to, &stop).expect("read"));
        full.write_all_at(&[3], (3 << 20) + 1).expect("written");
        assert_ne!(digest(&full, &stop).expect("read"), digest(&to, &stop).expect("read"));
        stop.store(true, Ordering::Release);
        let stopped = copy(&from, &file("stopped"), 64 << 20, &stop);
        assert!(by_reference || stopped.is_err_and(|error| error.kind() == io::ErrorKind::Interrupted));
    }
}
