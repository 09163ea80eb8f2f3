//! The search for the largest queue depth at which latency stays within a target.
//!
//! Depths are doubled from 1 on until one is too large, and then the gap between the largest that keeps the target and the smallest that
//! does not is halved until there is none. Each is tried for a window, with an empty queue at its begin: no request of one depth is
//! counted for another.

use crate::measure::Clock;
use crate::plan::Found;
use fstone_model::workload::LatencyTarget;

/// Windows in a row that a depth has to keep the target before one that was too large is tried again.
const STEADY: u32 = 3;

/// Requests that a share may be off by, because it is no whole number of them.
const ROUNDING: f64 = 1e-6;

/// What the queue counts of a window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// A request that took longer misses the target.
    pub(super) target_ns: u64,
    pub(super) requests: u64,
    pub(super) late: u64,
}

impl Window {
    /// Of a queue whose depth stays as it is.
    pub(super) const NONE: Self = Self { target_ns: u64::MAX, requests: 0, late: 0 };
}

/// What is known of the depths from 1 to `most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Depths {
    most: u32,
    /// The one that is tried.
    tried: u32,
    /// The largest that keeps the target; 0 if none is known to.
    keeps: u32,
    /// The smallest that does not; above `most` if none is known not to.
    misses: u32,
}

impl Depths {
    const fn new(most: u32) -> Self {
        Self { most, tried: 1, keeps: 0, misses: most.saturating_add(1) }
    }

    /// Learns how a window at the present depth went, and gives whether the search is over.
    fn learn(&mut self, kept: bool) -> bool {
        if kept {
            self.keeps = self.tried;
            self.misses = self.misses.max(self.tried + 1);
        } else {
            self.misses = self.tried;
            // What kept it once does no more: conditions have changed.
            self.keeps = self.keeps.min(self.tried - 1);
        }
        self.tried = if self.misses > self.most {
            self.tried.saturating_mul(2).min(self.most)
        } else {
            self.keeps.midpoint(self.misses).max(1)
        };
        self.misses == self.keeps + 1
    }

    /// One that missed the target may keep it by now.
    fn forgive(&mut self) {
        self.misses = (self.misses + 1).min(self.most + 1);
        self.tried = self.keeps.midpoint(self.misses).max(1);
    }
}

/// How a search goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// With a window at this depth.
    Depth(u32),
    /// Not at all.
    Over,
}

/// A thread's search.
#[derive(Debug)]
pub(super) struct Search {
    depths: Depths,
    share: f64,
    follow: bool,
    /// Length of a window, in ticks, and when the present one ends.
    length: u64,
    end: u64,
    /// Windows in a row with nothing to change.
    steady: u32,
}

impl Search {
    /// At depth 1, from `now` on.
    pub(super) fn new(target: &LatencyTarget, most: u32, clock: &Clock, now: u64) -> Self {
        let length = clock.ticks(target.window);
        Self {
            depths: Depths::new(most),
            share: target.share,
            follow: target.follow,
            length,
            end: now.saturating_add(length),
            steady: 0,
        }
    }

    /// Judges a window when it is over, or can only fail. Gives the depth to go on with, which may be the same one, or that the search
    /// is over; `None` while the window goes on.
    #[inline]
    pub(super) fn look(&mut self, window: &Window, now: u64) -> Option<Next> {
        let over = now >= self.end && window.requests > 0;
        let lost = window.late > 0 && self.share >= 1.0;
        (over || lost).then(|| self.judge(window))
    }

    fn judge(&mut self, window: &Window) -> Next {
        let in_time = window.requests - window.late;
        let before = self.depths.tried;
        let over = self.depths.learn(in_time as f64 + ROUNDING >= self.share * window.requests as f64);
        if over && !self.follow {
            return Next::Over;
        }
        self.steady = if self.depths.tried == before { self.steady + 1 } else { 0 };
        if self.steady >= STEADY {
            self.depths.forgive();
            self.steady = 0;
        }
        Next::Depth(self.depths.tried)
    }

    /// The next window begins now.
    pub(super) fn begin(&mut self, now: u64) {
        self.end = now.saturating_add(self.length);
    }

