//! The binary as a user meets it: what it prints, what it exits with, and what it leaves on the machine.

mod answers;
mod boundary;
mod cluster;
mod documents;
mod dropin;
mod foreign;
mod guests;
mod published;
mod ranks;
mod record;
mod safety;
mod support;

use std::{fs, process::Command as Process, time::Duration};
use support::{Bench, is_root, tool};

#[test]
fn help_teaches_and_names_the_exit_codes() {
    let bench = Bench::new();
    let help = bench.succeed(&["--help"]);
    for word in ["fstone run small-file --quick", "fstone check", "Exit status", "130"] {
        assert!(help.contains(word), "{word} in {help}");
    }
    let run = bench.succeed(&["run", "--help"]);
    assert!(run.contains("--dry-run") && run.contains("Examples:"), "{run}");
    assert!(bench.succeed(&["completions", "bash"]).contains("fstone"));
    assert!(bench.succeed(&["manual"]).contains(".TH fstone"));
}

#[test]
fn what_cannot_be_run_is_not_planned() {
    let bench = Bench::new();
    for (arguments, status, words) in [
        (&["--kernel", "uml:0.1"][..], 3, "There is no package for 0.1; there are 5.10, 6.1, 6.12"),
        (&["--guest-memory", "8MiB"], 2, "a guest has from 64 MiB"),
        (&["--set", "threads=100000"], 2, "at most 4000"),
    ] {
        let (exit, _, said) = bench.run(&[&["run", "small-file", "--quick", "--dry-run"], arguments].concat());
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert_eq!(exit, status, "{arguments:?}: {said}");
    }
    // Nor are kernels that a study names itself; where one is there, the others' rows are skipped.
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }");
    let study = fs::read_to_string(bench.path("tiny.toml")).expect("written");
    for (kernels, status) in [("\"uml:9.9\"", 3), ("\"host\", \"uml:9.9\"", 0)] {
        bench.write("tiny.toml", &format!("factor.kernel = [{kernels}]\n{study}"));
        let (exit, _, said) = bench.run(&["run", "./tiny.toml", "--dry-run"]);
        assert!(exit == status && said.contains("there is no kernel uml:9.9"), "{kernels}: {exit}: {said}");
        assert_eq!(said.contains("its rows will be skipped"), status == 0, "{said}");
    }
}

#[test]
fn a_dry_run_names_the_seed_that_repeats_its_order() {
    let bench = Bench::new();
    let dry = |seed: &[&str]| {
        bench.succeed(&[&["run", "small-file", "--quick", "--dry-run", "--device", "loop"], seed].concat())
    };
    let first = dry(&[]);
    let (_, behind) = first.split_once("--seed ").expect("it says how to get this order");
    let seed: String = behind.chars().take_while(char::is_ascii_digit).collect();
    let order = |plan: &str| plan.split_once("\n\n").expect("a head, then the plan").1.to_owned();
    assert_eq!(order(&dry(&["--seed", &seed])), order(&first));
    assert!(!dry(&["--seed", &seed]).contains("each draws"));
}

#[test]
fn the_schema_is_json_and_every_built_in_study_is_listed() {
    let bench = Bench::new();
    let schema: serde_json::Value = serde_json::from_str(&bench.succeed(&["schema"])).expect("the schema is JSON");
    assert!(schema["properties"]["factor"].is_object());
    let list = bench.succeed(&["list"]);
    for study in [
        "small-file",
        "large-file",
        "kernel-tree",
        "random-io",
        "many-files",
        "mail",
        "personalities",
        "io500",
        "durability",
    ] {
        assert!(list.contains(study), "{study} in {list}");
    }
    assert!(list.contains("No runs yet"));
}

