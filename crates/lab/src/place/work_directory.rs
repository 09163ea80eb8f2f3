//! The directory that a run makes its images and mount points in, and that no other run uses at the same time.

use crate::place::{custody, device::file_id, holder};
use fstone_files::{Exchangeable, create_directories, directory_of, open_or_create, resolve};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

const LOCK_NAME: &str = "fstone.lock";
const MOUNT_POINT_NAME: &str = "mnt";
const LANE_PREFIX: &str = "lane-";
const DYING: Duration = Duration::from_secs(10);
/// The mode of a work directory that a run makes. Only for its owner: images hold what was measured, and mount points what was
/// mounted. The sticky bit has no meaning there, and tells it from directories that others made (mktemp(1): 0700).
const MODE: u32 = 0o1700;
/// The lock file's line that says so when the directory was made by a run.
const MADE: &str = "this directory was made by fstone";
const MADE_MOUNT_POINT: &str = "mnt was made by fstone";

/// A work directory, locked.
#[derive(Debug)]
pub struct WorkDirectory {
    path: PathBuf,
    lock: File,
    /// Whether a run made it; then it is removed when it is empty.
    made: bool,
    made_mount_point: AtomicBool,
}

/// Why a work directory cannot be had; completes "failed to use the work directory: ".
#[derive(Debug, thiserror::Error)]
pub enum WorkDirectoryError {
    #[error("{}: {cause}; name another with --work-directory", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error("{}: {part}, or name another with --work-directory", path.display())]
    Exchangeable { path: PathBuf, part: Exchangeable },
    #[error("{}: in use by {holder}; wait for it, or name another with --work-directory", path.display())]
    Locked {
        path: PathBuf,
        /// Who: process id, host and command line.
        holder: String,
    },
}

