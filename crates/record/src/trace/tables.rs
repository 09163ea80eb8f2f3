//! What a program's descriptors and relative names stand for.

use super::preload::{EVENTS, FILE, PIPE};
use super::ptrace::proc_text;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;
use std::rc::Rc;

/// A directory that is recorded, as an absolute path: as it was given, and without links.
pub(super) type Root = (Vec<u8>, Vec<u8>);

/// The directories that are recorded.
pub(crate) struct Roots {
    /// Each as it was given and as it is without links, and the directory of the top that it is.
    prefixes: Vec<(Vec<u8>, Vec<u8>)>,
    /// What is not recorded although it is below one: the recording itself.
    except: Option<Vec<u8>>,
    /// The same of directories and all that is below them, as absolute paths.
    without: Vec<Vec<u8>>,
}

impl Roots {
    pub(crate) fn new(roots: &[Root]) -> Self {
        let mut prefixes = Vec::new();
        for (index, (given, real)) in roots.iter().enumerate() {
            let top = top_name(index, roots.len());
            prefixes.push((real.clone(), top.clone()));
            if given != real {
                prefixes.push((normal(given), top));
            }
        }
        Self { prefixes, except: None, without: Vec::new() }
    }

    pub(super) fn without(mut self, paths: &[PathBuf]) -> Self {
        self.without = paths.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect();
        self
    }

    pub(super) fn except(mut self, path: &[u8]) -> Self {
        self.except = self.below(path);
        self
    }

    /// An absolute path below a root, from the top; `None` for others.
    pub(crate) fn below(&self, path: &[u8]) -> Option<Vec<u8>> {
        let is_in =
            |one: &Vec<u8>| path.strip_prefix(one.as_slice()).is_some_and(|rest| matches!(rest, [] | [b'/', ..]));
        if self.without.iter().any(is_in) {
            return None;
        }
        self.prefixes.iter().find_map(|(prefix, top)| {
            let rest = path.strip_prefix(prefix.as_slice())?;
            let rest = match rest {
                [] => rest,
                [b'/', rest @ ..] => rest,
                _ if prefix == b"/" => rest,
                _ => return None,
            };
            Some(joined(top, rest)).filter(|name| Some(name) != self.except.as_ref())
        })
    }

    /// The same of a path that is not normal: "..", and what says that its end is a directory, stay where they are below the root. A link
    /// before ".." leads the kernel elsewhere.
    pub(crate) fn inside(&self, path: &[u8]) -> Option<Vec<u8>> {
        const MOST_PATH: usize = 4096;
        let mut below = self.below(&normal(path))?;
        let mut parts = path.split(|byte| *byte == b'/');
        // The kernel takes no longer ones.
        if path.len() <= MOST_PATH && parts.clone().any(|part| part == b"..") {
            let mut here: Vec<&[u8]> = Vec::new();
            // The name below the root, and how deep that is.
            let mut name: Option<(Vec<u8>, usize)> = None;
            for part in parts.by_ref() {
                match part {
                    b"" | b"." => continue,
                    b".." if here.pop().is_none() => continue,
                    b".." => {}
                    part => here.push(part),
                }
                name = match name {
                    Some((name, depth)) if here.len() >= depth => Some((joined(&name, part), depth)),
                    _ => {
                        let entered = self.below(&[b"/", here.join(&b'/').as_slice()].concat());
                        entered.map(|entered| (entered, here.len()))
                    }
                };
            }
            below = name?.0;
        }
        let whole = path.iter().rposition(|byte| *byte != b'/').map_or(&path[..0], |last| &path[..=last]);
        if whole.ends_with(b"/.") {
            below = joined(&below, b".");
        }
        if path.ends_with(b"/") {
            below.push(b'/');
        }
        Some(below)
    }
}

/// The directory of the top that a root is.
pub(crate) fn top_name(index: usize, roots: usize) -> Vec<u8> {
    if roots == 1 { Vec::new() } else { index.to_string().into_bytes() }
}

pub(crate) fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match (directory, name) {
        (directory, []) => directory.to_vec(),
        ([], name) => name.to_vec(),
        (directory, name) => [directory, b"/", name].concat(),
    }
}

/// An absolute path without ".", ".." and repeated slashes. A link before ".." is taken for a directory.
pub(crate) fn normal(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    [b"/", parts.join(&b'/').as_slice()].concat()
}

/// An open file: several descriptors, also of several processes, may be of one.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) number: u32,
    /// Absolute.
    pub(super) path: Vec<u8>,
    /// Its device and number, of a process that has a ring.
    pub(super) identity: Cell<Option<(u64, u64)>>,
}

