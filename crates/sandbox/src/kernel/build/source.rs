//! The sources of a kernel: where they come from, what they are, and how they are laid out to be built.

use super::super::error::{StoreError, file_error};
use super::super::fetch::{Archive, unpack_anew};
use super::make::run;
use super::report::{BuildError, BuildProgress};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a build leaves in a tree that was built in place, and is not source.
const PRODUCTS: [&str; 6] = ["o", "a", "ko", "cmd", "d", "mod"];

/// Where sources are.
#[derive(Debug)]
pub(super) struct KernelSource {
    name: String,
    told: String,
    kind: Kind,
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
        let stem = name.split(".tar").next().unwrap_or_default();
        if stem == name {
            return Err(BuildError::NoSource(path));
        }
        return Ok(KernelSource { name: plain(stem), told, kind: Kind::Tar(path) });
    }
    if !path.join("Kbuild").is_file() || !path.join("arch/um").is_dir() {
        return Err(BuildError::NoSource(path));
    }
    tell(BuildProgress::Preparing("listing the sources"));
    let files = files_of(&path)?;
    Ok(KernelSource { name: plain(&name), told, kind: Kind::Tree { root: path, files } })
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
    let root = store.join("builds").join(&stem);
    let tar = root.join(format!("usr/src/{name}.tar.xz"));
    unpack_anew(package.path(), &root).map_err(fetched)?;
    let _ = fs::remove_file(package.path());
    if !tar.is_file() {
        return Err(BuildError::NoSource(tar));
    }
    Ok(KernelSource { name: stem.clone(), told: format!("{stem} of {suite}"), kind: Kind::Tar(tar) })
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

    /// Whether it is the user's own tree, which will be built again.
    pub(super) const fn is_tree(&self) -> bool {
        matches!(self.kind, Kind::Tree { .. })
    }

    /// A hash of every byte of it.
    pub(super) fn digest(&self) -> Result<Vec<u8>, BuildError> {
        let mut digest = Sha256::new();
        let mut add = |path: &Path| -> io::Result<()> {
            if fs::symlink_metadata(path)?.is_symlink() {
                digest.update(fs::read_link(path)?.as_os_str().as_bytes());
                return Ok(());
            }
            let content = fs::read(path)?;
            digest.update((content.len() as u64).to_le_bytes());
            digest.update(content);
            Ok(())
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

    /// Unpacks an archive, or fills a directory with links to a tree's files. What was built there before is kept.
    pub(super) fn lay_out(&self, place: &Path, tell: &mut dyn FnMut(BuildProgress)) -> Result<(), BuildError> {
        tell(BuildProgress::Preparing("laying out the sources"));
        clear(place).map_err(file_error(place))?;
        match &self.kind {
            Kind::Tar(path) => {
                let mut command = Command::new("tar");
                command.args(["--strip-components=1", "--no-same-owner", "-xf"]).arg(path).arg("-C").arg(place);
                run(command, &place.with_file_name("build.log"), &mut |_, _| ())
            }
            Kind::Tree { root, files } => {
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

/// An empty directory, but for what was built in it.
fn clear(place: &Path) -> io::Result<()> {
    fs::create_dir_all(place)?;
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        if entry.file_name() == "built" {
            continue;
        }
        if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
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
    let times: Vec<std::time::SystemTime> = times;
    for file in &files {
        let content = fs::read(file).map_err(file_error(file))?;
        fs::remove_file(file).and_then(|()| fs::write(file, content)).map_err(file_error(file))?;
    }
    let input = tree.with_file_name("charge.patch");
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
