//! Blocks of one run that several machines make: here one machine under two names.

use crate::support::{Bench, Said, interrupt, trials};
use std::{
    fs,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

const TWO: &str = "\"ext4\" = { type = \"ext4\" }\n\"ext2\" = { type = \"ext2\" }";

/// A bench with a study of 4 blocks, the first two of them made, and the run in `begun.fstone`.
fn begun(rows: &str) -> Bench {
    let bench = Bench::new();
    bench.tiny_study(rows);
    let (code, _, err) =
        bench.run(&["run", "./tiny.toml", "--device", "directory", "--repeats", "4", "--blocks", "1-2"]);
    assert!(code == 0 && err.contains("Run 1 lacks block(s) 3-4"), "{code}: {err}");
    bench.succeed(&["export", "1", "begun.fstone"]);
    bench
}

#[test]
fn blocks_of_two_machines_make_one_run() {
    let bench = begun(TWO);
    bench.succeed(&["blocks", "begun.fstone", "4", "--output", "fourth.fstone", "--machine", "n1"]);
    bench.succeed(&["blocks", "begun.fstone", "3", "--output", "third.fstone", "--machine", "n2"]);
    let told = bench.succeed(&["import", "--into", "1", "fourth.fstone"]);
    assert!(told.contains("Added to run 1") && told.contains("It lacks block 3."), "{told}");
    let told = bench.succeed(&["import", "--into", "1", "third.fstone", "fourth.fstone"]);
    assert!(told.contains("it already had") && told.contains("all its blocks now"), "{told}");
    let told = bench.succeed(&["import", "--into", "1", "third.fstone", "fourth.fstone"]);
    assert!(told.contains("nothing was added"), "{told}");
    let list = bench.succeed(&["list", "runs"]);
    assert!(list.contains("finished"), "{list}");
    let report = bench.json();
    let mut positions: Vec<u64> =
        trials(&report).iter().map(|trial| trial["position"].as_u64().expect("a number")).collect();
    positions.sort_unstable();
    assert_eq!(
        positions,
        (0..positions.len() as u64).collect::<Vec<_>>(),
        "the order of one machine that made them all"
    );
    // The same plan, made by one machine alone, has the same trials with the same seeds.
    let seed = report["run"]["seed"].as_u64().or(report["seed"].as_u64()).map(|seed| seed.to_string());
    if let Some(seed) = seed {
        bench.succeed(&["run", "./tiny.toml", "--device", "directory", "--repeats", "4", "--seed", &seed]);
        let keys = |report: &serde_json::Value| {
            let mut keys: Vec<String> = trials(report)
                .iter()
                .map(|trial| format!("{} {} {}", trial["position"], trial["repetition"], trial["seed"]))
                .collect();
            keys.sort();
            keys
        };
        assert_eq!(keys(&report), keys(&bench.json()));
    }
    bench.assert_clean();
}

#[test]
fn a_task_that_is_killed_loses_one_trial() {
    let bench = begun("\"ext4\" = { type = \"ext4\" }\n[factor]\nthreads = [2, 4]");
    let arguments = ["blocks", "begun.fstone", "3", "--output", "third.fstone", "--machine"];
    let kept = || {
        let names = fs::read_dir(bench.path("")).expect("ours").flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".begun")).count()
    };
    let kill = |machine: &str| {
        let mut child = bench.command(&[&arguments[..], &[machine]].concat()).spawn().expect("it starts");
        let since = Instant::now();
        let before = kept();
        while kept() == before {
            assert!(since.elapsed() < Duration::from_secs(60), "nothing is kept");
            assert!(child.try_wait().expect("ours").is_none(), "over before anything was kept");
            thread::sleep(Duration::from_millis(10));
        }
        child.kill().expect("ours");
        child.wait().expect("ours");
    };
    kill("n1");
    // Another machine does not go on with it, for a block is of one; nor does it take away what the first may go on with.
    kill("n2");
    assert_eq!(kept(), 2, "each has its own");
    let (status, _, said) = bench.run(&[&arguments[..], &["n2"]].concat());
    assert!(status == 0 && said.contains("block 3: continuing with the 1 trial"), "{status}: {said}");
    assert_eq!(kept(), 0, "it is whole, and nobody needs the parts");
    fs::remove_file(bench.path("third.fstone")).expect("it was made");
    kill("n1");
    let (status, _, said) = bench.run(&[&arguments[..], &["n1"]].concat());
    assert!(status == 0 && said.contains("block 3: continuing with the 1 trial"), "{status}: {said}");
    assert_eq!(kept(), 0, "it is whole");
    bench.succeed(&["import", "--into", "1", "third.fstone"]);
    assert_eq!(trials(&bench.json()).len(), 6);
    bench.assert_clean();
}

