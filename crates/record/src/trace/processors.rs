//! A program and its tracer on one processor, as long as one is enough for the program: on two, each stop wakes a processor that sleeps,
//! twice, which in a virtual machine takes ten times as long as all the rest of it. What threads have had of processors says whether it
//! is enough, and what of a thread's time it did not spend waiting.

use rustix::{
    process::{Pid, Resource, getrlimit},
    thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity},
};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// How often it is decided whether one is enough.
pub(super) const DECIDED_NS: u64 = 20_000_000;

pub(super) struct Processors {
    /// Those that the tracer may use, and so the program; `None` where nothing is to be changed.
    allowed: Option<CpuSet>,
    pub(super) shared: bool,
}

impl Processors {
    pub(super) fn of_tracer() -> Self {
        Self { allowed: sched_getaffinity(None).ok().filter(|allowed| allowed.count() > 1), shared: false }
    }

    pub(super) fn as_they_are() -> Self {
        Self { allowed: None, shared: false }
    }

    /// All these threads, which have stopped or will, and the tracer share a processor, or no longer do.
    pub(super) fn share(&mut self, shared: bool, threads: impl Iterator<Item = i32>) {
        let Some(allowed) = &self.allowed else { return };
        if shared == self.shared {
            return;
        }
        let mut one = CpuSet::new();
        one.set(sched_getcpu());
        let set = if shared { &one } else { allowed };
        // A thread that is gone needs none.
        for thread in [None].into_iter().chain(threads.map(Pid::from_raw)) {
            let _ = sched_setaffinity(thread, set);
        }
        self.shared = shared;
    }

    /// A new thread may have been made before the last change.
    pub(super) fn join(&self, thread: i32) {
        if self.allowed.is_some()
            && let Ok(set) = sched_getaffinity(None)
        {
            let _ = sched_setaffinity(Pid::from_raw(thread), &set);
        }
    }

    /// Whether one is enough for what all threads had of processors, and the tracer, in some time. Between its limits it stays as it is.
    pub(super) fn is_enough(&self, program: Usage, tracer: Usage, time_ns: u64) -> bool {
        let [shared, apart] = [time_ns / 2 * 3, time_ns / 4 * 5];
        // A program that the tracer keeps waiting gains nothing from a second one.
        let is_kept_waiting = self.shared && tracer.ran_ns > program.ran_ns / 2;
        is_kept_waiting || program.ran_ns + program.delayed_ns < if self.shared { shared } else { apart }
    }

    /// What keeps a thread from its processor because of the tracer, while so many others are at work. Where more threads run than there are
    /// processors, they wait for each other without a tracer as well.
    pub(super) fn blamed(&self, others: usize, worked_ns: u64, ran_ns: u64) -> Blamed {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        let allowed = self.allowed.as_ref().map_or_else(all, |allowed| allowed.count() as usize) as f64;
        let anyway = (((others + 1) as f64 / allowed - 1.0) / others.max(1) as f64).clamp(0.0, 1.0);
        let because = if self.shared && others > 0 { 1.0 - anyway } else { 0.0 };
        Blamed { worked_ns, ran_ns, of_others: [because, anyway] }
    }

    /// The program chooses its processors itself from now on.
    pub(super) fn leave(&mut self, threads: impl Iterator<Item = i32>) {
        self.share(false, threads);
        self.allowed = None;
    }
}

impl Drop for Processors {
    fn drop(&mut self) {
        self.share(false, std::iter::empty());
    }
}

/// What may have kept a thread from its processor because of the tracer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blamed {
    /// For how long the tracer was at work until now, and for how long all threads ran.
    pub(super) worked_ns: u64,
    pub(super) ran_ns: u64,
    /// The part of what others run that a thread waits for because all have one processor, and the part that it waits for anyway.
    pub(super) of_others: [f64; 2],
}

/// For how long a thread ran, for how long it waited for a processor, and how often it got one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) ran_ns: u64,
    pub(super) delayed_ns: u64,
    pub(super) turns: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.ran_ns += other.ran_ns;
        self.delayed_ns += other.delayed_ns;
        self.turns += other.turns;
    }
}

impl std::ops::Sub for Usage {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            ran_ns: self.ran_ns.saturating_sub(other.ran_ns),
            delayed_ns: self.delayed_ns.saturating_sub(other.delayed_ns),
            turns: self.turns.saturating_sub(other.turns),
        }
    }
}

/// The kernel's account of a thread: exact where it has stopped, up to a tick old where it runs.
#[derive(Default)]
pub(super) struct Account {
    file: Option<File>,
    read: Usage,
}

impl Account {
    /// How many to keep at most: each takes a descriptor, which other work needs too.
    pub(super) fn most() -> usize {
        getrlimit(Resource::Nofile).current.map_or(1024, |most| most as usize / 4)
    }

    pub(super) fn of(thread: i32) -> Self {
        Self::at(&format!("/proc/{thread}/schedstat"))
    }

    pub(super) fn own() -> Self {
        Self::at("/proc/thread-self/schedstat")
    }

    fn at(path: &str) -> Self {
        let mut account = Self { file: File::open(path).ok(), read: Usage::default() };
        account.since();
        account
    }

    pub(super) fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Since this was asked last; nothing of a thread that is gone.
    pub(super) fn since(&mut self) -> Usage {
        let mut text = [0; 64];
        let got = self.file.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let mut numbers = text[..got].split(|byte| !byte.is_ascii_digit()).map(|digits| {
            digits.iter().fold(0u64, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
        });
        let (Some(ran_ns), Some(delayed_ns), Some(turns)) = (numbers.next(), numbers.next(), numbers.next()) else {
            return Usage::default();
        };
        let usage = Usage { ran_ns, delayed_ns, turns };
        usage - std::mem::replace(&mut self.read, usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_processor_is_enough_until_threads_wait_for_it() {
        let is_enough = |shared, ran_ns, delayed_ns, of_tracer_ns| {
            let tracer = Usage { ran_ns: of_tracer_ns, ..Usage::default() };
            Processors { allowed: None, shared }.is_enough(Usage { ran_ns, delayed_ns, turns: 0 }, tracer, 100)
        };
        assert!(is_enough(true, 95, 20, 5) && !is_enough(true, 95, 95, 5));
        // The tracer takes more of the time than a second processor would save.
        assert!(is_enough(true, 60, 95, 40));
        // What is not enough stays so until less is needed.
        assert!(is_enough(true, 95, 40, 5) && !is_enough(false, 95, 40, 5) && is_enough(false, 95, 5, 40));
    }

    #[test]
    fn what_threads_wait_for_each_other_on_all_processors_is_not_because_of_the_tracer() {
        let allowed = (0..2).fold(CpuSet::new(), |mut set, number| {
            set.set(number);
            set
        });
        let of_others = |shared, others| Processors { allowed: Some(allowed), shared }.blamed(others, 0, 0).of_others;
        assert_eq!([0, 1].map(|others| of_others(true, others)), [[0.0; 2], [1.0, 0.0]]);
        // Eight on two processors: each waits for three of seven.
        let [because, anyway] = of_others(true, 7);
        assert!((because - 4.0 / 7.0).abs() < 1e-9 && (anyway - 3.0 / 7.0).abs() < 1e-9);
        assert_eq!(of_others(false, 7), [0.0, anyway]);
    }
}
