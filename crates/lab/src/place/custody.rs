//! Who can replace what is at a path while fstone works on it, as root and in a guest.

use fstone_files::{Exchangeable, Trust};
use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

/// What somebody other than root, this process's user and the user who called sudo could make lead elsewhere ([`Trust::exchangeable`]);
/// `None` also when this process is not root and so has nothing to give away.
pub fn exchangeable(path: &Path) -> io::Result<Option<Exchangeable>> {
    if rustix::process::geteuid().is_root() { trusted().exchangeable(path) } else { Ok(None) }
}

/// The same for a directory of fstone's own, whose contents are trusted and removed, also if this process is not root
/// ([`Trust::open_to_others`]).
pub fn unowned(directory: &Path) -> io::Result<Option<Exchangeable>> {
    trusted().open_to_others(directory)
}

/// The same of a directory and, where that is safe, of every directory in it: `None` when names of several parts below it
/// lead nowhere else while root uses them.
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
            found = found.or(trusted.judge(&entry.path(), &entry.metadata()?));
            unseen.push(entry.path());
        }
    }
    Ok(found)
}

/// The root that a guest sees was made by its own process, and is read-only; nobody but its process 1 acts there.
pub(crate) fn trusted() -> Trust {
    if fstone_sandbox::agent::is_guest() {
        Trust::in_guest(fs::metadata("/").ok().map(|root| root.uid()))
    } else {
        Trust::here()
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
