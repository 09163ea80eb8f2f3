//! Why a device may not be formatted.

use fstone_files::Exchangeable;
use std::{io, path::PathBuf};

/// Why a device may not be formatted; completes "failed to claim the device: ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{}: there is no such device", .0.display())]
    Missing(PathBuf),
    #[error("{}: not a block device; for an image file use device = {{ loop = … }}, which makes its own", .0.display())]
    NotBlock(PathBuf),
    #[error(
        "{}: everything on it would be destroyed ({identity}); to permit that, add --allow-destroy {}",
        path.display(), path.display()
    )]
    NotAllowed {
        path: PathBuf,
        /// Serial number and size.
        identity: String,
    },
    /// It was said to be our image or its loop device, and is not.
    #[error("{}: not this run's image, nor its loop device", .0.display())]
    NotOurs(PathBuf),
    #[error("{}: the device is read-only", .0.display())]
    ReadOnly(PathBuf),
    #[error("{}: {size_bytes} bytes, but {needed_bytes} are needed", path.display())]
    TooSmall { path: PathBuf, size_bytes: u64, needed_bytes: u64 },
    #[error("{}: in use as swap (swapoff {})", .0.display(), .0.display())]
    Swap(PathBuf),
    #[error("{}: a disk with partitions ({}); name one of them, or clear the table first", path.display(), partitions.join(", "))]
    Partitioned { path: PathBuf, partitions: Vec<String> },
    #[error("{}: mounted on {}", path.display(), at.display())]
    Mounted { path: PathBuf, at: PathBuf },
    #[error("{}: held by {} (RAID, LVM, encryption or the like)", path.display(), holders.join(", "))]
    Held { path: PathBuf, holders: Vec<String> },
    #[error("{}: in use: {}", path.display(), io::Error::from_raw_os_error(*errno))]
    InUse {
        path: PathBuf,
        /// What an exclusive open gave.
        errno: i32,
    },
    /// Others could make its path lead to another device between the look at it and its use.
    #[error("{}: {part}, or name the device by a path that only root can change, such as one in /dev", path.display())]
    Exchangeable { path: PathBuf, part: Exchangeable },
    /// Another run uses it.
    #[error("{}: in use by {holder}", path.display())]
    Locked { path: PathBuf, holder: String },
    #[error("{}: holds {signature}, which no finished trial left; if it may be lost: wipefs -a {}", path.display(), path.display())]
    ForeignSignature { path: PathBuf, signature: String },
    #[error("{}: cannot tell what is on it: {words}", path.display())]
    Unprobed { path: PathBuf, words: String },
    #[error("{}: it is no longer the device that was examined", .0.display())]
    Changed(PathBuf),
    #[error("{}: cannot be examined: {words}", path.display())]
    Unexamined { path: PathBuf, words: String },
}
