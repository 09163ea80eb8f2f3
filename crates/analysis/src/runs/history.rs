//! One cell over many runs: when did its figure change?
//!
//! A run is one point, the median of its completed trials. Change points are found by energy statistics
//! ([`fstone_stats::series::change_points`]); they are about runs as a whole, whose level varies more than their trials
//! tell, and need about ten runs to be found at all.

use super::settings::{Setting, mismatches};
use crate::{
    number::{Scale, grouped, p_value, ratio},
    run::Analysis,
    table::{Entry, scale_of},
    text::{counted, line, listing},
    when,
};
use fstone_model::{Better, Dataset};
use fstone_stats::{
    Sample,
    series::{ChangePoint, ChangePointOptions, FEWEST_STILL, change_points, newest_apart, newest_unproven},
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
    /// The first of the newest runs that lie apart from those since the last change, and are too few for a change point, and the p-value of
    /// that.
    pub newest: Option<(usize, f64)>,
    /// How many runs agree since the last change, before others that differ, if these are too few to show more.
    pub unproven: Option<usize>,
    /// Runs that are not among the points, and why not.
    pub left_out: Vec<(u64, String)>,
    /// Comparable runs in which the row lost or damaged something, and what.
    pub harmed: Vec<(u64, String)>,
    /// The last run, if it has no figure, and why not.
    pub last_lacks: Option<(u64, String)>,
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
        let (mut points, mut left_out, mut harmed) = (Vec::new(), Vec::new(), Vec::new());
        for dataset in runs {
            let (found, harm) = point(dataset, last, &label, &view.step, &view.metric);
            harmed.extend(harm.map(|harm| (dataset.run.id, harm)));
            match found {
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
        let mut history = Self {
            study: line(&last.run.plan.study),
            label,
            header: view.header.clone(),
            better: view.better,
            scale: scale_of(view.unit, points.iter().map(|point| &point.entry)),
            points,
            changes: Vec::new(),
            newest: None,
            unproven: None,
            last_lacks: left_out.last().filter(|(run, _): &&(u64, String)| *run == last.run.id).cloned(),
            left_out,
            harmed,
        };
        if let Ok(series) = Sample::new(history.points.iter().filter_map(Point::median).collect()) {
            let options = ChangePointOptions::default();
            history.changes = change_points(&series, &options, last.run.plan.seed);
            place(&mut history.changes, series.values(), options.min_segment);
            let since = history.changes.last().map_or(0, |change| change.index);
            history.newest = newest_apart(&series.values()[since..], &options).map(|(index, p)| (since + index, p));
            history.unproven = newest_unproven(&series.values()[since..]).filter(|_| history.newest.is_none());
        }
        Ok(history)
    }

    pub fn sentences(&self) -> Vec<String> {
        let runs = counted(self.points.len(), "run");
        let (label, header) = (&self.label, &self.header);
        let mut sentences = Vec::new();
        if let Some(((run, harm), before)) = self.harmed.split_last() {
            let others: Vec<String> = before.iter().map(|(run, _)| run.to_string()).collect();
            let too = match others.len() {
                0 => String::new(),
                1 => format!("; something was lost or damaged in run {}, too", others[0]),
                _ => format!("; something was lost or damaged in runs {}, too", listing(&others)),
            };
            sentences.push(format!("{label} {harm} in run {run}{too}."));
        }
        if let Some((run, why)) = &self.last_lacks {
            sentences.push(format!("{label}, {header}: the last run, {run}, has {why}."));
        }
        match self.points.len() {
            0 => sentences.push(format!("{label}, {header}: no run has this figure.")),
            1 => sentences.push(format!(
                "{label}, {header}: 1 run so far; finding a change point takes about {FEWEST_RUNS}."
            )),
            2..FEWEST_RUNS => sentences.push(format!(
                "{label}, {header}, over {runs}. Finding a change point takes about {FEWEST_RUNS} runs; with fewer, compare two of them."
            )),
            _ if self.changes.is_empty() && self.newest.is_none() && self.unproven.is_none() => {
                sentences.push(format!("{label}, {header}: no change point in {runs}, and the newest do not lie apart."));
            }
            _ => {}
        }
        sentences.extend(self.newest_in_words());
        if let Some(agreeing) = self.unproven {
            let since = self.changes.last().map_or(0, |change| change.index);
            let (first, run) = (self.points[since].run, self.points[since + agreeing].run);
            sentences.push(format!(
                "{label}, {header}: run {run} differs from the {agreeing} that agree since run {first}; whether that is chance shows after {FEWEST_STILL} that agree."
            ));
        }
        // What got worse comes first.
        let mut changes: Vec<(&ChangePoint, Option<&str>)> =
            self.changes.iter().map(|change| (change, self.direction(change))).collect();
        changes.sort_by_key(|(_, direction)| !direction.is_some_and(|words| words.ends_with("(worse)")));
        for (change, direction) in changes {
            let at = &self.points[change.index];
            let what = match direction {
                Some(direction) => format!("{direction} {} at", self.sizes(change)),
                None => format!("the scatter of the runs changed, about {}, at", self.scale.with_unit(change.after)),
            };
            let p = p_value(change.p);
            sentences.push(format!(
                "{label}, {header}: {what} run {} of {}, {} (p {}).",
                at.run,
                when::minute(at.started_unix_ns),
                at.kernel,
                if p.starts_with('<') { p } else { format!("= {p}") },
            ));
        }
        sentences
    }

    fn newest_in_words(&self) -> Option<String> {
        let (first, p) = self.newest?;
        let since = self.changes.last().map_or(0, |change| change.index);
        let median = |from: usize, to: usize| {
            Some(Sample::new(self.points[from..to].iter().filter_map(Point::median).collect()).ok()?.median())
        };
        let (before, after) = (median(since, first)?, median(first, self.points.len())?);
        let change = ChangePoint { index: first, p, before, after };
        let direction = direction(self.better, after > before);
        let run = self.points[first].run;
        Some(format!(
            "{}, {}: {direction} {} at run {run}, after {}; further runs show whether that lasts.",
            self.label,
            self.header,
            self.sizes(&change),
            counted(first - since, "run"),
        ))
    }

    /// "from 9,012/s to 8,281/s (−8.1 %)", with as many decimals as it takes to see a difference.
    fn sizes(&self, change: &ChangePoint) -> String {
        let (before, after) = (change.before, change.after);
        let mut scale = self.scale;
        while scale.decimals < 12 && scale.number(before) == scale.number(after) {
            scale.decimals += 1;
        }
        let share = (before > 0.0 && after >= 0.0).then(|| (after / before - 1.0) * 100.0);
        let share = match share {
            Some(share) if share >= 1000.0 => format!(" ({})", ratio(after / before)),
            Some(share) => {
                let number = grouped(share, if share.abs() < 0.1 { 2 } else { usize::from(share.abs() < 10.0) });
                let none = number.chars().all(|digit| "−0.".contains(digit));
                let sign = if share > 0.0 { "+" } else { "" };
                if none { String::new() } else { format!(" ({sign}{number} %)") }
            }
            None => String::new(),
        };
        format!("from {} to {}{share}", scale.with_unit(before), scale.with_unit(after))
    }

    /// "fell (worse)"; `None` where the level is not what changed.
    fn direction(&self, change: &ChangePoint) -> Option<&'static str> {
        self.level_changed(change).then(|| direction(self.better, change.after > change.before))
    }

    /// Change points are found by any difference of two distributions. Of level it is one if a run after it beats a run before it in the
    /// direction of the medians at least seven times out of ten.
    fn level_changed(&self, change: &ChangePoint) -> bool {
        let place = self.changes.iter().position(|other| other.index == change.index).unwrap_or(0);
        let begin = if place == 0 { 0 } else { self.changes[place - 1].index };
        let end = self.changes.get(place + 1).map_or(self.points.len(), |next| next.index);
        let values = |from: usize, to: usize| self.points[from..to].iter().filter_map(Point::median);
        let pairs = || values(begin, change.index).flat_map(|a| values(change.index, end).map(move |b| (a, b)));
        let up = change.after - change.before;
        // Ties count by half.
        let beats = |(a, b): (f64, f64)| if a == b { 1 } else { 2 * usize::from((b > a) == (up > 0.0)) };
        up != 0.0 && pairs().map(beats).sum::<usize>() * 10 >= pairs().count() * 14
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

const fn direction(better: Better, up: bool) -> &'static str {
    match (better, up) {
        (Better::Higher, true) => "rose (better)",
        (Better::Higher, false) => "fell (worse)",
        (Better::Lower, true) => "rose (worse)",
        (Better::Lower, false) => "fell (better)",
        (Better::Neither, true) => "rose",
        (Better::Neither, false) => "fell",
    }
}

/// Moves changes that had to be so many runs from an end or from one another to where the level changes: runs whose figure is nearer to the
/// level on the other side belong there.
fn place(changes: &mut [ChangePoint], values: &[f64], min_segment: usize) {
    for at in 0..changes.len() {
        let begin = if at == 0 { 0 } else { changes[at - 1].index };
        let end = changes.get(at + 1).map_or(values.len(), |next| next.index);
        let change = &mut changes[at];
        let level =
            |from: usize, to: usize| Sample::new(values[from..to].to_vec()).map_or(f64::NAN, |sample| sample.median());
        let is_before = |value: f64, change: &ChangePoint| (value - change.before).abs() < (value - change.after).abs();
        if end - change.index == min_segment {
            while change.index + 1 < end && is_before(values[change.index], change) {
                change.index += 1;
                (change.before, change.after) = (level(begin, change.index), level(change.index, end));
            }
        }
        if change.index - begin == min_segment {
            while change.index > begin + 1 && !is_before(values[change.index - 1], change) {
                change.index -= 1;
                (change.before, change.after) = (level(begin, change.index), level(change.index, end));
            }
        }
    }
}

impl Point {
    /// The median of its trials; `None` without any.
    pub fn median(&self) -> Option<f64> {
        self.entry.summary.map(|summary| summary.median)
    }
}

/// The figure of a run, or why it has none, and what its row lost or damaged.
fn point(
    dataset: &Dataset,
    last: &Dataset,
    label: &str,
    step: &str,
    metric: &str,
) -> (Result<Entry, String>, Option<String>) {
    if let Some(mismatch) = mismatches(last, dataset).first() {
        let why = match mismatch.setting {
            Setting::Study => "another study".to_owned(),
            Setting::Load => "another load".to_owned(),
            Setting::Clock => "another clock".to_owned(),
            Setting::Executor => "another executor".to_owned(),
            Setting::Device => "another device".to_owned(),
            Setting::Machine => "another machine".to_owned(),
            Setting::Memory => format!("guests of {}", mismatch.other),
        };
        return (Err(why), None);
    }
    let mut analysis = Analysis::of(dataset);
    let column = analysis.columns.iter().position(|column| column.step == step && column.metric == metric);
    let Some(row) = analysis.rows.iter_mut().find(|row| row.label == label) else {
        return (Err("no such row".to_owned()), None);
    };
    let found = match column.map(|column| &row.entries[column]) {
        None => Err("no such column".to_owned()),
        Some(entry) if entry.summary.is_none() => Err(format!("no figure ({})", row.word.unwrap_or("not measured"))),
        Some(entry) => Ok(entry.clone()),
    };
    (found, row.harm.take())
}
