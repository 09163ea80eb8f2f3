//! A phase of the workload, made ready to be performed: everything that can be decided before the first operation.

use super::series::Series;
use crate::fileset::{Files, Hold};
use crate::measure::{Clock, Done};
use crate::pattern::{Roster, Space, distribution_of, positions};
use fstone_model::workload::{
    Action, Actions, Distribution, FileChoice, FsyncPolicy, IoEngineKind, IoSettings, OpenPolicy, Operation, Pattern,
    Phase, Stop, ThreadGroup, TransactionRule, Transfer,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A value on a cache line of its own, so that threads that write it do not slow those that read its neighbours.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// Operations beyond which a quota is handed out in batches, per thread.
const LARGE_QUOTA: u64 = 10_000;
/// Operations of a batch.
const BATCH: u64 = 16;

/// Counts towards a stop condition.
#[derive(Debug)]
pub(crate) struct Limits {
    operations: Option<u64>,
    batch: u64,
    bytes: Option<u64>,
    pub(crate) time_ticks: Option<u64>,
    pub(crate) utilization: Option<f64>,
    claimed: Padded<AtomicU64>,
    moved: Padded<AtomicU64>,
    /// Set once the limit is reached.
    pub(crate) ended: Padded<AtomicBool>,
}

impl Limits {
    fn new(stop: &Stop, threads: u64, clock: &Clock) -> Self {
        let large = stop.operations.is_some_and(|operations| operations / threads.max(1) >= LARGE_QUOTA);
        Self {
            operations: stop.operations,
            batch: if large { BATCH } else { 1 },
            bytes: stop.bytes,
            time_ticks: stop.time.map(|time| clock.ticks(time)),
            utilization: stop.utilization,
            claimed: Padded::default(),
            moved: Padded::default(),
            ended: Padded::default(),
        }
    }

    #[inline]
    pub(crate) fn ended(&self) -> bool {
        self.ended.0.load(Ordering::Relaxed)
    }

    /// Whether operations or bytes are counted towards a stop.
    pub(crate) fn counts(&self) -> (bool, bool) {
        (self.operations.is_some(), self.bytes.is_some())
    }

    /// Claims operations; how many the caller may perform, 0 for no more, `u64::MAX` when there is no quota.
    #[inline]
    pub(crate) fn claim(&self) -> u64 {
        let Some(quota) = self.operations else { return u64::MAX };
        let before = self.claimed.0.fetch_add(self.batch, Ordering::Relaxed);
        quota.saturating_sub(before).min(self.batch)
    }

    /// Counts something that is not chosen by the loop as an operation (periodic fsyncs).
    pub(crate) fn count(&self, operations: u64) {
        if self.operations.is_some() {
            self.claimed.0.fetch_add(operations, Ordering::Relaxed);
        }
    }

    /// Counts bytes.
    #[inline]
    pub(crate) fn moved(&self, bytes: u64) {
        if let Some(limit) = self.bytes
            && self.moved.0.fetch_add(bytes, Ordering::Relaxed) + bytes >= limit
        {
            self.ended.0.store(true, Ordering::Relaxed);
        }
    }
}

/// An action, ready.
#[derive(Debug)]
pub(crate) struct PlannedAction {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    /// One, or drawn from all.
    pub(crate) fileset: Option<usize>,
    pub(crate) choice: FileChoice,
    pub(crate) rule: TransactionRule,
    /// What transactions are counted in.
    pub(crate) block_bytes: u64,
    /// Whether it writes.
    pub(crate) writes: bool,
    /// How it holds files that something in the phase needs alone.
    pub(crate) hold: Hold,
    /// What the threads share: the position of a walk, or how many blocks a permutation has given.
    pub(crate) cursor: Padded<AtomicU64>,
    /// The fileset as one space, for [`FileChoice::Concatenated`].
    pub(crate) space: Option<Space>,
    /// Per file, how many blocks a permutation has given, when files are drawn.
    pub(crate) turns: Vec<AtomicU64>,
}

impl PlannedAction {
    /// How many transactions an operation is that did this.
    #[inline(always)]
    pub(crate) fn transactions(&self, done: Done) -> u64 {
        let bytes = done.read_bytes + done.written_bytes;
        match self.rule {
            TransactionRule::One => 1,
            _ if bytes == 0 => 0,
            TransactionRule::BlocksFloor => (bytes / self.block_bytes).max(1),
            TransactionRule::BlocksCeil => bytes.div_ceil(self.block_bytes),
        }
    }
}

/// Data moved by the operation.
pub(crate) fn transfer_of(operation: &Operation) -> Option<&Transfer> {
    match operation {
        Operation::Read(transfer)
        | Operation::Write(transfer)
        | Operation::Append(transfer)
        | Operation::MmapRead(transfer)
        | Operation::MmapWrite { transfer, .. } => Some(transfer),
        _ => None,
    }
}

/// Largest single transfer of the operation, 0 when it moves no data.
pub(crate) fn largest_block(operation: &Operation) -> u64 {
    match operation {
        Operation::Create { block_bytes, .. } => *block_bytes,
        Operation::Setxattr { value_bytes } => u64::from(*value_bytes),
        Operation::Getxattr => 64 << 10,
        other => transfer_of(other).map_or(0, |transfer| transfer.block_bytes),
    }
}

/// How the workload moves data, as far as it decides who may share a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) io: IoSettings,
    pub(crate) stamped: bool,
}

