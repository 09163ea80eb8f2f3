//! Every format of realistic runs: snapshots, widths, and figures that agree with the dataset.

use crate::fixture;
use fstone_report::{Options, TerminalOptions, csv, json, markdown, terminal};
use insta::assert_snapshot;
use std::collections::HashMap;

const WITH_PUBLISHED: Options = Options { published: true, answer: fstone_analysis::Length::Long };

fn plain(width: usize) -> TerminalOptions {
    TerminalOptions { width, color: false, options: Options::default() }
}

#[test]
fn terminal_of_a_quick_run() {
    assert_snapshot!(terminal(&fixture::small_file(3), &plain(80)));
}

#[test]
fn terminal_of_ten_repeats_with_published_figures() {
    let options = TerminalOptions { options: WITH_PUBLISHED, ..plain(80) };
    assert_snapshot!(terminal(&fixture::small_file(10), &options));
}

#[test]
fn terminal_of_two_factors() {
    assert_snapshot!(terminal(&fixture::large_file(10), &plain(80)));
}

#[test]
fn terminal_of_sweeps() {
    assert_snapshot!(terminal(&fixture::star(5), &plain(80)));
}

#[test]
fn terminal_of_a_phone() {
    assert_snapshot!(terminal(&fixture::small_file(10), &plain(40)));
}

#[test]
fn terminal_lines_fit_any_width() {
    let datasets = [fixture::small_file(3), fixture::large_file(5), fixture::sweep(2), fixture::many(60, 1, false)];
    for width in [40, 57, 80, 120, 200] {
        for dataset in &datasets {
            let options = TerminalOptions { options: WITH_PUBLISHED, ..plain(width) };
            for line in terminal(dataset, &options).lines() {
                assert!(unicode_width::UnicodeWidthStr::width(line) <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    let dataset = fixture::small_file(5);
    let colored = terminal(&dataset, &TerminalOptions { color: true, ..plain(80) });
    assert!(colored.contains("\x1b[1m"));
    let mut stripped = String::new();
    let mut rest = colored.as_str();
    while let Some(at) = rest.find("\x1b[") {
        stripped.push_str(&rest[..at]);
        rest = &rest[at + rest[at..].find('m').expect("only SGR sequences") + 1..];
    }
    stripped.push_str(rest);
    let plain = terminal(&dataset, &plain(80));
    let trimmed = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(trimmed(&stripped), trimmed(&plain));
}

#[test]
fn markdown_of_a_run() {
    assert_snapshot!(markdown(&fixture::small_file(10), &WITH_PUBLISHED));
}

#[test]
fn markdown_of_two_factors() {
    assert_snapshot!(markdown(&fixture::large_file(3), &Options::default()));
}

#[test]
fn csv_of_a_run() {
    let dataset = fixture::small_file(1);
    assert_snapshot!(csv(&dataset).replace("\r\n", "\n"));
}

/// A reader of RFC 4180, so that the test does not trust the writer.
fn read_csv(text: &str) -> Vec<HashMap<String, String>> {
    let mut records: Vec<Vec<String>> = vec![vec![String::new()]];
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let record = records.last_mut().expect("never empty");
        let field = record.last_mut().expect("never empty");
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(String::new()),
            '\r' if !quoted => {}
            '\n' if !quoted => records.push(vec![String::new()]),
            c => field.push(c),
        }
    }
    assert!(!quoted, "an open quote");
    records.pop();
    let head = records.remove(0);
    records
        .into_iter()
        .map(|record| {
            assert_eq!(record.len(), head.len(), "{record:?}");
            head.iter().cloned().zip(record).collect()
        })
        .collect()
}

#[test]
fn figures_in_csv_are_the_datasets() {
    let dataset = fixture::small_file(4);
    let records = read_csv(&csv(&dataset));
    let mut told = 0;
    for trial in &dataset.trials {
        for step in &trial.steps {
            for figure in &step.figures {
                let found = records.iter().find(|record| {
                    record["cell"] == trial.id.cell.to_string()
                        && record["repetition"] == trial.id.repetition.to_string()
                        && record["step"] == step.step
                        && record["metric"] == figure.metric
                });
                let value: f64 = found.expect("every figure has a row")["value"].parse().expect("a number");
                assert_eq!(value, figure.value);
                told += 1;
            }
        }
    }
    let without = dataset.trials.iter().filter(|trial| trial.steps.is_empty()).count();
    assert_eq!(records.len(), told + without);
}

#[test]
fn figures_in_json_are_the_datasets() {
    let dataset = fixture::small_file(4);
    let document: serde_json::Value = serde_json::from_str(&json(&dataset, &WITH_PUBLISHED)).expect("it is JSON");
    assert_eq!((document["format"].as_str(), document["version"].as_u64()), (Some("fstone-report"), Some(1)));
    let mut told = 0;
    for row in document["rows"].as_array().expect("rows") {
        let cell = u32::try_from(row["cell"].as_u64().expect("a cell")).expect("small");
        for (column, figure) in dataset.run.plan.columns.iter().zip(row["figures"].as_array().expect("figures")) {
            let values: Vec<f64> =
                figure["values"].as_array().expect("values").iter().filter_map(serde_json::Value::as_f64).collect();
            assert_eq!(values, dataset.values(cell, &column.step, &column.metric));
            if values.is_empty() {
                assert!(figure["mean"].is_null());
            } else if column.metric == "time" {
                let mean = figure["mean"].as_f64().expect("a number");
                // Times are compared by ratios, so their mean is geometric; all blocks are complete here, or nearly.
                let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
                let geometric = (logarithms / values.len() as f64).exp();
                let complete = values.len() == 4;
                assert!(
                    (mean / geometric - 1.0).abs() < if complete { 1e-12 } else { 0.02 },
                    "{mean} is not {geometric}"
                );
            }
        }
        for trial in row["trials"].as_array().expect("trials") {
            let repetition = trial["repetition"].as_u64().expect("a repetition");
            let source = dataset
                .trials_of(cell)
                .find(|source| u64::from(source.id.repetition) == repetition)
                .expect("a trial of the dataset");
            assert_eq!(trial["outcome"], source.outcome.word());
            for figure in trial["figures"].as_array().expect("figures") {
                let (step, metric) = (figure["step"].as_str().unwrap(), figure["metric"].as_str().unwrap());
                assert_eq!(figure["value"].as_f64(), source.figure(step, metric).map(|figure| figure.value));
                told += 1;
            }
        }
    }
    assert_eq!(
        told,
        dataset.trials.iter().flat_map(|trial| &trial.steps).map(|step| step.figures.len()).sum::<usize>()
    );
}

#[test]
fn json_shape() {
    let mut document: serde_json::Value =
        serde_json::from_str(&json(&fixture::large_file(2), &Options::default())).expect("it is JSON");
    // One of each is enough to see the shape.
    for list in ["rows", "comparisons"] {
        document[list].as_array_mut().expect("a list").truncate(1);
    }
    document["rows"][0]["trials"].as_array_mut().expect("a list").truncate(1);
    document["run"]["inventory"] = "…".into();
    insta::assert_json_snapshot!(document);
}

#[test]
fn the_same_dataset_gives_the_same_bytes() {
    let dataset = fixture::small_file(3);
    assert_eq!(terminal(&dataset, &plain(80)), terminal(&dataset, &plain(80)));
    assert_eq!(json(&dataset, &WITH_PUBLISHED), json(&dataset, &WITH_PUBLISHED));
}
