//! The tables as IOR prints them, what it lacks below, and all of it as JSON.

use super::{
    results::{Line, Results, seconds},
    workload::Access,
};
use fstone_model::{load::OperationReport, text, units};
use serde_json::{Value, json};
use std::{fmt::Write as _, time::Duration};

/// Warnings and errors that are printed; the JSON has all.
const TOLD: usize = 20;

/// Largest, smallest and mean value, and their standard deviation as IOR has it, of all and not of a sample.
fn spread(values: &[f64]) -> [f64; 4] {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let largest = values.iter().copied().fold(0.0, f64::max);
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    [largest, smallest, mean, (squares / count).sqrt()]
}

/// The tables, with the lines around them.
#[must_use]
pub fn print(results: &Results<'_>) -> String {
    let mut out = String::new();
    let (ior, report, place) = (results.ior, results.report, results.place);
    let _ = writeln!(out, "IOR (fstone {}): loads of many tasks", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(out, "{:<20}: {}", "Began", place.times[0]);
    let _ = writeln!(out, "{:<20}: {}", "Command line", text::line(&place.command_line));
    let of_node = report.ranks.checked_div(report.nodes).unwrap_or(0);
    let pairs = [
        ("api", "POSIX".to_owned()),
        ("test filename", place.path.clone()),
        ("access", if ior.file_per_process { "file-per-process" } else { "single-shared-file" }.into()),
        ("segments", ior.segments.to_string()),
        ("ordering in a file", if ior.random { "random" } else { "sequential" }.into()),
        ("task offset", ior.shift.to_string()),
        ("nodes", report.nodes.to_string()),
        ("tasks", report.ranks.to_string()),
        ("clients per node", of_node.to_string()),
        ("repetitions", ior.repetitions.to_string()),
        ("xfersize", units::format_bytes(ior.transfer_bytes)),
        ("blocksize", units::format_bytes(ior.block_bytes)),
        ("aggregate filesize", units::format_bytes(ior.task_bytes().saturating_mul(u64::from(report.ranks)))),
    ];
    let _ = writeln!(out, "\nOptions:");
    for (name, value) in pairs {
        let _ = writeln!(out, "{name:<20}: {}", text::line(&value));
    }
    let lines = results.lines();
    table(&mut out, results, &lines);
    summary(&mut out, results, &lines);
    beside(&mut out, results, &lines);
    let _ = writeln!(out, "{:<20}: {}", "Finished", place.times[1]);
    out
}

fn table(out: &mut String, results: &Results<'_>, lines: &[Line<'_>]) {
    let _ = writeln!(
        out,
        "\nResults:\n\naccess    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter\n\
         ------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----"
    );
    let kib = |bytes: u64| bytes as f64 / 1024.0;
    for line in lines {
        let mean = line.moves.and_then(|moves| moves.latency.mean_ns()).unwrap_or(0.0) / 1e9;
        let _ = writeln!(
            out,
            "{:<9} {:<10.2} {:<10.0} {mean:<11.6} {:<10.2} {:<10.2} {:<10.6} {:<10.6} {:<10.6} {:<10.6} {}",
            line.access.name(),
            line.bandwidth(),
            line.transfers_per_second(),
            kib(results.ior.block_bytes),
            kib(results.ior.transfer_bytes),
            line.longest[0],
            line.moving_seconds(),
            line.longest[2],
            line.seconds,
            line.repetition
        );
    }
}

fn of<'r>(lines: &[Line<'r>], access: Access, value: impl Fn(&Line<'r>) -> f64) -> Vec<f64> {
    lines.iter().filter(|line| line.access == access).map(value).collect()
}

fn accesses<'l>(lines: &'l [Line<'_>]) -> impl Iterator<Item = Access> + use<'l> {
    [Access::Write, Access::Read].into_iter().filter(|access| lines.iter().any(|line| line.access == *access))
}

fn summary(out: &mut String, results: &Results<'_>, lines: &[Line<'_>]) {
    let (ior, ranks) = (results.ior, results.report.ranks);
    let _ = writeln!(
        out,
        "\nSummary of all tests:\nOperation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    Mean(s) \
         #Tasks reps fPP reord segcnt   blksiz    xsize aggs(MiB)   API"
    );
    for access in accesses(lines) {
        let [most, least, mean, deviation] = spread(&of(lines, access, Line::bandwidth));
        let [most_transfers, least_transfers, transfers, of_transfers] =
            spread(&of(lines, access, Line::transfers_per_second));
        let [_, _, time, _] = spread(&of(lines, access, |line| line.seconds));
        let moved: u64 = lines.iter().filter(|line| line.access == access).map(|line| line.bytes).max().unwrap_or(0);
        let _ = writeln!(
            out,
            "{:<9} {most:>10.2} {least:>10.2} {mean:>10.2} {deviation:>10.2} {most_transfers:>10.2} {least_transfers:>10.2} \
             {transfers:>10.2} {of_transfers:>10.2} {time:>10.5} {ranks:>6} {:>4} {:>3} {:>5} {:>6} {:>8} {:>8} {:>9.1} POSIX",
            access.name(),
            ior.repetitions,
            u8::from(ior.file_per_process),
            u8::from(ior.shift > 0),
            ior.segments,
            ior.block_bytes,
            ior.transfer_bytes,
            moved as f64 / f64::from(1 << 20)
        );
    }
}

fn time(ns: u64) -> String {
    units::format_duration(Duration::from_nanos(ns))
}

