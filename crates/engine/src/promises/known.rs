//! What is promised of a file, and whether it is there.

use super::event::{Change, Event, FileId};
use super::kept::{Broken, Kept, Property};
use super::reading::{Blocks, open};
use crate::data::stamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const UNIT: u64 = stamp::UNIT as u64;

/// A write that returned. Its data has a stamp at its beginning, and every [`UNIT`] bytes after that; the last one may be cut short.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    begun: u64,
    ended: u64,
    offset: u64,
    bytes: u64,
    says: Option<(u64, u64)>,
}

impl Pending {
    /// The write that an event is of, its file, and whether it was durable when it returned.
    pub(super) fn of(event: &Event) -> Option<(FileId, Self, bool)> {
        let Change::Wrote { file, offset, bytes, says, durable } = event.change else { return None };
        Some((file, Self { begun: event.begun, ended: event.ended, offset, bytes, says }, durable))
    }

    const fn end(&self) -> u64 {
        self.offset + self.bytes
    }

    /// Its parts with a stamp each: where, and how many bytes.
    fn parts(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let end = self.end();
        (self.offset..end).step_by(stamp::UNIT).map(move |at| (at, UNIT.min(end - at)))
    }

    /// How many bytes of it have a stamp that begins there; none where no stamp does.
    fn part(&self, at: u64) -> u64 {
        let begins = at >= self.offset && (at - self.offset).is_multiple_of(UNIT);
        if begins { UNIT.min(self.end().saturating_sub(at)) } else { 0 }
    }
}

/// What a part of a file has to hold, with a stamp at its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    /// How long it is, at most [`UNIT`].
    pub(super) bytes: u64,
    /// Its stamp and at least which generation; `None` where nothing of it can be told: writes of several stamps may have been the
    /// last, or one that left a part of it.
    pub(super) says: Option<(u64, u64)>,
    pub(super) ended: u64,
}

impl Unit {
    /// A write to it, which begins there, may have been the last.
    fn or(&mut self, at: u64, write: &Pending) {
        // What is in two sectors of a disk may be there in part.
        let is_torn = at / UNIT != (at + self.bytes - 1) / UNIT;
        let alone = write.part(at) >= self.bytes && !is_torn;
        self.says = match (self.says, write.says) {
            (Some((of, generation)), Some((stamp, other))) if alone && of == stamp => Some((of, generation.min(other))),
            _ => None,
        };
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// Written, and not yet promised.
    pub(super) pending: Vec<Pending>,
    /// By where it begins, what is promised.
    pub(super) units: Arc<BTreeMap<u64, Unit>>,
    /// Whether anything about its data is promised, be it that there is none.
    pub(super) synced: bool,
    pub(super) names: Vec<(u64, Arc<str>)>,
    pub(super) promised_names: BTreeSet<Arc<str>>,
    pub(super) later_names: BTreeSet<Arc<str>>,
    /// Whether it has to be there by some name, even if none is promised: its data is.
    pub(super) kept: bool,
    /// When it was cut, if that is not promised yet.
    pub(super) cut: Option<u64>,
    /// Whether it may be gone, or cut later.
    pub(super) excused: bool,
    /// Whether it may be cut later, or was remade.
    pub(super) uncertain: bool,
}

/// To which file each stamp and generation was written. A load gives a generation once.
#[derive(Debug, Clone, Default)]
pub(super) struct Writers(pub(super) HashMap<(u64, u64), FileId>);

impl Writers {
    pub(super) fn note(&mut self, event: &Event) {
        if let Change::Wrote { file, says: Some(says), .. } = event.change {
            self.0.insert(says, file);
        }
    }

