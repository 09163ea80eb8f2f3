//! Which process holds something, and whether it still runs.
//!
//! A process number alone says little: the kernel reuses it, every boot starts over, and a directory may be shared with
//! another machine that has its own processes.

use fstone_model::dataset::Holder;
use sha2::{Digest, Sha256};
use std::{fs, sync::OnceLock};

/// What is known of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// It runs on this machine.
    Running,
    /// It ran on this machine and has ended.
    Ended,
    /// It belongs to another machine, whose processes cannot be seen from here.
    Elsewhere,
}

/// This process.
#[must_use]
pub fn this_process() -> Holder {
    let process = std::process::id();
    Holder {
        machine: machine().to_owned(),
        host: host(),
        boot: boot_id(),
        process,
        started_ticks: started_ticks(process).unwrap_or(0),
    }
}

/// Whether a holder still runs.
#[must_use]
pub fn find(holder: &Holder) -> Whereabouts {
    if holder.machine != machine() {
        Whereabouts::Elsewhere
    } else if holder.boot == boot_id() && started_ticks(holder.process) == Some(holder.started_ticks) {
        Whereabouts::Running
    } else {
        Whereabouts::Ended
    }
}

/// The digest of this machine's identity.
///
/// machine-id(5) asks that the number itself stays on the machine, so only a digest is written down. The host name is part
/// of it because diskless nodes of a cluster may share one `/etc`, and taking two machines for one is the error that would
/// lose data.
pub(crate) fn machine() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let digest = Sha256::digest(format!("fstone machine\n{}\n{}", id.trim(), host()));
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    })
}

/// The machine's name.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A number that differs between any two boots of any machine; empty where the kernel does not provide it.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// When a process started, by proc_pid_stat(5); `None` when there is none, or only what its parent has not reaped yet.
fn started_ticks(process: u32) -> Option<u64> {
    started_in(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

fn started_in(stat: &str) -> Option<u64> {
    // The name of the program comes second, in parentheses, and may itself contain parentheses and spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    // The state is the third field, the start time the 22nd.
    fields.nth(18)?.parse().ok().filter(|_| !matches!(state, "Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_known_by_more_than_its_number() {
        let this = this_process();
        assert_eq!(find(&this), Whereabouts::Running);
        let reused = Holder { started_ticks: this.started_ticks + 1, ..this.clone() };
        assert_eq!(find(&reused), Whereabouts::Ended);
        let rebooted = Holder { boot: "another boot".into(), ..this.clone() };
        assert_eq!(find(&rebooted), Whereabouts::Ended);
        let elsewhere = Holder { machine: "another machine".into(), ..this };
        assert_eq!(find(&elsewhere), Whereabouts::Elsewhere);
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
    fn a_programs_name_may_look_like_fields() {
        let line = "7 (a) R 1 (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(started_in(line), Some(4711));
        assert_eq!(started_in(&line.replace(") S", ") Z")), None);
        assert_eq!(started_in("7 (short) S 1 2"), None);
    }
}
