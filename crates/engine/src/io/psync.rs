//! pread, pwrite and the other plain system calls.

use super::{Fd, Result, Setup, TransferFlags, kernel};

#[derive(Debug)]
pub(crate) struct Psync {
    flags: TransferFlags,
}

impl Psync {
    pub(super) fn new(setup: &Setup) -> Self {
        Self { flags: setup.flags }
    }

    #[inline]
    pub(super) fn read(&mut self, fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
        match self.flags.read {
            0 => kernel::read(fd, buffer, offset),
            flags => kernel::read_with(fd, buffer, offset, flags),
        }
    }

    #[inline]
    pub(super) fn write(&mut self, fd: Fd, data: &[u8], offset: u64) -> Result<usize> {
        match self.flags.write {
            0 => kernel::write(fd, data, offset),
            flags => kernel::write_with(fd, data, offset, flags),
        }
    }
}
