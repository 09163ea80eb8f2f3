//! Records a program as it runs: seccomp(2) stops it at calls that touch files, ptrace(2) shows the calls, and nothing needs root.

mod calls;
mod decode;
mod ending;
mod filter;
mod places;
mod preload;
mod processors;
mod ptrace;
mod state;
mod tables;
mod times;

pub(crate) use decode::{FICLONE, FICLONERANGE};
pub use ptrace::is_ignored;
pub(crate) use tables::{Roots, descriptor, joined, normal, top_name};

use crate::call::{Call, End, Kind, Start};
use crate::file::Writer;
use crate::tree::{self, Walk};
use decode::{What, decode};
use libc::pid_t;
use preload::{Preload, Until};
use processors::{Account, DECIDED_NS, Processors, Usage};
use ptrace::{Called, EVENT_STOP, Resume, Stop, Task, Ticks, Waited};
use state::{AGAIN, LONG_NS, Named, Noticed, Overhead, Spent, Thread, Tracer, hashed, hashed_entry};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::CString;
use std::fs::File;
use std::hash::RandomState;
use std::io::{self, BufWriter};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tables::{Descriptors, Root};

/// Calls of the process that shows what recording costs. Each takes up to 0.1 ms, and medians of more differ as much from run to run.
const CALIBRATION: u32 = 100;
/// Of these calls, how many there are to a probe; and the time between two in a recording, of which they take a hundredth or two.
const PROBED: usize = 4;
const PROBED_NS: u64 = 500_000;
/// Calls that show what one takes without that.
const BARE_CALLS: u32 = 1000;
/// A directory of the top for what is renamed into the recorded directories, or out; with a number behind it, if the tree has one.
const ELSEWHERE: &str = ".fstone-elsewhere";
/// Of the command line, what is kept.
const MOST_COMMAND: usize = 64 << 10;
/// How often a wait is interrupted, to look whether the recording is to end, to write what there is, and to share processors.
const TICK_NS: i64 = DECIDED_NS as i64;
/// A block is written when it is so old: with a tick, within a second.
const FLUSH_NS: u64 = 500_000_000;

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
    #[error("cannot start {program}{}", cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default())]
    Program { program: String, cause: Option<io::Error> },
    #[error("a signal came while the files were listed, before the program")]
    Cancelled,
    #[error("a word of the command has a zero byte")]
    Word,
    #[error("cannot write the recording: {cause}; what was written is good to its last whole block")]
    Write {
        cause: io::Error,
        /// How the program ended, as wait(2) has it, if it ran.
        status: Option<i32>,
    },
}

