//! Blocks that a Slurm cluster makes: dealt out, lost, made again, and in the store once.

mod launched;
mod nodes;
mod pretended;

use crate::support::{Bench, LIMIT, Said, interrupt, is_root, tool, trials};
use nodes::Cluster;
use std::{
    fs,
    process::{Command, Stdio},
    thread,
    time::Instant,
};

const TWO: &str = "\"ext4\" = { type = \"ext4\" }\n\"ext2\" = { type = \"ext2\" }";

/// Whether a trial may be without a figure: a step can be over before the clock ticks that processors are accounted by, and of a short load
/// one operation in a hundred creates a file.
fn is_rare(figure: &str) -> bool {
    figure.contains("\"CPU") || figure.starts_with("\"load\" \"create")
}

/// Everything of a run's trials that does not depend on how fast they were: cell, block, place, seed, steps and their metrics.
fn structure(report: &serde_json::Value) -> Vec<String> {
    let rows = report["rows"].as_array().expect("rows");
    let mut told = Vec::new();
    for row in rows {
        for trial in row["trials"].as_array().expect("trials") {
            let figures = trial["figures"].as_array().expect("figures").iter();
            let figures: Vec<String> = figures
                .map(|figure| format!("{} {}", figure["step"], figure["metric"]))
                .filter(|name| !is_rare(name))
                .collect();
            told.push(format!(
                "{} {} {} {} {} {}",
                row["label"],
                trial["repetition"],
                trial["position"],
                trial["seed"],
                trial["outcome"],
                figures.join(", ")
            ));
        }
    }
    told.sort();
    told
}

#[test]
fn blocks_are_dealt_out_and_those_of_a_node_that_dies_are_made_again() {
    let bench = Bench::new();
    bench.tiny_study(TWO);
    // One node would never end a block: it dies in the middle of its first, however late its start was said.
    let waits =
        "[[step]]\nname = \"wait\"\ncommand = { shell = true, run = 'test \"$SLURMD_NODENAME\" != n2 || sleep 600' }\n";
    let study = fs::read_to_string(bench.path("tiny.toml")).expect("written above");
    bench.write("tiny.toml", &study.replace("[[step]]\nfsck", &format!("{waits}[[step]]\nfsck")));
    let Some(cluster) = Cluster::start(&bench) else { return };
    let arguments = ["run", "./tiny.toml", "--repeats", "4", "--seed", "7"];
    // Slurm itself would make a task again after two minutes.
    let slurm = [&arguments[..], &["--slurm", "--", "--no-requeue"]].concat();
    let mut child = cluster.fstone(&bench, &slurm).spawn().expect("started");
    let mut said = Said::by(&mut child);
    said.wait_for("running on n2");
    cluster.kill("n2");
    let (status, out, said) = said.end(child);
    assert_eq!(status, 0, "{said}\n{out}");
    assert!(said.contains("block 2: lost (") && said.contains("running it again"), "{said}");
    assert!(out.contains("n1"), "the report says which machines: {out}");

    let report = bench.json();
    assert_eq!(trials(&report).len(), 8, "4 blocks of 2 rows, each once: {said}");
    // In the same namespaces, where kernel threads are not seen.
    let alone = cluster.fstone(&bench, &arguments).output().expect("started");
    assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stderr));
    assert_eq!(structure(&report), structure(&bench.json()), "not as one machine alone made it");
    let list = bench.succeed(&["list", "runs"]);
    assert_eq!(list.matches("finished").count(), 2, "{list}");
    assert!(!bench.path("data/slurm").exists(), "nothing is left beside the store");
    bench.assert_clean();
}

