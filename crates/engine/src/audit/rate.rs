//! Whether the rates that groups were to keep were kept.

use super::summary::{DEVIATIONS, Summary};
use fstone_model::load::{Expected, OperationReport};
use fstone_model::workload::{Arrivals, Phase, Stop, ThreadGroup};

/// A rate this far below what was asked for is worth a warning.
const SHORTFALL: f64 = 0.02;

/// Seconds that a group had in a phase of this length.
fn seconds(group: &ThreadGroup, phase_ns: u64) -> f64 {
    (phase_ns as f64 / 1e9 - group.start_delay.as_secs_f64()).max(0.0)
}

/// Whether a group is at work until its phase ends. One that ends before does less, by as much as cannot be told.
fn lasts(phase: &Phase, group: &ThreadGroup) -> bool {
    group.stop == Stop::default() && (phase.groups.len() == 1 || !phase.stop.once_through)
}

/// Fsyncs of the policies of the groups of these names.
fn fsyncs(summary: &Summary<'_>, named: impl Fn(&str) -> bool) -> u64 {
    summary.group_fsyncs.iter().filter(|fsyncs| named(&fsyncs.group)).map(|fsyncs| fsyncs.periodic).sum()
}

fn done(operation: &OperationReport) -> u64 {
    operation.invocations + operation.errors
}

/// Warns of groups that did not reach their rate in operations; fsyncs where they count as operations. Of groups of one name
/// in several phases, each may have had all their fsyncs.
pub(super) fn rates(summary: &Summary<'_>, warnings: &mut Vec<String>) {
    let mut reports = summary.operations.iter();
    for (phase, ns) in summary.workload.measured_phases().zip(summary.phases_ns) {
        for group in &phase.groups {
            let operations: u64 = reports.by_ref().take(group.actions.all().len()).map(done).sum();
            let Some(rate) = group.rate_per_second.filter(|_| lasts(phase, group)) else { continue };
            let reached = (operations + fsyncs(summary, |name| group.fsync.counted && group.name == name)) as f64;
            let seconds = seconds(group, *ns);
            let wanted = rate * seconds;
            // One operation more or less is no finding, nor is what chance may take from random arrivals.
            let chance = if group.arrivals == Arrivals::Poisson { DEVIATIONS * wanted.sqrt() } else { 0.0 };
            if reached + 1.0 + chance < wanted * (1.0 - SHORTFALL) {
                warnings.push(format!(
                    "{}: {:.1} operations per second were reached where {rate:.1} were asked for; latencies count from the \
                     moment an operation should have begun",
                    group.name,
                    reached / seconds
                ));
            }
        }
    }
}

/// Operations per second over all phases, each with the rates of its own groups, if every group has one.
pub(super) fn rate(summary: &Summary<'_>) -> Option<Expected> {
    let total: f64 = summary.phases_ns.iter().map(|ns| *ns as f64 / 1e9).sum();
    let groups: Vec<&ThreadGroup> = summary.workload.measured_phases().flat_map(|phase| &phase.groups).collect();
    if groups.is_empty() || total == 0.0 || groups.iter().any(|group| group.stop != Stop::default()) {
        return None;
    }
    let mut wanted = 0.0;
    for (phase, ns) in summary.workload.measured_phases().zip(summary.phases_ns) {
        for group in &phase.groups {
            wanted += group.rate_per_second? * seconds(group, *ns);
        }
    }
    let fsyncs = fsyncs(summary, |name| groups.iter().any(|group| group.fsync.counted && group.name == name));
    let operations: u64 = summary.operations.iter().map(done).sum();
    Some(Expected { expected: wanted / total, observed: (operations + fsyncs) as f64 / total })
}

