//! `fstone publish`: a directory of pages that tell nothing about their machines, and nothing else of the user's is touched.

use crate::support::Bench;
use fstone_model::{Note, result::CommandRecord};
use fstone_store::{Store, bundle};
use std::{collections::BTreeMap, fs, os::unix::fs::symlink, path::Path, process::Command};

const STUDY: &str = r#"
title = "Tiny"
device = { directory = "." }
factor.filesystem = { "any" = { type = "ext4" } }
factor.threads = [1, 2]
[[step]]
load = { workload = "tiny.load.toml" }
show = ["operations per second", "CPU"]
"#;

const LOAD: &str = r#"
name = "small reads"
fileset = [{ name = "files", files = 20, size = "4 KiB" }]
[[phase]]
name = "read"
stop = { time = "100 ms" }
[[phase.group]]
name = "readers"
threads = 1
mix = [{ read = { block = "4 KiB" } }]
"#;

/// A bench with run 1 in its store, and the same run in two bundles as two machines would have made it.
fn two_machines() -> Bench {
    let bench = Bench::new();
    bench.write("tiny.toml", STUDY);
    bench.write("tiny.load.toml", LOAD);
    bench.succeed(&["run", "./tiny.toml", "--repeats", "3"]);
    let recorded = Store::open_read_only(&bench.store()).expect("whole").dataset(1).expect("readable");
    for (number, host) in [(1, "moonbase"), (2, "mallory-laptop.example.org")] {
        let mut dataset = recorded.clone();
        let run = &mut dataset.run;
        run.identity = format!("0000000{number}-0000-4000-8000-000000000000");
        run.started_unix_ns += number * 60_000_000_000;
        run.inventory.host = host.into();
        run.inventory.cpu_model = format!("CPU {number}");
        run.note = Some(Note::try_from(format!("on {host}, by mallory")).expect("a note"));
        run.command[0] = "/home/mallory/bin/fstone".into();
        run.plan.source += "\n# serial = \"S4EWNX0N123456\"\n";
        for step in dataset.trials.iter_mut().flat_map(|trial| &mut trial.steps) {
            step.commands.push(CommandRecord {
                argv: vec!["cp".into(), "/home/mallory/secret project/x".into()],
                status: Some(0),
                duration_ns: 1,
                output_tail: "cp: /dev/disk/by-id/ata-SSD_S4EWNX0N123456 is full".into(),
            });
        }
        bundle::write(dataset, &bench.path(&format!("of-{number}.fstone"))).expect("written");
    }
    bench
}

fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("made").flatten();
    entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("a file")))
        .collect()
}

#[test]
fn no_byte_tells_whose_machines_they_were() {
    let bench = two_machines();
    let told = bench.succeed(&["publish", "site", "1", "of-1.fstone", "of-2.fstone", "of-2.fstone"]);
    assert!(
        told.contains("5 pages of 3 runs: site/index.html") && told.contains("Left out: names of machines"),
        "{told}"
    );
    let work = bench.work().display().to_string();
    let secrets = ["mallory", "moonbase", "S4EWNX0N123456", "secret project", &work];
    let published = files(&bench.path("site"));
    assert_eq!(published.len(), 5 + 1, "and the mark: {:?}", published.keys());
    for (name, bytes) in &published {
        let text = String::from_utf8(bytes.clone()).expect("text").to_ascii_lowercase();
        for secret in secrets {
            let at = text.find(&secret.to_ascii_lowercase());
            assert_eq!(
                at.map(|at| text[at.saturating_sub(60)..].chars().take(120).collect()),
                None::<String>,
                "{name}"
            );
        }
    }
    bench.succeed(&["publish", "open", "of-2.fstone", "--show", "hosts,paths,study,commands,messages,note,machine"]);
    let open = files(&bench.path("open")).into_values().flatten().collect::<Vec<u8>>();
    let open = String::from_utf8(open).expect("text");
    for secret in ["mallory-laptop.example.org", "/home/mallory/secret project/x", "S4EWNX0N123456"] {
        assert!(open.contains(secret), "{secret}");
    }
}

#[test]
fn a_study_that_came_with_fstone_is_shown_and_ones_own_is_not() {
    let bench = two_machines();
    let mut ours = bundle::read(&bench.path("of-1.fstone")).expect("whole");
    let mut mine = ours.clone();
    ours.run.plan.study = "small-file".into();
    ours.run.plan.source = include_str!("../../../../studies/small-file.toml").into();
    ours.run.plan.title = "Small files for everybody".into();
    ours.run.plan.attachments.clear();
    mine.run.identity = "00000009-0000-4000-8000-000000000000".into();
    mine.run.plan.title = "Small files for Eve".into();
    bundle::write(ours, &bench.path("ours.fstone")).expect("written");
    bundle::write(mine, &bench.path("mine.fstone")).expect("written");
    bench.succeed(&["publish", "site", "ours.fstone", "mine.fstone"]);
    let pages = files(&bench.path("site")).into_values().flatten().collect::<Vec<u8>>();
    let pages = String::from_utf8(pages).expect("text");
    assert!(pages.contains("Small files for everybody") && !pages.contains("Small files for Eve"));
    bench.succeed(&["publish", "all", "mine.fstone", "--show", "study"]);
    assert!(files(&bench.path("all")).into_values().any(|page| String::from_utf8_lossy(&page).contains("for Eve")));
}

