//! The loop of a thread that performs one operation after the other.

use super::account::Point;
use super::choice::{Choice, Next};
use super::pace::Pauses;
use super::patience::Patience;
use crate::io::Io;
use crate::ops;
use crate::plan::{PeriodicFsyncs, Selector};
use crate::worker::{Incomplete, Worker};
use std::sync::atomic::Ordering;

impl<E: Io> Worker<'_, E> {
    /// One operation after the other, from where `kept` says, which is where the next loop goes on; gives the end of the last, if there was one.
    pub(super) fn drive_alone<const READS: bool>(&mut self, point: &mut Point, kept: &mut Choice) -> Option<u64> {
        let clock = self.load.clock;
        let start = self.load.start.load(Ordering::Relaxed);
        let deadline = self.deadline();
        let mut now = clock.now().max(start);
        let mut begun = now;
        let mut since = 0;
        let (mut choice, mut patience) = (std::mem::take(kept), Patience::default());
        let mut claimed = false;
        let mut performed = 0u64;
        let mut granted = (0u64, 0u64);
        let mut last_end = 0;
        // When the last operation began and ended, until the fsync behind it.
        let mut before = None;
        let paced = !READS && self.group.schedule.is_some();
        let mut thinks = Pauses::of(&self.group.spec, &clock, now);
        let thread_quota = self.group.thread_quota.unwrap_or(u64::MAX);
        let passes = !READS && self.group.spec.invalidate_every.is_some();
        let mut pass_is_over = false;
        let pauses = !READS
            && (!self.group.spec.think_time.is_zero()
                || passes
                || matches!(self.group.fsyncs, PeriodicFsyncs::After { .. }));
        let plain = READS || !self.asks();
        if READS {
            self.expect_aimed();
        }
        while now < deadline && !self.told_to_stop() {
            if self.yields.is_some() {
                now = self.perturbed(since, now);
                since = now;
            }
            if plain {
                begun = now;
            } else if !claimed {
                if performed >= thread_quota || (self.counted.0 && !self.granted(&mut granted)) {
                    break;
                }
                begun = now;
                if paced {
                    while let Some(due) = self.due_at_once() {
                        now = self.fsync_between(due, None, before.take(), point);
                        last_end = now;
                    }
                    match self.paced(now, deadline) {
                        Some(intended) => begun = intended,
                        None => break,
                    }
                }
            }
            let index = match if READS { Next::Action(0) } else { self.next(&mut choice) } {
                Next::Action(index) => index,
                Next::Rested(index) => {
                    now = clock.now();
                    if now >= deadline {
                        break;
                    }
                    if !paced {
                        begun = now;
                    }
                    index
                }
                Next::Fsync(file, data) => {
                    now = self.fsync_between((file, data), paced.then_some(begun), before.take(), point);
                    claimed = !self.group.spec.fsync.counted;
                    if !paced {
                        begun = now;
                    }
                    last_end = now;
                    continue;
                }
                Next::Close(fileset, file) => {
                    now = self.close_finished(fileset, file);
                    claimed = true;
                    if !paced {
                        begun = now;
                    }
                    continue;
                }
                Next::End => break,
            };
            claimed = false;
            if pass_is_over {
                pass_is_over = false;
                self.drop_kept();
                now = clock.now();
                if !paced {
                    begun = now;
                }
            }
            // The first call of an operation counts from the operation's start, and the operation's end is that of its
            // last call: where nothing was waited for, no more readings of the clock than calls.
            let (attempt, end) = if READS {
                (ops::aimed_read(self, index), clock.now())
            } else {
                (self.mark, self.aside) = (if paced { 0 } else { now }, 0);
                let attempt = ops::perform(self, index).map(|()| Some(self.done));
                (attempt, if self.mark != 0 && self.mark != now { self.mark } else { clock.now() })
            };
            last_end = end;
            if !READS {
                begun += self.aside;
            }
            performed += 1;
            // Handing over a point takes a lock that all threads want at that moment, which is no operation's time.
            let next = if self.account(point, end) { clock.now() } else { end };
            match attempt {
                Ok(None) => self.tally.actions[0].completed_as_usual(clock.between(begun, end)),
                Ok(Some(done)) => {
                    self.completed(index, done, clock.between(begun, end));
                    if self.counted.1 {
                        self.moved(done.read_bytes + done.written_bytes);
                    }
                    if let Selector::Program(program) = &self.group.selector {
                        choice.progress.completed(program, index, done);
                    }
                }
                Err(Incomplete::Fault(fault)) => {
                    self.failed(index, fault, self.previous);
                    if self.counted.1 {
                        // As in a queue, what fails is not made up for by more.
                        self.moved(self.begun_bytes);
                    }
                }
                Err(Incomplete::Missed) => {
                    performed -= 1;
                    self.miss(index, performed, &mut patience, &mut choice);
                    // What was claimed is left to the operation that is chosen in its place.
                    claimed = !plain;
                    now = clock.now();
                    if !paced {
                        begun = now;
                    }
                    continue;
                }
                Err(Incomplete::Exhausted) => {
                    self.ran_out(index);
                    break;
                }
                Err(Incomplete::Stopped) => break,
            }
            now = next;
            if !READS {
                before = Some((begun, end));
            }
            if pauses {
                let wrote = (self.done.written_bytes > 0).then(|| (end, clock.between(begun, end)));
                self.fsync_after(wrote);
                pass_is_over |= passes && self.pass_is_over(self.done.read_bytes + self.done.written_bytes);
                now = clock.now();
                if thinks.are_due(performed, now) {
                    now = self.rest(&mut thinks, performed, now, deadline);
                }
            }
        }
        *kept = choice;
        (last_end != 0).then_some(last_end)
    }
}
