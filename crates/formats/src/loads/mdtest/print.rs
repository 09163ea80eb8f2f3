//! The table as mdtest prints it, what it lacks below, and all of it as JSON.

use super::results::{Figure, Results, Row};
use crate::loads::letters::{self, Deviation, Spread};
use fstone_model::{load::OperationReport, text, when::duration};
use serde_json::{Value, json};
use std::fmt::Write as _;

pub fn print(results: &Results<'_>) -> String {
    let mut out = String::new();
    let (mdtest, report, place) = (results.mdtest, results.report, results.place);
    let _ = writeln!(out, "-- started at {} --\n", place.times[0]);
    let _ = writeln!(
        out,
        "mdtest (fstone {}) was launched with {} total task(s) on {} node(s)",
        env!("CARGO_PKG_VERSION"),
        report.ranked.ranks,
        report.ranked.nodes
    );
    let _ = writeln!(out, "Command line used: {}", text::line(&place.command_line));
    let first = report.ranked.per_rank.first().map(|rank| rank.host.as_str());
    let here = |host: &str| if Some(host) == first { '1' } else { '0' };
    let _ =
        writeln!(out, "Nodemap: {}", report.ranked.per_rank.iter().map(|rank| here(&rank.host)).collect::<String>());
    let _ = writeln!(out, "{:<20}: {}", "Path", text::line(&place.path));
    let used = |all: u64, free: u64| if all == 0 { 0.0 } else { 100.0 * (1.0 - free as f64 / all as f64) };
    let gib = place.bytes as f64 / f64::from(1 << 30);
    let (size, unit) = if gib > 1024.0 { (gib / 1024.0, "TiB") } else { (gib, "GiB") };
    let _ = writeln!(
        out,
        "{:<20}: {size:.1} {unit}   Used FS: {:.1}%   Inodes: {:.1} Mi   Used Inodes: {:.1}%",
        "FS",
        used(place.bytes, place.free_bytes),
        place.inodes as f64 / f64::from(1 << 20),
        used(place.inodes, place.free_inodes)
    );
    let what = match (mdtest.files, mdtest.directories) {
        (true, true) => "files/directories",
        (true, false) => "files",
        _ => "directories",
    };
    let _ = writeln!(out, "{} tasks, {} {what}", report.ranked.ranks, u64::from(report.ranked.ranks) * mdtest.items);
    let rows = results.rows();
    if mdtest.print_rates {
        let head = format!("rate (in ops/sec): (of {} iterations)", mdtest.iterations);
        table(&mut out, &head, results, &rows, Figure::rate);
    }
    if mdtest.print_times {
        let head = format!("time (in seconds, of a whole phase): (of {} iterations)", mdtest.iterations);
        table(&mut out, &head, results, &rows, |figure| figure.seconds);
    }
    beside(&mut out, results, &rows);
    let _ = writeln!(out, "-- finished at {} --", place.times[1]);
    out
}

/// Of the iterations that lack nothing, if there are any, with what stands behind it.
fn spread<'r>(row: &Row<'r>, value: impl Fn(&Figure<'r>) -> f64) -> (Spread, String) {
    let (figures, mark) = letters::complete(row.figures.iter(), |figure| figure.lacking.as_deref());
    (Spread::of(&figures.into_iter().map(value).collect::<Vec<_>>(), Deviation::OfSample), mark)
}

fn table<'r>(
    out: &mut String,
    head: &str,
    results: &Results<'r>,
    rows: &[Row<'r>],
    value: impl Fn(&Figure<'r>) -> f64,
) {
    let _ = writeln!(out, "\nSUMMARY {head}");
    let _ = writeln!(out, "   Operation                     Max            Min           Mean        Std Dev");
    let _ = writeln!(out, "   ---------                     ---            ---           ----        -------");
    for name in results.names() {
        // As mdtest, a row of zeros for what was not to be done. What was, and no task ended, is marked.
        let nothing = || (Spread { largest: 0.0, smallest: 0.0, mean: 0.0, deviation: 0.0 }, String::new());
        let row = rows.iter().find(|row| row.name == name);
        let (Spread { largest, smallest, mean, deviation }, mut mark) =
            row.map_or_else(nothing, |row| spread(row, &value));
        let planned = results.plan.stages.iter().filter(|stage| stage.test.name() == name).count();
        let ended = row.map_or(0, |row| row.figures.len());
        if ended < planned && mark.is_empty() {
            mark = format!("  ! {ended} of {planned} iterations ended");
        }
        let _ = writeln!(out, "   {name:<18}     {largest:14.3} {smallest:14.3} {mean:14.3} {deviation:14.3}{mark}");
    }
}

fn of_phase<'r>(results: &Results<'r>, phase: &str) -> Option<&'r OperationReport> {
    results.report.load.operations.iter().find(|operation| operation.group == phase)
}