    pub(super) fn are_others(&self, stamp: u64, generation: u64, than: FileId) -> bool {
        self.0.get(&(stamp, generation)).is_some_and(|writer| *writer != than)
    }
}

impl Known {
    /// What is known of a file's data alone, if the power is cut between two moments.
    pub(super) fn of(file: FileId, events: &[Event], cut: &Range<u64>) -> Self {
        let mut known = Self::default();
        let mut is_there = false;
        let acknowledged = events.partition_point(|event| event.ended < cut.start);
        for event in &events[..acknowledged] {
            is_there |= event.change.file() == Some(file);
            match &event.change {
                Change::Wrote { file: of, .. } if *of == file => {
                    if let Some((_, write, durable)) = Pending::of(event) {
                        known.wrote(write, durable);
                    }
                }
                Change::Cut { file: of } if *of == file => known.was_cut(event.ended),
                Change::Synced { file: of, .. } if *of == file => known.sync(event.begun, false),
                Change::SyncedAll if is_there => known.sync(event.begun, false),
                // Whether it was there is for those to say who know its names.
                Change::Remade { .. } if is_there => known.uncertain = true,
                _ => {}
            }
        }
        known.allow_pending();
        for event in events[acknowledged..].iter().filter(|event| event.begun < cut.end) {
            match &event.change {
                Change::Wrote { file: of, .. } if *of == file => {
                    if let Some((_, write, _)) = Pending::of(event) {
                        known.may_hold(&write);
                    }
                }
                Change::Cut { file: of } if *of == file => known.uncertain = true,
                Change::Remade { .. } => known.uncertain = true,
                _ => {}
            }
        }
        known
    }

    pub(super) fn wrote(&mut self, write: Pending, durable: bool) {
        if durable {
            self.promise(&write);
            (self.synced, self.kept) = (true, true);
        } else {
            self.pending.push(write);
        }
    }

    pub(super) fn was_cut(&mut self, ended: u64) {
        self.pending.clear();
        self.cut = Some(ended);
    }

    pub(super) fn sync(&mut self, begun: u64, names: bool) {
        let mut was_there = self.names.iter().any(|(ended, _)| *ended < begun);
        if self.cut.is_some_and(|ended| ended < begun) {
            self.cut = None;
            self.units = Arc::default();
            was_there = true;
        }
        let (covered, pending) = std::mem::take(&mut self.pending).into_iter().partition(|write| write.ended < begun);
        self.pending = pending;
        let covered: Vec<Pending> = covered;
        covered.iter().for_each(|write| self.promise(write));
        // A sync of everything promises nothing of a file that is made meanwhile.
        if was_there || !covered.is_empty() {
            (self.synced, self.kept) = (true, true);
        }
        if names {
            let covered: BTreeSet<Arc<str>> =
                self.names.iter().filter(|(ended, _)| *ended < begun).map(|(_, name)| Arc::clone(name)).collect();
            // A rename may have been in flight: then the name that it had is still promised, or the one that it has now.
            if covered.is_empty() {
                self.later_names.extend(self.names.iter().map(|(_, name)| Arc::clone(name)));
                return;
            }
            self.promised_names = covered;
            // From here on, only what it is called now or later counts.
            self.later_names = self.names.iter().map(|(_, name)| Arc::clone(name)).collect();
        }
    }

    /// Of these names of it, which it has now and had when the directory was synced, each is durable.
    pub(super) fn sync_name(&mut self, name: &Arc<str>) {
        let names: BTreeSet<Arc<str>> = self.names.iter().map(|(_, name)| Arc::clone(name)).collect();
        self.promised_names.retain(|promised| names.contains(promised));
        self.promised_names.insert(Arc::clone(name));
        self.later_names = names;
    }

    pub(super) fn is_promised(&self) -> bool {
        self.synced || !self.promised_names.is_empty()
    }

    pub(super) fn promise(&mut self, write: &Pending) {
        let units = Arc::make_mut(&mut self.units);
        for (at, bytes) in write.parts() {
            let says = write.says.filter(|_| bytes >= stamp::NAME as u64);
            let mut held = Unit { bytes, says, ended: write.ended };
            // What it overwrote of others in part cannot be told any more.
            for (_, other) in overlapping(units, at, at + bytes).filter(|(start, _)| *start != at) {
                other.says = None;
                held.says = held.says.filter(|_| other.ended <= write.begun);
            }
            if let Some(before) = units.get(&at) {
                if before.bytes > bytes {
                    (held.bytes, held.says) = (before.bytes, None);
                } else if before.ended > write.begun {
                    // Of writes that ran at the same time, either may have been the last.
                    let mut both = Unit { bytes, ..*before };
                    both.or(at, write);
                    held.says = both.says.filter(|_| before.bytes == bytes);
                }
            }
            units.insert(at, held);
        }
    }

    pub(super) fn excuse(known: &mut Arc<Self>) {
        if !known.excused {
            Arc::make_mut(known).excused = true;
        }
    }

    pub(super) fn promises_any(&self, write: &Pending) -> bool {
        let before = self.units.range(before(write.offset)..write.end());
        before.into_iter().any(|(at, unit)| at + unit.bytes > write.offset)
    }

