//! `fstone mdtest …`: mdtest's command lines, unchanged, with or without a launcher of MPI.

use super::{Context, fresh_seed, now_unix_ns, ranks, tasks};
use crate::{
    args::MdtestArguments,
    documents,
    exit::Exit,
    paths,
    terminal::{CommandResult, Failure, OrExit},
};
use anyhow::{Context as _, anyhow};
use fstone_analysis::when;
use fstone_engine::{LoadError, Ownership, Peers as _};
use fstone_files::read_text;
use fstone_formats::{
    letters::CommandLine,
    mdtest::{self, Mdtest, Place, Plan, Results, Trees},
};
use fstone_model::{ranks::RanksReport, units::nanoseconds};
use std::{
    fs,
    io::ErrorKind,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

pub(crate) fn mdtest(_context: &Context, arguments: &MdtestArguments) -> CommandResult {
    let mut created = |path: &str| read_text(Path::new(path)).map_err(|error| error.to_string());
    let parse = |line: &CommandLine| mdtest::parse(line, &mut created);
    let begun = tasks::begin(&arguments.words, mdtest::help, parse, |mdtest| mdtest.warnings.as_ref())?;
    let mdtest = match begun {
        ControlFlow::Break(exit) => return Ok(exit),
        ControlFlow::Continue(mdtest) => mdtest,
    };
    let plan = mdtest.plan();
    ranks::run(ranks::Load {
        workload: plan.workload.clone(),
        directories: vec![directory_of(&mdtest).to_owned()],
        seed: mdtest.seed.unwrap_or_else(fresh_seed),
        // It makes the directories below `test-dir.0-0`, which do not exist before.
        ownership: Ownership::AsWritten,
        results: mdtest.results.as_ref().map(PathBuf::from),
        silence: mdtest.silence,
        stillness: mdtest.stillness,
        measure_null: false,
        expected: None,
        output: ranks::Output::Command(Arc::new(MdtestCommand {
            command_line: tasks::typed("mdtest", &arguments.words),
            plan,
            mdtest,
            place: OnceLock::new(),
            made: AtomicBool::new(false),
            own: Mutex::default(),
            of_all: OnceLock::new(),
        })),
    })
}

fn directory_of(mdtest: &Mdtest) -> &Path {
    Path::new(&mdtest.directory)
}

/// Makes the directory of `-d` if it does not exist; returns whether it did. A directory that this run did not make is not used.
fn make(directory: &Path, mdtest: &Mdtest) -> Result<bool, Failure> {
    if !mdtest.phases.create && !directory.join(Mdtest::test_directory(0)).is_dir() {
        return Err(anyhow!(
            "{} has nothing from a run with -C: there is no directory {} in it",
            directory.display(),
            Mdtest::test_directory(0)
        ))
        .or_exit(Exit::BadInput);
    }
    let made = match fs::create_dir(directory) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
        Err(error) => {
            return Err(anyhow::Error::new(error).context(format!("cannot make the directory {}", directory.display())))
                .or_exit(Exit::BadInput);
        }
    };
    if !mdtest.phases.create {
        return Ok(made);
    }
    for iteration in 0..mdtest.iterations {
        let path = directory.join(Mdtest::test_directory(iteration));
        if path.symlink_metadata().is_ok() {
            return Err(anyhow!(
                "{} already exists. If a run with -C left it, -r with the same -n, -z, -b, -I, -u and -L removes it; or give another directory with -d. Nothing was touched",
                path.display()
            ))
            .or_exit(Exit::BadInput);
        }
    }
    Ok(made)
}

/// Refuses a file of `-x` that has anything but such a number in it, and would be replaced.
fn check_status_file(mdtest: &Mdtest) -> Result<(), Failure> {
    let Some(path) = mdtest.status_file.as_deref().filter(|_| mdtest.phases.create) else { return Ok(()) };
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let is_status = |text: String| text.split_whitespace().all(|word| word.parse::<u64>().is_ok());
    if found.is_file() && !read_text(Path::new(path)).is_ok_and(is_status) {
        let why = format!("{path} is there already, and no file of -x; name another, or remove it");
        return Err(Failure::new(Exit::BadInput, why));
    }
    Ok(())
}

