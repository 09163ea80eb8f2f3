//! How the lab itself can fail over a trial.

use crate::place::{
    device::DeviceError,
    undo::{JournalError, UndoError},
};
use std::{io, path::PathBuf};

/// Why a trial could not be carried out, through no fault of what was to be measured; completes "failed to carry out a
/// trial: ".
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    #[error("setting up the device: {0}")]
    Device(DeviceError),
    #[error("keeping the journal of undo: {0}")]
    Journal(JournalError),
    #[error("{}: {cause}", path.display())]
    Work { path: PathBuf, cause: io::Error },
    #[error("the agent: {0}")]
    Agent(String),
    #[error("kernel {kernel} needs another executor")]
    Kernel { kernel: String },
    /// It was cancelled, and then something it had made could not be undone.
    #[error("cancelled; and then: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Undo(Vec<UndoError>),
    /// It failed, and then something it had made could not be undone.
    #[error("{error}; and then: {}", undo.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    AndUndo { error: Box<ExecutorError>, undo: Vec<UndoError> },
}

impl ExecutorError {
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
