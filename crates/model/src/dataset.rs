//! What a report is made of: one run with everything that was recorded of it.

use crate::{Inventory, Note, Plan, Trial};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// One run of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The run's number in its store, from 1.
    pub id: u64,
    /// Which run it is, wherever it is kept: a UUID, given when it began. Runs of before there were any have their start
    /// and host in its place.
    #[serde(default)]
    pub identity: String,
    /// When it started, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// When it ended; `None` while it runs, or when it was killed.
    pub finished_unix_ns: Option<u64>,
    /// The command line that started it.
    pub command: Vec<String>,
    /// What was planned.
    pub plan: Plan,
    /// The machine.
    pub inventory: Inventory,
    /// What its user says about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// The blocks that other machines made, in their order; those that are not here were made on [`Run::inventory`]'s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockOrigin>,
}

/// Where a block was made that another machine than the run's own made: whole, and by this machine alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockOrigin {
    /// The block: the repetition of its trials, from 0.
    pub block: u32,
    /// What the machine is called: its name among the nodes of a cluster, or its host's.
    pub machine: String,
    /// The machine, as it was when the block began.
    pub inventory: Inventory,
}

/// The process that carries out a run, known by more than a number that the kernel gives away again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its machine: a digest that identifies the machine and says nothing else about it.
    pub machine: String,
    /// The machine's name, for people.
    pub host: String,
    /// The boot of the machine, by the kernel's random number for it.
    pub boot: String,
    /// The number of the process.
    pub process: u32,
    /// When the process started, in clock ticks after the boot.
    pub started_ticks: u64,
    /// The namespace that the number is of, by the kernel's number for it; 0 when it is not known.
    #[serde(default)]
    pub pid_namespace: u64,
}

/// Longest identity, in bytes: enough for a time and a host's name.
const IDENTITY_BYTES: usize = 300;

impl Run {
    /// Its identity; that of a run of before there were any is the one that every copy of it gets.
    #[must_use]
    pub fn identified(&self) -> String {
        if self.identity.is_empty() {
            format!("{}@{}", self.started_unix_ns, self.inventory.host)
        } else {
            self.identity.clone()
        }
    }

    /// Whether its identity is one line of bounded length.
    #[must_use]
    pub fn has_plain_identity(&self) -> bool {
        is_plain(&self.identity)
    }

    /// Whether each of its blocks is of one machine, and every machine's name one line of bounded length.
    #[must_use]
    pub fn has_plain_blocks(&self) -> bool {
        let mut seen = HashSet::new();
        self.blocks.iter().all(|origin| seen.insert(origin.block) && is_plain(&origin.machine))
    }

    /// Where a block was made; `None` for the run's own machine.
    #[must_use]
    pub fn origin(&self, block: u32) -> Option<&BlockOrigin> {
        self.blocks.iter().find(|origin| origin.block == block)
    }
}

fn is_plain(name: &str) -> bool {
    (1..=IDENTITY_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// A run and its finished trials, in the order they ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The run.
    pub run: Run,
    /// Its finished trials, by position.
    pub trials: Vec<Trial>,
}

impl Dataset {
    /// The finished trials of a cell, in the order they ran.
    pub fn trials_of(&self, cell: u32) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(move |trial| trial.id.cell == cell)
    }

    /// The values of a step's metric over the completed trials of a cell, in the order they ran.
    #[must_use]
    pub fn values(&self, cell: u32, step: &str, metric: &str) -> Vec<f64> {
        self.trials_of(cell)
            .filter(|trial| trial.outcome.is_completed())
            .filter_map(|trial| trial.figure(step, metric))
            .map(|figure| figure.value)
            .collect()
    }
}
