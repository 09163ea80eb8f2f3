//! How fast the device alone reads sequentially: what `hdparm --direct -t` tells, so that a figure can be held against
//! it.
//!
//! The device is read from its start, past the page cache (O_DIRECT), in pieces of 2 MiB as hdparm reads them. It is
//! opened for reading only. Where that is not allowed, or there is no block device, a file that is written for the
//! purpose is read instead, again and again.

use super::device;
use super::place::existing;
use fstone_files::nameless;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) const PIECE_BYTES: usize = 2 << 20;

/// O_DIRECT wants memory and offsets aligned to the logical block, which is at most this for any device there is.
pub(super) const ALIGNMENT: usize = 64 << 10;

/// The file that stands in for the device: larger than the cache of a drive.
const FILE_BYTES: u64 = 256 << 20;

/// With less than this a drive's own cache is measured.
const LEAST_FILE_BYTES: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq)]
pub struct RawRead {
    pub bytes_per_second: f64,
    pub read_bytes: u64,
    pub elapsed: Duration,
    /// What was read: a device's path, or a directory in which a file was made.
    pub source: PathBuf,
}

/// Why nothing was measured; completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum RawSpeedError {
    #[error("{doing} {path} with direct I/O: {cause}")]
    System {
        /// "open", "read" or "write".
        doing: &'static str,
        path: PathBuf,
        cause: io::Error,
    },
    #[error("measure the device of {path}: it is in memory")]
    InMemory { path: PathBuf },
    #[error("measure the speed of {path}: it has {bytes} bytes, too few")]
    TooSmall {
        path: PathBuf,
        /// Its size, or the free space.
        bytes: u64,
    },
}

/// Reads a block device, or the device under a directory, for about this long.
///
/// # Errors
/// [`RawSpeedError`]: a reason to print in the figure's place.
pub fn raw_read(path: &Path, duration: Duration) -> Result<RawRead, RawSpeedError> {
    let is_device = fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device());
    if is_device {
        return read_device(path, duration);
    }
    let directory = existing(path).unwrap_or_else(|| path.to_owned());
    if let Some(node) = device::node_of(&directory)
        && let Ok(read) = read_device(&node, duration)
    {
        return Ok(read);
    }
    read_file(&directory, duration)
}

fn read_device(path: &Path, duration: Duration) -> Result<RawRead, RawSpeedError> {
    let failed = |doing| move |cause| RawSpeedError::System { doing, path: path.to_owned(), cause };
    let mut device = direct().read(true).open(path).map_err(failed("open"))?;
    let bytes = device.seek(SeekFrom::End(0)).map_err(failed("read"))?;
    if bytes < LEAST_FILE_BYTES {
        return Err(RawSpeedError::TooSmall { path: path.to_owned(), bytes });
    }
    let (read_bytes, elapsed) = read_for(&device, bytes, Repeat::Once, duration).map_err(failed("read"))?;
    Ok(RawRead::new(read_bytes, elapsed, path))
}

fn read_file(directory: &Path, duration: Duration) -> Result<RawRead, RawSpeedError> {
    let failed = |doing| move |cause| RawSpeedError::System { doing, path: directory.to_owned(), cause };
    let (file, written) = filled_file(directory, duration)?;
    let (read_bytes, elapsed) = read_for(&file, written, Repeat::Endless, duration).map_err(failed("read"))?;
    Ok(RawRead::new(read_bytes, elapsed, directory))
}

/// A file without a name on the device under a directory, filled for at most this long, and its length.
pub(super) fn filled_file(directory: &Path, duration: Duration) -> Result<(File, u64), RawSpeedError> {
    let failed = |doing| move |cause| RawSpeedError::System { doing, path: directory.to_owned(), cause };
    let mounts = crate::place::mount::read_mountinfo().unwrap_or_default();
    if super::mount_of(directory, &mounts).is_some_and(|mount| ["tmpfs", "ramfs"].contains(&&*mount.kernel_name)) {
        return Err(RawSpeedError::InMemory { path: directory.to_owned() });
    }
    let space = rustix::fs::statvfs(directory).map_err(|error| failed("open")(error.into()))?;
    let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
    // Never more than an eighth of what is free.
    let bytes = FILE_BYTES.min(free_bytes / 8) / PIECE_BYTES as u64 * PIECE_BYTES as u64;
    if bytes < LEAST_FILE_BYTES {
        return Err(RawSpeedError::TooSmall { path: directory.to_owned(), bytes: free_bytes });
    }
    let file = nameless_file(directory).map_err(failed("open"))?;
    let written = fill(&file, bytes, duration).map_err(failed("write"))?;
    Ok((file, written))
}

impl RawRead {
    fn new(read_bytes: u64, elapsed: Duration, source: &Path) -> Self {
        let bytes_per_second = read_bytes as f64 / elapsed.as_secs_f64().max(1e-9);
        Self { bytes_per_second, read_bytes, elapsed, source: source.to_owned() }
    }
}

fn direct() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(OFlags::DIRECT.bits().cast_signed());
    options
}

