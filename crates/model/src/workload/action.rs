//! What threads do: operations on which files, and how the next is chosen.

use super::fileset::SizeDistribution;
use super::operation::Operation;
use serde::{Deserialize, Serialize};

/// How a thread chooses what to do next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "a group has one of them, and nobody copies it while it runs")]
#[serde(rename_all = "kebab-case")]
pub enum Actions {
    /// By weight, drawn for each operation.
    Mix(Vec<Weighted>),
    /// One after the other, again and again.
    Sequence(Vec<Action>),
    /// `first` while (firsts+1)/(seconds+1) < ratio, else `second`, counted over all threads (sysbench rndrw). A thread
    /// that keeps transfers of buffered files in flight counts them whenever it has filled its queue.
    Ratio {
        /// Usually a read.
        first: Action,
        /// Usually a write.
        second: Action,
        /// firsts per second.
        ratio: f64,
    },
}

impl Actions {
    /// All actions there are, in order.
    #[must_use]
    pub fn all(&self) -> Vec<&Action> {
        match self {
            Self::Mix(mix) => mix.iter().map(|weighted| &weighted.action).collect(),
            Self::Sequence(actions) => actions.iter().collect(),
            Self::Ratio { first, second, .. } => vec![first, second],
        }
    }
}

/// An action and its weight in a mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Weighted {
    /// Its share of all operations is weight / sum of weights.
    pub weight: u32,
    /// What is done.
    pub action: Action,
}

/// One kind of operation as a group performs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// What results call it, in the words of the format it came from ("readall").
    pub name: String,
    /// What is done.
    pub operation: Operation,
    /// On which filesets: one, or drawn uniformly from all when `None`.
    pub fileset: Option<u32>,
    /// Which file of the fileset.
    pub choice: FileChoice,
    /// How its transactions are counted.
    pub transactions: TransactionRule,
    /// Sizes of its blocks, each drawn by itself, where they are not alike: [`SizeDistribution::Uniform`], which gives
    /// multiples of the smallest, or [`SizeDistribution::Weighted`]. The operation's block is the largest of them then, and
    /// an operation of the extent of one block moves one that is drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<SizeDistribution>,
}

/// Which file an action works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileChoice {
    /// Any live file, uniformly.
    Uniform,
    /// One after the other, by a cursor that the group's threads share.
    RoundRobin,
    /// The fileset is one concatenated space; the transfer's pattern says where in it (sysbench).
    Concatenated,
    /// The files are dealt out: thread t of n has files t, t+n, t+2n, …
    Partitioned,
    /// The file the same thread's previous action worked on (sequences: create, write, fsync).
    Same,
}

impl Action {
    /// This operation on a file of the fileset, drawn uniformly.
    #[must_use]
    pub fn new(name: impl Into<String>, operation: Operation, fileset: Option<u32>) -> Self {
        Self {
            name: name.into(),
            operation,
            fileset,
            choice: FileChoice::Uniform,
            transactions: TransactionRule::One,
            blocks: None,
        }
    }

    /// Whether the action works on this fileset.
    #[must_use]
    pub fn works_on(&self, fileset: usize) -> bool {
        let is_it = |index: u32| index as usize == fileset;
        self.fileset.is_none_or(is_it) || self.operation.nature().to.is_some_and(is_it)
    }
}

/// How many transactions an operation counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransactionRule {
    /// One.
    One,
    /// Whole blocks moved: ⌊bytes / block⌋; but 1 when something less than a block was moved.
    BlocksFloor,
    /// Blocks begun: ⌈bytes / block⌉.
    BlocksCeil,
}
