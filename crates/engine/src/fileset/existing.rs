//! What becomes of a file that is there already and has a name of the fileset's: the one place where that is decided.
//!
//! In a directory that is the load's own, or carries fstone's mark, such files were made by a load, and a load may make them anew. Elsewhere
//! they may be the user's own. A load writes to them only where one of its operations writes; it does not lay them out, lengthen or replace them.

use super::site::BuildContext;
use crate::options::Ownership;
use fstone_model::workload::Existing;
use rustix::fs::{FileType, Stat};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExistingFile {
    /// It is used as it is with so many bytes, even if it is shorter than one that the load would make.
    Used(u64),
    /// What is missing of it is written, from so many bytes on.
    Extended(u64),
    Replaced,
    /// It is not used, for this reason, and the load is refused.
    Refused(&'static str),
}

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

impl ExistingFile {
    /// Of a file that is to have so many bytes. `entry` is what has its name, and `target` what a link with that name leads to.
    pub(super) fn of(
        entry: &Stat,
        target: Option<&Stat>,
        wanted: u64,
        existing: Existing,
        site: &BuildContext<'_>,
    ) -> Self {
        let ownership = site.options.ownership;
        if !ownership.is_shared_directory() {
            return Self::Replaced;
        }
        if existing == Existing::Rebuild {
            return match ownership {
                _ if !is_regular(entry) => Self::Refused("no regular file"),
                _ if !site.changes => Self::Refused("it would be made anew, only to be read"),
                Ownership::ByName if entry.st_size > 0 => Self::Refused("not empty"),
                _ => Self::Replaced,
            };
        }
        let Some(file) = target.filter(|target| is_regular(target)) else {
            return Self::Refused("no regular file");
        };
        let size = file.st_size as u64;
        match site.prepares && size < wanted {
            true if site.depot.ledger().is_some() => Self::Refused("too short, and without stamps"),
            true => Self::Extended(size),
            false => Self::Used(size),
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Planned {
    pub(super) size: u64,
    pub(super) fate: Option<ExistingFile>,
}
