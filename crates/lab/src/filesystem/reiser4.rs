//! Reiser4, which only says why it cannot be measured.

use super::{Facts, Filesystem, Fsck};
use fstone_model::mkfs::MkfsOptions;

#[derive(Debug)]
pub(super) struct Reiser4;

impl Filesystem for Reiser4 {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "reiser4",
            package: "reiser4progs",
            tools: &["mkfs.reiser4", "fsck.reiser4"],
            mkfs: &["mkfs.reiser4", "-f", "-y"],
            fsck: Some(Fsck {
                read_only: &["fsck.reiser4", "--check", "--yes"],
                repair: &["fsck.reiser4", "--fix", "--yes"],
            }),
            superblock: &[],
            minimum_bytes: 16 << 20,
            mkfs_options: MkfsOptions::NONE,
            mount_values: "",
            mkfs_is_exclusive: true,
            modules_asked_by_name: &[],
        }
    }

    fn unusable(&self) -> Option<&'static str> {
        Some("Reiser4 was never merged into the Linux kernel: no kernel fstone can run has it")
    }

    fn parse_superblock(&self, _text: &str) -> Vec<(String, String)> {
        Vec::new()
    }
}
