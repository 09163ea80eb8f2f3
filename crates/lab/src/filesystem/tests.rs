//! The conformance suite: what every adapter has to hold, and on this machine's tools does hold.

mod documented;

use super::*;
use crate::{
    command::{CommandRunner, SystemRunner},
    stop::Stop,
};
use fstone_model::{mkfs::MkfsOptions, study::FsckMode};
use std::{sync::Arc, time::Duration};

const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn kinds_are_unique_and_found() {
    for filesystem in all() {
        let found = find(filesystem.kind()).expect("found by its own name");
        assert_eq!(found.facts().package, filesystem.facts().package, "{}", filesystem.kind());
        assert_eq!(all().iter().filter(|other| other.kind() == filesystem.kind()).count(), 1);
    }
    assert!(find("no-such-filesystem").is_none());
}

#[test]
fn the_tests_prerequisites_have_every_package() {
    let needs = include_str!("../../../../scripts/prerequisites");
    for filesystem in all().iter().filter(|filesystem| filesystem.unusable().is_none()) {
        let package = filesystem.facts().package;
        assert!(needs.contains(&format!(" {package}\"\n")), "scripts/prerequisites lacks {package}");
    }
}

#[test]
fn command_lines_name_the_device_once_and_only_declared_tools() {
    let options = ["--study's-option".to_owned()];
    for filesystem in all() {
        let kind = filesystem.kind();
        let mkfs = filesystem.mkfs(&options, "/dev/loop9");
        let count = |command: &CommandLine, word: &str| command.args.iter().filter(|arg| *arg == word).count();
        let of_tree = filesystem.mkfs_of_tree(&options, "/dev/loop9", "/tree");
        for command in of_tree.iter().chain([&mkfs]) {
            assert_eq!((count(command, &options[0]), count(command, "/dev/loop9")), (1, 1), "{}", command.typed());
            assert!(filesystem.facts().tools.contains(&command.program.as_str()), "{}", command.typed());
        }
        assert!(of_tree.is_none_or(|command| count(&command, "/tree") == 1), "{kind}");
        let commands = [FsckMode::ReadOnly, FsckMode::Repair].map(|mode| filesystem.fsck(mode, "/dev/loop9"));
        let is_writable = !matches!(kind, "erofs" | "squashfs");
        assert!(!is_writable || commands[0].is_none() || commands[0] != commands[1], "{kind}: the modes differ");
        for command in commands.into_iter().flatten().chain(filesystem.superblock("/dev/loop9")) {
            assert_eq!(command.args.last().map(String::as_str), Some("/dev/loop9"), "{}", command.typed());
            assert!(filesystem.facts().tools.contains(&command.program.as_str()), "{}", command.typed());
        }
        let facts = filesystem.facts();
        assert!(facts.minimum_bytes > 0 && !facts.package.is_empty() && !facts.tools.is_empty());
    }
}

pub(super) fn missing_from<const N: usize>(kinds: [&str; N]) -> Vec<&'static str> {
    let listed = kinds.map(|kind| &find(kind).expect("known").facts().mkfs_options);
    let with_options = all().iter().filter(|filesystem| filesystem.facts().mkfs_options != MkfsOptions::NONE);
    let missing = with_options.filter(|filesystem| !listed.contains(&&filesystem.facts().mkfs_options));
    missing.map(|filesystem| filesystem.kind()).collect()
}

#[test]
fn an_adapter_that_a_list_lacks_is_found() {
    assert_eq!(missing_from(["ext4"]).first(), Some(&"xfs"), "ext3 and ext2 have ext4's options");
    assert_eq!(missing_from([]).len(), all().len() - 1, "reiser4 has none");
}

/// Options that run commands, read files or write elsewhere, each in the forms its mkfs knows.
#[test]
fn options_that_run_programs_or_name_files_are_no_adapters() {
    let unsafe_lines = [
        ("ext4", &["-d|tree", "-dtree", "-l|file", "-z|undo", "-J|device=sdb", "-Jsize=4,device=sdb", "-F|sdb"][..]),
        ("xfs", &["-p|file", "-pfile", "-c|options=file", "-d|name=sdb", "-d|file", "-l|logdev=sdb", "-r|rtdev=sdb"]),
        ("btrfs", &["-r|tree", "-rtree", "-Kr|tree", "--rootdir|tree", "--rootdir=tree", "--rootd=tree", "-K|sdb"]),
        ("f2fs", &["-c|sdb", "-csdb"]),
        ("nilfs2", &["sdb"]),
        ("jfs", &["-j|sdb", "-J|device=sdb", "-Jjournal_dev"]),
        ("reiserfs", &["-j|sdb", "--journal-device=sdb", "-B|file", "--badblocks=file"]),
        ("vfat", &["-l|file", "-m|file", "-C|file"]),
        ("exfat", &["sdb"]),
        (
            "erofs",
            &["--blobdev=sdb", "--compress-hints=file", "--file-contexts=file", "--tar=f", "--sort=file", "tree"],
        ),
        (
            "squashfs",
            &[
                "-p|x f 644 0 0 id",
                "-pd|x d 755 0 0",
                "-pf|file",
                "-action|exclude@true",
                "-action-file|file",
                "-sort|file",
                "-ef|file",
                "-e|x",
                "-root-becomes|x",
                "-recover|file",
                "-recovery-path|x",
                "-tar",
                "-cpiostyle",
                "-info|x",
                "-comp|-p|x f 644 0 0 id",
                "-bad",
                "-Xhc=1",
            ],
        ),
    ];
    assert_eq!(missing_from(unsafe_lines.map(|(kind, _)| kind)), Vec::<&str>::new());
    for (kind, lines) in unsafe_lines {
        let filesystem = find(kind).expect("known");
        for line in lines {
            let words: Vec<String> = line.split('|').map(str::to_owned).collect();
            assert!(filesystem.facts().mkfs_options.unsafe_word(&words).is_some(), "{kind}: {line}");
        }
    }
}

