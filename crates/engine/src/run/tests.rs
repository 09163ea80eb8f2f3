//! What loads measure, on engines of which each call takes as long as a test wants, and which see the order of calls.

use super::names::{collector_of, names};
use super::phase::ready;
use super::running::Running;
use crate::io::plain::plain;
use crate::io::{Completion, Direction, Fd, Io, Result, Setup, SetupError, kernel};
use crate::options::{Ownership, RunOptions, Unobserved};
use crate::worker::Load;
use fstone_model::load::{ErrorReport, OperationReport};
use fstone_model::workload::*;
use rustix::fd::BorrowedFd;
use rustix::fs::OFlags;
use std::collections::VecDeque;
use std::ffi::CStr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

mod distributions;
mod queues;
mod tours;

fn group(operation: Operation) -> ThreadGroup {
    let action = Action::new("operation", operation, Some(0));
    let actions = Actions::Mix(vec![Weighted { weight: 1, action }]);
    ThreadGroup { open: OpenPolicy::KeepOpen, ..ThreadGroup::new("group", 1, actions) }
}

fn block() -> Transfer {
    let pattern = Pattern::Random { distribution: Distribution::Uniform, align_bytes: 4096 };
    Transfer { extent: Extent::Bytes(4096), block_bytes: 4096, pattern, fsync: false }
}

fn workload(files: u64, groups: Vec<ThreadGroup>, stop: Stop, io: IoSettings) -> fstone_model::Workload {
    fstone_model::Workload {
        io,
        final_sync: FinalSync::None,
        series_interval: Duration::from_millis(10),
        ..fstone_model::Workload::new(
            "test",
            vec![crate::tests_support::fileset(files)],
            vec![Phase::new("main", groups, stop)],
        )
    }
}

