//! A program and its tracer on one processor, as long as one thread of the program runs: on two, each stop wakes a processor that sleeps,
//! twice, which in a virtual machine takes ten times as long as all the rest of it.

use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity},
};

/// More threads than this are not looked through at each stop.
pub(super) const FEW: usize = 8;

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
