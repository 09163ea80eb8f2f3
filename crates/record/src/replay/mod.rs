//! Replays a recording: makes the tree as it was, carries out the calls in their order, and compares what they return.

mod calls;
mod names;
mod program;
mod witnessed;

pub use program::{CompileError, EMPTY, OUTSIDE, Program};

use crate::call::{Kind, Node, is_implied};
use crate::latencies::Latencies;
pub(crate) use calls::Buffer;
use calls::{Caller, Common, close, open_beneath};
use fstone_engine::{Change, Witness};
use fstone_model::load::ReplayReport;
use fstone_model::{Histogram, text};
use program::{AWAITED, Action, DATA, TIMED, Target};
use rustix::fs::{
    Advice, AtFlags, Mode, OFlags, fadvise, fchmod, fstatvfs, ftruncate, linkat, mkdirat, symlinkat, syncfs,
};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use rustix::thread::futex;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use witnessed::Witnessed;

/// When a thread makes its next call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// After the time that it spent between the two when it was recorded, divided by this. Where it is not known how long calls took,
    /// so long after the last one began.
    Think(f64),
    /// At once.
    Full,
    /// When as much time has passed as in the recording, divided by this. Calls that come too late are counted.
    Clock(f64),
}

#[derive(Clone, Copy)]
pub struct Settings<'a> {
    pub pace: Pace,
    /// Drop the files of the tree from the page cache after they were made; as root, all caches of the machine.
    pub cold: bool,
    pub cancel: &'a AtomicBool,
    /// Who remembers what the kernel acknowledged. Writes then have stamps, and calls are watched outside of their times.
    pub witness: Option<&'a Witness>,
    /// Told what comes next.
    pub watch: &'a (dyn Fn(Moment) + Sync),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The tree was made.
    Made,
    /// The first calls are about to be made.
    Begins,
    /// All was done, and is durable.
    Synced,
}

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("cannot make {what} of the recorded tree: {errno}")]
    Tree { what: String, errno: Errno },
    #[error("the recorded tree has {needed_bytes} bytes, and there is room for {free_bytes}")]
    Room { needed_bytes: u64, free_bytes: u64 },
    #[error("this kernel has no openat2(2), which keeps a replay in its directory (Linux 5.6)")]
    Kernel,
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// With what was done until then, if it had begun.
    #[error("interrupted")]
    Interrupted(Option<Box<Report>>),
}

/// What one kind of calls did.
#[derive(Debug, Clone, Default)]
pub struct Replayed {
    pub calls: u64,
    pub failed: u64,
    pub bytes: u64,
    /// Of the files of the tree: a copy reads one and writes another.
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub latency: Histogram,
    pub recorded: Histogram,
    /// Calls whose result is another one than the recorded.
    pub different: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub thread: u32,
    /// The number of the call in its thread, as the recording has both.
    pub number: u64,
    pub kind: Kind,
    pub name: Vec<u8>,
    pub recorded: i64,
    pub got: i64,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = |result: i64| match i32::try_from(result) {
            Ok(errno @ -4095..=-1) => io::Error::from_raw_os_error(-errno).to_string(),
            _ => result.to_string(),
        };
        let (name, kind) = (text::line(&String::from_utf8_lossy(&self.name)), self.kind.name());
        let [recorded, got] = [self.recorded, self.got].map(words);
        write!(f, "thread {}, call {}: {kind} {name}: {got}; recorded: {recorded}", self.thread, self.number)
    }
}

/// How many differences are kept.
const SHOWN: usize = 10;

#[derive(Debug, Default)]
pub struct Report {
    pub setup_ns: u64,
    /// From the first call to the end of the last.
    pub elapsed_ns: u64,
    /// syncfs(2) afterwards.
    pub sync_ns: u64,
    /// User and system time of this process until then.
    pub cpu_ns: [u64; 2],
    /// The recording's time with the cost of recording, and without; of logs of other tools `None` where it is not known.
    pub recorded_ns: Option<u64>,
    pub expected_ns: Option<u64>,
    /// Why `expected_ns` is not the application's time.
    pub not_comparable: Option<&'static str>,
    pub threads: usize,
    pub kinds: BTreeMap<Kind, Replayed>,
    /// Sums over all threads: between calls, in calls, and waiting for calls of others. A thread that waits for another one to begin or
    /// to end is not counted.
    pub think_ns: u64,
    pub calls_ns: u64,
    pub waited_ns: u64,
    /// Of that, for calls on the same names and files, where the application did not wait.
    pub queued_ns: u64,
    /// With the clock's pace: calls that came later than recorded, by more than a millisecond.
    pub late: u64,
    pub differences: u64,
    /// Those of them that no lack of a feature in one of the filesystems explains.
    pub unexplained: u64,
    /// For which there was no room, here alone.
    pub full: u64,
    pub first: Vec<Difference>,
    pub left_out: BTreeMap<&'static str, u64>,
    /// Calls that the replay made and the application did not, to stay beneath its directory, and how long they took.
    pub extra: u64,
    pub extra_ns: u64,
    /// The recording was cut: what it has was replayed.
    pub is_cut: bool,
    /// With a witness: the application made something durable itself.
    pub promised: bool,
}

impl Report {
    pub fn calls(&self) -> u64 {
        self.kinds.values().map(|kind| kind.calls).sum()
    }

    /// Why more than a share of the calls returned something else than recorded, in words.
    pub fn differing(&self, share: f64) -> Option<String> {
        let words = ReplayReport::differing(self.unexplained, self.calls(), share)?;
        Some(match self.full {
            0 => words,
            full => format!("{words}: the filesystem is full, {full} calls found no room"),
        })
    }
}

/// Replays a program in an open directory that is empty and nobody else's.
///
/// # Errors
/// If the tree cannot be made, or on cancellation.
pub fn replay(program: &Program, root: BorrowedFd<'_>, settings: &Settings<'_>) -> Result<Report, ReplayError> {
    replay_with(program, root, settings, |_| 256 << 10)
}

/// Where threads wait until all are there, or one cannot be started.
#[derive(Default)]
struct Gate {
    /// Whether they are to run.
    state: Mutex<Option<bool>>,
    changed: Condvar,
}

