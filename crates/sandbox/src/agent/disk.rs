#![expect(unsafe_code, reason = "an ioctl")]
//! How long the guest's own disk takes, for a host that gave it a known speed.

use super::tsc::{Stopwatch, facts};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// Requests, at most: a slow disk gets fewer.
const READS: usize = 400;
const TIME: Duration = Duration::from_millis(600);

/// What is so many median deviations above the median was not the disk but a stall of the host.
const STALL: u32 = 6;

#[repr(C, align(4096))]
struct Page([u8; 4096]);

/// Has the kernel forget what it holds of a disk that is not what it was. Nothing of it may be mounted.
///
/// # Errors
/// EACCES without root.
pub fn flush_buffers(device: &File) -> io::Result<()> {
    // BLKFLSBUF, linux/fs.h.
    const FLUSH: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 97);
    // SAFETY: the request takes no argument and gives nothing back.
    let request = unsafe { rustix::ioctl::NoArg::<FLUSH>::new() };
    // SAFETY: the same.
    Ok(unsafe { rustix::ioctl::ioctl(device, request) }?)
}

/// The mean time of a read of 4 KiB off a disk, one at a time, past the guest's cache; without stalls of the host.
pub fn time_of_a_read(device: &Path) -> io::Result<Duration> {
    let mut file = OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(device)?;
    let pages = file.seek(SeekFrom::End(0))? / 4096;
    let mut page = Box::new(Page([0; 4096]));
    let mut times = Vec::with_capacity(READS);
    let watch = Stopwatch::new(facts());
    let begin = watch.started();
    for index in 0..READS as u64 {
        let start = watch.started();
        // Spread over the disk, no two neighbours one after the other; the image of a fresh disk has nothing there.
        file.read_exact_at(&mut page.0, index.wrapping_mul(0x9e37_79b9_7f4a_7c15) % pages.max(1) * 4096)?;
        times.push(start.elapsed());
        if begin.elapsed() > TIME {
            break;
        }
    }
    Ok(mean_without_stalls(times))
}

fn mean_without_stalls(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let Some(&median) = times.get(times.len() / 2) else { return Duration::ZERO };
    let mut deviations: Vec<Duration> = times.iter().map(|time| time.abs_diff(median)).collect();
    deviations.sort_unstable();
    // A disk that always takes the same time has no deviation, and clocks have their grain.
    let usual = deviations[deviations.len() / 2].max(median / 100);
    times.retain(|&time| time <= median + usual * STALL);
    times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_of_the_host_is_not_the_disk() {
        let mut times = vec![Duration::from_micros(1000); 50];
        times.extend(vec![Duration::from_micros(1040); 50]);
        assert_eq!(mean_without_stalls(times.clone()), Duration::from_micros(1020));
        times.extend(vec![Duration::from_millis(3); 30]);
        assert_eq!(mean_without_stalls(times), Duration::from_micros(1020));
        assert_eq!(mean_without_stalls(vec![Duration::from_micros(7); 3]), Duration::from_micros(7));
        assert_eq!(mean_without_stalls(Vec::new()), Duration::ZERO);
    }
}
