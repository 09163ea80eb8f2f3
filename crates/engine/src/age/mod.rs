//! Ageing: writes and removes files on a mounted filesystem, with real data, until its targets are reached.
//!
//! One thread makes all changes, and nothing depends on a clock, so that a simulated machine repeats it exactly. On a real one, when the
//! kernel writes back is its own decision, and moves single extents; there, files are made while earlier ones are written. In a directory
//! it can be interrupted, and goes on later (`journal`).

mod journal;
mod plan;

pub use journal::{Held, Journal, JournalError, Kept, Lived, identity, unreadable};
pub use plan::expected_files;

use crate::{
    data::{Depot, Destination},
    io::kernel::open_resolved,
};
use fstone_model::{
    age::{AGED_DIRECTORY, Age, TOLERANCE},
    workload::DataPattern,
};
use journal::{Beginning, Look};
use plan::{Name, Op, PIECE, Planner};
use rustix::{
    fs::{
        AtFlags, Mode, OFlags, ResolveFlags, StatVfs, Timespec, Timestamps, fstat, fstatvfs, ftruncate, futimens,
        mkdirat, renameat, statat, syncfs, unlinkat, utimensat,
    },
    io::Errno,
    time::{ClockId, clock_gettime},
};
use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::File,
    io::Error,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::FileExt,
    },
    path::Path,
    rc::Rc,
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How often the space in use is compared with the plan while as much is written as files have in the end, and at most in the end.
const LOOKS: f64 = 32.0;
const LAST_LOOKS: usize = 8;
/// The plan is corrected if the space in use differs from it by more than this share.
const DEADBAND: f64 = TOLERANCE / 20.0;
const PROGRESS: Duration = Duration::from_millis(500);
/// How many directories are open at once.
const MOST_OPEN: usize = 256;
/// Nothing that is renamed, linked or mounted meanwhile leads elsewhere.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_XDEV).union(ResolveFlags::NO_SYMLINKS);

#[derive(Debug, Clone, Copy)]
pub struct AgeProgress {
    pub elapsed: Duration,
    /// What of it is done, but for what was done before it was interrupted.
    pub share: f64,
    pub operations: u64,
    pub written_bytes: u64,
}

