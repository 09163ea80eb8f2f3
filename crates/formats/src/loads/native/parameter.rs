//! Numbers of a load that a study, a factor or the command line may change, whatever format the load was written in.

use fstone_model::{
    Workload, units,
    workload::{
        Action, Actions, Amount, Directories, Extent, Fileset, MAXIMUM_FILES, MAXIMUM_RANKS, MAXIMUM_THREADS,
        Operation, Pattern, Phase, SizeDistribution, Step, ThreadGroup, Transfer,
    },
};
use std::{fmt, time::Duration};

fstone_model::named! {
    /// A number of a load.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Parameter: name, ALL {
        /// Threads of the measured group.
        Threads => "threads",
        Files => "files",
        Directories => "directories",
        /// Size of every file, bytes.
        FileSize => "file-size",
        /// Size of all files together, bytes.
        TotalSize => "total-size",
        /// Size of every read and write, bytes.
        BlockSize => "block-size",
        /// Time the load runs, nanoseconds.
        Duration => "duration",
        Operations => "operations",
        /// Requests in flight per thread.
        QueueDepth => "queue-depth",
        /// Processes that carry the load out together, started by a launcher of MPI.
        Ranks => "ranks",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A whole number from 1.
    Count,
    /// A size in bytes.
    Size,
    Time,
}

impl Parameter {
    pub const fn about(self) -> &'static str {
        match self {
            Self::Threads => "Number of threads.",
            Self::Files => "Number of files at the start.",
            Self::Directories => "Number of directories that hold the files.",
            Self::FileSize => "Size of each file.",
            Self::TotalSize => "Size of all files together.",
            Self::BlockSize => "Size of each read and write.",
            Self::Duration => "Duration of the load.",
            Self::Operations => "Number of operations.",
            Self::QueueDepth => "Requests in flight per thread.",
            Self::Ranks => "Number of processes that run the load together, started by `launch`.",
        }
    }

    pub const fn quantity(self) -> Quantity {
        match self {
            Self::Threads | Self::Files | Self::Directories | Self::Operations | Self::QueueDepth | Self::Ranks => {
                Quantity::Count
            }
            Self::FileSize | Self::TotalSize | Self::BlockSize => Quantity::Size,
            Self::Duration => Quantity::Time,
        }
    }

    /// A value of it as a level of a factor is called: "16 threads", "4 KiB blocks".
    pub fn level(self, value: u64) -> String {
        let counted = |one: &str| if value == 1 { format!("1 {one}") } else { format!("{value} {one}s") };
        match self {
            Self::Threads => counted("thread"),
            Self::Files => counted("file"),
            Self::Directories if value == 1 => "1 directory".into(),
            Self::Directories => format!("{value} directories"),
            Self::Operations => counted("operation"),
            Self::FileSize => format!("{} files", units::format_bytes(value)),
            Self::TotalSize => format!("{} in all", units::format_bytes(value)),
            Self::BlockSize => format!("{} blocks", units::format_bytes(value)),
            Self::Duration => units::format_duration(Duration::from_nanos(value)),
            Self::QueueDepth => format!("queue depth {value}"),
            Self::Ranks => counted("rank"),
        }
    }
}

impl Parameter {
    /// A value of it as a command takes it: a number of things, bytes or seconds.
    pub fn plain(self, value: u64) -> String {
        match self.quantity() {
            Quantity::Count | Quantity::Size => value.to_string(),
            Quantity::Time => Duration::from_nanos(value).as_secs_f64().to_string(),
        }
    }

