//! Which files and blocks are worked on, and when that ends.

use crate::support::*;
use fstone_model::workload::*;

fn chosen(operation: Operation, choice: FileChoice) -> Action {
    Action { choice, ..action(operation) }
}

#[test]
fn every_file_once() {
    for threads in [1, 3] {
        let directory = in_memory();
        let mut files = fileset(500, 0);
        files.preallocated = 0.0;
        let mut load = workload(
            files,
            group(threads, mix(&[(1, action(Operation::Create { block_bytes: 0, fsync: false }))])),
            once(),
        );
        let stat = mix(&[(1, chosen(Operation::Stat, FileChoice::RoundRobin))]);
        load.phases.push(phase(vec![group(threads, stat)], once()));
        let touch = mix(&[(1, chosen(Operation::Utimens, FileChoice::Partitioned))]);
        load.phases.push(phase(vec![group(threads, touch)], once()));
        load.phases.push(phase(vec![group(threads, mix(&[(1, action(Operation::Unlink))]))], once()));
        let report = flawless(&load, directory.path());
        let done: Vec<u64> = report.operations.iter().map(|operation| operation.invocations).collect();
        assert_eq!(done, [500; 4], "{threads} threads");
        assert_eq!(files_below(directory.path()), []);
    }
}

/// The fastest operations have a loop and a count of their own.
#[test]
fn plain_reads_are_counted_in_full() {
    let directory = in_memory();
    let mut one = action(Operation::Read(random_block()));
    one.transactions = TransactionRule::BlocksCeil;
    let mut reader = group(1, mix(&[(1, one)]));
    reader.open = OpenPolicy::KeepOpen;
    let limited = Stop { bytes: Some(1 << 20), ..Stop::default() };
    for stop in [milliseconds(350), limited, operations(1000)] {
        let report = flawless(&workload(fileset(1, 1 << 20), reader.clone(), stop), directory.path());
        let read = &report.operations[0];
        assert!(read.invocations >= 256, "{stop:?}");
        let (calls, transactions, bytes) = (read.calls, read.transactions, read.read_bytes);
        assert_eq!(
            (calls, transactions, bytes),
            (read.invocations, read.invocations, read.invocations * 4096),
            "{stop:?}"
        );
        assert_eq!(report.series.iter().map(|point| point.read_bytes).sum::<u64>(), bytes, "{stop:?}");
        assert!(stop.time.is_none() || report.series.len() > 1, "{stop:?}");
        assert!(stop.bytes.is_none_or(|limit| limit == bytes), "{bytes}");
    }
}

/// A thread that is alone takes no locks; the next phase's threads do.
#[test]
fn one_thread_and_many_by_turns() {
    let directory = in_memory();
    let churn = || {
        mix(&[
            (1, action(Operation::Create { block_bytes: 0, fsync: false })),
            (1, action(Operation::Unlink)),
            (1, action(Operation::Rename)),
        ])
    };
    let mut load = workload(fileset(2000, 0), group(1, churn()), operations(1000));
    for threads in [4, 1, 4] {
        load.phases.push(phase(vec![group(threads, churn())], operations(3000)));
    }
    let report = flawless(&load, directory.path());
    assert_eq!(report.invocations(), 10_000);
    let of = |name: &str| -> u64 {
        report.operations.iter().filter(|one| one.name == name).map(|one| one.invocations).sum()
    };
    let (created, removed) =
        (of(&action(Operation::Create { block_bytes: 0, fsync: false }).name), of(&action(Operation::Unlink).name));
    assert!(created > 3000 && removed > 3000, "{created} {removed}");
    assert_eq!(files_below(directory.path()).len() as u64, 2000 + created - removed);
}

#[test]
fn every_block_once() {
    let pattern = Pattern::Random { distribution: Distribution::Permutation, align_bytes: 4096 };
    let walk = Pattern::Cursor { shared: true };
    for choice in [FileChoice::Concatenated, FileChoice::Partitioned] {
        for pattern in [pattern, walk] {
            let directory = in_memory();
            let one = chosen(Operation::Write(transfer(Extent::Bytes(4096), pattern)), choice);
            let mut threads = group(3, mix(&[(1, one)]));
            threads.open = OpenPolicy::KeepOpen;
            // The last block of every file is a short one.
            let report = flawless(&workload(fileset(7, 50_000), threads, once()), directory.path());
            assert_eq!(report.invocations(), 7 * 13, "{choice:?} {pattern:?}");
            assert_eq!(report.written_bytes(), 7 * 50_000, "{choice:?} {pattern:?}");
        }
    }
}