impl Gate {
    fn open(&self, run: bool) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(run);
        self.changed.notify_all();
    }

    fn passed(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *state {
                Some(run) => return run,
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

fn replay_with(
    program: &Program,
    root: BorrowedFd<'_>,
    settings: &Settings<'_>,
    stack_bytes: fn(usize) -> usize,
) -> Result<Report, ReplayError> {
    let descriptors = getrlimit(Resource::Nofile).current.map_or(1 << 20, |most| most as usize);
    let texts: Vec<CString> = program.texts.iter().map(|text| CString::new(&**text).unwrap_or_default()).collect();
    let common = Common {
        program,
        root: root.as_raw_fd(),
        texts,
        files: (0..program.files).map(|_| AtomicI32::new(-1)).collect(),
        // The tree and copies have the first.
        data: std::array::from_fn(|kind| {
            (kind == 0 || program.data[kind]).then(|| Buffer::of_data(program.most_written, DATA[kind]))
        }),
        identity: [rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()],
        has_fchmodat2: calls::has_fchmodat2(),
    };
    let began = Instant::now();
    make_tree(&common, root, settings)?;
    let witnessed = settings.witness.map(|witness| Witnessed::new(witness, root, program.files));
    witnessed.iter().for_each(Witnessed::settled);
    let setup_ns = nanoseconds(began);
    (settings.watch)(Moment::Made);
    let lanes = program.lanes.len().max(1);
    let directories = (descriptors / 2 / lanes).clamp(1, 512);
    // Threads of a recording of thousands cannot all read as much at once as one can.
    let most_read = program.most_read.min((4 << 30) / lanes as u64);
    let progress: Vec<AtomicU32> = program.lanes.iter().map(|_| AtomicU32::new(0)).collect();
    let gate = Gate::default();
    let [expected_ns, recorded_ns] = program.times_ns();
    let mut report = Report {
        setup_ns,
        recorded_ns,
        expected_ns,
        not_comparable: program.not_comparable,
        is_cut: program.is_cut,
        threads: program.lanes.len(),
        left_out: program.left_out.clone(),
        ..Report::default()
    };
    let mut cpu_ns = [0; 2];
    let mut lanes = std::thread::scope(|scope| {
        let mut running = Vec::new();
        for index in 0..program.lanes.len() {
            let run =
                Run { common: &common, settings, witnessed: witnessed.as_ref(), progress: &progress, lane: index };
            let gate = &gate;
            let thread = std::thread::Builder::new().stack_size(stack_bytes(index)).spawn_scoped(scope, move || {
                calls::mask_nothing();
                let caller = Caller::new(run.common, directories, most_read);
                gate.passed().then(|| run.through(caller))
            });
            match thread {
                Ok(thread) => running.push(thread),
                Err(error) => {
                    // Those that wait there end at once.
                    gate.open(false);
                    return Err(ReplayError::Thread(error));
                }
            }
        }
        (settings.watch)(Moment::Begins);
        cpu_ns = calls::cpu_ns();
        let began = Instant::now();
        gate.open(true);
        let lanes: Vec<Done> =
            running.into_iter().filter_map(|thread| thread.join().expect("it does not panic")).collect();
        report.elapsed_ns = nanoseconds(began);
        Ok(lanes)
    })?;
    for file in &common.files {
        let fd = file.load(Ordering::Relaxed);
        if fd >= 0 {
            close(fd);
        }
    }
    report.promised = witnessed.as_ref().is_some_and(Witnessed::promised);
    let cancelled = settings.cancel.load(Ordering::Relaxed);
    let begun = settings.witness.map(Witness::tick);
    let began = Instant::now();
    if !cancelled {
        let synced = syncfs(root);
        report.sync_ns = nanoseconds(began);
        if let (Some(witness), Some(begun), Ok(())) = (settings.witness, begun, synced) {
            witness.changed(begun, Change::SyncedAll);
        }
    }
    let [before, after] = [cpu_ns, calls::cpu_ns()];
    if !cancelled {
        (settings.watch)(Moment::Synced);
    }
    report.cpu_ns = [after[0] - before[0], after[1] - before[1]];
    let mut first: Vec<_> = lanes.iter_mut().flat_map(|lane| std::mem::take(&mut lane.first)).collect();
    first.sort_by_key(|(moment, _)| *moment);
    report.first = first.into_iter().take(SHOWN).map(|(_, difference)| difference).collect();
    lanes.into_iter().for_each(|lane| lane.add_to(&mut report));
    for (kind, recorded) in &program.recorded {
        report.kinds.entry(*kind).or_default().recorded = recorded.clone();
    }
    if cancelled {
        let began = report.calls() > 0;
        return Err(ReplayError::Interrupted(began.then(|| Box::new(report))));
    }
    Ok(report)
}

fn nanoseconds(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}

fn make_tree(common: &Common<'_>, root: BorrowedFd<'_>, settings: &Settings<'_>) -> Result<(), ReplayError> {
    let needed_bytes = common.program.tree_bytes;
    if let Ok(facts) = fstatvfs(root) {
        let free_bytes = facts.f_bavail.saturating_mul(facts.f_frsize);
        if needed_bytes > free_bytes {
            return Err(ReplayError::Room { needed_bytes, free_bytes });
        }
    }
    let mut modes = Vec::new();
    let mut files = Vec::new();
    for entry in &common.program.tree {
        if settings.cancel.load(Ordering::Relaxed) {
            return Err(ReplayError::Interrupted(None));
        }
        let failed = |errno| ReplayError::Tree { what: String::from_utf8_lossy(&entry.path).into_owned(), errno };
        let (above, name) = above(&entry.path);
        let directory =
            beneath(common.root, above, OFlags::PATH | OFlags::DIRECTORY, 0).map_err(|errno| match errno {
                Errno::NOSYS => ReplayError::Kernel,
                errno => failed(errno),
            })?;
        let made = match &entry.node {
            Node::Directory => {
                modes.push((&entry.path, entry.mode));
                mkdirat(&directory, name, Mode::RWXU)
            }
            Node::File { size_bytes, stored_bytes } => {
                files.push(&entry.path);
                make_file(common, &directory, name, *size_bytes, *stored_bytes, entry.mode)
            }
            Node::Link { target } => symlinkat(target.as_slice(), &directory, name),
            Node::Special => Ok(()),
            Node::Name { of } => {
                let (of_above, of_name) = self::above(of);
                beneath(common.root, of_above, OFlags::PATH | OFlags::DIRECTORY, 0)
                    .and_then(|from| linkat(&from, of_name, &directory, name, AtFlags::empty()))
            }
        };
        made.map_err(failed)?;
    }
    // Rights that keep the maker out come last, and those of what is in a directory before its own.
    for (path, mode) in modes.iter().rev() {
        let failed = |errno| ReplayError::Tree { what: String::from_utf8_lossy(path).into_owned(), errno };
        let opened = beneath(common.root, path, OFlags::RDONLY | OFlags::NOFOLLOW, 0).map_err(failed)?;
        fchmod(&opened, Mode::from_raw_mode(u32::from(*mode) & 0o777)).map_err(failed)?;
    }
    let _ = syncfs(root);
    if settings.cold {
        checkpoint(root);
    }
    // Metadata goes with the caches of the whole machine only.
    if settings.cold && std::fs::write("/proc/sys/vm/drop_caches", "3").is_err() {
        for path in files {
            if let Ok(file) = beneath(common.root, path, OFlags::RDONLY | OFlags::NOFOLLOW, 0) {
                let _ = fadvise(&file, 0, None, Advice::DontNeed);
            }
        }
    }
    Ok(())
}

/// What ext4 has in its journal alone it keeps in memory as well, whatever caches are dropped: it goes to its place, if that is permitted.
#[expect(unsafe_code, reason = "a request of ext4's, without a safe wrapper")]
fn checkpoint(root: BorrowedFd<'_>) {
    /// `_IOW('f', 43, __u32)`, Linux 5.15.
    const EXT4_IOC_CHECKPOINT: libc::c_ulong = 0x4004_662b;
    let flags = 0u32;
    // SAFETY: the kernel reads a number. Other filesystems know no such request.
    unsafe { libc::ioctl(root.as_raw_fd(), EXT4_IOC_CHECKPOINT as _, &raw const flags) };
}

fn above(path: &[u8]) -> (&[u8], &[u8]) {
    path.iter().rposition(|byte| *byte == b'/').map_or((&path[..0], path), |at| (&path[..at], &path[at + 1..]))
}

fn beneath(root: i32, path: &[u8], flags: OFlags, mode: u16) -> Result<OwnedFd, Errno> {
    let path = CString::new(path).map_err(|_| Errno::INVAL)?;
    let opened = open_beneath(root, &path, (flags | OFlags::CLOEXEC).bits(), mode);
    if opened < 0 { Err(Errno::from_raw_os_error(-opened as i32)) } else { Ok(owned(opened as i32)) }
}

#[expect(unsafe_code, reason = "a descriptor that was just opened")]
fn owned(fd: i32) -> OwnedFd {
    // SAFETY: nobody else has it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn make_file(
    common: &Common<'_>,
    directory: &OwnedFd,
    name: &[u8],
    size_bytes: u64,
    stored_bytes: u64,
    mode: u16,
) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let mut file = File::from(beneath(directory.as_raw_fd(), name, flags, 0o600)?);
    let mut left = stored_bytes.min(size_bytes);
    let number = |error: &io::Error| Errno::from_io_error(error).unwrap_or(Errno::IO);
    while left > 0 {
        let part = left.min(1 << 20) as usize;
        // Of different files and places different data.
        let from = (size_bytes ^ left).wrapping_mul(4096) as usize % (1 << 19);
        file.write_all(common.data(0).part(from, part)).map_err(|error| number(&error))?;
        left -= part as u64;
    }
    if stored_bytes < size_bytes {
        ftruncate(&file, size_bytes)?;
    }
    // Now, because its owner may have no right to open it, and whatever the umask is.
    fchmod(&file, Mode::from_raw_mode(u32::from(mode) & 0o777))
}

/// One lane as it runs.
#[derive(Clone, Copy)]
struct Run<'a> {
    common: &'a Common<'a>,
    settings: &'a Settings<'a>,
    witnessed: Option<&'a Witnessed<'a>>,
    progress: &'a [AtomicU32],
    lane: usize,
}

#[derive(Default)]
struct Tally {
    latencies: Latencies,
    failed: u64,
    bytes: u64,
    read_bytes: u64,
    written_bytes: u64,
    different: u64,
}

struct Done {
    kinds: Vec<Tally>,
    think_ns: u64,
    waited_ns: u64,
    queued_ns: u64,
    late: u64,
    extra: u64,
    extra_ns: u64,
    unexplained: u64,
    full: u64,
    first: Vec<(Instant, Difference)>,
}