/// What mdtest does not tell: latencies, how far the tasks were together, and what went wrong.
fn beside(out: &mut String, results: &Results<'_>, rows: &[Row<'_>]) {
    let figures: Vec<&Figure<'_>> = rows.iter().flat_map(|row| &row.figures).collect();
    let met: Vec<_> = figures.iter().filter_map(|figure| Some((*figure, figure.meeting?))).collect();
    let _ = writeln!(
        out,
        "\n   {:<34} {:>10} {:>10} {:>10} {:>10} {:>12} {:>12}",
        "Phase", "items", "p50", "p99", "max", "start skew", "stop skew"
    );
    for (figure, meeting) in &met {
        let operation = of_phase(results, &meeting.name);
        let [p50, p99, longest] = letters::latencies(operation);
        let _ = writeln!(
            out,
            "   {:<34} {:>10} {p50:>10} {p99:>10} {longest:>10} {:>12} {:>12}{}",
            // Scripts look for the names of the table's rows.
            meeting.name.to_lowercase(),
            figure.items,
            duration(meeting.start_skew_ns),
            duration(meeting.stop_skew_ns),
            letters::mark(meeting)
        );
    }
    letters::explain_skews(out, met.iter().map(|(_, meeting)| *meeting));
    for (figure, wall) in figures.iter().filter_map(|figure| Some((figure, figure.stonewall()?))) {
        letters::stonewall(out, figure.meeting.map_or("", |meeting| &meeting.name), &wall, "items");
    }
    if results.mdtest.sync {
        let syncs = figures.iter().filter_map(|figure| Some((figure.meeting?, figure.sync_seconds?)));
        for (meeting, seconds) in syncs {
            let _ = writeln!(out, "   {}: {seconds:.6} s of it is the sync", meeting.name);
        }
    }
    letters::outcomes(out, results.report);
}

/// Everything for programs: rates in items per second, times in seconds, latencies and skews in nanoseconds.
pub fn json(results: &Results<'_>) -> Value {
    let (mdtest, report, place) = (results.mdtest, results.report, results.place);
    let rows: Vec<Value> = results.rows().iter().map(|row| row_json(results, row)).collect();
    json!({
        "program": "mdtest",
        "version": format!("fstone {}", env!("CARGO_PKG_VERSION")),
        "command_line": place.command_line,
        "path": place.path,
        "started": place.times[0],
        "finished": place.times[1],
        "tasks": report.ranked.ranks,
        "nodes": report.ranked.nodes,
        "items_per_task": mdtest.items,
        "items_per_directory": mdtest.each,
        "iterations": mdtest.iterations,
        "seed": report.seed,
        "completed_tasks": report.ranked.completed,
        "ended_early": report.ranked.ended_early,
        "operations": rows,
        "errors": report.load.errors,
        "warnings": report.load.warnings,
    })
}

fn row_json(results: &Results<'_>, row: &Row<'_>) -> Value {
    let iterations: Vec<Value> = row.figures.iter().map(|figure| figure_json(results, figure)).collect();
    json!({
        "operation": row.name,
        "rate_per_second": spread(row, Figure::rate).0.json(),
        "seconds": spread(row, |figure| figure.seconds).0.json(),
        "iterations": iterations,
    })
}

fn figure_json(results: &Results<'_>, figure: &Figure<'_>) -> Value {
    let mut value = json!({
        "iteration": figure.iteration,
        "items": figure.items,
        "seconds": figure.seconds,
        "rate_per_second": figure.rate(),
    });
    if let Some(words) = &figure.lacking {
        value["lacking"] = json!(words);
    }
    if let Some(meeting) = figure.meeting {
        value["tasks"] = json!(meeting.ranks);
        value["start_skew_ns"] = json!(meeting.start_skew_ns);
        value["stop_skew_ns"] = json!(meeting.stop_skew_ns);
        value["skew_uncertainty_ns"] = json!(meeting.skew_uncertainty_ns());
        value["skewed"] = json!(meeting.skewed);
        if let Some(operation) = of_phase(results, &meeting.name) {
            value["latency_ns"] = letters::latencies_json(operation);
            value["errors"] = json!(operation.errors);
        }
    }
    if let Some(seconds) = figure.sync_seconds {
        value["sync_seconds"] = json!(seconds);
    }
    if let Some(wall) = figure.stonewall() {
        value["stonewall"] = json!(wall);
    }
    value
}
