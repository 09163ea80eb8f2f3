//! `fstone sysbench fileio …`: sysbench's command lines, unchanged, in the working directory.

use super::{Context, cancel_on_signals, fresh_seed, load};
use crate::{
    args::SysbenchArguments,
    exit::Exit,
    terminal::{self, CommandResult, OrExit},
};
use fstone_engine::{Observer, Ownership, Progress, RunOptions};
use fstone_formats::sysbench::{self, Command, Fileio, Interval};
use fstone_model::units;
use std::{path::Path, time::Duration};

pub(crate) fn sysbench(_context: &Context, arguments: &SysbenchArguments) -> CommandResult {
    let mut fileio = sysbench::parse(&arguments.words).or_exit(Exit::BadInput)?;
    if let Some(warnings) = &fileio.warnings {
        eprintln!("{warnings}\n");
    }
    let directory = Path::new(".");
    let cancel = cancel_on_signals()?;
    let seed = *fileio.seed.get_or_insert_with(fresh_seed);
    let lines = IntervalLines { fileio: &fileio };
    // As sysbench: its files are its own, whoever made them.
    let ownership = Ownership::Own;
    let options = RunOptions { seed, cancel: &cancel, observer: &lines, measure_null: false, ownership };
    match fileio.command {
        Command::Prepare => {
            terminal::print(&format!(
                "{} files, {} each, {} total\nCreating files for the test...\n",
                fileio.files,
                units::format_bytes(fileio.file_bytes),
                units::format_bytes(fileio.files.saturating_mul(fileio.file_bytes))
            ));
            let made = fstone_engine::prepare(&fileio.workload(), directory, &options).map_err(load::failure)?;
            terminal::print(&sysbench::prepared(made.bytes, made.elapsed));
            Ok(Exit::Success)
        }
        Command::Cleanup => {
            terminal::print("Removing test files...\n");
            for name in fileio.file_names() {
                match std::fs::remove_file(&name) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(anyhow::anyhow!("cannot remove {name}: {error}")).or_exit(Exit::LabFailed);
                    }
                    _ => {}
                }
            }
            Ok(Exit::Success)
        }
        Command::Run => {
            terminal::print(&sysbench::header(&fileio));
            let report = fstone_engine::run(&fileio.workload(), directory, &options).map_err(load::failure)?;
            terminal::print(&sysbench::print(&fileio, &report));
            Ok(load::exit_of(&report))
        }
    }
}

/// Prints a line per `--report-interval`.
struct IntervalLines<'a> {
    fileio: &'a Fileio,
}

impl Observer for IntervalLines<'_> {
    fn progress(&self, progress: &Progress) {
        if self.fileio.report_interval.is_none() || progress.phase == "setup" || progress.interval == Duration::ZERO {
            return;
        }
        let interval = Interval {
            elapsed: progress.elapsed,
            length: progress.interval,
            read_bytes: progress.interval_read_bytes,
            written_bytes: progress.interval_written_bytes,
            fsyncs: progress.interval_fsyncs,
            latency: progress.latency.clone(),
        };
        terminal::print(&(sysbench::interval_line(self.fileio, &interval) + "\n"));
    }
}
