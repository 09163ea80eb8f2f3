//! Programs that answer as Slurm's do: what becomes of a run when the directory between the nodes is not as it should be.

use crate::support::{Bench, trials};
use std::{fs, os::unix::fs::PermissionsExt as _};

/// `sbatch` numbers its jobs and does `task` in the run's directory; `squeue` does `look` there and knows no task.
fn pretend(bench: &Bench, task: &str, look: &str) -> String {
    let programs = bench.path("programs");
    fs::create_dir(&programs).expect("ours");
    let asked = programs.join("asked").display().to_string();
    let home = "home=$(cat \"$0.home\" 2>/dev/null || true)";
    let sbatch = format!(
        "for last; do :; done\ndirname \"$last\" >\"$(dirname \"$0\")/squeue.home\"\ncd \"$(dirname \"$last\")\"\n\
         echo sbatch >>{asked}\n{task}\ngrep -c sbatch {asked}\n"
    );
    let squeue = format!("{home}\ncd \"$home\"\necho squeue >>{asked}\n{look}\necho '{{\"jobs\": []}}'\n");
    for (name, text) in [("sbatch", sbatch), ("squeue", squeue), ("scancel", format!("echo scancel >>{asked}\n"))] {
        let path = programs.join(name);
        fs::write(&path, format!("#!/bin/sh\nset -e\n{text}")).expect("ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
    }
    format!("{}:{}", programs.display(), std::env::var("PATH").expect("set"))
}

fn asked(bench: &Bench, what: &str) -> usize {
    fs::read_to_string(bench.path("programs/asked")).unwrap_or_default().lines().filter(|line| *line == what).count()
}

const RUN: [&str; 7] = ["run", "./tiny.toml", "--device", "directory", "--repeats", "1", "--slurm"];

const TASK: &str = "SLURM_ARRAY_TASK_ID=1 SLURMD_NODENAME=n1 TMPDIR=$(dirname \"$0\") sh task.sh >&2";

fn study(bench: &Bench) {
    bench.tiny_study("\"ext4\" = { type = \"ext4\" }");
}

#[test]
fn a_block_that_comes_home_damaged_is_not_made_again_without_end() {
    let bench = Bench::new();
    study(&bench);
    let path = pretend(&bench, "echo damaged >block-1.fstone", ":");
    let (status, _, said) = bench.run_with(&RUN[..], &[("PATH", &path)]);
    assert!(status == 5 && said.contains("block 1 came back damaged after 4 attempts"), "{status}: {said}");
    assert_eq!((asked(&bench, "sbatch"), said.matches("running it again").count()), (4, 3), "{said}");
}

#[test]
fn the_directory_of_the_blocks_is_found_from_anywhere() {
    let bench = Bench::new();
    study(&bench);
    fs::create_dir(bench.path("shared")).expect("ours");
    let sbatch = bench.path("programs/sbatch");
    let path = pretend(&bench, "echo damaged >block-1.fstone", ":");
    let (status, _, said) = bench.run_with(&[&RUN[..], &["--slurm-directory", "shared"]].concat(), &[("PATH", &path)]);
    assert!(status == 5 && said.contains("came back damaged"), "{status}: {said}");
    let text = fs::read_to_string(&sbatch).expect("ours");
    fs::write(&sbatch, text.replace("echo damaged >block-1.fstone\n", &format!("{TASK}\n"))).expect("ours");
    let mut elsewhere = bench.command(&["run", "../tiny.toml", "--resume", "--slurm"]);
    let output = elsewhere.current_dir(bench.path("programs")).env("PATH", &path).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(trials(&bench.json()).len(), 1);
    assert_eq!(fs::read_dir(bench.path("shared")).expect("the user's").count(), 0, "nothing of fstone's is left");
}

#[test]
fn a_block_that_cannot_be_read_just_now_is_waited_for() {
    let bench = Bench::new();
    study(&bench);
    // What is under its name cannot be read until somebody has looked four times.
    let look = format!(
        "[ -d block-1.fstone ] && [ $(grep -c squeue \"$(dirname \"$0\")/asked\") -ge 4 ] && rmdir block-1.fstone && {TASK}\n:"
    );
    let path = pretend(&bench, "mkdir block-1.fstone", &look);
    let (status, out, said) = bench.run_with(&RUN[..], &[("PATH", &path)]);
    assert!(status == 0 && said.contains("trying again"), "{status}: {said}\n{out}");
    assert!(!said.contains("running it again"), "{said}");
    assert_eq!(asked(&bench, "sbatch"), 1, "{said}");
    assert_eq!(trials(&bench.json()).len(), 1, "{said}");
    assert!(!bench.path("data/slurm").exists(), "nothing is left beside the store");
}

/// Answers that there is one task of the job that sbatch was told to call so, in this state.
fn named_task(state: &str) -> String {
    format!(
        "name=$(cat \"$(dirname \"$0\")/name\")\n\
         echo \"{{\\\"jobs\\\": [{{\\\"array_job_id\\\": 1, \\\"array_task_id\\\": 1, \\\"job_state\\\": \\\"{state}\\\", \\\"name\\\": \\\"$name\\\"}}]}}\"\n\
         exit"
    )
}

const KEEP_NAME: &str =
    "for word; do case $word in --job-name=*) echo \"${word#*=}\" >\"$(dirname \"$0\")/name\";; esac; done";

#[test]
fn a_line_of_the_site_before_the_jobs_number_is_passed_over() {
    let bench = Bench::new();
    study(&bench);
    let path = pretend(&bench, &format!("{TASK}\necho 'Your account has 12 hours left'"), ":");
    let (status, out, said) = bench.run_with(&RUN[..], &[("PATH", &path)]);
    assert!(status == 0 && said.contains("job 1: block 1"), "{status}: {said}\n{out}");
    assert_eq!(trials(&bench.json()).len(), 1, "{said}");
}

#[test]
fn a_job_without_a_number_is_found_by_its_name() {
    let bench = Bench::new();
    study(&bench);
    let path = pretend(&bench, &format!("{KEEP_NAME}\n{TASK}\necho submitted\nexit"), &named_task("COMPLETED"));
    let (status, out, said) = bench.run_with(&RUN[..], &[("PATH", &path)]);
    assert!(status == 0 && said.contains("job 1: block 1"), "{status}: {said}\n{out}");
    assert_eq!((asked(&bench, "sbatch"), trials(&bench.json()).len()), (1, 1), "{said}");
}

#[test]
fn a_job_that_nobody_finds_leaves_its_run() {
    let bench = Bench::new();
    study(&bench);
    let path = pretend(&bench, "echo submitted\nexit", ":");
    let (status, out, said) = bench.run_with(&RUN[..], &[("PATH", &path)]);
    assert!(status == 5 && said.contains("printed no job number"), "{status}: {said}\n{out}");
    assert!(bench.succeed(&["list", "runs"]).contains("unfinished"), "{said}");
    fs::write(bench.path("programs/squeue"), "#!/bin/sh\necho down >&2\nexit 1\n").expect("ours");
    let (status, _, said) = bench.run_with(&["delete", "1", "--yes"], &[("PATH", &path)]);
    assert!(status == 3 && said.contains("Slurm does not answer"), "{status}: {said}");
    fs::write(bench.path("programs/squeue"), "#!/bin/sh\necho '{\"jobs\": []}'\n").expect("ours");
    let (status, _, said) = bench.run_with(&["delete", "1", "--yes"], &[("PATH", &path)]);
    assert_eq!(status, 0, "Slurm knows of nothing: {said}");
}

#[test]
fn what_was_submitted_as_fstone_was_killed_is_found() {
    let bench = Bench::new();
    study(&bench);
    let path = pretend(&bench, &format!("{KEEP_NAME}\nkill -9 $PPID"), &named_task("RUNNING"));
    let (status, _, said) = bench.run_with(&RUN[..], &[("PATH", &path)]);
    assert_eq!(status, -1, "killed: {said}");
    for arguments in [&["delete", "1", "--yes"][..], &["run", "./tiny.toml", "--resume"]] {
        let (status, _, said) = bench.run_with(arguments, &[("PATH", &path)]);
        assert!(status == 3 && said.contains("tasks may still be running"), "{status}: {said}");
    }
    // The task does its work as somebody looks.
    let look = format!("[ -e block-1.fstone ] || {TASK}\n{}", named_task("COMPLETED"));
    let squeue = bench.path("programs/squeue");
    let text = fs::read_to_string(&squeue)
        .expect("ours")
        .replace("\nname=", &format!("\n{}\nname=", &look[..look.find("\nname=").expect("there")]));
    fs::write(&squeue, text).expect("ours");
    let (status, _, said) = bench.run_with(&["run", "./tiny.toml", "--resume", "--slurm"], &[("PATH", &path)]);
    assert_eq!((status, asked(&bench, "sbatch")), (0, 1), "{said}");
    assert_eq!(trials(&bench.json()).len(), 1, "{said}");
    assert!(!bench.path("data/slurm").exists(), "nothing is left beside the store");
}

/// Begins a run whose process is killed as sbatch has delivered the block, or has not.
fn killed(bench: &Bench, task: &str, directory: &[&str]) -> String {
    study(bench);
    let path = pretend(bench, &format!("{KEEP_NAME}\n{task}\nkill -9 $PPID"), ":");
    let (status, _, said) = bench.run_with(&[&RUN[..], directory].concat(), &[("PATH", &path)]);
    assert_eq!(status, -1, "killed: {said}");
    path
}

fn answer(bench: &Bench, look: &str) {
    fs::write(bench.path("programs/squeue"), format!("#!/bin/sh\n{look}\n")).expect("ours");
}

#[test]
fn a_block_that_came_and_was_forgotten_is_not_made_again() {
    let bench = Bench::new();
    let path = killed(&bench, TASK, &[]);
    let (status, _, said) = bench.run_with(&["run", "./tiny.toml", "--resume"], &[("PATH", &path)]);
    assert!(status == 3 && said.contains("delivered block 1 of run 1"), "{status}: {said}");
    let next = said.split('`').nth(1).and_then(|next| next.strip_prefix("fstone ")).expect("a command");
    let words: Vec<&str> = next.split(' ').collect();
    bench.succeed(&words);
    assert_eq!(trials(&bench.json()).len(), 1);
    assert!(bench.succeed(&["list", "runs"]).contains("finished"));
    // What is not fstone's stays where it is.
    let home = fs::read_dir(bench.path("data/slurm")).expect("there").flatten().next().expect("one run's").path();
    fs::write(home.join("notes"), "mine").expect("ours");
    let (status, out, said) = bench.run_with(&["delete", "1", "--yes"], &[("PATH", &path)]);
    assert!(status == 0 && out.contains("stays: it has files that are not fstone's"), "{status}: {out}{said}");
    let left: Vec<_> = fs::read_dir(&home).expect("there").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["notes"]);
}

