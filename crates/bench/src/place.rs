//! Where the work is done, and what is left of it afterwards: nothing.

use crate::side::Trouble;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory of our own, removed with everything in it.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
}

impl Place {
    pub(crate) fn in_memory() -> Result<Self, Trouble> {
        Self::below(Path::new("/dev/shm"))
    }

    /// On the filesystem of temporary files.
    pub(crate) fn on_disk() -> Result<Self, Trouble> {
        Self::below(&std::env::temp_dir())
    }

    fn below(parent: &Path) -> Result<Self, Trouble> {
        if !parent.is_dir() {
            return Err(Trouble::Absent(format!("there is no {}", parent.display())));
        }
        let path = (0..1000)
            .map(|number| parent.join(format!("fstone-bench-{}-{number}", std::process::id())))
            .find(|path| std::fs::create_dir(path).is_ok());
        path.map(|path| Self { path })
            .ok_or_else(|| Trouble::failed(format!("make a directory in {}", parent.display())))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed is left for the next boot; a destructor cannot report it.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// An ext4 in an image file behind a loop device with direct I/O, unmounted and removed at the end.
#[derive(Debug)]
pub(crate) struct LoopExt4 {
    place: Place,
    mounted: bool,
}

impl LoopExt4 {
    pub(crate) fn new(bytes: u64) -> Result<Self, Trouble> {
        if !rustix::process::geteuid().is_root() {
            return Err(Trouble::Absent("only root can mount a loop device".into()));
        }
        let mut made = Self { place: Place::below(Path::new("/tmp"))?, mounted: false };
        let image = made.place.path().join("image");
        let file = std::fs::File::create(&image).map_err(Trouble::failed)?;
        // Allocated, so that the file below does not grow while it is measured.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes).map_err(Trouble::failed)?;
        std::fs::create_dir(made.mount_point()).map_err(Trouble::failed)?;
        command("mkfs.ext4", &["-q", "-F", &image.to_string_lossy()])?;
        let device = command("losetup", &["--find", "--show", "--direct-io=on", &image.to_string_lossy()])?;
        let mounted = command("mount", &["-t", "ext4", device.trim(), &made.mount_point().to_string_lossy()]);
        made.mounted = mounted.is_ok();
        // From here on the mount holds the device; detached, it goes with the mount.
        command("losetup", &["--detach", device.trim()])?;
        mounted?;
        Ok(made)
    }

    pub(crate) fn mount_point(&self) -> PathBuf {
        self.place.path().join("mount")
    }
}

impl Drop for LoopExt4 {
    fn drop(&mut self) {
        if self.mounted
            && let Err(trouble) = command("umount", &[&self.mount_point().to_string_lossy()])
        {
            eprintln!("fstone-bench: {} stays mounted: {trouble:?}", self.mount_point().display());
        }
    }
}

pub(crate) fn command(program: &str, arguments: &[&str]) -> Result<String, Trouble> {
    command_in(Path::new("."), program, arguments)
}

pub(crate) fn command_in(directory: &Path, program: &str, arguments: &[&str]) -> Result<String, Trouble> {
    let output = match Command::new(program).args(arguments).current_dir(directory).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Trouble::Absent(format!("{program} is not installed")));
        }
        Err(error) => return Err(Trouble::failed(format!("{program}: {error}"))),
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(Trouble::Failed(format!("{program} {}: {}: {}", arguments.join(" "), output.status, errors.trim())))
}
