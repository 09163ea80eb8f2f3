//! Btrfs: btrfs-progs.

use super::{CommandLine, CommandOutput, Facts, Filesystem, Fsck, Verdict, mkfs_command, parse};
use fstone_model::mkfs::MkfsOptions;

#[derive(Debug)]
pub(super) struct Btrfs;

impl Filesystem for Btrfs {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "btrfs",
            package: "btrfs-progs",
            tools: &["mkfs.btrfs", "btrfs"],
            mkfs: &["mkfs.btrfs", "-q", "-f"],
            // Without --force it counts down ten seconds, into the measurement.
            fsck: Some(Fsck { read_only: &["btrfs", "check"], repair: &["btrfs", "check", "--repair", "--force"] }),
            superblock: &["btrfs", "inspect-internal", "dump-super"],
            modules_asked_by_name: &["crc32c_generic", "xxhash_generic", "sha256_generic", "blake2b_generic"],
            // "minimum size for each btrfs device is 114294784", with metadata twice (the default).
            minimum_bytes: 114_294_784,
            // Not `-r`, which reads a directory into it.
            mkfs_options: MkfsOptions {
                flags: "-f -K -M -q -v --force --mixed --nodiscard --quiet --shrink --verbose",
                values: "-A -b -d -l -L -m -n -O -R -s -U --byte-count --checksum --csum --data --features --label --leafsize \
                    --metadata --nodesize --runtime-features --sectorsize --uuid",
                ..MkfsOptions::NONE
            },
            // Not `device`, which adds another one.
            mount_values: "commit compress compress-force discard fatal_errors fragment max_inline metadata_ratio rescue space_cache \
                subvol subvolid thread_pool",
            mkfs_is_exclusive: true,
        }
    }

    fn version(&self, tool: &str) -> CommandLine {
        CommandLine::new(tool, ["--version"])
    }

    /// While any loop device of the host is mounted, mkfs.btrfs looks behind each, which takes root.
    fn tools_need_a_guest(&self) -> bool {
        true
    }

    /// It remembers the newest generation that it saw of a UUID, and takes older ones for stale.
    fn forget(&self, device: &str) -> Option<CommandLine> {
        Some(CommandLine::new("btrfs", ["device", "scan", "--forget", device]))
    }

    fn mkfs_of_tree(&self, options: &[String], device: &str, tree: &str) -> Option<CommandLine> {
        Some(mkfs_command(self.facts().mkfs, &["--rootdir", tree], options, device))
    }

    /// `btrfs check` has one status for everything; where it got as far as checking, errors are the filesystem's.
    fn verdict(&self, output: &CommandOutput) -> Verdict {
        match output.status {
            0 => Verdict::Clean,
            1 if output.says("checking extents") => Verdict::Errors,
            _ => Verdict::Unusable,
        }
    }

    /// Lines such as `nodesize<tabs>16384`; flag words follow their hexadecimal sum in parentheses.
    fn parse_superblock(&self, text: &str) -> Vec<(String, String)> {
        let mut facts = Vec::new();
        let mut features = Vec::new();
        let mut in_features = false;
        for line in text.lines() {
            if line.starts_with(|c: char| !c.is_whitespace()) {
                in_features = ["compat_flags", "compat_ro_flags", "incompat_flags"]
                    .iter()
                    .any(|name| line.split_whitespace().next() == Some(name));
                continue;
            }
            if in_features {
                let flags = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                features.extend(flags.filter(|flag| !flag.is_empty()).map(str::to_ascii_lowercase));
            }
        }
        if !features.is_empty() {
            facts.push(("features".to_owned(), features.join(" ")));
        }
        let wanted = [
            ("csum_type", "checksum"),
            ("sectorsize", "sector size"),
            ("nodesize", "node size"),
            ("total_bytes", "total bytes"),
            ("num_devices", "devices"),
        ];
        facts.extend(parse::pairs(text, '\t', &wanted));
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_superblock_is_read() {
        let text = "csum_type\t\t0 (crc32c)\nflags\t\t\t0x1\n\t\t\t( WRITTEN )\ntotal_bytes\t\t209715200\nnodesize\t\t16384\n\
                    compat_ro_flags\t\t0x3\n\t\t\t( FREE_SPACE_TREE |\n\t\t\t  FREE_SPACE_TREE_VALID )\nincompat_flags\t\t0x341\n\
                    \t\t\t( MIXED_BACKREF |\n\t\t\t  NO_HOLES )\ncache_generation\t0\n";
        let facts = Btrfs.parse_superblock(text);
        let value = |name: &str| facts.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        assert_eq!(value("features"), Some("free_space_tree free_space_tree_valid mixed_backref no_holes"));
        assert_eq!(value("checksum"), Some("0 (crc32c)"));
        assert_eq!(value("node size"), Some("16384"));
    }
}
