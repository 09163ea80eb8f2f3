//! Runs that come from elsewhere: recognised, marked, never resumed, and asked about before they reach this machine.

mod blocks;

use crate::support::{Bench, Said, interrupt, is_root, wait_until};
use fstone_model::{Plan, Step, study::StepAction};
use fstone_store::Store;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    process::Stdio,
    time::Duration,
};

const EXT4: &str = r#""ext4" = { type = "ext4" }"#;

fn exported() -> Bench {
    let bench = Bench::new();
    bench.tiny_study(EXT4);
    bench.succeed(&["run", "./tiny.toml", "--device", "directory", "--repeats", "1"]);
    bench.succeed(&["export", "1", "run.fstone"]);
    bench
}

#[test]
fn ones_own_bundle_is_recognised() {
    let bench = exported();
    let told = bench.succeed(&["import", "run.fstone"]);
    assert!(told.contains("run 1, which the store already has") && told.contains("othing was imported"), "{told}");
    let history: serde_json::Value =
        serde_json::from_str(&bench.succeed(&["history", "--study", "tiny", "--format", "json"])).expect("JSON");
    assert!(history.to_string().matches("\"run\":").count() <= 1, "{history}");
    let list = bench.succeed(&["list", "runs"]);
    assert_eq!(list.matches("tiny").count(), 1, "{list}");
}

#[test]
fn a_store_in_a_directory_that_is_not_there_is_refused() {
    let bench = Bench::new();
    bench.tiny_study(EXT4);
    let store = bench.path("no/such/x.db");
    let named = store.display().to_string();
    let (code, _, err) = bench.run(&["run", "./tiny.toml", "--device", "directory", "--store", &named]);
    assert!(code == 2 && err.contains("there is no directory") && err.contains("--store"), "{code}: {err}");
    assert!(!bench.path("no").exists(), "nothing is made of a path that may be a mistake");
}

#[test]
fn an_imported_run_is_never_resumed() {
    let bench = Bench::new();
    bench.tiny_study(EXT4);
    let mut child =
        bench.command(&["run", "./tiny.toml", "--device", "directory", "--repeats", "30"]).spawn().expect("started");
    let begun = || bench.run(&["list", "runs"]).1.contains("1 ");
    while !begun() && child.try_wait().expect("a child").is_none() {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(1500));
    interrupt(&child);
    assert_eq!(child.wait().expect("it ended").code(), Some(130));
    bench.succeed(&["export", "1", "run.fstone"]);

    let other = Bench::new();
    other.tiny_study(EXT4);
    fs::copy(bench.path("run.fstone"), other.path("run.fstone")).expect("copied");
    other.succeed(&["import", "run.fstone"]);
    let (code, _, err) = other.run(&["run", "./tiny.toml", "--resume"]);
    assert!(code == 3 && err.contains("was imported") && err.contains("fstone rerun"), "{code}: {err}");
}

/// A store that was handed over, or a plan that was changed in one's own, may say anything.
#[test]
fn a_plan_that_this_user_did_not_begin_runs_nothing() {
    let bench = Bench::new();
    bench.tiny_study(EXT4);
    bench.succeed(&["run", "./tiny.toml", "--device", "directory", "--repeats", "1"]);
    let recorded = Store::open_read_only(&bench.store()).expect("whole").dataset(1).expect("readable");
    let witness = bench.path("it-ran");
    let begin = |change: &dyn Fn(&mut Plan)| {
        let mut run = recorded.run.clone();
        run.finished_unix_ns = None;
        change(&mut run.plan);
        Store::open(&bench.store()).expect("it is there").begin_run(&run)
    };
    begin(&|plan| {
        let argv = vec![format!("touch {}", witness.display())];
        let action = StepAction::Command { argv, shell: true, success: vec![0], figures: Vec::new() };
        let step = Step { name: "told".into(), action, ..plan.cells[0].steps[0].clone() };
        plan.cells[0].steps.insert(0, step);
    })
    .expect("recorded");
    let (code, _, err) = bench.run(&["run", "./tiny.toml", "--resume", "--changed-machine"]);
    assert!(code == 3 && err.contains("was not started by this user") && err.contains("runs touch "), "{code}: {err}");
    assert!(!witness.exists());
    // And what no study file may say no store can hold.
    let refused = begin(&|plan| {
        for step in &mut plan.cells[0].steps {
            if let StepAction::Load(load) = &mut step.action {
                std::sync::Arc::make_mut(load).filesets[0].directory = bench.path("victim").display().to_string();
            }
        }
    });
    let refused = format!("{:?}", refused.expect_err("it is elsewhere"));
    assert!(refused.contains("not below the load's directory"), "{refused}");
}

