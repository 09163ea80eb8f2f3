//! fio's logs of what a job did (`write_iolog`, versions 2 and 3): their lines, writing them, and carrying them out as fio does.

use crate::import::ImportError;
use crate::import::log::Lines;
use crate::latencies::Latencies;
use crate::replay::Buffer;
use fstone_engine::{CallLog, thread_usage};
use fstone_files::directory_of;
use fstone_model::workload::Tolerated;
use fstone_model::{Histogram, load::ThreadUsage};
use rustix::fs::{Advice, FileType, Mode, OFlags, fadvise, fdatasync, fsync, open, stat};
use rustix::io::{Errno, pread, pwrite};
use std::collections::{HashMap, HashSet, hash_map::Entry};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const VERSION_3: &str = "fio version 3 iolog";
/// fio's lengths are 32 bits, and its blocks are no longer.
const MOST_LENGTH: u64 = 1 << 30;
/// How often a pause looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Longest chain of links that the kernel follows.
const LINKS: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Add,
    Open,
    Close,
    Read,
    Write,
    Trim,
    Sync,
    Datasync,
    Wait,
}

pub(crate) struct Line<'l> {
    pub(crate) name: &'l str,
    pub(crate) action: Action,
    pub(crate) offset: Option<u64>,
    pub(crate) length: Option<u64>,
}

/// How lines are read: version 3 has times.
pub(crate) struct Form {
    pub(crate) has_times: bool,
    /// When the last line was carried out, since the first.
    pub(crate) now_ns: u64,
}

impl Form {
    pub(crate) fn of(head: &str) -> Option<Self> {
        let has_times = match head {
            "fio version 2 iolog" => false,
            VERSION_3 => true,
            _ => return None,
        };
        Some(Self { has_times, now_ns: 0 })
    }

    pub(crate) const fn expected(&self) -> &'static str {
        if self.has_times { "TIME FILE ACTION [OFFSET LENGTH]" } else { "FILE ACTION [OFFSET LENGTH]" }
    }

    pub(crate) fn line<'l>(&mut self, line: &'l str) -> Option<Line<'l>> {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        if self.has_times {
            self.now_ns = words.next()?.parse::<u64>().ok()?.saturating_mul(1000);
        }
        let (name, action) = (words.next()?, words.next()?);
        let numbers: Vec<u64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let action = match (action, numbers.len()) {
            ("add", 0) => Action::Add,
            ("open", 0) => Action::Open,
            ("close", 0) => Action::Close,
            ("wait", 1..) if !self.has_times => Action::Wait,
            ("read", 2) => Action::Read,
            ("write", 2) => Action::Write,
            ("trim", 2) => Action::Trim,
            ("sync", _) => Action::Sync,
            ("datasync", _) => Action::Datasync,
            _ => return None,
        };
        if action == Action::Wait {
            // Milliseconds since the log began, as fio carries it out.
            self.now_ns = numbers[0].saturating_mul(1_000_000);
        }
        Some(Line { name, action, offset: numbers.first().copied(), length: numbers.get(1).copied() })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum IologError {
    #[error(transparent)]
    Log(#[from] ImportError),
    #[error("it is no regular file")]
    Irregular,
    #[error("it is no log of fio's version 2 or 3: blktrace's are not replayed")]
    Version,
    #[error("line {line}: {text:?} is not of the form {expected}{}", if text.starts_with("fio version") {
        "; fio 3.33 refuses such a log too: give each job a log of its own"
    } else {
        ""
    })]
    Line { line: u64, expected: &'static str, text: String },
    #[error("line {0} is a trim, and files are not trimmed by a replay, nor by fio 3.33")]
    Trim(u64),
    #[error("line {0} moves more than 1 GiB at once")]
    Length(u64),
}

struct Step {
    at_ns: u64,
    file: u32,
    action: Action,
    offset: u64,
    length: u32,
}

/// A log that was read.
pub struct Iolog {
    names: Vec<String>,
    /// Which of these files it writes.
    written: Vec<bool>,
    steps: Vec<Step>,
    has_times: bool,
}

