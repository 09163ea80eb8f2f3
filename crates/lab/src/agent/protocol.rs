//! What host and agent say to each other about a trial: JSON in the frames of the sandbox.

use crate::{events::LoadProgress, place::device::Purpose};
use fstone_engine::sequences::Finding;
use fstone_files::FileIdentity;
use fstone_model::{
    LoadReport, Outcome, Step, StepResult,
    metric::Figure,
    result::{CommandRecord, Effective},
    study::FilesystemSpec,
};
use fstone_sandbox::agent::LoadError;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{collections::HashSet, path::PathBuf, time::Duration};

/// The first job of an agent, [`Opening`]; answered with [`Answer`].
pub(crate) const OPEN: &str = "open";

/// Make a [`fstone_model::Step`] of the plan; answered with [`StepReply`].
pub(crate) const STEP: &str = "step";

/// Have what was written on the device; answered with [`StepEnd`].
pub(crate) const FLUSH: &str = "flush";

/// Mount, read and check the state that the disk shows now, [`StateCheck`]; answered with [`StateReply`].
pub(crate) const STATE: &str = "state";

/// The same without the filesystem's own check, which the host makes.
pub(crate) const STATE_UNCHECKED: &str = "state-unchecked";

/// Make the files that sequences begin with, or carry one out, [`SequenceJob`]; answered with [`SequenceDone`].
pub(crate) const SEQUENCE: &str = "sequence";

/// Mount the state that the disk shows now, [`SequenceState`], and compare it with what the last sequence persisted; answered
/// with [`SequenceStateReply`].
pub(crate) const SEQUENCE_STATE: &str = "sequence-state";

/// The last job, unless the agent is ended: give the place back; answered with what is to be said of it, a list of warnings.
pub(crate) const LEAVE: &str = "leave";

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Opening {
    pub(crate) ground: Ground,
    pub(crate) filesystem: FilesystemSpec,
    /// Whether this agent is the one that mounts it.
    pub(crate) mounts: bool,
    /// Settings of the disk's queue that are left to the agent.
    pub(crate) queue: Vec<(String, String)>,
    pub(crate) seed: u64,
    pub(crate) time_disk: bool,
    pub(crate) measure_null: bool,
    pub(crate) promises: bool,
    /// The run's work directory, on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) work: Option<PathBuf>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ground {
    /// A device, which it looks at itself before it believes that it may be formatted.
    Device { path: PathBuf, purpose: Purpose, place: PathBuf },
    /// A new directory, in which a filesystem of the study's own has what it needs, and perhaps a device.
    Own {
        device: Option<(PathBuf, Purpose)>,
        parent: PathBuf,
        name: String,
        /// Where the first client mounts it.
        place: PathBuf,
    },
    Directory {
        parent: PathBuf,
        name: String,
        /// Where is noted which directories were aged.
        notes: Option<PathBuf>,
    },
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) tree: Option<(PathBuf, FileIdentity)>,
    /// The mean time of a read off its disk, if that was asked for.
    pub(crate) time_of_a_read: Option<Duration>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Ready(Opened),
    Not(Outcome),
    /// It cannot, for reasons of fstone's own.
    Lab(String),
}

/// The one job of an exact guest, [`WholeTrial`]; answered with [`TrialReply`].
pub(crate) const TRIAL: &str = "trial";

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WholeTrial {
    pub(crate) opening: Opening,
    pub(crate) steps: Vec<Step>,
    /// Before the first step, in the guest's time; it is a perturbed guest's number, too, and 0 in others.
    pub(crate) delay_ns: u64,
    /// Whether its kernel counts its work. Without it nothing is added: the job of other kernels stays the same to the last byte.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) counts_work: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum TrialReply {
    /// Every step up to the last, or to the first that did not end as it should.
    Done(Vec<DoneStep>),
    Not(Outcome),
}

/// A step of it, by the guest's own clock.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DoneStep {
    pub(crate) started_ns: u64,
    pub(crate) reply: StepReply,
}

/// What an exact guest asks the lab for in the middle of its trial; answered with [`Advice`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    /// The filesystem is made, and all of it is on the disk, whose log begins here.
    Made,
    /// The power is to be cut as this step, by its place in the trial, says.
    Cut {
        step: usize,
        /// The disk's marks between which loads ran.
        loads: Option<(u64, u64)>,
    },
    Found(StateReply),
}

