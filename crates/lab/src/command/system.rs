//! The real runner: a session of its own for every command, so that all of it can be killed at once.
#![expect(unsafe_code, reason = "pre_exec and wait4 have no safe equivalent that also gives resource usage")]

use super::{CommandLine, CommandOutput, CommandRunner, ResourceUsage, RunError, capture::Capture};
use crate::stop::Stop;
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open,
        test_kill_process_group, waitid,
    },
    time::Timespec,
};
use std::{
    ffi::OsString,
    io::Read,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            fs::PermissionsExt,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

/// Directories of system tools, which an ordinary user's PATH may not have.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];
/// How often a waiting runner looks whether it should stop. A command's own time is not rounded to it: its end wakes
/// the runner at once.
const LOOK: Duration = Duration::from_millis(50);
/// How long a killed command may take to die before it counts as hung in the kernel.
const DEATH: Duration = Duration::from_secs(10);

/// Runs commands for real.
///
/// Every command is the leader of a session and process group of its own, dies when the thread that started it does
/// (`PR_SET_PDEATHSIG`), reads /dev/null, and is killed with its whole group at its limit and when asked to stop.
pub struct SystemRunner {
    stop: Arc<Stop>,
    /// Who sees what is printed while a command runs.
    seen_by: Option<Seer>,
    /// How often it is looked whether a command is to be stopped.
    look: Duration,
}

type Seer = Box<dyn Fn(&[u8]) + Send + Sync>;

impl SystemRunner {
    pub const fn new(stop: Arc<Stop>) -> Self {
        Self { stop, seen_by: None, look: LOOK }
    }

    pub(crate) fn seen_by(self, seer: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self { seen_by: Some(Box::new(seer)), ..self }
    }

    /// Where every look is measured, and only the limit ends a command.
    pub(crate) fn seldom_looking(self) -> Self {
        Self { look: Duration::from_secs(60), ..self }
    }
}

pub fn find_program(program: &str) -> Option<PathBuf> {
    let executable = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        let path = PathBuf::from(program);
        return executable(&path).then_some(path);
    }
    std::env::split_paths(&search_path()).map(|directory| directory.join(program)).find(|path| executable(path))
}

fn search_path() -> OsString {
    let given = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> =
        std::env::split_paths(&given).filter(|directory| directory.is_absolute()).collect();
    for known in ["/usr/local/bin", "/usr/bin", "/bin"].into_iter().chain(SYSTEM_DIRECTORIES) {
        if !directories.iter().any(|directory| directory == Path::new(known)) {
            directories.push(known.into());
        }
    }
    directories.extend(newest_postgresql());
    std::env::join_paths(directories).unwrap_or(given)
}

/// Where Debian has the programs of PostgreSQL's server, of the newest version there is.
fn newest_postgresql() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path());
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    versions.max_by_key(number).map(|newest| newest.join("bin"))
}

impl CommandRunner for SystemRunner {
    fn run(&self, command: &CommandLine, limit: Duration) -> Result<CommandOutput, RunError> {
        if self.stop.is_requested() {
            return Err(RunError::Stopped { command: command.typed(), output: None });
        }
        let program =
            find_program(&command.program).ok_or_else(|| RunError::NotFound { program: command.program.clone() })?;
        let failed = |call| move |cause: std::io::Error| RunError::System { command: command.typed(), call, cause };

        let parent = rustix::process::getpid();
        let mut prepared = Command::new(program);
        if command.user.is_some() {
            // This one's may have secrets, and another user can read that of its own processes.
            prepared.env_clear();
        }
        prepared
            .args(&command.args)
            .env("PATH", search_path())
            .env("LC_ALL", "C")
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(directory) = &command.directory {
            prepared.current_dir(directory);
        }
        if let Some(user) = &command.user {
            // Without the groups of root.
            prepared.uid(user.user).gid(user.group).env("USER", &user.name).env("LOGNAME", &user.name);
            prepared.envs(command.directory.as_ref().map(|home| ("HOME", home)));
        }
        // Whoever it runs as by then: a change of users takes the death signal back.
        // SAFETY: the closure runs between fork and exec and makes only async-signal-safe system calls.
        unsafe {
            prepared.pre_exec(move || {
                rustix::process::setsid()?;
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                // The parent may have died before the line above.
                if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
            });
        }

        let started = Instant::now();
        let mut child = prepared.spawn().map_err(failed("start"))?;
        let process = Pid::from_child(&child);
        // From here on every way out goes through `Running::drop` or `Running::end`, which leave no process behind.
        let mut running = Running { process, reaped: false };
        let stream = |pipe: Option<OwnedFd>| {
            pipe.map(|pipe| Stream::new(pipe, command.kept)).transpose().map_err(failed("fcntl"))
        };
        let mut streams =
            [stream(child.stdout.take().map(OwnedFd::from))?, stream(child.stderr.take().map(OwnedFd::from))?];
        let ended = pidfd_open(process, PidfdFlags::empty()).map_err(|errno| failed("pidfd_open")(errno.into()))?;

        let unkillable = || RunError::Unkillable {
            command: command.typed(),
            process: process.as_raw_nonzero().get().unsigned_abs(),
        };
        let mut killed: Option<(Instant, KilledBy)> = None;
        let duration = loop {
            let look = if killed.is_some() { LOOK } else { self.look.min(limit.saturating_sub(started.elapsed())) };
            let exited = wait_for(&ended, &mut streams, self.seen_by.as_ref(), look).map_err(failed("poll"))?;
            if exited {
                break started.elapsed();
            }
            if killed.is_none() {
                let why = if self.stop.is_requested() { Some(KilledBy::Stop) } else { None };
                let why = why.or_else(|| (started.elapsed() >= limit).then_some(KilledBy::Limit));
                killed = why.map(|why| (Instant::now(), why));
                if killed.is_some() && !command.grace.is_zero() {
                    running.terminate();
                }
            }
            let Some((since, _)) = killed else { continue };
            if since.elapsed() >= command.grace + DEATH {
                running.reaped = true; // There is nothing more to be done about it.
                return Err(unkillable());
            }
            if since.elapsed() >= command.grace {
                running.kill();
            }
        };
        let (status, usage) = running.end().map_err(failed("wait4"))?;
        if killed.is_some() && !running.is_gone_within(DEATH) {
            return Err(unkillable());
        }
        // What the command printed last may still be in the pipes; what its surviving children print is not waited for.
        for stream in streams.iter_mut().flatten() {
            stream.read_available(self.seen_by.as_ref());
        }
        let [(stdout, out), (stderr, err)] =
            streams.map(|stream| stream.map(|s| s.capture.into_parts()).unwrap_or_default());
        let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        let output = CommandOutput { status, stdout, stderr, duration, usage, whole: [out, err] };
        match killed {
            None => Ok(output),
            Some((_, KilledBy::Stop)) => {
                Err(RunError::Stopped { command: command.typed(), output: Some(Box::new(output)) })
            }
            Some((_, KilledBy::Limit)) => {
                Err(RunError::TimedOut { command: command.typed(), limit, output: Box::new(output) })
            }
        }
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        find_program(program)
    }
}

