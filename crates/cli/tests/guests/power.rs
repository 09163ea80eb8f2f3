//! Power cuts: what a sound disk and a sound filesystem keep, and that losses are found.

use super::exact_kernels;
use crate::support::{self, Bench, has_uml};
use serde_json::Value;

const MAIL: &str = r#"
name = "mail"

[[fileset]]
name = "tmp"
directory = "tmp"
files = 0
size = "8 KiB"

[[fileset]]
name = "new"
directory = "new"
files = 0
size = "8 KiB"

[[phase]]
name = "deliver"
stop = { operations = 60 }

[[phase.group]]
name = "deliver"
threads = 2

[[phase.group.sequence]]
create = { block = "4 KiB", fsync = true }
fileset = "tmp"

[[phase.group.sequence]]
move = { to = "new" }
choice = "same"
fileset = "tmp"
"#;

fn study(bench: &Bench, filesystems: &str, cut: &str) {
    study_of(bench, MAIL, filesystems, cut);
}

fn study_of(bench: &Bench, workload: &str, filesystems: &str, cut: &str) {
    bench.write("mail.workload", workload);
    let text = format!(
        "title = \"power\"\nrepeats = 1\ndevice = {{ loop = {{ size = \"64 MiB\" }} }}\n\
         [factor.filesystem]\n{filesystems}\n\
         [[step]]\nload = {{ workload = \"mail.workload\" }}\nshow = [\"transactions per second\"]\n\
         [[step]]\npower-cut = {{ {cut} }}\nshow = [\"promises lost\"]\n"
    );
    bench.write("power.toml", &text);
}

fn carry_out(bench: &Bench) -> String {
    carry_out_with(bench, &["--executor", "uml"], &[])
}

fn carry_out_with(bench: &Bench, arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let cache = bench.path("cache");
    let there = [&[("XDG_CACHE_HOME", cache.to_str().expect("plain"))], environment].concat();
    let (code, out, err) = bench.run_with(&[&["run", "./power.toml"], arguments].concat(), &there);
    assert_eq!(code, 0, "{out}{err}");
    out
}

fn carry_out_on(model: &str, bench: &Bench, kernels: &str, arguments: &[&str]) -> Vec<Value> {
    let arguments = [&["--exact", "--model", model, "--seed", "7", "--perturbed", "0"], arguments].concat();
    carry_out_with(bench, &arguments, &[("FSTONE_KERNELS", kernels)]);
    support::trials(&bench.json())
}

fn figure(trial: &Value, metric: &str) -> f64 {
    let figures = trial["figures"].as_array().expect("a list");
    let found = figures.iter().find(|figure| figure["metric"] == metric);
    found.and_then(|figure| figure["value"].as_f64()).unwrap_or_else(|| panic!("{metric}: {trial:#}"))
}

fn warnings(trial: &Value) -> Vec<&str> {
    trial["warnings"].as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

/// Where the log is kept, and the first state that is told.
fn log_and_state<'w>(warnings: &[&'w str]) -> (&'w str, &'w str) {
    let after = |words: &str| warnings.iter().find_map(|warning| warning.split(words).nth(1)).expect("a warning");
    let log = after("fstone crash-state ").split(' ').next().expect("where the log is kept");
    (log, after("crash state ").split(':').next().expect("a state"))
}

fn harm(trial: &Value) -> f64 {
    let missing = |metric| 100.0 - figure(trial, metric);
    figure(trial, "promises lost") + missing("states mounted") + missing("states clean")
}

