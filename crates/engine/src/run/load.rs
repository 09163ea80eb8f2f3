//! What a caller can have done: a load run, or its files made.

use super::null;
use super::running::Running;
use super::verify::Verification;
use crate::error::LoadError;
use crate::options::{Ownership, RunOptions};
use crate::plan::{check, check_device};
use fstone_model::workload::IoEngineKind;
use fstone_model::{LoadReport, Workload};
use std::path::Path;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prepared {
    pub files: u64,
    pub bytes: u64,
    /// Bytes of these that were written now.
    pub written_bytes: u64,
    /// Time it took, making them durable included.
    pub elapsed: Duration,
}

/// Runs a workload in a directory.
///
/// # Errors
/// Only when the engine itself cannot work; what the load's own operations met is in [`LoadReport::errors`], and when
/// that ended the load early, [`LoadReport::warnings`] says so.
pub fn run(workload: &Workload, directory: &Path, options: &RunOptions<'_>) -> Result<LoadReport, LoadError> {
    let (running, null_ns) = ended(workload, directory, options)?;
    let interrupted = running.interrupted;
    let report = running.report(null_ns);
    if interrupted { Err(LoadError::Interrupted(Some(Box::new(report)))) } else { Ok(report) }
}

/// Runs a workload of stamped data and reads all of its files back, to see whether each byte is what was written last.
///
/// # Errors
/// As [`run`], and when the workload does not stamp its data. Damage is no error of this function but its result.
pub fn run_verified(
    workload: &Workload,
    directory: &Path,
    options: &RunOptions<'_>,
) -> Result<(LoadReport, Verification), LoadError> {
    if !workload.data.stamped || workload.io.engine == IoEngineKind::Null {
        return Err(LoadError::Unsupported { what: "does not stamp its data, so it cannot be verified".into() });
    }
    let (running, null_ns) = ended(workload, directory, options)?;
    let found = if running.interrupted { Err(LoadError::Interrupted(None)) } else { running.verify() };
    if let Err(LoadError::Interrupted(_)) = found {
        return Err(LoadError::Interrupted(Some(Box::new(running.report(null_ns)))));
    }
    let found = found?;
    Ok((running.report(null_ns), found))
}

fn checked(workload: &Workload, options: &RunOptions<'_>) -> Result<(), LoadError> {
    check(workload)?;
    if options.ownership == Ownership::Device { check_device(workload) } else { Ok(()) }
}

fn ended<'a>(
    workload: &'a Workload,
    directory: &'a Path,
    options: &'a RunOptions<'_>,
) -> Result<(Running<'a>, Option<f64>), LoadError> {
    checked(workload, options)?;
    let mut running = Running::new(workload, directory, options)?;
    let mut null_ns = None;
    let ended = running.phases();
    if ended.is_ok() && !running.interrupted && options.measure_null && workload.io.engine != IoEngineKind::Null {
        null_ns = null::cost_per_operation(workload, running.pretended.take(), options)?;
    }
    ended?;
    if !running.interrupted && workload.data.stamped && workload.io.engine != IoEngineKind::Null {
        running.look_for_files();
    }
    Ok((running, null_ns))
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    pub directories: u64,
    pub elapsed: Duration,
}

/// Removes the directories of one of a workload's filesets, given by its index, which a load has emptied. Of directories
/// that all ranks have in common rank 0 does it. A directory that is not empty is an error, and stays.
pub fn remove_directories(
    workload: &Workload,
    directory: &Path,
    options: &RunOptions<'_>,
    fileset: usize,
) -> Result<Removed, LoadError> {
    checked(workload, options)?;
    let mut running = Running::new(workload, directory, options)?;
    let first = options.observer.peers().is_none_or(|peers| peers.rank() == 0);
    let started = Instant::now();
    let own =
        workload.filesets.get(fileset).is_some_and(|spec| !(spec.has_common_directories() || spec.ranks.is_common()));
    let directories = if first || own { running.remove_directories(fileset)? } else { 0 };
    Ok(Removed { directories, elapsed: started.elapsed() })
}

/// Builds the filesets of a workload and makes them durable.
///
/// # Errors
/// When the directory cannot be used, a fileset cannot be built, or on cancellation.
pub fn prepare(workload: &Workload, directory: &Path, options: &RunOptions<'_>) -> Result<Prepared, LoadError> {
    checked(workload, options)?;
    let started = Instant::now();
    let mut running = Running::new(workload, directory, options)?;
    running.prepares = true;
    running.build(&|_| true)?;
    Ok(Prepared {
        written_bytes: running.written_bytes,
        files: running.files.iter().map(|files| files.table.live()).sum(),
        bytes: running.files.iter().map(|files| files.table.total_bytes()).sum(),
        elapsed: started.elapsed(),
    })
}
