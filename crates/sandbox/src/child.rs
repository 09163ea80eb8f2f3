//! The agent without a kernel of its own: a child process on the host's.
//!
//! For root it lives in a pid and a mount namespace of its own, for others, who cannot mount anyway, in a pid namespace
//! where the host allows that. The namespaces are what undoes: when the child dies, or fstone does, the kernel ends every
//! process in them and unmounts what was mounted there.

use crate::agent::{CHILD_CHANNEL, CHILD_WORD};
use crate::guest::{BootError, Console, Guest, Started, Watch};
use crate::process::{Addresses, Launch, ProcessEnd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildSpec {
    /// The binary that is the agent, usually the running one; it calls [`crate::agent::main`].
    pub agent: PathBuf,
    pub watch: Watch,
    /// Whether shared memory and semaphores of System V, which programs leave when they are killed, end with it. Not for what works
    /// with the machine's device mapper: its programs meet udev at such a semaphore.
    pub ipc_apart: bool,
}

impl ChildSpec {
    pub fn new(agent: impl Into<PathBuf>) -> Self {
        Self { agent: agent.into(), watch: Watch::CHILD, ipc_apart: false }
    }

    pub fn start(&self) -> Result<Guest, BootError> {
        let since = Instant::now();
        let (ours, its) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(io::Error::from)
            .map_err(BootError::host("make a pair of sockets"))?;
        let (output, input) =
            pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from).map_err(BootError::host("make a pipe"))?;
        let null = File::open("/dev/null").map_err(BootError::host("open /dev/null"))?;
        // What it says is kept in memory; there is no kernel whose log somebody would want to read.
        let console = Console::drain(File::from(output), Path::new("/dev/null"))
            .map_err(BootError::host("listen to the agent"))?;
        let duplicate = || BootError::host("duplicate a descriptor");
        let from_child = ours.try_clone().map_err(duplicate())?;
        let errors = input.try_clone().map_err(duplicate())?;
        let environment =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
        let launch = Launch {
            program: self.agent.clone(),
            argv: vec![self.agent.clone().into_os_string(), CHILD_WORD.into()],
            environment,
            directory: std::env::current_dir().map_err(BootError::host("find the working directory"))?,
            descriptors: vec![(null.into(), 0), (input, 1), (errors, 2), (its, CHILD_CHANNEL)],
            // It formats and mounts, as nobody else here does.
            confined: None,
            addresses: Addresses::Random,
            mounts_apart: rustix::process::geteuid().is_root(),
            ipc_apart: self.ipc_apart,
        };
        let process = launch.spawn()?;
        Guest::attach(Started {
            process,
            to_guest: ours,
            from_guest: from_child,
            console,
            console_log: PathBuf::from("/dev/null"),
            watch: self.watch,
            // No way of ending means that a kernel panicked.
            panic_end: ProcessEnd::Signalled(0),
            since,
        })
    }
}
