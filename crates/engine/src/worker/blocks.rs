//! Where the next blocks of a transfer are, in the file that was chosen.

use super::picked::Picked;
use super::thread::Worker;
use crate::io::Io;
use crate::pattern::{Cover, alignment, block_bytes, extent_bytes, positions, random_blocks};
use crate::plan::is_permutation;
use fstone_model::workload::{Extent, FileChoice, Pattern, Transfer};
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Blocks {
    /// Each drawn by itself: how many, the number of the next, and where it is if that is known already.
    Random { count: u64, number: u64, first: Option<u64> },
    /// One after the other, with gaps of `skip` between them; of this size, or each of a size that is drawn.
    Run { offset: u64, left: u64, block: Option<u64>, skip: u64 },
}

impl Blocks {
    #[inline(always)]
    pub(crate) fn new<E: Io>(
        worker: &mut Worker<'_, E>,
        index: usize,
        transfer: &Transfer,
        picked: &Picked,
        size: u64,
    ) -> Self {
        if let Pattern::Random { .. } = transfer.pattern {
            let count = if size == 0 { 0 } else { random_blocks(transfer, size) };
            return Self::Random { count, number: 0, first: first_position(worker, index, transfer, picked, count) };
        }
        Self::run(worker, index, transfer, picked, size)
    }

    fn run<E: Io>(worker: &mut Worker<'_, E>, index: usize, transfer: &Transfer, picked: &Picked, size: u64) -> Self {
        if worker.group.tour.is_some() {
            return Self::piece(worker, index, picked);
        }
        if transfer.extent == Extent::Bytes(transfer.block_bytes)
            && let Some(drawn) = worker.drawn_block(index)
        {
            return Self::drawn(worker, index, transfer, drawn, size);
        }
        let extent = extent_bytes(transfer, size);
        let block = worker.group.actions[index].blocks.is_none().then(|| block_bytes(transfer, size));
        let (offset, left, skip) = match transfer.pattern {
            Pattern::FromRandom { align_bytes } => {
                let align = align_bytes.max(1);
                (worker.random.below((size - extent) / align + 1) * align, extent, 0)
            }
            Pattern::Cursor { shared } => {
                let units = positions(transfer, size);
                let unit = picked.position.unwrap_or_else(|| next_unit(worker, index, shared)) % units.max(1);
                let whole = if transfer.extent == Extent::Whole { size } else { extent_of(transfer) };
                let offset = unit * whole;
                (offset, whole.min(size.saturating_sub(offset)), 0)
            }
            Pattern::Skip { skip_bytes } => (0, extent, skip_bytes),
            Pattern::Stride { gap_bytes, run } => (worker.stride(index, (gap_bytes, run), extent, size), extent, 0),
            Pattern::Bursts { operations, align_bytes } => {
                (worker.burst(index, operations, align_bytes, extent, size), extent, 0)
            }
            Pattern::Written { .. } => return Self::piece(worker, index, picked),
            Pattern::FromStart | Pattern::Random { .. } | Pattern::Runs(_) => (0, extent, 0),
        };
        Self::Run { offset, left, block, skip }
    }

    /// The piece that the choice of the file already determined.
    fn piece<E: Io>(worker: &Worker<'_, E>, index: usize, picked: &Picked) -> Self {
        let piece = worker.states[index].piece;
        Self::Run { offset: picked.position.unwrap_or(0), left: piece, block: Some(piece), skip: 0 }
    }

    /// One block of a size that was drawn, not at random. There is nothing to skip behind it.
    fn drawn<E: Io>(worker: &mut Worker<'_, E>, index: usize, transfer: &Transfer, drawn: u64, size: u64) -> Self {
        let drawn = drawn.min(size);
        let offset = match transfer.pattern {
            Pattern::FromRandom { align_bytes } => {
                let align = align_bytes.max(1);
                worker.random.below((size - drawn) / align + 1) * align
            }
            Pattern::Cursor { shared } => worker.walk_on(index, shared, drawn, size),
            Pattern::Stride { gap_bytes, run } => worker.stride(index, (gap_bytes, run), drawn, size),
            Pattern::Bursts { operations, align_bytes } => worker.burst(index, operations, align_bytes, drawn, size),
            Pattern::FromStart
            | Pattern::Skip { .. }
            | Pattern::Random { .. }
            | Pattern::Runs(_)
            | Pattern::Written { .. } => 0,
        };
        Self::Run { offset, left: drawn, block: Some(drawn), skip: 0 }
    }

