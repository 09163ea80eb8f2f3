//! SquashFS: squashfs-tools. Read-only: it holds what mksquashfs put into it. It has no check of its own.

use super::{CommandLine, Filesystem};
use fstone_model::study::FsckMode;

/// SquashFS.
#[derive(Debug)]
pub(super) struct Squashfs;

impl Filesystem for Squashfs {
    fn kind(&self) -> &'static str {
        "squashfs"
    }

    fn package(&self) -> &'static str {
        "squashfs-tools"
    }

    fn tools(&self) -> &'static [&'static str] {
        &["mksquashfs", "unsquashfs"]
    }

    fn minimum_bytes(&self) -> u64 {
        // Padded to 4 KiB. The device has to hold the tree, which mksquashfs finds out.
        4096
    }

    /// Without a tree it is made of the directory that mksquashfs runs in, which is empty.
    fn mkfs(&self, options: &[String], device: &str) -> CommandLine {
        made_of(options, device, ".")
    }

    fn mkfs_is_exclusive(&self) -> bool {
        false
    }

    fn mkfs_of_tree(&self, options: &[String], device: &str, tree: &str) -> Option<CommandLine> {
        Some(made_of(options, device, tree))
    }

    fn fsck(&self, _mode: FsckMode, _device: &str) -> Option<CommandLine> {
        None
    }

    fn superblock(&self, device: &str) -> Option<CommandLine> {
        Some(CommandLine::new("unsquashfs", ["-s", device]))
    }

    /// Lines such as `Compression gzip`: words of the name, then the value.
    fn parse_superblock(&self, text: &str) -> Vec<(String, String)> {
        let wanted = [
            ("Compression ", "compression"),
            ("Block size ", "block size"),
            ("Number of inodes ", "inodes"),
            ("Number of fragments ", "fragments"),
        ];
        text.lines()
            .filter_map(|line| {
                let (value, ours) = wanted.iter().find_map(|(name, ours)| Some((line.strip_prefix(name)?, ours)))?;
                Some(((*ours).to_owned(), value.trim().to_owned()))
            })
            .collect()
    }
}

fn made_of(options: &[String], device: &str, tree: &str) -> CommandLine {
    // What is on the device already is not to be added to.
    let own = [tree, device, "-noappend", "-quiet", "-no-progress"].map(str::to_owned);
    CommandLine::new("mksquashfs", own.into_iter().chain(options.iter().cloned()))
}
