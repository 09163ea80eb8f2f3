//! Standard output and standard error that are full, closed, or obeyed by a terminal.

use super::command_study;
use crate::support::Bench;
use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader},
    process::Stdio,
};

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").expect("Linux has it")
}

/// The status with standard output full, and what standard error says.
fn into_full(bench: &Bench, arguments: &[&str]) -> (i32, String) {
    let output = bench.command(arguments).stdout(full()).output().expect("it starts");
    (output.status.code().expect("no signal"), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn names_in_a_study_reach_no_terminal() {
    let bench = Bench::new();
    command_study(&bench, "loud.toml", "\\u001b[2Jboo", "exit 1");
    let (code, out, err) = bench.run(&["run", "./loud.toml"]);
    assert_eq!(code, 4, "{out}{err}");
    assert!(err.contains("failed (␛[2Jboo)") && !err.contains('\u{1b}') && !out.contains('\u{1b}'), "{err:?}");
    // A workload's own names, with the 8-bit form of an escape, in figures and in an error.
    bench.write(
        "phase.toml",
        "name = \"\\u009b31mload\"\n[[fileset]]\nname = \"f\"\nfiles = 1\nsize = \"4 KiB\"\n[[phase]]\nname = \"\\u001b[2Jp\"\n\
         stop = { operations = 3 }\n[[phase.group]]\nname = \"\\u001b]0;g\\u0007\"\nthreads = 1\n[[phase.group.mix]]\nweight = 1\n\
         read = { size = \"4 KiB\", block = \"4 KiB\" }\n",
    );
    fs::create_dir(bench.path("d")).expect("made");
    let (code, out, err) = bench.run(&["load", "phase.toml", "--directory", "d"]);
    assert!(!format!("{out}{err}").contains(['\u{1b}', '\u{9b}', '\u{7}']), "{code} {out:?} {err:?}");
    // Words on the command line, which its parser quotes.
    let (code, _, err) = bench.run(&["report", "--format", "\u{1b}[2Jx"]);
    assert!(code == 2 && err.contains("invalid value") && !err.contains('\u{1b}'), "{err:?}");
}

#[test]
fn output_that_does_not_arrive_is_an_error_after_the_work() {
    let bench = Bench::new();
    for arguments in [&["list"][..], &["--help"], &["--version"], &["check"], &["schema"], &["completions", "bash"]] {
        let (code, err) = into_full(&bench, arguments);
        assert_eq!(code, 6, "{arguments:?}: {err}");
        assert!(err.contains("cannot write to standard output") && err.contains("No space left"), "{err}");
    }
    command_study(&bench, "one.toml", "work", "true");
    let (code, err) = into_full(&bench, &["run", "./one.toml"]);
    assert_eq!(code, 6, "{err}");
    assert!(err.contains("Run 1 is in") && bench.succeed(&["list", "runs"]).contains("finished"), "{err}");
    // What a run killed between the line and the deed leaves is gone although nobody could be told.
    use std::os::unix::fs::DirBuilderExt as _;
    let work = bench.work();
    fs::DirBuilder::new().mode(0o700).recursive(true).create(&work).expect("made");
    let image = work.join("fstone-scratch.img");
    let entry = format!("{{\"image\":{{\"path\":\"{}\",\"id\":null}}}}", image.display());
    fs::write(work.join("fstone.journal"), format!("{{\"made\":{{\"id\":0,\"entry\":{entry}}}}}\n")).expect("written");
    fs::write(&image, "").expect("written");
    let (code, err) = into_full(&bench, &["clean"]);
    assert_eq!(code, 6, "{err}");
    assert!(!image.exists(), "it was not cleaned");
}

fn unread(bench: &Bench, arguments: &[&str]) -> (i32, String) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = bench.command(arguments).stdout(writer).output().expect("it starts");
    (output.status.code().expect("no signal"), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_reader_that_went_away_ends_it_quietly_and_hides_no_result() {
    let bench = Bench::new();
    assert_eq!(unread(&bench, &["list"]), (141, String::new()));
    assert_eq!(unread(&bench, &["schema"]), (141, String::new()));
    command_study(&bench, "one.toml", "work", "true");
    command_study(&bench, "none.toml", "work", "exit 1");
    let (code, err) = unread(&bench, &["run", "./one.toml"]);
    assert!(code == 141 && err.contains("Run 1 is in"), "{code} {err}");
    let (code, err) = unread(&bench, &["run", "./none.toml"]);
    assert!(code == 4 && err.contains("Run 2 is in"), "what the run came to counts: {code} {err}");
    assert!(bench.succeed(&["list", "runs"]).matches(" finished").count() == 2);
}

#[test]
fn progress_that_nobody_reads_ends_no_run() {
    let bench = Bench::new();
    command_study(&bench, "one.toml", "work", "true");
    let mut child = bench.command(&["run", "./one.toml", "--repeats", "20"]).spawn().expect("it starts");
    let mut first = String::new();
    BufReader::new(child.stderr.take().expect("piped")).read_line(&mut first).expect("a line");
    assert!(first.contains("20 trials each"), "{first}");
    // The reader is gone now, as after `2>&1 | head -1`.
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let closed = bench.command(&["run", "./one.toml"]).stdout(full()).stderr(full()).output().expect("it starts");
    assert_eq!(closed.status.code(), Some(6));
    let runs = bench.succeed(&["list", "runs"]);
    assert_eq!(runs.matches(" finished").count(), 2, "{runs}");
}

#[test]
fn closed_streams_are_no_fault() {
    let bench = Bench::new();
    let line = format!("{} list >&- 2>&-", bench.typed(&[])[0]);
    let status = bench.shell(&line).stdout(Stdio::null()).status().expect("sh starts");
    assert_eq!(status.code(), Some(0));
}
