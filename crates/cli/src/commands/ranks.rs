//! A load of many ranks, started by an MPI launcher: each rank runs this, and rank 0 reports the result. Drop-ins for programs of many
//! ranks (mdtest, IOR) also run here without a launcher, as a single rank.

use crate::{
    exit::Exit,
    launcher::{self, Launched},
    paths,
    progress::LiveLoad,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_engine::{LoadError, Observer, Ownership, Peers, Progress, RunOptions};
use fstone_files::{Temporary, read_text_within};
use fstone_model::{
    Workload,
    ranks::{REPORT_FILE, RankNews, RankOutcome, RanksReport, TABLE_FILE},
};
use fstone_ranks::{Conclusion, Ended, Facts, Loaded, Member, Settings, Transport, simulated};
use rustix::fs::{Mode, OFlags};
use std::{
    fs::File,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

const LEFT_NAMED: usize = 3;

pub(crate) struct Load {
    pub(crate) workload: Workload,
    /// Where to work: rank r in the one at r modulo their number.
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) seed: u64,
    pub(crate) ownership: Ownership,
    pub(crate) output: Output,
    pub(crate) results: Option<PathBuf>,
    pub(crate) silence: Duration,
    pub(crate) stillness: Duration,
    pub(crate) measure_null: bool,
    /// How many ranks the launcher was asked for.
    #[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "without MPI there is one"))]
    pub(crate) expected: Option<u32>,
}

#[derive(Clone)]
#[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "without MPI only drop-ins with one rank get here"))]
pub(crate) enum Output {
    Summary,
    Json,
    /// As news through this pipe while the load runs.
    News(PathBuf),
    Command(Arc<dyn RankCommand>),
}

impl Output {
    fn prepare(&self) -> Result<(), Failure> {
        if let Self::Command(command) = self { command.prepare() } else { Ok(()) }
    }
}

/// What else a command does on every rank, and what rank 0 prints.
pub(crate) trait RankCommand: Send + Sync {
    /// What rank 0 does before any rank begins. Other ranks look at no file before: their nodes would cache that it does not exist.
    ///
    /// # Errors
    /// If the load cannot begin.
    fn prepare(&self) -> Result<(), Failure>;
    /// The directories that hold a fileset's files were made by this rank.
    fn directories_made(&self, _fileset: usize, _count: u64, _elapsed: Duration) {}
    /// So many phases of this rank have ended, and another follows.
    fn phase_ended(&self, _ended: usize, _directory: &Path, _member: &Arc<Member>) {}
    /// This rank's load has ended, normally or not; other ranks may still be working.
    fn ended(&self, _load: &Ran<'_>) -> Result<(), String> {
        Ok(())
    }
    /// What rank 0 prints, and whether that is a document for programs.
    fn shown(&self, report: &RanksReport) -> Result<(String, bool), serde_json::Error>;
    /// What else rank 0 does when the result is known.
    fn settled(&self, _report: &RanksReport) -> Result<(), String> {
        Ok(())
    }
    /// What the load was to remove at its end; some of it may never have been made.
    fn left(&self, report: &RanksReport) -> Vec<PathBuf>;
    fn live(&self) -> bool;
    /// The name of another file in the directory of results.
    fn own_file(&self) -> Option<&'static str> {
        None
    }
    /// Its content.
    fn own_text(&self, _report: &RanksReport) -> Option<String> {
        None
    }
}

pub(crate) struct Ran<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) directory: &'a Path,
    pub(crate) options: RunOptions<'a>,
    pub(crate) member: &'a Arc<Member>,
}

/// Runs this process's rank, as one of those that a launcher started, or as the only one of a drop-in.
pub(crate) fn run(load: Load) -> CommandResult {
    match launcher::launched() {
        None if matches!(load.output, Output::Command(_)) => {
            let alone = simulated::world(1).pop().context("one rank").or_exit(Exit::LabFailed)?;
            run_on(load, alone)
        }
        launched => launched_rank(load, launched.as_ref()),
    }
}

