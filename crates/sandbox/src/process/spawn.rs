//! Starting a process in its confinement, and reaping it.

#![expect(unsafe_code, reason = "clone with namespaces, and what has to happen between it and exec")]

use super::error::SpawnError;
use super::limits::{Limits, SharedMemory, make_own_places};
use super::{Confined, filter};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What keeps a guest's processes together, and apart from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// Namespaces for everything: besides those of its processes, it has a root, a network and System V objects of its own.
    Apart,
    /// A pid namespace: nothing in it outlives its first process, not even after `kill -9` of fstone.
    Namespace,
    /// A process group, because the host refuses namespaces; killed as a whole, but a guest may outlive a
    /// `kill -9` of fstone by what it started itself.
    ProcessGroup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    Exited(i32),
    Signalled(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addresses {
    Random,
    /// The same each time, where the host allows that: a container's seccomp profile may refuse it.
    FixedIfAllowed,
    /// The same each time, or the program is not started.
    Fixed,
}

#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    /// With argv[0].
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: Vec<(String, OsString)>,
    pub(crate) directory: PathBuf,
    /// Descriptors the program gets, as (ours, the number it has there). Nothing else is inherited.
    pub(crate) descriptors: Vec<(OwnedFd, i32)>,
    pub(crate) addresses: Addresses,
    /// What it is limited to; `None` when it has the rights of its user.
    pub(crate) confined: Option<Confined>,
    /// Whether it has mounts of its own, which are gone with it. Takes root; what is mounted or unmounted outside is so
    /// inside as well, and never the other way round.
    pub(crate) mounts_apart: bool,
    /// Whether its System V objects and message queues are gone with it, too, where the kernel can do that.
    pub(crate) ipc_apart: bool,
}

/// A started program. It is killed, with all its descendants, when this is dropped.
///
/// A thread of its own starts and reaps it, because "die with the parent" means the parent *thread*.
#[derive(Debug)]
pub(crate) struct Supervised {
    pid: Pid,
    pidfd: OwnedFd,
    confinement: Confinement,
    not_enforced: Option<String>,
    directory: PathBuf,
    /// The same directory in its root, if it has one of its own.
    own: Option<OwnedFd>,
    ended: OwnedFd,
    keeper: Option<thread::JoinHandle<ProcessEnd>>,
    end: Option<ProcessEnd>,
}

impl Launch {
    pub(crate) fn spawn(self) -> Result<Supervised, SpawnError> {
        let resource = |what| move |error: Errno| SpawnError::Resource { what, cause: error.into() };
        let (ended, ended_signal) = pipe_with(PipeFlags::CLOEXEC).map_err(resource("make a pipe"))?;
        let (answer, started) = mpsc::channel();
        let directory = self.directory.clone();
        let keeper = thread::Builder::new()
            .name("guest-keeper".to_owned())
            .spawn(move || {
                let started = self.start().and_then(|started| {
                    let keep = started.pidfd.try_clone().map_err(|cause| {
                        kill_all(started.pid, &started.pidfd);
                        SpawnError::Resource { what: "keep the process's handle", cause }
                    })?;
                    Ok((started, keep))
                });
                let (pid, keep, _memory) = match started {
                    Ok((mut started, keep)) => {
                        let (pid, memory) = (started.pid, started.memory.take());
                        let _ = answer.send(Ok(started));
                        (pid, keep, memory)
                    }
                    Err(error) => {
                        let _ = answer.send(Err(error));
                        return ProcessEnd::Exited(127);
                    }
                };
                let end = reap(pid, &keep);
                drop(ended_signal);
                end
            })
            .map_err(|cause| SpawnError::Resource { what: "start a thread", cause })?;
        // The keeper answers before it does anything that could wait.
        let Running { pid, pidfd, confinement, not_enforced, own, .. } = started.recv().map_err(|_| {
            SpawnError::Resource { what: "start the keeper", cause: io::Error::other("its thread died") }
        })??;
        Ok(Supervised { pid, pidfd, confinement, not_enforced, directory, own, ended, keeper: Some(keeper), end: None })
    }

