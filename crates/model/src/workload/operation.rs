//! All operations, and what each needs and does, in one table.
//!
//! The engine, its audit, its checks and the workload file all use it. An operation without a line there does not
//! compile, and none of them has a default for unknown operations.

use super::transfer::Transfer;
use serde::{Deserialize, Serialize};

/// What is done to a file or directory. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Make a new file of a size drawn from the fileset (O_CREAT|O_RDWR|O_TRUNC), write it, optionally fsync, close.
    Create {
        /// Size of each write; 0 makes an empty file.
        block_bytes: u64,
        fsync: bool,
    },
    Read(Transfer),
    Write(Transfer),
    /// Write at the end (O_APPEND).
    Append(Transfer),
    MmapRead(Transfer),
    /// Free the blocks of a place (FALLOC_FL_PUNCH_HOLE), or discard them on a device (BLKDISCARD).
    Trim(Transfer),
    MmapWrite {
        transfer: Transfer,
        msync: bool,
    },
    /// Write, from the handle's cursor on, as much as its file should have: the size that was drawn when it was created, or that it had when
    /// it was opened.
    Fill {
        block_bytes: u64,
        /// As much as the file in this handle should have.
        like: Option<u32>,
    },
    OpenClose,
    /// Open, and stay open in the handle.
    Open,
    Close,
    Fsync,
    Fdatasync,
    /// fsync of the directory that a file is in, which makes its name durable.
    FsyncDirectory,
    Syncfs,
    Truncate {
        size_bytes: u64,
    },
    Fallocate {
        /// How much, from the start.
        size_bytes: u64,
        /// FALLOC_FL_PUNCH_HOLE instead of allocating.
        punch: bool,
    },
    Unlink,
    /// Rename a file within its directory.
    Rename,
    /// Rename a file into another fileset (Maildir's `tmp` → `new`), or to a new name of its own, which may be in another
    /// directory.
    Move {
        /// The fileset, by its index.
        to: u32,
    },
    /// Replace a file as editors do: write a new one beside it, and rename it over the old one.
    Replace {
        block_bytes: u64,
        fsync: bool,
    },
    /// Make a hard link and keep it.
    Link,
    /// Make a symbolic link and keep it.
    Symlink,
    Mkdir,
    /// Remove a directory that `Mkdir` made.
    Rmdir,
    /// stat of a leaf directory.
    StatDirectory,
    /// Give a leaf directory its other name, in the same directory.
    RenameDirectory,
    /// FFSB's metaop: two mkdir, then one rmdir and one rename, all of random directories under
    /// [`Fileset::metadata_directory`](super::Fileset::metadata_directory). It counts once.
    Metadata,
    Readdir,
    /// Walk the whole fileset and stat each entry; if several ranks have filesets in one directory, each walks its own.
    Walk,
    Stat,
    Chmod,
    Utimens,
    Setxattr {
        value_bytes: u32,
    },
    Getxattr,
    /// copy_file_range into a new file.
    CopyFileRange,
    /// FICLONE into a new file.
    Reflink,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    File,
    NewFile,
    /// A directory of the fileset, or all of it.
    Fileset,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    Kept,
    Added,
    Removed,
    Changed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    Kept,
    /// It is written by the load: the bytes are the load's own.
    Written,
    /// It is written at the end, so the end has to be known.
    Appended,
    /// The kernel copies it from another file.
    Copied,
    /// It is cut off, allocated or freed without being written.
    Resized,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nature<'a> {
    /// Its key in workload files.
    pub word: &'static str,
    pub target: Target,
    pub transfer: Option<&'a Transfer>,
    /// Largest buffer it needs, in bytes; 0 if it moves no data of the load.
    pub largest_block: u64,
    pub names: Names,
    /// The fileset that files come into, where it is not the action's own.
    pub to: Option<u32>,
    pub data: Data,
    /// Whether it changes what is known about a file, or adds or removes something other than files.
    pub attributes: bool,
    /// Whether no other thread may work on the file meanwhile, whatever else the load asks for.
    pub alone: bool,
}

pub const MAX_ATTRIBUTE_BYTES: u64 = 64 << 10;

impl Nature<'_> {
    pub fn changes_names(&self) -> bool {
        self.names != Names::Kept
    }

    /// Whether anything in the directory is not as before.
    pub fn changes(&self) -> bool {
        self.attributes || self.changes_names() || self.data != Data::Kept
    }

    /// Whether it leaves data behind for an fsync.
    pub fn writes(&self) -> bool {
        matches!(self.data, Data::Written | Data::Appended | Data::Copied)
    }

    pub fn changes_sizes(&self) -> bool {
        matches!(self.data, Data::Appended | Data::Resized)
    }
}

impl Operation {
    pub fn needs_handle(&self) -> bool {
        matches!(self, Self::Open | Self::Close | Self::Fill { .. })
    }

