//! Sick guests: each fault on a real kernel, each with the right outcome, and nothing left behind.

use crate::support::{AMPLE, Turn, agent, done, fatal, run, skip};
use fstone_sandbox::guest::{BootError, Ending, HEAD_BYTES, IncidentKind, JobEnd, TAIL_BYTES, Waiting};
use fstone_sandbox::vhost::{DiskSpec, Effect, Fault, Operation, Trigger};
use std::process::Command;
use std::time::Duration;

/// Short, for jobs that never end; the machine is otherwise busy with other tests.
const SOON: Duration = Duration::from_secs(4);

#[test]
fn a_kernel_panic_is_a_crash_in_the_kernels_words() {
    let Some(turn) = Turn::new() else { return };
    let mut guest = turn.boot();
    let ending = fatal(&mut guest, "kernel-panic", "", AMPLE);
    assert!(matches!(ending, Ending::Panicked { .. }), "{ending:?}");
    assert!(ending.words().contains("sysrq triggered crash"), "{ending:?}");
    assert_eq!(ending.outcome("load").word(), "crashed");
    // Everything after it ends the same way.
    assert_eq!(run(&mut guest, "echo", "x"), JobEnd::GuestEnded(ending.clone()));
    let report = guest.finish();
    assert_eq!(report.ending, ending);
    let log = std::fs::read_to_string(report.console_log).unwrap();
    assert!(log.contains("Kernel panic - not syncing") && log.contains("Call Trace"), "{log}");
    assert_eq!(turn.processes(), [] as [i32; 0]);
}

#[test]
fn the_agents_death_is_not_the_kernels_fault() {
    let Some(turn) = Turn::new() else { return };
    let mut guest = turn.boot();
    let ending = fatal(&mut guest, "abort", "", AMPLE);
    assert!(matches!(ending, Ending::AgentDied { .. }), "{ending:?}");
    assert_eq!(ending.outcome("load").word(), "failed");
}

#[test]
fn a_kernel_that_stands_still_is_noticed_by_its_silence() {
    let Some(turn) = Turn::new() else { return };
    let mut spec = turn.spec();
    spec.watch.silence_limit = SOON;
    let mut guest = spec.boot().unwrap();
    let ending = fatal(&mut guest, "hang-kernel", "", AMPLE);
    assert!(matches!(ending, Ending::Hung { waiting: Waiting::Heartbeat, .. }), "{ending:?}");
    assert_eq!(ending.outcome("load").word(), "hung");
    assert_eq!(turn.processes(), [] as [i32; 0]);
}

#[test]
fn a_job_that_hangs_in_the_kernel_ends_with_the_stack_it_hangs_in() {
    let Some(turn) = Turn::new() else { return };
    let Some(image) = turn.image("ext4", 64) else { return };
    let mut disk = DiskSpec::new(&image);
    disk.faults = vec![Fault { operation: Some(Operation::Write), trigger: Trigger::From(20), effect: Effect::Stall }];
    let (mut guest, disk) = turn.boot_with(&disk, |_| ());
    done(&mut guest, "mount", "/dev/vda ext4");
    let ending = fatal(&mut guest, "fsync-files", "1000", SOON);
    assert!(matches!(ending, Ending::Hung { waiting: Waiting::Job, .. }), "{ending:?}");
    let report = guest.finish();
    let stacks = report.console.first(IncidentKind::BlockedTasks).expect("the blocked tasks were printed");
    assert!(stacks.lines.iter().any(|line| line.contains("guest_agent") || line.contains("jbd2")), "{stacks:?}");
    assert!(ending.words().contains("Show Blocked State"), "{ending:?}");
    assert!(disk.finish().stalled > 0);
    assert_eq!(turn.processes(), [] as [i32; 0]);
}

#[test]
fn a_guest_killed_from_outside_is_neither_hung_nor_crashed() {
    let Some(turn) = Turn::new() else { return };
    let mut guest = turn.boot();
    let first = turn.kernel_process();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        Command::new("kill").args(["-9", &first.to_string()]).status().unwrap()
    });
    let ending = fatal(&mut guest, "sleep", "60000", AMPLE);
    assert!(killer.join().unwrap().success());
    assert_eq!(ending, Ending::Killed { signal: 9 });
    assert_eq!(ending.outcome("load").word(), "failed");
    assert_eq!(turn.processes(), [] as [i32; 0]);
}

#[test]
fn a_console_flood_is_bounded_and_the_panic_behind_it_is_found() {
    let Some(turn) = Turn::new() else { return };
    let mut guest = turn.boot();
    done(&mut guest, "flood", "20");
    assert!(guest.console().bytes >= 20 << 20, "{}", guest.console().bytes);
    // What the guest still holds of the flood would be in the way of the panic's words.
    done(&mut guest, "sleep", "500");
    let ending = fatal(&mut guest, "kernel-panic", "", AMPLE);
    assert!(matches!(ending, Ending::Panicked { .. }), "{ending:?}");
    let report = guest.finish();
    let log = std::fs::metadata(&report.console_log).unwrap().len();
    assert!(log <= HEAD_BYTES + TAIL_BYTES as u64 + 200, "{log}");
    assert!(report.console.omitted_bytes > 18 << 20);
    assert!(std::fs::read_to_string(report.console_log).unwrap().contains("Kernel panic"));
}