#[test]
fn ext4_keeps_on_a_sound_disk_what_it_acknowledged_and_ext2_does_not() {
    if !has_uml() {
        return;
    }
    let bench = Bench::new();
    study(&bench, "\"ext4\" = { type = \"ext4\" }\n\"ext2\" = { type = \"ext2\" }", "states = 25");
    let out = carry_out(&bench);
    let json = bench.json();
    for row in json["rows"].as_array().expect("rows") {
        let trial = &row["trials"][0];
        assert!(figure(trial, "promises checked") > 50.0, "{trial:#}");
        assert!(figure(trial, "crash states") > 15.0, "{trial:#}");
        assert_eq!(figure(trial, "states mounted"), 100.0, "{trial:#}");
        let is_ext4 = row["label"] == "ext4";
        let lost = figure(trial, "promises lost");
        // ext2 has no journal: a new file that was synced has no name yet.
        assert_eq!(lost == 0.0, is_ext4, "{lost}: {trial:#}");
        if is_ext4 {
            assert_eq!(figure(trial, "states clean"), 100.0, "{trial:#}");
        }
    }
    assert!(out.contains("crash state"), "{out}");

    // The state that lost something can be made again.
    let rows = json["rows"].as_array().expect("rows");
    let ext2 = rows.iter().find(|row| row["label"] == "ext2").expect("a row");
    let warnings = warnings(&ext2["trials"][0]);
    assert!(warnings.iter().any(|warning| warning.contains("it is not there by any name it had")), "{warnings:?}");
    let (log, state) = log_and_state(&warnings);
    let out = bench.succeed(&["crash-state", log, state, "--image", "state.img"]);
    // A journal that is to be replayed cannot be mounted from a read-only loop device.
    assert!(out.contains("mount -o loop state.img DIRECTORY. This replays the filesystem's journal"), "{out}");
    assert_eq!(std::fs::metadata(bench.path("state.img")).expect("written").len(), 64 << 20);
    let (code, _, err) = bench.run(&["crash-state", log, state, "--image", "state.img"]);
    assert!(code == 5 && err.contains("state.img"), "nothing is replaced: {code} {err}");
    let (code, _, err) = bench.run(&["crash-state", log, "lost", "--image", "other.img"]);
    assert!(code == 2 && err.contains("is not the name of a crash state"), "{code} {err}");
}

/// What is done between two loads by nobody who is watched is no loss, and what a load does after a state no excuse for it.
#[test]
fn what_a_command_removes_between_two_loads_is_not_told_as_lost() {
    if !has_uml() {
        return;
    }
    let bench = Bench::new();
    study(&bench, "\"ext4\" = { type = \"ext4\" }", "states = 30");
    let text = std::fs::read_to_string(bench.path("power.toml")).expect("written");
    let between = "[[step]]\ncommand = { shell = true, run = \"cd new && rm file1 && mv file2 moved && echo >file3 && sync\" }\n\
                   [[step]]\nload = { workload = \"log.workload\" }\n[[step]]\npower-cut";
    bench.write("power.toml", &text.replace("[[step]]\npower-cut", between));
    bench.write("log.workload", &MAIL.replace("\"tmp\"", "\"spool\"").replace("\"new\"", "\"old\""));
    carry_out(&bench);
    let trial = &support::trials(&bench.json())[0];
    assert_eq!(figure(trial, "promises lost"), 0.0, "{trial:#}");
    assert!(figure(trial, "promises checked") > 50.0, "{trial:#}");
}

#[test]
fn losses_before_a_state_that_cannot_be_checked_are_told() {
    if !has_uml() {
        return;
    }
    let bench = Bench::new();
    let path = bench.check_that_breaks(12);
    study(&bench, "\"ext2\" = { type = \"ext2\" }", "states = 25");
    let cache = bench.path("cache");
    let environment = [("XDG_CACHE_HOME", cache.to_str().expect("plain")), ("PATH", path.as_str())];
    let (code, out, err) = bench.run_with(&["run", "./power.toml", "--executor", "uml"], &environment);
    assert_ne!(code, 0, "{out}{err}");
    let json = bench.json();
    let trial = &support::trials(&json)[0];
    let told = warnings(trial);
    assert!(told.iter().any(|words| words.contains("promises lost")), "{trial:#}");
    // Its version may have been asked for as well. The state that could not be checked is one of them.
    assert!((11.0..=13.0).contains(&figure(trial, "crash states")), "{trial:#}");
    assert!(figure(trial, "promises lost") > 0.0, "{trial:#}");
    let (log, state) = log_and_state(&told);
    bench.succeed(&["crash-state", log, state, "--image", "state.img"]);
    // The state in which it ended is named in the command.
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let ended = words.split("in crash state ").nth(1).and_then(|rest| rest.split(':').next()).expect("a state");
    assert!(told.iter().any(|words| words.contains(&format!(" {ended} --image FILE"))), "{ended}: {told:#?}");
    bench.succeed(&["crash-state", log, ended, "--image", "ended.img"]);
}

