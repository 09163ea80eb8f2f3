//! scripts/agreement, by which docs/results/exact.md says how far figures agree with the published ones.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

/// Stands in for a report of two columns, one of them with equal figures.
const REPORT: &str = r#"#!/bin/sh
while [ $# -gt 1 ]; do shift; done
cat > "$1" <<'END'
{"columns": [{"header": "equal", "unit": "s"}, {"header": "time", "unit": "s"}], "rows": [
  {"label": "a", "figures": [{"mean": 1, "published": {"value": 3}}, {"mean": 1, "published": {"value": 2}}]},
  {"label": "b", "figures": [{"mean": 1, "published": {"value": 4}}, {"mean": 2, "published": {"value": 4}}]},
  {"label": "c", "figures": [{"mean": 1, "published": {"value": 5}}, {"mean": 3, "published": {"value": 3}}]}]}
END
"#;

/// Ranks of equal figures have no correlation: it is not 0. And figures that are whole numbers are divided as any others.
#[test]
fn a_correlation_that_is_not_defined_is_none() {
    if Command::new("sqlite3").arg("--version").output().is_err() {
        eprintln!("skipped: sqlite3 is not installed");
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let report = place.path().join("report");
    fs::write(&report, REPORT).expect("written");
    fs::set_permissions(&report, fs::Permissions::from_mode(0o755)).expect("ours");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/agreement");
    // With a scatter of 40 %, 3 and 4 of the times share a rank.
    for (scatter, correlation) in [("0", "0.50"), ("0.4", "0.87")] {
        let done = Command::new(&script).arg("1").env("FSTONE", &report).env("SCATTER", scatter).output();
        let done = done.expect("it starts");
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let expected = format!("| equal | 3 | none | 0.25 |\n| time | 3 | {correlation} | 0.50 |\n");
        assert!(said.contains(&expected), "{said}");
    }
}