#[test]
fn models_are_listed_printed_and_refused_with_their_names() {
    let bench = Bench::new();
    assert!(bench.succeed(&["device"]).contains("hdd-7200-2008"));
    let disk = bench.succeed(&["device", "hdd-7200-2008"]);
    for words in ["110.51 MiB/s", "from: the published study", "at 100.0 % of the drive", "made durable by a flush"] {
        assert!(disk.contains(words), "{words} in {disk}");
    }
    let words = |model: &str| bench.succeed(&["device", model]);
    assert!(
        words("nvme-ssd").contains("A random write of 4 KiB, durable without a flush: 0.009 ms"),
        "{}",
        words("nvme-ssd")
    );
    assert!(words("constant").contains("volatile write cache"));
    let (code, _, error) = bench.run(&["device", "floppy"]);
    assert!(code == 2 && error.contains("nvme-ssd"), "{code}: {error}");
    let mine = bench.path("mine.toml");
    let text =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/constant.toml")).expect("built in");
    fs::write(&mine, text.replace("\"1 ms\"", "\"1000 s\"")).expect("ours");
    let (code, _, error) = bench.run(&["device", &mine.display().to_string()]);
    assert!(code == 2 && error.contains("`latency` is 1000 s, and must be from"), "{code}: {error}");
}

#[test]
fn a_cause_is_told_once() {
    let bench = Bench::new();
    fs::create_dir(bench.store()).expect("a directory where the store should be");
    let (code, _, err) = bench.run(&["list", "runs"]);
    assert_eq!(code, 3, "{err}");
    assert_eq!(err.matches("it is a directory").count(), 1, "{err}");
    let (_, _, err) = bench.run(&["verify", "/nonexistent/run.fstone"]);
    assert_eq!(err.matches("No such file or directory").count(), 1, "{err}");
}

#[test]
fn an_unknown_study_is_bad_input_and_says_which_there_are() {
    let bench = Bench::new();
    let (code, _, err) = bench.run(&["run", "smal-file"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("no built-in study") && err.contains("small-file"), "{err}");
}

#[test]
fn a_wrong_study_shows_every_error_with_its_line_and_column() {
    let bench = Bench::new();
    bench.write("wrong.toml", "title = 3\nrepeets = 2\ndevice = { loop = { size = \"4 parsecs\" } }\n[factor.filesystem]\n\"a\" = { type = \"ext5\" }\n[[step]]\nsync = {}\n");
    let (code, _, err) = bench.run(&["run", "./wrong.toml"]);
    assert_eq!(code, 2, "{err}");
    for place in ["wrong.toml:1:9", "wrong.toml:2:1", "repeats", "parsecs", "ext5", "ext4"] {
        assert!(err.contains(place), "{place} in {err}");
    }
    assert!(!bench.work().exists() && !bench.store().exists(), "nothing is made for a study that cannot be read");
}

#[test]
fn a_profile_with_a_typing_error_points_at_it() {
    let bench = Bench::new();
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    let profile = fs::read_to_string(bench.path("tiny.ffsb"))
        .expect("it was written")
        .replace("num_threads=4", "num_threads=four");
    bench.write("tiny.ffsb", &profile);
    let (code, _, err) = bench.run(&["run", "./tiny.toml"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("tiny.ffsb:12:") && err.contains("num_threads=four"), "{err}");
}

#[test]
fn a_dry_run_prints_the_plan_and_touches_nothing() {
    let bench = Bench::new();
    let plan = bench.succeed(&["run", "small-file", "--dry-run", "--seed", "7"]);
    for word in ["mkfs.ext3", "mount -t ext4", "data=writeback,nomballoc", "e2fsck", "xfs_repair"] {
        assert!(plan.contains(word), "{word} in {plan}");
    }
    assert_eq!(plan, bench.succeed(&["run", "small-file", "--dry-run", "--seed", "7"]), "the same seed, the same plan");
    assert!(!bench.work().exists() && !bench.store().exists());
}

#[test]
fn a_report_without_a_run_says_how_to_make_one() {
    let bench = Bench::new();
    let (code, _, err) = bench.run(&["report"]);
    assert_eq!(code, 2);
    assert!(err.contains("fstone run small-file --quick"), "{err}");
}

#[test]
fn without_root_the_workload_runs_on_the_directory_as_it_is() {
    let bench = Bench::of_nobody();
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }\n\"xfs\" = { type = \"xfs\" }");
    let (code, out, err) = bench.run(&["run", "./tiny.toml", "--executor", "directory"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("as it is"), "{out}{err}");
    let json = bench.json();
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(1), "one row: {json}");
    assert_eq!(fs::read_dir(bench.work()).map_or(0, Iterator::count), 0, "the work directory is empty again");
}

