//! What processes of a run are known by when the run has been killed: a word in their environment.
//!
//! A command is killed with its whole group when it ends, when it may not go on, and when we die. What outlives that are
//! children of a killed run's commands, and children that left their group, such as daemons. They are told from all
//! other processes by 128 random bits that are put into the environment of what this runner starts and of nothing else,
//! and that children inherit.

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
    time::Timespec,
};
use std::{fmt, fs, io, time::Duration};

/// The variable.
pub(super) const VARIABLE: &str = "FSTONE_MARK";
const DIGITS: usize = 32;
/// How long killed processes may take to die; what hangs in the kernel does not.
const DEATH_SECONDS: i64 = 10;
/// How long a process may still be seen that is taking its leave.
const DYING: Duration = Duration::from_millis(50);
/// How often processes are looked for again: each may have started others before it died.
const ROUNDS: usize = 100;

/// A process that a run left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub id: i32,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.id)
    }
}

/// A new mark.
pub(super) fn fresh() -> String {
    let mut bytes = [0; DIGITS / 2];
    // Where the kernel gives no random numbers, our own number and start time are as unique on this machine.
    if !matches!(rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()), Ok(count) if count == bytes.len())
    {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let unique = (now.as_nanos() << 32) ^ u128::from(std::process::id());
        bytes = unique.to_ne_bytes();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a word can be a mark.
pub(crate) fn is_mark(word: &str) -> bool {
    word.len() == DIGITS && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Processes that have a mark and are not about to end: commands of a killed run are killed with it, and gone in a moment.
pub(super) fn marked(mark: &str) -> io::Result<Vec<Process>> {
    let found = look(mark)?;
    if found.is_empty() {
        return Ok(found);
    }
    // One that has taken its signal and not yet given up its environment looks like any other.
    std::thread::sleep(DYING);
    look(mark)
}

fn look(mark: &str) -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if has_mark(id, mark) && !is_dying(id) {
            let name = fs::read(entry.path().join("comm")).unwrap_or_default();
            let name = String::from_utf8_lossy(&name).chars().filter(|c| !c.is_control()).collect();
            found.push(Process { id, name });
        }
    }
    Ok(found)
}

/// A process of another user, one that has ended, and the kernel's own show no environment.
fn has_mark(id: i32, mark: &str) -> bool {
    let wanted = format!("{VARIABLE}={mark}");
    let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    is_mark(mark) && environment.split(|byte| *byte == 0).any(|word| word == wanted.as_bytes())
}

/// Whether it has been sent SIGKILL, by proc_pid_status(5): `SigPnd` and `ShdPnd` are masks of pending signals.
fn is_dying(id: i32) -> bool {
    const KILL: u64 = 1 << (9 - 1);
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let pending = |line: &str| {
        let mask = line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    };
    status.lines().filter_map(pending).any(|mask| mask & KILL != 0)
}

/// Kills them and waits until they are gone.
pub(super) fn end(mark: &str) -> io::Result<()> {
    for _ in 0..ROUNDS {
        let found = marked(mark)?;
        if found.is_empty() {
            return Ok(());
        }
        for process in found {
            kill(&process, mark)?;
        }
    }
    Err(io::Error::other("they start others faster than they can be killed"))
}

fn kill(process: &Process, mark: &str) -> io::Result<()> {
    let Some(id) = Pid::from_raw(process.id) else { return Ok(()) };
    let handle = match pidfd_open(id, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(Errno::SRCH) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    };
    // The handle stays with its process. If the number went to another before it was opened, the other is looked at
    // here; if it does so afterwards, the signal finds nobody.
    if !has_mark(process.id, mark) {
        return Ok(());
    }
    match pidfd_send_signal(&handle, Signal::KILL) {
        Ok(()) => {}
        Err(Errno::SRCH) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    }
    let timeout = Timespec { tv_sec: DEATH_SECONDS, tv_nsec: 0 };
    match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)) {
        Ok(0) => Err(io::Error::other(format!("{process} does not end even when killed: it hangs in the kernel"))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn marked_processes_are_found_and_killed_and_no_others() {
        let start = |mark: &str| {
            // A grandchild that left its parent's session, as a daemon does, and whose parent is gone.
            let output = Command::new("sh")
                .args(["-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!"])
                .env(VARIABLE, mark)
                .stderr(Stdio::null())
                .output()
                .expect("sh starts");
            String::from_utf8_lossy(&output.stdout).trim().parse::<i32>().expect("a process id")
        };
        let (ours, others) = (fresh(), fresh());
        assert!(is_mark(&ours) && ours != others);
        let (own, foreign) = (start(&ours), start(&others));
        let ids = |mark: &str| marked(mark).expect("told").into_iter().map(|process| process.id).collect::<Vec<_>>();
        assert_eq!((ids(&ours), ids(&others)), (vec![own], vec![foreign]));
        end(&ours).expect("ended");
        assert_eq!((ids(&ours), ids(&others)), (Vec::new(), vec![foreign]));
        end(&others).expect("ended");
        assert!(ids(&others).is_empty() && marked("").expect("told").is_empty());
    }
}
