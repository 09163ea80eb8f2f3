//! Undoing what a killed run left, and only that.

use super::{Entry, JournalError, Undo, entry::By};
use crate::{
    machine::Machine,
    place::work_directory::{WorkDirectory, WorkDirectoryError},
};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Leftover {
    pub what: String,
    /// Why it is still there, or could not be looked at; `None` when it is undone, or nothing was to be done yet.
    pub error: Option<String>,
    /// Whether it is a place that could not be looked into, in which nothing may be left.
    pub unseen: bool,
    /// The named disk whose contents go with it.
    pub disk: Option<PathBuf>,
}

/// Why it could not be found out what was left; completes "cannot clean: ".
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    #[error(transparent)]
    WorkDirectory(#[from] WorkDirectoryError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl CleanError {
    pub const fn system(&self) -> Option<&io::Error> {
        match self {
            Self::WorkDirectory(WorkDirectoryError::File { cause, .. }) => Some(cause),
            Self::WorkDirectory(_) => None,
            Self::Journal(cause) => cause.system(),
        }
    }
}

/// Lists what a killed run left in (or made from) a work directory and, unless `dry_run`, undoes it, latest first.
///
/// Only what the journal names is touched, and each thing only when it is recognised: a file or a tree by its number, a
/// zram device by its number and size, a setting by its value, a guest's process by its program and directory, a
/// filesystem on a named device by its UUID. That goes only if the device is one of `may_lose`: it may hold other data by now.
///
/// Each lane has a journal of its own. One that cannot be used is reported like a thing that could not be undone, and the
/// others are cleaned all the same.
///
/// # Errors
/// When a run is using the work directory, or its journal cannot be read.
pub fn clean(
    work_directory: &Path,
    dry_run: bool,
    may_lose: &[PathBuf],
    machine: &Machine,
) -> Result<Vec<Leftover>, CleanError> {
    let looked = work_directory.try_exists();
    if !looked.map_err(|cause| WorkDirectoryError::File { path: work_directory.to_owned(), cause })? {
        return Ok(Vec::new());
    }
    let work = WorkDirectory::lock(work_directory)?;
    let mut found = clean_one(&work, dry_run, may_lose, machine)?;
    for lane in work.lanes() {
        let cleaned = WorkDirectory::lock(&lane)
            .map_err(CleanError::from)
            .and_then(|work| Ok(clean_one(&work, dry_run, may_lose, machine)?));
        found.extend(cleaned.unwrap_or_else(|error| {
            let words = match error {
                CleanError::WorkDirectory(WorkDirectoryError::Locked { holder, .. }) => {
                    format!("in use by {holder}; wait for it")
                }
                error => error.to_string(),
            };
            vec![Leftover { what: lane.display().to_string(), error: Some(words), unseen: true, disk: None }]
        }));
    }
    Ok(found)
}

fn clean_one(
    work: &WorkDirectory,
    dry_run: bool,
    may_lose: &[PathBuf],
    machine: &Machine,
) -> Result<Vec<Leftover>, JournalError> {
    let mut undo = Undo::open(work.path(), machine)?;
    let mut found = Vec::new();
    let (mut listed, mut in_the_way): (Vec<Entry>, Option<String>) = (Vec::new(), None);
    for (id, entry) in undo.in_undo_order() {
        let there = entry.is_there(machine, By::Later(may_lose));
        let disk = || entry.disk().map(Path::to_owned);
        match there {
            Ok(false) if !dry_run => undo.forget(id),
            Ok(false) => {}
            Ok(true) => {
                // Undoing one undoes the other, which only a dry run does not see.
                if dry_run && listed.iter().any(|known: &Entry| known.is_one_with(&entry)) {
                    continue;
                }
                let what = entry.describe();
                listed.push(entry.clone());
                let error = match &in_the_way {
                    _ if dry_run => None,
                    Some(holder) => Some(format!("{holder} has to go first")),
                    None => undo.undo_by(id, By::Later(may_lose)).err().map(|error| error.words),
                };
                if error.is_some() && entry.holds_others() {
                    in_the_way.get_or_insert_with(|| what.clone());
                }
                found.push(Leftover { what, error, unseen: false, disk: disk() });
            }
            Err(error) => {
                let (what, error) = (error.what, Some(error.words));
                found.push(Leftover { what, error, unseen: false, disk: disk() });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_lane_that_cannot_be_cleaned_hides_no_other() {
        let parent = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let (path, machine) = (parent.path().join("work"), Machine::fake());
        let lane = |number: usize| path.join(format!("lane-{number}"));
        for number in 0..3 {
            fs::create_dir_all(lane(number)).expect("made");
        }
        // As a kill leaves it: the entry is in the journal and the directory is there.
        let tree = lane(2).join("fstone-load-1");
        let mut killed = Undo::begin(&lane(2), &[], &machine).expect("begins");
        killed.record(Entry::Tree { path: tree.clone(), id: None, hung: None }).expect("records");
        std::mem::forget(killed);
        fs::create_dir(&tree).expect("made");
        fs::write(lane(0).join(super::super::entry::JOURNAL_NAME), "another program's\n").expect("written");
        let _in_use = WorkDirectory::lock(&lane(1)).expect("free");

        for dry_run in [true, false] {
            let found = clean(&path, dry_run, &[], &machine).expect("the work directory can be cleaned");
            let errors: Vec<Option<&str>> = found.iter().map(|leftover| leftover.error.as_deref()).collect();
            assert!(
                matches!(errors[..], [Some(foreign), Some(used), None]
                    if foreign.contains("not a line of a journal") && used.starts_with("in use by process")),
                "{errors:?}"
            );
            assert_eq!(found.iter().map(|leftover| leftover.unseen).collect::<Vec<_>>(), [true, true, false]);
            assert_eq!(
                [&found[0].what, &found[1].what],
                [0, 1].map(|number| lane(number).display().to_string()).each_ref()
            );
            assert!(found[2].what.contains("fstone-load-1"), "{}", found[2].what);
            assert_eq!(tree.exists(), dry_run);
        }
    }
}
