//! `fstone fio`: fio's command lines and job files, unchanged, in the working directory.

use super::{
    Context,
    load::{self, beside},
    now_unix_ns,
};
use crate::{
    args::FioArguments,
    documents,
    exit::Exit,
    paths,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_engine::Ownership;
use fstone_files::read_text;
use fstone_formats::{
    Source,
    fio::{self, Asked, CommandLine, Options, OutputFormat, Placement, Plan, When},
};
use fstone_model::LoadReport;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) fn fio(_context: &Context, arguments: &FioArguments) -> CommandResult {
    let line = fio::parse_command_line(&arguments.words).or_exit(Exit::BadInput)?;
    match line.asked {
        Some(Asked::Help) => {
            terminal::print(&fio::help());
            return Ok(Exit::Success);
        }
        Some(Asked::Version) => {
            terminal::print(&fio::version());
            return Ok(Exit::Success);
        }
        None => {}
    }
    let plan = plan(&line)?;
    if let Some(warnings) = &plan.warnings {
        terminal::tell(&format!("{warnings}\n"));
    }
    let mut groups = plan.workload.phases.iter().flat_map(|phase| &phase.groups).filter(|_| line.read_only);
    if let Some(group) =
        groups.find(|group| group.actions.all().iter().any(|action| action.operation.nature().changes()))
    {
        let why = format!("job {} writes, and --readonly says that none may", group.name);
        return Err(Failure::new(Exit::BadInput, why));
    }
    if line.parse_only {
        return Ok(Exit::Success);
    }
    // A directory that is mistyped, or whose filesystem is not mounted, must not be created by mistake.
    let mut directories =
        plan.jobs.iter().flat_map(|job| job.directories.iter().map(move |directory| (job, directory)));
    if let Some((job, directory)) = directories.find(|(_, directory)| !Path::new(directory).is_dir()) {
        let why =
            format!("the directory {directory} of {} does not exist; make it, or mount its filesystem first", job.name);
        return Err(Failure::new(Exit::BadInput, why));
    }
    // A missing directory must not cost the results.
    if let Some(file) = &line.output.file {
        paths::require_directory_of(Path::new(file), " with --output")?;
    }
    for prefix in plan.jobs.iter().flat_map(|job| &job.logs).flatten() {
        paths::require_directory_of(Path::new(prefix), " for the log")?;
    }
    let begun = Instant::now();
    // As with fio: the files that a job names belong to it, whoever made them, and directories may be anywhere.
    let ended = load::run(&plan.workload, Path::new("."), line.seed.or(plan.seed()), true, Ownership::ByName)?;
    let report = &ended.report;
    let when = when(begun, report);
    for warning in &report.warnings {
        terminal::tell(&format!("warning: {warning}\n"));
    }
    let text: String = line.output.formats.iter().map(|format| printed(*format, &plan, report, &when)).collect();
    match &line.output.file {
        None => terminal::print_document(&text),
        Some(file) => {
            if let Err(failure) = documents::write(Path::new(file), &text) {
                // What was measured is not lost.
                terminal::print_document(&text);
                return Err(failure);
            }
        }
    }
    for log in fio::logs(&plan, report) {
        documents::write(Path::new(&log.file), &log.text)?;
    }
    for error in &report.errors {
        terminal::tell(&format!("error: {} of {}: {} (x{})\n", error.call, error.path, error.text, error.count));
    }
    Ok(ended.exit(Exit::InterruptedAsFio))
}

fn plan(line: &CommandLine) -> Result<Plan, Failure> {
    let mut files = Vec::new();
    for name in &line.files {
        let text = read_text(Path::new(name)).with_context(|| format!("cannot read {name}"));
        files.push(Source::new(name, text.or_exit(Exit::BadInput)?));
    }
    let first = line.files.first().map_or_else(PathBuf::new, PathBuf::from);
    line.plan(
        &files,
        &mut Options {
            placement: Placement::AsWritten,
            sections: &line.sections,
            variable: &variable,
            size_of: &|path| std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|of| of.len()),
            loader: &mut beside(&first),
            seconds: None,
        },
    )
    .or_exit(Exit::BadInput)
}

/// A variable of the environment, or what `$ncpus` and its like are here.
fn variable(name: &str) -> Option<String> {
    match name {
        "$ncpus" => std::thread::available_parallelism().ok().map(|cpus| cpus.to_string()),
        "$pagesize" => Some(rustix::param::page_size().to_string()),
        "$mb_memory" => {
            let text = std::fs::read_to_string("/proc/meminfo").ok()?;
            let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
            let kib: u64 = total.trim().strip_suffix(" kB")?.parse().ok()?;
            Some((kib >> 10).to_string())
        }
        _ => std::env::var(name).ok(),
    }
}

fn printed(format: OutputFormat, plan: &Plan, report: &LoadReport, when: &When) -> String {
    match format {
        OutputFormat::Normal => fio::normal(plan, report, when),
        OutputFormat::Terse => fio::terse(plan, report),
        OutputFormat::Json => fio::json(plan, report, when, false),
        OutputFormat::JsonPlus => fio::json(plan, report, when, true),
    }
}

fn when(begun: Instant, report: &LoadReport) -> When {
    let now_ns = now_unix_ns();
    let elapsed_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    When {
        unix_ms: now_ns / 1_000_000,
        text: fstone_analysis::when::ctime(now_ns),
        elapsed_ns: elapsed_ns.saturating_sub(report.setup_ns),
    }
}
