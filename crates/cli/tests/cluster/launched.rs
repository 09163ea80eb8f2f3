//! Ranks that Slurm starts itself, by srun. That takes an fstone with MPI, which scripts/try-mpi builds and names.

use super::nodes::Cluster;
use crate::{documents::clusters::line_of, support::Bench};
use std::{env, fs, os::unix::fs::symlink, process::Output};

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// `FSTONE_TEST_MPI` is the binary, `FSTONE_TEST_SRUN` how srun starts its ranks: "--mpi=pmi2 -N2".
#[test]
#[ignore = "scripts/try-mpi runs it, with a binary for each MPI"]
fn srun_starts_the_ranks_of_a_load_and_of_a_study() {
    let binary = env::var("FSTONE_TEST_MPI").expect("an fstone with MPI");
    let options = env::var("FSTONE_TEST_SRUN").expect("options of srun");
    let bench = Bench::new();
    let Some(cluster) = Cluster::start(&bench) else { return };
    fs::create_dir(bench.path("shared")).expect("ours");
    bench.write("w.toml", crate::ranks::LOAD);
    let mut line = cluster.command("srun");
    line.args(options.split(' ')).args([
        "-n",
        "4",
        &binary,
        "load",
        "w.toml",
        "--directory",
        "shared",
        "--results",
        "here",
    ]);
    let output = line.output().expect("srun starts");
    let words = said(&output);
    assert!(output.status.success() && words.contains("4 ranks on 1 node, all completed"), "{words}");
    let table = fs::read_to_string(bench.path("here/ranks.csv")).expect("rank 0 wrote it");
    assert_eq!(table.matches(",completed,").count() % 4, 0, "{table}");

    if options.contains("pmix") {
        as_the_page_has_it(&cluster, &bench, &binary);
    }

    let study = format!(
        "title = \"Ranks of srun\"\nrepeats = 1\ndevice = {{ directory = \"{}\" }}\n\
         [factor.filesystem]\n\"shared\" = {{ type = \"ext4\" }}\n[factor]\nranks = [1, 4]\n\
         [[step]]\nload = {{ workload = \"w.toml\", launch = \"srun {options}\" }}\nshow = [\"operations per second\", \"start skew\"]\n",
        bench.path("shared").display()
    );
    bench.write("srun.toml", &study);
    let mut line = cluster.command(&binary);
    line.args(["run", "./srun.toml"])
        .env("FSTONE_STORE", bench.store())
        .env("FSTONE_WORK_DIRECTORY", bench.work())
        .env("FSTONE_MACHINE_LOCK", bench.path("machine.lock"));
    let output = line.output().expect("fstone starts");
    let words = said(&output);
    assert!(output.status.success() && words.contains("4 ranks"), "{words}");
    assert!(!words.contains("[1]"), "no row has a footnote: {words}");
    assert!(fs::read_dir(bench.path("shared")).expect("there").next().is_none_or(|left| {
        // The load's own files, which it was to keep.
        left.is_ok_and(|left| !left.file_name().to_string_lossy().starts_with("fstone-load-"))
    }));
}

/// The line of docs/clusters.md, word for word, but for the place of /mnt/shared. srun is told by its environment that there are fewer
/// processors than ranks, and that Slurm's pmix has no two nodes on one machine.
fn as_the_page_has_it(cluster: &Cluster, bench: &Bench, binary: &str) {
    fs::create_dir(bench.path("bin")).expect("ours");
    symlink(binary, bench.path("bin/fstone")).expect("ours");
    let path = format!("{}:{}", bench.path("bin").display(), env::var("PATH").expect("set"));
    let line = line_of("srun ").replace("/mnt/shared", &bench.path("shared").display().to_string());
    let mut shell = cluster.command("sh");
    shell.args(["-c", &line]).env("PATH", path).env("SLURM_OVERCOMMIT", "1").env("SLURM_NNODES", "1");
    let output = shell.output().expect("sh starts");
    let words = said(&output);
    assert!(output.status.success() && words.contains("64 ranks on 1 node, all completed"), "{line}: {words}");
}
