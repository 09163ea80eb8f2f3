//! What the page's script works with, as JSON that is safe inside a script element.

use crate::{Analysis, svg::MANY_TRIALS};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Data<'a> {
    columns: Vec<ColumnData<'a>>,
    factors: Vec<FactorData<'a>>,
    /// Names of what rows are compared by.
    subjects: Vec<&'a str>,
    /// The baseline's place in `subjects`.
    baseline: Option<usize>,
    cells: BTreeMap<u32, CellData<'a>>,
}

#[derive(Serialize)]
struct ColumnData<'a> {
    divisor: f64,
    decimals: usize,
    symbol: &'a str,
}

#[derive(Serialize)]
struct FactorData<'a> {
    name: &'a str,
    levels: &'a [String],
}

#[derive(Serialize)]
struct CellData<'a> {
    label: &'a str,
    /// In the order of `factors`.
    levels: Vec<usize>,
    panel: usize,
    subject: usize,
    /// Per column.
    mean: Vec<Option<f64>>,
    /// Completed trials: position, and unless there are very many, seconds into the run, seconds it took, and the seed
    /// (too long for a number of JavaScript).
    trials: Vec<(u32, Option<TrialData>)>,
    /// Per column, one per completed trial.
    values: Vec<Vec<Option<f64>>>,
}

/// Seconds into the run, seconds it took, seed.
type TrialData = (f64, f64, String);

pub(super) fn data(analysis: &Analysis<'_>) -> String {
    let structure = &analysis.structure;
    let subjects: Vec<&str> = match structure.subject {
        Some(subject) => structure.varied[subject].levels.iter().map(String::as_str).collect(),
        None => Vec::new(),
    };
    let order: Vec<usize> = structure.label_order();
    let data = Data {
        columns: analysis
            .columns
            .iter()
            .map(|column| ColumnData {
                divisor: column.scale.divisor,
                decimals: column.scale.decimals,
                symbol: column.scale.symbol,
            })
            .collect(),
        factors: order
            .iter()
            .map(|index| FactorData { name: &structure.varied[*index].name, levels: &structure.varied[*index].levels })
            .collect(),
        baseline: analysis.baseline_name().and_then(|name| subjects.iter().position(|subject| *subject == name)),
        subjects,
        cells: (0..analysis.rows.len()).map(|row| (analysis.rows[row].cell, cell(analysis, row))).collect(),
    };
    let json = serde_json::to_string(&data).expect("plain data with text keys is always JSON");
    // `<` never occurs outside text in JSON; escaped, no text can end the element.
    json.replace('<', "\\u003c")
}

/// Indices of a row's levels, in the order of the label columns.
pub(super) fn levels(analysis: &Analysis<'_>, row: usize) -> Vec<usize> {
    let structure = &analysis.structure;
    let cell = &analysis.dataset.run.plan.cells[row];
    let level = |index: &usize| cell.levels.get(structure.varied[*index].factor).map_or(0, |level| *level as usize);
    structure.label_order().iter().map(level).collect()
}

fn cell<'a>(analysis: &'a Analysis<'a>, index: usize) -> CellData<'a> {
    let row = &analysis.rows[index];
    let start = analysis.dataset.run.started_unix_ns;
    let completed: Vec<usize> =
        (0..row.trials.len()).filter(|trial| row.trials[*trial].outcome.is_completed()).collect();
    let levels = levels(analysis, index);
    let many = analysis.dataset.trials.len() > MANY_TRIALS;
    CellData {
        label: &row.label,
        // The subject is the last label column.
        subject: levels.last().copied().unwrap_or(0),
        levels,
        panel: row.panel,
        mean: row.entries.iter().map(|entry| entry.mean().map(rounded)).collect(),
        trials: completed
            .iter()
            .map(|trial| {
                let trial = row.trials[*trial];
                let seconds = |ns: u64| (ns as f64 / 1e8).round() / 10.0;
                let began = seconds(trial.started_unix_ns.saturating_sub(start));
                let more = (!many).then(|| (began, seconds(trial.duration_ns), trial.seed.to_string()));
                (trial.position, more)
            })
            .collect(),
        values: row
            .entries
            .iter()
            .map(|entry| {
                completed
                    .iter()
                    .map(|trial| {
                        let found = entry.values.binary_search_by_key(trial, |value| value.trial).ok();
                        found.map(|at| rounded(entry.values[at].value))
                    })
                    .collect()
            })
            .collect(),
    }
}

/// Six digits are more than the page shows; ten thousand values should not be a megabyte.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
