//! What is promised of a file, and whether it is there.

use super::event::{Change, Event, FileId, Made};
use super::kept::{Broken, Kept, Property};
use super::reading::{Blocks, open};
use crate::data::stamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const UNIT: u64 = stamp::UNIT as u64;

/// A call that returned, and changed a part of a file.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    begun: u64,
    ended: u64,
    part: Range<u64>,
    /// What became of the part; `None` for data, with what its stamps say.
    made: Option<Made>,
    /// Data has a stamp at its beginning, and every [`UNIT`] bytes after that; the last one may be cut short.
    says: Option<(u64, u64)>,
}

impl Pending {
    /// The call that an event is of, its file, and whether what it did was durable when it returned.
    pub(super) fn of(event: &Event) -> Option<(FileId, Self, bool)> {
        let Event { begun, ended, ref change } = *event;
        match change {
            Change::Wrote { file, offset, bytes, says, durable } => {
                let part = *offset..offset + bytes;
                Some((*file, Self { begun, ended, part, made: None, says: *says }, *durable))
            }
            Change::Made { file, part, what } => {
                Some((*file, Self { begun, ended, part: part.clone(), made: Some(*what), says: None }, false))
            }
            _ => None,
        }
    }

    /// Where its file may end after it, at the most. A call that leaves the length as it is says nothing of it.
    const fn longest(&self) -> u64 {
        match self.made {
            None | Some(Made::Copied | Made::Unknown) => self.part.end,
            Some(Made::End) => self.part.start,
            Some(Made::Zeros | Made::Mapped) => 0,
        }
    }

    /// What is left of its file for certain if the call cut it.
    fn shortest(&self) -> Option<u64> {
        let cuts = match self.made {
            Some(Made::End) => true,
            Some(Made::Unknown) => self.part.end == u64::MAX,
            None | Some(Made::Zeros | Made::Copied | Made::Mapped) => false,
        };
        cuts.then_some(self.part.start)
    }

    /// Its parts with a stamp each: where, and how many bytes.
    fn parts(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let end = self.part.end;
        self.part.clone().step_by(stamp::UNIT).map(move |at| (at, UNIT.min(end - at)))
    }

    /// How many bytes of it have a stamp that begins there; none where no stamp does.
    fn bytes(&self, at: u64) -> u64 {
        let begins = at >= self.part.start && (at - self.part.start).is_multiple_of(UNIT);
        if begins { UNIT.min(self.part.end.saturating_sub(at)) } else { 0 }
    }
}

/// Parts of a file that are zeros: where each begins, where it ends, and when the call that emptied it returned.
#[derive(Debug, Clone, Default)]
pub(super) struct Zeros(BTreeMap<u64, (u64, u64)>);

impl Zeros {
    fn within(&self, part: &Range<u64>) -> impl Iterator<Item = (u64, u64, u64)> {
        let start = part.start;
        let before = self.0.range(..part.end).rev().map(|(from, (to, ended))| (*from, *to, *ended));
        // They do not overlap, so none that begins earlier reaches further.
        before.take_while(move |(_, to, _)| *to > start)
    }

    fn remove(&mut self, part: &Range<u64>) {
        let found: Vec<(u64, u64, u64)> = self.within(part).collect();
        for (from, to, ended) in found {
            self.0.remove(&from);
            for rest in [from..part.start, part.end..to].into_iter().filter(|rest| !rest.is_empty()) {
                self.0.insert(rest.start, (rest.end, ended));
            }
        }
    }

