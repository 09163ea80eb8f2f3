//! What the kernel acknowledges of a replay's calls, written down for the question what has to be there after a power cut.
//!
//! A call is watched before and after it is made, outside of its time. What cannot be told is never taken for promised.

use super::calls::{Caller, facts, position};
use super::program::Action;
use crate::call::Kind;
use fstone_engine::{Change, FileId, Made, Witness};
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

pub(super) struct Witnessed<'a> {
    witness: &'a Witness,
    /// The absolute path of the replay's directory.
    place: String,
    /// By their slots. Each slot is of one open file.
    opened: Vec<OnceLock<Opened>>,
    promised: AtomicBool,
}

enum Opened {
    File { file: FileId, appends: AtomicBool, synchronous: bool },
    Directory(Option<Arc<str>>),
}

/// A call that is about to be made.
pub(super) struct Expected {
    begun: u64,
    /// What it is about was there: the inode, and what kind of thing it is.
    there: Option<(u64, u32)>,
    /// What its other name stood for.
    other: Option<u64>,
    writing: Option<Writing>,
}

#[derive(Clone, Copy)]
pub(super) struct Writing {
    slot: u32,
    file: FileId,
    appends: bool,
    synchronous: bool,
    /// The call says where, and does not move the file's position.
    is_placed: bool,
    offset: i64,
    says: Option<(u64, u64)>,
}

impl<'a> Witnessed<'a> {
    pub(super) fn new(witness: &'a Witness, root: BorrowedFd<'_>, files: u32) -> Self {
        let place = std::fs::read_link(format!("/proc/self/fd/{}", root.as_raw_fd())).unwrap_or_default();
        let opened = (0..files).map(|_| OnceLock::new()).collect();
        Self { witness, place: place.to_string_lossy().into_owned(), opened, promised: AtomicBool::new(false) }
    }

    /// Whether something was made durable by a call of the application.
    pub(super) fn promised(&self) -> bool {
        self.promised.load(Ordering::Relaxed)
    }

    fn promise(&self, begun: u64, change: Change) {
        self.promised.store(true, Ordering::Relaxed);
        self.witness.changed(begun, change);
    }

    /// The tree is there, and durable.
    pub(super) fn settled(&self) {
        self.witness.settled(self.place.as_ref());
    }

    fn file(&self, slot: u32) -> Option<(FileId, bool, bool)> {
        match self.opened[slot as usize].get() {
            Some(Opened::File { file, appends, synchronous }) => {
                Some((*file, appends.load(Ordering::Relaxed), *synchronous))
            }
            _ => None,
        }
    }

    fn forget_all(&self, begun: u64) {
        self.witness.changed(begun, Change::Remade { below: self.place.as_str().into() });
    }

    /// A name is there that is of no file, or of one that nobody writes to: it is not the one that may have been removed.
    fn appeared(&self, begun: u64, path: Arc<str>) {
        self.witness.changed(begun, Change::Renamed { from: format!("{path}\0").into(), to: path });
    }
}

fn length(caller: &Caller<'_>, slot: u32) -> Option<u64> {
    facts(caller.file(slot), c"").map(|facts| facts.st_size as u64)
}

/// What fallocate makes of which part of a file that has a length after it.
fn allocated(action: &Action, length: Option<u64>) -> (Range<u64>, Made) {
    let from = action.offset.max(0) as u64;
    let to = from.saturating_add(action.length);
    let (kept, flags) = (libc::FALLOC_FL_KEEP_SIZE as u32, action.flags);
    match (flags & !kept) as i32 {
        // What is only reserved changes nothing that is promised.
        0 if flags & kept != 0 => (from..from, Made::Unknown),
        0 => (to..to, Made::Copied),
        libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE => match length {
            Some(length) => (from..to.min(length).max(from), Made::Zeros),
            None => (from..to, Made::Unknown),
        },
        // What comes after it may have been moved.
        _ => (from..u64::MAX, Made::Unknown),
    }
}

fn there(caller: &mut Caller<'_>, index: u32) -> Option<libc::stat> {
    let (directory, name) = caller.place(index).ok()?;
    facts(directory.into(), name)
}

