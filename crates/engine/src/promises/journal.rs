//! What the kernel acknowledged, in order.

use super::event::{Change, Event, FileId, is_below};
use super::kept::Kept;
use super::oracle::{Acknowledged, Promises};
use super::reading::Reader;
use crate::data::stamp;
use crate::random::scatter;
use std::collections::HashSet;
use std::iter::successors;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Stands by while a load runs, and remembers what it was promised.
#[derive(Debug, Clone, Default)]
pub struct Witness(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Numbers beginnings and ends of calls in one order.
    clock: AtomicU64,
    journal: Mutex<Journal>,
    reader: Mutex<Reader>,
}

#[derive(Debug, Default)]
pub(super) struct Journal {
    /// In the order in which they ended.
    pub(super) events: Vec<Event>,
    /// What was made of them for the last look.
    pub(super) acknowledged: Acknowledged,
    names: std::collections::HashMap<Arc<str>, FileId>,
    /// How many names each file has at the moment, by inode.
    links: std::collections::HashMap<u64, (u32, u32)>,
    /// Directories below which everything was durable when the load began.
    settled: Vec<Arc<str>>,
    /// Names that appeared since, or went, of which it is not known what they are of. It may be a directory.
    strange: HashSet<Arc<str>>,
}

impl Witness {
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that was acknowledged before this call has a smaller number.
    pub fn moment(&self) -> u64 {
        self.0.clock.load(Ordering::SeqCst)
    }

    pub fn tick(&self) -> u64 {
        self.0.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// From now on: nothing that is not acknowledged yet is ruled out.
    pub fn now(&self) -> Range<u64> {
        self.moment()..u64::MAX
    }

    /// Looks whether what had been acknowledged before a [`moment`](Self::moment) is there, by the paths that the load used. Calls
    /// that began after another moment had no effect, and excuse nothing: the power was cut between these two.
    /// What cannot be read is a broken promise. With `together`, small files are read many at a time where the kernel can do that.
    pub fn look(&self, cut: Range<u64>, together: bool) -> Kept {
        let promises = self.promises(cut);
        promises.look(&mut self.0.reader.lock().unwrap_or_else(PoisonError::into_inner), together)
    }

    pub(super) fn promises(&self, cut: Range<u64>) -> Promises {
        let Journal { events, acknowledged, .. } = &mut *self.journal();
        acknowledged.at(events, &cut)
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.0.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn changed(&self, begun: u64, change: Change) {
        let mut journal = self.journal();
        // Under the lock, so that events are in the order of their ends.
        let ended = self.tick();
        match &change {
            Change::Unnamed { path } => journal.unname(path),
            Change::Renamed { from, to } => {
                let file = journal.names.remove(from);
                journal.unname(to);
                match file {
                    Some(file) => drop(journal.names.insert(Arc::clone(to), file)),
                    // It may be a directory: what is below it has other names now.
                    None => journal.unsettle(&[from, to]),
                }
            }
            Change::Remade { below } => journal.forget(below),
            _ => {}
        }
        journal.events.push(Event { begun, ended, change });
    }

    /// Something that nobody here observes may change whatever is below a directory.
    pub fn unobserved<T>(&self, below: &Path, work: impl FnOnce() -> T) -> T {
        let below = std::fs::canonicalize(below).unwrap_or_else(|_| below.to_owned());
        let begun = self.tick();
        let done = work();
        self.changed(begun, Change::Remade { below: below.to_string_lossy().into() });
        done
    }

    /// What is below a directory is durable, and no name there is of anything else than it was then, but by calls from now on.
    pub fn settled(&self, directory: &Path) {
        let mut journal = self.journal();
        let directory: Arc<str> = directory.to_string_lossy().into();
        // Those of before are as durable as any.
        journal.strange.retain(|path| *path != directory && !is_below(path, &directory));
        if !journal.settled.contains(&directory) {
            journal.settled.push(directory);
        }
    }

    pub fn linked(&self, path: Arc<str>) {
        self.journal().strange.insert(path);
    }

    pub fn knows(&self, path: &str) -> bool {
        self.journal().names.contains_key(path)
    }

    /// A file was opened by this path: which one it is, and whether that is news. Then a name appeared.
    ///
    /// With `made` the file is a new one for certain. Its number may still belong to another file here: the kernel gives away the number
    /// of a file that lost its last name before the thread whose call that was can say so.
    pub fn opened(&self, begun: u64, path: &str, inode: u64, made: bool) -> (FileId, bool) {
        let mut journal = self.journal();
        if let Some(file) = journal.names.get(path)
            && file.inode == inode
            && !made
        {
            return (*file, false);
        }
        let known = journal.links.get(&inode).copied();
        let (names, incarnation) = known.unwrap_or((0, 0));
        // A number without a name left belongs to a new file.
        let (names, incarnation) = if made || names == 0 { (0, incarnation + 1) } else { (names, incarnation) };
        let file = FileId { inode, incarnation };
        journal.links.insert(inode, (names + 1, incarnation));
        let path: Arc<str> = path.into();
        journal.unname(&path);
        journal.names.insert(Arc::clone(&path), file);
        // A file that was there before the load has no other name that was met. One of before may have had its number.
        let durable = !made && names == 0 && journal.is_settled(&path);
        // What is made there from now on is no longer what was.
        journal.strange.insert(Arc::clone(&path));
        drop(journal);
        self.changed(begun, Change::Named { file, path, durable });
        (file, true)
    }

    /// Makes data that is about to be written to a file say so, and that it is newer than all before: what [`Change::Wrote`] says of it.
    pub fn stamp(&self, data: &mut [u8], file: FileId, offset: u64) -> Option<(u64, u64)> {
        // Stamps of filesets are other numbers.
        stamp::write(data, scatter(file.inode), offset, self.tick());
        stamp::says(data, offset)
    }

    pub fn file(&self, inode: u64) -> FileId {
        let incarnation = self.journal().links.get(&inode).map_or(0, |(_, incarnation)| *incarnation);
        FileId { inode, incarnation }
    }
}

impl Journal {
    fn forget(&mut self, below: &Arc<str>) {
        let gone: Vec<Arc<str>> = self.names.keys().filter(|path| is_below(path, below)).cloned().collect();
        for path in gone {
            self.unname(&path);
        }
        self.unsettle(&[below]);
    }

    /// Whether a name was durable when the load began, and has been of the same file ever since.
    fn is_settled(&self, path: &str) -> bool {
        let is_same = |directory: &str| {
            let parents = successors(Some(path), |path| Some(path.rsplit_once('/')?.0));
            parents.take_while(|path| is_below(path, directory)).all(|path| !self.strange.contains(path))
        };
        self.settled.iter().any(|directory| is_below(path, directory) && is_same(directory))
    }

    fn unsettle(&mut self, paths: &[&Arc<str>]) {
        for path in paths {
            self.settled.retain(|directory| directory != *path && !is_below(directory, path));
            if self.settled.iter().any(|directory| is_below(path, directory)) {
                self.strange.insert(Arc::clone(path));
            }
        }
    }

    fn unname(&mut self, path: &Arc<str>) {
        if let Some(file) = self.names.remove(path)
            && let Some((names, incarnation)) = self.links.get_mut(&file.inode)
            && *incarnation == file.incarnation
        {
            *names = names.saturating_sub(1);
        }
    }
}
