//! Ageing: writes and removes files on a mounted filesystem, with real data, until its targets are reached.
//!
//! There is one thread, and nothing depends on a clock, so that a simulated machine repeats it exactly. On a real one, when the kernel
//! writes back between two syncs is its own decision, and moves single extents.

mod plan;

use crate::data::{Depot, Destination};
use fstone_model::{
    age::{AGED_DIRECTORY, Age, TOLERANCE},
    workload::DataPattern,
};
use plan::{Name, Op, PIECE, Planner};
use rustix::{
    fs::{
        AtFlags, Mode, OFlags, StatVfs, Timespec, Timestamps, fstat, fstatvfs, ftruncate, futimens, mkdirat, openat,
        renameat, syncfs, unlinkat,
    },
    io::Errno,
    time::{ClockId, clock_gettime},
};
use std::{
    collections::HashMap,
    fs::File,
    io::Error,
    os::{fd::AsFd, unix::fs::FileExt},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// How often the space in use is compared with the plan while as much is written as files have in the end, and at most in the end.
const LOOKS: f64 = 32.0;
const LAST_LOOKS: usize = 8;
/// The plan is corrected if the space in use differs from it by more than this share.
const DEADBAND: f64 = TOLERANCE / 20.0;
const PROGRESS: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy)]
pub struct AgeProgress {
    pub elapsed: Duration,
    /// An estimate of the whole.
    pub expected: Duration,
    pub operations: u64,
    pub written_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct Lived {
    pub operations: u64,
    pub written_bytes: u64,
    /// What was to be written.
    pub planned_bytes: f64,
}

/// Why a filesystem was not aged; completes "failed to age it: …".
#[derive(Debug, thiserror::Error)]
pub enum AgeError {
    #[error("{0}")]
    Impossible(String),
    #[error("{call} {path}: {cause}")]
    Call { call: &'static str, path: String, cause: Error },
    #[error("stopped")]
    Interrupted,
}

/// Ages the filesystem whose root is given; nothing else may write there meanwhile.
///
/// # Errors
/// [`AgeError`]; the filesystem must not be measured then.
pub fn age(
    age: &Age,
    root: &Path,
    seed: u64,
    stop: &AtomicBool,
    progress: &dyn Fn(AgeProgress),
) -> Result<Lived, AgeError> {
    let directory = root.join(AGED_DIRECTORY);
    let failed =
        |call| move |cause: Errno| AgeError::Call { call, path: AGED_DIRECTORY.to_owned(), cause: cause.into() };
    rustix::fs::mkdir(&directory, Mode::from_raw_mode(0o755)).map_err(|cause| match cause {
        Errno::ROFS => AgeError::Impossible("it is read-only".to_owned()),
        cause => failed("mkdir")(cause),
    })?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let base = File::from(rustix::fs::open(&directory, flags, Mode::empty()).map_err(failed("open"))?);
    let look = || {
        syncfs(&base).map_err(failed("syncfs"))?;
        fstatvfs(&base).map(|stat| Space::of(&stat)).map_err(failed("statvfs"))
    };
    let space = look()?;
    let live = age.utilization * space.total - space.used;
    if live < space.block as f64 {
        let words = format!("{:.0} of {:.0} bytes are in use already", space.used, space.total);
        return Err(AgeError::Impossible(words));
    }
    let mut planner =
        Planner::new(age, (space.total as u64, live as u64), space.block, seed).map_err(AgeError::Impossible)?;
    let (files, directories) = (planner.files(), planner.directories());
    if let Some(free) = space.inodes.filter(|free| files + directories as f64 > *free) {
        let words = format!("{files:.0} files and {directories} directories do not fit: {free:.0} inodes are free");
        return Err(AgeError::Impossible(words));
    }
    let pattern = DataPattern { compressible: age.compressible, ..DataPattern::default() };
    let depot = Depot::new(pattern, PIECE as usize, seed);
    let now = clock_gettime(ClockId::Realtime);
    let mut writer =
        Writer { base: &base, paths: vec![String::new()], growing: HashMap::new(), now, source: depot.source() };
    let started = Instant::now();
    let (mut operations, mut reported) = (0, Duration::ZERO);
    // Before, it is mostly metadata that is in use.
    let mut next_look = planner.live_bytes() / 8.0;
    let (mut last_looks, mut makes_up) = (LAST_LOOKS, false);
    // How much space files take, metadata and overwritten parts that are kept included, only the filesystem knows, and how much there is
    // for data if metadata have space of their own.
    let correct = |planner: &mut Planner, writer: &Writer<'_>| {
        let found = look()?;
        let used = found.used - space.used - writer.kept_for_growth(planner.growing_bytes());
        let present = planner.present_bytes() as f64;
        let wanted = (age.utilization * found.total - space.used)
            * if used > 0.0 && present > 0.0 { present / used } else { 1.0 };
        let is_off = (wanted / planner.live_bytes() - 1.0).abs() > DEADBAND;
        if is_off {
            planner.aim(wanted);
        }
        Ok(is_off)
    };
    loop {
        let Some(op) = planner.next() else {
            if last_looks > 0 {
                last_looks = if correct(&mut planner, &writer)? { last_looks - 1 } else { 0 };
                continue;
            }
            if !std::mem::replace(&mut makes_up, true) {
                planner.make_up();
                last_looks = LAST_LOOKS;
                continue;
            }
            // Ages count from here.
            let times = Timestamps { last_access: now, last_modification: now };
            futimens(&base, &times).map_err(failed("utimens"))?;
            let (written_bytes, planned_bytes) = (planner.written_bytes(), planner.total_bytes());
            return Ok(Lived { operations, written_bytes, planned_bytes });
        };
        if stop.load(Ordering::Acquire) {
            return Err(AgeError::Interrupted);
        }
        writer.carry_out(op)?;
        operations += 1;
        let written = planner.written_bytes() as f64;
        if op == Op::Sync && written >= next_look {
            correct(&mut planner, &writer)?;
            next_look = written + planner.live_bytes() / LOOKS;
        }
        let elapsed = started.elapsed();
        if elapsed >= reported + PROGRESS {
            reported = elapsed;
            let expected = elapsed.mul_f64((planner.total_bytes() / written.max(1.0)).clamp(1.0, 1e6));
            progress(AgeProgress { elapsed, expected, operations, written_bytes: planner.written_bytes() });
        }
    }
}

/// The space of a filesystem in bytes, as df(1) counts: without what is reserved for root.
struct Space {
    total: f64,
    used: f64,
    block: u64,
    /// Free ones; `None` if there is no limit.
    inodes: Option<f64>,
}

impl Space {
    fn of(stat: &StatVfs) -> Self {
        let unit = stat.f_frsize as f64;
        let used = stat.f_blocks.saturating_sub(stat.f_bfree) as f64 * unit;
        let inodes = (stat.f_files > 0).then_some(stat.f_ffree as f64);
        Self { total: used + stat.f_bavail as f64 * unit, used, block: stat.f_bsize.clamp(512, 64 << 10), inodes }
    }
}

struct Writer<'a> {
    base: &'a File,
    /// Of directories, by their numbers. All but the first, which is `base`, end with a slash.
    paths: Vec<String>,
    /// By their numbers. A filesystem keeps room for a file that is opened again and again to grow, until long after.
    growing: HashMap<u32, File>,
    now: Timespec,
    source: crate::data::Source<'a>,
}