/// What such a guest is to do next. What it is told follows from its trial and the seed: nothing of the host's may reach it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Advice {
    GoOn,
    Look {
        /// The last mark of the disk before the power was cut.
        mark: Option<u64>,
        /// Whether to make the filesystem's own check as well.
        check: bool,
    },
    GiveUp,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StepReply {
    pub(crate) duration: Duration,
    pub(crate) commands: Vec<CommandRecord>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) load: Option<Box<LoadReport>>,
    /// What ran beside the step came to.
    pub(crate) beside: Vec<StepResult>,
    pub(crate) warnings: Vec<String>,
    pub(crate) effective: Effective,
    pub(crate) uuid: Option<String>,
    pub(crate) mounted: bool,
    pub(crate) end: StepEnd,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum StepEnd {
    Done,
    Outcome(Outcome),
    Lab(String),
}

/// A state that a power cut could have left is shown by the disk.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StateCheck {
    pub(crate) step: Step,
    /// The last mark of the disk before the power was cut.
    pub(crate) mark: Option<u64>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StateReply {
    /// How long mounting took, where it could be mounted.
    pub(crate) mounted: Option<Duration>,
    pub(crate) kept: Option<KeptPromises>,
    /// What the filesystem's own check says, where there is one.
    pub(crate) clean: Option<bool>,
    /// What it says, or why it could not be mounted.
    pub(crate) words: Option<String>,
    /// What went wrong with looking itself.
    pub(crate) end: Option<Outcome>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct KeptPromises {
    pub(crate) checked: u64,
    pub(crate) broken: u64,
    pub(crate) first: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SequenceJob {
    pub(crate) step: Step,
    pub(crate) what: SequenceWhat,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SequenceWhat {
    /// Make the files that are there before.
    Plant,
    Calls(String),
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SequenceDone {
    /// The disk's marks before the first call and after each.
    pub(crate) marks: Vec<u64>,
    /// The call that this filesystem does not do, and why.
    pub(crate) refused: Option<String>,
    /// What went wrong with it itself.
    pub(crate) end: Option<Outcome>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SequenceState {
    pub(crate) step: Step,
    /// The last mark of the disk before the power was cut.
    pub(crate) mark: Option<u64>,
    pub(crate) check: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SequenceStateReply {
    /// How long mounting took, where it could be mounted.
    pub(crate) mounted: Option<Duration>,
    pub(crate) checking: Duration,
    pub(crate) told: Vec<FindingReport>,
    /// What the filesystem's own check says, where it was made.
    pub(crate) clean: Option<bool>,
    /// What it says, or why it could not be mounted.
    pub(crate) words: Option<String>,
    /// What went wrong with looking itself.
    pub(crate) end: Option<Outcome>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct FindingReport {
    /// Whether it was promised; otherwise it is a property that nothing promises.
    pub(crate) promised: bool,
    pub(crate) aspect: String,
    pub(crate) checked: u64,
    pub(crate) broken: u64,
    pub(crate) first: Option<String>,
}

impl FindingReport {
    pub(crate) fn new(promised: bool, aspect: &str, finding: Finding) -> Self {
        Self {
            promised,
            aspect: aspect.to_owned(),
            checked: finding.checked,
            broken: finding.broken,
            first: finding.first,
        }
    }
}

/// Bytes of a message; what fstone itself made up can always be written down.
pub(crate) fn encode(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("no map with odd keys, no number that JSON has not")
}

/// The message in these bytes. What a guest says is held to the rules of its kind here, so that nobody behind this has to
/// doubt it.
pub(crate) fn decode<T: Message>(bytes: &[u8]) -> Result<T, String> {
    let foreign = |why: &dyn std::fmt::Display| format!("a message of another fstone: {why}");
    let text = std::str::from_utf8(bytes).map_err(|error| foreign(&error))?;
    let message: T = serde_json::from_str(text).map_err(|error| foreign(&error))?;
    message.check().map_err(|broken| format!("a message that makes no sense: {broken}"))?;
    Ok(message)
}

/// More promises than a guest can remember: sums over states stay exact in a figure.
const PROMISES: u64 = 1 << 32;

pub(crate) trait Message: DeserializeOwned {
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Message for Opening {}
impl Message for Step {}
impl Message for String {}
impl Message for Vec<String> {}
impl Message for WholeTrial {}

impl Message for StateCheck {}

impl Message for StateReply {
    fn check(&self) -> Result<(), String> {
        self.mounted.map_or(Ok(()), in_range)?;
        self.end.as_ref().map_or(Ok(()), not_completed)?;
        match &self.kept {
            Some(kept) if kept.broken > kept.checked => Err("more promises broken than checked".to_owned()),
            Some(kept) if kept.checked > PROMISES => Err(format!("{} promises", kept.checked)),
            _ => Ok(()),
        }
    }
}

impl Message for Advice {}

impl Message for Question {
    fn check(&self) -> Result<(), String> {
        if let Self::Found(reply) = self { reply.check() } else { Ok(()) }
    }
}

impl Message for SequenceJob {}
impl Message for SequenceState {}

impl Message for SequenceDone {
    fn check(&self) -> Result<(), String> {
        self.end.as_ref().map_or(Ok(()), not_completed)?;
        require(self.marks.len() <= ITEMS && self.marks.is_sorted(), || "marks that are not in order".to_owned())
    }
}

impl Message for SequenceStateReply {
    fn check(&self) -> Result<(), String> {
        self.mounted.map_or(Ok(()), in_range)?;
        in_range(self.checking)?;
        self.end.as_ref().map_or(Ok(()), not_completed)?;
        require(self.told.len() <= ITEMS, || format!("it has a list of {}", self.told.len()))?;
        self.told.iter().try_for_each(|told| {
            let sound = told.broken <= told.checked && told.checked <= PROMISES;
            require(sound, || format!("{} of {} facts broken", told.broken, told.checked))
        })
    }
}

impl Message for Answer {
    fn check(&self) -> Result<(), String> {
        match self {
            Self::Ready(opened) => opened.time_of_a_read.map_or(Ok(()), in_range),
            Self::Not(outcome) => not_completed(outcome),
            Self::Lab(_) => Ok(()),
        }
    }
}

impl Message for TrialReply {
    fn check(&self) -> Result<(), String> {
        match self {
            Self::Done(steps) => steps.iter().try_for_each(|step| {
                in_range(Duration::from_nanos(step.started_ns))?;
                step.reply.check()
            }),
            Self::Not(outcome) => not_completed(outcome),
        }
    }
}

impl Message for StepReply {
    fn check(&self) -> Result<(), String> {
        in_range(self.duration)?;
        self.commands.iter().try_for_each(|command| in_range(Duration::from_nanos(command.duration_ns)))?;
        sound_figures(&self.figures)?;
        self.beside.iter().try_for_each(|one| sound_figures(&one.figures))?;
        let many =
            self.figures.len().max(self.beside.len()).max(self.warnings.len()).max(self.effective.superblock.len());
        require(many.max(self.commands.len()) <= ITEMS, || format!("it has a list of {many}"))?;
        let is_uuid = |uuid: &String| uuid.len() <= 36 && uuid.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        require(self.uuid.as_ref().is_none_or(is_uuid), || format!("{:?} is not a UUID", self.uuid))?;
        self.end.check()
    }
}

impl Message for StepEnd {
    fn check(&self) -> Result<(), String> {
        if let Self::Outcome(outcome) = self { not_completed(outcome) } else { Ok(()) }
    }
}

impl Message for LoadProgress {
    fn check(&self) -> Result<(), String> {
        in_range(self.elapsed)?;
        self.lately.as_ref().map_or(Ok(()), |lately| in_range(lately.interval))?;
        self.expected.map_or(Ok(()), in_range)
    }
}

/// Longest name of a metric: those of groups and operations have the names that a study gives them.
const METRIC_BYTES: usize = 1000;

/// Longest list in a reply. A load of many groups has some thousand figures.
const ITEMS: usize = 100_000;

fn sound_figures(figures: &[Figure]) -> Result<(), String> {
    let mut metrics = HashSet::new();
    for Figure { metric, .. } in figures {
        let is_name = (1..=METRIC_BYTES).contains(&metric.len()) && !metric.chars().any(char::is_control);
        require(is_name, || format!("{metric:?} is no metric's name"))?;
        require(metrics.insert(metric), || format!("figure {metric:?} is there twice"))?;
    }
    require(figures.len() <= ITEMS, || format!("it has a list of {}", figures.len()))
}

fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// What is recorded counts nanoseconds with 63 bits: 292 years.
fn in_range(time: Duration) -> Result<(), String> {
    require(i64::try_from(time.as_nanos()).is_ok(), || format!("a time of {} s", time.as_secs()))
}

fn not_completed(outcome: &Outcome) -> Result<(), String> {
    require(!outcome.is_completed(), || "it did not end as it should, and is completed".to_owned())
}

/// The side that started the agent: it receives progress, loads modules and answers questions.
pub(super) trait AgentHost: Sync {
    fn progress(&self, progress: &LoadProgress);

    fn load_module(&self, name: &str) -> Result<(), LoadError>;

    fn ask(&self, question: &Question) -> Result<Advice, String>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::{metric::catalog, outcome::Reason, study::StepAction};

    #[test]
    fn a_step_and_its_reply_arrive_as_they_were_sent() {
        let action = StepAction::Command {
            argv: vec!["cat".into(), "ä".into()],
            shell: false,
            success: vec![0, 1],
            figures: Vec::new(),
        };
        let step = Step { name: "look".into(), action, limit: Duration::from_millis(1500), background: false };
        assert_eq!(decode::<Step>(&encode(&step)).expect("it is one"), step);
        let reply = StepReply {
            duration: Duration::from_millis(3),
            uuid: None,
            commands: Vec::new(),
            figures: Vec::new(),
            load: Some(Box::default()),
            beside: Vec::new(),
            warnings: vec!["slow".into()],
            effective: Effective::default(),
            mounted: true,
            end: StepEnd::Outcome(Outcome::Refused(Reason::new("mount", "no"))),
        };
        let back: StepReply = decode(&encode(&reply)).expect("it is one");
        assert!(back.mounted && matches!(back.end, StepEnd::Outcome(Outcome::Refused(_))));
        assert!(decode::<Step>(b"{").expect_err("half").contains("another fstone"));
    }

    fn reply() -> StepReply {
        StepReply {
            duration: Duration::from_millis(3),
            uuid: Some("1b2f-99A0".into()),
            commands: Vec::new(),
            figures: vec![catalog::EXECUTION_TIME.figure(1.0), catalog::CPU.figure(2.0)],
            load: None,
            beside: Vec::new(),
            warnings: Vec::new(),
            effective: Effective::default(),
            mounted: true,
            end: StepEnd::Done,
        }
    }

    /// A guest may say anything, and nothing of it may end more than its own trial.
    #[test]
    fn what_makes_no_sense_is_refused_where_it_arrives() {
        decode::<StepReply>(&encode(&reply())).expect("it makes sense");
        let second = |metric: &str| Figure { metric: metric.to_owned(), ..reply().figures.remove(1) };
        type Spoil<'s> = &'s dyn Fn(&mut StepReply);
        let refusals: [(Spoil<'_>, &str); 8] = [
            (&|reply| reply.duration = Duration::MAX, "a time of"),
            (&|reply| reply.figures[1] = second(&reply.figures[0].metric.clone()), "is there twice"),
            (&|reply| reply.figures[1] = second("\u{1b}[2J"), "no metric's name"),
            (&|reply| reply.figures[1] = second(""), "no metric's name"),
            (&|reply| reply.uuid = Some("../x".into()), "is not a UUID"),
            (&|reply| reply.warnings = vec![String::new(); ITEMS + 1], "a list of"),
            (&|reply| reply.end = StepEnd::Outcome(Outcome::Completed), "and is completed"),
            (
                &|reply| {
                    let (argv, output_tail) = (Vec::new(), String::new());
                    reply.commands = vec![CommandRecord { argv, status: None, duration_ns: u64::MAX, output_tail }];
                },
                "a time of",
            ),
        ];
        for (change, words) in refusals {
            let mut reply = reply();
            change(&mut reply);
            let refusal = decode::<StepReply>(&encode(&reply)).expect_err(words);
            assert!(refusal.contains("makes no sense") && refusal.contains(words), "{refusal}");
            let whole = TrialReply::Done(vec![DoneStep { started_ns: 0, reply }]);
            assert!(decode::<TrialReply>(&encode(&whole)).is_err(), "{words}");
        }
        let late = TrialReply::Done(vec![DoneStep { started_ns: u64::MAX, reply: reply() }]);
        assert!(decode::<TrialReply>(&encode(&late)).is_err());
        assert!(decode::<Answer>(&encode(&Answer::Not(Outcome::Completed))).is_err());
        let opened = Opened { time_of_a_read: Some(Duration::MAX), ..Opened::default() };
        assert!(decode::<Answer>(&encode(&Answer::Ready(opened))).is_err());
        assert!(decode::<StepEnd>(&encode(&StepEnd::Outcome(Outcome::Completed))).is_err());
        let progress = LoadProgress { expected: Some(Duration::MAX), ..LoadProgress::default() };
        assert!(decode::<LoadProgress>(&encode(&progress)).is_err());
        assert!(
            decode::<StepReply>(br#"{"duration":{"secs":1,"nanos":0},"figures":[{"metric":"m","value":1e999}]}"#)
                .is_err()
        );
    }
}
