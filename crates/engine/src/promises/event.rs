//! What calls change, or make durable.

use std::ops::Range;
use std::sync::Arc;

/// A file of the kernel: its inode number, and how many files had that number before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    pub inode: u64,
    pub incarnation: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A name appeared for a file: it was made or opened for the first time (then it may have been there before), or linked. The name
    /// may be durable already: the file was built before the load and synced.
    Named {
        file: FileId,
        path: Arc<str>,
        durable: bool,
    },
    Unnamed {
        path: Arc<str>,
    },
    /// A name became another, in place of what had that name.
    Renamed {
        from: Arc<str>,
        to: Arc<str>,
    },
    /// Data: where in the file, how many bytes, of which file and generation its stamps say it is, as far as that is known, and
    /// whether it was durable when the write returned.
    Wrote {
        file: FileId,
        offset: u64,
        bytes: u64,
        says: Option<(u64, u64)>,
        durable: bool,
    },
    /// What a part of a file holds changed otherwise, or the file's length.
    Made {
        file: FileId,
        part: Range<u64>,
        what: Made,
    },
    /// The file's data is durable; with `names`, so are its names.
    Synced {
        file: FileId,
        names: bool,
    },
    /// The names in a directory, and their absence, are durable.
    SyncedNames {
        directory: Arc<str>,
    },
    SyncedAll,
    /// Whatever is below this directory was removed or made anew, by no call of the load.
    Remade {
        below: Arc<str>,
    },
}

/// What became of a part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// It is zeros, and lies within the file.
    Zeros,
    /// It has data that is not known here. The file reaches to its end at least: a copy, or an allocation of no data.
    Copied,
    /// Other data of the file may have been written there through a mapping, in units at their multiples.
    Mapped,
    /// The file ends where the part begins.
    End,
    /// It may be anything: the call failed, or its place is not known. A part up to `u64::MAX` may have been cut off.
    Unknown,
}

impl Change {
    pub(super) const fn file(&self) -> Option<FileId> {
        match self {
            Self::Named { file, .. }
            | Self::Wrote { file, .. }
            | Self::Made { file, .. }
            | Self::Synced { file, .. } => Some(*file),
            Self::Unnamed { .. }
            | Self::Renamed { .. }
            | Self::SyncedNames { .. }
            | Self::SyncedAll
            | Self::Remade { .. } => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) begun: u64,
    pub(super) ended: u64,
    pub(super) change: Change,
}

pub(super) fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}
