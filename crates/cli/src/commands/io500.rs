//! `fstone io500 config.ini`: the phases of IO500 with the sizes of its configuration, and the results in its words.

use super::{Context, load, now_unix_ns};
use crate::{
    args::Io500Arguments,
    documents,
    exit::Exit,
    launcher, paths,
    terminal::{self, CommandResult, OrExit},
};
use anyhow::{Context as _, anyhow};
use fstone_analysis::when;
use fstone_engine::Ownership;
use fstone_files::read_text;
use fstone_formats::{
    Source,
    io500::{self, Config},
};
use std::path::{Path, PathBuf};

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
    if let Some(launched) = launcher::launched() {
        return ranks(arguments, config, launched.rank);
    }
    if results.exists() {
        let why = anyhow!("{} is there; give another resultdir, or timestamp-resultdir = TRUE", results.display());
        return Err(why).or_exit(Exit::BadInput);
    }
    warn(&config);
    let made = paths::create_directory(&data).with_context(|| format!("cannot make {}", data.display()));
    made.or_exit(Exit::CannotHere)?;
    let ended = load::run(&config.workload, &data, arguments.seed, true, Ownership::Marked)?;
    let printed = io500::print(&ended.report);
    terminal::print(&printed);
    ended.tell_warnings();
    ended.tell_errors();
    documents::write(&results, &printed)?;
    terminal::tell(&format!("the files of the phases are left in {}\n", data.display()));
    Ok(ended.exit(Exit::Interrupted))
}

fn warn(config: &Config) {
    if let Some(warnings) = &config.warnings {
        terminal::tell(&format!("{warnings}\n"));
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
fn ranks(arguments: &Io500Arguments, config: Config, rank: u32) -> CommandResult {
    if config.data.1 || config.results.1 {
        let why = "each rank would name the directories after a time of its own; give timestamp-datadir = FALSE and timestamp-resultdir = FALSE";
        return Err(crate::terminal::Failure::new(Exit::BadInput, why));
    }
    if rank == 0 {
        warn(&config);
    }
    super::ranks::run(super::ranks::Load {
        workload: config.workload,
        directories: vec![config.data.0.into()],
        seed: arguments.seed.unwrap_or_else(super::fresh_seed),
        ownership: Ownership::Marked,
        output: super::ranks::Output::Summary,
        results: Some(config.results.0.into()),
        silence: arguments.patience.silence,
        stillness: arguments.patience.stillness,
        measure_null: true,
        expected: None,
    })
}
