//! When the threads of a phase that look for queue depths are done: all at once.
//!
//! A thread that knew its depth and went idle would leave the others with less company than they have later on, when all
//! run at what they found. So each goes on, window after window, until all have kept to their depths for a window in which no
//! depth changed.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Searches {
    threads: AtomicU32,
    /// Times that a depth has changed, in the upper half, and how many threads have kept to theirs for a window since.
    settled: AtomicU64,
    over: AtomicBool,
}

/// The part of `settled` with the count of changes.
const CHANGES: u32 = 32;

impl Searches {
    pub(crate) fn new(threads: u32) -> Self {
        Self { threads: AtomicU32::new(threads), ..Self::default() }
    }

    pub(crate) fn are_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(crate) fn changes(&self) -> u64 {
        self.settled.load(Ordering::Relaxed) >> CHANGES
    }

    /// A depth has changed: all have to keep to theirs for another window.
    pub(crate) fn change(&self) {
        let next = |settled: u64| Some(((settled >> CHANGES) + 1) << CHANGES);
        self.settled.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok();
    }

    /// A thread has kept to its depth for a window that began after so many changes. It says so once for each number of them.
    pub(crate) fn settle(&self, changes: u64) {
        let next = |settled: u64| (settled >> CHANGES == changes).then_some(settled + 1);
        let before = self.settled.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let count = before.map_or(0, |before| before as u32 + 1);
        if count >= self.threads.load(Ordering::Relaxed) {
            self.over.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn leave(&self) {
        self.threads.fetch_sub(1, Ordering::Relaxed);
        self.change();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_have_to_keep_to_their_depths_for_the_same_window() {
        let searches = Searches::new(2);
        searches.settle(0);
        searches.change();
        searches.settle(0);
        assert!(!searches.are_over(), "a depth has changed in that window");
        searches.settle(1);
        assert!(!searches.are_over(), "the other one has not");
        searches.settle(1);
        assert!(searches.are_over());
        searches.change();
        assert!(searches.are_over(), "nobody is kept from ending any more");
    }

    #[test]
    fn who_leaves_is_not_waited_for() {
        let searches = Searches::new(2);
        searches.settle(0);
        searches.leave();
        assert!(!searches.are_over(), "the other one had company until now");
        searches.settle(1);
        assert!(searches.are_over());
    }
}
