//! One trial, from the device to its release.
//!
//! A trial has two sides. [`executor`] is the lab's: it provides the device, starts agents, has them make one step after
//! the other and writes down what they say. [`session`] is the agent's: it makes the steps, in [`steps`], be it as a child
//! process of the lab or as process 1 of a guest. Between them is the protocol of [`crate::agent`].
//!
//! The order is always device → mkfs → mount → steps → unmount → release, and whatever way a trial goes, everything it made
//! is undone at its end. How it went is data ([`fstone_model::Outcome`]); `Err` means that the lab itself failed.
//! [`FakeExecutor`] gives scripted outcomes to test what is above.

pub(crate) mod executor;
mod fake;
mod load;
mod measure;
mod options;
mod preflight;
pub(crate) mod record;
pub(crate) mod session;
mod steps;
pub(crate) mod watch;

pub use executor::AgentExecutor;
pub use fake::FakeExecutor;
pub use load::{EngineLoader, FakeLoader, LoadFailure, LoadRequest, Loader, load_figures};
pub use options::LabOptions;
pub use preflight::{Obstacle, preflight};

use crate::{
    events::ProgressSink,
    place::{
        device::{DeviceError, Space},
        undo::{JournalError, UndoError},
    },
};
use fstone_model::{Cell, Outcome, Trial, outcome::Reason, result::TrialId, units::format_bytes};
use record::{DEVICE, Halt};
use std::{
    io,
    path::{Path, PathBuf},
};

/// A trial to carry out.
pub struct Job<'a> {
    /// Its cell.
    pub cell: &'a Cell,
    /// Which trial.
    pub id: TrialId,
    /// Its place in the order in which trials really run.
    pub position: u32,
    /// The seed of its random streams.
    pub seed: u64,
    /// Whether some row of the plan has a load with O_DIRECT: its loop devices then bypass the host's page cache, if they
    /// can. All rows get the same kind of device, since they are compared with each other.
    pub direct: bool,
    /// Is told what happens.
    pub sink: &'a dyn ProgressSink,
}

/// How carrying out a trial ended.
#[derive(Debug)]
pub enum TrialEnd {
    /// It has a result.
    Finished(Box<Trial>),
    /// It was given up because the run is to end; it has none.
    Cancelled,
    /// It has a result, but something it made could not be undone, so no other trial can follow.
    Stuck(Box<Trial>, Vec<UndoError>),
}

/// Why a trial could not be carried out, through no fault of what was to be measured; completes "failed to carry out a
/// trial: ".
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    /// The device.
    #[error("setting up the device: {0}")]
    Device(DeviceError),
    /// The journal of undo.
    #[error("keeping the journal of undo: {0}")]
    Journal(JournalError),
    /// Something in the work directory.
    #[error("{}: {cause}", path.display())]
    Work {
        /// What.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The agent.
    #[error("the agent: {0}")]
    Agent(String),
    /// The plan names a kernel this executor has not.
    #[error("kernel {kernel} needs another executor")]
    Kernel {
        /// Which.
        kernel: String,
    },
    /// It was cancelled, and then something it had made could not be undone.
    #[error("cancelled; and then: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Undo(Vec<UndoError>),
    /// It failed, and then something it had made could not be undone.
    #[error("{error}; and then: {}", undo.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    AndUndo {
        /// How it failed.
        error: Box<ExecutorError>,
        /// What is left.
        undo: Vec<UndoError>,
    },
}

impl ExecutorError {
    /// The error of the system that this one comes from.
    #[must_use]
    pub fn system(&self) -> Option<&io::Error> {
        match self {
            Self::Work { cause, .. } | Self::Device(DeviceError::System { cause, .. }) => Some(cause),
            Self::Journal(cause) | Self::Device(DeviceError::Journal(cause)) => cause.system(),
            Self::AndUndo { error, .. } => error.system(),
            _ => None,
        }
    }
}

impl From<DeviceError> for ExecutorError {
    fn from(cause: DeviceError) -> Self {
        Self::Device(cause)
    }
}

impl From<JournalError> for ExecutorError {
    fn from(cause: JournalError) -> Self {
        Self::Journal(cause)
    }
}

/// A directory whose filesystem is full is no place for a trial.
fn refuse_full(directory: &Path, space: Space) -> Result<(), Halt> {
    if !space.is_used_up() {
        return Ok(());
    }
    let words = format!("{}: only {} free", directory.display(), format_bytes(space.free_bytes));
    let reason = Reason::new(DEVICE, words).with_cure("name a work directory with more room");
    Err(Halt::Outcome(Outcome::Failed(reason)))
}

/// Carries out trials.
pub trait Executor {
    /// Carries out one trial, from the device to its release.
    ///
    /// # Errors
    /// When the lab failed; then the run cannot go on.
    fn run(&mut self, job: &Job<'_>) -> Result<TrialEnd, ExecutorError>;
}
