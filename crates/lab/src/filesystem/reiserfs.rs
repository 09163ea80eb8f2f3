//! ReiserFS (version 3): reiserfsprogs.

use super::{CommandOutput, Facts, Filesystem, Fsck, Verdict, parse};
use fstone_model::{metric::Figure, mkfs::MkfsOptions};

#[derive(Debug)]
pub(super) struct Reiserfs;

impl Filesystem for Reiserfs {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "reiserfs",
            package: "reiserfsprogs",
            tools: &["mkfs.reiserfs", "reiserfsck", "debugreiserfs"],
            // Twice -f: no question even where it would ask one.
            mkfs: &["mkfs.reiserfs", "-q", "-f", "-f"],
            fsck: Some(Fsck {
                read_only: &["reiserfsck", "--check", "--yes", "--quiet"],
                repair: &["reiserfsck", "--fix-fixable", "--yes", "--quiet"],
            }),
            superblock: &["debugreiserfs"],
            // The journal alone takes 32 MiB.
            minimum_bytes: 64 << 20,
            // Not `-B` (reads a file) and `-j` (writes to another device).
            mkfs_options: MkfsOptions {
                flags: "-d -f -q --debug --force --quiet",
                values: "-b -h -l -o -s -t -u --block-size --format --hash --journal-offset --journal-size --label \
                    --transaction-max-size --uuid",
                ..MkfsOptions::NONE
            },
            // Not `jdev`, which writes to another device.
            mount_values: "alloc barrier block-allocator commit data errors grpjquota hash jqfmt resize usrjquota",
            mkfs_is_exclusive: true,
            modules_asked_by_name: &[],
        }
    }

    /// reiserfsck(8): 1 corrected (and, in fact, 1 after --fix-fixable whatever it found), 4 fatal and 6 fixable
    /// corruptions left, 8 and 16 its own trouble.
    fn verdict(&self, output: &CommandOutput) -> Verdict {
        match output.status {
            0 => Verdict::Clean,
            1 if [&output.stdout, &output.stderr].iter().any(|text| text.contains("No corruptions found")) => {
                Verdict::Clean
            }
            1 => Verdict::Corrected,
            4 | 6 => Verdict::Errors,
            _ => Verdict::Unusable,
        }
    }

    fn figures(&self, output: &CommandOutput) -> Vec<Figure> {
        let text = format!("{}{}", output.stdout, output.stderr);
        let directories = parse::number_after(&text, "\tDirectories ");
        let files = parse::number_after(&text, "\tOther files ");
        parse::files_used(directories, files)
    }

    fn parse_superblock(&self, text: &str) -> Vec<(String, String)> {
        let wanted = [
            ("Count of blocks on the device", "blocks"),
            ("Blocksize", "block size"),
            ("Hash function used to sort names", "directory hash"),
            ("sb_version", "version"),
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
        let stdout = "There are on the filesystem:\n\tLeaves 1\n\tInternal nodes 0\n\tDirectories 2\n\tOther files 5\n";
        let output = CommandOutput { stdout: stdout.into(), ..CommandOutput::default() };
        assert_eq!(Reiserfs.figures(&output), [catalog::FSCK_FILES_USED.figure(7.0)]);
    }
}
