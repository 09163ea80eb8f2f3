//! The tree while a recording is read: which file each name stands for at each call.
//!
//! Names are resolved here, once, links included. What is carried out goes to a directory that is open and one name in it, so no link
//! is ever followed by the kernel.

use crate::trace::Roots;
use std::collections::HashMap;

/// A place in the program of a replay: a lane, and how many of its actions have ended with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) lane: u32,
    pub(super) count: u32,
}

/// The last use by each lane.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks(Vec<Mark>);

impl Marks {
    pub(super) fn add(&mut self, mark: Mark) {
        match self.0.iter_mut().find(|one| one.lane == mark.lane) {
            Some(one) => *one = mark,
            None => self.0.push(mark),
        }
    }

    pub(super) fn all(&self) -> &[Mark] {
        &self.0
    }

    pub(super) fn take(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.0)
    }
}

#[derive(Debug)]
pub(super) enum What {
    Directory {
        above: u32,
        name: u32,
    },
    File {
        size_bytes: u64,
    },
    Link {
        target: Vec<u8>,
    },
    /// A device, a pipe or a socket, which no replay makes.
    Special,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) what: What,
    /// What changed it last: its size, or its being there.
    pub(super) changed: Option<Mark>,
    pub(super) locked: Option<Mark>,
    /// Of a directory: the last changes of names in it.
    pub(super) names_changed: Marks,
    /// Of a file: the last reads and writes, which come before it is made shorter, and reads that came to its end, which come before it
    /// is made longer. A sync comes after writes. Of a directory: calls that failed because it is not empty.
    pub(super) readers: Marks,
    pub(super) writers: Marks,
    pub(super) at_end: Marks,
}

/// One name in one directory, there or not: a generation ends when it is changed.
#[derive(Debug, Default)]
pub(super) struct Name {
    pub(super) node: Option<u32>,
    pub(super) changed: Option<Mark>,
    pub(super) users: Marks,
}

pub(super) const TOP: u32 = 0;
/// As the kernel.
const MOST_LINKS: u32 = 40;
const MOST_DEPTH: usize = 2048;

pub(super) struct Names {
    pub(super) nodes: Vec<Node>,
    pub(super) names: Vec<Name>,
    by_name: HashMap<(u32, u32), u32>,
    texts: HashMap<Box<[u8]>, u32>,
    pub(super) text: Vec<Box<[u8]>>,
    /// Bytes of the texts.
    pub(super) bytes: usize,
    /// How many names in each directory are of something special.
    special: HashMap<u32, i64>,
    /// For links with absolute paths.
    roots: Roots,
    /// The names that the last resolution passed.
    pub(super) passed: Vec<u32>,
}

/// Where a name leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// The directory; `None` if it is not there, and the call has to fail.
    pub(super) directory: Option<u32>,
    /// The path of the directory from the top, as a text.
    pub(super) path: u32,
    /// The name in it, as a text.
    pub(super) name: u32,
    /// Index of the name; `None` for "." or without a directory.
    pub(super) index: Option<u32>,
    /// Without a directory: the special file that stands where one has to be.
    pub(super) node: Option<u32>,
}

impl Names {
    pub(super) fn new(roots: Roots) -> Self {
        let mut names = Self {
            nodes: Vec::new(),
            names: Vec::new(),
            by_name: HashMap::new(),
            texts: HashMap::new(),
            text: Vec::new(),
            bytes: 0,
            special: HashMap::new(),
            roots,
            passed: Vec::new(),
        };
        let name = names.text(b"");
        names.node(What::Directory { above: TOP, name });
        names
    }

    pub(super) fn text(&mut self, text: &[u8]) -> u32 {
        if let Some(number) = self.texts.get(text) {
            return *number;
        }
        let number = self.text.len() as u32;
        self.text.push(text.into());
        self.bytes += text.len();
        self.texts.insert(text.into(), number);
        number
    }

    pub(super) fn node(&mut self, what: What) -> u32 {
        let [names_changed, readers, writers, at_end] = Default::default();
        self.nodes.push(Node { what, changed: None, locked: None, names_changed, readers, writers, at_end });
        (self.nodes.len() - 1) as u32
    }

    fn name(&mut self, directory: u32, name: u32) -> u32 {
        *self.by_name.entry((directory, name)).or_insert_with(|| {
            self.names.push(Name::default());
            (self.names.len() - 1) as u32
        })
    }

    /// The path of a directory from the top.
    fn path(&self, mut directory: u32) -> Vec<u8> {
        let mut parts: Vec<&[u8]> = Vec::new();
        while directory != TOP && parts.len() < MOST_DEPTH {
            let What::Directory { above, name } = self.nodes[directory as usize].what else { break };
            parts.push(&self.text[name as usize]);
            directory = above;
        }
        parts.reverse();
        parts.join(&b'/')
    }

