//! `fstone durability`: short sequences of calls, on sound disks and on others.

use crate::support::{Bench, has_uml, is_root};
use std::os::unix::fs::MetadataExt as _;

fn durability<'a>(states: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let begin = ["durability", "--exhaustive", "--jobs", "1", "--states", states];
    [&begin[..], rest].concat()
}

/// Of a line of the report: `lost: names   3 of 40`.
fn figures(out: &str, what: &str) -> (u64, u64) {
    let line = out.lines().find(|line| line.trim_start().starts_with(what)).unwrap_or_else(|| panic!("{what}: {out}"));
    let words: Vec<&str> = line.split_whitespace().rev().collect();
    let number = |word: &str| word.parse().unwrap_or_else(|_| panic!("{line}"));
    if words.get(1) == Some(&"of") {
        (number(words[2]), number(words[0]))
    } else {
        (number(words[0]), number(words[0]))
    }
}

#[test]
fn ext4_keeps_what_was_persisted_and_ext2_does_not() {
    if !has_uml() {
        return;
    }
    let bench = Bench::new();
    let sequences =
        ["--sequence", "rename a n; fsync n", "--sequence", "create A/n; write A/n 0 5000; fsync A/n; unlink a; sync"];
    let (code, out, err) = bench.run(&durability("20", &[&["ext4"][..], &sequences].concat()));
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(figures(&out, "sequences tried"), (2, 2), "{out}");
    let (states, _) = figures(&out, "states ");
    assert!(states > 15, "{out}");
    assert_eq!(figures(&out, "states mounted").0, states, "{out}");
    assert_eq!(figures(&out, "states clean"), (states, states), "{out}");
    for aspect in ["data", "length", "names", "directory entries", "link count", "attributes", "readable"] {
        let (lost, looked_at) = figures(&out, &format!("lost: {aspect}"));
        assert!(lost == 0 && looked_at >= states, "{aspect}: {out}");
    }

    // What is known is not tried again, and what is new is.
    let more = [&["ext4"][..], &sequences, &["--sequence", "sync"]].concat();
    let (code, out, err) = bench.run(&durability("20", &more));
    assert!(code == 0 && err.contains("2 of 3 sequences are known from"), "{err}");
    assert_eq!(figures(&out, "sequences tried"), (3, 3), "{out}");

    // ext2 has no journal: a file that was renamed and synced has its old name yet.
    let (code, out, err) = bench.run(&durability("40", &["ext2", "--sequence", "rename a n; fsync n"]));
    assert_eq!(code, 1, "{out}{err}");
    assert!(figures(&out, "lost: names").0 > 0, "{out}");
    let again = out.lines().find_map(|line| line.trim_start().strip_prefix("fstone crash-state ")).expect("a command");
    let words: Vec<&str> = again.split_whitespace().collect();
    bench.succeed(&["crash-state", words[0], words[1], "--image", "state.img"]);
    assert_eq!(std::fs::metadata(bench.path("state.img")).expect("written").len(), 64 << 20);
    let left = std::fs::read_dir(bench.path("work")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "nothing is left in the work directory");
}

#[test]
fn the_table_of_properties_tells_filesystems_apart() {
    if !has_uml() {
        return;
    }
    let bench = Bench::new();
    let (code, out, err) = bench.run(&["durability", "ext4", "--jobs", "1", "--states", "40"]);
    assert!(code == 0 && !out.contains("Faults in any case"), "{code} {out}{err}");
    let (code, out, err) = bench.run(&["durability", "ext4", "ext2", "--jobs", "1", "--states", "40"]);
    assert_eq!(code, 1, "what ext2 loses is not hidden by the table: {out}{err}");
    let row = |asked: &str| {
        let line = out.lines().find(|line| line.starts_with(asked)).unwrap_or_else(|| panic!("{asked}: {out}"));
        let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect::<Vec<String>>()
    };
    for asked in ["fsync of a new file persists its name", "unsynced calls are kept in order, in several"] {
        let row = row(asked);
        assert!(row[1].starts_with("kept in ") && row[2].starts_with("no: "), "{row:?}");
    }
    // Only cuts after the fsync has returned say anything about it, and there are others.
    let kept: u64 = row("fsync of a new file persists its name")[1]["kept in ".len()..].parse().expect("a number");
    assert!((1..40).contains(&kept), "{out}");
    let wrong = out.lines().rfind(|line| line.starts_with("  ext2: ")).expect("a line about all of its states");
    assert!(wrong.contains(" lost what a call had persisted") && wrong.contains(" were not clean by the "), "{out}");
    assert!(!out.lines().any(|line| line.starts_with("  ext4: ")), "{out}");

    // The counterexample, and its image.
    let mut lines = out.lines().skip_while(|line| !line.starts_with("  ext2: create n; write n 0 8192; fsync n: "));
    lines.next().expect("the counterexample");
    let again = lines.next().and_then(|line| line.trim_start().strip_prefix("fstone crash-state ")).expect("a command");
    let words: Vec<&str> = again.split_whitespace().collect();
    bench.succeed(&["crash-state", words[0], words[1], "--image", "state.img"]);
}

