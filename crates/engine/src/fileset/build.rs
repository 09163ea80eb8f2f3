//! Making and checking the real files of a fileset.

use super::beneath::{self, Elsewhere, Failure, Held, open_below};
use super::claim::{Refusal, claim};
use super::existing::{ExistingFile, Planned};
use super::setup_progress::SetupProgress;
use super::site::BuildContext;
use super::{Files, PathBuffer, Sizes};
use crate::data::Destination;
use crate::error::{LoadError, cure};
use crate::io::{Space, kernel};
use crate::options::Ownership;
use crate::random::{Random, derive};
use fstone_model::workload::{Amount, Existing, Fileset, MAXIMUM_BLOCK_BYTES};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, SeekFrom, mkdirat, unlinkat};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::time::Instant;

const SIZE_STREAM: u64 = 0x7369_7a65;
/// After so many bytes written, a fileset that grows to a utilisation looks at the filesystem again.
const UTILIZATION_STEP_BYTES: u64 = 1 << 20;
const UTILIZATION_STEP_FILES: u64 = 256;
const DEFAULT_BLOCK_BYTES: u64 = 64 << 10;

pub(crate) fn stamp_name(fileset: u32, file: u32) -> u64 {
    (u64::from(fileset) << 32) | u64::from(file)
}

pub(crate) fn names(amount: Amount) -> u64 {
    match amount {
        Amount::Files(count) => count,
        Amount::Bytes(_) | Amount::Utilization(_) => 0,
    }
}

pub(crate) fn root(directory: &Path, spec: &Fileset) -> PathBuf {
    if spec.directory.is_empty() { directory.to_owned() } else { directory.join(&spec.directory) }
}

#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) written_bytes: u64,
    pub(crate) warnings: Vec<String>,
    /// Whether some file is used as it was found.
    pub(crate) used: bool,
}

pub(super) struct Builder<'a> {
    pub(super) site: BuildContext<'a>,
    pub(super) name: String,
    pub(super) root: PathBuf,
    pub(super) told: SetupProgress<'a>,
    files: u64,
    bytes: u64,
    pub(super) built: Built,
}

/// Looks for what would keep [`build`] from a fileset of a load that owns names, and changes nothing. Such a load can remove
/// files of anybody's, so all its filesets are looked at before the first is built.
pub(crate) fn look(files: &Files, site: BuildContext<'_>) -> Result<(), LoadError> {
    let builder = Builder::new(files, site);
    let there = matches!(files.spec.existing, Existing::Require | Existing::Assume);
    if !site.real || !builder.of_anybody() || there {
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, &builder.root, flags, Mode::empty()) {
        Ok(directory) => builder.planned(files, directory.as_fd()).map(drop),
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(builder.failed("open", builder.root.clone(), &errno.into())),
    }
}

pub(crate) fn build(files: &mut Files, site: BuildContext<'_>) -> Result<Built, LoadError> {
    let mut builder = Builder::new(files, site);
    builder.build(files)?;
    Ok(builder.built)
}

impl Builder<'_> {
    fn build(&mut self, files: &mut Files) -> Result<(), LoadError> {
        let site = self.site;
        if !site.real {
            return self.pretend(files);
        }
        if site.options.ownership == Ownership::Device {
            return self.device(files);
        }
        if !site.options.ownership.follows_links() && !files.spec.stays_below() {
            let what =
                format!("has fileset {:?} in {:?}, out of the load's directory", self.name, files.spec.directory);
            return Err(LoadError::Unsupported { what });
        }
        files.found = matches!(files.spec.existing, Existing::Assume | Existing::Require);
        if files.spec.existing == Existing::Assume {
            visit(files, site)?;
            if site.changes {
                self.claim_once(files)?;
                self.stays_below(files, true)?;
            }
            return self.pretend(files);
        }
        let existing = files.spec.existing;
        files.directory = Some(self.open_directory(&files.spec.directory, existing != Existing::Require)?);
        let mut metadata = None;
        if site.metadata {
            let name = files.spec.metadata_directory();
            let path = site.directory.join(&name);
            let directory = self.open_directory(&name, true)?;
            let held = Held { directory: directory.as_fd(), path: &path };
            self.claim(held, files)?;
            held.remove_ours(&files.layout).map_err(|failure| self.failure(failure))?;
            metadata = Some(directory);
        }
        files.metadata = metadata;
        // Directories that come and go are made anew.
        let adopts = existing == Existing::Reuse && !self.of_anybody() && files.spec.leaf_directories == 0;
        // Files that are only read may be the user's own.
        if !site.changes && existing == Existing::Require {
            return self.require(files);
        }
        if !site.changes && adopts && self.adopt(files)? {
            files.found = true;
            return Ok(());
        }
        self.claim_once(files)?;
        match existing {
            Existing::Require => {
                self.stays_below(files, true)?;
                self.require(files)
            }
            Existing::Reuse if adopts && self.stays_below(files, false)? && self.adopt(files)? => {
                files.found = true;
                Ok(())
            }
            Existing::Reuse | Existing::Rebuild | Existing::Assume => self.rebuild(files),
        }
    }
}

