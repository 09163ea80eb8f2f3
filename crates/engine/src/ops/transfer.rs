//! Moving data: read, write, append, and the same through memory mappings.

use super::blocks::{DIRECT_SOMETIMES, asked, read_on, touch, write_all};
use super::handles;
use super::queued::{Flight, OddWrite, Queued};
use crate::data::stamp;
use crate::io::{Direction, Fd, Io, mapping};
use crate::measure::{Call, Done};
use crate::worker::{Attempt, Blocks, Incomplete, Picked, Target, Worker};
use fstone_model::workload::{Extent, OpenSync, Transfer};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::sync::atomic::Ordering;

//
// In halves, and not in a closure, so that all of it becomes one piece with the loop: passing results through memory
// costs more than the operation's own work.
#[inline(always)]
pub(super) fn read<E: Io>(worker: &mut Worker<'_, E>, index: usize, transfer: &Transfer) -> Attempt<()> {
    match worker.aimed(index) {
        Some(target) if !transfer.fsync => {
            worker.begun_bytes = target.length as u64;
            worker.done = read_target(worker, target)?.unwrap_or(Done::one_read(target.length));
            Ok(())
        }
        _ => read_generally(worker, index, transfer),
    }
}

/// Reads one block, nearly always by one call. Gives what it did, if it took more.
#[inline(always)]
pub(super) fn read_target<E: Io>(worker: &mut Worker<'_, E>, target: Target) -> Attempt<Option<Done>> {
    let Target { picked, fd, offset, length } = target;
    match worker.io.read(fd, &mut worker.buffer.bytes_mut()[..length], offset) {
        Ok(got) if got == length => {
            verify(worker, &picked, offset, length)?;
            Ok(None)
        }
        Ok(0) => Err(Incomplete::fault(Call::Read, Errno::NODATA)),
        Err(errno) => Err(Incomplete::fault(Call::Read, errno)),
        Ok(got) => {
            worker.done = Done { calls: 1, ..Done::default() };
            read_all(worker, &picked, fd, got, length, offset)?;
            Ok(Some(worker.done))
        }
    }
}

#[inline(never)]
fn read_generally<E: Io>(worker: &mut Worker<'_, E>, index: usize, transfer: &Transfer) -> Attempt<()> {
    if let Some(handle) = worker.group.actions[index].handle.filter(|_| handles::goes_on(transfer)) {
        return handles::read(worker, index, handle, transfer);
    }
    let (picked, fd) = worker.open_chosen(index, OFlags::RDONLY)?;
    let read = read_blocks(worker, index, transfer, &picked, fd);
    let attempt = if read.is_ok() { finish(worker, transfer, fd) } else { read };
    worker.close_chosen(index, &picked, fd, attempt)
}

#[inline(always)]
fn read_blocks<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    transfer: &Transfer,
    picked: &Picked,
    fd: Fd,
) -> Attempt<()> {
    let (base, size) = worker.span(picked)?;
    let mut blocks = Blocks::new(worker, index, transfer, picked, size);
    while let Some((offset, length)) = blocks.next(worker, index, transfer, picked, size) {
        let offset = base + offset;
        worker.begun_bytes += length as u64;
        touch(worker, picked, offset);
        read_all(worker, picked, fd, 0, length, offset)?;
    }
    Ok(())
}

