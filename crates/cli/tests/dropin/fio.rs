//! `fstone fio`: what docs/formats/fio.md says of job files, done with the binary.

use crate::support::{Bench, is_root, tool};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

fn results(bench: &Bench, file: &str) -> Value {
    let json = bench.succeed(&["fio", file, "--output-format=json+"]);
    serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// Reads, writes, bytes read, bytes written and fsyncs of each job.
fn counts(results: &Value) -> Vec<[u64; 5]> {
    let jobs = results["jobs"].as_array().expect("jobs");
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    jobs.iter()
        .map(|job| {
            [
                count(&job["read"]["total_ios"]),
                count(&job["write"]["total_ios"]),
                count(&job["read"]["io_bytes"]),
                count(&job["write"]["io_bytes"]),
                count(&job["sync"]["total_ios"]),
            ]
        })
        .collect()
}

#[test]
fn a_job_file_does_what_it_says() {
    let bench = Bench::new();
    bench.write(
        "jobs.fio",
        "[global]\nbs=4k\nsize=256k\n\
         [write]\nrw=write\nfsync=8\n\
         [read]\nstonewall\nrw=randread\nfilename=write.0.0\nnumjobs=2\ngroup_reporting\n\
         [files]\nstonewall\nrw=write\nnrfiles=3\nend_fsync=1\n",
    );
    let results = results(&bench, "jobs.fio");
    // 64 blocks; an fsync before each eighth but the first. Files of 85 KiB hold 21 blocks each.
    assert_eq!(
        counts(&results),
        [[0, 64, 0, 256 << 10, 7], [128, 0, 512 << 10, 0, 0], [0, 63, 0, 63 * 4096, 3]],
        "{results}"
    );
    let group: Vec<u64> =
        results["jobs"].as_array().expect("jobs").iter().filter_map(|job| job["groupid"].as_u64()).collect();
    assert_eq!(group, [0, 1, 2]);
    for (name, bytes) in [("write.0.0", 256 << 10), ("files.0.0", 87381), ("files.0.2", 87381)] {
        let length = fs::metadata(bench.path(name)).unwrap_or_else(|error| panic!("{name}: {error}")).len();
        assert_eq!(length, bytes, "{name}");
    }
    assert!(!bench.path("read.0.0").exists(), "it has the other's file");
}

/// Names and switches as fio 3.33 takes them.
#[test]
fn names_are_of_sections_and_switches_take_no_word() {
    let bench = Bench::new();
    bench.write("names.fio", "[global]\nname=all\nrw=write\nsize=64k\n[one]\nname=shown\n[two]\nwait_for=shown\n");
    let results = results(&bench, "names.fio");
    let names: Vec<&str> =
        results["jobs"].as_array().expect("jobs").iter().filter_map(|job| job["jobname"].as_str()).collect();
    assert_eq!(names, ["shown", "two"]);
    assert!(bench.path("one.0.0").exists() && bench.path("two.0.0").exists() && !bench.path("shown.0.0").exists());
    for switch in [
        "refill_buffers",
        "zero_buffers",
        "time_based",
        "fixedbufs",
        "registerfiles",
        "exitall_on_error",
        "userspace_reap",
    ] {
        let switch = format!("--{switch}");
        let line = ["fio", "--name=a", "--rw=read", "--size=8m", &switch, "--bs=1m", "--output-format=json"];
        let json: Value = serde_json::from_str(&bench.succeed(&line)).expect("JSON");
        assert_eq!(counts(&json)[0][0], 8, "{switch}");
    }
    let (code, _, err) = bench.run(&["fio", "--name=a", "--rw=read", "--size=8m", "--overwrite", "--bs=1m"]);
    assert!(code == 2 && err.contains("overwrite"), "it takes the next word, as in fio: {err}");
}

/// A system call moves 2 GiB less a page at most; the rest of a block is read behind it.
#[test]
fn blocks_of_more_than_two_gibibytes_are_read_whole() {
    const BLOCK: u64 = (2 << 30) + 12_345;
    let bench = Bench::new();
    fs::File::create(bench.path("sparse")).and_then(|file| file.set_len(4 << 30)).expect("a file without blocks");
    for engine in ["psync", "libaio", "io_uring"] {
        let block = format!("--bs={BLOCK}");
        let engine = format!("--ioengine={engine}");
        let mut line = vec!["fio", "--name=a", "--rw=read", "--filename=sparse", "--number_ios=1", &block, &engine];
        line.push("--output-format=json");
        let json: Value = serde_json::from_str(&bench.succeed(&line)).expect("JSON");
        assert_eq!(counts(&json)[0], [1, 0, BLOCK, 0, 0], "{engine}");
    }
    let (code, _, err) = bench.run(&["fio", "--name=a", "--rw=read", "--filename=sparse", "--bs=4g"]);
    assert!(code == 2 && err.contains("below 4g"), "{err}");
}

/// What fio 3.33 left and counted, as strace and `ls -s` showed it.
#[test]
fn files_grow_and_are_synced_as_with_fio() {
    let bench = Bench::new();
    for (fallocate, size, blocks) in
        [("none", 64 << 10, 128), ("keep", 64 << 10, 1024), ("native", 512 << 10, 1024), ("truncate", 512 << 10, 128)]
    {
        bench.write("job.fio", &format!("[job]\nrw=write\nbs=4k\nsize=512k\nio_size=64k\nfallocate={fallocate}\n"));
        results(&bench, "job.fio");
        let of = fs::metadata(bench.path("job.0.0")).expect("it was written");
        fs::remove_file(bench.path("job.0.0")).expect("ours");
        assert_eq!((of.len(), of.blocks()), (size, blocks), "{fallocate}");
    }
    let synced = |job: &str| -> [u64; 2] {
        bench.write("job.fio", &format!("[job]\nrw=write\nbs=4k\nsize=512k\n{job}\n"));
        let calls = super::calls(&bench, &["fio", "job.fio", "--output-format=json"]);
        ["fsync", "fdatasync"].map(|name| calls.iter().find(|(call, _)| call == name).map_or(0, |(_, count)| *count))
    };
    // The layout may be made durable by fsyncs, too.
    let layout = synced("end_fsync=0")[0];
    for (job, fsyncs, fdatasyncs) in [
        ("loops=4\nend_fsync=1", 4, 0),
        ("fdatasync=8\nend_fsync=1", 1, 15),
        ("fsync=8\nnrfiles=4", 15, 0),
        ("fsync=7\nnrfiles=4\nrw=randwrite", 18, 0),
    ] {
        let [of_fsync, of_data] = synced(job);
        assert_eq!((of_fsync - layout, of_data), (fsyncs, fdatasyncs), "{job}");
    }
}

/// What fio 3.33 left and counted.
#[test]
fn files_are_appended_to_allocated_and_made_anew_as_with_fio() {
    let bench = Bench::new();
    let run = |job: &str| {
        bench.write("job.fio", &format!("[job]\nrw=write\nbs=4k\n{job}\n"));
        counts(&results(&bench, "job.fio"))[0]
    };
    let of = |name: &str| fs::metadata(bench.path(name)).expect("it was written");
    for length in [64 << 10, 128 << 10, 192 << 10] {
        assert_eq!(run("size=64k\nfile_append=1"), [0, 16, 0, 64 << 10, 0]);
        assert_eq!(of("job.0.0").len(), length);
    }
    assert_eq!(
        run("size=1m\nioengine=falloc\nrw=randwrite\nfallocate=none\nfilename=a\niodepth=8"),
        [0, 256, 0, 1 << 20, 0]
    );
    assert!(of("a").len() == 1 << 20 && of("a").blocks() >= 2048);
    assert!(fs::read(bench.path("a")).expect("ours").iter().all(|byte| *byte == 0), "nothing was written");
    // The first loop has the file that is there; it is removed before the second, and the third one's stays.
    bench.write("b0", "");
    fs::hard_link(bench.path("b0"), bench.path("first")).expect("a second name");
    assert_eq!(run("size=64k\nfilename_format=b$filenum\nloops=3\nunlink_each_loop=1"), [0, 48, 0, 192 << 10, 0]);
    assert_eq!((of("first").len(), of("first").nlink(), of("b0").len()), (64 << 10, 1, 64 << 10));
    let made =
        run("ioengine=filecreate\nnrfiles=10\nfilesize=4k\nloops=2\nunlink_each_loop=1\nfilename_format=c$filenum");
    assert_eq!((made, of("c9").len()), ([0; 5], 0));
}

/// As many fields as fio 3.33 prints without its disks, and its command line of a job file.
#[test]
fn terse_versions_and_command_lines_are_those_of_fio() {
    let bench = Bench::new();
    for (version, fields) in [("2", 161), ("3", 121), ("4", 162), ("5", 180)] {
        let line = ["fio", "--name=x", "--rw=write", "--size=64k", "--minimal", "--terse-version", version];
        let printed = bench.succeed(&line);
        assert_eq!((printed.trim_end().split(';').count(), &printed[..1]), (fields, version), "{printed}");
    }
    let both = bench.succeed(&["fio", "--name=x", "--rw=write", "--size=64k", "--append-terse"]);
    assert!(both.lines().any(|line| line.starts_with("3;fio-3.33")) && both.contains("Run status group"), "{both}");
    bench.write("j.fio", "[global]\nbs=4k\nsize=64k\n[a]\nrw=write\n[b]\nstonewall\nrw=randread\ndirect=1\n");
    assert_eq!(
        bench.succeed(&["fio", "--showcmd", "j.fio"]),
        "fio --bs=4k --size=64k --name=a --rw=write --name=b --stonewall --rw=randread --direct=1 \n"
    );
}

/// Groups and counts of fio 3.33.
#[test]
fn a_further_job_file_begins_behind_a_stonewall_and_without_the_defaults_of_others() {
    let bench = Bench::new();
    bench.write("a.fio", "[global]\nbs=4k\nsize=64k\n[a1]\nrw=write\n[a2]\nrw=write\n");
    bench.write("b.fio", "[b1]\nrw=write\nbs=8k\nsize=32k\n[b2]\nrw=write\nsize=32k\n");
    bench.write("c.fio", "[global]\nloops=3\n[c1]\nrw=write\nsize=32k\n");
    let run = |words: &[&str]| -> (Vec<(u64, u64)>, Value) {
        let line: Vec<&str> = ["fio"].iter().chain(words).copied().chain(["--output-format=json"]).collect();
        let json: Value = serde_json::from_str(&bench.succeed(&line)).expect("JSON");
        let jobs = json["jobs"].as_array().expect("jobs");
        let group = |job: &Value| job["groupid"].as_u64().expect("a number");
        let of = jobs.iter().zip(counts(&json)).map(|(job, counts)| (group(job), counts[1])).collect();
        (of, json["global options"].clone())
    };
    let (jobs, global) = run(&["--loops=2", "a.fio", "b.fio", "c.fio"]);
    assert_eq!(jobs, [(0, 32), (0, 32), (1, 4), (1, 8), (2, 24)]);
    assert_eq!(global, serde_json::json!({ "loops": "3" }));
    // Jobs of the command line belong to the first file.
    let (jobs, global) = run(&["--bs=8k", "--name=x", "--rw=write", "--size=16k", "b.fio", "a.fio"]);
    assert_eq!(jobs, [(0, 2), (0, 4), (0, 4), (1, 16), (1, 16)]);
    assert_eq!(global, serde_json::json!({ "bs": "4k", "size": "64k" }));
    // A section that is left out takes no stonewall with it.
    assert_eq!(run(&["a.fio", "b.fio", "--section=a1", "--section=b2"]).0, [(0, 16), (1, 8)]);
    assert_eq!(run(&["--batches", "b.fio", "c.fio"]).0, [(0, 4), (0, 8), (1, 24)]);
    assert_eq!(
        bench.succeed(&["fio", "--showcmd", "b.fio", "c.fio"]),
        "fio --name=b1 --rw=write --bs=8k --size=32k --name=b2 --rw=write --size=32k \nfio --loops=3 --name=c1 --rw=write --size=32k \n"
    );
}

/// As fio 3.33 does, also with `invalidate=0`; what was there before stays cached.
#[test]
fn what_was_laid_out_is_not_cached() {
    if !tool("strace") {
        return eprintln!("skipped: needs strace");
    }
    let bench = Bench::new();
    for (job, drops) in [("--rw=read", 3), ("--rw=read", 0), ("--rw=write --filename=g", 0)] {
        let words = ["fio", "--name=a", "--size=64k", "--nrfiles=3", "--invalidate=0", "--fadvise_hint=0"];
        let fstone = bench.command(&words.into_iter().chain(job.split(' ')).collect::<Vec<_>>());
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "calls", "-e", "trace=fadvise64"]);
        strace.arg(fstone.get_program()).args(fstone.get_args()).current_dir(bench.path(""));
        assert!(strace.output().expect("strace starts").status.success(), "{job}");
        let calls = fs::read_to_string(bench.path("calls")).expect("recorded");
        assert_eq!(calls.matches("POSIX_FADV_DONTNEED").count(), drops, "{job}: {calls}");
    }
}

