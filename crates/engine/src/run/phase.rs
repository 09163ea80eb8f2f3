//! One phase: its threads, from their start to their end.

use crate::drive::{Ended, Gate};
use crate::error::LoadError;
use crate::fileset::{Hold, build::utilization};
use crate::io::{self, Io, Null, Psync, Real, Setup, SetupError, TransferFlags, Witnessed};
use crate::measure::collect::Totals;
use crate::options::{Observer, Progress};
use crate::plan::{Found, GroupCheckpoint, GroupPlan, PlannedAction, WearOut};
use crate::worker::{Incomplete, Kept, Load, OwnTable, Picked, ThreadCheckpoint, Worker};
use fstone_model::load::ThreadReport;
use fstone_model::ranks::Wall;
use fstone_model::workload::{CpuPolicy, IoEngineKind, Operation, ThreadGroup};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::thread::CpuSet;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Stack of a thread: the loop and its operations need less than 16 KiB; the rest is for the standard library.
const STACK_BYTES: usize = 128 << 10;
const LOOK: Duration = Duration::from_millis(20);
/// The same while threads may have come to the end of their time and wait.
const WEAR_LOOK: Duration = Duration::from_micros(100);
/// Timer slack of threads that sleep to a moment: the least there is.
const TIMER_SLACK_NS: u64 = 1;

#[derive(Debug, Default)]
pub(crate) struct PhaseEnd {
    /// From the first operation's start until the last thread had no operation to begin any more, and what it did was done. If files are
    /// written back when they are closed, until they are closed.
    pub(crate) running_ns: u64,
    /// When that was, in ticks of the clock.
    pub(crate) at: u64,
    pub(crate) first_done_ns: u64,
    pub(crate) last_done_ns: u64,
    pub(crate) groups: Vec<GroupEnd>,
    pub(crate) cpu_ns: u64,
    /// What each of its threads did, in the order of groups and threads.
    pub(crate) threads: Vec<ThreadReport>,
    pub(crate) found: Vec<(String, Vec<Found>)>,
    pub(crate) checkpoints: Checkpoints,
    /// Who was done first for want of files.
    pub(crate) ran_out: Option<String>,
    /// When it began, of CLOCK_MONOTONIC.
    pub(crate) begin_ns: u64,
    pub(crate) totals: Totals,
    /// What was begun until its time was over and when that was, where it wore out.
    pub(crate) stonewall: Option<Wall>,
}

/// How a group went, since its phase's begin.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GroupEnd {
    /// When the last thread had no operation to begin any more.
    pub(crate) worked_ns: u64,
    /// As [`Ended::due_until`].
    pub(crate) due_ns: u64,
    pub(crate) done_ns: u64,
}

/// Where groups stood when a phase ended, by their names: what their threads shared, and each of them.
pub(crate) type Checkpoints = HashMap<String, (GroupCheckpoint, Vec<Option<ThreadCheckpoint>>)>;

pub(crate) struct Watch<'a> {
    pub(crate) name: &'a str,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) interval: Duration,
    pub(crate) expected: Option<Duration>,
    /// Called when all threads stand ready, and returns when they are to begin.
    pub(crate) begin: &'a dyn Fn() -> Result<(), LoadError>,
    pub(crate) parted: &'a dyn Fn() -> bool,
    pub(crate) continued: &'a dyn Fn(&str) -> bool,
    /// Gives the observer the report so far: how long the phase runs, and what its threads have done.
    pub(crate) so_far: &'a dyn Fn(Duration, Vec<ThreadReport>),
    /// Whether the closing of files belongs to the interval.
    pub(crate) closes: bool,
    /// Called when all operations are done. Threads give up what they have only then, because that is none of the filesystem's work.
    pub(crate) finish: &'a dyn Fn(&PhaseEnd),
}

/// Lets threads end, even after a panic.
struct Release<'a, E>(&'a Gate<E>);

impl<E> Drop for Release<'_, E> {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Says that a thread is done even when it panics.
struct SayDone<'a, E>(&'a Gate<E>);

impl<E> Drop for SayDone<'_, E> {
    fn drop(&mut self) {
        self.0.done();
    }
}

fn engine_error(name: &'static str, error: SetupError) -> LoadError {
    LoadError::Engine { engine: name, call: error.call, errno: error.errno, cure: error.cure }
}

