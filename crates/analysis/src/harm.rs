//! What was lost or damaged, or may have been: it is worth more than any figure.

use crate::{
    number::grouped,
    text::{counted, listing},
};
use fstone_model::{
    Cell, Outcome, Trial,
    metric::catalog,
    outcome::{CORRUPTION, NOT_CHECKED, NOT_CONSISTENT},
    study::StepAction,
};
use fstone_stats::{Sample, compare::permutation_test};

/// The name of the call with which a load checks what it reads against what was written.
const VERIFY: &str = "verify";

/// What a row's trials lost or damaged, or could not show to be whole, to follow the row's name: "lost 118 of 796 promises after a power cut". `None` if nothing.
pub(crate) fn harm(cell: &Cell, trials: &[&Trial]) -> Option<String> {
    let words: Vec<String> = harms(cell, trials).into_iter().map(|harm| harm.words).collect();
    (!words.is_empty()).then(|| listing(&words))
}

/// Whether these trials would show harm of its kind.
pub(crate) fn is_measured(harm: &Harm, trials: &[&Trial]) -> bool {
    let mut figures = trials.iter().flat_map(|trial| &trial.steps).flat_map(|step| &step.figures);
    harm.metric.is_none_or(|metric| figures.any(|figure| figure.metric == metric))
}

/// One kind of it.
pub(crate) struct Harm {
    pub(crate) kind: &'static str,
    pub(crate) words: String,
    /// What shows it, if it is a figure.
    metric: Option<&'static str>,
    /// How much in each trial: promises, points of per cent of the states, or 1 for the trial itself.
    of_trials: Vec<f64>,
}

impl Harm {
    /// Whether it is more than before: in the mean of the trials by a test at this level, or in the worst trial by far. A power cut loses
    /// much or nothing, which few trials hardly show in a mean.
    pub(crate) fn is_more_than(&self, before: &Self, level: f64) -> bool {
        let worst = |of: &Self| of.of_trials.iter().copied().fold(0.0, f64::max);
        let (was, is) = (worst(before), worst(self));
        // More than twice as much, and three standard errors of such counts.
        let by_far = is > 2.0 * was && is - was > 3.0 * (is + was).sqrt();
        let sample = |of: &Self| Sample::new(of.of_trials.clone()).ok();
        let test = sample(before).zip(sample(self)).map(|(was, is)| permutation_test(&was, &is, 0));
        by_far || test.is_some_and(|test| test.difference > 0.0 && test.p <= level)
    }
}

pub(crate) fn harms(cell: &Cell, trials: &[&Trial]) -> Vec<Harm> {
    // Of each trial that has any.
    let figures = |metric: &str| -> Vec<Vec<f64>> {
        let of = |trial: &&Trial| -> Vec<f64> {
            let figures = trial.steps.iter().flat_map(|step| &step.figures);
            figures.filter(|figure| figure.metric == metric).map(|figure| figure.value).collect()
        };
        trials.iter().map(of).filter(|figures| !figures.is_empty()).collect()
    };
    let mut harms = Vec::new();
    let lost: Vec<f64> = figures(catalog::PROMISES_LOST.name).iter().map(|lost| lost.iter().sum()).collect();
    let all: f64 = lost.iter().sum();
    if all > 0.0 {
        let checked: f64 = figures(catalog::PROMISES_CHECKED.name).iter().flatten().sum();
        let promises = |count: f64| counted(count.round() as usize, "promise");
        let told = if checked >= all { format!("{} of {}", grouped(all, 0), promises(checked)) } else { promises(all) };
        let words = format!("lost {told} after a power cut");
        harms.push(Harm { kind: "promises", words, metric: Some(catalog::PROMISES_LOST.name), of_trials: lost });
    }
    for (metric, words) in [
        (catalog::STATES_MOUNTED.name, "could be mounted in only"),
        (catalog::STATES_CLEAN.name, "passed its check in only"),
    ] {
        let least = |shares: &[f64]| shares.iter().copied().fold(100.0, f64::min);
        let of_trials: Vec<f64> = figures(metric).iter().map(|shares| least(shares)).collect();
        if least(&of_trials) < 100.0 {
            // Rounded down: not all is not 100.0 %.
            let percent = grouped((least(&of_trials) * 10.0).floor() / 10.0, 1);
            let of_trials = of_trials.into_iter().map(|share| 100.0 - share).collect();
            let told = format!("{words} {percent} % of the states");
            harms.push(Harm { kind: words, words: told, metric: Some(metric), of_trials });
        }
    }
    let is_check =
        |step: &str| cell.steps.iter().any(|of| of.name == step && matches!(of.action, StepAction::Fsck { .. }));
    // What else fails its step, such as a service that does not stop, says nothing about the data.
    let ended_so = |trial: &Trial, begin: &str| matches!(&trial.outcome, Outcome::Failed(reason) if is_check(&reason.step) && reason.words.starts_with(begin));
    for (words, begin) in [
        ("returned wrong data", None),
        ("failed its check", Some(NOT_CONSISTENT)),
        ("could not be checked", Some(NOT_CHECKED)),
    ] {
        let is_so = |trial: &&Trial| begin.map_or_else(|| has_wrong_data(trial), |begin| ended_so(trial, begin));
        let of_trials: Vec<f64> = trials.iter().map(|trial| f64::from(u8::from(is_so(trial)))).collect();
        let some = trials.iter().filter(|trial| is_so(trial)).count();
        if some > 0 {
            let words_of_all = format!("{words} in {some} of {}", counted(trials.len(), "trial"));
            harms.push(Harm { kind: words, words: words_of_all, metric: None, of_trials });
        }
    }
    harms
}

fn has_wrong_data(trial: &Trial) -> bool {
    let loads = trial.steps.iter().filter_map(|step| step.load.as_deref());
    let found = loads.flat_map(|load| &load.errors).any(|error| error.call == VERIFY);
    found || trial.outcome.reason().is_some_and(|reason| reason.words.contains(CORRUPTION))
}
