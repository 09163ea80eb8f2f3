//! What errors say of the system.

use crate::file::ReadError;
use crate::import::ImportError;
use crate::replay::{CompileError, ReplayError};
use crate::trace::RecordError;
use std::io::ErrorKind;

/// What the system said, where an error of this crate comes from the system.
pub fn system_error(error: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    let cause = match error.downcast_ref() {
        Some(
            RecordError::Root { cause, .. }
            | RecordError::Trace { cause }
            | RecordError::Join { cause, .. }
            | RecordError::Program { cause: Some(cause), .. }
            | RecordError::Write { cause, .. },
        ) => Some(cause),
        _ => None,
    };
    let cause = cause.or(match error.downcast_ref() {
        Some(ImportError::Read(cause) | ImportError::Write(cause)) => Some(cause),
        _ => None,
    });
    let cause = cause.or(match error.downcast_ref() {
        Some(ReadError::Read(cause)) => Some(cause),
        _ => None,
    });
    let cause = cause.or(match error.downcast_ref() {
        Some(CompileError::Read(cause)) => Some(cause),
        _ => None,
    });
    match error.downcast_ref() {
        Some(ReplayError::Tree { errno, .. }) => Some(errno.kind()),
        Some(ReplayError::Thread(cause)) => Some(cause.kind()),
        _ => cause.map(std::io::Error::kind),
    }
}
