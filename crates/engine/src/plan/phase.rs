//! A phase, made ready: its groups, and what they share.

use super::action::{Manner, hold_of};
use super::group::{Common, GroupPlan, changes};
use super::limits::Limits;
use super::program::{Counter, Events, Mail};
use super::searches::Searches;
use super::wear::WearOut;
use crate::fileset::{Files, Hold};
use crate::measure::Clock;
use crate::pattern::Roster;
use fstone_model::Workload;
use fstone_model::workload::operation::Names;
use fstone_model::workload::{Action, Advice, ByFileset, FileChoice, IoSettings, OpenSync, Phase, Region, ThreadGroup};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// How files are opened for data: groups of which it is the same can share descriptors.
#[derive(Debug, PartialEq, Eq)]
struct Opened {
    direct: bool,
    sync: OpenSync,
    changes: bool,
    advice: Advice,
    /// Whether the cache is dropped, and of which parts: the threads' regions.
    dropped: Option<(Region, u32)>,
}

#[derive(Debug)]
pub(crate) struct PhasePlan {
    pub(crate) groups: Vec<GroupPlan>,
    pub(crate) limits: Limits,
    /// What becomes of it after its time, where that is not its end.
    pub(crate) wear: Option<WearOut>,
    /// Whether one thread does all, one operation after the other.
    pub(crate) alone: bool,
    /// Per fileset, whether some action of the phase needs a file for itself alone, and there is anything to keep away.
    pub(crate) contended: Vec<bool>,
    /// Per fileset, whether files come into it while the phase runs.
    pub(crate) refilled: Vec<bool>,
    /// Per fileset, its files at the start, where an action goes by them.
    pub(crate) rosters: Vec<Option<Roster>>,
    pub(crate) mails: Vec<Mail>,
    pub(crate) events: Option<Events>,
    pub(crate) searches: Searches,
    /// Who was done for want of files: the first thread's group and action.
    pub(crate) ran_out: OnceLock<String>,
}

impl PhasePlan {
    /// The phase comes with its place; `first_group` is the number of its first group in the results.
    pub(crate) fn new(
        workload: &Workload,
        (place_of_phase, phase): (usize, &Phase),
        files: &[Files],
        first_group: usize,
        witnessed: bool,
        clock: &Clock,
    ) -> Self {
        let manner = |group: &ThreadGroup| Manner::of(workload, group, witnessed);
        let actions = ByFileset::of_phases([phase]);
        let on = |fileset: usize, test: &dyn Fn(&ThreadGroup, &Action) -> bool| {
            actions.on(fileset).any(|(group, action)| test(group, action))
        };
        let threads = phase.groups.iter().map(|group| u64::from(group.threads)).sum();
        let alone = threads == 1 && phase.groups.iter().all(|group| workload.io_of(group).queue_depth <= 1);
        let contended: Vec<bool> = (0..files.len())
            .map(|fileset| {
                let needs = |group: &ThreadGroup, action: &Action| {
                    hold_of(&action.operation, action.handle.is_some(), manner(group)) == Hold::Alone
                };
                // A thread alone may still have to keep its hands off what it holds open itself.
                let handles = on(fileset, &|_, action| action.handle.is_some());
                (!alone || handles) && on(fileset, &needs)
            })
            .collect();
        let refilled = (0..files.len())
            .map(|fileset| {
                on(fileset, &|_, action| {
                    let nature = action.operation.nature();
                    nature.names == Names::Added || nature.to.is_some_and(|to| to as usize == fileset)
                })
            })
            .collect();
        let rosters: Vec<Option<Roster>> = (0..files.len())
            .map(|fileset| {
                on(fileset, &|_, action| needs_roster(action.choice)).then(|| Roster::new(&files[fileset].table))
            })
            .collect();
        let opened = |group: &ThreadGroup| {
            let IoSettings { direct, sync, .. } = workload.io_of(group);
            let dropped = group.invalidate.then_some((group.region, group.threads));
            Opened { direct, sync, changes: changes(group), advice: group.advice, dropped }
        };
        let opened: Vec<Opened> = phase.groups.iter().map(opened).collect();
        let (mails, counters) = (Mail::of(phase), Counter::of(phase));
        let wear = (phase.stop.wear_out && phase.stop.time.is_some()).then(WearOut::default);
        let groups = phase
            .groups
            .iter()
            .enumerate()
            .map(|(index, group)| {
                let once = phase.stop.once_through || group.stop.once_through;
                let descriptors = opened.iter().position(|other| *other == opened[index]).unwrap_or(index);
                let number = first_group + index;
                let wears_out = wear.is_some();
                let (phase, mails, rosters) = (place_of_phase as u64, &mails, &rosters);
                let counter = counters[index].as_ref();
                let common = Common { files, rosters, once, clock, mails, counter, phase, place: index, wears_out };
                GroupPlan::new(group, number, manner(group), descriptors, common)
            })
            .collect();
        let (limits, events) = (Limits::new(&phase.stop, threads, clock, false), Events::of(phase));
        let searching = phase.groups.iter().filter(|group| group.latency_target.is_some_and(|target| !target.follow));
        let searches = Searches::new(searching.map(|group| group.threads).sum());
        let ran_out = OnceLock::new();
        Self { groups, limits, wear, alone, contended, refilled, rosters, mails, events, searches, ran_out }
    }

    /// The counter's value, counting it up: without a locked instruction where no other thread can.
    #[inline(always)]
    pub(crate) fn count_up(&self, counter: &AtomicU64) -> u64 {
        if !self.alone {
            return counter.fetch_add(1, Ordering::Relaxed);
        }
        let value = counter.load(Ordering::Relaxed);
        counter.store(value + 1, Ordering::Relaxed);
        value
    }
}

fn needs_roster(choice: FileChoice) -> bool {
    match choice {
        FileChoice::RoundRobin | FileChoice::Shuffled | FileChoice::Concatenated | FileChoice::Partitioned => true,
        FileChoice::Uniform | FileChoice::Same | FileChoice::Rotation => false,
    }
}
