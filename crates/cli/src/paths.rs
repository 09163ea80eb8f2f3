//! Where fstone keeps its files, by the XDG base directory specification; under sudo, in the home of the user who
//! called, and owned by that user.

use crate::{exit::Exit, terminal::Failure};
use fstone_files::{Owner, Trust, create_directories};
use std::{
    env, fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// The home directory of a user in /etc/passwd.
pub(crate) fn home_of(uid: u32) -> Option<PathBuf> {
    let passwd = fs::read_to_string("/etc/passwd").ok()?;
    let found = passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2)?.parse() == Ok(uid)).then(|| PathBuf::from(fields.get(5).copied().unwrap_or("/")))
    });
    found.filter(|home| home.is_absolute())
}

/// That of the user who called sudo, if it is there: `nobody` has none, and none is made.
fn caller_home(owner: Option<Owner>) -> Option<PathBuf> {
    owner.and_then(|owner| home_of(owner.user)).filter(|home| home.is_dir())
}

fn base(variable: &str, below_home: &str) -> PathBuf {
    if let Some(home) = caller_home(Owner::caller()) {
        return home.join(below_home).join("fstone");
    }
    let home = || absolute("HOME").or_else(|| home_of(user())).map(|home| home.join(below_home));
    // Without any, `require_home` ends what would use it: no directory in which others may prepare something takes its place.
    absolute(variable).or_else(home).unwrap_or_else(|| PathBuf::from("/nonexistent")).join("fstone")
}

fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Refuses to go on if nothing says where this user's files are, or only /etc/passwd does and others could put theirs there.
pub(crate) fn require_home() -> Result<(), Failure> {
    let is_named =
        ["XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"].into_iter().all(|name| absolute(name).is_some());
    if is_named || absolute("HOME").is_some() || caller_home(Owner::caller()).is_some() {
        return Ok(());
    }
    let unusable = |why: String| {
        let cure = "set HOME, or XDG_CACHE_HOME, XDG_DATA_HOME and XDG_STATE_HOME";
        Failure::new(Exit::CannotHere, format!("HOME is not set, and {why}; {cure}"))
    };
    match home_of(user()) {
        Some(home) => private(&home).map_err(unusable),
        None => Err(unusable(format!("/etc/passwd has no home directory of user {}", user()))),
    }
}

/// Whether only users who are trusted can make files in a directory, or make it; why not otherwise.
fn private(directory: &Path) -> Result<(), String> {
    let found = directory.ancestors().find_map(|path| path.canonicalize().ok());
    match found.map_or(Ok(None), |found| Trust::here().open_to_others(&found)) {
        Ok(None) => Ok(()),
        Ok(Some(open)) => Err(open.to_string()),
        Err(error) => Err(format!("{}: {error}", directory.display())),
    }
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

/// Where aged filesystems are kept.
pub(crate) fn aged() -> PathBuf {
    own_cache().join("aged")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_that_others_can_write_to_is_none() {
        let place = tempfile::tempdir().expect("temporary directory");
        let mode = |mode| {
            fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).expect("ours");
            [place.path().to_owned(), place.path().join("not/there")].map(|home| private(&home))
        };
        assert_eq!(mode(0o700), [Ok(()), Ok(())]);
        for shared in [0o777, 0o1777] {
            let refused = mode(shared);
            assert!(
                refused.iter().all(|told| told.as_ref().is_err_and(|why| why.contains("may write to"))),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn without_any_word_of_the_environment_a_home_is_that_of_the_user() {
        let home = home_of(0).expect("root has one");
        assert!(home.is_absolute() && private(&home).is_ok(), "{}", home.display());
        assert_eq!(home_of(u32::MAX), None);
        let home = |user| caller_home(Some(Owner { user, group: user }));
        assert!(home(0) == home_of(0) && home(u32::MAX).is_none());
        let missing = |user: &u32| home_of(*user).is_some_and(|home| !home.exists());
        let user = [65534, 9, 13, 38].into_iter().find(missing).expect("a system user's home is not there");
        assert_eq!(home(user), None, "it would be made");
    }
}
