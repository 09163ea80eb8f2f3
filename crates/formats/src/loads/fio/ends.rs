//! When a clone of a job ends, how much a pass over its files is, and which of its passes are phases of their own.

use super::{
    actions::tour,
    files::Place,
    job::{Amount, Blocks, Job, Offsets},
};
use fstone_model::workload::Stop;

/// Bytes of a pass, where a job goes over its files more than once. In fio each loop opens files anew, and so does a job that has met all
/// blocks before it ends: one that ends by time, or moves more than its files hold. Without a map it never knows that it has.
pub(super) fn pass(job: &Job, place: &Place) -> Option<u64> {
    let whole = place.bytes();
    let bytes = bytes_of_a_loop(job, place);
    if job.time_based || (bytes > whole && has_map(job)) {
        return if has_map(job) { met_all(job, place, whole) } else { None };
    }
    (job.loops > 1).then_some(bytes)
}

/// Whether a job knows which blocks of a file it has met, and so when it has met all.
fn has_map(job: &Job) -> bool {
    !job.direction.random || (job.distribution == Offsets::Uniform && !job.repeats_blocks)
}

/// Whether a job is done when all blocks of its files were met, how large these are being drawn when they are made.
fn ends_with_files(job: &Job, place: &Place) -> bool {
    place.file_bytes.is_none() && job.io_size.is_none() && job.loops == 1 && has_map(job) && tour(job, place).is_some()
}

/// After how many bytes a job opens its files anew by itself, having met all blocks. One that leaves gaps wraps around at the file's end
/// and goes on, unless its last block ends there.
fn met_all(job: &Job, place: &Place, whole: u64) -> Option<u64> {
    let Ok(gap @ 1..) = u64::try_from(job.direction.gap) else { return Some(whole) };
    let block = job.blocks[usize::from(!job.direction.reads)].largest();
    let (begun, end) = begun_in(block, gap, place.length)?;
    (end == place.length).then_some(begun * block)
}

/// What a job moves in each of its loops. An `io_size` may be more than its files hold; a `size` is not.
fn bytes_of_a_loop(job: &Job, place: &Place) -> u64 {
    let whole = place.bytes();
    let most = if ends_with_files(job, place) { u64::MAX } else { whole };
    let size = job.size.filter(|_| job.file_size.is_some()).map(|size: Amount| size.of(whole).min(most));
    let bytes = job.io_size.map(|amount| amount.of(whole)).or(size).unwrap_or(whole);
    if bytes == 0 { whole } else { bytes }
}

/// Whether a job goes over all blocks of its files again and again because its `io_size` is more than they hold. One without a map does not
/// know when it has met all, one with gaps goes on, and a mix of two positions comes to the end with either.
fn goes_around(job: &Job, place: &Place) -> bool {
    let whole = place.bytes();
    let two_positions = job.direction.reads && job.direction.writes && !job.direction.random;
    job.io_size.is_some_and(|amount| amount.of(whole) > whole)
        && has_map(job)
        && job.direction.gap == 0
        && !two_positions
}

/// How many passes of so many bytes each such a job makes: one for each loop, and more until what is left of its `io_size` is less than a block.
fn passes(job: &Job, place: &Place, bytes: u64) -> u64 {
    let used = [job.direction.reads, job.direction.writes];
    let blocks = job.blocks.iter().zip(used).filter(|(_, used)| *used).map(|(blocks, _)| blocks.largest());
    let left = bytes_of_a_loop(job, place).saturating_sub(blocks.max().unwrap_or(1));
    (left / bytes.max(1) + 1).max(job.loops)
}

/// What a job moves in all its loops.
fn bytes_in_all(job: &Job, place: &Place) -> u64 {
    if job.loops > 1 && goes_around(job, place) {
        let whole = place.bytes();
        return passes(job, place, whole).saturating_mul(whole);
    }
    bytes_of_a_loop(job, place).saturating_mul(job.loops)
}

/// Whether a job reads back what it wrote.
pub(super) fn reads_back(job: &Job) -> bool {
    job.verify && job.do_verify && job.direction.writes && !job.engine.of_files()
}

