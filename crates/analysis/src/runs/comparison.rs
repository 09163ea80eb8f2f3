//! Two runs, figure by figure: what became better, what became worse, and what cannot be told.
//!
//! Rows are matched by their label, columns by step and metric. The two runs are independent samples (no block holds
//! trials of both), so each pair gets the Mann–Whitney test and the Hodges–Lehmann shift, and the p-values are corrected
//! over all pairs of the comparison (Holm). A *regression* is a difference that the corrected test calls real, in the
//! worse direction, whose estimate is beyond the threshold; a row that completed and does not any more is one without
//! any test, and so is one that loses or damages what it did not, or much more of it. Runs in virtual time are compared guest by guest ([`super::seeds`]), with the same correction.
//!
//! Whether two runs may be compared at all is [`super::mismatches`]'s to say, before anything is computed.

use super::{
    outcomes::{self, OutcomeChange, Turn},
    pair::{Pair, pair},
    seeds,
    settings::{self, Change},
};
use crate::{
    number::Scale,
    run::Analysis,
    table::{ColumnView, Entry, scale_of},
    text::line,
};
use fstone_model::{Better, Unit, result::Perturbation};
use fstone_stats::{
    ALPHA, Sample,
    compare::{POWER, detectable_shift, figures_needed, holm, repeats_needed},
};
use std::collections::HashMap;

#[derive(Debug, Clone, PartialEq)]
pub struct CompareOptions {
    /// A real difference whose estimate is at most this share of the baseline is reported, but is not a regression. 0.05 is 5 %.
    pub threshold: f64,
    /// Headers of the columns to compare; empty for all that both runs have.
    pub columns: Vec<String>,
    /// The comparison must be able to find a difference of this share in every figure that has a better direction.
    pub required_power: Option<f64>,
    /// Whether a comparison may pass that would hardly have seen a difference as large as the threshold.
    pub allow_blind: bool,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self { threshold: 0.05, columns: Vec::new(), required_power: None, allow_blind: false }
    }
}

#[derive(Debug)]
pub struct RunComparison<'a> {
    pub baseline: &'a Analysis<'a>,
    pub other: &'a Analysis<'a>,
    /// What the baseline is called: "run 3", "main (run 3)".
    pub baseline_name: String,
    pub other_name: String,
    pub threshold: f64,
    pub required_power: Option<f64>,
    pub allow_blind: bool,
    pub columns: Vec<ComparedColumn>,
    pub outcomes: Vec<OutcomeChange>,
    /// Rows, and columns among those asked for, that only one of the runs has.
    pub unmatched: Vec<Unmatched>,
    pub changes: Vec<Change>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    pub is_column: bool,
    /// The row's label, or the column's header.
    pub name: String,
    pub in_baseline: bool,
}

#[derive(Debug)]
pub struct ComparedColumn {
    /// What stands above it in the baseline.
    pub header: String,
    pub step: String,
    pub metric: String,
    pub unit: Unit,
    pub better: Better,
    pub scale: Scale,
    /// One per row that both runs have, in the baseline's order.
    pub figures: Vec<ComparedFigure>,
}

#[derive(Debug)]
pub struct ComparedFigure {
    pub label: String,
    pub baseline: Entry,
    pub other: Entry,
    /// The test and the shift; `None` when one of them has no figure.
    pub pair: Option<Pair>,
    pub verdict: Verdict,
}

impl ComparedFigure {
    /// Whether the baseline has it and the other run does not.
    pub fn is_missing(&self) -> bool {
        self.baseline.summary.is_some() && self.other.summary.is_none()
    }

    /// Whether it was 0 in most trials, so that nothing is a share of it.
    pub(super) fn was_mostly_none(&self) -> bool {
        self.baseline.summary.is_some_and(|summary| summary.median == 0.0)
    }

    /// Of a figure that was 0 in most trials: whether it reaches far beyond what it did before.
    fn hides(&self, better: Better) -> bool {
        let Some(pair) = self.pair.filter(|_| self.was_mostly_none()) else { return false };
        let [was, is] = [&self.baseline, &self.other].map(Entry::farthest);
        match better {
            Better::Higher => was > 2.0 * is,
            Better::Lower | Better::Neither => is > 2.0 * was || pair.after > pair.before,
        }
    }

