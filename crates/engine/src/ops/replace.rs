//! Replacing files, as editors save them: nobody who opens a file by its name finds half of a new one.

use super::blocks::write_all;
use crate::fileset::build::stamp_name;
use crate::io::{Fd, Io};
use crate::measure::Call;
use crate::worker::{Attempt, Picked, Worker};
use rustix::fs::OFlags;

/// Writes a new file beside the chosen one, as large as that is, and renames it over it. With `fsync` the new one is synced
/// before it gets the name.
pub(super) fn replace<E: Io>(worker: &mut Worker<'_, E>, index: usize, block_bytes: u64, fsync: bool) -> Attempt<()> {
    worker.with_file(index, |worker, picked| {
        let files = worker.files(picked.fileset);
        // Until it is whole, the new one goes by the file's other name, and so does whoever opens what is being written.
        files.table.rename(picked.file);
        let written = write_anew(worker, index, picked, block_bytes, fsync);
        worker.name(picked);
        std::mem::swap(&mut worker.path, &mut worker.other_path);
        files.table.rename(picked.file);
        worker.name(picked);
        let replaced = written.and_then(|()| {
            worker.call(Call::Rename, |worker| {
                worker.io.rename(files.directory(), worker.other_path.as_c(), files.directory(), worker.path.as_c())
            })
        });
        if replaced.is_err()
            && let Some(ledger) = worker.load.depot.ledger()
        {
            // By its name there is still the old one, whatever was written beside it.
            ledger.unsure(stamp_name(picked.fileset as u32, picked.file), 0, u64::MAX);
        }
        replaced?;
        worker.forget(picked)
    })
}

fn write_anew<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    picked: &Picked,
    block_bytes: u64,
    fsync: bool,
) -> Attempt<()> {
    let files = worker.files(picked.fileset);
    worker.name(picked);
    let flags = worker.data_flags(OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC);
    let fd = worker.call(Call::Create, |worker| worker.io.open(files.directory(), worker.path.as_c(), flags))?;
    if let Some(ledger) = worker.load.depot.ledger() {
        ledger.created(stamp_name(picked.fileset as u32, picked.file));
    }
    let filled = fill(worker, index, picked, fd, block_bytes);
    let durable = filled.and_then(|()| if fsync { worker.make_durable(fd) } else { Ok(()) });
    worker.close_after(fd, durable)
}

fn fill<E: Io>(worker: &mut Worker<'_, E>, index: usize, picked: &Picked, fd: Fd, block_bytes: u64) -> Attempt<()> {
    let size = worker.files(picked.fileset).table.size(picked.file);
    let mut offset = 0;
    while offset < size {
        let block = worker.drawn_block(index).unwrap_or(block_bytes);
        let length = block.min(size - offset);
        write_all(worker, picked, fd, length as usize, worker.destination(picked, offset))?;
        offset += length;
    }
    Ok(())
}
