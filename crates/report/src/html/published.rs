//! Published figures beside today's, column by column.

use super::figures::FigureView;
use crate::{Analysis, analysis::Published, number::ratio, text::title};

pub(super) struct PublishedView {
    pub(super) source: String,
    pub(super) label_heads: Vec<String>,
    /// One per published column.
    pub(super) parts: Vec<Part>,
    pub(super) missing: String,
}

pub(super) struct Part {
    pub(super) title: String,
    pub(super) unit: &'static str,
    pub(super) rows: Vec<PublishedRow>,
    pub(super) figure: Option<FigureView>,
}

pub(super) struct PublishedRow {
    pub(super) cell: u32,
    pub(super) labels: Vec<String>,
    /// Published, today, and the ratios to the baseline then and now.
    pub(super) cells: [String; 4],
}

pub(super) fn published_view(
    analysis: &Analysis<'_>,
    published: &Published,
    figure: &dyn Fn(usize) -> Option<FigureView>,
) -> PublishedView {
    let parts = published.columns.iter().map(|&column| Part {
        title: title(&analysis.columns[column].header),
        unit: published.unit(column, &analysis.columns[column]),
        rows: rows(analysis, published, column),
        figure: figure(column),
    });
    PublishedView {
        source: published.source.clone(),
        label_heads: analysis.label_heads().into_iter().map(str::to_owned).collect(),
        parts: parts.collect(),
        missing: published.missing.join("; "),
    }
}

fn rows(analysis: &Analysis<'_>, published: &Published, column: usize) -> Vec<PublishedRow> {
    let scale = &analysis.columns[column].scale;
    let row = |index: usize| {
        let (row, entry) = (&analysis.rows[index], &published.entries[index][column]);
        let then = match (published.figure(index, column, scale), &entry.note) {
            (Some(figure), Some(note)) => format!("{figure} ({note})"),
            (Some(figure), None) => figure,
            (None, note) => note.clone().unwrap_or_else(|| "–".to_owned()),
        };
        let today = row.entries[column].mean().map(|mean| published.today(column, scale, mean));
        let told = |value: Option<f64>| value.map(ratio).unwrap_or_default();
        PublishedRow {
            cell: row.cell,
            labels: analysis.labels(index).into_iter().map(str::to_owned).collect(),
            cells: [
                then,
                today.unwrap_or_else(|| row.word.unwrap_or("–").to_owned()),
                told(entry.then),
                told(entry.now),
            ],
        }
    };
    let something = |index: &usize| published.entries[*index][column].is_something();
    analysis.order().into_iter().filter(something).map(row).collect()
}