#[test]
fn exact_command_lines() {
    let lines = |kind: &str, options: &[&str]| {
        let filesystem = find(kind).expect("known");
        let options: Vec<String> = options.iter().map(|word| (*word).to_owned()).collect();
        let mut lines = vec![filesystem.mkfs(&options, "/dev/loop0").typed()];
        for mode in [FsckMode::ReadOnly, FsckMode::Repair] {
            lines.extend(filesystem.fsck(mode, "/dev/loop0").map(|command| command.typed()));
        }
        lines.extend(filesystem.superblock("/dev/loop0").map(|command| command.typed()));
        lines
    };
    assert_eq!(
        lines("ext4", &["-I", "256", "-O", "uninit_bg,flex_bg", "-G", "64"]),
        [
            "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 -I 256 -O uninit_bg,flex_bg -G 64 /dev/loop0",
            "e2fsck -fn /dev/loop0",
            "e2fsck -fy /dev/loop0",
            "dumpe2fs -h /dev/loop0",
        ]
    );
    assert_eq!(
        lines("xfs", &["-l", "lazy-count=1", "-d", "agcount=16"]),
        [
            "mkfs.xfs -q -f -l lazy-count=1 -d agcount=16 /dev/loop0",
            "xfs_repair -n /dev/loop0",
            "xfs_repair -e /dev/loop0",
            "xfs_db -r -c info /dev/loop0",
        ]
    );
    assert_eq!(
        lines("btrfs", &[]),
        [
            "mkfs.btrfs -q -f /dev/loop0",
            "btrfs check /dev/loop0",
            "btrfs check --repair --force /dev/loop0",
            "btrfs inspect-internal dump-super /dev/loop0",
        ]
    );
    assert_eq!(
        lines("erofs", &["-zlz4hc"]),
        [
            "mkfs.erofs -d1 --quiet -zlz4hc /dev/loop0 .",
            "fsck.erofs --extract /dev/loop0",
            "fsck.erofs --extract /dev/loop0",
            "dump.erofs -s /dev/loop0"
        ]
    );
    assert_eq!(
        lines("squashfs", &["-comp", "zstd"]),
        ["mksquashfs . /dev/loop0 -noappend -quiet -no-progress -comp zstd", "unsquashfs -s /dev/loop0"]
    );
    let of_tree = |kind| find(kind).expect("known").mkfs_of_tree(&[], "/dev/loop0", "/tree").map(|line| line.typed());
    assert_eq!(
        of_tree("ext4").as_deref(),
        Some("mkfs.ext4 -q -F -d /tree -E lazy_itable_init=0,lazy_journal_init=0 /dev/loop0")
    );
    assert_eq!(of_tree("btrfs").as_deref(), Some("mkfs.btrfs -q -f --rootdir /tree /dev/loop0"));
    assert_eq!(of_tree("xfs"), None);
    assert_eq!(lines("nilfs2", &[]), ["mkfs.nilfs2 -q -f /dev/loop0", "nilfs-tune -l /dev/loop0"]);
}

#[test]
fn verdicts_of_common_statuses() {
    for filesystem in all() {
        let output = |status| CommandOutput { status, ..CommandOutput::default() };
        assert_eq!(filesystem.verdict(&output(0)), Verdict::Clean, "{}", filesystem.kind());
        assert_eq!(filesystem.verdict(&output(128 + 9)), Verdict::Unusable, "{}", filesystem.kind());
    }
    assert_eq!(Verdict::of_fsck_status(1), Verdict::Corrected);
    assert_eq!(Verdict::of_fsck_status(4), Verdict::Errors);
    assert_eq!(Verdict::of_fsck_status(12), Verdict::Errors);
    assert_eq!(Verdict::of_fsck_status(8), Verdict::Unusable);
    assert_eq!(Verdict::of_fsck_status(132), Verdict::Unusable);
}

