//! JFS: jfsutils.

use super::{CommandLine, CommandOutput, Facts, Filesystem, Fsck, parse};
use fstone_model::{metric::Figure, mkfs::MkfsOptions};

#[derive(Debug)]
pub(super) struct Jfs;

impl Filesystem for Jfs {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "jfs",
            package: "jfsutils",
            tools: &["mkfs.jfs", "fsck.jfs", "jfs_tune"],
            mkfs: &["mkfs.jfs", "-q"],
            fsck: Some(Fsck { read_only: &["fsck.jfs", "-f", "-n"], repair: &["fsck.jfs", "-f", "-p"] }),
            superblock: &["jfs_tune", "-l"],
            minimum_bytes: 16 << 20,
            // Not `-j` and `-J`, which write to another device.
            mkfs_options: MkfsOptions { flags: "-c -O -q", values: "-L -s", ..MkfsOptions::NONE },
            mount_values: "discard errors gid iocharset resize uid umask",
            mkfs_is_exclusive: true,
            modules_asked_by_name: &[],
        }
    }

    /// The kernel does not replay its log. With `-a` its check does, and goes on only where the filesystem is still not clean: it is
    /// what runs at a boot.
    fn recovery(&self, device: &str) -> Option<CommandLine> {
        Some(CommandLine::new("fsck.jfs", ["-a", device]))
    }

    /// From lines such as `        0 kilobytes in 1 directories.`
    fn figures(&self, output: &CommandOutput) -> Vec<Figure> {
        let directories = parse::number_before(&output.stdout, " directories.");
        let files = parse::number_before(&output.stdout, " user files.");
        parse::files_used(directories, files)
    }

    fn parse_superblock(&self, text: &str) -> Vec<(String, String)> {
        let wanted = [
            ("JFS version", "version"),
            ("JFS flags", "features"),
            ("Aggregate block size", "block size"),
            ("Aggregate size", "size"),
            ("Allocation group size", "allocation group size"),
        ];
        parse::pairs(text, ':', &wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::metric::catalog;

    #[test]
    fn figures_are_read() {
        let stdout = "   102400 kilobytes total disk space.\n        0 kilobytes in 3 directories.\n       12 kilobytes in 39 \
                      user files.\n";
        let output = CommandOutput { stdout: stdout.into(), ..CommandOutput::default() };
        assert_eq!(Jfs.figures(&output), [catalog::FSCK_FILES_USED.figure(42.0)]);
    }
}
