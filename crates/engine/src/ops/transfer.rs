//! Moving data: read, write, append, and the same through memory mappings.

use crate::data::{Destination, stamp};
use crate::io::{Direction, Fd, Io, mapping};
use crate::measure::{Call, Done};
use crate::pattern::{block_bytes, extent_bytes, positions};
use crate::run::{Flight, Halt, Outcome, Picked, Queued, Worker, is_permutation};
use fstone_model::workload::{Extent, Pattern, Transfer};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::sync::atomic::Ordering;

/// What every device takes for direct I/O, and what some take less of.
const DIRECT_ALWAYS: u64 = 4096;
const DIRECT_SOMETIMES: u64 = 512;

/// Reads.
#[inline(always)]
pub(super) fn read<E: Io>(worker: &mut Worker<'_, E>, index: usize, transfer: &Transfer) -> Outcome<Done> {
    worker.with_open_file(index, OFlags::RDONLY, |worker, picked, fd| {
        let mut done = Done::default();
        each_block(worker, index, transfer, picked, |worker, offset, length| {
            done.calls += read_all(worker, picked, fd, length, offset)?;
            done.read_bytes += length as u64;
            Ok(())
        })?;
        finish(worker, transfer, fd, done)
    })
}

/// Overwrites in place.
#[inline]
pub(super) fn write<E: Io>(worker: &mut Worker<'_, E>, index: usize, transfer: &Transfer) -> Outcome<Done> {
    worker.with_open_file(index, OFlags::WRONLY, |worker, picked, fd| {
        let mut done = Done::default();
        each_block(worker, index, transfer, picked, |worker, offset, length| {
            let destination = worker.destination(picked, offset);
            done.calls += write_all(worker, picked, fd, length, destination)?;
            done.written_bytes += length as u64;
            Ok(())
        })?;
        finish(worker, transfer, fd, done)
    })
}

/// Begins a read or an overwrite of one block in a slot of the queue. The file is held until it is done.
#[inline]
pub(super) fn queue<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    transfer: &Transfer,
    slot: u32,
    direction: Direction,
) -> Outcome<Queued> {
    let picked = worker.choose(index)?;
    let queued = queue_block(worker, index, transfer, slot, direction, &picked);
    if !matches!(queued, Ok(Queued::Pushed(_))) {
        worker.release(&picked);
    }
    queued
}

#[inline]
fn queue_block<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    transfer: &Transfer,
    slot: u32,
    direction: Direction,
    picked: &Picked,
) -> Outcome<Queued> {
    if worker.load.measured {
        worker.files(picked.fileset).table.touch(picked.file);
    }
    let fd = worker.kept(picked)?;
    let mut queued = Queued::Done(Done::default());
    each_block(worker, index, transfer, picked, |worker, offset, length| {
        let odd = worker.load.io.direct && !(offset | length as u64).is_multiple_of(DIRECT_SOMETIMES);
        let destination = worker.destination(picked, offset);
        if odd && direction == Direction::Write {
            let calls = write_all(worker, picked, fd, length, destination)?;
            queued = Queued::Done(Done { written_bytes: length as u64, calls, ..Done::default() });
            return Ok(());
        }
        touch(worker, picked, offset);
        let mut asked = length;
        if direction == Direction::Write {
            worker.source.prepare(length, destination);
            worker.io.slot(slot)[..length].copy_from_slice(worker.source.block());
        } else if odd {
            asked = length.next_multiple_of(DIRECT_SOMETIMES as usize);
        }
        let call = if direction == Direction::Read { Call::Read } else { Call::Write };
        let pushed = worker.io.push(slot, direction, fd, asked, offset);
        pushed.map_err(|errno| Halt::fault(call, errno))?;
        queued = Queued::Pushed(Flight { picked: *picked, direction, length });
        Ok(())
    })?;
    Ok(queued)
}

/// Writes at the end.
pub(super) fn append<E: Io>(worker: &mut Worker<'_, E>, index: usize, transfer: &Transfer) -> Outcome<Done> {
    worker.with_open_file(index, OFlags::WRONLY | OFlags::APPEND, |worker, picked, fd| {
        let total = match transfer.extent {
            Extent::Whole => transfer.block_bytes,
            Extent::Bytes(bytes) => bytes,
        };
        let table = &worker.files(picked.fileset).table;
        let start = table.size(picked.file);
        let mut done = Done::default();
        let mut outcome = Ok(());
        while done.written_bytes < total && outcome.is_ok() {
            let length = transfer.block_bytes.max(1).min(total - done.written_bytes);
            let destination = worker.destination(picked, start + done.written_bytes);
            outcome = write_all(worker, picked, fd, length as usize, destination).map(|calls| {
                done.calls += calls;
                done.written_bytes += length;
            });
        }
        // Only now may others take the new part for there.
        table.grow(picked.file, done.written_bytes);
        outcome?;
        finish(worker, transfer, fd, done)
    })
}

