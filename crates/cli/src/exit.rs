//! Exit statuses, all of them. Every way out of the process ends in one; docs/exit-codes.md has the same list.

use crate::studies::FindError;
use anyhow::Error;
use fstone_engine::LoadError;
use fstone_lab::{place::undo::CleanError, run::carry_out::LabError};
use fstone_sandbox::kernel::StoreError;
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU8, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done. Refused, failed, hung and skipped rows are results and do not change this, as long as any trial completed.
    Success = 0,
    /// `fstone compare` found a regression: a real difference for the worse beyond the threshold; or `fstone verify` a
    /// figure that does not follow from what was recorded; or `fstone durability` a loss.
    Regression = 1,
    BadInput = 2,
    /// Refused for safety, or this machine lacks a permission or a tool that the command needs.
    CannotHere = 3,
    /// The run ended, but not a single trial completed; or a load ended with errors.
    NothingCompleted = 4,
    /// The store, the work directory or the system under them failed.
    LabFailed = 5,
    /// A filesystem that fstone has to write to is full.
    NoRoom = 6,
    Fault = 7,
    /// `fstone compare` found no regression and cannot say that there is none: the runs have no figure in common, too few
    /// trials for any difference to show, figures so noisy that one as large as the threshold would be missed, or less power than
    /// `--require-power` asks for.
    Undecided = 8,
    /// `fstone fio` was stopped in this way, after which fio ends with this status.
    InterruptedAsFio = 128,
    /// Stopped by Ctrl-C, SIGTERM or SIGHUP; finished trials were kept. Everything was undone except what a process hangs in.
    Interrupted = 130,
    /// The reader of standard output went away; the shell's status for a program that SIGPIPE ended.
    ReaderGone = 141,
}

impl Exit {
    /// `fstone sysbench` could not do its work, after which sysbench ends with this status.
    pub(crate) const FAILED_AS_SYSBENCH: Self = Self::Regression;

    const ALL: [Self; 12] = [
        Self::Success,
        Self::Regression,
        Self::BadInput,
        Self::CannotHere,
        Self::NothingCompleted,
        Self::LabFailed,
        Self::NoRoom,
        Self::Fault,
        Self::Undecided,
        Self::InterruptedAsFio,
        Self::Interrupted,
        Self::ReaderGone,
    ];

    const fn meaning(self) -> &'static str {
        match self {
            Self::Success => "done; refused, failed or skipped rows are results",
            Self::Regression => {
                "compare found a regression, verify a difference, or durability a loss; or sysbench failed"
            }
            Self::BadInput => "the command line, a study file or a profile is wrong",
            Self::CannotHere => "refused for safety, or a right or a tool is missing",
            Self::NothingCompleted => "no trial completed, or a load ended with errors",
            Self::LabFailed => "the store, the work directory or the system under them failed",
            Self::NoRoom => "a filesystem to write to is full",
            Self::Fault => "a fault in fstone itself; the message of a panic names its log",
            Self::Undecided => "fstone compare cannot decide: something is missing, too few trials, or too noisy",
            Self::InterruptedAsFio => {
                "fstone fio was interrupted, as with fio; what was measured until then was printed"
            }
            Self::Interrupted => {
                "interrupted; what was finished or measured was kept, and everything was undone or is listed"
            }
            Self::ReaderGone => "standard output was closed before the end",
        }
    }

    /// The same, unless all went well: then the status of what became of it afterwards. What was found counts for more than
    /// whether it could be delivered.
    pub(crate) const fn else_of(self, delivered: Self) -> Self {
        match self {
            Self::Success => delivered,
            found => found,
        }
    }

    /// The same, or what the cause of an error says more exactly: a missing right and a full filesystem have statuses of
    /// their own, whatever was being done.
    pub(crate) fn by_cause(self, error: &Error) -> Self {
        if self == Self::FAILED_AS_SYSBENCH {
            return self;
        }
        let full = |cause: &LoadError| match cause {
            LoadError::Setup { errno, .. } => matches!(*errno, Errno::NOSPC | Errno::DQUOT),
            _ => false,
        };
        if error.chain().any(|cause| cause.downcast_ref().is_some_and(full)) {
            // The filesystem under test, not one that fstone writes to.
            return Self::NothingCompleted;
        }
        error.chain().find_map(system_error).and_then(Self::of_kind).unwrap_or(self)
    }

    /// What an error of the system means by itself. A pipe that nobody reads is no more than an error of writing: only whoever
    /// writes to standard output knows that it is [`Self::ReaderGone`].
    pub(crate) const fn of_kind(kind: ErrorKind) -> Option<Self> {
        match kind {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Some(Self::CannotHere),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(Self::NoRoom),
            _ => None,
        }
    }
}

