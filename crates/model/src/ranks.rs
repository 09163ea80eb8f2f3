//! The result of one load of many ranks: the merged report, and what each rank and each node contributed.

pub use crate::ranked::{
    ClockComparison, MOST_DRIFT_PPM, NodeReport, PhaseMeeting, RankOutcome, RankPhase, RankReport, Ranked, SKEW_SHARE,
    Stonewall,
};
use crate::{LoadReport, Workload};
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};

/// The file with the report of all ranks, in the directory they were told.
pub const REPORT_FILE: &str = "ranks.json";
/// The file beside it with a line for each rank.
pub const TABLE_FILE: &str = "ranks.csv";

/// One load of many ranks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RanksReport {
    /// The load's name.
    pub name: String,
    /// How many ranks were started.
    pub ranks: u32,
    /// On how many nodes.
    pub nodes: u32,
    /// Ranks whose load ended normally. The merged report covers all ranks that reported, whether or not they did.
    pub completed: u32,
    /// The seed that every rank's own is derived from.
    pub seed: u64,
    /// Why the load ended early; `None` if it ended normally.
    pub ended_early: Option<String>,
    /// All ranks that reported, as one load: counts and histograms are sums, the time is from the first rank's begin to the last
    /// one's end, and the series is on one axis.
    pub load: LoadReport,
    /// How many ranks `load` is of.
    pub merged: u32,
    /// Every phase that a rank ended, measured or not.
    pub phases: Vec<PhaseMeeting>,
    /// By operations per second of its own time.
    pub slowest: Option<u32>,
    /// Likewise; of an even number the slower of the two.
    pub median: Option<u32>,
    /// Likewise.
    pub fastest: Option<u32>,
    /// Every rank.
    pub per_rank: Vec<RankReport>,
    /// Every node, by its name.
    pub per_node: Vec<NodeReport>,
}

impl RanksReport {
    /// How the ranks met in the phase of this name; `None` if none ended it.
    #[must_use]
    pub fn meeting(&self, phase: &str) -> Option<&PhaseMeeting> {
        self.phases.iter().find(|meeting| meeting.name == phase)
    }

    /// What each rank that ended the phase of this name did in it.
    pub fn of_phase(&self, phase: &str) -> impl Iterator<Item = &RankPhase> {
        self.per_rank.iter().flat_map(|rank| &rank.phases).filter(move |of_rank| of_rank.name == phase)
    }

    /// The merged report with all of this in it, as one report of a load.
    #[must_use]
    pub fn into_load(self) -> LoadReport {
        let Self { ranks, nodes, completed, merged, ended_early, phases, .. } = self;
        let Self { slowest, median, fastest, per_rank, per_node, .. } = self;
        let of_ranks = Ranked {
            ranks,
            nodes,
            completed,
            merged,
            ended_early,
            phases,
            slowest,
            median,
            fastest,
            per_rank,
            per_node,
        };
        LoadReport { ranks: Some(Box::new(of_ranks)), ..self.load }
    }
}

/// A load that a study hands to the ranks that its launcher starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankTask {
    /// What to do; its launch says as how many ranks.
    pub workload: Workload,
    /// Where: rank r works in the one at r modulo their number.
    pub directories: Vec<PathBuf>,
    /// The seed from which the ranks derive theirs.
    pub seed: u64,
    /// Whether the engine's own cost is to be measured.
    pub measure_null: bool,
    /// Where rank 0 leaves the report.
    pub results: PathBuf,
    /// A named pipe on which rank 0 reports progress, line by line; there may be no reader.
    pub news: PathBuf,
}

/// What rank 0 says on the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankNews {
    /// A measured interval begins.
    Begin,
    /// It ends.
    End,
    /// How far its own load is.
    Progress {
        /// The phase.
        phase: String,
        /// Time in it.
        elapsed: Duration,
        /// How long it is to take, when it is limited by time.
        expected: Option<Duration>,
        /// Operations completed in it.
        operations: u64,
        /// Bytes read and written in it.
        bytes: u64,
    },
}
