//! QEMU: kernels that are not user-mode Linux, such as a distribution's own. With KVM where KVM really works, else
//! emulated: about fifteen times slower than user-mode Linux, for correctness and newer kernels.
//!
//! The kernel is taken out of its compressed image once and cached, as is the initramfs with the agent. A guest has
//! nothing of the host but what is put into its initramfs.

mod command;
mod cpio;
mod initramfs;
mod kvm;
mod modules;
mod vmlinux;

pub use kvm::{Kvm, probe as probe_kvm};
pub use modules::ModulesError;
pub use vmlinux::VmlinuxError;

use crate::guest::{BootError, Console, Ending, Guest, Started, Waiting, Watch};
use crate::kernel::{Flavour, Kernel};
use crate::process::{Launch, ProcessEnd, Writable};
use modules::Set;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// With KVM a guest says hello in about two seconds; one that has not by then is hanging on a KVM that is broken.
const KVM_HELLO_LIMIT: Duration = Duration::from_secs(10);

/// The exit status of QEMU when pvpanic reported a panic (`-action panic=exit-failure`).
const PANIC_STATUS: i32 = 1;

/// What runs the guest's instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Accelerator {
    /// KVM where a probe shows that it works, else emulation.
    #[default]
    Auto,
    /// KVM.
    Kvm,
    /// QEMU's own emulation.
    Tcg,
}

/// What to boot.
#[derive(Debug, Clone)]
pub struct QemuSpec {
    /// The kernel.
    pub kernel: Kernel,
    /// The binary that is to be process 1; it calls [`crate::agent::main`].
    pub agent: PathBuf,
    /// Programs of the host that are to be in the guest, at the same paths.
    pub programs: Vec<PathBuf>,
    /// Memory of the guest, bytes.
    pub memory_bytes: u64,
    /// Sockets of disks: /dev/vda, /dev/vdb, …
    pub disks: Vec<PathBuf>,
    /// Modules to have in the guest, and to load before hello; those for the channel and the disks are added.
    pub modules: Vec<String>,
    /// Modules that those ask the kernel's crypto layer for by name, which only a modprobe in the guest could answer. They
    /// are loaded first; what a kernel does not have as a module it has built in, or does not need.
    pub asked_by_name: Vec<String>,
    /// What runs its instructions.
    pub accelerator: Accelerator,
    /// An existing directory of this guest's own.
    pub directory: PathBuf,
    /// Where unpacked kernels and initramfs are kept; made when missing.
    pub cache: PathBuf,
    /// How patient to be.
    pub watch: Watch,
}

