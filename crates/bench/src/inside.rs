//! Measurements that need a process of their own: what matters is the memory of the whole process.

use crate::ours;
use crate::side::{Measured, Trouble};
use fstone_model::workload::*;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Runs one of [`main`]'s measurements in a process of its own.
pub(crate) fn measure(what: &str, amount: u64, directory: &Path) -> Measured {
    let own = std::env::current_exe().map_err(Trouble::failed)?;
    let directory = directory.to_string_lossy();
    let output = crate::place::command(&own.to_string_lossy(), &["--inside", what, &amount.to_string(), &directory])?;
    output.trim().parse().map_err(|_| Trouble::Failed(format!("{what} said {output:?}")))
}

/// `WHAT AMOUNT DIRECTORY`; prints one number.
pub(crate) fn main(mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let (what, amount) = (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default());
    let directory = arguments.next().unwrap_or_default();
    let result = match (what.as_str(), amount.parse()) {
        ("bytes-per-file", Ok(files)) => bytes_per_file(files),
        ("threads-memory", Ok(threads)) => self::threads(threads, Path::new(&directory)).map(|(memory, _)| memory),
        ("threads-overrun", Ok(threads)) => self::threads(threads, Path::new(&directory)).map(|(_, overrun)| overrun),
        _ => Err(Trouble::Failed(format!("unknown measurement {what:?}"))),
    };
    match result {
        Ok(value) => {
            println!("{value}");
            ExitCode::SUCCESS
        }
        Err(trouble) => {
            eprintln!("{trouble:?}");
            ExitCode::FAILURE
        }
    }
}

/// A field of /proc/self/status, in bytes.
fn memory(field: &str) -> Result<f64, Trouble> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(Trouble::failed)?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|rest| rest.trim_start_matches(':').split_whitespace().next()?.parse::<f64>().ok());
    kib.map(|kib| kib * 1024.0).ok_or_else(|| Trouble::Failed(format!("/proc/self/status has no {field}")))
}

/// Peak memory of a fileset of so many files, half of them deleted and made again, per file, less what the same load
/// takes on a thousand files.
fn bytes_per_file(files: u64) -> Measured {
    let churn = |files: u64| -> Result<f64, Trouble> {
        let null = IoSettings { engine: IoEngineKind::Null, ..IoSettings::default() };
        let one = |operation| ours::action(operation, FileChoice::Uniform);
        let stop = Stop { operations: Some(files / 2), ..Stop::default() };
        let all = ours::fileset(files, 0, Existing::Rebuild);
        let mut workload = ours::workload(all, one(Operation::Unlink), 1, OpenPolicy::PerOperation, stop);
        workload.io = null;
        let mut again = workload.phases[0].clone();
        let create = one(Operation::Create { block_bytes: 0, fsync: false });
        again.groups[0].actions = Actions::Mix(vec![Weighted { weight: 1, action: create }]);
        workload.phases.push(again);
        let report = ours::run(&workload, Path::new("."))?;
        if report.invocations() != files / 2 * 2 {
            return Err(Trouble::failed("not all files were deleted and made again"));
        }
        memory("VmHWM")
    };
    // Twice, so that what the allocator keeps from one load to the next is there already.
    churn(1000)?;
    let little = churn(1000)?;
    let much = churn(files)?;
    Ok((much - little) / files as f64)
}

/// Many threads reading a file for half a second: peak memory in bytes, and by how many milliseconds the load took
/// longer than it should have.
fn threads(threads: u64, directory: &Path) -> Result<(f64, f64), Trouble> {
    let time = Duration::from_millis(500);
    let threads = u32::try_from(threads).map_err(Trouble::failed)?;
    let mut workload =
        ours::on_one_file(1 << 20, Operation::Read(ours::random(4096)), threads, IoSettings::default(), time);
    workload.filesets[0].existing = Existing::Rebuild;
    let started = Instant::now();
    let report = ours::run(&workload, directory)?;
    if report.threads != threads || report.invocations() < u64::from(threads) {
        return Err(Trouble::failed("not every thread came to run"));
    }
    eprintln!("{:?} in all", started.elapsed());
    let overrun = report.running_ns as f64 / 1e6 - time.as_secs_f64() * 1e3;
    Ok((memory("VmHWM")?, overrun))
}
