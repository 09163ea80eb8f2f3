//! One report of many: counts and histograms are sums, and what happened is placed on one axis of time.
//!
//! The axis begins with the first rank that begins, and every phase on it lasts from the first rank's begin to the last one's end, so
//! that no rate of all is higher than it was. Histograms have the same buckets everywhere, so that adding them up is the same as
//! having counted all values in one: a percentile of the sum is that of all values, to the bit.

use crate::spans::Spans;
use fstone_model::Histogram;
use fstone_model::load::{ErrorReport, GroupFsyncs, LoadReport, OwnSeries, PhaseReport, SeriesPoint, Span, covered_ns};
use fstone_model::ranks::{
    NodeReport, PhaseMeeting, PhasePassed, RankOutcome, RankPhase, RankReport, Ranked, RanksReport, SKEW_SHARE,
    Stonewall, Wall,
};
use fstone_model::workload::{Phase, Workload};
use std::collections::BTreeMap;

/// Ranks that a warning names.
const NAMED: usize = 3;

/// A measured phase on the common axis.
#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    /// When the first rank began it, by rank 0's clock.
    first_ns: u64,
    /// From there until the last rank's end, without the final sync.
    running_ns: u64,
    /// The same with it.
    elapsed_ns: u64,
}

/// Points by their measured phase and their place in it.
type Points = BTreeMap<(usize, u64), SeriesPoint>;

impl Stretch {
    fn of(number: u32, passed: &[Vec<PhasePassed>], counts: &[bool]) -> Self {
        let of = || {
            let counted = passed.iter().zip(counts).filter(|(_, counts)| **counts).flat_map(|(passed, _)| passed);
            counted.filter(|passed| passed.number == number)
        };
        let first_ns = of().map(|passed| passed.begin_ns).min().unwrap_or(0);
        let running_ns = of().map(|passed| passed.end_ns).max().unwrap_or(0).saturating_sub(first_ns);
        Self { first_ns, running_ns, elapsed_ns: running_ns }
    }
}

/// Puts together the reports of ranks, one after the other: none is kept.
#[derive(Debug)]
pub(crate) struct Merger {
    name: String,
    phases: Vec<Phase>,
    seed: u64,
    measured: Vec<u32>,
    /// Which measured phase each of the report's operations is of.
    of_operation: Vec<usize>,
    passed: Vec<Vec<PhasePassed>>,
    reported: Vec<bool>,
    /// When the first rank began each of the workload's phases.
    first_begins: Vec<u64>,
    stretches: Vec<Stretch>,
    /// When the last of the ranks that reported had synced each measured phase, from the phase's first begin.
    synced_ns: Vec<u64>,
    /// When each rank closed each measured phase, from the phase's first begin.
    closings: Vec<Vec<Span>>,
    spans: Spans,
    load: LoadReport,
    merged: u32,
    /// When the first of the ranks that reported began each measured phase, from the phase's first begin.
    before_ns: Vec<u64>,
    /// Points before any were merged, by their phase and their place since its first begin, and their length.
    series: Points,
    /// The same of each action that has its own, by group and name.
    own_series: BTreeMap<(String, String), Points>,
    point_ns: u64,
    doublings: u32,
    warnings: BTreeMap<String, Vec<u32>>,
    errors: BTreeMap<(String, String, String, i32), ErrorReport>,
}

