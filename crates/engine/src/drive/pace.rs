//! Pauses: a target rate and think time.

use crate::io::Io;
use crate::worker::Worker;
use std::time::Duration;

/// How much earlier than it has to a thread wakes: what waking takes on a machine that is not overloaded.
pub(super) const EARLY: Duration = Duration::from_micros(60);
/// Longest uninterrupted sleep: how long a sleeping thread may take to notice that it is to stop.
const NAP: Duration = Duration::from_millis(50);
impl<E: Io> Worker<'_, E> {
    /// Waits for the intended start of the next operation and gives it; `None` when it lies behind the end.
    pub(super) fn paced(&mut self, now: u64, deadline: u64) -> Option<u64> {
        let intended = self.intended();
        (self.wait_exactly(intended.min(deadline), now) && intended < deadline).then_some(intended)
    }

    /// When the group's next operation should begin. Each call is one operation.
    pub(super) fn intended(&mut self) -> u64 {
        let after = self.group.schedule.as_ref().map_or(0, |schedule| schedule.next(&mut self.random));
        self.group_start().saturating_add(self.load.clock.ticks(Duration::from_nanos(after)))
    }

    /// The pause after what ended at this time; gives the time when it is over.
    pub(super) fn rest(&self, end: u64, think: u64, deadline: u64) -> u64 {
        let clock = self.load.clock;
        self.sleep_until(end.saturating_add(think).min(deadline), clock.now());
        clock.now()
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
