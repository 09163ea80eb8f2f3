//! Archives of source trees: made ones, kept so that they are made once, and those of the user and the system.

use crate::command::{CommandLine, CommandRunner, RunError};
use crate::source_tree::SourceTree;
use fstone_files::{OwnDirectory, Owner};
use fstone_model::fnv::fnv1a;
use std::{
    fs, io,
    os::unix::{
        ffi::OsStrExt,
        fs::{PermissionsExt, chown},
    },
    path::{Path, PathBuf},
    time::Duration,
};

/// Raised whenever the same seed and number of files give another tree, so that no stale archive is used.
const VERSION: u32 = 1;

/// A full-size tree takes a few minutes to pack.
const LIMIT: Duration = Duration::from_secs(3600);

/// Why there is no archive or tree; completes "failed to prepare the source tree: ".
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("{}: {cause}", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error("running tar: {0}")]
    Run(RunError),
    #[error("tar ended with {status}: {words}")]
    Tar { status: i32, words: String },
}

impl From<RunError> for ArchiveError {
    fn from(cause: RunError) -> Self {
        Self::Run(cause)
    }
}

/// Where [`archive`] keeps the archive of a tree, made or not yet.
pub fn archive_path(tree: SourceTree, directory: &Path) -> PathBuf {
    directory.join(format!("source-v{VERSION}-{}-{}.tar.gz", tree.files, tree.seed))
}

/// The tree as `linux.tar.gz` would be (gzip, so that unpacking waits for the filesystem and not for the decompressor), in
/// `directory`: made when it is not there yet.
///
/// # Errors
/// When it cannot be written or packed; nothing half-made is left under the archive's name.
pub fn archive(tree: SourceTree, directory: &Path, runner: &dyn CommandRunner) -> Result<PathBuf, ArchiveError> {
    let archive = archive_path(tree, directory);
    if !archive.is_file() {
        scratch(directory, "made", |scratch| {
            let top = scratch.join("linux");
            fs::create_dir(&top).map_err(failed(&top))?;
            tree.write(&top).map_err(failed(&top))?;
            fs::rename(pack(&top, scratch, runner)?, &archive).map_err(failed(&archive))
        })?;
    }
    Ok(archive)
}

/// A directory of the user's as an archive of the same kind, in `directory`. It is packed anew every time: it may have
/// changed. It is for the `caller` of `sudo` alone.
pub fn archive_of(
    tree: &Path,
    directory: &Path,
    caller: Option<Owner>,
    runner: &dyn CommandRunner,
) -> Result<PathBuf, ArchiveError> {
    let tree = tree.canonicalize().map_err(failed(tree))?;
    // One archive per tree, not one per run.
    let hash = fnv1a(tree.as_os_str().as_encoded_bytes());
    let archive = directory.join(format!("named-{hash:016x}.tar.gz"));
    scratch(directory, "named", |scratch| {
        let packed = pack(&tree, scratch, runner)?;
        keep_from_others(&packed, 0o600, caller).map_err(failed(&packed))?;
        fs::rename(packed, &archive).map_err(failed(&archive))
    })?;
    Ok(archive)
}

/// The tree of an archive, unpacked in `directory`; unpacked anew when the archive is newer.
pub fn unpacked(
    archive: &Path,
    directory: &Path,
    caller: Option<Owner>,
    runner: &dyn CommandRunner,
) -> Result<PathBuf, ArchiveError> {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    // One per archive and user: another user of the machine may not read it.
    let user = caller.map_or(0, |caller| caller.user).to_le_bytes();
    let hash = fnv1a(&[archive.as_os_str().as_bytes(), &user].concat());
    let around = directory.join(format!("{}-{hash:016x}.tree", name.split(".tar").next().unwrap_or_default()));
    let tree = around.join("tree");
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    if tree.is_dir() && modified(&tree) > modified(archive) {
        return Ok(tree);
    }
    scratch(directory, "unpacked", |scratch| {
        let new = scratch.join("new");
        let fresh = new.join("tree");
        fs::create_dir_all(&fresh).map_err(failed(&fresh))?;
        let (from, to) = (archive.display().to_string(), fresh.display().to_string());
        // -m: the top directory's time says when it was unpacked.
        tar(&["-C", &to, "--strip-components=1", "-mxf", &from], runner)?;
        // Around it, because a filesystem that is made of the tree has the tree's own rights.
        keep_from_others(&new, 0o700, caller).map_err(failed(&new))?;
        if around.is_dir() {
            fs::rename(&around, scratch.join("old")).map_err(failed(&around))?;
        }
        fs::rename(&new, &around).map_err(failed(&around))
    })?;
    Ok(tree)
}

/// The newest archive of a kernel's source in a directory, `linux-source-VERSION.tar.xz` as Debian's packages bring it.
pub fn installed(directory: &Path) -> Option<PathBuf> {
    let version = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        let (version, _) = name.strip_prefix("linux-source-")?.split_once(".tar.")?;
        Some(version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>())
    };
    let entries = fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    entries.filter_map(|path| Some((version(&path)?, path))).max().map(|(_, path)| path)
}

