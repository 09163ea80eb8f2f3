//! An action, made ready: what follows from the workload alone.

use crate::fileset::{Files, Hold, Sizes};
use crate::measure::Done;
use crate::pattern::{BlockSizes, Cover, Roster, Space, distribution_of, positions};
use crossbeam_utils::CachePadded;
use fstone_model::Workload;
use fstone_model::workload::operation::{Data, Names, Target};
use fstone_model::workload::{
    Action, Distribution, Extent, FileChoice, IoEngineKind, IoSettings, OpenPolicy, Operation, Pattern,
    SizeDistribution, ThreadGroup, TransactionRule, Transfer,
};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

#[derive(Debug)]
pub(crate) struct PlannedAction {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    pub(crate) transfer: Option<Transfer>,
    /// One, or drawn from all.
    pub(crate) fileset: Option<usize>,
    pub(crate) choice: FileChoice,
    pub(crate) handle: Option<usize>,
    pub(crate) guide: Option<Guide>,
    pub(crate) rule: TransactionRule,
    /// What transactions are counted in.
    pub(crate) block_bytes: u64,
    /// Sizes that its blocks are drawn from. Operation and transfer have the smallest of them as their block then, which
    /// says how many places there are.
    pub(crate) blocks: Option<BlockSizes>,
    pub(crate) writes: bool,
    /// How it holds files that something in the phase needs alone.
    pub(crate) hold: Hold,
    /// What the threads share: the position of a walk, or how many blocks a permutation has given.
    pub(crate) cursor: CachePadded<AtomicU64>,
    /// The fileset as one space, for [`FileChoice::Concatenated`].
    pub(crate) space: Option<Space>,
    /// Per file, how many blocks a permutation has given, when files are drawn.
    pub(crate) turns: Vec<AtomicU64>,
    /// Per file, which places it has given, where sizes of blocks are drawn as well.
    pub(crate) covers: Vec<Mutex<Cover>>,
}

/// What says which file an action works on, if that is not its choice.
#[derive(Debug)]
pub(crate) enum Guide {
    Numbers(Sizes),
    /// The thread's tour, which says where in the file as well.
    Tour,
}

impl PlannedAction {
    pub(super) fn new(
        action: &Action,
        tours: bool,
        manner: Manner,
        files: &[Files],
        rosters: &[Option<Roster>],
    ) -> Self {
        let fileset = action.fileset.map(|index| index as usize);
        let largest_block = action.operation.nature().largest_block;
        let mut operation = with_smallest_block(action);
        if let Some(transfer) = operation.transfer_mut().filter(|_| tours) {
            // Where its blocks are is the tour's.
            transfer.pattern = Pattern::Cursor { shared: false };
        }
        let operation = operation;
        let nature = operation.nature();
        let transfer = nature.transfer;
        let space = match (action.choice, fileset, transfer) {
            (FileChoice::Concatenated, Some(fileset), Some(transfer)) if !is_read_back(transfer) => rosters[fileset]
                .as_ref()
                .map(|roster| Space::new(roster, 0, 1, |file| positions(transfer, files[fileset].table.size(file)))),
            _ => None,
        };
        let drawn = matches!(action.choice, FileChoice::Uniform | FileChoice::Same);
        let permuted = transfer.and_then(distribution_of) == Some(Distribution::Permutation);
        let covers = match fileset {
            Some(fileset) if permuted && action.blocks.is_some() => {
                (0..files[fileset].table.names()).map(|_| Mutex::default()).collect()
            }
            _ => Vec::new(),
        };
        let turns = match fileset {
            Some(fileset) if drawn && permuted && covers.is_empty() => {
                (0..files[fileset].table.names()).map(|_| AtomicU64::new(0)).collect()
            }
            _ => Vec::new(),
        };
        Self {
            name: action.name.clone(),
            transfer: transfer.copied(),
            fileset,
            choice: action.choice,
            handle: action.handle.map(|handle| handle as usize),
            guide: if tours {
                Some(Guide::Tour)
            } else {
                action.numbers.as_ref().and_then(|numbers| Sizes::new(numbers, 1).ok()).map(Guide::Numbers)
            },
            rule: action.transactions,
            block_bytes: largest_block.max(1),
            blocks: action.blocks.as_ref().and_then(|blocks| BlockSizes::new(blocks).ok()),
            writes: nature.writes(),
            hold: hold_of(&operation, action.handle.is_some(), manner),
            cursor: CachePadded::default(),
            space,
            turns,
            covers,
            operation,
        }
    }

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

/// The action's operation; where blocks are drawn, with the smallest in place of the largest.
fn with_smallest_block(action: &Action) -> Operation {
    let mut operation = action.operation.clone();
    if let Some((smallest, _)) = action.blocks.as_ref().and_then(SizeDistribution::block_bounds)
        && let Some(transfer) = operation.transfer_mut()
    {
        if transfer.extent == Extent::Bytes(transfer.block_bytes) {
            transfer.extent = Extent::Bytes(smallest);
        }
        transfer.block_bytes = smallest;
    }
    operation
}

/// How a group moves data, as far as it decides who may share a file, and how many requests are in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) io: IoSettings,
    pub(crate) open: OpenPolicy,
    pub(crate) stamped: bool,
    pub(crate) witnessed: bool,
    pub(crate) queues: bool,
}

impl Manner {
    pub(crate) fn of(workload: &Workload, group: &ThreadGroup, witnessed: bool) -> Self {
        let (io, queues) = (workload.io_of(group), workload.one_at_a_time(group).is_none());
        Self { io, open: group.open, stamped: workload.data.stamped, witnessed, queues }
    }
}

pub(super) fn hold_of(operation: &Operation, by_handle: bool, manner: Manner) -> Hold {
    let nature = operation.nature();
    // Stamped data is written alone, so that no reader sees half a write.
    let stamps = manner.stamped && nature.transfer.is_some() && nature.writes();
    // The kernel finds the end itself, except where the file was not opened for appending only, or where the
    // end has to be known before the write.
    let finds_end = manner.open == OpenPolicy::PerOperation
        && !manner.io.direct
        && !manner.witnessed
        && !matches!(manner.io.engine, IoEngineKind::Mmap | IoEngineKind::Splice);
    // What is appended by handles has its place in the file before it is written.
    let finds_end = finds_end || by_handle;
    if nature.alone || stamps || (nature.data == Data::Appended && !finds_end) { Hold::Alone } else { Hold::Shared }
}

impl PlannedAction {
    /// Whether the action goes through the files one after the other, so that "once through" has a meaning for it.
    pub(super) fn walks(&self) -> bool {
        let nature = self.operation.nature();
        let uses_up = nature.target == Target::NewFile || nature.names == Names::Removed;
        // How many directories are looked at is counted.
        uses_up
            || !self.operation.is_of_leaves()
                && match self.choice {
                    FileChoice::RoundRobin | FileChoice::Shuffled | FileChoice::Partitioned => true,
                    FileChoice::Concatenated => nature.transfer.is_some(),
                    FileChoice::Uniform | FileChoice::Same | FileChoice::Rotation => false,
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

/// Whether the transfer reads what earlier phases wrote.
pub(crate) fn is_read_back(transfer: &Transfer) -> bool {
    matches!(transfer.pattern, Pattern::Written { .. })
}

pub(crate) fn is_permutation(action: &PlannedAction) -> bool {
    action.transfer.as_ref().and_then(distribution_of) == Some(Distribution::Permutation)
}
