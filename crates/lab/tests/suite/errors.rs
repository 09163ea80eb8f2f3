//! ENOSPC, EIO, EROFS and EDQUOT in each kind of step, by real filesystems: an outcome with operation, path and errno,
//! and the cells after it go on.

use crate::{
    load::{load, small_files},
    support::{
        Memory, assert_clean, cell, command, finds_image, loop_device, may_use_devices, options, plan,
        scratch_directory, shell, step,
    },
};
use fstone_lab::{
    events::Silent,
    run::carry_out::{LabError, RunEnd, carry_out},
};
use fstone_model::{
    Cell, Outcome, Step,
    study::{DeviceSpec, FsckMode, StepAction},
};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::AtomicBool,
    time::Duration,
};

const TOOLS: &[&str] =
    &["mkfs.ext4", "e2fsck", "dumpe2fs", "mkfs.btrfs", "btrfs", "mkfs.xfs", "blkid", "losetup", "truncate"];
const SMALL: u64 = 24 << 20;
/// ext4 commits its journal every five seconds, and goes read-only when it cannot; and for as long after its mount a thread of
/// the kernel clears its inode tables. On a machine that is busy enough either would meet the error in the step before the one
/// that is to meet it.
const LATE_COMMIT: &str = "commit=600,noinit_itable";
const EIO: &str = "Input/output error";
const EROFS: &str = "Read-only file system";

fn writes() -> Step {
    let mut files = small_files(2000, None);
    files.phases[0].stop.operations = Some(100);
    load(files)
}

fn copies(source: &Path) -> Step {
    step("copy", StepAction::CopyIn { source: source.display().to_string(), target: "copy".into() })
}

fn fsck() -> Step {
    step("fsck", StepAction::Fsck { mode: FsckMode::ReadOnly })
}

/// What is written after this lies beyond the first 64 MiB, and the filesystem's own tables before.
fn filled_up_to_64m() -> Step {
    shell("fill", "fallocate -l 120M filler && sync")
}

/// Shortens the device below the mounted filesystem: what is beyond gives EIO from now on, read or written.
fn fails_from_here() -> Step {
    shell("break", &format!("{}; truncate -s 64M $image && losetup -c {{device}}", finds_image()))
}

fn outcomes(work: &Path, cells: Vec<Cell>) -> Vec<String> {
    let count = cells.len();
    let mut all = Vec::new();
    for broken in cells {
        all.push(broken);
        all.push(cell("ext4", "", "", vec![command("touch", &["touch", "{mount}/a"])]));
    }
    let plan = plan(all, 1);
    let mut memory = Memory::default();
    let end = carry_out(&plan, &options(work), &[], &mut memory, &Silent, &AtomicBool::new(false));
    assert_eq!(end.expect("the study goes on"), RunEnd::Completed);
    memory.trials.sort_by_key(|trial| trial.id);
    assert_eq!(memory.trials.len(), 2 * count);
    let told = |outcome: &Outcome| match outcome.reason() {
        Some(reason) => format!("{} at {}: {}", outcome.word(), reason.step, reason.words),
        None => outcome.word().to_owned(),
    };
    assert!(memory.trials.iter().skip(1).step_by(2).all(|trial| trial.outcome.is_completed()), "{:#?}", memory.trials);
    memory.trials.iter().step_by(2).map(|trial| told(&trial.outcome)).collect()
}

/// What needs no room, and goes on in a filesystem that is full or read-only.
fn writes_nothing() -> Vec<Step> {
    vec![
        step("sync", StepAction::Sync),
        step("trim", StepAction::Trim),
        step("drop-caches", StepAction::DropCaches),
        step("fragmentation", StepAction::Fragmentation),
        step("remount", StepAction::Remount),
        fsck(),
    ]
}

#[track_caller]
fn assert_told(told: &str, step: &str, operation: &str, path: &str, error: &str) {
    assert!(told.starts_with(&format!("failed at {step}: ")), "{step}: {told}");
    for words in [operation, path, error] {
        assert!(told.contains(words), "{step}: {words:?} in {told}");
    }
}

#[test]
fn a_full_filesystem_is_told_by_every_step_that_writes() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let work = scratch_directory();
    let source = scratch_directory();
    fs::write(source.path().join("big"), vec![1; 2 * SMALL as usize]).expect("written");
    let small = |steps| {
        let mut cell = cell("ext4", "", "", steps);
        cell.device = loop_device(SMALL);
        cell
    };
    let fill = || shell("fill", "head -c 1G /dev/zero > filled || true");
    let told = outcomes(
        work.path(),
        vec![
            small(vec![writes()]),
            small(vec![shell("command", "cat /dev/zero > full")]),
            small(vec![copies(&source.path().join("big"))]),
            small([vec![fill()], writes_nothing()].concat()),
        ],
    );
    let full = "No space left on device";
    assert_told(&told[0], "load", "write", "/mnt/", full);
    assert_told(&told[1], "command", "cat", "full", full);
    assert_told(&told[2], "copy", "error writing", "/mnt/copy", full);
    assert_eq!(told[3], "completed");
    assert_clean(work.path());
}