fn place(directory: &Path, command_line: String) -> Result<Place, Failure> {
    let path = directory.canonicalize().with_context(|| format!("cannot find {}", directory.display()));
    let path = path.or_exit(Exit::BadInput)?;
    let known = rustix::fs::statvfs(&path).with_context(|| format!("cannot ask about {}", path.display()));
    let known = known.or_exit(Exit::LabFailed)?;
    Ok(Place {
        command_line,
        path: path.display().to_string(),
        bytes: known.f_blocks.saturating_mul(known.f_frsize),
        free_bytes: known.f_bfree.saturating_mul(known.f_frsize),
        inodes: known.f_files,
        free_inodes: known.f_ffree,
        times: [now(), String::new()],
    })
}

fn now() -> String {
    when::iso(now_unix_ns())
}

struct MdtestCommand {
    command_line: String,
    mdtest: Mdtest,
    plan: Plan,
    /// Set by rank 0 in `prepare`.
    place: OnceLock<Place>,
    /// Whether this rank made the directory of `-d`, as rank 0 does if it does not exist.
    made: AtomicBool,
    /// How long this rank took for its trees.
    own: Mutex<Trees>,
    /// How long all ranks took, if all reported it: the time of one rank is not shown as that of all.
    of_all: OnceLock<Trees>,
}

impl MdtestCommand {
    fn own(&self) -> MutexGuard<'_, Trees> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_results<T>(&self, report: &RanksReport, show: impl FnOnce(&Results<'_>) -> T) -> T {
        let trees = self.of_all.get().cloned().unwrap_or_default();
        let mut place = self.place.get().cloned().unwrap_or_default();
        place.times[1] = now();
        show(&Results { mdtest: &self.mdtest, plan: &self.plan, report, trees: &trees, place: &place })
    }

    /// Removes the trees of every iteration; by this rank.
    fn remove(&self, load: &ranks::Ran<'_>) -> Result<(), String> {
        let mut all = Ok(());
        for iteration in 0..load.workload.filesets.len() {
            match fstone_engine::remove_directories(load.workload, load.directory, &load.options, iteration) {
                Ok(removed) => self.own().removed.push((removed.directories, removed.elapsed)),
                // Ended early, as by a signal: what is left is reported.
                Err(LoadError::Parted) => {}
                Err(error) => all = all.and(Err(format!("cannot remove the tree: {error}"))),
            }
        }
        all
    }

    fn remove_test_directories(&self, directory: &Path) -> Result<(), String> {
        let mut all = Ok(());
        for iteration in 0..self.mdtest.iterations {
            let path = directory.join(Mdtest::test_directory(iteration));
            match fs::remove_dir(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    all = all.and(Err(format!("cannot remove {}: {error}", path.display())));
                }
                _ => {}
            }
        }
        all
    }

    /// Removes the directory of `-d` if this run made it and it is empty.
    fn remove_if_made(&self) {
        if self.made.load(Ordering::Relaxed) {
            let _ = fs::remove_dir(directory_of(&self.mdtest));
        }
    }

    /// Writes how much was created to the file of `-x`.
    fn keep_status(&self, report: &RanksReport) -> Result<(), String> {
        let Some(path) = self.mdtest.status_file.as_ref().filter(|_| self.mdtest.phases.create) else { return Ok(()) };
        let path = Path::new(path);
        let write =
            |created| paths::require_directory_of(path, " with -x").and_then(|()| documents::write(path, created));
        let written = self.with_results(report, |results| results.created().map(write));
        written.unwrap_or(Ok(())).map_err(|failure| format!("{:#}", failure.error))
    }

    /// All ranks' trees: the longest time, and as many directories as there are. `removed`: whether this rank removed all that it was to.
    fn compare(&self, load: &ranks::Ran<'_>, all_removed: bool) {
        let Trees { made, removed } = self.own().clone();
        let of = |times: &[(u64, Duration)]| -> Vec<u64> {
            // A rank that has none reports 0, so that all report the same number of values.
            let at = |index: usize| times.get(index).map_or(0, |(_, elapsed)| nanoseconds(*elapsed));
            (0..load.workload.filesets.len()).map(at).collect()
        };
        let told = [of(&made), of(&removed), vec![u64::from(!all_removed)]].concat();
        let Ok(mut longest) = load.member.most(&told) else { return };
        // If any rank could not remove its tree, removals are not counted.
        let removed = if longest.pop() == Some(0) { removed } else { Vec::new() };
        let ranks = if self.mdtest.unique { u64::from(load.member.size()) } else { 1 };
        let merged = |times: &[(u64, Duration)], longest: &[u64]| {
            times.iter().zip(longest).map(|((count, _), ns)| (count * ranks, Duration::from_nanos(*ns))).collect()
        };
        let (of_made, of_removed) = longest.split_at(load.workload.filesets.len());
        let _ = self.of_all.set(Trees { made: merged(&made, of_made), removed: merged(&removed, of_removed) });
    }
}