#[test]
fn refused_and_skipped_rows_are_results_and_the_figures_agree_everywhere() {
    if !is_root() {
        eprintln!("skipped: making filesystems needs root");
        return;
    }
    let bench = Bench::new();
    bench.tiny_study(
        "\"ext4\" = { type = \"ext4\" }\n\"gone\" = { type = \"ext4\", mount = \"nomballoc\" }\n\"odd\" = { type = \"ext4\", mkfs = \"-O no_such_feature\" }\n\"no tool\" = { type = \"reiser4\" }",
    );
    let (code, out, err) = bench.run(&["run", "./tiny.toml"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("ext4: Unknown parameter 'nomballoc'"), "the kernel's words: {out}");
    assert!(out.contains("no_such_feature"), "mkfs's words: {out}");
    assert!(out.contains("skipped") || out.contains("refused"), "{out}");
    bench.assert_clean();

    // The table, the JSON, the CSV and the rows of the store are one and the same.
    let json = bench.json();
    let csv = bench.succeed(&["report", "--format", "csv"]);
    assert!(csv.lines().count() > 20, "{csv}");
    let rows = bench.succeed(&["report"]);
    assert!(out.contains(rows.trim()), "what the run printed is the report:\n{out}\n{rows}");
    let trials = support::trials(&json);
    assert_eq!(trials.iter().filter(|trial| trial["outcome"] == "completed").count(), 2, "{json}");
    if tool("sqlite3") {
        let query = "SELECT count(*), sum(value) FROM figures WHERE metric = 'transactions per second'";
        let answer = Process::new("sqlite3").arg(bench.store()).arg(query).output().expect("sqlite3 starts");
        let answer = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        let (count, sum) = answer.split_once('|').expect("two columns");
        let values: Vec<f64> = trials
            .iter()
            .flat_map(|trial| trial["figures"].as_array().cloned().unwrap_or_default())
            .filter(|figure| figure["metric"] == "transactions per second")
            .map(|figure| figure["value"].as_f64().expect("a number"))
            .collect();
        assert_eq!(count.parse(), Ok(values.len()), "{answer}");
        let total: f64 = values.iter().sum();
        assert!((sum.parse::<f64>().expect("a number") - total).abs() <= total * 1e-9, "{answer} against {total}");
    } else {
        eprintln!("skipped: comparing with the store's rows needs sqlite3");
    }
}

#[test]
fn a_tool_that_is_missing_is_named_with_its_cure() {
    if !is_root() {
        eprintln!("skipped: making filesystems needs root");
        return;
    }
    let bench = Bench::new();
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }\n\"btrfs\" = { type = \"btrfs\" }");
    let (code, out, err) = bench.run_without("mkfs.btrfs", &["run", "./tiny.toml", "--device-size", "300MiB"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("skipped") && out.contains("mkfs.btrfs") && out.contains("btrfs-progs"), "{out}");
    bench.assert_clean();
}

