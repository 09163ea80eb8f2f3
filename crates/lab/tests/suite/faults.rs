//! Fault injection at every border: whichever call fails, nothing stays and what was finished is recorded.

use crate::support::{Memory, cell, command, options, plan, scratch_directory, step};
use fstone_lab::{
    command::{FakeRunner, typed},
    events::Silent,
    faults::Faults,
    machine::Machine,
    place::{
        device::FakeDevices,
        mount::{FakeMounter, Mounter},
        undo::clean,
    },
    run::{
        carry_out::{LabError, RunEnd, carry_out_on},
        describe::describe,
    },
    stop::Stop,
    trial::FakeLoader,
};
use fstone_model::{
    Outcome, Plan,
    study::{DeviceSpec, FsckMode, StepAction, TRIAL_STEP},
};
use std::{
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

struct Fakes {
    machine: Machine,
    devices: Arc<FakeDevices>,
    mounter: Arc<FakeMounter>,
    runner: Arc<FakeRunner>,
}

fn fakes(faults: &Arc<Faults>) -> Fakes {
    let devices = Arc::new(FakeDevices::new().with_faults(Arc::clone(faults)));
    let mounter = Arc::new(FakeMounter::new().with_faults(Arc::clone(faults)));
    let runner = Arc::new(FakeRunner::new().with_faults(Arc::clone(faults)));
    let machine = Machine {
        runner: runner.clone(),
        mounter: mounter.clone(),
        devices: devices.clone(),
        loader: Arc::new(FakeLoader::new().with_faults(Arc::clone(faults))),
        stop: Arc::new(Stop::default()),
        privileged: true,
        apart: false,
    };
    Fakes { machine, devices, mounter, runner }
}

fn two_cells() -> Plan {
    let steps = || {
        vec![
            command("touch", &["touch", "{mount}/a"]),
            step("remount", StepAction::Remount),
            step("trim", StepAction::Trim),
            step("fsck", StepAction::Fsck { mode: FsckMode::ReadOnly }),
        ]
    };
    let mut with_queue = cell("xfs", "", "noatime", steps());
    with_queue.queue = vec![("scheduler".into(), "none".into())];
    plan(vec![cell("ext4", "-I 256", "data=writeback", steps()), with_queue], 1)
}

fn give_queues(devices: &FakeDevices) {
    for index in 0..3 {
        devices.set_default_queue((7, index), "scheduler", "mq-deadline");
        devices.set_default_queue((252, index), "scheduler", "mq-deadline");
    }
}

fn every_call_fails_once(plan: &Plan, least_calls: u64) {
    for n in 0.. {
        assert!(n < 10_000, "no end of calls");
        let work = scratch_directory();
        let faults = Arc::new(Faults::at(n));
        let fakes = fakes(&faults);
        give_queues(&fakes.devices);
        let mut memory = Memory::default();
        let options = options(work.path());
        let end = carry_out_on(&fakes.machine, plan, &options, &[], &mut memory, &Silent, &AtomicBool::new(false));
        let context = format!("call {n}: {end:?}");
        if !faults.struck() {
            assert!(matches!(end, Ok(RunEnd::Completed)), "{context}");
            assert!(memory.trials.iter().all(|trial| trial.outcome.is_completed()), "{context}");
            assert!(n >= least_calls, "only {n} calls: the plan does not reach every border");
            return;
        }
        // What was recorded is whole and true.
        assert!(memory.trials.len() <= memory.started.len(), "{context}");
        for trial in &memory.trials {
            let planned = &plan.cells[trial.id.cell as usize].steps;
            match &trial.outcome {
                Outcome::Completed => assert_eq!(trial.steps.len(), planned.len() + 1, "{context}"),
                other => assert!(other.reason().is_some_and(|reason| !reason.words.is_empty()), "{context}"),
            }
        }
        match end {
            Ok(end) => {
                assert_eq!(end, RunEnd::Completed, "{context}");
                assert_eq!(memory.trials.len(), plan.cells.len(), "{context}");
            }
            // The failing call was of the undoing: the journal still knows, and a clean settles it.
            Err(LabError::Stuck { .. } | LabError::Trial { .. }) => {}
            Err(other) => panic!("{context}: {other}"),
        }
        let left = clean(&options.work_directory, false, &[], &fakes.machine).expect("cleans");
        assert!(left.iter().all(|leftover| leftover.error.is_none()), "{context}: {left:?}");
        assert!(fakes.mounter.mounts().expect("told").is_empty(), "{context}");
        assert_eq!(fakes.devices.in_use(), 0, "{context}");
        let left: Vec<_> =
            std::fs::read_dir(work.path()).expect("listed").flatten().map(|entry| entry.path()).collect();
        assert!(left.iter().all(|path| path == &options.work_directory), "{context}: {left:?}");
        if options.work_directory.exists() {
            let inside = std::fs::read_dir(&options.work_directory).expect("listed").count();
            assert_eq!(inside, 0, "{context}");
        }
    }
}

#[test]
fn whichever_call_fails_nothing_stays() {
    every_call_fails_once(&two_cells(), 40);
}

#[test]
fn whichever_call_fails_no_zram_stays() {
    let mut plan = two_cells();
    for cell in &mut plan.cells {
        cell.device = DeviceSpec::Zram { size_bytes: 400 << 20 };
    }
    every_call_fails_once(&plan, 40);
}

#[test]
fn a_recorder_that_fails_ends_the_run_and_leaves_nothing() {
    for n in 0.. {
        let work = scratch_directory();
        let fakes = fakes(&Arc::new(Faults::none()));
        give_queues(&fakes.devices);
        let mut memory = Memory::failing_at(n);
        let options = options(work.path());
        let end =
            carry_out_on(&fakes.machine, &two_cells(), &options, &[], &mut memory, &Silent, &AtomicBool::new(false));
        if !memory.struck() {
            assert!(matches!(end, Ok(RunEnd::Completed)));
            assert_eq!(n, 4, "two calls for each of two trials");
            return;
        }
        assert!(matches!(end, Err(LabError::Recorder { .. })), "call {n}: {end:?}");
        assert_eq!(memory.trials.len(), n / 2, "what was recorded before stays");
        assert!(fakes.mounter.mounts().expect("told").is_empty());
        assert_eq!(fakes.devices.in_use(), 0);
        assert!(!options.work_directory.exists());
    }
}

#[test]
fn exact_commands_of_a_trial() {
    let work = scratch_directory();
    let fakes = fakes(&Arc::new(Faults::none()));
    let mut plan = two_cells();
    plan.cells.truncate(1);
    let options = options(work.path());
    let end =
        carry_out_on(&fakes.machine, &plan, &options, &[], &mut Memory::default(), &Silent, &AtomicBool::new(false));
    assert!(matches!(end, Ok(RunEnd::Completed)), "{end:?}");
    let mount = options.work_directory.join("mnt");
    assert_eq!(
        fakes.runner.calls(),
        [
            "blkid -p -o export /dev/loop0".to_owned(),
            "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 -I 256 /dev/loop0".to_owned(),
            "dumpe2fs -h /dev/loop0".to_owned(),
            format!("touch {}/a", mount.display()),
            // Caches were dropped by the remount.
            "ldd /usr/sbin/e2fsck".to_owned(),
            "e2fsck -fn /dev/loop0".to_owned(),
        ]
    );
}

#[test]
fn a_dry_run_tells_what_a_trial_records() {
    let work = scratch_directory();
    let fakes = fakes(&Arc::new(Faults::none()));
    let steps = vec![
        command("touch", &["touch", "{mount}/a b"]),
        step("copy", StepAction::CopyIn { source: "/etc/host name".into(), target: "host".into() }),
        step("sync", StepAction::Sync),
        step("remount", StepAction::Remount),
        step("drop", StepAction::DropCaches),
        step("trim", StepAction::Trim),
        step("unmount", StepAction::Unmount),
        step("mount again", StepAction::Mount),
        step("fsck", StepAction::Fsck { mode: FsckMode::ReadOnly }),
    ];
    let plan = plan(vec![cell("ext4", "-I 256", "data=writeback", steps)], 1);
    let options = options(work.path());
    let described = describe(&plan, &options.work_directory);
    let mut memory = Memory::default();
    let end = carry_out_on(&fakes.machine, &plan, &options, &[], &mut memory, &Silent, &AtomicBool::new(false));
    assert!(matches!(end, Ok(RunEnd::Completed)), "{end:?}");
    let made: Vec<(String, String)> = memory.trials[0]
        .steps
        .iter()
        .filter(|step| step.step != TRIAL_STEP)
        .map(|step| {
            let typed: Vec<String> = step.commands.iter().map(|command| typed(&command.argv)).collect();
            (step.step.clone(), typed.join("; ").replace("/dev/loop0", "/dev/loopN"))
        })
        .collect();
    assert_eq!(made, described.cells[0].steps);
}

#[test]
fn a_loop_device_that_somebody_snatches_is_replaced_by_another() {
    let work = scratch_directory();
    let fakes = fakes(&Arc::new(Faults::none()));
    give_queues(&fakes.devices);
    fakes.devices.snatch_loops(3);
    let mut memory = Memory::default();
    let options = options(work.path());
    let end = carry_out_on(&fakes.machine, &two_cells(), &options, &[], &mut memory, &Silent, &AtomicBool::new(false));
    assert!(matches!(end, Ok(RunEnd::Completed)), "{end:?}");
    assert!(memory.trials.iter().all(|trial| trial.outcome.is_completed()), "{:?}", memory.trials);
    // For ever is too much.
    fakes.devices.snatch_loops(1000);
    let end = carry_out_on(&fakes.machine, &two_cells(), &options, &[], &mut memory, &Silent, &AtomicBool::new(false));
    assert!(matches!(end, Err(LabError::Trial { .. })), "{end:?}");
    assert_eq!(fakes.devices.in_use(), 0);
}

#[test]
fn a_missing_tool_skips_its_cell_once_and_the_others_go_on() {
    let work = scratch_directory();
    let mut fakes = fakes(&Arc::new(Faults::none()));
    give_queues(&fakes.devices);
    fakes.machine.runner = Arc::new(FakeRunner::new().without("mkfs.xfs"));
    let mut plan = two_cells();
    plan.repeats.min = 3;
    plan.repeats.max = 3;
    let mut memory = Memory::default();
    let options = options(work.path());
    carry_out_on(&fakes.machine, &plan, &options, &[], &mut memory, &Silent, &AtomicBool::new(false)).expect("runs");
    let outcomes = |cell| {
        memory.trials.iter().filter(|trial| trial.id.cell == cell).map(|trial| trial.outcome.word()).collect::<Vec<_>>()
    };
    assert_eq!(outcomes(0), ["completed"; 3]);
    assert_eq!(outcomes(1), ["skipped"]);
}

#[test]
fn a_refused_mount_option_is_an_outcome_in_the_kernels_words() {
    let work = scratch_directory();
    let mut fakes = fakes(&Arc::new(Faults::none()));
    give_queues(&fakes.devices);
    let words = "ext4: Unknown parameter 'nomballoc'";
    fakes.machine.mounter = Arc::new(FakeMounter::new().refusing("nomballoc", words));
    let mut plan = two_cells();
    plan.cells[0].filesystem.mount = "data=writeback,nomballoc".into();
    let mut memory = Memory::default();
    carry_out_on(&fakes.machine, &plan, &options(work.path()), &[], &mut memory, &Silent, &AtomicBool::new(false))
        .expect("runs");
    let refused = memory.trials.iter().find(|trial| trial.id.cell == 0).expect("recorded");
    assert!(matches!(&refused.outcome, Outcome::Refused(reason) if reason.words == words && reason.step == "mount"));
    assert_eq!(refused.steps.len(), 3, "mkfs, the mount that was refused, and what the trial itself took");
    assert_eq!(refused.steps[1].commands[0].output_tail, words);
}

#[test]
fn a_full_work_directory_ends_the_trial_and_not_the_run() {
    let work = scratch_directory();
    let fakes = fakes(&Arc::new(Faults::none()));
    give_queues(&fakes.devices);
    fakes.devices.set_free_bytes(1 << 20);
    let mut memory = Memory::default();
    let options = options(work.path());
    let end = carry_out_on(&fakes.machine, &two_cells(), &options, &[], &mut memory, &Silent, &AtomicBool::new(false));
    assert!(matches!(end, Ok(RunEnd::Completed)), "{end:?}");
    assert_eq!(memory.trials.len(), 2);
    for trial in &memory.trials {
        assert!(
            matches!(&trial.outcome, Outcome::Failed(reason) if reason.words.contains("only 1 MiB free") && reason.cure.is_some())
        );
    }
    assert_eq!(fakes.devices.in_use(), 0);
}

#[test]
fn an_image_that_may_outgrow_its_directory_is_said() {
    let work = scratch_directory();
    let fakes = fakes(&Arc::new(Faults::none()));
    give_queues(&fakes.devices);
    fakes.devices.set_free_bytes(500 << 20);
    let mut memory = Memory::default();
    carry_out_on(
        &fakes.machine,
        &two_cells(),
        &options(work.path()),
        &[],
        &mut memory,
        &Silent,
        &AtomicBool::new(false),
    )
    .expect("runs");
    assert!(memory.trials.iter().all(|trial| trial.warnings.iter().any(|words| words.contains("may grow to 400 MiB"))));
}

#[test]
fn an_image_of_somebody_else_is_not_touched() {
    let work = scratch_directory();
    let fakes = fakes(&Arc::new(Faults::none()));
    let options = options(work.path());
    std::fs::create_dir(&options.work_directory).expect("made");
    let theirs = options.work_directory.join("fstone-scratch.img");
    std::fs::write(&theirs, "precious").expect("written");
    give_queues(&fakes.devices);
    let mut memory = Memory::default();
    let end = carry_out_on(&fakes.machine, &two_cells(), &options, &[], &mut memory, &Silent, &AtomicBool::new(false));
    assert!(matches!(end, Ok(RunEnd::Completed)), "{end:?}");
    assert_eq!(std::fs::read(&theirs).expect("still there"), b"precious");
    assert_eq!(names(&options.work_directory), ["fstone-scratch.img"]);
}

fn names(directory: &Path) -> Vec<String> {
    std::fs::read_dir(directory)
        .expect("listed")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}