#[test]
fn a_run_with_commands_that_this_user_began_is_resumed() {
    let bench = Bench::new();
    bench.tiny_study(EXT4);
    let study = fs::read_to_string(bench.path("tiny.toml")).expect("written");
    let command = "[[step]]\ncommand = [\"true\"]\nshow = [\"time\"]\n[[step]]\nfsck";
    bench.write("tiny.toml", &study.replace("[[step]]\nfsck", command));
    let state = bench.path("state");
    let start = |arguments: &[&str]| {
        let mut command = bench.command(arguments);
        command.env("XDG_STATE_HOME", &state).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("started")
    };
    let mut child = start(&["run", "./tiny.toml", "--device", "directory", "--repeats", "3"]);
    let mut said = Said::by(&mut child);
    said.wait_for("trial 1 of 3");
    interrupt(&child);
    assert_eq!(said.end(child).0, 130);
    let notes = state.join("fstone/begun");
    let count = || fs::read_dir(&notes).expect("noted").count();
    assert_eq!(count(), 1);
    let output = start(&["run", "./tiny.toml", "--resume"]).wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(count(), 0, "a run that has ended is forgotten");
}

#[test]
fn a_bundle_boots_no_kernel_and_reads_no_tree_unasked() {
    let bench = Bench::new();
    bench.tiny_study(EXT4);
    let (kernel, witness) = (bench.path("linux"), bench.path("it-ran"));
    fs::write(&kernel, format!("#!/bin/sh\ntouch {}\n", witness.display())).expect("written");
    fs::set_permissions(&kernel, fs::Permissions::from_mode(0o755)).expect("ours");
    let study = fs::read_to_string(bench.path("tiny.toml")).expect("written");
    for (number, flavour) in ["uml", "qemu", "exact"].into_iter().enumerate() {
        bench.write("tiny.toml", &format!("factor.kernel = [\"{flavour}:{}\"]\n{study}", kernel.display()));
        bench.succeed(&["run", "./tiny.toml", "--device", "directory", "--repeats", "1"]);
        let _ = fs::remove_file(&witness);
        let bundle = format!("{flavour}.fstone");
        bench.succeed(&["export", &(number + 1).to_string(), &bundle]);
        for options in [&[][..], &["--dry-run"]] {
            let (code, out, err) = bench.run(&[&["rerun", &bundle, "--device", "loop"], options].concat());
            assert!(!witness.exists(), "{flavour}: the kernel that the bundle names was run: {out}{err}");
            if options.is_empty() {
                assert!(
                    code == 3 && err.contains("boots the kernel /") && err.contains("--allow-commands"),
                    "{flavour}: {code}: {err}"
                );
            }
        }
    }
}

fn with_a_command(device: &str, filesystem: impl Fn(&Bench) -> String) -> Bench {
    let bench = Bench::new();
    bench.tiny_study(&filesystem(&bench));
    let study = fs::read_to_string(bench.path("tiny.toml")).expect("written");
    let command = "[[step]]\ncommand = { shell = true, run = \"touch proof\" }\n";
    bench.write("tiny.toml", &study.replace("[[step]]\nfsck", &format!("{command}[[step]]\nfsck")));
    bench.succeed(&["run", "./tiny.toml", "--device", device, "--repeats", "1", "--duration", "200ms"]);
    bench.succeed(&["export", "1", "run.fstone"]);
    bench
}