#[test]
fn a_run_that_is_completed_here_leaves_nothing_between_the_nodes() {
    let bench = Bench::new();
    let path = killed(&bench, ":", &[]);
    let (status, _, said) = bench.run_with(&["run", "./tiny.toml", "--resume"], &[("PATH", &path)]);
    assert_eq!((status, trials(&bench.json()).len()), (0, 1), "{said}");
    assert!(!bench.path("data/slurm").exists(), "nothing is left beside the store");
}

#[test]
fn a_run_that_is_deleted_takes_its_directory_along() {
    let bench = Bench::new();
    let path = killed(&bench, TASK, &[]);
    answer(&bench, &named_task("RUNNING"));
    let (status, _, said) = bench.run_with(&["delete", "1", "--yes"], &[("PATH", &path)]);
    assert!(status == 3 && said.contains("may still be running"), "{status}: {said}");
    answer(&bench, "echo '{\"jobs\": []}'");
    let (status, out, said) = bench.run_with(&["delete", "1", "--yes"], &[("PATH", &path)]);
    assert!(status == 0 && out.contains("deleted its directory"), "{status}: {out}{said}");
    assert!(!bench.path("data/slurm").exists(), "nothing is left beside the store");
}

#[test]
fn a_directory_that_cannot_be_read_is_not_taken_for_an_empty_one() {
    let bench = Bench::new();
    let path = killed(&bench, TASK, &[]);
    answer(&bench, "echo '{\"jobs\": []}'");
    let home = fs::read_dir(bench.path("data/slurm")).expect("there").flatten().next().expect("one run's").path();
    // Root may read whatever its mode is, but no directory as a file.
    fs::remove_file(home.join("jobs.json")).expect("ours");
    fs::create_dir(home.join("jobs.json")).expect("ours");
    let resume = &["run", "./tiny.toml", "--resume"][..];
    for arguments in [resume, &["delete", "1", "--yes"], &[resume, &["--slurm"]].concat()] {
        let (status, _, said) = bench.run_with(arguments, &[("PATH", &path)]);
        assert!(status == 3 && said.contains("cannot read"), "{arguments:?}: {status}: {said}");
    }
}

