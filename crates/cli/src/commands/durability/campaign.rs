//! Sequences that are still to be tried, and what came of those that were: a file, so that a killed command loses at most
//! what its guests were at.

use crate::{
    exit::Exit,
    paths,
    terminal::{self, Bar, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_analysis::text::counted;
use fstone_engine::sequences::Sequence;
use fstone_files::{Owner, create_file, open_or_create};
use fstone_lab::run::explore::{Explorer, SequenceFound};
use fstone_model::{
    fnv::fnv1a,
    study::{DiskTruth, FilesystemSpec, KernelSpec},
    units,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Logs are large: so many are kept of one filesystem.
const LOGS: u32 = 8;
const LOG_EXTENSION: &str = "disk-log";
/// How often a line reports progress without a terminal.
const TELL_PERIOD: Duration = Duration::from_secs(10);

/// The settings that a file's figures apply to. Other settings have another file.
pub(super) struct Setting<'a> {
    pub(super) filesystem: &'a FilesystemSpec,
    pub(super) kernel: &'a KernelSpec,
    pub(super) states: u32,
    pub(super) seed: u64,
    pub(super) disk: DiskTruth,
    pub(super) device_bytes: u64,
    pub(super) sector_bytes: u32,
    /// Whether states are of interest that lack no more than a property which nothing promises.
    pub(super) properties: bool,
}

impl Setting<'_> {
    fn written(&self) -> Value {
        json!({
            "fstone": env!("CARGO_PKG_VERSION"),
            "commit": env!("FSTONE_COMMIT"),
            "type": self.filesystem.kind,
            "mkfs": self.filesystem.mkfs,
            "mount": self.filesystem.mount,
            "kernel": self.kernel.written(),
            "device bytes": self.device_bytes,
            "sector bytes": self.sector_bytes,
            "properties": self.properties,
            "states": self.states,
            "seed": self.seed,
            "disk": self.disk,
        })
    }
}

pub(super) struct Campaign {
    path: PathBuf,
    label: String,
    properties: bool,
    queue: Mutex<VecDeque<Sequence>>,
    results: Mutex<Results>,
    bar: Option<Bar>,
    started: Instant,
    /// Sequences in all, and how many of them were known before.
    total: usize,
    known: usize,
}

struct Results {
    file: File,
    /// By the sequence's text, in the order of the list.
    found: BTreeMap<String, SequenceFound>,
    states: u64,
    logs: u32,
    told: Instant,
}

impl Drop for Results {
    /// A program that starts at this moment has the descriptor until its exec, and with it the lock.
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.file, rustix::fs::FlockOperation::Unlock);
    }
}

