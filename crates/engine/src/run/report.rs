//! The report of a load that has ended.

use super::names::names;
use super::running::Running;
use crate::audit::{self, Ran, Summary};
use fstone_model::load::ThreadReport;
use fstone_model::workload::{FinalSync, IoEngineKind, OpenSync, Operation, Phase, ThreadGroup};
use fstone_model::{LoadReport, Workload};
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Running<'_> {
    /// Gives the observer what was done until now, in a measured phase that has run for so long.
    pub(super) fn tell_so_far(&self, elapsed: Duration, threads: Vec<ThreadReport>) {
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let collected =
            self.collector.so_far(&names(self.workload.measured_phases(), &self.measured.at_work), self.interval);
        let mut report = self.report.clone();
        report.elapsed_ns += elapsed_ns;
        report.running_ns += elapsed_ns;
        report.per_thread.extend(threads);
        report.operations = collected.operations;
        report.group_fsyncs = collected.group_fsyncs;
        report.errors.extend(collected.errors);
        self.options.observer.report_so_far(report);
    }

    /// What it did. `null_ns_per_operation` is the engine's own cost, if it was taken.
    pub(super) fn report(self, null_ns_per_operation: Option<f64>) -> LoadReport {
        let groups: Vec<&ThreadGroup> = self.workload.measured_phases().flat_map(|phase| &phase.groups).collect();
        let handed = self.hands_files();
        let collected =
            self.collector.finish(&names(self.workload.measured_phases(), &self.measured.at_work), self.interval);
        let mut report = self.report;
        if report.phases.len() == 1 {
            // It is all of the interval.
            report.phases.clear();
        }
        report.operations = collected.operations;
        report.calls = collected.calls;
        report.group_fsyncs = collected.group_fsyncs;
        report.series = collected.series;
        report.series_interval_ns = collected.series_interval_ns;
        report.series_doublings = collected.series_doublings;
        report.own_series = collected.own_series;
        report.errors.extend(collected.errors);
        report.clock = self.clock.report();
        let own_cost = match self.workload.io.engine {
            IoEngineKind::Null => {
                let operations: u64 = report.operations.iter().map(|one| one.invocations + one.errors).sum();
                (operations > 0).then(|| self.cpu_ns as f64 / operations as f64)
            }
            _ => null_ns_per_operation,
        };
        let ran = self.measured.due_ns.iter().zip(&collected.periodic_fsyncs);
        let ran: Vec<Ran> =
            ran.map(|(worked_ns, fsyncs)| Ran { worked_ns: *worked_ns, periodic_fsyncs: *fsyncs }).collect();
        let (audit, warnings) = audit::judge(&Summary {
            workload: &self.workload,
            files: &self.files,
            touched: &self.touched,
            handed,
            operations: &report.operations,
            groups: &ran,
            phases_ns: &self.measured.phases_ns,
            verified_bytes: self.verified_bytes.load(Ordering::Relaxed),
            null_ns_per_operation: own_cost,
        });
        report.audit = audit;
        if self.workload.io.engine == IoEngineKind::Null {
            // On this engine the cost is the whole latency, and no finding.
            report.audit.overhead_share = None;
        } else {
            report.warnings.extend(warnings);
        }
        let missed: Vec<String> = report
            .operations
            .iter()
            .filter(|one| one.missed > 0)
            .map(|one| {
                let (missed, group, name) = (one.missed, &one.group, &one.name);
                format!(
                    "{group}: {name} found its file gone, in use, or none there, {missed} times, and went on without it"
                )
            })
            .collect();
        report.warnings.extend(missed);
        report.warnings.extend(groups.iter().filter_map(|group| {
            let (depth, why) = (self.workload.io_of(group).queue_depth, self.workload.one_at_a_time(group)?);
            (depth > 1).then(|| format!("{} has one request in flight per thread, and not {depth}: {why}", group.name))
        }));
        let indirect = self.indirect.load(Ordering::Relaxed);
        if indirect > 0 {
            report.warnings.push(format!(
                "{indirect} writes that were not aligned went through the page cache, because O_DIRECT cannot carry them"
            ));
        }
        if !self.workload.data.stamped {
            report.warnings.extend(written_back_later(&self.workload));
        } else {
            report.warnings.push(
                "data is stamped: file sizes are rounded up to 512 bytes, files are written by one thread at a time, and \
                 compressibility and duplicates do not apply; the figures are of a check, not of a benchmark"
                    .into(),
            );
        }
        report
    }
}

/// What a reader has to know of phases that are not made durable, as in the tools whose loads ask for no sync: what one leaves dirty is
/// written back at the cost of the next. Between a measured phase and its own warm-up nothing is to be synced.
fn written_back_later(workload: &Workload) -> Option<String> {
    if workload.final_sync != FinalSync::None || workload.io.engine == IoEngineKind::Null {
        return None;
    }
    let syncs = |group: &ThreadGroup| {
        use Operation::{Fdatasync, Fsync, Syncfs};
        group.actions.all().iter().any(|action| matches!(action.operation, Fsync | Fdatasync | Syncfs))
    };
    let leaves_dirty = |group: &ThreadGroup| {
        let io = workload.io_of(group);
        let written_through = group.fsync.at_end || io.sync != OpenSync::None || syncs(group);
        let dirties = |operation: &Operation| {
            operation.nature().changes() && !(io.direct && matches!(operation, Operation::Write(_)))
        };
        !written_through && group.actions.all().iter().any(|action| dirties(&action.operation))
    };
    let mut dirty: Option<&Phase> = None;
    let warms_up = |before: &Phase, phase: &Phase| {
        !before.measured && before.groups.iter().all(|group| phase.groups.iter().any(|other| other.name == group.name))
    };
    for phase in &workload.phases {
        if phase.groups.iter().all(syncs) {
            dirty = None;
            continue;
        }
        if let Some(before) = dirty.filter(|before| phase.measured && !warms_up(before, phase)) {
            let (one, other) = (&before.name, &phase.name);
            return Some(format!(
                "nothing is synced between phases: what phase {one:?} left dirty may be written back in the time of phase {other:?}, \
                 and is then in the figures of that one"
            ));
        }
        dirty = phase.groups.iter().any(leaves_dirty).then_some(phase);
    }
    None
}
