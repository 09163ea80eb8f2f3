//! Trials in real guests, none of which needs root: sound ones, and each way for a guest to end badly. Whatever happens to
//! a trial, its outcome says what, the study goes on with a fresh guest, and nothing is left.

use crate::load::{ages_between_reads, load, makes_files};
use crate::support::{Memory, agent, cell, command, options, plan, scratch_directory, shell, step};
use fstone_lab::{
    agent::{Flavour, GuestOptions, default_kernel},
    command::find_program,
    events::Silent,
    machine::Machine,
    place::undo::clean,
    run::carry_out::{LabOptions, RunEnd, carry_out},
};
use fstone_model::{
    Cell, Outcome, Plan, Step, Trial,
    study::{DeviceSpec, FsckMode, KernelSpec, StepAction},
};
use fstone_sandbox::{
    guest::Watch,
    vhost::{Effect, Fault, Operation, Trigger},
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Guests one at a time: each wants a CPU of its own.
static ONE: Mutex<()> = Mutex::new(());

const AMPLE: Duration = Duration::from_secs(120);

const VICTIM: &str = "FSTONE_LAB_TEST_GUEST_VICTIM";

struct Lab {
    directory: TempDir,
    options: LabOptions,
    kernel: KernelSpec,
    _turn: MutexGuard<'static, ()>,
}

fn guests(directory: &Path) -> GuestOptions {
    let own = GuestOptions::new(directory.join("kernels"), &directory.join("cache"));
    let watch = Watch { hello_limit: AMPLE, silence_limit: Duration::from_secs(30), farewell_limit: AMPLE };
    GuestOptions { agent: agent(), memory_bytes: 192 << 20, watch: Some(watch), ..own }
}

impl Lab {
    /// `None` where there is no user-mode Linux or a tool is missing, having said so.
    fn new(tools: &[&str]) -> Option<Self> {
        let turn = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = scratch_directory();
        let Some(kernel) = default_kernel(&directory.path().join("kernels"), Flavour::Uml) else {
            eprintln!("skipped: linux.uml is not installed (apt-get install user-mode-linux)");
            return None;
        };
        if let Some(tool) = tools.iter().find(|tool| find_program(tool).is_none()) {
            eprintln!("skipped: {tool} is not installed");
            return None;
        }
        let options = LabOptions { guests: Some(guests(directory.path())), ..options(directory.path()) };
        Some(Self { directory, options, kernel, _turn: turn })
    }

    fn guests(&mut self) -> &mut GuestOptions {
        self.options.guests.as_mut().expect("they were given")
    }

    fn cell(&self, kind: &str, steps: Vec<Step>) -> Cell {
        Cell { kernel: self.kernel.clone(), ..cell(kind, "", "", steps) }
    }

    /// The same kernel with a list of modules on which there is none: the driver for the guest's disk is one.
    fn kernel_without_driver(&self) -> KernelSpec {
        let installed = fstone_sandbox::uml::installed_kernel().expect("it is what the other trials are made with");
        let root = self.directory.path().join("bare");
        let release = installed.modules.as_deref().and_then(Path::file_name).expect("it comes with modules");
        let modules = root.join("usr/lib/uml/modules").join(release);
        fs::create_dir_all(root.join("usr/bin")).expect("made");
        fs::create_dir_all(&modules).expect("made");
        fs::copy(&installed.binary, root.join("usr/bin/linux.uml")).expect("copied");
        fs::write(modules.join("modules.dep"), "").expect("written");
        KernelSpec::Uml(root.display().to_string())
    }

    fn run(&self, plan: &Plan) -> Vec<Trial> {
        let mut memory = Memory::default();
        let end = carry_out(plan, &self.options, &[], &mut memory, &Silent, &AtomicBool::new(false));
        assert_eq!(end.expect("carried out"), RunEnd::Completed);
        self.assert_nothing_left();
        memory.trials
    }

    /// A trial of a cell that goes wrong, and one of a sound cell: in both orders, for the order is drawn.
    fn run_beside_a_sound_one(&self, bad: Cell) -> Outcome {
        let sound = self.cell("ext2", vec![shell("look", "ls > seen")]);
        let trials = self.run(&plan(vec![bad, sound], 1));
        assert_eq!(trials.len(), 2);
        let of = |cell: u32| trials.iter().find(|trial| trial.id.cell == cell).expect("there is one of each");
        assert_eq!(of(1).outcome, Outcome::Completed, "the other trial is not touched: {:#?}", of(1));
        let trial = of(0);
        let is_kept = trial.warnings.iter().any(|warning| warning.starts_with("kept to be looked at"));
        let is_sick = matches!(trial.outcome, Outcome::Hung(_) | Outcome::Crashed(_));
        assert_eq!(is_kept, is_sick, "{trial:#?}");
        if is_sick {
            let kept = self.directory.path().join("cache/kept");
            let first = fs::read_dir(kept).expect("kept").flatten().next().expect("one").path();
            assert!(first.join("console.log").exists() && first.join("disk.img").exists());
        }
        trial.outcome.clone()
    }

    fn work(&self) -> &Path {
        &self.options.work_directory
    }

    #[track_caller]
    fn assert_nothing_left(&self) {
        // The kernel ends them when their run has ended, which a busy machine does later.
        let since = Instant::now();
        while !processes(self.directory.path()).is_empty() && since.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(processes(self.directory.path()), [] as [i32; 0]);
        assert!(!self.work().exists(), "the work directory, made for the run, is gone with it");
    }
}

fn processes(directory: &Path) -> Vec<i32> {
    let directory = directory.canonicalize().expect("there");
    let at = |pid: &i32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&directory));
    let pids = fs::read_dir("/proc").expect("proc").flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(at).collect()
}

