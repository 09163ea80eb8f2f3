//! Properties that applications would like to rely on, each tried by a sequence made for it.

use fstone_engine::sequences::{Aspect, Property, Sequence};
use fstone_lab::run::explore::SequenceFound;
use fstone_model::text;
use std::collections::BTreeMap;

/// A row of the table: what is asked, the sequence that tries it, and what of it is looked at.
struct Probe {
    asked: &'static str,
    sequence: &'static str,
    about: &'static str,
}

const fn probe(asked: &'static str, sequence: &'static str, about: &'static str) -> Probe {
    Probe { asked, sequence, about }
}

const NAMES: &str = Aspect::Names.name();

const PROBES: [Probe; 10] = [
    probe("fsync of a new file persists its name", "create n; write n 0 8192; fsync n", NAMES),
    probe("… and that of its new directory", "mkdir N; create N/n; fsync N/n", NAMES),
    probe("fsync of a renamed file persists the new name", "rename a n; fsync n", NAMES),
    probe("fsync of a linked file persists all its names", "link a A/n; fsync a", NAMES),
    probe(
        "rename over a file is atomic, with fsync before",
        "create n; write n 0 8192; fsync n; rename n b; sync",
        Property::Replacement.name(),
    ),
    probe(
        "rename over a file is atomic, without",
        "create n; write n 0 8192; rename n b; sync",
        Property::Replacement.name(),
    ),
    probe("appended data is never zeros", "write a 16384 16384; sync", Property::Zeros.name()),
    probe("appended data is never stale", "write a 16384 16384; sync", Property::Stale.name()),
    probe(
        "unsynced calls are kept in order, in a directory",
        "create n; mkdir N; rename s t; unlink h; create m; sync",
        Property::Order.name(),
    ),
    probe(
        "unsynced calls are kept in order, in several",
        "create A/n; create B/n; rename a C/a; unlink A/h; mkdir N; sync",
        Property::Order.name(),
    ),
];

/// Every sequence once.
pub(super) fn sequences() -> Vec<Sequence> {
    let mut sequences: Vec<Sequence> = Vec::new();
    for probe in &PROBES {
        let sequence: Sequence = probe.sequence.parse().expect("a test reads all of them");
        if !sequences.contains(&sequence) {
            sequences.push(sequence);
        }
    }
    sequences
}

/// What each filesystem's sequences gave, by their texts.
pub(super) type Column = (String, BTreeMap<String, SequenceFound>);

/// The table, and a counterexample of each property that is not kept.
pub(super) fn table(columns: &[Column]) -> String {
    let cells: Vec<Vec<String>> = PROBES
        .iter()
        .map(|probe| columns.iter().map(|(_, found)| cell(probe, found.get(probe.sequence))).collect())
        .collect();
    let first = PROBES.iter().map(|probe| probe.asked.chars().count()).max().unwrap_or(0);
    let width = |number: usize| {
        let head = text::line(&columns[number].0).chars().count();
        cells.iter().map(|row| row[number].chars().count()).chain([head]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut out = format!("{:first$}", "");
    for ((name, _), width) in columns.iter().zip(&widths) {
        out.push_str(&format!("  {:<width$}", text::line(name)));
    }
    out.push('\n');
    for (probe, row) in PROBES.iter().zip(&cells) {
        out.push_str(&format!("{:<first$}", probe.asked));
        for (cell, width) in row.iter().zip(&widths) {
            out.push_str(&format!("  {cell:<width$}"));
        }
        out.push('\n');
    }
    let out = out.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>();
    out + &counterexamples(columns)
}

/// "kept in 120" states, or "12 of 120 lack it".
fn cell(probe: &Probe, found: Option<&SequenceFound>) -> String {
    match found {
        None => "not tried".to_owned(),
        Some(found) if found.refused.is_some() => "refused".to_owned(),
        Some(found) if found.ended.is_some() => "the guest ended".to_owned(),
        Some(found) if found.mounted == 0 => "never mounted".to_owned(),
        Some(found) => match found.lacking.get(probe.about) {
            Some((lacking, ..)) => format!("no: {lacking} of {}", found.mounted),
            None if found.mounted < found.states => {
                format!("kept in {} of {} that mounted", found.mounted, found.states)
            }
            None => format!("kept in {}", found.mounted),
        },
    }
}

fn counterexamples(columns: &[Column]) -> String {
    let mut out = String::new();
    for (name, found) in columns {
        for probe in &PROBES {
            let Some(found) = found.get(probe.sequence) else { continue };
            let Some((_, state, words)) = found.lacking.get(probe.about) else { continue };
            out.push_str(&format!("  {}: {}: {state}: {}\n", text::line(name), probe.sequence, text::line(words)));
        }
    }
    if out.is_empty() { out } else { format!("\nThe first state that shows it:\n{out}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_is_tried_and_told() {
        assert_eq!(sequences().len(), PROBES.len() - 1, "two are about the same sequence");
        let mut kept = SequenceFound { mounted: 7, ..SequenceFound::default() };
        let all =
            |found: &SequenceFound| PROBES.iter().map(|probe| (probe.sequence.to_owned(), found.clone())).collect();
        let sound = ("good".to_owned(), all(&kept));
        kept.lacking.insert("order".into(), (2, "5-all-0".into(), "changed: m".into()));
        let loose = ("loose".to_owned(), all(&kept));
        let table = table(&[sound, loose, ("none".to_owned(), BTreeMap::new())]);
        let order = table.lines().find(|line| line.starts_with("unsynced calls are kept in order, in a")).unwrap();
        let words: Vec<&str> = order.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        assert_eq!(words[1..], ["kept in 7", "no: 2 of 7", "not tried"]);
        assert_eq!(table.matches("loose: ").count(), 2, "{table}");
        assert!(table.contains("5-all-0: changed: m"), "{table}");
    }
}
