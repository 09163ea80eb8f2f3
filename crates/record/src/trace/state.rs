//! What the tracer knows: of the program, of its threads, and of the calls that they are in.

use super::decode::{Asked, What};
use super::preload::{Pointed, Preload};
use super::processors::{Account, Blamed, Processors, Usage};
use super::ptrace::{self, Stop};
use super::tables::{Descriptors, Roots};
use crate::call::{Call, Entry, Kind, Node};
use crate::file::Writer;
use libc::pid_t;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter};
use std::rc::Rc;
use std::time::Instant;

/// A stop takes the tracer a tenth of this to answer, unless it waits for a processor.
pub(super) const LONG_NS: u64 = 100_000;
/// What a call returns inside the kernel that will be made again, or, after a signal's handler, fails with EINTR.
pub(super) const AGAIN: std::ops::RangeInclusive<i64> = -516..=-512;
/// What a program says is left of a wait may be what was left so long ago: until then its signal's handler ran.
pub(super) const RECKONED_NS: u64 = 100_000_000;
pub(super) const INTERRUPTED: i64 = -(libc::EINTR as i64);

/// Each part of a path replaced by a hash, if there is a secret.
pub(super) fn hashed(path: &[u8], secret: Option<&RandomState>) -> Vec<u8> {
    let Some(secret) = secret else { return path.to_vec() };
    let of = |part: &[u8]| match part {
        b"" | b"." | b".." => part.to_vec(),
        part => format!("{:016x}", secret.hash_one(part)).into_bytes(),
    };
    path.split(|byte| *byte == b'/').map(of).collect::<Vec<_>>().join(&b'/')
}

pub(super) fn hashed_entry(mut entry: Entry, secret: Option<&RandomState>) -> Entry {
    entry.path = hashed(&entry.path, secret);
    if let Node::Link { target: name } | Node::Name { of: name } = &mut entry.node {
        *name = hashed(name, secret);
    }
    entry
}

/// What a thread had of the time between two stops.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    pub(super) wall_ns: u64,
    pub(super) usage: Usage,
}

/// How much of the last probe counts for what stops cost now, how far one may be from the others and still count as it is, and how far all
/// may be from the first.
const NEWEST: f64 = 1.0 / 8.0;
const UNUSUAL: f64 = 0.25;
const PACES: [f64; 2] = [0.25, 4.0];

/// What stops cost: as measured at the start, at the pace that the machine has now. Processors change their clock, share their core with
/// others, and are slow for as long as another program has filled the caches. A probe shows it: a thread that is interrupted where a call
/// ends, and so stops again before it has done anything.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Overhead {
    /// Of a call and of the time after it.
    measured: [Spent; 2],
    /// What a probe took then, and takes now.
    probes_ns: [f64; 2],
}

impl Overhead {
    pub(super) fn new(measured: [Spent; 2], probe_ns: u64) -> Self {
        Self { measured, probes_ns: [probe_ns as f64; 2] }
    }

    pub(super) fn saw(&mut self, probe_ns: u64) {
        let [first, now] = &mut self.probes_ns;
        let usual = [1.0 - UNUSUAL, 1.0 + UNUSUAL].map(|times| times * *now);
        *now += NEWEST * ((probe_ns as f64).clamp(usual[0], usual[1]) - *now);
        let possible = PACES.map(|pace| pace * *first);
        *now = now.clamp(possible[0], possible[1]);
    }

    /// Of a call, or of the time after it.
    pub(super) fn now(&self, which: usize) -> Spent {
        let Spent { wall_ns, usage: Usage { ran_ns, delayed_ns, .. } } = self.measured[which];
        let [first, now] = self.probes_ns;
        let pace = if first > 0.0 { now / first } else { 1.0 };
        let [wall_ns, ran_ns, delayed_ns] = [wall_ns, ran_ns, delayed_ns].map(|ns| (ns as f64 * pace) as u64);
        Spent { wall_ns, usage: Usage { ran_ns, delayed_ns, turns: 0 } }
    }
}

