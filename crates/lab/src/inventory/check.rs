//! What this machine can do, before anything is run on it.

#![expect(unsafe_code, reason = "io_uring_setup has no safe wrapper among our dependencies")]

use super::place::existing;
use crate::command::{CommandLine, CommandRunner, SystemRunner};
use crate::filesystem;
use crate::source_archive;
use crate::stop::Stop;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What this machine can do. Printed plainly by `Display`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub root: Ability,
    pub loop_devices: Ability,
    pub io_uring: Ability,
    pub kvm: Ability,
    pub user_namespaces: Ability,
    pub linux_source: Ability,
    /// The work directory, or the nearest directory above it that is there.
    pub work_directory: PathBuf,
    /// Space there that this user may use; `None` when it cannot be found out.
    pub free_bytes: Option<u64>,
    pub filesystems: Vec<FilesystemCheck>,
    pub programs: Vec<ProgramCheck>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ability {
    pub available: bool,
    /// Why not, or what is to be known about it; may be empty.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesystemCheck {
    pub kind: &'static str,
    pub in_kernel: bool,
    pub missing_tools: Vec<&'static str>,
    pub package: &'static str,
    /// Smallest device its mkfs takes with default options.
    pub minimum_bytes: u64,
    /// Why it cannot be used on any machine, when so.
    pub unusable: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramCheck {
    pub program: &'static str,
    pub package: &'static str,
    pub purpose: &'static str,
    pub installed: bool,
}

/// (program, package, purpose)
const PROGRAMS: [(&str, &str, &str); 19] = [
    ("tar", "tar", "studies that unpack and read source trees"),
    ("xz", "xz-utils", "unpacking linux-source"),
    ("make", "make", "building a source tree"),
    ("gcc", "gcc", "building a source tree"),
    ("flex", "flex", "building linux-source"),
    ("bison", "bison", "building linux-source"),
    ("bc", "bc", "building linux-source"),
    ("git", "git", "a tree under version control"),
    ("svn", "subversion", "a tree under version control; git works, too"),
    ("initdb", "postgresql", "the study postgresql"),
    ("postgres", "postgresql", "the study postgresql"),
    ("pgbench", "postgresql", "the study postgresql"),
    ("psql", "postgresql", "the study postgresql"),
    ("sqlite3", "sqlite3", "the study sqlite"),
    ("rsync", "rsync", "the study backup"),
    ("dpkg-deb", "dpkg", "the study packages"),
    ("fstrim", "util-linux", "trim steps"),
    ("linux.uml", "user-mode-linux", "the sandbox, without root"),
    ("qemu-system-x86_64", "qemu-system-x86", "the sandbox, with other kernels"),
];

/// The Debian package of a program, where fstone knows it.
pub(crate) fn package_of(program: &str) -> Option<&'static str> {
    PROGRAMS.iter().find(|(known, ..)| *known == program).map(|(_, package, _)| *package)
}

/// Programs here answer at once or not at all.
const LIMIT: Duration = Duration::from_secs(5);

/// Looks at this machine, for runs in this work directory, which need not be there yet. Changes nothing.
pub fn check(work_directory: &Path) -> Check {
    let runner = SystemRunner::new(Arc::new(Stop::default()));
    check_with(work_directory, &runner, &filesystem::kernel_has)
}

fn check_with(work_directory: &Path, runner: &dyn CommandRunner, kernel_has: &dyn Fn(&str) -> bool) -> Check {
    let is_root = rustix::process::geteuid().is_root();
    let work_directory = existing(work_directory).unwrap_or_else(|| work_directory.to_owned());
    let space = rustix::fs::statvfs(&work_directory).ok();
    let is_missing = |program: &str| runner.find(program).is_none();
    Check {
        root: Ability::new(
            is_root,
            "no mkfs, mount or fsck without root; use user-mode Linux (--executor uml), or measure a directory",
        ),
        loop_devices: openable("/dev/loop-control"),
        io_uring: io_uring(),
        kvm: kvm(),
        user_namespaces: user_namespaces(runner),
        linux_source: linux_source(Path::new("/usr/src")),
        free_bytes: space.map(|space| space.f_bavail.saturating_mul(space.f_frsize)),
        work_directory,
        filesystems: filesystem::all()
            .iter()
            .map(|adapter| FilesystemCheck {
                kind: adapter.kind(),
                in_kernel: kernel_has(adapter.kernel_name()),
                missing_tools: adapter.facts().tools.iter().copied().filter(|tool| is_missing(tool)).collect(),
                package: adapter.facts().package,
                minimum_bytes: adapter.facts().minimum_bytes,
                unusable: adapter.unusable(),
            })
            .collect(),
        programs: PROGRAMS
            .map(|(program, package, purpose)| ProgramCheck {
                program,
                package,
                purpose,
                installed: !is_missing(program),
            })
            .into(),
    }
}

impl Check {
    /// Packages that would bring what is missing, each once, by name. Tools of filesystems that the kernel does not
    /// have are left out: they would bring nothing.
    pub fn missing_packages(&self) -> Vec<&'static str> {
        let filesystems = self.filesystems.iter().filter(|filesystem| filesystem.wants_tools());
        let programs = self.programs.iter().filter(|program| !program.installed);
        let mut packages: Vec<&str> =
            filesystems.map(|filesystem| filesystem.package).chain(programs.map(|program| program.package)).collect();
        packages.sort_unstable();
        packages.dedup();
        packages
    }

    /// The command that installs them; `None` when nothing is missing.
    pub fn install_command(&self) -> Option<String> {
        let packages = self.missing_packages();
        let sudo = if self.root.available { "" } else { "sudo " };
        (!packages.is_empty()).then(|| format!("{sudo}apt-get install {}", packages.join(" ")))
    }
}

