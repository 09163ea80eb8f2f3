//! Records a program as it runs: seccomp(2) stops it at calls that touch files, ptrace(2) shows the calls, and nothing needs root.

mod decode;
mod filter;
mod preload;
mod processors;
mod ptrace;
mod tables;

pub(crate) use decode::{FICLONE, FICLONERANGE};
pub use ptrace::is_ignored;
pub(crate) use tables::{Roots, descriptor, joined, normal, top_name};

use crate::call::{ACL_BYTES, Call, End, Entry, IMPLICIT, INHERITED, Kind, Node, Start, TIMED_OUT, mode_of_acl};
use crate::file::Writer;
use crate::tree::{self, Walk};
use decode::{Asked, What, decode};
use libc::pid_t;
use preload::{Event, Happened, Pointed, Preload, Until};
use processors::{Account, DECIDED_NS, Processors, Usage};
use ptrace::{Called, EVENT_STOP, Resume, Stop, Task, Ticks, Waited};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::CString;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tables::{Descriptors, OpenFile, Root, Slot};

/// Calls of the process that shows what recording costs. Each takes up to 0.1 ms, and medians of more differ as much from run to run.
const CALIBRATION: u32 = 100;
/// Calls that show what one takes without that.
const BARE_CALLS: u32 = 1000;
/// What is left of a thread's activity at each decision: half after 14 of them.
const FADING: f64 = 0.95;
/// A thread that is active for so much of the most active one's time counts whole: threads that take turns are waited for one after another.
const COUNTS_WHOLE: f64 = 0.1;
/// A wait that is longer, with what recording cost others meanwhile, is one for another thread, if one was at work. What is shorter is no
/// more than what is not known of a stop.
const WAIT_NS: u64 = 10_000;
/// How many threads a wait may have been for: as many as may be at work at once, and some.
const MOST_AT_WORK: usize = 16;
/// What is left at each wait of how often a thread was at work at the end of another's waits, and what is as good as never.
const FORGETTING: f64 = 0.9;
const RARE: f64 = 0.001;
const MOST_NAME: usize = 4096;
/// Of the name of an attribute, with its end.
const MOST_ATTRIBUTE: usize = 256;
/// Of a socket's name, whose end the kernel does not ask for.
const MOST_SOCKET: usize = 108;
/// A directory of the top for what is renamed into the recorded directories, or out; with a number behind it, if the tree has one.
const ELSEWHERE: &str = ".fstone-elsewhere";
/// What a call returns inside the kernel that will be made again, or, after a signal's handler, fails with EINTR.
const AGAIN: std::ops::RangeInclusive<i64> = -516..=-512;
/// What a program says is left of a wait may be what was left so long ago: until then its signal's handler ran.
const RECKONED_NS: u64 = 100_000_000;
const INTERRUPTED: i64 = -(libc::EINTR as i64);
/// Of the command line, what is kept.
const MOST_COMMAND: usize = 64 << 10;
/// A stop takes the tracer a tenth of this to answer, unless it waits for a processor.
const LONG_NS: u64 = 100_000;
/// How often a wait is interrupted, to look whether the recording is to end, to write what there is, and to share processors.
const TICK_NS: i64 = DECIDED_NS as i64;
/// A block is written when it is so old: with a tick, within a second.
const FLUSH_NS: u64 = 500_000_000;
/// A program that was asked to end has so long before it is asked with a stronger signal, and at last killed.
const GRACE_NS: u64 = 5_000_000_000;
/// A signal for the whole process group has come to all of it by then.
const ARRIVED_NS: u64 = 100_000_000;
/// And so long before the tracer knew of its own, it was the same.
const SAME_NS: u64 = 1_000_000_000;
/// What ends recordings.
const ENDING: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot record {path}: {cause}", path = .path.display())]
    Root { path: PathBuf, cause: io::Error },
    #[error("cannot trace a process: {cause}; a container may forbid ptrace(2) or seccomp(2)")]
    Trace { cause: io::Error },
    #[error("cannot join process {process}: {cause}{}", if cause.kind() == io::ErrorKind::PermissionDenied {
        "; it is another user's, or has a tracer, or /proc/sys/kernel/yama/ptrace_scope forbids it: try as root"
    } else {
        ""
    })]
    Join { process: i32, cause: io::Error },
    #[error("cannot start {program}")]
    Program { program: String },
    #[error("a signal came while the files were listed, before the program")]
    Cancelled,
    #[error("a word of the command has a zero byte")]
    Word,
    #[error("cannot write the recording: {cause}; what was written is good to its last whole block")]
    Write { cause: io::Error },
}

pub struct Recorded {
    pub calls: u64,
    pub bytes: u64,
    /// As wait(2) has it.
    pub status: i32,
    /// What recording added to each call and to the time after it.
    pub overhead_ns: [u64; 2],
    pub bare_ns: u64,
    /// From the start of the program to the end of its last process.
    pub elapsed_ns: u64,
    /// How much of that the tracer was at work.
    pub busy_ns: u64,
    /// How often a thread was stopped, and how often while the tracer was at work for another: the moment of such a stop is known to
    /// `uncertain_ns` before or after, on average.
    pub stops: u64,
    pub meanwhile: u64,
    pub uncertain_ns: u64,
    /// Threads of which it is not known when they ran, because the limit of open files has no room for it.
    pub unaccounted: u64,
}

pub struct Wanted<'a> {
    pub command: &'a [Vec<u8>],
    /// A process that runs already, in place of a command.
    pub process: Option<i32>,
    /// The directories whose files count.
    pub under: &'a [PathBuf],
    /// Record a hash in place of each part of a name.
    pub hash_names: bool,
    /// Measure how well what is written compresses.
    pub data_entropy: bool,
    /// A signal's number, set from outside, ends the program: with that signal, unless it has come to the program as well, as from a
    /// terminal; some seconds later with SIGTERM, and then SIGKILL. Of a process that ran before it ends the recording only.
    pub cancel: &'a AtomicI32,
}

/// Runs a command, or joins a process that runs, and records it. Returns when the last of its processes has ended. A process that still
/// runs goes on when the caller's ends.
///
/// # Errors
/// If it cannot be traced or started, or the recording cannot be written.
pub fn record(wanted: &Wanted<'_>, out: File) -> Result<Recorded, RecordError> {
    let words: Vec<CString> = wanted
        .command
        .iter()
        .map(|word| CString::new(word.as_slice()))
        .collect::<Result<_, _>>()
        .map_err(|_| RecordError::Word)?;
    let roots = real_roots(wanted.under)?;
    let filter = filter::program();
    let preload = if wanted.process.is_none() && !wanted.data_entropy { Preload::new() } else { None };
    let bare_ns = bare();
    // What a stop costs depends on whether it wakes another processor.
    let apart = calibrated(&filter, bare_ns, Processors::as_they_are())?;
    let shared = calibrated(&filter, bare_ns, Processors::of_tracer())?;
    let overhead_ns = (if wanted.process.is_some() { apart } else { shared }).map(|cost| cost.wall_ns);
    let secret = wanted.hash_names.then(RandomState::new);
    let system = rustix::system::uname();
    let start = Start {
        architecture: system.machine().to_string_lossy().into_owned(),
        kernel: system.release().to_string_lossy().into_owned(),
        command: if wanted.hash_names { Vec::new() } else { shortened(wanted.command) },
        roots: roots.iter().map(|(_, real)| hashed(real, secret.as_ref())).collect(),
        given: roots.iter().map(|(given, _)| hashed(given, secret.as_ref())).collect(),
        began_unix_ns: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64),
        hashed: wanted.hash_names,
        overhead_ns,
        bare_ns,
        unknown: Vec::new(),
    };
    let write = |cause| RecordError::Write { cause };
    let facts = out.metadata().map_err(write)?;
    let own = std::fs::read_link(format!("/proc/self/fd/{}", out.as_raw_fd())).map_err(write)?;
    let mut writer = Writer::new(BufWriter::with_capacity(0, out), start).map_err(write)?;
    let paths: Vec<PathBuf> =
        roots.iter().map(|(_, real)| Path::new(std::ffi::OsStr::from_bytes(real)).to_owned()).collect();
    let trace = |cause| RecordError::Trace { cause };
    // The tree is read while it stands still.
    let attached = wanted
        .process
        .map(|process| ptrace::attach(process).map_err(|cause| RecordError::Join { process, cause }))
        .transpose()?;
    let mut walk = Walk { leave_out: (facts.dev(), facts.ino()), cancel: Some(wanted.cancel), ..Walk::default() };
    tree::walk(&paths, &mut walk, &mut |entry| writer.entry(hashed_entry(entry, secret.as_ref()))).map_err(
        |cause| {
            let is_cancelled = cause.kind() == io::ErrorKind::Interrupted && wanted.cancel.load(Ordering::Relaxed) != 0;
            if is_cancelled { RecordError::Cancelled } else { write(cause) }
        },
    )?;
    writer.flush().map_err(write)?;
    let mut tracer = Tracer::new(
        Roots::new(&roots).except(own.as_os_str().as_bytes()).without(&walk.made_up),
        [apart, shared],
        if wanted.process.is_some() { Processors::as_they_are() } else { Processors::of_tracer() },
        secret,
        Some(writer),
    );
    tracer.measures_data = wanted.data_entropy;
    tracer.library = preload.as_ref().map(|preload| preload.name().into_bytes());
    tracer.preload = preload;
    let is_free = |name: &String| !paths.iter().any(|path| path.join(name).symlink_metadata().is_ok());
    let numbered = (1u32..).map(|number| format!("{ELSEWHERE}-{number}"));
    tracer.elsewhere = [ELSEWHERE.to_owned()].into_iter().chain(numbered).find(is_free).unwrap_or_default();
    let first = match (&attached, wanted.process) {
        (Some(threads), Some(process)) => {
            (tracer.stops_at_all, tracer.began) = (true, true);
            tracer.add(process, None, 0);
            let shared = libc::CLONE_FILES as u32;
            threads
                .iter()
                .filter(|thread| **thread != process)
                .for_each(|thread| _ = tracer.add(*thread, Some(process), shared));
            process
        }
        _ => {
            let first = ptrace::start(&Task::Run(&words), &filter).map_err(trace)?;
            tracer.add(first, None, 0);
            first
        }
    };
    let ticks = Ticks::every(TICK_NS).map_err(trace)?;
    let status = tracer.follow(first, Some(wanted.cancel));
    drop(ticks);
    if !tracer.began {
        return Err(RecordError::Program { program: words[0].to_string_lossy().into_owned() });
    }
    let elapsed_ns = tracer.now();
    if let Some(cause) = tracer.failed.take() {
        return Err(write(cause));
    }
    let writer = tracer.writer.take().expect("it has not failed");
    let calls = writer.calls;
    let (_, bytes) = writer.finish(End { at_ns: elapsed_ns, status }).map_err(write)?;
    let Tracer { stops, meanwhile, uncertain_ns, unaccounted, idle_ns, taken, .. } = tracer;
    let overhead_ns = taken.map(|[sum_ns, count]| sum_ns / count.max(1));
    let uncertain_ns = uncertain_ns / meanwhile.max(1);
    let busy_ns = elapsed_ns.saturating_sub(idle_ns);
    Ok(Recorded {
        calls,
        bytes,
        status,
        overhead_ns,
        bare_ns,
        elapsed_ns,
        busy_ns,
        stops,
        meanwhile,
        uncertain_ns,
        unaccounted,
    })
}

/// The words of a command, as many as are kept.
fn shortened(command: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut left = MOST_COMMAND;
    let fits = |word: &&Vec<u8>| {
        left = left.saturating_sub(word.len() + 1);
        left > 0
    };
    command.iter().take_while(fits).cloned().collect()
}

/// Each root as an absolute path, as it was given and without links. One below another is part of that.
fn real_roots(under: &[PathBuf]) -> Result<Vec<Root>, RecordError> {
    let mut roots: Vec<Root> = Vec::new();
    for path in under {
        let failed = |cause| RecordError::Root { path: path.clone(), cause };
        let given = std::path::absolute(path).map_err(failed)?;
        let real = path.canonicalize().map_err(failed)?;
        if !real.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        roots.push((given.as_os_str().as_bytes().to_vec(), real.as_os_str().as_bytes().to_vec()));
    }
    let is_below = |path: &[u8], root: &[u8]| {
        path != root && Path::new(std::ffi::OsStr::from_bytes(path)).starts_with(std::ffi::OsStr::from_bytes(root))
    };
    let all = roots.clone();
    roots.retain(|(_, real)| !all.iter().any(|(_, other)| is_below(real, other)));
    roots.dedup_by(|one, other| one.1 == other.1);
    Ok(roots)
}

