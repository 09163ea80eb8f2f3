//! Where fstone keeps its files, by the XDG base directory specification; under sudo, in the home of the user who
//! called, and owned by that user.

use fstone_store::{Owner, create_directories, create_file};
use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// The home directory of a user in /etc/passwd.
fn home_of(uid: u32) -> Option<PathBuf> {
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

/// The results file when none is named.
pub(crate) fn default_store() -> PathBuf {
    base("XDG_DATA_HOME", ".local/share").join("fstone.db")
}

/// Kernels for guests when no directory is named.
pub(crate) fn default_kernels() -> PathBuf {
    base("XDG_DATA_HOME", ".local/share").join("kernels")
}

/// What can be made again.
pub(crate) fn default_cache() -> PathBuf {
    base("XDG_CACHE_HOME", ".cache")
}

/// The work directory when none is named.
pub(crate) fn default_work_directory() -> PathBuf {
    default_cache().join("work")
}

/// Makes a directory and those above it; what it makes belongs to the caller.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    create_directories(path, Owner::caller())
}

/// Writes a whole file through a temporary one beside it, so that a reader sees the old content or the new. The file
/// belongs to the caller.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.part", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let Some(mut file) = create_file(&temporary, Owner::caller())? else {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} is in the way", temporary.display())));
    };
    let result = file.write_all(content).and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    result
}