#[test]
fn a_storm_of_disk_errors_fails_the_job_and_not_the_guest() {
    let Some(turn) = Turn::new() else { return };
    let Some(image) = turn.image("ext4", 64) else { return };
    let mut disk = DiskSpec::new(&image);
    disk.faults = vec![Fault { operation: Some(Operation::Write), trigger: Trigger::From(30), effect: Effect::Error }];
    let (mut guest, disk) = turn.boot_with(&disk, |_| ());
    done(&mut guest, "mount", "/dev/vda ext4");
    let failed = run(&mut guest, "fsync-files", "1000");
    assert!(
        matches!(&failed, JobEnd::Failed(why) if why.contains("Input/output") || why.contains("Read-only")),
        "{failed:?}"
    );
    let report = guest.finish();
    assert_eq!(report.ending, Ending::Bye, "{:?}", report.console);
    assert!(report.console.first(IncidentKind::Filesystem).is_some(), "{:?}", report.console);
    assert!(disk.finish().injected_errors > 0);
}

#[test]
fn one_bad_range_fails_only_what_touches_it() {
    let Some(turn) = Turn::new() else { return };
    let image = turn.path("raw.img");
    std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let mut disk = DiskSpec::new(&image);
    let bad = Trigger::Sectors(65_536..65_544);
    disk.faults = vec![Fault { operation: Some(Operation::Write), trigger: bad, effect: Effect::Error }];
    let (mut guest, disk) = turn.boot_with(&disk, |_| ());
    assert!(matches!(run(&mut guest, "sequential", "/dev/vda read 1"), JobEnd::Done(_)));
    let failed = run(&mut guest, "sequential", "/dev/vda write 60");
    assert!(matches!(&failed, JobEnd::Failed(why) if why.contains("Input/output")), "{failed:?}");
    let counters = disk.counters();
    assert!(counters.injected_errors >= 1 && counters.write_bytes >= 32 << 20, "{counters:?}");
    assert_eq!(guest.finish().ending, Ending::Bye);
}

#[test]
fn a_full_host_is_an_error_of_the_host_and_says_so() {
    let Some(turn) = Turn::new() else { return };
    let mount = turn.path("small");
    std::fs::create_dir(&mount).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"]).arg(&mount).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        return skip("mounting a small tmpfs takes root");
    }
    let image = mount.join("disk.img");
    std::fs::File::create(&image).unwrap().set_len(128 << 20).unwrap();
    let result = std::panic::catch_unwind(|| {
        let made = Command::new("/usr/sbin/mkfs.ext2").args(["-q", "-F"]).arg(&image).status().unwrap();
        assert!(made.success());
        let (mut guest, disk) = turn.boot_with(&DiskSpec::new(&image), |_| ());
        done(&mut guest, "mount", "/dev/vda ext2");
        let failed = run(&mut guest, "fill", "64");
        assert!(matches!(&failed, JobEnd::Failed(why) if why.contains("Input/output")), "{failed:?}");
        assert_eq!(guest.finish().ending, Ending::Bye);
        let counters = disk.finish();
        assert!(counters.host_errors > 0);
        assert!(counters.host_error.as_deref().is_some_and(|why| why.contains("No space left")), "{counters:?}");
    });
    assert!(Command::new("umount").arg(&mount).status().unwrap().success());
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn a_stall_of_the_host_is_a_gap_in_the_guests_clock() {
    let Some(turn) = Turn::new() else { return };
    let mut guest = turn.boot();
    done(&mut guest, "sleep", "600");
    let before = guest.clock().gap_count;
    // The kernel itself; the processes that it traces stand still with it.
    let kernel = turn.kernel_process().to_string();
    let signal = |name: &str| assert!(Command::new("kill").args([name, &kernel]).status().unwrap().success());
    signal("-STOP");
    std::thread::sleep(Duration::from_secs(2));
    signal("-CONT");
    done(&mut guest, "sleep", "600");
    let report = guest.finish();
    assert_eq!(report.ending, Ending::Bye);
    assert!(report.clock.gap_count > before, "{:?}", report.clock);
    assert!(report.clock.longest_host > Duration::from_millis(1500), "{:?}", report.clock);
    assert!(!report.clock.warnings().is_empty());
}

#[test]
fn something_that_is_no_agent_does_not_come_up() {
    let Some(turn) = Turn::new() else { return };
    let mut spec = turn.spec();
    spec.agent = "/bin/true".into();
    let Err(BootError::NotUp { ending, console_log }) = spec.boot() else { panic!("/bin/true is no agent") };
    assert!(matches!(*ending, Ending::AgentDied { .. }), "{ending:?}");
    assert!(console_log.is_file());
    spec.agent = agent();
    spec.kernel.binary = "/nowhere/linux.uml".into();
    let error = spec.boot().unwrap_err().to_string();
    assert!(error.contains("/nowhere/linux.uml: No such file"), "{error}");
    assert_eq!(turn.processes(), [] as [i32; 0]);
}