/// How the operation has to hold its file.
fn hold_of(operation: &Operation, open: OpenPolicy, manner: Manner) -> Hold {
    match operation {
        Operation::Unlink | Operation::Rename | Operation::Truncate { .. } => Hold::Alone,
        // Stamped data is written alone, so that no reader sees half a write.
        Operation::Write(_) | Operation::Append(_) | Operation::MmapWrite { .. } if manner.stamped => Hold::Alone,
        // The kernel finds the end itself, except where the file was not opened for appending only, or where the
        // end has to be known before the write.
        Operation::Append(_)
            if open == OpenPolicy::KeepOpen || manner.io.direct || manner.io.engine == IoEngineKind::Mmap =>
        {
            Hold::Alone
        }
        _ => Hold::Shared,
    }
}

/// Whether the operation leaves something behind for an fsync.
pub(crate) fn writes(operation: &Operation) -> bool {
    match operation {
        Operation::Create { block_bytes, .. } => *block_bytes > 0,
        Operation::Write(_)
        | Operation::Append(_)
        | Operation::MmapWrite { .. }
        | Operation::CopyFileRange
        | Operation::Reflink => true,
        _ => false,
    }
}

/// Whether files come and go by the operation.
pub(crate) fn changes_files(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Create { .. }
            | Operation::Unlink
            | Operation::Rename
            | Operation::CopyFileRange
            | Operation::Reflink
    )
}

impl PlannedAction {
    /// Whether the action goes through the files one after the other, so that "once through" has a meaning for it.
    fn walks(&self) -> bool {
        match (&self.operation, self.choice) {
            (Operation::Create { .. } | Operation::Unlink, _)
            | (_, FileChoice::RoundRobin | FileChoice::Partitioned) => true,
            (operation, FileChoice::Concatenated) => transfer_of(operation).is_some(),
            (_, FileChoice::Uniform | FileChoice::Same) => false,
        }
    }
}

/// How a thread chooses its next action.
#[derive(Debug)]
pub(crate) enum Selector {
    /// There is only one.
    Single,
    /// Sums of the weights up to and including each action.
    Mix(Vec<u64>),
    Sequence(usize),
    /// Shared counts of the first and the second action.
    Ratio {
        ratio: f64,
        counts: Box<[Padded<AtomicU64>; 2]>,
    },
}

