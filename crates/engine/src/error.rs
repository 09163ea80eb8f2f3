//! Why the engine itself could not work.

use fstone_model::LoadReport;
use rustix::io::Errno;
use std::path::PathBuf;

/// Why a load could not be carried out; completes "failed to run the load: …". An operation's own error is no such
/// reason: it is data, in [`fstone_model::LoadReport::errors`].
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The load's directory is not there or cannot be used.
    #[error("the directory {path} cannot be opened: {errno}; create it, or name another")]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        errno: Errno,
    },
    /// A fileset could not be built.
    #[error("building fileset {fileset:?}: {call} {path}: {errno}{cure}")]
    Setup {
        /// Its name.
        fileset: String,
        /// The system call.
        call: &'static str,
        /// The path it was about.
        path: PathBuf,
        /// Why.
        errno: Errno,
        /// What may help, as "; …", or nothing.
        cure: &'static str,
    },
    /// A fileset's directory holds files that fstone did not make.
    #[error(
        "fileset {fileset:?}: {path} holds what fstone did not make: {}; {cure}",
        listed(.names)
    )]
    InTheWay {
        /// Its name.
        fileset: String,
        /// The directory.
        path: PathBuf,
        /// What is in it, those first that the fileset would replace.
        names: Vec<String>,
        /// What to do about it.
        cure: &'static str,
    },
    /// A fileset that has to be there is not as it should be.
    #[error("fileset {fileset:?}: {path} {problem}; prepare the files first")]
    NotPrepared {
        /// Its name.
        fileset: String,
        /// The file.
        path: PathBuf,
        /// "is missing", "has 5 bytes where 10 are needed".
        problem: String,
    },
    /// A thread could not be started.
    #[error(
        "thread {started} of {wanted} could not be started: {cause}; lower the number of threads or raise `ulimit -u`"
    )]
    Threads {
        /// How many were.
        started: u32,
        /// How many should have been.
        wanted: u32,
        /// Why.
        cause: std::io::Error,
    },
    /// Something of the workload that cannot be done as it stands.
    #[error("the workload {what}")]
    Unsupported {
        /// "asks for …, which …".
        what: String,
    },
    /// An I/O engine could not be set up.
    #[error("setting up the {engine} I/O engine: {call}: {errno}{cure}")]
    Engine {
        /// Which.
        engine: &'static str,
        /// The system call.
        call: &'static str,
        /// Why.
        errno: Errno,
        /// What may help, as "; …", or nothing.
        cure: &'static str,
    },
    /// More files would have to be open than the process may have.
    #[error(
        "keeping {wanted} files open needs more than the {limit} descriptors this process may have; raise `ulimit -n`"
    )]
    Descriptors {
        /// How many.
        wanted: u64,
        /// The hard limit.
        limit: u64,
    },
    /// The callout failed.
    #[error("the callout {command:?} ended with {status}")]
    Callout {
        /// The command.
        command: String,
        /// How it ended.
        status: String,
    },
    /// Cancelled from outside, with what was measured until then if its phases had begun.
    #[error("interrupted")]
    Interrupted(Option<Box<LoadReport>>),
    /// The load of all ranks ended before this one had anything to report.
    #[error("the load of all ranks ended early")]
    Parted,
}

/// The first names, and how many more there are.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// What may help against an errno.
pub(crate) fn cure(errno: Errno) -> &'static str {
    match errno {
        Errno::NOSPC => "; the filesystem is full or out of inodes: use a larger device or a smaller fileset",
        Errno::DQUOT => "; the quota is used up",
        Errno::ROFS => "; the filesystem is mounted read-only, or made itself so after an error: see the kernel's log",
        Errno::MFILE | Errno::NFILE => "; raise `ulimit -n`",
        Errno::ACCESS | Errno::PERM => "; check who owns the directory",
        Errno::NOTEMPTY => "; it holds files that are not of this fileset, which are never removed",
        _ => "",
    }
}