/// A file without a name, so that a killed fstone leaves nothing.
fn nameless_file(directory: &Path) -> io::Result<File> {
    let file = nameless(directory)?;
    // Not as it is made: where there is no direct I/O, the kernel would make the file, name and all, and then refuse.
    rustix::fs::fcntl_setfl(&file, rustix::fs::fcntl_getfl(&file)? | OFlags::DIRECT)?;
    Ok(file)
}

/// Writes incompressible data until the file is that long, or time is up: on a slow device less has to do. Gives the
/// length.
fn fill(file: &File, bytes: u64, duration: Duration) -> io::Result<u64> {
    // Any seed will do: nothing depends on the data but that it cannot be compressed.
    let mut random = Xoshiro256PlusPlus::seed_from_u64(0);
    let mut buffer = vec![0; PIECE_BYTES + ALIGNMENT];
    let piece = aligned(&mut buffer);
    // Each piece begins with another number, so that no two are the same.
    random.fill_bytes(piece);
    let started = Instant::now();
    let mut offset = 0_u64;
    while offset < bytes && (offset < LEAST_FILE_BYTES || started.elapsed() < duration) {
        piece[..8].copy_from_slice(&offset.to_le_bytes());
        file.write_all_at(piece, offset)?;
        offset += PIECE_BYTES as u64;
    }
    file.sync_all()?;
    Ok(offset)
}

#[derive(Clone, Copy, PartialEq)]
enum Repeat {
    Once,
    Endless,
}

/// Reads whole pieces one after the other until time is up, or to the end. Gives bytes and time.
fn read_for(file: &File, bytes: u64, repeat: Repeat, duration: Duration) -> io::Result<(u64, Duration)> {
    let mut buffer = vec![0; PIECE_BYTES + ALIGNMENT];
    let piece = aligned(&mut buffer);
    let started = Instant::now();
    let (mut read, mut offset) = (0, 0);
    while read == 0 || started.elapsed() < duration {
        if offset + PIECE_BYTES as u64 > bytes {
            if repeat == Repeat::Once {
                break;
            }
            offset = 0;
        }
        file.read_exact_at(piece, offset)?;
        offset += PIECE_BYTES as u64;
        read += PIECE_BYTES as u64;
    }
    Ok((read, started.elapsed()))
}

/// A piece of the buffer whose address suits O_DIRECT.
pub(super) fn aligned(buffer: &mut [u8]) -> &mut [u8] {
    let start = buffer.as_ptr().align_offset(ALIGNMENT).min(buffer.len() - PIECE_BYTES);
    &mut buffer[start..start + PIECE_BYTES]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn pieces_are_aligned_and_whole() {
        let mut buffer = vec![0; PIECE_BYTES + ALIGNMENT];
        let piece = aligned(&mut buffer);
        assert_eq!((piece.len(), piece.as_ptr() as usize % ALIGNMENT), (PIECE_BYTES, 0));
    }

    #[test]
    fn once_ends_at_the_end_and_endless_goes_on() {
        let file = tempfile::tempfile().expect("a file");
        let bytes = 3 * PIECE_BYTES as u64;
        file.set_len(bytes + 5).expect("a size");
        let long = Duration::from_secs(3600);
        let (read, _) = read_for(&file, bytes + 5, Repeat::Once, long).expect("read");
        assert_eq!(read, bytes, "whole pieces, and no further");
        let mut duration = SHORT;
        while read_for(&file, bytes, Repeat::Endless, duration).expect("read").0 <= bytes {
            duration *= 2;
        }
        let (read, _) = read_for(&file, bytes, Repeat::Endless, Duration::ZERO).expect("read");
        assert_eq!(read, PIECE_BYTES as u64, "at least one");
    }

    #[test]
    fn a_directory_is_measured_or_a_reason_given() {
        let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
        for result in [raw_read(directory.path(), SHORT), read_file(directory.path(), SHORT)] {
            match result {
                Ok(read) => {
                    assert!(read.bytes_per_second > 0.0 && read.read_bytes > 0);
                    let expected = read.read_bytes as f64 / read.elapsed.as_secs_f64();
                    assert!((read.bytes_per_second / expected - 1.0).abs() < 1e-9);
                }
                Err(reason) => eprintln!("skipped: failed to {reason}"),
            }
        }
        assert_eq!(fs::read_dir(directory.path()).expect("there").count(), 0, "nothing is left");
    }

    #[test]
    fn the_file_has_no_name_and_is_read_past_the_cache() {
        let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let file = match nameless_file(directory.path()) {
            Ok(file) => file,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        assert!(rustix::fs::fcntl_getfl(&file).expect("flags").contains(OFlags::DIRECT));
        assert_eq!(fs::read_dir(directory.path()).expect("there").count(), 0);
    }

    #[test]
    fn what_is_in_memory_has_no_device() {
        let shared_memory = Path::new("/dev/shm");
        let mounts = crate::place::mount::read_mountinfo().expect("mounts");
        if super::super::mount_of(shared_memory, &mounts).is_none_or(|mount| mount.kernel_name != "tmpfs") {
            eprintln!("skipped: /dev/shm is no tmpfs");
            return;
        }
        assert!(matches!(raw_read(shared_memory, SHORT), Err(RawSpeedError::InMemory { .. })));
        assert!(matches!(raw_read(Path::new("/dev/null"), SHORT), Err(RawSpeedError::System { .. })));
    }
}
