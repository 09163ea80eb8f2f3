//! `fstone mdtest`: what docs/formats/mdtest.md says, done with the binary as one task. scripts/try-mpi has the same with several.

use crate::support::{Bench, tool};
use std::{fs, path::Path, process::Command};

fn items(json: &serde_json::Value) -> Vec<(String, u64)> {
    let rows = json["operations"].as_array().expect("rows");
    let of = |row: &serde_json::Value| {
        let name = row["operation"].as_str().expect("a name").to_owned();
        (
            name,
            row["iterations"]
                .as_array()
                .expect("figures")
                .iter()
                .map(|one| one["items"].as_u64().expect("a count"))
                .sum(),
        )
    };
    rows.iter().map(of).collect()
}

fn run(bench: &Bench, words: &str) -> serde_json::Value {
    let words: Vec<&str> = ["mdtest", "--json"].into_iter().chain(words.split_whitespace()).collect();
    serde_json::from_str(&bench.succeed(&words)).expect("JSON")
}

fn files_below(path: &Path) -> usize {
    let entries = fs::read_dir(path).expect("readable").map(|entry| entry.expect("readable").path());
    entries.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}

#[test]
fn a_directory_that_was_made_does_not_outlive_a_refusal() {
    let bench = Bench::new();
    let (code, _, error) = bench.run(&["mdtest", "-n", "10", "-d", "new", "--results", "no/such/place"]);
    assert!(code == 2 && error.contains("--results"), "{code}: {error}");
    assert!(!bench.path("new").exists(), "it is left");
}

#[test]
fn every_phase_does_what_it_says_and_nothing_is_left() {
    let bench = Bench::new();
    let json = run(&bench, "-n 60 -z 1 -b 2 -u -w 100 -e 50 -i 2 -d new");
    let wanted: Vec<(String, u64)> = [
        ("Directory creation", 120),
        ("Directory stat", 120),
        ("Directory rename", 120),
        ("Directory removal", 120),
        ("File creation", 120),
        ("File stat", 120),
        ("File read", 120),
        ("File removal", 120),
        ("Tree creation", 6),
        ("Tree removal", 6),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .to_vec();
    assert_eq!(items(&json), wanted);
    assert!(!bench.path("new").exists(), "what it made it removed");
    let table = bench.succeed(&["mdtest", "-n", "10", "-F"]);
    assert!(
        table.contains("SUMMARY rate (in ops/sec): (of 1 iterations)") && table.contains("\n   File removal  "),
        "{table}"
    );
    assert!(!bench.path("out").exists());
}

#[test]
fn phases_one_by_one_find_what_the_first_left() {
    let bench = Bench::new();
    fs::create_dir(bench.path("d")).expect("writable");
    fs::write(bench.path("d/mine"), b"mine").expect("writable");
    run(&bench, "-n 30 -z 1 -b 2 -F -C -w 10 -x kept -d d");
    assert_eq!(files_below(&bench.path("d")), 31);
    assert_eq!(fs::read_to_string(bench.path("kept")).expect("written"), "30 10\n");
    let first = bench.path("d/test-dir.0-0/mdtest_tree.0/file.mdtest.0.0");
    assert_eq!(fs::metadata(&first).expect("as mdtest calls it").len(), 10);
    // Another -C would mix both.
    let (code, _, err) = bench.run(&["mdtest", "-n", "30", "-F", "-d", "d"]);
    assert!(code == 2 && err.contains("test-dir.0-0 already exists"), "{err}");
    assert_eq!(
        items(&run(&bench, "-z 1 -b 2 -F -T -E -e 10 -R -x kept -d d")),
        [("File stat".into(), 30), ("File read".into(), 30)]
    );
    // What is not there is an error of the phase that misses it, and the others are done.
    fs::remove_file(&first).expect("ours");
    let (code, out, err) = bench.run(&["mdtest", "-n", "30", "-z", "1", "-b", "2", "-F", "-T", "-d", "d"]);
    assert!(code == 4 && out.contains("1 × stat: stat of") && out.contains("ENOENT"), "{out}{err}");
    fs::write(&first, b"").expect("ours");
    assert_eq!(
        items(&run(&bench, "-n 30 -z 1 -b 2 -F -r -d d")),
        [("File removal".into(), 30), ("Tree removal".into(), 3)]
    );
    let left: Vec<_> = fs::read_dir(bench.path("d")).expect("there").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["mine"], "what was there before stays");
}

#[test]
fn a_stonewall_wears_out_in_a_tree() {
    let bench = Bench::new();
    let json = run(&bench, "-n 3000000 -z 2 -b 2 -F -W 1 -d d");
    let items = items(&json);
    assert!(items[0].1 > 0 && items[0].1 < 3_000_000, "{items:?}");
    assert!(items[..4].iter().all(|(_, count)| *count == items[0].1), "created, stat-ed, read, removed: {items:?}");
    assert_eq!(json["operations"][0]["iterations"][0]["stonewall"]["most"], items[0].1);
    assert!(!bench.path("d").exists());
}

