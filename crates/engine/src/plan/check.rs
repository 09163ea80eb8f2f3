//! What a workload must not ask for.

use super::check_program::check_program;
use super::schedule::{expected_bytes, of_direction};
use super::series;
use crate::data::stamp;
use crate::error::LoadError;
use fstone_model::Workload;
use fstone_model::workload::operation::{Data, Names};
use fstone_model::workload::{
    Action, Actions, Amount, Arrivals, ByFileset, Directories, Distribution, Existing, Extent, FileChoice, Fileset,
    FinishUnit, IoEngineKind, MAXIMUM_BLOCK_BYTES, MAXIMUM_FILES, MAXIMUM_THREADS, OpenPolicy, Operation, Pattern,
    Phase, RANK, Rate, Region, Sharing, SizeDistribution, Steady, Step, ThreadGroup, has_rank, name_clashes,
};
use rustix::thread::CpuSet;
use std::collections::BTreeSet;

/// Memory that a fileset's table takes for each file.
const TABLE_BYTES: u64 = 16;
/// Memory that a thread's tour takes for each file.
const TOUR_BYTES: u64 = 64;
const MAX_DEPTH: u32 = 4096;
/// Seconds whose samples are judged.
const MAXIMUM_WINDOW: u64 = 24 * 60 * 60;

fn refuse(what: impl Into<String>) -> Result<(), LoadError> {
    Err(LoadError::Unsupported { what: what.into() })
}

pub(crate) fn check(workload: &Workload) -> Result<(), LoadError> {
    check_amounts(workload)?;
    check_places(workload)?;
    let actions = ByFileset::of_phases(&workload.phases);
    for (index, fileset) in workload.filesets.iter().enumerate() {
        if fileset.directory.split('/').any(|part| part == "..") {
            return refuse(format!(
                "has a fileset in {:?}, which leads out of the load's directory",
                fileset.directory
            ));
        }
        if fileset.naming.exact {
            check_exact(fileset, index, &actions)?;
        }
        if fileset.leaf_directories > 0 && fileset.existing == Existing::Require {
            return refuse(format!("has leaf directories in fileset {:?}, which must be there already", fileset.name));
        }
        if fileset.existing == Existing::Assume && !matches!(fileset.amount, Amount::Files(_)) {
            return refuse(format!(
                "assumes that fileset {:?} is there, of which nobody knows how many files it has: give their number",
                fileset.name
            ));
        }
        let numbered = fileset.naming.prefixes().any(has_rank);
        if numbered && !(fileset.ranks == Sharing::Names && fileset.naming.names_ranks()) {
            return refuse(format!(
                "has {RANK} in names of fileset {:?}: that is for ranks = \"names\", needs to be in the prefix of the files, and no \
                 digit may follow it",
                fileset.name
            ));
        }
        for prefix in fileset.naming.prefixes() {
            if prefix.contains(['/', '\0']) {
                return refuse(format!("names files with the prefix {prefix:?}, which no file name can have"));
            }
        }
    }
    for phase in &workload.phases {
        let threads: u64 = phase.groups.iter().map(|group| u64::from(group.threads)).sum();
        if threads > MAXIMUM_THREADS {
            return refuse(format!(
                "has {threads} threads in phase {:?}, at most {MAXIMUM_THREADS} are run",
                phase.name
            ));
        }
        for group in &phase.groups {
            check_io(workload, phase, group)?;
            let actions = group.actions.all();
            if actions.is_empty() {
                return refuse(format!("has a group {:?} without operations", group.name));
            }
            if let Actions::Mix(mix) = &group.actions
                && mix.iter().all(|weighted| weighted.weight == 0)
            {
                return refuse(format!("has a group {:?} whose operations have no weight", group.name));
            }
            check_rate(workload, group)?;
            check_cpus(group)?;
            check_region(group)?;
            check_tour(group)?;
            check_order(group)?;
            check_rates(group)?;
            check_continued(workload, phase, group)?;
            check_program(workload, phase, group)?;
            if (group.fsync.all_files || group.fsync.between) && group.fsync.every_operations > series::MOST_OPERATIONS
            {
                return refuse(format!(
                    "has a group {:?} with fsyncs after every {} operations, where {} is the most",
                    group.name,
                    group.fsync.every_operations,
                    series::MOST_OPERATIONS
                ));
            }
            if group.fsync.range_flags != 0 && !group.fsync.between {
                return refuse(format!(
                    "has a group {:?} with sync_file_range other than `between` operations",
                    group.name
                ));
            }
            if group.fsync.data_every > 0 && series::cycle_of(&group.fsync).is_none() {
                return refuse(format!(
                    "has a group {:?} with fsyncs and fdatasyncs at intervals that fall together too seldom",
                    group.name
                ));
            }
            actions.into_iter().try_for_each(|action| check_action(workload, action))?;
        }
    }
    check_buffers(workload, memory_bytes())
}

