//! What can be undone, and how.

use super::own;
use crate::{
    command::typed,
    machine::Machine,
    place::{
        device::{DeviceLock, FileKind, filesystem_uuid, signature},
        holder::{self, Whereabouts},
    },
};
use fstone_files::{FileIdentity, remove_tree};
use fstone_model::dataset::Holder;
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

pub(super) const JOURNAL_NAME: &str = "fstone.journal";
pub(crate) const IMAGE_NAME: &str = "fstone-scratch.img";
pub(crate) const GUEST_NAME: &str = "guest";
pub(crate) const TREE_PREFIX: &str = "fstone-load-";
const IN_USE: &str = "it is in use; unmount it first";

/// One thing that was made, with everything needed to recognise it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    Tree {
        path: PathBuf,
        /// Which directory; `None` while it is being made, when there is nothing in it.
        id: Option<FileIdentity>,
        /// The process that hung in it and could not be killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hung: Option<Holder>,
    },
    /// What the commands of a study made, to be removed by another of them.
    Own {
        filesystem: String,
        remove: Vec<String>,
        /// The trial's directory; the command runs in the one below that it was given.
        trial: PathBuf,
        id: FileIdentity,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hung: Option<Holder>,
    },
    /// The same, on a named disk, which the command may erase.
    OwnOnDisk {
        disk: PathBuf,
        /// Of which device: (major, minor).
        device: (u32, u32),
        own: Box<Self>,
    },
    Image {
        path: PathBuf,
        /// Which file; `None` while it is being made, when nothing has been written to it.
        id: Option<FileIdentity>,
    },
    /// A guest: a directory with its sockets, its console's log and its control files, and the processes that run in it.
    Guest {
        path: PathBuf,
        /// Which directory; `None` while it is being made, when there is nothing in it.
        #[serde(default)]
        id: Option<FileIdentity>,
        program: PathBuf,
    },
    /// A zram device about to be made: these were there before.
    ZramToCome {
        existing: Vec<u32>,
    },
    Zram {
        index: u32,
        size_bytes: u64,
    },
    QueueSetting {
        /// Of which device: (major, minor).
        device: (u32, u32),
        name: String,
        before: String,
        /// What it was set to, as the kernel shows it; `None` while it is being set.
        after: Option<String>,
    },
    /// A named block device that is being used; what is on it is erased in the end.
    Scratch {
        path: PathBuf,
        device: (u32, u32),
        /// UUIDs of the filesystems made on it, for recognition after a kill.
        uuid: Option<String>,
    },
}

/// Why something could not be undone; completes "failed to undo: ".
#[derive(Debug, thiserror::Error)]
#[error("{what}: {words}")]
pub struct UndoError {
    pub what: String,
    pub words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By<'a> {
    Itself,
    /// Somebody later, who can trust only what is recognised. The data on these disks may go.
    Later(&'a [PathBuf]),
}

impl Entry {
    pub fn describe(&self) -> String {
        match self {
            Self::Tree { path, .. } => format!("directory {} with everything in it", path.display()),
            Self::Own { filesystem, remove, .. } => {
                format!("what was made for the filesystem {filesystem}, which `{}` removes", typed(remove))
            }
            Self::OwnOnDisk { disk, own, .. } => format!("{}, on {}", own.describe(), disk.display()),
            Self::Image { path, .. } => format!("image {}", path.display()),
            Self::Guest { path, .. } => format!("guest in {}", path.display()),
            Self::ZramToCome { .. } => "zram device just made".to_owned(),
            Self::Zram { index, .. } => format!("zram device /dev/zram{index}"),
            Self::QueueSetting { device, name, before, .. } => {
                format!("queue setting {name} of device {}:{} (was {before})", device.0, device.1)
            }
            Self::Scratch { path, .. } => format!("filesystem on {} with everything on it", path.display()),
        }
    }

    /// Whether both are of one thing: a run that is killed while it replaces an entry by one that says more leaves both. A work
    /// directory has one zram device at a time.
    pub(super) fn is_one_with(&self, other: &Self) -> bool {
        let is_zram = |entry: &Self| matches!(entry, Self::ZramToCome { .. } | Self::Zram { .. });
        self.describe() == other.describe() || (is_zram(self) && is_zram(other))
    }

