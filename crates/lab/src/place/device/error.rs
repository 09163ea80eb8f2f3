//! Why there is no device for a trial.

use super::refusal::Refusal;
use crate::place::undo::{JournalError, UndoError};
use std::{io, path::PathBuf};

/// Why there is no device for a trial; completes "failed to set up the device: ".
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// It may not be formatted.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// This machine cannot provide such a device.
    #[error("{words}")]
    Unsuitable {
        /// Why.
        words: String,
    },
    /// Others than root could replace the image while root works on it.
    #[error("{}: {cause}", directory.display())]
    Exchangeable {
        /// Where the image was to be.
        directory: PathBuf,
        /// Whose part of its path is whose.
        cause: io::Error,
    },
    /// A queue setting of the study is not to be had.
    #[error("queue setting {name} = {value:?}: {words}")]
    Setting {
        /// Its name.
        name: String,
        /// The value asked for.
        value: String,
        /// The kernel's words.
        words: String,
    },
    /// The kernel or the work directory failed.
    #[error("{what}: {cause}")]
    System {
        /// What was tried.
        what: String,
        /// Why it failed.
        cause: io::Error,
    },
    /// The journal of undo could not be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Something half made could not be undone.
    #[error(transparent)]
    Undo(#[from] UndoError),
}