/// Why a filesystem was not aged; completes "failed to age it: …".
#[derive(Debug, thiserror::Error)]
pub enum AgeError {
    #[error("{0}")]
    Impossible(String),
    #[error("{call} {path}: {cause}")]
    Call { call: &'static str, path: String, cause: Error },
    #[error("its journal: {cause}")]
    Journal { cause: Error },
    #[error("stopped")]
    Interrupted,
}

const fn of_journal(cause: Error) -> AgeError {
    AgeError::Journal { cause }
}

/// Ages the filesystem whose root is given, opened; nothing else may write there meanwhile. With a journal, `root` is the journal's
/// directory, others may use the filesystem, and what was done already is not done again. `overlaps` is for real time alone.
///
/// # Errors
/// [`AgeError`]; the filesystem must not be measured then.
pub fn age(
    age: &Age,
    root: BorrowedFd<'_>,
    seed: u64,
    journal: Option<&mut Journal>,
    overlaps: bool,
    stop: &AtomicBool,
    progress: &dyn Fn(AgeProgress),
) -> Result<Lived, AgeError> {
    if let Some(lived) = journal.as_ref().and_then(|journal| journal.ended()) {
        return Ok(lived);
    }
    let failed =
        |call| move |cause: Errno| AgeError::Call { call, path: AGED_DIRECTORY.to_owned(), cause: cause.into() };
    match mkdirat(root, AGED_DIRECTORY, Mode::from_raw_mode(0o755)) {
        Err(Errno::EXIST) if journal.is_some() => {}
        Err(Errno::ROFS) => return Err(AgeError::Impossible("it is read-only".to_owned())),
        made => made.map_err(failed("mkdir"))?,
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let base = open_resolved(root, AGED_DIRECTORY, flags, Mode::empty(), BENEATH).map_err(failed("open"))?;
    let base = File::from(base);
    let done = journal.as_ref().map_or(0, |journal| journal.done());
    let mut ground = Ground { base: &base, journal };
    let Beginning { total_bytes, used_bytes, block_bytes, unix_seconds } = ground.begin()?;
    let now = Timespec { tv_sec: unix_seconds, tv_nsec: 0 };
    let live = age.utilization * total_bytes - used_bytes;
    if live < block_bytes as f64 {
        let words =
            format!("{used_bytes:.0} of {total_bytes:.0} bytes are in use already; remove some, or raise utilization");
        return Err(AgeError::Impossible(words));
    }
    let plan = |live: f64| Planner::new(age, (total_bytes as u64, live as u64), block_bytes, seed);
    let mut planner = plan(live).map_err(|words| {
        AgeError::Impossible(match plan(age.utilization * total_bytes) {
            Ok(_) => format!(
                "{used_bytes:.0} of {total_bytes:.0} bytes are in use already, which leaves {live:.0} to the target, less than \
                 files of profile {} take; remove some, or raise utilization",
                age.profile.name
            ),
            Err(_) => words,
        })
    })?;
    let (files, directories) = (planner.files(), planner.directories());
    let free =
        fstatvfs(&base).map(|stat| (stat.f_files > 0).then_some(stat.f_ffree as f64)).map_err(failed("statvfs"))?;
    if let Some(free) = free.filter(|free| done == 0 && files + directories as f64 > *free) {
        let words = format!(
            "{files:.0} files and {directories} directories do not fit: {free:.0} inodes are free; {MORE_INODES}"
        );
        return Err(AgeError::Impossible(words));
    }
    let pattern = DataPattern { compressible: age.compressible, ..DataPattern::default() };
    let depot = Depot::new(pattern, PIECE as usize, seed);
    // What a journal calls done is on the disk.
    let overlaps = overlaps && ground.journal.is_none();
    let mut writer = Writer { overlaps, ..Writer::new(&base, now, depot.source()) };
    let mut started = Instant::now();
    let (mut operations, mut reported, mut earlier_bytes) = (0, Duration::ZERO, 0);
    // Before, it is mostly metadata that is in use.
    let mut next_look = planner.live_bytes() / 8.0;
    let (mut last_looks, mut makes_up) = (LAST_LOOKS, false);
    // How much space files take, metadata and overwritten parts that are kept included, only the filesystem knows, and how much there is
    // for data if metadata have space of their own.
    let correct = |planner: &mut Planner, writer: &mut Writer<'_>, ground: &mut Ground<'_>| {
        writer.syncing.settle().map_err(failed("syncfs"))?;
        let growing = planner.growing_bytes();
        let found = ground.look(|| writer.kept_for_growth(growing))?;
        let used = found.used_bytes - used_bytes - found.growth_bytes;
        let present = planner.present_bytes() as f64;
        let wanted = (age.utilization * found.total_bytes - used_bytes)
            * if used > 0.0 && present > 0.0 { present / used } else { 1.0 };
        let is_off = (wanted / planner.live_bytes() - 1.0).abs() > DEADBAND;
        if is_off {
            planner.aim(wanted);
        }
        Ok::<_, AgeError>(is_off)
    };
    loop {
        let Some(op) = planner.next() else {
            if last_looks > 0 {
                last_looks = if correct(&mut planner, &mut writer, &mut ground)? { last_looks - 1 } else { 0 };
                continue;
            }
            if !std::mem::replace(&mut makes_up, true) {
                planner.make_up();
                last_looks = LAST_LOOKS;
                continue;
            }
            writer.syncing.settle().map_err(failed("syncfs"))?;
            // Ages count from here.
            let times = Timestamps { last_access: now, last_modification: now };
            futimens(&base, &times).map_err(failed("utimens"))?;
            let (written_bytes, planned_bytes) = (planner.written_bytes(), planner.total_bytes());
            let overwritten_bytes = Some(planner.overwritten_bytes());
            let lived = Lived { operations, written_bytes, planned_bytes, overwritten_bytes };
            if let Some(journal) = &mut ground.journal {
                syncfs(&base).map_err(failed("syncfs"))?;
                journal.end(lived).map_err(of_journal)?;
            }
            return Ok(lived);
        };
        if stop.load(Ordering::Acquire) {
            if let Some(journal) = ground.journal.filter(|_| operations >= done) {
                syncfs(&base).map_err(failed("syncfs"))?;
                journal.settle().map_err(of_journal)?;
            }
            return Err(AgeError::Interrupted);
        }
        if operations < done {
            writer.pass(op);
        } else {
            if let (Some(journal), true) = (&ground.journal, operations == done) {
                journal.go_on().map_err(of_journal)?;
                (started, reported, earlier_bytes) = (Instant::now(), Duration::ZERO, planner.written_bytes());
            }
            writer.carry_out(op, operations == done)?;
            if let Some(journal) = &ground.journal {
                journal.count(operations + 1).map_err(of_journal)?;
            }
        }
        operations += 1;
        let written = planner.written_bytes() as f64;
        if op == Op::Sync && written >= next_look {
            correct(&mut planner, &mut writer, &mut ground)?;
            next_look = written + planner.live_bytes() / LOOKS;
        }
        let elapsed = started.elapsed();
        if elapsed >= reported + PROGRESS {
            reported = elapsed;
            let all = planner.total_bytes() - earlier_bytes as f64;
            let share = (written - earlier_bytes as f64) / all.max(1.0);
            progress(AgeProgress { elapsed, share, operations, written_bytes: planner.written_bytes() });
        }
    }
}

/// What cures a lack of inodes.
pub const MORE_INODES: &str =
    "take a profile with larger files, or have mkfs make more inodes (ext4: mkfs = \"-i 4096\")";

struct Ground<'a> {
    base: &'a File,
    journal: Option<&'a mut Journal>,
}

impl Ground<'_> {
    fn begin(&mut self) -> Result<Beginning, AgeError> {
        if let Some(earlier) = self.journal.as_ref().and_then(|journal| journal.begun()) {
            return Ok(earlier);
        }
        let stat = self.stat()?;
        let (total_bytes, used_bytes) = total_and_used(&stat);
        let unix_seconds = clock_gettime(ClockId::Realtime).tv_sec;
        let begun = Beginning { total_bytes, used_bytes, block_bytes: stat.f_bsize.clamp(512, 64 << 10), unix_seconds };
        self.journal.as_mut().map_or(Ok(()), |journal| journal.add_beginning(begun)).map_err(of_journal)?;
        Ok(begun)
    }

