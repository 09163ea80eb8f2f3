//! When queued requests are submitted and seen to be done, in simulated time.

use super::*;
use crate::measure::Clock;
use crate::measure::clock::simulated;
use std::cell::RefCell;

/// What a request takes from its submission, whatever else is in flight.
const SERVICE: Duration = Duration::from_micros(2);
const FSYNC: Duration = Duration::from_millis(5);

thread_local! {
    static SEEN: RefCell<Seen> = const { RefCell::new(Seen::new()) };
}

#[derive(Debug)]
struct Seen {
    submissions: Vec<usize>,
    fsyncs: usize,
    /// The most transfers that were pushed without an fsync between them.
    unsynced: usize,
    /// The same since the last fsync.
    since: usize,
    /// When a request was last done, and the longest time from then until an fsync was pushed.
    done_at: u64,
    fsync_late: u64,
    /// Calls that block, other than waiting for requests, while some were in flight.
    blocked: usize,
}

impl Seen {
    const fn new() -> Self {
        Self { submissions: Vec::new(), fsyncs: 0, unsynced: 0, since: 0, done_at: 0, fsync_late: 0, blocked: 0 }
    }
}

/// Takes so long for each request, in simulated time.
struct Served {
    clock: Clock,
    memory: Vec<u8>,
    pushed: Vec<(u32, usize, Duration)>,
    flying: Vec<(u64, u32, usize)>,
}

impl Served {
    fn blocks(&self) -> Result<()> {
        SEEN.with_borrow_mut(|seen| seen.blocked += usize::from(self.pushed.len() + self.flying.len() > 0));
        Ok(())
    }
}

impl Io for Served {
    const REAL: bool = false;

    plain! {
        open close truncate syncfs fallocate stat unlink rename link symlink mkdir rmdir
        chmod utimens setxattr getxattr copy_file_range reflink list
    }

    fn new(setup: Setup) -> std::result::Result<Self, SetupError> {
        let memory = vec![0; setup.block_bytes];
        Ok(Self { clock: Clock::get(), memory, pushed: Vec::new(), flying: Vec::new() })
    }

    fn read(&mut self, _: Fd, buffer: &mut [u8], _: u64) -> Result<usize> {
        simulated::advance(&self.clock, SERVICE);
        Ok(buffer.len())
    }

    fn write(&mut self, _: Fd, data: &[u8], _: u64) -> Result<usize> {
        simulated::advance(&self.clock, FSYNC);
        self.blocks()?;
        Ok(data.len())
    }

    fn fsync(&mut self, _: Fd) -> Result<()> {
        simulated::advance(&self.clock, FSYNC);
        self.blocks()
    }

    fn fdatasync(&mut self, fd: Fd) -> Result<()> {
        self.fsync(fd)
    }

    fn advise(&mut self, _: Fd, _: crate::io::Part, _: rustix::fs::Advice) -> Result<()> {
        simulated::advance(&self.clock, FSYNC);
        self.blocks()
    }

    fn slot(&mut self, _: u32) -> &mut [u8] {
        &mut self.memory
    }

    fn push(&mut self, slot: u32, _: Direction, _: Fd, length: usize, _: u64) -> Result<()> {
        SEEN.with_borrow_mut(|seen| {
            seen.since += 1;
            seen.unsynced = seen.unsynced.max(seen.since);
        });
        self.pushed.push((slot, length, SERVICE));
        Ok(())
    }

    fn push_fsync(&mut self, slot: u32, _: Fd, _: bool) -> Result<()> {
        SEEN.with_borrow_mut(|seen| {
            (seen.fsyncs, seen.since) = (seen.fsyncs + 1, 0);
            seen.fsync_late = seen.fsync_late.max(simulated::now() - seen.done_at);
        });
        self.pushed.push((slot, 0, FSYNC));
        Ok(())
    }

    fn submit(&mut self) -> Result<()> {
        if !self.pushed.is_empty() {
            SEEN.with_borrow_mut(|seen| seen.submissions.push(self.pushed.len()));
        }
        let now = simulated::now();
        let submitted = self.pushed.drain(..);
        self.flying.extend(submitted.map(|(slot, length, time)| (now + self.clock.ticks(time), slot, length)));
        Ok(())
    }