#[test]
fn an_interrupted_run_keeps_its_trials_and_leaves_nothing() {
    if !is_root() {
        eprintln!("skipped: making filesystems needs root");
        return;
    }
    let bench = Bench::new();
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }\n\"ext2\" = { type = \"ext2\" }");
    let mut child = bench.command(&["run", "./tiny.toml", "--repeats", "30"]).spawn().expect("it starts");
    let store = bench.store();
    let finished = || {
        let (code, out, _) = bench.run(&["list", "runs"]);
        code == 0
            && store.exists()
            && out.lines().any(|line| line.contains("in progress") && !line.trim_end().ends_with(" 0"))
    };
    support::wait_until("a trial of a run that is in progress", finished);
    support::interrupt(&child);
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    bench.assert_clean();
    let kept = support::trials(&bench.json()).len();
    assert!(kept > 0 && kept < 60, "finished trials are kept: {kept}");

    // And it goes on where it was, to the end.
    let resumed = bench.command(&["run", "./tiny.toml", "--resume"]).spawn().expect("it starts");
    std::thread::sleep(Duration::from_secs(3));
    support::interrupt(&resumed);
    let output = resumed.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("continuing run 1"));
    assert!(support::trials(&bench.json()).len() >= kept);
    bench.assert_clean();
}

#[test]
fn a_full_work_directory_is_said_and_the_machine_is_clean() {
    if !is_root() {
        eprintln!("skipped: a small filesystem to fill needs root");
        return;
    }
    let bench = Bench::new();
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }");
    let small = bench.mount_tmpfs("size=6m,mode=700");
    let (code, out, err) =
        bench.run_with(&["run", "./tiny.toml"], &[("FSTONE_WORK_DIRECTORY", small.path().to_str().expect("UTF-8"))]);
    assert_ne!(code, 0, "{out}{err}");
    let said = format!("{out}{err}").to_lowercase();
    assert!(said.contains("space") || said.contains("free"), "{out}{err}");
    assert!(!fs::read_to_string("/proc/mounts").expect("readable").contains(&format!("{}/", small.path().display())));
    bench.assert_clean();
}

#[test]
fn a_load_runs_alone_and_an_ffsb_profile_unchanged() {
    let bench = Bench::new();
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }");
    let profile = fs::read_to_string(bench.path("tiny.ffsb")).expect("it was written");
    let target = bench.path("target");
    fs::create_dir(&target).expect("it can be made");
    bench.write("here.ffsb", &profile.replace("/mnt/test/", target.to_str().expect("UTF-8")));
    let printed = bench.succeed(&["ffsb", "here.ffsb"]);
    for name in ["Transactions per Second", "Read Throughput", "Write Throughput", "CPU Utilization", "readall"] {
        assert!(printed.contains(name), "{name} in {printed}");
    }
    let native = bench.succeed(&["convert", "here.ffsb"]);
    bench.write("native.toml", &native);
    let alone = bench.path("alone");
    fs::create_dir(&alone).expect("it can be made");
    let json =
        bench.succeed(&["load", "native.toml", "--directory", alone.to_str().expect("UTF-8"), "--seed", "5", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(report["seed"], 5);
    assert!(report["operations"].as_array().is_some_and(|operations| operations.len() == 3), "{json}");
}

#[test]
fn sysbench_prepare_run_and_cleanup() {
    let bench = Bench::new();
    let options = [
        "sysbench",
        "fileio",
        "--file-total-size=4M",
        "--file-num=4",
        "--file-test-mode=rndrw",
        "--events=200",
        "--time=0",
    ];
    let with = |command: &str| bench.succeed(&[&options[..], &[command]].concat());
    assert!(with("prepare").contains("4194304 bytes written"));
    assert!(bench.path("test_file.3").exists());
    let run = with("run");
    for name in [
        "reads/s:",
        "writes/s:",
        "fsyncs/s:",
        "total time:",
        "total number of events:",
        "Latency (ms)",
        "Threads fairness",
    ] {
        assert!(run.contains(name), "{name} in {run}");
    }
    with("cleanup");
    assert!(!bench.path("test_file.0").exists());
}

#[test]
fn the_page_opens_in_a_browser_without_errors() {
    if !is_root() || !tool("chromium") {
        eprintln!("skipped: needs root and chromium");
        return;
    }
    let bench = Bench::new();
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }\n\"gone\" = { type = \"ext4\", mount = \"nomballoc\" }");
    bench.succeed(&["run", "./tiny.toml"]);
    bench.succeed(&["report", "--format", "html", "--output", "page.html"]);
    let output = Process::new("timeout")
        .args(["120", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--enable-logging=stderr",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", bench.path("browser").display()))
        .arg(format!("file://{}", bench.path("page.html").display()))
        .output()
        .expect("chromium starts");
    let (dom, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(dom.contains("Unknown parameter 'nomballoc'") && dom.contains("<svg"), "the page is there: {log}");
    assert!(!log.contains("CONSOLE"), "the console is empty: {log}");
}

