//! What did not complete, and what weakens the rest.

use super::teller::{MAX_NAMES, Teller};
use crate::{
    number::grouped,
    text::{capitalised, counted, listing},
};
use fstone_model::metric::catalog;

impl Teller<'_> {
    /// What did not complete, and what weakens the rest; one sentence.
    pub(super) fn caveats(&self) -> Option<String> {
        let analysis = self.analysis;
        let empty: Vec<usize> = (0..analysis.rows.len()).filter(|row| analysis.rows[*row].word.is_some()).collect();
        let mut parts = Vec::new();
        if !empty.is_empty() {
            let mut words: Vec<(&str, Vec<String>)> = Vec::new();
            for row in &empty {
                let (name, word) = (self.unique_name(*row), analysis.rows[*row].word.unwrap_or_default());
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
            parts.push(format!(
                "there is no figure for {} of {} rows: {}",
                empty.len(),
                analysis.rows.len(),
                listing(&told)
            ));
        }
        let partial = analysis.rows.iter().filter(|row| row.completed > 0).map(|row| row.trials.len() - row.completed);
        let partial: usize = partial.sum();
        if partial > 0 {
            let of = if partial == 1 { "1 other trial".to_owned() } else { format!("{partial} other trials") };
            parts.push(format!("{of} did not complete"));
        }
        parts.extend(self.not_mounted());
        if let Some(drift) = analysis.drifts.iter().find(|drift| drift.column == self.column) {
            let change = drift.drift.relative_change.unwrap_or(0.0);
            parts.push(format!(
                "{} drifted by {} % over the run",
                self.header(),
                grouped(change.abs() * 100.0, usize::from(change.abs() < 0.1))
            ));
        }
        (!parts.is_empty()).then(|| format!("{}.", capitalised(&parts.join("; "))))
    }

    /// Rows that may have lost more than the column says: nothing is read in a state that cannot be mounted.
    fn not_mounted(&self) -> Option<String> {
        let analysis = self.analysis;
        let lost = analysis.columns.iter().find(|column| column.metric == catalog::PROMISES_LOST.name)?;
        let told: Vec<String> = (0..analysis.rows.len())
            .filter_map(|row| {
                let trials = analysis.rows[row].trials.iter().filter(|trial| trial.outcome.is_completed());
                let mounted = trials.filter_map(|trial| trial.figure(&lost.step, catalog::STATES_MOUNTED.name));
                let least = mounted.map(|share| share.value).min_by(f64::total_cmp).filter(|share| *share < 100.0)?;
                // Rounded down: not all is not 100.0 %.
                Some(format!("{} ({} %)", self.unique_name(row), grouped((least * 10.0).floor() / 10.0, 1)))
            })
            .collect();
        let names = if told.len() > MAX_NAMES { counted(told.len(), "row") } else { listing(&told) };
        (!told.is_empty()).then(|| {
            format!("{} counts only states that could be mounted, and not all could be in {names}", lost.header)
        })
    }
}
