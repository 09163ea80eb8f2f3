//! No bundle that is imported makes a report panic: whatever is in it is refused on its way in, or can be printed.
//!
//! An input is a list of changes to a real run's bundle (`base/report.json`), eight bytes each: which value, what is done
//! to it, and with what. Every input is read as a bundle's content is. How far it goes from there depends on the sum of
//! its bytes, so that what is expensive stays a known share whatever the corpus has: one in 16 is put into an archive and
//! goes through a store in memory, which all inputs share, and one in 64 of all is rendered in one of the slow formats.

#![no_main]

#[path = "../changes/json.rs"]
mod json_document;

use fstone_analysis::{
    Analysis,
    runs::{CompareOptions, History, RunComparison},
};
use fstone_model::Dataset;
use fstone_report::{
    Options, TerminalOptions, compare, csv, history, html, json, markdown, svg_files, terminal,
};
use fstone_store::bundle::{Passage, read_parts};
use json_document::{Document, Edit};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json as value};
use sha2::{Digest, Sha256};
use std::sync::{LazyLock, Mutex};

/// The run and each of its trials, as the bundle has them.
static BASE: LazyLock<Vec<Document>> = LazyLock::new(|| {
    let base: Value = serde_json::from_str(include_str!("../base/report.json")).expect("the base is JSON");
    let trials = base["trials"].as_array().expect("trials are a list");
    std::iter::once(&base["run"]).chain(trials).map(Document::of).collect()
});

static STORE: LazyLock<Mutex<Passage>> = LazyLock::new(|| Mutex::new(Passage::new().expect("memory does not fail")));

/// Bytes of one change.
const CHANGE: usize = 8;

fuzz_target!(|input: &[u8]| {
    let share = input.iter().fold(input.len(), |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let parts = changed(input);
    let taken = if share % 16 == 1 {
        STORE.lock().expect("a panic ends the process").pass(&archive(&parts)).map_err(|refusal| refusal.to_string())
    } else {
        read_parts(&parts[0], &parts[1..]).map_err(|refusal| refusal.to_string())
    };
    match taken {
        Err(refusal) => assert!(refusal.chars().all(|c| !c.is_control()), "{refusal:?}"),
        Ok(dataset) if share % 64 == 1 => slowly(&dataset, share / 64 % 8),
        Ok(dataset) => drop(csv(&dataset)),
    }
});

/// The texts of the run and its trials with the input's changes.
fn changed(input: &[u8]) -> Vec<String> {
    let mut edits: Vec<Vec<Edit>> = BASE.iter().map(|_| Vec::new()).collect();
    let nodes: usize = BASE.iter().map(Document::nodes).sum();
    for change in input.chunks_exact(CHANGE) {
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
        let (mut node, what, operand) = (number(&change[..3]) as usize % nodes, change[3], number(&change[4..]));
        for (document, edits) in BASE.iter().zip(&mut edits) {
            if node < document.nodes() {
                edits.push(document.edit(node, what, operand));
                break;
            }
            node -= document.nodes();
        }
    }
    BASE.iter().zip(&mut edits).map(|(document, edits)| document.with(edits)).collect()
}

fn slowly(dataset: &Dataset, form: usize) {
    let options = Options { published: true, ..Options::default() };
    match form {
        0 => drop(markdown(dataset, &options)),
        1 => assert!(!html(dataset, &options).contains("</script><script>")),
        2 => drop(csv(dataset)),
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

fn compared(dataset: &Dataset) {
    let analysis = Analysis::of(dataset);
    let comparison = RunComparison::of((&analysis, "before"), (&analysis, "after"), &CompareOptions::default());
    drop(compare::terminal(&comparison, 80, false));
    drop(compare::markdown(&comparison));
    drop(compare::html(&comparison, None));
    drop(compare::json(&comparison));
    drop(compare::junit(&comparison));
}

fn historical(dataset: &Dataset) {
    if let Ok(history) = History::of(&[dataset.clone(), dataset.clone()], None, None, &[]) {
        drop(history::terminal(&history, 80, false));
        drop(history::html(&history, None));
        drop(history::json(&history));
    }
}

/// A bundle before its compression, with hashes that fit.
fn archive(parts: &[String]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut listed = Vec::new();
    let mut add = |name: &str, content: &[u8]| {
        append(&mut archive, name, content);
        let sha256: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        listed.push(value!({ "path": name, "bytes": content.len(), "sha256": sha256 }));
    };
    let run: Value = serde_json::from_str(&parts[0]).unwrap_or_default();
    add("fstone-bundle.json", br#"{"format":"fstone bundle","version":1}"#);
    add("run.json", parts[0].as_bytes());
    add("study/study.toml", run["plan"]["source"].as_str().unwrap_or_default().as_bytes());
    for (index, trial) in parts[1..].iter().enumerate() {
        add(&format!("trials/{index:06}.json"), trial.as_bytes());
    }
    let manifest = serde_json::to_vec(&value!({ "files": listed })).expect("JSON");
    append(&mut archive, "manifest.json", &manifest);
    archive.into_inner().expect("memory does not fail")
}

fn append(archive: &mut tar::Builder<Vec<u8>>, name: &str, content: &[u8]) {
    let mut header = tar::Header::new_ustar();
    header.set_size(content.len() as u64);
    archive.append_data(&mut header, name, content).expect("memory does not fail");
}
