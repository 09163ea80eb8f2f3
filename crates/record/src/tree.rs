//! The tree as it is before the program begins.

use crate::call::{Entry, Node};
use crate::trace::{joined, top_name};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};

/// Filesystems whose files the kernel makes up when they are looked at: proc, sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs, bpf,
/// pstore, configfs, fusectl, binfmt_misc, efivarfs, selinuxfs, mqueue, devpts, nsfs.
const MADE_UP: [u64; 17] = [
    0x9fa0,
    0x6265_6572,
    0x0027_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0xcafe_4a11,
    0x6165_676c,
    0x6265_6570,
    0x6573_5543,
    0x4249_4e4d,
    0xde5e_81e4,
    0xf97c_ff8c,
    0x1980_0202,
    0x1cd1,
    0x6e73_6673,
];

/// What a walk needs to know besides where it begins.
#[derive(Default)]
pub(crate) struct Walk<'a> {
    /// Files that have several names, by device and number, and the first of them.
    pub(crate) linked: HashMap<(u64, u64), Vec<u8>>,
    /// A file that is not the program's: the recording itself.
    pub(crate) leave_out: (u64, u64),
    /// Not 0 if it is to end.
    pub(crate) cancel: Option<&'a AtomicI32>,
    /// Mount points that were left out, because what is there is [`MADE_UP`].
    pub(crate) made_up: Vec<PathBuf>,
}

/// Calls `each` for everything below the roots, directories before what is in them. What cannot be read is left out.
///
/// # Errors
/// Those of `each`, and one of the kind [`io::ErrorKind::Interrupted`] if it was cancelled.
pub(crate) fn walk(
    roots: &[PathBuf],
    walk: &mut Walk<'_>,
    each: &mut dyn FnMut(Entry) -> io::Result<()>,
) -> io::Result<()> {
    for (index, root) in roots.iter().enumerate() {
        walk_one(root.clone(), top_name(index, roots.len()), walk, each)?;
    }
    Ok(())
}

fn is_made_up(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| MADE_UP.contains(&(found.f_type as u64 & 0xffff_ffff)))
}

/// One file, or a directory and what is below it, with its name in the tree.
pub(crate) fn walk_one(
    path: PathBuf,
    name: Vec<u8>,
    walk: &mut Walk<'_>,
    each: &mut dyn FnMut(Entry) -> io::Result<()>,
) -> io::Result<()> {
    let mut waiting = vec![(path, name, None)];
    while let Some((path, name, above)) = waiting.pop() {
        let Ok(facts) = fs::symlink_metadata(&path) else { continue };
        if (facts.dev(), facts.ino()) == walk.leave_out {
            continue;
        }
        let Some(node) = node(&path, &name, &facts, &mut walk.linked) else { continue };
        if node == Node::Directory {
            if walk.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed) != 0) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if above.is_some_and(|above| above != facts.dev()) && is_made_up(&path) {
                walk.made_up.push(path);
                each(Entry { path: name, mode: (facts.mode() & 0o7777) as u16, node })?;
                continue;
            }
            let entries = fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.file_name());
            let mut names: Vec<_> = entries.collect();
            names.sort_unstable_by(|one, other| other.cmp(one));
            let of = |entry: &OsString| (path.join(entry), joined(&name, entry.as_bytes()), Some(facts.dev()));
            waiting.extend(names.iter().map(of));
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
    if facts.nlink() > 1 {
        if let Some(of) = linked.get(&(facts.dev(), facts.ino())) {
            return Some(Node::Name { of: of.clone() });
        }
        linked.insert((facts.dev(), facts.ino()), name.to_vec());
    }
    if !kind.is_file() {
        return Some(Node::Special);
    }
    // Filesystems that compress have fewer blocks; a file of less than half its size in blocks is taken for one with holes.
    let stored = facts.blocks() * 512;
    let stored_bytes = if stored < facts.size() / 2 { stored } else { facts.size() };
    Some(Node::File { size_bytes: facts.size(), stored_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_ends_when_it_is_cancelled() {
        let place = tempfile::tempdir().expect("a temporary directory");
        for name in ["a", "b", "c"] {
            fs::create_dir(place.path().join(name)).expect("writable");
        }
        let cancel = AtomicI32::new(0);
        let mut found = 0;
        let mut each = |_| {
            found += 1;
            cancel.store(2, Ordering::Relaxed);
            Ok(())
        };
        let mut state = Walk { cancel: Some(&cancel), ..Walk::default() };
        let ended = walk(&[place.path().to_owned()], &mut state, &mut each);
        assert_eq!(ended.expect_err("it was cancelled").kind(), io::ErrorKind::Interrupted);
        assert_eq!(found, 1);
    }
}
