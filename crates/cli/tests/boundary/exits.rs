//! Every exit status is documented, and every one that is documented is reached.

use super::command_study;
use crate::support::{Bench, is_root, tool, wait_until};
use rustix::process::Signal;
use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

fn documented() -> Vec<(i32, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/exit-codes.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        Some((cells.next()?.parse().ok()?, cells.next()?.trim_end_matches(" |").to_owned()))
    });
    rows.collect()
}

#[test]
fn help_and_the_page_list_the_same_statuses() {
    let help = Bench::new().succeed(&["--help"]);
    let told = help.split("Exit status:\n").nth(1).expect("the list");
    let told: Vec<(i32, String)> = told
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .filter_map(|(code, meaning)| Some((code.parse().ok()?, meaning.trim().to_owned())))
        .collect();
    assert!(told.len() >= 10, "{help}");
    assert_eq!(told, documented());
}

type Way = (i32, fn(&Bench) -> i32);

const WAYS: [Way; 12] = [
    (0, |bench| bench.run(&["list"]).0),
    (1, wrong_figure),
    (2, |bench| bench.run(&["run", "smal-file"]).0),
    (3, |bench| bench.run(&["run", "./tiny.toml", "--executor", "qemu", "--kernels", "none"]).0),
    (4, |bench| bench.run(&["run", "./none.toml"]).0),
    (5, |bench| {
        bench.write("no-store", "this is another program's file, and no store at all");
        bench.run(&["--store", "no-store", "list", "runs"]).0
    }),
    (6, |bench| bench.run(&["report", "-f", "csv", "-o", "/dev/full"]).0),
    (7, |bench| bench.run_with(&["run", "./one.toml"], &[("FSTONE_REHEARSE_FAULT", "panic work")]).0),
    (8, undecided),
    (128, interrupted_as_fio),
    (130, interrupted),
    (141, |bench| {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        bench.command(&["list"]).stdout(writer).status().expect("it starts").code().expect("no signal")
    }),
];

fn wrong_figure(bench: &Bench) -> i32 {
    bench.succeed(&["run", "./tiny.toml", "--device", "directory", "--duration", "200ms", "--repeats", "1"]);
    let sql = "UPDATE figures SET value = value * 1.01 \
               WHERE run = (SELECT max(run) FROM figures) AND metric = 'transactions per second'";
    let changed = Command::new("sqlite3").arg(bench.store()).arg(sql).status();
    assert!(changed.is_ok_and(|status| status.success()));
    let run = bench.json()["run"]["id"].to_string();
    bench.run(&["verify", &run]).0
}

fn undecided(bench: &Bench) -> i32 {
    let run = || {
        bench.succeed(&["run", "./one.toml"]);
        bench.json()["run"]["id"].to_string()
    };
    let (before, after) = (run(), run());
    bench.run(&["compare", &before, &after, "--require-power", "5%"]).0
}

fn regressed() -> Bench {
    let bench = Bench::new();
    let flag = bench.path("broken");
    command_study(&bench, "one.toml", "work", &format!("test ! -e {}", flag.display()));
    bench.succeed(&["run", "./one.toml"]);
    fs::write(flag, "").expect("ours");
    assert_eq!(bench.run(&["run", "./one.toml"]).0, 4);
    bench
}

/// With a pipe that nobody reads as standard input, which /dev/fd/0 leads to.
fn with_a_broken_pipe(bench: &Bench, arguments: &[&str]) -> (i32, String, String) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = bench.command(arguments).stdin(writer).output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("no signal"), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_regression_counts_for_more_than_where_it_is_told() {
    let bench = regressed();
    assert_eq!(bench.run(&["compare", "1", "2"]).0, 1);
    let (code, _, err) = bench.run(&["compare", "1", "2", "-o", "/dev/full"]);
    assert!(code == 1 && err.contains("cannot write /dev/full") && err.contains("No space left"), "{code} {err}");
    let (code, _, err) = with_a_broken_pipe(&bench, &["compare", "1", "2", "-o", "/dev/fd/0"]);
    assert!(code == 1 && err.contains("cannot write /dev/fd/0") && err.contains("Broken pipe"), "{code} {err}");
}

#[test]
fn only_standard_outputs_reader_goes_quietly() {
    let bench = Bench::new();
    command_study(&bench, "one.toml", "work", "true");
    bench.succeed(&["run", "./one.toml"]);
    let (code, out, err) = with_a_broken_pipe(&bench, &["report", "-f", "json", "-o", "/dev/fd/0"]);
    assert!(code == 5 && out.is_empty() && err.contains("because Broken pipe"), "{code} {out}{err}");
}

