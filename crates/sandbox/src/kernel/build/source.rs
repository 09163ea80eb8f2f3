//! The sources of a kernel: where they come from, what they are, and how they are laid out to be built.

use super::super::error::{StoreError, file_error};
use super::super::fetch::{Archive, unpack_anew};
use super::super::identity::COUNTING;
use super::make::run;
use super::report::{BuildError, BuildProgress};
use fstone_files::remove_own_tree;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a build leaves in a tree that was built in place, and is not source.
const PRODUCTS: [&str; 6] = ["o", "a", "ko", "cmd", "d", "mod"];

/// Where the name of an archive ends and what it is packed with begins.
const ARCHIVES: [&str; 3] = [".tar", ".tgz", ".txz"];

/// In the store. No directory of a user's is called so: what is in it is replaced by its name.
pub(super) const BUILDS: &str = "fstone-builds";

/// Below the sources: what make makes of them.
pub(super) const BUILT: &str = "built";

/// Below that: written when make begins.
pub(super) const BEGAN: &str = "exact.config";

pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Debug)]
pub(super) struct KernelSource {
    name: String,
    told: String,
    kind: Kind,
    /// What was fetched for it, and is not needed once it is built.
    fetched: Option<PathBuf>,
}

#[derive(Debug)]
enum Kind {
    /// Compressed or not.
    Tar(PathBuf),
    /// The user's own.
    Tree { root: PathBuf, files: BTreeSet<PathBuf> },
}

/// "linux-source-6.1", "linux-source-6.12/trixie", a tar, a directory.
pub(super) fn find(store: &Path, what: &str, tell: &mut dyn FnMut(BuildProgress)) -> Result<KernelSource, BuildError> {
    let path = Path::new(what);
    if what.starts_with("linux-source-") && !path.exists() {
        return package(store, what, tell);
    }
    let path = fs::canonicalize(path).map_err(|_| BuildError::NoSource(path.to_owned()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let told = path.display().to_string();
    if path.is_file() {
        // Whether it is an archive is for tar to say.
        let stem = ARCHIVES.iter().find_map(|ending| name.split_once(ending)).map_or(&*name, |(stem, _)| stem);
        return Ok(KernelSource { name: plain(stem), told, kind: Kind::Tar(path), fetched: None });
    }
    if !is_tree(&path) {
        return Err(BuildError::NoSource(path));
    }
    tell(BuildProgress::Preparing("listing the sources"));
    let files = files_of(&path)?;
    Ok(KernelSource { name: plain(&name), told, kind: Kind::Tree { root: path, files }, fetched: None })
}

fn is_tree(directory: &Path) -> bool {
    directory.join("Kbuild").is_file() && directory.join("arch/um").is_dir()
}

/// A name that a study can say, and that is no other directory's: "..", of an archive called "...tar", is the store's own.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-+_".contains(c) { c } else { '-' };
    let name: String = name.trim_start_matches('.').chars().map(plain).collect();
    if name.is_empty() { "source".to_owned() } else { name }
}

fn package(store: &Path, what: &str, tell: &mut dyn FnMut(BuildProgress)) -> Result<KernelSource, BuildError> {
    let (name, suite) = match what.split_once('/') {
        Some((name, suite)) => (name, suite),
        None if what == "linux-source-6.1" => (what, "bookworm-security"),
        None => (what, "trixie-security"),
    };
    // Both become parts of paths.
    if plain(suite) != suite || plain(name) != name {
        return Err(BuildError::NoSource(what.into()));
    }
    tell(BuildProgress::Preparing("fetching the package"));
    let fetched = |error| BuildError::Store(StoreError::Fetch(error));
    let archive = Archive::open(store, suite).map_err(fetched)?;
    let package = archive.download(name).map_err(fetched)?;
    let stem = package.stem();
    let root = store.join(BUILDS).join(&stem);
    let tar = root.join(format!("usr/src/{name}.tar.xz"));
    unpack_anew(package.path(), &root).map_err(fetched)?;
    let _ = fs::remove_file(package.path());
    if !tar.is_file() {
        return Err(BuildError::NoSource(tar));
    }
    Ok(KernelSource { told: format!("{stem} of {suite}"), name: stem, kind: Kind::Tar(tar), fetched: Some(root) })
}

/// The source files of a tree: those that git knows or would add, else all that are no products of a build.
fn files_of(root: &Path) -> Result<BTreeSet<PathBuf>, BuildError> {
    let git = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    if let Ok(output) = git
        && output.status.success()
        && root.join(".git").exists()
    {
        let names = output.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty());
        let paths = names.map(|name| PathBuf::from(std::ffi::OsStr::from_bytes(name)));
        // A file that was removed and not committed is listed, too.
        return Ok(paths
            .filter(|path| fs::symlink_metadata(root.join(path)).is_ok_and(|data| !data.is_dir()))
            .collect());
    }
    let mut files = BTreeSet::new();
    walk(root, Path::new(""), &mut files).map_err(file_error(root))?;
    Ok(files)
}

