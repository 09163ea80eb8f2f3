//! What each group of threads has of its own, side by side with others.

use crate::support::*;
use fstone_engine::{LoadError, Observer, Ownership, Progress, RunOptions, run};
use fstone_model::workload::*;
use fstone_model::{LoadReport, Workload};
use std::collections::HashSet;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const PAGE_BYTES: usize = 4096;

fn reads() -> Actions {
    mix(&[(1, action(Operation::Read(random_block())))])
}

fn writes() -> Actions {
    mix(&[(1, action(Operation::Write(random_block())))])
}

fn keeping(name: &str, actions: Actions, io: IoOverrides) -> ThreadGroup {
    ThreadGroup { name: name.into(), open: OpenPolicy::KeepOpen, io, ..group(2, actions) }
}

struct Flags<'a> {
    directory: &'a Path,
    seen: Mutex<HashSet<i32>>,
}

impl Observer for Flags<'_> {
    fn progress(&self, _: &Progress) {
        for entry in std::fs::read_dir("/proc/self/fd").expect("procfs").flatten() {
            let is_ours = std::fs::read_link(entry.path()).is_ok_and(|path| path.starts_with(self.directory));
            let number = entry.file_name();
            let Ok(text) = std::fs::read_to_string(Path::new("/proc/self/fdinfo").join(number)) else { continue };
            let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
            if let Some(flags) = flags.filter(|flags| is_ours && flags & libc::O_DIRECTORY == 0) {
                self.seen.lock().expect("no panic").insert(flags & (libc::O_DIRECT | libc::O_SYNC));
            }
        }
    }
}

fn watched(load: &Workload, directory: &Path, observer: &dyn Observer) -> LoadReport {
    let cancel = AtomicBool::new(false);
    let ownership = Ownership::Marked;
    let options = RunOptions { seed: 1, cancel: &cancel, observer, measure_null: false, ownership };
    run(load, directory, &options).expect("the engine works")
}

#[test]
fn groups_open_files_each_in_its_way() {
    let directory = on_disk();
    let direct = IoOverrides { direct: Some(true), ..IoOverrides::default() };
    let synced = IoOverrides { sync: Some(OpenSync::Dsync), ..IoOverrides::default() };
    let mut load =
        workload(fileset(40, 16384), keeping("buffered", reads(), IoOverrides::default()), milliseconds(300));
    load.phases[0].groups.push(keeping("direct", reads(), direct));
    load.phases[0].groups.push(keeping("synced", writes(), synced));
    // Files that come and go make the phase own all descriptors.
    let churn = [(1, action(Operation::Create { block_bytes: 4096, fsync: false })), (1, action(Operation::Unlink))];
    load.phases[0].groups.push(keeping("churn", mix(&churn), IoOverrides::default()));
    load.series_interval = Duration::from_millis(20);
    let flags = Flags { directory: directory.path(), seen: Mutex::default() };
    let report = watched(&load, directory.path(), &flags);
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    let seen = flags.seen.into_inner().expect("no panic");
    assert_eq!(seen, HashSet::from([0, libc::O_DIRECT, libc::O_DSYNC]));
    assert!(report.operations.iter().all(|operation| operation.invocations > 0), "{:?}", report.operations);
}

#[test]
fn groups_have_engines_of_their_own() {
    let directory = in_memory();
    let on = |engine, queue_depth| IoOverrides {
        engine: Some(engine),
        queue_depth: Some(queue_depth),
        ..IoOverrides::default()
    };
    let both = || mix(&[(1, action(Operation::Read(random_block()))), (1, action(Operation::Write(random_block())))]);
    let mut load = workload(fileset(20, 65536), keeping("psync", both(), IoOverrides::default()), Stop::default());
    load.phases[0].groups.push(keeping("mmap", both(), on(IoEngineKind::Mmap, 1)));
    load.phases[0].groups.push(keeping("ring", both(), on(IoEngineKind::IoUring, 8)));
    for group in &mut load.phases[0].groups {
        group.stop = operations(500);
    }
    load.data.stamped = true;
    match try_run(&load, directory.path(), 1) {
        Err(error @ LoadError::Engine { .. }) => eprintln!("skipped: {error}"),
        Err(error) => panic!("{error}"),
        Ok(report) => {
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            assert_eq!(report.invocations(), 1500);
            assert!(report.audit.verified_bytes > 0);
        }
    }
    load.phases[0].groups[1].io.engine = Some(IoEngineKind::Null);
    let refused = try_run(&load, directory.path(), 1).expect_err("null beside others");
    assert!(refused.to_string().contains("null"), "{refused}");
}

