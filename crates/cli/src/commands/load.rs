//! `fstone load`: the engine alone on a directory, with live figures.

use super::{Context, cancel_on_signals, claimed_device::ClaimedDevice, fresh_seed};
use crate::{
    args::LoadArguments,
    exit::Exit,
    launcher,
    progress::LiveLoad,
    studies::read_document,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::{Context as _, anyhow};
use fstone_engine::{LoadError, Observer, Ownership, RunOptions, Verification};
use fstone_files::{read_text, regular_below};
use fstone_formats::{
    Source,
    loads::{self, Document},
    native,
};
use fstone_lab::place::custody;
use fstone_model::{
    LoadReport, Workload,
    load::ErrorReport,
    units,
    workload::{Directories, Fileset, IoEngineKind},
};
use std::path::{Component, Path};
#[cfg(feature = "mpi")]
use {super::ranks::Output, fstone_model::ranks::RankTask};

pub(crate) fn load(_context: &Context, arguments: &LoadArguments) -> CommandResult {
    #[cfg(not(feature = "mpi"))]
    if let Some(launched) = launcher::launched() {
        return Err(super::ranks::refusal(&launched));
    }
    #[cfg(feature = "mpi")]
    if arguments.of_step {
        return ranks_of_step(arguments);
    }
    let workload = read(&arguments.spec)?;
    let name = workload.name.clone();
    if arguments.verify && !workload.data.stamped {
        return Err(anyhow!(
            "only stamped data can be verified; put `data = {{ stamped = true }}` into the workload file"
        ))
        .or_exit(Exit::BadInput);
    }
    let (seed, live) = (arguments.seed, !arguments.json);
    if arguments.device.is_none() {
        refuse_exchangeable(&workload, arguments.directory.as_deref().unwrap_or(Path::new(".")))?;
    }
    #[cfg(feature = "mpi")]
    if launcher::launched().is_some() {
        return ranks(arguments, workload);
    }
    let ownership = if arguments.overwrite { Ownership::Overwrite } else { Ownership::Marked };
    let (ended, found) = match (&arguments.device, &arguments.directory) {
        (Some(device), _) => {
            // It is locked until this is dropped.
            let device =
                ClaimedDevice::claim(device, &arguments.allow_destroy, &arguments.allow_destroy_data, workload)?;
            (run(&device.workload, &device.directory, seed, live, Ownership::Device)?, None)
        }
        (None, Some(directory)) if arguments.verify => {
            let mut found = None;
            let run = |workload: &Workload, directory: &Path, options: &RunOptions<'_>| {
                let (report, verified) = fstone_engine::run_verified(workload, directory, options)?;
                found = Some(verified);
                Ok(report)
            };
            let live = LiveLoad::new(live);
            let ended = observed(&workload, directory, seed, &live, ownership, run);
            live.finish();
            (ended?, found)
        }
        (None, directory) => {
            let directory = directory.as_deref().unwrap_or(Path::new("."));
            (run(&workload, directory, seed, live, ownership)?, None)
        }
    };
    if arguments.json {
        terminal::print_document(&(serde_json::to_string_pretty(&ended.report).or_exit(Exit::LabFailed)? + "\n"));
    } else {
        terminal::print(&fstone_report::load_summary(&name, &ended.report));
    }
    let exit = ended.exit(Exit::Interrupted);
    match found {
        Some(found) if !told(&found) => Ok(Exit::NothingCompleted),
        _ => Ok(exit),
    }
}

#[cfg(feature = "mpi")]
fn ranks(arguments: &LoadArguments, workload: Workload) -> CommandResult {
    if arguments.device.is_some() || arguments.verify {
        let what = if arguments.verify { "--verify" } else { "--device" };
        return Err(Failure::new(Exit::BadInput, format!("{what} is not for a load of many ranks")));
    }
    super::ranks::run(super::ranks::Load {
        workload,
        directories: vec![arguments.directory.clone().unwrap_or_else(|| ".".into())],
        seed: arguments.seed.unwrap_or_else(fresh_seed),
        ownership: if arguments.overwrite { Ownership::Overwrite } else { Ownership::Marked },
        output: if arguments.json { Output::Json } else { Output::Summary },
        results: arguments.results.clone(),
        silence: arguments.patience.silence,
        stillness: arguments.patience.stillness,
        measure_null: true,
        expected: None,
    })
}