    /// Runs on the keeper thread.
    fn start(mut self) -> Result<Running, SpawnError> {
        const PIDS: libc::c_int = libc::CLONE_NEWPID;
        const ALL: libc::c_int =
            PIDS | libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
        let confined = self.confined.take();
        // Root needs no user namespace to make others, and could map nobody but itself into it.
        let user = if rustix::process::geteuid().is_root() { 0 } else { libc::CLONE_NEWUSER };
        let ipc = if self.ipc_apart { libc::CLONE_NEWIPC } else { 0 };
        let attempts = match &confined {
            Some(_) => vec![ALL | user, PIDS | user, 0],
            // Without the namespace its mounts would be the host's, and stay.
            None if self.mounts_apart => {
                let mounts = PIDS | libc::CLONE_NEWNS;
                vec![mounts | ipc, mounts]
            }
            None => vec![PIDS | user | ipc, PIDS | user, 0],
        };
        if let Some(confined) = &confined {
            make_own_places(confined, &self.directory)
                .map_err(|cause| SpawnError::Resource { what: "prepare the guest's directory", cause })?;
        }
        let mut prepared = Prepared::new(self)?;
        let mut memory = None;
        let mut last = None;
        for flags in attempts {
            let confinement = match flags {
                0 => Confinement::ProcessGroup,
                _ if confined.is_some() && flags & libc::CLONE_NEWNS != 0 => Confinement::Apart,
                _ => Confinement::Namespace,
            };
            if let Some(confined) = &confined {
                if confinement != Confinement::Apart && memory.is_none() {
                    memory = SharedMemory::make(confined, &prepared.own)
                        .map_err(|cause| SpawnError::Resource { what: "make a directory in shared memory", cause })?;
                }
                let program = Path::new(OsStr::from_bytes(prepared.program.as_bytes()));
                let apart = confinement == Confinement::Apart;
                prepared.limits = Some(Limits::new(confined, (&prepared.own, program), apart, memory.as_ref())?);
            }
            match prepared.clone_and_exec(flags) {
                Ok((pid, pidfd, own)) => {
                    let not_enforced = prepared.limits.as_ref().and_then(Limits::not_enforced);
                    return Ok(Running { pid, pidfd, confinement, not_enforced, own, memory });
                }
                // exec itself failed: no other confinement would help.
                Err(error @ SpawnError::Exec { what: "execute", .. }) => return Err(error),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or(SpawnError::Resource { what: "start a process", cause: io::Error::other("no attempt") }))
    }
}

struct Running {
    pid: Pid,
    pidfd: OwnedFd,
    confinement: Confinement,
    not_enforced: Option<String>,
    own: Option<OwnedFd>,
    /// Removed when it is dropped.
    memory: Option<SharedMemory>,
}

impl Supervised {
    /// Readable when it has ended.
    pub(crate) const fn ended(&self) -> &OwnedFd {
        &self.ended
    }

    /// Its number, which is its own until it has ended.
    pub(crate) const fn number(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    pub(crate) const fn confinement(&self) -> Confinement {
        self.confinement
    }

    pub(crate) fn not_enforced(&self) -> Option<String> {
        self.not_enforced.clone()
    }

    /// A directory in the one that it was started in, as the process sees it.
    pub(crate) fn open_directory(&self, name: &str) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match &self.own {
            Some(own) => rustix::fs::openat(own, name, flags, Mode::empty()).ok(),
            None => rustix::fs::open(self.directory.join(name), flags, Mode::empty()).ok(),
        }
    }

