//! Real filesystems on real loop devices. Every image is below a directory of the test's own in /tmp.

use crate::support::{
    Memory, assert_clean, cell, command, loop_device, may_use_devices, options, plan, scratch_directory, shell, step,
};
use fstone_lab::{
    events::{Event, ProgressSink, Silent},
    run::carry_out::{RunEnd, carry_out},
};
use fstone_model::{
    Outcome, Trial,
    study::{DeviceSpec, FsckMode, StepAction},
};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

const TOOLS: &[&str] =
    &["mkfs.ext4", "e2fsck", "dumpe2fs", "mkfs.xfs", "xfs_repair", "xfs_db", "mkfs.btrfs", "btrfs", "blkid"];

fn fsck(mode: FsckMode) -> fstone_model::Step {
    step("fsck", StepAction::Fsck { mode })
}

fn run(work: &Path, plan: &fstone_model::Plan) -> Vec<Trial> {
    let mut memory = Memory::default();
    let end = carry_out(plan, &options(work), &[], &mut memory, &Silent, &AtomicBool::new(false)).expect("carried out");
    assert_eq!(end, RunEnd::Completed);
    assert_clean(work);
    memory.trials
}

fn figure(trial: &Trial, step: &str, metric: &str) -> f64 {
    trial.figure(step, metric).unwrap_or_else(|| panic!("{step}: {metric}: {trial:#?}")).value
}

fn fact<'a>(trial: &'a Trial, name: &str) -> &'a str {
    let facts = &trial.effective.superblock;
    facts.iter().find(|(fact, _)| fact == name).map_or("", |(_, value)| value)
}

#[test]
fn filesystems_are_made_mounted_used_and_checked() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let work = scratch_directory();
    let steps = || {
        vec![
            // Synced within the step: another test's sync(2) between two steps would write what no step has counted.
            shell(
                "write",
                "for i in 1 2 3 4 5 6 7 8 9 10; do head -c 100000 /dev/urandom > file$i; done; sync -f file1",
            ),
            step("sync", StepAction::Sync),
            step("remount", StepAction::Remount),
            command("read", &["tar", "cf", "/dev/zero", "{mount}"]),
            step("trim", StepAction::Trim),
            fsck(FsckMode::ReadOnly),
        ]
    };
    let cells = vec![
        cell("ext3", "-I 256", "data=writeback", steps()),
        cell("ext4", "-I 256 -O ^metadata_csum,uninit_bg -G 64", "data=writeback,nodelalloc,noatime", steps()),
        cell("xfs", "-l lazy-count=1 -d agcount=2", "", steps()),
        cell("btrfs", "", "nodiscard", steps()),
    ];
    let trials = run(work.path(), &plan(cells, 1));
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        assert_eq!(trial.outcome, Outcome::Completed, "{trial:#?}");
        assert_eq!(trial.steps.len(), 9, "with what the trial itself took");
        for name in ["mkfs", "mount", "write", "read", "fsck"] {
            assert!(figure(trial, name, "time") > 0.0, "{name}");
        }
        assert!(figure(trial, "write", "device written bytes") > 900_000.0, "{trial:#?}");
        assert!(figure(trial, "read", "device read bytes") > 900_000.0, "read again after the remount");
        assert_eq!(figure(trial, "fsck", "exit status"), 0.0);
        assert!(!fact(trial, "features").is_empty());
    }
    let of = |kind: u32| trials.iter().find(|trial| trial.id.cell == kind).expect("there");
    let ext4 = of(1);
    assert!(figure(ext4, "fsck", "files used") >= 20.0);
    assert!(figure(ext4, "fsck", "blocks total") > figure(ext4, "fsck", "blocks used"));
    let mount = ext4.effective.mount.as_deref().expect("read back");
    for option in ["noatime", "data=writeback", "nodelalloc"] {
        assert!(mount.split(',').any(|word| word == option), "{option} in {mount}");
    }
    assert!(fact(ext4, "features").contains("uninit_bg") && !fact(ext4, "features").contains("metadata_csum"));
    assert_eq!(fact(ext4, "flex group size"), "64");
    assert!(!fact(of(0), "features").contains("extent"));
    assert_eq!(fact(of(2), "agcount"), "2");
    assert!(fact(of(3), "features").contains("no_holes"));
}