#[cfg(feature = "mpi")]
fn ranks_of_step(arguments: &LoadArguments) -> CommandResult {
    let task = read_text(&arguments.spec).map_err(anyhow::Error::from);
    let task: RankTask = task
        .and_then(|json| Ok(serde_json::from_str(&json)?))
        .with_context(|| format!("cannot read {}", arguments.spec.display()))
        .or_exit(Exit::BadInput)?;
    let expected = task.workload.launch.as_ref().map(|launch| launch.ranks);
    super::ranks::run(super::ranks::Load {
        workload: task.workload,
        directories: task.directories,
        seed: task.seed,
        ownership: Ownership::Own,
        output: Output::News(task.news),
        results: Some(task.results),
        silence: arguments.patience.silence,
        stillness: arguments.patience.stillness,
        measure_null: task.measure_null,
        expected,
    })
}

/// A fileset's own directory is held open, and names in it are of one part. Where files are in directories below it, a load
/// also removes, renames and makes names of several parts, and the kernel has no call that follows no link in these:
/// root does not work where others could put one in place of a directory.
pub(super) fn refuse_exchangeable(workload: &Workload, directory: &Path) -> Result<(), Failure> {
    let nested = |fileset: &Fileset| !matches!(fileset.directories, Directories::Flat { count: 0, .. });
    let real = workload.io.engine != IoEngineKind::Null;
    // What is not there is the load's own error.
    let Some(path) = directory.canonicalize().ok().filter(|_| real && workload.filesets.iter().any(nested)) else {
        return Ok(());
    };
    let failed = || format!("cannot look at {}", path.display());
    match custody::exchangeable_within(&path).with_context(failed).or_exit(Exit::LabFailed)? {
        Some(part) => Err(Failure::new(Exit::CannotHere, part.refusal().to_string())),
        None => Ok(()),
    }
}

/// Reports what was read back differently from how it was written; returns whether everything was intact.
fn told(found: &Verification) -> bool {
    let bytes = units::format_bytes(found.verified_bytes);
    let mut text = format!("  verified      {} files, {bytes} as they were written\n", found.files);
    for damage in &found.damages {
        text.push_str(&format!(
            "  damaged       {} at byte {}: {}\n",
            damage.path.display(),
            damage.offset,
            damage.problem
        ));
    }
    if found.damaged_units > 0 {
        text.push_str(&format!("  damaged       {} units of 512 bytes in all\n", found.damaged_units));
    }
    terminal::print(&text);
    found.is_clean()
}

pub(crate) struct EndedLoad {
    pub(crate) report: LoadReport,
    pub(crate) interrupted: bool,
}

impl EndedLoad {
    /// What it measured, also if it was interrupted.
    pub(crate) fn of(result: Result<LoadReport, LoadError>) -> Result<Self, Failure> {
        match result {
            Ok(report) => Ok(Self { report, interrupted: false }),
            Err(LoadError::Interrupted(Some(report))) => Ok(Self { report: *report, interrupted: true }),
            Err(error) => Err(failure(error)),
        }
    }

    pub(crate) fn tell_warnings(&self) {
        for warning in &self.report.warnings {
            terminal::tell(&format!("warning: {warning}\n"));
        }
    }

    pub(crate) fn tell_errors(&self) {
        for error in &self.report.errors {
            terminal::tell(&format!("error: {} of {}: {} (x{})\n", error.call, error.path, error.text, error.count));
        }
    }

    /// How the command ends: `interrupted` if the load was. One with an error did not do what was asked, whatever its figures.
    pub(crate) fn exit(&self, interrupted: Exit) -> Exit {
        self.exit_but(interrupted, |_| false)
    }

