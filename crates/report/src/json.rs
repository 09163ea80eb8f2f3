//! JSON of a documented shape: [`Document`]. Everything the table shows, unrounded, and every trial's figures.
//!
//! The shape has a [`VERSION`]. Fields are added without changing it; it changes when a field goes or means something
//! else. Numbers are in base units; seeds are whole numbers of up to 64 bits.

use crate::{
    Analysis, Options,
    analysis::{self, Length},
};
use fstone_model::{Better, Dataset, Outcome, Unit};
use fstone_stats::{
    Interval,
    compare::{Pairwise, Shift},
};
use serde::Serialize;

pub const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
pub struct Document<'a> {
    /// Always "fstone-report".
    pub format: &'static str,
    pub version: u32,
    pub run: RunPart<'a>,
    /// The answer in words, all of it.
    pub sentences: Vec<String>,
    pub columns: Vec<ColumnPart<'a>>,
    /// The rows of the table: the cells, in the plan's order.
    pub rows: Vec<RowPart<'a>>,
    /// Why trials did not complete, numbered from 1.
    pub footnotes: Vec<FootnotePart<'a>>,
    pub warnings: Vec<WarningPart<'a>>,
    /// The rules of Hoefler & Belli (SC 2015), and whether the report keeps them.
    pub rules: Vec<RulePart>,
    pub comparisons: Vec<PairPart<'a>>,
    /// Where the published figures are from, when they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_source: Option<&'a str>,
}

#[derive(Debug, Serialize)]
pub struct RulePart {
    /// Its number in the paper.
    pub number: u8,
    /// What it asks, as far as it was checked.
    pub asks: &'static str,
    /// "holds", "does not hold" or "does not apply".
    pub verdict: &'static str,
    pub because: String,
}

#[derive(Debug, Serialize)]
pub struct RunPart<'a> {
    pub id: u64,
    pub study: &'a str,
    pub title: &'a str,
    pub quick: bool,
    pub seed: u64,
    pub started_unix_ns: u64,
    /// End; null while it runs or when it was killed.
    pub finished_unix_ns: Option<u64>,
    pub command: &'a [String],
    pub note: Option<&'a str>,
    /// The cell that ratios refer to.
    pub baseline: Option<u32>,
    /// (factor, levels).
    pub factors: Vec<(&'a str, &'a [String])>,
    pub inventory: &'a fstone_model::Inventory,
    /// The blocks that other machines made, with these machines; absent where none did.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub blocks: &'a [fstone_model::dataset::BlockOrigin],
}

#[derive(Debug, Serialize)]
pub struct ColumnPart<'a> {
    pub header: &'a str,
    pub step: &'a str,
    pub metric: &'a str,
    pub unit: Unit,
    pub better: Better,
}

#[derive(Debug, Serialize)]
pub struct RowPart<'a> {
    /// The cell's index in the plan.
    pub cell: u32,
    pub label: &'a str,
    /// "completed" if any trial did, else how they ended, or "not run".
    pub outcome: &'a str,
    pub completed: usize,
    pub footnotes: &'a [usize],
    /// One per column.
    pub figures: Vec<FigurePart<'a>>,
    /// Every trial, in the order they ran.
    pub trials: Vec<TrialPart<'a>>,
}

#[derive(Debug, Serialize)]
pub struct FigurePart<'a> {
    /// How many trials it rests on.
    pub n: usize,
    /// The values of the completed trials, in the order they ran.
    pub values: Vec<f64>,
    /// Positions in `values` of those far from the others. None is left out because of it.
    pub outliers: Vec<usize>,
    pub mean: Option<f64>,
    pub median: Option<f64>,
    /// The published interval of the mean; null where nothing is known of the scatter.
    pub interval: Option<Interval>,
    /// Whether the interval rests on enough trials to be quoted without a caution; null without an interval.
    pub reliable: Option<bool>,
    /// Rows that share a letter within a column (and panel) cannot be told apart; empty when all are alike.
    pub letters: &'a str,
    /// Its mean over the baseline's.
    pub ratio: Option<f64>,
    /// In virtual time, how far perturbed guests move it, as a share of it; absent without such trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub perturbed: Option<f64>,
    /// The shift to the baseline as a share of it, when the two were found to differ.
    pub relative_shift: Option<Shift>,
    /// What was published, when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedPart<'a>>,
}

