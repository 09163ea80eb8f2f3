//! Rows whose trials ended otherwise than before, or lost or damaged what they did not before.

use crate::{
    harm::harms,
    notes::Footnote,
    run::Analysis,
    text::{counted, listing},
};
use fstone_model::Outcome;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Trials failed, hung, crashed or were refused where none did before, or something was lost or damaged.
    Worse,
    /// Trials complete where some did not.
    Better,
    /// It was not tried in one of the runs: a tool or a permission was missing, or the run ended before.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeChange {
    pub label: String,
    /// How the baseline's trials ended: "all 5 trials completed".
    pub baseline: String,
    /// How the other run's did: "2 of 5 trials failed at fsck: …".
    pub other: String,
    pub turn: Turn,
    /// Whether it is about what was lost or damaged.
    pub is_harm: bool,
    /// Whether the baseline completed trials and the other run tried none.
    pub is_missing: bool,
}

struct Ending {
    words: String,
    bad: usize,
    completed: usize,
}

pub(super) fn changes(baseline: &Analysis<'_>, other: &Analysis<'_>, rows: &[(usize, usize)]) -> Vec<OutcomeChange> {
    let harms = rows.iter().filter_map(|&(row, partner)| harm(baseline, row, other, partner));
    let endings = rows.iter().filter_map(|&(row, partner)| {
        let (before, after) = (ending(baseline, row), ending(other, partner));
        let turn = turn(&before, &after)?;
        let label = baseline.rows[row].label.clone();
        let is_missing = turn == Turn::Unknown && before.completed > 0;
        Some(OutcomeChange { label, baseline: before.words, other: after.words, turn, is_harm: false, is_missing })
    });
    harms.chain(endings).collect()
}

/// No test stands between a first loss and its telling: it is what a filesystem must not do. Of what was lost before, too, figures
/// tell whether it became more.
fn harm(baseline: &Analysis<'_>, row: usize, other: &Analysis<'_>, partner: usize) -> Option<OutcomeChange> {
    let of = |analysis: &Analysis<'_>, row: usize| {
        let row = &analysis.rows[row];
        let cell = analysis.dataset.run.plan.cells.iter().find(|cell| cell.index == row.cell);
        cell.map_or_else(Vec::new, |cell| harms(cell, &row.trials))
    };
    let (before, after) = (of(baseline, row), of(other, partner));
    let any_new = after.iter().any(|(kind, _)| !before.iter().any(|(known, _)| known == kind));
    let turn = match (before.is_empty(), after.is_empty()) {
        (true, true) => return None,
        _ if any_new => Turn::Worse,
        // Nothing is lost where nothing was tried.
        (false, true) if other.rows[partner].completed > 0 => Turn::Better,
        _ => Turn::Unknown,
    };
    let words = |analysis: &Analysis<'_>, row: usize, harms: Vec<(&str, String)>| match harms.is_empty() {
        true => format!("nothing lost or damaged in {}", counted(analysis.rows[row].trials.len(), "trial")),
        false => listing(&harms.into_iter().map(|(_, words)| words).collect::<Vec<_>>()),
    };
    Some(OutcomeChange {
        label: baseline.rows[row].label.clone(),
        baseline: words(baseline, row, before),
        other: words(other, partner, after),
        turn,
        is_harm: true,
        is_missing: false,
    })
}

/// Only from none to some and from some to all: how many out of a few fail is largely chance.
fn turn(before: &Ending, after: &Ending) -> Option<Turn> {
    match ((before.bad, before.completed), (after.bad, after.completed)) {
        ((0, 0), (0, 0)) => None,
        ((0, 0), _) | (_, (0, 0)) => Some(Turn::Unknown),
        ((0, _), (1.., _)) | ((_, 1..), (1.., 0)) => Some(Turn::Worse),
        ((1.., _), (0, _)) | ((1.., 0), (_, 1..)) => Some(Turn::Better),
        _ => None,
    }
}

fn ending(analysis: &Analysis<'_>, index: usize) -> Ending {
    let row = &analysis.rows[index];
    let bad =
        row.trials.iter().filter(|trial| !matches!(trial.outcome, Outcome::Completed | Outcome::Skipped(_))).count();
    let note = || {
        let number = row.footnotes.first()?;
        analysis.footnotes.iter().find(|note| note.number == *number).map(Footnote::sentence)
    };
    let trials = counted(row.trials.len(), "trial");
    let words = match (row.completed, row.trials.len()) {
        (_, 0) => "no trial was run".to_owned(),
        (completed, all) if completed == all => format!("all {trials} completed"),
        (0, _) => format!("no trial completed: {}", note().unwrap_or_default()),
        (completed, all) => format!("{} of {trials}: {}", all - completed, note().unwrap_or_default()),
    };
    Ending { words, bad, completed: row.completed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certain_without_a_test_is_a_turn() {
        let ending = |bad, completed| Ending { words: String::new(), bad, completed };
        let turn = |before: (usize, usize), after: (usize, usize)| {
            super::turn(&ending(before.0, before.1), &ending(after.0, after.1))
        };
        assert_eq!(turn((0, 5), (0, 5)), None);
        assert_eq!(turn((0, 5), (1, 4)), Some(Turn::Worse));
        assert_eq!(turn((0, 5), (5, 0)), Some(Turn::Worse));
        assert_eq!(turn((1, 4), (5, 0)), Some(Turn::Worse));
        assert_eq!(turn((1, 4), (2, 3)), None, "2 of 5 after 1 of 5 may be chance");
        assert_eq!(turn((5, 0), (5, 0)), None);
        assert_eq!(turn((5, 0), (4, 1)), Some(Turn::Better));
        assert_eq!(turn((1, 4), (0, 5)), Some(Turn::Better));
        assert_eq!(turn((0, 5), (0, 0)), Some(Turn::Unknown));
        assert_eq!(turn((0, 0), (0, 0)), None);
    }
}