/// Makes a fileset's own directory, and nothing in it.
pub(crate) fn enter(files: &mut Files, site: BuildContext<'_>) -> Result<(), LoadError> {
    let builder = Builder::new(files, site);
    files.directory = Some(builder.open_directory(&files.spec.directory, true)?);
    Ok(())
}

/// Removes the directories that hold a fileset's files, which are empty. What is not empty is an error, and stays; what is not there, as a
/// load leaves it that was ended, is passed over.
pub(crate) fn remove_directories(files: &mut Files, site: BuildContext<'_>) -> Result<u64, LoadError> {
    visit(files, site)?;
    let builder = Builder::new(files, site);
    let directories: Vec<String> = files.layout.all_directories().collect();
    for directory in directories.iter().rev() {
        match unlinkat(files.directory(), directory, AtFlags::REMOVEDIR) {
            Ok(()) => builder.told.one_directory(0, 0)?,
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(builder.failure(("rmdir", builder.root.join(directory), errno))),
        }
    }
    Ok(builder.told.directories())
}

/// Opens the directory of a fileset that another rank made. Nothing is claimed, made or looked at in it.
pub(crate) fn visit(files: &mut Files, site: BuildContext<'_>) -> Result<(), LoadError> {
    if site.real {
        let builder = Builder::new(files, site);
        let opened = beneath::open_existing(site.directory, &files.spec.directory);
        files.directory = Some(opened.map_err(|errno| builder.failed("open", builder.root.clone(), &errno.into()))?);
    }
    Ok(())
}

impl<'a> Builder<'a> {
    fn new(files: &Files, site: BuildContext<'a>) -> Self {
        Self {
            site,
            name: files.spec.name.clone(),
            root: root(site.directory, &files.spec),
            told: SetupProgress::new(site.options),
            files: 0,
            bytes: 0,
            built: Built::default(),
        }
    }

    fn held<'f>(&'f self, files: &'f Files) -> Held<'f> {
        Held { directory: files.directory(), path: &self.root }
    }

    /// Makes sure that fstone may remove and overwrite what has the fileset's names in a directory.
    fn claim(&self, held: Held<'_>, files: &Files) -> Result<(), LoadError> {
        claim(held, &files.layout, self.site.options.ownership).map_err(|refusal| match refusal {
            Refusal::InTheWay(names) => self.in_the_way(held.path, names),
            Refusal::Failed(failure) => self.failure(failure),
        })
    }

    /// The same for the fileset's own directory, unless all ranks share it and rank 0 has made sure.
    fn claim_once(&self, files: &Files) -> Result<(), LoadError> {
        if self.site.directories_made { Ok(()) } else { self.claim(self.held(files), files) }
    }

    pub(super) fn in_the_way(&self, path: &Path, names: Vec<String>) -> LoadError {
        let cure = match self.of_anybody() {
            true => "remove it, or have the load use another name",
            false => "name an empty directory, or say --overwrite where files of the fileset's names may go",
        };
        LoadError::InTheWay { fileset: self.name.clone(), path: path.to_owned(), names, cure }
    }

    pub(super) fn failure(&self, (call, path, errno): Failure) -> LoadError {
        LoadError::Setup { fileset: self.name.clone(), call, path, errno, cure: cure(errno) }
    }

