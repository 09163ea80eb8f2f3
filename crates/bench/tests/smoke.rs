//! Every figure can still be measured.

use assert_cmd::Command;

#[test]
fn smoke() {
    let output = tempfile::tempdir().expect("a temporary directory");
    let run = Command::new(env!("CARGO_BIN_EXE_fstone-bench"))
        .args(["--smoke", "--output"])
        .arg(output.path())
        .assert()
        .success();
    eprintln!("{}", String::from_utf8_lossy(&run.get_output().stderr));
    let kept: Vec<_> =
        std::fs::read_dir(output.path()).expect("results").map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    let json = kept.iter().find(|path| path.extension().is_some_and(|extension| extension == "json")).expect("JSON");
    let text = std::fs::read_to_string(json).expect("readable");
    let run: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
    let figures = run["figures"].as_array().expect("figures");
    assert!(figures.len() > 15);
    for figure in figures {
        let measured = figure["sides"].as_array().expect("sides").iter().any(|side| side["name"] == "fstone");
        let mounts = figure["name"].as_str().expect("a name").starts_with("ext4");
        assert_ne!(measured, mounts, "{figure}");
    }
}

#[test]
fn wrong_arguments_are_refused() {
    Command::new(env!("CARGO_BIN_EXE_fstone-bench")).arg("--nonsense").assert().code(2);
}
