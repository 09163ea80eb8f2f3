//! Making files.

use crate::data::Destination;
use crate::fileset::Hold;
use crate::fileset::build::stamp_name;
use crate::io::{Fd, Io};
use crate::measure::Call;
use crate::ops::blocks::write_all;
use crate::ops::new_file::open_new;
use crate::worker::{Attempt, Incomplete, Picked, Worker};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// A new file of a size drawn from the fileset: open, write, optionally fsync, close.
pub(super) fn create<E: Io>(worker: &mut Worker<'_, E>, index: usize, block_bytes: u64, fsync: bool) -> Attempt<()> {
    let group = worker.group;
    if let Some(handle) = group.actions[index].handle {
        return super::handles::create(worker, index, handle);
    }
    let fileset = worker.fileset(&group.actions[index]);
    let sizes = &worker.load.files[fileset].sizes;
    let size = if block_bytes == 0 { 0 } else { sizes.draw(&mut worker.random) };
    make(worker, fileset, OFlags::RDWR, |worker, picked, fd, written| {
        while *written < size {
            let block = worker.drawn_block(index).unwrap_or(block_bytes);
            let length = block.min(size - *written);
            let destination = Destination { file: stamp_name(fileset as u32, picked.file), offset: *written };
            write_all(worker, picked, fd, length as usize, destination)?;
            *written += length;
        }
        if fsync { worker.make_durable(fd) } else { Ok(()) }
    })
}

/// Makes a file and lets `fill` write to it; `fill` keeps its last argument at the size that the file has by then.
pub(super) fn make<E: Io>(
    worker: &mut Worker<'_, E>,
    fileset: usize,
    access: OFlags,
    fill: impl FnOnce(&mut Worker<'_, E>, &Picked, Fd, &mut u64) -> Attempt<()>,
) -> Attempt<()> {
    let files = worker.files(fileset);
    // Going through once, creating ends when every name that the fileset began with is in use.
    let limit = if worker.group.until_walked { crate::fileset::build::names(files.spec.amount) } else { u64::MAX };
    let Some(file) = files.table.begin_create_below(limit) else {
        return Err(if limit == u64::MAX {
            Incomplete::fault(Call::Choose, Errno::NFILE)
        } else {
            Incomplete::Exhausted
        });
    };
    let picked = Picked { fileset, file, hold: Hold::Alone, position: None };
    let fd = open_new(worker, fileset, file, access)?;
    let mut written = 0;
    let attempt = fill(worker, &picked, fd, &mut written);
    let attempt = worker.close_after(fd, attempt);
    // Even a failed one exists, with what was written.
    files.table.finish_create(file, written);
    if worker.load.measured {
        files.table.touch(file);
    }
    worker.previous = Some((fileset, file));
    attempt
}
