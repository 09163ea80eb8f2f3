//! `make install` and `make uninstall`, into a directory of their own.

use crate::support::{Bench, tool};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

fn make(target: &str, destination: &Path) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    // The binary that is tested, not one that is built for this.
    let output = Command::new("make")
        .args(["-C", root, "--old-file=build", target, "PREFIX=/usr"])
        .arg(format!("FSTONE={}", env!("CARGO_BIN_EXE_fstone")))
        .arg(format!("DESTDIR={}", destination.display()))
        .output()
        .expect("make starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("readable").path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn what_is_installed_works_and_can_be_removed() {
    if !tool("make") {
        return;
    }
    let bench = Bench::new();
    let destination = bench.path("root");
    make("install", &destination);
    let usr = destination.join("usr");
    let run = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().expect("it starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    assert!(run(&usr.join("bin/fstone"), &["--version"]).starts_with("fstone "));

    let script = "source \"$1\" && complete -p fstone";
    let completions = usr.join("share/bash-completion/completions/fstone");
    let loaded = run(Path::new("bash"), &["-c", script, "bash", completions.to_str().expect("plain")]);
    assert!(loaded.contains("_fstone"), "{loaded}");
    for (path, word) in [
        ("share/zsh/site-functions/_fstone", "#compdef fstone"),
        ("share/fish/vendor_completions.d/fstone.fish", "complete -c fstone"),
        ("share/man/man1/fstone.1", ".TH fstone"),
        ("share/man/man1/fstone-run.1", "budget"),
        ("share/man/man1/fstone-study.1", ".TP\n\\fBexpected\\-duration"),
        ("share/man/man1/fstone-workload.1", ".TP\n\\fBlatency\\-target"),
    ] {
        let text = std::fs::read_to_string(usr.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(text.contains(word), "{word} is not in {path}");
    }

    for target in ["install", "uninstall"] {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let refused = Command::new("make").args(["-C", root, "-n", target, "PREFIX=/tmp/two words"]).output();
        let refused = refused.expect("make starts");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && said.contains("must not contain spaces"), "{target}: {said}");
    }

    make("uninstall", &destination);
    let mut left = Vec::new();
    files(&destination, &mut left);
    assert!(left.is_empty(), "{left:?}");
}
