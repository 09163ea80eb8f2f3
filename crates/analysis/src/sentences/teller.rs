//! What the answer is told of, and the names of things in it.

use super::words::quoted;
use crate::{compare::PanelComparison, run::Analysis, text::listing};
use fstone_model::Better;

/// More names than this become a count.
pub(super) const MAX_NAMES: usize = 4;

/// Tells of one column.
pub(super) struct Teller<'a> {
    pub(super) analysis: &'a Analysis<'a>,
    pub(super) column: usize,
}

impl Teller<'_> {
    pub(super) fn header(&self) -> &str {
        &self.analysis.columns[self.column].header
    }

    /// The better end of the column.
    pub(super) fn best_word(&self) -> &'static str {
        if self.analysis.columns[self.column].better == Better::Lower { "lowest" } else { "highest" }
    }

    pub(super) fn worst_word(&self) -> &'static str {
        if self.analysis.columns[self.column].better == Better::Lower { "highest" } else { "lowest" }
    }

    pub(super) fn value(&self, row: usize) -> String {
        let mean = self.analysis.rows[row].entries[self.column].mean().unwrap_or(f64::NAN);
        self.analysis.columns[self.column].scale.with_unit(mean)
    }

    /// What the row is called among those it is compared with.
    pub(super) fn name(&self, row: usize) -> String {
        quoted(self.level(row))
    }

    pub(super) fn level(&self, row: usize) -> &str {
        let row = &self.analysis.rows[row];
        self.analysis.structure.subject.map_or(&row.label, |subject| &row.levels[subject])
    }

    /// What the row is called in the whole table.
    pub(super) fn unique_name(&self, row: usize) -> String {
        if self.analysis.structure.panels.len() == 1 { self.name(row) } else { quoted(&self.analysis.rows[row].label) }
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

    pub(super) fn most_trials(&self) -> usize {
        self.analysis.rows.iter().map(|row| row.entries[self.column].values.len()).max().unwrap_or(0)
    }
}
