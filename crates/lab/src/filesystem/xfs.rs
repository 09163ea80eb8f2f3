//! XFS: xfsprogs.

use super::{CommandOutput, Facts, Filesystem, Fsck, Verdict};
use fstone_model::mkfs::MkfsOptions;

#[derive(Debug)]
pub(super) struct Xfs;

impl Filesystem for Xfs {
    fn facts(&self) -> &Facts {
        &Facts {
            kind: "xfs",
            package: "xfsprogs",
            tools: &["mkfs.xfs", "xfs_repair", "xfs_db"],
            mkfs: &["mkfs.xfs", "-q", "-f"],
            // With -e its status tells a repair from a clean filesystem.
            fsck: Some(Fsck { read_only: &["xfs_repair", "-n"], repair: &["xfs_repair", "-e"] }),
            // What xfs_info(8) runs; without its wrapper's search for a mount point.
            superblock: &["xfs_db", "-r", "-c", "info"],
            modules_asked_by_name: &["crc32c_generic"],
            // "Filesystem must be larger than 300MB.", since xfsprogs 5.19.
            minimum_bytes: 300 << 20,
            // Not `-c` and `-p` (read files), nor `name=`, `logdev=` and `rtdev=` (write to others).
            mkfs_options: MkfsOptions {
                flags: "-f -K -q",
                values: "-b -i -L -m -n -s",
                settings: &[
                    (
                        "-d",
                        "agcount agsize size sunit swidth su sw noalign sectsize rtinherit projinherit extszinherit \
                 cowextsize daxinherit concurrency",
                    ),
                    ("-l", "agnum internal size version sunit su sectsize lazy-count concurrency"),
                    ("-r", "extsize size noalign rgcount rgsize concurrency"),
                ],
                ..MkfsOptions::NONE
            },
            // Not `logdev` and `rtdev`, which write to another device.
            mount_values: "allocsize biosize dax logbsize logbufs max_atomic_write max_open_zones sunit swidth",
            mkfs_is_exclusive: true,
        }
    }

    /// xfs_repair(8): 1 with -n is corruption and without it a failure of xfs_repair itself, 2 a log that was not
    /// replayed, 4 with -e a repair.
    fn verdict(&self, output: &CommandOutput) -> Verdict {
        match output.status {
            0 => Verdict::Clean,
            1 if output.stderr.contains("fatal error") || !output.stderr.contains("Phase 1") => Verdict::Unusable,
            1 | 2 => Verdict::Errors,
            4 => Verdict::Corrected,
            _ => Verdict::Unusable,
        }
    }

    fn option_of_copies(&self) -> Option<&'static str> {
        Some("nouuid")
    }

    fn is_unclean(&self, output: &CommandOutput) -> bool {
        output.says("valuable metadata changes in a log")
    }

    /// Lines such as `         =                       reflink=1    bigtime=1`, under the section that began last
    /// (`meta-data`, `data`, `naming`, `log`, `realtime`).
    fn parse_superblock(&self, text: &str) -> Vec<(String, String)> {
        let mut section = "";
        let mut facts: Vec<(String, String)> = Vec::new();
        let mut features = Vec::new();
        for line in text.lines() {
            let Some((head, rest)) = line.split_once('=') else { continue };
            if !head.trim().is_empty() {
                section = head.trim();
            }
            // The text right behind the section's name is free ("internal log", "version 2", the device).
            for word in rest.split_whitespace() {
                let Some((name, value)) = word.trim_end_matches(',').split_once('=') else { continue };
                if section == "meta-data" && value == "1" {
                    features.push(name);
                    continue;
                }
                let name = if section == "meta-data" { name.to_owned() } else { format!("{section} {name}") };
                facts.push((name, value.to_owned()));
            }
        }
        if !features.is_empty() {
            facts.insert(0, ("features".to_owned(), features.join(" ")));
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometry_is_read() {
        let text = "meta-data=x                      isize=512    agcount=4, agsize=25600 blks\n         =                       \
                    crc=1        finobt=1, sparse=1, rmapbt=0\nnaming   =version 2              bsize=4096   ascii-ci=0, \
                    ftype=1\nlog      =internal log           bsize=4096   blocks=16384, version=2\n         =               \
                    sectsz=512   sunit=0 blks, lazy-count=1\n";
        let facts = Xfs.parse_superblock(text);
        let value = |name: &str| facts.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        assert_eq!(value("features"), Some("crc finobt sparse"));
        assert_eq!(value("agcount"), Some("4"));
        assert_eq!(value("log lazy-count"), Some("1"));
        assert_eq!(value("naming ftype"), Some("1"));
    }

    #[test]
    fn statuses_are_understood() {
        let output = |status, stderr: &str| CommandOutput { status, stderr: stderr.into(), ..CommandOutput::default() };
        for (status, stderr, verdict) in [
            (0, "", Verdict::Clean),
            (1, "Phase 1 - find and verify superblock...\nbad magic", Verdict::Errors),
            (1, "xfs_repair: cannot open /dev/loop9: No such file", Verdict::Unusable),
            (2, "Phase 1 - find\nERROR: The filesystem has valuable metadata changes in a log", Verdict::Errors),
            (4, "", Verdict::Corrected),
            (127, "", Verdict::Unusable),
        ] {
            assert_eq!(Xfs.verdict(&output(status, stderr)), verdict, "{status} {stderr}");
        }
    }
}
