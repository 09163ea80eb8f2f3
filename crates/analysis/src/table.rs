//! The table: rows, columns, and the entries where they meet.

use crate::{
    ceiling::{self, Ceiling},
    number::{Scale, is_whole, ratio},
    text,
};
use fstone_model::{
    Better, Dataset, Trial, Unit,
    load_metric::kind_of,
    metric::{Metric, catalog},
};
use fstone_stats::{
    Interval, Sample, Summary,
    compare::{RowMean, Scale as Basis, Shift},
    outliers::outliers,
};
use std::collections::BTreeMap;

/// A larger value, an infinite one or NaN is not a figure.
const LARGEST: f64 = 1e100;

#[derive(Debug, Clone, PartialEq)]
pub struct ColumnView {
    pub header: String,
    pub step: String,
    pub metric: String,
    pub unit: Unit,
    pub better: Better,
    pub scale: Scale,
    /// What the metric is and how it is made; empty for metrics that the catalog does not know.
    pub about: &'static str,
    pub ceiling: Option<Ceiling>,
}

#[derive(Debug)]
pub struct Row<'a> {
    pub cell: u32,
    pub label: String,
    /// The names of its levels of those factors that vary, in [`Structure::varied`](crate::Structure::varied)'s order.
    pub levels: Vec<String>,
    pub panel: usize,
    /// Those whose figures the table has: in perturbed guests only if there is one seed.
    pub trials: Vec<&'a Trial>,
    /// In virtual time, the trial of its first seed and those in perturbed guests; empty if there are none of these.
    pub guests: Vec<&'a Trial>,
    pub completed: usize,
    /// The word for the table when none completed ("refused"; "not run" without trials).
    pub word: Option<&'static str>,
    /// What its trials, in whatever guests, lost or damaged, in words that follow its name; `None` if nothing.
    pub harm: Option<String>,
    pub footnotes: Vec<usize>,
    /// One per column.
    pub entries: Vec<Entry>,
}

impl<'a> Row<'a> {
    /// Whether guests were perturbed to show how far that moves a column's figure, and none has one.
    pub(crate) fn is_unproven(&self, column: usize) -> bool {
        !self.guests.is_empty() && self.entries[column].guests.is_empty()
    }

    /// Whether a column's figures agree over seeds, but have no interval, since the guests that were to prove it failed.
    pub(crate) fn is_doubted(&self, column: usize) -> bool {
        let entry = &self.entries[column];
        self.is_unproven(column) && entry.interval.is_none() && entry.values.len() > 1
    }

    /// All its trials, also those in perturbed guests whose figures the table does not have.
    pub fn all(&self) -> impl Iterator<Item = &'a Trial> {
        let is_perturbed = |trial: &Trial| trial.id.perturbation().is_some();
        let has_them = self.trials.iter().any(|trial| is_perturbed(trial));
        let others = self.guests.iter().copied().filter(move |trial| !has_them && is_perturbed(trial));
        self.trials.iter().copied().chain(others)
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    pub values: Vec<TrialValue>,
    /// Count, mean, median and so on; `None` without values.
    pub summary: Option<Summary>,
    /// Its figures in the guest of the first seed, which comes first unless it failed, and in perturbed ones, each with its repetition; empty
    /// without these.
    pub guests: Vec<(u32, f64)>,
    /// The most that there can be of it; no interval reaches beyond.
    most: Option<f64>,
    /// The mean that suits the column, over the run's blocks. `None` without values.
    pub mean: Option<f64>,
    /// The published interval of the mean; `None` when nothing is known of the scatter.
    pub interval: Option<Interval>,
    /// The letters of the groups it belongs to within its panel; empty when the column has but one group.
    pub letters: String,
    /// Its mean over the baseline's; `None` for the baseline itself and without one.
    pub ratio: Option<f64>,
    /// The shift to the baseline as a share of it, when the two rows were found to differ.
    pub shift: Option<Shift>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialValue {
    /// Index of the trial in [`Row::trials`].
    pub trial: usize,
    pub value: f64,
    /// Whether it is far from the others. It is marked, but never left out.
    pub outlier: bool,
}

/// A figure or ratio is hardly known if its interval reaches beyond so many times of it: two trials can give millions.
pub(crate) const HARDLY: f64 = 10.0;
/// In place of such an arm.
pub const HARDLY_KNOWN: &str = ">10×";

impl Entry {
    /// What it comes to; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        self.mean
    }

