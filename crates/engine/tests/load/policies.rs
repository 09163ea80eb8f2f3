//! Policies of a group mean the same to a thread with one operation at a time and to one that keeps several in flight.

use crate::support::*;
use fstone_model::workload::*;
use fstone_model::{LoadReport, Workload};
use std::time::Duration;

/// Invocations, bytes and errors of each action, and the group's fsyncs while it ran and at its end.
type Counts = (Vec<(String, u64, u64, u64, u64)>, Vec<(u64, u64)>);

fn counts(report: &LoadReport) -> Counts {
    let of_each = report
        .operations
        .iter()
        .map(|of| (of.name.clone(), of.invocations, of.read_bytes, of.written_bytes, of.errors));
    let fsyncs = report.group_fsyncs.iter().map(|of| (of.periodic, of.at_end));
    (of_each.collect(), fsyncs.collect())
}

/// Reads and writes of 4 KiB in turn, 100 of them, at this depth.
fn in_turn(depth: u32) -> Workload {
    let io = IoOverrides { engine: Some(IoEngineKind::IoUring), queue_depth: Some(depth), ..IoOverrides::default() };
    let block = || {
        let distribution = Distribution::Permutation;
        transfer(Extent::Bytes(4096), Pattern::Random { distribution, align_bytes: 4096 })
    };
    let actions = Actions::Sequence(vec![action(Operation::Read(block())), action(Operation::Write(block()))]);
    let group = ThreadGroup { open: OpenPolicy::KeepOpen, io, stop: operations(100), ..group(1, actions) };
    workload(fileset(1, 1 << 20), group, Stop::default())
}

/// Writes alone: completions of a queue come in any order, and an fsync is due only if something was written since the last one.
fn only_writes(group: &mut ThreadGroup) {
    if let Actions::Sequence(actions) = &mut group.actions {
        actions[0].operation = actions[1].operation.clone();
    }
}

#[test]
fn fsyncs_that_count_are_no_more_than_the_operations_that_are_left() {
    for (depth, threads) in [(1, 1), (4, 1), (8, 3)] {
        for operations in [10, 100, 101] {
            let mut load = in_turn(depth);
            let group = &mut load.phases[0].groups[0];
            only_writes(group);
            (group.fsync.every_operations, group.fsync.counted, group.threads) = (5, true, threads);
            group.stop.operations = Some(operations);
            let (of_each, fsyncs) = counts(&flawless(&load, in_memory().path()));
            let done: u64 = of_each.iter().map(|(_, invocations, ..)| invocations).sum();
            let fsyncs: u64 = fsyncs.iter().map(|(periodic, _)| periodic).sum();
            assert_eq!(done + fsyncs, operations, "depth {depth}, {threads} threads, {fsyncs} fsyncs");
            assert!(fsyncs > 0 || operations == 10, "depth {depth}, {threads} threads");
        }
    }
}

#[test]
fn a_commit_is_the_operation_with_the_fsync_after_it() {
    for depth in [1, 4] {
        let mut load = in_turn(depth);
        let group = &mut load.phases[0].groups[0];
        only_writes(group);
        group.fsync.every_operations = 1;
        let report = flawless(&load, in_memory().path());
        let fsyncs = &report.group_fsyncs[0];
        assert_eq!((fsyncs.periodic, fsyncs.commits.count()), (100, 100), "depth {depth}");
        let writes_ns: u128 = report.operations.iter().map(|one| one.latency.sum_ns()).sum();
        assert!(fsyncs.commits.sum_ns() >= writes_ns + fsyncs.latency.sum_ns(), "depth {depth}");
        assert_eq!((fsyncs.phase.as_str(), &report.operations[0].phase), (load.phases[0].name.as_str(), &fsyncs.phase));
    }
}