#[test]
fn runs_in_which_nothing_could_be_found_are_undecided() {
    let bench = Bench::new();
    command_study(&bench, "one.toml", "work", "true");
    bench.succeed(&["run", "./one.toml"]);
    bench.succeed(&["run", "./one.toml"]);
    let (code, out, err) = bench.run(&["compare", "1", "2"]);
    assert!(code == 8 && out.contains("With so few trials no difference between"), "{code} {out}{err}");
}

#[test]
fn what_the_trials_came_to_counts_for_more_than_the_page() {
    let bench = Bench::new();
    command_study(&bench, "one.toml", "work", "true");
    command_study(&bench, "none.toml", "work", "exit 1");
    // Nobody can make a file there.
    let (code, _, err) = bench.run(&["run", "./none.toml", "--output", "/proc/self"]);
    assert!(code == 4 && err.contains("cannot write /proc/self/none-1-"), "{code} {err}");
    let (code, _, err) = bench.run(&["run", "./one.toml", "--output", "/proc/self"]);
    assert!(code == 5 && err.contains("cannot write") && err.contains("Run 2 is in"), "{code} {err}");
    assert_eq!(bench.succeed(&["list", "runs"]).matches(" finished").count(), 2);
}

#[test]
fn only_a_baselines_name_is_the_users_mistake() {
    let bench = Bench::new();
    command_study(&bench, "one.toml", "work", "true");
    bench.succeed(&["run", "./one.toml"]);
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON baselines BEGIN SELECT RAISE(ABORT, 'no more'); END";
    let store = rusqlite::Connection::open(bench.store()).expect("it is there");
    store.execute(refuse, []).expect("made");
    drop(store);
    let (code, _, err) = bench.run(&["compare", "--save-baseline", "main", "1"]);
    assert!(code == 5 && err.contains("failed to write to the store") && err.contains("no more"), "{code} {err}");
    assert_eq!(bench.run(&["compare", "--save-baseline", "a\nb", "1"]).0, 2);
}

#[test]
fn a_run_without_a_completed_trial_is_no_baseline() {
    let bench = Bench::new();
    command_study(&bench, "none.toml", "work", "exit 1");
    assert_eq!(bench.run(&["run", "./none.toml"]).0, 4);
    let (code, _, err) = bench.run(&["compare", "--save-baseline", "main", "1"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("run 1 has no completed trial") && err.contains("`fstone list runs`"), "{err}");
}

#[test]
fn what_has_no_profile_says_how_to_get_one() {
    let bench = Bench::new();
    command_study(&bench, "one.toml", "work", "true");
    for _ in 0..2 {
        bench.succeed(&["run", "./one.toml"]);
    }
    let refused = |arguments: &[&str], words: &str| {
        let (code, _, err) = bench.run(arguments);
        assert!(code == 2 && err.contains(words), "{arguments:?}: {code} {err}");
    };
    refused(&["profile", "1"], "run 1 has no profile: no kernel counted its work. Build one that does");
    refused(&["profile", "1", "2"], "run 1 has no profile");
    // As a kernel without symbols leaves it.
    let store = rusqlite::Connection::open(bench.store()).expect("it is there");
    let of_step = |what: &str| format!("{what} FROM steps WHERE step = 'work'");
    let figure = "INSERT INTO figures SELECT run, cell, repetition, step, 'kernel work', 9.0, 'count', 'lower', 1000";
    let counts = "INSERT INTO commands SELECT run, cell, repetition, step, 1000, '[\"/proc/kernel_work\"]', NULL, 0, '9 0x60012340'";
    for sql in [figure, counts] {
        store.execute(&of_step(sql), []).expect("recorded");
    }
    assert!(bench.succeed(&["profile", "1"]).contains("  0x60012340"));
    refused(&["profile", "1", "2"], "the kernel of run 1 has no symbols");
    store
        .execute("UPDATE commands SET output_tail = '9 vfs_write' WHERE run = 1 AND number = 1000", [])
        .expect("named");
    refused(&["profile", "1", "2"], "the kernel of run 2 has no symbols, so its functions cannot be matched");
    refused(&["profile", "1", "--calls"], "Build it anew and run it again");
}

fn serving(command: &mut Command) -> Child {
    let mut server = command.spawn().expect("it starts");
    let mut told = String::new();
    BufReader::new(server.stdout.as_mut().expect("piped")).read_line(&mut told).expect("a line");
    assert!(told.contains("http://"), "{told}");
    server
}

#[test]
fn every_signal_that_asks_for_the_end_has_one_status() {
    let bench = Bench::new();
    command_study(&bench, "one.toml", "work", "true");
    bench.succeed(&["run", "./one.toml"]);
    let send = |server: &Child, signal| {
        rustix::process::kill_process(rustix::process::Pid::from_child(server), signal).expect("it is running");
    };
    // A server that is started by tests that nohup started ignores it, too, and would never end.
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("the kernel says");
    let ignores_hup = u64::from_str_radix(ignored.trim(), 16).expect("a mask") & 1 == 1;
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        if signal == Signal::HUP && ignores_hup {
            eprintln!("skipped: SIGHUP is ignored where these tests run");
            continue;
        }
        let mut server = serving(&mut bench.command(&["serve", "--port", "0"]));
        send(&server, signal);
        assert_eq!(server.wait().expect("it ends").code(), Some(130), "{signal:?}");
    }
    // As `nohup` has it.
    let typed = bench.typed(&["serve", "--port", "0"]).join(" ");
    let mut server = serving(bench.shell(&format!("trap '' HUP; exec {typed}")).stdout(Stdio::piped()));
    send(&server, Signal::HUP);
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.try_wait().expect("a child").is_none(), "it was told to ignore that");
    send(&server, Signal::TERM);
    assert_eq!(server.wait().expect("it ends").code(), Some(130));
}

