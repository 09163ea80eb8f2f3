//! Two runs compared: worded as the statistics allow, and refused where they would compare something else.

use crate::{
    figures,
    fixture::{self, Fs, Nature, Random},
    hostile,
    pages::check_html,
};
use fstone_analysis::{
    Analysis, Length,
    runs::{self, CompareOptions, RunComparison, Setting, Turn, Unmatched, Verdict},
};
use fstone_model::{
    Dataset, Figure, Outcome, Step,
    age::{Age, Profile},
    inventory::CHARGE_SETTING,
    metric::catalog,
    outcome::{CORRUPTION, Reason},
    result::Perturbation,
    study::{KernelSpec, StepAction},
};
use fstone_report::{Options, compare};
use fstone_stats::compare::Basis;
use insta::assert_snapshot;
use std::{fs, sync::Arc};

const COLUMNS: [(&str, &str, &str); 3] = [
    ("transactions per second", "load", "transactions per second"),
    ("CPU", "load", "CPU"),
    ("fsck time", "fsck", "time"),
];

/// A run of three filesystems in which each figure is multiplied by what `factor` says of its cell and column.
fn run(seed: u64, repeats: u32, spread: f64, factor: &dyn Fn(u32, usize) -> f64) -> Dataset {
    let mut plan = fixture::plan("small-file", "Small-file random create, write and read", repeats, &COLUMNS);
    let filesystems = [
        Fs("ext4", "ext4", "-I 256", ""),
        Fs("ext4 nodelalloc", "ext4", "-I 256", "nodelalloc"),
        Fs("xfs", "xfs", "", ""),
    ];
    fixture::cross(&mut plan, &filesystems, &[]);
    let mut dataset = fixture::dataset(plan);
    dataset.run.id = seed;
    let nature = |cell: &fstone_model::Cell| {
        let means = [9000.0, 42.0, 1.8];
        let figures = means.iter().enumerate().map(|(column, mean)| (mean * factor(cell.index, column), spread));
        Some(Nature { figures: figures.collect() })
    };
    fixture::complete(&mut dataset, repeats, &mut Random::new(seed), &nature, &|_, _, _| None);
    dataset
}

/// The same again with a newer kernel: 8 % fewer transactions on ext4, fsck 30 % faster on xfs, 2 % more CPU everywhere.
fn before_and_after() -> (Dataset, Dataset) {
    let before = run(3, 10, 0.008, &|_, _| 1.0);
    let mut after = run(7, 10, 0.008, &|cell, column| match (cell, column) {
        (0, 0) => 0.92,
        (2, 2) => 0.7,
        (_, 1) => 1.02,
        _ => 1.0,
    });
    after.run.inventory.kernel = "Linux 6.19.0 #1 SMP PREEMPT_DYNAMIC x86_64".into();
    after.run.inventory.tools[0].1 = "1.47.2".into();
    after.run.started_unix_ns += 86_400_000_000_000;
    (before, after)
}

fn told(before: &Dataset, after: &Dataset, make: impl Fn(&RunComparison<'_>) -> String) -> String {
    with(before, after, &CompareOptions::default(), |comparison| make(comparison))
}

fn with<T>(before: &Dataset, after: &Dataset, options: &CompareOptions, look: impl Fn(&RunComparison<'_>) -> T) -> T {
    let (first, second) = (Analysis::of(before), Analysis::of(after));
    look(&RunComparison::of((&first, "run 3"), (&second, "run 7"), options))
}

#[test]
fn known_differences_are_told_and_nothing_else() {
    let (before, after) = before_and_after();
    assert_snapshot!("terminal", told(&before, &after, |comparison| compare::terminal(comparison, 80, false)));
    assert_snapshot!("markdown", told(&before, &after, compare::markdown));
    assert_snapshot!("junit", told(&before, &after, compare::junit));
    let json: serde_json::Value =
        serde_json::from_str(&told(&before, &after, compare::json)).expect("the comparison is JSON");
    let verdicts: Vec<&str> =
        json["figures"].as_array().expect("figures").iter().filter_map(|figure| figure["verdict"].as_str()).collect();
    let expected = [
        ["regression", "not-found", "not-found"],
        ["slight", "slight", "slight"],
        ["not-found", "not-found", "improvement"],
    ];
    assert_eq!(verdicts, expected.concat());
    assert_eq!(json["regression"], true);
    with(&before, &after, &CompareOptions::default(), |comparison| {
        let (_, figure) = comparison.figures().next().expect("the first figure");
        let shift = figure.pair.and_then(|pair| pair.relative).expect("positive figures");
        assert!(shift.interval.contains(-0.08), "{shift:?}");
    });
}

#[test]
fn the_same_thing_twice_is_no_difference() {
    let (before, after) = (run(3, 10, 0.03, &|_, _| 1.0), run(8, 10, 0.03, &|_, _| 1.0));
    with(&before, &after, &CompareOptions { threshold: 0.0, ..CompareOptions::default() }, |comparison| {
        assert_eq!(comparison.count(Verdict::NotFound), 9, "{:?}", comparison.sentences());
        assert!(!comparison.has_regression());
        let words = comparison.sentences().join(" ");
        assert!(words.contains("no difference found in 9 of 9 figures"), "{words}");
        assert!(!words.contains("Worse"), "{words}");
    });
}

#[test]
fn three_trials_can_show_nothing_and_that_is_said() {
    let (before, after) = (run(3, 3, 0.001, &|_, _| 1.0), run(8, 3, 0.001, &|_, _| 0.5));
    with(&before, &after, &CompareOptions::default(), |comparison| {
        assert_eq!(comparison.count(Verdict::TooFew), 9);
        assert!(!comparison.has_regression());
        assert_eq!(comparison.trials_needed(), Some(6), "2 / C(12, 6) survives a correction for 9");
        assert_snapshot!("too_few", comparison.sentences().join("\n"));
    });
    // Enough by themselves, too few for nine figures at once: with one column they tell.
    let (before, after) = (run(3, 5, 0.001, &|_, _| 1.0), run(8, 5, 0.001, &|_, _| 0.5));
    let one = CompareOptions { columns: vec!["CPU".into()], ..CompareOptions::default() };
    assert_eq!(with(&before, &after, &one, |comparison| comparison.count(Verdict::Improvement)), 3);
}

#[test]
fn a_comparison_of_nothing_decides_nothing() {
    let (before, mut after) = (run(3, 6, 0.01, &|_, _| 1.0), run(8, 6, 0.01, &|_, _| 1.0));
    for cell in &mut after.run.plan.cells {
        cell.label = format!("other {}", cell.label);
    }
    with(&before, &after, &CompareOptions::default(), |comparison| {
        assert_eq!(comparison.compared(), 0);
        assert!(comparison.is_undecided() && !comparison.has_regression());
        let junit = compare::junit(comparison);
        assert!(junit.contains("<error type=\"not compared\" message=\"there is no figure that both runs have\"/>"));
        assert!(compare::markdown(comparison).contains(": undecided"));
    });
}

#[test]
fn a_column_that_the_other_run_lacks_is_told() {
    let (before, mut after) = (run(3, 6, 0.01, &|_, _| 1.0), run(8, 6, 0.01, &|_, _| 1.0));
    after.run.plan.columns.retain(|column| column.header != "fsck time");
    with(&before, &after, &CompareOptions::default(), |comparison| {
        let told = Unmatched { is_column: true, name: "fsck time".into(), in_baseline: true };
        assert_eq!(comparison.unmatched, [told]);
        assert!(compare::terminal(comparison, 80, false).contains("column fsck time is in run 3 only"));
        assert!(comparison.is_undecided(), "nothing is known of it");
        assert_eq!(comparison.sentences()[0], "Missing in run 7: column fsck time.");
        let json: serde_json::Value = serde_json::from_str(&compare::json(comparison)).expect("JSON");
        assert_eq!(json["columns_only_in_baseline"][0], "fsck time");
    });
    let wanted = CompareOptions { columns: vec!["fsck time".into()], ..CompareOptions::default() };
    with(&before, &after, &wanted, |comparison| {
        assert!(comparison.is_undecided(), "all that was asked for is missing");
    });
    let others = CompareOptions { columns: vec!["CPU".into()], ..CompareOptions::default() };
    with(&before, &after, &others, |comparison| assert_eq!(comparison.unmatched, [], "it was not asked for"));
    let strict = CompareOptions { required_power: Some(0.5), ..CompareOptions::default() };
    with(&before, &after, &strict, |comparison| {
        assert!(comparison.is_undecided(), "nothing is known of the column");
        let words = comparison.sentences().join(" ");
        assert!(words.contains("1 row or column of run 3 has no counterpart"), "{words}");
    });
}

#[test]
fn a_required_power_is_reached_or_the_comparison_is_undecided() {
    let strict = |share| CompareOptions { required_power: Some(share), ..CompareOptions::default() };
    let same = |repeats, spread| (run(3, repeats, spread, &|_, _| 1.0), run(8, repeats, spread, &|_, _| 1.0));
    let (before, after) = same(3, 0.001);
    with(&before, &after, &strict(0.5), |comparison| {
        assert!(comparison.is_undecided() && comparison.could_miss(0.5).len() == 9, "three trials show nothing");
    });
    with(&before, &after, &CompareOptions::default(), |comparison| {
        assert!(comparison.is_undecided(), "however large a difference is, and whatever was required");
    });
    let (before, after) = same(10, 0.1);
    with(&before, &after, &CompareOptions::default(), |comparison| {
        assert!(comparison.is_undecided(), "a slowdown of 5 % would be missed more often than not");
        assert!(compare::junit(comparison).contains("<error type=\"power\"") && !comparison.blind().is_empty());
        let words = comparison.sentences().join(" ");
        assert!(
            words.contains("Too noisy to say in 9 figures: a difference of ") && words.contains("could be missed"),
            "{words}"
        );
    });
    let allowed = CompareOptions { allow_blind: true, ..CompareOptions::default() };
    with(&before, &after, &allowed, |comparison| assert!(!comparison.is_undecided(), "it was allowed"));
    let (before, after) = same(10, 0.01);
    with(&before, &after, &CompareOptions::default(), |comparison| {
        assert!(!comparison.is_undecided() && comparison.blind().is_empty(), "{:?}", comparison.sentences());
    });
    let (before, after) = same(10, 0.01);
    with(&before, &after, &strict(0.05), |comparison| {
        assert!(!comparison.is_undecided(), "{:?}", comparison.sentences());
        for (_, figure) in comparison.figures() {
            let detectable = figure.pair.and_then(|pair| pair.detectable).expect("ten trials can show something");
            assert!((0.01..0.05).contains(&detectable), "{detectable} of a scatter of 1 %");
        }
    });
    let (before, after) = same(10, 0.1);
    with(&before, &after, &strict(0.05), |comparison| {
        assert!(comparison.is_undecided());
        assert_snapshot!("short_of_power", comparison.sentences().join("\n"));
        assert!(compare::junit(comparison).contains("<error type=\"power\""));
    });
    // What was found needs no power.
    let (before, after) = (run(3, 10, 0.02, &|_, _| 1.0), run(8, 10, 0.02, &|_, _| 0.5));
    with(&before, &after, &strict(0.001), |comparison| assert!(!comparison.is_undecided()));
}

#[test]
fn what_is_said_to_be_detectable_is_found() {
    let one = CompareOptions { columns: vec!["CPU".into()], threshold: 0.0, ..CompareOptions::default() };
    let (mut found, mut all, mut size) = (0, 0, 0.0);
    for seed in 0..40 {
        let (before, after) = (run(2 * seed, 8, 0.05, &|_, _| 1.0), run(2 * seed + 1, 8, 0.05, &|_, _| 1.0));
        let told = |comparison: &RunComparison<'_>| -> f64 {
            comparison.figures().filter_map(|(_, figure)| figure.pair?.detectable).sum::<f64>() / 3.0
        };
        size += with(&before, &after, &one, told) / 40.0;
    }
    for seed in 100..140 {
        let (before, after) = (run(2 * seed, 8, 0.05, &|_, _| 1.0), run(2 * seed + 1, 8, 0.05, &|_, _| 1.0 + size));
        // Each figure by itself would have been: the correction for the two others is in the size already.
        let level = 0.05 / 3.0;
        let tell = |comparison: &RunComparison<'_>| {
            comparison.figures().filter(|(_, figure)| figure.pair.is_some_and(|pair| pair.p <= level)).count()
        };
        found += with(&before, &after, &one, tell);
        all += 3;
    }
    let share = f64::from(found as u32) / f64::from(all);
    assert!((0.7..0.9).contains(&share), "a difference of {size} was found in {share}");
}

