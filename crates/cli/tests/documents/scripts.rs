//! The scripts that write docs/results, with a fstone that answers as the real one.

use crate::support::{Bench, tool};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
};

/// A copy of the scripts, with a program in place of fstone that notes what it is asked for.
fn bench_with(fstone: &str) -> Bench {
    let bench = Bench::new();
    fs::create_dir(bench.path("scripts")).expect("ours");
    for script in ["results", "quick-results", "findings"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(script);
        fs::copy(from, bench.path("scripts").join(script)).expect("it is part of the source");
    }
    let program = bench.path("fstone");
    fs::write(&program, format!("#!/bin/sh\necho \"$*\" >>\"$(dirname \"$0\")/asked\"\n{fstone}\n")).expect("ours");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
    bench
}

fn run(bench: &Bench, script: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(bench.path("scripts").join(script));
    let command = command.args(arguments).current_dir(bench.path("")).env("FSTONE", bench.path("fstone"));
    command.output().expect("it starts")
}

#[test]
fn results_remove_no_directory_but_a_studys() {
    for study in ["../../precious", "..", ".", "", "a b"] {
        let bench = bench_with(&format!("echo '  \"study\": \"{study}\",'"));
        for directory in ["precious", "docs/results/small-file"] {
            fs::create_dir_all(bench.path(directory)).expect("ours");
        }
        let output = run(&bench, "results", &["1"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("not the name of a study"), "{study}: {said}");
        assert!(bench.path("precious").exists() && bench.path("docs/results/small-file").exists(), "{study}");
    }
}

#[test]
fn quick_results_name_the_studies_that_were_not_run() {
    if !tool("sqlite3") {
        eprintln!("skipped: scripts/quick-results needs sqlite3(1)");
        return;
    }
    let bench = bench_with(
        "case $1 in list) printf 'Studies (fstone run NAME [--quick]):\\n  mail       A spool\\n             full: 1 cell\\n  small-file Small\\n  big Big\\n';; esac",
    );
    let store = bench.path("store.db").display().to_string();
    let rows = "CREATE TABLE runs (run INTEGER, study, finished_unix_ns);
        INSERT INTO runs VALUES (1, 'mail', 7), (2, 'small-file', NULL);";
    assert!(Command::new("sqlite3").args([&store, rows]).status().expect("it starts").success());
    let output = run(&bench, "quick-results", &[&store]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("small-file big"), "{said}");
    assert!(!said.contains("mail"), "{said}");
    let asked = fs::read_to_string(bench.path("asked")).expect("ours");
    assert!(!asked.contains("report") && !asked.contains("run "), "nothing is run or written: {asked}");
}