    /// What it has come to.
    pub(super) fn found(&self) -> Found {
        let Depths { keeps, misses, .. } = self.depths;
        let lacks = match (keeps, misses) {
            (_, 1) => Some("not even one request in flight keeps it"),
            (1.., _) if self.follow || misses == keeps + 1 => None,
            _ => Some("the end came before the largest queue depth that keeps it was found"),
        };
        Found { depth: keeps.max(1), lacks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Depths that are tried until the search is over, where those up to `good` keep the target.
    fn tried(most: u32, good: u32) -> (Vec<u32>, u32) {
        let mut depths = Depths::new(most);
        let mut tried = Vec::new();
        for _ in 0..100 {
            tried.push(depths.tried);
            if depths.learn(depths.tried <= good) {
                return (tried, depths.keeps);
            }
        }
        panic!("no end: {tried:?}");
    }

    #[test]
    fn the_largest_depth_is_found_by_doubling_and_halving() {
        assert_eq!(tried(128, 21), (vec![1, 2, 4, 8, 16, 32, 24, 20, 22, 21], 21));
        assert_eq!(tried(128, 500), (vec![1, 2, 4, 8, 16, 32, 64, 128], 128));
        assert_eq!(tried(100, 100).0.last(), Some(&100));
        assert_eq!(tried(128, 0), (vec![1], 0));
        for (most, good) in (2..40).flat_map(|most| (0..=most).map(move |good| (most, good))) {
            assert_eq!(tried(most, good).1, good, "of {most}");
        }
    }

    fn search(share: f64, follow: bool) -> Search {
        Search { depths: Depths::new(64), share, follow, length: 10, end: 10, steady: 0 }
    }

    fn window(requests: u64, late: u64) -> Window {
        Window { target_ns: 1, requests, late }
    }

    #[test]
    fn a_window_is_kept_by_its_share() {
        let next = |share, requests, late| {
            let mut search = search(share, false);
            search.depths = Depths { most: 64, tried: 8, keeps: 4, misses: 16 };
            search.judge(&window(requests, late))
        };
        assert_eq!(next(0.9, 100, 10), Next::Depth(12));
        assert_eq!(next(0.9, 100, 11), Next::Depth(6));
        // What a job file calls 99.9 % is more than 0.999.
        assert_eq!(next(99.9 / 100.0, 1000, 1), Next::Depth(12));
    }

    #[test]
    fn a_window_is_judged_when_it_is_over_or_lost() {
        let looks = |share, requests, late, now| search(share, false).look(&window(requests, late), now);
        assert_eq!(looks(0.9, 0, 0, 10), None, "nothing is known");
        assert_eq!(looks(0.9, 5, 5, 9), None, "it can still be kept");
        assert_eq!(looks(0.9, 5, 0, 10), Some(Next::Depth(2)));
        assert_eq!(looks(1.0, 5, 1, 9), Some(Next::Over), "it can only fail");
    }

    #[test]
    fn what_was_found_says_what_it_lacks() {
        let found = |keeps, misses, follow| {
            let mut search = search(0.9, follow);
            search.depths = Depths { most: 64, tried: 1, keeps, misses };
            let found = search.found();
            (found.depth, found.lacks.map_or("", |lacks| &lacks[..7]))
        };
        assert_eq!(found(9, 10, false), (9, ""));
        assert_eq!(found(9, 12, false), (9, "the end"));
        assert_eq!(found(9, 12, true), (9, ""));
        assert_eq!(found(0, 65, true), (1, "the end"));
        assert_eq!(found(0, 1, false), (1, "not eve"));
    }

    /// The target is kept by fewer and fewer requests, and by more again.
    #[test]
    fn a_search_that_follows_goes_with_what_changes() {
        let mut search = search(1.0, true);
        let mut go = |good: u32, windows: u32| {
            for _ in 0..windows {
                let late = u64::from(search.depths.tried > good);
                assert_ne!(search.judge(&window(1, late)), Next::Over, "it never ends");
            }
            search.depths.tried
        };
        assert!((9..=11).contains(&go(10, 20)));
        assert!((3..=5).contains(&go(4, 20)));
        assert!((29..=31).contains(&go(30, 200)));
        assert_eq!(go(0, 50), 1);
        assert!((29..=31).contains(&go(30, 200)));
    }
}
