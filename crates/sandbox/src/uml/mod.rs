//! User-mode Linux: a real kernel as an ordinary process of an ordinary user, up in about a second.
//!
//! The guest's root is the host's, read-only through hostfs, so the agent is the running binary itself and every
//! tool of the host is there. Disks come over vhost-user from [`crate::vhost`]; the built-in `ubd` drops
//! flushes (no fsync reaches the image, in any version from 5.10 to 6.12) and is there for tests.

mod command;
mod shim;
mod spec;

pub(crate) use command::{CONTROL, HOST_AS_ROOT};
pub(crate) use shim::Preloads;
pub use spec::{MAX_DISKS, MAX_MEMORY_BYTES, MIN_MEMORY_BYTES, UmlDisk, UmlKernel, UmlSpec};

use crate::guest::{BootError, Console, Guest, Started};
use crate::kernel::{LOADER, LOADER_LINK};
use crate::process::{Addresses, Confined, Launch, ProcessEnd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// SIGABRT: how user-mode Linux ends after a panic.
const ABORT: i32 = 6;

impl UmlSpec {
    pub fn boot(&self) -> Result<Guest, BootError> {
        let since = Instant::now();
        let directory = fs::canonicalize(&self.directory)
            .map_err(BootError::host(format!("enter {}", self.directory.display())))?;
        let (program, argv) = command::argv(self)?;
        let console_log = directory.join("console.log");
        let preloads =
            shim::needed(command::FREE_DESCRIPTOR).map_err(BootError::host("make the libraries that are preloaded"))?;
        if let Some(libraries) = &self.kernel.libraries {
            let link = directory.join(LOADER_LINK);
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(libraries.join(LOADER), &link)
                .map_err(BootError::host(format!("make {}", link.display())))?;
        }
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from).map_err(BootError::host("make a pipe"));
        let (guest_input, to_guest) = pipe()?;
        let (from_guest, guest_output) = pipe()?;
        let (console_output, console_input) = pipe()?;
        let null = fs::File::open("/dev/null").map_err(BootError::host("open /dev/null"))?;
        let console = Console::drain(fs::File::from(console_output), &console_log)
            .map_err(BootError::host(format!("write {}", console_log.display())))?;
        let errors = console_input.try_clone().map_err(BootError::host("duplicate a descriptor"))?;
        let mut descriptors = vec![
            (null.into(), 0),
            (console_input, 1),
            (errors, 2),
            (guest_input, command::GUEST_INPUT),
            (guest_output, command::GUEST_OUTPUT),
        ];
        let environment = environment(&directory, preloads.names(), self.kernel.libraries.as_deref());
        descriptors.extend(preloads.libraries);
        let launch = Launch {
            program,
            argv,
            environment,
            // Beside the memory that it was given, the kernel manages what lies between its break and its stack, which at
            // random is up to 1 GiB: guests would have 450 to 504 of 512 MiB.
            addresses: Addresses::FixedIfAllowed,
            confined: Some(self.confined()),
            directory,
            descriptors,
            mounts_apart: false,
            ipc_apart: false,
        };
        let process = launch.spawn()?;
        let started = Started {
            process,
            to_guest,
            from_guest,
            console,
            console_log,
            watch: self.watch,
            panic_end: ProcessEnd::Signalled(ABORT),
            since,
        };
        Guest::attach(started)
    }

    fn confined(&self) -> Confined {
        let images = self.disks.iter().filter_map(|disk| match disk {
            UmlDisk::Ubd(image) => Some(image.clone()),
            UmlDisk::VhostUser(_) => None,
        });
        let kernel = &self.kernel;
        // The registry that names these may be another user's.
        let named = kernel.modules.iter().chain(&kernel.libraries);
        Confined {
            needed: [&self.agent, &kernel.binary].into_iter().chain(&self.needed).cloned().collect(),
            readable: named.chain(&self.readable).cloned().collect(),
            writable: images.collect(),
            ..confined(self.memory_bytes)
        }
    }
}

/// A directory in the guest's own one, in memory: user-mode Linux keeps the guest's memory in a deleted file.
const MEMORY: &str = "memory";

/// The same from within. As long as "/dev/shm", which is where it usually is: see [`crate::exact`] on lengths.
const MEMORY_FROM_WITHIN: &str = "./memory";

pub(crate) fn confined(memory_bytes: u64) -> Confined {
    Confined {
        outputs: Some(command::CONTROL),
        memory: Some((MEMORY, memory_bytes + (16 << 20))),
        may_trace: true,
        ..Confined::default()
    }
}

pub(crate) fn environment(
    directory: &Path,
    preload: Option<OsString>,
    libraries: Option<&Path>,
) -> Vec<(String, OsString)> {
    let mut environment = vec![
        ("PATH".to_owned(), "/usr/sbin:/usr/bin:/sbin:/bin".into()),
        ("TMPDIR".to_owned(), MEMORY_FROM_WITHIN.into()),
        ("HOME".to_owned(), directory.into()),
    ];
    environment.extend(preload.map(|libraries| ("LD_PRELOAD".to_owned(), libraries)));
    environment.extend(libraries.map(|libraries| ("LD_LIBRARY_PATH".to_owned(), libraries.into())));
    environment
}

pub(crate) fn seeded_preloads(first: i32) -> io::Result<Preloads> {
    shim::seeded(first)
}

pub fn installed_kernel() -> Option<UmlKernel> {
    let binary =
        ["/usr/bin/linux.uml", "/usr/local/bin/linux.uml"].map(PathBuf::from).into_iter().find(|p| p.is_file())?;
    let modules = fs::read_dir("/usr/lib/uml/modules").ok().and_then(|entries| {
        let mut directories: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        directories.sort();
        directories.pop().filter(|path| path.join("modules.dep").is_file())
    });
    Some(UmlKernel { binary, modules, libraries: None })
}
