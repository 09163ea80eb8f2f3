//! One figure over many runs: a change is marked where it was, and nothing is marked where there was none.

use crate::{
    figures,
    fixture::{self, Fs, Nature, Random},
    pages::check_html,
    words::check_sentence,
};
use fstone_analysis::runs::{History, HistoryError};
use fstone_model::{Dataset, Outcome, metric::catalog, outcome::Reason};
use fstone_report::history;
use insta::assert_snapshot;
use std::fs;

const DAY_NS: u64 = 86_400_000_000_000;

/// Daily runs of one study; `level` says what share of the usual each has.
fn runs(count: u64, level: &dyn Fn(u64) -> f64) -> Vec<Dataset> {
    (1..=count)
        .map(|id| {
            let columns =
                [("transactions per second", "load", "transactions per second"), ("fsck time", "fsck", "time")];
            let mut plan = fixture::plan("small-file", "Small files", 5, &columns);
            fixture::cross(&mut plan, &[Fs("ext4", "ext4", "", ""), Fs("xfs", "xfs", "", "")], &[]);
            let mut dataset = fixture::dataset(plan);
            dataset.run.id = id;
            dataset.run.started_unix_ns += id * DAY_NS;
            let nature = |cell: &fstone_model::Cell| {
                let share = if cell.index == 0 { level(id) } else { 1.0 };
                Some(Nature { figures: vec![(9000.0 * share, 0.01), (1.8, 0.01)] })
            };
            fixture::complete(&mut dataset, 5, &mut Random::new(id), &nature, &|_, _, _| None);
            dataset
        })
        .collect()
}

#[test]
fn a_change_is_marked_where_it_was() {
    let mut runs = runs(24, &|run| if run < 15 { 1.0 } else { 0.93 });
    for dataset in &mut runs[14..] {
        dataset.run.inventory.kernel = "Linux 6.19.0 #1 SMP x86_64".into();
    }
    runs[4].run.inventory.host = "elsewhere".into();
    let names = [("main".to_owned(), 3)];
    let history = History::of(&runs, Some("ext4"), None, &names).expect("a history");
    assert_eq!(history.points.len(), 23);
    let marked: Vec<u64> = history.changes.iter().map(|change| history.points[change.index].run).collect();
    assert_eq!(marked, [15]);
    assert_snapshot!("history", history::terminal(&history, 80, false));
    let json: serde_json::Value = serde_json::from_str(&history::json(&history)).expect("JSON");
    assert_eq!(json["left_out"], serde_json::json!([[5, "another machine"]]));
    let page = history::html(&history, Some("index.html"));
    check_html(&page);
    fs::write(figures::gallery().join("history-ext4.html"), page).expect("the gallery can be written");
}

/// Runs that agree exactly, as in virtual time.
#[test]
fn runs_that_agree_and_are_too_few_are_named() {
    let told = |after: u64| {
        let mut runs = runs(9 + after, &|_| 1.0);
        for dataset in &mut runs {
            let share = if dataset.run.id <= 8 { 1.0 } else { 0.9 };
            let share = if dataset.run.id > 8 + after { 0.7 } else { share };
            for figure in
                dataset.trials.iter_mut().flat_map(|trial| &mut trial.steps).flat_map(|step| &mut step.figures)
            {
                figure.value = 9000.0 * share;
            }
        }
        History::of(&runs, Some("ext4"), None, &[]).expect("a history").sentences().join(" ")
    };
    let few = told(5);
    assert!(few.contains("run 14 differs from the 5 that agree since run 9; whether"), "{few}");
    let enough = told(7);
    assert!(!enough.contains("that agree") && enough.contains("at run 16"), "{enough}");
}

#[test]
fn nothing_is_marked_where_nothing_changed() {
    let runs = runs(24, &|run| if run < 15 { 1.0 } else { 0.93 });
    for (row, column) in [("xfs", None), ("ext4", Some("fsck time"))] {
        let history = History::of(&runs, Some(row), column, &[]).expect("a history");
        assert_eq!(history.changes, [], "{row}");
        assert!(history.sentences()[0].contains("no change point in 24 runs"), "{:?}", history.sentences());
    }
}

#[test]
fn a_fall_in_the_newest_runs_is_found_and_no_earlier_run_is_blamed() {
    for newest in 1..=4 {
        let first = 21 - newest;
        let runs = runs(20, &|run| if run < first { 1.0 } else { 0.5 });
        let history = History::of(&runs, None, None, &[]).expect("a history");
        let told = history.sentences();
        if newest < 3 {
            assert_eq!(history.newest.map(|(index, _)| history.points[index].run), Some(first), "{told:?}");
            assert!(told[0].contains(": fell (worse) from ") && told[0].contains("further runs show"), "{told:?}");
        }
        let marked: Vec<u64> = history.changes.iter().map(|change| history.points[change.index].run).collect();
        assert!(marked.iter().all(|run| *run == first), "{marked:?} for {first}");
        assert!(newest < 3 || marked == [first], "{marked:?} for {first}");
    }
    // Before two falls, the run that a split of three has to take in.
    let runs = runs(22, &|run| if run < 21 { 1.0 } else { 0.5 });
    let history = History::of(&runs, None, None, &[]).expect("a history");
    assert!(history.changes.iter().all(|change| history.points[change.index].run == 21), "{:?}", history.sentences());
}

