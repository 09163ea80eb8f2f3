#![expect(unsafe_code, reason = "clone3 with namespaces, and what has to happen between it and exec")]

use super::rights::{self, Writable};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What keeps a guest's processes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// A pid namespace: nothing in it outlives its first process, not even after `kill -9` of fstone.
    Namespace,
    /// A process group, because the host refuses namespaces; killed as a whole, but a guest may outlive a
    /// `kill -9` of fstone by what it started itself.
    ProcessGroup,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

/// Why a guest's process could not be started; completes "failed to start the guest: …".
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// A path or argument holds a NUL byte.
    #[error("{0:?} contains a NUL byte")]
    Nul(OsString),
    /// No pipe, thread or process to be had.
    #[error("cannot {what}: {cause}")]
    Resource {
        /// What was attempted.
        what: &'static str,
        /// Why not.
        cause: io::Error,
    },
    /// The new process could not become the program.
    #[error("cannot {what} {program}: {cause}")]
    Exec {
        /// Which step failed.
        what: &'static str,
        /// The program.
        program: String,
        /// Why.
        cause: io::Error,
    },
}

/// How a program's memory is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addresses {
    /// At random, as the host does it.
    Random,
    /// The same each time, where the host allows that: a container's seccomp profile may refuse it.
    FixedIfAllowed,
    /// The same each time, or the program is not started.
    Fixed,
}

/// What to start.
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
    /// Where it may write, everywhere else it can only read; `None` when it has the rights of its user.
    pub(crate) writable: Option<Vec<Writable>>,
    /// Whether it has mounts of its own, which are gone with it. Takes root; what is mounted or unmounted outside is so
    /// inside as well, and never the other way round.
    pub(crate) mounts_apart: bool,
}

/// A started program. It is killed, with all its descendants, when this is dropped.
///
/// A thread of its own starts and reaps it, because "die with the parent" means the parent *thread*.
#[derive(Debug)]
pub(crate) struct Supervised {
    pid: Pid,
    pidfd: OwnedFd,
    confinement: Confinement,
    ended: OwnedFd,
    keeper: Option<thread::JoinHandle<ProcessEnd>>,
    end: Option<ProcessEnd>,
}

