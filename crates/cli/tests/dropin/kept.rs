//! What is there before a drop-in runs, and what it measured before it was interrupted.

use crate::support::{Bench, tool};
use rustix::process::Signal;
use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

/// Everything of a file that a load could change: content, when it changed, identity, and where its blocks are.
fn state(path: &Path) -> (Vec<u8>, [i64; 4], [u64; 2], Vec<u8>) {
    let file = fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let extents = if tool("filefrag") {
        Command::new("filefrag").args(["-e", "-s"]).arg(path).output().expect("it starts").stdout
    } else {
        Vec::new()
    };
    let changed = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
    (fs::read(path).expect("readable"), changed, [file.ino(), file.blocks()], extents)
}

/// Whatever a load that only reads asks for, and whether it is refused, fails or runs: files that it did not make stay as they are.
#[test]
fn what_a_drop_in_only_reads_stays() {
    let jobs = [
        "fio --name=o --rw=read --bs=64k --filesize=4m --offset=1m --filename=NAME",
        "fio --name=o --rw=read --bs=64k --size=4m --offset=1m --filename=NAME",
        "fio --name=o --rw=randread --bs=4k --size=50% --offset=33% --filename=NAME --number_ios=50",
        "fio --name=o --rw=randread --size=8m --filename=NAME --ioengine=libaio --iodepth=4 --direct=1 --number_ios=200",
        "fio --name=o --rw=read --size=8m --filename=NAME --ioengine=mmap --create_only=1",
        "fio --name=o --rw=read --size=8m --filename=NAME --ioengine=mmap --loops=2",
        "fio --name=o --rw=read --size=1m --filename=NAME --pre_read=1 --numjobs=2",
        "fio --name=o --ioengine=filestat --filesize=8m --filename_format=NAME --nrfiles=1",
        "sysbench fileio --file-num=1 --file-total-size=1M --file-test-mode=seqrd --events=20 --time=0 run",
        "sysbench fileio --file-num=2 --file-total-size=16M --file-test-mode=rndrd --events=20 --time=0 run",
        "ior -r -k -o NAME -t 64k -b 1m",
        "ior -r -k -o NAME -t 64k -b 8m",
        "mdtest -d . -F -n 4 -E -e 4096",
        "ffsb read.ffsb",
        "ffsb reuse.ffsb",
        "filebench read.f",
        "load read.toml --directory .",
        "load reuse.toml --directory .",
        "load require.toml --directory .",
    ];
    let bench = Bench::new();
    let here = bench.path("").display().to_string();
    for (name, reuse) in [("read.ffsb", 0), ("reuse.ffsb", 1)] {
        let filesystem = format!("num_files = 1\nmin_filesize = 64k\nmax_filesize = 64k\nreuse = {reuse}");
        let group = "num_threads = 1\nread_weight = 1\nread_size = 4k\nread_blocksize = 4k";
        bench.write(name, &super::profile(Path::new(&here), "time = 1", &filesystem, group));
    }
    bench.write(
        "read.f",
        &format!(
            "define fileset name=\"data\",path=\"{here}\",entries=1,size=64k,dirwidth=20,prealloc\ndefine process name=p {{ thread name=t {{ \
             flowop openfile name=o,filesetname=\"data\",fd=1 flowop readwholefile name=r,fd=1 flowop closefile name=c,fd=1 }} }}\nrun 1\n"
        ),
    );
    for existing in ["rebuild", "reuse", "require"] {
        let name = if existing == "rebuild" { "read" } else { existing };
        bench.write(
            &format!("{name}.toml"),
            &format!(
                "name = \"x\"\n[[fileset]]\nname = \"f\"\nfiles = 1\nsize = \"64 KiB\"\nexisting = \"{existing}\"\nfile-prefix = \"keep\"\n\
                 [[phase]]\nname = \"p\"\nstop = {{ operations = 5 }}\n[[phase.group]]\nname = \"g\"\n\
                 [[phase.group.sequence]]\nread = {{ block = \"4 KiB\" }}\n"
            ),
        );
    }
    // Names that the loads have: fio's and IOR's own, sysbench's, mdtest's, FFSB's and filebench's in `data`, and the workload files'.
    let names = ["keep", "test_file.0", "data/datafile0", "data/00000001", "keep0"];
    fs::create_dir_all(bench.path("data")).expect("made");
    for size in [0, 5000, 4 << 20] {
        for name in names {
            let file = fs::File::create(bench.path(name)).expect("writable");
            let bytes: Vec<u8> = (0..size).map(|at: usize| (at / 7) as u8).collect();
            std::io::Write::write_all(&mut &file, &bytes).and_then(|()| file.sync_all()).expect("room");
        }
        let before = names.map(|name| state(&bench.path(name)));
        for job in jobs {
            let words = job.replace("NAME", "keep");
            let (exit, out, err) = bench.run(&words.split(' ').collect::<Vec<_>>());
            assert!(exit < 6, "{job}: {exit}: {out}{err}");
            let fitting = ["--filesize=4m", "--size=50%", "--size=1m", "seqrd", "-b 1m", "require"];
            let fits = size == 4 << 20 && fitting.iter().any(|word| job.contains(word));
            assert!(!fits || exit == 0, "{job}: {exit}: {out}{err}");
            for (name, before) in names.iter().zip(&before) {
                assert!(state(&bench.path(name)) == *before, "{name} of {size} bytes after {job}: {exit}: {out}{err}");
            }
        }
    }
}

