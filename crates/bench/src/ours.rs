//! Loads of the engine.

use crate::bare::Names;
use crate::side::{Measured, Trouble};
use fstone_engine::{Ownership, RunOptions, Unobserved};
use fstone_model::workload::*;
use fstone_model::{LoadReport, Workload};
use std::path::Path;
use std::time::Duration;

pub(crate) fn fileset(files: u64, size: u64, existing: Existing) -> Fileset {
    Fileset {
        build_block_bytes: 1 << 20,
        existing,
        ..Fileset::new("files", Amount::Files(files), SizeDistribution::Fixed(size))
    }
}

pub(crate) fn action(operation: Operation, choice: FileChoice) -> Action {
    Action { choice, ..Action::new("operation", operation, Some(0)) }
}

pub(crate) fn random(block_bytes: u64) -> Transfer {
    Transfer {
        extent: Extent::Bytes(block_bytes),
        block_bytes,
        pattern: Pattern::Random { distribution: Distribution::Uniform, align_bytes: block_bytes },
        fsync: false,
    }
}

pub(crate) fn workload(fileset: Fileset, action: Action, threads: u32, open: OpenPolicy, stop: Stop) -> Workload {
    let actions = Actions::Mix(vec![Weighted { weight: 1, action }]);
    let group = ThreadGroup { open, ..ThreadGroup::new("group", threads, actions) };
    Workload {
        final_sync: FinalSync::None,
        ..Workload::new("bench", vec![fileset], vec![Phase::new("main", vec![group], stop)])
    }
}

pub(crate) fn for_time(time: Duration) -> Stop {
    Stop { time: Some(time), ..Stop::default() }
}

/// Runs it; any error is a failure here. One so short that the host gave it no processor in its time is made again.
pub(crate) fn run(workload: &Workload, directory: &Path) -> Result<LoadReport, Trouble> {
    for _ in 0..10 {
        let report = run_once(workload, directory)?;
        if report.invocations() > 0 {
            return Ok(report);
        }
    }
    Err(Trouble::failed("no operation was performed, ten times over"))
}

fn run_once(workload: &Workload, directory: &Path) -> Result<LoadReport, Trouble> {
    let options = RunOptions {
        seed: 1,
        cancel: &crate::signals::INTERRUPTED,
        observer: &Unobserved,
        measure_null: false,
        ownership: Ownership::Own,
    };
    let report = fstone_engine::run(workload, directory, &options).map_err(Trouble::failed)?;
    match report.errors.first() {
        Some(error) => Err(Trouble::Failed(format!("{} {}: {}", error.call, error.path, error.text))),
        None => Ok(report),
    }
}

/// Operations per second from the load's begin to the end of its last operation, as the bare loops count. What comes after
/// that in the load's own interval, closing the files that were kept open, is in none of them.
pub(crate) fn per_second(report: &LoadReport) -> f64 {
    report.invocations() as f64 * 1e9 / report.last_done_ns.max(1) as f64
}

pub(crate) fn mean_latency_ns(report: &LoadReport) -> Measured {
    let mean = report.operations.first().and_then(|operation| operation.latency.mean_ns());
    mean.ok_or_else(|| Trouble::failed("no operation was performed"))
}

/// CPU time per operation of a load on the null engine, in nanoseconds.
pub(crate) fn cpu_per_operation(report: &LoadReport) -> Measured {
    report.audit.null_ns_per_operation.ok_or_else(|| Trouble::failed("no operation was performed"))
}

pub(crate) fn on_one_file(size: u64, operation: Operation, threads: u32, io: IoSettings, time: Duration) -> Workload {
    let files = fileset(1, size, Existing::Require);
    let action = action(operation, FileChoice::Uniform);
    let mut workload = workload(files, action, threads, OpenPolicy::KeepOpen, for_time(time));
    workload.io = io;
    workload
}

/// Something done to every file once; per second. Creating begins with none, the others need them there.
pub(crate) fn names(directory: &Path, count: u64, what: Names, io: IoSettings) -> Measured {
    let (operation, existing) = match what {
        Names::Create => (Operation::Create { block_bytes: 0, fsync: false }, Existing::Rebuild),
        Names::Stat => (Operation::Stat, Existing::Require),
        Names::Unlink => (Operation::Unlink, Existing::Require),
    };
    let mut files = fileset(count, 0, existing);
    if what == Names::Create {
        files.preallocated = 0.0;
    }
    let stop = Stop { once_through: true, ..Stop::default() };
    let mut workload = workload(files, action(operation, FileChoice::RoundRobin), 1, OpenPolicy::PerOperation, stop);
    workload.io = io;
    let report = run(&workload, directory)?;
    if report.invocations() != count {
        return Err(Trouble::Failed(format!("{} of {count} files", report.invocations())));
    }
    Ok(per_second(&report))
}
