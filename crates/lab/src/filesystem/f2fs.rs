//! F2FS: f2fs-tools.

use super::{CommandOutput, Facts, Filesystem, Fsck, Verdict, parse};
use fstone_model::{
    metric::{Figure, catalog},
    mkfs::MkfsOptions,
};

#[derive(Debug)]
pub(super) struct F2fs;

impl Filesystem for F2fs {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "f2fs",
            package: "f2fs-tools",
            tools: &["mkfs.f2fs", "fsck.f2fs", "dump.f2fs"],
            mkfs: &["mkfs.f2fs", "-q", "-f"],
            fsck: Some(Fsck { read_only: &["fsck.f2fs", "--dry-run"], repair: &["fsck.f2fs", "-f"] }),
            superblock: &["dump.f2fs"],
            modules_asked_by_name: &["crc32_generic"],
            minimum_bytes: 64 << 20,
            // Not `-c`, which writes to other devices.
            mkfs_options: MkfsOptions {
                flags: "-f -i -m -q -r",
                values: "-a -C -d -e -E -l -o -O -R -s -t -T -U -w -z",
                ..MkfsOptions::NONE
            },
            mount_values: "active_logs alloc_mode background_gc checkpoint compress_algorithm compress_extension compress_log_size \
                compress_mode discard_unit errors fault_injection fault_type fsync_mode grpjquota inline_xattr_size io_bits \
                jqfmt lookup_mode memory mode nocompress_extension prjjquota reserve_node reserve_root resgid resuid \
                test_dummy_encryption usrjquota whint_mode",
            mkfs_is_exclusive: true,
        }
    }

    /// Old versions end with 0 whatever they find, but each check says `[Ok..]` or `[Fail]`.
    fn verdict(&self, output: &CommandOutput) -> Verdict {
        match Verdict::of_fsck_status(output.status) {
            Verdict::Clean if output.stdout.contains("[Fail]") => Verdict::Errors,
            verdict => verdict,
        }
    }

    fn is_unclean(&self, output: &CommandOutput) -> bool {
        output.says("sudden-power-off")
    }

    /// From lines such as `[FSCK] valid_inode_count matched with CP              [Ok..] [0x1]`.
    fn figures(&self, output: &CommandOutput) -> Vec<Figure> {
        let count = |name: &str| {
            let line = output.stdout.lines().find(|line| line.contains(name))?;
            let (_, number) = line.rsplit_once("[0x")?;
            u64::from_str_radix(number.trim_end().strip_suffix(']')?, 16).ok()
        };
        let files = count("valid_inode_count matched").map(|n| catalog::FSCK_FILES_USED.figure(n as f64));
        let blocks = count("valid_block_count matching").map(|n| catalog::FSCK_BLOCKS_USED.figure(n as f64));
        files.into_iter().chain(blocks).collect()
    }

    fn parse_superblock(&self, text: &str) -> Vec<(String, String)> {
        let text: String = text.lines().map(|line| format!("{}\n", line.trim_start_matches("Info: "))).collect();
        let wanted = [
            ("superblock features", "features"),
            ("Segments per section", "segments per section"),
            ("Sections per zone", "sections per zone"),
            ("total FS sectors", "sectors"),
        ];
        parse::pairs(&text, '=', &wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_and_figures_are_read() {
        let stdout = "[FSCK] valid_block_count matching with CP             [Ok..] [0x1f]\n[FSCK] valid_inode_count matched \
                      with CP              [Ok..] [0x10]\n";
        let mut output = CommandOutput { stdout: stdout.into(), ..CommandOutput::default() };
        let values: Vec<f64> = F2fs.figures(&output).iter().map(|figure| figure.value).collect();
        assert_eq!(values, [16.0, 31.0]);
        assert_eq!(F2fs.verdict(&output), Verdict::Clean);
        output.stdout.push_str("[FSCK] SIT valid block bitmap checking                [Fail]\n");
        assert_eq!(F2fs.verdict(&output), Verdict::Errors);
    }
}
