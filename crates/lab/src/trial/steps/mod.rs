//! The steps of a trial: which function does which.

mod filesystem;
mod work;

use super::{
    bench::{Bench, StepReport, failed},
    host::Halt,
};
use fstone_model::{Step, study::StepAction};

impl Bench<'_, '_> {
    pub(crate) fn step(&mut self, step: &Step, report: &mut StepReport) -> Result<(), Halt> {
        if self.is_for_guest(step) {
            return self.guest_step(step, report);
        }
        match &step.action {
            StepAction::Mkfs => self.mkfs(step, report),
            StepAction::Mount => {
                let (done, figures) = self.metered(|bench| bench.mount(step, report));
                done?;
                report.figures = figures;
                Ok(())
            }
            StepAction::Unmount => {
                let (done, figures) = self.metered(|bench| bench.unmount(step, report));
                done?;
                report.figures = figures;
                Ok(())
            }
            StepAction::Remount => {
                let (done, figures) = self.metered(|bench| {
                    bench.unmount(step, report)?;
                    let dropped = bench.host.machine.mounter.drop_caches();
                    dropped.map_err(|error| failed(step, format!("drop-caches: {error}")))?;
                    bench.mount(step, report)
                });
                done?;
                report.figures = figures;
                Ok(())
            }
            StepAction::Load(workload) => self.load(step, workload, report),
            StepAction::Command { argv, shell, success } => self.command(step, argv, *shell, success, report),
            StepAction::Sync => {
                let place = self.place(step)?.to_owned();
                let (done, figures) = self.metered(|bench| bench.host.machine.mounter.sync(&place));
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
    pub(crate) fn after(&mut self, step: &Step) {
        match step.action {
            StepAction::Mkfs => self.read_superblock(),
            StepAction::Mount if self.record.effective.mount.is_none() => {
                self.record.effective.mount = self.options_in_force();
            }
            _ => {}
        }
    }
}
