//! No bundle that is imported makes a report panic: whatever is in it is refused on its way in, or can be printed.
//!
//! An input is a byte that says what is rendered, and a list of changes to a real run's bundle (`base/report.json`), eight
//! bytes each: where, what, and with which value. The manifest is made here, with hashes that fit. What is imported goes
//! through a store in memory, which all inputs share. Rendering takes longer than importing, so most inputs end in the
//! terminal's report alone.

#![no_main]

use fstone_analysis::{
    Analysis,
    runs::{CompareOptions, History, RunComparison},
};
use fstone_model::Histogram;
use fstone_report::{
    Options, TerminalOptions, compare, csv, csv_summary, history, html, json, markdown, svg_files, terminal,
};
use fstone_store::bundle::Passage;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json as value};
use sha2::{Digest, Sha256};
use std::sync::{LazyLock, Mutex};

static BASE: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../base/report.json")).expect("the base is JSON"));

static STORE: LazyLock<Mutex<Passage>> = LazyLock::new(|| Mutex::new(Passage::new().expect("memory does not fail")));

/// Numbers at which arithmetic breaks.
const NUMBERS: [f64; 16] = [
    0.0,
    1.0,
    -1.0,
    2.0,
    0.5,
    -0.0,
    127.0,
    255.0,
    65536.0,
    4294967295.0,
    1e12,
    9007199254740993.0,
    1e300,
    -1e300,
    5e-324,
    1e-9,
];

/// Texts that mean something to a terminal, a page, a table or this program.
const TEXTS: [&str; 24] = [
    "",
    " ",
    "\u{1b}[2J",
    "</script><script>",
    "a,b\"c\n",
    "\u{202e}rtl",
    "=1+1",
    "|a|b|",
    "load",
    "fsck",
    "CPU",
    "time",
    "transactions per second",
    "seconds",
    "bytes",
    "percent",
    "count",
    "ratio",
    "higher",
    "lower",
    "completed",
    "refused",
    "NaN",
    "-inf",
];

fuzz_target!(|input: &[u8]| {
    let Some((form, changes)) = input.split_first() else { return };
    let mut bundle = BASE.clone();
    for change in changes.chunks_exact(8).take(24) {
        apply(&mut bundle, change);
    }
    match STORE.lock().expect("a panic ends the process").pass(&archive(&bundle)) {
        Err(refusal) => assert!(refusal.to_string().chars().all(|c| !c.is_control()), "{refusal:?}"),
        Ok(dataset) => report(&dataset, form % 32),
    }
});

fn report(dataset: &fstone_model::Dataset, form: u8) {
    let options = Options { published: true };
    match form {
        0 => drop(markdown(dataset, &options)),
        1 => assert!(!html(dataset, &options).contains("</script><script>")),
        2 => drop((csv(dataset), csv_summary(dataset))),
        3 => drop(serde_json::from_str::<Value>(&json(dataset, &options)).expect("a JSON report is JSON")),
        4 => drop(svg_files(dataset, &options)),
        5 => compared(dataset),
        6 => historical(dataset),
        _ => {
            let told = terminal(dataset, &TerminalOptions { width: 80, color: false, options });
            assert!(told.chars().all(|c| !c.is_control() || c == '\n'), "{told:?}");
        }
    }
}

fn compared(dataset: &fstone_model::Dataset) {
    let analysis = Analysis::of(dataset);
    let comparison = RunComparison::of((&analysis, "before"), (&analysis, "after"), &CompareOptions::default());
    drop(compare::terminal(&comparison, 80, false));
    drop(compare::markdown(&comparison));
    drop(compare::html(&comparison, None));
    drop(compare::json(&comparison));
    drop(compare::junit(&comparison));
}

fn historical(dataset: &fstone_model::Dataset) {
    if let Ok(history) = History::of(&[dataset.clone(), dataset.clone()], None, None, &[]) {
        drop(history::terminal(&history, 80, false));
        drop(history::html(&history, None));
        drop(history::json(&history));
    }
}

/// Makes one change: of eight bytes, three say where, one what, and four with what.
fn apply(bundle: &mut Value, change: &[u8]) {
    let place = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize;
    let operand = u32::from_le_bytes([change[4], change[5], change[6], change[7]]);
    let nodes = count(bundle);
    let Some(node) = nth(bundle, &mut (place % nodes)) else { return };
    match change[3] % 10 {
        0 => *node = value!(NUMBERS[operand as usize % NUMBERS.len()]),
        1 => *node = value!(TEXTS[operand as usize % TEXTS.len()]),
        2 => *node = value!(operand),
        3 => *node = value!(u64::MAX >> (operand % 64)),
        4 => *node = Value::Null,
        5 => match node {
            Value::Array(items) if !items.is_empty() => drop(items.remove(operand as usize % items.len())),
            Value::Array(items) => items.push(value!(operand)),
            _ => *node = value!([]),
        },
        6 => {
            if let Value::Array(items) = node
                && items.len() < 64
                && let Some(item) = items.get(operand as usize % items.len().max(1)).cloned()
            {
                items.push(item);
            }
        }
        7 => {
            if let Value::Array(items) = node
                && items.len() > 1
            {
                let length = items.len();
                items.swap(operand as usize % length, (operand >> 16) as usize % length);
            }
        }
        8 => *node = value!("x".repeat(operand as usize % 600)),
        _ => {
            // Their sum has to be a number that JSON's readers take.
            let values: Vec<u64> =
                (0..operand % 5).map(|at| (u64::MAX >> 3) >> (operand >> (5 * at) & 63).min(61)).collect();
            *node = serde_json::to_value(Histogram::from_values(&values)).expect("a histogram is JSON");
        }
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

/// The node that comes after `left` others, parents first.
fn nth<'v>(value: &'v mut Value, left: &mut usize) -> Option<&'v mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, left)),
        Value::Object(fields) => fields.values_mut().find_map(|field| nth(field, left)),
        _ => None,
    }
}

fn archive(bundle: &Value) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut listed = Vec::new();
    let mut add = |name: &str, content: &[u8]| {
        append(&mut archive, name, content);
        let sha256: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        listed.push(value!({ "path": name, "bytes": content.len(), "sha256": sha256 }));
    };
    let bytes = |value: &Value| serde_json::to_vec(value).expect("JSON");
    add("fstone-bundle.json", br#"{"format":"fstone bundle","version":1}"#);
    add("run.json", &bytes(&bundle["run"]));
    add("study/study.toml", bundle["run"]["plan"]["source"].as_str().unwrap_or_default().as_bytes());
    for (index, trial) in bundle["trials"].as_array().into_iter().flatten().enumerate() {
        add(&format!("trials/{index:06}.json"), &bytes(trial));
    }
    append(&mut archive, "manifest.json", &bytes(&value!({ "files": listed })));
    archive.into_inner().expect("memory does not fail")
}

fn append(archive: &mut tar::Builder<Vec<u8>>, name: &str, content: &[u8]) {
    let mut header = tar::Header::new_ustar();
    header.set_size(content.len() as u64);
    archive.append_data(&mut header, name, content).expect("memory does not fail");
}
