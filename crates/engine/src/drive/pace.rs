//! Pauses: a target rate and think time.

use crate::io::Io;
use crate::measure::Clock;
use crate::plan::Schedule;
use crate::random::Random;
use crate::worker::Worker;
use fstone_model::workload::ThreadGroup;
use std::time::Duration;

/// How much earlier than it has to a thread wakes: what waking takes on a machine that is not overloaded.
pub(super) const EARLY: Duration = Duration::from_micros(60);
/// Longest uninterrupted sleep: how long a sleeping thread may take to notice that it is to stop.
const NAP: Duration = Duration::from_millis(50);

/// When a thread pauses next, in ticks and operations.
pub(super) struct Pauses {
    think: u64,
    spin: u64,
    every: u64,
    after: u64,
    /// Operations before the last pause, and when it was over.
    last: (u64, u64),
}

impl Pauses {
    pub(super) fn of(group: &ThreadGroup, clock: &Clock, now: u64) -> Self {
        Self {
            think: clock.ticks(group.think_time),
            spin: clock.ticks(group.think_spin.min(group.think_time)),
            every: group.think_every.max(1),
            after: group.think_after.map_or(u64::MAX, |after| clock.ticks(after)),
            last: (0, now),
        }
    }

    pub(super) fn are_due(&self, performed: u64, now: u64) -> bool {
        let (count, over) = self.last;
        let done = performed - count;
        self.think > 0 && done > 0 && (done >= self.every || now.saturating_sub(over) >= self.after)
    }
}

/// After this time a perturbed guest's thread gives up the processor or not, as likely as each other; after less, more seldom. The call is
/// charged 2 µs, so that is at most 0.1 % of the time.
const YIELD_AFTER_NS: u64 = 1_000_000;

fn gives_way(random: &mut Random, taken_ns: u64) -> bool {
    random.below(2 * YIELD_AFTER_NS) < taken_ns.min(YIELD_AFTER_NS)
}

impl<E: Io> Worker<'_, E> {
    /// In a perturbed guest, lets another thread that is ready go first by chance. What that changes is what another scheduler, or other costs
    /// of calls, would. Gives the time.
    pub(super) fn perturbed(&mut self, since: u64, now: u64) -> u64 {
        let clock = &self.load.clock;
        if !self.yields.as_mut().is_some_and(|random| gives_way(random, clock.between(since, now))) {
            return now;
        }
        std::thread::yield_now();
        clock.now()
    }

    /// Waits for the intended start of the next operation and gives it; `None` when it lies behind the end.
    pub(super) fn paced(&mut self, now: u64, deadline: u64) -> Option<u64> {
        let intended = self.intended();
        (self.wait_exactly(intended.min(deadline), now) && intended < deadline).then_some(intended)
    }

    /// When the group's next operation should begin. Each call is one operation.
    pub(super) fn intended(&mut self) -> u64 {
        let (clock, start) = (self.load.clock, self.group_start());
        let after = match &self.group.schedule {
            None => 0,
            Some(Schedule::Whole(pacer)) => pacer.next(&mut self.random),
            Some(Schedule::Directions(directions)) => {
                let now = clock.now();
                let (writes, after) = directions.next(clock.between(start, now), &mut self.random);
                self.direction = Some(writes);
                let Some(after) = after else { return now.max(start) };
                after
            }
        };
        start.saturating_add(clock.ticks(Duration::from_nanos(after)))
    }

    /// The pause after what ended at this time; gives the time when it is over.
    pub(super) fn rest(&self, pauses: &mut Pauses, performed: u64, end: u64, deadline: u64) -> u64 {
        let clock = self.load.clock;
        let until = |ticks: u64| end.saturating_add(ticks).min(deadline);
        while clock.now() < until(pauses.spin) && !self.told_to_stop() {
            std::hint::spin_loop();
        }
        self.sleep_until(until(pauses.think), clock.now());
        let now = clock.now();
        pauses.last = (performed, now);
        now
    }

    /// Waits until a moment exactly: a thread wakes later than it asked for, and that would count as the filesystem's
    /// latency, so it wakes early and spins for the rest. `false` when told to stop meanwhile.
    pub(super) fn wait_exactly(&self, moment: u64, now: u64) -> bool {
        let clock = self.load.clock;
        let early = moment.saturating_sub(clock.ticks(EARLY));
        if early > now && !self.sleep_until(early, now) {
            return false;
        }
        while clock.now() < moment {
            if self.told_to_stop() {
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }

    /// Sleeps until a moment; `false` when told to stop meanwhile.
    pub(super) fn sleep_until(&self, moment: u64, now: u64) -> bool {
        let clock = self.load.clock;
        let mut now = now;
        while now < moment {
            if self.told_to_stop() {
                return false;
            }
            let left = Duration::from_nanos(clock.between(now, moment));
            clock.sleep(left.min(NAP));
            now = clock.now();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perturbed_thread_gives_way_in_the_order_of_its_number_and_seldom_after_short_operations() {
        let order = |number: u64, taken_ns: u64| -> Vec<bool> {
            let mut random = Random::new(number);
            (0..100_000).map(|_| gives_way(&mut random, taken_ns)).collect()
        };
        let share = |order: &[bool]| order.iter().filter(|gives| **gives).count() as f64 / order.len() as f64;
        assert_eq!(order(1, 8_000_000), order(1, 8_000_000));
        assert_ne!(order(1, 8_000_000), order(2, 8_000_000));
        for (taken_ns, expected) in [(2_000, 0.001), (100_000, 0.05), (1_000_000, 0.5), (u64::MAX, 0.5)] {
            let share = share(&order(3, taken_ns));
            assert!((share / expected - 1.0).abs() < 0.3, "{taken_ns} ns: {share}");
            assert!(share * 2_000.0 <= 0.002 * taken_ns as f64, "{taken_ns} ns: it takes too long");
        }
    }
}
