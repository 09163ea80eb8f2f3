//! The device under the work directory, or a named one, and its queue, from sysfs.

use super::place::{existing, mount_of};
use super::text;
use crate::meters::DeviceNumber;
use crate::place::mount::{MountEntry, read_mountinfo};
use fstone_model::inventory::DeviceFacts;
use std::fs;
use std::path::{Path, PathBuf};

/// Sectors of `size` in sysfs, whatever the device's own are.
const SECTOR_BYTES: u64 = 512;

/// The named device, or the one that holds the work directory; where there is no block device beneath (tmpfs, network,
/// overlay), the filesystem.
pub(super) fn facts(work_directory: &Path, device: Option<&Path>) -> Option<DeviceFacts> {
    if let Some(sysfs) = device.and_then(DeviceNumber::of).and_then(DeviceNumber::sysfs) {
        return Some(of_sysfs(&sysfs));
    }
    let directory = existing(work_directory)?;
    let mounts = read_mountinfo().unwrap_or_default();
    let mount = mount_of(&directory, &mounts);
    let facts = device_of(&directory, mount).and_then(DeviceNumber::sysfs).map(|sysfs| of_sysfs(&sysfs));
    let facts = facts.unwrap_or_else(|| DeviceFacts {
        name: mount.map_or_else(String::new, |mount| text::clean(&mount.source)),
        size_bytes: rustix::fs::statvfs(&directory).map_or(0, |space| space.f_blocks.saturating_mul(space.f_frsize)),
        ..DeviceFacts::default()
    });
    Some(DeviceFacts { backing_filesystem: mount.map(|mount| text::clean(&mount.kernel_name)), ..facts })
}

/// The block device that holds a directory: by the directory's own device number, or, where a filesystem has an
/// anonymous one (btrfs), by what was mounted.
pub(super) fn device_of(directory: &Path, mount: Option<&MountEntry>) -> Option<DeviceNumber> {
    let own = DeviceNumber::holding(directory).filter(|number| number.sysfs().is_some());
    own.or_else(|| DeviceNumber::of(Path::new(&mount?.source)))
}

pub(super) fn node_of(directory: &Path) -> Option<PathBuf> {
    let mounts = read_mountinfo().unwrap_or_default();
    let sysfs = device_of(directory, mount_of(directory, &mounts))?.sysfs()?;
    let node = Path::new("/dev").join(sysfs.file_name()?.to_str()?.replace('!', "/"));
    node.exists().then_some(node)
}

/// What a directory of sysfs tells about a block device. A partition has the queue of its disk.
fn of_sysfs(directory: &Path) -> DeviceFacts {
    let disk = if directory.join("partition").exists() { directory.parent().unwrap_or(directory) } else { directory };
    let name = directory.file_name().unwrap_or_default().to_string_lossy().replace('!', "/");
    let sectors = text::read_line(&directory.join("size")).and_then(|line| line.parse::<u64>().ok()).unwrap_or(0);
    let mut queue = settings(&disk.join("queue"), "");
    queue.extend(settings(&disk.join("queue/iosched"), "iosched/"));
    // What is beneath a device that is not a disk itself.
    queue.extend(settings(&disk.join("loop"), "loop/"));
    queue.extend(settings(&disk.join("dm"), "dm/"));
    let beneath = names(&disk.join("slaves"));
    if !beneath.is_empty() {
        queue.push(("slaves".to_owned(), beneath.join(" ")));
    }
    DeviceFacts {
        name,
        model: text::read_line(&disk.join("device/model")),
        size_bytes: sectors.saturating_mul(SECTOR_BYTES),
        backing_filesystem: None,
        queue,
    }
}

/// Every readable file of a directory as (prefix + name, value), by name. Directories are passed over.
fn settings(directory: &Path, prefix: &str) -> Vec<(String, String)> {
    let value = |name: String| {
        let path = directory.join(&name);
        if !path.is_file() {
            return None;
        }
        Some((format!("{prefix}{name}"), text::read_line(&path)?))
    };
    names(directory).into_iter().filter_map(value).collect()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        for (path, content) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, content).expect("written");
        }
        directory
    }

    #[test]
    fn a_partition_has_the_queue_of_its_disk() {
        let sysfs = tree(&[
            ("sda/queue/scheduler", "none [mq-deadline] bfq\n"),
            ("sda/queue/rotational", "1\n"),
            ("sda/queue/empty", "\n"),
            ("sda/queue/iosched/fifo_batch", "16\n"),
            ("sda/device/model", "WDC WD10\u{1b}[2J   \n"),
            ("sda/size", "4000\n"),
            ("sda/sda1/partition", "1\n"),
            ("sda/sda1/size", "2000\n"),
        ]);
        let facts = of_sysfs(&sysfs.path().join("sda/sda1"));
        assert_eq!((facts.name.as_str(), facts.size_bytes), ("sda1", 2000 * 512));
        assert_eq!(facts.model.as_deref(), Some("WDC WD10 [2J"), "nothing that a terminal obeys");
        let queue: Vec<(&str, &str)> = facts.queue.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(queue, [("rotational", "1"), ("scheduler", "none [mq-deadline] bfq"), ("iosched/fifo_batch", "16")]);
    }

    #[test]
    fn devices_made_of_others_name_them() {
        let sysfs = tree(&[
            ("dm-0/size", "rubbish"),
            ("dm-0/dm/name", "vg-lv\n"),
            ("dm-0/slaves/sdb1/x", ""),
            ("dm-0/slaves/sda1/x", ""),
            ("loop3/loop/backing_file", "/var/tmp/image\n"),
            ("cciss!c0d0/size", "8"),
        ]);
        let of = |name: &str| of_sysfs(&sysfs.path().join(name));
        let dm = of("dm-0");
        assert_eq!(dm.size_bytes, 0);
        assert!(dm.queue.contains(&("dm/name".into(), "vg-lv".into())), "{dm:?}");
        assert!(dm.queue.contains(&("slaves".into(), "sda1 sdb1".into())), "{dm:?}");
        assert!(of("loop3").queue.contains(&("loop/backing_file".into(), "/var/tmp/image".into())));
        assert_eq!((of("cciss!c0d0").name.as_str(), of("cciss!c0d0").size_bytes), ("cciss/c0d0", 4096));
    }

    #[test]
    fn a_filesystem_without_a_device_stands_for_itself() {
        let facts = facts(Path::new("/proc/self"), None).expect("a filesystem");
        assert_eq!(facts.backing_filesystem.as_deref(), Some("proc"));
        assert_eq!((facts.name.as_str(), facts.queue.len()), ("proc", 0));
    }
}