#[test]
fn what_was_found_within_the_limit_of_the_step_is_told() {
    if !has_uml() {
        return;
    }
    let bench = Bench::new();
    study(&bench, "\"ext2\" = { type = \"ext2\" }", "states = 150");
    let text = std::fs::read_to_string(bench.path("power.toml")).expect("written");
    bench.write(
        "power.toml",
        &text.replace("show = [\"promises lost\"]", "show = [\"promises lost\"]\nlimit = \"500 ms\""),
    );
    let cache = bench.path("cache");
    let environment = [("XDG_CACHE_HOME", cache.to_str().expect("plain"))];
    let (code, out, err) = bench.run_with(&["run", "./power.toml", "--executor", "uml"], &environment);
    assert_ne!(code, 0, "{out}{err}");
    let trial = &support::trials(&bench.json())[0];
    let words = trial.to_string();
    let (_, rest) = words.split_once("not done within its limit of 500 ms: ").unwrap_or_else(|| panic!("{trial:#}"));
    let (tried, of) =
        rest.split_once(" states were tried").and_then(|(both, _)| both.split_once(" of ")).expect("how many");
    let (tried, of): (f64, f64) = (tried.parse().expect("a number"), of.parse().expect("a number"));
    assert!(1.0 <= tried && tried < of, "{trial:#}");
    assert_eq!(figure(trial, "crash states"), tried, "{trial:#}");
}

/// What the host writes into the image is not in the log of the guest's disk: a state that lacked a repair made there would be no state
/// that a power cut can leave.
#[test]
fn a_repair_before_the_load_makes_no_losses() {
    if !has_uml() {
        return;
    }
    if !["/sbin/mkfs.xfs", "/usr/sbin/mkfs.xfs"].iter().any(|path| std::path::Path::new(path).exists()) {
        return eprintln!("skipped: there is no mkfs.xfs");
    }
    let bench = Bench::new();
    study(&bench, "\"xfs\" = { type = \"xfs\" }", "states = 30");
    let text = std::fs::read_to_string(bench.path("power.toml")).expect("written");
    let repair = "[[step]]\nload = { workload = \"mail.workload\" }\n[[step]]\nfsck = { mode = \"repair\" }\n[[step]]\nmount = {}\n[[step]]\nload";
    let text = text.replacen("[[step]]\nload", repair, 1).replace("64 MiB", "320 MiB");
    bench.write("power.toml", &text.replace("mail.workload\" }\nshow", "again.workload\" }\nshow"));
    bench.write("again.workload", &MAIL.replace("\"tmp\"", "\"spool\"").replace("\"new\"", "\"old\""));
    let out = carry_out(&bench);
    let trial = &support::trials(&bench.json())[0];
    assert!(figure(trial, "promises checked") > 50.0, "{trial:#}");
    assert_eq!(harm(trial), 0.0, "{out}{trial:#}");
}

#[test]
fn a_filesystem_whose_log_only_its_check_replays_is_mounted_after_it() {
    if !has_uml() {
        return;
    }
    if !["/sbin/fsck.jfs", "/usr/sbin/fsck.jfs"].iter().any(|path| std::path::Path::new(path).exists()) {
        return eprintln!("skipped: there is no fsck.jfs");
    }
    let bench = Bench::new();
    study(&bench, "\"jfs\" = { type = \"jfs\" }", "states = 8");
    carry_out(&bench);
    let json = bench.json();
    let trial = &support::trials(&json)[0];
    assert!(figure(trial, "crash states") > 4.0 && figure(trial, "promises checked") > 10.0, "{trial:#}");
    assert_eq!(figure(trial, "states mounted"), 100.0, "{trial:#}");
}

