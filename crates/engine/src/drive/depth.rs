//! The search for the largest queue depth at which latency stays within a target.
//!
//! Depths are doubled from 1 on until one is too large, and then the gap between the largest that keeps the target and the smallest that
//! does not is halved until there is none. Each is tried for a window, with an empty queue at its begin: no request of one depth is
//! counted for another. A thread that knows its depth keeps to it, and looks whether it still keeps the target, until all others of the
//! phase know theirs: together they are more than they were apart.

use crate::measure::Clock;
use crate::plan::{Found, Searches};
use fstone_model::workload::LatencyTarget;

/// Windows in a row that a depth has to keep the target before one that was too large is tried again.
const STEADY: u32 = 3;

/// Requests that a share may be off by, because it is no whole number of them.
const ROUNDING: f64 = 1e-6;

#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) target_ns: u64,
    pub(super) requests: u64,
    pub(super) late: u64,
    /// In flight at once.
    pub(super) most: u32,
}

impl Window {
    /// Of a queue whose depth stays as it is.
    pub(super) const NONE: Self = Self { target_ns: u64::MAX, requests: 0, late: 0, most: 0 };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Depths {
    most: u32,
    tried: u32,
    /// The largest that may keep the target: all above are known not to, or are to be tried. 0 if none is known to.
    keeps: u32,
    /// Whether it was tried, and did.
    tested: bool,
    /// Whether it was really reached then, which a rate may not need.
    reached: bool,
    /// The smallest that does not; above `most` if none is known not to.
    misses: u32,
}

impl Depths {
    const fn new(most: u32) -> Self {
        Self { most, tried: 1, keeps: 0, tested: false, reached: false, misses: most.saturating_add(1) }
    }

    /// Learns how a window at the present depth went, and gives whether the largest depth is known. `gently`: when what kept the target
    /// once does no more, the next smaller one is tried; otherwise all that are smaller are searched anew, by halving.
    fn learn(&mut self, kept: bool, gently: bool) -> bool {
        if kept {
            self.keeps = self.tried;
            self.tested = true;
            self.misses = self.misses.max(self.tried + 1);
        } else {
            self.misses = self.tried;
            if self.keeps >= self.tried {
                self.keeps = if gently { self.tried - 1 } else { 0 };
                self.tested = false;
            }
        }
        self.tried = if self.misses > self.most {
            self.tried.saturating_mul(2).min(self.most)
        } else {
            self.keeps.midpoint(self.misses).max(1)
        };
        self.misses == self.keeps + 1
    }