#[test]
fn the_threshold_and_the_direction_decide() {
    let (before, after) = before_and_after();
    let count = |threshold, verdict| {
        let options = CompareOptions { threshold, ..CompareOptions::default() };
        with(&before, &after, &options, |comparison| comparison.count(verdict))
    };
    assert_eq!(count(0.05, Verdict::Regression), 1);
    assert_eq!(count(0.2, Verdict::Regression), 0);
    assert_eq!(count(0.0, Verdict::Regression), 4, "more CPU is worse, too");
    assert_eq!(count(0.2, Verdict::Improvement), 1, "less time is better");
}

#[test]
fn a_row_that_does_not_complete_any_more_is_a_regression() {
    let (before, mut after) = (run(3, 6, 0.01, &|_, _| 1.0), run(8, 6, 0.01, &|_, _| 1.0));
    after.trials.retain(|trial| trial.id.cell != 1);
    let refused = Outcome::Refused(Reason::new("mount", "ext4: Unknown parameter 'nodelalloc'"));
    fixture::unsuccessful(&mut after, 1, 0, 4, refused);
    let outcome = Outcome::Failed(Reason::new("fsck", "3 inodes are damaged"));
    after.trials.iter_mut().find(|trial| trial.id.cell == 2).expect("there is one").outcome = outcome;
    with(&before, &after, &CompareOptions::default(), |comparison| {
        assert!(comparison.has_regression());
        let turns: Vec<_> = comparison.outcomes.iter().map(|change| (change.label.as_str(), change.turn)).collect();
        assert_eq!(turns, [("ext4 nodelalloc", Turn::Worse), ("xfs", Turn::Worse)]);
        assert_snapshot!("outcomes", comparison.sentences().join("\n"));
    });
    let ending = |dataset: &Dataset, trials: usize, outcome: &Outcome| {
        let mut dataset = dataset.clone();
        let ended = dataset.trials.iter_mut().filter(|trial| trial.id.cell == 2).take(trials);
        ended.for_each(|trial| trial.outcome = outcome.clone());
        dataset
    };
    let (failed, hung) = (Outcome::Failed(Reason::new("load", "EIO")), Outcome::Hung(Reason::new("load", "EIO")));
    let same = run(8, 6, 0.01, &|_, _| 1.0);
    for (outcome, worse) in [(&failed, false), (&hung, true)] {
        with(&ending(&before, 1, &failed), &ending(&same, 3, outcome), &CompareOptions::default(), |comparison| {
            assert_eq!(comparison.has_regression(), worse, "{:?}", comparison.sentences());
            assert!(
                comparison.outcome_lines()[0].starts_with("xfs: 3 of 6 trials: "),
                "{:?}",
                comparison.outcome_lines()
            );
        });
    }
    with(&after, &before, &CompareOptions::default(), |comparison| {
        assert!(!comparison.has_regression());
        assert!(comparison.outcomes.iter().all(|change| change.turn == Turn::Better));
    });
}

#[test]
fn another_number_of_trials_is_no_other_outcome() {
    for (before, after) in [(4, 5), (10, 8)] {
        let (before, after) = (run(3, before, 0.008, &|_, _| 1.0), run(8, after, 0.008, &|_, _| 1.0));
        with(&before, &after, &CompareOptions::default(), |comparison| {
            assert_eq!(comparison.outcomes, []);
            assert!(!comparison.is_missing() && !comparison.sentences().join(" ").contains("Missing"));
        });
    }
    let failing = |seed: u64, trials: usize| {
        let mut dataset = run(seed, 6, 0.008, &|_, _| 1.0);
        for trial in dataset.trials.iter_mut().filter(|trial| trial.id.cell == 2).take(trials) {
            trial.outcome = Outcome::Failed(Reason::new("load", "No space"));
        }
        dataset
    };
    for (before, after) in [(1, 2), (2, 1)] {
        with(&failing(3, before), &failing(8, after), &CompareOptions::default(), |comparison| {
            assert!(!comparison.is_missing() && !comparison.has_regression(), "{:?}", comparison.sentences());
            assert_eq!(comparison.outcomes[0].turn, Turn::Unknown);
        });
    }
}

#[test]
fn what_is_lost_or_damaged_as_it_was_not_before_is_a_regression() {
    let (before, after) = (run(3, 10, 0.008, &|_, _| 1.0), run(8, 10, 0.008, &|_, _| 1.0));
    let losing = |dataset: &Dataset, lost: f64| {
        let mut dataset = dataset.clone();
        let trial = dataset.trials.iter_mut().find(|trial| trial.id.cell == 2).expect("there is one");
        trial.steps[0].figures.push(catalog::PROMISES_LOST.figure(lost));
        dataset
    };
    let (once, often) = (losing(&after, 1.0), losing(&before, 165.0));
    with(&before, &once, &CompareOptions::default(), |comparison| {
        assert!(comparison.has_regression());
        assert_snapshot!("harm", comparison.sentences().join("\n"));
        assert!(compare::junit(comparison).contains("<failure type=\"outcome\" message=\"lost 1 promise "));
    });
    with(&often, &after, &CompareOptions::default(), |comparison| {
        assert!(!comparison.has_regression() && comparison.is_undecided(), "{:?}", comparison.sentences());
        assert_eq!(comparison.sentences()[0], "Missing in run 7: xfs (losses were not looked for in 10 trials).");
    });
    with(&often, &once, &CompareOptions::default(), |comparison| {
        assert!(!comparison.has_regression(), "it did before");
        assert!(comparison.sentences().join(" ").contains("Lost or damaged before, too: xfs (lost 1 promise "));
    });
    let few = losing(&before, 3.0);
    with(&few, &losing(&after, 165.0), &CompareOptions::default(), |comparison| {
        let words = comparison.sentences().join(" ");
        assert!(comparison.has_regression() && words.starts_with("Lost or damaged: xfs (lost 165 promises"), "{words}");
    });
    with(&often, &losing(&after, 190.0), &CompareOptions::default(), |comparison| {
        assert!(!comparison.has_regression(), "a power cut may lose as much");
    });
    // As much in a trial, in more trials.
    let damaged = |dataset: &Dataset, trials: usize| {
        let mut dataset = dataset.clone();
        for trial in dataset.trials.iter_mut().filter(|trial| trial.id.cell == 2).take(trials) {
            trial.outcome = Outcome::Failed(Reason::new("load", format!("read: verify data/file3: {CORRUPTION}")));
        }
        dataset
    };
    for (now, worse) in [(3, false), (9, true)] {
        with(&damaged(&before, 1), &damaged(&after, now), &CompareOptions::default(), |comparison| {
            assert_eq!(comparison.has_regression(), worse, "{:?}", comparison.sentences());
        });
    }
    // Other words than those of fstone's own check say nothing of the data.
    let mut refused = after.clone();
    let words = "git clone exited with 128: server certificate verify failed";
    refused.trials.iter_mut().find(|trial| trial.id.cell == 2).expect("there is one").outcome =
        Outcome::Failed(Reason::new("load", words));
    assert!(Analysis::of(&refused).rows.iter().all(|row| row.harm.is_none()));
    // What the baseline lost has to be looked for again.
    let looked_at = |dataset: &Dataset| {
        let mut dataset = dataset.clone();
        for trial in dataset.trials.iter_mut().filter(|trial| trial.id.cell == 2) {
            trial.steps[0].figures.push(catalog::PROMISES_LOST.figure(0.0));
        }
        dataset
    };
    with(&often, &looked_at(&after), &CompareOptions::default(), |comparison| {
        assert!(!comparison.has_regression() && !comparison.is_undecided(), "{:?}", comparison.sentences());
        assert!(comparison.sentences().join(" ").contains("Nothing lost or damaged any more: xfs (nothing lost"));
    });
    // A row that is new has no excuse.
    let mut without = before.clone();
    without.run.plan.cells.pop();
    without.trials.retain(|trial| trial.id.cell != 2);
    with(&without, &once, &CompareOptions::default(), |comparison| {
        assert!(comparison.has_regression());
        let words = "Lost or damaged: xfs (lost 1 promise after a power cut; before: no such row).";
        assert_eq!(comparison.sentences()[0], words);
    });
    let mut unclean = once.clone();
    unclean.trials.last_mut().expect("trials").steps[0].figures.push(catalog::STATES_CLEAN.figure(99.9));
    with(&once, &unclean, &CompareOptions::default(), |comparison| {
        assert!(comparison.has_regression(), "another kind");
    });
}

