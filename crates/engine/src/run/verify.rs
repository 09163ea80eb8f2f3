//! The files of a stamped load: are they all there, and is every byte what was written last?

use super::running::Running;
use crate::data::stamp::{self, Mismatch};
use crate::error::{LoadError, cure};
use crate::fileset::build::{root, stamp_name};
use crate::fileset::{Files, PathBuffer};
use crate::io::kernel;
use crate::measure::Call;
use crate::options::Progress;
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes read at a time; a multiple of the stamp's unit.
const CHUNK_BYTES: usize = 1 << 20;
/// Damages described one by one; any more are only counted.
const MAX_DAMAGES: usize = 1000;
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// What [`crate::run_verified`] found when it read the files back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    pub files: u64,
    /// Bytes that are what was written last.
    pub verified_bytes: u64,
    /// Units of 512 bytes that are not.
    pub damaged_units: u64,
    /// The first of them, and files that are missing, short or cannot be read; at most a thousand in all.
    pub damages: Vec<Damage>,
}

impl Verification {
    pub fn is_clean(&self) -> bool {
        self.damaged_units == 0 && self.damages.is_empty()
    }
}

/// A unit that is not what was written, or a file that is missing, short or cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file, relative to the load's directory.
    pub path: PathBuf,
    /// Where in it, in bytes.
    pub offset: u64,
    /// What is wrong: "an older state of the data", "zeros where data should be", an errno.
    pub problem: String,
}

impl Running<'_> {
    pub(super) fn verify(&self) -> Result<Verification, LoadError> {
        let now = Instant::now();
        let mut verifier = Verifier {
            running: self,
            found: Verification::default(),
            buffer: vec![0; CHUNK_BYTES],
            started: now,
            told: now,
        };
        for (index, files) in (0u32..).zip(&self.files).filter(|(index, _)| self.built[*index as usize]) {
            for file in files.table.live_files() {
                verifier.file(index, files, file)?;
            }
        }
        Ok(verifier.found)
    }
}

struct Verifier<'a> {
    running: &'a Running<'a>,
    found: Verification,
    buffer: Vec<u8>,
    started: Instant,
    told: Instant,
}

impl Verifier<'_> {
    fn file(&mut self, fileset: u32, files: &Files, file: u32) -> Result<(), LoadError> {
        self.found.files += 1;
        let (name, filled) = (stamp_name(fileset, file), files.spec.fill);
        let mut path = PathBuffer::default();
        files.layout.file(&mut path, file, files.table.renamed(file));
        let opened = File::open(root(self.running.directory, &files.spec).join(path.shown()));
        let path = PathBuf::from(files.shown(&path.shown()));
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.damage(&path, 0, in_words(&error));
                return Ok(());
            }
        };
        // What the device holds is wanted, as far as that is known: pages that were not written back yet stay.
        let _ = fadvise(&opened, 0, None, Advice::DontNeed);
        let wanted = self.running.least_bytes(fileset, file);
        let mut offset = 0;
        loop {
            self.breathe()?;
            let mut buffer = std::mem::take(&mut self.buffer);
            match read_full(&opened, &mut buffer, offset) {
                Ok(length) => {
                    self.check(&path, &buffer[..length], name, offset, filled);
                    offset += length as u64;
                    self.buffer = buffer;
                    if length == CHUNK_BYTES {
                        continue;
                    }
                    if offset < wanted {
                        self.damage(&path, offset, format!("the file ends here, and had {wanted} bytes"));
                    }
                    return Ok(());
                }
                // What cannot be read is passed over: the rest may be sound.
                Err(error) => {
                    self.damage(&path, offset, in_words(&error));
                    self.buffer = buffer;
                    offset += CHUNK_BYTES as u64;
                    if offset >= wanted {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn check(&mut self, path: &Path, data: &[u8], name: u64, offset: u64, filled: bool) {
        let Some(ledger) = self.running.depot.ledger() else { return };
        let mut start = 0;
        while start < data.len() {
            match ledger.check(&data[start..], name, offset + start as u64) {
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
                            self.damage(path, place, mismatch.words().into());
                        }
                    }
                    start += at + stamp::UNIT;
                }
            }
        }
    }

    fn damage(&mut self, path: &Path, offset: u64, problem: String) {
        if self.found.damages.len() < MAX_DAMAGES {
            self.found.damages.push(Damage { path: path.to_owned(), offset, problem });
        }
    }

    fn breathe(&mut self) -> Result<(), LoadError> {
        let options = self.running.options;
        if options.cancel.load(Ordering::Relaxed) {
            return Err(LoadError::Interrupted(None));
        }
        if self.told.elapsed() >= PROGRESS_INTERVAL {
            options.observer.progress(&Progress {
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
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}

fn in_words(error: &std::io::Error) -> String {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    format!("{}{}", crate::errno::describe(errno), cure(errno))
}

impl Running<'_> {
    /// Notes every file that is missing or too short as an error of the load.
    pub(super) fn look_for_files(&self) {
        for (index, files) in (0u32..).zip(&self.files).filter(|(index, _)| self.built[*index as usize]) {
            let mut path = PathBuffer::default();
            for file in files.table.live_files() {
                files.layout.file(&mut path, file, files.table.renamed(file));
                let wrong = match kernel::stat(files.directory(), path.as_c()) {
                    Ok(stat) if u64::try_from(stat.st_size).is_ok_and(|size| size >= self.least_bytes(index, file)) => {
                        continue;
                    }
                    // Shorter than what was written to it.
                    Ok(_) => Errno::NODATA,
                    Err(errno) => errno,
                };
                self.collector.error(("", "verify"), Call::Verify.name(), &files.shown(&path.shown()), wrong, None);
            }
        }
    }

    /// A file that grows has only what was written to it.
    fn least_bytes(&self, fileset: u32, file: u32) -> u64 {
        let files = &self.files[fileset as usize];
        let size = files.table.size(file);
        match self.depot.ledger() {
            Some(ledger) if files.spec.grows => size.min(ledger.end(stamp_name(fileset, file))),
            _ => size,
        }
    }
}