/// What all threads have done until now.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    /// What recording cost them: in stops, on the way to the tracer and back, and while they waited for a processor because of it.
    pub(super) lost_ns: u64,
    /// That, and for how long they ran or were in calls about files.
    pub(super) active_ns: u64,
    /// For how long the tracer was at work, and did not wait for a processor.
    pub(super) worked_ns: u64,
    /// For how long threads ran, as far as that is known.
    pub(super) ran_ns: u64,
    pub(super) stops: u64,
}

impl Sums {
    pub(super) fn add(&mut self, weight: f64, lost_ns: u64, active_ns: u64) {
        self.lost_ns += (weight * lost_ns as f64) as u64;
        self.active_ns += (weight * (lost_ns + active_ns) as f64) as u64;
    }
}

pub(super) struct Thread {
    pub(super) number: u32,
    pub(super) descriptors: Descriptors,
    pub(super) pending: Option<Pending>,
    /// No other has its memory or its descriptors.
    pub(super) is_alone: bool,
    /// Requests of io_uring may close its descriptors, and make others.
    pub(super) has_ring: bool,
    pub(super) interrupted: Option<Interrupted>,
    pub(super) wait: Option<Wait>,
    /// Its working directory and its root, if they are known.
    pub(super) directories: [Option<Vec<u8>>; 2],
    pub(super) umask: Option<u16>,
    /// It recorded calls itself since it last stopped: its account is of those too.
    pub(super) kept: bool,
    pub(super) account: Account,
    /// Since it went on.
    pub(super) usage: Usage,
    /// As they were when it went on.
    pub(super) sums: Sums,
    /// For how long it ran or was in calls about files; what is long ago counts less and less. Unknown before it stops.
    pub(super) active_ns: Option<f64>,
    /// That beside the most active thread's: one that hardly runs keeps nobody waiting while it is stopped.
    pub(super) weight: f64,
    pub(super) stopped_ns: Option<u64>,
    /// It was interrupted before it went on.
    pub(super) is_probed: bool,
    /// How much more its last stops cost than there was to take out: the next time is shorter by that.
    pub(super) owed_ns: u64,
    /// When it last went on; at first later than any time.
    pub(super) resumed_ns: u64,
    /// For how long it ran since it last made or ended a call, without what stops cost.
    pub(super) ran_ns: u64,
    pub(super) think_ns: u64,
    /// How often threads were at work when a wait ended, by number; what is long ago counts less and less.
    pub(super) wakers: HashMap<u32, f64>,
}

impl Thread {
    pub(super) fn ran(&mut self, ns: u64) {
        self.ran_ns += ns;
        self.interrupted.iter_mut().for_each(|interrupted| interrupted.counted_ns += ns);
    }

    /// What it did since its last call, and what a wait took that it does not make again.
    pub(super) fn did(&mut self) -> u64 {
        std::mem::take(&mut self.ran_ns) + self.wait.take().map_or(0, |wait| wait.took_ns)
    }

    /// Reads its account, for itself and for what all threads had.
    pub(super) fn reckon(&mut self, of_all: &mut Usage, sums: &mut Sums) {
        let usage = self.account.since();
        self.usage += usage;
        *of_all += usage;
        sums.ran_ns += usage.ran_ns;
    }

    /// How much of the time that it waited for a processor it did so because of the tracer: no more than that was at work since the thread
    /// went on or this was asked, and than other threads of the program then had of a processor that they would not share without it. For the
    /// rest other programs ran, which they do without a tracer as well.
    pub(super) fn delayed_ns(&mut self, usage: Usage, blamed: Blamed) -> u64 {
        let Blamed { worked_ns, ran_ns, of_others } = blamed;
        let worked_ns = worked_ns.saturating_sub(std::mem::replace(&mut self.sums.worked_ns, worked_ns));
        let others_ns = ran_ns.saturating_sub(std::mem::replace(&mut self.sums.ran_ns, ran_ns) + usage.ran_ns);
        let [because_ns, anyway_ns] = of_others.map(|part| (part * others_ns as f64) as u64);
        usage.delayed_ns.saturating_sub(anyway_ns).min(worked_ns + because_ns)
    }

