//! fio and sysbench, if they are installed.

use crate::place::command_in;
use crate::side::{Measured, Trouble};
use std::path::Path;

/// Runs fio and gives operations per second of all its jobs.
pub(crate) fn fio(directory: &Path, arguments: &[&str]) -> Measured {
    let job = fio_job(directory, arguments)?;
    let rate = ["read", "write"].iter().filter_map(|way| job[*way]["iops"].as_f64()).sum::<f64>();
    if rate > 0.0 { Ok(rate) } else { Err(Trouble::failed("fio reported no operations")) }
}

pub(crate) fn fio_mean_latency_ns(directory: &Path, arguments: &[&str]) -> Measured {
    let mean = fio_job(directory, arguments)?["read"]["lat_ns"]["mean"].as_f64();
    mean.filter(|mean| *mean > 0.0).ok_or_else(|| Trouble::failed("fio reported no latency"))
}

/// Runs fio with reads and gives the CPU time of one, in nanoseconds.
pub(crate) fn fio_cpu_per_read(directory: &Path, arguments: &[&str]) -> Measured {
    let job = fio_job(directory, arguments)?;
    let number = |value: &serde_json::Value| value.as_f64().ok_or_else(|| Trouble::failed("fio reported no CPU time"));
    let percent = number(&job["usr_cpu"])? + number(&job["sys_cpu"])?;
    Ok(percent / 100.0 * number(&job["job_runtime"])? * 1e6 / number(&job["read"]["total_ios"])?)
}

fn fio_job(directory: &Path, arguments: &[&str]) -> Result<serde_json::Value, Trouble> {
    // What is cached stays so: by itself fio drops a file's pages first, and would read them from the disk.
    let mut all = vec!["--name=job", "--thread", "--group_reporting", "--output-format=json", "--invalidate=0"];
    all.extend(arguments);
    let output = command_in(directory, "fio", &all)?;
    // Warnings may stand before the braces.
    let json = output.find('{').map_or("", |start| &output[start..]);
    let parsed: serde_json::Value = serde_json::from_str(json).map_err(Trouble::failed)?;
    Ok(parsed["jobs"][0].clone())
}

/// Runs sysbench fileio on one file that it prepared itself and gives reads per second.
pub(crate) fn sysbench_reads(directory: &Path, size: u64, threads: u32, seconds: f64) -> Measured {
    let size = format!("--file-total-size={size}");
    let threads = format!("--threads={threads}");
    // Its time is whole seconds.
    let time = format!("--time={}", seconds.ceil().max(1.0));
    let files = ["fileio", "--file-num=1", &size, "--file-block-size=4096"];
    if !directory.join("test_file.0").exists() {
        command_in(directory, "sysbench", &[&files[..], &["prepare"]].concat())?;
    }
    let mode = ["--file-test-mode=rndrd", &threads, &time, "run"];
    let output = command_in(directory, "sysbench", &[&files[..], &mode].concat())?;
    let line = output.lines().find_map(|line| line.trim().strip_prefix("reads/s:"));
    line.and_then(|value| value.trim().parse().ok()).ok_or_else(|| Trouble::failed("sysbench reported no reads"))
}
