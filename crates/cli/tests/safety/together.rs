//! Runs that share a store, a run on a machine that changed, a store that runs full, and sudo.

use super::may_use_devices;
use crate::support::{Bench, is_root};
use fstone_store::Store;
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
};

#[test]
fn two_runs_and_a_reader_share_a_store() {
    let bench = Bench::new();
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    let run = |work: &str| {
        let work = bench.path(work);
        fs::create_dir(&work).expect("made");
        let arguments = [
            "run",
            "./tiny.toml",
            "--device",
            "directory",
            "--repeats",
            "3",
            "--work-directory",
            work.to_str().expect("UTF-8"),
        ];
        bench.command(&arguments).spawn().expect("it starts")
    };
    let mut runs = [run("one"), run("two")];
    while runs.iter_mut().any(|run| run.try_wait().expect("waits").is_none()) {
        let (code, out, err) = bench.run(&["list", "runs"]);
        assert!(code == 0 || !bench.store().exists() || err.contains("there is none yet"), "{code}: {out}{err}");
    }
    for run in runs {
        let output = run.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let store = Store::open_read_only(&bench.store()).expect("whole");
    let counts: Vec<u64> = store.runs().expect("readable").iter().map(|run| run.trials).collect();
    assert_eq!(counts, [3, 3]);
}

#[test]
fn two_runs_at_once_warn_of_each_other_and_one_can_wait() {
    let bench = Bench::new();
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    let run = |name: &str, more: &[&str]| {
        let directory = bench.path(name);
        fs::create_dir(&directory).expect("made");
        let (store, work) =
            (directory.join("x.db").display().to_string(), directory.join("work").display().to_string());
        let common = ["run", "./tiny.toml", "--device", "directory", "--store", &store, "--work-directory", &work];
        bench.command(&[&common[..], more].concat()).spawn().expect("it starts")
    };
    let runs = [run("one", &["--repeats", "3"]), run("two", &["--repeats", "3"])];
    // It starts while both are going on: their loads alone take them three seconds.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let waiting = run("three", &["--repeats", "1", "--wait"]);
    for run in runs {
        let output = run.wait_with_output().expect("it ends");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success() && err.contains("Another run is in progress on this machine (process "),
            "{err}"
        );
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("another fstone run was in progress"),
            "the report says so"
        );
    }
    let output = waiting.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && err.contains("Waiting for process "), "{err}");
    let dataset = |name: &str| {
        let store = Store::open_read_only(&bench.path(name).join("x.db")).expect("whole");
        store.dataset(1).expect("readable")
    };
    let of_others = |warning: &&String| warning.contains("another fstone run");
    let [one, two, three] = ["one", "two", "three"].map(dataset);
    for run in [&one, &two] {
        assert!(run.trials.iter().any(|trial| trial.warnings.iter().any(|warning| of_others(&warning))), "{run:#?}");
        assert!(run.run.finished_unix_ns.expect("ended") <= three.run.started_unix_ns);
    }
    assert_eq!(three.trials[0].warnings.iter().find(of_others), None);
}

#[test]
fn what_fails_alike_in_every_row_ends_the_run_and_says_so() {
    if !may_use_devices() {
        return;
    }
    let bench = Bench::new();
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }\n\"ext2\" = { type = \"ext2\" }");
    let study = fs::read_to_string(bench.path("tiny.toml")).expect("written");
    let command = "[[step]]\ncommand = { shell = true, run = \"no-such-program {mount}\" }\n[[step]]\nload";
    bench.write("tiny.toml", &study.replacen("[[step]]\nload", command, 1));
    let (code, out, err) = bench.run(&["run", "./tiny.toml", "--executor", "host"]);
    let said = ["the first trials of all 2 rows failed alike, at command: ", "not found", "--resume", "--keep-going"];
    assert!(code == 4 && said.iter().all(|words| err.contains(words)), "{code}: {out}{err}");
    let runs = || Store::open_read_only(&bench.store()).expect("whole").runs().expect("readable");
    assert_eq!((runs()[0].trials, runs()[0].finished_unix_ns), (2, None));
    let (code, _, err) = bench.run(&["run", "./tiny.toml", "--resume"]);
    assert_eq!(code, 4, "{err}");
    assert!(runs()[0].trials == 4 && runs()[0].finished_unix_ns.is_some(), "{:?}", runs());
    let (code, _, err) = bench.run(&["run", "./tiny.toml", "--executor", "host", "--keep-going"]);
    assert!(code == 4 && runs()[1].trials == 4, "{err}");
    bench.assert_clean();
}