/// Refuses a name for one file where there can be more.
fn check_exact(fileset: &Fileset, index: usize, actions: &ByFileset<(&ThreadGroup, &Action)>) -> Result<(), LoadError> {
    let one =
        fileset.amount == Amount::Files(1) && fileset.directories == Directories::Flat { count: 0, root_too: false };
    let adds = |action: &&Action| {
        let nature = action.operation.nature();
        action.works_on(index) && (nature.names == Names::Added || nature.to.is_some_and(|to| to as usize == index))
    };
    let mut adding = actions.on(index).filter(|(_, action)| adds(action));
    // Or it is made by the load itself, once.
    let empty = fileset.preallocated <= 0.0;
    let once = match (adding.next(), adding.next()) {
        (None, _) => true,
        (Some((group, _)), None) => empty && goes_through_once(group, &adds),
        (Some(_), Some(_)) => false,
    };
    if one && once {
        return Ok(());
    }
    refuse(format!("gives fileset {:?} the name of one file, where there can be more", fileset.name))
}

/// Whether a group is one thread that goes through a program once, and performs such actions once in it.
fn goes_through_once(group: &ThreadGroup, such: &impl Fn(&&Action) -> bool) -> bool {
    let Actions::Program(steps) = &group.actions else { return false };
    let ends = matches!(steps.last(), Some(Step::Finish { count: 1, unit: FinishUnit::Operations, .. }));
    let often = |step: &Step| match step {
        Step::Perform { action, times } => *times > 1 && such(&action),
        Step::Repeat { .. } => true,
        _ => false,
    };
    group.threads == 1 && ends && !steps.iter().any(often)
}

fn check_rate(workload: &Workload, group: &ThreadGroup) -> Result<(), LoadError> {
    let name = &group.name;
    let of_all = [group.rate_per_second.map(Rate::Operations), group.bytes_per_second.map(Rate::Bytes)];
    let mut rates = of_all.iter().chain(&group.direction_rates).flatten();
    let is_rate = |rate: &Rate| match *rate {
        Rate::Operations(rate) => rate.is_finite() && rate > 0.0,
        Rate::Bytes(rate) => rate > 0,
    };
    if !rates.clone().all(is_rate) {
        return refuse(format!("has a group {name:?} with a rate that is not above 0"));
    }
    if group.rate_per_second.is_some() && group.bytes_per_second.is_some() {
        return refuse(format!("has a group {name:?} with a rate of operations and one of bytes"));
    }
    if !rates.any(|rate| matches!(rate, Rate::Operations(_))) && group.arrivals != Arrivals::Even {
        return refuse(format!("has a group {name:?} with Poisson arrivals and no rate of operations"));
    }
    let sizes = || workload.filesets.iter().map(|fileset| &fileset.size).collect::<Vec<_>>();
    for (rate, writes) in group.direction_rates.iter().zip([false, true]) {
        let Some(rate) = rate else { continue };
        let of = of_direction(&group.actions, writes);
        if of_all != [None; 2] || !matches!(group.actions, Actions::Mix(_)) || of.all().is_empty() {
            return refuse(format!(
                "has a group {name:?} with a rate of its reads or of its writes, which needs a mix with such, and no rate of all"
            ));
        }
        if matches!(rate, Rate::Bytes(_)) && expected_bytes(&of, &sizes()) == 0 {
            return refuse(format!("has a group {name:?} with a rate in bytes whose operations move none"));
        }
    }
    if group.bytes_per_second.is_some() && expected_bytes(&group.actions, &sizes()) == 0 {
        return refuse(format!("has a group {name:?} with a rate in bytes whose operations move none"));
    }
    Ok(())
}

fn check_cpus(group: &ThreadGroup) -> Result<(), LoadError> {
    if group.cpus.is_empty() {
        return Ok(());
    }
    let Ok(here) = rustix::thread::sched_getaffinity(None) else { return Ok(()) };
    let there = |cpu: u32| (cpu as usize) < CpuSet::MAX_CPU && here.is_set(cpu as usize);
    let Some(missing) = group.cpus.iter().find(|cpu| !there(**cpu)) else { return Ok(()) };
    let ours: Vec<String> = (0..CpuSet::MAX_CPU).filter(|cpu| here.is_set(*cpu)).map(|cpu| cpu.to_string()).collect();
    refuse(format!("runs {:?} on CPU {missing}, where this process may use {}", group.name, ours.join(", ")))
}

