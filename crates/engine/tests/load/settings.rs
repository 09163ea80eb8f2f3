//! I/O settings are done: the kernel sees them.

use crate::faults::in_a_process_of_its_own;
use crate::support::*;
use fstone_model::workload::*;
use fstone_model::{LoadReport, Workload};
use rustix::io::Errno;
use std::path::Path;
use std::process::Command;

const WHICH: &str = "FSTONE_TEST_SETTINGS";
const WRITES: u64 = 20;

fn written(io: IoSettings, operation: Operation) -> Workload {
    let group = ThreadGroup { open: OpenPolicy::KeepOpen, ..group(1, mix(&[(1, action(operation))])) };
    let mut load = workload(fileset(1, 1 << 20), group, operations(WRITES));
    (load.io, load.final_sync) = (io, FinalSync::None);
    load
}

fn mapped() -> Operation {
    Operation::MmapWrite { transfer: random_block(), msync: false }
}

fn io(engine: IoEngineKind) -> IoSettings {
    IoSettings { engine, ..IoSettings::default() }
}

/// A group beside others that change names, so that its threads share descriptors.
fn shared(threads: u32, region: Region) -> Workload {
    let reads = || ThreadGroup {
        open: OpenPolicy::KeepOpen,
        stop: operations(WRITES),
        ..group(threads, mix(&[(1, action(Operation::Read(random_block())))]))
    };
    let mut load = workload(fileset(2, 1 << 20), reads(), Stop::default());
    load.filesets.push(Fileset { name: "other".into(), directory: "other".into(), ..fileset(10, 4096) });
    let unlinks = Action { fileset: Some(1), ..action(Operation::Unlink) };
    let advised = ThreadGroup { name: "advised".into(), invalidate: true, advice: Advice::Random, region, ..reads() };
    let unlinking = ThreadGroup { name: "unlinks".into(), stop: operations(5), ..group(1, mix(&[(1, unlinks)])) };
    load.phases[0].groups.extend([advised, unlinking]);
    load
}

/// The loads that strace looks at, and what it must see: a call with this in its line, so many times.
fn seen() -> Vec<(&'static str, Workload, &'static str, &'static str, u64)> {
    use IoEngineKind::{IoUring, Libaio, Mmap, Psync};
    let write = || Operation::Write(random_block());
    let dsync = |engine| IoSettings { sync: OpenSync::Dsync, ..io(engine) };
    let sync = |engine| IoSettings { sync: OpenSync::Sync, ..io(engine) };
    let uncached = |engine| IoSettings { uncached: true, ..io(engine) };
    let no_wait = |engine| IoSettings { no_wait: true, ..io(engine) };
    let polled = IoSettings { polled: true, direct: true, ..io(Psync) };
    let atomic = |engine| IoSettings { atomic: true, direct: true, ..io(engine) };
    let ring = IoSettings { engine: IoUring, ..polled };
    let halves = Region::At { offset_bytes: 0, length_bytes: Some(1 << 19), step_bytes: 1 << 19 };
    vec![
        ("psync dsync", written(dsync(Psync), write()), "open", "O_DSYNC", 1),
        ("psync sync", written(sync(Psync), write()), "open", "O_SYNC", 1),
        ("io_uring dsync", written(dsync(IoUring), write()), "open", "O_DSYNC", 1),
        ("libaio sync", written(sync(Libaio), write()), "open", "O_SYNC", 1),
        ("mmap dsync", written(dsync(Mmap), write()), "msync", "MS_SYNC", WRITES),
        ("mmap sync", written(sync(Mmap), write()), "fsync", "", WRITES),
        ("mapped dsync", written(dsync(Psync), mapped()), "msync", "MS_SYNC", WRITES),
        ("mapped sync", written(sync(Psync), mapped()), "fsync", "", WRITES),
        ("psync uncached", written(uncached(Psync), write()), "pwritev2", "0x80", 1),
        ("psync no-wait", written(no_wait(Psync), write()), "pwritev2", "RWF_NOWAIT", 1),
        ("psync polled", written(polled, write()), "pwritev2", "RWF_HIPRI", 1),
        ("psync atomic", written(atomic(Psync), write()), "pwritev2", "0x40", 1),
        ("libaio no-wait", written(no_wait(Libaio), write()), "io_submit", "RWF_NOWAIT", 1),
        ("libaio uncached", written(uncached(Libaio), write()), "io_submit", "0x80", 1),
        ("libaio atomic", written(atomic(Libaio), write()), "io_submit", "0x40", 1),
        ("shared, advised", shared(1, Region::Whole), "fadvise64", "POSIX_FADV_RANDOM", 2),
        ("shared, dropped", shared(1, Region::Whole), "fadvise64", "POSIX_FADV_DONTNEED", 2),
        ("shared, second region", shared(2, halves), "fadvise64", "524288, 524288, POSIX_FADV_DONTNEED", 2),
        ("io_uring polled", written(ring, write()), "io_uring_setup", "IORING_SETUP_IOPOLL", 1),
    ]
}

#[test]
#[ignore = "run under strace by the test below"]
fn one_of_them() {
    let Ok(which) = std::env::var(WHICH) else { return };
    let (_, mut load, ..) = seen().into_iter().find(|(name, ..)| *name == which).expect("it is one of them");
    // What the filesystem or the kernel has not is an error of the load, and asked for all the same.
    load.on_error = ErrorPolicy::Continue;
    let _ = try_run(&load, on_disk().path(), 1);
}

