//! What must have been there before a log began, by what its calls say.

use super::log::Heard;
use crate::call::{Call, INHERITED, Kind, Node};
use std::collections::{BTreeMap, HashMap, VecDeque};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Was {
    There,
    /// Made by the log, or by nobody knows whom.
    Not,
    /// Opened with O_CREAT: what is read of it decides.
    Perhaps,
}

#[derive(Debug)]
struct Known {
    path: Vec<u8>,
    was: Was,
    is_directory: bool,
    target: Option<Vec<u8>>,
    mode: Option<u16>,
    before_bytes: u64,
    bytes: u64,
    /// stat(2) said how long it is.
    is_sized: bool,
    /// Its size says nothing of what it was before.
    is_cut: bool,
    is_open_to_write: bool,
    /// By calls of which the log does not say how much they wrote.
    is_longer: bool,
}

impl Known {
    const fn has_length(&self) -> bool {
        (self.is_sized || self.is_cut || matches!(self.was, Was::Not)) && !self.is_longer
    }
}

#[derive(Debug, Default)]
pub(super) struct Survey {
    files: Vec<Known>,
    /// What each name stands for; of those that are known not to be there, nothing.
    names: BTreeMap<Vec<u8>, Option<usize>>,
    /// Open files: which, where, and whether it appends.
    open: HashMap<u32, (usize, u64, bool)>,
    /// Files may be written to by calls of which the log does not have the bytes.
    has_rings: bool,
    /// How long files were that were mapped, in the order of the calls, as far as something says it.
    pub(super) mapped: VecDeque<Option<u64>>,
}

fn above(path: &[u8]) -> Option<&[u8]> {
    let at = path.iter().rposition(|byte| *byte == b'/').filter(|_| path.len() > 1)?;
    Some(&path[..at.max(1)])
}

impl Survey {
    /// Path, permissions and kind of what was there.
    pub(super) fn before(self) -> impl Iterator<Item = (Vec<u8>, u16, Node)> {
        self.files.into_iter().filter(|known| known.was == Was::There).map(|known| {
            let size_bytes = known.before_bytes;
            let (node, mode) = match known.target {
                Some(target) => (Node::Link { target }, 0o777),
                None if known.is_directory => (Node::Directory, 0o755),
                None => (Node::File { size_bytes, stored_bytes: size_bytes }, 0o644),
            };
            (known.path, known.mode.unwrap_or(mode), node)
        })
    }

    /// The directory that all files are below.
    pub(super) fn common_directory(&self) -> Vec<u8> {
        let mut files = self.files.iter().filter(|known| !known.is_directory).filter_map(|known| above(&known.path));
        let Some(mut common) = files.next().map(<[u8]>::to_vec) else { return b"/".to_vec() };
        for other in files {
            while !(other.starts_with(&common) && matches!(other.get(common.len()), None | Some(b'/')))
                && common != b"/"
            {
                common = above(&common).unwrap_or(b"/").to_vec();
            }
        }
        common
    }

    fn new_file(&mut self, path: &[u8], was: Was) -> usize {
        self.files.push(Known {
            path: path.to_vec(),
            was,
            is_directory: false,
            target: None,
            mode: None,
            before_bytes: 0,
            bytes: 0,
            is_sized: false,
            is_cut: false,
            is_open_to_write: false,
            is_longer: false,
        });
        self.files.len() - 1
    }

    fn make(&mut self, path: &[u8], was: Was) -> usize {
        if let Some(above) = above(path) {
            let directory = self.used(above);
            self.files[directory].is_directory = true;
        }
        let file = self.new_file(path, was);
        self.names.insert(path.to_vec(), Some(file));
        file
    }

    /// The file that a name stands for: it is there.
    fn used(&mut self, path: &[u8]) -> usize {
        match self.names.get(path) {
            Some(Some(file)) => *file,
            // It came to be by a call that is not in the log.
            Some(None) => self.make(path, Was::Not),
            None => self.make(path, Was::There),
        }
    }

    /// A file is as long as this now.
    fn is_as_long(&mut self, file: usize, bytes: u64) {
        let known = &mut self.files[file];
        if bytes > known.bytes && !known.is_cut {
            if known.was == Was::Perhaps {
                known.was = Was::There;
            }
            known.before_bytes = known.before_bytes.max(bytes);
        }
        known.bytes = known.bytes.max(bytes);
    }

