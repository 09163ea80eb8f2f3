//! Carrying out a plan: every trial that is not finished, in the schedule's order, each recorded as it ends.

pub use crate::trial::LabOptions;
use crate::{
    events::{Event, ProgressSink},
    inventory::takes_host_time,
    machine::Machine,
    place::{
        device::{DeviceLock, Purpose, Refusal, ScratchDevice},
        presence::Presence,
        undo::{self, JournalError, UndoError},
        work_directory::{WorkDirectory, WorkDirectoryError},
    },
    run::{
        alike::FirstTrials,
        lanes::{self, Places},
        schedule::{Schedule, ScheduleError, trial_seed},
        steady,
    },
    trial::{AgentExecutor, Executor, ExecutorError, Job, TrialEnd},
};
use fstone_model::{Plan, Trial, outcome::Reason, result::TrialId, study::DeviceSpec};
use std::{
    path::{Path, PathBuf},
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

pub type RecorderError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    Completed,
    /// It was cancelled; what was finished is recorded, and the rest can be resumed.
    Cancelled,
    /// The first trials of all rows failed alike, in this way: the same step, the same outcome, the same first words. They
    /// are recorded, and the rest can be resumed.
    FailedAlike(Reason),
}

/// Why a run ended before its time; completes "failed to carry out the study: ". Trials finished until then are
/// recorded.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error("scheduling the trials: {0}")]
    Schedule(ScheduleError),
    #[error("using the work directory: {0}")]
    WorkDirectory(WorkDirectoryError),
    #[error("keeping the journal of undo: {0}")]
    Journal(JournalError),
    #[error("claiming the device: {0}")]
    Device(Box<Refusal>),
    #[error("trial {} of {label:?}: {cause}", id.number())]
    Trial { id: TrialId, label: String, cause: ExecutorError },
    #[error(
        "after trial {} of {label:?}, which is recorded: {}; when that is settled, run `fstone clean` and resume",
        id.number(), undo.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    Stuck { id: TrialId, label: String, undo: Vec<UndoError> },
    #[error(
        "after a warm-up trial of {label:?}: {}; when that is settled, run `fstone clean` and resume",
        undo.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    StuckInWarmUp { label: String, undo: Vec<UndoError> },
    #[error("recording trial {} of cell {}: {cause}", id.repetition + 1, id.cell)]
    Recorder { id: TrialId, cause: RecorderError },
}

impl LabError {
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

/// The same with any schedule of the plan's trials: under a budget, of some blocks, or of single trials.
pub fn carry_out_schedule(
    schedule: Schedule<'_>,
    options: &LabOptions,
    finished: &[Trial],
    recorder: &mut dyn Recorder,
    sink: &dyn ProgressSink,
    cancel: &AtomicBool,
) -> Result<RunEnd, LabError> {
    let plan = schedule.plan();
    begin(&Machine::host(), schedule, &Context { plan, options, finished, sink, cancel }, recorder)
}

/// The same on any machine, such as a fake one.
pub fn carry_out_on(
    machine: &Machine,
    plan: &Plan,
    options: &LabOptions,
    finished: &[Trial],
    recorder: &mut dyn Recorder,
    sink: &dyn ProgressSink,
    cancel: &AtomicBool,
) -> Result<RunEnd, LabError> {
    begin(machine, Schedule::new(plan, finished)?, &Context { plan, options, finished, sink, cancel }, recorder)
}

fn begin(
    machine: &Machine,
    schedule: Schedule<'_>,
    context: &Context<'_>,
    recorder: &mut dyn Recorder,
) -> Result<RunEnd, LabError> {
    let Context { plan, options, sink, cancel, .. } = *context;
    clean_up(machine, &options.work_directory, &[], sink);
    let work = WorkDirectory::lock(&options.work_directory)?;
    let locks = claim_named_devices(plan, options, machine)?;
    let lanes = lanes::count(plan, options);
    if lanes > 1 {
        let places = Places::make(lanes, &work, machine)?;
        return places.work(plan, options, cancel, |executor| run_trials(executor, schedule, context, recorder))?;
    }
    let mut executor = AgentExecutor::new(machine, &work, options, cancel)?;
    let ended = run_trials(&mut executor, schedule, context, recorder);
    for left in executor.close() {
        sink.event(&Event::LeftBehind { error: &left.to_string() });
    }
    drop(locks);
    ended
}

/// What a killed run left is undone first, and said. What cannot be undone, or found out, is in the way of the journal
/// that comes next, which then says so.
pub fn clean_up(machine: &Machine, work_directory: &Path, may_lose: &[PathBuf], sink: &dyn ProgressSink) {
    for leftover in undo::clean(work_directory, false, may_lose, machine).unwrap_or_default() {
        match &leftover.error {
            None => sink.event(&Event::CleanedUp { what: &leftover.what }),
            Some(error) => sink.event(&Event::NotCleanedUp { error: &format!("{}: {error}", leftover.what) }),
        }
    }
}

impl From<Refusal> for LabError {
    fn from(refusal: Refusal) -> Self {
        Self::Device(Box::new(refusal))
    }
}

struct Context<'a> {
    plan: &'a Plan,
    options: &'a LabOptions,
    finished: &'a [Trial],
    sink: &'a dyn ProgressSink,
    cancel: &'a AtomicBool,
}