    /// Whether it can use the file that is open in a handle, or leave one open there. A file created in a handle is empty.
    pub fn works_by_handle(&self) -> bool {
        match self {
            Self::Create { block_bytes, fsync } => *block_bytes == 0 && !fsync,
            Self::Open
            | Self::Close
            | Self::Fill { .. }
            | Self::Read(_)
            | Self::Write(_)
            | Self::Append(_)
            | Self::Fsync
            | Self::Fdatasync
            | Self::Stat
            | Self::Unlink => true,
            Self::MmapRead(_)
            | Self::Trim(_)
            | Self::MmapWrite { .. }
            | Self::OpenClose
            | Self::FsyncDirectory
            | Self::Syncfs
            | Self::Truncate { .. }
            | Self::Fallocate { .. }
            | Self::Rename
            | Self::Move { .. }
            | Self::Replace { .. }
            | Self::Link
            | Self::Symlink
            | Self::Mkdir
            | Self::Rmdir
            | Self::StatDirectory
            | Self::RenameDirectory
            | Self::Metadata
            | Self::Readdir
            | Self::Walk
            | Self::Chmod
            | Self::Utimens
            | Self::Setxattr { .. }
            | Self::Getxattr
            | Self::CopyFileRange
            | Self::Reflink => false,
        }
    }

