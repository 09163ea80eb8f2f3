//! Mounting through the kernel's new mount interface, which says why it refuses.
//!
//! [`Mounter`] is the border; [`KernelMounter`] is real (fsopen, fsconfig, fsmount, move_mount), `FakeMounter` is for
//! tests.

#[cfg(any(test, feature = "fakes"))]
mod fake;
mod kernel;
mod messages;
mod mountinfo;
mod options;
mod trim;

#[cfg(any(test, feature = "fakes"))]
pub use fake::FakeMounter;
pub use kernel::KernelMounter;
pub(crate) use mountinfo::parse as parse_mountinfo;
pub use mountinfo::{MountEntry, read_mountinfo};
pub use options::{MountOption, MountOptions};

use std::{
    io,
    path::{Path, PathBuf},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountRequest {
    pub source: PathBuf,
    pub kernel_name: String,
    /// Comma-separated options, as a study writes them.
    pub options: String,
    /// An existing directory.
    pub target: PathBuf,
}

impl MountRequest {
    pub fn argv(&self) -> Vec<String> {
        let mut argv: Vec<String> = ["mount", "-t", &self.kernel_name].map(str::to_owned).into();
        if !self.options.is_empty() {
            argv.extend(["-o".to_owned(), self.options.clone()]);
        }
        argv.extend([self.source.display().to_string(), self.target.display().to_string()]);
        argv
    }
}

/// Why a filesystem is not mounted; completes "failed to mount: ".
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    #[error("the running kernel has no {kernel_name}")]
    UnknownFilesystem { kernel_name: String },
    /// The kernel does not know or does not accept an option, or a feature that mkfs turned on.
    #[error("{words}")]
    Refused {
        /// The option, when one alone was refused.
        option: Option<String>,
        /// The kernel's own words, or the errno's where it says nothing.
        words: String,
    },
    #[error("{call}: {words}")]
    Failed { call: &'static str, errno: i32, words: String },
}

/// Why something is still mounted; completes "failed to unmount: ".
#[derive(Debug, thiserror::Error)]
pub enum UnmountError {
    #[error("{}: still in use{}", target.display(), holders(.by))]
    Busy {
        target: PathBuf,
        /// Who uses it, as far as can be seen: "tar (1234)".
        by: Vec<String>,
    },
    #[error("{}: {cause}", target.display())]
    Failed { target: PathBuf, cause: io::Error },
}

fn holders(by: &[String]) -> String {
    if by.is_empty() { String::new() } else { format!(" by {}", by.join(", ")) }
}

pub trait Mounter: Send + Sync {
    /// Mounts a filesystem.
    ///
    /// # Errors
    /// [`MountError`]; nothing is mounted then.
    fn mount(&self, request: &MountRequest) -> Result<(), MountError>;

    /// Unmounts what is mounted last on this directory. Waits for a while when it is in use; never detaches lazily.
    ///
    /// # Errors
    /// [`UnmountError`]; it is still mounted then.
    fn unmount(&self, target: &Path) -> Result<(), UnmountError>;

    /// Every mount that this process can see, in the order they were made.
    fn mounts(&self) -> io::Result<Vec<MountEntry>>;

    /// Makes everything written durable, and drops the page, dentry and inode caches.
    ///
    /// # Errors
    /// EACCES without root.
    fn drop_caches(&self) -> io::Result<()>;

    /// Makes everything written on any filesystem durable, as sync(2) does.
    ///
    /// # Errors
    /// Those of [`Self::flush`].
    fn sync(&self, target: &Path) -> io::Result<()>;

    /// Makes everything written to one mounted filesystem durable.
    ///
    /// # Errors
    /// What syncfs(2) gives: EIO, ENOSPC or EDQUOT also for data that could not be written back earlier, which no other
    /// call, and above all no unmount, would tell.
    fn flush(&self, target: &Path) -> io::Result<()>;

    /// Discards the free space of a mounted filesystem.
    ///
    /// # Errors
    /// EOPNOTSUPP or ENOTTY where filesystem or device cannot.
    fn trim(&self, target: &Path) -> io::Result<()>;

    /// An agent with mounts of its own has ended, and they with it. The kernel knows; a fake has to be told.
    fn namespace_ended(&self) {}

    fn kernel_has(&self, kernel_name: &str) -> bool;
}