#[test]
fn a_disk_that_breaks_its_promise_is_caught() {
    if !has_uml() {
        return;
    }
    for disk in ["forgets-flushes", "reorders", "tears"] {
        let bench = Bench::new();
        study(&bench, "\"ext4\" = { type = \"ext4\" }", &format!("states = 40, disk = \"{disk}\""));
        carry_out(&bench);
        let json = bench.json();
        let trial = &support::trials(&json)[0];
        assert!(harm(trial) > 0.0, "{disk}: {trial:#}");
    }
}

#[test]
fn power_cuts_in_virtual_time_are_the_same_to_the_last_bit() {
    let Some(kernels) = exact_kernels() else { return };
    let bench = Bench::new();
    study(&bench, "\"ext4\" = { type = \"ext4\" }\n\"ext2\" = { type = \"ext2\" }", "states = 12");
    // With flushes, at which power is cut.
    let trials = carry_out_on("sata-ssd", &bench, &kernels, &["--jobs", "2"]);
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        assert_eq!(figure(trial, "crash states"), 12.0, "{trial:#}");
        assert!(figure(trial, "promises checked") > 50.0, "{trial:#}");
        assert_eq!(figure(trial, "states mounted"), 100.0, "{trial:#}");
        let (median, longest) = (figure(trial, "recovery time p50"), figure(trial, "recovery time max"));
        assert!(0.0 < median && median <= longest, "{trial:#}");
    }
    // ext2 has no journal.
    let (sound, lossy): (Vec<&Value>, Vec<&Value>) =
        trials.iter().partition(|trial| figure(trial, "promises lost") == 0.0);
    assert!(sound.len() == 1 && harm(sound[0]) == 0.0 && lossy.len() == 1, "{trials:#?}");
    let told = warnings(lossy[0]);
    let (log, state) = log_and_state(&told);
    bench.succeed(&["crash-state", log, state, "--image", "state.img"]);
    assert_eq!(std::fs::metadata(bench.path("state.img")).expect("written").len(), 64 << 20);

    // By itself: the names of the states, too.
    let again = carry_out_on("sata-ssd", &bench, &kernels, &["--only", "filesystem=ext2"]);
    let states = |trial| -> Vec<String> {
        let told = warnings(trial).into_iter().filter(|words| words.contains("crash state "));
        // Each trial has a log of its own.
        told.map(|words| words.split("; `").next().expect("the first").to_owned()).collect()
    };
    assert_eq!(states(&again[0]), states(lossy[0]));
    assert_eq!(again[0]["figures"], lossy[0]["figures"]);
    let (code, out, err) = bench.run_with(&["verify", "--again", "1"], &[("FSTONE_KERNELS", &kernels)]);
    assert!(code == 0 && out.contains("the same to the last bit"), "{code}: {out}{err}");
}

#[test]
fn a_disk_that_breaks_its_promise_is_caught_in_virtual_time() {
    let Some(kernels) = exact_kernels() else { return };
    for disk in ["forgets-flushes", "reorders", "tears"] {
        let bench = Bench::new();
        study(&bench, "\"ext4\" = { type = \"ext4\" }", &format!("states = 20, disk = \"{disk}\""));
        let trial = &carry_out_on("sata-ssd", &bench, &kernels, &[])[0];
        assert!(harm(trial) > 0.0, "{disk}: {trial:#}");
        if disk == "forgets-flushes" {
            let arguments = ["run", "./power.toml", "--exact", "--model", "nvme-ssd"];
            let (code, out, err) = bench.run_with(&arguments, &[("FSTONE_KERNELS", &kernels)]);
            assert!(code == 2 && err.contains("gets no flush that it could forget"), "{code} {out}{err}");
        }
    }
}

/// What had completed is there, whether the filesystem asked for it or not. Another drive shows that it did not.
#[test]
fn a_drive_with_capacitors_loses_nothing_without_barriers() {
    let Some(kernels) = exact_kernels() else { return };
    for (model, keeps) in [("nvme-ssd", true), ("sata-ssd", false)] {
        let bench = Bench::new();
        study(&bench, "\"ext4\" = { type = \"ext4\", mount = \"barrier=0\" }", "states = 40");
        let trial = &carry_out_on(model, &bench, &kernels, &[])[0];
        assert!(figure(trial, "promises checked") > 50.0, "{model}: {trial:#}");
        assert_eq!(harm(trial) == 0.0, keeps, "{model}: {trial:#}");
    }
}

