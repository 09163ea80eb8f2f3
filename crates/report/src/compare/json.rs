//! A comparison as JSON of a documented shape: [`Document`]. Unrounded, in base units.

use crate::analysis::runs::{ComparedColumn, ComparedFigure, RunComparison, Turn, Verdict};
use fstone_model::{Better, Unit};
use fstone_stats::{Interval, compare::Shift};
use serde::Serialize;

/// The shape's version. Fields are added without changing it; it changes when a field goes or means something else.
pub const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
pub struct Document<'a> {
    /// Always "fstone-comparison".
    pub format: &'static str,
    pub version: u32,
    pub baseline: RunPart<'a>,
    pub other: RunPart<'a>,
    /// A real difference is a regression or an improvement beyond this share.
    pub threshold: f64,
    /// Whether anything became worse beyond the threshold, does not complete any more, or was lost or damaged as it was not before.
    pub regression: bool,
    pub sentences: Vec<String>,
    pub figures: Vec<FigurePart<'a>>,
    pub outcomes: Vec<OutcomePart<'a>>,
    /// Other differences: (what, before, after).
    pub changes: Vec<(&'a str, &'a str, &'a str)>,
    pub only_in_baseline: Vec<&'a str>,
    pub only_in_other: Vec<&'a str>,
    pub columns_only_in_baseline: Vec<&'a str>,
    pub columns_only_in_other: Vec<&'a str>,
    /// The share that every figure with a better direction was required to be able to show.
    pub required_power: Option<f64>,
    /// Whether nothing was compared, no pair had the trials for any difference to show, something was missing, some figure was blind or
    /// unclear, or the required power was not reached everywhere.
    pub undecided: bool,
}

#[derive(Debug, Serialize)]
pub struct RunPart<'a> {
    pub name: &'a str,
    pub id: u64,
    pub study: &'a str,
    pub started_unix_ns: u64,
    pub host: &'a str,
    pub kernel: &'a str,
    pub note: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub struct FigurePart<'a> {
    pub row: &'a str,
    pub column: &'a str,
    pub step: &'a str,
    pub metric: &'a str,
    pub unit: Unit,
    pub better: Better,
    /// The baseline's values, in the order they ran.
    pub baseline: SamplePart,
    pub other: SamplePart,
    /// The p-value of the Mann–Whitney test, for this pair alone.
    pub p: Option<f64>,
    /// Holm-adjusted over the comparison.
    pub adjusted_p: Option<f64>,
    /// Whether any figures at all could have made these two differ.
    pub can_differ: Option<bool>,
    /// The smallest difference, as a share of the baseline, that so many trials find with a power of 80 %.
    pub detectable: Option<f64>,
    /// other − baseline, in the metric's unit: between the medians, with a Hodges–Lehmann interval; in virtual time between the means over the seeds.
    pub shift: Option<Shift>,
    /// The same as a share of the baseline.
    pub relative_shift: Option<Shift>,
    /// Whether no difference was found, and one as large as the threshold would more likely have been missed than found.
    pub blind: bool,
    /// "regression", "improvement", "difference", "slight", "unclear" (worse; whether beyond the threshold is open), "may-be-chance" (not
    /// worse, and nothing shows how far chance moves it), "not-found", "too-few" or "no-figure".
    pub verdict: &'static str,
}

#[derive(Debug, Serialize)]
pub struct SamplePart {
    pub values: Vec<f64>,
    pub mean: Option<f64>,
    pub median: Option<f64>,
    /// The published interval of the mean.
    pub interval: Option<Interval>,
}

#[derive(Debug, Serialize)]
pub struct OutcomePart<'a> {
    pub row: &'a str,
    pub baseline: &'a str,
    pub other: &'a str,
    /// "worse", "better" or "unknown".
    pub turn: &'static str,
}

/// A comparison as JSON, indented. Ends with a line feed.
pub fn json(comparison: &RunComparison<'_>) -> String {
    crate::json::pretty(&document(comparison))
}

fn document<'a>(comparison: &'a RunComparison<'_>) -> Document<'a> {
    let run = |analysis: &'a crate::Analysis<'_>, name: &'a str| {
        let run = &analysis.dataset.run;
        RunPart {
            name,
            id: run.id,
            study: &run.plan.study,
            started_unix_ns: run.started_unix_ns,
            host: &run.inventory.host,
            kernel: &run.inventory.kernel,
            note: run.note.as_ref().map(fstone_model::Note::as_str),
        }
    };
    let only = |is_column: bool, in_baseline: bool| {
        let found = comparison.unmatched.iter();
        let found = found.filter(move |only| only.is_column == is_column && only.in_baseline == in_baseline);
        found.map(|only| only.name.as_str()).collect()
    };
    Document {
        format: "fstone-comparison",
        version: VERSION,
        baseline: run(comparison.baseline, &comparison.baseline_name),
        other: run(comparison.other, &comparison.other_name),
        threshold: comparison.threshold,
        regression: comparison.has_regression(),
        sentences: comparison.sentences(),
        figures: figures(comparison),
        outcomes: comparison
            .outcomes
            .iter()
            .map(|change| OutcomePart {
                row: &change.label,
                baseline: &change.baseline,
                other: &change.other,
                turn: match change.turn {
                    Turn::Worse => "worse",
                    Turn::Better => "better",
                    Turn::Unknown => "unknown",
                },
            })
            .collect(),
        changes: comparison
            .changes
            .iter()
            .map(|change| (change.what.as_str(), change.baseline.as_str(), change.other.as_str()))
            .collect(),
        only_in_baseline: only(false, true),
        only_in_other: only(false, false),
        columns_only_in_baseline: only(true, true),
        columns_only_in_other: only(true, false),
        required_power: comparison.required_power,
        undecided: comparison.is_undecided(),
    }
}

fn figures<'a>(comparison: &'a RunComparison<'_>) -> Vec<FigurePart<'a>> {
    let blind = comparison.blind();
    let is_blind = |figure: &ComparedFigure| blind.iter().any(|(_, of)| std::ptr::eq(*of, figure));
    comparison.figures().map(|(column, figure)| figure_part(column, figure, is_blind(figure))).collect()
}

fn figure_part<'a>(column: &'a ComparedColumn, figure: &'a ComparedFigure, blind: bool) -> FigurePart<'a> {
    let sample = |entry: &crate::analysis::Entry| SamplePart {
        values: entry.values.iter().map(|value| value.value).collect(),
        mean: entry.mean(),
        median: entry.summary.map(|summary| summary.median),
        interval: entry.interval,
    };
    FigurePart {
        row: &figure.label,
        column: &column.header,
        step: &column.step,
        metric: &column.metric,
        unit: column.unit,
        better: column.better,
        baseline: sample(&figure.baseline),
        other: sample(&figure.other),
        p: figure.pair.map(|pair| pair.p),
        adjusted_p: figure.pair.map(|pair| pair.adjusted_p),
        can_differ: figure.pair.map(|pair| pair.can_differ),
        detectable: figure.pair.and_then(|pair| pair.detectable),
        shift: figure.pair.map(|pair| pair.shift),
        relative_shift: figure.pair.and_then(|pair| pair.relative),
        blind,
        verdict: match figure.verdict {
            Verdict::Regression => "regression",
            Verdict::Improvement => "improvement",
            Verdict::Difference => "difference",
            Verdict::Slight => "slight",
            Verdict::Unclear => "unclear",
            Verdict::MayBeChance => "may-be-chance",
            Verdict::NotFound => "not-found",
            Verdict::TooFew => "too-few",
            Verdict::NoFigure => "no-figure",
        },
    }
}
