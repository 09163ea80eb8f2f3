//! Loop devices, through LOOP_CONFIGURE.
#![expect(unsafe_code, reason = "the loop driver speaks by ioctl")]

use super::{FileId, split_number};
use linux_raw_sys::loop_device::{
    LO_FLAGS_AUTOCLEAR, LO_FLAGS_DIRECT_IO, LOOP_CONFIGURE, LOOP_CTL_GET_FREE, LOOP_GET_STATUS64, LOOP_SET_CAPACITY,
    loop_config, loop_info64,
};
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::fd::{AsRawFd, RawFd},
    path::PathBuf,
    thread::sleep,
    time::{Duration, Instant},
};

/// How long requests that a device has accepted are waited for.
const SETTLE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopSettings {
    pub sector_bytes: u32,
    /// Whether it bypasses the page cache of the filesystem below.
    pub direct_io: bool,
}

/// What keeps a loop device attached.
#[derive(Debug)]
pub struct LoopHandle {
    _open: Box<dyn std::fmt::Debug + Send + Sync>,
}

impl LoopHandle {
    pub(super) fn of(open: impl std::fmt::Debug + Send + Sync + 'static) -> Self {
        Self { _open: Box::new(open) }
    }
}

pub(super) fn path_of(index: u32) -> PathBuf {
    PathBuf::from(format!("/dev/loop{index}"))
}

fn control() -> io::Result<File> {
    let path = "/dev/loop-control";
    OpenOptions::new().read(true).write(true).open(path).map_err(|error| named(path, &error))
}

fn open(index: u32) -> io::Result<File> {
    let path = path_of(index);
    OpenOptions::new().read(true).write(true).open(&path).map_err(|error| named(&path.display().to_string(), &error))
}

fn named(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path}: {error}"))
}

fn check(result: libc::c_int) -> io::Result<u32> {
    u32::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn plain_ioctl(file: &File, request: u32) -> io::Result<u32> {
    // SAFETY: the requests this is used for take no pointer.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::c_ulong::from(request) as _, 0) })
}

pub(super) fn free() -> io::Result<u32> {
    plain_ioctl(&control()?, LOOP_CTL_GET_FREE)
}

/// Attaches the very file that is open, whatever its path leads to by now. The device, open: when that is closed, and
/// nothing else uses the device, the kernel detaches it.
pub(super) fn attach(index: u32, image: &File, settings: LoopSettings) -> io::Result<File> {
    let device = open(index)?;
    // SAFETY: loop_config is plain data for which all zeroes are valid, and mean "default".
    let mut config: loop_config = unsafe { std::mem::zeroed() };
    config.fd = RawFd::cast_unsigned(image.as_raw_fd());
    config.block_size = settings.sector_bytes;
    config.info.lo_flags |= LO_FLAGS_AUTOCLEAR as u32;
    if settings.direct_io {
        config.info.lo_flags |= LO_FLAGS_DIRECT_IO as u32;
    }
    // SAFETY: the kernel reads one loop_config from the pointer, which is to a live local of that type.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::c_ulong::from(LOOP_CONFIGURE) as _, &raw const config) })?;
    if settings.direct_io {
        // The kernel falls back to buffered I/O without a word where the filesystem below cannot do direct I/O.
        let flag = std::fs::read_to_string(format!("/sys/block/loop{index}/loop/dio"))?;
        if flag.trim() != "1" {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the filesystem that holds the image cannot do direct I/O (device = { loop = { direct-io = false } })",
            ));
        }
    }
    Ok(device)
}

pub(super) fn backing(index: u32) -> io::Result<Option<FileId>> {
    let device = match open(index) {
        Ok(device) => device,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    behind(&device)
}

fn behind(device: &File) -> io::Result<Option<FileId>> {
    // SAFETY: loop_info64 is plain data for which all zeroes are valid.
    let mut info: loop_info64 = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one loop_info64 to the pointer, which is to a live local of that type.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), libc::c_ulong::from(LOOP_GET_STATUS64) as _, &raw mut info) };
    match check(result) {
        // The loop driver reports devices in the kernel's "huge" encoding, which is that of st_dev.
        Ok(_) => Ok(Some(FileId { device: split_number(info.lo_device), inode: info.lo_inode })),
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A loop device that has this image behind it, open.
///
/// As long as it is open nobody can put another image behind it: LOOP_CLR_FD only marks a device that somebody else has
/// open, LOOP_CONFIGURE refuses one that is in use, and LOOP_CHANGE_FD one that can be written. So what is then asked
/// of this descriptor is asked of our image's device, and not of one that took its number after a look at it.
fn open_with(index: u32, image: FileId) -> io::Result<Option<File>> {
    let device = match open(index) {
        Ok(device) => device,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok((behind(&device)? == Some(image)).then_some(device))
}

/// The device is as large as its file from here on. What it had accepted before is written before this returns, unless that takes
/// unreasonably long.
pub(super) fn take_over_size(index: u32, image: FileId) -> io::Result<()> {
    let Some(device) = open_with(index, image)? else { return Ok(()) };
    plain_ioctl(&device, LOOP_SET_CAPACITY)?;
    let in_flight = || fs::read_to_string(format!("/sys/block/loop{index}/inflight"));
    let since = Instant::now();
    while since.elapsed() < SETTLE && in_flight()?.split_ascii_whitespace().any(|count| count != "0") {
        sleep(Duration::from_millis(1));
    }
    Ok(())
}
