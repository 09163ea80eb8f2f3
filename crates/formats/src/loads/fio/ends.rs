//! When a clone of a job ends, how much a pass over its files is, and which of its passes are phases of their own.

use super::{
    actions::tour,
    files::Place,
    job::{Amount, Blocks, Engine, Job, Offsets, Trims},
};
use fstone_model::workload::Stop;

/// Bytes of a pass, where a job goes over its files more than once. fio opens a file anew when all its blocks were met. Without a map it never knows
/// that they were; with a queue it is enough to have moved as much as the files hold.
pub(super) fn pass(job: &Job, place: &Place) -> Option<u64> {
    let counts_bytes = matches!(job.engine, Engine::Libaio | Engine::IoUring);
    if let Some(gaps) = Gaps::of(job, place) {
        // One that ends by time counts what each of its positions moves, of reads and of writes.
        let blocks = if job.time_based { gaps.blocks_of_a_pass } else { gaps.blocks_in_all_directions(job) };
        let again = job.time_based || gaps.passes(job, bytes_of_a_loop(job, place)) > 1;
        if !counts_bytes || blocks.is_some() {
            return blocks.filter(|_| again).map(|blocks| blocks.saturating_mul(gaps.block));
        }
    }
    let again = |pass: u64| (job.time_based || bytes_in_all(job, place) > pass).then_some(pass);
    if counts_bytes {
        return again(place.bytes());
    }
    if !has_map(job) {
        return None;
    }
    let weights = job.expected_weights().map(u128::from);
    let all = weights[0] + weights[1];
    // Of random blocks only those count that were drawn by themselves. A mix in order ends with the first of its positions, but one that ends by
    // time, which counts both.
    let counted = if job.direction.random {
        let drawn = weights[0] * u128::from(job.random_percent[0]) + weights[1] * u128::from(job.random_percent[1]);
        drawn / u128::from(job.direction.burst)
    } else if job.time_based {
        all * 100
    } else {
        weights[0].max(weights[1]) * 100
    };
    let pass = (u128::from(place.bytes()) * all * 100).checked_div(counted)?;
    again(u64::try_from(pass).unwrap_or(u64::MAX))
}

/// A job that leaves gaps between its blocks, which have one size. It wraps around at its file's end and goes on as long as it has something
/// to move; unless a block ends with the file, or would end behind it: then fio is done with the file, and begins another pass if there is one.
struct Gaps {
    block: u64,
    /// Blocks until the file is done; `None` if it never is.
    blocks_of_a_pass: Option<u64>,
}

impl Gaps {
    /// `None` without gaps.
    fn of(job: &Job, place: &Place) -> Option<Self> {
        let (gap, used) = (job.direction.gap, [job.direction.reads, job.direction.writes]);
        let mut sizes = job.blocks.iter().zip(used).filter_map(|(blocks, used)| used.then_some(blocks));
        let Some(Blocks::Fixed(block)) = sizes.next().filter(|_| gap != 0 && !job.engine.of_files()) else {
            return None;
        };
        if !sizes.all(|other| *other == Blocks::Fixed(*block)) {
            return None;
        }
        // With the part of a block at its end, behind which it wraps around.
        let length = bytes_of_file(place);
        if job.direction.run > 1 {
            // Done if the file ends in a zone, and not in what is left out behind it.
            let run = u64::from(job.direction.run);
            let step = (block * run).saturating_add_signed(gap);
            let (zones, rest) = (length / step, length % step);
            let blocks_of_a_pass = (rest > 0 && rest <= block * run).then_some(zones * run + rest / block);
            return Some(Self { block: *block, blocks_of_a_pass });
        }
        let stride = block.checked_add_signed(gap).filter(|stride| *stride > 0);
        let blocks_of_a_pass = stride.and_then(|stride| {
            let fit = length.checked_sub(*block)? / stride + 1;
            let (end, next) = ((fit - 1) * stride + block, fit.saturating_mul(stride));
            let wraps_around = gap > 0 && place.offset == 0 && end < length && next >= length;
            (!wraps_around).then_some(fit)
        });
        Some(Self { block: *block, blocks_of_a_pass })
    }

    /// Reads and writes of a mix until one of the two positions, each of which moves by itself, is expected to come to the end.
    fn blocks_in_all_directions(&self, job: &Job) -> Option<u64> {
        let weights = job.expected_weights().map(u64::from);
        let (all, most) = (weights[0] + weights[1], weights[0].max(weights[1]).max(1));
        self.blocks_of_a_pass.map(|blocks| (u128::from(blocks) * u128::from(all) / u128::from(most)) as u64)
    }

