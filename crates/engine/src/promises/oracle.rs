//! What has to be there after a power cut, and whether it is.

use super::ahead::Ahead;
use super::event::{Change, Event, FileId, is_below};
use crate::data::stamp;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const UNIT: u64 = stamp::UNIT as u64;
/// Broken promises described one by one; any more are only counted.
const MAX_BROKEN: usize = 20;

/// What kind of promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    /// Data that was synced is there, or newer data.
    Data,
    /// A file is as long as it was when it was synced, or longer.
    Length,
    /// A file that was synced can be found by the name it had, or by one that it got later.
    Name,
    /// A name that was removed before everything was synced does not come back.
    Removal,
    /// By a name that was only given to other files by rename there is one of them, whole where all of them were synced.
    Replacement,
}

impl Property {
    /// As it is called in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Length => "length",
            Self::Name => "name",
            Self::Removal => "removal",
            Self::Replacement => "replacement",
        }
    }
}

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Of which kind.
    pub property: Property,
    /// About which file, below the filesystem's root.
    pub path: PathBuf,
    /// What was found instead.
    pub words: String,
}

/// What became of the promises.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Promises looked at: one for each file's data, length and name, and one for each removed or replaced name.
    pub checked: u64,
    /// How many were broken.
    pub broken: u64,
    /// The first of them.
    pub first: Vec<Broken>,
}

impl Kept {
    fn note(&mut self, broken: Option<Broken>) {
        self.checked += 1;
        if let Some(broken) = broken {
            self.broken += 1;
            if self.first.len() < MAX_BROKEN {
                self.first.push(broken);
            }
        }
    }
}

/// A write that returned.
#[derive(Debug, Clone)]
struct Pending {
    begun: u64,
    ended: u64,
    offset: u64,
    bytes: u64,
    stamp: u64,
    generation: u64,
}

/// What a unit has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unit {
    /// Its stamp and at least which generation; `None` where writes of several stamps may have been the last.
    says: Option<(u64, u64)>,
    /// When the last write to it returned.
    ended: u64,
}

impl Unit {
    /// Another write may have been the last.
    fn or(&mut self, stamp: u64, generation: u64) {
        self.says = self.says.filter(|says| says.0 == stamp).map(|says| (stamp, says.1.min(generation)));
    }
}

/// What is known of a file at some moment.
#[derive(Debug, Clone, Default)]
struct Known {
    /// Written, and not yet promised.
    pending: Vec<Pending>,
    /// By unit, what is promised.
    units: Arc<BTreeMap<u64, Unit>>,
    /// Whether anything about its data is promised, be it that there is none.
    synced: bool,
    /// Names that appeared, and when.
    names: Vec<(u64, Arc<str>)>,
    /// The names that are promised.
    promised_names: BTreeSet<Arc<str>>,
    /// Names it had after that.
    later_names: BTreeSet<Arc<str>>,
    /// When it was cut, if that is not promised yet.
    cut: Option<u64>,
    /// Whether it may be gone, or cut later.
    excused: bool,
    /// Whether it may be cut later, or was remade.
    uncertain: bool,
}

/// A name that was durable, and was given to other files by rename.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Replaced {
    /// The files that may have it.
    files: BTreeSet<FileId>,
    /// When it was given away last.
    ended: u64,
}

/// What is promised at some moment. A copy shares the files with what it was copied from, up to the first change of each.
#[derive(Debug, Clone, Default)]
pub(super) struct Promises {
    files: HashMap<FileId, Arc<Known>>,
    owner: HashMap<Arc<str>, FileId>,
    /// Names that went, and when.
    gone: HashMap<Arc<str>, u64>,
    promised_gone: HashSet<Arc<str>>,
    replaced: HashMap<Arc<str>, Replaced>,
    writers: Arc<Writers>,
}

/// What was acknowledged up to some moment, kept for the next look. States are looked at in the order of their moments: each goes
/// on from where the last one was.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    promises: Promises,
    /// How many events were applied.
    applied: usize,
    /// How many events the writers were taken from.
    noted: usize,
}