    fn failed(&self, call: &'static str, path: PathBuf, error: &std::io::Error) -> LoadError {
        self.failure((call, path, Errno::from_io_error(error).unwrap_or(Errno::IO)))
    }

    pub(super) fn refused(&self, call: &'static str, path: &PathBuffer, errno: Errno) -> LoadError {
        self.failure((call, self.root.join(path.shown()), errno))
    }

    fn open_directory(&self, name: &str, make: bool) -> Result<OwnedFd, LoadError> {
        let path = self.site.directory.join(name);
        let (base, below) = match self.site.options.ownership {
            ownership if ownership.follows_links() => (&*path, ""),
            _ => (self.site.directory, name),
        };
        let opened = if make {
            std::fs::create_dir_all(base).map_err(|error| self.failed("mkdir", base.to_owned(), &error))?;
            open_below(base, below)
        } else {
            beneath::open_existing(base, below)
        };
        opened.map_err(|errno| match errno {
            Errno::NOENT if !make => {
                LoadError::NotPrepared { fileset: self.name.clone(), path, problem: "is missing".to_owned() }
            }
            errno => self.failed("open", path, &errno.into()),
        })
    }

    /// Whether what is there may be written: no name of the fileset's leads elsewhere. A file with other names is an
    /// error only where it is `required`: otherwise it makes room for a new one.
    fn stays_below(&self, files: &Files, required: bool) -> Result<bool, LoadError> {
        if self.site.options.ownership.follows_links() {
            return Ok(true);
        }
        let found = self.held(files).leads_elsewhere(&files.layout).map_err(|failure| self.failure(failure))?;
        let refused = |path, problem: &str| {
            Err(LoadError::NotPrepared { fileset: self.name.clone(), path, problem: problem.to_owned() })
        };
        match found {
            None => Ok(true),
            Some((path, Elsewhere::Link)) => refused(path, "is a symbolic link, and would be written through"),
            Some((path, Elsewhere::OtherNames)) if required => {
                refused(path, "has other names (hard links), under which it would be changed as well")
            }
            Some((_, Elsewhere::OtherNames)) => Ok(false),
        }
    }

    pub(super) fn sizes(&self) -> Random {
        Random::new(derive(self.site.options.seed, &[SIZE_STREAM, u64::from(self.site.index)]))
    }

    pub(super) fn present(spec: &Fileset, names: u64) -> u64 {
        ((names as f64 * spec.preallocated.clamp(0.0, 1.0)).round() as u64).min(names)
    }

    /// The table alone.
    fn pretend(&self, files: &Files) -> Result<(), LoadError> {
        self.leaves(files, |_| Ok(()))?;
        let mut random = self.sizes();
        let mut add = || {
            let size = files.sizes.draw(&mut random);
            let file = files.table.begin_create().ok_or_else(|| too_many(&self.name))?;
            files.table.finish_create(file, size);
            Ok::<u64, LoadError>(size)
        };
        match files.spec.amount {
            Amount::Files(count) => {
                for _ in 0..Self::present(&files.spec, count) {
                    add()?;
                }
            }
            Amount::Bytes(target) => {
                let mut sum = 0;
                while sum < target {
                    sum += add()?.max(1);
                }
            }
            Amount::Utilization(_) => {
                return Err(LoadError::Unsupported {
                    what: "fills the filesystem to a share of it, and the null I/O engine has no filesystem".into(),
                });
            }
        }
        Ok(())
    }

    fn of_anybody(&self) -> bool {
        self.site.options.ownership.is_shared_directory()
    }

