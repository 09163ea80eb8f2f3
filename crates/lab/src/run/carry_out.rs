//! Carrying out a plan: every trial that is not finished, in the schedule's order, each recorded as it ends.

pub use crate::trial::LabOptions;
use crate::{
    events::{Event, ProgressSink},
    machine::Machine,
    place::{
        device::{DeviceLock, Purpose, Refusal, ScratchDevice},
        undo::{self, JournalError, UndoError},
        work_directory::{WorkDirectory, WorkDirectoryError},
    },
    run::{
        schedule::{Schedule, ScheduleError, trial_seed},
        steady,
    },
    trial::{AgentExecutor, Executor, ExecutorError, Job, TrialEnd},
};
use fstone_model::{Plan, Trial, result::TrialId, study::DeviceSpec};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// Is given every trial as it ends.
pub trait Recorder {
    /// A trial begins. Its end will follow, unless the run is cancelled or killed.
    ///
    /// # Errors
    /// When it cannot be recorded; the run ends.
    fn trial_started(&mut self, id: TrialId, position: u32) -> Result<(), RecorderError>;

    /// A trial has a result. It must be safe when this returns.
    ///
    /// # Errors
    /// When it cannot be recorded; the run ends.
    fn trial_finished(&mut self, trial: &Trial) -> Result<(), RecorderError>;
}

/// What a recorder may fail with.
pub type RecorderError = Box<dyn std::error::Error + Send + Sync>;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// Every trial has a result.
    Completed,
    /// It was cancelled; what was finished is recorded, and the rest can be resumed.
    Cancelled,
}

/// Why a run ended before its time; completes "failed to carry out the study: ". Trials finished until then are
/// recorded.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The schedule.
    #[error("scheduling the trials: {0}")]
    Schedule(ScheduleError),
    /// The work directory.
    #[error("using the work directory: {0}")]
    WorkDirectory(WorkDirectoryError),
    /// The journal of undo.
    #[error("keeping the journal of undo: {0}")]
    Journal(JournalError),
    /// A device that the study names may not be formatted.
    #[error("claiming the device: {0}")]
    Device(Box<Refusal>),
    /// A trial.
    #[error("trial {} of {label:?}: {cause}", id.repetition + 1)]
    Trial {
        /// Which.
        id: TrialId,
        /// Its cell's label.
        label: String,
        /// Why.
        cause: ExecutorError,
    },
    /// A trial's device or mount point could not be given back. It is recorded.
    #[error(
        "after trial {} of {label:?}, which is recorded: {}; when that is settled, run `fstone clean` and resume",
        id.repetition + 1, undo.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    Stuck {
        /// Which.
        id: TrialId,
        /// Its cell's label.
        label: String,
        /// What is left.
        undo: Vec<UndoError>,
    },
    /// A trial could not be recorded.
    #[error("recording trial {} of cell {}: {cause}", id.repetition + 1, id.cell)]
    Recorder {
        /// Which.
        id: TrialId,
        /// Why.
        cause: RecorderError,
    },
}

impl LabError {
    /// The error of the system, or of the recorder, that this one comes from.
    #[must_use]
    pub fn root(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let system = match self {
            Self::Recorder { cause, .. } => return Some(&**cause),
            Self::WorkDirectory(WorkDirectoryError::File { cause, .. }) => Some(cause),
            Self::Journal(cause) => cause.system(),
            Self::Trial { cause, .. } => cause.system(),
            _ => None,
        };
        system.map(|error| error as _)
    }
}

impl From<ScheduleError> for LabError {
    fn from(cause: ScheduleError) -> Self {
        Self::Schedule(cause)
    }
}

impl From<WorkDirectoryError> for LabError {
    fn from(cause: WorkDirectoryError) -> Self {
        Self::WorkDirectory(cause)
    }
}

impl From<JournalError> for LabError {
    fn from(cause: JournalError) -> Self {
        Self::Journal(cause)
    }
}

/// Carries out what is left of a plan on this machine. Whichever way it ends, everything made is undone.
///
/// `finished` are trials of an earlier run of the same plan that is resumed; empty for a new one. When `cancel` becomes
/// true, the current trial is given up and not recorded.
///
/// # Errors
/// A [`LabError`], when the lab failed. A trial that fails is a result.
pub fn carry_out(
    plan: &Plan,
    options: &LabOptions,
    finished: &[Trial],
    recorder: &mut dyn Recorder,
    sink: &dyn ProgressSink,
    cancel: &AtomicBool,
) -> Result<RunEnd, LabError> {
    carry_out_on(&Machine::host(), plan, options, finished, recorder, sink, cancel)
}