    /// What stands for the baseline's trials beside the change; without a comparison, their median.
    pub fn before(&self) -> Option<f64> {
        self.pair.map(|pair| pair.before).or_else(|| self.baseline.summary.map(|summary| summary.median))
    }

    pub fn after(&self) -> Option<f64> {
        self.pair.map(|pair| pair.after).or_else(|| self.other.summary.map(|summary| summary.median))
    }
}

fstone_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Verdict: word {
        /// Really worse, beyond the threshold.
        Regression => "regression",
        /// Really better, beyond the threshold.
        Improvement => "improvement",
        /// Really different, beyond the threshold; neither direction is better.
        Difference => "different",
        /// Really different, but not beyond the threshold.
        Slight => "below threshold",
        /// Really worse; the estimate is within the threshold, and the interval reaches beyond it. In virtual time also if not
        /// all guests show it, and worse at all if nothing shows how far chance moves the figure.
        Unclear => "perhaps worse",
        /// In virtual time: different, but not worse beyond the threshold, and not all guests show it, or nothing shows how far chance moves the figure.
        MayBeChance => "may be chance",
        NotFound => "none found",
        /// There are too few trials for any difference to be found.
        TooFew => "too few trials",
        NoFigure => "no figure",
    }
}

impl<'a> RunComparison<'a> {
    /// Compares two runs. The names are those used in text ("run 3").
    pub fn of(baseline: (&'a Analysis<'a>, &str), other: (&'a Analysis<'a>, &str), options: &CompareOptions) -> Self {
        let ((baseline, baseline_name), (other, other_name)) = (baseline, other);
        let rows: Vec<(usize, usize)> = (0..baseline.rows.len())
            .filter_map(|index| {
                let label = &baseline.rows[index].label;
                Some((index, other.rows.iter().position(|row| row.label == *label)?))
            })
            .collect();
        let wanted = |column: &ColumnView| options.columns.is_empty() || options.columns.contains(&column.header);
        let columns: Vec<(usize, usize)> = (0..baseline.columns.len())
            .filter(|index| wanted(&baseline.columns[*index]))
            .filter_map(|index| {
                let column = &baseline.columns[index];
                let same = |view: &ColumnView| view.step == column.step && view.metric == column.metric;
                Some((index, other.columns.iter().position(same)?))
            })
            .collect();
        let unmatched = [
            unmatched_columns(baseline, other, &wanted, true),
            unmatched_columns(other, baseline, &wanted, false),
            unmatched_rows(baseline, other, true),
            unmatched_rows(other, baseline, false),
        ]
        .concat();
        let mut compared: Vec<ComparedColumn> =
            columns.iter().map(|(a, b)| column(baseline, *a, other, *b, &rows)).collect();
        judge(&mut compared, options.threshold);
        Self {
            baseline,
            other,
            baseline_name: line(baseline_name),
            other_name: line(other_name),
            threshold: options.threshold,
            required_power: options.required_power,
            allow_blind: options.allow_blind,
            columns: compared,
            outcomes: outcomes::changes(baseline, other, &rows),
            unmatched,
            changes: settings::changes(baseline.dataset, other.dataset),
        }
    }

    pub fn figures(&self) -> impl Iterator<Item = (&ComparedColumn, &ComparedFigure)> {
        self.columns.iter().flat_map(|column| column.figures.iter().map(move |figure| (column, figure)))
    }

    pub fn count(&self, verdict: Verdict) -> usize {
        self.figures().filter(|(_, figure)| figure.verdict == verdict).count()
    }

    /// Whether anything became worse beyond the threshold, does not complete any more, or was lost or damaged as it was not before.
    pub fn has_regression(&self) -> bool {
        self.count(Verdict::Regression) > 0 || self.outcomes.iter().any(|change| change.turn == Turn::Worse)
    }

    pub fn compared(&self) -> usize {
        self.figures().filter(|(_, figure)| figure.pair.is_some()).count()
    }