    pub(crate) fn take(&mut self, row: RowMean) {
        // One trial shows no scatter, and that of other rows need not be its own.
        (self.mean, self.interval) = (Some(row.estimate), row.interval.filter(|_| self.values.len() > 1));
        // Rounding of ticks may measure a little more than there is.
        if let (Some(interval), Some(most), Some(summary)) = (&mut self.interval, self.most, self.summary) {
            interval.high = interval.high.min(most.max(summary.max));
        }
    }

    pub(crate) fn sample(&self) -> Option<Sample> {
        Sample::new(self.values.iter().map(|value| value.value).collect()).ok()
    }

    /// How far a perturbed guest moves it, as a share of it, infinite if it is moved from 0; `None` if that is not known.
    pub fn band(&self) -> Option<f64> {
        // Without the first there is nothing that they are moved from.
        let ((_, first), perturbed) = self.guests.split_first().filter(|((repetition, _), _)| *repetition == 0)?;
        let moved = |(_, value): &(u32, f64)| if value == first { 0.0 } else { (value / first - 1.0).abs() };
        perturbed.iter().map(moved).reduce(f64::max)
    }

    /// Whether there are several figures, all of them 0.
    pub fn counted_nothing(&self) -> bool {
        self.values.len() > 1 && self.values.iter().all(|value| value.value == 0.0)
    }

    /// Its value that is farthest from 0, in whatever guest.
    pub(crate) fn farthest(&self) -> f64 {
        let guests = self.guests.iter().map(|(_, value)| *value);
        self.values.iter().map(|value| value.value).chain(guests).fold(0.0, |most, value| most.max(value.abs()))
    }

    /// The longer arm of the interval, so that mean ± this holds all of it.
    pub fn half_width(&self) -> Option<f64> {
        let (mean, interval) = (self.mean()?, self.interval?);
        Some((interval.high - mean).max(mean - interval.low))
    }

    /// What follows ± in a table.
    pub fn arm(&self, scale: &Scale) -> Option<String> {
        let half = self.half_width()?;
        Some(if self.is_hardly_known() { HARDLY_KNOWN.to_owned() } else { scale.number_not_none(half) })
    }

    pub fn is_hardly_known(&self) -> bool {
        let share = self.mean().zip(self.half_width()).map(|(mean, half)| half / mean.abs());
        share.is_some_and(|share| share > HARDLY && share.is_finite())
    }

    /// The interval's ends as figures draw them: what cannot be negative is not drawn below zero, however wide few
    /// trials make the interval.
    pub fn drawn_interval(&self) -> Option<(f64, f64)> {
        let interval = self.interval?;
        let positive = self.summary.is_some_and(|summary| summary.min >= 0.0);
        Some((if positive { interval.low.max(0.0) } else { interval.low }, interval.high))
    }

    /// All values that a figure shows of it: the trials' and the interval's ends.
    pub fn drawn(&self) -> impl Iterator<Item = f64> {
        let ends = self.drawn_interval().map(|(low, high)| [low, high]);
        self.values.iter().map(|value| value.value).chain(ends.into_iter().flatten())
    }

    pub fn is_unreliable(&self) -> bool {
        self.interval.is_some_and(|interval| !interval.is_reliable())
    }
}

impl ColumnView {
    pub fn is_beyond_device(&self, entry: &Entry) -> bool {
        self.ceiling.is_some_and(|ceiling| ceiling.is_beaten(entry.values.iter().map(|value| value.value)))
    }

