//! What is printed of a load of many tasks whichever command line it was: spreads, latencies, and what went wrong.

use fstone_model::{
    load::OperationReport,
    ranks::{PhaseMeeting, RanksReport, Stonewall},
    text,
    when::duration,
};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Warnings and errors that are printed; the JSON has all.
const TOLD: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::loads) enum Deviation {
    /// Of a sample: over one less than there are values, as mdtest has it.
    OfSample,
    /// Of all there is, as IOR has it.
    OfAll,
}

/// Largest, smallest and mean value, and their standard deviation, which of a single value is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::loads) struct Spread {
    pub(in crate::loads) largest: f64,
    pub(in crate::loads) smallest: f64,
    pub(in crate::loads) mean: f64,
    pub(in crate::loads) deviation: f64,
}

impl Spread {
    pub(in crate::loads) fn of(values: &[f64], deviation: Deviation) -> Self {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let over = match deviation {
            Deviation::OfSample => values.len().saturating_sub(1),
            Deviation::OfAll => values.len(),
        };
        Self {
            largest: values.iter().copied().fold(0.0, f64::max),
            smallest: values.iter().copied().fold(f64::INFINITY, f64::min),
            mean,
            deviation: if over > 0 { (squares / over as f64).sqrt() } else { 0.0 },
        }
    }

    pub(in crate::loads) fn json(&self) -> Value {
        let Self { largest, smallest, mean, deviation } = self;
        json!({ "max": largest, "min": smallest, "mean": mean, "standard_deviation": deviation })
    }
}

fn percentile(operation: &OperationReport, percent: f64) -> Option<u64> {
    let ns = operation.latency.has_percentile(percent).then(|| operation.latency.percentile_ns(percent))?;
    ns.map(|ns| ns.round() as u64)
}

/// The median, the 99th percentile and the longest latency, for a table; dashes for what is not known.
pub(in crate::loads) fn latencies(operation: Option<&OperationReport>) -> [String; 3] {
    let told = |ns: Option<u64>| ns.map_or_else(|| "-".into(), duration);
    let percent = |percent| told(operation.and_then(|operation| percentile(operation, percent)));
    [percent(50.0), percent(99.0), told(operation.map(|operation| operation.latency.max_ns()))]
}

/// The same as JSON, nanoseconds.
pub(in crate::loads) fn latencies_json(operation: &OperationReport) -> Value {
    let [p50, p99] = [50.0, 99.0].map(|percent| percentile(operation, percent));
    json!({ "p50": p50, "p99": p99, "max": operation.latency.max_ns() })
}

/// What a phase's figures lack, if not all tasks did all of it. `count` is what they did in it, and `whole` what all are to do, in the same unit;
/// `sync` is the phase that syncs what they did, if there is one.
pub(in crate::loads) fn lacking(
    report: &RanksReport,
    meeting: &PhaseMeeting,
    (count, whole): (u64, u64),
    sync: Option<&str>,
) -> Option<String> {
    let early = report.ranked.ended_early.is_some();
    let sync = sync.map(|name| report.meeting(name));
    let ranks = sync.flatten().map_or(meeting.ranks, |sync| sync.ranks.min(meeting.ranks));
    if ranks < report.ranked.ranks {
        return Some(format!("{ranks} of {} tasks", report.ranked.ranks));
    }
    // A load that ends early ends in the middle of a phase, or between two.
    let is_last = report.ranked.phases.last().is_some_and(|last| last.name == meeting.name);
    let worn_out = meeting.stonewall.is_some_and(|wall| {
        let mut of_ranks = report.of_phase(&meeting.name).map(|phase| phase.operations);
        of_ranks.all(|operations| operations >= wall.most)
    });
    let unfinished = is_last && count != whole && !worn_out;
    (early && (unfinished || sync == Some(None))).then(|| "ended early".into())
}

/// The repetitions that a spread is of, those that lack nothing, or else all; and what stands behind it if others were left out or lack something.
pub(in crate::loads) fn complete<'f, F>(
    figures: impl Iterator<Item = &'f F> + Clone,
    lacking: impl Fn(&F) -> Option<&str>,
) -> (Vec<&'f F>, String) {
    let complete: Vec<&F> = figures.clone().filter(|figure| lacking(figure).is_none()).collect();
    let words: Vec<&str> = figures.clone().filter_map(&lacking).collect();
    match (complete.is_empty(), words.first()) {
        (_, None) => (complete, String::new()),
        (true, Some(words)) => (figures.collect(), format!("  ! {words}")),
        (false, Some(first)) => (complete, format!("  ! without {} that lacked something ({first})", words.len())),
    }
}

/// What stands behind a phase whose tasks were apart.
pub(in crate::loads) const fn mark(meeting: &PhaseMeeting) -> &'static str {
    if meeting.skewed { " !" } else { "" }
}