impl Campaign {
    pub(super) fn open(
        directory: &Path,
        setting: &Setting<'_>,
        sequences: &[Sequence],
        fresh: bool,
    ) -> Result<Self, Failure> {
        let head = setting.written().to_string();
        let path = directory.join(format!("{}-{:016x}.jsonl", setting.filesystem.kind, fnv1a(head.as_bytes())));
        let failed = || format!("cannot use {}", path.display());
        // With sudo, the findings are the caller's.
        create_file(&path, Owner::caller()).with_context(failed).or_exit(Exit::LabFailed)?;
        let mut file = open_or_create(&path, true).with_context(failed).or_exit(Exit::LabFailed)?;
        if let Err(errno) = rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            let words =
                format!("{}: another fstone is working on these sequences ({errno}); wait for it", path.display());
            return Err(Failure::new(Exit::CannotHere, words));
        }
        let mut text = fs::read_to_string(&path).with_context(failed).or_exit(Exit::LabFailed)?;
        let mut known = match read(&text, &head) {
            Err(_) if fresh => {
                file.set_len(0).with_context(failed).or_exit(Exit::LabFailed)?;
                text.clear();
                BTreeMap::new()
            }
            known => known.with_context(failed).or_exit(Exit::LabFailed)?,
        };
        let mut begin = match text.as_bytes().last() {
            None => format!("{head}\n"),
            Some(b'\n') => String::new(),
            // A kill left a part of a line.
            Some(_) => "\n".to_owned(),
        };
        let texts: Vec<String> = sequences.iter().map(ToString::to_string).collect();
        known.retain(|text, _| texts.contains(text));
        if fresh {
            // Those of this list alone; what is known of others stays.
            for text in known.keys() {
                begin += &(json!({ "sequence": text, "found": null }).to_string() + "\n");
            }
            known.clear();
        }
        file.write_all(begin.as_bytes()).with_context(failed).or_exit(Exit::LabFailed)?;
        if fresh {
            // Also the log of a sequence that was not recorded because of a kill.
            remove_logs(&path, &texts).with_context(failed).or_exit(Exit::LabFailed)?;
        }
        let queue = sequences.iter().zip(&texts).filter(|(_, text)| !known.contains_key(*text));
        let queue: VecDeque<Sequence> = queue.map(|(sequence, _)| sequence.clone()).collect();
        if !known.is_empty() {
            terminal::tell(&format!(
                "{}: {} of {} sequences are known from {}; --fresh tries them again.",
                setting.filesystem.name,
                known.len(),
                texts.len(),
                path.display()
            ));
        }
        let logs = known.values().filter(|found| found.log.is_some()).count() as u32;
        let now = Instant::now();
        Ok(Self {
            label: setting.filesystem.name.clone(),
            properties: setting.properties,
            total: known.len() + queue.len(),
            known: known.len(),
            bar: if queue.is_empty() { None } else { Bar::counting() },
            queue: Mutex::new(queue),
            results: Mutex::new(Results { file, found: known, states: 0, logs, told: now }),
            started: now,
            path,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_complete(&self) -> bool {
        self.results().found.len() == self.total
    }

    pub(super) fn has_losses(&self) -> bool {
        self.results().found.values().any(|found| !found.is_sound())
    }

    pub(super) const fn total(&self) -> usize {
        self.total
    }

    pub(super) fn outcomes(&self) -> BTreeMap<String, SequenceFound> {
        self.results().found.clone()
    }

    /// States looked at by this command, and how long it took.
    pub(super) fn pace(&self) -> (u64, Duration) {
        (self.results().states, self.started.elapsed())
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish();
        }
    }

    fn results(&self) -> MutexGuard<'_, Results> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, results: &mut Results) {
        let (done, elapsed) = (results.found.len(), self.started.elapsed());
        let here = done - self.known;
        let left = elapsed.mul_f64((self.total - done) as f64 / here.max(1) as f64);
        let count = |which: fn(&SequenceFound) -> bool| results.found.values().filter(|found| which(found)).count();
        let lossy = count(|found| found.lossy > 0);
        let otherwise = match count(|found| found.lossy == 0 && !found.is_sound()) {
            0 => String::new(),
            otherwise => format!(", {otherwise} unclean or ended early"),
        };
        let line = format!(
            "{} states, {:.1} a second; {} with a loss{otherwise}; {} left",
            results.states,
            results.states as f64 / elapsed.as_secs_f64().max(0.001),
            counted(lossy, "sequence"),
            units::format_duration(Duration::from_secs(left.as_secs()))
        );
        let line = format!("{}: {done} of {} sequences, {line}", self.label, self.total);
        match &self.bar {
            Some(bar) => {
                bar.set(done as u64, self.total as u64);
                bar.say(&line);
            }
            None if results.told.elapsed() >= TELL_PERIOD => {
                results.told = Instant::now();
                terminal::tell(&line);
            }
            None => {}
        }
    }
}

impl Explorer for Campaign {
    fn next(&self) -> Option<Sequence> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn found(&self, sequence: &Sequence, found: SequenceFound) -> Result<(), String> {
        let mut results = self.results();
        let line = json!({ "sequence": sequence.to_string(), "found": found }).to_string() + "\n";
        let written = results.file.write_all(line.as_bytes()).and_then(|()| results.file.sync_data());
        written.map_err(|error| format!("write {}: {error}", self.path.display()))?;
        results.states += found.states;
        results.found.insert(sequence.to_string(), found);
        self.tell(&mut results);
        Ok(())
    }

    fn log(&self, sequence: &Sequence, found: &SequenceFound) -> Option<PathBuf> {
        let (shows, most) =
            if self.properties { (!found.lacking.is_empty(), self.total as u32) } else { (false, LOGS) };
        let mut results = self.results();
        if (found.is_sound() && !shows) || results.logs >= most {
            return None;
        }
        results.logs += 1;
        let path = log_path(&self.path, fnv1a(sequence.to_string().as_bytes()))?;
        // A command that was killed before it could record the sequence left one.
        drop(fs::remove_file(&path));
        Some(path)
    }
}

fn log_path(campaign: &Path, number: u64) -> Option<PathBuf> {
    Some(campaign.with_file_name(format!("{}-{number:016x}.{LOG_EXTENSION}", campaign.file_stem()?.to_str()?)))
}

fn remove_logs(campaign: &Path, sequences: &[String]) -> io::Result<()> {
    let mut logs = sequences.iter().filter_map(|text| log_path(campaign, fnv1a(text.as_bytes())));
    logs.try_for_each(|path| paths::remove_file(&path))
}

