//! `fstone ior`: what docs/formats/ior.md says, done with the binary as one task. scripts/try-mpi has the same with several.

use crate::support::{Bench, tool};
use std::{fs, process::Command};

fn run(bench: &Bench, words: &str) -> serde_json::Value {
    let words: Vec<&str> = ["ior", "--json"].into_iter().chain(words.split_whitespace()).collect();
    serde_json::from_str(&bench.succeed(&words)).expect("JSON")
}

/// Bytes of each operation, of all repetitions.
fn bytes(json: &serde_json::Value) -> Vec<(String, u64)> {
    let of = |operation: &serde_json::Value| {
        let repetitions = operation["repetitions"].as_array().expect("some");
        let bytes = repetitions.iter().map(|one| one["bytes"].as_u64().expect("a count")).sum();
        (operation["operation"].as_str().expect("a name").to_owned(), bytes)
    };
    json["operations"].as_array().expect("some").iter().map(of).collect()
}

#[test]
fn what_is_written_is_read_and_removed() {
    let bench = Bench::new();
    for words in ["-F", "", "-F -z", "-F -z -C", "-F -e -Y", "-F -i 2"] {
        let times = if words.ends_with('2') { 2 } else { 1 };
        let json = run(&bench, &format!("-b 64k -t 4k -s 3 -o f {words}"));
        let wanted =
            [("write", 196_608 * times), ("read", 196_608 * times)].map(|(name, count)| (name.to_owned(), count));
        assert_eq!(bytes(&json), wanted, "{words}");
        let left: Vec<_> =
            fs::read_dir(bench.path("")).expect("there").flatten().map(|entry| entry.file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().starts_with('f')), "{words}: {left:?}");
    }
    // Others find it by IOR's name.
    run(&bench, "-F -b 64k -t 4k -w -k -i 2 -o f");
    for name in ["f.00000000.0", "f.00000000.1"] {
        assert_eq!(fs::metadata(bench.path(name)).expect("kept").len(), 65_536);
        fs::remove_file(bench.path(name)).expect("ours");
    }
    let table = bench.succeed(&["ior", "-b", "64k", "-t", "4k"]);
    assert!(table.contains("access    bw(MiB/s)") && table.contains("Summary of all tests:"), "{table}");
}

#[test]
fn what_is_kept_is_read_later_and_not_overwritten() {
    let bench = Bench::new();
    run(&bench, "-b 64k -t 4k -w -k -o f");
    let written = fs::read(bench.path("f")).expect("kept");
    assert!(written.len() == 65_536 && written.chunks(4096).all(|piece| piece.iter().any(|byte| *byte != 0)));
    assert_eq!(bytes(&run(&bench, "-b 64k -t 4k -r -z -o f")), [("read".into(), 65_536)]);
    let (code, out, err) = bench.run(&["ior", "-b", "64k", "-t", "4k", "-o", "f"]);
    assert!(code == 4 && out.contains("not empty"), "{out}{err}");
    assert_eq!(fs::read(bench.path("f")).expect("still there"), written);
    // What is not as long as it is to be is an error of the read.
    let (code, out, _) = bench.run(&["ior", "-b", "128k", "-t", "4k", "-r", "-o", "f"]);
    assert!(code == 4 && out.contains("× read"), "{out}");
}

#[test]
fn results_of_an_earlier_run_stay_when_another_is_refused() {
    let bench = Bench::new();
    run(&bench, "-b 64k -t 4k -w -k -o f --results kept");
    let kept = fs::read(bench.path("kept/ranks.json")).expect("written");
    let (code, out, err) = bench.run(&["ior", "-b", "64k", "-t", "4k", "-o", "f", "--results", "kept"]);
    assert!(
        code == 4 && out.contains("not empty") && err.contains("the results of an earlier load, which stay"),
        "{out}{err}"
    );
    assert_eq!(fs::read(bench.path("kept/ranks.json")).expect("still there"), kept);
    // Its own results are replaced, but nothing else of their names.
    run(&bench, "-b 64k -t 4k -w -k -o again --results kept");
    assert_ne!(fs::read(bench.path("kept/ranks.json")).expect("there"), kept);
    for name in ["ior.json", "ranks.json", "ranks.csv"] {
        let (path, mine) = (bench.path("kept").join(name), "{\"version\": \"3.3.0\"}");
        let fstones = fs::read(&path).expect("there");
        fs::write(&path, mine).expect("writable");
        let (code, _, err) = bench.run(&["ior", "-b", "64k", "-t", "4k", "-o", "new", "--results", "kept"]);
        assert!(code == 2 && err.contains(&format!("kept/{name} is there, and no load of ranks wrote it")), "{err}");
        assert_eq!(fs::read_to_string(&path).expect("still there"), mine);
        fs::write(&path, fstones).expect("writable");
    }
}

/// As with IOR, there is never more than one repetition's file.
#[test]
fn a_repetition_removes_its_file_before_the_next() {
    let bench = Bench::new();
    let most = |more: &str| {
        let mut words = vec!["ior", "-b", "4k", "-t", "4k", "-i", "60", "-o", "f"];
        words.extend(more.split_whitespace());
        let mut ior = bench.command(&words).stdout(std::process::Stdio::null()).spawn().expect("it starts");
        let mut most = 0;
        while ior.try_wait().expect("ours").is_none() {
            let written = fs::read_dir(bench.path("")).expect("readable").flatten().filter(|entry| {
                let of_ior = entry.file_name().to_string_lossy().starts_with("f.");
                of_ior && entry.metadata().is_ok_and(|file| file.len() > 0)
            });
            most = most.max(written.count());
        }
        most
    };
    for more in ["", "-F", "-e -D 9", "-m"] {
        let most = most(more);
        assert!((1..=2).contains(&most), "{more}: {most}");
    }
}

#[test]
fn a_stonewall_ends_writing_and_as_much_is_read() {
    let bench = Bench::new();
    let json = run(&bench, "-F -b 4k -t 4k -s 200000000 -D 1 -O stoneWallingWearOut=1 -e -o f");
    let bytes = bytes(&json);
    let (written, read) = (bytes[0].1, bytes[1].1);
    // The deadline ends reading, too, where other programs leave no time for it.
    let seconds = json["operations"][1]["repetitions"][0]["phase_seconds"].as_f64().expect("a time");
    assert!(written > 0 && (read == written || (read < written && seconds >= 1.0)), "{bytes:?} in {seconds} s");
    assert!(!bench.path("f.00000000").exists());
}

#[test]
fn the_calls_are_iors() {
    if !tool("strace") {
        eprintln!("skipped: needs strace");
        return;
    }
    let bench = Bench::new();
    let fstone = bench.command(&["ior", "-F", "-b", "3333", "-t", "1111", "-e", "-o", "f"]);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "calls", "-e", "trace=openat,pwrite64,pread64,fsync"]);
    strace.arg(fstone.get_program()).args(fstone.get_args()).current_dir(bench.path(""));
    let ended = strace.output().expect("strace starts");
    assert!(ended.status.success(), "{ended:?}");
    let calls = fs::read_to_string(bench.path("calls")).expect("written");
    let ours: Vec<&str> = calls
        .lines()
        .filter(|line| line.contains("f.00000000") || line.contains(", 1111, ") || line.contains("fsync("))
        .filter_map(|line| line.split_whitespace().nth(1)?.split('(').next())
        .collect();
    let wanted = "openat pwrite64 pwrite64 pwrite64 fsync openat pread64 pread64 pread64";
    assert_eq!(ours.join(" "), wanted, "{calls}");
}
