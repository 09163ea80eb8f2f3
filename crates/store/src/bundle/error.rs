//! What can go wrong with bundles, as fragments that complete "failed to …".

use crate::{ReadError, RecordError};
use std::io;
use std::path::PathBuf;

/// Why a bundle was not written. No file is left then.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("write the bundle {path}: there is a file of that name; remove it or choose another")]
    Exists { path: PathBuf },
    #[error("write the bundle {path}: {cause}")]
    Io { path: PathBuf, cause: io::Error },
}

#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The file could not be read, is cut short, or its compression is damaged.
    #[error("read the bundle {path}: {cause}")]
    Io { path: PathBuf, cause: io::Error },
    #[error(
        "read the bundle {path}: it has version {found}, and this fstone knows versions up to {known}; \
         use the fstone that wrote it, or a newer one"
    )]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("read the bundle {path}: {why}")]
    Malformed { path: PathBuf, why: String },
}

/// Why a bundle was not imported. The store then has none of it.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store has another run under the same identity.
    #[error("import the bundle: run {run} here has the same identity and other content: {why}")]
    Differs { run: u64, why: String },
}

/// Why blocks were not merged into a run. The store then has none of them.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is of something else, or contradicts what the run has.
    #[error("merge {bundle} into run {run}: {why}")]
    Refused {
        /// What messages call the bundle.
        bundle: String,
        run: u64,
        why: String,
    },
}

impl From<rusqlite::Error> for MergeError {
    fn from(cause: rusqlite::Error) -> Self {
        Self::Record(RecordError::Sqlite(cause))
    }
}

impl From<rusqlite::Error> for ImportError {
    fn from(cause: rusqlite::Error) -> Self {
        Self::Record(RecordError::Sqlite(cause))
    }
}
