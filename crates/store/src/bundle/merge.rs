//! Merging blocks into a run that other machines made from its plan.
//!
//! The order of a block's trials and their seeds follow from the plan and the block's number, so any machine can make any
//! block. A block is of one machine: rows are compared within blocks, and half a block of each of two machines would
//! compare the machines.

use super::error::MergeError;
use super::files::sha256;
use super::import::Staged;
use super::known::trial_digest;
use crate::trial::EncodedTrial;
use crate::write::insert_block;
use crate::{RecordError, Store};
use fstone_model::dataset::{BlockOrigin, Run};
use fstone_model::{Dataset, Plan};
use rusqlite::{Connection, TransactionBehavior};
use std::collections::BTreeMap;

/// A bundle with blocks, and what messages call it.
pub type Part = (String, Staged);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Merged {
    /// Trials that the run has now and had not.
    pub added: u64,
    /// Trials that it had already, with the same content.
    pub known: u64,
}

/// The SHA-256 of a plan, by which people see whether two are the same.
///
/// # Errors
/// [`RecordError`], when it does not survive as JSON.
pub fn plan_hash(plan: &Plan) -> Result<String, RecordError> {
    serde_json::to_vec(plan)
        .map(|json| sha256(&json))
        .map_err(|error| RecordError::NotJson { what: "the plan", why: error.to_string() })
}

/// Adds the trials of these bundles to a run of the store, in one transaction: all of them are there afterwards, or none.
/// A trial that is there already with the same content is left as it is.
///
/// # Errors
/// [`MergeError`]; the store is as it was then. Among others when a bundle is of another run or plan, or was made with
/// another fstone; when it has a trial that the run has with other content; or trials of a block that another machine began.
pub fn merge(store: &mut Store, run: u64, parts: &[Part]) -> Result<Merged, MergeError> {
    // The store's own connection reads while this one keeps all others from writing.
    let mut writer = Store::open(store.path()).map_err(|error| MergeError::Refused {
        bundle: "the blocks".to_owned(),
        run,
        why: format!("failed to {error}"),
    })?;
    let transaction = writer.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut here = Known::of(store.dataset(run)?)?;
    let mut merged = Merged::default();
    for (name, staged) in parts {
        let refused = |why: String| MergeError::Refused { bundle: name.clone(), run, why };
        let bundle = staged.dataset()?;
        here.is_of(&bundle.run).map_err(refused)?;
        merged = here.take(&transaction, bundle, merged, refused)?;
    }
    transaction.commit()?;
    Ok(merged)
}

struct Known {
    run: Run,
    /// Of each block the digests of its trials, by cell.
    blocks: BTreeMap<u32, BTreeMap<u32, String>>,
}

impl Known {
    fn of(dataset: Dataset) -> Result<Self, RecordError> {
        let mut blocks = BTreeMap::<u32, BTreeMap<u32, String>>::new();
        let Dataset { run, trials } = dataset;
        for trial in trials {
            let (id, origin) = (trial.id, run.origin(trial.id.repetition));
            blocks.entry(id.repetition).or_default().insert(id.cell, trial_digest(trial, origin)?);
        }
        Ok(Self { run, blocks })
    }

    /// Whether a bundle's run is this one; if not, why it is refused.
    fn is_of(&self, other: &Run) -> Result<(), String> {
        let run = &self.run;
        if run.plan != other.plan {
            let hash =
                |plan: &Plan| plan_hash(plan).map_or_else(|_| "no hash".to_owned(), |hash| hash[..12].to_owned());
            return Err(format!(
                "it is of another plan: {} ({}), and the run's is {} ({})",
                other.plan.study,
                hash(&other.plan),
                run.plan.study,
                hash(&run.plan)
            ));
        }
        if run.identified() != other.identified() {
            return Err(format!(
                "it is of another run of the same plan: {}, and this one is {}",
                other.identified(),
                run.identified()
            ));
        }
        Ok(())
    }

    fn take(
        &mut self,
        connection: &Connection,
        bundle: Dataset,
        mut merged: Merged,
        refused: impl Fn(String) -> MergeError,
    ) -> Result<Merged, MergeError> {
        let Dataset { run, trials } = bundle;
        let row = crate::encode::integer("run", self.run.id)?;
        for trial in trials {
            let (id, origin) = (trial.id, run.origin(trial.id.repetition));
            let block = self.blocks.entry(id.repetition).or_default();
            let digest = trial_digest(trial.clone(), origin)?;
            match block.get(&id.cell) {
                Some(known) if *known == digest => {
                    merged.known += 1;
                    continue;
                }
                Some(_) => {
                    return Err(refused(format!(
                        "the run has trial {} of {:?} already, with other content: block {} was made twice",
                        id.repetition + 1,
                        self.run.plan.cells[id.cell as usize].label,
                        id.repetition + 1
                    )));
                }
                None => {}
            }
            let here = self.run.origin(id.repetition);
            if !block.is_empty() && here != origin {
                let of = |origin: Option<&BlockOrigin>| match origin {
                    Some(origin) => format!("{:?}", origin.machine),
                    None => format!("{:?}, where the run was begun", self.run.inventory.host),
                };
                return Err(refused(format!(
                    "block {} of the run was begun on {}, and this part of it is from {}; a block is of one machine, in one go",
                    id.repetition + 1,
                    of(here),
                    of(origin)
                )));
            }
            if block.is_empty() && origin.is_none() && run.inventory != self.run.inventory {
                let why = format!("its run was begun on another machine or at another time, {:?}", run.inventory.host);
                return Err(refused(why));
            }
            if block.is_empty()
                && let Some(origin) = origin
            {
                let (here, there) = (&self.run.inventory, &origin.inventory);
                let version = |machine: &fstone_model::Inventory| {
                    format!("{} ({})", machine.fstone_version, machine.fstone_commit)
                };
                if version(here) != version(there) {
                    return Err(refused(format!(
                        "{:?} made block {} with fstone {}, and the run was begun with {}",
                        origin.machine,
                        origin.block + 1,
                        version(there),
                        version(here)
                    )));
                }
                insert_block(connection, row, origin)?;
                self.run.blocks.push(origin.clone());
            }
            EncodedTrial::new(self.run.id, &trial)?.insert(connection)?;
            block.insert(id.cell, digest);
            merged.added += 1;
        }
        Ok(merged)
    }
}
