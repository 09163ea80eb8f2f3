//! Trials in virtual time do not disturb each other, so several run at once: each lane has an executor, a work directory and
//! a journal of its own.
//!
//! What is recorded is the same with one lane and with many. The run asks for one trial after the other, in the order of its
//! schedule, and is given each in its turn; lanes without work begin those that the schedule says come next. A trial that
//! turns out not to be wanted, because its cell was refused meanwhile, is dropped. How far lanes may get ahead is limited:
//! that much is lost when the run is cancelled or killed.

use crate::{
    events::{Event, LoadProgress, ProgressSink},
    machine::Machine,
    place::{
        undo::JournalError,
        work_directory::{WorkDirectory, WorkDirectoryError},
    },
    stop::Stop,
    trial::{AgentExecutor, Executor, ExecutorError, Job, LabOptions, TrialEnd},
};
use fstone_model::{Plan, result::TrialId, study::DeviceSpec};
use std::{
    any::Any,
    collections::BTreeMap,
    fs,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, Scope},
    time::Duration,
};

/// Trials per lane that may be begun and not asked for yet.
const AHEAD: usize = 4;

const LOOK: Duration = Duration::from_millis(50);

/// Memory of the host for a guest beside the guest's own: its kernel's pages, fstone's buffers.
const GUEST_OVERHEAD_BYTES: u64 = 128 << 20;

/// How many trials may run at once: one, unless all of them are in virtual time. Real time would measure the neighbours.
pub(super) fn count(plan: &Plan, options: &LabOptions) -> usize {
    // In a directory that the study names, images have one name.
    let own_place = |device: &DeviceSpec| matches!(device, DeviceSpec::Loop { directory: None, .. });
    if !plan.cells.iter().all(|cell| cell.kernel.is_exact() && own_place(&cell.device)) {
        return 1;
    }
    let of_each = plan.repeats.max.max(plan.repeats.min).saturating_add(plan.perturbed);
    let trials = plan.cells.len().saturating_mul(of_each as usize);
    let wanted = options.jobs.unwrap_or_else(|| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let memory = options.guests.as_ref().map_or(0, |guests| guests.memory_bytes) + GUEST_OVERHEAD_BYTES;
        cores.min(available_memory().map_or(cores, |bytes| (bytes / memory) as usize))
    });
    wanted.clamp(1, trials.max(1))
}

/// Memory that the host can give without swapping.
fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

pub(super) struct Places {
    each: Vec<(WorkDirectory, Machine)>,
}

impl Places {
    /// As many as this in a work directory, which has to outlive them.
    pub(super) fn make(count: usize, work: &WorkDirectory, machine: &Machine) -> Result<Self, WorkDirectoryError> {
        // One trial that has to stop must not stop the others.
        let own = || Machine { stop: Arc::new(Stop::default()), ..machine.clone() };
        let each = (1..=count).map(|number| Ok((work.lane(number)?, own())));
        Ok(Self { each: each.collect::<Result<_, _>>()? })
    }

    /// Does something with an executor that has these lanes. Whichever way that ends, everything they made is undone.
    pub(super) fn work<T>(
        &self,
        plan: &Plan,
        options: &LabOptions,
        cancel: &AtomicBool,
        work: impl FnOnce(&mut dyn Executor) -> T,
    ) -> Result<T, JournalError> {
        let give_up = AtomicBool::new(false);
        let lanes = self.each.iter().map(|(place, machine)| {
            AgentExecutor::new(machine, place, options, &give_up).map(|executor| Box::new(executor) as Lane<'_>)
        });
        let lanes = lanes.collect::<Result<Vec<_>, _>>()?;
        Ok(thread::scope(|scope| work(&mut Lanes::start(scope, lanes, plan, cancel, &give_up))))
    }
}

type Lane<'l> = Box<dyn Executor + Send + 'l>;

/// How a lane's work on a trial ended. A panic goes on in the thread that asks for the trial.
type Ended = Result<Result<TrialEnd, ExecutorError>, Box<dyn Any + Send>>;

/// What a lane reports of a trial.
enum Report {
    Progress(LoadProgress),
    /// The aged image that it waits for.
    Waits(String),
    Ended(usize, Ended),
}

struct Reporter(Sender<(TrialId, Report)>, TrialId);

impl ProgressSink for Reporter {
    fn event(&self, event: &Event<'_>) {
        let report = match event {
            Event::Load(progress) => Report::Progress(progress.clone()),
            Event::ImageAwaited { image } => Report::Waits((*image).to_owned()),
            _ => return,
        };
        let _ = self.0.send((self.1, report));
    }
}

struct Lanes<'a> {
    /// To each lane: a trial and its seed. Dropped, they end the lanes.
    orders: Vec<Sender<(TrialId, u64)>>,
    reports: Receiver<(TrialId, Report)>,
    idle: Vec<usize>,
    /// Trials begun and not asked for yet, or asked for and not ended.
    begun: Vec<TrialId>,
    /// Those of them that have ended.
    waiting: BTreeMap<TrialId, Ended>,
    upcoming: Vec<(TrialId, u64)>,
    cancel: &'a AtomicBool,
    give_up: &'a AtomicBool,
}