impl Acknowledged {
    /// What is promised at a moment. The events are those of the last call, and perhaps more.
    pub(super) fn at(&mut self, events: &[Event], moment: u64) -> Promises {
        let acknowledged = events.partition_point(|event| event.ended < moment);
        if acknowledged < self.applied {
            let writers = std::mem::take(&mut self.promises.writers);
            self.promises = Promises { writers, ..Promises::default() };
            self.applied = 0;
        }
        if self.noted < events.len() {
            let writers = Arc::make_mut(&mut self.promises.writers);
            events[self.noted..].iter().for_each(|event| writers.note(event));
            self.noted = events.len();
        }
        events[self.applied..acknowledged].iter().for_each(|event| self.promises.apply(event));
        self.applied = acknowledged;
        let mut promises = self.promises.clone();
        promises.allow_pending();
        events[acknowledged..].iter().for_each(|event| promises.allow(event));
        promises
    }
}

/// To which file each stamp and generation was written. A load gives a generation once.
#[derive(Debug, Clone, Default)]
struct Writers(HashMap<(u64, u64), FileId>);

impl Writers {
    fn note(&mut self, event: &Event) {
        if let Change::Wrote { file, stamp, generation, .. } = &event.change {
            self.0.insert((*stamp, *generation), *file);
        }
    }

    /// Whether what was found is known to be of another file than this one.
    fn are_others(&self, stamp: u64, generation: u64, than: FileId) -> bool {
        self.0.get(&(stamp, generation)).is_some_and(|writer| *writer != than)
    }
}

impl Promises {
    /// A file that is to be changed.
    fn file(&mut self, file: FileId) -> &mut Known {
        Arc::make_mut(self.files.entry(file).or_default())
    }

    /// A call that was acknowledged.
    fn apply(&mut self, event: &Event) {
        match &event.change {
            Change::Named { file, path } => {
                self.gone.remove(path);
                self.promised_gone.remove(path);
                self.owner.insert(Arc::clone(path), *file);
                let known = self.file(*file);
                known.names.push((event.ended, Arc::clone(path)));
                known.later_names.insert(Arc::clone(path));
            }
            Change::Unnamed { path } => {
                self.unname(path);
                self.replaced.remove(path);
                self.gone.insert(Arc::clone(path), event.ended);
            }
            Change::Renamed { from, to } => {
                let Some(file) = self.owner.remove(from) else { return };
                self.replace(from, to, file, event.ended);
                self.unname(to);
                self.gone.insert(Arc::clone(from), event.ended);
                self.gone.remove(to);
                self.promised_gone.remove(to);
                self.owner.insert(Arc::clone(to), file);
                let known = self.file(file);
                known.names.retain(|(_, name)| name != from);
                known.names.push((event.ended, Arc::clone(to)));
                known.later_names.insert(Arc::clone(to));
            }
            Change::Wrote { file, offset, bytes, stamp, generation, durable } => {
                let known = self.file(*file);
                let (begun, ended) = (event.begun, event.ended);
                let (offset, bytes, stamp, generation) = (*offset, *bytes, *stamp, *generation);
                let write = Pending { begun, ended, offset, bytes, stamp, generation };
                if *durable {
                    known.promise(&write);
                    known.synced = true;
                } else {
                    known.pending.push(write);
                }
            }
            Change::Cut { file } => {
                let known = self.file(*file);
                known.pending.clear();
                known.cut = Some(event.ended);
            }
            Change::Synced { file, names } => {
                if let Some(known) = self.files.get_mut(file).map(Arc::make_mut) {
                    known.sync(event.begun, *names);
                }
            }
            Change::Remade { below } => self.forget(below),
            Change::SyncedAll => {
                // The last of them has the name durably: it is asked for as any other.
                self.replaced.retain(|_, replaced| replaced.ended >= event.begun);
                for known in self.files.values_mut().map(Arc::make_mut) {
                    known.sync(event.begun, true);
                }
                let before = self.gone.iter().filter(|(_, ended)| **ended < event.begun);
                self.promised_gone.extend(before.map(|(path, _)| Arc::clone(path)));
            }
        }
    }

