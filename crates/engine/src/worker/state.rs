//! What a thread keeps for each action: where the next operation goes.

use super::aim::Aim;
use super::load::Load;
use crate::pattern::{Drawer, Space, distribution_of, positions};
use crate::plan::{GroupPlan, PlannedAction};
use crate::random::derive;
use fstone_model::fnv::fnv1a;
use fstone_model::workload::{Distribution, FileChoice};

const PERMUTATION_STREAM: u64 = 0x7065_726d;
const LAYOUT_STREAM: u64 = 0x6c61_796f;

/// The seed of where the frequent blocks of a fileset are. Actions of a group share it, and groups of one name in all phases: what is
/// written often is read often, and a warm-up is one for the measured phase.
pub(super) fn layout_seed(load: &Load<'_>, group: &GroupPlan, fileset: usize) -> u64 {
    derive(load.seed, &[LAYOUT_STREAM, fnv1a(group.spec.name.as_bytes()), fileset as u64])
}

#[derive(Debug)]
pub(crate) struct ActionState<'a> {
    pub(crate) aim: Option<Aim<'a>>,
    /// One for each fileset if the action is on all.
    pub(super) drawers: Vec<Drawer>,
    /// The size that a file had last, and how many positions that gives: most files have one size, and a division
    /// costs as much as the rest of the choice.
    pub(crate) positions: (u64, u64),
    /// Its own position in a walk that is not shared.
    pub(crate) cursor: u64,
    /// How much comes next, where that is known before the file is chosen: of what is read back, and on a tour.
    pub(crate) piece: u64,
    /// Of what is read back: the file that it is in, and whether all was read.
    pub(crate) file: u64,
    pub(crate) all_read: bool,
    pub(crate) burst: u32,
    /// Its share of the files as one space, for [`FileChoice::Partitioned`].
    pub(crate) space: Option<Space>,
}

impl<'a> ActionState<'a> {
    pub(super) fn new(load: &'a Load<'a>, group: &GroupPlan, index: usize, thread: u64) -> Self {
        let action = &group.actions[index];
        let distribution = action.transfer.as_ref().and_then(distribution_of).unwrap_or(Distribution::Uniform);
        let seed = |fileset: usize| match distribution {
            Distribution::Permutation => {
                let (phase, number) = group.origin;
                derive(load.seed, &[PERMUTATION_STREAM, phase, number, group.followed(index) as u64])
            }
            _ => layout_seed(load, group, fileset),
        };
        let filesets = action.fileset.map_or(0..load.files.len(), |fileset| fileset..fileset + 1);
        Self {
            aim: Aim::new(load, group, action),
            drawers: filesets.map(|fileset| Drawer::new(distribution, seed(fileset))).collect(),
            positions: (0, 0),
            cursor: 0,
            file: 0,
            piece: 0,
            all_read: false,
            burst: 0,
            space: share(load, group, action, thread),
        }
    }
}

impl ActionState<'_> {
    #[inline(always)]
    pub(crate) fn drawer(&mut self, fileset: usize) -> &mut Drawer {
        let place = if self.drawers.len() == 1 { 0 } else { fileset };
        &mut self.drawers[place]
    }
}

fn share(load: &Load<'_>, group: &GroupPlan, action: &PlannedAction, thread: u64) -> Option<Space> {
    let (FileChoice::Partitioned, Some(fileset)) = (action.choice, action.fileset) else { return None };
    let roster = load.phase.rosters[fileset].as_ref()?;
    let (threads, count) = (u64::from(group.spec.threads).max(1), roster.len());
    // With more threads than files, some share one.
    let first = if count == 0 { 0 } else { thread % count };
    let step = if thread < count { threads } else { count.max(1) };
    let table = &load.files[fileset].table;
    Some(Space::new(roster, first, step.max(1), |file| match &action.transfer {
        Some(transfer) => positions(transfer, table.size(file)),
        None => 1,
    }))
}