    /// How many passes a job makes that moves so much in a loop: one for each loop, and more until what is left of its `io_size` is less than a block.
    fn passes(&self, job: &Job, bytes: u64) -> u64 {
        let Some(blocks) = self.blocks_in_all_directions(job) else { return 1 };
        // An io_size of 0 is none.
        let wanted = if job.io_size.is_some_and(|amount| amount.of(bytes) > 0) { bytes } else { 0 };
        passes(job, wanted, self.block, blocks.saturating_mul(self.block))
    }

    fn operations(&self, job: &Job, bytes: u64) -> u64 {
        let most = bytes.saturating_mul(job.loops).div_ceil(self.block);
        match self.blocks_in_all_directions(job) {
            Some(blocks) => self.passes(job, bytes).saturating_mul(blocks).min(most).max(1),
            None => most,
        }
    }
}

/// Size of the part of a file that a clone works on, with the part of a block at its end.
fn bytes_of_file(place: &Place) -> u64 {
    place.file_bytes.map_or(place.length, |bytes| bytes - place.offset)
}

/// Whether a job knows which blocks of a file it has met, and so when it has met all.
fn has_map(job: &Job) -> bool {
    !job.direction.random || (job.distribution == Offsets::Uniform && !job.repeats_blocks)
}

/// Whether a job is done when all blocks of its files were met, how large these are being drawn when they are made.
fn ends_with_files(job: &Job, place: &Place) -> bool {
    place.file_bytes.is_none() && job.io_size.is_none() && job.loops == 1 && has_map(job) && tour(job, place).is_some()
}

/// What a job moves in each of its loops. An `io_size` may be more than its files hold; a `size` is not.
fn bytes_of_a_loop(job: &Job, place: &Place) -> u64 {
    // Of a job that may never come to the end of its file, without a map or with gaps or two positions, the part of a block there counts, too.
    let one_order = !job.direction.random || [[100; 2], [0; 2]].contains(&job.random_percent);
    let one_way = job.direction.gap == 0 && job.direction.burst == 1 && one_order && !two_positions(job);
    let in_blocks = has_map(job) && one_way;
    let whole = if in_blocks { place.bytes() } else { bytes_of_file(place).saturating_mul(place.files) };
    let most = if ends_with_files(job, place) { u64::MAX } else { whole };
    let size = job.size.filter(|_| job.file_size.is_some()).map(|size: Amount| size.of(whole).min(most));
    let io_size = job.io_size.map(|amount| match amount {
        Amount::Bytes(bytes) => bytes,
        // A share is of the files, and no more than the `size`.
        Amount::Percent(_) => amount.of(whole).min(size.unwrap_or(u64::MAX)),
    });
    let bytes = io_size.or(size).unwrap_or(whole);
    // Each pass would begin behind the one before: fio makes one; and so it does where nothing is to be read back.
    let unread = !job.do_verify && job.loops == 1 && has_map(job) && one_way;
    let most = if job.append || unread { whole } else { u64::MAX };
    if bytes == 0 { whole } else { bytes.min(most) }
}

/// Whether a job goes over all blocks of its files again and again because its `io_size` is more than they hold. One without a map does not
/// know when it has met all, one with gaps goes on, and a mix of two positions comes to the end with either.
fn goes_around(job: &Job, place: &Place) -> bool {
    let whole = place.bytes();
    job.io_size.is_some_and(|amount| amount.of(whole) > whole)
        && has_map(job)
        && job.direction.gap == 0
        && !two_positions(job)
}

/// Whether a job ends because its files have no whole block left, and not because it moved all: fio looks for another block then, and before it makes
/// the fsync that is due.
pub(super) fn ends_for_want_of_a_block(job: &Job, place: &Place) -> bool {
    let once = job.loops == 1 && job.io_size.is_none() && job.number_ios.is_none() && !job.time_based;
    let is_left = match Gaps::of(job, place) {
        Some(gaps) => gaps.blocks_of_a_pass.is_some(),
        None => bytes_of_file(place) > place.length,
    };
    once && has_map(job) && !two_positions(job) && is_left
}

fn two_positions(job: &Job) -> bool {
    job.direction.reads && job.direction.writes && (!job.direction.random || job.random_percent == [0; 2])
}

/// How many passes of so many bytes each a job makes that goes around: one for each loop, and more until what is left of the bytes that it
/// wants is less than a block.
fn passes(job: &Job, wanted: u64, block: u64, bytes: u64) -> u64 {
    (wanted.saturating_sub(block) / bytes.max(1) + 1).max(job.loops)
}

