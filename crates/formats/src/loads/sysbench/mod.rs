//! `sysbench fileio` options, read into the workload; and its way of printing results.
//!
//! [`parse`] takes the arguments as they are typed, today's and those of 2004, and gives a [`Fileio`];
//! [`Fileio::workload`] is the load they describe, [`header`], [`interval_line`] and [`print()`] are what sysbench prints
//! before, during and after a run. `docs/formats/sysbench-fileio.md` says, option by option, what differs and why.
//!
//! The options were learnt from sysbench's documentation and from running it; no code is taken from it.

mod arguments;
mod format;
mod help;
pub mod options;
mod print;
#[cfg(test)]
mod tests;
mod workload;

pub use format::FORMAT;
pub use help::{Asked, asked, help, version};
pub use print::{Interval, STARTED, Unready, header, interval_line, prepared, preparing, print, unready};
pub use workload::{leaves_files, needs_files};

use crate::{Diagnostics, diagnostic::Diagnostic};
use arguments::Arguments;
use fstone_model::workload::MAXIMUM_THREADS;
use std::time::Duration;

/// All files are open at once, and this is the kernel's default limit for that (fs.nr_open).
const MAXIMUM_FILES: u64 = 1 << 20;
/// Every thread has a buffer of this size; more is a typing error.
const MAXIMUM_BLOCK: u64 = 1 << 30;
/// The most requests that the engine keeps in flight per thread.
const MAXIMUM_BACKLOG: u64 = 4096;
/// File offsets are signed.
const MAXIMUM_TOTAL: u64 = i64::MAX as u64;
/// A year; longer is a typing error.
const MAXIMUM_SECONDS: u64 = 366 * 24 * 3600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    Prepare,
    Run,
    Cleanup,
}

/// `--file-test-mode`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestMode {
    /// Sequential write, making the files.
    Seqwr,
    Seqrewr,
    Seqrd,
    Rndrd,
    Rndwr,
    Rndrw,
}

impl TestMode {
    /// How sysbench calls it in its output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seqwr => "sequential write (creation)",
            Self::Seqrewr => "sequential rewrite",
            Self::Seqrd => "sequential read",
            Self::Rndrd => "random read",
            Self::Rndwr => "random write",
            Self::Rndrw => "random r/w",
        }
    }

    pub const fn writes(self) -> bool {
        !matches!(self, Self::Seqrd | Self::Rndrd)
    }

    pub const fn random(self) -> bool {
        matches!(self, Self::Rndrd | Self::Rndwr | Self::Rndrw)
    }
}

/// `--file-io-mode`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoMode {
    /// pread and pwrite.
    Sync,
    /// Many requests in flight; sysbench uses libaio, fstone io_uring.
    Async,
    Mmap,
}

/// `--file-extra-flags`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtraFlags {
    pub sync: bool,
    pub dsync: bool,
    pub direct: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FsyncOptions {
    /// All files after every so many requests; 0 for never.
    pub every: u64,
    /// The file after every write.
    pub all: bool,
    /// All files by every thread at the end.
    pub at_end: bool,
    pub data_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// `--events`: reads, writes and periodic fsyncs together.
    Events(u64),
    /// `--max-requests`: reads and writes, as sysbench before 1.0 counted.
    Requests(u64),
}

/// A `sysbench fileio` command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Fileio {
    pub command: Command,
    pub files: u64,
    /// Size of each: the total divided by the number of files.
    pub file_bytes: u64,
    pub block_bytes: u64,
    /// Requests merged into one, in sequential modes; 0 for none.
    pub merged_requests: u64,
    /// The test; always there for [`Command::Run`].
    pub mode: Option<TestMode>,
    pub io: IoMode,
    /// Requests in flight per thread in [`IoMode::Async`].
    pub backlog: u32,
    pub flags: ExtraFlags,
    pub fsync: FsyncOptions,
    /// Reads per write in [`TestMode::Rndrw`].
    pub rw_ratio: f64,
    pub threads: u32,
    pub limit: Option<Limit>,
    pub time: Option<Duration>,
    pub rate_per_second: Option<u64>,
    pub report_interval: Option<Duration>,
    /// Which percentile of the latency to print, 1 to 100.
    pub percentile: Option<u32>,
    pub histogram: bool,
    /// Seed of the random numbers; drawn by the caller when `None`.
    pub seed: Option<u64>,
    pub validate: bool,
    pub warnings: Option<Diagnostics>,
}

