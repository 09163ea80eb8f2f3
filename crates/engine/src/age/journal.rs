//! How far ageing got in a directory, so that it goes on after it was interrupted.
//!
//! What ageing does follows from its seed and from what it finds when it looks at the filesystem. So the journal has each look, in a line
//! of its own, and how many operations are done. Who is killed between an operation and its count makes that operation once more. After
//! a power failure, operations that were counted may be undone: the count says for which boot it holds, or that all of it is durable.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;
use std::{
    collections::VecDeque,
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
};

const JOURNAL: &str = "journal";
const MAGIC: &str = "fstone age journal 1\n";
const COUNT_DIGITS: usize = 20;
const BOOT_LENGTH: usize = 36;
/// In place of a boot.
const DURABLE: &str = "durable";
const LONGEST: u64 = 64 << 20;

/// What a look found, or how ageing ended.
type Numbers = [f64; 4];

/// Keeps other processes from a directory of ageing, also while it is removed.
#[derive(Debug)]
pub struct Held {
    /// The lock of a journal ends when that is removed, and others could make another before the directory is gone.
    directory: File,
    /// Not every filesystem locks directories.
    journal: File,
}

#[derive(Debug)]
pub struct Journal {
    held: Held,
    length: u64,
    boot: String,
    looks: VecDeque<Numbers>,
    done: u64,
    ended: Option<Numbers>,
}

/// Why a directory is not aged, said after its path and a colon.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("another process ages it")]
    Busy,
    #[error("it is no directory of fstone's ageing")]
    Foreign,
    #[error("it was aged otherwise")]
    Other,
    /// Some of what is counted may not be there. Nobody else finds that out, or begins anew, until this is dropped.
    #[error("the machine went down while it was aged, or another build of fstone began it")]
    Lost { held: Held },
    #[error("{cause}")]
    System { cause: io::Error },
}

impl From<io::Error> for JournalError {
    fn from(cause: io::Error) -> Self {
        Self::System { cause }
    }
}

impl From<Errno> for JournalError {
    fn from(errno: Errno) -> Self {
        Self::System { cause: errno.into() }
    }
}

impl Journal {
    /// Opens the journal of a directory that belongs to this user alone, and makes one if the directory is empty. `key` says in a line
    /// what the state depends on, `build` which program can go on; `boot` is this boot's number.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing in the directory may be relied on.
    pub fn open(directory: &Path, key: &str, build: &str, boot: &str) -> Result<Self, JournalError> {
        let above = locked_directory(directory)?;
        let is_new = fs::read_dir(directory)?.all(|entry| entry.is_ok_and(|entry| entry.file_name() == JOURNAL));
        let (held, text) = locked(above, if is_new { OFlags::CREATE } else { OFlags::empty() })?;
        let boot = format!("{boot:BOOT_LENGTH$.BOOT_LENGTH$}");
        let mut journal = Self { held, length: 0, boot, looks: VecDeque::new(), done: 0, ended: None };
        if is_new && text.is_empty() {
            let head = format!("{MAGIC}{:0COUNT_DIGITS$} {}\n{key}\n{build}\n", 0, journal.boot);
            journal.held.journal.write_all_at(head.as_bytes(), 0)?;
            journal.length = head.len() as u64;
            journal.held.journal.sync_all()?;
            journal.held.directory.sync_all()?;
            return Ok(journal);
        }
        // A last line that is not whole was about to be written.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        journal.length = whole.len() as u64;
        let mut lines = whole.strip_prefix(MAGIC).ok_or(JournalError::Foreign)?.lines();
        let count = lines.next().and_then(|line| line.split_once(' ')).ok_or(JournalError::Foreign)?;
        journal.done = count.0.parse().map_err(|_| JournalError::Foreign)?;
        if lines.next() != Some(key) {
            return Err(JournalError::Other);
        }
        let is_of_this_build = lines.next() == Some(build);
        for line in lines {
            let (word, numbers) = line.split_once(' ').ok_or(JournalError::Foreign)?;
            let numbers: Option<Vec<f64>> = numbers.split(' ').map(|number| number.parse().ok()).collect();
            let numbers = numbers.and_then(|all| Numbers::try_from(all).ok()).ok_or(JournalError::Foreign)?;
            match word {
                "look" => journal.looks.push_back(numbers),
                "end" => journal.ended = Some(numbers),
                _ => return Err(JournalError::Foreign),
            }
        }
        let is_reliable = is_of_this_build && (count.1.trim() == DURABLE || count.1 == journal.boot);
        if journal.ended.is_some() || is_reliable {
            Ok(journal)
        } else {
            Err(JournalError::Lost { held: journal.held })
        }
    }

    /// Keeps others from a directory that was aged.
    ///
    /// # Errors
    /// [`JournalError::Busy`], and what is no such directory.
    pub fn hold(directory: &Path) -> Result<Held, JournalError> {
        let (held, text) = locked(locked_directory(directory)?, OFlags::empty())?;
        if text.starts_with(MAGIC) { Ok(held) } else { Err(JournalError::Foreign) }
    }

    /// How many operations are done, when it was opened.
    pub const fn done(&self) -> u64 {
        self.done
    }

    /// How it ended, if it did.
    pub const fn ended(&self) -> Option<Numbers> {
        self.ended
    }

    pub(super) fn look<E>(
        &mut self,
        look: impl FnOnce() -> Result<Numbers, E>,
    ) -> Result<Result<Numbers, E>, io::Error> {
        if let Some(earlier) = self.looks.pop_front() {
            return Ok(Ok(earlier));
        }
        let found = look();
        if let Ok(found) = &found {
            self.add("look", *found)?;
        }
        Ok(found)
    }