    /// What is below a directory was remade by somebody else: nothing is asked for there.
    fn forget(&mut self, below: &str) {
        for known in self.files.values_mut() {
            let mut names =
                known.names.iter().map(|(_, name)| name).chain(&known.promised_names).chain(&known.later_names);
            if names.any(|name| is_below(name, below)) {
                let known = Arc::make_mut(known);
                (known.excused, known.uncertain) = (true, true);
            }
        }
        self.replaced.retain(|path, _| !is_below(path, below));
        self.owner.retain(|path, _| !is_below(path, below));
        self.gone.retain(|path, _| !is_below(path, below));
        self.promised_gone.retain(|path| !is_below(path, below));
    }

    /// A file gets the name of another. Where that had it durably, one of both has it after a power cut.
    fn replace(&mut self, from: &Arc<str>, to: &Arc<str>, file: FileId, ended: u64) {
        self.replaced.remove(from);
        let old = self.owner.get(to).copied().filter(|old| {
            self.files.get(old).is_some_and(|known| known.promised_names.contains(to)) || self.replaced.contains_key(to)
        });
        let Some(old) = old else { return };
        let replaced = self.replaced.entry(Arc::clone(to)).or_default();
        replaced.files.extend([old, file]);
        replaced.ended = ended;
    }

    /// A name was removed from the file that has it; without any, the file may be gone.
    fn unname(&mut self, path: &Arc<str>) {
        let Some(file) = self.owner.remove(path) else { return };
        if let Some(known) = self.files.get_mut(&file).map(Arc::make_mut) {
            known.names.retain(|(_, name)| name != path);
            known.excused |= known.names.is_empty();
        }
    }

    /// A call that may have had its effect or not.
    fn allow(&mut self, event: &Event) {
        match &event.change {
            Change::Named { file, path } => {
                self.promised_gone.remove(path);
                self.owner.insert(Arc::clone(path), *file);
                self.file(*file).later_names.insert(Arc::clone(path));
            }
            Change::Unnamed { path } => {
                self.replaced.remove(path);
                if let Some(known) = self.owner.get(path).and_then(|file| self.files.get_mut(file)) {
                    Known::excuse(known);
                }
            }
            Change::Renamed { from, to } => {
                self.promised_gone.remove(to);
                match self.owner.get(from).copied() {
                    Some(file) => self.replace(from, to, file, event.ended),
                    None => drop(self.replaced.remove(to)),
                }
                if let Some(known) = self.owner.get(to).and_then(|file| self.files.get_mut(file)) {
                    Known::excuse(known);
                }
                if let Some(file) = self.owner.get(from).copied() {
                    self.owner.insert(Arc::clone(to), file);
                    self.file(file).later_names.insert(Arc::clone(to));
                }
            }
            Change::Cut { file } => {
                let known = self.file(*file);
                (known.excused, known.uncertain) = (true, true);
            }
            Change::Remade { below } => self.forget(below),
            Change::Wrote { file, offset, bytes, stamp, generation, .. } => {
                if let Some(known) = self.files.get_mut(file).filter(|known| known.promises_any(*offset, *bytes)) {
                    Arc::make_mut(known).may_hold(*offset, *bytes, *stamp, *generation);
                }
            }
            Change::Synced { .. } | Change::SyncedAll => {}
        }
    }

    /// What was acknowledged and not yet made durable may be there. Nothing else is asked of it after that.
    fn allow_pending(&mut self) {
        // A file without promised data has nothing that could be otherwise: it stays shared.
        let pending = self.files.values_mut().filter(|known| !known.pending.is_empty() && !known.units.is_empty());
        pending.for_each(|known| Arc::make_mut(known).allow_pending());
    }

    pub(super) fn look(&self, reader: &mut Reader, together: bool) -> Kept {
        let mut kept = Kept::default();
        let mut asked: Vec<(FileId, &Known)> = self
            .files
            .iter()
            .map(|(id, known)| (*id, &**known))
            .filter(|(_, known)| known.synced && !known.excused && known.cut.is_none())
            .collect();
        asked.sort_unstable_by_key(|(id, _)| *id);
        if together {
            self.look_together(&mut asked, reader, &mut kept);
        }
        let mut reading = Reading { writers: &self.writers, buffer: reader.buffer() };
        for (id, known) in asked {
            known.look(id, &mut reading, &mut kept);
        }
        for (path, replaced) in &self.replaced {
            kept.note(self.wrong_replacement(path, replaced, &mut reading));
        }
        for path in &self.promised_gone {
            let there = Path::new(&**path).symlink_metadata().is_ok();
            kept.note(there.then(|| Broken {
                property: Property::Removal,
                path: PathBuf::from(&**path),
                words: "it was removed and is back".to_owned(),
            }));
        }
        kept
    }

