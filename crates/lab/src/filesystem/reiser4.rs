//! Reiser4, which only says why it cannot be measured.

use super::{CommandLine, Filesystem, mkfs_command};
use fstone_model::{mkfs::MkfsOptions, study::FsckMode};

#[derive(Debug)]
pub(super) struct Reiser4;

impl Filesystem for Reiser4 {
    fn kind(&self) -> &'static str {
        "reiser4"
    }

    fn package(&self) -> &'static str {
        "reiser4progs"
    }

    fn tools(&self) -> &'static [&'static str] {
        &["mkfs.reiser4", "fsck.reiser4"]
    }

    fn minimum_bytes(&self) -> u64 {
        16 << 20
    }

    fn unusable(&self) -> Option<&'static str> {
        Some("Reiser4 was never merged into the Linux kernel: no kernel fstone can run has it")
    }

    fn mkfs(&self, options: &[String], device: &str) -> CommandLine {
        mkfs_command("mkfs.reiser4", &["-f", "-y"], options, device)
    }

    fn mkfs_options(&self) -> &'static MkfsOptions {
        &MkfsOptions::NONE
    }

    fn mount_values(&self) -> &'static [&'static str] {
        &[]
    }

    fn mkfs_is_exclusive(&self) -> bool {
        true
    }

    fn fsck(&self, mode: FsckMode, device: &str) -> Option<CommandLine> {
        let mode = match mode {
            FsckMode::ReadOnly => "--check",
            FsckMode::Repair => "--fix",
        };
        Some(CommandLine::new("fsck.reiser4", [mode, "--yes", device]))
    }

    fn superblock(&self, _device: &str) -> Option<CommandLine> {
        None
    }

    fn parse_superblock(&self, _text: &str) -> Vec<(String, String)> {
        Vec::new()
    }
}
