//! Where the threads' counts come together.

use super::tally::{Call, GroupFsyncTally, Latencies, ThreadTally};
use fstone_model::Histogram;
use fstone_model::histogram::BUCKETS;
use fstone_model::load::{CallReport, ErrorReport, GroupFsyncs, OperationReport, OwnSeries, SeriesPoint, Span};
use rustix::io::Errno;
use std::sync::Mutex;
use std::time::Duration;

/// Points of a series after which its interval is doubled: eight hours of seconds, and a few dozen MB of memory.
const MAX_POINTS: usize = 30_000;
/// Points kept dense because threads still add to them; older ones are packed.
const DENSE_POINTS: usize = 3;
/// Kinds of errors kept apart (by action, call and errno); any more are counted with the last.
const MAX_ERRORS: usize = 1000;

/// Latencies as counts by bucket, over all threads.
#[derive(Debug, Clone, Default)]
struct Dense {
    counts: Vec<u64>,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    any: bool,
}

impl Dense {
    fn add_extremes(&mut self, latencies: &Latencies) {
        if latencies.is_empty() {
            return;
        }
        self.sum_ns += u128::from(latencies.sum_ns);
        self.min_ns = if self.any { self.min_ns.min(latencies.min_ns) } else { latencies.min_ns };
        self.max_ns = self.max_ns.max(latencies.max_ns);
        self.any = true;
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
    }

    fn take(&mut self, latencies: &mut Latencies) {
        self.add_extremes(latencies);
        latencies.drain(|bucket, count| self.counts[bucket] += u64::from(count));
    }

    fn histogram(&self) -> Histogram {
        Histogram::from_counts(&self.counts, self.sum_ns, self.min_ns, self.max_ns)
    }
}

#[derive(Debug, Clone, Default)]
struct Action {
    invocations: u64,
    transactions: u64,
    calls: u64,
    read_bytes: u64,
    written_bytes: u64,
    errors: u64,
    missed: u64,
    latency: Dense,
    series: Option<Series>,
}

#[derive(Debug, Clone, Default)]
struct Group {
    actions: Vec<Action>,
    calls: Vec<Dense>,
    periodic_fsyncs: (u64, Dense),
    end_fsyncs: (u64, Dense),
    commits: Dense,
}

#[derive(Debug, Clone, Default)]
struct Point {
    counts: SeriesPoint,
    dense: Option<Box<Dense>>,
}

