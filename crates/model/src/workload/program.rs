//! Programs: the steps of a thread whose actions hold files open for each other.
//!
//! In a mix or a sequence, every action finds its own file. In a program, an action may leave a file open in one of the
//! thread's *handles*, by a number, and later actions work on what is open there. Between actions there are steps that are no
//! operations of the load: they end the thread, hold it back, or wait for another.

use super::action::Action;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const MAXIMUM_HANDLES: u32 = 128;
pub const MAXIMUM_STEPS: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "a program has a few, and nobody copies them while it runs")]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    Perform {
        action: Action,
        times: u64,
    },
    Repeat {
        times: u64,
        steps: Vec<Self>,
    },
    /// The thread ends if this much has been done since the start of the phase.
    Finish {
        count: u64,
        unit: FinishUnit,
        /// Counts what the thread itself has done in the actions of this name or, without a name, what all threads of the group, or of its process, have done in all actions.
        of: Option<String>,
    },
    /// The thread waits until there have been as many events as it has used. All such steps of a phase share the events.
    Pace {
        per_second: f64,
        unit: PaceUnit,
        /// Only what the actions of this name did.
        of: Option<String>,
    },
    Pause(Duration),
    /// The thread writes to memory this many times.
    Spin(u64),
    /// The thread waits until so many posts have come, and takes them.
    Wait {
        /// The name that posts use. Every thread that goes through this step has its own posts.
        name: String,
        posts: u64,
        /// How many posts may be pending before bounded posts wait.
        ahead: Option<u64>,
        /// Whether posts that come before they are waited for count as one (a wakeup rather than a semaphore).
        once: bool,
    },
    /// Posts to every thread that has a [`Self::Wait`] of this name.
    Post {
        to: String,
        posts: u64,
        /// Whether to wait while too many posts are pending.
        bounded: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishUnit {
    /// So many operations, or more.
    Operations,
    /// More than so many bytes.
    Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaceUnit {
    /// Going through the step once.
    Rounds,
    /// An operation of the thread's since the last time.
    Operations,
    /// One that read or wrote.
    Transfers,
    /// A mebibyte read or written.
    Mebibytes,
}

impl Step {
    pub fn actions(steps: &[Self]) -> Vec<&Action> {
        let mut found = Vec::new();
        for step in steps {
            match step {
                Self::Perform { action, .. } => found.push(action),
                Self::Repeat { steps, .. } => found.extend(Self::actions(steps)),
                _ => {}
            }
        }
        found
    }

    pub fn actions_mut(steps: &mut [Self]) -> Vec<&mut Action> {
        let mut found = Vec::new();
        for step in steps {
            match step {
                Self::Perform { action, .. } => found.push(action),
                Self::Repeat { steps, .. } => found.extend(Self::actions_mut(steps)),
                _ => {}
            }
        }
        found
    }

    /// Every step, those within others included, in their order.
    pub fn all(steps: &[Self]) -> Vec<&Self> {
        let mut found = Vec::new();
        for step in steps {
            found.push(step);
            if let Self::Repeat { steps, .. } = step {
                found.extend(Self::all(steps));
            }
        }
        found
    }
}