impl<'a> Lanes<'a> {
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        lanes: Vec<Lane<'scope>>,
        plan: &'scope Plan,
        cancel: &'a AtomicBool,
        give_up: &'a AtomicBool,
    ) -> Self {
        let (sender, reports) = channel();
        let start = |(number, mut lane): (usize, Lane<'scope>)| {
            let (orders, taken) = channel::<(TrialId, u64)>();
            let sender = sender.clone();
            scope.spawn(move || {
                for (id, seed) in taken {
                    let cell = &plan.cells[id.cell as usize];
                    let sink = &Reporter(sender.clone(), id);
                    let job = Job { cell, id, position: 0, seed, direct: false, sink, explorer: None };
                    let end = catch_unwind(AssertUnwindSafe(|| lane.run(&job)));
                    if sender.send((id, Report::Ended(number, end))).is_err() {
                        return;
                    }
                }
            });
            orders
        };
        let orders: Vec<_> = lanes.into_iter().enumerate().map(start).collect();
        Self {
            idle: (0..orders.len()).rev().collect(),
            orders,
            reports,
            begun: Vec::new(),
            waiting: BTreeMap::new(),
            upcoming: Vec::new(),
            cancel,
            give_up,
        }
    }

    /// Gives lanes without work this trial, and then those that come next.
    fn begin(&mut self, wanted: (TrialId, u64)) {
        let most = AHEAD * self.orders.len();
        for (ahead, order) in std::iter::once(wanted).chain(std::mem::take(&mut self.upcoming)).enumerate() {
            if self.begun.contains(&order.0) {
                continue;
            }
            if self.idle.is_empty() || (ahead > 0 && self.begun.len() >= most) {
                self.upcoming.push(order);
                continue;
            }
            let lane = self.idle.pop().expect("looked at above");
            self.begun.push(order.0);
            self.orders[lane].send(order).expect("a lane waits for orders until its sender is gone");
        }
        self.upcoming.retain(|order| *order != wanted);
    }

    /// Shows what the trial does that is waited for, or another one as long as that only waits itself.
    fn wait(&mut self, job: &Job<'_>, is_shown: &mut bool) {
        match self.reports.recv_timeout(LOOK) {
            Ok((id, Report::Progress(progress))) => {
                *is_shown |= id == job.id;
                if id == job.id || !*is_shown {
                    job.sink.event(&Event::Load(progress));
                }
            }
            Ok((_, Report::Waits(image))) => job.sink.event(&Event::ImageAwaited { image: &image }),
            Ok((id, Report::Ended(lane, end))) => {
                self.idle.push(lane);
                if self.begun.contains(&id) {
                    self.waiting.insert(id, end);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("lanes end after their orders do"),
        }
        if self.cancel.load(Ordering::Acquire) {
            self.give_up.store(true, Ordering::Release);
        }
    }
}

impl Executor for Lanes<'_> {
    fn run(&mut self, job: &Job<'_>) -> Result<TrialEnd, ExecutorError> {
        // What is not wanted any more must not count against what is.
        let upcoming = &self.upcoming;
        let wanted = |id: &TrialId| *id == job.id || upcoming.iter().any(|(other, _)| other == id);
        self.begun.retain(wanted);
        self.waiting.retain(|id, _| wanted(id));
        let mut is_shown = false;
        loop {
            self.begin((job.id, job.seed));
            let Some(end) = self.waiting.remove(&job.id) else {
                self.wait(job, &mut is_shown);
                continue;
            };
            self.begun.retain(|id| *id != job.id);
            let mut end = end.unwrap_or_else(|panic| resume_unwind(panic))?;
            if let TrialEnd::Finished(trial) | TrialEnd::Stuck(trial, _) = &mut end {
                trial.position = job.position;
            }
            return Ok(end);
        }
    }

    fn look_ahead(&mut self, upcoming: &mut dyn Iterator<Item = (TrialId, u64)>) {
        self.upcoming = upcoming.take(AHEAD * self.orders.len()).collect();
    }
}