fn unpacked(bundle: &Path) -> String {
    let output = Command::new("tar").arg("--zstd").arg("-xOf").arg(bundle).output().expect("tar starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn an_anonymous_bundle_has_what_is_published_and_can_be_used() {
    let bench = two_machines();
    bench.succeed(&["import", "of-2.fstone"]);
    let told = bench.succeed(&["export", "2", "open.fstone"]);
    assert!(
        told.contains("It contains the name of this machine (mallory-laptop") && told.contains("--anonymous"),
        "{told}"
    );
    let told = bench.succeed(&["export", "2", "hidden.fstone", "--anonymous"]);
    assert!(told.contains("Left out: names of machines") && !told.contains("It contains"), "{told}");
    let work = bench.work().display().to_string();
    let secrets = ["mallory", "S4EWNX0N123456", "secret project", &work];
    let (open, hidden) = (unpacked(&bench.path("open.fstone")), unpacked(&bench.path("hidden.fstone")));
    for secret in secrets {
        assert!(open.contains(secret) || secret == work, "{secret}");
        assert!(!hidden.contains(secret), "{secret}");
    }
    bench.succeed(&["export", "2", "named.fstone", "--anonymous", "--show", "hosts"]);
    assert!(unpacked(&bench.path("named.fstone")).contains("mallory-laptop.example.org"));
    // It is a run like any other, but for its repetition.
    let told = bench.succeed(&["verify", "hidden.fstone"]);
    assert!(told.contains("of which 0 differ"), "{told}");
    let (status, _, told) = bench.run(&["compare", "2", "hidden.fstone"]);
    assert!(status == 2 && told.contains("both are the same run"), "{status}: {told}");
    let told = bench.succeed(&["import", "hidden.fstone"]);
    assert!(told.contains("is run 3 here") && told.contains("machine 1"), "{told}");
    bench.succeed(&["report", "3"]);
    let (status, told, _) = bench.run(&["compare", "1", "3", "--across", "machine"]);
    assert!(status == 8 && told.contains("Run 3 against run 1") && !told.contains("mallory"), "{status}: {told}");
    let told = bench.succeed(&["import", "hidden.fstone"]);
    assert!(told.contains("which the store already has"), "{told}");
    let (status, _, told) = bench.run(&["rerun", "hidden.fstone"]);
    assert!(status == 3 && told.contains("it is anonymous, and its command line was left out"), "{status}: {told}");
    let (status, _, told) = bench.run(&["export", "2", "x.fstone", "--show", "hosts"]);
    assert!(status == 2 && told.contains("--anonymous"), "{status}: {told}");
}

#[test]
fn a_directory_is_brought_up_to_date_and_nothing_goes_unasked() {
    let bench = two_machines();
    bench.succeed(&["publish", "site", "1", "of-1.fstone"]);
    let before = files(&bench.path("site"));
    bench.write("site/robots.txt", "mine");
    bench.succeed(&["publish", "site", "1", "of-1.fstone", "of-2.fstone"]);
    let after = files(&bench.path("site"));
    assert!(
        before.keys().all(|name| after.contains_key(name)) && after.len() == before.len() + 2,
        "{:?}",
        after.keys()
    );
    let (status, _, told) = bench.run(&["publish", "site", "of-2.fstone"]);
    assert!(status == 3 && told.contains("--remove") && told.contains("Nothing was changed"), "{status}: {told}");
    assert_eq!(files(&bench.path("site")), after);
    bench.succeed(&["publish", "site", "of-2.fstone", "--remove"]);
    let left = files(&bench.path("site"));
    let pages: Vec<&String> = left.keys().filter(|name| name.starts_with("tiny-")).collect();
    assert_eq!(pages, ["tiny-00000002.html"], "it is called by the run's identity");
    assert_eq!(left["robots.txt"], b"mine");
}

#[test]
fn one_publishes_at_a_time() {
    let bench = two_machines();
    bench.succeed(&["publish", "site", "1"]);
    let before = files(&bench.path("site"));
    let held = fs::File::open(bench.path("site")).expect("there");
    held.lock().expect("nobody has it");
    let (status, _, told) = bench.run(&["publish", "site", "1", "of-1.fstone"]);
    assert!(status == 3 && told.contains("another `fstone publish` is writing to site"), "{status}: {told}");
    assert_eq!(files(&bench.path("site")), before);
    drop(held);
    bench.succeed(&["publish", "site", "1", "of-1.fstone"]);
}

#[test]
fn what_is_not_its_own_is_left_alone() {
    let bench = two_machines();
    bench.write("mine.html", "mine");
    fs::create_dir(bench.path("full")).expect("ours");
    bench.write("full/index.html", "mine");
    let refused = |arguments: &[&str], status: i32, words: &str| {
        let (found, _, told) = bench.run(arguments);
        assert!(found == status && told.contains(words), "{arguments:?}: {found}: {told}");
    };
    refused(&["publish", "full", "1"], 2, "full is not empty and was not made by `fstone publish`");
    refused(&["publish", "mine.html", "1"], 2, "mine.html is not a directory");
    refused(&["publish", "none/site", "1"], 2, "there is no directory none");
    refused(&["publish", "site", "7"], 2, "there is no run 7");
    refused(&["publish", "site", "mine.html"], 2, "");
    assert!(!bench.path("site").exists(), "nothing is made of a mistake");
    // Somebody put a link where the index goes, or where the mark is.
    bench.succeed(&["publish", "site", "1"]);
    fs::remove_file(bench.path("site/index.html")).expect("there");
    symlink(bench.path("mine.html"), bench.path("site/index.html")).expect("made");
    refused(&["publish", "site", "1"], 3, "was not made by `fstone publish`");
    fs::rename(bench.path("site/.fstone-publish"), bench.path("mark")).expect("there");
    symlink(bench.path("mark"), bench.path("site/.fstone-publish")).expect("made");
    refused(&["publish", "site", "1"], 2, "was not made by `fstone publish`");
    assert_eq!(fs::read_to_string(bench.path("mine.html")).expect("there"), "mine");
    assert_eq!(fs::read_to_string(bench.path("full/index.html")).expect("there"), "mine");
}
