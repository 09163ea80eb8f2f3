//! What a hostile guest tries with its host: as root in a guest, and as a program that was started in a kernel's place. Each attack is
//! printed with how it ended; only "succeeded" is bad.

#![expect(unsafe_code, reason = "an attacker makes system calls itself")]

use fstone_sandbox::guest::BootError;
use fstone_sandbox::uml::{UmlKernel, UmlSpec};
use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter, sock_fprog};
use std::error::Error;
use std::ffi::{CString, c_long};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};

/// More than any place of a guest's own may hold.
const TOO_MUCH_BYTES: u64 = 700 << 20;

const NONE: [c_long; 5] = [0; 5];

type Attack<'a> = (&'a str, Box<dyn Fn() -> io::Result<()> + 'a>);

/// What is attacked, and on the command line where it is.
struct Victims {
    /// A directory with `key`, `file`, `secret` and `socket`.
    directory: PathBuf,
    shared: PathBuf,
    /// A process of the same user: `sleep`.
    process: i32,
    /// A socket without a file.
    abstract_name: String,
    port: u16,
    /// Whether the guest may not even fill the disk.
    bounded: bool,
}

impl Victims {
    fn parse(words: &[&str]) -> Option<Self> {
        let [directory, shared, process, abstract_name, port, bounded] = words else { return None };
        Some(Self {
            directory: directory.into(),
            shared: shared.into(),
            process: process.parse().ok()?,
            abstract_name: (*abstract_name).to_owned(),
            port: port.parse().ok()?,
            bounded: *bounded == "bounded",
        })
    }
}

/// Whether this program was started in a kernel's place, for these attacks.
pub(crate) fn as_kernel(arguments: &[&str]) -> bool {
    let Some(at) = arguments.windows(2).position(|words| words == ["--", "attack"]) else { return false };
    let Some(victims) = Victims::parse(&arguments[at + 2..]) else { return false };
    for (name, attack) in on_files(&victims.directory, true).into_iter().chain(on_the_host(&victims)) {
        report(name, &attack());
    }
    // SAFETY: a plain question.
    println!("user {}", unsafe { libc::geteuid() });
    true
}

fn report(name: &str, end: &io::Result<()>) {
    match end {
        Ok(()) => println!("{name}: succeeded"),
        Err(error) => println!("{name}: refused ({error})"),
    }
}

/// The attacks that a guest's root makes with its kernel's own file system of the host's files, as one text.
pub(crate) fn in_guest(directory: &str) -> String {
    let mut told = String::new();
    for (name, attack) in on_files(Path::new(directory), false) {
        match attack() {
            Ok(()) => told += &format!("{name}: succeeded\n"),
            Err(error) => told += &format!("{name}: refused ({error})\n"),
        }
    }
    told
}

