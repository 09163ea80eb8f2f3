//! Reading a bundle, which may come from anyone.

use super::error::BundleError;
use super::files::{
    BASELINES_NAME, FORMAT, FORMAT_NAME, Format, MANIFEST_NAME, MOST_BASELINES, Manifest, RUN_NAME, TrialFile, VERSION,
    WITH_BASELINES,
};
use super::files::{is_plain, sha256, study_files, trial_name};
use crate::baselines::is_baseline_name;
use fstone_model::check::Roll;
use fstone_model::dataset::Run;
use fstone_model::{Dataset, Trial, text};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    entry_bytes: u64,
    /// Bytes of all entries, tar headers included.
    total_bytes: u64,
    entries: u64,
}

/// Generous: the largest run thought of, 10,000 trials with an hour's series each, has about 4 GiB of JSON.
pub(super) const LIMITS: Limits = Limits { entry_bytes: 256 << 20, total_bytes: 16 << 30, entries: 1_000_000 };

pub(super) const SMALL: Limits = Limits { entry_bytes: 1 << 20, total_bytes: 4 << 20, entries: 1000 };

/// Memory that decompression may take, as a power of two: zstd's own default limit.
const WINDOW_LOG: u32 = 27;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    pub study: String,
    pub title: String,
    pub host: String,
    pub started_unix_ns: u64,
    /// Names that it has as a baseline where it comes from.
    pub baselines: Vec<String>,
    pub trials: u64,
    pub bytes: u64,
    /// SHA-256 of the manifest, and so of all there is: two bundles with the same digest are the same.
    pub digest: String,
}

/// Reads a whole bundle. The run keeps the number it had in its own store.
///
/// # Errors
/// [`BundleError`]: when anything is missing, too much, too large, or differs from the manifest.
pub fn read(path: &Path) -> Result<Dataset, BundleError> {
    let mut found = None;
    let mut trials = Vec::new();
    visit(path, LIMITS, |part| {
        match part {
            Part::Run(run) => found = Some(*run),
            Part::Trial(trial) => trials.push(*trial),
        }
        Ok::<_, BundleError>(())
    })?;
    let run = found.ok_or_else(|| malformed(path, "it has no run"))?;
    Ok(Dataset { run, trials })
}

/// Reads a whole bundle, checks it against its manifest, and describes its content.
pub fn verify(path: &Path) -> Result<Contents, BundleError> {
    visit(path, LIMITS, |_| Ok(()))
}

/// Reads bytes as the content of a bundle, before its compression when `compressed` is not set, within limits that suit
/// small inputs. The entry point for fuzzing: behind checksums of its own, compression lets few changes through.
pub fn check_bytes(bytes: &[u8], compressed: bool) -> Result<Contents, BundleError> {
    let path = Path::new("bundle");
    let part = |_| Ok(());
    if !compressed {
        return visit_archive(path, bytes, SMALL, part);
    }
    let unpacked = unpacking(bytes).map_err(|cause| unreadable(path, cause))?;
    visit_archive(path, unpacked, SMALL, part)
}

/// Reads the texts of a bundle's `run.json` and of its trials as [`read`] does, without an archive around them. For
/// fuzzing: hashing an archive twice is most of the work of a small one.
pub fn read_parts(run: &str, trials: &[String]) -> Result<Dataset, BundleError> {
    let path = Path::new("bundle");
    let run = checked_run(path, parse(path, RUN_NAME, run.as_bytes())?)?;
    let trial = |(index, trial): (usize, &String)| checked_trial(path, &trial_name(index), trial.as_bytes());
    let trials = trials.iter().enumerate().map(trial).collect::<Result<_, _>>()?;
    Dataset::new(run, trials).map_err(|error| malformed(path, &error.to_string()))
}

/// A part of a bundle, as it comes by: first the run, then its trials. Only when [`visit`] has returned without an error
/// is it known that they are what the manifest says.
pub(super) enum Part {
    Run(Box<Run>),
    Trial(Box<Trial>),
}

pub(super) fn visit<E: From<BundleError>>(
    path: &Path,
    limits: Limits,
    part: impl FnMut(Part) -> Result<(), E>,
) -> Result<Contents, E> {
    let failed = |cause| unreadable(path, cause);
    let file = File::open(path).map_err(failed)?;
    visit_archive(path, unpacking(BufReader::new(file)).map_err(failed)?, limits, part)
}

