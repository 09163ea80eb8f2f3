//! When the ranks were at each action of a phase.
//!
//! If a rank has one thread that performs a phase's actions one after the other, the latencies before an action say when it began, and
//! those after it when it ended. Time between two operations belongs to no latency. It counts as time of the action that is performed most
//! often, or moves most data if several are performed equally often. That action has the most of it, and no rate over its time is too high.

use fstone_model::load::{OperationReport, Span};
use fstone_model::ranks::ActionSpan;
use fstone_model::workload::{Actions, Phase, Step};
use std::{collections::BTreeMap, ops::Range};

#[derive(Debug, Default)]
pub(crate) struct Spans {
    /// The phases of that kind: its name, its place among the measured phases, and its operations in a report.
    phases: Vec<(String, usize, Range<usize>)>,
    spans: Vec<ActionSpan>,
}

impl Spans {
    pub(crate) fn new<'p>(measured: impl Iterator<Item = &'p Phase>) -> Self {
        let (mut phases, mut first) = (Vec::new(), 0);
        for (place, phase) in measured.enumerate() {
            let actions: usize = phase.groups.iter().map(|group| group.actions.all().len()).sum();
            if one_after_the_other(phase) {
                phases.push((phase.name.clone(), place, first..first + actions));
            }
            first += actions;
        }
        Self { phases, spans: Vec::new() }
    }

    /// Adds a rank. `since_first`: how long after the first rank's begin of a measured phase a moment of its report is.
    pub(crate) fn add(&mut self, rank: u32, operations: &[OperationReport], since_first: impl Fn(usize, u64) -> u64) {
        for (name, place, range) in &self.phases {
            let Some(all) = operations.get(range.clone()) else { continue };
            let took = |all: &[OperationReport]| -> u64 {
                let sum: u128 = all.iter().map(|one| one.latency.sum_ns()).sum();
                u64::try_from(sum).unwrap_or(u64::MAX)
            };
            let weight = |one: &OperationReport| (one.invocations, one.read_bytes.saturating_add(one.written_bytes));
            let often = (0..all.len()).max_by_key(|index| weight(&all[*index])).unwrap_or(0);
            for (index, one) in all.iter().enumerate().filter(|(_, one)| one.invocations > 0) {
                let Some([work, _]) = one.at_work else { continue };
                let [begin, end] = [work.begin_ns, work.end_ns].map(|moment_ns| since_first(*place, moment_ns));
                let after_begin = |index| begin.saturating_add(took(&all[..index])).min(end);
                let before_end = |index| end.saturating_sub(took(&all[index..])).max(begin);
                let begin_ns = if index <= often { after_begin(index) } else { before_end(index) };
                let end_ns = if index < often { after_begin(index + 1) } else { before_end(index + 1) };
                let end_ns = end_ns.max(begin_ns);
                let own = Span { begin_ns, end_ns };
                let same = self.spans.iter_mut().find(|span| span.phase == *name && span.action == one.name);
                match same {
                    Some(all) => {
                        all.ranks += 1;
                        all.span.begin_ns = all.span.begin_ns.min(begin_ns);
                        all.span.end_ns = all.span.end_ns.max(end_ns);
                        all.of_ranks.insert(rank, own);
                    }
                    None => self.spans.push(ActionSpan {
                        phase: name.clone(),
                        action: one.name.clone(),
                        ranks: 1,
                        span: own,
                        of_ranks: BTreeMap::from([(rank, own)]),
                    }),
                }
            }
        }
    }

    pub(crate) fn finish(self) -> Vec<ActionSpan> {
        self.spans
    }
}

