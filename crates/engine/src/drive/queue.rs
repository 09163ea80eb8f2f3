//! The loop of a thread that keeps many transfers in flight.
//!
//! Operations that are one transfer each are queued: the thread fills every free slot, submits the batch, and
//! reaps what is done. The clock is read once when a batch is made and once when completions are reaped, so that
//! latency is the time from submission to completion. Anything else that the group's mix asks for, and a write that
//! direct I/O cannot carry, waits until the queue is empty, and is then performed alone.
//!
//! The thread does nothing that takes long while requests are in flight, because their completions would be seen late: it submits
//! before it waits and reaps while it waits, an fsync that follows an operation is a request like the others, and the page cache is dropped
//! with an empty queue.

use super::account::Point;
use super::choice::{Choice, Next};
use super::depth::{Search, Window};
use super::fsyncs::DueFsync;
use super::pace::{EARLY, Pauses};
use super::patience::Patience;
use crate::io::{self, Completion, Io};
use crate::measure::{Call, Done};
use crate::ops::{self, Flight, OddWrite, Queued};
use crate::plan::{Found, PeriodicFsyncs};
use crate::worker::{Fault, Incomplete, Picked, Worker};
use fstone_model::units::nanoseconds;
use fstone_model::workload::Batches;
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longest wait for a completion under a target rate: how long it may take to notice that the load is to stop.
const NAP: Duration = Duration::from_millis(50);

struct Queue {
    free: Vec<u32>,
    depth: u32,
    /// By slot: the action, when it began (was meant to, under a target rate), and the transfer.
    slots: Vec<Option<(usize, u64, Flight)>>,
    /// What was reaped: with `reap_at_most`, also what is left for the next time.
    done: Vec<Completion>,
    reap_at_most: usize,
    pushed: u32,
    submit_at: u32,
    fsyncs: Vec<DueFsync>,
    /// By slot, of an fsync: what it follows.
    after: Vec<Option<(u64, u64)>>,
    /// Whether a pass is over: the page cache is dropped before another request begins.
    drop_cache: bool,
    last_end: u64,
    window: Window,
}

/// What is done by itself, when the queue is empty.
#[derive(Debug, Clone, Copy)]
enum Alone {
    /// An action, when it was meant to begin, and the write that it is if the queue cannot carry it.
    Action(usize, u64, Option<OddWrite>),
    /// An fsync of a series of the group's policy, and when it was meant to begin, if that was said. What was counted before it is
    /// written first.
    Fsync((u64, bool), Option<u64>),
    /// A file of a fileset is finished.
    Close(usize, u32),
}

#[derive(Debug, Clone, Copy)]
enum Began {
    Yes,
    Alone(OddWrite),
    Missed,
    Over,
}

impl Queue {
    fn new(most: u32, depth: u32, batches: Batches) -> Self {
        let mut queue = Self {
            free: Vec::with_capacity(most as usize),
            depth: 0,
            slots: vec![None; most as usize],
            done: Vec::with_capacity(most as usize),
            reap_at_most: batches.most.map_or(usize::MAX, |most| most.max(batches.least).max(1) as usize),
            pushed: 0,
            submit_at: batches.submit.unwrap_or(u32::MAX),
            fsyncs: Vec::new(),
            after: vec![None; most as usize],
            drop_cache: false,
            last_end: 0,
            window: Window::NONE,
        };
        queue.use_slots(depth);
        queue
    }

    /// From now on so many are used. None may be in flight.
    fn use_slots(&mut self, depth: u32) {
        self.depth = depth;
        self.free.clear();
        self.free.extend((0..depth).rev());
    }

    fn flying(&self) -> u32 {
        self.depth - self.free.len() as u32
    }
}

type Result<T> = std::result::Result<T, Fault>;

