//! What FFSB 6.0 prints, in its order and under its names, so that scripts that read it go on working.

use super::{
    profile::{CALLS, Filesystem, Group, Op, Profile, Stats},
    workload::group_name,
};
use fstone_model::{
    Histogram, LoadReport,
    histogram::bounds_of,
    load::{ErrorReport, OperationReport},
    workload::{Amount, SizeDistribution},
};
use std::fmt::Write as _;

const RULE: &str = "===============";

pub fn header(profile: &Profile) -> String {
    let mut out = format!("FFSB version 6.0 started (fstone {})\n\n", env!("CARGO_PKG_VERSION"));
    if profile.time.is_zero() {
        line(&mut out, format_args!("Only creating the fileset, not running benchmark."));
    } else {
        line(&mut out, format_args!("benchmark time = {}", profile.time.as_secs()));
    }
    for (index, group) in profile.groups.iter().enumerate() {
        line(&mut out, format_args!("ThreadGroup {index}\n================"));
        group_settings(&mut out, group);
    }
    for filesystem in &profile.filesystems {
        filesystem_settings(&mut out, profile, filesystem);
    }
    out
}

pub fn print(profile: &Profile, report: &LoadReport) -> String {
    let mut out = String::new();
    line(&mut out, format_args!("fs setup took {} secs", report.setup_ns / 1_000_000_000));
    if profile.time.is_zero() {
        line(&mut out, format_args!("Setup complete, exiting"));
        return out;
    }
    line(&mut out, format_args!("Syncing()...{} sec", report.sync_ns / 1_000_000_000));
    line(&mut out, format_args!("Results:\nBenchmark took {:.2} sec\n", seconds(report)));
    let several = profile.groups.len() > 1;
    for (index, group) in profile.groups.iter().enumerate() {
        let name = group_name(index);
        if several {
            line(&mut out, format_args!("ThreadGroup {index}\n{RULE}"));
        } else {
            line(&mut out, format_args!("Total Results\n{RULE}"));
        }
        results(&mut out, report, Some(&name));
        if let Some(stats) = &group.stats {
            latencies(&mut out, report, &name, stats);
        }
        out.push('\n');
    }
    if several {
        line(&mut out, format_args!("Total Results\n{RULE}"));
        results(&mut out, report, None);
    }
    let percent =
        |time_ns: u64| if report.elapsed_ns == 0 { 0.0 } else { 100.0 * time_ns as f64 / report.elapsed_ns as f64 };
    let (user, system) = (percent(report.process_user_ns), percent(report.process_system_ns));
    line(&mut out, format_args!("\n\n{user:.1}% User   Time\n{system:.1}% System Time"));
    line(&mut out, format_args!("{:.1}% CPU Utilization", user + system));
    for error in &report.errors {
        line(&mut out, format_args!("Error: {} (x{})", what_failed(error), error.count));
    }
    out
}

