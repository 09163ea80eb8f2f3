//! The real devices.

use super::{
    BlockFacts, DeviceLock, Devices, FileId, LoopHandle, LoopSettings, Refusal, Sampled, Space, discard, facts, loops,
    sample::{mark, sample},
    split_number, zram,
};
use rustix::fs::{Mode, OFlags, open, statvfs};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
};

/// How much of both ends of a device is overwritten: every signature that blkid knows lies within.
const SIGNATURES_BYTES: u64 = 1 << 20;

#[derive(Debug, Default)]
pub struct KernelDevices;

impl Devices for KernelDevices {
    fn free_loop(&self) -> io::Result<u32> {
        loops::free()
    }

    fn attach_loop(&self, index: u32, image: &File, settings: LoopSettings) -> io::Result<LoopHandle> {
        loops::attach(index, image, settings).map(LoopHandle::of)
    }

    fn loop_backing(&self, index: u32) -> io::Result<Option<FileId>> {
        loops::backing(index)
    }

    fn forget_loop_size(&self, index: u32, image: FileId) -> io::Result<()> {
        loops::take_over_size(index, image)
    }

    fn zrams(&self) -> io::Result<Vec<(u32, u64)>> {
        zram::list()
    }

    fn add_zram(&self) -> io::Result<u32> {
        zram::add()
    }

    fn size_zram(&self, index: u32, size_bytes: u64) -> io::Result<()> {
        zram::set_size(index, size_bytes)
    }

    fn remove_zram(&self, index: u32) -> io::Result<()> {
        zram::remove(index)
    }

    fn facts(&self, path: &Path) -> io::Result<BlockFacts> {
        facts::gather(path)
    }

    fn lock(&self, path: &Path, number: (u32, u32)) -> Result<DeviceLock, Refusal> {
        DeviceLock::take(path, number)
    }

    fn hold(&self, path: &Path, number: (u32, u32)) -> Result<DeviceLock, Refusal> {
        DeviceLock::hold(path, number)
    }

    fn queue_setting(&self, device: (u32, u32), name: &str) -> io::Result<String> {
        let text = fs::read_to_string(setting(device, name)?)?;
        let text = text.trim();
        // "none [mq-deadline]": the one in brackets is in force.
        let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
        Ok(chosen.unwrap_or(text).to_owned())
    }

    fn set_queue_setting(&self, device: (u32, u32), name: &str, value: &str) -> io::Result<()> {
        fs::write(setting(device, name)?, value)
    }

    fn erase_signatures(&self, path: &Path, device: (u32, u32)) -> io::Result<()> {
        let file = open_numbered(path, OFlags::RDWR | OFlags::EXCL, device)?;
        let (size, end) = ends(&file)?;
        let content = vec![0; usize::try_from(end).unwrap_or(0)];
        file.write_all_at(&content, size - end)?;
        file.write_all_at(&content, 0)?;
        file.sync_all()?;
        mark(&file, size)?;
        file.sync_all()
    }

    fn read_ends(&self, path: &Path, device: (u32, u32)) -> io::Result<()> {
        let file = open_numbered(path, OFlags::RDONLY, device)?;
        let (size, end) = ends(&file)?;
        let mut buffer = vec![0; usize::try_from(end).unwrap_or(0)];
        file.read_exact_at(&mut buffer, 0)?;
        file.read_exact_at(&mut buffer, size - end)
    }

    fn sample(&self, path: &Path, device: (u32, u32)) -> io::Result<Option<Sampled>> {
        let file = open_numbered(path, OFlags::RDONLY, device)?;
        let (size, _) = ends(&file)?;
        sample(&file, size)
    }

    fn discard(&self, path: &Path, device: (u32, u32)) -> io::Result<bool> {
        let file = open_numbered(path, OFlags::WRONLY | OFlags::EXCL, device)?;
        let (size, _) = ends(&file)?;
        match discard::all(&file, size) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let facts = statvfs(path)?;
        Ok(Space { free_bytes: facts.f_bavail * facts.f_frsize, total_bytes: facts.f_blocks * facts.f_frsize })
    }
}

/// Opens a device that was examined before. What is opened is looked at, and what was looked at is used: one descriptor, no
/// path in between.
fn open_numbered(path: &Path, flags: OFlags, device: (u32, u32)) -> io::Result<File> {
    let file = File::from(open(path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())?);
    if split_number(file.metadata()?.rdev()) == device {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::NotFound, "another device has taken its path"))
    }
}

/// The size of an open device, and how much of each end holds signatures.
fn ends(file: &File) -> io::Result<(u64, u64)> {
    let size = rustix::fs::seek(file, rustix::fs::SeekFrom::End(0))?;
    Ok((size, size.min(SIGNATURES_BYTES)))
}

/// The file of a queue setting; of the whole disk's queue for a partition.
fn setting(device: (u32, u32), name: &str) -> io::Result<PathBuf> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is not a name of a queue setting")));
    }
    let sysfs = facts::sysfs(device);
    let disk = if sysfs.join("partition").exists() { sysfs.parent().unwrap_or(&sysfs) } else { &sysfs };
    let path = disk.join("queue").join(name);
    if path.exists() {
        Ok(path)
    } else {
        Err(io::Error::new(io::ErrorKind::NotFound, format!("{}: this device has no such setting", path.display())))
    }
}
