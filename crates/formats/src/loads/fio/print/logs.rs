//! fio's log files: bandwidth, latency and IOPS over time.

use crate::loads::fio::Plan;
use fstone_model::{LoadReport, load::SeriesPoint, load_series::Moment};
use std::fmt::Write as _;

/// A log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Its path, relative to the working directory.
    pub file: String,
    /// What is in it: a line for each interval with time in ms, value, direction (0 reads, 1 writes), block size, offset
    /// and priority.
    pub text: String,
}

/// The log files that the job asks for. Only a job alone can: the load's series is that of all jobs. As with fio, a line has the
/// time at which its interval ended, and an interval that the end of a phase cut short is only in the log of latencies.
#[must_use]
pub fn logs(plan: &Plan, report: &LoadReport) -> Vec<Log> {
    let Some(job) = plan.jobs.first().filter(|_| plan.parts.len() == 1) else { return Vec::new() };
    let seconds = report.series_interval_ns as f64 / 1e9;
    let per_second = move |count: u64| if seconds > 0.0 { (count as f64 / seconds) as u64 } else { 0 };
    let used = [job.direction.reads, job.direction.writes];
    let bytes = |point: &SeriesPoint, direction: usize| [point.read_bytes, point.written_bytes][direction];
    // A point holds the operations of both directions; their bytes tell how many are whose.
    let share = move |point: &SeriesPoint, direction: usize| {
        let all = point.read_bytes + point.written_bytes;
        if all == 0 { 0.0 } else { bytes(point, direction) as f64 / all as f64 }
    };
    type Value<'v> = Box<dyn Fn(&SeriesPoint, usize) -> u64 + 'v>;
    let kinds: [(&str, Value<'_>); 3] = [
        ("bw", Box::new(move |point, direction| per_second(bytes(point, direction)) >> 10)),
        ("lat", Box::new(|point, _| point.latency.mean_ns().unwrap_or(0.0) as u64)),
        (
            "iops",
            Box::new(move |point, direction| per_second((point.operations as f64 * share(point, direction)) as u64)),
        ),
    ];
    let mut logs = Vec::new();
    for ((kind, value), prefix) in kinds.iter().zip(&job.logs) {
        let Some(prefix) = prefix else { continue };
        let mut text = String::new();
        let told = |moment: &Moment<'_>| moment.whole || *kind == "lat";
        for Moment { begin_ns, length_ns, point, .. } in report.moments().into_iter().filter(told) {
            for direction in [0, 1].into_iter().filter(|direction| used[*direction] && bytes(point, *direction) > 0) {
                let ms = begin_ns.saturating_add(length_ns) / 1_000_000;
                let block = job.blocks[direction].smallest();
                let _ = writeln!(text, "{ms}, {}, {direction}, {block}, 0, 0", value(point, direction));
            }
        }
        logs.push(Log { file: format!("{prefix}_{kind}.1.log"), text });
    }
    logs
}
