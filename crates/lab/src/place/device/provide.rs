//! From what a study says about a device to one that may be formatted, everything recorded for undo.

use super::{
    Content, FileId, LoopHandle, LoopSettings, Purpose, ScratchDevice, error::DeviceError, file_id, loops, memory, zram,
};
use crate::{
    machine::Machine,
    place::{
        custody,
        undo::{Entry, IMAGE_NAME, Undo},
    },
};
use fstone_files::{FileIdentity, nameless_where_possible};
use fstone_model::{study::DeviceSpec, units::format_duration};
use rustix::fs::{Mode, OFlags};
use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// How often another program may snatch a free loop device before we give up.
const SNATCHES: u32 = 20;
/// How long an image is waited for: somebody else (udev, blkid) may look at its loop device, and it may be large.
const RELEASE: Duration = Duration::from_secs(10);
/// How long the filesystem that held an image is waited for.
const SETTLING: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub spec: &'a DeviceSpec,
    pub queue: &'a [(String, String)],
    pub work_directory: &'a Path,
    pub allow_destroy: &'a [PathBuf],
    pub needed_bytes: u64,
    /// Whether loads open files with O_DIRECT: then a loop device should not read from the host's page cache either.
    pub direct: bool,
    pub content: Option<&'a Content<'a>>,
}

/// A device that is there for a trial, with what keeps it there. It is the agent that looks at it and formats it.
#[derive(Debug)]
pub struct Provided {
    path: PathBuf,
    number: (u32, u32),
    purpose: Purpose,
    image: Option<OpenImage>,
    /// A directory of the filesystem that its image is on.
    image_directory: Option<PathBuf>,
    /// Whether direct I/O to it is served from the host's page cache all the same.
    cached: bool,
}

/// An image and its loop device. They have no name and no owner but these descriptors: when they are closed, be it by a
/// kill -9, and nothing is mounted any more, the kernel takes both back.
#[derive(Debug)]
struct OpenImage {
    file: File,
    id: FileId,
    device: (u32, LoopHandle),
}