/// As fast as random arrivals come, and not twice as fast: what takes longer than that is the machine's doing.
#[test]
fn poisson_arrivals_take_the_time_that_the_rate_says() {
    let directory = in_memory();
    let mut threads = keeping("group", reads(), IoOverrides::default());
    threads.rate_per_second = Some(5000.0);
    threads.arrivals = Arrivals::Poisson;
    let report = flawless(&workload(fileset(4, 65536), threads.clone(), operations(2000)), directory.path());
    // 2000 gaps of 0.2 ms are 0.4 s, give or take 5 standard deviations.
    let least = 0.4 * (1.0 - 5.0 / 2000f64.sqrt());
    assert!(report.last_done_ns as f64 / 1e9 > least, "{} ns", report.last_done_ns);
    // A rate in bytes has no moments of its own.
    threads.rate_per_second = None;
    let refused = try_run(&workload(fileset(4, 65536), threads, operations(1)), directory.path(), 1);
    assert!(refused.expect_err("no rate").to_string().contains("Poisson"));
}

#[test]
fn a_rate_in_bytes_is_kept_whatever_operations_move() {
    let directory = in_memory();
    for (engine, queue_depth) in [(IoEngineKind::Psync, 1), (IoEngineKind::IoUring, 8)] {
        let io = IoOverrides { engine: Some(engine), queue_depth: Some(queue_depth), ..IoOverrides::default() };
        // Half the operations move sixteen times as much as the others, and some move nothing.
        let large = Operation::Read(transfer(Extent::Whole, Pattern::FromStart));
        let actions =
            mix(&[(4, action(large)), (4, action(Operation::Read(random_block()))), (1, action(Operation::Stat))]);
        let mut threads = keeping("group", actions, io);
        threads.bytes_per_second = Some(16 << 20);
        let load = workload(fileset(10, 65536), threads, milliseconds(500));
        let report = match try_run(&load, directory.path(), 1) {
            Err(LoadError::Engine { .. }) => continue,
            report => report.expect("the engine works"),
        };
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        // What was begun before the end is finished after it.
        let most = (16 << 20) / 2 + 65536 * 2 * 8;
        assert!(report.read_bytes() <= most, "{engine:?}: {} bytes", report.read_bytes());
        assert!(report.read_bytes() > 0, "{engine:?}");
    }
    let mut idle = keeping("group", mix(&[(1, action(Operation::Stat))]), IoOverrides::default());
    idle.bytes_per_second = Some(1 << 20);
    let refused = try_run(&workload(fileset(1, 4096), idle, operations(1)), directory.path(), 1);
    assert!(refused.expect_err("it moves nothing").to_string().contains("move none"));
}

