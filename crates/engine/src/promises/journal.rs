//! What the kernel acknowledged, in order.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file of the kernel: its inode number, and how many files had that number before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId {
    pub(crate) inode: u64,
    pub(crate) incarnation: u32,
}

/// Something that a call changed, or made durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// A name appeared for a file: it was made or opened for the first time (then it may have been there before), or linked.
    Named { file: FileId, path: Arc<str> },
    /// A name went.
    Unnamed { path: Arc<str> },
    /// A name became another, in place of what had that name.
    Renamed { from: Arc<str>, to: Arc<str> },
    /// Stamped units of data: where in the file, how many bytes, what their stamps say, and whether they were durable when
    /// the write returned.
    Wrote { file: FileId, offset: u64, bytes: u64, stamp: u64, generation: u64, durable: bool },
    /// The file was cut or given a length, or lost data in between.
    Cut { file: FileId },
    /// The file's data is durable; with `names`, so are its names.
    Synced { file: FileId, names: bool },
    /// Everything is durable.
    SyncedAll,
    /// Whatever is below this directory was removed or made anew, by no call of the load.
    Remade { below: Arc<str> },
}

/// A change, when its call began, and when it had returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) begun: u64,
    pub(super) ended: u64,
    pub(super) change: Change,
}

/// Stands by while a load runs, and remembers what it was promised.
#[derive(Debug, Clone, Default)]
pub struct Witness(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Numbers beginnings and ends of calls in one order.
    clock: AtomicU64,
    journal: Mutex<Journal>,
}

#[derive(Debug, Default)]
pub(super) struct Journal {
    /// In the order in which they ended.
    pub(super) events: Vec<Event>,
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

    pub(super) fn journal(&self) -> MutexGuard<'_, Journal> {
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

/// Whether a path is below a directory.
pub(super) fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}