impl Run<'_> {
    fn through(self, mut caller: Caller<'_>) -> Done {
        let program = self.common.program;
        let lane = &program.lanes[self.lane];
        let mut done = Done {
            kinds: Kind::ALL.iter().map(|_| Tally::default()).collect(),
            think_ns: 0,
            waited_ns: 0,
            queued_ns: 0,
            late: 0,
            extra: 0,
            extra_ns: 0,
            unexplained: 0,
            full: 0,
            first: Vec::new(),
        };
        // Taken by calls that the application did not make, and not yet out of the time that the thread thinks.
        let mut debt_ns = 0;
        // Sleep is as exact as the machine's timers, and not 50 µs late.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let own = &self.progress[self.lane];
        let start = Instant::now();
        let mut now = start;
        // From when a call ends; where it counts from its begin, this has passed by itself.
        let between_ns = |passed: Duration| if program.has_durations { passed.as_nanos() as u64 } else { 0 };
        // When the time before the next call begins to count.
        let mut from = start;
        for (index, action) in lane.actions.iter().enumerate() {
            let waits = lane.waits_of(index);
            now = self.think(action, [start, from], now, &mut debt_ns, &mut done);
            if action.bits & TIMED != 0 {
                now = self.sleep(action, lane.ends_of_sleeps.get(&(index as u32)), now, &mut done);
            }
            if !waits.is_empty() {
                let waited = self.wait(waits);
                let ns = (waited - now).as_nanos() as u64;
                if !action.kind.is_of_threads() {
                    (done.waited_ns, done.queued_ns) = (done.waited_ns + ns, done.queued_ns + ns);
                } else if action.kind == Kind::Wakeup {
                    done.waited_ns += ns;
                }
                now = waited;
            }
            // What ended because of it did not wait and did not think.
            if self.settings.cancel.load(Ordering::Relaxed) {
                break;
            }
            from = now;
            if !action.kind.is_of_threads() {
                if let Pace::Clock(speed) = self.settings.pace {
                    let due = start + Duration::from_nanos((action.begin_ns as f64 / speed) as u64);
                    done.late += u64::from(now.saturating_duration_since(due) > Duration::from_millis(1));
                }
                let is_prepared = caller.prepare(action);
                let expected = self.witnessed.map(|witnessed| witnessed.expect(&mut caller, action));
                if is_prepared || expected.is_some() {
                    let opened = Instant::now();
                    let ns = (opened - now).as_nanos() as u64;
                    (debt_ns, done.extra_ns, now) = (debt_ns + ns, done.extra_ns + ns, opened);
                }
                from = now;
                let got = caller.perform(action);
                let mut after = Instant::now();
                done.count(action, got, (after - now).as_nanos() as u64);
                if differs(action, got) {
                    done.differs(program, self.lane, index, action, got);
                }
                if let Some((witnessed, expected)) = self.witnessed.zip(expected) {
                    witnessed.acknowledged(&mut caller, action, &expected, got);
                    let noted = Instant::now();
                    (debt_ns, after) = (debt_ns + between_ns(noted - after), noted);
                }
                now = after;
            }
            own.store(index as u32 + 1, Ordering::Release);
            if action.bits & AWAITED != 0 {
                let _ = futex::wake(own, futex::Flags::PRIVATE, u32::MAX >> 1);
                // It is no part of the next call.
                let woken = Instant::now();
                (debt_ns, now) = (debt_ns + between_ns(woken - now), woken);
            }
            if program.has_durations {
                from = now;
            }
        }
        // If it was cancelled, nobody waits for long.
        done.extra = caller.extra;
        done
    }

    fn wait(&self, waits: &[names::Mark]) -> Instant {
        for mark in waits {
            let progress = &self.progress[mark.lane as usize];
            let has_come = || progress.load(Ordering::Acquire) >= mark.count;
            if (0..100).any(|_| {
                std::hint::spin_loop();
                has_come()
            }) {
                continue;
            }
            loop {
                let now = progress.load(Ordering::Acquire);
                if now >= mark.count || self.settings.cancel.load(Ordering::Relaxed) {
                    break;
                }
                let most = rustix::time::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
                let _ = futex::wait(progress, futex::Flags::PRIVATE, now, Some(&most));
            }
        }
        Instant::now()
    }

    /// As long as the application waited at most, unless what woke it later has come.
    fn sleep(&self, action: &Action, end: Option<&names::Mark>, now: Instant, done: &mut Done) -> Instant {
        let Pace::Think(speed) = self.settings.pace else { return now };
        let Some(mark) = end else {
            return self.think(&Action { think_ns: action.length, ..*action }, [now; 2], now, &mut 0, done);
        };
        let until = now + Duration::from_nanos((action.length as f64 / speed) as u64);
        let progress = &self.progress[mark.lane as usize];
        let mut at = now;
        loop {
            let come = progress.load(Ordering::Acquire);
            let is_over = come >= mark.count || at >= until || self.settings.cancel.load(Ordering::Relaxed);
            if is_over {
                done.think_ns += (at - now).as_nanos() as u64;
                return at;
            }
            let most = (until - at).min(Duration::from_millis(50));
            let most = rustix::time::Timespec { tv_sec: 0, tv_nsec: most.as_nanos() as i64 };
            let _ = futex::wait(progress, futex::Flags::PRIVATE, come, Some(&most));
            at = Instant::now();
        }
    }

    fn think(
        &self,
        action: &Action,
        [start, last]: [Instant; 2],
        now: Instant,
        debt_ns: &mut u64,
        done: &mut Done,
    ) -> Instant {
        let (from, ns, speed) = match self.settings.pace {
            Pace::Full => return now,
            Pace::Think(speed) => (last, action.think_ns, speed),
            Pace::Clock(speed) => (start, action.begin_ns, speed),
        };
        let mut ns = (ns as f64 / speed) as u64;
        if matches!(self.settings.pace, Pace::Think(_)) {
            let paid_ns = ns.min(*debt_ns);
            (ns, *debt_ns) = (ns - paid_ns, *debt_ns - paid_ns);
        }
        let until = from + Duration::from_nanos(ns);
        if until <= now {
            return now;
        }
        // The last of it is waited for awake: waking up takes about as long.
        const AWAKE: Duration = Duration::from_micros(60);
        let mut at = now;
        while at < until && !self.settings.cancel.load(Ordering::Relaxed) {
            match (until - at).checked_sub(AWAKE) {
                Some(asleep) => std::thread::sleep(asleep.min(Duration::from_millis(50))),
                None => std::hint::spin_loop(),
            }
            at = Instant::now();
        }
        done.think_ns += (at - now).as_nanos() as u64;
        at
    }
}

/// Bytes count where the program asked for them; other results are of the filesystem's own (positions, lengths of lists).
fn differs(action: &Action, got: i64) -> bool {
    let recorded = i64::from(action.result);
    let moves = action.kind.reads() || action.kind.writes() || action.kind.is_copy();
    (recorded < 0 || got < 0 || moves) && recorded != got
}

/// Whether the recorded filesystem lacks what a call asks for, or this one does.
fn lacks_feature(action: &Action, result: i64) -> bool {
    let is_direct = action.flags & libc::O_DIRECT as u32 != 0;
    match (-result as i32, action.kind) {
        (libc::EOPNOTSUPP | libc::ENOSYS | libc::ENOTTY, _) => true,
        (libc::EINVAL, Kind::Open | Kind::SetFlags) => is_direct,
        (libc::EINVAL, Kind::Fallocate) | (libc::ENXIO, Kind::Seek) => true,
        (libc::EINVAL | libc::EXDEV, kind) => kind.is_copy() || kind == Kind::Reflink,
        _ => false,
    }
}

impl Done {
    fn count(&mut self, action: &Action, got: i64, took_ns: u64) {
        if is_implied(action.kind, action.flags) {
            return;
        }
        let tally = &mut self.kinds[action.kind as usize];
        tally.latencies.record(took_ns);
        tally.failed += u64::from(got < 0);
        let moved = got.max(0) as u64;
        let is_copy = action.kind.is_copy();
        tally.bytes += if action.kind.reads() || action.kind.writes() || is_copy { moved } else { 0 };
        tally.read_bytes += if action.kind.reads() || is_copy && action.file != 0 { moved } else { 0 };
        tally.written_bytes += if action.kind.writes() || is_copy && action.other != 0 { moved } else { 0 };
    }

    #[cold]
    fn differs(&mut self, program: &Program, lane: usize, index: usize, action: &Action, got: i64) {
        self.kinds[action.kind as usize].different += 1;
        let is_explained = [i64::from(action.result), got].iter().any(|result| lacks_feature(action, *result));
        self.unexplained += u64::from(!is_explained);
        self.full += u64::from([libc::ENOSPC, libc::EDQUOT].iter().any(|errno| got == -i64::from(*errno)));
        if self.first.len() < SHOWN {
            let Target { path, name, .. } = program.targets[action.at as usize];
            let name = if action.at == 0 {
                Vec::new()
            } else {
                crate::trace::joined(&program.texts[path as usize], &program.texts[name as usize])
            };
            let recorded = i64::from(action.result);
            let threads = &program.lanes[lane].threads;
            let (begin, thread) = threads[threads.partition_point(|(begin, _)| *begin <= index) - 1];
            let number = (index - begin) as u64 + 1;
            let difference = Difference { thread, number, kind: action.kind, name, recorded, got };
            self.first.push((Instant::now(), difference));
        }
    }

