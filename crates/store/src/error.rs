//! What can go wrong, per operation, as fragments that complete "failed to …".

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file could not be made, or given to its owner.
    #[error("create the store {path}: {cause}")]
    Create { path: PathBuf, cause: std::io::Error },
    /// Whether there is such a file cannot be known.
    #[error("open the store {path}: {cause}")]
    Access { path: PathBuf, cause: std::io::Error },
    /// It, or a file that belongs to it, is a device, a pipe or a directory.
    #[error("open the store {path}: {cause}; name a file with --store")]
    Irregular { path: PathBuf, cause: std::io::Error },
    /// Another user could have SQLite undo what is recorded, or read it.
    #[error(
        "open the store {path}: another user can change {place}; name a file in a directory that only you can write to, with --store"
    )]
    Exposed { path: PathBuf, place: PathBuf },
    #[error("open the store {path}: there is none yet; `fstone run` creates it")]
    Missing { path: PathBuf },
    #[error("open the store {path}: it is a file of another program, and was left alone")]
    Foreign { path: PathBuf },
    #[error(
        "open the store {path}: it has schema version {found}, and this fstone knows versions up to {known}; \
         use the fstone that wrote it, or a newer one"
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error(
        "open the store {path}: it has schema version {found}, of before the first release, and this fstone has version {known}; \
         export its runs with the fstone that wrote it (`fstone export`) and import them into a new store, or remove it"
    )]
    Older { path: PathBuf, found: i64, known: i64 },
    #[error("open the store {path}: {cause}")]
    Sqlite { path: PathBuf, cause: rusqlite::Error },
}

/// Why something could not be recorded. The store then has none of it.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("record it: there is no run {run} in this store")]
    NoSuchRun { run: u64 },
    #[error("record it: run {run} has no cell {cell}")]
    NoSuchCell { run: u64, cell: u32 },
    /// A trial is recorded once.
    #[error("record repetition {repetition} of cell {cell} of run {run}: it is recorded already")]
    AlreadyRecorded { run: u64, cell: u32, repetition: u32 },
    /// Steps of a trial have different names, and so have the figures of a step.
    #[error("record the trial: {what} twice")]
    Duplicate {
        /// "step \"load\"", "figure \"CPU\" of step \"load\""
        what: String,
    },
    #[error("record the run: {0}")]
    InvalidPlan(fstone_model::check::Invalid),
    /// A baseline's name has to be one line of text.
    #[error("save the baseline {name:?}: a name is 1 to 200 bytes of text without control characters")]
    BaselineName { name: String },
    /// SQLite's integers end at 2⁶³ − 1.
    #[error("record {what} {value}: the store's integers end at 9223372036854775807")]
    OutOfRange { what: &'static str, value: u64 },
    /// What JSON cannot carry: a number that is not finite.
    #[error("record {what}: it does not survive as JSON ({why})")]
    NotJson { what: &'static str, why: String },
    #[error("record {what} of {bytes} bytes: the limit is {limit}")]
    TooLong { what: &'static str, bytes: u64, limit: u64 },
    #[error("write to the store: {0}{cure}", cure = cure(.0))]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for RecordError {
    fn from(cause: rusqlite::Error) -> Self {
        Self::Sqlite(cause)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("read run {run}: there is no such run in this store")]
    NoSuchRun { run: u64 },
    /// What is in the file is not what this program wrote.
    #[error("read {what}: the store is damaged or was changed by hand: {why}")]
    Damaged { what: &'static str, why: String },
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
