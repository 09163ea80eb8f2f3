//! A load of many ranks: what the default binary says to a launcher of MPI.

use crate::support::{Bench, interrupt, wait_until};
use std::{fs, path::Path};

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

/// With IO500's own configuration, in the directories that it names.
#[test]
fn a_configuration_of_io500_is_run() {
    let bench = Bench::new();
    bench.write(
        "config.ini",
        "[global]\ndatadir = ./out/\nresultdir = ./results\ntimestamp-resultdir = FALSE\n[debug]\nstonewall-time = 1\n\
         [ior-easy]\ntransferSize = 1m\nblockSize = 8m\n[mdtest-easy]\nn = 50\n[ior-hard]\nsegmentCount = 40\n[mdtest-hard]\nn = 30\n",
    );
    let out = bench.succeed(&["io500", "config.ini"]);
    let results: Vec<&str> =
        out.lines().filter_map(|line| line.strip_prefix("[RESULT]")?.split_whitespace().next()).collect();
    assert_eq!(
        results,
        [
            "ior-easy-write",
            "mdtest-easy-write",
            "ior-hard-write",
            "mdtest-hard-write",
            "find",
            "ior-easy-read",
            "mdtest-easy-stat",
            "ior-hard-read",
            "mdtest-hard-stat",
            "mdtest-easy-delete",
            "mdtest-hard-read",
            "mdtest-hard-delete",
        ]
    );
    assert!(out.contains("[SCORE ] Bandwidth ") && out.contains(" GiB/s : time "), "{out}");
    assert_eq!(out.matches(" [INVALID]\n").count(), 5, "what writes for less than 300 s, and the score: {out}");
    assert_eq!(fs::read_to_string(bench.path("results/result_summary.txt")).expect("written"), out);
    let data = fs::read_dir(bench.path("out")).expect("made").flatten().next().expect("named after the time").path();
    assert!(data.file_name().expect("a name").to_string_lossy().starts_with("20"));
    let length = |file: &str| fs::metadata(data.join(file)).map(|file| file.len()).ok();
    assert_eq!((length("ior-easy/ior_file_easy.0.0"), length("ior-hard/IOR_file")), (Some(8 << 20), Some(40 * 47_008)));
    bench.write("wrong.ini", "[global]\ndatadir = x\n[ior-easy]\ntransfersize = 3q\n");
    let (code, _, err) = bench.run(&["io500", "wrong.ini"]);
    assert!(code == 2 && err.contains("wrong.ini:4:1") && err.contains("such as 2m"), "{err}");
    assert!(!bench.path("x").exists());
}

/// More than the first few, in it or below it.
fn has_files(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut count = 0;
    for entry in entries {
        let path = entry.path();
        count += if path.is_dir() { fs::read_dir(path).into_iter().flatten().count() } else { 1 };
    }
    count > 50
}

#[test]
fn a_summary_of_io500_is_of_one_run_and_says_if_it_ended_early() {
    let bench = Bench::new();
    let configure = |easy: u32| {
        let text = format!(
            "[global]\ndatadir = ./out\nresultdir = ./results\ntimestamp-datadir = FALSE\ntimestamp-resultdir = FALSE\n\
             [debug]\nstonewall-time = 50\n[ior-easy]\nrun = FALSE\n[ior-hard]\nrun = FALSE\n[find]\nrun = FALSE\n\
             [mdtest-easy]\nn = {easy}\n[mdtest-hard]\nn = 900000\n"
        );
        bench.write("config.ini", &text);
    };
    let until = |directory: &str, meanwhile: &dyn Fn()| {
        let run = bench.command(&["io500", "config.ini"]).spawn().expect("it starts");
        wait_until(directory, || has_files(&bench.path("out").join(directory)));
        meanwhile();
        interrupt(&run);
        let output = run.wait_with_output().expect("it ends");
        fs::remove_dir_all(bench.path("out")).expect("ours");
        let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (output.status.code(), out, err)
    };
    let summary = bench.path("results/result_summary.txt");
    configure(900_000);
    let (code, out, err) = until("mdtest-easy", &|| {});
    assert_eq!((code, out.as_str(), summary.exists()), (Some(130), "", false), "{err}");
    configure(5);
    let (code, out, err) = until("mdtest-hard", &|| {});
    assert!(code == Some(130) && out.contains("mdtest-easy-write"), "{out}{err}");
    assert!(out.starts_with("not all went well: it was interrupted\n[RESULT] "), "{out}");
    assert_eq!(fs::read_to_string(&summary).expect("nothing was in the way"), out);
    fs::remove_file(&summary).expect("ours");
    let (code, out, err) = until("mdtest-hard", &|| fs::write(&summary, "another's").expect("made"));
    assert!(code == Some(5) && out.contains("mdtest-easy-write"), "{out}{err}");
    assert!(err.contains("result_summary.txt is of another run; these results are on standard output"), "{err}");
    assert_eq!(fs::read_to_string(&summary).expect("there"), "another's");
    fs::remove_dir_all(bench.path("results")).expect("ours");
    bench.write("results", "a file");
    let (code, _, err) = bench.run(&["io500", "config.ini"]);
    assert!(code == 3 && err.contains("cannot make ./results") && !bench.path("out").exists(), "{err}");
}

#[cfg(not(feature = "mpi"))]
#[test]
fn without_mpi_a_launcher_is_refused_before_anything_is_touched() {
    use std::process::Command;
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
