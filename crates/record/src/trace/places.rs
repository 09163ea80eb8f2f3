//! What names and descriptors of threads stand for, and what comes from elsewhere or goes there.

use super::state::{Named, Pending, Thread, Tracer, hashed_entry};
use super::tables::{self, Descriptors, OpenFile, Slot, joined, normal};
use crate::call::{Call, Entry, IMPLICIT, INHERITED, Kind, Node};
use crate::tree::{self, Walk};
use libc::pid_t;
use std::cell::Cell;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub(super) const MOST_NAME: usize = 4096;

/// An absolute path without links; its last part may be one that is not followed.
pub(super) fn without_links(path: &[u8], follow: bool) -> Option<Vec<u8>> {
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    let followed = if follow { path.canonicalize().ok() } else { None };
    // It may have been removed since, or is not there yet.
    let whole = followed.or_else(|| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?)))?;
    Some(whole.into_os_string().into_vec())
}

impl Tracer {
    /// What relative names of a thread ("cwd") or its absolute ones ("root") are below.
    pub(super) fn directory(&mut self, thread: pid_t, which: &str) -> Vec<u8> {
        let index = usize::from(which == "root");
        let known = self.threads.get(&thread).and_then(|state| state.directories[index].clone());
        // Of a process that was joined it is not seen when they change.
        if let Some(known) = known.filter(|_| !self.stops_at_all) {
            return known;
        }
        let found = tables::directory(thread, which);
        if let Some(state) = self.threads.get_mut(&thread) {
            state.directories[index] = Some(found.clone());
        }
        found
    }

    /// Those of the threads for which this holds may be others now. What a program has recorded of its calls is looked at when it may
    /// have ended, and then it is too late to ask.
    pub(super) fn find_directories(&mut self, concerned: impl Fn(pid_t, &Thread) -> bool) {
        let all: Vec<pid_t> = self
            .threads
            .iter()
            .filter(|(thread, state)| concerned(**thread, state))
            .map(|(thread, _)| *thread)
            .collect();
        for thread in all {
            if let Some(state) = self.threads.get_mut(&thread) {
                (state.directories, state.umask) = ([None, None], None);
            }
            if self.preload.as_ref().is_some_and(|preload| preload.has(thread)) {
                ["cwd", "root"].into_iter().for_each(|which| _ = self.directory(thread, which));
                self.umask(thread);
            }
        }
    }

    /// The permissions that what a thread makes does not get.
    pub(super) fn umask(&mut self, thread: pid_t) -> u16 {
        let known = self.threads.get(&thread).and_then(|state| state.umask);
        // As of directories.
        if let Some(known) = known.filter(|_| !self.stops_at_all) {
            return known;
        }
        let found = tables::umask(thread);
        self.threads.get_mut(&thread).into_iter().for_each(|state| state.umask = found);
        found.unwrap_or(0)
    }

    /// A descriptor is of something else now, or of nothing.
    pub(super) fn know(&self, thread: pid_t, fd: i32, slot: Option<&Slot>) {
        // Later ones of a call that is over are known to the program.
        if let (Some(preload), None) = (&self.preload, &self.pointed) {
            preload.know(thread, fd, || slot.map_or(0, |slot| slot.known(thread, fd)));
        }
    }

    /// A process is about to use io_uring for the first time. What its descriptors are of is looked at before each call from now on, which it
    /// therefore no longer keeps itself.
    pub(super) fn has_ring(&mut self, thread: pid_t) {
        let Some(state) = self.threads.get(&thread).filter(|state| !state.has_ring) else { return };
        let descriptors = state.descriptors.clone();
        for (fd, slot) in descriptors.borrow().iter() {
            if let Slot::Recorded(file) = slot {
                file.identity.set(tables::identity(thread, *fd));
            }
        }
        let all = self.threads.values_mut().filter(|state| Rc::ptr_eq(&state.descriptors, &descriptors));
        all.for_each(|state| state.has_ring = true);
        if let Some(preload) = &self.preload {
            preload.off(thread);
        }
    }

