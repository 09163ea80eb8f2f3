//! The analysis of a run, which brings all other parts of the crate together.

use crate::{
    clock,
    compare::{self, ColumnComparison, PanelComparison},
    drift::{self, Drifting},
    harm, machines,
    notes::{self, Footnote, Lacking, Warning},
    published::Published,
    served,
    structure::Structure,
    table::{self, ColumnView, Entry, Row},
    text,
};
use fstone_model::{
    Better, Dataset, Trial, Unit,
    study::{Column, FILESYSTEM_FACTOR},
};
use fstone_stats::compare::Basis;
use std::collections::HashMap;

/// A run, worked out.
#[derive(Debug)]
pub struct Analysis<'a> {
    pub dataset: &'a Dataset,
    pub structure: Structure,
    pub columns: Vec<ColumnView>,
    pub rows: Vec<Row<'a>>,
    pub footnotes: Vec<Footnote>,
    pub lacking: Option<Lacking>,
    pub warnings: Vec<Warning>,
    /// How many completed trials were disturbed by other programs on the machine.
    pub(crate) disturbed: usize,
    /// One per column.
    pub comparisons: Vec<ColumnComparison>,
    pub drifts: Vec<Drifting>,
    /// Figures published elsewhere, to compare with these; `None` if the study has none.
    pub published: Option<Published>,
}

impl<'a> Analysis<'a> {
    pub fn of(dataset: &'a Dataset) -> Self {
        let plan = &dataset.run.plan;
        let mut by_cell: HashMap<u32, Vec<&Trial>> = HashMap::new();
        for trial in &dataset.trials {
            by_cell.entry(trial.id.cell).or_default().push(trial);
        }
        let structure = Structure::of(plan);
        let one_seed = clock::has_one_seed(dataset);
        let mut rows: Vec<Row<'a>> = plan
            .cells
            .iter()
            .enumerate()
            .map(|(index, cell)| {
                let all = by_cell.remove(&cell.index).unwrap_or_default();
                let is_perturbed = |trial: &&Trial| trial.id.perturbation().is_some();
                let guests: Vec<&Trial> =
                    all.iter().copied().filter(|trial| trial.id.repetition == 0 || is_perturbed(trial)).collect();
                let harm = harm::harm(cell, &all);
                let trials: Vec<&Trial> = all.into_iter().filter(|trial| one_seed || !is_perturbed(trial)).collect();
                let completed = trials.iter().filter(|trial| trial.outcome.is_completed()).count();
                Row {
                    cell: cell.index,
                    label: text::line(&cell.label),
                    levels: structure.levels_of(cell),
                    panel: structure.panel_of[index],
                    word: table::word(&trials, completed),
                    harm,
                    trials,
                    guests: if guests.iter().any(is_perturbed) { guests } else { Vec::new() },
                    completed,
                    footnotes: Vec::new(),
                    entries: Vec::new(),
                }
            })
            .collect();
        let machine = machines::numbering(dataset);
        for row in &mut rows {
            let entry = |column: &Column| table::entry_of_machines(row, &column.step, &column.metric, &machine);
            row.entries = plan.columns.iter().map(entry).collect();
        }
        let kinds: Vec<(Unit, Better)> = (0..plan.columns.len()).map(|index| table::kind(dataset, index)).collect();
        let comparisons = compare::compare(dataset, &structure, &kinds, &mut rows);
        let columns: Vec<ColumnView> = kinds
            .into_iter()
            .enumerate()
            .map(|(index, kind)| table::column_view(dataset, &rows, index, kind))
            .collect();
        let lacking = notes::lacking(dataset, &rows);
        let footnotes = notes::footnotes(&mut rows, lacking.as_ref().map_or(&[], |lacking| &lacking.rows));
        let drifts = drift::drifts(dataset, &columns, &rows);
        let mut warnings = notes::warnings(dataset, &rows, &columns, &comparisons, &drifts);
        warnings.extend(served::warnings(dataset, &rows));
        let disturbed = served::disturbed(dataset, &rows);
        let published = Published::of(dataset, &structure, &columns, &rows);
        Self {
            dataset,
            structure,
            columns,
            rows,
            footnotes,
            lacking,
            warnings,
            disturbed,
            comparisons,
            drifts,
            published,
        }
    }

    pub fn baseline_of(&self, panel: usize) -> Option<usize> {
        self.structure.panels[panel].baseline
    }

    /// The first column that has a better direction; the first one when none has.
    pub fn primary(&self) -> Option<usize> {
        let directed = self.columns.iter().position(|column| column.better != Better::Neither);
        directed.or_else(|| (!self.columns.is_empty()).then_some(0))
    }

    pub fn trials(&self) -> usize {
        self.rows.iter().map(|row| row.all().count()).sum()
    }

    pub fn completed(&self) -> usize {
        self.rows.iter().flat_map(Row::all).filter(|trial| trial.outcome.is_completed()).count()
    }

    /// The rows panel by panel, so that those compared with each other stand together.
    pub fn order(&self) -> Vec<usize> {
        self.structure.panels.iter().flat_map(|panel| panel.rows.iter().copied()).collect()
    }

    /// Whether a table shows the row; a sentence names the filesystems of the others.
    pub fn is_shown(&self, row: usize) -> bool {
        self.lacking.as_ref().is_none_or(|lacking| !lacking.rows.contains(&row))
    }

    /// The footnotes under a table.
    pub fn shown_footnotes(&self) -> impl Iterator<Item = &Footnote> {
        self.footnotes.iter().filter(|note| note.rows.iter().any(|row| self.is_shown(row.row)))
    }

    /// The names of the columns that say which row it is: what varies but the subject, then the subject.
    pub fn label_heads(&self) -> Vec<&str> {
        let heads = self.structure.label_order();
        if heads.is_empty() {
            return vec![FILESYSTEM_FACTOR];
        }
        heads.into_iter().map(|index| self.structure.varied[index].name.as_str()).collect()
    }

    pub fn labels(&self, row: usize) -> Vec<&str> {
        let order = self.structure.label_order();
        if order.is_empty() {
            return vec![&self.rows[row].label];
        }
        order.into_iter().map(|index| self.rows[row].levels[index].as_str()).collect()
    }

    /// How many trials completed in each row, when that is the same for all that have any.
    pub fn common_count(&self) -> Option<usize> {
        let mut counts = self.entries().filter(|entry| !entry.values.is_empty()).map(|entry| entry.values.len());
        let first = counts.next()?;
        counts.all(|count| count == first).then_some(first)
    }

    /// The ratios' baseline in words, if there is one: the subject's level, or the row's label.
    pub fn baseline_name(&self) -> Option<&str> {
        let row = self.structure.panels.iter().find_map(|panel| panel.baseline)?;
        let row = &self.rows[row];
        Some(self.structure.subject.map_or(&row.label, |subject| &row.levels[subject]))
    }

    /// The columns in which rows of some panel are compared so.
    pub fn compared_by(&self, basis: Basis) -> Vec<&str> {
        let so = |panel: &PanelComparison| panel.comparison.basis == basis;
        let columns = self.columns.iter().zip(&self.comparisons);
        let columns = columns.filter(|(_, compared)| compared.panels.iter().flatten().any(so));
        columns.map(|(column, _)| column.header.as_str()).collect()
    }

    pub fn has_unreliable(&self) -> bool {
        self.entries().any(Entry::is_unreliable)
    }

    pub fn has_letters(&self) -> bool {
        self.entries().any(|entry| !entry.letters.is_empty())
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.rows.iter().flat_map(|row| &row.entries)
    }
}
