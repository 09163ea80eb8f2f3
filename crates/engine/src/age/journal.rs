//! How far ageing got in a directory, so that it goes on after it was interrupted.
//!
//! What ageing does follows from its seed and from what it finds when it looks at the filesystem. So the journal has each look, in a line
//! of its own, and how many operations are done. Who is killed between an operation and its count makes that operation once more. After
//! a power failure, operations that were counted may be undone: the count says for which boot it holds, or that all of it is durable.
//!
//! A copy of the directory has other extents: the journal says which directory it is of.
//!
//! Runs that measure beside it lock the directory of the files, which only its removal locks alone: a run can hold that while one of its
//! own trials ages.
//!
//! The directory is opened once, and everything is done relative to that descriptor: whatever takes its name later is left alone.

use fstone_model::age::AGED_DIRECTORY;
use rustix::fs::{
    AtFlags, Dir, FlockOperation, Mode, OFlags, StatxAttributes, StatxFlags, flock, openat, statx, unlinkat,
};
use rustix::io::Errno;
use std::{
    collections::VecDeque,
    fs::{self, File},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, MetadataExt},
    },
    path::{Path, PathBuf},
    str::FromStr,
    time::UNIX_EPOCH,
};

pub(super) const JOURNAL: &str = "journal";
const MAGIC: &str = "fstone age journal 3\n";
/// The same of all builds.
const OF_ANY_BUILD: &str = "fstone age journal ";
const COUNT_DIGITS: usize = 20;
const BOOT_LENGTH: usize = 36;
/// In place of a boot.
const DURABLE: &str = "durable";
const REMOVED: &str = "removed";
const LONGEST: u64 = 64 << 20;
const ALONE: FlockOperation = FlockOperation::NonBlockingLockExclusive;

/// What is found before the first operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Beginning {
    pub(super) total_bytes: f64,
    pub(super) used_bytes: f64,
    pub(super) block_bytes: u64,
    pub(super) unix_seconds: i64,
}

/// What is found between two operations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Look {
    pub(super) total_bytes: f64,
    pub(super) used_bytes: f64,
    /// What of it is kept for files that grow.
    pub(super) growth_bytes: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lived {
    pub operations: u64,
    pub written_bytes: u64,
    /// What was to be written.
    pub planned_bytes: f64,
    /// Of those written, in place; `None` if the build that aged did not note it.
    pub overwritten_bytes: Option<u64>,
}

/// Keeps other processes from a directory of ageing, while it is aged, measured on or removed.
#[derive(Debug)]
pub struct Held {
    /// The lock of a journal ends when that is removed, and others could make another before the directory is gone.
    directory: File,
    /// Not every filesystem locks directories.
    journal: File,
    /// Locked to be removed.
    _files: Option<File>,
}

/// Keeps an aged directory from being removed.
#[derive(Debug)]
pub struct Kept {
    _files: File,
}

#[derive(Debug)]
pub struct Journal {
    held: Held,
    length: u64,
    boot: String,
    begun: Option<Beginning>,
    looks: VecDeque<Look>,
    done: u64,
    ended: Option<Lived>,
}

