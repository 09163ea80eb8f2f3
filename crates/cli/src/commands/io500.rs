//! `fstone io500 config.ini`: the phases of IO500 with the sizes of its configuration, and the results in its words.

use super::{Context, load, now_unix_ns};
use crate::{
    args::Io500Arguments,
    exit::Exit,
    launcher, paths,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::{Context as _, anyhow};
use fstone_analysis::when;
use fstone_engine::Ownership;
use fstone_files::{Temporary, read_text};
use fstone_formats::{
    Source,
    io500::{self, Config},
};
use fstone_model::LoadReport;
#[cfg(feature = "mpi")]
use fstone_model::ranks::{RankOutcome, RanksReport};
#[cfg(feature = "mpi")]
use std::sync::Arc;
use std::{
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

const SUMMARY: &str = "result_summary.txt";

pub(crate) fn io500(_context: &Context, arguments: &Io500Arguments) -> CommandResult {
    #[cfg(not(feature = "mpi"))]
    if let Some(launched) = launcher::launched() {
        return Err(super::ranks::refusal(&launched));
    }
    let name = arguments.config.display().to_string();
    let text = read_text(&arguments.config).with_context(|| format!("cannot read {name}")).or_exit(Exit::BadInput)?;
    let config = io500::parse(&Source::new(name, text)).or_exit(Exit::BadInput)?;
    let now = when::iso(now_unix_ns());
    let (data, results) = (place(&config.data, &now), place(&config.results, &now).join(SUMMARY));
    load::refuse_exchangeable(&config.workload, &data)?;
    #[cfg(feature = "mpi")]
    if launcher::launched().is_some() {
        return ranks(arguments, config, data, results);
    }
    begin(&config, &data, &results)?;
    let ended = load::run(&config.workload, &data, arguments.seed, true, Ownership::Marked)?;
    let summary = summary(&config, &ended.report, ended.interrupted.then_some("it was interrupted"));
    terminal::print(summary.as_deref().unwrap_or_default());
    ended.tell_warnings();
    ended.tell_errors();
    tell_left(&data);
    keep(&results, summary)?;
    Ok(ended.exit(Exit::Interrupted))
}

fn begin(config: &Config, data: &Path, results: &Path) -> Result<(), Failure> {
    if results.symlink_metadata().is_ok() {
        let why = anyhow!("{} is there; give another resultdir, or timestamp-resultdir = TRUE", results.display());
        return Err(why).or_exit(Exit::BadInput);
    }
    if let Some(warnings) = &config.warnings {
        terminal::tell(&format!("{warnings}\n"));
    }
    for directory in results.parent().into_iter().chain([data]) {
        let failed = || format!("cannot make {}", directory.display());
        paths::create_directory(directory).with_context(failed).or_exit(Exit::CannotHere)?;
    }
    Ok(())
}

/// The results, below a line with why they are not those of a run that went well; nothing if no phase has one.
fn summary(config: &Config, report: &LoadReport, ended_early: Option<&str>) -> Option<String> {
    let printed = io500::print(report, &config.workload);
    let why = ended_early.or((!report.errors.is_empty()).then_some("calls failed"));
    let first = why.map(|why| format!("not all went well: {why}\n")).unwrap_or_default();
    (!printed.is_empty()).then(|| first + &printed)
}

/// Another run may have put its summary there meanwhile, which stays.
fn keep(path: &Path, summary: Option<String>) -> Result<(), Failure> {
    let Some(summary) = summary else { return Ok(()) };
    let kept = Temporary::beside(path).and_then(|temporary| {
        temporary.file().write_all(summary.as_bytes())?;
        temporary.publish(path)
    });
    if kept.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists) {
        let why = anyhow!("{} is of another run; these results are on standard output alone", path.display());
        return Err(why).or_exit(Exit::LabFailed);
    }
    kept.with_context(|| format!("cannot write {}", path.display())).or_exit(Exit::LabFailed)
}

fn tell_left(data: &Path) {
    if data.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        terminal::tell(&format!("the files of the phases are left in {}\n", data.display()));
    }
}

/// A directory, or one in it that is named after the time as IO500 does: 2026.11.27-09.30.00.
fn place((directory, stamped): &(String, bool), now: &str) -> PathBuf {
    let directory = Path::new(directory);
    if *stamped {
        directory.join(now.replace(['-', ':'], ".").replace([' ', 'T'], "-").replace('Z', ""))
    } else {
        directory.to_owned()
    }
}

