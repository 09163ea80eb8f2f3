//! The files a load works on: which there are, how they are called, how large they are, and how they came to be.
//!
//! [`table`] knows which files live and who works on them, in 16 bytes a file; [`layout`] gives a file its [`path`];
//! [`size`] draws sizes; `snapshot` tells another rank what there is; [`build`] makes and checks the real files, in a directory that `claim` allows;
//! [`existing`] decides what becomes of files that are there, and finds parts of them without data.

mod beneath;
pub(crate) mod build;
mod claim;
pub(crate) mod existing;
mod growing;
mod layout;
mod named;
mod path;
mod setup_progress;
pub(crate) mod site;
mod size;
mod snapshot;
mod table;

pub(crate) use claim::MARK;
pub(crate) use growing::Growing;
pub(crate) use layout::Layout;
pub(crate) use path::PathBuffer;
pub(crate) use size::Sizes;
pub(crate) use table::{Draw, FileTable, Hold};

use fstone_model::workload::{Existing, Fileset};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, OFlags};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A fileset at run time.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) spec: Fileset,
    pub(crate) layout: Layout,
    pub(crate) sizes: Sizes,
    pub(crate) table: FileTable,
    /// Its directory; none on an engine that touches nothing.
    directory: Option<OwnedFd>,
    /// Where FFSB's metadata operation works, once it is there.
    metadata: Option<OwnedFd>,
    pub(crate) device: Option<OwnedFd>,
    pub(crate) made_directories: Mutex<Numbered>,
    /// The leaf directories, in place of these; none in a fileset without.
    pub(crate) leaves: FileTable,
    pub(crate) metadata_directories: Mutex<Numbered>,
    links: AtomicU64,
    /// Which file, and which free name, comes next by [`fstone_model::workload::FileChoice::Rotation`].
    pub(crate) next_file: AtomicU64,
    pub(crate) next_name: AtomicU64,
    pub(crate) next_leaf: AtomicU64,
    pub(crate) next_leaf_name: AtomicU64,
    /// Bytes of runs that were written, in their order.
    pub(crate) gone_through: AtomicU64,
    /// Whether its files were there before, and were looked at.
    pub(crate) found: bool,
}

/// Numbers of things that exist, and the next that does not.
#[derive(Debug, Default)]
pub(crate) struct Numbered {
    pub(crate) next: u64,
    pub(crate) existing: Vec<u64>,
}

impl Numbered {
    pub(crate) fn fresh(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// Takes out the `index`-th; the caller owns it now.
    pub(crate) fn take(&mut self, index: u64) -> Option<u64> {
        let index = usize::try_from(index).ok()?;
        (index < self.existing.len()).then(|| self.existing.swap_remove(index))
    }
}

impl Files {
    pub(crate) fn new(spec: &Fileset, sizes: Sizes, names: u64) -> Self {
        let layout = Layout::new(spec);
        let first_made = layout.top_directories();
        let (table, leaves) = (FileTable::new(names), FileTable::new(spec.leaf_directories));
        // Others are looked at, or made before the load, in the order of their numbers.
        if layout.is_deep() && (spec.preallocated == 0.0 || spec.existing == Existing::Assume) {
            [&table, &leaves].into_iter().for_each(|table| table.arrange(|turn| layout.depth_first(turn)));
        }
        Self {
            spec: spec.clone(),
            sizes,
            table,
            directory: None,
            metadata: None,
            device: None,
            made_directories: Mutex::new(Numbered { next: first_made, existing: Vec::new() }),
            leaves,
            metadata_directories: Mutex::default(),
            links: AtomicU64::new(0),
            next_file: AtomicU64::new(0),
            next_name: AtomicU64::new(0),
            next_leaf: AtomicU64::new(0),
            next_leaf_name: AtomicU64::new(0),
            gone_through: AtomicU64::new(0),
            found: false,
            layout,
        }
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_ref().map_or(CWD, OwnedFd::as_fd)
    }

    pub(crate) fn metadata(&self) -> BorrowedFd<'_> {
        self.metadata.as_ref().map_or(CWD, OwnedFd::as_fd)
    }

    /// What a file is opened with, beside everything else.
    pub(crate) fn when_opened(&self) -> OFlags {
        if self.spec.made_when_opened { OFlags::CREATE } else { OFlags::empty() }
    }

    pub(crate) fn fresh_link(&self) -> u64 {
        self.links.fetch_add(1, Ordering::Relaxed)
    }

    /// A file's path relative to the load's directory, for messages.
    pub(crate) fn shown(&self, relative: &str) -> String {
        if self.spec.directory.is_empty() { relative.to_owned() } else { format!("{}/{relative}", self.spec.directory) }
    }
}