/// When the fsyncs of a group's policy are due while it runs.
#[derive(Debug)]
pub(crate) enum PeriodicFsyncs {
    Never,
    /// The file that a thread worked on, after every so many operations of the group.
    After {
        /// Operations done.
        done: Padded<AtomicU64>,
        /// Something was written since the last of these fsyncs.
        dirty: Padded<AtomicBool>,
    },
    /// Every file, between operations.
    Series(Series),
}

impl PeriodicFsyncs {
    fn new(policy: &FsyncPolicy) -> Self {
        match policy.every_operations {
            0 => Self::Never,
            every if policy.all_files => Self::Series(Series::new(every)),
            _ => Self::After { done: Padded::default(), dirty: Padded::default() },
        }
    }
}

/// A group of threads, ready.
#[derive(Debug)]
pub(crate) struct GroupPlan {
    pub(crate) spec: ThreadGroup,
    /// Its place in the results.
    pub(crate) number: usize,
    pub(crate) actions: Vec<PlannedAction>,
    pub(crate) selector: Selector,
    pub(crate) limits: Limits,
    /// Ends when a walk does.
    pub(crate) until_walked: bool,
    /// Ends after this many operations of each thread.
    pub(crate) thread_quota: Option<u64>,
    /// Operations started, for a target rate.
    pub(crate) started: Padded<AtomicU64>,
    /// When fsyncs are due while it runs.
    pub(crate) fsyncs: PeriodicFsyncs,
    /// Filesets that its actions work on.
    pub(crate) filesets: Vec<usize>,
    /// Descriptors shared by the threads, by fileset, when they do not have their own.
    pub(crate) shared_descriptors: Vec<Option<Descriptors>>,
}

/// A phase, ready.
#[derive(Debug)]
pub(crate) struct PhasePlan {
    pub(crate) groups: Vec<GroupPlan>,
    pub(crate) limits: Limits,
    /// Whether one thread does all, one operation after the other.
    pub(crate) alone: bool,
    /// Per fileset, whether some action of the phase needs a file for itself alone, and there is anything to keep away.
    pub(crate) contended: Vec<bool>,
    /// Per fileset, its files at the start, where an action goes by them.
    pub(crate) rosters: Vec<Option<Roster>>,
}

/// File descriptors by file number; -1 where none is open.
#[derive(Debug)]
pub(crate) struct Descriptors {
    pub(crate) slots: Vec<std::sync::atomic::AtomicI32>,
}

impl Descriptors {
    pub(crate) fn new(files: u64) -> Self {
        Self { slots: (0..files).map(|_| std::sync::atomic::AtomicI32::new(-1)).collect() }
    }
}

/// The filesets an action may work on.
fn filesets_of(fileset: Option<u32>, count: usize) -> std::ops::Range<usize> {
    match fileset {
        Some(index) => index as usize..index as usize + 1,
        None => 0..count,
    }
}

