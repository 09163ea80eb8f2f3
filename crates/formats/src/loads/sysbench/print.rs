//! What sysbench 1.0 prints, in its order and under its names, so that scripts that read it go on working.
//!
//! The latencies of reads, writes and fsyncs apart come after everything else, in lines that have none of the words
//! (`min:`, `avg:`, `95th percentile:`) by which scripts find the one of all together.

use super::{
    Command, Fileio, IoMode, TestMode,
    workload::{READ, WRITE},
};
use fstone_model::{Histogram, LoadReport, histogram::bounds_of, load::ThreadReport};
use std::{fmt::Write as _, time::Duration};

const MEBIBYTE: f64 = 1024.0 * 1024.0;

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("writing to a string");
}

pub fn header(fileio: &Fileio) -> String {
    let mut out = super::version() + "\n";
    match fileio.command {
        Command::Prepare => {
            let total = fileio.files.saturating_mul(fileio.file_bytes);
            let (files, each, all) = (fileio.files, fileio.file_bytes >> 10, total >> 20);
            line(&mut out, format_args!("{files} files, {each}Kb each, {all}Mb total\nCreating files for the test..."));
            line(&mut out, format_args!("Extra file open flags: {}", extra_flags(fileio)));
        }
        Command::Run => run_header(&mut out, fileio),
        Command::Cleanup => out.push_str("Removing test files...\n"),
    }
    out
}

/// What is printed of a file when `prepare` comes to it: how many bytes it has, if it is there, and how many it is to have.
pub fn preparing(name: &str, there: Option<u64>, wanted: u64) -> String {
    let what = match there {
        Some(bytes) if bytes >= wanted => "Reusing existing file",
        Some(1..) => "Extending existing file",
        _ => "Creating file",
    };
    format!("{what} {name}\n")
}

pub fn prepared(bytes: u64, elapsed: Duration) -> String {
    if bytes == 0 {
        return "No bytes written.\n".to_owned();
    }
    let seconds = elapsed.as_secs_f64();
    let rate = if seconds > 0.0 { bytes as f64 / MEBIBYTE / seconds } else { 0.0 };
    format!("{bytes} bytes written in {seconds:.2} seconds ({rate:.2} MiB/sec).\n")
}

fn run_header(out: &mut String, fileio: &Fileio) {
    line(out, format_args!("Running the test with following options:"));
    line(out, format_args!("Number of threads: {}", fileio.threads));
    if let Some(rate) = fileio.rate_per_second {
        line(out, format_args!("Target transaction rate: {rate}/sec"));
    }
    if let Some(interval) = fileio.report_interval {
        line(out, format_args!("Report intermediate results every {} second(s)", interval.as_secs()));
    }
    match fileio.seed {
        Some(seed) => line(out, format_args!("Initializing random number generator from seed ({seed}).\n")),
        None => line(out, format_args!("Initializing random number generator from current time\n")),
    }
    files(out, fileio);
}

/// What `run` prints between its header and results.
pub const STARTED: &str = "Initializing worker threads...\n\nThreads started!\n\n";

/// Why a file cannot be tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unready {
    /// With the error's number and text.
    Missing(i32, String),
    /// It has so many bytes.
    Short(u64),
}

/// What `run` prints behind its header in place of [`STARTED`] and results.
pub fn unready(fileio: &Fileio, name: &str, why: &Unready) -> String {
    let mut out = String::new();
    match why {
        Unready::Missing(errno, text) => {
            line(&mut out, format_args!("FATAL: Cannot open file '{name}' errno = {errno} ({text})"));
            line(&mut out, format_args!("WARNING: Did you forget to run the prepare step?"));
        }
        Unready::Short(bytes) => {
            let (is, wanted) = (size(*bytes), size(fileio.file_bytes));
            line(&mut out, format_args!("FATAL: Size of file '{name}' is {is}, but at least {wanted} is expected."));
            line(
                &mut out,
                format_args!("WARNING: Did you run 'prepare' with different --file-total-size or --file-num values?"),
            );
        }
    }
    out
}