/// Asserts that a failed device is told by the step that is to meet it.
///
/// Any sync(2) on the machine, such as another test's, may have ext4 meet it first: then
/// it gives up its journal, and whoever writes next is told that it is read-only. (Without a journal it is no better: the kernel
/// then tries for ever to allocate blocks beyond the end of a device that was shortened, and every sync(2) waits for it.)
#[track_caller]
fn assert_device_told(told: &str, step: &str, operation: &str, path: &str) {
    match (told.contains(EROFS), told.contains(" at dirty: ")) {
        (true, true) => assert_told(told, "dirty", "head", "", EROFS),
        (true, false) => assert_told(told, step, "", "", EROFS),
        (false, _) => assert_told(told, step, operation, path, EIO),
    }
}

#[test]
fn a_device_that_fails_is_told_by_every_step() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let work = scratch_directory();
    let source = scratch_directory();
    fs::write(source.path().join("big"), vec![1; 8 << 20]).expect("written");
    // Each step meets a filesystem with dirty data, or with nothing of it in memory, whose device has just failed.
    // Made dirty after the failure: another test's sync(2) cannot make it durable before.
    let made = || shell("make", "touch dirty && sync");
    let dirty = || shell("dirty", "head -c 8M /dev/zero >> dirty");
    let cold = || {
        vec![
            shell("cold", "mkdir -p d/e; touch d/e/f; head -c 8M /dev/zero > d/e/g"),
            step("again", StepAction::Remount),
        ]
    };
    let after = |mut before: Vec<Step>, steps: Vec<Step>| {
        before.insert(0, filled_up_to_64m());
        before.push(fails_from_here());
        before.extend(steps);
        cell("ext4", "", LATE_COMMIT, before)
    };
    let cells = vec![
        after(
            vec![shell("prepare", "fallocate -l 8M file && sync")],
            vec![shell("command", "dd if=/dev/zero of=file bs=1M count=8 conv=notrunc,fsync")],
        ),
        // cp(1) does not sync; what it wrote is looked at when the trial ends.
        after(Vec::new(), vec![copies(&source.path().join("big"))]),
        after(vec![made()], vec![dirty(), step("sync", StepAction::Sync)]),
        after(vec![made()], vec![dirty(), step("remount", StepAction::Remount)]),
        after(vec![made()], vec![dirty(), step("unmount", StepAction::Unmount)]),
        after(vec![made()], vec![dirty(), step("drop-caches", StepAction::DropCaches)]),
        after(cold(), vec![step("fragmentation", StepAction::Fragmentation)]),
        // ext4 keeps such an error to itself.
        Cell {
            device: loop_device(320 << 20),
            ..cell("xfs", "", "", vec![fails_from_here(), step("trim", StepAction::Trim)])
        },
    ];
    let told = outcomes(work.path(), cells);
    for (told, (step, operation)) in told.iter().zip([
        ("command", "dd"),
        ("copy", "syncfs"),
        ("sync", "sync "),
        ("remount", "syncfs"),
        ("unmount", "syncfs"),
        ("drop-caches", "syncfs"),
        ("fragmentation", ""),
        ("trim", "FITRIM"),
    ]) {
        assert_device_told(told, step, operation, if step == "command" { "file" } else { "/mnt" });
    }
    assert_clean(work.path());
}

#[test]
fn a_read_only_filesystem_is_told_by_every_step_that_writes() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let work = scratch_directory();
    let read_only = |steps| cell("ext4", "", "ro", steps);
    let told = outcomes(
        work.path(),
        vec![
            read_only(vec![writes()]),
            read_only(vec![command("command", &["touch", "{mount}/a"])]),
            read_only(vec![copies(Path::new("/etc/hostname"))]),
            read_only(writes_nothing()),
        ],
    );
    let error = "Read-only file system";
    assert_told(&told[0], "load", "mkdir", "/mnt/", error);
    assert_told(&told[1], "command", "touch", "/mnt/a", error);
    assert_told(&told[2], "copy", "create", "/mnt/copy", error);
    assert_eq!(told[3], "completed");
    assert_clean(work.path());
}

#[test]
fn a_quota_is_told_by_every_step_that_writes() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let work = scratch_directory();
    let source = scratch_directory();
    fs::write(source.path().join("big"), vec![1; 2 * SMALL as usize]).expect("written");
    // btrfs brings its own quotas; those of ext4 and xfs are often not in a kernel.
    let limit = || shell("limit", "btrfs quota enable {mount} && btrfs qgroup limit 8M {mount} && sync");
    let limited = |step| cell("btrfs", "", "", vec![limit(), step]);
    let told = outcomes(
        work.path(),
        vec![
            limited(writes()),
            limited(shell("command", "cat /dev/zero > full")),
            limited(copies(&source.path().join("big"))),
        ],
    );
    if told[0].contains("at limit: ") {
        eprintln!("skipped: no quotas here: {}", told[0]);
        return;
    }
    let error = "Disk quota exceeded";
    assert_told(&told[0], "load", "", "/mnt/", error);
    assert_told(&told[1], "command", "cat", "full", error);
    assert_told(&told[2], "copy", "error writing", "/mnt/copy", error);
    assert_clean(work.path());
}

