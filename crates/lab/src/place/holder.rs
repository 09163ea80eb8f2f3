//! Which process holds something, and whether it still runs.
//!
//! A process number alone says little: the kernel reuses it, every boot starts over, and a directory may be shared with
//! another machine that has its own processes.

use fstone_model::dataset::Holder;
use sha2::{Digest, Sha256};
use std::{fs, os::unix::fs::MetadataExt, path::Path, sync::OnceLock};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    Running,
    Ended,
    /// It belongs to another machine, or to another namespace of this one (a container), whose processes cannot be seen
    /// from here.
    Elsewhere,
}

pub fn this_process() -> Holder {
    let process = std::process::id();
    known(process, started_ticks(process).unwrap_or(0))
}

/// A process of this machine; `None` when it has ended.
pub(crate) fn of(process: u32) -> Option<Holder> {
    started_ticks(process).map(|started_ticks| known(process, started_ticks))
}

fn known(process: u32, started_ticks: u64) -> Holder {
    Holder {
        machine: machine().to_owned(),
        host: host(),
        boot: boot_id(),
        process,
        started_ticks,
        pid_namespace: pid_namespace(),
    }
}

pub fn find(holder: &Holder) -> Whereabouts {
    if !is_of_this_machine(holder) {
        Whereabouts::Elsewhere
    } else if holder.boot != boot_id() {
        Whereabouts::Ended
    } else if !is_seen_from_here(holder) {
        Whereabouts::Elsewhere
    } else if ![0, pid_namespace()].contains(&holder.pid_namespace) {
        // Its number is another one here, but its namespace tells as much: while that has processes it may be one of them.
        if has_processes(holder.pid_namespace) { Whereabouts::Elsewhere } else { Whereabouts::Ended }
    } else if started_ticks(holder.process) == Some(holder.started_ticks) {
        Whereabouts::Running
    } else {
        Whereabouts::Ended
    }
}

/// Whether its process would be seen from here, if it ran.
pub(crate) fn is_seen_from_here(holder: &Holder) -> bool {
    [0, pid_namespace()].contains(&holder.pid_namespace) || sees_all_namespaces()
}

pub fn is_of_this_machine(holder: &Holder) -> bool {
    // A kernel's number for its boot says which kernel it is, whatever the machine is called by now and whichever /etc a container
    // has. Without a pid namespace, which holders of earlier versions lack, that would not say which process it was.
    holder.machine == machine() || (is_this_boot(&holder.boot) && holder.pid_namespace != 0)
}

fn is_this_boot(boot: &str) -> bool {
    !boot.is_empty() && boot == boot_id()
}

/// The namespace of this process' number (pid_namespaces(7)); 0 where the kernel does not tell.
fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |facts| facts.ino())
}

/// Whether all processes of the machine can be seen from here: in the kernel's first namespace, whose number is fixed
/// (`PROC_PID_INIT_INO`, include/linux/proc_ns.h), where /proc does not hide those of others (`hidepid`, proc(5)).
fn sees_all_namespaces() -> bool {
    const FIRST: u64 = 0xEFFF_FFFC;
    pid_namespace() == FIRST && fs::read_to_string("/proc/1/status").is_ok()
}

/// Whether a process runs in a namespace of process numbers below this one. One whose namespace is not told counts.
fn has_processes(namespace: u64) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return true };
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    processes.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_process)).any(|entry| {
        let process = entry.path();
        if started_in(&process).is_none() || is_of_this_namespace(&process) {
            return false;
        }
        match fs::metadata(process.join("ns/pid")) {
            Ok(facts) => facts.ino() == namespace,
            // It ended meanwhile.
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    })
}

/// Whether a process has one number only: none of a namespace below this one.
fn is_of_this_namespace(process: &Path) -> bool {
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_some_and(|numbers| numbers.split_whitespace().count() == 1)
}

/// The digest of this machine's identity.
///
/// machine-id(5) asks that the number itself stays on the machine, so only a digest is written down. The host name is part
/// of it because diskless nodes of a cluster may share one `/etc`, and taking two machines for one is the error that would
/// lose data. So a machine that was renamed is known as the same until it boots ([`is_of_this_machine`]).
pub(crate) fn machine() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let digest = Sha256::digest(format!("fstone machine\n{}\n{}", id.trim(), host()));
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    })
}

/// What tells this process' number from the same one on another machine, or in another namespace of it, where names of several
/// meet in one directory: as long everywhere, so that paths are.
pub(crate) fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let digest = Sha256::digest(format!("fstone process\n{}\n{}\n{}", machine(), boot_id(), pid_namespace()));
        digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    })
}

pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A number that differs between any two boots of any machine; empty where the kernel does not provide it.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// When a process started, by proc_pid_stat(5); `None` when there is none, or only what its parent has not reaped yet.
fn started_ticks(process: u32) -> Option<u64> {
    started_in(&Path::new("/proc").join(process.to_string()))
}