fn two_runs(bench: &Bench, repeats: &str) {
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }");
    for _ in 0..2 {
        bench.succeed(&["run", "./tiny.toml", "--device", "directory", "--duration", "200ms", "--repeats", repeats]);
    }
}

#[test]
fn a_run_is_looked_at_by_another_factor() {
    let bench = Bench::new();
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }\n[factor]\nthreads = [1, 2]\nfiles = [20, 30]");
    bench.succeed(&["run", "./tiny.toml", "--device", "directory", "--duration", "100ms", "--repeats", "1"]);
    // What is compared stands last.
    for (by, order) in [("files", ["threads", "files"]), ("threads", ["files", "threads"])] {
        let table = bench.succeed(&["report", "--by", by]);
        assert!(table.lines().any(|line| line.split_whitespace().take(2).eq(order)), "{table}");
    }
    let (code, _, err) = bench.run(&["report", "--by", "kernel"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("run 1 did not vary this factor; it varied threads, files"), "{err}");
}

#[test]
fn two_runs_are_compared_and_a_baseline_has_a_name() {
    let bench = Bench::new();
    two_runs(&bench, "2");
    let undecided = |arguments: &[&str]| {
        let (code, out, err) = bench.run(arguments);
        assert_eq!(code, 8, "{arguments:?}: {out}{err}");
        out
    };
    let text = undecided(&["compare", "1", "2"]);
    assert!(text.contains("Run 2 against run 1") && text.contains("too few trials"), "{text}");
    let (code, out, _) = bench.run(&["compare", "1", "2", "--require-power", "5%"]);
    assert!(code == 8 && out.contains("The requirement was to find a difference of 5 %"), "{code} {out}");
    let junit = undecided(&["compare", "1", "2", "--format", "junit"]);
    assert!(junit.starts_with("<?xml") && junit.contains("<error type=\"power\""), "{junit}");
    assert!(bench.succeed(&["compare", "--save-baseline", "main", "2"]).contains("baseline main: "));
    assert!(bench.succeed(&["compare", "--save-baseline", "main", "1"]).contains("baseline main in place of run 2: "));
    let json = undecided(&["compare", "--baseline", "main", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((json["baseline"]["name"].as_str(), json["other"]["id"].as_u64()), (Some("main (run 1)"), Some(2)));

    for (arguments, code, words) in [
        (&["compare", "1", "9"][..], 2, "there is no run 9"),
        (&["compare", "1", "1"], 2, "the same run"),
        (&["compare", "1"], 2, "name two runs"),
        (&["compare", "--baseline", "other", "2"], 2, "saved are main"),
        (&["compare", "1", "2", "--column", "speed"], 2, "transactions per second"),
        (&["compare", "1", "no.fstone"], 2, "neither the number of a run"),
    ] {
        let (found, out, err) = bench.run(arguments);
        assert_eq!(found, code, "{arguments:?} {out}{err}");
        assert!(err.contains(words), "{words} in {err}");
    }

    // A directory's row is named by what is there and its age.
    let store = rusqlite::Connection::open(bench.store()).expect("it is there");
    store.execute("UPDATE runs SET plan = replace(plan, ', as it is', ', aged: git')", []).expect("2 runs");
    store
        .execute("UPDATE runs SET plan = replace(plan, ', aged: git', ', as it is') WHERE run = 1", [])
        .expect("run 1");
    drop(store);
    // In a terminal the name is wrapped at the width that the figures leave it.
    let text = undecided(&["compare", "1", "2", "--format", "markdown"]);
    assert!(text.contains("as it is → ") && text.contains("aged: git") && !text.contains("in common"), "{text}");

    bench.succeed(&["run", "./tiny.toml", "--device", "directory", "--duration", "300ms", "--repeats", "1"]);
    let (code, _, err) = bench.run(&["compare", "1", "3"]);
    assert!(
        code == 3 && err.contains("different load: load ran 200 ms, then 300 ms; rows of the same name"),
        "{code} {err}"
    );
}

#[test]
fn a_regression_ends_with_1_and_another_machine_is_refused() {
    let bench = Bench::new();
    two_runs(&bench, "5");
    // What a slow kernel or another machine would have left in the store.
    let sql = |sql: &str| {
        let status = Process::new("sqlite3").arg(bench.store()).arg(sql).status();
        status.is_ok_and(|status| status.success())
    };
    if !tool("sqlite3") {
        eprintln!("skipped: no sqlite3 to change the store with");
        return;
    }
    assert!(sql("UPDATE figures SET value = value * 0.001 WHERE run = 2 AND metric = 'transactions per second'"));
    let column = ["--column", "transactions per second"];
    let (code, out, err) = bench.run(&[&["compare", "1", "2"][..], &column].concat());
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("1 regression beyond 5 %"), "{out}");
    let (code, _, _) = bench.run(&[&["compare", "2", "1"][..], &column].concat());
    assert_eq!(code, 0, "the other way round it is an improvement");

    assert!(sql("UPDATE runs SET inventory = json_set(inventory, '$.host', 'elsewhere') WHERE run = 2"));
    let (code, out, err) = bench.run(&["compare", "1", "2"]);
    assert_eq!(code, 3, "{out}{err}");
    assert!(err.contains("different machine") && err.contains("--across machine"), "{err}");
    assert_eq!(bench.run(&["compare", "1", "2", "--across", "machine"]).0, 1, "told to, it does");
}

/// Where there is no terminal, a line each: what the load does, and after a block what is known.
#[test]
fn a_run_can_be_watched() {
    let bench = Bench::new();
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }");
    let load = ["run", "./tiny.toml", "--device", "directory", "--duration", "1500ms", "--repeats", "2"];
    let (code, _, told) = bench.run(&[&load[..], &["--live"]].concat());
    let figures = told.lines().filter(|line| line.starts_with("  ") && line.contains("/s · ")).count();
    assert!(code == 0 && figures >= 2, "{code} {told}");
    assert!(told.contains("after block 1, not final: nothing is decided yet"), "{told}");
    let (_, _, told) = bench.run(&load);
    assert!(!told.contains("/s · ") && !told.contains("after block"), "{told}");
}

