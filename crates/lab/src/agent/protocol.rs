//! What host and agent say to each other about a trial: JSON in the frames of the sandbox.

use crate::events::LoadProgress;
use fstone_model::{
    LoadReport, Outcome, Step,
    metric::Figure,
    result::{CommandRecord, Effective},
    study::FilesystemSpec,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The first job of a guest, [`Prepare`]; answered with [`Prepared`].
pub(super) const PREPARE: &str = "prepare";

/// Every further job: a [`fstone_model::Step`] of the plan; answered with [`StepReply`].
pub(super) const STEP: &str = "step";

/// What the guest has to know of its trial.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Prepare {
    /// Its disk.
    pub(super) device: String,
    /// What is on it, or will be.
    pub(super) filesystem: FilesystemSpec,
    /// Settings of the disk's queue.
    pub(super) queue: Vec<(String, String)>,
    /// The seed of the load's random streams.
    pub(super) seed: u64,
    /// Whether to time the disk.
    pub(super) time_disk: bool,
    /// Whether loads measure the engine's own cost.
    pub(super) measure_null: bool,
}

/// Whether the trial can be made here.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Prepared {
    /// It can. The mean time of a read off its disk, if that was asked for.
    Ready(Option<Duration>),
    /// It cannot, and this is its outcome.
    Not(Outcome),
}

/// The one job of an exact guest, [`WholeTrial`]; answered with [`TrialReply`].
pub(super) const TRIAL: &str = "trial";

/// A trial from its first step to its last.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WholeTrial {
    pub(super) prepare: Prepare,
    pub(super) steps: Vec<Step>,
}

/// How it went.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum TrialReply {
    /// Every step up to the last, or to the first that did not end as it should.
    Done(Vec<DoneStep>),
    /// It cannot be made here, and this is its outcome.
    Not(Outcome),
}

/// A step of it, by the guest's own clock.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DoneStep {
    pub(super) started_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) reply: StepReply,
}

/// What a step gave.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StepReply {
    pub(super) commands: Vec<CommandRecord>,
    pub(super) figures: Vec<Figure>,
    pub(super) load: Option<Box<LoadReport>>,
    pub(super) warnings: Vec<String>,
    /// What was read back after it.
    pub(super) effective: Effective,
    /// Whether the filesystem is mounted now.
    pub(super) mounted: bool,
    pub(super) end: StepEnd,
}

/// How a step ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum StepEnd {
    /// As it should.
    Done,
    /// With the trial's outcome.
    Outcome(Outcome),
    /// It could not be made, for reasons of fstone's own.
    Lab(String),
}

/// How a load goes on.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Progress {
    phase: String,
    elapsed: Duration,
    expected: Option<Duration>,
    operations: u64,
    bytes: u64,
}

impl From<&LoadProgress> for Progress {
    fn from(progress: &LoadProgress) -> Self {
        Self {
            phase: progress.phase.clone(),
            elapsed: progress.elapsed,
            expected: progress.expected,
            operations: progress.operations,
            bytes: progress.bytes,
        }
    }
}

impl From<Progress> for LoadProgress {
    fn from(progress: Progress) -> Self {
        Self {
            phase: progress.phase,
            elapsed: progress.elapsed,
            expected: progress.expected,
            operations: progress.operations,
            bytes: progress.bytes,
        }
    }
}

/// Bytes of a message; what fstone itself made up can always be written down.
pub(super) fn encode(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("no map with odd keys, no number that JSON has not")
}

/// The message in these bytes.
pub(super) fn decode<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("a message of another fstone: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::{outcome::Reason, study::StepAction};

    #[test]
    fn a_step_and_its_reply_arrive_as_they_were_sent() {
        let action = StepAction::Command { argv: vec!["cat".into(), "ä".into()], shell: false, success: vec![0, 1] };
        let step = Step { name: "look".into(), action, limit: Duration::from_millis(1500) };
        assert_eq!(decode::<Step>(&encode(&step)).expect("it is one"), step);
        let reply = StepReply {
            commands: Vec::new(),
            figures: Vec::new(),
            load: Some(Box::default()),
            warnings: vec!["slow".into()],
            effective: Effective::default(),
            mounted: true,
            end: StepEnd::Outcome(Outcome::Refused(Reason::new("mount", "no"))),
        };
        let back: StepReply = decode(&encode(&reply)).expect("it is one");
        assert!(back.mounted && matches!(back.end, StepEnd::Outcome(Outcome::Refused(_))));
        assert!(decode::<Step>(b"{").expect_err("half").contains("another fstone"));
    }
}