/// Reads that never reach the device are no figures of it.
#[test]
fn holes_and_blocks_that_were_never_written_are_told() {
    let bench = Bench::new();
    let sparse = |written: usize| {
        let file = fs::File::create(bench.path("sparse")).expect("it can be made");
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![1; written], 0).expect("written");
        file.set_len(1 << 20).expect("made longer");
    };
    let told = |line: &[&str]| {
        let (code, _, err) = bench.run(&[&["fio", "--name=a", "--filename=sparse", "--bs=4k"], line].concat());
        assert_eq!(code, 0, "{err}");
        err.contains("has no data").then_some(err)
    };
    sparse(256 << 10);
    let err = told(&["--rw=randread"]).expect("a warning");
    assert!(err.contains("75.0 % of what is read"), "{err}");
    assert_eq!(told(&["--rw=read", "--size=256k"]), None, "that part has data");
    assert_eq!(told(&["--rw=write"]), None);
    assert_eq!(told(&["--rw=randread"]), None, "all of it was written");
    sparse(0);
    let backlog = ["--verify=crc32c", "--verify_backlog=16"];
    assert_eq!(told(&[&["--rw=randwrite"], &backlog[..]].concat()), None, "what is read was written just before");
    // sysbench's own: its files are as short as what was written, and no later test reads what is missing.
    let run =
        |words: &[&str]| bench.run(&[&["sysbench", "fileio", "--file-num=2", "--file-total-size=1M"], words].concat());
    let (code, out, err) = run(&["--file-test-mode=seqwr", "--events=20", "--file-fsync-freq=0", "run"]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = run(&["--file-test-mode=seqrd", "--events=20", "run"]);
    assert!(code == 1 && out.contains("FATAL: Size of file 'test_file.0' is"), "{out}{err}");
    assert!(run(&["prepare"]).1.contains("written"));
    assert_eq!(run(&["--file-test-mode=seqrd", "--events=20", "run"]).0, 0);
}

/// A file shorter than the job wants has no holes behind its end.
#[test]
fn what_is_not_there_is_no_hole() {
    let bench = Bench::new();
    bench.write("f", &"x".repeat(64 << 10));
    let (code, _, err) = bench.run(&["fio", "--name=a", "--filename=f", "--rw=read", "--size=256k", "--bs=4k"]);
    assert!(code == 4 && err.contains("f has 65536 bytes") && !err.contains("no data: holes"), "{err}");
}

#[test]
fn what_is_only_read_needs_no_right_to_write() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let mounted = bench.mount_tmpfs("size=4m");
    let directory = mounted.path().display().to_string();
    bench.write("write.fio", &format!("[job]\ndirectory={directory}\nrw=write\nbs=4k\nsize=64k\n"));
    results(&bench, "write.fio");
    let status = Command::new("mount").args(["-o", "remount,ro", &directory]).status();
    assert!(status.expect("mount starts").success());
    bench.write("read.fio", &format!("[job]\ndirectory={directory}\nrw=read\nbs=4k\nsize=64k\n"));
    let json = results(&bench, "read.fio");
    assert_eq!(counts(&json), [[16, 0, 65536, 0, 0]], "{json}");
}

/// The first job finds no room; the one behind the stonewall goes on, as with fio.
#[test]
fn a_full_disk_is_an_error_of_the_job_that_finds_it() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let mounted = bench.mount_tmpfs("size=4m");
    let directory = mounted.path().display().to_string();
    bench.write(
        "full.fio",
        &format!("[global]\ndirectory={directory}\nbs=64k\n[full]\nrw=write\nsize=8m\n[reads]\nstonewall\nfilename=full.0.0\nrw=read\nsize=1m\n"),
    );
    let (code, out, err) = bench.run(&["fio", "full.fio", "--output-format=json"]);
    let json: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    assert_ne!(code, 0, "{err}");
    assert_eq!((json["jobs"][0]["error"].as_u64(), json["jobs"][1]["error"].as_u64()), (Some(28), Some(0)), "{json}");
    assert_eq!(counts(&json)[1][0], 16, "{json}");
    // Until it is full, if that is what was wanted.
    fs::remove_file(mounted.path().join("full.0.0")).expect("ours");
    bench.write("fill.fio", &format!("[fill]\ndirectory={directory}\nbs=64k\nrw=write\nfill_device=1\n"));
    let json = results(&bench, "fill.fio");
    assert_eq!(json["jobs"][0]["error"].as_u64(), Some(0), "{json}");
    let written = counts(&json)[0][3];
    assert!((3 << 20..=4 << 20).contains(&written), "{json}");
}

#[test]
fn files_of_the_users_stay() {
    let bench = Bench::new();
    bench.write("job.0.00", "mine");
    bench.write("job.0.0.bak", "mine");
    bench.write("job.fio", "[job]\nrw=write\nsize=64k\n");
    results(&bench, "job.fio");
    for name in ["job.0.00", "job.0.0.bak"] {
        assert_eq!(fs::read_to_string(bench.path(name)).expect("it is there"), "mine", "{name}");
    }
}

/// Numbers of fio 3.33, of the same jobs and a block that was damaged in between.
#[test]
fn a_failed_verification_has_the_error_of_fio_and_is_counted() {
    let bench = Bench::new();
    let write = "[v]\nrw=write\nbs=4k\nsize=256k\nverify=crc32c\n";
    bench.write("write.fio", write);
    results(&bench, "write.fio");
    let mut data = fs::read(bench.path("v.0.0")).expect("it was written");
    data[20_500] ^= 1;
    fs::write(bench.path("v.0.0"), data).expect("ours");
    for (more, status, operations) in
        [("", 4, 6), ("continue_on_error=io\n", 4, 6), ("continue_on_error=verify\n", 0, 64)]
    {
        bench.write("read.fio", &format!("{write}verify_only=1\n{more}"));
        let (code, out, err) = bench.run(&["fio", "read.fio", "--output-format=json"]);
        let json: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out} {err}"));
        let job = &json["jobs"][0];
        assert_eq!(
            (code, &job["error"], &job["read"]["total_ios"]),
            (status, &84.into(), &operations.into()),
            "{json}"
        );
        let counted = if status == 0 { [1, 84] } else { [0; 2] };
        if !more.is_empty() {
            assert_eq!(["total_err", "first_error"].map(|key| job[key].as_u64()), counted.map(Some), "{json}");
        }
    }
}