/// Where the threads of a phase meet, and what came of each, by its number.
struct Meeting {
    gate: Gate<LoadError>,
    ends: Mutex<Vec<(u32, Ended)>>,
    closes: bool,
}

type Body = fn(&Load<'_>, &GroupPlan, u32, u32, &Meeting);

/// A thread of the group from its start to its end, on engine `E`. `number` is its place among all threads of the phase.
fn thread<E: Io>(load: &Load<'_>, group: &GroupPlan, thread: u32, number: u32, meeting: &Meeting) {
    let Meeting { gate, ends, closes } = meeting;
    let done = SayDone(gate);
    // Where threads share descriptors of files, they share their table.
    let own = E::REAL && matches!(load.kept, Kept::Own);
    let _table = own.then(OwnTable::new).flatten();
    let ready = pin(&group.spec, thread).and_then(|()| ready::<E>(load, group, u64::from(thread)));
    let mut worker = match ready {
        Ok(worker) => worker,
        Err(error) => {
            gate.ready(Err(error));
            return;
        }
    };
    if gate.ready(Ok(())) {
        let ended = worker.drive();
        if *closes {
            worker.close_handles();
            worker.close_kept();
        }
        ends.lock().unwrap_or_else(PoisonError::into_inner).push((number, ended));
        drop(done);
        gate.await_release();
    }
    worker.close_handles();
    worker.close_kept();
}

pub(crate) fn run(load: &Load<'_>, watch: &Watch<'_>) -> Result<PhaseEnd, LoadError> {
    let meeting = &Meeting { gate: Gate::new(), ends: Mutex::default(), closes: watch.closes };
    let gate = &meeting.gate;
    let wanted: u32 = load.phase.groups.iter().map(|group| group.spec.threads).sum();
    let end = std::thread::scope(|scope| {
        let _release = Release(gate);
        let mut started = 0;
        for group in &load.phase.groups {
            let body: Body = match group.io.engine {
                IoEngineKind::Null => thread::<Null>,
                _ if load.witness.is_some() => thread::<Witnessed>,
                IoEngineKind::Psync if group.log.is_none() => thread::<Psync>,
                _ => thread::<Real>,
            };
            for thread in 0..group.spec.threads {
                let body = move || body(load, group, thread, started, meeting);
                let builder = std::thread::Builder::new().name(format!("load-{thread}")).stack_size(STACK_BYTES);
                match builder.spawn_scoped(scope, body) {
                    Ok(_) => started += 1,
                    Err(cause) => {
                        gate.open(false);
                        return Err(LoadError::Threads { started, wanted, cause });
                    }
                }
            }
        }
        if let Err(error) = gate.await_ready(wanted) {
            gate.open(false);
            return Err(error);
        }
        // Before any thread can have done anything, and before the interval begins.
        let before = load.collector.totals();
        if let Err(error) = (watch.begin)() {
            gate.open(false);
            return Err(error);
        }
        let begin_ns = crate::measure::clock::monotonic_ns();
        load.start.store(load.clock.now(), Ordering::Relaxed);
        gate.open(true);
        if let Some(peers) = watch.observer.peers() {
            peers.begun();
        }
        let (totals, stonewall) = look_on(load, watch, meeting, wanted, before);
        if watch.closes {
            close_shared(load);
        }
        let ends = std::mem::take(&mut *meeting.ends.lock().unwrap_or_else(PoisonError::into_inner));
        let end = PhaseEnd { begin_ns, totals, stonewall, ..ended(load, watch, ends) };
        (watch.finish)(&end);
        Ok(end)
    })?;
    close_shared(load);
    Ok(end)
}

fn close_shared(load: &Load<'_>) {
    if let Kept::Shared(shared) = &load.kept {
        shared.close(|errno| load.collector.error(("", "end"), "close", "", errno, None));
    }
}

fn ended(load: &Load<'_>, watch: &Watch<'_>, mut ends: Vec<(u32, Ended)>) -> PhaseEnd {
    ends.sort_by_key(|(number, _)| *number);
    let mut ends: Vec<Ended> = ends.into_iter().map(|(_, end)| end).collect();
    let start = load.start.load(Ordering::Relaxed);
    let done = ends.iter().map(|end| end.at.max(end.worked_until)).max().filter(|_| !watch.closes);
    let at = done.unwrap_or_else(|| load.clock.now());
    let checkpoints = checkpoints(load, &mut ends, watch.continued);
    let since = |tick: u64| load.clock.between(start, tick);
    let last = ends.iter().map(|end| end.at).max().unwrap_or(start);
    let mut of_groups = ends.iter();
    let group_end = |group: &GroupPlan| {
        let threads = of_groups.by_ref().take(group.spec.threads as usize);
        threads.fold(GroupEnd::default(), |group, thread| GroupEnd {
            worked_ns: group.worked_ns.max(since(thread.worked_until)),
            due_ns: group.due_ns.max(since(thread.due_until)),
            done_ns: group.done_ns.max(since(thread.at)),
        })
    };
    let groups = load.phase.groups.iter().map(group_end).collect();
    let mut of_groups = ends.iter();
    let threads_of = |group: &GroupPlan| {
        let threads = of_groups.by_ref().take(group.spec.threads as usize);
        let found: Vec<Found> = threads.filter_map(|thread| thread.found).collect();
        group.spec.latency_target.is_some().then(|| (group.spec.name.clone(), found))
    };
    let found = load.phase.groups.iter().filter_map(threads_of).collect();
    PhaseEnd {
        running_ns: since(at),
        at,
        first_done_ns: since(ends.iter().map(|end| end.at).min().unwrap_or(start)),
        last_done_ns: since(last),
        groups,
        found,
        checkpoints,
        cpu_ns: ends.iter().map(|end| end.cpu_ns).sum(),
        threads: ends.into_iter().map(|end| end.report).collect(),
        ran_out: load.phase.ran_out.get().cloned(),
        ..PhaseEnd::default()
    }
}

fn checkpoints(load: &Load<'_>, ends: &mut [Ended], continued: &dyn Fn(&str) -> bool) -> Checkpoints {
    let mut threads = ends.iter_mut();
    let mut checkpoints = Checkpoints::new();
    for group in &load.phase.groups {
        let threads = threads.by_ref().take(group.spec.threads as usize);
        if continued(&group.spec.name) {
            let mut operations = 0;
            let threads = threads.map(|end| {
                operations += end.report.operations;
                Some(std::mem::take(&mut end.checkpoint))
            });
            let threads = threads.collect();
            checkpoints.insert(group.spec.name.clone(), (group.checkpoint(operations), threads));
        } else {
            threads.for_each(drop);
        }
    }
    checkpoints
}

/// Keeps the calling thread on the group's CPUs, if it has any of its own. That comes before anything else, so that memory
/// is near them.
fn pin(group: &ThreadGroup, thread: u32) -> Result<(), LoadError> {
    let cpus: &[u32] = match (group.cpu_policy, group.cpus.len()) {
        (_, 0) => return Ok(()),
        (CpuPolicy::Shared, _) => &group.cpus,
        (CpuPolicy::Split, count) => std::slice::from_ref(&group.cpus[thread as usize % count]),
    };
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu as usize));
    rustix::thread::sched_setaffinity(None, &set).map_err(|errno| LoadError::Unsupported {
        what: format!("runs {:?} on CPUs that cannot be had ({})", group.name, crate::errno::describe(errno)),
    })
}

