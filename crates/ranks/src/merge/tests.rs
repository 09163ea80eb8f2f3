#![cfg(test)]

use super::*;
use fstone_model::load::OperationReport;
use fstone_model::workload::{
    Action, Actions, Amount, Fileset, Operation, SizeDistribution, Stop, ThreadGroup, Weighted,
};
use proptest::prelude::*;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;

fn workload(phases: usize) -> Workload {
    let group = |name: &str| {
        let action = Action::new(name, Operation::Stat, Some(0));
        ThreadGroup::new(name, 1, Actions::Mix(vec![Weighted { weight: 1, action }]))
    };
    let phase =
        |number: usize| Phase::new(format!("phase{number}"), vec![group(&format!("group{number}"))], Stop::default());
    Workload {
        series_interval: Duration::from_millis(100),
        ..Workload::new(
            "made up",
            vec![Fileset::new("files", Amount::Files(1), SizeDistribution::Fixed(1))],
            (0..phases).map(phase).collect(),
        )
    }
}

/// A rank that ran phases so long (ms) with these latencies, and synced for 5 ms at the end.
fn report(phases_ms: &[u64], latencies: &[Vec<u64>]) -> LoadReport {
    let sync_ns = 5 * MS;
    let running_ns = phases_ms.iter().sum::<u64>() * MS;
    let mut begin_ns = 0;
    let operations = phases_ms.iter().zip(latencies).enumerate().map(|(number, (ms, values))| {
        let span = Span { begin_ns, end_ns: begin_ns + ms * MS };
        begin_ns += ms * MS;
        let closing = Span { begin_ns, end_ns: begin_ns };
        OperationReport {
            group: format!("group{number}"),
            name: format!("group{number}"),
            invocations: values.len() as u64,
            latency: Histogram::from_values(values),
            at_work: Some([span, closing]),
            ..OperationReport::default()
        }
    });
    let operations = operations.collect();
    let last = phases_ms.len() - 1;
    let phases = phases_ms.iter().enumerate().map(|(number, ms)| {
        let sync_ns = if number == last { sync_ns } else { 0 };
        PhaseReport { name: format!("phase{number}"), elapsed_ns: ms * MS + sync_ns, sync_ns, ..PhaseReport::default() }
    });
    // Each point has as many operations as its phase's number and one.
    let points = phases_ms.iter().enumerate().flat_map(|(number, ms)| {
        let point = SeriesPoint { operations: number as u64 + 1, ..SeriesPoint::default() };
        std::iter::repeat_n(point, ms.div_ceil(100) as usize)
    });
    LoadReport {
        elapsed_ns: running_ns + sync_ns,
        running_ns,
        sync_ns,
        threads: 1,
        operations,
        own_series: vec![OwnSeries {
            group: "group0".into(),
            name: "group0".into(),
            series: points.clone().take(2).collect(),
        }],
        series: points.collect(),
        series_interval_ns: 100 * MS,
        phases: if phases_ms.len() > 1 { phases.collect() } else { Vec::new() },
        ..LoadReport::default()
    }
}

/// When a rank passed phases that began so late (ms) and took so long.
fn passed(phases: &[(u64, u64)]) -> Vec<PhasePassed> {
    let one = |(number, (begin, ms)): (u32, &(u64, u64))| PhasePassed {
        number,
        begin_ns: begin * MS,
        end_ns: (begin + ms) * MS,
        ..PhasePassed::default()
    };
    (0..).zip(phases).map(one).collect()
}

fn merged(workload: &Workload, ranks: &[(Vec<PhasePassed>, LoadReport)]) -> RanksReport {
    let all = ranks.iter().map(|(passed, _)| passed.clone()).collect();
    let mut merger = Merger::new(workload, 1, all, &vec![true; ranks.len()]);
    let figures = (0..).zip(ranks).map(|(rank, (_, report))| RankReport { rank, ..merger.add(rank, report) }).collect();
    merger.finish(figures, &|_, _| 0)
}

proptest! {
    #[test]
    fn merged_percentiles_are_those_of_all_values_to_the_bit(
        ranks in prop::collection::vec(prop::collection::vec(0u64..1 << 42, 0..60), 1..12),
        percents in prop::collection::vec(0.0f64..=100.0, 1..8),
    ) {
        let reports: Vec<_> = ranks.iter().map(|values| (passed(&[(0, 100)]), report(&[100], std::slice::from_ref(values)))).collect();
        let merged = merged(&workload(1), &reports);
        let all = Histogram::from_values(&ranks.concat());
        prop_assert_eq!(&merged.load.operations[0].latency, &all);
        for percent in percents.into_iter().chain([50.0, 99.0, 99.9, 99.99, 100.0]) {
            let bits = |histogram: &Histogram| histogram.percentile_ns(percent).map(f64::to_bits);
            prop_assert_eq!(bits(&merged.load.operations[0].latency), bits(&all));
        }
    }
}