#[test]
fn refusals_are_in_the_words_of_whoever_refuses() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let work = scratch_directory();
    let mut small = cell("xfs", "", "", Vec::new());
    small.device = loop_device(100 << 20);
    let cells = vec![
        cell("ext4", "", "nomballoc", Vec::new()),
        cell("ext4", "-O lazy_bg", "", Vec::new()),
        cell("ext4", "", "data=ordered,journal_async_commit", Vec::new()),
        cell("xfs", "", "logbufs=77", Vec::new()),
        cell("xfs", "-d agcount=0", "", Vec::new()),
        cell("btrfs", "", "nonsense", Vec::new()),
        cell("reiser4", "", "", Vec::new()),
        small,
        cell("xfs", "-d nosuch=1", "", Vec::new()),
    ];
    let trials = run(work.path(), &plan(cells, 2));
    assert_eq!(trials.len(), 9, "none is tried twice");
    let words = |cell: u32| {
        let trial = trials.iter().find(|trial| trial.id.cell == cell).expect("tried");
        let reason = trial.outcome.reason().expect("not completed");
        format!("{} at {}: {}", trial.outcome.word(), reason.step, reason.words)
    };
    for (cell, expected) in [
        (0, "refused at mount: ext4: Unknown parameter 'nomballoc'"),
        (1, "refused at mkfs: Invalid filesystem option set: lazy_bg"),
        (4, "refused at mkfs: Invalid value 0 for -d agcount option. Value is too small."),
        (5, "refused at mount: btrfs: Unknown parameter 'nonsense'"),
        (7, "refused at mkfs: xfs needs 300 MiB and the device has 100 MiB"),
        (8, "refused at mkfs: \"nosuch=1\" is not an option of mkfs.xfs that fstone knows to be safe"),
    ] {
        assert_eq!(words(cell), expected);
    }
    assert!(words(2).starts_with("refused at mount: ") && words(2).contains("journal_async_commit"), "{}", words(2));
    assert!(words(3).starts_with("refused at mount: ") && words(3).contains("logbufs"), "{}", words(3));
    assert!(words(6).starts_with("skipped at mkfs: Reiser4"));
}

#[test]
fn mount_attributes_reach_the_kernel() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let work = scratch_directory();
    let lists = [
        ("ro", "ro"),
        ("nosuid,nodev,noexec", "nosuid,nodev,noexec"),
        ("noatime", "noatime"),
        ("nodiratime", "nodiratime"),
        ("relatime", "relatime"),
        ("strictatime", "rw"),
        ("sync", "sync"),
        ("dirsync", "dirsync"),
        ("lazytime", "lazytime"),
        ("nosymfollow", "nosymfollow"),
        ("defaults", "relatime"),
    ];
    let cells = lists.iter().map(|(asked, _)| cell("ext4", "", asked, Vec::new())).collect();
    for trial in run(work.path(), &plan(cells, 1)) {
        let (asked, expected) = lists[trial.id.cell as usize];
        assert_eq!(trial.outcome, Outcome::Completed, "{asked}");
        let mount = trial.effective.mount.expect("read back");
        for option in expected.split(',') {
            assert!(mount.split(',').any(|word| word == option), "{asked}: {option} in {mount}");
        }
        assert!(asked != "strictatime" || !mount.contains("relatime"), "{mount}");
    }
}

#[test]
fn failures_of_steps_are_outcomes() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let work = scratch_directory();
    let mut hang = shell("hang", "sleep 1000 & wait");
    hang.limit = Duration::from_millis(300);
    let cells = vec![
        cell("ext4", "", "", vec![command("false", &["false"])]),
        cell("ext4", "", "", vec![hang]),
        cell("ext4", "", "", vec![shell("fill", "head -c 2000000000 /dev/zero > big")]),
        // Damages the superblock's copy of the free block count and a group's bitmap behind the filesystem's back.
        cell(
            "ext4",
            "",
            "",
            vec![step("unmount", StepAction::Unmount), shell_unmounted("damage"), fsck(FsckMode::ReadOnly)],
        ),
        cell("ext4", "", "", vec![command("missing", &["no-such-program-of-fstone"])]),
        cell(
            "ext4",
            "",
            "",
            vec![step("copy", StepAction::CopyIn { source: "/etc/hostname".into(), target: "../../x".into() })],
        ),
    ];
    let trials = run(work.path(), &plan(cells, 1));
    let told = |cell: u32| {
        let trial = trials.iter().find(|trial| trial.id.cell == cell).expect("tried");
        let reason = trial.outcome.reason().map(|reason| format!("{}: {}", reason.step, reason.words));
        format!("{}: {}", trial.outcome.word(), reason.unwrap_or_default())
    };
    assert!(
        told(0).starts_with("failed: false: exit status 1, without") && told(0).ends_with("(in `false`)"),
        "{}",
        told(0)
    );
    assert!(told(1).starts_with("hung: hang: not done within its limit of 300 ms"), "{}", told(1));
    assert!(told(2).starts_with("failed: fill: ") && told(2).contains("No space left on device"), "{}", told(2));
    assert!(told(3).starts_with("failed: damage: nothing is mounted"), "{}", told(3));
    assert!(told(4).starts_with("skipped: missing: no-such-program-of-fstone is not installed"), "{}", told(4));
    assert!(told(5).starts_with("refused: copy: "), "{}", told(5));
}

