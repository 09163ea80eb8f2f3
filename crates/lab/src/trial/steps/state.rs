//! The agent's part in power cuts: it looks at what one would have left.

use super::{
    calls::{Call, mount_request},
    judge::Checked,
};
use crate::{
    agent::protocol::{KeptPromises, StateCheck, StateReply},
    filesystem::Filesystem,
    trial::{
        record::{Halt, StepReport, failed},
        session::{Session, forget},
    },
};
use fstone_model::{Outcome, Step, outcome::Reason, study::FsckMode};
use fstone_sandbox::agent::is_exact;
use std::{
    path::Path,
    time::{Duration, Instant},
};

impl Session {
    /// Mounts the state that the disk shows now, looks whether promises were kept, unmounts it and checks it.
    pub(crate) fn look_at_state(&mut self, step: &Step, check: &StateCheck) -> Result<StateReply, Halt> {
        let reply = self.mount_state(step, check)?;
        if reply.end.is_some() {
            return Ok(reply);
        }
        let (Some(filesystem), Some(device)) = (self.filesystem, &self.device) else {
            return Err(failed(step, "there is no device".into()));
        };
        self.check_state(step, filesystem, &device.argument(), reply)
    }

    fn check_state(
        &self,
        step: &Step,
        filesystem: &dyn Filesystem,
        device: &str,
        mut reply: StateReply,
    ) -> Result<StateReply, Halt> {
        match self.check_left(step, filesystem, device) {
            Ok(None) => {}
            Ok(Some(checked)) => {
                reply.clean = checked.clean;
                reply.words = reply.words.or(checked.words);
            }
            // What was found before counts all the same.
            Err(Halt::Outcome(outcome)) => reply.end = Some(outcome),
            Err(halt) => return Err(halt),
        }
        Ok(reply)
    }

    /// Has the filesystem's own check look at what a power cut left; `None` where it has none.
    pub(super) fn check_left(
        &self,
        step: &Step,
        filesystem: &dyn Filesystem,
        device: &str,
    ) -> Result<Option<Checked>, Halt> {
        let Some(command) = filesystem.fsck(FsckMode::ReadOnly, device) else { return Ok(None) };
        let output = self.run(step, &command, &mut StepReport::default())?;
        Ok(Some(Checked::of(filesystem, &command, &output)))
    }

    /// Mounts the state that the disk shows now, looks whether promises were kept, and unmounts it.
    pub(crate) fn mount_state(&mut self, step: &Step, check: &StateCheck) -> Result<StateReply, Halt> {
        let Some(promises) = self.promises.clone() else {
            return Err(failed(step, "no load before it was watched".into()));
        };
        let Some(path) = self.device.as_ref().map(|device| device.path().to_owned()) else {
            return Err(failed(step, "there is no device".into()));
        };
        let mut reply = StateReply::default();
        match self.mount_anew(step, &path)? {
            Ok(time) => {
                reply.mounted = Some(time);
                let kept = promises.witness().look(promises.cut(check.mark), !is_exact());
                let first = kept.first.first().map(|first| {
                    let path = first.path.strip_prefix(&self.place).unwrap_or(&first.path);
                    format!("{} of {}: {}", first.property.name(), path.display(), first.words)
                });
                reply.kept = Some(KeptPromises { checked: kept.checked, broken: kept.broken, first });
                match self.machine.mounter.unmount(&self.place) {
                    Ok(()) => self.mounted = false,
                    // What was found counts all the same.
                    Err(error) => reply.end = Some(Outcome::Failed(Reason::new(&step.name, error.to_string()))),
                }
            }
            Err(words) => reply.words = Some(format!("mount: {words}")),
        }
        Ok(reply)
    }

    /// Mounts what the disk holds now, whatever the kernel knows of it from before, and says how long that took, with the command
    /// that some filesystems need first after a power cut; in words when it cannot be mounted.
    pub(super) fn mount_anew(&mut self, step: &Step, device: &Path) -> Result<Result<Duration, String>, Halt> {
        let Some(filesystem) = self.filesystem else { return Err(failed(step, "there is no filesystem".into())) };
        let recovery = self.device.as_ref().and_then(|device| filesystem.recovery(&device.argument()));
        let request = mount_request(&self.scene(), filesystem);
        drop(self.prepare(&Call::Mount(request.clone()))?);
        forget(device).map_err(|error| failed(step, format!("forget what {} held: {error}", device.display())))?;
        let started = Instant::now();
        if let Some(command) = recovery {
            drop(self.run(step, &command, &mut StepReport::default())?);
        }
        match self.machine.mounter.mount(&request) {
            Ok(()) => {
                self.mounted = true;
                Ok(Ok(started.elapsed()))
            }
            Err(error) => Ok(Err(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{agent::protocol::Opening, command::FakeRunner, filesystem::find, machine::Machine, testing};
    use fstone_model::study::StepAction;
    use std::sync::Arc;

    #[test]
    fn what_was_found_in_a_state_counts_though_its_check_cannot_be_run() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let opening = Opening { promises: true, ..testing::opening(parent.path()) };
        let machine = Machine { runner: Arc::new(FakeRunner::new().without("e2fsck")), ..Machine::fake() };
        let Ok((session, _)) = Session::open(machine, opening) else { panic!("it can be opened") };
        let step = testing::step("power-cut", StepAction::Mount);
        let kept = KeptPromises { checked: 3, broken: 1, first: None };
        let time = Duration::from_millis(1);
        let found = StateReply { mounted: Some(time), kept: Some(kept), ..StateReply::default() };
        let checked = session.check_state(&step, find("ext4").expect("ext4"), "/dev/nowhere", found);
        let Ok(reply) = checked else { panic!("what was found is lost") };
        assert_eq!((reply.mounted, reply.kept.map(|kept| kept.broken), reply.clean), (Some(time), Some(1), None));
        assert!(matches!(reply.end, Some(Outcome::Skipped(_))), "{:?}", reply.end);
    }
}
