//! A comparison as one self-contained page without scripts.

use crate::{
    analysis::runs::{RunComparison, Verdict, caveat, change, interval_name, percent, probability},
    html::css,
    legend::NOTHING,
    svg::{NARROW, WIDE, forest},
    when,
};
use askama::Template;

#[derive(Template)]
#[template(path = "compare.html")]
struct Page {
    css: String,
    title: String,
    kicker: String,
    facts: Vec<String>,
    notes: Vec<String>,
    sentences: Vec<String>,
    columns: Vec<Column>,
    outcomes: Vec<String>,
    changes: Vec<(String, String, String)>,
    unmatched: Vec<String>,
    caveat: String,
    threshold: String,
    back: Option<String>,
}

struct Column {
    id: String,
    header: String,
    direction: &'static str,
    unit: &'static str,
    interval: String,
    rows: Vec<Row>,
    plot: Option<String>,
}

struct Row {
    label: String,
    before: String,
    after: String,
    change: String,
    interval: String,
    p: String,
    verdict: &'static str,
    class: &'static str,
}

/// A comparison as an HTML page; `back` is the address of the page it was reached from, for a link.
pub fn html(comparison: &RunComparison<'_>, back: Option<&str>) -> String {
    let run = |name: &str, analysis: &crate::Analysis<'_>| {
        let run = &analysis.dataset.run;
        let kernel = run.kernel();
        let host = crate::text::line(&run.inventory.host);
        let facts = [super::at_the_start(name), when::minute(run.started_unix_ns), host, kernel];
        crate::text::joined(&facts, " · ")
    };
    let plan = &comparison.baseline.dataset.run.plan;
    Page {
        css: css(),
        title: super::title(comparison),
        kicker: format!("{} · comparison", crate::text::line(&plan.title)),
        facts: vec![
            format!("Before: {}", run(&comparison.baseline_name, comparison.baseline)),
            format!("After: {}", run(&comparison.other_name, comparison.other)),
        ],
        notes: comparison.note_lines(),
        sentences: comparison.sentences(),
        columns: (0..comparison.columns.len()).map(|index| column(comparison, index)).collect(),
        outcomes: comparison.outcome_lines(),
        changes: comparison
            .changes
            .iter()
            .map(|change| (change.what.clone(), change.baseline.clone(), change.other.clone()))
            .collect(),
        unmatched: comparison.unmatched_lines(),
        caveat: caveat(comparison),
        threshold: percent(comparison.threshold),
        back: back.map(str::to_owned),
    }
    .render()
    .expect("writing to a string does not fail")
}

fn column(comparison: &RunComparison<'_>, index: usize) -> Column {
    let column = &comparison.columns[index];
    let number = |value: Option<f64>| value.map_or_else(|| NOTHING.to_owned(), |value| column.scale.number(value));
    let rows = column
        .figures
        .iter()
        .map(|figure| {
            let told = figure.pair.map(|pair| (change(column, &pair), probability(&pair)));
            let ((change, interval), p) = told.unwrap_or_else(|| ((NOTHING.to_owned(), String::new()), String::new()));
            Row {
                label: figure.label.clone(),
                before: number(figure.before()),
                after: number(figure.after()),
                change,
                interval,
                p,
                verdict: figure.verdict.word(),
                class: match figure.verdict {
                    Verdict::Regression => "worse",
                    Verdict::Improvement | Verdict::Difference => "better",
                    _ => "soft",
                },
            }
        })
        .collect();
    let plot = forest(column, comparison.threshold, WIDE, "fs-wide")
        .zip(forest(column, comparison.threshold, NARROW, "fs-narrow"))
        .map(|(wide, narrow)| format!("{wide}{narrow}"));
    Column {
        id: format!("column-{index}"),
        header: column.header.clone(),
        direction: column.better.words(),
        unit: column.scale.symbol,
        interval: interval_name(&column.figures),
        rows,
        plot,
    }
}