#[test]
fn a_phase_lasts_from_the_first_begin_to_the_last_end() {
    // The second rank begins 10 ms later, and takes 50 ms longer; in the second phase it is the other way.
    let one = (passed(&[(1000, 300), (2010, 400)]), report(&[300, 400], &[vec![1; 30], vec![1; 40]]));
    let other = (passed(&[(1010, 350), (2000, 200)]), report(&[350, 200], &[vec![1; 70], vec![1; 20]]));
    let report = merged(&workload(2), &[one, other]);
    let load = &report.load;
    assert_eq!((load.running_ns, load.sync_ns, load.elapsed_ns), ((360 + 410) * MS, 5 * MS, 775 * MS));
    assert_eq!(load.phases.iter().map(|phase| phase.elapsed_ns / MS).collect::<Vec<_>>(), [360, 415]);
    let spans: Vec<Span> = load.operations.iter().map(|one| one.at_work.expect("it was at work")[0]).collect();
    assert_eq!(spans[0], Span { begin_ns: 0, end_ns: 360 * MS });
    assert_eq!(spans[1], Span { begin_ns: 360 * MS, end_ns: 770 * MS });
    assert_eq!(load.operations[0].invocations, 100);
    // Points of the first phase are at its first four places, and those of the second after them.
    assert_eq!(load.series.iter().map(|point| point.operations).collect::<Vec<_>>(), [2, 2, 2, 1, 4, 4, 2, 2, 0][..8]);
    let own: Vec<u64> = load.own_series[0].series.iter().map(|point| point.operations).collect();
    assert_eq!((load.own_series.len(), own), (1, vec![2, 2]), "the same of one action");
    let skews: Vec<_> = report
        .ranked
        .phases
        .iter()
        .map(|phase| (phase.start_skew_ns / MS, phase.stop_skew_ns / MS, phase.skewed))
        .collect();
    assert_eq!(skews, [(10, 60, true), (10, 210, true)]);
    // By operations per second of their own time: 70 in 705 ms, and 90 in 555 ms.
    assert_eq!((report.ranked.slowest, report.ranked.median, report.ranked.fastest), (Some(0), Some(0), Some(1)));
    assert_eq!(report.ranked.per_rank[1].phases[0].begin_ns, 10 * MS);
}

#[test]
fn a_rank_that_dies_before_it_reports_stretches_nothing() {
    // The second rank begins first and ends last.
    let one = || (passed(&[(1000, 300), (2010, 400)]), report(&[300, 400], &[vec![1; 30], vec![1; 40]]));
    let alone = merged(&workload(2), &[one()]);
    let (own, figures) = one();
    let mut merger = Merger::new(&workload(2), 1, vec![own, passed(&[(900, 4000), (5000, 9000)])], &[true, true]);
    let figures = vec![merger.add(0, &figures), RankReport { rank: 1, ..RankReport::default() }];
    let left = merger.finish(figures, &|_, _| 0);
    assert_eq!((left.ranked.merged, left.load.elapsed_ns), (1, 705 * MS));
    assert_eq!(left.load.phases, alone.load.phases);
    assert_eq!(left.load.operations, alone.load.operations);
    assert_eq!((&left.load.series, &left.load.own_series), (&alone.load.series, &alone.load.own_series));
    assert_eq!(left.ranked.phases[1].length_ns, (14_000 - 2010) * MS, "how they met is of all");
    let began =
        |rank: usize| left.ranked.per_rank[rank].phases.iter().map(|phase| phase.begin_ns / MS).collect::<Vec<_>>();
    assert_eq!([began(0), began(1)], [[100, 0], [0, 2990]], "since the first of all did");
}

#[test]
fn a_rank_that_sends_no_report_began_when_it_did() {
    let all = vec![passed(&[(900, 4000)]), passed(&[(907, 4000)])];
    let merger = Merger::new(&workload(1), 1, all, &[false, false]);
    let figures = (0..2).map(|rank| RankReport { rank, ..RankReport::default() }).collect();
    let report = merger.finish(figures, &|rank, at_ns| rank as u64 * at_ns);
    let times = report.ranked.per_rank.iter().map(|rank| (rank.phases[0].begin_ns / MS, rank.phases[0].end_ns / MS));
    assert_eq!(times.collect::<Vec<_>>(), [(0, 4000), (7, 4007)]);
    assert_eq!(report.ranked.phases[0].uncertainty_ns, 4907 * MS, "of the one that is known least");
}