/// Refuses parts of files for actions that go by whole ones.
fn check_region(group: &ThreadGroup) -> Result<(), LoadError> {
    if group.region == Region::Whole {
        return Ok(());
    }
    for action in group.actions.all() {
        let Some(transfer) = action.operation.nature().transfer else { continue };
        let alone = matches!(action.choice, FileChoice::Uniform | FileChoice::Same | FileChoice::Rotation)
            || matches!(transfer.pattern, Pattern::Written { .. });
        if !alone || matches!(transfer.pattern, Pattern::Cursor { shared: true }) {
            return refuse(format!(
                "gives each thread a part of each file and has {:?} go through whole ones",
                action.name
            ));
        }
    }
    Ok(())
}

/// Refuses a group that continues one that is not there, or did something else.
fn check_continued(workload: &Workload, phase: &Phase, group: &ThreadGroup) -> Result<(), LoadError> {
    if !group.continues {
        return Ok(());
    }
    let place = workload.phases.iter().position(|other| std::ptr::eq(other, phase)).unwrap_or_default();
    let before = place.checked_sub(1).map(|before| &workload.phases[before]);
    let same = |other: &&ThreadGroup| {
        other.name == group.name
            && other.threads == group.threads
            && other.actions == group.actions
            && other.tour == group.tour
            && other.region == group.region
    };
    let steps = matches!(group.actions, Actions::Program(_));
    if steps || before.is_none_or(|before| !before.groups.iter().any(|other| same(&other))) {
        return refuse(format!(
            "has a group {:?} in phase {:?} that continues, where the phase before has no group of its name, threads and operations, or where \
             they are a program",
            group.name, phase.name
        ));
    }
    Ok(())
}

/// Refuses tours of actions that are not one block each, or choose their files themselves.
fn check_tour(group: &ThreadGroup) -> Result<(), LoadError> {
    if group.fsync.at_close && group.tour_open.is_none()
        || group.tour_open.is_some() && (group.tour.is_none() || group.open != OpenPolicy::KeepOpen)
    {
        return refuse(format!(
            "closes files on a tour in group {:?}, which needs a tour and kept open files",
            group.name
        ));
    }
    if group.tour.is_none() {
        return Ok(());
    }
    let fits = |action: &Action| action.fits_tour();
    match &group.actions {
        Actions::Mix(mix) if mix.iter().all(|weighted| fits(&weighted.action)) => Ok(()),
        _ => refuse(format!(
            "has a tour in group {:?}, which needs a mix of reads and writes of one block each, at random places or by a cursor that is not \
             shared, each on a fileset of its own choice and without another choice of files",
            group.name
        )),
    }
}

/// Refuses an order that no action before has, and a backlog of other than one thread's sequence of two.
fn check_order(group: &ThreadGroup) -> Result<(), LoadError> {
    let (name, actions) = (&group.name, group.actions.all());
    let place = |action: &Action| {
        let transfer = action.operation.nature().transfer;
        let place = transfer.map(|transfer| (transfer.extent, transfer.block_bytes, transfer.pattern));
        (action.fileset, action.choice, place.filter(|_| action.blocks.is_none()))
    };
    let ordered = |action: &Action| {
        let permutation = Distribution::Permutation;
        place(action).2.is_some_and(|(_, _, pattern)| match pattern {
            Pattern::Random { distribution, .. } => distribution == permutation,
            pattern => matches!(pattern, Pattern::Cursor { shared: false } | Pattern::Stride { .. }),
        })
    };
    let follows = |(index, action): (usize, &&Action)| {
        let before = index.checked_sub(1).map(|before| place(actions[before]));
        !action.follows || before == Some(place(action)) && ordered(action)
    };
    let steps = matches!(group.actions, Actions::Sequence(_) | Actions::Program(_));
    if !(actions.iter().enumerate().all(follows) && (steps || !actions.iter().any(|action| action.follows))) {
        return refuse(format!(
            "has an action in {name:?} that follows another, which needs a sequence or a program, and before it an action with the same blocks of \
             one size on the same files, each place once"
        ));
    }
    let two = matches!(&group.actions, Actions::Sequence(two) if two.len() == 2);
    let fits = two && group.threads == 1 && !group.continues && group.stop.operations.is_some();
    if group.backlog.is_some_and(|backlog| backlog == 0 || !fits) {
        return refuse(format!(
            "has a backlog in {name:?}, which needs one thread with a sequence of two actions and a number of operations"
        ));
    }
    Ok(())
}

