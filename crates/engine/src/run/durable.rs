//! Making everything durable: the sync of the filesystems, and a flush of the devices below them.
//!
//! Not every filesystem passes its sync on: ext2, vfat and jfs write to the device and leave the data in its cache, where
//! ext4, xfs and btrfs wait for it to be flushed. Rows could not be compared if some of them ended in a cache, so the
//! device is flushed as well, in every row alike (fsync of a block device, which sends the flush by itself).

use crate::error::LoadError;
use crate::fileset::Files;
use crate::io::kernel;
use fstone_model::workload::FinalSync;
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::path::PathBuf;

/// Filesystems whose sync is known to flush the device itself.
const FLUSH_THEMSELVES: [&str; 7] = ["ext3", "ext4", "xfs", "btrfs", "f2fs", "nilfs2", "bcachefs"];

/// Whether a filesystem may write data back when a file is closed, which makes closing part of the load's work: the filesystems that have a
/// `flush` operation in the kernel, by their magic numbers in statfs(2).
pub(super) fn writes_back_at_close(files: &Files) -> bool {
    const NUMBERS: [u32; 11] = [
        0x6969,      // NFS
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB2
        0x6573_5546, // FUSE
        0x0102_1997, // 9P
        0x00c3_6400, // Ceph
        0x5346_414f, // AFS
        0x7375_7245, // Coda
        0x0bd0_0bd0, // Lustre
        0x794c_7630, // overlayfs, which passes it on
        0xf15f,      // eCryptfs
    ];
    files.device.is_none()
        && rustix::fs::fstatfs(files.directory()).is_ok_and(|stat| NUMBERS.contains(&(stat.f_type as u32)))
}

#[derive(Debug)]
struct Device {
    path: PathBuf,
    /// Open for reading, which is all that a flush needs; or why not.
    opened: Result<OwnedFd, Errno>,
}

#[derive(Debug)]
struct Filesystem {
    fileset: usize,
    device: Option<Device>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyncError {
    pub(super) fileset: usize,
    pub(super) call: &'static str,
    pub(super) path: PathBuf,
    pub(super) errno: Errno,
}

/// The filesystems of a load and their devices, found ahead of the interval.
#[derive(Debug, Default)]
pub(super) struct Durable {
    filesystems: Vec<Filesystem>,
    pub(super) warnings: Vec<String>,
}

impl Durable {
    pub(super) fn find<'f>(filesets: impl Iterator<Item = (usize, &'f Files)>) -> Result<Self, LoadError> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut found = Self::default();
        let mut seen = Vec::new();
        for (fileset, files) in filesets {
            if let Some(device) = &files.device {
                // fsync of the device alone: the filesystem that its node is in has nothing to do with it.
                let opened = device.try_clone().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
                let device = Device { path: files.spec.naming.file_prefix.clone().into(), opened };
                found.filesystems.push(Filesystem { fileset, device: Some(device) });
                continue;
            }
            let stat = rustix::fs::fstat(files.directory())
                .map_err(|errno| LoadError::Directory { path: files.spec.directory.clone().into(), errno })?;
            if seen.contains(&stat.st_dev) {
                continue;
            }
            seen.push(stat.st_dev);
            let mount = mount_of(&mounts, stat.st_dev);
            let device = device_of(stat.st_dev, mount.as_ref().map(|mount| mount.source));
            let kind = mount.map_or("", |mount| mount.kind);
            if let Some(Device { path, opened: Err(errno) }) = &device
                && !FLUSH_THEMSELVES.contains(&kind)
            {
                found.warnings.push(format!(
                    "the final sync may end in the cache of {}, which cannot be flushed ({}); run as root to have it flushed",
                    path.display(),
                    crate::errno::describe(*errno)
                ));
            }
            found.filesystems.push(Filesystem { fileset, device });
        }
        Ok(found)
    }

    pub(super) fn sync(&self, files: &[Files], how: FinalSync) -> Result<(), SyncError> {
        if how == FinalSync::Everything {
            rustix::fs::sync();
        } else {
            for filesystem in &self.filesystems {
                let files = &files[filesystem.fileset];
                if files.device.is_some() {
                    continue;
                }
                kernel::syncfs(files.directory()).map_err(|errno| SyncError {
                    fileset: filesystem.fileset,
                    call: "syncfs",
                    path: files.spec.directory.clone().into(),
                    errno,
                })?;
            }
        }
        for filesystem in &self.filesystems {
            let Some(Device { path, opened: Ok(opened) }) = &filesystem.device else { continue };
            rustix::io::retry_on_intr(|| rustix::fs::fsync(opened)).map_err(|errno| SyncError {
                fileset: filesystem.fileset,
                call: "fsync",
                path: path.clone(),
                errno,
            })?;
        }
        Ok(())
    }
}

/// A line of mountinfo, as far as it is asked.
struct Mount<'m> {
    kind: &'m str,
    source: &'m str,
}

/// proc_pid_mountinfo(5): `36 35 98:0 /root /target rw,noatime master:1 - ext3 /dev/root rw,errors=continue`, with any
/// number of fields before the `-`.
fn mount_of(mounts: &str, device: u64) -> Option<Mount<'_>> {
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    mounts.lines().find_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let mut fields = back.split(' ');
        (front.split(' ').nth(2)? == number).then_some(Mount { kind: fields.next()?, source: fields.next()? })
    })
}

/// The block device of a filesystem: the one with its number, or, where the number is the filesystem's own (btrfs), the
/// one it was mounted from. None for filesystems without one.
fn device_of(number: u64, source: Option<&str>) -> Option<Device> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let event = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/uevent")).unwrap_or_default();
    let named = event.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(|name| format!("/dev/{name}"));
    let candidates = [named.as_deref(), source.filter(|source| source.starts_with('/'))];
    candidates.into_iter().flatten().map(PathBuf::from).find_map(|path| {
        let stat = rustix::fs::stat(&path).ok()?;
        let is_block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
        let fits = is_block && (stat.st_rdev == number || major == 0);
        let opened = || {
            let opened = rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
            // What was looked at is what was opened.
            match rustix::fs::fstat(&opened)?.st_rdev == stat.st_rdev {
                true => Ok(opened),
                false => Err(Errno::NODEV),
            }
        };
        fits.then(|| Device { opened: opened(), path: path.clone() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_number() {
        let text = "21 1 8:2 / / rw shared:1 - ext4 /dev/sda2 rw\n40 21 0:35 / /b rw - btrfs /dev/sdb1 rw\n";
        let mount = mount_of(text, rustix::fs::makedev(0, 35)).expect("it is there");
        assert_eq!((mount.kind, mount.source), ("btrfs", "/dev/sdb1"));
        assert!(mount_of(text, rustix::fs::makedev(8, 3)).is_none());
    }

    #[test]
    fn memory_has_no_device() {
        let place = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
        let number = rustix::fs::stat(place.path()).expect("it is there").st_dev;
        assert!(device_of(number, Some("tmpfs")).is_none());
    }
}
