//! kill -9 of a run at random moments, then `--resume`, without `clean`: no finished trial is lost, nothing is left.

use super::{
    disk::{Disk, READ_AHEAD},
    may_use_devices,
};
use crate::support::{Bench, has_uml, trials};
use fstone_lab::run::schedule::block_order;
use fstone_model::{Dataset, Outcome, Trial, result::TrialId, study::TRIAL_STEP};
use fstone_store::{OpenError, Store};
use std::{
    fs,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt as _},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// How many times a run is killed, in guests a fifth of it; set higher by `make kill-nine`.
const KILLS: &str = "FSTONE_TEST_KILLS";
const REPEATS: u32 = 3;
/// Within which the kills fall, from the start of a run: about as long as one takes.
const SPAN: Duration = Duration::from_secs(5);

fn on_devices(disk: &str) -> String {
    format!(
        r#"
[factor.filesystem]
"ext4" = {{ type = "ext4" }}

[factor.device]
"image" = {{ loop = {{ size = "64 MiB" }} }}
"disk"  = {{ block = "{disk}" }}

[factor]
read-ahead = ["256 KiB"]
"#
    )
}

/// One filesystem whose tools run on the host, and one whose tools run in the guest, which has to be booted for them.
const IN_GUESTS: &str = r#"
device = { loop = { size = "256 MiB" } }

[factor.filesystem]
"ext4"  = { type = "ext4" }
"btrfs" = { type = "btrfs" }
"#;

/// Two rows of these, a load, and a command whose children outlive it.
fn study(rows: &str) -> String {
    format!(
        r#"
title   = "Killed"
repeats = {REPEATS}
seed    = 7
{rows}
[[step]]
load = {{ workload = "short.toml" }}
show = "throughput"

[[step]]
name    = "work"
command = {{ shell = true, run = "(sleep 1000; true) & head -c 4000000 /dev/zero > zeroes; sleep 0.4" }}

[[step]]
remount = {{}}

[[step]]
fsck = {{}}
show = "time"
"#
    )
}

const SHORT: &str = r#"
name = "short"

[[fileset]]
name = "files"
files = 20
size = "16 KiB"

[[phase]]
name = "write"
stop = { time = "200 ms" }

[[phase.group]]
name = "writers"
threads = 2

[[phase.group.mix]]
weight = 1
write = { size = "4 KiB", block = "4 KiB", pattern = "random" }
"#;

