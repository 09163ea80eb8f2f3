//! Several writers and readers at once. Each has a connection of its own, as separate processes have.

use crate::samples::{CELLS, run, trial};
use fstone_model::result::TrialId;
use fstone_store::Store;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const WRITERS: u32 = 4;
const TRIALS: u32 = 25;

#[test]
fn writers_and_readers_do_not_get_into_each_others_way() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("fstone.db");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // They also race for making the file, its tables and its journal mode.
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                scope.spawn(|| {
                    let mut store = Store::open(&path).expect("opened");
                    let number = store.begin_run(&run()).expect("recorded");
                    for position in 0..TRIALS {
                        let id = TrialId { cell: position % CELLS, repetition: position / CELLS };
                        store.trial_started(number, id, position, 1).expect("recorded");
                        store.record_trial(number, &trial(id, position)).expect("recorded");
                    }
                    store.finish_run(number, 1).expect("recorded");
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut reads = 0_u32;
            while !path.exists() {
                thread::yield_now();
            }
            // A reader that is there before the tables are is told so, and tries again.
            let store = loop {
                match Store::open_read_only(&path) {
                    Ok(store) => break store,
                    Err(_) if !done.load(Ordering::Relaxed) => thread::yield_now(),
                    Err(error) => panic!("failed to {error}"),
                }
            };
            while !done.load(Ordering::Relaxed) {
                for summary in store.runs().expect("read") {
                    let dataset = store.dataset(summary.id).expect("read");
                    assert!(dataset.trials.len() as u64 >= summary.trials, "a trial that was there stays there");
                    for (position, read) in (0..).zip(&dataset.trials) {
                        assert_eq!(*read, trial(read.id, position), "a trial is there whole or not at all");
                    }
                    reads += 1;
                }
            }
            reads
        });
        let writers: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| writer.expect("the writer did not panic"));
        assert!(reader.join().expect("the reader did not panic") > 0);
    });
    let runs = Store::open_read_only(&path).expect("opened").runs().expect("read");
    assert_eq!(runs.len(), WRITERS as usize);
    for run in runs {
        assert_eq!((run.trials, run.finished_unix_ns), (u64::from(TRIALS), Some(1)));
    }
}