#[test]
fn reads_and_writes_of_a_mix_have_rates_of_their_own() {
    let directory = in_memory();
    let actions =
        || mix(&[(9, action(Operation::Read(random_block()))), (1, action(Operation::Write(random_block())))]);
    let (operations, bytes) = (|rate| Some(Rate::Operations(rate)), |rate: u64| Some(Rate::Bytes(rate << 10)));
    for (engine, queue_depth) in [(IoEngineKind::Psync, 1), (IoEngineKind::IoUring, 8)] {
        let io = IoOverrides { engine: Some(engine), queue_depth: Some(queue_depth), ..IoOverrides::default() };
        for (rates, arrivals, most) in [
            ([operations(400.0), operations(100.0)], Arrivals::Even, [200, 50]),
            ([bytes(1600), bytes(400)], Arrivals::Even, [200, 50]),
            // Five standard deviations more.
            ([operations(400.0), operations(100.0)], Arrivals::Poisson, [271, 86]),
            ([None, operations(100.0)], Arrivals::Even, [u64::MAX, 50]),
        ] {
            let mut threads = keeping("group", actions(), io);
            (threads.direction_rates, threads.arrivals) = (rates, arrivals);
            let report = match try_run(&workload(fileset(4, 65536), threads, milliseconds(500)), directory.path(), 1) {
                Err(LoadError::Engine { .. }) => continue,
                report => report.expect("the engine works"),
            };
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            // The weights say nothing of how many are reads.
            assert_eq!(report.audit.mix_error_points, None);
            assert!(!report.warnings.iter().any(|told| told.contains("asked for")), "{:?}", report.warnings);
            let done = [0, 1].map(|place: usize| report.operations[place].invocations);
            assert!(done[0] <= most[0] && done[1] <= most[1], "{engine:?} {rates:?}: {done:?}");
            // The machine may be slow, and yet reads are not a part of what writes are.
            assert!(done[0] > done[1] && done[1] >= 5, "{engine:?} {rates:?}: {done:?}");
        }
    }
    for (actions, rates, whole) in [
        (mix(&[(1, action(Operation::Read(random_block())))]), [None, operations(1.0)], None),
        (Actions::Sequence(vec![action(Operation::Write(random_block()))]), [None, operations(1.0)], None),
        (actions(), [operations(1.0), None], Some(5.0)),
        (actions(), [None, operations(0.0)], None),
    ] {
        let mut threads = keeping("group", actions, IoOverrides::default());
        (threads.direction_rates, threads.rate_per_second) = (rates, whole);
        let refused = try_run(&workload(fileset(1, 4096), threads, milliseconds(1)), directory.path(), 1);
        assert!(refused.expect_err("no such rate").to_string().contains("rate"));
    }
}

#[test]
fn a_group_begins_after_its_delay() {
    let directory = in_memory();
    let mut load = workload(fileset(4, 65536), keeping("first", reads(), IoOverrides::default()), Stop::default());
    load.phases[0].groups[0].stop = operations(100);
    let mut later = keeping("later", reads(), IoOverrides::default());
    later.start_delay = Duration::from_millis(300);
    later.rate_per_second = Some(1000.0);
    later.stop = operations(20);
    load.phases[0].groups.push(later);
    let report = flawless(&load, directory.path());
    assert!(report.last_done_ns > 300_000_000, "{} ns", report.last_done_ns);
    assert!(report.first_done_ns < report.last_done_ns);
    let later = report.operations.iter().find(|one| one.group == "later").expect("it is there");
    assert_eq!(later.invocations, 20);
    // Counted from the phase's begin, each would have waited for the whole delay.
    assert!(later.latency.percentile_ns(0.0).is_some_and(|least| least < 280e6), "{:?}", later.latency);
}

#[test]
fn samples_of_a_group_begin_after_its_delay() {
    let directory = in_memory();
    let mut later = keeping("later", reads(), IoOverrides::default());
    later.start_delay = Duration::from_millis(340);
    later.rate_per_second = Some(500.0);
    let mut load = workload(fileset(4, 65536), later, Stop::default());
    load.phases[0].groups[0].stop = milliseconds(300);
    load.series_interval = Duration::from_millis(20);
    let report = flawless(&load, directory.path());
    let thread = &report.per_thread[0];
    let samples = thread.over_time[0].operations.samples;
    // As many as there is room for behind the delay, however late the machine is: 17 begin before it.
    assert!((1..=thread.elapsed_ns / 20_000_000).contains(&samples), "{samples} of {} ns", thread.elapsed_ns);
}