fn run_trials(
    executor: &mut dyn Executor,
    mut schedule: Schedule<'_>,
    context: &Context<'_>,
    recorder: &mut dyn Recorder,
) -> Result<RunEnd, LabError> {
    let Context { plan, options, sink, cancel, .. } = *context;
    let mut made = 0;
    let direct = plan.cells.iter().flat_map(|cell| &cell.steps).any(|step| step.action.is_direct());
    let mut first = FirstTrials::new(plan, context.finished);
    if let Some(end) = warm_up(executor, &schedule, context, direct)? {
        return Ok(end);
    }
    // What else is going on does not matter in virtual time.
    let presence = options.presence.as_deref().filter(|_| takes_host_time(plan));
    let mut others = OtherRuns::new(presence, sink);
    let started = Instant::now();
    loop {
        if cancel.load(Ordering::Acquire) {
            return Ok(RunEnd::Cancelled);
        }
        let next = schedule.next_trial();
        if let Some(words) = schedule.looked() {
            sink.event(&Event::Looked { words: &words });
        }
        let Some(id) = next else { return Ok(RunEnd::Completed) };
        let cell = &plan.cells[id.cell as usize];
        let (position, finished) = (schedule.position(), schedule.finished());
        let (total, left) = (schedule.total(), schedule.budget_left());
        sink.event(&Event::TrialStarted {
            id,
            label: &cell.label,
            finished,
            total: left.is_none().then_some(total),
            remaining: left.or_else(|| remaining(started.elapsed(), made, total.saturating_sub(finished))),
        });
        let recording = |cause| LabError::Recorder { id, cause };
        recorder.trial_started(id, position).map_err(recording)?;
        let at_the_start = others.look();
        let seed = trial_seed(plan, id.repetition);
        executor.look_ahead(&mut schedule.upcoming().map(|id| (id, trial_seed(plan, id.repetition))));
        let end = executor.run(&Job { cell, id, position, seed, direct, sink, explorer: None });
        let label = || cell.label.clone();
        let (mut trial, stuck) = match end.map_err(|cause| LabError::Trial { id, label: label(), cause })? {
            TrialEnd::Finished(trial) => (trial, None),
            TrialEnd::Cancelled => return Ok(RunEnd::Cancelled),
            TrialEnd::Stuck(trial, undo) => (trial, Some(undo)),
        };
        steady::mark(&mut trial);
        // Nothing else bears on virtual time.
        if let Some(who) = at_the_start.or_else(|| others.look())
            && !cell.kernel.is_exact()
        {
            trial.warnings.push(format!("another fstone run was in progress on this machine ({who})"));
        }
        recorder.trial_finished(&trial).map_err(recording)?;
        sink.event(&Event::TrialFinished(&trial));
        if let Some(undo) = stuck {
            return Err(LabError::Stuck { id, label: label(), undo });
        }
        schedule.finish(&trial)?;
        made += 1;
        if let Some(reason) = first.take(&trial)
            && !options.keep_going
            && schedule.budget_left().map_or(schedule.total() > schedule.finished(), |left| !left.is_zero())
        {
            return Ok(RunEnd::FailedAlike(reason));
        }
    }
}

struct OtherRuns<'a> {
    presence: Option<&'a Presence>,
    sink: &'a dyn ProgressSink,
    told: bool,
}

impl<'a> OtherRuns<'a> {
    const fn new(presence: Option<&'a Presence>, sink: &'a dyn ProgressSink) -> Self {
        Self { presence, sink, told: false }
    }

    fn look(&mut self) -> Option<String> {
        let who = self.presence.and_then(Presence::other)?;
        if !std::mem::replace(&mut self.told, true) {
            self.sink.event(&Event::OtherRun { who: &who });
        }
        Some(who)
    }
}

