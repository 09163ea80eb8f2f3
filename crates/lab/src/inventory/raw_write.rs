//! How fast the device alone writes sequentially, and how often it makes a block durable: the ceiling of what a filesystem on it can do.
//!
//! A file without a name is written on the device, past the page cache (O_DIRECT): first to give it its blocks, then again for the
//! measurement, so that no allocation is in it. A named device is never written to.

use super::place::existing;
use super::raw_read::{ALIGNMENT, PIECE_BYTES, RawSpeedError, aligned, filled_file};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a flush is measured with: the smallest block that O_DIRECT takes everywhere.
const BLOCK_BYTES: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RawWrite {
    /// Sequential writes, the sync at their end included.
    pub bytes_per_second: f64,
    /// Blocks that were written and made durable, one after the other.
    pub flushes_per_second: f64,
}

/// Writes and flushes a file on the device under a directory, each for about this long.
///
/// # Errors
/// [`RawSpeedError`]: a reason to print in the figure's place.
pub fn raw_write(directory: &Path, duration: Duration) -> Result<RawWrite, RawSpeedError> {
    let directory = existing(directory).unwrap_or_else(|| directory.to_owned());
    let (file, bytes) = filled_file(&directory, duration)?;
    let measured = write_for(&file, bytes, duration).and_then(|bytes_per_second| {
        Ok(RawWrite { bytes_per_second, flushes_per_second: flush_for(&file, duration)? })
    });
    measured.map_err(|cause| RawSpeedError::System { doing: "write", path: directory.clone(), cause })
}

/// Writes the file's pieces one after the other, again and again. Gives bytes per second.
fn write_for(file: &File, bytes: u64, duration: Duration) -> io::Result<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut buffer = vec![0; PIECE_BYTES + ALIGNMENT];
    let piece = aligned(&mut buffer);
    // Data that cannot be compressed; each piece begins with another number, so that no two are the same.
    random.fill_bytes(piece);
    let started = Instant::now();
    let (mut written, mut offset) = (0_u64, 0);
    while written == 0 || started.elapsed() < duration {
        if offset + PIECE_BYTES as u64 > bytes {
            offset = 0;
        }
        piece[..8].copy_from_slice(&written.to_le_bytes());
        file.write_all_at(piece, offset)?;
        offset += PIECE_BYTES as u64;
        written += PIECE_BYTES as u64;
    }
    file.sync_data()?;
    Ok(written as f64 / started.elapsed().as_secs_f64().max(1e-9))
}

/// Writes a block and makes it durable, again and again. Gives how often a second.
fn flush_for(file: &File, duration: Duration) -> io::Result<f64> {
    let mut buffer = vec![0; PIECE_BYTES + ALIGNMENT];
    let block = &mut aligned(&mut buffer)[..BLOCK_BYTES];
    let started = Instant::now();
    let mut flushes = 0_u64;
    while flushes == 0 || started.elapsed() < duration {
        flushes += 1;
        block[..8].copy_from_slice(&flushes.to_le_bytes());
        file.write_all_at(block, 0)?;
        file.sync_data()?;
    }
    Ok(flushes as f64 / started.elapsed().as_secs_f64().max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_measured_or_a_reason_given_and_nothing_is_left() {
        let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
        match raw_write(directory.path(), Duration::from_millis(20)) {
            Ok(RawWrite { bytes_per_second, flushes_per_second }) => {
                assert!(bytes_per_second > 0.0 && flushes_per_second > 0.0);
                let of_flushes = flushes_per_second * BLOCK_BYTES as f64;
                assert!(of_flushes < 100.0 * bytes_per_second, "{of_flushes} {bytes_per_second}");
            }
            Err(reason) => eprintln!("skipped: failed to {reason}"),
        }
        assert_eq!(std::fs::read_dir(directory.path()).expect("there").count(), 0);
    }

    #[test]
    fn what_is_written_is_at_least_a_piece() {
        let file = tempfile::tempfile().expect("a file");
        assert!(write_for(&file, 3 * PIECE_BYTES as u64, Duration::ZERO).expect("written") > 0.0);
        assert_eq!(file.metadata().expect("there").len(), PIECE_BYTES as u64);
        assert!(flush_for(&file, Duration::ZERO).expect("flushed") > 0.0);
    }
}
