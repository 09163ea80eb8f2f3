//! Aged filesystems that are kept: made once, and copied for each trial.
//!
//! An image is one file, with the record of how it was made behind its last byte. It gets its name when it is complete and durable,
//! so a kill leaves nothing that could be taken for one. It is found by everything that its state depends on, and accepted only in a
//! directory that nobody else may write to.

use super::{job::Job, options::LabOptions};
use crate::{
    agent::{DEFAULT_MODEL, GuestOptions, file_name, find_kernel},
    command::{CommandLine, CommandRunner},
    events::{Event, ProgressSink},
    filesystem::{self, ext::SETTINGS},
    inventory::tool_version,
    machine::Machine,
    place::{
        custody,
        device::{Content, copy, digest, room, signature},
        mount::read_mountinfo,
    },
};
use fstone_engine::age::identity;
use fstone_files::{FileIdentity, Temporary, create_directories};
use fstone_model::{
    Cell, Step, StepKind, StepResult, Trial,
    age::{Age, OldImage, Past},
    fnv::fnv1a,
    metric::catalog,
    outcome::Reason,
    result::{CommandRecord, Effective, KERNEL_WORK, TrialId},
    study::{DeviceSpec, FilesystemSpec, FsckMode, KernelSpec, StepAction},
    units::{format_bytes, nanoseconds},
};
use rustix::fs::{FlockOperation, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, flock, futimens};
use serde::{Deserialize, Serialize};
use std::{
    borrow::Cow,
    cell::Cell as Shared,
    collections::BTreeMap,
    env,
    fs::{self, File, Metadata},
    io, iter,
    os::unix::fs::{FileExt, FileTypeExt, MetadataExt, symlink},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, SystemTime},
};

/// What a digest of an image is recorded as, beside the commands of its ageing.
pub const DIGEST: &str = "sha256sum";
/// What the names of images end with, and their last bytes.
const END: &str = "aged";
const MAKING: &str = "making";
/// What the names of links to directories that were aged in place end with.
const PLACE: &str = "place";
const MAGIC: [u8; 8] = *b"fs-aged\n";
/// How often is looked whether another run has made an image.
const LOOK: Duration = Duration::from_millis(200);
const LIMIT_OF_LOOKS: Duration = Duration::from_secs(3);
const LIMIT_OF_LDD: Duration = Duration::from_secs(5);
/// Unless the study says otherwise.
const SECTOR_BYTES: u32 = 512;
const RECORD_BYTES: u64 = 4 << 20;
/// All images together take at most this, and half of what their filesystem has for them.
const LIMIT_BYTES: u64 = 64 << 30;

/// Of the images that this process asked for.
static TURNS: Mutex<BTreeMap<String, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());

/// Everything that the state of an aged filesystem depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Life {
    pub filesystem: FilesystemSpec,
    size_bytes: u64,
    sector_bytes: u32,
    /// The model of the drive, in virtual time.
    drive: Option<String>,
    /// With its seed.
    pub age: Past,
    pub kernel: String,
    tools: Vec<Option<String>>,
    /// A hash of [`SETTINGS`], or of what mke2fs reads in their place.
    settings: u64,
    /// This program and, in virtual time, the simulated machine.
    made_by: String,
}

impl Life {
    /// "20 GiB", and what is not as usual: "20 GiB with sectors of 4 KiB, on hdd-today"
    pub fn device(&self) -> String {
        let bytes = self.sector_bytes;
        let sectors = (bytes != SECTOR_BYTES).then(|| format!(" with sectors of {}", format_bytes(bytes.into())));
        let drive = self.drive.as_deref().map(|drive| format!(", on {drive}"));
        format_bytes(self.size_bytes) + &sectors.into_iter().chain(drive).collect::<String>()
    }
}

/// What is known of an image; it is behind the image's bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    /// The life as it was written: numbers that are read and written again may differ.
    key: String,
    /// The results of mkfs and of ageing.
    steps: Vec<StepResult>,
    effective: Effective,
    warnings: Vec<String>,
}

/// The first step of a trial that makes a copy of an old image; an old image that is not clean is refused with this cure.
pub(super) const OLD_IMAGE: &str = "old image";
pub const TO_CLEAN: &str = "mount and unmount it once, or a copy of it: mount -o loop IMAGE DIRECTORY";

/// The image that a trial begins with.
pub(super) struct Aged<'a> {
    directory: &'a Path,
    name: String,
    key: String,
    size_bytes: u64,
    pub(super) seed: u64,
    original: Option<OldImage>,
    is_exact: bool,
    /// Two copies of one filesystem have one UUID, and are not mounted at once.
    is_exclusive: bool,
}

/// An image to copy, and what it has behind it.
pub(super) struct Origin {
    image: File,
    record: Record,
    name: String,
}

/// The trial's cell with the seed of its history, which is the same in all runs. A plan's seed is a new one for each run unless it is
/// given; in virtual time it is always the same, and guests that are perturbed share it.
pub(super) fn with_seed<'c>(job: &Job<'c>) -> Cow<'c, Cell> {
    let mut cell = Cow::Borrowed(job.cell);
    let of_trial = if job.cell.kernel.is_exact() { job.seed } else { u64::from(job.id.repetition) };
    for (at, step) in job.cell.steps.iter().enumerate() {
        if let StepAction::Age(past) = &step.action
            && let Past::Aged(age @ Age { seed: None, .. }) = &**past
        {
            // Once, and for all repeats.
            let of_trial = if matches!(job.cell.device, DeviceSpec::Directory { .. }) { 0 } else { of_trial };
            let age = Past::Aged(Age { seed: Some(of_trial), ..age.clone() });
            cell.to_mut().steps[at].action = StepAction::Age(Arc::new(age));
        }
    }
    cell
}

/// The past of a filesystem whose image is kept: it is aged, on an image, before all else.
pub(crate) fn kept_past(cell: &Cell) -> Option<&Past> {
    let [mkfs, mount, Step { action: StepAction::Age(past), .. }, ..] = &cell.steps[..] else { return None };
    let is_usual = matches!((&mkfs.action, &mount.action), (StepAction::Mkfs, StepAction::Mount));
    // A log of the disk begins with mkfs.
    let is_logged = cell.steps.iter().any(|step| matches!(step.action, StepAction::PowerCut(_)));
    let is_plain = cell.filesystem.tree.is_none() && cell.filesystem.own.is_none();
    let is_image = matches!(cell.device, DeviceSpec::Loop { .. });
    (is_image && is_usual && !is_logged && is_plain).then_some(past)
}

