//! Undoing what a killed run left, and only that.

use super::{JournalError, Undo, UndoError, entry::By};
use crate::{
    machine::Machine,
    place::work_directory::{WorkDirectory, WorkDirectoryError},
};
use std::path::Path;

/// Something a killed run left.
#[derive(Debug)]
pub struct Leftover {
    /// What it is, for a person.
    pub what: String,
    /// Why it could not be undone; `None` when it was, or when nothing was to be done yet.
    pub error: Option<UndoError>,
}

/// Why it could not be found out what was left; completes "failed to clean: ".
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    /// The work directory cannot be had.
    #[error(transparent)]
    WorkDirectory(#[from] WorkDirectoryError),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Lists what a killed run left in (or made from) a work directory and, unless `dry_run`, undoes it, latest first.
///
/// Only what the journal names is touched, and each thing only when it is recognised: a file or a tree by its number, a
/// zram device by its number and size, a setting by its value, a guest's process by its program and directory, a
/// filesystem on a named device by its UUID.
///
/// # Errors
/// When a run is using the work directory, or its journal cannot be read.
pub fn clean(work_directory: &Path, dry_run: bool, machine: &Machine) -> Result<Vec<Leftover>, CleanError> {
    if !work_directory.exists() {
        return Ok(Vec::new());
    }
    let work = WorkDirectory::lock(work_directory)?;
    let mut found = clean_one(&work, dry_run, machine)?;
    for lane in work.lanes() {
        found.extend(clean_one(&WorkDirectory::lock(&lane)?, dry_run, machine)?);
    }
    Ok(found)
}

/// The same with one journal.
fn clean_one(work: &WorkDirectory, dry_run: bool, machine: &Machine) -> Result<Vec<Leftover>, CleanError> {
    let mut undo = Undo::open(work.path(), machine)?;
    let mut found = Vec::new();
    let mut in_the_way: Option<String> = None;
    for (id, entry) in undo.in_undo_order() {
        let there = entry.is_there(machine);
        match there {
            Ok(false) if !dry_run => undo.forget(id),
            Ok(false) => {}
            Ok(true) => {
                let what = entry.describe();
                // Killed while an entry was replaced by one that says more, both are there; undoing one undoes the other.
                if dry_run && found.iter().any(|known: &Leftover| known.what == what) {
                    continue;
                }
                let error = match &in_the_way {
                    _ if dry_run => None,
                    Some(holder) => Some(UndoError { what: what.clone(), words: format!("{holder} has to go first") }),
                    None => undo.undo_by(id, By::Later).err(),
                };
                if error.is_some() && entry.holds_others() {
                    in_the_way.get_or_insert_with(|| what.clone());
                }
                found.push(Leftover { what, error });
            }
            Err(error) => found.push(Leftover { what: entry.describe(), error: Some(error) }),
        }
    }
    Ok(found)
}
