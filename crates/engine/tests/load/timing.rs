//! When a load ends, how it is paced, who is told, and what becomes of errors.

use crate::faults::Mounted;
use crate::support::*;
use fstone_engine::{LoadError, Observer, Ownership, Progress, RunOptions, Unobserved, prepare, run};
use fstone_model::workload::*;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn reads() -> Actions {
    mix(&[(1, action(Operation::Read(random_block())))])
}

#[test]
fn a_rate_is_kept_and_latency_counts_from_the_intended_start() {
    for (engine, queue_depth) in [(IoEngineKind::Psync, 1), (IoEngineKind::IoUring, 8), (IoEngineKind::Libaio, 8)] {
        let directory = in_memory();
        let mut threads = group(2, reads());
        threads.open = OpenPolicy::KeepOpen;
        threads.rate_per_second = Some(500.0);
        let mut load = workload(fileset(4, 64 << 10), threads, milliseconds(1000));
        load.io = IoSettings { engine, queue_depth, ..IoSettings::default() };
        if matches!(try_run(&load, directory.path(), 1), Err(LoadError::Engine { .. })) {
            eprintln!("skipped: {engine:?} is not to be had here");
            continue;
        }
        let report = flawless(&load, directory.path());
        // Never more than was asked for; fewer only when the machine has other things to do.
        assert!((250..=500).contains(&report.invocations()), "{engine:?}: {}", report.invocations());
        let rate = report.audit.rate.expect("a rate was asked for");
        assert!((rate.expected - 500.0).abs() < 1e-6, "{rate:?}");
        // A rate that cannot be reached: the queue grows, and so does latency.
        load.phases[0].groups[0].rate_per_second = Some(1e9);
        let report = flawless(&load, directory.path());
        let latency = &report.operations[0].latency;
        assert!(latency.max_ns() > report.running_ns / 2, "{} of {}", latency.max_ns(), report.running_ns);
        assert!(report.warnings.iter().any(|warning| warning.contains("were asked for")), "{:?}", report.warnings);
    }
}

#[test]
fn waking_late_is_in_no_latency() {
    const SLACK: Duration = Duration::from_millis(200);
    for (engine, queue_depth) in [(IoEngineKind::Psync, 1), (IoEngineKind::IoUring, 8)] {
        let directory = in_memory();
        let mut threads = group(1, reads());
        threads.open = OpenPolicy::KeepOpen;
        threads.rate_per_second = Some(20.0);
        let mut load = workload(fileset(1, 4096), threads, operations(10));
        load.io = IoSettings { engine, queue_depth, ..IoSettings::default() };
        let ran = std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                // Threads have the slack of the one that starts them.
                let slack = std::num::NonZeroU64::new(SLACK.as_nanos() as u64);
                rustix::thread::set_current_timer_slack(slack).expect("anybody may be late");
                try_run(&load, directory.path(), 1)
            });
            running.join().expect("no panic")
        });
        match ran {
            Ok(report) => {
                let median = report.operations[0].latency.percentile_ns(50.0).expect("ten operations");
                assert!(median < SLACK.as_nanos() as f64 / 4.0, "{engine:?}: {median} ns");
            }
            Err(error) => eprintln!("skipped: {engine:?}: {error}"),
        }
    }
}

#[test]
fn phases_with_rates_are_expected_one_after_the_other() {
    let directory = in_memory();
    let mut threads = group(1, reads());
    threads.rate_per_second = Some(400.0);
    let mut load = workload(fileset(4, 64 << 10), threads.clone(), milliseconds(400));
    threads.rate_per_second = Some(100.0);
    // Every second operation is an fsync, which counts, too.
    threads.actions = mix(&[(1, action(Operation::Write(random_block())))]);
    threads.fsync = FsyncPolicy { every_operations: 1, all_files: true, counted: true, ..FsyncPolicy::default() };
    load.filesets[0].amount = Amount::Files(1);
    load.phases.push(phase(vec![threads], milliseconds(400)));
    let report = flawless(&load, directory.path());
    let rate = report.audit.rate.expect("every group has one");
    assert!((240.0..260.0).contains(&rate.expected), "{rate:?}");
    // How much of it is reached is the machine's matter.
    let operations = report.invocations() as f64 / (report.running_ns as f64 / 1e9);
    assert!(rate.observed > operations * 1.01, "{rate:?}, {operations} without fsyncs");
}