/// Statuses and numbers of fio 3.33, of the same jobs with the same failures.
#[test]
fn a_job_goes_on_after_the_errors_that_it_names() {
    if !tool("strace") {
        eprintln!("skipped: needs strace");
        return;
    }
    let bench = Bench::new();
    bench.write("f", &"x".repeat(1 << 20));
    let failing = |call: &str, error: &str, options: &str| {
        let mut line = vec!["fio", "--output-format=json", "--name=a", "--filename=f", "--size=1m", "--bs=64k"];
        line.push(if call == "pread64" { "--rw=read" } else { "--rw=write" });
        line.extend(options.split(' '));
        let fstone = bench.command(&line);
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "calls", "-e", &format!("trace={call}")]);
        strace.args(["-e", &format!("inject={call}:error={error}:when=8..10")]);
        let output = strace.arg(fstone.get_program()).args(fstone.get_args()).current_dir(bench.path("")).output();
        let output = output.expect("strace starts");
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let job = &json["jobs"][0];
        let operations = job[if call == "pread64" { "read" } else { "write" }]["total_ios"].as_u64();
        let [error, all, first] = ["error", "total_err", "first_error"].map(|key| job[key].as_u64());
        (output.status.code(), operations, error, all, first)
    };
    let on = |errno| (Some(0), Some(16), Some(errno), Some(3), Some(errno));
    let over = |errno, all, first| (Some(4), Some(8), Some(errno), Some(all), Some(first));
    for (call, error, options, expected) in [
        ("pread64", "EIO", "--continue_on_error=read", on(5)),
        ("pread64", "EIO", "--continue_on_error=write", over(5, 0, 0)),
        ("pread64", "ENOSPC", "--continue_on_error=all", over(28, 1, 28)),
        ("pwrite64", "EIO", "--continue_on_error=io", on(5)),
        ("pwrite64", "ENOSPC", "--continue_on_error=io", over(28, 1, 28)),
        ("pwrite64", "ENOSPC", "--ignore_error=,EIO:ENOSPC", on(28)),
        ("pwrite64", "EIO", "--ignore_error=,ENOSPC", over(5, 1, 5)),
        ("pwrite64", "EIO", "--ignore_error=ENOSPC --continue_on_error=write", on(5)),
        ("pwrite64", "ENOSPC", "--ignore_error=ENOSPC", over(28, 0, 0)),
    ] {
        assert_eq!(failing(call, error, options), expected, "{call} {error} {options}");
    }
}

/// Failed blocks count towards the size, as with fio and as in a queue, also where blocks have several sizes.
#[test]
fn errors_are_not_made_up_for_by_more_operations() {
    if !tool("strace") {
        eprintln!("skipped: needs strace");
        return;
    }
    let bench = Bench::new();
    bench.write("f", &"x".repeat(4 << 20));
    let fstone = bench.command(&[
        "fio",
        "--output-format=json",
        "--name=a",
        "--filename=f",
        "--size=4m",
        "--rw=randread",
        "--norandommap",
        "--bssplit=64k/50:128k/50",
        "--continue_on_error=read",
    ]);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "calls", "-e", "trace=pread64", "-e", "inject=pread64:error=EIO:when=6+2"]);
    let output = strace.arg(fstone.get_program()).args(fstone.get_args()).current_dir(bench.path("")).output();
    let json: Value = serde_json::from_slice(&output.expect("strace starts").stdout).expect("JSON");
    let job = &json["jobs"][0];
    let [reads, failed] = [&job["read"]["total_ios"], &job["total_err"]].map(|count| count.as_u64().expect("a count"));
    assert!((32..=64).contains(&reads) && failed.abs_diff(reads / 2) <= 4, "{job}");
}

#[test]
fn blocks_that_do_not_fit_into_memory_are_refused() {
    let bench = Bench::new();
    let file = fs::File::create(bench.path("f")).expect("it can be made");
    file.set_len(1 << 30).expect("it is sparse");
    let line = ["fio", "--name=a", "--filename=f", "--rw=read", "--bs=1g", "--size=1g", "--ioengine=libaio"];
    let (code, out, err) = bench.run(&[&line[..], &["--direct=1", "--iodepth=4096"]].concat());
    assert!(code != 0 && out.is_empty() && err.contains("has blocks that take 4194304 MiB of memory"), "{out}{err}");
    assert!(err.contains("1 threads × 4096 in flight × 1073741824 bytes"), "{err}");
}

/// As the kernel takes them; nothing else of the directory above is touched.
#[test]
fn a_name_may_lead_up() {
    let bench = Bench::new();
    for directory in ["a", "b"] {
        fs::create_dir(bench.path(directory)).expect("it can be made");
    }
    bench.write("b/mine", "mine");
    for (line, file) in
        [("--directory=a/../b", "b/j.0.0"), ("--filename=a/../b/x", "b/x"), ("--directory=a --filename=../y", "y")]
    {
        let mut words = vec!["fio", "--name=j", "--rw=write", "--size=64k", "--output-format=json"];
        words.extend(line.split(' '));
        let json: Value = serde_json::from_str(&bench.succeed(&words)).expect("JSON");
        assert_eq!(counts(&json)[0][3], 64 << 10, "{line}");
        assert_eq!(fs::metadata(bench.path(file)).expect(line).len(), 64 << 10, "{line}");
    }
    assert_eq!(fs::read_to_string(bench.path("b/mine")).expect("it is there"), "mine");
    let (code, _, err) = bench.run(&["fio", "--name=j", "--rw=write", "--size=64k", "--filename=none/../z"]);
    assert!(code == 2 && err.contains("not a name for a file") && !bench.path("z").exists(), "{err}");
}