/// Its original is never written, and what cannot be copied as it was is refused.
#[test]
fn an_old_image_is_copied_and_its_profile_is_learnt() {
    if !may_use_devices() {
        return;
    }
    let bench = Bench::new();
    let tool = |words: &[&str]| {
        let output = Command::new(words[0]).args(&words[1..]).current_dir(bench.path("")).output().expect("installed");
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    };
    fs::create_dir_all(bench.path("tree/below")).expect("made");
    fs::write(bench.path("tree/below/one"), [1; 100_000]).expect("written");
    for name in ["old.img", "dirty.img"] {
        fs::File::create_new(bench.path(name)).expect("made").set_len(48 << 20).expect("sized");
        tool(&["mkfs.ext4", "-q", "-F", "-O", "^metadata_csum", "-d", "tree", name]);
    }
    // The feature of a journal that has to be replayed, in the superblock.
    let mut dirty = fs::read(bench.path("dirty.img")).expect("readable");
    dirty[1024 + 0x60] |= 4;
    fs::write(bench.path("dirty.img"), dirty).expect("written");
    let before = fs::read(bench.path("old.img")).expect("readable");
    let said = |words: &[&str]| {
        let mut command = bench.command(words);
        command.env("XDG_CACHE_HOME", bench.path("cache"));
        let output = command.output().expect("it runs");
        let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("UTF-8"));
        (output.status.code(), out + &err)
    };
    let run = |image: &str, size: &str| {
        bench.tiny_study(&format!("\"old\" = {{ type = \"ext4\", age = {{ image = \"{image}\" }} }}"));
        let study = fs::read_to_string(bench.path("tiny.toml")).expect("readable").replace("64 MiB", size);
        bench.write("tiny.toml", &study);
        said(&["run", "./tiny.toml", "--duration", "100ms", "--repeats", "1"])
    };
    let (code, words) = run("old.img", "64 MiB");
    assert!(code == Some(0) && words.contains("the same history, that of old.img"), "{words}");
    let step = trials(&bench.json())[0]["figures"].to_string();
    assert!(step.contains("utilization") && step.contains("aged files"), "{step}");
    let (_, list) = said(&["age", "list"]);
    assert!(list.contains("1 aged filesystem") && list.contains("a copy of /"), "{list}");

    let device = tool(&["losetup", "-f", "--show", "old.img"]);
    let attached = run("old.img", "64 MiB");
    let learnt = said(&["age", "learn", "--image", "old.img"]);
    tool(&["losetup", "-d", &device]);
    for (code, words) in [attached, learnt] {
        assert!(code == Some(2) && words.contains(&format!("attached to {device}; umount")), "{words}");
    }
    for (image, size, refusal) in [
        ("old.img", "32 MiB", "it has 48 MiB, and the device 32 MiB (fix: device = { loop = { size"),
        ("dirty.img", "64 MiB", "its filesystem was not unmounted, and its log has to be replayed"),
    ] {
        let (_, words) = run(image, size);
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("refused at old image") && words.contains(refusal), "{words}");
    }
    assert!(fs::read(bench.path("old.img")).expect("readable") == before, "the original is as it was");
    let (code, profile) = said(&["age", "learn", "--image", "old.img"]);
    assert!(code == Some(0) && profile.contains("old.img") && profile.contains("[1, 1, "), "{profile}");
    assert!(profile.contains("# layout score: ") && profile.contains("# free extents from "), "{profile}");
    let (code, words) = said(&["age", "learn", "--image", "dirty.img"]);
    assert!(code == Some(3) && words.contains("if it was not unmounted"), "{code:?} {words}");
    assert!(fs::read_dir(bench.path("cache/fstone")).expect("there").count() == 1, "only the copy is kept");
    assert!(!tool(&["losetup", "-a"]).contains("old.img"));
}

