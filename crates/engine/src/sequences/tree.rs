//! A small tree of files, as the kernel shows it.

use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Most bytes of a file that are read, and most entries: a broken filesystem may show anything.
const MAX_BYTES: u64 = 4 << 20;
const MAX_ENTRIES: usize = 4096;
const MAX_VALUE: usize = 4096;
/// Where the check of some filesystems puts what it finds.
const FOUND_BY_CHECK: &str = "lost+found";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) inode: u64,
    pub(super) directory: bool,
    pub(super) length: u64,
    pub(super) links: u64,
    pub(super) data: Vec<u8>,
    pub(super) attributes: BTreeMap<String, Vec<u8>>,
    pub(super) error: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) errors: Vec<String>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Self {
        let mut tree = Self::default();
        tree.list(root, "");
        tree
    }

    fn list(&mut self, root: &Path, below: &str) {
        let directory = root.join(below);
        let entries = fs::read_dir(&directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.errors.push(format!("the directory {} cannot be listed: {error}", shown(below))),
        };
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            if (below.is_empty() && name == FOUND_BY_CHECK) || self.nodes.len() >= MAX_ENTRIES {
                continue;
            }
            let path = if below.is_empty() { name } else { format!("{below}/{name}") };
            let node = Node::read(&entry.path());
            let directory = node.directory;
            self.nodes.insert(path.clone(), node);
            if directory {
                self.list(root, &path);
            }
        }
    }

    pub(super) fn names(&self, inode: u64) -> BTreeSet<&str> {
        self.nodes.iter().filter(|(_, node)| node.inode == inode).map(|(path, _)| path.as_str()).collect()
    }

    pub(super) fn by_number(&self, inode: u64) -> Option<(&str, &Node)> {
        self.nodes.iter().find(|(_, node)| node.inode == inode).map(|(path, node)| (path.as_str(), node))
    }

    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.nodes.get(path).map(|node| node.inode)
    }
}

pub(super) fn shown(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}

impl Node {
    fn read(path: &Path) -> Self {
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => return Self { error: Some(error.to_string()), ..Self::default() },
        };
        let mut node = Self {
            inode: metadata.ino(),
            directory: metadata.is_dir(),
            length: if metadata.is_dir() { 0 } else { metadata.len() },
            links: metadata.nlink(),
            ..Self::default()
        };
        let data = if metadata.is_file() { contents(path) } else { Ok(Vec::new()) };
        let attributes = attributes(path);
        match (data, attributes) {
            (Ok(data), Ok(attributes)) => (node.data, node.attributes) = (data, attributes),
            (Err(error), _) | (_, Err(error)) => node.error = Some(error.to_string()),
        }
        node
    }
}

fn contents(path: &Path) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut data)?;
    Ok(data)
}

fn attributes(path: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut names = vec![0u8; 64 << 10];
    let length = match rustix::fs::llistxattr(path, &mut names) {
        Ok(length) => length,
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(BTreeMap::new()),
        Err(error) => return Err(error.into()),
    };
    let names = names[..length].split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let mut found = BTreeMap::new();
    for name in names.filter(|name| name.starts_with("user.")) {
        let mut value = vec![0u8; MAX_VALUE];
        let length = rustix::fs::lgetxattr(path, &*name, &mut value)?;
        value.truncate(length);
        found.insert(name.into_owned(), value);
    }
    Ok(found)
}
