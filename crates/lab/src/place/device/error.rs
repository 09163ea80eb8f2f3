//! Why there is no device for a trial.

use super::refusal::Refusal;
use crate::place::undo::{JournalError, UndoError};
use std::{io, path::PathBuf};

/// Why there is no device for a trial; completes "failed to set up the device: ".
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error(transparent)]
    Refusal(#[from] Refusal),
    #[error("{words}")]
    Unsuitable { words: String },
    /// Others than root could replace the image while root works on it.
    #[error("{}: {cause}", directory.display())]
    Exchangeable { directory: PathBuf, cause: io::Error },
    #[error("queue setting {name} = {value:?}: {words}")]
    Setting { name: String, value: String, words: String },
    #[error("{what}: {cause}")]
    System { what: String, cause: io::Error },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Undo(#[from] UndoError),
}
