//! Where in the tree of mounts a path is.

use crate::place::mount::MountEntry;
use std::path::{Path, PathBuf};

/// The nearest directory above a path, or itself, that is there; links resolved.
pub(super) fn existing(path: &Path) -> Option<PathBuf> {
    std::path::absolute(path).ok()?.ancestors().find_map(|ancestor| ancestor.canonicalize().ok())
}

/// The mount that a path is in: of those whose mount point is the longest part of it, the one made last.
pub(super) fn mount_of<'m>(path: &Path, mounts: &'m [MountEntry]) -> Option<&'m MountEntry> {
    mounts.iter().filter(|mount| path.starts_with(&mount.target)).max_by_key(|mount| mount.target.components().count())
}
