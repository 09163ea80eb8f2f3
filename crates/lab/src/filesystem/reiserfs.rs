//! ReiserFS (version 3): reiserfsprogs.

use super::{CommandLine, CommandOutput, Facts, Filesystem, Verdict, mkfs_command, parse};
use fstone_model::{
    metric::{Figure, catalog},
    mkfs::MkfsOptions,
    study::FsckMode,
};

#[derive(Debug)]
pub(super) struct Reiserfs;

impl Filesystem for Reiserfs {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "reiserfs",
            package: "reiserfsprogs",
            tools: &["mkfs.reiserfs", "reiserfsck", "debugreiserfs"],
            // The journal alone takes 32 MiB.
            minimum_bytes: 64 << 20,
            // Not `-B` (reads a file) and `-j` (writes to another device).
            mkfs_options: MkfsOptions {
                flags: "-d -f -q --debug --force --quiet",
                values: "-b -h -l -o -s -t -u --block-size --format --hash --journal-offset --journal-size --label \
                    --transaction-max-size --uuid",
                settings: &[],
                whole_words: false,
            },
            // Not `jdev`, which writes to another device.
            mount_values: "alloc barrier block-allocator commit data errors grpjquota hash jqfmt resize usrjquota",
            mkfs_is_exclusive: true,
            modules_asked_by_name: &[],
        }
    }

    fn mkfs(&self, options: &[String], device: &str) -> CommandLine {
        // Twice -f: no question even where it would ask one.
        mkfs_command("mkfs.reiserfs", &["-q", "-f", "-f"], options, device)
    }

    fn fsck(&self, mode: FsckMode, device: &str) -> Option<CommandLine> {
        let mode = match mode {
            FsckMode::ReadOnly => "--check",
            FsckMode::Repair => "--fix-fixable",
        };
        Some(CommandLine::new("reiserfsck", [mode, "--yes", "--quiet", device]))
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
        directories
            .zip(files)
            .map(|(directories, files)| catalog::FSCK_FILES_USED.figure(directories + files))
            .into_iter()
            .collect()
    }

    fn superblock(&self, device: &str) -> Option<CommandLine> {
        Some(CommandLine::new("debugreiserfs", [device]))
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

    #[test]
    fn figures_are_read() {
        let stdout = "There are on the filesystem:\n\tLeaves 1\n\tInternal nodes 0\n\tDirectories 2\n\tOther files 5\n";
        let output = CommandOutput { stdout: stdout.into(), ..CommandOutput::default() };
        assert_eq!(Reiserfs.figures(&output), [catalog::FSCK_FILES_USED.figure(7.0)]);
    }
}