fn call(number: c_long, arguments: [c_long; 5]) -> io::Result<c_long> {
    let [a, b, c, d, e] = arguments;
    // SAFETY: the callers pass pointers to C strings and structures that outlive the call.
    match unsafe { libc::syscall(number, a, b, c, d, e) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

fn c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("no NUL in a path")
}

fn on_files(directory: &Path, is_kernel: bool) -> Vec<Attack<'_>> {
    let path = move |name: &str| directory.join(name);
    let text = move |name: &str| c(&path(name));
    let at = libc::AT_FDCWD as c_long;
    let chmod = move |name: &str, mode: c_long| {
        let text = text(name);
        let held = File::open(path(name));
        call(libc::SYS_chmod, [text.as_ptr() as c_long, mode, 0, 0, 0])
            .or_else(|_| call(libc::SYS_fchmodat, [at, text.as_ptr() as c_long, mode, 0, 0]))
            .or_else(|_| call(452, [at, text.as_ptr() as c_long, mode, 0, 0]))
            .or_else(|error| {
                held.map_or(Err(error), |file| call(libc::SYS_fchmod, [file.as_raw_fd().into(), mode, 0, 0, 0]))
            })
            .map(drop)
    };
    let mut attacks: Vec<Attack<'_>> = vec![
        ("make a file setuid", Box::new(move || chmod("file", 0o4777))),
        ("make a private key readable", Box::new(move || chmod("key", 0o644))),
        ("make a secret of root's readable", Box::new(move || chmod("secret", 0o644))),
        ("open a directory to all", Box::new(move || chmod("", 0o777))),
        ("read a secret of root's", Box::new(move || fs::read(path("secret")).map(drop))),
        (
            "set a time",
            Box::new(move || {
                let zero = [libc::timespec { tv_sec: 0, tv_nsec: 0 }; 2];
                let (text, times) = (text("file"), zero.as_ptr() as c_long);
                call(libc::SYS_utimensat, [at, text.as_ptr() as c_long, times, 0, 0])
                    .or_else(|_| call(libc::SYS_utimes, [text.as_ptr() as c_long, times, 0, 0, 0]))
                    .or_else(|_| call(libc::SYS_utime, [text.as_ptr() as c_long, times, 0, 0, 0]))
                    .map(drop)
            }),
        ),
        (
            "give a file away",
            Box::new(move || {
                let text = text("file");
                call(libc::SYS_chown, [text.as_ptr() as c_long, 1, 1, 0, 0])
                    .or_else(|_| call(libc::SYS_lchown, [text.as_ptr() as c_long, 1, 1, 0, 0]))
                    .or_else(|_| call(libc::SYS_fchownat, [at, text.as_ptr() as c_long, 1, 1, 0]))
                    .map(drop)
            }),
        ),
        ("write a file", Box::new(move || OpenOptions::new().write(true).open(path("file"))?.write_all(b"x"))),
        ("empty a file", Box::new(move || OpenOptions::new().write(true).truncate(true).open(path("file")).map(drop))),
        (
            "empty a file without writing",
            Box::new(move || {
                let text = text("file");
                let flags = libc::O_RDONLY | libc::O_TRUNC;
                call(libc::SYS_truncate, [text.as_ptr() as c_long, 0, 0, 0, 0])
                    .or_else(|_| call(libc::SYS_open, [text.as_ptr() as c_long, flags.into(), 0, 0, 0]))
                    .map(drop)
            }),
        ),
        ("make a file", Box::new(move || File::create(path("new")).map(drop))),
        ("make a directory", Box::new(move || fs::create_dir(path("new")))),
        ("remove a file", Box::new(move || fs::remove_file(path("file")))),
        ("rename a file", Box::new(move || fs::rename(path("file"), path("new")))),
        ("link to a file", Box::new(move || fs::hard_link(path("key"), path("new")))),
        ("make a symbolic link", Box::new(move || std::os::unix::fs::symlink("/etc/shadow", path("new")))),
        (
            "make a pipe",
            Box::new(move || {
                let text = text("new");
                call(libc::SYS_mknod, [text.as_ptr() as c_long, (libc::S_IFIFO | 0o666).into(), 0, 0, 0]).map(drop)
            }),
        ),
        (
            "make a device",
            Box::new(move || {
                let text = text("new");
                call(libc::SYS_mknod, [text.as_ptr() as c_long, (libc::S_IFBLK | 0o666).into(), 0x700, 0, 0]).map(drop)
            }),
        ),
        (
            "make a setuid file",
            Box::new(move || OpenOptions::new().write(true).create_new(true).mode(0o4755).open(path("new")).map(drop)),
        ),
    ];
    if is_kernel {
        attacks.push((
            "make a setuid file of its own",
            Box::new(|| {
                ["uml/new", "memory/new", "new"]
                    .map(|name| OpenOptions::new().write(true).create_new(true).mode(0o6755).open(name).map(drop))
                    .into_iter()
                    .find(Result::is_ok)
                    .unwrap_or_else(|| Err(io::Error::other("nowhere")))
            }),
        ));
        attacks.push((
            "write beside its own directory",
            Box::new(|| File::create("../new").or(File::create("new")).map(drop)),
        ));
    }
    attacks
}