#[test]
fn a_rate_that_was_kept_is_not_doubted_for_what_another_group_took_to_end() {
    let directory = in_memory();
    let mut paced = ThreadGroup { name: "paced".into(), ..group(1, mix(&[(1, action(Operation::Stat))])) };
    paced.rate_per_second = Some(50.0);
    let mut load = workload(fileset(1, 32 << 20), paced, milliseconds(200));
    // Operations of two million calls each.
    let long = Transfer { block_bytes: 16, ..whole() };
    load.phases[0].groups.push(group(1, mix(&[(1, action(Operation::Read(long)))])));
    let report = flawless(&load, directory.path());
    assert!(report.running_ns > 225_000_000, "the long operation was none: {} ns", report.running_ns);
    assert!(!report.warnings.iter().any(|warning| warning.contains("were reached")), "{:?}", report.warnings);
}

#[test]
fn a_shortfall_is_told_with_the_groups_own_fsyncs() {
    let directory = in_memory();
    let mut threads = group(1, mix(&[(1, action(Operation::Write(random_block())))]));
    threads.fsync = FsyncPolicy { every_operations: 1, all_files: true, counted: true, ..FsyncPolicy::default() };
    let mut load = workload(fileset(1, 64 << 10), threads.clone(), operations(20_000));
    threads.rate_per_second = Some(1e9);
    load.phases.push(phase(vec![threads], milliseconds(100)));
    let report = flawless(&load, directory.path());
    let own = report.operations[1].invocations + report.group_fsyncs[1].periodic;
    let told =
        report.warnings.iter().find_map(|warning| warning.strip_prefix("group: ")?.split(' ').next()?.parse().ok());
    let told: f64 = told.expect("a warning");
    assert!((told * 0.1 / own as f64 - 1.0).abs() < 1e-3, "{told} per second, {own} in a tenth of one");
}

#[test]
fn own_cost_is_held_against_the_time_of_one_operation_and_not_of_a_whole_queue() {
    let share = |queue_depth: u32| {
        let directory = on_disk();
        let mut threads = group(1, reads());
        threads.open = OpenPolicy::KeepOpen;
        let mut load = workload(fileset(1, 1 << 20), threads, milliseconds(300));
        load.io = IoSettings { engine: IoEngineKind::IoUring, queue_depth, ..IoSettings::default() };
        let cancel = AtomicBool::new(false);
        let options = RunOptions {
            seed: 1,
            cancel: &cancel,
            observer: &Unobserved,
            measure_null: true,
            ownership: Ownership::Marked,
        };
        match run(&load, directory.path(), &options) {
            Ok(report) => report.audit.overhead_share,
            Err(error) => {
                eprintln!("skipped: {error}");
                None
            }
        }
    };
    if let (Some(one), Some(many)) = (share(1), share(64)) {
        assert!(many > one / 8.0, "{many} with 64 in flight, {one} with one");
    }
}

#[test]
fn an_unused_queue_depth_is_told() {
    let directory = in_memory();
    let mut load = workload(fileset(4, 4096), group(1, reads()), operations(10));
    load.io = IoSettings { engine: IoEngineKind::IoUring, queue_depth: 8, ..IoSettings::default() };
    let told = |load: &fstone_model::Workload| match try_run(load, directory.path(), 1) {
        Ok(report) => Some(report.warnings.iter().any(|warning| warning.contains("one request in flight"))),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    };
    assert_ne!(told(&load), Some(false), "files are opened for each operation");
    load.phases[0].groups[0].open = OpenPolicy::KeepOpen;
    assert_ne!(told(&load), Some(true));
}

#[test]
fn fsyncs_inside_operations_are_timed_and_may_be_of_the_data_alone() {
    let directory = in_memory();
    let write = Operation::Write(Transfer { fsync: true, ..random_block() });
    for (data_only, call) in [(false, "fsync"), (true, "fdatasync")] {
        for open in [OpenPolicy::PerOperation, OpenPolicy::KeepOpen] {
            let create = Operation::Create { block_bytes: 4096, fsync: true };
            let mut threads = group(1, Actions::Sequence(vec![action(write.clone()), action(create)]));
            threads.open = open;
            threads.fsync.data_only = data_only;
            let report = flawless(&workload(fileset(4, 4096), threads, operations(20)), directory.path());
            let synced: Vec<(&str, u64)> = report
                .calls
                .iter()
                .filter(|one| one.call.contains("sync"))
                .map(|one| (one.call.as_str(), one.latency.count()))
                .collect();
            assert_eq!(synced, [(call, 20)], "{open:?}");
        }
    }
}