/// Refuses rates that end a group and say nothing, or are judged of several threads.
fn check_rates(group: &ThreadGroup) -> Result<(), LoadError> {
    let name = &group.name;
    if group
        .least_rate
        .is_some_and(|least| least.every.is_zero() || [false, true].map(|writes| least.of(writes)) == [(0, 0); 2])
    {
        return refuse(format!("has a least rate of nothing in {name:?}, or without an interval"));
    }
    let steady = |steady: Steady| {
        steady.limit.is_finite() && steady.limit > 0.0 && (1..=MAXIMUM_WINDOW).contains(&steady.window.as_secs())
    };
    if group.steady.is_some_and(|of| !steady(of) || group.threads != 1) {
        return refuse(format!(
            "has {name:?} end when its rate is steady, which needs one thread, a limit above 0 and a window of 1 s to a day"
        ));
    }
    Ok(())
}

fn check_io(workload: &Workload, phase: &Phase, group: &ThreadGroup) -> Result<(), LoadError> {
    let (io, name) = (workload.io_of(group), &group.name);
    if (io.engine == IoEngineKind::Null) != (workload.io.engine == IoEngineKind::Null) {
        return refuse(format!(
            "has a group {name:?} on the null I/O engine beside others that are not, or the reverse"
        ));
    }
    if let Some((setting, why, cure)) = workload.refused_setting(group) {
        return refuse(format!("has {} in {name:?}: {why}; {cure}", setting.word()));
    }
    if io.queue_depth > MAX_DEPTH {
        return refuse(format!("asks for more than {MAX_DEPTH} requests in flight per thread in {name:?}"));
    }
    if let Some(why) = workload.unfit_target(phase, group) {
        return refuse(format!("has a latency target for {name:?}, of which it cannot find a queue depth: {why}"));
    }
    Ok(())
}

fn check_amounts(workload: &Workload) -> Result<(), LoadError> {
    let files = |fileset: &Fileset| {
        let files = if let Amount::Files(files) = fileset.amount { files } else { 0 };
        files.saturating_add(fileset.leaf_directories)
    };
    if let Some(fileset) = workload.filesets.iter().find(|fileset| files(fileset) > MAXIMUM_FILES) {
        return refuse(format!(
            "has {} files in fileset {:?}, where {MAXIMUM_FILES} is the most",
            files(fileset),
            fileset.name
        ));
    }
    let of_tour = |group: &ThreadGroup| {
        let actions = group.actions.all();
        let through: BTreeSet<u32> = actions.iter().filter_map(|action| action.fileset).collect();
        let all = through.iter().filter_map(|index| workload.filesets.get(*index as usize)).map(files).sum::<u64>();
        all.saturating_mul(u64::from(group.threads)).saturating_mul(TOUR_BYTES)
    };
    let tours = workload.phases.iter().map(|phase| {
        let of_phase = phase.groups.iter().filter(|group| group.tour.is_some()).map(of_tour);
        of_phase.fold(0, u64::saturating_add)
    });
    let tours = tours.max().unwrap_or(0);
    let wanted = workload.filesets.iter().map(files).sum::<u64>().saturating_mul(TABLE_BYTES).saturating_add(tours);
    match memory_bytes() {
        Some(memory) if wanted > memory => refuse(format!(
            "has files whose tables take {} MiB of memory, where {} MiB are free: {TABLE_BYTES} bytes a file, and {TOUR_BYTES} for each thread \
             whose tour leads to it",
            wanted >> 20,
            memory >> 20
        )),
        _ => Ok(()),
    }
}

