//! The workload: what a load does, whichever format it was written in.
//!
//! A [`Workload`] has [`Fileset`]s (the files it works on) and [`Phase`]s, run one after the other with a barrier
//! between them. A phase has [`ThreadGroup`]s, run side by side. A thread of a group performs [`Action`]s, chosen
//! by weight, in a fixed sequence, by a ratio, or by a program. [`operation`] lists all operations and what they need. Nothing here is
//! executed: the engine does that.

mod action;
mod actions;
mod by_fileset;
mod fileset;
mod group;
mod io;
mod launch;
mod names;
mod neighbours;
pub mod operation;
mod program;
mod queue;
mod ranks;
pub mod settings;
mod transfer;

pub use action::{Action, FileChoice, TransactionRule};
pub use actions::{Actions, Weighted};
pub use by_fileset::ByFileset;
pub use fileset::{
    Amount, DEFAULT_BUILD_BLOCK_BYTES, Directories, Existing, Fileset, MAXIMUM_FILES, Naming, PADDED_RANK, RANK,
    Sharing, SizeDistribution, has_rank,
};
pub use group::{
    Advice, Arrivals, Batches, CpuPolicy, FailedPart, LatencyTarget, LeastRate, MAXIMUM_THREADS, Phase, Rate, Region,
    Steady, Stop, ThreadGroup, Tolerated, Tour,
};
pub use io::{
    DataPattern, ErrorPolicy, FinalSync, FsyncPolicy, IoEngineKind, IoOverrides, IoSettings, MAXIMUM_REPEAT,
    OpenPolicy, OpenSync,
};
pub use launch::{Launch, MAXIMUM_RANKS, RANKS};
pub use names::name_clashes;
pub use neighbours::{Neighbours, RankShift};
pub use operation::Operation;
pub use program::{FinishUnit, MAXIMUM_HANDLES, MAXIMUM_STEPS, PaceUnit, Step};
pub use transfer::{Distribution, Extent, MAXIMUM_BLOCK_BYTES, MAXIMUM_ZONES, Pattern, Runs, Transfer, Zone, Zones};

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A load on a directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    pub name: String,
    /// The files it works on. Actions refer to them by index. Each is built and made durable just before the first
    /// phase that works on it, and at the latest before the first measured phase: what an earlier ageing phase left
    /// behind is on the filesystem before the measured files are (FFSB).
    pub filesets: Vec<Fileset>,
    /// They run one after the other, and all threads meet in between. Without any, filesets are built and that is all (FFSB
    /// `time=0`, sysbench `prepare`).
    pub phases: Vec<Phase>,
    /// How data gets to and from the files, unless a group of threads says otherwise.
    pub io: IoSettings,
    pub data: DataPattern,
    pub on_error: ErrorPolicy,
    /// How what each measured phase changed is made durable. The time of that is the phase's.
    pub final_sync: FinalSync,
    /// A shell command to run after filesets are built and synced, before the first measured phase (FFSB callout).
    pub callout: Option<String>,
    /// The launcher and the number of ranks; `None` for a load of this process alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// What is replayed, in place of filesets and phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    pub series_interval: Duration,
}

/// A recording of an application's calls, which `fstone record` made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// An absolute path on the host.
    pub file: String,
    /// Of its content: another recording in its place is not replayed.
    pub digest: u32,
    pub calls: u64,
    /// The kinds of its calls, by name.
    pub kinds: Vec<String>,
    #[serde(default)]
    pub pace: ReplayPace,
    /// How many times as fast threads think, or the clock runs.
    #[serde(default = "Replay::as_recorded")]
    pub speed: f64,
    /// Caches are dropped when the tree has been made.
    #[serde(default)]
    pub cold: bool,
}

impl Replay {
    pub const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=1000.0;
    /// Why a speed is wrong at the pace that has no waits.
    pub const NO_WAITS: &str = "at full pace there are no waits that a speed could change";

