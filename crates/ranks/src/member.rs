//! A rank: what its load asks of the other ranks, and the answers.

use crate::message::{Answer, Call, Common, Message, State};
use crate::{facts, given::Loaded, priority};
use fstone_engine::{Parted, Peers, Progress};
use fstone_model::ranks::PhasePassed;
use fstone_model::workload::RankShift;
use rustix::time::{ClockId, Timespec};
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) enum Request {
    Tell(Message),
    Give { to: u32, meeting: u64, bytes: Vec<u8> },
    Done(Result<Box<Loaded>, String>),
}

#[derive(Debug, Default)]
struct Inbox {
    answers: HashMap<u64, Answer>,
    given: HashMap<(u32, u64), Vec<u8>>,
    over: Option<String>,
}

#[derive(Debug)]
struct Doing {
    state: State,
    /// Bytes that it has moved there. One large file takes long, and is one operation.
    bytes: u64,
    /// When the load last completed anything, or moved bytes.
    moved: Instant,
    /// Whether it waits for other ranks, which does not count as a standstill.
    waiting: bool,
}

/// A rank. Its load uses it as its [`Peers`], and reports its progress to it.
#[derive(Debug)]
pub struct Member {
    rank: u32,
    size: u32,
    seed: u64,
    whose: Vec<RankShift>,
    phases: Vec<String>,
    requests: Sender<Request>,
    meeting: AtomicU64,
    inbox: Mutex<Inbox>,
    arrived: Condvar,
    parted: AtomicBool,
    first: AtomicBool,
    doing: Mutex<Doing>,
}

/// The seed of a rank; rank 0 has the load's own.
pub(crate) fn seed_of(seed: u64, rank: u32) -> u64 {
    if rank == 0 {
        return seed;
    }
    // SplitMix64's finaliser (Steele, Lea & Flood 2014). Of its 64 bits 48 are kept, so that two of 10,000 ranks have the same seed once in
    // six million loads.
    let mut mixed = seed ^ u64::from(rank).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    // As all seeds are: what any tool can hold.
    (mixed ^ (mixed >> 31)) >> 16
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Member {
    pub(crate) fn new(rank: u32, size: u32, common: Common, phases: Vec<String>, requests: Sender<Request>) -> Self {
        let Common { seed, whose } = common;
        let state = State { at: "setup".into(), ..State::default() };
        let doing = Doing { state, bytes: 0, moved: Instant::now(), waiting: false };
        Self {
            rank,
            size,
            seed,
            whose,
            phases,
            requests,
            meeting: AtomicU64::new(0),
            inbox: Mutex::default(),
            arrived: Condvar::new(),
            parted: AtomicBool::new(false),
            first: AtomicBool::new(false),
            doing: Mutex::new(doing),
        }
    }

    pub fn seed(&self) -> u64 {
        seed_of(self.seed, self.rank)
    }

    /// Notes the load's progress, for signs of life. To be called with the engine's progress.
    pub fn progress(&self, progress: &Progress) {
        self.doing(&progress.phase, progress.operations, progress.bytes);
    }

    fn doing(&self, at: &str, operations: u64, bytes: u64) {
        let mut doing = locked(&self.doing);
        if doing.state.at != at || doing.state.operations != operations || doing.bytes != bytes {
            doing.moved = Instant::now();
            at.clone_into(&mut doing.state.at);
            doing.state.operations = operations;
            doing.bytes = bytes;
        }
    }

    pub(crate) fn state(&self) -> State {
        /// After a standstill of this length, the state of the threads is included.
        const LONG: Duration = Duration::from_secs(5);
        let doing = locked(&self.doing);
        let still = if doing.waiting { Duration::ZERO } else { doing.moved.elapsed() };
        let still_ms = u64::try_from(still.as_millis()).unwrap_or(u64::MAX);
        let state = State { still_ms, ..doing.state.clone() };
        drop(doing);
        if still < LONG { state } else { State { threads: facts::threads(), ..state } }
    }

    pub(crate) fn waits(&self) -> bool {
        locked(&self.doing).waiting
    }

    pub(crate) fn answered(&self, meeting: u64, answer: Answer) {
        locked(&self.inbox).answers.insert(meeting, answer);
        self.arrived.notify_all();
    }

    pub(crate) fn was_given(&self, from: u32, meeting: u64, bytes: Vec<u8>) {
        locked(&self.inbox).given.insert((from, meeting), bytes);
        self.arrived.notify_all();
    }

    pub(crate) fn part(&self, why: String) {
        self.parted.store(true, Ordering::Relaxed);
        locked(&self.inbox).over.get_or_insert(why);
        self.arrived.notify_all();
    }

    fn wait<T>(&self, mut arrived: impl FnMut(&mut Inbox) -> Option<T>) -> Result<T, Parted> {
        locked(&self.doing).waiting = true;
        let mut inbox = locked(&self.inbox);
        let found = loop {
            if let Some(found) = arrived(&mut inbox) {
                break Ok(found);
            }
            if inbox.over.is_some() {
                break Err(Parted);
            }
            inbox = self.arrived.wait(inbox).unwrap_or_else(PoisonError::into_inner);
        };
        drop(inbox);
        let mut doing = locked(&self.doing);
        (doing.waiting, doing.moved) = (false, Instant::now());
        found
    }

    fn ask(&self, call: Call) -> Result<Answer, Parted> {
        let meeting = self.meeting.fetch_add(1, Ordering::Relaxed);
        self.tell(Message::Arrive { meeting, call });
        self.wait(|inbox| inbox.answers.remove(&meeting))
    }

    fn tell(&self, message: Message) {
        // If the receiver is gone, the process is about to end.
        let _ = self.requests.send(Request::Tell(message));
    }
}

fn sleep_until(clock_ns: u64) {
    // Without this the kernel may wake it up to 50 µs later. A refusal costs no more than that.
    let _ = rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN));
    let until = Timespec {
        tv_sec: (clock_ns / 1_000_000_000).cast_signed(),
        tv_nsec: (clock_ns % 1_000_000_000).cast_signed(),
    };
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(rustix::io::Errno::INTR) {}
}

