//! The running kernel as executor.

use super::{Executor, ExecutorError, Job, TrialEnd, bench::Bench, preflight};
use crate::{
    agent::GuestOptions,
    machine::Machine,
    place::{
        device::DeviceError,
        undo::{JournalError, Undo, UndoError},
        work_directory::WorkDirectory,
    },
    stop::StopReason,
};
use fstone_model::{
    Outcome, Trial,
    metric::catalog,
    outcome::Reason,
    result::{Effective, StepResult},
    study::KernelSpec,
    units::{format_bytes, format_duration},
};
use std::{
    path::PathBuf,
    sync::atomic::AtomicBool,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Carries trials out on the running kernel, or under another one in a guest. What devices and mounts need is root; a
/// directory or a guest needs nothing.
pub struct HostExecutor<'m> {
    pub(crate) machine: &'m Machine,
    pub(crate) work: &'m WorkDirectory,
    pub(crate) undo: Undo<'m>,
    pub(crate) allow_destroy: Vec<PathBuf>,
    pub(crate) measure_null: bool,
    pub(crate) cancel: &'m AtomicBool,
    pub(crate) guests: Option<&'m GuestOptions>,
}

/// How a trial's steps ended, before its release.
pub(crate) enum Halt {
    /// With an outcome.
    Outcome(Outcome),
    /// Because of `Stop`, while this step ran.
    Stopped(String),
    /// The lab failed.
    Lab(ExecutorError),
}

impl From<ExecutorError> for Halt {
    fn from(error: ExecutorError) -> Self {
        Self::Lab(error)
    }
}

impl From<JournalError> for Halt {
    fn from(error: JournalError) -> Self {
        Self::Lab(error.into())
    }
}

impl From<DeviceError> for Halt {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Unsuitable { words } => Self::Outcome(Outcome::Skipped(Reason::new(DEVICE, words))),
            DeviceError::Setting { .. } => Self::Outcome(Outcome::Refused(Reason::new(DEVICE, error.to_string()))),
            error => Self::Lab(error.into()),
        }
    }
}

/// The step that setting up the device counts as.
pub(crate) const DEVICE: &str = "device";

impl<'m> HostExecutor<'m> {
    /// An executor that makes its images and mount points in a work directory.
    ///
    /// # Errors
    /// When an earlier run left something behind there.
    pub fn new(
        machine: &'m Machine,
        work: &'m WorkDirectory,
        allow_destroy: Vec<PathBuf>,
        measure_null: bool,
        cancel: &'m AtomicBool,
    ) -> Result<Self, JournalError> {
        let undo = Undo::begin(work.path(), machine)?;
        Ok(Self { machine, work, undo, allow_destroy, measure_null, cancel, guests: None })
    }

    /// The same, with guests for cells that ask for another kernel.
    #[must_use]
    pub const fn with_guests(mut self, guests: Option<&'m GuestOptions>) -> Self {
        self.guests = guests;
        self
    }

    /// Ends it. Whatever could not be undone stays in the journal.
    pub fn close(self) -> Vec<UndoError> {
        self.undo.close()
    }
}

impl Executor for HostExecutor<'_> {
    fn run(&mut self, job: &Job<'_>) -> Result<TrialEnd, ExecutorError> {
        if job.cell.kernel != KernelSpec::Host && self.guests.is_none() {
            return Err(ExecutorError::Kernel { kernel: job.cell.kernel.written() });
        }
        let clock = Instant::now();
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.machine.stop.clear();

        let (ended, mut record) = match preflight(job.cell, self.machine) {
            Some(obstacle) => (Err(Halt::Outcome(obstacle.outcome())), Record::default()),
            None => {
                let mut bench = Bench::new(self, job, clock);
                let ended = bench.carry_out();
                let ended = bench.end_guest(ended);
                (ended, bench.into_record())
            }
        };
        let filesystem = &job.cell.filesystem;
        // An I/O error, which this leads to, must not be one that panics the kernel.
        let panics = filesystem.mount.contains("panic") || filesystem.mkfs.iter().any(|word| word.contains("panic"));
        if !panics && matches!(self.machine.stop.reason(), Some(StopReason::Space { .. })) {
            self.undo.give_up_images();
        }
        let left = self.undo.undo_all();

        let outcome = match ended {
            Ok(()) => Outcome::Completed,
            Err(Halt::Outcome(outcome)) => outcome,
            Err(Halt::Stopped(step)) => match self.machine.stop.reason() {
                None | Some(StopReason::Cancelled) => {
                    return if left.is_empty() { Ok(TrialEnd::Cancelled) } else { Err(ExecutorError::Undo(left)) };
                }
                Some(StopReason::Limit(limit)) => {
                    let words = format!("not done within its limit of {}", format_duration(limit));
                    Outcome::Hung(Reason::new(step, words))
                }
                Some(StopReason::Space { free_bytes }) => {
                    let words = format!(
                        "stopped: the filesystem of the work directory has only {} free",
                        format_bytes(free_bytes)
                    );
                    Outcome::Failed(
                        Reason::new(step, words)
                            .with_cure("name a work directory with more room, or make the study's device smaller"),
                    )
                }
            },
            Err(Halt::Lab(error)) => {
                return Err(if left.is_empty() {
                    error
                } else {
                    ExecutorError::AndUndo { error: Box::new(error), undo: left }
                });
            }
        };
        let duration_ns = nanoseconds(clock.elapsed());
        record.add_guest(duration_ns);
        let trial = Box::new(Trial {
            id: job.id,
            position: job.position,
            started_unix_ns: nanoseconds(started),
            duration_ns,
            seed: job.seed,
            outcome,
            steps: record.steps,
            effective: record.effective,
            warnings: record.warnings,
        });
        Ok(if left.is_empty() { TrialEnd::Finished(trial) } else { TrialEnd::Stuck(trial, left) })
    }
}

/// What a trial leaves on paper.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) steps: Vec<StepResult>,
    pub(crate) effective: Effective,
    pub(crate) warnings: Vec<String>,
    /// How long the guest took to boot, when there was one.
    pub(crate) boot_time: Option<Duration>,
}

/// The step under whose name what a guest cost is recorded.
const GUEST: &str = "guest";

impl Record {
    /// Adds what having a guest cost, in a trial of this length.
    fn add_guest(&mut self, duration_ns: u64) {
        let Some(boot_time) = self.boot_time else { return };
        let of_steps: u64 = self.steps.iter().map(|step| step.duration_ns).sum();
        let overhead = Duration::from_nanos(duration_ns.saturating_sub(of_steps));
        self.steps.push(StepResult {
            step: GUEST.to_owned(),
            started_ns: 0,
            duration_ns: nanoseconds(overhead),
            commands: Vec::new(),
            figures: vec![
                catalog::BOOT_TIME.figure(boot_time.as_secs_f64()),
                catalog::TRIAL_OVERHEAD.figure(overhead.as_secs_f64()),
            ],
            load: None,
        });
    }
}

/// A duration as the records have it.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