impl Merger {
    /// `passed`: every rank's phases by rank 0's clock; `counts`: whether it is expected to report.
    pub(crate) fn new(workload: &Workload, seed: u64, passed: Vec<Vec<PhasePassed>>, counts: &[bool]) -> Self {
        let measured: Vec<u32> =
            (0..).zip(&workload.phases).filter(|(_, phase)| phase.measured).map(|(at, _)| at).collect();
        let of_operation = workload
            .measured_phases()
            .enumerate()
            .flat_map(|(phase, of)| {
                of.groups.iter().flat_map(move |group| group.actions.all().into_iter().map(move |_| phase))
            })
            .collect();
        let first_begin = |number| {
            let begins = passed.iter().flatten().filter(|passed| passed.number == number).map(|passed| passed.begin_ns);
            begins.min().unwrap_or(0)
        };
        // Of all ranks, as how they met is: those that do not report were there.
        let first_begins = (0..).zip(&workload.phases).map(|(number, _)| first_begin(number)).collect();
        let stretches: Vec<Stretch> = measured.iter().map(|number| Stretch::of(*number, &passed, counts)).collect();
        Self {
            name: workload.name.clone(),
            phases: workload.phases.clone(),
            seed,
            measured,
            of_operation,
            reported: vec![false; passed.len()],
            passed,
            first_begins,
            synced_ns: vec![0; stretches.len()],
            closings: vec![Vec::new(); stretches.len()],
            spans: Spans::new(workload.measured_phases()),
            before_ns: vec![0; stretches.len()],
            stretches,
            load: LoadReport::default(),
            merged: 0,
            series: BTreeMap::new(),
            own_series: BTreeMap::new(),
            point_ns: 0,
            doublings: 0,
            warnings: BTreeMap::new(),
            errors: BTreeMap::new(),
        }
    }

    fn late_ns(&self, rank: u32, phase: usize) -> u64 {
        let number = self.measured.get(phase).copied();
        let passed = self.passed.get(rank as usize).into_iter().flatten();
        let begin = passed.filter(|passed| Some(passed.number) == number).map(|passed| passed.begin_ns).next();
        begin.map_or(0, |begin| begin.saturating_sub(self.stretches[phase].first_ns))
    }

    pub(crate) fn add(&mut self, rank: u32, report: &LoadReport) -> RankReport {
        self.merged += 1;
        if let Some(reported) = self.reported.get_mut(rank as usize) {
            *reported = true;
        }
        let own = own_phases(report);
        self.lengthen(rank, &own);
        self.add_series(rank, report, &own);
        let latency = self.add_counts(rank, report, &own);
        let errors = report.operations.iter().map(|one| one.errors).sum();
        let mut warnings = Vec::new();
        for warning in &report.warnings {
            self.warnings.entry(warning.clone()).or_default().push(rank);
            warnings.push(warning.clone());
        }
        for error in &report.errors {
            let key = (error.group.clone(), error.operation.clone(), error.call.clone(), error.errno);
            let path =
                if error.path.is_empty() { format!("(rank {rank})") } else { format!("{} (rank {rank})", error.path) };
            let first = || ErrorReport { count: 0, path, ..error.clone() };
            self.errors.entry(key).or_insert_with(first).count += error.count;
        }
        let percentile = |percent| latency.has_percentile(percent).then(|| latency.percentile_ns(percent)).flatten();
        RankReport {
            operations: report.invocations(),
            errors,
            read_bytes: report.read_bytes(),
            written_bytes: report.written_bytes(),
            elapsed_ns: report.elapsed_ns,
            per_second: report.per_second(report.invocations()),
            p50_ns: percentile(50.0),
            p99_ns: percentile(99.0),
            max_ns: latency.max_ns(),
            warnings,
            ..RankReport::default()
        }
    }

    /// A phase lasts until the last rank's final sync.
    fn lengthen(&mut self, rank: u32, own: &[(u64, u64)]) {
        for (phase, (running_ns, sync_ns)) in own.iter().enumerate().take(self.stretches.len()) {
            let end_ns = self.late_ns(rank, phase) + running_ns + sync_ns;
            self.synced_ns[phase] = self.synced_ns[phase].max(end_ns);
        }
    }

    /// A rank that was to report and died before it did has no operations in the sums, and so its time does not count either.
    fn leave_out_lost(&mut self) {
        if self.merged == 0 {
            return;
        }
        for (phase, number) in self.measured.iter().enumerate() {
            let of_all = self.stretches[phase];
            let Stretch { first_ns, running_ns, .. } = Stretch::of(*number, &self.passed, &self.reported);
            let before_ns = first_ns.saturating_sub(of_all.first_ns);
            self.before_ns[phase] = before_ns;
            let elapsed_ns = self.synced_ns[phase].saturating_sub(before_ns).max(running_ns);
            self.stretches[phase] = Stretch { first_ns, running_ns, elapsed_ns };
            let operations = self.load.operations.iter_mut().zip(&self.of_operation);
            let of_phase = operations.filter(|(_, of)| **of == phase).filter_map(|(one, _)| one.at_work.as_mut());
            for span in of_phase.map(|[work, _]| work).chain(&mut self.closings[phase]) {
                span.begin_ns = span.begin_ns.saturating_sub(before_ns);
                span.end_ns = span.end_ns.saturating_sub(before_ns);
            }
            if phase == 0 {
                self.load.first_done_ns = self.load.first_done_ns.saturating_sub(before_ns);
            }
        }
    }

