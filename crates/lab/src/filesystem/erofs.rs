//! EROFS: erofs-utils. Read-only: it holds what its mkfs put into it.

use super::{CommandLine, CommandOutput, Facts, Filesystem, Verdict, parse};
use fstone_model::{mkfs::MkfsOptions, study::FsckMode};

#[derive(Debug)]
pub(super) struct Erofs;

impl Filesystem for Erofs {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "erofs",
            package: "erofs-utils",
            tools: &["mkfs.erofs", "fsck.erofs", "dump.erofs"],
            // One block, with the root directory in it. The device has to hold the tree, which mkfs finds out.
            minimum_bytes: 4096,
            // Not those that name files and devices, such as `--blobdev` and `--compress-hints`.
            mkfs_options: MkfsOptions {
                flags: "--all-root --ignore-mtime --preserve-mtime --quiet",
                values: "-C -d -E -L -T -U -x -z --chunksize --exclude-path --exclude-regex --force-gid --force-uid --gid-offset \
                    --max-extent-bytes --uid-offset --workers",
                settings: &[],
                whole_words: false,
            },
            // Not `device`, `fsid` and `domain_id`, which read another one.
            mount_values: "cache_strategy dax fsoffset",
            mkfs_is_exclusive: false,
            modules_asked_by_name: &[],
        }
    }

    /// Without a tree it is made of the directory that mkfs runs in, which is empty.
    fn mkfs(&self, options: &[String], device: &str) -> CommandLine {
        made_of(options, device, ".")
    }

    fn mkfs_of_tree(&self, options: &[String], device: &str, tree: &str) -> Option<CommandLine> {
        Some(made_of(options, device, tree))
    }

    /// What is never written is never repaired: both modes check.
    fn fsck(&self, _mode: FsckMode, device: &str) -> Option<CommandLine> {
        Some(CommandLine::new("fsck.erofs", ["--extract", device]))
    }

    /// It ends with 1 for whatever went wrong, a filesystem that is damaged or a device that is not there.
    fn verdict(&self, output: &CommandOutput) -> Verdict {
        let said = |word| output.stderr.contains(word) || output.stdout.contains(word);
        match output.status {
            0 => Verdict::Clean,
            1 if said("corruption") || said("checksum") => Verdict::Errors,
            _ => Verdict::Unusable,
        }
    }

    fn superblock(&self, device: &str) -> Option<CommandLine> {
        Some(CommandLine::new("dump.erofs", ["-s", device]))
    }

    fn parse_superblock(&self, text: &str) -> Vec<(String, String)> {
        let wanted = [
            ("Filesystem features", "features"),
            ("Filesystem blocks", "blocks"),
            ("Filesystem inode count", "inodes"),
        ];
        parse::pairs(text, ':', &wanted)
    }
}

fn made_of(options: &[String], device: &str, tree: &str) -> CommandLine {
    let own = ["-d1", "--quiet"].map(str::to_owned);
    CommandLine::new("mkfs.erofs", own.into_iter().chain(options.iter().cloned()).chain([device.into(), tree.into()]))
}