impl FilesystemCheck {
    const fn wants_tools(&self) -> bool {
        self.unusable.is_none() && self.in_kernel && !self.missing_tools.is_empty()
    }
}

impl Ability {
    fn new(available: bool, why_not: impl Into<String>) -> Self {
        Self { available, detail: if available { String::new() } else { why_not.into() } }
    }
}

/// Whether a device node can be opened for reading and writing, which changes nothing.
fn openable(path: &str) -> Ability {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => Ability::new(true, ""),
        Err(error) => Ability::new(false, format!("{path}: {error}")),
    }
}

/// A node that opens promises little: under some hypervisors guests then hang.
fn kvm() -> Ability {
    match openable("/dev/kvm") {
        Ability { available: true, .. } => {
            let detail = "/dev/kvm opens; whether guests run on it is found out when one is started";
            Ability { available: true, detail: detail.to_owned() }
        }
        not => not,
    }
}

/// Asks for a ring without saying what kind: a kernel that has io_uring, and lets this process use it, complains about
/// that and not about the call.
fn io_uring() -> Ability {
    // SAFETY: io_uring_setup reads and writes nothing through a null pointer; it fails with EFAULT or EINVAL.
    let result = unsafe { libc::syscall(libc::SYS_io_uring_setup, 0, std::ptr::null_mut::<libc::c_void>()) };
    let error = io::Error::last_os_error();
    match (result, error.raw_os_error()) {
        (-1, Some(libc::EFAULT | libc::EINVAL)) => Ability::new(true, ""),
        (-1, Some(libc::ENOSYS)) => Ability::new(false, "this kernel has none"),
        (-1, Some(libc::EPERM | libc::EACCES)) => {
            Ability::new(false, "forbidden here (kernel.io_uring_disabled, or a container's filter)")
        }
        _ => Ability::new(false, error.to_string()),
    }
}

/// Makes one, for `true` to run in: too many settings forbid them to know them all.
fn user_namespaces(runner: &dyn CommandRunner) -> Ability {
    match runner.run(&CommandLine::new("unshare", ["--user", "--map-current-user", "true"]), LIMIT) {
        Ok(output) => Ability::new(output.status == 0, output.words()),
        Err(error) => Ability::new(false, error.to_string()),
    }
}

/// The archive that Debian's linux-source packages bring.
fn linux_source(directory: &Path) -> Ability {
    source_archive::installed(directory).map_or_else(
        || Ability::new(false, "a generated tree is used; `apt-get install linux-source` installs a real one"),
        |path| Ability { available: true, detail: path.display().to_string() },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{CommandOutput, FakeRunner};

    fn checked(runner: &FakeRunner, kernel: &[&str]) -> Check {
        let kernel_has = |name: &str| kernel.contains(&name);
        check_with(Path::new("/tmp/not/yet/there"), runner, &kernel_has)
    }

    #[test]
    fn the_install_line_has_what_helps_and_nothing_else() {
        let runner = FakeRunner::new().without("mkfs.xfs").without("xfs_db").without("mkfs.jfs").without("svn");
        let mut check = checked(&runner, &["ext4", "xfs"]);
        let of = |kind: &str| check.filesystems.iter().find(|filesystem| filesystem.kind == kind).expect("an adapter");
        assert!(of("ext4").in_kernel && of("ext4").missing_tools.is_empty());
        assert_eq!(of("xfs").missing_tools, ["mkfs.xfs", "xfs_db"]);
        assert!(!of("jfs").in_kernel && !of("jfs").wants_tools());
        check.root = Ability::new(true, "");
        assert_eq!(check.install_command().as_deref(), Some("apt-get install subversion xfsprogs"));
        check.root = Ability::new(false, "");
        assert_eq!(check.install_command().as_deref(), Some("sudo apt-get install subversion xfsprogs"));
        assert_eq!(checked(&FakeRunner::new(), &["ext4"]).install_command(), None);
    }

    #[test]
    fn user_namespaces_are_tried() {
        let refused =
            CommandOutput { status: 1, stderr: "unshare: Operation not permitted".into(), ..CommandOutput::default() };
        let runner = FakeRunner::new().answering("unshare", refused);
        let ability = checked(&runner, &[]).user_namespaces;
        assert_eq!((ability.available, ability.detail.as_str()), (false, "unshare: Operation not permitted"));
        assert_eq!(runner.calls(), ["unshare --user --map-current-user true"], "nothing else is run");
        let missing = checked(&FakeRunner::new().without("unshare"), &[]).user_namespaces;
        assert!(!missing.available && missing.detail.contains("not found"), "{missing:?}");
    }

    #[test]
    fn an_installed_source_archive_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(!linux_source(directory.path()).available);
        std::fs::write(directory.path().join("linux-source-6.1.tar.xz"), "").expect("written");
        let found = linux_source(directory.path());
        assert!(found.available && found.detail.ends_with("/linux-source-6.1.tar.xz"), "{found:?}");
        assert!(!linux_source(Path::new("/nonexistent")).available);
    }

    #[test]
    fn this_machine_is_looked_at() {
        let check = checked(&FakeRunner::new(), &[]);
        assert_eq!(check.work_directory, Path::new("/tmp").canonicalize().expect("there"));
        assert!(check.free_bytes.is_some());
        assert_eq!(check.root.available, rustix::process::geteuid().is_root());
        for ability in [&check.root, &check.loop_devices, &check.io_uring, &check.kvm] {
            assert!(ability.available || !ability.detail.is_empty(), "what is not there has a reason: {ability:?}");
        }
    }
}
