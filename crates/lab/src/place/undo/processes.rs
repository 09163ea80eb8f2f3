//! The processes of a guest, which a killed run may leave where no pid namespace takes them along.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::{
    fs, io,
    path::Path,
    time::{Duration, Instant},
};

const DYING: Duration = Duration::from_secs(10);

/// Kills what runs this program (or fstone itself, which waits for it there) in this directory, and waits until it is gone.
/// A shell that somebody has entered the directory with is left alone.
pub(super) fn end_in(directory: &Path, program: &Path) -> io::Result<()> {
    let fstone = fs::read_link("/proc/self/exe").unwrap_or_default();
    let programs = [program, &fstone];
    let since = Instant::now();
    loop {
        let left = running(directory, &programs);
        for pid in &left {
            // By a handle: the number may be another's by now, so what it is is looked at again behind it.
            if let Ok(handle) = pidfd_open(*pid, PidfdFlags::empty())
                && is_in(*pid, directory, &programs)
            {
                let _ = pidfd_send_signal(&handle, Signal::KILL);
            }
        }
        let Some(first) = left.first() else { return Ok(()) };
        if since.elapsed() > DYING {
            let first = first.as_raw_nonzero();
            return Err(io::Error::other(format!("process {first} runs in it and cannot be killed")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn running(directory: &Path, programs: &[&Path]) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(Pid::from_raw);
    pids.filter(|pid| *pid != rustix::process::getpid() && is_in(*pid, directory, programs)).collect()
}

/// A process that has ended and was not reaped yet has neither any more.
fn is_in(pid: Pid, directory: &Path, programs: &[&Path]) -> bool {
    let link = |name: &str| fs::read_link(format!("/proc/{}/{name}", pid.as_raw_nonzero())).unwrap_or_default();
    link("cwd").starts_with(directory) && {
        let program = link("exe");
        programs.iter().any(|known| program == *known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_the_guests_own_program_is_killed() {
        let directory = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let path = directory.path().canonicalize().expect("it is there");
        let sleep = crate::command::find_program("sleep").expect("coreutils").canonicalize().expect("it is there");
        let start = |directory: &Path| Command::new(&sleep).arg("600").current_dir(directory).spawn().expect("starts");
        let (mut guest, mut elsewhere) = (start(&path), start(Path::new("/")));
        let other = Path::new("/nowhere/linux.uml");
        end_in(&path, other).expect("nothing is there");
        assert!(guest.try_wait().expect("ours").is_none(), "another program");
        // It stays a zombie until it is waited for, and counts as gone all the same.
        end_in(&path, &sleep).expect("it dies");
        assert!(!guest.wait().expect("ours").success());
        assert!(elsewhere.try_wait().expect("ours").is_none(), "another directory");
        elsewhere.kill().expect("ours");
        elsewhere.wait().expect("ours");
    }
}
