//! Where a report, a comparison or any other document goes: to standard output, or to what `--output` names.
//!
//! A regular file is replaced as a whole, so that a reader sees the old content or the new. Everything else is written
//! into and never replaced: devices, pipes, what a symbolic link leads to, unless another user could have made the link or the pipe. What is open already, as `/dev/stderr` and
//! `/dev/fd/3` are, is never cut: the document goes where the next write would. Disks are refused.

use crate::{
    exit::Exit,
    paths,
    terminal::{self, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_files::{Owner, Temporary, Trust, descriptor, open_anew, resolve};
use rustix::fs::OFlags;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Write},
    os::fd::RawFd,
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Delivers a document to standard output, or to the path that was named.
pub(crate) fn deliver(to: Option<&Path>, document: &str) -> Result<(), Failure> {
    match to {
        None => terminal::print_document(document),
        Some(path) => write_named(path, document)?,
    }
    Ok(())
}

/// Writes a document to a path that the user named, in a directory that is there.
pub(crate) fn write_named(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    paths::require_directory_of(path, " with --output")?;
    write(path, content)
}

/// The rights to a new document: those that a temporary file has.
const PRIVATE: u32 = 0o600;

/// Writes a document to a path, making the directories above it. A new file is for its owner alone.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    write_for(path, content.as_ref(), PRIVATE)
}

/// The same, for everybody to read.
pub(crate) fn publish(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    write_for(path, content.as_ref(), 0o644)
}

/// The same, with the rights that other programs give to a new file: the umask's.
pub(crate) fn write_as_others(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    write_for(path, content.as_ref(), usual_mode())
}

/// The regular file that a path leads to, to append to. `None` of what is written through a descriptor, which has a place of its own in it.
pub(crate) fn file_of(path: &Path) -> Option<PathBuf> {
    let there = resolve(path).ok().filter(|_| descriptor(path).is_ok_and(|open| open.is_none()))?;
    let found = there.symlink_metadata().ok()?;
    (found.is_file() && !terminal::is_stdout(&found)).then_some(there)
}

