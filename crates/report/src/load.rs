//! A single load without a study: what `fstone load` prints, and its live line.

use crate::{number::Scale, text};
use fstone_model::{Figure, Histogram, LoadReport, Unit, io500, lately::Lately, units};
use std::{fmt::Write as _, time::Duration};

/// A load's result as a page of text, 80 columns wide.
pub fn load_summary(name: &str, report: &LoadReport) -> String {
    let mut out = String::new();
    let rate = |count| Scale::of_one(Unit::PerSecond, report.per_second(count)).with_unit(report.per_second(count));
    let speed =
        |bytes| Scale::of_one(Unit::BytesPerSecond, report.per_second(bytes)).with_unit(report.per_second(bytes));
    let time = |ns| units::format_duration(Duration::from_nanos(ns));
    let _ = writeln!(
        out,
        "{}: {} in {}, seed {}",
        text::line(name),
        threads(report.threads),
        time(report.elapsed_ns),
        report.seed
    );
    let _ = writeln!(
        out,
        "  set-up {}, then {} of operations and {} of final sync, both inside the interval\n",
        time(report.setup_ns),
        time(report.running_ns),
        time(report.sync_ns)
    );
    latencies(&mut out, report);
    let _ = writeln!(out, "\n  operations    {}", rate(report.invocations()));
    let _ = writeln!(out, "  transactions  {}", rate(report.transactions()));
    let _ = writeln!(out, "  read          {}", speed(report.read_bytes()));
    let _ = writeln!(out, "  written       {}", speed(report.written_bytes()));
    for (group, least, most) in depths(report) {
        let depth = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let _ =
            writeln!(out, "  queue depth   {depth} for each thread of {}, by its latency target", text::line(group));
    }
    let results = io500::figures(report);
    if !results.is_empty() {
        let _ = writeln!(out, "\n  From the phases of IO500; not an official submission:");
        for Figure { metric, value, unit, .. } in &results {
            let _ = writeln!(out, "  {metric:<26}  {}", Scale::of_one(*unit, *value).with_unit(*value));
        }
        out.push('\n');
    }
    if let Some(cost) = report.audit.null_ns_per_operation {
        let _ = writeln!(out, "  fstone's own cost per operation (null I/O engine)  {cost:.0} ns");
    }
    for error in &report.errors {
        let path = text::line(&error.path);
        let _ = writeln!(
            out,
            "  error: {} × {} {path}: {} (in {})",
            error.count,
            error.call,
            error.text,
            text::line(&error.operation)
        );
    }
    for warning in &report.warnings {
        let _ = writeln!(out, "  warning: {}", text::line(warning));
    }
    out
}

/// The smallest and largest queue depth that threads found for a latency target, of each group that has one.
fn depths(report: &LoadReport) -> Vec<(&str, u32, u32)> {
    let mut depths: Vec<(&str, u32, u32)> = Vec::new();
    for thread in report.per_thread.iter().filter(|thread| thread.queue_depth > 0) {
        let depth = thread.queue_depth;
        match depths.iter_mut().find(|(group, ..)| *group == thread.group) {
            Some((_, least, most)) => (*least, *most) = ((*least).min(depth), (*most).max(depth)),
            None => depths.push((&thread.group, depth, depth)),
        }
    }
    depths
}

pub fn live_line(phase: &str, elapsed: Duration, lately: &Lately) -> String {
    format!("{} {} s · {}", text::line(phase), elapsed.as_secs(), live_figures(lately))
}

/// What a load did a moment ago: "12,345/s · 48.2 MiB/s · p50 80 µs, p99 1.2 ms".
pub fn live_figures(lately: &Lately) -> String {
    let seconds = lately.interval.as_secs_f64();
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let (operations, bytes) = (per_second(lately.operations), per_second(lately.bytes));
    let mut line = format!(
        "{} · {}",
        Scale::of_one(Unit::PerSecond, operations).with_unit(operations),
        Scale::of_one(Unit::BytesPerSecond, bytes).with_unit(bytes)
    );
    let percentiles = [("p50", lately.p50_ns), ("p99", lately.p99_ns)];
    let percentiles = percentiles.map(|(name, latency)| Some(format!("{name} {}", nanoseconds(latency?))));
    let percentiles: Vec<String> = percentiles.into_iter().flatten().collect();
    if !percentiles.is_empty() {
        let _ = write!(line, " · {}", percentiles.join(", "));
    }
    line
}

