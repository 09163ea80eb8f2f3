//! The agent's part in power cuts: it looks at what one would have left.

use super::{
    calls::{Call, mount_request},
    judge::unclean,
};
use crate::{
    agent::protocol::{KeptPromises, StateCheck, StateReply},
    filesystem::Verdict,
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
        let mut reply = self.mount_state(step, check)?;
        if reply.end.is_some() {
            return Ok(reply);
        }
        let (Some(filesystem), Some(device)) = (self.filesystem, &self.device) else {
            return Err(failed(step, "there is no device".into()));
        };
        if let Some(command) = filesystem.fsck(FsckMode::ReadOnly, &device.argument()) {
            let output = self.run(step, &command, &mut StepReport::default())?;
            reply.clean = Some(matches!(filesystem.verdict(&output), Verdict::Clean));
            if reply.clean == Some(false) && reply.words.is_none() {
                reply.words = Some(unclean(&command, &output));
            }
        }
        Ok(reply)
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