fn what_failed(error: &ErrorReport) -> String {
    let ErrorReport { operation, call, path, text, .. } = error;
    match path.as_str() {
        // The engine names no path when no file could be chosen.
        _ if call == "choose a file" => format!("{operation} found no file to work on; {text}"),
        "" => format!("{call} in {operation}: {text}"),
        path => format!("{call} of {path} in {operation}: {text}"),
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("writing to a string");
}

fn seconds(report: &LoadReport) -> f64 {
    report.elapsed_ns as f64 / 1e9
}

/// An operation's figures; those of several filesystems together.
struct Row {
    op: Op,
    transactions: u64,
    invocations: u64,
    bytes: u64,
}

/// The table and throughputs of one group, or of all.
fn results(out: &mut String, report: &LoadReport, group: Option<&str>) {
    let chosen = |operation: &&OperationReport| group.is_none_or(|group| operation.group == group);
    let sum = |op: Op, what: fn(&OperationReport) -> u64| -> u64 {
        report.operations.iter().filter(chosen).filter(|operation| operation.name == op.name()).map(what).sum()
    };
    let rows: Vec<Row> = Op::ALL
        .into_iter()
        .map(|op| Row {
            op,
            transactions: sum(op, |operation| operation.transactions),
            invocations: sum(op, |operation| operation.invocations),
            bytes: sum(op, |operation| operation.read_bytes + operation.written_bytes),
        })
        // FFSB drops rows without transactions, and with them operations that did run.
        .filter(|row| row.invocations > 0)
        .collect();
    let transactions: u64 = rows.iter().map(|row| row.transactions).sum();
    let invocations: u64 = rows.iter().map(|row| row.invocations).sum();
    out.push_str("             Op Name   Transactions\t Trans/sec\t% Trans\t    % Op Weight\t   Throughput\n");
    out.push_str("             =======   ============\t =========\t=======\t    ===========\t   ==========\n");
    for Row { op, transactions: done, invocations: ran, bytes } in rows {
        let throughput = if op.moves_data() { per_second(report, bytes) } else { "NA".to_owned() };
        let rate = report.per_second(done);
        let (share, weight) = (percent(done, transactions), percent(ran, invocations));
        let name = op.name();
        line(
            out,
            format_args!("{name:>20} : {done:>12}\t{rate:>10.2}\t{share:>6.3}%\t\t{weight:>6.3}%\t  {throughput:>11}"),
        );
    }
    line(out, format_args!("-\n{:.2} Transactions per Second\n", report.per_second(transactions)));
    let moved = |what: fn(&OperationReport) -> u64| -> u64 { report.operations.iter().filter(chosen).map(what).sum() };
    let read = moved(|operation| operation.read_bytes);
    let written = moved(|operation| operation.written_bytes);
    if read > 0 || written > 0 {
        line(out, format_args!("Throughput Results\n==================="));
    }
    if read > 0 {
        line(out, format_args!("Read Throughput: {}", per_second(report, read)));
    }
    if written > 0 {
        line(out, format_args!("Write Throughput: {}", per_second(report, written)));
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

fn per_second(report: &LoadReport, bytes: u64) -> String {
    format!("{}/sec", size(report.per_second(bytes)))
}

fn latencies(out: &mut String, report: &LoadReport, group: &str, stats: &Stats) {
    line(out, format_args!("\nSystem Call Latency statistics in millisecs\n====="));
    out.push_str("\t\tMin\t\tAvg\t\tMax\t\tTotal Calls\n\t\t========\t========\t========\t============\n");
    for call in CALLS.iter().filter(|call| !stats.ignored.contains(call)) {
        let mut latency = Histogram::default();
        for found in report.calls.iter().filter(|found| found.group == group && found.call == **call) {
            latency.merge(&found.latency);
        }
        let Some(mean) = latency.mean_ns() else { continue };
        let [minimum, mean, maximum] = [latency.min_ns() as f64, mean, latency.max_ns() as f64].map(|ns| ns / 1e6);
        line(out, format_args!("[{call:>7}]\t{minimum:.6}\t{mean:.6}\t{maximum:.6}\t{:>12}", latency.count()));
        if stats.ranges.is_empty() {
            line(out, format_args!("   -"));
            continue;
        }
        for (index, ((from, to), count)) in stats.ranges.iter().zip(in_ranges(&latency, &stats.ranges)).enumerate() {
            line(out, format_args!("\t\t msec_range[{index}]\t{from:.6} - {to:.6} : {count:>8}"));
        }
        out.push('\n');
    }
}

/// How many values fall into each range of milliseconds; the first that holds a value has it. The histogram's error
/// (0.4 %) is that of the ranges' ends.
fn in_ranges(latency: &Histogram, ranges: &[(f64, f64)]) -> Vec<u64> {
    let mut counts = vec![0; ranges.len()];
    for (bucket, count) in latency.buckets() {
        let (low, next) = bounds_of(*bucket as usize);
        let middle_ms = (low as f64 + next as f64 - 1.0) / 2.0 / 1e6;
        if let Some(index) = ranges.iter().position(|(from, to)| (*from..=*to).contains(&middle_ms)) {
            counts[index] += count;
        }
    }
    counts
}

fn group_settings(out: &mut String, group: &Group) {
    let on = |flag| if flag { "on" } else { "off" };
    let (read, write) = (&group.read, &group.write);
    let skip = read.skip_bytes.unwrap_or(0);
    line(out, format_args!("\t num_threads      = {}\n\t", group.threads));
    line(out, format_args!("\t read_random      = {}", on(read.random)));
    line(out, format_args!("\t read_size        = {}\t({})", read.size_bytes, size(read.size_bytes as f64)));
    line(out, format_args!("\t read_blocksize   = {}\t({})", read.block_bytes, size(read.block_bytes as f64)));
    line(out, format_args!("\t read_skip        = {}", on(read.skip_bytes.is_some())));
    line(out, format_args!("\t read_skipsize    = {skip}\t({})\n\t", size(skip as f64)));
    line(out, format_args!("\t write_random     = {}", on(write.random)));
    line(out, format_args!("\t write_size       = {}\t({})", write.size_bytes, size(write.size_bytes as f64)));
    line(out, format_args!("\t fsync_file       = {}", u8::from(write.fsync)));
    line(out, format_args!("\t write_blocksize  = {}\t({})", write.block_bytes, size(write.block_bytes as f64)));
    line(out, format_args!("\t wait time        = {}", group.delay.as_millis()));
    if let Some(bound) = group.bound_to {
        line(out, format_args!("\t\n\t bound to fs {bound}"));
    }
    line(out, format_args!("\t\n\t op weights"));
    let total: u64 = group.weights.iter().map(|(_, weight)| u64::from(*weight)).sum();
    for op in Op::ALL {
        let weight =
            group.weights.iter().find(|(weighted, _)| *weighted == op).map_or(0, |(_, weight)| u64::from(*weight));
        line(out, format_args!("\t {:>20} = {weight} ({:.2}%)", op.name(), percent(weight, total)));
    }
    line(out, format_args!("\t"));
}

fn filesystem_settings(out: &mut String, profile: &Profile, filesystem: &Filesystem) {
    let on = |flag| if flag { "on" } else { "off" };
    line(out, format_args!("FileSystem {}\n==========", filesystem.location));
    line(out, format_args!("\t num_dirs         = {}", filesystem.directories));
    match filesystem.amount {
        Amount::Files(files) => line(out, format_args!("\t starting files   = {files}\n\t")),
        Amount::Bytes(bytes) => line(out, format_args!("\t starting size    = {bytes}\t({})\n\t", size(bytes as f64))),
        Amount::Utilization(share) => line(out, format_args!("\t starting util    = {:.2}%\n\t", share * 100.0)),
    }
    let (minimum, maximum) = match &filesystem.sizes {
        SizeDistribution::Fixed(bytes) => (*bytes, *bytes),
        SizeDistribution::Uniform { minimum, maximum } => (*minimum, *maximum),
        SizeDistribution::Weighted(weights) => {
            line(out, format_args!("\t Fileset weight:"));
            let total: u64 = weights.iter().map(|(_, weight)| u64::from(*weight)).sum();
            for (bytes, weight) in weights {
                let share = percent(u64::from(*weight), total);
                line(out, format_args!("\t\t {bytes:>12} ({:>6}) -> {weight} ({share:.2}%)", size(*bytes as f64)));
            }
            (0, 0)
        }
        SizeDistribution::Gamma { .. } | SizeDistribution::Lognormal { .. } => (0, 0),
    };
    if matches!(filesystem.sizes, SizeDistribution::Fixed(_) | SizeDistribution::Uniform { .. }) {
        line(out, format_args!("\t min file size    = {minimum}\t({})", size(minimum as f64)));
        line(out, format_args!("\t max file size    = {maximum}\t({})", size(maximum as f64)));
    }
    line(out, format_args!("\t directio         = {}", on(profile.direct)));
    line(out, format_args!("\t alignedio        = {}", on(profile.aligned)));
    line(out, format_args!("\t bufferedio       = off\n\t"));
    line(out, format_args!("\t aging is {}", on(filesystem.ageing.is_some())));
    if let Some(ageing) = &filesystem.ageing {
        line(out, format_args!("\t desired utilization = {:.2}%\n\t ", ageing.utilization * 100.0));
        line(out, format_args!("\t Aging ThreadGroup for fs {}\n\t ================", filesystem.location));
        group_settings(out, &ageing.group);
    }
    line(out, format_args!("\t"));
}

/// Bytes as FFSB prints them: three significant digits and B, KB, MB or GB (1024-based).
fn size(bytes: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1024.0 * 1024.0 * 1024.0, "GB"), (1024.0 * 1024.0, "MB"), (1024.0, "KB")];
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| bytes >= *unit).unwrap_or((1.0, "B"));
    format!("{}{name}", three_digits(bytes / unit))
}

