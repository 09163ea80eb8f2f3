//! What is there before a drop-in runs, and what it measured before it was interrupted.

use crate::support::{Bench, tool};
use std::{fs, os::unix::fs::MetadataExt as _, path::Path, process::Command};

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