    fn add_to(self, report: &mut Report) {
        report.think_ns += self.think_ns;
        report.waited_ns += self.waited_ns;
        report.queued_ns += self.queued_ns;
        report.late += self.late;
        report.extra += self.extra;
        report.extra_ns += self.extra_ns;
        report.unexplained += self.unexplained;
        report.full += self.full;
        for (kind, tally) in Kind::ALL.iter().zip(self.kinds) {
            report.differences += tally.different;
            let calls = tally.latencies.count;
            if calls == 0 {
                continue;
            }
            let into = report.kinds.entry(*kind).or_default();
            report.calls_ns += tally.latencies.sum_ns as u64;
            into.calls += calls;
            into.failed += tally.failed;
            into.bytes += tally.bytes;
            into.read_bytes += tally.read_bytes;
            into.written_bytes += tally.written_bytes;
            into.different += tally.different;
            into.latency.merge(&tally.latencies.histogram());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Call, End, Entry, Start, Unknown};
    use crate::file::{Reader, Writer};
    use std::os::fd::AsFd;

    type Recording = Writer<Vec<u8>>;

    /// What a recording of one's own making does in a directory of its own.
    fn replayed(make: impl FnOnce(&mut Recording)) -> (tempfile::TempDir, Report) {
        replayed_before(None, make)
    }

    fn compiled_of(bytes: &[u8]) -> Result<Program, CompileError> {
        Program::compile_within(&mut Reader::new(bytes).expect("sound"), &AtomicBool::new(false), u64::MAX)
    }

    fn replayed_before(witness: Option<&Witness>, make: impl FnOnce(&mut Recording)) -> (tempfile::TempDir, Report) {
        let start = Start { roots: vec![b"/app".to_vec()], ..Start::default() };
        let mut writer = Writer::new(Vec::new(), start).expect("memory");
        make(&mut writer);
        let (bytes, _) = writer.finish(End { at_ns: 1, status: 0 }).expect("memory");
        let program = compiled_of(&bytes).expect("small");
        let place = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(place.path().join("victim"), "precious").expect("writable");
        std::fs::create_dir(place.path().join("replay")).expect("writable");
        let settings =
            Settings { pace: Pace::Full, cold: false, cancel: &AtomicBool::new(false), witness, watch: &|_| {} };
        let root = File::open(place.path().join("replay")).expect("it is there");
        let report = replay(&program, root.as_fd(), &settings).expect("it can be replayed");
        (place, report)
    }

    fn call(writer: &mut Recording, kind: Kind, at: &str, to: &str, change: impl FnOnce(&mut Call)) {
        let place = |writer: &mut Recording, name: &str| (!name.is_empty()).then(|| writer.place(0, name.as_bytes()));
        let (at, to) = (place(writer, at), place(writer, to));
        let mut call = Call { kind, thread: 1, at, to, mode: 0o644, ..Call::default() };
        change(&mut call);
        writer.call(call).expect("memory");
    }

    const MAKE: u32 = (libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC) as u32;

    /// It says that a link was not made, so that what comes next seems to be in the tree.
    #[test]
    fn a_recording_that_lies_does_not_lead_out() {
        let (place, report) = replayed(|writer| {
            for (link, target) in [("x", ".."), ("y", "../victim"), ("z", "/"), ("w", "/app/../victim")] {
                call(writer, Kind::Symlink, link, target, |call| call.result = -17);
            }
            let mut file = 0;
            let mut open = |writer: &mut Recording, name: &str| {
                file += 1;
                call(writer, Kind::Open, name, "", |call| (call.flags, call.other) = (MAKE, file));
                call(writer, Kind::Write, "", "", |call| (call.file, call.length, call.result) = (file, 4, 4));
            };
            for name in ["x/victim", "y", "x/new", "w", "../victim", "x/../victim", "/victim"] {
                open(writer, name);
            }
            call(writer, Kind::Mkdir, "x", "", |_| {});
            open(writer, "x/victim");
            for kind in [Kind::Unlink, Kind::Truncate, Kind::Chmod, Kind::Setxattr, Kind::Chown, Kind::Utimens] {
                for name in ["x/victim", "y"] {
                    call(writer, kind, name, if kind == Kind::Setxattr { "user.x" } else { "" }, |call| call.mode = 0);
                }
            }
            call(writer, Kind::Rename, "x/victim", "stolen", |_| {});
            call(writer, Kind::Link, "y", "linked", |call| call.flags = libc::AT_SYMLINK_FOLLOW as u32);
        });
        let victim = place.path().join("victim");
        assert_eq!(std::fs::read_to_string(&victim).expect("it is there"), "precious");
        let facts = std::fs::metadata(&victim).expect("it is there");
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&facts.permissions()) & 0o777, 0o644);
        assert_eq!(std::os::unix::fs::MetadataExt::nlink(&facts), 1);
        assert_eq!(std::fs::read_dir(place.path()).expect("it is there").count(), 2);
        assert!(report.differences > 4 && report.first.len() == SHOWN, "{report:?}");
    }

    /// They are made, and have no part in what calls took.
    #[test]
    fn opens_and_closes_that_the_program_did_not_make_are_not_counted() {
        let (_, report) = replayed(|writer| {
            for (other, opened, closed) in [(1, MAKE, 0), (2, crate::INHERITED, 0), (3, MAKE, crate::IMPLICIT)] {
                call(writer, Kind::Open, "f", "", |call| (call.flags, call.other) = (opened, other));
                call(writer, Kind::Fsync, "", "", |call| call.file = other);
                call(writer, Kind::Close, "", "", |call| (call.file, call.flags) = (other, closed));
            }
        });
        let counts: Vec<_> = report.kinds.iter().map(|(kind, one)| (*kind, one.calls, one.recorded.count())).collect();
        assert_eq!(counts, [(Kind::Open, 2, 2), (Kind::Close, 2, 2), (Kind::Fsync, 3, 3)]);
        assert_eq!((report.calls(), report.differences), (7, 0));
    }

    /// What the kernel acknowledged is there, and its loss is found, by whatever names files came to have.
    #[test]
    fn what_was_synced_is_looked_for_under_the_names_that_it_has() {
        let witness = Witness::new();
        let mut last = 0;
        let mut save = |writer: &mut Recording, name: &str, flags: i32, data_only: bool| {
            last += 1;
            let file = last;
            call(writer, Kind::Open, name, "", |call| (call.flags, call.other) = (MAKE | flags as u32, file));
            for (kind, length) in [(Kind::Write, 700), (Kind::Writev, 5000), (Kind::Pwrite, 100)] {
                let result = length as i64;
                call(writer, kind, "", "", |call| (call.file, call.length, call.result) = (file, length, result));
            }
            let sync = if data_only { Kind::Fdatasync } else { Kind::Fsync };
            call(writer, sync, "", "", |call| call.file = file);
            call(writer, Kind::Close, "", "", |call| call.file = file);
        };
        let (place, report) = replayed_before(Some(&witness), |writer| {
            let links = |call: &mut Call| call.flags = 0;
            save(writer, "new", 0, false);
            call(writer, Kind::Rename, "new", "kept", links);
            save(writer, "new", 0, false);
            call(writer, Kind::Rename, "new", "kept", links);
            save(writer, "linked", libc::O_APPEND, true);
            call(writer, Kind::Link, "linked", "other", links);
            call(writer, Kind::Unlink, "linked", "", links);
            call(writer, Kind::Mkdir, "linked", "", |call| call.mode = 0o755);
            save(writer, "one", 0, false);
            save(writer, "two", 0, false);
            call(writer, Kind::Rename, "one", "two", |call| call.flags = libc::RENAME_EXCHANGE);
            call(writer, Kind::Mkdir, "d", "", |call| call.mode = 0o755);
            save(writer, "d/deep", 0, false);
            call(writer, Kind::Rename, "d", "e", links);
            call(writer, Kind::Truncate, "one", "", |call| call.length = 100);
            call(writer, Kind::Sync, "", "", links);
            call(writer, Kind::Unlink, "e/deep", "", links);
            call(writer, Kind::Symlink, "e/deep", "nowhere", links);
        });
        assert_eq!(report.differences, 0, "{:?}", report.first);
        let kept = witness.look(witness.now(), false);
        assert!(kept.broken == 0 && kept.checked >= 8 && report.promised, "{kept:?}");
        let harm = |name: &str, harm: fn(&std::path::Path)| {
            let path = place.path().join("replay").join(name);
            let before = std::fs::read(&path).expect("it is there");
            harm(&path);
            let kept = witness.look(witness.now(), false);
            assert_eq!(kept.broken, 1, "{name}: {kept:?}");
            std::fs::write(&path, before).expect("writable");
        };
        let zero = |path: &std::path::Path| {
            let length = std::fs::metadata(path).expect("it is there").len();
            std::fs::write(path, vec![0; length as usize]).expect("writable");
        };
        harm("kept", zero);
        harm("other", zero);
        harm("two", |path| std::fs::remove_file(path).expect("it is there"));
    }

    #[test]
    fn a_range_that_is_zeroed_beyond_the_end_makes_a_file_longer() {
        let witness = Witness::new();
        let (place, report) = replayed_before(Some(&witness), |writer| {
            let flags = (libc::O_RDWR | libc::O_CREAT) as u32;
            call(writer, Kind::Open, "it", "", |call| (call.flags, call.other) = (flags, 1));
            call(writer, Kind::Ftruncate, "", "", |call| (call.file, call.length) = (1, 4096));
            call(writer, Kind::Fsync, "", "", |call| call.file = 1);
            call(writer, Kind::Fallocate, "", "", |call| {
                (call.file, call.offset, call.length) = (1, 4096, 8192);
                call.flags = libc::FALLOC_FL_ZERO_RANGE as u32;
            });
            call(writer, Kind::Fsync, "", "", |call| call.file = 1);
        });
        if report.differences > 0 {
            println!("skipped: no ranges can be zeroed on the filesystem of the temporary directory");
            return;
        }
        let broken = || witness.look(witness.now(), false).broken;
        assert_eq!(broken(), 0);
        std::fs::write(place.path().join("replay/it"), [0; 4096]).expect("writable");
        assert_ne!(broken(), 0, "as it was before");
    }

    /// By what it was before the last calls, which a disk may have forgotten.
    #[test]
    fn what_calls_leave_and_make_of_files_is_promised_by_the_next_sync() {
        type Change = fn(&mut Call);
        let calls: [(Kind, Change, bool); 6] = [
            (Kind::Ftruncate, |call| call.length = 1000, true),
            (Kind::Fallocate, |call| (call.offset, call.length) = (0, 9000), true),
            (Kind::Fallocate, |call| (call.length, call.flags) = (9000, libc::FALLOC_FL_KEEP_SIZE as u32), false),
            (
                Kind::Fallocate,
                |call| {
                    let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                    (call.offset, call.length, call.flags) = (1000, 9000, hole as u32);
                },
                true,
            ),
            (
                Kind::CopyRange,
                |call| {
                    (call.file, call.other, call.offset, call.other_offset) = (2, 1, 0, 6000);
                    (call.length, call.result) = (5000, 5000);
                },
                true,
            ),
            (Kind::Fallocate, |call| (call.length, call.result) = (0, -i64::from(libc::EINVAL)), false),
        ];
        for (number, (kind, change, is_promised)) in calls.into_iter().enumerate() {
            let witness = Witness::new();
            let (place, report) = replayed_before(Some(&witness), |writer| {
                for (name, file) in [("it", 1), ("other", 2)] {
                    let flags = (libc::O_RDWR | libc::O_CREAT) as u32;
                    call(writer, Kind::Open, name, "", |call| (call.flags, call.other) = (flags, file));
                    let bytes = |call: &mut Call| (call.file, call.length, call.result) = (file, 7000, 7000);
                    call(writer, Kind::Write, "", "", bytes);
                }
                call(writer, Kind::Fsync, "", "", |call| call.file = 1);
                call(writer, kind, "", "", |call| {
                    call.file = 1;
                    change(call);
                });
                call(writer, Kind::Fsync, "", "", |call| call.file = 1);
            });
            assert_eq!(report.differences, 0, "{number}: {:?}", report.first);
            let broken = || witness.look(witness.now(), false).broken;
            let path = place.path().join("replay/it");
            let after = std::fs::read(&path).expect("it is there");
            assert_eq!(broken(), 0, "{number}");
            let mut before = after.clone();
            before.resize(7000, 0);
            if number == 3 {
                before[1000..].fill(1);
            }
            std::fs::write(&path, before).expect("writable");
            assert_eq!(broken() > 0, is_promised, "{number}: as it was before");
            let mut damaged = after;
            damaged[3] ^= 1;
            std::fs::write(&path, damaged).expect("writable");
            assert!(broken() > 0, "{number}: what was to stay");
        }
    }

    #[test]
    fn an_application_that_syncs_nothing_is_promised_nothing() {
        for (flags, promised) in [(0, false), (libc::O_DSYNC, true)] {
            let (_place, report) = replayed_before(Some(&Witness::new()), |writer| {
                call(writer, Kind::Open, "x", "", |call| (call.flags, call.other) = (MAKE | flags as u32, 1));
                call(writer, Kind::Write, "", "", |call| (call.file, call.length, call.result) = (1, 700, 700));
                call(writer, Kind::Close, "", "", |call| call.file = 1);
            });
            assert_eq!((report.differences, report.promised), (0, promised));
        }
    }

    /// As GNU tar looks at the links that it made.
    #[test]
    fn nothing_is_promised_of_what_is_opened_to_be_looked_at() {
        let witness = Witness::new();
        let (_place, report) = replayed_before(Some(&witness), |writer| {
            let look = |writer: &mut Recording, name: &str, file: u32, flags: i32| {
                call(writer, Kind::Open, name, "", |call| (call.flags, call.other) = (flags as u32, file));
                call(writer, Kind::Fstat, "", "", |call| call.file = file);
                call(writer, Kind::Close, "", "", |call| call.file = file);
            };
            call(writer, Kind::Mkdir, "directory", "", |call| call.mode = 0o755);
            call(writer, Kind::Mknod, "file", "", |call| call.mode = 0o644);
            for (number, target) in (1..).zip(["nowhere", "directory", "file"]) {
                let link = format!("to-{target}");
                call(writer, Kind::Symlink, &link, target, |_| {});
                look(writer, &link, number, libc::O_PATH | libc::O_NOFOLLOW);
            }
            look(writer, "file", 4, libc::O_PATH);
            look(writer, "directory", 5, libc::O_PATH | libc::O_DIRECTORY);
        });
        assert_eq!(report.differences, 0, "{:?}", report.first);
        let kept = witness.look(witness.now(), false);
        assert_eq!((kept.checked, kept.broken), (0, 0), "{kept:?}");
    }

    /// The second thread can only be right if it waits for the first, again and again.
    #[test]
    fn what_one_thread_makes_another_uses_afterwards() {
        const ROUNDS: u32 = 300;
        let (_place, report) = replayed(|writer| {
            call(writer, Kind::Spawn, "", "", |call| call.result = 2);
            for round in 0..ROUNDS {
                let name = format!("d{}/f", round % 7);
                let thread = |which: u32| move |call: &mut Call| call.thread = which;
                call(writer, Kind::Mkdir, &name[..2], "", thread(1));
                call(writer, Kind::Open, &name, "", |call| (call.flags, call.other) = (MAKE, 2 * round + 1));
                let write = |call: &mut Call| (call.file, call.length, call.result) = (2 * round + 1, 5000, 5000);
                call(writer, Kind::Write, "", "", write);
                call(writer, Kind::Open, &name, "", |call| (call.thread, call.other) = (2, 2 * round + 2));
                call(writer, Kind::Read, "", "", |call| {
                    (call.thread, call.file, call.length, call.result) = (2, 2 * round + 2, 9000, 5000);
                });
                call(writer, Kind::Rename, &name, "moved", thread(2));
                call(writer, Kind::Stat, &name, "", |call| call.result = -2);
                call(writer, Kind::Unlink, "moved", "", thread(1));
                call(writer, Kind::Rmdir, &name[..2], "", thread(2));
                call(writer, Kind::Close, "", "", |call| call.file = 2 * round + 1);
                call(writer, Kind::Close, "", "", |call| (call.thread, call.file) = (2, 2 * round + 2));
            }
        });
        assert_eq!((report.differences, report.threads), (0, 2), "{:?}", report.first);
        assert_eq!(report.calls(), u64::from(ROUNDS) * 11);
    }

    fn compiled(make: impl FnOnce(&mut Recording)) -> Result<Program, CompileError> {
        let mut writer = Writer::new(Vec::new(), Start::default()).expect("memory");
        make(&mut writer);
        let (bytes, _) = writer.finish(End { at_ns: 1_000_000_000, status: 0 }).expect("memory");
        compiled_of(&bytes)
    }

    #[test]
    fn other_versions_are_refused() {
        let mut writer = Writer::new(Vec::new(), Start::default()).expect("memory");
        call(&mut writer, Kind::Mkdir, "d", "", |_| {});
        let (mut bytes, _) = writer.finish(End { at_ns: 1, status: 0 }).expect("memory");
        assert!(compiled_of(&bytes).is_ok());
        bytes[16] -= 1;
        assert!(matches!(Reader::new(&bytes[..]), Err(crate::ReadError::Version { .. })));
    }

    /// Once this was the largest result there is, and more than the buffer.
    #[test]
    fn results_that_no_call_has_are_refused() {
        for result in [-4096, -5_000_000_000, i64::MIN] {
            let made = compiled(|writer| {
                call(writer, Kind::Open, "out", "", |call| (call.flags, call.other) = (MAKE, 1));
                call(writer, Kind::Sendfile, "", "", |call| (call.other, call.result) = (1, result));
            });
            assert!(matches!(made, Err(CompileError::Damaged { kind: Kind::Sendfile, number: 2 })), "{result}");
        }
    }

    /// Each of these was a panic.
    #[test]
    fn calls_without_what_they_are_about_are_refused() {
        for (kind, file) in [(Kind::Close, 0), (Kind::Mkdir, 1), (Kind::Rename, 1), (Kind::Seek, 0), (Kind::Write, 0)] {
            let made = compiled(|writer| {
                call(writer, Kind::Open, "x", "", |call| (call.flags, call.other) = (MAKE, 1));
                let at = if file == 0 { "x" } else { "" };
                call(writer, kind, at, "", |call| (call.file, call.result) = (file, 1));
            });
            assert!(matches!(made, Err(CompileError::Damaged { number: 2, .. })), "{kind:?}");
        }
        // A failed call that had no name is not its recording's fault.
        assert!(compiled(|writer| call(writer, Kind::Open, "", "", |call| call.result = -2)).is_ok());
    }

    /// By numbers of the calls of threads, each of which has a lane of its own.
    fn waits_for(program: &Program, waiting: (usize, usize), lane: u32) -> Option<u32> {
        let first = |lane: usize| program.lanes[lane].threads[0].0;
        let waits = program.lanes[waiting.0].waits_of(first(waiting.0) + waiting.1);
        waits.iter().find(|mark| mark.lane == lane).map(|mark| mark.count - first(lane as usize) as u32)
    }

    /// The second thread works below a directory that it has open; the replay opens it by its path.
    #[test]
    fn a_directory_is_renamed_after_what_was_done_below_and_used_under_its_new_name_afterwards() {
        let program = compiled(|writer| {
            for path in ["d", "d/e", "d/e/x"] {
                writer.entry(Entry { path: path.into(), mode: 0o755, node: Node::Directory }).expect("memory");
            }
            let place = |name: &str, writer: &mut Recording| Some(writer.place(9, name.as_bytes()));
            call(writer, Kind::Open, "d/e", "", |call| call.other = 9);
            call(writer, Kind::Spawn, "", "", |call| call.result = 2);
            let at = place("x", writer);
            call(writer, Kind::Stat, "", "", |call| (call.thread, call.at) = (2, at));
            call(writer, Kind::Rename, "d", "f", |_| {});
            let at = place("y", writer);
            call(writer, Kind::Mkdir, "", "", |call| (call.thread, call.at) = (2, at));
        })
        .expect("small");
        assert_eq!(waits_for(&program, (0, 2), 1), Some(1), "the rename waits for stat");
        assert_eq!(waits_for(&program, (1, 1), 0), Some(3), "mkdir waits for the rename");
    }

    #[test]
    fn a_read_that_came_to_the_end_is_before_the_write_that_moved_it_and_others_before_a_truncation() {
        let program = compiled(|writer| {
            call(writer, Kind::Open, "f", "", |call| (call.flags, call.other) = (MAKE, 1));
            call(writer, Kind::Spawn, "", "", |call| call.result = 2);
            call(writer, Kind::Open, "f", "", |call| (call.thread, call.other) = (2, 2));
            let read = |result| {
                move |call: &mut Call| {
                    (call.thread, call.file, call.length, call.result) = (2, 2, 100, result);
                }
            };
            let write = |call: &mut Call| (call.file, call.length, call.result) = (1, 100, 100);
            call(writer, Kind::Read, "", "", read(0));
            call(writer, Kind::Write, "", "", write);
            call(writer, Kind::Read, "", "", read(100));
            call(writer, Kind::Ftruncate, "", "", |call| call.file = 1);
        })
        .expect("small");
        assert_eq!(waits_for(&program, (0, 2), 1), Some(2), "the write waits for the read at the end");
        assert_eq!(waits_for(&program, (1, 2), 0), Some(3), "the second read waits for the write");
        assert_eq!(waits_for(&program, (0, 3), 1), Some(3), "the truncation waits for it");
    }

    /// A second thread overwrites what the first one syncs and cuts, and empties a directory that the first cannot remove.
    #[test]
    fn syncs_come_after_writes_truncations_after_overwrites_and_removals_that_fail_before_those_that_succeed() {
        let program = compiled(|writer| {
            let at = |end_ns: u64, change: fn(&mut Call)| {
                move |call: &mut Call| {
                    change(call);
                    (call.begin_ns, call.took_ns) = (end_ns - 5, 5);
                }
            };
            let write = |call: &mut Call| {
                (call.thread, call.file, call.length, call.result) = (2, 2, 100, 100);
            };
            let node = Node::File { size_bytes: 1000, stored_bytes: 1000 };
            writer.entry(Entry { path: b"f".to_vec(), mode: 0o644, node }).expect("memory");
            call(writer, Kind::Open, "f", "", |call| (call.flags, call.other) = (libc::O_RDWR as u32, 1));
            call(writer, Kind::Spawn, "", "", |call| call.result = 2);
            call(writer, Kind::Open, "f", "", |call| {
                (call.thread, call.flags, call.other) = (2, libc::O_RDWR as u32, 2);
            });
            call(writer, Kind::Pwrite, "", "", at(10, write));
            call(writer, Kind::Fsync, "", "", at(20, |call| call.file = 1));
            // It is not over when the sync begins.
            call(writer, Kind::Pwrite, "", "", at(28, write));
            call(writer, Kind::Fdatasync, "", "", at(30, |call| call.file = 1));
            call(writer, Kind::Ftruncate, "", "", at(40, |call| call.file = 1));
            call(writer, Kind::Mkdir, "d", "", at(50, |call| call.thread = 2));
            call(writer, Kind::Sync, "", "", at(60, |_| {}));
            call(writer, Kind::Mkdir, "d/x", "", at(70, |call| call.thread = 2));
            call(writer, Kind::Rmdir, "d", "", at(80, |call| call.result = -39));
            call(writer, Kind::Rmdir, "d/x", "", at(90, |call| call.thread = 2));
        })
        .expect("small");
        let waits = [2, 3, 4, 5, 6].map(|index| waits_for(&program, (0, index), 1));
        assert_eq!(waits, [Some(2), None, Some(3), Some(4), Some(5)]);
        assert_eq!(waits_for(&program, (1, 5), 0), Some(7), "it is empty after the failed removal");
    }

    #[test]
    fn copies_and_vectors_go_where_they_went() {
        let (place, report) = replayed(|writer| {
            let open =
                |file| move |call: &mut Call| (call.flags, call.other) = ((libc::O_RDWR | libc::O_CREAT) as u32, file);
            call(writer, Kind::Open, "a", "", open(1));
            call(writer, Kind::Open, "b", "", open(2));
            let moved = |file, length, flags| {
                move |call: &mut Call| {
                    (call.file, call.length, call.result, call.flags) = (file, length, length as i64, flags as u32);
                }
            };
            call(writer, Kind::Write, "", "", moved(1, 9000, 0));
            let copy = |offset, other_offset, result| {
                move |call: &mut Call| {
                    (call.file, call.other, call.length, call.result) = (1, 2, 4000, result);
                    (call.offset, call.other_offset) = (offset, other_offset);
                }
            };
            call(writer, Kind::CopyRange, "", "", copy(8000, 50_000, 1000));
            call(writer, Kind::Sendfile, "", "", copy(8500, -1, 500));
            call(writer, Kind::CopyRange, "", "", copy(-1, -1, 0));
            // At the end, wherever the offset is; and at the position, which moves to there.
            call(writer, Kind::Pwritev, "", "", moved(2, 100, libc::RWF_APPEND));
            call(writer, Kind::Writev, "", "", moved(2, 100, libc::RWF_DSYNC));
            call(writer, Kind::SetFlags, "", "", |call| (call.file, call.flags) = (2, libc::O_APPEND as u32));
            call(writer, Kind::Write, "", "", moved(2, 10, 0));
            call(writer, Kind::Statfs, "a", "", |_| {});
            call(writer, Kind::Readahead, "", "", |call| (call.file, call.length) = (1, 4096));
            call(writer, Kind::Chmod, ".", "", |call| call.mode = 0o755);
        });
        let size = |name: &str| std::fs::metadata(place.path().join("replay").join(name)).expect("it was made").len();
        assert_eq!((report.differences, size("a"), size("b")), (0, 9000, 51_110), "{:?}", report.first);
        assert_eq!(report.left_out.into_values().sum::<u64>(), 1, "the top keeps its mode");
    }

    /// Each of them would succeed here.
    #[test]
    fn a_call_that_failed_for_a_reason_that_is_not_here_changes_nothing() {
        let (place, report) = replayed(|writer| {
            let node = Node::File { size_bytes: 1000, stored_bytes: 1000 };
            writer.entry(Entry { path: b"keep".to_vec(), mode: 0o644, node }).expect("memory");
            writer.entry(Entry { path: b"d".to_vec(), mode: 0o755, node: Node::Directory }).expect("memory");
            let failed = |errno: i32| move |call: &mut Call| (call.flags, call.result) = (MAKE, -i64::from(errno));
            for errno in [libc::EMFILE, libc::ENFILE, libc::ETXTBSY, libc::ELOOP, libc::EXDEV, libc::EAGAIN] {
                call(writer, Kind::Open, "keep", "", failed(errno));
                call(writer, Kind::Open, "new", "", failed(errno));
                call(writer, Kind::Open, "none/new", "", failed(errno));
            }
            let errno = |errno: i32| move |call: &mut Call| call.result = -i64::from(errno);
            call(writer, Kind::Truncate, "keep", "", errno(libc::ETXTBSY));
            call(writer, Kind::Rename, "keep", "d/in", errno(libc::EXDEV));
            call(writer, Kind::Link, "keep", "d/in", errno(libc::EXDEV));
            call(writer, Kind::Rename, "keep", "other", errno(libc::EINVAL));
            call(writer, Kind::Rmdir, "d", "", errno(libc::EBUSY));
            call(writer, Kind::Unlink, "keep", "", errno(libc::EBUSY));
            call(writer, Kind::Open, "keep", "", |call| (call.flags, call.other) = (libc::O_RDWR as u32, 1));
            call(writer, Kind::Link, "", "d/in", |call| (call.file, call.result) = (1, -2));
            let on = |length: u64, result: i64| {
                move |call: &mut Call| (call.file, call.length, call.result) = (1, length, result)
            };
            for kind in [Kind::Write, Kind::Writev, Kind::Pwritev, Kind::Ftruncate, Kind::Fallocate] {
                call(writer, kind, "", "", on(5000, -i64::from(libc::EFBIG)));
                call(writer, kind, "", "", on(5000, -i64::from(libc::EINVAL)));
            }
            // Of a limit's last bytes.
            call(writer, Kind::Write, "", "", on(5000, 1200));
        });
        assert_eq!(report.differences, 0, "{:?}", report.first);
        let names = |below: &str| {
            let found = std::fs::read_dir(place.path().join("replay").join(below)).expect("readable").flatten();
            let mut names: Vec<_> = found.map(|found| found.file_name()).collect();
            names.sort();
            names
        };
        assert!(names("") == ["d", "keep"] && names("d").is_empty(), "{:?} {:?}", names(""), names("d"));
        assert_eq!(std::fs::metadata(place.path().join("replay/keep")).expect("it is there").len(), 1200);
    }

    /// As `cp` does it: it tries what its two filesystems may not do, and then reads and writes.
    #[test]
    fn a_copy_that_failed_moves_nothing() {
        let (place, report) = replayed(|writer| {
            let open =
                |file| move |call: &mut Call| (call.flags, call.other) = ((libc::O_RDWR | libc::O_CREAT) as u32, file);
            call(writer, Kind::Open, "a", "", open(1));
            call(writer, Kind::Open, "b", "", open(2));
            let moved = |file, length| {
                move |call: &mut Call| (call.file, call.length, call.result) = (file, length, length as i64)
            };
            call(writer, Kind::Pwrite, "", "", moved(1, 9000));
            for (errno, [file, other]) in [
                (libc::EXDEV, [0, 2]),
                (libc::EINVAL, [0, 2]),
                (libc::ENOSPC, [0, 2]),
                (libc::EXDEV, [1, 0]),
                (libc::EINVAL, [1, 2]),
                (libc::EXDEV, [1, 2]),
            ] {
                call(writer, Kind::CopyRange, "", "", |call| {
                    (call.file, call.other, call.length, call.result) = (file, other, 9000, -i64::from(errno));
                    (call.offset, call.other_offset) = (-1, -1);
                });
            }
            call(writer, Kind::Reflink, "", "", |call| {
                (call.file, call.other, call.result) = (1, 2, -i64::from(libc::EXDEV));
            });
            call(writer, Kind::Read, "", "", moved(1, 9000));
            call(writer, Kind::Write, "", "", moved(2, 5000));
        });
        assert_eq!(report.differences, 0, "{:?}", report.first);
        assert_eq!(std::fs::metadata(place.path().join("replay/b")).expect("it is there").len(), 5000);
    }

    #[test]
    fn a_hostile_name_does_not_make_compiling_endless() {
        let mut writer = Writer::new(Vec::new(), Start::default()).expect("memory");
        let node = Node::Link { target: b"a/../".repeat(6900) };
        writer.entry(Entry { path: b"l".to_vec(), mode: 0o777, node }).expect("memory");
        writer.entry(Entry { path: b"a".to_vec(), mode: 0o755, node: Node::Directory }).expect("memory");
        for _ in 0..100_000 {
            call(&mut writer, Kind::Stat, "l", "", |_| {});
        }
        let (bytes, _) = writer.finish(End { at_ns: 1, status: 0 }).expect("memory");
        let cancelled = Program::compile(&mut Reader::new(&bytes[..]).expect("sound"), &AtomicBool::new(true));
        assert!(matches!(cancelled, Err(CompileError::Interrupted)));
    }

    /// Two threads read an open file at once; a third reads when they are done.
    #[test]
    fn the_time_of_calls_that_overlapped_is_not_their_sum() {
        let program = compiled(|writer| {
            let read = |thread, begin_ns, think_ns| {
                move |call: &mut Call| {
                    (call.thread, call.file, call.length, call.result) = (thread, 1, 100, 0);
                    (call.begin_ns, call.think_ns, call.took_ns) = (begin_ns, think_ns, 400_000_000);
                }
            };
            call(writer, Kind::Open, "f", "", |call| (call.flags, call.other) = (MAKE, 1));
            call(writer, Kind::Spawn, "", "", |call| call.result = 2);
            call(writer, Kind::Spawn, "", "", |call| call.result = 3);
            call(writer, Kind::Pread, "", "", read(1, 0, 0));
            call(writer, Kind::Pread, "", "", read(2, 100_000_000, 100_000_000));
            call(writer, Kind::Pread, "", "", read(3, 510_000_000, 10_000_000));
        });
        let program = program.expect("small");
        let begins = |lane: usize| program.lanes[lane].actions.last().expect("it has some").begin_ns;
        assert_eq!([0, 1].map(begins), [0, 100_000_000]);
        // It thinks from where its thread begins, and not after what its first call waits for.
        assert_eq!((begins(2), program.expected_ns), (500_000_000, 900_000_000));
    }

    /// A thread polls with a limit, and then waits until another one has made a call.
    #[test]
    fn a_wait_for_a_thread_lasts_until_that_one_has_come() {
        let program = compiled(|writer| {
            let of = |thread, think_ns| {
                move |call: &mut Call| (call.thread, call.think_ns, call.result) = (thread, think_ns, -2)
            };
            let wakeup = |begin_ns, result, flags| {
                move |call: &mut Call| {
                    (call.begin_ns, call.took_ns, call.result) = (begin_ns, 50_000_000_000, result);
                    (call.length, call.flags) = (1, flags);
                }
            };
            call(writer, Kind::Spawn, "", "", |call| call.result = 2);
            call(writer, Kind::Wakeup, "", "", wakeup(0, 0, crate::call::TIMED_OUT));
            call(writer, Kind::Stat, "x", "", of(1, 2_000_000));
            call(writer, Kind::Stat, "x", "", of(2, 100_000_000));
            call(writer, Kind::Wakeup, "", "", wakeup(90_000_000_000, 2, 0));
            call(writer, Kind::Stat, "x", "", of(1, 3_000_000));
            // Of threads and calls that are none.
            call(writer, Kind::Wakeup, "", "", |call| (call.took_ns, call.result) = (1, 7));
            call(writer, Kind::Wakeup, "", "", |call| (call.result, call.length) = (2, 9));
            // Ended by the program's end.
            call(writer, Kind::Wakeup, "", "", |call| {
                (call.thread, call.took_ns, call.flags) = (2, 70_000_000_000, crate::call::TIMED_OUT);
            });
            call(writer, Kind::Exit, "", "", |call| call.thread = 2);
        });
        let program = program.expect("small");
        assert_eq!(program.expected_ns, 103_000_001);
        let begins: Vec<u64> = program.lanes[0].actions.iter().map(|action| action.begin_ns).collect();
        assert_eq!(begins[3..], [100_000_000, 103_000_000, 103_000_001, 103_000_001]);
        let place = tempfile::tempdir().expect("a temporary directory");
        let root = File::open(place.path()).expect("it is there");
        let cancel = AtomicBool::new(false);
        let settings = Settings { pace: Pace::Think(1.0), cold: false, cancel: &cancel, witness: None, watch: &|_| {} };
        let report = replay(&program, root.as_fd(), &settings).expect("it can be replayed");
        // Neither of the two waits takes 50 s.
        assert!((105_000_000..50_000_000_000).contains(&report.elapsed_ns), "{report:?}");
        assert_eq!((report.calls(), report.differences), (3, 0));
    }

    fn replayed_until(
        make: impl FnOnce(&mut Recording),
        pace: Pace,
        cancel_after: Option<Duration>,
    ) -> Result<Report, ReplayError> {
        let program = compiled(make).expect("small");
        let place = tempfile::tempdir().expect("a temporary directory");
        let cancel = AtomicBool::new(false);
        let (begins, begun) = std::sync::mpsc::channel();
        let watch = |moment| {
            let _ = begins.send(moment);
        };
        let settings = Settings { pace, cold: false, cancel: &cancel, witness: None, watch: &watch };
        let root = File::open(place.path()).expect("it is there");
        std::thread::scope(|scope| {
            if let Some(time) = cancel_after {
                let cancel = &cancel;
                scope.spawn(move || {
                    begun.iter().find(|moment| *moment == Moment::Begins);
                    std::thread::sleep(time);
                    cancel.store(true, Ordering::Relaxed);
                });
            }
            replay(&program, root.as_fd(), &settings)
        })
    }

    #[test]
    fn an_interrupted_replay_has_the_figures_until_then() {
        let make = |writer: &mut Recording| {
            for _ in 0..1000 {
                call(writer, Kind::Stat, "x", "", |call| (call.think_ns, call.result) = (10_000_000, -2));
            }
        };
        let ended = replayed_until(make, Pace::Think(1.0), Some(Duration::from_millis(500)));
        let Err(ReplayError::Interrupted(Some(report))) = ended else { panic!("{ended:?}") };
        // Each call has its time before it, also the last.
        assert!(report.calls() * 10_000_000 <= report.elapsed_ns, "{} in {} ns", report.calls(), report.elapsed_ns);
        assert!(report.sync_ns == 0 && report.calls() < 1000);
    }

    /// What the application waited for itself is not what the replay's order costs.
    #[test]
    fn a_thread_that_is_woken_did_not_queue() {
        let make = |of_file: bool| {
            move |writer: &mut Recording| {
                call(writer, Kind::Open, "x", "", |call| (call.flags, call.other) = (MAKE, 1));
                call(writer, Kind::Spawn, "", "", |call| call.result = 2);
                let think = |call: &mut Call| (call.thread, call.think_ns, call.file) = (2, 100_000_000, 1);
                call(writer, Kind::Fsync, "", "", think);
                if of_file {
                    call(writer, Kind::Fsync, "", "", |call| call.file = 1);
                } else {
                    call(writer, Kind::Wakeup, "", "", |call| call.thread = 2);
                    call(writer, Kind::Wakeup, "", "", |call| (call.result, call.length) = (2, 2));
                }
            }
        };
        for of_file in [true, false] {
            let report = replayed_until(make(of_file), Pace::Think(1.0), None).expect("it can be replayed");
            assert!(report.elapsed_ns >= 100_000_000 && report.waited_ns >= 90_000_000, "{report:?}");
            assert_eq!(report.queued_ns >= 90_000_000, of_file, "{report:?}");
        }
    }

    /// What the application had to wait for anyway is no waiting of the replay.
    #[test]
    fn waiting_for_a_thread_to_end_is_not_waiting_for_its_calls() {
        let make = |writer: &mut Recording| {
            call(writer, Kind::Spawn, "", "", |call| call.result = 2);
            call(writer, Kind::Stat, "x", "", |call| {
                (call.thread, call.think_ns, call.result) = (2, 100_000_000, -2);
            });
            call(writer, Kind::Exit, "", "", |call| call.thread = 2);
            call(writer, Kind::Wait, "", "", |call| call.result = 2);
        };
        let report = replayed_until(make, Pace::Think(1.0), None).expect("it can be replayed");
        assert!(report.elapsed_ns >= 100_000_000 && report.waited_ns < 50_000_000, "{report:?}");
    }

    /// The file that is cut is opened before, and that is no part of the call.
    #[test]
    fn opening_a_file_to_cut_it_is_taken_out() {
        const TIMES: u64 = 2000;
        let make = |writer: &mut Recording| {
            call(writer, Kind::Mknod, "f", "", |_| {});
            for _ in 0..TIMES {
                call(writer, Kind::Truncate, "f", "", |call| call.length = 10);
            }
        };
        let report = replayed_until(make, Pace::Full, None).expect("it can be replayed");
        assert_eq!((report.differences, report.extra), (0, 1 + 2 * TIMES), "{:?}", report.first);
        // openat2 takes a microsecond.
        assert!(report.extra_ns > TIMES * 200, "{} ns", report.extra_ns);
    }

    #[test]
    fn large_calls_move_all_that_they_did() {
        const BYTES: u64 = 150 << 20;
        let (_place, report) = replayed(|writer| {
            call(writer, Kind::Open, "f", "", |call| {
                (call.flags, call.other) = (libc::O_RDWR as u32 | MAKE & !(libc::O_WRONLY as u32), 1);
            });
            let moved = |call: &mut Call| (call.file, call.length, call.result) = (1, BYTES, BYTES as i64);
            call(writer, Kind::Write, "", "", moved);
            call(writer, Kind::Pread, "", "", moved);
            call(writer, Kind::Ftruncate, "", "", |call| call.file = 1);
        });
        assert_eq!((report.differences, report.kinds[&Kind::Pread].bytes), (0, BYTES), "{:?}", report.first);
    }

    #[test]
    fn memory_has_a_limit() {
        let mut writer = Writer::new(Vec::new(), Start::default()).expect("memory");
        for number in 0..400_000 {
            call(&mut writer, Kind::Stat, &format!("f{number}"), "", |_| {});
        }
        let (bytes, _) = writer.finish(End { at_ns: 1, status: 0 }).expect("memory");
        let made =
            Program::compile_within(&mut Reader::new(&bytes[..]).expect("sound"), &AtomicBool::new(false), 8 << 20);
        assert!(matches!(made, Err(CompileError::Memory { calls: 1024..300_000, .. })));
    }

    /// What opened directories took is thought less, and the clock's pace is that of the application without what recording cost.
    #[test]
    fn times_are_those_of_the_calls() {
        let recorded = |pace| {
            let make = |writer: &mut Recording| {
                for number in 0..200u64 {
                    let (begin_ns, think_ns) = (number * 3_000_000, 1_000_000);
                    call(writer, Kind::Stat, "x", "", |call| {
                        (call.begin_ns, call.think_ns, call.result) = (begin_ns, think_ns, -2);
                    });
                }
            };
            let program = compiled(make).expect("small");
            let place = tempfile::tempdir().expect("a temporary directory");
            let settings =
                Settings { pace, cold: false, cancel: &AtomicBool::new(false), witness: None, watch: &|_| {} };
            let root = File::open(place.path()).expect("it is there");
            replay(&program, root.as_fd(), &settings).expect("it can be replayed")
        };
        let report = recorded(Pace::Clock(2.0));
        // It is what the application took, at whatever speed.
        assert_eq!(report.expected_ns, Some(200_000_000));
        assert!((95_000_000..500_000_000).contains(&report.elapsed_ns), "{}", report.elapsed_ns);
        let report = recorded(Pace::Think(1.0));
        assert_eq!((report.expected_ns, report.extra), (Some(200_000_000), 1));
        assert!(report.extra_ns > 0 && !report.is_cut);
    }

    /// What calls take here does not come on top of it, and what is known of how long they took is part of it.
    #[test]
    fn where_durations_are_not_known_a_call_begins_so_long_after_the_last_one_began() {
        const GAP_NS: u64 = 100_000_000;
        const LENGTH: u64 = 64 << 20;
        let start = Start { unknown: vec![Unknown::Durations], ..Start::default() };
        let mut writer = Writer::new(Vec::new(), start).expect("memory");
        call(&mut writer, Kind::Open, "f", "", |call| (call.flags, call.other) = (MAKE, 1));
        for number in 1..9 {
            call(&mut writer, Kind::Pwrite, "", "", |call| {
                (call.file, call.length, call.result) = (1, LENGTH, LENGTH as i64);
                call.begin_ns = number * GAP_NS;
                (call.took_ns, call.think_ns) = if number == 4 { (GAP_NS / 2, GAP_NS) } else { (0, GAP_NS) };
                call.think_ns -= if number == 5 { GAP_NS / 2 } else { 0 };
            });
        }
        let (bytes, _) = writer.finish(End { at_ns: 8 * GAP_NS, status: 0 }).expect("memory");
        let program = compiled_of(&bytes).expect("small");
        let place = tempfile::tempdir().expect("a temporary directory");
        let pace = Pace::Think(1.0);
        let settings = Settings { pace, cold: false, cancel: &AtomicBool::new(false), witness: None, watch: &|_| {} };
        let root = File::open(place.path()).expect("it is there");
        let report = replay(&program, root.as_fd(), &settings).expect("it can be replayed");
        assert_eq!((report.expected_ns, report.differences), (Some(8 * GAP_NS), 0));
        assert_eq!((report.recorded_ns, report.not_comparable), (None, None));
        assert!(report.elapsed_ns > 8 * GAP_NS, "{report:?}");
        assert!(report.think_ns + report.calls_ns / 4 < 8 * GAP_NS, "{report:?}");
    }

    /// Whether the filesystem takes such a file or not.
    #[test]
    fn sizes_near_the_largest_are_no_fault() {
        let program = compiled(|writer| {
            let node = Node::File { size_bytes: 1 << 60, stored_bytes: 8192 };
            writer.entry(Entry { path: b"f".to_vec(), mode: 0o644, node }).expect("memory");
        });
        let place = tempfile::tempdir().expect("a temporary directory");
        let settings =
            Settings { pace: Pace::Full, cold: false, cancel: &AtomicBool::new(false), witness: None, watch: &|_| {} };
        let root = File::open(place.path()).expect("it is there");
        let ended = replay(&program.expect("small"), root.as_fd(), &settings);
        assert!(matches!(ended, Ok(_) | Err(ReplayError::Tree { .. })), "{ended:?}");
    }

    #[test]
    fn a_thread_that_cannot_be_started_is_an_error() {
        let program = compiled(|writer| {
            for thread in 2..9 {
                call(writer, Kind::Spawn, "", "", |call| call.result = thread);
            }
        });
        let place = tempfile::tempdir().expect("a temporary directory");
        let settings =
            Settings { pace: Pace::Full, cold: false, cancel: &AtomicBool::new(false), witness: None, watch: &|_| {} };
        // No machine has room for such a stack.
        let stack_bytes = |index| if index == 5 { 1 << 60 } else { 256 << 10 };
        let root = File::open(place.path()).expect("it is there");
        let ended = replay_with(&program.expect("small"), root.as_fd(), &settings, stack_bytes);
        assert!(matches!(ended, Err(ReplayError::Thread(_))), "{ended:?}");
        assert!(!settings.cancel.load(Ordering::Relaxed));
    }

    proptest::proptest! {
        /// Calls as nobody's program makes them.
        #[test]
        fn any_calls_are_compiled_or_refused(
            calls in proptest::collection::vec(
                (0..Kind::ALL.len(), 0u32..4, 0u32..4, 0u32..4, [0u32..12, 0u32..12], proptest::prelude::any::<[u64; 4]>()),
                0..40,
            ),
            complete: bool,
        ) {
            let names = ["a", "b", "a/b", "a/../b", "..", ""];
            let made = compiled(|writer| {
                for (kind, thread, file, other, places, [offset, length, bits, result]) in calls {
                    let mut place = |index: u32| {
                        let name = names.get(index as usize)?;
                        Some(writer.place(index % 3, name.as_bytes()))
                    };
                    let (at, to) = (place(places[0]), place(places[1]));
                    let result = if bits & 1 == 0 { result as i64 } else { (result % 9) as i64 - 3 };
                    let call = Call {
                        kind: Kind::ALL[kind], thread, file, other, at, to, offset: offset as i64, length, result,
                        other_offset: bits as i64,
                        flags: bits as u32, mode: (bits >> 32) as u16, begin_ns: offset, think_ns: length, took_ns: bits,
                    };
                    if !complete || call.is_complete() && call.has_possible_result() {
                        writer.call(call).expect("memory");
                    }
                }
            });
            proptest::prop_assert!(made.is_ok() || !complete);
        }
    }

    #[test]
    fn a_copy_from_elsewhere_writes_no_more_than_there_is() {
        let (place, _) = replayed(|writer| {
            call(writer, Kind::Open, "out", "", |call| (call.flags, call.other) = (MAKE, 1));
            call(writer, Kind::Sendfile, "", "", |call| (call.other, call.result) = (1, 100 << 20));
        });
        let out = std::fs::metadata(place.path().join("replay/out")).expect("it was made");
        assert_eq!(out.len(), 100 << 20);
    }

    #[test]
    fn a_tree_is_made_as_it_was() {
        let (place, _) = replayed(|writer| {
            let mut entry = |path: &str, mode: u16, node| {
                writer.entry(Entry { path: path.into(), mode, node }).expect("memory");
            };
            entry("a", 0o500, Node::Directory);
            entry("a/file", 0o400, Node::File { size_bytes: 3 << 20, stored_bytes: 3 << 20 });
            entry("a/holes", 0o644, Node::File { size_bytes: 1 << 40, stored_bytes: 5000 });
            entry("a/link", 0o777, Node::Link { target: b"/app/a/file".to_vec() });
            entry("second", 0o644, Node::Name { of: b"a/holes".to_vec() });
            for wrong in ["../out", "/out", "a/link/x", "none/x", "a/../b", "a", ""] {
                entry(wrong, 0o644, Node::Directory);
            }
        });
        let at = |name: &str| std::fs::symlink_metadata(place.path().join("replay").join(name)).expect("it is there");
        use std::os::unix::fs::MetadataExt;
        assert_eq!((at("a").mode() & 0o777, at("a/file").mode() & 0o777, at("a/file").len()), (0o500, 0o400, 3 << 20));
        assert_eq!((at("second").ino(), at("second").len()), (at("a/holes").ino(), 1 << 40));
        assert!(at("a/link").is_symlink() && at("a/holes").blocks() < 100);
        assert_eq!(std::fs::read_dir(place.path()).expect("it is there").count(), 2);
    }
}
