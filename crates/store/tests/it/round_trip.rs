//! What was recorded is what is read, exactly; what cannot be kept exactly is refused.

use crate::samples::{self, refused, run, trial};
use fstone_model::metric::catalog;
use fstone_model::result::TrialId;
use fstone_model::{Dataset, LoadReport, Trial, dataset::Run};
use fstone_store::{ReadError, RecordError, Store};
use proptest::prelude::*;

fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::open(&directory.path().join("fstone.db")).expect("a store");
    (directory, store)
}

fn id(cell: u32, repetition: u32) -> TrialId {
    TrialId { cell, repetition }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_was_recorded_is_what_is_read(recorded in samples::runs(), trials in samples::trials()) {
        let (_directory, mut store) = store();
        let other = store.begin_run(&run()).expect("another run");
        let number = store.begin_run(&recorded).expect("recorded");
        for one in &trials {
            store.record_trial(number, one).expect("recorded");
        }
        store.record_trial(other, &trial(id(0, 0), 0)).expect("recorded");

        let expected = Dataset { run: Run { id: number, ..recorded }, trials };
        let read = store.dataset(number).expect("read");
        prop_assert_eq!(bits(&read), bits(&expected), "to the last bit, -0.0 included");
        prop_assert_eq!(&read, &expected);

        let (shown, figures) = (shown(expected.clone()), without_loads(expected));
        let with_excerpts = [store.shown(number).expect("read"), store.figures(number).expect("read")];
        sql(&store, "DELETE FROM excerpts");
        let from_tables = [store.shown(number).expect("read"), store.figures(number).expect("read")];
        for [read, without] in [with_excerpts, from_tables] {
            prop_assert_eq!(bits(&read), bits(&shown));
            prop_assert_eq!(read, shown.clone());
            prop_assert_eq!(bits(&without), bits(&figures));
            prop_assert_eq!(without, figures.clone());
        }
    }
}

fn sql(store: &Store, statement: &str) -> usize {
    rusqlite::Connection::open(store.path()).expect("opened").execute(statement, []).expect("SQL")
}

fn change_loads(mut dataset: Dataset, change: impl Fn(&mut Option<Box<LoadReport>>)) -> Dataset {
    dataset.trials.iter_mut().flat_map(|trial| &mut trial.steps).for_each(|step| change(&mut step.load));
    dataset
}

fn shown(dataset: Dataset) -> Dataset {
    change_loads(dataset, |load| load.iter_mut().for_each(|load| load.shorten()))
}

fn without_loads(dataset: Dataset) -> Dataset {
    change_loads(dataset, |load| *load = None)
}

#[test]
fn what_is_changed_by_hand_is_what_is_read() {
    let (_directory, mut store) = store();
    let number = store.begin_run(&run()).expect("recorded");
    for repetition in 0..8 {
        store.record_trial(number, &trial(id(0, repetition), repetition)).expect("recorded");
    }
    let excerpts = |store: &Store| -> i64 {
        let connection = rusqlite::Connection::open(store.path()).expect("opened");
        connection.query_row("SELECT count(*) FROM excerpts", [], |row| row.get(0)).expect("a count")
    };
    assert_eq!(excerpts(&store), 8);
    let changes = [
        "UPDATE figures SET value = 7.0 WHERE repetition = 0 AND metric = 'CPU'",
        "DELETE FROM figures WHERE repetition = 1 AND metric = 'CPU'",
        "INSERT INTO figures SELECT run, cell, repetition, step, 'CPU user', value, unit, better, 9 FROM figures
         WHERE repetition = 2 AND metric = 'CPU'",
        "UPDATE steps SET duration_ns = 5 WHERE repetition = 3 AND step = 'load'",
        "UPDATE commands SET status = 9 WHERE repetition = 4 AND number = 0 AND step = 'mkfs'",
        "DELETE FROM superblocks WHERE repetition = 5 AND number = 0",
        "INSERT INTO warnings SELECT run, cell, repetition, 99, 'by hand' FROM trials WHERE repetition = 6",
        "DELETE FROM loads WHERE repetition = 7 AND step = 'load'",
    ];
    for (changed, change) in (1..).zip(changes) {
        assert_eq!(sql(&store, change), 1);
        assert_eq!(excerpts(&store), 8 - changed, "{change}");
    }
    let read = store.shown(number).expect("read").trials;
    assert_eq!(read[0].figure("load", "CPU").expect("there").value, 7.0);
    assert_eq!(read[1].figure("load", "CPU"), None);
    assert!(read[2].figure("load", "CPU user").is_some());
    assert_eq!(store.figures(number).expect("read"), without_loads(store.dataset(number).expect("read")));
}

