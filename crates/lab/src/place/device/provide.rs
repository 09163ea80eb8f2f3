//! From what a study says about a device to one that may be formatted, everything recorded for undo.

use super::{FileId, LoopSettings, Purpose, Refusal, ScratchDevice, file_id, loops, zram};
use crate::{
    machine::Machine,
    place::{
        custody,
        undo::{Entry, IMAGE_NAME, JournalError, Undo, UndoError},
    },
};
use fstone_model::study::DeviceSpec;
use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// How often another program may snatch a free loop device before we give up.
const SNATCHES: u32 = 20;

/// Why there is no device for a trial; completes "failed to set up the device: ".
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// It may not be formatted.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// This machine cannot provide such a device.
    #[error("{words}")]
    Unsuitable {
        /// Why.
        words: String,
    },
    /// Others than root could replace the image while root works on it.
    #[error("{}: {cause}", directory.display())]
    Unsafe {
        /// Where the image was to be.
        directory: PathBuf,
        /// Whose part of its path is whose.
        cause: io::Error,
    },
    /// A queue setting of the study is not to be had.
    #[error("queue setting {name} = {value:?}: {words}")]
    Setting {
        /// Its name.
        name: String,
        /// The value asked for.
        value: String,
        /// The kernel's words.
        words: String,
    },
    /// The kernel or the work directory failed.
    #[error("{what}: {cause}")]
    System {
        /// What was tried.
        what: String,
        /// Why it failed.
        cause: io::Error,
    },
    /// The journal of undo could not be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Something half made could not be undone.
    #[error(transparent)]
    Undo(#[from] UndoError),
}

/// What else is to be known to provide a device.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// What the study says.
    pub spec: &'a DeviceSpec,
    /// Queue settings to set: (name, value).
    pub queue: &'a [(String, String)],
    /// Where images are made.
    pub work_directory: &'a Path,
    /// Named devices that may be destroyed.
    pub allow_destroy: &'a [PathBuf],
    /// The least size that will do.
    pub needed_bytes: u64,
}

/// Makes or claims the device. All of it is undone with the entries that `undo` then has.
///
/// # Errors
/// A [`DeviceError`]. What was made until then is in `undo`.
///
/// # Panics
/// On a directory, which is no device.
pub fn provide(wanted: &Wanted<'_>, undo: &mut Undo<'_>, machine: &Machine) -> Result<ScratchDevice, DeviceError> {
    let device = match wanted.spec {
        DeviceSpec::Loop { size_bytes, direct_io, sector_bytes, directory } => {
            let directory = directory.as_ref().map_or_else(|| wanted.work_directory.to_owned(), PathBuf::from);
            let settings = LoopSettings { sector_bytes: *sector_bytes, direct_io: *direct_io };
            provide_loop(&directory, *size_bytes, settings, undo, machine)?
        }
        DeviceSpec::Zram { size_bytes } => provide_zram(*size_bytes, undo, machine)?,
        DeviceSpec::Block { path } => {
            let purpose = Purpose::Named { allowed: wanted.allow_destroy.to_vec() };
            let path = Path::new(path);
            let device = ScratchDevice::claim(path, purpose, wanted.needed_bytes, &*machine.devices, &*machine.runner)?;
            undo.record(Entry::Scratch { path: device.path().to_owned(), device: device.number(), uuid: None })?;
            device
        }
        DeviceSpec::Directory { .. } => unreachable!("a directory is no device; the executor does not ask for one"),
    };
    for (name, value) in wanted.queue {
        set_queue(&device, name, value, undo, machine)?;
    }
    Ok(device)
}

/// Makes an image file, sparse and empty, recorded for undo; gives its path without symbolic links, and the file.
///
/// # Errors
/// A [`DeviceError`]. What was made until then is in `undo`.
pub(crate) fn make_image(
    directory: &Path,
    size_bytes: u64,
    undo: &mut Undo<'_>,
) -> Result<(PathBuf, FileId, File), DeviceError> {
    // The journal is read by a later `clean` from wherever that is started.
    let failed = |what: &str| {
        let what = format!("{what} {}", directory.join(IMAGE_NAME).display());
        move |cause| DeviceError::System { what, cause }
    };
    let directory = &directory.canonicalize().map_err(failed("making image"))?;
    if let Some(part) = custody::replaceable(directory).map_err(failed("making image"))? {
        return Err(DeviceError::Unsafe { directory: directory.clone(), cause: custody::open(&part) });
    }
    let image = directory.join(IMAGE_NAME);
    let entry = undo.record(Entry::Image { path: image.clone(), id: None })?;
    // Never an existing file, and never through a link: O_EXCL follows none.
    let made = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&image);
    let file = match made {
        Ok(file) => file,
        Err(error) => {
            // Whatever stands there is not ours to remove.
            undo.forget(entry);
            return Err(failed("making image")(error));
        }
    };
    // From here on it is known by its number, and used by its descriptor: neither undo nor the loop driver goes by what
    // its path leads to.
    let id = file_id(&file.metadata().map_err(failed("examining image"))?);
    undo.replace(entry, Entry::Image { path: image.clone(), id: Some(id) })?;
    file.set_len(size_bytes).map_err(|error| match error.raw_os_error() {
        Some(libc::EFBIG | libc::EINVAL) => DeviceError::Unsuitable {
            words: format!(
                "{}: its filesystem has no files of {}",
                directory.display(),
                fstone_model::units::format_bytes(size_bytes)
            ),
        },
        _ => failed("sizing image")(error),
    })?;
    Ok((image, id, file))
}