pub(super) fn ready<'a, E: Io>(
    load: &'a Load<'a>,
    group: &'a GroupPlan,
    thread: u64,
) -> Result<Worker<'a, E>, LoadError> {
    let largest = group.actions.iter().map(|action| action.block_bytes).max().unwrap_or(0);
    let block_bytes = (largest as usize).next_multiple_of(crate::data::memory::ALIGNMENT);
    let threads = load.phase.groups.iter().map(|group| group.spec.threads).sum();
    let setup = Setup {
        engine: group.io.engine,
        depth: group.io.queue_depth.max(1),
        block_bytes,
        threads,
        sync: group.io.sync,
        polled: group.io.polled,
        flags: TransferFlags::of(group.io),
        witness: load.witness.clone(),
        log: group.log.clone(),
    };
    let io = E::new(setup).map_err(|error| engine_error(io::name_of(group.io.engine), error))?;
    let mut worker = Worker::new(io, load, group, thread, block_bytes);
    // Memory that reads go to and data that writes take are there before the clock runs, as in other tools: making them is not the
    // filesystem's work.
    if group.actions.iter().any(|action| action.writes) {
        worker.source.stock();
    }
    let read = group.actions.iter().filter(|action| !action.writes).map(|action| action.block_bytes).max();
    worker.buffer.touch(read.unwrap_or(0) as usize);
    if group.spec.is_paced() || !group.spec.think_time.is_zero() {
        // Sleeping a few microseconds too long is all that comes of a refusal.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(TIMER_SLACK_NS));
    }
    let stays = group.spec.open.keeps() && group.spec.tour_open.is_none();
    if stays && (matches!(load.kept, Kept::Own) || thread == 0) {
        open_all(&mut worker)?;
    }
    Ok(worker)
}

