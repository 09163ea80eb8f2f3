//! Exit codes, all of them.

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done. Refused, failed, hung and skipped rows are results and do not change this, as long as any trial completed.
    Success = 0,
    /// `fstone compare` found a regression: a real difference for the worse beyond the threshold; or `fstone verify` a
    /// figure that does not follow from what was recorded.
    Regression = 1,
    /// The command line, a study file or a profile is wrong.
    BadInput = 2,
    /// Refused for safety, or this machine lacks a right or a tool that the command cannot do without.
    CannotHere = 3,
    /// The run ended, but not a single trial completed; or a load ended with errors.
    NothingCompleted = 4,
    /// fstone itself failed: the store, the work directory, an operation that has to work.
    LabFailed = 5,
    /// Stopped by Ctrl-C or SIGTERM; everything was undone and finished trials were kept.
    Interrupted = 130,
}

/// The table for `fstone --help`.
pub(crate) const HELP: &str = "Exit status:\n  0    done; refused, failed or skipped rows are results\n  \
    1    fstone compare found a regression, or fstone verify a wrong figure\n  2    the command line, a study file or a profile is wrong\n  3    refused for safety, or a right or tool is missing\n  4    no trial completed, or a load ended with errors\n  \
    5    fstone itself failed\n  130  interrupted; everything was undone, finished trials were kept";

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