fn on_the_host(victims: &Victims) -> Vec<Attack<'_>> {
    let pid = c_long::from(victims.process);
    let starter = c_long::from(std::os::unix::process::parent_id());
    // In the /proc of another namespace it has another number.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let seen = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok()).unwrap_or(starter);
    // In a namespace its number may be another process's.
    let is_seen = move || match fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) if name.trim() == "sleep" => Ok(()),
        _ => Err(io::Error::other("it is not to be seen")),
    };
    let socket = |family: libc::c_int, kind: libc::c_int| -> io::Result<File> {
        let socket = call(libc::SYS_socket, [family.into(), kind.into(), 0, 0, 0])?;
        // SAFETY: a descriptor that is new.
        Ok(unsafe { File::from_raw_fd(socket as i32) })
    };
    let tried = |number: c_long, arguments: [c_long; 5]| move || call(number, arguments).map(drop);
    let held = || File::open(victims.directory.join("file"));
    let mut attacks: Vec<Attack<'_>> = vec![
        ("connect to a socket of root's", Box::new(|| UnixStream::connect(victims.directory.join("socket")).map(drop))),
        (
            "connect to an abstract socket",
            Box::new(|| {
                let address = SocketAddr::from_abstract_name(&victims.abstract_name)?;
                UnixStream::connect_addr(&address).map(drop)
            }),
        ),
        ("connect by TCP", Box::new(|| std::net::TcpStream::connect(("127.0.0.1", victims.port)).map(drop))),
        ("send by UDP", Box::new(move || socket(libc::AF_INET, libc::SOCK_DGRAM).map(drop))),
        ("reach the hypervisor", Box::new(move || socket(libc::AF_VSOCK, libc::SOCK_STREAM).map(drop))),
        ("speak to the kernel by netlink", Box::new(move || socket(libc::AF_NETLINK, libc::SOCK_RAW).map(drop))),
        ("remove a file in shared memory", Box::new(|| fs::remove_file(&victims.shared))),
        (
            "overwrite a file in shared memory",
            Box::new(|| OpenOptions::new().write(true).open(&victims.shared)?.write_all(b"x")),
        ),
        (
            "read the memory of a process",
            Box::new(move || {
                is_seen()?;
                File::open(format!("/proc/{pid}/mem"))?.read_at(&mut [0], 0x40_0000).map(drop)
            }),
        ),
        (
            "read the environment of a process",
            Box::new(move || {
                is_seen()?;
                fs::read(format!("/proc/{pid}/environ")).map(drop)
            }),
        ),
        (
            "trace a process",
            Box::new(move || {
                is_seen()?;
                call(libc::SYS_ptrace, [libc::PTRACE_SEIZE.into(), pid, 0, 0, 0]).map(drop)
            }),
        ),
        (
            "end a process",
            Box::new(move || {
                is_seen()?;
                call(libc::SYS_kill, [pid, libc::SIGTERM.into(), 0, 0, 0])
                    .or_else(|_| call(libc::SYS_tgkill, [pid, pid, libc::SIGTERM.into(), 0, 0]))
                    .map(drop)
            }),
        ),
        (
            "limit a process",
            Box::new(move || {
                is_seen()?;
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                call(libc::SYS_prlimit64, [pid, libc::RLIMIT_CORE.into(), (&raw const none) as c_long, 0, 0]).map(drop)
            }),
        ),
        (
            "slow a process down",
            Box::new(move || {
                is_seen()?;
                call(libc::SYS_setpriority, [libc::PRIO_PROCESS.into(), pid, 19, 0, 0])
                    .or_else(|_| call(libc::SYS_ioprio_set, [1, pid, 3 << 13, 0, 0]))
                    .map(drop)
            }),
        ),
        ("read what only a group may read", Box::new(|| fs::read("/etc/shadow").map(drop))),
        // Process 1 of its namespace, or fstone.
        (
            "read the environment of the process that started it",
            Box::new(move || fs::read(format!("/proc/{seen}/environ")).map(drop)),
        ),
        (
            "read the memory of the process that started it",
            Box::new(move || File::open(format!("/proc/{seen}/mem")).map(drop)),
        ),
        (
            "trace the process that started it",
            Box::new(move || call(libc::SYS_ptrace, [libc::PTRACE_SEIZE.into(), starter, 0, 0, 0]).map(drop)),
        ),
        (
            "have the process that started it make calls that it may not make itself",
            Box::new(move || {
                let status = fs::read_to_string(format!("/proc/{seen}/status"))?;
                let is_filtered = status.lines().any(|line| line == "Seccomp:\t2");
                if is_filtered { Err(io::Error::other("it has a filter too")) } else { Ok(()) }
            }),
        ),
        (
            "have the host's filesystem seal a file",
            Box::new(|| {
                const ENABLE_VERITY: c_long = 0x4080_6685;
                let file = File::open(victims.directory.join("file"))?;
                by_filter(call(libc::SYS_ioctl, [file.as_raw_fd().into(), ENABLE_VERITY, 0, 0, 0]), libc::EPERM)
            }),
        ),
        (
            "watch a directory",
            Box::new(|| {
                let watch = call(libc::SYS_inotify_init1, NONE)?;
                let text = c(&victims.directory);
                call(libc::SYS_inotify_add_watch, [watch, text.as_ptr() as c_long, 0xfff, 0, 0]).map(drop)
            }),
        ),
        (
            "make a program in memory setuid",
            Box::new(|| {
                let program = call(libc::SYS_memfd_create, [c"program".as_ptr() as c_long, 0, 0, 0, 0])?;
                call(libc::SYS_fchmod, [program, 0o4755, 0, 0, 0]).map(drop)
            }),
        ),
        (
            "gain rights from a setuid program",
            // SAFETY: a plain question.
            Box::new(|| match unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } {
                1 => Err(io::Error::other("none are gained")),
                _ => Ok(()),
            }),
        ),
        (
            "slow all processes of its user down",
            // IOPRIO_WHO_USER, and a class that no kernel has: none is slowed down if it is asked.
            Box::new(|| by_filter(call(libc::SYS_ioprio_set, [3, 0, 7 << 13, 0, 0]), libc::EPERM)),
        ),
        (
            "share a processor's core with other processes",
            Box::new(|| by_filter(call(libc::SYS_prctl, [62, 1, 0, 1, 0]), libc::EPERM)),
        ),
        (
            "have the kernel load a protocol",
            Box::new(|| {
                let mut pair = [0_i32; 2];
                let pair = (&raw mut pair) as c_long;
                let asked = call(libc::SYS_socketpair, [libc::AF_INET.into(), libc::SOCK_DGRAM.into(), 0, pair, 0]);
                by_filter(asked, libc::EAFNOSUPPORT)
            }),
        ),
        (
            "set attributes of a file",
            Box::new(|| {
                let (text, none) = (c(&victims.directory.join("file")), [0_u64; 3]);
                let at = libc::AT_FDCWD as c_long;
                by_filter(call(469, [at, text.as_ptr() as c_long, none.as_ptr() as c_long, 24, 0]), libc::EPERM)
            }),
        ),
        (
            "set attributes of a file on FAT",
            Box::new(move || {
                let (file, none) = (held()?, 0_u32);
                by_filter(
                    call(libc::SYS_ioctl, [file.as_raw_fd().into(), 0x4004_7211, (&raw const none) as c_long, 0, 0]),
                    libc::EPERM,
                )
            }),
        ),
        ("lock a file", Box::new(move || call(libc::SYS_flock, [held()?.as_raw_fd().into(), 5, 0, 0, 0]).map(drop))),
        (
            "lock a part of a file",
            Box::new(move || {
                // SAFETY: all-zero is a lock of the whole file, by F_RDLCK.
                let lock: libc::flock = unsafe { std::mem::zeroed() };
                let lock = (&raw const lock) as c_long;
                call(libc::SYS_fcntl, [held()?.as_raw_fd().into(), libc::F_SETLK.into(), lock, 0, 0]).map(drop)
            }),
        ),
        (
            "have those wait who open a file",
            Box::new(move || {
                let lease = [held()?.as_raw_fd().into(), libc::F_SETLEASE.into(), libc::F_RDLCK.into(), 0, 0];
                call(libc::SYS_fcntl, lease).map(drop)
            }),
        ),
        (
            "watch a directory by signals",
            Box::new(|| {
                let directory = File::open(&victims.directory)?;
                call(libc::SYS_fcntl, [directory.as_raw_fd().into(), libc::F_NOTIFY.into(), 0x3f, 0, 0]).map(drop)
            }),
        ),
        ("become root", Box::new(tried(libc::SYS_setuid, NONE))),
        ("change its group", Box::new(tried(libc::SYS_setgroups, NONE))),
        (
            "mount",
            Box::new(|| {
                let (tmpfs, place) = (c"tmpfs".as_ptr() as c_long, c"uml".as_ptr() as c_long);
                call(libc::SYS_mount, [tmpfs, place, tmpfs, 0, 0]).map(drop)
            }),
        ),
        ("unmount", Box::new(|| call(libc::SYS_umount2, [c"uml".as_ptr() as c_long, 0, 0, 0, 0]).map(drop))),
        (
            "become root of a namespace",
            Box::new(tried(libc::SYS_unshare, [(libc::CLONE_NEWUSER | libc::CLONE_NEWNS).into(), 0, 0, 0, 0])),
        ),
        (
            "make a process in a namespace",
            Box::new(|| match call(libc::SYS_clone, [(libc::CLONE_NEWUSER | libc::SIGCHLD).into(), 0, 0, 0, 0])? {
                // SAFETY: the child of a fork ends.
                0 => unsafe { libc::_exit(0) },
                _ => Ok(()),
            }),
        ),
        ("load a module", Box::new(tried(libc::SYS_init_module, NONE))),
        ("load a program into the kernel", Box::new(tried(libc::SYS_bpf, [5, 0, 0, 0, 0]))),
        ("read keys", Box::new(tried(libc::SYS_keyctl, [0, -3, 1, 0, 0]))),
        ("count events of the kernel", Box::new(tried(libc::SYS_perf_event_open, NONE))),
        ("read the kernel's log", Box::new(tried(libc::SYS_syslog, [10, 0, 0, 0, 0]))),
        ("open a file by its handle", Box::new(tried(libc::SYS_open_by_handle_at, NONE))),
        ("use a ring of requests", Box::new(tried(libc::SYS_io_uring_setup, [1, 0, 0, 0, 0]))),
        ("share memory by number", Box::new(tried(libc::SYS_shmget, [0, 4096, 0o1600, 0, 0]))),
    ];
    if victims.bounded {
        attacks.push(("fill the disk", Box::new(|| fill(&["uml", "memory", "."]))));
    }
    attacks
}