#[test]
fn groups_tell_when_they_were_at_work() {
    let directory = in_memory();
    let group =
        |name: &str, count| ThreadGroup { stop: operations(count), ..keeping(name, reads(), IoOverrides::default()) };
    let mut load = workload(fileset(4, 65536), group("main", 100), Stop::default());
    let delay = Duration::from_millis(300);
    load.phases[0].groups.push(ThreadGroup { start_delay: delay, ..group("later", 20) });
    load.phases.push(phase(vec![group("main", 50)], Stop::default()));
    let report = flawless(&load, directory.path());
    let delay = delay.as_nanos() as u64;
    let spans = [0, 1, 2].map(|place: usize| report.operations[place].at_work.expect("it was recorded"));
    let [first, later, last] = spans.map(|[work, _]| work);
    let of_first_phase = report.phases[0].elapsed_ns;
    // Closing files and the final sync are the phase's, once.
    let closing = spans.map(|[_, closing]| closing);
    assert_eq!(closing[0], closing[1]);
    assert_eq!((closing[0].end_ns, closing[2].end_ns), (of_first_phase, report.elapsed_ns));
    assert_eq!((first.begin_ns, later.begin_ns, last.begin_ns), (0, delay, of_first_phase));
    assert!(0 < first.end_ns && first.end_ns < later.begin_ns, "{first:?} of {of_first_phase}");
    assert_eq!((later.end_ns, last.end_ns), (closing[0].begin_ns, closing[2].begin_ns));
}

#[test]
fn a_group_that_changes_nothing_is_divided_by_its_own_time() {
    let directory = in_memory();
    let named = |name: &str, operation| keeping(name, mix(&[(1, action(operation))]), IoOverrides::default());
    let mut load = workload(fileset(4, 65536), named("writer", Operation::Write(random_block())), Stop::default());
    load.phases[0].groups.push(named("reader", Operation::Stat));
    load.phases[0].groups.iter_mut().for_each(|group| group.stop = operations(100));
    let report = flawless(&load, directory.path());
    let of = |name: &'static str| report.operations.iter().filter(move |one| one.group == name);
    let [work, closing] = of("reader").next().and_then(|one| one.at_work).expect("it was recorded");
    assert!(report.sync_ns > 0 && closing.length_ns() == 0, "{closing:?}");
    let reads = of("reader").next().map_or(0, |one| one.invocations) as f64;
    assert!((report.rate_of(of("reader")) / (reads * 1e9 / work.length_ns() as f64) - 1.0).abs() < 1e-9);
    let [_, closing] = of("writer").next().and_then(|one| one.at_work).expect("it was recorded");
    assert_eq!(closing.end_ns, report.elapsed_ns);
    assert!(closing.length_ns() >= report.sync_ns, "{closing:?} of {}", report.sync_ns);
}

/// A group that waits for its next operation is at work: otherwise the few operations of a slow one would be divided by less time than it had.
#[test]
fn a_slow_group_is_divided_by_the_time_that_it_had() {
    let directory = in_memory();
    let paced = |name: &str, operation, rate| ThreadGroup {
        rate_per_second: Some(rate),
        ..keeping(name, mix(&[(1, action(operation))]), IoOverrides::default())
    };
    let writer = paced("writer", Operation::Write(random_block()), 200.0);
    let mut load = workload(fileset(4, 65536), writer, milliseconds(600));
    load.phases[0].groups.push(paced("reader", Operation::Stat, 2.5));
    let report = flawless(&load, directory.path());
    let reader = report.operations.iter().filter(|one| one.group == "reader");
    let count: u64 = reader.clone().map(|one| one.invocations).sum();
    let [work, closing] = reader.clone().next().and_then(|one| one.at_work).expect("it was recorded");
    assert_eq!((count, work.begin_ns, closing.length_ns()), (2, 0, 0));
    assert!(work.end_ns >= 600_000_000, "{work:?}");
    assert!(report.rate_of(reader) <= 2.0 / 0.6);
}