    fn complete(&mut self, least: u32, wait: Option<Duration>, mut each: impl FnMut(Completion)) -> Result<()> {
        self.submit()?;
        self.flying.sort_unstable();
        let limit = wait.map_or(u64::MAX, |wait| simulated::now().saturating_add(self.clock.ticks(wait)));
        if let Some(last) = (least as usize).checked_sub(1).and_then(|last| self.flying.get(last)) {
            let left = last.0.min(limit).saturating_sub(simulated::now());
            simulated::advance(&self.clock, Duration::from_nanos(self.clock.nanoseconds(left) + 1));
        }
        let now = simulated::now();
        let done = self.flying.iter().take_while(|(at, ..)| *at <= now).count();
        SEEN.with_borrow_mut(|seen| seen.done_at = if done > 0 { now } else { seen.done_at });
        for (_, slot, length) in self.flying.drain(..done) {
            each(Completion { slot, outcome: Ok(length) });
        }
        Ok(())
    }
}

/// A load of one group in simulated time, with this engine: its only operation, its fsyncs, and what the engine saw if it is [`Served`].
fn simulated_run<E: Io>(group: ThreadGroup, stop: Stop, depth: u32) -> (OperationReport, Seen) {
    let load = workload(1, vec![group], stop, null(depth));
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| {
            simulated::begin();
            let (mut operations, errors) = carried_out(&load, Path::new("."), |load| drive::<E>(load, 0));
            assert!(errors.is_empty(), "{errors:?}");
            (operations.remove(0), SEEN.replace(Seen::new()))
        });
        ran.join().expect("no panic")
    })
}

#[test]
fn a_pace_neither_holds_requests_back_nor_sees_them_late() {
    for arrivals in [Arrivals::Even, Arrivals::Poisson] {
        for rate in [20.0, 1000.0, 20_000.0, 200_000.0] {
            for depth in [1, 32] {
                let mut group = group(Operation::Read(block()));
                (group.rate_per_second, group.arrivals) = (Some(rate), arrivals);
                let stop = Stop { operations: Some(300), ..Stop::default() };
                let (reads, seen) = simulated_run::<Served>(group, stop, depth);
                let case = format!("{arrivals:?}, {rate}/s, depth {depth}");
                let latency = &reads.latency;
                assert_eq!(latency.count(), 300, "{case}");
                let mean = Duration::from_nanos((latency.sum_ns() / 300) as u64);
                if depth == 1 && arrivals == Arrivals::Poisson && rate > 100_000.0 {
                    // One at a time: those that arrive meanwhile wait.
                    assert!(mean < 3 * SERVICE, "{case}: {mean:?}");
                    continue;
                }
                assert!(mean >= SERVICE && mean < SERVICE + 20 * simulated::READING, "{case}: {mean:?}");
                if depth > 1 && arrivals == Arrivals::Even {
                    assert!(seen.submissions.iter().all(|requests| *requests == 1), "{case}: {:?}", seen.submissions);
                }
            }
        }
    }
}

#[test]
fn every_engine_keeps_a_pace() {
    use IoEngineKind::{IoUring, Libaio, Mmap, Null, Psync};
    for engine in [Null, Psync, Mmap, IoUring, Libaio] {
        for (rate, arrivals, depth) in
            [(20_000.0, Arrivals::Even, 32), (15_000.0, Arrivals::Poisson, 32), (200.0, Arrivals::Even, 1)]
        {
            if depth > 1 && !engine.queues() {
                continue;
            }
            let mut group = group(Operation::Read(block()));
            (group.rate_per_second, group.arrivals) = (Some(rate), arrivals);
            let stop = Stop { operations: Some(200), ..Stop::default() };
            let (reads, _) = match engine {
                Null => simulated_run::<crate::io::Null>(group, stop, depth),
                _ => on_files(engine, group, stop, depth),
            };
            let median = Duration::from_nanos(reads.latency.percentile_ns(50.0).expect("there are some") as u64);
            assert!(median < Duration::from_secs_f64(0.2 / rate), "{engine:?}, {rate}/s, depth {depth}: {median:?}");
        }
    }
}