impl ranks::RankCommand for MdtestCommand {
    fn prepare(&self) -> Result<(), Failure> {
        let directory = directory_of(&self.mdtest);
        check_status_file(&self.mdtest)?;
        self.made.store(make(directory, &self.mdtest)?, Ordering::Relaxed);
        let place = place(directory, self.command_line.clone()).inspect_err(|_| self.remove_if_made())?;
        let _ = self.place.set(place);
        Ok(())
    }

    fn directories_made(&self, _: usize, count: u64, elapsed: Duration) {
        self.own().made.push((count, elapsed));
    }

    fn ended(&self, load: &ranks::Ran<'_>) -> Result<(), String> {
        // After this all ranks are done with the content of the trees.
        if load.member.meet().is_err() {
            return Ok(());
        }
        let removed = if self.mdtest.phases.remove { self.remove(load) } else { Ok(()) };
        self.compare(load, removed.is_ok());
        if self.mdtest.phases.remove && load.member.rank() == 0 && !load.member.parted() {
            let emptied = self.remove_test_directories(load.directory);
            return removed.and(emptied);
        }
        removed
    }

    fn live(&self) -> bool {
        !self.mdtest.json
    }

    fn shown(&self, report: &RanksReport) -> Result<(String, bool), serde_json::Error> {
        let text = self.with_results(report, |results| match self.mdtest.json {
            true => tasks::document(&mdtest::json(results)),
            false => Ok(mdtest::print(results)),
        })?;
        Ok((text, self.mdtest.json))
    }

    fn settled(&self, report: &RanksReport) -> Result<(), String> {
        let written = self.keep_status(report);
        if ranks::any_lost(report) {
            return written;
        }
        if report.ranked.phases.is_empty() && self.mdtest.phases.create {
            // A set-up that failed may have made no more than these.
            let _ = self.remove_test_directories(directory_of(&self.mdtest));
        }
        self.remove_if_made();
        written
    }

    fn left(&self, _report: &RanksReport) -> Vec<PathBuf> {
        if !self.mdtest.phases.remove {
            return Vec::new();
        }
        let directory = directory_of(&self.mdtest);
        (0..self.mdtest.iterations).map(|iteration| directory.join(Mdtest::test_directory(iteration))).collect()
    }

    fn own_file(&self) -> Option<&'static str> {
        Some("mdtest.json")
    }

    fn own_text(&self, report: &RanksReport) -> Option<String> {
        self.with_results(report, |results| tasks::document(&mdtest::json(results))).ok()
    }
}