#[derive(Debug, Clone)]
pub(super) enum Slot {
    Recorded(Rc<OpenFile>),
    /// A file elsewhere with its path, or no file at all.
    Elsewhere(Option<Rc<[u8]>>),
    /// Nothing: it is closed.
    Gone,
}

impl Slot {
    /// What the program may know of it. Calls about files, and no terminals, wait for no other process; those about a pipe or a counter of
    /// events (eventfd) need not.
    pub(super) fn known(&self, thread: i32, fd: i32) -> u8 {
        let may_be_file = match self {
            Self::Recorded(_) => true,
            Self::Elsewhere(Some(path)) => {
                path.starts_with(b"/dev/shm/") || !path.starts_with(b"/dev/") && !path.starts_with(b"/proc/")
            }
            Self::Elsewhere(None) => false,
            Self::Gone => return 0,
        };
        let name = format!("/proc/{thread}/fd/{fd}");
        let Ok(found) = fs::metadata(&name) else { return 0 };
        let is_counter = || fs::read_link(&name).is_ok_and(|of| of.as_os_str() == "anon_inode:[eventfd]");
        match may_be_file {
            true if found.is_file() || found.is_dir() => FILE,
            false if !matches!(self, Self::Elsewhere(None)) => 0,
            false if found.file_type().is_fifo() => PIPE,
            false if is_counter() => EVENTS,
            _ => 0,
        }
    }
}

pub(super) type Descriptors = Rc<RefCell<HashMap<i32, Slot>>>;

/// What a descriptor is of that was not seen when it was made.
pub(super) struct Found {
    /// Absolute.
    pub(super) path: Vec<u8>,
    pub(super) flags: u32,
    pub(super) position: i64,
}

/// `None` for what has no path.
pub(super) fn look(thread: i32, fd: i32) -> Option<Found> {
    let path = fs::read_link(format!("/proc/{thread}/fd/{fd}")).ok()?;
    let path = path.as_os_str().as_bytes().to_vec();
    if !path.starts_with(b"/") || path.ends_with(b" (deleted)") {
        return None;
    }
    let text = proc_text(&format!("/proc/{thread}/fdinfo/{fd}"))?;
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let flags = value("flags:").and_then(|flags| u32::from_str_radix(flags, 8).ok()).unwrap_or(0);
    let position = value("pos:").and_then(|position| position.parse().ok()).unwrap_or(0);
    Some(Found { path, flags, position })
}

/// The path of what a descriptor is of, without links; `None` for what has none.
pub(super) fn path(thread: i32, fd: i32) -> Option<Vec<u8>> {
    let path = fs::read_link(format!("/proc/{thread}/fd/{fd}")).ok()?.into_os_string().into_vec();
    (path.starts_with(b"/") && !path.ends_with(b" (deleted)")).then_some(path)
}

/// Device and number of what a descriptor is of.
pub(super) fn identity(thread: i32, fd: i32) -> Option<(u64, u64)> {
    let facts = fs::metadata(format!("/proc/{thread}/fd/{fd}")).ok()?;
    Some((facts.dev(), facts.ino()))
}

pub(super) fn size_bytes(thread: i32, fd: i32) -> Option<u64> {
    Some(fs::metadata(format!("/proc/{thread}/fd/{fd}")).ok()?.len())
}

/// Whether a descriptor may be open: of a program that others may not look into, nothing shows that it is not.
pub(super) fn is_open(thread: i32, fd: i32) -> bool {
    let found = fs::read_link(format!("/proc/{thread}/fd/{fd}"));
    found.map_or_else(|error| error.kind() != std::io::ErrorKind::NotFound, |_| true)
}

/// Where relative names of a thread ("cwd") or its absolute ones ("root") are now.
pub(super) fn directory(thread: i32, which: &str) -> Vec<u8> {
    let link = fs::read_link(format!("/proc/{thread}/{which}")).unwrap_or_default();
    link.as_os_str().as_bytes().strip_suffix(b"/").unwrap_or(link.as_os_str().as_bytes()).to_vec()
}

/// The descriptor that a name is another name of.
pub(crate) fn descriptor(name: &[u8]) -> Option<i32> {
    match name {
        b"/dev/stdin" => return Some(0),
        b"/dev/stdout" => return Some(1),
        b"/dev/stderr" => return Some(2),
        _ => {}
    }
    let prefixes = ["/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"];
    let number = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix.as_bytes()))?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// A name below a process's own directory or descriptor, when it is by a name in /proc: relative to which it is, and the rest of it.