fn kernel_process(directory: &Path) -> i32 {
    let since = Instant::now();
    loop {
        let is_kernel =
            |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("linux"));
        let mut found: Vec<i32> = processes(directory).into_iter().filter(is_kernel).collect();
        found.sort_unstable();
        if let Some(first) = found.first() {
            return *first;
        }
        assert!(since.elapsed() < AMPLE, "no guest was started");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn limited(mut step: Step, seconds: u64) -> Step {
    step.limit = Duration::from_secs(seconds);
    step
}

fn words(outcome: &Outcome) -> &str {
    outcome.reason().map_or("", |reason| &reason.words)
}

fn figure(trial: &Trial, step: &str, metric: &str) -> f64 {
    trial.figure(step, metric).unwrap_or_else(|| panic!("{step}: {metric}: {trial:#?}")).value
}

#[test]
fn a_trial_in_a_guest_is_one_as_on_the_host_with_flushes_counted() {
    let Some(lab) = Lab::new(&["mkfs.ext4", "e2fsck", "dumpe2fs", "mkfs.xfs", "mkfs.btrfs"]) else { return };
    let steps = || {
        vec![
            shell("write", "for i in 1 2 3 4 5 6 7 8 9 10; do head -c 100000 /dev/urandom > file$i; sync file$i; done"),
            step("remount", StepAction::Remount),
            command("read", &["tar", "cf", "/dev/zero", "{mount}"]),
            step("trim", StepAction::Trim),
            step("fragmentation", StepAction::Fragmentation),
            step("fsck", StepAction::Fsck { mode: FsckMode::ReadOnly }),
            step("mount again", StepAction::Mount),
        ]
    };
    let mut odd = lab.cell("ext4", Vec::new());
    odd.filesystem.mount = "nomballoc".into();
    let mut queue = lab.cell("ext4", Vec::new());
    queue.queue = vec![("read_ahead_kb".into(), "4096".into()), ("scheduler".into(), "cfq".into())];
    let cells = vec![lab.cell("ext4", steps()), lab.cell("btrfs", steps()), odd, queue];
    let trials = lab.run(&plan(cells, 1));
    let of = |cell: u32| trials.iter().find(|trial| trial.id.cell == cell).expect("there is one of each");
    for trial in [of(0), of(1)] {
        assert_eq!(trial.outcome, Outcome::Completed, "{trial:#?}");
        for name in ["mkfs", "mount", "write", "read", "fsck", "mount again"] {
            assert!(figure(trial, name, "time") > 0.0, "{name}");
        }
        // Each of ten files was made durable by itself, and the disk has seen that.
        assert!(figure(trial, "write", "device flushes") >= 10.0, "{trial:#?}");
        assert!(figure(trial, "write", "device written bytes") >= 1e6);
        assert!(figure(trial, "read", "device read bytes") >= 1e6, "read again after the remount");
        assert_eq!(figure(trial, "read", "device flushes"), 0.0, "{trial:#?}");
        assert!(figure(trial, "trial", "boot time") > 0.0);
        assert!(figure(trial, "trial", "trial overhead") > figure(trial, "trial", "boot time"));
        assert!(trial.effective.superblock.iter().any(|(name, _)| name == "features"), "{trial:#?}");
        let leaked = trial.steps.iter().flat_map(|step| &step.figures).find(|figure| figure.metric.contains("mark"));
        assert_eq!(leaked, None);
    }
    assert!(figure(of(0), "fsck", "files used") >= 20.0, "the host's check sees what the guest wrote");
    assert!(of(0).effective.mount.as_deref().is_some_and(|mount| mount.contains("relatime")), "{:#?}", of(0).effective);
    assert!(matches!(&of(2).outcome, Outcome::Refused(_)), "{:?}", of(2).outcome);
    assert_eq!(words(&of(2).outcome), "ext4: Unknown parameter 'nomballoc'");
    assert!(matches!(&of(3).outcome, Outcome::Refused(reason) if reason.words.contains("cfq")), "{:?}", of(3).outcome);
}

/// syncfs(2) of some sends the disk no flush: their rows would end in its cache, and others pay for the platter.
#[test]
fn every_row_of_a_guest_ends_with_a_flush() {
    let Some(lab) = Lab::new(&["mkfs.ext4", "mkfs.ext2", "mkfs.jfs", "mkfs.vfat"]) else { return };
    let kinds = ["ext4", "ext2", "jfs", "vfat"];
    let trials = lab.run(&plan(kinds.map(|kind| lab.cell(kind, vec![load(makes_files())])).to_vec(), 1));
    for (cell, kind) in (0..).zip(kinds) {
        let trial = trials.iter().find(|trial| trial.id.cell == cell).expect("there is one of each");
        assert_eq!(trial.outcome, Outcome::Completed, "{kind}: {trial:#?}");
        assert!(figure(trial, "load", "device flushes") >= 1.0, "{kind}: {trial:#?}");
        let written = figure(trial, "load", "device written bytes");
        assert!(written >= 200.0 * 65536.0, "{kind}: {written} bytes before the flush");
    }
}

#[test]
fn what_a_guests_disk_does_between_measured_phases_is_in_no_figure() {
    let Some(lab) = Lab::new(&["mkfs.ext4", "e2fsck", "dumpe2fs"]) else { return };
    let cell = |measured| lab.cell("ext4", vec![load(ages_between_reads(measured))]);
    let trials = lab.run(&plan(vec![cell(false), cell(true)], 1));
    let of = |cell: u32, metric| {
        let trial = trials.iter().find(|trial| trial.id.cell == cell).expect("there is one of each");
        assert_eq!(trial.outcome, Outcome::Completed, "{trial:#?}");
        figure(trial, "load", metric)
    };
    let files = 200.0;
    assert_eq!((of(0, "operations"), of(1, "operations")), (2.0 * files, 3.0 * files));
    for (metric, of_the_files) in [("device written bytes", files * 65536.0), ("device flushes", files)] {
        let (without, with) = (of(0, metric), of(1, metric));
        assert!(with >= of_the_files, "{metric}: {with} with all phases measured");
        // A journal's commit falls into one of the measured phases now and then.
        assert!(without < of_the_files / 2.0, "{metric}: {without} without the phase between");
    }
}

#[test]
fn what_a_guest_or_this_machine_lacks_is_skipped_with_its_cure() {
    let Some(lab) = Lab::new(&["mkfs.ext4", "e2fsck", "mkfs.vfat"]) else { return };
    let mut unknown = lab.cell("ext4", Vec::new());
    unknown.kernel = KernelSpec::Uml("2.4".into());
    let mut zram = lab.cell("ext4", Vec::new());
    zram.device = DeviceSpec::Zram { size_bytes: 64 << 20 };
    let mut without_driver = lab.cell("ext4", Vec::new());
    without_driver.kernel = lab.kernel_without_driver();
    let trials = lab.run(&plan(vec![unknown, zram, without_driver], 1));
    let of = |cell: u32| trials.iter().find(|trial| trial.id.cell == cell).expect("there is one of each");
    let said = words(&of(0).outcome).contains("There is no package for 2.4");
    assert!(matches!(of(0).outcome, Outcome::Skipped(_)) && said, "{:#?}", of(0));
    assert!(matches!(of(1).outcome, Outcome::Skipped(_)) && words(&of(1).outcome).contains("zram"), "{:#?}", of(1));
    let lacking = words(&of(2).outcome);
    assert!(
        matches!(of(2).outcome, Outcome::Skipped(_)) && lacking.contains("no driver for the guest's disk"),
        "{lacking}"
    );
}

#[test]
fn a_panic_is_a_crash_in_the_kernels_words() {
    let Some(lab) = Lab::new(&["mkfs.ext4", "mkfs.ext2", "e2fsck", "dumpe2fs"]) else { return };
    let outcome = lab.run_beside_a_sound_one(lab.cell("ext4", vec![shell("fall", "echo c > /proc/sysrq-trigger")]));
    assert!(matches!(&outcome, Outcome::Crashed(reason) if reason.step == "fall"), "{outcome:?}");
    assert!(words(&outcome).contains("sysrq triggered crash") && words(&outcome).contains("Call Trace"), "{outcome:?}");
}

#[test]
fn a_kernel_that_stands_still_is_hung() {
    let Some(mut lab) = Lab::new(&["mkfs.ext4", "mkfs.ext2", "e2fsck", "dumpe2fs", "chrt"]) else { return };
    lab.guests().watch.as_mut().expect("set").silence_limit = Duration::from_secs(4);
    // Not even the heartbeat gets the processor any more, and the console is as silent.
    let spin = "echo -1 > /proc/sys/kernel/sched_rt_runtime_us; exec chrt -f 99 sh -c 'while :; do :; done'";
    let outcome = lab.run_beside_a_sound_one(lab.cell("ext4", vec![shell("spin", spin)]));
    assert!(matches!(&outcome, Outcome::Hung(reason) if reason.step == "spin"), "{outcome:?}");
    assert!(words(&outcome).contains("no sign of life"), "{outcome:?}");
}

#[test]
fn a_step_that_hangs_in_the_kernel_ends_with_the_stack_it_hangs_in() {
    let Some(mut lab) = Lab::new(&["mkfs.ext4", "mkfs.ext2", "e2fsck", "dumpe2fs"]) else { return };
    // The first guest's disk stops answering; that of the sound cell writes less than that.
    let trigger = Trigger::From(200);
    lab.guests().faults = vec![Fault { operation: Some(Operation::Write), trigger, effect: Effect::Stall }];
    let write = shell("write", "i=0; while [ $i -lt 1000 ]; do echo $i > file; sync file; i=$((i+1)); done");
    let outcome = lab.run_beside_a_sound_one(lab.cell("ext4", vec![limited(write, 15)]));
    assert!(matches!(&outcome, Outcome::Hung(reason) if reason.step == "write"), "{outcome:?}");
    assert!(words(&outcome).contains("Show Blocked State"), "{outcome:?}");
    assert!(words(&outcome).contains("jbd2") || words(&outcome).contains("sync"), "{outcome:?}");
}

/// What is written after the last step is on nobody's clock, not even on that of the step before.
#[test]
fn a_trial_that_is_done_stays_so_however_long_its_closing_sync_takes() {
    let Some(mut lab) = Lab::new(&["mkfs.ext2", "e2fsck", "dumpe2fs"]) else { return };
    // Eight megabytes at two a second, once the step is over.
    lab.guests().speed.bytes_per_second = Some(2 << 20);
    let write = || limited(shell("write", "head -c 8388608 /dev/zero > file"), 3);
    let trials = lab.run(&plan(vec![lab.cell("ext2", vec![write()])], 1));
    let given_up =
        |trial: &Trial| trial.warnings.iter().any(|warning| warning.contains("was not durable 3 s after its end"));
    assert!(trials[0].outcome.is_completed() && !given_up(&trials[0]), "{:#?}", trials[0]);
    assert!(trials[0].duration_ns > 3_000_000_000, "it was really written: {:#?}", trials[0]);

    // The disk answers no more, and the limit of the closing sync itself passes.
    lab.guests().speed.bytes_per_second = None;
    lab.options.closing_limit = Duration::from_secs(3);
    let trigger = Trigger::From(4);
    lab.guests().faults = vec![Fault { operation: Some(Operation::Write), trigger, effect: Effect::Stall }];
    let scattered = || limited(shell("write", "for i in 1 2 3 4 5 6 7 8; do mkdir $i; echo $i > $i/a; done"), 100);
    let trials = lab.run(&plan(vec![lab.cell("ext2", vec![scattered()])], 1));
    assert_eq!(trials[0].outcome, Outcome::Completed, "{:#?}", trials[0]);
    assert!(given_up(&trials[0]), "{:#?}", trials[0].warnings);
}

#[test]
fn a_guest_killed_from_outside_fails() {
    let Some(lab) = Lab::new(&["mkfs.ext4", "mkfs.ext2", "e2fsck", "dumpe2fs"]) else { return };
    let ready = lab.directory.path().join("ready");
    let (directory, flag) = (lab.directory.path().to_owned(), ready.clone());
    let ended = std::sync::Arc::new(AtomicBool::new(false));
    let over = std::sync::Arc::clone(&ended);
    let killer = std::thread::spawn(move || {
        // Of the cell that sleeps: only there does the step take longer than this.
        let mut seen = (0, Instant::now());
        while !over.load(Ordering::Acquire) {
            let kernel = kernel_process(&directory);
            if kernel != seen.0 {
                seen = (kernel, Instant::now());
            } else if seen.1.elapsed() > Duration::from_secs(4) {
                fs::write(&flag, "").expect("written");
                let killed = Command::new("kill").args(["-9", &kernel.to_string()]).status().expect("kill starts");
                return killed.success();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    });
    let outcome = lab.run_beside_a_sound_one(lab.cell("ext4", vec![command("sleep", &["sleep", "100"])]));
    ended.store(true, Ordering::Release);
    assert!(killer.join().expect("it ends") && ready.exists());
    assert!(matches!(&outcome, Outcome::Failed(reason) if reason.step == "sleep"), "{outcome:?}");
    assert!(words(&outcome).contains("killed by signal 9"), "{outcome:?}");
}

#[test]
fn the_agents_death_fails_the_trial_and_is_not_called_a_crash() {
    let Some(lab) = Lab::new(&["mkfs.ext4", "mkfs.ext2", "e2fsck", "dumpe2fs"]) else { return };
    // Its own code is overwritten: process 1 is shielded from every signal but those of its own making.
    let stab = "text=$(sed -n '/r-xp/{s/-.*//p;q}' /proc/1/maps); \
                dd if=/dev/zero of=/proc/1/mem bs=4096 seek=$((0x$text / 4096)) count=20000 conv=notrunc 2>/dev/null; sleep 60";
    let outcome = lab.run_beside_a_sound_one(lab.cell("ext4", vec![shell("stab", stab)]));
    assert!(matches!(&outcome, Outcome::Failed(reason) if reason.step == "stab"), "{outcome:?}");
    assert!(words(&outcome).contains("the agent, process 1 of the guest, died"), "{outcome:?}");
}

#[test]
fn a_storm_of_disk_errors_fails_the_step_and_not_the_guest() {
    let Some(mut lab) = Lab::new(&["mkfs.ext4", "mkfs.ext2", "e2fsck", "dumpe2fs"]) else { return };
    let trigger = Trigger::From(200);
    lab.guests().faults = vec![Fault { operation: Some(Operation::Write), trigger, effect: Effect::Error }];
    let write = "i=0; while [ $i -lt 1000 ]; do echo $i > file; sync file || exit 1; i=$((i+1)); done";
    let outcome = lab.run_beside_a_sound_one(lab.cell("ext4", vec![shell("write", write)]));
    assert!(matches!(&outcome, Outcome::Failed(reason) if reason.step == "write"), "{outcome:?}");
    assert!(words(&outcome).contains("Input/output error") || words(&outcome).contains("Read-only"), "{outcome:?}");
}

#[test]
fn a_flooded_console_drowns_neither_the_host_nor_the_panic_behind_it() {
    let Some(lab) = Lab::new(&["mkfs.ext4", "mkfs.ext2", "e2fsck", "dumpe2fs"]) else { return };
    let flood = "yes 'flood flood flood flood flood flood flood flood flood' | head -c 33554432 > /dev/console; sleep 1; \
                 echo c > /proc/sysrq-trigger";
    let outcome = lab.run_beside_a_sound_one(lab.cell("ext4", vec![shell("flood", flood)]));
    assert!(matches!(&outcome, Outcome::Crashed(_)), "{outcome:?}");
    assert!(words(&outcome).contains("sysrq triggered crash") && words(&outcome).len() < 8192, "{outcome:?}");
    let kept = fs::read_dir(lab.directory.path().join("cache/kept")).expect("kept").flatten().next().expect("one");
    let log = fs::metadata(kept.path().join("console.log")).expect("a log").len();
    assert!((1 << 20..2 << 20).contains(&log), "{log}");
}

#[test]
fn a_host_out_of_disk_is_blamed_itself() {
    let Some(mut lab) = Lab::new(&["mkfs.ext4", "mkfs.ext2", "e2fsck", "dumpe2fs"]) else { return };
    let small = lab.directory.path().join("small");
    fs::create_dir(&small).expect("made");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64m", "tmpfs"]).arg(&small).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: mounting a small tmpfs takes root");
        return;
    }
    lab.options.work_directory = small.join("work");
    let result = std::panic::catch_unwind(|| {
        lab.run_beside_a_sound_one(
            lab.cell("ext4", vec![shell("fill", "dd if=/dev/urandom of=big bs=1M count=200; sync")]),
        )
    });
    assert!(Command::new("umount").arg(&small).status().expect("umount starts").success());
    let outcome = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    assert!(matches!(&outcome, Outcome::Failed(reason) if reason.step == "fill"), "{outcome:?}");
    let said = words(&outcome);
    let of_work = said.contains("/small/work has only");
    assert!(said.contains("No space left") || of_work, "{outcome:?}");
    assert!(outcome.reason().and_then(|reason| reason.cure.as_deref()).is_some_and(|cure| cure.contains("room")));
}

#[test]
fn a_cancelled_run_leaves_no_guest() {
    let Some(lab) = Lab::new(&["mkfs.ext4", "e2fsck", "dumpe2fs"]) else { return };
    let cancel = std::sync::Arc::new(AtomicBool::new(false));
    let (directory, flag) = (lab.directory.path().to_owned(), std::sync::Arc::clone(&cancel));
    let canceller = std::thread::spawn(move || {
        kernel_process(&directory);
        std::thread::sleep(Duration::from_secs(1));
        flag.store(true, Ordering::Release);
    });
    let plan = plan(vec![lab.cell("ext4", vec![command("sleep", &["sleep", "100"])])], 1);
    let end = carry_out(&plan, &lab.options, &[], &mut Memory::default(), &Silent, &cancel);
    canceller.join().expect("it ends");
    assert_eq!(end.expect("carried out"), RunEnd::Cancelled);
    lab.assert_nothing_left();
}

/// The run that is killed; only when it is asked for by the test below.
#[test]
fn victim() {
    let Some(directory) = std::env::var_os(VICTIM).map(PathBuf::from) else { return };
    let guests = guests(&directory);
    let kernel = default_kernel(&guests.kernels, Flavour::Uml).expect("the caller has seen one");
    let sleeping = Cell { kernel, ..cell("ext4", "", "", vec![command("sleep", &["sleep", "100"])]) };
    let options = LabOptions { guests: Some(guests), ..options(&directory) };
    let plan = plan(vec![sleeping], 1);
    drop(carry_out(&plan, &options, &[], &mut Memory::default(), &Silent, &AtomicBool::new(false)));
}

#[test]
fn a_guest_dies_with_its_run_and_clean_removes_what_that_left() {
    let Some(lab) = Lab::new(&["mkfs.ext4", "e2fsck", "dumpe2fs"]) else { return };
    let directory = lab.directory.path();
    let mut run = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "guests::victim", "--nocapture"])
        .env(VICTIM, directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    kernel_process(directory);
    std::thread::sleep(Duration::from_secs(1));
    run.kill().expect("killed");
    run.wait().expect("reaped");
    let found = clean(lab.work(), false, &[], &Machine::host()).expect("cleans");
    let found: Vec<String> = found
        .into_iter()
        .map(|leftover| {
            assert!(leftover.error.is_none(), "{leftover:?}");
            leftover.what
        })
        .collect();
    assert!(found.iter().any(|what| what.starts_with("guest in ")), "{found:?}");
    assert!(found.iter().any(|what| what.starts_with("image ")), "{found:?}");
    lab.assert_nothing_left();
}
