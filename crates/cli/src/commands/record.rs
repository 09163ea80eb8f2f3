//! `fstone record`: a program as it runs, and what a recording shows.

use super::Context;
use crate::{
    args::{RecordAction, RecordArguments},
    exit::{self, Exit},
    paths, signals,
    terminal::{self, Bar, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_files::{FileIdentity, create_file};
use fstone_lab::meters::{Meters, Readings};
use fstone_model::{text, units::format_bytes, when::duration};
use fstone_record::{
    Call, Ending, Group, IMPLICIT, INHERITED, Import, ImportError, Kind, ReadError, Reader, RecordError, Start,
    Summary, Touched, Unknown, Wanted,
};
use fstone_report::{Grid, Sheet, wrap};
use std::cell::RefCell;
use std::fmt::Write;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A tree that is listed sooner needs no progress.
const SILENCE: Duration = Duration::from_secs(2);
/// Of the files, in `show`.
const MOST_FILES: usize = 10;

pub(crate) fn record(_: &Context, arguments: &RecordArguments) -> CommandResult {
    match &arguments.action {
        Some(RecordAction::Show { file, calls, html }) => return if *calls { list(file) } else { show(file, *html) },
        Some(RecordAction::Import { file, output, under, lenient }) => {
            return imported(file, output.as_deref(), under, *lenient);
        }
        None => {}
    }
    if let Some(pid) = arguments.pid.filter(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
        return Err(Failure::new(Exit::BadInput, format!("no process has the number {pid}")));
    }
    let of_process = |name: &str| arguments.pid.map(|pid| PathBuf::from(format!("/proc/{pid}/{name}")));
    let program =
        of_process("exe").and_then(|exe| exe.read_link().ok()).or(arguments.command.first().map(PathBuf::from));
    let program = program.as_deref().and_then(Path::file_name).unwrap_or("process".as_ref());
    let output = arguments.output.clone().unwrap_or_else(|| PathBuf::from(program).with_added_extension("rec"));
    let (file, identity) = made(&output)?;
    let command: Vec<Vec<u8>> = arguments.command.iter().map(|word| word.as_bytes().to_vec()).collect();
    let here = [of_process("cwd").unwrap_or_else(|| PathBuf::from("."))];
    let under = if arguments.under.is_empty() { &here[..] } else { &arguments.under };
    // A process that runs goes on, however its recording ends.
    let handled = if arguments.pid.is_some() {
        signals::cancel()
    } else {
        signals::leave_quit_to_program().and_then(|()| signals::cancel_unless_ignored())
    };
    handled.context("cannot handle signals").or_exit(Exit::LabFailed)?;
    let (began, bar) = (Instant::now(), RefCell::new(None));
    let meters = RefCell::new(None);
    let hint = if arguments.under.is_empty() { "; --under DIR limits it" } else { "" };
    let listing = |found: Option<u64>| {
        let mut bar = bar.borrow_mut();
        let Some(found) = found else {
            bar.take().iter().for_each(Bar::finish);
            // The program is about to begin. What is no child of this process counts as another program.
            *meters.borrow_mut() = arguments.pid.is_none().then(Meters::of_processors);
            return;
        };
        if began.elapsed() >= SILENCE {
            *bar = bar.take().or_else(Bar::spinning);
            if let Some(bar) = &*bar {
                bar.say(&format!("{found} files and directories are below {} so far{hint}", listed(under)));
                bar.tick();
            }
        }
    };
    let wanted = Wanted {
        command: &command,
        process: arguments.pid,
        under,
        hash_names: arguments.hash_names,
        data_entropy: arguments.data_entropy,
        cancel: signals::first(),
        listing: &listing,
    };
    let recorded = fstone_record::record(&wanted, file).map_err(|error| {
        // Nothing is in it, unless it could not be written to its end.
        if !matches!(error, RecordError::Write { .. }) {
            discard(&output, identity);
        }
        let exit = match &error {
            RecordError::Root { .. } | RecordError::Program { .. } | RecordError::Word => Exit::BadInput,
            RecordError::Trace { .. } | RecordError::Join { .. } => Exit::CannotHere,
            RecordError::Cancelled => Exit::Interrupted,
            RecordError::Write { .. } => Exit::LabFailed,
        };
        let failed = match &error {
            RecordError::Write { status: Some(status), .. } => {
                format!("the program {}; failed to record it", ended(*status))
            }
            _ => "failed to record".to_owned(),
        };
        Failure { exit, error: anyhow::Error::new(error).context(failed) }
    })?;
    let disturbed = meters.take().and_then(|meters| disturbed(&meters.end()));
    let [call, after] = recorded.overhead_ns;
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let mut text = format!(
        "recorded {} calls in {} to {} ({})\n\
         {} calls were stopped at, and took {} longer each ({} during it, {} after it; alone one takes {} ns): taken out of the times\n",
        recorded.calls,
        duration(recorded.elapsed_ns),
        output.display(),
        format_bytes(recorded.bytes),
        recorded.stops / 2,
        duration(call + after),
        duration(call),
        duration(after),
        recorded.bare_ns,
    );
    let uncertain = share(recorded.meanwhile, recorded.stops);
    if uncertain >= 0.5 {
        let _ = writeln!(
            text,
            "the times before {uncertain:.0} % of the stops are uncertain by {} on average: they came while recording, which was at work for \
             {:.0} % of the time, was so for another thread",
            duration(recorded.uncertain_ns),
            share(recorded.busy_ns, recorded.elapsed_ns),
        );
    }
    if recorded.unaccounted > 0 {
        let _ = writeln!(
            text,
            "when {} of the threads ran is not known, because a quarter of the limit of open files (ulimit -n) has no room for more: \
             times are less exact",
            recorded.unaccounted
        );
    }
    if let Some(words) = disturbed {
        let _ = writeln!(text, "{words}");
    }
    if recorded.calls == 0 {
        let _ = writeln!(
            text,
            "warning: the recording is empty: no call was about a file below {}; name the directory of the program's files with --under",
            listed(under)
        );
    }
    if recorded.status != 0 {
        let _ = writeln!(text, "the program {}", ended(recorded.status));
    }
    tell(&text);
    match recorded.status & 0x7f {
        0 if recorded.status == 0 => Ok(Exit::Success),
        // The program's, as a shell has it, and not one of fstone's own.
        0 => Ok(exit::of_program((recorded.status >> 8) as u8)),
        signal => Ok(exit::of_program(128 + signal as u8)),
    }
}

/// A warning, if other programs took so much of the processors that times are not to be relied on.
pub(super) fn disturbed(readings: &Readings) -> Option<&'static str> {
    // The kernel counts in ticks of 10 ms.
    const LEAST: Duration = Duration::from_millis(200);
    let cpu = readings.cpu.filter(|_| readings.elapsed >= LEAST)?;
    let figures = readings.figures();
    let value = |metric: &str| figures.iter().find(|figure| figure.metric == metric).map(|figure| figure.value);
    fstone_analysis::is_disturbed(value, cpu.cpus.into())?.then_some(
        "warning: other programs took more than a quarter of the machine's CPU time, which changes times: record and replay on a quiet \
         machine",
    )
}

fn listed(under: &[PathBuf]) -> String {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string();
    under.iter().map(absolute).collect::<Vec<_>>().join(" or ")
}

/// Each line as a paragraph.
fn tell(text: &str) {
    let lines: Vec<String> = text.lines().flat_map(|line| wrap(line, terminal::width())).collect();
    terminal::tell(&lines.join("\n"));
}

/// A new file for a recording.
fn made(output: &Path) -> Result<(File, Option<FileIdentity>), Failure> {
    paths::require_directory_of(output, " with -o")?;
    let failed = || format!("cannot make {}", output.display());
    let made = create_file(output, fstone_files::Owner::caller()).with_context(failed).or_exit(Exit::LabFailed)?;
    let Some(file) = made else {
        let words = format!("{} is there already: name another file with -o", output.display());
        return Err(Failure::new(Exit::BadInput, words));
    };
    let identity = file.metadata().map(|facts| FileIdentity::of(&facts)).ok();
    Ok((file, identity))
}

fn discard(output: &Path, identity: Option<FileIdentity>) {
    if std::fs::symlink_metadata(output).is_ok_and(|facts| identity.is_some_and(|own| own.is(&facts))) {
        let _ = std::fs::remove_file(output);
    }
}

fn imported(log: &Path, output: Option<&Path>, under: &[PathBuf], lenient: bool) -> CommandResult {
    let output = output
        .map_or_else(|| PathBuf::from(log.file_name().unwrap_or_default()).with_added_extension("rec"), Path::to_owned);
    let absolute = |path: &PathBuf| Ok(std::path::absolute(path)?.as_os_str().as_bytes().to_vec());
    let under: Vec<Vec<u8>> = under.iter().map(absolute).collect::<std::io::Result<_>>().or_exit(Exit::BadInput)?;
    let (file, identity) = made(&output)?;
    let imported = fstone_record::import(&Import { log, under: &under, lenient }, file).map_err(|error| {
        discard(&output, identity);
        let exit = match &error {
            ImportError::Read(cause) if cause.kind() != std::io::ErrorKind::NotFound => Exit::LabFailed,
            ImportError::Write(_) => Exit::LabFailed,
            _ => Exit::BadInput,
        };
        Failure { exit, error: anyhow::Error::new(error).context(format!("cannot import {}", log.display())) }
    })?;
    let mut text = format!(
        "imported {} calls of {} to {} ({})\n",
        imported.calls,
        imported.format,
        output.display(),
        format_bytes(imported.bytes),
    );
    if imported.left_out_lines > 0 {
        let _ = writeln!(text, "left out: {} lines of unknown form", imported.left_out_lines);
    }
    for unknown in not_known(&imported.unknown) {
        let _ = writeln!(text, "not known: {unknown}");
    }
    if imported.unknown.iter().any(|unknown| matches!(unknown, Unknown::OtherLogs { .. })) {
        let prefix = log.with_extension("");
        let _ = writeln!(
            text,
            "warning: the others' logs are beside it; put them together with `strace-log-merge {} >FILE` and import that, or log with -f",
            prefix.display()
        );
    }
    tell(&text);
    Ok(Exit::Success)
}

/// In words, with the option of strace that would have it.
fn not_known(all: &[Unknown]) -> Vec<String> {
    let is_of_strace = all.contains(&Unknown::StraceCost);
    let of_strace =
        |words: &str, option: &str| if is_of_strace { format!("{words} ({option})") } else { words.to_owned() };
    let words = |unknown: &Unknown| match unknown {
        Unknown::Times if is_of_strace => "times (-ttt)".to_owned(),
        Unknown::Times => "times, but for its waits".to_owned(),
        Unknown::Durations => of_strace("how long calls took", "-T"),
        Unknown::StraceCost => {
            "how much longer strace made calls and what is between them: times are as it saw them".to_owned()
        }
        Unknown::Descriptors => {
            of_strace("files that were open when the log began, and where relative names are", "-y")
        }
        Unknown::Children { count, follows } => {
            let cure = if *follows { "" } else { " (-f)" };
            format!("what children did of which the log has no line: {count}{cure}")
        }
        Unknown::OtherLogs { count } => {
            format!("what other processes did: {count} have logs of their own (strace -ff)")
        }
        Unknown::Unnamed { calls } => {
            format!("what calls were about that this strace has no name for ({}): they are counted", calls.join(", "))
        }
        Unknown::Umask => "the umask, until it is set: 022 is taken".to_owned(),
        Unknown::Tree => {
            "the tree: files that are used before they are made were there, as long as what is read of them".to_owned()
        }
        Unknown::LastLine => "what its last line was to be: it was cut, and is left out".to_owned(),
        Unknown::Results => "results: each call is taken to have done what it was to do".to_owned(),
        Unknown::Names => "calls about names".to_owned(),
        Unknown::Threads => "threads".to_owned(),
        Unknown::Opens => "when files were opened and closed".to_owned(),
        Unknown::Dropped => "what Darshan dropped beyond its memory".to_owned(),
        Unknown::MpiIo { count } => {
            format!("{count} accesses of MPI-IO, which are left out because POSIX has them too")
        }
    };
    all.iter().map(words).collect()
}

/// As wait(2) has it.
fn ended(status: i32) -> String {
    match status & 0x7f {
        0 => format!("ended with status {}", status >> 8 & 0xff),
        signal => format!("was ended by signal {signal}"),
    }
}

pub(crate) fn open(path: &Path) -> Result<Reader<BufReader<File>>, Failure> {
    Reader::open(path).map_err(|error| {
        let exit = match &error {
            ReadError::Read(cause) if cause.kind() != std::io::ErrorKind::NotFound => Exit::LabFailed,
            _ => Exit::BadInput,
        };
        Failure { exit, error: anyhow::Error::new(error).context(format!("cannot use {}", path.display())) }
    })
}

fn show(path: &Path, html: bool) -> CommandResult {
    let mut reader = open(path)?;
    let failed = || format!("cannot read {}", path.display());
    let summary = fstone_record::summarize(&mut reader).with_context(failed).or_exit(Exit::LabFailed)?;
    let mut sheet = Sheet::new(text::line(&path.file_name().unwrap_or_default().to_string_lossy()));
    shown(&mut sheet, &reader.start, &summary);
    terminal::print(&if html { sheet.html() } else { sheet.text(terminal::width()) });
    Ok(Exit::Success)
}

fn name(bytes: &[u8]) -> String {
    text::line(&String::from_utf8_lossy(bytes))
}

fn shown(sheet: &mut Sheet, start: &Start, summary: &Summary) {
    let mut line = |key, value| sheet.facts.push((key, value));
    let words: Vec<String> = start.command.iter().map(|word| name(word)).collect();
    if !words.is_empty() {
        line("command", words.join(" "));
    }
    let roots: Vec<String> = start.roots.iter().map(|root| name(root)).collect();
    line("directories", roots.join(", "));
    if !start.kernel.is_empty() {
        line("machine", format!("Linux {} on {}", text::line(&start.kernel), text::line(&start.architecture)));
    }
    line(
        "tree before",
        format!(
            "{} files and {} directories, {}{}{}",
            summary.files,
            summary.directories,
            format_bytes(summary.tree_bytes),
            if summary.links > 0 { format!(", {} links", summary.links) } else { String::new() },
            match summary.specials {
                0 => String::new(),
                specials => format!(", {specials} devices, pipes and sockets"),
            }
        ),
    );
    let cost = match start.not_comparable() {
        Some(_) => " with what strace cost",
        None if start.is_of_log() => "",
        None => " with what recording cost",
    };
    if start.has_times() {
        line("time", duration(summary.elapsed_ns) + cost);
    }
    let durations = if start.has_durations() {
        format!(": {} in calls, {} between them", duration(summary.took_ns), duration(summary.think_ns))
    } else {
        String::new()
    };
    line("threads", format!("{} in all, at most {} at once{durations}", summary.threads, summary.most_threads));
    line(
        "calls",
        format!(
            "{}; {} read, {} written",
            summary.calls,
            format_bytes(summary.read_bytes),
            format_bytes(summary.written_bytes)
        ),
    );
    if summary.measured_bytes > 0 {
        let share = 100.0 * summary.packed_bytes as f64 / summary.measured_bytes as f64;
        line("data written", format!("compresses to {share:.0} %"));
    }
    line("over time", bars(&summary.over_time));
    if summary.status.is_some_and(|status| status != 0) {
        line("program", ended(summary.status.unwrap_or_default()));
    }
    if let Some(Ending::Cut(at)) = summary.ending {
        line("cut", format!("the recording was not finished, or is damaged: it is good up to byte {at}"));
    }
    let seen = summary.read_bytes.saturating_add(summary.written_bytes);
    if summary.mapped_bytes > 0 {
        let share = 100.0 * summary.mapped_bytes as f64 / (summary.mapped_bytes as f64 + seen as f64);
        let mapped = format_bytes(summary.mapped_bytes);
        line(
            "not covered",
            format!("{mapped} were mapped, {share:.1} % of all bytes: what was used of it is not known"),
        );
    }
    if summary.queued_requests > 0 {
        line("not covered", format!("{} requests through io_uring or libaio", summary.queued_requests));
    }
    for group in &summary.groups {
        let calls = group.calls;
        match group.kind {
            Kind::Unreturned => {
                line("not covered", format!("{calls} calls that had not returned when their threads ended"));
            }
            Kind::PolledRing if group.failed < calls => {
                line("not covered", "requests of a polled ring (io_uring), number unknown".to_owned());
            }
            Kind::Lost => {
                line("not covered", format!("{calls} calls whose file had been closed: it is not known which"));
            }
            // These are said above, by their bytes or requests, or all failed.
            Kind::Map | Kind::Uring | Kind::Aio | Kind::PolledRing => {}
            kind if kind.is_uncovered() => line("not covered", format!("{calls} calls of {}", kind.name())),
            _ => {}
        }
    }
    if summary.outside_calls > 0 {
        let names: Vec<String> = summary.outside_names.iter().map(|one| name(one)).collect();
        let bytes = format_bytes(summary.outside_bytes);
        line(
            "outside",
            format!("{} calls ({bytes}) about other files: {}, …", summary.outside_calls, names.join(", ")),
        );
    }
    for unknown in not_known(&start.unknown) {
        line("not known", text::line(&unknown));
    }
    let of_group = |group: &Group| {
        let known = |ns: u64| if start.has_durations() { duration(ns) } else { "-".to_owned() };
        let at = |percent: f64| known(group.took.percentile_ns(percent).unwrap_or(0.0) as u64);
        let bytes = if group.bytes > 0 { format_bytes(group.bytes) } else { String::new() };
        let sum = known(u64::try_from(group.took.sum_ns()).unwrap_or(u64::MAX));
        let [calls, failed] = [group.calls, group.failed].map(|count| count.to_string());
        vec![group.kind.name().to_owned(), calls, failed, bytes, at(50.0), at(99.0), sum]
    };
    let columns =
        [("call", -16), ("calls", 9), ("failed", 7), ("bytes", 10), ("p50", 9), ("p99", 9), ("sum", 9)].to_vec();
    let rows = summary.groups.iter().map(of_group).collect();
    sheet.grids.push(Grid { name: "kind of call", columns, rows, more: None });
    let of_file = |(path, one): &(Vec<u8>, Touched)| {
        let path = if path.is_empty() { ".".to_owned() } else { name(path) };
        let [read, written] = [one.read_bytes, one.written_bytes].map(format_bytes);
        vec![one.calls.to_string(), read, written, format!(" {path}")]
    };
    let more = summary.touched.len().saturating_sub(MOST_FILES) as u64 + summary.further;
    let about = if summary.further > 0 { "about " } else { "" };
    sheet.grids.push(Grid {
        name: "file",
        columns: [("calls", 9), ("read", 10), ("written", 10), (" file", -1)].to_vec(),
        rows: summary.touched.iter().take(MOST_FILES).map(of_file).collect(),
        more: (more > 0).then(|| format!("… and {about}{more} other files")),
    });
}

/// Calls that began in each part of the time.
fn bars(counts: &[u64]) -> String {
    const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let height = |count: &u64| HEIGHTS[(count * 8).div_ceil(most) as usize];
    format!("│{}│", counts.iter().map(height).collect::<String>())
}

fn list(path: &Path) -> CommandResult {
    let mut reader = open(path)?;
    let failed = || format!("cannot read {}", path.display());
    while let Some(block) = reader.block().with_context(failed).or_exit(Exit::LabFailed)? {
        let mut text = String::new();
        for call in &block.calls {
            let place = |at: fstone_record::Place| match at.base {
                0 => format!(" \"{}\"", name(block.name(at))),
                base => format!(" #{base}/\"{}\"", name(block.name(at))),
            };
            let _ = writeln!(
                text,
                "{:>12.6} {:>4} {:<14}{}{}{}{} = {}  <{:.6}> after {:.6}",
                call.begin_ns as f64 / 1e9,
                call.thread,
                call.kind.name(),
                call.at.map(place).unwrap_or_default(),
                call.to.map(place).unwrap_or_default(),
                numbers(call),
                note(call),
                call.result,
                call.took_ns as f64 / 1e9,
                call.think_ns as f64 / 1e9
            );
        }
        terminal::print(&text);
    }
    Ok(Exit::Success)
}

fn numbers(call: &Call) -> String {
    let mut text = String::new();
    for (what, value) in [(" #", call.file), (" → #", call.other)] {
        if value != 0 {
            let _ = write!(text, "{what}{value}");
        }
    }
    for (what, value) in [("length", call.length as i64), ("offset", call.offset), ("other offset", call.other_offset)]
    {
        if value != 0 {
            let _ = write!(text, " {what} {value}");
        }
    }
    let flags = call.flags & !(INHERITED | IMPLICIT);
    if flags != 0 {
        let _ = write!(text, " flags {flags:#o}");
    }
    text
}

const fn note(call: &Call) -> &'static str {
    match call.kind {
        Kind::Open if call.flags & INHERITED != 0 => " (inherited)",
        Kind::Close if call.flags & IMPLICIT != 0 => " (implicit)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_lab::meters::CpuTimes;

    #[test]
    fn other_programs_are_those_that_are_neither_this_one_nor_the_kernel() {
        let readings = |user: u64, own_ms: u64, kernel_ms: u64, ms: u64| Readings {
            elapsed: Duration::from_millis(ms),
            cpu: Some(CpuTimes { user, idle: ms / 5 - user, cpus: 2, ..CpuTimes::default() }),
            trial: Some(Duration::from_millis(own_ms)),
            kernel_threads: Some(Duration::from_millis(kernel_ms)),
            ..Readings::default()
        };
        // Of two processors in a second, one and a half.
        assert!(disturbed(&readings(150, 500, 300, 1000)).is_some_and(|words| words.starts_with("warning: ")));
        for quiet in [readings(150, 700, 300, 1000), readings(150, 1500, 0, 1000), readings(30, 0, 0, 150)] {
            assert_eq!(disturbed(&quiet), None, "{quiet:?}");
        }
    }
}