/// Also where the file's operation before is still in flight.
#[test]
fn a_queue_stays_with_its_file() {
    let directory = in_memory();
    let read = chosen(Operation::Read(random_block()), FileChoice::RoundRobin);
    let write = chosen(Operation::Write(random_block()), FileChoice::Same);
    let group = ThreadGroup { open: OpenPolicy::KeepOpen, ..group(1, Actions::Sequence(vec![read, write])) };
    let mut load = workload(fileset(50, 65536), group, operations(80));
    load.io = IoSettings { engine: IoEngineKind::IoUring, queue_depth: 8, ..IoSettings::default() };
    let began = std::sync::Mutex::new(std::time::SystemTime::UNIX_EPOCH);
    let begin = || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        *began.lock().expect("no panic") = std::time::SystemTime::now();
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let cancel = std::sync::atomic::AtomicBool::new(false);
    let observer = &Around { begin: &begin, end: &|| {} };
    let ownership = fstone_engine::Ownership::Marked;
    let options = fstone_engine::RunOptions { seed: 1, cancel: &cancel, observer, measure_null: false, ownership };
    let report = fstone_engine::run(&load, directory.path(), &options).expect("the engine works");
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    let began = *began.lock().expect("no panic");
    let written = files_below(directory.path())
        .into_iter()
        .filter(|(name, _)| std::fs::metadata(name).and_then(|of| of.modified()).is_ok_and(|at| at > began));
    assert_eq!(written.count(), 40, "each file that was read was written");
}

#[test]
fn a_sequence_stays_with_its_file() {
    let directory = in_memory();
    let same = |operation| chosen(operation, FileChoice::Same);
    let sequence = Actions::Sequence(vec![
        action(Operation::Create { block_bytes: 4096, fsync: false }),
        same(Operation::Append(transfer(Extent::Bytes(1000), Pattern::FromStart))),
        same(Operation::Fsync),
        same(Operation::Rename),
        same(Operation::Stat),
        same(Operation::Unlink),
    ]);
    let report = flawless(&workload(fileset(5, 4096), group(4, sequence), operations(600)), directory.path());
    // Each thread may have been stopped in the middle of its last round.
    let counts: Vec<u64> = report.operations.iter().map(|operation| operation.invocations).collect();
    assert_eq!(counts.iter().sum::<u64>(), 600);
    assert!(counts.iter().all(|count| (96..=104).contains(count)), "{counts:?}");
    let left = files_below(directory.path());
    assert_eq!(left.len() as u64, 5 + counts[0] - counts[5]);
}

fn mailbox(name: &str, files: u64) -> Fileset {
    Fileset { name: name.into(), directory: name.into(), ..fileset(files, 4096) }
}

#[test]
fn mail_is_delivered_while_others_remove_it() {
    let directory = in_memory();
    let on = |fileset, choice, operation| Action { fileset: Some(fileset), choice, ..action(operation) };
    let deliver = Actions::Sequence(vec![
        on(0, FileChoice::Uniform, Operation::Create { block_bytes: 4096, fsync: false }),
        on(0, FileChoice::Same, Operation::Move { to: 1 }),
        on(1, FileChoice::Same, Operation::Stat),
    ]);
    let remove = mix(&[(1, on(1, FileChoice::Uniform, Operation::Unlink))]);
    for open in [OpenPolicy::PerOperation, OpenPolicy::KeepOpen] {
        let mut load = workload(mailbox("tmp", 0), ThreadGroup { open, ..group(3, deliver.clone()) }, operations(6000));
        load.filesets.push(mailbox("new", 0));
        load.phases[0].stop = Stop::default();
        load.phases[0].groups[0].stop = operations(6000);
        let remover = ThreadGroup { name: "remove".into(), stop: operations(1500), open, ..group(2, remove.clone()) };
        load.phases[0].groups.push(remover);
        let report = flawless(&load, directory.path());
        let of = |name: &str| report.operations.iter().find(|one| one.name == name).expect("it was asked for");
        assert_eq!(of("unlink").invocations, 1500);
        let (created, moved) = (of("create").invocations, of("move").invocations);
        // A thread may have been stopped between the two.
        assert!(moved > 1500 && created - moved <= 3, "{created} {moved}");
        let left = files_below(directory.path());
        let new = left.iter().filter(|(name, size)| name.contains("/new/") && *size == 4096).count() as u64;
        assert_eq!((new, left.len() as u64), (moved - 1500, created - 1500), "{open:?}");
        // The stat came too late now and then, or the remover found nothing: counted, and told.
        let missed: u64 = report.operations.iter().map(|one| one.missed).sum();
        assert_eq!(report.warnings.iter().any(|warning| warning.contains("went on without it")), missed > 0);
    }
}