#[cfg(feature = "mpi")]
fn launched_rank(load: Load, launched: Option<&Launched>) -> CommandResult {
    if let Some(why) = load.workload.unfit_for_ranks() {
        return Err(Failure::new(Exit::BadInput, format!("as a load of many ranks, the workload {why}")));
    }
    let world = fstone_mpi::World::start().context("MPI cannot be started").or_exit(Exit::LabFailed)?;
    let ranks = world.size();
    if let Some(expected) = load.expected.filter(|expected| *expected != ranks) {
        let words = format!(
            "{expected} ranks were requested, but the launcher started this one among {ranks}: does it belong to another MPI? This fstone is linked with {}",
            fstone_mpi::library()
        );
        return Err(Failure::new(Exit::CannotHere, words));
    }
    if let Some(Launched { rank, ranks: started, by }) = launched.filter(|_| ranks == 1) {
        // Each would be a load of its own, and they would work on each other's files.
        let words = match rank {
            0 => format!(
                "{by} started {started} processes, but none sees another: this fstone is linked with {}. Start it with the launcher of that \
                 MPI, and under srun with the --mpi of that MPI (`srun --mpi=list`). Nothing was touched",
                fstone_mpi::library()
            ),
            rank => {
                let_first_tell();
                format!("this is process {rank} of {started}, and it sees no other")
            }
        };
        return Err(Failure::new(Exit::CannotHere, words));
    }
    run_on(load, world)
}

#[cfg(not(feature = "mpi"))]
fn launched_rank(_: Load, launched: Option<&Launched>) -> CommandResult {
    match launched {
        Some(launched) => Err(refusal(launched)),
        None => Err(Failure::new(Exit::CannotHere, "this fstone was built without MPI".to_owned())),
    }
}

/// Many independent loads are not the one load that was meant: they would remove each other's files.
#[cfg(not(feature = "mpi"))]
pub(crate) fn refusal(launched: &Launched) -> Failure {
    let Launched { rank, ranks, by } = launched;
    let told = if *rank == 0 {
        format!(
            "{by} started {ranks} processes, but this fstone was built without MPI: they would be {ranks} unrelated loads. Nothing \
             was touched. Build one with MPI: `make mpi`, or `cargo build --release --package fstone --features mpi`"
        )
    } else {
        let_first_tell();
        format!("this is process {rank} of {ranks}, and this fstone was built without MPI")
    };
    Failure::new(Exit::CannotHere, told)
}

/// All ranks have the same wrong command line, and rank 0 reports it.
pub(crate) fn told_by_first() -> Exit {
    let_first_tell();
    Exit::BadInput
}

/// Gives rank 0 the time to report the error: the launcher ends it with this process.
fn let_first_tell() {
    std::thread::sleep(Duration::from_secs(1));
}

fn run_on<T: Transport>(load: Load, transport: T) -> CommandResult {
    let cancel = super::cancel_on_signals()?;
    let rank = transport.rank();
    let settings = Settings {
        subject: subject(&load),
        seed: load.seed,
        silence: load.silence,
        stillness: load.stillness,
        facts: Facts::of_this_process(),
        workload: load.workload.clone(),
        cancel,
    };
    let live = rank == 0
        && match &load.output {
            Output::Summary => true,
            Output::Json | Output::News(_) => false,
            Output::Command(command) => command.live(),
        };
    let news = match &load.output {
        Output::News(path) if rank == 0 => News::to(path),
        _ => None,
    };
    let mut results = Results {
        directory: load.results,
        shown: load.output.clone(),
        exit: Exit::Success,
        told: false,
        others: false,
    };
    if rank == 0
        && let Err(failure) = results.prepare().and_then(|()| results.shown.prepare())
    {
        if transport.size() == 1 {
            return Err(failure);
        }
        let exit = terminal::tell_failure(&failure);
        fstone_ranks::give_up(transport, exit as u8);
        return Ok(exit);
    }
    let (workload, ownership) = (load.workload, load.ownership);
    let measure_null = rank == 0 && load.measure_null;
    let directory = load.directories.get(rank as usize % load.directories.len().max(1)).cloned().unwrap_or_default();
    let command = if let Output::Command(command) = load.output { Some(command) } else { None };
    let body = move |member: &Arc<Member>| {
        let observer = Ranked {
            live: LiveLoad::new(live),
            news,
            member,
            command: command.as_deref(),
            directory: &directory,
            phases_ended: AtomicUsize::new(0),
        };
        carry_out(&workload, &directory, ownership, measure_null, &observer)
    };
    let Ended { status, .. } = fstone_ranks::run(transport, settings, body, &mut results);
    // Rank 0 has reported the reason; a launcher adds a message of its own for every rank that fails.
    Ok(match (rank, status) {
        (0, _) => results.exit,
        (_, 0) => Exit::Success,
        (_, status) if status == Exit::Interrupted as u8 => Exit::Interrupted,
        _ => Exit::NothingCompleted,
    })
}

/// What must be the same for all ranks.
fn subject(load: &Load) -> String {
    let mut hasher = DefaultHasher::new();
    format!("{:?} {:?} {:?}", load.workload, load.directories, load.ownership).hash(&mut hasher);
    format!("{} {:016x}", env!("CARGO_PKG_VERSION"), hasher.finish())
}

