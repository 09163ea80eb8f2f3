//! Why the store of kernels could not do something.

use super::fetch::FetchError;
use std::io;
use std::path::{Path, PathBuf};

/// Why the store of kernels could not do something; completes "failed to add a kernel: …" and the like.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory of the store.
    #[error("{path}: {cause}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The registry is not what fstone writes.
    #[error("{path} is damaged: {problem}; remove it and add the kernels again")]
    Registry {
        /// The registry.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A package could not be had.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It is none of the short names that stand for a package.
    #[error(
        "there is no package for {wanted}; there are {known}. Name any other kernel by its Debian package (PACKAGE or PACKAGE/SUITE) or by a file"
    )]
    NoPackage {
        /// As asked for.
        wanted: String,
        /// What there is.
        known: String,
    },
    /// There is no kernel in it.
    #[error("{0} holds no kernel: neither linux.uml nor a vmlinuz")]
    NoKernel(PathBuf),
    /// It is user-mode Linux as distributions build it.
    #[error(
        "{0} was built without time travel (CONFIG_UML_TIME_TRAVEL_SUPPORT); build one that has it: fstone kernel build"
    )]
    NoTimeTravel(PathBuf),
    /// The kernel does not run here.
    #[error("{path} does not run: {problem}")]
    DoesNotRun {
        /// The kernel.
        path: PathBuf,
        /// What it said.
        problem: String,
    },
    /// No such kernel, and one can be had.
    #[error("{problem}. Get it: {command}")]
    Absent {
        /// What was asked for, and what there is.
        problem: String,
        /// What gets it.
        command: String,
    },
    /// No such kernel, and no package has it.
    #[error("{problem}. {packages}")]
    Unknown {
        /// What was asked for, and what there is.
        problem: String,
        /// Which of this flavour packages have.
        packages: String,
    },
}

impl StoreError {
    /// The problem, and apart from it the command that is the cure, if there is one.
    #[must_use]
    pub fn problem_and_command(self) -> (String, Option<String>) {
        match self {
            Self::Absent { problem, command } => (problem, Some(command)),
            other => (other.to_string(), None),
        }
    }
}

pub(super) fn file_error(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |cause| StoreError::File { path, cause }
}