#[test]
fn what_is_missing_now_is_told_first_and_passes_no_gate() {
    let (before, after) = (run(3, 10, 0.008, &|_, _| 1.0), run(8, 10, 0.008, &|_, _| 1.0));
    let mut not_run = after.clone();
    not_run.trials.retain(|trial| trial.id.cell != 1);
    let mut skipped = not_run.clone();
    fixture::unsuccessful(&mut skipped, 1, 0, 4, Outcome::Skipped(Reason::new("mkfs", "mkfs.ext4 is not installed")));
    let mut no_figure = after.clone();
    for trial in no_figure.trials.iter_mut().filter(|trial| trial.id.cell == 1) {
        trial.steps.retain(|step| step.step != "fsck");
    }
    let lacking = [
        (&not_run, "Missing in run 7: ext4 nodelalloc (no trial was run)."),
        (
            &skipped,
            "Missing in run 7: ext4 nodelalloc (no trial completed: skipped at mkfs: mkfs.ext4 is not installed).",
        ),
        (&no_figure, "Missing in run 7: ext4 nodelalloc, fsck time."),
    ];
    for (other, told) in lacking {
        with(&before, other, &CompareOptions::default(), |comparison| {
            assert_eq!(comparison.sentences()[0], told);
            assert!(comparison.is_undecided() && !comparison.has_regression());
            assert!(compare::junit(comparison).contains("<error type=\"missing\""));
        });
        with(other, &after, &CompareOptions::default(), |comparison| {
            assert!(!comparison.is_undecided(), "the baseline lacks it: {:?}", comparison.sentences());
        });
    }
    with(&not_run, &skipped, &CompareOptions::default(), |comparison| assert!(!comparison.is_undecided()));
}

/// A run in which this metric of the first row is what is given, trial by trial.
fn with_figures(mut dataset: Dataset, metric: &str, values: &[f64]) -> Dataset {
    let trials = dataset.trials.iter_mut().filter(|trial| trial.id.cell == 0);
    for (trial, value) in trials.zip(values) {
        let mut figures = trial.steps.iter_mut().flat_map(|step| &mut step.figures);
        figures.find(|figure| figure.metric == metric).expect("a figure").value = *value;
    }
    dataset
}

#[test]
fn what_may_be_worse_than_the_threshold_passes_no_gate() {
    let (before, after) = (run(3, 10, 0.008, &|_, _| 1.0), run(8, 10, 0.008, &|_, _| 1.0));
    let around = |value: f64| (0..10).map(|trial| value + 0.01 * f64::from(trial)).collect::<Vec<_>>();
    let mut half = around(99.0);
    half[6..].fill(50.0);
    let compared_in = |metric: &str, a: &[f64], b: &[f64], look: &dyn Fn(&RunComparison<'_>)| {
        let (before, after) = (with_figures(before.clone(), metric, a), with_figures(after.clone(), metric, b));
        with(&before, &after, &CompareOptions::default(), look);
    };
    let compared =
        |a: &[f64], b: &[f64], look: &dyn Fn(&RunComparison<'_>)| compared_in("transactions per second", a, b, look);
    compared(&around(100.0), &half, &|comparison| {
        assert_eq!(comparison.count(Verdict::Unclear), 1, "{:?}", comparison.sentences());
        assert!(comparison.is_undecided() && !comparison.has_regression());
        let words = comparison.sentences().join(" ");
        assert!(words.contains("Worse, and perhaps by more than 5 %: ext4, transactions per second: "), "{words}");
    });
    compared(&around(100.0), &around(99.0), &|comparison| {
        assert_eq!(comparison.count(Verdict::Slight), 1);
        assert!(!comparison.is_undecided());
    });
    let mut few = [0.0; 10];
    few[..4].copy_from_slice(&[1.0, 9.0, 2.0, 5.0]);
    compared_in("CPU", &[0.0; 10], &few, &|comparison| {
        assert!(comparison.is_undecided() && !comparison.has_regression());
        let words = comparison.sentences().join(" ");
        assert!(
            words.contains("Too noisy to say in ext4, CPU, 0 in most trials: it reached 0 % before and "),
            "{words}"
        );
        assert!(words.contains("No regression beyond 5 % in the other 8 figures"), "{words}");
    });
    // What is 0 in most trials, and not now and then, was so before.
    let as_before = few.map(|value| 0.9 * value);
    compared_in("CPU", &few, &as_before, &|comparison| {
        assert!(!comparison.is_undecided(), "{:?}", comparison.sentences());
    });
    compared(&[0.0; 10], &few, &|comparison| assert!(!comparison.is_undecided(), "more is better"));
    compared(&few, &[0.0; 10], &|comparison| assert!(comparison.is_undecided(), "it never gets there now"));
}

/// Failed trials, `until` and budgets leave rows with fewer trials than others.
#[test]
fn a_row_of_fewer_trials_passes_no_gate_unless_they_could_show_a_loss() {
    let of = |seed, factor: &dyn Fn(u32, usize) -> f64| {
        let mut dataset = run(seed, 10, 0.005, factor);
        dataset.trials.retain(|trial| trial.id.cell > 0 || trial.id.repetition < 5);
        dataset
    };
    let before = of(3, &|_, _| 1.0);
    let lost = of(8, &|cell, _| if cell == 0 { 0.01 } else { 1.0 });
    with(&before, &lost, &CompareOptions::default(), |comparison| {
        assert!(comparison.is_undecided(), "{:?}", comparison.sentences());
        assert_eq!(comparison.count(Verdict::TooFew), 3, "2 / C(10, 5) is more than 5 % / 9");
        let words = comparison.sentences().join(" ");
        assert!(
            words.starts_with("Too noisy to say in 3 figures: any difference could be missed in ext4, "),
            "{words}"
        );
        assert!(compare::junit(comparison).contains("<error type=\"power\""));
    });
    // The correction asks less of the last three when the other six differ.
    let faster = |cell: u32, column: usize| match (cell, column) {
        (0, _) => 1.0,
        (_, 0) => 1.5,
        _ => 0.7,
    };
    with(&before, &of(8, &faster), &CompareOptions::default(), |comparison| {
        assert_eq!(comparison.count(Verdict::NotFound), 3, "{:?}", comparison.sentences());
        assert!(!comparison.is_undecided(), "{:?}", comparison.sentences());
    });
    with(
        &before,
        &of(8, &|cell, column| if cell == 0 { 0.01 } else { faster(cell, column) }),
        &CompareOptions::default(),
        |comparison| {
            assert_eq!(comparison.count(Verdict::TooFew), 0);
            assert!(comparison.has_regression(), "{:?}", comparison.sentences());
        },
    );
    // 0 in most trials, and compared by means.
    let of = |seed, ones: usize| {
        let values: Vec<f64> = (0..25).map(|trial| f64::from(u8::from(trial < ones))).collect();
        with_figures(run(seed, 25, 0.005, &|_, _| 1.0), "CPU", &values)
    };
    with(&of(3, 5), &of(8, 12), &CompareOptions::default(), |comparison| {
        assert!(!comparison.has_regression() && comparison.is_undecided(), "{:?}", comparison.sentences());
        let words = comparison.sentences().join(" ");
        assert!(words.contains("Too noisy to say in ext4, CPU, 0 in most trials"), "{words}");
    });
}

#[test]
fn what_would_compare_something_else_is_found() {
    let (before, after) = before_and_after();
    assert_eq!(runs::mismatches(&before, &after), [], "a kernel and a tool may differ");
    let changes = runs::changes(&before, &after);
    assert_eq!(changes.iter().map(|change| change.what.as_str()).collect::<Vec<_>>(), ["kernel", "mke2fs"]);
    let found = |change: &dyn Fn(&mut Dataset)| -> Vec<Setting> {
        let mut changed = after.clone();
        change(&mut changed);
        runs::mismatches(&before, &changed).into_iter().map(|mismatch| mismatch.setting).collect()
    };
    assert_eq!(found(&|d| d.run.plan.study = "large-file".into()), [Setting::Study]);
    assert_eq!(found(&|d| drop(d.run.plan.cells[2].steps.pop())), [Setting::Load]);
    assert_eq!(found(&|d| d.run.plan.cells[2].steps[0].background = true), [Setting::Load]);
    assert_eq!(found(&|d| d.run.plan.cells[0].kernel = KernelSpec::Uml("6.1".into())), [Setting::Executor]);
    assert_eq!(found(&|d| d.run.inventory.device.as_mut().expect("there").name = "sdb".into()), [Setting::Device]);
    assert_eq!(found(&|d| d.run.inventory.host = "bench2".into()), [Setting::Machine]);
    assert_eq!(found(&|d| d.run.inventory.memory_bytes += 1 << 20), [], "a kernel takes what it takes");
    assert_eq!(found(&|d| d.run.inventory.memory_bytes *= 2), [Setting::Machine]);
}

pub(crate) fn in_virtual_time(mut dataset: Dataset, charge: &str) -> Dataset {
    for cell in &mut dataset.run.plan.cells {
        cell.kernel = KernelSpec::Exact("6.1.192".into());
    }
    dataset.run.inventory.settings.push((CHARGE_SETTING.into(), charge.into()));
    dataset
}

#[test]
fn figures_of_two_clocks_never_meet() {
    let (before, after) = before_and_after();
    let [first, second] = [before.clone(), after.clone()].map(|run| in_virtual_time(run, "2 us"));
    let found = |before: &Dataset, after: &Dataset| -> Vec<Setting> {
        runs::mismatches(before, after).into_iter().map(|mismatch| mismatch.setting).collect()
    };
    assert!(found(&before, &second).contains(&Setting::Clock));
    assert_eq!(found(&first, &in_virtual_time(after.clone(), "5 us")), [Setting::Clock]);
    // No row in common is no excuse.
    let mut renamed = second.clone();
    for cell in &mut renamed.run.plan.cells {
        cell.label.push_str(" again");
    }
    assert!(found(&before, &renamed).contains(&Setting::Clock));
    // Whose machine simulated it is in no figure; another kernel is what a comparison may be about.
    let mut elsewhere = second;
    elsewhere.run.inventory.host = "laptop".into();
    elsewhere.run.inventory.device.as_mut().expect("there").name = "sdb".into();
    elsewhere.run.plan.cells[0].kernel = KernelSpec::Exact("6.12.117".into());
    assert_eq!(found(&first, &elsewhere), []);
}

#[test]
fn all_that_differs_in_an_age_is_said() {
    let (mut before, mut after) = before_and_after();
    let profile = Profile { name: "agrawal".into(), ..Profile::default() };
    let age = Age { profile, utilization: 0.57, overwrites: 10.0, compressible: 0.0, seed: None };
    let other = Age { utilization: 0.8, compressible: 0.3, seed: Some(7), ..age.clone() };
    for (run, age) in [(&mut before, age), (&mut after, other)] {
        for cell in &mut run.run.plan.cells {
            let step = Step {
                name: "age".into(),
                action: StepAction::Age(Arc::new(age.clone().into())),
                ..cell.steps[0].clone()
            };
            cell.steps.insert(0, step);
        }
    }
    let told: Vec<String> = runs::mismatches(&before, &after).iter().map(ToString::to_string).collect();
    let [before, after] =
        ["57 % in use, 0 % compressible, a seed for each repetition", "80 % in use, 30 % compressible, seed 7"];
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(&format!("step age: {before}, then {after};")), "{told:?}");
}

