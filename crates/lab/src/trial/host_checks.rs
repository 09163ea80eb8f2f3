//! The filesystem's own check of what a power cut left, made on the host: starting a program takes a guest many times as long,
//! and meanwhile the guest can look at the next state. Nothing is mounted: the check reads a file that holds what the guest's disk shows.

use super::{
    agents::Agents,
    record::{Halt, failed, skipped},
    steps::Checked,
};
use crate::{
    agent::GuestSeat,
    command::{CommandLine, CommandRunner, RunError},
    filesystem::{self, Filesystem},
};
use fstone_model::{Step, study::FsckMode};
use fstone_sandbox::power::Mirror;
use std::{sync::Arc, time::Duration};

const LIMIT: Duration = Duration::from_secs(120);

pub(super) struct HostChecks {
    mirror: Mirror,
    filesystem: &'static dyn Filesystem,
    command: CommandLine,
    runner: Arc<dyn CommandRunner>,
}

impl Agents<'_> {
    /// A file for the filesystem's own check; `None` where it has none, or it has to be made in the guest.
    pub(super) fn host_checks(&self, step: &Step) -> Result<Option<HostChecks>, Halt> {
        let filesystem = filesystem::find(&self.job.cell.filesystem.kind);
        let here = |it: &&dyn Filesystem| self.machine.privileged || !it.tools_need_a_guest();
        let Some((filesystem, seat)) = filesystem.filter(here).zip(self.guest.as_ref()) else { return Ok(None) };
        let path = seat.directory().join("state.img");
        let Some(command) = filesystem.fsck(FsckMode::ReadOnly, &path.display().to_string()) else { return Ok(None) };
        let mirror = Mirror::new(&path).map_err(|error| failed(step, format!("make {}: {error}", path.display())))?;
        Ok(Some(HostChecks { mirror, filesystem, command, runner: Arc::clone(&self.machine.runner) }))
    }

    pub(super) fn take_state(&self, step: &Step, checks: &mut HostChecks) -> Result<(), Halt> {
        let Some(disk) = self.guest.as_ref().and_then(GuestSeat::disk) else {
            return Err(failed(step, "there is no disk".into()));
        };
        let taken = disk.mirror(&mut checks.mirror);
        taken.map(drop).map_err(|error| failed(step, format!("write what the disk shows into a file: {error}")))
    }
}

impl HostChecks {
    pub(super) fn check(&self, step: &Step) -> Result<Checked, Halt> {
        let output = match self.runner.run(&self.command, LIMIT) {
            Ok(output) => output,
            Err(RunError::NotFound { program }) => {
                return Err(skipped(&step.name, format!("{program} is not installed")));
            }
            Err(RunError::Stopped { .. }) => return Err(Halt::Stopped(step.name.clone())),
            Err(error) => return Err(failed(step, error.to_string())),
        };
        Ok(Checked::of(self.filesystem, &self.command, &output))
    }
}
