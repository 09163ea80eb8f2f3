//! What host and agent say to each other about a trial: JSON in the frames of the sandbox.

use crate::{
    events::LoadProgress,
    place::device::{FileId, Purpose},
};
use fstone_model::{
    LoadReport, Outcome, Step,
    metric::Figure,
    result::{CommandRecord, Effective},
    study::FilesystemSpec,
};
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};

/// The first job of an agent, [`Opening`]; answered with [`Answer`].
pub(crate) const OPEN: &str = "open";

/// Every further job but the last: a [`fstone_model::Step`] of the plan; answered with [`StepReply`].
pub(crate) const STEP: &str = "step";

/// Have what was written on the device; answered with [`StepEnd`].
pub(crate) const FLUSH: &str = "flush";

/// Give the place back; answered with nothing.
pub(crate) const LEAVE: &str = "leave";

/// What an agent has to know of its trial.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Opening {
    /// On what it works.
    pub(crate) ground: Ground,
    /// What is on it, or will be.
    pub(crate) filesystem: FilesystemSpec,
    /// Whether this agent is the one that mounts it.
    pub(crate) mounts: bool,
    /// Settings of the disk's queue that are left to the agent.
    pub(crate) queue: Vec<(String, String)>,
    /// The seed of the load's random streams.
    pub(crate) seed: u64,
    /// Whether to time the disk.
    pub(crate) time_disk: bool,
    /// Whether loads measure the engine's own cost.
    pub(crate) measure_null: bool,
}

/// On what an agent works.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ground {
    /// A device, which it looks at itself before it believes that it may be formatted.
    Device {
        /// Where.
        path: PathBuf,
        /// Why it may be.
        purpose: Purpose,
        /// Where it is to be mounted.
        place: PathBuf,
    },
    /// A new directory.
    Directory {
        /// Where it is to be made.
        parent: PathBuf,
        /// Its name.
        name: String,
    },
}

/// What the agent found at the start.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Opened {
    /// The directory that was made.
    pub(crate) tree: Option<(PathBuf, FileId)>,
    /// The mean time of a read off its disk, if that was asked for.
    pub(crate) time_of_a_read: Option<Duration>,
}

/// Whether the trial can be made here.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// It can.
    Ready(Opened),
    /// It cannot, and this is its outcome.
    Not(Outcome),
    /// It cannot, for reasons of fstone's own.
    Lab(String),
}

/// The one job of an exact guest, [`WholeTrial`]; answered with [`TrialReply`].
pub(crate) const TRIAL: &str = "trial";

/// A trial from its first step to its last.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WholeTrial {
    pub(crate) opening: Opening,
    pub(crate) steps: Vec<Step>,
}

/// How it went.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum TrialReply {
    /// Every step up to the last, or to the first that did not end as it should.
    Done(Vec<DoneStep>),
    /// It cannot be made here, and this is its outcome.
    Not(Outcome),
}

/// A step of it, by the guest's own clock.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DoneStep {
    pub(crate) started_ns: u64,
    pub(crate) reply: StepReply,
}

/// What a step gave.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StepReply {
    /// How long it took.
    pub(crate) duration: Duration,
    pub(crate) commands: Vec<CommandRecord>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) load: Option<Box<LoadReport>>,
    pub(crate) warnings: Vec<String>,
    /// What was read back until now.
    pub(crate) effective: Effective,
    /// Of what mkfs made on a device that somebody named.
    pub(crate) uuid: Option<String>,
    /// Whether the filesystem is mounted now.
    pub(crate) mounted: bool,
    pub(crate) end: StepEnd,
}

/// How a step ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum StepEnd {
    /// As it should.
    Done,
    /// With the trial's outcome.
    Outcome(Outcome),
    /// It could not be made, for reasons of fstone's own.
    Lab(String),
}

/// How a load goes on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Progress {
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
pub(crate) fn encode(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("no map with odd keys, no number that JSON has not")
}

/// The message in these bytes.
pub(crate) fn decode<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, String> {
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
            duration: Duration::from_millis(3),
            uuid: None,
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