#[test]
fn a_phase_closes_as_long_as_ranks_did_when_its_groups_were_done() {
    // The first rank is done after 300 ms and closes for 5 ms, the second after 350 ms: the first one's closing is within the second's work.
    let merge = |ranks: [u64; 2]| {
        let of = |ms: u64| {
            let mut report = report(&[ms], &[vec![1]]);
            for operation in &mut report.operations {
                let work = Span { begin_ns: 0, end_ns: ms * MS };
                operation.at_work = Some([work, Span { begin_ns: ms * MS, end_ns: (ms + 5) * MS }]);
            }
            (passed(&[(0, ms)]), report)
        };
        merged(&workload(1), &ranks.map(of)).load.operations[0].at_work.expect("it was")
    };
    let work = Span { begin_ns: 0, end_ns: 350 * MS };
    assert_eq!(merge([300, 350]), [work, Span { begin_ns: 350 * MS, end_ns: 355 * MS }]);
    // Whichever comes first.
    assert_eq!(merge([350, 300]), merge([300, 350]));
    assert_eq!(merge([350, 350])[1], Span { begin_ns: 350 * MS, end_ns: 355 * MS });

    // A group that changed nothing is not divided by the closing of one that did, in whichever order they are.
    let beside = |reader_first: bool| {
        let of = |_| {
            let mut report = report(&[300], &[vec![1]]);
            let work = Span { begin_ns: 0, end_ns: 300 * MS };
            let writer = &mut report.operations[0];
            writer.at_work = Some([work, Span { begin_ns: 300 * MS, end_ns: 305 * MS }]);
            let reader = OperationReport {
                group: "reader".into(),
                name: "reader".into(),
                at_work: Some([work, Span { begin_ns: 300 * MS, end_ns: 300 * MS }]),
                ..writer.clone()
            };
            report.operations.insert(usize::from(!reader_first), reader);
            (passed(&[(0, 300)]), report)
        };
        let mut workload = workload(1);
        let reader = workload.phases[0].groups[0].clone();
        workload.phases[0].groups.push(ThreadGroup { name: "reader".into(), ..reader });
        let merged = merged(&workload, &[0, 1].map(of));
        merged.load.operations.iter().map(|one| one.at_work.expect("it was")[1].length_ns() / MS).collect::<Vec<_>>()
    };
    assert_eq!((beside(false), beside(true)), (vec![5, 0], vec![0, 5]));
}

#[test]
fn fsyncs_are_added_to_those_of_their_group_and_kind() {
    let fsyncs = |group: &str, periodic: u64, at_end: u64| GroupFsyncs {
        phase: group.replace("group", "phase"),
        group: group.into(),
        periodic,
        at_end,
        ..GroupFsyncs::default()
    };
    let of = |list: Vec<GroupFsyncs>| {
        (
            passed(&[(1000, 300), (2000, 300)]),
            LoadReport { group_fsyncs: list, ..report(&[300, 300], &[vec![1], vec![1]]) },
        )
    };
    let (a, b) = ("group0", "group1");
    let all = [of(vec![fsyncs(b, 0, 1)]), of(vec![fsyncs(a, 2, 0), fsyncs(a, 0, 1), fsyncs(b, 3, 0)])];
    let merged = merged(&workload(2), &all).load.group_fsyncs;
    let found: Vec<(&str, u64, u64)> =
        merged.iter().map(|sum| (sum.group.as_str(), sum.periodic, sum.at_end)).collect();
    assert_eq!(found, [("group0", 2, 0), ("group0", 0, 1), ("group1", 3, 0), ("group1", 0, 1)]);
}

#[test]
fn a_skew_of_one_percent_is_not_marked_and_more_is() {
    let skewed = |late_ms: u64| {
        let ranks = [0, late_ms].map(|late| (passed(&[(late, 1000 - late)]), report(&[1000 - late], &[vec![1]])));
        merged(&workload(1), &ranks).ranked.phases[0].skewed
    };
    assert!(!skewed(10) && skewed(11));
}

#[test]
fn ten_thousand_ranks_are_merged_in_little_memory() {
    const RANKS: u32 = 10_000;
    let latencies = |rank: u64, phase: u64| -> Vec<u64> {
        (0..1000)
            .map(|number: u64| 1000 + (number * 7919 + rank * 104_729 + phase) % 100_003 * (1 + number % 50))
            .collect()
    };
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default().to_owned();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) << 10
    };
    let made: Vec<LoadReport> =
        (0..50).map(|rank| report(&[5000, 5000], &[latencies(rank, 0), latencies(rank, 1)])).collect();
    let workload = workload(2);
    let all = (0..u64::from(RANKS)).map(|rank| passed(&[(rank % 7, 5000), (6000 + rank % 5, 5000)])).collect();
    let (before, started) = (resident(), Instant::now());
    let mut merger = Merger::new(&workload, 1, all, &vec![true; RANKS as usize]);
    let figures = (0..RANKS).map(|rank| RankReport {
        rank,
        host: format!("node{}", rank / 100),
        ..merger.add(rank, &made[rank as usize % 50])
    });
    let figures: Vec<RankReport> = figures.collect();
    let report = merger.finish(figures, &|_, _| 0);
    let (took, grown) = (started.elapsed(), resident().saturating_sub(before));
    eprintln!("{RANKS} ranks: merged in {took:?}, {} MiB more memory", grown >> 20);
    assert_eq!(report.load.invocations(), u64::from(RANKS) * 2000);
    assert_eq!((report.ranked.nodes, report.ranked.per_node[0].ranks, report.ranked.merged), (100, 100, RANKS));
    assert_eq!(report.load.operations[0].latency.count(), u64::from(RANKS) * 1000);
    // A hundred reports would be more than this.
    assert!(grown < 64 << 20, "{} MiB: no report is kept", grown >> 20);
}
