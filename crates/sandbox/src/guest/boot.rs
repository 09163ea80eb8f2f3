//! Why a guest does not come up, and what can be said on a kernel's command line.

use super::Ending;
use crate::process::SpawnError;
use std::io;
use std::path::{Path, PathBuf};

/// Why there is no guest; completes "failed to boot a guest: …".
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// What was asked for cannot be put on a kernel's command line.
    #[error("{what} {value:?} cannot be passed to a kernel, which splits its command line at blanks and quotes")]
    Unspeakable {
        /// "the agent's path", …
        what: &'static str,
        value: String,
    },
    #[error("{what} is {value}, and must be {bounds}")]
    OutOfBounds { what: &'static str, value: String, bounds: &'static str },
    #[error("cannot {what}: {cause}")]
    Host { what: String, cause: io::Error },
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It was started and never said hello.
    #[error("{}; see {}\n{}", .ending.describe(), .console_log.display(), .ending.words())]
    NotUp { ending: Box<Ending>, console_log: PathBuf },
}

impl BootError {
    pub(crate) fn host(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |cause| Self::Host { what, cause }
    }
}

/// A word of a kernel's command line.
pub(crate) fn word(what: &'static str, value: &str) -> Result<String, BootError> {
    if value.is_empty()
        || value.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | ','))
    {
        return Err(BootError::Unspeakable { what, value: value.to_owned() });
    }
    Ok(value.to_owned())
}

pub(crate) fn path_word(what: &'static str, path: &Path) -> Result<String, BootError> {
    let text = path.to_str().ok_or_else(|| BootError::Unspeakable { what, value: path.display().to_string() })?;
    word(what, text)
}
