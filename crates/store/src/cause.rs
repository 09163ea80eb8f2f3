//! What is behind an error of this crate, whichever it is.

use crate::bundle::{BundleError, ExportError, ImportError};
use crate::error::{OpenError, ReadError, RecordError};

/// Whether an error is one of this crate, whose text completes "failed to".
pub fn is_error(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<OpenError>()
        || error.is::<RecordError>()
        || error.is::<ReadError>()
        || error.is::<ExportError>()
        || error.is::<ImportError>()
        || error.is::<BundleError>()
}

/// What the system said, where an error of this crate comes from the system.
pub fn system_error(error: &(dyn std::error::Error + 'static)) -> Option<std::io::ErrorKind> {
    if let Some(error) = error.downcast_ref::<OpenError>() {
        return match error {
            OpenError::Create { cause, .. } | OpenError::Access { cause, .. } => Some(cause.kind()),
            // Refused for safety, which has the status of a missing right.
            OpenError::Irregular { .. } => Some(std::io::ErrorKind::PermissionDenied),
            OpenError::Sqlite { cause, .. } => sqlite(cause),
            _ => None,
        };
    }
    if let Some(RecordError::Sqlite(cause)) = error.downcast_ref() {
        return sqlite(cause);
    }
    if let Some(ReadError::Sqlite(cause)) = error.downcast_ref() {
        return sqlite(cause);
    }
    if let Some(ExportError::Io { cause, .. }) = error.downcast_ref() {
        return Some(cause.kind());
    }
    match error.downcast_ref::<ImportError>() {
        Some(ImportError::Bundle(cause)) => return system_error(cause),
        Some(ImportError::Record(cause)) => return system_error(cause),
        Some(ImportError::Read(cause)) => return system_error(cause),
        _ => {}
    }
    match error.downcast_ref::<BundleError>() {
        Some(BundleError::Io { cause, .. }) => Some(cause.kind()),
        _ => None,
    }
}

/// The system's part in what SQLite said.
fn sqlite(error: &rusqlite::Error) -> Option<std::io::ErrorKind> {
    match error.sqlite_error_code()? {
        rusqlite::ErrorCode::DiskFull => Some(std::io::ErrorKind::StorageFull),
        rusqlite::ErrorCode::ReadOnly => Some(std::io::ErrorKind::ReadOnlyFilesystem),
        rusqlite::ErrorCode::PermissionDenied => Some(std::io::ErrorKind::PermissionDenied),
        _ => None,
    }
}