#[test]
fn a_file_of_anything_but_a_status_is_not_replaced() {
    let bench = Bench::new();
    bench.write("mine", "a letter\n");
    let words = |file: &'static str| ["mdtest", "-n", "5", "-F", "-C", "-x", file, "-d", "d"];
    let (code, _, told) = bench.run(&words("mine"));
    assert!(code == 2 && told.contains("mine is there already") && !bench.path("d").exists(), "{code}: {told}");
    assert_eq!(fs::read_to_string(bench.path("mine")).expect("there"), "a letter\n");
    bench.write("status", "7 7\n");
    bench.succeed(&words("status"));
    assert_eq!(fs::read_to_string(bench.path("status")).expect("written"), "5 5\n");
}

/// mdtest's own order, as strace shows it.
#[test]
fn items_of_a_tree_are_made_and_removed_depth_first() {
    if !tool("strace") {
        return eprintln!("skipped: needs strace");
    }
    let bench = Bench::new();
    let order = |words: &str, call: &str| {
        let line: Vec<&str> = ["mdtest"].into_iter().chain(words.split(' ')).collect();
        let fstone = bench.command(&line);
        let mut strace = Command::new("strace");
        let calls = "trace=openat,newfstatat,unlinkat,mkdirat";
        strace.args(["-f", "-qq", "-o", "calls", "-e", calls, "-e", "signal=none"]);
        strace.arg(fstone.get_program()).args(fstone.get_args()).current_dir(bench.path(""));
        assert!(strace.output().expect("strace starts").status.success(), "{words}");
        let calls = fs::read_to_string(bench.path("calls")).expect("recorded");
        let number = |line: &str| {
            let line = line.split_once(' ')?.1.trim_start();
            let name = line.strip_prefix(call)?.split_once(".mdtest.0.")?.1;
            name.split('"').next()?.parse::<u64>().ok()
        };
        calls.lines().filter_map(number).collect::<Vec<_>>()
    };
    let depth_first = [0, 1, 2, 3, 6, 7, 8, 9, 4, 5, 10, 11, 12, 13];
    for (kind, made, removed) in [("-F", "openat(", "unlinkat("), ("-D", "mkdirat(", "unlinkat(")] {
        assert_eq!(order(&format!("-n 14 -z 2 -b 2 {kind} -C -d d"), made), depth_first, "{kind}");
        assert_eq!(
            order(&format!("-n 14 -z 2 -b 2 {kind} -T -d d"), "newfstatat("),
            (0..14).collect::<Vec<_>>(),
            "{kind}"
        );
        assert_eq!(order(&format!("-n 14 -z 2 -b 2 {kind} -r -d d"), removed), depth_first, "{kind}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_told_beside_the_json() {
    let bench = Bench::new();
    let (code, out, err) = bench.run(&["mdtest", "--json", "-n", "5", "-F", "-C", "-x", "no/such/place", "-d", "d"]);
    assert!(
        code == 5 && err.contains("there is no directory no/such; make it, or name another place with -x"),
        "{code}: {err}"
    );
    let json: serde_json::Value = serde_json::from_str(&out).expect("nothing but JSON");
    assert_eq!(items(&json)[0], ("File creation".into(), 5));
}

/// A load that was ended leaves less than there was to be; -r clears it all the same.
#[test]
fn what_an_ended_run_left_can_be_cleared() {
    let bench = Bench::new();
    run(&bench, "-n 60 -z 2 -b 2 -F -C -d d");
    fs::remove_dir_all(bench.path("d/test-dir.0-0/mdtest_tree.0/mdtest_tree.2")).expect("ours");
    let (code, out, err) = bench.run(&["mdtest", "-n", "60", "-z", "2", "-b", "2", "-F", "-r", "-d", "d"]);
    assert!(code == 4 && out.contains("ENOENT"), "{out}{err}");
    assert!(!out.contains("cannot remove the tree"), "{out}{err}");
    assert!(!bench.path("d/test-dir.0-0").exists(), "it is cleared");
}

#[test]
fn a_removal_that_fails_is_told_with_its_reason_and_a_status() {
    let bench = Bench::new();
    for place in ["d/test-dir.0-0/mdtest_tree.0/mine", "d/test-dir.0-0/mine"] {
        run(&bench, "-n 6 -F -C -i 2 -d d");
        fs::write(bench.path(place), b"mine").expect("ours");
        let (code, out, err) = bench.run(&["mdtest", "-n", "6", "-F", "-r", "-i", "2", "-d", "d"]);
        assert!(
            code == 4 && out.contains("task 0 on ") && out.contains("failed: cannot remove "),
            "{code}: {out}{err}"
        );
        assert!(err.contains("d/test-dir.0-0 is left, because it could not be removed"), "{err}");
        assert_eq!(fs::read(bench.path(place)).expect("still there"), b"mine");
        assert!(!bench.path("d/test-dir.1-0").exists(), "the other iteration's is removed");
        fs::remove_dir_all(bench.path("d")).expect("ours");
    }
}

#[test]
fn the_calls_are_mdtests() {
    if !tool("strace") {
        eprintln!("skipped: needs strace");
        return;
    }
    let bench = Bench::new();
    let fstone = bench.command(&["mdtest", "-n", "7", "-F", "-w", "9", "-e", "9", "-y", "-d", "d"]);
    let mut strace = Command::new("strace");
    strace.args([
        "-f",
        "-qq",
        "-o",
        "calls",
        "-e",
        "trace=openat,pwrite64,write,pread64,fsync,close,newfstatat,unlinkat,unlink",
    ]);
    strace.arg(fstone.get_program()).args(fstone.get_args()).current_dir(bench.path(""));
    let ended = strace.output().expect("strace starts");
    assert!(ended.status.success(), "{ended:?}");
    let calls = fs::read_to_string(bench.path("calls")).expect("written");
    let of_files: Vec<&str> = calls.lines().filter(|line| line.contains("file.mdtest.0.")).collect();
    let kind = |line: &str| {
        let call =
            line.split_whitespace().nth(1).and_then(|rest| rest.split('(').next()).unwrap_or_default().to_owned();
        if line.contains("O_CREAT") { "create".to_owned() } else { call }
    };
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for line in of_files {
        match kinds.last_mut() {
            Some((last, count)) if *last == kind(line) => *count += 1,
            _ => kinds.push((kind(line), 1)),
        }
    }
    let removal = kinds.last().expect("some").0.clone();
    assert!(removal.starts_with("unlink"), "{kinds:?}");
    let wanted = [("create", 7), ("newfstatat", 7), ("openat", 7), (removal.as_str(), 7)];
    assert_eq!(kinds, wanted.map(|(call, count)| (call.to_owned(), count)), "one call each, and none beside:\n{calls}");
    let count = |what: &str| calls.lines().filter(|line| line.contains(what)).count();
    assert_eq!((count(", 9, 0) = 9"), count("fsync(")), (14, 7), "{calls}");
}

#[test]
fn a_command_line_in_a_file_is_converted_and_loaded() {
    let bench = Bench::new();
    bench.write("easy.mdtest", "# easy\nmpirun -n 4 mdtest -n 20 -u -F -w 100 \\\n  -d /mnt/shared/x\n");
    let (code, out, err) = bench.run(&["convert", "easy.mdtest"]);
    assert!(code == 0 && err.contains("easy.mdtest:3:3") && err.contains("-d has no effect"), "{out}{err}");
    bench.write("converted.toml", &out);
    fs::create_dir(bench.path("here")).expect("writable");
    for file in ["converted.toml", "easy.mdtest"] {
        let (code, out, err) = bench.run(&["load", file, "--directory", "here"]);
        assert!(code == 0 && out.contains("unlink"), "{out}{err}");
    }
}

#[cfg(not(feature = "mpi"))]
#[test]
fn without_mpi_a_launcher_is_refused() {
    let bench = Bench::new();
    let (code, _, err) =
        bench.run_with(&["mdtest", "-n", "10"], &[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "3")]);
    assert!(code == 3 && err.contains("built without MPI"), "{err}");
    assert!(!bench.path("out").exists());
}

/// What was looked at before would be in memory.
#[test]
fn files_of_an_earlier_run_are_not_opened_before_they_are_measured() {
    if !tool("strace") {
        return eprintln!("skipped: needs strace");
    }
    let bench = Bench::new();
    bench.succeed(&["mdtest", "-n", "3", "-F", "-C", "-w", "4096", "-d", "d"]);
    let fstone = bench.command(&["mdtest", "-n", "3", "-F", "-E", "-e", "4096", "-d", "d"]);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-y", "-o", "calls", "-e", "trace=openat,openat2,pread64"]);
    strace.arg(fstone.get_program()).args(fstone.get_args()).current_dir(bench.path(""));
    assert!(strace.output().expect("strace starts").status.success());
    let calls = fs::read_to_string(bench.path("calls")).expect("recorded");
    let items = calls.lines().filter(|line| line.contains("file.mdtest"));
    let reads: String = items.map(|line| if line.contains("pread64(") { 'r' } else { 'o' }).collect();
    assert!(reads.starts_with("ororor"), "{calls}");
}