#[test]
fn few_runs_are_said_to_be_few_and_unknown_names_have_a_cure() {
    let runs = runs(4, &|run| if run < 3 { 1.0 } else { 0.5 });
    let history = History::of(&runs, None, None, &[]).expect("a history");
    assert_eq!(history.label, "ext4");
    assert_eq!(history.changes, []);
    assert!(history.sentences()[0].contains("takes about 10 runs"), "{:?}", history.sentences());
    let first = History::of(&runs[..1], None, None, &[]).expect("a history").sentences();
    assert!(first[0].contains("1 run so far"), "{first:?}");
    assert_eq!(History::of(&[], None, None, &[]).expect_err("none"), HistoryError::NoRun);
    let error = History::of(&runs, Some("ext5"), None, &[]).expect_err("no such row").to_string();
    assert_eq!(error, "the last run has no row \"ext5\"; it has ext4, xfs");
    let error = History::of(&runs, None, Some("speed"), &[]).expect_err("no such column").to_string();
    assert!(error.contains("transactions per second, fsck time"), "{error}");
}

#[test]
fn what_was_lost_and_that_the_last_run_has_no_figure_come_first() {
    let mut runs = runs(12, &|_| 1.0);
    for (run, lost) in [(4, 3.0), (11, 165.0)] {
        runs[run].trials[0].steps[0].figures.push(catalog::PROMISES_LOST.figure(lost));
    }
    let label = runs[11].run.plan.cells[runs[11].trials[0].id.cell as usize].label.clone();
    runs[4].trials[0].id = runs[11].trials[0].id;
    let history = History::of(&runs, Some(&label), None, &[]).expect("a history");
    let told =
        format!("{label} lost 165 promises after a power cut in run 12; something was lost or damaged in run 5, too.");
    assert_eq!(history.sentences()[0], told);
    for trial in &mut runs[11].trials {
        trial.outcome = Outcome::Failed(Reason::new("load", "no space"));
    }
    let history = History::of(&runs, Some(&label), None, &[]).expect("a history");
    assert_eq!(
        history.sentences()[..2],
        [told, format!("{label}, transactions per second: the last run, 12, has no figure (failed)."),]
    );
}

/// Levels that change, or only the scatter, with ties, zeros, and figures of any size.
fn made_up(case: u32, random: &mut Random) -> Vec<Dataset> {
    let count: u64 = [1, 2, 9, 10, 24, 40][case as usize % 6];
    let (step, scatter) = ([0.0, 1e-4, 0.05, 1.0, 8.0][case as usize % 5], [0.0, 0.01, 0.5][case as usize % 3]);
    let size = [1.0, 1e-6, 1e9][case as usize / 7 % 3];
    let breaks: Vec<u64> = (0..case % 3).map(|_| random.next() % count).collect();
    let levels: Vec<f64> = (1..=count)
        .map(|run| {
            let past = breaks.iter().filter(|at| **at < run).count();
            let level = size * (step * past as f64 * if case.is_multiple_of(2) { 1.0 } else { -1.0 }).exp();
            let wild = if past == 1 && case.is_multiple_of(4) { 10.0 } else { 1.0 };
            let value = level * (scatter * wild * random.normal()).exp();
            let value = if case.is_multiple_of(5) { 2.0_f64.powf(value.log2().round()) } else { value };
            if case.is_multiple_of(9) && random.unit() < 0.4 { 0.0 } else { value }
        })
        .collect();
    runs(count, &|run| levels[run as usize - 1])
}

#[test]
fn no_history_makes_an_impossible_sentence() {
    let (mut random, mut found) = (Random::new(79), 0);
    for case in 0..30 {
        let history = History::of(&made_up(case, &mut random), Some("ext4"), None, &[]).expect("a history");
        let sentences = history.sentences();
        assert!(!sentences.is_empty());
        for sentence in sentences {
            check_sentence(&sentence);
            found += 1;
            let Some((_, told)) = sentence.split_once(" from ") else { continue };
            let told = told.split(" at run").next().expect("where it was");
            let (before, rest) = told.split_once(" to ").expect("two levels");
            let after = rest.split(" (").next().expect("a level");
            assert_ne!(before, after, "{sentence}");
            let rose = sentence.contains(": rose");
            assert_eq!(sentence.contains("(worse)"), !rose, "more is better: {sentence}");
            if let Some((_, share)) = rest.split_once(" (") {
                let number = share.split(' ').next().expect("a number").replace(',', "").replace('−', "-");
                let number: f64 = number.trim_end_matches("×)").parse().expect(share);
                assert!(number >= -100.0 && (number > 0.0) == rose, "{sentence}");
            }
        }
    }
    assert!(found >= 30, "{found} sentences");
}
