//! A group of threads, made ready: how it chooses, when it fsyncs, when it ends.

use super::action::{Manner, PlannedAction};
use super::draws::Draws;
use super::limits::Limits;
use super::program::{Counter, Mail, Program};
use super::schedule::Schedule;
use super::series::Series;
use super::tour::TourPlan;
use crate::fileset::Files;
use crate::io::CallLog;
use crate::measure::Clock;
use crate::pattern::Roster;
use crossbeam_utils::CachePadded;
use fstone_model::workload::operation::Data;
use fstone_model::workload::{Actions, FsyncPolicy, IoSettings, ThreadGroup};
use rustix::fs::OFlags;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

#[derive(Debug)]
pub(crate) enum Selector {
    Single,
    Mix(Draws),
    Sequence(usize),
    Ratio { ratio: f64, counts: Box<[CachePadded<AtomicU64>; 2]> },
    Program(Box<Program>),
    Tour,
}

#[derive(Debug)]
pub(crate) enum PeriodicFsyncs {
    Never,
    /// The file that a thread worked on, after every so many operations of the group.
    After {
        done: CachePadded<AtomicU64>,
        /// Something was written since the last of these fsyncs.
        dirty: CachePadded<AtomicBool>,
    },
    /// Every file, or the one that a thread worked on, between operations.
    Series(Series),
}

impl PeriodicFsyncs {
    fn new(policy: &FsyncPolicy) -> Self {
        match policy.every_operations.max(policy.data_every) {
            0 => Self::Never,
            _ if policy.commits() => Self::After { done: CachePadded::default(), dirty: CachePadded::default() },
            _ => Self::Series(Series::new(policy)),
        }
    }
}

/// What a thread's search for the queue depth that keeps a latency target came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// The largest depth that is known to keep the target, or 1.
    pub(crate) depth: u32,
    /// Why that is not what was looked for, if it is not.
    pub(crate) lacks: Option<&'static str>,
}

#[derive(Debug)]
pub(crate) struct GroupPlan {
    pub(crate) spec: ThreadGroup,
    pub(crate) io: IoSettings,
    /// Which of the phase's sets of kept descriptors is its own: groups that open files alike share one.
    pub(crate) descriptors: usize,
    /// Its place in the results.
    pub(crate) number: usize,
    /// The phase in which its random orders began, and its number there.
    pub(crate) origin: (u64, u64),
    pub(super) done_before: u64,
    pub(crate) actions: Vec<PlannedAction>,
    pub(crate) selector: Selector,
    pub(crate) tour: Option<TourPlan>,
    pub(crate) limits: Limits,
    pub(crate) queues: bool,
    pub(crate) until_walked: bool,
    pub(crate) thread_quota: Option<u64>,
    pub(crate) schedule: Option<Schedule>,
    pub(crate) fsyncs: PeriodicFsyncs,
    pub(crate) filesets: Vec<usize>,
    /// What the threads of a group of its name found in an earlier phase.
    pub(crate) found: Vec<Found>,
    pub(crate) log: Option<Arc<dyn CallLog>>,
}

#[derive(Clone, Copy)]
pub(super) struct Common<'a> {
    pub(super) files: &'a [Files],
    pub(super) rosters: &'a [Option<Roster>],
    /// Whether the phase or the group ends when everything was worked on once.
    pub(super) once: bool,
    pub(super) clock: &'a Clock,
    pub(super) mails: &'a [Mail],
    pub(super) counter: Option<&'a Arc<Counter>>,
    pub(super) phase: u64,
    pub(super) place: usize,
    pub(super) wears_out: bool,
}

fn filesets_of(group: &ThreadGroup, filesets: usize) -> Vec<usize> {
    let actions = group.actions.all();
    if actions.iter().any(|action| action.fileset.is_none()) {
        return (0..filesets).collect();
    }
    let worked_on = actions.iter().flat_map(|action| action.fileset.into_iter().chain(action.operation.nature().to));
    let worked_on: BTreeSet<usize> = worked_on.map(|index| index as usize).filter(|index| *index < filesets).collect();
    worked_on.into_iter().collect()
}