/// Ageing, or the copying of what was aged, is killed: whatever is kept is whole, and nothing else is there.
#[test]
fn an_aged_filesystem_that_is_not_complete_is_not_kept() {
    if !may_use_devices() {
        return;
    }
    let bench = Bench::new();
    let age = "{ profile = \"few.toml\", utilization = \"50 %\", overwrites = 2, seed = 3 }";
    bench.tiny_study(&format!("\"old\" = {{ type = \"ext4\", age = {age} }}"));
    bench.write(
        "few.toml",
        "sizes = [[4096, 1], [262144, 1]]\nages = [[10, 1], [100, 1]]\ndirectories = [[1, 1, 4], [2, 1, 8]]\n",
    );
    let cache = bench.path("cache");
    let command = |words: &[&str]| {
        let mut command = bench.command(words);
        command.env("XDG_CACHE_HOME", &cache);
        command
    };
    let said = |words: &[&str]| {
        let output = command(words).output().expect("it runs");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let run = ["run", "./tiny.toml", "--duration", "100ms", "--repeats", "1"];
    let directory = cache.join("fstone/aged");
    for tenths in 1..12 {
        let mut child = command(&run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
        std::thread::sleep(Duration::from_millis(tenths * 100));
        child.kill().expect("killed");
        child.wait().expect("ended");
        let is_image = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().ends_with(".aged");
        let files = fs::read_dir(&directory).map_or(0, |files| files.flatten().filter(is_image).count());
        assert_eq!(said(&["age", "list"]).matches("seed 3").count(), files, "after {tenths} tenths of a second");
    }
    said(&run);
    let list = said(&["age", "list"]);
    let name = list.lines().nth(1).and_then(|line| line.split_whitespace().next()).expect("one is kept");
    assert!(list.starts_with("1 aged filesystem, ") && name.starts_with("ext4-"), "{list}");
    let shown = said(&["age", "show", name]);
    for part in ["utilization ", "χ² ", "free extents, by their length", "extents per file", "layout score"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(said(&["list"]).contains("1 aged filesystem, "));
    assert!(
        said(&["clean", "--dry-run", "--kept"]).contains("1 aged filesystem, ")
            && directory.join(format!("{name}.aged")).exists()
    );
    fs::write(directory.join("thesis.tex"), "mine").expect("written");
    assert!(said(&["clean", "--kept"]).contains(&format!("removed: {name}")));
    assert!(
        said(&["age", "list"]).starts_with("No aged filesystems are kept") && directory.join("thesis.tex").exists()
    );
}

fn last_run(bench: &Bench) -> Option<Dataset> {
    let store = match Store::open_read_only(&bench.store()) {
        Ok(store) => store,
        // Killed before it was made, or while it was made.
        Err(OpenError::Missing { .. }) => return None,
        Err(error) => panic!("the store is not whole: {error}"),
    };
    let last = store.runs().expect("readable").into_iter().map(|run| run.id).max()?;
    Some(store.dataset(last).expect("readable"))
}

fn planned(dataset: &Dataset) -> Vec<TrialId> {
    let plan = &dataset.run.plan;
    (0..REPEATS)
        .flat_map(|repetition| block_order(plan, repetition).into_iter().map(move |cell| TrialId { cell, repetition }))
        .collect()
}

fn assert_complete(dataset: &Dataset) {
    let made: Vec<TrialId> = dataset.trials.iter().map(|trial| trial.id).collect();
    assert_eq!(made, planned(dataset), "every trial once, in the plan's order");
    assert!(dataset.run.finished_unix_ns.is_some());
    for (position, trial) in (0..).zip(&dataset.trials) {
        assert_eq!(trial.position, position);
        assert_eq!(trial.outcome, Outcome::Completed, "{trial:#?}");
        let cell = &dataset.run.plan.cells[trial.id.cell as usize];
        let made: Vec<&str> =
            trial.steps.iter().map(|step| step.step.as_str()).filter(|name| *name != TRIAL_STEP).collect();
        assert_eq!(made, cell.steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>());
        for column in &dataset.run.plan.columns {
            assert!(trial.figure(&column.step, &column.metric).is_some(), "{}: {}", column.step, column.metric);
        }
    }
}

/// Processes that were started, however indirectly, by a run of this bench: they have its environment, or as guests its
/// paths in their command lines.
fn processes(bench: &Bench) -> Vec<String> {
    let (store, work) = (format!("FSTONE_STORE={}", bench.store().display()), bench.work().display().to_string());
    fs::read_dir("/proc")
        .expect("readable")
        .flatten()
        .filter(|entry| {
            let read = |name: &str| {
                String::from_utf8_lossy(&fs::read(entry.path().join(name)).unwrap_or_default()).into_owned()
            };
            read("environ").split('\0').any(|word| word == store) || read("cmdline").contains(&work)
        })
        .map(|entry| {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            format!("{} {}", entry.file_name().display(), String::from_utf8_lossy(&command).replace('\0', " "))
        })
        .collect()
}

fn kill(mut run: Child) {
    run.kill().expect("it is ours");
    run.wait().expect("reaped");
}

/// What a kill left is gone by itself, but what the kernel cannot undo: that is in the journal, and left to the next run. How
/// many such things there were.
fn look(bench: &Bench, disk: Option<&Disk>) -> usize {
    let since = Instant::now();
    while !processes(bench).is_empty() || bench.holds_device() {
        // A filesystem that is unmounted is written first.
        assert!(since.elapsed() < Duration::from_secs(60), "left: {:?}", processes(bench));
        std::thread::sleep(Duration::from_millis(20));
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("readable");
    assert!(!mounts.contains(&bench.work().display().to_string()), "{mounts}");
    let listed = bench.succeed(&["clean", "--dry-run"]);
    // Before it stands what other runs of this user have kept.
    let left = listed.split_once("Left over from a run in").map_or("", |(_, left)| left);
    let things: Vec<&str> = left.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    let kinds = match disk {
        Some(_) => &["queue setting", "filesystem on"][..],
        None => &["guest in", "image"],
    };
    assert!(things.iter().all(|thing| kinds.iter().any(|kind| thing.starts_with(kind))), "{listed}");
    things.len()
}

/// A filesystem whose making was interrupted on a disk of the user's has no name yet by which it could be told from somebody
/// else's. The next run leaves it alone and says how to go on, which is what a person does then.
fn wiped_by_hand(disk: Option<&Disk>, said: &str) -> bool {
    let is_asked = |disk: &&Disk| said.contains(&format!("wipefs -a {}", disk.0));
    let Some(disk) = disk.filter(is_asked) else { return false };
    let status = Command::new("wipefs").args(["-q", "-a", &disk.0]).status();
    assert!(status.expect("starts").success());
    true
}

/// Runs to the end; how often a disk had to be wiped by hand for it.
fn succeed(bench: &Bench, arguments: &[&str], disk: Option<&Disk>) -> usize {
    let (code, out, err) = bench.run(arguments);
    if code != 0 && wiped_by_hand(disk, &err) {
        bench.succeed(arguments);
        return 1;
    }
    assert_eq!(code, 0, "{arguments:?}\n{out}\n{err}");
    0
}

fn assert_nothing_left(bench: &Bench, disk: Option<&Disk>) {
    assert_eq!(processes(bench), [""; 0]);
    bench.assert_clean();
    if let Some(disk) = disk {
        let read_ahead = fs::read_to_string(disk.read_ahead()).expect("there");
        assert_eq!(read_ahead.trim(), READ_AHEAD, "a setting was not put back");
    }
}

fn assert_kept(before: &[Trial], after: &[Trial]) {
    for trial in before {
        let kept = after.iter().find(|kept| kept.id == trial.id);
        assert_eq!(kept, Some(trial), "a finished trial is lost or changed");
    }
}

fn kills() -> u32 {
    std::env::var(KILLS).ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

#[test]
fn killed_at_any_moment_nothing_is_lost_and_nothing_is_left() {
    if !may_use_devices() {
        return;
    }
    let bench = Bench::new();
    let disk = Disk::new(&bench);
    bench.write("killed.toml", &study(&on_devices(&disk.0)));
    let run = ["run", "./killed.toml", "--allow-destroy", &disk.0, "--allow-destroy-data", &disk.0];
    kill_again_and_again(&bench, &run, Some(&disk), kills());
}

/// The filesystem is as the run made it, and by now it may be somebody's.
#[test]
fn what_is_put_on_a_killed_runs_disk_goes_only_if_that_is_permitted() {
    if !may_use_devices() {
        return;
    }
    let bench = Bench::new();
    let disk = Disk::new(&bench);
    bench.tiny_study(r#""ext4" = { type = "ext4" }"#);
    let on_disk = ["run", "./tiny.toml", "--repeats", "200", "--device", &disk.0, "--allow-destroy", &disk.0];
    let run = bench.command(&on_disk).stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts");
    let journal = || fs::read_to_string(bench.work().join("fstone.journal")).unwrap_or_default();
    let since = Instant::now();
    // Its name is in the journal: mkfs has ended.
    while !journal().contains("\"uuid\":\"") {
        assert!(since.elapsed() < Duration::from_secs(60), "{}", journal());
        std::thread::sleep(Duration::from_millis(1));
    }
    kill(run);
    assert!(look(&bench, Some(&disk)) > 0, "the filesystem is left");

    let place = bench.path("mounted");
    fs::create_dir(&place).expect("made");
    let mounted = |work: &dyn Fn()| {
        assert!(Command::new("mount").arg(&disk.0).arg(&place).status().expect("starts").success());
        work();
        assert!(Command::new("umount").arg(&place).status().expect("starts").success());
        // Guests of other tests that started meanwhile have it in namespaces of their own.
        crate::support::wait_until("it is mounted nowhere", || {
            fs::OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::EXCL.bits() as i32).open(&disk.0).is_ok()
        });
    };
    mounted(&|| fs::write(place.join("precious"), "data").expect("written"));
    let cure = format!("fstone clean --allow-destroy-data {}", disk.0);
    let others = ["--allow-destroy-data", "/dev/loop-control"];
    let permits = ["--allow-destroy-data", &disk.0];
    let unnamed = ["run", "./tiny.toml", "--repeats", "1", "--device", &disk.0, permits[0], permits[1]];
    // Runs that use other devices go on, and say what is left.
    let attempts: [(&[&str], bool); 7] = [
        (&unnamed, false),
        (&["run", "./tiny.toml", "--repeats", "1", permits[0], permits[1]], true),
        (&["run", "./tiny.toml", "--repeats", "1"], true),
        (&["run", "./tiny.toml", "--resume", "--allow-destroy", &disk.0], false),
        (&on_disk, false),
        (&["clean"], false),
        (&["clean", others[0], others[1]], false),
    ];
    for (arguments, succeeds) in attempts {
        let (code, out, err) = bench.run(arguments);
        assert!((code == 0) == succeeds && (out + &err).contains(&cure), "{arguments:?}: {code}");
        mounted(&|| assert_eq!(fs::read_to_string(place.join("precious")).expect("it is there"), "data"));
    }
    // Another run has it now, out of another work directory.
    let node = fs::File::open(&disk.0).expect("opens");
    node.lock().expect("locked");
    let (code, out, err) = bench.run(&["clean", permits[0], permits[1]]);
    assert!(code != 0 && out.contains("in use by"), "{code}: {out}{err}");
    drop(node);
    mounted(&|| assert_eq!(fs::read_to_string(place.join("precious")).expect("it is there"), "data"));
    let clean = |disk: &str| super::named::on_a_terminal(&bench, &["clean", "--allow-destroy-data", disk], "no\n");
    let (screen, code) = clean(&disk.0);
    assert!(code == 3 && screen.contains("will be erased") && screen.contains("still there"), "{code}: {screen}");
    let (screen, _) = clean(others[1]);
    assert!(screen.contains("still there") && !screen.contains("will be erased"), "nothing is left on it: {screen}");
    let typed = [&on_disk[..], &permits].concat();
    let (screen, code) = super::named::on_a_terminal(&bench, &typed, "no\n");
    assert_eq!(code, 3, "{screen}");
    mounted(&|| assert_eq!(fs::read_to_string(place.join("precious")).expect("it is there"), "data"));
    let permitted =
        ["--repeats", "1", "--device", &disk.0, "--allow-destroy", &disk.0, "--allow-destroy-data", &disk.0];
    bench.succeed(&[&["run", "./tiny.toml"], &permitted[..]].concat());
    assert_nothing_left(&bench, None);
}

#[test]
fn killed_at_any_moment_no_guest_is_left() {
    if !has_uml() {
        return;
    }
    let bench = Bench::of_nobody();
    bench.write("killed.toml", &study(IN_GUESTS));
    kill_again_and_again(&bench, &["run", "./killed.toml", "--executor", "uml"], None, kills().div_ceil(5).max(2));
}

fn kill_again_and_again(bench: &Bench, first: &[&str], disk: Option<&Disk>, kills: u32) {
    bench.write("short.toml", SHORT);
    // The plan, and with it the kernel, is the one it had.
    let resumed: Vec<&str> =
        first.iter().copied().filter(|word| !["--executor", "uml"].contains(word)).chain(["--resume"]).collect();

    let (mut attempts, mut killed, mut left, mut by_hand, mut runs) = (0_u32, 0, 0, 0, 0);
    // Another place to begin each time, so that two runs of this test do not kill at the same moments.
    let offset = f64::from(std::process::id() % 1000) / 1000.0;
    while killed < kills {
        let mut finished: Vec<Trial> = Vec::new();
        let before = last_run(bench).map(|run| run.run.id);
        loop {
            let begun = last_run(bench).filter(|run| Some(run.run.id) != before);
            let arguments = if begun.is_some() { &resumed[..] } else { first };
            let mut run = bench.command(arguments).spawn().expect("it starts");
            // Moments spread evenly over a run by a low-discrepancy sequence: no two kills fall on the same.
            let moment = (offset + f64::from(attempts) * 0.618_033_988_749_895).fract();
            attempts += 1;
            std::thread::sleep(Duration::from_millis(20) + SPAN.mul_f64(moment));
            if run.try_wait().expect("waits").is_some() {
                let output = run.wait_with_output().expect("it ends");
                let said = String::from_utf8_lossy(&output.stderr);
                if !output.status.success() && wiped_by_hand(disk, &said) {
                    by_hand += 1;
                    continue;
                }
                assert!(output.status.success(), "{said}");
                break;
            }
            kill(run);
            killed += 1;
            left += look(bench, disk);
            let now = last_run(bench).filter(|run| Some(run.run.id) != before);
            // Killed after its end, while its report was written: nothing to go on with.
            let over = now.as_ref().is_some_and(|run| run.run.finished_unix_ns.is_some());
            let now = now.map(|run| run.trials).unwrap_or_default();
            assert_kept(&finished, &now);
            finished = now;
            if over || killed >= kills {
                break;
            }
        }
        // To the end, without a kill.
        let dataset = last_run(bench).filter(|run| Some(run.run.id) != before);
        match &dataset {
            Some(dataset) if dataset.run.finished_unix_ns.is_some() => {}
            Some(_) => by_hand += succeed(bench, &resumed, disk),
            None => by_hand += succeed(bench, first, disk),
        }
        let dataset = last_run(bench).expect("recorded");
        assert_kept(&finished, &dataset.trials);
        assert_complete(&dataset);
        assert_nothing_left(bench, disk);
        runs += 1;
    }
    eprintln!(
        "{killed} kills in {runs} runs of {} trials ({} ended before their kill): no mount, loop device, image of a loop \
         device or process outlived its run; {left} things were left to the next run, which undid them; {by_hand} \
         half-made filesystems on the named disk were wiped by hand; no trial was lost",
        2 * REPEATS,
        attempts - killed
    );
}

#[test]
fn a_journal_of_what_was_never_made_holds_nobody_up() {
    let bench = Bench::new();
    let work = bench.work();
    let (image, journal) = (work.join("fstone-scratch.img"), work.join("fstone.journal"));
    // As when the run was killed between the line and the deed.
    let line = |id: u32| {
        format!(
            "{{\"made\":{{\"id\":{id},\"entry\":{{\"image\":{{\"path\":\"{}\",\"id\":null}}}}}}}}\n",
            image.display()
        )
    };
    fs::DirBuilder::new().mode(0o1700).create(&work).expect("made");
    fs::write(&journal, line(0)).expect("written");
    assert!(bench.succeed(&["clean", "--dry-run"]).contains("Nothing is left over") && journal.exists());
    assert!(bench.succeed(&["clean"]).contains("Nothing is left over") && !journal.exists());
    bench.assert_clean();

    // As when it was killed between two lines on the same thing.
    fs::DirBuilder::new().mode(0o1700).recursive(true).create(&work).expect("made");
    fs::write(&journal, line(0) + &line(1)).expect("written");
    fs::write(&image, "").expect("written");
    let out = bench.succeed(&["clean"]);
    assert_eq!(out.matches(&image.display().to_string()).count(), 2, "listed once, undone once: {out}");
    bench.assert_clean();
}