/// Nothing else is promised: the name by an fsync of its directory, or the file by that of its data.
#[test]
fn names_of_a_synced_directory_and_files_with_durable_data_are_asked_for() {
    let Some(kernels) = exact_kernels() else { return };
    let sequence = |last: &str| {
        MAIL.replace("block = \"4 KiB\", fsync = true", "block = \"4 KiB\"")
            .replace("name = \"mail\"\n", "name = \"mail\"\nfinal-sync = \"none\"\n")
            + &format!("\n[[phase.group.sequence]]\n{last} = {{}}\nfileset = \"new\"\n")
    };
    for last in ["fsync-directory", "fdatasync"] {
        for (disk, sound) in [("sound", true), ("forgets-flushes", false)] {
            let bench = Bench::new();
            let cut = format!("states = 40, disk = \"{disk}\"");
            study_of(&bench, &sequence(last), "\"ext4\" = { type = \"ext4\" }", &cut);
            let trial = &carry_out_on("sata-ssd", &bench, &kernels, &[])[0];
            assert!(figure(trial, "promises checked") > 50.0, "{last} {disk}: {trial:#}");
            assert_eq!(figure(trial, "promises lost") == 0.0, sound, "{last} {disk}: {trial:#}");
            let lost = warnings(trial).iter().any(|words| words.contains("it is not there by any name it had"));
            assert_eq!(lost, !sound, "{last} {disk}: {trial:#}");
        }
    }
}

/// Their names and data are promised from the beginning: by an fsync of the load, that they are shorter, and empty in part.
#[test]
fn lengths_and_holes_of_files_that_were_built_are_asked_for() {
    let Some(kernels) = exact_kernels() else { return };
    let workload = |operation: &str| {
        let sequence =
            |operation: &str| format!("[[phase.group.sequence]]\n{operation}\nchoice = \"same\"\nfileset = \"set\"\n");
        format!(
            "name = \"mail\"\nfinal-sync = \"none\"\n[[fileset]]\nname = \"set\"\ndirectory = \"set\"\nfiles = 30\nsize = \"16 KiB\"\n\
             [[phase]]\nname = \"cut\"\nstop = {{ operations = 60 }}\n[[phase.group]]\nname = \"cut\"\nthreads = 2\n{}{}",
            sequence(operation).replace("\"same\"", "\"uniform\""),
            sequence("fsync = {}"),
        )
    };
    for (operation, words) in [("truncate", "and was cut to 4096"), ("punch-hole", "data where zeros were synced")] {
        for (disk, sound) in [("sound", true), ("forgets-flushes", false)] {
            let bench = Bench::new();
            let cut = format!("states = 40, disk = \"{disk}\"");
            let workload = workload(&format!("{operation} = {{ size = \"4 KiB\" }}"));
            study_of(&bench, &workload, "\"ext4\" = { type = \"ext4\" }", &cut);
            let trial = &carry_out_on("sata-ssd", &bench, &kernels, &[])[0];
            assert!(figure(trial, "promises checked") > 50.0, "{operation} {disk}: {trial:#}");
            assert_eq!(figure(trial, "promises lost") == 0.0, sound, "{operation} {disk}: {trial:#}");
            assert_eq!(warnings(trial).iter().any(|it| it.contains(words)), !sound, "{operation} {disk}: {trial:#}");
        }
    }
}

#[test]
fn a_log_that_outgrows_its_bound_fails_the_trial_in_virtual_time() {
    let Some(kernels) = exact_kernels() else { return };
    let bench = Bench::new();
    study(&bench, "\"ext4\" = { type = \"ext4\" }", "states = 5, log = \"64 KiB\"");
    let arguments = ["run", "./power.toml", "--exact", "--model", "nvme-ssd"];
    let (code, out, err) = bench.run_with(&arguments, &[("FSTONE_KERNELS", &kernels)]);
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(code, 4, "{out}{err}");
    assert!(words.contains("the load wrote more than 64 KiB") && words.contains("larger `log`"), "{out}");
}