    /// Kills it and all its descendants. Harmless when it has ended.
    pub(crate) fn kill(&self) {
        // In the namespace its first process takes all others along; the keeper sweeps a process group.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Waits for its end, at most so long; `None` when it is still running.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<ProcessEnd> {
        if self.end.is_none() {
            let timeout = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
            let mut ended = [PollFd::new(&self.ended, PollFlags::IN)];
            if !matches!(poll(&mut ended, Some(&timeout)), Ok(1)) {
                return None;
            }
            // The keeper's pipe end is closed: its thread is returning.
            let keeper = self.keeper.take()?;
            self.end = Some(keeper.join().unwrap_or(ProcessEnd::Exited(-1)));
        }
        self.end
    }
}

const DYING: Duration = Duration::from_secs(5);

impl Drop for Supervised {
    fn drop(&mut self) {
        self.kill();
        // A process that hangs in the kernel does not die. The keeper then keeps waiting, and is not waited for.
        let _ = self.wait(DYING);
    }
}

fn kill_all(pid: Pid, pidfd: &OwnedFd) {
    let _ = pidfd_send_signal(pidfd, Signal::KILL);
    let _ = rustix::process::kill_process_group(pid, Signal::KILL);
}

/// Waits for the end, sweeps what is left of the process group, reaps.
fn reap(pid: Pid, pidfd: &OwnedFd) -> ProcessEnd {
    let wait = |options| loop {
        match waitid(WaitId::PidFd(pidfd.as_fd()), options) {
            Err(Errno::INTR) => {}
            Ok(Some(status)) => return Some(status),
            Ok(None) | Err(_) => return None,
        }
    };
    // Not reaped yet, so its number still names its process group and no other.
    let _ = wait(WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    let Some(status) = wait(WaitIdOptions::EXITED) else { return ProcessEnd::Exited(-1) };
    match status.exit_status() {
        // As process 1 of a namespace passes it on, or a shell would.
        Some(code) if code > 128 => ProcessEnd::Signalled(code - 128),
        Some(code) => ProcessEnd::Exited(code),
        None => ProcessEnd::Signalled(status.terminating_signal().unwrap_or(0)),
    }
}

/// Everything the child needs, made before the clone: between clone and exec nothing may allocate.
struct Prepared {
    program: CString,
    argv: Vec<CString>,
    environment: Vec<CString>,
    directory: CString,
    descriptors: Vec<(OwnedFd, i32)>,
    /// The directory it is started in.
    own: PathBuf,
    limits: Option<Limits>,
    addresses: Addresses,
    uid_map: String,
    gid_map: String,
    /// What processes of a namespace count from.
    counted_from: String,
}

/// Where the child was when it failed; the first byte it writes to its report.
const STEPS: [&str; 9] = [
    "map users for",
    "take the descriptors for",
    "enter the directory of",
    "execute",
    "set limits for",
    "limit the rights of",
    "lay memory out the same each time (a container's seccomp profile may refuse personality(ADDR_NO_RANDOMIZE)) for",
    "part the mounts of",
    "make the root of",
];
const STEP_MAP: u8 = 0;
const STEP_DESCRIPTORS: u8 = 1;
const STEP_DIRECTORY: u8 = 2;
const STEP_EXECUTE: u8 = 3;
const STEP_LIMITS: u8 = 4;
const STEP_RIGHTS: u8 = 5;
const STEP_ADDRESSES: u8 = 6;
const STEP_MOUNTS: u8 = 7;
const STEP_ROOT: u8 = 8;
/// No failure: it is in its root, and waits for an answer.
const IN_ITS_ROOT: u8 = 0xFF;

/// A number between those of the system's own processes and the smallest limit that kernels have. What names files by host and process, as
/// Open MPI's launcher does, would otherwise have the same names in every namespace of a machine, and be in its own way.
fn counted_from() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    300 + (now.subsec_nanos() ^ std::process::id().rotate_left(16)) % 30_000
}

fn c_string(text: OsString) -> Result<CString, SpawnError> {
    CString::new(text.into_vec()).map_err(|error| SpawnError::Nul(OsString::from_vec(error.into_vec())))
}

impl Prepared {
    fn new(launch: Launch) -> Result<Self, SpawnError> {
        // Out of the way of the numbers they are to have.
        let lowest = launch.descriptors.iter().map(|(_, number)| number + 1).max().unwrap_or(0).max(3);
        let mut descriptors = Vec::new();
        for (ours, number) in launch.descriptors {
            let moved = fcntl_dupfd_cloexec(&ours, lowest)
                .map_err(|error| SpawnError::Resource { what: "duplicate a descriptor", cause: error.into() })?;
            descriptors.push((moved, number));
        }
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        Ok(Self {
            program: c_string(launch.program.into_os_string())?,
            argv: launch.argv.into_iter().map(c_string).collect::<Result<_, _>>()?,
            environment: launch
                .environment
                .into_iter()
                .map(|(name, value)| {
                    let mut text = OsString::from(name);
                    text.push("=");
                    text.push(value);
                    c_string(text)
                })
                .collect::<Result<_, _>>()?,
            directory: c_string(launch.directory.clone().into_os_string())?,
            own: launch.directory,
            descriptors,
            limits: None,
            addresses: launch.addresses,
            uid_map: format!("{uid} {uid} 1"),
            gid_map: format!("{gid} {gid} 1"),
            counted_from: counted_from().to_string(),
        })
    }

    fn clone_and_exec(&self, namespaces: libc::c_int) -> Result<(Pid, OwnedFd, Option<OwnedFd>), SpawnError> {
        let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
            strings.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (argv, environment) = (pointers(&self.argv), pointers(&self.environment));
        let (report, low) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|error| SpawnError::Resource { what: "make a pair of sockets", cause: error.into() })?;
        // Above every number the child is to have.
        let report_child = fcntl_dupfd_cloexec(&low, 64)
            .map_err(|error| SpawnError::Resource { what: "duplicate a descriptor", cause: error.into() })?;
        drop(low);

