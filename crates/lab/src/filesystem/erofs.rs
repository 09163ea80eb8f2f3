//! EROFS: erofs-utils. Read-only: it holds what its mkfs put into it.

use super::{CommandLine, CommandOutput, Facts, Filesystem, Fsck, Verdict, mkfs_command, parse};
use fstone_model::mkfs::MkfsOptions;

#[derive(Debug)]
pub(super) struct Erofs;

impl Filesystem for Erofs {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "erofs",
            package: "erofs-utils",
            tools: &["mkfs.erofs", "fsck.erofs", "dump.erofs"],
            mkfs: &["mkfs.erofs", "-d1", "--quiet"],
            // What is never written is never repaired: both modes check.
            fsck: Some(Fsck { read_only: &["fsck.erofs", "--extract"], repair: &["fsck.erofs", "--extract"] }),
            superblock: &["dump.erofs", "-s"],
            // One block, with the root directory in it. The device has to hold the tree, which mkfs finds out.
            minimum_bytes: 4096,
            // Not those that name files and devices, such as `--blobdev` and `--compress-hints`.
            mkfs_options: MkfsOptions {
                flags: "--all-root --ignore-mtime --preserve-mtime --quiet",
                values: "-C -d -E -L -T -U -x -z --chunksize --exclude-path --exclude-regex --force-gid --force-uid --gid-offset \
                    --max-extent-bytes --uid-offset --workers",
                ..MkfsOptions::NONE
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

    /// It ends with 1 for whatever went wrong, a filesystem that is damaged or a device that is not there.
    fn verdict(&self, output: &CommandOutput) -> Verdict {
        let said = |word| output.stderr.contains(word) || output.stdout.contains(word);
        match output.status {
            0 => Verdict::Clean,
            1 if said("corruption") || said("checksum") => Verdict::Errors,
            _ => Verdict::Unusable,
        }
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
    let mut made = mkfs_command(Erofs.facts().mkfs, &[], options, device);
    made.args.push(tree.to_owned());
    made
}