    fn look(&mut self, growth_bytes: impl FnOnce() -> f64) -> Result<Look, AgeError> {
        if let Some(earlier) = self.journal.as_mut().and_then(|journal| journal.next_look()) {
            return Ok(earlier);
        }
        let (total_bytes, used_bytes) = total_and_used(&self.stat()?);
        let found = Look { total_bytes, used_bytes, growth_bytes: growth_bytes() };
        self.journal.as_mut().map_or(Ok(()), |journal| journal.add_look(found)).map_err(of_journal)?;
        Ok(found)
    }

    fn stat(&self) -> Result<StatVfs, AgeError> {
        let failed =
            |call| move |cause: Errno| AgeError::Call { call, path: AGED_DIRECTORY.to_owned(), cause: cause.into() };
        syncfs(self.base).map_err(failed("syncfs"))?;
        fstatvfs(self.base).map_err(failed("statvfs"))
    }
}

/// The space of a filesystem in bytes, as df(1) counts: without what is reserved for root.
fn total_and_used(stat: &StatVfs) -> (f64, f64) {
    let unit = stat.f_frsize as f64;
    let used = stat.f_blocks.saturating_sub(stat.f_bfree) as f64 * unit;
    (used + stat.f_bavail as f64 * unit, used)
}

struct Writer<'a> {
    base: &'a File,
    /// Of directories, by their numbers. All but the first, which is `base`, end with a slash.
    paths: Vec<String>,
    opened: HashMap<u32, Rc<OwnedFd>>,
    /// By their numbers. A filesystem keeps room for a file that is opened again and again to grow, until long after.
    growing: HashMap<u32, File>,
    now: Timespec,
    source: crate::data::Source<'a>,
    overlaps: bool,
    syncing: Syncing,
}