fn whole_passes(job: &Job, place: &Place, bytes: u64) -> u64 {
    let used = [job.direction.reads, job.direction.writes];
    let blocks = job.blocks.iter().zip(used).filter(|(_, used)| *used).map(|(blocks, _)| blocks.largest());
    passes(job, bytes_of_a_loop(job, place), blocks.max().unwrap_or(1), bytes)
}

fn bytes_in_all(job: &Job, place: &Place) -> u64 {
    if job.loops > 1 && goes_around(job, place) {
        let whole = place.bytes();
        return whole_passes(job, place, whole).saturating_mul(whole);
    }
    let most = bytes_of_a_loop(job, place).saturating_mul(job.loops);
    if job.loops > 1 && two_positions(job) && job.direction.gap == 0 && job.io_size.is_some() {
        // A pass is expected to end when the position that moves more often comes to the end.
        let [reads, writes] = job.expected_weights().map(u128::from);
        let bytes = u128::from(place.bytes()) * (reads + writes) / reads.max(writes).max(1);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        return whole_passes(job, place, bytes).saturating_mul(bytes).min(most);
    }
    most
}

pub(super) fn reads_back(job: &Job) -> bool {
    job.verify && job.do_verify && job.direction.writes && !job.engine.of_files() && !job.in_backlog()
}

/// Phases that the loops of a job are at most.
pub(super) const MOST_PHASES: u64 = 100;

/// How many passes of a job are phases of their own, and what it does in each: those that are read back or synced one by one, and loops over files whose
/// sizes are drawn, since nobody knows before how much a loop is. One that stands for all where that would be too many phases, or where an
/// end that is counted over all loops can come in any of them.
pub(super) fn apart(job: &Job, place: &Place) -> (u64, Job) {
    let counted = job.time_based || job.runtime.is_some() || job.number_ios.is_some();
    let mut once = Job { loops: 1, ..job.clone() };
    let mut count = job.loops.max(1);
    if reads_back(job) {
        if goes_around(job, place) {
            // In fio what is read back counts towards the io_size.
            let whole = place.bytes();
            let [reads, writes] = job.expected_weights().map(u64::from);
            let read_back = (u128::from(whole) * u128::from(writes) / u128::from((reads + writes).max(1))) as u64;
            count = whole_passes(job, place, whole.saturating_add(read_back));
            once.size = job.size.filter(|_| job.file_size.is_none());
            once.io_size = None;
        }
    } else if job.exit_all
        || job.latency_target.is_some()
        || !(ends_with_files(&once, place)
            || job.removes_between()
            || (job.end_fsync && job.direction.writes && job.io_size.is_none()))
    {
        count = 1;
        once = job.clone();
    }
    if counted || count > MOST_PHASES { (1, job.clone()) } else { (count, once) }
}

/// More than any load does; what files hold has a sign.
const MOST: u64 = i64::MAX as u64;

pub(super) fn stop(job: &Job, place: &Place) -> Stop {
    let until = until(job, place);
    let times = if job.in_backlog() || job.direction.trims == Trims::First { 2 } else { 1 };
    Stop { full: job.fills, operations: until.operations.map(|operations| operations.saturating_mul(times)), ..until }
}

fn until(job: &Job, place: &Place) -> Stop {
    let time = job.runtime;
    if job.time_based {
        return Stop { time, ..Stop::default() };
    }
    if job.engine.of_files() {
        return Stop { time, operations: Some(place.files.saturating_mul(job.loops).min(MOST)), ..Stop::default() };
    }
    // For each loop, counted over all of them.
    let most = job.number_ios.map(|number| number.saturating_mul(job.loops).min(MOST));
    let once_through = ends_with_files(job, place);
    if once_through && job.size.is_none() {
        return Stop { time, operations: most, once_through, ..Stop::default() };
    }
    let bytes = bytes_in_all(job, place).min(MOST);
    let sizes: Vec<&Blocks> = [job.direction.reads, job.direction.writes]
        .iter()
        .zip(&job.blocks)
        .filter_map(|(used, blocks)| used.then_some(blocks))
        .collect();
    match sizes.as_slice() {
        [Blocks::Fixed(block), rest @ ..] if rest.iter().all(|other| *other == sizes[0]) => {
            let gaps = Gaps::of(job, place);
            let operations =
                gaps.map_or(bytes.div_ceil(*block), |gaps| gaps.operations(job, bytes_of_a_loop(job, place)).min(MOST));
            let operations = most.map_or(operations, |most| most.min(operations));
            Stop { time, operations: Some(operations), once_through, ..Stop::default() }
        }
        _ => Stop { time, bytes: Some(bytes), operations: most, once_through, ..Stop::default() },
    }
}