#[derive(Debug, Serialize)]
pub struct PublishedPart<'a> {
    pub value: Option<f64>,
    /// What stood in its place or beside it.
    pub note: Option<&'a str>,
    /// Its ratio to the published baseline.
    pub ratio_then: Option<f64>,
    /// Today's ratio to today's baseline.
    pub ratio_now: Option<f64>,
}

#[derive(Debug, Serialize)]
pub struct TrialPart<'a> {
    /// Which repetition of the cell, from 0.
    pub repetition: u32,
    /// "perturbed 1" for a trial in a perturbed guest, which is no repetition; absent for all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guest: Option<String>,
    /// Its place in the order in which trials ran, from 0.
    pub position: u32,
    pub started_unix_ns: u64,
    pub duration_ns: u64,
    pub seed: u64,
    #[serde(flatten)]
    pub outcome: &'a Outcome,
    pub figures: Vec<TrialFigure<'a>>,
    pub warnings: &'a [String],
}

#[derive(Debug, Serialize)]
pub struct TrialFigure<'a> {
    pub step: &'a str,
    #[serde(flatten)]
    pub figure: &'a fstone_model::Figure,
}

#[derive(Debug, Serialize)]
pub struct FootnotePart<'a> {
    pub number: usize,
    /// "refused", "failed", …; "doubtful" of trials that completed.
    pub outcome: &'a str,
    pub step: &'a str,
    /// The kernel's or tool's own words.
    pub words: &'a str,
    pub cure: Option<&'a str>,
    /// (cell, trials that ended so).
    pub cells: Vec<(u32, usize)>,
}

#[derive(Debug, Serialize)]
pub struct WarningPart<'a> {
    pub text: &'a str,
    /// The cells it is about; empty when it is about the run.
    pub cells: Vec<u32>,
}

#[derive(Debug, Serialize)]
pub struct PairPart<'a> {
    pub column: &'a str,
    /// Which test, its p-value and the one adjusted over the table, the shift and Cliff's δ. `baseline` and `other`
    /// are cells. The shift's ends are null if the two cannot differ.
    #[serde(flatten)]
    pub pair: Pairwise,
}

/// A run as JSON, indented. Ends with a line feed.
pub fn json(dataset: &Dataset, options: &Options) -> String {
    let analysis = Analysis::of(dataset);
    pretty(&document(&analysis, options))
}

/// A document, indented. Ends with a line feed.
pub(crate) fn pretty(document: &impl Serialize) -> String {
    serde_json::to_string_pretty(document).expect("plain data with text keys is always JSON") + "\n"
}

pub fn document<'a>(analysis: &'a Analysis<'a>, options: &Options) -> Document<'a> {
    let published = analysis.published.as_ref().filter(|_| options.published);
    let run = &analysis.dataset.run;
    Document {
        format: "fstone-report",
        version: VERSION,
        run: RunPart {
            id: run.id,
            study: &run.plan.study,
            title: &run.plan.title,
            quick: run.plan.quick,
            seed: run.plan.seed,
            started_unix_ns: run.started_unix_ns,
            finished_unix_ns: run.finished_unix_ns,
            command: &run.command,
            note: run.note.as_ref().map(fstone_model::Note::as_str),
            baseline: run.plan.baseline,
            factors: run.plan.factors.iter().map(|factor| (factor.name.as_str(), factor.levels.as_slice())).collect(),
            inventory: &run.inventory,
            blocks: &run.blocks,
        },
        sentences: analysis.answer(Length::Long),
        columns: analysis
            .columns
            .iter()
            .map(|column| ColumnPart {
                header: &column.header,
                step: &column.step,
                metric: &column.metric,
                unit: column.unit,
                better: column.better,
            })
            .collect(),
        rows: (0..analysis.rows.len()).map(|row| row_part(analysis, row, published)).collect(),
        footnotes: analysis
            .footnotes
            .iter()
            .map(|note| FootnotePart {
                number: note.number,
                outcome: note.word,
                step: &note.step,
                words: &note.words,
                cure: note.cure.as_deref(),
                cells: note.rows.iter().map(|row| (analysis.rows[row.row].cell, row.trials)).collect(),
            })
            .collect(),
        warnings: analysis
            .warnings
            .iter()
            .map(|warning| WarningPart {
                text: &warning.text,
                cells: warning.rows.iter().map(|row| analysis.rows[*row].cell).collect(),
            })
            .collect(),
        rules: analysis.rules().iter().map(rule).collect(),
        comparisons: pairs(analysis),
        published_source: published.map(|published| published.source.as_str()),
    }
}