    /// From now on it shares its descriptors with no other.
    pub(super) fn own_descriptors(&mut self) -> Descriptors {
        if Rc::strong_count(&self.descriptors) > 1 {
            let own = self.descriptors.borrow().clone();
            self.descriptors = Rc::new(RefCell::new(own));
        }
        self.descriptors.clone()
    }
}

/// A wait for a child or a lock that a signal has interrupted, and that the kernel makes again. In a traced process signals that it ignores
/// do so too, as SIGCHLD of another child.
pub(super) struct Wait {
    pub(super) kind: Kind,
    pub(super) begin_ns: u64,
    pub(super) took_ns: u64,
}

/// A sleep or a wait that a signal has interrupted, until another begins. That one may be what is left of it: until a moment, or for as long
/// as the program, libc or the kernel knows to be left. What recording costs between the two is then no time that the program gains.
pub(super) struct Interrupted {
    pub(super) asked: Asked,
    pub(super) since_ns: u64,
    /// How long it was to take at most; 0 for one without an end.
    pub(super) most_ns: u64,
    /// How much of the thread's time since then is in the recording.
    pub(super) counted_ns: u64,
    /// The thread has made no other call since.
    pub(super) is_last: bool,
}

impl Interrupted {
    /// How much of the thread's time is missing in the recording when a wait begins that may take so long.
    pub(super) fn missing_ns(&self, asked: &Asked, most_ns: u64, now: u64) -> u64 {
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
    pub(super) fn rest(&self, now: u64) -> Asked {
        let length = self.most_ns.saturating_sub(now.saturating_sub(self.since_ns));
        Asked { pointer: 0, length, flags: 0, ..self.asked }
    }
}

/// Whether a wait that returns this was ended by a signal.
pub(super) fn is_interrupted(result: i64) -> bool {
    result == INTERRUPTED || AGAIN.contains(&result)
}

/// A stop of which the tracer knows, and which it has not answered.
pub(super) struct Noticed {
    pub(super) stop: Stop,
    /// The thread stopped between these. They are equal if the tracer was waiting for it.
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// Whatever the wait for a processor may have taken, not after this.
    pub(super) seen_ns: u64,
}

/// A call between its beginning and its end.
pub(super) struct Pending {
    pub(super) asked: Asked,
    pub(super) call: Call,
    pub(super) at: Option<Named>,
    pub(super) to: Option<Named>,
    pub(super) text: Option<Vec<u8>>,
    /// The absolute path of what is opened.
    pub(super) path: Vec<u8>,
    /// And of what something is renamed to.
    pub(super) new_path: Vec<u8>,
    /// Not about a file of the roots; the name is for a message.
    pub(super) outside: Option<Option<Vec<u8>>>,
    /// Its descriptor is of nothing, as if it had been closed before.
    pub(super) is_lost: bool,
}

impl Pending {
    /// It may wait for another thread: a call about a pipe or a process, and none about a file, and no sleep.
    pub(super) fn may_wait(&self) -> bool {
        self.outside.is_some() || self.call.kind.is_of_threads() || matches!(self.asked.what, What::Limited(_))
    }