/// docs/clusters.md as it stands, with a directory on each node in place of filesystems, for moments.
#[test]
fn the_line_of_the_page_on_clusters_gives_a_report_of_two_nodes() {
    let bench = Bench::new();
    let Some(cluster) = Cluster::start(&bench) else { return };
    let line = crate::documents::clusters::arguments_of("--slurm");
    let (run, slurm) = line.split_at(line.iter().position(|word| word == "--").expect("options of sbatch"));
    let quickly = ["--quick", "--device", "directory", "--duration", "200ms", "--set", "files=50"];
    let words = run.iter().map(String::as_str).chain(quickly).chain(slurm.iter().map(String::as_str));
    let output = cluster.fstone(&bench, &words.collect::<Vec<_>>()).output().expect("started");
    let (said, out) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{said}\n{out}");
    let machines = out.lines().find(|line| line.contains("n1") && line.contains("n2"));
    assert!(machines.is_some() && out.contains("Mean of 8 trials"), "{said}\n{out}");
    bench.assert_clean();
}

#[test]
fn what_is_interrupted_is_cancelled_undone_and_gone_on_with() {
    let bench = Bench::new();
    bench.tiny_study(TWO);
    let Some(cluster) = Cluster::start(&bench) else { return };
    let run = |more: &[&str]| {
        let mut child =
            cluster.fstone(&bench, &[&["run", "./tiny.toml", "--slurm"], more].concat()).spawn().expect("started");
        (Said::by(&mut child), child)
    };
    // What sbatch refuses is not begun.
    let (said, child) = run(&["--", "--partition=none"]);
    let (status, _, words) = said.end(child);
    assert!(
        status == 3 && words.contains("sbatch refused the job") && words.contains("nvalid partition"),
        "{status}: {words}"
    );
    assert!(!bench.succeed(&["list", "runs"]).contains("tiny"), "nothing of it");
    assert!(!bench.path("data/slurm").exists());

    let (mut said, child) = run(&["--repeats", "4"]);
    said.wait_for("running on n2");
    said.wait_for("trials from");
    // nsenter waits for fstone, which is its child.
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let inner = std::fs::read_to_string(children).expect("it runs");
    let inner =
        inner.split_whitespace().next().and_then(|pid| pid.parse().ok()).and_then(rustix::process::Pid::from_raw);
    match inner {
        Some(pid) => rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs"),
        None => interrupt(&child),
    }
    let (status, _, words) = said.end(child);
    assert!(status == 130 && words.contains("the tasks are cancelled"), "{status}: {words}");
    let queue = cluster.command("squeue").arg("--noheader").output().expect("squeue starts");
    assert_eq!(String::from_utf8_lossy(&queue.stdout).trim(), "", "nothing is under way");
    assert!(!bench.holds_device(), "nor left on a node");
    let kept = trials(&bench.json()).len();
    assert!((2..8).contains(&kept) && kept.is_multiple_of(2), "whole blocks: {kept}");

    // As if fstone had been killed before sbatch answered.
    for home in std::fs::read_dir(bench.path("data/slurm")).expect("the run's").flatten() {
        std::fs::write(home.path().join("jobs.json"), "{\"jobs\": [], \"submitting\": true}").expect("ours");
    }
    let (said, child) = run(&["--resume"]);
    let (status, out, words) = said.end(child);
    assert_eq!(status, 0, "{words}\n{out}");
    assert_eq!(trials(&bench.json()).len(), 8);
    assert!(!bench.path("data/slurm").exists());
    bench.assert_clean();
}

