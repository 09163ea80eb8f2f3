//! Why the engine itself could not work.

use fstone_model::LoadReport;
use rustix::io::Errno;
use std::path::PathBuf;

/// Why a load could not be carried out; completes "failed to run the load: …". An operation's own error is no such
/// reason: it is data, in [`fstone_model::LoadReport::errors`].
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("the directory {path} cannot be opened: {errno}; create it, or name another")]
    Directory { path: PathBuf, errno: Errno },
    #[error("building fileset {fileset:?}: {call} {path}: {errno}{cure}")]
    Setup {
        fileset: String,
        call: &'static str,
        path: PathBuf,
        errno: Errno,
        /// What may help, as "; …", or nothing.
        cure: &'static str,
    },
    #[error(
        "fileset {fileset:?}: {path} holds what fstone did not make: {}; {cure}",
        listed(.names)
    )]
    InTheWay {
        fileset: String,
        path: PathBuf,
        /// What is in it, those first that the fileset would replace.
        names: Vec<String>,
        cure: &'static str,
    },
    #[error("fileset {fileset:?}: {path} {problem}; prepare the files first")]
    NotPrepared {
        fileset: String,
        path: PathBuf,
        /// "is missing", "has 5 bytes where 10 are needed".
        problem: String,
    },
    #[error(
        "thread {started} of {wanted} could not be started: {cause}; lower the number of threads or raise `ulimit -u`"
    )]
    Threads { started: u32, wanted: u32, cause: std::io::Error },
    #[error("the workload {what}")]
    Unsupported {
        /// "asks for …, which …".
        what: String,
    },
    #[error("setting up the {engine} I/O engine: {call}: {errno}{cure}")]
    Engine {
        engine: &'static str,
        call: &'static str,
        errno: Errno,
        /// What may help, as "; …", or nothing.
        cure: &'static str,
    },
    #[error(
        "keeping {wanted} files open needs more than the {limit} descriptors this process may have; raise `ulimit -n`"
    )]
    Descriptors {
        wanted: u64,
        /// The hard limit.
        limit: u64,
    },
    #[error("the callout {command:?} ended with {status}")]
    Callout { command: String, status: String },
    /// Cancelled from outside, with what was measured until then if its phases had begun.
    #[error("interrupted")]
    Interrupted(Option<Box<LoadReport>>),
    /// The load of all ranks ended before this one had anything to report.
    #[error("the load of all ranks ended early")]
    Parted,
}

fn listed(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

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
