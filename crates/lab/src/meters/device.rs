//! What a block device did, from its `stat` in sysfs (Documentation/block/stat.rst).
//!
//! The counters go on over the device's whole life (a loop device's over several images), so only differences mean
//! anything. Sectors are 512 bytes there, whatever the device's own are.

use fstone_sandbox::vhost::MARK_PREFIX;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceNumber {
    pub major: u32,
    pub minor: u32,
}

impl DeviceNumber {
    /// The number of the block device at a path; `None` when there is none.
    pub fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        metadata.file_type().is_block_device().then(|| Self::from_raw(metadata.rdev()))
    }

    /// The number of the device that holds a file or directory. Filesystems that are on no block device, or on
    /// several (btrfs), have an anonymous number, of which sysfs knows nothing.
    pub fn holding(path: &Path) -> Option<Self> {
        Some(Self::from_raw(fs::metadata(path).ok()?.dev()))
    }

    pub fn from_raw(raw: u64) -> Self {
        Self { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
    }

    /// In a guest, sets a mark on the host's side of the disk, which remembers what it has counted until then.
    pub(super) fn mark(self) -> Option<u64> {
        Marker::of(self)?.mark()
    }

    /// Its directory in sysfs; `None` when sysfs does not know it.
    pub fn sysfs(self) -> Option<PathBuf> {
        fs::canonicalize(format!("/sys/dev/block/{}:{}", self.major, self.minor)).ok()
    }
}

#[derive(Debug)]
pub(crate) struct Marker {
    serial: File,
}

impl Marker {
    /// Of this device; `None` outside of a guest, and for a device that has no name to ask for.
    pub(super) fn of(device: DeviceNumber) -> Option<Self> {
        if !fstone_sandbox::agent::is_guest() {
            return None;
        }
        let serial = File::open(device.sysfs()?.join("serial")).ok()?;
        Some(Self { serial })
    }

    /// Sets a mark and gives its number. One system call: whoever sets many delays the load that they are about.
    pub(crate) fn mark(&self) -> Option<u64> {
        let mut name = [0; 64];
        // Every read from the beginning asks the disk anew.
        let length = self.serial.read_at(&mut name, 0).ok()?;
        let name = std::str::from_utf8(&name[..length]).ok()?;
        name.trim_matches(|c: char| c.is_whitespace() || c == '\0').strip_prefix(MARK_PREFIX)?.parse().ok()
    }
}

/// Requests that a device completed, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    /// Discards; `None` before Linux 4.18.
    pub discards: Option<u64>,
    pub discarded_bytes: Option<u64>,
    /// Flushes; `None` before Linux 5.5, and of partitions: the kernel counts those with the whole disk only.
    pub flushes: Option<u64>,
}

