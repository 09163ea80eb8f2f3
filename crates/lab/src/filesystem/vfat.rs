//! FAT with long names: dosfstools.

use super::{CommandLine, CommandOutput, Filesystem, Verdict, mkfs_command, parse};
use fstone_model::{
    metric::{Figure, catalog},
    mkfs::MkfsOptions,
    study::FsckMode,
};

/// FAT.
#[derive(Debug)]
pub(super) struct Vfat;

impl Filesystem for Vfat {
    fn kind(&self) -> &'static str {
        "vfat"
    }

    fn package(&self) -> &'static str {
        "dosfstools"
    }

    fn tools(&self) -> &'static [&'static str] {
        &["mkfs.vfat", "fsck.vfat"]
    }

    /// mkfs.vfat and fsck.vfat have no option for it; fatlabel, of the same package, has.
    fn version(&self, _tool: &str) -> CommandLine {
        CommandLine::new("fatlabel", ["--version"])
    }

    /// The code page of short names, and the character sets that kernels are built to take names for.
    fn modules_asked_by_name(&self) -> &'static [&'static str] {
        &["nls_cp437", "nls_ascii", "nls_iso8859-1", "nls_utf8"]
    }

    fn minimum_bytes(&self) -> u64 {
        1 << 20
    }

    fn mkfs(&self, options: &[String], device: &str) -> CommandLine {
        // -I: a whole device, not a partition.
        mkfs_command("mkfs.vfat", &["-I"], options, device)
    }

    /// Not `-l` and `-m` (read files) and `-C` (makes one). The value of `--mbr` may be missing: behind a blank it would be the
    /// device.
    fn mkfs_options(&self) -> &'static MkfsOptions {
        &MkfsOptions {
            flags: &["-a", "-A", "-c", "-I", "-v", "--invariant", "--mbr", "--mbr=a", "--mbr=n", "--mbr=y"],
            values: &[
                "-b",
                "-D",
                "-f",
                "-F",
                "-h",
                "-i",
                "-M",
                "-n",
                "-r",
                "-R",
                "-s",
                "-S",
                "--codepage",
                "--offset",
                "--variant",
            ],
            settings: &[],
            whole_words: false,
        }
    }

    fn mount_values(&self) -> &'static [&'static str] {
        &[
            "allow_utime",
            "check",
            "codepage",
            "conv",
            "debug",
            "dmask",
            "errors",
            "fat",
            "fmask",
            "gid",
            "iocharset",
            "nfs",
            "shortname",
            "time_offset",
            "uid",
            "umask",
            "utf8",
        ]
    }

    fn mkfs_is_exclusive(&self) -> bool {
        true
    }

    fn fsck(&self, mode: FsckMode, device: &str) -> Option<CommandLine> {
        let flag = match mode {
            FsckMode::ReadOnly => "-n",
            FsckMode::Repair => "-a",
        };
        Some(CommandLine::new("fsck.vfat", [flag, device]))
    }

    /// fsck.fat(8): 1 when errors were found, whether it was allowed to correct them or not; 2 usage. It says when it
    /// left them ("Leaving filesystem unchanged.").
    fn verdict(&self, output: &CommandOutput) -> Verdict {
        match output.status {
            0 => Verdict::Clean,
            1 if output.stdout.contains("unchanged") || output.stderr.contains("unchanged") => Verdict::Errors,
            1 if output.stdout.contains(" clusters") => Verdict::Corrected,
            _ => Verdict::Unusable,
        }
    }

    /// From its last line: `/dev/loop0: 12 files, 345/51091 clusters`.
    fn figures(&self, output: &CommandOutput) -> Vec<Figure> {
        let parsed = || {
            let line = output.stdout.lines().rev().find(|line| line.ends_with(" clusters"))?;
            let (files, clusters) = line.rsplit_once(" files, ")?;
            let (used, total) = parse::fraction(clusters.strip_suffix(" clusters")?)?;
            Some(vec![
                catalog::FSCK_FILES_USED.figure(files.rsplit_once(": ")?.1.parse().ok()?),
                catalog::FSCK_BLOCKS_USED.figure(used),
                catalog::FSCK_BLOCKS_TOTAL.figure(total),
            ])
        };
        parsed().unwrap_or_default()
    }

    fn superblock(&self, device: &str) -> Option<CommandLine> {
        Some(CommandLine::new("fsck.vfat", ["-n", "-v", device]))
    }

    /// Lines such as `      2048 bytes per cluster`.
    fn parse_superblock(&self, text: &str) -> Vec<(String, String)> {
        ["bytes per logical sector", "bytes per cluster", "bit entries"]
            .into_iter()
            .filter_map(|name| {
                let line = text.lines().find(|line| line.contains(name))?;
                Some((
                    name.to_owned(),
                    parse::number_before(&line.replace(' ', ""), &name.replace(' ', ""))?.to_string(),
                ))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read() {
        let output = CommandOutput {
            stdout: "fsck.fat 4.2\n/dev/loop0: 12 files, 345/51091 clusters\n".into(),
            ..CommandOutput::default()
        };
        let values: Vec<f64> = Vfat.figures(&output).iter().map(|figure| figure.value).collect();
        assert_eq!(values, [12.0, 345.0, 51091.0]);
    }
}
