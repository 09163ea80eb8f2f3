//! Whether the rates that groups were to keep were kept.

use super::summary::{DEVIATIONS, Summary};
use fstone_model::load::{Expected, GroupFsyncs, OperationReport};
use fstone_model::workload::{Arrivals, Stop, ThreadGroup};

/// A rate this far below what was asked for is worth a warning.
const SHORTFALL: f64 = 0.02;

/// Seconds that a group had in a phase of this length.
fn seconds(group: &ThreadGroup, phase_ns: u64) -> f64 {
    (phase_ns as f64 / 1e9 - group.start_delay.as_secs_f64()).max(0.0)
}

/// Operations per second over all phases, each with the rates of its own groups; fsyncs where they count as operations.
pub(super) fn rate(summary: &Summary<'_>, warnings: &mut Vec<String>) -> Option<Expected> {
    let total: f64 = summary.phases_ns.iter().map(|ns| *ns as f64 / 1e9).sum();
    let groups: Vec<&ThreadGroup> = summary.workload.measured_phases().flat_map(|phase| &phase.groups).collect();
    // A group that ends before its phase does less, by as much as cannot be told.
    if groups.is_empty() || total == 0.0 || groups.iter().any(|group| group.stop != Stop::default()) {
        return None;
    }
    let (mut wanted, mut variance) = (0.0, 0.0);
    for (phase, ns) in summary.workload.measured_phases().zip(summary.phases_ns) {
        for group in &phase.groups {
            let operations = group.rate_per_second? * seconds(group, *ns);
            wanted += operations;
            variance += if group.arrivals == Arrivals::Poisson { operations } else { 0.0 };
        }
    }
    let counted = |fsyncs: &&GroupFsyncs| groups.iter().any(|group| group.name == fsyncs.group && group.fsync.counted);
    let fsyncs: u64 = summary.group_fsyncs.iter().filter(counted).map(|fsyncs| fsyncs.periodic).sum();
    let operations: u64 = summary.operations.iter().map(|operation| operation.invocations + operation.errors).sum();
    let (expected, observed) = (wanted / total, (operations + fsyncs) as f64 / total);
    // One operation more or less is no finding, nor is what chance may take from random arrivals.
    let granted = (1.0 + DEVIATIONS * variance.sqrt()) / total;
    if observed + granted < expected * (1.0 - SHORTFALL) {
        warnings.push(format!(
            "{observed:.0} operations per second were reached where {expected:.0} were asked for; latencies count from \
             the moment an operation should have begun"
        ));
    }
    Some(Expected { expected, observed })
}

/// Warns of groups that did not reach their rate in bytes.
pub(super) fn bandwidth(summary: &Summary<'_>, warnings: &mut Vec<String>) {
    let mut reports = summary.operations.iter();
    for (phase, ns) in summary.workload.measured_phases().zip(summary.phases_ns) {
        for group in &phase.groups {
            let own: Vec<&OperationReport> = reports.by_ref().take(group.actions.all().len()).collect();
            let Some(wanted) = group.bytes_per_second.filter(|_| group.stop == Stop::default()) else { continue };
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
