//! What QEMU is to boot.

use crate::guest::Watch;
use crate::kernel::Kernel;
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Accelerator {
    /// KVM where a probe shows that it works, else emulation.
    #[default]
    Auto,
    Tcg,
}

#[derive(Debug, Clone)]
pub struct QemuSpec {
    pub kernel: Kernel,
    /// The binary that is to be process 1; it calls [`crate::agent::main`].
    pub agent: PathBuf,
    /// Programs of the host that are to be in the guest, at the same paths.
    pub programs: Vec<PathBuf>,
    pub memory_bytes: u64,
    /// Sockets of disks: /dev/vda, /dev/vdb, …
    pub disks: Vec<PathBuf>,
    /// Modules to have in the guest, and to load before hello; those for the channel and the disks are added.
    pub modules: Vec<String>,
    /// Modules that those ask the kernel for by name (algorithms, character sets), which only a modprobe in the guest could answer. They
    /// are loaded first; what a kernel does not have as a module it has built in, or does not need.
    pub asked_by_name: Vec<String>,
    pub accelerator: Accelerator,
    /// An existing directory of this guest's own.
    pub directory: PathBuf,
    /// Where unpacked kernels and initramfs are kept; made when missing.
    pub cache: PathBuf,
    pub watch: Watch,
}

impl QemuSpec {
    /// A guest with 256 MiB and no disk, however it can be run.
    pub fn new(
        kernel: Kernel,
        agent: impl Into<PathBuf>,
        directory: impl Into<PathBuf>,
        cache: impl Into<PathBuf>,
    ) -> Self {
        Self {
            kernel,
            agent: agent.into(),
            programs: Vec::new(),
            memory_bytes: 256 << 20,
            disks: Vec::new(),
            modules: Vec::new(),
            asked_by_name: Vec::new(),
            accelerator: Accelerator::Auto,
            directory: directory.into(),
            cache: cache.into(),
            watch: Watch::QEMU,
        }
    }

    /// The drivers of the channel, the disks and the panic device, then what was asked for.
    pub(super) fn all_modules(&self) -> Vec<String> {
        let drivers = ["virtio_pci", "virtio_console", "virtio_blk", "pvpanic_pci"];
        let asked = self.asked_by_name.iter().chain(&self.modules).map(|name| name.replace('-', "_"));
        drivers.into_iter().map(str::to_owned).chain(asked).collect()
    }
}