/// Reads the arguments after `sysbench` (with or without `fileio`, which old command lines give as `--test=fileio`).
///
/// # Errors
/// Everything that is wrong with them, pointing into the command line. Warnings alone are no failure; they are in
/// [`Fileio::warnings`].
pub fn parse(args: &[String]) -> Result<Fileio, Diagnostics> {
    meaning(Arguments::read(args))
}

fn meaning(mut arguments: Arguments) -> Result<Fileio, Diagnostics> {
    let fileio = resolve(&mut arguments);
    let (mut fileio, warnings) = arguments.report.finish(fileio)?;
    fileio.warnings = warnings;
    Ok(fileio)
}

/// The command line's meaning; whether it is any good is in the report.
fn resolve(arguments: &mut Arguments) -> Fileio {
    let command = command(arguments);
    let mode = mode(arguments, command);
    let files = limited(arguments, "file-num", 1, MAXIMUM_FILES);
    let total = limited(arguments, "file-total-size", 1, MAXIMUM_TOTAL);
    let block_bytes = limited(arguments, "file-block-size", 1, MAXIMUM_BLOCK);
    let merged_requests = limited(arguments, "file-merged-requests", 0, MAXIMUM_BLOCK);
    let file_bytes = total / files;
    if file_bytes == 0 {
        let diagnostic = Diagnostic::error(arguments.span_of("file-total-size"), "files would be empty")
            .note(format!("{total} bytes in {files} files"));
        arguments.report.push(diagnostic);
    } else if !total.is_multiple_of(files) && command != Command::Cleanup {
        let diagnostic = Diagnostic::warning(
            arguments.span_of("file-total-size"),
            "the total is not a multiple of the number of files",
        )
        .note(format!("each has {file_bytes} bytes, and the load stays within them; sysbench runs past the last"));
        arguments.report.push(diagnostic);
    }
    if block_bytes.saturating_mul(merged_requests) > MAXIMUM_BLOCK {
        let message = format!("merged requests are larger than {MAXIMUM_BLOCK} bytes");
        let diagnostic = Diagnostic::error(arguments.span_of("file-merged-requests"), message);
        arguments.report.push(diagnostic);
    }
    let word = |name: &str| arguments.words(name).first().copied();
    let io = match word("file-io-mode") {
        Some("async") => IoMode::Async,
        Some("mmap") => IoMode::Mmap,
        _ => IoMode::Sync,
    };
    let data_only = word("file-fsync-mode") == Some("fdatasync");
    let flag = |name| arguments.words("file-extra-flags").contains(&name);
    let flags = ExtraFlags { sync: flag("sync"), dsync: flag("dsync"), direct: flag("direct") };
    if flags.direct && io == IoMode::Mmap && command != Command::Cleanup {
        let diagnostic = Diagnostic::error(arguments.span_of("file-extra-flags"), "direct I/O has no memory mappings")
            .context(arguments.span_of("file-io-mode"), "mapped here")
            .help("leave `direct` out, or choose --file-io-mode=sync or async");
        arguments.report.push(diagnostic);
    }
    let all = arguments.switch("file-fsync-all");
    let fsync = FsyncOptions {
        every: if all { 0 } else { arguments.number("file-fsync-freq") },
        all,
        at_end: !all && arguments.switch("file-fsync-end"),
        data_only,
    };
    let rw_ratio = match arguments.value("file-rw-ratio") {
        Some(arguments::Value::Decimal(ratio)) => ratio,
        _ => 0.0,
    };
    let (limit, time) = ends(arguments);
    let percentile = limited(arguments, "percentile", 0, 100);
    let histogram = arguments.switch("histogram");
    if histogram && percentile == 0 {
        let diagnostic =
            Diagnostic::error(arguments.span_of("histogram"), "--histogram cannot be used with --percentile=0");
        arguments.report.push(diagnostic);
    }
    Fileio {
        command,
        files,
        file_bytes,
        block_bytes,
        merged_requests,
        mode,
        io,
        backlog: narrow(limited(arguments, "file-async-backlog", 1, MAXIMUM_BACKLOG)),
        flags,
        fsync,
        rw_ratio,
        threads: narrow(limited(arguments, "threads", 1, MAXIMUM_THREADS)),
        limit,
        time,
        rate_per_second: Some(arguments.number("rate")).filter(|rate| *rate > 0),
        report_interval: some_seconds(limited(arguments, "report-interval", 0, MAXIMUM_SECONDS)),
        percentile: Some(narrow(percentile)).filter(|percentile| *percentile > 0),
        histogram,
        seed: Some(arguments.number("rand-seed")).filter(|seed| *seed > 0),
        validate: arguments.switch("validate"),
        warnings: None,
    }
}