fn started_in(directory: &Path) -> Option<u64> {
    let known = |directory: &Path| state_and_start(&fs::read_to_string(directory.join("stat")).ok()?);
    let (ended, started) = known(directory)?;
    // The first thread may end before the others, one of which may hang in the kernel.
    let threads = || fs::read_dir(directory.join("task")).into_iter().flatten().flatten();
    let runs = !ended || threads().filter_map(|thread| known(&thread.path())).any(|(ended, _)| !ended);
    runs.then_some(started)
}

fn state_and_start(stat: &str) -> Option<(bool, u64)> {
    // The name of the program comes second, in parentheses, and may itself contain parentheses and spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    // The state is the third field, the start time the 22nd.
    Some((matches!(state, "Z" | "X"), fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_known_by_more_than_its_number() {
        let this = this_process();
        assert_eq!(find(&this), Whereabouts::Running);
        let reused = Holder { started_ticks: this.started_ticks + 1, ..this.clone() };
        assert_eq!(find(&reused), Whereabouts::Ended);
        let rebooted = Holder { boot: "another boot".into(), ..this.clone() };
        assert_eq!(find(&rebooted), Whereabouts::Ended);
        let elsewhere = Holder { machine: "another machine".into(), boot: "another boot".into(), ..this.clone() };
        assert_eq!(find(&elsewhere), Whereabouts::Elsewhere);
        let renamed = Holder { machine: "another name".into(), ..this.clone() };
        assert_eq!(find(&renamed), Whereabouts::Running);
        assert_eq!(find(&Holder { started_ticks: this.started_ticks + 1, ..renamed.clone() }), Whereabouts::Ended);
        for unknown in [Holder { pid_namespace: 0, ..renamed.clone() }, Holder { boot: String::new(), ..renamed }] {
            assert_eq!(find(&unknown), Whereabouts::Elsewhere);
        }
        let of_before = Holder { pid_namespace: 0, ..this };
        assert_eq!(find(&of_before), Whereabouts::Running);
    }

    /// A process of a container has a number that another process has here.
    #[test]
    fn a_process_of_a_container_is_elsewhere_until_the_container_has_ended() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root makes namespaces of process numbers");
            return;
        }
        let container = ["--fork", "--pid", "--kill-child", "sh", "-c", "readlink /proc/self/ns/pid; exec sleep 60"];
        let mut container = Command::new("unshare").args(container).stdout(Stdio::piped()).spawn().expect("util-linux");
        let mut line = String::new();
        BufReader::new(container.stdout.take().expect("piped")).read_line(&mut line).expect("it speaks");
        let number: String = line.chars().filter(char::is_ascii_digit).collect();
        let contained =
            Holder { pid_namespace: number.parse().expect("pid:[number]"), started_ticks: 0, ..this_process() };
        let rebooted = Holder { boot: "another boot".into(), ..contained.clone() };
        assert_eq!(find(&rebooted), Whereabouts::Ended);
        let alive = find(&contained);
        container.kill().expect("ours");
        container.wait().expect("ours");
        assert_eq!(alive, Whereabouts::Elsewhere);
        // Its first process dies at the death of unshare, some time after it.
        let gone = (0..1_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            find(&contained) == Whereabouts::Ended
        });
        assert_eq!(gone, sees_all_namespaces(), "from inside a container nothing is known of another");
        if !gone {
            println!("skipped: these tests run inside a container themselves, which sees no other");
        }
    }

    #[test]
    fn a_process_that_is_not_reaped_has_ended() {
        let mut child = Command::new("sleep").arg("600").spawn().expect("coreutils");
        let started_ticks = started_ticks(child.id()).expect("it runs");
        let holder = Holder { process: child.id(), started_ticks, ..this_process() };
        assert_eq!(find(&holder), Whereabouts::Running);
        child.kill().expect("ours");
        // SIGKILL takes effect at some time after kill(2).
        while find(&holder) == Whereabouts::Running {
            std::thread::yield_now();
        }
        assert_eq!(find(&holder), Whereabouts::Ended);
        child.wait().expect("ours");
    }

    #[test]
    fn a_process_runs_as_long_as_one_of_its_threads() {
        let process = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let (first, second) = (process.path().join("task/7"), process.path().join("task/8"));
        let write = |directory: &Path, state: &str| {
            let line = format!("7 (agent) {state} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20");
            fs::create_dir_all(directory).and_then(|()| fs::write(directory.join("stat"), line)).expect("written");
        };
        write(process.path(), "Z");
        write(&first, "Z");
        write(&second, "D");
        assert_eq!(started_in(process.path()), Some(4711));
        write(&second, "Z");
        assert_eq!(started_in(process.path()), None);
    }

    #[test]
    fn a_programs_name_may_look_like_fields() {
        let line = "7 (a) R 1 (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(state_and_start(line), Some((false, 4711)));
        assert_eq!(state_and_start(&line.replace(") S", ") Z")), Some((true, 4711)));
        assert_eq!(state_and_start("7 (short) S 1 2"), None);
    }
}