    /// The same where some errors are what was asked for.
    pub(crate) fn exit_but(&self, interrupted: Exit, tolerated: impl Fn(&ErrorReport) -> bool) -> Exit {
        match self.report.errors.iter().all(tolerated) {
            _ if self.interrupted => interrupted,
            true => Exit::Success,
            false => Exit::NothingCompleted,
        }
    }
}

fn read(path: &Path) -> Result<Workload, Failure> {
    let name = path.display().to_string();
    let text = read_document(path).with_context(|| format!("cannot read {name}")).or_exit(Exit::BadInput)?;
    let source = Source::new(name, text);
    let format = loads::by_extension(source.name()).unwrap_or(native::FORMAT);
    let load = (format.file)(&mut Document { source: &source, seconds: None, loader: &mut beside(path) });
    let load = load.or_exit(Exit::BadInput)?;
    if let Some(warnings) = &load.warnings {
        terminal::tell(&format!("{warnings}\n"));
    }
    Ok(load.workload)
}

/// Reads files by their paths relative to the directory that this one is in. No link leads out of that directory or, where a path is
/// absolute or has `..`, of the one that it names.
pub(crate) fn beside(path: &Path) -> impl FnMut(&str) -> Result<String, String> {
    beside_noting(path, |_| {})
}

/// The same, and notes the path of each.
pub(crate) fn beside_noting(path: &Path, mut note: impl FnMut(&Path)) -> impl FnMut(&str) -> Result<String, String> {
    let directory = path.parent().unwrap_or(Path::new("")).to_owned();
    move |name| {
        let is_below =
            Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let (above, last) = name.rsplit_once('/').filter(|_| !is_below).unwrap_or(("", name));
        let above = if above.is_empty() && !is_below { Path::new("/") } else { &directory.join(above) };
        let text = regular_below(above, last).and_then(|path| {
            note(&path);
            read_text(&path)
        });
        text.map_err(|error| error.to_string())
    }
}

/// Runs a workload with live figures on standard error, and stops it cleanly on Ctrl-C.
pub(crate) fn run(
    workload: &Workload,
    directory: &Path,
    seed: Option<u64>,
    live: bool,
    ownership: Ownership,
) -> Result<EndedLoad, Failure> {
    run_shown(workload, directory, seed, &LiveLoad::new(live), ownership)
}

pub(crate) fn run_shown(
    workload: &Workload,
    directory: &Path,
    seed: Option<u64>,
    live: &LiveLoad,
    ownership: Ownership,
) -> Result<EndedLoad, Failure> {
    let ended = run_observed(workload, directory, seed, live, ownership);
    live.finish();
    ended
}

pub(crate) fn run_observed(
    workload: &Workload,
    directory: &Path,
    seed: Option<u64>,
    observer: &dyn Observer,
    ownership: Ownership,
) -> Result<EndedLoad, Failure> {
    observed(workload, directory, seed, observer, ownership, fstone_engine::run)
}

fn observed(
    workload: &Workload,
    directory: &Path,
    seed: Option<u64>,
    observer: &dyn Observer,
    ownership: Ownership,
    run: impl FnOnce(&Workload, &Path, &RunOptions<'_>) -> Result<LoadReport, LoadError>,
) -> Result<EndedLoad, Failure> {
    let cancel = cancel_on_signals()?;
    let seed = seed.unwrap_or_else(fresh_seed);
    let options = RunOptions { seed, cancel: &cancel, observer, measure_null: true, ownership };
    EndedLoad::of(run(workload, directory, &options))
}

pub(crate) fn failure(error: LoadError) -> Failure {
    let exit = match error {
        LoadError::Interrupted(_) => Exit::Interrupted,
        LoadError::Unsupported { .. }
        | LoadError::NotPrepared { .. }
        | LoadError::InTheWay { .. }
        | LoadError::Directory { .. } => Exit::BadInput,
        _ => Exit::LabFailed,
    };
    Failure { exit, error: anyhow::Error::new(error).context("failed to run the load") }
}