/// A sync in the background. It holds the filesystem, so it is waited for.
#[derive(Default)]
struct Syncing(Option<JoinHandle<Result<(), Errno>>>);

impl Syncing {
    fn settle(&mut self) -> Result<(), Errno> {
        self.0.take().map_or(Ok(()), |syncing| syncing.join().unwrap_or(Err(Errno::IO)))
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        let _ = self.settle();
    }
}

impl<'a> Writer<'a> {
    fn new(base: &'a File, now: Timespec, source: crate::data::Source<'a>) -> Self {
        let paths = vec![String::new()];
        let (opened, growing, syncing) = (HashMap::new(), HashMap::new(), Syncing::default());
        Self { base, paths, opened, growing, now, source, overlaps: false, syncing }
    }

    fn sync(&mut self) -> Result<(), Errno> {
        self.syncing.settle()?;
        let Some(base) = self.base.try_clone().ok().filter(|_| self.overlaps) else { return syncfs(self.base) };
        self.syncing = Syncing(Some(thread::spawn(move || syncfs(&base))));
        Ok(())
    }

    /// What files that grow take beyond the bytes they have. It is given back when they are complete, and can be a third of all (xfs).
    fn kept_for_growth(&self, bytes: u64) -> f64 {
        let taken = self.growing.values().filter_map(|file| fstat(file).ok()).map(|stat| stat.st_blocks as u64 * 512);
        taken.sum::<u64>().saturating_sub(bytes) as f64
    }

    /// Passes over what is done already.
    fn pass(&mut self, op: Op) {
        if let Op::Directory { parent, number } = op {
            self.paths.push(format!("{}{}/", self.paths[parent as usize], directory(number)));
        }
    }

    /// Opens a directory. All calls are made in one, by a name without parts: nobody can exchange what is between.
    fn at(&mut self, number: u32) -> Result<Rc<OwnedFd>, Errno> {
        if let Some(opened) = self.opened.get(&number) {
            return Ok(Rc::clone(opened));
        }
        let path = self.paths[number as usize].trim_end_matches('/');
        let path = if path.is_empty() { "." } else { path };
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = Rc::new(open_resolved(self.base.as_fd(), path, how, Mode::empty(), BENEATH)?);
        if self.opened.len() >= MOST_OPEN {
            self.opened.clear();
        }
        self.opened.insert(number, Rc::clone(&opened));
        Ok(opened)
    }

    /// `may_be_done`: whether it was the next one when the process was killed.
    fn carry_out(&mut self, op: Op, may_be_done: bool) -> Result<(), AgeError> {
        match self.attempt(op) {
            Err(("mkdir", ..)) if may_be_done && self.is_done(op) => {
                self.pass(op);
                Ok(())
            }
            Err(("rename" | "unlink", ..)) if may_be_done && self.is_done(op) => Ok(()),
            // Some filesystems free what was removed only at the next sync.
            Err(("write" | "open", _, error)) if error.raw_os_error() == Some(libc::ENOSPC) => syncfs(self.base)
                .map_err(|errno| ("syncfs", String::new(), errno.into()))
                .and_then(|()| self.attempt(op)),
            done => done,
        }
        .map_err(|(call, path, cause)| AgeError::Call {
            call,
            path: format!("{AGED_DIRECTORY}/{path}"),
            cause,
        })
    }

    fn path(&self, name: Name) -> String {
        format!("{}{}", self.paths[name.directory as usize], name.word())
    }

    fn is_done(&mut self, op: Op) -> bool {
        let mut is_there = |directory, word: &str| {
            self.at(directory).is_ok_and(|at| statat(at, word, AtFlags::SYMLINK_NOFOLLOW).is_ok())
        };
        match op {
            Op::Directory { parent, number } => is_there(parent, &directory(number)),
            Op::Rename { from, to } => !is_there(from.directory, &from.word()) && is_there(to.directory, &to.word()),
            Op::Remove { name } => !is_there(name.directory, &name.word()),
            // Once more changes nothing.
            Op::Write { .. } | Op::Truncate { .. } | Op::Date { .. } | Op::Sync => false,
        }
    }

