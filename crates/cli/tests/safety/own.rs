//! Filesystems of a study's own: made, mounted, shared by two clients, and gone afterwards, whatever happened meanwhile.

use super::may_use_devices;
use crate::support::{Bench, has_uml, interrupt, tool, trials};
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

fn can(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !tool(program));
    if let Some(program) = missing {
        eprintln!("skipped: {program} is not installed (scripts/prerequisites test)");
    }
    missing.is_none() && may_use_devices() && {
        let fuse = Path::new("/dev/fuse").exists();
        if !fuse {
            eprintln!("skipped: there is no /dev/fuse");
        }
        fuse
    }
}

fn study(own: &str, command: &str) -> String {
    format!(
        "title = \"Own\"\nrepeats = 1\nseed = 1\n[filesystem.own]\n{own}\n[factor.filesystem]\n\"own\" = {{ type = \"own\" }}\n\
         [[step]]\nmount = {{}}\nshow = \"time\"\n[[step]]\nname = \"work\"\ncommand = {{ shell = true, run = '{command}' }}\n"
    )
}

const BINDFS: &str =
    "make = [\"mkdir\", \"{directory}/source\"]\nmount = [\"bindfs\", \"{directory}/source\", \"{mountpoint}\"]";

/// The one trial's kind of outcome, its words, and all warnings.
fn outcome(bench: &Bench) -> (String, String) {
    let report = bench.json();
    let trial = trials(&report).pop().expect("a trial");
    (trial["outcome"].to_string(), format!("{report}"))
}