    pub const fn as_recorded() -> f64 {
        1.0
    }
}

/// When a thread makes its next call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayPace {
    /// After the time that the application spent between the two.
    #[default]
    Think,
    /// At once.
    Full,
    /// When as much time has passed as in the recording.
    Clock,
}

impl Workload {
    /// Whether an error of this call ends the load, or the group of this name that meets it.
    pub fn ends_after(&self, group: &str, call: &str, errno: i32) -> bool {
        let mut groups = self.phases.iter().flat_map(|phase| &phase.groups);
        let goes_on = |of: &ThreadGroup| of.name == group && of.tolerates(call, errno);
        self.on_error != ErrorPolicy::Continue && !groups.any(goes_on)
    }

    /// How long a point of the series is unless somebody says otherwise.
    pub const SERIES_INTERVAL: Duration = Duration::from_secs(1);

    /// These phases on these files, with defaults for everything else.
    pub fn new(name: impl Into<String>, filesets: Vec<Fileset>, phases: Vec<Phase>) -> Self {
        Self {
            name: name.into(),
            filesets,
            phases,
            io: IoSettings::default(),
            data: DataPattern::default(),
            on_error: ErrorPolicy::Stop,
            final_sync: FinalSync::Syncfs,
            callout: None,
            launch: None,
            replay: None,
            series_interval: Self::SERIES_INTERVAL,
        }
    }

    pub fn io_of(&self, group: &ThreadGroup) -> IoSettings {
        group.io.over(self.io)
    }

    pub fn measured_phases(&self) -> impl Iterator<Item = &Phase> {
        self.phases.iter().filter(|phase| phase.measured)
    }

    /// How many intervals it has: measured phases that follow one another are one, and so is a recording.
    pub fn intervals(&self) -> usize {
        let before = [false].into_iter().chain(self.phases.iter().map(|phase| phase.measured));
        self.phases.iter().zip(before).filter(|(phase, before)| phase.measured && !before).count().max(1)
    }

    /// Whether it reads files, or looks at names, in measured phases.
    pub fn looks_at_files(&self) -> bool {
        use Operation::{Getxattr, MmapRead, Open, OpenClose, Read, Readdir, Stat, StatDirectory, Walk};
        let looks = |operation: &Operation| {
            matches!(
                operation,
                Getxattr | MmapRead(_) | Open | OpenClose | Read(_) | Readdir | Stat | StatDirectory | Walk
            )
        };
        let mut groups = self.measured_phases().flat_map(|phase| &phase.groups);
        groups.any(|group| group.actions.all().iter().any(|action| looks(&action.operation)))
    }

    /// Time that the load is limited to, if every measured phase is. Unmeasured phases count if they are limited.
    pub fn time_limit(&self) -> Option<Duration> {
        if self.replay.is_some() {
            return None;
        }
        let counts = |phase: &&Phase| phase.measured || phase.time_limit().is_some();
        self.phases.iter().filter(counts).map(Phase::time_limit).sum()
    }

    /// Bytes that are written into its files before it begins, about.
    pub fn built_bytes(&self) -> u64 {
        if self.io.engine == IoEngineKind::Null {
            return 0;
        }
        let bytes = |fileset: &Fileset| match fileset.amount {
            _ if !fileset.fill => 0,
            Amount::Files(files) => {
                let there = (files as f64 * fileset.preallocated.clamp(0.0, 1.0)) as u64;
                there.saturating_mul(fileset.size.typical_bytes())
            }
            Amount::Bytes(bytes) => bytes,
            Amount::Utilization(_) => 0,
        };
        self.filesets.iter().map(bytes).fold(0, u64::saturating_add)
    }

    /// Threads of the largest measured phase.
    pub fn threads(&self) -> u32 {
        self.measured_phases().map(|phase| phase.groups.iter().map(|group| group.threads).sum()).max().unwrap_or(0)
    }
}
