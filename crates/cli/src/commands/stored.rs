//! The store and its runs, for commands that work with existing runs.

use super::Context;
use crate::{
    args::{Arguments, Command, RunArguments},
    exit::Exit,
    terminal::{Failure, OrExit},
};
use clap::Parser as _;
use fstone_model::{Dataset, dataset::Run};
use fstone_store::{ReadError, Store};
use std::path::{Path, PathBuf};

pub(crate) fn open(context: &Context) -> Result<Store, Failure> {
    context.read_store()?.ok_or_else(|| {
        Failure::new(
            Exit::BadInput,
            format!(
                "there is no store at {} yet; `fstone run small-file --quick` makes the first run",
                context.store.display()
            ),
        )
    })
}

/// What was read of a run; that there is none of this number is the user's mistake.
pub(crate) fn read_or_exit(read: Result<Dataset, ReadError>) -> Result<Dataset, Failure> {
    match read {
        Err(ReadError::NoSuchRun { run }) => Err(no_such_run(run)),
        other => other.or_exit(Exit::LabFailed),
    }
}

/// A run without its load reports.
pub(crate) fn figures(store: &Store, run: u64) -> Result<Dataset, Failure> {
    read_or_exit(store.figures(run))
}

pub(crate) enum Place {
    Store(u64),
    Bundle(PathBuf),
}

impl Place {
    pub(crate) fn of(name: &str) -> Result<Self, Failure> {
        match name.parse::<u64>() {
            Ok(run) => Ok(Self::Store(run)),
            Err(_) if Path::new(name).exists() => Ok(Self::Bundle(name.into())),
            Err(_) => Err(Failure::new(
                Exit::BadInput,
                format!(
                    "{name:?} is neither the number of a run (`fstone list runs`) nor a bundle (`fstone export RUN FILE`)"
                ),
            )),
        }
    }

    pub(crate) fn figures(&self, context: &Context) -> Result<Dataset, Failure> {
        match self {
            Self::Store(run) => figures(&open(context)?, *run),
            Self::Bundle(_) => {
                let mut dataset = self.whole(context)?;
                without_loads(&mut dataset);
                Ok(dataset)
            }
        }
    }

    pub(crate) fn whole(&self, context: &Context) -> Result<Dataset, Failure> {
        match self {
            Self::Store(run) => read_or_exit(open(context)?.dataset(*run)),
            Self::Bundle(path) => fstone_store::bundle::read(path).or_exit(Exit::BadInput),
        }
    }
}

pub(crate) fn no_such_run(run: u64) -> Failure {
    Failure::new(Exit::BadInput, format!("there is no run {run}; `fstone list runs` lists them"))
}

/// The options that a run was begun with; `None` where this fstone does not know its command line as that of a run.
pub(crate) fn begun_with(run: &Run) -> Option<RunArguments> {
    match Arguments::try_parse_from(&run.command).ok()?.command {
        Command::Run(started) => started.told_apart().ok(),
        _ => None,
    }
}

/// Drops the load engine's reports, which a comparison does not need.
pub(crate) fn without_loads(dataset: &mut Dataset) {
    for step in dataset.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
        step.load = None;
    }
}