    /// Makes every file, but for those that [`ExistingFile::of`] says stay.
    fn rebuild(&mut self, files: &Files) -> Result<(), LoadError> {
        let planned = if self.of_anybody() {
            let planned = self.planned(files, files.directory())?;
            self.remove_named(files, &planned)?;
            self.warn_of_short(files, &planned);
            planned
        } else {
            if !self.site.directories_made {
                self.held(files).remove_ours(&files.layout).map_err(|failure| self.failure(failure))?;
            }
            Vec::new()
        };
        if !self.site.directories_made {
            self.make_directories(files)?;
        }
        self.leaves(files, |path| {
            match mkdirat(files.directory(), path.as_c(), Mode::from_raw_mode(0o777)) {
                // A load that names files uses the directories that are there.
                Err(Errno::EXIST) if self.of_anybody() && files.spec.existing == Existing::Reuse => Ok(()),
                made => made.map_err(|errno| self.refused("mkdir", path, errno)),
            }
        })?;
        let mut random = self.sizes();
        let mut path = PathBuffer::default();
        let mut source = self.site.depot.source();
        let mut looked = (0, 0);
        loop {
            let enough = match files.spec.amount {
                Amount::Files(count) => self.files >= Self::present(&files.spec, count),
                Amount::Bytes(target) => self.bytes >= target,
                Amount::Utilization(target) => {
                    let due = self.files == 0
                        || self.bytes - looked.0 >= UTILIZATION_STEP_BYTES
                        || self.files - looked.1 >= UTILIZATION_STEP_FILES;
                    if due {
                        looked = (self.bytes, self.files);
                    }
                    due && utilization(files).map_err(|errno| self.refused("statvfs", &path, errno))? >= target
                }
            };
            if enough {
                return Ok(());
            }
            let file = files.table.begin_create().ok_or_else(|| too_many(&self.name))?;
            let Planned { size, fate } = planned
                .get(file as usize)
                .copied()
                .unwrap_or_else(|| Planned { size: files.sizes.draw(&mut random), fate: None });
            self.built.used |= matches!(fate, Some(ExistingFile::Used(_) | ExistingFile::Extended(_)));
            if !matches!(fate, Some(ExistingFile::Used(_))) && !files.spec.made_when_opened {
                files.layout.file(&mut path, file, false);
                self.make(files, file, Planned { size, fate }, &path, &mut source)?;
            }
            files.table.finish_create(file, size);
            self.files += 1;
            // An empty file counts as one byte, so that a fileset of nothing but empty files comes to an end.
            self.bytes += size.max(1);
            self.breathe()?;
        }
    }

    fn make_directories(&self, files: &Files) -> Result<(), LoadError> {
        let started = Instant::now();
        for directory in files.layout.all_directories() {
            match mkdirat(files.directory(), &directory, Mode::from_raw_mode(0o777)) {
                Err(errno) if !(self.of_anybody() && errno == Errno::EXIST) => {
                    return Err(self.failure(("mkdir", self.root.join(directory), errno)));
                }
                _ => self.told.one_directory(self.files, self.bytes)?,
            }
        }
        let made = self.told.directories();
        self.site.options.observer.directories_made(self.site.index as usize, made, started.elapsed());
        Ok(())
    }

    fn leaves(&self, files: &Files, make: impl Fn(&PathBuffer) -> Result<(), LoadError>) -> Result<(), LoadError> {
        let mut path = PathBuffer::default();
        for _ in 0..Self::present(&files.spec, files.spec.leaf_directories) {
            self.told.one_directory(self.files, self.bytes)?;
            let leaf = files.leaves.begin_create().ok_or_else(|| too_many(&self.name))?;
            files.layout.leaf(&mut path, leaf, false);
            make(&path)?;
            files.leaves.finish_create(leaf, 0);
        }
        Ok(())
    }

