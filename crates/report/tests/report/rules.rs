//! The report checks itself: a planted violation of each rule is found, and clean runs raise none.

use crate::fixture::{self, Fs, Nature, Random};
use fstone_analysis::Analysis;
use fstone_model::{
    Dataset, Histogram,
    inventory::Inventory,
    load::CallReport,
    metric::catalog,
    study::{Column, Order},
};

fn broken(analysis: &Analysis<'_>) -> Vec<u8> {
    analysis.rules().iter().filter(|rule| rule.is_broken()).map(|rule| rule.number).collect()
}

fn broken_by(change: impl FnOnce(&mut Dataset)) -> Vec<u8> {
    let mut dataset = fixture::large_file(8);
    change(&mut dataset);
    broken(&Analysis::of(&dataset))
}

fn words(analysis: &Analysis<'_>, number: u8) -> String {
    analysis.rules().iter().find(|rule| rule.number == number).expect("there is one").words().to_owned()
}

#[test]
fn clean_runs_raise_none() {
    let clean = [
        fixture::small_file(8),
        fixture::large_file(8),
        fixture::sweep(8),
        fixture::star(8),
        fixture::alike(8),
        fixture::many(3, 8, true),
    ];
    for dataset in clean {
        let analysis = Analysis::of(&dataset);
        let rules = analysis.rules();
        assert_eq!(rules.iter().map(|rule| rule.number).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
        let raised: Vec<_> = rules.iter().filter(|rule| rule.is_broken()).collect();
        assert!(raised.is_empty(), "{}: {raised:#?}", dataset.run.plan.study);
        assert!(analysis.rules_in_words().starts_with("All "), "{}", analysis.rules_in_words());
    }
}

#[test]
fn a_ratio_without_its_base_is_found() {
    let dataset = fixture::large_file(8);
    let mut analysis = Analysis::of(&dataset);
    let base = analysis.structure.panels[1].baseline.expect("there is one");
    analysis.rows[base].entries[0].mean = None;
    assert_eq!(broken(&analysis), [1, 3], "a figure that is gone is no mean of its trials either");
    assert!(words(&analysis, 1).contains("has a ratio without its base"), "{}", words(&analysis, 1));
    let mut analysis = Analysis::of(&dataset);
    for panel in &mut analysis.structure.panels {
        panel.baseline = None;
    }
    assert_eq!(broken(&analysis), [1]);
}

#[test]
fn what_is_missing_without_a_reason_is_found() {
    assert_eq!(broken_by(|dataset| dataset.trials.retain(|trial| trial.id.cell != 5)), [2]);
    assert_eq!(broken_by(|dataset| dataset.run.finished_unix_ns = None), [2]);
}

#[test]
fn a_mean_that_does_not_suit_is_found() {
    let zero = broken_by(|dataset| {
        let figures = dataset.trials[0].steps.iter_mut().flat_map(|step| &mut step.figures);
        figures.filter(|figure| figure.metric == "write throughput").for_each(|figure| figure.value = 0.0);
    });
    assert!(zero.contains(&3), "{zero:?}");
    let dataset = fixture::large_file(8);
    let mut analysis = Analysis::of(&dataset);
    // The arithmetic mean of rates that scatter is above the geometric one.
    let entry = &mut analysis.rows[4].entries[0];
    entry.mean = Some(entry.summary.expect("it has figures").mean);
    assert!(broken(&analysis).contains(&3), "{:?}", broken(&analysis));
}

#[test]
fn a_mean_of_ratios_is_found() {
    let dataset = fixture::large_file(8);
    let mut analysis = Analysis::of(&dataset);
    let ratio = analysis.rows[4].entries[0].ratio.as_mut().expect("it has a ratio");
    *ratio *= 1.001;
    assert_eq!(broken(&analysis), [4]);
}

#[test]
fn single_trials_are_found() {
    let dataset = fixture::alike(1);
    assert_eq!(broken(&Analysis::of(&dataset)), [5, 6, 7]);
}

#[test]
fn normality_that_nobody_could_see_is_found() {
    let mut plan = fixture::plan("pair", "Two", 3, &[("throughput", "load", "throughput")]);
    fixture::cross(&mut plan, &[Fs("ext4", "ext4", "", ""), Fs("xfs", "xfs", "", "")], &[]);
    let mut dataset = fixture::dataset(plan);
    let nature = |_: &fstone_model::Cell| Some(Nature { figures: vec![(1000.0, 0.05)] });
    fixture::complete(&mut dataset, 3, &mut Random::new(3), &nature, &|_, _, _| None);
    let analysis = Analysis::of(&dataset);
    assert_eq!(broken(&analysis), [6]);
    assert!(words(&analysis, 6).contains("6 residuals are too few"), "{}", words(&analysis, 6));
}

#[test]
fn a_difference_without_its_test_is_found() {
    let dataset = fixture::alike(8);
    let mut analysis = Analysis::of(&dataset);
    let panel = analysis.comparisons[0].panels[0].as_mut().expect("compared");
    panel.comparison.pairs[0].differs = true;
    assert_eq!(broken(&analysis), [7]);
    let many = fixture::many(fstone_analysis::MAX_COMPARED_ROWS + 1, 3, false);
    assert_eq!(broken(&Analysis::of(&many)), [7]);
}

#[test]
fn a_latency_without_percentiles_is_found() {
    let column = |metric: &str| Column { header: metric.into(), step: "load".into(), metric: metric.into() };
    assert_eq!(broken_by(|dataset| dataset.run.plan.columns.push(column("write latency mean"))), [8]);
    let both = ["write latency mean", "write latency p99"].map(column);
    assert_eq!(broken_by(|dataset| dataset.run.plan.columns.extend(both)), [0; 0]);
    // 400 operations have a 99th percentile and no 99.99th one, and 3 fsyncs have neither, whatever else the load did.
    let rare = |metric: &str| {
        let mut dataset = fixture::many(3, 8, true);
        dataset.run.plan.columns.push(column(metric));
        for load in dataset.trials.iter_mut().flat_map(|trial| &mut trial.steps).filter_map(|step| step.load.as_mut()) {
            load.operations.iter_mut().for_each(|operation| operation.invocations = 1_000_000);
            let latency = Histogram::from_values(&[7_000_000; 3]);
            load.calls = vec![CallReport { group: "main".into(), call: "fsync".into(), latency }];
            load.group_fsyncs.clear();
        }
        broken(&Analysis::of(&dataset))
    };
    assert_eq!((rare("create latency p99"), rare("create latency p99.99")), (vec![], vec![8]));
    assert_eq!((rare("fsync latency p50"), rare("fsync latency p99")), (vec![], vec![8]));
}

#[test]
fn a_set_up_that_was_not_recorded_is_found() {
    let emptied = broken_by(|dataset| dataset.run.inventory = Inventory::default());
    assert_eq!(emptied, [9, 11]);
    assert_eq!(broken_by(|dataset| dataset.trials[3].effective.mount = None), [9]);
}

#[test]
fn an_order_that_lets_drift_in_is_found() {
    assert_eq!(broken_by(|dataset| dataset.run.plan.order = Order::AsWritten), [10]);
    let mut dataset = fixture::many(3, 8, true);
    let load = dataset.trials[0].steps.iter_mut().find_map(|step| step.load.as_mut()).expect("there is a load");
    load.clock.source.clear();
    assert_eq!(broken(&Analysis::of(&dataset)), [10]);
}

#[test]
fn a_device_of_unknown_speed_is_found() {
    let unmeasured = broken_by(|dataset| {
        let inventory = &mut dataset.run.inventory;
        inventory.raw_read_bytes_per_second = None;
        inventory.raw_write_bytes_per_second = None;
        inventory.flushes_per_second = None;
    });
    assert_eq!(unmeasured, [11]);
}

#[test]
fn a_line_over_names_is_found() {
    let dataset = fixture::sweep(8);
    let mut analysis = Analysis::of(&dataset);
    let axis = analysis.structure.sweeps[0].axis;
    analysis.structure.varied[axis].numbers = None;
    assert_eq!(broken(&analysis), [12]);
    let mut analysis = Analysis::of(&dataset);
    let numbers = analysis.structure.varied[axis].numbers.as_mut().expect("it is numeric");
    numbers[1] = numbers[0];
    assert_eq!(broken(&analysis), [12], "two levels of one number");
}

#[test]
fn every_format_tells() {
    let mut dataset = fixture::alike(8);
    dataset.run.plan.order = Order::AsWritten;
    let options = fstone_report::Options::default();
    let texts = [
        fstone_report::html(&dataset, &options),
        fstone_report::markdown(&dataset, &options),
        fstone_report::terminal(&dataset, &fstone_report::TerminalOptions { width: 2000, ..Default::default() }),
        fstone_report::json(&dataset, &options),
    ];
    for text in texts {
        assert!(text.contains("trials ran in the order written, so that drift"), "{text}");
    }
}

#[test]
fn figures_beyond_the_device_are_marked() {
    let options = fstone_report::Options::default();
    let with = |read_rate: f64| {
        let mut dataset = fixture::alike(8);
        dataset.run.plan.columns =
            vec![Column { header: "reads".into(), step: "load".into(), metric: catalog::READ_THROUGHPUT.name.into() }];
        dataset.run.inventory.raw_read_bytes_per_second = Some(100e6);
        for (index, trial) in dataset.trials.iter_mut().enumerate() {
            let load = trial.steps.iter_mut().find(|step| step.step == "load").expect("there is one");
            let value = read_rate * (1.0 + 0.001 * index as f64);
            load.figures.push(catalog::READ_THROUGHPUT.figure(value));
        }
        (fstone_report::html(&dataset, &options), fstone_report::markdown(&dataset, &options))
    };
    let (html, markdown) = with(150e6);
    assert!(
        html.contains("class=\"fs-axis fs-device\"") && html.contains("better than the device by itself\">▲"),
        "marked"
    );
    assert!(html.contains("The dotted line is the best of the device alone"), "explained");
    assert!(markdown.contains("▲ better than the device alone"), "{markdown}");
    let (html, markdown) = with(80e6);
    assert!(
        html.contains("class=\"fs-axis fs-device\"") && !html.contains("▲") && !markdown.contains("▲"),
        "{markdown}"
    );
    let (html, _) = with(2e6);
    assert!(!html.contains("class=\"fs-axis fs-device\"") && html.contains("is beyond the axis"), "too far away");
}
