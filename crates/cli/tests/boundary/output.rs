//! `--output`: regular files are replaced, everything else is written into.

use super::command_study;
use crate::support::{Bench, is_root, tool};
use std::{
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt, symlink},
    path::Path,
    process::Command,
};

fn bench_with_documents() -> (Bench, Vec<Vec<&'static str>>) {
    let bench = Bench::new();
    command_study(&bench, "one.toml", "work", "true");
    for _ in 0..2 {
        bench.succeed(&["run", "./one.toml"]);
    }
    let mut commands: Vec<Vec<&str>> =
        ["terminal", "markdown", "html", "csv", "json"].map(|format| vec!["report", "1", "-f", format]).into();
    commands.extend(["markdown", "junit", "json", "html"].map(|format| vec!["compare", "1", "2", "-f", format]));
    commands.extend(["json", "html"].map(|format| vec!["history", "-f", format]));
    (bench, commands)
}

fn node(path: &Path, minor: &str) {
    let made = Command::new("mknod").arg(path).args(["c", "1", minor]).status();
    assert!(made.is_ok_and(|status| status.success()));
}

#[test]
fn what_is_no_regular_file_is_written_into_and_never_replaced() {
    let (bench, commands) = bench_with_documents();
    for command in commands {
        let to = |path: &str| bench.run(&[&command[..], &["-o", path]].concat());
        // Two runs of one trial each are undecided, wherever that is told.
        let (status, printed, _) = bench.run(&command);
        assert_eq!(status, if command[0] == "compare" { 8 } else { 0 }, "{command:?}");

        symlink("target", bench.path("link")).expect("made");
        assert_eq!(to("link").0, status, "{command:?}");
        assert!(bench.path("link").symlink_metadata().expect("there").is_symlink(), "{command:?}");
        assert_eq!(fs::read_to_string(bench.path("target")).expect("written"), printed, "{command:?}");
        fs::remove_file(bench.path("link")).expect("ours");

        assert_eq!(to("/dev/stdout"), (status, printed.clone(), String::new()), "{command:?}");
        assert_eq!(to("/proc/self/fd/1"), (status, printed.clone(), String::new()), "{command:?}");
        let line = format!("(echo before; {} -o /dev/stdout; echo after) >> all", bench.typed(&command).join(" "));
        assert!(bench.shell(&line).status().is_ok_and(|status| status.success()));
        let all = fs::read_to_string(bench.path("all")).expect("written");
        assert_eq!(all, format!("before\n{printed}after\n"), "{command:?}");
        fs::remove_file(bench.path("all")).expect("ours");

        if !is_root() {
            continue;
        }
        let full = if status == 0 { 6 } else { status };
        for (minor, code, words) in [("3", status, ""), ("7", full, "No space left")] {
            let path = bench.path("node");
            node(&path, minor);
            let (found, _, err) = to("node");
            assert!(found == code && err.contains(words), "{command:?}: {found} {err}");
            assert!(path.symlink_metadata().expect("there").file_type().is_char_device(), "{command:?}");
            fs::remove_file(path).expect("ours");
        }
    }
    if !is_root() {
        eprintln!("skipped: making device nodes needs root");
    }
}

#[test]
fn a_disk_and_a_directory_are_refused() {
    let (bench, _) = bench_with_documents();
    let (code, _, err) = bench.run(&["report", "1", "-f", "csv", "-o", "data"]);
    assert!(code == 2 && err.contains("it is a directory"), "{code} {err}");
    if !is_root() {
        eprintln!("skipped: a disk's node needs root");
        return;
    }
    // A number that no driver answers to: opening it would fail, but it is not even tried.
    let made = Command::new("mknod").arg(bench.path("disk")).args(["b", "240", "0"]).status();
    assert!(made.is_ok_and(|status| status.success()));
    let (code, _, err) = bench.run(&["report", "1", "-f", "csv", "-o", "disk"]);
    assert!(code == 3 && err.contains("it is a disk"), "{code} {err}");
}