/// The CPUs that threads of a load may run on, of those that may not run on all.
struct Pinned<'a>(&'a Mutex<HashSet<String>>);

impl Observer for Pinned<'_> {
    fn progress(&self, _: &Progress) {
        for task in std::fs::read_dir("/proc/self/task").expect("procfs").flatten() {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            if let Some(list) = field("Cpus_allowed_list:").filter(|_| field("Name:") == Some("load-0")) {
                self.0.lock().expect("no panic").insert(list.to_owned());
            }
        }
    }
}

#[test]
fn threads_run_on_the_cpus_of_their_group() {
    let directory = in_memory();
    let here = rustix::thread::sched_getaffinity(None).expect("it is always known");
    let cpus: Vec<u32> = (0..1024u32).filter(|cpu| here.is_set(*cpu as usize)).take(2).collect();
    let [first, second] = cpus[..] else {
        eprintln!("skipped: there is only one CPU");
        return;
    };
    let seen = Mutex::default();
    // The first thread of each group, told apart by its CPU: in turn the second of the list has the first thread.
    for (list, policy) in [(vec![first], CpuPolicy::Shared), (vec![second, first], CpuPolicy::Split)] {
        let mut threads = keeping("group", reads(), IoOverrides::default());
        (threads.cpus, threads.cpu_policy) = (list, policy);
        let mut load = workload(fileset(4, 65536), threads, milliseconds(200));
        load.series_interval = Duration::from_millis(20);
        let report = watched(&load, directory.path(), &Pinned(&seen));
        assert!(report.errors.is_empty(), "{:?}", report.errors);
    }
    let seen = seen.into_inner().expect("no panic");
    assert!(seen.contains(&first.to_string()) && seen.contains(&second.to_string()), "{seen:?}");
    let mut threads = keeping("group", reads(), IoOverrides::default());
    threads.cpus = vec![1_000_000];
    let refused = try_run(&workload(fileset(4, 65536), threads, operations(1)), directory.path(), 1);
    assert!(refused.expect_err("no such CPU").to_string().contains("on CPU 1000000"));
}

/// Bytes of the first file that are in the page cache, by mincore(2). Reading with `RWF_NOWAIT` would not do: it starts
/// reading ahead, and finds what it has brought itself when the disk is fast. What is dropped is gone; of what is kept the
/// kernel takes pages back when memory is short, so a test may ask for most of it, not for all.
fn cached_bytes(directory: &Path) -> usize {
    let file = std::fs::File::open(directory.join("data/file0")).expect("it was built");
    let length = usize::try_from(file.metadata().expect("its size").len()).expect("it fits in memory");
    let mut resident = vec![0_u8; length.div_ceil(PAGE_BYTES)];
    #[expect(unsafe_code, reason = "mincore(2) has no safe wrapper")]
    // SAFETY: the mapping is of the file's length, is not read, and is gone when the block ends; the vector has a byte a page.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(at, libc::MAP_FAILED);
        assert_eq!(libc::mincore(at, length, resident.as_mut_ptr()), 0);
        libc::munmap(at, length);
    }
    resident.iter().filter(|page| **page & 1 == 1).count() * PAGE_BYTES
}

#[test]
fn files_are_opened_cold_when_the_group_says_so() {
    const SIZE: u64 = 65536;
    let directory = on_disk();
    for (open, operation) in [
        (OpenPolicy::KeepOpen, Operation::Fsync),
        (OpenPolicy::PerOperation, Operation::Fsync),
        (OpenPolicy::PerOperation, Operation::OpenClose),
    ] {
        let cached = [false, true].map(|invalidate| {
            let actions = mix(&[(1, action(operation.clone()))]);
            let threads = ThreadGroup { open, invalidate, ..group(1, actions) };
            flawless(&workload(fileset(1, SIZE), threads, operations(1)), directory.path());
            cached_bytes(directory.path())
        });
        assert!(cached[0] > SIZE as usize / 2 && cached[1] == 0, "{open:?}, {operation:?}: {cached:?}");
    }
}