/// What a call takes without a tracer.
fn bare() -> u64 {
    // As robust as what it is taken from: on a busy machine the mean of all can be many times what a call takes.
    const PART: u32 = BARE_CALLS / 100;
    let mut parts: Vec<u64> = (0..BARE_CALLS / PART)
        .map(|_| {
            let began = Instant::now();
            ptrace::idle(PART);
            began.elapsed().as_nanos() as u64 / u64::from(PART)
        })
        .collect();
    parts.sort_unstable();
    parts[parts.len() / 2]
}

/// The overhead of a call and of the time after it.
fn calibrated(filter: &[libc::sock_filter], bare_ns: u64, processors: Processors) -> Result<[Spent; 2], RecordError> {
    let first = ptrace::start(&Task::Idle(CALIBRATION), filter).map_err(|cause| RecordError::Trace { cause })?;
    let mut tracer = Tracer::new(Roots::new(&[]), Default::default(), processors, None, None);
    tracer.samples = Some(Vec::new());
    tracer.add(first, None, 0);
    tracer.follow(first, None);
    let samples = tracer.samples.take().unwrap_or_default();
    if samples.len() < CALIBRATION as usize / 2 {
        return Err(RecordError::Trace { cause: io::Error::other("the kernel did not stop a process at its calls") });
    }
    let median = |of: &dyn Fn(&[Spent; 2]) -> u64| {
        let mut values: Vec<u64> = samples.iter().map(of).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    Ok([0, 1].map(|which| {
        let alone_ns = if which == 0 { bare_ns } else { 0 };
        Spent {
            wall_ns: median(&|sample| sample[which].wall_ns).saturating_sub(alone_ns),
            usage: Usage {
                ran_ns: median(&|sample| sample[which].usage.ran_ns).saturating_sub(alone_ns),
                delayed_ns: median(&|sample| sample[which].usage.delayed_ns),
            },
        }
    }))
}

/// An absolute path without links; its last part may be one that is not followed.
fn without_links(path: &[u8], follow: bool) -> Option<Vec<u8>> {
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    let followed = if follow { path.canonicalize().ok() } else { None };
    // It may have been removed since, or is not there yet.
    let whole = followed.or_else(|| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?)))?;
    Some(whole.into_os_string().into_vec())
}

/// Of a call that changes a file or what a name stands for: whether it follows a link that is the last part of that name.
fn changes_through(call: &Call, second: bool) -> Option<bool> {
    let has = |flag: i32| call.flags & flag as u32 != 0;
    match call.kind {
        Kind::Mkdir | Kind::Rmdir | Kind::Unlink | Kind::Rename | Kind::Symlink | Kind::Mknod => Some(false),
        Kind::Link => Some(!second && has(libc::AT_SYMLINK_FOLLOW)),
        Kind::Truncate => Some(true),
        Kind::Chmod | Kind::Chown | Kind::Utimens | Kind::Setxattr | Kind::Removexattr => {
            Some(!has(libc::AT_SYMLINK_NOFOLLOW))
        }
        _ => None,
    }
}

/// Each part of a path replaced by a hash, if there is a secret.
fn hashed(path: &[u8], secret: Option<&RandomState>) -> Vec<u8> {
    let Some(secret) = secret else { return path.to_vec() };
    let of = |part: &[u8]| match part {
        b"" | b"." | b".." => part.to_vec(),
        part => format!("{:016x}", secret.hash_one(part)).into_bytes(),
    };
    path.split(|byte| *byte == b'/').map(of).collect::<Vec<_>>().join(&b'/')
}

fn hashed_entry(mut entry: Entry, secret: Option<&RandomState>) -> Entry {
    entry.path = hashed(&entry.path, secret);
    if let Node::Link { target: name } | Node::Name { of: name } = &mut entry.node {
        *name = hashed(name, secret);
    }
    entry
}

/// What a thread had of the time between two stops.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    wall_ns: u64,
    usage: Usage,
}

/// What all threads have done until now.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// What recording cost them: in stops, on the way to the tracer and back, and while they waited for a processor because of it.
    lost_ns: u64,
    /// That, and for how long they ran or were in calls about files.
    active_ns: u64,
    /// For how long the tracer was at work.
    worked_ns: u64,
}

impl Sums {
    fn add(&mut self, weight: f64, lost_ns: u64, active_ns: u64) {
        self.lost_ns += (weight * lost_ns as f64) as u64;
        self.active_ns += (weight * (lost_ns + active_ns) as f64) as u64;
    }
}

struct Thread {
    number: u32,
    descriptors: Descriptors,
    pending: Option<Pending>,
    /// No other has its memory or its descriptors.
    is_alone: bool,
    /// Requests of io_uring may close its descriptors, and make others.
    has_ring: bool,
    interrupted: Option<Interrupted>,
    /// Its working directory and its root, if they are known.
    directories: [Option<Vec<u8>>; 2],
    umask: Option<u16>,
    /// It recorded calls itself since it last stopped: its account is of those too.
    kept: bool,
    account: Account,
    /// Since it went on.
    usage: Usage,
    /// As they were when it went on.
    sums: Sums,
    /// For how long it ran or was in calls about files; what is long ago counts less and less. Unknown before it stops.
    active_ns: Option<f64>,
    /// That beside the most active thread's: one that hardly runs keeps nobody waiting while it is stopped.
    weight: f64,
    stopped_ns: Option<u64>,
    /// When it last went on; at first later than any time.
    resumed_ns: u64,
    /// For how long it ran since it last made or ended a call, without what stops cost.
    ran_ns: u64,
    think_ns: u64,
    /// How often threads were at work when a wait ended, by number; what is long ago counts less and less.
    wakers: HashMap<u32, f64>,
}

impl Thread {
    fn ran(&mut self, ns: u64) {
        self.ran_ns += ns;
        self.interrupted.iter_mut().for_each(|interrupted| interrupted.counted_ns += ns);
    }

    /// From now on it shares its descriptors with no other.
    fn own_descriptors(&mut self) -> Descriptors {
        if Rc::strong_count(&self.descriptors) > 1 {
            let own = self.descriptors.borrow().clone();
            self.descriptors = Rc::new(RefCell::new(own));
        }
        self.descriptors.clone()
    }
}

/// A sleep or a wait that a signal has interrupted, until another begins. That one may be what is left of it: until a moment, or for as long
/// as the program, libc or the kernel knows to be left. What recording costs between the two is then no time that the program gains.
struct Interrupted {
    asked: Asked,
    since_ns: u64,
    /// How long it was to take at most; 0 for one without an end.
    most_ns: u64,
    /// How much of the thread's time since then is in the recording.
    counted_ns: u64,
    /// The thread has made no other call since.
    is_last: bool,
}

impl Interrupted {
    /// How much of the thread's time is missing in the recording when a wait begins that may take so long.
    fn missing_ns(&self, asked: &Asked, most_ns: u64, now: u64) -> u64 {
        let passed_ns = now.saturating_sub(self.since_ns);
        let waited_ns = self.most_ns.checked_sub(most_ns).filter(|_| asked.what == self.asked.what);
        let waited_ns = match waited_ns {
            // A timer's signals come by the clock.
            Some(0) if self.is_last => passed_ns,
            Some(waited_ns) if waited_ns.abs_diff(passed_ns) >= RECKONED_NS => 0,
            // In whole milliseconds it is the program that has read a clock, and has rounded.
            Some(waited_ns) if asked.pointer == 0 && (waited_ns > 0 || passed_ns < 1_000_000) => passed_ns,
            waited_ns => waited_ns.unwrap_or(0).min(passed_ns),
        };
        waited_ns.saturating_sub(self.counted_ns)
    }

    /// What restart_syscall(2) goes on with.
    fn rest(&self, now: u64) -> Asked {
        let length = self.most_ns.saturating_sub(now.saturating_sub(self.since_ns));
        Asked { pointer: 0, length, flags: 0, ..self.asked }
    }
}

/// Whether a wait that returns this was ended by a signal.
fn is_interrupted(result: i64) -> bool {
    result == INTERRUPTED || AGAIN.contains(&result)
}

/// A stop of which the tracer knows, and which it has not answered.
struct Noticed {
    stop: Stop,
    /// The thread stopped between these. They are equal if the tracer was waiting for it.
    from_ns: u64,
    to_ns: u64,
    /// Whatever the wait for a processor may have taken, not after this.
    seen_ns: u64,
}

/// A call between its beginning and its end.
struct Pending {
    asked: Asked,
    call: Call,
    at: Option<Named>,
    to: Option<Named>,
    text: Option<Vec<u8>>,
    /// The absolute path of what is opened.
    path: Vec<u8>,
    /// And of what something is renamed to.
    new_path: Vec<u8>,
    /// Not about a file of the roots; the name is for a message.
    outside: Option<Option<Vec<u8>>>,
    /// Its descriptor is of nothing, as if it had been closed before.
    is_lost: bool,
}

impl Pending {
    /// It may wait for another thread: a call about a pipe or a process, and none about a file, and no sleep.
    fn may_wait(&self) -> bool {
        self.outside.is_some() || self.call.kind.is_of_threads() || matches!(self.asked.what, What::Limited(_))
    }

    /// Of a file elsewhere nothing is to be known of such a call's end: it waits for no other thread, and its result changes nothing.
    fn ends_unseen(&self) -> bool {
        let tells_only = matches!(
            self.call.kind,
            Kind::Close
                | Kind::Map
                | Kind::Seek
                | Kind::Fstat
                | Kind::Stat
                | Kind::Access
                | Kind::Readlink
                | Kind::Getdents
        );
        tells_only && matches!(self.asked.what, What::Call(_)) && !self.is_lost
    }

    /// Of a thread that has stopped.
    fn sleeps(&self, thread: pid_t) -> bool {
        let result = || ptrace::result(thread);
        match self.asked.what {
            What::Sleep => true,
            // A signal of another thread, or of a child that has ended, ends the wait for it.
            What::Limited(over) => result().is_some_and(|result| {
                result == over || is_interrupted(result) && !ptrace::has_signal_of_others(thread)
            }),
            // A socket whose limit of time is over (SO_RCVTIMEO).
            What::Call(kind) if self.outside.is_some() && (kind.reads() || kind.writes()) => {
                result() == Some(-i64::from(libc::EAGAIN))
            }
            _ => false,
        }
    }
}

/// A place whose name is not yet in a block.
struct Named {
    base: u32,
    name: Vec<u8>,
}

struct Tracer {
    began_at: Instant,
    roots: Roots,
    /// With the program on processors of its own, and on the tracer's.
    overhead: [[Spent; 2]; 2],
    /// What was taken out of calls and of the time after them, and how often.
    taken: [[u64; 2]; 2],
    processors: Processors,
    /// The tracer's own.
    account: Account,
    most_accounts: usize,
    unaccounted: u64,
    /// Of all threads and of the tracer since it was decided whether they share a processor, and when that was.
    usage: [Usage; 2],
    decided_ns: u64,
    /// The thread that asks for its processors, and has all of them until it knows.
    asking: HashSet<pid_t>,
    sums: Sums,
    /// The threads that were at work last, the latest first: their numbers, and when they stopped.
    at_work: VecDeque<(pid_t, u32, u64)>,
    /// How many calls of each thread the recording has, by number.
    written: Vec<u64>,
    secret: Option<RandomState>,
    writer: Option<Writer<BufWriter<File>>>,
    failed: Option<io::Error>,
    threads: HashMap<pid_t, Thread>,
    /// Threads that stopped before the call that made them.
    early: HashSet<pid_t>,
    numbers: HashMap<pid_t, u32>,
    last_thread: u32,
    last_file: u32,
    /// How much was renamed into the recorded directories, or out, and the directory of the top for it.
    moved: u32,
    elsewhere: String,
    measures_data: bool,
    preload: Option<Preload>,
    /// Its name, which is none of the program's.
    library: Option<Vec<u8>>,
    /// Calls that a program has recorded the beginning of.
    kept: HashMap<(pid_t, u64), Pending>,
    /// What is known of a thread's memory as it was at a call that is over.
    pointed: Option<Pointed>,
    began: bool,
    /// It has no filter: it ran before.
    stops_at_all: bool,
    stops: u64,
    meanwhile: u64,
    uncertain_ns: u64,
    idle_ns: u64,
    /// When a thread last went on.
    resumed_ns: u64,
    /// When the tracer's account was last read.
    accounted_ns: u64,
    flushed_ns: u64,
    /// The signal that the program is sent next so that it ends, and when; and the last thread there was when the first came.
    ending: Option<(i32, u64, u32)>,
    /// When such signals last came to each process, whoever has sent them.
    came: HashMap<(pid_t, i32), u64>,
    /// Times of calls and between them, for the calibration.
    samples: Option<Vec<[Spent; 2]>>,
}

