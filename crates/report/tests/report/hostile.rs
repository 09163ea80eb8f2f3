//! Names that would act on a reader's terminal, browser, spreadsheet or forge, if they could.

use crate::fixture::{self, Fs, Nature, Random};
use fstone_model::{
    Dataset, Outcome,
    outcome::Reason,
    study::{Published, PublishedFigure},
};
use fstone_report::{Options, TerminalOptions, csv, json, markdown, terminal};

pub(crate) const SCRIPT: &str = "<script>alert(1)</script>";
const ESCAPE: &str = "\x1b]0;owned\x07\x1b[2J";
const FORMULA: &str = "=HYPERLINK(\"http://x\",\"y\")";
const TABLE: &str = "a | b\n| --- |\n`x` ![i](http://x)";

pub(crate) fn dataset() -> Dataset {
    let mut plan = fixture::plan(SCRIPT, SCRIPT, 2, &[("</th>\x1b[31m | x", "load", "transactions per second")]);
    let names = [
        Fs(SCRIPT, "ext4", SCRIPT, SCRIPT),
        Fs(ESCAPE, "ext4", "", ""),
        Fs(FORMULA, "ext4", "", ""),
        Fs(TABLE, "ext4", "", ""),
    ];
    fixture::cross(&mut plan, &names, &[]);
    plan.about = format!("{SCRIPT}\n\n{ESCAPE}");
    plan.source = format!("{SCRIPT}{ESCAPE}</pre>");
    plan.attachments = vec![(SCRIPT.into(), "</script><b>".into())];
    plan.published = Some(Published {
        memory_bytes: None,
        model: None,
        source: format!("{SCRIPT}{ESCAPE}"),
        figures: vec![PublishedFigure {
            cell: SCRIPT.into(),
            column: "</th>\x1b[31m | x".into(),
            value: Some(1.0),
            note: Some(format!("{SCRIPT}{ESCAPE}|")),
        }],
    });
    plan.baseline = Some(0);
    let mut dataset = fixture::dataset(plan);
    let nature = |_: &fstone_model::Cell| Some(Nature { figures: vec![(100.0, 0.01)] });
    let load = |_: &fstone_model::Cell, random: &mut Random, rate: f64| {
        let mut report = fixture::load_report(random, rate, 5);
        report.operations[0].name = format!("{SCRIPT}{ESCAPE}");
        report.warnings.push(format!("{SCRIPT}{ESCAPE}"));
        Some(report)
    };
    fixture::complete(&mut dataset, 2, &mut Random::new(1), &nature, &load);
    let words = format!("{SCRIPT}{ESCAPE}\n{TABLE}");
    fixture::unsuccessful(&mut dataset, 3, 2, 9, Outcome::Failed(Reason::new(SCRIPT, words).with_cure(ESCAPE)));
    for trial in &mut dataset.trials {
        trial.warnings.push(format!("{SCRIPT}{ESCAPE}{TABLE}"));
        trial.effective.mount = Some(format!("{SCRIPT}{ESCAPE}"));
        trial.effective.superblock = vec![(SCRIPT.into(), ESCAPE.into())];
    }
    dataset.run.inventory.host = format!("{SCRIPT}{ESCAPE}");
    dataset.run.inventory.settings = vec![(SCRIPT.into(), ESCAPE.into())];
    dataset.run.note = Some(TABLE.replace('\n', " ").try_into().expect("a line"));
    dataset.run.command = vec![SCRIPT.into(), ESCAPE.into()];
    dataset
}

#[test]
fn nothing_reaches_a_terminal_but_colour() {
    let dataset = dataset();
    let options =
        TerminalOptions { width: 80, color: false, options: Options { published: true, ..Options::default() } };
    let text = terminal(&dataset, &options);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    assert!(text.contains('␛'), "what was there is still seen");
    for text in [markdown(&dataset, &Options { published: true, ..Options::default() }), csv(&dataset)] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\r'), "{text:?}");
    }
}

#[test]
fn markdown_stays_one_table_and_no_html() {
    let text = markdown(&dataset(), &Options { published: true, ..Options::default() });
    assert!(!text.contains("<script") && !text.contains("![") && !text.contains("http://"), "{text}");
    let bars = |line: &str| {
        let unescaped = line.replace("\\\\", "").replace("\\|", "");
        unescaped.matches('|').count()
    };
    let tables = text.split("\n\n").filter(|block| block.starts_with("| "));
    let mut count = 0;
    for table in tables {
        let mut widths: Vec<usize> = table.lines().map(bars).collect();
        widths.dedup();
        assert_eq!(widths.len(), 1, "every line of a table has as many cells: {table}");
        count += 1;
    }
    assert_eq!(count, 2);
}

#[test]
fn csv_has_no_formula_and_no_stray_line() {
    let dataset = dataset();
    let text = csv(&dataset);
    let records: Vec<&str> = text.split_terminator("\r\n").collect();
    assert!(records.iter().all(|record| !record.contains('\n')));
    for field in records.iter().flat_map(|record| record.split(',')) {
        let field = field.trim_start_matches('"');
        assert!(!field.starts_with(['=', '+', '@', '\t']), "{field}");
    }
}

#[test]
fn json_is_json() {
    let text = json(&dataset(), &Options { published: true, ..Options::default() });
    let _: serde_json::Value = serde_json::from_str(&text).expect("it parses");
}
