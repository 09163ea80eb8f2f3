//! What is cold after `remount` and `drop-caches` on the host, and what is not.

use crate::support::{
    Memory, assert_clean, cell, finds_image, may_use_devices, options, plan, scratch_directory, shell, step,
};
use fstone_lab::{
    events::Silent,
    run::carry_out::{RunEnd, carry_out},
};
use fstone_model::{Step, Trial, study::StepAction};
use std::sync::atomic::AtomicBool;

const TOOLS: &[&str] = &["mkfs.ext4", "mkfs.ext2", "e2fsck", "dumpe2fs", "blkid", "losetup", "fincore"];

/// Prints how many bytes of the image are in the host's page cache.
fn cached(name: &str) -> Step {
    shell(name, &format!("{}; fincore -nb -o RES $image", finds_image()))
}

/// What a command printed, as a number.
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
            shell("write", "head -c 33554432 /dev/urandom > file && sync file"),
            cached("after write"),
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
