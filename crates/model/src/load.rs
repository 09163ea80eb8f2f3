//! What the load engine gives back from one run of a workload.

use crate::Histogram;
use crate::ranked::Ranked;
use crate::workload::Workload;
use serde::{Deserialize, Serialize};

/// One run of a workload on a directory. Everything but `setup_ns` and `audit.null` is about the measured phases.
///
/// The store also keeps it in a format without field names, so no field may be skipped when it is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")] // `check.rs` has the traits.
pub struct LoadReport {
    pub seed: u64,
    /// Time to build the filesets and make them durable.
    pub setup_ns: u64,
    /// The measured interval: from the start of the first operation to the end of the final sync, without unmeasured phases.
    pub elapsed_ns: u64,
    /// Its part without the final sync: until the last thread has closed its files.
    pub running_ns: u64,
    /// The final syncs of measured phases.
    pub sync_ns: u64,
    /// When the first thread finished its last operation, since the interval's start.
    pub first_done_ns: u64,
    /// When the last thread finished, in running time.
    pub last_done_ns: u64,
    pub process_user_ns: u64,
    pub process_system_ns: u64,
    pub threads: u32,
    /// What each thread of each measured phase did, group by group; empty when it was not recorded.
    #[serde(default)]
    pub per_thread: Vec<ThreadReport>,
    /// The measured phases, in their order, where there are several.
    #[serde(default)]
    pub phases: Vec<PhaseReport>,
    /// One per action of each group, in the workload's order.
    pub operations: Vec<OperationReport>,
    /// Fsyncs of the groups' fsync policy: an entry for the periodic ones of a group, and another for the final ones,
    /// so that each has a latency of its own.
    pub group_fsyncs: Vec<GroupFsyncs>,
    pub calls: Vec<CallReport>,
    /// Throughput and latency over time.
    pub series: Vec<SeriesPoint>,
    pub series_interval_ns: u64,
    /// How often that length was doubled, and pairs of points merged, because the load ran for so long.
    #[serde(default)]
    pub series_doublings: u32,
    /// The same of each action of the groups that have a series of their own.
    #[serde(default)]
    pub own_series: Vec<OwnSeries>,
    pub errors: Vec<ErrorReport>,
    pub audit: Audit,
    pub clock: ClockReport,
    pub warnings: Vec<String>,
    /// For a load of several ranks: how they met, and what each contributed.
    #[serde(default)]
    pub ranks: Option<Box<Ranked>>,
    /// Of a recording that was replayed.
    #[serde(default)]
    pub replay: Option<Box<ReplayReport>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayReport {
    /// Sums over all threads: between calls, and waiting for calls of others on the same names and files.
    pub think_ns: u64,
    pub waited_ns: u64,
    /// How long the application took, without what recording it cost; 0 if that is not known.
    pub recorded_ns: u64,
    /// Calls whose result was another one than the recorded.
    pub differences: u64,
    /// Those of them that no lack of a feature in one of the filesystems explains.
    #[serde(default)]
    pub unexplained: u64,
    /// At the clock's pace, calls that came too late by more than a millisecond.
    pub late: u64,
}

impl ReplayReport {
    /// If more than this share of the calls differ, its figures are doubtful.
    pub const DOUBTFUL: f64 = 0.01;
    /// If more than this share differ, it was another load than the recorded one, and has no figures.
    pub const FAILED: f64 = 0.1;

    /// That too many calls differ, in words.
    pub fn differing(unexplained: u64, calls: u64, share: f64) -> Option<String> {
        let found = unexplained as f64 / calls.max(1) as f64;
        let words =
            || format!("{unexplained} of {calls} calls ({:.1} %) returned something else than recorded", found * 100.0);
        (found > share).then(words)
    }
}

/// One thread, to show how evenly the work was spread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadReport {
    pub group: String,
    /// Operations it completed, and periodic fsyncs where they count as operations.
    pub operations: u64,
    /// Sum of their latencies.
    pub busy_ns: u64,
    #[serde(default)]
    pub latency: Histogram,
    /// From its group's start to the end of its last operation or of its final fsyncs; 0 if that was not recorded.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// The most requests that it had in flight at the end, if it searched for that by a latency target or kept to what was found; 0
    /// otherwise.
    #[serde(default)]
    pub queue_depth: u32,
    #[serde(default)]
    pub usage: ThreadUsage,
    /// How its reads and its writes went over time: of the points of the series that it was at work in from begin to end.
    #[serde(default)]
    pub over_time: [OverTime; 2],
    #[serde(default)]
    pub steady: Option<SteadyReport>,
}