fn await_work(child: &mut Child) {
    let path = format!("/proc/{}/io", child.id());
    let calls = || -> u64 {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let count = |line: &str| line.strip_prefix("syscr: ").or(line.strip_prefix("syscw: "))?.parse::<u64>().ok();
        text.lines().filter_map(count).sum()
    };
    while calls() < 5000 {
        assert!(child.try_wait().expect("it was started").is_none(), "it has ended before");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What was measured until a signal came is printed, with a warning, and with the status of the original where it has one.
#[test]
fn interrupted_work_is_kept() {
    let bench = Bench::new();
    let location = bench.path("");
    let group = "num_threads = 1\nread_weight = 1\nread_size = 4k\nread_blocksize = 4k";
    let files = "num_files = 9\nmin_filesize = 4k\nmax_filesize = 4k";
    bench.write("read.ffsb", &super::profile(&location, "time = 600", files, group));
    bench.write(
        "read.f",
        &format!(
            "define fileset name=\"set\",path=\"{}\",entries=9,size=64k,dirwidth=20,prealloc\ndefine process name=p {{ thread name=t {{ \
             flowop openfile name=o,filesetname=\"set\",fd=1 flowop readwholefile name=r,fd=1 flowop closefile name=c,fd=1 }} }}\nrun 600\n",
            location.display()
        ),
    );
    bench.write(
        "two.toml",
        "name = \"x\"\n[[fileset]]\nname = \"f\"\nfiles = 9\nsize = \"64 KiB\"\ndirectory = \"native\"\n[[phase]]\nname = \"p\"\nstop = { time = \"600 s\" }\n\
         [[phase.group]]\nname = \"g\"\n[[phase.group.sequence]]\nread = { block = \"4 KiB\" }\n",
    );
    let two_jobs = "--name=a --rw=read --size=64k --bs=4k --name=b --stonewall --rw=read --size=4m --bs=4k --time_based --runtime=600";
    let fio = format!("fio --output-format=json --write_bw_log=log --log_avg_msec=50 {two_jobs}");
    let plain = format!("fio {}", two_jobs.replace("name=a", "name=c").replace("name=b", "name=d"));
    let commands: [(&str, i32, &str); 8] = [
        (&fio, 128, "\"jobs\""),
        (&plain, 128, "d: (groupid=1"),
        (
            "sysbench fileio --file-num=1 --file-total-size=1M --file-test-mode=seqwr --time=600 run",
            130,
            "File operations:",
        ),
        ("ffsb read.ffsb", 130, "Transactions per Second"),
        ("filebench read.f", 130, "IO Summary"),
        ("load two.toml --directory . --json", 130, "\"operations\""),
        ("mdtest -d trees -F -n 10000000 -w 1 -C", 130, "SUMMARY"),
        ("ior -o whole -t 1k -b 1t -w", 130, "write"),
    ];
    let ended = |words: &str, signal: Signal| {
        let mut command = bench.command(&words.split(' ').collect::<Vec<_>>());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        await_work(&mut child);
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).expect("it is running");
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    for (number, (words, status, shown)) in commands.into_iter().enumerate() {
        let (code, out, err) = ended(words, if number % 2 == 0 { Signal::INT } else { Signal::TERM });
        assert_eq!(code, Some(status), "{words}: {out}{err}");
        assert!(out.contains(shown), "{words}: {out}{err}");
        let said = format!("{out}{err}");
        assert!(["interrupted", "ended early"].iter().any(|word| said.contains(word)), "{words}: {said}");
        if number == 0 {
            let json: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
            assert_eq!(json["jobs"][0]["read"]["total_ios"], 16, "{json}");
            assert!(json["jobs"][1]["read"]["total_ios"].as_u64() > Some(100), "{json}");
            assert!(bench.path("log_bw.2.log").exists());
        }
    }
    // Nor does it leave a part of a file, which the next load would have to take for somebody's.
    let (code, out, err) = {
        let mut command = bench.command(&["fio", "--name=large", "--rw=read", "--size=100g", "--output-format=json"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        while !fs::metadata(bench.path("large.0.0")).is_ok_and(|file| file.len() > 0) {
            std::thread::sleep(Duration::from_millis(5));
        }
        crate::support::interrupt(&child);
        let output = child.wait_with_output().expect("it ends");
        (output.status.code(), output.stdout, output.stderr)
    };
    assert_eq!(code, Some(128), "{}", String::from_utf8_lossy(&err));
    assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok(), "{}", String::from_utf8_lossy(&out));
    assert!(!bench.path("large.0.0").exists());
}

/// As sysbench's own, which share what the kernel reads ahead of a file.
#[test]
fn threads_of_sysbench_share_descriptors() {
    if !tool("strace") {
        return eprintln!("skipped: needs strace");
    }
    let bench = Bench::new();
    let words = ["sysbench", "fileio", "--file-num=2", "--file-total-size=1M", "--file-test-mode=rndrd", "--threads=3"];
    bench.succeed(&[&words[..], &["prepare"]].concat());
    let fstone = bench.command(&[&words[..], &["--events=50", "--time=0", "run"]].concat());
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "calls", "-e", "trace=openat,pread64"]).arg(fstone.get_program());
    assert!(
        strace.args(fstone.get_args()).current_dir(bench.path("")).output().expect("strace starts").status.success()
    );
    let calls = fs::read_to_string(bench.path("calls")).expect("recorded");
    let opened: Vec<&str> =
        calls.lines().filter(|line| line.contains("test_file.") && !line.contains("O_NONBLOCK")).collect();
    assert_eq!(opened.len(), 2, "{calls}");
}