/// Warns of groups that did not reach their rate in bytes.
pub(super) fn bandwidth(summary: &Summary<'_>, warnings: &mut Vec<String>) {
    let mut reports = summary.operations.iter();
    for (phase, ns) in summary.workload.measured_phases().zip(summary.phases_ns) {
        for group in &phase.groups {
            let own: Vec<&OperationReport> = reports.by_ref().take(group.actions.all().len()).collect();
            let Some(wanted) = group.bytes_per_second.filter(|_| lasts(phase, group)) else { continue };
            let (seconds, moved) = (seconds(group, *ns), |one: &OperationReport| one.read_bytes + one.written_bytes);
            let bytes: u64 = own.iter().map(|one| moved(one)).sum();
            let largest = own.iter().map(|one| moved(one) / one.invocations.max(1)).max().unwrap_or(0);
            if ((bytes + largest) as f64) < wanted as f64 * seconds * (1.0 - SHORTFALL) {
                warnings.push(format!(
                    "{}: {:.1} MiB per second were reached where {:.1} were asked for; latencies count from the moment an \
                     operation should have begun",
                    group.name,
                    bytes as f64 / seconds / f64::from(1 << 20),
                    wanted as f64 / f64::from(1 << 20)
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Touched;
    use fstone_model::Workload;
    use fstone_model::workload::{
        Action, Actions, DataPattern, ErrorPolicy, FinalSync, IoSettings, Operation, Weighted,
    };
    use std::time::Duration;

    /// Ten seconds of groups that have a rate, or none, and complete so many operations.
    fn told(groups: &[(Option<f64>, u64)], change: impl Fn(&mut Phase)) -> (Option<Expected>, Vec<String>) {
        let action = Action::new("stat", Operation::Stat, Some(0));
        let group = |(number, rate): (usize, Option<f64>)| ThreadGroup {
            rate_per_second: rate,
            ..ThreadGroup::new(
                format!("group{number}"),
                1,
                Actions::Mix(vec![Weighted { weight: 1, action: action.clone() }]),
            )
        };
        let mut phase = Phase {
            name: "main".into(),
            measured: true,
            groups: groups.iter().map(|(rate, _)| *rate).enumerate().map(group).collect(),
            stop: Stop { time: Some(Duration::from_secs(10)), ..Stop::default() },
        };
        change(&mut phase);
        let workload = Workload {
            name: "test".into(),
            filesets: Vec::new(),
            phases: vec![phase],
            io: IoSettings::default(),
            data: DataPattern::default(),
            on_error: ErrorPolicy::Stop,
            final_sync: FinalSync::Syncfs,
            callout: None,
            series_interval: Duration::from_millis(100),
        };
        let report = |(_, invocations): &(_, u64)| OperationReport { invocations: *invocations, ..Default::default() };
        let operations: Vec<OperationReport> = groups.iter().map(report).collect();
        let summary = Summary {
            workload: &workload,
            files: &[],
            touched: &Touched::nothing(0),
            operations: &operations,
            group_fsyncs: &[],
            phases_ns: &[10_000_000_000],
            verified_bytes: 0,
            null_ns_per_operation: None,
        };
        let mut warnings = Vec::new();
        rates(&summary, &mut warnings);
        (rate(&summary), warnings)
    }

    #[test]
    fn each_group_is_held_to_its_own_rate() {
        let as_asked = |_: &mut Phase| {};
        assert_eq!(told(&[(Some(1000.0), 10_000), (Some(5.0), 50), (None, 7)], as_asked), (None, vec![]));
        // Beside a group without a rate, and beside one so large that the small one is lost in its tolerance.
        for other in [(None, 1_000_000), (Some(1000.0), 10_000)] {
            let (sum, warnings) = told(&[other, (Some(5.0), 10)], as_asked);
            let [warning] = &warnings[..] else { panic!("{warnings:?}") };
            assert!(warning.starts_with("group1: 1.0 operations per second were reached where 5.0 were"), "{warning}");
            assert_eq!(sum, other.0.map(|_| Expected { expected: 1005.0, observed: 1001.0 }));
        }
        // Also beside a group with an end of its own, which is not judged itself.
        let (_, warnings) = told(&[(Some(1000.0), 5), (Some(5.0), 10)], |phase| {
            phase.groups[0].stop.operations = Some(5);
        });
        assert!(matches!(&warnings[..], [warning] if warning.starts_with("group1: ")), "{warnings:?}");
        // Whoever is through with its files has nothing left to do at its rate.
        let once = |phase: &mut Phase| phase.stop.once_through = true;
        assert_eq!(told(&[(None, 7), (Some(5.0), 10)], once).1, Vec::<String>::new());
        // One operation, two in a hundred, and what chance takes from random arrivals.
        assert_eq!(told(&[(Some(5.0), 48)], as_asked).1, Vec::<String>::new());
        assert_eq!(told(&[(Some(5.0), 47)], as_asked).1.len(), 1);
        let random = |phase: &mut Phase| phase.groups[0].arrivals = Arrivals::Poisson;
        assert_eq!(told(&[(Some(5.0), 20)], random).1, Vec::<String>::new());
        assert_eq!(told(&[(Some(5.0), 10)], random).1.len(), 1);
    }
}
