//! How far a build is, and why it failed.

use super::super::error::StoreError;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildProgress {
    /// It is fetching, unpacking, reading or configuring.
    Preparing(&'static str),
    /// A patch does not fit these sources: what it does, and what follows.
    Unpatched(&'static str, &'static str),
    Compiling {
        /// Files made so far.
        done: u32,
        /// About how many there are in all; not known where sources were built before and only some have changed.
        total: Option<u32>,
        elapsed: Duration,
    },
}

/// Why a kernel could not be built; completes "failed to build a kernel: …".
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "{0} is not a kernel source: give a package (linux-source-6.1), a .tar or a directory with a kernel's Kbuild"
    )]
    NoSource(PathBuf),
    #[error(
        "{path} cannot be unpacked ({words}); give an archive that tar can read, such as a .tar, .tar.gz or .tar.xz"
    )]
    NoArchive { path: PathBuf, words: String },
    #[error("{0} has no kernel's sources: at its top or in its one directory there have to be Kbuild and arch/um")]
    NoTree(PathBuf),
    /// A link in it leads out of it, or there is a device in it.
    #[error(
        "{path} has {member}, which leads out of the sources; pack a clean tree, as git archive --prefix=linux/ --output=linux.tar HEAD does"
    )]
    LeadsOut { path: PathBuf, member: PathBuf },
    #[error("building a kernel takes {}; install them: apt-get install --no-install-recommends {packages}", .tools.join(", "))]
    Tools { tools: Vec<&'static str>, packages: String },
    #[error("{what} failed:\n{lines}\n(the whole log is in {log})")]
    Failed {
        /// "make linux".
        what: String,
        lines: String,
        log: PathBuf,
    },
    #[error("the kernel built from these sources has no time travel: they are older than 5.4, or {log} says why")]
    NoTimeTravel { log: PathBuf },
    #[error(
        "`gcc` is another compiler here: it does not use the assembler that fstone gives it to count instructions. Have `gcc` be GCC, or build without --counting"
    )]
    NotCounted,
    /// What was built is of no state of the tree that is known.
    #[error("{0} changed while it was being built; build it again")]
    Changed(String),
}