impl PhasePlan {
    /// `first_group` is the number of the phase's first group in the results.
    pub(crate) fn new(phase: &Phase, files: &[Files], manner: Manner, first_group: usize, clock: &Clock) -> Self {
        let actions =
            || phase.groups.iter().flat_map(|group| group.actions.all().into_iter().map(move |action| (group, action)));
        let on = |fileset: usize, test: &dyn Fn(&ThreadGroup, &Action) -> bool| {
            actions().any(|(group, action)| {
                filesets_of(action.fileset, files.len()).contains(&fileset) && test(group, action)
            })
        };
        let threads = phase.groups.iter().map(|group| u64::from(group.threads)).sum();
        let alone = threads == 1 && manner.io.queue_depth <= 1;
        let contended: Vec<bool> = (0..files.len())
            .map(|fileset| {
                let needs = |group: &ThreadGroup, action: &Action| {
                    hold_of(&action.operation, group.open, manner) == Hold::Alone
                };
                !alone && on(fileset, &needs)
            })
            .collect();
        let rosters: Vec<Option<Roster>> = (0..files.len())
            .map(|fileset| {
                on(fileset, &|_, action| !matches!(action.choice, FileChoice::Uniform | FileChoice::Same))
                    .then(|| Roster::new(&files[fileset].table))
            })
            .collect();
        let groups = phase
            .groups
            .iter()
            .enumerate()
            .map(|(index, group)| {
                let once = phase.stop.once_through || group.stop.once_through;
                GroupPlan::new(group, first_group + index, files, &rosters, manner, once, clock)
            })
            .collect();
        Self { groups, limits: Limits::new(&phase.stop, threads, clock), alone, contended, rosters }
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

impl GroupPlan {
    fn new(
        spec: &ThreadGroup,
        number: usize,
        files: &[Files],
        rosters: &[Option<Roster>],
        manner: Manner,
        once: bool,
        clock: &Clock,
    ) -> Self {
        let actions: Vec<PlannedAction> = spec
            .actions
            .all()
            .into_iter()
            .map(|action| {
                let fileset = action.fileset.map(|index| index as usize);
                let transfer = transfer_of(&action.operation);
                let space = match (action.choice, fileset, transfer) {
                    (FileChoice::Concatenated, Some(fileset), Some(transfer)) => {
                        rosters[fileset].as_ref().map(|roster| {
                            Space::new(roster, 0, 1, |file| positions(transfer, files[fileset].table.size(file)))
                        })
                    }
                    _ => None,
                };
                let drawn = matches!(action.choice, FileChoice::Uniform | FileChoice::Same);
                let permuted = transfer.and_then(distribution_of) == Some(Distribution::Permutation);
                let turns = match fileset {
                    Some(fileset) if drawn && permuted => {
                        (0..files[fileset].table.names()).map(|_| AtomicU64::new(0)).collect()
                    }
                    _ => Vec::new(),
                };
                PlannedAction {
                    name: action.name.clone(),
                    operation: action.operation.clone(),
                    fileset,
                    choice: action.choice,
                    rule: action.transactions,
                    block_bytes: largest_block(&action.operation).max(1),
                    writes: writes(&action.operation),
                    hold: hold_of(&action.operation, spec.open, manner),
                    cursor: Padded::default(),
                    space,
                    turns,
                }
            })
            .collect();
        let selector = match &spec.actions {
            _ if actions.len() == 1 => Selector::Single,
            Actions::Mix(mix) => Selector::Mix(
                mix.iter()
                    .scan(0, |sum, weighted| {
                        *sum += u64::from(weighted.weight);
                        Some(*sum)
                    })
                    .collect(),
            ),
            Actions::Sequence(sequence) => Selector::Sequence(sequence.len()),
            Actions::Ratio { ratio, .. } => Selector::Ratio { ratio: *ratio, counts: Box::default() },
        };
        let mut filesets: Vec<usize> =
            spec.actions.all().iter().flat_map(|action| filesets_of(action.fileset, files.len())).collect();
        filesets.sort_unstable();
        filesets.dedup();
        let until_walked = once && actions.iter().any(PlannedAction::walks);
        let mut stop = spec.stop;
        let mut thread_quota = None;
        if once && !until_walked {
            match selector {
                Selector::Sequence(length) => thread_quota = Some(length as u64),
                _ => {
                    let all = filesets.iter().map(|index| files[*index].table.live()).sum();
                    stop.operations = Some(stop.operations.map_or(all, |operations| operations.min(all)));
                }
            }
        }
        let limits = Limits::new(&stop, u64::from(spec.threads), clock);
        Self {
            spec: spec.clone(),
            number,
            actions,
            selector,
            limits,
            until_walked,
            thread_quota,
            started: Padded::default(),
            fsyncs: PeriodicFsyncs::new(&spec.fsync),
            shared_descriptors: (0..files.len()).map(|_| None).collect(),
            filesets,
        }
    }
}

/// Whether the pattern walks by a cursor, and whether the threads share it.
pub(crate) fn cursor_of(transfer: &Transfer) -> Option<bool> {
    match transfer.pattern {
        Pattern::Cursor { shared } => Some(shared),
        _ => None,
    }
}
