//! A process that dies with everything it started: in namespaces of its own where the host allows that, else as a
//! process group. A guest's process also sees and changes only what it needs.
//!
//! Its limits are computed before it is started (`limits`, from `root`, `rights` and `filter`) and applied between clone and exec (`spawn`).

mod error;
mod filter;
mod limits;
mod rights;
mod root;
mod spawn;

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

pub use error::SpawnError;
pub(crate) use rights::lend;
pub(crate) use spawn::{Addresses, Launch, Supervised};
pub use spawn::{Confinement, ProcessEnd};

/// What a guest's process has of the host, besides the host's programs and libraries, its own directory, and the descriptors that it is
/// given. Read-only unless a field says otherwise.
#[derive(Debug, Default, Clone)]
pub(crate) struct Confined {
    /// The kernel, the agent and what they need, at their own paths. What is not there is passed over.
    pub(crate) needed: Vec<PathBuf>,
    /// Other files and directories, to read if its user may.
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    /// A directory in its own one for what it says to fstone, and for its control files.
    pub(crate) outputs: Option<&'static str>,
    /// A directory in its own one that is in memory, and for how many bytes: user-mode Linux keeps the guest's memory there.
    pub(crate) memory: Option<(&'static str, u64)>,
    /// Whether it may trace processes, which is how user-mode Linux runs those of its guest.
    pub(crate) may_trace: bool,
}

/// What a guest may write into its directory for outputs, bytes: results and questions are some megabytes.
const OUTPUT_BYTES: u64 = 256 << 20;

fn c_string(text: impl AsRef<OsStr>) -> io::Result<CString> {
    Ok(CString::new(text.as_ref().as_bytes())?)
}