impl<E: Io> Worker<'_, E> {
    pub(super) fn queues(&self) -> bool {
        self.group.io.engine.queues() && self.group.io.queue_depth > 1 && self.group.queues
    }

    /// Keeps the queue full until the end, from the place in a sequence that `kept` says, which is where the next loop goes on. Returns the end
    /// of the last operation, and the depth that was found or given.
    pub(super) fn drive_queue(&mut self, point: &mut Point, kept: &mut Choice) -> (Option<u64>, Option<Found>) {
        let clock = self.load.clock;
        let start = self.load.start.load(Ordering::Relaxed);
        let deadline = self.deadline();
        let most = self.group.io.queue_depth;
        let batches = self.group.spec.batches;
        let single: Vec<bool> = self.group.actions.iter().map(|action| action.operation.is_one_transfer()).collect();
        let paced = self.group.schedule.is_some();
        let at_once = if self.group.io.direct { 1 } else { most };
        let (mut choice, mut claimed) = (Choice::counting(at_once).at(kept.place()), false);
        let mut patience = Patience::default();
        let (mut granted, mut performed) = ((0, 0), 0u64);
        let mut now = clock.now().max(start);
        let mut pauses = Pauses::of(&self.group.spec, &clock, now);
        let (mut begun, mut since) = (now, 0);
        let given = self.group.found(self.number).map(|found| Found { depth: found.depth.min(most), ..found });
        let target = &self.group.spec.latency_target;
        let mut search = target.as_ref().map(|target| Search::new(target, most, &clock, now));
        let first = if search.is_some() { 1 } else { given.map_or(most, |given| given.depth) };
        let mut queue = Queue::new(most, first, batches);
        queue.window.target_ns = target.map_or(u64::MAX, |target| nanoseconds(target.latency));
        self.expect_aimed();
        let mut going = true;
        let (mut alone, mut missed, mut looks) = (None, None, false);
        // What was granted at a rate, while an fsync that is due comes first.
        let mut granted_one = false;
        while going || queue.flying() > 0 || !queue.fsyncs.is_empty() {
            if self.yields.is_some() {
                now = self.perturbed(since, now);
                since = now;
            }
            going = going && now < deadline && !self.told_to_stop();
            self.begin_fsyncs(&mut queue);
            while going && alone.is_none() && !queue.free.is_empty() {
                if pauses.are_due(performed, now) {
                    break;
                }
                if !claimed && !granted_one {
                    let over = self.group.thread_quota.is_some_and(|quota| performed >= quota);
                    if over || !self.granted(&mut granted) {
                        going = false;
                        break;
                    }
                    begun = now;
                    granted_one = paced;
                }
                if granted_one {
                    if let Some(due) = self.due_at_once() {
                        alone = Some(Alone::Fsync(due, None));
                        continue;
                    }
                    granted_one = false;
                    begun = self.intended();
                    if !self.wait_until(begun.min(deadline), &mut queue, point) || begun >= deadline {
                        going = false;
                        break;
                    }
                    if queue.free.is_empty() {
                        // Fsyncs that were due meanwhile have taken the slots.
                        claimed = true;
                        break;
                    }
                }
                if queue.drop_cache {
                    // Before the first of the next pass, and not behind the last.
                    claimed = true;
                    break;
                }
                let index = match self.next(&mut choice) {
                    Next::Action(index) | Next::Rested(index) => index,
                    Next::Fsync(file, data) => {
                        alone = Some(Alone::Fsync((file, data), paced.then_some(begun)));
                        claimed = !self.group.spec.fsync.counted;
                        continue;
                    }
                    Next::Close(fileset, file) => {
                        alone = Some(Alone::Close(fileset, file));
                        claimed = true;
                        continue;
                    }
                    Next::End => {
                        going = false;
                        break;
                    }
                };
                claimed = false;
                performed += 1;
                if single[index] {
                    match self.begin(index, begun, &mut queue, point) {
                        Began::Yes => {}
                        Began::Alone(write) => alone = Some(Alone::Action(index, begun, Some(write))),
                        Began::Over => going = false,
                        Began::Missed => {
                            performed -= 1;
                            claimed = true;
                            missed = Some(index);
                            // What is in flight may be what others wait for.
                            break;
                        }
                    }
                    if queue.pushed >= queue.submit_at {
                        self.submit(&mut queue);
                        now = clock.now();
                    }
                    // At a rate the queue may never be full.
                    looks = paced && search.as_ref().is_some_and(|search| search.is_over(clock.now()));
                    if looks {
                        break;
                    }
                } else {
                    alone = Some(Alone::Action(index, begun, None));
                }
            }
            let flying = queue.flying();
            queue.window.most = queue.window.most.max(flying);
            if flying == queue.depth && (batches.least > 1 || batches.refill_at.is_some()) {
                self.take_back(batches.least.clamp(1, queue.depth), None, &mut queue, point);
                // No more are begun before so many are done.
                let low = batches.refill_at.unwrap_or(queue.depth);
                while queue.flying() > low && !self.load.halted.load(Ordering::Relaxed) {
                    self.take_back(1, None, &mut queue, point);
                }
            } else if flying > 0 && !std::mem::take(&mut looks) {
                // Each is reaped, and its time taken, when it is done: waiting for several gives all of them the slowest's time.
                self.take_back(1, None, &mut queue, point);
            }
            if let Some(index) = missed.take() {
                self.miss(index, performed, &mut patience, &mut choice);
            }
            if queue.drop_cache && claimed && queue.flying() == 0 && queue.fsyncs.is_empty() {
                self.drop_kept();
                queue.drop_cache = false;
                if !paced {
                    begun = clock.now();
                }
            }
            match alone.take_if(|_| queue.flying() == 0) {
                Some(Alone::Action(index, intended, write)) => {
                    // What it waited for the queue is not its latency, except under a target rate.
                    let start_of_it = if paced { intended } else { clock.now() };
                    (self.mark, self.aside) = (0, 0);
                    let attempt = match write {
                        Some(write) => ops::write_odd(self, write),
                        None => ops::perform(self, index),
                    };
                    match attempt {
                        Ok(()) => self.ended(index, Ok(self.done), start_of_it, &mut queue, point),
                        Err(Incomplete::Fault(fault)) => self.ended(index, Err(fault), start_of_it, &mut queue, point),
                        Err(Incomplete::Missed) => {
                            performed -= 1;
                            claimed = true;
                            self.miss(index, performed, &mut patience, &mut choice);
                        }
                        Err(Incomplete::Exhausted | Incomplete::Stopped) => going = false,
                    }
                }
                Some(Alone::Fsync(file, intended)) => {
                    queue.last_end = self.fsync_between(file, intended, None, point);
                }
                Some(Alone::Close(fileset, file)) => {
                    self.close_finished(fileset, file);
                }
                None => {}
            }
            now = clock.now();
            if queue.flying() == 0 && queue.fsyncs.is_empty() && pauses.are_due(performed, now) {
                now = self.rest(&mut pauses, performed, queue.last_end, deadline);
            }
            if let Some(search) = &mut search {
                going &= self.search_on(search, now, &mut queue, point);
                now = clock.now();
            }
            if !paced {
                begun = now;
            }
        }
        if search.as_ref().is_some_and(Search::ends) && !self.load.phase.searches.are_over() {
            self.load.phase.searches.leave();
        }
        *kept = choice;
        ((queue.last_end != 0).then_some(queue.last_end), search.map(|search| search.found()).or(given))
    }

    /// Has the queue go on with the depth that a search says; `false` when all searches are over.
    fn search_on(&mut self, search: &mut Search, now: u64, queue: &mut Queue, point: &mut Point) -> bool {
        let searches = &self.load.phase.searches;
        if search.ends() && searches.are_over() {
            return false;
        }
        let Some(depth) = search.look(&queue.window, now) else { return true };
        let changed = depth != queue.depth;
        if changed {
            // What one depth has in flight is not counted for another.
            while queue.flying() > 0 {
                self.take_back(1, None, queue, point);
            }
            queue.use_slots(depth);
        }
        queue.window = Window { target_ns: queue.window.target_ns, ..Window::NONE };
        search.begin(changed, searches, self.load.clock.now());
        !(search.ends() && searches.are_over())
    }

    #[inline(always)]
    fn begin(&mut self, index: usize, begun: u64, queue: &mut Queue, point: &mut Point) -> Began {
        let Some(slot) = queue.free.pop() else { return Began::Yes };
        self.aside = 0;
        match ops::queue(self, index, slot) {
            Ok(Queued::Pushed(flight)) => {
                queue.slots[slot as usize] = Some((index, begun + self.aside, flight));
                queue.pushed += 1;
                // A pass ends with the request that completes it, whenever that is done.
                if self.group.spec.invalidate_every.is_some() {
                    queue.drop_cache |= self.pass_is_over(flight.length as u64);
                }
                if self.counted.1 {
                    // A load that ends by bytes begins no more than these.
                    self.moved(flight.length as u64);
                    if self.told_to_stop() {
                        return Began::Over;
                    }
                }
                return Began::Yes;
            }
            Ok(Queued::Odd(write)) => {
                queue.free.push(slot);
                return Began::Alone(write);
            }
            Ok(Queued::Done) => self.ended(index, Ok(self.done), begun, queue, point),
            Err(Incomplete::Fault(fault)) => self.ended(index, Err(fault), begun, queue, point),
            Err(Incomplete::Missed) => {
                queue.free.push(slot);
                return Began::Missed;
            }
            Err(Incomplete::Exhausted | Incomplete::Stopped) => {
                queue.free.push(slot);
                return Began::Over;
            }
        }
        queue.free.push(slot);
        if self.told_to_stop() { Began::Over } else { Began::Yes }
    }

    /// Waits for a moment: submits before it, reaps what is done meanwhile, and begins the fsyncs that are due then; `false` if the load is to
    /// stop.
    fn wait_until(&mut self, moment: u64, queue: &mut Queue, point: &mut Point) -> bool {
        let clock = self.load.clock;
        let mut now = clock.now();
        loop {
            self.begin_fsyncs(queue);
            if queue.flying() == 0 || now >= moment {
                break;
            }
            if self.told_to_stop() {
                return false;
            }
            let left = Duration::from_nanos(clock.between(now, moment));
            match left.checked_sub(EARLY) {
                Some(time) if !time.is_zero() => self.take_back(1, Some(time.min(NAP)), queue, point),
                // Too short for a sleep.
                _ => {
                    std::hint::spin_loop();
                    self.take_back(0, Some(Duration::ZERO), queue, point);
                }
            }
            now = clock.now();
        }
        self.wait_exactly(moment, now)
    }

    fn submit(&mut self, queue: &mut Queue) {
        queue.pushed = 0;
        if let Err(errno) = self.io.submit() {
            self.queue_failed(errno, queue);
        }
    }

    /// The queue itself fails: what is in flight is not known, so the load cannot go on.
    #[cold]
    fn queue_failed(&mut self, errno: Errno, queue: &mut Queue) {
        let from = (&*self.group.spec.name, io::name_of(self.group.io.engine));
        self.load.collector.error(from, "wait for requests in flight", "", errno, None);
        self.load.halt();
        queue.fsyncs.clear();
        queue.use_slots(queue.depth);
    }

    fn begin_fsyncs(&mut self, queue: &mut Queue) {
        while let Some(due) = queue.fsyncs.pop_if(|_| !queue.free.is_empty()) {
            let Some(slot) = queue.free.pop() else { return };
            match self.push_fsync(due, slot) {
                Some(flight) => {
                    queue.after[slot as usize] = due.after;
                    queue.slots[slot as usize] = Some((0, self.load.clock.now(), flight));
                    queue.pushed += 1;
                }
                None => queue.free.push(slot),
            }
        }
    }

    #[inline(never)]
    fn ended(&mut self, index: usize, outcome: Result<Done>, begun: u64, queue: &mut Queue, point: &mut Point) {
        queue.last_end = self.load.clock.now();
        let latency_ns = self.load.clock.between(begun + self.aside, queue.last_end);
        if self.counted.1 {
            self.moved(outcome.map_or(self.begun_bytes, |done| done.read_bytes + done.written_bytes));
        }
        if self.group.spec.invalidate_every.is_some() {
            let moved = outcome.map_or(0, |done| done.read_bytes + done.written_bytes);
            queue.drop_cache |= self.pass_is_over(moved);
        }
        self.settle(index, self.previous, (outcome, latency_ns), queue, point);
    }

    /// Counts an operation on the fileset and file `of`.
    #[inline(always)]
    fn settle(
        &mut self,
        index: usize,
        of: Option<(usize, u32)>,
        (outcome, latency_ns): (Result<Done>, u64),
        queue: &mut Queue,
        point: &mut Point,
    ) {
        self.account(point, queue.last_end);
        match outcome {
            Ok(done) => self.completed(index, done, latency_ns),
            Err(fault) => self.failed(index, fault, of),
        }
        if matches!(self.group.fsyncs, PeriodicFsyncs::After { .. }) {
            let wrote = outcome.is_ok_and(|done| done.written_bytes > 0).then_some((queue.last_end, latency_ns));
            queue.fsyncs.extend(self.fsync_due_after(wrote, of));
        }
    }

    /// Submits what is pushed and reaps what is done, at least so many unless the wait is over. What is done beyond the most that may be reaped
    /// at once is left for the next time.
    fn take_back(&mut self, least: u32, wait: Option<Duration>, queue: &mut Queue, point: &mut Point) {
        let mut done = std::mem::take(&mut queue.done);
        let pushed = std::mem::take(&mut queue.pushed);
        let wanted = least.saturating_sub(done.len() as u32);
        let handed = match done.is_empty() || wanted > 0 {
            true => self.io.complete(wanted, wait, |completion| done.push(completion)),
            false if pushed > 0 => self.io.submit(),
            false => Ok(()),
        };
        if let Err(errno) = handed {
            self.queue_failed(errno, queue);
            return;
        }
        let reaped = done.len().min(queue.reap_at_most);
        if reaped > 0 {
            queue.last_end = self.load.clock.now();
        }
        queue.window.requests += reaped as u64;
        let clock = self.load.clock;
        // What was handed over together and comes back together took the same time.
        let (mut of, mut latency_ns) = (queue.last_end, 0);
        for completion in done.drain(..reaped) {
            let taken = queue.slots.get_mut(completion.slot as usize).and_then(Option::take);
            let Some((index, begun, flight)) = taken else { continue };
            let outcome = self.outcome(&flight, completion);
            queue.free.push(completion.slot);
            if begun != of {
                (of, latency_ns) = (begun, clock.between(begun, queue.last_end));
            }
            if flight.is_fsync() {
                queue.window.requests -= 1;
                let after = queue.after[completion.slot as usize];
                self.fsynced(&flight, after, outcome.map(|_| (latency_ns, queue.last_end)));
                continue;
            }
            let Picked { fileset, file, hold, .. } = flight.picked;
            self.files(fileset).table.release(file, hold);
            // What failed did not come in time either.
            queue.window.late += u64::from(outcome.is_err() || latency_ns > queue.window.target_ns);
            self.settle(index, Some((fileset, file)), (outcome, latency_ns), queue, point);
        }
        queue.done = done;
    }

    #[inline(always)]
    fn outcome(&mut self, flight: &Flight, completion: Completion) -> Result<Done> {
        let reading = flight.call == Call::Read;
        let errno = match completion.outcome {
            Ok(moved) if moved >= flight.length => {
                let bytes = flight.length as u64;
                let (read_bytes, written_bytes) = if reading { (bytes, 0) } else { (0, bytes) };
                return Ok(Done { read_bytes, written_bytes, calls: 1 });
            }
            // Cut short: the rest would have to wait, the file ends early, or the device is full.
            Ok(moved) if moved > 0 && self.group.io.no_wait => Errno::AGAIN,
            Ok(_) if reading => Errno::NODATA,
            Ok(_) => Errno::NOSPC,
            Err(errno) => errno,
        };
        self.name(&flight.picked);
        Err(Fault::new(flight.call, errno))
    }
}
