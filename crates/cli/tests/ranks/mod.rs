//! A load of many ranks: what the default binary says to a launcher of MPI.

use crate::support::Bench;

pub(crate) const LOAD: &str = "name = \"ranks\"\nfileset = [{ name = \"files\", files = 4, size = \"4 KiB\" }]\n\
                    phase = [{ name = \"read\", stop = { operations = 10 }, group = [{ name = \"readers\", \
                    mix = [{ name = \"read\", weight = 1, fileset = \"files\", read = { block = \"4 KiB\" } }] }] }]\n";

/// As one rank, in a directory, for moments. scripts/try-mpi has it as four.
#[test]
fn the_phases_of_io500_have_results_and_a_score() {
    let bench = Bench::new();
    let few = ["ior-easy-write.operations=9", "ior-hard-write.operations=50"];
    let sets = few.iter().flat_map(|set| ["--set", *set]);
    let words = ["run", "io500", "--quick", "--device", "directory", "--duration", "200ms"];
    bench.succeed(&words.into_iter().chain(sets).collect::<Vec<_>>());
    let csv = bench.succeed(&["report", "--format", "csv"]);
    for metric in [
        "IO500 score",
        "IO500 bandwidth",
        "IO500 metadata rate",
        "ior-easy-write throughput",
        "ior-hard-read throughput",
        "find rate",
        "mdtest-hard-delete rate",
        "close latency max",
    ] {
        assert!(csv.contains(&format!(",load,{metric},")), "{metric} in {csv}");
    }
    let table = bench.succeed(&["report"]);
    assert!(table.contains("no official submission"), "{table}");
}

#[cfg(not(feature = "mpi"))]
#[test]
fn without_mpi_a_launcher_is_refused_before_anything_is_touched() {
    use std::{fs, process::Command};
    let bench = Bench::new();
    bench.write("load.toml", LOAD);
    fs::create_dir(bench.path("d")).expect("ours");
    let run = |variables: &[(&str, &str)]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("fstone"));
        command.current_dir(bench.path("")).args(["load", "load.toml", "--directory", "d"]);
        command.envs(variables.iter().copied());
        let output = command.output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (rank, size) in [
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ] {
        let (code, said) = run(&[(rank, "0"), (size, "3")]);
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("built without MPI") && said.contains("--features mpi"), "{said}");
        assert!(said.contains("started 3 processes"), "{said}");
        let (code, said) = run(&[(rank, "2"), (size, "3")]);
        assert!(code == Some(3) && said.contains("process 2 of 3"), "{said}");
        assert_eq!(fs::read_dir(bench.path("d")).expect("there").count(), 0, "{rank}: something was made");
    }
    let (code, said) = run(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")]);
    assert_eq!(code, Some(0), "one rank is a load as any other: {said}");
}