#[test]
fn policies_count_the_same_at_any_depth() {
    type Change = fn(&mut ThreadGroup);
    let policies: [(&str, Change); 26] = [
        ("operations", |_| {}),
        ("bytes", |group| group.stop = Stop { bytes: Some(100 << 12), ..Stop::default() }),
        ("a time that is not reached", |group| group.stop.time = Some(Duration::from_secs(3600))),
        ("a pause after each", |group| group.think_time = Duration::from_micros(1)),
        ("a pause after several", |group| {
            group.think_time = Duration::from_micros(1);
            group.think_every = 7;
        }),
        ("a pause after none, which is after each", |group| {
            group.think_time = Duration::from_micros(1);
            group.think_every = 0;
        }),
        ("a rate", |group| group.rate_per_second = Some(1e6)),
        ("a rate of random arrivals", |group| {
            group.rate_per_second = Some(1e6);
            group.arrivals = Arrivals::Poisson;
        }),
        ("a rate of bytes", |group| group.bytes_per_second = Some(1 << 32)),
        ("a rate and pauses", |group| {
            group.rate_per_second = Some(1e6);
            group.think_time = Duration::from_micros(1);
            group.think_every = 3;
        }),
        ("fsyncs", |group| {
            only_writes(group);
            group.fsync.every_operations = 7;
        }),
        ("fsyncs by writes", |group| {
            group.fsync.every_operations = 7;
            group.fsync.counts_writes = true;
        }),
        ("fsyncs of the file in between", |group| {
            group.fsync.every_operations = 7;
            group.fsync.all_files = true;
        }),
        ("fsyncs that count", |group| {
            group.fsync.every_operations = 7;
            group.fsync.all_files = true;
            group.fsync.counted = true;
        }),
        ("fsyncs that count, and a rate", |group| {
            group.rate_per_second = Some(1e6);
            group.fsync.every_operations = 7;
            group.fsync.all_files = true;
            group.fsync.counted = true;
        }),
        ("fsyncs and fdatasyncs", |group| {
            only_writes(group);
            group.fsync.every_operations = 8;
            group.fsync.data_every = 4;
        }),
        ("fsyncs, and pauses in step with them", |group| {
            only_writes(group);
            group.think_time = Duration::from_micros(1);
            group.think_every = 7;
            group.fsync.every_operations = 7;
        }),
        ("fsyncs at the end", |group| group.fsync.at_end = true),
        ("cold passes", |group| {
            group.invalidate = true;
            group.invalidate_every = Some(10 << 12);
        }),
        ("cold passes and fsyncs", |group| {
            only_writes(group);
            group.invalidate_every = Some(10 << 12);
            group.fsync.every_operations = 10;
        }),
        ("a late start", |group| group.start_delay = Duration::from_millis(1)),
        ("batches", |group| group.batches = Batches { least: 4, refill_at: Some(2), ..Batches::default() }),
        ("requests reaped one by one", |group| group.batches.most = Some(1)),
        ("fsyncs, and requests reaped three by three", |group| {
            only_writes(group);
            group.batches = Batches { submit: Some(2), least: 2, most: Some(3), ..Batches::default() };
            group.fsync.every_operations = 7;
        }),
        ("requests submitted one by one", |group| group.batches.submit = Some(1)),
        ("fsyncs, and requests submitted two by two", |group| {
            only_writes(group);
            group.batches.submit = Some(2);
            group.fsync.every_operations = 7;
        }),
    ];
    for (name, change) in policies {
        let counted = [1, 8].map(|depth| {
            let mut load = in_turn(depth);
            change(&mut load.phases[0].groups[0]);
            if depth == 1 {
                load.phases[0].groups[0].batches = Batches::default();
            }
            counts(&flawless(&load, in_memory().path()))
        });
        assert_eq!(counted[0], counted[1], "{name}");
        let all: u64 = counted[0].0.iter().map(|(_, invocations, ..)| invocations).sum();
        let in_their_place: u64 = if name.starts_with("fsyncs that count") { counted[0].1[0].0 } else { 0 };
        assert_eq!(all + in_their_place, 100, "{name}");
    }
}
