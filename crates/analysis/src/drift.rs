//! Did the figures depend on when they were measured, and does one lie far from the others?

use crate::{
    clock, machines,
    number::grouped,
    table::{ColumnView, Row},
};
use fstone_model::Dataset;
use fstone_stats::ALPHA;
use fstone_stats::drift::{Drift, RunPoint, drift_of_run};

/// Below this many figures a drift is more likely chance than clock.
const MIN_FIGURES: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drifting {
    pub column: usize,
    pub drift: Drift,
}

impl Drifting {
    /// "rose by about 3.2 %", from the first trial to the last.
    pub fn change(&self) -> String {
        let change = self.drift.relative_change.unwrap_or(0.0);
        let direction = if change < 0.0 { "fell" } else { "rose" };
        format!("{direction} by about {} %", grouped(change.abs() * 100.0, usize::from(change.abs() < 0.1)))
    }
}

/// The columns that depend on run order. The level is divided between the columns (Bonferroni).
pub(super) fn drifts(dataset: &Dataset, columns: &[ColumnView], rows: &[Row<'_>]) -> Vec<Drifting> {
    // Virtual time has no machine that could drift, and its trials run several at once: their order means nothing.
    if clock::is_virtual(dataset) {
        return Vec::new();
    }
    let machine = machines::numbering(dataset);
    let directed: Vec<usize> =
        (0..columns.len()).filter(|column| columns[*column].better != fstone_model::Better::Neither).collect();
    directed
        .iter()
        .filter_map(|&column| {
            let drift = drift_of_run(&points(rows, column, &machine))?;
            let surely = drift.n >= MIN_FIGURES && drift.p * directed.len() as f64 <= ALPHA;
            (surely && drift.relative_change.is_some()).then_some(Drifting { column, drift })
        })
        .collect()
}

/// A row on another machine counts as another row here: differences between machines are not drift.
fn points(rows: &[Row<'_>], column: usize, machine: &impl Fn(u32) -> usize) -> Vec<RunPoint> {
    let points = rows.iter().enumerate().flat_map(|(cell, row)| {
        row.entries[column].values.iter().map(move |value| {
            let trial = row.trials[value.trial];
            RunPoint {
                position: f64::from(trial.position),
                cell: machine(trial.id.repetition) * rows.len() + cell,
                value: value.value,
            }
        })
    });
    points.collect()
}