impl DeviceCounters {
    /// As of now; `None` when sysfs does not tell.
    pub fn read(device: DeviceNumber) -> Option<Self> {
        let directory = device.sysfs()?;
        let mut counters = Self::parse(&fs::read_to_string(directory.join("stat")).ok()?)?;
        if directory.join("partition").exists() {
            counters.flushes = None;
        }
        Some(counters)
    }

    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> =
            text.split_ascii_whitespace().map(str::parse).collect::<Result<_, std::num::ParseIntError>>().ok()?;
        // For reads, writes and discards: requests, of which merged, sectors, milliseconds. Three more fields stand
        // between writes and discards: in flight, and two times.
        let bytes = |index: usize| fields.get(index)?.checked_mul(SECTOR_BYTES);
        Some(Self {
            reads: *fields.first()?,
            read_bytes: bytes(2)?,
            writes: *fields.get(4)?,
            written_bytes: bytes(6)?,
            discards: fields.get(11).copied(),
            discarded_bytes: bytes(13),
            flushes: fields.get(15).copied(),
        })
    }

    /// What was added since an earlier reading; `None` when a counter went back: it is not the same device any more.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let optional = |now: Option<u64>, then: Option<u64>| match (now, then) {
            (Some(now), Some(then)) => now.checked_sub(then).map(Some),
            _ => Some(None),
        };
        Some(Self {
            reads: self.reads.checked_sub(earlier.reads)?,
            read_bytes: self.read_bytes.checked_sub(earlier.read_bytes)?,
            writes: self.writes.checked_sub(earlier.writes)?,
            written_bytes: self.written_bytes.checked_sub(earlier.written_bytes)?,
            discards: optional(self.discards, earlier.discards)?,
            discarded_bytes: optional(self.discarded_bytes, earlier.discarded_bytes)?,
            flushes: optional(self.flushes, earlier.flushes)?,
        })
    }

    /// The sum of two intervals; what one of them does not know, it does not know either.
    pub fn plus(&self, other: &Self) -> Self {
        let optional = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        Self {
            reads: self.reads.saturating_add(other.reads),
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            writes: self.writes.saturating_add(other.writes),
            written_bytes: self.written_bytes.saturating_add(other.written_bytes),
            discards: optional(self.discards, other.discards),
            discarded_bytes: optional(self.discarded_bytes, other.discarded_bytes),
            flushes: optional(self.flushes, other.flushes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::process::Command;

    const RECORDED: &str = "     139        0     2774       19       36       92     9438       14        0       88 \
                            \t  93       16       14   385360       49       15        9\n";

    #[test]
    fn a_recorded_text_is_read() {
        let counters = DeviceCounters::parse(RECORDED).expect("a stat");
        let expected = DeviceCounters {
            reads: 139,
            read_bytes: 2774 * 512,
            writes: 36,
            written_bytes: 9438 * 512,
            discards: Some(16),
            discarded_bytes: Some(385_360 * 512),
            flushes: Some(15),
        };
        assert_eq!(counters, expected);
        let old = DeviceCounters::parse("1 2 3 4 5 6 7 8 9 10 11\n").expect("the stat of an old kernel");
        assert_eq!((old.written_bytes, old.discards, old.discarded_bytes, old.flushes), (7 * 512, None, None, None));
    }

    #[test]
    fn hostile_and_short_texts_are_not() {
        for text in ["", "1 2 3 4 5 6", "a b c d e f g h", "1 2 -3 4 5 6 7", "1 2 18446744073709551615 4 5 6 7"] {
            assert_eq!(DeviceCounters::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_difference_needs_counters_that_go_on() {
        let earlier = DeviceCounters { writes: 5, flushes: Some(2), ..DeviceCounters::default() };
        let later = DeviceCounters { writes: 7, flushes: Some(2), ..DeviceCounters::default() };
        let since = later.since(&earlier).expect("the same device");
        assert_eq!((since.writes, since.flushes, since.discards), (2, Some(0), None));
        assert_eq!(earlier.since(&later), None, "another device by now");
    }

    #[test]
    fn only_block_devices_have_a_number() {
        assert_eq!(DeviceNumber::of(Path::new("/dev/null")), None);
        assert_eq!(DeviceNumber::of(Path::new("/nonexistent")), None);
        assert_eq!(DeviceNumber::of(Path::new("/")), None);
        assert!(DeviceNumber::holding(Path::new("/")).is_some());
    }

    struct Loop(String);

    impl Drop for Loop {
        fn drop(&mut self) {
            let detached = Command::new("losetup").args(["-d", &self.0]).status();
            assert!(detached.is_ok_and(|status| status.success()), "failed to detach {}", self.0);
        }
    }

    /// The oracle: what is written to a raw device with O_SYNC is known to the byte.
    #[test]
    fn a_loop_device_counts_what_is_written_to_it() {
        const BYTES: usize = 1 << 20;
        let image = tempfile::NamedTempFile::new().expect("an image");
        image.as_file().set_len(4 << 20).expect("a size");
        let attached = Command::new("losetup").args(["-f", "--show"]).arg(image.path()).output();
        let device = match attached {
            Ok(output) if output.status.success() => Loop(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            other => {
                eprintln!("skipped: no loop device can be made here ({other:?})");
                return;
            }
        };
        let number = DeviceNumber::of(Path::new(&device.0)).expect("a block device");
        let begin = DeviceCounters::read(number).expect("its counters");
        let mut file = OpenOptions::new().write(true).open(&device.0).expect("opened");
        file.write_all(&vec![1; BYTES]).expect("written");
        file.sync_all().expect("synced");
        drop(file);
        let since = DeviceCounters::read(number).and_then(|end| end.since(&begin)).expect("its counters");
        assert_eq!(since.written_bytes, BYTES as u64);
        assert!(since.writes > 0);
        assert!(since.flushes.is_none_or(|flushes| flushes > 0), "{since:?}");
    }
}