fn open_all<E: Io>(worker: &mut Worker<'_, E>) -> Result<(), LoadError> {
    let mut open = Vec::new();
    // What works on names alone is to find them as they are: a file that is open is in memory.
    let by_name = |action: &PlannedAction| {
        use Operation::{Readdir, Stat, StatDirectory, Walk};
        matches!(action.operation, Readdir | Stat | StatDirectory | Walk)
    };
    let actions = &worker.group.actions;
    let opens = |fileset: usize| {
        let mut on = actions.iter().filter(|action| action.fileset.is_none_or(|of| of == fileset));
        !on.all(by_name)
    };
    for fileset in worker.group.filesets.iter().filter(|fileset| opens(**fileset)) {
        let files = &worker.load.files[*fileset];
        for file in files.table.live_files() {
            let picked = Picked { fileset: *fileset, file, hold: Hold::Free, position: None };
            match worker.kept(&picked) {
                Ok(fd) => open.push(fd),
                Err(Incomplete::Fault(fault)) => {
                    return Err(LoadError::Setup {
                        fileset: files.spec.name.clone(),
                        call: "open",
                        path: files.shown(&worker.path.shown()).into(),
                        errno: fault.errno(),
                        cure: open_cure(worker.data_flags(worker.group.access()), fault.errno()),
                    });
                }
                Err(_) => return Err(LoadError::Interrupted(None)),
            }
        }
    }
    // Opening is not an operation of the load.
    worker.aside = 0;
    worker.tally.calls.iter_mut().for_each(|latencies| *latencies = crate::measure::tally::Latencies::default());
    // What threads share, one may close, and the number comes back for another file; and a file that a ring knows is not
    // gone when it was removed.
    if matches!(worker.load.kept, Kept::Own) {
        worker.io.keep(&open);
    }
    Ok(())
}

fn open_cure(flags: OFlags, errno: Errno) -> &'static str {
    if errno == Errno::INVAL && flags.contains(OFlags::DIRECT) {
        return "; this filesystem has no O_DIRECT";
    }
    crate::error::cure(errno)
}