/// Tries to exchange whatever a task made in a directory for a link, and prepares the names that it has seen for the next task. Where a task
/// has removed its directory meanwhile, a link that was prepared is no directory that was taken (hence the slashes).
const ATTACK: &str = "
while sleep 0.02; do
  for made in \"$1\"/fstone-*; do
    [ -e \"$made\" ] && ! [ -L \"$made\" ] || continue
    mv \"$made/\" \"$made.aside\" && ln -s \"$2\" \"$made\" && echo exchanged >>\"$3\"
    rm -r \"$made/\" && ln -s \"$2\" \"$made\" && echo removed >>\"$3\"
    for inside in \"$made\"/mnt \"$made\"/guest; do ln -s \"$2\" \"$inside\" && echo inside >>\"$3\"; done
    echo \"tried $made\" >>\"$3\"
  done
  sed -n 's/^tried //p' \"$3\" | sort -u | while read -r seen; do
    [ -e \"$seen\" ] || ln -s \"$2\" \"$seen\" && [ -L \"$seen\" ] && echo \"prepared $seen\" >>\"$3\"
  done
done 2>/dev/null";

#[test]
fn another_user_of_a_node_takes_nothing_of_a_run() {
    let bench = Bench::new();
    bench.tiny_study(TWO);
    let Some(cluster) = Cluster::start(&bench) else { return };
    let place = |mode| {
        let place = tempfile::Builder::new().prefix("fstone-test-").tempdir().expect("ours");
        std::fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("ours");
        place
    };
    // What the tasks work in is shared, and so is what they measure.
    let (temporary, measured, notes) = (place(0o1777), place(0o1777), place(0o777));
    let private = bench.path("private");
    std::fs::create_dir(&private).expect("ours");
    std::fs::write(private.join("precious"), "data").expect("ours");
    let notes = notes.path().join("notes");
    let did = || std::fs::read_to_string(&notes).unwrap_or_default();
    // The attack has its moments: no trial ends before it was tried, and no second task begins before its name is prepared.
    let study = std::fs::read_to_string(bench.path("tiny.toml")).expect("ours");
    let tried =
        |shared: &tempfile::TempDir| format!("grep -qs '^tried {}' {}", shared.path().display(), notes.display());
    let wait = format!("until {} && {}; do sleep 0.05; done", tried(&temporary), tried(&measured));
    let step = format!("[[step]]\ncommand = {{ shell = true, run = \"{wait}\" }}\n[[step]]\nfsck");
    bench.write("tiny.toml", &study.replace("[[step]]\nfsck", &step));
    let attackers = [&temporary, &measured].map(|shared| {
        let mut command = cluster.command("setpriv");
        command.args(["--reuid=65533", "--regid=65533", "--clear-groups", "sh", "-c", ATTACK, "sh"]);
        command.args([shared.path(), &private, &notes]).stdin(Stdio::null()).stdout(Stdio::null());
        command.current_dir("/").spawn().expect("started")
    });
    let device = format!("directory:{}", measured.path().display());
    let run = ["run", "./tiny.toml", "--repeats", "2", "--duration", "1s", "--device", &device, "--slurm"];
    let held = [&run[..], &["--", "--no-requeue", "--hold", "--nodelist=n1"]].concat();
    let mut child = cluster.fstone(&bench, &held).env("TMPDIR", temporary.path()).spawn().expect("started");
    let said = Said::by(&mut child);
    let asked = |program: &str, arguments: &[&str]| {
        let output = cluster.command(program).args(arguments).output().expect("it starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let waiting = || asked("squeue", &["--noheader", "--states=PENDING", "--format=%F"]);
    let since = Instant::now();
    let mut is_prepared = false;
    while child.try_wait().expect("ours").is_none() && since.elapsed() < LIMIT {
        is_prepared |= did().contains(&format!("prepared {}", temporary.path().display()));
        for job in waiting().split_whitespace() {
            asked("scontrol", &["release", &if is_prepared { job.to_owned() } else { format!("{job}_1") }]);
        }
        thread::sleep(std::time::Duration::from_millis(100));
    }
    let (_, out, said) = said.end(child);
    for mut attacker in attackers {
        attacker.kill().expect("ours");
        attacker.wait().expect("ours");
    }
    let did = did();
    assert!(is_prepared, "the attack was one: {did}\n{said}");
    let has = |word: &str| did.lines().any(|line| line == word);
    assert!(!has("exchanged") && !has("removed") && !has("inside"), "{did}");
    // The names that it learned are of no use to it, and the next task says why it does not work there.
    assert!(said.contains("another user could have put there"), "{said}\n{out}");
    let left: Vec<_> = std::fs::read_dir(&private).expect("ours").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["precious"]);
    assert_eq!(std::fs::read_to_string(private.join("precious")).expect("it stays"), "data");
    bench.assert_clean();
}

#[test]
fn two_nodes_work_in_one_directory() {
    if !is_root() || !tool("unshare") {
        eprintln!("skipped: process numbers of its own for each node need root and unshare(1)");
        return;
    }
    let bench = Bench::new();
    bench.tiny_study(TWO);
    let shared = bench.path("shared");
    std::fs::create_dir(&shared).expect("ours");
    let device = format!("directory:{}", shared.display());
    // Each is process 1 of its node, and makes its first trial at the same time as the other.
    let node = |name: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
            .arg(assert_cmd::cargo::cargo_bin!("fstone"))
            .args(["run", "./tiny.toml", "--device", &device, "--repeats", "1"])
            .current_dir(bench.path(""));
        for (variable, place) in
            [("FSTONE_STORE", "store.db"), ("FSTONE_WORK_DIRECTORY", "work"), ("FSTONE_MACHINE_LOCK", "lock")]
        {
            command.env(variable, bench.path(&format!("{name}-{place}")));
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("unshare starts")
    };
    for node in ["n1", "n2"].map(node) {
        let output = node.wait_with_output().expect("a child");
        let (said, out) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        assert!(output.status.success(), "{said}");
        assert!(!out.contains("failed") && !out.contains("File exists"), "{out}\n{said}");
    }
    assert_eq!(std::fs::read_dir(&shared).expect("ours").count(), 0, "nothing is left");
}

#[test]
fn what_cannot_be_dealt_out_is_refused_before_anything_is_made() {
    let bench = Bench::new();
    bench.tiny_study(TWO);
    bench.write("empty", "");
    let nowhere = bench.path("data").display().to_string();
    let (status, _, said) = bench.run_with(&["run", "./tiny.toml", "--slurm"], &[("PATH", &nowhere)]);
    assert!(status == 3 && said.contains("--slurm needs sbatch, squeue and scancel"), "{status}: {said}");
    // Programs that have to be there and are never called.
    for program in ["sbatch", "squeue", "scancel"] {
        std::os::unix::fs::symlink("/bin/false", bench.path("data").join(program)).expect("ours");
    }
    let path = format!("{nowhere}:{}", std::env::var("PATH").expect("set"));
    for (more, words) in [
        (&["--device", "/dev/null", "--allow-destroy", "/dev/null"][..], "nodes have others under the same name"),
        (&["--budget", "1h"], "cannot be used with"),
        (&["--exact"], "cannot be used with"),
        (&["--blocks", "1"], "cannot be used with"),
        (&["--slurm-directory", "/nonexistent"], "there is no directory /nonexistent"),
        (&["--", "--array=1-9"], "fstone sets --array itself; leave out --array=1-9"),
        (&["--", "-a1"], "leave out -a1"),
        (&["--", "-J", "mine"], "fstone sets --job-name itself"),
    ] {
        let (status, _, said) =
            bench.run_with(&[&["run", "./tiny.toml", "--slurm"], more].concat(), &[("PATH", &path)]);
        assert!(status == 2 && said.contains(words), "{more:?}: {status}: {said}");
        assert!(!bench.store().exists() || !bench.succeed(&["list", "runs"]).contains("tiny"), "{more:?}");
        assert!(!bench.path("data/slurm").exists(), "{more:?}");
    }
    let (status, _, said) = bench.run(&["run", "./tiny.toml", "--", "--partition=fast"]);
    assert!(status == 2 && said.contains("is for sbatch"), "{status}: {said}");

    // A node with another build makes no block.
    bench.succeed(&["run", "./tiny.toml", "--device", "directory", "--blocks", "1"]);
    bench.succeed(&["export", "1", "begun.fstone"]);
    let (status, _, said) = bench.run(&["blocks", "begun.fstone", "2", "--output", "x", "--program", "0"]);
    assert!(status == 3 && said.contains("another build of fstone"), "{status}: {said}");
    assert!(!bench.path("x").exists());
}
