//! What every I/O engine must do, on disk and in memory.

use crate::support::*;
use fstone_model::workload::*;
use fstone_model::{LoadReport, Workload};
use std::path::Path;

const REAL: [(IoEngineKind, u32); 7] = [
    (IoEngineKind::Psync, 1),
    (IoEngineKind::IoUring, 1),
    (IoEngineKind::IoUring, 16),
    (IoEngineKind::Libaio, 1),
    (IoEngineKind::Libaio, 16),
    (IoEngineKind::Mmap, 1),
    (IoEngineKind::Splice, 1),
];

fn everywhere(check: impl Fn(IoSettings, &Path)) {
    for (engine, queue_depth) in REAL {
        let io = IoSettings { engine, queue_depth, ..IoSettings::default() };
        let mut probe =
            workload(fileset(1, 4096), group(1, mix(&[(1, action(Operation::Read(random_block())))])), operations(1));
        probe.io = io;
        let place = in_memory();
        if let Err(error @ fstone_engine::LoadError::Engine { .. }) = try_run(&probe, place.path(), 1) {
            eprintln!("skipped: {engine:?}: {error}");
            continue;
        }
        for directory in [in_memory(), on_disk()] {
            eprintln!("{io:?} in {}", directory.path().display());
            check(io, directory.path());
        }
    }
}

fn with(mut workload: Workload, io: IoSettings) -> Workload {
    workload.io = io;
    workload
}

#[test]
fn data_is_read_back_as_it_was_written() {
    everywhere(|io, directory| {
        for open in [OpenPolicy::PerOperation, OpenPolicy::KeepOpen] {
            let random = |align_bytes| {
                let pattern = Pattern::Random { distribution: Distribution::Uniform, align_bytes };
                Transfer { extent: Extent::Bytes(2048), block_bytes: 1024, pattern, fsync: false }
            };
            let mut actions = vec![
                (4, action(Operation::Write(random(512)))),
                (4, action(Operation::Read(random(512)))),
                (2, action(Operation::Read(whole()))),
                (1, action(Operation::Write(whole()))),
                (1, action(Operation::MmapRead(whole()))),
                (1, action(Operation::MmapWrite { transfer: random(1024), msync: true })),
                (1, action(Operation::Append(transfer(Extent::Bytes(1536), Pattern::FromStart)))),
            ];
            if open == OpenPolicy::PerOperation {
                actions.push((3, action(Operation::Create { block_bytes: 4096, fsync: false })));
                actions.push((2, action(Operation::Unlink)));
                actions.push((1, action(Operation::Rename)));
            }
            let mut threads = group(4, mix(&actions));
            threads.open = open;
            let mut files = fileset(60, 0);
            files.size = SizeDistribution::Uniform { minimum: 1, maximum: 40_000 };
            let mut load = with(workload(files, threads, operations(600)), io);
            load.data.stamped = true;
            let (report, found) = try_run_verified(&load, directory, 1).expect("the engine works");
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            assert_eq!(report.invocations(), 600);
            assert!(report.audit.verified_bytes > 0);
            assert!(found.is_clean(), "{found:?}");
            let on_disk: u64 = files_below(directory).iter().map(|(_, size)| size).sum();
            assert_eq!(found.verified_bytes, on_disk);
        }
    });
}

#[test]
fn direct_and_synchronous_files_hold_the_same() {
    everywhere(|io, directory| {
        for (direct, sync) in [(true, OpenSync::None), (false, OpenSync::Sync), (true, OpenSync::Dsync)] {
            if direct && io.engine == IoEngineKind::Mmap {
                continue;
            }
            let mut files = fileset(10, 0);
            files.size = SizeDistribution::Uniform { minimum: 1, maximum: 30_000 };
            let actions = [
                (2, action(Operation::Create { block_bytes: 8192, fsync: false })),
                (1, action(Operation::Read(whole()))),
                (1, action(Operation::Write(whole()))),
                (1, action(Operation::Append(transfer(Extent::Bytes(4096), Pattern::FromStart)))),
            ];
            let load =
                with(workload(files, group(3, mix(&actions)), operations(60)), IoSettings { direct, sync, ..io });
            let report = flawless(&load, directory);
            let (created, appended) = (report.operations[0].invocations, report.operations[3].written_bytes);
            let found = files_below(directory);
            assert_eq!(found.len() as u64, 10 + created);
            let grown: u64 = found.iter().map(|(_, size)| size).sum();
            assert!(grown > appended);
            assert!(found.iter().all(|(_, size)| *size > 0), "{found:?}");
        }
    });
}