    /// Sums; gives the latency of all of the rank's operations.
    fn add_counts(&mut self, rank: u32, report: &LoadReport, own: &[(u64, u64)]) -> Histogram {
        let before: Vec<u64> = own
            .iter()
            .scan(0, |sum, (running, sync)| {
                let at = *sum;
                *sum += running + sync;
                Some(at)
            })
            .collect();
        let late: Vec<u64> = (0..self.stretches.len()).map(|phase| self.late_ns(rank, phase)).collect();
        // Since the phase's first begin; where that is on the axis is known when all are there.
        let since_first = |phase: usize, ns: u64| {
            let (before, late) = (before.get(phase).copied().unwrap_or(0), late.get(phase).copied().unwrap_or(0));
            ns.saturating_sub(before) + late
        };
        self.spans.add(rank, &report.operations, since_first);
        let load = &mut self.load;
        load.threads += report.threads;
        load.setup_ns = load.setup_ns.max(report.setup_ns);
        load.process_user_ns += report.process_user_ns;
        load.process_system_ns += report.process_system_ns;
        if load.clock.source.is_empty() {
            load.clock.clone_from(&report.clock);
        }
        load.audit.verified_bytes += report.audit.verified_bytes;
        load.audit.null_ns_per_operation = load.audit.null_ns_per_operation.or(report.audit.null_ns_per_operation);
        let mut latency = Histogram::default();
        load.operations.resize_with(report.operations.len().max(load.operations.len()), Default::default);
        for (index, (sum, one)) in load.operations.iter_mut().zip(&report.operations).enumerate() {
            sum.phase.clone_from(&one.phase);
            sum.group.clone_from(&one.group);
            sum.name.clone_from(&one.name);
            sum.requested_share = one.requested_share;
            sum.invocations += one.invocations;
            sum.transactions += one.transactions;
            sum.calls += one.calls;
            sum.read_bytes += one.read_bytes;
            sum.written_bytes += one.written_bytes;
            sum.errors += one.errors;
            sum.missed += one.missed;
            sum.latency.merge(&one.latency);
            latency.merge(&one.latency);
            // A phase that the rank never came to has nothing.
            let phase = self.of_operation.get(index).copied().unwrap_or(0);
            let Some(spans) = one.at_work.filter(|_| phase < before.len()) else { continue };
            let place = |ns: u64| since_first(phase, ns);
            let [work, closing] = spans.map(|span| Span { begin_ns: place(span.begin_ns), end_ns: place(span.end_ns) });
            // All groups that changed anything have the same, the others none.
            if let Some(closings) = self.closings.get_mut(phase).filter(|all| all.last() != Some(&closing)) {
                closings.push(closing);
            }
            let others = sum.at_work.map_or(work, |[others, _]| others);
            let work = Span { begin_ns: others.begin_ns.min(work.begin_ns), end_ns: others.end_ns.max(work.end_ns) };
            let closed =
                sum.at_work.map_or(closing, |[_, closed]| if closed.length_ns() > 0 { closed } else { closing });
            sum.at_work = Some([work, closed]);
        }
        for one in &report.group_fsyncs {
            // A rank lists only what it performed, and those between operations apart from those at the end.
            fn kind(of: &GroupFsyncs) -> (&str, &str, bool, bool) {
                (&of.phase, &of.group, of.periodic > 0, of.at_end > 0)
            }
            match load.group_fsyncs.iter_mut().find(|sum| kind(sum) == kind(one)) {
                Some(sum) => {
                    sum.periodic += one.periodic;
                    sum.at_end += one.at_end;
                    sum.latency.merge(&one.latency);
                    sum.commits.merge(&one.commits);
                }
                None => load.group_fsyncs.push(one.clone()),
            }
        }
        for one in &report.calls {
            let same = load.calls.iter_mut().find(|sum| sum.group == one.group && sum.call == one.call);
            match same {
                Some(sum) => sum.latency.merge(&one.latency),
                None => load.calls.push(one.clone()),
            }
        }
        let first_ns = late.first().copied().unwrap_or(0) + report.first_done_ns;
        load.first_done_ns = if self.merged == 1 { first_ns } else { load.first_done_ns.min(first_ns) };
        latency
    }

