//! NILFS2: nilfs-tools. It has no check of its own.

use super::{CommandLine, Filesystem, mkfs_command, parse};
use fstone_model::{mkfs::MkfsOptions, study::FsckMode};

#[derive(Debug)]
pub(super) struct Nilfs2;

impl Filesystem for Nilfs2 {
    fn kind(&self) -> &'static str {
        "nilfs2"
    }

    fn package(&self) -> &'static str {
        "nilfs-tools"
    }

    fn tools(&self) -> &'static [&'static str] {
        &["mkfs.nilfs2", "nilfs-tune"]
    }

    /// nilfs-tune opens block devices only.
    fn tools_need_a_guest(&self) -> bool {
        true
    }

    fn modules_asked_by_name(&self) -> &'static [&'static str] {
        &["crc32_generic"]
    }

    fn minimum_bytes(&self) -> u64 {
        // mkfs takes 128 MiB, but its cleaner then has no room to work in.
        256 << 20
    }

    fn mkfs(&self, options: &[String], device: &str) -> CommandLine {
        mkfs_command("mkfs.nilfs2", &["-q", "-f"], options, device)
    }

    fn mkfs_options(&self) -> &'static MkfsOptions {
        &MkfsOptions {
            flags: &["-c", "-f", "-K", "-n", "-q", "-v"],
            values: &["-b", "-B", "-L", "-m", "-O"],
            settings: &[],
            whole_words: false,
        }
    }

    fn mount_values(&self) -> &'static [&'static str] {
        &["barrier", "cp", "errors", "order"]
    }

    fn mkfs_is_exclusive(&self) -> bool {
        false
    }

    fn fsck(&self, _mode: FsckMode, _device: &str) -> Option<CommandLine> {
        None
    }

    fn superblock(&self, device: &str) -> Option<CommandLine> {
        Some(CommandLine::new("nilfs-tune", ["-l", device]))
    }

    fn parse_superblock(&self, text: &str) -> Vec<(String, String)> {
        let wanted = [
            ("Filesystem features", "features"),
            ("Block size", "block size"),
            ("Device size", "device size"),
            ("# of blocks per segment", "blocks per segment"),
            ("Reserved segments ratio", "reserved segments"),
            ("Inode size", "inode size"),
        ];
        parse::pairs(text, ':', &wanted)
    }
}
