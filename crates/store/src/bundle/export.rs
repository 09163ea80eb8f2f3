//! Writing a bundle.

use super::error::ExportError;
use super::files::{FORMAT, FORMAT_NAME, Format, MANIFEST_NAME, Manifest, RUN_NAME, TrialFile, VERSION};
use super::files::{study_files, trial_name};
use crate::{Owner, Store, create_file};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, renameat_with};
use rustix::io::Errno;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::fchown;
use std::path::{Path, PathBuf};

/// Histograms compress well, and a bundle is written once and sent about.
const COMPRESSION_LEVEL: i32 = 9;

/// Writes a run into a new file, which appears under its name when it is complete and replaces nothing. The same run
/// gives the same bytes. With `sudo`, the file belongs to the caller.
///
/// # Errors
/// [`ExportError`].
pub fn export(store: &Store, run: u64, path: &Path) -> Result<(), ExportError> {
    let failed = |cause| ExportError::Io { path: path.to_owned(), cause };
    if path.symlink_metadata().is_ok() {
        return Err(ExportError::Exists { path: path.to_owned() });
    }
    let dataset = store.dataset(run)?;
    let temporary = Temporary::create(path).map_err(failed)?;
    let time = dataset.run.started_unix_ns / 1_000_000_000;
    let mut writer = Writer::new(&temporary.file, time).map_err(failed)?;

    writer.json(FORMAT_NAME, &Format { format: FORMAT.to_owned(), version: VERSION }).map_err(failed)?;
    writer.json(RUN_NAME, &dataset.run).map_err(failed)?;
    for (name, content) in study_files(&dataset.run.plan) {
        writer.entry(&name, content.as_bytes()).map_err(failed)?;
    }
    for (index, trial) in dataset.trials.into_iter().enumerate() {
        writer.json(&trial_name(index), &TrialFile::new(trial)).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    temporary.publish(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => ExportError::Exists { path: path.to_owned() },
        _ => failed(cause),
    })
}

/// A tar archive through zstd that keeps its manifest.
pub(super) struct Writer<'f> {
    archive: tar::Builder<zstd::Encoder<'static, &'f File>>,
    manifest: Manifest,
    time: u64,
}

impl<'f> Writer<'f> {
    pub(super) fn new(file: &'f File, time: u64) -> io::Result<Self> {
        let mut encoder = zstd::Encoder::new(file, COMPRESSION_LEVEL)?;
        encoder.include_checksum(true)?;
        Ok(Self { archive: tar::Builder::new(encoder), manifest: Manifest::default(), time })
    }

    pub(super) fn json(&mut self, name: &str, value: &impl Serialize) -> io::Result<()> {
        self.entry(name, &serde_json::to_vec(value)?)
    }

    pub(super) fn entry(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(self.time);
        self.archive.append_data(&mut header, name, content)?;
        self.manifest.add(name, content);
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        let manifest = std::mem::take(&mut self.manifest);
        self.json(MANIFEST_NAME, &manifest)?;
        self.archive.into_inner()?.finish()?.flush()
    }
}

/// A file that has no name yet, or one beside the name that it is to have; gone unless it is published.
struct Temporary {
    file: File,
    /// `None` where the filesystem has files without names, which go with the process however that ends.
    path: Option<PathBuf>,
}

impl Temporary {
    fn create(path: &Path) -> io::Result<Self> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(directory, flags, Mode::from_raw_mode(0o644)) {
            Ok(file) => {
                let file = File::from(file);
                if let Some(owner) = Owner::caller() {
                    fchown(&file, Some(owner.user), Some(owner.group))?;
                }
                Ok(Self { file, path: None })
            }
            // As the manual has it: a kernel that knows no such files sees a directory that is opened for writing.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => Self::beside(path),
            Err(errno) => Err(errno.into()),
        }
    }

    fn beside(path: &Path) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let path = PathBuf::from(name);
        let file = create_file(&path, Owner::caller())?
            .ok_or_else(|| io::Error::other(format!("{} is in the way", path.display())))?;
        Ok(Self { file, path: Some(path) })
    }

    /// Gives the file its name. One that is there stays, however it came there.
    fn publish(self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        let Some(own) = &self.path else {
            let unnamed = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            return Ok(linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW)?);
        };
        match renameat_with(CWD, own, CWD, path, RenameFlags::NOREPLACE) {
            // The filesystem cannot do that (NFS). A link never replaces anything; the other name goes with `self`.
            Err(Errno::INVAL | Errno::NOSYS) => fs::hard_link(own, path),
            other => Ok(other?),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a publication there is nothing of this name, and an error on the way out has nobody to hear it.
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Make = fn(&Path) -> io::Result<Temporary>;

    #[test]
    fn a_name_that_was_taken_meanwhile_stays_whose_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("run.fstone");
        for make in [Temporary::create as Make, Temporary::beside] {
            let (first, second) = (make(&path).expect("made"), directory.path().join("other.fstone"));
            fs::write(&path, "somebody's").expect("ours");
            let error = first.publish(&path).expect_err("it is taken");
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
            assert_eq!(fs::read_to_string(&path).expect("there"), "somebody's");
            make(&second).expect("made").publish(&second).expect("free");
            fs::remove_file(&second).expect("published");
        }
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1, "nothing beside it");
    }

    #[test]
    fn a_file_on_its_way_has_no_name_where_the_filesystem_can() {
        let directory = tempfile::tempdir().expect("a directory");
        let temporary = Temporary::create(&directory.path().join("run.fstone")).expect("made");
        let names = fs::read_dir(directory.path()).expect("readable").count();
        assert_eq!(names, usize::from(temporary.path.is_some()));
    }
}