impl Provided {
    pub(crate) fn file(path: PathBuf, id: FileId) -> Self {
        let image_directory = path.parent().map(Path::to_owned);
        Self { path, number: id.device, purpose: Purpose::OwnFile(id), image: None, image_directory, cached: false }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub const fn purpose(&self) -> &Purpose {
        &self.purpose
    }

    pub(crate) fn named(&self) -> (&Path, (u32, u32)) {
        (&self.path, self.number)
    }

    pub(crate) fn warning(&self) -> Option<String> {
        self.cached.then(|| {
            "the filesystem that holds the image cannot do direct I/O: loads with O_DIRECT may read from the host's page \
             cache, and their figures say nothing about the disk below"
                .to_owned()
        })
    }

    /// Empties the image, though its filesystem may be mounted: that is given up. What it still has in memory then goes
    /// nowhere when it is unmounted, instead of filling up the disk below.
    pub(crate) fn give_up(&self, machine: &Machine) {
        let Some(OpenImage { file, id, device: (index, _) }) = &self.image else { return };
        // If any of it fails, giving it back takes longer and more room. The device takes its size from the file; what was
        // written back before it did so made the file grow again.
        let _ = file.set_len(0);
        let _ = machine.devices.forget_loop_size(*index, *id);
        let _ = file.set_len(0);
    }

    /// Gives the device back, and returns its image, which nothing uses any more.
    pub(crate) fn into_image(self, machine: &Machine) -> io::Result<File> {
        if let Some(image) = self.image {
            let file = image.file.try_clone()?;
            let still_used = || io::Error::other(format!("{} is still in use", self.path.display()));
            return if image.release(machine, |_| ()) { Ok(file) } else { Err(still_used()) };
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(&self.path, flags, Mode::empty())?);
        match self.purpose {
            Purpose::OwnFile(id) if file_id(&file.metadata()?) == id => Ok(file),
            _ => Err(io::Error::other(format!("{} is not what was made", self.path.display()))),
        }
    }

    pub(crate) fn image_directory(&self) -> Option<&Path> {
        self.image_directory.as_deref()
    }

    /// Gives it back, and waits until that is done, so that it does not run into the next trial; for a while at most. What
    /// there is to say of it.
    pub(crate) fn give_back(self, machine: &Machine) -> Option<String> {
        // What is in memory of it need not be written.
        let freed = self.image?.release(machine, |file| drop(file.set_len(0)));
        (!freed).then(|| {
            let (path, limit) = (self.path.display(), format_duration(RELEASE));
            format!("{path} was not released after {limit}, because it is still in use or its image is large; that may disturb the next trial")
        })
    }
}

impl OpenImage {
    /// Whether nothing uses it any more, after a while at most.
    fn release(self, machine: &Machine, before: impl FnOnce(&File) + Send + 'static) -> bool {
        let devices = Arc::clone(&machine.devices);
        let Self { file, id, device: (index, handle) } = self;
        let is_used = move || devices.loop_backing(index).ok().flatten() == Some(id);
        let is_used_now = is_used.clone();
        is_done_within(RELEASE, move || {
            before(&file);
            drop(file);
            drop(handle);
            let since = Instant::now();
            while is_used() && since.elapsed() < RELEASE {
                std::thread::sleep(Duration::from_millis(2));
            }
        }) && !is_used_now()
    }
}

/// Has the filesystem of this directory write down that an image is gone, instead of during the next trial. It may be busy
/// with other things: that is waited for a moment only. What there is to say of it.
pub(crate) fn settle(directory: &Path) -> Option<String> {
    let place = directory.to_owned();
    let settled = is_done_within(SETTLING, move || {
        let _ = File::open(place).map(|directory| rustix::fs::syncfs(&directory));
    });
    (!settled).then(|| {
        let (directory, limit) = (directory.display(), format_duration(SETTLING));
        format!(
            "the filesystem of {directory} was still writing {limit} after the trial; that may disturb the next one"
        )
    })
}

/// Does something that nobody can interrupt, and tells whether it was done in time. Otherwise it is done later.
fn is_done_within(limit: Duration, work: impl FnOnce() + Send + 'static) -> bool {
    let (done, is_done) = std::sync::mpsc::channel();
    let spawned = std::thread::Builder::new().name("settle".to_owned()).spawn(move || {
        work();
        let _ = done.send(());
    });
    spawned.is_ok() && is_done.recv_timeout(limit).is_ok()
}

/// Makes or claims the device. All of it that the kernel does not take back by itself is undone with the entries that
/// `undo` then has.
///
/// # Errors
/// A [`DeviceError`]. What was made until then is in `undo`.
///
/// # Panics
/// On a directory, which is no device.
pub fn provide(wanted: &Wanted<'_>, undo: &mut Undo<'_>, machine: &Machine) -> Result<Provided, DeviceError> {
    let mut provided = match wanted.spec {
        DeviceSpec::Loop { size_bytes, direct_io, sector_bytes, directory, in_memory, .. } => {
            let directory = directory.as_ref().map_or_else(|| wanted.work_directory.to_owned(), PathBuf::from);
            let image = match in_memory {
                true => memory::image(*size_bytes)?,
                false => nameless_image(&directory, *size_bytes, undo)?,
            };
            let id = image.0;
            // Before the kernel reads the device for the first time.
            wanted.content.map_or(Ok(()), |content| content.fill(&image.1, *size_bytes))?;
            let settings = LoopSettings { sector_bytes: *sector_bytes, direct_io: *direct_io || wanted.direct };
            let provided = match provide_loop(image, settings, machine) {
                // Only what the study demands has to be had.
                Err((image, DeviceError::Unsuitable { .. })) if !*direct_io && wanted.direct => {
                    let settings = LoopSettings { direct_io: false, ..settings };
                    let provided = provide_loop(image, settings, machine).map_err(|(_, error)| error)?;
                    Provided { cached: true, ..provided }
                }
                other => other.map_err(|(_, error)| error)?,
            };
            let purpose = wanted.content.map_or(provided.purpose, |_| Purpose::OwnCopy(id));
            Provided { image_directory: (!in_memory).then_some(directory), purpose, ..provided }
        }
        DeviceSpec::Zram { size_bytes } => provide_zram(*size_bytes, undo, machine)?,
        DeviceSpec::Block { path } => {
            let purpose = Purpose::Named { allowed: wanted.allow_destroy.to_vec() };
            let path = Path::new(path);
            let device = ScratchDevice::claim(path, purpose, wanted.needed_bytes, &*machine.devices, &*machine.runner)?;
            undo.record(Entry::Scratch { path: device.path().to_owned(), device: device.number(), uuid: None })?;
            let (path, number, purpose) = (device.path().to_owned(), device.number(), device.purpose().clone());
            Provided { path, number, purpose, image: None, image_directory: None, cached: false }
        }
        DeviceSpec::Directory { .. } | DeviceSpec::Scratch { .. } => {
            unreachable!("a directory is not a device; the executor does not ask for one")
        }
    };
    if !wanted.queue.is_empty() {
        let facts = machine.devices.facts(&provided.path);
        provided.number = facts
            .map_err(|cause| DeviceError::System { what: format!("looking at {}", provided.path.display()), cause })?
            .number;
    }
    for (name, value) in wanted.queue {
        set_queue(provided.number, name, value, undo, machine)?;
    }
    Ok(provided)
}

/// Makes an image file, sparse and empty, that has no name: nothing is left of it when it is closed.
fn nameless_image(directory: &Path, size_bytes: u64, undo: &mut Undo<'_>) -> Result<(FileId, File), DeviceError> {
    let place = safe(directory)?;
    let failed = |what: &str| {
        let what = format!("{what} in {}", place.display());
        move |cause: io::Error| DeviceError::System { what, cause }
    };
    let (id, file) = match nameless_where_possible(&place).map_err(failed("making the image"))? {
        Some(file) => (file_id(&file.metadata().map_err(failed("examining the image"))?), file),
        // It has a name for a moment, and the journal for that moment: an image is large.
        None => {
            let (path, id, file, entry) = named_image(&place, undo)?;
            std::fs::remove_file(&path).map_err(failed("taking the image's name"))?;
            undo.forget(entry);
            (id, file)
        }
    };
    size(&file, size_bytes, &place)?;
    Ok((id, file))
}

/// Makes an image file, sparse and, without content, empty, recorded for undo; gives its path without symbolic links.
///
/// # Errors
/// A [`DeviceError`]. What was made until then is in `undo`.
pub(crate) fn make_image(
    directory: &Path,
    size_bytes: u64,
    content: Option<&Content<'_>>,
    undo: &mut Undo<'_>,
) -> Result<(PathBuf, FileId), DeviceError> {
    let place = safe(directory)?;
    let (path, id, file, _) = named_image(&place, undo)?;
    size(&file, size_bytes, &place)?;
    content.map_or(Ok(()), |content| content.fill(&file, size_bytes))?;
    Ok((path, id))
}

/// The directory without symbolic links, for the journal is read by a later `clean` from wherever that is started; and
/// without anybody who could exchange what is in it.
fn safe(directory: &Path) -> Result<PathBuf, DeviceError> {
    let failed = |cause| DeviceError::System { what: format!("making an image in {}", directory.display()), cause };
    let place = directory.canonicalize().map_err(failed)?;
    match custody::exchangeable(&place).map_err(failed)? {
        Some(part) => Err(DeviceError::Exchangeable { directory: place, cause: part.refusal() }),
        None => Ok(place),
    }
}

fn named_image(directory: &Path, undo: &mut Undo<'_>) -> Result<(PathBuf, FileId, File, u64), DeviceError> {
    let image = directory.join(IMAGE_NAME);
    let failed = |what: &str| {
        let what = format!("{what} {}", image.display());
        move |cause| DeviceError::System { what, cause }
    };
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
    let facts = file.metadata().map_err(failed("examining image"))?;
    let id = file_id(&facts);
    let entry = undo.replace(entry, Entry::Image { path: image.clone(), id: Some(FileIdentity::of(&facts)) })?;
    Ok((image, id, file, entry))
}

fn size(file: &File, size_bytes: u64, directory: &Path) -> Result<(), DeviceError> {
    file.set_len(size_bytes).map_err(|error| match error.raw_os_error() {
        Some(libc::EFBIG | libc::EINVAL) => DeviceError::Unsuitable {
            words: format!(
                "{}: its filesystem cannot hold files of {}",
                directory.display(),
                fstone_model::units::format_bytes(size_bytes)
            ),
        },
        _ => DeviceError::System { what: format!("sizing an image in {}", directory.display()), cause: error },
    })
}

/// Attaches an image; gives it back when that fails.
fn provide_loop(
    image: (FileId, File),
    settings: LoopSettings,
    machine: &Machine,
) -> Result<Provided, ((FileId, File), DeviceError)> {
    let (id, file) = image;
    let mut snatches = 0;
    let (index, handle) = loop {
        let index = match machine.devices.free_loop() {
            Ok(index) => index,
            Err(cause) => {
                return Err(((id, file), DeviceError::System { what: "finding a free loop device".into(), cause }));
            }
        };
        match machine.devices.attach_loop(index, &file, settings) {
            Ok(handle) => break (index, handle),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && snatches < SNATCHES => snatches += 1,
            Err(error) => {
                let error = match error.kind() {
                    io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput => {
                        DeviceError::Unsuitable { words: format!("loop device: {error}") }
                    }
                    _ => DeviceError::System { what: format!("attaching /dev/loop{index}"), cause: error },
                };
                return Err(((id, file), error));
            }
        }
    };
    let image = OpenImage { file, id, device: (index, handle) };
    let (path, purpose) = (loops::path_of(index), Purpose::OwnImage(id));
    Ok(Provided { path, number: (0, 0), purpose, image: Some(image), image_directory: None, cached: false })
}

fn provide_zram(size_bytes: u64, undo: &mut Undo<'_>, machine: &Machine) -> Result<Provided, DeviceError> {
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
    Ok(Provided {
        path: zram::path_of(index),
        number: (0, 0),
        purpose: Purpose::OwnZram,
        image: None,
        image_directory: None,
        cached: false,
    })
}

fn set_queue(
    device: (u32, u32),
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
    let before = machine.devices.queue_setting(device, name).map_err(|error| refused(&error))?;
    if before == value {
        return Ok(());
    }
    let entry = |after| Entry::QueueSetting { device, name: name.to_owned(), before: before.clone(), after };
    let recorded = undo.record(entry(None))?;
    machine.devices.set_queue_setting(device, name, value).map_err(|error| refused(&error))?;
    // The kernel may round. What it shows now tells our setting from one that somebody makes later.
    let after = machine.devices.queue_setting(device, name).map_err(|error| refused(&error))?;
    undo.replace(recorded, entry(Some(after)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn what_does_not_end_is_waited_for_no_longer_than_its_limit() {
        let (release, released) = channel::<()>();
        assert!(!is_done_within(Duration::from_millis(20), move || {
            let _ = released.recv();
        }));
        drop(release);
        assert!(is_done_within(RELEASE, || ()));
    }
}
