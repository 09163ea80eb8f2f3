//! A load of many ranks, started by an MPI launcher: each runs this, and rank 0 reports the result. A drop-in for a program that is
//! itself of many ranks runs here, too, when it is one rank by itself.

use crate::{
    exit::Exit,
    launcher::{self, Launched},
    paths,
    progress::LiveLoad,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_engine::{LoadError, Observer, Ownership, Peers, Progress, RunOptions};
use fstone_model::{
    Workload,
    ranks::{REPORT_FILE, RankNews, RankOutcome, RanksReport, TABLE_FILE},
};
use fstone_ranks::{Conclusion, Ended, Facts, Loaded, Member, Settings, Transport, simulated};
use rustix::fs::{Mode, OFlags};
use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// Of what is left behind, as many are named.
const LEFT_NAMED: usize = 3;

/// What all ranks have from the command line.
pub(crate) struct Load {
    pub(crate) workload: Workload,
    /// Where to work: rank r in the one at r modulo their number.
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) seed: u64,
    pub(crate) ownership: Ownership,
    pub(crate) told: Told,
    /// Where files about all ranks go.
    pub(crate) results: Option<PathBuf>,
    pub(crate) silence: Duration,
    pub(crate) stillness: Duration,
    /// Whether rank 0 measures the engine's own cost.
    pub(crate) measure_null: bool,
    /// How many ranks somebody asked a launcher for.
    #[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "without MPI there is one"))]
    pub(crate) expected: Option<u32>,
}

/// How rank 0 tells what came of it, beside its files.
#[derive(Clone)]
#[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "without MPI only drop-ins with one rank get here"))]
pub(crate) enum Told {
    /// As a page of text.
    Summary,
    /// As JSON.
    Json,
    /// To somebody at the other end of this pipe, on the way.
    News(PathBuf),
    /// As a command has it.
    Course(Arc<dyn Course>),
}

impl Told {
    fn prepare(&self) -> Result<(), Failure> {
        if let Self::Course(course) = self { course.prepare() } else { Ok(()) }
    }
}

/// What else a command does on every rank, and what rank 0 prints.
pub(crate) trait Course: Send + Sync {
    /// What rank 0 sees to before any rank begins. Other ranks look at nothing before: their nodes would remember that it is not there.
    ///
    /// # Errors
    /// When the load cannot be begun.
    fn prepare(&self) -> Result<(), Failure>;
    /// The directories that hold a fileset's files were made by this rank.
    fn directories_made(&self, _fileset: usize, _count: u64, _elapsed: Duration) {}
    /// This rank's load has ended, normally or not; other ranks may still be working.
    ///
    /// # Errors
    /// What this rank could not do, in words for people.
    fn ended(&self, _load: &Ran<'_>) -> Result<(), String> {
        Ok(())
    }
    /// What rank 0 prints, and whether that is a document for programs.
    ///
    /// # Errors
    /// When it cannot be written.
    fn shown(&self, report: &RanksReport) -> Result<(String, bool), serde_json::Error>;
    /// What rank 0 does besides, once all is known.
    ///
    /// # Errors
    /// What it could not do, in words for people.
    fn settled(&self, _report: &RanksReport) -> Result<(), String> {
        Ok(())
    }
    /// What the load would have removed at its end, some of it perhaps never made.
    fn left(&self, report: &RanksReport) -> Vec<PathBuf>;
    /// Whether rank 0 shows live figures.
    fn live(&self) -> bool;
    /// More files for the directory of results: name and content.
    fn beside(&self, _report: &RanksReport) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// A load that a rank has run.
pub(crate) struct Ran<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) directory: &'a Path,
    pub(crate) options: RunOptions<'a>,
    pub(crate) member: &'a Arc<Member>,
}

/// Runs this process's rank, as one of those that a launcher started, or as the only one of a drop-in.
pub(crate) fn run(load: Load) -> CommandResult {
    match launcher::launched() {
        None if matches!(load.told, Told::Course(_)) => {
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

/// A command line that is wrong is so for all ranks, and rank 0 says it.
pub(crate) fn told_by_first() -> Exit {
    let_first_tell();
    Exit::BadInput
}

/// Gives rank 0 the time to say what is wrong: the launcher ends it with this one.
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
        && match &load.told {
            Told::Summary => true,
            Told::Json | Told::News(_) => false,
            Told::Course(course) => course.live(),
        };
    let news = match &load.told {
        Told::News(path) if rank == 0 => News::to(path),
        _ => None,
    };
    let mut results =
        Results { directory: load.results, shown: load.told.clone(), exit: Exit::Success, told: false, others: false };
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
    let course = if let Told::Course(course) = load.told { Some(course) } else { None };
    let body = move |member: &Arc<Member>| {
        let observer = Ranked { live: LiveLoad::new(live), news, member, course: course.as_deref() };
        carry_out(&workload, &directory, ownership, measure_null, &observer)
    };
    let Ended { .. } = fstone_ranks::run(transport, settings, body, &mut results);
    // Its reason is told; a launcher adds its own words to every rank that ends otherwise.
    Ok(if rank == 0 { results.exit } else { Exit::Success })
}

/// What has to be the same everywhere.
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
    // Of threads the ranks tell together.
    report.per_thread.clear();
    let ran = Ran { workload, directory, options, member: observer.member };
    // Its error ends the load of all. The others are still at it, and come to no meeting before they are told.
    let halted = report.ended_by(workload.on_error).is_some() && ran.member.size() > 1;
    let unfinished = observer.course.filter(|_| !halted).and_then(|course| course.ended(&ran).err());
    Ok(Loaded { report, unfinished })
}

/// The engine's progress, for people and as a sign of life.
struct Ranked<'a> {
    live: LiveLoad,
    news: Option<News>,
    member: &'a Arc<Member>,
    course: Option<&'a dyn Course>,
}