fn interrupted(bench: &Bench) -> i32 {
    command_study(bench, "long.toml", "work", "touch started; sleep 100");
    let mut run =
        bench.command(&["run", "./long.toml"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    wait_until("a run in progress", || bench.run(&["list", "runs"]).1.contains("in progress"));
    std::thread::sleep(Duration::from_millis(300));
    crate::support::interrupt(&run);
    run.wait().expect("it ends").code().expect("no signal")
}

fn interrupted_as_fio(bench: &Bench) -> i32 {
    let words = ["fio", "--name=long", "--rw=read", "--size=1m", "--time_based", "--runtime=100"];
    let mut run = bench.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    wait_until("a file of the job", || bench.path("long.0.0").exists());
    std::thread::sleep(Duration::from_millis(300));
    crate::support::interrupt(&run);
    run.wait().expect("it ends").code().expect("no signal")
}

#[test]
fn every_status_is_reached() {
    if !tool("sqlite3") {
        eprintln!("skipped: no sqlite3 to change the store with");
        return;
    }
    let bench = Bench::new();
    command_study(&bench, "one.toml", "work", "true");
    command_study(&bench, "none.toml", "work", "exit 1");
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }");
    bench.succeed(&["run", "./one.toml"]);
    for (status, way) in WAYS {
        assert_eq!(way(&bench), status);
    }
    let reached: BTreeSet<i32> = WAYS.iter().map(|(status, _)| *status).collect();
    let listed: BTreeSet<i32> = documented().into_iter().map(|(status, _)| status).collect();
    assert_eq!(reached, listed, "what is listed and what is reached");
}

#[test]
fn a_right_that_is_missing_is_not_a_fault_of_the_store() {
    let bench = Bench::of_nobody();
    command_study(&bench, "one.toml", "work", "true");
    let locked = bench.path("locked");
    fs::create_dir(&locked).expect("made");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).expect("ours");
    let home = locked.to_str().expect("UTF-8");
    // The store, the work directory and the report, each below what this user cannot write.
    for options in [
        &["--store", "locked/x.db", "run", "./one.toml"][..],
        &["--work-directory", "locked/work", "run", "./one.toml"],
        &["run", "./one.toml", "--output", "locked/reports"],
    ] {
        let (code, out, err) = bench.run_with(options, &[("HOME", home)]);
        assert_eq!(code, 3, "{options:?}: {out}{err}");
        assert!(err.contains("Permission denied"), "{options:?}: {err}");
    }
    // What may not be looked at is not taken for missing.
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).expect("ours");
    let (code, out, err) = bench.run(&["--store", "locked/x.db", "list", "runs"]);
    assert!(code == 3 && err.contains("Permission denied"), "{code}: {out}{err}");
    // Nor is a journal that lies there.
    for options in [&["--dry-run"][..], &[]] {
        let (code, out, err) = bench.run(&[&["--work-directory", "locked/work", "clean"], options].concat());
        assert!(code == 3 && err.contains("Permission denied") && !out.contains("Nothing"), "{code}: {out}{err}");
    }
    let (code, out, err) = bench.run(&["--kernels", "locked/kernels", "kernel", "list"]);
    assert!(code == 3 && err.contains("Permission denied"), "{code}: {out}{err}");
    // SQLite says no more than that it cannot open it.
    bench.write("secret.db", "");
    fs::set_permissions(bench.path("secret.db"), fs::Permissions::from_mode(0o000)).expect("ours");
    let (code, out, err) = bench.run(&["--store", "secret.db", "list", "runs"]);
    assert!(code == 3 && err.contains("Permission denied"), "{code}: {out}{err}");
    bench.write("secret.toml", "");
    fs::set_permissions(bench.path("secret.toml"), fs::Permissions::from_mode(0o000)).expect("ours");
    for arguments in [&["run", "./secret.toml"][..], &["verify", "secret.toml"], &["ffsb", "secret.toml"]] {
        let (code, _, err) = bench.run(arguments);
        assert!(code == 3 && err.contains("Permission denied"), "{arguments:?}: {code} {err}");
    }
    bench.write("x.rec", "");
    fs::set_permissions(bench.path("x.rec"), fs::Permissions::from_mode(0o000)).expect("ours");
    bench.succeed(&["record", "-o", "true.rec", "--under", ".", "--", "cat", "one.toml"]);
    for arguments in [
        &["record", "-o", "y.rec", "--under", "locked/d", "--", "true"][..],
        &["record", "-o", "locked/y.rec", "--", "true"],
        &["record", "-o", "y.rec", "--", "./x.rec"],
        &["record", "show", "x.rec"],
        &["record", "import", "x.rec"],
        &["replay", "x.rec", "--directory", "."],
        &["replay", "true.rec", "--directory", "locked"],
        &["replay", "true.rec", "--directory", "locked/d"],
        &["convert", "x.rec"],
    ] {
        let (code, _, err) = bench.run(arguments);
        assert!(code == 3 && err.contains("Permission denied"), "{arguments:?}: {code} {err}");
    }
    // Root's, where this is not root.
    let (code, _, err) = bench.run(&["record", "-o", "y.rec", "--pid", "1"]);
    assert!(code == 3 && err.contains("try as root"), "{code} {err}");
}