        let mut pidfd: libc::c_int = -1;
        // Not clone3, which the seccomp profiles of containers refuse.
        let flags = (namespaces | libc::CLONE_PIDFD | libc::SIGCHLD) as libc::c_ulong;
        // SAFETY: all-zero is a valid set of signals.
        let (mut every, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
        // SAFETY: without CLONE_VM this is fork: the child gets a copy of this thread and of all memory. In the child only `child` runs, which
        // does async-signal-safe work only. Signals wait meanwhile: no handler of this process runs in the child.
        let pid = unsafe {
            libc::sigfillset(&raw mut every);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const every, &raw mut before);
            let pid = libc::syscall(libc::SYS_clone, flags, 0, &raw mut pidfd, 0, 0);
            if pid == 0 {
                self.child(namespaces, &argv, &environment, (report.as_raw_fd(), report_child.as_raw_fd()));
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
            pid
        };
        if pid < 0 {
            let cause = io::Error::last_os_error();
            return Err(SpawnError::Resource { what: "start a process", cause });
        }
        // SAFETY: the kernel stored a descriptor that is ours alone.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        let pid = Pid::from_raw(pid as i32)
            .ok_or(SpawnError::Resource { what: "start a process", cause: io::Error::other("it has no process id") })?;
        drop(report_child);

        let mut failure = [0u8; 5];
        let mut have = 0;
        let mut own = None;
        while have < failure.len() {
            if failure[0] == IN_ITS_ROOT && have > 0 {
                // Later it is not to be looked into, not even by this process if that is not root.
                let path = format!("/proc/{}/cwd", pid.as_raw_nonzero());
                own = rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok();
                let _ = send(&report, &[0], SendFlags::NOSIGNAL);
                (failure, have) = ([0; 5], 0);
            }
            match rustix::io::read(&report, &mut failure[have..]) {
                Ok(0) => break,
                Ok(bytes) => have += bytes,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        if have < failure.len() {
            return Ok((pid, pidfd, own));
        }
        let _ = reap(pid, &pidfd);
        let errno = i32::from_le_bytes([failure[1], failure[2], failure[3], failure[4]]);
        Err(SpawnError::Exec {
            what: STEPS[usize::from(failure[0]) % STEPS.len()],
            program: self.program.to_string_lossy().into_owned(),
            cause: io::Error::from_raw_os_error(errno),
        })
    }

    /// # Safety
    /// Only in the child of a fork; `argv` and `environment` end in NULL.
    unsafe fn child(
        &self,
        namespaces: libc::c_int,
        argv: &[*const libc::c_char],
        environment: &[*const libc::c_char],
        (parents_end, report): (i32, i32),
    ) -> ! {
        // SAFETY: async-signal-safe system calls on values made before the fork; `write_file` is no more than that.
        let step = unsafe {
            'failed: {
                libc::close(parents_end);
                if namespaces & libc::CLONE_NEWUSER != 0 {
                    // Refused where there is no need for it.
                    let _ = write_file(c"/proc/self/setgroups", b"deny");
                    if !write_file(c"/proc/self/uid_map", self.uid_map.as_bytes())
                        || !write_file(c"/proc/self/gid_map", self.gid_map.as_bytes())
                    {
                        break 'failed STEP_MAP;
                    }
                }
                if namespaces & libc::CLONE_NEWNS != 0 && self.limits.is_none() {
                    let (none, slave) = (std::ptr::null::<libc::c_char>(), libc::MS_REC | libc::MS_SLAVE);
                    if libc::mount(none, c"/".as_ptr(), none, slave, std::ptr::null()) != 0 {
                        break 'failed STEP_MOUNTS;
                    }
                }
                if namespaces & libc::CLONE_NEWPID != 0 {
                    // Of no weight where the kernel or a container refuses it.
                    let _ = write_file(c"/proc/sys/kernel/ns_last_pid", self.counted_from.as_bytes());
                }
                libc::setsid();
                let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0
                    || libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core) != 0
                {
                    break 'failed STEP_LIMITS;
                }
                if self.addresses != Addresses::Random
                    && libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) < 0
                    && self.addresses == Addresses::Fixed
                {
                    break 'failed STEP_ADDRESSES;
                }
                forget_handlers();
                let mut none: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&raw mut none);
                libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());