/// A percentile, where so many values have one.
fn told(latency: &Histogram, percent: f64) -> Option<f64> {
    latency.percentile_ns(percent).filter(|_| latency.has_percentile(percent))
}

/// The table of latencies. Groups are named where there are several, and phases where several have a group of the same name.
fn latencies(out: &mut String, report: &LoadReport) {
    let places = || report.operations.iter().map(|operation| (operation.phase.as_str(), operation.group.as_str()));
    let several = places().any(|(_, group)| places().any(|(_, other)| group != other));
    let label = |phase: &str, group: &str, name: &str| {
        let again = places().any(|(other, same)| same == group && other != phase);
        let words = [Some(phase).filter(|_| again), Some(group).filter(|_| several), Some(name)];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        text::line(&words.join(" "))
    };
    let operations = report.operations.iter().filter(|operation| operation.invocations + operation.errors > 0);
    let mut rows: Vec<(String, u64, &Histogram)> =
        operations.map(|one| (label(&one.phase, &one.group, &one.name), one.invocations, &one.latency)).collect();
    for one in &report.group_fsyncs {
        let of = [
            ("fsync (policy)", one.periodic + one.at_end, &one.latency),
            ("until durable", one.commits.count(), &one.commits),
        ];
        let of = of.into_iter().filter(|(_, count, _)| *count > 0);
        rows.extend(of.map(|(name, count, latency)| (label(&one.phase, &one.group, name), count, latency)));
    }
    let width = rows.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0).max(14);
    let _ = writeln!(
        out,
        "  {:<width$} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "operation", "completed", "mean", "p50", "p95", "p99", "p99.99", "max"
    );
    for (name, count, latency) in rows {
        row(out, &format!("{name:<width$}"), count, latency);
    }
}

fn row(out: &mut String, name: &str, count: u64, latency: &Histogram) {
    let cell = |value: Option<f64>| value.map_or_else(|| "-".into(), nanoseconds);
    let percentile = |percent: f64| cell(told(latency, percent));
    let _ = writeln!(
        out,
        "  {name} {count:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        cell(latency.mean_ns()),
        percentile(50.0),
        percentile(95.0),
        percentile(99.0),
        percentile(99.99),
        cell((latency.count() > 0).then_some(latency.max_ns() as f64))
    );
}

fn nanoseconds(value: f64) -> String {
    Scale::of_one(Unit::Nanoseconds, value).with_unit(value)
}

