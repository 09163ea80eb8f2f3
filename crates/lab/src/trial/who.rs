//! Which agent makes which step.

use crate::filesystem::{self, Filesystem};
use fstone_model::{
    Cell, Step,
    study::{DeviceSpec, KernelSpec, StepAction},
};

pub(crate) const GUEST_DEVICE: &str = "/dev/vda";
/// Where a guest mounts its disk: in memory.
pub(crate) const GUEST_PLACE: &str = "/run/fstone/work/mnt";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whom {
    Host,
    Guest,
}

/// Why a step is left out of a cell's trials; `None` when it is not.
pub(crate) fn left_out(cell: &Cell, step: &Step) -> Option<&'static str> {
    let in_directory = matches!(cell.device, DeviceSpec::Directory { .. });
    (in_directory && !step.action.works_in_a_directory())
        .then_some("left out: fstone does not make, mount or check a directory")
}

/// Who makes a step, given who has the filesystem mounted: what one kernel has mounted, the other's tools must not check, and
/// what is mounted cannot be shown as a power cut would have left it.
pub(crate) fn parts(cell: &Cell, step: &Step, mounted: Option<Whom>) -> Vec<(Whom, Step)> {
    let whom = whom(cell, step);
    let other = mounted.filter(|other| match step.action {
        StepAction::Fsck { .. } => *other != whom,
        StepAction::PowerCut(_) => true,
        StepAction::Mkfs
        | StepAction::Mount
        | StepAction::Load(_)
        | StepAction::Command { .. }
        | StepAction::Service(_)
        | StepAction::Remount
        | StepAction::Unmount
        | StepAction::Sync
        | StepAction::DropCaches
        | StepAction::Trim
        | StepAction::Fragmentation
        | StepAction::CopyIn { .. }
        | StepAction::Age(_) => false,
    });
    let unmount = other.map(|other| (other, Step { action: StepAction::Unmount, ..step.clone() }));
    unmount.into_iter().chain([(whom, step.clone())]).collect()
}

/// In a cell with another kernel its guest makes all but what the host's tools do on the image. A guest in virtual time
/// makes everything, because what the host does takes the host's time. So does one whose power is cut later, once it is up: what the
/// host writes is not in the log of the guest's disk, and no state would have it. A check may write, too, such as when it replays a journal.
pub(crate) fn whom(cell: &Cell, step: &Step) -> Whom {
    let adapter = || filesystem::find(&cell.filesystem.kind);
    match (&cell.kernel, &step.action) {
        (KernelSpec::Host, _) => Whom::Host,
        (KernelSpec::Exact(_), _) => Whom::Guest,
        // It is the first step, before the guest and its log.
        (_, StepAction::Mkfs) if !adapter().is_some_and(Filesystem::tools_need_a_guest) => Whom::Host,
        (_, StepAction::Fsck { .. })
            if !adapter().is_some_and(Filesystem::tools_need_a_guest) && !is_before_a_power_cut(cell, step) =>
        {
            Whom::Host
        }
        _ => Whom::Guest,
    }
}

fn is_before_a_power_cut(cell: &Cell, step: &Step) -> bool {
    let after = cell.steps.iter().skip_while(|other| other.name != step.name);
    after.into_iter().any(|other| matches!(other.action, StepAction::PowerCut(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use fstone_model::study::{DiskTruth, FsckMode, PowerCut};

    #[test]
    fn the_hosts_tools_check_what_nobody_has_mounted() {
        let mut cell = testing::cell(0, "ext4", "", &[]);
        let check = testing::step("fsck", StepAction::Fsck { mode: FsckMode::ReadOnly });
        let who = |cell: &Cell, mounted| {
            let parts = parts(cell, &check, mounted);
            parts.into_iter().map(|(whom, step)| (whom, step.action == StepAction::Unmount)).collect::<Vec<_>>()
        };
        assert_eq!(who(&cell, Some(Whom::Host)), [(Whom::Host, false)]);
        cell.kernel = KernelSpec::Uml("6.1".into());
        assert_eq!(who(&cell, Some(Whom::Guest)), [(Whom::Guest, true), (Whom::Host, false)]);
        assert_eq!(who(&cell, None), [(Whom::Host, false)]);
        cell.filesystem.kind = "btrfs".into();
        assert_eq!(who(&cell, Some(Whom::Guest)), [(Whom::Guest, false)]);
        cell.filesystem.kind = "ext4".into();
        cell.kernel = KernelSpec::Exact("6.1".into());
        assert_eq!(who(&cell, Some(Whom::Guest)), [(Whom::Guest, false)]);
    }

    /// The log of the guest's disk knows nothing of what the host writes.
    #[test]
    fn what_is_checked_before_a_power_cut_is_checked_in_the_guest() {
        let cut = PowerCut { states: 1, log_bytes: 1 << 20, disk: DiskTruth::Sound, sector_bytes: 4096 };
        let steps = [
            // After mkfs and mount.
            testing::step("repair", StepAction::Fsck { mode: FsckMode::Repair }),
            testing::step("look", StepAction::Fsck { mode: FsckMode::ReadOnly }),
            testing::step("power-cut", StepAction::PowerCut(cut)),
            testing::step("fsck", StepAction::Fsck { mode: FsckMode::Repair }),
        ];
        let mut cell = testing::cell(0, "xfs", "", &steps);
        for kernel in [KernelSpec::Uml("6.1".into()), KernelSpec::Qemu("6.1".into())] {
            cell.kernel = kernel;
            let who: Vec<Whom> = cell.steps.iter().map(|step| whom(&cell, step)).collect();
            assert_eq!(who, [Whom::Host, Whom::Guest, Whom::Guest, Whom::Guest, Whom::Guest, Whom::Host],);
        }
    }
}