#[derive(Clone, Copy)]
enum KilledBy {
    Stop,
    Limit,
}

/// Waits at most so long for output or the command's end, takes the output in, and tells whether it ended.
fn wait_for(
    ended: &OwnedFd,
    streams: &mut [Option<Stream>; 2],
    seer: Option<&Seer>,
    look: Duration,
) -> std::io::Result<bool> {
    let mut watched = vec![PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN)];
    let open = streams.iter().flatten().filter_map(|stream| stream.pipe.as_ref());
    watched.extend(open.map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)));
    let timeout = Timespec { tv_sec: look.as_secs().cast_signed(), tv_nsec: look.subsec_nanos().into() };
    match poll(&mut watched, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let exited = !watched[0].revents().is_empty();
    drop(watched);
    for stream in streams.iter_mut().flatten() {
        stream.read_available(seer);
    }
    Ok(exited)
}

struct Stream {
    /// Closed at the stream's end: watching it further would wake us for nothing.
    pipe: Option<std::fs::File>,
    capture: Capture,
}

impl Stream {
    fn new(pipe: OwnedFd, kept: bool) -> std::io::Result<Self> {
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        Ok(Self { pipe: Some(pipe.into()), capture: Capture::new(kept) })
    }

    /// Takes in what is there. Bounded, so that a command that floods us cannot keep us from looking at its limit.
    fn read_available(&mut self, seer: Option<&Seer>) {
        const ROUNDS: usize = 64;
        let Some(pipe) = &mut self.pipe else { return };
        let mut buffer = [0; 16 << 10];
        for _ in 0..ROUNDS {
            match pipe.read(&mut buffer) {
                Ok(count) if count > 0 => {
                    self.capture.push(&buffer[..count]);
                    seer.iter().for_each(|seer| seer(&buffer[..count]));
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                _ => {
                    self.pipe = None;
                    return;
                }
            }
        }
    }
}

/// A command that runs. Dropped before its end (an error of ours), it is killed and reaped.
struct Running {
    process: Pid,
    reaped: bool,
}

impl Running {
    /// Asks the command alone to end: it knows how to end what it started.
    fn terminate(&self) {
        let _ = kill_process(self.process, Signal::TERM);
    }

    fn kill(&self) {
        // It may just have ended by itself: then there is nobody to kill, and that is fine.
        let _ = kill_process_group(self.process, Signal::KILL);
    }

    fn end(&mut self) -> std::io::Result<(ExitStatus, ResourceUsage)> {
        // While the leader is not reaped its process id, and with it the group's, cannot be taken by another.
        self.kill();
        self.reap()
    }

