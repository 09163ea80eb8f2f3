//! What can be found out about a path that somebody wants formatted.

use super::{FileId, loops, split_number};
use crate::place::{custody, mount::read_mountinfo};
use fstone_files::Exchangeable;
use rustix::fs::{Mode, OFlags, open};
use std::{
    fs, io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Missing,
    Block,
    Regular,
    Other,
}

/// The facts. Where something could not be found out, it counts as the worse case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockFacts {
    /// What stands at the path, symbolic links followed.
    pub kind: FileKind,
    /// The path without symbolic links.
    pub canonical: PathBuf,
    /// Its device number: (major, minor).
    pub number: (u32, u32),
    pub size_bytes: u64,
    pub read_only: bool,
    pub partitions: Vec<String>,
    /// Names of devices stacked on it (md, dm, LVM, bcache).
    pub holders: Vec<String>,
    pub swap: bool,
    /// Where it is mounted, in any mount namespace that can be seen.
    pub mounted_at: Vec<PathBuf>,
    /// Whether it could be opened exclusively; the kernel's own answer to whether anything uses it.
    pub exclusive: Result<(), i32>,
    /// The file behind it, for loop devices.
    pub backing: Option<FileId>,
    pub exchangeable: Option<Exchangeable>,
    pub identity: Option<Identity>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    pub model: Option<String>,
    pub serial: Option<String>,
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.model, &self.serial) {
            (Some(model), Some(serial)) => write!(f, "{model}, serial number {serial}"),
            (Some(model), None) => write!(f, "{model}"),
            (None, Some(serial)) => write!(f, "serial number {serial}"),
            (None, None) => Ok(()),
        }
    }
}

impl BlockFacts {
    /// Of something of this kind nothing else is known; of a block device: nothing is wrong with it.
    pub const fn of_kind(kind: FileKind, canonical: PathBuf) -> Self {
        Self {
            kind,
            canonical,
            number: (0, 0),
            size_bytes: 0,
            read_only: false,
            partitions: Vec::new(),
            holders: Vec::new(),
            swap: false,
            mounted_at: Vec::new(),
            exclusive: Ok(()),
            backing: None,
            exchangeable: None,
            identity: None,
        }
    }
}

/// How long the kernel may take to let go of a device that somebody has just stopped using.
const RELEASE: Duration = Duration::from_secs(10);

/// Waits for the kernel when nobody can be seen that uses the device: what a killed process had mounted in a namespace of its
/// own is unmounted, and written, after the process is gone.
pub(super) fn gather(path: &Path) -> io::Result<BlockFacts> {
    let since = Instant::now();
    loop {
        let facts = look(path)?;
        let is_seen = !facts.mounted_at.is_empty() || !facts.holders.is_empty() || facts.swap;
        if facts.exclusive != Err(libc::EBUSY) || is_seen || since.elapsed() > RELEASE {
            return Ok(facts);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn look(path: &Path) -> io::Result<BlockFacts> {
    let canonical = match fs::canonicalize(path) {
        Ok(canonical) => canonical,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(BlockFacts::of_kind(FileKind::Missing, path.to_owned()));
        }
        Err(error) => return Err(error),
    };
    let file = fs::symlink_metadata(&canonical)?;
    if !file.file_type().is_block_device() {
        let kind = if file.is_file() { FileKind::Regular } else { FileKind::Other };
        return Ok(BlockFacts::of_kind(kind, canonical));
    }
    let number = split_number(file.rdev());
    let sysfs = sysfs(number);
    let read = |name: &str| fs::read_to_string(sysfs.join(name)).ok().map(|text| text.trim().to_owned());
    let sectors: u64 = read("size").and_then(|text| text.parse().ok()).unwrap_or(0);
    let index = canonical.to_str().and_then(|path| path.strip_prefix("/dev/loop")?.parse().ok());
    let backing = match index {
        Some(index) if number.0 == LOOP_MAJOR => loops::backing(index)?,
        _ => None,
    };
    Ok(BlockFacts {
        kind: FileKind::Block,
        number,
        // The kernel counts in 512 bytes whatever the device's own sectors.
        size_bytes: sectors * 512,
        read_only: read("ro").as_deref() != Some("0"),
        partitions: children(&sysfs, |child| child.join("partition").exists())?,
        holders: if sysfs.join("holders").exists() { children(&sysfs.join("holders"), |_| true)? } else { Vec::new() },
        swap: is_swapped_to(number)?,
        mounted_at: mounted_at(number)?,
        // Not for writing: its close would make udev probe the device.
        exclusive: open(&canonical, OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC, Mode::empty())
            .map(drop)
            .map_err(rustix::io::Errno::raw_os_error),
        backing,
        exchangeable: custody::exchangeable(&canonical)?,
        identity: identity(&sysfs),
        canonical,
    })
}

const LOOP_MAJOR: u32 = 7;

pub(super) fn sysfs(number: (u32, u32)) -> PathBuf {
    let link = PathBuf::from(format!("/sys/dev/block/{}:{}", number.0, number.1));
    fs::canonicalize(&link).unwrap_or(link)
}

fn children(directory: &Path, wanted: impl Fn(&Path) -> bool) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if wanted(&entry.path()) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn is_swapped_to(number: (u32, u32)) -> io::Result<bool> {
    let swaps = fs::read_to_string("/proc/swaps")?;
    Ok(swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()).any(|path| {
        // Blanks in paths stand as \040, as in the mount table; devices have none.
        fs::metadata(path)
            .is_ok_and(|facts| facts.file_type().is_block_device() && split_number(facts.rdev()) == number)
    }))
}

/// Mount points of a device in this mount namespace and, where they can be read, in all others.
fn mounted_at(number: (u32, u32)) -> io::Result<Vec<PathBuf>> {
    let of = |table: Vec<crate::place::mount::MountEntry>| {
        table.into_iter().filter(|mount| mount.device == number).map(|mount| mount.target).collect::<Vec<_>>()
    };
    let mut targets = of(read_mountinfo()?);
    let own_namespace = fs::read_link("/proc/self/ns/mnt").ok();
    let mut seen = vec![own_namespace];
    for entry in fs::read_dir("/proc")?.flatten() {
        if !entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let namespace = fs::read_link(entry.path().join("ns/mnt")).ok();
        if namespace.is_none() || seen.contains(&namespace) {
            continue;
        }
        if let Ok(table) = fs::read(entry.path().join("mountinfo")) {
            targets.extend(of(crate::place::mount::parse_mountinfo(&table)));
            seen.push(namespace);
        }
    }
    Ok(targets)
}

fn identity(sysfs: &Path) -> Option<Identity> {
    // A partition's disk is the directory above.
    let disk = if sysfs.join("partition").exists() { sysfs.parent()? } else { sysfs };
    // A device may say anything: no control characters, and no more than a person reads.
    let first = |names: &[&str]| {
        names
            .iter()
            .filter_map(|name| fs::read(disk.join(name)).ok())
            .map(|bytes| {
                String::from_utf8_lossy(&bytes).chars().filter(|c| !c.is_control()).take(80).collect::<String>()
            })
            .map(|text| text.trim().to_owned())
            .find(|text| !text.is_empty())
    };
    let found = Identity {
        model: first(&["device/model"]),
        serial: first(&["device/serial", "serial", "wwid", "device/wwid"]),
    };
    (found != Identity::default()).then_some(found)
}