    fn add(&mut self, word: &str, [a, b, c, d]: Numbers) -> io::Result<()> {
        let line = format!("{word} {a} {b} {c} {d}\n");
        self.held.journal.write_all_at(line.as_bytes(), self.length)?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// The next operation is made now, and may be undone if the machine goes down.
    pub(super) fn go_on(&self) -> io::Result<()> {
        self.holds_for(&self.boot)
    }

    pub(super) fn count(&self, done: u64) -> io::Result<()> {
        self.held.journal.write_all_at(format!("{done:0COUNT_DIGITS$}").as_bytes(), MAGIC.len() as u64)
    }

    /// All operations until now are durable.
    pub(super) fn settle(&self) -> io::Result<()> {
        self.holds_for(DURABLE)
    }

    fn holds_for(&self, boot: &str) -> io::Result<()> {
        let at = MAGIC.len() + COUNT_DIGITS + 1;
        self.held.journal.write_all_at(format!("{boot:BOOT_LENGTH$}").as_bytes(), at as u64)?;
        self.held.journal.sync_all()
    }

    pub(super) fn end(&mut self, how: Numbers) -> io::Result<()> {
        self.add("end", how)?;
        self.held.journal.sync_all()
    }
}

fn locked_directory(path: &Path) -> Result<File, JournalError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if flock(&directory, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Err(JournalError::Busy);
    }
    // Who had it locked before may have removed it.
    let locked = directory.metadata()?;
    let is_there = fs::symlink_metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (locked.dev(), locked.ino()));
    if is_there { Ok(directory) } else { Err(JournalError::Busy) }
}

/// A directory with its journal, both locked, and what is in the journal.
fn locked(directory: File, how: OFlags) -> Result<(Held, String), JournalError> {
    let how = how | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let journal = match openat(&directory, JOURNAL, how, Mode::from_raw_mode(0o600)) {
        Err(Errno::NOENT | Errno::LOOP | Errno::ISDIR) => return Err(JournalError::Foreign),
        opened => File::from(opened?),
    };
    let facts = journal.metadata()?;
    if !facts.is_file() || facts.uid() != rustix::process::geteuid().as_raw() || facts.len() > LONGEST {
        return Err(JournalError::Foreign);
    }
    flock(&journal, FlockOperation::NonBlockingLockExclusive).map_err(|_| JournalError::Busy)?;
    let mut text = vec![0; facts.len() as usize];
    journal.read_exact_at(&mut text, 0)?;
    let text = String::from_utf8(text).map_err(|_| JournalError::Foreign)?;
    Ok((Held { directory, journal }, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_taken_up_by_the_same_ageing_alone_and_not_after_a_power_failure() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = place.path();
        let open = |key, boot| Journal::open(path, key, "build", boot);
        let look = |journal: &mut Journal, found: f64| {
            journal.look(|| Ok::<_, ()>([found, 0.1 + 0.2, 1e300, 0.0])).expect("written").expect("found")[0]
        };
        let mut journal = open("key", "boot 1").expect("it is empty");
        assert!(matches!(open("key", "boot 1"), Err(JournalError::Busy)));
        assert_eq!((look(&mut journal, 1.0), look(&mut journal, 2.0)), (1.0, 2.0));
        journal.count(7).expect("written");
        drop(journal);
        fs::create_dir(path.join("files")).expect("made");
        // The next line was about to be written.
        let file = File::options().write(true).open(path.join(JOURNAL)).expect("there");
        file.write_all_at(b"look 3 ", file.metadata().expect("there").len()).expect("written");
        assert!(matches!(open("another", "boot 1"), Err(JournalError::Other)));
        let lost = open("key", "boot 2");
        assert!(matches!(lost, Err(JournalError::Lost { .. })));
        assert!(matches!(Journal::hold(path), Err(JournalError::Busy)), "until it is removed");
        fs::rename(path.join(JOURNAL), path.join("gone")).expect("renamed");
        assert!(matches!(open("key", "boot 2"), Err(JournalError::Busy)), "its journal is removed first");
        fs::rename(path.join("gone"), path.join(JOURNAL)).expect("renamed");
        drop(lost);
        assert!(matches!(Journal::open(path, "key", "another", "boot 1"), Err(JournalError::Lost { .. })));
        let mut journal = open("key", "boot 1").expect("it was killed");
        assert_eq!((journal.done(), look(&mut journal, 9.0), look(&mut journal, 9.0)), (7, 1.0, 2.0), "as before");
        assert_eq!(look(&mut journal, 3.0), 3.0, "a new one");
        journal.settle().expect("written");
        drop(journal);
        let mut journal = open("key", "boot 2").expect("all is durable");
        assert_eq!([9.0; 3].map(|found| look(&mut journal, found)), [1.0, 2.0, 3.0]);
        journal.go_on().expect("written");
        drop(journal);
        assert!(matches!(open("key", "boot 3"), Err(JournalError::Lost { .. })));
        open("key", "boot 2").expect("it was killed").end([1.0, 2.0, 3.0, 0.0]).expect("written");
        assert_eq!(open("key", "boot 3").expect("it ended").ended(), Some([1.0, 2.0, 3.0, 0.0]));
        let held = Journal::hold(path).expect("it ended");
        assert!(matches!(Journal::hold(path), Err(JournalError::Busy)));
        drop(held);
        fs::write(path.join(JOURNAL), "mine").expect("written");
        assert!(matches!(Journal::hold(path), Err(JournalError::Foreign)));
        assert!(matches!(open("key", "boot 1"), Err(JournalError::Foreign)));
        fs::remove_file(path.join(JOURNAL)).expect("removed");
        assert!(matches!(open("key", "boot 1"), Err(JournalError::Foreign)), "there is something else");
    }
}
