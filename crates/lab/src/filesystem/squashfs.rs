//! SquashFS: squashfs-tools. Read-only: it holds what mksquashfs put into it. It has no check of its own.

use super::{CommandLine, Facts, Filesystem};
use fstone_model::mkfs::MkfsOptions;

#[derive(Debug)]
pub(super) struct Squashfs;

impl Filesystem for Squashfs {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "squashfs",
            package: "squashfs-tools",
            tools: &["mksquashfs", "unsquashfs"],
            mkfs: &["mksquashfs"],
            fsck: None,
            superblock: &["unsquashfs", "-s"],
            // Padded to 4 KiB. The device has to hold the tree, which mksquashfs finds out.
            minimum_bytes: 4096,
            // Not `-p` and `-pf`, which run commands, nor those that name files, such as `-sort` and `-recovery-path`.
            mkfs_options: MkfsOptions {
                flags: "-all-root -always-use-fragments -exports -exit-on-error -keep-as-directory -no-duplicates -no-exports \
                    -no-fragments -no-hardlinks -no-progress -no-recovery -no-sparse -no-tailends -no-xattrs -noD \
                    -noDataCompression -noF -noFragmentCompression -noI -noId -noIdTableCompression -noInodeCompression -noX \
                    -noXattrCompression -noappend -nopad -not-reproducible -one-file-system -quiet -reproducible -root-owned \
                    -tailends -xattrs -Xhc",
                values: "-all-time -b -comp -force-gid -force-uid -fstime -limit -mem -mkfs-time -processors -root-gid -root-mode \
                    -root-time -root-uid -throttle -Xalgorithm -Xbcj -Xcompression-level -Xdict-size -Xstrategy \
                    -Xwindow-size",
                whole_words: true,
                ..MkfsOptions::NONE
            },
            mount_values: "errors threads",
            mkfs_is_exclusive: false,
            modules_asked_by_name: &[],
        }
    }

    /// Without a tree it is made of the directory that mksquashfs runs in, which is empty.
    fn mkfs(&self, options: &[String], device: &str) -> CommandLine {
        made_of(options, device, ".")
    }

    fn mkfs_of_tree(&self, options: &[String], device: &str, tree: &str) -> Option<CommandLine> {
        Some(made_of(options, device, tree))
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