/// Makes the trials of the warm-up blocks. Nothing of them is recorded: a run that is resumed warms up again, for the machine
/// is cold again. `Some` when the run ends here.
fn warm_up(
    executor: &mut dyn Executor,
    schedule: &Schedule<'_>,
    context: &Context<'_>,
    direct: bool,
) -> Result<Option<RunEnd>, LabError> {
    let Context { plan, sink, cancel, .. } = *context;
    let trials: Vec<TrialId> = (0..plan.warm_up).flat_map(|block| schedule.warm_up_block(block)).collect();
    let total = u32::try_from(trials.len()).expect("ten blocks at most");
    for (finished, id) in (0..).zip(trials) {
        if cancel.load(Ordering::Acquire) {
            return Ok(Some(RunEnd::Cancelled));
        }
        let cell = &plan.cells[id.cell as usize];
        sink.event(&Event::WarmUpStarted { label: &cell.label, finished, total });
        let job =
            Job { cell, id, position: finished, seed: trial_seed(plan, id.repetition), direct, sink, explorer: None };
        match executor.run(&job).map_err(|cause| LabError::Trial { id, label: cell.label.clone(), cause })? {
            TrialEnd::Finished(_) => {}
            TrialEnd::Cancelled => return Ok(Some(RunEnd::Cancelled)),
            TrialEnd::Stuck(_, undo) => return Err(LabError::StuckInWarmUp { label: cell.label.clone(), undo }),
        }
    }
    Ok(None)
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
    let (devices, runner) = (&*machine.devices, &*machine.runner);
    for cell in &plan.cells {
        let DeviceSpec::Block { path } = &cell.device else { continue };
        let path = Path::new(path);
        if devices.facts(path).is_ok_and(|facts| claimed.contains(&facts.number)) {
            let purpose = Purpose::Named { allowed: options.allow_destroy.clone() };
            ScratchDevice::claim(path, purpose, 0, devices, runner)?;
            continue;
        }
        let (device, lock) = ScratchDevice::claim_locked(path, &options.allow_destroy, 0, devices, runner)?;
        locks.push(lock);
        claimed.push(device.number());
    }
    Ok(locks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        events::Silent,
        testing::{self, options},
        trial::FakeExecutor,
    };
    use fstone_model::{Outcome, study::Repeats};
    use std::sync::Arc;

    #[derive(Default)]
    struct Memory(Vec<Trial>);

    impl Recorder for Memory {
        fn trial_started(&mut self, _id: TrialId, _position: u32) -> Result<(), RecorderError> {
            Ok(())
        }

        fn trial_finished(&mut self, trial: &Trial) -> Result<(), RecorderError> {
            self.0.push(trial.clone());
            Ok(())
        }
    }

    fn ended(outcomes: &[Outcome], options: &LabOptions, finished: &[Trial]) -> (RunEnd, Vec<Trial>) {
        let cells = (0..).zip(outcomes).map(|(index, _)| testing::cell(index, "ext4", "", &[])).collect();
        let plan = testing::plan(cells, Repeats { min: 3, max: 3, until: None });
        let mut executor =
            (0..).zip(outcomes).fold(FakeExecutor::new(), |all, (cell, outcome)| all.ending(cell, outcome.clone()));
        let mut memory = Memory::default();
        let cancel = AtomicBool::new(false);
        let context = Context { plan: &plan, options, finished, sink: &Silent, cancel: &cancel };
        let schedule = Schedule::new(&plan, finished).expect("fits");
        let end = run_trials(&mut executor, schedule, &context, &mut memory).expect("carried out");
        (end, memory.0)
    }

    fn failed(words: &str) -> Outcome {
        Outcome::Failed(Reason::new("load", words))
    }

    #[test]
    fn what_fails_alike_in_every_row_is_not_repeated() {
        let failures = ["sh: no such program as /mnt/1", "sh: no such program as /mnt/2"].map(failed);
        let (end, trials) = ended(&failures, &options(), &[]);
        assert!(matches!(&end, RunEnd::FailedAlike(reason) if reason.step == "load"), "{end:?}");
        assert_eq!(trials.len(), 2, "the first of each row");

        let (end, rest) = ended(&failures, &options(), &trials);
        assert_eq!((end, rest.len()), (RunEnd::Completed, 4), "a run that is resumed goes on");
        let (end, rest) = ended(&failures, &options(), &trials[..1]);
        assert!(matches!(end, RunEnd::FailedAlike(_)) && rest.len() == 1, "one that was killed in between does not");
        let (end, trials) = ended(&failures, &LabOptions { keep_going: true, ..options() }, &[]);
        assert_eq!((end, trials.len()), (RunEnd::Completed, 6));
    }

    #[test]
    fn what_differs_between_rows_is_repeated() {
        let one = || failed("sh: no such program");
        for outcomes in [
            vec![one(), one(), Outcome::Completed],
            vec![Outcome::Completed, one(), one()],
            vec![one(), failed("tar: no such program")],
            vec![one(), Outcome::Hung(Reason::new("load", "sh: no such program"))],
            vec![one()],
        ] {
            assert_eq!(ended(&outcomes, &options(), &[]).0, RunEnd::Completed, "{outcomes:?}");
        }
        // Refused everywhere: there is nothing to repeat.
        let refused = Outcome::Refused(Reason::new("mount", "ext4: unknown option"));
        let (end, trials) = ended(&[refused.clone(), refused], &options(), &[]);
        assert_eq!((end, trials.len()), (RunEnd::Completed, 2));
    }

    #[test]
    fn a_run_alone_carries_no_warning_of_another() {
        let directory = tempfile::Builder::new().prefix("fstone-lab-").tempdir().expect("temporary directory");
        let presence = Presence::enter(&directory.path().join("lock")).expect("made");
        let options = LabOptions { presence: Some(Arc::new(presence)), ..options() };
        let (_, trials) = ended(&[Outcome::Completed], &options, &[]);
        assert!(trials.iter().all(|trial| trial.warnings.is_empty()), "{trials:#?}");
    }
}
