//! What can go wrong with bundles, as fragments that complete "failed to …".

use crate::{ReadError, RecordError};
use std::io;
use std::path::PathBuf;

/// Why a bundle was not written. No file is left then.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// There is a file of that name.
    #[error("write the bundle {path}: there is a file of that name; remove it or choose another")]
    Exists {
        /// The name.
        path: PathBuf,
    },
    /// The file could not be written.
    #[error("write the bundle {path}: {cause}")]
    Io {
        /// The bundle.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
}

/// Why a bundle was not read.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The file could not be read, is cut short, or its compression is damaged.
    #[error("read the bundle {path}: {cause}")]
    Io {
        /// The bundle.
        path: PathBuf,
        /// What the system or the decompressor said.
        cause: io::Error,
    },
    /// A newer fstone wrote it.
    #[error(
        "read the bundle {path}: it has version {found}, and this fstone knows versions up to {known}; \
         use the fstone that wrote it, or a newer one"
    )]
    Newer {
        /// The bundle.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version this program knows.
        known: u32,
    },
    /// It is not what fstone writes.
    #[error("read the bundle {path}: {why}")]
    Malformed {
        /// The bundle.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// Why a bundle was not imported. The store then has none of it.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The bundle could not be read.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The store did not take it.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store has another run under the same identity.
    #[error("import the bundle: run {run} here has the same identity and other content: {why}")]
    Differs {
        /// Its number.
        run: u64,
        /// What differs.
        why: String,
    },
}

/// Why blocks were not merged into a run. The store then has none of them.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The store did not take it.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is of something else, or contradicts what the run has.
    #[error("merge {bundle} into run {run}: {why}")]
    Refused {
        /// What messages call the bundle.
        bundle: String,
        /// The run's number.
        run: u64,
        /// Why.
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