/// Whether a group changes files that it opens. What it only reads may be on a filesystem, or have a mode, that lets nothing be written.
pub(super) fn changes(group: &ThreadGroup) -> bool {
    group.actions.all().into_iter().any(|action| action.operation.nature().data != Data::Kept)
}

impl GroupPlan {
    /// How files that stay open are opened.
    pub(crate) fn access(&self) -> OFlags {
        if changes(&self.spec) { OFlags::RDWR } else { OFlags::RDONLY }
    }

    pub(crate) fn handles(&self) -> usize {
        match &self.selector {
            Selector::Program(program) => program.written.len(),
            _ => 0,
        }
    }

    pub(crate) fn writes_by(&self, handle: usize) -> bool {
        matches!(&self.selector, Selector::Program(program) if program.written[handle])
    }

    pub(super) fn new(
        spec: &ThreadGroup,
        number: usize,
        manner: Manner,
        descriptors: usize,
        common: Common<'_>,
    ) -> Self {
        let Common { files, rosters, once, clock, mails, counter, place, wears_out, .. } = common;
        let tour = TourPlan::of(spec);
        let actions: Vec<PlannedAction> = spec
            .actions
            .all()
            .into_iter()
            .map(|action| PlannedAction::new(action, tour.is_some(), manner, files, rosters))
            .collect();
        let selector = match &spec.actions {
            Actions::Program(steps) => {
                Selector::Program(Box::new(Program::new(spec, steps, place, mails, counter.cloned())))
            }
            _ if tour.is_some() => Selector::Tour,
            _ if actions.len() == 1 => Selector::Single,
            Actions::Mix(mix) => {
                let mut draws = Draws::default();
                for (index, (weighted, action)) in mix.iter().zip(&actions).enumerate() {
                    draws.add(index, weighted.weight, action.writes);
                }
                Selector::Mix(draws)
            }
            Actions::Sequence(sequence) => Selector::Sequence(sequence.len()),
            Actions::Ratio { ratio, .. } => Selector::Ratio { ratio: *ratio, counts: Box::default() },
        };
        let filesets = filesets_of(spec, files.len());
        let until_walked = once && (tour.is_some() || actions.iter().any(PlannedAction::walks));
        let mut stop = spec.stop;
        let mut thread_quota = None;
        if once && !until_walked {
            match selector {
                Selector::Sequence(length) => thread_quota = Some(length as u64),
                _ => {
                    let leaves = spec.actions.all().iter().all(|action| action.operation.is_of_leaves());
                    let there =
                        |index: &usize| if leaves { files[*index].leaves.live() } else { files[*index].table.live() };
                    let all = filesets.iter().map(there).sum();
                    stop.operations = Some(stop.operations.map_or(all, |operations| operations.min(all)));
                }
            }
        }
        let limits = Limits::new(&stop, u64::from(spec.threads), clock, wears_out);
        // Only a rate of bytes asks how large files are.
        let sized = if spec.is_paced_by_bytes() { files } else { &[] };
        let sizes: Vec<_> = sized.iter().map(|files| &files.spec.size).collect();
        Self {
            spec: spec.clone(),
            io: manner.io,
            descriptors,
            number,
            origin: (common.phase, number as u64),
            done_before: 0,
            actions,
            selector,
            tour,
            limits,
            queues: manner.queues,
            until_walked,
            thread_quota,
            schedule: Schedule::of(spec, &sizes),
            fsyncs: PeriodicFsyncs::new(&spec.fsync),
            filesets,
            found: Vec::new(),
            log: None,
        }
    }

    /// The action whose random order an action has: its own, or that of one before it.
    pub(crate) fn followed(&self, index: usize) -> usize {
        let actions = self.spec.actions.all();
        (0..=index).rev().find(|before| !actions[*before].follows).unwrap_or(index)
    }

    pub(crate) fn found(&self, thread: u64) -> Option<Found> {
        let place = (thread as usize).checked_rem(self.found.len())?;
        Some(self.found[place])
    }
}