    fn make(
        &mut self,
        files: &Files,
        file: u32,
        Planned { size, fate }: Planned,
        path: &PathBuffer,
        source: &mut crate::data::Source<'_>,
    ) -> Result<(), LoadError> {
        let (from, how) = match fate {
            Some(ExistingFile::Extended(from)) => (from, OFlags::empty()),
            // What was to be replaced is gone, and a file that has appeared since may be the user's.
            _ if self.of_anybody() => (0, OFlags::CREATE | OFlags::EXCL),
            _ => (0, OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW),
        };
        let fd = kernel::open(files.directory(), path.as_c(), OFlags::WRONLY | how)
            .map_err(|errno| self.refused("open", path, errno))?;
        let block = match files.spec.build_block_bytes {
            0 => DEFAULT_BLOCK_BYTES,
            block => block.min(MAXIMUM_BLOCK_BYTES),
        };
        let name = stamp_name(self.site.index, file);
        if let Some(ledger) = self.site.depot.ledger() {
            ledger.created(name);
        }
        let mut filled = || {
            if !files.spec.fill {
                let (allocates, grows) = (files.spec.allocate, files.spec.grows);
                if size == 0 || (allocates && allocated(fd, size, grows)?) || grows {
                    return Ok(());
                }
                return kernel::truncate(fd, size).map_err(|errno| ("ftruncate", errno));
            }
            let mut offset = from;
            while offset < size {
                let length = block.min(size - offset);
                let destination = Destination { file: name, offset };
                let mut data = source.next(length as usize, destination);
                while !data.is_empty() {
                    let written = kernel::write(fd, data, offset).map_err(|errno| ("write", errno))?;
                    if written == 0 {
                        return Err(("write", Errno::NOSPC));
                    }
                    data = &data[written..];
                    offset += written as u64;
                }
                source.settle(length as usize, destination, true);
                // One file may be all there is, and take an hour.
                if self.told.breathe(self.files, self.bytes + offset).is_err() {
                    return Err(("write", Errno::CANCELED));
                }
            }
            Ok(())
        };
        let outcome = filled();
        let closed = kernel::close(fd).map_err(|errno| ("close", errno));
        let made = outcome.and(closed);
        if made.is_err() && self.of_anybody() && !matches!(fate, Some(ExistingFile::Extended(_))) {
            // An incomplete file would be in the way of the next load, which cannot know who made it.
            let _ = kernel::unlink(files.directory(), path.as_c());
        }
        match made {
            Err((_, Errno::CANCELED)) => self.told.goes_on(),
            Err((call, errno)) => Err(self.refused(call, path, errno)),
            Ok(()) => {
                self.built.written_bytes += if files.spec.fill { size - from } else { 0 };
                Ok(())
            }
        }
    }

    /// Takes over what is there, if names, sizes and count fit; `false` leaves the table as it was.
    fn adopt(&mut self, files: &Files) -> Result<bool, LoadError> {
        let mut path = PathBuffer::default();
        let mut sizes = Vec::new();
        let enough = |sizes: &[u64], sum: u64| match files.spec.amount {
            Amount::Files(count) => sizes.len() as u64 == Self::present(&files.spec, count),
            Amount::Bytes(target) => sum >= target,
            Amount::Utilization(_) => false,
        };
        let mut sum = 0;
        loop {
            self.breathe()?;
            // One name is one file, which is not asked for again.
            if files.spec.naming.exact && !sizes.is_empty() {
                break;
            }
            files.layout.file(&mut path, sizes.len() as u32, false);
            let size = match kernel::stat(files.directory(), path.as_c()) {
                Ok(stat) => stat.st_size as u64,
                Err(Errno::NOENT | Errno::NOTDIR) => break,
                Err(errno) => return Err(self.refused("stat", &path, errno)),
            };
            // Of a larger file with a name of its own the load has its part.
            let size = match files.sizes.fixed() {
                Some(wanted) if files.spec.naming.exact && size > wanted => wanted,
                _ => size,
            };
            if enough(&sizes, sum) || !files.sizes.allows(size) {
                return Ok(false);
            }
            sum += size.max(1);
            sizes.push(size);
        }
        let full = match files.spec.amount {
            Amount::Utilization(target) => {
                !sizes.is_empty()
                    && utilization(files).map_err(|errno| self.refused("statvfs", &path, errno))? >= target
            }
            _ => enough(&sizes, sum),
        };
        if full {
            for size in sizes {
                let file = files.table.begin_create().ok_or_else(|| too_many(&self.name))?;
                files.table.finish_create(file, size);
            }
            // Links and directories that an earlier load left must not be in the way of new ones.
            let mut made = files.made_directories.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            loop {
                files.layout.made_directory(&mut path, made.next);
                if kernel::lstat(files.directory(), path.as_c()).is_err() {
                    break;
                }
                made.next += 1;
            }
        }
        Ok(full)
    }

