//! What a run reports while it is in progress, for a progress bar or a log.

use fstone_model::{Trial, lately::Lately, result::TrialId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadProgress {
    /// The phase's name; "setup" while filesets are built, "final sync" at the end of a measured interval, "sync" ahead of one that
    /// follows a phase that is not measured.
    pub phase: String,
    /// Time in this phase.
    pub elapsed: Duration,
    /// How long it is to take, when it is limited by time.
    pub expected: Option<Duration>,
    /// Operations completed in this phase; files made, in "setup".
    pub operations: u64,
    pub bytes: u64,
    /// What it did since it was last told; `None` where nobody measures that.
    pub lately: Option<Lately>,
}

impl LoadProgress {
    /// The phase that is the ageing of a filesystem.
    pub const AGEING: &str = "ageing";

    /// Of an ageing, of which `share` is done.
    pub fn of_ageing(elapsed: Duration, share: f64, operations: u64, bytes: u64) -> Self {
        let expected = (share > 0.0).then(|| elapsed.mul_f64(1.0 / share.clamp(1e-6, 1.0)));
        Self { phase: Self::AGEING.to_owned(), elapsed, expected, operations, bytes, lately: None }
    }
}

#[derive(Debug, Clone)]
pub enum Event<'a> {
    CleanedUp {
        what: &'a str,
    },
    NotCleanedUp {
        /// What, why, and the cure.
        error: &'a str,
    },
    /// Another run is going on on this machine; the figures of both suffer. Told once.
    OtherRun {
        /// Its process and command line.
        who: &'a str,
    },
    /// Another run makes or uses the aged filesystem that this one needs, which waits for it.
    ImageAwaited {
        image: &'a str,
    },
    /// A trial begins that only warms up: it is not recorded, and no end of it is told.
    WarmUpStarted {
        label: &'a str,
        finished: u32,
        total: u32,
    },
    TrialStarted {
        id: TrialId,
        label: &'a str,
        /// Trials finished before it, those of an earlier run that is resumed included.
        finished: u32,
        /// `None` under a budget of time: how many trials fit into it is not known.
        total: Option<u32>,
        /// Time the rest of the run will take, this trial included, by the time that trials took until now; under a budget,
        /// what is left of it.
        remaining: Option<Duration>,
    },
    StepStarted {
        step: &'a str,
        /// Its number, from 1.
        number: usize,
        of: usize,
    },
    Load(LoadProgress),
    /// A block is over, and somebody looked at what is known by now.
    Looked {
        words: &'a str,
    },
    TrialFinished(&'a Trial),
    /// The run ends, and leaves something behind that a process hangs in.
    LeftBehind {
        error: &'a str,
    },
}

/// Is told what happens. Called from the thread that carries out the run and from a load's observer, never at once from
/// both.
pub trait ProgressSink: Sync {
    fn event(&self, event: &Event<'_>);
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl ProgressSink for Silent {
    fn event(&self, _event: &Event<'_>) {}
}