    /// The figures in which a difference was not found and, if it is not larger than `share`, could have been missed:
    /// those with a better direction. What was found needs no power.
    pub fn could_miss(&self, share: f64) -> Vec<(&ComparedColumn, &ComparedFigure)> {
        let could_miss = |(column, figure): &(&ComparedColumn, &ComparedFigure)| match figure.verdict {
            Verdict::NotFound | Verdict::TooFew => {
                let detectable = figure.pair.and_then(|pair| pair.detectable);
                column.better != Better::Neither && detectable.is_none_or(|detectable| detectable > share)
            }
            Verdict::NoFigure => figure.is_missing() && column.better != Better::Neither,
            Verdict::Unclear | Verdict::MayBeChance => {
                column.better != Better::Neither && figure.pair.is_some_and(|pair| pair.has_unknown_scatter())
            }
            Verdict::Regression | Verdict::Improvement | Verdict::Difference | Verdict::Slight => false,
        };
        self.figures().filter(could_miss).collect()
    }

    /// The figures with a better direction in which no difference was found, and one as large as the threshold would more likely have
    /// been missed than found.
    pub fn blind(&self) -> Vec<(&ComparedColumn, &ComparedFigure)> {
        // Any difference exceeds a threshold of 0, and there is always one that is too small to be found.
        let share = if self.threshold > 0.0 { self.threshold } else { CompareOptions::default().threshold };
        let is_blind = |(column, figure): &(&ComparedColumn, &ComparedFigure)| {
            let open =
                matches!(figure.verdict, Verdict::NotFound | Verdict::TooFew) && column.better != Better::Neither;
            let even_odds = figure.pair.and_then(|pair| pair.even_odds);
            let is_blind = even_odds.map_or_else(|| figure.hides(column.better), |even_odds| even_odds > share);
            open && (figure.verdict == Verdict::TooFew || is_blind)
        };
        self.figures().filter(is_blind).collect()
    }

    /// Whether the comparison cannot say what was asked of it: nothing was compared at all, no pair has the trials that any
    /// difference could show in, something that the baseline has is missing, something worse may be beyond the threshold, some figure is
    /// blind and that is not allowed, or a power was required and some figures fall short of it.
    pub fn is_undecided(&self) -> bool {
        let short = |share| !self.could_miss(share).is_empty();
        let blind = !self.allow_blind && !self.blind().is_empty();
        let unclear = self.count(Verdict::Unclear) > 0;
        self.nothing_could_differ() || self.is_missing() || unclear || blind || self.required_power.is_some_and(short)
    }

    /// Whether the other run has a row or column of the baseline no more. Rows that `--only` left out were left out on purpose: the study has them still.
    pub fn lacks(&self, only: &Unmatched) -> bool {
        let [before, after] = [self.baseline, self.other].map(|analysis| &analysis.dataset.run.plan.source);
        only.in_baseline && (only.is_column || before != after || before.is_empty())
    }

    /// Whether the baseline has a row, a column or a figure that the other run lacks.
    pub fn is_missing(&self) -> bool {
        self.unmatched.iter().any(|only| self.lacks(only))
            || self.outcomes.iter().any(|change| change.is_missing)
            || self.figures().any(|(_, figure)| figure.is_missing())
    }

    /// Whether no difference could have been found, however large: there is no pair, or every one has too few trials.
    pub fn nothing_could_differ(&self) -> bool {
        self.count(Verdict::TooFew) == self.compared()
    }

    /// The fewest trials of each row in both runs with which every pair could differ; `None` when each could already.
    pub fn trials_needed(&self) -> Option<usize> {
        (self.count(Verdict::TooFew) > 0).then(|| repeats_needed(self.compared(), ALPHA))
    }
}

fn unmatched_rows(of: &Analysis<'_>, other: &Analysis<'_>, in_baseline: bool) -> Vec<Unmatched> {
    let only = of.rows.iter().filter(|row| !other.rows.iter().any(|there| there.label == row.label));
    only.map(|row| Unmatched { is_column: false, name: row.label.clone(), in_baseline }).collect()
}

