//! What is kept of a guest that crashed or hung, for whoever wants to know why.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// Images are large: when so many lie there already, only logs are added.
const IMAGES: usize = 8;

const LOG: &str = "console.log";
const IMAGE: &str = "disk.img";

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
}
