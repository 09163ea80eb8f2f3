//! FITRIM.
#![expect(unsafe_code, reason = "FITRIM is an ioctl that rustix does not have")]

use std::{fs::File, io, os::fd::AsRawFd, path::Path};

/// struct fstrim_range of linux/fs.h.
#[repr(C)]
struct Range {
    start: u64,
    length: u64,
    minimum_length: u64,
}

/// _IOWR('X', 121, struct fstrim_range), the same on every architecture whose ioctl numbers are the generic ones.
const FITRIM: u32 = 0xc018_5879;

pub(super) fn trim(target: &Path) -> io::Result<()> {
    let directory = File::open(target)?;
    let mut range = Range { start: 0, length: u64::MAX, minimum_length: 0 };
    // SAFETY: the kernel reads and writes one fstrim_range at the pointer, which is to a live local of that layout.
    let result = unsafe { libc::ioctl(directory.as_raw_fd(), libc::c_ulong::from(FITRIM) as _, &raw mut range) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
