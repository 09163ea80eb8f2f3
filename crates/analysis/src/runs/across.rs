//! Runs of several machines, side by side. Only ratios may be compared: each run's rows against the baseline of the same run.
//! No figure of one run is ever divided by one of another.

use super::settings::{Setting, mismatches};
use crate::run::Analysis;
use fstone_model::Better;

/// Runs that asked the same question, and what each of them answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Across {
    /// The runs, by their places in what was handed over.
    pub runs: Vec<usize>,
    /// The columns that have a better direction.
    pub columns: Vec<AcrossColumn>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AcrossColumn {
    pub header: String,
    pub better: Better,
    /// The rows, but for the baselines.
    pub rows: Vec<AcrossRow>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AcrossRow {
    /// The row's label.
    pub label: String,
    /// The baseline's.
    pub against: String,
    /// One per run; `None` where the run lacks one of the two.
    pub ratios: Vec<Option<Ratio>>,
}

/// A row's figure over that of its baseline, both of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    pub ratio: f64,
    /// Its interval (low, high), over all pairs of the run's column; `None` where the rows were not compared.
    pub interval: Option<(f64, f64)>,
    pub differs: bool,
    /// Whether it rests on so few trials that it has to be marked.
    pub is_rough: bool,
}

impl Across {
    /// Groups runs whose rows of the same name did the same work by the same clock and executor. Machines and devices may differ.
    pub fn of(analyses: &[&Analysis<'_>]) -> Vec<Self> {
        let alike = |a: usize, b: usize| {
            let apart = mismatches(analyses[a].dataset, analyses[b].dataset);
            apart.iter().all(|mismatch| matches!(mismatch.setting, Setting::Machine | Setting::Device))
        };
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for run in 0..analyses.len() {
            match groups.iter_mut().find(|group| group.iter().all(|other| alike(*other, run))) {
                Some(group) => group.push(run),
                None => groups.push(vec![run]),
            }
        }
        let columns = |runs: &[usize]| columns(&runs.iter().map(|run| analyses[*run]).collect::<Vec<_>>());
        groups.into_iter().map(|runs| Self { columns: columns(&runs), runs }).collect()
    }
}

fn columns(runs: &[&Analysis<'_>]) -> Vec<AcrossColumn> {
    let mut columns: Vec<AcrossColumn> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        for (index, view) in run.columns.iter().enumerate().filter(|(_, view)| view.better != Better::Neither) {
            let known = columns.iter().position(|column| column.header == view.header).unwrap_or_else(|| {
                columns.push(AcrossColumn { header: view.header.clone(), better: view.better, rows: Vec::new() });
                columns.len() - 1
            });
            for (label, against, ratio) in ratios(run, index) {
                let rows = &mut columns[known].rows;
                let row =
                    rows.iter().position(|row| row.label == label && row.against == against).unwrap_or_else(|| {
                        rows.push(AcrossRow { label, against, ratios: vec![None; runs.len()] });
                        rows.len() - 1
                    });
                rows[row].ratios[place] = Some(ratio);
            }
        }
    }
    columns.retain(|column| !column.rows.is_empty());
    columns
}

/// (row, baseline, ratio) of a column of one run.
fn ratios(run: &Analysis<'_>, column: usize) -> Vec<(String, String, Ratio)> {
    let mut found = Vec::new();
    for (panel, compared) in run.structure.panels.iter().zip(&run.comparisons[column].panels) {
        // A study without a baseline has its first row for one.
        let Some(baseline) = panel.baseline.or(panel.rows.first().copied()) else { continue };
        let mean = |row: usize| run.rows[row].entries[column].mean();
        let Some(reference) = mean(baseline).filter(|mean| *mean > 0.0) else { continue };
        for row in panel.rows.iter().copied().filter(|row| *row != baseline) {
            let Some(ratio) = mean(row).map(|mean| mean / reference) else { continue };
            let pair = compared.as_ref().and_then(|compared| compared.pair(baseline, row));
            if pair.is_some_and(|pair| !pair.is_compared()) {
                continue;
            }
            let relative = pair.and_then(|pair| pair.relative);
            let interval = relative.map(|shift| (1.0 + shift.interval.low, 1.0 + shift.interval.high));
            let differs = pair.is_some_and(|pair| pair.differs);
            // As the run's own table marks them.
            let is_marked = [baseline, row].iter().any(|row| run.rows[*row].entries[column].is_unreliable());
            let is_rough = is_marked || relative.is_none() || pair.is_some_and(|pair| !pair.can_differ);
            let labels = (run.rows[row].label.clone(), run.rows[baseline].label.clone());
            found.push((labels.0, labels.1, Ratio { ratio, interval, differs, is_rough }));
        }
    }
    found
}
