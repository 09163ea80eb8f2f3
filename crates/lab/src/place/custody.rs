//! Who can replace what is at a path while fstone works on it.

use fstone_files::{Trust, others_may_write};
use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// A part of a path that somebody else could make lead elsewhere, and why; a sentence without its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Exchangeable {
    #[error("others may write to {}, so fstone does not work there; chmod go-w it", .0.display())]
    Writable(PathBuf),
    /// As /tmp is, which is to stay so.
    #[error("all may write to {}, so fstone does not work in it itself; name a directory of your own below it", .0.display())]
    Shared(PathBuf),
    #[error("{} belongs to user {}, so fstone does not work there; work as that user", .0.display(), .1)]
    Owned(PathBuf, u32),
}

impl Exchangeable {
    pub fn refusal(&self) -> io::Error {
        io::Error::new(io::ErrorKind::PermissionDenied, format!("{self}, or name another directory"))
    }
}

/// The first part of a path, from the root down, that somebody other than root, this process' user and the user who
/// called sudo could make lead elsewhere; `None` when there is none, or when this process is not root and so has
/// nothing to give away. The path has to be without symbolic links.
///
/// The argument: a name is looked up part by part, and a part can be exchanged only by who may write the directory
/// above it. Where each directory on the way is owned by one of those three and writable by nobody else, only they can.
/// In a sticky directory, such as /tmp, others may write but cannot rename or remove what is not theirs, and the part
/// below is looked at in its turn.
///
/// # Errors
/// When a part cannot be looked at.
pub fn exchangeable(path: &Path) -> io::Result<Option<Exchangeable>> {
    if rustix::process::geteuid().is_root() { on_the_way(path) } else { Ok(None) }
}

/// The same for a directory of fstone's own, whose contents are trusted and removed, also if this process is not root. The directory
/// must belong to this user, and no other user may write to it, even if it is sticky.
///
/// # Errors
/// When a part cannot be looked at.
pub fn unowned(directory: &Path) -> io::Result<Option<Exchangeable>> {
    if let Some(found) = on_the_way(directory)? {
        return Ok(Some(found));
    }
    let facts = fs::symlink_metadata(directory)?;
    if others_may_write(directory, &facts) {
        let is_sticky = facts.mode() & 0o1000 != 0;
        let found = if is_sticky { Exchangeable::Shared } else { Exchangeable::Writable };
        return Ok(Some(found(directory.to_owned())));
    }
    let is_own = facts.uid() == rustix::process::geteuid().as_raw();
    Ok(if is_own { None } else { judge(directory, &facts, &trusted()) })
}

pub(crate) fn on_the_way(path: &Path) -> io::Result<Option<Exchangeable>> {
    let trusted = trusted();
    let mut parts: Vec<&Path> = path.ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
    parts.reverse();
    for part in parts {
        if let Some(found) = judge(part, &fs::symlink_metadata(part)?, &trusted) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The same of a directory and, where that is safe, of every directory in it: `None` when names of several parts below it
/// lead nowhere else while root uses them.
///
/// # Errors
/// When a directory cannot be looked at.
pub fn exchangeable_within(directory: &Path) -> io::Result<Option<Exchangeable>> {
    let mut found = exchangeable(directory)?;
    if !rustix::process::geteuid().is_root() {
        return Ok(found);
    }
    let trusted = trusted();
    let mut unseen = vec![directory.to_owned()];
    while let Some(directory) = unseen.pop().filter(|_| found.is_none()) {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                continue;
            }
            found = found.or(judge(&entry.path(), &entry.metadata()?, &trusted));
            unseen.push(entry.path());
        }
    }
    Ok(found)
}

/// The root that a guest sees was made by its own process, and is read-only; nobody but its process 1 acts there.
fn trusted() -> Trust {
    if fstone_sandbox::agent::is_guest() {
        Trust::in_guest(fs::metadata("/").ok().map(|root| root.uid()))
    } else {
        Trust::here()
    }
}

fn judge(part: &Path, facts: &fs::Metadata, trusted: &Trust) -> Option<Exchangeable> {
    let (mode, owner) = (facts.mode(), facts.uid());
    if !trusted.includes(owner) {
        Some(Exchangeable::Owned(part.to_owned(), owner))
    } else if facts.is_dir() && others_may_write(part, facts) && mode & 0o1000 == 0 {
        Some(Exchangeable::Writable(part.to_owned()))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown};

    #[test]
    fn every_directory_on_the_way_counts() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: it is about root");
            return;
        }
        let top = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let deep = top.path().join("a/b");
        fs::create_dir_all(&deep).expect("made");
        let middle = top.path().join("a");
        let mode = |mode| fs::set_permissions(&middle, fs::Permissions::from_mode(mode)).expect("changed");
        assert_eq!(exchangeable(&deep).expect("told"), None);
        mode(0o777);
        assert_eq!(exchangeable(&deep).expect("told"), Some(Exchangeable::Writable(middle.clone())));
        mode(0o1777);
        assert_eq!(exchangeable(&deep).expect("told"), None, "sticky");
        let shared = unowned(&middle).expect("told").expect("all may write");
        assert!(!shared.to_string().contains("chmod"), "{shared}: /tmp is to stay as it is");
        mode(0o755);
        chown(&middle, Some(65534), None).expect("given away");
        assert_eq!(exchangeable(&deep).expect("told"), Some(Exchangeable::Owned(middle.clone(), 65534)));
        // What stands at the end counts too: in a sticky directory its owner could exchange it.
        chown(&middle, Some(0), None).expect("taken back");
        mode(0o1777);
        let file = middle.join("file");
        fs::write(&file, "").expect("written");
        chown(&file, Some(65534), None).expect("given away");
        assert_eq!(exchangeable(&file).expect("told"), Some(Exchangeable::Owned(file, 65534)));
        assert!(exchangeable(Path::new("/dev/null")).expect("told").is_none());
        // What is below a directory counts where names of several parts are used in it.
        assert_eq!(exchangeable_within(top.path()).expect("told"), None);
        chown(&deep, Some(65534), None).expect("given away");
        assert_eq!(exchangeable(top.path()).expect("told"), None);
        assert_eq!(exchangeable_within(top.path()).expect("told"), Some(Exchangeable::Owned(deep, 65534)));
    }
}
