//! BLKDISCARD.
#![expect(unsafe_code, reason = "BLKDISCARD is an ioctl that rustix does not have")]

use std::{fs::File, io, os::fd::AsRawFd};

/// _IO(0x12, 119), the same on every architecture whose ioctl numbers are the generic ones.
const BLKDISCARD: u32 = 0x1277;

pub(super) fn all(device: &File, bytes: u64) -> io::Result<()> {
    let range = [0u64, bytes];
    // SAFETY: the kernel reads two u64 at the pointer, which is to a live local of that type.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), libc::c_ulong::from(BLKDISCARD) as _, range.as_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
