//! The answer in words, never stronger than the statistics.
//!
//! A row is called higher or lower only when the comparison found the two to differ; a percentage is the interval
//! of the shift, not a ratio of means. Where too few trials could not have shown anything, that is said in place of
//! "no difference".

mod caveats;
mod panel;
mod panels;
mod teller;
mod words;

pub use words::{amount, in_words};

use crate::run::Analysis;
use teller::Teller;

impl Analysis<'_> {
    /// The answer in at most three sentences, worded only as strongly as the statistics allow.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let Some(column) = self.primary() else {
            return vec!["The study shows no column, so there is nothing to compare.".to_owned()];
        };
        let teller = Teller { analysis: self, column };
        let present = self.rows.iter().filter(|row| row.entries[column].summary.is_some()).count();
        let mut sentences = match (present, self.structure.panels.len()) {
            (0, _) => vec![format!("No row has a figure for {}.", teller.header())],
            (1, _) => vec![teller.only_row()],
            (_, 1) => teller.one_panel(),
            _ => teller.many_panels(),
        };
        sentences.extend(teller.caveats());
        sentences
    }
}
