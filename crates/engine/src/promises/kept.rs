//! What became of promises.

use std::path::PathBuf;

/// Broken promises described one by one; any more are only counted.
const MAX_BROKEN: usize = 20;

fstone_model::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Property: name {
        /// Data that was synced is there, or newer data.
        Data => "data",
        /// A file is as long as it was when it was synced, or longer.
        Length => "length",
        /// A file that was synced can be found by the name it had, or by one that it got later.
        Name => "name",
        /// A name that was removed before everything was synced does not come back.
        Removal => "removal",
        /// By a name that was only given to other files by rename there is one of them, whole where all of them were synced.
        Replacement => "replacement",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub property: Property,
    /// About which file, below the filesystem's root.
    pub path: PathBuf,
    pub words: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Promises looked at: one for each file's data, length and name, and one for each removed or replaced name.
    pub checked: u64,
    pub broken: u64,
    pub first: Vec<Broken>,
}

impl Kept {
    pub(super) fn note(&mut self, broken: Option<Broken>) {
        self.checked += 1;
        if let Some(broken) = broken {
            self.broken += 1;
            if self.first.len() < MAX_BROKEN {
                self.first.push(broken);
            }
        }
    }
}