/// Tells progress and minds what the threads themselves do not, until they are done.
fn look_on(
    load: &Load<'_>,
    watch: &Watch<'_>,
    meeting: &Meeting,
    threads: u32,
    mut before: Totals,
) -> (Totals, Option<Wall>) {
    let gate = &meeting.gate;
    let started = Instant::now();
    let mut wanted_at = None;
    let (mut told, mut told_after) = (0, Duration::ZERO);
    let at_start = before.clone();
    // Progress of the points that ended by `time`, if any did since the last.
    let mut tell = |time: Duration| {
        let due = time.as_nanos().checked_div(watch.interval.as_nanos()).unwrap_or(0);
        if due <= told {
            return;
        }
        let now = load.collector.totals();
        let until = watch.interval * u32::try_from(due).unwrap_or(u32::MAX);
        watch.observer.progress(&Progress {
            phase: watch.name.to_owned(),
            elapsed: started.elapsed(),
            expected: watch.expected,
            operations: now.operations - at_start.operations,
            bytes: now.read_bytes + now.written_bytes - at_start.read_bytes - at_start.written_bytes,
            interval: until - told_after,
            interval_operations: now.operations - before.operations,
            interval_read_bytes: now.read_bytes - before.read_bytes,
            interval_written_bytes: now.written_bytes - before.written_bytes,
            interval_fsyncs: now.fsyncs - before.fsyncs,
            latency: now.latency.clone(),
            fsync_latency: now.fsync_latency.clone(),
        });
        (told, told_after) = (due, until);
        before = now;
    };
    let mut stonewall = None;
    // Threads that wait for the wear-out are idle until it begins.
    let wears_out_in = || {
        let time =
            load.phase.limits.time_ticks.filter(|_| load.phase.wear.as_ref().is_some_and(|wear| !wear.is_decided()))?;
        Some(Duration::from_nanos(load.clock.nanoseconds(time)).saturating_sub(started.elapsed()))
    };
    while !gate.await_done(threads, wears_out_in().map_or(LOOK, |time| time.clamp(WEAR_LOOK, LOOK))) {
        if load.cancel.load(Ordering::Relaxed) {
            load.phase.limits.ended.store(true, Ordering::Relaxed);
        }
        if (watch.parted)() {
            load.halt();
        }
        if let Some(wear) = &load.phase.wear
            && !wear.is_decided()
            && wear.waiting() > 0
            && (wear.waiting() + gate.so_many_done() == threads || load.phase.limits.ended())
        {
            stonewall = Some(wear_out(load, watch, wear, true));
        }
        let first = load.phase.groups.first().map(|group| (&load.phase.limits, group));
        for (limits, group) in first.into_iter().chain(load.phase.groups.iter().map(|group| (&group.limits, group))) {
            if let Some(target) = limits.utilization {
                let fileset =
                    group.actions.first().and_then(|action| action.fileset).or(group.filesets.first().copied());
                // A filesystem that cannot be asked any more will show in the operations' own errors.
                let used = fileset.and_then(|index| utilization(&load.files[index]).ok());
                if used.is_some_and(|used| used >= target) {
                    limits.ended.store(true, Ordering::Relaxed);
                }
            }
        }
        load.collector.add_up();
        if load.measured && wanted_at.is_none() && watch.observer.wants_report() {
            let noted = load.so_far.wanted.swap(true, Ordering::Relaxed);
            wanted_at = Some(started.elapsed() + if noted { Duration::ZERO } else { watch.interval + LOOK });
        }
        if wanted_at.is_some_and(|at| at <= started.elapsed()) {
            wanted_at = None;
            let ends = meeting.ends.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = ends.iter().map(|(_, ended)| ended.report.clone());
            (watch.so_far)(started.elapsed(), ended.chain(load.so_far.all()).collect());
        }
        // Threads hand over when a point of the series ends, so the lines are as long as points are, whenever they are printed.
        tell(started.elapsed().saturating_sub(LOOK));
    }
    // A point can end as the phase does, and all threads have handed over now. Their clock began a moment before this one.
    tell(started.elapsed() + LOOK.min(watch.interval / 50));
    if let Some(wear) = load.phase.wear.as_ref().filter(|wear| !wear.is_decided()) {
        // All were done before their time; other ranks may not be, and wait for what this one says.
        stonewall = Some(wear_out(load, watch, wear, false));
    }
    let end = load.collector.totals();
    let totals = Totals {
        operations: end.operations - at_start.operations,
        read_bytes: end.read_bytes - at_start.read_bytes,
        written_bytes: end.written_bytes - at_start.written_bytes,
        fsyncs: end.fsyncs - at_start.fsyncs,
        ..Totals::default()
    };
    (totals, stonewall)
}

/// The time is over (`met`), or all were done before: each group goes on to what the furthest of all ranks has done.
fn wear_out(load: &Load<'_>, watch: &Watch<'_>, wear: &WearOut, met: bool) -> Wall {
    let at_ns = crate::measure::clock::monotonic_ns();
    let counts: Vec<u64> = load.phase.groups.iter().map(|group| group.limits.claimed()).collect();
    let most = match watch.observer.peers() {
        // An error ends the load of all, and the others are told of it once this rank is done: until the end of their time they would not answer.
        Some(_) if load.halted.load(Ordering::Relaxed) => None,
        Some(peers) => peers.most(&counts).ok(),
        None => Some(counts.clone()),
    };
    for (group, most) in load.phase.groups.iter().zip(most.iter().flatten()) {
        group.limits.set_quota(*most);
    }
    wear.decide(most.is_some() && !load.phase.limits.ended());
    Wall { operations: counts.iter().sum(), at_ns, met }
}