/// The same on any machine, such as a fake one.
///
/// # Errors
/// As [`carry_out`].
pub fn carry_out_on(
    machine: &Machine,
    plan: &Plan,
    options: &LabOptions,
    finished: &[Trial],
    recorder: &mut dyn Recorder,
    sink: &dyn ProgressSink,
    cancel: &AtomicBool,
) -> Result<RunEnd, LabError> {
    let schedule = Schedule::new(plan, finished)?;
    clean_up(machine, options, sink);
    let work = WorkDirectory::lock(&options.work_directory)?;
    let locks = claim_named_devices(plan, options, machine)?;
    let mut executor = AgentExecutor::new(machine, &work, options, cancel)?;
    let ended = run_trials(&mut executor, schedule, plan, recorder, sink, cancel);
    // What is left was reported with the trial that left it, and is in the journal for `clean`.
    drop(executor.close());
    drop(locks);
    ended
}

/// What a killed run left is undone first, and said. What cannot be undone, or found out, is in the way of the journal
/// that comes next, which then says so.
fn clean_up(machine: &Machine, options: &LabOptions, sink: &dyn ProgressSink) {
    for leftover in undo::clean(&options.work_directory, false, machine).unwrap_or_default() {
        if leftover.error.is_none() {
            sink.event(&Event::CleanedUp { what: &leftover.what });
        }
    }
}

impl From<Refusal> for LabError {
    fn from(refusal: Refusal) -> Self {
        Self::Device(Box::new(refusal))
    }
}

/// The schedule's loop, whatever carries the trials out.
///
/// # Errors
/// As [`carry_out`].
pub fn run_trials(
    executor: &mut dyn Executor,
    mut schedule: Schedule<'_>,
    plan: &Plan,
    recorder: &mut dyn Recorder,
    sink: &dyn ProgressSink,
    cancel: &AtomicBool,
) -> Result<RunEnd, LabError> {
    let started = Instant::now();
    let mut made = 0;
    let direct = plan.cells.iter().flat_map(|cell| &cell.steps).any(|step| step.action.is_direct());
    loop {
        if cancel.load(Ordering::Acquire) {
            return Ok(RunEnd::Cancelled);
        }
        let Some(id) = schedule.next_trial() else { return Ok(RunEnd::Completed) };
        let cell = &plan.cells[id.cell as usize];
        let position = schedule.finished();
        let total = schedule.total();
        sink.event(&Event::TrialStarted {
            id,
            label: &cell.label,
            finished: position,
            total,
            remaining: remaining(started.elapsed(), made, total - position),
        });
        let recording = |cause| LabError::Recorder { id, cause };
        recorder.trial_started(id, position).map_err(recording)?;
        let seed = trial_seed(plan, id.repetition);
        let end = executor.run(&Job { cell, id, position, seed, direct, sink });
        let label = || cell.label.clone();
        let (mut trial, stuck) = match end.map_err(|cause| LabError::Trial { id, label: label(), cause })? {
            TrialEnd::Finished(trial) => (trial, None),
            TrialEnd::Cancelled => return Ok(RunEnd::Cancelled),
            TrialEnd::Stuck(trial, undo) => (trial, Some(undo)),
        };
        steady::mark(&mut trial);
        recorder.trial_finished(&trial).map_err(recording)?;
        sink.event(&Event::TrialFinished(&trial));
        if let Some(undo) = stuck {
            return Err(LabError::Stuck { id, label: label(), undo });
        }
        schedule.finish(&trial)?;
        made += 1;
    }
}

/// By the mean time of the trials made until now; unknown before the first.
fn remaining(elapsed: Duration, made: u32, left: u32) -> Option<Duration> {
    (made > 0).then(|| elapsed.mul_f64(f64::from(left) / f64::from(made)))
}

/// A device that may not be destroyed, or is another run's, ends a run before it has begun. The locks are held until the
/// run's end, so that no other run takes a device between two trials.
fn claim_named_devices(plan: &Plan, options: &LabOptions, machine: &Machine) -> Result<Vec<DeviceLock>, Refusal> {
    let mut locks: Vec<DeviceLock> = Vec::new();
    let mut claimed: Vec<(u32, u32)> = Vec::new();
    for cell in &plan.cells {
        let DeviceSpec::Block { path } = &cell.device else { continue };
        let purpose = Purpose::Named { allowed: options.allow_destroy.clone() };
        let device = ScratchDevice::claim(Path::new(path), purpose, 0, &*machine.devices, &*machine.runner)?;
        if !claimed.contains(&device.number()) {
            locks.push(machine.devices.lock(device.path(), device.number())?);
            claimed.push(device.number());
        }
    }
    Ok(locks)
}