/// A drive's name says little; its parameters, and what a guest's memory spares it, are in every figure.
#[test]
fn models_and_memories_that_differ_are_not_compared() {
    let (before, after) = before_and_after();
    let with = |run: &Dataset, model: &str, memory: &str| {
        let mut run = in_virtual_time(run.clone(), "2 us");
        let recorded = [("modelled drive mine", model), ("guest memory", memory)];
        let recorded = recorded.into_iter().filter(|(_, value)| !value.is_empty());
        run.run.inventory.settings.extend(recorded.map(|(name, value)| (name.to_owned(), value.to_owned())));
        run
    };
    let first = with(&before, "mine: rpm=7200 seek=8.5 ms write-cache=16 MiB", "512 MiB");
    let same = with(&after, "mine: rpm=7200 seek=8.5 ms write-cache=16 MiB", "512 MiB");
    assert_eq!(runs::mismatches(&first, &same), []);
    let slower = with(&after, "mine: rpm=7200 seek=9 ms write-cache=16 MiB", "512 MiB");
    let told: Vec<String> = runs::mismatches(&first, &slower).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "different device: mine with seek=8.5 ms, then mine with seek=9 ms; the difference would be the devices' as much as the filesystems'"
        ]
    );
    let larger = with(&after, "mine: rpm=7200 seek=8.5 ms write-cache=16 MiB", "1 GiB");
    let found: Vec<Setting> = runs::mismatches(&first, &larger).iter().map(|mismatch| mismatch.setting).collect();
    assert_eq!(found, [Setting::Memory]);
    // An older store says neither.
    let older = with(&after, "", "");
    assert_eq!(runs::mismatches(&first, &older), []);
    let changes: Vec<String> = runs::changes(&first, &older)
        .into_iter()
        .filter(|change| change.other == "not recorded")
        .map(|change| change.what)
        .collect();
    assert_eq!(changes, ["modelled drive mine", "guest memory"]);
}

#[test]
fn in_virtual_time_one_seed_is_enough_and_several_are_paired() {
    let verdicts = |before: &Dataset, after: &Dataset| {
        with(before, after, &CompareOptions { threshold: 0.005, ..CompareOptions::default() }, |comparison| {
            comparison.figures().map(|(_, figure)| figure.verdict).collect::<Vec<_>>()
        })
    };
    let slower = |cell: u32, column: usize| if (cell, column) == (0, 0) { 0.99 } else { 1.0 };
    let [before, after] = [run(3, 1, 0.0, &|_, _| 1.0), run(3, 1, 0.0, &slower)];
    assert!(verdicts(&before, &after).iter().all(|verdict| *verdict == Verdict::TooFew), "in real time");
    let exact = [before, after].map(|run| in_virtual_time(run, "2 us"));
    let found = verdicts(&exact[0], &exact[1]);
    assert_eq!(found[0], Verdict::Unclear, "one seed does not show how far chance moves it");
    assert!(found[1..].iter().all(|verdict| *verdict == Verdict::NotFound), "{found:?}");
    assert_snapshot!("virtual", told(&exact[0], &exact[1], |comparison| compare::terminal(comparison, 80, false)));

    // Seeds scatter twenty times as far as the kernels differ.
    let [before, after] =
        [run(3, 3, 0.2, &|_, _| 1.0), run(3, 3, 0.2, &slower)].map(|run| in_virtual_time(run, "2 us"));
    assert_eq!(verdicts(&before, &after)[0], Verdict::Regression);
    // The report of one seed speaks of exact figures only: no test, and no rule that is broken for want of one.
    let analysis = Analysis::of(&exact[0]);
    let told = analysis.sentences().join(" ");
    assert!(told.contains("exact for this seed") && !told.contains("cannot show"), "{told}");
    assert!(
        !analysis.warnings.iter().any(|warning| warning.text.contains("no test can tell")),
        "{:?}",
        analysis.warnings
    );
    assert!(analysis.rules().iter().all(|rule| !rule.is_broken()), "{}", analysis.rules_in_words());
    // Without a seed in common they are two samples like any others.
    let mut others = after;
    for trial in &mut others.trials {
        trial.seed += 1000;
    }
    assert_eq!(verdicts(&before, &others)[0], Verdict::TooFew);
}

/// The blocks after the first become perturbed guests of its seed.
pub(crate) fn in_guests(dataset: Dataset) -> Dataset {
    let mut dataset = in_virtual_time(dataset, "2 us");
    let seed = dataset.trials[0].seed;
    for trial in dataset.trials.iter_mut().filter(|trial| trial.id.repetition > 0) {
        trial.id = Perturbation { number: trial.id.repetition - 1 }.trial(trial.id.cell);
    }
    dataset.trials.iter_mut().for_each(|trial| trial.seed = seed);
    dataset
}