/// Why a directory is not aged, said after its path and a colon.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("another process ages it, measures on it or removes it")]
    Busy,
    #[error("it is no directory of fstone's ageing")]
    Foreign,
    #[error("it belongs to user {user}")]
    Owner { user: u32 },
    #[error("its mode is {mode:o}: others may enter or read it")]
    Exposed { mode: u32 },
    #[error("something is mounted on it")]
    Mounted,
    #[error("it has {}, which ageing did not make", path.display())]
    Others { path: PathBuf },
    #[error("it is a copy of an aged directory, and a copy lies elsewhere on the disk")]
    Copy,
    /// The number of its inode is the right one, and the filesystem has nothing more that stays when it is mounted anew.
    #[error("it cannot be distinguished from a copy, which would lie elsewhere on the disk")]
    Unsure { identity: String },
    #[error("it was aged otherwise")]
    Other,
    #[error("another build of fstone began to age it, and only that can go on")]
    Build,
    /// Some of what is counted may not be there. Nobody else finds that out, or begins anew, until this is dropped.
    #[error("{why}")]
    Lost { held: Held, why: &'static str },
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
    /// Opens the journal in an opened directory that belongs to this user alone, and makes one if the directory is empty; `path` is where
    /// the directory was opened. `key` says in a line what the state depends on, `build` which program can go on; `boot` is this boot's
    /// number.
    ///
    /// # Errors
    /// [`JournalError`]; then nothing in the directory may be relied on.
    pub fn open(directory: File, path: &Path, key: &str, build: &str, boot: &str) -> Result<Self, JournalError> {
        let mode = directory.metadata()?.mode() & 0o7777;
        lock_directory(&directory, path, ALONE)?;
        let has = entries(&directory)?;
        let is_new = has != Entries::Others;
        if mode & 0o077 != 0 {
            let is_own = match has {
                Entries::None => true,
                _ => locked(directory, OFlags::empty(), ALONE)?.1.starts_with(OF_ANY_BUILD),
            };
            return Err(if is_own { JournalError::Exposed { mode } } else { JournalError::Foreign });
        }
        let (held, text) = locked(directory, if is_new { OFlags::CREATE } else { OFlags::empty() }, ALONE)?;
        if is_new && text.is_empty() {
            return Ok(Self::begin(held, key, build, boot)?);
        }
        if text.starts_with(OF_ANY_BUILD) && !text.starts_with(MAGIC) {
            return Err(JournalError::Build);
        }
        let mut journal = Self::empty(held, boot);
        // A last line that is not whole was about to be written.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        journal.length = whole.len() as u64;
        let mut lines = whole.strip_prefix(MAGIC).ok_or(JournalError::Foreign)?.lines();
        let count = lines.next().and_then(|line| line.split_once(' ')).ok_or(JournalError::Foreign)?;
        journal.done = count.0.parse().map_err(|_| JournalError::Foreign)?;
        if count.1.trim() == REMOVED {
            return Err(JournalError::Lost { held: journal.held, why: "its removal was interrupted" });
        }
        let (identity, written) = (identity(&journal.held.directory)?, lines.next().unwrap_or_default());
        if written != identity {
            let inode = |identity: &str| identity.split_once(' ').map(|(inode, _)| inode.to_owned());
            let is_unsure = written.contains(ON) && inode(written) == inode(&identity);
            return Err(if is_unsure { JournalError::Unsure { identity } } else { JournalError::Copy });
        }
        if lines.next() != Some(key) {
            return Err(JournalError::Other);
        }
        let is_of_this_build = lines.next() == Some(build);
        for line in lines {
            journal.take(line).ok_or(JournalError::Foreign)?;
        }
        if journal.ended.is_some() {
            return Ok(journal);
        }
        match (is_of_this_build, count.1.trim() == DURABLE || count.1 == journal.boot) {
            (false, _) => Err(JournalError::Build),
            (true, false) => {
                Err(JournalError::Lost { held: journal.held, why: "the machine went down while it was aged" })
            }
            (true, true) => Ok(journal),
        }
    }

    /// Begins in a held directory in which nothing but a journal is left.
    ///
    /// # Errors
    /// Those of writing it.
    pub fn begin(held: Held, key: &str, build: &str, boot: &str) -> io::Result<Self> {
        let mut journal = Self::empty(held, boot);
        let identity = identity(&journal.held.directory)?;
        let head = format!("{MAGIC}{:0COUNT_DIGITS$} {}\n{identity}\n{key}\n{build}\n", 0, journal.boot);
        journal.held.journal.set_len(0)?;
        journal.held.journal.write_all_at(head.as_bytes(), 0)?;
        journal.length = head.len() as u64;
        journal.held.journal.sync_all()?;
        journal.held.directory.sync_all()?;
        Ok(journal)
    }

    fn empty(held: Held, boot: &str) -> Self {
        let boot = format!("{boot:BOOT_LENGTH$.BOOT_LENGTH$}");
        Self { held, length: 0, boot, begun: None, looks: VecDeque::new(), done: 0, ended: None }
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        match words.next()? {
            "begin" => {
                let [total_bytes, used_bytes] = [number(&mut words)?, number(&mut words)?];
                let (block_bytes, unix_seconds) = (number(&mut words)?, number(&mut words)?);
                self.begun = Some(Beginning { total_bytes, used_bytes, block_bytes, unix_seconds });
            }
            "look" => {
                let [total_bytes, used_bytes, growth_bytes] =
                    [number(&mut words)?, number(&mut words)?, number(&mut words)?];
                self.looks.push_back(Look { total_bytes, used_bytes, growth_bytes });
            }
            "end" => {
                let [operations, written_bytes] = [number(&mut words)?, number(&mut words)?];
                let planned_bytes = number(&mut words)?;
                // Not every build wrote it.
                let overwritten_bytes = words.next().map_or(Some(None), |word| word.parse().ok().map(Some))?;
                self.ended = Some(Lived { operations, written_bytes, planned_bytes, overwritten_bytes });
            }
            _ => return None,
        }
        words.next().is_none().then_some(())
    }

    /// Keeps others from a directory that was aged, to remove it.
    ///
    /// # Errors
    /// [`JournalError::Busy`], also while a run measures beside it, and what is no such directory.
    pub fn hold(path: &Path) -> Result<Held, JournalError> {
        let held = Self::hold_as(path, ALONE)?;
        match files(&held.directory) {
            Ok(files) if flock(&files, ALONE) == Err(Errno::WOULDBLOCK) => Err(JournalError::Busy),
            Ok(files) => Ok(Held { _files: Some(files), ..held }),
            Err(_) => Ok(held),
        }
    }

    /// Keeps others from ageing or removing it, but not from measuring beside it.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub fn share(path: &Path) -> Result<Held, JournalError> {
        Self::hold_as(path, FlockOperation::NonBlockingLockShared)
    }

    /// Keeps others from removing it, but not from ageing it; `None` if nothing is aged there.
    pub fn keep(path: &Path) -> Option<Kept> {
        let directory = opened(path).ok()?;
        let files = files(&directory).ok()?;
        flock(&files, FlockOperation::NonBlockingLockShared).ok()?;
        is_at(&directory, path).then_some(Kept { _files: files })
    }

    /// Removes a directory of this user's in which ageing did not begin: its journal is empty, or, where that is enough, missing. False
    /// if it is another one.
    ///
    /// # Errors
    /// As [`Self::hold`], and those of the removal.
    pub fn remove_empty(path: &Path, is_without: bool) -> Result<bool, JournalError> {
        let directory = opened(path)?;
        lock_directory(&directory, path, ALONE)?;
        let is_open = directory.metadata()?.mode() & 0o077 != 0;
        match entries(&directory)? {
            _ if is_open => return Ok(false),
            Entries::None if is_without => {}
            Entries::Journal => {
                let (held, text) = locked(directory, OFlags::empty(), ALONE)?;
                // All of the head is written at once, unless there is no room.
                if !OF_ANY_BUILD.starts_with(&text) {
                    return Ok(false);
                }
                unlinkat(&held.directory, JOURNAL, AtFlags::empty())?;
            }
            Entries::None | Entries::Others => return Ok(false),
        }
        fs::remove_dir(path)?;
        Ok(true)
    }

    fn hold_as(path: &Path, how: FlockOperation) -> Result<Held, JournalError> {
        let directory = opened(path)?;
        lock_directory(&directory, path, how)?;
        let (held, text) = locked(directory, OFlags::empty(), how)?;
        if text.starts_with(OF_ANY_BUILD) { Ok(held) } else { Err(JournalError::Foreign) }
    }

    /// How many operations are done, when it was opened.
    pub const fn done(&self) -> u64 {
        self.done
    }

    /// How it ended, if it did.
    pub const fn ended(&self) -> Option<Lived> {
        self.ended
    }

    pub const fn held(&self) -> &Held {
        &self.held
    }

    pub fn into_held(self) -> Held {
        self.held
    }

    /// What was found before, if this is done once more.
    pub(super) const fn begun(&self) -> Option<Beginning> {
        self.begun
    }

    pub(super) fn next_look(&mut self) -> Option<Look> {
        self.looks.pop_front()
    }

    pub(super) fn add_beginning(&mut self, found: Beginning) -> io::Result<()> {
        let Beginning { total_bytes, used_bytes, block_bytes, unix_seconds } = found;
        self.add(&format!("begin {total_bytes} {used_bytes} {block_bytes} {unix_seconds}\n"))
    }

    pub(super) fn add_look(&mut self, Look { total_bytes, used_bytes, growth_bytes }: Look) -> io::Result<()> {
        self.add(&format!("look {total_bytes} {used_bytes} {growth_bytes}\n"))
    }

    fn add(&mut self, line: &str) -> io::Result<()> {
        self.held.journal.write_all_at(line.as_bytes(), self.length)?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// The next operation is made now, and may be undone if the machine goes down.
    pub(super) fn go_on(&self) -> io::Result<()> {
        self.held.holds_for(&self.boot)
    }

    pub(super) fn count(&self, done: u64) -> io::Result<()> {
        self.held.journal.write_all_at(format!("{done:0COUNT_DIGITS$}").as_bytes(), MAGIC.len() as u64)
    }

    /// All operations until now are durable.
    pub(super) fn settle(&self) -> io::Result<()> {
        self.held.holds_for(DURABLE)
    }

    pub(super) fn end(&mut self, lived: Lived) -> io::Result<()> {
        let Lived { operations, written_bytes, planned_bytes, overwritten_bytes } = lived;
        let overwritten = overwritten_bytes.map_or_else(String::new, |bytes| format!(" {bytes}"));
        self.add(&format!("end {operations} {written_bytes} {planned_bytes}{overwritten}\n"))?;
        self.held.journal.sync_all()
    }
}