    fn require(&mut self, files: &Files) -> Result<(), LoadError> {
        let mut path = PathBuffer::default();
        let count = match files.spec.amount {
            Amount::Files(count) => Self::present(&files.spec, count),
            Amount::Bytes(_) | Amount::Utilization(_) => u64::MAX,
        };
        let mut sum = 0;
        for number in 0..count {
            self.breathe()?;
            if matches!(files.spec.amount, Amount::Bytes(target) if sum >= target) {
                break;
            }
            files.layout.file(&mut path, number as u32, false);
            let problem = |problem: String| LoadError::NotPrepared {
                fileset: self.name.clone(),
                path: self.root.join(path.shown()),
                problem,
            };
            let size = match kernel::stat(files.directory(), path.as_c()) {
                Ok(stat) => stat.st_size as u64,
                Err(Errno::NOENT | Errno::NOTDIR) => {
                    if number > 0 && matches!(files.spec.amount, Amount::Utilization(_)) {
                        break;
                    }
                    return Err(problem("is missing".into()));
                }
                Err(errno) => return Err(self.refused("stat", &path, errno)),
            };
            let needed = files.sizes.least();
            if size < needed {
                return Err(problem(format!("has {size} bytes where {needed} are needed")));
            }
            let size = files.sizes.fixed().unwrap_or(size);
            sum += size.max(1);
            let file = files.table.begin_create().ok_or_else(|| too_many(&self.name))?;
            files.table.finish_create(file, size);
        }
        Ok(())
    }

    fn device(&self, files: &mut Files) -> Result<(), LoadError> {
        let mut path = PathBuffer::default();
        files.layout.file(&mut path, 0, false);
        files.directory =
            Some(open_below(&self.root, "").map_err(|errno| self.failed("open", self.root.clone(), &errno.into()))?);
        let failed = |call, errno| self.refused(call, &path, errno);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let device = rustix::fs::openat(files.directory(), path.as_c(), flags, Mode::empty())
            .map_err(|errno| failed("open", errno))?;
        let stat = rustix::fs::fstat(&device).map_err(|errno| failed("fstat", errno))?;
        let problem = |problem: String| LoadError::NotPrepared {
            fileset: self.name.clone(),
            path: self.root.join(path.shown()),
            problem,
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
            return Err(problem("is not a block device".into()));
        }
        let size = rustix::fs::seek(&device, SeekFrom::End(0)).map_err(|errno| failed("lseek", errno))?;
        let needed = files.sizes.least();
        if size < needed {
            return Err(problem(format!("has {size} bytes where {needed} are needed")));
        }
        let file = files.table.begin_create().ok_or_else(|| too_many(&self.name))?;
        files.table.finish_create(file, needed);
        files.device = Some(device);
        Ok(())
    }

    /// Reports progress, and stops if the load is to end.
    fn breathe(&self) -> Result<(), LoadError> {
        self.told.breathe(self.files, self.bytes)
    }
}

/// Gives a file blocks, and this size unless it grows; `false` if its filesystem has no such call, or too little room. The load finds out
/// by itself whether there is enough for what it writes.
fn allocated(fd: kernel::Fd, size: u64, grows: bool) -> Result<bool, (&'static str, Errno)> {
    let space = if grows { Space::Reserved } else { Space::Allocated };
    match kernel::fallocate(fd, (0, size), space) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOSPC) => Ok(false),
        Err(errno) => Err(("fallocate", errno)),
    }
}

fn too_many(fileset: &str) -> LoadError {
    LoadError::Unsupported { what: format!("has more than 2^32 files in fileset {fileset:?}") }
}

pub(crate) fn utilization(files: &Files) -> Result<f64, Errno> {
    let statistics = match &files.directory {
        Some(directory) => rustix::fs::fstatvfs(directory)?,
        None => return Ok(0.0),
    };
    Ok(if statistics.f_blocks == 0 { 0.0 } else { 1.0 - statistics.f_bfree as f64 / statistics.f_blocks as f64 })
}

/// Sizes of a fileset, rounded to whole stamps when data is stamped.
pub(crate) fn sizes(spec: &Fileset, stamped: bool) -> Result<Sizes, LoadError> {
    Sizes::new(&spec.size, if stamped { crate::data::stamp::UNIT as u64 } else { 1 })
}