/// How many parts of the tree are found between two calls of [`Wanted::listing`].
const LISTED: u64 = 64;

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
    /// Called again and again while the tree is listed, with how much of it was found; with `None` when that ends.
    pub listing: &'a dyn Fn(Option<u64>),
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
    let roots = real_roots(wanted.under).map_err(|error| match (error, wanted.process) {
        (RecordError::Root { path, cause }, Some(process)) if path.starts_with(format!("/proc/{process}")) => {
            RecordError::Join { process, cause }
        }
        (error, _) => error,
    })?;
    let filter = filter::program();
    let preload = if wanted.process.is_none() && !wanted.data_entropy { Preload::new() } else { None };
    let bare_ns = bare();
    // What a stop costs depends on whether it wakes another processor.
    let apart = calibrated(&filter, bare_ns, Processors::as_they_are())?;
    let shared = calibrated(&filter, bare_ns, Processors::of_tracer())?;
    let overhead = if wanted.process.is_some() { apart } else { shared };
    let overhead_ns = [0, 1].map(|which| overhead.now(which).wall_ns);
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
    let write = |cause| RecordError::Write { cause, status: None };
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
    let mut found = 0u64;
    let walked = tree::walk(&paths, &mut walk, &mut |entry| {
        found += 1;
        if found.is_multiple_of(LISTED) {
            (wanted.listing)(Some(found));
        }
        writer.entry(hashed_entry(entry, secret.as_ref()))
    });
    (wanted.listing)(None);
    walked.map_err(|cause| {
        let is_cancelled = cause.kind() == io::ErrorKind::Interrupted && wanted.cancel.load(Ordering::Relaxed) != 0;
        if is_cancelled { RecordError::Cancelled } else { write(cause) }
    })?;
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
        let program = words[0].to_string_lossy().into_owned();
        let is_path = program.contains('/');
        let cause = rustix::fs::access(&*words[0], rustix::fs::Access::EXEC_OK).err().filter(|_| is_path);
        return Err(RecordError::Program { program, cause: cause.map(io::Error::from) });
    }
    let elapsed_ns = tracer.now();
    let write = |cause| RecordError::Write { cause, status: wanted.process.is_none().then_some(status) };
    if let Some(cause) = tracer.failed.take() {
        return Err(write(cause));
    }
    let writer = tracer.writer.take().expect("it has not failed");
    let calls = writer.calls;
    let (_, bytes) = writer.finish(End { at_ns: elapsed_ns, status }).map_err(write)?;
    let Tracer { sums, meanwhile, uncertain_ns, unaccounted, idle_ns, taken, .. } = tracer;
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
        stops: sums.stops,
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
    median(&mut parts)
}

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn calibrated(filter: &[libc::sock_filter], bare_ns: u64, processors: Processors) -> Result<Overhead, RecordError> {
    let first = ptrace::start(&Task::Idle(CALIBRATION), filter).map_err(|cause| RecordError::Trace { cause })?;
    let mut tracer = Tracer::new(Roots::new(&[]), Default::default(), processors, None, None);
    tracer.samples = Some(Default::default());
    tracer.add(first, None, 0);
    tracer.follow(first, None);
    let (samples, mut probes) = tracer.samples.take().unwrap_or_default();
    if samples.len() < CALIBRATION as usize / 2 {
        return Err(RecordError::Trace { cause: io::Error::other("the kernel did not stop a process at its calls") });
    }
    let middle = |of: &dyn Fn(&[Spent; 2]) -> u64| median(&mut samples.iter().map(of).collect::<Vec<_>>());
    let measured = [0, 1].map(|which| {
        let alone_ns = if which == 0 { bare_ns } else { 0 };
        Spent {
            wall_ns: middle(&|sample| sample[which].wall_ns).saturating_sub(alone_ns),
            usage: Usage {
                ran_ns: middle(&|sample| sample[which].usage.ran_ns).saturating_sub(alone_ns),
                delayed_ns: middle(&|sample| sample[which].usage.delayed_ns),
                turns: 0,
            },
        }
    });
    Ok(Overhead::new(measured, median(&mut probes)))
}

impl Tracer {
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
                self.idle_ns += now.saturating_sub(before_ns);
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
            wait: None,
            directories,
            umask,
            kept: false,
            account,
            usage: Usage::default(),
            sums: self.sums,
            active_ns: None,
            weight: 1.0,
            stopped_ns: None,
            is_probed: false,
            owed_ns: 0,
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

    /// Now and then, to see what stops cost, when a thread's call has returned this.
    fn probe(&mut self, thread: pid_t, result: i64) {
        let now = self.now();
        let is_due = match &self.samples {
            Some((samples, _)) => samples.len().is_multiple_of(PROBED),
            None => now.saturating_sub(self.probed_ns) > PROBED_NS,
        };
        if is_due
            && !AGAIN.contains(&result)
            && let Some(state) = self.threads.get_mut(&thread)
        {
            (state.is_probed, self.probed_ns) = (true, now);
            ptrace::interrupt(thread);
        }
    }

    fn resume(&mut self, thread: pid_t, how: Resume, signal: i32) {
        let now = self.now();
        if now.saturating_sub(self.accounted_ns) > LONG_NS {
            // What it waited while it was at work is no part of the next wait. To look at each stop would cost more.
            self.idle_ns += self.look_at_own(now);
        }
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
                    self.probe(thread, result);
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
            (self.resumed_ns, self.accounted_ns, self.probed_ns) = (0, 0, 0);
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
        state.think_ns += state.did();
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

    fn ended(&mut self, thread: pid_t, now: u64) {
        self.early.remove(&thread);
        self.keeps_none(thread);
        if let Some(pending) = self.threads.get_mut(&thread).and_then(|state| state.pending.take()) {
            self.unreturned(thread, &pending);
        }
        let Some(state) = self.threads.get_mut(&thread) else { return };
        state.think_ns += state.did();
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
            listing: &|_| {},
        };
        std::env::set_current_dir(place.path()).expect("it was just made");
        let file = File::options().read(true).write(true).create_new(true).open(place.path().join("a.rec"));
        record(&wanted, file.expect("writable")).expect("it can be recorded")
    }