#[test]
fn strace_sees_every_setting() {
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("skipped: there is no strace");
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let calls = place.path().join("calls");
    for (name, _, call, what, least) in seen() {
        let (which, out) = (format!("{WHICH}={name}"), calls.to_string_lossy().into_owned());
        in_a_process_of_its_own(
            "settings::one_of_them",
            &["env", &which, "strace", "-f", "-qq", "-v", "-s0", "-o", &out],
        );
        let text = std::fs::read_to_string(&calls).unwrap_or_default();
        if text.is_empty() {
            eprintln!("skipped: strace wrote nothing");
            return;
        }
        let lines = text.lines().filter(|line| line.contains(call) && line.contains(what)).count() as u64;
        // Newer ones have the flags' names.
        let named = match what {
            "0x80" => "RWF_DONTCACHE",
            "0x40" => "RWF_ATOMIC",
            _ => "-",
        };
        let named = text.lines().filter(|line| line.contains(call) && line.contains(named)).count() as u64;
        assert!(lines.max(named) >= least, "{name}: {call} with {what} {lines} times");
    }
}

fn errors(io: IoSettings, operation: Operation, directory: &Path) -> LoadReport {
    let mut load = written(io, operation);
    load.on_error = ErrorPolicy::Continue;
    // Without reading ahead, so that each block that is not there is one of its own.
    (load.phases[0].groups[0].invalidate, load.phases[0].groups[0].advice) = (true, Advice::Random);
    crate::support::load(&load, directory)
}

/// What strace does not see in a ring: tmpfs refuses both flags, which no filesystem does that was not asked.
#[test]
fn flags_reach_the_kernel_by_every_engine() {
    let memory = in_memory();
    for (engine, queue_depth) in
        [(IoEngineKind::Psync, 1), (IoEngineKind::IoUring, 1), (IoEngineKind::IoUring, 8), (IoEngineKind::Libaio, 8)]
    {
        let atomic = IoSettings { atomic: true, direct: true, queue_depth, ..io(engine) };
        let uncached = IoSettings { uncached: true, queue_depth, ..io(engine) };
        for io in [atomic, uncached] {
            let report = errors(io, Operation::Write(random_block()), memory.path());
            assert_eq!(report.operations[0].errors, WRITES, "{io:?}: {:?}", report.errors);
        }
        let usual = IoSettings { direct: false, ..IoSettings { atomic: false, ..atomic } };
        assert_eq!(errors(usual, Operation::Write(random_block()), memory.path()).operations[0].errors, 0);
    }
}

#[test]
fn what_would_have_to_wait_fails_instead() {
    let disk = on_disk();
    for (engine, queue_depth) in [(IoEngineKind::Psync, 1), (IoEngineKind::IoUring, 8), (IoEngineKind::Libaio, 8)] {
        let no_wait = IoSettings { no_wait: true, queue_depth, ..io(engine) };
        // A large folio that whoever wrote it back still holds is not dropped: then nothing has to wait.
        let cold = (0..5).any(|_| {
            let report = errors(no_wait, Operation::Read(random_block()), disk.path());
            let waits = |text: &str| text.starts_with("EAGAIN") || text.starts_with("EOPNOTSUPP");
            report.errors.iter().any(|error| waits(&error.text))
        });
        assert!(cold, "{engine:?}");
    }
}

/// As by the call that gets what is there and then asks for the rest.
#[test]
fn what_is_there_in_part_would_have_to_wait() {
    let disk = on_disk();
    for (engine, queue_depth) in [(IoEngineKind::Psync, 1), (IoEngineKind::IoUring, 4), (IoEngineKind::Libaio, 4)] {
        let mut load = written(
            io(IoEngineKind::Psync),
            Operation::Read(transfer(Extent::Bytes(4096), Pattern::Stride { gap_bytes: 60 << 10, run: 1 })),
        );
        (load.phases[0].measured, load.phases[0].stop) = (false, operations(16));
        let warm = &mut load.phases[0].groups[0];
        (warm.invalidate, warm.advice) = (true, Advice::Random);
        let block =
            Transfer { block_bytes: 64 << 10, ..transfer(Extent::Bytes(64 << 10), Pattern::Cursor { shared: false }) };
        let reads = ThreadGroup {
            open: OpenPolicy::KeepOpen,
            advice: Advice::Random,
            io: IoOverrides {
                engine: Some(engine),
                queue_depth: Some(queue_depth),
                no_wait: Some(true),
                ..IoOverrides::default()
            },
            ..group(1, mix(&[(1, action(Operation::Read(block)))]))
        };
        load.phases.push(Phase { name: "cold".into(), ..phase(vec![reads], operations(16)) });
        load.on_error = ErrorPolicy::Continue;
        let report = crate::support::load(&load, disk.path());
        let waits = |text: &str| text.starts_with("EAGAIN") || text.starts_with("EOPNOTSUPP");
        assert!(report.errors.iter().all(|error| waits(&error.text)), "{engine:?}: {:?}", report.errors);
    }
}

#[test]
fn what_the_kernel_or_the_filesystem_lacks_is_said() {
    let uncached = IoSettings { uncached: true, ..io(IoEngineKind::Psync) };
    let mut load = written(uncached, Operation::Write(random_block()));
    load.on_error = ErrorPolicy::Continue;
    // tmpfs has no RWF_DONTCACHE on any kernel.
    let place = tempfile::tempdir_in("/dev/shm").expect("there is shared memory");
    let report = try_run(&load, place.path(), 1).expect("errors are counted");
    let error = &report.errors[0];
    assert_eq!(error.errno, Errno::OPNOTSUPP.raw_os_error());
    assert!(error.text.contains("uncached = true needs Linux 6.14"), "{}", error.text);
}