    /// Of a file elsewhere nothing is to be known of such a call's end: it waits for no other thread, and its result changes nothing.
    pub(super) fn ends_unseen(&self) -> bool {
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
    pub(super) fn sleeps(&self, thread: pid_t) -> bool {
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
pub(super) struct Named {
    pub(super) base: u32,
    pub(super) name: Vec<u8>,
}

pub(super) struct Tracer {
    pub(super) began_at: Instant,
    pub(super) roots: Roots,
    /// With the program on processors of its own, and on the tracer's.
    pub(super) overhead: [Overhead; 2],
    /// What was taken out of calls and of the time after them, and how often.
    pub(super) taken: [[u64; 2]; 2],
    pub(super) processors: Processors,
    /// The tracer's own.
    pub(super) account: Account,
    pub(super) most_accounts: usize,
    pub(super) unaccounted: u64,
    /// Of all threads and of the tracer since it was decided whether they share a processor, and when that was.
    pub(super) usage: [Usage; 2],
    pub(super) decided_ns: u64,
    /// The thread that asks for its processors, and has all of them until it knows.
    pub(super) asking: HashSet<pid_t>,
    pub(super) sums: Sums,
    /// The threads that were at work last, the latest first: their numbers, and when they stopped.
    pub(super) at_work: VecDeque<(pid_t, u32, u64)>,
    /// How many calls of each thread the recording has, by number.
    pub(super) written: Vec<u64>,
    pub(super) secret: Option<RandomState>,
    pub(super) writer: Option<Writer<BufWriter<File>>>,
    pub(super) failed: Option<io::Error>,
    pub(super) threads: HashMap<pid_t, Thread>,
    /// Threads that stopped before the call that made them.
    pub(super) early: HashSet<pid_t>,
    pub(super) numbers: HashMap<pid_t, u32>,
    pub(super) last_thread: u32,
    pub(super) last_file: u32,
    /// How much was renamed into the recorded directories, or out, and the directory of the top for it.
    pub(super) moved: u32,
    pub(super) elsewhere: String,
    pub(super) measures_data: bool,
    pub(super) preload: Option<Preload>,
    /// Its name, which is none of the program's.
    pub(super) library: Option<Vec<u8>>,
    /// Calls that a program has recorded the beginning of.
    pub(super) kept: HashMap<(pid_t, u64), Pending>,
    /// What is known of a thread's memory as it was at a call that is over.
    pub(super) pointed: Option<Pointed>,
    pub(super) began: bool,
    /// It has no filter: it ran before.
    pub(super) stops_at_all: bool,
    pub(super) meanwhile: u64,
    pub(super) uncertain_ns: u64,
    pub(super) idle_ns: u64,
    /// When a thread last went on.
    pub(super) resumed_ns: u64,
    /// When the tracer's account was last read.
    pub(super) accounted_ns: u64,
    pub(super) flushed_ns: u64,
    /// The signal that the program is sent next so that it ends, and when; and the last thread there was when the first came.
    pub(super) ending: Option<(i32, u64, u32)>,
    /// When such signals last came to each process, whoever has sent them.
    pub(super) came: HashMap<(pid_t, i32), u64>,
    /// When a thread was last probed.
    pub(super) probed_ns: u64,
    /// Times of calls and between them, and of probes, for the calibration.
    pub(super) samples: Option<(Vec<[Spent; 2]>, Vec<u64>)>,
}

impl Tracer {
    pub(super) fn new(
        roots: Roots,
        overhead: [Overhead; 2],
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
            meanwhile: 0,
            uncertain_ns: 0,
            idle_ns: 0,
            resumed_ns: 0,
            accounted_ns: 0,
            flushed_ns: 0,
            ending: None,
            came: HashMap::new(),
            probed_ns: 0,
            samples: None,
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.began_at.elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stops_cost_follows_the_pace_of_the_machine() {
        let stop = |wall_ns| Spent { wall_ns, usage: Usage { ran_ns: wall_ns / 2, delayed_ns: 2_000, turns: 1 } };
        let mut overhead = Overhead::new([stop(10_000), stop(9_000)], 5_000);
        let now = |overhead: &Overhead| [0, 1].map(|which| overhead.now(which).wall_ns);
        // Whatever once kept the tracer from a probe.
        overhead.saw(10_000_000);
        (0..50).for_each(|_| overhead.saw(5_000));
        assert!(now(&overhead)[0].abs_diff(10_000) < 100);
        // The core is shared with another virtual machine.
        (0..50).for_each(|_| overhead.saw(7_500));
        assert!(now(&overhead)[0].abs_diff(15_000) < 100 && overhead.now(1).usage.ran_ns.abs_diff(6_750) < 50);
        // However often a probe seems to take no time at all.
        (0..1000).for_each(|_| overhead.saw(0));
        assert_eq!(now(&overhead), [2_500, 2_250]);
        // Nothing is taken out while it is measured, and without a probe it stays as it is.
        let mut none = Overhead::default();
        none.saw(3_000);
        assert_eq!(none.now(0).wall_ns, 0);
        let mut unprobed = Overhead::new([stop(10_000), stop(9_000)], 0);
        unprobed.saw(3_000);
        assert_eq!(now(&unprobed), [10_000, 9_000]);
    }
}
