//! kill -9 while writing. The writer is this test binary, run again as a child that does nothing but record trials and
//! say, after each, that it is recorded.
//!
//! What this shows: nothing that was reported as recorded is lost when the process dies. That it survives a power cut
//! rests on `synchronous = FULL`, whose fsyncs `recorded_means_synced` sees happen.

use crate::samples::{CELLS, run, trial};
use fstone_model::result::TrialId;
use fstone_store::Store;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const STORE: &str = "FSTONE_TEST_STORE";

fn id(position: u32) -> TrialId {
    TrialId { cell: position % CELLS, repetition: position / CELLS }
}

#[test]
#[ignore = "the child of the tests below"]
fn child() {
    let path = std::env::var_os(STORE).expect("only as a child");
    let mut store = Store::open(Path::new(&path)).expect("opened");
    let number = store.begin_run(&run()).expect("recorded");
    let mut output = std::io::stdout();
    for position in 0.. {
        store.trial_started(number, id(position), position, 1).expect("recorded");
        store.record_trial(number, &trial(id(position), position)).expect("recorded");
        writeln!(output, "recorded {number} {position}").and_then(|()| output.flush()).expect("told");
    }
}

fn spawn(path: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["crash::child", "--exact", "--ignored", "--nocapture"])
        .env(STORE, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started")
}

/// The (run, position) of an acknowledgement; the test harness writes other lines, too.
fn acknowledged(line: &str) -> Option<(u64, u32)> {
    let mut words = line.split("recorded ").nth(1)?.split(' ');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[test]
fn a_killed_writer_loses_no_recorded_trial() {
    const ROUNDS: u64 = 12;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("fstone.db");
    let mut last = Vec::new();
    for round in 0..ROUNDS {
        let mut child = spawn(&path);
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        // Once it records, wait a time that differs by round, so that kills fall everywhere within a transaction.
        let first = lines.by_ref().map_while(Result::ok).find_map(|line| acknowledged(&line));
        let first = first.expect("the child recorded something");
        std::thread::sleep(Duration::from_micros(round * 2717));
        child.kill().expect("killed");
        child.wait().expect("gone");
        let acknowledgements = lines.map_while(Result::ok).filter_map(|line| acknowledged(&line));
        last.push(acknowledgements.last().unwrap_or(first));
    }

    let store = Store::open(&path).expect("opened after the kills");
    assert_eq!(store.runs().expect("read").len() as u64, ROUNDS);
    for (number, position) in last {
        let trials = store.dataset(number).expect("read").trials;
        let told = position as usize + 1;
        assert!((told..=told + 1).contains(&trials.len()), "{} recorded of {told} that were told", trials.len());
        for (position, read) in (0..).zip(&trials) {
            assert_eq!(*read, trial(id(position), position));
        }
        assert!(store.unfinished(number).expect("read").len() <= 1);
    }
    let integrity: String = rusqlite::Connection::open(&path)
        .and_then(|connection| connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)))
        .expect("checked");
    assert_eq!(integrity, "ok");
}

#[test]
fn recorded_means_synced() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, log) = (directory.path().join("fstone.db"), directory.path().join("strace.log"));
    let started = Command::new("strace")
        .args(["-f", "-e", "trace=fdatasync,fsync,write", "-s", "64", "-o"])
        .arg(&log)
        .arg(std::env::current_exe().expect("this binary"))
        .args(["crash::child", "--exact", "--ignored", "--nocapture"])
        .env(STORE, &path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut strace) = started else {
        eprintln!("skipped: strace is not installed");
        return;
    };
    let lines = BufReader::new(strace.stdout.take().expect("piped")).lines();
    let enough = lines.map_while(Result::ok).filter_map(|line| acknowledged(&line)).nth(20);
    // strace dies with the pipe's reader gone: its child is killed by SIGPIPE's error, and it follows.
    strace.kill().expect("killed");
    strace.wait().expect("gone");
    if enough.is_none() {
        eprintln!("skipped: strace cannot trace here");
        return;
    }
    let log = std::fs::read_to_string(&log).expect("the log");
    let mut synced = false;
    let mut seen = 0;
    for line in log.lines() {
        synced |= line.contains("fdatasync(") || line.contains("fsync(");
        if line.contains("write(1, ") && line.contains("recorded ") {
            assert!(synced, "a trial was reported as recorded without an fsync since the one before");
            synced = false;
            seen += 1;
        }
    }
    assert!(seen > 0, "the acknowledgements are in the log");
}
