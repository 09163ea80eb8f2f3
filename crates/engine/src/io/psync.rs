//! pread, pwrite and the other plain system calls; and fallocate in place of pwrite.

use super::plain::plain;
use super::{Fd, Io, Result, Setup, SetupError, Space, TransferFlags, kernel};
use fstone_model::workload::IoEngineKind;

/// In place of the flags of writes: they allocate. No flag of the kernel's.
const ALLOCATES: u32 = 1 << 31;

#[derive(Debug)]
pub(crate) struct Psync {
    flags: TransferFlags,
}

impl Io for Psync {
    const REAL: bool = true;

    plain! {
        open close truncate fsync fdatasync advise syncfs fallocate stat unlink rename link symlink mkdir
        rmdir chmod utimens setxattr getxattr copy_file_range reflink list
    }

    fn new(setup: Setup) -> std::result::Result<Self, SetupError> {
        let write = if setup.engine == IoEngineKind::Falloc { ALLOCATES } else { setup.flags.write };
        Ok(Self { flags: TransferFlags { write, ..setup.flags } })
    }

    #[inline]
    fn read(&mut self, fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
        match self.flags.read {
            0 => kernel::read(fd, buffer, offset),
            flags => kernel::read_with(fd, buffer, offset, flags),
        }
    }

    #[inline]
    fn write(&mut self, fd: Fd, data: &[u8], offset: u64) -> Result<usize> {
        match self.flags.write {
            0 => kernel::write(fd, data, offset),
            ALLOCATES => kernel::fallocate(fd, (offset, data.len() as u64), Space::Allocated).map(|()| data.len()),
            flags => kernel::write_with(fd, data, offset, flags),
        }
    }
}