fn carry_out(
    workload: &Workload,
    directory: &Path,
    ownership: Ownership,
    measure_null: bool,
    observer: &Ranked<'_>,
) -> Result<Loaded, String> {
    let cancel = AtomicBool::new(false);
    let seed = observer.member.seed();
    let options = RunOptions { seed, cancel: &cancel, observer, measure_null, ownership };
    let ran = fstone_engine::run(workload, directory, &options);
    observer.live.finish();
    let mut report = ran.map_err(|error: LoadError| format!("failed to run the load: {error}"))?;
    // The merged report has no figures of threads.
    report.per_thread.clear();
    let ran = Ran { workload, directory, options, member: observer.member };
    // Its error ends the load of all ranks. The others are still at work, and come to no meeting until they hear of it.
    let halted = report.ended_by(workload).is_some() && ran.member.size() > 1;
    let unfinished = observer.command.filter(|_| !halted).and_then(|command| command.ended(&ran).err());
    Ok(Loaded { report, unfinished })
}

struct Ranked<'a> {
    live: LiveLoad,
    news: Option<News>,
    member: &'a Arc<Member>,
    command: Option<&'a dyn RankCommand>,
    directory: &'a Path,
    phases_ended: AtomicUsize,
}

struct News(File);

impl News {
    /// `None` without a reader, as on another node.
    fn to(path: &Path) -> Option<Self> {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).ok().map(|pipe| Self(pipe.into()))
    }

    /// Each is a single write, short enough to be atomic.
    fn tell(&self, news: &RankNews) {
        if let Ok(json) = serde_json::to_string(news) {
            // A reader that is gone misses it.
            let _ = (&self.0).write_all(format!("{json}\n").as_bytes());
        }
    }
}

impl Observer for Ranked<'_> {
    fn peers(&self) -> Option<&dyn Peers> {
        Some(&**self.member)
    }

    fn measured_begin(&self) {
        if let Some(news) = &self.news {
            news.tell(&RankNews::Begin);
        }
    }

    fn measured_end(&self) {
        if let Some(news) = &self.news {
            news.tell(&RankNews::End);
        }
    }

    fn phase_ended(&self) {
        if let Some(command) = self.command {
            let ended = 1 + self.phases_ended.fetch_add(1, Ordering::Relaxed);
            command.phase_ended(ended, self.directory, self.member);
        }
    }

    fn directories_made(&self, fileset: usize, count: u64, elapsed: Duration) {
        if let Some(command) = self.command {
            command.directories_made(fileset, count, elapsed);
        }
    }

    fn progress(&self, progress: &Progress) {
        self.member.progress(progress);
        self.live.progress(progress);
        if let Some(news) = &self.news {
            let Progress { elapsed, expected, operations, bytes, .. } = *progress;
            news.tell(&RankNews::Progress { phase: progress.phase.clone(), elapsed, expected, operations, bytes });
        }
    }
}

struct Results {
    directory: Option<PathBuf>,
    shown: Output,
    exit: Exit,
    /// Whether it was reported that files cannot be written.
    told: bool,
    /// Whether the directory has the files of another load.
    others: bool,
}

impl Results {
    /// Makes sure that files can be written, before anything is measured.
    fn prepare(&mut self) -> Result<(), Failure> {
        let Some(directory) = &self.directory else { return Ok(()) };
        paths::require_directory_of(directory, " with --results")?;
        paths::create_directory(directory)
            .with_context(|| format!("cannot make the directory {} of --results", directory.display()))
            .or_exit(Exit::BadInput)?;
        let own = if let Output::Command(command) = &self.shown { command.own_file() } else { None };
        for path in [REPORT_FILE, TABLE_FILE].into_iter().chain(own).map(|name| directory.join(name)) {
            if path.symlink_metadata().is_err() {
                continue;
            }
            if !is_of_results(&path) {
                let why = format!("{} is there, and no load of ranks wrote it; name another --results", path.display());
                return Err(Failure::new(Exit::BadInput, why));
            }
            self.others = true;
        }
        Ok(())
    }