fn unpacking<R: BufRead>(bytes: R) -> io::Result<impl Read> {
    let mut decoder = zstd::Decoder::with_buffer(bytes)?;
    decoder.window_log_max(WINDOW_LOG)?;
    Ok(decoder)
}

/// Reads an archive; `path` is what messages call it.
pub(super) fn visit_archive<E: From<BundleError>>(
    path: &Path,
    bytes: impl Read,
    limits: Limits,
    mut part: impl FnMut(Part) -> Result<(), E>,
) -> Result<Contents, E> {
    let failed = |cause| unreadable(path, cause);
    let mut archive = tar::Archive::new(Bounded { inner: bytes, left: limits.total_bytes });
    // Raw: extensions (long names, sparse files, …) are entries like any other then, and refused.
    let mut entries = Entries {
        path,
        limits,
        entries: archive.entries().map_err(failed)?.raw(true),
        count: 0,
        bytes: 0,
        manifest: Manifest::default(),
    };

    let format: Format = entries.json(FORMAT_NAME)?;
    if format.format != FORMAT {
        return Err(malformed(path, "it is not an fstone bundle").into());
    }
    if !(1..=VERSION).contains(&format.version) {
        return Err(BundleError::Newer { path: path.to_owned(), found: format.version, known: VERSION }.into());
    }
    let run = checked_run(path, entries.json(RUN_NAME)?)?;
    let baselines: Vec<String> =
        if format.version >= WITH_BASELINES { entries.json(BASELINES_NAME)? } else { Vec::new() };
    if baselines.len() > MOST_BASELINES {
        return Err(malformed(path, &format!("it has more than {MOST_BASELINES} names as a baseline")).into());
    }
    if let Some(name) = baselines.iter().find(|name| !is_baseline_name(name)) {
        return Err(malformed(path, &format!("{name:?} is no name of a baseline")).into());
    }
    for (name, content) in study_files(&run.plan) {
        if entries.named(&name)? != content.as_bytes() {
            return Err(malformed(path, &format!("{name} is not the one that {RUN_NAME} has")).into());
        }
    }
    let mut contents = Contents {
        study: run.plan.study.clone(),
        title: run.plan.title.clone(),
        host: run.inventory.host.clone(),
        started_unix_ns: run.started_unix_ns,
        baselines,
        trials: 0,
        bytes: 0,
        digest: String::new(),
    };
    let mut roll = Roll::new(&run.plan);
    part(Part::Run(Box::new(run)))?;
    for index in 0.. {
        let (name, content) = entries.required("a trial or its manifest")?;
        if name == MANIFEST_NAME {
            entries.check_manifest(&content)?;
            contents.digest = sha256(&content);
            break;
        }
        if name != trial_name(index) {
            return Err(malformed(path, &format!("{name} is where {} should be", trial_name(index))).into());
        }
        let trial = checked_trial(path, &name, &content)?;
        roll.call(trial.id).map_err(|error| malformed(path, &error.to_string()))?;
        contents.trials += 1;
        part(Part::Trial(Box::new(trial)))?;
    }
    if entries.next()?.is_some() {
        return Err(malformed(path, "something follows its manifest").into());
    }
    contents.bytes = entries.bytes;
    Ok(contents)
}

fn checked_run(path: &Path, mut run: Run) -> Result<Run, BundleError> {
    run.identity = run.identified();
    if !run.has_plain_identity() {
        return Err(malformed(path, &format!("{RUN_NAME}: its identity is not one short line")));
    }
    if !run.has_plain_blocks() {
        let why = "a block of it is of two machines, or the name of a machine is not one short line";
        return Err(malformed(path, &format!("{RUN_NAME}: {why}")));
    }
    Ok(run)
}

fn checked_trial(path: &Path, name: &str, content: &[u8]) -> Result<Trial, BundleError> {
    let trial: TrialFile = parse(path, name, content)?;
    trial.into_trial().ok_or_else(|| malformed(path, &format!("{name} is inconsistent")))
}

