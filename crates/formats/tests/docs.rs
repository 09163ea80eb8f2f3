//! The documentation of the formats: its examples are right.

use fstone_formats::{
    Source, native,
    study::{self, Overrides},
};
use fstone_model::study::FilesystemType;
use std::{fs, path::PathBuf};

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
    let settings = fstone_model::workload::settings::markdown();
    assert!(text.contains(&settings), "docs/workload-file.md needs the table of I/O settings:\n{settings}");
}