    /// Adds a rank's points where they are in their phase, to the nearest point.
    fn add_series(&mut self, rank: u32, report: &LoadReport, own: &[(u64, u64)]) {
        let point_ns = (report.series_interval_ns >> report.series_doublings.min(63)).max(1);
        if self.point_ns == 0 {
            self.point_ns = point_ns;
        }
        self.doublings = self.doublings.max(report.series_doublings);
        // Where each phase begins in the rank's running time, and how much later than the first rank's it does.
        let mut starts = Vec::new();
        let mut own_ns = 0;
        for (phase, (running_ns, _)) in own.iter().enumerate().take(self.stretches.len()) {
            starts.push((own_ns, self.late_ns(rank, phase)));
            own_ns += running_ns;
        }
        let point_ns = self.point_ns;
        let add = |sums: &mut Points, points: &[SeriesPoint]| {
            for moment in report.moments_of(points) {
                let phase = starts.partition_point(|(own_ns, _)| *own_ns <= moment.begin_ns).saturating_sub(1);
                let Some((own_ns, late_ns)) = starts.get(phase) else { continue };
                let since_ns = moment.begin_ns - own_ns.min(&moment.begin_ns) + late_ns;
                sums.entry((phase, nearest(since_ns, point_ns))).or_default().add(moment.point);
            }
        };
        add(&mut self.series, &report.series);
        for own in &report.own_series {
            let of_action = self.own_series.entry((own.group.clone(), own.name.clone())).or_default();
            add(of_action, &own.series);
        }
    }

    /// All together. `per_rank` has the figures that [`Self::add`] gave.
    /// `uncertainty`: how far off a rank's time may be, at this moment.
    pub(crate) fn finish(
        mut self,
        mut per_rank: Vec<RankReport>,
        uncertainty: &dyn Fn(usize, u64) -> u64,
    ) -> RanksReport {
        self.leave_out_lost();
        self.place_in_time();
        self.put_series();
        self.put_words();
        // Whichever rank reported first.
        let groups: Vec<(&str, &str)> = self
            .phases
            .iter()
            .flat_map(|phase| phase.groups.iter().map(|group| (phase.name.as_str(), group.name.as_str())))
            .collect();
        let place = |sum: &GroupFsyncs| groups.iter().position(|known| *known == (&*sum.phase, &*sum.group));
        self.load.group_fsyncs.sort_by_key(|sum| (place(sum), sum.at_end > 0));
        for (rank, passed) in per_rank.iter_mut().zip(&self.passed) {
            rank.phases = passed.iter().map(|passed| self.rank_phase(passed)).collect();
            // Each warning is listed once, whatever ranks it is from.
            rank.warnings
                .retain(|warning| self.warnings.get(warning).is_none_or(|ranks| ranks.len() < self.merged as usize));
        }
        let phases =
            (0..).zip(&self.phases).filter_map(|(number, phase)| self.meeting(number, phase, uncertainty)).collect();
        let mut by_rate: Vec<(f64, u32)> =
            per_rank.iter().filter(|rank| rank.elapsed_ns > 0).map(|rank| (rank.per_second, rank.rank)).collect();
        by_rate.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let at = |place: usize| by_rate.get(place).map(|(_, rank)| *rank);
        let mut nodes: BTreeMap<&str, NodeReport> = BTreeMap::new();
        for rank in &per_rank {
            let node = nodes
                .entry(&rank.host)
                .or_insert_with(|| NodeReport { host: rank.host.clone(), ..NodeReport::default() });
            node.ranks += 1;
            node.operations += rank.operations;
            node.read_bytes += rank.read_bytes;
            node.written_bytes += rank.written_bytes;
            node.per_second += rank.per_second;
        }
        let per_node: Vec<NodeReport> = nodes.into_values().collect();
        let completed = per_rank.iter().filter(|rank| rank.outcome == RankOutcome::Completed).count();
        let ranked = Ranked {
            ranks: per_rank.len() as u32,
            nodes: per_node.len() as u32,
            completed: completed as u32,
            ended_early: None,
            merged: self.merged,
            phases,
            slowest: at(0),
            median: at(by_rate.len().saturating_sub(1) / 2),
            fastest: at(by_rate.len().saturating_sub(1)),
            per_rank,
            per_node,
        };
        let action_spans = self.spans.finish();
        RanksReport { name: self.name, seed: self.seed, ranked, action_spans, load: self.load }
    }

