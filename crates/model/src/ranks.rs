//! The result of one load of many ranks: the merged report, and what each rank and each node contributed.

use crate::load::Span;
pub use crate::ranked::{
    ClockComparison, MOST_DRIFT_PPM, NodeReport, PhaseMeeting, PhasePassed, RankOutcome, RankPhase, RankReport, Ranked,
    SKEW_SHARE, Stonewall, Wall,
};
use crate::{LoadReport, Workload};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

pub const REPORT_FILE: &str = "ranks.json";
pub const TABLE_FILE: &str = "ranks.csv";

/// The shortest time after which a rank that is silent, or stands still, may be given up: each gives a sign of life about once a second.
pub const LEAST_PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RanksReport {
    pub name: String,
    /// The seed that every rank's own is derived from.
    pub seed: u64,
    #[serde(flatten)]
    pub ranked: Ranked,
    /// When the ranks were at each action, of the phases in which each rank has one thread that performs them one after the other.
    #[serde(default)]
    pub action_spans: Vec<ActionSpan>,
    /// All ranks that reported, as one load: counts and histograms are sums, the time is from the first rank's begin to the last
    /// one's end, and the series is on one axis.
    pub load: LoadReport,
}

/// When the ranks were at an action of a phase: from the first rank's begin of it to the last rank's end, since the first rank began the
/// phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionSpan {
    pub phase: String,
    pub action: String,
    /// Ranks that performed it and reported.
    pub ranks: u32,
    /// By rank 0's clock.
    pub span: Span,
    /// The same of each rank, which is not kept.
    #[serde(skip)]
    pub of_ranks: BTreeMap<u32, Span>,
}

impl RanksReport {
    /// How the ranks met in the phase of this name; `None` if none ended it.
    pub fn meeting(&self, phase: &str) -> Option<&PhaseMeeting> {
        self.ranked.phases.iter().find(|meeting| meeting.name == phase)
    }

    pub fn of_phase(&self, phase: &str) -> impl Iterator<Item = &RankPhase> {
        self.ranked.per_rank.iter().flat_map(|rank| &rank.phases).filter(move |of_rank| of_rank.name == phase)
    }

    /// When all ranks that ended a phase were at its action of this name; `None` if that is not known of all of them.
    pub fn action_span(&self, meeting: &PhaseMeeting, action: &str) -> Option<&ActionSpan> {
        let of_action = |span: &&ActionSpan| span.phase == meeting.name && span.action == action;
        self.action_spans.iter().find(of_action).filter(|span| span.ranks == meeting.ranks)
    }

    pub fn into_load(self) -> LoadReport {
        LoadReport { ranks: Some(Box::new(self.ranked)), ..self.load }
    }
}

/// A load that a study hands to the ranks that its launcher starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankTask {
    /// What to do; its launch says as how many ranks.
    pub workload: Workload,
    /// Where to work: rank r uses directory r modulo their number.
    pub directories: Vec<PathBuf>,
    pub seed: u64,
    /// Whether the engine's own cost is to be measured.
    pub measure_null: bool,
    pub results: PathBuf,
    /// A named pipe on which rank 0 reports progress, line by line; there may be no reader.
    pub news: PathBuf,
}

/// What rank 0 reports while the load runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankNews {
    /// A measured interval begins.
    Begin,
    End,
    /// The progress of its own load.
    Progress {
        phase: String,
        elapsed: Duration,
        /// How long it is to take, when it is limited by time.
        expected: Option<Duration>,
        operations: u64,
        /// Bytes read and written in it.
        bytes: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs read `ranks.json`: what is known of the ranks stands in it beside the load, not below a key of its own.
    #[test]
    fn a_report_is_one_flat_document() {
        let per_rank = vec![RankReport { rank: 1, outcome: RankOutcome::EndedEarly, ..RankReport::default() }];
        let ranked = Ranked { ranks: 2, slowest: Some(1), per_rank, ..Ranked::default() };
        let report = RanksReport { name: "load".into(), seed: u64::MAX, ranked, ..RanksReport::default() };
        let json = serde_json::to_value(&report).expect("a document");
        assert_eq!((&json["ranks"], &json["per_rank"][0]["outcome"]), (&2.into(), &"ended-early".into()));
        assert_eq!(serde_json::from_value::<RanksReport>(json).expect("read"), report);
    }
}