fn walk(root: &Path, below: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            let made = ["generated", "config"].iter().any(|made| path.ends_with(format!("include/{made}")));
            if !made && entry.file_name() != ".git" {
                walk(root, &path, files)?;
            }
        } else {
            let is_product = path.extension().is_some_and(|extension| PRODUCTS.iter().any(|one| extension == *one));
            let hidden = path.to_string_lossy().starts_with(".config");
            if !is_product && !hidden {
                files.insert(path);
            }
        }
    }
    Ok(())
}

impl KernelSource {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn told(&self) -> &str {
        &self.told
    }

    /// Removes what was fetched: hundreds of megabytes.
    pub(super) fn discard(&self) {
        if let Some(fetched) = &self.fetched {
            let _ = remove_own_tree(fetched);
        }
    }

    /// Whether it is the user's own tree, which will be built again.
    pub(super) const fn is_tree(&self) -> bool {
        matches!(self.kind, Kind::Tree { .. })
    }

    /// Where it is built, among the builds. What was built before is used again only for the same archive or tree: files of another
    /// can be older than what was made of these, and make would not notice. A tree is its directory, wherever that was moved from.
    pub(super) fn place(&self, key: &str, counting: bool) -> Result<String, BuildError> {
        let Kind::Tree { root, .. } = &self.kind else { return Ok(format!("{}-{key}", self.name)) };
        let is = fs::metadata(root).map_err(file_error(root))?;
        let mut digest = Sha256::new();
        digest.update(is.dev().to_le_bytes());
        digest.update(is.ino().to_le_bytes());
        digest.update(root.as_os_str().as_bytes());
        // Other options, by which make would build everything anew.
        let counting = if counting { COUNTING } else { "" };
        Ok(format!("{}-{}{counting}", self.name, &hex(&digest.finalize())[..12]))
    }

