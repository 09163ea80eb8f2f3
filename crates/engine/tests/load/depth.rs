//! The queue depth that keeps a latency target.

use crate::support::*;
use fstone_engine::LoadError;
use fstone_model::workload::*;
use fstone_model::{LoadReport, Workload};
use std::time::Duration;

const MOST: u32 = 16;
/// A latency that every request keeps, and one that none does.
const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_nanos(1);

fn target(latency: Duration) -> LatencyTarget {
    LatencyTarget { latency, share: 0.99, window: Duration::from_millis(10), follow: false }
}

fn searched(target: LatencyTarget) -> Workload {
    let io = IoOverrides { engine: Some(IoEngineKind::IoUring), queue_depth: Some(MOST), ..IoOverrides::default() };
    let reads = mix(&[(1, action(Operation::Read(random_block())))]);
    let readers = ThreadGroup { open: OpenPolicy::KeepOpen, io, ..group(2, reads) };
    let mut load = workload(fileset(4, 1 << 20), readers.clone(), milliseconds(200));
    let looking = ThreadGroup { latency_target: Some(target), ..readers };
    let search = Phase { name: "search".into(), measured: false, ..phase(vec![looking], milliseconds(60_000)) };
    load.phases.insert(0, search);
    load
}

fn depths(report: &LoadReport) -> Vec<u32> {
    report.per_thread.iter().map(|thread| thread.queue_depth).collect()
}

fn in_flight(report: &LoadReport) -> Vec<f64> {
    report.per_thread.iter().map(|thread| thread.busy_ns as f64 / thread.elapsed_ns as f64).collect()
}

fn about_the_target(report: &LoadReport) -> Vec<&String> {
    report.warnings.iter().filter(|warning| warning.contains("latency target")).collect()
}

#[test]
fn what_was_found_is_kept_to_in_the_next_phase() {
    let place = in_memory();
    let report = flawless(&searched(target(LONG)), place.path());
    assert_eq!(depths(&report), [MOST; 2]);
    assert!(about_the_target(&report).is_empty(), "{:?}", report.warnings);
    // Control: so many are told from one.
    assert!(in_flight(&report).iter().all(|mean| *mean > 1.5), "{:?}", in_flight(&report));

    let report = flawless(&searched(target(SHORT)), place.path());
    assert_eq!(depths(&report), [1; 2]);
    assert!(in_flight(&report).iter().all(|mean| *mean <= 1.0), "{:?}", in_flight(&report));
    let warnings = about_the_target(&report);
    assert!(warnings.len() == 1 && warnings[0].contains("not even one request"), "{warnings:?}");
}

#[test]
fn a_search_that_is_cut_short_says_so() {
    let mut load = searched(LatencyTarget { window: Duration::from_secs(30), ..target(LONG) });
    load.phases[0].stop = milliseconds(20);
    let report = flawless(&load, in_memory().path());
    assert_eq!(depths(&report), [1; 2]);
    let warnings = about_the_target(&report);
    assert!(warnings.len() == 1 && warnings[0].contains("the end came before"), "{warnings:?}");
}

#[test]
fn a_search_whose_rate_does_not_fill_the_queue_ends_and_says_so() {
    let mut load = searched(target(LONG));
    load.phases[0].groups[0].rate_per_second = Some(100.0);
    load.phases[0].stop = milliseconds(5000);
    let report = flawless(&load, in_memory().path());
    let warnings = about_the_target(&report);
    assert!(warnings.len() == 1 && warnings[0].contains("its rate leaves so few"), "{warnings:?}");
}

#[test]
fn a_search_that_follows_ends_with_its_phase() {
    let mut load = searched(LatencyTarget { follow: true, ..target(LONG) });
    load.phases.truncate(1);
    load.phases[0] = Phase { measured: true, stop: milliseconds(500), ..load.phases[0].clone() };
    let report = flawless(&load, in_memory().path());
    assert_eq!(depths(&report), [MOST; 2]);
    assert!(report.running_ns >= 500_000_000, "it went on to the end");
    assert!(about_the_target(&report).is_empty(), "{:?}", report.warnings);
}

#[test]
fn groups_that_cannot_search_are_refused() {
    let changes: [fn(&mut ThreadGroup); 4] = [
        |group| group.io.queue_depth = Some(1),
        |group| group.io.engine = Some(IoEngineKind::Psync),
        |group| group.open = OpenPolicy::PerOperation,
        |group| group.latency_target = Some(LatencyTarget { share: 0.0, ..target(LONG) }),
    ];
    let mut measured = searched(target(LONG));
    measured.phases[0].measured = true;
    let changed = changes.into_iter().map(|change| {
        let mut load = searched(target(LONG));
        change(&mut load.phases[0].groups[0]);
        load
    });
    for load in changed.chain([measured]) {
        let refused = try_run(&load, in_memory().path(), 1);
        assert!(
            matches!(&refused, Err(LoadError::Unsupported { what }) if what.contains("latency target")),
            "{refused:?}"
        );
    }
}
