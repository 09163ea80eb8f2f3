//! What a run reports while it is in progress, for a progress bar or a log.

use fstone_model::{Trial, lately::Lately, result::TrialId};
use std::time::Duration;

/// What a load is doing.
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// Bytes read and written in this phase.
    pub bytes: u64,
    /// What it did since it was last told; `None` where nobody measures that.
    pub lately: Option<Lately>,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// Something that a killed run had left was undone.
    CleanedUp {
        /// What.
        what: &'a str,
    },
    /// Something that a killed run had left could not be undone.
    NotCleanedUp {
        /// What, why, and the cure.
        error: &'a str,
    },
    /// Another run is going on on this machine; the figures of both suffer. Told once.
    OtherRun {
        /// Its process and command line.
        who: &'a str,
    },
    /// A trial begins that only warms up: it is not recorded, and no end of it is told.
    WarmUpStarted {
        /// Its cell's label.
        label: &'a str,
        /// Trials of the warm-up before it.
        finished: u32,
        /// Trials of the warm-up in all.
        total: u32,
    },
    /// A trial begins.
    TrialStarted {
        /// Which.
        id: TrialId,
        /// Its cell's label.
        label: &'a str,
        /// Trials finished before it, those of an earlier run that is resumed included.
        finished: u32,
        /// Trials there will be in all, as far as can be said now.
        total: u32,
        /// Time the rest of the run will take, this trial included, by the time that trials took until now.
        remaining: Option<Duration>,
    },
    /// A step begins.
    StepStarted {
        /// Its name.
        step: &'a str,
        /// Its number, from 1.
        number: usize,
        /// How many steps its cell has.
        of: usize,
    },
    /// A load goes on.
    Load(LoadProgress),
    /// A block is over, and somebody looked at what is known by now.
    Looked {
        /// What was found.
        words: &'a str,
    },
    /// A trial is recorded.
    TrialFinished(&'a Trial),
    /// The run ends, and leaves something behind that a process hangs in.
    LeftBehind {
        /// What, why, and the cure.
        error: &'a str,
    },
}

/// Is told what happens. Called from the thread that carries out the run and from a load's observer, never at once from
/// both.
pub trait ProgressSink: Sync {
    /// Something happened.
    fn event(&self, event: &Event<'_>);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl ProgressSink for Silent {
    fn event(&self, _event: &Event<'_>) {}
}
