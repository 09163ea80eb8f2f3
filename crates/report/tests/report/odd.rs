//! Records that no run should give, and some that interrupted ones do: every format prints them, none panics.

use crate::fixture::{self, Fs, Nature, Random};
use fstone_model::{Dataset, LoadReport, Outcome, Unit, outcome::Reason};
use fstone_report::{Options, TerminalOptions, csv, html, json, markdown, svg_files, terminal};
use proptest::prelude::*;

const ALL: Options = Options { published: true, answer: fstone_analysis::Length::Long };

fn print(dataset: &Dataset) {
    for width in [0, 80] {
        assert!(terminal(dataset, &TerminalOptions { width, color: true, options: ALL }).ends_with('\n'));
    }
    assert!(markdown(dataset, &ALL).ends_with('\n'));
    assert!(csv(dataset).ends_with("\r\n"));
    let _: serde_json::Value = serde_json::from_str(&json(dataset, &ALL)).expect("it is JSON");
    assert!(html(dataset, &ALL).ends_with("</html>"));
    for (_, svg) in svg_files(dataset, &ALL) {
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

#[test]
fn nothing_planned_and_nothing_run() {
    let mut dataset = fixture::small_file(2);
    dataset.trials.clear();
    print(&dataset);
    dataset.run.finished_unix_ns = None;
    dataset.run.plan.columns.clear();
    print(&dataset);
    dataset.run.plan.cells.clear();
    print(&dataset);
    dataset.run.plan.factors.clear();
    print(&dataset);
}

#[test]
fn trials_that_fit_no_plan() {
    let mut dataset = fixture::small_file(2);
    // A trial twice, one of a cell that is not there, and cells that lost their levels.
    let twice = dataset.trials[0].clone();
    dataset.trials.push(twice.clone());
    dataset.trials.push(fstone_model::Trial { id: fstone_model::result::TrialId { cell: 99, repetition: 0 }, ..twice });
    dataset.run.plan.baseline = Some(77);
    for cell in &mut dataset.run.plan.cells {
        cell.levels.clear();
    }
    print(&dataset);
}

#[test]
fn figures_that_are_no_figures() {
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 1e-300, f64::MAX] {
        let mut dataset = fixture::small_file(3);
        for trial in dataset.trials.iter_mut().filter(|trial| trial.id.cell < 4) {
            for figure in trial.steps.iter_mut().flat_map(|step| &mut step.figures) {
                figure.value = value;
            }
        }
        print(&dataset);
    }
}

#[test]
fn loads_without_anything_in_them() {
    let mut dataset = fixture::small_file(2);
    let mut loads: Vec<&mut Box<LoadReport>> =
        dataset.trials.iter_mut().flat_map(|trial| &mut trial.steps).filter_map(|step| step.load.as_mut()).collect();
    **loads[0] = LoadReport::default();
    loads[1].series_interval_ns = 0;
    loads[2].series.truncate(1);
    loads[3].running_ns = 0;
    loads[4].operations.clear();
    for point in &mut loads[5].series {
        point.latency = fstone_model::Histogram::default();
    }
    print(&dataset);
}

#[test]
fn a_directory_without_a_filesystem_of_its_own() {
    let mut dataset = fixture::small_file(2);
    dataset.run.plan = dataset.run.plan.on_directory("ext4 (directory)", None);
    dataset.trials.retain(|trial| trial.id.cell == 0);
    print(&dataset);
    let page = html(&dataset, &ALL);
    assert!(page.contains("No filesystem was made") && !page.contains("made anew"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any figures of any unit in any number of rows, with some trials gone.
    #[test]
    fn anything_can_be_printed(
        rows in 1usize..6,
        repeats in 1u32..5,
        unit in prop::sample::select(vec![Unit::Seconds, Unit::Bytes, Unit::Count, Unit::Ratio, Unit::Percent, Unit::Nanoseconds]),
        scale in -12.0f64..15.0,
        spread in 0.0f64..2.0,
        gone in prop::collection::vec(any::<bool>(), 30),
        seed in any::<u64>(),
    ) {
        let names = ["ext4", "a rather long name of a filesystem with options", "xfs", "ext3", "btrfs"];
        let mut plan = fixture::plan("any", "Anything", repeats, &[("figure", "load", "transactions per second")]);
        let levels: Vec<Fs> = names.iter().take(rows.min(5)).map(|name| Fs(name, "ext4", "", "")).collect();
        fixture::cross(&mut plan, &levels, &[("threads", vec!["1".into(), "8".into(), "64".into()], Some(vec![1, 8, 64]))]);
        plan.baseline = Some(0);
        let mut dataset = fixture::dataset(plan);
        let mean = 10f64.powf(scale);
        let nature = |_: &fstone_model::Cell| Some(Nature { figures: vec![(mean, spread)] });
        fixture::complete(&mut dataset, repeats, &mut Random::new(seed), &nature, &|_, _, _| None);
        for (trial, gone) in dataset.trials.iter_mut().zip(gone.iter().cycle()) {
            for figure in trial.steps.iter_mut().flat_map(|step| &mut step.figures) {
                figure.unit = unit;
            }
            if *gone {
                trial.outcome = Outcome::Hung(Reason::new("load", "no end after 600 s"));
            }
        }
        print(&dataset);
    }
}
