//! What has no figure, and what weakens the rest.

use super::teller::{MAX_NAMES, Teller};
use crate::{
    number::grouped,
    table::Row,
    text::{capitalised, counted, listing, title},
};

impl Teller<'_> {
    pub(super) fn gaps(&self) -> Option<String> {
        let analysis = self.analysis;
        let shown = (0..analysis.rows.len()).filter(|row| analysis.is_shown(*row));
        let empty: Vec<usize> = shown.clone().filter(|row| analysis.rows[*row].word.is_some()).collect();
        let mut parts = Vec::new();
        if !empty.is_empty() {
            let mut words: Vec<(&str, Vec<String>)> = Vec::new();
            for row in &empty {
                let (name, word) = (analysis.label_in_words(*row), analysis.rows[*row].word.unwrap_or_default());
                match words.iter_mut().find(|(known, _)| *known == word) {
                    Some((_, rows)) => rows.push(name),
                    None => words.push((word, vec![name])),
                }
            }
            let told: Vec<String> = words
                .iter()
                .map(|(word, rows)| {
                    let names = if rows.len() > MAX_NAMES { format!("{} of them", rows.len()) } else { listing(rows) };
                    format!("{names} ({word})")
                })
                .collect();
            let (empty, all) = (empty.len(), shown.count());
            parts.push(match words.as_slice() {
                [(word, rows)] if rows.len() > MAX_NAMES => {
                    format!("there is no figure for {empty} of {all} rows ({word})")
                }
                _ => format!("there is no figure for {empty} of {all} rows: {}", listing(&told)),
            });
        }
        let partial = analysis.rows.iter().filter(|row| row.completed > 0).flat_map(Row::all);
        let partial = partial.filter(|trial| !trial.outcome.is_completed()).count();
        if partial > 0 {
            parts.push(format!("{} did not complete", counted(partial, "other trial")));
        }
        let apart: Vec<String> = analysis.comparisons[self.column]
            .panels
            .iter()
            .flatten()
            .flat_map(crate::compare::PanelComparison::apart)
            .map(|row| analysis.label_in_words(row))
            .collect();
        if !apart.is_empty() {
            let names = if apart.len() > MAX_NAMES { counted(apart.len(), "row") } else { listing(&apart) };
            let verb = if apart.len() == 1 { "shares" } else { "share" };
            parts.push(format!("there is no comparison with {names}, which {verb} no block with the others"));
        }
        (!parts.is_empty()).then(|| format!("{}.", capitalised(&parts.join("; "))))
    }

    pub(super) fn drift(&self) -> Option<String> {
        let drift = self.analysis.drifts.iter().find(|drift| drift.column == self.column)?;
        let change = drift.drift.relative_change.unwrap_or(0.0);
        let percent = grouped(change.abs() * 100.0, usize::from(change.abs() < 0.1));
        Some(format!("{} drifted by {percent} % over the run.", title(self.header())))
    }
}
