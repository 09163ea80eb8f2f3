//! docs/safety.md names a test for each guarantee: every one of them exists.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_guarantee_names_a_test_that_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/safety.md")).expect("the page is there");
    let mut sources = Vec::new();
    files(&root.join("crates"), &mut sources);
    let sources: Vec<String> = sources.iter().map(|path| fs::read_to_string(path).expect("UTF-8")).collect();
    let mut named = 0;
    let table = page.split("## Guarantees").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("its table");
    let guarantees = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| guarantee"));
    for line in guarantees {
        let tests = line.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let tests: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test for: {line}");
        for test in tests {
            let there = ["", "    "].iter().any(|indent| {
                let wanted = format!("#[test]\n{indent}fn {test}(");
                sources.iter().any(|text| text.contains(&wanted))
            });
            assert!(there, "docs/safety.md names the test {test}, which there is not");
            named += 1;
        }
    }
    assert!(named >= 30, "only {named} tests are named");
}
