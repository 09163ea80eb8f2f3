//! Whether two copies of a run are the same run, by their content. An identity alone is only a name, which anyone can write.

use super::files::{TrialFile, sha256};
use crate::RecordError;
use fstone_model::dataset::{BlockOrigin, Run};
use fstone_model::result::TrialId;
use fstone_model::{Dataset, Trial};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a run holds, small enough to keep beside another one.
pub(super) struct Summary {
    /// The digest of everything that does not change during a run: plan, machine, command line, start.
    begun: String,
    ended: Option<u64>,
    trials: BTreeMap<TrialId, String>,
}

/// A bundle beside what a store has under the same identity.
pub(super) enum Likeness {
    /// The store has all of it, and maybe more.
    Within,
    /// It has all that the store has, and more.
    Beyond,
    Other(String),
}

impl Summary {
    pub(super) fn of(dataset: Dataset) -> Result<Self, RecordError> {
        let ended = dataset.run.finished_unix_ns;
        // A note is a remark about the run, and no part of it.
        let begun = Run {
            id: 0,
            identity: dataset.run.identified(),
            finished_unix_ns: None,
            note: None,
            blocks: Vec::new(),
            ..dataset.run.clone()
        };
        let begun = digest("the run", &begun)?;
        let trials = dataset.trials.into_iter().map(|trial| {
            let (id, origin) = (trial.id, dataset.run.blocks.iter().find(|origin| origin.block == trial.id.repetition));
            Ok((id, trial_digest(trial, origin)?))
        });
        Ok(Self { begun, ended, trials: trials.collect::<Result<_, RecordError>>()? })
    }

    pub(super) fn trials(&self) -> u64 {
        self.trials.len() as u64
    }

    /// This, a bundle's, beside what the store has.
    pub(super) fn beside(&self, here: &Self) -> Likeness {
        if self.begun != here.begun {
            return Likeness::Other("its plan, machine, command line or start differs".to_owned());
        }
        let differs = self.trials.iter().find(|(id, digest)| here.trials.get(id).is_some_and(|other| other != *digest));
        if let Some((id, _)) = differs {
            return Likeness::Other(format!("repetition {} of cell {} differs", id.repetition, id.cell));
        }
        let only = |one: &Self, other: &Self| one.trials.keys().any(|id| !other.trials.contains_key(id));
        match (only(self, here), only(here, self)) {
            (true, true) => Likeness::Other("each has trials that the other lacks".to_owned()),
            (true, false) => Likeness::Beyond,
            (false, false) if self.ended > here.ended => Likeness::Beyond,
            (false, _) => Likeness::Within,
        }
    }
}

/// The digest of a trial and of where it was made.
pub(super) fn trial_digest(trial: Trial, origin: Option<&BlockOrigin>) -> Result<String, RecordError> {
    let trial = digest("the trial", &TrialFile::new(trial))?;
    match origin {
        None => Ok(trial),
        Some(origin) => Ok(format!("{trial} {}", digest("the machine of a block", origin)?)),
    }
}

fn digest(what: &'static str, value: &impl Serialize) -> Result<String, RecordError> {
    let json = serde_json::to_vec(value).map_err(|error| RecordError::NotJson { what, why: error.to_string() })?;
    Ok(sha256(&json))
}
