//! What the load does to files: each operation small, in one place, and of one shape.
//!
//! An operation is a function of the worker and the action's index: it chooses a file, makes its calls through
//! [`Worker::call`], and adds what it moved to [`Worker::done`]; it gives back why it was not completed, if so. It keeps
//! no state of its own.

mod allocate;
mod attributes;
mod blocks;
mod copy;
mod create;
mod directories;
mod handles;
mod list;
mod metadata;
mod names;
mod new_file;
mod queued;
mod replace;
mod sync;
mod transfer;

pub(crate) use queued::{Flight, OddWrite, Queued};
pub(crate) use transfer::write_odd;

use crate::io::{Direction, Io};
use crate::measure::Done;
use crate::worker::{Attempt, Worker};
use fstone_model::workload::Operation;

#[inline(always)]
pub(crate) fn perform<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    let group = worker.group;
    (worker.done, worker.begun_bytes) = (Done::default(), 0);
    match &group.actions[index].operation {
        Operation::Create { block_bytes, fsync } => create::create(worker, index, *block_bytes, *fsync),
        Operation::Read(transfer) => transfer::read(worker, index, transfer),
        Operation::Write(transfer) => transfer::write(worker, index, transfer),
        Operation::Append(transfer) => transfer::append(worker, index, transfer),
        Operation::MmapRead(transfer) => transfer::mapped_read(worker, index, transfer),
        Operation::MmapWrite { transfer, msync } => transfer::mapped_write(worker, index, transfer, *msync),
        Operation::Fill { block_bytes, like } => handles::fill(worker, index, *block_bytes, *like),
        Operation::Open => handles::open(worker, index),
        Operation::Close => handles::close(worker, index),
        Operation::OpenClose => attributes::open_close(worker, index),
        Operation::Fsync => sync::fsync(worker, index),
        Operation::Fdatasync => sync::fdatasync(worker, index),
        Operation::FsyncDirectory => sync::fsync_directory(worker, index),
        Operation::Syncfs => sync::syncfs(worker, index),
        Operation::Truncate { size_bytes } => allocate::truncate(worker, index, *size_bytes),
        Operation::Fallocate { size_bytes, punch } => allocate::fallocate(worker, index, *size_bytes, *punch),
        Operation::Trim(transfer) => allocate::trim(worker, index, transfer),
        Operation::Unlink => names::unlink(worker, index),
        Operation::Rename => names::rename(worker, index),
        Operation::Move { to } => names::relocate(worker, index, *to as usize),
        Operation::Replace { block_bytes, fsync } => replace::replace(worker, index, *block_bytes, *fsync),
        Operation::Link => names::link(worker, index),
        Operation::Symlink => names::symlink(worker, index),
        Operation::Mkdir => directories::mkdir(worker, index),
        Operation::Rmdir => directories::rmdir(worker, index),
        Operation::StatDirectory => directories::stat(worker, index),
        Operation::RenameDirectory => directories::rename(worker, index),
        Operation::Metadata => metadata::metadata(worker, index),
        Operation::Readdir => list::readdir(worker, index),
        Operation::Walk => list::walk(worker, index),
        Operation::Stat => attributes::stat(worker, index),
        Operation::Chmod => attributes::chmod(worker, index),
        Operation::Utimens => attributes::utimens(worker, index),
        Operation::Setxattr { value_bytes } => attributes::setxattr(worker, index, *value_bytes),
        Operation::Getxattr => attributes::getxattr(worker, index),
        Operation::CopyFileRange => copy::copy_file_range(worker, index),
        Operation::Reflink => copy::reflink(worker, index),
    }
}

/// Whether an action is a read that is aimed, and so most of the time nothing but one read.
pub(crate) fn is_aimed_read<E: Io>(worker: &Worker<'_, E>, index: usize) -> bool {
    let Operation::Read(transfer) = &worker.group.actions[index].operation else { return false };
    !transfer.fsync && worker.states[index].aim.is_some()
}

/// Performs an action that [`is_aimed_read`]; gives what it did, unless that was what was expected of it.
#[inline(always)]
pub(crate) fn aimed_read<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<Option<Done>> {
    match worker.aimed(index) {
        Some(target) => transfer::read_target(worker, target),
        None => perform_apart(worker, index).map(|()| Some(worker.done)),
    }
}

#[inline(never)]
fn perform_apart<E: Io>(worker: &mut Worker<'_, E>, index: usize) -> Attempt<()> {
    perform(worker, index)
}

#[inline]
pub(crate) fn queue<E: Io>(worker: &mut Worker<'_, E>, index: usize, slot: u32) -> Attempt<Queued> {
    let group = worker.group;
    (worker.done, worker.begun_bytes) = (Done::default(), 0);
    match &group.actions[index].operation {
        Operation::Read(transfer) => transfer::queue(worker, index, transfer, slot, Direction::Read),
        Operation::Write(transfer) => transfer::queue(worker, index, transfer, slot, Direction::Write),
        _ => perform(worker, index).map(|()| Queued::Done),
    }
}