impl<'a> Aged<'a> {
    /// `None` unless its image is kept. Its history has a seed.
    pub(super) fn of(job: &Job<'_>, options: &'a LabOptions, machine: &Machine) -> Option<Self> {
        let directory = options.aged.as_deref()?;
        let cell = job.cell;
        let age = kept_past(cell)?;
        let DeviceSpec::Loop { size_bytes, sector_bytes, model, .. } = &cell.device else { return None };
        let spec = &cell.filesystem;
        let is_host = cell.kernel == KernelSpec::Host;
        let is_exact = cell.kernel.is_exact();
        let drive = is_exact.then(|| model.clone().unwrap_or_else(|| DEFAULT_MODEL.to_owned()));
        let (kernel, made_by) = if is_host {
            let kernel = rustix::system::uname();
            (format!("{} {}", kernel.release().to_string_lossy(), kernel.version().to_string_lossy()), String::new())
        } else {
            let guests = options.guests.as_ref().filter(|guests| guests.faults.is_empty())?;
            let kernel = find_kernel(&cell.kernel, &guests.kernels).ok()?;
            let simulated = drive.as_deref().map_or_else(String::new, |drive| simulated(guests, drive));
            (format!("{} {} {}", kernel.name(), kernel.source, stamp(&kernel.binary)?), simulated)
        };
        let age = Past::clone(age);
        let seed = match &age {
            Past::Aged(age) => age.seed?,
            Past::Image(_) => 0,
        };
        let original = age.image().cloned();
        let tools = filesystem::find(&spec.kind)?.facts().tools;
        let life = Life {
            filesystem: FilesystemSpec { name: String::new(), ..spec.clone() },
            size_bytes: *size_bytes,
            sector_bytes: *sector_bytes,
            drive,
            age,
            kernel,
            tools: tools.iter().map(|tool| program(tool, &*machine.runner)).collect(),
            settings: fnv1a(&fs::read(env::var_os("MKE2FS_CONFIG").unwrap_or(SETTINGS.into())).unwrap_or_default()),
            made_by: format!("{} {made_by}", stamp(&options.agent)?),
        };
        let key = serde_json::to_string(&life).ok()?;
        let name = name_of(&life, &key);
        Some(Self { directory, name, key, size_bytes: *size_bytes, seed, original, is_exact, is_exclusive: is_host })
    }

    /// The old image that is copied, opened for reading alone; `None` if the filesystem is aged from mkfs on.
    ///
    /// # Errors
    /// Why it must not be copied.
    pub(super) fn original(&self) -> Result<Option<File>, Reason> {
        let Some(image) = &self.original else { return Ok(None) };
        let refused = |words: String| Reason::new(OLD_IMAGE, format!("{}: {words}", image.file));
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(
            rustix::fs::open(&image.file, flags, Mode::empty()).map_err(|error| refused(format!("open: {error}")))?,
        );
        if let Some(device) = attached_to(&file) {
            let cure = format!("umount {device}; losetup -d {device}");
            return Err(refused(format!("it is attached to {device}, and may be written meanwhile")).with_cure(cure));
        }
        is_unchanged(&file, image).map_err(|error| refused(error.to_string()))?;
        if image.size_bytes > self.size_bytes {
            let [image, device] = [image.size_bytes, self.size_bytes].map(format_bytes);
            let cure = format!("device = {{ loop = {{ size = \"{image}\" }} }}");
            return Err(refused(format!("it has {image}, and the device {device}")).with_cure(cure));
        }
        Ok(Some(file))
    }