/// Any other answer is the kernel's own, to which the call came.
fn by_filter(asked: io::Result<c_long>, errno: i32) -> io::Result<()> {
    asked.map(drop).or_else(|error| if error.raw_os_error() == Some(errno) { Err(error) } else { Ok(()) })
}

fn fill(directories: &[&str]) -> io::Result<()> {
    let piece = vec![1; 1 << 20];
    let mut written = 0;
    let mut last = io::Error::other("nowhere");
    for (number, directory) in directories.iter().enumerate() {
        let mut write = || -> io::Result<()> {
            let mut file = File::create(format!("{directory}/full-{number}"))?;
            while written < TOO_MUCH_BYTES {
                file.write_all(&piece)?;
                written += piece.len() as u64;
            }
            Ok(())
        };
        match write() {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Starts this program itself in a kernel's place, and prints what it said. With `refused` no namespaces are to be had; if the victims are
/// `hidden`, they are not among what the guest is to read.
pub(crate) fn with_hostile_kernel(words: &[&str]) -> Result<(), Box<dyn Error>> {
    let (words, readable) = prepared(words);
    let directory = super::private_directory()?;
    let kernel = UmlKernel { binary: std::env::current_exe()?, modules: None, libraries: None };
    let mut spec = UmlSpec::new(kernel, std::env::current_exe()?, directory.path());
    spec.memory_bytes = 64 << 20;
    spec.readable = readable;
    spec.agent_arguments = std::iter::once("attack").chain(words.iter().copied()).map(str::to_owned).collect();
    match spec.boot() {
        Err(BootError::NotUp { console_log, .. }) => print!("{}", fs::read_to_string(console_log)?),
        other => return Err(format!("{other:?}").into()),
    }
    let left: Vec<_> = fs::read_dir(directory.path())?.flatten().map(|entry| entry.file_name()).collect();
    println!("left {}", left.len());
    Ok(())
}

pub(crate) fn with_hostile_root(kernel: UmlKernel, words: &[&str]) -> Result<(), Box<dyn Error>> {
    let (words, readable) = prepared(words);
    let place = super::private_directory()?;
    let mut spec = UmlSpec::new(kernel, std::env::current_exe()?, place.path());
    spec.readable = readable;
    let mut guest = spec.boot()?;
    let directory = words.first().copied().unwrap_or_default();
    // Read-only is but an option of a mount, and the guest's root can make another.
    super::job(&mut guest, "mount", &format!("none hostfs {directory}"))?;
    print!("{}", super::job(&mut guest, "attack", "/run/fstone/mount")?);
    println!("not enforced: {:?}", guest.not_enforced());
    drop(guest.finish());
    Ok(())
}

/// Refuses namespaces if it is to, or is as a kernel before 5.12, and says what the guest may read.
fn prepared<'a>(words: &'a [&'a str]) -> (&'a [&'a str], Vec<PathBuf>) {
    let mut rest = words;
    let mut hidden = false;
    while let [word @ ("refused" | "old" | "hidden"), after @ ..] = rest {
        match *word {
            "refused" => refuse_namespaces(),
            "old" => have_no_mount_setattr(),
            _ => hidden = true,
        }
        rest = after;
    }
    (rest, rest.first().filter(|_| !hidden).map(PathBuf::from).into_iter().collect())
}

fn have_no_mount_setattr() {
    bind(&mut [
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0),
        step(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, libc::SYS_mount_setattr as u32),
        refuse(libc::ENOSYS),
        step(BPF_RET | BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]);
}

fn step(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

fn refuse(errno: i32) -> sock_filter {
    step(BPF_RET | BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32)
}

/// As the seccomp profiles of containers do.
fn refuse_namespaces() {
    let namespaces = 0x7e02_0000;
    bind(&mut [
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0),
        step(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, libc::SYS_clone3 as u32),
        refuse(libc::ENOSYS),
        step(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, libc::SYS_unshare as u32),
        refuse(libc::EPERM),
        step(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, libc::SYS_clone as u32),
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0, 16),
        step(BPF_JMP | BPF_JSET | BPF_K, 0, 1, namespaces),
        refuse(libc::EPERM),
        step(BPF_RET | BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]);
}

fn bind(filter: &mut [sock_filter]) {
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its filter are valid for both calls, which copy them.
    let bound = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    assert!(bound, "{}", io::Error::last_os_error());
}