/// What the system said, where an error comes from the system. Errors name their causes in words and chain none, so each
/// part is asked for its own.
fn system_error(error: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return Some(error.kind());
    }
    if let Some(errno) = error.downcast_ref::<Errno>() {
        return Some(io::Error::from(*errno).kind());
    }
    if let Some(LoadError::Directory { errno, .. } | LoadError::Setup { errno, .. } | LoadError::Engine { errno, .. }) =
        error.downcast_ref()
    {
        return Some(io::Error::from(*errno).kind());
    }
    if let Some(FindError::Read { cause, .. }) = error.downcast_ref() {
        return Some(cause.kind());
    }
    if let Some(StoreError::File { cause, .. }) = error.downcast_ref() {
        return Some(cause.kind());
    }
    if let Some(error) = error.downcast_ref::<CleanError>() {
        return error.system().map(std::io::Error::kind);
    }
    if let Some(kind) = fstone_record::system_error(error) {
        return Some(kind);
    }
    match error.downcast_ref::<LabError>().map(LabError::root) {
        Some(root) => root.and_then(system_error),
        None => fstone_store::system_error(error),
    }
}

/// The table for `fstone --help`.
pub(crate) fn help() -> String {
    let lines = Exit::ALL.map(|exit| format!("\n  {:<4} {}", exit as u8, exit.meaning()));
    format!("Exit status:{}", lines.concat())
}

static OF_PROGRAM: AtomicU8 = AtomicU8::new(0);

/// All went well, and a program that was run says how this one ends.
pub(crate) fn of_program(status: u8) -> Exit {
    OF_PROGRAM.store(status, Ordering::Relaxed);
    Exit::Success
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(if exit == Exit::Success { OF_PROGRAM.load(Ordering::Relaxed) } else { exit as u8 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn a_missing_right_and_a_full_disk_have_statuses_of_their_own() {
        let of = |kind: ErrorKind| {
            let error = Err::<(), _>(io::Error::from(kind)).context("cannot write x").expect_err("it is one");
            Exit::LabFailed.by_cause(&error)
        };
        assert_eq!(of(ErrorKind::PermissionDenied), Exit::CannotHere);
        assert_eq!(of(ErrorKind::ReadOnlyFilesystem), Exit::CannotHere);
        assert_eq!(of(ErrorKind::StorageFull), Exit::NoRoom);
        assert_eq!(of(ErrorKind::NotFound), Exit::LabFailed);
        // Not standard output's, as far as is known.
        assert_eq!(of(ErrorKind::BrokenPipe), Exit::LabFailed);
        assert_eq!(Exit::BadInput.by_cause(&anyhow::anyhow!("wrong")), Exit::BadInput);
        assert_eq!(Exit::LabFailed.by_cause(&Error::new(Errno::DQUOT)), Exit::NoRoom);
        let fileset = "f".to_owned();
        let setup = LoadError::Setup { fileset, call: "write", path: "f/0".into(), errno: Errno::NOSPC, cure: "" };
        assert_eq!(Exit::LabFailed.by_cause(&Error::new(setup)), Exit::NothingCompleted, "it is the one under test");
        let as_sysbench = Exit::FAILED_AS_SYSBENCH.by_cause(&Error::new(Errno::NOSPC));
        assert_eq!(as_sysbench, Exit::FAILED_AS_SYSBENCH);
    }
}
