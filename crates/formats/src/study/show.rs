//! The columns of the table: which metrics a step has, and what stands above them.

use crate::{
    decode::At,
    diagnostic::{Diagnostic, Report, Span, closest},
};
use fstone_model::{
    Workload,
    metric::{Metric, catalog},
    study::{Column, StepAction},
};

/// Metrics of every step.
const OF_ALL: &[Metric] = &[
    catalog::TIME,
    catalog::CPU,
    catalog::CPU_USER,
    catalog::CPU_SYSTEM,
    catalog::CPU_IOWAIT,
    catalog::CPU_IRQ,
    catalog::CPU_STEAL,
    catalog::KERNEL_THREADS_CPU,
    catalog::DEVICE_READ_BYTES,
    catalog::DEVICE_WRITTEN_BYTES,
    catalog::DEVICE_READS,
    catalog::DEVICE_WRITES,
    catalog::DEVICE_FLUSHES,
    catalog::DEVICE_DISCARDS,
    catalog::DEVICE_DISCARDED_BYTES,
    catalog::PEAK_DIRTY_BYTES,
];

const OF_LOADS: &[Metric] = &[
    catalog::PROCESS_CPU,
    catalog::TRANSACTIONS_PER_SECOND,
    catalog::OPERATIONS_PER_SECOND,
    catalog::OPERATIONS,
    catalog::THROUGHPUT,
    catalog::READ_THROUGHPUT,
    catalog::WRITE_THROUGHPUT,
    catalog::EXECUTION_TIME,
    catalog::SYNC_TIME,
    catalog::SETUP_TIME,
    catalog::READ_LATENCY_P50,
    catalog::READ_LATENCY_P99,
    catalog::WRITE_LATENCY_P50,
    catalog::WRITE_LATENCY_P99,
    catalog::ENGINE_COST,
    catalog::WRITE_AMPLIFICATION,
];

const OF_COMMANDS: &[Metric] = &[catalog::PROCESS_CPU, catalog::EXIT_STATUS, catalog::MAXIMUM_RESIDENT_BYTES];

const OF_CHECKS: &[Metric] = &[
    catalog::FSCK_FILES_USED,
    catalog::FSCK_FILES_TOTAL,
    catalog::FSCK_NON_CONTIGUOUS,
    catalog::FSCK_BLOCKS_USED,
    catalog::FSCK_BLOCKS_TOTAL,
];

const OF_FRAGMENTATION: &[Metric] = &[catalog::EXTENTS_PER_FILE, catalog::FRAGMENTED_FILES];

/// What can be told of an operation's latency.
const LATENCIES: [&str; 2] = ["p50", "p99"];

/// Names of the latency metrics of a load's operations: "create latency p99".
#[must_use]
pub fn latency_metrics(workload: &Workload) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let groups = workload.measured_phases().flat_map(|phase| &phase.groups);
    for action in groups.flat_map(|group| group.actions.all()) {
        if !names.contains(&action.name) {
            names.push(action.name.clone());
        }
    }
    names.iter().flat_map(|name| LATENCIES.map(|latency| format!("{name} latency {latency}"))).collect()
}

fn metrics_of(action: &StepAction) -> Vec<String> {
    let own: &[Metric] = match action {
        StepAction::Load(_) => OF_LOADS,
        StepAction::Command { .. } | StepAction::CopyIn { .. } => OF_COMMANDS,
        StepAction::Fsck { .. } => OF_CHECKS,
        StepAction::Fragmentation => OF_FRAGMENTATION,
        _ => &[],
    };
    let status: &[Metric] = if matches!(action, StepAction::Fsck { .. }) { &[catalog::EXIT_STATUS] } else { &[] };
    let own = [own, status].concat();
    let mut names: Vec<String> = own.iter().chain(OF_ALL).map(|metric| metric.name.to_owned()).collect();
    if let StepAction::Load(workload) = action {
        let further = latency_metrics(workload).into_iter().filter(|name| !names.contains(name));
        names.extend(further.collect::<Vec<_>>());
    }
    names
}

/// A metric that a step shows.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) step: String,
    pub(super) metric: String,
    /// Whether it is a load's.
    pub(super) is_load: bool,
    /// Whether no other kind of step has it.
    pub(super) is_special: bool,
    pub(super) span: Span,
}

/// Checks what a step is to show.
pub(super) fn shown(step: &str, action: &StepAction, names: &[At<String>], report: &mut Report) -> Vec<Shown> {
    let known = if names.is_empty() { Vec::new() } else { metrics_of(action) };
    for At { span, value } in names.iter().filter(|name| !known.contains(&name.value)) {
        let what = match action {
            StepAction::Load(_) => "a load".to_owned(),
            action => format!("`{}`", action.kind()),
        };
        let note = format!("{what} has {}", known.join(", "));
        report.push(if catalog::find(value).is_some() {
            Diagnostic::error(*span, format!("{what} has no metric `{value}`"))
                .label("another kind of step has it")
                .note(note)
        } else {
            let diagnostic = Diagnostic::error(*span, format!("unknown metric `{value}`")).label("no such metric");
            match closest(value, known.iter().map(String::as_str)) {
                Some(metric) => diagnostic.help(format!("did you mean `{metric}`?")),
                None => diagnostic.note(note),
            }
        });
    }
    let shown = |At { span, value }: &At<String>| Shown {
        step: step.to_owned(),
        metric: value.clone(),
        is_load: matches!(action, StepAction::Load(_)),
        is_special: [OF_CHECKS, OF_FRAGMENTATION].concat().iter().any(|metric| metric.name == value),
        span: *span,
    };
    names.iter().filter(|name| known.contains(&name.value)).map(shown).collect()
}

/// The table's columns. Metrics of the only load that shows any, and one that only a check or a count of extents has and
/// only one step shows, are called by their own names; everything else has its step's name before it: "fsck time".
pub(super) fn columns(shown: &[Shown], report: &mut Report) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for Shown { step, metric, is_load, is_special, span } in shown {
        let others = || shown.iter().filter(|other| other.step != *step);
        let is_plain = (*is_load && !others().any(|other| other.is_load))
            || (*is_special && !others().any(|other| other.metric == *metric));
        let header = if is_plain { metric.clone() } else { format!("{step} {metric}") };
        if columns.iter().any(|column| column.header == header) {
            report
                .push(Diagnostic::error(*span, format!("`{header}` is shown already")).label("the same column again"));
        }
        columns.push(Column { header, step: step.clone(), metric: metric.clone() });
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_of_the_catalog_can_be_shown_by_some_step() {
        // What a guest costs belongs to no step of a study; it is in the CSV and JSON.
        let of_guests = [catalog::BOOT_TIME, catalog::TRIAL_OVERHEAD];
        let groups = [OF_ALL, OF_LOADS, OF_COMMANDS, OF_CHECKS, OF_FRAGMENTATION, &of_guests].concat();
        for metric in catalog::ALL {
            assert!(groups.contains(metric), "{}", metric.name);
        }
    }
}