fn on_files(engine: IoEngineKind, group: ThreadGroup, stop: Stop, depth: u32) -> (OperationReport, Seen) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let io = IoSettings { queue_depth: depth, engine, ..IoSettings::default() };
    let load = workload(1, vec![group], stop, io);
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| {
            simulated::begin();
            let (mut operations, errors) = carried_out(&load, place.path(), |load| drive::<crate::io::Real>(load, 0));
            assert!(errors.is_empty(), "{errors:?}");
            (operations.remove(0), Seen::new())
        });
        ran.join().expect("no panic")
    })
}

#[test]
fn an_fsync_is_in_no_other_latency() {
    let mut writes = group(Operation::Write(block()));
    writes.fsync.every_operations = 50;
    let stop = Stop { operations: Some(1000), ..Stop::default() };
    let (writes, seen) = simulated_run::<Served>(writes, stop, 32);
    assert_eq!((writes.latency.count(), seen.fsyncs), (1000, 20));
    assert_eq!(seen.blocked, 0, "calls beside requests in flight");
    assert!(Duration::from_nanos(writes.latency.max_ns()) < FSYNC / 2, "{} ns", writes.latency.max_ns());
}

#[test]
fn fsyncs_of_a_paced_queue_are_made_when_they_are_due() {
    for (depth, rate) in [(32, 50.0), (32, 150.0), (4, 1000.0), (2, 1000.0)] {
        let mut writes = group(Operation::Write(block()));
        writes.rate_per_second = Some(rate);
        writes.fsync.every_operations = 1;
        let stop = Stop { operations: Some(100), ..Stop::default() };
        let (writes, seen) = simulated_run::<Served>(writes, stop, depth);
        let case = format!("{rate}/s, depth {depth}");
        assert_eq!((writes.latency.count(), seen.fsyncs), (100, 100), "{case}");
        if FSYNC.as_secs_f64() * rate < 1.0 {
            assert_eq!(seen.unsynced, 1, "{case}");
            assert!(
                Duration::from_nanos(writes.latency.max_ns()) < FSYNC / 2,
                "{case}: {} ns",
                writes.latency.max_ns()
            );
        }
        assert!(seen.unsynced <= depth as usize, "{case}: {} writes before an fsync", seen.unsynced);
    }
}

#[test]
fn an_fsync_does_not_wait_for_a_pause_to_end() {
    const PAUSE: Duration = Duration::from_millis(10);
    let mut writes = group(Operation::Write(block()));
    (writes.think_time, writes.think_every) = (PAUSE, 5);
    writes.fsync.every_operations = 5;
    let stop = Stop { operations: Some(50), ..Stop::default() };
    let (_, seen) = simulated_run::<Served>(writes, stop, 8);
    let late = Duration::from_nanos(Clock::get().nanoseconds(seen.fsync_late));
    assert!(seen.fsyncs == 10 && late < PAUSE / 2, "{} fsyncs, {late:?}", seen.fsyncs);
}

#[test]
fn a_write_that_cannot_be_queued_is_in_no_other_latency() {
    let mut mixed = group(Operation::Read(block()));
    let pattern = Pattern::Random { distribution: Distribution::Uniform, align_bytes: 1000 };
    let odd = Transfer { extent: Extent::Bytes(3000), block_bytes: 3000, pattern, fsync: false };
    if let Actions::Mix(actions) = &mut mixed.actions {
        actions[0].weight = 7;
        actions.push(Weighted { weight: 1, action: Action::new("odd", Operation::Write(odd), Some(0)) });
    }
    let io = IoSettings { direct: true, ..null(8) };
    let mut load = workload(1, vec![mixed], Stop { operations: Some(400), ..Stop::default() }, io);
    load.filesets[0].size = SizeDistribution::Fixed(1 << 20);
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| {
            simulated::begin();
            let (operations, errors) = carried_out(&load, Path::new("."), |load| drive::<Served>(load, 0));
            assert!(errors.is_empty(), "{errors:?}");
            let [reads, odd] = &operations[..] else { panic!("two actions") };
            assert!(reads.invocations + odd.invocations == 400 && odd.invocations > 20, "{operations:?}");
            assert!(Duration::from_nanos(reads.latency.max_ns()) < FSYNC / 2, "{} ns", reads.latency.max_ns());
            assert!(Duration::from_nanos(odd.latency.min_ns()) >= FSYNC - SERVICE, "{} ns", odd.latency.min_ns());
            assert_eq!(SEEN.replace(Seen::new()).blocked, 0, "calls beside requests in flight");
        });
        ran.join().expect("no panic");
    });
}