fn command(arguments: &mut Arguments) -> Command {
    match arguments.command {
        Some("prepare") => Command::Prepare,
        Some("cleanup") => Command::Cleanup,
        Some(_) => Command::Run,
        None => {
            if !arguments.unknown_command {
                let missing = Diagnostic::error(arguments.end, "the command is missing");
                arguments.report.push(missing.label("expected prepare, run or cleanup"));
            }
            Command::Run
        }
    }
}

fn mode(arguments: &mut Arguments, command: Command) -> Option<TestMode> {
    let mode = match arguments.words("file-test-mode").first().copied() {
        Some("seqwr") => Some(TestMode::Seqwr),
        Some("seqrewr") => Some(TestMode::Seqrewr),
        Some("seqrd") => Some(TestMode::Seqrd),
        Some("rndrd") => Some(TestMode::Rndrd),
        Some("rndwr") => Some(TestMode::Rndwr),
        Some("rndrw") => Some(TestMode::Rndrw),
        _ => None,
    };
    // A mode that was given and is wrong has been reported already.
    if mode.is_none() && command == Command::Run && !arguments.report.has_errors() {
        let diagnostic = Diagnostic::error(arguments.end, "run needs a test mode")
            .help("add --file-test-mode=rndrw, or one of seqwr, seqrewr, seqrd, rndrd, rndwr");
        arguments.report.push(diagnostic);
    }
    mode
}

fn ends(arguments: &mut Arguments) -> (Option<Limit>, Option<Duration>) {
    let requests = Some(arguments.number("max-requests")).filter(|requests| *requests > 0);
    let events = Some(arguments.number("events")).filter(|events| *events > 0);
    let limit = requests.map(Limit::Requests).or(events.map(Limit::Events));
    let mut seconds = limited(arguments, "time", 0, MAXIMUM_SECONDS);
    match arguments.get("time") {
        // Lines with --max-requests were written for a sysbench without a default time limit.
        None if requests.is_some() => seconds = 0,
        // 1.0 takes --max-time=0 for not given.
        Some(given) if given.option.name == "max-time" && seconds == 0 && limit.is_none() => {
            if let Some(arguments::Value::Number(default)) = arguments::default("time") {
                seconds = default;
            }
        }
        _ => {}
    }
    if requests.is_some() {
        let diagnostic =
            Diagnostic::warning(arguments.span_of("max-requests"), "--max-requests counts reads and writes").note(
                "and sets no time limit by itself, as in sysbench before 1.0; --events counts periodic fsyncs too",
            );
        arguments.report.push(diagnostic);
    }
    if limit.is_none() && seconds == 0 && arguments.command == Some("run") {
        let diagnostic = Diagnostic::error(arguments.span_of("time"), "this run would never end")
            .help("limit it with --time=SECONDS or --events=NUMBER");
        arguments.report.push(diagnostic);
    }
    (limit, some_seconds(seconds))
}

fn some_seconds(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds)).filter(|time| !time.is_zero())
}

fn limited(arguments: &mut Arguments, name: &'static str, minimum: u64, maximum: u64) -> u64 {
    let number = arguments.number(name);
    if !(minimum..=maximum).contains(&number) {
        let diagnostic = Diagnostic::error(arguments.span_of(name), format!("--{name} is out of range"))
            .label(format!("expected {minimum} to {maximum}"));
        arguments.report.push(diagnostic);
    }
    number.clamp(minimum, maximum)
}

/// For numbers whose limit fits.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