/// Enough of them that several threads decode them.
#[test]
fn many_trials_are_read_in_their_order() {
    let (_directory, mut store) = store();
    let number = store.begin_run(&run()).expect("recorded");
    let trials: Vec<Trial> = (0..200).map(|position| trial(id(position % 4, position / 4), position)).collect();
    for one in &trials {
        store.record_trial(number, one).expect("recorded");
    }
    assert_eq!(store.dataset(number).expect("read").trials, trials);
    assert_eq!(store.shown(number).expect("read"), shown(store.dataset(number).expect("read")));
}

/// The bits of every figure: `==` takes 0.0 and -0.0 for the same.
fn bits(dataset: &Dataset) -> Vec<u64> {
    let steps = dataset.trials.iter().flat_map(|trial| &trial.steps);
    steps.flat_map(|step| &step.figures).map(|figure| figure.value.to_bits()).collect()
}

#[test]
fn a_figure_that_is_not_a_number_is_kept_as_one() {
    let (_directory, mut store) = store();
    let number = store.begin_run(&run()).expect("recorded");
    let mut one = trial(id(0, 0), 0);
    one.steps[0].figures = vec![catalog::TIME.figure(f64::NAN), catalog::CPU.figure(1.0)];
    store.record_trial(number, &one).expect("recorded");
    let read = store.dataset(number).expect("read").trials.remove(0);
    assert!(read.figure("mkfs", "time").expect("there").value.is_nan());
    assert_eq!(read.figure("mkfs", "CPU").expect("there").value, 1.0);
}

#[test]
fn a_summary_counts_outcomes_and_unfinished_trials_are_known() {
    let (_directory, mut store) = store();
    assert_eq!(store.runs().expect("read"), []);
    let number = store.begin_run(&run()).expect("recorded");
    for position in 0..3 {
        store.trial_started(number, id(0, position), position, 1).expect("recorded");
        store.record_trial(number, &trial(id(0, position), position)).expect("recorded");
    }
    store.trial_started(number, id(1, 0), 3, 2).expect("recorded");
    store.record_trial(number, &refused(id(1, 0), 3)).expect("recorded");
    store.trial_started(number, id(2, 0), 4, 3).expect("recorded");

    let [summary] = store.runs().expect("read").try_into().expect("one run");
    assert_eq!((summary.id, summary.study.as_str(), summary.quick), (number, "small-file", true));
    assert_eq!((summary.trials, summary.planned_minimum, summary.finished_unix_ns), (4, 12, None));
    assert_eq!(summary.outcomes, [("completed".to_owned(), 3), ("refused".to_owned(), 1)]);
    let [unfinished] = store.unfinished(number).expect("read").try_into().expect("one trial");
    assert_eq!((unfinished.id, unfinished.position, unfinished.started_unix_ns), (id(2, 0), 4, 3));

    store.finish_run(number, 77).expect("recorded");
    assert_eq!(store.runs().expect("read")[0].finished_unix_ns, Some(77));
}

#[test]
fn a_deleted_run_is_gone_and_its_number_is_not_used_again() {
    let (_directory, mut store) = store();
    let first = store.begin_run(&run()).expect("recorded");
    let second = store.begin_run(&run()).expect("recorded");
    for number in [first, second] {
        store.trial_started(number, id(0, 0), 0, 1).expect("recorded");
        store.record_trial(number, &trial(id(0, 0), 0)).expect("recorded");
    }
    assert_eq!(store.delete_runs(&[(second, None)]).expect("deleted"), None);
    assert!(matches!(store.dataset(second), Err(ReadError::NoSuchRun { run }) if run == second));
    assert!(
        matches!(store.delete_runs(&[(first, None), (second, None)]), Err(RecordError::NoSuchRun { run }) if run == second)
    );
    assert_eq!(store.dataset(first).expect("read").trials.len(), 1, "the other run is untouched");
    assert_eq!(store.begin_run(&run()).expect("recorded"), second + 1);

    let connection = rusqlite::Connection::open(store.path()).expect("opened");
    for table in
        ["cells", "levels", "attempts", "trials", "steps", "figures", "commands", "loads", "operations", "excerpts"]
    {
        let sql = format!("SELECT count(*) FROM {table} WHERE run = ?");
        let left: i64 = connection.query_row(&sql, [second.cast_signed()], |row| row.get(0)).expect("a count");
        assert_eq!(left, 0, "{table}");
    }
}

