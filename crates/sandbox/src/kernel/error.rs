//! Why the store of kernels could not do something.

use super::fetch::FetchError;
use std::io;
use std::path::{Path, PathBuf};

/// Why the store of kernels could not do something; completes "failed to add a kernel: …" and the like.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{path}: {cause}")]
    File { path: PathBuf, cause: io::Error },
    #[error("{path} is damaged: {problem}; remove it and add the kernels again")]
    Registry { path: PathBuf, problem: String },
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(
        "there is no package for {wanted}; there are {known}. Name any other kernel by its Debian package (PACKAGE or PACKAGE/SUITE) or by a file"
    )]
    NoPackage { wanted: String, known: String },
    #[error("{0} holds no kernel: neither linux.uml nor a vmlinuz")]
    NoKernel(PathBuf),
    #[error(
        "{0} was built without time travel (CONFIG_UML_TIME_TRAVEL_SUPPORT); build one that has it: fstone kernel build"
    )]
    NoTimeTravel(PathBuf),
    #[error("{path} does not run: {problem}")]
    DoesNotRun { path: PathBuf, problem: String },
    /// No such kernel, and one can be had.
    #[error("{problem}. Get it: {command}")]
    Absent { problem: String, command: String },
    /// No such kernel, and no package has it.
    #[error("{problem}. {packages}")]
    Unknown { problem: String, packages: String },
}

impl StoreError {
    /// The problem, and apart from it the command that is the cure, if there is one.
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