/// What a file knows, if it is of this setting.
fn read(text: &str, head: &str) -> anyhow::Result<BTreeMap<String, SequenceFound>> {
    let mut lines = text.lines();
    let Some(first) = lines.next() else { return Ok(BTreeMap::new()) };
    anyhow::ensure!(first == head, "it was made with other settings; --fresh starts again");
    let result = |line: &str| {
        let value: Value = serde_json::from_str(line).ok()?;
        let sequence = value.get("sequence")?.as_str()?.to_owned();
        let found: Option<SequenceFound> = serde_json::from_str(&value.get("found")?.to_string()).ok()?;
        Some((sequence, found))
    };
    let mut known = BTreeMap::new();
    // What a kill left of a line is tried again.
    for (sequence, found) in lines.filter_map(result) {
        match found {
            Some(found) => known.insert(sequence, found),
            None => known.remove(&sequence),
        };
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filesystem() -> FilesystemSpec {
        FilesystemSpec { name: "x".into(), kind: "x".into(), ..FilesystemSpec::default() }
    }

    fn setting<'a>(
        filesystem: &'a FilesystemSpec,
        kernel: &'a KernelSpec,
        (seed, properties): (u64, bool),
    ) -> Setting<'a> {
        Setting {
            filesystem,
            kernel,
            states: 5,
            seed,
            disk: DiskTruth::Sound,
            device_bytes: 1 << 20,
            sector_bytes: 4096,
            properties,
        }
    }

    #[test]
    fn what_a_kill_left_of_a_file_is_gone_on_with() {
        let directory = tempfile::tempdir().unwrap();
        let (filesystem, kernel) = (filesystem(), KernelSpec::Uml("6.1".into()));
        let sequences: Vec<Sequence> =
            ["create n; sync", "unlink a; sync", "sync"].iter().map(|text| text.parse().unwrap()).collect();
        let try_open = |seed, fresh| {
            let setting = setting(&filesystem, &kernel, (seed, false));
            Campaign::open(directory.path(), &setting, &sequences, fresh)
        };
        let open = |seed, fresh| try_open(seed, fresh).ok().unwrap();
        let first = open(1, false);
        for _ in 0..2 {
            let next = first.next().unwrap();
            first.found(&next, SequenceFound { states: 7, ..SequenceFound::default() }).unwrap();
        }
        // Killed in the middle of the second line.
        let text = fs::read_to_string(first.path()).unwrap();
        fs::write(first.path(), &text[..text.len() - 10]).unwrap();
        let at_once = try_open(1, true);
        assert!(at_once.is_err(), "one at a time, also with --fresh");
        drop(first);
        let again = open(1, false);
        assert!(!again.is_complete());
        let rest: Vec<String> = std::iter::from_fn(|| again.next()).map(|sequence| sequence.to_string()).collect();
        assert_eq!(rest, ["unlink a; sync", "sync"]);
        for sequence in &sequences[1..] {
            again.found(sequence, SequenceFound { lossy: 1, ..SequenceFound::default() }).unwrap();
        }
        drop(again);
        let whole = open(1, false);
        assert!(whole.is_complete() && whole.has_losses() && whole.next().is_none());
        assert_ne!(open(2, false).path(), whole.path(), "another seed, other states");
        drop(whole);
        // One of them is tried again, and the others stay known.
        let one = Campaign::open(directory.path(), &setting(&filesystem, &kernel, (1, false)), &sequences[1..2], true);
        let next = one.ok().unwrap().next();
        assert_eq!(next.map(|sequence| sequence.to_string()).as_deref(), Some("unlink a; sync"));
        let rest: Vec<String> = std::iter::from_fn({
            let again = open(1, false);
            move || again.next()
        })
        .map(|sequence| sequence.to_string())
        .collect();
        assert_eq!(rest, ["unlink a; sync"]);
        assert_eq!(std::iter::from_fn(|| open(1, true).next()).take(1).count(), 1);
    }

    #[test]
    fn logs_are_those_of_what_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let (filesystem, kernel) = (filesystem(), KernelSpec::Uml("6.1".into()));
        let sequence: Sequence = "unlink a; sync".parse().unwrap();
        let open = |properties, fresh| {
            let setting = setting(&filesystem, &kernel, (1, properties));
            Campaign::open(directory.path(), &setting, std::slice::from_ref(&sequence), fresh).ok().unwrap()
        };
        let sound = SequenceFound::default();
        let lossy = SequenceFound { lossy: 1, ..SequenceFound::default() };
        let lacking = BTreeMap::from([("order".to_owned(), (1, String::new(), String::new()))]);
        let lacking = SequenceFound { lacking, ..SequenceFound::default() };
        let first = open(false, false);
        assert_eq!((first.log(&sequence, &sound), first.log(&sequence, &lacking)), (None, None));
        let path = first.log(&sequence, &lossy).unwrap();
        // As a kill leaves it: the sequence is not written down.
        fs::write(&path, "an old log").unwrap();
        drop(first);
        let again = open(false, false);
        assert_eq!(again.log(&sequence, &lossy).as_ref(), Some(&path));
        assert!(!path.exists(), "there is room for the new one");
        drop(again);
        fs::write(&path, "an old log").unwrap();
        let others = ["x-0123.disk-log", "mine.disk-log", "x-0000000000000000-0000000000000000.disk-log"];
        for other in others {
            fs::write(directory.path().join(other), "of somebody else").unwrap();
        }
        let table = open(true, true);
        assert!(path.exists(), "of another setting");
        assert!(table.log(&sequence, &lacking).is_some() && table.log(&sequence, &sound).is_none());
        drop(open(false, true));
        assert!(!path.exists(), "it is tried again");
        assert!(others.iter().all(|other| directory.path().join(other).exists()));
    }
}
