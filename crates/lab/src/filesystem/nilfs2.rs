//! NILFS2: nilfs-tools. It has no check of its own.

use super::{Facts, Filesystem, parse};
use fstone_model::mkfs::MkfsOptions;

#[derive(Debug)]
pub(super) struct Nilfs2;

impl Filesystem for Nilfs2 {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "nilfs2",
            package: "nilfs-tools",
            tools: &["mkfs.nilfs2", "nilfs-tune"],
            mkfs: &["mkfs.nilfs2", "-q", "-f"],
            fsck: None,
            superblock: &["nilfs-tune", "-l"],
            modules_asked_by_name: &["crc32_generic"],
            // mkfs takes 128 MiB, but its cleaner then has no room to work in.
            minimum_bytes: 256 << 20,
            mkfs_options: MkfsOptions { flags: "-c -f -K -n -q -v", values: "-b -B -L -m -O", ..MkfsOptions::NONE },
            mount_values: "barrier cp errors order",
            mkfs_is_exclusive: false,
        }
    }

    /// nilfs-tune opens block devices only.
    fn tools_need_a_guest(&self) -> bool {
        true
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
