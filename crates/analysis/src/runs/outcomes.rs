//! Rows whose trials ended otherwise than before, or lost or damaged what they did not before.

use super::seeds::Guest;
use crate::{
    clock::is_virtual,
    harm::{Harm, harms, is_measured},
    notes::Footnote,
    run::Analysis,
    text::{counted, listing},
};
use fstone_model::{Outcome, Trial};
use fstone_stats::ALPHA;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Trials failed, hung, crashed or were refused where none did before or ended less badly, or more was lost or damaged.
    Worse,
    /// Trials complete where some did not.
    Better,
    /// It was not tried in one of the runs (a tool or a permission was missing, or the run ended before), or what changed may be chance.
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
    /// Whether the baseline completed trials and the other run none, or what the baseline lost was not measured again.
    pub is_missing: bool,
}

struct Ending {
    words: String,
    bad: usize,
    completed: usize,
    worst: u8,
}

/// How bad an end is beside others.
const fn badness(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Completed | Outcome::Skipped(_) => 0,
        Outcome::Refused(_) => 1,
        Outcome::Failed(_) => 2,
        Outcome::Hung(_) => 3,
        Outcome::Crashed(_) => 4,
    }
}

const fn is_bad(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Completed | Outcome::Skipped(_))
}

pub(super) fn changes(baseline: &Analysis<'_>, other: &Analysis<'_>, rows: &[(usize, usize)]) -> Vec<OutcomeChange> {
    let of =
        |analysis: &Analysis<'_>, row: usize| harms_of(analysis, row, &analysis.rows[row].all().collect::<Vec<_>>());
    let both: Vec<(Vec<Harm>, Vec<Harm>)> = rows.iter().map(|&(a, b)| (of(baseline, a), of(other, b))).collect();
    let known = both.iter().map(|(before, after)| after.iter().filter(|harm| known(before, harm).is_some()).count());
    let level = ALPHA / known.sum::<usize>().max(1) as f64;
    let harms = rows
        .iter()
        .zip(both)
        .filter_map(|(&(row, partner), both)| harm((baseline, row), (other, partner), both, level));
    let endings = rows.iter().filter_map(|&(row, partner)| {
        let (before, after) = (ending(baseline, row), ending(other, partner));
        let turn = turn(&before, &after)?;
        let label = baseline.rows[row].label.clone();
        let not_run =
            turn == Turn::Better && was_not_run((baseline, row), (other, partner), |trial| is_bad(&trial.outcome));
        let (turn, told) = match not_run {
            true => (Turn::Unknown, format!("{}, without the guest that did not before", after.words)),
            false => (turn, after.words),
        };
        let is_missing = not_run || turn == Turn::Unknown && before.completed > 0 && after.completed == 0;
        Some(OutcomeChange { label, baseline: before.words, other: told, turn, is_harm: false, is_missing })
    });
    harms.chain(new_rows(baseline, other)).chain(endings).collect()
}

fn harms_of(analysis: &Analysis<'_>, row: usize, trials: &[&Trial]) -> Vec<Harm> {
    let cell = analysis.dataset.run.plan.cells.iter().find(|cell| cell.index == analysis.rows[row].cell);
    cell.map_or_else(Vec::new, |cell| harms(cell, trials))
}

/// Whether the other run in virtual time, in which guests do the same again, lacks a guest in which the baseline shows this.
fn was_not_run(
    (baseline, row): (&Analysis<'_>, usize),
    (other, partner): (&Analysis<'_>, usize),
    shows: impl Fn(&Trial) -> bool,
) -> bool {
    let is_there = |trial: &Trial| {
        let mut tried = other.rows[partner].all().filter(|there| !matches!(there.outcome, Outcome::Skipped(_)));
        tried.any(|there| Guest::of(there) == Guest::of(trial))
    };
    is_virtual(baseline.dataset)
        && is_virtual(other.dataset)
        && baseline.rows[row].all().any(|trial| shows(trial) && !is_there(trial))
}

/// What rows lost or damaged that only the other run has: the baseline did not show it.
fn new_rows<'a>(baseline: &'a Analysis<'_>, other: &'a Analysis<'_>) -> impl Iterator<Item = OutcomeChange> + 'a {
    let is_new = |label: &str| !baseline.rows.iter().any(|row| row.label == label);
    other.rows.iter().filter(move |row| is_new(&row.label)).filter_map(|row| {
        Some(OutcomeChange {
            label: row.label.clone(),
            baseline: "no such row".to_owned(),
            other: row.harm.clone()?,
            turn: Turn::Worse,
            is_harm: true,
            is_missing: false,
        })
    })
}

fn known<'a>(before: &'a [Harm], harm: &Harm) -> Option<&'a Harm> {
    before.iter().find(|known| known.kind == harm.kind)
}