/// Appends to a regular file that this process has written. What is in it is taken out of `content`, also if the rest cannot be written.
pub(crate) fn append(path: &Path, content: &mut Vec<u8>) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.append(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let written = options.open(path).and_then(|mut file| {
        while !content.is_empty() {
            match file.write(content) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => drop(content.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    });
    written.with_context(|| format!("cannot write {}", path.display())).or_exit(Exit::LabFailed)
}

/// To ask umask(2) is to change it, of all threads. With sudo it is root's, and says nothing of what the caller's files are like.
pub(crate) fn usual_mode() -> u32 {
    if Owner::caller().is_some() {
        return PRIVATE;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let umask = umask.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
    umask.map_or(PRIVATE, |umask| 0o666 & !umask)
}

fn write_for(path: &Path, content: &[u8], mode: u32) -> Result<(), Failure> {
    let written = match path.symlink_metadata() {
        Ok(found) if found.is_file() => replace(path, content, mode).or_exit(Exit::LabFailed),
        Ok(_) => write_into(path, content),
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(path, content, mode).or_exit(Exit::LabFailed),
        Err(error) => Err(error).or_exit(Exit::LabFailed),
    };
    written.map_err(|Failure { exit, error }| Failure {
        exit,
        error: error.context(format!("cannot write {}", path.display())),
    })
}

fn create(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        paths::create_directory(parent)?;
    }
    replace(path, content, mode)
}

/// Puts a file in place through a temporary one beside it. It belongs to the caller; one that replaces another has that
/// one's owner and rights.
fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let temporary = Temporary::beside(path)?;
    if !temporary.resemble(path)? && mode != PRIVATE {
        temporary.file().set_permissions(fs::Permissions::from_mode(mode))?;
    }
    temporary.file().write_all(content)?;
    temporary.replace(path)
}

/// Writes into what is there already and is no regular file, or leads to one.
fn write_into(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let is_regular = match fs::metadata(path) {
        // /dev/stdout and its like: opened by name it would be cut to nothing, with what was printed before.
        Ok(found) if terminal::is_stdout(&found) => {
            terminal::write_out(content);
            return Ok(());
        }
        Ok(found) if found.is_dir() => return Err(Failure::new(Exit::BadInput, "it is a directory; name a file")),
        Ok(found) => {
            refuse_disk(&found)?;
            found.is_file()
        }
        // The link leads nowhere yet: its file is made.
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(error).or_exit(Exit::LabFailed),
    };
    let into = match descriptor(path).or_exit(Exit::LabFailed)? {
        Some(open) => inherited(open, path),
        None if is_regular => open_anew(path, Owner::caller()),
        None => open_special(path),
    };
    let mut into = into.or_exit(Exit::LabFailed)?;
    // It may have become a disk meanwhile.
    let found = into.metadata().or_exit(Exit::LabFailed)?;
    refuse_disk(&found)?;
    into.write_all(content).or_exit(Exit::LabFailed)?;
    if found.is_file() { into.sync_all().or_exit(Exit::LabFailed) } else { Ok(()) }
}

/// Opens a device or a pipe where no other user's link leads. What is written into another user's pipe, that user reads.
fn open_special(path: &Path) -> io::Result<File> {
    let there = resolve(path)?;
    let refuse = |found: Metadata| match found.file_type().is_fifo() && !Trust::here().includes(found.uid()) {
        true => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is another user's pipe; name another file")),
        false => Ok(()),
    };
    // Before it is opened, which would wait for the reader, and once more what was opened.
    refuse(fs::symlink_metadata(&there)?)?;
    let into = OpenOptions::new().write(true).open(&there)?;
    refuse(into.metadata()?)?;
    Ok(into)
}

/// The file that is open under a number, with the place in it that its other users have. `path` leads to it.
fn inherited(open: RawFd, path: &Path) -> io::Result<File> {
    let process = pidfd_open(getpid(), PidfdFlags::empty());
    match process.and_then(|process| pidfd_getfd(process, open, PidfdGetfdFlags::empty())) {
        Ok(same) => Ok(same.into()),
        // A container may forbid that. The end is where most of them stand.
        Err(_) => OpenOptions::new().append(true).open(path),
    }
}

fn refuse_disk(found: &Metadata) -> Result<(), Failure> {
    if found.file_type().is_block_device() {
        return Err(Failure::new(Exit::CannotHere, "it is a disk, and its contents would be lost"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn written(path: &Path) -> Result<(), String> {
        write(path, "new").map_err(|failure| format!("{:#}", failure.error))
    }

    #[test]
    fn a_regular_file_is_replaced_and_keeps_its_rights() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a/b/report.txt");
        written(&path).expect("with its directories");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
        let before = fs::metadata(&path).expect("there").ino();
        written(&path).expect("again");
        let after = fs::metadata(&path).expect("there");
        assert_ne!(after.ino(), before, "a reader has the old one as a whole");
        assert_eq!(after.mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().expect("it has one")).expect("readable").count(), 1, "nothing beside it");
    }

    #[test]
    fn no_other_users_link_leads_to_what_is_open() {
        use std::os::fd::AsRawFd;
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        let open = File::create(&file).expect("ours");
        symlink(format!("/proc/self/fd/{}", open.as_raw_fd()), &link).expect("made");
        written(&link).expect("this user's own link");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("ours");
        let error = written(&link).expect_err("anybody could have made it, to whatever this process has open");
        assert!(error.contains("another user could have put there"), "{error}");
        assert_eq!(fs::read_to_string(&file).expect("there"), "new");
    }

    #[test]
    fn a_link_stays_and_its_file_is_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        symlink(&file, &link).expect("made");
        for old in [None, Some("something much longer")] {
            if let Some(old) = old {
                fs::write(&file, old).expect("ours");
            }
            written(&link).expect("written");
            assert!(link.symlink_metadata().expect("there").is_symlink());
            assert_eq!(fs::read_to_string(&file).expect("there"), "new");
        }
    }

    #[test]
    fn no_file_is_written_where_another_users_link_leads() {
        let place = tempfile::tempdir().expect("a directory");
        let (shared, file) = (place.path().join("shared"), place.path().join("file"));
        fs::create_dir(&shared).expect("made");
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).expect("ours");
        fs::write(&file, "old").expect("ours");
        symlink(&file, shared.join("to-the-file")).expect("made");
        symlink(place.path().join("new"), shared.join("to-a-new-one")).expect("made");
        for link in ["to-the-file", "to-a-new-one"] {
            let error = written(&shared.join(link)).expect_err("anybody could have made the link");
            assert!(error.contains("another user could have put there"), "{error}");
        }
        assert_eq!(fs::read_to_string(&file).expect("there"), "old");
        assert!(!place.path().join("new").exists());
    }

    /// A file that another user put there, to have its rights or its owner for what replaces it.
    #[test]
    fn a_prepared_file_is_replaced_by_a_private_one() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: giving files away needs root");
        }
        let place = tempfile::tempdir().expect("a directory");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).expect("ours");
        let path = place.path().join("report");
        fs::write(&path, "").expect("made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("ours");
        std::os::unix::fs::chown(&path, Some(65533), None).expect("given away");
        written(&path).expect("replaced");
        let facts = fs::metadata(&path).expect("there");
        assert_eq!((facts.uid(), facts.mode() & 0o777), (0, 0o600));
        // The same in a directory of that user's, whoever may write to it.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("ours");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("ours");
        for path in [path.as_path(), place.path()] {
            std::os::unix::fs::chown(path, Some(65533), None).expect("given away");
        }
        written(&path).expect("replaced");
        let facts = fs::metadata(&path).expect("there");
        assert_eq!((facts.uid(), facts.mode() & 0o777), (0, 0o600));
    }

    #[test]
    fn another_users_pipe_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: giving files away needs root");
        }
        let place = tempfile::tempdir().expect("a directory");
        let (shared, path) = (place.path().join("shared"), place.path().join("pipe"));
        assert!(std::process::Command::new("mkfifo").arg(&path).status().is_ok_and(|status| status.success()));
        std::os::unix::fs::chown(&path, Some(65533), None).expect("given away");
        // Held open, so that a failure does not wait for a reader.
        let _held = OpenOptions::new().read(true).write(true).open(&path).expect("opened");
        let error = written(&path).expect_err("that user would read it");
        assert!(error.contains("another user's pipe"), "{error}");
        fs::create_dir(&shared).expect("made");
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).expect("ours");
        symlink("/dev/null", shared.join("link")).expect("made");
        let error = written(&shared.join("link")).expect_err("anybody could have made the link");
        assert!(error.contains("another user could have put there"), "{error}");
        written(Path::new("/dev/null")).expect("written");
    }

    #[test]
    fn a_pipe_is_written_into() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.is_ok_and(|status| status.success()));
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read_to_string(path)
        });
        written(&path).expect("written");
        assert_eq!(reader.join().expect("it reads").expect("text"), "new");
        assert!(path.symlink_metadata().expect("there").file_type().is_fifo());
    }

    #[test]
    fn a_directory_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = written(directory.path()).expect_err("no file");
        assert!(error.contains("it is a directory; name a file"), "{error}");
    }
}