impl Peers for Member {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn whose(&self) -> &[RankShift] {
        &self.whose
    }

    fn common_seed(&self) -> u64 {
        self.seed
    }

    fn begin(&self, phase: usize) -> Result<(), Parted> {
        match self.ask(Call::Begin { phase: u32::try_from(phase).unwrap_or(u32::MAX) })? {
            Answer::At { clock_ns } => {
                self.doing(self.phases.get(phase).map_or("", String::as_str), 0, 0);
                // All other ranks of this machine wake at the same moment.
                self.first.store(priority::go_first(true), Ordering::Relaxed);
                sleep_until(clock_ns);
                Ok(())
            }
            _ => Err(Parted),
        }
    }

    fn begun(&self) {
        if self.first.swap(false, Ordering::Relaxed) {
            priority::go_first(false);
        }
    }

    fn ended(&self, passed: PhasePassed) {
        self.tell(Message::Passed(passed));
    }

    fn meet(&self) -> Result<(), Parted> {
        match self.ask(Call::Meet)? {
            Answer::Met => Ok(()),
            _ => Err(Parted),
        }
    }

    fn share(&self, bytes: Option<Vec<u8>>) -> Result<Vec<u8>, Parted> {
        match self.ask(Call::Share(bytes))? {
            Answer::Shared(bytes) => Ok(bytes),
            _ => Err(Parted),
        }
    }

    fn exchange(&self, to: u32, from: u32, bytes: Vec<u8>) -> Result<Vec<u8>, Parted> {
        let meeting = self.meeting.fetch_add(1, Ordering::Relaxed);
        let _ = self.requests.send(Request::Give { to, meeting, bytes });
        self.wait(|inbox| inbox.given.remove(&(from, meeting)))
    }

    fn most(&self, counts: &[u64]) -> Result<Vec<u64>, Parted> {
        match self.ask(Call::Most(counts.to_vec()))? {
            Answer::Most(counts) => Ok(counts),
            _ => Err(Parted),
        }
    }

    fn parted(&self) -> bool {
        self.parted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_file_that_is_not_done_are_progress() {
        let (sender, _requests) = std::sync::mpsc::channel();
        let member = Member::new(0, 1, Common { seed: 1, whose: Vec::new() }, Vec::new(), sender);
        let moved = || locked(&member.doing).moved;
        let told = |bytes| member.progress(&Progress { phase: "setup".into(), bytes, ..Progress::default() });
        let begun = moved();
        std::thread::sleep(Duration::from_millis(1));
        told(0);
        assert_eq!(moved(), begun, "nothing has happened");
        told(1 << 20);
        assert!(moved() > begun);
    }
}