#[derive(Clone, Copy)]
pub struct IologSettings<'a> {
    /// Each call as soon as the one before it is done.
    pub no_stall: bool,
    /// How fast, in percent of the log, if that has times: as in fio, waits are as written.
    pub percent: u64,
    /// One file in place of all that the log names.
    pub redirect: Option<&'a str>,
    pub direct: bool,
    /// Whether cached pages of a file are dropped when it is opened.
    pub invalidate: bool,
    pub advice: Option<Advice>,
    /// Errors after which it goes on.
    pub goes_on_after: &'a [Tolerated],
    pub cancel: &'a AtomicBool,
}

#[derive(Debug, Clone, Default)]
pub struct Transfers {
    pub count: u64,
    pub bytes: u64,
    pub latency: Histogram,
}

/// What one thread did.
#[derive(Debug, Clone, Default)]
pub struct IologReport {
    pub reads: Transfers,
    pub writes: Transfers,
    pub syncs: Transfers,
    pub elapsed_ns: u64,
    pub usage: ThreadUsage,
    pub errors: Vec<IologFault>,
}

/// Calls of one kind that failed in the same way.
#[derive(Debug, Clone)]
pub struct IologFault {
    pub call: &'static str,
    /// Of the first.
    pub path: String,
    pub errno: Errno,
    pub count: u64,
}