    const fn absent(self) -> &'static str {
        match self {
            Self::Threads => "the load has no measured threads",
            Self::Files | Self::FileSize | Self::TotalSize => "the load has no files",
            Self::Directories => "the load's files are not in directories side by side",
            Self::BlockSize => "the load moves no data",
            Self::Duration => "the load is not limited by time",
            Self::Operations => "the load is not limited by a number of operations",
            Self::QueueDepth => "none of the load's threads can have several requests in flight",
            Self::Ranks => "no launcher starts the load; give it one: launch = \"mpirun\"",
        }
    }

    /// A value of it as one writes it: "16", "4 KiB", "30 s".
    pub fn written(self, value: u64) -> String {
        match self.quantity() {
            Quantity::Count => value.to_string(),
            Quantity::Size => units::format_bytes(value),
            Quantity::Time => units::format_duration(Duration::from_nanos(value)),
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Why a parameter cannot be set; completes "failed to set threads: ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("{}", .0.absent())]
    Absent(Parameter),
    /// It could change several things that are not alike.
    #[error("which {what} is meant is not said: the load has {names}")]
    Ambiguous {
        /// Of what it has several.
        what: &'static str,
        names: String,
    },
    #[error("{0}")]
    OutOfRange(String),
}

/// Sets a parameter of a load. Sizes are bytes, times nanoseconds.
///
/// - `threads`: of the only group of every measured phase, when they have the same number.
/// - `duration`, `operations`: of every measured phase that is limited by it, when they are limited alike; where none has a duration, of the
///   groups. They change a limit that is there and do not add one, because that would change what the load's result means.
/// - `files`, `directories`, `file-size`, `total-size`: of the only fileset. `total-size` is shared out evenly over a
///   number of files, and otherwise is the amount.
/// - `ranks`: of a load that a launcher starts.
/// - `queue-depth`: of the groups whose engine can have several requests in flight, when they have as many.
/// - `block-size`: of every read and write of the measured phases; operations that moved
///   one block still do, and offsets that were multiples of the block still are.
///
/// # Errors
/// When the load has no such thing or several, or the value makes no sense. The load is unchanged then.
pub(super) fn apply(workload: &mut Workload, parameter: Parameter, value: u64) -> Result<(), ApplyError> {
    in_bounds(parameter, value)?;
    let small =
        || u32::try_from(value).map_err(|_| ApplyError::OutOfRange(format!("{value} {parameter} are too many")));
    match parameter {
        Parameter::Threads => {
            let threads = small()?;
            for group in groups_alike(workload)? {
                group.threads = threads;
            }
        }
        Parameter::Files | Parameter::Directories | Parameter::FileSize | Parameter::TotalSize => {
            set_of_fileset(only_fileset(workload, parameter)?, parameter, value)?;
        }
        Parameter::BlockSize => {
            let mut found = false;
            for action in measured_actions(workload) {
                found |= set_block(action, value);
            }
            if !found {
                return Err(ApplyError::Absent(parameter));
            }
        }
        Parameter::Duration => {
            let time = Some(Duration::from_nanos(value));
            match phases_alike(workload, parameter, |phase| phase.stop.time) {
                Ok(phases) => phases.into_iter().for_each(|phase| phase.stop.time = time),
                // The groups have limits of their own, as fio's jobs have.
                Err(ApplyError::Absent(_)) => groups_limited_alike(workload)?.for_each(|group| group.stop.time = time),
                Err(error) => return Err(error),
            }
        }
        Parameter::Operations => {
            for phase in phases_alike(workload, parameter, |phase| phase.stop.operations)? {
                phase.stop.operations = Some(value);
            }
        }
        Parameter::QueueDepth => set_queue_depth(workload, small()?)?,
        Parameter::Ranks => match &mut workload.launch {
            Some(launch) => launch.ranks = small()?,
            None => return Err(ApplyError::Absent(parameter)),
        },
    }
    Ok(())
}

/// Sets a parameter of one part of a load, by its name: threads and block sizes of a group, durations and operations of a
/// phase or a group that is limited by them, numbers of files of a fileset.
///
/// # Errors
/// When the load has no such part, or the value makes no sense. The load is unchanged then.
pub(super) fn apply_to(
    workload: &mut Workload,
    part: &str,
    parameter: Parameter,
    value: u64,
) -> Result<(), ApplyError> {
    in_bounds(parameter, value)?;
    let mut found = false;
    match parameter {
        Parameter::Files | Parameter::Directories | Parameter::FileSize | Parameter::TotalSize => {
            for fileset in workload.filesets.iter_mut().filter(|fileset| fileset.name == part) {
                set_of_fileset(fileset, parameter, value)?;
                found = true;
            }
        }
        Parameter::Duration | Parameter::Operations => {
            let stops = workload.phases.iter_mut().flat_map(|phase| {
                let of_groups = phase.groups.iter_mut().map(|group| (&group.name, &mut group.stop));
                std::iter::once((&phase.name, &mut phase.stop)).chain(of_groups)
            });
            for (_, stop) in stops.filter(|(name, _)| *name == part) {
                match parameter {
                    Parameter::Duration if stop.time.is_some() => stop.time = Some(Duration::from_nanos(value)),
                    Parameter::Operations if stop.operations.is_some() => stop.operations = Some(value),
                    _ => continue,
                }
                found = true;
            }
        }
        Parameter::Threads | Parameter::BlockSize => {
            let groups = workload.phases.iter_mut().flat_map(|phase| &mut phase.groups);
            for group in groups.filter(|group| group.name == part) {
                if parameter == Parameter::Threads {
                    group.threads = u32::try_from(value).expect("within its bounds");
                    found = true;
                } else {
                    for action in actions_of(group) {
                        found |= set_block(action, value);
                    }
                }
            }
        }
        Parameter::QueueDepth => {
            let depth = u32::try_from(value).expect("within its bounds");
            for (phase, group) in queueing(workload, |_, group| group.name == part) {
                workload.phases[phase].groups[group].io.queue_depth = Some(depth);
                found = true;
            }
        }
        // Of the whole load.
        Parameter::Ranks => {}
    }
    if found { Ok(()) } else { Err(ApplyError::Absent(parameter)) }
}

/// Names of the parts of a load for which [`apply_to`] sets this parameter.
pub(super) fn parts(workload: &Workload, parameter: Parameter) -> Vec<String> {
    let phases = || workload.phases.iter();
    let names = workload.filesets.iter().map(|fileset| &fileset.name).chain(phases().map(|phase| &phase.name));
    let groups = phases().flat_map(|phase| &phase.groups).map(|group| &group.name);
    let mut parts: Vec<String> = Vec::new();
    for name in names.chain(groups) {
        let takes = || apply_to(&mut workload.clone(), name, parameter, any_value(parameter)).is_ok();
        if !parts.contains(name) && takes() {
            parts.push(name.clone());
        }
    }
    parts
}

fn in_bounds(parameter: Parameter, value: u64) -> Result<(), ApplyError> {
    if value == 0 {
        return Err(ApplyError::OutOfRange(format!("{parameter} must be at least 1")));
    }
    let limit = match parameter {
        Parameter::Threads => MAXIMUM_THREADS,
        Parameter::QueueDepth => u64::from(u32::MAX),
        Parameter::Ranks => u64::from(MAXIMUM_RANKS),
        Parameter::Files | Parameter::Directories => MAXIMUM_FILES,
        _ => u64::MAX,
    };
    if value > limit {
        return Err(ApplyError::OutOfRange(format!("{value} {parameter} are too many: at most {limit}")));
    }
    Ok(())
}

/// The groups that can have several requests in flight, of those that are `wanted`: the places of their phases, and of
/// themselves in these.
fn queueing(workload: &Workload, wanted: impl Fn(&Phase, &ThreadGroup) -> bool) -> Vec<(usize, usize)> {
    let groups = workload.phases.iter().enumerate().flat_map(|(number, phase)| {
        phase.groups.iter().enumerate().map(move |(index, group)| ((number, index), phase, group))
    });
    let queueing = groups.filter(|(_, phase, group)| wanted(phase, group) && workload.one_at_a_time(group).is_none());
    queueing.map(|(place, ..)| place).collect()
}

/// Of all measured groups that can have several requests in flight, when they have as many.
fn set_queue_depth(workload: &mut Workload, depth: u32) -> Result<(), ApplyError> {
    let places = queueing(workload, |phase, _| phase.measured);
    let groups = || places.iter().map(|(phase, group)| &workload.phases[*phase].groups[*group]);
    let mut depths = groups().map(|group| workload.io_of(group).queue_depth);
    let first = depths.next().ok_or(ApplyError::Absent(Parameter::QueueDepth))?;
    if depths.any(|depth| depth != first) {
        return Err(ambiguous("group of threads", groups().map(|group| group.name.as_str())));
    }
    workload.io.queue_depth = depth;
    for (phase, group) in places {
        workload.phases[phase].groups[group].io.queue_depth = None;
    }
    // Groups that cannot use it are not given it.
    *workload = workload.clone().without_unused_depths();
    Ok(())
}

fn set_of_fileset(fileset: &mut Fileset, parameter: Parameter, value: u64) -> Result<(), ApplyError> {
    match (parameter, &mut fileset.directories) {
        (Parameter::Files, _) => fileset.amount = Amount::Files(value),
        (Parameter::Directories, Directories::Flat { count, .. }) => *count = value,
        (Parameter::FileSize, _) => fileset.size = SizeDistribution::Fixed(value),
        (Parameter::TotalSize, _) => set_total(fileset, value)?,
        _ => return Err(ApplyError::Absent(parameter)),
    }
    Ok(())
}

/// A value that every load takes that has the parameter at all: 2^20 divides evenly over few files.
pub(super) const fn any_value(parameter: Parameter) -> u64 {
    if matches!(parameter, Parameter::Threads | Parameter::Ranks) { 1 } else { 1 << 20 }
}

fn set_total(fileset: &mut Fileset, total: u64) -> Result<(), ApplyError> {
    let Amount::Files(files) = fileset.amount else {
        fileset.amount = Amount::Bytes(total);
        return Ok(());
    };
    if files == 0 {
        return Err(ApplyError::Absent(Parameter::TotalSize));
    }
    if !total.is_multiple_of(files) {
        let total = units::format_bytes(total);
        return Err(ApplyError::OutOfRange(format!("{total} cannot be shared evenly over {files} files")));
    }
    fileset.size = SizeDistribution::Fixed(total / files);
    Ok(())
}

fn set_block(action: &mut Action, value: u64) -> bool {
    let drawn = action.blocks.take().as_ref().and_then(SizeDistribution::block_bounds).map(|(smallest, _)| smallest);
    let operation = &mut action.operation;
    let resize = |transfer: &mut Transfer| {
        if transfer.extent == Extent::Bytes(transfer.block_bytes) {
            transfer.extent = Extent::Bytes(value);
        }
        if let Pattern::Random { align_bytes, .. } | Pattern::FromRandom { align_bytes } = &mut transfer.pattern
            && *align_bytes == drawn.unwrap_or(transfer.block_bytes)
        {
            *align_bytes = value;
        }
        transfer.block_bytes = value;
    };
    if let Operation::Fill { block_bytes, .. } = operation {
        *block_bytes = value;
        return true;
    }
    if let Operation::Create { block_bytes, .. } = operation {
        let writes = *block_bytes > 0;
        *block_bytes = if writes { value } else { 0 };
        return writes;
    }
    operation.transfer_mut().map(resize).is_some()
}

fn measured_actions(workload: &mut Workload) -> impl Iterator<Item = &mut Action> {
    let measured = workload.phases.iter_mut().filter(|phase| phase.measured);
    measured.flat_map(|phase| &mut phase.groups).flat_map(actions_of)
}

fn actions_of(group: &mut ThreadGroup) -> Vec<&mut Action> {
    match &mut group.actions {
        Actions::Mix(mix) => mix.iter_mut().map(|weighted| &mut weighted.action).collect(),
        Actions::Sequence(actions) => actions.iter_mut().collect(),
        Actions::Ratio { first, second, .. } => vec![first, second],
        Actions::Program(steps) => Step::actions_mut(steps),
    }
}

/// The measured phases that have a limit, which is the same for all.
fn phases_alike<T: PartialEq>(
    workload: &mut Workload,
    parameter: Parameter,
    limit: impl Fn(&Phase) -> Option<T>,
) -> Result<Vec<&mut Phase>, ApplyError> {
    let measured = workload.phases.iter_mut().filter(|phase| phase.measured);
    let limited: Vec<&mut Phase> = measured.filter(|phase| limit(phase).is_some()).collect();
    let first = limited.first().and_then(|phase| limit(phase)).ok_or(ApplyError::Absent(parameter))?;
    if limited.iter().any(|phase| limit(phase).as_ref() != Some(&first)) {
        return Err(ambiguous("phase", limited.iter().map(|phase| phase.name.as_str())));
    }
    Ok(limited)
}

/// The measured groups that have a time limit, which is the same for all.
fn groups_limited_alike(workload: &mut Workload) -> Result<impl Iterator<Item = &mut ThreadGroup>, ApplyError> {
    let measured = workload.phases.iter_mut().filter(|phase| phase.measured);
    let groups = measured.flat_map(|phase| &mut phase.groups).filter(|group| group.stop.time.is_some());
    let limited: Vec<&mut ThreadGroup> = groups.collect();
    let first = limited.first().map(|group| group.stop.time).ok_or(ApplyError::Absent(Parameter::Duration))?;
    if limited.iter().any(|group| group.stop.time != first) {
        return Err(ambiguous("group of threads", limited.iter().map(|group| group.name.as_str())));
    }
    Ok(limited.into_iter())
}

/// The groups of the measured phases: one in each, all with as many threads.
fn groups_alike(workload: &mut Workload) -> Result<Vec<&mut ThreadGroup>, ApplyError> {
    let measured: Vec<&mut Phase> = workload.phases.iter_mut().filter(|phase| phase.measured).collect();
    let side_by_side = measured.iter().any(|phase| phase.groups.len() > 1);
    let groups: Vec<&mut ThreadGroup> = measured.into_iter().flat_map(|phase| &mut phase.groups).collect();
    let first = groups.first().map(|group| group.threads).ok_or(ApplyError::Absent(Parameter::Threads))?;
    if side_by_side || groups.iter().any(|group| group.threads != first) {
        return Err(ambiguous("group of threads", groups.iter().map(|group| group.name.as_str())));
    }
    Ok(groups)
}

fn only_fileset(workload: &mut Workload, parameter: Parameter) -> Result<&mut Fileset, ApplyError> {
    if workload.filesets.len() > 1 {
        return Err(ambiguous("fileset", workload.filesets.iter().map(|fileset| fileset.name.as_str())));
    }
    workload.filesets.first_mut().ok_or(ApplyError::Absent(parameter))
}

fn ambiguous<'n>(what: &'static str, names: impl Iterator<Item = &'n str>) -> ApplyError {
    ApplyError::Ambiguous { what, names: names.collect::<Vec<_>>().join(", ") }
}
