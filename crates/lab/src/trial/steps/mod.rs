//! The steps of a trial: which function does which.

mod filesystem;
mod warm;
mod work;

pub(super) use warm::Warmth;

use super::{
    record::{Halt, StepReport, failed},
    session::{OnProgress, Session},
};
use fstone_model::{Step, study::StepAction};

impl Session {
    pub(super) fn step(&mut self, step: &Step, progress: OnProgress<'_>, report: &mut StepReport) -> Result<(), Halt> {
        match &step.action {
            StepAction::Mkfs => self.mkfs(step, report),
            StepAction::Mount => self.mount(step, report),
            StepAction::Unmount => self.unmount(step, report),
            StepAction::Remount => self.remount(step, report),
            StepAction::Load(workload) => self.load(step, workload, progress, report),
            StepAction::Command { argv, shell, success } => self.command(step, argv, *shell, success, report),
            StepAction::Sync => {
                let place = self.place(step)?.to_owned();
                let (done, figures) = self.metered(|session| session.machine.mounter.sync(&place));
                report.figures = figures;
                done.map_err(|error| failed(step, format!("sync {}: {error}", place.display())))
            }
            StepAction::DropCaches => self.drop_caches(step, report),
            StepAction::Trim => self.trim(step, report),
            StepAction::Fsck { mode } => self.fsck(step, *mode, report),
            StepAction::Fragmentation => self.fragmentation(step, report),
            StepAction::CopyIn { source, target } => self.copy_in(step, source, target, report),
        }
    }

    /// What is read back after a step, outside its time.
    pub(super) fn after(&mut self, step: &Step) {
        match step.action {
            StepAction::Mkfs => self.read_superblock(),
            StepAction::Mount if self.effective.mount.is_none() => {
                self.effective.mount = self.options_in_force();
            }
            _ => {}
        }
    }
}
