//! CSV (RFC 4180): every figure of every trial.
//!
//! Values are in the unit named beside them and are the shortest text that reads back as the same number. Text that a
//! spreadsheet would take for a formula is prefixed with an apostrophe.

use crate::{number::exact, text::line, when};
use fstone_model::{Better, Dataset, Note, Trial, Unit, metric::Figure, result::StepResult};

/// Every figure of every trial, in the order they ran: one row each.
///
/// Columns: run, study, cell, row, one `factor: NAME` per factor, repetition, position, started, duration_s, seed,
/// outcome, reason, step, metric, value, unit, better, note (of the run). A trial without figures has one row with the five before
/// that empty.
pub fn csv(dataset: &Dataset) -> String {
    let plan = &dataset.run.plan;
    let mut output = String::new();
    let mut head: Vec<String> = ["run", "study", "cell", "row"].map(str::to_owned).to_vec();
    head.extend(plan.factors.iter().map(|factor| format!("factor: {}", factor.name)));
    head.extend(
        [
            "repetition",
            "position",
            "started",
            "duration_s",
            "seed",
            "outcome",
            "reason",
            "step",
            "metric",
            "value",
            "unit",
            "better",
            "note",
        ]
        .map(str::to_owned),
    );
    record(&head.iter().map(|name| text(name)).collect::<Vec<_>>(), &mut output);
    let note = note(dataset);
    for trial in &dataset.trials {
        let about = about(dataset, trial);
        for figure in figures_of(trial) {
            let mut fields = about.clone();
            fields.extend(match figure {
                Some((step, figure)) => [
                    text(&step.step),
                    text(&figure.metric),
                    exact(figure.value),
                    unit(figure.unit).to_owned(),
                    better(figure.better).to_owned(),
                ],
                None => Default::default(),
            });
            fields.push(note.clone());
            record(&fields, &mut output);
        }
    }
    output
}

fn note(dataset: &Dataset) -> String {
    text(dataset.run.note.as_ref().map_or("", Note::as_str))
}

/// The rows of a trial: its figures, or none once.
fn figures_of(trial: &Trial) -> Vec<Option<(&StepResult, &Figure)>> {
    let figures = trial.steps.iter().flat_map(|step| step.figures.iter().map(move |figure| Some((step, figure))));
    let mut rows: Vec<_> = figures.collect();
    if rows.is_empty() {
        rows.push(None);
    }
    rows
}

fn about(dataset: &Dataset, trial: &Trial) -> Vec<String> {
    let plan = &dataset.run.plan;
    let cell = plan.cells.iter().find(|cell| cell.index == trial.id.cell);
    let mut fields = vec![
        dataset.run.id.to_string(),
        text(&plan.study),
        trial.id.cell.to_string(),
        text(cell.map_or("", |cell| &cell.label)),
    ];
    fields.extend(plan.factors.iter().enumerate().map(|(index, factor)| {
        let level = cell.and_then(|cell| factor.levels.get(*cell.levels.get(index)? as usize));
        text(level.map_or("", String::as_str))
    }));
    let reason = trial.outcome.reason().map_or_else(String::new, |reason| format!("{}: {}", reason.step, reason.words));
    fields.extend([
        // Repetitions count from 0.
        trial.id.perturbation().map_or_else(|| trial.id.repetition.to_string(), |_| trial.id.number()),
        trial.position.to_string(),
        when::iso(trial.started_unix_ns),
        exact(trial.duration_ns as f64 / 1e9),
        trial.seed.to_string(),
        trial.outcome.word().to_owned(),
        text(&reason),
    ]);
    fields
}

/// Fields that are safe as they stand or came from [`text`].
fn record(fields: &[String], output: &mut String) {
    output.push_str(&fields.join(","));
    output.push_str("\r\n");
}

/// A text field: visible, no formula, quoted when it has to be.
pub(crate) fn text(value: &str) -> String {
    let mut clean = line(value);
    if clean.starts_with(['=', '+', '-', '@']) {
        clean.insert(0, '\'');
    }
    if clean.contains([',', '"', ';', '\'']) || clean.starts_with(' ') {
        clean = format!("\"{}\"", clean.replace('"', "\"\""));
    }
    clean
}

/// The unit's name as JSON and the store have it.
pub(crate) const fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Seconds => "seconds",
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "bytes-per-second",
        Unit::PerSecond => "per-second",
        Unit::Percent => "percent",
        Unit::Count => "count",
        Unit::Ratio => "ratio",
    }
}

pub(crate) const fn better(better: Better) -> &'static str {
    match better {
        Better::Higher => "higher",
        Better::Lower => "lower",
        Better::Neither => "neither",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_and_no_formula() {
        assert_eq!(text("a,b"), "\"a,b\"");
        assert_eq!(text("say \"x\""), "\"say \"\"x\"\"\"");
        assert_eq!(text("=1+2"), "\"'=1+2\"");
        assert_eq!(text("two\nlines"), "two lines");
        assert_eq!(text("plain"), "plain");
    }

    #[test]
    fn units_are_named_as_the_model_names_them() {
        let all = [
            Unit::Seconds,
            Unit::Nanoseconds,
            Unit::Bytes,
            Unit::BytesPerSecond,
            Unit::PerSecond,
            Unit::Percent,
            Unit::Count,
            Unit::Ratio,
        ];
        for each in all {
            assert_eq!(serde_json::to_value(each).expect("a unit is a string"), unit(each));
        }
        for each in [Better::Higher, Better::Lower, Better::Neither] {
            assert_eq!(serde_json::to_value(each).expect("a direction is a string"), better(each));
        }
    }
}