#[test]
fn more_than_the_engine_can_hold_is_refused() {
    let directory = in_memory();
    let good = workload(fileset(1, 4096), group(1, reads()), operations(1));
    let refused = |load: &fstone_model::Workload, word: &str| match try_run(load, directory.path(), 1) {
        Err(LoadError::Unsupported { what }) => assert!(what.contains(word), "{what}"),
        other => panic!("{other:?}"),
    };
    let mut large = good.clone();
    large.filesets[0].amount = Amount::Files(9_000_000_000_000);
    refused(&large, "is the most");
    // Each of them can be, all together cannot.
    large.filesets =
        (0..1000).map(|number| Fileset { directory: format!("d{number}"), ..fileset(MAXIMUM_FILES, 0) }).collect();
    refused(&large, "of memory");
    let mut many = good.clone();
    many.phases[0].groups[0].threads = u32::try_from(MAXIMUM_THREADS).expect("few") + 1;
    refused(&many, "at most 4000");
    let mut same = good.clone();
    same.filesets.push(Fileset { name: "new".into(), ..fileset(1, 4096) });
    refused(&same, "filesets files and new that use the same names; give one a directory");
    same.filesets[1].naming =
        Naming { file_prefix: "image".into(), directory_prefix: "folder".into(), ..Naming::default() };
    flawless(&same, directory.path());
}

#[test]
fn think_time_is_not_latency() {
    let directory = in_memory();
    let mut threads = group(1, reads());
    threads.think_time = Duration::from_millis(20);
    let report = flawless(&workload(fileset(4, 4096), threads, operations(10)), directory.path());
    assert!(report.running_ns >= 9 * 20_000_000, "{}", report.running_ns);
    let latency = &report.operations[0].latency;
    assert!(latency.sum_ns() < u128::from(report.running_ns) / 2);
}

#[test]
fn a_pause_may_come_after_several_operations() {
    let directory = in_memory();
    let mut threads = group(1, reads());
    threads.open = OpenPolicy::KeepOpen;
    threads.think_time = Duration::from_millis(20);
    threads.think_every = 4;
    for depth in [1, 8] {
        threads.io =
            IoOverrides { engine: Some(IoEngineKind::Libaio), queue_depth: Some(depth), ..IoOverrides::default() };
        let report = flawless(&workload(fileset(4, 4096), threads.clone(), operations(22)), directory.path());
        assert_eq!(report.operations[0].invocations, 22, "{depth}");
        assert!(report.running_ns >= 5 * 20_000_000, "{depth}: {}", report.running_ns);
        let latency = &report.operations[0].latency;
        assert!(latency.sum_ns() < u128::from(report.running_ns) / 2, "{depth}: a pause is no latency");
    }
}

#[test]
fn a_pause_may_come_after_a_time_and_be_spent_computing() {
    let directory = in_memory();
    let mut threads = group(1, reads());
    (threads.think_time, threads.think_spin) = (Duration::from_millis(30), Duration::from_millis(20));
    (threads.think_every, threads.think_after) = (u64::MAX, Some(Duration::from_millis(20)));
    let used = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    for depth in [1, 8] {
        threads.open = OpenPolicy::KeepOpen;
        threads.io =
            IoOverrides { engine: Some(IoEngineKind::Libaio), queue_depth: Some(depth), ..IoOverrides::default() };
        let before = used();
        let report = flawless(&workload(fileset(4, 4096), threads.clone(), milliseconds(500)), directory.path());
        // Ten rounds of 20 ms of reads and 30 ms of pause; a busy machine makes fewer.
        let reading = report.operations[0].latency.sum_ns();
        let (most, least) = (report.running_ns * 3 / 5, Duration::from_millis(20));
        assert!(reading > 0 && (depth > 1 || reading < u128::from(most)), "{depth}: {reading} of {most}");
        assert!(used() - before > least, "{depth}");
    }
}

/// What a filesystem does when a file is closed (NFS, CIFS and FUSE write back then) is not free, unless a sync has done it before. Of a
/// single read of 10,000 open files nearly all of the interval is their closing, unless the machine had other things to do.
#[test]
fn closing_is_in_the_interval_if_it_writes_back() {
    let mut threads = group(1, reads());
    threads.open = OpenPolicy::KeepOpen;
    let mut load = workload(fileset(10_000, 512), threads, operations(1));
    let share = |load: &Workload, directory: &Path| {
        let report = flawless(load, directory);
        report.running_ns as f64 / report.last_done_ns as f64
    };
    load.final_sync = FinalSync::None;
    assert!((0..20).any(|_| share(&load, in_memory().path()) < 2.0));
    let Some(overlay) = Mounted::overlay() else { return };
    assert!((0..20).any(|_| share(&load, &overlay.point) > 4.0));
    load.final_sync = FinalSync::Syncfs;
    assert!((0..20).any(|_| share(&load, &overlay.point) < 2.0));
}