#[test]
fn what_is_tried_again_leaves_no_log_of_before() {
    if !has_uml() {
        return;
    }
    let bench = Bench::new();
    let logs = || {
        let entries = std::fs::read_dir(bench.path("data/durability")).expect("made").flatten();
        let logs = entries.filter(|entry| entry.path().extension().is_some_and(|ends| ends == "disk-log"));
        logs.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let lossy = ["ext2", "--sequence", "rename a n; fsync n"];
    let (code, out, err) = bench.run(&durability("40", &lossy));
    assert_eq!(code, 1, "{out}{err}");
    let first = logs();
    let [path] = &first[..] else { panic!("{first:?}") };
    std::fs::write(path, "no log").expect("ours");
    // What it was killed in leaves a log, but no line.
    let file = path.with_file_name(format!(
        "{}.jsonl",
        path.file_stem().and_then(|stem| stem.to_str()?.rsplit_once('-')).expect("its name").0
    ));
    let text = std::fs::read_to_string(&file).expect("written");
    let head = text.lines().next().expect("the setting").to_owned() + "\n";
    std::fs::write(&file, head).expect("ours");
    let (code, out, err) = bench.run(&durability("40", &lossy));
    assert!(code == 1 && logs() == first, "{out}{err}");
    assert!(std::fs::metadata(path).expect("a log").len() > 1 << 20, "it was written again");
    let (code, out, err) = bench.run(&durability("40", &[&lossy[..], &["--fresh"]].concat()));
    assert!(code == 1 && logs() == first && out.contains("fstone crash-state"), "{out}{err}");
    let (code, out, err) = bench.run(&durability("40", &["ext2", "--sequence", "sync", "--fresh"]));
    assert!(code == 0 && logs() == first, "what is known of others stays: {:?} {out}{err}", logs());
}

/// The controls: a check that finds no loss on these disks would find none on any.
#[test]
fn disks_that_break_their_promise_are_caught() {
    if !has_uml() {
        return;
    }
    let bench = Bench::new();
    let sequence =
        ["--sequence", "create n; write n 0 16384; fsync n; rename n a; fsync a; write a 0 8192; fdatasync a"];
    for disk in ["forgets-flushes", "tears", "reorders"] {
        let (code, out, err) = bench.run(&durability("80", &[&["ext4", "--disk", disk][..], &sequence].concat()));
        assert_eq!(code, 1, "{disk}: {out}{err}");
        assert!(figures(&out, "states with a loss").0 > 0, "{disk}: {out}");
        assert!(!out.contains("fstone crash-state"), "a disk that lies needs no explanation: {out}");
    }
    // Without barriers nothing is flushed, and the disk is sound.
    let (code, out, err) = bench.run(&durability("80", &[&["ext4", "--mount", "nobarrier"][..], &sequence].concat()));
    assert_eq!(code, 1, "{out}{err}");
    assert!(figures(&out, "states with a loss").0 > 0, "{out}");
}

#[test]
fn what_cannot_be_tried_is_said() {
    let bench = Bench::new();
    let fails = |words: &[&str], code: i32, said: &str| {
        let (status, out, err) = bench.run(words);
        assert!(status == code && err.contains(said), "{words:?}: {status} {out}{err}");
    };
    fails(&["durability", "ext5", "--exhaustive"], 2, "ext5 is neither a type of filesystem");
    fails(&["durability", "ext4", "--exhaustive", "--kernel", "host"], 2, "power cuts need a guest");
    fails(&["durability", "small-file", "--exhaustive", "--mount", "x"], 2, "which has its own options");
    fails(&["durability", "ext4", "--exhaustive", "--kernel", "uml:1.2"], 3, "uml:1.2");
    if !has_uml() {
        return;
    }
    fails(&durability("20", &["ext4", "--sequence", "unlink ../a"]), 2, "is not a path below");
    let (code, out, err) = bench.run(&durability("20", &["ext4", "--sequence", "unlink nothing; sync"]));
    assert!(code == 0 && out.contains("unlink nothing: No such file"), "{code} {out}{err}");
    let (code, _, err) = bench.run(&durability("20", &["ext4", "--mount", "data=nonsense", "--sequence", "sync"]));
    assert!(code == 4 && err.contains("data=nonsense"), "{code} {err}");
}

/// A check that can no longer be run ends the guest in the middle of a sequence. What was found there before is told, with the state
/// that was looked at.
#[test]
fn findings_before_a_bad_end_are_told_and_its_state_can_be_made_again() {
    if !has_uml() {
        return;
    }
    let bench = Bench::new();
    let path = bench.check_that_breaks(15);
    let (code, out, err) =
        bench.run_with(&durability("60", &["ext2", "--sequence", "rename a n; fsync n"]), &[("PATH", path.as_str())]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("in crash state") && figures(&out, "lost: names").0 > 0, "{out}");
    // Its version may have been asked for as well. The state that could not be checked is one of them.
    let (states, _) = figures(&out, "states ");
    assert!((14..=16).contains(&states), "{out}");
    let ended = out.split("in crash state ").nth(1).and_then(|rest| rest.split(':').next()).expect("a state");
    let again =
        out.lines().find(|line| line.contains("fstone crash-state") && line.contains(ended)).expect("a command");
    let words: Vec<&str> = again.split_whitespace().collect();
    bench.succeed(&["crash-state", words[2], words[3], "--image", "state.img"]);
}

#[test]
fn with_sudo_findings_and_their_logs_belong_to_the_caller() {
    if !has_uml() || !is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let bench = Bench::new();
    let sudo = [("SUDO_UID", "12345"), ("SUDO_GID", "54321")];
    let (code, out, err) = bench.run_with(&durability("40", &["ext2", "--sequence", "rename a n; fsync n"]), &sudo);
    assert_eq!(code, 1, "{out}{err}");
    let findings = bench.store().parent().expect("a directory").join("durability");
    let mut found = vec![findings.clone()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        at += 1;
        let facts = std::fs::symlink_metadata(&path).expect("there");
        assert_eq!((facts.uid(), facts.gid(), facts.mode() & 0o077), (12345, 54321, 0), "{}", path.display());
        if facts.is_dir() {
            found.extend(std::fs::read_dir(&path).expect("readable").flatten().map(|entry| entry.path()));
        }
    }
    assert!(found.len() >= 3, "the findings, and the log of one that was lost: {found:?}");
}
