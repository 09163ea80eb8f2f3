//! Why a device may not be formatted.

use crate::place::custody::Exchangeable;
use std::{io, path::PathBuf};

/// Why a device may not be formatted; completes "failed to claim the device: ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is nothing.
    #[error("{}: there is no such device", .0.display())]
    Missing(PathBuf),
    /// It is no block device.
    #[error("{}: not a block device; for an image file use device = {{ loop = … }}, which makes its own", .0.display())]
    NotBlock(PathBuf),
    /// Nobody allowed its destruction.
    #[error(
        "{}: everything on it would be destroyed ({identity}); to permit that, add --allow-destroy {}",
        path.display(), path.display()
    )]
    NotAllowed {
        /// The path.
        path: PathBuf,
        /// Serial number and size.
        identity: String,
    },
    /// It was said to be our image or its loop device, and is not.
    #[error("{}: not this run's image, nor its loop device", .0.display())]
    NotOurs(PathBuf),
    /// It cannot be written.
    #[error("{}: the device is read-only", .0.display())]
    ReadOnly(PathBuf),
    /// It is too small.
    #[error("{}: {size_bytes} bytes, but {needed_bytes} are needed", path.display())]
    TooSmall {
        /// The path.
        path: PathBuf,
        /// What it has.
        size_bytes: u64,
        /// What is needed.
        needed_bytes: u64,
    },
    /// It is swapped to.
    #[error("{}: in use as swap (swapoff {})", .0.display(), .0.display())]
    Swap(PathBuf),
    /// It has partitions.
    #[error("{}: a disk with partitions ({}); name one of them, or clear the table first", path.display(), partitions.join(", "))]
    Partitioned {
        /// The path.
        path: PathBuf,
        /// Their names.
        partitions: Vec<String>,
    },
    /// It is mounted.
    #[error("{}: mounted on {}", path.display(), at.display())]
    Mounted {
        /// The path.
        path: PathBuf,
        /// One of its mount points.
        at: PathBuf,
    },
    /// Another device is built on it.
    #[error("{}: held by {} (RAID, LVM, encryption or the like)", path.display(), holders.join(", "))]
    Held {
        /// The path.
        path: PathBuf,
        /// Their names.
        holders: Vec<String>,
    },
    /// The kernel says that somebody uses it.
    #[error("{}: in use: {}", path.display(), io::Error::from_raw_os_error(*errno))]
    InUse {
        /// The path.
        path: PathBuf,
        /// What an exclusive open gave.
        errno: i32,
    },
    /// Others could make its path lead to another device between the look at it and its use.
    #[error("{}: {part}, or name the device by a path that only root can change, such as one in /dev", path.display())]
    Exchangeable {
        /// The path.
        path: PathBuf,
        /// The part of it that is theirs.
        part: Exchangeable,
    },
    /// Another run uses it.
    #[error("{}: in use by {holder}", path.display())]
    Locked {
        /// The path.
        path: PathBuf,
        /// Who.
        holder: String,
    },
    /// Something is on it.
    #[error("{}: holds {signature}, which fstone did not make; if it may be lost: wipefs -a {}", path.display(), path.display())]
    ForeignSignature {
        /// The path.
        path: PathBuf,
        /// What blkid says.
        signature: String,
    },
    /// What is on it could not be found out.
    #[error("{}: cannot tell what is on it: {words}", path.display())]
    Unprobed {
        /// The path.
        path: PathBuf,
        /// Why.
        words: String,
    },
    /// The path led to another device than before.
    #[error("{}: it is no longer the device that was examined", .0.display())]
    Changed(PathBuf),
    /// The facts could not be gathered.
    #[error("{}: cannot be examined: {words}", path.display())]
    Unexamined {
        /// The path.
        path: PathBuf,
        /// Why.
        words: String,
    },
}
