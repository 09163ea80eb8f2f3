//! Connects the lab's recorder to the store: a trial is on the disk before the next one starts.

use crate::commands::{now_unix_ns, reaches};
use fstone_lab::{
    place::holder::this_process,
    run::carry_out::{Recorder, RecorderError},
};
use fstone_model::{Trial, dataset::Run, result::TrialId};
use fstone_store::Store;

pub(crate) struct StoreRecorder<'a> {
    store: &'a mut Store,
    run: Recorded<'a>,
    /// What a reader of each trial has to know.
    warning: Option<String>,
}

enum Recorded<'a> {
    /// It is recorded when its first trial starts, so that a run that is refused before leaves nothing.
    NotYet(&'a Run),
    As(u64),
}

impl<'a> StoreRecorder<'a> {
    pub(crate) const fn of_new(store: &'a mut Store, run: &'a Run) -> Self {
        Self { store, run: Recorded::NotYet(run), warning: None }
    }

    pub(crate) const fn of_known(store: &'a mut Store, run: u64, warning: Option<String>) -> Self {
        Self { store, run: Recorded::As(run), warning }
    }

    /// The run's number; `None` while no trial has started.
    pub(crate) const fn run(&self) -> Option<u64> {
        match self.run {
            Recorded::NotYet(_) => None,
            Recorded::As(run) => Some(run),
        }
    }

    fn recorded(&mut self) -> Result<u64, RecorderError> {
        match self.run {
            Recorded::As(run) => Ok(run),
            Recorded::NotYet(new) => {
                let run = self.store.begin_run_of(new, &this_process())?;
                reaches::note_begun(self.store, run, &new.plan).map_err(|failure| failure.error)?;
                self.run = Recorded::As(run);
                Ok(run)
            }
        }
    }
}

impl Recorder for StoreRecorder<'_> {
    fn trial_started(&mut self, id: TrialId, position: u32) -> Result<(), RecorderError> {
        let run = self.recorded()?;
        Ok(self.store.trial_started(run, id, position, now_unix_ns())?)
    }

    fn trial_finished(&mut self, trial: &Trial) -> Result<(), RecorderError> {
        let run = self.recorded()?;
        match &self.warning {
            None => Ok(self.store.record_trial(run, trial)?),
            Some(warning) => {
                let mut trial = trial.clone();
                trial.warnings.push(warning.clone());
                Ok(self.store.record_trial(run, &trial)?)
            }
        }
    }
}