    fn attempt(&mut self, op: Op) -> Result<(), (&'static str, String, Error)> {
        let failed = |call, path: &str, cause: Errno| (call, path.to_owned(), cause.into());
        match op {
            Op::Directory { number, parent } => {
                let made = self.at(parent).and_then(|at| mkdirat(at, directory(number), Mode::from_raw_mode(0o755)));
                made.map_err(|errno| {
                    failed("mkdir", &format!("{}{}", self.paths[parent as usize], directory(number)), errno)
                })?;
                self.pass(op);
            }
            Op::Write { name, offset, length, makes, ends } => {
                // Without EXCL, because a write that found no space is tried again.
                let flags = if makes { OFlags::CREATE } else { OFlags::empty() };
                let file = match self.growing.remove(&name.number) {
                    Some(file) => file,
                    None => self.open(name, flags).map_err(|errno| failed("open", &self.path(name), errno))?,
                };
                if length > 0 {
                    let data = self.source.next(length as usize, Destination { file: 0, offset });
                    file.write_all_at(data, offset).map_err(|error| ("write", self.path(name), error))?;
                }
                if !ends {
                    self.growing.insert(name.number, file);
                }
            }
            Op::Truncate { name, length } => {
                let opened = self.open(name, OFlags::empty());
                let file = opened.map_err(|errno| failed("open", &self.path(name), errno))?;
                ftruncate(&file, length).map_err(|errno| failed("truncate", &self.path(name), errno))?;
            }
            Op::Rename { from, to } => {
                let [above, below] = [self.at(from.directory), self.at(to.directory)];
                above
                    .and_then(|above| renameat(above, from.word(), below?, to.word()))
                    .map_err(|errno| failed("rename", &self.path(from), errno))?;
            }
            Op::Remove { name } => {
                self.growing.remove(&name.number);
                self.at(name.directory)
                    .and_then(|at| unlinkat(at, name.word(), AtFlags::empty()))
                    .map_err(|errno| failed("unlink", &self.path(name), errno))?;
            }
            Op::Date { name, hours } => {
                let then = Timespec { tv_sec: self.now.tv_sec - (hours * 3600.0) as i64, tv_nsec: 0 };
                let then = Timestamps { last_access: then, last_modification: then };
                self.at(name.directory)
                    .and_then(|at| utimensat(at, name.word(), &then, AtFlags::SYMLINK_NOFOLLOW))
                    .map_err(|errno| failed("utimens", &self.path(name), errno))?;
            }
            Op::Sync => self.sync().map_err(|errno| failed("syncfs", "", errno))?,
        }
        Ok(())
    }

    fn open(&mut self, name: Name, flags: OFlags) -> Result<File, Errno> {
        let flags = flags | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let at = self.at(name.directory)?;
        Ok(open_resolved(at.as_fd(), &*name.word(), flags, Mode::from_raw_mode(0o644), BENEATH)?.into())
    }
}

/// Whether ageing makes files or directories of this path, below the directory that its journal is in.
pub fn is_made(path: &Path, is_directory: bool) -> bool {
    let is_number = |digits: &str| u32::from_str_radix(digits, 16).is_ok_and(|number| format!("{number:x}") == digits);
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    match path.strip_prefix(AGED_DIRECTORY) {
        Ok(below) if below == Path::new("") => is_directory,
        Ok(_) if is_directory => name.strip_prefix(DIRECTORY).is_some_and(is_number),
        Ok(_) => is_number(name),
        Err(_) => path == Path::new(journal::JOURNAL) && !is_directory,
    }
}

// No file has a name with an s: those are hexadecimal.
const DIRECTORY: &str = "sub";

fn directory(number: u32) -> String {
    format!("{DIRECTORY}{number:x}")
}