fn unmatched_columns(
    of: &Analysis<'_>,
    other: &Analysis<'_>,
    wanted: &dyn Fn(&ColumnView) -> bool,
    in_baseline: bool,
) -> Vec<Unmatched> {
    let same = |a: &ColumnView, b: &ColumnView| a.step == b.step && a.metric == b.metric;
    let only =
        of.columns.iter().filter(|column| wanted(column) && !other.columns.iter().any(|there| same(column, there)));
    only.map(|column| Unmatched { is_column: true, name: column.header.clone(), in_baseline }).collect()
}

/// A column with its figures; their verdicts are still to be found.
fn column(
    baseline: &Analysis<'_>,
    a: usize,
    other: &Analysis<'_>,
    b: usize,
    rows: &[(usize, usize)],
) -> ComparedColumn {
    let view = &baseline.columns[a];
    let figures: Vec<ComparedFigure> = rows
        .iter()
        .map(|&(first, second)| {
            let (row, partner) = (&baseline.rows[first], &other.rows[second]);
            let exact = seeds::pair((baseline, first, a), (other, second, b));
            let (first, second) = (row.entries[a].clone(), partner.entries[b].clone());
            ComparedFigure {
                label: row.label.clone(),
                pair: exact.or_else(|| pair(&first, &second)),
                baseline: first,
                other: second,
                verdict: Verdict::NoFigure,
            }
        })
        .collect();
    let entries = figures.iter().flat_map(|figure| [&figure.baseline, &figure.other]);
    ComparedColumn {
        header: view.header.clone(),
        step: view.step.clone(),
        metric: view.metric.clone(),
        unit: view.unit,
        better: view.better,
        scale: scale_of(view.unit, entries),
        figures,
    }
}

/// Corrects the p-values over the whole comparison and finds the verdicts. Pairs of unknown scatter have no test.
fn judge(columns: &mut [ComparedColumn], threshold: f64) {
    let pairs = columns.iter().flat_map(|column| &column.figures).filter_map(|figure| figure.pair);
    let pairs: Vec<f64> = pairs.filter(|pair| !pair.has_unknown_scatter()).map(|pair| pair.p).collect();
    let adjusted = holm(&pairs);
    // What Holm's correction asks of those that it did not find different.
    let found = adjusted.iter().filter(|p| **p <= ALPHA).count();
    let level = ALPHA / (pairs.len() - found).max(1) as f64;
    let level_of_all = ALPHA / pairs.len() as f64;
    let mut corrected = adjusted.into_iter();
    let mut shifts: HashMap<(usize, usize), [Option<f64>; 2]> = HashMap::new();
    for column in columns {
        let better = column.better;
        for figure in &mut column.figures {
            let Some(pair) = &mut figure.pair else { continue };
            if pair.has_unknown_scatter() {
                figure.verdict = verdict_by_chance(pair, better);
                continue;
            }
            pair.adjusted_p = corrected.next().expect("one for every pair");
            if let Some(exact) = pair.exact {
                if let Some(moved) = exact.moved {
                    let before = pair.before.abs();
                    let share = |size: f64| match exact.logarithmic {
                        true => size.exp_m1(),
                        // What nothing moves is told apart by any difference, also from 0.
                        false if size == 0.0 => 0.0,
                        false => size / before,
                    };
                    let size = if exact.logarithmic { threshold.ln_1p() } else { threshold * before };
                    let reach = |power| Some(share(moved.reach(level, power))).filter(|share| share.is_finite());
                    [pair.detectable, pair.even_odds] = [POWER, 0.5].map(reach);
                    let needed = moved.needed(size, level_of_all, POWER, Perturbation::MOST as usize);
                    pair.trials_for_threshold = needed.map(|(seeds, perturbed)| seeds + perturbed);
                    pair.perturbed_for_threshold = needed.map_or(0, |(_, perturbed)| perturbed);
                }
            } else {
                let sizes = (figure.baseline.values.len(), figure.other.values.len());
                let of_power = |power| detectable_shift(sizes.0, sizes.1, level, power);
                let shift = *shifts.entry(sizes).or_insert_with(|| [POWER, 0.5].map(of_power));
                pair.can_differ = pair.adjusted_p <= ALPHA || shift[0].is_some();
                if let Some(scatter) = Scatter::of(&figure.baseline, &figure.other) {
                    [pair.detectable, pair.even_odds] = shift.map(|shift| Some(scatter.difference(shift?)));
                    let fewest = repeats_needed(pairs.len(), ALPHA);
                    pair.trials_for_threshold = figures_needed(scatter.shift(threshold), level_of_all, fewest);
                }
            }
            figure.verdict = verdict(pair, better, threshold);
            pair.agree();
        }
    }
}

