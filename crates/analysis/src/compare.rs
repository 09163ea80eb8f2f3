//! Which rows differ, and which cannot be told apart.

use crate::{
    structure::Structure,
    table::{ColumnView, Entry, Row},
};
use fstone_model::{Better, Dataset, study::Order};
use fstone_stats::{
    Blocking, Comparison, Sample,
    compare::{Pairwise, PowerNote},
    compare_all,
};

/// The share of tables in which any pair of rows at all may be called different by mistake.
pub const ALPHA: f64 = 0.05;

/// A panel with more rows than this is not compared pair by pair: the correction for so many pairs leaves little to
/// be found, nobody reads so many letters, and the work grows with the square.
pub const MAX_COMPARED_ROWS: usize = 40;

/// The rows of a column, compared within each panel.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnComparison {
    /// One per panel of the structure; `None` with fewer than two rows that have figures, or too many.
    pub panels: Vec<Option<PanelComparison>>,
}

/// The rows of a panel, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct PanelComparison {
    /// The rows that have figures, best first (largest first where no direction is better).
    pub rows: Vec<usize>,
    /// Their comparison, by place in `rows`.
    pub comparison: Comparison,
}

impl PanelComparison {
    /// The comparison of two rows, told against `baseline`.
    #[must_use]
    pub fn pair(&self, baseline: usize, other: usize) -> Option<Pairwise> {
        self.comparison.pair(self.place(baseline)?, self.place(other)?)
    }

    /// Whether the two rows were found to differ.
    #[must_use]
    pub fn differ(&self, a: usize, b: usize) -> bool {
        self.pair(a, b).is_some_and(|pair| pair.differs)
    }

    /// Whether any two rows were found to differ.
    #[must_use]
    pub fn any_differ(&self) -> bool {
        self.comparison.pairs.iter().any(|pair| pair.differs)
    }

    /// Whether no figures at all could have made any two rows differ: there are too few trials.
    #[must_use]
    pub fn is_powerless(&self) -> bool {
        !self.comparison.can_ever_differ()
    }

    fn place(&self, row: usize) -> Option<usize> {
        self.rows.iter().position(|other| *other == row)
    }
}

impl ColumnComparison {
    /// What has to be said where pairs could not have differed: that of the panel with the most such pairs.
    #[must_use]
    pub fn power_note(&self) -> Option<PowerNote> {
        self.panels
            .iter()
            .flatten()
            .filter_map(|panel| panel.comparison.power_note())
            .max_by_key(|note| note.powerless_pairs)
    }
}

/// Compares every column and fills in letters, ratios and shifts.
pub(super) fn compare(
    dataset: &Dataset,
    structure: &Structure,
    columns: &[ColumnView],
    rows: &mut [Row<'_>],
) -> Vec<ColumnComparison> {
    let blocks = dataset.run.plan.order == Order::Blocks;
    (0..columns.len())
        .map(|column| {
            let better = columns[column].better;
            let panels = structure.panels.iter().map(|panel| {
                let compared = compare_panel(rows, &panel.rows, column, better, blocks);
                if let Some(compared) = &compared {
                    letter(rows, column, compared);
                }
                ratios(rows, &panel.rows, panel.baseline, column, compared.as_ref());
                compared
            });
            ColumnComparison { panels: panels.collect() }
        })
        .collect()
}

fn compare_panel(
    rows: &[Row<'_>],
    of_panel: &[usize],
    column: usize,
    better: Better,
    blocks: bool,
) -> Option<PanelComparison> {
    let entry = |row: usize| &rows[row].entries[column];
    let mut present: Vec<usize> = of_panel.iter().copied().filter(|row| entry(*row).summary.is_some()).collect();
    if present.len() < 2 || present.len() > MAX_COMPARED_ROWS {
        return None;
    }
    let mean = |row: usize| entry(row).mean().unwrap_or(f64::NAN);
    present.sort_by(|a, b| {
        let ascending = mean(*a).total_cmp(&mean(*b));
        if better == Better::Lower { ascending } else { ascending.reverse() }
    });
    let samples: Vec<Sample> = present
        .iter()
        .filter_map(|row| Sample::new(entry(*row).values.iter().map(|value| value.value).collect()).ok())
        .collect();
    let repetitions: Vec<Vec<usize>> = present.iter().map(|row| repetitions(&rows[*row], entry(*row))).collect();
    // A record that holds a trial twice has no blocks to go by.
    let blocking = if blocks && repetitions.iter().all(|list| distinct(list)) {
        Blocking::Blocks(&repetitions)
    } else {
        Blocking::Independent
    };
    let comparison = compare_all(&samples, ALPHA, blocking);
    Some(PanelComparison { rows: present, comparison })
}

fn repetitions(row: &Row<'_>, entry: &Entry) -> Vec<usize> {
    entry.values.iter().map(|value| row.trials[value.trial].id.repetition as usize).collect()
}

fn distinct(list: &[usize]) -> bool {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// Letters say something only where there is more than one group.
fn letter(rows: &mut [Row<'_>], column: usize, compared: &PanelComparison) {
    let Some(letters) = compared.comparison.letters.as_ref().filter(|_| compared.any_differ()) else { return };
    for (row, letters) in compared.rows.iter().zip(letters) {
        rows[*row].entries[column].letters.clone_from(letters);
    }
}

fn ratios(
    rows: &mut [Row<'_>],
    of_panel: &[usize],
    baseline: Option<usize>,
    column: usize,
    compared: Option<&PanelComparison>,
) {
    let Some(baseline) = baseline else { return };
    let Some(reference) = rows[baseline].entries[column].mean().filter(|mean| *mean > 0.0) else { return };
    for &row in of_panel.iter().filter(|row| **row != baseline) {
        let pair = compared.and_then(|compared| compared.pair(baseline, row));
        let entry = &mut rows[row].entries[column];
        entry.ratio = entry.mean().map(|mean| mean / reference);
        entry.shift = pair.filter(|pair| pair.differs).and_then(|pair| pair.relative);
    }
}
