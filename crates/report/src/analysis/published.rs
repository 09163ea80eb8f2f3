//! Figures published elsewhere, beside today's.

use super::{ColumnView, Row, Structure};
use crate::{
    number::{self, Scale},
    text,
};
use fstone_model::Dataset;

/// What was published, beside what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// Where and when, and on what machine.
    pub source: String,
    /// One list per row of the analysis, one entry per column.
    pub entries: Vec<Vec<PublishedEntry>>,
    /// Columns that have any published figure or note.
    pub columns: Vec<usize>,
    /// Labels of published rows that this run does not have.
    pub missing: Vec<String>,
}

/// A published figure beside its row's own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PublishedEntry {
    /// What was published; `None` where there is no figure.
    pub value: Option<f64>,
    /// What stood in its place or beside it.
    pub note: Option<String>,
    /// The published figure over the published figure of the baseline row; `None` without both, and for the baseline.
    pub then: Option<f64>,
    /// Today's mean over today's mean of the same baseline row.
    pub now: Option<f64>,
    /// Whether this is the row that the ratios refer to.
    pub is_reference: bool,
}

impl PublishedEntry {
    /// Whether anything was published here.
    #[must_use]
    pub const fn is_something(&self) -> bool {
        self.value.is_some() || self.note.is_some()
    }

    /// The published figure in the column's unit with the digits it was published with.
    #[must_use]
    pub fn figure(&self, scale: &Scale) -> Option<String> {
        Some(number::published(self.value? / scale.divisor))
    }
}

impl Published {
    pub(super) fn of(
        dataset: &Dataset,
        structure: &Structure,
        columns: &[ColumnView],
        rows: &[Row<'_>],
    ) -> Option<Self> {
        let plan = &dataset.run.plan;
        let published = plan.published.as_ref()?;
        let mut entries = vec![vec![PublishedEntry::default(); columns.len()]; rows.len()];
        let mut missing: Vec<String> = Vec::new();
        for figure in &published.figures {
            let row = plan.cells.iter().position(|cell| cell.label == figure.cell);
            let column = plan.columns.iter().position(|column| column.header == figure.column);
            if let (Some(row), Some(column)) = (row, column) {
                entries[row][column].value = figure.value.filter(|value| value.is_finite());
                entries[row][column].note = figure.note.as_deref().map(text::line);
            } else if row.is_none() {
                let label = text::line(&figure.cell);
                if !missing.contains(&label) {
                    missing.push(label);
                }
            }
        }
        for panel in &structure.panels {
            for column in 0..columns.len() {
                fill_ratios(&mut entries, rows, &panel.rows, panel.baseline, column);
            }
        }
        let columns: Vec<usize> =
            (0..columns.len()).filter(|column| entries.iter().any(|row| row[*column].is_something())).collect();
        (!columns.is_empty()).then(|| Self { source: text::block(&published.source), entries, columns, missing })
    }
}

/// The baseline is the panel's, or else its first row that has both figures.
fn fill_ratios(
    entries: &mut [Vec<PublishedEntry>],
    rows: &[Row<'_>],
    of_panel: &[usize],
    baseline: Option<usize>,
    column: usize,
) {
    let both = |row: usize, entries: &[Vec<PublishedEntry>]| {
        let then = entries[row][column].value.filter(|value| *value > 0.0)?;
        let now = rows[row].entries[column].mean().filter(|mean| *mean > 0.0)?;
        Some((then, now))
    };
    let reference = baseline.filter(|row| both(*row, entries).is_some());
    let Some(reference) = reference.or_else(|| of_panel.iter().copied().find(|row| both(*row, entries).is_some()))
    else {
        return;
    };
    let Some((then, now)) = both(reference, entries) else { return };
    entries[reference][column].is_reference = true;
    for &row in of_panel.iter().filter(|row| **row != reference) {
        let measured = rows[row].entries[column].mean();
        let entry = &mut entries[row][column];
        entry.then = entry.value.map(|value| value / then);
        entry.now = measured.map(|mean| mean / now);
    }
}