#[test]
fn a_repetition_tells_what_it_would_run_and_read() {
    if !is_root() {
        eprintln!("skipped: only root makes filesystems");
        return;
    }
    let bench = with_a_command("loop", |bench| {
        fs::create_dir(bench.path("tree")).expect("ours");
        format!("\"ext4\" = {{ type = \"ext4\", tree = \"{}\" }}", bench.path("tree").display())
    });
    let (tree, command) = (format!("  reads the directory {}\n", bench.path("tree").display()), "touch proof\n");
    let (code, _, err) = bench.run(&["rerun", "run.fstone"]);
    assert!(code == 3 && err.contains(&tree) && err.contains(command) && err.contains("--allow-commands"), "{err}");
    assert!(err.contains("fstone: the bundle's study runs programs") && err.contains("\ncheck them, then"), "{err}");
    let told = bench.succeed(&["rerun", "run.fstone", "--dry-run"]);
    let (_, listed) = told.split_once("reads files of this machine:\n").expect("it is told");
    assert!(listed.contains(&tree) && listed.contains(command) && listed.contains("--allow-commands"), "{told}");
    assert_eq!(bench.succeed(&["list", "runs"]).matches("tiny").count(), 1, "nothing was run");
    bench.assert_clean();
}

#[test]
fn at_a_terminal_a_repetition_asks() {
    let bench = with_a_command("directory", |_| EXT4.to_owned());
    for (answer, runs) in [("no\n", 1), ("\n", 1), ("yes\n", 2)] {
        let line = bench.typed(&["rerun", "run.fstone", "--device", "directory"]).join(" ");
        let (asked, rest, code) = bench.at_a_terminal(&line, answer);
        assert!(asked.contains("touch proof"), "{asked}");
        assert_eq!(code, Some(if runs == 2 { 0 } else { 3 }), "{answer:?}: {asked}{rest}");
        assert_eq!(bench.succeed(&["list", "runs"]).matches("tiny").count(), runs, "{answer:?}: {rest}");
    }
}

/// What a run with these options looks like when its bundle is repeated: the plan, and what was told before it.
fn repeated(options: &[&str]) -> (String, String) {
    let bench = Bench::new();
    bench.tiny_study(EXT4);
    bench.succeed(&[&["run", "./tiny.toml"], options].concat());
    bench.succeed(&["export", "1", "run.fstone"]);
    fs::remove_file(bench.path("tiny.toml")).expect("the bundle has it");
    let (code, out, err) = bench.run(&["rerun", "run.fstone", "--dry-run"]);
    assert_eq!(code, 0, "{options:?}: {out}{err}");
    (out, err)
}

#[test]
fn a_repetition_works_where_the_run_worked() {
    let short = ["--repeats", "1", "--duration", "200ms"];
    let (plan, told) = repeated(&[&["--device", "directory"][..], &short].concat());
    assert!(plan.contains("directory (work directory)") && !plan.contains("mkfs"), "{plan}");
    assert!(!told.contains("Not as it was there"), "{told}");
    let (plan, told) = repeated(&[&["--executor", "directory"][..], &short].concat());
    assert!(plan.contains("directory (work directory)") && !told.contains("Not as it was there"), "{plan}{told}");
    if !is_root() {
        eprintln!("skipped: only root makes filesystems");
        return;
    }
    let (plan, told) = repeated(&[&["--device", "memory"][..], &short].concat());
    assert!(plan.contains("in memory") && !told.contains("Not as it was there"), "{plan}{told}");
    // Of the other machine.
    let bench = Bench::new();
    bench.tiny_study(EXT4);
    fs::create_dir(bench.path("there")).expect("ours");
    let there = format!("directory:{}", bench.path("there").display());
    bench.succeed(&[&["run", "./tiny.toml", "--device", &there][..], &short].concat());
    bench.succeed(&["export", "1", "run.fstone"]);
    let (code, _, err) = bench.run(&["rerun", "run.fstone", "--dry-run"]);
    assert!(code == 3 && err.contains(&there) && err.contains("with --device"), "{code} {err}");
    // What is asked for now may differ, and is told.
    let (code, plan, err) = bench.run(&["rerun", "run.fstone", "--dry-run", "--device", "loop", "--repeats", "2"]);
    assert!(code == 0 && plan.contains("mkfs.ext4"), "{code} {plan}{err}");
    assert!(err.contains("Not as it was there:\n  trials: 1 trial each there, 2 trials each here\n"), "{err}");
    assert!(err.contains(&format!("  device: directory {} there, loop 64 MiB here\n", &there[10..])), "{err}");
}