fn named(said: &str) -> Vec<String> {
    let (_, rest) = said.split_once("`fstone ").unwrap_or_else(|| panic!("no command: {said}"));
    rest.split('`').next().expect("it ends").split(' ').map(str::to_owned).collect()
}

#[test]
fn what_an_interruption_left_is_made_by_the_command_that_it_names() {
    let bench = begun("\"ext4\" = { type = \"ext4\" }\n[factor]\nthreads = [2, 4]");
    let arguments = ["blocks", "begun.fstone", "3-4", "--output", "made.fstone", "--machine", "n1"];
    let mut child = bench.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = Said::by(&mut child);
    said.wait_for("trial 4 of 4");
    interrupt(&child);
    let (status, _, said) = said.end(child);
    assert_eq!(status, 130, "{said}");
    let next = named(&said);
    assert_eq!(next, ["blocks", "begun.fstone", "4", "--output", "made-4.fstone", "--machine", "n1"]);
    // The same command names it as well.
    let (status, _, said) = bench.run(&arguments);
    assert!(status == 2 && said.contains("made.fstone has blocks 3 already"), "{status}: {said}");
    assert_eq!(named(&said), next);
    let next: Vec<&str> = next.iter().map(String::as_str).collect();
    let (status, _, said) = bench.run(&next);
    assert!(status == 0 && said.contains("block 4: continuing with the 1 trial"), "{status}: {said}");
    bench.succeed(&["import", "--into", "1", "made.fstone", "made-4.fstone"]);
    assert_eq!(trials(&bench.json()).len(), 8);
    bench.assert_clean();
}

#[test]
fn blocks_that_do_not_fit_are_refused_in_words() {
    let bench = begun(TWO);
    bench.succeed(&["blocks", "begun.fstone", "3-4", "--output", "made.fstone", "--machine", "n1"]);
    for (arguments, status, words) in [
        (
            &["blocks", "begun.fstone", "5", "--output", "x"][..],
            2,
            "there is no block 5: the plan of tiny has 4 blocks",
        ),
        (&["blocks", "begun.fstone", "2", "--output", "x"], 2, "has trials of block 2 already"),
        (&["blocks", "begun.fstone", "0", "--output", "x"], 2, "write the numbers of blocks, from 1"),
        (
            &["blocks", "begun.fstone", "3", "--output", "made.fstone"],
            2,
            "has blocks 3-4 already: `fstone import --into",
        ),
        (&["blocks", "begun.fstone", "3", "--output", "tiny.toml"], 2, "there is a file of that name"),
        (&["blocks", "tiny.toml", "3", "--output", "x"], 2, "it is not an fstone bundle"),
        (&["import", "--into", "9", "made.fstone"], 2, "there is no run 9"),
        (&["run", "./tiny.toml", "--blocks", "3"], 2, "there is no block 3: the plan of tiny has 2 blocks"),
        (&["run", "./tiny.toml", "--blocks", "1", "--budget", "1h"], 2, "cannot be used with"),
    ] {
        let (exit, _, said) = bench.run(arguments);
        assert!(exit == status && said.contains(words), "{arguments:?}: {exit}: {said}");
        assert!(!bench.path("x").exists());
    }
    // Another run of the study is another plan, for its seed is another.
    bench.succeed(&["run", "./tiny.toml", "--device", "directory", "--repeats", "4", "--blocks", "1"]);
    let (exit, _, said) = bench.run(&["import", "--into", "2", "made.fstone"]);
    assert!(
        exit == 3 && said.contains("it is of another plan: tiny (") && said.contains("Nothing was merged"),
        "{exit}: {said}"
    );
    let list = bench.succeed(&["list", "runs"]);
    assert_eq!(list.matches("unfinished").count(), 2, "{list}");
    assert!(fs::metadata(bench.path("made.fstone")).expect("kept").len() > 0);
}
