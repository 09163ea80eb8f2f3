//! The published figures' table.

use crate::{
    Analysis,
    analysis::{Published, PublishedEntry},
    number::ratio,
};

pub(super) struct PublishedTable {
    pub(super) source: String,
    pub(super) label_heads: Vec<String>,
    /// One per published column.
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<PublishedRow>,
    pub(super) missing: String,
}

pub(super) struct PublishedRow {
    pub(super) cell: u32,
    pub(super) labels: Vec<String>,
    /// Four per published column.
    pub(super) cells: Vec<String>,
}

pub(super) fn published_table(analysis: &Analysis<'_>, published: &Published) -> PublishedTable {
    let rows = analysis
        .order()
        .into_iter()
        .filter(|row| published.entries[*row].iter().any(PublishedEntry::is_something))
        .map(|index| {
            let row = &analysis.rows[index];
            let mut cells = Vec::with_capacity(4 * published.columns.len());
            for &column in &published.columns {
                let (entry, scale) = (&published.entries[index][column], &analysis.columns[column].scale);
                cells.push(match (entry.figure(scale), &entry.note) {
                    (Some(figure), Some(note)) => format!("{figure} ({note})"),
                    (Some(figure), None) => figure,
                    (None, note) => note.clone().unwrap_or_else(|| "–".to_owned()),
                });
                let today = row.entries[column].mean().map(|mean| scale.number(mean));
                cells.push(today.unwrap_or_else(|| row.word.unwrap_or("–").to_owned()));
                cells.extend([entry.then, entry.now].map(|value| value.map(ratio).unwrap_or_default()));
            }
            PublishedRow {
                cell: row.cell,
                labels: analysis.labels(index).into_iter().map(str::to_owned).collect(),
                cells,
            }
        })
        .collect();
    PublishedTable {
        source: published.source.clone(),
        label_heads: analysis.label_heads().into_iter().map(str::to_owned).collect(),
        heads: published.columns.iter().map(|column| analysis.columns[*column].with_unit()).collect(),
        rows,
        missing: published.missing.join("; "),
    }
}