#[test]
fn a_repetition_has_the_runs_budget() {
    let (_, told) =
        repeated(&["--device", "directory", "--duration", "100ms", "--budget", "2s", "--resolution", "10%"]);
    assert!(told.contains("Repeating Tiny") && !told.contains("Not as it was there"), "{told}");
}

#[test]
fn a_repetition_of_a_repetition_has_the_options_of_the_first_run() {
    let bench = Bench::new();
    bench.tiny_study(EXT4);
    let options = ["--device", "directory", "--set", "threads=2", "--duration", "300ms", "--repeats", "1"];
    bench.succeed(&[&["run", "./tiny.toml"][..], &options].concat());
    bench.succeed(&["export", "1", "first.fstone"]);
    fs::remove_file(bench.path("tiny.toml")).expect("the bundle has it");
    bench.succeed(&["rerun", "first.fstone"]);
    bench.succeed(&["export", "2", "second.fstone"]);
    let plan = |bundle: &str| {
        let (code, out, err) = bench.run(&["rerun", bundle, "--dry-run"]);
        assert!(code == 0 && !err.contains("Not as it was there"), "{bundle}: {out}{err}");
        out
    };
    assert!(plan("first.fstone").contains("2 threads"), "{}", plan("first.fstone"));
    assert_eq!(plan("second.fstone"), plan("first.fstone"));
    let command = bench.json()["run"]["command"].to_string();
    assert!(command.contains("\"./tiny.toml\"") && command.contains("\"--set\",\"threads=2\""), "{command}");

    // As fstone recorded it before.
    let store = rusqlite::Connection::open(bench.store()).expect("it is there");
    store.execute("UPDATE runs SET command = '[\"fstone\",\"rerun\",\"x.fstone\"]' WHERE run = 2", []).expect("run 2");
    drop(store);
    bench.succeed(&["export", "2", "older.fstone"]);
    let (code, _, err) = bench.run(&["rerun", "older.fstone", "--dry-run"]);
    assert!(code == 2 && err.contains("does not contain the options"), "{code} {err}");
}

#[test]
fn a_repetition_compares_the_run_that_it_made() {
    let bench = Bench::new();
    bench.tiny_study(EXT4);
    let options = ["--device", "directory", "--repeats", "1", "--duration", "1500ms"];
    bench.succeed(&[&["run", "./tiny.toml"][..], &options].concat());
    bench.succeed(&["export", "1", "run.fstone"]);
    let repetition = bench.command(&["rerun", "run.fstone"]).spawn().expect("started");
    let has = |run: &str| bench.run(&["list", "runs"]).1.contains(run);
    wait_until("run 2", || has("   2  "));
    // One of the same study, begun meanwhile.
    let mut other = bench
        .command(&[
            "run",
            "./tiny.toml",
            "--work-directory",
            "other",
            "--device",
            "directory",
            "--repeats",
            "1",
            "--duration",
            "60s",
        ])
        .spawn()
        .expect("started");
    wait_until("run 3", || has("   3  "));
    let output = repetition.wait_with_output().expect("it ends");
    interrupt(&other);
    other.wait().expect("it ends");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.contains("Run 2 here against the bundle"), "{out}");
}