    /// At any moment each file is complete, old or new. A load that did nothing does not replace the files of another.
    fn write(&mut self, report: &RanksReport, more: Option<(&'static str, String)>) {
        let Some(directory) = &self.directory else { return };
        if self.others && report.ranked.phases.is_empty() {
            terminal::tell(&format!("{} has the results of an earlier load, which stay", directory.display()));
            return;
        }
        let json = serde_json::to_string_pretty(report).map(|text| text + "\n").map_err(std::io::Error::from);
        let files = [(REPORT_FILE, json), (TABLE_FILE, Ok(fstone_report::ranks_csv(report)))];
        for (name, text) in files.into_iter().chain(more.into_iter().map(|(name, text)| (name, Ok(text)))) {
            let path = directory.join(name);
            let written = text.and_then(|text| write_whole(&path, &text));
            if let (Err(error), false) = (written, self.told) {
                self.told = true;
                self.exit = Exit::LabFailed;
                terminal::tell(&format!("cannot write {}: {error}", path.display()));
            }
        }
    }
}

/// Whether any rank may still be at work. It may use its files, and their filesystem may be what hangs.
pub(super) fn any_lost(report: &RanksReport) -> bool {
    report.ranked.per_rank.iter().any(|rank| rank.outcome.is_lost())
}

fn only_interrupted(report: &RanksReport) -> bool {
    report.ranked.per_rank.iter().all(|rank| match rank.outcome {
        RankOutcome::Completed | RankOutcome::EndedEarly | RankOutcome::Interrupted { .. } => true,
        RankOutcome::Failed { .. } | RankOutcome::Died { .. } | RankOutcome::Hung { .. } => false,
    })
}

/// A load of many ranks and phases has a report of hundreds of MiB.
const LARGEST_RESULTS: u64 = 1 << 30;

/// Whether a file is one that [`Results`] wrote: the table, the report, or a command's own, which says that it is fstone's.
fn is_of_results(path: &Path) -> bool {
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    let Some(text) = is_file.then(|| read_text_within(path, LARGEST_RESULTS).ok()).flatten() else { return false };
    let is_of_command = |value: serde_json::Value| {
        value["version"].as_str().is_some_and(|version| version.starts_with("fstone "))
            && value["command_line"].is_string()
    };
    text.lines().next() == fstone_report::ranks_csv(&RanksReport::default()).lines().next()
        || serde_json::from_str::<RanksReport>(&text).is_ok()
        || serde_json::from_str(&text).is_ok_and(is_of_command)
}

/// Writes a file that replaces one of its name when it is whole. A link of its name is replaced and not followed.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let temporary = Temporary::beside(path)?;
    temporary.file().write_all(text.as_bytes())?;
    temporary.replace(path)
}

impl Conclusion for Results {
    fn keep(&mut self, report: &RanksReport) {
        // With all files of the command, so that no file of an earlier load remains beside them.
        let Output::Command(command) = &self.shown else { return self.write(report, None) };
        let more = command.own_file().zip(command.own_text(report));
        self.write(report, more);
    }

    fn conclude(&mut self, report: RanksReport, signalled: bool) -> u8 {
        self.keep(&report);
        let shown = match &self.shown {
            Output::Summary => Ok((fstone_report::ranks_summary(&report), false)),
            Output::Json => serde_json::to_string_pretty(&report).map(|text| (text + "\n", true)),
            // The files say everything.
            Output::News(_) => Ok((String::new(), false)),
            Output::Command(command) => command.shown(&report),
        };
        match shown {
            Ok((text, true)) => terminal::print_document(&text),
            Ok((text, false)) => terminal::print(&text),
            Err(error) => terminal::tell(&format!("cannot print the result: {error}")),
        }
        if let Output::Command(command) = &self.shown {
            if let Err(words) = command.settled(&report) {
                self.exit = Exit::LabFailed;
                terminal::tell(&words);
            }
            // A look at a filesystem that hangs would hang, too.
            let unknown = any_lost(&report);
            let is_there = |path: &PathBuf| unknown || path.symlink_metadata().is_ok();
            let mut left = command.left(&report).into_iter().filter(is_there);
            let why = match report.ranked.ended_early {
                _ if unknown => "may be left, because not all ranks ended normally",
                Some(_) => "is left, because not all ranks ended normally",
                None => "is left, because it could not be removed",
            };
            for path in left.by_ref().take(LEFT_NAMED) {
                terminal::tell(&format!("{} {why}", path.display()));
            }
            match left.count() {
                0 => {}
                more => terminal::tell(&format!("… and {more} more like it")),
            }
        }
        let well = fstone_report::ranks_all_well(&report);
        let exit = match well {
            true => Exit::Success,
            false if signalled && only_interrupted(&report) => Exit::Interrupted,
            false => Exit::NothingCompleted,
        };
        if self.exit == Exit::Success {
            self.exit = exit;
        }
        self.exit as u8
    }
}

#[cfg(test)]
mod tests;
