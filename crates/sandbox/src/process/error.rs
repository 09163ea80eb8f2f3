//! Why a process could not be started.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Why a guest's process could not be started; completes "failed to start the guest: …".
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("{0:?} contains a NUL byte")]
    Nul(OsString),
    #[error("cannot {what}: {cause}")]
    Resource { what: &'static str, cause: io::Error },
    #[error("cannot {what} {program}: {cause}")]
    Exec { what: &'static str, program: String, cause: io::Error },
    /// Without a root of its own, the guest's user would have to reach what it needs.
    #[error(
        "guests run as user {user} here, who cannot reach {path}; run fstone as an ordinary user, or where root may mount"
    )]
    Unreachable { user: u32, path: PathBuf },
}
