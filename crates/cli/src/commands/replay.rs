//! `fstone replay`: a recording in another directory, and how it compares.

use super::{
    Context, cancel_on_signals,
    record::{disturbed, open},
};
use crate::{
    args::{PaceWord, ReplayArguments},
    exit::Exit,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_files::OwnDirectory;
use fstone_lab::meters::Meters;
use fstone_model::{Histogram, load::ReplayReport, units::format_bytes, when::duration, workload::Replay};
use fstone_record::{CompileError, Pace, Program, ReplayError, Report, Settings};
use std::fmt::Write;

/// What a killed replay left begins with this, and is removed by the next.
const PREFIX: &str = "fstone-replay-";
/// What a replay that was complete kept.
const KEPT_PREFIX: &str = "fstone-kept-";

pub(crate) fn replay(_: &Context, arguments: &ReplayArguments) -> CommandResult {
    let pace = match (arguments.pace, arguments.speed) {
        (PaceWord::Think, speed) => Pace::Think(speed.unwrap_or(1.0)),
        (PaceWord::Clock, speed) => Pace::Clock(speed.unwrap_or(1.0)),
        (PaceWord::Full, None) => Pace::Full,
        (PaceWord::Full, Some(_)) => {
            return Err(Failure::new(Exit::BadInput, Replay::NO_WAITS));
        }
    };
    let cancel = cancel_on_signals()?;
    let mut reader = open(&arguments.file)?;
    let failed = || format!("cannot replay {}", arguments.file.display());
    let program = Program::compile(&mut reader, &cancel).map_err(|error| {
        let exit = if matches!(error, CompileError::Interrupted) { Exit::Interrupted } else { Exit::BadInput };
        Failure { exit, error: anyhow::Error::new(error).context(failed()) }
    })?;
    let above = &arguments.directory;
    let is_directory = match above.metadata() {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot use {}", above.display())).or_exit(Exit::BadInput);
        }
        found => found.is_ok_and(|found| found.is_dir()),
    };
    if !is_directory {
        return Err(Failure::new(Exit::BadInput, format!("{} is no directory", above.display())));
    }
    OwnDirectory::remove_left(above, PREFIX);
    let made = || format!("cannot make a directory in {}", above.display());
    let place = OwnDirectory::make(above, PREFIX).with_context(made).or_exit(Exit::LabFailed)?;
    let settings = Settings { pace, cold: arguments.cold, cancel: &cancel, witness: None, watch: &|_| {} };
    // Each open file of the recording is one of the replay.
    fstone_engine::raise_descriptor_limit();
    let meters = Meters::of_processors();
    let report = fstone_record::replay(&program, place.handle(), &settings).map_err(|error| {
        let exit = match &error {
            ReplayError::Room { .. } => Exit::NoRoom,
            ReplayError::Kernel => Exit::CannotHere,
            ReplayError::Interrupted(_) => Exit::Interrupted,
            ReplayError::Tree { .. } | ReplayError::Thread(_) => Exit::LabFailed,
        };
        Failure { exit, error: anyhow::Error::new(error).context("failed to replay the recording") }
    })?;
    let disturbed = disturbed(&meters.end());
    let failed = report.differing(ReplayReport::FAILED);
    if arguments.json {
        let mut figures = figures_of(&report);
        if failed.is_some() {
            figures.as_object_mut().into_iter().for_each(|all| all.retain(|key, _| OF_FAILED.contains(&key.as_str())));
        }
        terminal::print_document(&(serde_json::to_string_pretty(&figures).or_exit(Exit::LabFailed)? + "\n"));
    } else {
        terminal::print(&shown(&report, failed.is_some()));
    }
    if let Some(words) = disturbed.filter(|_| failed.is_none()) {
        terminal::tell(&fstone_report::wrap(words, terminal::width()).join("\n"));
    }
    if arguments.keep {
        let made = place.path().to_owned();
        let failed = || format!("the files are in {}, which the next replay removes: cannot rename it", made.display());
        let kept = place.keep_as(KEPT_PREFIX).with_context(failed).or_exit(Exit::LabFailed)?;
        terminal::tell(&format!("the files are in {}\n", kept.display()));
    }
    match failed {
        Some(words) => {
            Err(Failure::new(Exit::NothingCompleted, format!("{words}, so it is another load: it has no times")))
        }
        None => Ok(Exit::Success),
    }
}

/// What is printed of a replay that differs too much to be one.
const OF_FAILED: [&str; 4] = ["calls", "differences", "unexplained", "left_out"];

/// Without times if it `failed`.
fn shown(report: &Report, failed: bool) -> String {
    let mut text = String::new();
    if !failed {
        times(report, &mut text);
    }
    let mut line = |key: &str, value: String| fact(&mut text, key, &value);
    for (why, count) in &report.left_out {
        line("left out", format!("{count} {why}"));
    }
    line("differences", format!("{} calls returned something else than recorded", report.differences));
    if report.unexplained < report.differences {
        let lacking = report.differences - report.unexplained;
        line("", format!("{lacking} of them because one of the filesystems lacks what they ask for"));
    }
    for one in &report.first {
        line("", one.to_string());
    }
    if failed {
        return text;
    }
    if let Some(words) = report.differing(ReplayReport::DOUBTFUL) {
        line("doubtful", format!("its times, because {words}"));
    }
    table(report, &mut text);
    text
}

