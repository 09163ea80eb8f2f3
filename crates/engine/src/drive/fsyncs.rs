//! Fsyncs of a group's policy.

use super::account::Point;
use crate::fileset::Hold;
use crate::io::{Io, kernel};
use crate::measure::Call;
use crate::ops::Flight;
use crate::plan::PeriodicFsyncs;
use crate::worker::{Fault, Incomplete, Picked, Worker};
use rustix::fs::OFlags;
use std::sync::atomic::Ordering;

#[derive(Debug, Clone, Copy)]
pub(super) struct DueFsync {
    fileset: usize,
    file: u32,
    /// Whether an fdatasync will do.
    data: bool,
    /// When the operation before it ended, if it wrote, and how long that took.
    pub(super) after: Option<(u64, u64)>,
}

impl<E: Io> Worker<'_, E> {
    /// Fsyncs the file just worked on, when the group's count of operations says so and something was written: `wrote`, if the operation did,
    /// is its end and its latency.
    pub(super) fn fsync_after(&mut self, wrote: Option<(u64, u64)>) {
        let Some(due) = self.fsync_due_after(wrote, self.previous) else { return };
        match self.fsync_one(due.fileset, due.file, false, None, due.data) {
            Some(end) => self.committed(due.after, end),
            None => self.uncount_fsync(),
        }
    }

    fn committed(&mut self, after: Option<(u64, u64)>, end: u64) {
        if let Some((operation_end, latency_ns)) = after {
            let commit_ns = latency_ns + self.load.clock.between(operation_end, end);
            self.tally.group_fsyncs.commits.record(commit_ns);
        }
    }

    /// The fsync that is due after an operation on this fileset and file.
    pub(super) fn fsync_due_after(&mut self, wrote: Option<(u64, u64)>, of: Option<(usize, u32)>) -> Option<DueFsync> {
        let PeriodicFsyncs::After { done, dirty } = &self.group.fsyncs else { return None };
        let policy = self.group.spec.fsync;
        if policy.counts_writes && wrote.is_none() {
            return None;
        }
        let count = done.fetch_add(1, Ordering::Relaxed) + 1;
        let whole = count.is_multiple_of(policy.every_operations);
        let data = policy.data_every > 0 && count.is_multiple_of(policy.data_every);
        // An fsync that counts is no more than the operations that are left, which those in flight have taken theirs of.
        if !(whole || data) || !dirty.swap(false, Ordering::Relaxed) || !self.count_fsync() {
            return None;
        }
        let (fileset, file) = of?;
        Some(DueFsync { fileset, file, data: !whole, after: wrote })
    }

    /// Claims an operation for an fsync, if it counts as one; whether there was one left.
    fn count_fsync(&self) -> bool {
        if !self.group.spec.fsync.counted {
            return true;
        }
        let counted = self.group.limits.claim_one();
        if counted && !self.load.phase.limits.claim_one() {
            self.group.limits.give_back(1);
            return false;
        }
        counted
    }

    /// An fsync that was counted was not made.
    fn uncount_fsync(&self) {
        if self.group.spec.fsync.counted {
            self.group.limits.give_back(1);
            self.load.phase.limits.give_back(1);
        }
    }

    /// Pushes a due fsync into a slot of the queue. The file is held until it is done.
    pub(super) fn push_fsync(&mut self, due: DueFsync, slot: u32) -> Option<Flight> {
        // What another thread has removed needs no fsync.
        let Ok(picked) = self.hold_shared(due.fileset, due.file) else {
            self.uncount_fsync();
            return None;
        };
        let data_only = due.data || self.group.spec.fsync.data_only;
        let call = if data_only { Call::Fdatasync } else { Call::Fsync };
        let pushed = self
            .kept(&picked)
            .and_then(|fd| self.io.push_fsync(slot, fd, data_only).map_err(|errno| Incomplete::fault(call, errno)));
        match pushed {
            Ok(()) => Some(Flight { picked, call, length: 0 }),
            Err(incomplete) => {
                if let Incomplete::Fault(fault) = incomplete {
                    self.fsync_failed(&picked, fault);
                }
                self.files(picked.fileset).table.release(picked.file, picked.hold);
                self.uncount_fsync();
                None
            }
        }
    }

    /// An fsync of the queue is done, in this time and at this moment.
    pub(super) fn fsynced(&mut self, flight: &Flight, after: Option<(u64, u64)>, outcome: Result<(u64, u64), Fault>) {
        match outcome {
            Ok((latency_ns, end)) => {
                self.tally.group_fsyncs.periodic.record(latency_ns);
                self.committed(after, end);
            }
            Err(fault) => {
                self.fsync_failed(&flight.picked, fault);
                self.uncount_fsync();
            }
        }
        self.files(flight.picked.fileset).table.release(flight.picked.file, flight.picked.hold);
    }

    fn fsync_failed(&mut self, picked: &Picked, fault: Fault) {
        self.name(picked);
        let path = self.load.files[picked.fileset].shown(&self.path.shown());
        self.note_error("fsync policy", fault, &path);
    }

    /// An fsync of the series between two operations; the time when it is done. One that counts takes the place of an
    /// operation that was claimed, and its latency counts from when that was `intended`, if it was. One that does not
    /// leaves what was claimed to the operation after it. `before` is when the operation right before it began and ended.
    #[inline(never)]
    pub(super) fn fsync_between(
        &mut self,
        due: (u64, bool),
        intended: Option<u64>,
        before: Option<(u64, u64)>,
        point: &mut Point,
    ) -> u64 {
        let end = self.fsync_of_series(due, intended.filter(|_| self.group.spec.fsync.counted));
        let wrote = before.filter(|_| self.group.spec.fsync.between && self.done.written_bytes > 0);
        if let (Some(end), Some((begun, ended))) = (end, wrote) {
            self.committed(Some((ended, self.load.clock.between(begun, ended))), end);
        }
        if let Some(schedule) = self.group.schedule.as_ref().filter(|_| self.group.spec.fsync.counted) {
            schedule.settle(self.direction.unwrap_or(true), 0);
        }
        let now = self.load.clock.now();
        self.account(point, now);
        now
    }

    /// The fsync that is due after the last operation, of the file that it worked on; the time when it is done, if there is one.
    pub(super) fn fsync_last(&mut self) -> Option<u64> {
        let PeriodicFsyncs::Series(series) = &self.group.fsyncs else { return None };
        let due = series.due(1)?;
        self.fsync_of_series(due, None);
        Some(self.load.clock.now())
    }

    /// Fsyncs the file just worked on, or one file of the group's filesets, seen as one; the end, if that was done. Its latency counts from
    /// `intended`, if that is given.
    fn fsync_of_series(&mut self, (file, data): (u64, bool), intended: Option<u64>) -> Option<u64> {
        if let Some((fileset, file)) = self.previous.filter(|_| self.group.spec.fsync.between) {
            return self.fsync_one(fileset, file, false, intended, data);
        }
        let mut file = file;
        for fileset in &self.group.filesets {
            let table = &self.load.files[*fileset].table;
            if file < table.names() {
                return if table.is_live(file as u32) {
                    self.fsync_one(*fileset, file as u32, false, intended, data)
                } else {
                    None
                };
            }
            file -= table.names();
        }
        None
    }

    /// Closes a file that is finished; the time when it is done.
    #[inline(never)]
    pub(super) fn close_finished(&mut self, fileset: usize, file: u32) -> u64 {
        if self.group.spec.fsync.at_close {
            self.fsync_one(fileset, file, true, None, false);
        }
        let picked = Picked { fileset, file, hold: Hold::Free, position: None };
        if let Err(Incomplete::Fault(fault)) = self.close_own(&picked) {
            self.fsync_failed(&picked, fault);
        }
        self.load.clock.now()
    }

    pub(super) fn fsync_every_file(&mut self) {
        for fileset in &self.group.filesets {
            let files = &self.load.files[*fileset];
            for file in files.table.live_files() {
                if self.load.halted.load(Ordering::Relaxed) || self.load.cancel.load(Ordering::Relaxed) {
                    return;
                }
                self.fsync_one(*fileset, file, true, None, false);
            }
        }
    }

    /// One fsync of the group's policy; its end, if it was made. The file is held meanwhile: renamed by another thread it
    /// would not be found by its name.
    fn fsync_one(&mut self, fileset: usize, file: u32, at_end: bool, intended: Option<u64>, data: bool) -> Option<u64> {
        // What another thread has removed needs no fsync.
        let Ok(picked) = self.hold_shared(fileset, file) else { return None };
        let end = self.fsync_held(&picked, at_end, intended, data);
        self.files(fileset).table.release(file, picked.hold);
        end
    }

    fn fsync_held(&mut self, picked: &Picked, at_end: bool, intended: Option<u64>, data: bool) -> Option<u64> {
        let fileset = picked.fileset;
        // One that is closed already is opened for it alone.
        let own = self.group.spec.tour_open.is_none() || self.own.get(fileset, picked.file).is_some();
        let keep = self.group.spec.open.keeps() && own;
        let policy = self.group.spec.fsync;
        let call = match data {
            true if policy.range_flags != 0 => Call::SyncFileRange,
            _ if data || policy.data_only => Call::Fdatasync,
            _ => Call::Fsync,
        };
        let clock = self.load.clock;
        self.name(picked);
        let fd = if keep {
            self.kept(picked)
        } else {
            let directory = self.files(fileset).directory();
            let flags = OFlags::RDONLY | self.load.links() | self.files(fileset).when_opened();
            self.io.open(directory, self.path.as_c(), flags).map_err(|errno| Incomplete::fault(Call::Open, errno))
        };
        let outcome = fd.and_then(|fd| {
            let start = intended.unwrap_or_else(|| clock.now());
            let result = match call {
                Call::SyncFileRange if E::REAL => kernel::sync_file_range(fd, policy.range_flags),
                Call::SyncFileRange => Ok(()),
                Call::Fdatasync => self.io.fdatasync(fd),
                _ => self.io.fsync(fd),
            };
            let end = clock.now();
            let closed = if keep { Ok(()) } else { self.io.close(fd) };
            result.map_err(|errno| Incomplete::fault(call, errno))?;
            closed.map_err(|errno| Incomplete::fault(Call::Close, errno))?;
            Ok((clock.between(start, end), end))
        });
        match outcome {
            Ok((latency, end)) => {
                let tally = &mut self.tally.group_fsyncs;
                let kind = if at_end { &mut tally.at_end } else { &mut tally.periodic };
                kind.record(latency);
                Some(end)
            }
            Err(Incomplete::Fault(fault)) => {
                self.fsync_failed(picked, fault);
                None
            }
            Err(Incomplete::Missed | Incomplete::Exhausted | Incomplete::Stopped) => None,
        }
    }
}