fn assert_nothing_is_left(bench: &Bench) {
    let place = bench.work().display().to_string();
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("readable");
    assert!(!mounts.contains(&place), "{mounts}");
    // What was killed is gone a moment later.
    let since = Instant::now();
    while let Some(process) = process_with(&place) {
        assert!(since.elapsed() < Duration::from_secs(20), "still running: {process}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let left: Vec<_> = fs::read_dir(bench.work()).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn process_with(place: &str) -> Option<String> {
    let entries = fs::read_dir("/proc").expect("readable").flatten();
    let mut lines = entries.filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.find(|line| line.contains(place) && !line.contains("fstone run"))
}

#[test]
fn fuse_filesystems_are_made_mounted_checked_and_gone() {
    if !can(&["bindfs", "fuse-overlayfs", "fusermount3"]) {
        return;
    }
    let bench = Bench::new();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/more/fuse.toml");
    let out = bench.succeed(&["run", path, "--quick"]);
    assert!(!out.contains("failed") && !out.contains("skipped"), "{out}");
    let report = bench.json();
    let made = trials(&report);
    assert_eq!(made.len(), 6);
    assert!(made.iter().all(|trial| trial["outcome"] == "completed"), "{out}");
    assert_nothing_is_left(&bench);
}

#[test]
fn what_one_client_of_glusterfs_wrote_the_other_reads() {
    if !can(&["glusterd", "mount.glusterfs", "ip", "nsenter"]) {
        return;
    }
    let bench = Bench::new();
    let links =
        || fs::read_dir("/sys/class/net").expect("readable").flatten().map(|it| it.file_name()).collect::<Vec<_>>();
    let before = links();
    // As docs/clusters.md has it, typed in the repository.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::os::unix::fs::symlink(root.join("studies"), bench.path("studies")).expect("ours");
    let words = crate::documents::clusters::arguments_of("glusterfs.toml");
    let out = bench.succeed(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let (outcome, report) = outcome(&bench);
    assert_eq!(outcome, "\"completed\"", "{out}");
    // Its servers end with their trial without a word.
    assert!(!report.contains("still running"), "{report}");
    assert_nothing_is_left(&bench);
    assert!(links().iter().all(|link| before.contains(link)), "{:?}", links());
}

#[test]
fn the_other_client_sees_what_was_written_and_not_its_own_mount() {
    if !can(&["bindfs"]) {
        return;
    }
    let bench = Bench::new();
    let script = "echo hello > {mount0}/file && grep hello {mount1}/file && ! [ {mount0} = {mount1} ] && \
                  grep -c \" $(realpath {mount1}) \" /proc/self/mountinfo";
    bench.write("own.toml", &study(&format!("{BINDFS}\nclients = 2"), script));
    bench.succeed(&["run", "./own.toml"]);
    assert_eq!(outcome(&bench).0, "\"completed\"");
    assert_nothing_is_left(&bench);
}

#[test]
fn what_goes_wrong_is_an_outcome_and_remove_runs_all_the_same() {
    if !can(&["bindfs"]) {
        return;
    }
    let remove = |bench: &Bench| format!("remove = [\"touch\", \"{}\"]\n", bench.path("removed").display());
    let hide = "mount = [\"true\", \"{mountpoint}\"]";
    // It has a session of its own before the command ends, which takes its process group along.
    let daemon = "mount = [\"sh\", \"-c\", \"bindfs {directory} {mountpoint}; setsid -f sh -c 'touch {directory}/up; exec sleep 1000' \
                  > /dev/null 2>&1; until test -e {directory}/up; do sleep 0.01; done\"]";
    let undone = format!("{BINDFS}\nunmount = [\"true\"]");
    let hangs = "make = [\"sleep\", \"1000\"]\nmount = [\"bindfs\", \"{directory}\", \"{mountpoint}\"]";
    let lacks =
        "make = [\"sh\", \"-c\", \"no-such-program\"]\nmount = [\"true\", \"{mountpoint}\"]\npackages = [\"no-such\"]";
    // What it mounted is unmounted before it is removed, though the step failed.
    let half = format!(
        "{}\n{}",
        BINDFS.replace("mount = [\"bindfs\", \"{directory}/source\", \"{mountpoint}\"]", ""),
        "mount = [\"sh\", \"-c\", \"bindfs {directory}/source {mountpoint}; exit 5\"]"
    );
    for (own, steps, wanted, words) in [
        (half.as_str(), "", "failed", "`mount`: exit status 5"),
        (
            "make = [\"sh\", \"-c\", \"echo told >&2; exit 3\"]\nmount = [\"true\", \"{mountpoint}\"]",
            "",
            "failed",
            "`make`: exit status 3: told",
        ),
        (hide, "", "failed", "the mount command succeeded, but nothing is mounted at"),
        (&undone, "[[step]]\nunmount = {}\n", "failed", "the unmount command succeeded, but"),
        (
            &format!("{BINDFS}\ncheck = [\"false\"]"),
            "[[step]]\nfsck = {}\n",
            "failed",
            "not consistent: `check`: exit status 1",
        ),
        (daemon, "", "completed", "still running after the unmount, and ended: sleep ("),
        (hangs, "[[step]]\nmkfs = {}\nlimit = \"1 s\"\n", "hung", "not done within its limit of 1 s"),
        (lacks, "", "skipped", "apt-get install no-such"),
        (
            "mount = [\"no-such-mount\", \"{mountpoint}\"]\npackages = [\"no-such\"]",
            "",
            "skipped",
            "no-such-mount is not installed",
        ),
    ] {
        let bench = Bench::new();
        let text = study(&format!("{}{own}", remove(&bench)), "true");
        // The steps of a study begin with mkfs, where it lists that.
        let text = if steps.contains("mkfs") {
            text.replacen("[[step]]", &format!("{steps}[[step]]"), 1)
        } else {
            text + steps
        };
        bench.write("own.toml", &text);
        let (_, out, err) = bench.run(&["run", "./own.toml"]);
        let (kind, report) = outcome(&bench);
        assert!(kind.contains(wanted) && report.contains(words), "{own}\n{out}{err}\n{kind}\n{report}");
        let begun = !words.contains("not installed");
        assert_eq!(bench.path("removed").exists(), begun, "{own}\n{out}{err}");
        assert_nothing_is_left(&bench);
    }
}

#[test]
fn after_a_kill_the_next_run_or_clean_removes_what_was_made() {
    if !can(&["bindfs"]) {
        return;
    }
    for next in [&["clean"][..], &["run", "./own.toml"]] {
        let bench = Bench::new();
        let made = bench.path("elsewhere");
        let own = format!(
            "make = [\"mkdir\", \"{0}\"]\nmount = [\"bindfs\", \"{0}\", \"{{mountpoint}}\"]\nremove = [\"rmdir\", \"{0}\"]",
            made.display()
        );
        bench.write("own.toml", &study(&own, "test -e ../quick || sleep 1000"));
        let mut run = bench.command(&["run", "./own.toml"]).spawn().expect("it starts");
        let since = Instant::now();
        while process_with("sleep 1000").is_none() || !made.exists() {
            assert!(since.elapsed() < Duration::from_secs(60), "it does not begin");
            std::thread::sleep(Duration::from_millis(20));
        }
        run.kill().expect("ours");
        run.wait().expect("ours");
        assert!(made.exists(), "nobody could remove it");
        let told = bench.succeed(&["clean", "--dry-run"]);
        assert!(told.contains("filesystem own") && told.contains("rmdir") && made.exists(), "{told}");
        fs::write(bench.path("quick"), "").expect("written");
        bench.write("own.toml", &study(&own, "true"));
        let (code, out, err) = bench.run(next);
        assert_eq!(code, 0, "{out}{err}");
        assert!(!made.exists(), "{out}{err}");
        assert_nothing_is_left(&bench);
    }
}

#[test]
fn a_remove_that_fails_is_told_and_kept_for_clean() {
    if !can(&["bindfs"]) {
        return;
    }
    let bench = Bench::new();
    let flag = bench.path("may");
    let own = format!(
        "{BINDFS}\nremove = [\"sh\", \"-c\", \"test -e {} || {{ echo not yet >&2; exit 1; }}\"]",
        flag.display()
    );
    bench.write("own.toml", &study(&own, "true"));
    let (code, out, err) = bench.run(&["run", "./own.toml"]);
    assert!(code != 0 && err.contains("not yet"), "{code}: {out}{err}");
    fs::write(&flag, "").expect("written");
    bench.succeed(&["clean"]);
    assert_nothing_is_left(&bench);
}

/// Without its programs nothing can be made, and `remove` would fail today and whenever `clean` tries it.
#[test]
fn a_make_that_lacks_its_program_leaves_nothing_to_remove() {
    if !may_use_devices() {
        return;
    }
    let lacks = "[\"sh\", \"-c\", \"no-such-program {directory}\"]";
    for (make, remove, well) in [(lacks, lacks, true), ("[\"true\"]", lacks, false)] {
        let bench = Bench::new();
        let own = format!(
            "make = {make}\nmount = [\"false\", \"{{mountpoint}}\"]\nremove = {remove}\npackages = [\"no-such\"]"
        );
        bench.write("own.toml", &study(&own, "true"));
        let (code, out, err) = bench.run(&["run", "./own.toml"]);
        let (cleaned, told, _) = bench.run(&["clean"]);
        assert_eq!(cleaned == 0, well, "{out}{err}{told}");
        if well {
            let (kind, report) = outcome(&bench);
            assert!(kind.contains("skipped") && report.contains("nothing was removed"), "{code}: {kind} {report}");
            assert_nothing_is_left(&bench);
        } else {
            assert!(err.contains("removes: exit status 127") && err.contains("by hand"), "{code}: {out}{err}");
        }
    }
}

#[test]
fn a_bundles_own_filesystem_runs_nothing_unless_permitted() {
    if !can(&["bindfs"]) {
        return;
    }
    let bench = Bench::new();
    let proof = bench.path("proof");
    let own = format!("{BINDFS}\nremove = [\"touch\", \"{}\"]", proof.display());
    let text = study(&own, "true").replace("[[step]]\nname = \"work\"\ncommand = { shell = true, run = 'true' }\n", "");
    bench.write("own.toml", &text);
    bench.succeed(&["run", "./own.toml"]);
    bench.succeed(&["export", "1", "one.fstone"]);
    fs::remove_file(&proof).expect("it was removed with this");

    let (code, _, err) = bench.run(&["rerun", "one.fstone"]);
    assert!(code == 3 && err.contains("--allow-commands"), "{code}: {err}");
    for words in ["runs mkdir {directory}/source (to make own)", "(to mount own)", "(to remove own)"] {
        assert!(err.contains(words), "{err}");
    }
    let told = bench.succeed(&["rerun", "one.fstone", "--dry-run"]);
    assert!(told.contains("--allow-commands") && !proof.exists(), "{told}");
    bench.succeed(&["rerun", "one.fstone", "--allow-commands"]);
    assert!(proof.exists());
    assert_nothing_is_left(&bench);
}

#[test]
fn a_guest_gets_none_and_a_shell_gets_plain_paths() {
    let bench = Bench::new();
    bench.write("own.toml", &study("mount = [\"true\", \"{mountpoint}\"]", "true"));
    let in_guests = fs::read_to_string(bench.path("own.toml")).expect("written") + "[factor]\nkernel = [\"uml:6.1\"]\n";
    bench.write("guests.toml", &in_guests);
    let (code, _, err) = bench.run(&["run", "./guests.toml"]);
    assert!(
        code == 2 && err.contains("`own` is a filesystem of the study's own, and cannot be made in a guest"),
        "{err}"
    );
    if has_uml() {
        let (code, _, err) = bench.run(&["run", "./own.toml", "--executor", "uml"]);
        assert!(code == 2 && err.contains("own is described by the study itself"), "{code}: {err}");
    }
    if !may_use_devices() {
        return;
    }
    let odd = bench.path("a b;c");
    let (_, out, _) = bench.run(&["run", "./own.toml", "--work-directory", &odd.display().to_string()]);
    // The path before it is as long as the test's directory, and lines are broken.
    let words: Vec<&str> = out.split_whitespace().collect();
    assert!(words.join(" ").contains("a shell would split or change"), "{out}");
}

#[test]
fn ctrl_c_ends_the_daemons_and_removes_what_was_made() {
    if !can(&["bindfs"]) {
        return;
    }
    let bench = Bench::new();
    let made = bench.path("elsewhere");
    let own = format!(
        "make = [\"mkdir\", \"{0}\"]\nmount = [\"bindfs\", \"{0}\", \"{{mountpoint}}\"]\nremove = [\"rmdir\", \"{0}\"]",
        made.display()
    );
    bench.write("own.toml", &study(&own, "sleep 1001"));
    let mut run = bench.command(&["run", "./own.toml"]).spawn().expect("it starts");
    let since = Instant::now();
    while process_with("sleep 1001").is_none() {
        assert!(since.elapsed() < Duration::from_secs(60), "it does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    interrupt(&run);
    run.wait().expect("ours");
    assert!(!made.exists());
    assert_nothing_is_left(&bench);
}

#[test]
fn one_on_a_device_gets_the_studys_image() {
    if !can(&["mkfs.ext4"]) {
        return;
    }
    let bench = Bench::new();
    let own = "make = [\"mkfs.ext4\", \"-q\", \"{device}\"]\nmount = [\"mount\", \"{device}\", \"{mountpoint}\"]\n\
               check = [\"e2fsck\", \"-fn\", \"{device}\"]\n";
    let text = study(own, "findmnt --noheadings --output FSTYPE,SOURCE {mount} | grep \"ext4 *{device}\"")
        + "[[step]]\nfsck = {}\n";
    let text = text.replacen("repeats", "device = { loop = { size = \"64 MiB\" } }\nrepeats", 1);
    bench.write("own.toml", &text);
    let out = bench.succeed(&["run", "./own.toml"]);
    assert_eq!(outcome(&bench).0, "\"completed\"", "{out}");
    assert_nothing_is_left(&bench);
}