/// The last window of a thread that was to end when its rate is steady.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadyReport {
    pub attained: bool,
    /// Per second, oldest first.
    pub bytes: Vec<f64>,
    pub operations: Vec<f64>,
    /// Of what was judged, per second: the slope of the line through its samples, the largest distance of one to their mean, and that.
    pub slope: f64,
    pub deviation: f64,
    pub mean: f64,
}

/// How idle processors were while a load ran, by the units of work that threads of the lowest scheduling class did on them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuIdleness {
    /// With their numbers.
    pub cpus_percent: Vec<(u32, f64)>,
    /// What a unit takes on a processor that does nothing else: mean and standard deviation of all processors.
    pub unit_mean_ns: f64,
    pub unit_deviation_ns: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUsage {
    pub user_ns: u64,
    pub system_ns: u64,
    pub context_switches: u64,
    /// Page faults that read from a device.
    pub major_faults: u64,
    pub minor_faults: u64,
}

impl ThreadUsage {
    pub fn since(self, before: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            system_ns: self.system_ns.saturating_sub(before.system_ns),
            context_switches: self.context_switches.saturating_sub(before.context_switches),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
        }
    }

    pub fn add(&mut self, other: Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.context_switches += other.context_switches;
        self.major_faults += other.major_faults;
        self.minor_faults += other.minor_faults;
    }
}

/// Rates of a thread, of which each point of the series is a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct OverTime {
    /// Bytes per second.
    pub bytes: Spread,
    /// Operations per second.
    pub operations: Spread,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub samples: u64,
    pub minimum: f64,
    pub maximum: f64,
    pub mean: f64,
    /// Sum of the squares of their distances from the mean.
    pub squares: f64,
}

impl Spread {
    /// Takes in a sample (Welford's way).
    pub fn take(&mut self, sample: f64) {
        self.minimum = if self.samples == 0 { sample } else { self.minimum.min(sample) };
        self.maximum = self.maximum.max(sample);
        self.samples += 1;
        let distance = sample - self.mean;
        self.mean += distance / self.samples as f64;
        self.squares += distance * (sample - self.mean);
    }

    /// Takes in the samples of another time.
    pub fn follow(&mut self, other: Self) {
        if other.samples == 0 || self.samples == 0 {
            *self = if self.samples == 0 { other } else { *self };
            return;
        }
        let (ours, theirs) = (self.samples as f64, other.samples as f64);
        let distance = other.mean - self.mean;
        self.minimum = self.minimum.min(other.minimum);
        self.maximum = self.maximum.max(other.maximum);
        self.samples += other.samples;
        self.mean += distance * theirs / (ours + theirs);
        self.squares += other.squares + distance * distance * ours * theirs / (ours + theirs);
    }

    /// Adds the rates of another thread at the same time.
    pub fn beside(&mut self, other: Self) {
        self.minimum += other.minimum;
        self.maximum += other.maximum;
        self.samples += other.samples;
        self.mean += other.mean;
        self.squares += other.squares;
    }