impl Iolog {
    /// # Errors
    /// If it cannot be read, or has a line that is not carried out.
    pub fn read(path: &Path) -> Result<Self, IologError> {
        // A pipe would keep its reader waiting, and has nothing for a second clone.
        if std::fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
            return Err(IologError::Irregular);
        }
        let mut lines = Lines::open(path, false)?;
        let mut form = lines.next()?.as_deref().and_then(Form::of).ok_or(IologError::Version)?;
        let mut log = Self { names: Vec::new(), written: Vec::new(), steps: Vec::new(), has_times: form.has_times };
        let (mut numbers, mut first_ns) = (HashMap::new(), None);
        while let Some(text) = lines.next()? {
            let Some(line) = form.line(&text) else {
                let text = text.chars().take(120).collect();
                return Err(IologError::Line { line: lines.number, expected: form.expected(), text });
            };
            let first_ns = *first_ns.get_or_insert(if form.has_times { form.now_ns } else { 0 });
            let length = match line.action {
                Action::Add => continue,
                Action::Trim => return Err(IologError::Trim(lines.number)),
                Action::Read | Action::Write => line.length.unwrap_or(0),
                _ => 0,
            };
            if length > MOST_LENGTH {
                return Err(IologError::Length(lines.number));
            }
            let file = *numbers.entry(line.name.to_owned()).or_insert_with(|| {
                log.names.push(line.name.to_owned());
                log.written.push(false);
                log.names.len() as u32 - 1
            });
            let (offset, length) = (line.offset.unwrap_or(0), length as u32);
            let at_ns = form.now_ns.saturating_sub(first_ns);
            log.written[file as usize] |= line.action == Action::Write;
            log.steps.push(Step { at_ns, file, action: line.action, offset, length });
        }
        Ok(log)
    }

    pub fn writes(&self) -> bool {
        self.written.contains(&true)
    }

    /// The files that it opens, and whether it writes them; `redirect` is one in place of all that it names.
    pub fn files<'l>(&'l self, redirect: Option<&'l str>) -> impl Iterator<Item = (&'l str, bool)> {
        let own = self.names.iter().map(String::as_str).zip(self.written.iter().copied());
        redirect.map(|name| (name, self.writes())).into_iter().chain(own.filter(move |_| redirect.is_none()))
    }

    /// A device that it would open, where there is none: the open would make a file in its place.
    pub fn missing_device(&self, redirect: Option<&str>) -> Option<PathBuf> {
        self.files(redirect).find_map(|(name, _)| missing_device(name))
    }

    /// Carries the log out, in this thread.
    pub fn run(&self, settings: &IologSettings<'_>) -> IologReport {
        let most = self.steps.iter().map(|step| step.length).max().unwrap_or(0) as usize;
        let mut buffer = Buffer::incompressible(most);
        let percent = if self.has_times { settings.percent.max(1) } else { 100 };
        let mut files: HashMap<u32, File> = HashMap::new();
        let (mut reads, mut writes, mut syncs) = <(Counted, Counted, Counted)>::default();
        let mut errors: Vec<IologFault> = Vec::new();
        let before = thread_usage();
        let began = Instant::now();
        for step in &self.steps {
            if settings.cancel.load(Ordering::Relaxed) {
                break;
            }
            if !settings.no_stall {
                let at_ns = u128::from(step.at_ns) * 100 / u128::from(percent);
                pause_until(began + Duration::from_nanos(at_ns as u64), settings.cancel);
            }
            if step.action == Action::Wait {
                continue;
            }
            let number = step.file as usize;
            let (file, name, is_written) = match settings.redirect {
                Some(name) => (0, name, self.writes()),
                None => (step.file, &*self.names[number], self.written[number]),
            };
            let mut done = Ok(0);
            if step.action == Action::Close {
                files.remove(&file);
                continue;
            }
            if let Entry::Vacant(vacant) = files.entry(file) {
                match opened(name, is_written, settings) {
                    Ok(open) => _ = vacant.insert(open),
                    Err(errno) => done = Err(errno),
                }
            }
            let part = buffer.part_mut(step.length as usize);
            let (call, counted) = match step.action {
                Action::Write => ("write", &mut writes),
                Action::Sync | Action::Datasync => ("fsync", &mut syncs),
                Action::Read => ("read", &mut reads),
                _ => ("open", &mut reads),
            };
            if let (Some(file), true) = (files.get(&file), call != "open") {
                let at = Instant::now();
                done = match step.action {
                    Action::Read => pread(file, &mut *part, step.offset),
                    Action::Write => pwrite(file, &*part, step.offset),
                    Action::Datasync => fdatasync(file).map(|()| 0),
                    _ => fsync(file).map(|()| 0),
                };
                let latency_ns = at.elapsed().as_nanos() as u64;
                let moves = matches!(step.action, Action::Read | Action::Write);
                match done {
                    // As fio has it.
                    Ok(moved) if moves && moved < part.len() => done = Err(Errno::IO),
                    Ok(moved) => {
                        counted.latency.record(latency_ns);
                        counted.bytes += moved as u64;
                    }
                    Err(_) => {}
                }
            }
            if let Err(errno) = done {
                match errors.iter_mut().find(|known| known.call == call && known.errno == errno) {
                    Some(known) => known.count += 1,
                    None => errors.push(IologFault { call, path: name.to_owned(), errno, count: 1 }),
                }
                if !settings.goes_on_after.iter().any(|of| of.covers(call, errno.raw_os_error())) {
                    break;
                }
            }
        }
        drop(files);
        let elapsed_ns = began.elapsed().as_nanos() as u64;
        let [reads, writes, syncs] = [reads, writes, syncs].map(Counted::transfers);
        IologReport { reads, writes, syncs, elapsed_ns, usage: thread_usage().since(before), errors }
    }
}

#[derive(Default)]
struct Counted {
    bytes: u64,
    latency: Latencies,
}

impl Counted {
    fn transfers(self) -> Transfers {
        let (count, latency) = (self.latency.count, self.latency.histogram());
        Transfers { count, bytes: self.bytes, latency }
    }
}

/// A job's log, of version 3, that is being written.
#[derive(Debug)]
pub struct IologWriter {
    inside: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    file: BufWriter<File>,
    began: Option<Instant>,
    names: HashSet<String>,
    outcome: io::Result<()>,
}

impl IologWriter {
    /// # Errors
    /// Those of writing.
    pub fn new(file: File) -> io::Result<Self> {
        let mut file = BufWriter::new(file);
        writeln!(file, "{VERSION_3}")?;
        Ok(Self { inside: Mutex::new(Written { file, began: None, names: HashSet::new(), outcome: Ok(()) }) })
    }