    /// Puts what was counted since its phase's begin at its place on the axis.
    fn place_in_time(&mut self) {
        let begins: Vec<u64> = self
            .stretches
            .iter()
            .scan(0, |sum, stretch| {
                let at = *sum;
                *sum += stretch.elapsed_ns;
                Some(at)
            })
            .collect();
        for (operation, phase) in self.load.operations.iter_mut().zip(&self.of_operation) {
            let begin_ns = begins.get(*phase).copied().unwrap_or(0);
            let Some([work, closing]) = &mut operation.at_work else { continue };
            // Ranks close at different times. What counts is for how long some of them did and the group was not at work any more: so long
            // the closing of all is, until the last rank's end. A group that changed nothing has none.
            let closes = closing.length_ns() > 0;
            let closings = self.closings.get(*phase).filter(|_| closes).map_or(&[][..], Vec::as_slice);
            let end_ns = closings.iter().map(|span| span.end_ns).max().unwrap_or(work.end_ns);
            let all = closings.iter().chain([&*work]).copied().collect();
            let length_ns = covered_ns(all).saturating_sub(work.end_ns - work.begin_ns);
            *closing = Span { begin_ns: end_ns.saturating_sub(length_ns), end_ns };
            for span in [work, closing] {
                span.begin_ns += begin_ns;
                span.end_ns += begin_ns;
            }
        }
        let load = &mut self.load;
        load.seed = self.seed;
        load.running_ns = self.stretches.iter().map(|stretch| stretch.running_ns).sum();
        load.elapsed_ns = self.stretches.iter().map(|stretch| stretch.elapsed_ns).sum();
        load.sync_ns = load.elapsed_ns - load.running_ns;
        load.last_done_ns = load.running_ns;
        if self.stretches.len() > 1 {
            let phases =
                self.measured.iter().filter_map(|number| self.phases.get(*number as usize)).zip(&self.stretches);
            load.phases = phases
                .filter(|(_, stretch)| stretch.elapsed_ns > 0)
                .map(|(phase, stretch)| PhaseReport {
                    name: phase.name.clone(),
                    groups: phase.groups.iter().map(|group| group.name.clone()).collect(),
                    elapsed_ns: stretch.elapsed_ns,
                    sync_ns: stretch.elapsed_ns - stretch.running_ns,
                })
                .collect();
        }
    }

    /// Puts the points of all phases on one axis, on which a phase has the points that it lasts.
    fn put_series(&mut self) {
        let doublings = self.doublings.min(63);
        let point_ns = self.point_ns.max(1);
        let mut first = 0;
        let mut phases = Vec::new();
        for (stretch, before_ns) in self.stretches.iter().zip(&self.before_ns) {
            let points = stretch.running_ns.div_ceil(point_ns).max(1);
            phases.push((first, points - 1, nearest(*before_ns, point_ns)));
            first += points;
        }
        let whole = |points: Points| {
            let mut series: Vec<SeriesPoint> = Vec::new();
            for ((phase, place), point) in points {
                let Some((first, last, before)) = phases.get(phase) else { continue };
                let place = first + place.saturating_sub(*before).min(*last);
                let place = usize::try_from(place >> doublings).unwrap_or(usize::MAX);
                if place >= series.len() {
                    series.resize_with(place + 1, SeriesPoint::default);
                }
                series[place].add(&point);
            }
            series
        };
        self.load.series = whole(std::mem::take(&mut self.series));
        let own = std::mem::take(&mut self.own_series).into_iter();
        let own = own.map(|((group, name), points)| OwnSeries { group, name, series: whole(points) });
        self.load.own_series = own.collect();
        self.load.series_interval_ns = self.point_ns << doublings;
        self.load.series_doublings = self.doublings;
    }