    #[test]
    fn how_far_the_listing_of_the_tree_is_can_be_seen() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let tree = place.path().join("tree");
        std::fs::create_dir(&tree).expect("writable");
        for number in 0..3 * LISTED {
            File::create(tree.join(number.to_string())).expect("writable");
        }
        let seen = std::cell::RefCell::new(Vec::new());
        let wanted = Wanted {
            command: &[b"true".to_vec()],
            process: None,
            under: &[tree],
            hash_names: false,
            data_entropy: false,
            cancel: &AtomicI32::new(0),
            listing: &|found| seen.borrow_mut().push(found),
        };
        let file = File::options().read(true).write(true).create_new(true).open(place.path().join("a.rec"));
        record(&wanted, file.expect("writable")).expect("it can be recorded");
        assert_eq!(*seen.borrow(), [Some(LISTED), Some(2 * LISTED), Some(3 * LISTED), None]);
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

    /// The calls of some kinds that a program makes.
    fn calls(script: &str, wanted: &[Kind]) -> Vec<Call> {
        let place = tempfile::tempdir().expect("a temporary directory");
        let kinds = wanted;
        let wanted = Wanted {
            command: &["python3", "-I", "-c", script].map(|word| word.as_bytes().to_vec()),
            process: None,
            under: &[place.path().to_owned()],
            hash_names: false,
            data_entropy: false,
            cancel: &AtomicI32::new(0),
            listing: &|_| {},
        };
        let path = place.path().join("a.rec");
        let file = File::options().read(true).write(true).create_new(true).open(&path).expect("writable");
        assert_eq!(record(&wanted, file).expect("it can be recorded").status, 0);
        let mut reader = crate::file::Reader::open(&path).expect("it was written");
        let mut calls = Vec::new();
        while let Some(block) = reader.block().expect("it can be read") {
            calls.extend(block.calls.into_iter().filter(|call| kinds.contains(&call.kind)));
        }
        calls
    }

    #[test]
    fn a_wait_for_a_child_goes_on_when_another_one_ends() {
        let script = "import os, time
def child(seconds):
    pid = os.fork()
    if pid == 0:
        time.sleep(seconds)
        os._exit(0)
    return pid
first, second = child(0.4), child(0.2)
assert os.waitpid(first, 0)[1] == 0 and os.waitpid(second, 0)[1] == 0";
        let waits = calls(script, &[Kind::Wait]);
        let longest = waits.iter().max_by_key(|call| call.took_ns + call.think_ns).expect("there are two");
        assert!(longest.took_ns > 2 * longest.think_ns, "{longest:?}");
    }

    #[test]
    fn a_wait_that_a_signal_ends_for_good_took_its_time() {
        let script = "import fcntl, os, signal
file = open('/proc/self/exe', 'rb')
lock = os.memfd_create('x')
fcntl.flock(lock, fcntl.LOCK_EX)
pid = os.fork()
if pid == 0:
    signal.setitimer(signal.ITIMER_REAL, 0.4)
    fcntl.flock(os.open(f'/proc/self/fd/{lock}', os.O_RDWR), fcntl.LOCK_EX)
assert os.waitpid(pid, 0)[1] == signal.SIGALRM";
        let made = calls(script, &[Kind::Wait, Kind::Exit]);
        let longest = made.iter().filter(|call| call.kind == Kind::Wait).max_by_key(|call| call.took_ns);
        let longest = longest.expect("it waited for its child");
        let exit = made.iter().find(|call| call.kind == Kind::Exit && i64::from(call.thread) == longest.result);
        let exit = exit.expect("its child has ended");
        assert!(2 * exit.think_ns > longest.took_ns, "{exit:?} {longest:?}");
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
