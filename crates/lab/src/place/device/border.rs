//! The border to the kernel.

use super::{BlockFacts, DeviceLock, FileId, LoopHandle, LoopSettings, Refusal, Sampled};
use std::{fs::File, io, path::Path};

/// What the lab asks of the kernel about devices.
pub trait Devices: Send + Sync {
    /// A loop device that is free now. It may be taken by the time it is attached.
    ///
    /// # Errors
    /// The errno of the control device.
    fn free_loop(&self) -> io::Result<u32>;

    /// Attaches an image to a free loop device: the file that is open, whatever its path leads to by now. The kernel
    /// detaches it when the last who uses it lets go: mounts, and who holds what this gives.
    ///
    /// # Errors
    /// EBUSY when somebody else was faster; else what the kernel says.
    fn attach_loop(&self, index: u32, image: &File, settings: LoopSettings) -> io::Result<LoopHandle>;

    /// The file behind a loop device; `None` when it is free.
    fn loop_backing(&self, index: u32) -> io::Result<Option<FileId>>;

    /// Makes a loop device take over the size that its image has now; does nothing when another image, or none, is
    /// behind it. Writes beyond it fail.
    fn forget_loop_size(&self, index: u32, image: FileId) -> io::Result<()>;

    /// Every zram device there is, with its size; 0 when it has none yet.
    fn zrams(&self) -> io::Result<Vec<(u32, u64)>>;

    /// Makes a new zram device, without a size.
    fn add_zram(&self) -> io::Result<u32>;

    /// Gives a new zram device its size.
    fn size_zram(&self, index: u32, size_bytes: u64) -> io::Result<()>;

    /// Removes a zram device and what is on it.
    fn remove_zram(&self, index: u32) -> io::Result<()>;

    /// What can be found out about a path that is to be formatted.
    ///
    /// # Errors
    /// What the kernel says; that the path is not there is a fact, not an error.
    fn facts(&self, path: &Path) -> io::Result<BlockFacts>;

    /// Keeps other runs from a named device, and the kernel from giving its number to another.
    ///
    /// # Errors
    /// [`Refusal::Locked`] with the holder; [`Refusal::Changed`] when the path leads to a device of another number; what
    /// an open gives.
    fn lock(&self, path: &Path, number: (u32, u32)) -> Result<DeviceLock, Refusal>;

    /// Opens a device exclusively, so that nothing else can until this is dropped: no mount, no swap, no other mkfs.
    ///
    /// # Errors
    /// [`Refusal::InUse`]; [`Refusal::Changed`] when the path leads to a device of another number.
    fn hold(&self, path: &Path, number: (u32, u32)) -> Result<DeviceLock, Refusal>;

    /// A setting of a device's queue ("scheduler"), as it can be written back.
    ///
    /// # Errors
    /// NotFound when there is no such setting.
    fn queue_setting(&self, device: (u32, u32), name: &str) -> io::Result<String>;

    /// Changes it.
    fn set_queue_setting(&self, device: (u32, u32), name: &str, value: &str) -> io::Result<()>;

    /// Overwrites both ends of a block device, where signatures are, opened exclusively, and marks it as used by trials.
    ///
    /// # Errors
    /// EBUSY when it is in use; else what the kernel says.
    fn erase_signatures(&self, path: &Path, device: (u32, u32)) -> io::Result<()>;

    /// Reads both ends of a block device, where signatures are.
    ///
    /// # Errors
    /// What the kernel says of a device that cannot be read.
    fn read_ends(&self, path: &Path, device: (u32, u32)) -> io::Result<()>;

    /// Looks for data on a device that no signature accounts for, at both ends and at places between them; `None` if there is
    /// none but what trials left.
    ///
    /// # Errors
    /// What the kernel says of a device that cannot be read.
    fn sample(&self, path: &Path, device: (u32, u32)) -> io::Result<Option<Sampled>>;

    /// Gives back every block of a block device, opened exclusively, so that an SSD starts as empty as it was for the
    /// last filesystem. False when the device cannot do that.
    ///
    /// # Errors
    /// EBUSY when it is in use; else what the kernel says.
    fn discard(&self, path: &Path, device: (u32, u32)) -> io::Result<bool>;

    /// Room in the filesystem of this path.
    fn space(&self, path: &Path) -> io::Result<Space>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes free for us.
    pub free_bytes: u64,
    pub total_bytes: u64,
}

impl Space {
    /// What we leave free: room for the system's logs and for this run's store; a twentieth where that is less.
    pub const fn reserve_bytes(&self) -> u64 {
        const RESERVE_BYTES: u64 = 256 << 20;
        let share = self.total_bytes / 20;
        if share < RESERVE_BYTES { share } else { RESERVE_BYTES }
    }

    pub const fn is_used_up(&self) -> bool {
        self.free_bytes < self.reserve_bytes()
    }
}
