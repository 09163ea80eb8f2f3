//! One cell over many runs: when did its figure change?
//!
//! A run is one point, the median of its completed trials. Change points are found by energy statistics
//! ([`fstone_stats::series::change_points`]); they are about runs as a whole, whose level varies more than their trials
//! tell, and need about ten runs to be found at all.

use super::settings::{Setting, mismatches};
use crate::{
    number::{Scale, grouped, p_value},
    run::Analysis,
    table::Entry,
    text::{counted, line, listing},
    when,
};
use fstone_model::{Better, Dataset};
use fstone_stats::{
    Sample,
    series::{ChangePoint, ChangePointOptions, change_points},
};

/// With fewer runs than this no change can be significant at the 1 % level, whatever the figures.
pub const FEWEST_RUNS: usize = 10;

/// One figure of one row over many runs.
#[derive(Debug)]
pub struct History {
    pub study: String,
    pub label: String,
    pub header: String,
    pub better: Better,
    pub scale: Scale,
    /// The runs that have the figure, the oldest first.
    pub points: Vec<Point>,
    pub changes: Vec<ChangePoint>,
    /// Runs that are not among the points, and why not.
    pub left_out: Vec<(u64, String)>,
}

#[derive(Debug, Clone)]
pub struct Point {
    pub run: u64,
    pub started_unix_ns: u64,
    pub kernel: String,
    pub names: Vec<String>,
    pub note: Option<String>,
    pub entry: Entry,
}

/// Why there is no history; completes "cannot show the history: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    #[error("there is no run of it")]
    NoRun,
    #[error("the last run has no row {label:?}; it has {known}")]
    NoRow { label: String, known: String },
    #[error("the last run has no column {header:?}; it has {known}")]
    NoColumn { header: String, known: String },
}

impl History {
    /// The history of a row and a column over runs of one study, the oldest first. Runs that may not be compared with the
    /// last one (another machine, device, executor or load) are left out. Without a label the first row is taken,
    /// without a header the first column that has a better direction. `names` are the baselines, as (name, run).
    ///
    /// # Errors
    /// [`HistoryError`].
    pub fn of(
        runs: &[Dataset],
        label: Option<&str>,
        header: Option<&str>,
        names: &[(String, u64)],
    ) -> Result<Self, HistoryError> {
        let last = runs.last().ok_or(HistoryError::NoRun)?;
        let newest = Analysis::of(last);
        let listed = |names: Vec<&str>| names.join(", ");
        let label = match label {
            None => newest.rows.first().map(|row| row.label.clone()).ok_or(HistoryError::NoRun)?,
            Some(label) => line(label),
        };
        if !newest.rows.iter().any(|row| row.label == label) {
            let known = listed(newest.rows.iter().map(|row| row.label.as_str()).collect());
            return Err(HistoryError::NoRow { label, known });
        }
        let known = || listed(newest.columns.iter().map(|column| column.header.as_str()).collect());
        let column = match header {
            None => newest.primary(),
            Some(header) => newest.columns.iter().position(|column| column.header == line(header)),
        };
        let Some(column) = column else {
            return Err(HistoryError::NoColumn { header: line(header.unwrap_or_default()), known: known() });
        };
        let view = &newest.columns[column];
        let (mut points, mut left_out) = (Vec::new(), Vec::new());
        for dataset in runs {
            match point(dataset, last, &label, &view.step, &view.metric) {
                Ok(entry) => points.push(Point {
                    run: dataset.run.id,
                    started_unix_ns: dataset.run.started_unix_ns,
                    kernel: dataset.run.kernel(),
                    names: names.iter().filter(|(_, run)| *run == dataset.run.id).map(|(name, _)| line(name)).collect(),
                    note: dataset.run.note.as_ref().map(|note| line(note.as_str())),
                    entry,
                }),
                Err(why) => left_out.push((dataset.run.id, why)),
            }
        }
        let measured: Vec<_> =
            points.iter().filter_map(|point| Some((point.entry.mean()?, point.entry.half_width()))).collect();
        let mut history = Self {
            study: line(&last.run.plan.study),
            label,
            header: view.header.clone(),
            better: view.better,
            scale: Scale::choose(view.unit, &measured),
            points,
            changes: Vec::new(),
            left_out,
        };
        if let Ok(series) = Sample::new(history.points.iter().filter_map(Point::median).collect()) {
            history.changes = change_points(&series, &ChangePointOptions::default(), last.run.plan.seed);
        }
        Ok(history)
    }

