//! The commonest transfer, worked out before the first operation: one block at a random place of a file that is drawn
//! uniformly and stays open.
//!
//! Everything that follows from the workload alone is in an [`Aim`]; what is left for each operation is two random
//! numbers and a few loads. Whatever does not fit, for good or at the moment (a file of another size, one that is not
//! open yet), takes the general way of [`super::transfer`], which does the same.

use super::transfer::random_blocks;
use crate::audit::Blocks;
use crate::fileset::{FileTable, Hold};
use crate::io::{Fd, Io};
use crate::measure::Done;
use crate::pattern::{block_bytes, distribution_of, positions};
use crate::run::{Load, Picked, PlannedAction, Worker, transfer_of};
use fstone_model::workload::{Distribution, FileChoice, OpenPolicy, Pattern};

/// What is known of such a transfer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aim<'a> {
    table: &'a FileTable,
    /// For the audit of distinct blocks.
    blocks: Option<&'a Blocks>,
    fileset: usize,
    /// Size of the files it is about.
    size: u64,
    positions: u64,
    align: u64,
    length: usize,
    measured: bool,
}

/// A block to be moved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) picked: Picked,
    pub(super) fd: Fd,
    pub(super) offset: u64,
    pub(super) length: usize,
}

impl<'a> Aim<'a> {
    /// `None` when the action is of another kind.
    pub(crate) fn new(load: &Load<'a>, action: &PlannedAction, open: OpenPolicy) -> Option<Self> {
        let transfer = transfer_of(&action.operation)?;
        let fileset = action.fileset?;
        let size = load.files[fileset].sizes.fixed().filter(|size| *size > 0)?;
        let Pattern::Random { align_bytes, .. } = transfer.pattern else { return None };
        let fits = action.choice == FileChoice::Uniform
            && distribution_of(transfer) == Some(Distribution::Uniform)
            && random_blocks(transfer, size) == 1
            && !load.phase.contended[fileset]
            && open == OpenPolicy::KeepOpen
            && load.own_descriptors
            // What direct I/O cannot carry whole needs more care.
            && (!load.io.direct || (block_bytes(transfer, size) | align_bytes).is_multiple_of(512));
        fits.then(|| Self {
            table: &load.files[fileset].table,
            blocks: load.audit.of(fileset).filter(|_| load.measured),
            fileset,
            size,
            positions: positions(transfer, size),
            align: align_bytes.max(1),
            length: block_bytes(transfer, size) as usize,
            measured: load.measured,
        })
    }

    /// What a read of it does.
    pub(crate) fn done(&self) -> Done {
        Done::one_read(self.length)
    }
}

/// The next block of the action, noted as touched; `None` when it has to be found the general way.
#[inline(always)]
pub(super) fn next<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Option<Target> {
    let aim = worker.states[index].aim?;
    let file = aim.table.draw_free(aim.size, aim.measured, |bound| worker.random.below(bound))?;
    let fd = *worker.descriptors.get(aim.fileset)?.get(file as usize)?;
    if fd < 0 {
        return None;
    }
    let offset = worker.random.below(aim.positions) * aim.align;
    if let Some(blocks) = aim.blocks {
        blocks.touch(file, offset);
    }
    worker.previous = Some((aim.fileset, file));
    let picked = Picked { fileset: aim.fileset, file, hold: Hold::Free, position: None };
    Some(Target { picked, fd: Fd(fd), offset, length: aim.length })
}
