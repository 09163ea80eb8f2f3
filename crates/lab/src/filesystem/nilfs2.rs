//! NILFS2: nilfs-tools. It has no check of its own.

use super::{CommandLine, Facts, Filesystem, mkfs_command, parse};
use fstone_model::{mkfs::MkfsOptions, study::FsckMode};

#[derive(Debug)]
pub(super) struct Nilfs2;

impl Filesystem for Nilfs2 {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "nilfs2",
            package: "nilfs-tools",
            tools: &["mkfs.nilfs2", "nilfs-tune"],
            modules_asked_by_name: &["crc32_generic"],
            // mkfs takes 128 MiB, but its cleaner then has no room to work in.
            minimum_bytes: 256 << 20,
            mkfs_options: MkfsOptions {
                flags: "-c -f -K -n -q -v",
                values: "-b -B -L -m -O",
                settings: &[],
                whole_words: false,
            },
            mount_values: "barrier cp errors order",
            mkfs_is_exclusive: false,
        }
    }

    /// nilfs-tune opens block devices only.
    fn tools_need_a_guest(&self) -> bool {
        true
    }

    fn mkfs(&self, options: &[String], device: &str) -> CommandLine {
        mkfs_command("mkfs.nilfs2", &["-q", "-f"], options, device)
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