#[test]
fn each_pass_over_kept_files_begins_cold() {
    const SIZE: u64 = 64 * 4096;
    let directory = on_disk();
    for (engine, depth) in [(IoEngineKind::Psync, 1), (IoEngineKind::Mmap, 1), (IoEngineKind::Libaio, 8)] {
        let cached = [None, Some(SIZE)].map(|invalidate_every| {
            let read = Operation::Read(transfer(Extent::Bytes(4096), Pattern::Cursor { shared: false }));
            let io = IoOverrides { engine: Some(engine), queue_depth: Some(depth), ..IoOverrides::default() };
            let threads = keeping("group", mix(&[(1, action(read))]), io);
            let advice = Advice::Random;
            let threads = ThreadGroup { threads: 1, invalidate: true, invalidate_every, advice, ..threads };
            [128, 129].map(|reads| {
                flawless(&workload(fileset(1, SIZE), threads.clone(), operations(reads)), directory.path());
                cached_bytes(directory.path())
            })
        });
        let [[kept, kept_on], [last, next]] = cached;
        // Nothing is dropped behind the last pass.
        assert!([kept, kept_on, last].iter().all(|bytes| *bytes > SIZE as usize / 2), "{engine:?}: {cached:?}");
        assert_eq!(next, PAGE_BYTES, "{engine:?}: {cached:?}");
    }
}

#[test]
fn a_pass_that_ends_with_an_fsync_is_dropped_behind_it() {
    const SIZE: u64 = 64 * 4096;
    let directory = on_disk();
    for (engine, depth) in [(IoEngineKind::Psync, 1), (IoEngineKind::Libaio, 8)] {
        let write = Operation::Write(transfer(Extent::Bytes(4096), Pattern::Cursor { shared: false }));
        let io = IoOverrides { engine: Some(engine), queue_depth: Some(depth), ..IoOverrides::default() };
        let threads = keeping("group", mix(&[(1, action(write))]), io);
        let fsync = FsyncPolicy { every_operations: 64, ..FsyncPolicy::default() };
        let threads = ThreadGroup { threads: 1, invalidate_every: Some(SIZE), fsync, ..threads };
        let load = workload(fileset(1, SIZE), threads, operations(65));
        flawless(&Workload { final_sync: FinalSync::None, ..load }, directory.path());
        assert_eq!(cached_bytes(directory.path()), PAGE_BYTES, "{engine:?}");
    }
}

#[test]
fn the_kernel_reads_ahead_as_it_is_told() {
    const SIZE: u64 = 64 * 4096;
    let directory = on_disk();
    let cached = [Advice::Random, Advice::None, Advice::Sequential].map(|advice| {
        let read = Operation::Read(transfer(Extent::Bytes(4096), Pattern::Cursor { shared: false }));
        let threads = keeping("group", mix(&[(1, action(read))]), IoOverrides::default());
        let threads = ThreadGroup { threads: 1, invalidate: true, advice, ..threads };
        flawless(&workload(fileset(1, SIZE), threads, operations(1)), directory.path());
        cached_bytes(directory.path())
    });
    assert_eq!(cached[0], PAGE_BYTES, "no page but the one that was read");
    assert!(cached[1] > PAGE_BYTES && cached[2] > PAGE_BYTES, "{cached:?}");
}