    /// What is still to be written, written.
    ///
    /// # Errors
    /// The first of all that was written.
    pub fn finish(&self) -> io::Result<()> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut inside.outcome, Ok(())).and_then(|()| inside.file.flush())
    }
}

impl CallLog for IologWriter {
    fn call(&self, file: &str, call: &'static str, part: (u64, u64)) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.outcome.is_ok() {
            inside.outcome = inside.line(file, call, part);
        }
    }
}

impl Written {
    fn line(&mut self, name: &str, call: &str, (offset, length): (u64, u64)) -> io::Result<()> {
        let at_us = self.began.get_or_insert_with(Instant::now).elapsed().as_micros();
        let out = &mut self.file;
        if !self.names.contains(name) {
            if name.contains(char::is_whitespace) {
                let words = format!("the file {name:?} has a blank in its name, and no program reads such a log");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
            }
            writeln!(out, "{at_us} {name} add")?;
            if call != "open" {
                writeln!(out, "{at_us} {name} open")?;
            }
            self.names.insert(name.to_owned());
        }
        match call {
            "open" | "close" => writeln!(out, "{at_us} {name} {call}"),
            _ => writeln!(out, "{at_us} {name} {call} {offset} {length}"),
        }
    }
}

fn pause_until(moment: Instant, cancel: &AtomicBool) {
    while !cancel.load(Ordering::Relaxed) {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(LOOK));
    }
}

/// Where a name leads, if that is below /dev and nothing is there. What is in /dev/shm is a file.
fn missing_device(name: &str) -> Option<PathBuf> {
    let mut path = PathBuf::from(name);
    for _ in 0..LINKS {
        match std::fs::read_link(&path) {
            Ok(link) => path = directory_of(&path).join(link),
            Err(_) => break,
        }
    }
    let path = directory_of(&path).canonicalize().ok()?.join(path.file_name()?);
    let is_device = path.starts_with("/dev") && !path.starts_with("/dev/shm");
    (is_device && !path.exists()).then_some(path)
}