    pub(super) fn keep(&mut self, thread: pid_t, descriptors: &Descriptors, fd: i32, slot: Slot) {
        self.know(thread, fd, Some(&slot));
        if let (Slot::Recorded(file), true) = (&slot, self.threads.get(&thread).is_some_and(|state| state.has_ring)) {
            file.identity.set(tables::identity(thread, fd));
        }
        descriptors.borrow_mut().insert(fd, slot);
    }

    /// Forgets a descriptor that no call has closed, or one that a call is about to close; returns the file if it was the last of it.
    pub(super) fn forget(&self, thread: pid_t, descriptors: &Descriptors, fd: i32) -> Option<u32> {
        self.know(thread, fd, None);
        match descriptors.borrow_mut().remove(&fd) {
            Some(Slot::Recorded(file)) => Rc::into_inner(file).map(|file| file.number),
            _ => None,
        }
    }

    pub(super) fn release(&mut self, thread: pid_t, descriptors: &Descriptors, fd: i32, now: u64) {
        let Some(file) = self.forget(thread, descriptors, fd) else { return };
        // What the thread spent until then comes before the first thing that the end of its process does.
        let Some(state) = self.threads.get_mut(&thread) else { return };
        let (number, think_ns) = (state.number, std::mem::take(&mut state.think_ns));
        let call = Call { kind: Kind::Close, thread: number, begin_ns: now, think_ns, file, ..Call::default() };
        self.write(Call { flags: IMPLICIT, ..call });
    }

    /// What a descriptor is of. One that is not known yet was inherited, or made by a call that is not followed.
    pub(super) fn slot(&mut self, thread: pid_t, fd: i32, now: u64) -> Option<Slot> {
        let state = self.threads.get(&thread)?;
        let (number, descriptors) = (state.number, state.descriptors.clone());
        // What a call that is over was about cannot be looked at any more.
        let is_sure = !state.has_ring || self.pointed.is_some();
        let known = descriptors.borrow().get(&fd).cloned();
        let is_same = |file: &OpenFile| file.identity.get() == tables::identity(thread, fd);
        match &known {
            Some(_) if is_sure => return known,
            Some(Slot::Recorded(file)) if is_same(file) => return known,
            _ => {}
        }
        if known.is_some() {
            drop(known);
            self.release(thread, &descriptors, fd, now);
        }
        let found = tables::look(thread, fd);
        let slot = match found {
            Some(found) => match self.roots.below(&found.path) {
                Some(name) => {
                    let file = self.open_file(found.path);
                    let at = Named { base: 0, name };
                    let call = Call {
                        kind: Kind::Open,
                        thread: number,
                        begin_ns: now,
                        other: file.number,
                        flags: found.flags & !(libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC) as u32 | INHERITED,
                        offset: found.position,
                        ..Call::default()
                    };
                    self.write_named(call, Some(&at), None, None);
                    Slot::Recorded(file)
                }
                None => Slot::Elsewhere(Some(found.path.into())),
            },
            None if tables::is_open(thread, fd) => Slot::Elsewhere(None),
            None => return Some(Slot::Gone),
        };
        self.keep(thread, &descriptors, fd, slot.clone());
        Some(slot)
    }

    /// The path without links of what a thread has opened by a name.
    pub(super) fn opened(&self, thread: pid_t, fd: i32, name: &[u8], is_link: bool) -> Option<Vec<u8>> {
        if self.pointed.is_none() {
            return tables::path(thread, fd);
        }
        // Of a call that is over the descriptor may be another file's.
        without_links(name, !is_link)
    }

    pub(super) fn open_file(&mut self, path: Vec<u8>) -> Rc<OpenFile> {
        self.last_file += 1;
        Rc::new(OpenFile { number: self.last_file, path, identity: Cell::new(None) })
    }