impl Held {
    pub const fn directory(&self) -> &File {
        &self.directory
    }

    /// From now on what is there counts as lost, until it is removed.
    ///
    /// # Errors
    /// Those of writing that; a full filesystem gets room only by the removal.
    pub fn begin_removal(&self) -> io::Result<()> {
        let mut magic = [0; MAGIC.len()];
        // What another version left is never taken up.
        if self.journal.read_exact_at(&mut magic, 0).is_err() || magic != *MAGIC.as_bytes() {
            return Ok(());
        }
        match self.holds_for(REMOVED) {
            Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => Ok(()),
            written => written,
        }
    }

    fn holds_for(&self, boot: &str) -> io::Result<()> {
        let at = MAGIC.len() + COUNT_DIGITS + 1;
        self.journal.write_all_at(format!("{boot:BOOT_LENGTH$}").as_bytes(), at as u64)?;
        self.journal.sync_all()
    }

    /// The key with which it was aged; `None` while that has not ended.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn key(&self) -> io::Result<Option<String>> {
        let mut text = vec![0; self.journal.metadata()?.len().min(LONGEST) as usize];
        self.journal.read_exact_at(&mut text, 0)?;
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.strip_prefix(MAGIC).unwrap_or_default().lines().skip(2);
        let key = lines.next().map(str::to_owned);
        Ok(key.filter(|_| lines.any(|line| line.starts_with("end "))))
    }

    /// Whether a path leads to it.
    pub fn is_at(&self, path: &Path) -> bool {
        is_at(&self.directory, path)
    }
}

