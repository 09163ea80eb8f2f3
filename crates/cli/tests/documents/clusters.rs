//! docs/clusters.md as its reader types it, line by line. What a launcher starts is typed without it, as one rank, since the launcher needs
//! another binary: scripts/try-mpi has it as several.

use super::{document, examples};
use crate::support::Bench;
use std::fs;

/// What becomes of a line.
enum Way {
    /// Typed, with these words added for the sake of time; the status and what is said.
    Typed(&'static [&'static str], i32, &'static str),
    /// Tried by another test, since it needs more than a directory.
    Elsewhere(&'static str),
}

const QUICKLY: &[&str] = &["--quick", "--device", "directory", "--duration", "200ms", "--set", "files=50"];

/// Every line of the document that has fstone do something, in its order.
const LINES: [(&str, Way); 15] = [
    ("mpirun -n 64 fstone load w.toml --directory /mnt/shared", Way::Typed(&[], 0, "operations")),
    ("srun --mpi=pmix -n 64 fstone load w.toml --directory /mnt/shared", Way::Typed(&[], 0, "operations")),
    (
        "mpirun -n 64 fstone load w.toml --directory /mnt/shared --results here --seed 1",
        Way::Elsewhere("scripts/try-mpi: only a binary with MPI has --results"),
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
        Way::Elsewhere("tests/cluster, with two nodes that it starts"),
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

/// The lines in shell fences that name fstone as a program, without what is said about them.
fn lines(text: &str) -> Vec<String> {
    let fences = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let typed = fences.flat_map(str::lines).map(|line| line.split("  #").next().unwrap_or_default().trim());
    let is_program = |word: &str| word == "fstone" || word.ends_with("/fstone");
    typed.filter(|line| line.split(' ').any(is_program)).map(str::to_owned).collect()
}

#[test]
fn every_line_of_the_page_on_clusters_does_what_it_says() {
    let text = document("docs/clusters.md");
    let known: Vec<&str> = LINES.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines(&text), known);
    let bench = Bench::new();
    for directory in ["shared", "scratch"] {
        fs::create_dir(bench.path(directory)).expect("ours");
    }
    let study = examples(&text).into_iter().find(|example| example.contains("How many clients?"));
    bench.write("clients.toml", study.expect("the page has a study of ranks"));
    bench.write("w.toml", crate::ranks::LOAD);
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
        let words = line.split(' ').skip_while(|word| *word != "fstone" && !word.ends_with("/fstone")).skip(1);
        let words: Vec<&str> = words.chain(added.iter().copied()).collect();
        let (code, out, err) = bench.run(&words);
        assert_eq!(code, *status, "{words:?}\n{out}{err}");
        assert!(out.contains(said) || err.contains(said), "{words:?}: {said:?} in\n{out}{err}");
    }
    assert!(bench.succeed(&["report", "1"]).contains("Mean of 6 trials"), "all blocks are in it");
    bench.assert_clean();
}
