//! What programs do by handles: opening and closing, and data that goes on from the handle's cursor.

use super::blocks::{asked, read_on, write_all};
use super::new_file::open_new;
use crate::data::Destination;
use crate::fileset::Hold;
use crate::fileset::build::stamp_name;
use crate::io::Io;
use crate::measure::Call;
use crate::pattern::permute;
use crate::worker::{Attempt, Incomplete, Picked, Worker};
use fstone_model::workload::{Extent, FileChoice, Pattern, Runs, Transfer};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::sync::atomic::Ordering;

/// The action's handle. The plan refuses these operations without one.
fn handle_of<E: Io>(worker: &Worker<'_, E>, index: usize) -> Attempt<usize> {
    worker.group.actions[index].handle.ok_or_else(|| Incomplete::fault(Call::Choose, Errno::BADF))
}

pub(super) fn open<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    let handle = handle_of(worker, index)?;
    worker.open_in(index, handle).map(drop)
}

pub(super) fn close<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    let handle = handle_of(worker, index)?;
    worker.close_handle(handle)
}

/// Makes an empty file, and leaves it in the handle. The size it is to have is drawn.
pub(super) fn create<E: Io>(worker: &mut Worker<'_, E>, index: usize, handle: usize) -> Attempt<()> {
    let group = worker.group;
    let action = &group.actions[index];
    let fileset = worker.fileset(action);
    let files = worker.files(fileset);
    let file = if action.choice == FileChoice::Rotation {
        let from = files.next_name.fetch_add(1, Ordering::Relaxed);
        let Some((file, passed)) = files.table.begin_create_from(from) else { return Err(Incomplete::Exhausted) };
        files.next_name.fetch_add(passed, Ordering::Relaxed);
        file
    } else {
        files.table.begin_create().ok_or_else(|| Incomplete::fault(Call::Choose, Errno::NFILE))?
    };
    let wanted = files.sizes.draw(&mut worker.random);
    let hold = if worker.load.phase.contended[fileset] { Hold::Shared } else { Hold::Free };
    let picked = Picked { fileset, file, hold, position: None };
    let fd = open_new(worker, fileset, file, OFlags::RDWR)?;
    files.table.finish_create_held(file, hold);
    if worker.load.measured {
        files.table.touch(file);
    }
    worker.keep_in(handle, &picked, fd, wanted);
    Ok(())
}

pub(super) fn fill<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    block_bytes: u64,
    like: Option<u32>,
) -> Attempt<()> {
    let handle = handle_of(worker, index)?;
    worker.opened_in(index, handle)?;
    let Some(held) = worker.handles.last(like.map_or(handle, |like| like as usize)) else {
        return Err(Incomplete::fault(Call::Choose, Errno::BADF));
    };
    let mut left = held.wanted;
    while left > 0 {
        let block = worker.drawn_block(index).unwrap_or(block_bytes).max(1);
        write_on(worker, index, handle, block.min(left))?;
        left -= block.min(left);
    }
    Ok(())
}

/// Whether a transfer by a handle goes by its cursor, or to wherever the file ends.
pub(super) fn goes_on(transfer: &Transfer) -> bool {
    match transfer.pattern {
        Pattern::Cursor { .. } | Pattern::Runs(_) => true,
        Pattern::FromStart => transfer.extent == Extent::Whole,
        Pattern::FromRandom { .. }
        | Pattern::Random { .. }
        | Pattern::Stride { .. }
        | Pattern::Bursts { .. }
        | Pattern::Written { .. }
        | Pattern::Skip { .. } => false,
    }
}

/// Reads from the cursor on, and anew from the start where the file ends; or all of the file.
pub(super) fn read<E: Io>(worker: &mut Worker<'_, E>, index: usize, handle: usize, transfer: &Transfer) -> Attempt<()> {
    if let Pattern::Runs(runs) = &transfer.pattern {
        return read_run(worker, index, handle, transfer, runs);
    }
    let (picked, _) = worker.opened_in(index, handle)?;
    let size = worker.files(picked.fileset).table.size(picked.file);
    let begin = match transfer.pattern {
        Pattern::Cursor { .. } => worker.handles.last(handle).map_or(0, |held| held.cursor),
        _ => 0,
    };
    let begin = if begin < size { begin } else { 0 };
    let mut offset = begin;
    let first = worker.drawn_block(index).unwrap_or(transfer.block_bytes).max(1);
    let end = match transfer.extent {
        Extent::Whole => size,
        Extent::Bytes(bytes) if bytes == transfer.block_bytes => size.min(begin.saturating_add(first)),
        Extent::Bytes(bytes) => size.min(begin.saturating_add(bytes)),
    };
    let mut block = first;
    while offset < end {
        let length = block.min(end - offset) as usize;
        let got = read_some(worker, index, handle, offset, length)?;
        offset += got as u64;
        // Another thread's data may be on its way to where the file is to end.
        if got < length {
            break;
        }
        block = worker.drawn_block(index).unwrap_or(transfer.block_bytes).max(1);
    }
    worker.handles.move_to(handle, offset);
    if transfer.fsync { sync(worker, index, handle) } else { Ok(()) }
}

fn read_some<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    handle: usize,
    offset: u64,
    length: usize,
) -> Attempt<usize> {
    let (_, fd) = worker.opened_in(index, handle)?;
    let mut until = asked(worker.group.io.direct, offset, length);
    let got = read_on(worker, fd, 0, &mut until, length, offset)?.min(length);
    worker.done.calls += 1;
    worker.done.read_bytes += got as u64;
    Ok(got)
}

