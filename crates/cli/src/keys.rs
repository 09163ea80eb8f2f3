//! Every key of the study file and of the workload file, as a help text and as a part of the manual.

use clap_mangen::roff::{Roff, bold, roman};
use fstone_formats::{KeyReference, native, study};

/// From this many keys on, a row of keys that an earlier table has as well is not described again.
const REPEATED: usize = 4;

enum Entry {
    Table(String),
    /// A key, or several that another table has as well, and what they mean.
    Keys(String, String),
}

fn entries(reference: &[KeyReference]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let tables: Vec<&[KeyReference]> = reference.chunk_by(|a, b| a.table == b.table).collect();
    for (number, keys) in tables.iter().enumerate() {
        entries.push(Entry::Table(if keys[0].table.is_empty() { "Top level" } else { keys[0].table }.to_owned()));
        let mut rest = *keys;
        while let Some(key) = rest.first() {
            let earlier = tables[..number].iter().map(|table| (alike(rest, table), table[0].table));
            // `max_by_key` takes the last of several, so the order is reversed to get the first.
            let (length, table) = earlier.rev().max_by_key(|(length, _)| *length).unwrap_or((0, ""));
            if length >= REPEATED {
                let names: Vec<&str> = rest[..length].iter().map(|key| key.name).collect();
                entries.push(Entry::Keys(names.join(", "), format!("As in `{table}`.")));
                rest = &rest[length..];
                continue;
            }
            let required = if key.required { " (required)" } else { "" };
            entries.push(Entry::Keys(format!("{}{required}", key.name), key.about.clone()));
            rest = &rest[1..];
        }
    }
    entries
}

/// How many keys at the start of these are in a row in that table.
fn alike(keys: &[KeyReference], table: &[KeyReference]) -> usize {
    let same =
        |(a, b): &(&KeyReference, &KeyReference)| (a.name, &a.about, a.required) == (b.name, &b.about, b.required);
    let from = |start: usize| keys.iter().zip(&table[start..]).take_while(same).count();
    (0..table.len()).map(from).max().unwrap_or(0)
}

fn text(reference: &[KeyReference]) -> String {
    let line = |entry: &Entry| match entry {
        Entry::Table(name) => format!("\n{name}:\n"),
        Entry::Keys(names, about) => format!("  {names}\n          {about}\n"),
    };
    entries(reference).iter().map(line).collect::<String>().trim_start().to_owned()
}

pub(crate) fn of_study() -> String {
    text(&study::reference())
}

pub(crate) fn of_workload() -> String {
    text(&native::reference())
}

/// The keys as sections of a page of the manual, if the command of this name lists some.
pub(crate) fn sections(command: &str) -> Option<Roff> {
    let reference = match command {
        "study" => study::reference(),
        "workload" => native::reference(),
        _ => return None,
    };
    let mut page = Roff::new();
    for entry in entries(&reference) {
        match entry {
            Entry::Table(name) => page.control("SH", [name.as_str()]),
            Entry::Keys(names, about) => page.control("TP", []).text([bold(names)]).text([roman(about)]),
        };
    }
    Some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_listed_in_the_help_and_in_the_manual() {
        for (command, text, reference) in
            [("study", of_study(), study::reference()), ("workload", of_workload(), native::reference())]
        {
            let page = sections(command).expect("it has keys").render();
            assert!(reference.len() > 80, "{command}");
            for key in reference {
                assert!(key.table.is_empty() || text.contains(&format!("\n{}:\n", key.table)), "{}", key.table);
                let names = |line: &str| line.split(", ").any(|name| name.trim_end_matches(" (required)") == key.name);
                assert!(text.lines().filter_map(|line| line.strip_prefix("  ")).any(names), "{}", key.name);
                assert!(page.contains(&key.name.replace('-', "\\-")), "{}", key.name);
            }
        }
        assert!(sections("run").is_none());
    }

    #[test]
    fn repeated_keys_refer_to_the_first_table() {
        let text = of_study();
        assert!(text.contains("queue-depth, ranks\n          As in `factor`.\n"), "{text}");
        assert_eq!(text.matches("Requests in flight per thread.").count(), 1, "{text}");
    }
}