/// Does something in a directory of its own, which is gone afterwards. Of this process alone: two runs may make the same
/// archive at once, and the last one's rename stands.
fn scratch(
    directory: &Path,
    name: &str,
    work: impl FnOnce(&Path) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    fs::create_dir_all(directory).map_err(failed(directory))?;
    let prefix = format!("{name}.part-");
    OwnDirectory::remove_left(directory, &prefix);
    let own = OwnDirectory::make(directory, &prefix).map_err(failed(directory))?;
    work(own.path())
}

/// With `sudo`, everybody can read the cache: what is made of a user's own tree is for that user, as whom a guest reads it. Without, the
/// cache is the user's own.
fn keep_from_others(path: &Path, mode: u32, caller: Option<Owner>) -> io::Result<()> {
    let Some(caller) = caller else { return Ok(()) };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    chown(path, Some(caller.user), Some(caller.group))
}

fn pack(top: &Path, scratch: &Path, runner: &dyn CommandRunner) -> Result<PathBuf, ArchiveError> {
    let (Some(parent), Some(name)) = (top.parent(), top.file_name()) else {
        return Err(failed(top)(io::Error::new(io::ErrorKind::InvalidInput, "it has no name to be packed under")));
    };
    let packed = scratch.join("packed.tar.gz");
    let (from, name, to) = (parent.display().to_string(), name.to_string_lossy(), packed.display().to_string());
    tar(&["-C", &from, "-czf", &to, "--", &name], runner)?;
    Ok(packed)
}

fn tar(arguments: &[&str], runner: &dyn CommandRunner) -> Result<(), ArchiveError> {
    let output = runner.run(&CommandLine::new("tar", arguments.iter().copied()), LIMIT)?;
    if output.status == 0 {
        return Ok(());
    }
    Err(ArchiveError::Tar { status: output.status, words: output.stderr.trim().to_owned() })
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> ArchiveError + use<> {
    let path = path.to_owned();
    move |cause| ArchiveError::File { path, cause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{command::SystemRunner, stop::Stop};
    use std::sync::Arc;

    #[test]
    fn the_newest_installed_archive_is_found_by_its_version() {
        let directory = tempfile::tempdir().expect("a directory");
        assert_eq!(installed(directory.path()), None);
        assert_eq!(installed(Path::new("/nonexistent")), None);
        for name in ["linux-source-6.1", "linux-source-6.2.tar.xz", "linux-source-6.12.tar.xz", "linux-config-9.tar.xz"]
        {
            fs::write(directory.path().join(name), "").expect("written");
        }
        assert_eq!(installed(directory.path()), Some(directory.path().join("linux-source-6.12.tar.xz")));
    }

    #[test]
    fn a_directory_is_packed_and_unpacked_again() {
        let (home, cache) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let runner = SystemRunner::new(Arc::new(Stop::default()));
        let tree = home.path().join("my tree");
        fs::create_dir_all(tree.join("a")).expect("made");
        fs::write(tree.join("a/b"), "1").expect("written");
        let archive = archive_of(&tree, cache.path(), None, &runner).expect("packed");
        let first = unpacked(&archive, cache.path(), None, &runner).expect("unpacked");
        assert_eq!(fs::read_to_string(first.join("a/b")).expect("there"), "1");

        fs::write(tree.join("a/b"), "2").expect("written");
        assert_eq!(archive_of(&tree, cache.path(), None, &runner).expect("packed again"), archive);
        assert_eq!(unpacked(&archive, cache.path(), None, &runner).expect("unpacked again"), first);
        assert_eq!(fs::read_to_string(first.join("a/b")).expect("there"), "2");
        assert_eq!(fs::read_dir(cache.path()).expect("listed").count(), 2, "nothing half-made is left");

        fs::write(cache.path().join("broken.tar.gz"), "no archive").expect("written");
        let error = unpacked(&cache.path().join("broken.tar.gz"), cache.path(), None, &runner).expect_err("no archive");
        assert!(error.to_string().contains("tar"), "{error}");
        assert!(archive_of(Path::new("/"), cache.path(), None, &runner).is_err(), "it has no name");
    }

    #[test]
    fn with_sudo_a_tree_is_kept_for_the_caller_alone() {
        use std::os::unix::fs::MetadataExt;
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: only root can give files away");
        }
        let (home, cache) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let runner = SystemRunner::new(Arc::new(Stop::default()));
        let tree = home.path().join("tree");
        fs::create_dir(&tree).expect("made");
        fs::set_permissions(&tree, fs::Permissions::from_mode(0o755)).expect("ours");
        fs::write(tree.join("key"), "secret").expect("written");
        let caller = Some(Owner { user: 65533, group: 65533 });
        let archive = archive_of(&tree, cache.path(), caller, &runner).expect("packed");
        let unpacked_tree = unpacked(&archive, cache.path(), caller, &runner).expect("unpacked");
        assert!(unpacked_tree.join("key").is_file());
        for entry in fs::read_dir(cache.path()).expect("listed") {
            let facts = entry.expect("listed").metadata().expect("there");
            assert_eq!((facts.uid(), facts.mode() & 0o077), (65533, 0));
        }
        assert_eq!(fs::metadata(unpacked_tree).expect("there").mode() & 0o777, 0o755, "its own");
        unpacked(&archive, cache.path(), None, &runner).expect("unpacked");
        assert_eq!(fs::read_dir(cache.path()).expect("listed").count(), 3, "another user has another one");
    }
}