/// Threads have parts of a file of their own: what each writes in order, from its part's begin to its end, is the whole file
/// once, and nothing twice.
#[test]
fn threads_write_disjoint_parts_of_one_file() {
    let size = 64 * 4096;
    for (region, expected) in [
        (Region::Split, 0..64),
        (Region::At { offset_bytes: 8 * 4096, length_bytes: Some(4 * 4096), step_bytes: 8 * 4096 }, 8..36),
    ] {
        let directory = in_memory();
        let write = Operation::Write(transfer(Extent::Bytes(4096), Pattern::Cursor { shared: false }));
        let mut threads =
            ThreadGroup { region, ..keeping("group", mix(&[(1, action(write))]), IoOverrides::default()) };
        threads.threads = 4;
        let mut load = workload(fileset(1, size), threads, Stop::default());
        // A sparse file: only what is written is not zero.
        load.filesets[0].fill = false;
        let blocks = if region == Region::Split { 64 } else { 16 };
        load.phases[0].stop = operations(blocks);
        // Each thread as often as its part has blocks.
        load.phases[0].groups[0].rate_per_second = Some(2000.0);
        let report = flawless(&load, directory.path());
        assert_eq!(report.written_bytes(), blocks * 4096);
        let data = std::fs::read(directory.path().join("data/file0")).expect("it was built");
        let written: Vec<u64> = data
            .chunks(4096)
            .zip(0..)
            .filter(|(block, _)| block.iter().any(|byte| *byte != 0))
            .map(|(_, number)| number)
            .collect();
        assert!(written.iter().all(|number| expected.contains(number)), "{written:?}");
        let in_a_part = |number: &u64| region == Region::Split || (number - 8) % 8 < 4;
        assert!(written.iter().all(in_a_part), "{written:?}");
        assert!(written.len() as u64 >= blocks / 4, "each thread writes its own part: {written:?}");
    }
    let shared = Operation::Read(transfer(Extent::Bytes(4096), Pattern::Cursor { shared: true }));
    let threads = ThreadGroup { region: Region::Split, ..group(2, mix(&[(1, action(shared))])) };
    let refused = try_run(&workload(fileset(1, 65536), threads, operations(1)), in_memory().path(), 1);
    assert!(refused.expect_err("one cursor for all").to_string().contains("part of each file"));
}

#[test]
fn sizes_of_blocks_are_drawn() {
    let drawn = SizeDistribution::Weighted(vec![(4096, 60), (65536, 40)]);
    for (engine, queue_depth) in [(IoEngineKind::Psync, 1), (IoEngineKind::IoUring, 8), (IoEngineKind::Libaio, 8)] {
        for pattern in [
            Pattern::Random { distribution: Distribution::Uniform, align_bytes: 4096 },
            Pattern::Cursor { shared: false },
            Pattern::Cursor { shared: true },
        ] {
            let directory = in_memory();
            let move_one = Transfer { extent: Extent::Bytes(65536), block_bytes: 65536, pattern, fsync: false };
            let one = |operation| Action { blocks: Some(drawn.clone()), ..action(operation) };
            let actions = mix(&[(1, one(Operation::Read(move_one))), (1, one(Operation::Write(move_one)))]);
            let io = IoOverrides { engine: Some(engine), queue_depth: Some(queue_depth), ..IoOverrides::default() };
            let mut load = workload(fileset(1, 16 << 20), keeping("group", actions, io), operations(4000));
            load.data.stamped = true;
            let report = match try_run(&load, directory.path(), 1) {
                Err(LoadError::Engine { .. }) => continue,
                report => report.expect("the engine works"),
            };
            assert!(report.errors.is_empty(), "{pattern:?}: {:?}", report.errors);
            let mean = (report.read_bytes() + report.written_bytes()) as f64 / report.invocations() as f64;
            // A deviation of one block is 30,100 bytes, so of the mean of 4000 of them 476.
            let expected = 0.6 * 4096.0 + 0.4 * 65536.0;
            assert!(
                (mean - expected).abs() < 5.0 * 476.0 + 0.01 * expected,
                "{engine:?} {pattern:?}: {mean} for {expected}"
            );
        }
    }
    let move_two = Transfer { extent: Extent::Bytes(131_072), block_bytes: 65536, ..random_block() };
    let two = Action { blocks: Some(drawn), ..action(Operation::Read(move_two)) };
    let refused =
        try_run(&workload(fileset(1, 1 << 20), group(1, mix(&[(1, two)])), operations(1)), in_memory().path(), 1);
    assert!(refused.expect_err("two random blocks at once").to_string().contains("one block at a time"));
}