fn number<T: FromStr>(words: &mut std::str::Split<'_, char>) -> Option<T> {
    words.next()?.parse().ok()
}

/// Where a filesystem has nothing but the number of its device to distinguish a directory from copies.
const ON: &str = " on ";

/// Tells a directory from its copies, also after it was mounted anew. Inode numbers are reused, so when it was made counts as well, or
/// the number of its generation, where the filesystem has one of them.
///
/// # Errors
/// Those of fstat(2).
pub fn identity(directory: &File) -> io::Result<String> {
    let facts = directory.metadata()?;
    let made = facts.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    let inode = facts.ino();
    Ok(match (made, generation(directory)) {
        (Some(made), _) => format!("{inode} made {}", made.as_nanos()),
        (None, Some(generation)) => format!("{inode} generation {generation}"),
        (None, None) => format!("{inode}{ON}{}", facts.dev()),
    })
}

/// A number that the filesystem gave to this use of the inode.
#[expect(unsafe_code, reason = "FS_IOC_GETVERSION is an ioctl that rustix does not have")]
fn generation(file: &File) -> Option<u32> {
    // The kernel says long and writes an int.
    let mut generation: [u32; 2] = [0; 2];
    // SAFETY: the kernel writes at most a long to the pointer, which is to a live local of that size.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::FS_IOC_GETVERSION as _, generation.as_mut_ptr()) };
    (result == 0 && generation[0] != 0).then_some(generation[0])
}

