#![expect(unsafe_code, reason = "sched_setscheduler and RNDADDENTROPY have no safe wrappers")]
//! The duties of process 1.

use super::tsc;
use crate::frames::{Hello, TscFacts};
use crate::guest::END_OF_STACKS;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};
use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;

/// In memory, writable, and the home of every mount point.
pub(crate) const SCRATCH: &str = "/run/fstone";

const PRINTK: &str = "/proc/sys/kernel/printk";
const USUAL_LEVEL: &str = "4";

/// Mounts what a process expects. The root may be the host's, read-only: only directories that every Linux has are
/// used, and only /run is hidden.
pub(crate) fn mounts() -> Vec<String> {
    let plan = [
        ("proc", "/proc", "proc", c""),
        ("sysfs", "/sys", "sysfs", c""),
        ("devtmpfs", "/dev", "devtmpfs", c"mode=0755"),
        ("tmpfs", "/run", "tmpfs", c"mode=0755"),
        ("tmpfs", "/dev/shm", "tmpfs", c"mode=1777"),
        ("devpts", "/dev/pts", "devpts", c"mode=0620,ptmxmode=0666"),
    ];
    let mut complaints = Vec::new();
    for (source, target, kind, options) in plan {
        let _ = rustix::fs::mkdir(target, Mode::from(0o755));
        match mount(source, target, kind, MountFlags::NOSUID, options) {
            // The kernel may have mounted /dev itself.
            Ok(()) | Err(Errno::BUSY) => {}
            Err(error) => complaints.push(format!("cannot mount {kind} on {target}: {error}")),
        }
    }
    for (directory, mode) in [(SCRATCH, 0o755), ("/run/tmp", 0o1777), ("/run/lock", 0o1777)] {
        if let Err(error) = rustix::fs::mkdir(directory, Mode::from(mode))
            && error != Errno::EXIST
        {
            complaints.push(format!("cannot make {directory}: {error}"));
        }
    }
    complaints
}

/// A crash is to be a crash, and the magic keys are to work.
pub(crate) fn kernel_settings() -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, value) in [("/proc/sys/kernel/sysrq", "1"), ("/proc/sys/kernel/panic_on_oops", "1")] {
        if let Err(error) = fs::write(path, value) {
            complaints.push(format!("cannot set {path} to {value}: {error}"));
        }
    }
    complaints
}

/// Fills the kernel's pool of randomness, random(4): a kernel without a source of its own (user-mode Linux 5.10) takes
/// ten seconds to find some, and whoever asks for a random number, if only for a UUID, waits. There are no secrets
/// in a guest: that no two guests draw the same numbers is enough.
pub(crate) fn randomness() -> Vec<String> {
    /// `_IOW('R', 0x03, int[2])`.
    const RNDADDENTROPY: libc::Ioctl = 0x4008_5203;
    const BYTES: usize = 64;
    /// `struct rand_pool_info` of `linux/random.h`.
    #[repr(C)]
    struct Pool {
        entropy_bits: libc::c_int,
        bytes: libc::c_int,
        content: [u64; BYTES / 8],
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let content = std::array::from_fn(|_| tsc::read() ^ now.as_nanos() as u64);
    let pool = Pool { entropy_bits: BYTES as libc::c_int * 8, bytes: BYTES as libc::c_int, content };
    let added = fs::OpenOptions::new().write(true).open("/dev/random").and_then(|device| {
        // SAFETY: the kernel reads `bytes` bytes after the two numbers, and there are as many.
        let status = unsafe { libc::ioctl(device.as_raw_fd(), RNDADDENTROPY, &raw const pool) };
        if status == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    });
    added.err().map(|error| format!("cannot fill the pool of randomness: {error}")).into_iter().collect()
}

/// What the kernel prints on the console: errors and worse, which are looked for there. User-mode Linux is booted with less.
pub(crate) fn console_level() -> Vec<String> {
    let set = fs::write(PRINTK, USUAL_LEVEL);
    set.err().map(|error| format!("cannot set {PRINTK} to {USUAL_LEVEL}: {error}")).into_iter().collect()
}

/// Prints the stacks of blocked tasks on the console, and after them [`END_OF_STACKS`].
pub(crate) fn show_blocked_tasks() {
    let _ = fs::write(PRINTK, "8");
    let _ = fs::write("/proc/sysrq-trigger", "w");
    // Through the kernel's own log, so that it comes after the list.
    let _ = fs::write("/dev/kmsg", format!("<1>{END_OF_STACKS}\n"));
    let _ = fs::write(PRINTK, USUAL_LEVEL);
}

/// Gives the calling thread a first-in-first-out real-time priority, where the kernel grants it.
pub(crate) fn real_time(priority: i32) {
    // By number, for musl's function of this name does nothing. The kernel's `struct sched_param` is the priority alone.
    // SAFETY: 0 is the calling thread; the priority is valid for the call's duration.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const priority) };
}

pub(crate) fn print_on_console(text: &str) {
    for path in ["/dev/console", "/dev/kmsg"] {
        if let Ok(mut console) = fs::OpenOptions::new().write(true).open(path)
            && console.write_all(text.as_bytes()).is_ok()
        {
            return;
        }
    }
}

pub(crate) fn power_off() -> ! {
    rustix::fs::sync();
    loop {
        let _ = reboot(RebootCommand::PowerOff);
        // Not process 1, or a kernel that will not: process 1 must not return.
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

pub(crate) fn hello(complaints: Vec<String>) -> Hello {
    let uname = rustix::system::uname();
    let text = |field: &std::ffi::CStr| field.to_string_lossy().into_owned();
    let system = rustix::system::sysinfo();
    Hello {
        kernel_release: text(uname.release()),
        kernel_version: text(uname.version()),
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        memory_bytes: system.totalram as u64 * u64::from(system.mem_unit),
        booted_ns: tsc::since_boot_ns(),
        filesystems: filesystems(),
        disks: disks(),
        tsc: tsc::facts().clone(),
        complaints,
    }
}

impl Hello {
    /// What a child says: the host knows its own kernel.
    pub(crate) fn of_child() -> Self {
        Self {
            kernel_release: String::new(),
            kernel_version: String::new(),
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            cpus: 0,
            memory_bytes: 0,
            booted_ns: 0,
            filesystems: Vec::new(),
            disks: Vec::new(),
            tsc: TscFacts::default(),
            complaints: Vec::new(),
        }
    }
}

/// Those that need a device, by name.
fn filesystems() -> Vec<String> {
    let list = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    list.lines().filter(|line| !line.starts_with("nodev")).map(|line| line.trim().to_owned()).collect()
}

fn disks() -> Vec<(String, u64)> {
    let Ok(entries) = fs::read_dir("/sys/block") else { return Vec::new() };
    let mut disks: Vec<(String, u64)> = entries
        .flatten()
        .filter_map(|entry| {
            let sectors: u64 = fs::read_to_string(entry.path().join("size")).ok()?.trim().parse().ok()?;
            // /sys/block counts in 512-byte sectors, whatever the device's own are.
            (sectors > 0).then(|| (entry.file_name().to_string_lossy().into_owned(), sectors * 512))
        })
        .collect();
    disks.sort();
    disks
}