fn carried_out(
    workload: &fstone_model::Workload,
    directory: &Path,
    work: impl FnOnce(&Load<'_>),
) -> (Vec<OperationReport>, Vec<ErrorReport>) {
    let cancel = AtomicBool::new(false);
    let ownership = Ownership::Own;
    let options = RunOptions { seed: 1, cancel: &cancel, observer: &Unobserved, measure_null: false, ownership };
    let mut running = Running::new(workload, directory, &options).expect("a sound workload");
    running.build(&|_| true).expect("room");
    let phase = &workload.phases[0];
    let groups: Vec<&ThreadGroup> = phase.groups.iter().collect();
    let collector = collector_of(&groups);
    let carried = running.with_load(0, phase, &collector, 0, |load| {
        load.start.store(load.clock.now(), Ordering::Relaxed);
        work(load);
        Ok(())
    });
    carried.expect("a phase can be made ready");
    let collected = collector.finish(&names(std::iter::once(phase), &[]), Duration::from_millis(10));
    (collected.operations, collected.errors)
}

fn drive<E: Io>(load: &Load<'_>, group: usize) {
    let mut worker = ready::<E>(load, &load.phase.groups[group], 0).expect("nothing to be set up");
    worker.drive();
    worker.close_kept();
}

fn null(queue_depth: u32) -> IoSettings {
    IoSettings { engine: IoEngineKind::Null, queue_depth, ..IoSettings::default() }
}

/// Completes one request after the other, each in this time, and sees what is in flight when files are made durable.
struct InTurn {
    memory: Vec<u8>,
    queued: VecDeque<(u32, usize)>,
}

const TURN: Duration = Duration::from_millis(2);
static FSYNCS: AtomicU32 = AtomicU32::new(0);
static FSYNCS_TOO_EARLY: AtomicU32 = AtomicU32::new(0);

impl Io for InTurn {
    const REAL: bool = false;

    plain! {
        open close truncate fdatasync advise syncfs fallocate stat unlink rename link symlink mkdir rmdir
        chmod utimens setxattr getxattr copy_file_range reflink list
    }

    fn new(setup: Setup) -> std::result::Result<Self, SetupError> {
        Ok(Self { memory: vec![0; setup.block_bytes], queued: VecDeque::new() })
    }

    fn read(&mut self, _: Fd, buffer: &mut [u8], _: u64) -> Result<usize> {
        Ok(buffer.len())
    }

    fn write(&mut self, _: Fd, data: &[u8], _: u64) -> Result<usize> {
        Ok(data.len())
    }

    fn slot(&mut self, _: u32) -> &mut [u8] {
        &mut self.memory
    }

    fn push(&mut self, slot: u32, _: Direction, _: Fd, length: usize, _: u64) -> Result<()> {
        self.queued.push_back((slot, length));
        Ok(())
    }

    fn push_fsync(&mut self, slot: u32, _: Fd, _: bool) -> Result<()> {
        self.queued.push_back((slot, 0));
        Ok(())
    }

    fn submit(&mut self) -> Result<()> {
        Ok(())
    }

    fn complete(&mut self, least: u32, _: Option<Duration>, each: impl FnMut(Completion)) -> Result<()> {
        std::thread::sleep(TURN * least);
        let done = self.queued.drain(..least as usize);
        done.map(|(slot, length)| Completion { slot, outcome: Ok(length) }).for_each(each);
        Ok(())
    }

    fn fsync(&mut self, _: Fd) -> Result<()> {
        FSYNCS.fetch_add(1, Ordering::Relaxed);
        FSYNCS_TOO_EARLY.fetch_add(u32::from(!self.queued.is_empty()), Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn requests_of_a_batch_have_times_of_their_own() {
    let stop = Stop { operations: Some(32), ..Stop::default() };
    let load = workload(1, vec![group(Operation::Read(block()))], stop, null(32));
    let (operations, _) = carried_out(&load, Path::new("."), |load| drive::<InTurn>(load, 0));
    let latency = &operations[0].latency;
    assert_eq!(latency.count(), 32);
    // The first took one turn, the last 32.
    assert!(latency.min_ns() * 8 < latency.max_ns(), "{} {}", latency.min_ns(), latency.max_ns());
}

#[test]
fn fsyncs_of_a_queue_come_after_the_writes_that_they_count() {
    let mut writes = group(Operation::Write(block()));
    writes.fsync = FsyncPolicy { every_operations: 5, all_files: true, ..FsyncPolicy::default() };
    let load = workload(2, vec![writes], Stop { operations: Some(60), ..Stop::default() }, null(8));
    carried_out(&load, Path::new("."), |load| drive::<InTurn>(load, 0));
    let (all, early) = (FSYNCS.load(Ordering::Relaxed), FSYNCS_TOO_EARLY.load(Ordering::Relaxed));
    assert!(all >= 11 * 2, "{all}: two files, every five writes");
    assert_eq!(early, 0, "of {all}");
}

/// Opens slowly, so that others come in between the making of a name and its use.
struct Tardy;

const TARDY: Duration = Duration::from_micros(200);

impl Io for Tardy {
    const REAL: bool = true;

    plain! {
        close truncate fsync fdatasync advise syncfs fallocate stat unlink rename link symlink mkdir rmdir
        chmod utimens setxattr copy_file_range reflink list
    }

    fn new(_: Setup) -> std::result::Result<Self, SetupError> {
        Ok(Self)
    }

    fn read(&mut self, fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
        kernel::read(fd, buffer, offset)
    }

    fn write(&mut self, fd: Fd, data: &[u8], offset: u64) -> Result<usize> {
        kernel::write(fd, data, offset)
    }

    fn open(&mut self, directory: BorrowedFd<'_>, path: &CStr, flags: OFlags) -> Result<Fd> {
        std::thread::sleep(TARDY);
        kernel::open(directory, path, flags)
    }

    fn getxattr(&mut self, _: Fd, _: &mut [u8]) -> Result<usize> {
        Ok(0)
    }
}

#[test]
fn files_that_are_kept_open_are_open_before_the_first_operation() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for operation in [Operation::Getxattr, Operation::Read(block())] {
        let mut keeps = group(operation);
        if let Actions::Mix(actions) = &mut keeps.actions {
            actions[0].action.choice = FileChoice::RoundRobin;
        }
        let stop = Stop { operations: Some(20), ..Stop::default() };
        let load = workload(20, vec![keeps], stop, IoSettings::default());
        let (operations, errors) = carried_out(&load, directory.path(), |load| drive::<Tardy>(load, 0));
        assert!(errors.is_empty() && operations[0].invocations == 20, "{errors:?}");
        let least = Duration::from_nanos(operations[0].latency.min_ns());
        assert!(least < TARDY, "{least:?}");
    }
}

#[test]
fn fsyncs_of_the_policy_hold_their_file() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for all_files in [false, true] {
        let mut writes = group(Operation::Write(block()));
        writes.open = OpenPolicy::PerOperation;
        writes.fsync = FsyncPolicy { every_operations: 1, all_files, ..FsyncPolicy::default() };
        writes.stop.operations = Some(200);
        let renames = ThreadGroup { open: OpenPolicy::PerOperation, ..group(Operation::Rename) };
        let load = workload(2, vec![writes, renames], Stop::default(), IoSettings::default());
        let (operations, errors) = carried_out(&load, directory.path(), |load| {
            std::thread::scope(|scope| {
                scope.spawn(|| drive::<Tardy>(load, 1));
                drive::<Tardy>(load, 0);
                load.phase.limits.ended.store(true, Ordering::Relaxed);
            });
        });
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(operations[0].invocations, 200);
        assert!(operations[1].invocations > 0);
    }
}

struct Dropping;

const DROP: Duration = Duration::from_millis(5);

impl Io for Dropping {
    const REAL: bool = false;

    plain! {
        open close truncate fsync fdatasync syncfs fallocate stat unlink rename link symlink mkdir rmdir
        chmod utimens setxattr getxattr copy_file_range reflink list
    }

    fn new(_: Setup) -> std::result::Result<Self, SetupError> {
        Ok(Self)
    }

    fn read(&mut self, _: Fd, buffer: &mut [u8], _: u64) -> Result<usize> {
        Ok(buffer.len())
    }

    fn write(&mut self, _: Fd, data: &[u8], _: u64) -> Result<usize> {
        Ok(data.len())
    }

    fn advise(&mut self, _: Fd, _: (u64, u64), _: rustix::fs::Advice) -> Result<()> {
        std::thread::sleep(DROP);
        Ok(())
    }
}

#[test]
fn dropping_what_is_cached_is_in_no_latency() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for operation in [Operation::OpenClose, Operation::Read(block())] {
        let mut opens = group(operation);
        (opens.open, opens.invalidate) = (OpenPolicy::PerOperation, true);
        let stop = Stop { operations: Some(10), ..Stop::default() };
        let load = workload(1, vec![opens], stop, IoSettings::default());
        let (operations, errors) = carried_out(&load, directory.path(), |load| drive::<Dropping>(load, 0));
        assert!(errors.is_empty() && operations[0].invocations == 10, "{errors:?}");
        let least = Duration::from_nanos(operations[0].latency.min_ns());
        assert!(least < DROP / 2, "{least:?}");
    }
}

/// All threads hand over the points of the series at the same moments and wait for each other, which no operation has done.
#[test]
fn handing_over_is_in_no_latency() {
    const HELD: Duration = Duration::from_secs(1);
    let stop = Stop { time: Some(HELD * 2), ..Stop::default() };
    let load = workload(1, vec![group(Operation::Fsync)], stop, null(1));
    let (operations, _) = carried_out(&load, Path::new("."), |load| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(HELD / 4);
                let held = load.collector.held();
                std::thread::sleep(HELD);
                drop(held);
            });
            drive::<crate::io::Null>(load, 0);
        });
    });
    let longest = Duration::from_nanos(operations[0].latency.max_ns());
    assert!(longest < HELD / 2, "{longest:?}");
}
