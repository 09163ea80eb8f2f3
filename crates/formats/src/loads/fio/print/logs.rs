//! fio's log files: bandwidth, latency and IOPS over time.

use crate::loads::fio::{
    Part, Plan,
    actions::{reads, writes},
};
use fstone_model::{LoadReport, load::SeriesPoint, load_series::Moment};
use std::{collections::BTreeMap, fmt::Write as _};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Its path, relative to the working directory.
    pub file: String,
    /// What is in it: a line for each interval with the time since the job's begin in ms, value, direction (0 reads, 1 writes), and what is 0
    /// of an interval: block size and priority.
    pub text: String,
}

/// The kinds of logs: what a job calls for with which of its prefixes, and what fio calls the file. The latency from submission to completion
/// is all there is, so two kinds have the same.
const KINDS: [(usize, &str); 4] = [(0, "bw"), (1, "lat"), (1, "clat"), (2, "iops")];

/// The log files that jobs ask for, one of each clone and kind, or with `per_job_logs=0` one of each name. As with fio, a line has the
/// time at which its interval ended, and an interval that the end of a phase cut short is only in the logs of latencies.
pub fn logs(plan: &Plan, report: &LoadReport) -> Vec<Log> {
    let mut logs: BTreeMap<String, String> = BTreeMap::new();
    for (number, part) in (1..).zip(&plan.parts) {
        let job = &plan.jobs[part.job];
        if job.logs.iter().all(Option::is_none) {
            continue;
        }
        let directions = [0, 1].map(|direction| over_time(part, direction, report));
        let begin_ns = begin_of(part, report);
        for (which, kind) in KINDS {
            let Some(prefix) = &job.logs[which] else { continue };
            let file =
                if job.log_each { format!("{prefix}_{kind}.{number}.log") } else { format!("{prefix}_{kind}.log") };
            logs.entry(file).or_default().push_str(&lines(&directions, begin_ns, kind, report));
        }
    }
    logs.into_iter().map(|(file, text)| Log { file, text }).collect()
}

/// When a clone began: behind the jobs before its stonewall, and its delay.
fn begin_of(part: &Part, report: &LoadReport) -> u64 {
    let own = report.operations.iter().find(|operation| operation.group == part.group);
    own.and_then(|operation| operation.at_work).map_or(0, |[work, _]| work.begin_ns)
}

fn lines(directions: &[Vec<SeriesPoint>; 2], job_begin_ns: u64, kind: &str, report: &LoadReport) -> String {
    let length = directions.iter().map(Vec::len).max().unwrap_or(0);
    let none = SeriesPoint::default();
    // Where points are in time is the same of all.
    let places = vec![SeriesPoint::default(); length];
    let mut text = String::new();
    for (index, Moment { begin_ns, length_ns, whole, .. }) in report.moments_of(&places).into_iter().enumerate() {
        // An interval that was cut short has no rate.
        if !(whole && begin_ns >= job_begin_ns) && matches!(kind, "bw" | "iops") {
            continue;
        }
        for (direction, points) in directions.iter().enumerate() {
            let point = points.get(index).unwrap_or(&none);
            if point.operations == 0 {
                continue;
            }
            let per_second = |count: u64| (count as f64 * 1e9 / length_ns.max(1) as f64) as u64;
            let value = match kind {
                "bw" => per_second(point.read_bytes + point.written_bytes) >> 10,
                "iops" => per_second(point.operations),
                _ => point.latency.mean_ns().unwrap_or(0.0) as u64,
            };
            let ms = begin_ns.saturating_add(length_ns).saturating_sub(job_begin_ns) / 1_000_000;
            let _ = writeln!(text, "{ms}, {value}, {direction}, 0, 0");
        }
    }
    text
}

fn over_time(part: &Part, direction: usize, report: &LoadReport) -> Vec<SeriesPoint> {
    let works = |group: &String| part.group == *group || part.again.contains(group);
    let is_it = |name: &str| if direction == 0 { reads(name) } else { writes(name) };
    let mut sum: Vec<SeriesPoint> = Vec::new();
    for own in report.own_series.iter().filter(|own| works(&own.group) && is_it(&own.name)) {
        if sum.len() < own.series.len() {
            sum.resize_with(own.series.len(), SeriesPoint::default);
        }
        for (sum, point) in sum.iter_mut().zip(&own.series) {
            sum.add(point);
        }
    }
    sum
}
