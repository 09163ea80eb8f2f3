//! Where fstone keeps its files, by the XDG base directory specification; under sudo, in the home of the user who
//! called, and owned by that user.

use crate::{exit::Exit, terminal::Failure};
use fstone_files::{Owner, create_directories};
use std::{
    env, fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// The home directory of a user in /etc/passwd.
pub(crate) fn home_of(uid: u32) -> Option<PathBuf> {
    let passwd = fs::read_to_string("/etc/passwd").ok()?;
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2)?.parse() == Ok(uid)).then(|| PathBuf::from(fields.get(5).copied().unwrap_or("/")))
    })
}

fn base(variable: &str, below_home: &str) -> PathBuf {
    if let Some(owner) = Owner::caller()
        && let Some(home) = home_of(owner.user)
    {
        return home.join(below_home).join("fstone");
    }
    let set = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    set.or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(below_home)))
        .unwrap_or_else(|| PathBuf::from("/var/tmp"))
        .join("fstone")
}

pub(crate) fn default_store() -> PathBuf {
    base("XDG_DATA_HOME", ".local/share").join("fstone.db")
}

pub(crate) fn default_kernels() -> PathBuf {
    base("XDG_DATA_HOME", ".local/share").join("kernels")
}

pub(crate) fn default_logs() -> PathBuf {
    base("XDG_STATE_HOME", ".local/state")
}

/// Notes of the runs that this user began.
pub(crate) fn default_begun() -> PathBuf {
    default_logs().join("begun")
}

/// What can be made again.
pub(crate) fn default_cache() -> PathBuf {
    base("XDG_CACHE_HOME", ".cache")
}

/// What guests are started from, what is kept of those that crashed, and source trees. Root makes it for root: in a caller's directory,
/// links would be followed, and the caller could not go on there without `sudo`.
pub(crate) fn own_cache() -> PathBuf {
    if Owner::caller().is_some() { PathBuf::from("/var/cache/fstone") } else { default_cache() }
}

/// Makes a directory in [`own_cache`], with those above it. Root's are for everybody to read, whatever root's umask is: guests are
/// started from there.
pub(crate) fn create_in_own_cache(path: &Path) -> io::Result<()> {
    if Owner::caller().is_none() {
        return create_directory(path);
    }
    let missing: Vec<&Path> = path.ancestors().take_while(|above| !above.is_dir()).collect();
    for directory in missing.into_iter().rev() {
        match fs::create_dir(directory) {
            Ok(()) => fs::File::open(directory)?.set_permissions(fs::Permissions::from_mode(0o755))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(crate) fn default_work_directory() -> PathBuf {
    default_cache().join("work")
}

/// The directory that a path is in: the current one for a mere name.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses a path that a user named if there is no directory for its last part, so that a typo does not create one.
/// `option`, as in " with --store", says how another is named.
pub(crate) fn require_directory_of(path: &Path, option: &str) -> Result<(), Failure> {
    let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return Ok(()) };
    let named = directory.display();
    let words = match fs::metadata(directory) {
        Ok(found) if !found.is_dir() => format!("{named} is not a directory; name another place{option}"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            format!("there is no directory {named}; make it, or name another place{option}")
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            format!("a part of the path {named} is a file; name another place{option}")
        }
        // What cannot be examined is reported where it is needed.
        Ok(_) | Err(_) => return Ok(()),
    };
    Err(Failure::new(Exit::BadInput, words))
}

/// Removes a file, or a link, which is not followed. A missing one counts as removed.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes a directory and those above it; what it makes belongs to the caller.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    create_directories(path, Owner::caller())
}