#[test]
fn power_cuts_need_a_guest_and_a_load() {
    let bench = Bench::new();
    study(&bench, "\"ext4\" = { type = \"ext4\" }", "states = 25");
    if support::is_root() {
        let (code, out, _) = bench.run(&["run", "./power.toml", "--executor", "host"]);
        assert_eq!(code, 4, "{out}");
        assert!(out.contains("power cuts need a guest") && out.contains("--executor uml"), "{out}");
    }
    // Nobody has to say so where there is one.
    if has_uml() {
        let (code, out, err) = bench.run(&["run", "./power.toml", "--dry-run"]);
        assert!(code == 0 && out.contains("kernel: user-mode Linux"), "{code} {out}{err}");
        assert!(err.contains("Power cuts need a guest: running the study in user-mode Linux"), "{err}");
    }
    let text = std::fs::read_to_string(bench.path("power.toml")).expect("written");
    let without =
        text.replace("load = { workload = \"mail.workload\" }", "sync = {}").replace("transactions per second", "time");
    bench.write("power.toml", &without);
    let (code, _, err) = bench.run(&["run", "./power.toml", "--dry-run"]);
    assert!(code == 2 && err.contains("there is no load during which the power could be cut"), "{code} {err}");
}

const REPLAYED: &str = "for i in 1 2 3 4 5 6; do dd if=/dev/zero of=new bs=3000 count=3 conv=fsync status=none; mv new m$i; \
    chmod 600 m$i; done; sync .; dd if=/dev/zero of=m1 bs=1000 count=5 oflag=append conv=notrunc,fdatasync status=none; rm m2; \
    mkdir d; mv m3 d/m3; sync d; sync -f .";

fn record_and_plan(bench: &Bench, filesystems: &str, cut: &str) {
    let place = bench.path("place");
    std::fs::create_dir_all(&place).expect("writable");
    let recording = bench.path("app.rec");
    if !recording.exists() {
        let file = recording.display().to_string();
        let recorded = bench.command(&["record", "-o", &file, "--", "sh", "-c", REPLAYED]).current_dir(&place).status();
        assert!(recorded.expect("it starts").success());
    }
    study(bench, filesystems, cut);
    let text = std::fs::read_to_string(bench.path("power.toml")).expect("written");
    let text = text.replace("workload = \"mail.workload\"", "replay = \"app.rec\", pace = \"full\"");
    bench.write("power.toml", &text.replace("transactions per second", "differing calls"));
}

#[test]
fn what_a_recorded_application_synced_is_there_after_a_power_cut() {
    if !has_uml() {
        return;
    }
    let bench = Bench::new();
    record_and_plan(&bench, "\"ext4\" = { type = \"ext4\" }\n\"ext2\" = { type = \"ext2\" }", "states = 20");
    carry_out(&bench);
    for row in bench.json()["rows"].as_array().expect("rows") {
        let trial = &row["trials"][0];
        // As on the machine where it was recorded, on a kernel that has no fchmodat2(2).
        assert_eq!(figure(trial, "differing calls"), 0.0, "{trial:#}");
        assert!(figure(trial, "promises checked") > 50.0, "{trial:#}");
        assert_eq!(figure(trial, "promises lost") == 0.0, row["label"] == "ext4", "{trial:#}");
    }
    record_and_plan(&bench, "\"ext4\" = { type = \"ext4\" }", "states = 20, disk = \"forgets-flushes\"");
    carry_out(&bench);
    let trial = &support::trials(&bench.json())[0];
    assert!(figure(trial, "promises lost") > 0.0, "{trial:#}");
    let Some(kernels) = exact_kernels() else { return };
    record_and_plan(&bench, "\"ext4\" = { type = \"ext4\" }", "states = 5");
    let [first, again] = [(), ()].map(|()| carry_out_on("nvme-ssd", &bench, &kernels, &[]).remove(0));
    assert_eq!(figure(&first, "differing calls"), 0.0, "{first:#}");
    assert!(figure(&first, "promises checked") > 10.0 && figure(&first, "promises lost") == 0.0, "{first:#}");
    assert_eq!(first["figures"], again["figures"]);
}
