//! Hostile guests: root in a guest, and a program in a kernel's place, attack their host. Nothing that they try succeeds, whoever starts
//! them, and whether or not the host allows namespaces.

use crate::support::{Turn, agent, skip};
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// As whom fstone is started, and as whom guests then run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Starter {
    Root,
    /// Root, called by this user with sudo.
    Sudo,
    User,
    /// The same in the group that may read /etc/shadow.
    Member,
}

const CALLER: u32 = 12345;
const NOBODY: u32 = 65534;

impl Starter {
    /// Those that the test itself can be.
    fn all() -> &'static [Self] {
        if rustix::process::geteuid().is_root() {
            &[Self::Root, Self::Sudo, Self::User, Self::Member]
        } else {
            &[Self::User]
        }
    }

    fn guests_user(self) -> u32 {
        match self {
            Self::Sudo => CALLER,
            Self::User if !rustix::process::geteuid().is_root() => rustix::process::geteuid().as_raw(),
            Self::Root | Self::User | Self::Member => NOBODY,
        }
    }

    fn command(self, agent: &Path, directory: &Path) -> Command {
        let mut command = if self == Self::Member {
            let mut command = Command::new("setpriv");
            let group = fs::metadata("/etc/shadow").unwrap().gid();
            command.args(["--reuid=65534", "--regid=65534", &format!("--groups={group}")]).arg(agent);
            command
        } else {
            Command::new(agent)
        };
        command.env("TMPDIR", directory).current_dir("/").env_remove("SUDO_UID").env_remove("SUDO_GID");
        match self {
            Self::Root | Self::Member => {}
            Self::Sudo => {
                command.env("SUDO_UID", CALLER.to_string()).env("SUDO_GID", CALLER.to_string());
            }
            Self::User if rustix::process::geteuid().is_root() => {
                command.uid(NOBODY).gid(NOBODY);
            }
            Self::User => {}
        }
        command
    }
}

/// What is attacked: things of the guest's user, which that user could change, and of root.
struct Victims {
    directory: tempfile::TempDir,
    shared: PathBuf,
    process: Child,
    abstract_name: String,
    named: UnixListener,
    nameless: UnixListener,
    server: TcpListener,
    owner: u32,
}

impl Victims {
    fn new(starter: Starter) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let is_root = rustix::process::geteuid().is_root();
        let owner = starter.guests_user();
        let own = |path: &Path, mode: u32| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            if is_root {
                chown(path, Some(owner), Some(owner)).unwrap();
            }
        };
        let path = |name: &str| directory.path().join(name);
        for (name, mode) in [("key", 0o600), ("file", 0o666)] {
            fs::write(path(name), "before").unwrap();
            own(&path(name), mode);
        }
        fs::write(path("secret"), "before").unwrap();
        // An ordinary user has no secret that is root's.
        fs::set_permissions(path("secret"), Permissions::from_mode(if is_root { 0o600 } else { 0 })).unwrap();
        let named = UnixListener::bind(path("socket")).unwrap();
        fs::set_permissions(path("socket"), Permissions::from_mode(if is_root { 0o700 } else { 0 })).unwrap();
        let abstract_name = format!("fstone-victim-{}-{starter:?}", std::process::id());
        let nameless = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_name).unwrap()).unwrap();
        let server = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        for result in [named.set_nonblocking(true), nameless.set_nonblocking(true), server.set_nonblocking(true)] {
            result.unwrap();
        }
        let shared = PathBuf::from(format!("/dev/shm/fstone-victim-{}-{starter:?}", std::process::id()));
        fs::write(&shared, "before").unwrap();
        own(&shared, 0o666);
        own(directory.path(), 0o755);
        let mut sleep = Command::new("sleep");
        if is_root {
            sleep.uid(owner).gid(owner);
        }
        let process = sleep.arg("600").stdin(Stdio::null()).spawn().unwrap();
        Self { directory, shared, process, abstract_name, named, nameless, server, owner }
    }

    fn words(&self, bounded: bool) -> [String; 6] {
        [
            self.directory.path().display().to_string(),
            self.shared.display().to_string(),
            self.process.id().to_string(),
            self.abstract_name.clone(),
            self.server.local_addr().unwrap().port().to_string(),
            if bounded { "bounded" } else { "unbounded" }.to_owned(),
        ]
    }

    fn assert_unharmed(&mut self, what: &str) {
        let facts = |name: &str| {
            let facts = fs::symlink_metadata(self.directory.path().join(name)).unwrap();
            (facts.mode() & 0o7777, facts.uid(), facts.nlink(), facts.mtime() > 0)
        };
        let is_root = rustix::process::geteuid().is_root();
        let (root, nobodys) = if is_root { (0, 0o600) } else { (self.owner, 0) };
        assert_eq!(facts("key"), (0o600, self.owner, 1, true), "{what}");
        assert_eq!(facts("file"), (0o666, self.owner, 1, true), "{what}");
        assert_eq!(facts("secret"), (nobodys, root, 1, true), "{what}");
        assert_eq!(facts("").0, 0o755, "{what}");
        assert_eq!(fs::read_dir(self.directory.path()).unwrap().count(), 4, "{what}");
        for path in [self.directory.path().join("file"), self.shared.clone()] {
            assert_eq!(fs::read_to_string(&path).unwrap(), "before", "{what}: {}", path.display());
        }
        assert_eq!(self.process.try_wait().unwrap(), None, "{what}");
        let nobody_came = |kind: ErrorKind| assert_eq!(kind, ErrorKind::WouldBlock, "{what}");
        nobody_came(self.named.accept().unwrap_err().kind());
        nobody_came(self.nameless.accept().unwrap_err().kind());
        nobody_came(self.server.accept().unwrap_err().kind());
    }
}

