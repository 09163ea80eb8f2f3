//! ext2, ext3, ext4: e2fsprogs.

use super::{CommandLine, CommandOutput, Facts, Filesystem, Fsck, mkfs_command, parse};
use fstone_model::{
    metric::{Figure, catalog},
    mkfs::MkfsOptions,
};

#[derive(Debug)]
pub(super) struct Ext(Facts);

pub(super) const EXT2: Ext = ext("ext2", &["mkfs.ext2", "e2fsck", "dumpe2fs"], &["mkfs.ext2", "-q", "-F"]);
pub(super) const EXT3: Ext = ext("ext3", &["mkfs.ext3", "e2fsck", "dumpe2fs"], &["mkfs.ext3", "-q", "-F"]);
pub(super) const EXT4: Ext = ext("ext4", &["mkfs.ext4", "e2fsck", "dumpe2fs"], &["mkfs.ext4", "-q", "-F"]);

/// From this file tools take what a study leaves to them.
pub(crate) const SETTINGS: &str = "/etc/mke2fs.conf";

const fn ext(kind: &'static str, tools: &'static [&'static str], mkfs: &'static [&'static str]) -> Ext {
    Ext(Facts {
        kind,
        package: "e2fsprogs",
        tools,
        mkfs,
        fsck: Some(Fsck { read_only: &["e2fsck", "-fn"], repair: &["e2fsck", "-fy"] }),
        superblock: &["dumpe2fs", "-h"],
        modules_asked_by_name: &["crc32c_generic"],
        // Below 2048 blocks of 1 KiB mke2fs makes no journal.
        minimum_bytes: 2 << 20,
        // Not `-d` and `-l` (read files), `-J device=` and `-z` (write to another); nor `-R`, an old name of `-E` that would undo
        // ours.
        mkfs_options: MkfsOptions {
            flags: "-c -D -F -j -K -n -q -v",
            values: "-b -C -e -E -g -G -i -I -L -m -N -o -O -r -t -T -U",
            settings: &[("-J", "size location fast_commit_size")],
            ..MkfsOptions::NONE
        },
        // Not `journal_dev` and `journal_path`, which write to another device.
        mount_values: "auto_da_alloc barrier commit data data_err dax debug_want_extra_isize errors fc_debug_max_replay grpjquota \
            init_itable inode_readahead_blks journal_ioprio jqfmt max_batch_time max_dir_size_kb mb_optimize_scan \
            min_batch_time resgid resuid sb stripe test_dummy_encryption usrjquota",
        mkfs_is_exclusive: true,
    })
}

/// Lazy initialisation would write inode tables and journal some seconds after the mount, into the measurement.
const NOT_LAZY: [&str; 2] = ["lazy_itable_init=0", "lazy_journal_init=0"];

/// The study's options behind extended ones of ours.
///
/// mke2fs takes the last `-E` only, so a study's `-E` gets ours in front of its value; what the study says itself about
/// them stands.
fn extended(options: &[String], ours: &[&str]) -> Vec<String> {
    let ours = |theirs: &str| {
        let key = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
        let missing = ours.iter().filter(|word| !theirs.split(',').any(|said| key(said) == key(word))).copied();
        missing.chain((!theirs.is_empty()).then_some(theirs)).collect::<Vec<_>>().join(",")
    };
    let mut result = options.to_vec();
    // The last -E is the one that counts; "-E" as the value of another option ("-L -E") is not worth a parser.
    match options.iter().rposition(|word| word.starts_with("-E")) {
        Some(at) if options[at] == "-E" => {
            if let Some(value) = result.get_mut(at + 1) {
                *value = ours(value);
            }
        }
        Some(at) => result[at] = format!("-E{}", ours(&options[at][2..])),
        None => {
            result.insert(0, ours(""));
            result.insert(0, "-E".to_owned());
        }
    }
    result
}

/// The number behind an option's last letter or in the next word.
fn value_of(options: &[String], option: &str) -> Option<f64> {
    let at = options.iter().rposition(|word| word.starts_with(option))?;
    options[at]
        .strip_prefix(option)
        .filter(|value| !value.is_empty())
        .or(options.get(at + 1).map(String::as_str))?
        .parse()
        .ok()
}

/// As mke2fs takes it from its settings: the last section that has it counts.
fn bytes_per_inode(kind: &str, size_bytes: u64) -> Option<f64> {
    let by_size = match size_bytes >> 20 {
        0..3 => "floppy",
        3..512 => "small",
        512..0x40_0000 => "default",
        0x40_0000..0x100_0000 => "big",
        _ => "huge",
    };
    let settings = fstone_files::read_text(std::path::Path::new(SETTINGS)).ok()?;
    let (mut section, mut found) = ("", [None; 3]);
    for line in settings.lines().map(str::trim) {
        match line.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
            Some((name, "{")) => section = name,
            Some(("inode_ratio", value)) => {
                let of = if section == by_size { 2 } else { usize::from(section == kind) };
                if of > 0 || section == "[defaults]" {
                    found[of] = value.parse().ok();
                }
            }
            Some(_) => {}
            None if line.starts_with('[') => section = line,
            None => {}
        }
    }
    found.into_iter().rev().flatten().next()
}

impl Filesystem for Ext {
    fn facts(&self) -> &Facts {
        &self.0
    }

    fn mkfs(&self, options: &[String], device: &str) -> CommandLine {
        mkfs_command(self.0.mkfs, &[], &extended(options, &NOT_LAZY), device)
    }

    /// Of what mke2fs draws, the place of names in directories follows from this. It draws by the time of day, too, and a guest's is
    /// another to the microsecond under another kernel or build of fstone.
    fn seeded(&self, options: &[String], seed: u64) -> Vec<String> {
        let [high, low] = [seed, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)];
        let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0xffff);
        let seed = format!("hash_seed={a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff);
        extended(options, &[&seed])
    }

    fn mkfs_of_tree(&self, options: &[String], device: &str, tree: &str) -> Option<CommandLine> {
        Some(mkfs_command(self.0.mkfs, &["-d", tree], &extended(options, &NOT_LAZY), device))
    }

    fn is_unclean(&self, output: &CommandOutput) -> bool {
        output.says("skipping journal recovery")
    }

    fn inodes(&self, options: &[String], size_bytes: u64) -> Option<f64> {
        // A usage type, of which its settings may say anything.
        let is_typed = options.iter().any(|word| word.starts_with("-T"));
        let bytes = value_of(options, "-i").map_or_else(|| bytes_per_inode(self.0.kind, size_bytes), Some);
        value_of(options, "-N").or_else(|| Some(size_bytes as f64 / bytes?)).filter(|_| !is_typed)
    }

    /// From e2fsck's last line: `/dev/loop0: 11/32768 files (0.0% non-contiguous), 13883/131072 blocks`.
    fn figures(&self, output: &CommandOutput) -> Vec<Figure> {
        let parsed = || {
            let line = output.stdout.lines().rev().find(|line| line.contains("% non-contiguous), "))?;
            let (files, blocks) = line.rsplit_once("), ")?;
            let (files, share) = files.rsplit_once(" files (")?;
            let (files_used, files_total) = parse::fraction(files.rsplit_once(": ")?.1)?;
            let (blocks_used, blocks_total) = parse::fraction(blocks.trim_end().strip_suffix(" blocks")?)?;
            Some(vec![
                catalog::FSCK_FILES_USED.figure(files_used),
                catalog::FSCK_FILES_TOTAL.figure(files_total),
                catalog::FSCK_NON_CONTIGUOUS.figure(parse::number_before(share, "% non-contiguous")?),
                catalog::FSCK_BLOCKS_USED.figure(blocks_used),
                catalog::FSCK_BLOCKS_TOTAL.figure(blocks_total),
            ])
        };
        parsed().unwrap_or_default()
    }

    fn parse_superblock(&self, text: &str) -> Vec<(String, String)> {
        parse::pairs(
            text,
            ':',
            &[
                ("Filesystem features", "features"),
                ("Default mount options", "default mount options"),
                ("Block size", "block size"),
                ("Block count", "blocks"),
                ("Inode size", "inode size"),
                ("Inode count", "inodes"),
                ("Blocks per group", "blocks per group"),
                ("Inodes per group", "inodes per group"),
                ("Flex block group size", "flex group size"),
                ("RAID stride", "stride"),
                ("RAID stripe width", "stripe width"),
                ("Journal features", "journal features"),
                ("Total journal size", "journal size"),
                ("Checksum type", "checksum"),
                ("Default directory hash", "directory hash"),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn lazy_initialisation_is_off_unless_the_study_says_otherwise() {
        for (study, made) in [
            ("", "-E lazy_itable_init=0,lazy_journal_init=0"),
            ("-I 256", "-E lazy_itable_init=0,lazy_journal_init=0 -I 256"),
            ("-I 256 -E stride=16", "-I 256 -E lazy_itable_init=0,lazy_journal_init=0,stride=16"),
            ("-Estride=16", "-Elazy_itable_init=0,lazy_journal_init=0,stride=16"),
            ("-E lazy_itable_init=1", "-E lazy_journal_init=0,lazy_itable_init=1"),
            ("-E lazy_itable_init=1,lazy_journal_init", "-E lazy_itable_init=1,lazy_journal_init"),
            ("-E stride=8 -E stride=16", "-E stride=8 -E lazy_itable_init=0,lazy_journal_init=0,stride=16"),
            ("-I 256 -E", "-I 256 -E"),
        ] {
            assert_eq!(extended(&words(study), &NOT_LAZY), words(made), "{study}");
        }
    }

    #[test]
    fn directories_follow_from_the_seed_unless_the_study_says_otherwise() {
        let seeded = |study: &str, seed| EXT4.seeded(&words(study), seed).join(" ");
        assert_eq!(seeded("", 1), "-E hash_seed=00000000-0000-0001-9e37-79b97f4a7c15");
        assert_ne!(seeded("", 2), seeded("", 1));
        assert_eq!(
            seeded("-I 256 -E stride=8", 0),
            "-I 256 -E hash_seed=00000000-0000-0000-0000-000000000000,stride=8"
        );
        let own = "-E hash_seed=00000000-0000-0000-0000-000000000007";
        assert_eq!(seeded(own, 1), own);
        assert_eq!(EXT3.mkfs(&EXT3.seeded(&[], 1), "/dev/vda").typed().matches("-E").count(), 1);
    }

    /// Beside what mke2fs makes, to the next whole group.
    #[test]
    fn inodes_are_known_before_they_are_made() {
        let inodes = |study: &str, size| EXT4.inodes(&words(study), size);
        assert_eq!((inodes("-N 256", 1 << 30), inodes("-I 256 -i4096", 1 << 30)), (Some(256.0), Some(262_144.0)));
        assert_eq!(inodes("-T news", 1 << 30), None);
        if std::process::Command::new("mkfs.ext4").arg("-V").output().is_err() {
            return;
        }
        for size in [100u64 << 20, 1 << 30, 5 << 40] {
            let image = tempfile::NamedTempFile::new_in("/var/tmp").expect("a file");
            image.as_file().set_len(size).expect("sized");
            let output =
                std::process::Command::new("mkfs.ext4").args(["-n", "-F"]).arg(image.path()).output().expect("it runs");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let made: f64 =
                text.split(" inodes").next().and_then(|head| head.rsplit(' ').next()?.parse().ok()).expect("a number");
            let known = inodes("", size).expect("known");
            assert!((known / made - 1.0).abs() < 0.05, "{size}: {known} of {made}");
        }
    }

    #[test]
    fn e2fsck_figures_are_read() {
        let output = CommandOutput {
            stdout: "Pass 5: Checking group summary information\n/dev/loop0: 27939/8936928 files (3.9% \
                     non-contiguous), 725683/17871210 blocks\n"
                .into(),
            ..CommandOutput::default()
        };
        let values: Vec<f64> = EXT4.figures(&output).iter().map(|figure| figure.value).collect();
        assert_eq!(values, [27939.0, 8_936_928.0, 3.9, 725_683.0, 17_871_210.0]);
        assert!(EXT4.figures(&CommandOutput::default()).is_empty());
    }
}
