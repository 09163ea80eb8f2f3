//! What has to be there after a power cut, and whether it is.

use super::ahead::Ahead;
use super::event::{Change, Event, FileId, is_below};
use super::kept::{Broken, Kept, Property};
use super::known::{Known, Pending, Reading, Writers};
use super::reading::{Blocks, Reader, open};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A name that was durable, and was given to other files by rename.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Replaced {
    files: BTreeSet<FileId>,
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
    /// Of each directory, names that changed since it was synced, and when.
    changed: HashMap<Arc<str>, Vec<(u64, Arc<str>)>>,
    replaced: HashMap<Arc<str>, Replaced>,
    /// Files that may have got such a name by a call that was not acknowledged, and when the first such call began.
    given: BTreeMap<FileId, u64>,
    /// What was promised of these when that call began: if a file has the name, all of this had been done before.
    then: BTreeMap<FileId, Known>,
    writers: Arc<Writers>,
}

/// What was acknowledged up to some moment, kept for the next look. States are looked at in the order of their moments: each goes
/// on from where the last one was.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    promises: Promises,
    applied: usize,
    noted: usize,
}

impl Acknowledged {
    /// What is promised if the power is cut between two moments: what was acknowledged before the first one, and whatever began before
    /// the second may have had its effect. The events are those of the last call, and perhaps more.
    pub(super) fn at(&mut self, events: &[Event], cut: &Range<u64>) -> Promises {
        let acknowledged = events.partition_point(|event| event.ended < cut.start);
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
        events[acknowledged..].iter().filter(|event| event.begun < cut.end).for_each(|event| promises.allow(event));
        let given = promises.given.iter().filter(|(_, begun)| **begun > cut.start);
        promises.then = given.map(|(file, begun)| (*file, Known::of(*file, events, &(*begun..cut.end)))).collect();
        promises
    }
}

impl Promises {
    fn file(&mut self, file: FileId) -> &mut Known {
        Arc::make_mut(self.files.entry(file).or_default())
    }

    fn changed(&mut self, path: &Arc<str>, ended: u64) {
        if let Some((directory, _)) = path.rsplit_once('/') {
            match self.changed.get_mut(directory) {
                Some(changed) => changed.push((ended, Arc::clone(path))),
                None => drop(self.changed.insert(directory.into(), Vec::from([(ended, Arc::clone(path))]))),
            }
        }
    }