impl Writer<'_> {
    /// What files that grow take beyond the bytes they have. It is given back when they are complete, and can be a third of all (xfs).
    fn kept_for_growth(&self, bytes: u64) -> f64 {
        let taken = self.growing.values().filter_map(|file| fstat(file).ok()).map(|stat| stat.st_blocks as u64 * 512);
        taken.sum::<u64>().saturating_sub(bytes) as f64
    }

    fn carry_out(&mut self, op: Op) -> Result<(), AgeError> {
        match self.attempt(op) {
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

    fn attempt(&mut self, op: Op) -> Result<(), (&'static str, String, Error)> {
        let path = |name: Name| format!("{}{:x}", self.paths[name.directory as usize], name.number);
        let open = |path: &str, flags: OFlags| {
            let flags = flags | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(self.base, path, flags, Mode::from_raw_mode(0o644)).map(File::from)
        };
        let failed = |call, path: &str, cause: Errno| (call, path.to_owned(), cause.into());
        match op {
            Op::Directory { number, parent } => {
                // No file has a name with an s: those are hexadecimal.
                let path = format!("{}sub{number:x}", self.paths[parent as usize]);
                mkdirat(self.base, &path, Mode::from_raw_mode(0o755)).map_err(|errno| failed("mkdir", &path, errno))?;
                self.paths.push(path + "/");
            }
            Op::Write { name, offset, length, makes, ends } => {
                let path = path(name);
                // Without EXCL, because a write that found no space is tried again.
                let flags = if makes { OFlags::CREATE } else { OFlags::empty() };
                let file = match self.growing.remove(&name.number) {
                    Some(file) => file,
                    None => open(&path, flags).map_err(|errno| failed("open", &path, errno))?,
                };
                if length > 0 {
                    let data = self.source.next(length as usize, Destination { file: 0, offset });
                    file.write_all_at(data, offset).map_err(|error| ("write", path, error))?;
                }
                if !ends {
                    self.growing.insert(name.number, file);
                }
            }
            Op::Truncate { name, length } => {
                let path = path(name);
                let file = open(&path, OFlags::empty()).map_err(|errno| failed("open", &path, errno))?;
                ftruncate(&file, length).map_err(|errno| failed("truncate", &path, errno))?;
            }
            Op::Rename { from, to } => {
                let (from, to) = (path(from), path(to));
                renameat(self.base, &from, self.base, &to).map_err(|errno| failed("rename", &from, errno))?;
            }
            Op::Remove { name } => {
                self.growing.remove(&name.number);
                let path = path(name);
                unlinkat(self.base, &path, AtFlags::empty()).map_err(|errno| failed("unlink", &path, errno))?;
            }
            Op::Date { name, hours } => {
                let path = path(name);
                let file = open(&path, OFlags::empty()).map_err(|errno| failed("open", &path, errno))?;
                let then = Timespec { tv_sec: self.now.tv_sec - (hours * 3600.0) as i64, tv_nsec: 0 };
                futimens(&file, &Timestamps { last_access: then, last_modification: then })
                    .map_err(|errno| failed("utimens", &path, errno))?;
            }
            Op::Sync => syncfs(self.base.as_fd()).map_err(|errno| failed("syncfs", "", errno))?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut writer =
            Writer { base: &base, paths: vec![String::new()], growing: HashMap::new(), now, source: depot.source() };
        while let Some(op) = planner.next() {
            writer.carry_out(op).expect("it can be done");
        }
        let files = files(place.path());
        let bytes: u64 = files.iter().map(|(length, _)| length.next_multiple_of(4096)).sum();
        assert_eq!(bytes, planner.present_bytes());
        assert!(files.iter().all(|(_, modified)| now.tv_sec - modified <= 122_640 * 3600 + 1));
        let old = files.iter().filter(|(_, modified)| now.tv_sec - modified > 5503 * 3600).count() as f64;
        assert!((0.3..0.45).contains(&(old / files.len() as f64)), "{old} of {}", files.len());
    }
}