/// The results until then, of the jobs that have begun.
#[test]
fn results_are_printed_while_jobs_run() {
    let bench = Bench::new();
    let line = ["fio", "--name=a", "--rw=write", "--size=4m", "--rate_iops=200", "--time_based", "--runtime=3"];
    let behind = ["--name=b", "--stonewall", "--rw=read", "--size=64k"];
    let all = |text: &str| -> Vec<Value> {
        let values = serde_json::Deserializer::from_str(text).into_iter();
        values.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let text =
        bench.succeed(&[&line[..], &["--status-interval=1", "--output-format=json", "--output=all"], &behind].concat());
    assert_eq!(text, "", "it goes to the file");
    let results = all(&fs::read_to_string(bench.path("all")).expect("it was written"));
    assert!((2..=4).contains(&results.len()), "{results:?}");
    let mut before = 0;
    for result in &results {
        let job = &result["jobs"][0];
        let (writes, runtime) = (counts(result)[0][1], job["write"]["runtime"].as_u64().expect("a time"));
        // A thread that was kept waiting makes up for it within a point.
        assert!(writes >= before && job["write"]["iops"].as_f64().is_some_and(|rate| rate < 300.0), "{job}");
        assert!(runtime > 0 && job["write"]["lat_ns"]["N"].as_u64() == Some(writes), "{job}");
        before = writes;
    }
    assert!(results[0]["jobs"].as_array().is_some_and(|jobs| jobs.len() == 1), "the other has not begun");
    assert_eq!(results.last().map(|last| counts(last).len()), Some(2));
    // Once, when it is asked.
    let mut command = bench.command(&[&line[..], &["--output-format=json"]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let grown = || fs::metadata(bench.path("a.0.0")).is_ok();
    crate::support::wait_until("it works", grown);
    std::thread::sleep(Duration::from_millis(500));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::USR1)
        .expect("it is running");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let results = all(&String::from_utf8(output.stdout).expect("UTF-8"));
    assert_eq!(results.len(), 2, "{results:?}");
    assert!(counts(&results[0])[0][1] < counts(&results[1])[0][1], "{results:?}");
}

/// A phase that has not begun has taken no time.
#[test]
fn what_is_yet_to_be_read_back_has_taken_no_time() {
    let bench = Bench::new();
    let line = ["fio", "--name=a", "--rw=write", "--size=800k", "--bs=4k", "--rate_iops=100", "--verify=crc32c"];
    let text = bench.succeed(&[&line[..], &["--status-interval=1", "--output-format=json"]].concat());
    let first = serde_json::Deserializer::from_str(&text).into_iter::<Value>().next();
    let json = first.expect("it ran for a second").expect("JSON");
    let job = &json["jobs"][0];
    assert!(job["read"]["total_ios"] == 0 && job["write"]["runtime"].as_u64() > Some(0), "{job}");
    assert_eq!(job["job_runtime"], job["write"]["runtime"], "{job}");
}

#[test]
fn a_job_within_a_long_pause_is_shown() {
    let bench = Bench::new();
    let line = ["fio", "--name=a", "--rw=write", "--size=8k", "--bs=4k", "--thinktime=4s", "--output-format=json"];
    let child = bench.command(&line).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    crate::support::wait_until("it works", || fs::metadata(bench.path("a.0.0")).is_ok());
    std::thread::sleep(Duration::from_millis(700));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::USR1)
        .expect("it is running");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let first = serde_json::Deserializer::from_str(&text).into_iter::<Value>().next();
    let json = first.expect("it was asked").expect("JSON");
    assert_eq!(json["jobs"].as_array().map(Vec::len), Some(1), "{text}");
}

#[test]
fn idle_processors_are_measured() {
    let bench = Bench::new();
    let line = ["fio", "--name=a", "--rw=read", "--size=64k", "--time_based", "--runtime=1", "--rate_iops=10"];
    let text = bench.succeed(&[&line[..], &["--idle-prof=percpu"]].concat());
    let (_, idle) = text.split_once("\nCPU idleness:\n  system: ").unwrap_or_else(|| panic!("{text}"));
    assert!(idle.contains("\n  percpu: ") && idle.contains("\n  unit work: mean="), "{text}");
    let json = bench.succeed(&[&line[..], &["--idle-prof=system", "--output-format=json"]].concat());
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let idle = json["cpu_idleness"].as_object().expect("it is there");
    assert_eq!(idle.keys().collect::<Vec<_>>(), ["system", "unit_mean", "unit_stddev"]);
    assert!(idle["system"].as_f64().is_some_and(|percent| (0.0..=100.0).contains(&percent)), "{json}");
    let text = bench.succeed(&["fio", "--idle-prof=calibrate", "--name=b", "--rw=write", "--size=64k"]);
    assert!(text.starts_with("CPU idleness:\n  unit work: mean=") && !bench.path("b.0.0").exists(), "{text}");
}

/// Jobs that remove or rename files: only those that they name, or those that they made.
#[test]
fn operations_on_whole_files_take_no_others() {
    let bench = Bench::new();
    let mine = ["a.0.0", "u", "u.r", "b.0.0.r"];
    let write = || mine.iter().for_each(|name| bench.write(name, "mine"));
    let left = || mine.map(|name| fs::read_to_string(bench.path(name)).is_ok_and(|text| text == "mine"));
    for (words, status, why, stay) in [
        ("--ioengine=filedelete --filename=u", 0, "", [true, false, true, true]),
        ("--ioengine=filestat --filename=u", 0, "", [true; 4]),
        ("--ioengine=filerename --filename=u", 2, "u.r (a rename would replace it)", [true; 4]),
        ("--name=b --ioengine=filerename", 2, "b.0.0.r (a rename would replace it)", [true; 4]),
        ("--ioengine=filedelete", 2, "a.0.0 (not empty)", [true; 4]),
        ("--ioengine=filerename", 2, "a.0.0 (not empty)", [true; 4]),
        ("--ioengine=filecreate --filename=u", 2, "filename cannot name those", [true; 4]),
    ] {
        write();
        let name = if words.starts_with("--name") { "" } else { "--name=a " };
        let line = format!("fio {name}{words} --size=4k");
        let (code, _, err) = bench.run(&line.split(' ').collect::<Vec<_>>());
        assert!(code == status && err.contains(why), "{line}: {code} {err}");
        assert_eq!(left(), stay, "{line}: {err}");
    }
    assert!(!bench.path("b.0.0").exists(), "nothing is made before all was looked at");
}

/// Size, blocks and whether there is data, of fio 3.33: blocks of a filesystem may hold more than the file.
#[test]
fn files_to_be_looked_at_or_deleted_are_laid_out_like_others() {
    for engine in ["filestat", "filedelete", "filerename"] {
        for (options, size, allocated, filled) in [
            ("rw=read", 16384, true, true),
            ("fallocate=none", 16384, true, true),
            ("rw=write", 16384, true, false),
            ("rw=write\noverwrite=1", 16384, true, true),
            ("rw=write\nfallocate=keep", 0, true, false),
            ("rw=write\nfallocate=truncate", 16384, false, false),
            ("rw=write\nfallocate=none", 0, false, false),
        ] {
            let bench = Bench::new();
            bench.write(
                "job.fio",
                &format!("[j]\nioengine={engine}\ncreate_only=1\nnrfiles=2\nfilesize=16k\n{options}\n"),
            );
            results(&bench, "job.fio");
            let of = fs::metadata(bench.path("j.0.1")).expect("it was laid out");
            assert_eq!((of.len(), of.blocks() > 0), (size, allocated), "{engine} {options}");
            let has_data = fs::read(bench.path("j.0.1")).expect("ours").iter().any(|byte| *byte != 0);
            assert_eq!(has_data, filled, "{engine} {options}");
        }
    }
    let bench = Bench::new();
    bench.write("job.fio", "[j]\nioengine=filecreate\nnrfiles=2\nfilesize=16k\n");
    results(&bench, "job.fio");
    let of = fs::metadata(bench.path("j.0.1")).expect("it was created");
    assert_eq!((of.len(), of.blocks()), (0, 0), "a file that is created has no data, as with fio");
}

#[test]
fn operations_on_whole_files_are_no_reads() {
    let bench = Bench::new();
    bench.write("files.fio", "[global]\nnrfiles=40\nfilesize=4k\n[made]\nioengine=filecreate\nnumjobs=2\ngroup_reporting\n[gone]\nstonewall\nioengine=filedelete\n[other]\nstonewall\nioengine=filerename\n");
    let results = results(&bench, "files.fio");
    let jobs = &results["jobs"];
    assert_eq!(jobs[0]["file_operations"]["create"]["total_ios"], 80, "{results}");
    assert_eq!(jobs[1]["file_operations"]["delete"]["total_ios"], 40, "{results}");
    assert_eq!(jobs[2]["file_operations"]["rename"]["total_ios"], 40, "{results}");
    assert_eq!(counts(&results), [[0; 5]; 3]);
    assert!(bench.path("made.1.39").exists() && !bench.path("gone.0.0").exists());
    assert!(bench.path("other.0.39.r").exists() && !bench.path("other.0.39").exists());
}

#[test]
fn damage_between_writing_and_reading_is_found() {
    let bench = Bench::new();
    bench.write("write.fio", "[job]\nrw=write\nsize=64k\nbs=4k\nverify=crc32c\n");
    let written = results(&bench, "write.fio");
    assert_eq!(counts(&written), [[16, 16, 65536, 65536, 0]], "what was written is read back: {written}");
    let mut bytes = fs::read(bench.path("job.0.0")).expect("it was written");
    bytes[20_000] ^= 1;
    fs::write(bench.path("job.0.0"), bytes).expect("ours");
    bench.write("read.fio", "[job]\nrw=read\nsize=64k\nbs=4k\nverify=crc32c\n");
    let (code, out, err) = bench.run(&["fio", "read.fio", "--output-format=json"]);
    assert_eq!(code, 4, "{out}{err}");
    assert!(err.contains("job.0.0"), "{err}");
    let json: Value = serde_json::from_str(&out).expect("errors are not in the JSON");
    assert_ne!(json["jobs"][0]["error"], 0, "{json}");
}

#[test]
fn a_study_and_a_conversion_take_job_files() {
    let bench = Bench::new();
    bench.write("load.fio", "[load]\nrw=randwrite\nsize=128k\nbs=4k\nfilename=/tmp/elsewhere\n");
    let native = bench.succeed(&["convert", "load.fio"]);
    assert!(native.contains("file-name = \"elsewhere\"") && native.contains("directory = \"tmp\""), "{native}");
    bench.write("load.toml", &native);
    fs::create_dir(bench.path("files")).expect("it can be made");
    let directory = bench.path("files").display().to_string();
    for spec in ["load.toml", "load.fio"] {
        let json = bench.succeed(&["load", spec, "--directory", &directory, "--json"]);
        let report: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(report["operations"][0]["invocations"], 32, "{spec}");
    }
    assert!(bench.path("files/tmp/elsewhere").exists(), "it stays below the load's directory");
    bench.write(
        "study.toml",
        "title = \"fio\"\ndevice = { directory = \".\" }\n[factor.filesystem.here]\ntype = \"ext4\"\n[[step]]\nload = { fio = \"load.fio\" }\n",
    );
    let plan = bench.succeed(&["run", "study.toml", "--dry-run"]);
    assert!(plan.contains("load"), "{plan}");
}

#[test]
fn mistakes_have_places_and_cures() {
    let bench = Bench::new();
    bench.write("wrong.fio", "[job]\nrw=randred\nblocksiz=4k\nioengine=rbd\n");
    let (code, _, err) = bench.run(&["fio", "wrong.fio"]);
    assert_eq!(code, 2, "{err}");
    for told in ["wrong.fio:2:4", "wrong.fio:3:1", "did you mean `blocksize`", "`rbd` is not supported"] {
        assert!(err.contains(told), "{told} in {err}");
    }
    let (code, out, err) = bench.run(&["fio", "--help"]);
    assert_eq!((code, out.contains("--output-format")), (0, true), "{err}");
}

fn written(bench: &Bench, job: &str) -> Vec<usize> {
    bench.write("job.fio", &format!("[job]\nbs=4k\nsize=64k\nfilename=blocks\nbuffer_pattern=\"x\"0x79\n{job}\n"));
    results(bench, "job.fio");
    let bytes = fs::read(bench.path("blocks")).expect("it was written");
    fs::remove_file(bench.path("blocks")).expect("ours");
    let is_written = |block: &[u8]| block.iter().zip(b"xy".iter().cycle()).all(|(found, wanted)| found == wanted);
    let is_empty = |block: &[u8]| block.iter().all(|byte| *byte == 0);
    assert!(bytes.chunks(4096).all(|block| is_written(block) || is_empty(block)), "{job}");
    (0..16).filter(|block| is_written(&bytes[block * 4096..][..4096])).collect()
}

#[test]
fn blocks_lie_where_rw_says_and_hold_the_pattern() {
    let bench = Bench::new();
    assert_eq!(written(&bench, "rw=write:4k\nnumber_ios=5"), [0, 2, 4, 6, 8]);
    // Behind the end it begins anew.
    assert_eq!(written(&bench, "rw=write:12k"), [0, 4, 8, 12]);
    assert_eq!(written(&bench, "rw=write:-8k\nnumber_ios=4"), [0, 12, 13, 14]);
    let burst = written(&bench, "rw=randwrite:4\nnumber_ios=4");
    // Wherever the run begins, it goes on behind the file's end at its beginning.
    let in_a_row = |start: &usize| (0..4).all(|at| burst.contains(&((start + at) % 16)));
    assert!(burst.len() == 4 && burst.iter().any(in_a_row), "{burst:?}");
    let first = written(&bench, "rw=randwrite\nnorandommap\nrandom_distribution=zoned:100/25:0/75\nio_size=512k");
    assert!(!first.is_empty() && first.iter().all(|block| *block < 4), "{first:?}");
}

#[test]
fn each_clone_of_each_job_has_logs() {
    let bench = Bench::new();
    bench.write(
        "jobs.fio",
        "[global]\nrw=randread\nsize=256k\ntime_based\nruntime=1200ms\nlog_avg_msec=100\nwrite_iops_log=log\nwrite_lat_log=log\n\
         [one]\nnumjobs=2\n[two]\nrate_iops=100\n",
    );
    results(&bench, "jobs.fio");
    for clone in 1..=3 {
        let read = |kind: &str| -> Vec<Vec<u64>> {
            let text = fs::read_to_string(bench.path(&format!("log_{kind}.{clone}.log"))).expect("it was written");
            let line = |line: &str| line.split(", ").map(|field| field.parse().expect("a number")).collect();
            text.lines().map(line).collect()
        };
        let (rates, latencies) = (read("iops"), read("clat"));
        assert_eq!(latencies, read("lat"));
        assert!(latencies.len() >= rates.len() && rates.len() >= 3, "{clone}: {rates:?}");
        assert!(rates.iter().chain(&latencies).all(|line| line.len() == 5 && line[2..] == [0, 0, 0]));
        // That one is paced shows only in its own, and on average: who was held up catches up.
        let mean = rates.iter().map(|line| line[1]).sum::<u64>() / rates.len() as u64;
        assert_eq!(mean <= 150, clone == 3, "{clone}: {rates:?}");
    }
}

#[test]
fn counts_are_those_of_fio_itself() {
    if !tool("fio") {
        eprintln!("skipped: needs fio");
        return;
    }
    for job in [
        "rw=write\nsize=256k\nfsync=7",
        "rw=randread\nsize=1m\nbs=16k\nnumjobs=2",
        "rw=read\nsize=100k\nbs=64k",
        "rw=write\nsize=100k\nnrfiles=3",
        "rw=read\nsize=256k\nio_size=100k\nbs=64k",
        "rw=write\nfilename=one\nsize=64k\noffset_increment=64k\nnumjobs=3",
        "rw=randread\nsize=1m\nioengine=libaio\niodepth=16\niodepth_batch_complete=8\niodepth_low=4",
        "rw=read:4k\nsize=256k",
        "rw=write:-8k\nsize=256k",
        "rw=write:3k\nsize=64k",
        "rw=randread:8\nsize=256k",
        "rw=randread\nsize=256k\nrandom_distribution=zoned:50/5:30/15:20/",
        "rw=randread\nsize=256k\nrandom_distribution=pareto:0.3",
        "rw=read\nsize=64k\nthinktime=100\nthinktime_blocks=4",
        "rw=randwrite\nsize=256k\noverwrite=1\npre_read=1",
        "rw=write\nsize=64k\nnrfiles=3\nunlink=1",
        "rw=read\nsize=64k\ncreate_only=1",
        "rw=write\nsize=256k\nverify=crc32c\nverify_state_save=0\nio_size=64k",
        "rw=write\nsize=256k\nverify=crc32c\nverify_state_save=0\nnumber_ios=10\noverwrite=1",
        "rw=randwrite\nsize=256k\nverify=md5\nverify_state_save=0\nio_size=96k\nnrfiles=2",
        "rw=randwrite\nsize=256k\nverify=md5\nverify_state_save=0\nioengine=libaio\niodepth=8\ndirect=1\nnumber_ios=30",
        "rw=write\nsize=104k\nbs=4k\nzonemode=strided\nzonesize=16k\nzoneskip=16k",
        "rw=write\nfilesize=16k\nnrfiles=30\nopenfiles=1\ncreate_on_open=1",
        "rw=randread\nfilesize=16k\nnrfiles=30\nopenfiles=4\nioengine=io_uring\niodepth=8",
        "rw=randwrite\nfilesize=16k\nnrfiles=30\nopenfiles=4\ncreate_on_open=1\nfile_service_type=random",
        "rw=randwrite\nsize=100k\nfilename=one:two\nba=8k",
        "rw=randread\nsize=12345\nba=4k",
        "rw=randwrite\nsize=12345\nfsync=1",
        "rw=write\nsize=100k\nnrfiles=3\nfsync=1",
        "rw=randwrite\nsize=100k\nbs=16k\nfsync=3\nioengine=libaio\niodepth=2",
        "rw=randwrite\nsize=64k\nio_size=256k\ndo_verify=0",
        "rw=randread\nsize=100k\nnrfiles=3\nnorandommap=1",
        "rw=randwrite\nsize=112k\nnrfiles=7\nrandom_distribution=zipf:1.1",
        "rw=randread\nsize=100k\nnrfiles=3\npercentage_random=50",
        "rw=write\nsize=256k\nverify=crc32c\nverify_state_save=0\nverify_backlog=10",
        "rw=randwrite\nsize=256k\nverify=md5\nverify_state_save=0\nverify_backlog=16\nverify_backlog_batch=16",
        "rw=read\nsize=256k\nioengine=splice\nbs=128k",
        "rw=randwrite\nsize=100k\nioengine=splice\nbs=1k",
    ] {
        let bench = Bench::new();
        bench.write("job.fio", &format!("[job]\n{job}\n"));
        fs::create_dir(bench.path("theirs")).expect("it can be made");
        let theirs = Command::new("fio")
            .args(["../job.fio", "--output-format=json"])
            .current_dir(bench.path("theirs"))
            .output()
            .expect("fio starts");
        let theirs: Value = serde_json::from_slice(&theirs.stdout).expect("JSON");
        let ours = results(&bench, "job.fio");
        assert_eq!(counts(&ours), counts(&theirs), "{job}");
        for entry in fs::read_dir(bench.path("theirs")).expect("readable").flatten() {
            let length = |path: &Path| fs::metadata(path).map(|file| file.len()).ok();
            let name = entry.file_name();
            assert_eq!(length(&bench.path("").join(&name)), length(&entry.path()), "{job}: {name:?}");
        }
    }
}

/// What fio logged, with its pauses.
#[test]
fn a_log_is_carried_out_as_fio_does_it() {
    let bench = Bench::new();
    let words = ["fio", "--name=a", "--read_iolog=a.log", "--output-format=json"];
    let ours = || serde_json::from_str::<Value>(&bench.succeed(&words)).expect("JSON");
    bench.write("f", &"x".repeat(16 << 10));
    bench.write(
        "a.log",
        "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf wait 120 0\nf write 4096 8192\nf sync 0 0\nf close\n",
    );
    let results = ours();
    assert_eq!(counts(&results), [[1, 1, 4096, 8192, 1]], "{results}");
    assert!(results["jobs"][0]["read"]["runtime"].as_u64().is_some_and(|ms| ms >= 120), "{results}");
    for (words, why) in [
        (&["--read_iolog=a.log", "--rate=1m"][..], "`rate` is not supported with read_iolog"),
        (&["--read_iolog=a.log", "--ioengine=libaio"], "carried out by ioengine=psync"),
        (&["--read_iolog=f"], "no log of fio's version 2 or 3"),
        (&["--read_iolog=a.log", "--readonly"], "--readonly says that none may"),
        (&["--read_iolog=a.log", "--name=b", "--rw=read", "--size=4k"], "a load beside a job that carries out a log"),
    ] {
        let (status, _, told) = bench.run(&[&["fio", "--name=a"], words].concat());
        assert!(status == 2 && told.contains(why), "{words:?}: {told}");
    }
    if !tool("fio") {
        return eprintln!("skipped: needs fio");
    }
    let theirs = |words: &[&str]| {
        let words = [&["--name=a", "--output-format=json"], words].concat();
        let output = Command::new("fio").args(words).current_dir(bench.path("")).output().expect("fio starts");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    fs::remove_file(bench.path("a.log")).expect("it is there");
    let load = ["--rw=randrw", "--bs=4k", "--size=128k", "--nrfiles=2", "--fsync=5", "--thinktime=500"];
    theirs(&[&load[..], &["--write_iolog=a.log"]].concat());
    assert_eq!(counts(&ours()), counts(&theirs(&["--read_iolog=a.log"])));
}

#[test]
fn logs_of_several_job_files_are_not_carried_out_at_once() {
    let bench = Bench::new();
    bench.write("f", &"x".repeat(4096));
    bench.write("a.log", "fio version 2 iolog\nf read 0 4096\n");
    bench.write("one.fio", "[a]\nread_iolog=a.log\n");
    bench.write("two.fio", "[b]\nread_iolog=a.log\n");
    let (code, _, err) = bench.run(&["fio", "one.fio", "two.fio"]);
    assert!(code == 2 && err.contains("one after the other") && err.contains("two.fio"), "{err}");
    bench.write("both.fio", "[a]\nread_iolog=a.log\n[b]\nread_iolog=a.log\n");
    assert_eq!(counts(&results(&bench, "both.fio")), [[1, 0, 4096, 0, 0]; 2]);
}

#[test]
fn errors_of_a_log_are_those_of_its_job() {
    let bench = Bench::new();
    bench.write("f", &"x".repeat(4096));
    bench.write("behind.log", &format!("fio version 2 iolog\nf read 0 4096\n{}", "f read 8192 4096\n".repeat(1000)));
    for action in ["open", "sync 0 0", "write 0 4096"] {
        bench.write("none.log", &format!("fio version 2 iolog\nnodir/f {action}\n"));
        let words = ["fio", "--output-format=json", "--continue_on_error=all", "--name=a", "--read_iolog=behind.log"];
        let words = [&words[..], &["--name=b", "--read_iolog=none.log"]].concat();
        let (status, out, told) = bench.run(&words);
        let results: Value = serde_json::from_str(&out).expect("JSON");
        let errors = [0, 1].map(|job| ["error", "total_err"].map(|of| results["jobs"][job][of].as_u64()));
        // An open is of no kind that is counted.
        let counted = u64::from(action != "open");
        assert_eq!((status, errors), (4, [[Some(5), Some(1000)], [Some(2), Some(counted)]]), "{action}: {results}");
        // Like fio, with the operations that failed; only one moved something.
        let written = u64::from(action.starts_with("write"));
        assert_eq!(counts(&results), [[1001, 0, 4096, 0, 0], [0, written, 0, 0, 0]], "{action}");
        assert_eq!(results["jobs"][0]["read"]["clat_ns"]["N"], 1);
        assert!(told.contains("read of f: ") && told.contains("(x1000)") && told.contains("(x1)"), "{told}");
    }
}

/// As root an open would make a file in the device's place.
#[test]
fn a_log_makes_no_file_where_a_device_is_missing() {
    let bench = Bench::new();
    let device = format!("/dev/fstone-none-{}", std::process::id());
    std::os::unix::fs::symlink(&device, bench.path("link")).expect("it can be made");
    std::os::unix::fs::symlink("/dev", bench.path("below")).expect("it can be made");
    let through = device.replacen("/dev", "below", 1);
    for (name, word) in [
        (device.as_str(), "--direct=0"),
        ("link", "--direct=0"),
        (through.as_str(), "--direct=0"),
        ("f", "--replay_redirect=link"),
    ] {
        bench.write("a.log", &format!("fio version 2 iolog\n{name} open\n{name} write 0 4096\n"));
        let (status, _, told) = bench.run(&["fio", "--name=a", "--read_iolog=a.log", word]);
        let made = fs::remove_file(&device).is_ok();
        assert!(!made && status == 3 && told.contains("there is no such device"), "{name} {word}: {told}");
        assert!(!bench.path("f").exists());
    }
    let shared = device.replacen("/dev", "/dev/shm", 1);
    bench.write("a.log", &format!("fio version 2 iolog\n{shared} write 0 4096\n"));
    bench.succeed(&["fio", "--name=a", "--read_iolog=a.log", &format!("--filename={shared}")]);
    fs::remove_file(shared).expect("it was made");
}

#[test]
fn a_log_writes_no_file_elsewhere_that_its_job_does_not_name() {
    let bench = Bench::new();
    let elsewhere = tempfile::tempdir().expect("writable");
    let file = elsewhere.path().join("f");
    let words = ["fio", "--name=a", "--read_iolog=a.log"];
    let other = format!("{}/../f", elsewhere.path().display());
    for name in [file.to_str().expect("UTF-8"), "../f", &other] {
        bench.write("a.log", &format!("fio version 2 iolog\n{name} write 0 4096\n"));
        let (status, _, told) = bench.run(&words);
        assert!(status == 2 && told.contains(&format!("name it with filename={name}")), "{status}: {told}");
    }
    let log =
        |action: &str| bench.write("a.log", &format!("fio version 2 iolog\n{} {action} 0 4096\n", file.display()));
    log("read");
    assert!(bench.run(&words).0 == 4 && !file.exists(), "a file that is only read is not made");
    log("write");
    bench.succeed(&[&words[..], &[&format!("--filename={}", file.display())]].concat());
    assert_eq!(file.metadata().map(|file| file.len()).ok(), Some(4096));
}

/// Calls and their order are fio's, and both carry out what fstone wrote.
#[test]
fn a_log_is_written_as_fio_does_it() {
    let bench = Bench::new();
    let words = |log: &str, options: &str| {
        let line = format!("fio --name=a --bs=4k --size=64k --write_iolog={log} --output-format=json {options}");
        line.split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let ran = |words: &[String]| bench.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    for (options, why) in [
        ("--rw=read --numjobs=2", "several jobs or clones"),
        ("--rw=read --name=b --rw=read --size=4k --write_iolog=x.log", "several jobs or clones"),
        ("--rw=read --ioengine=null", "moves no data"),
    ] {
        let (status, _, told) = ran(&words("x.log", options));
        assert!(status == 2 && told.contains(why) && !bench.path("x.log").exists(), "{options}: {told}");
    }
    if !tool("fio") {
        return eprintln!("skipped: needs fio");
    }
    let fio = |words: &[String]| {
        let output = Command::new("fio").args(&words[1..]).current_dir(bench.path("")).output().expect("fio starts");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let lines = |log: &str| {
        let text = fs::read_to_string(bench.path(log)).expect("readable");
        // What is behind a sync is the last place in fio, and means nothing.
        let call = |line: &str| match line.split(' ').collect::<Vec<_>>()[1..] {
            [name, call @ ("sync" | "datasync"), ..] => format!("{name} {call}"),
            ref words => words.join(" "),
        };
        text.lines().map(call).collect::<Vec<_>>()
    };
    for options in [
        "--rw=write --verify=crc32c --verify_state_save=0",
        "--rw=rw --rwmixread=100 --ioengine=libaio --iodepth=4 --direct=1",
        "--rw=write --fdatasync=3 --ioengine=io_uring --filename=g",
        "--rw=write --end_fsync=1 --ioengine=mmap",
    ] {
        let (status, out, told) = ran(&words("ours.log", options));
        assert_eq!(status, 0, "{options}: {told}");
        let results: Value = serde_json::from_str(&out).expect("JSON");
        fio(&words("theirs.log", options));
        assert_eq!(lines("ours.log"), lines("theirs.log"), "{options}");
        let again: Vec<String> =
            ["fio", "--name=a", "--read_iolog=ours.log", "--output-format=json"].map(str::to_owned).into();
        let (status, out, told) = ran(&again);
        assert_eq!(status, 0, "{options}: {told}");
        let replayed: Value = serde_json::from_str(&out).expect("JSON");
        // Only fstone's JSON has fdatasyncs.
        let compared = if options.contains("fdatasync") { 4 } else { 5 };
        assert_eq!(counts(&replayed)[0][..compared], counts(&fio(&again))[0][..compared], "{options}");
        // Of fdatasyncs and the fsync at the end a load's JSON has none.
        assert_eq!(counts(&replayed)[0][..4], counts(&results)[0][..4], "{options}");
        let (status, _, told) = ran(&words("ours.log", options));
        assert!(status == 2 && told.contains("remove it first"), "{told}");
        for log in ["ours.log", "theirs.log"] {
            fs::remove_file(bench.path(log)).expect("it is there");
        }
    }
}

#[test]
fn no_output_is_written_in_the_place_of_another_file() {
    let bench = Bench::new();
    let text = |name: &str| fs::read_to_string(bench.path(name)).unwrap_or_default();
    bench.write("f", &"x".repeat(8192));
    bench.write("job.fio", "[a]\nrw=read\nfilename=f\nsize=4k\n");
    fs::create_dir(bench.path("d")).expect("made");
    bench.write("d/inc.fio", "rw=read\n");
    bench.write("including.fio", "[a]\nfilename=f\nsize=4k\ninclude d/inc.fio\n");
    bench.write("b.log", "fio version 2 iolog\nb.log write 0 4096\n");
    fs::hard_link(bench.path("f"), bench.path("same")).expect("linked");
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, bench.path(name)).expect("linked");
    link("x.log", "link");
    link(".", "here");
    let a = "--name=a --rw=write --size=8k";
    let read = "--name=a --rw=read --size=4k --filename=f";
    for (line, why) in [
        (
            format!("{a} --write_iolog=x.log --name=b --rw=write --size=8k --write_iolog=./x.log"),
            "another of its outputs",
        ),
        (format!("{a} --write_iolog=x.log --name=b --rw=write --size=8k --write_iolog=link"), "another of its outputs"),
        (format!("{a} --write_iolog=x.log --output=here/x.log"), "another of its outputs"),
        (format!("{a} --write_bw_log=x --output=x_bw.1.log"), "another of its outputs"),
        (
            format!(
                "{a} --per_job_logs=0 --write_bw_log=x --name=b --rw=write --size=8k --per_job_logs=0 --write_bw_log=here/x"
            ),
            "another of",
        ),
        (format!("{a} --write_iolog=a.0.0"), "a file of its jobs"),
        (format!("{a} --nrfiles=2 --write_iolog=here/a.0.1"), "a file of its jobs"),
        (format!("{a} --directory=d --output=d/a.0.0"), "a file of its jobs"),
        (format!("{read} --output=f"), "a file of its jobs"),
        (format!("{read} --output=same"), "a file of its jobs"),
        ("job.fio --output=here/job.fio".to_owned(), "a file that this command reads"),
        ("including.fio --output=here/d/inc.fio".to_owned(), "a file that this command reads"),
        ("--name=a --read_iolog=b.log --output=b.log".to_owned(), "a file that this command reads"),
        ("--name=a --read_iolog=b.log".to_owned(), "a file that this command reads"),
        ("--name=a --read_iolog=b.log --replay_redirect=out --output=out".to_owned(), "another of its outputs"),
        (format!("{a} --directory=d --filename=x:y~z --write_iolog=x.log"), "names files with blanks"),
    ] {
        let words: Vec<String> = format!("fio {line}").split(' ').map(|word| word.replace('~', " ")).collect();
        let (status, _, told) = bench.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(status == 2 && told.contains(why), "{line}: {status} {told}");
        assert!(!["x.log", "a.0.0", "d/a.0.0", "out"].iter().any(|name| bench.path(name).exists()), "{line}");
    }
    assert_eq!((text("f"), text("job.fio").len(), text("d/inc.fio").len()), ("x".repeat(8192), 31, 8));
    assert!(text("b.log").starts_with("fio version 2"));
}

/// A start that fails leaves nothing that stops the next one, and a log that could not be written does not cost the others.
#[test]
fn a_log_has_its_name_when_the_load_has_ended() {
    let bench = Bench::new();
    fs::create_dir(bench.path("d")).expect("made");
    let words = |file: &str| format!("fio --name=a --rw=write --size=8k --filename={file} --write_iolog=x.log");
    let run = |line: &str| bench.run(&line.split(' ').collect::<Vec<_>>());
    assert!(run(&words("d")).0 != 0 && !bench.path("x.log").exists());
    bench.write("x.log", "");
    std::os::unix::fs::symlink("x.log", bench.path("link")).expect("linked");
    assert_eq!(run(&words("f").replace("x.log", "link")).0, 0);
    let log = fs::read_to_string(bench.path("x.log")).expect("written");
    assert!(bench.path("link").is_symlink() && log.ends_with("f write 4096 4096\n") || log.contains(" close"), "{log}");
    let left = fs::read_dir(bench.path("")).expect("readable").count();
    assert_eq!(run(&words("f")).0, 2, "it is there");
    assert_eq!(fs::read_dir(bench.path("")).expect("readable").count(), left);
}

#[test]
fn a_log_makes_no_file_where_nothing_may_be_written() {
    let bench = Bench::new();
    bench.write("a.log", "fio version 2 iolog\nf open\nf read 0 4096\n");
    let words = ["fio", "--name=a", "--read_iolog=a.log", "--readonly"];
    let (status, _, told) = bench.run(&words);
    assert!(status != 0 && told.contains("No such file") && !bench.path("f").exists(), "{status}: {told}");
    bench.write("f", &"x".repeat(4096));
    bench.succeed(&words);
}

#[test]
fn a_thread_that_cannot_be_started_ends_the_logs() {
    if !tool("strace") {
        return eprintln!("skipped: needs strace");
    }
    let bench = Bench::new();
    bench.write("a.log", "fio version 2 iolog\nf write 0 4096\n");
    let fstone = bench.command(&["fio", "--name=a", "--read_iolog=a.log", "--numjobs=8"]);
    let mut strace = Command::new("timeout");
    strace.args(["-s", "KILL", "60", "strace", "-f", "-qq", "-o", "calls", "-e"]);
    strace.arg("inject=clone,clone3:error=EAGAIN:when=5+");
    strace.arg(fstone.get_program()).args(fstone.get_args()).current_dir(bench.path(""));
    let ended = strace.output().expect("strace starts");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(told.contains("of 8 could not be started") && told.contains("raise `ulimit -u`"), "{told}");
    assert!(!bench.path("f").exists() && ended.status.code() == Some(5), "{:?}: {told}", ended.status);
}

#[test]
fn the_memory_of_a_log_is_for_what_it_moves() {
    let bench = Bench::new();
    bench.write("a.log", "fio version 2 iolog\nf write 0 4096\nf sync 0 1073741824\nf datasync 0 4294967295\n");
    let fstone = bench.command(&["fio", "--name=a", "--read_iolog=a.log"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 1000000; exec \"$@\"", "sh"]).arg(fstone.get_program()).args(fstone.get_args());
    let ended = limited.current_dir(bench.path("")).output().expect("it starts");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn a_pipe_is_no_log() {
    let bench = Bench::new();
    assert!(Command::new("mkfifo").arg(bench.path("pipe")).status().is_ok_and(|status| status.success()));
    let fstone = bench.command(&["fio", "--name=a", "--read_iolog=pipe"]);
    let mut limited = Command::new("timeout");
    limited.args(["-s", "KILL", "60"]).arg(fstone.get_program()).args(fstone.get_args());
    let ended = limited.current_dir(bench.path("")).output().expect("it starts");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(2) && told.contains("no regular file"), "{told}");
}

/// The calls are those of fio 3.33, which also opens and syncs each file again at the end; of a queue all requests of a file are done before it is closed.
#[test]
fn files_are_made_opened_and_closed_one_by_one() {
    if !tool("strace") {
        eprintln!("skipped: needs strace");
        return;
    }
    for (more, each) in [
        ("rw=write\nfsync_on_close=1", "CWWWWFX"),
        ("rw=write\nend_fsync=1\nioengine=libaio\ndirect=1\niodepth=8", "CX"),
        ("rw=randread\nioengine=mmap", "X"),
    ] {
        let bench = Bench::new();
        bench
            .write("job.fio", &format!("[j]\nbs=4k\nfilesize=16k\nnrfiles=3\nopenfiles=1\ncreate_on_open=1\n{more}\n"));
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-y", "-o", "calls", "-e", "trace=openat,openat2,pwrite64,fsync,close"]);
        let fstone = bench.command(&["fio", "job.fio"]);
        strace.arg(fstone.get_program()).args(fstone.get_args()).current_dir(bench.path(""));
        let ended = strace.output().expect("strace starts");
        assert!(ended.status.success(), "{more}: {}", String::from_utf8_lossy(&ended.stderr));
        let calls = fs::read_to_string(bench.path("calls")).expect("recorded");
        let letter = |call: &str| match call.split_once(' ')?.1.trim_start() {
            call if !call.contains("j.0.") => None,
            call if call.contains("O_CREAT") => Some('C'),
            call if call.starts_with("pwrite64") => Some('W'),
            call if call.starts_with("fsync") => Some('F'),
            call if call.starts_with("close") => Some('X'),
            _ => None,
        };
        let letters: String = calls.lines().filter_map(letter).collect();
        assert!(letters.contains(&each.repeat(2)), "{more}: {letters}\n{calls}");
    }
}

/// In a mix only writes count. fio 3.33 itself syncs again after each read that follows; its manual says: after so many writes.
#[test]
fn fsyncs_are_counted_by_writes() {
    let bench = Bench::new();
    for (job, every) in [("rw=randrw\nfsync=8\n", 8), ("rw=rw\nfsync=8\nnrfiles=3\nrwmixread=80\n", 8)] {
        bench.write("job.fio", &format!("[job]\nsize=1m\nbs=4k\n{job}"));
        let results = results(&bench, "job.fio");
        let [_, writes, .., syncs] = counts(&results)[0];
        // Not after the last, where there is one file.
        assert!((writes - 1) / every == syncs || writes / every == syncs, "{job}: {results}");
    }
    // As strace shows of fio: 9 fsyncs and 3 fdatasyncs, of which its JSON has the first.
    bench.write("both.fio", "[job]\nrw=write\nsize=160k\nbs=4k\nfsync=4\nfdatasync=6\n");
    assert_eq!(counts(&results(&bench, "both.fio"))[0][4], 12);
}

#[test]
fn figures_are_of_each_job_while_it_is_at_work() {
    let bench = Bench::new();
    bench.write(
        "jobs.fio",
        "[global]\nrw=randread\nsize=256k\ntime_based\nruntime=1200ms\nwrite_iops_log=log\n[one]\nrate_iops=400\n\
         [two]\nstonewall\nrate_iops=100\nstartdelay=500ms\n",
    );
    let results = results(&bench, "jobs.fio");
    for (job, rate) in [(0, 400.0), (1, 100.0)] {
        let job = &results["jobs"][job];
        // Also the time after the last operation, when it waits for its next turn.
        assert!(job["read"]["runtime"].as_u64().is_some_and(|ms| ms >= 1200), "{job}");
        let mean = job["read"]["iops_mean"].as_f64().expect("a number");
        assert!(job["read"]["iops_samples"] == 2 && mean > 0.5 * rate && mean < 1.2 * rate, "{rate}: {job}");
        assert!(job["ctx"].as_u64().is_some_and(|count| count > 0 && count < 5000), "{job}");
    }
    let log = fs::read_to_string(bench.path("log_iops.2.log")).expect("it was written");
    let times: Vec<&str> = log.lines().filter_map(|line| line.split(", ").next()).collect();
    assert_eq!(times, ["500", "1000"], "{log}");
}

#[test]
fn only_what_was_written_is_read_back() {
    let verified = "verify=crc32c\nsize=4m\nbs=4k\n";
    for (job, exact) in [
        ("rw=write\nrate_iops=400\nruntime=300ms\n", true),
        ("rw=randrw\nrate_iops=200\nruntime=300ms\nramp_time=200ms\n", false),
        ("rw=randwrite\nbssplit=4k/50:12k/50\nio_size=200k\n", true),
        ("rw=write\nfilename=x:y:z\nnumber_ios=7\n", true),
    ] {
        let bench = Bench::new();
        bench.write("job.fio", &format!("[job]\n{verified}{job}"));
        let results = results(&bench, "job.fio");
        let [read, written, ..] = counts(&results)[0];
        assert!(written > 5 && written < 500, "{job}: {results}");
        // A mix reads by itself, too, and what its ramp wrote is read back as well.
        assert!(if exact { read == written } else { read >= written && read < 1000 }, "{job}: {results}");
    }
}

/// As with fio, whose random map knows what blocks of which sizes have covered.
#[test]
fn random_blocks_of_several_sizes_cover_each_place_once() {
    let bench = Bench::new();
    for sizes in ["bssplit=4k/40:8k/30:20k/30", "bsrange=4k-16k", "bsrange=4k-16k\nioengine=libaio\niodepth=8"] {
        // `written` gives the size first, and the job's own options come behind.
        assert_eq!(written(&bench, &format!("rw=randwrite\n{sizes}")), (0..16).collect::<Vec<_>>(), "{sizes}");
    }
    bench.write("job.fio", "[job]\nrw=randread\nsize=4m\nbsrange=4k-64k\n");
    assert_eq!(counts(&results(&bench, "job.fio"))[0][2], 4 << 20);
}

/// Each of many jobs has a name of its own, and each file of a job.
#[test]
fn a_workload_file_that_could_not_be_read_is_not_written() {
    let bench = Bench::new();
    let name = "x".repeat(150);
    let jobs: String = (0..1000).map(|job| format!("[{name}{job}]\nrw=write\nsize=4k\n")).collect();
    bench.write("many.fio", &jobs);
    let (code, out, err) = bench.run(&["convert", "many.fio"]);
    let words = "but fstone reads at most 1 MiB: run the file as it is";
    assert!(code == 2 && out.is_empty() && err.contains(words), "{code}: {} bytes; {err}", out.len());
}

/// A file that is there gives a job without `size` its own, and goes when the job says so.
#[test]
fn a_job_works_on_what_is_there() {
    let bench = Bench::new();
    bench.write("there", &"x".repeat(100_000));
    bench.write("read.fio", "[job]\nrw=read\nbs=4k\nfilename=there\n");
    let reads = |results: &Value| counts(results)[0][0];
    assert_eq!(reads(&results(&bench, "read.fio")), 24);
    bench.write("read.fio", "[job]\nrw=read\nbs=4k\nfilename=there\nsize=50%\nunlink=1\n");
    assert_eq!(reads(&results(&bench, "read.fio")), 12);
    assert!(!bench.path("there").exists() && bench.path("read.fio").exists());
    let (code, _, err) = bench.run(&["fio", "read.fio"]);
    assert!(code == 2 && err.contains("not there"), "{code}: {err}");
}

#[test]
fn readonly_lets_no_job_write() {
    let bench = Bench::new();
    bench.write("keep", &"a".repeat(8192));
    let jobs = |rw: &str| {
        let rw = format!("--rw={rw}");
        bench.run(&["fio", "--readonly", "--name=j", "--filename=keep", "--size=8k", "--bs=4k", &rw])
    };
    let (code, _, err) = jobs("write");
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("job j writes, and --readonly says that none may"), "{err}");
    assert_eq!(std::fs::read_to_string(bench.path("keep")).expect("there"), "a".repeat(8192));
    let (code, _, err) = jobs("read");
    assert_eq!(code, 0, "{err}");
    // Nor does it make or lengthen what is not there.
    for words in [
        "--rw=read",
        "--rw=read --filename=d/f",
        "--rw=read --filename=keep",
        "--ioengine=filestat",
        "--ioengine=dirstat",
    ] {
        let line = format!("fio --readonly --name=j --size=64k {words}");
        let (code, _, err) = bench.run(&line.split(' ').collect::<Vec<_>>());
        assert!(code != 0 && !["j.0.0", "d"].iter().any(|name| bench.path(name).exists()), "{line}: {code}: {err}");
    }
    assert_eq!(std::fs::read_to_string(bench.path("keep")).expect("there"), "a".repeat(8192));
}

/// As fio 3.33 does: writes and reads of what was written alternate, and nothing is read back again at the end.
#[test]
fn what_was_written_is_read_back_while_others_are_written() {
    if !tool("strace") {
        eprintln!("skipped: needs strace");
        return;
    }
    for (rw, backlog, wanted) in
        [("write", 3, "WWWRRRWWWRRRWWRR"), ("randwrite", 5, "WWWWWRRRRRWWWRRR"), ("write", 20, "WWWWWWWWRRRRRRRR")]
    {
        let bench = Bench::new();
        let job = format!("[j]\nrw={rw}\nbs=4k\nsize=32k\nverify=crc32c\nverify_backlog={backlog}\n");
        bench.write("job.fio", &job);
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-y", "-o", "calls", "-e", "trace=pread64,pwrite64"]);
        let fstone = bench.command(&["fio", "job.fio"]);
        strace.arg(fstone.get_program()).args(fstone.get_args()).current_dir(bench.path(""));
        assert!(strace.output().expect("strace starts").status.success(), "{job}");
        let calls = fs::read_to_string(bench.path("calls")).expect("recorded");
        let of = |call: &str| -> Option<(char, String)> {
            let call = call.split_once(' ')?.1.trim_start();
            let letter = if call.starts_with("pwrite64") { 'W' } else { 'R' };
            let offset = call.rsplit_once(')')?.0.rsplit_once(", ")?.1;
            call.contains("j.0.0").then(|| (letter, offset.to_owned()))
        };
        let all: Vec<(char, String)> = calls.lines().filter_map(of).collect();
        assert_eq!(all.iter().map(|(letter, _)| *letter).collect::<String>(), wanted, "{calls}");
        let offsets = |wanted: char| -> Vec<&str> {
            all.iter().filter(|(letter, _)| *letter == wanted).map(|(_, offset)| offset.as_str()).collect()
        };
        assert_eq!(offsets('W'), offsets('R'), "{calls}");
    }
}

/// fio 3.33 ends such a job with EIO after three seconds: two to settle, and the first interval.
#[test]
fn a_job_that_is_too_slow_ends_with_an_error() {
    let bench = Bench::new();
    let run = |least: &str| {
        let job = "rw=read\nbs=4k\nsize=1m\ntime_based=1\nruntime=6\nrate_iops=100";
        bench.write("job.fio", &format!("[job]\n{job}\n{least}\n[other]\nrw=read\nsize=64k\n"));
        let (code, out, err) = bench.run(&["fio", "job.fio", "--output-format=json"]);
        let json: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
        (code, json["jobs"][0]["error"].clone(), json["jobs"][0]["read"]["runtime"].as_u64().expect("a time"), err)
    };
    let (code, error, ran_ms, err) = run("thinktime=20000\nrate_iops_min=90\nrate_iops=99");
    assert_eq!((code, error), (4, 5.into()), "{err}");
    assert!((2500..4500).contains(&ran_ms) && err.contains("operations a second"), "{ran_ms}: {err}");
    let (code, error, ran_ms, err) = run("rate_iops_min=50");
    assert_eq!((code, error, ran_ms >= 5900), (0, 0.into(), true), "{err}");
    let trims = ["fio", "--name=j", "--size=4k", "--ioengine=falloc", "--rw=trim"];
    for judged in ["--rate_iops_min=20,20,20", "--ss=iops:1% --ss_dur=9"] {
        let (code, _, err) = bench.run(&trims.into_iter().chain(judged.split(' ')).collect::<Vec<_>>());
        assert!(code == 2 && err.contains("of trims"), "{judged}: {err}");
    }
    let (code, _, err) = bench.run(&["fio", "--name=j", "--size=4k", "--rate_iops=10", "--rate_iops_min=20"]);
    assert!(code == 2 && err.contains("above the rate itself"), "{err}");
}

/// fio 3.33 reads 300 times and writes 75 times in three seconds, whatever `rwmixread` says.
#[test]
fn reads_and_writes_of_a_mix_keep_a_rate_each() {
    let bench = Bench::new();
    let job = "rw=randrw\nbs=4k\nsize=1m\ntime_based\nruntime=1500ms\nrwmixread=10";
    for rates in [
        "rate_iops=100,25",
        "rate=400k,100k",
        "rate=400k,100k\nioengine=libaio\niodepth=8",
        "rate_iops=100,25\nramp_time=300ms\nfilename=x:y",
    ] {
        bench.write("job.fio", &format!("[job]\n{job}\n{rates}\n"));
        let job = &results(&bench, "job.fio")["jobs"][0];
        let [reads, writes] = ["read", "write"].map(|of| job[of]["total_ios"].as_u64().expect("a count"));
        assert!(reads <= 150 && writes <= 38 && reads > 2 * writes && writes > 10, "{rates}: {reads} {writes}");
    }
    // Without a rate it goes whenever a write is not due.
    bench.write("job.fio", &format!("[job]\n{job}\nrate_iops=,20\n"));
    let job = &results(&bench, "job.fio")["jobs"][0];
    let [reads, writes] = ["read", "write"].map(|of| job[of]["total_ios"].as_u64().expect("a count"));
    assert!(writes <= 30 && reads > 20 * writes, "{reads} {writes}");
    // Of each direction what it has to keep: writes come to theirs, and reads do not.
    let least = "rw=randrw\nbs=4k\nsize=1m\ntime_based\nruntime=4\nrate_iops=50,100";
    for (options, ends) in [("rate_iops_min=20,", false), ("rate_iops_min=49,\nthinktime=20000", true)] {
        bench.write("job.fio", &format!("[job]\n{least}\n{options}\n"));
        let (code, _, err) = bench.run(&["fio", "job.fio"]);
        assert_eq!((code == 4, err.contains("where 0 and 49 are the least")), (ends, ends), "{options}: {err}");
    }
}

/// What etcd's job asks: how long until a write is durable.
#[test]
fn a_write_and_the_fdatasync_behind_it_are_a_commit() {
    let bench = Bench::new();
    bench.write("wal.fio", "[wal]\nrw=write\nbs=2300\nsize=46000\nfdatasync=1\n");
    fs::create_dir(bench.path("wal")).expect("made");
    let json = bench.succeed(&["load", "wal.fio", "--directory", "wal", "--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let of = &json["group_fsyncs"][0];
    assert_eq!((&of["periodic"], &of["commits"]["count"]), (&19.into(), &19.into()), "{of}");
}

/// A rate is one of reads and writes. What has to be durable is so at once, and not when the next write is due.
#[test]
fn an_fsync_does_not_wait_for_the_next_write_of_a_rate() {
    let bench = Bench::new();
    for engine in ["--ioengine=psync", "--ioengine=libaio"] {
        let words =
            ["fio", "--name=j", "--rw=write", "--bs=4k", "--size=28k", "--rate_iops=5", "--fdatasync=1", engine];
        let mut command = Command::new("strace");
        command.args(["-f", "-ttt", "-e", "trace=pwrite64,pwritev,io_submit,fdatasync", "-o", "log"]);
        command.arg(env!("CARGO_BIN_EXE_fstone")).args(words).current_dir(bench.path(""));
        let Ok(output) = command.output() else {
            eprintln!("skipped: strace is not installed");
            return;
        };
        assert!(output.status.success(), "{output:?}");
        let log = fs::read_to_string(bench.path("log")).expect("a log");
        let calls = log.lines().filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let at: f64 = words.next()?.parse().ok()?;
            Some((at, words.next()?.starts_with("fdatasync")))
        });
        // 28 KiB are laid out without such calls.
        let calls: Vec<(f64, bool)> = calls.collect();
        let mut waits: Vec<f64> =
            calls.windows(2).filter(|two| !two[0].1 && two[1].1).map(|two| two[1].0 - two[0].0).collect();
        waits.sort_by(f64::total_cmp);
        assert!(waits.len() == 6 && waits[waits.len() / 2] < 0.1, "{engine}, every 200 ms: {waits:?}\n{log}");
    }
}

/// fio's JSON block, key by key.
#[test]
fn a_job_ends_when_its_rate_is_steady() {
    let bench = Bench::new();
    let of = |steady: &str| {
        let job = "rw=read\nbs=4k\nsize=1m\ntime_based=1\nruntime=20\nrate_iops=200";
        bench.write("job.fio", &format!("[job]\n{job}\n{steady}\n"));
        let json = results(&bench, "job.fio");
        (json["jobs"][0]["steadystate"].clone(), json["jobs"][0]["read"]["runtime"].as_u64().expect("a time"))
    };
    let (steady, ran_ms) = of("ss=iops:20%\nss_dur=3\nss_ramp=1");
    // fio 3.33 takes 4.8 s: the ramp, the rest of the second in which it ends, and the samples.
    assert!((4500..8000).contains(&ran_ms), "{ran_ms}: {steady}");
    assert_eq!(
        (&steady["ss"], &steady["duration"], &steady["attained"]),
        (&"iops:20.000000%".into(), &3.into(), &1.into())
    );
    let samples: Vec<u64> =
        steady["data"]["iops"].as_array().expect("a list").iter().filter_map(Value::as_u64).collect();
    assert!(samples.len() == 3 && samples.iter().all(|iops| (150..250).contains(iops)), "{steady}");
    assert!((600_000..1_000_000).contains(&steady["data"]["bw_mean"].as_u64().expect("bytes a second")), "{steady}");
    let (steady, ran_ms) = of("ss=bw_slope:0.000001%\nss_dur=2s\nruntime=4");
    assert!(steady["attained"] == 0 && ran_ms >= 3900, "{ran_ms}: {steady}");
    // The interval of logs is not that of the samples: two of three seconds would be three equal ones.
    let (steady, ran_ms) = of("ss=bw:0.000001%\nss_dur=3\nruntime=7\nbssplit=4k/50:64k/50\nlog_avg_msec=3000");
    let samples: std::collections::BTreeSet<u64> =
        steady["data"]["bw"].as_array().expect("a list").iter().filter_map(Value::as_u64).collect();
    assert!(steady["attained"] == 0 && samples.len() > 1 && ran_ms >= 6900, "{ran_ms}: {steady}");
    let (code, _, err) = bench.run(&["fio", "--name=j", "--size=4k", "--ss=iops:1%"]);
    assert!(code == 0 && err.contains("no effect without a steadystate_duration"), "as in fio: {err}");
}

/// With ioengine=falloc fio frees blocks of files; with others it trims only devices.
#[test]
fn trims_free_blocks() {
    let bench = Bench::new();
    let on = fs::File::create(bench.path("full")).expect("it can be made");
    std::os::unix::fs::FileExt::write_all_at(&on, &vec![1; 256 << 10], 0).expect("written");
    on.sync_all().expect("durable");
    let trims = |json: &Value| {
        let of = |key: &str| json["jobs"][0]["trim"][key].as_u64().expect("a count");
        (of("total_ios"), of("io_bytes"))
    };
    bench.write("job.fio", "[job]\nfilename=full\nrw=randtrim\nbs=16k\nsize=128k\nioengine=falloc\n");
    let json = results(&bench, "job.fio");
    assert_eq!((trims(&json), counts(&json)[0]), ((8, 128 << 10), [0; 5]), "{json}");
    let of = fs::metadata(bench.path("full")).expect("there");
    assert_eq!((of.len(), of.blocks()), (256 << 10, 256), "half of its blocks are free");
    let (code, _, err) = bench.run(&["fio", "--name=job", "--filename=full", "--rw=trim"]);
    assert!(code == 2 && err.contains("only devices are trimmed"), "{err}");
}