    /// Looks at small files by the names that they had last. Whatever is not as it should be stays to be looked at again, by all its
    /// names.
    fn look_together(&self, asked: &mut Vec<(FileId, &Known)>, reader: &mut Reader, kept: &mut Kept) {
        let named = |known: &Known| known.names.last().map(|(_, name)| Arc::clone(name));
        let small: Vec<(FileId, &Known, Arc<str>)> = asked
            .iter()
            .filter(|(_, known)| (1..=Ahead::BYTES).contains(&known.end()))
            .filter_map(|(id, known)| Some((*id, *known, named(known)?)))
            .collect();
        let paths: Vec<&str> = small.iter().map(|(.., name)| &**name).collect();
        let mut whole = HashSet::new();
        reader.read(&paths, |number, content| {
            let (id, known, _) = &small[number];
            if known.is_whole(content, *id, &self.writers) {
                known.note_whole(kept);
                whole.insert(*id);
            }
        });
        asked.retain(|(id, _)| !whole.contains(id));
    }

    /// What is wrong with a name that was given from one file to another.
    fn wrong_replacement(&self, path: &Arc<str>, replaced: &Replaced, reading: &mut Reading<'_>) -> Option<Broken> {
        let path = Path::new(&**path);
        let broken = |words: &str| {
            Some(Broken { property: Property::Replacement, path: path.to_owned(), words: words.to_owned() })
        };
        if !path.is_file() {
            return broken("it was only replaced, and neither the old file nor the new one is there");
        }
        // What was not synced may be there in any state.
        let told = |known: &Known| known.synced && !known.uncertain && known.cut.is_none();
        let known = || replaced.files.iter().map(|id| (*id, self.files.get(id).map(|known| &**known)));
        if !known().all(|(_, known)| known.is_some_and(told)) {
            return None;
        }
        let mut is_whole = |(id, known): (FileId, Option<&Known>)| {
            known.is_some_and(|known| {
                matches!(known.at(path, id, reading), Some(Found::Its { length: None, data: None }))
            })
        };
        let whole = known().any(&mut is_whole);
        if whole { None } else { broken("it is neither the old file nor the new one, and both were synced") }
    }
}

impl Known {
    /// A sync that began then was acknowledged.
    fn sync(&mut self, begun: u64, names: bool) {
        if self.cut.is_some_and(|ended| ended < begun) {
            self.cut = None;
            self.units = Arc::default();
        }
        let (covered, pending) = std::mem::take(&mut self.pending).into_iter().partition(|write| write.ended < begun);
        self.pending = pending;
        let covered: Vec<Pending> = covered;
        covered.iter().for_each(|write| self.promise(write));
        self.synced = true;
        if names {
            self.promised_names =
                self.names.iter().filter(|(ended, _)| *ended < begun).map(|(_, name)| Arc::clone(name)).collect();
            // From here on, only what it is called now or later counts.
            self.later_names = self.names.iter().map(|(_, name)| Arc::clone(name)).collect();
        }
    }

    /// What was written is durable.
    fn promise(&mut self, write: &Pending) {
        let units = Arc::make_mut(&mut self.units);
        for unit in write.offset / UNIT..(write.offset + write.bytes) / UNIT {
            let mut held = Unit { says: Some((write.stamp, write.generation)), ended: write.ended };
            // Of writes that ran at the same time, either may have been the last.
            if let Some(before) = units.get(&unit).filter(|before| before.ended > write.begun) {
                match before.says {
                    Some((stamp, generation)) => held.or(stamp, generation),
                    None => held.says = None,
                }
            }
            units.insert(unit, held);
        }
    }

