//! What a trial leaves on paper, and how it can come to a halt.

use super::error::ExecutorError;
use crate::{
    inventory::package_of,
    place::{
        device::{DeviceError, Space},
        undo::JournalError,
    },
    stop::StopReason,
};
use fstone_model::{
    LoadReport, Outcome, Step, StepResult,
    metric::{Figure, catalog},
    outcome::Reason,
    result::{CommandRecord, Effective},
    study::TRIAL_STEP,
    units::{format_bytes, format_duration, nanoseconds},
};
use std::{io, path::Path, time::Duration};

/// The step that setting up the device counts as.
pub(crate) const DEVICE: &str = "device";

/// How a trial came to a halt before its last step.
pub(crate) enum Halt {
    Outcome(Outcome),
    /// Because somebody asked for it, while this step ran.
    Stopped(String),
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

pub(crate) fn failed(step: &Step, words: String) -> Halt {
    Halt::Outcome(Outcome::Failed(Reason::new(&step.name, words)))
}

pub(crate) fn skipped(step: &str, words: String) -> Halt {
    Halt::Outcome(Outcome::Skipped(Reason::new(step, words)))
}

/// A program that is missing, and what installs it.
pub(crate) fn not_installed(step: &str, program: &str) -> Halt {
    let mut reason = Reason::new(step, format!("{program} is not installed"));
    reason.cure = package_of(program).map(|package| format!("apt-get install {package}"));
    Halt::Outcome(Outcome::Skipped(reason))
}

pub(crate) fn not_durable(step: &str, place: &Path, error: &io::Error) -> Halt {
    let words = format!("what was written is not durable: syncfs {}: {error}", place.display());
    Halt::Outcome(Outcome::Failed(Reason::new(step, words)))
}

pub(crate) fn refuse_full(directory: &Path, space: Space) -> Result<(), Halt> {
    if !space.is_used_up() {
        return Ok(());
    }
    let words = format!("{}: only {} free", directory.display(), format_bytes(space.free_bytes));
    let reason = Reason::new(DEVICE, words).with_cure("make room there, or name another place");
    Err(Halt::Outcome(Outcome::Failed(reason)))
}

/// The outcome of a step that was stopped; `None` when the user wanted that, for then there is none, and for the end of a service, which
/// says more itself.
pub(crate) fn outcome_of_stop(step: &str, reason: Option<&StopReason>) -> Option<Outcome> {
    match reason {
        None | Some(StopReason::Cancelled | StopReason::Service) => None,
        Some(StopReason::Limit(limit)) => {
            let words = format!("not done within its limit of {}", format_duration(*limit));
            Some(Outcome::Hung(Reason::new(step, words)))
        }
        Some(StopReason::Space { directory, free_bytes }) => {
            let (place, free) = (directory.display(), format_bytes(*free_bytes));
            let words = format!("stopped: the filesystem of {place} has only {free} free");
            let cure = "make room there, name another place, or make the study's device smaller";
            Some(Outcome::Failed(Reason::new(step, words).with_cure(cure)))
        }
    }
}

/// The host's part in how a step ended. What the host could not give the disk of a guest is not the filesystem's fault; what
/// the guest's kernel did by itself (a crash), or an option (a refusal), is not the host's.
pub(crate) fn blame_host(step: &Step, halt: Halt, host_error: Option<&str>) -> Halt {
    match (halt, host_error) {
        (Halt::Outcome(Outcome::Failed(_) | Outcome::Hung(_)), Some(error)) => {
            let words = format!("the host could not read or write the image of the guest's disk: {error}");
            let cure = "name a work directory with more room, or make the study's device smaller";
            Halt::Outcome(Outcome::Failed(Reason::new(&step.name, words).with_cure(cure)))
        }
        (halt, _) => halt,
    }
}

#[derive(Default)]
pub(crate) struct StepReport {
    pub(crate) commands: Vec<CommandRecord>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) load: Option<Box<LoadReport>>,
    /// What ran beside it came to.
    pub(crate) beside: Vec<StepResult>,
}

#[derive(Default)]
pub(crate) struct Record {
    pub(crate) steps: Vec<StepResult>,
    pub(crate) effective: Effective,
    pub(crate) warnings: Vec<String>,
    pub(crate) boot_time: Option<Duration>,
}

impl Record {
    pub(crate) fn warn(&mut self, words: String) {
        self.warnings.push(words);
    }

    /// Adds, as a step of its own, what the trial took besides its steps, and giving back after it.
    pub(crate) fn add_overhead(&mut self, duration_ns: u64, settling: Duration) {
        let of_steps: u64 = self.steps.iter().map(|step| step.duration_ns).sum();
        let overhead = Duration::from_nanos(duration_ns.saturating_sub(of_steps));
        let mut figures: Vec<Figure> =
            self.boot_time.iter().map(|time| catalog::BOOT_TIME.figure(time.as_secs_f64())).collect();
        figures.push(catalog::TRIAL_OVERHEAD.figure(overhead.as_secs_f64()));
        figures.push(catalog::SETTLING_TIME.figure(settling.as_secs_f64()));
        self.steps.push(StepResult {
            step: TRIAL_STEP.to_owned(),
            started_ns: 0,
            duration_ns: nanoseconds(overhead),
            commands: Vec::new(),
            figures,
            load: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use fstone_model::study::StepAction;

    #[test]
    fn the_host_is_blamed_for_failures_and_hangs_and_for_nothing_else() {
        let step = testing::step("write", StepAction::Sync);
        let reason = || Reason::new("write", "as it was");
        let blamed = |outcome: Outcome, error: Option<&str>| match blame_host(&step, Halt::Outcome(outcome), error) {
            Halt::Outcome(outcome) => outcome,
            _ => panic!("an outcome stays one"),
        };
        let no_space = Some("No space left on device");
        for outcome in [Outcome::Failed(reason()), Outcome::Hung(reason())] {
            assert_eq!(blamed(outcome.clone(), None), outcome);
            let Outcome::Failed(told) = blamed(outcome, no_space) else { panic!("the host failed it") };
            assert!(told.words.contains("the host could not") && told.words.contains("No space left"), "{told:?}");
            assert!(told.cure.is_some() && told.step == "write");
        }
        for outcome in
            [Outcome::Completed, Outcome::Refused(reason()), Outcome::Crashed(reason()), Outcome::Skipped(reason())]
        {
            assert_eq!(blamed(outcome.clone(), no_space), outcome);
        }
        assert!(matches!(blame_host(&step, Halt::Stopped("write".into()), no_space), Halt::Stopped(_)));
    }
}
