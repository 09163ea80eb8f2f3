//! FFSB's operations and how it counts them.

use crate::support::*;
use fstone_model::LoadReport;
use fstone_model::workload::*;

fn twenty(operation: Operation, rule: TransactionRule, size: u64) -> (LoadReport, tempfile::TempDir) {
    let directory = in_memory();
    let mut one = action(operation);
    one.transactions = rule;
    let report = flawless(&workload(fileset(30, size), group(2, mix(&[(1, one)])), operations(20)), directory.path());
    assert_eq!(report.operations[0].invocations, 20);
    (report, directory)
}

fn counts(report: &LoadReport) -> (u64, u64, u64) {
    let operation = &report.operations[0];
    (operation.transactions / 20, operation.read_bytes / 20, operation.written_bytes / 20)
}

#[test]
fn reads() {
    let from_random = transfer(Extent::Bytes(10_000), Pattern::FromRandom { align_bytes: 1 });
    let (report, _) = twenty(Operation::Read(from_random), TransactionRule::BlocksFloor, 50_000);
    assert_eq!(counts(&report), (2, 10_000, 0));
    assert_eq!(report.operations[0].calls, 60);
    let scattered =
        transfer(Extent::Bytes(10_000), Pattern::Random { distribution: Distribution::Uniform, align_bytes: 1 });
    let (report, _) = twenty(Operation::Read(scattered), TransactionRule::BlocksFloor, 50_000);
    assert_eq!(counts(&report), (2, 8192, 0));
    let skipping = transfer(Extent::Bytes(10_000), Pattern::Skip { skip_bytes: 8192 });
    let (report, _) = twenty(Operation::Read(skipping), TransactionRule::BlocksCeil, 50_000);
    assert_eq!(counts(&report), (3, 10_000, 0));
    let (report, _) = twenty(Operation::Read(whole()), TransactionRule::BlocksFloor, 50_000);
    assert_eq!(counts(&report), (12, 50_000, 0));
    // Less than a block still is a transaction.
    let (report, _) = twenty(Operation::Read(whole()), TransactionRule::BlocksFloor, 100);
    assert_eq!(counts(&report), (1, 100, 0));
}

#[test]
fn writes() {
    let from_random = transfer(Extent::Bytes(10_000), Pattern::FromRandom { align_bytes: 1 });
    let (report, directory) = twenty(Operation::Write(from_random), TransactionRule::BlocksCeil, 50_000);
    assert_eq!(counts(&report), (3, 0, 10_000));
    assert!(files_below(directory.path()).iter().all(|(_, size)| *size == 50_000));
    let (report, _) = twenty(Operation::Write(whole()), TransactionRule::BlocksCeil, 50_000);
    assert_eq!(counts(&report), (13, 0, 50_000));
    let append = transfer(Extent::Bytes(10_000), Pattern::FromStart);
    let (report, directory) = twenty(Operation::Append(append), TransactionRule::BlocksCeil, 50_000);
    assert_eq!(counts(&report), (3, 0, 10_000));
    let total: u64 = files_below(directory.path()).iter().map(|(_, size)| size).sum();
    assert_eq!(total, 30 * 50_000 + 20 * 10_000);
}

#[test]
fn creates_and_deletes() {
    let create = Operation::Create { block_bytes: 4096, fsync: true };
    let (report, directory) = twenty(create, TransactionRule::BlocksCeil, 10_000);
    assert_eq!(counts(&report), (3, 0, 10_000));
    assert_eq!(files_below(directory.path()).len(), 50);
    let fsyncs = report.calls.iter().find(|call| call.call == "fsync").expect("fsyncs");
    assert_eq!(fsyncs.latency.count(), 20);
    let empty = Operation::Create { block_bytes: 0, fsync: false };
    let (report, _) = twenty(empty, TransactionRule::BlocksCeil, 0);
    assert_eq!(counts(&report), (0, 0, 0));
    let (report, directory) = twenty(Operation::Unlink, TransactionRule::One, 0);
    assert_eq!(counts(&report), (1, 0, 0));
    assert_eq!(files_below(directory.path()).len(), 10);
}

#[test]
fn metadata_operations() {
    for operation in [Operation::Stat, Operation::OpenClose] {
        let (report, _) = twenty(operation, TransactionRule::One, 10);
        assert_eq!(counts(&report), (1, 0, 0));
    }
    let (_, directory) = twenty(Operation::Mkdir, TransactionRule::One, 10);
    assert!(directory.path().join("data/dir19").is_dir());
    let (report, directory) = twenty(Operation::Metadata, TransactionRule::One, 10);
    let left = std::fs::read_dir(directory.path().join("meta")).expect("the directory beside");
    assert_eq!(left.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir())).count(), 20);
    let calls = |name: &str| report.calls.iter().find(|call| call.call == name).map_or(0, |call| call.latency.count());
    assert_eq!((calls("mkdir"), calls("rmdir"), calls("rename")), (40, 20, 20));
}

#[test]
fn a_profile_of_many_threads() {
    let directory = on_disk();
    let mut files = fileset(300, 0);
    files.size = SizeDistribution::Uniform { minimum: 4096, maximum: 65_536 };
    files.directories = Directories::Flat { count: 50, root_too: true };
    let actions = mix(&[
        (10, action(Operation::Create { block_bytes: 4096, fsync: false })),
        (10, action(Operation::Write(whole()))),
        (20, action(Operation::Read(whole()))),
        (10, action(Operation::Unlink)),
        (5, action(Operation::Append(transfer(Extent::Bytes(4096), Pattern::FromStart)))),
    ]);
    let report = flawless(&workload(files, group(128, actions), milliseconds(500)), directory.path());
    assert_eq!(report.threads, 128);
    assert!(report.invocations() > 128, "{}", report.invocations());
    assert!(report.audit.mix_error_points.expect("a mix") < 10.0);
    assert!(report.warnings.iter().all(|warning| !warning.contains("were asked for")), "{:?}", report.warnings);
    let created = report.operations[0].invocations;
    let removed = report.operations[3].invocations;
    assert_eq!(files_below(directory.path()).len() as u64, 300 + created - removed);
    assert!(report.sync_ns > 0 && report.process_system_ns > 0);
}