#[test]
fn a_note_goes_with_its_run() {
    let bench = Bench::new();
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }");
    let run = |note: &str| {
        let load = ["run", "./tiny.toml", "--device", "directory", "--duration", "200ms", "--repeats", "1"];
        bench.run(&[&load[..], &["--note", note]].concat())
    };
    let (long, control) = ("x".repeat(201), "before\u{1b}[2J");
    for (note, told) in [
        (long.as_str(), "a note has at most 200 characters, and this one has 201"),
        (control, "a note is one line without control characters, and this one has U+001B"),
        ("two\nlines", "this one has U+000A"),
        (" ", "a note cannot be empty"),
    ] {
        let (code, _, err) = run(note);
        assert!(code == 2 && err.contains(told) && !err.contains('\u{1b}'), "{code} {err:?}");
    }
    for note in ["before the patch: <b> & `x`", "with it"] {
        let (code, out, err) = run(note);
        assert!(code == 0 && out.contains(&format!("Note: {note}")), "{code} {out}{err}");
    }
    let plain = "before the patch: <b> & `x`";
    let listed = bench.succeed(&["list", "runs"]);
    assert!(
        listed.lines().any(|line| line.ends_with(plain)) && listed.lines().any(|line| line.ends_with("  with it")),
        "{listed}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&bench.succeed(&["report", "1", "--format", "json"])).expect("JSON");
    assert_eq!(json["run"]["note"], plain);
    assert!(
        bench
            .succeed(&["report", "1", "--format", "markdown"])
            .contains("\nNote: before the patch: &lt;b&gt; &amp; \\`x\\`\n")
    );
    let page = bench.succeed(&["report", "1", "--format", "html"]);
    assert!(page.contains("Note: before the patch: &#60;b&#62; &#38; `x`"), "escaped");
    let index = fs::read_to_string(bench.path("data/reports/index.html")).expect("an index");
    assert!(index.contains("Note: with it") && index.contains("Note: before"), "{index}");
    for format in ["terminal", "markdown", "html"] {
        let (code, told, err) = bench.run(&["compare", "1", "2", "--format", format]);
        assert_eq!(code, 8, "{err}");
        assert!(told.contains("Before, run 1: before the patch") && told.contains("After, run 2: with it"), "{told}");
    }
    let junit = bench.run(&["compare", "1", "2", "--format", "junit"]).1;
    assert!(
        junit.contains("<property name=\"note before\" value=\"before the patch: &lt;b&gt; &amp; `x`\"/>"),
        "{junit}"
    );
    let csv = bench.succeed(&["report", "2", "--format", "csv"]);
    assert!(csv.lines().next().is_some_and(|head| head.trim_end().ends_with(",better,note")), "{csv}");
    assert!(csv.lines().skip(1).all(|line| line.trim_end().ends_with(",with it")), "{csv}");
    assert!(bench.succeed(&["history"]).contains("Run 2: with it"));
    bench.succeed(&["note", "2", "with the patch, again"]);
    let page = fs::read_dir(bench.path("data/reports")).expect("made").flatten().map(|entry| entry.path());
    let page = page.filter(|path| path.to_string_lossy().contains("tiny-2-")).map(fs::read_to_string).next();
    assert!(page.expect("its page").expect("text").contains("Note: with the patch, again"));
    assert_eq!(bench.run(&["note", "7", "of none"]).0, 2);
    bench.succeed(&["note", "2", "with it"]);
    let (_, _, told) = bench.run(&["delete", "2"]);
    assert!(told.contains("note: with it"), "{told}");

    bench.succeed(&["export", "1", "one.fstone"]);
    let elsewhere = Bench::new();
    fs::copy(bench.path("one.fstone"), elsewhere.path("one.fstone")).expect("copied");
    elsewhere.succeed(&["import", "one.fstone"]);
    assert!(elsewhere.succeed(&["list", "runs"]).contains(plain));
    // A remark by hand does not make it another run.
    let store = rusqlite::Connection::open(elsewhere.store()).expect("opened");
    store.execute_batch("UPDATE runs SET note = 'mine'").expect("set");
    assert!(elsewhere.succeed(&["import", "one.fstone"]).contains("which the store already has"));
    assert!(elsewhere.succeed(&["list", "runs"]).contains("mine"));
}