    /// Whether fstone ever makes such a thing. The journal is only read where nobody else can write it; this is the second
    /// bolt on the same door.
    pub(super) fn is_plausible(&self, work_directory: &Path) -> bool {
        let plain = |path: &Path| {
            path.is_absolute()
                && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
        };
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match self {
            Self::Guest { path, program, .. } => {
                plain(path) && path.parent() == Some(work_directory) && name(path) == GUEST_NAME && plain(program)
            }
            Self::Tree { path, .. } => plain(path) && name(path).starts_with(TREE_PREFIX),
            Self::Own { trial, remove, .. } => {
                plain(trial) && name(trial).starts_with(TREE_PREFIX) && remove.first().is_some_and(|it| !it.is_empty())
            }
            Self::OwnOnDisk { disk, own, .. } => {
                plain(disk) && matches!(**own, Self::Own { .. }) && own.is_plausible(work_directory)
            }
            Self::Image { path, .. } => plain(path) && name(path) == IMAGE_NAME,
            Self::QueueSetting { name, .. } => {
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            }
            Self::Scratch { path, .. } => plain(path),
            Self::ZramToCome { .. } | Self::Zram { .. } => true,
        }
    }

    /// Whether entries before it cannot be undone while it is there.
    pub(super) const fn holds_others(&self) -> bool {
        !matches!(self, Self::QueueSetting { .. } | Self::Scratch { .. })
    }

    /// The named disk whose contents go when it is undone.
    pub(super) fn disk(&self) -> Option<&Path> {
        match self {
            Self::Scratch { path: disk, .. } | Self::OwnOnDisk { disk, .. } => Some(disk),
            _ => None,
        }
    }

    pub(super) fn is_on_a_disk_other_than(&self, disks: &[PathBuf]) -> bool {
        self.disk().is_some_and(|disk| !is_named(disk, disks))
    }

    /// Whether it can be undone only while a directory is there.
    pub(super) fn needs(&self, directory: &Path) -> bool {
        match self {
            Self::Own { trial, .. } => trial == directory,
            Self::OwnOnDisk { own, .. } => own.needs(directory),
            _ => false,
        }
    }

    /// Whether it is on a disk, and so still there after a reboot.
    pub(super) const fn outlives_a_boot(&self) -> bool {
        match self {
            Self::Tree { .. }
            | Self::Own { .. }
            | Self::OwnOnDisk { .. }
            | Self::Image { .. }
            | Self::Guest { .. }
            | Self::Scratch { .. } => true,
            Self::ZramToCome { .. } | Self::Zram { .. } | Self::QueueSetting { .. } => false,
        }
    }

    /// What cannot be undone now because a process hangs in it: whoever touched it might hang as well.
    pub(super) fn hangs(&self) -> Option<UndoError> {
        if let Self::OwnOnDisk { own, .. } = self {
            return own.hangs();
        }
        let (Self::Tree { hung: Some(process), .. } | Self::Own { hung: Some(process), .. }) = self else {
            return None;
        };
        (holder::find(process) != Whereabouts::Ended).then(|| UndoError {
            what: self.describe(),
            words: format!(
                "process {} hangs in it and cannot be killed; `fstone clean` removes it after that process has ended{}",
                process.process,
                if holder::is_seen_from_here(process) { "" } else { " (of another container: outside of it)" }
            ),
        })
    }