    fn moved(&mut self, number: u32, heard: &Heard, placed: bool, writes: bool) {
        let Some((file, position, appends)) = self.open.get(&number).copied() else { return };
        let bytes = heard.call.result.max(0) as u64;
        let from = match (placed, appends && writes) {
            (true, false) => heard.call.offset.max(0) as u64,
            (_, true) => self.files[file].bytes,
            (false, false) => position,
        };
        let end = from.saturating_add(bytes);
        if writes {
            self.files[file].bytes = self.files[file].bytes.max(end);
        } else if bytes > 0 {
            self.is_as_long(file, end);
        }
        if !placed {
            self.open.insert(number, (file, end, appends));
        }
    }

    pub(super) fn hear(&mut self, heard: &Heard) {
        let call = &heard.call;
        if call.kind.is_of_threads() {
            return;
        }
        let at = heard.at.as_deref();
        if call.kind == Kind::Map {
            let known = self.open.get(&call.file).map(|(file, ..)| &self.files[*file]);
            let has_length = |known: &&Known| known.has_length() && !(self.has_rings && known.is_open_to_write);
            self.mapped.push_back(known.filter(has_length).map(|known| known.bytes));
            return;
        }
        if call.result < 0 {
            match (at, call.result.saturating_neg() as i32) {
                (Some(path), libc::ENOENT) => _ = self.names.entry(path.to_vec()).or_insert(None),
                (Some(path), libc::EEXIST) if matches!(call.kind, Kind::Open | Kind::Mkdir) => {
                    let file = self.used(path);
                    self.files[file].is_directory |= call.kind == Kind::Mkdir;
                }
                _ => {}
            }
            return;
        }
        match call.kind {
            Kind::Open => self.opened(heard),
            Kind::Close => _ = self.open.remove(&call.file),
            kind if kind.reads() => {
                self.moved(call.file, heard, matches!(kind, Kind::Pread | Kind::Preadv), false);
            }
            kind if kind.writes() => {
                self.moved(call.file, heard, matches!(kind, Kind::Pwrite | Kind::Pwritev), true);
            }
            Kind::Uring | Kind::Aio | Kind::PolledRing | Kind::Lost => self.has_rings = true,
            Kind::Reflink => self.cloned(call),
            kind if kind.is_copy() => {
                self.moved(call.file, heard, call.offset >= 0, false);
                self.moved(call.other, heard, false, true);
            }
            Kind::Seek => {
                if let Some((file, position, _)) = self.open.get_mut(&call.file) {
                    *position = call.result as u64;
                    let file = *file;
                    if call.flags == libc::SEEK_END as u32 {
                        self.is_as_long(file, call.result.saturating_sub(call.offset).max(0) as u64);
                    }
                }
            }
            Kind::Mkdir | Kind::Symlink | Kind::Mknod => {
                let Some(path) = at else { return };
                let file = self.make(path, Was::Not);
                self.files[file].is_directory = call.kind == Kind::Mkdir;
            }
            Kind::Unlink | Kind::Rmdir => {
                let Some(path) = at else { return };
                let file = self.used(path);
                self.files[file].is_directory |= call.kind == Kind::Rmdir;
                self.names.insert(path.to_vec(), None);
            }
            Kind::Rename => self.renamed(heard),
            Kind::Link => {
                let file = match (at, self.open.get(&call.file)) {
                    (Some(path), _) => self.used(path),
                    (None, Some((file, ..))) => *file,
                    (None, None) => return,
                };
                if let Some(to) = &heard.to {
                    self.names.insert(to.clone(), Some(file));
                }
            }
            _ => self.looked_at(heard),
        }
    }

    fn opened(&mut self, heard: &Heard) {
        let (call, Some(path)) = (&heard.call, &heard.at) else { return };
        let has = |flag: i32| call.flags & flag as u32 == flag as u32;
        let is_known = self.names.contains_key(path);
        let file = if has(libc::O_TMPFILE) {
            self.used(path);
            self.new_file(path, Was::Not)
        } else if !is_known && has(libc::O_CREAT) && call.flags & INHERITED == 0 {
            let is_new = has(libc::O_EXCL) || has(libc::O_TRUNC);
            self.make(path, if is_new { Was::Not } else { Was::Perhaps })
        } else {
            self.used(path)
        };
        let known = &mut self.files[file];
        known.is_directory |= has(libc::O_DIRECTORY) && !has(libc::O_TMPFILE);
        known.is_open_to_write |= call.flags & libc::O_ACCMODE as u32 != libc::O_RDONLY as u32;
        if has(libc::O_TRUNC) {
            (known.bytes, known.is_cut) = (0, true);
        }
        self.open.insert(call.other, (file, 0, has(libc::O_APPEND)));
    }