/// As sysbench's `%.5g`: five digits, without zeros at the end.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut units = UNITS.iter();
    let mut unit = units.next().unwrap_or(&"");
    while value >= 1024.0 {
        (value, unit) = (value / 1024.0, units.next().unwrap_or(unit));
    }
    let text = format!("{value:.*}", 4 - (value.log10().max(0.0) as usize).min(3));
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn extra_flags(fileio: &Fileio) -> String {
    let flags: Vec<&str> =
        [(fileio.flags.sync, "sync"), (fileio.flags.dsync, "dsync"), (fileio.flags.direct, "directio")]
            .into_iter()
            .filter_map(|(on, name)| on.then_some(name))
            .collect();
    if flags.is_empty() { "(none)".to_owned() } else { flags.join(" ") }
}

fn files(out: &mut String, fileio: &Fileio) {
    let flags = extra_flags(fileio);
    line(out, format_args!("\nExtra file open flags: {flags}"));
    line(out, format_args!("{} files, {} each", fileio.files, size(fileio.file_bytes)));
    line(out, format_args!("{} total file size", size(fileio.files.saturating_mul(fileio.file_bytes))));
    line(out, format_args!("Block size {}", size(fileio.block_bytes)));
    if fileio.merged_requests > 0 {
        line(out, format_args!("Merging requests up to {} for sequential IO.", size(fileio.request_bytes())));
    }
    if fileio.mode.is_some_and(TestMode::random) {
        let limit = match fileio.limit {
            Some(super::Limit::Events(count) | super::Limit::Requests(count)) => count,
            None => 0,
        };
        line(out, format_args!("Number of IO requests: {limit}"));
        line(out, format_args!("Read/Write ratio for combined random IO test: {:.2}", fileio.rw_ratio));
    }
    if fileio.fsync.every > 0 {
        line(out, format_args!("Periodic FSYNC enabled, calling fsync() each {} requests.", fileio.fsync.every));
    }
    if fileio.fsync.at_end {
        line(out, format_args!("Calling fsync() at the end of test, Enabled."));
    }
    if fileio.fsync.all {
        line(out, format_args!("Calling fsync() after each write operation."));
    }
    let io = match fileio.io {
        IoMode::Sync => "synchronous",
        IoMode::Async => "asynchronous",
        IoMode::Mmap => "fast mmaped",
    };
    line(out, format_args!("Using {io} I/O mode"));
    if fileio.validate {
        line(out, format_args!("Using checksums validation."));
    }
    if let Some(mode) = fileio.mode {
        line(out, format_args!("Doing {} test", mode.name()));
    }
}

/// What was done since the last interval line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interval {
    /// Time since the start of the run.
    pub elapsed: Duration,
    /// Time since the last line.
    pub length: Duration,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub fsyncs: u64,
    /// Of all events, as [`Fileio::counts_fsyncs`] says.
    pub latency: Histogram,
}

/// The line of `--report-interval`, without a newline.
pub fn interval_line(fileio: &Fileio, interval: &Interval) -> String {
    let seconds = interval.length.as_secs_f64();
    let rate = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let within_writes = if fileio.fsync.all { interval.written_bytes / fileio.block_bytes.max(1) } else { 0 };
    format!(
        "[ {:.0}s ] reads: {:.2} MiB/s writes: {:.2} MiB/s fsyncs: {:.2}/s latency (ms,{}%): {:.3}",
        interval.elapsed.as_secs_f64(),
        rate(interval.read_bytes as f64 / MEBIBYTE),
        rate(interval.written_bytes as f64 / MEBIBYTE),
        rate((interval.fsyncs + within_writes) as f64),
        fileio.percentile.unwrap_or(0),
        percentile_ms(&interval.latency, fileio.percentile),
    )
}

/// A report's counts and latencies in sysbench's terms.
struct Figures {
    reads: u64,
    writes: u64,
    fsyncs: u64,
    events: u64,
    read_latency: Histogram,
    write_latency: Histogram,
    fsync_latency: Histogram,
    event_latency: Histogram,
}

