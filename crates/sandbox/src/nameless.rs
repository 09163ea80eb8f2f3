//! Files without a name: nothing is left of one when it is closed, be it by a kill.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;
use std::fs::{File, OpenOptions, remove_file};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes one in a directory, to be read and written by its owner. Where the filesystem has none, it has a name until it is
/// open.
///
/// # Errors
/// When it cannot be made.
pub fn make(directory: &Path) -> io::Result<File> {
    match make_where_possible(directory)? {
        Some(file) => Ok(file),
        None => named_for_a_moment(directory),
    }
}

/// The same; `None` where the filesystem has none.
///
/// # Errors
/// As [`make`].
pub fn make_where_possible(directory: &Path) -> io::Result<Option<File>> {
    // EXCL: it never gets a name.
    temporary(directory, OFlags::EXCL)
}

/// One that [`name`] will give a name; `None` where the filesystem has none.
pub(crate) fn make_to_be_named(directory: &Path) -> io::Result<Option<File>> {
    temporary(directory, OFlags::empty())
}

/// Gives it its name, which nothing else may have.
pub(crate) fn name(file: &File, path: &Path) -> io::Result<()> {
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, open, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

fn temporary(directory: &Path, more: OFlags) -> io::Result<Option<File>> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | more;
    match open(directory, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(Some(file.into())),
        // What filesystems without them say, and kernels that do not know the flag (open(2)).
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn named_for_a_moment(directory: &Path) -> io::Result<File> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!(".fstone-{}-{number}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn it_has_no_name_however_it_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let names = || std::fs::read_dir(directory.path()).unwrap().count();
        for file in [make(directory.path()).unwrap(), named_for_a_moment(directory.path()).unwrap()] {
            let facts = file.metadata().unwrap();
            assert_eq!((facts.nlink(), facts.mode() & 0o777, names()), (0, 0o600, 0));
        }
        assert!(make(&directory.path().join("missing")).is_err());
    }

    #[test]
    fn only_what_is_to_be_named_gets_a_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("name");
        let (Some(never), Some(later)) =
            (make_where_possible(directory.path()).unwrap(), make_to_be_named(directory.path()).unwrap())
        else {
            return eprintln!("skipped: this filesystem has no files without names");
        };
        assert!(name(&never, &path).is_err() && !path.exists());
        name(&later, &path).unwrap();
        assert!(path.exists());
        let taken = name(&make_to_be_named(directory.path()).unwrap().unwrap(), &path).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    }
}
