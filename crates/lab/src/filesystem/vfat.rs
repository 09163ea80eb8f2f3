//! FAT with long names: dosfstools.

use super::{CommandLine, CommandOutput, Facts, Filesystem, Fsck, Verdict, parse};
use fstone_model::{
    metric::{Figure, catalog},
    mkfs::MkfsOptions,
};

#[derive(Debug)]
pub(super) struct Vfat;

impl Filesystem for Vfat {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "vfat",
            package: "dosfstools",
            tools: &["mkfs.vfat", "fsck.vfat"],
            // -I: a whole device, not a partition.
            mkfs: &["mkfs.vfat", "-I"],
            fsck: Some(Fsck { read_only: &["fsck.vfat", "-n"], repair: &["fsck.vfat", "-a"] }),
            superblock: &["fsck.vfat", "-n", "-v"],
            // The code page of short names, and the character sets that kernels are built to take names for.
            modules_asked_by_name: &["nls_cp437", "nls_ascii", "nls_iso8859-1", "nls_utf8"],
            minimum_bytes: 1 << 20,
            // Not `-l` and `-m` (read files) and `-C` (makes one). The value of `--mbr` may be missing: behind a blank it would be the
            // device.
            mkfs_options: MkfsOptions {
                flags: "-a -A -c -I -v --invariant --mbr --mbr=a --mbr=n --mbr=y",
                values: "-b -D -f -F -h -i -M -n -r -R -s -S --codepage --offset --variant",
                ..MkfsOptions::NONE
            },
            mount_values: "allow_utime check codepage conv debug dmask errors fat fmask gid iocharset nfs shortname time_offset uid \
                umask utf8",
            mkfs_is_exclusive: true,
        }
    }

    /// mkfs.vfat and fsck.vfat have no option for it; fatlabel, of the same package, has.
    fn version(&self, _tool: &str) -> CommandLine {
        CommandLine::new("fatlabel", ["--version"])
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

    /// The kernel leaves the dirty bit as it found it, and the check ends with 1 for that bit alone. In FAT32 it is also a difference
    /// from the backup of the boot sector, at byte 65.
    fn is_clean_after_power_cut(&self, output: &CommandOutput) -> bool {
        const OF_THE_DIRTY_BIT: [&str; 7] = [
            "There are differences between boot sector and its backup.",
            "This is mostly harmless. Differences: (offset:original/backup)",
            "65:01/00",
            "Not automatically fixing this.",
            "Dirty bit is set. Fs was not properly unmounted and some data may be corrupt.",
            "Automatically removing dirty bit.",
            "Leaving filesystem unchanged.",
        ];
        let mut lines = output.stdout.lines().map(str::trim).filter(|line| !line.is_empty());
        let harmless = |line: &str| {
            OF_THE_DIRTY_BIT.contains(&line) || line.starts_with("fsck.fat ") || line.ends_with(" clusters")
        };
        let mut only_dirty = || {
            let is_dirty = output.stdout.contains("Dirty bit is set.") && output.stdout.contains(" clusters");
            output.status == 1 && output.stderr.trim().is_empty() && is_dirty && lines.all(harmless)
        };
        self.verdict(output) == Verdict::Clean || only_dirty()
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

    /// Output of fsck.fat 4.2.
    #[test]
    fn a_dirty_bit_alone_is_no_fault_after_a_power_cut() {
        let check = |status, said: &str, stderr: &str| {
            let stdout = format!("fsck.fat 4.2 (2021-01-31)\n{said}i.img: 0 files, 1/129022 clusters\n");
            CommandOutput { status, stdout, stderr: stderr.into(), ..CommandOutput::default() }
        };
        let dirty = "Dirty bit is set. Fs was not properly unmounted and some data may be corrupt.\n \
                     Automatically removing dirty bit.\n\nLeaving filesystem unchanged.\n";
        let differs = |bytes: &str| {
            format!(
                "There are differences between boot sector and its backup.\nThis is mostly harmless. Differences: \
                 (offset:original/backup)\n  {bytes}\n  Not automatically fixing this.\n{dirty}"
            )
        };
        for said in [dirty.to_owned(), differs("65:01/00")] {
            let output = check(1, &said, "");
            assert!(Vfat.is_clean_after_power_cut(&output), "{said}");
            assert_eq!(Vfat.verdict(&output), Verdict::Errors, "where no power was cut: {said}");
            assert!(!Vfat.is_clean_after_power_cut(&check(1, &said, "Read 512 bytes at 0: Input/output error\n")));
            assert!(!Vfat.is_clean_after_power_cut(&check(2, &said, "")));
        }
        let reclaimed =
            format!("FATs differ but appear to be intact.\n  Using first FAT.\nReclaimed 3 unused clusters.\n{dirty}");
        for said in [reclaimed, differs("65:01/00, 71:41/42"), "Reclaimed 3 unused clusters.\n".to_owned()] {
            assert!(!Vfat.is_clean_after_power_cut(&check(1, &said, "")), "{said}");
        }
        assert!(Vfat.is_clean_after_power_cut(&check(0, "", "")));
    }
}