#[test]
fn a_refusal_is_told_from_trouble() {
    let options = ["-O".to_owned(), "lazy_bg".to_owned()];
    let output = |status, stderr: &str| CommandOutput { status, stderr: stderr.into(), ..CommandOutput::default() };
    assert!(mkfs_refused(&options, &output(1, "Invalid filesystem option set: lazy_bg")));
    assert!(!mkfs_refused(&[], &output(1, "Invalid filesystem option set: lazy_bg")));
    assert!(!mkfs_refused(&options, &output(1, "mkfs.ext4: No space left on device while writing")));
    assert!(!mkfs_refused(&options, &output(137, "")));
}

/// mkfs, fsck and read-back with the real tools, on image files: needs no rights and no loop device.
#[test]
fn real_tools_make_check_and_read_back() {
    let directory = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
    let runner = SystemRunner::new(Arc::new(Stop::default()));
    for filesystem in all().iter().filter(|filesystem| filesystem.unusable().is_none()) {
        let kind = filesystem.kind();
        if let Some(tool) = filesystem.facts().tools.iter().find(|tool| runner.find(tool).is_none()) {
            eprintln!("skipped: {kind}: {tool} is missing (apt-get install {})", filesystem.facts().package);
            continue;
        }
        let image = directory.path().join(kind);
        let file = std::fs::File::create(&image).expect("image");
        let size = filesystem.facts().minimum_bytes.next_multiple_of(1 << 20);
        file.set_len(size).expect("sized");
        let device = image.to_str().expect("plain path");
        // As in a trial: in an empty directory, of which read-only filesystems are made.
        let empty = tempfile::tempdir().expect("an empty directory");
        let run = |command: &CommandLine| runner.run(&command.clone().in_directory(empty.path()), LIMIT).expect("runs");
        let succeed = |command: &CommandLine| {
            let output = run(command);
            assert_eq!(output.status, 0, "{}: {}{}", command.typed(), output.stdout, output.stderr);
            output
        };
        succeed(&filesystem.mkfs(&[], device));
        for mode in [FsckMode::ReadOnly, FsckMode::Repair] {
            if let Some(command) = filesystem.fsck(mode, device) {
                let output = run(&command);
                assert_eq!(filesystem.verdict(&output), Verdict::Clean, "{}", command.typed());
            }
        }
        if kind == "nilfs2" {
            eprintln!("skipped: nilfs2 read-back: nilfs-tune reads block devices only");
            continue;
        }
        if let Some(command) = filesystem.superblock(device) {
            let output = succeed(&command);
            let facts = filesystem.parse_superblock(&output.stdout);
            assert!(facts.len() >= 2, "{}: {facts:?} from\n{}", command.typed(), output.stdout);
        }
        // The least size is true: half of it is refused by the tool or makes no sense to it.
        if matches!(kind, "xfs" | "btrfs") {
            file.set_len(size / 2).expect("sized");
            let output = run(&filesystem.mkfs(&[], device));
            assert_ne!(output.status, 0, "{kind} takes half its minimum");
        }
    }
}

#[test]
fn real_tools_find_damage() {
    use std::os::unix::fs::FileExt;
    let directory = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
    let runner = SystemRunner::new(Arc::new(Stop::default()));
    // Where rubbish does harm that can be repaired: group descriptors; an allocation group's header; an entry of the FAT.
    for (kind, offset, length) in [("ext4", 4096, 4096), ("xfs", 512, 512), ("vfat", 4096, 2)] {
        let filesystem = find(kind).expect("known");
        if let Some(tool) = filesystem.facts().tools.iter().find(|tool| runner.find(tool).is_none()) {
            eprintln!("skipped: {kind}: {tool} is missing (apt-get install {})", filesystem.facts().package);
            continue;
        }
        let image = directory.path().join(kind);
        let file = std::fs::File::create(&image).expect("image");
        file.set_len(filesystem.facts().minimum_bytes.next_multiple_of(64 << 20)).expect("sized");
        let device = image.to_str().expect("plain path");
        let run = |command: &CommandLine| runner.run(command, LIMIT).expect("runs");
        assert_eq!(run(&filesystem.mkfs(&[], device)).status, 0);
        file.write_all_at(&vec![0x5a; length], offset).expect("damaged");
        let check = |mode| {
            let output = run(&filesystem.fsck(mode, device).expect("has a check"));
            let verdict = filesystem.verdict(&output);
            (verdict, format!("{kind} {mode:?}: {}\n{}\n{}", output.status, output.stdout, output.stderr))
        };
        let (verdict, said) = check(FsckMode::ReadOnly);
        assert_eq!(verdict, Verdict::Errors, "{said}");
        let (verdict, said) = check(FsckMode::Repair);
        assert_eq!(verdict, Verdict::Corrected, "{said}");
        let (verdict, said) = check(FsckMode::ReadOnly);
        assert_eq!(verdict, Verdict::Clean, "{said}");
    }
}
