//! The files that a guest's process sees: a root in memory, with what the guest needs of the host, read-only.

#![expect(unsafe_code, reason = "mounts between clone and exec, where nothing may allocate")]

use super::rights::{User, keeps_groups, landlock_version};
use super::{Confined, OUTPUT_BYTES, c_string};
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The host's programs, their libraries and settings: tools of the host run in a guest.
const SYSTEM: [&str; 11] =
    ["/bin", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/sbin", "/usr"];

/// Those that have no secrets, where the guest could read those too.
const SETTINGS: [&str; 9] = [
    "/etc/alternatives",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mke2fs.conf",
    "/etc/mtab",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/xattr.conf",
];

/// What a guest reads of the host's programs: with all of /etc, or with what is known to have no secrets.
pub(super) fn system(with_all_settings: bool) -> impl Iterator<Item = &'static str> {
    let system = SYSTEM.into_iter().filter(move |path| with_all_settings || *path != "/etc");
    system.chain(SETTINGS.into_iter().filter(move |_| !with_all_settings))
}

pub(super) const DEVICES: [&str; 4] = ["/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"];

/// Directories that programs expect, and on which a guest's agent mounts. Empty.
const EXPECTED: [&str; 10] = ["/dev", "/home", "/media", "/mnt", "/proc", "/root", "/run", "/sys", "/tmp", "/var/tmp"];

/// Where the host's root is while the new one is made.
const OLD: &str = "/host-root";
const OLD_NAME: &CStr = c"/host-root";

#[derive(Debug, PartialEq, Eq)]
enum Entry {
    Directory(CString),
    Link {
        to: CString,
        place: CString,
    },
    Bind {
        from: CString,
        place: CString,
        is_directory: bool,
        attributes: u64,
    },
    /// Its content, or a node for the same device: the guest's user may not read the original.
    Copy {
        from: CString,
        place: CString,
        mode: libc::mode_t,
        device: Option<libc::dev_t>,
    },
}

#[derive(Debug)]
pub(super) struct Root {
    /// Where it is mounted until it becomes the root.
    base: CString,
    entries: Vec<Entry>,
    /// Filesystems in memory, with their options.
    memory: Vec<(CString, CString)>,
    user: Option<User>,
    /// Whether it may see the host's processes, where it cannot have a /proc of its own: Landlock keeps it from what is behind them, such as
    /// their roots.
    may_see_processes: bool,
}

