//! The answer in words, never stronger than the statistics.
//!
//! A row is called higher or lower only when the comparison found the two to differ; a percentage is the interval
//! of the shift, not a ratio of means. Where too few trials could not have shown anything, that is said in place of
//! "no difference".

mod caveats;
mod panel;
mod panels;
mod teller;
mod untold;
mod words;

pub use words::{amount, in_words};

use crate::{
    compare::PanelComparison,
    run::Analysis,
    text::{counted, listing},
};
use fstone_model::Better;
use teller::Teller;

/// More columns than this are better read from the table.
const MAX_COLUMNS: usize = 5;

impl Analysis<'_> {
    /// The answer, worded only as strongly as the statistics allow: the most important column first, a sentence for each of the
    /// others, then what could not be told and what that would cost.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let Some(column) = self.primary() else {
            return vec!["The study has no column to show, so there is nothing to compare.".to_owned()];
        };
        let teller = Teller { analysis: self, column };
        let present = self.rows.iter().filter(|row| row.entries[column].summary.is_some()).count();
        let mut sentences = match (present, self.structure.panels.len()) {
            (0, _) => vec![format!("No row has a figure for {}.", teller.header())],
            (1, _) => vec![teller.only_row()],
            (_, 1) => teller.one_panel(),
            _ => teller.many_panels(),
        };
        sentences.extend(self.other_columns(column));
        sentences.extend(teller.untold());
        sentences.extend(teller.caveats());
        sentences
    }

    /// A sentence for each further column in which rows differ, and one for those in which none do.
    fn other_columns(&self, told: usize) -> Vec<String> {
        let directed = |column: &usize| *column != told && self.columns[*column].better != Better::Neither;
        let (mut sentences, mut alike, mut more) = (Vec::new(), Vec::new(), 0);
        for column in (0..self.columns.len()).filter(directed) {
            let panels = &self.comparisons[column].panels;
            if panels.iter().flatten().all(PanelComparison::is_powerless) {
                continue;
            }
            if !panels.iter().flatten().any(PanelComparison::any_differ) {
                alike.push(self.columns[column].header.as_str());
            } else if sentences.len() < MAX_COLUMNS {
                let teller = Teller { analysis: self, column };
                let told = if self.structure.panels.len() == 1 { teller.one_panel() } else { teller.many_panels() };
                sentences.extend(told.into_iter().next());
            } else {
                more += 1;
            }
        }
        if more > 0 {
            sentences.push(format!("Rows differ in {} too.", counted(more, "more column")));
        }
        if !alike.is_empty() {
            sentences.push(format!("No rows are told apart in {}.", listing(&alike)));
        }
        sentences
    }
}