#[test]
fn stops_come_first_come_first_served() {
    let directory = in_memory();
    let bytes = Stop { bytes: Some(100 * 4096), time: Some(Duration::from_secs(600)), ..Stop::default() };
    let report = flawless(&workload(fileset(4, 64 << 10), group(1, reads()), bytes), directory.path());
    assert_eq!(report.read_bytes(), 100 * 4096);
    let mut threads = group(3, reads());
    threads.stop = operations(30);
    let other = ThreadGroup { name: "other".into(), stop: operations(50), ..group(2, reads()) };
    let mut load = workload(fileset(4, 64 << 10), threads, Stop::default());
    load.phases[0].groups.push(other);
    let report = flawless(&load, directory.path());
    assert_eq!(report.operations[0].invocations, 30);
    assert_eq!((report.operations[1].group.as_str(), report.operations[1].invocations), ("other", 50));
    let report = flawless(&workload(fileset(4, 64 << 10), group(2, reads()), milliseconds(300)), directory.path());
    assert!(report.running_ns >= 300_000_000);
    assert!(report.series.len() >= 3);
}

#[derive(Default)]
struct Watcher {
    events: Mutex<Vec<String>>,
    progress: Mutex<Vec<Progress>>,
}

impl Observer for Watcher {
    fn measured_begin(&self) {
        self.events.lock().expect("alone").push("begin".into());
    }
    fn measured_end(&self) {
        self.events.lock().expect("alone").push("end".into());
    }
    fn phase_ended(&self) {
        self.events.lock().expect("alone").push("phase ended".into());
    }
    fn phase_begins(&self) {
        self.events.lock().expect("alone").push("phase begins".into());
    }
    fn progress(&self, progress: &Progress) {
        self.progress.lock().expect("alone").push(progress.clone());
    }
}

#[test]
fn an_observer_sees_the_measured_interval_and_progress() {
    let directory = in_memory();
    let writes = mix(&[(1, action(Operation::Write(random_block())))]);
    let mut load = workload(fileset(4, 64 << 10), group(2, writes), milliseconds(500));
    load.series_interval = Duration::from_millis(250);
    let ageing = Phase { name: "ageing".into(), measured: false, stop: operations(100), ..load.phases[0].clone() };
    load.phases[0].groups[0].fsync = FsyncPolicy { every_operations: 100, ..FsyncPolicy::default() };
    let second = Phase { name: "second".into(), stop: operations(100), ..load.phases[0].clone() };
    load.phases.insert(0, ageing.clone());
    load.phases.extend([second.clone(), ageing, second]);
    let (watcher, cancel) = (Watcher::default(), AtomicBool::new(false));
    let options =
        RunOptions { seed: 1, cancel: &cancel, observer: &watcher, measure_null: true, ownership: Ownership::Marked };
    let report = run(&load, directory.path(), &options).expect("the engine works");
    let events = ["begin", "phase ended", "phase begins", "end", "begin", "end"];
    assert_eq!(*watcher.events.lock().expect("alone"), events);
    let progress = watcher.progress.lock().expect("alone");
    let main: Vec<&Progress> = progress.iter().filter(|one| one.phase == "main").collect();
    assert!(main.iter().any(|one| one.operations > 0 && one.latency.count() > 0), "{main:?}");
    assert_eq!(main[0].expected, Some(Duration::from_millis(500)));
    assert_eq!(main.iter().map(|one| one.interval).sum::<Duration>(), Duration::from_millis(500), "the last is there");
    let fsyncs: u64 = main.iter().map(|one| one.interval_fsyncs).sum();
    assert_eq!(main.iter().map(|one| one.fsync_latency.count()).sum::<u64>(), fsyncs);
    assert!(fsyncs > 0 && main.iter().map(|one| one.operations).max() > Some(fsyncs));
    assert!(report.audit.null_ns_per_operation.expect("it was asked for") > 0.0);
    assert!(report.audit.overhead_share.expect("both are known") > 0.0);
    // Only what was measured is in the figures.
    let phases: Vec<&str> = report.operations.iter().map(|operation| operation.phase.as_str()).collect();
    assert_eq!(phases, ["main", "second", "second"]);
    assert!(report.clock.cost_ns > 0.0);
}

#[derive(Default)]
struct Patience {
    cancel: AtomicBool,
    told: Mutex<Vec<(u64, u64)>>,
}

impl Observer for Patience {
    fn progress(&self, progress: &Progress) {
        let mut told = self.told.lock().expect("alone");
        told.push((progress.operations, progress.bytes));
        self.cancel.store(told.len() == 2, Ordering::Relaxed);
    }
}

/// Who waits for one large file must see that it grows: nothing else tells it from one that hangs.
#[test]
fn a_file_that_takes_long_to_fill_is_progress() {
    let directory = in_memory();
    let files = Fileset { build_block_bytes: 1, ..fileset(1, 16 << 20) };
    let load = workload(files, group(1, reads()), operations(1));
    let seen = Patience::default();
    let options = RunOptions {
        seed: 1,
        cancel: &seen.cancel,
        observer: &seen,
        measure_null: false,
        ownership: Ownership::Marked,
    };
    let ended = run(&load, directory.path(), &options);
    let told = seen.told.lock().expect("alone");
    assert!(matches!(ended, Err(LoadError::Interrupted(_))), "{ended:?} {told:?}");
    assert!(matches!(told[..], [(0, first), (0, second)] if 0 < first && first < second), "{told:?}");
}