    /// The trial that makes it, for one that needs it.
    pub(super) const fn making<'j>(&self, job: &Job<'j>) -> Job<'j> {
        // A guest that is perturbed gets the same.
        Job { id: TrialId { repetition: 0, ..job.id }, seed: self.seed, direct: false, ..*job }
    }

    /// To be held while an image that is not there is made: others of this process wait instead of making it, too.
    pub(super) fn turn(&self) -> Arc<Mutex<()>> {
        Arc::clone(TURNS.lock().unwrap_or_else(PoisonError::into_inner).entry(self.name.clone()).or_default())
    }

    /// To be held in the same way against other runs, for which it waits. `None` if it is stopped meanwhile, or nothing can be kept.
    pub(super) fn turn_of_runs(&self, sink: &dyn ProgressSink, stop: &AtomicBool) -> Option<Turn> {
        create_directories(self.directory, None).ok()?;
        let path = own_directory(self.directory).ok()?.join(&self.name).with_extension(MAKING);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut is_said = false;
        loop {
            let file = File::from(rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600)).ok()?);
            while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                if stop.load(Ordering::Acquire) {
                    return None;
                }
                if !std::mem::replace(&mut is_said, true) {
                    sink.event(&Event::ImageAwaited { image: self.name.trim_end_matches(".aged") });
                }
                thread::sleep(LOOK);
            }
            // The run that had it removed it, and the next one locks a new file of this name.
            let identity = FileIdentity::of(&file.metadata().ok()?);
            if fs::symlink_metadata(&path).is_ok_and(|named| identity.is(&named)) {
                return Some(Turn { path, _locked: file });
            }
        }
    }

    /// The image, if it is kept. Waits while another run has a copy of it mounted; `None`, too, if it is stopped meanwhile.
    pub(super) fn open(&self, sink: &dyn ProgressSink, stop: &AtomicBool) -> Option<Origin> {
        let path = own_directory(self.directory).ok()?.join(&self.name);
        let how = match self.is_exclusive {
            true => FlockOperation::NonBlockingLockExclusive,
            false => FlockOperation::NonBlockingLockShared,
        };
        let mut is_said = false;
        let (image, record) = loop {
            let (image, record, facts) = read(&path).filter(|(_, record, _)| record.key == self.key)?;
            let is_locked = flock(&image, how).is_ok();
            // It may have been removed before it was locked.
            let is_named = fs::symlink_metadata(&path).is_ok_and(|named| FileIdentity::of(&facts).is(&named));
            if is_locked && is_named {
                break (image, record);
            }
            if stop.load(Ordering::Acquire) {
                return None;
            }
            if is_locked {
                continue;
            }
            if !std::mem::replace(&mut is_said, true) {
                sink.event(&Event::ImageAwaited { image: self.name.trim_end_matches(".aged") });
            }
            thread::sleep(LOOK);
        };
        let [omitted, now] = [UTIME_OMIT, UTIME_NOW].map(|tv_nsec| Timespec { tv_sec: 0, tv_nsec });
        // When it was used last; if that is not noted, it goes earlier than it need.
        let _ = futimens(&image, &Timestamps { last_access: omitted, last_modification: now });
        Some(Origin { image, record, name: self.name.clone() })
    }

    /// Keeps the image that a trial of [`maker`] made, or says why that cannot be.
    ///
    /// # Errors
    /// If the old image, of which it is a copy, is not what it was when the trial began.
    pub(super) fn keep(
        &self,
        image: File,
        original: Option<&File>,
        trial: &Trial,
        sink: &dyn ProgressSink,
        stop: &AtomicBool,
    ) -> io::Result<Origin> {
        let steps = trial.steps.iter().filter(|result| result.step != StepKind::Unmount.name());
        let mut steps: Vec<StepResult> = steps.filter_map(of_the_state).collect();
        // A real kernel never makes the same image again.
        let hashed = if self.is_exact { Some(&image) } else { original };
        let digest = hashed.map(|hashed| digest(hashed, stop)).transpose()?;
        if let (Some(original), Some(image)) = (original, &self.original) {
            is_unchanged(original, image)?;
        }
        let aged = steps.iter_mut().find(|result| result.step == StepKind::Age.name());
        if let (Some(aged), Some(output_tail)) = (aged, digest) {
            let argv = vec![DIGEST.to_owned()];
            aged.commands.push(CommandRecord { argv, status: None, duration_ns: 0, output_tail });
        }
        let mut record = Record {
            key: self.key.clone(),
            steps,
            effective: Effective { mount: None, ..trial.effective.clone() },
            warnings: trial.warnings.iter().filter(|words| words.starts_with("age: ")).cloned().collect(),
        };
        let why = match self.store(&image, &record, stop) {
            Ok(()) => match self.open(sink, stop) {
                Some(kept) => return Ok(kept),
                None => "it is gone".to_owned(),
            },
            Err(error) => error.to_string(),
        };
        record.warnings.push(format!("age: the image is not kept in {}: {why}", self.directory.display()));
        Ok(Origin { image, record, name: self.name.clone() })
    }

    fn store(&self, image: &File, record: &Record, stop: &AtomicBool) -> io::Result<()> {
        create_directories(self.directory, None)?;
        let directory = own_directory(self.directory)?;
        let path = directory.join(&self.name);
        match read(&path) {
            // Another run kept it meanwhile, and may use it.
            Some((_, kept, _)) if kept.key == self.key => return Ok(()),
            None if path.symlink_metadata().is_ok() => {
                let words = format!("{} is no image of fstone's, or damaged; remove it", path.display());
                return Err(io::Error::other(words));
            }
            _ => {}
        }
        let made = Temporary::owned(&path, None)?;
        make_room(&directory, room(made.file())?, image.metadata()?.blocks() * 512, self.seed)?;
        copy(image, made.file(), self.size_bytes, stop)?;
        let mut text = serde_json::to_vec(record)?;
        let length = text.len() as u64;
        text.extend(length.to_le_bytes());
        text.extend(MAGIC);
        made.file().write_all_at(&text, self.size_bytes)?;
        made.replace(&path)
    }
}

/// While it is there, no other run makes the image. A process that is killed releases it, and leaves an empty file to the next.
pub(super) struct Turn {
    path: PathBuf,
    _locked: File,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The cell whose trial makes the image. How its trials reach the device is not the image's: rows that differ there have one image.
pub(super) fn maker(cell: &Cell) -> Cell {
    let mut steps = cell.steps[..3].to_vec();
    if is_of_an_image(&steps[2]) {
        let action = StepAction::Fsck { mode: FsckMode::ReadOnly };
        steps[0] = Step { name: OLD_IMAGE.to_owned(), action, ..steps[2].clone() };
    }
    steps.push(Step { name: StepKind::Unmount.name().to_owned(), action: StepAction::Unmount, ..steps[2].clone() });
    Cell { steps, device: maker_device(&cell.device), queue: Vec::new(), ..cell.clone() }
}

pub(crate) fn maker_device(device: &DeviceSpec) -> DeviceSpec {
    let mut device = device.clone();
    if let DeviceSpec::Loop { direct_io, .. } = &mut device {
        *direct_io = false;
    }
    device
}

pub(super) fn is_of_an_image(step: &Step) -> bool {
    matches!(&step.action, StepAction::Age(past) if past.image().is_some())
}

/// What a trial that makes an image begins with: a copy of the original.
pub(super) const fn of_original<'c>(original: &'c File, stop: &'c AtomicBool) -> Content<'c> {
    Content { image: original, settles: true, stop, copied: Shared::new(None) }
}

/// The cell of a trial that begins with a copy.
pub(super) fn rest(cell: &Cell) -> Cell {
    let steps = cell.steps[1..2].iter().chain(&cell.steps[3..]).cloned().collect();
    Cell { steps, ..cell.clone() }
}

impl Origin {
    pub(super) fn content<'c>(&'c self, cell: &Cell, stop: &'c AtomicBool) -> Content<'c> {
        Content { image: &self.image, settles: !cell.kernel.is_exact(), stop, copied: Shared::default() }
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = String> + '_ {
        self.record.warnings.iter().cloned()
    }

    pub(super) fn superblock(&self) -> Vec<(String, String)> {
        self.record.effective.superblock.clone()
    }