/// A pipe on which somebody may listen.
struct News(File);

impl News {
    /// `None` where nobody reads it, as on another node.
    fn to(path: &Path) -> Option<Self> {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).ok().map(|pipe| Self(pipe.into()))
    }

    /// Each is one write, and short enough to stay one.
    fn tell(&self, news: &RankNews) {
        if let Ok(json) = serde_json::to_string(news) {
            // Who does not read goes without.
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

    fn directories_made(&self, fileset: usize, count: u64, elapsed: Duration) {
        if let Some(course) = self.course {
            course.directories_made(fileset, count, elapsed);
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

/// What rank 0 does with what it knows.
struct Results {
    directory: Option<PathBuf>,
    shown: Told,
    exit: Exit,
    /// Whether it was said that files cannot be written.
    told: bool,
    /// Whether the files that are there are those of another load.
    others: bool,
}

impl Results {
    /// Sees that files can be written, before anything is measured.
    fn prepare(&mut self) -> Result<(), Failure> {
        let Some(directory) = &self.directory else { return Ok(()) };
        paths::require_directory_of(directory, " with --results")?;
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make the directory {} of --results", directory.display()))
            .or_exit(Exit::BadInput)?;
        self.others = [REPORT_FILE, TABLE_FILE].iter().any(|name| directory.join(name).symlink_metadata().is_ok());
        Ok(())
    }

    /// Each file is whole at any moment, the old one or the new one. A load that did nothing has nothing to put in place of another's.
    fn write(&mut self, report: &RanksReport, more: Vec<(&'static str, String)>) {
        let Some(directory) = &self.directory else { return };
        if self.others && report.ranked.phases.is_empty() {
            terminal::tell(&format!("{} has the results of an earlier load, which stay\n", directory.display()));
            return;
        }
        let json = serde_json::to_string_pretty(report).map(|text| text + "\n").map_err(std::io::Error::from);
        let files = [(REPORT_FILE, json), (TABLE_FILE, Ok(fstone_report::ranks_csv(report)))];
        for (name, text) in files.into_iter().chain(more.into_iter().map(|(name, text)| (name, Ok(text)))) {
            let (path, made) = (directory.join(name), directory.join(format!("{name}.new")));
            let written = text.and_then(|text| write_anew(&made, &text)).and_then(|()| fs::rename(&made, &path));
            if let (Err(error), false) = (written, self.told) {
                self.told = true;
                self.exit = Exit::LabFailed;
                terminal::tell(&format!("cannot write {}: {error}\n", path.display()));
            }
        }
    }
}

/// Whether any rank died or hangs. It may still be at its files, and their filesystem may be what it hangs in.
pub(super) fn any_lost(report: &RanksReport) -> bool {
    report
        .ranked
        .per_rank
        .iter()
        .any(|rank| matches!(rank.outcome, RankOutcome::Died { .. } | RankOutcome::Hung { .. }))
}

/// Writes a file that is not there before. What had its name, a link perhaps, is not followed.
fn write_anew(path: &Path, text: &str) -> io::Result<()> {
    paths::remove_file(path)?;
    File::create_new(path)?.write_all(text.as_bytes())
}

impl Conclusion for Results {
    fn keep(&mut self, report: &RanksReport) {
        // With all its files, so that none of an earlier load stands beside those of this one.
        let more = if let Told::Course(course) = &self.shown { course.beside(report) } else { Vec::new() };
        self.write(report, more);
    }

    fn conclude(&mut self, report: RanksReport, signalled: bool) -> u8 {
        self.keep(&report);
        let shown = match &self.shown {
            Told::Summary => Ok((fstone_report::ranks_summary(&report), false)),
            Told::Json => serde_json::to_string_pretty(&report).map(|text| (text + "\n", true)),
            // The files are all there is to say.
            Told::News(_) => Ok((String::new(), false)),
            Told::Course(course) => course.shown(&report),
        };
        match shown {
            Ok((text, true)) => terminal::print_document(&text),
            Ok((text, false)) => terminal::print(&text),
            Err(error) => terminal::tell(&format!("cannot print the result: {error}\n")),
        }
        if let Told::Course(course) = &self.shown {
            if let Err(words) = course.settled(&report) {
                self.exit = Exit::LabFailed;
                terminal::tell(&format!("{words}\n"));
            }
            // Who asks a filesystem that hangs hangs, too.
            let unknown = any_lost(&report);
            let is_there = |path: &PathBuf| unknown || path.symlink_metadata().is_ok();
            let mut left = course.left(&report).into_iter().filter(is_there);
            let why = match report.ranked.ended_early {
                _ if unknown => "may be left, because not all ranks ended normally",
                Some(_) => "is left, because not all ranks ended normally",
                None => "is left, because it could not be removed",
            };
            for path in left.by_ref().take(LEFT_NAMED) {
                terminal::tell(&format!("{} {why}\n", path.display()));
            }
            match left.count() {
                0 => {}
                more => terminal::tell(&format!("… and {more} more like it\n")),
            }
        }
        let well = fstone_report::ranks_all_well(&report);
        let exit = match well {
            true => Exit::Success,
            false if signalled && report.ranked.per_rank.iter().all(|rank| rank.outcome.words().is_none()) => {
                Exit::Interrupted
            }
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
