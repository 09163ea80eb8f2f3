//! Everything that was measured beside the table's columns, step by step.

use super::shared::name;
use crate::{
    Analysis,
    number::{Scale, is_whole},
    text::line,
};
use fstone_model::{Figure, output::series_of};
use std::collections::HashMap;

const MAX_FIGURES: usize = 3000;

#[derive(Default)]
pub(super) struct Measured {
    pub(super) steps: Vec<StepTable>,
    pub(super) note: String,
}

pub(super) struct StepTable {
    pub(super) name: String,
    /// (metric, unit).
    pub(super) heads: Vec<(String, &'static str)>,
    pub(super) rows: Vec<StepRow>,
}

pub(super) struct StepRow {
    pub(super) cell: u32,
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

/// A metric of a step: a sample figure for its unit, and each row's sum and count.
struct Sums<'a> {
    figure: &'a Figure,
    rows: HashMap<usize, (f64, usize)>,
}

pub(super) fn measured(analysis: &Analysis<'_>) -> Measured {
    let mut steps: Vec<(&str, Vec<Sums<'_>>)> = Vec::new();
    for (index, row) in analysis.rows.iter().enumerate() {
        for step in row.trials.iter().filter(|trial| trial.outcome.is_completed()).flat_map(|trial| &trial.steps) {
            let at = steps.iter().position(|(name, _)| *name == step.step).unwrap_or_else(|| {
                steps.push((&step.step, Vec::new()));
                steps.len() - 1
            });
            for (place, figure) in step.figures.iter().enumerate().filter(|(_, figure)| is_listed(figure)) {
                let metrics = &mut steps[at].1;
                // Trials have their figures in the same order, nearly always.
                let expected = metrics.get(place).filter(|sums| sums.figure.metric == figure.metric).map(|_| place);
                let known = || metrics.iter().position(|sums| sums.figure.metric == figure.metric);
                let metric = expected.or_else(known).unwrap_or_else(|| {
                    metrics.push(Sums { figure, rows: HashMap::new() });
                    metrics.len() - 1
                });
                let sum = metrics[metric].rows.entry(index).or_default();
                *sum = (sum.0 + figure.value, sum.1 + 1);
            }
        }
    }
    let figures: usize = steps.iter().flat_map(|(_, metrics)| metrics).map(|sums| sums.rows.len()).sum();
    if figures > MAX_FIGURES {
        let note = format!("{figures} more figures were measured; see the CSV and JSON reports.");
        return Measured { steps: Vec::new(), note };
    }
    let steps = steps.into_iter().filter(|(_, metrics)| !metrics.is_empty());
    Measured { steps: steps.map(|(name, metrics)| step_table(analysis, name, &metrics)).collect(), note: String::new() }
}

/// The numbers of a series are drawn.
fn is_listed(figure: &Figure) -> bool {
    figure.value.is_finite() && series_of(&figure.metric).is_none()
}

fn step_table(analysis: &Analysis<'_>, step: &str, metrics: &[Sums<'_>]) -> StepTable {
    let scales: Vec<Scale> = metrics
        .iter()
        .map(|sums| {
            let means: Vec<_> = sums.rows.values().map(|(sum, count)| (sum / *count as f64, None)).collect();
            Scale::choose(sums.figure.unit, &means, sums.rows.values().all(|(sum, _)| is_whole(*sum)))
        })
        .collect();
    let rows = analysis
        .order()
        .into_iter()
        .filter(|row| metrics.iter().any(|sums| sums.rows.contains_key(row)))
        .map(|row| StepRow {
            cell: analysis.rows[row].cell,
            name: name(analysis, row),
            values: metrics
                .iter()
                .zip(&scales)
                .map(|(sums, scale)| {
                    let mean = sums.rows.get(&row).map(|(sum, count)| sum / *count as f64);
                    mean.map_or_else(|| "–".to_owned(), |mean| scale.number(mean))
                })
                .collect(),
        })
        .collect();
    StepTable {
        name: line(step),
        heads: metrics.iter().zip(&scales).map(|(sums, scale)| (line(&sums.figure.metric), scale.symbol)).collect(),
        rows,
    }
}