fn threads(count: u32) -> String {
    if count == 1 { "1 thread".into() } else { format!("{count} threads") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::load::{GroupFsyncs, OperationReport, PhaseReport, ThreadReport};

    #[test]
    fn queue_depths_that_were_found_are_told() {
        let thread =
            |group: &str, queue_depth| ThreadReport { group: group.into(), queue_depth, ..ThreadReport::default() };
        let per_thread = vec![thread("a", 12), thread("b", 0), thread("a", 8), thread("c", 3)];
        let summary = load_summary("some", &LoadReport { per_thread, ..LoadReport::default() });
        let told: Vec<&str> = summary.lines().filter_map(|line| line.trim().strip_prefix("queue depth")).collect();
        let by = "by its latency target";
        assert_eq!(
            told,
            [format!("   8 to 12 for each thread of a, {by}"), format!("   3 for each thread of c, {by}")]
        );
    }

    #[test]
    fn rows_name_their_group_and_its_phase_where_they_must() {
        let operation = |phase: &str, group: &str| OperationReport {
            phase: phase.into(),
            group: group.into(),
            name: "write".into(),
            invocations: 1,
            latency: Histogram::from_values(&[2_000]),
            ..OperationReport::default()
        };
        let rows = |places: &[(&str, &str)]| {
            let operations = places.iter().map(|(phase, group)| operation(phase, group)).collect();
            let commits = Histogram::from_values(&[9_000]);
            let group_fsyncs = places.iter().map(|(phase, group)| {
                let (phase, group) = (phase.to_string(), group.to_string());
                GroupFsyncs { phase, group, periodic: 1, latency: commits.clone(), commits: commits.clone(), at_end: 0 }
            });
            let report = LoadReport { operations, group_fsyncs: group_fsyncs.collect(), ..LoadReport::default() };
            let summary = load_summary("some", &report);
            let rows =
                summary.lines().skip_while(|line| !line.contains("p99.99")).skip(1).take_while(|line| !line.is_empty());
            rows.filter_map(|line| Some(line.trim_start().split_once("  ")?.0.to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(rows(&[("run", "main")]), ["write", "fsync (policy)", "until durable"]);
        assert_eq!(rows(&[("run", "a"), ("run", "b")])[..2], ["a write", "b write"]);
        let twice = rows(&[("fill", "main"), ("run", "main")]);
        assert_eq!(twice[..2], ["fill write", "run write"]);
        assert_eq!(twice[4..], ["run fsync (policy)", "run until durable"]);
    }

    #[test]
    fn a_percentile_that_few_operations_do_not_have_is_not_shown() {
        let summary = |count: u64| {
            let latency = Histogram::from_values(&vec![2_000_000; count as usize]);
            let operation =
                OperationReport { name: "read".into(), invocations: count, latency, ..OperationReport::default() };
            load_summary("some", &LoadReport { operations: vec![operation], ..LoadReport::default() })
        };
        let dashes = |count: u64| {
            let text = summary(count);
            let row = text.lines().find(|line| line.starts_with("  read  ")).expect("its row").to_owned();
            row.split_whitespace().filter(|word| *word == "-").count()
        };
        assert_eq!([1, 2, 20, 100, 9_999, 10_000].map(dashes), [4, 3, 2, 1, 1, 0]);
    }

    #[test]
    fn a_load_with_the_phases_of_io500_has_their_results() {
        let done = |name: &str| {
            let moved = if name.starts_with("ior") { 3 << 30 } else { 0 };
            OperationReport {
                group: name.into(),
                name: "do".into(),
                invocations: 8000,
                written_bytes: moved,
                ..OperationReport::default()
            }
        };
        let phase = |name: &str| PhaseReport { name: name.into(), elapsed_ns: 1_000_000_000, ..PhaseReport::default() };
        let report = LoadReport {
            phases: io500::phases().map(phase).collect(),
            operations: io500::phases().map(done).collect(),
            ..LoadReport::default()
        };
        let summary = load_summary("io500", &report);
        let line =
            |words: &str| summary.lines().any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") == words);
        assert!(
            line("ior-hard-read throughput 3.00 GiB/s") || line("ior-hard-read throughput 3,072 MiB/s"),
            "{summary}"
        );
        assert!(line("mdtest-easy-stat rate 8,000/s") && summary.contains("not an official submission"), "{summary}");
        assert!(!summary.contains("IO500 score"), "find looked at nothing: {summary}");
        assert!(!load_summary("some", &LoadReport::default()).contains("IO500"));
    }

    #[test]
    fn a_line_about_a_few_operations_has_no_percentiles_that_they_do_not_have() {
        let percentiles = |count: usize| {
            let latency = Histogram::from_values(&vec![2_000_000; count]);
            let second = Duration::from_secs(1);
            let line = live_line("main", second, &Lately::of(second, count as u64, 0, &latency));
            ["p50 2.00 ms", "p99 2.00 ms"].map(|one| line.contains(one))
        };
        assert_eq!(
            [0, 1, 2, 99, 100].map(percentiles),
            [[false; 2], [false; 2], [true, false], [true, false], [true; 2]]
        );
    }
}