    /// Whether there is something to undo. Changes nothing.
    pub(super) fn is_there(&self, machine: &Machine, by: By<'_>) -> Result<bool, UndoError> {
        if let Some(error) = self.hangs() {
            return Err(error);
        }
        let found = match self {
            Self::Tree { path, id: None, .. } | Self::Guest { path, id: None, .. } => {
                look(path).map(|found| found.is_some_and(|facts| facts.is_dir()) && is_empty_directory(path))
            }
            Self::Tree { path, id: Some(id), .. } | Self::Guest { path, id: Some(id), .. } => {
                look(path).map(|found| found.is_some_and(|facts| facts.is_dir() && id.is(&facts)))
            }
            // What it made may be anywhere: only its command knows.
            Self::Own { .. } | Self::OwnOnDisk { .. } => Ok(true),
            // Its size was never set, and nothing was written to it.
            Self::Image { path, id: None } => {
                look(path).map(|found| found.is_some_and(|facts| facts.is_file() && facts.len() == 0))
            }
            Self::Image { path, id: Some(id) } => {
                look(path).map(|found| found.is_some_and(|facts| facts.is_file() && id.is(&facts)))
            }
            Self::ZramToCome { existing } => new_zram(machine, existing).map(|found| found.is_some()),
            Self::Zram { index, size_bytes } => machine.devices.zrams().map(|zrams| {
                // The kernel rounds a size up to whole pages; whatever else has this number is somebody else's.
                let ours = |size: u64| size == 0 || size.abs_diff(*size_bytes) < 1 << 20;
                zrams.iter().any(|(found, size)| found == index && ours(*size))
            }),
            Self::QueueSetting { device, name, before, after } => match machine.devices.queue_setting(*device, name) {
                // What is neither as we found it nor as we set it was set by somebody else since.
                Ok(now) => Ok(now != *before && after.as_ref().is_none_or(|after| now == *after)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
            },
            Self::Scratch { path, device, uuid } => is_same_disk(machine, path, *device, uuid.as_deref())
                .and_then(|()| Ok(by == By::Itself || holds_something(machine, path)?)),
        };
        found.map_err(|error| self.failed(&error))
    }

    /// Undoes it, if it is there and recognised. Undoing what is not there succeeds.
    pub(super) fn undo(&self, machine: &Machine, by: By<'_>) -> Result<(), UndoError> {
        if !self.is_there(machine, by)? {
            return Ok(());
        }
        let result = match self {
            Self::Tree { path, id: None, .. } | Self::Guest { path, id: None, .. } => fs::remove_dir(path),
            Self::Tree { path, id: Some(id), .. } => remove_tree(path, *id),
            Self::Own { remove, trial, id, .. } => own::remove(remove, trial, *id),
            Self::OwnOnDisk { disk, device, own } => {
                let _lock = take_over(machine, disk, *device, by).map_err(|error| self.failed(&error))?;
                return own.undo(machine, by);
            }
            Self::Image { path, .. } => fs::remove_file(path),
            Self::Guest { path, id: Some(id), program } => {
                super::processes::end_in(path, program).and_then(|()| remove_tree(path, *id))
            }
            Self::ZramToCome { existing } => match new_zram(machine, existing) {
                Ok(Some(index)) => remove_zram(machine, index),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            },
            Self::Zram { index, .. } => remove_zram(machine, *index),
            Self::QueueSetting { device, name, before, .. } => machine.devices.set_queue_setting(*device, name, before),
            Self::Scratch { path, device, uuid } => erase(machine, path, *device, uuid.as_deref(), by),
        };
        result.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> UndoError {
        UndoError { what: self.describe(), words: error.to_string() }
    }
}

/// What stands at a path, links not followed.
fn look(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(facts) => Ok(Some(facts)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_empty_directory(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// The zram device that was made between our note and the next one: it was not there before and has no size yet, so
/// nothing can be on it.
fn new_zram(machine: &Machine, existing: &[u32]) -> io::Result<Option<u32>> {
    let zrams = machine.devices.zrams()?;
    Ok(zrams.into_iter().find(|(index, size)| !existing.contains(index) && *size == 0).map(|(index, _)| index))
}

fn remove_zram(machine: &Machine, index: u32) -> io::Result<()> {
    let facts = machine.devices.facts(&PathBuf::from(format!("/dev/zram{index}")))?;
    if facts.swap || !facts.mounted_at.is_empty() || !facts.holders.is_empty() {
        return Err(io::Error::other("it is in use, and not by this run"));
    }
    machine.devices.remove_zram(index)
}

/// Whether a named disk is there, under the number that it had. A reboot may give it another, and so may taking it out and putting it
/// back. Then the filesystem that fstone made last speaks for it, but a copy of the disk has that too: a person has to say.
fn is_same_disk(machine: &Machine, path: &Path, device: (u32, u32), uuid: Option<&str>) -> io::Result<()> {
    let facts = machine.devices.facts(path)?;
    if facts.number == device {
        return Ok(());
    }
    let found = (facts.kind == FileKind::Block).then(|| filesystem_uuid(path, &*machine.runner)).flatten();
    let (kept, path) = (format!("delete its line from {JOURNAL_NAME}"), path.display());
    let words = match facts.kind {
        FileKind::Missing => {
            format!("it is not attached now; attach it and run `fstone clean` again. If its contents may stay, {kept}")
        }
        _ if found.is_some() && found.as_deref() == uuid => format!(
            "the device has another number than before, but the filesystem that fstone made is on it. If it is the same disk and not a copy: wipefs -a {path}. Then {kept}"
        ),
        _ => format!(
            "another device has its name now; attach the right one as {path} and run `fstone clean` again. If its contents may stay, {kept}"
        ),
    };
    Err(io::Error::new(io::ErrorKind::NotFound, words))
}

/// Whether a disk has a filesystem or anything else that is recognised. If a run was killed before its mkfs got so far, nothing is to be undone.
fn holds_something(machine: &Machine, path: &Path) -> io::Result<bool> {
    let found = signature(path, &*machine.runner).map_err(|refusal| {
        io::Error::other(format!("{refusal}. If what is on it may be lost: wipefs -a {}", path.display()))
    })?;
    Ok(found.is_some())
}

/// Whether a disk is one of those that were named, perhaps by a link.
pub fn is_named(disk: &Path, names: &[PathBuf]) -> bool {
    names.iter().any(|name| name == disk || name.canonicalize().is_ok_and(|name| name == disk))
}

/// Somebody may have mounted it since the kill: most filesystems do not say so, and what was on it then is in no journal.
fn permit(disk: &Path, by: By<'_>) -> io::Result<()> {
    match by {
        By::Later(permitted) if !is_named(disk, permitted) => Err(io::Error::other(format!(
            "what was put on it since the run was killed would be lost. To permit that: fstone clean --allow-destroy-data {}. If it is to stay, delete its line from {JOURNAL_NAME}",
            disk.display()
        ))),
        _ => Ok(()),
    }
}

/// Another work directory's run may have the disk. Who undoes what it made itself holds the lock.
fn lock(machine: &Machine, disk: &Path, device: (u32, u32), by: By<'_>) -> io::Result<Option<DeviceLock>> {
    match by {
        By::Itself => Ok(None),
        By::Later(_) => machine.devices.lock(disk, device).map(Some).map_err(io::Error::other),
    }
}

/// Lets a study's command have the disk on which it made something: the same disk, and nobody's by now. Devices stacked on it may be
/// what it made.
fn take_over(machine: &Machine, disk: &Path, device: (u32, u32), by: By<'_>) -> io::Result<Option<DeviceLock>> {
    if by == By::Itself {
        return Ok(None);
    }
    permit(disk, by)?;
    is_same_disk(machine, disk, device, None)?;
    let lock = lock(machine, disk, device, by)?;
    let facts = machine.devices.facts(disk)?;
    if facts.swap || !facts.mounted_at.is_empty() {
        return Err(io::Error::other(IN_USE));
    }
    Ok(lock)
}

fn erase(machine: &Machine, path: &Path, device: (u32, u32), uuid: Option<&str>, by: By<'_>) -> io::Result<()> {
    let _lock = lock(machine, path, device, by)?;
    if matches!(by, By::Later(_)) {
        let (found, shown) = (filesystem_uuid(path, &*machine.runner), path.display());
        if found.is_none() || found.as_deref() != uuid {
            let found = found.map(|uuid| format!(" (UUID {uuid})")).unwrap_or_default();
            return Err(io::Error::other(format!(
                "what it holds{found} is not in the journal; left alone. If it may be lost: wipefs -a {shown}"
            )));
        }
    }
    permit(path, by)?;
    machine.devices.erase_signatures(path, device).map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => io::Error::other(IN_USE),
        _ => error,
    })
}