fn provide_loop(
    directory: &Path,
    size_bytes: u64,
    settings: LoopSettings,
    undo: &mut Undo<'_>,
    machine: &Machine,
) -> Result<ScratchDevice, DeviceError> {
    let (_, id, file) = make_image(directory, size_bytes, undo)?;
    let mut snatches = 0;
    let index = loop {
        let free = machine.devices.free_loop();
        let index = free.map_err(|cause| DeviceError::System { what: "finding a free loop device".into(), cause })?;
        let entry = undo.record(Entry::Loop { index, image: id })?;
        match machine.devices.attach_loop(index, &file, settings) {
            Ok(()) => break index,
            Err(error) => {
                undo.undo(entry)?;
                if error.raw_os_error() == Some(libc::EBUSY) && snatches < SNATCHES {
                    snatches += 1;
                    continue;
                }
                return Err(match error.kind() {
                    io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput => {
                        DeviceError::Unsuitable { words: format!("loop device: {error}") }
                    }
                    _ => DeviceError::System { what: format!("attaching /dev/loop{index}"), cause: error },
                });
            }
        }
    };
    let path = loops::path_of(index);
    Ok(ScratchDevice::claim(&path, Purpose::OwnImage(id), size_bytes, &*machine.devices, &*machine.runner)?)
}

fn provide_zram(size_bytes: u64, undo: &mut Undo<'_>, machine: &Machine) -> Result<ScratchDevice, DeviceError> {
    let failed = |what: &'static str| move |cause| DeviceError::System { what: what.into(), cause };
    let existing = match machine.devices.zrams() {
        Ok(zrams) => zrams.into_iter().map(|(index, _)| index).collect(),
        Err(cause) => return Err(failed("listing zram devices")(cause)),
    };
    let to_come = undo.record(Entry::ZramToCome { existing })?;
    let index = match machine.devices.add_zram() {
        Ok(index) => index,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            undo.undo(to_come)?;
            return Err(DeviceError::Unsuitable { words: "this kernel has no zram (modprobe zram)".into() });
        }
        Err(error) => {
            undo.undo(to_come)?;
            return Err(failed("making a zram device")(error));
        }
    };
    undo.replace(to_come, Entry::Zram { index, size_bytes })?;
    machine.devices.size_zram(index, size_bytes).map_err(|error| match error.kind() {
        io::ErrorKind::OutOfMemory => DeviceError::Unsuitable { words: format!("zram of {size_bytes} bytes: {error}") },
        _ => failed("sizing a zram device")(error),
    })?;
    let path = zram::path_of(index);
    Ok(ScratchDevice::claim(&path, Purpose::OwnZram, size_bytes, &*machine.devices, &*machine.runner)?)
}

fn set_queue(
    device: &ScratchDevice,
    name: &str,
    value: &str,
    undo: &mut Undo<'_>,
    machine: &Machine,
) -> Result<(), DeviceError> {
    let refused = |error: &io::Error| DeviceError::Setting {
        name: name.to_owned(),
        value: value.to_owned(),
        words: error.to_string(),
    };
    let before = machine.devices.queue_setting(device.number(), name).map_err(|error| refused(&error))?;
    if before == value {
        return Ok(());
    }
    let entry =
        |after| Entry::QueueSetting { device: device.number(), name: name.to_owned(), before: before.clone(), after };
    let recorded = undo.record(entry(None))?;
    machine.devices.set_queue_setting(device.number(), name, value).map_err(|error| refused(&error))?;
    // The kernel may round. What it shows now tells our setting from one that somebody makes later.
    let after = machine.devices.queue_setting(device.number(), name).map_err(|error| refused(&error))?;
    undo.replace(recorded, entry(Some(after)))?;
    Ok(())
}
