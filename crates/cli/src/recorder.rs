//! Joins the lab's recorder to the store: a trial is on the disk before the next one starts.

use crate::commands::now_unix_ns;
use fstone_lab::run::carry_out::{Recorder, RecorderError};
use fstone_model::{Trial, result::TrialId};
use fstone_store::Store;

/// Records the trials of one run.
pub(crate) struct StoreRecorder<'a> {
    pub(crate) store: &'a mut Store,
    pub(crate) run: u64,
    /// What a reader of each trial has to know.
    pub(crate) warning: Option<String>,
}

impl Recorder for StoreRecorder<'_> {
    fn trial_started(&mut self, id: TrialId, position: u32) -> Result<(), RecorderError> {
        Ok(self.store.trial_started(self.run, id, position, now_unix_ns())?)
    }

    fn trial_finished(&mut self, trial: &Trial) -> Result<(), RecorderError> {
        match &self.warning {
            None => Ok(self.store.record_trial(self.run, trial)?),
            Some(warning) => {
                let mut trial = trial.clone();
                trial.warnings.push(warning.clone());
                Ok(self.store.record_trial(self.run, &trial)?)
            }
        }
    }
}