/// What watches from outside, such as the device's counters, does not see what is not measured.
#[test]
fn who_looks_on_sees_each_measured_interval_and_nothing_between() {
    let directory = in_memory();
    let mut load = workload(fileset(4, 64 << 10), group(2, reads()), operations(10));
    let ageing = Phase { name: "ageing".into(), measured: false, ..load.phases[0].clone() };
    let second = Phase { name: "second".into(), ..load.phases[0].clone() };
    let third = Phase { name: "third".into(), ..second.clone() };
    load.phases.extend([ageing.clone(), second, third, ageing]);
    let (watcher, cancel) = (Watcher::default(), AtomicBool::new(false));
    let options =
        RunOptions { seed: 1, cancel: &cancel, observer: &watcher, measure_null: false, ownership: Ownership::Marked };
    let report = run(&load, directory.path(), &options).expect("the engine works");
    let events = ["begin", "end", "begin", "phase ended", "phase begins", "end"];
    assert_eq!(*watcher.events.lock().expect("alone"), events);
    assert_eq!(report.operations.iter().map(|one| one.invocations).collect::<Vec<_>>(), [10, 10, 10]);
    // Each interval ends with a sync of its own, and each begins from a state that was synced.
    let synced: Vec<bool> = report.phases.iter().map(|phase| phase.sync_ns > 0).collect();
    assert_eq!(synced, [true; 3]);
    assert_eq!(report.phases.iter().map(|phase| phase.sync_ns).sum::<u64>(), report.sync_ns);
    assert_eq!(report.phases.iter().map(|phase| phase.elapsed_ns).sum::<u64>(), report.elapsed_ns);
    let begun: Vec<u64> =
        report.operations.iter().map(|one| one.at_work.expect("it was recorded")[0].begin_ns).collect();
    let elapsed = |phase: usize| report.phases[phase].elapsed_ns;
    assert_eq!(begun, [0, elapsed(0), elapsed(0) + elapsed(1)]);
    let syncs = |load: &Workload| {
        let watcher = Watcher::default();
        let report = run(load, in_memory().path(), &RunOptions { observer: &watcher, ..options }).expect("it works");
        let told: Vec<String> = watcher.progress.lock().expect("alone").iter().map(|one| one.phase.clone()).collect();
        (told.into_iter().filter(|phase| phase.ends_with("sync")).collect::<Vec<_>>(), report.sync_ns > 0)
    };
    let all = ["final sync", "sync", "final sync", "final sync"].map(str::to_owned).to_vec();
    assert_eq!(syncs(&load), (all, true));
    load.final_sync = FinalSync::None;
    assert_eq!(syncs(&load), (Vec::new(), false), "what was asked for, here too");
}

#[test]
fn phases_that_pay_for_what_others_wrote_are_told() {
    let directory = in_memory();
    let of = |name: &str, operation: Operation| {
        let mut phase = phase(vec![group(1, mix(&[(1, action(operation))]))], operations(3));
        phase.name = name.into();
        phase
    };
    let (write, read) = (of("write", Operation::Write(random_block())), of("read", Operation::Read(random_block())));
    let warned = |phases: &[&Phase], change: &dyn Fn(&mut Workload)| {
        let mut load = workload(fileset(2, 64 << 10), group(1, reads()), operations(1));
        load.phases = phases.iter().map(|phase| (*phase).clone()).collect();
        load.final_sync = FinalSync::None;
        change(&mut load);
        let report = flawless(&load, directory.path());
        report.warnings.into_iter().filter(|warning| warning.contains("nothing is synced")).collect::<Vec<_>>()
    };
    let [warning] = &*warned(&[&write, &read], &|_| {}) else { panic!("one warning") };
    assert!(warning.contains("what phase \"write\" left") && warning.contains("time of phase \"read\""), "{warning}");
    let none = Vec::<String>::new();
    assert_eq!(warned(&[&read, &write], &|_| {}), none, "nothing is left dirty by the first");
    assert_eq!(warned(&[&write, &of("sync", Operation::Syncfs), &read], &|_| {}), none);
    assert_eq!(warned(&[&write, &read], &|load| load.final_sync = FinalSync::Syncfs), none);
    assert_eq!(warned(&[&write, &read], &|load| load.phases[0].groups[0].fsync.at_end = true), none);
    assert_eq!(warned(&[&write, &read], &|load| load.io.sync = OpenSync::Sync), none);
}

