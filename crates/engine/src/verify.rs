//! Reading stamped filesets back: is every byte what was written last?

use crate::data::stamp::{self, Mismatch};
use crate::error::{LoadError, cure};
use crate::fileset::Layout;
use crate::fileset::build::{root, stamp_name};
use crate::options::{Progress, RunOptions};
use fstone_model::Workload;
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes read at a time; a multiple of the stamp's unit.
const CHUNK_BYTES: usize = 1 << 20;
/// Damages described one by one; any more are only counted.
const MAX_DAMAGES: usize = 1000;
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// What [`verify`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// Files read.
    pub files: u64,
    /// Bytes that are what was written.
    pub verified_bytes: u64,
    /// Units of 512 bytes that are not.
    pub damaged_units: u64,
    /// The first of them, at most a thousand.
    pub damages: Vec<Damage>,
}

impl Verification {
    /// Whether all is well.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.damaged_units == 0 && self.damages.is_empty()
    }
}

/// A unit that is not what was written, or a file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file, relative to the load's directory.
    pub path: PathBuf,
    /// Where in it, in bytes.
    pub offset: u64,
    /// What is wrong: "zeros where data should be", "data of another file or place", "corrupt data", or an errno.
    pub problem: String,
}

/// Reads every file of the workload's filesets and checks the stamps of its data. The workload must have been run, or
/// prepared, with [`fstone_model::workload::DataPattern::stamped`].
///
/// # Errors
/// When the workload is not stamped, the directory cannot be used, or on cancellation. Damage is no error of this
/// function but its result.
pub fn verify(workload: &Workload, directory: &Path, options: &RunOptions<'_>) -> Result<Verification, LoadError> {
    if !workload.data.stamped {
        return Err(LoadError::Unsupported { what: "does not stamp its data, so it cannot be verified".into() });
    }
    let mut verifier = Verifier {
        directory,
        options,
        found: Verification::default(),
        buffer: vec![0; CHUNK_BYTES],
        started: Instant::now(),
        told: Instant::now(),
    };
    for (index, spec) in (0u32..).zip(&workload.filesets) {
        let root = root(directory, spec);
        if !root.is_dir() {
            return Err(LoadError::Directory { path: root, errno: Errno::NOENT });
        }
        verifier.directory(&root, &Layout::new(spec), index, spec.fill)?;
    }
    Ok(verifier.found)
}

struct Verifier<'a> {
    directory: &'a Path,
    options: &'a RunOptions<'a>,
    found: Verification,
    buffer: Vec<u8>,
    started: Instant,
    told: Instant,
}

impl Verifier<'_> {
    fn directory(&mut self, path: &Path, layout: &Layout, fileset: u32, filled: bool) -> Result<(), LoadError> {
        let entries = std::fs::read_dir(path).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) => {
                self.damage(path, 0, error.to_string());
                return Ok(());
            }
        };
        for entry in entries {
            let name = entry.file_name();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && layout.is_ours(name.as_bytes(), true) => {
                    self.directory(&entry.path(), layout, fileset, filled)?;
                }
                Ok(kind) if kind.is_file() => {
                    if let Some(file) = layout.number_of(name.as_bytes()) {
                        self.file(&entry.path(), stamp_name(fileset, file), filled)?;
                    }
                }
                Ok(_) => {}
                Err(error) => self.damage(&entry.path(), 0, error.to_string()),
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: u64, filled: bool) -> Result<(), LoadError> {
        self.found.files += 1;
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => {
                self.damage(path, 0, error.to_string());
                return Ok(());
            }
        };
        let mut offset = 0;
        loop {
            self.breathe()?;
            let mut buffer = std::mem::take(&mut self.buffer);
            let got = read_full(&file, &mut buffer, offset);
            let ends = match got {
                Ok(length) => {
                    self.check(path, &buffer[..length], name, offset, filled);
                    length < CHUNK_BYTES
                }
                // What cannot be read is passed over: the rest may be sound.
                Err(error) => {
                    self.damage(path, offset, error.to_string());
                    file.metadata().is_ok_and(|metadata| offset + CHUNK_BYTES as u64 >= metadata.len())
                }
            };
            self.buffer = buffer;
            if ends {
                return Ok(());
            }
            offset += CHUNK_BYTES as u64;
        }
    }

    fn check(&mut self, path: &Path, data: &[u8], name: u64, offset: u64, filled: bool) {
        let mut start = 0;
        while start < data.len() {
            match stamp::check(&data[start..], name, offset + start as u64) {
                Ok(()) => {
                    self.found.verified_bytes += (data.len() - start) as u64;
                    return;
                }
                Err((at, mismatch)) => {
                    self.found.verified_bytes += at as u64;
                    let place = offset + (start + at) as u64;
                    match mismatch {
                        // A hole that was never filled.
                        Mismatch::Zeros if !filled => {}
                        mismatch => {
                            self.found.damaged_units += 1;
                            self.damage(path, place, describe(mismatch).into());
                        }
                    }
                    start += at + stamp::UNIT;
                }
            }
        }
    }

    fn damage(&mut self, path: &Path, offset: u64, problem: String) {
        if self.found.damages.len() < MAX_DAMAGES {
            let path = path.strip_prefix(self.directory).unwrap_or(path).to_owned();
            self.found.damages.push(Damage { path, offset, problem });
        }
    }

    fn breathe(&mut self) -> Result<(), LoadError> {
        if self.options.cancel.load(Ordering::Relaxed) {
            return Err(LoadError::Interrupted);
        }
        if self.told.elapsed() >= PROGRESS_INTERVAL {
            self.options.observer.progress(&Progress {
                phase: "verify".into(),
                elapsed: self.started.elapsed(),
                operations: self.found.files,
                bytes: self.found.verified_bytes,
                interval: self.told.elapsed(),
                ..Progress::default()
            });
            self.told = Instant::now();
        }
        Ok(())
    }
}

fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    let mut have = 0;
    while have < buffer.len() {
        match file.read_at(&mut buffer[have..], offset + have as u64) {
            Ok(0) => break,
            Ok(got) => have += got,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                return Err(std::io::Error::other(format!("{}{}", crate::errno::describe(errno), cure(errno))));
            }
        }
    }
    Ok(have)
}

fn describe(mismatch: Mismatch) -> &'static str {
    match mismatch {
        Mismatch::Zeros => "zeros where data should be",
        Mismatch::Misplaced => "data of another file or place",
        Mismatch::Corrupt => "corrupt data",
    }
}
