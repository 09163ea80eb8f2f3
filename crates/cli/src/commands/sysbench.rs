//! `fstone sysbench fileio …`: sysbench's command lines, unchanged, in the working directory.

use super::{Context, cancel_on_signals, fresh_seed, load};
use crate::{
    args::SysbenchArguments,
    exit::Exit,
    paths,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_engine::{Observer, Ownership, Progress, RunOptions, errno_words};
use fstone_formats::sysbench::{self, Asked, Command, Fileio, Interval, Unready};
use fstone_model::workload::Existing;
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};
use std::{path::Path, time::Duration};

pub(crate) fn sysbench(_context: &Context, arguments: &SysbenchArguments) -> CommandResult {
    let exit = |exit| match exit {
        Exit::BadInput | Exit::NothingCompleted | Exit::LabFailed | Exit::NoRoom | Exit::CannotHere => {
            Exit::FAILED_AS_SYSBENCH
        }
        other => other,
    };
    carry_out(arguments).map(exit).map_err(|failure| Failure { exit: exit(failure.exit), ..failure })
}

fn carry_out(arguments: &SysbenchArguments) -> CommandResult {
    match sysbench::asked(&arguments.words) {
        Some(Asked::Help) => {
            terminal::print(&sysbench::help());
            return Ok(Exit::Success);
        }
        Some(Asked::Version) => {
            terminal::print(&sysbench::version());
            return Ok(Exit::Success);
        }
        None => {}
    }
    let mut fileio = sysbench::parse(&arguments.words).or_exit(Exit::BadInput)?;
    if let Some(warnings) = &fileio.warnings {
        terminal::tell(&format!("{warnings}\n"));
    }
    let directory = Path::new(".");
    let cancel = cancel_on_signals()?;
    let seed = *fileio.seed.get_or_insert_with(fresh_seed);
    let lines = IntervalLines { fileio: &fileio };
    // As sysbench: its files are its own, whoever made them.
    let ownership = Ownership::AsWritten;
    let options = RunOptions { seed, cancel: &cancel, observer: &lines, measure_null: false, ownership };
    match fileio.command {
        Command::Prepare => {
            terminal::print(&sysbench::header(&fileio));
            let length = |name: &String| std::fs::metadata(name).ok().map(|file| file.len());
            let before: Vec<_> = fileio.file_names().map(|name| (length(&name), name)).collect();
            let made = fstone_engine::prepare(&fileio.workload(), directory, &options).map_err(load::failure)?;
            for (there, name) in before {
                terminal::print(&sysbench::preparing(&name, there, fileio.file_bytes));
            }
            terminal::print(&sysbench::prepared(made.written_bytes, made.elapsed));
            Ok(Exit::Success)
        }
        Command::Cleanup => {
            terminal::print(&sysbench::header(&fileio));
            for name in fileio.file_names() {
                let removed = paths::remove_file(Path::new(&name));
                removed.with_context(|| format!("cannot remove {name}")).or_exit(Exit::LabFailed)?;
            }
            Ok(Exit::Success)
        }
        Command::Run => {
            terminal::print(&sysbench::header(&fileio));
            if let Some((name, why)) = unready(&fileio) {
                terminal::print(&sysbench::unready(&fileio, &name, &why));
                return Ok(Exit::NothingCompleted);
            }
            terminal::print(sysbench::STARTED);
            let ended = load::EndedLoad::of(fstone_engine::run(&fileio.workload(), directory, &options))?;
            ended.tell_warnings();
            terminal::print(&sysbench::print(&fileio, &ended.report));
            Ok(ended.exit(Exit::Interrupted))
        }
    }
}

/// The first file that is not there, is too short, or cannot be opened, for a test that does not make its files.
fn unready(fileio: &Fileio) -> Option<(String, Unready)> {
    let workload = fileio.workload();
    if workload.filesets.iter().all(|fileset| fileset.existing != Existing::Require) {
        return None;
    }
    let actions = workload.phases.iter().flat_map(|phase| &phase.groups).flat_map(|group| group.actions.all());
    // Unlike sysbench, a test that only reads asks for no more.
    let writes = actions.map(|action| action.operation.nature()).any(|nature| nature.writes());
    let mut flags = OFlags::CLOEXEC | OFlags::NONBLOCK | if writes { OFlags::RDWR } else { OFlags::RDONLY };
    flags.set(OFlags::DIRECT, workload.io.direct);
    fileio.file_names().find_map(|name| {
        let missing = |errno: Errno| Unready::Missing(errno.raw_os_error(), errno_words(errno));
        let why = match std::fs::metadata(&name) {
            Err(error) => missing(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
            Ok(found) if found.is_dir() => missing(Errno::ISDIR),
            Ok(found) if found.is_file() && found.len() < fileio.file_bytes => Unready::Short(found.len()),
            Ok(_) => missing(rustix::fs::open(&name, flags, Mode::empty()).err()?),
        };
        Some((name, why))
    })
}

struct IntervalLines<'a> {
    fileio: &'a Fileio,
}

impl Observer for IntervalLines<'_> {
    fn progress(&self, progress: &Progress) {
        if self.fileio.report_interval.is_none() || progress.phase == "setup" || progress.interval == Duration::ZERO {
            return;
        }
        let mut latency = progress.latency.clone();
        if self.fileio.counts_fsyncs() {
            latency.merge(&progress.fsync_latency);
        }
        let interval = Interval {
            elapsed: progress.elapsed,
            length: progress.interval,
            read_bytes: progress.interval_read_bytes,
            written_bytes: progress.interval_written_bytes,
            fsyncs: progress.interval_fsyncs,
            latency,
        };
        terminal::print(&(sysbench::interval_line(self.fileio, &interval) + "\n"));
    }
}