#[test]
fn cancelling_ends_within_an_operation() {
    let directory = in_memory();
    let mut sleepy = group(1, reads());
    sleepy.think_time = Duration::from_secs(600);
    let mut load = workload(fileset(4, 64 << 10), group(3, reads()), Stop::default());
    load.phases[0].groups.push(sleepy);
    let (watcher, cancel) = (Watcher::default(), AtomicBool::new(false));
    let options =
        RunOptions { seed: 1, cancel: &cancel, observer: &watcher, measure_null: false, ownership: Ownership::Marked };
    let result = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&load, directory.path(), &options));
        while watcher.events.lock().expect("alone").is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        cancel.store(true, Ordering::Relaxed);
        running.join().expect("no panic")
    });
    assert!(matches!(result, Err(LoadError::Interrupted(_))), "{result:?}");
    assert_eq!(*watcher.events.lock().expect("alone"), ["begin", "end"]);
}

#[test]
fn a_full_device_is_data() {
    let directory = in_memory();
    // More than any /dev/shm holds, without writing it: the file may not grow beyond what the filesystem allows.
    let append = transfer(Extent::Bytes(4096), Pattern::FromStart);
    let mut load = workload(fileset(1, 4096), group(1, mix(&[(1, action(Operation::Append(append)))])), operations(10));
    load.phases[0].groups[0].actions = mix(&[(1, action(Operation::Fallocate { size_bytes: 1 << 46, punch: false }))]);
    load.on_error = ErrorPolicy::Continue;
    let report = crate::support::load(&load, directory.path());
    assert_eq!(report.operations[0].errors, 10);
    assert_eq!((report.errors[0].call.as_str(), report.errors[0].count), ("fallocate", 10));
    assert!(report.errors[0].text.starts_with("ENOSPC"), "{:?}", report.errors[0]);
}

#[test]
fn what_cannot_be_done_is_refused_with_its_reason() {
    let directory = in_memory();
    let good = workload(fileset(1, 4096), group(1, reads()), operations(1));
    let mut away = good.clone();
    away.filesets[0].directory = "../elsewhere".into();
    assert!(matches!(try_run(&away, directory.path(), 1), Err(LoadError::Unsupported { .. })));
    let missing = directory.path().join("not here");
    assert!(matches!(try_run(&good, &missing, 1), Err(LoadError::Directory { .. })));
    let mut unprepared = good.clone();
    unprepared.filesets[0].existing = Existing::Require;
    assert!(matches!(try_run(&unprepared, directory.path(), 1), Err(LoadError::NotPrepared { .. })));
    let mut callout = good;
    callout.callout = Some("exit 3".into());
    assert!(matches!(try_run(&callout, directory.path(), 1), Err(LoadError::Callout { .. })));
}

#[test]
fn filesets_are_prepared_and_reused() {
    let directory = in_memory();
    let cancel = AtomicBool::new(false);
    let options = RunOptions {
        seed: 3,
        cancel: &cancel,
        observer: &fstone_engine::Unobserved,
        measure_null: false,
        ownership: Ownership::Marked,
    };
    let mut files = fileset(50, 10_000);
    files.directories = Directories::Tree { width: 3, depth: 2 };
    files.existing = Existing::Reuse;
    let mut load = workload(files, group(1, reads()), operations(10));
    let prepared = prepare(&load, directory.path(), &options).expect("room");
    assert_eq!((prepared.files, prepared.bytes), (50, 500_000));
    let made = |path: &str| std::fs::metadata(path).and_then(|metadata| metadata.modified()).expect("it is there");
    let first = files_below(directory.path());
    assert_eq!(first.len(), 50);
    let time = made(&first[0].0);
    prepare(&load, directory.path(), &options).expect("room");
    assert_eq!(made(&first[0].0), time, "it was reused");
    // One that does not fit: all is made anew.
    std::fs::write(&first[7].0, b"short").expect("writable");
    prepare(&load, directory.path(), &options).expect("room");
    assert_ne!(made(&first[0].0), time, "it was rebuilt");
    assert_eq!(files_below(directory.path()), first);
    let foreign = directory.path().join("data/keep.txt");
    std::fs::write(&foreign, b"mine").expect("writable");
    load.filesets[0].amount = Amount::Files(0);
    load.filesets[0].existing = Existing::Rebuild;
    prepare(&load, directory.path(), &options).expect("all of it can go");
    assert_eq!(files_below(directory.path()), [(foreign.to_string_lossy().into_owned(), 4)]);
}

#[test]
fn amounts_by_bytes_and_shares_that_exist() {
    let directory = in_memory();
    let mut files = fileset(0, 3000);
    files.amount = Amount::Bytes(100_000);
    flawless(&workload(files, group(1, reads()), operations(10)), directory.path());
    assert_eq!(files_below(directory.path()).len(), 34);
    let mut files = fileset(100, 3000);
    files.preallocated = 0.8;
    flawless(&workload(files, group(1, reads()), operations(10)), directory.path());
    assert_eq!(files_below(directory.path()).len(), 80);
}