const fn is(kind: u32, wanted: libc::mode_t) -> bool {
    kind & libc::S_IFMT == wanted
}

impl Witnessed<'_> {
    /// The path of a name; `None` if it is no text.
    fn path(&self, caller: &Caller<'_>, index: u32) -> Option<Arc<str>> {
        let target = caller.common.program.targets[index as usize];
        let [path, name] = [target.path, target.name].map(|text| &*caller.common.program.texts[text as usize]);
        let below = String::from_utf8(crate::trace::joined(path, name)).ok()?;
        Some(format!("{}/{below}", self.place).into())
    }

    /// Looks at what a call is about, and makes the data that it writes say what it is.
    pub(super) fn expect(&self, caller: &mut Caller<'_>, action: &Action) -> Expected {
        let begun = self.witness.tick();
        let mut expected = Expected { begun, there: None, other: None, writing: None };
        match action.kind {
            Kind::Open | Kind::Rename => {
                expected.there = there(caller, action.at).map(|facts| (facts.st_ino, facts.st_mode));
                if action.kind == Kind::Rename {
                    expected.other = there(caller, action.to).map(|facts| facts.st_ino);
                }
                if let (Kind::Rename, Some((inode, kind)), Some(path)) =
                    (action.kind, expected.there, self.path(caller, action.at))
                    && is(kind, libc::S_IFREG)
                    && !self.witness.knows(&path)
                {
                    self.witness.opened(begun, &path, inode, false);
                }
            }
            Kind::Truncate => {
                let opened = caller.to_cut.and_then(|fd| facts(fd, c""));
                if let (Some(facts), Some(path)) = (opened, self.path(caller, action.at)) {
                    self.witness.opened(begun, &path, facts.st_ino, false);
                    expected.there = Some((facts.st_ino, facts.st_mode));
                }
            }
            kind if kind.writes() || kind.is_copy() => {
                expected.writing = self.writing(caller, action);
            }
            _ => {}
        }
        caller.is_stamped = expected.writing.is_some_and(|writing| writing.says.is_some());
        expected
    }

    fn writing(&self, caller: &mut Caller<'_>, action: &Action) -> Option<Writing> {
        let slot = if action.kind.writes() { action.file } else { action.other };
        let (file, appends, synchronous) = self.file(slot)?;
        let flags = if matches!(action.kind, Kind::Writev | Kind::Pwritev) { action.flags as i32 } else { 0 };
        let appends = super::program::appends(appends, flags);
        let synchronous = synchronous || flags & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0;
        let placed = match action.kind {
            Kind::Pwrite | Kind::Pwritev => Some(action.offset).filter(|_| !appends),
            kind if kind.is_copy() => Some(action.other_offset).filter(|offset| *offset >= 0),
            _ => None,
        };
        let (is_placed, offset) = (placed.is_some(), placed.unwrap_or_else(|| position(caller.file(slot), appends)));
        // What is copied from a file has the stamps of that.
        let is_stamped = offset >= 0 && !(action.kind.is_copy() && action.file != 0);
        let data = if is_stamped { caller.stamped.filled(action.moved()) } else { None };
        let says = data.and_then(|data| self.witness.stamp(data, file, offset as u64));
        Some(Writing { slot, file, appends, synchronous, is_placed, offset, says })
    }

    /// Writes down what a call did.
    pub(super) fn acknowledged(&self, caller: &mut Caller<'_>, action: &Action, expected: &Expected, got: i64) {
        use Kind as K;
        let (witness, begun) = (self.witness, expected.begun);
        if got < 0 {
            return self.failed(action, expected);
        }
        let change = |change| witness.changed(begun, change);
        let has_two = matches!(action.kind, Kind::Rename | Kind::Link);
        let (at, to) = (self.path(caller, action.at), if has_two { self.path(caller, action.to) } else { None });
        match action.kind {
            Kind::Open => self.noted(caller, action, expected, at),
            Kind::Fsync | Kind::Fdatasync => match self.opened[action.file as usize].get() {
                Some(Opened::File { file, .. }) => {
                    self.promise(begun, Change::Synced { file: *file, names: action.kind == Kind::Fsync });
                }
                Some(Opened::Directory(Some(directory))) => {
                    self.promise(begun, Change::SyncedNames { directory: Arc::clone(directory) });
                }
                _ => {}
            },
            Kind::SetFlags => {
                if let Some(Opened::File { appends, .. }) = self.opened[action.file as usize].get() {
                    appends.store(action.flags & libc::O_APPEND as u32 != 0, Ordering::Relaxed);
                }
            }
            Kind::Sync | Kind::Syncfs => self.promise(begun, Change::SyncedAll),
            Kind::Truncate => {
                if let Some((inode, _)) = expected.there {
                    self.made(begun, witness.file(inode), action.length..u64::MAX, Made::End);
                }
            }
            Kind::Ftruncate => {
                if let Some((file, ..)) = self.file(action.file) {
                    self.made(begun, file, action.length..u64::MAX, Made::End);
                }
            }
            Kind::Fallocate => {
                if let Some((file, ..)) = self.file(action.file) {
                    let (part, what) = allocated(action, length(caller, action.file));
                    let end = part.end;
                    self.made(begun, file, part, what);
                    if action.flags == libc::FALLOC_FL_ZERO_RANGE as u32 {
                        // Unlike a hole it may lie beyond the end, which then moves.
                        self.made(begun, file, end..end, Made::Copied);
                    }
                }
            }
            Kind::Reflink => {
                if let Some((file, ..)) = self.file(action.other) {
                    let copied = length(caller, action.other).map(|length| (0..length, Made::Copied));
                    let (part, what) = copied.unwrap_or((0..u64::MAX, Made::Unknown));
                    self.made(begun, file, part, what);
                }
            }
            Kind::Unlink => match at {
                Some(path) => change(Change::Unnamed { path }),
                None => self.forget_all(begun),
            },
            Kind::Rename => self.renamed(action, expected, at.zip(to)),
            Kind::Link | Kind::Symlink | Kind::Mkdir | Kind::Mknod => {
                let index = if action.kind == Kind::Link { action.to } else { action.at };
                let Some(path) = (if action.kind == Kind::Link { to } else { at }) else { return };
                match there(caller, index).filter(|facts| is(facts.st_mode, libc::S_IFREG)) {
                    Some(facts) if action.kind == Kind::Link => {
                        witness.linked(Arc::clone(&path));
                        witness.opened(begun, &path, facts.st_ino, false);
                    }
                    _ => self.appeared(begun, path),
                }
            }
            K::Write | K::Pwrite | K::Writev | K::Pwritev | K::Sendfile | K::CopyRange | K::Splice => {
                if let Some(writing) = expected.writing {
                    self.wrote(caller, begun, writing, got, action.kind.is_copy());
                }
            }
            // Neither what is in files nor their names.
            K::Rmdir | K::Bind | K::Chmod | K::Fchmod | K::Chown | K::Fchown | K::Utimens | K::Futimens => {}
            K::Setxattr | K::Fsetxattr | K::Removexattr | K::Fremovexattr | K::SetAttributes => {}
            K::Close
            | K::Read
            | K::Pread
            | K::Readv
            | K::Preadv
            | K::Seek
            | K::Fadvise
            | K::Readahead
            | K::SyncRange => {}
            K::Stat
            | K::Fstat
            | K::Access
            | K::Readlink
            | K::Getdents
            | K::Statfs
            | K::Fstatfs
            | K::Flock
            | K::Lock => {}
            K::Getxattr | K::Fgetxattr | K::Listxattr | K::Flistxattr | K::GetAttributes | K::Handle => {}
            K::Spawn | K::Wait | K::Exit | K::Wakeup => {}
            // No replay makes these.
            K::Map | K::Msync | K::Uring | K::Aio | K::PolledRing | K::Ioctl | K::OpenByHandle => {}
            K::Lost | K::Unreturned => {}
        }
    }

    fn made(&self, begun: u64, file: FileId, part: Range<u64>, what: Made) {
        self.witness.changed(begun, Change::Made { file, part, what });
    }

    /// A call that failed may have had its effect in part.
    fn failed(&self, action: &Action, expected: &Expected) {
        let of = |slot| self.file(slot).map(|(file, ..)| file);
        let (file, part) = match action.kind {
            Kind::Truncate => {
                let file = expected.there.map(|(inode, _)| self.witness.file(inode));
                (file, action.length..u64::MAX)
            }
            Kind::Ftruncate => (of(action.file), action.length..u64::MAX),
            Kind::Fallocate => (of(action.file), allocated(action, None).0),
            Kind::Reflink => (of(action.other), 0..u64::MAX),
            _ => match expected.writing {
                Some(Writing { file, offset, is_placed: true, .. }) => {
                    (Some(file), offset as u64..(offset as u64).saturating_add(action.length))
                }
                Some(Writing { file, .. }) => (Some(file), 0..u64::MAX),
                None => return,
            },
        };
        if let Some(file) = file {
            self.made(expected.begun, file, part, Made::Unknown);
        }
    }

    fn noted(&self, caller: &Caller<'_>, action: &Action, expected: &Expected, path: Option<Arc<str>>) {
        let has = |flag: i32| action.flags & flag as u32 == flag as u32;
        if action.other == 0 {
            // It was to fail, and what it did is nobody's.
            if has(libc::O_CREAT) || has(libc::O_TRUNC) {
                self.forget_all(expected.begun);
            }
            return;
        }
        // What is opened with O_PATH cannot be synced, and of what is no regular file nothing is promised. It may be a link.
        if has(libc::O_PATH) {
            return;
        }
        let Some(facts) = facts(caller.file(action.other), c"") else { return };
        let opened = if is(facts.st_mode, libc::S_IFDIR) {
            Opened::Directory(path)
        } else if !is(facts.st_mode, libc::S_IFREG) {
            return;
        } else {
            let file = match path.filter(|_| !has(libc::O_TMPFILE)) {
                Some(path) => {
                    let made = expected.there.is_none();
                    let (file, _) = self.witness.opened(expected.begun, &path, facts.st_ino, made);
                    if has(libc::O_TRUNC) && !made {
                        self.made(expected.begun, file, 0..u64::MAX, Made::End);
                    }
                    file
                }
                None => self.witness.file(facts.st_ino),
            };
            Opened::File { file, appends: has(libc::O_APPEND).into(), synchronous: has(libc::O_DSYNC) }
        };
        let _ = self.opened[action.other as usize].set(opened);
    }

    fn wrote(&self, caller: &Caller<'_>, begun: u64, writing: Writing, got: i64, is_copy: bool) {
        let Writing { slot, file, appends, synchronous: durable, is_placed, offset, says } = writing;
        let is_where_expected = is_placed || position(caller.file(slot), appends) == offset + got;
        let (offset, bytes, is_known) = (offset as u64, got as u64, is_where_expected && offset >= 0);
        let change = match (got, is_known) {
            (0, _) => return,
            (_, false) => return self.made(begun, file, 0..u64::MAX, Made::Unknown),
            (_, true) if is_copy && says.is_none() => {
                return self.made(begun, file, offset..offset + bytes, Made::Copied);
            }
            (_, true) => Change::Wrote { file, offset, bytes, says, durable },
        };
        if durable { self.promise(begun, change) } else { self.witness.changed(begun, change) }
    }

    fn renamed(&self, action: &Action, expected: &Expected, names: Option<(Arc<str>, Arc<str>)>) {
        let begun = expected.begun;
        let Some((from, to)) = names else { return self.forget_all(begun) };
        let (inode, kind) = expected.there.unwrap_or_default();
        // Two names of one file stay as they are.
        if expected.other == Some(inode) {
            return;
        }
        let change = |from: &Arc<str>, to: &Arc<str>| {
            self.witness.changed(begun, Change::Renamed { from: Arc::clone(from), to: Arc::clone(to) });
        };
        if action.flags & libc::RENAME_EXCHANGE == 0 {
            change(&from, &to);
        } else {
            let between = format!("{from}\0").into();
            [(&from, &between), (&to, &from), (&between, &to)].into_iter().for_each(|(from, to)| change(from, to));
        }
        if !is(kind, libc::S_IFREG) || action.flags & libc::RENAME_EXCHANGE != 0 {
            // What is below a directory has other names now.
            for below in [from, to] {
                self.witness.changed(begun, Change::Remade { below });
            }
        }
    }
}
