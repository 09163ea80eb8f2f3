//! The tree as it is before the program begins.

use crate::call::{Entry, Node};
use crate::trace::{joined, top_name};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Calls `each` for everything below the roots, directories before what is in them. What cannot be read is left out.
/// `leave_out` is a file that is not the program's: the recording itself.
///
/// # Errors
/// Those of `each`.
pub(crate) fn walk(
    roots: &[PathBuf],
    leave_out: (u64, u64),
    each: &mut dyn FnMut(Entry) -> io::Result<()>,
) -> io::Result<()> {
    // Only files that have several names.
    let mut linked: HashMap<(u64, u64), Vec<u8>> = HashMap::new();
    for (index, root) in roots.iter().enumerate() {
        walk_one(root.clone(), top_name(index, roots.len()), leave_out, &mut linked, each)?;
    }
    Ok(())
}

/// One file, or a directory and what is below it, with its name in the tree.
pub(crate) fn walk_one(
    path: PathBuf,
    name: Vec<u8>,
    leave_out: (u64, u64),
    linked: &mut HashMap<(u64, u64), Vec<u8>>,
    each: &mut dyn FnMut(Entry) -> io::Result<()>,
) -> io::Result<()> {
    let mut waiting = vec![(path, name)];
    while let Some((path, name)) = waiting.pop() {
        let Ok(facts) = fs::symlink_metadata(&path) else { continue };
        if (facts.dev(), facts.ino()) == leave_out {
            continue;
        }
        let Some(node) = node(&path, &name, &facts, linked) else { continue };
        if node == Node::Directory {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.file_name());
            let mut names: Vec<_> = entries.collect();
            names.sort_unstable_by(|one, other| other.cmp(one));
            waiting.extend(names.iter().map(|entry| (path.join(entry), joined(&name, entry.as_bytes()))));
        }
        if !name.is_empty() {
            each(Entry { path: name, mode: (facts.mode() & 0o7777) as u16, node })?;
        }
    }
    Ok(())
}

fn node(path: &Path, name: &[u8], facts: &Metadata, linked: &mut HashMap<(u64, u64), Vec<u8>>) -> Option<Node> {
    let kind = facts.file_type();
    if kind.is_dir() {
        return Some(Node::Directory);
    }
    if kind.is_symlink() {
        let target = fs::read_link(path).ok()?;
        return Some(Node::Link { target: AsRef::<OsStr>::as_ref(&target).as_bytes().to_vec() });
    }
    if !kind.is_file() {
        return None;
    }
    if facts.nlink() > 1 {
        if let Some(of) = linked.get(&(facts.dev(), facts.ino())) {
            return Some(Node::Name { of: of.clone() });
        }
        linked.insert((facts.dev(), facts.ino()), name.to_vec());
    }
    // Filesystems that compress have fewer blocks; a file of less than half its size in blocks is taken for one with holes.
    let stored = facts.blocks() * 512;
    let stored_bytes = if stored < facts.size() / 2 { stored } else { facts.size() };
    Some(Node::File { size_bytes: facts.size(), stored_bytes })
}
