//! What came of an operation, counted: by action, in its point of the series, and towards the stops.

use crate::fileset::Hold;
use crate::io::Io;
use crate::measure::{ActionTally, Call, Done};
use crate::plan::{PeriodicFsyncs, PlannedAction};
use crate::worker::{Fault, Picked, Worker};
use fstone_model::workload::ErrorPolicy;
use fstone_model::workload::operation::Data;
use fstone_model::workload::settings::Setting;
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time after which counts are handed over in any case: a thread that performs fewer than 70 million operations per
/// second does not overflow the 32 bits of a histogram's counts.
const MAX_POINT: Duration = Duration::from_secs(60);
const JUDGED_POINT: Duration = Duration::from_millis(50);

pub(super) struct Point {
    pub(super) index: u64,
    /// When it is over, or when what is counted is to be handed over because a counter could overflow.
    pub(super) end: u64,
}

impl<E: Io> Worker<'_, E> {
    /// Counts an operation that ended in its point of the series, handing over the one before when that is over; whether it
    /// was.
    #[inline(always)]
    pub(super) fn account(&mut self, point: &mut Point, end: u64) -> bool {
        let over = end >= point.end;
        if over {
            self.turn(point, end);
        }
        over
    }

    /// Says of the actions that are aimed what each of their operations will do.
    pub(super) fn expect_aimed(&mut self) {
        for ((state, action), tally) in self.states.iter().zip(&self.group.actions).zip(&mut self.tally.actions) {
            if let Some(aim) = &state.aim {
                tally.expect(aim.done(), action.transactions(aim.done()));
            }
        }
    }

    #[inline(always)]
    pub(super) fn completed(&mut self, index: usize, done: Done, latency_ns: u64) {
        let tally = &mut self.tally.actions[index];
        if tally.is_usual(done) {
            // How many transactions it is takes a division.
            tally.completed_as_usual(latency_ns);
        } else {
            tally.completed(done, self.group.actions[index].transactions(done), latency_ns);
        }
        if self.counted.1 {
            let bytes = done.read_bytes + done.written_bytes;
            if let Some(schedule) = &self.group.schedule {
                schedule.settle(self.group.actions[index].writes, bytes);
            }
        }
        if let PeriodicFsyncs::After { dirty, .. } = &self.group.fsyncs
            && done.written_bytes > 0
        {
            dirty.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn moved(&self, bytes: u64) {
        self.group.limits.moved(bytes);
        self.load.phase.limits.moved(bytes);
    }

    /// Notes that an operation on this fileset and file failed, and ends the load if that is the policy.
    #[cold]
    pub(super) fn failed(&mut self, index: usize, fault: Fault, of: Option<(usize, u32)>) {
        if fault.call == Call::Write && matches!(fault.errno(), Errno::NOSPC | Errno::DQUOT) {
            let limits = [&self.group.limits, &self.load.phase.limits];
            if let Some(limits) = limits.into_iter().find(|limits| limits.full) {
                limits.ended.store(true, Ordering::Relaxed);
                return;
            }
        }
        self.tally.actions[index].errors += 1;
        if let Some(schedule) = &self.group.schedule {
            schedule.settle(self.group.actions[index].writes, 0);
        }
        if let Some((fileset, file)) = of.filter(|_| fault.call.is_by_descriptor()) {
            // Of a file that was open already the path has not been made.
            self.name(&Picked { fileset, file, hold: Hold::Free, position: None });
        }
        let fileset = self.group.actions[index].fileset.or(of.map(|(fileset, _)| fileset));
        let path = match (fault.call, fileset) {
            (_, None) => String::new(),
            // Nothing was chosen, so there is no path.
            (Call::Choose, Some(fileset)) => self.load.files[fileset].spec.name.clone(),
            (Call::Verify, Some(fileset)) => {
                format!("{} at byte {}", self.load.files[fileset].shown(&self.path.shown()), self.damaged_at)
            }
            (_, Some(fileset)) => self.load.files[fileset].shown(&self.path.shown()),
        };
        self.note_error(&self.group.actions[index].name, fault, &path);
    }

    pub(super) fn note_error(&self, operation: &str, fault: Fault, path: &str) {
        let io = self.group.io;
        let flagged = matches!(fault.call, Call::Read | Call::Write) && fault.errno() == Errno::OPNOTSUPP;
        let set = |setting: &Setting| setting.is_in(io) && (*setting != Setting::Atomic || fault.call == Call::Write);
        let lacking = Setting::ALL.into_iter().filter(|_| flagged).filter(set).find_map(Setting::needs);
        let from = (&*self.group.spec.name, operation);
        self.load.collector.error(from, fault.call.name(), path, fault.errno(), lacking);
        if self.group.spec.tolerates(fault.call.name(), fault.errno().raw_os_error()) {
            return;
        }
        match self.load.on_error {
            ErrorPolicy::Stop => self.load.halt(),
            ErrorPolicy::StopGroup => self.group.limits.ended.store(true, Ordering::Relaxed),
            ErrorPolicy::Continue => {}
        }
    }

    pub(super) fn hand_over(&mut self, point: &Point) {
        self.tally.actions.iter_mut().for_each(ActionTally::settle);
        self.sum.add(&self.tally, self.group.spec.fsync.counted);
        self.load.collector.hand_over(self.group.number, self.load.first_point + point.index, &mut self.tally);
    }

    /// Takes the point of this number, which is over, as a sample of what the thread does, and those between it and `next`, in which it
    /// did nothing. A point that begins before the group does is no sample.
    fn sample(&mut self, point: u64, next: u64) {
        let ticks = self.load.point_ticks;
        let start = self.load.start.load(Ordering::Relaxed);
        let first = self.group_start().saturating_sub(start).div_ceil(ticks.max(1));
        let whole = point >= first;
        let idle = next.saturating_sub(first.max(point + 1));
        let actions = &self.group.actions;
        // What is trimmed is not moved.
        let moving =
            |action: &&PlannedAction| action.transfer.is_some() && action.operation.nature().data != Data::Resized;
        let moves = [false, true].map(|writes| actions.iter().filter(moving).any(|action| action.writes == writes));
        let seconds = self.load.clock.nanoseconds(ticks) as f64 / 1e9;
        self.sum.point_over(seconds, whole, idle, moves);
    }

    /// The ticks after which a point is handed over at the latest: soon where a rate is judged.
    pub(super) fn most_point(&self) -> u64 {
        self.load.clock.ticks(if self.is_judged() { JUDGED_POINT } else { MAX_POINT })
    }

    fn is_judged(&self) -> bool {
        self.group.spec.least_rate.is_some() || self.group.spec.steady.is_some()
    }

    #[cold]
    pub(super) fn turn(&mut self, point: &mut Point, end: u64) {
        self.hand_over(point);
        let start = self.load.start.load(Ordering::Relaxed);
        let before = point.index;
        point.index = end.saturating_sub(start) / self.load.point_ticks.max(1);
        if point.index > before {
            self.sample(before, point.index);
        }
        let over = start.saturating_add((point.index + 1).saturating_mul(self.load.point_ticks));
        point.end = over.min(end.saturating_add(self.most_point()));
        if self.is_judged() {
            self.look_at_rates(end);
        }
        self.note_so_far(end);
    }
}
