//! Every operation on every I/O engine, with descriptors of each thread's own and shared ones, while nothing else happens
//! and while others make, remove and rename files.

use crate::support::*;
use fstone_engine::LoadError;
use fstone_model::Workload;
use fstone_model::workload::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surroundings {
    Opened,
    OpenedAmongChurn,
    Own,
    Shared,
    SharedAmongChurn,
}

const ALL: [Surroundings; 5] = [
    Surroundings::Opened,
    Surroundings::OpenedAmongChurn,
    Surroundings::Own,
    Surroundings::Shared,
    Surroundings::SharedAmongChurn,
];

const OPERATIONS: u64 = 40;

fn load_of(operation: &Operation, io: IoSettings, surroundings: Surroundings) -> Workload {
    let actions = match operation {
        // There has to be a directory to be removed.
        Operation::Rmdir => Actions::Sequence(vec![action(Operation::Mkdir), action(Operation::Rmdir)]),
        other if other.needs_handle() => {
            let by = |operation| Action { handle: Some(1), ..action(operation) };
            let perform = |action| Step::Perform { action, times: 1 };
            // What is closed has to be open, and what is open is closed at last.
            let steps = match other {
                Operation::Fill { .. } => vec![by(other.clone()), by(Operation::Close)],
                _ => vec![by(Operation::Open), by(Operation::Close)],
            };
            Actions::Program(steps.into_iter().map(perform).collect())
        }
        other => mix(&[(1, action(other.clone()))]),
    };
    let mut threads = group(2, actions);
    threads.stop = operations(OPERATIONS);
    let churn = mix(&[
        (1, action(Operation::Create { block_bytes: 4096, fsync: false })),
        (1, action(Operation::Unlink)),
        (1, action(Operation::Rename)),
    ]);
    let mut beside = ThreadGroup { name: "beside".into(), stop: operations(60), ..group(2, churn) };
    let mut load = workload(fileset(100, 8192), threads, Stop::default());
    load.filesets.push(Fileset { name: "elsewhere".into(), directory: "elsewhere".into(), ..fileset(1, 0) });
    if matches!(operation, Operation::StatDirectory | Operation::RenameDirectory) {
        load.filesets[0].leaf_directories = 5;
    }
    load.io = io;
    load.final_sync = FinalSync::None;
    load.on_error = ErrorPolicy::Continue;
    if !matches!(surroundings, Surroundings::Opened | Surroundings::OpenedAmongChurn) {
        load.phases[0].groups[0].open = OpenPolicy::KeepOpen;
        beside.open = OpenPolicy::KeepOpen;
    }
    match surroundings {
        Surroundings::Opened | Surroundings::Own => {}
        Surroundings::OpenedAmongChurn | Surroundings::SharedAmongChurn => load.phases[0].groups.push(beside),
        Surroundings::Shared => {
            // Files that come and go anywhere make the phase own all descriptors.
            let create = Action { fileset: Some(1), ..action(Operation::Create { block_bytes: 0, fsync: false }) };
            beside.actions = mix(&[(1, create)]);
            beside.stop = operations(1);
            load.phases[0].groups.push(beside);
        }
    }
    load
}

fn may_be_missing(operation: &Operation, text: &str) -> bool {
    matches!(operation, Operation::Setxattr { .. } | Operation::Getxattr | Operation::Reflink)
        && (text.starts_with("EOPNOTSUPP") || text.starts_with("EINVAL"))
}

#[test]
fn every_operation_works_on_every_engine_in_all_surroundings() {
    let pattern = Pattern::Random { distribution: Distribution::Uniform, align_bytes: 512 };
    let moved = Transfer { extent: Extent::Bytes(2048), block_bytes: 2048, pattern, fsync: false };
    let engines = [
        (IoEngineKind::Psync, 1),
        (IoEngineKind::IoUring, 1),
        (IoEngineKind::IoUring, 8),
        (IoEngineKind::Libaio, 8),
        (IoEngineKind::Mmap, 1),
        (IoEngineKind::Splice, 1),
    ];
    let (mut checked, mut stamped) = (0, 0);
    for (engine, queue_depth) in engines {
        let io = IoSettings { engine, queue_depth, ..IoSettings::default() };
        for operation in Operation::one_of_each(moved) {
            for surroundings in ALL {
                for with_stamps in [false, true] {
                    let directory = in_memory();
                    let mut load = load_of(&operation, io, surroundings);
                    load.data.stamped = with_stamps;
                    let ran = if with_stamps {
                        try_run_verified(&load, directory.path(), 7).map(|(report, found)| (report, Some(found)))
                    } else {
                        try_run(&load, directory.path(), 7).map(|report| (report, None))
                    };
                    let (report, found) = match ran {
                        Ok(ran) => ran,
                        // What changes data without writing it cannot be stamped.
                        Err(LoadError::Unsupported { .. }) if with_stamps => continue,
                        Err(LoadError::Engine { .. }) => {
                            eprintln!("skipped: {engine:?} is not to be had here");
                            continue;
                        }
                        Err(error) => panic!("{operation:?} {io:?} {surroundings:?}: {error}"),
                    };
                    let what = format!("{operation:?} {io:?} {surroundings:?} stamped {with_stamps}");
                    if let Some(error) = report.errors.first() {
                        assert!(may_be_missing(&operation, &error.text), "{what}: {error:?}");
                        continue;
                    }
                    let done: u64 =
                        report.operations.iter().filter(|one| one.group == "group").map(|one| one.invocations).sum();
                    assert_eq!(done, OPERATIONS, "{what}");
                    let clean = found.is_none_or(|found| found.is_clean() && found.verified_bytes > 0);
                    assert!(clean, "{what}");
                    checked += 1;
                    stamped += u64::from(with_stamps);
                }
            }
        }
    }
    assert!(checked > 300 && stamped > 100, "{checked} {stamped}");
}