fn percentile(operation: &OperationReport, percent: f64) -> Option<u64> {
    let ns = operation.latency.has_percentile(percent).then(|| operation.latency.percentile_ns(percent))?;
    ns.map(|ns| ns.round() as u64)
}

/// What IOR does not tell: latencies, how far the tasks were together, and what went wrong.
fn beside(out: &mut String, results: &Results<'_>, lines: &[Line<'_>]) {
    let report = results.report;
    let _ = writeln!(
        out,
        "\n   {:<26} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12} {:>12}",
        "Phase", "transfers", "p50", "p99", "max", "fsync", "start skew", "stop skew"
    );
    for line in lines {
        let told = |percent| line.moves.and_then(|moves| percentile(moves, percent)).map_or_else(|| "-".into(), time);
        let longest = line.moves.map_or_else(|| "-".into(), |moves| time(moves.latency.max_ns()));
        let fsync = Duration::from_secs_f64(line.longest[1]);
        let _ = writeln!(
            out,
            "   {:<26} {:>10} {:>10} {:>10} {longest:>10} {:>10} {:>12} {:>12}{}",
            line.meeting.name,
            line.transfers,
            told(50.0),
            told(99.0),
            if fsync.is_zero() { "-".into() } else { units::format_duration(fsync) },
            time(line.meeting.start_skew_ns),
            time(line.meeting.stop_skew_ns),
            if line.meeting.skewed { " !" } else { "" }
        );
    }
    if lines.iter().any(|line| line.meeting.skewed) {
        let _ = writeln!(
            out,
            "   ! the tasks were apart for more than 1 % of the phase: for that time not all were at work"
        );
    }
    for (line, wall) in lines.iter().filter_map(|line| Some((line, line.meeting.stonewall?))) {
        let _ = writeln!(
            out,
            "   {}: stonewall after {}, by then {} operations, {} to {} a task; then each went on to {}",
            line.meeting.name,
            time(wall.length_ns),
            wall.operations,
            wall.fewest,
            wall.most,
            wall.most
        );
    }
    if let Some(why) = &report.ended_early {
        let _ = writeln!(out, "   ended early: {}", text::line(why));
    }
    for rank in report.per_rank.iter().filter(|rank| rank.outcome.words().is_some()).take(TOLD) {
        let (word, words) = (rank.outcome.word(), text::line(rank.outcome.words().unwrap_or_default()));
        let _ = writeln!(out, "   task {} on {} {word}: {words}", rank.rank, text::line(&rank.host));
    }
    for error in report.load.errors.iter().take(TOLD) {
        let (operation, call, path) = (text::line(&error.operation), &error.call, text::line(&error.path));
        let _ = writeln!(out, "   {} × {operation}: {call} of {path}: {}", error.count, error.text);
    }
    for warning in report.load.warnings.iter().take(TOLD) {
        let _ = writeln!(out, "   warning: {}", text::line(warning));
    }
}

/// Everything for programs: MiB and transfers per second, times in seconds, latencies and skews in nanoseconds.
#[must_use]
pub fn json(results: &Results<'_>) -> Value {
    let (ior, report, place) = (results.ior, results.report, results.place);
    let lines = results.lines();
    let operations: Vec<Value> = accesses(&lines)
        .map(|access| {
            let all = |values: Vec<f64>| {
                let [max, min, mean, standard_deviation] = spread(&values);
                json!({ "max": max, "min": min, "mean": mean, "standard_deviation": standard_deviation })
            };
            let repetitions: Vec<Value> = lines.iter().filter(|line| line.access == access).map(line_json).collect();
            json!({
                "operation": access.name(),
                "mib_per_second": all(of(&lines, access, Line::bandwidth)),
                "transfers_per_second": all(of(&lines, access, Line::transfers_per_second)),
                "seconds": all(of(&lines, access, |line| line.seconds)),
                "repetitions": repetitions,
            })
        })
        .collect();
    json!({
        "program": "ior",
        "version": format!("fstone {}", env!("CARGO_PKG_VERSION")),
        "command_line": place.command_line,
        "path": place.path,
        "started": place.times[0],
        "finished": place.times[1],
        "tasks": report.ranks,
        "nodes": report.nodes,
        "file_per_process": ior.file_per_process,
        "block_bytes": ior.block_bytes,
        "transfer_bytes": ior.transfer_bytes,
        "segments": ior.segments,
        "seed": report.seed,
        "completed_tasks": report.completed,
        "ended_early": report.ended_early,
        "operations": operations,
        "errors": report.load.errors,
        "warnings": report.load.warnings,
    })
}

fn line_json(line: &Line<'_>) -> Value {
    let [open, fsync, close] = line.longest;
    let mut value = json!({
        "repetition": line.repetition,
        "bytes": line.bytes,
        "transfers": line.transfers,
        "mib_per_second": line.bandwidth(),
        "transfers_per_second": line.transfers_per_second(),
        "seconds": line.seconds,
        "longest_open_seconds": open,
        "longest_fsync_seconds": fsync,
        "longest_close_seconds": close,
        "phase_seconds": seconds(line.meeting.length_ns),
        "start_skew_ns": line.meeting.start_skew_ns,
        "stop_skew_ns": line.meeting.stop_skew_ns,
        "skewed": line.meeting.skewed,
    });
    if let Some(moves) = line.moves {
        let [p50, p99] = [50.0, 99.0].map(|percent| percentile(moves, percent));
        value["latency_ns"] = json!({ "p50": p50, "p99": p99, "max": moves.latency.max_ns() });
    }
    if let Some(wall) = line.meeting.stonewall {
        value["stonewall"] = json!(wall);
    }
    value
}
