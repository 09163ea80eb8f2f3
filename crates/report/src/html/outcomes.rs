//! How trials ended.

use crate::{
    Analysis,
    analysis::Loads,
    text::{counted, line, listing},
};

pub(super) struct Note {
    pub(super) number: usize,
    pub(super) head: String,
    pub(super) words: String,
    pub(super) cure: String,
}

pub(super) struct Outcomes {
    pub(super) sentence: String,
    pub(super) errors: Vec<String>,
}

const MAX_ERRORS: usize = 40;

pub(super) fn notes(analysis: &Analysis<'_>) -> Vec<Note> {
    analysis
        .shown_footnotes()
        .map(|note| {
            let whose = note.share(&analysis.rows).map(|share| format!("{share} ")).unwrap_or_default();
            let at = if note.step.is_empty() { String::new() } else { format!(" at {}", note.step) };
            let colon = if note.words.is_empty() { "" } else { ":" };
            Note {
                number: note.number,
                head: format!("{whose}{}{at}{colon}", note.word),
                words: format!("{}{}", note.words, if note.alike { "\n(and the like)" } else { "" }),
                cure: note.cure.clone().unwrap_or_default(),
            }
        })
        .collect()
}

pub(super) fn outcomes(analysis: &Analysis<'_>, loads: &Loads<'_>) -> Outcomes {
    let mut words: Vec<(&str, usize)> = Vec::new();
    for trial in analysis.rows.iter().flat_map(fstone_analysis::Row::all) {
        let word = trial.outcome.word();
        match words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => words.push((word, 1)),
        }
    }
    let told: Vec<String> = words.iter().map(|(word, count)| format!("{count} {word}")).collect();
    let total: usize = words.iter().map(|(_, count)| count).sum();
    let mut sentence = match told.len() {
        0 => "No trial was run.".to_owned(),
        1 => format!("{}: all {}.", counted(total, "trial"), words[0].0),
        _ => format!("{}: {}.", counted(total, "trial"), listing(&told)),
    };
    let not_run = analysis.rows.iter().filter(|row| row.trials.is_empty()).count();
    if not_run > 0 && total > 0 {
        sentence.push_str(&format!(
            " {} not run.",
            if not_run == 1 { "1 row was".to_owned() } else { format!("{not_run} rows were") }
        ));
    }
    if analysis.shown_footnotes().next().is_some() {
        sentence.push_str(
            " The reasons are in the footnotes of the table. A trial that did not complete has no figure there.",
        );
    }
    Outcomes { sentence, errors: errors(analysis, loads) }
}

fn errors(analysis: &Analysis<'_>, loads: &Loads<'_>) -> Vec<String> {
    let mut kinds: Vec<ErrorKind> = Vec::new();
    for (row, error) in loads
        .steps
        .iter()
        .flat_map(|step| &step.rows)
        .flat_map(|row| row.reports.iter().flat_map(|report| &report.errors).map(|error| (row.row, error)))
    {
        let what = format!("{}: {} gave “{}”", line(&error.operation), line(&error.call), line(&error.text));
        match kinds.iter_mut().find(|kind| kind.what == what) {
            Some(kind) => {
                kind.count += error.count;
                if !kind.rows.contains(&row) {
                    kind.rows.push(row);
                }
            }
            None => kinds.push(ErrorKind { what, count: error.count, rows: vec![row] }),
        }
    }
    kinds
        .into_iter()
        .take(MAX_ERRORS)
        .map(|kind| {
            let times = if kind.count == 1 { "once".to_owned() } else { format!("{} times", kind.count) };
            format!("{} {times}{}", kind.what, crate::analysis::touched(&kind.rows, &analysis.rows))
        })
        .collect()
}

/// Errors that differ in nothing but where and how often they came.
struct ErrorKind {
    what: String,
    count: u64,
    rows: Vec<usize>,
}