pub(super) fn below_own(name: &[u8], process: impl FnOnce() -> Option<i32>) -> Option<(i32, &[u8])> {
    fn number(part: &[u8]) -> Option<i32> {
        std::str::from_utf8(part).ok().filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
    }
    fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
        let end = path.iter().position(|byte| *byte == b'/')?;
        let rest = &path[end..];
        Some((&path[..end], &rest[rest.iter().position(|byte| *byte != b'/')?..]))
    }
    let descriptor = |path| split(path).and_then(|(fd, rest)| Some((number(fd)?, rest)));
    if let Some(path) = name.strip_prefix(b"/dev/fd/") {
        return descriptor(path);
    }
    let (whose, path) = split(name.strip_prefix(b"/proc/")?)?;
    if !matches!(whose, b"self" | b"thread-self") && number(whose)? != process()? {
        return None;
    }
    match split(path)? {
        (b"fd", path) => descriptor(path),
        (b"cwd", rest) => Some((libc::AT_FDCWD, rest)),
        _ => None,
    }
}

/// The process that made a process, or that a thread is of.
pub(super) fn parent(thread: i32) -> Option<i32> {
    let text = proc_text(&format!("/proc/{thread}/status"))?;
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key))?.trim().parse::<i32>().ok();
    value("Tgid:").filter(|group| *group != thread).or(value("PPid:"))
}

/// The permissions that what a thread makes does not get.
pub(super) fn umask(thread: i32) -> Option<u16> {
    let text = proc_text(&format!("/proc/{thread}/status"))?;
    u16::from_str_radix(text.lines().find_map(|line| line.strip_prefix("Umask:"))?.trim(), 8).ok()
}

/// The process that a thread is of.
pub(super) fn process(thread: i32) -> Option<i32> {
    proc_text(&format!("/proc/{thread}/status"))?
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))?
        .trim()
        .parse()
        .ok()
}

/// The descriptors that a process has now.
pub(super) fn present(thread: i32) -> Option<HashSet<i32>> {
    let entries = fs::read_dir(format!("/proc/{thread}/fd")).ok()?;
    Some(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_a_process_s_own_are_relative_to_it() {
        let below = |name: &'static str| below_own(name.as_bytes(), || Some(70));
        let found = |from, rest: &'static str| Some((from, rest.as_bytes()));
        assert_eq!(below("/proc/self/fd/5//x/y"), found(5, "x/y"));
        assert_eq!(below("/dev/fd/5/.."), found(5, ".."));
        assert_eq!(below("/proc/70/fd/12/x/"), found(12, "x/"));
        assert_eq!(below("/proc/thread-self/cwd/x"), found(libc::AT_FDCWD, "x"));
        let others =
            ["/proc/7/fd/5/x", "/proc/self/fd/5", "/dev/fd/5//", "/proc/self/fd/+5/x", "/proc/self/maps", "/x"];
        assert_eq!(others.map(below), [None; 6]);
    }

    #[test]
    fn names_are_found_below_their_root() {
        let root = |path: &str| (path.as_bytes().to_vec(), path.as_bytes().to_vec());
        let one = Roots::new(&[root("/a/b")]);
        let below = |roots: &Roots, path: &str| {
            roots.below(&normal(path.as_bytes())).map(|path| String::from_utf8(path).unwrap())
        };
        assert_eq!(below(&one, "/a/b/c/../d//e/."), Some("d/e".into()));
        assert_eq!(below(&one, "/a/b"), Some(String::new()));
        assert_eq!(below(&one, "/a/bc"), None);
        assert_eq!(below(&one, "/a/b/../c"), None);
        let two = Roots::new(&[(b"/link".to_vec(), b"/a/b".to_vec()), root("/c")]);
        assert_eq!(below(&two, "/link/x"), Some("0/x".into()));
        assert_eq!(below(&two, "/c"), Some("1".into()));
        assert_eq!(below(&Roots::new(&[root("/")]), "/etc/x"), Some("etc/x".into()));
        let inside = |roots: &Roots, path: &str| {
            roots.inside(path.as_bytes()).map(|path| String::from_utf8(path).expect("it was text"))
        };
        for (path, name) in [
            ("/a/b/c/../d//e", "c/../d/e"),
            ("/a/./b/../b/link/../f/", "link/../f/"),
            ("/a/b/c/../../b/d/.", "d/."),
            ("/a/b/./d/./", "d/./"),
            ("/a/b/.", "."),
            ("/a/b/", "/"),
            ("/../a/b/c", "c"),
        ] {
            assert_eq!(inside(&one, path), Some(name.into()), "{path}");
        }
        assert_eq!([inside(&one, "/a/b/../c"), inside(&one, "/a")], [None, None]);
        assert_eq!(inside(&two, "/c/x/../../link/y/../z"), Some("0/y/../z".into()));
        assert_eq!(inside(&Roots::new(&[root("/")]), "/../etc/l/../x"), Some("etc/l/../x".into()));
    }
}
