//! The drop-ins for FFSB, sysbench fileio, fio, filebench and mdtest: what their documentation says of them, done with the binary.

mod filebench;
mod fio;
mod ior;
mod kept;
mod mdtest;
mod readers;

use crate::support::{Bench, is_root, tool};
use std::{fs, path::Path, process::Command};

fn profile(location: &Path, global: &str, filesystem: &str, threadgroup: &str) -> String {
    let location = location.to_str().expect("UTF-8");
    format!("{global}\n[filesystem]\nlocation = {location}\n{filesystem}\n[end]\n[threadgroup]\n{threadgroup}\n[end]\n")
}

fn transactions(printed: &str, operation: &str) -> u64 {
    let row = printed.lines().find(|line| line.trim_start().starts_with(&format!("{operation} :")));
    let row = row.unwrap_or_else(|| panic!("{operation} in {printed}"));
    row.split_whitespace().nth(2).and_then(|count| count.parse().ok()).expect("a count")
}

#[test]
fn a_conversion_achieves_the_mix_over_a_million_operations() {
    let bench = Bench::new();
    let weights = [("stat", 1u32), ("open_close", 30), ("readall", 69)];
    let group = weights.map(|(op, weight)| format!("{op}_weight = {weight}\n")).concat();
    let text = profile(
        &bench.path("unused"),
        "time = 1",
        "num_files = 100\nmin_filesize = 4k\nmax_filesize = 4k",
        &format!("num_threads = 2\nread_blocksize = 4k\n{group}"),
    );
    bench.write("mix.ffsb", &text);
    // A million operations that ask nothing of the kernel.
    let native = bench
        .succeed(&["convert", "mix.ffsb"])
        .replace("stop = { time = \"1 s\" }", "stop = { operations = 1000000 }")
        .replacen("\n[[fileset]]", "\n[io]\nengine = \"null\"\n\n[[fileset]]", 1);
    bench.write("mix.toml", &native);
    fs::create_dir(bench.path("files")).expect("it can be made");
    let directory = bench.path("files").display().to_string();
    let json = bench.succeed(&["load", "mix.toml", "--directory", &directory, "--seed", "1", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let ran = |op: &str| {
        let operations = report["operations"].as_array().expect("operations");
        let one = operations.iter().find(|operation| operation["name"] == op).expect(op);
        one["invocations"].as_u64().expect("a count")
    };
    assert_eq!(weights.map(|(op, _)| ran(op)).iter().sum::<u64>(), 1_000_000);
    for (op, weight) in weights {
        let achieved = ran(op) as f64 / 1e6 - f64::from(weight) / 100.0;
        assert!(achieved.abs() < 0.005, "{op}: {} instead of {weight} %", ran(op));
    }
}

#[test]
fn a_profile_with_every_option_runs() {
    let bench = Bench::new();
    let (one, two) = (bench.path("one"), bench.path("two"));
    let weights = [
        "append",
        "append_fsync",
        "stat",
        "write",
        "write_fsync",
        "read",
        "create",
        "create_fsync",
        "delete",
        "readall",
        "writeall",
        "writeall_fsync",
        "open_close",
        "metaop",
        "createdir",
    ];
    let weights_of_ten = weights.map(|op| format!("{op}_weight = 10\n")).concat();
    let threads = format!(
        "num_threads = 4\nbindfs = {two}\nread_random = 1\nwrite_random = 1\nread_size = 4k\nread_blocksize = 1k\n\
         write_size = 2k\nwrite_blocksize = 1KB\nop_delay = 1\n{weights_of_ten}\
         [stats]\nenable_stats = 1\nenable_range = 1\nignore = close\nmsec_range 0.0 0.5\nmsec_range 0.5 10000\n[end]",
        two = two.display()
    );
    let filesystem = format!(
        "num_dirs = 10\nsize_weight 4k 33 # often\nsize_weight 8KB 21\nsize_weight 64k 1\ninit_size = 4m\ninit_util = 0.5\n\
         create_blocksize = 64k\nage_blocksize = 8k\nreuse = 0\nagefs = 1\n[threadgroup]\nnum_threads = 2\n\
         write_size = 400\nwrite_blocksize = 1024\ncreate_weight = 10\nappend_weight = 10\ndelete_weight = 1\n[end]\n\
         desired_util = 0.0001\n[end]\n[filesystem1]\nlocation = {}\nclone = {}",
        two.display(),
        one.display()
    );
    let global = "time = 1\ndirectio = 0\nalignio = 1\nbufferio = 0\nverbose = 0\ncallout = echo now > called";
    let skipping = "[end]\n[threadgroup7]\nnum_threads = 1\nread_weight = 1\nread_skip = 1\nread_skipsize = 4k\n\
                    read_size = 8k\nread_blocksize = 2k";
    bench.write("everything.ffsb", &profile(&one, global, &filesystem, &format!("{threads}\n{skipping}")));
    for location in [&one, &two] {
        fs::create_dir(location).expect("it can be made");
    }
    let printed = bench.succeed(&["ffsb", "everything.ffsb"]);
    for op in weights {
        assert!(transactions(&printed, op) > 0, "{op} in {printed}");
    }
    assert!(printed.contains("System Call Latency statistics in millisecs"), "{printed}");
    assert!(printed.contains("[ create]") && !printed.contains("[  close]"), "close is ignored: {printed}");
    assert_eq!(fs::read_to_string(bench.path("called")).expect("the callout ran"), "now\n");
}

#[test]
fn readall_of_files_smaller_than_a_block_is_counted() {
    let bench = Bench::new();
    let text = profile(
        &bench.path(""),
        "time = 1",
        "num_files = 50\nmin_filesize = 1\nmax_filesize = 4000",
        "num_threads = 1\nread_blocksize = 4096\nreadall_weight = 1\nop_delay = 1",
    );
    bench.write("small.ffsb", &text);
    let printed = bench.succeed(&["ffsb", "small.ffsb"]);
    assert!(transactions(&printed, "readall") > 0, "{printed}");
    assert!(!printed.contains("\n0.00 Transactions per Second"), "{printed}");
}

#[test]
fn direct_creates_of_odd_sizes_work() {
    if !is_root() || !tool("mkfs.ext4") {
        eprintln!("skipped: needs root and mkfs.ext4");
        return;
    }
    let bench = Bench::new();
    let mounted = bench.mount_ext4();
    let text = profile(
        mounted.path(),
        "time = 1\ndirectio = 1",
        "num_files = 0\nmin_filesize = 1\nmax_filesize = 20000",
        "num_threads = 2\nwrite_blocksize = 4096\ncreate_weight = 1\nop_delay = 5",
    );
    bench.write("direct.ffsb", &text);
    let printed = bench.succeed(&["ffsb", "direct.ffsb"]);
    assert!(!printed.contains("Error"), "{printed}");
    let sizes: Vec<u64> = fs::read_dir(mounted.path().join("data"))
        .expect("it was made")
        .flatten()
        .filter(|entry| entry.file_name() != ".fstone")
        .filter_map(|entry| entry.metadata().ok())
        .filter(fs::Metadata::is_file)
        .map(|file| file.len())
        .collect();
    let blocks: u64 = sizes.iter().map(|size| size.div_ceil(4096)).sum();
    assert_eq!(transactions(&printed, "create"), blocks, "every file has all of its bytes");
    assert!(sizes.iter().any(|size| size % 512 != 0), "{sizes:?}");
}

#[test]
fn what_ffsb_would_have_lied_about_with_0_is_not_0() {
    let bench = Bench::new();
    let files = "num_files = 3\nmin_filesize = 4k\nmax_filesize = 4k";
    let text = profile(&bench.path(""), "time = 5", files, "num_threads = 1\ndelete_weight = 1");
    bench.write("delete.ffsb", &text);
    let (code, out, err) = bench.run(&["ffsb", "delete.ffsb"]);
    assert_eq!(code, 4, "{out}{err}");
    assert!(out.contains("Error: delete found no file to work on"), "{out}");

    let text = profile(&bench.path("not mounted").join("x"), "time = 1", files, "num_threads = 1\nstat_weight = 1");
    bench.write("nowhere.ffsb", &text.replace("not mounted", "not-mounted"));
    let (code, out, err) = bench.run(&["ffsb", "nowhere.ffsb"]);
    assert_eq!(code, 2, "{out}{err}");
    assert!(err.contains("not-mounted/x is not a directory"), "{err}");
    assert!(!bench.path("not-mounted").exists(), "nothing is made where no filesystem is");
}

#[test]
fn validation_finds_a_changed_byte_in_every_io_mode() {
    let bench = Bench::new();
    let run = |io: &str, command: &str| {
        let io = format!("--file-io-mode={io}");
        let words =
            ["sysbench", "fileio", "--file-num=2", "--file-total-size=256K", "--file-block-size=4K", "--validate"];
        bench.run(&[&words[..], &["--file-test-mode=seqrd", "--events=64", "--time=0", &io, command]].concat())
    };
    for io in ["sync", "async", "mmap"] {
        let (code, out, err) = run(io, "prepare");
        assert_eq!(code, 0, "{io}: {out}{err}");
        let (code, out, err) = run(io, "run");
        assert_eq!(code, 0, "{io}: {out}{err}");
        let file = bench.path("test_file.1");
        let mut bytes = fs::read(&file).expect("it was prepared");
        bytes[70_000] ^= 1;
        fs::write(&file, bytes).expect("ours");
        let (code, out, err) = run(io, "run");
        assert_eq!(code, 1, "{io}: {out}{err}");
        assert!(out.contains("FATAL") && out.contains("test_file.1"), "{io}: {out}");
        fs::remove_file(&file).expect("ours");
    }
}

#[test]
fn a_rate_holds_events_back_and_a_command_that_fails_says_so() {
    let bench = Bench::new();
    let run =
        |words: &[&str]| bench.run(&[&["sysbench", "fileio", "--file-num=1", "--file-total-size=64K"], words].concat());
    let (code, out, err) = run(&["--file-test-mode=rndrd", "run"]);
    assert_eq!(code, 1, "files are missing: {out}{err}");
    let fatal = "Doing random read test\nFATAL: Cannot open file 'test_file.0' errno = 2 (No such file or directory)\n\
                 WARNING: Did you forget to run the prepare step?\n";
    assert!(out.ends_with(fatal), "{out}{err}");
    assert_eq!(run(&["--file-num=none", "prepare"]).0, 1);
    assert_eq!(run(&["--file-total-size=64KB", "prepare"]).0, 0);
    let (code, out, err) = run(&["--file-test-mode=rndrd", "--rate=100", "--events=31", "--time=0", "run"]);
    assert_eq!(code, 0, "{out}{err}");
    let seconds = out.lines().find_map(|line| line.trim().strip_prefix("total time:")).expect("a total time");
    let seconds: f64 = seconds.trim().trim_end_matches('s').parse().expect("a number");
    // The gaps are exponential: less is as likely as 1 in 10 million.
    assert!(seconds >= 0.1, "31 events at 100 per second take some 0.3 s: {out}");
}

/// As sysbench 1.0.20 says it, whoever asks: a program that runs may not be written to.
#[test]
fn a_file_that_cannot_be_opened_is_named_as_sysbench_does() {
    let bench = Bench::new();
    let program = bench.path("test_file.0");
    fs::copy("/bin/sleep", &program).expect("it is there");
    let mut sleeping = Command::new(&program).arg("60").spawn().expect("it runs");
    let run = |mode: &str| {
        let size = ["--file-num=1", "--file-total-size=16K", "--file-block-size=4K", "--events=3", "--time=0"];
        bench.run(&[&["sysbench", "fileio"], &size[..], &[mode, "run"]].concat())
    };
    let (code, out, err) = run("--file-test-mode=rndwr");
    let reads = run("--file-test-mode=rndrd");
    sleeping.kill().and_then(|()| sleeping.wait()).expect("ours");
    let fatal = "Doing random write test\nFATAL: Cannot open file 'test_file.0' errno = 26 (Text file busy)\n\
                 WARNING: Did you forget to run the prepare step?\n";
    assert!(code == 1 && out.ends_with(fatal), "{code}: {out}{err}");
    assert_eq!(reads.0, 0, "{}{}", reads.1, reads.2);
}

#[test]
fn interval_lines_go_on_to_the_end() {
    let bench = Bench::new();
    let words = ["sysbench", "fileio", "--file-num=4", "--file-total-size=4M", "--file-test-mode=rndrw", "--time=2"];
    bench.succeed(&[&words[..], &["prepare"]].concat());
    let out = bench.succeed(&[&words[..], &["--report-interval=1", "run"]].concat());
    let lines: Vec<&str> = out.lines().filter_map(|line| line.split(" reads:").next()).collect();
    let intervals: Vec<&str> = lines.into_iter().filter(|line| line.starts_with("[ ")).collect();
    assert_eq!(intervals, ["[ 1s ]", "[ 2s ]"], "{out}");
}

fn calls(bench: &Bench, arguments: &[&str]) -> Vec<(String, u64)> {
    let fstone = bench.command(arguments);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-c", "-o", "calls", "-e", "trace=pread64,pwrite64,fsync,fdatasync"]);
    strace.arg(fstone.get_program()).args(fstone.get_args()).current_dir(bench.path(""));
    let output = strace.output().expect("strace starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = fs::read_to_string(bench.path("calls")).expect("it was written");
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        Some(((*fields.last()?).to_owned(), fields.get(3)?.parse().ok()?))
    };
    table.lines().filter_map(row).filter(|(name, _)| name != "total").collect()
}

#[test]
fn counts_are_those_of_system_calls() {
    if !tool("strace") {
        eprintln!("skipped: needs strace");
        return;
    }
    let bench = Bench::new();
    let words = ["sysbench", "fileio", "--file-num=4", "--file-total-size=4M", "--file-test-mode=rndwr"];
    bench.succeed(&[&words[..], &["prepare"]].concat());
    let made = calls(&bench, &[&words[..], &["--events=1000", "--time=0", "run"]].concat());
    let of = |name: &str| made.iter().find(|(call, _)| call == name).map_or(0, |(_, count)| *count);
    // After every 100 writes 4 fsyncs, which are events too: 1000 events are 964 writes and 36 fsyncs; and at the end
    // each file once more.
    assert_eq!((of("pwrite64"), of("fsync")), (964, 36 + 4), "{made:?}");
}