#[test]
fn a_bundle_goes_into_a_new_file_only() {
    let (bench, _) = bench_with_documents();
    symlink("target", bench.path("link")).expect("made");
    for path in ["link", "/dev/null", "/dev/stdout"] {
        let (code, _, err) = bench.run(&["export", "1", path]);
        assert!(code == 2 && err.contains("there is a file of that name"), "{path}: {code} {err}");
    }
    assert_eq!(fs::metadata("/dev/null").expect("there").rdev(), rustix::fs::makedev(1, 3));
    assert!(!bench.path("target").exists());
}

#[test]
fn what_is_open_already_is_not_cut() {
    let (bench, commands) = bench_with_documents();
    let command = &commands[3];
    let printed = bench.succeed(command);
    for (name, redirection) in [("/dev/stderr", "2>all"), ("/dev/fd/3", "3>all"), ("link", "3>all")] {
        if name == "link" {
            symlink("/proc/self/fd/3", bench.path("link")).expect("made");
        }
        let number = &redirection[..1];
        let typed = bench.typed(command).join(" ");
        let line = format!("(echo before >&{number}; {typed} -o {name}; echo after >&{number}) {redirection}");
        assert!(bench.shell(&line).status().is_ok_and(|status| status.success()), "{name}");
        let all = fs::read_to_string(bench.path("all")).expect("written");
        assert_eq!(all, format!("before\n{printed}after\n"), "{name}");
    }
}

/// A full disk behind a network, or one whose blocks are given late, is told of by fsync(2) and not by write(2).
#[test]
fn a_document_that_does_not_reach_the_disk_leaves_the_old_one() {
    if !tool("strace") {
        eprintln!("skipped: strace is not installed");
        return;
    }
    let (bench, commands) = bench_with_documents();
    bench.write("report.csv", "old");
    let typed = bench.typed(&commands[3]).join(" ");
    let line = format!("strace -f -o trace -e inject=fsync:error=ENOSPC {typed} -o report.csv");
    let output = bench.shell(&line).output().expect("it runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(6) && err.contains("No space left"), "{:?} {err}", output.status);
    assert_eq!(fs::read_to_string(bench.path("report.csv")).expect("there"), "old");
}

fn pages(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).expect("readable").map(|entry| entry.expect("readable").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn an_index_that_is_not_fstones_stays() {
    let bench = Bench::new();
    command_study(&bench, "one.toml", "work", "true");
    fs::create_dir(bench.path("site")).expect("ours");
    bench.write("site/index.html", "<title>My site</title>");
    let (code, _, err) = bench.run(&["run", "./one.toml", "--output", "site"]);
    assert!(code == 0 && err.contains("site/index.html is not one of fstone's pages"), "{code} {err}");
    assert_eq!(fs::read_to_string(bench.path("site/index.html")).expect("there"), "<title>My site</title>");
    assert_eq!(pages(&bench.path("site")).len(), 2, "the run's page is there");

    fs::remove_file(bench.path("site/index.html")).expect("ours");
    for runs in [2, 3] {
        bench.succeed(&["run", "./one.toml", "--output", "site"]);
        let index = fs::read_to_string(bench.path("site/index.html")).expect("made");
        assert_eq!(index.matches("href=\"one-").count(), runs, "its own is replaced");
    }
}

#[test]
fn pages_of_two_stores_share_a_directory() {
    let bench = Bench::new();
    command_study(&bench, "one.toml", "work", "true");
    for store in ["a.db", "b.db", "a.db"] {
        let store = bench.path(store).display().to_string();
        let (code, _, err) = bench.run_with(&["run", "./one.toml", "--output", "pages"], &[("FSTONE_STORE", &store)]);
        assert_eq!(code, 0, "{err}");
    }
    let found = pages(&bench.path("pages"));
    assert_eq!(found.iter().filter(|name| name.starts_with("one-1-")).count(), 2, "{found:?}");
    // Each has an index of its own.
    for (index, runs) in [("index.html", 2), ("index-2.html", 1)] {
        let index = fs::read_to_string(bench.path("pages").join(index)).expect("made");
        assert_eq!(index.matches("href=\"one-").count(), runs);
    }
    assert_eq!(found.len(), 5, "{found:?}");
}
