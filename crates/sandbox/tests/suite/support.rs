//! What the tests of guests share.

use fstone_sandbox::guest::{BootError, Guest, JobEnd, Watch};
use fstone_sandbox::uml::{UmlDisk, UmlSpec, installed_kernel};
use fstone_sandbox::vhost::{Disk, DiskSpec};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Long enough on any machine; a job that takes it has failed.
pub(crate) const AMPLE: Duration = Duration::from_secs(120);

/// Guests one at a time: each wants a CPU of its own.
static ONE: Mutex<()> = Mutex::new(());

/// A directory for one guest, and the right to run it.
pub(crate) struct Turn {
    pub(crate) directory: tempfile::TempDir,
    _lock: MutexGuard<'static, ()>,
}

pub(crate) fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// The example that is the agent of these tests. `cargo test` builds it; `cargo test --test suite` alone does not, and
/// would use an old one.
pub(crate) fn agent() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let agent = test.parent().unwrap().parent().unwrap().join("examples/guest_agent");
    assert!(agent.is_file(), "{} is missing: cargo test builds it", agent.display());
    agent
}

/// A guest's directory is its user's own.
pub(crate) fn private_directory() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().unwrap()
}

impl Turn {
    /// `None` where user-mode Linux is missing, having said so.
    pub(crate) fn new() -> Option<Self> {
        if installed_kernel().is_none() {
            skip("linux.uml is not installed (apt-get install user-mode-linux)");
            return None;
        }
        Some(Self::for_any_kernel())
    }

    pub(crate) fn for_any_kernel() -> Self {
        let lock = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        Self { directory: private_directory(), _lock: lock }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn spec(&self) -> UmlSpec {
        let mut spec = UmlSpec::new(installed_kernel().unwrap(), agent(), self.directory.path());
        spec.watch = Watch { hello_limit: AMPLE, silence_limit: Duration::from_secs(30), farewell_limit: AMPLE };
        spec
    }

    pub(crate) fn boot(&self) -> Guest {
        booted(self.spec().boot())
    }

    /// A sparse image with a filesystem; `None` where its mkfs is missing, having said so.
    pub(crate) fn image(&self, kind: &str, mebibytes: u64) -> Option<PathBuf> {
        let image = self.path("disk.img");
        File::create(&image).unwrap().set_len(mebibytes << 20).unwrap();
        make_filesystem(kind, &image).then_some(image)
    }

    pub(crate) fn boot_with(&self, spec: &DiskSpec, change: impl FnOnce(&mut UmlSpec)) -> (Guest, Disk) {
        let disk = Disk::serve(spec, &self.path("disk.sock")).unwrap();
        let mut guest = self.spec();
        guest.disks = vec![UmlDisk::VhostUser(disk.socket().to_owned())];
        change(&mut guest);
        (booted(guest.boot()), disk)
    }

    /// Processes of the guest: those whose working directory is this one.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let directory = self.directory.path().canonicalize().unwrap();
        let mut found: Vec<i32> = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid: &i32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == directory))
            .collect();
        found.sort_unstable();
        found
    }

    /// The guest's kernel, as the host sees it: the process of the guest that no other one of its kind started. Numbers do
    /// not tell, since they begin anew at some point.
    pub(crate) fn kernel_process(&self) -> i32 {
        let of = |pid: i32, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let is_kernel = |pid: i32| of(pid, "comm").starts_with("linux");
        let parent = |pid: i32| {
            let status = of(pid, "status");
            status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok()).unwrap_or(0)
        };
        let mut kernels = self.processes().into_iter().filter(|&pid| is_kernel(pid) && !is_kernel(parent(pid)));
        kernels.next().expect("the guest is running")
    }
}

fn booted(result: Result<Guest, BootError>) -> Guest {
    result.unwrap_or_else(|error| panic!("failed to boot a guest: {error}"))
}

fn make_filesystem(kind: &str, image: &Path) -> bool {
    let options: &[&str] = match kind {
        "ext2" | "ext3" | "ext4" => &["-q", "-F"],
        "xfs" | "btrfs" | "f2fs" => &["-q", "-f"],
        "reiserfs" => &["-q", "-f", "-f"],
        _ => &["-q"],
    };
    let made = Command::new(format!("mkfs.{kind}"))
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .args(options)
        .arg(image)
        .output();
    match made {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            // mkfs.btrfs looks behind every loop device that is mounted anywhere, which takes root.
            if errors.contains("cannot check mount status") {
                skip(&format!("mkfs.{kind} as an ordinary user, while the host has a loop device mounted: {errors}"));
                return false;
            }
            assert!(output.status.success(), "mkfs.{kind}: {errors}");
            true
        }
        Err(error) => {
            skip(&format!("mkfs.{kind}: {error}"));
            false
        }
    }
}

pub(crate) fn run(guest: &mut Guest, kind: &str, body: &str) -> JobEnd {
    guest.run(kind, body.as_bytes(), AMPLE, &mut |_| ())
}

#[track_caller]
pub(crate) fn done(guest: &mut Guest, kind: &str, body: &str) -> String {
    match run(guest, kind, body) {
        JobEnd::Done(answer) => String::from_utf8(answer).unwrap(),
        other => panic!("{kind} {body}: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn fatal(guest: &mut Guest, kind: &str, body: &str, limit: Duration) -> fstone_sandbox::guest::Ending {
    match guest.run(kind, body.as_bytes(), limit, &mut |_| ()) {
        JobEnd::GuestEnded(ending) => ending,
        other => panic!("{kind} {body}: {other:?}"),
    }
}
