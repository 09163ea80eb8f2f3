//! The engine's own cost: the same workload where every call succeeds at once.

use super::running::Running;
use crate::error::LoadError;
use crate::measure::clock;
use crate::options::{RunOptions, Unobserved};
use fstone_model::Workload;
use fstone_model::workload::{Actions, Arrivals, ErrorPolicy, Fileset, FinalSync, IoEngineKind, Step, Stop};
use std::path::Path;
use std::time::Duration;

const TIME: Duration = Duration::from_millis(200);
/// So many grains of the CPU clock the time has to have: with fewer, the cost would be mostly the grain.
const GRAINS: u64 = 10;
/// CPU time of the threads per operation, in nanoseconds; `None` when there was no operation, nothing is measured, or the
/// kernel counts CPU time in grains too coarse to tell (user-mode Linux: its ticks).
pub(super) fn cost_per_operation(
    workload: &Workload,
    filesets: Option<Vec<Fileset>>,
    options: &RunOptions<'_>,
) -> Result<Option<f64>, LoadError> {
    let Some(filesets) = filesets else { return Ok(None) };
    let mut null = Workload { filesets, ..workload.clone() };
    null.phases.retain(|phase| phase.measured);
    null.io.engine = IoEngineKind::Null;
    null.on_error = ErrorPolicy::Continue;
    null.final_sync = FinalSync::None;
    null.callout = None;
    let share = TIME / u32::try_from(null.phases.len()).unwrap_or(u32::MAX).max(1);
    for phase in &mut null.phases {
        phase.stop.time = Some(phase.stop.time.map_or(share, |time| time.min(share)));
        endless(&mut phase.stop);
        for group in &mut phase.groups {
            group.io.engine = None;
            group.rate_per_second = None;
            group.bytes_per_second = None;
            group.direction_rates = [None; 2];
            group.arrivals = Arrivals::Even;
            group.start_delay = Duration::ZERO;
            group.think_time = Duration::ZERO;
            group.latency_target = None;
            group.continues = false;
            endless(&mut group.stop);
            if let Actions::Program(steps) = &mut group.actions {
                only_operations(steps);
            }
        }
    }
    let options = RunOptions { observer: &Unobserved, measure_null: false, ..*options };
    let mut running = Running::new(&null, Path::new("."), &options)?;
    running.phases()?;
    if running.cpu_ns < GRAINS * clock::thread_cpu_grain_ns() {
        return Ok(None);
    }
    Ok(running.report(None).audit.null_ns_per_operation)
}

/// Counts as before, but never to the end: a thousand operations that do nothing are over too soon to be timed.
fn endless(stop: &mut Stop) {
    stop.wear_out = false;
    for count in [&mut stop.operations, &mut stop.bytes].into_iter().flatten() {
        *count = u64::MAX / 2;
    }
    stop.utilization = None;
    stop.first_done = false;
}

/// Leaves out what ends a thread and what it waits for.
fn only_operations(steps: &mut Vec<Step>) {
    steps.retain(|step| matches!(step, Step::Perform { .. } | Step::Repeat { .. }));
    for step in steps {
        if let Step::Repeat { steps, .. } = step {
            only_operations(steps);
        }
    }
}