impl Name {
    fn word(self) -> String {
        format!("{:x}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::age::Class;
    use std::os::unix::fs::MetadataExt;

    fn files(directory: &Path) -> Vec<(u64, i64)> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(directory).expect("readable") {
            let entry = entry.expect("readable");
            let metadata = entry.metadata().expect("there");
            if metadata.is_dir() {
                found.extend(files(&entry.path()));
            } else {
                found.push((metadata.len(), metadata.mtime()));
            }
        }
        found
    }

    /// Every call works on a real filesystem, and the files that remain are those of the plan.
    #[test]
    fn a_plan_is_carried_out() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let base = File::open(place.path()).expect("it is there");
        let mut age = plan::tests::agrawal();
        age.compressible = 0.5;
        let mut planner = Planner::new(&age, (32 << 20, 16 << 20), 4096, 5).expect("it is possible");
        let depot = Depot::new(DataPattern { compressible: 0.5, ..DataPattern::default() }, PIECE as usize, 5);
        let now = clock_gettime(ClockId::Realtime);
        let mut writer = Writer { overlaps: true, ..Writer::new(&base, now, depot.source()) };
        while let Some(op) = planner.next() {
            writer.carry_out(op, false).expect("it can be done");
            // As after a kill before it was counted, and by a process that has nothing open.
            let mut again = Writer { paths: writer.paths.clone(), ..Writer::new(&base, now, depot.source()) };
            if let Op::Directory { .. } = op {
                again.paths.pop();
            }
            again.carry_out(op, true).expect("it can be done once more");
            assert_eq!(again.paths, writer.paths);
        }
        let files = files(place.path());
        let bytes: u64 = files.iter().map(|(length, _)| length.next_multiple_of(4096)).sum();
        assert_eq!(bytes, planner.present_bytes());
        assert!(files.iter().all(|(_, modified)| now.tv_sec - modified <= 122_640 * 3600 + 1));
        let old = files.iter().filter(|(_, modified)| now.tv_sec - modified > 5503 * 3600).count() as f64;
        assert!((0.3..0.45).contains(&(old / files.len() as f64)), "{old} of {}", files.len());
    }

    #[test]
    fn a_target_that_is_nearly_reached_is_no_fault_of_the_profile() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        rustix::fs::chmod(place.path(), Mode::RWXU).expect("ours");
        let directory = || File::open(place.path()).expect("it is there");
        let open = || Journal::open(directory(), place.path(), "key", "build", "boot").expect("its own");
        let mut wanted = plan::tests::agrawal();
        wanted.profile.sizes = vec![Class { up_to: 1048576.0, weight: 1.0 }];
        let total_bytes = (8u64 << 30) as f64;
        let used_bytes = wanted.utilization * total_bytes - 65536.0;
        let begun = Beginning { total_bytes, used_bytes, block_bytes: 4096, unix_seconds: 1_000_000_000 };
        open().add_beginning(begun).expect("written");
        let stop = AtomicBool::new(false);
        let ended = age(&wanted, directory().as_fd(), 5, Some(&mut open()), true, &stop, &|_| {});
        let Err(AgeError::Impossible(words)) = ended else { panic!("{ended:?}") };
        assert!(words.contains("are in use already, which leaves 65536 to the target"), "{words}");
    }

    #[test]
    fn an_ageing_that_was_killed_after_its_first_operation_goes_on() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a directory");
        rustix::fs::chmod(place.path(), Mode::RWXU).expect("ours");
        let directory = || File::open(place.path()).expect("it is there");
        let open = || Journal::open(directory(), place.path(), "key", "build", "boot").expect("its own");
        // A small disk, so that little is planned.
        let total_bytes = (8u64 << 30) as f64;
        let begun = Beginning { total_bytes, used_bytes: 0.0, block_bytes: 4096, unix_seconds: 1_000_000_000 };
        open().add_beginning(begun).expect("written");
        let stop = AtomicBool::new(true);
        let run = || {
            let stops = |_: AgeProgress| stop.store(true, Ordering::Release);
            age(&plan::tests::agrawal(), directory().as_fd(), 5, Some(&mut open()), true, &stop, &stops)
        };
        assert!(matches!(run(), Err(AgeError::Interrupted)), "before its first operation");
        let first = place.path().join(AGED_DIRECTORY).join("sub1");
        std::fs::create_dir(&first).expect("it is not counted");
        stop.store(false, Ordering::Release);
        let ended = run();
        assert!(matches!(ended, Err(AgeError::Interrupted)), "{ended:?}");
        assert!(open().done() > 1);
    }
}
