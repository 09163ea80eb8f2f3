//! Workloads put together, and places to run them.

use fstone_engine::{LoadError, Observer, Ownership, RunOptions, Unobserved, Verification, run, run_verified};
use fstone_model::workload::*;
use fstone_model::{LoadReport, Workload};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) fn on_disk() -> TempDir {
    tempfile::Builder::new().prefix("fstone-engine-").tempdir().expect("a temporary directory")
}

pub(crate) fn in_memory() -> TempDir {
    tempfile::Builder::new().prefix("fstone-engine-").tempdir_in("/dev/shm").expect("a directory in /dev/shm")
}

pub(crate) fn fileset(files: u64, size: u64) -> Fileset {
    Fileset { directory: "data".into(), ..Fileset::new("files", Amount::Files(files), SizeDistribution::Fixed(size)) }
}

pub(crate) fn action(operation: Operation) -> Action {
    let name = format!("{operation:?}").split([' ', '(']).next().unwrap_or_default().to_lowercase();
    Action::new(name, operation, Some(0))
}

/// A transfer of so many bytes in blocks of 4 KiB.
pub(crate) fn transfer(extent: Extent, pattern: Pattern) -> Transfer {
    Transfer { extent, block_bytes: 4096, pattern, fsync: false }
}

/// Blocks of 4 KiB at random places.
pub(crate) fn random_block() -> Transfer {
    transfer(Extent::Bytes(4096), Pattern::Random { distribution: Distribution::Uniform, align_bytes: 4096 })
}

pub(crate) fn whole() -> Transfer {
    transfer(Extent::Whole, Pattern::FromStart)
}

pub(crate) fn mix(actions: &[(u32, Action)]) -> Actions {
    Actions::Mix(actions.iter().map(|(weight, action)| Weighted { weight: *weight, action: action.clone() }).collect())
}

pub(crate) fn group(threads: u32, actions: Actions) -> ThreadGroup {
    ThreadGroup::new("group", threads, actions)
}

pub(crate) fn operations(count: u64) -> Stop {
    Stop { operations: Some(count), ..Stop::default() }
}

pub(crate) fn milliseconds(time: u64) -> Stop {
    Stop { time: Some(Duration::from_millis(time)), ..Stop::default() }
}

pub(crate) fn once() -> Stop {
    Stop { once_through: true, ..Stop::default() }
}

pub(crate) fn phase(groups: Vec<ThreadGroup>, stop: Stop) -> Phase {
    Phase::new("main", groups, stop)
}

pub(crate) fn workload(fileset: Fileset, group: ThreadGroup, stop: Stop) -> Workload {
    Workload {
        series_interval: Duration::from_millis(100),
        ..Workload::new("test", vec![fileset], vec![phase(vec![group], stop)])
    }
}

pub(crate) fn try_run(workload: &Workload, directory: &Path, seed: u64) -> Result<LoadReport, LoadError> {
    let cancel = AtomicBool::new(false);
    run(
        workload,
        directory,
        &RunOptions { seed, cancel: &cancel, observer: &Unobserved, measure_null: false, ownership: Ownership::Marked },
    )
}

pub(crate) fn try_run_verified(
    workload: &Workload,
    directory: &Path,
    seed: u64,
) -> Result<(LoadReport, Verification), LoadError> {
    let cancel = AtomicBool::new(false);
    let ownership = Ownership::Marked;
    let options = RunOptions { seed, cancel: &cancel, observer: &Unobserved, measure_null: false, ownership };
    run_verified(workload, directory, &options)
}

/// Does something when all threads of the first measured phase stand ready, and when the measured interval has ended.
pub(crate) struct Around<'a> {
    pub(crate) begin: &'a (dyn Fn() + Sync),
    pub(crate) end: &'a (dyn Fn() + Sync),
}

impl Observer for Around<'_> {
    fn measured_begin(&self) {
        (self.begin)();
    }

    fn measured_end(&self) {
        (self.end)();
    }
}

pub(crate) fn verified_around(
    workload: &Workload,
    directory: &Path,
    around: &Around<'_>,
) -> (LoadReport, Verification) {
    let cancel = AtomicBool::new(false);
    let ownership = Ownership::Marked;
    let options = RunOptions { seed: 1, cancel: &cancel, observer: around, measure_null: false, ownership };
    run_verified(workload, directory, &options).expect("the engine works")
}

/// Runs it and checks what must hold of every report.
pub(crate) fn load(workload: &Workload, directory: &Path) -> LoadReport {
    let report = try_run(workload, directory, 1).expect("the engine works");
    for operation in &report.operations {
        assert_eq!(operation.latency.count(), operation.invocations, "{}", operation.name);
    }
    let in_series: u64 = report.series.iter().map(|point| point.operations).sum();
    assert_eq!(in_series, report.invocations());
    assert_eq!(report.series.iter().map(|point| point.latency.count()).sum::<u64>(), report.invocations());
    let by_thread: u64 = report.per_thread.iter().map(|thread| thread.latency.count()).sum();
    assert!(by_thread >= report.invocations(), "{by_thread}");
    assert_eq!(report.elapsed_ns, report.running_ns + report.sync_ns);
    assert!(report.first_done_ns <= report.last_done_ns && report.last_done_ns <= report.running_ns);
    report
}

pub(crate) fn flawless(workload: &Workload, directory: &Path) -> LoadReport {
    let report = load(workload, directory);
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    report
}

/// Files below a directory but for fstone's marks, with their sizes.
pub(crate) fn files_below(directory: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.ends_with(".fstone") {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            found.extend(files_below(&path));
        } else {
            let size = path.symlink_metadata().expect("metadata").len();
            found.push((path.to_string_lossy().into_owned(), size));
        }
    }
    found.sort();
    found
}