    /// Puts the results of the steps that the copy has behind it where those steps are in the cell.
    pub(super) fn complete(&self, cell: &Cell, content: &Content<'_>, results: &mut Vec<StepResult>) {
        let result = |step: &Step| self.record.steps.iter().find(|result| result.step == step.name).cloned();
        let at = results.iter().position(|result| result.step == cell.steps[1].name).unwrap_or(results.len());
        let mut age = result(&cell.steps[2]);
        if let (Some(age), Some((by_reference, took))) = (&mut age, content.copied.get()) {
            let argv = ["cp", "--reflink=auto", "--sparse=always", &self.name].map(str::to_owned).to_vec();
            let output_tail = if by_reference { "by reference" } else { "its data" }.to_owned();
            age.commands.push(CommandRecord { argv, status: None, duration_ns: nanoseconds(took), output_tail });
        }
        let behind = (at + 1).min(results.len());
        age.into_iter().for_each(|age| results.insert(behind, age));
        result(&cell.steps[0]).into_iter().for_each(|mkfs| results.insert(at, mkfs));
    }
}

/// What a result says of the state; what it took to make it is no figure of a trial that only copies it.
fn of_the_state(result: &StepResult) -> Option<StepResult> {
    let is_of_the_state = |name: &str| {
        let metric = catalog::find(name);
        metric.is_some_and(|metric| metric.steps.contains(&StepKind::Age) && metric.steps.len() < StepKind::ALL.len())
    };
    let mut result = StepResult { started_ns: 0, duration_ns: 0, load: None, ..result.clone() };
    result.figures.retain(|figure| is_of_the_state(&figure.metric));
    result.commands.retain(|command| command.argv != [KERNEL_WORK]);
    (!result.commands.is_empty()).then_some(result)
}

/// A kept image.
#[derive(Debug, Clone)]
pub struct KeptImage {
    path: PathBuf,
    identity: FileIdentity,
    /// Its life, the result of its ageing, and warnings; `None` if it is no use: damaged, or of another build of fstone.
    pub past: Option<(Life, Option<StepResult>, Vec<String>)>,
    /// Another one does not use it.
    pub is_of_this_build: bool,
    /// What it takes on the disk.
    pub bytes: u64,
    pub used: SystemTime,
}

impl KeptImage {
    /// The name without its end.
    pub fn name(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The images in a directory of fstone's own, the one that was not used for the longest time first. What is no image is left out.
pub fn kept_images(directory: &Path) -> Vec<KeptImage> {
    let Ok(directory) = own_directory(directory) else { return Vec::new() };
    let build = env::current_exe().ok().and_then(|program| stamp(&program)).unwrap_or_default();
    let image = |path: PathBuf| {
        let Tail { whole, facts, .. } = tail(&path)?;
        let past = whole.map(|(record, life)| {
            let result = record.steps.into_iter().find(|result| result.step == StepKind::Age.name());
            (life, result, record.warnings)
        });
        let made_by = past.as_ref().map_or("", |(life, ..): &(Life, _, _)| life.made_by.as_str());
        let is_of_this_build = made_by.strip_prefix(&build).is_some_and(|rest| rest.starts_with(' '));
        let (identity, bytes) = (FileIdentity::of(&facts), facts.blocks() * 512);
        let used = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Some(KeptImage { path, identity, past, is_of_this_build, bytes, used })
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut images: Vec<KeptImage> = entries.filter_map(|entry| image(entry.path())).collect();
    images.sort_by(|one, other| (one.used, &one.path).cmp(&(other.used, &other.path)));
    images
}

/// Why neither images nor notes are taken from a directory: others may write to it.
pub fn refusal(directory: &Path) -> Option<String> {
    let refused = own_directory(directory).err().filter(|error| error.kind() != io::ErrorKind::NotFound);
    refused.map(|error| format!("{}: {error}", directory.display()))
}

/// Notes, where images are kept, that a directory is aged in place. Without the note, only studies that name the same directory find it.
pub(super) fn note_directory(directory: &Path, aged: &Path) -> io::Result<()> {
    let aged = resolved(aged);
    create_directories(directory, None)?;
    match symlink(&aged, own_directory(directory)?.join(note_of(&aged))) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The path without links above its last part, which need not be there.
fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let above = path.parent().and_then(|above| above.canonicalize().ok());
    above.zip(path.file_name()).map_or_else(|| path.clone(), |(above, name)| above.join(name))
}

/// Says in which directory it is, since an empty one may have that one's path while its disk is not mounted.
fn note_of(aged: &Path) -> String {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let above = aged.parent().and_then(|above| rustix::fs::open(above, flags, Mode::empty()).ok());
    let above = above.and_then(|above| identity(&above.into()).ok());
    format!("{:016x}.{PLACE}", fnv1a(format!("{} in {}", aged.display(), above.unwrap_or_default()).as_bytes()))
}

/// The notes, and the directories that they name, which may be on filesystems that do not answer.
fn notes(directory: &Path) -> Vec<(PathBuf, PathBuf)> {
    let Ok(directory) = own_directory(directory) else { return Vec::new() };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let notes = entries.filter(|note| note.extension().is_some_and(|end| end == PLACE));
    let mut named: Vec<_> = notes.filter_map(|note| fs::read_link(&note).ok().map(|place| (note, place))).collect();
    named.sort_by(|one, other| one.1.cmp(&other.1));
    named
}

/// The directories that were aged in place and are there, and whether they answer. Notes of those that are gone from where they were go,
/// too; those of others stay, since their disks may not be mounted now.
pub fn aged_directories(directory: &Path) -> Vec<(PathBuf, bool)> {
    aged_by(directory, |note, place| match fs::symlink_metadata(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if note.file_name().is_some_and(|name| *name == *note_of(place)) {
                let _ = fs::remove_file(note);
            }
            false
        }
        found => found.is_ok_and(|facts| facts.is_dir()),
    })
}

fn aged_by(directory: &Path, is_there: fn(&Path, &Path) -> bool) -> Vec<(PathBuf, bool)> {
    let mut aged: Vec<_> = thread::scope(|scope| {
        let looks = notes(directory).into_iter().map(|(note, place)| {
            let looked = place.clone();
            (place, scope.spawn(move || answer_of(move || is_there(&note, &looked))))
        });
        let looks: Vec<_> = looks.collect();
        let found = looks.into_iter().filter_map(|(place, look)| match look.join().ok()? {
            Some(is_there) => is_there.then_some((place, true)),
            None => Some((place, false)),
        });
        found.collect()
    });
    aged.dedup();
    aged
}

/// What a look at a filesystem that may not answer finds within a time; `None` afterwards. Its thread waits on.
pub(super) fn answer_of<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, answer) = mpsc::channel();
    thread::Builder::new().spawn(move || drop(sender.send(look()))).ok()?;
    answer.recv_timeout(LIMIT_OF_LOOKS).ok()
}

/// Removes the notes of a directory that was aged in place, and says whether there was one.
pub fn forget_directory(directory: &Path, aged: &Path) -> bool {
    let aged = resolved(aged);
    let of_it = notes(directory).into_iter().filter(|(_, place)| *place == aged);
    of_it.filter(|(note, _)| fs::remove_file(note).is_ok()).count() > 0
}

/// Those of the noted directories that are on the filesystem of a path; the others are not looked at.
pub(super) fn aged_beside(directory: &Path, path: &Path) -> Vec<PathBuf> {
    let (mounts, path) = (read_mountinfo().unwrap_or_default(), resolved(path));
    // Of several mounts at one place, the last is seen.
    let filesystem = |path: &Path| {
        let above = mounts.iter().filter(|mount| path.starts_with(&mount.target));
        above.max_by_key(|mount| mount.target.components().count()).map(|mount| mount.device)
    };
    let here = filesystem(&path);
    let noted = notes(directory).into_iter().map(|(_, place)| place);
    noted.filter(|place| here.is_some() && filesystem(place) == here).collect()
}

/// Removes one that [`kept_images`] listed.
///
/// # Errors
/// When a trial uses it, or it is something else by now; those of unlink(2).
pub fn remove_image(image: &KeptImage) -> io::Result<()> {
    let Tail { file, facts, .. } = tail(&image.path).ok_or_else(|| io::Error::other("it is not what it was"))?;
    if !image.identity.is(&facts) {
        return Err(io::Error::other("another image has taken its place"));
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| io::Error::other("a trial uses it"))?;
    // Nobody else may put anything into this directory, and fstone replaces an image by one that is made in the same way.
    fs::remove_file(&image.path)
}

/// Describes the image of a filesystem for a plan, without following what takes its path later.
///
/// # Errors
/// If it cannot be examined.
pub fn old_image(path: &Path) -> io::Result<OldImage> {
    let path = path.canonicalize()?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(&path, flags, Mode::empty())?);
    let kind = file.metadata()?.file_type();
    if !(kind.is_file() || kind.is_block_device()) {
        return Err(io::Error::other("it is no image of a filesystem"));
    }
    if let Some(device) = attached_to(&file) {
        return Err(io::Error::other(format!("it is attached to {device}; umount {device}; losetup -d {device}")));
    }
    let holds = signature(&path, &*Machine::host().runner).map_err(io::Error::other)?.unwrap_or_default();
    let holds = holds.split(" labelled ").next().unwrap_or_default().to_owned();
    let file = path.to_str().ok_or_else(|| io::Error::other("its path is no UTF-8"))?.to_owned();
    let facts = path.metadata()?;
    Ok(OldImage { file, holds, size_bytes: facts.len(), modified_ns: modified_ns(&facts) })
}