/// As when it is on a server that is not mounted just now.
#[test]
fn a_directory_out_of_reach_does_not_mean_that_there_are_no_blocks() {
    let bench = Bench::new();
    for directory in ["shared", "other"] {
        fs::create_dir(bench.path(directory)).expect("ours");
    }
    let path = killed(&bench, TASK, &["--slurm-directory", "shared"]);
    fs::rename(bench.path("shared"), bench.path("away")).expect("ours");
    let other = bench.path("other").display().to_string();
    let resume = &["run", "./tiny.toml", "--resume"][..];
    let on_slurm = &[resume, &["--slurm"]].concat()[..];
    let to_other = &[on_slurm, &["--slurm-directory", &other]].concat()[..];
    let delete = &["delete", "1", "--yes"][..];
    let refused = |arguments: &[&str], words: &str| {
        let (status, _, said) = bench.run_with(arguments, &[("PATH", &path)]);
        assert!(status == 3 && said.contains(words), "{arguments:?}: {status}: {said}");
    };
    for is_mount_point in [false, true] {
        if is_mount_point {
            fs::create_dir(bench.path("shared")).expect("ours");
        }
        answer(&bench, &named_task("RUNNING"));
        for arguments in [resume, to_other, delete] {
            refused(arguments, "job 1 of run 1 is still running, and leaves its blocks in");
        }
        refused(on_slurm, "which is not there; make it reachable");
        if is_mount_point {
            refused(&[on_slurm, &["--slurm-directory", "shared"]].concat(), "which is not there; make it reachable");
        }
        answer(&bench, "echo '{\"jobs\": []}'");
        refused(resume, "Make it reachable (is it mounted?), so that no block is made twice");
    }
    fs::rename(bench.path("away"), bench.path("shared")).expect("ours");
    let (status, _, said) = bench.run_with(to_other, &[("PATH", &path)]);
    assert!(status == 2 && said.contains("without another --slurm-directory"), "{status}: {said}");
    let (status, _, said) = bench.run_with(on_slurm, &[("PATH", &path)]);
    assert!(status == 0 && said.contains("block 1: 1 trial"), "{status}: {said}");
    assert_eq!((asked(&bench, "sbatch"), trials(&bench.json()).len()), (1, 1), "{said}");
}

/// Whoever can exchange the directory decides what the nodes run.
#[test]
fn a_run_is_not_dealt_out_where_others_may_write() {
    let bench = Bench::new();
    study(&bench);
    let path = pretend(&bench, TASK, ":");
    let shared = bench.path("shared");
    fs::create_dir(&shared).expect("ours");
    let run = [&RUN[..], &["--slurm-directory", "shared"]].concat();
    let mode = |mode| fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).expect("ours");
    mode(0o777);
    let (status, _, said) = bench.run_with(&run, &[("PATH", &path)]);
    assert!(
        status == 3 && said.contains("others may write to") && said.contains("--slurm-directory"),
        "{status}: {said}"
    );
    assert_eq!(asked(&bench, "sbatch"), 0);
    // There others can make names, but not exchange them.
    mode(0o1777);
    let (status, _, said) = bench.run_with(&run, &[("PATH", &path)]);
    assert_eq!(status, 0, "{said}");
}