    /// It may be gone.
    fn excuse(known: &mut Arc<Self>) {
        if !known.excused {
            Arc::make_mut(known).excused = true;
        }
    }

    /// Whether any unit there is promised.
    fn promises_any(&self, offset: u64, bytes: u64) -> bool {
        self.units.range(offset / UNIT..(offset + bytes) / UNIT).next().is_some()
    }

    /// Units may hold a write that is not promised. Its generation is not always above what is: it was given before the call
    /// began, and another thread may have written in between.
    fn may_hold(&mut self, offset: u64, bytes: u64, stamp: u64, generation: u64) {
        if !self.promises_any(offset, bytes) {
            return;
        }
        let units = Arc::make_mut(&mut self.units).range_mut(offset / UNIT..(offset + bytes) / UNIT);
        units.for_each(|(_, unit)| unit.or(stamp, generation));
    }

    /// The same for what was acknowledged and not yet made durable.
    fn allow_pending(&mut self) {
        for write in std::mem::take(&mut self.pending) {
            self.may_hold(write.offset, write.bytes, write.stamp, write.generation);
        }
    }

    fn look(&self, id: FileId, reading: &mut Reading<'_>, kept: &mut Kept) {
        let named = self.promised_names.first();
        // Names are used again: the file may stand under a later one, and another under the one it had.
        let candidates: BTreeSet<&Arc<str>> = self.promised_names.iter().chain(&self.later_names).collect();
        let (mut found, mut others) = (Vec::new(), false);
        for path in candidates.into_iter().map(|name| Path::new(&**name)) {
            match self.at(path, id, reading) {
                Some(Found::Its { length: None, data: None }) => return self.note_whole(kept),
                Some(Found::Its { length, data }) => found.push((length, data)),
                Some(Found::Others) => others = true,
                None => {}
            }
        }
        if found.is_empty() {
            // A file whose name was never promised may have none, and its data cannot be found then.
            if let Some(name) = named {
                let words = if others { "another file is there" } else { "it is not there by any name it had" };
                let path = PathBuf::from(&**name);
                kept.note(Some(Broken { property: Property::Name, path, words: words.to_owned() }));
            }
            return;
        }
        if named.is_some() {
            kept.note(None);
        }
        let (length, data) = found.swap_remove(0);
        kept.note(length);
        kept.note(data);
    }

    /// It is there by one of its names, as long as it was promised and with its data.
    fn note_whole(&self, kept: &mut Kept) {
        let promises = if self.promised_names.is_empty() { 2 } else { 3 };
        (0..promises).for_each(|_| kept.note(None));
    }

    /// Where what is promised of its data ends.
    fn end(&self) -> u64 {
        self.units.keys().next_back().map_or(0, |unit| (unit + 1) * UNIT)
    }

    /// Whether this is the file's beginning, with everything that is promised of it.
    fn is_whole(&self, content: &mut [u8], id: FileId, writers: &Writers) -> bool {
        let length = content.len() as u64;
        let mut blocks = Blocks { file: None, length, buffer: content, held: 0..length };
        self.end() <= length && !self.begins_as_other(&mut blocks, id, writers) && self.damage(&mut blocks).is_none()
    }

    /// What is at a path; `None` without a file there.
    fn at(&self, path: &Path, id: FileId, reading: &mut Reading<'_>) -> Option<Found> {
        let broken = |property, words| Broken { property, path: path.to_owned(), words };
        let (file, length) = match open(path)? {
            Ok(opened) => opened,
            Err(error) => {
                return Some(Found::Its { length: None, data: Some(broken(Property::Data, error.to_string())) });
            }
        };
        let writers = reading.writers;
        let mut blocks = Blocks { file: Some(&file), length, buffer: &mut *reading.buffer, held: 0..0 };
        if self.begins_as_other(&mut blocks, id, writers) {
            return Some(Found::Others);
        }
        let end = self.end();
        let short =
            (length < end).then(|| broken(Property::Length, format!("it has {length} bytes, and {end} were synced")));
        let damage = self.damage(&mut blocks).map(|words| broken(Property::Data, words));
        Some(Found::Its { length: short, data: damage })
    }

