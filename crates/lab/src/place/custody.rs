//! Who can replace what stands at a path while root works on it.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Whom the kernel shows as owner of what belongs to nobody that is known (user_namespaces(7)).
const OVERFLOW_USER: u32 = 65534;

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
pub fn replaceable(path: &Path) -> io::Result<Option<PathBuf>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let trusted = trusted();
    let mut parts: Vec<&Path> = path.ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
    parts.reverse();
    for part in parts {
        if is_open(&fs::symlink_metadata(part)?, trusted) {
            return Ok(Some(part.to_owned()));
        }
    }
    Ok(None)
}

/// The same of a directory and, where that is safe, of every directory in it: `None` when names of several parts below it
/// lead nowhere else while root uses them.
///
/// # Errors
/// When a directory cannot be looked at.
pub fn replaceable_within(directory: &Path) -> io::Result<Option<PathBuf>> {
    let mut found = replaceable(directory)?;
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
            if is_open(&entry.metadata()?, trusted) {
                found = Some(entry.path());
            }
            unseen.push(entry.path());
        }
    }
    Ok(found)
}

/// Who may own what root relies on, besides root: the user who called sudo, and whoever stands for the users outside.
fn trusted() -> [Option<u32>; 2] {
    let caller = std::env::var("SUDO_UID").ok().and_then(|text| text.parse().ok());
    // In a user namespace of its own a process sees what belongs to users outside, root among them, as nobody's; so
    // does a guest whose root is that of such a process, and nobody but its process 1 acts there.
    let namespace =
        fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| map.split_whitespace().ne(["0", "0", "4294967295"]));
    let outside = (namespace || fstone_sandbox::agent::is_guest()).then_some(OVERFLOW_USER);
    [caller, outside]
}

/// Whether others can exchange what is in a directory, or a file itself.
fn is_open(facts: &fs::Metadata, trusted: [Option<u32>; 2]) -> bool {
    let (mode, owner) = (facts.mode(), facts.uid());
    let open = facts.is_dir() && mode & 0o022 != 0 && mode & 0o1000 == 0;
    open || !(owner == 0 || trusted.contains(&Some(owner)))
}

/// The error of a place that is not safe to work in because of this part of its path.
#[must_use]
pub fn open(part: &Path) -> io::Error {
    let words = format!(
        "others may write to {}, and root must not work there; chmod go-w it, or name another directory",
        part.display()
    );
    io::Error::new(io::ErrorKind::PermissionDenied, words)
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
        assert_eq!(replaceable(&deep).expect("told"), None);
        mode(0o777);
        assert_eq!(replaceable(&deep).expect("told"), Some(middle.clone()));
        mode(0o1777);
        assert_eq!(replaceable(&deep).expect("told"), None, "sticky");
        mode(0o755);
        chown(&middle, Some(65534), None).expect("given away");
        assert_eq!(replaceable(&deep).expect("told"), Some(middle.clone()));
        // What stands at the end counts too: in a sticky directory its owner could exchange it.
        chown(&middle, Some(0), None).expect("taken back");
        mode(0o1777);
        let file = middle.join("file");
        fs::write(&file, "").expect("written");
        chown(&file, Some(65534), None).expect("given away");
        assert_eq!(replaceable(&file).expect("told"), Some(file));
        assert!(replaceable(Path::new("/dev/null")).expect("told").is_none());
        // What is below a directory counts where names of several parts are used in it.
        assert_eq!(replaceable_within(top.path()).expect("told"), None);
        chown(&deep, Some(65534), None).expect("given away");
        assert_eq!(replaceable(top.path()).expect("told"), None);
        assert_eq!(replaceable_within(top.path()).expect("told"), Some(deep));
    }
}