    fn apply(&mut self, event: &Event) {
        match &event.change {
            Change::Named { file, path, durable } => {
                self.changed(path, event.ended);
                self.gone.remove(path);
                self.promised_gone.remove(path);
                self.owner.insert(Arc::clone(path), *file);
                let known = self.file(*file);
                known.names.push((event.ended, Arc::clone(path)));
                known.later_names.insert(Arc::clone(path));
                if *durable {
                    known.promised_names.insert(Arc::clone(path));
                }
            }
            Change::Unnamed { path } => {
                self.changed(path, event.ended);
                self.unname(path);
                self.replaced.remove(path);
                self.gone.insert(Arc::clone(path), event.ended);
            }
            Change::Renamed { from, to } => {
                [from, to].into_iter().for_each(|path| self.changed(path, event.ended));
                let file = self.owner.remove(from);
                match file {
                    Some(file) => self.replace(from, to, file, event.ended),
                    // By what is there now nothing can be told of what was.
                    None => drop(self.replaced.remove(to)),
                }
                self.unname(to);
                self.gone.remove(to);
                self.promised_gone.remove(to);
                // It is a directory, and nobody is told when one is made by the old name.
                let Some(file) = file else { return };
                self.gone.insert(Arc::clone(from), event.ended);
                self.owner.insert(Arc::clone(to), file);
                let known = self.file(file);
                known.names.retain(|(_, name)| name != from);
                known.names.push((event.ended, Arc::clone(to)));
                known.later_names.insert(Arc::clone(to));
            }
            Change::Wrote { .. } | Change::Made { .. } => {
                if let Some((file, change, durable)) = Pending::of(event) {
                    self.file(file).changed(change, durable);
                }
            }
            Change::Synced { file, names } => {
                if let Some(known) = self.files.get_mut(file).map(Arc::make_mut) {
                    known.sync(event.begun, *names);
                    // It was open.
                    (known.synced, known.kept) = (true, true);
                }
            }
            Change::Remade { below } => self.forget(below),
            Change::SyncedNames { directory } => self.sync_names(directory, event.begun),
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

    /// A directory was synced: each of its names that changed before is there, of the file that has it, or stays away.
    fn sync_names(&mut self, directory: &Arc<str>, begun: u64) {
        let Some(changed) = self.changed.get_mut(directory) else { return };
        let (covered, later) = std::mem::take(changed).into_iter().partition(|(ended, _)| *ended < begun);
        *changed = later;
        let covered: Vec<(u64, Arc<str>)> = covered;
        for (_, path) in covered {
            if self.replaced.get(&path).is_some_and(|replaced| replaced.ended < begun) {
                self.replaced.remove(&path);
            }
            if let Some(known) = self.owner.get(&path).and_then(|file| self.files.get_mut(file)) {
                let had = known.names.iter().any(|(ended, name)| *ended < begun && *name == path);
                if had {
                    Arc::make_mut(known).sync_name(&path);
                }
            } else if self.gone.get(&path).is_some_and(|ended| *ended < begun) {
                self.promised_gone.insert(path);
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
        self.changed.retain(|directory, _| **directory != *below && !is_below(directory, below));
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
            Change::Named { file, path, .. } => {
                self.promised_gone.remove(path);
                self.owner.insert(Arc::clone(path), *file);
                self.file(*file).later_names.insert(Arc::clone(path));
            }
            Change::Unnamed { path } => {
                self.replaced.remove(path);
                if let Some(known) = self.owner.remove(path).and_then(|file| self.files.get_mut(&file)) {
                    Known::excuse(known);
                }
            }
            Change::Renamed { from, to } => {
                self.promised_gone.remove(to);
                // Whether it had its effect or not, what comes to this name afterwards replaces nothing.
                let file = self.owner.remove(from);
                match file {
                    Some(file) => {
                        self.replace(from, to, file, event.ended);
                        if self.replaced.contains_key(to) {
                            let begun = self.given.entry(file).or_insert(event.begun);
                            *begun = event.begun.min(*begun);
                        }
                    }
                    None => drop(self.replaced.remove(to)),
                }
                if let Some(known) = self.owner.get(to).and_then(|file| self.files.get_mut(file)) {
                    Known::excuse(known);
                }
                if let Some(file) = file {
                    self.owner.insert(Arc::clone(to), file);
                    self.file(file).later_names.insert(Arc::clone(to));
                }
            }
            Change::Remade { below } => self.forget(below),
            Change::Wrote { .. } | Change::Made { .. } => {
                let Some((file, change, _)) = Pending::of(event) else { return };
                if let Some(known) = self.files.get_mut(&file).filter(|known| known.promises_any(&change)) {
                    Arc::make_mut(known).may_hold(&change);
                }
            }
            Change::Synced { .. } | Change::SyncedNames { .. } | Change::SyncedAll => {}
        }
    }

    /// What was acknowledged and not yet made durable may be there. Nothing else is asked of it after that.
    fn allow_pending(&mut self) {
        // A file of which nothing could be otherwise stays shared.
        let pending = self.files.values_mut().filter(|known| known.pending.iter().any(|it| known.promises_any(it)));
        pending.for_each(|known| Arc::make_mut(known).allow_pending());
    }

    pub(super) fn look(&self, reader: &mut Reader, together: bool) -> Kept {
        let mut kept = Kept::default();
        let mut asked: Vec<(FileId, &Known)> = self
            .files
            .iter()
            .map(|(id, known)| (*id, &**known))
            .filter(|(_, known)| known.is_promised() && !known.excused)
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
            .filter(|(_, known)| known.least > 0 && known.is_seen_in(Ahead::BYTES))
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

    fn wrong_replacement(&self, path: &Arc<str>, replaced: &Replaced, reading: &mut Reading<'_>) -> Option<Broken> {
        let path = Path::new(&**path);
        let broken = |words: &str| {
            Some(Broken { property: Property::Replacement, path: path.to_owned(), words: words.to_owned() })
        };
        let Some(opened) = open(path) else {
            return broken("it was only replaced, and neither the old file nor the new one is there");
        };
        // What was not synced may be there in any state.
        let told = |known: &Known| known.synced && !known.uncertain;
        let known = |id| self.then.get(id).or_else(|| self.files.get(id).map(|known| &**known));
        let candidates: Vec<(FileId, Option<&Known>)> = replaced.files.iter().map(|id| (*id, known(id))).collect();
        if !candidates.iter().all(|(_, known)| known.is_some_and(told)) {
            return None;
        }
        let (file, length) = match opened {
            Ok(opened) => opened,
            Err(error) => return broken(&format!("it cannot be read: {error}")),
        };
        let mut blocks = Blocks { file: Some(&file), length, buffer: &mut *reading.buffer, held: 0..0 };
        let mut is_whole = |(id, known): &(FileId, Option<&Known>)| {
            known.is_some_and(|it| it.is_in(&mut blocks, *id, reading.writers))
        };
        let whole = candidates.iter().any(&mut is_whole);
        if whole { None } else { broken("it is neither the old file nor the new one, and both were synced") }
    }
}

#[cfg(test)]
mod tests;
