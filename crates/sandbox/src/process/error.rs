//! Why a process could not be started.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Why a guest's process could not be started; completes "failed to start the guest: …".
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A path or argument holds a NUL byte.
    #[error("{0:?} contains a NUL byte")]
    Nul(OsString),
    /// A pipe, thread or process could not be made.
    #[error("cannot {what}: {cause}")]
    Resource {
        /// What was attempted.
        what: &'static str,
        /// Why not.
        cause: io::Error,
    },
    /// The new process could not become the program.
    #[error("cannot {what} {program}: {cause}")]
    Exec {
        /// Which step failed.
        what: &'static str,
        /// The program.
        program: String,
        /// Why.
        cause: io::Error,
    },
    /// Without a root of its own, the guest's user would have to reach what it needs.
    #[error(
        "guests run as user {user} here, who cannot reach {path}; run fstone as an ordinary user, or where root may mount"
    )]
    Unreachable {
        /// The user's number.
        user: u32,
        /// What it needs.
        path: PathBuf,
    },
}