    pub fn nature(&self) -> Nature<'_> {
        let on_file = |word| Nature {
            word,
            target: Target::File,
            transfer: None,
            largest_block: 0,
            names: Names::Kept,
            to: None,
            data: Data::Kept,
            attributes: false,
            alone: false,
        };
        let on_fileset = |word| Nature { target: Target::Fileset, ..on_file(word) };
        fn moving<'a>(nature: Nature<'a>, transfer: &'a Transfer, data: Data) -> Nature<'a> {
            Nature { transfer: Some(transfer), largest_block: transfer.block_bytes, data, ..nature }
        }
        match self {
            Self::Create { block_bytes, .. } => Nature {
                target: Target::NewFile,
                largest_block: *block_bytes,
                names: Names::Added,
                data: if *block_bytes > 0 { Data::Written } else { Data::Kept },
                ..on_file("create")
            },
            Self::Read(transfer) => moving(on_file("read"), transfer, Data::Kept),
            Self::Write(transfer) => moving(on_file("write"), transfer, Data::Written),
            Self::Append(transfer) => moving(on_file("append"), transfer, Data::Appended),
            Self::MmapRead(transfer) => moving(on_file("mmap-read"), transfer, Data::Kept),
            Self::Trim(transfer) => moving(on_file("trim"), transfer, Data::Resized),
            Self::MmapWrite { transfer, .. } => moving(on_file("mmap-write"), transfer, Data::Written),
            Self::Fill { block_bytes, .. } => {
                Nature { largest_block: *block_bytes, data: Data::Written, ..on_file("fill") }
            }
            Self::OpenClose => on_file("open-close"),
            Self::Open => on_file("open"),
            Self::Close => on_file("close"),
            Self::Fsync => on_file("fsync"),
            Self::Fdatasync => on_file("fdatasync"),
            Self::FsyncDirectory => on_file("fsync-directory"),
            Self::Syncfs => on_fileset("syncfs"),
            Self::Truncate { .. } => Nature { data: Data::Resized, alone: true, ..on_file("truncate") },
            Self::Fallocate { punch: false, .. } => Nature { data: Data::Resized, ..on_file("fallocate") },
            Self::Fallocate { punch: true, .. } => Nature { data: Data::Resized, ..on_file("punch-hole") },
            Self::Unlink => Nature { names: Names::Removed, alone: true, ..on_file("unlink") },
            Self::Rename => Nature { names: Names::Changed, alone: true, ..on_file("rename") },
            Self::Move { to } => Nature { names: Names::Changed, to: Some(*to), alone: true, ..on_file("move") },
            Self::Replace { block_bytes, .. } => Nature {
                largest_block: *block_bytes,
                names: Names::Changed,
                data: Data::Written,
                alone: true,
                ..on_file("replace")
            },
            Self::Link => Nature { attributes: true, ..on_file("link") },
            Self::Symlink => Nature { attributes: true, ..on_file("symlink") },
            Self::Mkdir => Nature { attributes: true, ..on_fileset("mkdir") },
            Self::Rmdir => Nature { attributes: true, ..on_fileset("rmdir") },
            Self::StatDirectory => on_fileset("stat-directory"),
            Self::RenameDirectory => Nature { attributes: true, ..on_fileset("rename-directory") },
            Self::Metadata => Nature { attributes: true, ..on_fileset("metadata") },
            Self::Readdir => on_fileset("readdir"),
            Self::Walk => on_fileset("walk"),
            Self::Stat => on_file("stat"),
            Self::Chmod => Nature { attributes: true, ..on_file("chmod") },
            Self::Utimens => Nature { attributes: true, ..on_file("utimens") },
            Self::Setxattr { value_bytes } => {
                Nature { largest_block: u64::from(*value_bytes), attributes: true, ..on_file("setxattr") }
            }
            Self::Getxattr => Nature { largest_block: MAX_ATTRIBUTE_BYTES, ..on_file("getxattr") },
            Self::CopyFileRange => Nature { names: Names::Added, data: Data::Copied, ..on_file("copy-file-range") },
            Self::Reflink => Nature { names: Names::Added, data: Data::Copied, ..on_file("reflink") },
        }
    }

    /// Whether it works on the leaf directories of a fileset that has some.
    pub fn is_of_leaves(&self) -> bool {
        matches!(self, Self::Mkdir | Self::Rmdir | Self::StatDirectory | Self::RenameDirectory)
    }

    pub fn transfer_mut(&mut self) -> Option<&mut Transfer> {
        match self {
            Self::Read(transfer)
            | Self::Write(transfer)
            | Self::Append(transfer)
            | Self::MmapRead(transfer)
            | Self::Trim(transfer)
            | Self::MmapWrite { transfer, .. } => Some(transfer),
            _ => None,
        }
    }

    /// One of every kind of operation, with this `transfer`, for tests that must cover all of them.
    pub fn one_of_each(transfer: Transfer) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(Self::Create { block_bytes: transfer.block_bytes, fsync: false }), move |before| {
            before.next_kind(transfer)
        })
    }

    /// The kind after this one. The match is exhaustive, so that a new kind must be put into the chain.
    fn next_kind(&self, transfer: Transfer) -> Option<Self> {
        Some(match self {
            Self::Create { .. } => Self::Read(transfer),
            Self::Read(_) => Self::Write(transfer),
            Self::Write(_) => Self::Append(transfer),
            Self::Append(_) => Self::MmapRead(transfer),
            Self::MmapRead(_) => Self::Trim(transfer),
            Self::Trim(_) => Self::MmapWrite { transfer, msync: true },
            Self::MmapWrite { .. } => Self::Fill { block_bytes: transfer.block_bytes, like: None },
            Self::Fill { .. } => Self::OpenClose,
            Self::OpenClose => Self::Open,
            Self::Open => Self::Close,
            Self::Close => Self::Fsync,
            Self::Fsync => Self::Fdatasync,
            Self::Fdatasync => Self::FsyncDirectory,
            Self::FsyncDirectory => Self::Syncfs,
            Self::Syncfs => Self::Truncate { size_bytes: transfer.block_bytes },
            Self::Truncate { .. } => Self::Fallocate { size_bytes: transfer.block_bytes, punch: false },
            Self::Fallocate { size_bytes, punch: false } => Self::Fallocate { size_bytes: *size_bytes, punch: true },
            Self::Fallocate { punch: true, .. } => Self::Unlink,
            Self::Unlink => Self::Rename,
            Self::Rename => Self::Move { to: 0 },
            Self::Move { .. } => Self::Replace { block_bytes: transfer.block_bytes, fsync: true },
            Self::Replace { .. } => Self::Link,
            Self::Link => Self::Symlink,
            Self::Symlink => Self::Mkdir,
            Self::Mkdir => Self::Rmdir,
            Self::Rmdir => Self::StatDirectory,
            Self::StatDirectory => Self::RenameDirectory,
            Self::RenameDirectory => Self::Metadata,
            Self::Metadata => Self::Readdir,
            Self::Readdir => Self::Walk,
            Self::Walk => Self::Stat,
            Self::Stat => Self::Chmod,
            Self::Chmod => Self::Utimens,
            Self::Utimens => Self::Setxattr { value_bytes: 64 },
            Self::Setxattr { .. } => Self::Getxattr,
            Self::Getxattr => Self::CopyFileRange,
            Self::CopyFileRange => Self::Reflink,
            Self::Reflink => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Extent, Pattern};
    use std::collections::HashSet;

    #[test]
    fn every_operation_has_a_word_of_its_own() {
        let transfer = Transfer { extent: Extent::Whole, block_bytes: 4096, pattern: Pattern::FromStart, fsync: false };
        let all: Vec<Operation> = Operation::one_of_each(transfer).collect();
        let words: HashSet<&str> = all.iter().map(|operation| operation.nature().word).collect();
        assert_eq!(words.len(), all.len());
        for operation in &all {
            assert_eq!(operation.clone().transfer_mut().is_some(), operation.nature().transfer.is_some());
            let nature = operation.nature();
            // An operation that moves data needs a buffer for it, and only files have data.
            if let Some(transfer) = nature.transfer {
                assert_eq!(
                    (nature.target, nature.largest_block),
                    (Target::File, transfer.block_bytes),
                    "{operation:?}"
                );
            }
            assert!(nature.names != Names::Removed || nature.alone, "{operation:?}");
        }
    }
}