/// Refuses blocks for which there is no memory: each thread has one for each of its requests in flight.
fn check_buffers(workload: &Workload, memory: Option<u64>) -> Result<(), LoadError> {
    let of_group = |group: &ThreadGroup| {
        let io = workload.io_of(group);
        // What is not performed has no data.
        let depth = if io.engine.queues() && io.engine != IoEngineKind::Null { io.queue_depth.max(1) } else { 1 };
        let blocks = group.actions.all().into_iter().map(|action| action.operation.nature().largest_block);
        [u64::from(group.threads), u64::from(depth), blocks.max().unwrap_or(0)]
    };
    for phase in &workload.phases {
        let groups: Vec<_> = phase.groups.iter().map(|group| (group, of_group(group))).collect();
        let bytes = |factors: &[u64; 3]| factors.iter().fold(1, |product: u64, factor| product.saturating_mul(*factor));
        let wanted = groups.iter().fold(0, |sum: u64, (_, factors)| sum.saturating_add(bytes(factors)));
        let most = groups.iter().max_by_key(|(_, factors)| bytes(factors));
        if let (Some(memory), Some((group, [threads, depth, block]))) = (memory.filter(|memory| wanted > *memory), most)
        {
            return refuse(format!(
                "has blocks that take {} MiB of memory in phase {:?}, where {} MiB are free, most of them for {:?}: {threads} threads × {depth} \
                 in flight × {block} bytes; use smaller blocks, or fewer of them at a time",
                wanted >> 20,
                phase.name,
                memory >> 20,
                group.name
            ));
        }
    }
    Ok(())
}

/// Memory that can be had without swapping.
fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Refuses filesets that would take each other's files for their own.
fn check_places(workload: &Workload) -> Result<(), LoadError> {
    match name_clashes(&workload.filesets).next() {
        Some((first, later)) => refuse(format!(
            "has filesets {} and {} that use the same names; give one a directory",
            workload.filesets[first].name, workload.filesets[later].name
        )),
        None => Ok(()),
    }
}

fn check_action(workload: &Workload, action: &Action) -> Result<(), LoadError> {
    let name = &action.name;
    if workload.filesets.is_empty() || action.fileset.is_some_and(|index| index as usize >= workload.filesets.len()) {
        return refuse(format!("has an operation {name:?} on a fileset that it does not have"));
    }
    if action.operation.nature().to.is_some_and(|to| to as usize >= workload.filesets.len()) {
        return refuse(format!("moves files in {name:?} to a fileset that it does not have"));
    }
    let mut of_action = workload.filesets.iter().enumerate().filter(|(index, _)| action.works_on(*index));
    if matches!(action.operation, Operation::StatDirectory | Operation::RenameDirectory)
        && of_action.any(|(_, fileset)| fileset.leaf_directories == 0)
    {
        return refuse(format!("has {name:?} on a fileset without leaf directories"));
    }
    if action.fileset.is_none() && matches!(action.choice, FileChoice::Concatenated | FileChoice::Partitioned) {
        return refuse(format!("divides files for {name:?}, which needs a fileset of its own"));
    }
    if action.operation.nature().largest_block > MAXIMUM_BLOCK_BYTES {
        return refuse(format!("has blocks of 4 GiB or more in {name:?}"));
    }
    let Some(transfer) = action.operation.nature().transfer else {
        check_blocks(action)?;
        return check_stamps(workload, action);
    };
    if transfer.block_bytes == 0 {
        return refuse(format!("has blocks of 0 bytes in {name:?}"));
    }
    if let Pattern::Runs(runs) = transfer.pattern {
        let whole = !runs.shuffled || runs.total_bytes.is_multiple_of(transfer.block_bytes);
        let one = transfer.extent == Extent::Bytes(transfer.block_bytes);
        if action.handle.is_none() || runs.run_bytes == 0 || runs.total_bytes == 0 || !whole || !one {
            return refuse(format!(
                "goes through runs in {name:?}, which needs a handle, runs that are not empty, one block per operation, and for a \
                 random order whole blocks"
            ));
        }
    }
    if let Pattern::Written { .. } = transfer.pattern {
        let reads = matches!(action.operation, Operation::Read(_)) && action.choice == FileChoice::Concatenated;
        let remembered = workload.data.stamped || workload.io.engine == IoEngineKind::Null;
        if !reads || !remembered || action.blocks.is_some() || transfer.extent != Extent::Bytes(transfer.block_bytes) {
            return refuse(format!(
                "reads back what was written in {name:?}, which needs stamped data, reads of one block through all files of a fileset"
            ));
        }
    }
    if let Pattern::Random { distribution, .. } = transfer.pattern {
        match distribution {
            Distribution::Zipf { theta } if !(theta.is_finite() && theta > 0.0) => {
                return refuse(format!("has a zipf exponent that is not above 0 in {name:?}"));
            }
            Distribution::Gauss { deviation, .. } if !(deviation.is_finite() && deviation > 0.0) => {
                return refuse(format!("has a deviation that is not above 0 in {name:?}"));
            }
            Distribution::Pareto { share } if !(share > 0.0 && share < 1.0) => {
                return refuse(format!("has a Pareto share that is not above 0 and below 1 in {name:?}"));
            }
            Distribution::Permutation
                if matches!(action.choice, FileChoice::Concatenated | FileChoice::Partitioned)
                    && transfer.extent != Extent::Bytes(transfer.block_bytes) =>
            {
                return refuse(format!(
                    "goes through files seen as one, each block once, in {name:?}, and moves several blocks at a time"
                ));
            }
            _ => {}
        }
    }
    check_blocks(action)?;
    check_stamps(workload, action)
}