/// A first loss needs no test: it is what a filesystem must not do. Where something was lost before, too, it has to be clearly more.
fn harm(
    (baseline, row): (&Analysis<'_>, usize),
    (other, partner): (&Analysis<'_>, usize),
    (before, after): (Vec<Harm>, Vec<Harm>),
    level: f64,
) -> Option<OutcomeChange> {
    let is_worse = |harm: &Harm| known(&before, harm).is_none_or(|known| harm.is_more_than(known, level));
    // Nothing is lost where nothing was tried or looked at.
    let tried: Vec<&Trial> = other.rows[partner].all().collect();
    let completed = tried.iter().any(|trial| trial.outcome.is_completed());
    let not_run = after.is_empty()
        && was_not_run((baseline, row), (other, partner), |trial| !harms_of(baseline, row, &[trial]).is_empty());
    let is_missing = completed && (not_run || before.iter().any(|harm| !is_measured(harm, &tried)));
    let turn = match (before.is_empty(), after.is_empty()) {
        (true, true) => return None,
        _ if after.iter().any(is_worse) => Turn::Worse,
        (false, true) if completed && !is_missing => Turn::Better,
        _ => Turn::Unknown,
    };
    let is_missing = is_missing && turn == Turn::Unknown;
    let words = |analysis: &Analysis<'_>, row: usize, harms: Vec<Harm>| {
        let trials = counted(analysis.rows[row].all().count(), "trial");
        match harms.is_empty() {
            true if is_missing && not_run => {
                format!("nothing lost or damaged in {trials}, without the guest that showed it")
            }
            true if is_missing => format!("losses were not looked for in {trials}"),
            true => format!("nothing lost or damaged in {trials}"),
            false => listing(&harms.into_iter().map(|harm| harm.words).collect::<Vec<_>>()),
        }
    };
    Some(OutcomeChange {
        label: baseline.rows[row].label.clone(),
        baseline: words(baseline, row, before),
        other: words(other, partner, after),
        turn,
        is_harm: true,
        is_missing,
    })
}

/// From none to some, from some to all, or to a worse end: how many out of a few fail is largely chance, and is only told. A run with more
/// or fewer trials ends no differently.
fn turn(before: &Ending, after: &Ending) -> Option<Turn> {
    match ((before.bad, before.completed), (after.bad, after.completed)) {
        ((0, 0), (0, 0)) => None,
        ((0, 0), _) | (_, (0, 0)) => Some(Turn::Unknown),
        ((0, _), (1.., _)) | ((_, 1..), (1.., 0)) => Some(Turn::Worse),
        ((1.., _), (0, _)) | ((1.., 0), (_, 1..)) => Some(Turn::Better),
        _ if after.worst > before.worst => Some(Turn::Worse),
        _ if before.bad * after.completed != after.bad * before.completed => Some(Turn::Unknown),
        _ => None,
    }
}

fn ending(analysis: &Analysis<'_>, index: usize) -> Ending {
    let row = &analysis.rows[index];
    let outcomes: Vec<&Outcome> = row.all().map(|trial| &trial.outcome).collect();
    let bad = outcomes.iter().filter(|outcome| is_bad(outcome)).count();
    let completed = outcomes.iter().filter(|outcome| outcome.is_completed()).count();
    let notes = || {
        let worst =
            |note: &Footnote| outcomes.iter().filter(|end| end.word() == note.word).map(|end| badness(end)).max();
        let mut notes: Vec<&Footnote> =
            analysis.footnotes.iter().filter(|note| row.footnotes.contains(&note.number)).collect();
        notes.sort_by_key(|note| std::cmp::Reverse(worst(note)));
        let trials = |note: &Footnote| note.rows.iter().find(|of| of.row == index).map_or(0, |of| of.trials);
        match notes.as_slice() {
            [] => String::new(),
            [note] => note.sentence(),
            notes => {
                listing(&notes.iter().map(|note| format!("{} {}", trials(note), note.sentence())).collect::<Vec<_>>())
            }
        }
    };
    let trials = counted(outcomes.len(), "trial");
    let words = match (completed, outcomes.len()) {
        (_, 0) => "no trial was run".to_owned(),
        (completed, all) if completed == all => format!("all {trials} completed"),
        (0, _) => format!("no trial completed: {}", notes()),
        (completed, all) => format!("{} of {trials}: {}", all - completed, notes()),
    };
    let worst = outcomes.iter().map(|outcome| badness(outcome)).max().unwrap_or(0);
    Ending { words, bad, completed, worst }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certain_without_a_test_is_a_turn() {
        let ending = |bad, completed, worst| Ending { words: String::new(), bad, completed, worst };
        let turn = |before: (usize, usize), after: (usize, usize)| {
            super::turn(&ending(before.0, before.1, 2), &ending(after.0, after.1, 2))
        };
        assert_eq!(turn((0, 5), (0, 5)), None);
        assert_eq!(turn((0, 5), (1, 4)), Some(Turn::Worse));
        assert_eq!(turn((0, 5), (5, 0)), Some(Turn::Worse));
        assert_eq!(turn((1, 4), (5, 0)), Some(Turn::Worse));
        assert_eq!(turn((1, 4), (2, 3)), Some(Turn::Unknown), "2 of 5 after 1 of 5 may be chance");
        assert_eq!(super::turn(&ending(1, 9, 2), &ending(3, 7, 3)), Some(Turn::Worse), "hung, where one failed");
        assert_eq!(super::turn(&ending(5, 0, 1), &ending(4, 1, 3)), Some(Turn::Better), "one completes");
        assert_eq!(turn((2, 4), (1, 5)), Some(Turn::Unknown));
        for (before, after) in [((0, 4), (0, 5)), ((0, 10), (0, 8)), ((1, 4), (2, 8)), ((5, 0), (6, 0))] {
            assert_eq!(turn(before, after), None, "other numbers of trials, and the same share of failures");
        }
        assert_eq!(turn((5, 0), (5, 0)), None);
        assert_eq!(turn((5, 0), (4, 1)), Some(Turn::Better));
        assert_eq!(turn((1, 4), (0, 5)), Some(Turn::Better));
        assert_eq!(turn((0, 5), (0, 0)), Some(Turn::Unknown));
        assert_eq!(turn((0, 0), (0, 0)), None);
    }
}
