//! One column of the answer, and the names of its rows and figures.

use super::words::quoted;
use crate::{
    clock,
    compare::PanelComparison,
    run::Analysis,
    text::{counted, listing},
};
use fstone_model::Better;

/// More names than this become a count.
pub(super) const MAX_NAMES: usize = 3;

/// How much a sentence matters. If the answer is too long, sentences of the last rank are left out first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Losses and the main column; they always stay.
    Always,
    Gap,
    Contrast,
    Unknown,
    Detail,
}

pub(super) struct Sentence(pub(super) Rank, pub(super) String);

/// Writes the sentences about one column.
pub(super) struct Teller<'a> {
    pub(super) analysis: &'a Analysis<'a>,
    pub(super) column: usize,
}

impl<'a> Teller<'a> {
    pub(super) fn header(&self) -> &'a str {
        &self.analysis.columns[self.column].header
    }

    pub(super) fn best_word(&self) -> &'static str {
        if self.analysis.columns[self.column].better == Better::Lower { "lowest" } else { "highest" }
    }

    pub(super) fn worst_word(&self) -> &'static str {
        if self.analysis.columns[self.column].better == Better::Lower { "highest" } else { "lowest" }
    }

    pub(super) fn mean(&self, row: usize) -> f64 {
        self.analysis.rows[row].entries[self.column].mean().unwrap_or(f64::NAN)
    }

    pub(super) fn value(&self, row: usize) -> String {
        self.analysis.columns[self.column].scale.with_unit(self.mean(row))
    }

    /// The means of some rows: "41,000/s", "41,000 to 42,310/s".
    pub(super) fn values(&self, rows: &[usize]) -> String {
        let scale = &self.analysis.columns[self.column].scale;
        let means = || rows.iter().map(|row| self.mean(*row));
        let (low, high) = (means().fold(f64::INFINITY, f64::min), means().fold(f64::NEG_INFINITY, f64::max));
        if scale.number(low) == scale.number(high) {
            return scale.with_unit(high);
        }
        format!("{} to {}", scale.number(low), scale.with_unit(high))
    }

    /// What the row is called among those it is compared with. A row that lost data is never praised without that.
    pub(super) fn name(&self, row: usize) -> String {
        format!("{}{}", quoted(self.level(row)), self.mark(row))
    }

    pub(super) fn mark(&self, row: usize) -> &'static str {
        if self.analysis.rows[row].harm.is_some() { " ‡" } else { "" }
    }

    pub(super) fn level(&self, row: usize) -> &str {
        let row = &self.analysis.rows[row];
        self.analysis.structure.subject.map_or(&row.label, |subject| &row.levels[subject])
    }

    pub(super) fn names(&self, rows: &[usize]) -> String {
        if rows.len() > MAX_NAMES {
            return format!("{} rows", rows.len());
        }
        listing(&rows.iter().map(|row| self.name(*row)).collect::<Vec<_>>())
    }

    pub(super) fn panel(&self, panel: usize) -> Option<&PanelComparison> {
        self.analysis.comparisons[self.column].panels[panel].as_ref()
    }

    /// The best row of a panel, and those beside it that are not told apart from it. A row that scatters may stand below those that are:
    /// it is not known to be anywhere.
    pub(super) fn best(&self, panel: &PanelComparison) -> Vec<usize> {
        let rows = panel.together();
        let best = rows[0];
        rows.into_iter().take_while(|row| *row == best || !panel.differ(best, *row)).collect()
    }

    pub(super) fn fewest_and_most(&self, rows: &[usize]) -> (usize, usize) {
        let counts = || rows.iter().map(|row| self.analysis.rows[*row].entries[self.column].values.len());
        (counts().min().unwrap_or(0), counts().max().unwrap_or(0))
    }

    /// How many trials each of these rows has: "1 trial", "1 or 2 trials", "1 to 5 trials".
    pub(super) fn trials(&self, rows: &[usize]) -> String {
        let (fewest, most) = self.fewest_and_most(rows);
        match most - fewest {
            0 => counted(most, "trial"),
            1 => format!("{fewest} or {}", counted(most, "trial")),
            _ => format!("{fewest} to {}", counted(most, "trial")),
        }
    }

    /// Whether a perturbed guest has some of what seeds have nothing of, such as losses.
    pub(super) fn is_moved_from_nothing(&self) -> bool {
        self.analysis.rows.iter().any(|row| row.entries[self.column].band() == Some(f64::INFINITY))
    }

    /// In virtual time, what the figures of these rows are exact for where all of a row agree, but are too few for a test: "exact for this
    /// seed".
    pub(super) fn exact_for(&self, rows: &[usize]) -> Option<String> {
        if self.is_one_seed(rows) {
            return Some("exact for this seed".to_owned());
        }
        let agree = |row: &usize| {
            let values = &self.analysis.rows[*row].entries[self.column].values;
            values.len() > 1 && values.iter().all(|value| value.value == values[0].value)
        };
        let is_so = clock::is_virtual(self.analysis.dataset) && rows.iter().all(agree);
        is_so.then(|| format!("the same in {} of each", self.trials(rows)))
    }

    /// Those of these rows with the same figure as this one.
    pub(super) fn equal_to(&self, row: usize, rows: &[usize]) -> Vec<usize> {
        rows.iter().copied().filter(|other| is_same(self.mean(*other), self.mean(row))).collect()
    }

    /// Whether these rows have the one trial of one seed in virtual time: figures are exact for it, and no test says more.
    pub(super) fn is_one_seed(&self, rows: &[usize]) -> bool {
        clock::has_one_seed(self.analysis.dataset) && self.fewest_and_most(rows) == (1, 1)
    }
}

/// Whether two means differ by rounding only; how they are printed says nothing of that.
pub(super) fn is_same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}