#[test]
fn in_virtual_time_a_difference_is_what_exceeds_the_band() {
    let judged = |before: &Dataset, after: &Dataset| {
        with(before, after, &CompareOptions { threshold: 0.01, ..CompareOptions::default() }, |comparison| {
            let verdicts: Vec<Verdict> = comparison.figures().map(|(_, figure)| figure.verdict).collect();
            (verdicts, comparison.sentences().join(" "), comparison.is_undecided())
        })
    };
    let slower = |cell: u32, column: usize| if (cell, column) == (0, 0) { 0.98 } else { 1.0 };
    // One trial each, and nothing is known of what moves them: said once, not "any difference is real".
    let one = [run(3, 1, 0.0, &|_, _| 1.0), run(3, 1, 0.0, &slower)].map(|run| in_virtual_time(run, "2 us"));
    let (verdicts, told, undecided) = judged(&one[0], &one[1]);
    assert!(verdicts[0] == Verdict::Unclear && undecided, "{verdicts:?}");
    assert!(
        told.contains("1 difference for the worse that may be chance") && told.contains("Perhaps worse: "),
        "{told}"
    );
    assert!(told.contains("run both with --perturbed 2") && told.contains("(one seed)"), "{told}");
    // A drive that is 2 % slower, where guests move nothing.
    let still = [run(3, 3, 0.0, &|_, _| 1.0), run(3, 3, 0.0, &slower)].map(in_guests);
    let (verdicts, told, undecided) = judged(&still[0], &still[1]);
    assert_eq!(verdicts[0], Verdict::Regression, "{told}");
    assert!(verdicts[1..].iter().all(|verdict| *verdict == Verdict::NotFound) && !undecided, "{verdicts:?}");
    assert!(told.contains("(exact, over 3 guests)"), "{told}");
    // Chaotic loads: 200 pairs of equal runs, in which guests differ by a tenth, and no regression.
    let (mut blind, mut wrong) = (0, 0);
    for seed in 0..200 {
        let equal = [2 * seed + 100, 2 * seed + 101].map(|seed| in_guests(run(seed, 3, 0.1, &|_, _| 1.0)));
        let (verdicts, _, undecided) = judged(&equal[0], &equal[1]);
        wrong += usize::from(verdicts.contains(&Verdict::Regression));
        blind += usize::from(undecided);
    }
    assert!(wrong <= 10, "{wrong} of 200, where 5 % may be called different, better or worse");
    assert_eq!(blind, 200, "none could have shown 1 %");
}

#[test]
fn in_virtual_time_what_may_be_chance_is_never_called_real() {
    let tps = "transactions per second";
    let made = |repeats: u32, metric: &str, values: &[f64]| {
        with_figures(in_virtual_time(run(3, repeats, 0.0, &|_, _| 1.0), "2 us"), metric, values)
    };
    let one = |columns: &[&str], power: Option<f64>| CompareOptions {
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        required_power: power,
        ..CompareOptions::default()
    };
    // One seed, and nothing shows how far chance moves it: worse within the threshold may be more, better may be none.
    let (before, better) = (made(1, "CPU", &[50.0]), made(1, "CPU", &[40.0]));
    let (before, both) = (with_figures(before, tps, &[100.0]), with_figures(better.clone(), tps, &[97.0]));
    with(&before, &both, &one(&[], None), |comparison| {
        let verdicts: Vec<Verdict> = comparison.figures().map(|(_, figure)| figure.verdict).collect();
        assert_eq!((verdicts[0], verdicts[3]), (Verdict::Unclear, Verdict::MayBeChance));
        let words = comparison.sentences().join(" ");
        assert!(comparison.is_undecided() && !words.contains("real") && !words.contains("improvement"), "{words}");
        assert!(
            words.contains("1 difference for the worse that may be chance, 1 other difference that may be"),
            "{words}"
        );
    });
    let better = with_figures(better, tps, &[100.0]);
    with(&before, &better, &one(&[], None), |comparison| {
        let words = comparison.sentences().join(" ");
        assert!(!comparison.is_undecided() && words.contains("1 difference that may be chance"), "{words}");
    });
    with(&before, &better, &one(&["CPU"], Some(0.01)), |comparison| {
        let words = comparison.sentences().join(" ");
        assert!(
            comparison.is_undecided() && words.contains("3 figures could miss it: ext4, CPU (one seed); "),
            "{words}"
        );
    });
    // The mean of five seeds may lie beyond the threshold.
    let (before, after) = (made(5, tps, &[100.0; 5]), made(5, tps, &[97.0, 96.0, 95.0, 94.5, 93.5]));
    with(&before, &after, &one(&[tps], None), |comparison| {
        let words = comparison.sentences().join(" ");
        assert_eq!(comparison.count(Verdict::Unclear), 1, "{words}");
        assert!(comparison.is_undecided() && words.contains("Worse, and perhaps by more than 5 %: ext4"), "{words}");
    });
    // A range over guests is theirs, whatever the test finds.
    let (before, after) = (made(2, tps, &[100.0, 101.0]), made(2, tps, &[80.0, 82.0]));
    with(&before, &after, &one(&[tps], None), |comparison| {
        let (column, figure) = comparison.figures().next().expect("a figure");
        assert_eq!(figure.verdict, Verdict::NotFound);
        assert_eq!(runs::change(column, &figure.pair.expect("compared")).1, "−20.00 to −18.81");
    });
}

#[test]
fn one_seed_in_perturbed_guests_is_a_table_with_bands() {
    let dataset = in_guests(run(3, 3, 0.05, &|cell, column| if (cell, column) == (2, 0) { 2.0 } else { 1.0 }));
    let analysis = Analysis::of(&dataset);
    let told = analysis.sentences().join(" ");
    assert!(told.contains("xfs is highest") && !told.contains("exact for this seed"), "{told}");
    let text = fstone_report::terminal(&dataset, &fstone_report::TerminalOptions::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("Mean of 3 guests of one seed") && text.contains("Perturbed guests of the same seed move"),
        "{text}"
    );
    // Two rows that nothing moves differ by any difference; two guests of them agree by chance, as two blocks do in real time.
    let two = in_guests(run(3, 2, 0.0, &|cell, _| if cell == 0 { 1.001 } else { 1.0 }));
    assert!(!Analysis::of(&two).comparisons[0].panels[0].as_ref().expect("compared").any_differ());
    let still = in_guests(run(3, 3, 0.0, &|cell, _| if cell == 0 { 1.001 } else { 1.0 }));
    let analysis = Analysis::of(&still);
    assert!(analysis.comparisons[0].panels[0].as_ref().expect("compared").any_differ());
    assert_eq!(analysis.rows[0].entries[0].band(), Some(0.0));
}

#[test]
fn a_row_of_two_contrasts_is_named_once() {
    let factors = [[1.0, 1.0, 1.2], [1.0, 1.0, 1.0], [2.0, 1.0, 1.8]];
    let mut dataset = run(3, 10, 0.01, &|cell, column| factors[cell as usize][column]);
    dataset.run.plan.baseline = Some(0);
    let told = Analysis::of(&dataset).sentences().join("\n");
    let of_fsck = told.lines().find(|line| line.starts_with("In fsck")).expect("it differs");
    assert_eq!(of_fsck.matches("xfs").count(), 1, "{of_fsck}");
    assert!(
        of_fsck.contains("higher than “ext4 nodelalloc” and 4") && of_fsck.ends_with("higher than ext4."),
        "{of_fsck}"
    );
}

#[test]
fn equal_seeds_whose_perturbed_guests_all_failed_are_not_exact() {
    let seeds = |factor: f64, failing: &[u32]| {
        let mut dataset =
            in_virtual_time(run(3, 5, 0.0, &|cell, _| if cell == 0 { factor } else { 1.0 + f64::from(cell) }), "2 us");
        for trial in &mut dataset.trials {
            let repetition = trial.id.repetition;
            trial.seed = [1, 2, 3, 1, 1][repetition as usize];
            if repetition > 2 {
                trial.id = Perturbation { number: repetition - 3 }.trial(trial.id.cell);
                if failing.contains(&trial.id.cell) {
                    trial.outcome =
                        fstone_model::Outcome::Failed(fstone_model::outcome::Reason::new("load", "EIO".to_owned()));
                    trial.steps.clear();
                }
            }
        }
        dataset
    };
    let (well, failed) = (seeds(1.0, &[]), seeds(1.0, &[0]));
    let panel = |dataset: &Dataset, differs: [bool; 3]| {
        let analysis = Analysis::of(dataset);
        let panel = analysis.comparisons[0].panels[0].as_ref().expect("compared");
        assert_eq!([(0, 1), (0, 2), (1, 2)].map(|(a, b)| panel.differ(a, b)), differs, "{:?}", panel.comparison.pairs);
        analysis.rows[0].entries[0].interval.is_some()
    };
    assert!(panel(&well, [true; 3]));
    assert!(!panel(&failed, [false, false, true]));
    assert!(!panel(&seeds(1.0, &[0, 1, 2]), [false; 3]));
    let judged = |before: &Dataset, after: &Dataset| {
        with(before, after, &CompareOptions::default(), |comparison| {
            (comparison.figures().next().expect("a figure").1.verdict, comparison.sentences().join(" "))
        })
    };
    assert_eq!(judged(&well, &seeds(0.9, &[])).0, Verdict::Regression);
    let (verdict, told) = judged(&failed, &seeds(0.9, &[0]));
    assert_eq!(verdict, Verdict::Unclear, "{told}");
    assert!(told.contains("3 seeds") && !told.contains("ext4, tps: exact"), "{told}");
}

/// Three equal seeds and two perturbed guests of the first, which lie apart by `moved`.
fn equal_seeds(moved: f64, failing: &[u32], without: &[u32]) -> Dataset {
    seeds_and_guests(run(3, 5, 0.0, &|cell, _| 1.0 + f64::from(cell)), moved, failing, without)
}

/// Of five repeats three seeds and two perturbed guests of the first.
fn seeds_and_guests(dataset: Dataset, moved: f64, failing: &[u32], without: &[u32]) -> Dataset {
    let mut dataset = in_virtual_time(dataset, "2 us");
    for trial in &mut dataset.trials {
        let repetition = trial.id.repetition;
        trial.seed = [1, 2, 3, 1, 1][repetition as usize];
        let mut fails = without.contains(&trial.id.cell);
        if repetition > 2 {
            trial.id = Perturbation { number: repetition - 3 }.trial(trial.id.cell);
            fails |= failing.contains(&trial.id.cell);
            let factor = if repetition == 3 { 1.0 + moved } else { 1.0 - moved };
            for measured in trial.steps.iter_mut().flat_map(|step| &mut step.figures) {
                measured.value *= factor;
            }
        }
        if fails {
            let reason = fstone_model::outcome::Reason::new("load", "EIO".to_owned());
            trial.outcome = fstone_model::Outcome::Failed(reason);
            trial.steps.clear();
        }
    }
    dataset
}