#[test]
fn files_without_data_may_have_blocks() {
    use std::os::unix::fs::MetadataExt;
    for (allocate, blocks) in [(true, 2048), (false, 0)] {
        let directory = in_memory();
        let mut files = fileset(1, 1 << 20);
        (files.fill, files.allocate) = (false, allocate);
        flawless(&workload(files, group(1, mix(&[(1, action(Operation::Stat))])), operations(1)), directory.path());
        let there = std::fs::metadata(directory.path().join("data/file0")).expect("it was made");
        assert_eq!((there.len(), there.blocks()), (1 << 20, blocks), "{allocate}");
    }
}

#[test]
fn a_sparse_file_of_a_tebibyte_works() {
    let directory = on_disk();
    let mut files = fileset(1, 1 << 40);
    files.fill = false;
    for distribution in [
        Distribution::Uniform,
        Distribution::Zipf { theta: 1.1 },
        Distribution::Gauss { deviation: 0.1, scattered: false },
        Distribution::Permutation,
    ] {
        let pattern = Pattern::Random { distribution, align_bytes: 4096 };
        let mut threads = group(2, mix(&[(1, action(Operation::Read(transfer(Extent::Bytes(4096), pattern))))]));
        threads.open = OpenPolicy::KeepOpen;
        let report = flawless(&workload(files.clone(), threads, operations(20_000)), directory.path());
        assert_eq!(report.invocations(), 20_000);
        assert_eq!(report.warnings, Vec::<String>::new(), "{distribution:?}");
        let blocks = report.audit.distinct_blocks.expect("one file of one size");
        assert!(blocks.observed > 1000.0, "{distribution:?}: {blocks:?}");
    }
}

#[test]
fn every_other_operation_works() {
    let directory = on_disk();
    let each = [
        Operation::Fdatasync,
        Operation::Syncfs,
        Operation::Truncate { size_bytes: 20_000 },
        Operation::Fallocate { size_bytes: 8192, punch: true },
        Operation::Rename,
        Operation::Link,
        Operation::Symlink,
        Operation::Mkdir,
        Operation::Readdir,
        Operation::Walk,
        Operation::Chmod,
        Operation::Utimens,
        Operation::CopyFileRange,
        Operation::MmapRead(whole()),
        Operation::MmapWrite { transfer: whole(), msync: true },
        Operation::Rmdir,
    ];
    for threads in [1, 4] {
        let mut files = fileset(20, 10_000);
        files.directories = Directories::Flat { count: 3, root_too: true };
        let sequence = Actions::Sequence(each.iter().cloned().map(action).collect());
        let load = workload(files, group(threads, sequence), once());
        let report = flawless(&load, directory.path());
        for operation in &report.operations {
            assert_eq!(operation.invocations, u64::from(threads), "{}", operation.name);
        }
        // Everything it made, links included, is recognised and goes.
        let mut empty = load.clone();
        empty.filesets[0].amount = Amount::Files(0);
        empty.phases.clear();
        flawless(&empty, directory.path());
        assert_eq!(files_below(directory.path()), []);
    }
}

#[test]
fn attributes_and_reflinks_where_there_are_any() {
    let directory = on_disk();
    for operation in [Operation::Setxattr { value_bytes: 64 }, Operation::Getxattr, Operation::Reflink] {
        let one = action(operation);
        let mut load = workload(fileset(5, 4096), group(1, mix(&[(1, one.clone())])), operations(5));
        load.on_error = ErrorPolicy::Continue;
        let report = crate::support::load(&load, directory.path());
        match report.errors.first() {
            None => assert_eq!(report.invocations(), 5),
            Some(error) => {
                assert!(error.text.starts_with("EOPNOTSUPP") || error.text.starts_with("EINVAL"), "{error:?}");
                eprintln!("skipped: {}: {}", one.name, error.text);
            }
        }
    }
}

/// Emptied or filled by then, they would be gone through in no time: the cost would be that of starting a thread.
#[test]
fn the_own_cost_is_taken_with_the_files_that_the_load_began_with() {
    let cost = |operation: Operation, preallocated: f64| {
        let directory = in_memory();
        let files = Fileset { preallocated, ..fileset(20_000, 0) };
        let round = Action { choice: FileChoice::RoundRobin, ..action(operation) };
        let load = workload(files, group(1, mix(&[(1, round)])), once());
        let cancel = AtomicBool::new(false);
        let options = RunOptions {
            seed: 1,
            cancel: &cancel,
            observer: &Unobserved,
            measure_null: true,
            ownership: Ownership::Marked,
        };
        let report = run(&load, directory.path(), &options).expect("the engine works");
        assert_eq!(report.invocations(), 20_000);
        report.audit.null_ns_per_operation.expect("it was asked for")
    };
    let stat = cost(Operation::Stat, 1.0);
    for (operation, preallocated) in
        [(Operation::Unlink, 1.0), (Operation::Create { block_bytes: 0, fsync: false }, 0.0)]
    {
        let own = cost(operation.clone(), preallocated);
        assert!(own < 8.0 * stat, "{operation:?}: {own} ns, stat: {stat} ns");
    }
}

