//! Which runs `--resume` goes on with, and which starts leave no run behind.

use crate::support::Bench;
use fstone_lab::place::{holder::this_process, presence::Presence, work_directory::WorkDirectory};
use fstone_model::{Dataset, dataset::Holder};
use fstone_store::Store;
use std::fs;
use std::io::{BufRead, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

const EXT4: &str = r#""ext4" = { type = "ext4" }"#;

/// A store whose only run has one of two trials, as a killed run leaves it.
fn half_done(bench: &Bench) -> Dataset {
    bench.tiny_study(EXT4);
    bench.succeed(&["run", "./tiny.toml", "--device", "directory", "--repeats", "1"]);
    let mut dataset = Store::open_read_only(&bench.store()).expect("whole").dataset(1).expect("readable");
    fs::remove_file(bench.store()).expect("removed");
    dataset.run.finished_unix_ns = None;
    dataset.run.plan.repeats.min = 2;
    dataset.run.plan.repeats.max = 2;
    dataset
}

#[test]
fn only_this_machines_runs_whose_process_has_ended_are_resumed() {
    let bench = Bench::new();
    let dataset = half_done(&bench);
    let here = this_process();
    let mut store = Store::open(&bench.store()).expect("made");
    let run = store.begin_run_of(&dataset.run, &here).expect("recorded");
    store.record_trial(run, &dataset.trials[0]).expect("recorded");
    let resume = || bench.run(&["run", "./tiny.toml", "--resume"]);

    let (code, _, err) = resume();
    let said = format!("still in progress (process {})", std::process::id());
    assert!(code == 3 && err.contains(&said), "{code}: {err}");
    assert!(bench.succeed(&["list", "runs"]).contains("in progress"));

    // As it looks to a machine that shares the store. Its processes say nothing here.
    let elsewhere =
        Holder { machine: "another".into(), host: "node7".into(), boot: "theirs".into(), process: 1, ..here.clone() };
    assert!(store.take_over(run, Some(&here), &elsewhere).expect("recorded"));
    assert!(!store.take_over(run, Some(&here), &elsewhere).expect("asked"), "it is not this process's any more");
    let (code, _, err) = resume();
    assert!(code == 3 && err.contains("another machine, node7") && err.contains("resume it there"), "{code}: {err}");
    let (code, _, err) = bench.run(&["run", "./tiny.toml", "--resume", "--changed-machine"]);
    assert_eq!(code, 3, "{err}");

    // A run of this machine goes on though the other machine's is newer.
    let ended = Holder { started_ticks: here.started_ticks + 1, ..here };
    let own = fstone_model::dataset::Run { identity: "own".into(), ..dataset.run.clone() };
    let own = store.begin_run_of(&own, &ended).expect("recorded");
    store.record_trial(own, &dataset.trials[0]).expect("recorded");
    let newer = fstone_model::dataset::Run { identity: "newer".into(), ..dataset.run };
    store.begin_run_of(&newer, &elsewhere).expect("recorded");
    let (code, _, err) = resume();
    assert!(code == 0 && err.contains(&format!("continuing run {own}; finished so far: 1 trial")), "{code}: {err}");
    let runs = store.runs().expect("readable");
    let finished: Vec<(u64, bool)> = runs.iter().map(|run| (run.id, run.finished_unix_ns.is_some())).collect();
    assert_eq!(finished, [(run, false), (own, true), (own + 1, false)]);
    assert_ne!(runs[1].holder, Some(ended), "the process that went on with it");
}

#[test]
fn what_was_merged_while_a_resumed_run_waited_is_not_made_again() {
    let bench = Bench::new();
    let dataset = half_done(&bench);
    let ended = Holder { started_ticks: this_process().started_ticks + 1, ..this_process() };
    let mut store = Store::open(&bench.store()).expect("made");
    let run = store.begin_run_of(&dataset.run, &ended).expect("recorded");
    store.record_trial(run, &dataset.trials[0]).expect("recorded");
    let other = Presence::enter(&bench.path("machine.lock")).expect("made");
    let mut resumed = bench.command(&["run", "./tiny.toml", "--resume", "--wait"]);
    let mut resumed = resumed.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(resumed.stderr.take().expect("piped"));
    let mut words = String::new();
    while !words.contains("Waiting for") {
        assert_ne!(said.read_line(&mut words).expect("UTF-8"), 0, "{words}");
    }
    let mut second = dataset.trials[0].clone();
    second.id.repetition = 1;
    store.record_trial(run, &second).expect("recorded");
    drop(other);
    said.read_to_string(&mut words).expect("UTF-8");
    let status = resumed.wait().expect("a child");
    assert!(status.success() && words.contains("finished so far: 2 trials"), "{status}: {words}");
}

#[test]
fn a_run_of_another_study_of_the_same_name_is_not_continued() {
    let bench = Bench::new();
    let dataset = half_done(&bench);
    let ended = Holder { started_ticks: this_process().started_ticks + 1, ..this_process() };
    let mut store = Store::open(&bench.store()).expect("made");
    let run = store.begin_run_of(&dataset.run, &ended).expect("recorded");
    let text = fs::read_to_string(bench.path("tiny.toml")).expect("the study");
    fs::create_dir(bench.path("sub")).expect("ours");
    bench.write("sub/tiny.toml", &format!("{text}\n# another one\n"));
    let (code, _, err) = bench.run(&["run", "./sub/tiny.toml", "--resume"]);
    assert!(code == 2 && err.contains("another study than ./sub/tiny.toml"), "{code}: {err}");
    // Wherever the same text is, and without the file.
    bench.write("sub/tiny.toml", &text);
    let (code, _, err) = bench.run(&["run", "./sub/tiny.toml", "--resume"]);
    assert!(code == 0 && err.contains(&format!("continuing run {run}")), "{code}: {err}");
    let again = fstone_model::dataset::Run { identity: "again".into(), ..dataset.run };
    let run = store.begin_run_of(&again, &ended).expect("recorded");
    let (code, _, err) = bench.run(&["run", "./gone/tiny.toml", "--resume"]);
    assert!(code == 0 && err.contains(&format!("continuing run {run}")), "{code}: {err}");
}

#[test]
fn a_start_that_is_refused_leaves_no_run() {
    let bench = Bench::new();
    bench.tiny_study(EXT4);
    let held = WorkDirectory::lock(&bench.work()).expect("free");
    let (code, _, err) = bench.run(&["run", "./tiny.toml", "--device", "directory"]);
    assert!(code == 5 && err.contains("nothing was recorded") && err.contains("in use by process"), "{code}: {err}");
    assert!(bench.succeed(&["list", "runs"]).starts_with("No runs yet"));
    drop(held);
    bench.succeed(&["run", "./tiny.toml", "--device", "directory", "--repeats", "1"]);
    assert!(bench.succeed(&["list", "runs"]).contains("finished"));
}

fn container() -> Option<(Child, Holder)> {
    let says_its_number = ["--fork", "--pid", "--kill-child", "sh", "-c", "readlink /proc/self/ns/pid; exec sleep 600"];
    let mut container = Command::new("unshare").args(says_its_number).stdout(Stdio::piped()).spawn().ok()?;
    let mut line = String::new();
    BufReader::new(container.stdout.take()?).read_line(&mut line).ok()?;
    let number: String = line.chars().filter(char::is_ascii_digit).collect();
    Some((container, Holder { pid_namespace: number.parse().ok()?, started_ticks: 0, ..this_process() }))
}

#[test]
fn runs_are_deleted_when_it_is_meant_and_nothing_writes_them() {
    let bench = Bench::new();
    let dataset = half_done(&bench);
    let here = this_process();
    let mut store = Store::open(&bench.store()).expect("made");
    let going_on = store.begin_run_of(&dataset.run, &here).expect("recorded");
    let ended = Holder { started_ticks: here.started_ticks + 1, ..here };
    let begin = |store: &mut Store, identity: &str| {
        let run = fstone_model::dataset::Run { identity: identity.into(), ..dataset.run.clone() };
        store.begin_run_of(&run, &ended).expect("recorded")
    };
    let (first, second) = (begin(&mut store, "first"), begin(&mut store, "second"));
    store.save_baseline("before", first, 1).expect("saved");
    let text = |run: u64| run.to_string();
    let runs = |store: &Store| store.runs().expect("readable").iter().map(|run| run.id).collect::<Vec<_>>();

    let (code, _, err) = bench.run(&["delete", &text(first)]);
    assert!(code == 3 && err.contains("baseline before") && err.contains("--yes"), "nobody was asked: {code}: {err}");
    let (code, _, err) = bench.run(&["delete", "--yes", &text(first), &text(going_on)]);
    assert!(code == 3 && err.contains("still in progress") && err.contains("Nothing was deleted"), "{code}: {err}");
    let (code, _, err) = bench.run(&["delete", "--yes", &text(first), "99"]);
    assert!(code == 2 && err.contains("there is no run 99"), "{code}: {err}");
    assert_eq!(runs(&store), [going_on, first, second], "all or none");

    // It was resumed after it was looked at.
    let taken = store.delete_runs(&[(first, None), (second, Some(&ended))]).expect("asked");
    assert_eq!((taken, runs(&store).len()), (Some(first), 3));

    // A process of a container on this machine cannot be seen either.
    match container() {
        None => println!("skipped: only root makes namespaces of process numbers"),
        Some((mut container, contained)) => {
            assert!(store.take_over(second, Some(&ended), &contained).expect("recorded"));
            let (code, _, err) = bench.run(&["delete", "--yes", &text(second)]);
            let listed = bench.succeed(&["list", "runs"]);
            container.kill().expect("ours");
            container.wait().expect("ours");
            assert!(
                code == 3 && err.contains("may still be in progress, in a container of this machine"),
                "{code}: {err}"
            );
            assert!(listed.contains("elsewhere"));
            assert!(store.take_over(second, Some(&contained), &ended).expect("recorded"));
        }
    }

    // What a run's end writes beside the store goes with it.
    let page = bench.path(&format!("data/reports/tiny-{first}-first.html"));
    let index = page.with_file_name("index.html");
    std::fs::create_dir_all(page.parent().expect("it has one")).expect("made");
    bench.succeed(&["report", &text(first), "--output", page.to_str().expect("plain"), "--format", "html"]);
    std::fs::write(&index, format!("<title>Runs · fstone</title><a href=\"tiny-{first}-first.html\">Tiny</a>"))
        .expect("written");
    let out = bench.succeed(&["delete", "--yes", &text(first), &text(second), &text(first)]);
    assert_eq!(out.lines().count(), 3, "{out}");
    assert!(out.contains(&format!("deleted its page {}", page.display())) && !page.exists(), "{out}");
    let led = std::fs::read_to_string(&index).expect("it was written");
    assert!(!led.contains("-first.html") && !index.with_file_name("index-2.html").exists(), "it no longer leads there");
    assert_eq!(runs(&store), [going_on]);
    assert!(store.baselines().expect("readable").is_empty());
    let third = begin(&mut store, "third");
    assert_eq!(third, second + 1, "a number is not given twice");
    // No copy of the file tells what was in it.
    assert!(store.take_over(going_on, Some(&this_process()), &ended).expect("recorded"));
    bench.succeed(&["delete", "--yes", &text(going_on), &text(third)]);
    drop(store);
    for name in ["fstone.db", "fstone.db-wal"] {
        let bytes = std::fs::read(bench.path("data").join(name)).unwrap_or_default();
        let found = bytes.windows(5).any(|window| window == b"mkfs.");
        assert!(!found, "{name} still holds a command of a run that was deleted");
    }
}
