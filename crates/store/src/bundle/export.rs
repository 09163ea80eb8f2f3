//! Writing a bundle.

use super::error::ExportError;
use super::files::{FORMAT, FORMAT_NAME, Format, MANIFEST_NAME, Manifest, RUN_NAME, TrialFile};
use super::files::{study_files, trial_name, version_of};
use crate::temporary::{Temporary, directory_of};
use crate::{Owner, Store};
use fstone_model::Dataset;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};
use rustix::io::Errno;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::fchown;
use std::path::Path;

/// Histograms compress well, and a bundle is written once and sent many times.
const COMPRESSION_LEVEL: i32 = 9;

/// Writes a run into a new file, which appears under its name when it is complete and replaces nothing. The same run
/// gives the same bytes. With `sudo`, the file belongs to the caller.
///
/// # Errors
/// [`ExportError`].
pub fn export(store: &Store, run: u64, path: &Path) -> Result<(), ExportError> {
    refuse_existing(path)?;
    write(store.dataset(run)?, path)
}

fn refuse_existing(path: &Path) -> Result<(), ExportError> {
    match path.symlink_metadata() {
        Ok(_) => Err(ExportError::Exists { path: path.to_owned() }),
        Err(_) => Ok(()),
    }
}

/// [`export`] of a run that no store has.
///
/// # Errors
/// [`ExportError`].
pub fn write(dataset: Dataset, path: &Path) -> Result<(), ExportError> {
    let failed = |cause| ExportError::Io { path: path.to_owned(), cause };
    refuse_existing(path)?;
    let unpublished = Unpublished::create(path).map_err(failed)?;
    let time = dataset.run.started_unix_ns / 1_000_000_000;
    let mut writer = Writer::new(unpublished.file(), time).map_err(failed)?;

    writer
        .json(FORMAT_NAME, &Format { format: FORMAT.to_owned(), version: version_of(&dataset.run) })
        .map_err(failed)?;
    writer.json(RUN_NAME, &dataset.run).map_err(failed)?;
    for (name, content) in study_files(&dataset.run.plan) {
        writer.entry(&name, content.as_bytes()).map_err(failed)?;
    }
    for (index, trial) in dataset.trials.into_iter().enumerate() {
        writer.json(&trial_name(index), &TrialFile::new(trial)).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    unpublished.publish(path).map_err(|cause| match cause.kind() {
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

/// A file that has no name yet, and so goes with the process however that ends; or, where the filesystem has no such files,
/// one that is named otherwise.
enum Unpublished {
    Nameless(File),
    Beside(Temporary),
}

impl Unpublished {
    fn create(path: &Path) -> io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(directory_of(path), flags, Mode::from_raw_mode(0o644)) {
            Ok(file) => {
                let file = File::from(file);
                if let Some(owner) = Owner::caller() {
                    fchown(&file, Some(owner.user), Some(owner.group))?;
                }
                Ok(Self::Nameless(file))
            }
            // According to the manual, a kernel without such files sees a directory that is opened for writing.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
                Temporary::beside(path).map(Self::Beside)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    const fn file(&self) -> &File {
        match self {
            Self::Nameless(file) => file,
            Self::Beside(temporary) => temporary.file(),
        }
    }

    /// Gives the file its name. An existing file of that name stays, wherever it came from.
    fn publish(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Nameless(file) => {
                file.sync_all()?;
                let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
                Ok(linkat(CWD, unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
            }
            Self::Beside(temporary) => temporary.publish(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_name_that_was_taken_meanwhile_stays_whose_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("run.fstone");
        let unpublished = Unpublished::create(&path).expect("made");
        let names = fs::read_dir(directory.path()).expect("readable").count();
        assert_eq!(
            names,
            usize::from(matches!(unpublished, Unpublished::Beside(_))),
            "no name where there need be none"
        );
        fs::write(&path, "somebody's").expect("ours");
        let error = unpublished.publish(&path).expect_err("it is taken");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{error}");
        assert_eq!(fs::read_to_string(&path).expect("there"), "somebody's");
        let other = directory.path().join("other.fstone");
        Unpublished::create(&other).expect("made").publish(&other).expect("free");
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 2, "nothing beside them");
    }
}