    /// The names that lead to a directory: whoever uses it by its path passes them, whatever the application had open.
    pub(super) fn pass_above(&mut self, mut directory: u32) {
        for _ in 0..MOST_DEPTH {
            let What::Directory { above, name } = self.nodes[directory as usize].what else { return };
            if directory == TOP {
                return;
            }
            self.passed.extend(self.by_name.get(&(above, name)));
            directory = above;
        }
    }

    /// Resolves a name from a directory. `None` if it leads out of the tree, or in a circle.
    pub(super) fn resolve(&mut self, from: u32, name: &[u8], follow: bool) -> Option<Found> {
        self.passed.clear();
        self.resolve_within(from, name, follow, &mut 0)
    }

    fn resolve_within(&mut self, from: u32, name: &[u8], follow: bool, links: &mut u32) -> Option<Found> {
        let wants_directory = name.ends_with(b"/");
        // In the directory that it is: "d/." can neither be removed nor renamed.
        let whole = name.iter().rposition(|byte| *byte != b'/').map_or(&name[..0], |last| &name[..=last]);
        let is_itself = whole.ends_with(b"/.");
        let end: &[u8] = match (is_itself, wants_directory) {
            (true, _) => b"/.",
            (false, true) => b"/",
            (false, false) => b"",
        };
        let parts: Vec<&[u8]> =
            name.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
        let mut directory = from;
        if !matches!(self.nodes[from as usize].what, What::Directory { .. }) {
            return None;
        }
        for (index, part) in parts.iter().enumerate() {
            let is_last = index + 1 == parts.len() && !is_itself;
            if *part == b".." {
                if directory == TOP {
                    return None;
                }
                let What::Directory { above, .. } = self.nodes[directory as usize].what else { return None };
                directory = above;
                continue;
            }
            let text = self.text(part);
            let entry = self.name(directory, text);
            self.passed.push(entry);
            let node = self.names[entry as usize].node;
            let link = match node.map(|node| &self.nodes[node as usize].what) {
                Some(What::Link { target }) if !is_last || follow || wants_directory => Some(target.clone()),
                _ => None,
            };
            if let Some(target) = link {
                *links += 1;
                if *links > MOST_LINKS {
                    return None;
                }
                let (base, target) = self.link(directory, &target)?;
                let rest = parts[index + 1..].join(&b'/');
                let between: &[u8] = if is_last { b"" } else { b"/" };
                let whole = [&target, between, &rest, end].concat();
                return self.resolve_within(base, &whole, follow, links);
            }
            if is_last {
                let path = self.path(directory);
                let is_other = |node: u32| !matches!(self.nodes[node as usize].what, What::Directory { .. });
                if wants_directory && node.is_some_and(is_other) {
                    let (path, name) = (self.text(&crate::trace::joined(&path, part)), self.text(b"."));
                    let node = node.filter(|node| self.is_special(*node));
                    return Some(Found { directory: None, path, name, index: None, node });
                }
                let path = self.text(&path);
                return Some(Found { directory: Some(directory), path, name: text, index: Some(entry), node });
            }
            match node {
                Some(node) if matches!(self.nodes[node as usize].what, What::Directory { .. }) => directory = node,
                // Not there, or no directory: the call fails, and has to fail here.
                _ => {
                    let names = if is_itself { parts.len() } else { parts.len() - 1 };
                    let path = crate::trace::joined(&self.path(directory), &parts[index..names].join(&b'/'));
                    let (path, name) = (self.text(&path), self.text(parts.get(names).unwrap_or(&&b"."[..])));
                    let is_plain = !parts[index..].contains(&&b".."[..]);
                    let node = node.filter(|node| self.is_special(*node));
                    return is_plain.then_some(Found { directory: None, path, name, index: None, node });
                }
            }
        }
        let path = self.path(directory);
        let (path, name) = (self.text(&path), self.text(b"."));
        Some(Found { directory: Some(directory), path, name, index: None, node: Some(directory) })
    }

    /// Where the target of a link begins, and the rest.
    fn link(&self, directory: u32, target: &[u8]) -> Option<(u32, Vec<u8>)> {
        if !target.starts_with(b"/") {
            return Some((directory, target.to_vec()));
        }
        self.roots.inside(target).map(|name| (TOP, name))
    }

