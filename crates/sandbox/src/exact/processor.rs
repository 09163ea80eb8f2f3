//! One processor for each guest in virtual time.
//!
//! Its kernel, the processes in it and the simulation take turns: never do two of them run at once. On one processor the
//! next is there without another one having to be woken, which is most of what a turn costs in a virtual machine. Guests
//! side by side in this process get different processors.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// How many guests of this process are on each processor.
static TAKEN: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// This thread, and what it starts, on one processor; as before when dropped.
#[derive(Debug)]
pub(super) struct OneProcessor {
    before: CpuSet,
    number: usize,
}

impl OneProcessor {
    /// The one that the fewest guests have, among those that this thread may use; the one that it is on before others.
    /// `None` where the kernel refuses, which costs time and nothing else.
    pub(super) fn take() -> Option<Self> {
        let before = sched_getaffinity(None).ok()?;
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let here = sched_getcpu();
        let allowed = (0..CpuSet::MAX_CPU).filter(|number| before.is_set(*number));
        let guests = |number: &usize| taken.get(number).copied().unwrap_or(0);
        let number = allowed.min_by_key(|number| (guests(number), *number != here, *number))?;
        let mut one = CpuSet::new();
        one.set(number);
        sched_setaffinity(None, &one).ok()?;
        *taken.entry(number).or_default() += 1;
        Some(Self { before, number })
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.before);
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.number) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_get_different_processors_and_threads_their_own_back() {
        // In a thread, for others of this process have theirs.
        let look = || {
            let before = sched_getaffinity(None).unwrap();
            let [first, second] = [0; 2].map(|_| OneProcessor::take());
            let (Some(first), Some(second)) = (first, second) else { return eprintln!("skipped: affinity is refused") };
            assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
            // The second was taken on the first's one processor.
            assert_eq!(first.number, second.number);
            drop(second);
            drop(first);
            assert_eq!(sched_getaffinity(None).unwrap().count(), before.count());
            if before.count() < 2 {
                return;
            }
            let one = OneProcessor::take().unwrap();
            let other = std::thread::spawn(move || {
                sched_setaffinity(None, &before).unwrap();
                OneProcessor::take().unwrap().number
            });
            assert_ne!(other.join().unwrap(), one.number);
        };
        std::thread::spawn(look).join().unwrap();
    }
}