    /// The unit as it stands under the header: nothing when the header says it already.
    pub fn unit_line(&self) -> &'static str {
        let header = self.header.to_lowercase();
        match self.scale.symbol {
            "/s" if header.contains("per second") || header.ends_with("/s") => "",
            "%" if header.contains('%') => "",
            symbol => symbol,
        }
    }

    pub fn with_unit(&self) -> String {
        match self.unit_line() {
            "" => self.header.clone(),
            "×" => format!("{} (ratio)", self.header),
            symbol => format!("{} ({symbol})", self.header),
        }
    }
}

/// The word in place of figures when no trial completed: the outcome that came most often.
pub(crate) fn word(trials: &[&Trial], completed: usize) -> Option<&'static str> {
    if completed > 0 {
        return None;
    }
    let words: Vec<&'static str> = trials.iter().map(|trial| trial.outcome.word()).collect();
    let often = |word: &str| words.iter().filter(|other| **other == word).count();
    // The first of those that came equally often: max_by_key takes the last, so look from the end.
    Some(words.iter().rev().max_by_key(|word| often(word)).copied().unwrap_or("not run"))
}

pub(crate) fn entry(row: &Row<'_>, step: &str, metric: &str) -> Entry {
    entry_of_machines(row, step, metric, &|_| 0)
}

/// [`entry`] of a row that several machines made: a value is far from the others of its machine.
pub(crate) fn entry_of_machines(row: &Row<'_>, step: &str, metric: &str, machine: &impl Fn(u32) -> usize) -> Entry {
    let mut values: Vec<TrialValue> = row
        .trials
        .iter()
        .enumerate()
        .filter(|(_, trial)| trial.outcome.is_completed())
        .filter_map(|(index, trial)| {
            let value = trial.figure(step, metric)?.value;
            // Squares and sums of larger values overflow, and no filesystem does anything that often.
            (value.abs() <= LARGEST).then_some(TrialValue { trial: index, value, outlier: false })
        })
        .collect();
    let Ok(sample) = Sample::new(values.iter().map(|value| value.value).collect()) else {
        return Entry::default();
    };
    let of_guest = |trial: &&Trial| {
        let figure = trial.figure(step, metric).filter(|_| trial.outcome.is_completed());
        Some((trial.id.repetition, figure.map(|figure| figure.value).filter(|value| value.abs() <= LARGEST)?))
    };
    let mut guests: Vec<(u32, f64)> = row.guests.iter().filter_map(of_guest).collect();
    guests.sort_unstable_by_key(|(repetition, _)| *repetition);
    if guests.iter().all(|(repetition, _)| *repetition == 0) {
        guests.clear();
    }
    let mut of_machines: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, value) in values.iter().enumerate() {
        of_machines.entry(machine(row.trials[value.trial].id.repetition)).or_default().push(index);
    }
    for of_machine in of_machines.values() {
        let Ok(sample) = Sample::new(of_machine.iter().map(|index| values[*index].value).collect()) else { continue };
        for outlier in outliers(&sample) {
            values[of_machine[outlier.index]].outlier = true;
        }
    }
    let most = catalog::find(metric).and_then(Metric::most);
    Entry { values, guests, summary: Some(sample.summary()), most, ..Entry::default() }
}

pub(crate) fn kind(dataset: &Dataset, index: usize) -> (Unit, Better) {
    let column = &dataset.run.plan.columns[index];
    let measured = || dataset.trials.iter().find_map(|trial| trial.figure(&column.step, &column.metric));
    // Runs of a later version may have figures that are unknown here; these carry their own unit and direction.
    kind_of(&column.metric)
        .or_else(|| measured().map(|figure| (figure.unit, figure.better)))
        .unwrap_or((Unit::Count, Better::Neither))
}

/// What rows are compared by, and with it which mean they have. Rates, times, sizes and counts scatter in proportion to their size,
/// and are compared by ratios. A share of a whole is bounded, and means over trials of one length are those of all of them together.
pub(crate) const fn basis(unit: Unit) -> Basis {
    match unit {
        Unit::Percent => Basis::Differences,
        Unit::Seconds
        | Unit::Nanoseconds
        | Unit::Bytes
        | Unit::BytesPerSecond
        | Unit::PerSecond
        | Unit::Count
        | Unit::Ratio => Basis::Ratios,
    }
}