#[test]
fn what_cannot_be_kept_is_refused_and_leaves_nothing() {
    let (_directory, mut store) = store();
    let number = store.begin_run(&run()).expect("recorded");
    let good = trial(id(0, 0), 0);

    let mut twice = good.clone();
    twice.steps[1].step = twice.steps[0].step.clone();
    let mut figure_twice = good.clone();
    figure_twice.steps[1].figures[1] = figure_twice.steps[1].figures[0].clone();
    let mut not_json = good.clone();
    not_json.steps[1].load.as_mut().expect("a load").clock.cost_ns = f64::NAN;
    let bad: [(Trial, &str); 5] = [
        (twice, "failed to record the trial: step \"mkfs\" is there twice"),
        (
            figure_twice,
            "failed to record the trial: figure \"transactions per second\" of step \"load\" is there twice",
        ),
        (not_json, "failed to record a load report: it does not survive as JSON"),
        (Trial { id: id(9, 0), ..good.clone() }, "failed to record it: run 1 has no cell 9"),
        (
            Trial { duration_ns: u64::MAX, ..good.clone() },
            "failed to record the duration of the trial 18446744073709551615: the store's integers end at",
        ),
    ];
    for (trial, words) in bad {
        let error = store.record_trial(number, &trial).expect_err(words);
        assert!(format!("failed to {error}").starts_with(words), "{error}");
        assert_eq!(store.dataset(number).expect("read").trials, []);
    }
    assert!(matches!(store.record_trial(7, &good), Err(RecordError::NoSuchRun { run: 7 })));
    assert!(matches!(store.finish_run(7, 1), Err(RecordError::NoSuchRun { run: 7 })));
    assert!(matches!(store.trial_started(7, id(0, 0), 0, 1), Err(RecordError::NoSuchRun { run: 7 })));

    store.record_trial(number, &good).expect("recorded");
    let error = store.record_trial(number, &good).expect_err("twice");
    assert!(matches!(error, RecordError::AlreadyRecorded { run: 1, cell: 0, repetition: 0 }), "{error}");

    let mut lopsided = run();
    lopsided.plan.cells[2].levels = vec![0, 2];
    assert!(matches!(store.begin_run(&lopsided), Err(RecordError::InvalidPlan(_))));
    assert_eq!(store.runs().expect("read").len(), 1, "nothing of it is there");
}

#[test]
fn figures_are_the_dataset_without_load_reports() {
    let (_directory, mut store) = store();
    let number = store.begin_run(&run()).expect("recorded");
    store.record_trial(number, &trial(id(0, 0), 0)).expect("recorded");
    let mut whole = store.dataset(number).expect("read");
    let figures = store.figures(number).expect("read");
    let steps = |dataset: &Dataset| dataset.trials[0].steps.iter().filter(|step| step.load.is_some()).count();
    assert_eq!((steps(&whole), steps(&figures)), (1, 0));
    for step in &mut whole.trials[0].steps {
        step.load = None;
    }
    assert_eq!(figures, whole);
}

#[test]
fn a_baseline_is_a_name_for_a_run() {
    let (_directory, mut store) = store();
    let (first, second) = (store.begin_run(&run()).expect("a run"), store.begin_run(&run()).expect("a run"));
    assert_eq!(store.baseline("main").expect("read"), None);
    store.save_baseline("main", first, 5).expect("saved");
    store.save_baseline("Linux 6.18, vda", first, 6).expect("saved");
    store.save_baseline("main", second, 7).expect("moved");
    assert_eq!(store.baseline("main").expect("read"), Some(second));
    let names: Vec<_> =
        store.baselines().expect("read").into_iter().map(|b| (b.name, b.run, b.saved_unix_ns)).collect();
    assert_eq!(names, [("Linux 6.18, vda".into(), first, 6), ("main".into(), second, 7)]);

    assert!(matches!(store.save_baseline("x", 99, 1), Err(RecordError::NoSuchRun { run: 99 })));
    let long = "x".repeat(201);
    for name in ["", "  ", "a\u{1b}[2J", &long] {
        let error = store.save_baseline(name, first, 1).expect_err("no name").to_string();
        assert!(error.contains("a name is 1 to 200 bytes") && !error.contains('\u{1b}'), "{error}");
    }
    assert_eq!(store.delete_runs(&[(second, None)]).expect("deleted"), None);
    assert_eq!(store.baseline("main").expect("read"), None, "the name goes with the run");
}