impl WorkDirectory {
    /// Makes it where it is missing, and locks it.
    pub fn lock(path: &Path) -> Result<Self, WorkDirectoryError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |cause| WorkDirectoryError::File { path, cause }
        };
        let made = !path.try_exists().map_err(failed(path))?;
        Self::examine(path)?;
        if made {
            create_directories(directory_of(path), None).map_err(failed(path))?;
            match DirBuilder::new().mode(MODE).create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(path)(error)),
                _ => {}
            }
        }
        // Mount points are compared with the mount table, which knows no symbolic links.
        let path = resolve(path).map_err(failed(path))?;
        if let Some(part) = custody::unowned(&path).map_err(failed(&path))? {
            return Err(WorkDirectoryError::Exchangeable { path, part });
        }
        let lock_path = path.join(LOCK_NAME);
        let since = Instant::now();
        let (mut lock, before) = loop {
            let lock = open_or_create(&lock_path, false).map_err(failed(&lock_path))?;
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                // Another run may have removed the file, in `remove`, after we opened it: then this lock is of a file
                // that nobody finds any more.
                Ok(()) => match (fs::metadata(&lock_path), lock.metadata()) {
                    (Ok(named), Ok(held)) if file_id(&named) == file_id(&held) => {
                        let before = content(&lock);
                        break (lock, before);
                    }
                    _ => {}
                },
                Err(Errno::WOULDBLOCK) => {
                    let said = content(&lock);
                    // A child that a killed run was about to start keeps the lock until it has died as well.
                    if holder_is_gone(&said) && since.elapsed() < DYING {
                        std::thread::sleep(Duration::from_millis(20));
                        continue;
                    }
                    let holder = said.lines().next().unwrap_or("another run").to_owned();
                    return Err(WorkDirectoryError::Locked { path, holder });
                }
                Err(errno) => return Err(failed(&lock_path)(errno.into())),
            }
        };
        // A killed run leaves the file, and with it this knowledge; killed in the few microseconds before it wrote that, or
        // after it removed it, it leaves an empty directory with the mode that it gave.
        let said = |line| before.lines().any(|said| said == line);
        let mode = fs::metadata(&path).map_err(failed(&path))?.permissions().mode();
        // A directory may inherit its set-group-ID bit.
        let as_made = || mode & 0o5777 == MODE && !holds_more_than_the_lock(&path);
        let (made, made_mount_point) = (made || said(MADE) || as_made(), said(MADE_MOUNT_POINT));
        let command: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let mark = |made: bool, line: &'static str| if made { line } else { "" };
        let holder = format!(
            "process {} on {} ({})\n{}\n{}\n{}\n",
            std::process::id(),
            holder::host(),
            crate::command::typed(&command),
            mark(made, MADE),
            mark(made_mount_point, MADE_MOUNT_POINT),
            machine_line()
        );
        lock.set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| lock.write_all(holder.as_bytes()))
            .map_err(failed(&lock_path))?;
        Ok(Self { path, lock, made, made_mount_point: AtomicBool::new(made_mount_point) })
    }

    /// Looks whether a work directory that is missing may be made, so that nothing is made in a place that is then refused.
    pub fn examine(path: &Path) -> Result<(), WorkDirectoryError> {
        let failed = |cause| WorkDirectoryError::File { path: path.to_owned(), cause };
        let mut there = path;
        while !there.try_exists().map_err(failed)? {
            // Made on the way to what lies elsewhere, it would stand in a place that nobody looked at.
            if there.components().next_back() == Some(Component::ParentDir) {
                let words = "\"..\" below a directory that is not there";
                return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, words)));
            }
            let Some(parent) = there.parent() else { break };
            there = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        }
        let there = resolve(there).map_err(failed)?;
        match custody::trusted().exchangeable(&there).map_err(failed)? {
            Some(part) => Err(WorkDirectoryError::Exchangeable { path: path.to_owned(), part }),
            None => Ok(()),
        }
    }

    /// The empty directory where filesystems are mounted. Always the same, so that paths are as long in every trial. What is
    /// mounted there only an agent sees, which has mounts of its own.
    ///
    /// # Errors
    /// When it cannot be made, or something is in it.
    pub fn mount_point(&self) -> io::Result<PathBuf> {
        let path = self.path.join(MOUNT_POINT_NAME);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {
                self.made_mount_point.store(true, Ordering::Relaxed);
                (&self.lock).write_all(format!("{MADE_MOUNT_POINT}\n").as_bytes())?;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        // Of a link or a file the kernel says that it is none.
        let facts = fs::symlink_metadata(&path)?;
        if !facts.is_dir() || fs::read_dir(&path)?.next().is_some() {
            let words = format!("{} must be an empty directory", path.display());
            return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, words));
        }
        Ok(path)
    }

    /// A work directory in this one, for trials that run beside others of the same run. It has to be dropped first.
    pub(crate) fn lane(&self, number: usize) -> Result<Self, WorkDirectoryError> {
        Self::lock(&self.path.join(format!("{LANE_PREFIX}{number}")))
    }

    pub(crate) fn lanes(&self) -> Vec<PathBuf> {
        let is_lane = |entry: &fs::DirEntry| {
            let number =
                entry.file_name().to_str().and_then(|name| name.strip_prefix(LANE_PREFIX)?.parse::<u32>().ok());
            number.is_some() && entry.file_type().is_ok_and(|kind| kind.is_dir())
        };
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut lanes: Vec<PathBuf> = entries.filter(is_lane).map(|entry| entry.path()).collect();
        lanes.sort();
        lanes
    }

    /// Where it is, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkDirectory {
    /// Gives it up: removes the lock file and, where a run made them and they are empty, the mount point and the directory.
    fn drop(&mut self) {
        // Still locked, so nobody else can be at work in it. All of this may fail without harm; a directory that holds
        // something is not removed.
        if *self.made_mount_point.get_mut() {
            let _ = fs::remove_dir(self.path.join(MOUNT_POINT_NAME));
        }
        let holds_more = holds_more_than_the_lock(&self.path);
        // While there is more in it, such as a killed run's journal, the lock file keeps the knowledge of who made it.
        if !(self.made && holds_more) {
            let _ = fs::remove_file(self.path.join(LOCK_NAME));
        }
        if self.made && !holds_more {
            let _ = fs::remove_dir(&self.path);
        }
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

/// Whether there is anything in a directory but our lock file; it counts as such when it cannot be read.
fn holds_more_than_the_lock(directory: &Path) -> bool {
    fs::read_dir(directory).map_or(true, |entries| {
        entries.into_iter().any(|entry| entry.map_or(true, |entry| entry.file_name() != LOCK_NAME))
    })
}

/// The lock file's line that tells this machine's processes from another's, where machines share the directory.
fn machine_line() -> String {
    format!("machine {}", holder::machine())
}

fn holder_is_gone(said: &str) -> bool {
    if !said.lines().any(|line| line == machine_line()) {
        return false;
    }
    let process = said.strip_prefix("process ").and_then(|rest| rest.split_whitespace().next());
    process.is_some_and(|process| !Path::new("/proc").join(process).exists())
}

/// What the holder wrote; little, and of no consequence when it cannot be read.
fn content(lock: &File) -> String {
    let mut bytes = Vec::new();
    let _ = lock.take(4096).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_is_refused_with_the_holder_named() {
        let parent = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let path = parent.path().join("deep/work");
        let first = WorkDirectory::lock(&path).expect("free");
        let error = WorkDirectory::lock(&path).expect_err("taken").to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(first);
        assert!(!path.exists(), "it was made for the run");
    }

    #[test]
    fn another_machines_process_is_not_gone() {
        let gone = format!("process 0 on there (fstone run)\n\n{}\n", machine_line());
        assert!(holder_is_gone(&gone));
        assert!(!holder_is_gone(&gone.replace("machine ", "machine not-")));
        let running = gone.replace("process 0", &format!("process {}", std::process::id()));
        assert!(!holder_is_gone(&running));
    }

    #[test]
    fn no_user_works_where_others_may_write() {
        let parent = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let mode = |mode| fs::set_permissions(parent.path(), fs::Permissions::from_mode(mode)).expect("changed");
        mode(0o777);
        assert!(matches!(WorkDirectory::lock(parent.path()), Err(WorkDirectoryError::Exchangeable { .. })));
        let deep = parent.path().join("deep/work");
        assert!(matches!(WorkDirectory::lock(&deep), Err(WorkDirectoryError::Exchangeable { .. })));
        assert!(!parent.path().join("deep").exists(), "nothing is made where it is refused");
        let around = parent.path().join("new/../../work");
        assert!(matches!(WorkDirectory::lock(&around), Err(WorkDirectoryError::File { .. })));
        assert!(!parent.path().join("new").exists(), "nor on the way to elsewhere");
        mode(0o1777);
        assert!(matches!(WorkDirectory::lock(parent.path()), Err(WorkDirectoryError::Exchangeable { .. })));
        drop(WorkDirectory::lock(&deep).expect("in a sticky one its own cannot be exchanged"));
        mode(0o700);
        drop(WorkDirectory::lock(parent.path()).expect("its own"));
        assert!(parent.path().exists(), "it was there before");
    }

    /// Another user made the directory before, and lets this one write into it.
    #[test]
    fn a_directory_that_another_user_prepared_is_refused() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: giving directories away needs root");
            return;
        }
        let parent = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o1777)).expect("changed");
        let path = parent.path().join("work");
        let (theirs, victim) = (65533, 65532);
        let as_victim = |path: &Path| {
            std::thread::scope(|scope| {
                let become_victim = || {
                    let user = rustix::process::Uid::from_raw(victim);
                    rustix::thread::set_thread_res_uid(user, user, user).expect("become another user");
                    WorkDirectory::lock(path).map(drop)
                };
                scope.spawn(become_victim).join().expect("no panic")
            })
        };
        for mode in [0o777, 0o1777, 0o755] {
            fs::create_dir(&path).expect("made");
            std::os::unix::fs::chown(&path, Some(theirs), None).expect("given away");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("changed");
            let refused = as_victim(&path);
            assert!(matches!(refused, Err(WorkDirectoryError::Exchangeable { .. })), "{mode:o}: {refused:?}");
            let refused = WorkDirectory::lock(&path);
            assert!(matches!(refused, Err(WorkDirectoryError::Exchangeable { .. })), "root, {mode:o}: {refused:?}");
            assert_eq!(fs::read_dir(&path).expect("readable").count(), 0);
            fs::remove_dir(&path).expect("empty");
        }
        // A link to a directory of the victim's own.
        let private = parent.path().join("private");
        DirBuilder::new().mode(0o700).create(&private).expect("made");
        std::os::unix::fs::symlink(&private, &path).expect("linked");
        std::os::unix::fs::chown(&private, Some(victim), None).expect("given away");
        std::os::unix::fs::lchown(&path, Some(theirs), None).expect("given away");
        for refused in [as_victim(&path), as_victim(&path.join("new")), WorkDirectory::lock(&path).map(drop)] {
            let refused = refused.expect_err("another user's link").to_string();
            assert!(refused.contains("another user could have put there"), "{refused}");
        }
        assert_eq!(fs::read_dir(&private).expect("readable").count(), 0);
        fs::remove_file(&path).expect("a link");
        as_victim(&path).expect("its own");
        assert!(!path.exists(), "it was made for the run");
    }

    #[test]
    fn a_killed_run_leaves_a_lock_that_holds_nobody_up_and_says_who_made_the_directory() {
        let parent = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let path = parent.path().join("work");
        let killed = WorkDirectory::lock(&path).expect("free");
        let written = fs::read(path.join(LOCK_NAME)).expect("read");
        drop(killed);
        fs::create_dir(&path).expect("made");
        fs::write(path.join(LOCK_NAME), written).expect("written");
        drop(WorkDirectory::lock(&path).expect("free"));
        assert!(!path.exists());
        fs::create_dir(&path).expect("made by somebody else");
        drop(WorkDirectory::lock(&path).expect("free"));
        assert!(path.exists());
    }

    #[test]
    fn what_was_there_stays() {
        let parent = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let path = parent.path().join("work");
        // As `mktemp -d` makes it.
        DirBuilder::new().mode(0o700).create(&path).expect("made");
        let work = WorkDirectory::lock(&path).expect("free");
        let point = work.mount_point().expect("made");
        drop(work);
        assert!(path.exists() && !point.exists(), "the mount point was ours");
        fs::create_dir(&point).expect("made");
        let work = WorkDirectory::lock(&path).expect("free");
        work.mount_point().expect("it is empty");
        drop(work);
        assert!(point.exists(), "the mount point was the user's");
        // A run that was killed made its mount point, and the next one removes it.
        fs::remove_dir(&point).expect("empty");
        let killed = WorkDirectory::lock(&path).expect("free");
        killed.mount_point().expect("made");
        let written = fs::read(path.join(LOCK_NAME)).expect("read");
        drop(killed);
        fs::create_dir(&point).expect("made");
        fs::write(path.join(LOCK_NAME), written).expect("written");
        drop(WorkDirectory::lock(&path).expect("free"));
        assert!(path.exists() && !point.exists());
        // Killed before it wrote anything.
        fs::remove_dir(&path).expect("empty");
        DirBuilder::new().mode(MODE).create(&path).expect("made");
        drop(WorkDirectory::lock(&path).expect("free"));
        assert!(!path.exists());
    }
}