/// Reads through a mapping made for the operation.
pub(super) fn mapped_read<E: Io>(worker: &mut Worker<'_, E>, index: usize, transfer: &Transfer) -> Outcome<Done> {
    worker.with_open_file(index, OFlags::RDONLY, |worker, picked, fd| {
        let size = worker.files(picked.fileset).table.size(picked.file);
        let map = map(worker, fd, size, false)?;
        let mut done = Done::default();
        let outcome = each_block(worker, index, transfer, picked, |worker, offset, length| {
            touch(worker, picked, offset);
            worker.call(Call::Read, |worker| map.read(&mut worker.buffer.bytes_mut()[..length], offset))?;
            verify(worker, picked, offset, length)?;
            done.calls += 1;
            done.read_bytes += length as u64;
            Ok(())
        });
        worker.call(Call::Munmap, |_| map.unmap())?;
        outcome?;
        finish(worker, transfer, fd, done)
    })
}

/// Writes through a mapping made for the operation.
pub(super) fn mapped_write<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    transfer: &Transfer,
    msync: bool,
) -> Outcome<Done> {
    worker.with_open_file(index, OFlags::RDWR, |worker, picked, fd| {
        let size = worker.files(picked.fileset).table.size(picked.file);
        let map = map(worker, fd, size, true)?;
        let mut done = Done::default();
        let outcome = each_block(worker, index, transfer, picked, |worker, offset, length| {
            let destination = worker.destination(picked, offset);
            touch(worker, picked, offset);
            worker.source.prepare(length, destination);
            worker.call(Call::Write, |worker| map.write(worker.source.block(), offset))?;
            done.calls += 1;
            done.written_bytes += length as u64;
            if msync {
                worker.call(Call::Msync, |_| map.msync(offset, length))?;
            }
            Ok(())
        });
        worker.call(Call::Munmap, |_| map.unmap())?;
        outcome?;
        finish(worker, transfer, fd, done)
    })
}

fn map<E: Io>(worker: &mut Worker<'_, E>, fd: Fd, size: u64, write: bool) -> Outcome<mapping::Mapping> {
    worker.call(Call::Mmap, |_| mapping::Mapping::new(fd, size, write, E::CAPABILITIES.real))
}

/// The fsync of the transfer, if it has one.
#[inline(always)]
fn finish<E: Io>(worker: &mut Worker<'_, E>, transfer: &Transfer, fd: Fd, done: Done) -> Outcome<Done> {
    if transfer.fsync {
        worker.call(Call::Fsync, |worker| worker.io.fsync(fd))?;
    }
    Ok(done)
}

/// Calls `each` with offset and length of every block of one operation.
#[inline(always)]
fn each_block<'a, E: Io>(
    worker: &mut Worker<'a, E>,
    index: usize,
    transfer: &Transfer,
    picked: &Picked,
    mut each: impl FnMut(&mut Worker<'a, E>, u64, usize) -> Outcome<()>,
) -> Outcome<()> {
    let size = worker.files(picked.fileset).table.size(picked.file);
    if size == 0 {
        return Ok(());
    }
    if let Pattern::Random { align_bytes, .. } = transfer.pattern {
        let count = random_blocks(transfer, size);
        let mut first = first_position(worker, index, transfer, picked, count);
        for number in 0..count {
            let (offset, length) = match first.take() {
                Some(position) => place(transfer, size, position),
                None => random_block(worker, index, transfer, picked, size, count, number),
            };
            debug_assert!(offset.is_multiple_of(align_bytes.max(1)));
            each(worker, offset, length)?;
        }
        return Ok(());
    }
    let extent = extent_bytes(transfer, size);
    let block = block_bytes(transfer, size);
    let (start, end) = match transfer.pattern {
        Pattern::FromRandom { align_bytes } => {
            let align = align_bytes.max(1);
            let start = worker.random.below((size - extent) / align + 1) * align;
            (start, start + extent)
        }
        Pattern::Cursor { shared } => {
            let units = positions(transfer, size);
            let unit = picked.position.unwrap_or_else(|| next_unit(worker, index, shared)) % units.max(1);
            let whole = if transfer.extent == Extent::Whole { size } else { extent_of(transfer) };
            (unit * whole, size.min((unit + 1).saturating_mul(whole)))
        }
        Pattern::Skip { skip_bytes } => return skipping(worker, size, extent, block, skip_bytes, each),
        Pattern::FromStart | Pattern::Random { .. } => (0, extent),
    };
    let mut offset = start;
    while offset < end {
        let length = block.min(end - offset);
        each(worker, offset, length as usize)?;
        offset += length;
    }
    Ok(())
}