fn modified_ns(facts: &Metadata) -> u64 {
    let modified = facts.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    nanoseconds(modified.unwrap_or_default())
}

fn is_unchanged(file: &File, image: &OldImage) -> io::Result<()> {
    let facts = file.metadata()?;
    match facts.is_file() && (facts.len(), modified_ns(&facts)) == (image.size_bytes, image.modified_ns) {
        true => Ok(()),
        false => Err(io::Error::other("it has changed since the study was read; run the study anew")),
    }
}

/// The loop device that has this file behind it.
fn attached_to(file: &File) -> Option<String> {
    let facts = file.metadata().ok()?;
    fs::read_dir("/sys/block").ok()?.flatten().find_map(|device| {
        let backing = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        let other = fs::metadata(backing.trim_end_matches('\n')).ok()?;
        let is_it = (other.dev(), other.ino()) == (facts.dev(), facts.ino());
        is_it.then(|| format!("/dev/{}", device.file_name().to_string_lossy()))
    })
}

/// Removes images, the one that was not used for the longest time first, until there is room for one of this seed. Those of the seed that
/// this process asked for stay: trials of other rows need them. Those of other seeds are mostly of repetitions that are over.
fn make_room(directory: &Path, free: u64, needed: u64, seed: u64) -> io::Result<()> {
    let (ours, images): (Vec<_>, Vec<_>) = kept_images(directory).into_iter().partition(|image| {
        let turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of_seed = image.past.as_ref().is_some_and(|(life, ..)| match &life.age {
            Past::Aged(age) => age.seed == Some(seed),
            Past::Image(_) => seed == 0,
        });
        is_of_seed && image.path.file_name().and_then(|name| name.to_str()).is_some_and(|name| turns.contains_key(name))
    });
    let mut taken: u64 = ours.iter().chain(&images).map(|image| image.bytes).sum();
    let limit = LIMIT_BYTES.min(free.saturating_add(taken) / 2);
    if needed > limit {
        let words = format!("it needs {}, and {} are left to such images", format_bytes(needed), format_bytes(limit));
        return Err(io::Error::new(io::ErrorKind::StorageFull, words));
    }
    for image in &images {
        if taken.saturating_add(needed) <= limit {
            return Ok(());
        }
        if remove_image(image).is_ok() {
            taken -= image.bytes;
        }
    }
    match taken.saturating_add(needed) <= limit {
        true => Ok(()),
        false if !ours.is_empty() => {
            let words = format!(
                "of this run's images, {} take its room ({} in all are left to images); the others are made in each trial",
                ours.len(),
                format_bytes(limit)
            );
            Err(io::Error::new(io::ErrorKind::StorageFull, words))
        }
        false => Err(io::Error::new(io::ErrorKind::StorageFull, "trials use the images that take its room")),
    }
}

/// The directory without symbolic links, if nobody else may put anything into it.
fn own_directory(directory: &Path) -> io::Result<PathBuf> {
    let directory = directory.canonicalize()?;
    match custody::unowned(&directory)? {
        Some(part) => Err(part.refusal()),
        None => Ok(directory),
    }
}

/// An image and its record; `None` for whatever is not a complete one that this build and user made.
fn read(path: &Path) -> Option<(File, Record, Metadata)> {
    let Tail { file, facts, whole } = tail(path)?;
    Some((file, whole?.0, facts))
}

/// An image, and what is behind it.
struct Tail {
    file: File,
    facts: Metadata,
    /// `None` if it is damaged, or another build made it, whose records are others.
    whole: Option<(Record, Life)>,
}

