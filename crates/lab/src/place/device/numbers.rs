//! Files and devices by number.

use serde::{Deserialize, Serialize};

/// A file, whatever its name: (device, inode).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    /// st_dev of the filesystem that holds it, as (major, minor).
    pub device: (u32, u32),
    pub inode: u64,
}

pub(crate) fn file_id(facts: &std::fs::Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    FileId { device: split_number(facts.dev()), inode: facts.ino() }
}

/// (major, minor) of a device number.
pub(crate) fn split_number(number: u64) -> (u32, u32) {
    (rustix::fs::major(number), rustix::fs::minor(number))
}
