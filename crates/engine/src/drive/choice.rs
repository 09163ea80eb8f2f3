//! What a thread does next: which action, or an fsync that is due before it.

use super::progress::ProgramProgress;
use crate::io::Io;
use crate::plan::{GroupPlan, PeriodicFsyncs, Selector, Series};
use crate::worker::{NextOfTour, Worker};
use std::sync::atomic::Ordering;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Action(usize),
    /// The same, after a rest that is no part of it.
    Rested(usize),
    /// Fsync this file of the group's filesets, seen as one, or fdatasync it, and ask again.
    Fsync(u64, bool),
    /// Close this file of a fileset, with nothing in flight, and ask again.
    Close(usize, u32),
    End,
}

#[derive(Debug, Default)]
pub(super) struct Choice {
    sequence: usize,
    waiting: Option<usize>,
    /// Of a ratio: what was chosen and does not count yet, and how many count at once. Where transfers are queued they
    /// count when the queue has been filled: that is when libaio, and with it sysbench, gets buffered ones back.
    uncounted: [u64; 2],
    counts_at_once: u64,
    /// Of a backlog: operations begun, those of them that are still to be followed, and whether that goes on.
    backlog: (u64, u64, bool),
    pub(super) progress: ProgramProgress,
}

impl Choice {
    pub(super) fn restart(&mut self) {
        self.sequence = 0;
    }

    pub(super) fn counting(at_once: u32) -> Self {
        Self { counts_at_once: u64::from(at_once), ..Self::default() }
    }

    pub(super) fn at(self, sequence: usize) -> Self {
        Self { sequence, ..self }
    }

    pub(super) fn place(&self) -> usize {
        self.sequence
    }

    /// The first action until so many are to be followed by the second, or as many as there are operations left.
    fn in_batches(&mut self, backlog: u64, operations: u64) -> usize {
        let (begun, waiting, following) = self.backlog;
        let follows = waiting > 0 && (following || waiting >= backlog.min(operations.saturating_sub(begun)));
        self.backlog = (begun + 1, if follows { waiting - 1 } else { waiting + 1 }, follows);
        usize::from(follows)
    }

    pub(super) fn of(group: &GroupPlan) -> Self {
        match &group.selector {
            Selector::Program(program) => {
                Self { progress: ProgramProgress::of(program, group.actions.len()), ..Self::default() }
            }
            _ => Self::default(),
        }
    }
}

impl<E: Io> Worker<'_, E> {
    #[inline(always)]
    pub(super) fn granted(&self, granted: &mut (u64, u64)) -> bool {
        if granted.0 == 0 {
            granted.0 = self.group.limits.claim();
        }
        if granted.1 == 0 {
            granted.1 = self.load.phase.limits.claim();
        }
        if granted.0 == 0 || granted.1 == 0 {
            // What one of them grants is of no use without the other.
            self.group.limits.give_back(std::mem::take(&mut granted.0));
            self.load.phase.limits.give_back(std::mem::take(&mut granted.1));
            return false;
        }
        granted.0 -= 1;
        granted.1 -= 1;
        true
    }

    /// What comes next: an operation, or before it an fsync that is due.
    #[inline(always)]
    pub(super) fn next(&mut self, choice: &mut Choice) -> Next {
        match &self.group.fsyncs {
            PeriodicFsyncs::Series(_) => self.next_of_series(choice),
            _ => self.next_action(choice),
        }
    }

    /// The fsync of the series that is due now.
    fn due(&self, series: &Series) -> Option<(u64, bool)> {
        let group = self.group;
        let of = |fileset: &usize| self.load.files[*fileset].table.names();
        series.due(if group.spec.fsync.between { 1 } else { group.filesets.iter().map(of).sum() })
    }

    /// The same, where a rate is one of operations and not of fsyncs: these do not wait until the next operation is due.
    pub(super) fn due_at_once(&self) -> Option<(u64, bool)> {
        match &self.group.fsyncs {
            PeriodicFsyncs::Series(series) if !self.group.spec.fsync.counted => self.due(series),
            _ => None,
        }
    }

    #[inline(never)]
    fn next_of_series(&mut self, choice: &mut Choice) -> Next {
        let group = self.group;
        let PeriodicFsyncs::Series(series) = &group.fsyncs else { return Next::End };
        if let Some((file, data)) = self.due(series) {
            return Next::Fsync(file, data);
        }
        let next = match choice.waiting.take() {
            Some(index) => Next::Action(index),
            None => self.next_action(choice),
        };
        let (Next::Action(index) | Next::Rested(index)) = next else { return next };
        if series.begin(group.actions[index].writes) {
            return next;
        }
        // Meanwhile other threads began the operations that were left before the next fsyncs.
        choice.waiting = Some(index);
        self.next_of_series(choice)
    }

    #[inline(always)]
    fn next_action(&mut self, choice: &mut Choice) -> Next {
        let group = self.group;
        match &group.selector {
            Selector::Single => Next::Action(0),
            Selector::Mix(draws) => {
                let index = draws.draw(self.direction, |bound| self.random.below(bound));
                Next::Action(if self.states[index].all_read { self.one_to_read(index) } else { index })
            }
            Selector::Sequence(length) => {
                if let Some(backlog) = group.spec.backlog {
                    return Next::Action(choice.in_batches(backlog, group.spec.stop.operations.unwrap_or(u64::MAX)));
                }
                let index = choice.sequence;
                choice.sequence = (index + 1) % (*length).max(1);
                if *length == 0 { Next::End } else { Next::Action(index) }
            }
            Selector::Program(_) => self.next_of_program(&mut choice.progress),
            Selector::Tour => match group.tour.as_ref().map(|plan| self.next_of_tour(plan)) {
                Some(NextOfTour::Action(index)) => Next::Action(index),
                Some(NextOfTour::Close(fileset, file)) => Next::Close(fileset, file),
                Some(NextOfTour::End) | None => Next::End,
            },
            Selector::Ratio { ratio, counts } => {
                let [firsts, seconds] = &**counts;
                let (done, others) = (firsts.load(Ordering::Relaxed), seconds.load(Ordering::Relaxed));
                let index = usize::from(((done + 1) as f64) / ((others + 1) as f64) >= *ratio);
                choice.uncounted[index] += 1;
                if choice.uncounted.iter().sum::<u64>() >= choice.counts_at_once {
                    let [first, second] = std::mem::take(&mut choice.uncounted);
                    firsts.fetch_add(first, Ordering::Relaxed);
                    seconds.fetch_add(second, Ordering::Relaxed);
                }
                Next::Action(index)
            }
        }
    }

    /// An action that has something left to read back, in place of one that has not.
    #[cold]
    fn one_to_read(&self, index: usize) -> usize {
        let count = self.states.len();
        (1..count).map(|on| (index + on) % count).find(|other| !self.states[*other].all_read).unwrap_or(index)
    }

    /// Whether a rate or a count has to be asked before each operation.
    pub(super) fn asks(&self) -> bool {
        self.group.schedule.is_some() || self.counted.0 || self.group.thread_quota.is_some()
    }
}
