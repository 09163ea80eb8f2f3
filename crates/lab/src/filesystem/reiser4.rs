//! Reiser4, which only says why it cannot be measured.

use super::{CommandLine, Facts, Filesystem, mkfs_command};
use fstone_model::{mkfs::MkfsOptions, study::FsckMode};

#[derive(Debug)]
pub(super) struct Reiser4;

impl Filesystem for Reiser4 {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "reiser4",
            package: "reiser4progs",
            tools: &["mkfs.reiser4", "fsck.reiser4"],
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

    fn mkfs(&self, options: &[String], device: &str) -> CommandLine {
        mkfs_command("mkfs.reiser4", &["-f", "-y"], options, device)
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