/// Why there is no guest; completes "failed to boot a guest: …".
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    /// The kernel is user-mode Linux, which runs by itself.
    #[error("{0} is no kernel for QEMU")]
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

    /// Boots it and waits for its hello.
    pub fn boot(&self) -> Result<Guest, QemuError> {
        let since = Instant::now();
        let emulator = emulator().ok_or(QemuError::NoEmulator)?;
        let (vmlinux, initramfs) = self.prepare()?;
        let with_kvm = match self.accelerator {
            Accelerator::Auto => probe_kvm() == Kvm::Works,
            Accelerator::Kvm => true,
            Accelerator::Tcg => false,
        };
        let start = |kvm: bool, watch: Watch| self.start(&emulator, &vmlinux, &initramfs, kvm, watch, since);
        if with_kvm && self.accelerator == Accelerator::Auto {
            let limit = self.watch.hello_limit.min(since.elapsed() + KVM_HELLO_LIMIT);
            match start(true, Watch { hello_limit: limit, ..self.watch }) {
                // The probe was too kind.
                Err(QemuError::Boot(BootError::NotUp { ending, .. }))
                    if matches!(*ending, Ending::Hung { waiting: Waiting::Hello, .. }) => {}
                other => return other,
            }
            return start(false, Watch { hello_limit: self.watch.hello_limit + limit, ..self.watch });
        }
        start(with_kvm, self.watch)
    }

    /// Makes what the guest starts from, unless it has been made before; `boot` does it by itself.
    pub fn prepare(&self) -> Result<(PathBuf, PathBuf), QemuError> {
        if self.kernel.flavour != Flavour::Qemu {
            return Err(QemuError::Flavour(self.kernel.name()));
        }
        let file = |path: &Path| {
            let path = path.to_owned();
            move |cause| QemuError::File { path, cause }
        };
        fs::create_dir_all(&self.cache).map_err(file(&self.cache))?;
        let cache = fs::canonicalize(&self.cache).map_err(file(&self.cache))?;
        let vmlinux = cache.join(format!("vmlinux-{:08x}", fingerprint([&self.kernel.binary])?));
        if !vmlinux.is_file() {
            let image = fs::read(&self.kernel.binary).map_err(file(&self.kernel.binary))?;
            let unpacked = vmlinux::extract(&image)
                .map_err(|cause| QemuError::Vmlinux { path: self.kernel.binary.clone(), cause })?;
            let partial = vmlinux.with_extension("new");
            fs::write(&partial, unpacked).and_then(|()| fs::rename(&partial, &vmlinux)).map_err(file(&vmlinux))?;
        }
        let modules = self.all_modules();
        let inputs = [&self.agent, &self.kernel.binary].into_iter().chain(&self.programs);
        let key = fingerprint(inputs)? ^ checksum(modules.join(",").as_bytes());
        let initramfs = cache.join(format!("initramfs-{key:08x}.cpio"));
        if !initramfs.is_file() {
            let set = match &self.kernel.modules {
                Some(directory) => Set::collect(directory, &modules)?,
                None => Set::default(),
            };
            // Drivers may be built in without being listed; what was asked for explicitly may not be missing.
            let missing: Vec<String> = set.missing.iter().filter(|name| self.modules.contains(name)).cloned().collect();
            if !missing.is_empty() {
                return Err(QemuError::NoModule { kernel: self.kernel.name(), modules: missing });
            }
            initramfs::write(&initramfs, &self.agent, &self.programs, &set)?;
            forget_old(&cache);
        }
        Ok((vmlinux, initramfs))
    }

    /// The drivers of the channel, the disks and the panic device, then what was asked for.
    fn all_modules(&self) -> Vec<String> {
        let drivers = ["virtio_pci", "virtio_console", "virtio_blk", "pvpanic_pci"];
        let asked = self.asked_by_name.iter().chain(&self.modules).map(|name| name.replace('-', "_"));
        drivers.into_iter().map(str::to_owned).chain(asked).collect()
    }

    fn start(
        &self,
        emulator: &Path,
        vmlinux: &Path,
        initramfs: &Path,
        kvm: bool,
        watch: Watch,
        since: Instant,
    ) -> Result<Guest, QemuError> {
        let host = |what: &str| BootError::host(what.to_owned());
        let directory = fs::canonicalize(&self.directory)
            .map_err(BootError::host(format!("enter {}", self.directory.display())))?;
        let argv = command::argv(self, emulator, vmlinux, initramfs, kvm)?;
        let console_log = directory.join("console.log");
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(io::Error::from)
            .map_err(host("make a socket"))?;
        let (console_output, console_input) =
            pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from).map_err(host("make a pipe"))?;
        let console = Console::drain(fs::File::from(console_output), &console_log)
            .map_err(BootError::host(format!("write {}", console_log.display())))?;
        let null = fs::File::open("/dev/null").map_err(host("open /dev/null"))?;
        let errors = console_input.try_clone().map_err(host("duplicate a descriptor"))?;
        let from_guest = ours.try_clone().map_err(host("duplicate a descriptor"))?;
        let launch = Launch {
            program: emulator.to_owned(),
            argv,
            environment: vec![("PATH".to_owned(), "/usr/sbin:/usr/bin:/sbin:/bin".into())],
            writable: Some(
                [Path::new("/dev/null"), Path::new("/dev/kvm"), &directory]
                    .map(|path| Writable::Below(path.to_owned()))
                    .to_vec(),
            ),
            directory,
            descriptors: vec![(null.into(), 0), (console_input, 1), (errors, 2), (theirs, command::CHANNEL)],
            fixed_addresses: false,
            mounts_apart: false,
        };
        let process = launch.spawn().map_err(BootError::from)?;
        let started = Started {
            process,
            to_guest: ours,
            from_guest,
            console,
            console_log,
            watch,
            panic_end: ProcessEnd::Exited(PANIC_STATUS),
            since,
        };
        Ok(Guest::attach(started)?)
    }
}

/// The emulator, if it is installed.
#[must_use]
pub fn emulator() -> Option<PathBuf> {
    ["/usr/bin/qemu-system-x86_64", "/usr/local/bin/qemu-system-x86_64"]
        .map(PathBuf::from)
        .into_iter()
        .find(|path| path.is_file())
}

/// How many initramfs are kept: each has the whole agent in it, and there is a new one for every build of that.
const INITRAMFS_KEPT: usize = 8;

/// Removes all but the newest initramfs. One that another run is just starting from stays open there.
fn forget_old(cache: &Path) {
    let entries = fs::read_dir(cache).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("initramfs-"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    found.sort();
    let surplus = found.len().saturating_sub(INITRAMFS_KEPT);
    for (_, path) in &found[..surplus] {
        // It can stay; the next one tries again.
        let _ = fs::remove_file(path);
    }
}

/// A number that changes with any of these files' path, size or modification time.
fn fingerprint<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<u32, QemuError> {
    let mut text = String::new();
    for path in paths {
        let error = |cause| QemuError::File { path: path.clone(), cause };
        let data = fs::metadata(path).map_err(error)?;
        text.push_str(&format!("{} {} {:?}\n", path.display(), data.len(), data.modified().map_err(error)?));
    }
    Ok(checksum(text.as_bytes()))
}

fn checksum(bytes: &[u8]) -> u32 {
    crate::frames::Crc32::new().add(bytes).value()
}
