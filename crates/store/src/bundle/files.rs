//! The entries of a bundle: their names and what is in them.

use fstone_model::dataset::Run;
use fstone_model::{Plan, Trial};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub(super) const VERSION: u32 = 3;

/// The version of a run's bundle: the oldest that holds all of it. Version 2 has blocks of other machines, which a reader of
/// version 1 would take for the run's own, and version 3 the names that the run has as a baseline.
pub(super) const fn version_of(run: &Run, baselines: &[String]) -> u32 {
    match (run.blocks.is_empty(), baselines.is_empty()) {
        (_, false) => VERSION,
        (false, true) => 2,
        (true, true) => 1,
    }
}

/// The first version that has [`BASELINES_NAME`].
pub(super) const WITH_BASELINES: u32 = 3;
pub(super) const BASELINES_NAME: &str = "baselines.json";
/// An import takes as many names as a bundle has, and prints each.
pub(super) const MOST_BASELINES: usize = 64;

pub(super) const FORMAT: &str = "fstone bundle";

pub(super) const FORMAT_NAME: &str = "fstone-bundle.json";
pub(super) const RUN_NAME: &str = "run.json";
pub(super) const MANIFEST_NAME: &str = "manifest.json";
const STUDY_NAME: &str = "study/study.toml";

/// Longest name: what a tar header holds without extensions.
const NAME_BYTES: usize = 100;

/// The first entry.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Format {
    pub(super) format: String,
    pub(super) version: u32,
}

/// The last entry.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) files: Vec<Listed>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Listed {
    pub(super) path: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl Manifest {
    pub(super) fn add(&mut self, path: &str, content: &[u8]) {
        self.files.push(Listed { path: path.to_owned(), bytes: content.len() as u64, sha256: sha256(content) });
    }
}

pub(super) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-256 of a file, by which two copies of it are known to be the same.
///
/// # Errors
/// Those of open(2) and read(2).
pub fn digest_of_file(path: &Path) -> io::Result<String> {
    let (mut file, mut hash, mut buffer) = (File::open(path)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            read => hash.update(&buffer[..read]),
        }
    }
}

/// A trial in its entry. JSON has neither NaN nor infinity, and a figure may be either.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TrialFile {
    trial: Trial,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not_finite: Vec<NotFinite>,
}

/// A figure whose value is not a finite number; in `trial` it is 0.
#[derive(Debug, Serialize, Deserialize)]
struct NotFinite {
    step: usize,
    figure: usize,
    value: String,
}

impl TrialFile {
    pub(super) fn new(mut trial: Trial) -> Self {
        let mut not_finite = Vec::new();
        for (step, result) in trial.steps.iter_mut().enumerate() {
            for (figure, entry) in result.figures.iter_mut().enumerate() {
                if !entry.value.is_finite() {
                    not_finite.push(NotFinite { step, figure, value: entry.value.to_string() });
                    entry.value = 0.0;
                }
            }
        }
        Self { trial, not_finite }
    }

    /// The trial as it was; `None` when a figure that is not finite is not there or is a number.
    pub(super) fn into_trial(self) -> Option<Trial> {
        let mut trial = self.trial;
        for entry in self.not_finite {
            let value: f64 = entry.value.parse().ok()?;
            let figure = trial.steps.get_mut(entry.step)?.figures.get_mut(entry.figure)?;
            figure.value = Some(value).filter(|value| !value.is_finite())?;
        }
        Some(trial)
    }
}

pub(super) fn trial_name(index: usize) -> String {
    format!("trials/{index:06}.json")
}

/// The study and the files it names, for people; those whose names would lead out of the bundle's directory, or that
/// two would share, are in `run.json` only.
pub(super) fn study_files(plan: &Plan) -> Vec<(String, &str)> {
    let mut files = vec![(STUDY_NAME.to_owned(), plan.source.as_str())];
    for (name, content) in &plan.attachments {
        let name = format!("study/{name}");
        if is_plain(&name) && !files.iter().any(|(other, _)| *other == name) {
            files.push((name, content));
        }
    }
    files
}

/// Whether a name can be unpacked anywhere without leaving that place or surprising a terminal.
pub(super) fn is_plain(name: &str) -> bool {
    let fine = |part: &str| !part.is_empty() && part != "." && part != "..";
    name.len() <= NAME_BYTES && !name.chars().any(|c| c.is_control() || c == '\\') && name.split('/').all(fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names() {
        for name in ["run.json", "study/a/b.ffsb", "study/größe", "trials/000000.json", "a..b"] {
            assert!(is_plain(name), "{name:?}");
        }
        let long = "x".repeat(NAME_BYTES + 1);
        for name in
            ["", "/etc/passwd", "../x", "a/../x", "a/./x", "a//x", "a/", "..", "a\0b", "a\u{1b}[2J", "c:\\x", &long]
        {
            assert!(!is_plain(name), "{name:?}");
        }
    }

    #[test]
    fn hashes_are_sha_256() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