impl Point {
    fn pack(&mut self) {
        if let Some(dense) = self.dense.take() {
            self.counts.latency.merge(&dense.histogram());
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Series {
    points: Vec<Point>,
    /// Points of the threads' clock that make one of `points`, as a power of two.
    doublings: u32,
}

impl Series {
    /// The place of the threads' point number `index`, making room and halving the resolution as needed.
    fn at(&mut self, index: u64) -> &mut Point {
        while index >> self.doublings >= MAX_POINTS as u64 {
            self.halve();
        }
        let place = (index >> self.doublings) as usize;
        if place >= self.points.len() {
            self.points.resize_with(place + 1, Point::default);
            for old in self.points.iter_mut().rev().skip(DENSE_POINTS).take_while(|point| point.dense.is_some()) {
                old.pack();
            }
        }
        &mut self.points[place]
    }

    fn halve(&mut self) {
        self.doublings += 1;
        let mut halved: Vec<Point> = Vec::with_capacity(self.points.len() / 2 + 1);
        for (index, mut point) in std::mem::take(&mut self.points).into_iter().enumerate() {
            point.pack();
            match halved.last_mut() {
                Some(last) if index % 2 == 1 => last.counts.add(&point.counts),
                _ => halved.push(point),
            }
        }
        self.points = halved;
    }

    fn finish(mut self, doublings: u32) -> Vec<SeriesPoint> {
        while self.doublings < doublings {
            self.halve();
        }
        let packed = self.points.into_iter().map(|mut point| {
            point.pack();
            point.counts
        });
        packed.collect()
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    pub(crate) operations: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) fsyncs: u64,
    pub(crate) latency: Histogram,
    pub(crate) fsync_latency: Histogram,
}

#[derive(Debug, Clone)]
struct Inside {
    groups: Vec<Group>,
    series: Series,
    errors: Vec<ErrorReport>,
    totals: Totals,
    recent: Dense,
    recent_fsyncs: Dense,
}

/// What threads have handed over and is not added up yet, and tallies that were, for them to take.
#[derive(Debug, Default)]
struct Arrived {
    /// With the numbers of their groups and points.
    full: Vec<(usize, u64, ThreadTally)>,
    empty: Vec<ThreadTally>,
}

/// Collects what the threads of all measured phases counted; of unmeasured ones too, into a collector of their own.
///
/// Threads hand over at the same moments, and may have requests in flight: they put their tally down and take an empty one. The thread that
/// waits for them adds up.
#[derive(Debug)]
pub(crate) struct Collector {
    inside: Mutex<Inside>,
    arrived: Mutex<Arrived>,
}

impl Inside {
    /// Adds a thread's counts of the point number `index`, and clears them.
    fn add(&mut self, group: usize, index: u64, tally: &mut ThreadTally) {
        let Self { groups, series, totals, recent, recent_fsyncs, .. } = self;
        let group = &mut groups[group];
        let point = series.at(index);
        for (total, counted) in group.actions.iter_mut().zip(&mut tally.actions) {
            total.missed += std::mem::take(&mut counted.missed);
            if counted.invocations == 0 && counted.errors == 0 {
                continue;
            }
            let read_bytes = std::mem::take(&mut counted.read_bytes);
            let written_bytes = std::mem::take(&mut counted.written_bytes);
            let invocations = std::mem::take(&mut counted.invocations);
            let transactions = std::mem::take(&mut counted.transactions);
            total.invocations += invocations;
            total.transactions += transactions;
            total.calls += std::mem::take(&mut counted.calls);
            total.read_bytes += read_bytes;
            total.written_bytes += written_bytes;
            total.errors += std::mem::take(&mut counted.errors);
            point.counts.operations += invocations;
            point.counts.transactions += transactions;
            point.counts.read_bytes += read_bytes;
            point.counts.written_bytes += written_bytes;
            totals.operations += invocations;
            totals.read_bytes += read_bytes;
            totals.written_bytes += written_bytes;
            let mut own = total.series.as_mut().map(|series| {
                let point = series.at(index);
                point.counts.operations += invocations;
                point.counts.transactions += transactions;
                point.counts.read_bytes += read_bytes;
                point.counts.written_bytes += written_bytes;
                let dense = point.dense.get_or_insert_default();
                dense.add_extremes(&counted.latency);
                dense
            });
            let dense = point.dense.get_or_insert_default();
            dense.add_extremes(&counted.latency);
            recent.add_extremes(&counted.latency);
            total.latency.add_extremes(&counted.latency);
            counted.latency.drain(|bucket, count| {
                let count = u64::from(count);
                total.latency.counts[bucket] += count;
                dense.counts[bucket] += count;
                recent.counts[bucket] += count;
                if let Some(own) = &mut own {
                    own.counts[bucket] += count;
                }
            });
        }
        for (total, counted) in group.calls.iter_mut().zip(&mut tally.calls) {
            total.take(counted);
        }
        let GroupFsyncTally { periodic, at_end, commits } = &mut tally.group_fsyncs;
        totals.fsyncs += periodic.count;
        group.commits.take(commits);
        let (count, latency) = &mut group.periodic_fsyncs;
        *count += std::mem::take(&mut periodic.count);
        latency.add_extremes(&periodic.latency);
        recent_fsyncs.add_extremes(&periodic.latency);
        periodic.latency.drain(|bucket, count| {
            latency.counts[bucket] += u64::from(count);
            recent_fsyncs.counts[bucket] += u64::from(count);
        });
        let (count, latency) = &mut group.end_fsyncs;
        *count += std::mem::take(&mut at_end.count);
        latency.take(&mut at_end.latency);
    }
}

impl Collector {
    /// For groups with these numbers of actions, and whether each of these has a series.
    pub(crate) fn new(actions_of_groups: &[(usize, bool)]) -> Self {
        let groups = actions_of_groups
            .iter()
            .map(|(actions, own)| Group {
                actions: (0..*actions)
                    .map(|_| Action { series: own.then(Series::default), ..Action::default() })
                    .collect(),
                calls: (0..Call::COUNT).map(|_| Dense::default()).collect(),
                ..Group::default()
            })
            .collect();
        let series = Series::default();
        Self {
            inside: Mutex::new(Inside {
                groups,
                series,
                errors: Vec::new(),
                totals: Totals::default(),
                recent: Dense::default(),
                recent_fsyncs: Dense::default(),
            }),
            arrived: Mutex::default(),
        }
    }

    fn arrived(&self) -> std::sync::MutexGuard<'_, Arrived> {
        self.arrived.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn inside(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Keeps threads from handing over.
    #[cfg(test)]
    pub(crate) fn held(&self) -> impl Drop + '_ {
        self.inside()
    }

    /// Takes over a thread's counts of the point number `index` and leaves it none.
    pub(crate) fn hand_over(&self, group: usize, index: u64, tally: &mut ThreadTally) {
        let mut empty = self.arrived().empty.pop().unwrap_or_else(|| ThreadTally::new(0));
        empty.become_like(tally);
        let full = std::mem::replace(tally, empty);
        self.arrived().full.push((group, index, full));
    }

    pub(crate) fn add_up(&self) {
        let mut full = std::mem::take(&mut self.arrived().full);
        if full.is_empty() {
            return;
        }
        let mut inside = self.inside();
        for (group, index, tally) in &mut full {
            inside.add(*group, *index, tally);
        }
        drop(inside);
        self.arrived().empty.extend(full.into_iter().map(|(_, _, tally)| tally));
    }

    /// `from` is the group, if it is of one, and the operation; `lacking` explains the error, if more is known than the kernel says.
    pub(crate) fn error(&self, from: (&str, &str), call: &str, path: &str, errno: Errno, lacking: Option<&str>) {
        let (group, operation) = from;
        let mut inside = self.inside();
        let number = errno.raw_os_error();
        let full = inside.errors.len() >= MAX_ERRORS;
        let known = inside.errors.iter_mut().find(|known| {
            full || (known.errno == number && known.call == call && (&*known.group, &*known.operation) == from)
        });
        match known {
            Some(known) => known.count += 1,
            None => inside.errors.push(ErrorReport {
                group: group.into(),
                operation: operation.into(),
                call: call.into(),
                path: path.into(),
                errno: number,
                text: match lacking {
                    Some(lacking) => format!("{}: {lacking}", crate::errno::describe(errno)),
                    None => crate::errno::describe(errno),
                },
                count: 1,
            }),
        }
    }

    /// All there is so far; the latencies only since the last call.
    pub(crate) fn totals(&self) -> Totals {
        self.add_up();
        let mut inside = self.inside();
        let recent = std::mem::take(&mut inside.recent).histogram();
        let recent_fsyncs = std::mem::take(&mut inside.recent_fsyncs).histogram();
        Totals { latency: recent, fsync_latency: recent_fsyncs, ..inside.totals.clone() }
    }

    pub(crate) fn finish(self, groups: &[GroupNames], series_interval: Duration) -> Collected {
        self.add_up();
        let inside = self.inside.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        inside.collected(groups, series_interval)
    }

    /// The same of what was handed over until now.
    pub(crate) fn so_far(&self, groups: &[GroupNames], series_interval: Duration) -> Collected {
        self.add_up();
        let inside = self.inside().clone();
        inside.collected(groups, series_interval)
    }
}

impl Inside {
    fn collected(self, groups: &[GroupNames], series_interval: Duration) -> Collected {
        let mut collected = Collected { errors: self.errors, ..Collected::default() };
        let doublings = self.series.doublings;
        for (group, names) in self.groups.into_iter().zip(groups) {
            for (action, (name, share)) in group.actions.into_iter().zip(&names.actions) {
                if let Some(series) = action.series {
                    let (group, name) = (names.group.clone(), name.clone());
                    collected.own_series.push(OwnSeries { group, name, series: series.finish(doublings) });
                }
                collected.operations.push(OperationReport {
                    phase: names.phase.clone(),
                    group: names.group.clone(),
                    name: name.clone(),
                    invocations: action.invocations,
                    transactions: action.transactions,
                    calls: action.calls,
                    read_bytes: action.read_bytes,
                    written_bytes: action.written_bytes,
                    errors: action.errors,
                    missed: action.missed,
                    requested_share: *share,
                    latency: action.latency.histogram(),
                    at_work: Some(names.at_work),
                });
            }
            for (call, latencies) in Call::all().zip(&group.calls).filter(|(_, latencies)| latencies.any) {
                collected.calls.push(CallReport {
                    group: names.group.clone(),
                    call: call.name().into(),
                    latency: latencies.histogram(),
                });
            }
            let (periodic, at_end) = (group.periodic_fsyncs, group.end_fsyncs);
            collected.periodic_fsyncs.push(periodic.0);
            let both = [(periodic.0, 0, periodic.1, group.commits), (0, at_end.0, at_end.1, Dense::default())];
            for (periodic, at_end, latency, commits) in both {
                if periodic + at_end > 0 {
                    collected.group_fsyncs.push(GroupFsyncs {
                        phase: names.phase.clone(),
                        group: names.group.clone(),
                        periodic,
                        at_end,
                        latency: latency.histogram(),
                        commits: commits.histogram(),
                    });
                }
            }
        }
        collected.series = self.series.finish(doublings);
        collected.series_interval_ns =
            u64::try_from(series_interval.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1 << doublings);
        collected.series_doublings = doublings;
        collected
    }
}

#[derive(Debug, Clone)]
pub(crate) struct GroupNames {
    pub(crate) phase: String,
    pub(crate) group: String,
    /// (name, requested share).
    pub(crate) actions: Vec<(String, f64)>,
    /// When it was, and when its phase closed.
    pub(crate) at_work: [Span; 2],
}

#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) operations: Vec<OperationReport>,
    pub(crate) calls: Vec<CallReport>,
    pub(crate) group_fsyncs: Vec<GroupFsyncs>,
    /// For every group, by its place.
    pub(crate) periodic_fsyncs: Vec<u64>,
    pub(crate) series: Vec<SeriesPoint>,
    pub(crate) series_interval_ns: u64,
    pub(crate) series_doublings: u32,
    pub(crate) own_series: Vec<OwnSeries>,
    pub(crate) errors: Vec<ErrorReport>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Done;

    fn names() -> Vec<GroupNames> {
        vec![GroupNames {
            phase: "p".into(),
            group: "g".into(),
            actions: vec![("read".into(), 1.0)],
            at_work: [Span::default(); 2],
        }]
    }

    #[test]
    fn nothing_is_lost_on_the_way() {
        let collector = Collector::new(&[(1, true)]);
        let mut tally = ThreadTally::new(1);
        for index in [0u64, 2, 1, 9] {
            for latency in 0..=index {
                tally.actions[0].completed(Done { read_bytes: 10, written_bytes: 1, calls: 2 }, 3, latency * 1000);
            }
            tally.calls[Call::Read as usize].record(5);
            collector.hand_over(0, index, &mut tally);
        }
        let totals = collector.totals();
        assert_eq!((totals.operations, totals.latency.count()), (16, 16));
        assert_eq!(collector.totals().latency.count(), 0);
        let collected = collector.finish(&names(), Duration::from_secs(1));
        let operation = &collected.operations[0];
        assert_eq!((operation.invocations, operation.transactions, operation.calls), (16, 48, 32));
        assert_eq!((operation.read_bytes, operation.written_bytes), (160, 16));
        assert_eq!(operation.latency.count(), 16);
        let by_point: Vec<u64> = collected.series.iter().map(|point| point.operations).collect();
        assert_eq!(by_point, [1, 2, 3, 0, 0, 0, 0, 0, 0, 10]);
        assert_eq!(collected.series[9].latency.max_ns(), 9000);
        assert_eq!(collected.own_series[0].series, collected.series, "the only action");
        assert_eq!(collected.calls[0].call, "read");
        assert_eq!(collected.calls[0].latency.count(), 4);
    }

    #[test]
    fn a_long_series_is_made_coarser() {
        let collector = Collector::new(&[(1, true)]);
        let mut tally = ThreadTally::new(1);
        for index in [0, 1, 2, MAX_POINTS as u64 * 3] {
            tally.actions[0].completed(Done::default(), 1, 7);
            collector.hand_over(0, index, &mut tally);
        }
        let collected = collector.finish(&names(), Duration::from_millis(100));
        assert_eq!((collected.series_interval_ns, collected.series_doublings), (400_000_000, 2));
        assert_eq!(collected.series[0].operations, 3);
        assert_eq!(collected.own_series[0].series, collected.series, "the only action");
        assert_eq!(collected.series.iter().map(|point| point.latency.count()).sum::<u64>(), 4);
    }

    #[test]
    fn errors_are_counted_by_kind() {
        let collector = Collector::new(&[(1, true)]);
        for path in ["a", "b"] {
            collector.error(("g", "write"), "write", path, Errno::NOSPC, None);
        }
        collector.error(("g", "write"), "open", "c", Errno::NOENT, None);
        let errors = collector.finish(&names(), Duration::from_secs(1)).errors;
        assert_eq!(errors.len(), 2);
        assert_eq!((errors[0].count, errors[0].path.as_str()), (2, "a"));
        assert!(errors[0].text.starts_with("ENOSPC: No space left"), "{}", errors[0].text);
    }
}
