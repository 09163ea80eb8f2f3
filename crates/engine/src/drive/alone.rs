//! The loop of a thread.

use super::plan::{PeriodicFsyncs, Selector};
use super::worker::{Fault, Halt, Picked, Worker};
use crate::fileset::Hold;
use crate::io::Io;
use crate::measure::{ActionTally, Call, Done};
use crate::ops;
use fstone_model::load::ThreadReport;
use fstone_model::workload::{ErrorPolicy, OpenPolicy};
use rustix::fs::OFlags;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longest uninterrupted sleep: how long a sleeping thread may take to notice that it is to stop.
const NAP: Duration = Duration::from_millis(50);
/// Time after which counts are handed over in any case: a thread that performs fewer than 70 million operations per
/// second does not overflow the 32 bits of a histogram's counts.
const MAX_POINT: Duration = Duration::from_secs(60);

/// How a thread ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// When its last operation was done.
    pub(crate) at: u64,
    /// CPU time it took.
    pub(crate) cpu_ns: u64,
    /// What it did.
    pub(crate) report: ThreadReport,
}

/// Where the thread is in the series.
pub(super) struct Point {
    index: u64,
    /// When it is over, or when what is counted is to be handed over because a counter could overflow.
    end: u64,
}

/// What a thread is to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Action(usize),
    /// Fsync this file of the group's filesets, seen as one, and ask again.
    Fsync(u64),
    End,
}

/// How far a thread has come in choosing what to do.
#[derive(Debug, Default)]
pub(super) struct Choice {
    /// Place in a sequence.
    sequence: usize,
    /// An action that has to wait for fsyncs.
    waiting: Option<usize>,
    /// Of a ratio: what was chosen and does not count yet, and how many count at once. Where transfers are queued they
    /// count when the queue has been filled: that is when libaio, and with it sysbench, gets buffered ones back.
    uncounted: [u64; 2],
    counts_at_once: u64,
}

impl Choice {
    pub(super) fn counting(at_once: u32) -> Self {
        Self { counts_at_once: u64::from(at_once), ..Self::default() }
    }
}

