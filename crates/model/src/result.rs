//! What a trial gives back: the record that the lab emits, the store keeps and the report reads.

use crate::{LoadReport, Outcome, metric::Figure};
use serde::{Deserialize, Serialize};

/// Which trial: a repetition of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TrialId {
    pub cell: u32,
    /// Which repetition of the cell, from 0. Also the number of its block.
    pub repetition: u32,
}

/// One finished trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")] // `check.rs` has the traits.
pub struct Trial {
    pub id: TrialId,
    /// Its place in the order in which trials really ran, from 0.
    pub position: u32,
    pub started_unix_ns: u64,
    /// How long it took, set-up and tear-down included.
    pub duration_ns: u64,
    pub seed: u64,
    pub outcome: Outcome,
    /// What each step gave, in order; steps after a failing one are absent.
    pub steps: Vec<StepResult>,
    /// The options in force, read back from the kernel and the superblock.
    pub effective: Effective,
    pub warnings: Vec<String>,
}

impl Trial {
    pub fn figure(&self, step: &str, metric: &str) -> Option<&Figure> {
        self.steps.iter().find(|result| result.step == step)?.figure(metric)
    }
}

/// The options in force, as opposed to those asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effective {
    /// Mount options as /proc/self/mountinfo shows them (per mount, then per superblock).
    pub mount: Option<String>,
    /// Superblock facts as (name, value), e.g. ("features", "has_journal extent …").
    pub superblock: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    pub step: String,
    /// When it started, nanoseconds since the trial's start.
    pub started_ns: u64,
    pub duration_ns: u64,
    /// Commands and system calls it made, as a person would type them, with how they ended.
    pub commands: Vec<CommandRecord>,
    pub figures: Vec<Figure>,
    /// The load engine's whole report, for load steps.
    pub load: Option<Box<LoadReport>>,
}

impl StepResult {
    pub fn figure(&self, metric: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.metric == metric)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    pub argv: Vec<String>,
    /// Exit status; 128 + n when signal n ended it; `None` when it was the kernel's mount interface.
    pub status: Option<i32>,
    pub duration_ns: u64,
    /// The last lines of what it printed, standard error last; bounded.
    pub output_tail: String,
}