#[test]
fn files_that_others_remove_are_chosen_again() {
    let directory = in_memory();
    let same = |operation| chosen(operation, FileChoice::Same);
    let sequence = Actions::Sequence(vec![
        action(Operation::Create { block_bytes: 0, fsync: false }),
        same(Operation::Rename),
        same(Operation::Stat),
    ]);
    let mut load = workload(fileset(10, 0), group(4, sequence), Stop::default());
    load.phases[0].groups[0].stop = operations(9000);
    let unlink = mix(&[(1, action(Operation::Unlink))]);
    load.phases[0].groups.push(ThreadGroup { name: "remove".into(), stop: operations(2000), ..group(2, unlink) });
    for choice in [FileChoice::RoundRobin, FileChoice::Concatenated, FileChoice::Partitioned] {
        let reads = mix(&[(1, chosen(Operation::Read(random_block()), choice))]);
        let name = format!("{choice:?}");
        load.phases[0].groups.push(ThreadGroup { name, stop: operations(500), ..group(2, reads) });
    }
    load.filesets[0] = Fileset { preallocated: 1.0, ..fileset(3000, 4096) };
    let report = flawless(&load, directory.path());
    // How often that was is a matter of who ran when; here it is not.
    assert_eq!(report.invocations(), 9000 + 2000 + 3 * 500);
    let round = vec![
        action(Operation::Create { block_bytes: 0, fsync: false }),
        same(Operation::Unlink),
        same(Operation::Stat),
    ];
    let report =
        flawless(&workload(fileset(10, 0), group(1, Actions::Sequence(round)), operations(21)), directory.path());
    let of = |index: usize| (report.operations[index].invocations, report.operations[index].missed);
    assert_eq!((of(0), of(1), of(2)), ((11, 0), (10, 0), (0, 10)));
    assert!(report.warnings.iter().any(|warning| warning.contains("10 times")), "{:?}", report.warnings);
}

#[test]
fn nothing_to_remove_is_an_error_where_nothing_is_made() {
    let directory = in_memory();
    let report = crate::support::load(
        &workload(fileset(5, 0), group(1, mix(&[(1, action(Operation::Unlink))])), operations(10)),
        directory.path(),
    );
    assert_eq!((report.operations[0].invocations, report.errors.len()), (5, 1));
}

#[test]
fn a_sequence_once_through() {
    let directory = in_memory();
    let sequence = Actions::Sequence(vec![action(Operation::Stat), action(Operation::Read(random_block()))]);
    let report = flawless(&workload(fileset(5, 4096), group(3, sequence), once()), directory.path());
    assert_eq!(report.invocations(), 6);
}

#[test]
fn reads_and_writes_by_ratio() {
    let directory = in_memory();
    let at = |operation| chosen(operation, FileChoice::Concatenated);
    let ratio = Actions::Ratio {
        first: at(Operation::Read(random_block())),
        second: at(Operation::Write(random_block())),
        ratio: 1.5,
    };
    let mut threads = group(4, ratio);
    threads.open = OpenPolicy::KeepOpen;
    threads.fsync =
        FsyncPolicy { every_operations: 100, all_files: true, counted: false, at_end: true, ..FsyncPolicy::default() };
    let report = flawless(&workload(fileset(8, 64 << 10), threads, operations(1000)), directory.path());
    let (reads, writes) = (report.operations[0].invocations, report.operations[1].invocations);
    assert_eq!(reads + writes, 1000);
    assert!((598..=602).contains(&reads), "{reads} reads");
    let [periodic, at_end] = report.group_fsyncs.as_slice() else { panic!("{:?}", report.group_fsyncs) };
    // None after the last operation: what is left is the final fsyncs'. Each kind has its own latency.
    assert_eq!((periodic.periodic, periodic.at_end, periodic.latency.count()), (9 * 8, 0, 9 * 8));
    assert_eq!((at_end.periodic, at_end.at_end, at_end.latency.count()), (0, 4 * 8, 4 * 8));
}

