//! Carries sequences out, and remembers the tree after each call.

use super::call::{Call, Sequence};
use super::enumerate::{DIRECTORIES, FILES, LINK};
use super::tree::Tree;
use crate::random::{Random, derive};
use rustix::fs::{FallocateFlags, XattrFlags};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const OLD_ATTRIBUTE: &str = "user.old";
/// What free space is filled with before a sequence, so that a file which shows it shows what it never held.
pub(super) const STALE: u8 = 0xdb;
const STALE_BYTES: usize = 4 << 20;

/// Makes the tree that sequences begin with, in an empty filesystem, durably.
///
/// # Errors
/// When a call fails that all filesystems have.
pub fn plant(root: &Path) -> io::Result<()> {
    for directory in DIRECTORIES {
        fs::create_dir(root.join(directory))?;
    }
    for (number, (file, bytes)) in (0..).zip(FILES) {
        fs::write(root.join(file), data(&[number], bytes))?;
    }
    unless_unknown(fs::hard_link(root.join(LINK.0), root.join(LINK.1)))?;
    let old = rustix::fs::setxattr(root.join(FILES[0].0), OLD_ATTRIBUTE, b"old", XattrFlags::empty());
    unless_unknown(old.map_err(io::Error::from))?;
    // Whatever takes blocks next may show what was in them.
    let stale = root.join("stale");
    fs::write(&stale, vec![STALE; STALE_BYTES])?;
    File::open(&stale)?.sync_all()?;
    sync(root)?;
    fs::remove_file(&stale)?;
    sync(root)
}

/// The inode numbers of everything below a root, by path. Files are told apart by them, so they have to outlive a mount.
pub fn numbers(root: &Path) -> BTreeMap<String, u64> {
    Tree::read(root).nodes.into_iter().map(|(path, node)| (path, node.inode)).collect()
}

/// Not every filesystem has hard links and attributes.
fn unless_unknown(result: io::Result<()>) -> io::Result<()> {
    use rustix::io::Errno;
    match result {
        Err(error)
            if [Errno::NOTSUP, Errno::NOSYS, Errno::PERM]
                .map(Errno::raw_os_error)
                .contains(&error.raw_os_error().unwrap_or(0)) =>
        {
            Ok(())
        }
        other => other,
    }
}

fn sync(root: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(root)?)?)
}

/// Bytes that are found nowhere else.
fn data(place: &[u64], bytes: u64) -> Vec<u8> {
    let mut data = vec![0; bytes as usize];
    Random::new(derive(1, place)).fill(&mut data);
    data
}

#[derive(Debug)]
pub struct Performed {
    pub(super) sequence: Sequence,
    /// The tree before the first call, and after each.
    pub(super) trees: Vec<Tree>,
}

impl Performed {
    /// Carries a sequence out below the root of a [planted](plant) filesystem. `returned` is called before the first call, and
    /// when each has returned.
    ///
    /// # Errors
    /// When a call fails, in words with the call. What came before it was done.
    pub fn perform(root: &Path, sequence: &Sequence, returned: &mut dyn FnMut()) -> Result<Self, String> {
        let mut trees = vec![Tree::read(root)];
        returned();
        for (number, call) in (1..).zip(sequence.calls()) {
            make(root, call, number).map_err(|error| format!("{call}: {error}"))?;
            returned();
            let tree = if call.persists() { trees.last().cloned().unwrap_or_default() } else { Tree::read(root) };
            trees.push(tree);
        }
        Ok(Self { sequence: sequence.clone(), trees })
    }
}

fn make(root: &Path, call: &Call, number: u64) -> io::Result<()> {
    let at = |path: &str| if path == "." { root.to_owned() } else { root.join(path) };
    let open = |path: &str| OpenOptions::new().write(true).open(at(path));
    let fallocate = |path: &str, flags: FallocateFlags, offset: u64, bytes: u64| {
        Ok::<(), io::Error>(rustix::fs::fallocate(open(path)?, flags, offset, bytes)?)
    };
    let keep = FallocateFlags::KEEP_SIZE;
    match call {
        Call::Create(path) => OpenOptions::new().write(true).create_new(true).open(at(path)).map(drop),
        Call::Mkdir(path) => fs::create_dir(at(path)),
        Call::Link(from, to) => fs::hard_link(at(from), at(to)),
        Call::Rename(from, to) => fs::rename(at(from), at(to)),
        Call::Unlink(path) => fs::remove_file(at(path)),
        Call::Rmdir(path) => fs::remove_dir(at(path)),
        Call::Truncate(path, length) => open(path)?.set_len(*length),
        Call::Punch(path, offset, bytes) => fallocate(path, FallocateFlags::PUNCH_HOLE | keep, *offset, *bytes),
        Call::Allocate(path, offset, bytes) => fallocate(path, FallocateFlags::empty(), *offset, *bytes),
        Call::Reserve(path, offset, bytes) => fallocate(path, keep, *offset, *bytes),
        Call::Zero(path, offset, bytes) => fallocate(path, FallocateFlags::ZERO_RANGE, *offset, *bytes),
        Call::Write(path, offset, bytes) => open(path)?.write_all_at(&data(&[u64::MAX, number], *bytes), *offset),
        Call::SetAttribute(path, name) => {
            let value = format!("set by call {number}");
            Ok(rustix::fs::setxattr(at(path), name.as_str(), value.as_bytes(), XattrFlags::empty())?)
        }
        Call::RemoveAttribute(path, name) => Ok(rustix::fs::removexattr(at(path), name.as_str())?),
        Call::Fsync(path) => File::open(at(path))?.sync_all(),
        Call::Fdatasync(path) => File::open(at(path))?.sync_data(),
        Call::Sync => sync(root),
    }
}
