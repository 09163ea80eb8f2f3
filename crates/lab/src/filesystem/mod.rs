//! Filesystem adapters: one small file per filesystem behind one trait.
//!
//! An adapter says how a filesystem is made, checked and read back, how its tools speak, and what its kernel module
//! wants. It runs nothing itself. A new one is a file beside the others and its line in [`all`]: everything else that
//! fstone knows of filesystems comes from here, and the conformance suite at the end of this module says what is missing.

mod adapter;
mod btrfs;
mod erofs;
mod exfat;
pub(crate) mod ext;
mod f2fs;
mod jfs;
mod kernel;
mod nilfs2;
mod own;
mod parse;
mod reiser4;
mod reiserfs;
mod squashfs;
mod vfat;
mod xfs;

use adapter::mkfs_command;
pub use adapter::{Facts, Filesystem, Fsck, Verdict};
pub use kernel::kernel_has;
pub(crate) use own::{OWN_DIRECTORY, OwnPlaces, is_plain, mount_points};

use crate::command::{CommandLine, CommandOutput};
use fstone_model::study::{FilesystemSpec, FilesystemType};

/// Every adapter, the common ones first: the order in which they are listed and suggested.
pub fn all() -> &'static [&'static dyn Filesystem] {
    &[
        &ext::EXT4,
        &ext::EXT3,
        &ext::EXT2,
        &xfs::Xfs,
        &btrfs::Btrfs,
        &f2fs::F2fs,
        &nilfs2::Nilfs2,
        &jfs::Jfs,
        &reiserfs::Reiserfs,
        &vfat::Vfat,
        &exfat::Exfat,
        &erofs::Erofs,
        &squashfs::Squashfs,
        &reiser4::Reiser4,
    ]
}

pub fn find(kind: &str) -> Option<&'static dyn Filesystem> {
    all().iter().copied().find(|filesystem| filesystem.kind() == kind)
}

pub fn types() -> impl Iterator<Item = FilesystemType> {
    all().iter().map(|filesystem| FilesystemType {
        name: filesystem.kind(),
        holds_trees: filesystem.mkfs_of_tree(&[], "", "").is_some(),
        mkfs: &filesystem.facts().mkfs_options,
    })
}

/// Whether a failed mkfs refused its options, as opposed to failing over the device or the machine.
///
/// mkfs tools have one exit status for both, so this goes by what they say: a fresh scratch device of sufficient size
/// leaves little else than its options for mkfs to dislike.
pub fn mkfs_refused(options: &[String], output: &CommandOutput) -> bool {
    const TROUBLE: [&str; 8] = [
        "no space left",
        "input/output error",
        "cannot allocate",
        "out of memory",
        "resource busy",
        "read-only file system",
        "permission denied",
        "operation not permitted",
    ];
    let said = format!("{}\n{}", output.stderr, output.stdout).to_lowercase();
    !options.is_empty() && output.status < 126 && !TROUBLE.iter().any(|words| said.contains(words))
}

/// The command that makes what a study asks for; `None` when a tree is to be in it and its mkfs cannot do that.
pub fn mkfs_of(filesystem: &dyn Filesystem, spec: &FilesystemSpec, device: &str) -> Option<CommandLine> {
    match &spec.tree {
        Some(tree) => filesystem.mkfs_of_tree(&spec.mkfs, device, tree),
        None => Some(filesystem.mkfs(&spec.mkfs, device)),
    }
}

#[cfg(test)]
mod tests;