fn shell_unmounted(name: &str) -> fstone_model::Step {
    shell(name, "debugfs -w -R 'set_super_value free_blocks_count 1' {device}")
}

#[test]
fn damage_is_found_by_fsck() {
    if !may_use_devices(TOOLS) || !may_use_devices(&["debugfs"]) {
        return;
    }
    let work = scratch_directory();
    // Written to the device under the mounted, synced filesystem: the root directory's inode loses its link count.
    let damage = || shell("damage", "mkdir d; sync; debugfs -w -R 'set_inode_field /d links_count 9' {device}; sync");
    let cells = vec![
        cell("ext4", "", "", vec![damage(), fsck(FsckMode::ReadOnly)]),
        cell("ext4", "", "", vec![damage(), fsck(FsckMode::Repair)]),
    ];
    let trials = run(work.path(), &plan(cells, 1));
    let of = |cell: u32| trials.iter().find(|trial| trial.id.cell == cell).expect("tried");
    match &of(0).outcome {
        Outcome::Failed(reason) => {
            assert!(reason.words.starts_with("the filesystem is not consistent: e2fsck -fn"), "{reason:?}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(of(1).outcome, Outcome::Completed);
    assert!(of(1).warnings.iter().any(|words| words.contains("found something to correct")), "{:?}", of(1).warnings);
}

#[test]
fn loop_settings_reach_the_kernel() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let work = scratch_directory();
    let show = || {
        let script = "d=$(basename {device}); cat /sys/block/$d/queue/logical_block_size /sys/block/$d/loop/dio \
                      /sys/block/$d/queue/read_ahead_kb; grep -o '\\[[a-z-]*\\]' /sys/block/$d/queue/scheduler";
        shell("show", script)
    };
    let mut direct = cell("ext4", "", "", vec![show()]);
    direct.device = DeviceSpec::Loop {
        size_bytes: 64 << 20,
        direct_io: true,
        sector_bytes: 4096,
        directory: None,
        in_memory: false,
        model: None,
    };
    direct.queue = vec![("read_ahead_kb".into(), "512".into()), ("scheduler".into(), "none".into())];
    let mut unknown = cell("ext4", "", "", Vec::new());
    unknown.queue = vec![("no_such_setting".into(), "1".into())];
    let mut bad = cell("ext4", "", "", Vec::new());
    bad.queue = vec![("scheduler".into(), "no-such-scheduler".into())];
    let trials = run(work.path(), &plan(vec![cell("ext4", "", "", vec![show()]), direct, unknown, bad], 1));
    let of = |cell: u32| trials.iter().find(|trial| trial.id.cell == cell).expect("tried");
    let shown = |cell: u32| {
        let trial = of(cell);
        assert_eq!(trial.outcome, Outcome::Completed, "{trial:#?}");
        trial.steps[2].commands[0].output_tail.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(shown(0)[..2], ["512", "0"]);
    assert_eq!(shown(1), ["4096", "1", "512", "[none]"]);
    assert_ne!(shown(0)[2], "512", "the setting was put back, or never is the default");
    for cell in [2, 3] {
        assert!(
            matches!(&of(cell).outcome, Outcome::Refused(reason) if reason.step == "device"),
            "{:?}",
            of(cell).outcome
        );
    }
}

#[test]
fn an_image_in_memory_is_behind_its_loop_device() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let work = scratch_directory();
    let script = "cat /sys/block/$(basename {device})/loop/backing_file; stat -f -c %T {mount}";
    let mut in_memory = cell("ext4", "", "", vec![shell("show", script)]);
    in_memory.device = DeviceSpec::Loop {
        size_bytes: 64 << 20,
        direct_io: false,
        sector_bytes: 512,
        directory: None,
        in_memory: true,
        model: None,
    };
    let trials = run(work.path(), &plan(vec![in_memory], 2));
    assert_eq!(trials.len(), 2);
    for trial in trials {
        assert_eq!(trial.outcome, Outcome::Completed, "{trial:#?}");
        let shown = &trial.steps[2].commands[0].output_tail;
        assert!(shown.contains("memfd:fstone-image") && shown.contains("ext2/ext3"), "{shown}");
    }
}

#[test]
fn a_warm_up_is_run_and_not_recorded() {
    let work = scratch_directory();
    let beside = scratch_directory();
    let log = beside.path().join("log");
    let script = format!("echo ran >> {}", log.display());
    let mut here = cell("ext4", "", "", vec![shell("note", &script)]);
    here.device = DeviceSpec::Directory { path: None };
    let mut plan = plan(vec![here], 2);
    plan.warm_up = 3;
    let trials = run(work.path(), &plan);
    assert_eq!(trials.iter().map(|trial| (trial.id.repetition, trial.position)).collect::<Vec<_>>(), [(0, 0), (1, 1)]);
    assert_eq!(std::fs::read_to_string(log).expect("written").lines().count(), 5);
}

struct CancelAt<'a>(&'static str, &'a AtomicBool);

impl ProgressSink for CancelAt<'_> {
    fn event(&self, event: &Event<'_>) {
        if let Event::StepStarted { step, .. } = event
            && *step == self.0
        {
            self.1.store(true, Ordering::Release);
        }
    }
}

#[test]
fn a_cancelled_run_keeps_what_is_finished_and_leaves_nothing() {
    if !may_use_devices(TOOLS) {
        return;
    }
    for at in ["mkfs", "mount", "sleep", "fsck"] {
        let work = scratch_directory();
        let cancel = AtomicBool::new(false);
        let cells = vec![cell("ext4", "", "", vec![command("sleep", &["sleep", "100"]), fsck(FsckMode::ReadOnly)])];
        let mut plan = plan(cells, 2);
        if at == "fsck" {
            plan.cells[0].steps[2] = command("sleep", &["true"]);
        }
        let mut memory = Memory::default();
        let end = carry_out(&plan, &options(work.path()), &[], &mut memory, &CancelAt(at, &cancel), &cancel);
        assert_eq!(end.expect("no error"), RunEnd::Cancelled, "at {at}");
        assert!(memory.trials.is_empty(), "at {at}: the trial that was given up is not recorded");
        assert_clean(work.path());
    }
}

#[test]
fn a_directory_needs_nothing_and_loses_nothing() {
    let work = scratch_directory();
    std::fs::write(work.path().join("precious"), "data").expect("written");
    let mut cells = vec![cell(
        "ext4",
        "",
        "",
        vec![command("touch", &["touch", "{mount}/a"]), command("list", &["ls", "{mount}"]), fsck(FsckMode::ReadOnly)],
    )];
    cells[0].device = DeviceSpec::Directory { path: Some(work.path().display().to_string()) };
    let mut memory = Memory::default();
    let inner = scratch_directory();
    let end = carry_out(&plan(cells, 2), &options(inner.path()), &[], &mut memory, &Silent, &AtomicBool::new(false));
    assert_eq!(end.expect("carried out"), RunEnd::Completed);
    assert_eq!(memory.trials.len(), 2);
    for trial in &memory.trials {
        assert_eq!(trial.outcome, Outcome::Completed);
        let names: Vec<&str> = trial.steps.iter().map(|step| step.step.as_str()).collect();
        assert_eq!(names, ["touch", "list", "trial"]);
        assert_eq!(trial.steps[1].commands[0].output_tail, "a", "fresh each time");
        assert_eq!(trial.warnings.iter().filter(|words| words.contains("left out")).count(), 3);
        assert!(trial.effective.mount.is_some());
    }
    let left: Vec<_> =
        std::fs::read_dir(work.path()).expect("listed").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["precious"]);
    assert_clean(inner.path());
}
