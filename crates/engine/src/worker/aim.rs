//! The commonest transfer, worked out before the first operation: one block at a random place of a file that is drawn
//! uniformly and stays open.
//!
//! Everything that follows from the workload alone is in an [`Aim`]; what is left for each operation is two random
//! numbers and a few loads. Whatever does not fit, for good or at the moment (a file of another size, one that is not
//! open yet), takes the general way of `ops/transfer.rs`, which does the same.

use super::descriptors::KeptOf;
use super::load::Load;
use super::picked::Picked;
use crate::audit::Blocks;
use crate::fileset::FileTable;
use crate::io::Fd;
use crate::measure::Done;
use crate::pattern::{block_bytes, distribution_of, positions, random_blocks};
use crate::plan::{GroupPlan, PlannedAction};
use fstone_model::workload::{Distribution, FileChoice, Pattern, Region};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Aim<'a> {
    pub(super) table: &'a FileTable,
    /// Where the files' descriptors are, unless they are the thread's own.
    pub(super) shared: Option<KeptOf<'a>>,
    pub(super) blocks: Option<&'a Blocks>,
    pub(super) fileset: usize,
    pub(super) size: u64,
    pub(super) positions: u64,
    pub(super) align: u64,
    pub(super) length: usize,
    pub(super) measured: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) picked: Picked,
    pub(crate) fd: Fd,
    pub(crate) offset: u64,
    pub(crate) length: usize,
}

impl<'a> Aim<'a> {
    /// `None` when the action is of another kind.
    pub(crate) fn new(load: &'a Load<'a>, group: &GroupPlan, action: &PlannedAction) -> Option<Self> {
        let transfer = action.transfer.as_ref()?;
        let fileset = action.fileset?;
        let size = load.files[fileset].sizes.fixed().filter(|size| *size > 0)?;
        let Pattern::Random { align_bytes, .. } = transfer.pattern else { return None };
        let fits = action.choice == FileChoice::Uniform
            && action.blocks.is_none()
            && group.spec.region == Region::Whole
            && distribution_of(transfer) == Some(Distribution::Uniform)
            && random_blocks(transfer, size) == 1
            && !load.phase.contended[fileset]
            && group.spec.open.keeps()
            // What direct I/O cannot carry whole needs more care.
            && (!group.io.direct || (block_bytes(transfer, size) | align_bytes).is_multiple_of(512));
        fits.then(|| Self {
            table: &load.files[fileset].table,
            shared: load.kept.shared_of(group.descriptors, fileset),
            blocks: load.audit.of(fileset).filter(|_| load.measured),
            fileset,
            size,
            positions: positions(transfer, size),
            align: align_bytes.max(1),
            length: block_bytes(transfer, size) as usize,
            measured: load.measured,
        })
    }

    pub(crate) fn done(&self) -> Done {
        Done::one_read(self.length)
    }
}