fn parse<T: DeserializeOwned>(path: &Path, name: &str, content: &[u8]) -> Result<T, BundleError> {
    let text = std::str::from_utf8(content).map_err(|error| damaged(path, &format!("{name}: {error}")))?;
    serde_json::from_str(text).map_err(|error| {
        let told = format!("{name}: {error}");
        match error.classify() {
            Category::Syntax | Category::Eof => damaged(path, &told),
            Category::Data | Category::Io => malformed(path, &told),
        }
    })
}

fn damaged(path: &Path, how: &str) -> BundleError {
    malformed(path, &format!("it is damaged or cut short; fetch it again ({how})"))
}

fn malformed(path: &Path, why: &str) -> BundleError {
    BundleError::Malformed { path: path.to_owned(), why: text::line(why) }
}

fn unreadable(path: &Path, cause: io::Error) -> BundleError {
    if cause.raw_os_error().is_some() {
        return BundleError::Io { path: path.to_owned(), cause };
    }
    // The message of the decompressor or the archive, not of the system.
    match text::line(&cause.to_string()).as_str() {
        "Unknown frame descriptor" => malformed(path, "it is not an fstone bundle"),
        told => damaged(path, told),
    }
}

struct Entries<'p, 'a, R: Read> {
    path: &'p Path,
    limits: Limits,
    entries: tar::Entries<'a, R>,
    count: u64,
    bytes: u64,
    manifest: Manifest,
}

impl<R: Read> Entries<'_, '_, R> {
    fn next(&mut self) -> Result<Option<(String, Vec<u8>)>, BundleError> {
        let failed = |cause| unreadable(self.path, cause);
        let Some(entry) = self.entries.next() else { return Ok(None) };
        let mut entry = entry.map_err(failed)?;
        self.count += 1;
        if self.count > self.limits.entries {
            return Err(malformed(self.path, &format!("it has more than {} entries", self.limits.entries)));
        }
        let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap_or_default();
        if entry.header().entry_type() != tar::EntryType::Regular || !is_plain(&name) {
            let why = format!("entry {} ({name:?}) is not a regular file with a plain relative name", self.count);
            return Err(malformed(self.path, &why));
        }
        let bytes = entry.size();
        if bytes > self.limits.entry_bytes {
            let why = format!("{name} has {bytes} bytes; the limit is {}", self.limits.entry_bytes);
            return Err(malformed(self.path, &why));
        }
        // Grows with what is really there, not with what is claimed.
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(failed)?;
        if content.len() as u64 != bytes {
            return Err(malformed(self.path, &format!("it is cut short in {name}")));
        }
        self.bytes += bytes;
        if name != MANIFEST_NAME {
            self.manifest.add(&name, &content);
        }
        Ok(Some((name, content)))
    }

    fn required(&mut self, what: &str) -> Result<(String, Vec<u8>), BundleError> {
        self.next()?.ok_or_else(|| malformed(self.path, &format!("it ends where {what} should be")))
    }

    /// The content of the next entry, which must have this name.
    fn named(&mut self, name: &str) -> Result<Vec<u8>, BundleError> {
        let (found, content) = self.required(name)?;
        if found == name {
            Ok(content)
        } else {
            Err(malformed(self.path, &format!("{found} is where {name} should be")))
        }
    }

    fn json<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, BundleError> {
        let content = self.named(name)?;
        parse(self.path, name, &content)
    }

    fn check_manifest(&self, content: &[u8]) -> Result<(), BundleError> {
        let told: Manifest = parse(self.path, MANIFEST_NAME, content)?;
        let differs = |(found, told)| found != told;
        if let Some((found, _)) = self.manifest.files.iter().zip(&told.files).find(|pair| differs(*pair)) {
            return Err(malformed(self.path, &format!("{} is not what {MANIFEST_NAME} says", found.path)));
        }
        if self.manifest.files.len() != told.files.len() {
            return Err(malformed(self.path, &format!("it has other entries than {MANIFEST_NAME} says")));
        }
        Ok(())
    }
}

