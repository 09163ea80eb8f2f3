//! What a report is made of: one run with everything that was recorded of it.

use crate::{Inventory, Note, Plan, Trial};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// One run of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The run's number in its store, from 1.
    pub id: u64,
    /// Identifies the run wherever it is kept: a UUID, assigned when it began. Runs from before there were UUIDs have their start
    /// time and host instead.
    #[serde(default)]
    pub identity: String,
    pub started_unix_ns: u64,
    /// When it ended; `None` while it runs, or when it was killed.
    pub finished_unix_ns: Option<u64>,
    pub command: Vec<String>,
    pub plan: Plan,
    pub inventory: Inventory,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// The blocks that other machines made, in their order; those that are not here were made on [`Run::inventory`]'s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockOrigin>,
}

/// Where a block was run, if not on the run's own machine. One machine runs the whole block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockOrigin {
    /// The block: the repetition of its trials, from 0.
    pub block: u32,
    /// The machine's name among the nodes of a cluster, or its host name.
    pub machine: String,
    /// The machine, as it was when the block began.
    pub inventory: Inventory,
}

/// The process that carries out a run, identified by more than its number, which the kernel may reuse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its machine, as a digest that reveals nothing else about it.
    pub machine: String,
    pub host: String,
    /// The boot of the machine, by the kernel's random number for it.
    pub boot: String,
    pub process: u32,
    /// When the process started, in clock ticks after the boot.
    pub started_ticks: u64,
    /// The pid namespace of that number, by the kernel's number for it; 0 if unknown.
    #[serde(default)]
    pub pid_namespace: u64,
}

/// Longest identity, in bytes: enough for a time and a host's name.
const IDENTITY_BYTES: usize = 300;

impl Run {
    /// What the identity of a run begins with of which only what reveals nothing about its machine and user was kept.
    pub const ANONYMOUS: &str = "anonymous-";

    /// Whether it is such a run. It has neither its command line nor, unless it came with fstone, its study file.
    pub fn is_anonymous(&self) -> bool {
        self.identity.starts_with(Self::ANONYMOUS)
    }

    /// Its identity. A run from before there were UUIDs gets one that is the same in every copy.
    pub fn identified(&self) -> String {
        if self.identity.is_empty() {
            format!("{}@{}", self.started_unix_ns, self.inventory.host)
        } else {
            self.identity.clone()
        }
    }

    /// Whether its identity is one line of bounded length.
    pub fn has_plain_identity(&self) -> bool {
        is_plain(&self.identity)
    }

    /// Whether each block comes from one machine, and each machine's name is one line of bounded length.
    pub fn has_plain_blocks(&self) -> bool {
        let mut seen = HashSet::new();
        self.blocks.iter().all(|origin| seen.insert(origin.block) && is_plain(&origin.machine))
    }

    /// The kernel that figures belong to: "Linux 6.1.0", or in virtual time "exact:6.1.192", whatever the machine has.
    pub fn kernel(&self) -> String {
        let mut names: Vec<String> = self.plan.cells.iter().map(|cell| cell.kernel.written()).collect();
        names.dedup();
        if !names.is_empty() && self.plan.cells.iter().all(|cell| cell.kernel.is_exact()) {
            return crate::text::line(&names.join(", "));
        }
        crate::text::line(&self.inventory.kernel).split(' ').take(2).collect::<Vec<_>>().join(" ")
    }

    /// Where a block was made; `None` for the run's own machine.
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
    pub run: Run,
    pub trials: Vec<Trial>,
}

impl Dataset {
    pub fn trials_of(&self, cell: u32) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(move |trial| trial.id.cell == cell)
    }

    /// The values of a step's metric over the completed trials of a cell, in the order they ran.
    pub fn values(&self, cell: u32, step: &str, metric: &str) -> Vec<f64> {
        self.trials_of(cell)
            .filter(|trial| trial.outcome.is_completed())
            .filter_map(|trial| trial.figure(step, metric))
            .map(|figure| figure.value)
            .collect()
    }
}