    /// Waits for the rest of a group that was killed: what is in the kernel goes on for a while. Those whose parents have ended are
    /// children of an agent that is the first process of its namespace; others are reaped by somebody else.
    fn is_gone_within(&self, limit: Duration) -> bool {
        let since = Instant::now();
        loop {
            let reaped = waitid(WaitId::Pgid(Some(self.process)), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
            if matches!(reaped, Ok(Some(_))) {
                continue;
            }
            if test_kill_process_group(self.process).is_err() {
                return true;
            }
            if since.elapsed() >= limit {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn reap(&mut self) -> std::io::Result<(ExitStatus, ResourceUsage)> {
        self.reaped = true;
        let mut status = 0;
        loop {
            // SAFETY: rusage is plain data for which all zeroes are valid.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: both pointers are to live, writable locals of the right types.
            let result =
                unsafe { libc::wait4(self.process.as_raw_nonzero().get(), &raw mut status, 0, &raw mut usage) };
            if result >= 0 {
                let time = |value: libc::timeval| {
                    Duration::from_secs(value.tv_sec.unsigned_abs())
                        + Duration::from_micros(value.tv_usec.unsigned_abs())
                };
                let usage = ResourceUsage {
                    user: time(usage.ru_utime),
                    system: time(usage.ru_stime),
                    // The kernel counts it in KiB.
                    maximum_resident_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
                };
                return Ok((ExitStatus::from_raw(status), usage));
            }
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
            // Not `reap`: a process that hangs in the kernel must not hang us. It is reaped when it can be.
            let _ = waitid(WaitId::Pid(self.process), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::StopReason;

    const LONG: Duration = Duration::from_secs(60);

    fn runner() -> SystemRunner {
        SystemRunner::new(Arc::new(Stop::default()))
    }

    fn shell(script: &str) -> CommandLine {
        CommandLine::new("sh", ["-c", script])
    }

    fn lives(process: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{process}/stat"))
            .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with(['Z', 'X']))
    }

    #[test]
    fn exit_status_streams_and_usage_are_told() {
        let output = runner().run(&shell("echo out; echo err >&2; exit 7"), LONG).expect("runs");
        assert_eq!((output.status, output.stdout.as_str(), output.stderr.as_str()), (7, "out\n", "err\n"));
        assert!(output.usage.maximum_resident_bytes > 0 && !output.duration.is_zero());
        assert_eq!(runner().run(&shell("kill -TERM $$"), LONG).expect("runs").status, 128 + 15);
        let output = runner().run(&shell("echo $LC_ALL; pwd; cat").in_directory(Path::new("/proc")), LONG);
        assert_eq!(output.expect("runs").stdout, "C\n/proc\n");
    }

    #[test]
    fn a_missing_program_is_told() {
        let error = runner().run(&CommandLine::new("no-such-program-of-fstone", [""; 0]), LONG).expect_err("missing");
        assert!(matches!(error, RunError::NotFound { .. }), "{error}");
    }

    #[test]
    fn output_is_bounded() {
        let output = runner().run(&shell("head -c 30000000 /dev/zero | tr '\\0' x; echo end"), LONG).expect("runs");
        assert!(output.stdout.len() < 100_000 && output.stdout.ends_with("end\n"));
    }

    #[track_caller]
    fn assert_dies(process: &str) {
        for _ in 0..500 {
            if !lives(process) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the child {process} lives");
    }

    #[test]
    fn a_limit_kills_the_whole_group() {
        let command = shell("sleep 1000 & echo $!; wait");
        let error = runner().run(&command, Duration::from_millis(200)).expect_err("too long");
        let RunError::TimedOut { output, .. } = error else { panic!("{error}") };
        assert_dies(output.stdout.trim());
    }

    #[test]
    fn a_command_with_grace_ends_by_itself_or_is_killed() {
        let ended = |script: &str, grace| {
            let command = CommandLine { grace, ..shell(script) };
            let error = runner().run(&command, Duration::from_millis(200)).expect_err("too long");
            let RunError::TimedOut { output, .. } = error else { panic!("{error}") };
            (output.status, output.stdout)
        };
        let tidy = "trap 'kill $!; echo tidied; exit 3' TERM; sleep 1000 & wait";
        assert_eq!(ended(tidy, LONG), (3, "tidied\n".into()));
        assert_eq!(ended(tidy, Duration::ZERO), (128 + 9, String::new()));
        let deaf = "trap '' TERM; echo deaf; while :; do sleep 1; done";
        assert_eq!(ended(deaf, Duration::from_millis(300)), (128 + 9, "deaf\n".into()));
    }

    #[test]
    fn children_left_in_the_background_are_neither_waited_for_nor_left() {
        let output = runner().run(&shell("sleep 1000 & echo $!"), LONG).expect("runs");
        assert_dies(output.stdout.trim());
    }

    #[test]
    fn a_stop_kills_and_keeps_further_commands_from_starting() {
        let stop = Arc::new(Stop::default());
        let runner = SystemRunner::new(Arc::clone(&stop));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| runner.run(&shell("sleep 1000"), LONG));
            std::thread::sleep(Duration::from_millis(100));
            stop.request(StopReason::Cancelled);
            assert!(matches!(waiting.join().expect("no panic"), Err(RunError::Stopped { .. })));
        });
        assert!(matches!(runner.run(&shell("true"), LONG), Err(RunError::Stopped { .. })));
    }
}