    fn end(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(_, (to, _))| *to)
    }

    fn add(&mut self, part: &Range<u64>, ended: u64) {
        self.remove(part);
        if !part.is_empty() {
            self.0.insert(part.start, (part.end, ended));
        }
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
        let alone = write.bytes(at) >= self.bytes && !is_torn;
        self.says = match (self.says, write.says) {
            (Some((of, generation)), Some((stamp, other))) if alone && of == stamp => Some((of, generation.min(other))),
            _ => None,
        };
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// Done, and not yet promised.
    pub(super) pending: Vec<Pending>,
    /// By where it begins, what is promised.
    pub(super) units: Arc<BTreeMap<u64, Unit>>,
    pub(super) zeros: Zeros,
    /// How long it is at least, and at most if that is known.
    pub(super) least: u64,
    pub(super) most: Option<u64>,
    /// When the last of the calls ended of which something is promised, the last of those that cut it, and the last of those
    /// after which a part of it may be anything.
    pub(super) ended: u64,
    pub(super) cut: u64,
    pub(super) unknown: u64,
    /// Whether anything about its data is promised, be it that there is none.
    pub(super) synced: bool,
    pub(super) names: Vec<(u64, Arc<str>)>,
    pub(super) promised_names: BTreeSet<Arc<str>>,
    pub(super) later_names: BTreeSet<Arc<str>>,
    /// Whether it has to be there by some name, even if none is promised: its data is.
    pub(super) kept: bool,
    /// Whether it may be gone.
    pub(super) excused: bool,
    /// Whether it was remade.
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
                Change::Wrote { file: of, .. } | Change::Made { file: of, .. } if *of == file => {
                    if let Some((_, change, durable)) = Pending::of(event) {
                        known.changed(change, durable);
                    }
                }
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
                Change::Wrote { file: of, .. } | Change::Made { file: of, .. } if *of == file => {
                    if let Some((_, change, _)) = Pending::of(event) {
                        known.may_hold(&change);
                    }
                }
                Change::Remade { .. } => known.uncertain = true,
                _ => {}
            }
        }
        known
    }

    pub(super) fn changed(&mut self, change: Pending, durable: bool) {
        if durable {
            self.promise(&change);
            (self.synced, self.kept) = (true, true);
        } else {
            self.pending.push(change);
        }
    }

    pub(super) fn sync(&mut self, begun: u64, names: bool) {
        let was_there = self.names.iter().any(|(ended, _)| *ended < begun);
        let (covered, pending) = std::mem::take(&mut self.pending).into_iter().partition(|change| change.ended < begun);
        self.pending = pending;
        let covered: Vec<Pending> = covered;
        covered.iter().for_each(|change| self.promise(change));
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

    fn promise(&mut self, change: &Pending) {
        let Pending { begun, ended, ref part, made, .. } = *change;
        match made {
            None => self.promise_data(change),
            Some(Made::Zeros) => self.promise_zeros(change),
            Some(Made::Mapped) => self.may_be_newer(part),
            Some(Made::Copied | Made::End | Made::Unknown) => self.forget(part),
        }
        let reaches = matches!(made, None | Some(Made::Copied));
        // Whether one that cut it came before or after this one, nobody can tell.
        if reaches && begun >= self.cut {
            self.least = self.least.max(part.end);
        }
        self.may_end(change);
        if made == Some(Made::End) && begun >= self.ended {
            (self.least, self.most) = (part.start, Some(part.start));
        }
        self.ended = self.ended.max(ended);
        if change.shortest().is_some() {
            self.cut = self.cut.max(ended);
        }
        if matches!(made, Some(Made::Copied | Made::Unknown | Made::Mapped)) && !part.is_empty() {
            self.unknown = self.unknown.max(ended);
        }
    }

    /// It may be cut by a call, or be longer.
    fn may_end(&mut self, change: &Pending) {
        self.least = self.least.min(change.shortest().unwrap_or(u64::MAX));
        self.most = self.most.map(|most| most.max(change.longest())).filter(|most| *most < u64::MAX);
    }

    /// Nothing is known any more of what a part of it holds. Of data that begins before it and ends in it, the beginning is.
    fn forget(&mut self, part: &Range<u64>) {
        self.zeros.remove(part);
        let overlaps = overlapping_in(&self.units, part.start, part.end);
        let found: Vec<(u64, Unit)> = overlaps.collect();
        if found.is_empty() {
            return;
        }
        let units = Arc::make_mut(&mut self.units);
        for (at, unit) in found {
            units.remove(&at);
            let bytes = part.start.saturating_sub(at);
            if bytes > 0 {
                units.insert(at, Unit { bytes, says: unit.says.filter(|_| bytes >= stamp::NAME as u64), ..unit });
            }
            // When the end of it was written is still of interest for what else was written there at that time.
            let rest = (at + unit.bytes).saturating_sub(part.end);
            if rest > 0 {
                let end = units.entry(part.end).or_insert(Unit { bytes: rest, says: None, ended: unit.ended });
                end.ended = end.ended.max(unit.ended);
                if end.bytes < rest {
                    (end.bytes, end.says) = (rest, None);
                }
            }
        }
    }

    /// Mappings are written to in whole units, at their multiples. A write to one may wait for its page after it was given its generation, so
    /// that it comes after newer data: there is some data of the file.
    fn may_be_newer(&mut self, part: &Range<u64>) {
        self.zeros.remove(part);
        if overlapping_in(&self.units, part.start, part.end).next().is_some() {
            for (at, unit) in overlapping(Arc::make_mut(&mut self.units), part.start, part.end) {
                unit.says = unit.says.filter(|_| at.is_multiple_of(UNIT)).map(|(of, _)| (of, 0));
            }
        }
    }

    fn promise_zeros(&mut self, change: &Pending) {
        let Pending { begun, ended, ref part, .. } = *change;
        // Of calls that ran at the same time, either may have been the last.
        let alone = begun >= self.cut.max(self.unknown)
            && overlapping_in(&self.units, part.start, part.end).all(|(_, unit)| unit.ended <= begun);
        self.forget(part);
        if alone {
            self.zeros.add(part, ended);
        } else {
            self.unknown = self.unknown.max(ended);
        }
    }

    fn promise_data(&mut self, write: &Pending) {
        let Self { cut, unknown, ref zeros, .. } = *self;
        let units = Arc::make_mut(&mut self.units);
        for (at, bytes) in write.parts() {
            let alone = write.begun >= cut.max(unknown)
                && zeros.within(&(at..at + bytes)).all(|(.., ended)| ended <= write.begun);
            let says = write.says.filter(|_| bytes >= stamp::NAME as u64 && alone);
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
        self.zeros.remove(&write.part);
    }

    pub(super) fn excuse(known: &mut Arc<Self>) {
        if !known.excused {
            Arc::make_mut(known).excused = true;
        }
    }

    /// Whether a call could change anything that is promised.
    pub(super) fn promises_any(&self, change: &Pending) -> bool {
        let part = &change.part;
        overlapping_in(&self.units, part.start, part.end).next().is_some()
            || self.zeros.within(part).next().is_some()
            || self.most.is_some_and(|most| most < change.longest())
            || change.shortest().is_some_and(|shortest| shortest < self.least)
    }

    /// What is promised may hold a change that is not. The generation of a write is not always above what is: it was given before
    /// the call began, and another thread may have written in between.
    pub(super) fn may_hold(&mut self, change: &Pending) {
        if !self.promises_any(change) {
            return;
        }
        let part = &change.part;
        self.may_end(change);
        match change.made {
            None => self.zeros.remove(part),
            Some(Made::Mapped) => return self.may_be_newer(part),
            // They are zeros either way.
            Some(Made::Zeros) => {}
            Some(Made::Copied | Made::End | Made::Unknown) => return self.forget(part),
        }
        if overlapping_in(&self.units, part.start, part.end).next().is_some() {
            let units = Arc::make_mut(&mut self.units);
            overlapping(units, part.start, part.end).for_each(|(at, unit)| unit.or(at, change));
        }
    }

    /// The same for what was acknowledged and not yet made durable.
    pub(super) fn allow_pending(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            self.may_hold(&change);
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
        if self.has_length() {
            kept.note(length);
        }
        if self.is_compared() || data.is_some() {
            kept.note(data);
        }
    }

    /// It is there by one of its names, as long as it was promised and with its data.
    pub(super) fn note_whole(&self, kept: &mut Kept) {
        let promises = [self.kept || !self.promised_names.is_empty(), self.has_length(), self.is_compared()];
        promises.into_iter().filter(|it| *it).for_each(|_| kept.note(None));
    }

    fn is_compared(&self) -> bool {
        !self.zeros.0.is_empty() || self.units.values().any(|unit| unit.says.is_some())
    }

    const fn has_length(&self) -> bool {
        self.least > 0 || self.most.is_some()
    }

    /// Whether all that is promised of what it holds and of its length can be seen in so many bytes of its beginning.
    pub(super) fn is_seen_in(&self, bytes: u64) -> bool {
        self.least <= bytes && self.most.is_none_or(|most| most < bytes) && self.zeros.end() <= bytes
    }

    /// What is wrong with its length.
    fn misfit(&self, length: u64) -> Option<String> {
        let least = self.least;
        match self.most {
            _ if length < least => Some(format!("it has {length} bytes, and {least} were synced")),
            Some(most) if length > most => Some(format!("it has {length} bytes, and was cut to {most}")),
            _ => None,
        }
    }

    /// Whether this is the file's beginning, with everything that is promised of it.
    pub(super) fn is_whole(&self, content: &mut [u8], id: FileId, writers: &Writers) -> bool {
        let length = content.len() as u64;
        let mut blocks = Blocks { file: None, length, buffer: content, held: 0..length };
        self.is_in(&mut blocks, id, writers)
    }

    pub(super) fn is_in(&self, blocks: &mut Blocks<'_>, id: FileId, writers: &Writers) -> bool {
        self.misfit(blocks.length).is_none()
            && !self.begins_as_other(blocks, id, writers)
            && self.damage(blocks).is_none()
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
        let misfit = self.misfit(length).map(|words| broken(Property::Length, words));
        let damage = self.damage(&mut blocks).map(|words| broken(Property::Data, words));
        Some(Found::Its { length: misfit, data: damage })
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
        let zeros = self.zeros.0.iter().map(|(from, (to, _))| *from..(*to).min(length));
        zeros.filter_map(|part| blocks.other_than_zeros(part)).next()
    }
}

/// Where a unit begins at the earliest that reaches behind a place.
const fn before(at: u64) -> u64 {
    (at + 1).saturating_sub(UNIT)
}

fn overlapping_in(units: &BTreeMap<u64, Unit>, from: u64, to: u64) -> impl Iterator<Item = (u64, Unit)> {
    let near = if from < to { before(from)..to } else { 0..0 };
    units.range(near).map(|(at, unit)| (*at, *unit)).filter(move |(at, unit)| at + unit.bytes > from)
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