#[test]
fn the_server_shows_the_store_to_who_has_its_address() {
    let bench = exported();
    let mut server = bench.command(&["serve", "--port", "0"]).spawn().expect("started");
    let mut told = String::new();
    BufReader::new(server.stdout.take().expect("piped")).read_line(&mut told).expect("a line");
    let (_, rest) = told.split_once("http://").expect("an address");
    let (address, rest) = rest.split_once("/?token=").expect("a token");
    let token = rest.split_whitespace().next().expect("a token").to_owned();
    let ask = |target: &str, cookie: &str| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        let head = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n{cookie}\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("UTF-8");
        answer
    };
    let without = ask("/run/1", "");
    let with = ask(&format!("/run/1?token={token}"), "");
    let cookie =
        with.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).and_then(|line| line.split(';').next());
    let cookie = format!("Cookie: {}\r\n", cookie.expect("a cookie"));
    let page = ask("/run/1", &cookie);
    // By now it may be kept.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let kept = [ask("/run/1", &cookie), ask("/run/1", &cookie)];
    let by_hand = "INSERT INTO warnings SELECT run, cell, repetition, 99, 'changed by hand' FROM trials";
    let changed = rusqlite::Connection::open(bench.store()).and_then(|store| store.execute(by_hand, []));
    let after = ask("/run/1", &cookie);
    server.kill().and_then(|()| server.wait()).expect("it ends");
    assert!(without.starts_with("HTTP/1.1 403") && !without.contains("Tiny"), "{without}");
    assert!(with.starts_with("HTTP/1.1 303") && with.contains("Location: /run/1\r\n"), "{with}");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("Tiny"), "{page}");
    assert!(kept.iter().all(|kept| *kept == page) && !page.contains("changed by hand"), "{kept:?}");
    let log = bench.store().with_file_name("fstone.db-wal");
    assert!(
        std::fs::metadata(&log).map_or(0, |log| log.len()) == 0,
        "while it is served, the store is not kept in its log"
    );
    assert!(changed.is_ok_and(|rows| rows > 0) && after.contains("changed by hand"), "it shows what was: {after}");
}

/// A store from elsewhere says that its run was distributed by Slurm, by way of a directory of this user's.
#[test]
fn a_store_that_names_a_directory_removes_nothing_in_it() {
    let bench = exported();
    let (above, directory) = (bench.path("home"), bench.path("home/Documents"));
    fs::create_dir_all(&directory).expect("made");
    let mine =
        ["plan.fstone", "task.sh", "jobs.json", "block-1.fstone", "task-1_1.log"].map(|name| directory.join(name));
    mine.iter().for_each(|path| fs::write(path, "mine").expect("written"));
    let command =
        serde_json::json!(["fstone", "run", "./tiny.toml", "--slurm", "--slurm-directory", above]).to_string();
    let store = rusqlite::Connection::open(bench.store()).expect("it is there");
    let sql = "UPDATE runs SET identity = 'Documents', command = ?1, study = 'mine' WHERE run = 1";
    assert_eq!(store.execute(sql, [command]).expect("changed"), 1);
    drop(store);
    // A page of the user's own of the name that the run's has.
    let reports = bench.store().with_file_name("reports");
    fs::create_dir_all(&reports).expect("made");
    let page = reports.join("mine-1-Document.html");
    fs::write(&page, "<!doctype html><title>Mine</title>").expect("written");

    let (status, _, err) = bench.run(&["delete", "1"]);
    assert!(status == 3 && !err.contains("with its"), "{status}: {err}");
    let (status, out, err) = bench.run(&["delete", "1", "--yes"]);
    assert!(status == 0 && out.contains("nothing in it says that it was made for this run"), "{status}: {out}{err}");
    assert!(mine.iter().all(|path| path.exists()) && page.exists());
}

#[test]
fn the_question_lists_all_that_a_deletion_removes() {
    let bench = exported();
    bench.succeed(&["report", "1", "-f", "html"]);
    let (status, _, err) = bench.run(&["delete", "1"]);
    let reports = bench.store().with_file_name("reports");
    let page = err.split("with its page ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default().to_owned();
    assert!(status == 3 && page.starts_with(&reports.display().to_string()), "{status}: {err}");
    assert!(fs::metadata(&page).is_ok_and(|page| page.is_file()));
    let out = bench.succeed(&["delete", "1", "--yes"]);
    assert!(out.contains(&format!("deleted its page {page}")) && fs::metadata(&page).is_err(), "{out}");
}