/// Writes from the cursor on, beyond the end too.
pub(super) fn write<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    handle: usize,
    transfer: &Transfer,
) -> Attempt<()> {
    if let Pattern::Runs(runs) = &transfer.pattern {
        return write_run(worker, index, handle, transfer, runs);
    }
    let (picked, _) = worker.opened_in(index, handle)?;
    if !matches!(transfer.pattern, Pattern::Cursor { .. }) {
        worker.handles.move_to(handle, 0);
    }
    let mut block = worker.drawn_block(index).unwrap_or(transfer.block_bytes).max(1);
    let mut left = match transfer.extent {
        Extent::Whole => worker.files(picked.fileset).table.size(picked.file),
        Extent::Bytes(bytes) if bytes == transfer.block_bytes => block,
        Extent::Bytes(bytes) => bytes,
    };
    while left > 0 {
        let length = block.min(left);
        write_on(worker, index, handle, length)?;
        left -= length;
        block = next_block(worker, index, transfer, left);
    }
    if transfer.fsync { sync(worker, index, handle) } else { Ok(()) }
}

/// Sizes are drawn anew for each call of an operation.
fn next_block<E: Io>(worker: &mut Worker<'_, E>, index: usize, transfer: &Transfer, left: u64) -> u64 {
    let drawn = if left > 0 { worker.drawn_block(index) } else { None };
    drawn.unwrap_or(transfer.block_bytes).max(1)
}

fn write_on<E: Io>(worker: &mut Worker<'_, E>, index: usize, handle: usize, length: u64) -> Attempt<()> {
    let (picked, fd) = worker.opened_in(index, handle)?;
    let offset = worker.handles.last(handle).map_or(0, |held| held.cursor);
    let destination = Destination { file: stamp_name(picked.fileset as u32, picked.file), offset };
    write_all(worker, &picked, fd, length as usize, destination)?;
    worker.files(picked.fileset).table.raise_size(picked.file, offset + length);
    worker.handles.move_to(handle, offset + length);
    Ok(())
}

/// Where a block of runs is that begins at this byte of them, and how much of it is in one piece.
fn place_of<E: Io>(worker: &Worker<'_, E>, transfer: &Transfer, runs: &Runs, byte: u64) -> (u64, u64) {
    let block = transfer.block_bytes.max(1);
    let byte = if runs.shuffled {
        let blocks = (runs.total_bytes / block).max(1);
        // Writes and reads come in the same order, whatever their phases.
        permute(byte / block % blocks, blocks, worker.load.seed) * block + byte % block
    } else {
        byte
    };
    runs.place(byte % runs.total_bytes.max(1))
}

fn write_run<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    handle: usize,
    transfer: &Transfer,
    runs: &Runs,
) -> Attempt<()> {
    let (picked, fd) = worker.opened_in(index, handle)?;
    let mut byte = worker.handles.last(handle).map_or(0, |held| held.cursor);
    let mut left = transfer.block_bytes;
    while left > 0 {
        let (offset, length) = place_of(worker, transfer, runs, byte);
        let length = length.min(left);
        let destination = Destination { file: stamp_name(picked.fileset as u32, picked.file), offset };
        write_all(worker, &picked, fd, length as usize, destination)?;
        worker.files(picked.fileset).table.raise_size(picked.file, offset + length);
        (byte, left) = (byte + length, left - length);
    }
    worker.files(picked.fileset).gone_through.fetch_max(byte, Ordering::Relaxed);
    worker.handles.move_to(handle, byte);
    if transfer.fsync { sync(worker, index, handle) } else { Ok(()) }
}

/// Reads the next block of runs; of those that the load wrote as many as it did.
fn read_run<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    handle: usize,
    transfer: &Transfer,
    runs: &Runs,
) -> Attempt<()> {
    let (picked, _) = worker.opened_in(index, handle)?;
    let mut byte = worker.handles.last(handle).map_or(0, |held| held.cursor);
    let written = worker.files(picked.fileset).gone_through.load(Ordering::Relaxed);
    if written > 0 && byte >= written {
        return Err(Incomplete::Exhausted);
    }
    let mut left = transfer.block_bytes;
    while left > 0 {
        let (offset, length) = place_of(worker, transfer, runs, byte);
        let length = length.min(left);
        let got = read_some(worker, index, handle, offset, length as usize)? as u64;
        if got == 0 {
            return Err(Incomplete::fault(Call::Read, Errno::NODATA));
        }
        (byte, left) = (byte + got, left - got);
    }
    worker.handles.move_to(handle, byte);
    if transfer.fsync { sync(worker, index, handle) } else { Ok(()) }
}

/// Writes at the end. Threads that have the same file open get a place in it each.
pub(super) fn append<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    handle: usize,
    transfer: &Transfer,
) -> Attempt<()> {
    let (picked, fd) = worker.opened_in(index, handle)?;
    let mut block = worker.drawn_block(index).unwrap_or(transfer.block_bytes).max(1);
    let mut left = match transfer.extent {
        Extent::Bytes(bytes) if bytes != transfer.block_bytes => bytes,
        Extent::Whole | Extent::Bytes(_) => block,
    };
    let mut offset = worker.files(picked.fileset).table.grow(picked.file, left);
    while left > 0 {
        let length = block.min(left);
        let destination = worker.destination(&picked, offset);
        write_all(worker, &picked, fd, length as usize, destination)?;
        offset += length;
        left -= length;
        block = next_block(worker, index, transfer, left);
    }
    worker.handles.move_to(handle, offset);
    if transfer.fsync { sync(worker, index, handle) } else { Ok(()) }
}

fn sync<E: Io>(worker: &mut Worker<'_, E>, index: usize, handle: usize) -> Attempt<()> {
    let (_, fd) = worker.opened_in(index, handle)?;
    worker.make_durable(fd)
}
