//! What can go wrong, per operation, as fragments that complete "failed to …".

use std::path::PathBuf;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file could not be made, or given to its owner.
    #[error("create the store {path}: {cause}")]
    Create {
        /// The store's file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Whether there is such a file cannot be known.
    #[error("open the store {path}: {cause}")]
    Access {
        /// The store's file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// It, or a file that belongs to it, is a device, a pipe or a directory.
    #[error("open the store {path}: {cause}; name a file with --store")]
    Irregular {
        /// What was refused.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// There is no such file, and it was to be read only.
    #[error("open the store {path}: there is none yet; `fstone run` creates it")]
    Missing {
        /// The store's file.
        path: PathBuf,
    },
    /// A SQLite file, or another file, that fstone did not make.
    #[error("open the store {path}: it is a file of another program, and was left alone")]
    Foreign {
        /// The store's file.
        path: PathBuf,
    },
    /// It was written by a newer fstone.
    #[error(
        "open the store {path}: it has schema version {found}, and this fstone knows versions up to {known}; \
         use the fstone that wrote it, or a newer one"
    )]
    Newer {
        /// The store's file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// It is older than what this program reads.
    #[error(
        "open the store {path}: it has schema version {found}, of before the first release, and this fstone has version {known}; \
         export its runs with the fstone that wrote it (`fstone export`) and import them into a new store, or remove it"
    )]
    Older {
        /// The store's file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version this program reads.
        known: i64,
    },
    /// SQLite could not.
    #[error("open the store {path}: {cause}")]
    Sqlite {
        /// The store's file.
        path: PathBuf,
        /// What SQLite said.
        cause: rusqlite::Error,
    },
}

/// Why something could not be recorded. The store then has none of it.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// There is no such run.
    #[error("record it: there is no run {run} in this store")]
    NoSuchRun {
        /// Its number.
        run: u64,
    },
    /// The run's plan has no such cell.
    #[error("record it: run {run} has no cell {cell}")]
    NoSuchCell {
        /// The run's number.
        run: u64,
        /// The cell's index.
        cell: u32,
    },
    /// A trial is recorded once.
    #[error("record repetition {repetition} of cell {cell} of run {run}: it is recorded already")]
    AlreadyRecorded {
        /// The run's number.
        run: u64,
        /// The cell's index.
        cell: u32,
        /// The repetition.
        repetition: u32,
    },
    /// Steps of a trial have different names, and so have the figures of a step.
    #[error("record the trial: {what} twice")]
    Duplicate {
        /// "step \"load\"", "figure \"CPU\" of step \"load\""
        what: String,
    },
    /// A plan that contradicts itself.
    #[error("record the run: {0}")]
    InvalidPlan(fstone_model::check::Invalid),
    /// A baseline's name has to be one line of text.
    #[error("save the baseline {name:?}: a name is 1 to 200 bytes of text without control characters")]
    BaselineName {
        /// The name.
        name: String,
    },
    /// SQLite's integers end at 2⁶³ − 1.
    #[error("record {what} {value}: the store's integers end at 9223372036854775807")]
    OutOfRange {
        /// Which.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// What JSON cannot carry: a number that is not finite.
    #[error("record {what}: it does not survive as JSON ({why})")]
    NotJson {
        /// Which.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// Longer than what the store will read back.
    #[error("record {what} of {bytes} bytes: the limit is {limit}")]
    TooLong {
        /// Which.
        what: &'static str,
        /// Its length.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// SQLite could not.
    #[error("write to the store: {0}{cure}", cure = cure(.0))]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for RecordError {
    fn from(cause: rusqlite::Error) -> Self {
        Self::Sqlite(cause)
    }
}

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such run.
    #[error("read run {run}: there is no such run in this store")]
    NoSuchRun {
        /// Its number.
        run: u64,
    },
    /// What is in the file is not what this program wrote.
    #[error("read {what}: the store is damaged or was changed by hand: {why}")]
    Damaged {
        /// Which.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// SQLite could not.
    #[error("read the store: {0}{cure}", cure = cure(.0))]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for ReadError {
    fn from(cause: rusqlite::Error) -> Self {
        Self::Sqlite(cause)
    }
}

/// The likely cure for what SQLite said.
fn cure(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => "; free some space on the store's filesystem",
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
            "; another process has been writing to it for long: try again when it is done"
        }
        Some(rusqlite::ErrorCode::ReadOnly) => "; the file or its directory cannot be written by this user",
        _ => "",
    }
}
