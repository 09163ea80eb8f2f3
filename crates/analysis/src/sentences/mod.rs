//! The answer in words, never stronger than the statistics.
//!
//! A row is called higher or lower only when the comparison found the two to differ; a percentage is the interval
//! of the shift, not a ratio of means. Where too few trials could not have shown anything, that is said in place of
//! "no difference".
//!
//! What was lost comes first, then the study's main column: the best rows, by how much, and the worst. Further columns are named
//! together if they agree with it, and one by one if they do not. What is not known comes last, with what it costs to know it.

mod columns;
mod gaps;
mod panel;
mod panels;
mod teller;
mod unknown;
mod words;

pub use words::{amount, either_way, in_words};

use crate::{run::Analysis, text::counted};
use teller::{Rank, Sentence, Teller};

/// The longest answer, unless all of it is asked for.
pub const MOST_WORDS: usize = 90;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Length {
    /// What matters most, in at most [`MOST_WORDS`] words.
    #[default]
    Short,
    Long,
}

impl Analysis<'_> {
    /// [`Analysis::answer`] in short.
    pub fn sentences(&self) -> Vec<String> {
        self.answer(Length::Short)
    }

    /// The answer, worded only as strongly as the statistics allow.
    pub fn answer(&self, length: Length) -> Vec<String> {
        let mut sentences = self.all_sentences();
        if length == Length::Short {
            sentences.retain(|Sentence(rank, _)| *rank < Rank::Detail);
            let words = |sentences: &[Sentence]| -> usize {
                sentences.iter().map(|Sentence(_, text)| text.split_whitespace().count()).sum()
            };
            while words(&sentences) > MOST_WORDS {
                let last = sentences.iter().map(|Sentence(rank, _)| *rank).max();
                let Some(last) = last.filter(|rank| *rank > Rank::Always) else { break };
                let at = sentences.iter().rposition(|Sentence(rank, _)| *rank == last).expect("it is the rank of one");
                sentences.remove(at);
            }
        }
        sentences.into_iter().map(|Sentence(_, text)| text).collect()
    }

    fn all_sentences(&self) -> Vec<Sentence> {
        let harm = self.harm_in_words();
        let mut sentences: Vec<Sentence> = harm.into_iter().map(|text| Sentence(Rank::Always, text)).collect();
        let Some(column) = self.primary() else {
            let text = "The study has no column to show, so there is nothing to compare.".to_owned();
            sentences.push(Sentence(Rank::Always, text));
            return sentences;
        };
        let teller = Teller { analysis: self, column };
        let present = self.rows.iter().filter(|row| row.entries[column].summary.is_some()).count();
        match (present, self.structure.panels.len()) {
            (0, _) => sentences.push(Sentence(Rank::Always, format!("No row has a figure for {}.", teller.header()))),
            (1, _) => sentences.push(Sentence(Rank::Always, teller.only_row())),
            (_, 1) => teller.one_panel(&mut sentences),
            _ => teller.many_panels(&mut sentences),
        }
        sentences.extend(teller.gaps().map(|text| Sentence(Rank::Gap, text)));
        sentences.extend(teller.unknown().map(|text| Sentence(Rank::Unknown, text)));
        sentences.extend(teller.drift().map(|text| Sentence(Rank::Unknown, text)));
        sentences
    }

    /// What was lost or damaged, and in which rows: what everything else is worth little without.
    fn harm_in_words(&self) -> Option<String> {
        let told: Vec<String> = (0..self.rows.len())
            .filter_map(|row| Some(format!("{} {}", self.label_in_words(row), self.rows[row].harm.as_ref()?)))
            .collect();
        let words = |rows: usize| told[..rows].iter().map(|text| text.split_whitespace().count()).sum::<usize>();
        let shown = (1..=told.len()).rev().find(|rows| *rows == 1 || words(*rows) <= MOST_HARM_WORDS).unwrap_or(0);
        let mut text = told[..shown].join("; ");
        if told.len() > shown {
            let more = told.len() - shown;
            let verb = if more == 1 { "is" } else { "are" };
            text.push_str(&format!("; {} {verb} marked ‡ in the table", counted(more, "more row")));
        }
        (!told.is_empty()).then(|| format!("{text}."))
    }

    /// A row's name where it may not be clear what it is compared with.
    fn label_in_words(&self, row: usize) -> String {
        let row = &self.rows[row];
        match self.structure.subject {
            Some(subject) if self.structure.panels.len() == 1 => words::quoted(&row.levels[subject]),
            _ => words::quoted(&row.label),
        }
    }
}

/// Rows with losses that take more words than this are counted: the answer is to name the best as well.
const MOST_HARM_WORDS: usize = 36;