impl Drop for Victims {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.shared);
    }
}

/// What an attacker said, if all that it tried was refused.
fn attacked(agent: &Path, starter: Starter, by: &str, how: &[&str], victims: &mut Victims) -> String {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), Permissions::from_mode(0o777)).unwrap();
    let mut command = starter.command(agent, place.path());
    if how == ["masked"] {
        // As in a container that hides parts of /proc: a user namespace in it cannot mount one of its own.
        let script =
            "mount --bind /dev/null /proc/interrupts && exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";
        command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]).arg(agent).env("TMPDIR", place.path()).current_dir("/");
    }
    command.args(["attacked", by]).args(how.iter().filter(|how| **how != "masked"));
    command.args(victims.words(!how.contains(&"refused")));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let what = format!("{starter:?}, {by} {how:?}:\n{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}");
    let succeeded: Vec<&str> = text.lines().filter(|line| line.contains(": succeeded")).collect();
    assert!(succeeded.is_empty(), "{succeeded:?}\n{what}");
    victims.assert_unharmed(&what);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "{what}");
    let shared = fs::read_dir("/dev/shm").unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<_> = shared.filter(|name| name.to_string_lossy().starts_with(".fstone-")).collect();
    assert_eq!(left, [""; 0], "{what}");
    text
}

fn allows_namespaces(starter: Starter) -> bool {
    let mut command = Command::new("unshare");
    command.args(["--user", "--mount", "--net", "--pid", "--fork", "true"]);
    if matches!(starter, Starter::User | Starter::Member) && rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.output().is_ok_and(|output| output.status.success())
}

fn each_way(by: &str, least: usize) {
    for starter in Starter::all() {
        let mut victims = Victims::new(*starter);
        let is_user_of_root = *starter == Starter::User && rustix::process::geteuid().is_root();
        for how in [&[][..], &["hidden"], &["refused"], &["old"], &["masked"]] {
            // Its own file system of the host's files is of a directory that is there.
            if by == "root" && how == ["hidden"] || how == ["masked"] && !is_user_of_root {
                continue;
            }
            if !how.contains(&"refused") && !allows_namespaces(*starter) {
                skip(&format!("{starter:?}: this host refuses namespaces"));
                continue;
            }
            let text = attacked(&agent(), *starter, by, how, &mut victims);
            let refused = text.lines().filter(|line| line.contains(": refused")).count();
            assert!(refused >= least, "{starter:?}: {text}");
            match by {
                "kernel" => {
                    assert!(text.contains(&format!("\nuser {}\n", starter.guests_user())), "{starter:?}: {text}");
                }
                _ => assert_eq!(text.contains("not enforced: None"), !how.contains(&"refused"), "{starter:?}: {text}"),
            }
        }
    }
}

/// Whatever it does with the host's files, which it sees by its kernel's hostfs.
#[test]
fn a_guests_root_cannot_change_the_host() {
    let Some(_turn) = Turn::new() else { return };
    each_way("root", 19);
}

#[test]
fn a_hostile_kernel_cannot_change_the_host() {
    let _turn = Turn::for_any_kernel();
    each_way("kernel", 63);
}

/// Root in a container, and what guests need is where only root looks: they read that, and no secrets.
#[test]
fn where_only_root_could_start_a_guest_it_reads_no_more_than_it_needs() {
    let _turn = Turn::for_any_kernel();
    if !rustix::process::geteuid().is_root() {
        return skip("it is about root");
    }
    let private = tempfile::tempdir().unwrap();
    let copy = private.path().join("agent");
    fs::copy(agent(), &copy).unwrap();
    let mut victims = Victims::new(Starter::Root);
    let text = attacked(&copy, Starter::Root, "kernel", &["refused", "hidden"], &mut victims);
    assert!(text.contains(&format!("\nuser {NOBODY}\n")), "{text}");
}