struct Scatter {
    /// The standard deviation over both runs: of the logarithms, or as a share of the baseline's median.
    share: f64,
    logarithmic: bool,
}

impl Scatter {
    /// `None` without repeats, and for figures around zero, of which nothing is a share.
    fn of(baseline: &Entry, other: &Entry) -> Option<Self> {
        let samples = |map: fn(f64) -> f64| -> Option<Vec<Sample>> {
            let of = |entry: &Entry| Sample::new(entry.values.iter().map(|value| map(value.value)).collect()).ok();
            Some(vec![of(baseline)?, of(other)?])
        };
        let pooled = |samples: &[Sample]| {
            let freedom: usize = samples.iter().map(|sample| sample.n() - 1).sum();
            let squares: f64 = samples.iter().map(|sample| sample.stddev().powi(2) * (sample.n() - 1) as f64).sum();
            (freedom > 0).then(|| (squares / freedom as f64).sqrt())
        };
        let plain = samples(|value| value)?;
        if plain.iter().all(|sample| sample.min() > 0.0) {
            return Some(Self { share: pooled(&samples(f64::ln)?)?, logarithmic: true });
        }
        let (deviation, median) = (pooled(&plain)?, plain[0].median().abs());
        // What never varies is told apart by any difference.
        let share = if deviation == 0.0 { 0.0 } else { deviation / median };
        share.is_finite().then_some(Self { share, logarithmic: false })
    }

    /// What a shift of so many standard deviations comes to.
    fn difference(&self, shift: f64) -> f64 {
        if self.logarithmic { (shift * self.share).exp_m1() } else { shift * self.share }
    }

    /// How many standard deviations a difference is.
    fn shift(&self, difference: f64) -> f64 {
        (if self.logarithmic { difference.ln_1p() } else { difference }) / self.share
    }
}

/// Of a pair of which nothing shows how far chance moves it. Whatever the threshold, a loss as large more often than not shows as worse.
fn verdict_by_chance(pair: &Pair, better: Better) -> Verdict {
    let change = pair.shift.estimate;
    let is_worse = match better {
        Better::Higher => change < 0.0,
        Better::Lower => change > 0.0,
        Better::Neither => false,
    };
    match is_worse {
        true => Verdict::Unclear,
        false if change == 0.0 => Verdict::NotFound,
        false => Verdict::MayBeChance,
    }
}

fn verdict(pair: &Pair, better: Better, threshold: f64) -> Verdict {
    let may_exceed = || {
        let (low, high) = pair.interval_as_share();
        match better {
            Better::Higher => low < -threshold,
            Better::Lower => high > threshold,
            Better::Neither => false,
        }
    };
    if pair.is_mixed() {
        return if may_exceed() { Verdict::Unclear } else { Verdict::MayBeChance };
    }
    if !pair.differs() {
        return if pair.can_differ { Verdict::NotFound } else { Verdict::TooFew };
    }
    // There is no share of 0: what was 0 and no longer is exceeds every threshold.
    let share = match pair.relative {
        Some(relative) => relative.estimate.abs(),
        None if pair.before != 0.0 => (pair.shift.estimate / pair.before).abs(),
        None => f64::INFINITY,
    };
    if share <= threshold {
        return if may_exceed() { Verdict::Unclear } else { Verdict::Slight };
    }
    match better {
        Better::Neither => Verdict::Difference,
        Better::Higher if pair.shift.estimate > 0.0 => Verdict::Improvement,
        Better::Lower if pair.shift.estimate < 0.0 => Verdict::Improvement,
        Better::Higher | Better::Lower => Verdict::Regression,
    }
}