/// How many passes of a job are phases of their own, and what it does in each: those that are read back one by one, and loops over files whose
/// sizes are drawn, since nobody knows before how much a loop is. One that stands for all where that would be too many phases, or where an
/// end that is counted over all loops can come in any of them.
pub(super) fn apart(job: &Job, place: &Place) -> (u64, Job) {
    const MOST_PHASES: u64 = 100;
    let counted = job.time_based || job.runtime.is_some() || job.number_ios.is_some();
    let mut once = Job { loops: 1, ..job.clone() };
    let mut count = job.loops.max(1);
    if reads_back(job) {
        if goes_around(job, place) {
            // In fio what is read back counts towards the io_size.
            let whole = place.bytes();
            let [reads, writes] = job.read_and_write_weights().map(u64::from);
            let read_back = (u128::from(whole) * u128::from(writes) / u128::from((reads + writes).max(1))) as u64;
            count = passes(job, place, whole.saturating_add(read_back));
            once.size = job.size.filter(|_| job.file_size.is_none());
            once.io_size = None;
        }
    } else if job.exit_all || job.latency_target.is_some() || !ends_with_files(&once, place) {
        count = 1;
        once = job.clone();
    }
    if counted || count > MOST_PHASES { (1, job.clone()) } else { (count, once) }
}

/// More than any load does; what files hold has a sign.
const MOST: u64 = i64::MAX as u64;

/// When a clone of a job ends.
pub(super) fn stop(job: &Job, place: &Place) -> Stop {
    let time = job.runtime;
    if job.time_based {
        return Stop { time, ..Stop::default() };
    }
    if job.engine.of_files() {
        return Stop { time, operations: Some(place.files.saturating_mul(job.loops).min(MOST)), ..Stop::default() };
    }
    let once_through = ends_with_files(job, place);
    if once_through && job.size.is_none() {
        return Stop { time, operations: job.number_ios, once_through, ..Stop::default() };
    }
    let bytes = bytes_in_all(job, place).min(MOST);
    let sizes: Vec<&Blocks> = [job.direction.reads, job.direction.writes]
        .iter()
        .zip(&job.blocks)
        .filter_map(|(used, blocks)| used.then_some(blocks))
        .collect();
    match sizes.as_slice() {
        [Blocks::Fixed(block), rest @ ..] if rest.iter().all(|other| *other == sizes[0]) => {
            let operations = if job.direction.gap == 0 {
                bytes.div_ceil(*block)
            } else {
                strided(*block, job.direction.gap, place.length, place.offset)
                    .saturating_mul(job.loops)
                    .min(bytes.div_ceil(*block))
                    .max(1)
            };
            let operations = job.number_ios.map_or(operations, |most| most.min(operations));
            Stop { time, operations: Some(operations), once_through, ..Stop::default() }
        }
        _ => Stop { time, bytes: Some(bytes), operations: job.number_ios, once_through, ..Stop::default() },
    }
}

/// How many blocks with a gap behind each begin in a file, and where the last of them ends; `None` in an empty file.
fn begun_in(block: u64, gap: u64, length: u64) -> Option<(u64, u64)> {
    let stride = block.saturating_add(gap);
    let begun = length.div_ceil(stride);
    Some((begun, begun.checked_sub(1)? * stride + block))
}

/// How many blocks of so many bytes fio moves in a file, from its start on with a gap behind each: it begins anew where the next block would
/// begin behind the file's end, and is done where one would end behind it, or ends with it.
fn strided(block: u64, gap: i64, length: u64, offset: u64) -> u64 {
    let Ok(gap) = u64::try_from(gap) else { return length / block };
    let Some((begun, end)) = begun_in(block, gap, length) else { return 0 };
    match end.cmp(&length) {
        std::cmp::Ordering::Less if offset == 0 => length / block,
        std::cmp::Ordering::Less | std::cmp::Ordering::Equal => begun,
        std::cmp::Ordering::Greater => begun - 1,
    }
}
