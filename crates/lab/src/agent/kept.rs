//! What is kept of a guest that crashed or hung, for whoever wants to know why.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

/// Images are large: when so many lie there already, only logs are added.
const IMAGES: usize = 8;

const LOG: &str = "console.log";
const IMAGE: &str = "disk.img";
/// What the names of disks' logs end with.
pub(crate) const DISK_LOG: &str = "disk-log";

pub(super) fn keep(kept: &Path, name: &str, log: &Path, image: &Path) -> String {
    match moved(kept, name, log, image) {
        Ok((directory, true)) => format!("kept to be looked at: {LOG} and {IMAGE} in {}", directory.display()),
        Ok((directory, false)) => format!("kept to be looked at: {LOG} in {}", directory.display()),
        Err(error) => format!("the guest's log could not be kept in {}: {error}", kept.display()),
    }
}

fn moved(kept: &Path, name: &str, log: &Path, image: &Path) -> io::Result<(PathBuf, bool)> {
    fs::create_dir_all(kept)?;
    let images = fs::read_dir(kept)?.flatten().filter(|entry| entry.path().join(IMAGE).exists()).count();
    let directory = new_directory(kept, &file_name(name))?;
    fs::copy(log, directory.join(LOG))?;
    // Within a filesystem it costs nothing; across two it would cost hours.
    let with_image = images < IMAGES && fs::rename(image, directory.join(IMAGE)).is_ok();
    Ok((directory, with_image))
}

/// What is kept for somebody to examine, with its size on the disk: logs of disks, and the directories of guests that crashed or hung. Anything
/// else in the directory is not fstone's.
pub fn kept(directory: &Path) -> Vec<(PathBuf, u64)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut kept: Vec<(PathBuf, u64)> =
        entries.filter_map(|entry| Some((entry.path(), size(&entry.path())?))).collect();
    kept.sort();
    kept
}

/// `None` for what [`kept`] does not list. Links are not followed.
fn size(path: &Path) -> Option<u64> {
    let found = path.symlink_metadata().ok()?;
    if found.is_file() {
        return path.extension().is_some_and(|end| end == DISK_LOG).then_some(found.blocks() * 512);
    }
    if !found.is_dir() || !path.join(LOG).symlink_metadata().is_ok_and(|log| log.is_file()) {
        return None;
    }
    let mut bytes = 0;
    for entry in fs::read_dir(path).ok()? {
        let entry = entry.ok()?;
        let found = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        bytes += found.blocks() * 512;
        [LOG, IMAGE].iter().find(|name| entry.file_name() == **name)?;
    }
    Some(bytes)
}

/// Removes something that [`kept`] listed.
///
/// # Errors
/// Those of unlink(2) and rmdir(2), and when it is something else by now.
pub fn remove_kept(path: &Path) -> io::Result<()> {
    size(path).ok_or_else(|| io::Error::other("it is not what it was"))?;
    if path.symlink_metadata()?.is_file() {
        return fs::remove_file(path);
    }
    for name in [LOG, IMAGE] {
        match fs::remove_file(path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_dir(path)
}

/// The name, of a cell and its kernel, as one that any filesystem takes.
pub(crate) fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '-' }).collect()
}

fn new_directory(kept: &Path, name: &str) -> io::Result<PathBuf> {
    for number in 1.. {
        let directory = kept.join(format!("{name}-{number}"));
        // What a guest printed and had on its disk is nobody else's to read; with sudo, what is above is for everybody.
        match DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("there is always another number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn log_and_image_are_moved_into_directories_of_their_own() {
        let work = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let (log, image) = (work.path().join("log"), work.path().join("image"));
        let kept = work.path().join("kept");
        let mut said = Vec::new();
        for _ in 0..=IMAGES {
            fs::write(&log, "panic").expect("written");
            fs::write(&image, "image").expect("written");
            said.push(keep(&kept, "ext4 · uml:6.1", &log, &image));
        }
        let first = kept.join("ext4---uml-6.1-1");
        assert_eq!(said[0], format!("kept to be looked at: console.log and disk.img in {}", first.display()));
        assert_eq!(fs::metadata(&first).expect("kept").permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read(first.join(LOG)).expect("kept"), b"panic");
        assert_eq!(fs::read(first.join(IMAGE)).expect("kept"), b"image");
        assert!(!said[IMAGES].contains("disk.img") && image.exists(), "{}", said[IMAGES]);
        assert!(keep(&kept, "x", Path::new("/nowhere"), &image).contains("could not be kept"));
    }

    #[test]
    fn only_what_fstone_kept_is_listed_and_removed() {
        let work = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let (log, image, kept) = (work.path().join("log"), work.path().join("image"), work.path().join("kept"));
        fs::write(&log, "panic").expect("written");
        fs::write(&image, "image").expect("written");
        keep(&kept, "ext4", &log, &image);
        fs::write(kept.join("ext4-1.disk-log"), "log").expect("written");
        let foreign = ["notes.txt", "other/console.log", "other/thesis.tex", "empty/x"];
        for name in foreign {
            fs::create_dir_all(kept.join(name).parent().expect("kept")).expect("made");
            fs::write(kept.join(name), "mine").expect("written");
        }
        std::os::unix::fs::symlink(&log, kept.join("link.disk-log")).expect("made");
        let listed = super::kept(&kept);
        let names: Vec<_> = listed.iter().map(|(path, _)| path.file_name().expect("a name")).collect();
        assert_eq!(names, ["ext4-1", "ext4-1.disk-log"]);
        assert!(listed.iter().all(|(_, bytes)| *bytes > 0));
        listed.iter().for_each(|(path, _)| remove_kept(path).expect("removed"));
        assert_eq!(super::kept(&kept), []);
        assert!(foreign.iter().all(|name| kept.join(name).exists()) && log.exists());
        remove_kept(&kept.join("other")).expect_err("not fstone's");
    }
}
