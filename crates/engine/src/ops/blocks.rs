//! Writing one block whole, whatever it takes.

use crate::data::Destination;
use crate::io::{Fd, Io};
use crate::measure::Call;
use crate::worker::{Attempt, Incomplete, Picked, Worker};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::sync::atomic::Ordering;

/// What every device takes for direct I/O, and what some take less of.
pub(super) const DIRECT_ALWAYS: u64 = 4096;
pub(super) const DIRECT_SOMETIMES: u64 = 512;

/// How much is asked for to read a block directly: all of it, or if its place is in no device's units, full pages; the file's end cuts them short.
pub(super) fn asked(direct: bool, offset: u64, length: usize) -> usize {
    let fits = !direct || (offset | length as u64).is_multiple_of(DIRECT_SOMETIMES);
    if fits { length } else { length.next_multiple_of(DIRECT_ALWAYS as usize) }
}

/// Reads a block of which there are `have` bytes, as far as one call does. A device whose sectors are larger than what fits is asked for full
/// pages, now and the next time.
#[inline]
pub(super) fn read_on<E: Io>(
    worker: &mut Worker<'_, E>,
    fd: Fd,
    have: usize,
    until: &mut usize,
    length: usize,
    offset: u64,
) -> Attempt<usize> {
    let pages = if worker.group.io.direct { length.next_multiple_of(DIRECT_ALWAYS as usize) } else { length };
    loop {
        let read = worker.call(Call::Read, |worker| {
            worker.io.read(fd, &mut worker.buffer.bytes_mut()[have..*until], offset + have as u64)
        });
        match read {
            Err(Incomplete::Fault(fault)) if *until < pages && fault.errno() == Errno::INVAL => *until = pages,
            read => return read,
        }
    }
}

/// Writes a block whole. What direct I/O cannot carry, the end of an odd-sized file, goes
/// through the page cache.
#[inline]
pub(super) fn write_all<E: Io>(
    worker: &mut Worker<'_, E>,
    picked: &Picked,
    fd: Fd,
    length: usize,
    destination: Destination,
) -> Attempt<()> {
    touch(worker, picked, destination.offset);
    worker.source.prepare(length, destination);
    let attempt = write_prepared(worker, picked, fd, length, destination.offset);
    if worker.load.stamped {
        worker.source.settle(length, destination, attempt.is_ok());
    }
    attempt
}

#[inline]
fn write_prepared<E: Io>(
    worker: &mut Worker<'_, E>,
    picked: &Picked,
    fd: Fd,
    length: usize,
    offset: u64,
) -> Attempt<()> {
    let direct = worker.group.io.direct && E::REAL;
    let carried = if !direct || (offset | length as u64).is_multiple_of(DIRECT_SOMETIMES) {
        length
    } else if offset.is_multiple_of(DIRECT_ALWAYS) {
        length - length % DIRECT_ALWAYS as usize
    } else {
        0
    };
    let mut have = 0;
    while have < carried {
        let written = worker.call(Call::Write, |worker| {
            worker.io.write(fd, &worker.source.block()[have..carried], offset + have as u64)
        });
        match written {
            Ok(0) => return Err(Incomplete::fault(Call::Write, Errno::NOSPC)),
            Ok(written) => have += written,
            // A device with larger sectors than the block.
            Err(Incomplete::Fault(fault))
                if direct
                    && fault.errno() == Errno::INVAL
                    && !(offset | length as u64).is_multiple_of(DIRECT_ALWAYS) =>
            {
                worker.done.written_bytes += length as u64;
                return write_indirectly(worker, picked, have, offset);
            }
            Err(incomplete) => return Err(incomplete),
        }
        worker.done.calls += 1;
    }
    if carried < length {
        write_indirectly(worker, picked, carried, offset)?;
    }
    worker.done.written_bytes += length as u64;
    Ok(())
}

/// Writes the prepared block from `have` on through the page cache, by a second descriptor.
#[cold]
fn write_indirectly<E: Io>(worker: &mut Worker<'_, E>, picked: &Picked, have: usize, offset: u64) -> Attempt<()> {
    worker.load.indirect.fetch_add(1, Ordering::Relaxed);
    worker.name(picked);
    let directory = worker.files(picked.fileset).directory();
    let flags = (worker.data_flags(OFlags::WRONLY)) - OFlags::DIRECT;
    let fd = worker.call(Call::Open, |worker| worker.io.open(directory, worker.path.as_c(), flags))?;
    let mut have = have;
    let length = worker.source.block().len();
    let attempt = loop {
        if have == length {
            break Ok(());
        }
        let written = worker
            .call(Call::Write, |worker| worker.io.write(fd, &worker.source.block()[have..], offset + have as u64));
        match written {
            Ok(0) => break Err(Incomplete::fault(Call::Write, Errno::NOSPC)),
            Ok(written) => have += written,
            Err(incomplete) => break Err(incomplete),
        }
        worker.done.calls += 1;
    };
    worker.close_after(fd, attempt)
}

#[inline(always)]
pub(super) fn touch<E: Io>(worker: &Worker<'_, E>, picked: &Picked, offset: u64) {
    if worker.load.measured {
        worker.load.audit.block(picked.fileset, picked.file, offset);
    }
}