fn fact(text: &mut String, key: &str, value: &str) {
    let _ = write!(text, "{}", fstone_report::fact(key, value, terminal::width()));
}

fn times(report: &Report, text: &mut String) {
    let mut line = |key: &str, value: String| fact(text, key, &value);
    let here = duration(report.elapsed_ns);
    line(
        "time",
        match (report.not_comparable, report.expected_ns) {
            (None, Some(ns)) => {
                format!("{here}, {:.2} × that of the application", report.elapsed_ns as f64 / ns.max(1) as f64)
            }
            (why, _) => format!("{here}; the application's is not known: {}", why.unwrap_or_default()),
        },
    );
    if let Some(expected_ns) = report.expected_ns {
        let cost = match (report.recorded_ns, report.not_comparable) {
            (Some(ns), _) => format!("; {} with what recording cost", duration(ns)),
            (None, Some(_)) => " with what strace cost".to_owned(),
            (None, None) => String::new(),
        };
        line("recorded", duration(expected_ns) + &cost);
    }
    if report.is_cut {
        line("cut", "the recording was not finished, or is damaged: what it has was replayed".to_owned());
    }
    line("made durable", format!("{} afterwards", duration(report.sync_ns)));
    line("set-up", duration(report.setup_ns));
    let calls = report.calls();
    line("calls", format!("{calls}, {:.0} per second", calls as f64 / (report.elapsed_ns.max(1) as f64 / 1e9)));
    let [in_calls, think, waited] = [report.calls_ns, report.think_ns, report.waited_ns].map(duration);
    line(
        "threads",
        format!("{}: {in_calls} in calls, {think} between them, {waited} waiting for others' calls", report.threads),
    );
    if report.late > 0 {
        line("late", format!("{} calls, by more than 1 ms", report.late));
    }
    if report.extra > 0 {
        let took = duration(report.extra_ns);
        line("extra", format!("{} calls more, to stay in the directory: {took}, taken out of latencies", report.extra));
    }
}

fn table(report: &Report, text: &mut String) {
    let _ = write!(text, "\n{:40}{:^24}{:>13}\n", "", "here", "recorded");
    let _ = write!(text, "  {:<15}{:>7}{:>7}{:>9}", "call", "calls", "failed", "bytes");
    for word in ["p50", "p99", "sum", "p50", "sum"] {
        let _ = write!(text, " {word:>7}");
    }
    text.push('\n');
    for (kind, one) in &report.kinds {
        let bytes = if one.bytes > 0 { format_bytes(one.bytes) } else { String::new() };
        let _ = write!(text, "  {:<15}{:>7}{:>7}{bytes:>9}", kind.name(), one.calls, one.failed);
        let ([p50, p99, sum], [recorded, _, recorded_sum]) = (figures(&one.latency), figures(&one.recorded));
        for figure in [p50, p99, sum, recorded, recorded_sum] {
            let _ = write!(text, " {figure:>7}");
        }
        text.push('\n');
    }
}

fn figures_of(report: &Report) -> serde_json::Value {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let kinds = report.kinds.iter().map(|(kind, one)| {
        let at = |percent: f64| one.latency.percentile_ns(percent).map(|ns| ns / 1e9);
        let value = serde_json::json!({
            "calls": one.calls, "failed": one.failed, "bytes": one.bytes, "different": one.different,
            "p50_seconds": at(50.0), "p99_seconds": at(99.0), "sum_seconds": one.latency.sum_ns() as f64 / 1e9,
        });
        (kind.name().to_owned(), value)
    });
    serde_json::json!({
        "seconds": seconds(report.elapsed_ns), "sync_seconds": seconds(report.sync_ns),
        "durable_seconds": seconds(report.elapsed_ns + report.sync_ns),
        "recorded_seconds": report.expected_ns.filter(|_| report.not_comparable.is_none()).map(seconds),
        "not_comparable": report.not_comparable,
        "setup_seconds": seconds(report.setup_ns), "calls": report.calls(),
        "calls_per_second": report.calls() as f64 / seconds(report.elapsed_ns.max(1)),
        "threads": report.threads, "in_calls_seconds": seconds(report.calls_ns),
        "think_seconds": seconds(report.think_ns), "waited_seconds": seconds(report.waited_ns),
        "cut": report.is_cut, "late": report.late, "extra_seconds": seconds(report.extra_ns), "extra_calls": report.extra, "differences": report.differences,
        "unexplained": report.unexplained,
        "doubtful": report.differing(ReplayReport::DOUBTFUL),
        "left_out": report.left_out, "kinds": kinds.collect::<serde_json::Map<_, _>>(),
    })
}

fn figures(histogram: &Histogram) -> [String; 3] {
    if histogram.count() == 0 {
        return ["-"; 3].map(str::to_owned);
    }
    let at = |percent: f64| duration(histogram.percentile_ns(percent).unwrap_or(0.0) as u64);
    [at(50.0), at(99.0), duration(u64::try_from(histogram.sum_ns()).unwrap_or(u64::MAX))]
}