    /// Whether the first unit that is promised holds what another file was given. Stamps name a place in the fileset, and a
    /// place has one file after the other: by its stamp alone, a newer file would pass for this one.
    fn begins_as_other(&self, blocks: &mut Blocks<'_>, id: FileId, writers: &Writers) -> bool {
        let Some((&unit, Unit { says: Some((stamp, _)), .. })) = self.units.first_key_value() else { return false };
        if (unit + 1) * UNIT > blocks.length {
            return false;
        }
        blocks.unit(unit).is_ok_and(|found| {
            stamp::generation(found, *stamp, unit * UNIT).is_ok_and(|found| writers.are_others(*stamp, found, id))
        })
    }

    /// The first unit that is not what was promised or newer.
    fn damage(&self, blocks: &mut Blocks<'_>) -> Option<String> {
        let length = blocks.length;
        for (&unit, held) in self.units.iter().take_while(|(unit, _)| (**unit + 1) * UNIT <= length) {
            let at = unit * UNIT;
            let found = match blocks.unit(unit) {
                Ok(found) => found,
                Err(error) => return Some(format!("byte {at}: {error}")),
            };
            let Some((stamp, generation)) = held.says else { continue };
            let words = match stamp::generation(found, stamp, at) {
                Ok(found) if found >= generation => continue,
                Ok(found) => format!("generation {found}, and {generation} was synced"),
                Err(mismatch) => mismatch.words().to_owned(),
            };
            return Some(format!("byte {at}: {words}"));
        }
        None
    }
}

/// What files are read with, look after look: fresh memory is what costs a guest most.
#[derive(Debug, Default)]
pub(super) struct Reader {
    buffer: Vec<u8>,
    /// For small files, where the kernel can do that.
    ahead: Option<Ahead>,
    tried: bool,
}

impl Reader {
    fn buffer(&mut self) -> &mut [u8] {
        self.buffer.resize(256 << 10, 0);
        &mut self.buffer
    }

    /// Reads the beginnings of files, as many as the kernel lets it.
    fn read(&mut self, paths: &[&str], each: impl FnMut(usize, &mut [u8])) {
        if !self.tried {
            (self.ahead, self.tried) = (Ahead::new(), true);
        }
        self.ahead = self.ahead.take().and_then(|ahead| ahead.read(paths, each).ok());
    }
}

/// What reading files one by one needs.
struct Reading<'p> {
    writers: &'p Writers,
    buffer: &'p mut [u8],
}

/// A file's units, read some at a time.
struct Blocks<'r> {
    /// None where the buffer holds all of it.
    file: Option<&'r File>,
    length: u64,
    buffer: &'r mut [u8],
    /// The bytes of the file that the buffer holds.
    held: Range<u64>,
}

impl Blocks<'_> {
    /// A whole unit, which has to be within the file.
    fn unit(&mut self, unit: u64) -> io::Result<&[u8]> {
        let at = unit * UNIT;
        if !(self.held.start <= at && at + UNIT <= self.held.end) {
            let bytes = (self.length - at).min(self.buffer.len() as u64);
            self.held = 0..0;
            let file = self.file.ok_or(io::ErrorKind::UnexpectedEof)?;
            file.read_exact_at(&mut self.buffer[..bytes as usize], at)?;
            self.held = at..at + bytes;
        }
        let from = (at - self.held.start) as usize;
        Ok(&self.buffer[from..from + stamp::UNIT])
    }
}

/// Opens what is at a path and says how long it is; `None` when that is no file. A guest is slow at system calls.
fn open(path: &Path) -> Option<io::Result<(File, u64)>> {
    // Without waiting, should it be a pipe by now.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) => return path.is_file().then_some(Err(error)),
    };
    match file.metadata() {
        Ok(metadata) => metadata.is_file().then(|| Ok((file, metadata.len()))),
        Err(error) => Some(Err(error)),
    }
}

/// What is at a path where a file should be.
#[derive(Debug)]
enum Found {
    /// The file, and what is wrong with its length and its data.
    Its { length: Option<Broken>, data: Option<Broken> },
    /// Another one.
    Others,
}

#[cfg(test)]
mod tests;
