//! exFAT: exfatprogs.

use super::{CommandOutput, Facts, Filesystem, Fsck, parse};
use fstone_model::{metric::Figure, mkfs::MkfsOptions};

#[derive(Debug)]
pub(super) struct Exfat;

impl Filesystem for Exfat {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "exfat",
            package: "exfatprogs",
            tools: &["mkfs.exfat", "fsck.exfat", "dump.exfat"],
            mkfs: &["mkfs.exfat"],
            fsck: Some(Fsck { read_only: &["fsck.exfat", "-n"], repair: &["fsck.exfat", "-y"] }),
            superblock: &["dump.exfat"],
            minimum_bytes: 4 << 20,
            mkfs_options: MkfsOptions {
                flags: "-f -q -v --full-format --pack-bitmap --quiet --verbose",
                values: "-b -c -L -n -s -U --boundary-align --cluster-size --sector-size --volume-guid --volume-label",
                ..MkfsOptions::NONE
            },
            mount_values: "allow_utime dmask errors fmask gid iocharset time_offset uid umask",
            mkfs_is_exclusive: true,
            modules_asked_by_name: &[],
        }
    }

    /// From `/dev/loop0: clean. directories 1, files 0`.
    fn figures(&self, output: &CommandOutput) -> Vec<Figure> {
        let directories = parse::number_after(&output.stdout, "directories ");
        let files = parse::number_after(&output.stdout, ", files ");
        parse::files_used(directories, files)
    }

    fn parse_superblock(&self, text: &str) -> Vec<(String, String)> {
        parse::pairs(text, ':', &[("Cluster size", "cluster size"), ("Total Clusters", "clusters")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::metric::catalog;

    #[test]
    fn figures_are_read() {
        let output =
            CommandOutput { stdout: "/dev/loop0: clean. directories 3, files 4\n".into(), ..CommandOutput::default() };
        assert_eq!(Exfat.figures(&output), [catalog::FSCK_FILES_USED.figure(7.0)]);
    }
}
