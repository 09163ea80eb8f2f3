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
        session::Session,
    },
};
use fstone_model::{Step, study::FsckMode};
use std::{fs::File, path::Path, time::Instant};

impl Session {
    /// Mounts the state that the disk shows now, looks whether promises were kept, unmounts it and checks it.
    pub(crate) fn look_at_state(&mut self, step: &Step, check: &StateCheck) -> Result<StateReply, Halt> {
        let Some(promises) = self.promises.clone() else {
            return Err(failed(step, "no load before it was watched".into()));
        };
        let (Some(filesystem), Some(device)) = (self.filesystem, &self.device) else {
            return Err(failed(step, "there is no device".into()));
        };
        let (path, argument) = (device.path().to_owned(), device.argument());
        let request = mount_request(&self.scene(), filesystem);
        drop(self.prepare(&Call::Mount(request.clone()))?);
        forget(&path).map_err(|error| failed(step, format!("forget what {} held: {error}", path.display())))?;
        let mut reply = StateReply::default();
        let started = Instant::now();
        match self.machine.mounter.mount(&request) {
            Ok(()) => {
                reply.mounted = Some(started.elapsed());
                self.mounted = true;
                let kept = promises.witness().look(promises.moment(check.mark));
                let first = kept.first.first().map(|first| {
                    let path = first.path.strip_prefix(&self.place).unwrap_or(&first.path);
                    format!("{} of {}: {}", first.property.name(), path.display(), first.words)
                });
                reply.kept = Some(KeptPromises { checked: kept.checked, broken: kept.broken, first });
                self.machine.mounter.unmount(&self.place).map_err(|error| failed(step, error.to_string()))?;
                self.mounted = false;
            }
            Err(error) => reply.words = Some(format!("mount: {error}")),
        }
        if let Some(command) = filesystem.fsck(FsckMode::ReadOnly, &argument) {
            let output = self.run(step, &command, &mut StepReport::default())?;
            reply.clean = Some(matches!(filesystem.verdict(&output), Verdict::Clean));
            if reply.clean == Some(false) && reply.words.is_none() {
                reply.words = Some(unclean(&command, &output));
            }
        }
        Ok(reply)
    }
}

/// Has the kernel forget what it holds of a device that is not what it was.
pub(super) fn forget(device: &Path) -> std::io::Result<()> {
    let file = File::open(device)?;
    fstone_sandbox::agent::flush_buffers(&file)
}
