//! What was lost or damaged, or may have been: it is worth more than any figure.

use crate::{
    number::grouped,
    text::{counted, listing},
};
use fstone_model::{
    Cell, Outcome, Trial,
    metric::catalog,
    outcome::{NOT_CHECKED, NOT_CONSISTENT},
    study::StepAction,
};

/// The name of the call with which a load checks what it reads against what was written.
const VERIFY: &str = "verify";

/// What a row's trials lost or damaged, or could not show to be whole, to follow the row's name: "lost 118 of 796 promises after a power cut". `None` if nothing.
pub(crate) fn harm(cell: &Cell, trials: &[&Trial]) -> Option<String> {
    let words: Vec<String> = harms(cell, trials).into_iter().map(|(_, words)| words).collect();
    (!words.is_empty()).then(|| listing(&words))
}

/// The same, one by one, each with its kind.
pub(crate) fn harms(cell: &Cell, trials: &[&Trial]) -> Vec<(&'static str, String)> {
    let figures = |metric: &'static str| {
        let steps = trials.iter().flat_map(|trial| &trial.steps).flat_map(|step| &step.figures);
        steps.filter(move |figure| figure.metric == metric).map(|figure| figure.value)
    };
    let mut parts = Vec::new();
    let lost: f64 = figures(catalog::PROMISES_LOST.name).sum();
    if lost > 0.0 {
        let checked: f64 = figures(catalog::PROMISES_CHECKED.name).sum();
        let of = if checked >= lost { format!(" of {}", grouped(checked, 0)) } else { String::new() };
        parts.push(("promises", format!("lost {}{of} promises after a power cut", grouped(lost, 0))));
    }
    // Rounded down: not all is not 100.0 %.
    let least = |metric: &'static str| figures(metric).min_by(f64::total_cmp).filter(|share| *share < 100.0);
    let percent = |share: f64| format!("{} %", grouped((share * 10.0).floor() / 10.0, 1));
    if let Some(share) = least(catalog::STATES_MOUNTED.name) {
        parts.push(("mounted", format!("could be mounted in only {} of the states", percent(share))));
    }
    if let Some(share) = least(catalog::STATES_CLEAN.name) {
        parts.push(("clean", format!("passed its check in only {} of the states", percent(share))));
    }
    let damaged = trials.iter().filter(|trial| has_wrong_data(trial)).count();
    if damaged > 0 {
        parts.push(("data", format!("returned wrong data in {}", of_trials(damaged, trials))));
    }
    let is_check =
        |step: &str| cell.steps.iter().any(|of| of.name == step && matches!(of.action, StepAction::Fsck { .. }));
    // What else fails its step, such as a service that does not stop, says nothing about the data.
    for (words, begin) in [("failed its check", NOT_CONSISTENT), ("could not be checked", NOT_CHECKED)] {
        let ended_so = |trial: &&&Trial| matches!(&trial.outcome, Outcome::Failed(reason) if is_check(&reason.step) && reason.words.starts_with(begin));
        let trials_so = trials.iter().filter(ended_so).count();
        if trials_so > 0 {
            parts.push((words, format!("{words} in {}", of_trials(trials_so, trials))));
        }
    }
    parts
}

fn has_wrong_data(trial: &Trial) -> bool {
    let loads = trial.steps.iter().filter_map(|step| step.load.as_deref());
    let found = loads.flat_map(|load| &load.errors).any(|error| error.call == VERIFY);
    found || trial.outcome.reason().is_some_and(|reason| reason.words.contains("verify "))
}

fn of_trials(some: usize, all: &[&Trial]) -> String {
    format!("{some} of {}", counted(all.len(), "trial"))
}