                if let Some(root) = self.limits.as_ref().and_then(|limits| limits.root.as_ref())
                    && !root.enter()
                {
                    break 'failed STEP_ROOT;
                }
                // Before it becomes another user, who may not be able to enter the directories above.
                if libc::chdir(self.directory.as_ptr()) != 0 {
                    break 'failed STEP_DIRECTORY;
                }
                if self.limits.as_ref().is_some_and(|limits| limits.root.is_some()) {
                    let mut answer = IN_ITS_ROOT;
                    if libc::write(report, (&raw const answer).cast(), 1) != 1
                        || libc::read(report, (&raw mut answer).cast(), 1) != 1
                    {
                        libc::_exit(127);
                    }
                }
                if let Some(limits) = &self.limits
                    && !limits.take_effect()
                {
                    break 'failed STEP_RIGHTS;
                }
                // A change of the user clears it, and the parent may have died meanwhile.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                let mut parent = libc::pollfd { fd: report, events: 0, revents: 0 };
                if libc::poll(&raw mut parent, 1, 0) != 0 {
                    libc::_exit(127);
                }

                let mut highest = 2;
                for (ours, number) in &self.descriptors {
                    if libc::dup2(ours.as_raw_fd(), *number) < 0 {
                        break 'failed STEP_DESCRIPTORS;
                    }
                    highest = highest.max(*number);
                }
                // The report's socket closes itself on exec; everything else above is closed too.
                let close_on_exec = libc::CLOSE_RANGE_CLOEXEC;
                libc::syscall(libc::SYS_close_range, highest as u32 + 1, u32::MAX, close_on_exec);
                // Process 1 of the namespace has this process's memory and environment, and a guest's kernel may trace processes of its user:
                // it must neither look into that one, nor have it make calls that are refused to itself.
                if let Some(limits) = &self.limits
                    && (!limits.filter.is_empty() && !filter::bind(&limits.filter)
                        || libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
                {
                    break 'failed STEP_RIGHTS;
                }
                if namespaces != 0 {
                    let program = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0);
                    if program < 0 {
                        break 'failed STEP_EXECUTE;
                    }
                    if program > 0 {
                        reap_all(program as libc::pid_t);
                    }
                    // Killed with the namespace anyway; this is for the moment before it is entered in its list.
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                }
                libc::execve(self.program.as_ptr(), argv.as_ptr(), environment.as_ptr());
                STEP_EXECUTE
            }
        };
        // SAFETY: errno of the call that failed, then a write of plain bytes, then the end.
        unsafe {
            let errno = (*libc::__errno_location()).to_le_bytes();
            let message = [step, errno[0], errno[1], errno[2], errno[3]];
            libc::write(report, message.as_ptr().cast(), message.len());
            libc::_exit(127)
        }
    }
}

/// Process 1 of a namespace: reaps until the program ends, and ends like it; the namespace is killed then. The program
/// cannot be process 1 itself: the kernel shields that from signals, and user-mode Linux, which ends by abort(3) after
/// a panic, would spin for ever.
///
/// # Safety
/// Only in a process that was forked for this: every descriptor is closed.
unsafe fn reap_all(program: libc::pid_t) -> ! {
    // SAFETY: async-signal-safe system calls and a variable of our own.
    unsafe {
        libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
        let mut status = 0;
        loop {
            let ended = libc::waitpid(-1, &raw mut status, libc::__WALL);
            if ended == program || (ended < 0 && *libc::__errno_location() != libc::EINTR) {
                break;
            }
        }
        libc::_exit(if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) })
    }
}

/// # Safety
/// Async-signal-safe; may be called in the child of a fork.
unsafe fn forget_handlers() {
    // SAFETY: structures of this function; numbers that are no signal's are refused.
    unsafe {
        for signal in 1..=64 {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
                && !matches!(action.sa_sigaction, libc::SIG_IGN | libc::SIG_DFL)
            {
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
    }
}

/// # Safety
/// Async-signal-safe; may be called in the child of a fork.
unsafe fn write_file(path: &std::ffi::CStr, content: &[u8]) -> bool {
    // SAFETY: a C string and a slice with its own length.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file < 0 {
            return false;
        }
        let written = libc::write(file, content.as_ptr().cast(), content.len());
        libc::close(file);
        written == content.len() as isize
    }
}

#[cfg(test)]
mod tests;
