//! What is cold after `remount` and `drop-caches` on the host, and what is not.

use crate::load::small_files;
use crate::support::{
    Memory, assert_clean, cell, finds_image, may_use_devices, options, plan, scratch_directory, shell, step,
};
use fstone_lab::{
    events::Silent,
    run::carry_out::{RunEnd, carry_out},
};
use fstone_model::{
    Step, Trial,
    study::{Cell, StepAction},
    workload::{
        Action, Actions, Amount, Directories, Existing, FileChoice, Fileset, OpenPolicy, Operation, SizeDistribution,
        Stop, ThreadGroup,
    },
};
use std::sync::{Arc, atomic::AtomicBool};

const TOOLS: &[&str] = &["mkfs.ext4", "mkfs.ext2", "e2fsck", "dumpe2fs", "blkid", "losetup", "fincore"];

fn cached(name: &str) -> Step {
    cached_after("true", name)
}

/// At once, for other tests drop the caches of the whole machine.
fn cached_after(command: &str, name: &str) -> Step {
    shell(name, &format!("{}; {command} && fincore -nb -o RES $image", finds_image()))
}

fn printed(trial: &Trial, name: &str) -> u64 {
    let step = trial.steps.iter().find(|step| step.step == name).expect("it ran");
    let text = &step.commands.last().expect("a command").output_tail;
    text.trim().parse().unwrap_or_else(|_| panic!("{name}: {text:?}"))
}

/// ext2 passes no flush on, so what it wrote may still be dirty in the host's cache when it is unmounted.
#[test]
fn neither_a_remount_nor_dropping_caches_leaves_the_image_in_the_hosts_cache() {
    if !may_use_devices(TOOLS) {
        return;
    }
    let work = scratch_directory();
    let steps = || {
        vec![
            cached_after("head -c 33554432 /dev/urandom > file && sync file", "after write"),
            step("remount", StepAction::Remount),
            cached("after remount"),
            shell("read", "cat file > /dev/null"),
            shell("write more", "head -c 33554432 /dev/urandom > more"),
            step("drop-caches", StepAction::DropCaches),
            cached("after drop-caches"),
        ]
    };
    let carried_out = || {
        let cells = vec![cell("ext4", "", "", steps()), cell("ext2", "", "", steps())];
        let mut memory = Memory::default();
        let end = carry_out(&plan(cells, 1), &options(work.path()), &[], &mut memory, &Silent, &AtomicBool::new(false));
        assert_eq!(end.expect("carried out"), RunEnd::Completed);
        for trial in &memory.trials {
            assert!(trial.outcome.is_completed(), "{trial:#?}");
        }
        memory
    };
    // Another test may drop the machine's caches between the write and the look at them.
    let is_cached = |memory: &Memory| memory.trials.iter().all(|trial| printed(trial, "after write") >= 32 << 20);
    let mut memory = carried_out();
    for _ in 0..4 {
        if is_cached(&memory) {
            break;
        }
        memory = carried_out();
    }
    for trial in &memory.trials {
        let after = |what: &str| printed(trial, &format!("after {what}"));
        assert!(after("write") >= 32 << 20, "the image is cached at first: {}", after("write"));
        for cold in ["remount", "drop-caches"] {
            assert!(after(cold) < 4 << 20, "cell {}, after {cold}: {} bytes", trial.id.cell, after(cold));
        }
    }
    assert_clean(work.path());
}