impl Figures {
    fn of(fileio: &Fileio, report: &LoadReport) -> Self {
        let of_action = |name: &str| {
            let mut latency = Histogram::default();
            let mut count = 0;
            for operation in report.operations.iter().filter(|operation| operation.name == name) {
                count += operation.invocations;
                latency.merge(&operation.latency);
            }
            (count, latency)
        };
        let (reads, read_latency) = of_action(READ);
        let (writes, write_latency) = of_action(WRITE);
        let mut event_latency = read_latency.clone();
        event_latency.merge(&write_latency);
        // As the run counts them: towards its limit, and as what its threads did.
        let counts_fsyncs = fileio.counts_fsyncs();
        let mut fsync_latency = Histogram::default();
        let (mut periodic, mut at_end) = (0, 0);
        for fsyncs in &report.group_fsyncs {
            periodic += fsyncs.periodic;
            at_end += fsyncs.at_end;
            fsync_latency.merge(&fsyncs.latency);
            // Those at the end are no events.
            if counts_fsyncs && fsyncs.periodic > 0 {
                event_latency.merge(&fsyncs.latency);
            }
        }
        // With --file-fsync-all every write has an fsync of its own, inside its latency.
        let within_writes = if fileio.fsync.all { writes } else { 0 };
        if within_writes > 0 {
            for call in report.calls.iter().filter(|call| call.makes_durable()) {
                fsync_latency.merge(&call.latency);
            }
        }
        Self {
            reads,
            writes,
            fsyncs: periodic + at_end + within_writes,
            events: reads + writes + if counts_fsyncs { periodic } else { 0 },
            read_latency,
            write_latency,
            fsync_latency,
            event_latency,
        }
    }
}

pub fn print(fileio: &Fileio, report: &LoadReport) -> String {
    let figures = Figures::of(fileio, report);
    let mut out = String::new();
    if fileio.histogram {
        histogram(&mut out, &figures.event_latency);
    }
    let rate = |count: u64| report.per_second(count);
    line(&mut out, format_args!("\nFile operations:"));
    line(&mut out, format_args!("    reads/s:                      {:.2}", rate(figures.reads)));
    line(&mut out, format_args!("    writes/s:                     {:.2}", rate(figures.writes)));
    line(&mut out, format_args!("    fsyncs/s:                     {:.2}", rate(figures.fsyncs)));
    line(&mut out, format_args!("\nThroughput:"));
    line(&mut out, format_args!("    read, MiB/s:                  {:.2}", rate(report.read_bytes()) / MEBIBYTE));
    line(&mut out, format_args!("    written, MiB/s:               {:.2}", rate(report.written_bytes()) / MEBIBYTE));
    line(&mut out, format_args!("\nGeneral statistics:"));
    line(&mut out, format_args!("    total time:                          {:.4}s", report.elapsed_ns as f64 / 1e9));
    line(&mut out, format_args!("    total number of events:              {}", figures.events));
    latency(&mut out, fileio, &figures.event_latency);
    fairness(&mut out, fileio, report, &figures);
    apart(&mut out, fileio, &figures);
    for error in &report.errors {
        let (call, path, text, count) = (&error.call, &error.path, &error.text, error.count);
        line(&mut out, format_args!("FATAL: {call} of {path} failed: {text} (x{count})"));
    }
    out
}

fn milliseconds(ns: f64) -> f64 {
    ns / 1e6
}

fn percentile_ms(latency: &Histogram, percentile: Option<u32>) -> f64 {
    percentile.and_then(|percentile| latency.percentile_ns(f64::from(percentile))).map_or(0.0, milliseconds)
}

fn latency(out: &mut String, fileio: &Fileio, latency: &Histogram) {
    let sum = milliseconds(latency.sum_ns() as f64);
    line(out, format_args!("\nLatency (ms):"));
    line(out, format_args!("         min: {:>39.2}", milliseconds(latency.min_ns() as f64)));
    line(out, format_args!("         avg: {:>39.2}", latency.mean_ns().map_or(0.0, milliseconds)));
    line(out, format_args!("         max: {:>39.2}", milliseconds(latency.max_ns() as f64)));
    match fileio.percentile {
        Some(percentile) => {
            let value = percentile_ms(latency, fileio.percentile);
            line(out, format_args!("        {percentile:>3}th percentile: {value:>27.2}"));
        }
        None => line(out, format_args!("         percentile stats:               disabled")),
    }
    line(out, format_args!("         sum: {sum:>39.2}"));
}

