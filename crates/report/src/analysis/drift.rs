//! Did the figures depend on when they were measured, and does one lie far from the others?

use super::{ColumnView, Row, Warning};
use crate::{
    number::{grouped, p_value},
    text::listing,
};
use fstone_stats::{
    Sample,
    drift::{Drift, RunPoint, drift_of_run},
    outliers::outliers,
};

/// Below this many figures a drift is more likely chance than clock.
const MIN_FIGURES: usize = 8;

/// A column that drifted over the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drifting {
    /// Which column.
    pub column: usize,
    /// How far, and how surely.
    pub drift: Drift,
}

impl Drifting {
    /// "rose by about 3.2 %", from the first trial to the last.
    #[must_use]
    pub fn change(&self) -> String {
        let change = self.drift.relative_change.unwrap_or(0.0);
        let direction = if change < 0.0 { "fell" } else { "rose" };
        format!("{direction} by about {} %", grouped(change.abs() * 100.0, usize::from(change.abs() < 0.1)))
    }
}

/// One warning for all columns that drifted.
pub(super) fn warning(drifts: &[Drifting], columns: &[ColumnView]) -> Option<Warning> {
    if drifts.is_empty() {
        return None;
    }
    let told: Vec<String> = drifts
        .iter()
        .map(|drift| {
            let p = p_value(drift.drift.p);
            let p = if p.starts_with('<') { p } else { format!("= {p}") };
            format!("{} {} (p {p})", columns[drift.column].header, drift.change())
        })
        .collect();
    Some(Warning {
        text: format!(
            "Drift from the first trial to the last (Mann–Kendall): {}; the shuffled order keeps it out of the \
             comparison, but it widens the intervals",
            listing(&told),
        ),
        rows: Vec::new(),
        trials: 0,
    })
}

/// The columns in which run order shows. The level is shared between the columns (Bonferroni).
pub(super) fn drifts(columns: &[ColumnView], rows: &[Row<'_>]) -> Vec<Drifting> {
    let directed: Vec<usize> =
        (0..columns.len()).filter(|column| columns[*column].better != fstone_model::Better::Neither).collect();
    directed
        .iter()
        .filter_map(|&column| {
            let drift = drift_of_run(&points(rows, column))?;
            let surely = drift.n >= MIN_FIGURES && drift.p * directed.len() as f64 <= super::ALPHA;
            (surely && drift.relative_change.is_some()).then_some(Drifting { column, drift })
        })
        .collect()
}

fn points(rows: &[Row<'_>], column: usize) -> Vec<RunPoint> {
    rows.iter()
        .enumerate()
        .flat_map(|(cell, row)| {
            row.entries[column].values.iter().map(move |value| RunPoint {
                position: f64::from(row.trials[value.trial].position),
                cell,
                value: value.value,
            })
        })
        .collect()
}

/// Places in the sample of values far from the others.
pub(super) fn outlying(sample: &Sample) -> Vec<usize> {
    outliers(sample).into_iter().map(|outlier| outlier.index).collect()
}