    fn forgive(&mut self) {
        self.misses = (self.misses + 1).min(self.most + 1);
        self.tried = self.keeps.midpoint(self.misses).max(1);
    }
}

#[derive(Debug)]
pub(super) struct Search {
    depths: Depths,
    share: f64,
    follow: bool,
    /// Length of a window, in ticks, and when the present one ends.
    length: u64,
    end: u64,
    steady: u32,
    /// How often depths of the phase had changed when the present window began, and when this thread last had nothing to change.
    changes: u64,
    settled: Option<u64>,
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
            changes: 0,
            settled: None,
        }
    }

    /// Whether it ends when all of the phase know their depths.
    pub(super) const fn ends(&self) -> bool {
        !self.follow
    }

    pub(super) const fn is_over(&self, now: u64) -> bool {
        now >= self.end
    }

    /// Judges a window when it is over, or can only fail. Gives the depth to go on with, which may be the same one; `None` while the
    /// window goes on.
    #[inline]
    pub(super) fn look(&mut self, window: &Window, now: u64) -> Option<u32> {
        let over = self.is_over(now) && window.requests > 0;
        let lost = window.late > 0 && self.share >= 1.0;
        (over || lost).then(|| self.judge(window))
    }

    fn judge(&mut self, window: &Window) -> u32 {
        let in_time = window.requests - window.late;
        let before = self.depths.tried;
        let kept = in_time as f64 + ROUNDING >= self.share * window.requests as f64;
        if kept {
            self.depths.reached = window.most >= before;
        }
        self.depths.learn(kept, self.follow);
        self.steady = if self.depths.tried == before { self.steady + 1 } else { 0 };
        // Who is to come to an end tries no other depth again.
        if self.follow && self.steady >= STEADY {
            self.depths.forgive();
            self.steady = 0;
        }
        self.depths.tried
    }

    /// Tells the others what came of the window behind it: whether the depth changed. The next window begins now.
    pub(super) fn begin(&mut self, changed: bool, searches: &Searches, now: u64) {
        if !self.follow {
            if changed {
                searches.change();
            } else if self.settled != Some(self.changes) {
                self.settled = Some(self.changes);
                searches.settle(self.changes);
            }
            self.changes = searches.changes();
        }
        self.end = now.saturating_add(self.length);
    }

    pub(super) fn found(&self) -> Found {
        let Depths { tried, keeps, misses, tested, reached, .. } = self.depths;
        let lacks = match (keeps, misses) {
            (_, 1) => Some("not even one request in flight keeps it"),
            _ if tested && !reached => {
                Some("its rate leaves so few requests in flight that larger queue depths were never reached")
            }
            (1.., _) if tested && (self.follow || misses == keeps + 1) => None,
            _ => Some("the end came before the largest queue depth that keeps it was found"),
        };
        // What was not tried to its end is at least what was used last.
        Found { depth: if tested { keeps } else { tried }, lacks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(most: u32, good: u32) -> (Vec<u32>, u32) {
        let mut depths = Depths::new(most);
        let mut tried = Vec::new();
        for _ in 0..100 {
            tried.push(depths.tried);
            if depths.learn(depths.tried <= good, false) {
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
        Search { depths: Depths::new(64), share, follow, length: 10, end: 10, steady: 0, changes: 0, settled: None }
    }

    fn window(requests: u64, late: u64) -> Window {
        Window { target_ns: 1, requests, late, most: 64 }
    }

    #[test]
    fn a_window_is_kept_by_its_share() {
        let next = |share, requests, late| {
            let mut search = search(share, false);
            search.depths = Depths { most: 64, tried: 8, keeps: 4, tested: true, reached: true, misses: 16 };
            search.judge(&window(requests, late))
        };
        assert_eq!(next(0.9, 100, 10), 12);
        assert_eq!(next(0.9, 100, 11), 6);
        // What a job file calls 99.9 % is more than 0.999.
        assert_eq!(next(99.9 / 100.0, 1000, 1), 12);
    }

    #[test]
    fn a_window_is_judged_when_it_is_over_or_lost() {
        let looks = |share, requests, late, now| search(share, false).look(&window(requests, late), now);
        assert_eq!(looks(0.9, 0, 0, 10), None, "nothing is known");
        assert_eq!(looks(0.9, 5, 5, 9), None, "it can still be kept");
        assert_eq!(looks(0.9, 5, 0, 10), Some(2));
        assert_eq!(looks(1.0, 5, 1, 9), Some(1), "it can only fail");
    }

    #[test]
    fn what_was_found_says_what_it_lacks() {
        let found = |keeps, misses, follow| {
            let mut search = search(0.9, follow);
            search.depths = Depths { most: 64, tried: 1, keeps, tested: keeps > 0, reached: true, misses };
            let found = search.found();
            (found.depth, found.lacks.map_or("", |lacks| &lacks[..7]))
        };
        assert_eq!(found(9, 10, false), (9, ""));
        assert_eq!(found(9, 12, false), (9, "the end"));
        assert_eq!(found(9, 12, true), (9, ""));
        assert_eq!(found(0, 65, true), (1, "the end"));
        assert_eq!(found(0, 1, false), (1, "not eve"));
    }

    #[test]
    fn a_search_that_follows_goes_with_what_changes() {
        let mut search = search(1.0, true);
        let mut go = |good: u32, windows: u32| {
            for _ in 0..windows {
                let late = u64::from(search.depths.tried > good);
                search.judge(&window(1, late));
            }
            search.depths.tried
        };
        assert!((9..=11).contains(&go(10, 20)));
        assert!((3..=5).contains(&go(4, 20)));
        assert!((29..=31).contains(&go(30, 200)));
        assert_eq!(go(0, 50), 1);
        assert!((29..=31).contains(&go(30, 200)));
    }

    #[test]
    fn what_was_never_tried_is_not_found() {
        for follow in [false, true] {
            let mut search = search(1.0, follow);
            let mut go = |good: u32| {
                let late = u64::from(search.depths.tried > good);
                search.judge(&window(1, late));
                let found = search.found();
                (found.depth, found.lacks.is_none(), search.depths.tried)
            };
            while go(10) != (10, true, 10) {}
            // The next smaller one, or half of it.
            let next = if follow { 9 } else { 5 };
            assert_eq!(go(9), (next, false, next), "follow: {follow}");
            while go(9) != (9, true, 9) {}
        }
    }

    #[test]
    fn threads_that_know_their_depths_go_on_until_all_do() {
        let searches = Searches::new(2);
        let mut threads = [search(1.0, false), search(1.0, false)];
        threads[1].depths.most = 3;
        let mut windows = 0;
        while !searches.are_over() {
            let all: u32 = threads.iter().map(|search| search.depths.tried).sum();
            for search in &mut threads {
                let before = search.depths.tried;
                let next = search.judge(&window(1, u64::from(all > 20)));
                search.begin(next != before, &searches, 0);
            }
            windows += 1;
            assert!(windows < 100, "it ends: {threads:?}");
        }
        let found = threads.map(|search| search.found());
        assert!(found.iter().all(|found| found.lacks.is_none()), "{found:?}");
        assert!(found.iter().map(|found| found.depth).sum::<u32>() <= 20, "{found:?}");
        assert!(found[0].depth >= 16, "{found:?}");
    }
}
