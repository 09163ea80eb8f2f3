//! Figures published elsewhere, beside today's.

use crate::{
    number::{self, Scale, is_whole},
    structure::Structure,
    table::{ColumnView, Row},
    text,
};
use fstone_model::Dataset;

#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    pub source: String,
    /// One list per row of the analysis, one entry per column.
    pub entries: Vec<Vec<PublishedEntry>>,
    pub columns: Vec<usize>,
    /// One per column: the unit that suits what was published. It can be another than today's: minutes then,
    /// milliseconds now.
    pub scales: Vec<Scale>,
    /// Labels of published rows that this run does not have.
    pub missing: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct PublishedEntry {
    /// What was published; `None` where there is no figure.
    pub value: Option<f64>,
    pub note: Option<String>,
    /// The published figure over the published figure of the baseline row; `None` without both, and for the baseline.
    pub then: Option<f64>,
    /// Today's mean over today's mean of the same baseline row.
    pub now: Option<f64>,
    pub is_reference: bool,
}

impl PublishedEntry {
    pub const fn is_something(&self) -> bool {
        self.value.is_some() || self.note.is_some()
    }
}

impl Published {
    pub(super) fn of(dataset: &Dataset, structure: &Structure, views: &[ColumnView], rows: &[Row<'_>]) -> Option<Self> {
        let plan = &dataset.run.plan;
        let published = plan.published.as_ref()?;
        let mut entries = vec![vec![PublishedEntry::default(); views.len()]; rows.len()];
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
            for column in 0..views.len() {
                fill_ratios(&mut entries, rows, &panel.rows, panel.baseline, column);
            }
        }
        let columns: Vec<usize> =
            (0..views.len()).filter(|column| entries.iter().any(|row| row[*column].is_something())).collect();
        if columns.is_empty() {
            return None;
        }
        let scale = |index: usize| {
            let values: Vec<_> = entries.iter().filter_map(|row| Some((row[index].value?, None))).collect();
            Scale::choose(views[index].unit, &values, values.iter().all(|(value, _)| is_whole(*value)))
        };
        let scales = (0..views.len()).map(scale).collect();
        Some(Self { source: text::block(&published.source), scales, entries, columns, missing })
    }

    /// The published figure, with the digits it was published with; with its unit where that is not the table's.
    pub fn figure(&self, row: usize, column: usize, today: &Scale) -> Option<String> {
        let scale = &self.scales[column];
        let number = number::published(self.entries[row][column].value? / scale.divisor);
        Some(if scale.symbol == today.symbol { number } else { scale.labelled(&number) })
    }

    /// Today's mean, with its unit where the published figure has another.
    pub fn today(&self, column: usize, today: &Scale, mean: f64) -> String {
        if self.scales[column].symbol == today.symbol { today.number(mean) } else { today.with_unit(mean) }
    }

    /// The unit for the column's head; nothing where every figure carries its own.
    pub fn unit(&self, column: usize, view: &ColumnView) -> &'static str {
        if self.scales[column].symbol == view.scale.symbol { view.unit_line() } else { "" }
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
