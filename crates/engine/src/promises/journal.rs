//! What the kernel acknowledged, in order.

use super::event::{Change, Event, FileId, is_below};
use super::kept::Kept;
use super::oracle::{Acknowledged, Promises};
use super::reading::Reader;
use std::ops::Range;
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
    /// What files are read with, kept for the next look: fresh memory costs a guest most.
    reader: Mutex<Reader>,
}

#[derive(Debug, Default)]
pub(super) struct Journal {
    /// In the order in which they ended.
    pub(super) events: Vec<Event>,
    /// What was made of them for the last look.
    pub(super) acknowledged: Acknowledged,
    /// Which file a path names at the moment.
    names: std::collections::HashMap<Arc<str>, FileId>,
    /// How many names each file has at the moment, by inode.
    links: std::collections::HashMap<u64, (u32, u32)>,
}

impl Witness {
    /// One that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that was acknowledged before this call has a smaller number.
    #[must_use]
    pub fn moment(&self) -> u64 {
        self.0.clock.load(Ordering::SeqCst)
    }

    /// A call begins, or has returned.
    pub(crate) fn tick(&self) -> u64 {
        self.0.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// From now on: nothing that is not acknowledged yet is ruled out.
    #[must_use]
    pub fn now(&self) -> Range<u64> {
        self.moment()..u64::MAX
    }

    /// Looks whether what had been acknowledged before a [`moment`](Self::moment) is there, by the paths that the load used. Calls
    /// that began after another moment had no effect, and excuse nothing: the power was cut between these two.
    /// What cannot be read is a broken promise. With `together`, small files are read many at a time where the kernel can do that.
    #[must_use]
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

    /// A call that changed something has returned.
    pub(crate) fn changed(&self, begun: u64, change: Change) {
        let mut journal = self.journal();
        // Under the lock, so that events are in the order of their ends.
        let ended = self.tick();
        match &change {
            Change::Unnamed { path } => journal.unname(path),
            Change::Renamed { from, to } => {
                if let Some(file) = journal.names.remove(from) {
                    journal.unname(to);
                    journal.names.insert(Arc::clone(to), file);
                }
            }
            Change::Remade { below } => journal.forget(below),
            _ => {}
        }
        journal.events.push(Event { begun, ended, change });
    }

    /// A file was opened by this path: which one it is, and whether that is news. Then a name appeared.
    ///
    /// With `made` the file is a new one for certain. Its number may still belong to another file here: the kernel gives away the number
    /// of a file that lost its last name before the thread whose call that was can say so.
    pub(crate) fn opened(&self, begun: u64, path: &str, inode: u64, made: bool) -> (FileId, bool) {
        let mut journal = self.journal();
        if let Some(file) = journal.names.get(path)
            && file.inode == inode
            && !made
        {
            return (*file, false);
        }
        let (names, incarnation) = journal.links.get(&inode).copied().unwrap_or((0, 0));
        // A number without a name left belongs to a new file.
        let (names, incarnation) = if made || names == 0 { (0, incarnation + 1) } else { (names, incarnation) };
        let file = FileId { inode, incarnation };
        journal.links.insert(inode, (names + 1, incarnation));
        let path: Arc<str> = path.into();
        journal.unname(&path);
        journal.names.insert(Arc::clone(&path), file);
        drop(journal);
        self.changed(begun, Change::Named { file, path });
        (file, true)
    }

    /// The file that has this inode number now.
    pub(crate) fn file(&self, inode: u64) -> FileId {
        let incarnation = self.journal().links.get(&inode).map_or(0, |(_, incarnation)| *incarnation);
        FileId { inode, incarnation }
    }
}

impl Journal {
    /// No name below a directory is known any more.
    fn forget(&mut self, below: &Arc<str>) {
        let gone: Vec<Arc<str>> = self.names.keys().filter(|path| is_below(path, below)).cloned().collect();
        for path in gone {
            self.unname(&path);
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