#[test]
fn a_queue_of_a_ratio_counts_when_it_is_full() {
    let directory = in_memory();
    let at = |operation| chosen(operation, FileChoice::Concatenated);
    let (first, second) = (at(Operation::Read(random_block())), at(Operation::Write(random_block())));
    let mut threads = group(1, Actions::Ratio { first, second, ratio: 1.5 });
    threads.open = OpenPolicy::KeepOpen;
    let mut load = workload(fileset(4, 64 << 10), threads, operations(2000));
    load.io = IoSettings { engine: IoEngineKind::IoUring, queue_depth: 128, ..IoSettings::default() };
    if matches!(try_run(&load, directory.path(), 1), Err(fstone_engine::LoadError::Engine { .. })) {
        eprintln!("skipped: io_uring is not to be had here");
        return;
    }
    let report = flawless(&load, directory.path());
    let (reads, writes) = (report.operations[0].invocations, report.operations[1].invocations);
    // What sysbench 1.0.20 does with --file-io-mode=async --file-async-backlog=128 --events=2000 --file-fsync-freq=0.
    assert_eq!((reads, writes), (1232, 768));
}

#[test]
fn counted_fsyncs_are_operations_whatever_the_number_of_threads() {
    let directory = in_memory();
    let write = chosen(Operation::Write(random_block()), FileChoice::Concatenated);
    for (engine, queue_depth) in
        [(IoEngineKind::Psync, 1), (IoEngineKind::IoUring, 8), (IoEngineKind::Libaio, 8), (IoEngineKind::Mmap, 1)]
    {
        for threads in [1, 2, 5] {
            let mut threads = group(threads, mix(&[(1, write.clone())]));
            threads.open = OpenPolicy::KeepOpen;
            threads.fsync =
                FsyncPolicy { every_operations: 10, all_files: true, counted: true, ..FsyncPolicy::default() };
            // Twenty rounds of 10 writes and 5 fsyncs, then 10 writes and the first 2 fsyncs of the next.
            let mut load = workload(fileset(5, 64 << 10), threads, operations(312));
            load.io = IoSettings { engine, queue_depth, ..IoSettings::default() };
            if matches!(try_run(&load, directory.path(), 1), Err(fstone_engine::LoadError::Engine { .. })) {
                eprintln!("skipped: {engine:?} is not to be had here");
                continue;
            }
            let report = flawless(&load, directory.path());
            assert_eq!((report.invocations(), report.group_fsyncs[0].periodic), (210, 102), "{engine:?}");
            assert_eq!(report.per_thread.iter().map(|thread| thread.operations).sum::<u64>(), 312);
        }
    }
}

#[test]
fn fsyncs_of_the_file_just_worked_on_follow_its_operation() {
    let directory = in_memory();
    let mut threads = group(3, mix(&[(1, action(Operation::Write(random_block())))]));
    threads.fsync = FsyncPolicy { every_operations: 10, ..FsyncPolicy::default() };
    let report = flawless(&workload(fileset(5, 64 << 10), threads, operations(300)), directory.path());
    assert_eq!(report.group_fsyncs[0].periodic, 30);
}

#[test]
fn replaced_files_are_whole_whenever_they_are_read() {
    for open in [OpenPolicy::PerOperation, OpenPolicy::KeepOpen] {
        for fsync in [false, true] {
            let directory = in_memory();
            let replace = mix(&[(1, action(Operation::Replace { block_bytes: 4096, fsync }))]);
            let mut load = workload(fileset(5, 10_000), ThreadGroup { open, ..group(2, replace) }, operations(2000));
            load.data.stamped = true;
            let read = mix(&[(1, action(Operation::Read(whole())))]);
            load.phases[0].groups.push(ThreadGroup { name: "read".into(), open, ..group(2, read) });
            let (report, found) = try_run_verified(&load, directory.path(), 7).expect("it runs");
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            assert!(found.is_clean(), "{found:?}");
            let replaced = report.operations.iter().find(|one| one.name == "replace").expect("it was asked for");
            // Stamped files are rounded up to whole units.
            assert_eq!(replaced.written_bytes, replaced.invocations * 10_240, "{open:?} {fsync}");
            assert_eq!(files_below(directory.path()).len(), 5, "{open:?} {fsync}");
        }
    }
}