    fn put_words(&mut self) {
        self.load.errors = std::mem::take(&mut self.errors).into_values().collect();
        let all = self.merged as usize;
        let told = |(warning, ranks): (&String, &Vec<u32>)| {
            if ranks.len() == all {
                return warning.clone();
            }
            let named: Vec<String> = ranks.iter().take(NAMED).map(u32::to_string).collect();
            match ranks.len().saturating_sub(NAMED) {
                0 => format!("rank {}: {warning}", named.join(", ")),
                more => format!("rank {} and {more} more: {warning}", named.join(", ")),
            }
        };
        self.load.warnings = self.warnings.iter().map(told).collect();
    }

    fn rank_phase(&self, passed: &PhasePassed) -> RankPhase {
        let first_ns = self.first_begins.get(passed.number as usize).copied().unwrap_or(passed.begin_ns);
        RankPhase {
            name: self.phases.get(passed.number as usize).map_or_else(String::new, |phase| phase.name.clone()),
            begin_ns: passed.begin_ns.saturating_sub(first_ns),
            end_ns: passed.end_ns.saturating_sub(first_ns),
            operations: passed.operations,
            read_bytes: passed.read_bytes,
            written_bytes: passed.written_bytes,
            stonewall_operations: passed.stonewall.filter(|wall| wall.met).map(|wall| wall.operations),
        }
    }

    /// How the ranks met in a phase; `None` if no rank ended it.
    fn meeting(&self, number: u32, phase: &Phase, uncertainty: &dyn Fn(usize, u64) -> u64) -> Option<PhaseMeeting> {
        let of: Vec<&PhasePassed> = self.passed.iter().flatten().filter(|passed| passed.number == number).collect();
        let first_begin = of.iter().map(|passed| passed.begin_ns).min()?;
        let last_begin = of.iter().map(|passed| passed.begin_ns).max()?;
        let first_end = of.iter().map(|passed| passed.end_ns).min()?;
        let last_end = of.iter().map(|passed| passed.end_ns).max()?;
        let length_ns = last_end.saturating_sub(first_begin);
        let ends = self.passed.iter().enumerate().flat_map(|(rank, passed)| passed.iter().map(move |one| (rank, one)));
        let uncertainties =
            ends.filter(|(_, one)| one.number == number).map(|(rank, one)| uncertainty(rank, one.end_ns));
        let uncertainty_ns = uncertainties.max().unwrap_or(0);
        let (start_skew_ns, stop_skew_ns) = (last_begin - first_begin, last_end - first_end);
        let walls: Vec<Wall> = of.iter().filter_map(|passed| passed.stonewall).collect();
        // Where all were done before the time was over, there was none.
        let stonewall = walls.iter().any(|wall| wall.met).then(|| Stonewall {
            operations: walls.iter().map(|wall| wall.operations).sum(),
            fewest: walls.iter().map(|wall| wall.operations).min().unwrap_or(0),
            most: walls.iter().map(|wall| wall.operations).max().unwrap_or(0),
            length_ns: walls.iter().map(|wall| wall.at_ns.saturating_sub(first_begin)).max().unwrap_or(0),
        });
        Some(PhaseMeeting {
            name: phase.name.clone(),
            measured: phase.measured,
            ranks: of.len() as u32,
            length_ns,
            start_skew_ns,
            stop_skew_ns,
            uncertainty_ns,
            skewed: start_skew_ns.max(stop_skew_ns) as f64 > SKEW_SHARE * length_ns as f64,
            stonewall,
        })
    }
}

fn nearest(moment_ns: u64, point_ns: u64) -> u64 {
    (moment_ns + point_ns / 2) / point_ns
}

/// Running time and final sync of each measured phase that a rank came to.
fn own_phases(report: &LoadReport) -> Vec<(u64, u64)> {
    if report.phases.is_empty() {
        return vec![(report.running_ns, report.sync_ns)];
    }
    report.phases.iter().map(|phase| (phase.elapsed_ns.saturating_sub(phase.sync_ns), phase.sync_ns)).collect()
}

#[cfg(test)]
mod tests;