#[test]
fn a_run_goes_into_a_bundle_and_back_and_every_figure_follows_from_it() {
    let bench = Bench::new();
    two_runs(&bench, "2");
    let told = bench.succeed(&["export", "2", "two.fstone"]);
    let digest = told.rsplit(' ').next().expect("a digest").trim().to_owned();
    assert_eq!(digest.len(), 64, "{told}");
    assert_eq!(bench.run(&["export", "2", "two.fstone"]).0, 2, "no file is overwritten");
    assert_eq!(bench.run(&["export", "9", "nine.fstone"]).0, 2);

    let verified = bench.succeed(&["verify", "two.fstone"]);
    assert!(verified.contains(&digest) && verified.contains("of which 0 differ"), "{verified}");
    assert!(!verified.contains(" 1 rows") && !verified.contains("(1 rows"), "{verified}");
    let known = bench.succeed(&["import", "two.fstone"]);
    assert!(known.contains("is run 2, which the store already has"), "{known}");
    assert!(!bench.succeed(&["list", "runs"]).contains("two.fstone"), "it is counted once");
    let elsewhere = Bench::new();
    fs::copy(bench.path("two.fstone"), elsewhere.path("two.fstone")).expect("copied");
    assert!(elsewhere.succeed(&["import", "two.fstone"]).contains("is run 1 here"));
    let report = |bench: &Bench, run: &str| {
        let mut json: serde_json::Value =
            serde_json::from_str(&bench.succeed(&["report", run, "--format", "json"])).expect("JSON");
        json["run"]["id"] = 0.into();
        json
    };
    assert_eq!(report(&bench, "2"), report(&elsewhere, "1"), "an imported run is the run");
    assert_eq!(bench.run(&["compare", "2", "two.fstone"]).0, 2, "it is the same one");

    fs::write(bench.path("cut.fstone"), &fs::read(bench.path("two.fstone")).expect("read")[..900]).expect("written");
    for command in ["verify", "import", "rerun"] {
        let (code, _, err) = bench.run(&[command, "cut.fstone"]);
        assert_eq!(code, 2, "{command}: {err}");
    }
    let (code, _, err) = bench.run(&["verify", "tiny.toml"]);
    assert!(code == 2 && err.contains("tiny.toml"), "{err}");
}