impl Launch {
    pub(crate) fn spawn(self) -> Result<Supervised, SpawnError> {
        let resource = |what| move |error: Errno| SpawnError::Resource { what, cause: error.into() };
        let (ended, ended_signal) = pipe_with(PipeFlags::CLOEXEC).map_err(resource("make a pipe"))?;
        let (answer, started) = mpsc::channel();
        let keeper = thread::Builder::new()
            .name("guest-keeper".to_owned())
            .spawn(move || {
                let (pid, keep) = match self.start() {
                    Ok((pid, pidfd, confinement)) => match pidfd.try_clone() {
                        Ok(keep) => {
                            let _ = answer.send(Ok((pid, pidfd, confinement)));
                            (pid, keep)
                        }
                        Err(cause) => {
                            kill_all(pid, &pidfd);
                            let _ = answer.send(Err(SpawnError::Resource { what: "keep the process's handle", cause }));
                            (pid, pidfd)
                        }
                    },
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
        let (pid, pidfd, confinement) = started.recv().map_err(|_| SpawnError::Resource {
            what: "start the keeper",
            cause: io::Error::other("its thread died"),
        })??;
        Ok(Supervised { pid, pidfd, confinement, ended, keeper: Some(keeper), end: None })
    }

    /// Runs on the keeper thread.
    fn start(self) -> Result<(Pid, OwnedFd, Confinement), SpawnError> {
        let self_mounts = self.mounts_apart;
        let prepared = Prepared::new(self)?;
        let root = rustix::process::geteuid().is_root();
        let namespaces = (libc::CLONE_NEWUSER | libc::CLONE_NEWPID) as u64;
        let mut attempts = vec![namespaces, 0];
        if self_mounts {
            // Without the namespace its mounts would be everybody's, and stay.
            attempts = vec![(libc::CLONE_NEWPID | libc::CLONE_NEWNS) as u64];
        } else if root {
            // Without a user namespace root keeps its rights over files of other users.
            attempts.insert(0, libc::CLONE_NEWPID as u64);
        }
        let mut last = None;
        for flags in attempts {
            match prepared.clone_and_exec(flags) {
                Ok((pid, pidfd)) => {
                    let confinement = if flags == 0 { Confinement::ProcessGroup } else { Confinement::Namespace };
                    return Ok((pid, pidfd, confinement));
                }
                // exec itself failed: no other confinement would help.
                Err(error @ SpawnError::Exec { what: "execute", .. }) => return Err(error),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or(SpawnError::Resource { what: "start a process", cause: io::Error::other("no attempt") }))
    }
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

/// How long a killed process gets to be gone.
const DYING: Duration = Duration::from_secs(5);

impl Drop for Supervised {
    fn drop(&mut self) {
        self.kill();
        // What hangs in the kernel does not die. Its keeper then waits on, and nobody waits for the keeper.
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
    // Not reaped yet, so its number still names its process group and nobody else's.
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
    /// Whether it gives up the rights of its user.
    limited: bool,
    /// Of what it may write, where the kernel can enforce that.
    ruleset: Option<OwnedFd>,
    addresses: Addresses,
    uid_map: String,
    gid_map: String,
    /// What processes of a namespace count from.
    counted_from: String,
}

/// From linux/sched.h: no handler of this process survives into the child. libc's own constant overflows.
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;

/// Where the child was when it failed; the first byte it writes to the report pipe.
const STEPS: [&str; 8] = [
    "map users for",
    "take the descriptors for",
    "enter the directory of",
    "execute",
    "set limits for",
    "limit the rights of",
    "lay memory out the same each time (a container's seccomp profile may refuse personality(ADDR_NO_RANDOMIZE)) for",
    "part the mounts of",
];
const STEP_MAP: u8 = 0;
const STEP_DESCRIPTORS: u8 = 1;
const STEP_DIRECTORY: u8 = 2;
const STEP_EXECUTE: u8 = 3;
const STEP_LIMITS: u8 = 4;
const STEP_RIGHTS: u8 = 5;
const STEP_ADDRESSES: u8 = 6;
const STEP_MOUNTS: u8 = 7;

/// A number between those of the system's own processes and the smallest limit that kernels have. What names files by host and process, as
/// Open MPI's launcher does, would otherwise have the same names in every namespace of a machine, and be in its own way.
fn counted_from() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    300 + (now.subsec_nanos() ^ std::process::id().rotate_left(16)) % 30_000
}

impl Prepared {
    fn new(launch: Launch) -> Result<Self, SpawnError> {
        fn c_string(text: OsString) -> Result<CString, SpawnError> {
            CString::new(text.into_vec()).map_err(|error| SpawnError::Nul(OsString::from_vec(error.into_vec())))
        }
        // Out of the way of the numbers they are to have.
        let lowest = launch.descriptors.iter().map(|(_, number)| number + 1).max().unwrap_or(0).max(3);
        let mut descriptors = Vec::new();
        for (ours, number) in launch.descriptors {
            let moved = fcntl_dupfd_cloexec(&ours, lowest)
                .map_err(|error| SpawnError::Resource { what: "duplicate a descriptor", cause: error.into() })?;
            descriptors.push((moved, number));
        }
        let limited = launch.writable.is_some();
        let ruleset = launch.writable.as_deref().map(rights::ruleset).transpose();
        let ruleset =
            ruleset.map_err(|cause| SpawnError::Resource { what: "limit the guest's rights", cause })?.flatten();
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
            directory: c_string(launch.directory.into_os_string())?,
            descriptors,
            limited,
            ruleset,
            addresses: launch.addresses,
            uid_map: format!("{uid} {uid} 1"),
            gid_map: format!("{gid} {gid} 1"),
            counted_from: counted_from().to_string(),
        })
    }

    fn clone_and_exec(&self, namespaces: u64) -> Result<(Pid, OwnedFd), SpawnError> {
        let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
            strings.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (argv, environment) = (pointers(&self.argv), pointers(&self.environment));
        let (report, low) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| SpawnError::Resource { what: "make a pipe", cause: error.into() })?;
        // Above every number the child is to have.
        let report_child = fcntl_dupfd_cloexec(&low, 64)
            .map_err(|error| SpawnError::Resource { what: "duplicate a descriptor", cause: error.into() })?;
        drop(low);

        let mut pidfd: libc::c_int = -1;
        // SAFETY: all-zero is a valid clone_args; it is plain old data.
        let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
        arguments.flags = namespaces | libc::CLONE_PIDFD as u64 | CLONE_CLEAR_SIGHAND;
        arguments.pidfd = &raw mut pidfd as u64;
        arguments.exit_signal = libc::SIGCHLD as u64;
        // SAFETY: without CLONE_VM this is fork: the child gets a copy of this thread and of all memory. `arguments`
        // is valid and its size is passed. In the child only `child` runs, which does async-signal-safe work only.
        let pid =
            unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, std::mem::size_of::<libc::clone_args>()) };
        if pid == 0 {
            // SAFETY: this is the child of a fork; the vectors are NULL-terminated arrays of valid C strings.
            unsafe { self.child(namespaces, &argv, &environment, report_child.as_raw_fd()) }
        }
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
        while have < failure.len() {
            match rustix::io::read(&report, &mut failure[have..]) {
                Ok(0) => break,
                Ok(bytes) => have += bytes,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        if have < failure.len() {
            return Ok((pid, pidfd));
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
        namespaces: u64,
        argv: &[*const libc::c_char],
        environment: &[*const libc::c_char],
        report: i32,
    ) -> ! {
        // SAFETY: async-signal-safe system calls on values made before the fork; `write_file` is no more than that.
        let step = unsafe {
            'failed: {
                if namespaces & libc::CLONE_NEWUSER as u64 != 0 {
                    // Refused where there is no need for it.
                    let _ = write_file(c"/proc/self/setgroups", b"deny");
                    if !write_file(c"/proc/self/uid_map", self.uid_map.as_bytes())
                        || !write_file(c"/proc/self/gid_map", self.gid_map.as_bytes())
                    {
                        break 'failed STEP_MAP;
                    }
                }
                if namespaces & libc::CLONE_NEWNS as u64 != 0 {
                    let (none, slave) = (std::ptr::null::<libc::c_char>(), libc::MS_REC | libc::MS_SLAVE);
                    if libc::mount(none, c"/".as_ptr(), none, slave, std::ptr::null()) != 0 {
                        break 'failed STEP_MOUNTS;
                    }
                }
                if namespaces & libc::CLONE_NEWPID as u64 != 0 {
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
                let mut none: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&raw mut none);
                libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());

                if self.limited && !rights::give_up(self.ruleset.as_ref().map(AsRawFd::as_raw_fd)) {
                    break 'failed STEP_RIGHTS;
                }

                let mut highest = 2;
                for (ours, number) in &self.descriptors {
                    if libc::dup2(ours.as_raw_fd(), *number) < 0 {
                        break 'failed STEP_DESCRIPTORS;
                    }
                    highest = highest.max(*number);
                }
                // The report pipe closes itself on exec; everything else above is closed too.
                let close_on_exec = libc::CLOSE_RANGE_CLOEXEC;
                libc::syscall(libc::SYS_close_range, highest as u32 + 1, u32::MAX, close_on_exec);
                if libc::chdir(self.directory.as_ptr()) != 0 {
                    break 'failed STEP_DIRECTORY;
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
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    fn shell(script: &str) -> (Launch, File) {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let launch = Launch {
            program: "/bin/sh".into(),
            argv: ["sh", "-c", script].map(OsString::from).to_vec(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("GREETING".into(), "hello".into())],
            directory: "/".into(),
            descriptors: vec![(File::open("/dev/null").unwrap().into(), 0), (write, 1)],
            addresses: Addresses::Random,
            writable: Some(vec![Writable::Below("/dev/null".into())]),
            mounts_apart: false,
        };
        (launch, File::from(read))
    }

    #[test]
    fn status_signal_and_environment() {
        let (launch, mut output) = shell("echo $GREETING; pwd; exit 7");
        let mut process = launch.spawn().unwrap();
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello\n/\n");
        assert_eq!(process.wait(Duration::from_secs(10)), Some(ProcessEnd::Exited(7)));
        assert_eq!(process.wait(Duration::ZERO), Some(ProcessEnd::Exited(7)));
        let (launch, _output) = shell("sleep 1000");
        let mut process = launch.spawn().unwrap();
        assert_eq!(process.wait(Duration::from_millis(20)), None);
        process.kill();
        assert_eq!(process.wait(Duration::from_secs(10)), Some(ProcessEnd::Signalled(9)));
        let (launch, _output) = shell("kill -ABRT $$; echo shielded");
        assert_eq!(launch.spawn().unwrap().wait(Duration::from_secs(10)), Some(ProcessEnd::Signalled(6)));
    }

    #[test]
    fn processes_of_two_namespaces_have_different_numbers() {
        let numbers = [0; 3].map(|_| {
            let (launch, mut output) = shell("echo $$");
            let process = launch.spawn().unwrap();
            let mut text = String::new();
            output.read_to_string(&mut text).unwrap();
            (process.confinement(), text.trim().parse::<u32>().unwrap())
        });
        let may_choose = std::fs::OpenOptions::new().write(true).open("/proc/sys/kernel/ns_last_pid").is_ok();
        if may_choose && numbers.iter().all(|(confinement, _)| *confinement == Confinement::Namespace) {
            assert!(numbers.iter().all(|(_, number)| *number > 300), "{numbers:?}");
            assert!(numbers[0].1 != numbers[1].1 || numbers[1].1 != numbers[2].1, "{numbers:?}");
        }
    }

    /// Also as root, who otherwise may write anywhere.
    #[test]
    fn it_writes_where_it_may_and_nowhere_else() {
        let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (own_path, other_path) = (own.path().display(), other.path().display());
        std::fs::write(other.path().join("file"), "before\n").unwrap();
        let (mut launch, mut output) = shell(&format!(
            "echo x >{own_path}/made && echo own; cat {other_path}/file; echo x >{other_path}/made; \
             echo x >{other_path}/file; rm {other_path}/file; mv {other_path}/file {own_path}/; \
             grep Cap[EPA] /proc/self/status"
        ));
        launch.writable.get_or_insert_default().push(Writable::Below(own.path().into()));
        let mut process = launch.spawn().unwrap();
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        process.wait(Duration::from_secs(10));
        if rights::ruleset(&[]).unwrap().is_none() {
            eprintln!("skipped: this kernel has no Landlock");
            return;
        }
        assert!(text.starts_with("own\nbefore"), "{text}");
        assert_eq!(std::fs::read_to_string(other.path().join("file")).unwrap(), "before\n");
        assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 1);
        let kept: Vec<u64> = text
            .lines()
            .filter_map(|line| u64::from_str_radix(line.strip_prefix("Cap")?.rsplit_once('\t')?.1, 16).ok())
            .collect();
        assert_eq!(kept.len(), 3, "{text}");
        assert!(kept.iter().all(|&sets| sets & !(1 << 2) == 0), "reading is all that is left: {text}");
    }

    /// Grandchildren hold the output pipe: it ends only when they are gone too.
    #[test]
    fn descendants_die_too() {
        let (launch, mut output) = shell("sleep 1000 & sleep 1000 & echo up; wait");
        let process = launch.spawn().unwrap();
        let mut up = [0u8; 3];
        output.read_exact(&mut up).unwrap();
        drop(process);
        let mut rest = Vec::new();
        assert_eq!(output.read_to_end(&mut rest).unwrap(), 0);
    }

    #[test]
    fn a_missing_program_is_named() {
        let (mut launch, _output) = shell("");
        launch.program = "/nowhere/linux.uml".into();
        let error = launch.spawn().unwrap_err();
        assert!(error.to_string().starts_with("cannot execute /nowhere/linux.uml: No such file"), "{error}");
    }
}