    pub fn deviation(&self) -> f64 {
        if self.samples > 1 { (self.squares / (self.samples - 1) as f64).sqrt() } else { 0.0 }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseReport {
    pub name: String,
    pub groups: Vec<String>,
    /// Its part of the measured interval, with the sync behind it.
    pub elapsed_ns: u64,
    /// That sync; 0 where none was.
    #[serde(default)]
    pub sync_ns: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationReport {
    /// Empty in reports from before this was recorded.
    #[serde(default)]
    pub phase: String,
    pub group: String,
    pub name: String,
    /// Times it was completed.
    pub invocations: u64,
    /// Transactions, by the action's rule.
    pub transactions: u64,
    /// Data system calls.
    pub calls: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub errors: u64,
    /// Times that the chosen file had gone, or that there was none at the moment, and another choice was made.
    #[serde(default)]
    pub missed: u64,
    /// Share of operations that the mix asked for, 0 to 1; 0 when there is no mix.
    pub requested_share: f64,
    pub latency: Histogram,
    /// When its group was at work, and when its phase closed files and synced after all groups, which takes no time of a group that
    /// changed nothing beside others that did; `None` in reports from before this was recorded.
    #[serde(default)]
    pub at_work: Option<[Span; 2]>,
}

/// A part of the measured interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    /// Since the interval's start.
    pub begin_ns: u64,
    /// Likewise; not before it begins.
    pub end_ns: u64,
}

impl Span {
    pub const fn length_ns(self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupFsyncs {
    /// Empty in reports from before this was recorded.
    #[serde(default)]
    pub phase: String,
    pub group: String,
    pub periodic: u64,
    pub at_end: u64,
    pub latency: Histogram,
    /// Of operations that wrote and that a periodic fsync followed at once: from the operation's begin to the fsync's end.
    #[serde(default)]
    pub commits: Histogram,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallReport {
    pub group: String,
    /// open, read, write, create, lseek, unlink, close, stat (the calls FFSB tells of) or fsync, which here includes
    /// fdatasync and msync.
    pub call: String,
    pub latency: Histogram,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    pub operations: u64,
    pub transactions: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub latency: Histogram,
}

impl SeriesPoint {
    /// Adds what happened in another interval, or of another part of the load in the same one.
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.transactions += other.transactions;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.latency.merge(&other.latency);
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnSeries {
    pub group: String,
    pub name: String,
    /// Points as long as those of the load's series, and as many or fewer: none after its last operation.
    pub series: Vec<SeriesPoint>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReport {
    /// Empty where it is no group's.
    #[serde(default)]
    pub group: String,
    /// The action's name, or "setup", or "final sync".
    pub operation: String,
    pub call: String,
    /// The first path it happened on, relative to the load's directory; with " at byte N" where data was not as written.
    pub path: String,
    pub errno: i32,
    /// Its symbol and text ("ENOSPC: No space left on device").
    pub text: String,
    pub count: u64,
}

/// What the load found out about itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// Operations per second asked for and reached, when a rate was asked for.
    pub rate: Option<Expected>,
    pub distinct_files: Option<Expected>,
    pub distinct_blocks: Option<Expected>,
    /// Largest difference between the achieved and the requested share of an operation, in percentage points.
    pub mix_error_points: Option<f64>,
    pub written_bytes: Option<Expected>,
    /// Cost of the engine itself per operation, from the same workload on the null I/O engine.
    pub null_ns_per_operation: Option<f64>,
    /// That cost as a share of the mean latency, 0 to 1.
    pub overhead_share: Option<f64>,
    /// Bytes verified against their stamps, when data is stamped.
    pub verified_bytes: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    pub expected: f64,
    pub observed: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockReport {
    /// "tsc" or "clock_gettime".
    pub source: String,
    pub cost_ns: f64,
    /// Smallest step it was seen to make.
    pub resolution_ns: f64,
}

impl CallReport {
    pub fn makes_durable(&self) -> bool {
        ["fsync", "fdatasync", "msync"].contains(&self.call.as_str())
    }
}

impl LoadReport {
    pub fn ended_by(&self, workload: &Workload) -> Option<&ErrorReport> {
        self.errors.iter().find(|error| workload.ends_after(&error.group, &error.call, error.errno))
    }

    /// Takes out what no page shows: the latencies of threads, and of system calls other than those that make data durable.
    pub fn shorten(&mut self) {
        self.per_thread.clear();
        self.ranks = None;
        self.own_series.clear();
        self.calls.retain(CallReport::makes_durable);
    }

    /// Why its figures are doubtful.
    pub fn doubt(&self) -> Option<String> {
        let unexplained = self.replay.as_ref()?.unexplained;
        ReplayReport::differing(unexplained, self.invocations(), ReplayReport::DOUBTFUL)
    }

    pub fn invocations(&self) -> u64 {
        self.operations.iter().map(|operation| operation.invocations).sum()
    }

    pub fn transactions(&self) -> u64 {
        self.operations.iter().map(|operation| operation.transactions).sum()
    }

    pub fn read_bytes(&self) -> u64 {
        self.operations.iter().map(|operation| operation.read_bytes).sum()
    }

    pub fn written_bytes(&self) -> u64 {
        self.operations.iter().map(|operation| operation.written_bytes).sum()
    }

    /// A count per second of the measured interval.
    pub fn per_second(&self, count: u64) -> f64 {
        rate(count, self.elapsed_ns)
    }

    /// How often some of its operations were completed, per second in which any of their groups was at work.
    pub fn rate_of<'a>(&self, operations: impl Iterator<Item = &'a OperationReport> + Clone) -> f64 {
        let count = operations.clone().map(|operation| operation.invocations).sum();
        let spans: Option<Vec<[Span; 2]>> = operations.clone().map(|operation| operation.at_work).collect();
        let covered = spans.map(|spans| covered_ns(spans.into_iter().flatten().collect()));
        rate(count, covered.unwrap_or_else(|| self.elapsed_ns_of(operations)))
    }

    /// How long the phases took that have a group of the same name as one of these operations' groups, if nothing better was recorded.
    fn elapsed_ns_of<'a>(&self, operations: impl Iterator<Item = &'a OperationReport>) -> u64 {
        if self.phases.is_empty() {
            return self.elapsed_ns;
        }
        let groups: Vec<&String> = operations.map(|operation| &operation.group).collect();
        let theirs = |name: &String| groups.contains(&name);
        self.phases.iter().filter(|phase| phase.groups.iter().any(theirs)).map(|phase| phase.elapsed_ns).sum()
    }
}

/// How much of the interval lies in at least one of these spans.
pub fn covered_ns(mut spans: Vec<Span>) -> u64 {
    spans.sort_unstable();
    let (mut covered, mut until) = (0, 0);
    for span in spans {
        covered += span.end_ns.saturating_sub(span.begin_ns.max(until));
        until = until.max(span.end_ns);
    }
    covered
}

fn rate(count: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 { 0.0 } else { count as f64 * 1e9 / elapsed_ns as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_come_to_the_same_in_parts() {
        let samples = [3.0, 5.0, 4.0, 8.0, 0.5];
        let of = |samples: &[f64]| {
            let mut spread = Spread::default();
            samples.iter().for_each(|sample| spread.take(*sample));
            spread
        };
        let whole = of(&samples);
        assert_eq!((whole.samples, whole.minimum, whole.maximum), (5, 0.5, 8.0));
        assert!((whole.mean - 4.1).abs() < 1e-9 && (whole.deviation() - 2.7477).abs() < 1e-3, "{whole:?}");
        let mut parts = of(&samples[..2]);
        parts.follow(of(&samples[2..]));
        parts.follow(Spread::default());
        assert!((parts.mean - whole.mean).abs() < 1e-9 && (parts.squares - whole.squares).abs() < 1e-9);
        assert_eq!((parts.samples, parts.minimum, parts.maximum), (5, 0.5, 8.0));
    }

    #[test]
    fn spans_that_overlap_count_once() {
        let spans = |of: &[(u64, u64)]| of.iter().map(|&(begin_ns, end_ns)| Span { begin_ns, end_ns }).collect();
        assert_eq!(covered_ns(spans(&[])), 0);
        assert_eq!(covered_ns(spans(&[(5, 9), (0, 6)])), 9);
        assert_eq!(covered_ns(spans(&[(0, 9), (2, 4), (12, 13), (9, 9)])), 10);
    }
}
