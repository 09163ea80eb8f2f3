//! Executors: what carries out one trial.
//!
//! [`HostExecutor`] does so on the running kernel, or in a guest that it boots for a trial; [`FakeExecutor`] gives scripted outcomes to test what is above. The
//! order is always device → mkfs → mount → steps → unmount → release, and whatever way a trial goes, everything it made
//! is undone at its end. How it went is data ([`fstone_model::Outcome`]); `Err` means that the lab itself failed.

pub(crate) mod bench;
mod fake;
pub(crate) mod host;
mod load;
mod measure;
mod preflight;
mod steps;
mod watchdog;

pub use fake::FakeExecutor;
pub use host::HostExecutor;
pub use load::{EngineLoader, FakeLoader, LoadFailure, LoadRequest, Loader, load_figures};
pub use preflight::{Obstacle, preflight};

use crate::{
    events::ProgressSink,
    place::{
        device::DeviceError,
        undo::{JournalError, UndoError},
    },
};
use fstone_model::{Cell, Trial, result::TrialId};
use std::{io, path::PathBuf};

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

/// Carries out trials.
pub trait Executor {
    /// Carries out one trial, from the device to its release.
    ///
    /// # Errors
    /// When the lab failed; then the run cannot go on.
    fn run(&mut self, job: &Job<'_>) -> Result<TrialEnd, ExecutorError>;
}
