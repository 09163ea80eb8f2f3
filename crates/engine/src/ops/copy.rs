//! Copies made by the kernel: copy_file_range and reflink. The copy becomes a file of the set.

use super::create::make;
use crate::io::{Fd, Io};
use crate::measure::Call;
use crate::worker::{Attempt, Incomplete, Picked, Worker};
use rustix::fs::OFlags;
use rustix::io::Errno;

pub(super) fn copy_file_range<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    into_new_file(worker, index, |worker, from, to, size, copied| {
        while *copied < size {
            // The source's own position moves along.
            let got = worker.call(Call::CopyFileRange, |worker| worker.io.copy_file_range(from, to, size - *copied))?;
            if got == 0 {
                return Err(Incomplete::fault(Call::CopyFileRange, Errno::NODATA));
            }
            *copied += got as u64;
            worker.done.calls += 1;
        }
        worker.done.read_bytes = size;
        worker.done.written_bytes = size;
        Ok(())
    })
}

/// Makes a file share the blocks of another (FICLONE).
pub(super) fn reflink<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    into_new_file(worker, index, |worker, from, to, size, copied| {
        worker.call(Call::Reflink, |worker| worker.io.reflink(from, to))?;
        *copied = size;
        worker.done.calls = 1;
        Ok(())
    })
}

/// Opens the chosen file anew (its position must be 0) and makes another one.
fn into_new_file<E: Io>(
    worker: &mut Worker<'_, E>,
    index: usize,
    copy: impl FnOnce(&mut Worker<'_, E>, Fd, Fd, u64, &mut u64) -> Attempt<()>,
) -> Attempt<()> {
    worker.with_file(index, |worker, picked: &Picked| {
        let files = worker.files(picked.fileset);
        let size = files.table.size(picked.file);
        worker.name(picked);
        let flags = worker.data_flags(OFlags::RDONLY);
        let from = worker.call(Call::Open, |worker| worker.io.open(files.directory(), worker.path.as_c(), flags))?;
        let attempt =
            make(worker, picked.fileset, OFlags::WRONLY, |worker, _, to, copied| copy(worker, from, to, size, copied));
        worker.close_after(from, attempt)
    })
}