impl Drop for Lanes<'_> {
    /// Lanes give their trials up; the scope waits until they have undone what they made.
    fn drop(&mut self) {
        self.give_up.store(true, Ordering::Release);
        self.orders.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        events::Silent,
        run::schedule::{Schedule, trial_seed},
        testing,
    };
    use fstone_model::{
        Outcome, StepResult, Trial,
        metric::catalog,
        outcome::Reason,
        result::Effective,
        study::{KernelSpec, Repeats},
    };

    #[derive(Clone, Copy, Default)]
    struct Script {
        refused: Option<u32>,
        failing_at: Option<TrialId>,
        never_ends: Option<TrialId>,
    }

    /// Takes another time for each trial, so that lanes overtake each other; its figures follow from the trial alone.
    struct Scripted<'s> {
        script: Script,
        give_up: &'s AtomicBool,
    }

    impl Executor for Scripted<'_> {
        fn run(&mut self, job: &Job<'_>) -> Result<TrialEnd, ExecutorError> {
            let scatter = (u64::from(job.id.cell) * 7 + u64::from(job.id.repetition) * 13) % 5;
            thread::sleep(Duration::from_millis(scatter));
            while self.script.never_ends == Some(job.id) && !self.give_up.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(1));
            }
            if self.give_up.load(Ordering::Acquire) {
                return Ok(TrialEnd::Cancelled);
            }
            if self.script.failing_at == Some(job.id) {
                return Err(ExecutorError::Agent("scripted".into()));
            }
            let value = (job.seed % 1000) as f64 / 1000.0 + f64::from(job.id.cell);
            let refused = self.script.refused == Some(job.id.cell);
            let step = StepResult {
                step: "mkfs".into(),
                started_ns: 0,
                duration_ns: 0,
                commands: Vec::new(),
                figures: vec![catalog::TIME.figure(value)],
                load: None,
            };
            Ok(TrialEnd::Finished(Box::new(Trial {
                id: job.id,
                position: job.position,
                started_unix_ns: 0,
                duration_ns: 0,
                seed: job.seed,
                outcome: if refused { Outcome::Refused(Reason::new("mkfs", "no")) } else { Outcome::Completed },
                steps: vec![step],
                effective: Effective::default(),
                warnings: Vec::new(),
            })))
        }
    }

    fn run(lanes: usize, plan: &Plan, script: Script, finished: &[Trial], cancel: &AtomicBool) -> (Vec<Trial>, bool) {
        let give_up = AtomicBool::new(false);
        let executors = (0..lanes).map(|_| Box::new(Scripted { script, give_up: &give_up }) as Lane<'_>).collect();
        let mut schedule = Schedule::new(plan, finished).expect("fits");
        let mut trials = Vec::new();
        thread::scope(|scope| {
            let mut lanes = Lanes::start(scope, executors, plan, cancel, &give_up);
            while let Some(id) = schedule.next_trial() {
                let seed = |id: TrialId| trial_seed(plan, id.repetition);
                let (cell, position) = (&plan.cells[id.cell as usize], schedule.finished());
                lanes.look_ahead(&mut schedule.upcoming().map(|id| (id, seed(id))));
                let job = Job { cell, id, position, seed: seed(id), direct: false, sink: &Silent, explorer: None };
                let Ok(TrialEnd::Finished(trial)) = lanes.run(&job) else { return (trials, true) };
                schedule.finish(&trial).expect("of this plan");
                trials.push(*trial);
            }
            (trials, false)
        })
    }

    fn plan(repeats: Repeats) -> Plan {
        testing::plan((0..5).map(|index| testing::cell(index, "ext4", "", &[])).collect(), repeats)
    }

    const FOUR: Repeats = Repeats { min: 4, max: 4, until: None };

    #[test]
    fn records_are_the_same_with_one_lane_and_with_many() {
        let cancel = AtomicBool::new(false);
        for repeats in [FOUR, Repeats { min: 3, max: 9, until: Some(0.05) }] {
            for refused in [None, Some(2)] {
                let plan = plan(repeats);
                let script = Script { refused, ..Script::default() };
                let (alone, _) = run(1, &plan, script, &[], &cancel);
                for lanes in [2, 3, 8] {
                    assert_eq!(run(lanes, &plan, script, &[], &cancel), (alone.clone(), false), "{lanes} lanes");
                }
                let positions: Vec<u32> = alone.iter().map(|trial| trial.position).collect();
                assert_eq!(positions, (0..positions.len() as u32).collect::<Vec<_>>());
                let half = alone.len() / 2;
                assert_eq!(run(3, &plan, script, &alone[..half], &cancel).0, alone[half..], "resumed");
            }
        }
    }

    #[test]
    fn a_failure_is_told_in_its_turn_and_a_cancelled_run_ends_at_once() {
        let cancel = AtomicBool::new(false);
        let plan = plan(FOUR);
        let (whole, _) = run(1, &plan, Script::default(), &[], &cancel);
        let seventh = Some(whole[7].id);
        let failing = Script { failing_at: seventh, ..Script::default() };
        assert_eq!(run(3, &plan, failing, &[], &cancel), (whole[..7].to_vec(), true));
        let endless = Script { never_ends: seventh, ..Script::default() };
        let given_up = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(300));
                cancel.store(true, Ordering::Release);
            });
            run(3, &plan, endless, &[], &cancel)
        });
        assert!(given_up.1 && given_up.0 == whole[..given_up.0.len()], "{given_up:?}");
        assert!(given_up.0.len() <= 7);
    }

    #[test]
    fn only_trials_in_virtual_time_run_side_by_side() {
        let options = |jobs| LabOptions { jobs, ..testing::options() };
        let mut plan = plan(FOUR);
        assert_eq!(count(&plan, &options(Some(8))), 1);
        for cell in &mut plan.cells {
            cell.kernel = KernelSpec::Exact("6.1".into());
        }
        assert_eq!(count(&plan, &options(Some(8))), 8);
        assert_eq!(count(&plan, &options(Some(100))), 20, "as many as there are trials");
        plan.cells[0].kernel = KernelSpec::Host;
        assert_eq!(count(&plan, &options(Some(8))), 1);
    }
}