/// A reader that fails when more comes than may.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left =
            self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other("it holds more than any bundle may"))?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive of these entries: (name, type, claimed size, content).
    fn archive(entries: &[(&str, tar::EntryType, u64, &[u8])]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut archive = tar::Builder::new(zstd::Encoder::new(file.as_file(), 1).expect("an encoder"));
        for (name, kind, size, content) in entries {
            let mut header = tar::Header::new_gnu();
            // Past the checks of the library: a hostile writer has its own.
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(*size);
            header.set_cksum();
            archive.append(&header, *content).expect("appended");
        }
        archive.into_inner().and_then(zstd::Encoder::finish).expect("finished");
        file
    }

    fn refusal(entries: &[(&str, tar::EntryType, u64, &[u8])], limits: Limits) -> String {
        let file = archive(entries);
        let error = visit(file.path(), limits, |_| Ok::<_, BundleError>(())).expect_err("refused").to_string();
        error.replace(&file.path().display().to_string(), "B")
    }

    const FORMAT_JSON: &[u8] = br#"{"format":"fstone bundle","version":1}"#;

    #[test]
    fn hostile_entries_are_refused() {
        use tar::EntryType;
        let regular = EntryType::Regular;
        let name = |name: &'static str| refusal(&[(name, regular, 0, b"")], LIMITS);
        for hostile in ["../run.json", "/etc/passwd", "a/../../b", "", "a\u{1b}[2J"] {
            assert!(name(hostile).contains("is not a regular file with a plain relative name"), "{hostile:?}");
        }
        assert!(!name("a\u{1b}[2J").contains('\u{1b}'), "nothing that a terminal obeys");
        for kind in [
            EntryType::Symlink,
            EntryType::Link,
            EntryType::Directory,
            EntryType::GNULongName,
            EntryType::XHeader,
            EntryType::Char,
            EntryType::GNUSparse,
        ] {
            let refused = refusal(&[(FORMAT_NAME, kind, 0, b"")], LIMITS);
            assert!(refused.contains("is not a regular file"), "{kind:?}: {refused}");
        }
        let huge = refusal(&[(FORMAT_NAME, regular, 1 << 40, b"")], LIMITS);
        assert_eq!(huge, format!("read the bundle B: {FORMAT_NAME} has 1099511627776 bytes; the limit is 268435456"));
    }

    #[test]
    fn a_bomb_is_stopped_in_time() {
        let zeros = vec![0; 1 << 20];
        let bomb = [(FORMAT_NAME, tar::EntryType::Regular, 1 << 20, zeros.as_slice())];
        let limits = Limits { total_bytes: 1 << 16, ..LIMITS };
        assert!(refusal(&bomb, limits).contains("it holds more than any bundle may"));
        let one = [(FORMAT_NAME, tar::EntryType::Regular, FORMAT_JSON.len() as u64, FORMAT_JSON)];
        assert!(refusal(&one, Limits { entries: 0, ..LIMITS }).contains("more than 0 entries"));
    }

    #[test]
    fn what_is_not_a_bundle_or_a_newer_one_is_told_so() {
        let first = |content: &'static [u8]| {
            refusal(&[(FORMAT_NAME, tar::EntryType::Regular, content.len() as u64, content)], LIMITS)
        };
        assert_eq!(first(br#"{"format":"other","version":1}"#), "read the bundle B: it is not an fstone bundle");
        assert!(first(br#"{"format":"fstone bundle","version":9}"#).contains("it has version 9"));
        assert!(
            first(b"rubbish")
                .contains("it is damaged or cut short; fetch it again (fstone-bundle.json: expected value")
        );
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[124..128].copy_from_slice(b"\x1b[2J");
        header.set_cksum();
        let told =
            check_bytes(&[header.as_bytes().as_slice(), &[0; 1024]].concat(), false).expect_err("no size").to_string();
        assert!(told.contains("\u{241b}[2J"), "quoted, without what a terminal obeys: {told:?}");
        assert!(first(FORMAT_JSON).contains("it ends where run.json should be"));
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "rubbish".repeat(100)).expect("written");
        let told = verify(file.path()).expect_err("rubbish").to_string();
        assert!(told.ends_with("it is not an fstone bundle"), "{told}");
        let mut damaged = zstd::encode_all(&[7; 5000][..], 1).expect("compressed");
        damaged.truncate(damaged.len() - 3);
        std::fs::write(file.path(), damaged).expect("written");
        let told = verify(file.path()).expect_err("cut short").to_string();
        assert!(told.contains("it is damaged or cut short; fetch it again ("), "{told}");
        assert!(matches!(verify(Path::new("/nonexistent")), Err(BundleError::Io { .. })));
    }
}