#[test]
fn a_full_filesystem_has_its_own_status() {
    if !is_root() {
        eprintln!("skipped: a small filesystem to fill needs root");
        return;
    }
    let bench = Bench::new();
    command_study(&bench, "one.toml", "work", "true");
    let small = bench.mount_tmpfs("size=64k");
    let store = small.path().join("x.db");
    let (code, out, err) = bench.run(&["--store", store.to_str().expect("UTF-8"), "run", "./one.toml"]);
    assert_eq!(code, 6, "{out}{err}");
    assert!(err.contains("full"), "{err}");
}

#[test]
fn a_panic_is_logged_and_what_the_run_had_made_is_undone() {
    let bench = Bench::new();
    let state = bench.path("state");
    let of = |what: &str, study: &str, step: &str| {
        let fault = format!("{what} {step}");
        bench.run_with(
            &["run", study],
            &[("FSTONE_REHEARSE_FAULT", &fault), ("XDG_STATE_HOME", state.to_str().expect("UTF-8"))],
        )
    };
    command_study(&bench, "one.toml", "work", "true");
    let (code, out, err) = of("panic", "./one.toml", "work");
    assert_eq!(code, 7, "{out}{err}");
    let log = err.lines().find_map(|line| line.trim().strip_prefix("Please report it, with ")).expect("its log");
    let log = fs::read_to_string(log).expect("it is there");
    assert!(log.contains("rehearsed") && log.contains("./one.toml") && log.contains("fault.rs"), "{log}");
    bench.assert_clean();
    // An abort undoes nothing; its status is the same.
    assert_eq!(of("abort", "./one.toml", "work").0, 7);
    bench.succeed(&["clean"]);
    bench.assert_clean();
    if !is_root() {
        eprintln!("skipped: mounts to undo need root");
        return;
    }
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }");
    let (code, out, err) = of("panic", "./tiny.toml", "fsck");
    assert_eq!(code, 7, "{out}{err}");
    bench.assert_clean();
}
