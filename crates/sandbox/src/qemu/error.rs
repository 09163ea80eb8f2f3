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
    /// The emulator is missing.
    #[error("qemu-system-x86_64 is not installed (apt-get install --no-install-recommends qemu-system-x86)")]
    NoEmulator,
    /// A file.
    #[error("{path}: {cause}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The kernel could not be unpacked.
    #[error("{path} cannot be unpacked: {cause}")]
    Vmlinux {
        /// The image.
        path: PathBuf,
        /// Why.
        cause: VmlinuxError,
    },
    /// Its modules could not be collected.
    #[error(transparent)]
    Modules(#[from] ModulesError),
    /// The kernel lacks modules.
    #[error("the kernel {kernel} has no module {}", .modules.join(", "))]
    NoModule {
        /// Its name.
        kernel: String,
        /// Those it lacks.
        modules: Vec<String>,
    },
    /// A program's libraries could not be found.
    #[error("the libraries of {program} are not known: {problem}")]
    Libraries {
        /// The program.
        program: PathBuf,
        /// What its loader said.
        problem: String,
    },
    /// It was started and did not come up, or could not be started.
    #[error(transparent)]
    Boot(#[from] BootError),
}