/// `None` for whatever is no image of this user's.
fn tail(path: &Path) -> Option<Tail> {
    if path.extension()? != END {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let facts = file.metadata().ok()?;
    if !facts.is_file() || facts.uid() != rustix::process::geteuid().as_raw() || facts.nlink() != 1 {
        return None;
    }
    let end = facts.len().checked_sub(16)?;
    let mut tail = [0; 16];
    file.read_exact_at(&mut tail, end).ok()?;
    let (length, magic) = tail.split_at(8);
    let length = u64::from_le_bytes(length.try_into().ok()?);
    let from = end.checked_sub(length).filter(|_| magic == MAGIC && length <= RECORD_BYTES)?;
    let mut text = vec![0; length as usize];
    file.read_exact_at(&mut text, from).ok()?;
    let whole = || {
        let record: Record = serde_json::from_slice(&text).ok()?;
        let life: Life = serde_json::from_str(&record.key).ok()?;
        let is_it = life.size_bytes == from && path.file_name()? == name_of(&life, &record.key).as_str();
        is_it.then_some((record, life))
    };
    Some(Tail { file, facts, whole: whole() })
}

fn name_of(life: &Life, key: &str) -> String {
    format!("{}-{:016x}.{END}", file_name(&life.filesystem.kind), fnv1a(key.as_bytes()))
}

/// A tool's version, and a hash of it and of the libraries that it is linked with: others may have the same version.
fn program(tool: &str, runner: &dyn CommandRunner) -> Option<String> {
    let path = runner.find(tool)?;
    let linked = runner.run(&CommandLine::new("ldd", [path.display().to_string()]), LIMIT_OF_LDD);
    let linked = linked.map(|output| output.stdout).unwrap_or_default();
    let libraries = linked.split_whitespace().filter(|word| word.starts_with('/')).map(Into::into);
    let files = iter::once(path).chain(libraries).map(|file: PathBuf| fs::read(file).unwrap_or_default());
    let hashes: Vec<u8> = files.flat_map(|bytes| fnv1a(&bytes).to_le_bytes()).collect();
    Some(format!("{} {:016x}", tool_version(tool, runner).unwrap_or_default(), fnv1a(&hashes)))
}

/// Tells a program from another build of it.
pub(super) fn stamp(program: &Path) -> Option<String> {
    let facts = fs::metadata(program).ok()?;
    Some(format!("{} {}.{:09}", facts.len(), facts.mtime(), facts.mtime_nsec()))
}

fn simulated(guests: &GuestOptions, drive: &str) -> String {
    let own = guests.models.iter().find(|(name, _)| name == drive);
    let all = format!("{:?}", (guests.memory_bytes, guests.charge, &guests.processor, drive, own));
    format!("{:016x}", fnv1a(all.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{events::Silent, testing};
    use fstone_model::{
        Outcome,
        age::{Class, Depth, Profile},
    };

    fn cell(seed: Option<u64>) -> Cell {
        let class = |up_to| vec![Class { up_to, weight: 1.0 }];
        let depths = vec![Depth { depth: 1, weight: 1.0, directories: 1 }];
        let profile =
            Profile { name: "p".into(), sizes: class(4096.0), ages: class(0.1), depths, ..Profile::default() };
        let age = Age { profile, utilization: 0.5, overwrites: 1.0, compressible: 0.0, seed };
        let mut cell = testing::cell(0, "ext4", "", &[testing::step("age", StepAction::Age(Arc::new(age.into())))]);
        cell.device = testing::loop_device(1 << 20);
        cell
    }

    #[test]
    fn a_note_goes_with_its_directory_but_outlives_a_look_while_its_disk_is_not_mounted() {
        let place = tempfile::tempdir().expect("a directory");
        let above = place.path().canonicalize().expect("there");
        let [notes, aged, disk, away] = ["notes", "disk/fstone-aged", "disk", "away"].map(|name| above.join(name));
        let count = || fs::read_dir(&notes).map_or(0, Iterator::count);
        let look = || -> Vec<_> {
            let found = aged_directories(&notes).into_iter();
            found.map(|(place, answers)| answers.then_some(place).expect("it answers")).collect()
        };
        symlink(&disk, above.join("link")).expect("linked");
        fs::create_dir_all(&aged).expect("writable");
        // Two paths, one directory.
        note_directory(&notes, &aged).expect("noted");
        note_directory(&notes, &above.join("link/fstone-aged")).expect("noted");
        assert_eq!((look(), count()), (vec![aged.clone()], 1));
        fs::rename(&disk, &away).and_then(|()| fs::create_dir(&disk)).expect("an empty mount point");
        assert_eq!((look(), count()), (Vec::new(), 1));
        fs::remove_dir(&disk).and_then(|()| fs::rename(&away, &disk)).expect("mounted again");
        assert_eq!(look(), std::slice::from_ref(&aged));
        assert_eq!(aged_beside(&notes, &disk), std::slice::from_ref(&aged));
        assert!(aged_beside(&notes, Path::new("/proc/self")).is_empty(), "another filesystem");
        fs::remove_dir(&aged).expect("removed");
        assert_eq!((look(), count()), (Vec::new(), 0));
        note_directory(&notes, &aged).expect("noted");
        assert!(forget_directory(&notes, &above.join("link/fstone-aged")) && count() == 0);
        assert!(!forget_directory(&notes, &aged));
    }

    #[test]
    fn a_disk_that_does_not_answer_keeps_nobody_waiting_and_others_directories_are_refused() {
        let place = tempfile::tempdir().expect("a directory");
        let notes = place.path().join("notes");
        let aged = ["answers", "hangs", "gone"].map(|name| place.path().join(name).join("fstone-aged"));
        aged.iter().for_each(|aged| note_directory(&notes, aged).expect("noted"));
        let found = aged_by(&notes, |_, place| {
            if place.parent().is_some_and(|above| above.ends_with("hangs")) {
                thread::sleep(LIMIT_OF_LOOKS * 100);
            }
            !place.parent().is_some_and(|above| above.ends_with("gone"))
        });
        assert_eq!(found, [(resolved(&aged[0]), true), (resolved(&aged[1]), false)]);
        assert_eq!(refusal(&notes), None);
        assert_eq!(refusal(&place.path().join("none")), None);
        fs::set_permissions(&notes, std::os::unix::fs::PermissionsExt::from_mode(0o775)).expect("ours");
        assert!(note_directory(&notes, &aged[0]).is_err() && aged_directories(&notes).is_empty());
        assert!(refusal(&notes).is_some_and(|words| words.starts_with(&notes.display().to_string())));
    }

    #[test]
    fn a_pipe_is_no_old_image() {
        let place = tempfile::tempdir().expect("a directory");
        let pipe = place.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0).expect("made");
        assert_eq!(old_image(&pipe).expect_err("a pipe").to_string(), "it is no image of a filesystem");
    }

    #[test]
    fn another_mkfs_of_the_same_version_is_another_program() {
        let place = tempfile::tempdir().expect("a directory");
        let mkfs = place.path().join("mkfs");
        let of = |text: &str| {
            fs::write(&mkfs, text).expect("written");
            fs::set_permissions(&mkfs, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
            program(&mkfs.display().to_string(), &*Machine::host().runner)
        };
        let [one, patched, again] = ["one", "two", "one"].map(of);
        assert!(one.is_some() && one != patched && one == again, "{one:?} {patched:?} {again:?}");
        assert_eq!(program("fstone-no-mkfs", &*Machine::host().runner), None);
    }

    fn job(cell: &Cell, repetition: u32, seed: u64) -> Job<'_> {
        let id = TrialId { cell: 0, repetition };
        Job { cell, id, position: 0, seed, direct: false, sink: &Silent, explorer: None }
    }

    /// A place for images, as a run has it.
    fn cache() -> (tempfile::TempDir, PathBuf, LabOptions) {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let directory = place.path().join("aged");
        let agent = std::env::current_exe().expect("this test");
        let options = LabOptions { aged: Some(directory.clone()), agent, ..testing::options() };
        (place, directory, options)
    }

    fn aged<'a>(options: &'a LabOptions, seed: u64) -> Aged<'a> {
        Aged::of(&job(&cell(Some(seed)), 0, 3), options, &Machine::host()).expect("it is aged")
    }

    #[test]
    fn rows_that_reach_their_device_in_different_ways_have_one_image() {
        let options = LabOptions {
            aged: Some("/nonexistent".into()),
            agent: env::current_exe().expect("this test"),
            ..testing::options()
        };
        let made = |change: fn(&mut Cell), direct| {
            let mut cell = cell(Some(1));
            change(&mut cell);
            let job = Job { direct, ..job(&cell, 2, 3) };
            let aged = Aged::of(&job, &options, &Machine::host()).expect("it is aged");
            let making = aged.making(&job);
            (aged.key, maker(&cell), (making.id, making.seed, making.direct))
        };
        let plain = made(|_| (), false);
        let queue = |cell: &mut Cell| cell.queue = vec![("write_cache".into(), "write through".into())];
        let direct = |cell: &mut Cell| {
            if let DeviceSpec::Loop { direct_io, .. } = &mut cell.device {
                *direct_io = true;
            }
        };
        let in_memory = |cell: &mut Cell| {
            if let DeviceSpec::Loop { in_memory, .. } = &mut cell.device {
                *in_memory = true;
            }
        };
        assert_eq!(plain.2, (TrialId { cell: 0, repetition: 0 }, 1, false));
        for other in [made(queue, false), made(direct, false), made(|_| (), true)] {
            assert_eq!(other, plain);
        }
        assert_eq!(made(in_memory, false).0, plain.0, "its blocks are the same wherever they are");
        let sectors = |cell: &mut Cell| {
            if let DeviceSpec::Loop { sector_bytes, .. } = &mut cell.device {
                *sector_bytes = 4096;
            }
        };
        let key = made(sectors, false).0;
        assert_ne!(key, plain.0);
        let life = |key: &str| serde_json::from_str::<Life>(key).expect("a life").device();
        assert_eq!([life(&plain.0), life(&key)], ["1 MiB", "1 MiB with sectors of 4 KiB"]);
    }

    #[test]
    fn a_history_is_the_same_in_all_runs() {
        let seed = |cell: &Cell, repetition, seed| {
            let seeded = with_seed(&job(cell, repetition, seed));
            let ages = seeded.steps.iter().filter_map(|step| match &step.action {
                StepAction::Age(past) => Some(Past::clone(past)),
                _ => None,
            });
            ages.map(|past| if let Past::Aged(age) = past { age.seed } else { None }).collect::<Vec<_>>()
        };
        for device in [testing::loop_device(1 << 20), DeviceSpec::Block { path: "/dev/x".into() }] {
            let on = |kernel: KernelSpec, seed| Cell { kernel, device: device.clone(), ..cell(seed) };
            for of_run in [7, 8] {
                assert_eq!(seed(&on(KernelSpec::Host, None), 2, of_run), [Some(2)]);
                assert_eq!(seed(&on(KernelSpec::Host, Some(5)), 2, of_run), [Some(5)]);
            }
            let exact = KernelSpec::Exact(String::new());
            assert_eq!(seed(&on(exact, None), 2, 7), [Some(7)], "perturbed guests are further repetitions");
        }
    }

    fn seed(image: &KeptImage) -> Option<u64> {
        match &image.past.as_ref()?.0.age {
            Past::Aged(age) => age.seed,
            Past::Image(_) => None,
        }
    }

    fn trial() -> Trial {
        let age = StepResult {
            commands: vec![CommandRecord {
                argv: vec!["age".into()],
                status: None,
                duration_ns: 1,
                output_tail: "as wanted".into(),
            }],
            figures: vec![catalog::UTILIZATION.figure(50.0), catalog::TIME.figure(9.0)],
            ..StepResult::begun("age")
        };
        Trial {
            id: TrialId { cell: 0, repetition: 0 },
            position: 0,
            started_unix_ns: 0,
            duration_ns: 0,
            seed: 3,
            outcome: Outcome::Completed,
            steps: vec![age],
            effective: Effective::default(),
            warnings: vec!["age: missed".into(), "other".into()],
        }
    }

    #[test]
    fn one_run_waits_for_the_image_that_another_makes() {
        struct Heard(Mutex<Vec<String>>);
        impl ProgressSink for Heard {
            fn event(&self, event: &Event<'_>) {
                if let Event::ImageAwaited { image } = event {
                    self.0.lock().expect("sound").push((*image).to_owned());
                }
            }
        }
        let (_place, _, options) = cache();
        let (one, heard, stop) = (aged(&options, 1), Heard(Mutex::default()), AtomicBool::new(false));
        let first = one.turn_of_runs(&heard, &stop).expect("nothing is made");
        assert!(aged(&options, 2).turn_of_runs(&heard, &stop).is_some(), "another image");
        assert!(heard.0.lock().expect("sound").is_empty());
        thread::scope(|scope| {
            let second = scope.spawn(|| aged(&options, 1).turn_of_runs(&heard, &stop));
            while heard.0.lock().expect("sound").is_empty() {
                thread::sleep(LOOK);
            }
            drop(first);
            let second = second.join().expect("no panic").expect("released");
            assert!(second.path.exists(), "a third run would not wait for it");
        });
        assert_eq!(*heard.0.lock().expect("sound"), [one.name.trim_end_matches(".aged")], "said once");
        let _held = one.turn_of_runs(&heard, &stop).expect("nothing is made");
        stop.store(true, Ordering::Release);
        assert!(one.turn_of_runs(&heard, &stop).is_none());
    }

    #[test]
    fn an_image_that_another_run_uses_is_awaited_and_never_replaced() {
        struct Heard(AtomicBool);
        impl ProgressSink for Heard {
            fn event(&self, event: &Event<'_>) {
                if matches!(event, Event::ImageAwaited { .. }) {
                    self.0.store(true, Ordering::Release);
                }
            }
        }
        let (place, directory, options) = cache();
        let image = |text: &[u8]| {
            let image = fstone_files::nameless(place.path()).expect("made");
            image.set_len(1 << 20).expect("sized");
            image.write_all_at(text, 5000).expect("written");
            image
        };
        let (heard, stop) = (Heard(AtomicBool::new(false)), AtomicBool::new(false));
        let one = aged(&options, 11).keep(image(b"one"), None, &trial(), &Silent, &stop).expect("kept");
        let inode = kept_images(&directory)[0].identity;
        thread::scope(|scope| {
            let other = || {
                let other = aged(&options, 11);
                let kept = other.open(&heard, &stop).expect("it is there");
                drop(kept);
                other.keep(image(b"two"), None, &trial(), &heard, &stop).expect("the first one's")
            };
            let other = scope.spawn(other);
            while !heard.0.load(Ordering::Acquire) {
                thread::sleep(LOOK);
            }
            drop(one);
            let other = other.join().expect("no panic");
            let mut text = [0; 3];
            other.image.read_exact_at(&mut text, 5000).expect("readable");
            assert_eq!(text, *b"one");
        });
        let images = kept_images(&directory);
        assert!(images.len() == 1 && images[0].identity == inode && images[0].is_of_this_build, "{images:?}");
    }

    #[test]
    fn an_image_that_this_run_needs_again_makes_no_room_for_another() {
        let (place, directory, options) = cache();
        let stop = AtomicBool::new(false);
        for seed in [21, 22] {
            let image = fstone_files::nameless(place.path()).expect("made");
            image.set_len(1 << 20).expect("sized");
            drop(aged(&options, seed).keep(image, None, &trial(), &Silent, &stop).expect("kept"));
        }
        let first = kept_images(&directory).remove(0);
        drop(aged(&options, 21).turn());
        let taken: u64 = kept_images(&directory).iter().map(|image| image.bytes).sum();
        // Half of this is for images: all that are there, and no more.
        make_room(&directory, taken, first.bytes, 21).expect("the other one goes");
        let left = kept_images(&directory);
        assert!(left.len() == 1 && seed(&left[0]) == Some(21), "{left:?}");
        let full = make_room(&directory, left[0].bytes, left[0].bytes, 21).expect_err("it stays").to_string();
        assert!(
            full.starts_with("of this run's images, 1 take its room") && kept_images(&directory).len() == 1,
            "{full}"
        );
        make_room(&directory, 2 * left[0].bytes, left[0].bytes, 23).expect("a repetition that is over");
        assert!(kept_images(&directory).is_empty() || left[0].bytes == 0);
    }

    #[test]
    fn an_image_is_kept_whole_or_not_at_all_and_only_images_are_removed() {
        let (place, directory, options) = cache();
        let image = || {
            let image = fstone_files::nameless(place.path()).expect("made");
            image.set_len(1 << 20).expect("sized");
            image.write_all_at(b"data", 5000).expect("written");
            image
        };
        let stop = AtomicBool::new(false);
        assert!(aged(&options, 1).open(&Silent, &stop).is_none());
        let [one, two] = [1, 2].map(|seed| aged(&options, seed));
        for each in [&one, &two] {
            let kept = each.keep(image(), None, &trial(), &Silent, &stop).expect("kept");
            assert_eq!(kept.warnings().collect::<Vec<_>>(), ["age: missed"]);
            assert!(kept.record.steps[0].figures.len() == 1 && kept.record.steps[0].duration_ns == 0);
            let stopped = AtomicBool::new(true);
            assert!(aged(&options, each.seed).open(&Silent, &stopped).is_none(), "its filesystem may be mounted");
            let removed = kept_images(&directory).iter().map(remove_image).any(|removed| removed.is_ok());
            assert!(!removed || each.seed == 2, "a trial uses it");
        }
        let one = one.keep(image(), None, &trial(), &Silent, &stop).expect("kept");
        drop(one.record);
        let images = kept_images(&directory);
        assert!(
            images
                .iter()
                .all(|image| seed(image).is_some() && image.past.as_ref().is_some_and(|past| past.1.is_some())),
            "{images:?}"
        );
        drop(one.image);
        let path = images[0].path.clone();
        // What a kill, a full disk or another user could leave.
        let whole = fs::read(&path).expect("readable");
        for damaged in [&whole[..whole.len() - 1], &whole[..1 << 20], &[][..]] {
            fs::write(&path, damaged).expect("written");
            assert!(read(&path).is_none() && remove_image(&images[0]).is_err() && path.exists());
        }
        let kept = aged(&options, seed(&images[0]).expect("a seed"))
            .keep(image(), None, &trial(), &Silent, &stop)
            .expect("kept");
        assert!(kept.warnings().any(|words| words.contains("or damaged; remove it")), "what is foreign stays");
        // Another build has other records: such an image is no use, and takes room.
        let record = [&whole[..1 << 20], b"{}", &2u64.to_le_bytes(), &MAGIC].concat();
        let other = path.with_file_name("ext4-0123456789abcdef.aged");
        for useless in [&record[..], &whole[1..]] {
            fs::write(&other, useless).expect("written");
            let found = kept_images(&directory).into_iter().find(|image| image.path == other).expect("it is listed");
            assert!(found.past.is_none() && read(&other).is_none() && remove_image(&found).is_ok() && !other.exists());
        }
        fs::write(&path, &whole).expect("written");
        fs::write(directory.join("notes.txt"), "mine").expect("written");
        assert!(remove_image(&images[0]).is_ok() && !path.exists() && directory.join("notes.txt").exists());
        fs::set_permissions(&directory, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("changed");
        assert!(
            kept_images(&directory).is_empty() && aged(&options, 1).open(&Silent, &stop).is_none(),
            "others may write to it"
        );
    }
}