fn check_blocks(action: &Action) -> Result<(), LoadError> {
    let Some(blocks) = &action.blocks else { return Ok(()) };
    let (name, nature) = (&action.name, action.operation.nature());
    let is_list = matches!(blocks, SizeDistribution::Uniform { .. } | SizeDistribution::Weighted(_));
    let bounds = blocks.block_bounds().filter(|(smallest, _)| is_list && *smallest > 0);
    if bounds.is_none_or(|(_, largest)| largest > nature.largest_block) {
        return refuse(format!("draws blocks in {name:?} that are empty, without bounds, or larger than its largest"));
    }
    let Some(transfer) = nature.transfer else { return Ok(()) };
    let one = transfer.extent == Extent::Bytes(transfer.block_bytes);
    match transfer.pattern {
        Pattern::Random { .. } if !one => refuse(format!(
            "draws sizes and places of blocks in {name:?}, which goes for one block at a time, each anywhere"
        )),
        Pattern::Random { distribution: Distribution::Permutation, .. }
            if action.fileset.is_none()
                || matches!(action.choice, FileChoice::Concatenated | FileChoice::Partitioned) =>
        {
            refuse(format!(
                "draws sizes of blocks in {name:?} that come once each, which needs a fileset of its own and files chosen one by one"
            ))
        }
        Pattern::Cursor { .. }
            if one && !matches!(action.choice, FileChoice::Uniform | FileChoice::Same | FileChoice::Rotation) =>
        {
            refuse(format!(
                "goes through files by blocks of drawn sizes in {name:?}, of which nobody knows how many there are"
            ))
        }
        _ => Ok(()),
    }
}

/// Stamps need whole units, and data that only the load itself writes.
fn check_stamps(workload: &Workload, action: &Action) -> Result<(), LoadError> {
    if !workload.data.stamped {
        return Ok(());
    }
    let whole = |bytes: u64| bytes.is_multiple_of(stamp::UNIT as u64);
    let name = &action.name;
    let nature = action.operation.nature();
    if nature.to.is_some() {
        return refuse(format!("stamps data with the file it is in, and moves files to other names, in {name:?}"));
    }
    let fits = match (nature.data, nature.transfer) {
        (Data::Copied | Data::Resized, _) => {
            return refuse(format!("stamps data and changes it without writing, in {name:?}"));
        }
        (Data::Written, None) => whole(nature.largest_block) || action.blocks.is_some(),
        (_, Some(transfer)) => {
            let extent = match transfer.extent {
                Extent::Whole => true,
                Extent::Bytes(bytes) => whole(bytes) || (action.blocks.is_some() && bytes == transfer.block_bytes),
            };
            let place = match transfer.pattern {
                Pattern::FromRandom { align_bytes }
                | Pattern::Random { align_bytes, .. }
                | Pattern::Bursts { align_bytes, .. } => whole(align_bytes),
                Pattern::Skip { skip_bytes } => whole(skip_bytes),
                Pattern::Stride { gap_bytes, .. } => whole(gap_bytes.unsigned_abs()),
                Pattern::FromStart | Pattern::Cursor { .. } | Pattern::Runs(_) | Pattern::Written { .. } => true,
            };
            extent && place && (whole(transfer.block_bytes) || action.blocks.is_some())
        }
        _ => true,
    };
    let drawn = match &action.blocks {
        // Those of a range are multiples of the smallest.
        Some(SizeDistribution::Uniform { minimum, .. }) => whole(*minimum),
        Some(SizeDistribution::Weighted(sizes)) => sizes.iter().all(|(bytes, _)| whole(*bytes)),
        _ => true,
    };
    if fits && drawn {
        return Ok(());
    }
    refuse(format!("stamps data, which needs blocks, sizes and offsets that are multiples of 512 bytes, in {name:?}"))
}