    #[inline(always)]
    pub(crate) fn next<E: Io>(
        &mut self,
        worker: &mut Worker<'_, E>,
        index: usize,
        transfer: &Transfer,
        picked: &Picked,
        size: u64,
    ) -> Option<(u64, usize)> {
        match self {
            Self::Random { count, number, first } => {
                if *number == *count {
                    return None;
                }
                *number += 1;
                if let Some(cover) = worker.group.actions[index].covers.get(picked.file as usize) {
                    return Some(uncovered_block(worker, index, transfer, picked.fileset, size, cover));
                }
                let (offset, length) = match first.take() {
                    Some(position) => place(transfer, size, position),
                    None => random_block(worker, index, transfer, picked, size, *count, *number - 1),
                };
                match worker.drawn_block(index) {
                    None => Some((offset, length)),
                    Some(drawn) => Some((offset, drawn.min(size - offset) as usize)),
                }
            }
            Self::Run { offset, left, block, skip } => {
                let block = match *block {
                    Some(block) => block,
                    None => worker.drawn_block(index).unwrap_or(0),
                };
                let length = block.min(*left).min(size.saturating_sub(*offset));
                if length == 0 {
                    return None;
                }
                let start = *offset;
                *left -= length;
                *offset = start.saturating_add(length).saturating_add(*skip);
                Some((start, length as usize))
            }
        }
    }
}

fn extent_of(transfer: &Transfer) -> u64 {
    match transfer.extent {
        Extent::Whole => transfer.block_bytes,
        Extent::Bytes(bytes) => bytes.max(1),
    }
}

/// The position that the choice of the file already determined, when the operation is one block.
#[inline(always)]
fn first_position<E: Io>(
    worker: &Worker<'_, E>,
    index: usize,
    transfer: &Transfer,
    picked: &Picked,
    count: u64,
) -> Option<u64> {
    let action = &worker.group.actions[index];
    let position = picked.position?;
    let by_space = matches!(action.choice, FileChoice::Concatenated | FileChoice::Partitioned);
    (by_space && (count == 1 || !matches!(transfer.pattern, Pattern::Cursor { .. }))).then_some(position)
}

#[inline(always)]
fn place(transfer: &Transfer, size: u64, position: u64) -> (u64, usize) {
    let align = alignment(transfer);
    let offset = (position * align).min(size - 1);
    (offset, block_bytes(transfer, size).min(size - offset) as usize)
}

/// A block of a drawn size at a place that was not taken before, cut off where the next one was.
#[inline(never)]
fn uncovered_block<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    transfer: &Transfer,
    fileset: usize,
    size: u64,
    cover: &Mutex<Cover>,
) -> (u64, usize) {
    let align = alignment(transfer);
    let drawn = worker.drawn_block(index).unwrap_or(transfer.block_bytes);
    let seed = worker.states[index].drawer(fileset).seed();
    let mut cover = cover.lock().unwrap_or_else(PoisonError::into_inner);
    let (first, row) = cover.next(positions(transfer, size), drawn.div_ceil(align), seed);
    let offset = first * align;
    (offset, drawn.min(row * align).min(size - offset) as usize)
}

#[inline(always)]
fn random_block<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    transfer: &Transfer,
    picked: &Picked,
    size: u64,
    count: u64,
    number: u64,
) -> (u64, usize) {
    let state = &mut worker.states[index];
    if state.positions.0 != size {
        state.positions = (size, positions(transfer, size));
    }
    let space = state.positions.1;
    let position = match state.drawer(picked.fileset).uniform(space, &mut worker.random) {
        Some(position) => position,
        None => {
            let turn = match picked.position {
                _ if !is_permutation(&worker.group.actions[index]) => 0,
                // Going through the files in turn, the round says how many blocks each has given.
                Some(round) => round * count + number,
                None => worker.turns(index, picked, 1),
            };
            worker.states[index].drawer(picked.fileset).draw(space, &mut worker.random, || turn)
        }
    };
    place(transfer, size, position)
}

fn next_unit<E: Io>(worker: &mut Worker<'_, E>, index: usize, shared: bool) -> u64 {
    let group = worker.group;
    if shared {
        return worker.load.phase.count_up(&group.actions[index].cursor);
    }
    let cursor = &mut worker.states[index].cursor;
    *cursor += 1;
    *cursor - 1
}