/// As one of many ranks, which have no common clock to name a directory after.
#[cfg(feature = "mpi")]
fn ranks(arguments: &Io500Arguments, config: Config, data: PathBuf, summary: PathBuf) -> CommandResult {
    use super::ranks::{Load, Output, run};
    if config.data.1 || config.results.1 {
        let why = "each rank would name the directories after a time of its own; give timestamp-datadir = FALSE and timestamp-resultdir = FALSE";
        return Err(Failure::new(Exit::BadInput, why));
    }
    run(Load {
        workload: config.workload.clone(),
        directories: vec![data.clone()],
        seed: arguments.seed.unwrap_or_else(super::fresh_seed),
        ownership: Ownership::Marked,
        results: Some(PathBuf::from(&config.results.0)),
        output: Output::Command(Arc::new(Ranks { config, data, summary })),
        silence: arguments.patience.silence,
        stillness: arguments.patience.stillness,
        measure_null: true,
        expected: None,
    })
}

#[cfg(feature = "mpi")]
struct Ranks {
    config: Config,
    data: PathBuf,
    summary: PathBuf,
}

#[cfg(feature = "mpi")]
impl super::ranks::RankCommand for Ranks {
    fn prepare(&self) -> Result<(), Failure> {
        begin(&self.config, &self.data, &self.summary)
    }

    fn shown(&self, report: &RanksReport) -> Result<(String, bool), serde_json::Error> {
        let why =
            if fstone_report::ranks_all_well(report) { String::new() } else { fstone_report::ranks_summary(report) };
        Ok((why + &io500::print(&report.load, &self.config.workload), false))
    }

    fn settled(&self, report: &RanksReport) -> Result<(), String> {
        for warning in &report.load.warnings {
            terminal::tell(&format!("warning: {warning}\n"));
        }
        let completed = report.ranked.per_rank.iter().all(|rank| rank.outcome == RankOutcome::Completed);
        let summary = summary(&self.config, &report.load, (!completed).then_some("not all ranks completed"));
        // A look at a filesystem that hangs would hang, too.
        if !super::ranks::any_lost(report) {
            tell_left(&self.data);
        }
        keep(&self.summary, summary).map_err(|failure| format!("{:#}", failure.error))
    }

    fn left(&self, _: &RanksReport) -> Vec<PathBuf> {
        Vec::new()
    }

    fn live(&self) -> bool {
        true
    }
}

#[cfg(feature = "mpi")]
#[cfg(test)]
mod tests {
    use super::{super::ranks::RankCommand as _, *};
    use fstone_model::{
        load::PhaseReport,
        ranks::{RankReport, Ranked},
    };
    use std::fs;

    #[test]
    fn the_summary_of_ranks_says_what_went_wrong_and_replaces_none() {
        let place = tempfile::tempdir().expect("a directory");
        let (data, summary) = (place.path().join("data"), place.path().join("results").join(SUMMARY));
        let config = io500::parse(&Source::new("config.ini", "[global]\n")).expect("right");
        let ranks = Ranks { config, data, summary: summary.clone() };
        ranks.prepare().expect("both directories");
        let per_rank = vec![RankReport { outcome: RankOutcome::EndedEarly, ..RankReport::default() }];
        let mut report = RanksReport { ranked: Ranked { per_rank, ..Ranked::default() }, ..RanksReport::default() };
        ranks.settled(&report).expect("nothing to write");
        assert!(!summary.exists(), "no phase has a result");
        ranks.prepare().expect("nothing is in the way");
        let phase = PhaseReport { name: "find".into(), elapsed_ns: 1_000_000_000, ..PhaseReport::default() };
        report.load.phases = vec![phase];
        ranks.settled(&report).expect("written");
        let written = fs::read_to_string(&summary).expect("written");
        assert!(written.starts_with("not all went well: not all ranks completed\n[RESULT] "), "{written}");
        report.ranked.per_rank = vec![RankReport::default()];
        let why = ranks.settled(&report).expect_err("it is taken");
        assert!(why.contains("is of another run; these results are on standard output alone"), "{why}");
        assert_eq!(fs::read_to_string(&summary).expect("there"), written);
        assert_eq!(fs::read_dir(place.path().join("results")).expect("there").count(), 1);
    }
}
