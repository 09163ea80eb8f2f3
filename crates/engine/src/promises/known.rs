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

/// A write that returned.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) begun: u64,
    pub(super) ended: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) stamp: u64,
    pub(super) generation: u64,
}

/// What a unit has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    /// Its stamp and at least which generation; `None` where writes of several stamps may have been the last.
    pub(super) says: Option<(u64, u64)>,
    /// When the last write to it returned.
    pub(super) ended: u64,
}

impl Unit {
    /// Another write may have been the last.
    pub(super) fn or(&mut self, stamp: u64, generation: u64) {
        self.says = self.says.filter(|says| says.0 == stamp).map(|says| (stamp, says.1.min(generation)));
    }
}

/// What is known of a file at some moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// Written, and not yet promised.
    pub(super) pending: Vec<Pending>,
    /// By unit, what is promised.
    pub(super) units: Arc<BTreeMap<u64, Unit>>,
    /// Whether anything about its data is promised, be it that there is none.
    pub(super) synced: bool,
    /// Names that appeared, and when.
    pub(super) names: Vec<(u64, Arc<str>)>,
    /// The names that are promised.
    pub(super) promised_names: BTreeSet<Arc<str>>,
    /// Names it had after that.
    pub(super) later_names: BTreeSet<Arc<str>>,
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
        if let Change::Wrote { file, stamp, generation, .. } = &event.change {
            self.0.insert((*stamp, *generation), *file);
        }
    }

    /// Whether what was found is known to be of another file than this one.
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
                Change::Wrote { file: of, offset, bytes, stamp, generation, durable } if *of == file => {
                    let (begun, ended) = (event.begun, event.ended);
                    let (offset, bytes, stamp, generation) = (*offset, *bytes, *stamp, *generation);
                    known.wrote(Pending { begun, ended, offset, bytes, stamp, generation }, *durable);
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
                Change::Wrote { file: of, offset, bytes, stamp, generation, .. } if *of == file => {
                    known.may_hold(*offset, *bytes, *stamp, *generation);
                }
                Change::Cut { file: of } if *of == file => known.uncertain = true,
                Change::Remade { .. } => known.uncertain = true,
                _ => {}
            }
        }
        known
    }

    /// A write was acknowledged.
    pub(super) fn wrote(&mut self, write: Pending, durable: bool) {
        if durable {
            self.promise(&write);
            self.synced = true;
        } else {
            self.pending.push(write);
        }
    }

    /// It was cut, or lost data, by a call that had returned then.
    pub(super) fn was_cut(&mut self, ended: u64) {
        self.pending.clear();
        self.cut = Some(ended);
    }

    /// A sync that began then was acknowledged.
    pub(super) fn sync(&mut self, begun: u64, names: bool) {
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
    pub(super) fn promise(&mut self, write: &Pending) {
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
    pub(super) fn excuse(known: &mut Arc<Self>) {
        if !known.excused {
            Arc::make_mut(known).excused = true;
        }
    }

    /// Whether any unit there is promised.
    pub(super) fn promises_any(&self, offset: u64, bytes: u64) -> bool {
        self.units.range(offset / UNIT..(offset + bytes) / UNIT).next().is_some()
    }

    /// Units may hold a write that is not promised. Its generation is not always above what is: it was given before the call
    /// began, and another thread may have written in between.
    pub(super) fn may_hold(&mut self, offset: u64, bytes: u64, stamp: u64, generation: u64) {
        if !self.promises_any(offset, bytes) {
            return;
        }
        let units = Arc::make_mut(&mut self.units).range_mut(offset / UNIT..(offset + bytes) / UNIT);
        units.for_each(|(_, unit)| unit.or(stamp, generation));
    }

    /// The same for what was acknowledged and not yet made durable.
    pub(super) fn allow_pending(&mut self) {
        for write in std::mem::take(&mut self.pending) {
            self.may_hold(write.offset, write.bytes, write.stamp, write.generation);
        }
    }

    pub(super) fn look(&self, id: FileId, reading: &mut Reading<'_>, kept: &mut Kept) {
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
    pub(super) fn note_whole(&self, kept: &mut Kept) {
        let promises = if self.promised_names.is_empty() { 2 } else { 3 };
        (0..promises).for_each(|_| kept.note(None));
    }

    /// Where what is promised of its data ends.
    pub(super) fn end(&self) -> u64 {
        self.units.keys().next_back().map_or(0, |unit| (unit + 1) * UNIT)
    }

    /// Whether this is the file's beginning, with everything that is promised of it.
    pub(super) fn is_whole(&self, content: &mut [u8], id: FileId, writers: &Writers) -> bool {
        let length = content.len() as u64;
        let mut blocks = Blocks { file: None, length, buffer: content, held: 0..length };
        self.is_in(&mut blocks, id, writers)
    }

    /// Whether a file is this one, with everything that is promised of it.
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
        let Some((&unit, Unit { says: Some((stamp, _)), .. })) = self.units.first_key_value() else { return false };
        if (unit + 1) * UNIT > blocks.length {
            return false;
        }
        blocks.unit(unit).is_ok_and(|found| {
            stamp::generation(found, *stamp, unit * UNIT).is_ok_and(|found| writers.are_others(*stamp, found, id))
        })
    }

    /// The first unit that is not what was promised or newer.
    pub(super) fn damage(&self, blocks: &mut Blocks<'_>) -> Option<String> {
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

/// What reading files one by one needs.
pub(super) struct Reading<'p> {
    pub(super) writers: &'p Writers,
    pub(super) buffer: &'p mut [u8],
}

/// What is at a path where a file should be.
#[derive(Debug)]
pub(super) enum Found {
    /// The file, and what is wrong with its length and its data.
    Its { length: Option<Broken>, data: Option<Broken> },
    /// Another one.
    Others,
}
