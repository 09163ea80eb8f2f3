//! Filesystem adapters: one small file per filesystem behind one trait.
//!
//! An adapter says how a filesystem is made, checked and read back, how its tools speak, and what its kernel module
//! wants. It runs nothing itself. A new one is a file beside the others and its line in [`all`]: everything else that
//! fstone knows of filesystems comes from here, and the conformance suite at the end of this module says what is missing.

mod btrfs;
mod erofs;
mod exfat;
mod ext;
mod f2fs;
mod jfs;
mod kernel;
mod nilfs2;
mod parse;
mod reiser4;
mod reiserfs;
mod squashfs;
mod vfat;
mod xfs;

pub use kernel::kernel_has;

use crate::command::{CommandLine, CommandOutput};
use fstone_model::{
    metric::Figure,
    mkfs::MkfsOptions,
    study::{FilesystemSpec, FilesystemType, FsckMode},
};

/// A kind of filesystem.
pub trait Filesystem: Sync {
    /// Its name in a study ("ext4").
    fn kind(&self) -> &'static str;

    /// Its name for mount(2) and in /proc/filesystems.
    fn kernel_name(&self) -> &'static str {
        self.kind()
    }

    /// The Debian package that holds its tools.
    fn package(&self) -> &'static str;

    /// Every program its command lines name.
    fn tools(&self) -> &'static [&'static str];

    /// The command that makes one of its tools tell its version and do nothing else.
    fn version(&self, tool: &str) -> CommandLine {
        CommandLine::new(tool, ["-V"])
    }

    /// Whether its tools work in a guest only, because on the host they need root or a block device. All trials in guests
    /// then use them there, so that their times can be compared.
    fn tools_need_a_guest(&self) -> bool {
        false
    }

    /// Modules that its own asks the kernel's crypto layer for by name. The kernel calls modprobe for them, which a guest
    /// does not have: there they are loaded first.
    fn modules_asked_by_name(&self) -> &'static [&'static str] {
        &[]
    }

    /// The smallest device its mkfs takes with default options. Options may raise it; mkfs then says so itself.
    fn minimum_bytes(&self) -> u64;

    /// Why no trial with it can be made anywhere, when so.
    fn unusable(&self) -> Option<&'static str> {
        None
    }

    /// The command that makes it on a device. `options` are the study's own and come after those that every study
    /// needs (quiet, no questions). It never asks: there is nobody at its standard input.
    fn mkfs(&self, options: &[String], device: &str) -> CommandLine;

    /// The options of its mkfs that a study may use: those that run no program and name no file, device or directory.
    fn mkfs_options(&self) -> &'static MkfsOptions;

    /// Whether its mkfs opens the device exclusively, and so fails where somebody has begun to use it since it was looked
    /// at. Where it does not, the lab holds the device meanwhile.
    fn mkfs_is_exclusive(&self) -> bool {
        true
    }

    /// The command that makes it with everything below a directory in it; `None` when its mkfs cannot.
    fn mkfs_of_tree(&self, _options: &[String], _device: &str, _tree: &str) -> Option<CommandLine> {
        None
    }

    /// The command that checks it, unmounted; `None` when there is no such tool.
    fn fsck(&self, mode: FsckMode, device: &str) -> Option<CommandLine>;

    /// What the check's output means.
    fn verdict(&self, output: &CommandOutput) -> Verdict {
        Verdict::of_fsck_status(output.status)
    }

    /// The check's own figures.
    fn figures(&self, _output: &CommandOutput) -> Vec<Figure> {
        Vec::new()
    }

    /// The command that reads the superblock of the unmounted filesystem.
    fn superblock(&self, device: &str) -> Option<CommandLine>;

    /// What that command printed, as (name, value). Only what describes the format: nothing that differs between two
    /// filesystems made alike, such as UUIDs and times.
    fn parse_superblock(&self, text: &str) -> Vec<(String, String)>;
}

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing wrong.
    Clean,
    /// Something wrong, now repaired.
    Corrected,
    /// Something wrong, still there.
    Errors,
    /// The check itself could not be made.
    Unusable,
}

impl Verdict {
    /// By the bits that fsck(8) documents: 1 corrected, 2 reboot, 4 uncorrected, 8 operational, 16 usage, 32
    /// cancelled, 128 shared library (or, by our own convention, ended by a signal).
    #[must_use]
    pub const fn of_fsck_status(status: i32) -> Self {
        match status {
            0 => Self::Clean,
            s if s & !0b111 != 0 => Self::Unusable,
            s if s & 0b100 != 0 => Self::Errors,
            _ => Self::Corrected,
        }
    }
}

/// Every adapter, the common ones first: the order in which they are listed and suggested.
#[must_use]
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

/// The adapter of a kind.
#[must_use]
pub fn find(kind: &str) -> Option<&'static dyn Filesystem> {
    all().iter().copied().find(|filesystem| filesystem.kind() == kind)
}

/// The types that a study may name.
pub fn types() -> impl Iterator<Item = FilesystemType> {
    all().iter().map(|filesystem| FilesystemType {
        name: filesystem.kind(),
        holds_trees: filesystem.mkfs_of_tree(&[], "", "").is_some(),
        mkfs: filesystem.mkfs_options(),
    })
}

/// Whether a failed mkfs refused its options, as opposed to failing over the device or the machine.
///
/// mkfs tools have one exit status for both, so this goes by what they say: a fresh scratch device of sufficient size
/// leaves little else than its options for mkfs to dislike.
#[must_use]
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
#[must_use]
pub fn mkfs_of(filesystem: &dyn Filesystem, spec: &FilesystemSpec, device: &str) -> Option<CommandLine> {
    match &spec.tree {
        Some(tree) => filesystem.mkfs_of_tree(&spec.mkfs, device, tree),
        None => Some(filesystem.mkfs(&spec.mkfs, device)),
    }
}

/// Program, our own arguments, the study's, the device.
fn mkfs_command(program: &str, own: &[&str], options: &[String], device: &str) -> CommandLine {
    let own = own.iter().map(|word| (*word).to_owned());
    CommandLine::new(program, own.chain(options.iter().cloned()).chain([device.to_owned()]))
}

#[cfg(test)]
mod tests;