fn extent_of(transfer: &Transfer) -> u64 {
    match transfer.extent {
        Extent::Whole => transfer.block_bytes,
        Extent::Bytes(bytes) => bytes.max(1),
    }
}

/// A block, then a gap, until the extent is moved or the file ends.
fn skipping<'a, E: Io>(
    worker: &mut Worker<'a, E>,
    size: u64,
    extent: u64,
    block: u64,
    skip: u64,
    mut each: impl FnMut(&mut Worker<'a, E>, u64, usize) -> Outcome<()>,
) -> Outcome<()> {
    let (mut offset, mut left) = (0u64, extent);
    while left > 0 && offset < size {
        let length = block.min(left).min(size - offset);
        each(worker, offset, length as usize)?;
        left -= length;
        offset = offset.saturating_add(length).saturating_add(skip);
    }
    Ok(())
}

/// Whole blocks of one operation that draws each by itself; one when the extent is smaller than a block.
#[inline(always)]
fn random_blocks(transfer: &Transfer, size: u64) -> u64 {
    match transfer.extent {
        Extent::Bytes(bytes) if bytes < transfer.block_bytes.saturating_mul(2) => 1,
        _ => (extent_bytes(transfer, size) / transfer.block_bytes.max(1)).max(1),
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
    let by_space = matches!(
        action.choice,
        fstone_model::workload::FileChoice::Concatenated | fstone_model::workload::FileChoice::Partitioned
    );
    (by_space && (count == 1 || !matches!(transfer.pattern, Pattern::Cursor { .. }))).then_some(position)
}

/// Offset and length of a position.
#[inline(always)]
fn place(transfer: &Transfer, size: u64, position: u64) -> (u64, usize) {
    let align = match transfer.pattern {
        Pattern::Random { align_bytes, .. } => align_bytes.max(1),
        _ => 1,
    };
    let offset = (position * align).min(size - 1);
    (offset, block_bytes(transfer, size).min(size - offset) as usize)
}

/// A block drawn within the file.
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
    let turn = if is_permutation(&worker.group.actions[index]) {
        match picked.position {
            // Going through the files in turn, the round says how many blocks each has given.
            Some(round) => round * count + number,
            None => worker.turns(index, picked, 1),
        }
    } else {
        0
    };
    let position = worker.states[index].drawer.draw(space, &mut worker.random, || turn);
    place(transfer, size, position)
}

/// The next unit of a walk through drawn files.
fn next_unit<E: Io>(worker: &mut Worker<'_, E>, index: usize, shared: bool) -> u64 {
    let group = worker.group;
    if shared {
        return group.actions[index].cursor.0.fetch_add(1, Ordering::Relaxed);
    }
    let cursor = &mut worker.states[index].cursor;
    *cursor += 1;
    *cursor - 1
}

/// Reads a block whole; gives the number of calls.
#[inline(always)]
fn read_all<E: Io>(worker: &mut Worker<'_, E>, picked: &Picked, fd: Fd, length: usize, offset: u64) -> Outcome<u64> {
    touch(worker, picked, offset);
    let mut calls = 0;
    let mut have = 0;
    while have < length {
        // Direct reads are asked for in full pages; the file's end cuts them short.
        let until = if worker.load.io.direct { length.next_multiple_of(DIRECT_SOMETIMES as usize) } else { length };
        let got = worker.call(Call::Read, |worker| {
            worker.io.read(fd, &mut worker.buffer.bytes_mut()[have..until], offset + have as u64)
        })?;
        calls += 1;
        if got == 0 {
            // The file is shorter than it was when it was written.
            return Err(Halt::fault(Call::Read, Errno::NODATA));
        }
        have += got;
    }
    verify(worker, picked, offset, length)?;
    Ok(calls)
}