    /// A name begins to stand for a node, or for none.
    pub(super) fn bind(&mut self, found: &Found, node: Option<u32>) {
        let (Some(index), Some(directory)) = (found.index, found.directory) else { return };
        let before = std::mem::replace(&mut self.names[index as usize].node, node);
        for (node, more) in [(before, -1), (node, 1)] {
            if node.is_some_and(|node| self.is_special(node)) {
                *self.special.entry(directory).or_default() += more;
            }
        }
        if let Some(node) = node
            && let What::Directory { above, name } = &mut self.nodes[node as usize].what
        {
            (*above, *name) = (directory, found.name);
        }
    }

    /// Whether there ever was one.
    pub(super) fn had_special(&self) -> bool {
        !self.special.is_empty()
    }

    /// Whether one is in a directory.
    pub(super) fn has_special(&self, directory: u32) -> bool {
        self.special.get(&directory).is_some_and(|count| *count > 0)
    }

    pub(super) fn is_special(&self, node: u32) -> bool {
        matches!(self.nodes[node as usize].what, What::Special)
    }

    /// Whether a directory is another, or above it: then it cannot be moved into that.
    pub(super) fn is_above(&self, directory: u32, mut other: u32) -> bool {
        for _ in 0..MOST_DEPTH {
            if directory == other {
                return true;
            }
            match self.nodes[other as usize].what {
                What::Directory { above, .. } if other != TOP => other = above,
                _ => return false,
            }
        }
        // Deeper than anything that is replayed.
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(names: &mut Names, path: &[u8], what: What) -> u32 {
        let found = names.resolve(TOP, path, false).expect("in the tree");
        let node = names.node(what);
        names.bind(&found, Some(node));
        node
    }

    #[test]
    fn names_lead_where_the_kernel_would_go_and_not_out() {
        let mut names = Names::new(Roots::new(&[(b"/home/y".to_vec(), b"/home/x".to_vec())]));
        let directory = |above| What::Directory { above, name: 0 };
        let a = add(&mut names, b"a", directory(TOP));
        let b = add(&mut names, b"a/b", directory(a));
        let file = add(&mut names, b"a/b/file", What::File { size_bytes: 1 });
        for (name, target) in [
            ("up", "../a/b"),
            ("abs", "/home/x/a"),
            ("given", "/home/y/a"),
            ("out", "/etc"),
            ("out2", "../../etc"),
            ("loop", "loop"),
        ] {
            add(&mut names, format!("a/{name}").as_bytes(), What::Link { target: target.into() });
        }
        let mut node = |path: &str, follow| names.resolve(TOP, path.as_bytes(), follow).map(|found| found.node);
        for path in ["a/b/file", "a//b/./file", "a/up/file", "a/abs/up/file", "a/given/b/file", "a/b/../up/../b/file"] {
            assert_eq!(node(path, true), Some(Some(file)), "{path}");
        }
        assert_eq!(node("a/up", true), Some(Some(b)));
        assert_ne!(node("a/up", false), Some(Some(b)));
        assert_eq!(node("a/up/", false), Some(Some(b)));
        // A link before ".." leads to what is above its target, and only a directory has a slash or "." behind it.
        let mut found = |path: &str| names.resolve(TOP, path.as_bytes(), true).expect("in the tree");
        assert_eq!(found("a/up/../../a/b/file").node, Some(file));
        assert_eq!(found("a/abs/b/../abs/b/file").node, Some(file));
        for path in ["a/b/file/", "a/b/file/.", "a/up/file/"] {
            let found = found(path);
            assert_eq!((found.directory, found.node), (None, None), "{path}");
        }
        let itself = found("a/up/.");
        assert_eq!((itself.directory, itself.node, itself.index), (Some(b), Some(b), None));
        assert_eq!(found("none/.").directory, None);
        let mut node = |path: &str, follow| names.resolve(TOP, path.as_bytes(), follow).map(|found| found.node);
        for path in ["a/out/passwd", "a/out2", "..", "a/../..", "a/loop/x"] {
            assert_eq!(node(path, true), None, "{path}");
        }
        assert_eq!(node("a/none/x", true), Some(None));
        let missing = names.resolve(TOP, b"a/none/deep/x", true).expect("in the tree");
        assert_eq!((missing.directory, &*names.text[missing.path as usize]), (None, &b"a/none/deep"[..]));
        // The path follows a directory that is renamed.
        let (from, to) =
            (names.resolve(TOP, b"a/b", false).expect("there"), names.resolve(TOP, b"c", false).expect("free"));
        names.bind(&from, None);
        names.bind(&to, Some(b));
        let moved = names.resolve(b, b"file", false).expect("there");
        assert_eq!((&*names.text[moved.path as usize], moved.node), (&b"c"[..], Some(file)));
    }
}
