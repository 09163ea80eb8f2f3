//! Files that stay open: whoever opened them, and whatever becomes of their names meanwhile.

use crate::support::*;
use fstone_model::workload::*;

fn keeping(threads: u32, actions: Actions) -> ThreadGroup {
    ThreadGroup { open: OpenPolicy::KeepOpen, ..group(threads, actions) }
}

fn on(mut load: fstone_model::Workload, engine: IoEngineKind, queue_depth: u32) -> fstone_model::Workload {
    load.io = IoSettings { engine, queue_depth, ..IoSettings::default() };
    load
}

fn is_here(load: &fstone_model::Workload) -> bool {
    let probe = on(
        workload(fileset(1, 4096), keeping(1, mix(&[(1, action(Operation::Stat))])), operations(1)),
        load.io.engine,
        1,
    );
    let here = !matches!(try_run(&probe, in_memory().path(), 1), Err(fstone_engine::LoadError::Engine { .. }));
    if !here {
        eprintln!("skipped: {:?} is not to be had here", load.io.engine);
    }
    here
}

/// Too many for each thread to have its own: one thread opens all files, the others write to them through mappings.
#[test]
fn a_file_that_another_thread_opened_is_written_through_a_mapping() {
    let directory = in_memory();
    let threads = keeping(20, mix(&[(1, action(Operation::Write(random_block())))]));
    let load = on(workload(fileset(1000, 4096), threads, operations(20_000)), IoEngineKind::Mmap, 1);
    let report = flawless(&load, directory.path());
    assert_eq!(report.written_bytes(), 20_000 * 4096);
}

#[test]
fn files_that_come_and_go_are_read_as_they_are_now() {
    for (engine, depth) in
        [(IoEngineKind::IoUring, 8), (IoEngineKind::Libaio, 8), (IoEngineKind::Mmap, 1), (IoEngineKind::Psync, 1)]
    {
        let directory = in_memory();
        let actions = [
            (1, action(Operation::Create { block_bytes: 4096, fsync: false })),
            (1, action(Operation::Unlink)),
            (4, action(Operation::Read(random_block()))),
        ];
        let threads = keeping(4, mix(&actions));
        let load = on(workload(fileset(1000, 4096), threads, operations(60_000)), engine, depth);
        if !is_here(&load) {
            continue;
        }
        let report = flawless(&load, directory.path());
        assert_eq!(report.invocations(), 60_000, "{engine:?}");
    }
}

#[test]
fn shared_descriptors_are_those_of_their_files() {
    for engine in [IoEngineKind::Psync, IoEngineKind::Mmap] {
        let directory = in_memory();
        let reads = keeping(4, mix(&[(1, action(Operation::Read(random_block())))]));
        let mut load = on(workload(fileset(40, 65536), reads, Stop::default()), engine, 1);
        load.data.stamped = true;
        load.phases[0].groups[0].stop = operations(20_000);
        load.filesets.push(Fileset { name: "other".into(), directory: "other".into(), ..fileset(40, 4096) });
        let mut churn = vec![action(Operation::Create { block_bytes: 4096, fsync: false }), action(Operation::Unlink)];
        churn.iter_mut().for_each(|action| action.fileset = Some(1));
        let churn = keeping(1, Actions::Sequence(churn));
        load.phases[0].groups.push(ThreadGroup { name: "churn".into(), stop: operations(2000), ..churn });
        let report = flawless(&load, directory.path());
        assert_eq!(report.invocations(), 22_000, "{engine:?}");
        assert_eq!(report.audit.verified_bytes, report.read_bytes(), "{engine:?}");
    }
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("procfs").count()
}

/// Files that come into being during the load are kept open as well, once, and are closed when they go: by whichever
/// group.
#[test]
fn new_files_are_kept_and_removed_ones_are_let_go() {
    let directory = in_memory();
    let reads = keeping(2, mix(&[(1, action(Operation::Read(random_block())))]));
    let churn =
        mix(&[(1, action(Operation::Create { block_bytes: 4096, fsync: false })), (1, action(Operation::Unlink))]);
    let mut load = workload(fileset(1000, 4096), reads, Stop::default());
    load.phases[0].groups[0].stop = operations(30_000);
    load.phases[0].groups.push(ThreadGroup { name: "churn".into(), stop: operations(3000), ..group(1, churn) });
    let watch = std::sync::atomic::AtomicUsize::new(0);
    struct Most<'a>(&'a std::sync::atomic::AtomicUsize);
    impl fstone_engine::Observer for Most<'_> {
        fn progress(&self, _: &fstone_engine::Progress) {
            self.0.fetch_max(open_descriptors(), std::sync::atomic::Ordering::Relaxed);
        }
    }
    load.series_interval = std::time::Duration::from_millis(10);
    let before = open_descriptors();
    let cancel = std::sync::atomic::AtomicBool::new(false);
    let options = fstone_engine::RunOptions {
        seed: 1,
        cancel: &cancel,
        observer: &Most(&watch),
        measure_null: false,
        ownership: fstone_engine::Ownership::Marked,
    };
    let report = fstone_engine::run(&load, directory.path(), &options).expect("the engine works");
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    let names = files_below(directory.path()).len();
    let most = watch.into_inner();
    // Other tests have files open, too; one descriptor lost per operation would be thousands.
    assert!(most < before + names + 1000, "{most} open, {names} files");
    assert!(open_descriptors() < before + 1000);
}
