//! Trials in guests, as an ordinary user meets them.

use crate::support::{self, Bench, has_uml};
use std::path::Path;

fn study(bench: &Bench, filesystems: &str) {
    bench.tiny_study(filesystems);
    let text = std::fs::read_to_string(bench.path("tiny.toml")).expect("written").replace("64 MiB", "320 MiB");
    bench.write("tiny.toml", &text.replace("repeats = 2", "repeats = 1"));
}

#[test]
fn an_ordinary_user_gets_every_row_without_asking() {
    if !has_uml() {
        return;
    }
    let bench = Bench::of_nobody();
    study(
        &bench,
        "\"ext4\" = { type = \"ext4\" }\n\"jfs\" = { type = \"jfs\" }\n\"gone\" = { type = \"ext4\", mount = \"nomballoc\" }",
    );
    let (code, out, err) = bench.run(&["run", "./tiny.toml"]);
    assert_eq!(code, 0, "{out}{err}");
    if !support::is_root() || !err.is_empty() {
        assert!(err.contains("Not root: running the study in user-mode Linux"), "{err}");
    }
    assert!(out.contains("ext4: Unknown parameter 'nomballoc'"), "the guest kernel's words: {out}");
    assert!(out.contains("guests: booted in") && out.contains("Measured in user-mode Linux"), "{out}");
    let json = bench.json();
    for trial in support::trials(&json) {
        let words = trial.to_string();
        assert!(words.contains("completed") || words.contains("nomballoc"), "{words}");
    }
    let csv = bench.succeed(&["report", "--format", "csv"]);
    for metric in ["device flushes", "CPU system", "boot time", "trial overhead"] {
        assert!(csv.contains(metric), "{metric} in {csv}");
    }
    assert_eq!(std::fs::read_dir(bench.work()).map_or(0, Iterator::count), 0, "the work directory is empty again");
}

/// jfs, ext2 and vfat pass no flush on from a sync: a row must not look fast because its data is in a cache.
#[test]
fn every_row_ends_with_a_flush_of_its_device() {
    if !has_uml() {
        return;
    }
    let bench = Bench::new();
    let kinds = ["ext4", "ext2", "jfs", "vfat"];
    let rows: Vec<String> = kinds.iter().map(|kind| format!("\"{kind}\" = {{ type = \"{kind}\" }}")).collect();
    study(&bench, &rows.join("\n"));
    bench.succeed(&["run", "./tiny.toml", "--executor", "uml"]);
    let json = bench.json();
    let mut rows = 0;
    for trial in support::trials(&json) {
        let words = trial.to_string();
        if !words.contains("completed") {
            eprintln!("skipped: this kernel lacks one of {kinds:?}: {words:.300}");
            continue;
        }
        let flushes = trial["figures"].as_array().and_then(|figures| {
            figures.iter().find(|one| one["metric"] == "device flushes" && one["step"] == "load")?["value"].as_f64()
        });
        assert!(flushes.is_some_and(|flushes| flushes >= 1.0), "{words}");
        rows += 1;
    }
    assert!(rows >= 2, "{json}");
}

#[test]
fn kernels_are_rows_of_one_table() {
    if !has_uml() {
        return;
    }
    let bench = Bench::of_nobody();
    study(&bench, "\"ext4\" = { type = \"ext4\" }");
    let kernels = ["--kernel", "uml:6.1", "--kernel", "uml:2.4"];
    let (code, out, err) = bench.run(&[&["run", "./tiny.toml"], &kernels[..]].concat());
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("skipped at boot: there is no kernel uml:2.4"), "{out}");
    assert!(out.contains("cure: fstone kernel add uml:2.4"), "{out}");
}

#[test]
fn kernels_are_named_by_path_and_listed() {
    let bench = Bench::new();
    let kernels = bench.path("kernels");
    let with = |arguments: &[&str]| bench.run_with(arguments, &[("FSTONE_KERNELS", kernels.to_str().expect("plain"))]);
    let (code, out, _) = with(&["kernel", "list"]);
    assert!(code == 0 && (out.contains("fstone kernel add uml:6.1") || out.contains("installed")), "{out}");
    let (code, _, err) = with(&["kernel", "add", "/nowhere/linux"]);
    assert!(code == 3 && err.contains("/nowhere/linux"), "{err}");
    let Some(installed) = Some(Path::new("/usr/bin/linux.uml")).filter(|path| path.exists()) else {
        eprintln!("skipped: linux.uml is not installed (apt-get install user-mode-linux)");
        return;
    };
    let (code, out, err) = with(&["kernel", "add", &installed.display().to_string()]);
    assert!(code == 0 && out.starts_with("uml:"), "{out}{err}");
    let (_, out, _) = with(&["kernel", "list"]);
    assert!(out.contains("/usr/bin/linux.uml"), "{out}");
}

/// The store of kernels with one whose time can be simulated; says why not.
fn exact_kernels() -> Option<String> {
    let kernels = std::env::var("FSTONE_TEST_KERNELS").ok()?;
    let list = Bench::new().run_with(&["kernel", "list"], &[("FSTONE_KERNELS", &kernels)]).1;
    if list.contains("exact:6.1") {
        return Some(kernels);
    }
    eprintln!("skipped: {kernels} has no kernel whose time can be simulated (fstone kernel build)");
    None
}

#[test]
fn trials_in_virtual_time_have_the_same_figures_again() {
    let Some(kernels) = exact_kernels() else { return };
    // The store of test kernels may be in a home that nobody else can enter.
    let bench = Bench::new();
    study(&bench, "\"ext4\" = { type = \"ext4\" }\n\"xfs\" = { type = \"xfs\" }");
    let figures = |model: &str| {
        let run = ["run", "./tiny.toml", "--exact", "--model", model, "--seed", "7"];
        let (code, out, err) = bench.run_with(&run, &[("FSTONE_KERNELS", &kernels)]);
        assert_eq!(code, 0, "{out}{err}");
        let mut told: Vec<String> = support::trials(&bench.json())
            .iter()
            .map(|trial| {
                assert_eq!(trial["outcome"], "completed", "{trial}");
                trial["figures"].to_string()
            })
            .collect();
        told.sort();
        told
    };
    let first = figures("nvme-ssd");
    assert!(first.len() == 2 && first.iter().all(|trial| trial.contains("transactions per second")), "{first:?}");
    assert_eq!(figures("nvme-ssd"), first);
    assert_ne!(figures("ide-2004"), first);
}

#[test]
fn without_a_kernel_that_can_virtual_time_says_how_to_get_one() {
    let bench = Bench::new();
    study(&bench, "\"ext4\" = { type = \"ext4\" }");
    let none = bench.path("no-kernels");
    let with = |arguments: &[&str]| bench.run_with(arguments, &[("FSTONE_KERNELS", none.to_str().expect("plain"))]);
    let (code, _, err) = with(&["run", "./tiny.toml", "--exact"]);
    assert!(code == 3 && err.contains("fstone kernel build"), "{code}: {err}");
}
