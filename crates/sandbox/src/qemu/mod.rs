//! QEMU: kernels that are not user-mode Linux, such as a distribution's own. With KVM where KVM really works, else
//! emulated: about fifteen times slower than user-mode Linux, for correctness and newer kernels.
//!
//! The kernel is taken out of its compressed image once and cached, as is the initramfs with the agent. A guest has
//! nothing of the host but what is put into its initramfs.

mod command;
mod cpio;
mod error;
mod initramfs;
mod kvm;
mod modules;
mod spec;
mod vmlinux;

pub use error::QemuError;
pub use kvm::{Kvm, probe as probe_kvm};
pub use modules::ModulesError;
pub use spec::{Accelerator, QemuSpec};
pub use vmlinux::VmlinuxError;

use crate::guest::{BootError, Console, Ending, Guest, Started, Waiting, Watch};
use crate::kernel::Flavour;
use crate::process::{Addresses, Confined, Launch, ProcessEnd};
use fstone_files::Temporary;
use modules::Set;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// With KVM a guest says hello in about two seconds; one that has not by then is hanging on a KVM that is broken.
const KVM_HELLO_LIMIT: Duration = Duration::from_secs(10);

/// The exit status of QEMU when pvpanic reported a panic (`-action panic=exit-failure`).
const PANIC_STATUS: i32 = 1;

impl QemuSpec {
    pub fn boot(&self) -> Result<Guest, QemuError> {
        let since = Instant::now();
        let emulator = emulator().ok_or(QemuError::NoEmulator)?;
        let (vmlinux, initramfs) = self.prepare()?;
        let start = |kvm: bool, watch: Watch| self.start(&emulator, &vmlinux, &initramfs, kvm, watch, since);
        if self.accelerator == Accelerator::Auto && probe_kvm() == Kvm::Works {
            let limit = self.watch.hello_limit.min(since.elapsed() + KVM_HELLO_LIMIT);
            match start(true, Watch { hello_limit: limit, ..self.watch }) {
                // The probe was too kind.
                Err(QemuError::Boot(BootError::NotUp { ending, .. }))
                    if matches!(*ending, Ending::Hung { waiting: Waiting::Hello, .. }) => {}
                other => return other,
            }
            return start(false, Watch { hello_limit: self.watch.hello_limit + limit, ..self.watch });
        }
        start(false, self.watch)
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
            let written = Temporary::owned(&vmlinux, None).and_then(|temporary| {
                temporary.file().write_all(&unpacked)?;
                // Guests run as another user, who reads it without a copy.
                temporary.file().set_permissions(fs::Permissions::from_mode(0o644))?;
                temporary.replace(&vmlinux)
            });
            written.map_err(file(&vmlinux))?;
        }
        let modules = self.all_modules();
        let inputs = [&self.agent, &self.kernel.binary].into_iter().chain(&self.programs);
        let key = fingerprint(inputs)? ^ crc32fast::hash(modules.join(",").as_bytes());
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
            confined: Some(Confined {
                needed: vec![emulator.to_owned(), vmlinux.to_owned(), initramfs.to_owned()],
                writable: if kvm { vec!["/dev/kvm".into()] } else { Vec::new() },
                ..Confined::default()
            }),
            directory,
            descriptors: vec![(null.into(), 0), (console_input, 1), (errors, 2), (theirs, command::CHANNEL)],
            addresses: Addresses::Random,
            mounts_apart: false,
            ipc_apart: false,
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
    Ok(crc32fast::hash(text.as_bytes()))
}