fn everything(dataset: &Dataset) -> String {
    let text = fstone_report::terminal(dataset, &fstone_report::TerminalOptions::default());
    format!("{} {}", Analysis::of(dataset).sentences().join(" "), text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn a_single_row_whose_perturbed_guests_all_failed_has_no_interval() {
    for (failing, is_exact) in [(&[][..], true), (&[0, 1, 2], false)] {
        let dataset = equal_seeds(0.0, failing, &[1, 2]);
        let entry = &Analysis::of(&dataset).rows[0].entries[0];
        assert_eq!((entry.interval.is_some(), entry.values.len()), (is_exact, 3));
        let told = everything(&dataset);
        assert_eq!(told.contains("since perturbed guests failed"), !is_exact, "{told}");
        assert!(!told.contains("for want of repeats"), "{told}");
    }
}

#[test]
fn a_row_whose_perturbed_guests_all_failed_differs_from_none_also_where_others_moved() {
    let dataset = equal_seeds(0.02, &[0], &[]);
    let analysis = Analysis::of(&dataset);
    let panel = analysis.comparisons[0].panels[0].as_ref().expect("compared");
    assert_eq!([(0, 1), (0, 2), (1, 2)].map(|(a, b)| panel.differ(a, b)), [false, false, true]);
    let known = [0, 1, 2].map(|row| analysis.rows[row].entries[0].interval.is_some());
    assert_eq!(known, [false, true, true]);
}

#[test]
fn failed_perturbed_guests_are_the_reason_and_no_more_seeds_are_asked_for() {
    for failing in [&[0, 1, 2][..], &[0]] {
        let told = everything(&equal_seeds(0.0, failing, &[]));
        assert!(told.contains("see why the guests failed"), "{told}");
        for wrong in ["would prove it", "more blocks", "for want of repeats", "too few trials", "so few trials"] {
            assert!(!told.contains(wrong), "{wrong}: {told}");
        }
    }
}

#[test]
fn failed_perturbed_guests_are_the_reason_in_several_panels_too() {
    let mut plan = fixture::plan("small-file", "Small-file random create, write and read", 5, &COLUMNS);
    let threads = ("threads", vec!["1 thread".into(), "8 threads".into()], Some(vec![1, 8]));
    fixture::cross(&mut plan, &[Fs("ext4", "ext4", "", ""), Fs("xfs", "xfs", "", "")], &[threads]);
    let mut dataset = fixture::dataset(plan);
    let nature = |cell: &fstone_model::Cell| {
        let mean = 1000.0 * (1.0 + f64::from(cell.index));
        Some(Nature { figures: vec![(mean, 0.0), (mean, 0.0), (mean, 0.0)] })
    };
    fixture::complete(&mut dataset, 5, &mut Random::new(3), &nature, &|_, _, _| None);
    for (moved, failing) in [(0.0, &[0, 1, 2, 3][..]), (0.001, &[0, 1])] {
        let told = everything(&seeds_and_guests(dataset.clone(), moved, failing, &[]));
        assert!(told.contains("since perturbed guests failed"), "{told}");
        for wrong in ["would prove it", "cannot show a difference", "for want of repeats"] {
            assert!(!told.contains(wrong), "{wrong}: {told}");
        }
    }
}

#[test]
fn further_seeds_do_not_hide_what_perturbed_guests_move() {
    // Three seeds in which the second row is 8 % higher, and two guests that move by 20 %.
    let figures =
        [[100.0, 100.0, 100.0, 119.0, 81.0], [108.0, 108.0, 108.0, 90.0, 125.0], [300.0, 300.0, 300.0, 290.0, 310.0]];
    let with_guests = |by: [[f64; 5]; 3]| {
        let mut dataset = in_virtual_time(run(3, 5, 0.0, &|_, _| 1.0), "2 us");
        for trial in &mut dataset.trials {
            let (cell, repetition) = (trial.id.cell as usize, trial.id.repetition as usize);
            trial
                .steps
                .iter_mut()
                .flat_map(|step| &mut step.figures)
                .for_each(|figure| figure.value = by[cell][repetition]);
            trial.seed = [1, 2, 3, 1, 1][repetition];
            if repetition > 2 {
                trial.id = Perturbation { number: trial.id.repetition - 3 }.trial(trial.id.cell);
            }
        }
        dataset
    };
    let dataset = with_guests(figures);
    let analysis = Analysis::of(&dataset);
    let panel = analysis.comparisons[0].panels[0].as_ref().expect("compared");
    assert!(!panel.differ(0, 1) && panel.differ(0, 2) && panel.differ(1, 2), "{:?}", panel.comparison.pairs);
    assert!(
        analysis.rows[0].entries[0].half_width().is_some_and(|half| half > 5.0),
        "{:?}",
        analysis.rows[0].entries[0]
    );
    // Guests that nothing moves leave it exact.
    let still = with_guests(figures.map(|[first, ..]| [first; 5]));
    let analysis = Analysis::of(&still);
    assert!(analysis.comparisons[0].panels[0].as_ref().expect("compared").differ(0, 1));
}

/// So many seeds and guests, each with this figure, by row and by its seed or guest.
fn of_seeds_and_guests(seeds: u32, guests: u32, figure: &dyn Fn(usize, u32, Option<u32>) -> f64) -> Dataset {
    let mut dataset = in_virtual_time(run(3, seeds + guests, 0.0, &|_, _| 1.0), "2 us");
    for trial in &mut dataset.trials {
        let guest = trial.id.repetition.checked_sub(seeds);
        let seed = if guest.is_some() { 0 } else { trial.id.repetition };
        let value = figure(trial.id.cell as usize, seed, guest);
        trial.steps.iter_mut().flat_map(|step| &mut step.figures).for_each(|figure| figure.value = value);
        trial.seed = u64::from(seed);
        if let Some(number) = guest {
            trial.id = Perturbation { number }.trial(trial.id.cell);
        }
    }
    dataset
}

#[test]
fn what_nothing_moves_is_exact_whatever_the_number_of_seeds_and_guests() {
    let panel = |dataset: &Dataset| Analysis::of(dataset).comparisons[0].panels[0].clone().expect("compared");
    for (seeds, guests) in [(2, 1), (3, 1), (5, 1), (2, 2), (3, 2), (5, 2), (3, 0)] {
        let still = of_seeds_and_guests(seeds, guests, &|row, _, _| [10.0, 20.0, 20.0][row]);
        let found = panel(&still);
        assert_eq!(found.comparison.basis, Basis::Exact, "{seeds} seeds, {guests} guests");
        assert!(found.differ(0, 1) && found.differ(0, 2) && !found.differ(1, 2), "{:?}", found.comparison.pairs);
        let text = fstone_report::terminal(&still, &fstone_report::TerminalOptions::default());
        assert!(!text.contains("0.0000") && !text.contains("no difference was found"), "{text}");
        // What seeds move and guests do not is compared over seeds alone.
        let by_seed =
            |row: usize, seed: u32| [100.0, 120.0, 130.0][row] + [0.0, 0.3, 0.1, 0.2, 0.4][(seed as usize + row) % 5];
        let moved = panel(&of_seeds_and_guests(seeds, guests, &|row, seed, _| by_seed(row, seed)));
        let alone = panel(&of_seeds_and_guests(seeds, 0, &|row, seed, _| by_seed(row, seed)));
        assert_eq!(moved.comparison, alone.comparison, "{seeds} seeds, {guests} guests");
    }
    // Guests that move a figure that seeds do not are what it is compared against.
    let wild = |row: usize, _: u32, guest: Option<u32>| {
        [100.0, 108.0, 300.0][row]
            * guest.map_or(1.0, |guest| [[1.2, 0.8], [0.8, 1.2], [1.1, 0.9]][row][guest as usize])
    };
    for seeds in [2, 3] {
        let dataset = of_seeds_and_guests(seeds, 2, &wild);
        let told = Analysis::of(&dataset).answer(Length::Long).join(" ");
        assert!(told.contains("as far as guests move") && !told.contains("more block"), "{told}");
        let found = panel(&dataset);
        assert!(!found.differ(0, 1) && found.differ(0, 2), "{seeds} seeds: {:?}", found.comparison.pairs);
        assert!(found.comparison.means[0].interval.is_some_and(|interval| interval.half_width() > 5.0));
    }
}

/// Rows a, b and c of three seeds, which move none, and two guests, which move a by 40 % and b by 25 %; `failed` trials have no figures.
fn with_failed(guests: u32, failed: &dyn Fn(usize, u32, Option<u32>) -> bool) -> Dataset {
    let value = |row: usize, _: u32, guest: Option<u32>| match guest {
        None => [100.0, 120.0, 150.0][row],
        Some(guest) => [[140.0, 80.0], [90.0, 130.0], [150.0; 2]][row][guest as usize],
    };
    let mut dataset = of_seeds_and_guests(3, guests, &value);
    for trial in &mut dataset.trials {
        let guest = trial.id.perturbation().map(|guest| guest.number);
        let seed = u32::try_from(trial.seed).expect("small");
        if failed(trial.id.cell as usize, seed, guest) {
            trial.outcome = Outcome::Failed(Reason::new("load", "No space left on device"));
            trial.steps.clear();
        }
    }
    dataset
}

#[test]
fn a_failed_trial_does_not_hide_how_far_guests_move_the_others() {
    type Failed = &'static dyn Fn(usize, u32, Option<u32>) -> bool;
    let cases: [(&str, u32, Failed); 6] = [
        ("none", 2, &|_, _, _| false),
        ("c's first trial", 2, &|row, seed, guest| row == 2 && seed == 0 && guest.is_none()),
        ("c's first trial and guests", 2, &|row, seed, _| row == 2 && seed == 0),
        ("b's guests", 2, &|row, _, guest| row == 1 && guest.is_some()),
        ("c, b's guests", 2, &|row, _, guest| row == 2 || row == 1 && guest.is_some()),
        ("c, b's one guest", 1, &|row, _, guest| row == 2 || row == 1 && guest.is_some()),
    ];
    for (what, guests, failed) in cases {
        let dataset = with_failed(guests, failed);
        let analysis = Analysis::of(&dataset);
        let panel = analysis.comparisons[0].panels[0].as_ref().expect("compared");
        assert!(!panel.differ(0, 1), "{what}: {:?}", panel.comparison.pairs);
        assert_ne!(panel.comparison.basis, Basis::Exact, "{what}");
        let half = analysis.rows[0].entries[0].half_width();
        assert!(half.is_some_and(|half| half > 20.0), "{what}: {half:?}");
    }
    // One row with guests is enough to show how far they move it.
    let dataset = with_failed(2, &|row, _, _| row > 0);
    let analysis = Analysis::of(&dataset);
    let half = analysis.rows[0].entries[0].half_width();
    assert!(half.is_some_and(|half| half > 20.0), "{half:?}");
    let told = analysis.sentences().join(" ");
    assert!(told.contains("averaged 100") && !told.contains("in each of 3 trials"), "{told}");
    // Guests that failed in one row, and moved nothing in the other.
    let still = of_seeds_and_guests(3, 2, &|row, _, _| [100.0, 120.0, 150.0][row]);
    assert!(Analysis::of(&still).comparisons[0].panels[0].as_ref().expect("compared").differ(0, 1));
}

#[test]
fn losses_and_crashes_in_perturbed_guests_are_told() {
    let mut dataset = of_seeds_and_guests(3, 2, &|row, seed, _| 100.0 + 20.0 * row as f64 + f64::from(seed));
    for trial in &mut dataset.trials {
        match (trial.id.cell, trial.id.perturbation().map(|guest| guest.number)) {
            (1, Some(0)) => {
                let figure =
                    |metric: &str, value| Figure { metric: metric.into(), value, ..trial.steps[0].figures[0].clone() };
                let lost = [figure("promises lost", 118.0), figure("promises checked", 796.0)];
                trial.steps[0].figures.extend(lost);
                let figures = trial.steps.iter_mut().flat_map(|step| &mut step.figures);
                figures.filter(|of| of.metric == "CPU").for_each(|of| of.value = 118.0);
            }
            (0, Some(1)) => {
                trial.outcome =
                    Outcome::Crashed(Reason { step: "load".into(), words: "kernel BUG".into(), cure: None });
            }
            _ => {}
        }
    }
    for trial in &mut dataset.trials {
        let nothing = trial.steps.iter_mut().flat_map(|step| &mut step.figures).filter(|of| of.metric == "CPU");
        nothing.for_each(|of| of.value = if of.value == 118.0 { 118.0 } else { 0.0 });
    }
    let analysis = Analysis::of(&dataset);
    let told = analysis.sentences().join(" ");
    assert!(!told.contains("No rows differ clearly"), "a guest has what seeds have not: {told}");
    assert!(told.contains("lost 118 of 796 promises after a power cut"), "{told}");
    assert!(told.contains("1 other trial did not complete"), "{told}");
    assert_eq!((analysis.trials(), analysis.completed()), (15, 14));
    let label = &analysis.rows[0].label;
    assert_eq!(
        analysis.footnotes[0].told(&analysis.rows),
        format!("1 of 5 trials of {label}: crashed at load: kernel BUG")
    );
    let page = fstone_report::html(&dataset, &Options::default());
    assert!(page.contains("kernel BUG") && page.contains("118 of 796"), "the page has both");
}

#[test]
fn what_a_perturbed_guest_loses_beside_several_seeds_is_a_regression() {
    let made = |seed| {
        let mut dataset = in_virtual_time(run(seed, 5, 0.0, &|_, _| 1.0), "2 us");
        for trial in dataset.trials.iter_mut().filter(|trial| trial.id.repetition > 2) {
            trial.id = Perturbation { number: trial.id.repetition - 3 }.trial(trial.id.cell);
        }
        dataset
    };
    let (before, mut after) = (made(3), made(3));
    let mut guests = after.trials.iter_mut().filter(|trial| trial.id.perturbation().is_some());
    let of_cell = |trial: &&mut fstone_model::Trial, cell| trial.id.cell == cell;
    let crashed = guests.find(|trial| of_cell(trial, 0)).expect("a guest");
    crashed.outcome = Outcome::Crashed(Reason::new("load", "kernel BUG"));
    let losing = guests.find(|trial| of_cell(trial, 2)).expect("a guest");
    losing.steps[0].figures.push(catalog::PROMISES_LOST.figure(118.0));
    with(&before, &after, &CompareOptions::default(), |comparison| {
        assert!(comparison.has_regression());
        let sentences = comparison.sentences();
        assert!(sentences[0].starts_with("Lost or damaged: xfs (lost 118 promises after a power cut; before: nothing lost or damaged in 5 trials)"), "{sentences:?}");
        assert!(sentences[1].starts_with("Does not complete as before: ext4 (1 of 5 trials: "), "{sentences:?}");
    });
}

#[test]
fn a_guest_that_moves_a_zero_is_seen() {
    let before = with_figures(in_guests(run(3, 3, 0.0, &|_, _| 1.0)), "CPU", &[0.0; 3]);
    let after = with_figures(in_guests(run(3, 3, 0.0, &|_, _| 1.0)), "CPU", &[0.0, 0.0, 40.0]);
    with(&before, &after, &CompareOptions::default(), |comparison| {
        assert!(comparison.is_undecided() && !comparison.has_regression());
        let words = comparison.sentences().join(" ");
        assert!(words.contains("Too noisy to say in ext4, CPU, 0 in most trials: it reached 0 % before"), "{words}");
    });
    let text = fstone_report::terminal(&after, &fstone_report::TerminalOptions { width: 400, ..Default::default() });
    assert!(text.contains("CPU from 0 to 40 % (ext4)"), "{text}");
}

#[test]
fn guests_alone_or_seeds_alone_call_equal_versions_different_no_more_often_than_promised() {
    let one = CompareOptions { columns: vec!["transactions per second".into()], ..CompareOptions::default() };
    for by_guests in [true, false] {
        let mut found = 0;
        for table in 0..100 {
            let of = |version: u64| {
                let scatter = run(1000 + 2 * table + version, 5, 0.1, &|_, _| 1.0);
                let of_cell = scatter.trials.iter().filter(|trial| trial.id.cell == 0);
                let draws: Vec<f64> = of_cell
                    .map(|trial| trial.figure("load", "transactions per second").expect("a figure").value)
                    .collect();
                of_seeds_and_guests(3, 2, &|_, seed, guest| match by_guests {
                    true => draws[guest.map_or(0, |guest| guest as usize + 1)],
                    false => draws[seed as usize],
                })
            };
            found += with(&of(0), &of(1), &one, |comparison| {
                let figure = comparison.figures().next().expect("a figure").1;
                usize::from(figure.pair.expect("compared").p <= 0.05)
            });
        }
        assert!((1..=10).contains(&found), "{found} of 100, by guests: {by_guests}");
    }
}

#[test]
fn what_the_test_finds_and_not_all_seeds_show_passes_no_gate() {
    let one = CompareOptions { columns: vec!["transactions per second".into()], ..CompareOptions::default() };
    let seeds = |of: &dyn Fn(u32) -> f64| of_seeds_and_guests(12, 0, &|_, seed, _| of(seed));
    let before = seeds(&|_| 100.0);
    let other_way = |rest: f64| seeds(&move |seed| if seed == 0 { 100.1 } else { rest + 0.01 * f64::from(seed) });
    with(&before, &other_way(80.0), &one, |comparison| {
        let words = comparison.sentences().join(" ");
        assert_eq!(comparison.count(Verdict::Unclear), 3, "{words}");
        assert!(comparison.is_undecided() && !comparison.has_regression(), "{words}");
        assert!(
            words.starts_with("No regression beyond 5 % and 3 differences for the worse that not all guests show."),
            "{words}"
        );
        assert!(words.contains("Perhaps worse: ") && !words.contains("would have been found"), "{words}");
    });
    with(&before, &other_way(99.5), &one, |comparison| {
        assert_eq!(comparison.count(Verdict::MayBeChance), 3);
        assert!(!comparison.is_undecided(), "it is within the threshold");
    });
}

#[test]
fn guests_beside_several_seeds_are_compared_and_zeros_that_nothing_moves_hide_nothing() {
    let zeros = of_seeds_and_guests(3, 2, &|_, _, _| 0.0);
    let in_guests = |row: usize, _: u32, guest: Option<u32>| match (row, guest) {
        (0, Some(guest)) => [500.0, 400.0][guest as usize],
        _ => 0.0,
    };
    let of = |power| CompareOptions {
        columns: vec!["CPU".into()],
        required_power: Some(power),
        ..CompareOptions::default()
    };
    with(&zeros, &of_seeds_and_guests(3, 2, &in_guests), &of(0.05), |comparison| {
        let words = comparison.sentences().join(" ");
        assert!(comparison.is_undecided() && words.contains("it reached 0 % before and reaches 500 % now"), "{words}");
        assert!(words.contains("(0 in most trials)") && !words.contains("too few trials"), "{words}");
        let pair = comparison.figures().next().expect("a figure").1.pair.expect("compared");
        assert_eq!((pair.shift.interval.low, pair.shift.interval.high), (0.0, 500.0));
    });
    with(&zeros, &zeros, &of(0.05), |comparison| {
        let words = comparison.sentences().join(" ");
        assert!(!comparison.is_undecided() && words.contains("Every figure could have shown"), "{words}");
    });
}

#[test]
fn a_guest_that_is_not_run_again_is_not_better() {
    let made = |guests: u32, ending: Option<Outcome>| {
        let mut dataset = of_seeds_and_guests(3, guests, &|_, _, _| 100.0);
        for trial in &mut dataset.trials {
            let is_it = trial.id.cell == 0 && trial.id.perturbation().is_some_and(|guest| guest.number == 0);
            match (&ending, is_it) {
                (Some(Outcome::Completed), true) => trial.steps[0].figures.push(catalog::PROMISES_LOST.figure(118.0)),
                (Some(other), true) => trial.outcome = other.clone(),
                _ => trial.steps[0].figures.push(catalog::PROMISES_LOST.figure(0.0)),
            }
        }
        dataset
    };
    let crashed = Outcome::Crashed(Reason::new("load", "kernel BUG"));
    for (ending, better, unknown) in [
        (Outcome::Completed, "Nothing lost or damaged any more", "in 3 trials, without the guest that showed it"),
        (crashed, "Completes as it did not before", "all 3 trials completed, without the guest that did not before"),
    ] {
        let before = made(2, Some(ending));
        with(&before, &made(2, None), &CompareOptions::default(), |comparison| {
            let words = comparison.sentences().join(" ");
            assert!(words.contains(better) && !comparison.is_undecided(), "{words}");
        });
        with(&before, &made(0, None), &CompareOptions::default(), |comparison| {
            let words = comparison.sentences().join(" ");
            assert!(!words.contains(better) && comparison.is_undecided(), "{words}");
            assert!(words.contains(unknown), "{words}");
        });
    }
}

#[test]
fn the_worst_end_is_named_beside_others() {
    let made = |ends: &[Outcome]| {
        let mut dataset = run(3, 10, 0.01, &|_, _| 1.0);
        let trials = dataset.trials.iter_mut().filter(|trial| trial.id.cell == 0);
        trials.zip(ends).for_each(|(trial, end)| trial.outcome = end.clone());
        dataset
    };
    let full = Outcome::Failed(Reason::new("load", "No space left on device"));
    let crashed = Outcome::Crashed(Reason::new("load", "kernel BUG"));
    with(
        &made(std::slice::from_ref(&full)),
        &made(&[full.clone(), crashed]),
        &CompareOptions::default(),
        |comparison| {
            let words = comparison.sentences().join(" ");
            let told = "2 of 10 trials: 1 crashed at load: kernel BUG and 1 failed at load: No space left on device";
            assert!(words.contains(told), "{words}");
        },
    );
}

#[test]
fn what_the_test_finds_is_told_with_a_change_that_shows_it() {
    let of =
        |counts: &[(usize, f64)]| counts.iter().flat_map(|(count, value)| vec![*value; *count]).collect::<Vec<_>>();
    let one = CompareOptions { columns: vec!["fsck time".into()], ..CompareOptions::default() };
    // Medians are the same, or the interval ends at 0, because many figures are the same.
    for (before, after) in [
        (of(&[(9, 1.0), (11, 5.0)]), of(&[(11, 5.0), (9, 9.0)])),
        (of(&[(6, 1.0), (7, 2.0)]), of(&[(7, 2.0), (6, 3.0)])),
        (of(&[(20, 0.0), (5, 1.0)]), of(&[(10, 0.0), (15, 1.0)])),
    ] {
        let repeats = u32::try_from(before.len()).expect("few");
        let made = |seed, values: &[f64]| {
            let mut dataset = with_figures(run(seed, repeats, 0.0, &|_, _| 1.0), "CPU", &[]);
            for trial in dataset.trials.iter_mut().filter(|trial| trial.id.cell == 0) {
                let mut figures =
                    trial.steps.iter_mut().filter(|step| step.step == "fsck").flat_map(|step| &mut step.figures);
                figures.next().expect("a figure").value = values[trial.id.repetition as usize];
            }
            dataset
        };
        let (before, after) = (made(3, &before), made(8, &after));
        with(&before, &after, &one, |comparison| {
            let (_, figure) = comparison.figures().next().expect("the first");
            let pair = figure.pair.expect("compared");
            assert!(pair.adjusted_p <= 0.05 && pair.differs(), "{pair:?}");
            assert!(
                pair.shift.estimate > 0.0 && (pair.after - pair.before - pair.shift.estimate).abs() < 1e-9,
                "{pair:?}"
            );
            let interval = pair.shift.interval;
            assert!(interval.low >= 0.0 && interval.contains(pair.shift.estimate), "{pair:?}");
            assert_eq!(figure.verdict, Verdict::Regression, "{:?}", comparison.sentences());
        });
    }
}

/// Whatever the figures, a p-value below the level means that a difference was found.
#[test]
fn verdict_estimate_and_interval_agree() {
    let mut random = Random::new(17);
    for case in 0..60 {
        let values = [2.0, 3.0, 6.0][case % 3];
        let mut made = |seed: u64, more: f64| {
            let mut dataset = run(seed, 12, 0.0, &|_, _| 1.0);
            for figure in
                dataset.trials.iter_mut().flat_map(|trial| &mut trial.steps).flat_map(|step| &mut step.figures)
            {
                figure.value = (values * random.unit()).floor() + if random.unit() < more { 1.0 } else { 0.0 };
            }
            dataset
        };
        let (before, after) = (made(3, 0.0), made(8, f64::from(u32::try_from(case).expect("few")) / 60.0));
        with(&before, &after, &CompareOptions::default(), |comparison| {
            for pair in comparison.figures().filter_map(|(_, figure)| figure.pair) {
                let interval = pair.shift.interval;
                assert_eq!(pair.differs(), pair.adjusted_p <= 0.05, "{pair:?}");
                assert!(interval.contains(pair.shift.estimate), "{pair:?}");
                assert_eq!(
                    pair.differs(),
                    pair.shift.estimate != 0.0
                        && (interval.low >= 0.0 || interval.high <= 0.0)
                        && pair.adjusted_p <= 0.05
                );
            }
        });
    }
}

#[test]
fn rows_of_one_run_only_are_named_and_not_compared() {
    let (before, mut after) = before_and_after();
    after.run.plan.cells[2].label = "btrfs".into();
    with(&before, &after, &CompareOptions::default(), |comparison| {
        let only = |name: &str, in_baseline| Unmatched { is_column: false, name: name.into(), in_baseline };
        assert_eq!(comparison.unmatched, [only("xfs", true), only("btrfs", false)]);
        assert_eq!(comparison.figures().count(), 6);
    });
    // The study has the row still: `--only` left it out, and that was meant.
    let (before, mut after) = (run(3, 10, 0.008, &|_, _| 1.0), run(8, 10, 0.008, &|_, _| 1.0));
    after.run.plan.cells.pop();
    after.trials.retain(|trial| trial.id.cell != 2);
    for (source, missing) in [(before.run.plan.source.clone(), false), ("another study file".to_owned(), true)] {
        after.run.plan.source = source;
        with(&before, &after, &CompareOptions::default(), |comparison| {
            assert_eq!(comparison.is_undecided(), missing, "{:?}", comparison.sentences());
            assert!(comparison.unmatched_lines()[0].starts_with("row xfs is in run 3 only"));
        });
    }
}

#[test]
fn every_format_takes_every_pair_of_runs() {
    let datasets: Vec<Dataset> = figures::datasets()
        .into_iter()
        .map(|(_, dataset)| dataset)
        .filter(|dataset| dataset.trials.len() < 400)
        .collect();
    let analyses: Vec<Analysis<'_>> = datasets.iter().map(Analysis::of).collect();
    assert!(analyses.len() > 4, "{} datasets", analyses.len());
    for (index, before) in analyses.iter().enumerate() {
        for after in [before, &analyses[(index + 1) % analyses.len()]] {
            let comparison = RunComparison::of((before, "run 3"), (after, "run 7"), &CompareOptions::default());
            let text = compare::terminal(&comparison, 80, true)
                + &compare::junit(&comparison)
                + &compare::markdown(&comparison);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            check_html(&compare::html(&comparison, None));
        }
    }
}

#[test]
fn pages_are_for_the_browser_to_look_at() {
    let (before, after) = before_and_after();
    let page = told(&before, &after, |comparison| compare::html(comparison, Some("index.html")));
    check_html(&page);
    fs::write(figures::gallery().join("compare-kernels.html"), page).expect("the gallery can be written");
    let hostile = hostile::dataset();
    let page = told(&hostile, &hostile, |comparison| compare::html(comparison, None));
    check_html(&page);
    let text = told(&hostile, &hostile, |comparison| {
        compare::terminal(comparison, 80, false) + &compare::markdown(comparison) + &compare::junit(comparison)
    });
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "nothing that a terminal obeys");
    assert!(!page.contains("<script"), "no script");
}