    /// Where a name is: relative to an open file of the recording or to the top, and its absolute path; the path alone elsewhere.
    pub(super) fn named(&mut self, thread: pid_t, directory: i32, name: &[u8], now: u64) -> (Option<Named>, Vec<u8>) {
        let above = match name {
            [b'/', ..] => self.directory(thread, "root"),
            _ if directory == libc::AT_FDCWD => self.directory(thread, "cwd"),
            _ => match self.slot(thread, directory, now) {
                Some(Slot::Recorded(file)) => {
                    let path = normal(&joined(&file.path, name));
                    // As long as ".." does not lead out of it.
                    if path.starts_with(&file.path) && self.roots.below(&path).is_some() {
                        return (Some(Named { base: file.number, name: name.to_vec() }), path);
                    }
                    // It may have another name by now; of a call that is over the descriptor may be another file's.
                    let found = if self.pointed.is_none() { tables::look(thread, directory) } else { None };
                    found.map_or_else(|| file.path.clone(), |found| found.path)
                }
                Some(Slot::Elsewhere(Some(path))) => path.to_vec(),
                _ => return (None, name.to_vec()),
            },
        };
        // No ".." leads above the root.
        let is_below_root = name.starts_with(b"/") && !above.is_empty();
        let whole = joined(&above, &if is_below_root { normal(name) } else { name.to_vec() });
        let path = normal(&whole);
        let fits = |name: &Vec<u8>| name.len() <= MOST_NAME;
        let below = self.roots.inside(&whole).filter(fits).or_else(|| self.roots.below(&path).filter(fits));
        (below.map(|name| Named { base: 0, name }), path)
    }

    /// What was renamed or linked into the recorded directories was elsewhere in the tree before, and what was renamed out of them goes there.
    pub(super) fn moves_across(&mut self, pending: &mut Pending) {
        let came = pending.at.is_none() || pending.call.flags & libc::RENAME_EXCHANGE != 0;
        let path = came.then(|| Path::new(std::ffi::OsStr::from_bytes(&pending.path)).to_owned());
        let Some(name) = self.elsewhere(path) else { return };
        let missing = if pending.at.is_none() { &mut pending.at } else { &mut pending.to };
        *missing = Some(Named { base: 0, name });
        pending.outside = None;
    }

    /// A name in the directory of the top for what is elsewhere, with what is there now.
    pub(super) fn elsewhere(&mut self, path: Option<PathBuf>) -> Option<Vec<u8>> {
        let writer = self.writer.as_mut()?;
        let name = format!("{}/{}", self.elsewhere, self.moved).into_bytes();
        let mut add = |entry| writer.entry(hashed_entry(entry, self.secret.as_ref()));
        let top = Entry { path: self.elsewhere.clone().into_bytes(), mode: 0o700, node: Node::Directory };
        let mut added = if self.moved == 0 { add(top) } else { Ok(()) };
        if let (Some(path), Ok(())) = (path, &added) {
            added = tree::walk_one(path, name.clone(), &mut Walk::default(), &mut add);
        }
        self.moved += 1;
        self.lost_if(added);
        Some(name)
    }

    /// A recorded file has blocks of one elsewhere now, which is opened for this call.
    pub(super) fn clones_from_elsewhere(&mut self, thread: pid_t, call: &Call, fd: i32) {
        let file = match self.slot(thread, fd, call.begin_ns) {
            // Of a call that is over the descriptor may be another file's.
            Some(Slot::Elsewhere(Some(path))) if self.pointed.is_some() => {
                PathBuf::from(std::ffi::OsStr::from_bytes(&path))
            }
            _ => PathBuf::from(format!("/proc/{thread}/fd/{fd}")),
        };
        let Ok(facts) = std::fs::metadata(file) else { return };
        let Some(name) = self.elsewhere(None) else { return };
        let node = Node::File { size_bytes: facts.len(), stored_bytes: facts.len() };
        let entry = Entry { path: name.clone(), mode: (facts.mode() & 0o7777) as u16, node };
        let added =
            self.writer.as_mut().map_or(Ok(()), |writer| writer.entry(hashed_entry(entry, self.secret.as_ref())));
        self.lost_if(added);
        self.last_file += 1;
        let around = Call { thread: call.thread, begin_ns: call.begin_ns, ..Call::default() };
        let opened = Call { kind: Kind::Open, other: self.last_file, flags: INHERITED, ..around };
        self.write_named(opened, Some(&Named { base: 0, name }), None, None);
        self.write(Call { file: self.last_file, ..*call });
        self.write(Call { kind: Kind::Close, file: self.last_file, flags: IMPLICIT, ..around });
    }
}