    /// A part of a file of so many bytes; 0 stands for all up to its end.
    fn cloned(&mut self, call: &Call) {
        let [Some((from, ..)), Some((to, ..))] = [call.file, call.other].map(|number| self.open.get(&number).copied())
        else {
            return;
        };
        let source = &self.files[from];
        let rest = source.bytes.saturating_sub(call.offset.max(0) as u64);
        let (bytes, is_known) = if call.length > 0 { (call.length, true) } else { (rest, source.has_length()) };
        let known = &mut self.files[to];
        known.bytes = known.bytes.max((call.other_offset.max(0) as u64).saturating_add(bytes));
        known.is_longer |= !is_known;
    }

    fn renamed(&mut self, heard: &Heard) {
        let (Some(from), Some(to)) = (&heard.at, &heard.to) else { return };
        let file = self.used(from);
        if let Some(above) = above(to) {
            let directory = self.used(above);
            self.files[directory].is_directory = true;
        }
        if heard.call.flags & libc::RENAME_EXCHANGE != 0 {
            let other = self.used(to);
            self.names.insert(from.clone(), Some(other));
        } else {
            self.names.insert(from.clone(), None);
        }
        self.names.insert(to.clone(), Some(file));
        if self.files[file].is_directory {
            let below = [from.as_slice(), b"/"].concat();
            let inside: Vec<Vec<u8>> = self
                .names
                .range(below.clone()..)
                .map(|(name, _)| name.clone())
                .take_while(|name| name.starts_with(&below))
                .collect();
            for name in inside {
                let moved = [to.as_slice(), b"/", &name[below.len()..]].concat();
                let Some(file) = self.names.remove(&name) else { continue };
                // Only of files: else renames in a circle would double the names each time.
                if file.is_some() {
                    self.names.insert(name, None);
                }
                self.names.insert(moved, file);
            }
        }
    }

    fn looked_at(&mut self, heard: &Heard) {
        let call = &heard.call;
        let file = match (&heard.at, self.open.get(&call.file)) {
            (Some(path), _) => self.used(path),
            (None, Some((file, ..))) => *file,
            (None, None) => return,
        };
        match call.kind {
            Kind::Getdents => self.files[file].is_directory = true,
            Kind::Truncate | Kind::Ftruncate => {
                let known = &mut self.files[file];
                (known.bytes, known.is_cut) = (call.length, true);
            }
            Kind::Fallocate if call.flags & libc::FALLOC_FL_KEEP_SIZE as u32 == 0 => {
                let end = (call.offset.max(0) as u64).saturating_add(call.length);
                self.files[file].bytes = self.files[file].bytes.max(end);
            }
            Kind::Readlink => {
                let known = &mut self.files[file];
                if let (Was::There, Some(target), false) = (known.was, &heard.to, known.is_directory) {
                    known.target = Some(target.clone());
                }
            }
            _ => {}
        }
        if let Some((mode, bytes)) = heard.facts {
            self.files[file].is_directory |= mode & libc::S_IFMT == libc::S_IFDIR;
            if self.files[file].was == Was::There {
                self.files[file].mode.get_or_insert((mode & 0o777) as u16);
            }
            if mode & libc::S_IFMT == libc::S_IFREG {
                self.is_as_long(file, bytes);
                (self.files[file].is_sized, self.files[file].is_longer) = (true, false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Call;

    #[test]
    fn renames_in_a_circle_do_not_double_the_names() {
        let mut survey = Survey::default();
        for to in [b"/a/b", b"/a/c"].into_iter().cycle().take(16) {
            let call = Call { kind: Kind::Rename, ..Call::default() };
            survey.hear(&Heard { call, at: Some(b"/a".to_vec()), to: Some(to.to_vec()), ..Heard::default() });
        }
        assert!(survey.names.len() < 1000, "{}", survey.names.len());
    }
}
