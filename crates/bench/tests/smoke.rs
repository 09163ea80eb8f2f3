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

#[test]
fn interrupted_it_takes_everything_back() {
    let mounts = || std::fs::read_to_string("/proc/self/mounts").expect("readable");
    let output = tempfile::tempdir().expect("a temporary directory");
    let mut bench = std::process::Command::new(env!("CARGO_BIN_EXE_fstone-bench"))
        .args(["--only", "ext4-randread", "--rounds", "1000", "--seconds", "0.2", "--output"])
        .arg(output.path())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it is built");
    let ours = format!("/tmp/fstone-bench-{}-", bench.id());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !mounts().contains(&ours) && std::time::Instant::now() < deadline {
        if bench.try_wait().expect("it is ours").is_some() {
            eprintln!("skipped: nothing can be mounted here");
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let signalled = std::process::Command::new("kill").args(["-INT", &bench.id().to_string()]).status();
    assert!(signalled.expect("kill is everywhere").success());
    assert!(!bench.wait().expect("it is ours").success());
    assert!(!mounts().contains(&ours));
    let left = std::fs::read_dir("/tmp")
        .expect("readable")
        .flatten()
        .any(|entry| entry.path().display().to_string().starts_with(&ours));
    assert!(!left);
}
