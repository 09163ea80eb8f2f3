//! What a thread's own rate ends it for: one that is too low, and one that is steady.

use crate::io::Io;
use crate::measure::Moved;
use crate::worker::Worker;
use fstone_model::workload::ErrorPolicy;
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a thread may take to come to its rate.
const SETTLES: Duration = Duration::from_secs(2);
const SECOND_NS: u64 = 1_000_000_000;
/// Points of the series end when an operation does, some earlier and some later.
const ABOUT_NS: u64 = SECOND_NS / 20;

impl<E: Io> Worker<'_, E> {
    /// Looks at what has been moved until this time, and ends the group if that is enough, or not enough.
    pub(super) fn look_at_rates(&mut self, end: u64) {
        let clock = self.load.clock;
        let (moved, running) = (self.sum.moved(), clock.between(self.group_start(), end));
        if running >= SETTLES.as_nanos() as u64 {
            self.keep_least_rate(end, moved);
        }
        let Some(steady) = self.group.spec.steady.filter(|steady| u128::from(running) >= steady.ramp.as_nanos()) else {
            return;
        };
        let Some((at, before)) = self.rates.sampled else {
            self.rates.sampled = Some((end, moved));
            return;
        };
        let passed = clock.between(at, end);
        if passed + ABOUT_NS < SECOND_NS {
            return;
        }
        let sum = |of: Moved| (of[0].0 + of[1].0, of[0].1 + of[1].1);
        let ((bytes, operations), (bytes_before, before)) = (sum(moved), sum(before));
        let per_second = |count: u64| count as f64 * SECOND_NS as f64 / passed as f64;
        self.rates.sampled = Some((end, moved));
        // A thread that was held up for seconds begins its window anew.
        if passed >= 2 * SECOND_NS {
            self.rates.forget();
        } else if self.rates.take(per_second(bytes - bytes_before), per_second(operations - before), steady) {
            self.group.limits.ended.store(true, Ordering::Relaxed);
        }
    }

    fn keep_least_rate(&mut self, end: u64, moved: Moved) {
        let Some(least) = self.group.spec.least_rate else { return };
        let Some((at, before)) = self.rates.least else {
            self.rates.least = Some((end, moved));
            return;
        };
        let passed = self.load.clock.between(at, end);
        if u128::from(passed + ABOUT_NS) < least.every.as_nanos() {
            return;
        }
        self.rates.least = Some((end, moved));
        let group = self.group;
        for (writes, (moved, before)) in [false, true].into_iter().zip(moved.into_iter().zip(before)) {
            let mut actions = group.actions.iter().enumerate();
            let of_it = actions.find(|(_, action)| action.transfer.is_some() && action.writes == writes);
            let Some((index, action)) = of_it else { continue };
            let per_second =
                |count: u64| (u128::from(count) * u128::from(SECOND_NS) / u128::from(passed.max(1))) as u64;
            let (bytes, operations) = (per_second(moved.0 - before.0), per_second(moved.1 - before.1));
            let (least_bytes, least_operations) = least.of(writes);
            if bytes >= least_bytes && operations >= least_operations {
                continue;
            }
            self.tally.actions[index].errors += 1;
            let what = format!(
                "{bytes} bytes and {operations} operations a second, where {least_bytes} and {least_operations} are the least"
            );
            let from = (&*self.group.spec.name, &*action.name);
            self.load.collector.error(from, "least rate", "", Errno::IO, Some(&what));
            if self.load.on_error == ErrorPolicy::Stop {
                self.load.halt();
            }
            group.limits.ended.store(true, Ordering::Relaxed);
            return;
        }
    }
}