/// What the engine itself does at the end (libaio's io_destroy waits for a grace period of the kernel, a thousand threads take their time to end) is
/// none of the filesystem's work. A thread may lose its processor just then, so one run of several is enough.
#[test]
fn the_interval_ends_with_the_last_operation() {
    use IoEngineKind::{IoUring, Libaio, Mmap, Null, Psync};
    for (engine, queue_depth, threads) in
        [(Null, 1, 1), (Psync, 1, 1), (Psync, 1, 200), (Mmap, 1, 1), (IoUring, 8, 1), (Libaio, 1, 1), (Libaio, 8, 1)]
    {
        let directory = in_memory();
        let group = ThreadGroup { open: OpenPolicy::KeepOpen, ..group(threads, reads()) };
        let mut load = workload(fileset(1, 1 << 20), group, operations(4000));
        load.io = IoSettings { engine, queue_depth, ..IoSettings::default() };
        load.final_sync = FinalSync::None;
        let ends_soon = || {
            let report = flawless(&load, directory.path());
            (report.running_ns - report.last_done_ns) * 10 < report.running_ns
        };
        assert!((0..10).any(|_| ends_soon()), "{engine:?}, {threads} threads");
    }
}

#[test]
fn threads_that_wait_for_the_wear_out_are_woken_at_once() {
    let mut threads = group(1, reads());
    threads.open = OpenPolicy::KeepOpen;
    let stop = Stop { wear_out: true, ..milliseconds(100) };
    let load = workload(fileset(4, 4096), threads, stop);
    let directory = in_memory();
    let idle_ns = || {
        let report = flawless(&load, directory.path());
        report.running_ns - report.per_thread[0].busy_ns
    };
    // Those that wait used to be looked for every 20 ms.
    assert!((0..20).any(|_| idle_ns() < 10_000_000));
}

#[test]
fn a_pause_begins_when_the_fsync_before_it_is_done() {
    let mut threads = group(1, mix(&[(1, action(Operation::Write(random_block())))]));
    threads.think_time = Duration::from_millis(20);
    threads.fsync = FsyncPolicy { every_operations: 1, ..threads.fsync };
    let directory = on_disk();
    let report = flawless(&workload(fileset(1, 1 << 20), threads, operations(10)), directory.path());
    let fsyncs_ns = report.group_fsyncs[0].latency.sum_ns() - u128::from(report.group_fsyncs[0].latency.max_ns());
    assert!(u128::from(report.running_ns) >= 9 * 20_000_000 + fsyncs_ns, "{} with {fsyncs_ns}", report.running_ns);
}

struct Looks(Mutex<Vec<Duration>>);

impl Observer for Looks {
    fn progress(&self, progress: &Progress) {
        if progress.phase == "main" {
            self.0.lock().expect("whole").push(progress.interval);
        }
    }
}

#[test]
fn lines_of_progress_are_about_whole_points_of_the_series() {
    let looks = Looks(Mutex::default());
    let cancel = AtomicBool::new(false);
    let ownership = Ownership::Marked;
    let options = RunOptions { seed: 1, cancel: &cancel, observer: &looks, measure_null: false, ownership };
    let load = workload(fileset(4, 4096), group(1, reads()), milliseconds(600));
    run(&load, in_memory().path(), &options).expect("the engine works");
    let lines = looks.0.into_inner().expect("whole");
    assert!(!lines.is_empty() && lines.iter().all(|line| line.as_nanos() % 100_000_000 == 0), "{lines:?}");
}

#[test]
fn phases_whose_writes_are_written_back_later_say_so() {
    let writes =
        ThreadGroup { name: "writers".into(), ..group(1, mix(&[(1, action(Operation::Write(random_block())))])) };
    let readers = ThreadGroup { name: "readers".into(), ..group(1, reads()) };
    let warned = |measured: bool, second: &ThreadGroup| {
        let mut load = workload(fileset(1, 1 << 20), second.clone(), operations(10));
        load.final_sync = FinalSync::None;
        let first = Phase { name: "first".into(), measured, ..phase(vec![writes.clone()], operations(10)) };
        load.phases.insert(0, first);
        let report = flawless(&load, in_memory().path());
        report.warnings.iter().any(|warning| warning.contains("nothing is synced between phases"))
    };
    assert!(warned(true, &readers) && warned(false, &readers) && warned(true, &writes));
    assert!(!warned(false, &writes), "a warm-up");
}
