//! `fstone io500 config.ini`: the phases of IO500 with the sizes of its configuration, and the results in its words.

use super::{Context, load, now_unix_ns};
use crate::{
    args::Io500Arguments,
    documents,
    exit::Exit,
    launcher, paths,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::{Context as _, anyhow};
use fstone_analysis::when;
use fstone_engine::Ownership;
use fstone_files::read_text;
use fstone_formats::{
    Source,
    io500::{self, Config},
};
#[cfg(feature = "mpi")]
use fstone_model::ranks::RanksReport;
use std::path::{Path, PathBuf};
#[cfg(feature = "mpi")]
use std::sync::Arc;

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
    let printed = io500::print(&ended.report);
    terminal::print(&printed);
    ended.tell_warnings();
    ended.tell_errors();
    documents::write(&results, &printed)?;
    tell_left(&data);
    Ok(ended.exit(Exit::Interrupted))
}

fn begin(config: &Config, data: &Path, results: &Path) -> Result<(), Failure> {
    if results.exists() {
        let why = anyhow!("{} is there; give another resultdir, or timestamp-resultdir = TRUE", results.display());
        return Err(why).or_exit(Exit::BadInput);
    }
    if let Some(warnings) = &config.warnings {
        terminal::tell(&format!("{warnings}\n"));
    }
    paths::create_directory(data).with_context(|| format!("cannot make {}", data.display())).or_exit(Exit::CannotHere)
}

fn tell_left(data: &Path) {
    terminal::tell(&format!("the files of the phases are left in {}\n", data.display()));
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
        Ok((why + &io500::print(&report.load), false))
    }

    fn settled(&self, report: &RanksReport) -> Result<(), String> {
        for warning in &report.load.warnings {
            terminal::tell(&format!("warning: {warning}\n"));
        }
        tell_left(&self.data);
        documents::write(&self.summary, io500::print(&report.load)).map_err(|failure| format!("{:#}", failure.error))
    }

    fn left(&self, _: &RanksReport) -> Vec<PathBuf> {
        Vec::new()
    }

    fn live(&self) -> bool {
        true
    }
}
