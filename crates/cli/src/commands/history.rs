//! `fstone history`: one cell over many runs.

use super::{Context, stored::open};
use crate::{
    args::{HistoryArguments, HistoryFormat},
    documents,
    exit::Exit,
    terminal::{self, CommandResult, Failure, OrExit},
};
use fstone_analysis::runs::History;
use fstone_model::Dataset;
use fstone_report::history;
use fstone_store::Store;
use std::collections::HashSet;

/// Only this many of the last runs are read: old change points are of little interest, and reading costs time.
const MOST_RUNS: usize = 500;

pub(crate) fn history(context: &Context, arguments: &HistoryArguments) -> CommandResult {
    let store = open(context)?;
    let history = find(&store, arguments.study.as_deref(), arguments.row.as_deref(), arguments.column.as_deref())?;
    let text = match arguments.format {
        HistoryFormat::Terminal => {
            history::terminal(&history, terminal::width(), arguments.output.is_none() && context.colored())
        }
        HistoryFormat::Json => history::json(&history),
        HistoryFormat::Html => history::html(&history, None),
    };
    documents::deliver(arguments.output.as_deref(), &text)?;
    Ok(Exit::Success)
}

/// The history of a row; without a study, that of the last run.
pub(crate) fn find(
    store: &Store,
    study: Option<&str>,
    row: Option<&str>,
    column: Option<&str>,
) -> Result<History, Failure> {
    let runs = store.runs().or_exit(Exit::LabFailed)?;
    let study = study.map(str::to_owned).or_else(|| runs.last().map(|run| run.study.clone()));
    // A store may have a run twice, imported by an fstone that did not recognise it; it counts once.
    let mut seen = HashSet::new();
    let of_study: Vec<u64> = runs
        .iter()
        .filter(|run| Some(&run.study) == study.as_ref() && run.trials > 0 && seen.insert(&run.identity))
        .map(|run| run.id)
        .collect();
    let datasets: Vec<Dataset> = of_study[of_study.len().saturating_sub(MOST_RUNS)..]
        .iter()
        .map(|run| store.figures(*run))
        .collect::<Result<_, _>>()
        .or_exit(Exit::LabFailed)?;
    let names: Vec<(String, u64)> =
        store.baselines().or_exit(Exit::LabFailed)?.into_iter().map(|baseline| (baseline.name, baseline.run)).collect();
    History::of(&datasets, row, column, &names).map_err(|error| {
        Failure::new(
            Exit::BadInput,
            format!("cannot show the history of {}: {error}", study.as_deref().unwrap_or("any study")),
        )
    })
}
