//! What a clone of a job does: its reads and writes, and in which order it goes through its files.

use super::{
    files::Place,
    job::{Blocks, Engine, Job, Offsets, Service, Trims},
};
use fstone_model::workload::{
    Action, Actions, Distribution, Extent, FileChoice, Operation, Pattern, SizeDistribution, Tour, Transfer, Weighted,
    Zone, Zones,
};

pub(super) const READ: &str = "read";
pub(super) const WRITE: &str = "write";
pub(super) const TRIM: &str = "trim";
const READ_ON: &str = "read on";
const WRITE_ON: &str = "write on";

pub(super) fn reads(operation: &str) -> bool {
    operation == READ || operation == READ_ON
}

pub(super) fn writes(operation: &str) -> bool {
    operation == WRITE || operation == WRITE_ON
}

pub(super) fn actions(job: &Job, place: &Place) -> Actions {
    let fileset = place.filesets[0];
    let operation = match job.engine {
        Engine::FileCreate => {
            Some(("create", Operation::Create { block_bytes: 0, fsync: false }, FileChoice::RoundRobin))
        }
        Engine::FileStat => Some(("stat", Operation::Stat, FileChoice::RoundRobin)),
        Engine::FileDelete => Some(("delete", Operation::Unlink, FileChoice::RoundRobin)),
        Engine::FileRename => Some(("rename", Operation::Rename, FileChoice::RoundRobin)),
        Engine::DirectoryCreate => Some(("mkdir", Operation::Mkdir, FileChoice::Uniform)),
        Engine::DirectoryStat => Some(("stat", Operation::StatDirectory, FileChoice::Uniform)),
        Engine::DirectoryDelete => Some(("rmdir", Operation::Rmdir, FileChoice::Uniform)),
        _ => None,
    };
    if let Some((name, operation, choice)) = operation {
        let of = |fileset: &u32| Action { choice, ..Action::new(name, operation.clone(), Some(*fileset)) };
        return Actions::Sequence(place.filesets.iter().map(of).collect());
    }
    let kinds = kinds(job);
    if job.in_backlog() {
        let write = transfer(job, place, fileset, WRITE, job.direction.random, 1);
        let mut read = Action { name: READ.to_owned(), follows: true, ..write.clone() };
        if let Operation::Write(transfer) = write.operation {
            read.operation = Operation::Read(transfer);
        }
        return Actions::Sequence(vec![write, read]);
    }
    if job.direction.trims != Trims::None {
        let of = |fileset: &u32| {
            let write = transfer(job, place, *fileset, WRITE, job.direction.random, 1);
            let mut trim = Action { name: TRIM.to_owned(), ..write.clone() };
            if let Operation::Write(transfer) = write.operation {
                trim.operation = Operation::Trim(transfer);
            }
            let writes = job.direction.trims == Trims::First;
            std::iter::once(trim).chain(writes.then_some(Action { follows: true, ..write }))
        };
        return Actions::Sequence(place.filesets.iter().flat_map(of).collect());
    }
    let tours = tour(job, place).is_some();
    let mut weighted = Vec::new();
    for fileset in &place.filesets {
        for (weight, name, random, direction) in &kinds {
            let mut action = transfer(job, place, *fileset, name, *random, *direction);
            if tours {
                action.choice = FileChoice::Uniform;
            }
            weighted.push(Weighted { weight: *weight, action });
        }
    }
    // Files with names of their own in turn, a block each.
    let in_turn = kinds.len() == 1 && job.service == Service::RoundRobin;
    if !tours && (weighted.len() == 1 || in_turn) {
        return Actions::Sequence(weighted.into_iter().map(|weighted| weighted.action).collect());
    }
    Actions::Mix(weighted)
}

/// What a job that moves data does to each of its files: weight and name, whether at random places, and 0 for reads or 1 for writes.
fn kinds(job: &Job) -> Vec<(u32, &'static str, bool, usize)> {
    let [reads, writes] = job.read_and_write_weights();
    let mut kinds = Vec::new();
    for (share, names, direction) in [(reads, [READ, READ_ON], 0), (writes, [WRITE, WRITE_ON], 1)] {
        let used = if direction == 0 { job.direction.reads } else { job.direction.writes };
        let random = if job.direction.random { job.random_percent[direction] } else { 0 };
        let weights = if used { [share * random, share * (100 - random)] } else { [0, 0] };
        // The name says how it is done only where both ways are in the job.
        let other = if weights[0] == 0 { names[0] } else { names[1] };
        kinds.push((weights[0], names[0], true, direction));
        kinds.push((weights[1], other, false, direction));
    }
    kinds.retain(|(weight, ..)| *weight > 0);
    kinds
}