/// A disk that is a loop device on a loop device on a file of a filesystem of its own: what is below can run full, as
/// below a thin volume, or fail, and the disk keeps its size.
struct Stack {
    directory: tempfile::TempDir,
    lower: String,
    upper: String,
}

impl Stack {
    fn new(room: &str) -> Self {
        let directory = scratch_directory();
        let options = format!("size={room}");
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(directory.path()).status();
        assert!(status.expect("mount starts").success());
        let image = directory.path().join("image");
        fs::File::create(&image).and_then(|file| file.set_len(128 << 20)).expect("made");
        let attach = |below: &str| {
            let output = Command::new("losetup").args(["-f", "--show", below]).output().expect("losetup starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        let lower = attach(image.to_str().expect("plain"));
        let upper = attach(&lower);
        Self { directory, lower, upper }
    }

    /// What its only trial gives. It cannot be erased in the end, and so no other trial may follow on it.
    fn told(&self, steps: Vec<Step>) -> String {
        let work = scratch_directory();
        let mut cell = cell("ext4", "", LATE_COMMIT, steps);
        cell.device = DeviceSpec::Block { path: self.upper.clone() };
        let mut options = options(work.path());
        options.allow_destroy = vec![self.upper.clone().into()];
        let mut memory = Memory::default();
        let end = carry_out(&plan(vec![cell], 1), &options, &[], &mut memory, &Silent, &AtomicBool::new(false));
        assert!(matches!(&end, Err(LabError::Stuck { undo, .. }) if undo[0].what.contains(&self.upper)), "{end:?}");
        let reason = memory.trials[0].outcome.reason().expect("not completed");
        format!("{} at {}: {}", memory.trials[0].outcome.word(), reason.step, reason.words)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let directory = self.directory.path().to_str().expect("plain");
        for command in [["losetup", "-d", &self.upper], ["losetup", "-d", &self.lower], ["umount", "-q", directory]] {
            let done = (0..200).any(|_| {
                let status = Command::new(command[0]).args(&command[1..]).stdout(Stdio::null()).status();
                std::thread::sleep(Duration::from_millis(20));
                status.expect("starts").success()
            });
            assert!(done, "{command:?}");
        }
    }
}

#[test]
fn a_disk_that_runs_full_or_fails_below_is_told() {
    if !may_use_devices(TOOLS) {
        return;
    }
    assert_told(&Stack::new("64k").told(Vec::new()), "mkfs", "mkfs.ext4", "", EIO);
    // ext4 goes read-only when it cannot write its journal, which is a matter of moments.
    let told = Stack::new("32m").told(vec![writes()]);
    assert_device_told(&told, "load", "building fileset", "/mnt");
    let mut creates = small_files(100, None);
    creates.phases[0].stop.operations = Some(8000);
    let told = Stack::new("32m").told(vec![load(creates)]);
    assert_device_told(&told, "load", "syncfs", "");

    // From here on all beyond the first 64 KiB fails, with nothing of it in memory, and nothing that is still to be written.
    let fails = |stack: &Stack| {
        shell(
            "break",
            &format!(
                "sync -f . && truncate -s 64K {} && losetup -c {} && blockdev --flushbufs {} && echo 1 > /proc/sys/vm/drop_caches",
                stack.directory.path().join("image").display(),
                stack.lower,
                stack.lower,
            ),
        )
    };
    let unmount = || step("unmount", StepAction::Unmount);
    let stack = Stack::new("100m");
    // Made dirty after the failure: another test's sync(2) cannot make it durable before.
    let made = shell("make", "touch dirty && sync");
    let dirty = shell("dirty", "head -c 8M /dev/zero >> dirty");
    let told = stack.told(vec![made, fails(&stack), dirty, step("sync", StepAction::Sync)]);
    assert_device_told(&told, "sync", "sync ", "/mnt");
    drop(stack);
    let stack = Stack::new("100m");
    let told = stack.told(vec![fails(&stack), unmount(), step("mount again", StepAction::Mount)]);
    // What little the mount itself has left to write may meet the failure first.
    match told.contains("syncfs") {
        true => assert_device_told(&told, "unmount", "syncfs", "/mnt"),
        false => assert_told(&told, "mount again", "fsconfig", &stack.upper, "error"),
    }
    drop(stack);
    let stack = Stack::new("100m");
    let told = stack.told(vec![fails(&stack), fsck()]);
    // Likewise.
    match told.contains("syncfs") {
        true => assert_device_told(&told, "fsck", "syncfs", "/mnt"),
        false => assert_told(&told, "fsck", "e2fsck", &stack.upper, ""),
    }
}
