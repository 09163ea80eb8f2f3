//! What a trial gives back: the record that the lab emits, the store keeps and the report reads.

use crate::{LoadReport, Outcome, metric::Figure};
use serde::{Deserialize, Serialize};

/// Which trial: a repetition of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TrialId {
    pub cell: u32,
    /// Which repetition of the cell, from 0. Also the number of its block. From [`Perturbation::FIRST`] on it belongs to no block.
    pub repetition: u32,
}

impl TrialId {
    /// How the guest of this trial differs from that of the cell's first one; `None` for a repetition.
    pub fn perturbation(self) -> Option<Perturbation> {
        let number = self.repetition.checked_sub(Perturbation::FIRST)?;
        (number < Perturbation::MOST).then_some(Perturbation { number })
    }

    /// Its number among those of its cell, for people: "3", "perturbed 1".
    pub fn number(self) -> String {
        match self.perturbation() {
            Some(perturbation) => format!("perturbed {}", perturbation.number + 1),
            None => (u64::from(self.repetition) + 1).to_string(),
        }
    }
}

/// A guest in virtual time that differs from the cell's first one in what should not matter: it has the same seed, some MiB more or less
/// memory, its work begins a little later, and threads of its loads now and then let others go first. What that changes is how far a rebuilt kernel or another tool can move a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Perturbation {
    /// From 0.
    pub number: u32,
}

impl Perturbation {
    /// Their trials are numbered from here, behind all repetitions.
    pub const FIRST: u32 = 1 << 31;
    pub const MOST: u32 = 16;

    pub fn trial(self, cell: u32) -> TrialId {
        TrialId { cell, repetition: Self::FIRST + self.number }
    }

    /// 1 MiB less, 1 MiB more, 2 MiB less, …
    pub const fn memory_bytes(self, of: u64) -> u64 {
        let by = (self.number as u64 / 2 + 1) << 20;
        if self.number.is_multiple_of(2) { of.saturating_sub(by) } else { of + by }
    }

    /// How much later its work begins: by no whole number of the kernel's ticks (10 ms).
    pub const fn delay_ns(self) -> u64 {
        3_700_000 * (self.number as u64 + 1)
    }
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
    /// Of a step that has done nothing yet.
    pub fn begun(step: &str) -> Self {
        Self {
            step: step.to_owned(),
            started_ns: 0,
            duration_ns: 0,
            commands: Vec::new(),
            figures: Vec::new(),
            load: None,
        }
    }

    pub fn figure(&self, metric: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.metric == metric)
    }
}

/// Where a kernel that counts its work tells of it, and the name under which a step's record has its functions, "COUNT NAME" in each line, and
/// below them the tree of calls: ">DEPTH COUNT NAME", each followed by what it called.
pub const KERNEL_WORK: &str = "/proc/kernel_work";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    pub argv: Vec<String>,
    /// Exit status; 128 + n when signal n ended it; `None` when it was the kernel's mount interface.
    pub status: Option<i32>,
    pub duration_ns: u64,
    /// The last lines of what it printed, standard error last; bounded.
    pub output_tail: String,
}