    pub fn sentences(&self) -> Vec<String> {
        let runs = counted(self.points.len(), "run");
        let (label, header) = (&self.label, &self.header);
        let mut sentences = Vec::new();
        if self.points.len() < FEWEST_RUNS {
            sentences.push(format!(
                "{label}, {header}, over {runs}. Finding a change point takes about {FEWEST_RUNS} runs; with fewer, compare two of them."
            ));
        } else if self.changes.is_empty() {
            sentences.push(format!("{label}, {header}: no change point in {runs}."));
        }
        // What got worse comes first.
        let mut changes: Vec<&ChangePoint> = self.changes.iter().collect();
        changes.sort_by_key(|change| !self.direction(change).ends_with("(worse)"));
        for change in changes {
            let at = &self.points[change.index];
            let p = p_value(change.p);
            let share = (change.before > 0.0 && change.after >= 0.0).then(|| {
                let share = (change.after / change.before - 1.0) * 100.0;
                format!(
                    " ({}{} %)",
                    if share > 0.0 { "+" } else { "" },
                    grouped(share, usize::from(share.abs() < 10.0))
                )
            });
            sentences.push(format!(
                "{label}, {header}: {} from {} to {}{} at run {} of {}, {} (p {}).",
                self.direction(change),
                self.scale.with_unit(change.before),
                self.scale.with_unit(change.after),
                share.unwrap_or_default(),
                at.run,
                when::minute(at.started_unix_ns),
                at.kernel,
                if p.starts_with('<') { p } else { format!("= {p}") },
            ));
        }
        sentences
    }

    /// "fell, which is worse,".
    fn direction(&self, change: &ChangePoint) -> &'static str {
        let up = change.after > change.before;
        match (self.better, up) {
            (Better::Higher, true) => "rose (better)",
            (Better::Higher, false) => "fell (worse)",
            (Better::Lower, true) => "rose (worse)",
            (Better::Lower, false) => "fell (better)",
            (Better::Neither, true) => "rose",
            (Better::Neither, false) => "fell",
        }
    }

    /// Why runs were left out, each reason with its runs: "another machine: runs 1, 2 and 5".
    pub fn left_out(&self) -> Vec<String> {
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for (run, why) in &self.left_out {
            match reasons.iter_mut().find(|(known, _)| known == why) {
                Some((_, runs)) => runs.push(run.to_string()),
                None => reasons.push((why, vec![run.to_string()])),
            }
        }
        reasons
            .into_iter()
            .map(|(why, runs)| format!("{why}: run{} {}", if runs.len() == 1 { "" } else { "s" }, listing(&runs)))
            .collect()
    }
}

impl Point {
    /// The median of its trials; `None` without any.
    pub fn median(&self) -> Option<f64> {
        self.entry.summary.map(|summary| summary.median)
    }
}

fn point(dataset: &Dataset, last: &Dataset, label: &str, step: &str, metric: &str) -> Result<Entry, String> {
    if let Some(mismatch) = mismatches(last, dataset).first() {
        return Err(match mismatch.setting {
            Setting::Study => "another study".to_owned(),
            Setting::Load => "another load".to_owned(),
            Setting::Clock => "another clock".to_owned(),
            Setting::Executor => "another executor".to_owned(),
            Setting::Device => "another device".to_owned(),
            Setting::Machine => "another machine".to_owned(),
            Setting::Memory => format!("guests of {}", mismatch.other),
        });
    }
    let analysis = Analysis::of(dataset);
    let row = analysis.rows.iter().find(|row| row.label == label).ok_or("no such row")?;
    let column = analysis.columns.iter().position(|column| column.step == step && column.metric == metric);
    let entry = &row.entries[column.ok_or("no such column")?];
    if entry.summary.is_none() {
        return Err(format!("no figure ({})", row.word.unwrap_or("not measured")));
    }
    Ok(entry.clone())
}