/// Made if it is written and not there, as fio does it; a file that is only read is opened for that alone. Devices and pipes are none of a
/// log's files.
fn opened(name: &str, writes: bool, settings: &IologSettings<'_>) -> Result<File, Errno> {
    let is_regular = |facts: &rustix::fs::Stat| FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile;
    if stat(name).is_ok_and(|facts| !is_regular(&facts)) {
        return Err(Errno::NXIO);
    }
    let mut flags = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    flags.set(OFlags::DIRECT, settings.direct);
    let file = if writes {
        open(name, flags | OFlags::RDWR | OFlags::CREATE, Mode::RUSR | Mode::WUSR)?
    } else {
        open(name, flags | OFlags::RDONLY, Mode::empty())?
    };
    if !is_regular(&rustix::fs::fstat(&file)?) {
        return Err(Errno::NXIO);
    }
    let dropped = settings.invalidate.then_some(Advice::DontNeed);
    for advice in dropped.into_iter().chain(settings.advice) {
        fadvise(&file, 0, None, advice)?;
    }
    Ok(File::from(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str, settings: impl FnOnce(&mut IologSettings<'_>)) -> Result<IologReport, String> {
        let directory = tempfile::tempdir().expect("writable");
        let log = directory.path().join("log");
        let name = |of: &str| directory.path().join(of).display().to_string();
        std::fs::write(name("f"), vec![1; 8192]).expect("writable");
        std::fs::write(&log, text.replace("/f", &name("f")).replace("/g", &name("g"))).expect("writable");
        let cancel = AtomicBool::new(false);
        let mut of = IologSettings {
            no_stall: false,
            percent: 100,
            redirect: None,
            direct: false,
            invalidate: true,
            advice: None,
            goes_on_after: &[],
            cancel: &cancel,
        };
        settings(&mut of);
        Ok(Iolog::read(&log).map_err(|error| error.to_string())?.run(&of))
    }

    use fstone_model::workload::FailedPart;

    const AFTER_ALL: [Tolerated; 3] = [
        Tolerated { part: FailedPart::Read, errno: 5 },
        Tolerated { part: FailedPart::Read, errno: 2 },
        Tolerated { part: FailedPart::Write, errno: 20 },
    ];

    #[test]
    fn a_log_is_carried_out_at_its_times() {
        let log = "fio version 3 iolog\n1 /f add\n2 /f open\n3 /f read 0 8192\n80000 /g write 4096 4096\n80001 /g sync 0 0\n80002 /f close\n";
        let report = run(log, |_| ()).expect("sound");
        assert_eq!((report.reads.count, report.reads.bytes, report.writes.bytes), (1, 8192, 4096));
        assert_eq!((report.syncs.count, report.errors.len()), (1, 0));
        assert!(report.elapsed_ns >= 80_000_000, "{}", report.elapsed_ns);
        assert!(run(log, |of| of.percent = 50).expect("sound").elapsed_ns >= 160_000_000);
        let late = "fio version 3 iolog\n600000000 /f add\n600020000 /f read 0 4096\n";
        assert!((20_000_000..60_000_000_000).contains(&run(late, |_| ()).expect("sound").elapsed_ns));
        for of_two in ["/f wait 60 0\n/f read 0 4096\n/f close\n", "/f read 0 4096\n/f wait 60 0\n"] {
            let of_two = format!("fio version 2 iolog\n/f add\n/f open\n{of_two}");
            let report = run(&of_two, |of| of.percent = 10_000).expect("sound");
            assert!(report.elapsed_ns >= 60_000_000 && report.reads.count == 1, "{of_two}");
        }
    }

    #[test]
    fn a_call_that_moves_less_ends_a_job_as_in_fio() {
        let log = "fio version 2 iolog\n/f open\n/f read 4096 8192\n/f read 0 4096\n";
        let report = run(log, |_| ()).expect("sound");
        assert_eq!((report.reads.count, report.errors[0].count, report.errors[0].errno), (0, 1, Errno::IO));
        let report = run(log, |of| of.goes_on_after = &AFTER_ALL).expect("sound");
        assert_eq!((report.reads.count, report.errors[0].count), (1, 1));
    }

    #[test]
    fn calls_that_fail_are_counted_as_errors_alone() {
        let behind = "/f read 8192 4096\n/g read 0 4096\n".repeat(500);
        let log = format!("fio version 2 iolog\n/f open\n/f read 0 4096\n{behind}/f/none sync 0 0\n");
        let report = run(&log, |of| of.goes_on_after = &AFTER_ALL).expect("sound");
        assert_eq!((report.reads.count, report.reads.bytes, report.reads.latency.count()), (1, 4096, 1));
        let errors: Vec<_> = report.errors.iter().map(|error| (error.call, error.errno, error.count)).collect();
        assert_eq!(errors, [("read", Errno::IO, 500), ("read", Errno::NOENT, 500), ("fsync", Errno::NOTDIR, 1)]);
    }

    #[test]
    fn what_is_not_carried_out_is_refused() {
        for (text, why) in [
            ("\x07a blktrace", "no log of fio's"),
            ("fio version 3 iolog\n1 /f read 0\n", "line 2"),
            ("fio version 3 iolog\n1 /f open\nfio version 3 iolog\n", "give each job a log of its own"),
            ("fio version 2 iolog\n/f trim 0 4096\n", "line 2 is a trim"),
            ("fio version 2 iolog\n/f read 0 4000000000\n", "line 2 moves more"),
        ] {
            let error = run(text, |_| ()).expect_err(text);
            assert!(error.contains(why), "{error}");
        }
        let report = run("fio version 2 iolog\n/dev/null open\n/dev/null write 0 4096\n", |_| ()).expect("sound");
        assert_eq!((report.writes.count, report.errors[0].errno), (0, Errno::NXIO));
    }
}
