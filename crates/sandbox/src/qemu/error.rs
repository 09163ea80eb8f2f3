//! Why there is no guest in QEMU.

use super::modules::ModulesError;
use super::vmlinux::VmlinuxError;
use crate::guest::BootError;
use std::io;
use std::path::PathBuf;

/// Why there is no guest; completes "failed to boot a guest: …".
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    /// The kernel is user-mode Linux, which runs by itself.
    #[error("{0} is not a kernel for QEMU")]
    Flavour(String),
    #[error("qemu-system-x86_64 is not installed (apt-get install --no-install-recommends qemu-system-x86)")]
    NoEmulator,
    #[error("{path}: {cause}")]
    File { path: PathBuf, cause: io::Error },
    #[error("{path} cannot be unpacked: {cause}")]
    Vmlinux { path: PathBuf, cause: VmlinuxError },
    #[error(transparent)]
    Modules(#[from] ModulesError),
    #[error("the kernel {kernel} has no module {}", .modules.join(", "))]
    NoModule { kernel: String, modules: Vec<String> },
    #[error("the libraries of {program} are not known: {problem}")]
    Libraries { program: PathBuf, problem: String },
    #[error(transparent)]
    Boot(#[from] BootError),
}