impl<E: Io> Worker<'_, E> {
    /// Performs operations until the end. The gate must be open.
    pub(crate) fn drive(&mut self) -> Ended {
        let cpu_start = crate::measure::clock::thread_cpu_ns();
        let clock = self.load.clock;
        let start = self.load.start.load(Ordering::Relaxed);
        let mut point =
            Point { index: 0, end: start.saturating_add(self.load.point_ticks.min(clock.ticks(MAX_POINT))) };
        let mut last_end = match (self.queues(), self.is_plain_reads()) {
            (false, false) => self.drive_alone::<false>(&mut point),
            (false, true) => self.drive_alone::<true>(&mut point),
            (true, false) => self.drive_queue::<false>(&mut point),
            (true, true) => self.drive_queue::<true>(&mut point),
        };
        if self.group.spec.fsync.at_end && !self.load.cancel.load(Ordering::Relaxed) {
            self.fsync_every_file();
            last_end = clock.now();
        }
        let cpu_ns = crate::measure::clock::thread_cpu_ns() - cpu_start;
        self.hand_over(&point);
        Ended { at: last_end, cpu_ns, report: self.sum.report(&self.group.spec.name) }
    }

    /// Whether all that the thread does is aimed reads, with nothing to ask in between but the time and whether to stop.
    ///
    /// These are the fastest operations that there are, and the load by which engines are compared: the loops exist once
    /// more for them (`READS`), without all that others need.
    fn is_plain_reads(&self) -> bool {
        let pauses = !self.group.spec.think_time.is_zero() || !matches!(self.group.fsyncs, PeriodicFsyncs::Never);
        let asks = self.asks() || self.counted.1;
        matches!(self.group.selector, Selector::Single) && ops::is_aimed_read(self, 0) && !asks && !pauses
    }

    /// Whether a rate or a count has to be asked before each operation.
    fn asks(&self) -> bool {
        self.group.spec.rate_per_second.is_some() || self.counted.0 || self.group.thread_quota.is_some()
    }

    /// One operation after the other; gives the end of the last.
    fn drive_alone<const READS: bool>(&mut self, point: &mut Point) -> u64 {
        let clock = self.load.clock;
        let start = self.load.start.load(Ordering::Relaxed);
        let deadline = self.deadline();
        let mut now = clock.now().max(start);
        let mut begun = now;
        let mut choice = Choice::default();
        let mut claimed = false;
        let mut performed = 0u64;
        let mut granted = (0u64, 0u64);
        let mut last_end = now;
        let paced = !READS && self.group.spec.rate_per_second.is_some();
        let think = clock.ticks(self.group.spec.think_time);
        let thread_quota = self.group.thread_quota.unwrap_or(u64::MAX);
        let pauses = !READS && (think > 0 || matches!(self.group.fsyncs, PeriodicFsyncs::After { .. }));
        let plain = READS || !self.asks();
        if READS && let Some(aim) = &self.states[0].aim {
            let done = aim.done();
            self.tally.actions[0].expect(done, self.group.actions[0].transactions(done));
        }
        while now < deadline && !self.told_to_stop() {
            if plain {
                begun = now;
            } else if !claimed {
                if performed >= thread_quota || (self.counted.0 && !self.granted(&mut granted)) {
                    break;
                }
                begun = now;
                if paced {
                    match self.paced(now, start, deadline) {
                        Some(intended) => begun = intended,
                        None => break,
                    }
                }
            }
            let index = match if READS { Next::Action(0) } else { self.next(&mut choice) } {
                Next::Action(index) => index,
                Next::Fsync(file) => {
                    now = self.fsync_between(file, paced.then_some(begun), start, point);
                    claimed = !self.group.spec.fsync.counted;
                    if !paced {
                        begun = now;
                    }
                    last_end = now;
                    continue;
                }
                Next::End => break,
            };
            claimed = false;
            // The first call of an operation counts from the operation's start, and the operation's end is that of its
            // last call: where nothing was waited for, no more readings of the clock than calls.
            let (outcome, end) = if READS {
                (ops::aimed_read(self, index), clock.now())
            } else {
                self.mark = if paced { 0 } else { now };
                let outcome = ops::perform(self, index).map(|()| Some(self.done));
                (outcome, if self.mark != 0 && self.mark != now { self.mark } else { clock.now() })
            };
            last_end = end;
            performed += 1;
            self.account(point, start, end);
            match outcome {
                Ok(None) => self.tally.actions[0].completed_as_usual(clock.between(begun, end)),
                Ok(Some(done)) => self.completed(index, done, clock.between(begun, end)),
                Err(Halt::Fault(fault)) => self.failed(index, fault),
                Err(Halt::Exhausted | Halt::Stopped) => break,
            }
            now = end;
            if pauses {
                self.fsync_after();
                now = self.rest(end, think, deadline);
            }
        }
        last_end
    }

    /// Counts an operation that ended in its point of the series, handing over the one before when that is over.
    #[inline(always)]
    pub(super) fn account(&mut self, point: &mut Point, start: u64, end: u64) {
        if end >= point.end {
            self.turn(point, start, end);
        }
    }

    /// Whether the quotas allow one more operation.
    #[inline(always)]
    pub(super) fn granted(&self, granted: &mut (u64, u64)) -> bool {
        if granted.0 == 0 {
            granted.0 = self.group.limits.claim();
        }
        if granted.1 == 0 {
            granted.1 = self.load.phase.limits.claim();
        }
        if granted.0 == 0 || granted.1 == 0 {
            return false;
        }
        granted.0 -= 1;
        granted.1 -= 1;
        true
    }

    /// What comes next: an operation, or before it an fsync that is due.
    #[inline(always)]
    pub(super) fn next(&mut self, choice: &mut Choice) -> Next {
        match &self.group.fsyncs {
            PeriodicFsyncs::Series(_) => self.next_of_series(choice),
            _ => self.next_action(choice),
        }
    }

    #[inline(never)]
    fn next_of_series(&mut self, choice: &mut Choice) -> Next {
        let group = self.group;
        let PeriodicFsyncs::Series(series) = &group.fsyncs else { return Next::End };
        let files = || group.filesets.iter().map(|fileset| self.load.files[*fileset].table.names()).sum();
        if let Some(file) = series.due(files()) {
            return Next::Fsync(file);
        }
        let next = match choice.waiting.take() {
            Some(index) => Next::Action(index),
            None => self.next_action(choice),
        };
        let Next::Action(index) = next else { return next };
        if series.begin(group.actions[index].writes) {
            return next;
        }
        // Meanwhile other threads began the operations that were left before the next fsyncs.
        choice.waiting = Some(index);
        self.next_of_series(choice)
    }

    #[inline(always)]
    fn next_action(&mut self, choice: &mut Choice) -> Next {
        match &self.group.selector {
            Selector::Single => Next::Action(0),
            Selector::Mix(sums) => {
                let drawn = self.random.below(sums.last().copied().unwrap_or(0));
                Next::Action(sums.iter().position(|sum| drawn < *sum).unwrap_or(0))
            }
            Selector::Sequence(length) => {
                let index = choice.sequence;
                choice.sequence = (index + 1) % (*length).max(1);
                if *length == 0 { Next::End } else { Next::Action(index) }
            }
            Selector::Ratio { ratio, counts } => {
                let [firsts, seconds] = &**counts;
                let (done, others) = (firsts.0.load(Ordering::Relaxed), seconds.0.load(Ordering::Relaxed));
                let index = usize::from(((done + 1) as f64) / ((others + 1) as f64) >= *ratio);
                choice.uncounted[index] += 1;
                if choice.uncounted.iter().sum::<u64>() >= choice.counts_at_once {
                    let [first, second] = std::mem::take(&mut choice.uncounted);
                    firsts.0.fetch_add(first, Ordering::Relaxed);
                    seconds.0.fetch_add(second, Ordering::Relaxed);
                }
                Next::Action(index)
            }
        }
    }

    /// Counts a completed operation.
    #[inline(always)]
    pub(super) fn completed(&mut self, index: usize, done: Done, latency_ns: u64) {
        let transactions = self.group.actions[index].transactions(done);
        self.tally.actions[index].completed(done, transactions, latency_ns);
        if self.counted.1 {
            let bytes = done.read_bytes + done.written_bytes;
            self.group.limits.moved(bytes);
            self.load.phase.limits.moved(bytes);
        }
        if let PeriodicFsyncs::After { dirty, .. } = &self.group.fsyncs
            && done.written_bytes > 0
        {
            dirty.0.store(true, Ordering::Relaxed);
        }
    }

    /// Notes a failed operation, and ends the load if that is the policy.
    #[cold]
    pub(super) fn failed(&mut self, index: usize, fault: Fault) {
        self.tally.actions[index].errors += 1;
        if let Some((fileset, file)) = self.previous.filter(|_| fault.call.is_by_descriptor()) {
            // Of a file that was open already the path has not been made.
            self.name(&Picked { fileset, file, hold: Hold::Free, position: None });
        }
        let fileset = self.group.actions[index].fileset.or(self.previous.map(|(fileset, _)| fileset));
        let path = match (fault.call, fileset) {
            // Nothing was chosen, so there is no path.
            (Call::Choose, _) | (_, None) => String::new(),
            (Call::Verify, Some(fileset)) => {
                format!("{} at byte {}", self.load.files[fileset].shown(&self.path.shown()), self.damaged_at)
            }
            (_, Some(fileset)) => self.load.files[fileset].shown(&self.path.shown()),
        };
        self.note_error(&self.group.actions[index].name, fault, &path);
    }

    fn note_error(&self, operation: &str, fault: Fault, path: &str) {
        self.load.collector.error(operation, fault.call.name(), path, fault.errno());
        if self.load.on_error == ErrorPolicy::Stop {
            self.load.halt();
        }
    }

    fn hand_over(&mut self, point: &Point) {
        self.tally.actions.iter_mut().for_each(ActionTally::settle);
        self.sum.add(&self.tally, self.group.spec.fsync.counted);
        self.load.collector.hand_over(self.group.number, self.load.first_point + point.index, &mut self.tally);
    }

    /// Hands over the point that ended and begins the one that `end` is in.
    #[cold]
    pub(super) fn turn(&mut self, point: &mut Point, start: u64, end: u64) {
        self.hand_over(point);
        point.index = end.saturating_sub(start) / self.load.point_ticks.max(1);
        let over = start.saturating_add((point.index + 1).saturating_mul(self.load.point_ticks));
        point.end = over.min(end.saturating_add(self.load.clock.ticks(MAX_POINT)));
    }

    /// Waits for the intended start of the next operation and gives it; `None` when it lies behind the end.
    fn paced(&self, now: u64, start: u64, deadline: u64) -> Option<u64> {
        let intended = self.intended(start);
        (self.sleep_until(intended.min(deadline), now) && intended < deadline).then_some(intended)
    }

    /// When the group's next operation should begin. Each call is one operation.
    pub(super) fn intended(&self, start: u64) -> u64 {
        let number = self.group.started.0.fetch_add(1, Ordering::Relaxed);
        let seconds = number as f64 / self.group.spec.rate_per_second.unwrap_or(f64::INFINITY);
        let after = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        start.saturating_add(self.load.clock.ticks(after))
    }

    /// The pause after an operation; gives the time when it is over.
    pub(super) fn rest(&self, end: u64, think: u64, deadline: u64) -> u64 {
        let clock = self.load.clock;
        if think == 0 {
            return clock.now();
        }
        self.sleep_until(end.saturating_add(think).min(deadline), end);
        clock.now()
    }

    /// Sleeps until a moment; `false` when told to stop meanwhile.
    pub(super) fn sleep_until(&self, moment: u64, now: u64) -> bool {
        let clock = self.load.clock;
        let mut now = now;
        while now < moment {
            if self.told_to_stop() {
                return false;
            }
            let left = Duration::from_nanos(clock.between(now, moment));
            std::thread::sleep(left.min(NAP));
            now = clock.now();
        }
        true
    }

    /// Fsyncs the file just worked on, when the group's count of operations says so and something was written.
    pub(super) fn fsync_after(&mut self) {
        let PeriodicFsyncs::After { done, dirty } = &self.group.fsyncs else { return };
        let policy = self.group.spec.fsync;
        let count = done.0.fetch_add(1, Ordering::Relaxed) + 1;
        if !count.is_multiple_of(policy.every_operations) || !dirty.0.swap(false, Ordering::Relaxed) {
            return;
        }
        let Some((fileset, file)) = self.previous else { return };
        if self.fsync_one(fileset, file, false, None) && policy.counted {
            self.group.limits.count(1);
            self.load.phase.limits.count(1);
        }
    }

    /// An fsync of the series between two operations; the time when it is done. One that counts takes the place of an
    /// operation that was claimed, and its latency counts from when that was `intended`, if it was. One that does not
    /// leaves what was claimed to the operation after it.
    #[inline(never)]
    pub(super) fn fsync_between(&mut self, file: u64, intended: Option<u64>, start: u64, point: &mut Point) -> u64 {
        self.fsync_of_series(file, intended.filter(|_| self.group.spec.fsync.counted));
        let now = self.load.clock.now();
        self.account(point, start, now);
        now
    }

    /// Fsyncs one file of the group's filesets, seen as one. Its latency counts from `intended`, if that is given.
    fn fsync_of_series(&mut self, file: u64, intended: Option<u64>) {
        let mut file = file;
        for fileset in &self.group.filesets {
            let table = &self.load.files[*fileset].table;
            if file < table.names() {
                if table.is_live(file as u32) {
                    self.fsync_one(*fileset, file as u32, false, intended);
                }
                return;
            }
            file -= table.names();
        }
    }

    /// Fsyncs every file of the group's filesets when a thread ends.
    fn fsync_every_file(&mut self) {
        for fileset in &self.group.filesets {
            let files = &self.load.files[*fileset];
            for file in files.table.live_files() {
                if self.load.halted.load(Ordering::Relaxed) || self.load.cancel.load(Ordering::Relaxed) {
                    return;
                }
                self.fsync_one(*fileset, file, true, None);
            }
        }
    }

    /// One fsync of the group's policy; whether it was made.
    fn fsync_one(&mut self, fileset: usize, file: u32, at_end: bool, intended: Option<u64>) -> bool {
        let picked = Picked { fileset, file, hold: Hold::Free, position: None };
        let keep = self.group.spec.open == OpenPolicy::KeepOpen;
        let data_only = self.group.spec.fsync.data_only;
        let call = if data_only { Call::Fdatasync } else { Call::Fsync };
        let clock = self.load.clock;
        self.name(&picked);
        let fd = if keep {
            self.kept(&picked)
        } else {
            let directory = self.files(fileset).directory();
            self.io.open(directory, self.path.as_c(), OFlags::RDONLY).map_err(|errno| Halt::fault(Call::Open, errno))
        };
        let outcome = fd.and_then(|fd| {
            let start = intended.unwrap_or_else(|| clock.now());
            let result = if data_only { self.io.fdatasync(fd) } else { self.io.fsync(fd) };
            let latency = clock.between(start, clock.now());
            let closed = if keep { Ok(()) } else { self.io.close(fd) };
            result.map_err(|errno| Halt::fault(call, errno))?;
            closed.map_err(|errno| Halt::fault(Call::Close, errno))?;
            Ok(latency)
        });
        match outcome {
            Ok(latency) => {
                let tally = &mut self.tally.group_fsyncs;
                let kind = if at_end { &mut tally.at_end } else { &mut tally.periodic };
                kind.record(latency);
                true
            }
            // It was removed by another thread.
            Err(_) if !self.files(fileset).table.is_live(file) => false,
            Err(Halt::Fault(fault)) => {
                let path = self.load.files[fileset].shown(&self.path.shown());
                self.note_error("fsync policy", fault, &path);
                false
            }
            Err(Halt::Exhausted | Halt::Stopped) => false,
        }
    }
}