    /// Whether a file of a tree was replaced by one of an older time since then, as by a rename or by rsync.
    fn is_set_back(&self, since: SystemTime) -> io::Result<bool> {
        let Kind::Tree { root, files } = &self.kind else { return Ok(false) };
        let since = since.duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = (since.as_secs().cast_signed(), i64::from(since.subsec_nanos()));
        for path in files.iter().map(|file| root.join(file)) {
            let is = fs::metadata(&path).or_else(|_| fs::symlink_metadata(&path))?;
            if (is.ctime(), is.ctime_nsec()) >= since && (is.mtime(), is.mtime_nsec()) <= since {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn digest(&self) -> Result<Vec<u8>, BuildError> {
        let mut digest = Sha256::new();
        let mut add = |path: &Path| -> io::Result<()> {
            if fs::symlink_metadata(path)?.is_symlink() {
                digest.update(fs::read_link(path)?.as_os_str().as_bytes());
                return Ok(());
            }
            // An archive can be larger than the memory.
            let mut file = fs::File::open(path)?;
            digest.update(file.metadata()?.len().to_le_bytes());
            let mut piece = vec![0; 1 << 20];
            loop {
                match file.read(&mut piece)? {
                    0 => return Ok(()),
                    count => digest.update(&piece[..count]),
                }
            }
        };
        match &self.kind {
            Kind::Tar(path) => add(path).map_err(file_error(path))?,
            Kind::Tree { root, files } => {
                for file in files {
                    add(&root.join(file)).map_err(file_error(&root.join(file)))?;
                }
                let mut names = Sha256::new();
                for file in files {
                    names.update(file.as_os_str().as_bytes());
                    names.update([0]);
                }
                digest.update(names.finalize());
            }
        }
        Ok(digest.finalize().to_vec())
    }

    /// What differs as soon as a file of a tree is written or replaced, also if it is put back as it was: its inode, and the time of its
    /// last change, which nobody can set.
    pub(super) fn stamps(&self) -> Result<Vec<u8>, BuildError> {
        let mut digest = Sha256::new();
        if let Kind::Tree { root, files } = &self.kind {
            for path in files.iter().map(|file| root.join(file)) {
                let is = fs::symlink_metadata(&path).map_err(file_error(&path))?;
                digest.update(is.ino().to_le_bytes());
                digest.update(is.ctime().to_le_bytes());
                digest.update(is.ctime_nsec().to_le_bytes());
            }
        }
        Ok(digest.finalize().to_vec())
    }

    /// Unpacks an archive, or fills a directory with links to a tree's files. What was built there before is kept.
    pub(super) fn lay_out(&self, place: &Path, tell: &mut dyn FnMut(BuildProgress)) -> Result<(), BuildError> {
        tell(BuildProgress::Preparing("laying out the sources"));
        match &self.kind {
            Kind::Tar(path) => unpack(path, place),
            Kind::Tree { root, files } => {
                clear(place).map_err(file_error(place))?;
                let built = place.join(BUILT);
                let began = fs::metadata(built.join(BEGAN)).and_then(|file| file.modified());
                // make goes by times.
                if began.is_ok_and(|began| self.is_set_back(began).unwrap_or(true)) {
                    remove_own_tree(&built).map_err(file_error(&built))?;
                }
                for file in files {
                    let link = place.join(file);
                    let parent = link.parent().unwrap_or(place);
                    fs::create_dir_all(parent)
                        .and_then(|()| std::os::unix::fs::symlink(root.join(file), &link))
                        .map_err(file_error(&link))?;
                }
                Ok(())
            }
        }
    }
}

/// Unpacks an archive of a kernel's sources, with or without a directory around them. Whatever is in it, nothing is written
/// outside of the place's parent.
fn unpack(archive: &Path, place: &Path) -> Result<(), BuildError> {
    let unpacked = place.with_file_name("unpacked");
    let cleared = |path: &Path| -> io::Result<()> {
        match fs::symlink_metadata(path) {
            Ok(data) if data.is_dir() => remove_own_tree(path),
            Ok(_) => fs::remove_file(path),
            Err(_) => Ok(()),
        }
    };
    cleared(&unpacked).and_then(|()| fs::create_dir_all(&unpacked)).map_err(file_error(&unpacked))?;
    // tar refuses names with "..", and makes links that lead out only when nothing can be written through them any more.
    let mut command = Command::new("tar");
    command.args(["--no-same-owner", "--no-same-permissions", "-xf"]).arg(archive).arg("-C").arg(&unpacked);
    let log = place.with_file_name("build.log");
    let _ = fs::remove_file(&log);
    run(command, &log, &mut |_, _| ()).map_err(|error| match error {
        BuildError::Failed { .. } => BuildError::NoArchive { path: archive.to_owned(), words: complaints(&log) },
        other => other,
    })?;
    let root = if is_tree(&unpacked) { Some(unpacked.clone()) } else { only_directory(&unpacked) };
    let root = root.filter(|root| is_tree(root)).ok_or_else(|| BuildError::NoTree(archive.to_owned()))?;
    if let Some(member) = leads_out(&root, Path::new("")).map_err(file_error(&root))? {
        return Err(BuildError::LeadsOut { path: archive.to_owned(), member });
    }
    // Made by whoever packed it, of other options and by another compiler.
    cleared(&root.join(BUILT)).map_err(file_error(&root))?;
    let built = place.join(BUILT);
    if built.is_dir() {
        fs::rename(&built, root.join(BUILT)).map_err(file_error(&built))?;
    }
    cleared(place).and_then(|()| fs::rename(&root, place)).map_err(file_error(place))?;
    Ok(cleared(&unpacked).map_err(file_error(&unpacked))?)
}

/// What tar and those it runs said first; its last line says only that there were errors.
fn complaints(log: &Path) -> String {
    let said = fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let lines = said.lines().filter(|line| !line.starts_with('$') && !line.trim().is_empty());
    lines.take(3).collect::<Vec<_>>().join("; ")
}

/// The one directory in another; what else is there beside it does not matter.
fn only_directory(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let mut directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let one = directories.next()?;
    directories.next().is_none().then(|| one.path())
}

/// Something in a tree that is neither a file nor a directory, or a link to what is not in the tree.
fn leads_out(root: &Path, below: &Path) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let (path, kind) = (below.join(entry.file_name()), entry.file_type()?);
        let out = if kind.is_symlink() {
            !stays_inside(below, &fs::read_link(entry.path())?)
        } else if kind.is_dir() {
            if let Some(found) = leads_out(root, &path)? {
                return Ok(Some(found));
            }
            false
        } else {
            !kind.is_file()
        };
        if out {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn stays_inside(below: &Path, target: &Path) -> bool {
    let (mut depth, mut is_down) = (below.components().count(), false);
    target.components().all(|component| match component {
        Component::CurDir => true,
        Component::Normal(_) => {
            is_down = true;
            true
        }
        // After a name, which may be that of another link, it leads anywhere.
        Component::ParentDir => !is_down && depth.checked_sub(1).map(|less| depth = less).is_some(),
        Component::RootDir | Component::Prefix(_) => false,
    })
}

/// An empty directory, but for what was built in it.
fn clear(place: &Path) -> io::Result<()> {
    fs::create_dir_all(place)?;
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        if entry.file_name() == BUILT {
            continue;
        }
        if entry.file_type()?.is_dir() { remove_own_tree(&entry.path())? } else { fs::remove_file(entry.path())? }
    }
    Ok(())
}

/// Applies a patch to laid-out sources; whether it fits. Links are replaced by copies first, and copies keep their times.
pub(super) fn patch(tree: &Path, patch: &str, log: &Path) -> Result<bool, BuildError> {
    let files: Vec<PathBuf> =
        patch.lines().filter_map(|line| line.strip_prefix("+++ b/")).map(|name| tree.join(name)).collect();
    let Some(times) = files.iter().map(|file| fs::metadata(file).and_then(|data| data.modified()).ok()).collect()
    else {
        return Ok(false);
    };
    let times: Vec<SystemTime> = times;
    for file in &files {
        let content = fs::read(file).map_err(file_error(file))?;
        fs::remove_file(file).and_then(|()| fs::write(file, content)).map_err(file_error(file))?;
    }
    let input = tree.with_file_name("fstone.patch");
    fs::write(&input, patch).map_err(file_error(&input))?;
    let attempt = |mode: &[&str]| {
        let mut command = Command::new("patch");
        command.args(["--strip=1", "--batch", "--forward", "--no-backup-if-mismatch", "--directory"]).arg(tree);
        command.args(mode).arg("--input").arg(&input);
        run(command, log, &mut |_, _| ())
    };
    let fits = match attempt(&["--dry-run"]) {
        Ok(()) => {
            attempt(&[])?;
            true
        }
        Err(BuildError::Failed { .. }) => false,
        Err(other) => return Err(other),
    };
    for (file, time) in files.iter().zip(times) {
        fs::File::options()
            .write(true)
            .open(file)
            .and_then(|open| open.set_modified(time))
            .map_err(file_error(file))?;
    }
    Ok(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (name, text) in [("Kbuild", ""), ("arch/um/a.c", "one\ntwo\n"), ("arch/um/a.o", "x"), (".config", "y")] {
            let path = tree.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        tree
    }

    #[test]
    fn a_name_is_never_another_directorys() {
        for (written, name) in [("..", "source"), (".", "source"), ("", "source"), ("...x", "x"), ("a b/c", "a-b-c")] {
            assert_eq!(plain(written), name);
        }
    }

    #[test]
    fn links_lead_out_by_where_they_are() {
        for (below, target, stays) in [
            ("", "a/b", true),
            ("a/b", "../../c", true),
            ("a/b", "../../../c", false),
            ("a", "b/../../../c", false),
            // b may be a link to a directory further up.
            ("a", "b/../c", false),
            ("a", "/c", false),
        ] {
            assert_eq!(stays_inside(Path::new(below), Path::new(target)), stays, "{below} {target}");
        }
    }

    #[test]
    fn products_are_no_sources_and_every_byte_counts() {
        let tree = tree();
        let found = || find(Path::new("/nowhere"), &tree.path().display().to_string(), &mut |_| ()).unwrap();
        let Kind::Tree { files, .. } = &found().kind else { panic!("a tree") };
        assert_eq!(files.iter().map(|file| file.to_str().unwrap()).collect::<Vec<_>>(), ["Kbuild", "arch/um/a.c"]);
        let before = found().digest().unwrap();
        fs::write(tree.path().join("arch/um/a.o"), "z").unwrap();
        assert_eq!(found().digest().unwrap(), before);
        fs::write(tree.path().join("arch/um/a.c"), "one\nTwo\n").unwrap();
        assert_ne!(found().digest().unwrap(), before);
    }

    #[test]
    fn a_patch_leaves_the_tree_behind_the_links_alone() {
        let tree = tree();
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("source");
        let source = find(Path::new("/nowhere"), &tree.path().display().to_string(), &mut |_| ()).unwrap();
        source.lay_out(&out, &mut |_| ()).unwrap();
        let log = place.path().join("log");
        let fitting = "--- a/arch/um/a.c\n+++ b/arch/um/a.c\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n";
        assert!(patch(&out, fitting, &log).unwrap());
        assert_eq!(fs::read_to_string(out.join("arch/um/a.c")).unwrap(), "one\nthree\n");
        assert_eq!(fs::read_to_string(tree.path().join("arch/um/a.c")).unwrap(), "one\ntwo\n");
        let modified = |path: PathBuf| fs::metadata(path).unwrap().modified().unwrap();
        assert_eq!(modified(out.join("arch/um/a.c")), modified(tree.path().join("arch/um/a.c")));
        source.lay_out(&out, &mut |_| ()).unwrap();
        assert!(!patch(&out, &fitting.replace("-two", "-four"), &log).unwrap());
        assert_eq!(fs::read_to_string(out.join("arch/um/a.c")).unwrap(), "one\ntwo\n");
    }
}