    /// What is promised may hold a write that is not. Its generation is not always above what is: it was given before the call
    /// began, and another thread may have written in between.
    pub(super) fn may_hold(&mut self, write: &Pending) {
        if !self.promises_any(write) {
            return;
        }
        let units = Arc::make_mut(&mut self.units);
        overlapping(units, write.offset, write.end()).for_each(|(at, unit)| unit.or(at, write));
    }

    /// The same for what was acknowledged and not yet made durable.
    pub(super) fn allow_pending(&mut self) {
        for write in std::mem::take(&mut self.pending) {
            self.may_hold(&write);
        }
    }

    pub(super) fn look(&self, id: FileId, reading: &mut Reading<'_>, kept: &mut Kept) {
        let named = self.promised_names.first().or_else(|| self.later_names.first().filter(|_| self.kept));
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
        if self.end() > 0 {
            kept.note(length);
        }
        if self.is_compared() || data.is_some() {
            kept.note(data);
        }
    }

    /// It is there by one of its names, as long as it was promised and with its data.
    pub(super) fn note_whole(&self, kept: &mut Kept) {
        let promises = [self.kept || !self.promised_names.is_empty(), self.end() > 0, self.is_compared()];
        promises.into_iter().filter(|it| *it).for_each(|_| kept.note(None));
    }

    fn is_compared(&self) -> bool {
        self.units.values().any(|unit| unit.says.is_some())
    }

    /// Where what is promised of its data ends.
    pub(super) fn end(&self) -> u64 {
        // None is longer than a unit, so the one that begins last need not end last.
        let Some(last) = self.units.keys().next_back() else { return 0 };
        self.units.range(before(*last)..).map(|(at, unit)| at + unit.bytes).max().unwrap_or(0)
    }

    /// Whether this is the file's beginning, with everything that is promised of it.
    pub(super) fn is_whole(&self, content: &mut [u8], id: FileId, writers: &Writers) -> bool {
        let length = content.len() as u64;
        let mut blocks = Blocks { file: None, length, buffer: content, held: 0..length };
        self.is_in(&mut blocks, id, writers)
    }

    pub(super) fn is_in(&self, blocks: &mut Blocks<'_>, id: FileId, writers: &Writers) -> bool {
        self.end() <= blocks.length && !self.begins_as_other(blocks, id, writers) && self.damage(blocks).is_none()
    }

    /// What is at a path; `None` without a file there.
    pub(super) fn at(&self, path: &Path, id: FileId, reading: &mut Reading<'_>) -> Option<Found> {
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
    pub(super) fn begins_as_other(&self, blocks: &mut Blocks<'_>, id: FileId, writers: &Writers) -> bool {
        let Some((&at, Unit { says: Some((stamp, _)), bytes, .. })) = self.units.first_key_value() else {
            return false;
        };
        if at + bytes > blocks.length {
            return false;
        }
        blocks.part(at, *bytes).is_ok_and(|found| {
            stamp::generation(found, *stamp, at).is_ok_and(|found| writers.are_others(*stamp, found, id))
        })
    }

    pub(super) fn damage(&self, blocks: &mut Blocks<'_>) -> Option<String> {
        let length = blocks.length;
        for (&at, held) in self.units.iter().filter(|(at, held)| **at + held.bytes <= length) {
            let Some((stamp, generation)) = held.says else { continue };
            let found = match blocks.part(at, held.bytes) {
                Ok(found) => found,
                Err(error) => return Some(format!("byte {at}: {error}")),
            };
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

/// Where a unit begins at the earliest that reaches behind a place.
const fn before(at: u64) -> u64 {
    (at + 1).saturating_sub(UNIT)
}

fn overlapping(units: &mut BTreeMap<u64, Unit>, from: u64, to: u64) -> impl Iterator<Item = (u64, &mut Unit)> {
    let near = units.range_mut(before(from)..to).map(|(at, unit)| (*at, unit));
    near.filter(move |(at, unit)| at + unit.bytes > from)
}

pub(super) struct Reading<'p> {
    pub(super) writers: &'p Writers,
    pub(super) buffer: &'p mut [u8],
}

#[derive(Debug)]
pub(super) enum Found {
    Its { length: Option<Broken>, data: Option<Broken> },
    Others,
}