impl Root {
    /// The root for a process whose directory is `own`.
    pub(super) fn new(confined: &Confined, own: &Path, user: Option<User>) -> io::Result<Self> {
        let mut plan = Plan { entries: Vec::new(), seen: BTreeSet::new(), user };
        for system in system(!keeps_groups(user)).map(Path::new) {
            match fs::symlink_metadata(system) {
                Ok(facts) if facts.is_symlink() => {
                    if let Some(above) = system.parent() {
                        plan.directory(above)?;
                    }
                    plan.seen.insert(system.to_owned());
                    plan.entries.push(Entry::Link { to: text(&fs::read_link(system)?)?, place: text(system)? });
                }
                Ok(_) => plan.show(system, Show::Read)?,
                Err(_) => {}
            }
        }
        for path in EXPECTED {
            plan.directory(Path::new(path))?;
        }
        plan.show(own, Show::Read)?;
        for path in &confined.needed {
            plan.show(path, Show::Needed)?;
        }
        for path in &confined.readable {
            plan.show(path, Show::Read)?;
        }
        for path in DEVICES.iter().map(Path::new).chain(confined.writable.iter().map(PathBuf::as_path)) {
            plan.show(path, Show::Write)?;
        }
        let (uid, gid) = match user {
            Some(user) => (user.uid, user.gid),
            None => (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
        };
        let outputs = confined.outputs.map(|name| (name, OUTPUT_BYTES));
        let memory = outputs.into_iter().chain(confined.memory).map(|(name, bytes)| {
            Ok((text(&own.join(name))?, c_string(format!("size={bytes},mode=0700,uid={uid},gid={gid}"))?))
        });
        Ok(Self {
            base: text(own)?,
            memory: memory.collect::<io::Result<_>>()?,
            entries: plan.entries,
            user,
            may_see_processes: landlock_version() > 0,
        })
    }

    /// Makes it the root of this process.
    ///
    /// # Safety
    /// Async-signal-safe: for the child of a fork, in a mount namespace of its own.
    pub(super) unsafe fn enter(&self) -> bool {
        let none = std::ptr::null::<libc::c_char>();
        let (tmpfs, private) = (c"tmpfs".as_ptr(), libc::MS_REC | libc::MS_PRIVATE);
        // SAFETY: system calls on C strings that were made before the fork.
        unsafe {
            let mask = libc::umask(0o022);
            let mounted = libc::mount(none, c"/".as_ptr(), none, private, std::ptr::null()) == 0
                && libc::mount(tmpfs, self.base.as_ptr(), tmpfs, libc::MS_NOSUID, c"mode=0755".as_ptr().cast()) == 0
                && libc::chdir(self.base.as_ptr()) == 0
                && libc::mkdir(OLD_NAME.as_ptr().add(1), 0o700) == 0
                && libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), OLD_NAME.as_ptr().add(1)) == 0
                && libc::chdir(c"/".as_ptr()) == 0;
            if !mounted || !self.entries.iter().all(|entry| self.make(entry)) || !mount_proc(self.may_see_processes) {
                return false;
            }
            let flags = libc::MS_NOSUID | libc::MS_NODEV;
            let filled = self
                .memory
                .iter()
                .all(|(place, options)| libc::mount(tmpfs, place.as_ptr(), tmpfs, flags, options.as_ptr().cast()) == 0);
            let read_only = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | libc::MS_NOSUID;
            let done = filled
                && libc::umount2(OLD_NAME.as_ptr(), libc::MNT_DETACH) == 0
                && libc::rmdir(OLD_NAME.as_ptr()) == 0
                && libc::mount(none, c"/".as_ptr(), none, read_only, std::ptr::null()) == 0;
            libc::umask(mask);
            done
        }
    }

    /// # Safety
    /// As [`Root::enter`].
    unsafe fn make(&self, entry: &Entry) -> bool {
        // SAFETY: system calls on C strings that were made before the fork.
        unsafe {
            match entry {
                Entry::Directory(place) => {
                    libc::mkdir(place.as_ptr(), 0o755) == 0 || *libc::__errno_location() == libc::EEXIST
                }
                Entry::Link { to, place } => libc::symlink(to.as_ptr(), place.as_ptr()) == 0,
                Entry::Bind { from, place, is_directory, attributes } => {
                    (if *is_directory { libc::mkdir(place.as_ptr(), 0o755) } else { make_file(place, 0o644) }) == 0
                        && bind(from, place, *attributes)
                }
                Entry::Copy { from, place, mode, device } => {
                    let made = match device {
                        Some(device) => libc::mknod(place.as_ptr(), *mode, *device) == 0,
                        None => copy(from, place, *mode),
                    };
                    made && self.user.is_none_or(|user| libc::chown(place.as_ptr(), user.uid, user.gid) == 0)
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Show {
    Read,
    /// To read even if the guest's user may not read the original.
    Needed,
    Write,
}

/// Entries, and the paths that are visible by them.
struct Plan {
    entries: Vec<Entry>,
    seen: BTreeSet<PathBuf>,
    user: Option<User>,
}

impl Plan {
    fn is_seen(&self, path: &Path) -> bool {
        path.ancestors().any(|part| self.seen.contains(part))
    }

    /// A directory, with all above it.
    fn directory(&mut self, path: &Path) -> io::Result<()> {
        if path == Path::new("/") || self.is_seen(path) {
            return Ok(());
        }
        if let Some(above) = path.parent() {
            self.directory(above)?;
        }
        let entry = Entry::Directory(text(path)?);
        if !self.entries.contains(&entry) {
            self.entries.push(entry);
        }
        Ok(())
    }

    /// A copy over a file that is visible already, if the guest's user may not read that.
    fn cover(&mut self, path: &Path, source: &Path) -> io::Result<()> {
        let facts = fs::metadata(source)?;
        if !facts.is_file() || self.user.is_none_or(|user| user.can_read(&facts)) {
            return Ok(());
        }
        let copy = c_string(format!("/copy-{}", self.entries.len()))?;
        let mode = facts.mode() & 0o111 | 0o400;
        self.entries.push(Entry::Copy { from: on_host(source)?, place: copy.clone(), mode, device: None });
        let attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
        self.entries.push(Entry::Bind { from: copy, place: text(path)?, is_directory: false, attributes });
        Ok(())
    }

    /// A file or directory of the host at its own path, unless it is visible already or not there.
    fn show(&mut self, path: &Path, how: Show) -> io::Result<()> {
        // Where it is visible already it is read-only.
        let Ok(source) = fs::canonicalize(path) else { return Ok(()) };
        if !path.is_absolute() {
            return Ok(());
        }
        if how != Show::Write && self.is_seen(path) {
            return if how == Show::Needed { self.cover(path, &source) } else { Ok(()) };
        }
        if let Some(above) = path.parent() {
            self.directory(above)?;
        }
        let facts = fs::metadata(&source)?;
        let kind = facts.file_type();
        let (from, place) = (on_host(&source)?, text(path)?);
        let may_copy = how == Show::Needed && kind.is_file() || how == Show::Write && kind.is_char_device();
        let copied = self.user.is_some_and(|user| may_copy && !user.can_read(&facts));
        self.seen.insert(path.to_owned());
        self.entries.push(if copied {
            let device = kind.is_char_device().then(|| facts.rdev());
            let mode = if device.is_some() { libc::S_IFCHR | 0o600 } else { facts.mode() & 0o111 | 0o400 };
            Entry::Copy { from, place, mode, device }
        } else {
            let mut attributes = libc::MOUNT_ATTR_NOSUID;
            if how != Show::Write {
                attributes |= libc::MOUNT_ATTR_RDONLY;
            }
            if !kind.is_char_device() {
                attributes |= libc::MOUNT_ATTR_NODEV;
            }
            Entry::Bind { from, place, is_directory: kind.is_dir(), attributes }
        });
        Ok(())
    }
}

fn on_host(source: &Path) -> io::Result<CString> {
    text(&Path::new(OLD).join(source.strip_prefix("/").unwrap_or(source)))
}

fn text(path: &Path) -> io::Result<CString> {
    c_string(path.as_os_str())
}

/// # Safety
/// As [`Root::enter`]. 0 if it is there.
unsafe fn make_file(place: &CStr, mode: libc::mode_t) -> libc::c_int {
    // SAFETY: a C string.
    match unsafe { libc::mknod(place.as_ptr(), libc::S_IFREG | mode, 0) } {
        // SAFETY: errno of this thread.
        -1 if unsafe { *libc::__errno_location() } == libc::EEXIST => 0,
        status => status,
    }
}

/// # Safety
/// As [`Root::enter`].
unsafe fn bind(from: &CStr, place: &CStr, attributes: u64) -> bool {
    let none = std::ptr::null::<libc::c_char>();
    let set = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: C strings, and a structure that lives as long as the call.
    unsafe {
        if libc::mount(from.as_ptr(), place.as_ptr(), none, libc::MS_BIND | libc::MS_REC, std::ptr::null()) != 0 {
            return false;
        }
        let (recursive, size) = (libc::AT_RECURSIVE, std::mem::size_of::<libc::mount_attr>());
        if libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, place.as_ptr(), recursive, &raw const set, size) == 0
        {
            return true;
        }
        if *libc::__errno_location() != libc::ENOSYS {
            return false;
        }
        // Before Linux 5.12, for the mount itself, so what is mounted below is not shown. These attributes have the same numbers as the
        // flags; what is set already has to stay.
        if libc::umount2(place.as_ptr(), libc::MNT_DETACH) != 0
            || libc::mount(from.as_ptr(), place.as_ptr(), none, libc::MS_BIND, std::ptr::null()) != 0
        {
            return false;
        }
        let mut there: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(place.as_ptr(), &raw mut there) != 0 {
            return false;
        }
        let flags = libc::MS_REMOUNT | libc::MS_BIND | attributes | there.f_flag & SAME_FLAGS;
        libc::mount(none, place.as_ptr(), none, flags, std::ptr::null()) == 0
    }
}

/// Flags of statvfs(3) that are those of mount(2): read-only, nosuid, nodev, noexec, noatime, nodiratime.
const SAME_FLAGS: libc::c_ulong = 1 | 2 | 4 | 8 | 1024 | 2048;

/// # Safety
/// As [`Root::enter`].
unsafe fn copy(from: &CStr, place: &CStr, mode: libc::mode_t) -> bool {
    // SAFETY: C strings, and descriptors that are closed by exec at the latest.
    unsafe {
        let source = libc::open(from.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let copy = libc::open(place.as_ptr(), libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC, mode);
        if source < 0 || copy < 0 {
            return false;
        }
        loop {
            match libc::sendfile(copy, source, std::ptr::null_mut(), 1 << 30) {
                0 => break libc::close(copy) == 0 && libc::close(source) == 0,
                ..0 => break false,
                _ => {}
            }
        }
    }
}

/// The processes of this namespace only. A container that hides parts of its own does not allow a new one: then its own.
///
/// # Safety
/// As [`Root::enter`].
unsafe fn mount_proc(may_see_processes: bool) -> bool {
    let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    // SAFETY: C strings.
    unsafe {
        libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), flags, std::ptr::null()) == 0
            || may_see_processes && bind(c"/host-root/proc", c"/proc", attributes)
    }
}