#[test]
fn the_cache_is_dropped_with_nothing_in_flight() {
    let mut reads = group(Operation::Read(block()));
    reads.invalidate_every = Some(10 * 4096);
    let stop = Stop { operations: Some(100), ..Stop::default() };
    let (reads, seen) = simulated_run::<Served>(reads, stop, 32);
    assert_eq!((reads.latency.count(), seen.blocked), (100, 0));
    assert_eq!(seen.submissions.iter().max(), Some(&10), "a pass is never mixed with the next");
}

#[test]
fn dropping_what_is_cached_shortens_no_other_operation() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut mixed = group(Operation::Read(block()));
    let opens = Action::new("opens", Operation::OpenClose, Some(0));
    if let Actions::Mix(actions) = &mut mixed.actions {
        actions.push(Weighted { weight: 1, action: opens });
    }
    mixed.invalidate = true;
    let io = IoSettings { queue_depth: 4, engine: IoEngineKind::IoUring, ..IoSettings::default() };
    let mut load = workload(1, vec![mixed], Stop { operations: Some(40), ..Stop::default() }, io);
    // Of which a read moves nothing, so that it is done at once.
    load.filesets[0].size = SizeDistribution::Fixed(0);
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| {
            simulated::begin();
            let (operations, errors) = carried_out(&load, place.path(), |load| drive::<Served>(load, 0));
            assert!(errors.is_empty(), "{errors:?}");
            let [reads, opens] = &operations[..] else { panic!("two actions") };
            assert!(reads.invocations > 5 && opens.invocations > 5, "{operations:?}");
            assert!(reads.latency.min_ns() > 0, "a read took no time");
            assert!(Duration::from_nanos(opens.latency.max_ns()) < FSYNC / 2, "{} ns", opens.latency.max_ns());
        });
        ran.join().expect("no panic");
    });
}

#[test]
fn batches_are_submitted_as_they_are_asked_for() {
    for (submit, largest) in [(None, 32), (Some(1), 1), (Some(4), 4)] {
        let mut reads = group(Operation::Read(block()));
        reads.batches.submit = submit;
        let stop = Stop { operations: Some(320), ..Stop::default() };
        let (_, seen) = simulated_run::<Served>(reads, stop, 32);
        assert_eq!(seen.submissions.iter().max(), Some(&largest), "{submit:?}");
        assert_eq!(seen.submissions.iter().sum::<usize>(), 320);
    }
}

/// All requests take the same time, so that those that were submitted together are done together.
#[test]
fn no_more_requests_are_reaped_at_once_than_was_asked_for() {
    // Requests submitted together at first, and afterwards.
    for (submit, most, first, later) in [
        (None, 1, 32, 1),
        (Some(8), 1, 8, 1),
        (None, 4, 32, 4),
        (Some(8), 4, 8, 4),
        (Some(4), 8, 4, 4),
        (None, 32, 32, 32),
    ] {
        let mut reads = group(Operation::Read(block()));
        (reads.batches.submit, reads.batches.most) = (submit, Some(most));
        let stop = Stop { operations: Some(320), ..Stop::default() };
        let (reads, seen) = simulated_run::<Served>(reads, stop, 32);
        let (filling, refilling) = seen.submissions.split_at(32 / first);
        assert!(filling.iter().all(|together| *together == first), "{submit:?}, {most}: {filling:?}");
        assert!(refilling.iter().all(|together| *together == later), "{submit:?}, {most}: {refilling:?}");
        assert_eq!((reads.latency.count(), refilling.len()), (320, 288 / later), "{submit:?}, {most}");
    }
}

#[test]
fn handing_over_is_in_no_latency_of_a_queue() {
    const HELD: Duration = Duration::from_secs(1);
    let stop = Stop { time: Some(HELD * 2), ..Stop::default() };
    let load = workload(1, vec![group(Operation::Read(block()))], stop, null(8));
    let (operations, _) = carried_out(&load, Path::new("."), |load| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(HELD / 4);
                let held = load.collector.held();
                std::thread::sleep(HELD);
                drop(held);
            });
            drive::<InTurn>(load, 0);
        });
    });
    let longest = Duration::from_nanos(operations[0].latency.max_ns());
    assert!(longest < HELD / 2, "{longest:?}");
}
