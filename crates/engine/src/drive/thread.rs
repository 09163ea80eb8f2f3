//! A thread from its first operation to its last, through the loop that its work asks for.

use super::account::Point;
use super::choice::Choice;
use crate::io::Io;
use crate::measure::clock::thread_usage;
use crate::ops;
use crate::plan::{Found, PeriodicFsyncs, Selector};
use crate::worker::{ThreadCheckpoint, Worker};
use fstone_model::load::ThreadReport;
use std::sync::atomic::Ordering;

#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// When it had no operation to begin any more.
    pub(crate) worked_until: u64,
    /// Until when operations were due: if it ended with its operations, a policy's fsync after the last one is no shortfall.
    pub(crate) due_until: u64,
    /// When its last operation was done, or its last fsync at the end.
    pub(crate) at: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) report: ThreadReport,
    pub(crate) found: Option<Found>,
    pub(crate) checkpoint: ThreadCheckpoint,
}

impl<E: Io> Worker<'_, E> {
    /// Performs operations until the end. The gate must be open.
    pub(crate) fn drive(&mut self) -> Ended {
        let cpu_start = crate::measure::clock::thread_cpu_ns();
        self.used_before = thread_usage();
        let clock = self.load.clock;
        let start = self.load.start.load(Ordering::Relaxed);
        let mut point = Point { index: 0, end: start.saturating_add(self.load.point_ticks.min(self.most_point())) };
        if !self.group.spec.start_delay.is_zero() {
            self.sleep_until(self.group_start().min(self.deadline()), clock.now());
        }
        let mut choice = Choice::of(self.group).at(self.first_place);
        let begun = clock.now().max(start);
        // Always: who asks later may do so while it is within one long operation or pause.
        self.load.so_far.note((self.group.number, self.number), self.sum.report(&self.group.spec.name));
        let (ended, mut found) = self.through(&mut point, &mut choice);
        let mut last_end = ended.unwrap_or(begun);
        if let Some(wear) = &self.load.phase.wear
            && !self.told_to_stop()
            && self.past(clock.now())
            && wear.wait()
        {
            let ended;
            (ended, found) = self.through(&mut point, &mut choice);
            last_end = ended.unwrap_or(last_end);
        }
        let worked_until = clock.now();
        let due_until = if self.past(worked_until) { worked_until } else { last_end };
        if self.load.phase.limits.first_done && !self.past(clock.now()) {
            // Unless it was told to stop, in which case nothing changes.
            self.load.phase.limits.ended.store(true, Ordering::Relaxed);
        }
        if self.group.spec.fsync.after_last && !self.told_to_stop() {
            last_end = self.fsync_last().unwrap_or(last_end);
        }
        if self.group.spec.fsync.at_end && !self.load.cancel.load(Ordering::Relaxed) {
            self.fsync_every_file();
            last_end = clock.now();
        }
        let cpu_ns = crate::measure::clock::thread_cpu_ns() - cpu_start;
        self.hand_over(&point);
        // A pause after the last operation is in its time.
        let mut report = self.report_until(last_end.max(worked_until));
        report.steady = self.rates.report(self.group.spec.steady);
        report.queue_depth = found.map_or(0, |found| found.depth);
        self.load.so_far.ended((self.group.number, self.number));
        let checkpoint = self.checkpoint(choice.place());
        Ended { worked_until, due_until, at: last_end, cpu_ns, report, found, checkpoint }
    }

    /// What the thread has handed over. Its group's delay is not in its time.
    fn report_until(&self, until: u64) -> ThreadReport {
        let begun = self.group_start().max(self.load.start.load(Ordering::Relaxed));
        ThreadReport {
            usage: thread_usage().since(self.used_before),
            elapsed_ns: self.load.clock.between(begun, until.max(begun)),
            ..self.sum.report(&self.group.spec.name)
        }
    }

    /// Notes that, for whoever wants to see it while the load runs.
    pub(super) fn note_so_far(&self, until: u64) {
        if self.load.so_far.wanted.load(Ordering::Relaxed) {
            self.load.so_far.note((self.group.number, self.number), self.report_until(until));
        }
    }

    /// The end of the last operation, if there was one, and the depth that was found.
    fn through(&mut self, point: &mut Point, choice: &mut Choice) -> (Option<u64>, Option<Found>) {
        match (self.queues(), self.is_plain_reads()) {
            (false, false) => (self.drive_alone::<false>(point, choice), None),
            (false, true) => (self.drive_alone::<true>(point, choice), None),
            (true, _) => self.drive_queue(point, choice),
        }
    }

    /// Whether all that the thread does is aimed reads, with nothing to ask in between but the time and whether to stop.
    ///
    /// These are the fastest operations that there are, and the load by which engines are compared: the loop of one after
    /// the other exists once more for them (`READS`), without all that others need. That saves a fifth of the engine's own
    /// cost. In the loop of queues it saves nothing that can be measured.
    fn is_plain_reads(&self) -> bool {
        let spec = &self.group.spec;
        let pauses = !spec.think_time.is_zero()
            || spec.invalidate_every.is_some()
            || !matches!(self.group.fsyncs, PeriodicFsyncs::Never);
        let asks = self.asks() || self.counted.1;
        matches!(self.group.selector, Selector::Single)
            && ops::is_aimed_read(self, 0)
            && !asks
            && !pauses
            && self.yields.is_none()
    }
}