#[test]
fn a_run_goes_on_on_another_machine_only_when_told() {
    let bench = Bench::new();
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    let arguments = ["run", "./tiny.toml", "--device", "directory"];
    bench.succeed(&[&arguments[..], &["--repeats", "1"]].concat());
    // As a run that was killed before its second repetition, on a machine with another kernel.
    let mut dataset = Store::open_read_only(&bench.store()).expect("whole").dataset(1).expect("readable");
    fs::remove_file(bench.store()).expect("removed");
    dataset.run.finished_unix_ns = None;
    dataset.run.plan.repeats.min = 2;
    dataset.run.plan.repeats.max = 2;
    "Linux 2.6.27".clone_into(&mut dataset.run.inventory.kernel);
    // A setting, and a state that is none.
    let settings = [("guest disk", "1 ms a request"), ("load average at the start", "9.99")];
    dataset.run.inventory.settings.extend(settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let mut store = Store::open(&bench.store()).expect("made");
    let run = store.begin_run(&dataset.run).expect("recorded");
    store.record_trial(run, &dataset.trials[0]).expect("recorded");
    drop(store);

    let (code, _, err) = bench.run(&["run", "./tiny.toml", "--resume"]);
    assert_eq!(code, 3, "{err}");
    for words in ["kernel: Linux 2.6.27 then, ", "guest disk: 1 ms a request then", "--changed-machine"] {
        assert!(err.contains(words), "{words}: {err}");
    }
    assert!(!err.contains("load average"), "{err}");
    bench.succeed(&["run", "./tiny.toml", "--resume", "--changed-machine"]);
    let after = Store::open_read_only(&bench.store()).expect("whole").dataset(run).expect("readable");
    assert_eq!(after.trials.len(), 2);
    assert_eq!(after.trials[0], dataset.trials[0]);
    assert!(after.trials[1].warnings.iter().any(|words| words.contains("Linux 2.6.27 then")), "{:?}", after.trials[1]);
}

/// Where a work directory fills up the trial ends and the store does not; where the store does, the run ends, and goes
/// on when there is room.
#[test]
fn a_full_store_ends_the_run_and_keeps_what_is_recorded() {
    if !may_use_devices() {
        return;
    }
    let bench = Bench::new();
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    let small = bench.mount_tmpfs("size=2m");
    let store = small.path().join("fstone.db");
    let with_store = [("FSTONE_STORE", store.to_str().expect("UTF-8"))];
    let (code, _, err) = bench.run_with(&["run", "./tiny.toml", "--repeats", "1"], &with_store);
    assert_eq!(code, 0, "{err}");
    let filler = small.path().join("filler");
    let filled = Command::new("sh").args(["-c", "cat /dev/zero > \"$0\""]).arg(&filler).output().expect("starts");
    assert!(!filled.status.success(), "it is full now");
    let (code, out, err) = bench.run_with(&["run", "./tiny.toml", "--repeats", "2"], &with_store);
    // Where not even SQLite's shared memory has room, it says so in words of its own.
    let said = ["free some space on the store's filesystem", "disk I/O error"].iter().any(|words| err.contains(words));
    assert!(code == 5 && said && err.contains("store"), "{code}: {out}{err}");
    bench.assert_clean();
    fs::remove_file(&filler).expect("removed");
    let kept = Store::open_read_only(&store).expect("whole").dataset(1).expect("readable");
    assert_eq!(kept.trials.len(), 1);
    let (code, _, err) = bench.run_with(&["run", "./tiny.toml", "--repeats", "1"], &with_store);
    assert_eq!(code, 0, "{err}");
}

const SUDO: [(&str, &str); 2] = [("SUDO_UID", "12345"), ("SUDO_GID", "54321")];
const CALLER: (u32, u32) = (12345, 54321);

fn home_of_the_caller(bench: &Bench) -> PathBuf {
    let home = bench.path("home");
    fs::create_dir(&home).expect("made");
    std::os::unix::fs::chown(&home, Some(CALLER.0), Some(CALLER.1)).expect("given away");
    home
}

#[test]
fn with_sudo_what_a_run_leaves_belongs_to_the_caller() {
    if !is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let bench = Bench::new();
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    let home = home_of_the_caller(&bench);
    let (data, cache) = (home.join(".local/share/fstone"), home.join(".cache/fstone/work"));
    let store = data.join("fstone.db");
    let environment = [
        SUDO[0],
        SUDO[1],
        ("FSTONE_STORE", store.to_str().expect("UTF-8")),
        ("FSTONE_WORK_DIRECTORY", cache.to_str().expect("UTF-8")),
    ];
    let (code, out, err) = bench.run_with(&["run", "./tiny.toml", "--device", "directory"], &environment);
    assert_eq!(code, 0, "{out}{err}");
    let seen = all_belong_to_the_caller(&home);
    assert!(seen > 6 && !cache.exists() && home.join(".cache/fstone").is_dir(), "{seen}");
}

/// Asserts that everything from this path on belongs to the user who called `sudo`; how many names that are.
fn all_belong_to_the_caller(path: &Path) -> usize {
    let facts = fs::symlink_metadata(path).expect("there");
    assert_eq!((facts.uid(), facts.gid()), CALLER, "{}", path.display());
    if !facts.is_dir() {
        return 1;
    }
    let entries = fs::read_dir(path).expect("readable").flatten();
    1 + entries.map(|entry| all_belong_to_the_caller(&entry.path())).sum::<usize>()
}

/// Kernels are unpacked, and started to ask for their release, by the caller and not by root; logs of faults are given away.
#[test]
fn with_sudo_kernels_and_logs_belong_to_the_caller() {
    if !is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let bench = Bench::new();
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    let home = home_of_the_caller(&bench);
    fs::set_permissions(bench.path("."), fs::Permissions::from_mode(0o755)).expect("ours");
    let (kernels, kernel) = (home.join("share/kernels"), Path::new("/usr/bin/linux.uml"));
    if !kernel.exists() {
        eprintln!("skipped: there is no user-mode Linux");
        return;
    }
    let environment = [
        SUDO[0],
        SUDO[1],
        ("XDG_STATE_HOME", home.to_str().expect("UTF-8")),
        ("FSTONE_KERNELS", kernels.to_str().expect("UTF-8")),
    ];
    let (code, out, err) = bench.run_with(&["kernel", "add", kernel.to_str().expect("UTF-8")], &environment);
    assert!(code == 0 && out.contains("uml:"), "{code}: {out}{err}");
    #[cfg(debug_assertions)]
    {
        let fault = [&environment[..], &[("FSTONE_REHEARSE_FAULT", "panic load")]].concat();
        let (code, _, err) = bench.run_with(&["run", "./tiny.toml", "--device", "directory"], &fault);
        assert!(code == 7 && err.contains("home/fstone/fault-"), "{code}: {err}");
    }
    // home, share, kernels, kernels.json, and the log in its directory.
    assert!(all_belong_to_the_caller(&home) >= if cfg!(debug_assertions) { 6 } else { 4 });
    // What is root's own stays root's.
    let roots = bench.path("roots");
    fs::create_dir(&roots).expect("made");
    let environment = [SUDO[0], SUDO[1], ("FSTONE_KERNELS", roots.to_str().expect("UTF-8"))];
    let (code, _, err) = bench.run_with(&["kernel", "add", kernel.to_str().expect("UTF-8")], &environment);
    assert_eq!(code, 0, "{err}");
    assert_eq!(fs::metadata(roots.join("kernels.json")).expect("there").uid(), 0);
}

/// Every command that writes something to keep, each into the same directory; what needs guests is in `guests/durability.rs`.
#[test]
fn with_sudo_what_commands_write_belongs_to_the_caller_and_is_for_its_owner() {
    if !is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let bench = Bench::new();
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    bench.write("job.fio", "[job]\nrw=read\nsize=64k\nbs=4k\ndirectory=.\n");
    let home = home_of_the_caller(&bench);
    let (store, other) = (home.join("data/fstone.db"), home.join("other/fstone.db"));
    let out = |name: &str| home.join(name).display().to_string();
    let environment = [SUDO[0], SUDO[1], ("FSTONE_STORE", store.to_str().expect("UTF-8"))];
    for directory in ["data", "other"] {
        fs::create_dir(home.join(directory)).expect("made");
        std::os::unix::fs::chown(home.join(directory), Some(CALLER.0), Some(CALLER.1)).expect("given away");
    }
    let run = ["run", "./tiny.toml", "--device", "directory", "--repeats", "1", "--output"];
    let other = other.display().to_string();
    let (html, csv, svg, bundle) = (out("run.html"), out("run.csv"), out("figures"), out("run.fstone"));
    let (log, fio, site, hidden) = (out("log"), out("fio.json"), out("site"), out("hidden.fstone"));
    let (results, comparison, history) = (out("results"), out("compare.md"), out("history.html"));
    let write_log = format!("--write_bw_log={log}");
    let fio_output = format!("--output={fio}");
    let commands: &[&[&str]] = &[
        &[&run[..], &[&html]].concat(),
        &[&run[..], &[&html]].concat(),
        &["note", "1", "a note"],
        &["report", "1", "--format", "csv", "--output", &csv],
        &["report", "1", "--format", "svg", "--output", &svg],
        &["compare", "1", "2", "--format", "markdown", "--output", &comparison],
        &["history", "--study", "tiny", "--format", "html", "--output", &history],
        &["export", "1", &bundle],
        &["export", "1", &hidden, "--anonymous"],
        &["--store", &other, "import", &bundle],
        &["publish", &site, "1"],
        &["fio", "job.fio", &write_log, &fio_output, "--output-format=json"],
        &["mdtest", "-n", "4", "-d", "load", "--results", &results],
    ];
    for command in commands {
        let (code, shown, err) = bench.run_with(command, &environment);
        // A comparison of two trials decides nothing.
        assert!(code == 0 || command[0] == "compare" && code == 8, "{command:?}: {code}: {shown}{err}");
    }
    for name in [&html, &csv, &svg, &bundle, &hidden, &comparison, &history, &fio, &results, &site, &other] {
        assert!(Path::new(name).exists(), "{name}");
    }
    assert!(all_belong_to_the_caller(&home) > 25);
    let others = |path: &Path| fs::metadata(path).expect("there").mode() & 0o077;
    for name in [&html, &csv, &svg, &bundle, &hidden, &comparison, &history, &fio, &results, &other] {
        assert_eq!(others(Path::new(name)), 0, "{name}");
    }
    assert_eq!((others(&store), others(&home.join("site")), others(&home.join("site/index.html"))), (0, 0o055, 0o044));
}

#[test]
fn a_store_that_others_could_read_is_made_private_and_that_is_said_once() {
    let bench = Bench::new();
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    bench.succeed(&["run", "./tiny.toml", "--device", "directory", "--repeats", "1"]);
    fs::set_permissions(bench.store(), fs::Permissions::from_mode(0o644)).expect("ours");
    let said = |arguments: &[&str]| bench.run(arguments).2.contains("Other users could read");
    assert!(said(&["list", "runs"]) && !said(&["list", "runs"]));
    assert_eq!(fs::metadata(bench.store()).expect("there").mode() & 0o777, 0o600);
}

#[test]
fn a_text_without_end_is_refused_and_the_limit_is_said() {
    let bench = Bench::new();
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    let huge = |name: &str| fs::File::create(bench.path(name)).and_then(|file| file.set_len(1 << 40)).expect("sparse");
    for name in ["huge.toml", "huge.load.toml", "huge.fio", "huge.ffsb", "huge.f"] {
        huge(name);
    }
    for arguments in [
        &["run", "./huge.toml", "--dry-run"][..],
        &["device", "huge.toml"],
        &["load", "huge.load.toml", "--directory", "."],
        &["fio", "huge.fio"],
        &["ffsb", "huge.ffsb"],
        &["filebench", "-f", "huge.f"],
        &["convert", "huge.fio"],
    ] {
        let (code, out, err) = bench.run(arguments);
        assert!(code == 2 && err.contains("larger than 16 MiB"), "{arguments:?}: {code}: {out}{err}");
    }
}
