//! What user-mode Linux is to boot.

use crate::agent::settings::Settings;
use crate::guest::Watch;
use std::path::PathBuf;

/// Guest memory below this does not boot, bytes.
pub const MIN_MEMORY_BYTES: u64 = 64 << 20;

/// Guest memory above this is surely a mistake, bytes.
pub const MAX_MEMORY_BYTES: u64 = 64 << 30;

/// Most disks of a guest; each is one command-line word.
pub const MAX_DISKS: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UmlKernel {
    pub binary: PathBuf,
    pub modules: Option<PathBuf>,
    /// A C library newer than the host's, that came with the kernel: the directory with `ld-linux-x86-64.so.2` and
    /// `libc.so.6`. The executable's interpreter then is `ld.so`, which is linked into each guest's directory.
    pub libraries: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UmlDisk {
    /// Served at this vhost-user socket; `/dev/vda`, `/dev/vdb`, … in this order. Needs the module virtio_blk.
    VhostUser(PathBuf),
    /// An image under the kernel's own driver; `/dev/ubda`, … Flushes never arrive.
    Ubd(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UmlSpec {
    pub kernel: UmlKernel,
    /// The binary that is to be process 1, usually the running one; it calls [`crate::agent::main`].
    pub agent: PathBuf,
    /// Further arguments of the agent, without blanks.
    pub agent_arguments: Vec<String>,
    pub memory_bytes: u64,
    pub disks: Vec<UmlDisk>,
    /// Modules to load before hello; virtio_blk is added where a disk needs it.
    pub modules: Vec<String>,
    /// Files and directories of the host to have in the guest, read-only, besides the host's programs and settings.
    pub readable: Vec<PathBuf>,
    /// Files of the host to have in the guest even if the user that it runs as may not read them.
    pub needed: Vec<PathBuf>,
    /// An existing directory of this guest's own: its console log, its sockets, its control files.
    pub directory: PathBuf,
    pub watch: Watch,
}

impl UmlSpec {
    /// A guest with 256 MiB and no disk.
    pub fn new(kernel: UmlKernel, agent: impl Into<PathBuf>, directory: impl Into<PathBuf>) -> Self {
        Self {
            kernel,
            agent: agent.into(),
            agent_arguments: Vec::new(),
            memory_bytes: 256 << 20,
            disks: Vec::new(),
            modules: Vec::new(),
            readable: Vec::new(),
            needed: Vec::new(),
            directory: directory.into(),
            watch: Watch::UML,
        }
    }

    pub(super) fn settings(&self) -> Settings {
        let mut load = self.modules.clone();
        if self.disks.iter().any(|disk| matches!(disk, UmlDisk::VhostUser(_))) {
            load.insert(0, "virtio_blk".to_owned());
        }
        Settings { channel: "/dev/ttyS0".to_owned(), modules: self.kernel.modules.clone(), load }
    }
}
