//! Properties that applications would like to rely on, each tried by a sequence made for it.

use super::words::again;
use fstone_engine::sequences::{Property, Sequence};
use fstone_lab::run::explore::SequenceFound;
use fstone_model::text;
use std::collections::BTreeMap;

/// A row of the table: the property, the sequence that tests it, and which part of the result matters.
struct Probe {
    asked: &'static str,
    sequence: &'static str,
    about: &'static str,
}

const fn probe(asked: &'static str, sequence: &'static str, about: &'static str) -> Probe {
    Probe { asked, sequence, about }
}

const NAMES: &str = Property::SyncedNames.name();

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
    out + &counterexamples(columns) + &troubles(columns)
}

/// "kept in 120" states in which it could have been broken, or "no: 12 of 120" lack it.
fn cell(probe: &Probe, found: Option<&SequenceFound>) -> String {
    match found {
        None => "not tried".to_owned(),
        Some(found) if found.refused.is_some() => "refused".to_owned(),
        Some(found) if found.ended.is_some() => "the guest ended".to_owned(),
        Some(found) if found.mounted == 0 => "never mounted".to_owned(),
        Some(found) => {
            let at_stake = found.at_stake.get(probe.about).copied().unwrap_or(0);
            match found.lacking.get(probe.about) {
                Some((lacking, ..)) => format!("no: {lacking} of {at_stake}"),
                None if at_stake == 0 => "no state shows it".to_owned(),
                None => format!("kept in {at_stake}"),
            }
        }
    }
}

fn counterexamples(columns: &[Column]) -> String {
    let mut out = String::new();
    for (name, found) in columns {
        for probe in &PROBES {
            let Some(found) = found.get(probe.sequence) else { continue };
            let Some((_, state, words)) = found.lacking.get(probe.about) else { continue };
            out.push_str(&format!("  {}: {}: {state}: {}\n", text::line(name), probe.sequence, text::line(words)));
            out.push_str(&again(found, state));
        }
    }
    if out.is_empty() { out } else { format!("\nThe first state that shows it:\n{out}") }
}

/// What is wrong whichever properties a program relies on; the exit status reflects it.
fn troubles(columns: &[Column]) -> String {
    let mut out = String::new();
    for (name, found) in columns {
        let sum = |figure: fn(&SequenceFound) -> u64| found.values().map(figure).sum::<u64>();
        let (states, mounted, checked, clean) = (
            sum(|found| found.states),
            sum(|found| found.mounted),
            sum(|found| found.checked),
            sum(|found| found.clean),
        );
        let ended = found.values().filter(|found| found.ended.is_some()).count();
        let lossy = sum(|found| found.lossy) - (states - mounted);
        let wrong = [
            (states - mounted, format!("of {states} states could not be mounted")),
            (lossy, format!("of {mounted} lost what a call had persisted")),
            (checked - clean, format!("of {checked} were not clean by the filesystem's own check")),
            (ended as u64, format!("of {} sequences ended the guest", found.len())),
        ];
        let wrong: Vec<String> =
            wrong.iter().filter(|(number, _)| *number > 0).map(|(number, words)| format!("{number} {words}")).collect();
        if wrong.is_empty() {
            continue;
        }
        out.push_str(&format!("  {}: {}\n", text::line(name), wrong.join(", ")));
        for (sequence, found) in found {
            if let Some(words) = &found.ended {
                out.push_str(&format!("    {sequence}: {}\n", text::line(words)));
            }
            if let Some(state) = &found.ended_in {
                out.push_str(&again(found, state));
            }
        }
        let first = found.iter().find_map(|(sequence, found)| Some((sequence, found, found.told.first()?)));
        if let Some((sequence, found, (state, words))) = first {
            out.push_str(&format!("    {sequence}: {state}: {}\n{}", text::line(words), again(found, state)));
        }
    }
    if out.is_empty() { out } else { format!("\nFaults in any case:\n{out}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_is_tried_and_told() {
        assert_eq!(sequences().len(), PROBES.len() - 1, "two are about the same sequence");
        let probed = |name: &str| PROBES.iter().map(|probe| (probe.about.to_owned(), 5)).chain([(name.to_owned(), 3)]);
        let at_stake = probed(Property::Zeros.name()).collect();
        let mut kept = SequenceFound { states: 8, mounted: 7, lossy: 1, at_stake, ..SequenceFound::default() };
        let all =
            |found: &SequenceFound| PROBES.iter().map(|probe| (probe.sequence.to_owned(), found.clone())).collect();
        let unmounted = ("good".to_owned(), all(&kept));
        kept.lacking.insert("order".into(), (2, "5-all-0".into(), "changed: m".into()));
        kept.log = Some("x.disk-log".into());
        (kept.states, kept.lossy) = (7, 0);
        kept.at_stake.remove(Property::Stale.name());
        let loose = ("loose".to_owned(), all(&kept));
        (kept.checked, kept.clean) = (7, 4);
        kept.ended = Some("crashed: a fault".into());
        let ended = ("ended".to_owned(), all(&kept));
        let table = table(&[unmounted, loose, ("none".to_owned(), BTreeMap::new()), ended]);
        let cells = |asked: &str| -> Vec<String> {
            let line = table.lines().find(|line| line.starts_with(asked)).unwrap_or_else(|| panic!("{asked}: {table}"));
            let words = line.split("  ").map(str::trim).filter(|word| !word.is_empty());
            words.skip(1).map(str::to_owned).collect()
        };
        let order = "unsynced calls are kept in order, in a directory";
        assert_eq!(cells(order), ["kept in 5", "no: 2 of 5", "not tried", "the guest ended"]);
        assert_eq!(cells("appended data is never zeros")[0], "kept in 3");
        assert_eq!(cells("appended data is never stale")[1], "no state shows it");
        assert_eq!(table.matches("  loose: ").count(), 2, "nothing is wrong but the two properties: {table}");
        assert!(
            table.contains("5-all-0: changed: m\n    fstone crash-state x.disk-log 5-all-0 --image FILE"),
            "{table}"
        );
        let wrong = |name: &str| table.lines().rfind(|line| line.starts_with(&format!("  {name}: "))).unwrap();
        assert_eq!(wrong("good"), "  good: 9 of 72 states could not be mounted");
        assert_eq!(
            wrong("ended"),
            "  ended: 27 of 63 were not clean by the filesystem's own check, 9 of 9 sequences ended the guest"
        );
    }
}
