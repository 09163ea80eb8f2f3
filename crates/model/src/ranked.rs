//! How the ranks of a load met, and what each of them had in it.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Skew beyond this share of a phase's length is marked, because the ranks did not work together for that much of it.
pub const SKEW_SHARE: f64 = 0.01;

/// How far two clocks may drift apart while they are not compared, in millionths of the time: the kernel corrects no larger error (the
/// tolerance of adjtimex(2)).
pub const MOST_DRIFT_PPM: u64 = 500;

/// The ranks of a load. Their merged report stands beside this.
///
/// The store also keeps it in a format without field names, so no field may be skipped when it is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    pub ranks: u32,
    pub nodes: u32,
    /// Ranks whose load ended normally. The merged report covers all ranks that reported, whether or not they did.
    pub completed: u32,
    /// How many ranks the merged report covers.
    pub merged: u32,
    /// Why the load ended early; `None` if it ended normally.
    pub ended_early: Option<String>,
    /// Every phase that a rank ended, measured or not.
    pub phases: Vec<PhaseMeeting>,
    /// By operations per second of its own time.
    pub slowest: Option<u32>,
    /// Likewise; of an even number the slower of the two.
    pub median: Option<u32>,
    pub fastest: Option<u32>,
    pub per_rank: Vec<RankReport>,
    pub per_node: Vec<NodeReport>,
}

/// A phase, as the ranks met in it. Times are of rank 0's clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseMeeting {
    pub name: String,
    pub measured: bool,
    /// Ranks that ended it.
    pub ranks: u32,
    /// From the start of the first rank to the end of the last one, without the final sync.
    pub length_ns: u64,
    /// From the start of the first rank to the start of the last one.
    pub start_skew_ns: u64,
    /// From the end of the first rank to the end of the last one.
    pub stop_skew_ns: u64,
    /// The largest error of any rank's start or end, of those that ended the phase, because its clock is known only so well. If a clock was
    /// compared only once, this includes how far it may have drifted since ([`MOST_DRIFT_PPM`]).
    pub uncertainty_ns: u64,
    /// Whether one of the skews is more than 1 % of the length.
    pub skewed: bool,
    /// If the phase had wear-out and some rank was not done before its time was over: what had been done by then.
    pub stonewall: Option<Stonewall>,
}

impl PhaseMeeting {
    pub fn seconds(&self) -> f64 {
        Duration::from_nanos(self.length_ns).as_secs_f64()
    }

    /// The error of a skew, which is the difference of two ranks' times.
    pub const fn skew_uncertainty_ns(&self) -> u64 {
        2 * self.uncertainty_ns
    }
}

/// What the ranks had done at the end of a phase's time, before those that had done less went on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stonewall {
    /// Operations of all ranks.
    pub operations: u64,
    pub fewest: u64,
    pub most: u64,
    /// From the start of the first rank to the end of the last rank's time.
    pub length_ns: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum RankOutcome {
    #[default]
    Completed,
    /// It was told to end early, because of another rank or by a signal. What it did until then is in the figures.
    EndedEarly,
    /// Its load could not be run, or ended with an error of its own.
    Failed { words: String },
    /// Its process ended or stopped giving signs of life.
    Died {
        /// What was last known of it.
        words: String,
    },
    /// Its process is alive, but its load makes no progress.
    Hung {
        /// What it was doing.
        words: String,
    },
    /// A signal ended the load of all ranks, and rank 0 could not wait until this one had ended its own: launchers kill soon after a signal.
    Interrupted {
        /// What it was doing.
        words: String,
    },
}

impl RankOutcome {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::EndedEarly => "ended early",
            Self::Failed { .. } => "failed",
            Self::Died { .. } => "died",
            Self::Hung { .. } => "hung",
            Self::Interrupted { .. } => "interrupted",
        }
    }

    pub fn words(&self) -> Option<&str> {
        match self {
            Self::Completed | Self::EndedEarly => None,
            Self::Failed { words } | Self::Died { words } | Self::Hung { words } | Self::Interrupted { words } => {
                Some(words)
            }
        }
    }

    /// Whether its load may still be at work, and use its files.
    pub const fn is_lost(&self) -> bool {
        matches!(self, Self::Died { .. } | Self::Hung { .. } | Self::Interrupted { .. })
    }
}

/// A rank's clock against rank 0's, by round trips.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockComparison {
    /// How far the rank's clock was ahead of rank 0's, before the first phase.
    pub offset_ns: i64,
    /// Half of the fastest round trip: the offset is within this.
    pub uncertainty_ns: u64,
    /// How much the offset grew until after the last phase, in millionths of the time between; `None` if it was not compared again.
    pub drift_ppm: Option<f64>,
    #[serde(default)]
    pub drift_uncertainty_ppm: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RankReport {
    pub rank: u32,
    pub host: String,
    pub process: u32,
    pub seed: u64,
    #[serde(flatten)]
    pub outcome: RankOutcome,
    /// Its clock; `None` for rank 0 and those that could not be asked.
    pub clock: Option<ClockComparison>,
    /// Operations of measured phases.
    pub operations: u64,
    pub errors: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Its own measured time, with its final sync.
    pub elapsed_ns: u64,
    /// Operations per second of that time.
    pub per_second: f64,
    /// Half of its operations took no longer; `None` where it reported none.
    pub p50_ns: Option<f64>,
    /// 99 % of its operations took no longer; `None` where fewer than 100 were reported.
    pub p99_ns: Option<f64>,
    pub max_ns: u64,
    pub phases: Vec<RankPhase>,
    /// Warnings that other ranks do not share.
    pub warnings: Vec<String>,
}

/// A phase that a rank has ended. Times are of the rank's CLOCK_MONOTONIC, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhasePassed {
    pub number: u32,
    pub begin_ns: u64,
    /// When the last thread had closed its last file.
    pub end_ns: u64,
    pub operations: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Where the phase wears out: how far it was.
    pub stonewall: Option<Wall>,
}

/// How far a phase that wears out was when its time was over, or before that if all had been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wall {
    /// Operations begun.
    pub operations: u64,
    /// When the last thread had ended its last one of these.
    pub at_ns: u64,
    /// Whether the time was over.
    pub met: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RankPhase {
    pub name: String,
    /// When it began, since the start of the first rank.
    pub begin_ns: u64,
    pub end_ns: u64,
    pub operations: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Operations it had begun when the phase's time was over, if the phase has wear-out and the rank was not done before.
    pub stonewall_operations: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeReport {
    pub host: String,
    pub ranks: u32,
    pub operations: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Sum of their operations per second, each over its own time.
    pub per_second: f64,
}