#[test]
fn a_figure_that_was_changed_by_hand_is_found() {
    if !tool("sqlite3") {
        eprintln!("skipped: no sqlite3 to change the store with");
        return;
    }
    let bench = Bench::new();
    two_runs(&bench, "1");
    let sql = "UPDATE figures SET value = value * 1.000001 WHERE run = 1 AND metric = 'transactions per second'";
    assert!(Process::new("sqlite3").arg(bench.store()).arg(sql).status().is_ok_and(|status| status.success()));
    let (code, out, err) = bench.run(&["verify", "1"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("1 differ") && out.contains("transactions per second:"), "{out}");
}

#[test]
fn a_bundle_is_repeated_here_and_its_programs_only_when_permitted() {
    let bench = Bench::new();
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }");
    let study = fs::read_to_string(bench.path("tiny.toml")).expect("it was written");
    let command = "[[step]]\ncommand = { shell = true, run = \"touch proof\" }\n";
    bench.write("tiny.toml", &study.replace("[[step]]\nfsck", &format!("{command}[[step]]\nfsck")));
    let options = ["--device", "directory", "--duration", "200ms", "--repeats", "1"];
    bench.succeed(&[&["run", "./tiny.toml"][..], &options].concat());
    bench.succeed(&["export", "1", "one.fstone"]);
    fs::remove_file(bench.path("tiny.toml")).expect("the bundle has it");

    let (code, _, err) = bench.run(&["rerun", "one.fstone", "--device", "directory"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("touch proof") && err.contains("--allow-commands"), "{err}");
    let plan = bench.succeed(&["rerun", "one.fstone", "--device", "directory", "--dry-run"]);
    assert!(plan.contains("touch proof"), "{plan}");
    let out = bench.succeed(&["rerun", "one.fstone", "--device", "directory", "--allow-shell"]);
    assert!(out.contains("Run 2 here against the bundle") && out.contains("transactions per second"), "{out}");
    let history = bench.succeed(&["history"]);
    assert!(history.contains("over 2 runs"), "{history}");
}
