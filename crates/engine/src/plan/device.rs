//! What can be done to a block device in place of a file.

use crate::error::LoadError;
use fstone_model::Workload;
use fstone_model::workload::{Amount, Directories, Operation, SizeDistribution};

/// Refuses a workload that needs more than one file of a known size, or does to it what only files can bear.
pub(crate) fn check_device(workload: &Workload) -> Result<(), LoadError> {
    let refuse = |what: String| Err(LoadError::Unsupported { what });
    let [files] = workload.filesets.as_slice() else {
        return refuse(format!("has {} filesets, and a device is one file", workload.filesets.len()));
    };
    let flat = files.directories == Directories::Flat { count: 0, root_too: false };
    if files.amount != Amount::Files(1) || !flat || !matches!(files.size, SizeDistribution::Fixed(1..)) {
        return refuse(format!(
            "has more in fileset {:?} than one file of a fixed size, as a device is one",
            files.name
        ));
    }
    if workload.data.stamped {
        return refuse("stamps its data, and a device has other data as well".into());
    }
    for phase in &workload.phases {
        let stops = phase.groups.iter().map(|group| &group.stop).chain([&phase.stop]);
        if stops.into_iter().any(|stop| stop.utilization.is_some()) {
            return refuse(format!("fills a filesystem in phase {:?}, and a device has none", phase.name));
        }
        for action in phase.groups.iter().flat_map(|group| group.actions.all()) {
            if !works_on_devices(&action.operation) {
                return refuse(format!(
                    "has {:?}, which a device cannot do: it can be read, overwritten, trimmed and synced",
                    action.name
                ));
            }
        }
    }
    Ok(())
}

/// Whether an operation makes sense on a block device. Those that are not named do not.
fn works_on_devices(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Read(_)
            | Operation::Write(_)
            | Operation::MmapRead(_)
            | Operation::Trim(_)
            | Operation::MmapWrite { .. }
            | Operation::OpenClose
            | Operation::Fsync
            | Operation::Fdatasync
            | Operation::Stat
    )
}