/// Checks stamps, when data is stamped.
#[inline(always)]
fn verify<E: Io>(worker: &mut Worker<'_, E>, picked: &Picked, offset: u64, length: usize) -> Outcome<()> {
    if !worker.load.stamped || !E::CAPABILITIES.real {
        return Ok(());
    }
    check_stamps(worker, picked, offset, length)
}

#[cold]
fn check_stamps<E: Io>(worker: &mut Worker<'_, E>, picked: &Picked, offset: u64, length: usize) -> Outcome<()> {
    let unit = stamp::UNIT as u64;
    // Only whole units can be checked.
    let skip = (offset.next_multiple_of(unit) - offset) as usize;
    let file = worker.destination(picked, 0).file;
    let data = worker.buffer.bytes().get(skip..length).unwrap_or_default();
    match stamp::check(data, file, offset + skip as u64) {
        Ok(()) => {}
        Err((_, stamp::Mismatch::Zeros)) if !worker.files(picked.fileset).spec.fill => {}
        Err(_) => return Err(Halt::fault(Call::Verify, Errno::BADMSG)),
    }
    worker.load.verified_bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
    Ok(())
}

/// Writes a block whole; gives the number of calls. What direct I/O cannot carry, the end of an odd-sized file, goes
/// through the page cache.
#[inline]
pub(super) fn write_all<E: Io>(
    worker: &mut Worker<'_, E>,
    picked: &Picked,
    fd: Fd,
    length: usize,
    destination: Destination,
) -> Outcome<u64> {
    let offset = destination.offset;
    touch(worker, picked, offset);
    worker.source.prepare(length, destination);
    let direct = worker.load.io.direct && E::CAPABILITIES.real;
    let carried = if !direct || (offset | length as u64).is_multiple_of(DIRECT_SOMETIMES) {
        length
    } else if offset.is_multiple_of(DIRECT_ALWAYS) {
        length - length % DIRECT_ALWAYS as usize
    } else {
        0
    };
    let (mut calls, mut have) = (0, 0);
    while have < carried {
        let written = worker.call(Call::Write, |worker| {
            worker.io.write(fd, &worker.source.block()[have..carried], offset + have as u64)
        });
        match written {
            Ok(0) => return Err(Halt::fault(Call::Write, Errno::NOSPC)),
            Ok(written) => have += written,
            // A device with larger sectors than the block.
            Err(Halt::Fault(fault))
                if direct && fault.errno == Errno::INVAL && !(offset | length as u64).is_multiple_of(DIRECT_ALWAYS) =>
            {
                return Ok(calls + write_indirectly(worker, picked, have, offset)?);
            }
            Err(halt) => return Err(halt),
        }
        calls += 1;
    }
    if carried < length {
        calls += write_indirectly(worker, picked, carried, offset)?;
    }
    Ok(calls)
}

/// Writes the prepared block from `have` on through the page cache, by a second descriptor.
#[cold]
fn write_indirectly<E: Io>(worker: &mut Worker<'_, E>, picked: &Picked, have: usize, offset: u64) -> Outcome<u64> {
    worker.load.indirect.fetch_add(1, Ordering::Relaxed);
    worker.name(picked);
    let directory = worker.files(picked.fileset).directory();
    let flags = (worker.data_flags(OFlags::WRONLY)) - OFlags::DIRECT;
    let fd = worker.call(Call::Open, |worker| worker.io.open(directory, worker.path.as_c(), flags))?;
    let mut have = have;
    let mut calls = 0;
    let length = worker.source.block().len();
    let outcome = loop {
        if have == length {
            break Ok(calls);
        }
        let written = worker
            .call(Call::Write, |worker| worker.io.write(fd, &worker.source.block()[have..], offset + have as u64));
        match written {
            Ok(0) => break Err(Halt::fault(Call::Write, Errno::NOSPC)),
            Ok(written) => have += written,
            Err(halt) => break Err(halt),
        }
        calls += 1;
    };
    worker.close_after(fd, outcome)
}

/// Notes the block for the audit of distinct ones.
#[inline(always)]
pub(super) fn touch<E: Io>(worker: &Worker<'_, E>, picked: &Picked, offset: u64) {
    if worker.load.measured {
        worker.load.audit.block(picked.fileset, picked.file, offset);
    }
}
