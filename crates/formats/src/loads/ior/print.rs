//! The tables as IOR prints them, what it lacks below, and all of it as JSON.

use super::{
    results::{Line, Results},
    workload::Access,
};
use crate::loads::letters::{self, Deviation, Spread};
use fstone_model::{text, units, when::duration};
use serde_json::{Value, json};
use std::{fmt::Write as _, time::Duration};

pub fn print(results: &Results<'_>) -> String {
    let mut out = String::new();
    let (ior, report, place) = (results.ior, results.report, results.place);
    let _ = writeln!(out, "IOR (fstone {}): loads of many tasks", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(out, "{:<20}: {}", "Began", place.times[0]);
    let _ = writeln!(out, "{:<20}: {}", "Command line", text::line(&place.command_line));
    let pairs = [
        ("api", "POSIX".to_owned()),
        ("test filename", place.path.clone()),
        ("access", if ior.file_per_process { "file-per-process" } else { "single-shared-file" }.into()),
        ("segments", ior.segments.to_string()),
        ("ordering in a file", if ior.random { "random" } else { "sequential" }.into()),
        ("task offset", ior.offset().to_string()),
        ("nodes", report.ranked.nodes.to_string()),
        ("tasks", report.ranked.ranks.to_string()),
        ("clients per node", of_node(results).to_string()),
        ("repetitions", ior.repetitions.to_string()),
        ("xfersize", units::format_bytes(ior.transfer_bytes)),
        ("blocksize", units::format_bytes(ior.block_bytes)),
        ("aggregate filesize", units::format_bytes(ior.task_bytes().saturating_mul(u64::from(report.ranked.ranks)))),
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
    let kib = |bytes: u64| figure(bytes as f64 / 1024.0);
    for line in lines {
        let known = |seconds: Option<f64>| seconds.map_or_else(|| "-".into(), figure);
        let _ = writeln!(
            out,
            "{:<9} {:<10} {:<10} {:<11} {:<10} {:<10} {:<10} {:<10} {:<10} {:<10} {}{}",
            line.access.name(),
            figure(line.bandwidth()),
            figure(line.iops()),
            known(line.latency),
            kib(results.ior.block_bytes),
            kib(results.ior.transfer_bytes),
            known(line.seconds_of[0]),
            known(line.seconds_of[1]),
            known(line.seconds_of[2]),
            figure(line.seconds),
            line.repetition,
            line.lacking.as_ref().map(|words| format!("  ! {words}")).unwrap_or_default()
        );
    }
}

/// With as many decimals as IOR prints in its first table.
fn figure(value: f64) -> String {
    let decimals = match value {
        ..1.0 => 6,
        ..3600.0 => 2,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

fn of<'r>(lines: &[Line<'r>], access: Access, value: impl Fn(&Line<'r>) -> f64) -> Spread {
    let (lines, _) = complete(lines, access);
    Spread::of(&lines.into_iter().map(value).collect::<Vec<_>>(), Deviation::OfAll)
}

fn complete<'l, 'r>(lines: &'l [Line<'r>], access: Access) -> (Vec<&'l Line<'r>>, String) {
    letters::complete(lines.iter().filter(|line| line.access == access), |line| line.lacking.as_deref())
}

fn accesses<'l>(lines: &'l [Line<'_>]) -> impl Iterator<Item = Access> + use<'l> {
    [Access::Write, Access::Read].into_iter().filter(|access| lines.iter().any(|line| line.access == *access))
}

fn summary(out: &mut String, results: &Results<'_>, lines: &[Line<'_>]) {
    let (ior, ranks) = (results.ior, results.report.ranked.ranks);
    let _ = writeln!(
        out,
        "\nSummary of all tests:\nOperation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    Mean(s) \
         Stonewall(s) Stonewall(MiB) Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt   blksiz    xsize aggs(MiB)   API RefNum"
    );
    for access in accesses(lines) {
        let spreads = [of(lines, access, Line::bandwidth), of(lines, access, Line::transfers_per_second)];
        let [moved_per_second, transfers_per_second] = spreads.map(|spread| {
            let Spread { largest, smallest, mean, deviation } = spread;
            format!("{largest:>10.2} {smallest:>10.2} {mean:>10.2} {deviation:>10.2}")
        });
        let seconds = of(lines, access, |line| line.seconds).mean;
        let moved: u64 = lines.iter().filter(|line| line.access == access).map(|line| line.bytes).max().unwrap_or(0);
        let [wall_seconds, wall_rate] = walls(lines, access);
        // Test#, reordrand, seed and RefNum are 0: a run is one test, and tasks are not reordered at random.
        let _ = writeln!(
            out,
            "{:<9} {moved_per_second} {transfers_per_second} {seconds:>10.5} {wall_seconds:>10} {wall_rate:>13} {:>5} {ranks:>6} {:>3} {:>4} \
             {:>3} {:>5} {:>8} {:>9} {:>4} {:>6} {:>8} {:>8} {:>9.1} POSIX {:>6}{}",
            access.name(),
            0,
            of_node(results),
            ior.repetitions,
            u8::from(ior.file_per_process),
            u8::from(ior.reordered),
            ior.shift,
            0,
            0,
            ior.segments,
            ior.block_bytes,
            ior.transfer_bytes,
            moved as f64 / f64::from(1 << 20),
            0,
            complete(lines, access).1
        );
    }
}

/// The mean time of the stonewall, and the rate up to there: as in IOR, that of all repetitions together.
fn walls(lines: &[Line<'_>], access: Access) -> [String; 2] {
    let (lines, _) = complete(lines, access);
    let walls: Vec<[f64; 2]> = lines.iter().filter_map(|line| line.wall).collect();
    let [seconds, moved] = [0, 1].map(|of| walls.iter().map(|wall| wall[of]).sum::<f64>());
    let rate = if seconds > 0.0 { moved / seconds } else { 0.0 };
    [seconds / walls.len() as f64, rate]
        .map(|figure| if walls.is_empty() { "NA".into() } else { format!("{figure:.2}") })
}

fn of_node(results: &Results<'_>) -> u32 {
    let ranked = &results.report.ranked;
    ranked.ranks.checked_div(ranked.nodes).unwrap_or(0)
}

/// What IOR does not tell: latencies, how far the tasks were together, and what went wrong.
fn beside(out: &mut String, results: &Results<'_>, lines: &[Line<'_>]) {
    let _ = writeln!(
        out,
        "\n   {:<26} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12} {:>12}",
        "Phase", "transfers", "p50", "p99", "max", "fsync", "start skew", "stop skew"
    );
    for line in lines {
        let [p50, p99, longest] = letters::latencies(line.moves);
        let fsync = line.longest[1].map(|seconds| units::format_duration(Duration::from_secs_f64(seconds)));
        let _ = writeln!(
            out,
            "   {:<26} {:>10} {p50:>10} {p99:>10} {longest:>10} {:>10} {:>12} {:>12}{}",
            line.meeting.name,
            line.transfers,
            fsync.as_deref().unwrap_or("-"),
            duration(line.meeting.start_skew_ns),
            duration(line.meeting.stop_skew_ns),
            letters::mark(line.meeting)
        );
    }
    letters::explain_skews(out, lines.iter().map(|line| line.meeting));
    for (line, wall) in lines.iter().filter_map(|line| Some((line, line.meeting.stonewall?))) {
        letters::stonewall(out, &line.meeting.name, &wall, "operations");
    }
    letters::outcomes(out, results.report);
}

/// Everything for programs: MiB and transfers per second, times in seconds, latencies and skews in nanoseconds.
pub fn json(results: &Results<'_>) -> Value {
    let (ior, report, place) = (results.ior, results.report, results.place);
    let lines = results.lines();
    let operations: Vec<Value> = accesses(&lines)
        .map(|access| {
            let repetitions: Vec<Value> = lines.iter().filter(|line| line.access == access).map(line_json).collect();
            json!({
                "operation": access.name(),
                "mib_per_second": of(&lines, access, Line::bandwidth).json(),
                "transfers_per_second": of(&lines, access, Line::transfers_per_second).json(),
                "seconds": of(&lines, access, |line| line.seconds).json(),
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
        "tasks": report.ranked.ranks,
        "nodes": report.ranked.nodes,
        "file_per_process": ior.file_per_process,
        "block_bytes": ior.block_bytes,
        "transfer_bytes": ior.transfer_bytes,
        "segments": ior.segments,
        "seed": report.seed,
        "completed_tasks": report.ranked.completed,
        "ended_early": report.ranked.ended_early,
        "operations": operations,
        "errors": report.load.errors,
        "warnings": report.load.warnings,
    })
}

fn line_json(line: &Line<'_>) -> Value {
    let [longest_open, fsync, longest_close] = line.longest;
    let [open, moving, close] = line.seconds_of;
    let mut value = json!({
        "repetition": line.repetition,
        "bytes": line.bytes,
        "transfers": line.transfers,
        "tasks": line.meeting.ranks,
        "mib_per_second": line.bandwidth(),
        "transfers_per_second": line.transfers_per_second(),
        "iops": line.iops(),
        "least_seconds_per_transfer": line.latency,
        "seconds": line.seconds,
        "open_seconds": open,
        "moving_seconds": moving,
        "close_seconds": close,
        "longest_open_seconds": longest_open,
        "longest_fsync_seconds": fsync,
        "longest_close_seconds": longest_close,
        "phase_seconds": line.meeting.seconds(),
        "start_skew_ns": line.meeting.start_skew_ns,
        "stop_skew_ns": line.meeting.stop_skew_ns,
        "skew_uncertainty_ns": line.meeting.skew_uncertainty_ns(),
        "skewed": line.meeting.skewed,
    });
    if let Some(words) = &line.lacking {
        value["lacking"] = json!(words);
    }
    if let Some(moves) = line.moves {
        value["latency_ns"] = letters::latencies_json(moves);
    }
    if let Some(wall) = line.meeting.stonewall {
        value["stonewall"] = json!(wall);
    }
    value
}
