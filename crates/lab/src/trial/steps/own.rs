//! Mounting and unmounting by the commands of a study, and how a trial with them ends.

use super::Made;
use crate::{
    command::{CommandLine, CommandOutput, NOT_FOUND, RunError},
    filesystem::OwnPlaces,
    trial::{
        own::{Mounted, SETTLING, wait},
        record::{Halt, StepReport, failed},
        session::Session,
    },
};
use fstone_model::{
    Outcome, Step,
    outcome::Reason,
    own::{OwnCommand, OwnFilesystem},
};
use std::{io, path::Path, time::Duration};

/// How long an unmount at the end of a trial, and `remove`, may take.
const ENDING: Duration = Duration::from_secs(600);

impl Session {
    pub(super) fn own_places(&self) -> Option<OwnPlaces<'_>> {
        let (definition, ground) = (self.spec.own.as_deref()?, self.own.as_ref()?);
        Some(OwnPlaces { definition, directory: &ground.directory, mounts: &ground.mounts })
    }

    pub(super) fn mount_by(
        &mut self,
        step: &Step,
        command: &CommandLine,
        place: &Path,
        report: &mut StepReport,
    ) -> Result<Made, Halt> {
        let there = |session: &Self| Mounted::at(place, &*session.machine.mounter).ok().flatten();
        if there(self).is_some() {
            return Err(failed(step, format!("something is mounted at {} already", place.display())));
        }
        let output = self.run(step, command, report)?;
        self.judge_own(step, OwnCommand::Mount, &output)?;
        wait(SETTLING, || there(self).is_some());
        let Some(mounted) = there(self) else {
            let words = format!("the mount command succeeded, but nothing is mounted at {}", place.display());
            return Err(failed(step, words));
        };
        if let Some(own) = &mut self.own {
            own.mounted.push(mounted);
        }
        self.mounted = true;
        Ok(Made::Done)
    }

    /// Unmounts what was mounted there, and nothing else.
    pub(super) fn unmount_by(
        &mut self,
        step: &Step,
        command: Option<&CommandLine>,
        place: &Path,
        report: &mut StepReport,
    ) -> Result<Made, Halt> {
        let mounter = std::sync::Arc::clone(&self.machine.mounter);
        let known = self.own.iter().flat_map(|own| &own.mounted).find(|mounted| mounted.place == place).cloned();
        let Some(known) = known else { return Err(failed(step, format!("{} is not mounted", place.display()))) };
        let top = Mounted::at(place, &*mounter).map_err(|error| failed(step, error.to_string()))?;
        if top.as_ref() != Some(&known) {
            let words = format!("{} is not what was mounted there, and is left alone", place.display());
            return Err(failed(step, words));
        }
        match command {
            Some(command) => {
                let output = self.run(step, command, report)?;
                self.judge_own(step, OwnCommand::Unmount, &output)?;
            }
            None => mounter.unmount(place).map_err(|error| failed(step, error.to_string()))?,
        }
        if !wait(SETTLING, || !known.is_there(&*mounter).unwrap_or(true)) {
            let words = format!("the unmount command succeeded, but {} is still mounted", place.display());
            return Err(failed(step, words));
        }
        if let Some(own) = &mut self.own {
            own.mounted.retain(|mounted| *mounted != known);
            self.mounted = !own.mounted.is_empty();
        }
        Ok(Made::Done)
    }

    /// What the end of one of the study's commands means. A program that a script lacks is no fault of the filesystem.
    pub(super) fn judge_own(&self, step: &Step, which: OwnCommand, output: &CommandOutput) -> Result<(), Halt> {
        if output.status == 0 {
            return Ok(());
        }
        let words = format!("`{}`: exit status {}: {}", which.word(), output.status, output.words());
        let reason = Reason::new(&step.name, words);
        let packages = self.spec.own.as_deref().and_then(cure);
        Err(Halt::Outcome(match packages {
            Some(cure) if output.status == NOT_FOUND => Outcome::Skipped(reason.with_cure(cure)),
            _ => Outcome::Failed(reason),
        }))
    }

    /// Ends a trial with a filesystem of the study's own: unmounts, removes, ends the daemons, in this order. `Err` when it is not
    /// unmounted, or `remove` failed; whoever has the journal tries that again once the kernel has ended all of this.
    pub(in crate::trial) fn leave_own(&mut self) -> io::Result<()> {
        // A step may have been stopped.
        self.machine.stop.clear();
        let mounter = std::sync::Arc::clone(&self.machine.mounter);
        let device = self.device.as_ref().and_then(|device| device.path().to_str()).unwrap_or_default().to_owned();
        if let Some(own) = &mut self.own {
            own.take_in_strays(&*mounter)?;
        }
        while let Some(mounted) = self.own.as_ref().and_then(|own| own.mounted.last().cloned()) {
            if mounted.is_there(&*mounter)? {
                self.unmount_at_the_end(&mounted, &device)?;
            }
            if let Some(own) = &mut self.own {
                own.mounted.pop();
            }
        }
        self.mounted = false;
        let remove = self.own_places().and_then(|own| own.command(OwnCommand::Remove, &device, 0));
        if let Some(command) = remove {
            self.remove_by(&command)?;
        }
        let said = self.own.as_ref().and_then(crate::trial::own::OwnGround::end_daemons);
        said.into_iter().for_each(|words| self.warn(words));
        Ok(())
    }

    /// Runs `remove`. If it lacks its program as `make` did, it would never end well, and nothing was made that is its to remove.
    fn remove_by(&mut self, command: &CommandLine) -> io::Result<()> {
        let lacked = self.own.as_ref().is_some_and(|own| own.lacked_its_program);
        let words = match self.machine.runner.run(command, ENDING) {
            Ok(output) if output.status == 0 => return Ok(()),
            Ok(output) => {
                let words = format!("`remove`: exit status {}: {}", output.status, output.words());
                if !lacked || output.status != NOT_FOUND {
                    return Err(io::Error::other(words));
                }
                words
            }
            Err(error @ RunError::NotFound { .. }) if lacked => format!("`remove`: {error}"),
            Err(error) => return Err(io::Error::other(error)),
        };
        self.warn(format!("{words}; `make` lacked its program as well, so nothing was removed"));
        Ok(())
    }

    fn unmount_at_the_end(&self, mounted: &Mounted, device: &str) -> io::Result<()> {
        let mounter = &*self.machine.mounter;
        if Mounted::at(&mounted.place, mounter)?.as_ref() != Some(mounted) {
            let words = format!("something else is mounted over {}", mounted.place.display());
            return Err(io::Error::other(words));
        }
        let own = self.own_places();
        let client = |own: &OwnPlaces<'_>| own.mounts.iter().position(|place| *place == mounted.place).unwrap_or(0);
        if let Some(command) = own.and_then(|own| own.command(OwnCommand::Unmount, device, client(&own))) {
            // Whether it did what it should is seen in the table of mounts.
            match self.machine.runner.run(&command, ENDING) {
                Ok(_) => {}
                Err(error @ RunError::Unkillable { .. }) => return Err(io::Error::other(error)),
                Err(_) => {}
            }
            if wait(SETTLING, || !mounted.is_there(mounter).unwrap_or(true)) {
                return Ok(());
            }
        }
        mounter.unmount(&mounted.place).map_err(io::Error::other)
    }
}

pub(in crate::trial) fn cure(own: &OwnFilesystem) -> Option<String> {
    (!own.packages.is_empty()).then(|| format!("apt-get install {}", own.packages.join(" ")))
}