/// Set-up looks at every file that is there already. That must not be what makes the load fast.
#[test]
fn names_are_as_cold_as_if_set_up_had_not_looked_at_them() {
    if !may_use_devices(&["mkfs.ext4", "e2fsck", "dumpe2fs"]) {
        return;
    }
    const FILES: u64 = 5000;
    let load = |name: &str, existing: Existing, operation: Option<Operation>, open: OpenPolicy, others: bool| {
        let mut workload = small_files(FILES, None);
        if others {
            let made = Fileset {
                name: "made".into(),
                directory: "made".into(),
                amount: Amount::Files(10),
                existing: Existing::Rebuild,
                ..workload.filesets[0].clone()
            };
            workload.filesets.push(made);
        }
        let fileset = &mut workload.filesets[0];
        (fileset.size, fileset.existing) = (SizeDistribution::Fixed(0), existing);
        fileset.directories = Directories::Flat { count: 50, root_too: false };
        match operation {
            None => workload.phases.clear(),
            Some(operation) => {
                let action = Action { choice: FileChoice::RoundRobin, ..Action::new("look", operation, Some(0)) };
                let group = ThreadGroup::new("threads", 1, Actions::Sequence(vec![action]));
                workload.phases[0].groups = vec![ThreadGroup { open, ..group }];
                workload.phases[0].stop = Stop { operations: Some(FILES), ..Stop::default() };
            }
        }
        step(name, StepAction::Load(Arc::new(workload)))
    };
    let (each, keep) = (OpenPolicy::PerOperation, OpenPolicy::KeepOpen);
    let looks = [
        (Existing::Assume, Operation::Stat, each, false),
        (Existing::Require, Operation::Stat, each, false),
        (Existing::Reuse, Operation::Stat, each, false),
        (Existing::Require, Operation::Stat, keep, false),
        (Existing::Assume, Operation::Readdir, each, false),
        (Existing::Require, Operation::Readdir, each, false),
        (Existing::Require, Operation::Stat, each, true),
    ];
    let cells = looks.iter().map(|(existing, operation, open, others)| {
        let steps = vec![
            load("make", Existing::Rebuild, None, each, false),
            step("remount", StepAction::Remount),
            load("look", *existing, Some(operation.clone()), *open, *others),
            load("again", *existing, Some(operation.clone()), *open, false),
        ];
        cell("ext4", "", "", steps)
    });
    let work = scratch_directory();
    let carried_out = |cells: Vec<Cell>| {
        let mut memory = Memory::default();
        let end = carry_out(&plan(cells, 1), &options(work.path()), &[], &mut memory, &Silent, &AtomicBool::new(false));
        assert_eq!(end.expect("carried out"), RunEnd::Completed);
        memory.trials.sort_by_key(|trial| trial.id.cell);
        memory
    };
    let memory = carried_out(cells.collect());
    let read = |cell: usize, step: &str| {
        let trial = &memory.trials[cell];
        trial.figure(step, "device read bytes").unwrap_or_else(|| panic!("{trial:#?}")).value
    };
    let inodes = 256.0 * FILES as f64;
    for (cell, assumed) in [(1, 0), (2, 0), (3, 0), (5, 4), (6, 0)] {
        let (found, assumed) = (read(cell, "look"), read(assumed, "look"));
        assert!(found > 0.5 * assumed && found < 2.0 * assumed, "{:?}: {found} for {assumed}", looks[cell]);
        let dropped = |name: &str| {
            let step = memory.trials[cell].steps.iter().find(|step| step.step == name).expect("it ran");
            step.commands.iter().any(|command| command.argv.join(" ").contains("drop_caches"))
        };
        assert!(dropped("look") && !dropped("again"), "{:?}: nothing is dropped where nothing was cold", looks[cell]);
    }
    assert!(read(0, "look") >= inodes, "{}", read(0, "look"));
    let warned = |trial: &Trial| trial.warnings.iter().any(|words| words.contains("nothing was read from"));
    assert!(!memory.trials.iter().any(warned), "{:#?}", memory.trials);
    // Files that the load makes itself are in memory, unless another test drops the machine's caches in between.
    let made = || {
        let look = load("look", Existing::Rebuild, Some(Operation::Stat), each, false);
        carried_out(vec![cell("ext4", "", "", vec![step("remount", StepAction::Remount), look])])
    };
    assert!((0..5).any(|_| warned(&made().trials[0])));
    assert_clean(work.path());
}
