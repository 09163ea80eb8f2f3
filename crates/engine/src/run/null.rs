//! The engine's own cost: the same workload where every call succeeds at once.

use super::{Running, as_they_are};
use crate::error::LoadError;
use crate::fileset::Files;
use crate::options::{RunOptions, Unobserved};
use fstone_model::Workload;
use fstone_model::workload::{ErrorPolicy, FinalSync, IoEngineKind};
use std::path::Path;
use std::time::Duration;

/// How long it is measured.
const TIME: Duration = Duration::from_millis(200);
/// Files of the pretended filesets: beyond, more of them cost memory and change nothing.
const MOST_FILES: u64 = 1 << 20;

/// CPU time of the threads per operation, in nanoseconds; `None` when there was no operation.
pub(super) fn cost_per_operation(
    workload: &Workload,
    files: &[Files],
    options: &RunOptions<'_>,
) -> Result<Option<f64>, LoadError> {
    let mut null = workload.clone();
    null.filesets = as_they_are(workload, files, MOST_FILES);
    null.phases.retain(|phase| phase.measured);
    null.io.engine = IoEngineKind::Null;
    null.on_error = ErrorPolicy::Continue;
    null.final_sync = FinalSync::None;
    null.callout = None;
    let share = TIME / u32::try_from(null.phases.len()).unwrap_or(u32::MAX).max(1);
    for phase in &mut null.phases {
        phase.stop.time = Some(phase.stop.time.map_or(share, |time| time.min(share)));
        phase.stop.utilization = None;
        for group in &mut phase.groups {
            group.rate_per_second = None;
            group.think_time = Duration::ZERO;
            group.stop.utilization = None;
        }
    }
    let options = RunOptions { observer: &Unobserved, measure_null: false, ..*options };
    let mut running = Running::new(&null, Path::new("."), &options)?;
    running.phases()?;
    Ok(running.report(None).audit.null_ns_per_operation)
}
