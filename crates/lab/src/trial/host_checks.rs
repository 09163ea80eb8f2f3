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
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{io, panic::resume_unwind, sync::Arc, thread, time::Duration};

const LIMIT: Duration = Duration::from_secs(120);

pub(super) struct HostChecks {
    pub(super) mirror: Mirror,
    filesystem: &'static dyn Filesystem,
    command: CommandLine,
    runner: Arc<dyn CommandRunner>,
    /// Where checks may run. Whoever begins one may be kept to the processor of a guest in virtual time, which it would have to wait for.
    processors: Option<CpuSet>,
}

impl Agents<'_> {
    /// A file for the filesystem's own check; `None` where it has none, or it has to be made in the guest.
    pub(super) fn host_checks(&self, step: &Step) -> Result<Option<HostChecks>, Halt> {
        let filesystem = filesystem::find(&self.job.cell.filesystem.kind);
        let here = |it: &&dyn Filesystem| self.machine.privileged || !it.tools_need_a_guest();
        let Some((filesystem, seat)) = filesystem.filter(here).zip(self.guest.as_ref()) else { return Ok(None) };
        let path = seat.directory().join("state.img");
        let Some(command) = filesystem.fsck(FsckMode::ReadOnly, &path.display().to_string()) else { return Ok(None) };
        // That of an earlier step of this trial.
        let _ = std::fs::remove_file(&path);
        let mirror = Mirror::new(&path).map_err(|error| failed(step, format!("make {}: {error}", path.display())))?;
        let (runner, processors) = (Arc::clone(&self.machine.runner), sched_getaffinity(None).ok());
        Ok(Some(HostChecks { mirror, filesystem, command, runner, processors }))
    }

    pub(super) fn take_state(&self, mirror: &mut Mirror) -> io::Result<bool> {
        let disk = self.guest.as_ref().and_then(GuestSeat::disk).ok_or_else(|| io::Error::other("there is no disk"))?;
        disk.mirror(mirror)
    }
}

/// A check under way. What it reads is not to be changed before its end.
pub(super) struct Checking(thread::JoinHandle<Result<Checked, Halt>>);

impl Checking {
    pub(super) fn end(self) -> Result<Checked, Halt> {
        self.0.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl HostChecks {
    pub(super) fn begin(&self, step: &Step) -> Checking {
        let (filesystem, command, runner) = (self.filesystem, self.command.clone(), Arc::clone(&self.runner));
        let (step, processors) = (step.clone(), self.processors);
        Checking(thread::spawn(move || {
            if let Some(processors) = processors {
                // Where that is refused, the check takes longer.
                let _ = sched_setaffinity(None, &processors);
            }
            check(&step, filesystem, &command, &*runner)
        }))
    }

    pub(super) fn check(&self, step: &Step) -> Result<Checked, Halt> {
        check(step, self.filesystem, &self.command, &*self.runner)
    }
}

fn check(
    step: &Step,
    filesystem: &dyn Filesystem,
    command: &CommandLine,
    runner: &dyn CommandRunner,
) -> Result<Checked, Halt> {
    match runner.run(command, LIMIT) {
        Ok(output) => Ok(Checked::of(filesystem, command, &output)),
        Err(RunError::NotFound { program }) => Err(skipped(&step.name, format!("{program} is not installed"))),
        Err(RunError::Stopped { .. }) => Err(Halt::Stopped(step.name.clone())),
        Err(error) => Err(failed(step, error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{command::SystemRunner, testing};
    use fstone_model::study::StepAction;

    #[test]
    fn a_check_may_run_where_its_beginner_may_not() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let found = place.path().join("found");
        let script = format!("grep Cpus_allowed: /proc/self/status > {}", found.display());
        // In a thread, for others of this process have theirs.
        let begin = move || {
            let processors = sched_getaffinity(None).expect("ours");
            let checks = HostChecks {
                mirror: Mirror::new(&place.path().join("mirror")).expect("ours"),
                filesystem: filesystem::find("ext4").expect("ext4"),
                command: CommandLine::new("sh", ["-c", &script]),
                runner: Arc::new(SystemRunner::new(Arc::default())),
                processors: Some(processors),
            };
            let look = || {
                checks
                    .begin(&testing::step("power-cut", StepAction::Mount))
                    .end()
                    .map_err(|_| "no check")
                    .expect("it ran");
                std::fs::read_to_string(&found).expect("it was written")
            };
            let before = look();
            let first = (0..CpuSet::MAX_CPU).find(|number| processors.is_set(*number)).expect("at least one");
            let mut one = CpuSet::new();
            one.set(first);
            sched_setaffinity(None, &one).expect("fewer than before");
            assert_eq!(look(), before);
        };
        thread::spawn(begin).join().unwrap_or_else(|panic| resume_unwind(panic));
    }
}