#[inline]
pub(super) fn write<E: Io>(worker: &mut Worker<'_, E>, index: usize, transfer: &Transfer) -> Attempt<()> {
    if let Some(handle) = worker.group.actions[index].handle.filter(|_| handles::goes_on(transfer)) {
        return handles::write(worker, index, handle, transfer);
    }
    worker.with_open_file(index, OFlags::WRONLY, |worker, picked, fd| {
        each_block(worker, index, transfer, picked, |worker, offset, length| {
            let destination = worker.destination(picked, offset);
            write_all(worker, picked, fd, length, destination)
        })?;
        finish(worker, transfer, fd)
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
) -> Attempt<Queued> {
    if let Some(target) = worker.aimed(index) {
        worker.begun_bytes = target.length as u64;
        return push(worker, slot, direction, &target, target.length);
    }
    let picked = worker.choose(index)?;
    // Others are chosen before it is done.
    worker.previous = Some((picked.fileset, picked.file));
    let queued = queue_block(worker, index, transfer, slot, direction, &picked);
    if !matches!(queued, Ok(Queued::Pushed(_) | Queued::Odd(_))) {
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
) -> Attempt<Queued> {
    if worker.load.measured {
        worker.files(picked.fileset).table.touch(picked.file);
    }
    let fd = worker.kept(picked)?;
    let mut queued = Queued::Done;
    each_block(worker, index, transfer, picked, |worker, offset, length| {
        let odd = worker.group.io.direct && !(offset | length as u64).is_multiple_of(DIRECT_SOMETIMES);
        let destination = worker.destination(picked, offset);
        if odd && direction == Direction::Write {
            queued = Queued::Odd(OddWrite { picked: *picked, fd, length, destination });
            return Ok(());
        }
        touch(worker, picked, offset);
        let asked = asked(worker.group.io.direct, offset, length);
        queued = push(worker, slot, direction, &Target { picked: *picked, fd, offset, length }, asked)?;
        Ok(())
    })?;
    Ok(queued)
}

/// Does what was left for when the queue is empty.
pub(crate) fn write_odd<E: Io>(worker: &mut Worker<'_, E>, odd: OddWrite) -> Attempt<()> {
    worker.done = Done::default();
    let attempt = write_all(worker, &odd.picked, odd.fd, odd.length, odd.destination);
    worker.release(&odd.picked);
    attempt
}

/// Puts a block into the queue; of a read, `asked` bytes are asked for.
#[inline(always)]
pub(super) fn push<E: Io>(
    worker: &mut Worker<'_, E>,
    slot: u32,
    direction: Direction,
    target: &Target,
    asked: usize,
) -> Attempt<Queued> {
    let Target { picked, fd, offset, length } = *target;
    if direction == Direction::Write {
        let destination = worker.destination(&picked, offset);
        worker.source.prepare(length, destination);
        worker.io.slot(slot)[..length].copy_from_slice(worker.source.block());
    }
    let call = if direction == Direction::Read { Call::Read } else { Call::Write };
    worker.io.push(slot, direction, fd, asked, offset).map_err(|errno| Incomplete::fault(call, errno))?;
    Ok(Queued::Pushed(Flight { picked, call, length }))
}

pub(super) fn append<E: Io>(worker: &mut Worker<'_, E>, index: usize, transfer: &Transfer) -> Attempt<()> {
    if let Some(handle) = worker.group.actions[index].handle {
        return handles::append(worker, index, handle, transfer);
    }
    worker.with_open_file(index, OFlags::WRONLY | OFlags::APPEND, |worker, picked, fd| {
        let first = worker.drawn_block(index);
        let total = match transfer.extent {
            Extent::Whole => first.unwrap_or(transfer.block_bytes),
            Extent::Bytes(bytes) if bytes == transfer.block_bytes => first.unwrap_or(bytes),
            Extent::Bytes(bytes) => bytes,
        };
        let mut block = first.unwrap_or(transfer.block_bytes);
        let table = &worker.files(picked.fileset).table;
        let start = table.size(picked.file);
        let mut written = 0;
        let mut attempt = Ok(());
        while written < total && attempt.is_ok() {
            let length = block.max(1).min(total - written);
            let destination = worker.destination(picked, start + written);
            worker.begun_bytes += length;
            attempt = write_all(worker, picked, fd, length as usize, destination);
            written += if attempt.is_ok() { length } else { 0 };
            block = worker.drawn_block(index).unwrap_or(transfer.block_bytes);
        }
        // Only now may others take the new part for there.
        table.grow(picked.file, written);
        attempt?;
        finish(worker, transfer, fd)
    })
}

pub(super) fn mapped_read<E: Io>(worker: &mut Worker<'_, E>, index: usize, transfer: &Transfer) -> Attempt<()> {
    worker.with_open_file(index, OFlags::RDONLY, |worker, picked, fd| {
        let size = worker.files(picked.fileset).table.size(picked.file);
        let map = map(worker, fd, size, false)?;
        let attempt = each_block(worker, index, transfer, picked, |worker, offset, length| {
            touch(worker, picked, offset);
            worker.call(Call::Read, |worker| map.read(&mut worker.buffer.bytes_mut()[..length], offset))?;
            worker.done.calls += 1;
            worker.done.read_bytes += length as u64;
            verify(worker, picked, offset, length)
        });
        worker.call(Call::Munmap, |_| map.unmap())?;
        attempt?;
        finish(worker, transfer, fd)
    })
}

pub(super) fn mapped_write<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    transfer: &Transfer,
    msync: bool,
) -> Attempt<()> {
    worker.with_open_file(index, OFlags::RDWR, |worker, picked, fd| {
        let size = worker.files(picked.fileset).table.size(picked.file);
        let begun = worker.io.mapping();
        let map = map(worker, fd, size, true)?;
        let attempt = each_block(worker, index, transfer, picked, |worker, offset, length| {
            let destination = worker.destination(picked, offset);
            touch(worker, picked, offset);
            worker.source.prepare(length, destination);
            let written = worker.call(Call::Write, |worker| map.write(worker.source.block(), offset));
            worker.source.settle(length, destination, written.is_ok());
            written?;
            // The flag of an open file has no bearing on its mapping.
            let sync = worker.group.io.sync;
            if msync || sync == OpenSync::Dsync {
                worker.timed_call(Call::Msync, |_| map.msync(offset, length))?;
            }
            if sync == OpenSync::Sync {
                worker.timed_call(Call::Fsync, |worker| worker.io.fsync(fd))?;
            }
            worker.done.calls += 1;
            worker.done.written_bytes += length as u64;
            Ok(())
        });
        let unmapped = worker.call(Call::Munmap, |_| map.unmap());
        worker.io.mapped(fd, begun, size);
        unmapped?;
        attempt?;
        finish(worker, transfer, fd)
    })
}

fn map<E: Io>(worker: &mut Worker<'_, E>, fd: Fd, size: u64, write: bool) -> Attempt<mapping::Mapping> {
    worker.call(Call::Mmap, |_| mapping::Mapping::new(fd, size, write, E::REAL))
}

/// The fsync of the transfer, if it has one.
#[inline(always)]
fn finish<E: Io>(worker: &mut Worker<'_, E>, transfer: &Transfer, fd: Fd) -> Attempt<()> {
    if transfer.fsync { worker.make_durable(fd) } else { Ok(()) }
}

#[inline(always)]
pub(super) fn each_block<'a, E: Io>(
    worker: &mut Worker<'a, E>,
    index: usize,
    transfer: &Transfer,
    picked: &Picked,
    mut each: impl FnMut(&mut Worker<'a, E>, u64, usize) -> Attempt<()>,
) -> Attempt<()> {
    let (base, size) = worker.span(picked)?;
    let mut blocks = Blocks::new(worker, index, transfer, picked, size);
    while let Some((offset, length)) = blocks.next(worker, index, transfer, picked, size) {
        worker.begun_bytes += length as u64;
        each(worker, base + offset, length)?;
    }
    Ok(())
}

/// Reads a block whole, of which there are `have` bytes already.
#[inline(never)]
fn read_all<E: Io>(
    worker: &mut Worker<'_, E>,
    picked: &Picked,
    fd: Fd,
    have: usize,
    length: usize,
    offset: u64,
) -> Attempt<()> {
    let mut have = have;
    let mut until = asked(worker.group.io.direct, offset, length);
    while have < length {
        let got = read_on(worker, fd, have, &mut until, length, offset)?;
        worker.done.calls += 1;
        if got == 0 {
            // The file is shorter than it was when it was written.
            return Err(Incomplete::fault(Call::Read, Errno::NODATA));
        }
        have += got;
    }
    worker.done.read_bytes += length as u64;
    verify(worker, picked, offset, length)
}

#[inline(always)]
fn verify<E: Io>(worker: &mut Worker<'_, E>, picked: &Picked, offset: u64, length: usize) -> Attempt<()> {
    if !worker.load.stamped || !E::REAL {
        return Ok(());
    }
    check_stamps(worker, picked, offset, length)
}

#[cold]
fn check_stamps<E: Io>(worker: &mut Worker<'_, E>, picked: &Picked, offset: u64, length: usize) -> Attempt<()> {
    let unit = stamp::UNIT as u64;
    // Only whole units can be checked.
    let skip = (offset.next_multiple_of(unit) - offset) as usize;
    let file = worker.destination(picked, 0).file;
    let data = worker.buffer.bytes().get(skip..length).unwrap_or_default();
    let Some(ledger) = worker.load.depot.ledger() else { return Ok(()) };
    match ledger.check(data, file, offset + skip as u64) {
        Ok(()) => {}
        Err((_, stamp::Mismatch::Zeros)) if !worker.files(picked.fileset).spec.fill => {}
        Err((at, _)) => {
            worker.damaged_at = offset + (skip + at) as u64;
            return Err(Incomplete::fault(Call::Verify, Errno::BADMSG));
        }
    }
    worker.load.verified_bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
    Ok(())
}