fn row_part<'a>(analysis: &'a Analysis<'a>, index: usize, published: Option<&'a analysis::Published>) -> RowPart<'a> {
    let row = &analysis.rows[index];
    RowPart {
        cell: row.cell,
        label: &row.label,
        outcome: row.word.unwrap_or("completed"),
        completed: row.all().filter(|trial| trial.outcome.is_completed()).count(),
        footnotes: &row.footnotes,
        figures: row
            .entries
            .iter()
            .enumerate()
            .map(|(column, entry)| FigurePart {
                n: entry.values.len(),
                values: entry.values.iter().map(|value| value.value).collect(),
                outliers: (0..entry.values.len()).filter(|place| entry.values[*place].outlier).collect(),
                mean: entry.mean(),
                median: entry.summary.map(|summary| summary.median),
                interval: entry.interval,
                reliable: entry.interval.map(|interval| interval.is_reliable()),
                letters: &entry.letters,
                ratio: entry.ratio,
                perturbed: entry.band().filter(|band| band.is_finite()),
                relative_shift: entry.shift,
                published: published.map(|published| {
                    let entry = &published.entries[index][column];
                    PublishedPart {
                        value: entry.value,
                        note: entry.note.as_deref(),
                        ratio_then: entry.then,
                        ratio_now: entry.now,
                    }
                }),
            })
            .collect(),
        trials: analysis
            .dataset
            .trials_of(row.cell)
            .map(|trial| TrialPart {
                repetition: trial.id.repetition,
                guest: trial.id.perturbation().map(|_| trial.id.number()),
                position: trial.position,
                started_unix_ns: trial.started_unix_ns,
                duration_ns: trial.duration_ns,
                seed: trial.seed,
                outcome: &trial.outcome,
                figures: trial
                    .steps
                    .iter()
                    .flat_map(|step| step.figures.iter().map(|figure| TrialFigure { step: &step.step, figure }))
                    .collect(),
                warnings: &trial.warnings,
            })
            .collect(),
    }
}

fn rule(rule: &analysis::Rule) -> RulePart {
    RulePart { number: rule.number, asks: rule.asks, verdict: rule.verdict(), because: rule.words().to_owned() }
}

fn pairs<'a>(analysis: &'a Analysis<'a>) -> Vec<PairPart<'a>> {
    let mut pairs = Vec::new();
    for (column, comparison) in analysis.columns.iter().zip(&analysis.comparisons) {
        for panel in comparison.panels.iter().flatten() {
            for pair in &panel.comparison.pairs {
                let cell = |place: usize| analysis.rows[panel.rows[place]].cell as usize;
                let mut pair = Pairwise { baseline: cell(pair.baseline), other: cell(pair.other), ..*pair };
                if !pair.can_differ {
                    // JSON has no infinity: it becomes null.
                    pair.shift.interval.low = f64::NEG_INFINITY;
                    pair.shift.interval.high = f64::INFINITY;
                }
                pairs.push(PairPart { column: &column.header, pair });
            }
        }
    }
    pairs
}