/// The tour that a job makes: where its operations share a map or a position, and where some of its files can be finished before others.
/// All else has simpler words.
pub(super) fn tour(job: &Job, place: &Place) -> Option<Tour> {
    if job.engine.of_files() || job.direction.gap != 0 || job.direction.burst > 1 {
        return None;
    }
    let kinds = kinds(job);
    let order = match job.service {
        Service::RoundRobin => Tour::InTurn,
        Service::Sequential => Tour::OneByOne,
        Service::Random => Tour::Drawn,
    };
    let has_map = job.direction.random && job.distribution == Offsets::Uniform && !job.repeats_blocks;
    let mixed = kinds.len() > 1;
    let shares = mixed && (has_map || kinds.iter().any(|(_, _, random, _)| !random)) && job.direction.random;
    if place.files == 1 {
        // One whose size is drawn is done when it was gone through.
        return (shares || place.file_bytes.is_none()).then_some(order);
    }
    let fixed = kinds.iter().all(|(.., direction)| matches!(job.blocks[*direction], Blocks::Fixed(_)));
    let alike = !mixed && fixed && place.file_bytes.is_some();
    let one_each = job.service_operations == 1 || job.service == Service::Sequential;
    let simple = one_each
        && job.opened_of(place.files).is_none()
        && match job.service {
            Service::RoundRobin => alike,
            Service::Sequential => alike && !job.direction.random && place.filesets.len() == 1,
            // Where a block may come again no file is ever finished.
            Service::Random => alike && job.direction.random && !has_map,
        };
    (!simple).then_some(order)
}

fn transfer(job: &Job, place: &Place, fileset: u32, name: &str, random: bool, direction: usize) -> Action {
    let blocks = &job.blocks[direction];
    let drawn = match blocks {
        Blocks::Fixed(_) => None,
        // Drawn sizes are cut down to multiples of the smallest: so the largest is drawn as often as any other.
        Blocks::Range(low, high) => Some(SizeDistribution::Uniform { minimum: *low, maximum: high - high % low + low }),
        Blocks::Split(sizes) => Some(SizeDistribution::Weighted(sizes.clone())),
    };
    let bounds = drawn.as_ref().and_then(SizeDistribution::block_bounds);
    let bytes = bounds.map_or_else(|| blocks.largest(), |(_, largest)| largest);
    let pattern = if random {
        let distribution = match &job.distribution {
            Offsets::Uniform if job.repeats_blocks => Distribution::Uniform,
            Offsets::Uniform => Distribution::Permutation,
            Offsets::Zipf(theta) => Distribution::Zipf { theta: *theta },
            Offsets::Normal(percent) => Distribution::Gauss { deviation: deviation(*percent), scattered: true },
            Offsets::Pareto(share) => Distribution::Pareto { share: *share },
            Offsets::Zoned(zones) => Distribution::Zoned(*zones),
            Offsets::ZonedBytes(zones) => {
                within(zones, place.length).map_or(Distribution::Uniform, Distribution::Zoned)
            }
        };
        let align_bytes = job.align[direction].unwrap_or(blocks.smallest());
        if job.direction.burst > 1 {
            Pattern::Bursts { operations: job.direction.burst, align_bytes }
        } else {
            Pattern::Random { distribution, align_bytes }
        }
    } else if job.direction.gap != 0 {
        Pattern::Stride { gap_bytes: job.direction.gap, run: job.direction.run }
    } else {
        Pattern::Cursor { shared: false }
    };
    let transfer = Transfer { extent: Extent::Bytes(bytes), block_bytes: bytes, pattern, fsync: false };
    let operation = match direction {
        0 => Operation::Read(transfer),
        _ => Operation::Write(transfer),
    };
    let mut action = Action::new(name, operation, Some(fileset));
    action.blocks = drawn;
    let numbered = place.files > 1 && place.filesets.len() == 1;
    action.choice = match (numbered, random) {
        (false, _) => FileChoice::Uniform,
        _ if job.service == Service::Random => FileChoice::Uniform,
        // A block of each in turn.
        (true, true) if job.service == Service::RoundRobin && place.file_bytes.is_some() => FileChoice::RoundRobin,
        // All blocks of all files, each once.
        (true, true) if matches!(blocks, Blocks::Fixed(_)) => FileChoice::Concatenated,
        (true, true) => FileChoice::Uniform,
        (true, false) if job.service == Service::Sequential => FileChoice::Concatenated,
        (true, false) => FileChoice::RoundRobin,
    };
    action
}

/// The standard deviation of fio's normal distribution, as a share of the file. fio 3.33 takes the mean of twelve numbers that are uniform in the
/// file, which is the 144th part of its length squared as a variance, and adds one that is uniform in a range of so many per cent around it, at
/// most half of the file.
fn deviation(percent: f64) -> f64 {
    let width = (percent / 100.0).min(0.5);
    (1.0 / 144.0 + width * width / 12.0).sqrt()
}

/// Zones in bytes as parts of a file of this length, cut off where it ends. fio's may leave out the end, where nothing is drawn then.
fn within(zones: &[(u32, Option<u64>)], length: u64) -> Option<Zones> {
    let mut left = length;
    let part = |bytes: u64| (u128::from(bytes) * u128::from(u32::MAX) / u128::from(length.max(1))).max(1) as u32;
    let mut all: Vec<Zone> = Vec::new();
    for (weight, bytes) in zones {
        let bytes = bytes.unwrap_or(left).min(left);
        left -= bytes;
        if bytes > 0 {
            all.push(Zone { weight: *weight, length: part(bytes) });
        }
    }
    if left > 0 {
        all.push(Zone { weight: 0, length: part(left) });
    }
    Zones::new(&all)
}