impl Tracer {
    fn new(
        roots: Roots,
        overhead: [[Spent; 2]; 2],
        mut processors: Processors,
        secret: Option<RandomState>,
        writer: Option<Writer<BufWriter<File>>>,
    ) -> Self {
        processors.share(true, std::iter::empty());
        Self {
            began_at: Instant::now(),
            roots,
            overhead,
            taken: [[0; 2]; 2],
            processors,
            account: Account::own(),
            most_accounts: Account::most(),
            unaccounted: 0,
            usage: Default::default(),
            decided_ns: 0,
            asking: HashSet::new(),
            sums: Sums::default(),
            at_work: VecDeque::new(),
            written: Vec::new(),
            secret,
            writer,
            failed: None,
            threads: HashMap::new(),
            early: HashSet::new(),
            numbers: HashMap::new(),
            last_thread: 0,
            last_file: 0,
            moved: 0,
            elsewhere: String::new(),
            measures_data: false,
            preload: None,
            library: None,
            kept: HashMap::new(),
            pointed: None,
            began: false,
            stops_at_all: false,
            stops: 0,
            meanwhile: 0,
            uncertain_ns: 0,
            idle_ns: 0,
            resumed_ns: 0,
            accounted_ns: 0,
            flushed_ns: 0,
            ending: None,
            came: HashMap::new(),
            samples: None,
        }
    }

    fn now(&self) -> u64 {
        self.began_at.elapsed().as_nanos() as u64
    }