/// C's `%.3g`.
fn three_digits(value: f64) -> String {
    let scientific = format!("{value:.2e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("{:e} writes an exponent");
    let exponent: i32 = exponent.parse().expect("{:e} writes a number");
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..3).contains(&exponent) {
        let decimals = usize::try_from(2 - exponent).expect("at most 6");
        return trimmed(&format!("{value:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_printf_has_them() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (999.4, "999"),
            (999.6, "1e+03"),
            (1023.0, "1.02e+03"),
            (0.05, "0.05"),
            (12.34, "12.3"),
        ] {
            assert_eq!(three_digits(value), text);
        }
        assert_eq!(size(4096.0), "4KB");
        assert_eq!(size(1536.0 * 1024.0 * 1024.0), "1.5GB");
        assert_eq!(size(512.0), "512B");
    }

    #[test]
    fn every_value_is_in_the_first_range_that_holds_it() {
        let latency = Histogram::from_values(&[5_000, 15_000, 15_000, 2_000_000]);
        assert_eq!(in_ranges(&latency, &[(0.0, 0.01), (0.01, 0.02), (0.0, 1.0)]), [1, 2, 0]);
    }

    #[test]
    fn weights_are_named_after_their_operations() {
        for op in Op::ALL {
            assert_eq!(op.weight_keyword(), format!("{}_weight", op.name()));
        }
    }
}
