//! The documentation of the formats: its examples are right, and its list of keys is the decoders' own.
//! `FSTONE_BLESS=1` rewrites the list.

use fstone_formats::{
    KeyReference, Source, native,
    study::{self, Overrides},
};
use fstone_model::study::FilesystemType;
use std::{fs, path::PathBuf};

const OPENING: &str = "<!-- keys -->\n";
const CLOSING: &str = "<!-- /keys -->";

/// What the adapters know.
fn types() -> Vec<FilesystemType> {
    fstone_lab::filesystem::types().collect()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).expect("the documentation is part of the source")
}

fn examples(text: &str) -> Vec<&str> {
    text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().expect("split gives one")).collect()
}

/// So many keys in a row are not listed twice.
const REPEATED: usize = 4;

/// The keys of each table. Those that an earlier table has, too, are only named.
fn list(reference: &[KeyReference]) -> String {
    let mut text = String::new();
    let tables: Vec<&[KeyReference]> = reference.chunk_by(|a, b| a.table == b.table).collect();
    for (number, keys) in tables.iter().enumerate() {
        let heading = if keys[0].table.is_empty() { "At the top".to_owned() } else { format!("`{}`", keys[0].table) };
        text.push_str(&format!("\n### {heading}\n\n"));
        let mut rest = *keys;
        while let Some(key) = rest.first() {
            let earlier = tables[..number].iter().map(|table| (alike(rest, table), table[0].table));
            // Of several, the first one.
            let (length, table) = earlier.rev().max_by_key(|(length, _)| *length).unwrap_or((0, ""));
            if length >= REPEATED {
                let names: Vec<String> = rest[..length].iter().map(|key| format!("`{}`", key.name)).collect();
                text.push_str(&format!("- {}: as in `{table}`\n", names.join(", ")));
                rest = &rest[length..];
                continue;
            }
            let required = if key.required { " (required)" } else { "" };
            text.push_str(&format!("- `{}`{required}: {}\n", key.name, key.about));
            rest = &rest[1..];
        }
    }
    text.push('\n');
    text
}

/// How many keys at the start of these stand in a row in that table.
fn alike(keys: &[KeyReference], table: &[KeyReference]) -> usize {
    let told = |key: &KeyReference| (key.name, key.about.clone(), key.required);
    let same = |(a, b): &(&KeyReference, &KeyReference)| told(a) == told(b);
    let from = |start: usize| keys.iter().zip(&table[start..]).take_while(same).count();
    (0..table.len()).map(from).max().unwrap_or(0)
}

fn check_list(name: &str, reference: &[KeyReference]) {
    let text = read(name);
    let (before, rest) = text.split_once(OPENING).expect("the list has its place");
    let (found, after) = rest.split_once(CLOSING).expect("the list has an end");
    let wanted = list(reference);
    if std::env::var_os("FSTONE_BLESS").is_some() {
        fs::write(path(name), format!("{before}{OPENING}{wanted}{CLOSING}{after}"))
            .expect("the documentation can be written");
        return;
    }
    assert_eq!(found, wanted, "docs/{name} is out of date: FSTONE_BLESS=1 cargo test -p fstone-formats --test docs");
}

#[test]
fn the_study_file_is_documented() {
    let text = read("study-file.md");
    assert!(examples(&text).len() >= 3);
    let loader = |name: &str| fs::read_to_string(path("../studies").join(name)).map_err(|error| error.to_string());
    for example in examples(&text) {
        let source = Source::new("study-file.md", example);
        let plan = study::compile(&source, &loader, &types(), &Overrides::default());
        assert!(!plan.unwrap_or_else(|diagnostics| panic!("{diagnostics}")).cells.is_empty());
    }
    check_list("study-file.md", &study::reference());
}

#[test]
fn every_metric_is_documented() {
    let text = read("study-file.md");
    for metric in fstone_model::metric::catalog::ALL {
        // Latencies are documented by the pattern of their names.
        assert!(text.contains(&format!("`{}`", metric.name)) || metric.name.contains(" latency p"), "{}", metric.name);
    }
}

#[test]
fn the_workload_file_is_documented() {
    let text = read("workload-file.md");
    assert!(examples(&text).len() >= 2);
    for example in examples(&text) {
        let workload = native::parse(&Source::new("workload-file.md", example));
        assert!(workload.unwrap_or_else(|diagnostics| panic!("{diagnostics}")).threads() > 0);
    }
    check_list("workload-file.md", &native::reference());
}
