//! Writing a bundle.

use super::error::ExportError;
use super::files::{
    BASELINES_NAME, FORMAT, FORMAT_NAME, Format, MANIFEST_NAME, MOST_BASELINES, Manifest, RUN_NAME, TrialFile,
};
use super::files::{study_files, trial_name, version_of};
use fstone_files::Temporary;
use fstone_model::Dataset;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Histograms compress well, and a bundle is written once and sent many times.
const COMPRESSION_LEVEL: i32 = 9;

/// Writes a run into a new file, which appears under its name when it is complete and replaces nothing. The same run
/// gives the same bytes. With `sudo`, the file belongs to the caller.
pub fn write(dataset: Dataset, path: &Path) -> Result<(), ExportError> {
    write_named(dataset, &[], path)
}

/// The same with the names that the run has as a baseline, of which a bundle holds some.
pub fn write_named(dataset: Dataset, baselines: &[String], path: &Path) -> Result<(), ExportError> {
    let failed = |cause| ExportError::Io { path: path.to_owned(), cause };
    let baselines = &baselines[..baselines.len().min(MOST_BASELINES)];
    if path.symlink_metadata().is_ok() {
        return Err(ExportError::Exists { path: path.to_owned() });
    }
    complete(dataset, baselines, path)?.publish(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => ExportError::Exists { path: path.to_owned() },
        _ => failed(cause),
    })
}

/// The same in place of the file that has the name, if there is one.
pub fn replace(dataset: Dataset, path: &Path) -> Result<(), ExportError> {
    complete(dataset, &[], path)?.replace(path).map_err(|cause| ExportError::Io { path: path.to_owned(), cause })
}

/// A whole bundle that has no name yet.
fn complete(dataset: Dataset, baselines: &[String], path: &Path) -> Result<Temporary, ExportError> {
    let failed = |cause| ExportError::Io { path: path.to_owned(), cause };
    let temporary = Temporary::beside(path).map_err(failed)?;
    let time = dataset.run.started_unix_ns / 1_000_000_000;
    let mut writer = Writer::new(temporary.file(), time).map_err(failed)?;

    writer
        .json(FORMAT_NAME, &Format { format: FORMAT.to_owned(), version: version_of(&dataset.run, baselines) })
        .map_err(failed)?;
    writer.json(RUN_NAME, &dataset.run).map_err(failed)?;
    if !baselines.is_empty() {
        writer.json(BASELINES_NAME, &baselines).map_err(failed)?;
    }
    for (name, content) in study_files(&dataset.run.plan) {
        writer.entry(&name, content.as_bytes()).map_err(failed)?;
    }
    for (index, trial) in dataset.trials.into_iter().enumerate() {
        writer.json(&trial_name(index), &TrialFile::new(trial)).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    Ok(temporary)
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
