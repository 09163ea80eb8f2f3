//! The kernel's own words about a mount: from the filesystem context, and from its log.

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{Mode, OFlags, SeekFrom, open, seek},
    io::{Errno, read},
};

/// Longest text kept of either source.
const LIMIT_BYTES: usize = 2048;

/// What the kernel wrote into a filesystem context: its errors, then, when there are none, its warnings and notes.
/// Every message starts with its level (`e`, `w` or `i`) and a blank.
pub(super) fn from_context(context: impl AsFd) -> Option<String> {
    let mut messages = Vec::new();
    let mut buffer = [0; 1024];
    // Each read gives one message; ENODATA says that there are no more. The kernel keeps eight.
    for _ in 0..64 {
        match read(context.as_fd(), &mut buffer) {
            Ok(count) if count > 0 => messages.push(String::from_utf8_lossy(&buffer[..count]).trim().to_owned()),
            Err(Errno::INTR) => {}
            _ => break,
        }
    }
    let of_level = |level: &str| {
        let words: Vec<&str> = messages.iter().filter_map(|message| message.strip_prefix(level)).collect();
        (!words.is_empty()).then(|| clipped(words.join("; ")))
    };
    of_level("e ").or_else(|| of_level("w ")).or_else(|| of_level("i "))
}

/// The kernel's log, from now on. Many refusals are told nowhere else.
pub(super) struct KernelLog {
    log: Option<OwnedFd>,
}

impl KernelLog {
    /// Starts to listen; where the log may not be read, nothing will be heard.
    pub(super) fn listen() -> Self {
        let log = open("/dev/kmsg", OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok();
        let log = log.filter(|log| seek(log, SeekFrom::End(0)).is_ok());
        Self { log }
    }

    pub(super) fn heard_about(self, device_name: &str, kernel_name: &str) -> Option<String> {
        let log = self.log?;
        let mut heard = Vec::new();
        let mut buffer = [0; 8192];
        for _ in 0..256 {
            match read(&log, &mut buffer) {
                Ok(count) if count > 0 => {
                    let record = String::from_utf8_lossy(&buffer[..count]).into_owned();
                    if let Some(line) = about(&record, device_name, kernel_name) {
                        heard.push(line);
                    }
                }
                // EPIPE: records were overwritten before we read them; the next read goes on behind.
                Err(Errno::INTR | Errno::PIPE) => {}
                _ => break,
            }
        }
        (!heard.is_empty()).then(|| clipped(heard.join("; ")))
    }
}

/// The text of a log record (`6,1234,5678,-;text\n key=value\n`) when it is about this device and filesystem.
fn about(record: &str, device_name: &str, kernel_name: &str) -> Option<String> {
    let (_, text) = record.split_once(';')?;
    let line = text.lines().next()?.trim();
    let lower = line.to_lowercase();
    // "EXT4-fs (loop0): …", "XFS (loop0): …", "BTRFS error (device loop0 …): …"; ext4 speaks for ext2 and ext3.
    let family = if kernel_name.starts_with("ext") { "ext" } else { kernel_name };
    let names_device = lower.contains(&format!("({device_name})")) || lower.contains(&format!("device {device_name}"));
    (names_device && lower.starts_with(family)).then(|| line.to_owned())
}

fn clipped(mut words: String) -> String {
    words.truncate(words.floor_char_boundary(LIMIT_BYTES));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_records_are_told_apart() {
        let record = "3,1234,5678,-;EXT4-fs (loop0): can't mount with journal_async_commit in data=ordered mode\n SUBSYSTEM=block\n";
        let words = about(record, "loop0", "ext3").expect("about it");
        assert_eq!(words, "EXT4-fs (loop0): can't mount with journal_async_commit in data=ordered mode");
        assert!(about(record, "loop1", "ext4").is_none());
        assert!(about(record, "loop0", "xfs").is_none());
        let btrfs = "3,1,2,-;BTRFS error (device loop0 state M): unrecognized mount option 'x'\n";
        assert!(about(btrfs, "loop0", "btrfs").is_some());
    }
}