fn fairness(out: &mut String, fileio: &Fileio, report: &LoadReport, figures: &Figures) {
    let threads = f64::from(fileio.threads.max(1));
    let spread = |values: &dyn Fn(usize) -> f64, mean: f64| {
        let squares: f64 = (0..report.per_thread.len()).map(|index| (values(index) - mean).powi(2)).sum();
        // What is not known is not printed as if it were.
        if report.per_thread.is_empty() { "-".to_owned() } else { format!("{:.2}", (squares / threads).sqrt()) }
    };
    let events = figures.events as f64 / threads;
    // Latencies of requests in flight together overlap. What of them is waiting for its turn in a rate is not known apart.
    let busy_ns = |thread: &ThreadReport| match fileio.io {
        IoMode::Async if thread.elapsed_ns > 0 => thread.busy_ns.min(thread.elapsed_ns),
        _ => thread.busy_ns,
    };
    let sum_ns = match report.per_thread.as_slice() {
        [] => figures.event_latency.sum_ns(),
        all => all.iter().map(|thread| u128::from(busy_ns(thread))).sum(),
    };
    let time = sum_ns as f64 / 1e9 / threads;
    let events_spread = spread(&|index| report.per_thread[index].operations as f64, events);
    let time_spread = spread(&|index| busy_ns(&report.per_thread[index]) as f64 / 1e9, time);
    line(out, format_args!("\nThreads fairness:"));
    line(out, format_args!("    events (avg/stddev):           {events:.4}/{events_spread}"));
    line(out, format_args!("    execution time (avg/stddev):   {time:.4}/{time_spread}\n"));
}

/// The latency of each kind of operation.
fn apart(out: &mut String, fileio: &Fileio, figures: &Figures) {
    let kinds = [("read", &figures.read_latency), ("write", &figures.write_latency), ("fsync", &figures.fsync_latency)];
    if kinds.iter().all(|(_, latency)| latency.count() == 0) {
        return;
    }
    line(out, format_args!("Latency by operation (ms):"));
    for (name, latency) in kinds.into_iter().filter(|(_, latency)| latency.count() > 0) {
        let minimum = milliseconds(latency.min_ns() as f64);
        let mean = latency.mean_ns().map_or(0.0, milliseconds);
        let maximum = milliseconds(latency.max_ns() as f64);
        let mut text = format!("    {name:<6} {:>10}   {minimum:.3} / {mean:.3} / {maximum:.3}", latency.count());
        if let Some(percent) = fileio.percentile {
            let value = percentile_ms(latency, fileio.percentile);
            write!(text, "   p{percent} {value:.3}").expect("writing to a string");
        }
        line(out, format_args!("{text}"));
    }
    line(out, format_args!("    (count, then minimum / mean / maximum)\n"));
}

/// Buckets of sysbench's histogram: 1024, evenly spaced by logarithm from 0.001 to 100000 ms.
const BUCKETS: usize = 1024;
const LOWEST_MS: f64 = 0.001;
const HIGHEST_MS: f64 = 100_000.0;
/// Asterisks of the fullest bucket.
const WIDTH: f64 = 40.0;

fn histogram(out: &mut String, latency: &Histogram) {
    let per_bucket = (HIGHEST_MS / LOWEST_MS).ln() / (BUCKETS - 1) as f64;
    let mut counts = vec![0u64; BUCKETS];
    for (bucket, count) in latency.buckets() {
        let (low, next) = bounds_of(*bucket as usize);
        let middle_ms = milliseconds((low as f64 + next as f64 - 1.0) / 2.0);
        let index = ((middle_ms / LOWEST_MS).max(1.0).ln() / per_bucket).round() as usize;
        counts[index.min(BUCKETS - 1)] += count;
    }
    let Some(fullest) = counts.iter().copied().max().filter(|fullest| *fullest > 0) else { return };
    line(out, format_args!("Latency histogram (values are in milliseconds)"));
    line(out, format_args!("       value  ------------- distribution ------------- count"));
    for (index, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
        let value = LOWEST_MS * (index as f64 * per_bucket).exp();
        let bar = "*".repeat((count as f64 * WIDTH / fullest as f64).round() as usize);
        line(out, format_args!("{value:>12.3} |{bar:<40} {count}"));
    }
    line(out, format_args!(" "));
}