/// How sure the skews are, and what the mark means where a phase has it.
pub(in crate::loads) fn explain_skews<'m>(out: &mut String, meetings: impl Iterator<Item = &'m PhaseMeeting>) {
    let (mut uncertainty_ns, mut skewed) = (0, false);
    for meeting in meetings {
        uncertainty_ns = meeting.skew_uncertainty_ns().max(uncertainty_ns);
        skewed |= meeting.skewed;
    }
    if uncertainty_ns > 0 {
        let _ = writeln!(out, "   skews ± {}: clocks are compared by round trips", duration(uncertainty_ns));
    }
    if skewed {
        let _ = writeln!(
            out,
            "   ! the tasks started or ended more than 1 % of the phase apart: not all were at work meanwhile"
        );
    }
}

/// How a phase wore out. `done` is what its operations are called.
pub(in crate::loads) fn stonewall(out: &mut String, phase: &str, wall: &Stonewall, done: &str) {
    let Stonewall { operations, fewest, most, length_ns } = wall;
    let length = duration(*length_ns);
    let _ = writeln!(
        out,
        "   {phase}: stonewall after {length}, by then {operations} {done}, {fewest} to {most} a task; then each went on to {most}"
    );
}

/// Why the load ended early, tasks that did not come to their end, errors, and warnings.
pub(in crate::loads) fn outcomes(out: &mut String, report: &RanksReport) {
    if let Some(why) = &report.ranked.ended_early {
        let _ = writeln!(out, "   ended early: {}", text::line(why));
    }
    for rank in report.ranked.per_rank.iter().filter(|rank| rank.outcome.words().is_some()).take(TOLD) {
        let (word, words) = (rank.outcome.word(), text::line(rank.outcome.words().unwrap_or_default()));
        let _ = writeln!(out, "   task {} on {} {word}: {words}", rank.rank, text::line(&rank.host));
    }
    for error in report.load.errors.iter().take(TOLD) {
        let (operation, call, path) = (text::line(&error.operation), &error.call, text::line(&error.path));
        let _ = writeln!(out, "   {} × {operation}: {call} of {path}: {}", error.count, error.text);
    }
    for warning in report.load.warnings.iter().take(TOLD) {
        let _ = writeln!(out, "   warning: {}", text::line(warning));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::ranks::Ranked;

    #[test]
    fn a_spread_has_the_deviation_that_its_program_prints() {
        let of = |values: &[f64], deviation| {
            let Spread { largest, smallest, mean, deviation } = Spread::of(values, deviation);
            [largest, smallest, mean, deviation]
        };
        assert_eq!(of(&[1.0, 3.0], Deviation::OfAll), [3.0, 1.0, 2.0, 1.0]);
        assert_eq!(of(&[1.0, 3.0], Deviation::OfSample), [3.0, 1.0, 2.0, 2.0_f64.sqrt()]);
        for deviation in [Deviation::OfAll, Deviation::OfSample] {
            assert_eq!(of(&[7.0], deviation), [7.0, 7.0, 7.0, 0.0]);
        }
    }

    #[test]
    fn what_a_part_of_the_tasks_did_is_marked() {
        let meeting = |name: &str, ranks| PhaseMeeting { name: name.into(), ranks, ..PhaseMeeting::default() };
        let ranked = Ranked { ranks: 2, phases: vec![meeting("a", 2), meeting("b", 1)], ..Ranked::default() };
        let mut report = RanksReport { ranked, ..RanksReport::default() };
        let words = |report: &RanksReport, done, sync| -> Vec<Option<String>> {
            report.ranked.phases.iter().map(|phase| lacking(report, phase, (done, 20), sync)).collect()
        };
        let early = Some("ended early".to_owned());
        assert_eq!(words(&report, 20, None), [None, Some("1 of 2 tasks".into())]);
        assert_eq!(words(&report, 20, Some("b"))[0].as_deref(), Some("1 of 2 tasks"), "one task synced nothing");
        report.ranked.phases[1].ranks = 2;
        assert_eq!(words(&report, 19, None), [None, None], "errors are counted elsewhere");
        report.ranked.ended_early = Some("a task hung".into());
        assert_eq!(words(&report, 19, None), [None, early.clone()]);
        assert_eq!(words(&report, 20, None), [None, None], "it ended behind this phase");
        assert_eq!(words(&report, 20, Some("never begun")), [early.clone(), early]);

        let of = |figures: &[Option<&'static str>]| {
            let (taken, mark) = complete(figures.iter(), |figure| *figure);
            (taken.len(), mark)
        };
        assert_eq!(of(&[None, None]), (2, String::new()));
        assert_eq!(of(&[None, Some("1 of 2 tasks")]), (1, "  ! without 1 that lacked something (1 of 2 tasks)".into()));
        assert_eq!(of(&[Some("1 of 2 tasks")]), (1, "  ! 1 of 2 tasks".into()));
    }
}