pub(crate) fn scale_of<'a>(unit: Unit, entries: impl Iterator<Item = &'a Entry> + Clone) -> Scale {
    let figures: Vec<_> = entries.clone().filter_map(|entry| Some((entry.mean()?, entry.half_width()))).collect();
    let whole = entries.flat_map(|entry| &entry.values).all(|value| is_whole(value.value));
    Scale::choose(unit, &figures, whole)
}

/// The same, where figures that a ratio beside them tells apart must not look alike: 103 and 103 beside 0.99×.
fn beside_ratios<'a>(unit: Unit, entries: impl Iterator<Item = &'a Entry> + Clone) -> Scale {
    let mut scale = scale_of(unit, entries.clone());
    let most = scale.decimals + 2;
    for (mean, times) in entries.filter_map(|entry| Some((entry.mean()?, entry.ratio?))) {
        if ratio(times) != ratio(1.0) && scale.number(mean) != scale.number(0.0) {
            scale = scale.telling_apart(mean, mean / times);
        }
    }
    Scale { decimals: scale.decimals.min(most), ..scale }
}

/// A column, when the entries have their means and intervals.
pub(crate) fn column_view(
    dataset: &Dataset,
    rows: &[Row<'_>],
    index: usize,
    (unit, better): (Unit, Better),
) -> ColumnView {
    let column = &dataset.run.plan.columns[index];
    // A command may print a figure that has the name of a load's metric, and is its own.
    let mut steps = dataset.run.plan.cells.iter().flat_map(|cell| &cell.steps);
    let kind = steps.find(|step| step.name == column.step).map(|step| step.action.kind());
    let known = catalog::find(&column.metric)
        .filter(|metric| metric.steps.is_empty() || kind.is_none_or(|kind| metric.steps.contains(&kind)));
    ColumnView {
        header: text::line(&column.header),
        step: text::line(&column.step),
        metric: text::line(&column.metric),
        unit,
        better,
        scale: beside_ratios(unit, rows.iter().map(|row| &row.entries[index])),
        about: known.map_or("", |metric| metric.about),
        ceiling: ceiling::of_metric(dataset, &column.metric),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_interval_of_a_share_reaches_beyond_all() {
        let taken = |metric: &Metric| {
            let sample = Sample::new(vec![99.0, 90.0, 100.0]).expect("figures");
            let values = [99.0, 90.0, 100.0].map(|value| TrialValue { trial: 0, value, outlier: false }).to_vec();
            let summary = Some(sample.summary());
            let mut entry = Entry { values, summary, most: metric.most(), ..Entry::default() };
            entry.take(RowMean { estimate: sample.mean(), interval: fstone_stats::interval95(&sample, 1) });
            entry.interval.expect("three figures").high
        };
        assert_eq!(taken(&catalog::CPU), 100.0);
        assert!(taken(&catalog::PROCESS_CPU) > 100.0);
        assert!(taken(&catalog::OPERATIONS_PER_SECOND) > 100.0);
    }

    #[test]
    fn figures_beside_a_ratio_have_the_digits_that_it_needs() {
        let entry = |mean: f64, ratio: Option<f64>| Entry { mean: Some(mean), ratio, ..Entry::default() };
        let number = |means: [f64; 2]| {
            let entries = [entry(means[0], None), entry(means[1], Some(means[1] / means[0]))];
            let scale = beside_ratios(Unit::PerSecond, entries.iter());
            means.map(|mean| scale.number(mean))
        };
        assert_eq!(number([103.4, 102.6]), ["103.4", "102.6"]);
        assert_eq!(number([103.4, 103.2]), ["103", "103"], "the ratio is 1.00");
        assert_eq!(number([103.4, 90.2]), ["103", "90"]);
    }
}