#[test]
fn odd_sizes_are_exact_under_direct_io() {
    let directory = on_disk();
    for engine in [IoEngineKind::Psync, IoEngineKind::IoUring, IoEngineKind::Libaio] {
        let mut files = fileset(40, 12_345);
        files.preallocated = 0.0;
        let create = mix(&[(1, action(Operation::Create { block_bytes: 4096, fsync: true }))]);
        let io = IoSettings { engine, direct: true, ..IoSettings::default() };
        let report = flawless(&with(workload(files, group(2, create), once()), io), directory.path());
        assert_eq!(report.written_bytes(), 40 * 12_345);
        assert!(files_below(directory.path()).iter().all(|(_, size)| *size == 12_345));
        assert!(report.warnings.iter().any(|warning| warning.contains("page cache")), "{:?}", report.warnings);
    }
}

#[test]
fn every_block_of_a_queue_is_transferred_once() {
    everywhere(|io, directory| {
        let pattern = Pattern::Random { distribution: Distribution::Permutation, align_bytes: 4096 };
        let both = [
            Operation::Write(transfer(Extent::Bytes(4096), pattern)),
            Operation::Read(transfer(Extent::Bytes(4096), pattern)),
        ];
        for operation in both {
            let one = Action { choice: FileChoice::Concatenated, ..action(operation) };
            let mut threads = group(2, mix(&[(1, one)]));
            threads.open = OpenPolicy::KeepOpen;
            let report = flawless(&with(workload(fileset(5, 100_000), threads, once()), io), directory);
            assert_eq!(report.invocations(), 5 * 25);
            assert_eq!(report.read_bytes() + report.written_bytes(), 500_000);
            let blocks = report.audit.distinct_blocks.expect("all files have one size");
            assert_eq!((blocks.expected, blocks.observed), (125.0, 125.0));
        }
    });
}

#[test]
fn other_operations_wait_for_the_queue() {
    everywhere(|io, directory| {
        let actions = [
            (5, action(Operation::Read(random_block()))),
            (5, action(Operation::Write(random_block()))),
            (1, action(Operation::Fsync)),
            (1, action(Operation::Stat)),
        ];
        let mut threads = group(2, mix(&actions));
        threads.open = OpenPolicy::KeepOpen;
        let report = flawless(&with(workload(fileset(4, 1 << 20), threads, operations(1200)), io), directory);
        assert_eq!(report.invocations(), 1200);
        assert!(report.operations.iter().all(|operation| operation.invocations > 50));
    });
}

#[test]
fn a_vanished_file_is_data() {
    everywhere(|io, directory| {
        for policy in [ErrorPolicy::Stop, ErrorPolicy::Continue] {
            let mut load = with(
                workload(fileset(10, 4096), group(1, mix(&[(1, action(Operation::Read(whole())))])), operations(200)),
                io,
            );
            load.on_error = policy;
            load.callout = Some("rm data/file3".into());
            let report: LoadReport = crate::support::load(&load, directory);
            let error = &report.errors[0];
            assert_eq!((error.call.as_str(), error.path.as_str()), ("open", "data/file3"));
            assert!(error.text.starts_with("ENOENT"), "{error:?}");
            let ended_early = report.warnings.iter().any(|warning| warning.contains("ended early"));
            assert_eq!(ended_early, policy == ErrorPolicy::Stop);
            if policy == ErrorPolicy::Continue {
                assert_eq!(report.invocations() + report.operations[0].errors, 200);
                assert_eq!(error.count, report.operations[0].errors);
            }
        }
    });
}

#[test]
fn the_same_seed_does_the_same() {
    everywhere(|io, directory| {
        let mut files = fileset(20, 0);
        files.size = SizeDistribution::Uniform { minimum: 0, maximum: 20_000 };
        let actions = [
            (3, action(Operation::Create { block_bytes: 4096, fsync: false })),
            (2, action(Operation::Unlink)),
            (2, action(Operation::Append(transfer(Extent::Bytes(777), Pattern::FromStart)))),
        ];
        let load = with(workload(files, group(1, mix(&actions)), operations(100)), io);
        let results = [5, 5, 6].map(|seed| {
            let report = try_run(&load, directory, seed).expect("the engine works");
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            files_below(directory)
        });
        assert_eq!(results[0], results[1]);
        assert_ne!(results[0], results[2]);
    });
}
