//! How a thread chooses what to do next.

use super::action::Action;
use super::program::Step;
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
    /// that keeps transfers of buffered files in flight counts them each time it has filled its queue.
    Ratio {
        /// Usually a read.
        first: Action,
        /// Usually a write.
        second: Action,
        /// firsts per second.
        ratio: f64,
    },
    /// Step by step, again and again. Its actions may hold files open for each other.
    Program(Vec<Step>),
}

impl Actions {
    pub fn all(&self) -> Vec<&Action> {
        match self {
            Self::Mix(mix) => mix.iter().map(|weighted| &weighted.action).collect(),
            Self::Sequence(actions) => actions.iter().collect(),
            Self::Ratio { first, second, .. } => vec![first, second],
            Self::Program(steps) => Step::actions(steps),
        }
    }
}

impl Actions {
    pub fn all_mut(&mut self) -> Vec<&mut Action> {
        match self {
            Self::Mix(mix) => mix.iter_mut().map(|weighted| &mut weighted.action).collect(),
            Self::Sequence(actions) => actions.iter_mut().collect(),
            Self::Ratio { first, second, .. } => vec![first, second],
            Self::Program(steps) => Step::actions_mut(steps),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Weighted {
    /// Its share of all operations is weight / sum of weights.
    pub weight: u32,
    pub action: Action,
}