/// What is in a directory, a journal or others.
#[derive(PartialEq, Eq)]
enum Entries {
    None,
    Journal,
    Others,
}

fn entries(directory: &File) -> Result<Entries, JournalError> {
    let mut found = Entries::None;
    for entry in Dir::read_from(directory)? {
        match entry?.file_name().to_bytes() {
            b"." | b".." => {}
            name if name == JOURNAL.as_bytes() => found = Entries::Journal,
            _ => return Ok(Entries::Others),
        }
    }
    Ok(found)
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn opened(path: &Path) -> Result<File, JournalError> {
    match rustix::fs::open(path, DIRECTORY, Mode::empty()) {
        Err(Errno::LOOP | Errno::NOTDIR) => Err(JournalError::Foreign),
        Err(Errno::ACCESS) => Err(unreadable(path)),
        opened => Ok(File::from(opened?)),
    }
}

/// Why a directory cannot be read.
pub fn unreadable(path: &Path) -> JournalError {
    let user = fs::symlink_metadata(path).ok().map(|facts| facts.uid());
    match user.filter(|user| *user != rustix::process::geteuid().as_raw()) {
        Some(user) => JournalError::Owner { user },
        None => Errno::ACCESS.into(),
    }
}

fn files(directory: &File) -> Result<File, Errno> {
    openat(directory, AGED_DIRECTORY, DIRECTORY, Mode::empty()).map(File::from)
}

fn is_at(directory: &File, path: &Path) -> bool {
    let named = fs::symlink_metadata(path);
    directory.metadata().is_ok_and(|held| named.is_ok_and(|now| (now.dev(), now.ino()) == (held.dev(), held.ino())))
}

/// Locks a directory of this user's on which nothing is mounted.
fn lock_directory(directory: &File, path: &Path, how: FlockOperation) -> Result<(), JournalError> {
    let user = directory.metadata()?.uid();
    if user != rustix::process::geteuid().as_raw() {
        return Err(JournalError::Owner { user });
    }
    // Before Linux 5.8 the kernel does not say.
    let is_mount = statx(directory, "", AtFlags::EMPTY_PATH, StatxFlags::empty())
        .is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
    if is_mount {
        return Err(JournalError::Mounted);
    }
    if flock(directory, how) == Err(Errno::WOULDBLOCK) {
        return Err(JournalError::Busy);
    }
    // Who had it locked before may have removed it.
    if is_at(directory, path) { Ok(()) } else { Err(JournalError::Busy) }
}

/// A directory with its journal, both locked, and what is in the journal.
fn locked(directory: File, flags: OFlags, how: FlockOperation) -> Result<(Held, String), JournalError> {
    let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let journal = match openat(&directory, JOURNAL, flags, Mode::from_raw_mode(0o600)) {
        Err(Errno::NOENT | Errno::LOOP | Errno::ISDIR) => return Err(JournalError::Foreign),
        opened => File::from(opened?),
    };
    let facts = journal.metadata()?;
    let is_own = facts.is_file() && facts.nlink() == 1 && facts.uid() == rustix::process::geteuid().as_raw();
    if !is_own || facts.len() > LONGEST {
        return Err(JournalError::Foreign);
    }
    flock(&journal, how).map_err(|_| JournalError::Busy)?;
    let mut text = vec![0; facts.len() as usize];
    journal.read_exact_at(&mut text, 0)?;
    let text = String::from_utf8(text).map_err(|_| JournalError::Foreign)?;
    Ok((Held { directory, journal, _files: None }, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn open(path: &Path, key: &str, build: &str, boot: &str) -> Result<Journal, JournalError> {
        Journal::open(File::open(path).expect("it is there"), path, key, build, boot)
    }

    #[test]
    fn a_journal_is_taken_up_by_the_same_ageing_alone_and_not_after_a_power_failure() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = place.path();
        assert!(matches!(open(path, "key", "build", "boot 1"), Err(JournalError::Exposed { mode: 0o755 })));
        assert!(path.read_dir().expect("there").next().is_none());
        rustix::fs::chmod(path, Mode::RWXU).expect("ours");
        let open = |key, boot| open(path, key, "build", boot);
        let found = |total_bytes| Look { total_bytes, used_bytes: 0.1 + 0.2, growth_bytes: 1e300 };
        let look = |journal: &mut Journal, now: f64| {
            journal.next_look().unwrap_or_else(|| {
                journal.add_look(found(now)).expect("written");
                found(now)
            })
        };
        let begun = Beginning { total_bytes: 0.1 + 0.2, used_bytes: 3.0, block_bytes: 4096, unix_seconds: -1 };
        let mut journal = open("key", "boot 1").expect("it is empty");
        assert!(matches!(open("key", "boot 1"), Err(JournalError::Busy)));
        journal.add_beginning(begun).expect("written");
        assert_eq!([1.0, 2.0].map(|now| look(&mut journal, now)), [1.0, 2.0].map(found));
        journal.count(7).expect("written");
        drop(journal);
        fs::create_dir(path.join("files")).expect("made");
        // The next line was about to be written.
        let file = File::options().write(true).open(path.join(JOURNAL)).expect("there");
        file.write_all_at(b"look 3 ", file.metadata().expect("there").len()).expect("written");
        assert!(matches!(open("another", "boot 1"), Err(JournalError::Other)));
        assert!(matches!(super::tests::open(path, "key", "another", "boot 2"), Err(JournalError::Build)));
        let lost = open("key", "boot 2");
        assert!(matches!(lost, Err(JournalError::Lost { .. })));
        assert!(matches!(Journal::hold(path), Err(JournalError::Busy)), "until it is removed");
        fs::rename(path.join(JOURNAL), path.join("gone")).expect("renamed");
        assert!(matches!(open("key", "boot 2"), Err(JournalError::Busy)), "its journal is removed first");
        fs::rename(path.join("gone"), path.join(JOURNAL)).expect("renamed");
        drop(lost);
        let mut journal = open("key", "boot 1").expect("it was killed");
        assert_eq!((journal.done(), journal.begun()), (7, Some(begun)));
        assert_eq!([9.0; 2].map(|now| look(&mut journal, now)), [1.0, 2.0].map(found), "as before");
        assert_eq!(look(&mut journal, 3.0), found(3.0), "a new one");
        journal.settle().expect("written");
        drop(journal);
        let mut journal = open("key", "boot 2").expect("all is durable");
        assert_eq!([9.0; 3].map(|now| look(&mut journal, now)), [1.0, 2.0, 3.0].map(found));
        journal.go_on().expect("written");
        drop(journal);
        let Err(JournalError::Lost { held, .. }) = open("key", "boot 3") else { panic!("it may be undone") };
        let anew = Journal::begin(held, "key", "build", "boot 3").expect("written");
        assert!((anew.done(), anew.begun()) == (0, None) && matches!(Journal::hold(path), Err(JournalError::Busy)));
        drop(anew);
        let lived =
            Lived { operations: 1, written_bytes: u64::MAX, planned_bytes: 0.1 + 0.2, overwritten_bytes: Some(3) };
        open("key", "boot 3").expect("it was killed").end(lived).expect("written");
        assert_eq!(super::tests::open(path, "key", "another", "boot 4").expect("it ended").ended(), Some(lived));
        let held = Journal::hold(path).expect("it ended");
        assert!(matches!(Journal::hold(path), Err(JournalError::Busy)));
        held.begin_removal().expect("written");
        drop(held);
        drop(Journal::hold(path).expect("its removal goes on"));
        let Err(JournalError::Lost { held, .. }) = open("another", "boot 4") else { panic!("some of it is gone") };
        drop(Journal::begin(held, "another", "build", "boot 4").expect("written"));
        assert!(open("another", "boot 4").is_ok_and(|journal| journal.ended().is_none()));
        fs::write(path.join(JOURNAL), "mine").expect("written");
        assert!(matches!(Journal::hold(path), Err(JournalError::Foreign)));
        assert!(matches!(open("key", "boot 1"), Err(JournalError::Foreign)));
        fs::remove_file(path.join(JOURNAL)).expect("removed");
        assert!(matches!(open("key", "boot 1"), Err(JournalError::Foreign)), "there is something else");
    }

    #[test]
    fn a_copy_is_not_taken_up_and_what_is_measured_beside_is_shared() {
        let above = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let [path, copy] = ["aged", "copy"].map(|name| above.path().join(name));
        rustix::fs::mkdir(&path, Mode::RWXU).expect("made");
        let lived = Lived { operations: 1, written_bytes: 2, planned_bytes: 2.0, overwritten_bytes: None };
        open(&path, "key", "build", "boot").expect("it is empty").end(lived).expect("written");
        let copied = std::process::Command::new("cp").arg("-a").args([&path, &copy]).status();
        assert!(copied.is_ok_and(|status| status.success()));
        assert!(matches!(open(&copy, "key", "build", "boot"), Err(JournalError::Copy)));
        drop(Journal::hold(&copy).expect("it can be removed"));
        let measured = [(); 2].map(|()| Journal::share(&path).expect("both measure"));
        assert!(matches!(Journal::hold(&path), Err(JournalError::Busy)));
        assert!(matches!(open(&path, "key", "build", "boot"), Err(JournalError::Busy)));
        drop(measured);
        let ended = open(&path, "key", "build", "boot 2").expect("it is where it was");
        assert!(ended.ended() == Some(lived) && matches!(Journal::share(&path), Err(JournalError::Busy)));
    }

    #[test]
    fn what_may_be_the_original_is_confirmed_and_not_removed() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = place.path().join("aged");
        rustix::fs::mkdir(&path, Mode::RWXU).expect("made");
        let lived = Lived { operations: 1, written_bytes: 2, planned_bytes: 2.0, overwritten_bytes: None };
        open(&path, "key", "build", "boot").expect("it is empty").end(lived).expect("written");
        let journal = path.join(JOURNAL);
        let line = |identity: &str| {
            let text = fs::read_to_string(&journal).expect("there");
            let lines: Vec<_> =
                text.lines().enumerate().map(|(at, old)| if at == 2 { identity } else { old }).collect();
            fs::write(&journal, lines.join("\n") + "\n").expect("written");
        };
        let inode = fs::metadata(&path).expect("there").ino();
        // As where there is neither a birth time nor a generation, and the device had another number.
        line(&format!("{inode} on 1"));
        let Err(JournalError::Unsure { identity }) = open(&path, "key", "build", "boot") else { panic!("unsure") };
        line(&format!("{inode}0 on 1"));
        assert!(matches!(open(&path, "key", "build", "boot"), Err(JournalError::Copy)), "another inode");
        line(&identity);
        assert_eq!(open(&path, "key", "build", "boot").expect("confirmed").ended(), Some(lived));
    }

    #[test]
    fn a_run_keeps_it_from_removal_while_it_is_aged() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = place.path().join("aged");
        assert!(Journal::keep(&path).is_none());
        rustix::fs::mkdir(&path, Mode::RWXU).expect("made");
        drop(open(&path, "key", "build", "boot").expect("it is empty"));
        assert!(Journal::keep(&path).is_none(), "no file was made");
        fs::create_dir(path.join(AGED_DIRECTORY)).expect("made");
        let kept = [(); 2].map(|()| Journal::keep(&path).expect("both measure"));
        assert!(matches!(Journal::hold(&path), Err(JournalError::Busy)));
        assert!(open(&path, "key", "build", "boot").is_ok() && Journal::share(&path).is_ok());
        drop(kept);
        let held = Journal::hold(&path).expect("no run measures");
        assert!(Journal::keep(&path).is_none(), "it is removed");
        drop(held);
    }

    #[test]
    fn only_what_was_not_yet_aged_is_removed_as_empty() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = place.path().join("aged");
        let make = |mode| {
            rustix::fs::mkdir(&path, Mode::RWXU).expect("made");
            rustix::fs::chmod(&path, Mode::from_raw_mode(mode)).expect("ours");
        };
        make(0o755);
        assert!(!Journal::remove_empty(&path, true).expect("looked at"));
        rustix::fs::chmod(&path, Mode::RWXU).expect("ours");
        assert!(!Journal::remove_empty(&path, false).expect("looked at"), "it may be anybody's");
        for head in ["", "fstone age"] {
            fs::write(path.join(JOURNAL), head).expect("written");
            fs::write(path.join("mine"), "").expect("written");
            assert!(!Journal::remove_empty(&path, true).expect("looked at"));
            fs::remove_file(path.join("mine")).expect("removed");
            assert!(Journal::remove_empty(&path, false).expect("removed") && !path.exists());
            make(0o700);
        }
        fs::write(path.join(JOURNAL), "dear diary").expect("written");
        assert!(!Journal::remove_empty(&path, true).expect("looked at"));
        fs::remove_file(path.join(JOURNAL)).expect("removed");
        assert!(Journal::remove_empty(&path, true).expect("removed") && !path.exists());
    }

    #[test]
    fn a_link_another_name_and_what_others_may_enter_are_foreign() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let [path, link] = ["aged", "link"].map(|name| place.path().join(name));
        rustix::fs::mkdir(&path, Mode::RWXU).expect("made");
        drop(open(&path, "key", "build", "boot").expect("it is empty"));
        symlink(&path, &link).expect("linked");
        assert!(matches!(Journal::hold(&link), Err(JournalError::Foreign)));
        fs::hard_link(path.join(JOURNAL), place.path().join("other")).expect("linked");
        assert!(matches!(Journal::hold(&path), Err(JournalError::Foreign)), "it would be written to");
        fs::remove_file(place.path().join("other")).expect("removed");
        rustix::fs::chmod(&path, Mode::from_raw_mode(0o755)).expect("ours");
        assert!(matches!(open(&path, "key", "build", "boot"), Err(JournalError::Exposed { mode: 0o755 })));
        assert!(matches!(open(place.path(), "key", "build", "boot"), Err(JournalError::Foreign)), "it has others");
        let held = Journal::hold(&path).expect("it can be removed");
        fs::remove_file(&link).and_then(|()| fs::rename(&path, &link)).expect("renamed");
        assert!(!held.is_at(&path) && held.is_at(&link));
    }
}
