//! Every trial: a table of them; when there are many, their figures row by row; when there are very many, where to get them.

use super::shared::name;
use crate::{Analysis, number::grouped, svg::MANY_TRIALS};

const MAX_TABLE: usize = 600;

#[derive(Default)]
pub(super) struct Trials {
    /// (header, unit) of the columns.
    pub(super) heads: Vec<(String, &'static str)>,
    pub(super) rows: Vec<TrialRow>,
    /// A line per row and column.
    pub(super) lists: String,
    pub(super) too_many: bool,
}

pub(super) struct TrialRow {
    pub(super) cell: u32,
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) repeat: String,
    pub(super) began: String,
    pub(super) took: String,
    pub(super) outcome: &'static str,
    pub(super) values: Vec<String>,
    pub(super) seed: u64,
}

pub(super) fn trials(analysis: &Analysis<'_>) -> Trials {
    if analysis.dataset.trials.len() > MANY_TRIALS {
        return Trials { too_many: true, ..Trials::default() };
    }
    if analysis.dataset.trials.len() > MAX_TABLE {
        return Trials { lists: lists(analysis), ..Trials::default() };
    }
    let start = analysis.dataset.run.started_unix_ns;
    let mut rows: Vec<TrialRow> = Vec::with_capacity(analysis.dataset.trials.len());
    for (index, row) in analysis.rows.iter().enumerate() {
        for trial in row.all() {
            let values = analysis.columns.iter().map(|column| {
                let figure = trial.figure(&column.step, &column.metric);
                figure.map_or_else(|| "–".to_owned(), |figure| column.scale.number(figure.value))
            });
            rows.push(TrialRow {
                cell: row.cell,
                number: trial.position + 1,
                name: name(analysis, index),
                repeat: trial.id.number(),
                began: grouped(trial.started_unix_ns.saturating_sub(start) as f64 / 1e9, 1),
                took: grouped(trial.duration_ns as f64 / 1e9, 1),
                outcome: trial.outcome.word(),
                values: values.collect(),
                seed: trial.seed,
            });
        }
    }
    rows.sort_by_key(|row| row.number);
    let heads = analysis.columns.iter().map(|column| (column.header.clone(), column.unit_line())).collect();
    Trials { heads, rows, ..Trials::default() }
}

fn lists(analysis: &Analysis<'_>) -> String {
    let mut text = String::new();
    for index in analysis.order() {
        let row = &analysis.rows[index];
        text.push_str(&format!("{}\n", name(analysis, index)));
        for (column, entry) in analysis.columns.iter().zip(&row.entries).filter(|(_, entry)| !entry.values.is_empty()) {
            let values: Vec<String> = entry.values.iter().map(|value| column.scale.number(value.value)).collect();
            text.push_str(&format!("  {}: {}\n", column.with_unit(), values.join("  ")));
        }
    }
    text
}