/// Whether a single thread goes through all actions of a phase once, each of them in a row.
fn one_after_the_other(phase: &Phase) -> bool {
    let [group] = &*phase.groups else { return false };
    let Actions::Program(steps) = &group.actions else { return false };
    let Some((Step::Finish { .. }, performed)) = steps.split_last() else { return false };
    let mut names: Vec<&str> = group.actions.all().iter().map(|action| action.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    group.threads == 1
        && names.len() == performed.len()
        && performed.iter().all(|step| matches!(step, Step::Perform { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::Histogram;
    use fstone_model::workload::{Action, FinishUnit, Operation, Stop, ThreadGroup};

    const MS: u64 = 1_000_000;

    fn program(actions: &[(&str, u64)]) -> Phase {
        let perform = |(name, times): &(&str, u64)| Step::Perform {
            action: Action::new(*name, Operation::Stat, Some(0)),
            times: *times,
        };
        let finish = Step::Finish { count: 1, unit: FinishUnit::Operations, of: Some("close".into()) };
        let steps = actions.iter().map(perform).chain([finish]).collect();
        Phase::new("write", vec![ThreadGroup::new("write", 1, Actions::Program(steps))], Stop::default())
    }

    /// A rank whose operations took so many milliseconds each, in 1000 ms.
    fn rank(actions: &[(&str, &[u64])]) -> Vec<OperationReport> {
        let one = |(name, latencies): &(&str, &[u64])| OperationReport {
            group: "write".into(),
            name: (*name).into(),
            invocations: latencies.len() as u64,
            latency: Histogram::from_values(&latencies.iter().map(|ms| ms * MS).collect::<Vec<_>>()),
            at_work: Some([Span { begin_ns: 0, end_ns: 1000 * MS }, Span::default()]),
            ..OperationReport::default()
        };
        actions.iter().map(one).collect()
    }

    #[test]
    fn actions_of_ranks_overlap() {
        let phase = program(&[("open", 1), ("write", 3), ("close", 1)]);
        let mut spans = Spans::new([&phase].into_iter());
        // One opens for 600 ms while the other writes already; that one begins 50 ms late, and 30 ms of its time are in no operation.
        spans.add(0, &rank(&[("open", &[600]), ("write", &[100, 100, 100]), ("close", &[100])]), |_, ns| ns);
        spans.add(1, &rank(&[("open", &[10]), ("write", &[300, 300, 300]), ("close", &[60])]), |_, ns| ns + 50 * MS);
        let spans = spans.finish();
        let of_second = spans[1].of_ranks[&1];
        assert_eq!((of_second.begin_ns, of_second.end_ns), (60 * MS, 990 * MS));
        let found: Vec<(String, u32, u64, u64)> = spans
            .into_iter()
            .map(|one| (one.action, one.ranks, one.span.begin_ns / MS, one.span.end_ns / MS))
            .collect();
        let wanted = [("open", 2, 0, 600), ("write", 2, 60, 990), ("close", 2, 900, 1050)];
        assert_eq!(found, wanted.map(|(action, ranks, begin, end)| (action.to_owned(), ranks, begin, end)));
    }

    /// One transfer for each task: as many as opens and closes.
    #[test]
    fn time_between_operations_is_the_transfer_s_also_if_there_is_one() {
        let phase = program(&[("open", 1), ("read", 1), ("close", 1)]);
        let mut reports = rank(&[("open", &[10]), ("read", &[200]), ("close", &[5])]);
        reports[1].read_bytes = 1 << 20;
        let mut spans = Spans::new([&phase].into_iter());
        spans.add(0, &reports, |_, ns| ns);
        let found: Vec<[u64; 2]> =
            spans.finish().iter().map(|one| [one.span.begin_ns / MS, one.span.end_ns / MS]).collect();
        assert_eq!(found, [[0, 10], [10, 995], [995, 1000]]);
    }

    #[test]
    fn what_no_rank_performed_has_no_time() {
        let phase = program(&[("open", 1), ("write", 3), ("close", 1)]);
        let mut spans = Spans::new([&phase].into_iter());
        spans.add(0, &rank(&[("open", &[20]), ("write", &[400, 500]), ("close", &[])]), |_, ns| ns);
        let ends: Vec<u64> = spans.finish().iter().map(|one| one.span.end_ns / MS).collect();
        assert_eq!(ends, [20, 1000]);
    }

    #[test]
    fn loads_that_do_several_things_at_once_have_no_such_times() {
        let once = program(&[("open", 1), ("close", 1)]);
        let mut threads = once.clone();
        threads.groups[0].threads = 2;
        let mut endless = once.clone();
        let Actions::Program(steps) = &mut endless.groups[0].actions else { panic!("a program") };
        steps.pop();
        let twice = program(&[("open", 1), ("open", 1), ("close", 1)]);
        assert!(one_after_the_other(&once));
        assert!([threads, endless, twice].iter().all(|phase| !one_after_the_other(phase)));
    }
}