    /// Until no thread is left. Returns how the first process ended.
    ///
    /// Threads stop while the tracer is at work for others. After each stop that it answers it looks which others have come, so that
    /// the moment of a stop is known to the time that one answer takes, however long it then waits for its own.
    fn follow(&mut self, first: pid_t, cancel: Option<&AtomicI32>) -> i32 {
        let mut status = 0;
        let mut stopped: VecDeque<Noticed> = VecDeque::new();
        let mut looked_ns = self.now();
        loop {
            let block = stopped.is_empty();
            let before_ns = if block { self.now() } else { 0 };
            let waited = ptrace::wait(block);
            let now = self.now();
            let mut to_ns = now;
            if block {
                // The tracer may have waited for a processor itself, often from the moment when it let another thread go on.
                let delayed_ns = self.look_at_own(now);
                to_ns = now.saturating_sub(delayed_ns).max(self.resumed_ns).min(now);
                self.idle_ns += to_ns.saturating_sub(before_ns);
                // Had another stopped before this one, the wait would have ended.
                looked_ns = to_ns;
            }
            match waited {
                Waited::Stop(stop) => {
                    stopped.push_back(Noticed { stop, from_ns: looked_ns, to_ns, seen_ns: now });
                    continue;
                }
                Waited::NoneLeft if block => return status,
                Waited::Nothing | Waited::NoneLeft => looked_ns = now,
            }
            if self.stops_at_all && cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed) != 0) {
                return 0;
            }
            self.look_after(now, &stopped, cancel);
            let Some(noticed) = stopped.pop_front() else { continue };
            let stop = noticed.stop;
            self.catch_up(Some(stop.thread), Until { ns: noticed.to_ns, ..Until::default() });
            let stopped_ns = self.account(&noticed);
            if noticed.to_ns < noticed.seen_ns {
                // What that cost is no part of the time until the stop.
                self.catch_up(Some(stop.thread), self.needed(&noticed));
            }
            if libc::WIFSTOPPED(stop.status) {
                self.stopped(stop, stopped_ns);
            } else {
                self.ended(stop.thread, stopped_ns);
                if stop.thread == first {
                    status = stop.status;
                }
                self.adopt(now);
                // Not until no child is left: this process may have had some before.
                if self.threads.is_empty() && stopped.is_empty() && !ptrace::has_tracees() {
                    return status;
                }
            }
        }
    }

    /// Until when other threads' calls come before what a thread has stopped at.
    ///
    /// When it stopped is not known exactly. Before a call it may use what others did until then, and has done nothing itself. After a call
    /// others may have seen what that did, but the descriptor that it got was free: what has closed that came before.
    fn needed(&self, Noticed { stop, to_ns, seen_ns, .. }: &Noticed) -> Until {
        let is_after = libc::WIFSTOPPED(stop.status) && stop.status >> 8 == libc::SIGTRAP | 0x80;
        let pending = self.threads.get(&stop.thread).and_then(|state| state.pending.as_ref()).filter(|_| is_after);
        let Some(pending) = pending else { return Until { ns: *seen_ns, ..Until::default() } };
        let makes = match pending.asked.what {
            What::Call(kind) => matches!(kind, Kind::Open | Kind::OpenByHandle),
            what => what == What::Duplicate,
        };
        let is_used = makes && self.preload.as_ref().is_some_and(Preload::are_used);
        let made = if is_used { ptrace::result(stop.thread).filter(|made| *made >= 0) } else { None };
        Until { ns: *to_ns, closed: made.map(|made| (stop.thread, made as u64)), seen_ns: *seen_ns }
    }

    /// Writes what is old, and ends the program if that is wanted.
    fn look_after(&mut self, now: u64, stopped: &VecDeque<Noticed>, cancel: Option<&AtomicI32>) {
        if now.saturating_sub(self.flushed_ns) > FLUSH_NS {
            self.flushed_ns = now;
            let flushed = self.writer.as_mut().map_or(Ok(()), Writer::flush);
            self.lost_if(flushed);
        }
        if now.saturating_sub(self.decided_ns) >= DECIDED_NS {
            let until_ns = stopped.front().map_or(now, |noticed| noticed.from_ns);
            self.catch_up(None, Until { ns: until_ns, ..Until::default() });
            self.decide(now);
        }
        if let Some(signal) = cancel.map(|cancel| cancel.load(Ordering::Relaxed)).filter(|signal| *signal != 0) {
            self.end(signal, now, stopped);
        }
    }

    /// Asks the program to end, with one signal after the other.
    fn end(&mut self, signal: i32, now: u64, stopped: &VecDeque<Noticed>) {
        let (next, due_ns, last) = *self.ending.get_or_insert((signal, now + ARRIVED_NS, self.last_thread));
        if now < due_ns {
            return;
        }
        let stronger = if matches!(next, libc::SIGINT | libc::SIGHUP) { libc::SIGTERM } else { libc::SIGKILL };
        self.ending = Some((stronger, now + GRACE_NS, last));
        // The number of one that has ended may be another's by now.
        let ended = |thread: pid_t| {
            stopped.iter().any(|Noticed { stop, .. }| stop.thread == thread && !libc::WIFSTOPPED(stop.status))
        };
        let since_ns = now.saturating_sub(ARRIVED_NS + SAME_NS);
        let has_come = |ns: &u64| *ns >= since_ns;
        let came = self.came.iter().any(|((_, of), ns)| *of == signal && has_come(ns));
        // What was begun since then is of those that got the first one: it is how they end.
        let is_meant = |thread: &pid_t| {
            next != signal || !came || self.threads.get(thread).is_some_and(|state| state.number <= last)
        };
        let all = self.threads.keys().chain(&self.early).copied().filter(is_meant);
        let mut processes: HashSet<pid_t> =
            all.filter(|thread| !ended(*thread)).map(|thread| tables::process(thread).unwrap_or(thread)).collect();
        if next == signal {
            // Twice it would end the program in the middle of what it does at the end.
            let has_it = |process: &pid_t| self.came.get(&(*process, signal)).is_some_and(has_come);
            processes.retain(|process| !has_it(process));
        }
        processes.into_iter().for_each(|process| ptrace::send(process, next));
    }

    /// Most programs have one thread that runs, and others that wait for what it does: then one processor is enough.
    fn decide(&mut self, now: u64) {
        self.asking.retain(|asking| self.threads.contains_key(asking));
        if !self.asking.is_empty() {
            return;
        }
        let mut all_known = true;
        let most_ns = self.threads.values().filter_map(|state| state.active_ns).fold(1.0, f64::max);
        for state in self.threads.values_mut() {
            if let Some(active_ns) = &mut state.active_ns {
                state.weight = (*active_ns / most_ns / COUNTS_WHOLE).min(1.0);
                *active_ns *= FADING;
            }
            all_known &= state.account.is_kept();
            let usage = state.account.since();
            state.usage += usage;
            self.usage[0] += usage;
        }
        let [program, tracer] = std::mem::take(&mut self.usage);
        let time_ns = now.saturating_sub(std::mem::replace(&mut self.decided_ns, now));
        let shared = self.threads.len() <= 1 || all_known && self.processors.is_enough(program, tracer, time_ns);
        self.share(shared);
    }

    /// For how long the tracer waited for a processor since this was asked last.
    fn look_at_own(&mut self, now: u64) -> u64 {
        let usage = self.account.since();
        self.usage[1] += usage;
        self.accounted_ns = now;
        usage.delayed_ns
    }

    /// A call is about a thread's processors: until its end they are all that it has without a tracer.
    fn asks(&mut self, thread: pid_t) -> bool {
        let changes = self.processors.shared || !self.asking.is_empty();
        if changes {
            self.asking.insert(thread);
            self.share(false);
        }
        changes
    }

    fn share(&mut self, shared: bool) {
        self.processors.share(shared, self.threads.keys().chain(&self.early).copied());
    }

    /// Adds the time that a thread spent until it stopped, without what recording cost; returns when that was.
    ///
    /// Its own stop cost what was measured at the start, and as long as it waited for a processor because of the tracer; what the kernel says
    /// that it ran is not less than it needed. Where it may have waited for other threads, what recording cost *them* meanwhile made the wait
    /// longer: time passes for a thread that waits as it does for those that run. If several of them ran at once, each cost delays some
    /// of what is waited for, so that the costs of all are divided by how many there were on average. Each counts by how active its
    /// thread is.
    fn account(&mut self, Noticed { stop, from_ns, to_ns, .. }: &Noticed) -> u64 {
        self.stops += 1;
        let Some(state) = self.threads.get_mut(&stop.thread) else { return *to_ns };
        let from_ns = (*from_ns).max(state.resumed_ns).min(*to_ns);
        let half_ns = to_ns.saturating_sub(from_ns) / 2;
        let stopped_ns = from_ns + half_ns;
        let wall_ns = stopped_ns.saturating_sub(state.resumed_ns);
        let last = state.account.since();
        self.usage[0] += last;
        state.usage += last;
        let mut usage = std::mem::take(&mut state.usage);
        if std::mem::take(&mut state.kept) {
            usage = Usage::default();
        }
        if let Some(samples) = &mut self.samples {
            let spent = Spent { wall_ns, usage };
            match &state.pending {
                None => samples.push([Spent::default(), spent]),
                Some(_) => samples.last_mut().into_iter().for_each(|last| last[0] = spent),
            }
        }
        let which = usize::from(state.pending.is_none());
        let cost = self.overhead[usize::from(self.processors.shared)][which];
        let mut cost_ns = cost.wall_ns;
        if half_ns > 0 {
            // The tracer did not have to wake up, which is about half of what a stop costs.
            cost_ns /= 2;
            (self.meanwhile, self.uncertain_ns) = (self.meanwhile + 1, self.uncertain_ns + half_ns);
        }
        self.taken[which] = [self.taken[which][0] + cost_ns, self.taken[which][1] + 1];
        let worked_ns = to_ns.saturating_sub(self.idle_ns).saturating_sub(state.sums.worked_ns);
        let mut delayed_ns = usage.delayed_ns.saturating_sub(cost.usage.delayed_ns);
        if !self.processors.shared {
            // Threads wait for processors without a tracer as well.
            delayed_ns = delayed_ns.min(worked_ns);
        }
        let ran_ns = usage.ran_ns.saturating_sub(cost.usage.ran_ns).min(wall_ns);
        let own_ns = wall_ns.saturating_sub(cost_ns + delayed_ns).max(ran_ns);
        let mut spent_ns = own_ns;
        let sleeps = state.pending.as_ref().is_some_and(|pending| pending.sleeps(stop.thread));
        let may_wait = !sleeps && state.pending.as_ref().is_none_or(Pending::may_wait);
        if may_wait {
            let [lost_ns, active_ns] = [
                self.sums.lost_ns.saturating_sub(state.sums.lost_ns),
                self.sums.active_ns.saturating_sub(state.sums.active_ns),
            ];
            let at_once = (active_ns as f64 / wall_ns.max(1) as f64).max(1.0);
            spent_ns = own_ns.saturating_sub((lost_ns as f64 / at_once) as u64).max(ran_ns);
        }
        if let Some(Pending { asked, call, .. }) = state.pending.as_ref().filter(|_| sleeps)
            && ptrace::result(stop.thread).is_some_and(is_interrupted)
        {
            // What is left of it is known when the thread runs again.
            spent_ns = wall_ns.saturating_sub(cost_ns).max(ran_ns);
            let (asked, since_ns, most_ns) = (*asked, call.begin_ns, call.took_ns);
            state.interrupted = Some(Interrupted { asked, since_ns, most_ns, counted_ns: 0, is_last: true });
        }
        state.stopped_ns = Some(stopped_ns);
        let active_ns = if sleeps || may_wait { ran_ns } else { own_ns };
        *state.active_ns.get_or_insert(0.0) += active_ns as f64;
        self.sums.add(state.weight, wall_ns - own_ns, active_ns);
        let waited_ns = spent_ns - ran_ns;
        let waits = may_wait && state.pending.as_ref().is_some_and(|pending| !pending.call.kind.is_of_threads());
        let (number, resumed_ns) = (state.number, state.resumed_ns);
        let woken_ns = stopped_ns.saturating_sub(cost_ns / 2 + delayed_ns);
        let waker = if waits && own_ns - ran_ns > WAIT_NS {
            self.waker(stop.thread, [resumed_ns, woken_ns.saturating_sub(half_ns + LONG_NS)])
        } else {
            None
        };
        if let Some(state) = self.threads.get_mut(&stop.thread) {
            state.ran(if waker.is_some() { ran_ns } else { spent_ns });
        }
        match waker {
            Some(waker) => self.woken(stop.thread, waker, waited_ns, woken_ns, stopped_ns),
            None if sleeps => {}
            None => self.was_at_work(stop.thread, number, stopped_ns),
        }
        stopped_ns
    }

    fn was_at_work(&mut self, thread: pid_t, number: u32, until_ns: u64) {
        if let Some(place) = self.at_work.iter().position(|(other, ..)| *other == thread) {
            self.at_work.remove(place);
        }
        self.at_work.truncate(MOST_AT_WORK - 1);
        self.at_work.push_front((thread, number, until_ns));
    }

    /// The thread that another one probably waited for: of those that were at work when its wait ended, or else meanwhile, the one that was
    /// so at most of its waits, and of several the last.
    fn waker(&mut self, thread: pid_t, [since_ns, woken_ns]: [u64; 2]) -> Option<(pid_t, u32)> {
        let is_at_work = |other: &pid_t| self.threads.get(other).is_some_and(|state| state.pending.is_none());
        let at_work_since = |ns: u64| {
            let others = self.at_work.iter().filter(|(other, ..)| *other != thread);
            others
                .filter(move |(other, _, at_ns)| *at_ns > ns || is_at_work(other))
                .map(|(other, number, _)| (*other, *number))
        };
        let mut found: Vec<(pid_t, u32)> = at_work_since(woken_ns.max(since_ns)).collect();
        if found.is_empty() {
            found.extend(at_work_since(since_ns));
        }
        let wakers = &mut self.threads.get_mut(&thread)?.wakers;
        wakers.retain(|_, often| {
            *often *= FORGETTING;
            *often > RARE
        });
        found.iter().for_each(|(_, number)| *wakers.entry(*number).or_insert(0.0) += 1.0 - FORGETTING);
        found.into_iter().rev().max_by(|(_, one), (_, other)| wakers[one].total_cmp(&wakers[other]))
    }

    /// Notes that a thread went on when another one had come so far.
    fn woken(&mut self, thread: pid_t, (waker, of): (pid_t, u32), waited_ns: u64, woken_ns: u64, now: u64) {
        let wakeup = Call { kind: Kind::Wakeup, begin_ns: now, ..Call::default() };
        let [_, after] = self.overhead[usize::from(self.processors.shared)];
        if let Some(state) = self.threads.get_mut(&waker) {
            if state.pending.is_none() && state.stopped_ns.is_none() && state.resumed_ns < woken_ns {
                // It ran until then, but for what its last stop cost, and while it waited for a processor.
                let usage = state.account.since();
                self.usage[0] += usage;
                state.usage += usage;
                let mut delayed_ns = std::mem::take(&mut state.usage).delayed_ns;
                if !self.processors.shared {
                    delayed_ns = 0;
                }
                state.ran((woken_ns - state.resumed_ns).saturating_sub(after.wall_ns + delayed_ns));
                state.think_ns += std::mem::take(&mut state.ran_ns);
                state.resumed_ns = woken_ns;
            }
            let think_ns = std::mem::take(&mut state.think_ns);
            self.write(Call { thread: of, think_ns, ..wakeup });
        }
        let Some(state) = self.threads.get_mut(&thread) else { return };
        let (number, think_ns) = (state.number, std::mem::take(&mut state.think_ns));
        let length = self.written[of as usize];
        self.write(Call { thread: number, think_ns, took_ns: waited_ns, result: i64::from(of), length, ..wakeup });
    }

    /// Records what programs have kept: of one thread all, of others what was until some time.
    fn catch_up(&mut self, of: Option<pid_t>, until: Until) {
        let Some(mut preload) = self.preload.take_if(|preload| preload.are_used()) else { return };
        let events = preload.events(of, until, || self.now());
        self.preload = Some(preload);
        let spent_ns = self.spent(&events);
        for (Event { ns, cost_ns, thread, entry, what }, spent_ns) in events.into_iter().zip(spent_ns) {
            let Some(state) = self.threads.get_mut(&thread) else { continue };
            let ns = if state.resumed_ns == u64::MAX { ns } else { ns.max(state.resumed_ns) };
            (state.resumed_ns, state.kept) = (ns + cost_ns[1], true);
            *state.active_ns.get_or_insert(0.0) += spent_ns as f64;
            self.sums.add(state.weight, cost_ns.iter().sum(), spent_ns);
            state.ran(spent_ns);
            let ran_ns = std::mem::take(&mut state.ran_ns);
            let of = state.number;
            match what {
                Happened::Began { number, arguments, pointed } => {
                    state.think_ns += ran_ns;
                    state.interrupted.iter_mut().for_each(|interrupted| interrupted.is_last = false);
                    self.was_at_work(thread, of, ns);
                    let Some(asked) = decode(number, arguments) else { continue };
                    self.pointed = Some(pointed);
                    let pending = self.pending(thread, of, asked, ns);
                    self.kept.insert((thread, entry), pending);
                }
                Happened::Ended { result } => {
                    let Some(pending) = self.kept.remove(&(thread, entry)) else { continue };
                    self.pointed = Some(Pointed::new());
                    self.was_at_work(thread, of, ns);
                    self.finished(thread, pending, result, ran_ns, ns);
                }
            }
        }
        self.pointed = None;
    }

    /// What passed for its thread before each event. What a thread waited for a processor since this was asked last was most likely in the
    /// longest of these times.
    fn spent(&mut self, events: &[Event]) -> Vec<u64> {
        let mut longest: HashMap<pid_t, (u64, usize)> = HashMap::new();
        let mut all = vec![0; events.len()];
        for (index, Event { ns, cost_ns, thread, .. }) in events.iter().enumerate() {
            let Some(state) = self.threads.get(thread) else { continue };
            let (before_ns, most) = longest.entry(*thread).or_insert((state.resumed_ns, index));
            all[index] = ns.saturating_sub(*before_ns + cost_ns[0]);
            *before_ns = (*before_ns).max(*ns + cost_ns[1]);
            if all[index] > all[*most] {
                *most = index;
            }
        }
        for (thread, (_, most)) in longest {
            let Some(state) = self.threads.get_mut(&thread) else { continue };
            let usage = state.account.since();
            self.usage[0] += usage;
            state.usage += usage;
            let delayed_ns = std::mem::take(&mut state.usage).delayed_ns.min(all[most]);
            // Threads wait for processors without a tracer as well.
            let delayed_ns = if self.processors.shared { delayed_ns } else { 0 };
            all[most] -= delayed_ns;
            self.sums.add(state.weight, delayed_ns, 0);
        }
        all
    }

    /// A program has the library: it records calls itself from now on.
    fn welcome(&mut self, thread: pid_t, fd: u64, word: u64) {
        ["cwd", "root"].into_iter().for_each(|which| _ = self.directory(thread, which));
        self.umask(thread);
        let Some(state) = self.threads.get(&thread) else { return };
        let Some(preload) = &mut self.preload else { return };
        if preload.welcome(thread, fd, word, state.is_alone) {
            for (fd, slot) in state.descriptors.borrow().iter() {
                preload.know(thread, *fd, || slot.known(thread, *fd));
            }
        }
    }

    /// What relative names of a thread ("cwd") or its absolute ones ("root") are below.
    fn directory(&mut self, thread: pid_t, which: &str) -> Vec<u8> {
        let index = usize::from(which == "root");
        let known = self.threads.get(&thread).and_then(|state| state.directories[index].clone());
        // Of a process that was joined it is not seen when they change.
        if let Some(known) = known.filter(|_| !self.stops_at_all) {
            return known;
        }
        let found = tables::directory(thread, which);
        if let Some(state) = self.threads.get_mut(&thread) {
            state.directories[index] = Some(found.clone());
        }
        found
    }

    /// Those of the threads for which this holds may be others now. What a program has recorded of its calls is looked at when it may
    /// have ended, and then it is too late to ask.
    fn find_directories(&mut self, concerned: impl Fn(pid_t, &Thread) -> bool) {
        let all: Vec<pid_t> = self
            .threads
            .iter()
            .filter(|(thread, state)| concerned(**thread, state))
            .map(|(thread, _)| *thread)
            .collect();
        for thread in all {
            if let Some(state) = self.threads.get_mut(&thread) {
                (state.directories, state.umask) = ([None, None], None);
            }
            if self.preload.as_ref().is_some_and(|preload| preload.has(thread)) {
                ["cwd", "root"].into_iter().for_each(|which| _ = self.directory(thread, which));
                self.umask(thread);
            }
        }
    }

    /// The permissions that what a thread makes does not get.
    fn umask(&mut self, thread: pid_t) -> u16 {
        let known = self.threads.get(&thread).and_then(|state| state.umask);
        // As of directories.
        if let Some(known) = known.filter(|_| !self.stops_at_all) {
            return known;
        }
        let found = tables::umask(thread);
        self.threads.get_mut(&thread).into_iter().for_each(|state| state.umask = found);
        found.unwrap_or(0)
    }

    /// A descriptor is of something else now, or of nothing.
    fn know(&self, thread: pid_t, fd: i32, slot: Option<&Slot>) {
        // Later ones of a call that is over are known to the program.
        if let (Some(preload), None) = (&self.preload, &self.pointed) {
            preload.know(thread, fd, || slot.map_or(0, |slot| slot.known(thread, fd)));
        }
    }

    /// A process is about to use io_uring for the first time. What its descriptors are of is looked at before each call from now on, which it
    /// therefore no longer keeps itself.
    fn has_ring(&mut self, thread: pid_t) {
        let Some(state) = self.threads.get(&thread).filter(|state| !state.has_ring) else { return };
        let descriptors = state.descriptors.clone();
        for (fd, slot) in descriptors.borrow().iter() {
            if let Slot::Recorded(file) = slot {
                file.identity.set(tables::identity(thread, *fd));
            }
        }
        let all = self.threads.values_mut().filter(|state| Rc::ptr_eq(&state.descriptors, &descriptors));
        all.for_each(|state| state.has_ring = true);
        if let Some(preload) = &self.preload {
            preload.off(thread);
        }
    }

    fn keep(&mut self, thread: pid_t, descriptors: &Descriptors, fd: i32, slot: Slot) {
        self.know(thread, fd, Some(&slot));
        if let (Slot::Recorded(file), true) = (&slot, self.threads.get(&thread).is_some_and(|state| state.has_ring)) {
            file.identity.set(tables::identity(thread, fd));
        }
        descriptors.borrow_mut().insert(fd, slot);
    }

    /// Reads a thread's memory, as it was at the call that is looked at.
    fn read(&self, thread: pid_t, address: u64, buffer: &mut [u8]) -> usize {
        let Some(pointed) = &self.pointed else { return ptrace::read(thread, address, buffer) };
        let found = pointed.iter().find_map(|(from, bytes)| {
            bytes.get(usize::try_from(address.checked_sub(*from)?).ok()?..).filter(|there| !there.is_empty())
        });
        let there = found.unwrap_or_default();
        let got = there.len().min(buffer.len());
        buffer[..got].copy_from_slice(&there[..got]);
        got
    }

    fn add(&mut self, thread: pid_t, parent: Option<pid_t>, flags: u32) -> u32 {
        self.last_thread += 1;
        let number = self.last_thread;
        self.written.resize(number as usize + 1, 0);
        let shares = |flag: i32| flags & flag as u32 != 0;
        let is_alone = !shares(libc::CLONE_VM | libc::CLONE_FILES);
        if let (Some(preload), Some(parent)) = (&mut self.preload, parent) {
            preload.spawned(parent, thread, flags);
        }
        if let Some(state) = parent.and_then(|of| self.threads.get_mut(&of)) {
            state.is_alone &= is_alone || shares(libc::CLONE_VFORK);
        }
        let is_alone = is_alone && parent.is_some();
        let parent = parent.and_then(|parent| self.threads.get(&parent));
        let has_ring = shares(libc::CLONE_FILES) && parent.is_some_and(|parent| parent.has_ring);
        let directories = parent.map(|parent| parent.directories.clone()).unwrap_or_default();
        let umask = parent.and_then(|parent| parent.umask);
        let descriptors = match parent {
            Some(parent) if shares(libc::CLONE_FILES) => parent.descriptors.clone(),
            Some(parent) => Rc::new(RefCell::new(parent.descriptors.borrow().clone())),
            None => Descriptors::default(),
        };
        self.numbers.insert(thread, number);
        self.processors.join(thread);
        let has_room = self.threads.len() < self.most_accounts;
        let account = if has_room { Account::of(thread) } else { Account::default() };
        self.unaccounted += u64::from(!has_room);
        let new = Thread {
            number,
            descriptors,
            pending: None,
            is_alone,
            has_ring,
            interrupted: None,
            directories,
            umask,
            kept: false,
            account,
            usage: Usage::default(),
            sums: self.sums,
            active_ns: None,
            weight: 1.0,
            stopped_ns: None,
            resumed_ns: u64::MAX,
            ran_ns: 0,
            think_ns: 0,
            wakers: HashMap::new(),
        };
        self.threads.insert(thread, new);
        number
    }

    fn go_on(&mut self, thread: pid_t, signal: i32) {
        let is_in_call = self.stops_at_all || self.threads.get(&thread).is_some_and(|state| state.pending.is_some());
        self.resume(thread, if is_in_call { Resume::ToCallsEnd } else { Resume::ToNextStop }, signal);
    }

    fn resume(&mut self, thread: pid_t, how: Resume, signal: i32) {
        let now = self.now();
        if let Some(state) = self.threads.get_mut(&thread) {
            if let (u64::MAX, Some(preload)) = (state.resumed_ns, &mut self.preload) {
                preload.runs(thread);
            }
            let stopped_ns = state.stopped_ns.take().map_or(0, |stopped_ns| now.saturating_sub(stopped_ns));
            self.sums.add(state.weight, stopped_ns, 0);
            self.sums.worked_ns = now.saturating_sub(self.idle_ns);
            (state.resumed_ns, state.sums) = (now, self.sums);
        }
        self.resumed_ns = now;
        if now.saturating_sub(self.accounted_ns) > LONG_NS {
            // What it waited while it was at work is no part of the next wait. To look at each stop would cost more.
            self.look_at_own(now);
        }
        ptrace::resume(thread, how, signal);
    }

    fn stopped(&mut self, Stop { thread, status }: Stop, now: u64) {
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        match event {
            libc::PTRACE_EVENT_SECCOMP => {
                self.entered(thread, now, ptrace::call(thread));
            }
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.spawned(thread);
                self.go_on(thread, 0);
            }
            libc::PTRACE_EVENT_EXEC => {
                self.executed(thread, now);
                self.go_on(thread, 0);
            }
            EVENT_STOP if matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => {
                self.resume(thread, Resume::Listening, 0);
            }
            EVENT_STOP if !self.threads.contains_key(&thread) => {
                self.early.insert(thread);
                self.adopt(now);
            }
            0 if signal == libc::SIGTRAP | 0x80 => {
                if self.stops_at_all
                    && let Some(called) = ptrace::call(thread)
                {
                    let Called { number, arguments, foreign } = called;
                    return if foreign || decode(number, arguments).is_some() && filter::stops_at(number, arguments) {
                        self.entered(thread, now, Some(called));
                    } else {
                        self.go_on(thread, 0);
                    };
                }
                if self.asking.remove(&thread) && self.asking.is_empty() {
                    self.share(true);
                }
                if self.threads.get(&thread).is_some_and(|state| state.pending.is_none()) {
                    // Threads may have them together.
                    self.find_directories(|other, state| other == thread || !state.is_alone);
                }
                if let Some(result) = ptrace::result(thread) {
                    self.returned(thread, now, result);
                }
                self.go_on(thread, 0);
            }
            // A signal is delivered.
            0 => {
                self.comes(thread, signal, now);
                self.go_on(thread, signal);
            }
            _ => self.go_on(thread, 0),
        }
    }

    fn comes(&mut self, thread: pid_t, signal: i32, now: u64) {
        if ENDING.contains(&signal) {
            self.came.insert((tables::process(thread).unwrap_or(thread), signal), now);
        }
    }

    /// Signals that a thread may have read from a signalfd(2) are not delivered.
    fn read_signals(&mut self, thread: pid_t, asked: &Asked, bytes: i64, now: u64) {
        const BYTES: usize = size_of::<libc::signalfd_siginfo>();
        let count = usize::try_from(bytes).unwrap_or(0);
        let file = || std::fs::read_link(format!("/proc/{thread}/fd/{}", asked.fd.unwrap_or(-1)));
        if count % BYTES != 0 || !file().is_ok_and(|file| file.as_os_str() == "anon_inode:[signalfd]") {
            return;
        }
        for at in (0..count).step_by(BYTES) {
            // Its number is the first of what is known of it.
            let mut number = [0; 4];
            if ptrace::read(thread, asked.pointer.wrapping_add(at as u64), &mut number) == number.len() {
                self.comes(thread, i32::from_ne_bytes(number), now);
            }
        }
    }

    fn spawned(&mut self, parent: pid_t) {
        let Some(child) = ptrace::message(parent) else { return };
        let child = child as pid_t;
        let pending = self.threads.get(&parent).and_then(|state| state.pending.as_ref());
        let call = pending.map(|pending| pending.call).filter(|call| call.kind == Kind::Spawn);
        let number = match self.threads.get(&child) {
            Some(known) => known.number,
            None => self.add(child, Some(parent), call.map_or(0, |call| call.flags)),
        };
        if let (Some(call), Some(state)) = (call, self.threads.get_mut(&parent)) {
            // Now, because the new thread's calls may come before this one returns.
            let think_ns = std::mem::take(&mut state.think_ns);
            self.write(Call { think_ns, flags: 0, result: i64::from(number), ..call });
        }
        if self.early.remove(&child) {
            self.go_on(child, 0);
        }
    }

    /// Threads whose parents were killed before they said that they had made them.
    fn adopt(&mut self, now: u64) {
        let is_orphan = |thread: &pid_t| tables::parent(*thread).is_none_or(|of| !self.threads.contains_key(&of));
        for orphan in self.early.iter().copied().filter(is_orphan).collect::<Vec<_>>() {
            self.early.remove(&orphan);
            let oldest = self.threads.values().map(|state| state.number).min();
            let number = self.add(orphan, None, 0);
            match oldest {
                Some(thread) => {
                    let result = i64::from(number);
                    self.write(Call { kind: Kind::Spawn, thread, begin_ns: now, result, ..Call::default() });
                }
                // It comes after what others did.
                None => self.threads.values_mut().for_each(|state| state.think_ns = now),
            }
            self.go_on(orphan, 0);
        }
    }

    fn executed(&mut self, thread: pid_t, mut now: u64) {
        if !std::mem::replace(&mut self.began, true) {
            (self.began_at, self.idle_ns, self.flushed_ns, self.decided_ns, now) = (Instant::now(), 0, 0, 0, 0);
            (self.resumed_ns, self.accounted_ns) = (0, 0);
            self.threads.values_mut().for_each(|state| state.ran_ns = 0);
        }
        // Of several threads the one that calls exec becomes the first; the others have ended.
        if let Some(former) = ptrace::message(thread).map(|former| former as pid_t)
            && former != thread
            && let Some(mut state) = self.threads.remove(&former)
        {
            state.ran_ns += now.saturating_sub(state.resumed_ns);
            state.account = Account::of(thread);
            self.ended(thread, now);
            self.keeps_none(former);
            self.numbers.insert(thread, state.number);
            self.threads.insert(thread, state);
        }
        self.keeps_none(thread);
        if let Some(preload) = &mut self.preload {
            preload.insert(thread);
        }
        let Some(state) = self.threads.get_mut(&thread) else { return };
        (state.pending, state.interrupted, state.is_alone, state.has_ring) = (None, None, true, false);
        state.think_ns += std::mem::take(&mut state.ran_ns);
        let descriptors = state.own_descriptors();
        if !descriptors.borrow().is_empty()
            && let Some(present) = tables::present(thread)
        {
            let gone: Vec<i32> = descriptors.borrow().keys().copied().filter(|fd| !present.contains(fd)).collect();
            for fd in gone {
                self.release(thread, &descriptors, fd, now);
            }
        }
    }

    fn keeps_none(&mut self, thread: pid_t) {
        if let Some(preload) = &mut self.preload {
            preload.leave(thread);
            let gone: Vec<_> = self.kept.extract_if(|(of, _), _| *of == thread).map(|(_, pending)| pending).collect();
            gone.into_iter().for_each(|pending| self.unreturned(thread, &pending));
        }
    }

    /// A thread has ended in a call, or has begun another program.
    fn unreturned(&mut self, thread: pid_t, pending: &Pending) {
        let Some(state) = self.threads.get_mut(&thread) else { return };
        let What::Call(kind) = pending.asked.what else { return };
        if kind.is_of_threads() || pending.outside.is_some() {
            return;
        }
        let think_ns = std::mem::take(&mut state.think_ns);
        let took_ns = std::mem::take(&mut state.ran_ns);
        let call = match kind {
            // The descriptor is no longer the file's.
            Kind::Close => Call { flags: IMPLICIT, ..pending.call },
            _ => Call { kind: Kind::Unreturned, flags: 0, result: 0, ..pending.call },
        };
        self.write_named(Call { think_ns, took_ns, ..call }, pending.at.as_ref(), None, None);
    }

    fn ended(&mut self, thread: pid_t, now: u64) {
        self.early.remove(&thread);
        self.keeps_none(thread);
        if let Some(pending) = self.threads.get_mut(&thread).and_then(|state| state.pending.take()) {
            self.unreturned(thread, &pending);
        }
        let Some(state) = self.threads.get_mut(&thread) else { return };
        state.think_ns += std::mem::take(&mut state.ran_ns);
        let (number, descriptors) = (state.number, state.descriptors.clone());
        // One of them is this variable.
        if Rc::strong_count(&descriptors) == 2 {
            let all: Vec<i32> = descriptors.borrow().keys().copied().collect();
            for fd in all {
                self.release(thread, &descriptors, fd, now);
            }
        }
        let think_ns = self.threads.remove(&thread).map_or(0, |state| state.think_ns);
        self.write(Call { kind: Kind::Exit, thread: number, begin_ns: now, think_ns, ..Call::default() });
    }

    /// Forgets a descriptor that no call has closed, or one that a call is about to close; returns the file if it was the last of it.
    fn forget(&self, thread: pid_t, descriptors: &Descriptors, fd: i32) -> Option<u32> {
        self.know(thread, fd, None);
        match descriptors.borrow_mut().remove(&fd) {
            Some(Slot::Recorded(file)) => Rc::into_inner(file).map(|file| file.number),
            _ => None,
        }
    }

    fn release(&mut self, thread: pid_t, descriptors: &Descriptors, fd: i32, now: u64) {
        let Some(file) = self.forget(thread, descriptors, fd) else { return };
        // What the thread spent until then comes before the first thing that the end of its process does.
        let Some(state) = self.threads.get_mut(&thread) else { return };
        let (number, think_ns) = (state.number, std::mem::take(&mut state.think_ns));
        let call = Call { kind: Kind::Close, thread: number, begin_ns: now, think_ns, file, ..Call::default() };
        self.write(Call { flags: IMPLICIT, ..call });
    }

    fn write(&mut self, call: Call) {
        self.written[call.thread as usize] += 1;
        let written = self.writer.as_mut().map_or(Ok(()), |writer| writer.call(call));
        self.lost_if(written);
    }

    fn lost_if(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            // The program goes on unrecorded; the file is good to here.
            (self.writer, self.failed) = (None, Some(error));
        }
    }

    fn write_named(&mut self, mut call: Call, at: Option<&Named>, to: Option<&Named>, text: Option<&[u8]>) {
        if let Some(writer) = self.writer.as_mut() {
            let secret = self.secret.as_ref();
            let mut place = |named: &Named| writer.place(named.base, &hashed(&named.name, secret));
            call.at = at.map(&mut place);
            call.to = to.map(&mut place);
            if let Some(text) = text {
                let text = match (call.kind, text.iter().position(|byte| *byte == b'.')) {
                    // Of an attribute the part before the dot says who may have it, and is no secret.
                    (kind, Some(dot)) if kind != Kind::Symlink => {
                        [&text[..=dot], &hashed(&text[dot + 1..], secret)].concat()
                    }
                    _ => hashed(text, secret),
                };
                call.to = Some(writer.place(0, &text));
            }
        }
        self.write(call);
    }

    /// What a descriptor is of. One that is not known yet was inherited, or made by a call that is not followed.
    fn slot(&mut self, thread: pid_t, fd: i32, now: u64) -> Option<Slot> {
        let state = self.threads.get(&thread)?;
        let (number, descriptors) = (state.number, state.descriptors.clone());
        // What a call that is over was about cannot be looked at any more.
        let is_sure = !state.has_ring || self.pointed.is_some();
        let known = descriptors.borrow().get(&fd).cloned();
        let is_same = |file: &OpenFile| file.identity.get() == tables::identity(thread, fd);
        match &known {
            Some(_) if is_sure => return known,
            Some(Slot::Recorded(file)) if is_same(file) => return known,
            _ => {}
        }
        if known.is_some() {
            drop(known);
            self.release(thread, &descriptors, fd, now);
        }
        let found = tables::look(thread, fd);
        let slot = match found {
            Some(found) => match self.roots.below(&found.path) {
                Some(name) => {
                    let file = self.open_file(found.path);
                    let at = Named { base: 0, name };
                    let call = Call {
                        kind: Kind::Open,
                        thread: number,
                        begin_ns: now,
                        other: file.number,
                        flags: found.flags & !(libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC) as u32 | INHERITED,
                        offset: found.position,
                        ..Call::default()
                    };
                    self.write_named(call, Some(&at), None, None);
                    Slot::Recorded(file)
                }
                None => Slot::Elsewhere(Some(found.path.into())),
            },
            None if tables::is_open(thread, fd) => Slot::Elsewhere(None),
            None => return Some(Slot::Gone),
        };
        self.keep(thread, &descriptors, fd, slot.clone());
        Some(slot)
    }

    /// The path without links of what a thread has opened by a name.
    fn opened(&self, thread: pid_t, fd: i32, name: &[u8], is_link: bool) -> Option<Vec<u8>> {
        if self.pointed.is_none() {
            return tables::path(thread, fd);
        }
        // Of a call that is over the descriptor may be another file's.
        without_links(name, !is_link)
    }

    fn open_file(&mut self, path: Vec<u8>) -> Rc<OpenFile> {
        self.last_file += 1;
        Rc::new(OpenFile { number: self.last_file, path, identity: Cell::new(None) })
    }

    /// Where a name is: relative to an open file of the recording or to the top, and its absolute path; the path alone elsewhere.
    fn named(&mut self, thread: pid_t, directory: i32, name: &[u8], now: u64) -> (Option<Named>, Vec<u8>) {
        let above = match name {
            [b'/', ..] => self.directory(thread, "root"),
            _ if directory == libc::AT_FDCWD => self.directory(thread, "cwd"),
            _ => match self.slot(thread, directory, now) {
                Some(Slot::Recorded(file)) => {
                    let path = normal(&joined(&file.path, name));
                    // As long as ".." does not lead out of it.
                    if path.starts_with(&file.path) && self.roots.below(&path).is_some() {
                        return (Some(Named { base: file.number, name: name.to_vec() }), path);
                    }
                    // It may have another name by now; of a call that is over the descriptor may be another file's.
                    let found = if self.pointed.is_none() { tables::look(thread, directory) } else { None };
                    found.map_or_else(|| file.path.clone(), |found| found.path)
                }
                Some(Slot::Elsewhere(Some(path))) => path.to_vec(),
                _ => return (None, name.to_vec()),
            },
        };
        // No ".." leads above the root.
        let is_below_root = name.starts_with(b"/") && !above.is_empty();
        let whole = joined(&above, &if is_below_root { normal(name) } else { name.to_vec() });
        let path = normal(&whole);
        let fits = |name: &Vec<u8>| name.len() <= MOST_NAME;
        let below = self.roots.inside(&whole).filter(fits).or_else(|| self.roots.below(&path).filter(fits));
        (below.map(|name| Named { base: 0, name }), path)
    }

    fn string(&self, thread: pid_t, address: u64) -> Option<Vec<u8>> {
        let mut buffer = [0; MOST_NAME];
        // Most names are short. One that does not end is none for the kernel, and here it would be some of the program's memory.
        [256, MOST_NAME].into_iter().find_map(|most| {
            let got = self.read(thread, address, &mut buffer[..most]);
            buffer[..got].iter().position(|byte| *byte == 0).map(|end| buffer[..end].to_vec())
        })
    }

    fn number(&self, thread: pid_t, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (address != 0 && self.read(thread, address, &mut bytes) == 8).then(|| u64::from_ne_bytes(bytes))
    }

    /// The bytes of an array of `iovec`s.
    fn vector_bytes(&self, thread: pid_t, address: u64, count: u64) -> u64 {
        let mut bytes = vec![0; 16 * count.min(1024) as usize];
        let got = self.read(thread, address, &mut bytes);
        let lengths =
            bytes[..got].chunks_exact(16).map(|one| u64::from_ne_bytes(one[8..].try_into().expect("8 bytes")));
        lengths.fold(0, u64::saturating_add)
    }

    /// A thread is about to make a call.
    fn entered(&mut self, thread: pid_t, now: u64, called: Option<Called>) {
        // A signal's handler has jumped out of the one before.
        if let Some(pending) = self.threads.get_mut(&thread).and_then(|state| state.pending.take()) {
            self.unreturned(thread, &pending);
        }
        let Some(state) = self.threads.get_mut(&thread) else { return self.go_on(thread, 0) };
        state.think_ns += std::mem::take(&mut state.ran_ns);
        let number = state.number;
        let called = called.filter(|called| !called.foreign);
        let mut asked = called.and_then(|called| decode(called.number, called.arguments));
        if !asked.is_some_and(|asked| asked.waits() || asked.what == What::Again) {
            state.interrupted.iter_mut().for_each(|interrupted| interrupted.is_last = false);
        }
        if let Some(Called { arguments: [preload::HELLO, fd, word, ..], .. }) =
            called.filter(|called| called.number == libc::SYS_close_range as u64)
        {
            self.welcome(thread, fd, word);
            return self.go_on(thread, 0);
        }
        if let (Some(preload), true) =
            (&self.preload, called.is_some_and(|called| filter::ends_keeping(called.number, called.arguments)))
        {
            preload.off(thread);
        }
        if called.is_some_and(|called| filter::SANDBOXES.contains(&called.number)) {
            self.preload.iter_mut().for_each(|preload| preload.forbid(thread));
            return self.go_on(thread, 0);
        }
        if called.is_some_and(|called| filter::DIRECTORIES.contains(&called.number)) {
            return self.resume(thread, Resume::ToCallsEnd, 0);
        }
        if let Some(number) = called.map(|called| called.number).filter(|number| filter::PROCESSORS.contains(number)) {
            if number != filter::PROCESSORS[0] {
                self.processors.leave(self.threads.keys().chain(&self.early).copied());
            } else if self.asks(thread) {
                return self.resume(thread, Resume::ToCallsEnd, 0);
            }
            return self.go_on(thread, 0);
        }
        if asked.is_some_and(|asked| asked.what == What::Again) {
            asked = state.interrupted.as_ref().map(|interrupted| interrupted.rest(now));
            if asked.is_none() {
                return self.go_on(thread, 0);
            }
        }
        let Some(asked) = asked else {
            if let Some(writer) = self.writer.as_mut() {
                writer.outside(0, Some(b"a call of another architecture"));
            }
            return self.go_on(thread, 0);
        };
        if let (Some(preload), true) = (&mut self.preload, state.is_alone) {
            preload.invite(thread);
        }
        let pending = self.pending(thread, number, asked, now);
        let is_own_status = |path: &Vec<u8>| path.starts_with(b"/proc/") && path.ends_with(b"/status");
        if pending.call.kind.reads()
            && pending.outside.as_ref().is_some_and(|path| path.as_ref().is_some_and(is_own_status))
        {
            self.asks(thread);
        }
        // Without another stop at its end, for half of what a new program does is to load its libraries.
        if let Some(name) = pending.outside.as_ref().filter(|_| self.samples.is_none() && pending.ends_unseen()) {
            self.outside(name.as_ref(), 0);
            return self.go_on(thread, 0);
        }
        if let (Kind::Spawn, Some(preload)) = (pending.call.kind, &mut self.preload)
            && pending.call.flags & (libc::CLONE_VM | libc::CLONE_THREAD) as u32 == libc::CLONE_VM as u32
        {
            preload.pause(thread, true);
        }
        if let Some(state) = self.threads.get_mut(&thread) {
            // Calls that do not return to the tracer's knowledge are none; all others end in a stop.
            state.pending = Some(pending);
        }
        self.go_on(thread, 0);
    }

    fn pending(&mut self, thread: pid_t, number: u32, mut asked: Asked, now: u64) -> Pending {
        let kind = match asked.what {
            What::Call(kind) => kind,
            _ => Kind::Close,
        };
        let mut call = Call {
            kind,
            thread: number,
            begin_ns: now,
            offset: asked.offset,
            length: asked.length,
            flags: asked.flags,
            mode: asked.mode as u16,
            ..Call::default()
        };
        if asked.waits() {
            call.took_ns = self.most_ns(thread, &asked, now);
            if let Some(state) = self.threads.get_mut(&thread)
                && let Some(before) = state.interrupted.take()
            {
                state.think_ns += before.missing_ns(&asked, call.took_ns, now);
            }
        }
        let mut pending = Pending {
            asked,
            call,
            at: None,
            to: None,
            text: None,
            path: Vec::new(),
            new_path: Vec::new(),
            outside: None,
            is_lost: false,
        };
        let mut bound = None;
        if matches!(kind, Kind::Setxattr | Kind::Getxattr) && asked.other_pointer != 0 {
            // struct xattr_args: where the value is, its length, flags.
            let arguments = [0, 8].map(|at| self.number(thread, asked.other_pointer.wrapping_add(at)).unwrap_or(0));
            (asked.pointer, call.length) = (arguments[0], u64::from(arguments[1] as u32));
            call.flags |= (arguments[1] >> 32) as u32 & (libc::XATTR_CREATE | libc::XATTR_REPLACE) as u32;
        }
        match kind {
            Kind::Open if asked.pointer != 0 => {
                let how = [0, 8].map(|at| self.number(thread, asked.pointer.wrapping_add(at)).unwrap_or(0));
                (call.flags, call.mode) = (how[0] as u32, how[1] as u16);
            }
            Kind::Readv | Kind::Preadv | Kind::Writev | Kind::Pwritev => {
                call.length = self.vector_bytes(thread, asked.pointer, asked.count);
            }
            Kind::Spawn if asked.pointer != 0 => call.flags = self.number(thread, asked.pointer).unwrap_or(0) as u32,
            Kind::Sendfile | Kind::CopyRange | Kind::Splice => {
                [call.offset, call.other_offset] = [asked.pointer, asked.other_pointer]
                    .map(|address| self.number(thread, address).map_or(-1, |offset| offset as i64));
            }
            Kind::Reflink if asked.pointer != 0 => {
                // struct file_clone_range: descriptor, offset, length, offset in the other.
                let [fd, offset, length, other_offset] =
                    [0, 8, 16, 24].map(|at| self.number(thread, asked.pointer.wrapping_add(at)).unwrap_or(u64::MAX));
                asked.fd = Some(fd as i32);
                (call.offset, call.length, call.other_offset) = (offset as i64, length, other_offset as i64);
            }
            Kind::Setxattr | Kind::Fsetxattr if call.length == ACL_BYTES as u64 => {
                let mut value = [0; ACL_BYTES];
                let got = self.read(thread, asked.pointer, &mut value);
                call.mode = mode_of_acl(&value[..got]).unwrap_or(0);
            }
            Kind::Bind => {
                // struct sockaddr_un, unless the name is none of a file. What is behind its length is the program's.
                let mut address = [0; 2 + MOST_SOCKET];
                let length = address.len().min(asked.count as u32 as usize);
                let got = self.read(thread, asked.pointer, &mut address[..length]);
                let name = address[..got].strip_prefix(&(libc::AF_UNIX as u16).to_ne_bytes()).unwrap_or_default();
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                if name.is_empty() {
                    pending.outside = Some(None);
                } else {
                    asked.at = Some((libc::AT_FDCWD, asked.pointer.wrapping_add(2)));
                    bound = Some(name.to_vec());
                }
            }
            Kind::PolledRing => {
                // struct io_uring_params: two numbers of entries, flags. Without a thread that polls each request needs a call.
                const SQPOLL: u32 = 1 << 1;
                if self.number(thread, asked.pointer.wrapping_add(8)).unwrap_or(0) as u32 & SQPOLL == 0 {
                    pending.outside = Some(None);
                }
            }
            Kind::Lock => {
                // struct flock: type, whence, start, length.
                let fields = [0, 8, 16].map(|at| self.number(thread, asked.pointer.wrapping_add(at)).unwrap_or(0));
                (call.mode, call.offset, call.length) = (fields[0] as u16, fields[1] as i64, fields[2]);
                call.other_offset = i64::from((fields[0] >> 16) as u16);
            }
            _ => {}
        }
        if matches!(kind, Kind::Uring | Kind::PolledRing) && pending.outside.is_none() {
            self.has_ring(thread);
        }
        if asked.what == What::Call(Kind::Close) {
            if self.threads.get(&thread).is_some_and(|state| state.has_ring) {
                self.slot(thread, asked.fd.unwrap_or(-1), now);
            }
            // Its number may be given to another thread's file as soon as the call begins.
            let descriptors = self.threads[&thread].descriptors.clone();
            match self.forget(thread, &descriptors, asked.fd.unwrap_or(-1)) {
                Some(file) => call.file = file,
                None => pending.outside = Some(None),
            }
            pending.call = call;
            return pending;
        }
        if asked.text != 0 {
            let most = if kind == Kind::Symlink { MOST_NAME } else { MOST_ATTRIBUTE };
            pending.text = self.string(thread, asked.text).filter(|text| text.len() < most);
        }
        for second in [false, true] {
            let Some((mut directory, address)) = (if second { asked.to } else { asked.at }) else { continue };
            let name = match bound.take() {
                None if address == 0 => Some(Vec::new()),
                None => self.string(thread, address),
                bound => bound,
            };
            let Some(mut name) = name else {
                pending.outside = Some(None);
                continue;
            };
            if let Some(fd) = tables::descriptor(&name).filter(|_| !second) {
                match kind {
                    Kind::Open => name = tables::look(thread, fd).map_or(name, |found| found.path),
                    Kind::Link | Kind::Stat | Kind::Chown | Kind::Chmod | Kind::Utimens
                        if call.flags & libc::AT_SYMLINK_NOFOLLOW as u32 == 0 =>
                    {
                        (directory, name) = (fd, Vec::new());
                    }
                    _ => {}
                }
            }
            if name.is_empty() && (second || directory == libc::AT_FDCWD) {
                // No name at all, which is an error, and not the working directory's.
                pending.outside = Some(None);
                continue;
            }
            if name.is_empty() {
                // AT_EMPTY_PATH: about the descriptor itself.
                call.kind = match call.kind {
                    Kind::Stat => Kind::Fstat,
                    Kind::Chown => Kind::Fchown,
                    Kind::Chmod => Kind::Fchmod,
                    Kind::Utimens => Kind::Futimens,
                    Kind::Setxattr => Kind::Fsetxattr,
                    Kind::Getxattr => Kind::Fgetxattr,
                    Kind::Listxattr => Kind::Flistxattr,
                    Kind::Removexattr => Kind::Fremovexattr,
                    kind => kind,
                };
                asked.fd = Some(directory);
                continue;
            }
            let (mut named, mut path) = self.named(thread, directory, &name, now);
            // By a link from elsewhere it may be below a root all the same. What is in /proc is another process's here.
            if named.is_none()
                && !path.starts_with(b"/proc/")
                && let Some(real) = changes_through(&call, second).and_then(|follow| without_links(&path, follow))
                && let Some(name) = self.roots.below(&real)
            {
                (named, path) = (Some(Named { base: 0, name }), real);
            }
            if named.is_none() {
                pending.outside = Some(Some(path.clone()));
            }
            if second {
                pending.to = named;
            } else {
                pending.at = named;
            }
            if second {
                pending.new_path.clone_from(&path);
            }
            if !second || pending.at.is_none() {
                pending.path = path;
            }
        }
        for second in [false, true] {
            let Some(fd) = (if second { asked.other } else { asked.fd }) else { continue };
            match self.slot(thread, fd, now) {
                Some(Slot::Recorded(file)) if second => call.other = file.number,
                Some(Slot::Recorded(file)) => call.file = file.number,
                // It may be the number of a registered ring.
                Some(Slot::Gone) if matches!(kind, Kind::Uring) => {}
                Some(Slot::Gone) => (pending.outside, pending.is_lost) = (Some(None), true),
                Some(Slot::Elsewhere(path)) if !matches!(kind, Kind::Uring) => {
                    pending.outside = Some(path.map(|path| path.to_vec()));
                }
                _ => {}
            }
        }
        if kind.is_copy() && (call.file != 0 || call.other != 0) {
            // With a pipe or a file elsewhere on one side it is still a read or a write of the other.
            (pending.outside, pending.is_lost) = (None, false);
        }
        if self.measures_data && kind.writes() && pending.outside.is_none() {
            call.mode = self.entropy(thread, &asked, call.length);
        }
        if pending.outside.is_none() && call.takes_umask() {
            call.mode &= !self.umask(thread);
        }
        pending.asked = asked;
        pending.call = call;
        pending
    }

    /// How long a wait takes if nothing ends it before; 0 if that is not known, or if it has no end.
    fn most_ns(&self, thread: pid_t, asked: &Asked, now: u64) -> u64 {
        let limit_ns = match asked.pointer {
            0 => asked.length,
            at => {
                let [seconds, rest] = [at, at.wrapping_add(8)].map(|at| self.number(thread, at).unwrap_or(0));
                seconds.saturating_mul(1_000_000_000).saturating_add(rest.saturating_mul(asked.count))
            }
        };
        if asked.flags & libc::TIMER_ABSTIME as u32 == 0 {
            return limit_ns;
        }
        if !ptrace::is_for_all(asked.mode as i32) {
            return 0;
        }
        // Until a moment, which comes nearer while the tracer is at work.
        let stopped_ns = ptrace::clock(asked.mode as i32).saturating_sub(self.now().saturating_sub(now));
        limit_ns.saturating_sub(stopped_ns)
    }

    /// What compression leaves of the first part of what is written, in percent.
    fn entropy(&self, thread: pid_t, asked: &Asked, length: u64) -> u16 {
        const SAMPLE: u64 = 16 << 10;
        let mut sample = vec![0; SAMPLE.min(length) as usize];
        let (mut got, mut at) = (0, asked.pointer);
        if asked.count == 0 {
            got = ptrace::read(thread, at, &mut sample);
        }
        for _ in 0..asked.count {
            let [Some(address), Some(bytes)] = [at, at.wrapping_add(8)].map(|at| self.number(thread, at)) else {
                break;
            };
            let end = sample.len().min(got + bytes.min(SAMPLE) as usize);
            got += ptrace::read(thread, address, &mut sample[got..end]);
            at = at.wrapping_add(16);
            if got == sample.len() {
                break;
            }
        }
        // zstd's own frame is no data.
        let packed = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).map_or(bytes.len(), |packed| packed.len());
        let left = packed(&sample[..got]).saturating_sub(packed(&[]));
        (100 * left).checked_div(got).map_or(0, |percent| percent.clamp(1, 100) as u16)
    }

    /// What was renamed or linked into the recorded directories was elsewhere in the tree before, and what was renamed out of them goes there.
    fn moves_across(&mut self, pending: &mut Pending) {
        let came = pending.at.is_none() || pending.call.flags & libc::RENAME_EXCHANGE != 0;
        let path = came.then(|| Path::new(std::ffi::OsStr::from_bytes(&pending.path)).to_owned());
        let Some(name) = self.elsewhere(path) else { return };
        let missing = if pending.at.is_none() { &mut pending.at } else { &mut pending.to };
        *missing = Some(Named { base: 0, name });
        pending.outside = None;
    }

    /// A name in the directory of the top for what is elsewhere, with what is there now.
    fn elsewhere(&mut self, path: Option<PathBuf>) -> Option<Vec<u8>> {
        let writer = self.writer.as_mut()?;
        let name = format!("{}/{}", self.elsewhere, self.moved).into_bytes();
        let mut add = |entry| writer.entry(hashed_entry(entry, self.secret.as_ref()));
        let top = Entry { path: self.elsewhere.clone().into_bytes(), mode: 0o700, node: Node::Directory };
        let mut added = if self.moved == 0 { add(top) } else { Ok(()) };
        if let (Some(path), Ok(())) = (path, &added) {
            added = tree::walk_one(path, name.clone(), &mut Walk::default(), &mut add);
        }
        self.moved += 1;
        self.lost_if(added);
        Some(name)
    }

    /// A recorded file has blocks of one elsewhere now, which is opened for this call.
    fn clones_from_elsewhere(&mut self, thread: pid_t, call: &Call, fd: i32) {
        let file = match self.slot(thread, fd, call.begin_ns) {
            // Of a call that is over the descriptor may be another file's.
            Some(Slot::Elsewhere(Some(path))) if self.pointed.is_some() => {
                PathBuf::from(std::ffi::OsStr::from_bytes(&path))
            }
            _ => PathBuf::from(format!("/proc/{thread}/fd/{fd}")),
        };
        let Ok(facts) = std::fs::metadata(file) else { return };
        let Some(name) = self.elsewhere(None) else { return };
        let node = Node::File { size_bytes: facts.len(), stored_bytes: facts.len() };
        let entry = Entry { path: name.clone(), mode: (facts.mode() & 0o7777) as u16, node };
        let added =
            self.writer.as_mut().map_or(Ok(()), |writer| writer.entry(hashed_entry(entry, self.secret.as_ref())));
        self.lost_if(added);
        self.last_file += 1;
        let around = Call { thread: call.thread, begin_ns: call.begin_ns, ..Call::default() };
        let opened = Call { kind: Kind::Open, other: self.last_file, flags: INHERITED, ..around };
        self.write_named(opened, Some(&Named { base: 0, name }), None, None);
        self.write(Call { file: self.last_file, ..*call });
        self.write(Call { kind: Kind::Close, file: self.last_file, flags: IMPLICIT, ..around });
    }

    /// A call has returned.
    fn returned(&mut self, thread: pid_t, now: u64, result: i64) {
        let Some(state) = self.threads.get_mut(&thread) else { return };
        let Some(pending) = state.pending.take() else { return };
        let took_ns = std::mem::take(&mut state.ran_ns);
        if let (Kind::Spawn, Some(preload)) = (pending.call.kind, &mut self.preload) {
            preload.pause(thread, false);
        }
        self.finished(thread, pending, result, took_ns, now);
    }

    /// Counts a call about a file elsewhere.
    fn outside(&mut self, name: Option<&Vec<u8>>, bytes: u64) {
        // Pipes and sockets have no name, and are no files.
        let name = name.filter(|name| Some(*name) != self.library.as_ref());
        if let (Some(writer), Some(name)) = (self.writer.as_mut(), name) {
            writer.outside(bytes, Some(&hashed(name, self.secret.as_ref())));
        }
    }

    /// A call is over.
    fn finished(&mut self, thread: pid_t, mut pending: Pending, result: i64, took_ns: u64, now: u64) {
        // Of a wait whose time is over, which it needed at least, whatever is uncertain of its stops.
        let slept_ns = took_ns.max(pending.call.took_ns.min(self.now().saturating_sub(pending.call.begin_ns)));
        let Some(state) = self.threads.get_mut(&thread) else { return };
        let asked = pending.asked;
        let has_own = result == 0
            && match asked.what {
                What::Unshare => asked.flags & libc::CLONE_FILES as u32 != 0,
                What::CloseRange => asked.flags & libc::CLOSE_RANGE_UNSHARE != 0,
                _ => false,
            };
        let descriptors = if has_own { state.own_descriptors() } else { state.descriptors.clone() };
        match asked.what {
            What::Unshare => {
                state.think_ns += took_ns;
                return self.find_directories(|other, state| other == thread || !state.is_alone);
            }
            What::Duplicate => {
                let fd = asked.fd.unwrap_or(-1);
                state.think_ns += took_ns;
                if result >= 0 && result as i32 != fd {
                    let slot = self.slot(thread, fd, now);
                    self.release(thread, &descriptors, result as i32, now);
                    if let Some(slot @ (Slot::Recorded(_) | Slot::Elsewhere(_))) = slot {
                        self.keep(thread, &descriptors, result as i32, slot);
                    }
                }
                return;
            }
            What::CloseRange => {
                state.think_ns += took_ns;
                // CLOSE_RANGE_CLOEXEC closes nothing yet.
                if result == 0 && asked.flags & libc::CLOSE_RANGE_CLOEXEC == 0 {
                    let range = asked.offset..=asked.length.min(i64::MAX as u64) as i64;
                    let gone: Vec<i32> =
                        descriptors.borrow().keys().copied().filter(|fd| range.contains(&i64::from(*fd))).collect();
                    gone.into_iter().for_each(|fd| self.release(thread, &descriptors, fd, now));
                }
                return;
            }
            What::Sleep => return state.think_ns += if result == 0 { slept_ns } else { took_ns },
            What::Limited(over) if result == over => {
                let (thread, think_ns) = (state.number, std::mem::take(&mut state.think_ns));
                let took_ns = slept_ns;
                let begin_ns = pending.call.begin_ns;
                let flags = TIMED_OUT;
                let kind = Kind::Wakeup;
                return self.write(Call { kind, thread, begin_ns, think_ns, took_ns, flags, ..Call::default() });
            }
            What::Limited(_) | What::Again => {
                state.think_ns += took_ns;
                // Taken by sigwait(3), it is not delivered; no other call with a time limit that may be over returns so much.
                if asked.what == What::Limited(-i64::from(libc::EAGAIN)) {
                    self.comes(thread, result as i32, now);
                }
                return;
            }
            What::Call(_) => {}
        }
        // The kernel makes such a call again by itself; of a new thread all is recorded.
        if AGAIN.contains(&result) || pending.call.kind == Kind::Spawn {
            state.think_ns += took_ns;
            return;
        }
        let mut call = Call { result, took_ns, ..pending.call };
        if call.kind == Kind::Wait {
            let waited = match asked.pointer {
                0 => result,
                // si_pid of siginfo_t.
                address if result == 0 => self.number(thread, address.wrapping_add(12)).unwrap_or(0) as i32 as i64,
                _ => result,
            };
            let child = if waited > 0 { self.numbers.get(&(waited as pid_t)).copied() } else { None };
            // A number of another PID namespace, or none at all: what it took is not to be lost.
            if child.is_none() && result >= 0 {
                self.threads.get_mut(&thread).into_iter().for_each(|state| state.think_ns += took_ns);
                return;
            }
            call.result = child.map_or(result, i64::from);
        }
        if call.kind == Kind::OpenByHandle {
            let opened = if result >= 0 { self.slot(thread, result as i32, now) } else { None };
            match opened {
                Some(Slot::Recorded(file)) => (call.file, call.result) = (file.number, 0),
                _ => pending.outside = Some(None),
            }
        }
        // The program keeps no renames of directories.
        if call.kind == Kind::Rename && result == 0 && self.pointed.is_none() {
            let is_any = pending.at.is_none() || call.flags & libc::RENAME_EXCHANGE != 0;
            let is_in = |known: &Option<Vec<u8>>| known.as_ref().is_some_and(|known| known.starts_with(&pending.path));
            // By another name of it, a link's: what is known is without links.
            let renamed = std::fs::symlink_metadata(std::ffi::OsStr::from_bytes(&pending.new_path));
            let is_directory = renamed.map_or(true, |found| found.is_dir());
            self.find_directories(|_, state| is_any || is_directory || state.directories.iter().any(is_in));
        }
        let [is_from, is_to] = [pending.at.is_some() || call.file != 0, pending.to.is_some()];
        if result == 0
            && (call.kind == Kind::Rename && is_from != is_to || call.kind == Kind::Link && !is_from && is_to)
        {
            self.moves_across(&mut pending);
        }
        let state = self.threads.get_mut(&thread).expect("it was there above");
        if call.kind == Kind::Reflink && result == 0 && call.file == 0 && call.other != 0 {
            call.think_ns = std::mem::take(&mut state.think_ns);
            return self.clones_from_elsewhere(thread, &call, asked.fd.unwrap_or(-1));
        }
        if pending.is_lost && result != -i64::from(libc::EBADF) {
            call.think_ns = std::mem::take(&mut state.think_ns);
            return self.write(Call { kind: Kind::Lost, ..call });
        }
        if call.kind == Kind::Open && result >= 0 && pending.outside.is_some() {
            // By a link from elsewhere, or a name in /proc, it may be below a root all the same.
            let is_link = call.flags & libc::O_NOFOLLOW as u32 != 0;
            let found = self.opened(thread, result as i32, &pending.path, is_link);
            if let Some(path) = found
                && let Some(name) = self.roots.below(&path)
            {
                (pending.outside, pending.path) = (None, path);
                pending.at = Some(Named { base: 0, name });
                if call.takes_umask() {
                    call.mode &= !self.umask(thread);
                }
            }
        }
        let state = self.threads.get_mut(&thread).expect("it was there above");
        if let Some(name) = &pending.outside {
            state.think_ns += took_ns;
            if call.kind == Kind::Read && name.is_none() && result > 0 && self.pointed.is_none() {
                self.read_signals(thread, &asked, result, now);
            }
            if call.kind == Kind::Open && result >= 0 {
                let path = Some(Rc::from(pending.path.as_slice()));
                self.keep(thread, &descriptors, result as i32, Slot::Elsewhere(path));
            }
            let moves = call.kind.reads() || call.kind.writes();
            return self.outside(name.as_ref(), if moves { result.max(0) as u64 } else { 0 });
        }
        call.think_ns = std::mem::take(&mut state.think_ns);
        if call.kind == Kind::Open && result >= 0 {
            let file = self.open_file(std::mem::take(&mut pending.path));
            call.other = file.number;
            call.result = 0;
            self.keep(thread, &descriptors, result as i32, Slot::Recorded(file));
        }
        self.write_named(call, pending.at.as_ref(), pending.to.as_ref(), pending.text.as_deref());
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    fn recorded(words: &[&str]) -> Recorded {
        let place = tempfile::tempdir().expect("a temporary directory");
        let wanted = Wanted {
            command: &words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>(),
            process: None,
            under: &[place.path().to_owned()],
            hash_names: false,
            data_entropy: false,
            cancel: &AtomicI32::new(0),
        };
        std::env::set_current_dir(place.path()).expect("it was just made");
        let file = File::options().read(true).write(true).create_new(true).open(place.path().join("a.rec"));
        record(&wanted, file.expect("writable")).expect("it can be recorded")
    }

    #[test]
    fn most_calls_of_a_program_do_not_stop_it() {
        // Daemons close all descriptors that they may have; these are of nothing.
        let closes = "unset LD_LIBRARY_PATH; if which perl; then perl -MPOSIX -e 'POSIX::close($_) for 100..3000'; fi";
        let script = format!("i=0; while [ $i -lt 2000 ]; do [ -e x ]; i=$((i + 1)); done; {closes}");
        let recorded = recorded(&["sh", "-c", &script]);
        assert!(recorded.calls >= 2000 && recorded.status == 0, "{} calls", recorded.calls);
        if Preload::new().is_some() {
            assert!(recorded.stops < 800, "{} stops", recorded.stops);
        }
    }

    /// As package managers unpack: a file gets its name when it is whole, and comes through a pipe.
    #[test]
    fn renames_within_a_directory_and_pipes_that_need_not_wait_do_not_stop_a_program() {
        let stops = |times: u32| {
            let program = format!(
                "import ctypes, os\nreader, writer = os.pipe()\nlibc = ctypes.CDLL(None)
name = 'd' * 100 + '/' + 'n' * 60\nos.mkdir('d' * 100)
for _ in range({times}):
    os.write(writer, b'x' * 1000)
    data = os.read(reader, 1000)
    assert len(data) == 1000
    file = os.open(name + '.new', os.O_CREAT | os.O_WRONLY)
    os.write(file, data)
    libc.sync_file_range(file, 0, 0, 2)
    os.close(file)
    os.rename(name + '.new', name)
    assert libc.utimes(name.encode(), None) == 0
    try: os.rename(name + '.old', name + '.older')
    except FileNotFoundError: pass"
            );
            let recorded = recorded(&["python3", "-I", "-c", &program]);
            assert_eq!(recorded.status, 0);
            recorded.stops
        };
        if Preload::new().is_some() {
            let of_unpacking = stops(501).saturating_sub(stops(1));
            assert!(of_unpacking < 200, "{of_unpacking} stops");
        }
    }

    /// As event loops are woken by their threads.
    #[test]
    fn counters_of_events_do_not_stop_a_program() {
        let stops = |times: u32| {
            let counts = format!(
                "import os\ncounter = os.eventfd(0)\nfor _ in range({times}):
    os.write(counter, (3).to_bytes(8, 'little'))
    assert int.from_bytes(os.read(counter, 8), 'little') == 3"
            );
            let recorded = recorded(&["python3", "-I", "-c", &counts]);
            assert_eq!(recorded.status, 0);
            recorded.stops
        };
        if Preload::new().is_some() {
            let of_counting = stops(501).saturating_sub(stops(1));
            assert!(of_counting < 100, "{of_counting} stops");
        }
    }

    /// Linkers ask for each part of a name.
    #[test]
    fn a_call_that_only_asks_about_a_name_elsewhere_stops_once() {
        let stops = |times: u32| {
            let asks = format!(
                "import ctypes\nfor _ in range({times}): ctypes.CDLL(None).realpath(b'/usr/share/doc', ctypes.create_string_buffer(4096))"
            );
            let recorded = recorded(&["python3", "-c", &asks]);
            assert_eq!(recorded.status, 0, "python3 has ctypes");
            recorded.stops
        };
        // What Python does to start depends on where it is.
        let of_asking = stops(3001).saturating_sub(stops(1));
        assert!((8500..14000).contains(&of_asking), "{of_asking} stops");
    }

    /// Two clients and their servers: the other pair's are often at work as well when a wait ends.
    #[test]
    fn a_thread_waits_for_the_one_that_is_at_work_whenever_its_waits_end() {
        const CLIENT: pid_t = 1 << 29;
        const SERVER: pid_t = CLIENT + 1;
        const OTHER: pid_t = CLIENT + 2;
        let mut tracer = Tracer::new(Roots::new(&[]), Default::default(), Processors::as_they_are(), None, None);
        let numbers = [CLIENT, SERVER, OTHER].map(|thread| tracer.add(thread, None, 0));
        for thread in [CLIENT, SERVER, OTHER] {
            let pending = tracer.pending(thread, 1, decode(libc::SYS_poll as u64, [0; 6]).expect("known"), 0);
            tracer.threads.get_mut(&thread).expect("it was added").pending = Some(pending);
        }
        let wakers: Vec<_> = (1..40)
            .map(|round| {
                let woken_ns = round * 10 * LONG_NS;
                tracer.was_at_work(SERVER, numbers[1], woken_ns);
                if round % 3 != 0 {
                    tracer.was_at_work(OTHER, numbers[2], woken_ns + 1);
                }
                tracer.waker(CLIENT, [woken_ns - LONG_NS, woken_ns - 1]).expect("there are two")
            })
            .collect();
        assert!(wakers[10..].iter().all(|waker| *waker == (SERVER, numbers[1])), "{wakers:?}");
        // It is not known whose work it was before.
        assert_eq!(wakers[0], (OTHER, numbers[2]));
        assert_eq!(tracer.waker(CLIENT, [u64::MAX; 2]), None);
    }
}
