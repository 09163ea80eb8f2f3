//! docs/clusters.md as its reader types it, line by line. The gate's binary has no MPI, so what a launcher starts is typed here without it, as
//! one rank; scripts/try-mpi types the same lines word for word, with 64 ranks (that of srun in tests/cluster, on the nodes that it starts).

use super::{document, examples};
use crate::support::Bench;
use std::{env, fs, os::unix::fs::symlink, path::Path, process::Command};

enum Way {
    /// Typed, with these words added for the sake of time; the status and what is said.
    Typed(&'static [&'static str], i32, &'static str),
    /// Typed by another test, since it needs more than a directory.
    Elsewhere(&'static str),
}

const QUICKLY: &[&str] = &["--quick", "--device", "directory", "--duration", "200ms", "--set", "files=50"];

/// Every line of the document that has fstone do something, in its order.
const LINES: [(&str, Way); 15] = [
    ("mpirun -n 64 fstone load w.toml --directory /mnt/shared", Way::Typed(&[], 0, "operations")),
    ("srun --mpi=pmix -n 64 fstone load w.toml --directory /mnt/shared", Way::Typed(&[], 0, "operations")),
    (
        "mpirun -n 64 fstone load w.toml --directory /mnt/shared --results here --seed 1",
        Way::Elsewhere("below, by scripts/try-mpi: only a binary with MPI has --results"),
    ),
    ("mpirun -n 64 fstone mdtest -n 1000 -u -N 1 -d /mnt/shared/test", Way::Typed(&[], 0, "File creation")),
    ("sudo target/mpi/release/fstone run ./clients.toml", Way::Typed(&["--dry-run"], 0, "mpirun")),
    ("fstone run small-file --repeats 6 --blocks 1-2", Way::Typed(QUICKLY, 0, "lacks block(s) 3-6")),
    ("fstone export 1 begun.fstone", Way::Typed(&[], 0, "2 trials")),
    ("fstone blocks begun.fstone 3-4 --output second.fstone", Way::Typed(&[], 0, "has blocks 3-4")),
    ("fstone blocks begun.fstone 5-6 --output third.fstone", Way::Typed(&[], 0, "has blocks 5-6")),
    ("fstone import --into 1 second.fstone third.fstone", Way::Typed(&[], 0, "")),
    ("fstone report 1", Way::Typed(&[], 0, "transactions per second")),
    (
        "fstone run small-file --repeats 8 --slurm -- --partition=fast --constraint=nvme",
        Way::Elsewhere("tests/cluster, on two nodes that it starts"),
    ),
    ("fstone load small-files.workload --directory /mnt/lustre/scratch", Way::Typed(&[], 0, "operations")),
    (
        "fstone run small-file --quick --device directory:/mnt/lustre/scratch",
        Way::Typed(&["--repeats", "1", "--duration", "200ms", "--set", "files=50"], 0, "transactions per second"),
    ),
    (
        "sudo fstone run studies/more/glusterfs.toml --quick",
        Way::Elsewhere("tests/safety, where GlusterFS is installed"),
    ),
];

fn all_lines(text: &str) -> impl Iterator<Item = &str> {
    let fences = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    fences.flat_map(str::lines).map(|line| line.split("  #").next().unwrap_or_default().trim())
}

fn is_program(word: &str) -> bool {
    word == "fstone" || word.ends_with("/fstone")
}

fn lines(text: &str) -> Vec<String> {
    all_lines(text).filter(|line| line.split(' ').any(is_program)).map(str::to_owned).collect()
}

pub(crate) fn line_of(words: &str) -> String {
    let of_page = lines(&document("docs/clusters.md"));
    of_page.into_iter().find(|line| line.contains(words)).expect("the page has it")
}

pub(crate) fn arguments_of(words: &str) -> Vec<String> {
    let line = line_of(words);
    line.split(' ').skip_while(|word| !is_program(word)).skip(1).map(str::to_owned).collect()
}

/// What is installed before is what the tests' own machine has it from, and what is made is there to be made.
#[test]
fn packages_and_targets_of_the_page_on_clusters_are_those_of_the_tests() {
    let text = document("docs/clusters.md");
    let prerequisites = document("scripts/prerequisites");
    let known: Vec<&str> = prerequisites.split(|c: char| !c.is_alphanumeric() && c != '-').collect();
    let installs =
        all_lines(&text).filter_map(|line| line.split_once("apt-get install ").map(|(_, packages)| packages));
    let packages: Vec<&str> = installs.flat_map(str::split_whitespace).collect();
    assert!(packages.len() >= 5, "{packages:?}");
    assert!(packages.iter().all(|package| known.contains(package)), "{packages:?}");
    let makes: Vec<&str> = all_lines(&text).filter(|line| line.contains("make ") && !is_program(line)).collect();
    assert_eq!(makes, ["make mpi", "MPICC=mpicc.mpich make mpi"]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for make in makes {
        let shown = Command::new("sh").args(["-c", &format!("{make} --dry-run")]).current_dir(&root).output();
        let shown = String::from_utf8_lossy(&shown.expect("make starts").stdout).into_owned();
        assert!(shown.contains("--features mpi"), "{make}: {shown}");
    }
}

fn prepare(bench: &Bench, text: &str) {
    for directory in ["shared", "scratch"] {
        fs::create_dir(bench.path(directory)).expect("ours");
    }
    let study = examples(text).into_iter().find(|example| example.contains("How many clients?"));
    bench.write("clients.toml", study.expect("the page has a study of ranks"));
    bench.write("w.toml", crate::ranks::LOAD);
}

/// Word for word, but for the place of /mnt/shared. `FSTONE_TEST_MPI` is the binary; the launcher is told by its environment that there are
/// fewer processors than ranks.
#[test]
#[ignore = "scripts/try-mpi runs it, with a binary for each MPI"]
fn every_line_of_the_page_that_a_launcher_starts_runs_word_for_word() {
    let binary = env::var("FSTONE_TEST_MPI").expect("an fstone with MPI");
    let text = document("docs/clusters.md");
    let bench = Bench::new();
    prepare(&bench, &text);
    fs::create_dir_all(bench.path("target/mpi/release")).expect("ours");
    for place in ["fstone", "target/mpi/release/fstone"] {
        symlink(&binary, bench.path(place)).expect("ours");
    }
    let path = format!("{}:{}", bench.path("").display(), env::var("PATH").expect("set"));
    let shared = bench.path("shared").display().to_string();
    let launched =
        lines(&text).into_iter().filter(|line| line.starts_with("mpirun ") || line.contains("/mpi/release/"));
    let launched: Vec<String> = launched.collect();
    assert_eq!(launched.len(), 4, "{launched:?}");
    for line in launched {
        let typed = line.replace("/mnt/shared", &shared);
        // Two trials in place of thirty, and nobody asks for a password.
        let typed = match typed.strip_prefix("sudo ") {
            Some(line) => format!("{line} --repeats 1 --only ranks=4"),
            None => typed,
        };
        let mut shell = bench.shell(&typed);
        shell.env("PATH", &path).env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        let output = shell.output().expect("sh starts");
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
        let wanted = if line.contains("mdtest") {
            "launched with 64 total task(s) on 1 node(s)"
        } else if line.contains("clients.toml") {
            "start skew"
        } else {
            "64 ranks on 1 node, all completed"
        };
        assert!(output.status.success() && said.contains(wanted), "{line}: {said}");
    }
    let table = fs::read_to_string(bench.path("here/ranks.csv")).expect("--results here");
    assert!(table.lines().count() > 64, "{table}");
}

#[test]
fn every_line_of_the_page_on_clusters_does_what_it_says() {
    let text = document("docs/clusters.md");
    let known: Vec<&str> = LINES.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines(&text), known);
    let bench = Bench::new();
    prepare(&bench, &text);
    bench.write("small-files.workload", &document("studies/more/small-files.workload").replace("10 s", "200 ms"));
    let (shared, scratch) = (bench.path("shared"), bench.path("scratch"));
    for (line, way) in &LINES {
        let (added, status, said) = match way {
            Way::Typed(added, status, said) => (added, status, said),
            Way::Elsewhere(by) => {
                println!("not here: {line}: {by}");
                continue;
            }
        };
        let line = line.replace("/mnt/shared", &shared.display().to_string());
        let line = line.replace("/mnt/lustre/scratch", &scratch.display().to_string());
        let words = line.split(' ').skip_while(|word| !is_program(word)).skip(1);
        let words: Vec<&str> = words.chain(added.iter().copied()).collect();
        let (code, out, err) = bench.run(&words);
        assert_eq!(code, *status, "{words:?}\n{out}{err}");
        assert!(out.contains(said) || err.contains(said), "{words:?}: {said:?} in\n{out}{err}");
    }
    assert!(bench.succeed(&["report", "1"]).contains("Mean of 6 trials"), "all blocks are in it");
    bench.assert_clean();
}
