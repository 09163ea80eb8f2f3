//! What is measured, and what is expected of it.

use crate::bare::{self, Names};
use crate::options::Options;
use crate::place::{LoopExt4, Place};
use crate::side::{Measured, Side, Trouble};
use crate::{inside, ours, peers};
use fstone_model::workload::*;
use std::path::Path;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    /// fstone's figure over another side's is at least this.
    AtLeast {
        over: &'static str,
        ratio: f64,
    },
    AtMost(f64),
    /// fstone's figure is at most that of another of its sides and so much more.
    AtMostBeyond {
        over: &'static str,
        by: f64,
    },
    AtMostTimes {
        over: &'static str,
        ratio: f64,
    },
    /// The interval of the ratio to the other side holds 1, or fstone's is better.
    Like {
        over: &'static str,
    },
}

/// Makes the sides of a figure, in places that live until all rounds are done.
type MakeSides = fn(&Amounts, &mut Places) -> Result<Vec<Side<'static>>, Trouble>;

pub(crate) struct Figure {
    /// A short name for `--only`.
    pub(crate) name: &'static str,
    pub(crate) title: String,
    /// "operations/s", "ns/operation", …
    pub(crate) unit: &'static str,
    pub(crate) goals: Vec<Goal>,
    /// How often every side is measured: as often as intervals need, and a whole run takes no more than 15 minutes.
    pub(crate) rounds: usize,
    pub(crate) sides: MakeSides,
}

const ROUNDS: usize = 10;
/// Of those whose measurements take long or scatter little: the fewest with an interval of 95 %.
const FEW_ROUNDS: usize = 6;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Amounts {
    pub(crate) smoke: bool,
    pub(crate) time: Duration,
    pub(crate) file_bytes: u64,
    pub(crate) names: u64,
    pub(crate) many_names: u64,
    pub(crate) most_names: u64,
    pub(crate) threads: u64,
}

impl Amounts {
    pub(crate) fn new(options: &Options) -> Self {
        let (file_bytes, names, many_names, most_names, threads) = if options.smoke {
            (1 << 20, 500, 1000, 2000, 32)
        } else {
            (256 << 20, 100_000, 1_000_000, 10_000_000, 1024)
        };
        let time = Duration::from_secs_f64(options.seconds);
        Self { smoke: options.smoke, time, file_bytes, names, many_names, most_names, threads }
    }
}

/// Places that a figure's sides use; they go when the figure is done.
#[derive(Debug, Default)]
pub(crate) struct Places {
    directories: Vec<Place>,
    ext4: Option<LoopExt4>,
}

impl Places {
    fn in_memory(&mut self) -> Result<std::path::PathBuf, Trouble> {
        self.held(Place::in_memory()?)
    }

    fn on_disk(&mut self) -> Result<std::path::PathBuf, Trouble> {
        self.held(Place::on_disk()?)
    }

    fn held(&mut self, place: Place) -> Result<std::path::PathBuf, Trouble> {
        let path = place.path().to_owned();
        self.directories.push(place);
        Ok(path)
    }

    fn ext4(&mut self, bytes: u64) -> Result<std::path::PathBuf, Trouble> {
        if self.ext4.is_none() {
            self.ext4 = Some(LoopExt4::new(bytes)?);
        }
        self.ext4.as_ref().map(LoopExt4::mount_point).ok_or_else(|| Trouble::failed("no mount"))
    }
}

/// What the one reading of the clock costs that a latency takes.
const CLOCK: &str = "a reading of the clock";

const PSYNC: IoSettings = IoSettings::DEFAULT;
const NULL: IoSettings = IoSettings { engine: IoEngineKind::Null, ..PSYNC };
const RING: IoSettings = IoSettings { engine: IoEngineKind::IoUring, queue_depth: 32, ..NULL };
const AIO: IoSettings = IoSettings { engine: IoEngineKind::Libaio, ..RING };

pub(crate) fn all(amounts: &Amounts) -> Vec<Figure> {
    let at_least = |over, ratio| Goal::AtLeast { over, ratio };
    let mut figures = vec![
        Figure {
            name: "read-1",
            title: "4 KiB cached random reads on tmpfs, 1 thread".into(),
            unit: "operations/s",
            goals: vec![at_least("bare", 0.95), at_least("fio", 1.0), at_least("sysbench", 1.0)],
            rounds: ROUNDS,
            sides: |amounts, places| reads(amounts, places, 1),
        },
        Figure {
            name: "read-2",
            title: "4 KiB cached random reads on tmpfs, 2 threads".into(),
            unit: "operations/s",
            goals: vec![at_least("bare", 0.95), at_least("fio", 1.0), at_least("sysbench", 1.0)],
            rounds: ROUNDS,
            sides: |amounts, places| reads(amounts, places, 2),
        },
        Figure {
            name: "null",
            title: "own CPU time on the null engine, histograms and audit on".into(),
            unit: "ns/operation",
            goals: vec![Goal::AtMostBeyond { over: CLOCK, by: 20.0 }],
            rounds: ROUNDS,
            sides: null,
        },
        Figure {
            name: "null-threads",
            title: "null engine, 2 threads over 1".into(),
            unit: "operations/s",
            goals: vec![at_least("fstone, 1 thread", 1.9)],
            rounds: ROUNDS,
            sides: null_threads,
        },
    ];
    let names: [(&str, &str, MakeSides); 6] = [
        ("create", "create and close", |amounts, places| names(places, amounts.names, Names::Create)),
        ("stat", "stat", |amounts, places| names(places, amounts.names, Names::Stat)),
        ("unlink", "unlink", |amounts, places| names(places, amounts.names, Names::Unlink)),
        ("create-many", "create and close", |amounts, places| names(places, amounts.many_names, Names::Create)),
        ("stat-many", "stat", |amounts, places| names(places, amounts.many_names, Names::Stat)),
        ("unlink-many", "unlink", |amounts, places| names(places, amounts.many_names, Names::Unlink)),
    ];
    figures.extend(names.map(|(name, what, sides)| {
        let count = if name.ends_with("many") { amounts.many_names } else { amounts.names };
        let title = format!("{what} of {count} files in one directory on tmpfs");
        let rounds = if name.ends_with("many") { FEW_ROUNDS } else { ROUNDS };
        Figure { name, title, unit: "operations/s", goals: vec![at_least("bare", 0.90)], rounds, sides }
    }));
    let flat = Goal::AtMostTimes { over: "fstone, fewest files", ratio: 1.2 };
    let scales: [(&str, &str, MakeSides); 3] = [
        ("scale-create", "create and close", |amounts, _| scale(amounts, Names::Create)),
        ("scale-stat", "stat", |amounts, _| scale(amounts, Names::Stat)),
        ("scale-unlink", "unlink", |amounts, _| scale(amounts, Names::Unlink)),
    ];
    figures.extend(scales.map(|(name, what, sides)| {
        let title = format!("own CPU time of {what} with {} files over {}", amounts.most_names, amounts.names);
        Figure { name, title, unit: "ns/operation", goals: vec![flat], rounds: FEW_ROUNDS, sides }
    }));
    figures.extend([
        // What the processor's own cache holds, so that it is the engines that are compared: of larger files, most of the
        // time goes into copying from memory.
        Figure {
            name: "ring",
            title: "io_uring, 32 in flight, 4 KiB cached random reads of 1 MiB on the filesystem of /tmp, 1 thread"
                .into(),
            unit: "operations/s",
            goals: vec![at_least("fio", 1.0), at_least("fio, no latencies", 1.0), at_least("bare", 0.95)],
            rounds: ROUNDS,
            sides: |amounts, places| ring(amounts, 1 << 20, places.on_disk()?),
        },
        Figure {
            name: "ring-large",
            title: format!("the same of {} MiB", amounts.file_bytes >> 20),
            unit: "operations/s",
            goals: vec![at_least("fio", 1.0), at_least("fio, no latencies", 1.0), at_least("bare", 0.95)],
            rounds: FEW_ROUNDS,
            sides: |amounts, places| ring(amounts, amounts.file_bytes, places.on_disk()?),
        },
        // Where the kernel cannot read without blocking (tmpfs), it hands each request to threads of its own, and
        // what is compared is mostly these.
        Figure {
            name: "ring-tmpfs",
            title: "the same on tmpfs".into(),
            unit: "operations/s",
            goals: vec![at_least("fio", 1.0), at_least("fio, no latencies", 1.0)],
            rounds: FEW_ROUNDS,
            sides: |amounts, places| ring(amounts, amounts.file_bytes, places.in_memory()?),
        },
        // Of cached files the kernel moves the data while it takes the request, so that it is the engines that are compared.
        Figure {
            name: "libaio",
            title: "libaio, 32 at once, 4 KiB cached random reads of 1 MiB on the filesystem of /tmp, 1 thread".into(),
            unit: "operations/s",
            goals: vec![at_least("fio", 1.0)],
            rounds: ROUNDS,
            sides: |amounts, places| aio(amounts, 1 << 20, &places.on_disk()?, AIO),
        },
        Figure {
            name: "memory-files",
            title: format!("memory of {} files, half of them deleted and made again", amounts.most_names),
            unit: "bytes/file",
            // 16 a file, and whatever else the allocator did meanwhile, some hundred KiB in all.
            goals: vec![Goal::AtMost(16.05)],
            rounds: FEW_ROUNDS,
            sides: |amounts, _| {
                let files = amounts.most_names;
                Ok(vec![Side::new("fstone", move || inside::measure("bytes-per-file", files, Path::new(".")))])
            },
        },
        Figure {
            name: "memory-threads",
            title: format!("peak memory of the process with {} threads", amounts.threads),
            unit: "bytes",
            goals: vec![Goal::AtMost(256e6)],
            rounds: FEW_ROUNDS,
            sides: |amounts, places| many_threads(amounts, places, "threads-memory"),
        },
        Figure {
            name: "stop-threads",
            title: format!("{} threads stop after their time", amounts.threads),
            unit: "ms too late",
            goals: vec![Goal::AtMost(100.0)],
            rounds: ROUNDS,
            sides: |amounts, places| many_threads(amounts, places, "threads-overrun"),
        },
    ]);
    // Latency counts from when a read is due, in fstone; fio counts from when it submits it.
    let paced: [(&str, &str, MakeSides); 2] = [
        ("paced-ring", "io_uring", |amounts, places| paced(amounts, &places.on_disk()?, RING)),
        ("paced-libaio", "libaio", |amounts, places| paced(amounts, &places.on_disk()?, AIO)),
    ];
    figures.extend(paced.map(|(name, engine, sides)| Figure {
        name,
        title: format!("mean latency of 4 KiB cached reads at {PACE} per second, {engine}, 32 in flight"),
        unit: "ns",
        goals: vec![Goal::AtMostBeyond { over: "fio", by: 1000.0 }],
        rounds: ROUNDS,
        sides,
    }));
    let ends: [(&str, &str, MakeSides); 5] = [
        ("end-psync", "psync", |_, places| end(places, 1, PSYNC)),
        ("end-threads", "psync, 1000 threads", |_, places| end(places, 1000, PSYNC)),
        ("end-ring", "io_uring, 32 in flight", |_, places| end(places, 1, RING)),
        ("end-libaio", "libaio, 32 at once", |_, places| end(places, 1, AIO)),
        ("end-mmap", "mmap", |_, places| end(places, 1, IoSettings { engine: IoEngineKind::Mmap, ..PSYNC })),
    ];
    figures.extend(ends.map(|(name, engine, sides)| Figure {
        name,
        title: format!("the interval's end after the last operation, {engine}"),
        unit: "ms",
        goals: vec![Goal::AtMost(0.1)],
        rounds: FEW_ROUNDS,
        sides,
    }));
    // What a ring and mappings gain over plain calls is to be seen, and no goal.
    let plainly = vec![at_least("bare", 0.95)];
    let kept: [(&str, &str, Vec<Goal>, MakeSides); 4] = [
        ("keep-psync", "psync", plainly, |amounts, places| kept(amounts, places, PSYNC)),
        ("keep-ring", "io_uring, 8 in flight", Vec::new(), |amounts, places| {
            kept(amounts, places, IoSettings { queue_depth: 8, ..RING })
        }),
        ("keep-libaio", "libaio, 8 at once", Vec::new(), |amounts, places| {
            kept(amounts, places, IoSettings { queue_depth: 8, ..AIO })
        }),
        ("keep-mmap", "mmap", Vec::new(), |amounts, places| {
            kept(amounts, places, IoSettings { engine: IoEngineKind::Mmap, ..PSYNC })
        }),
    ];
    let files = may_keep(amounts.names);
    figures.extend(kept.map(|(name, engine, goals, sides)| Figure {
        name,
        title: format!("4 KiB cached random reads of {files} open files on tmpfs, 8 threads, {engine}"),
        unit: "operations/s",
        goals,
        rounds: FEW_ROUNDS,
        sides,
    }));
    let on_ext4: [(&str, &str, MakeSides); 4] = [
        ("ext4-libaio", "libaio, 32 in flight, 4 KiB random reads, O_DIRECT, on a loop ext4", |amounts, places| {
            let directory = mounted(amounts, places)?;
            aio(amounts, EXT4_BYTES, &directory, IoSettings { direct: true, ..AIO })
        }),
        ("ext4-randread", "4 KiB random reads, O_DIRECT, on a loop ext4", |amounts, places| {
            ext4(amounts, places, "randread", 4096)
        }),
        ("ext4-randwrite", "4 KiB random writes, O_DIRECT, on a loop ext4", |amounts, places| {
            ext4(amounts, places, "randwrite", 4096)
        }),
        ("ext4-write", "1 MiB sequential writes, O_DIRECT, on a loop ext4", |amounts, places| {
            ext4(amounts, places, "write", 1 << 20)
        }),
    ];
    figures.extend(on_ext4.map(|(name, title, sides)| Figure {
        name,
        title: title.into(),
        unit: "operations/s",
        goals: vec![Goal::Like { over: "fio" }],
        rounds: FEW_ROUNDS,
        sides,
    }));
    figures
}

/// A file that is there for all sides, so that all read the same pages.
fn file_of(directory: &Path, name: &str, bytes: u64) -> Result<std::path::PathBuf, Trouble> {
    let path = directory.join(name);
    if !path.exists() {
        std::fs::write(&path, vec![0x5au8; bytes as usize]).map_err(Trouble::failed)?;
    }
    Ok(path)
}

fn reads(amounts: &Amounts, places: &mut Places, threads: u32) -> Result<Vec<Side<'static>>, Trouble> {
    let directory = places.in_memory()?;
    let (bytes, time) = (amounts.file_bytes, amounts.time);
    let file = file_of(&directory, "file0", bytes)?;
    let workload = ours::on_one_file(bytes, Operation::Read(ours::random(4096)), threads, PSYNC, time);
    let (for_ours, for_fio, for_sysbench) = (directory.clone(), directory.clone(), places.in_memory()?);
    Ok(vec![
        Side::new("bare", move || bare::random_reads(&file, bytes, u64::from(threads), time)),
        Side::new("fstone", move || Ok(ours::per_second(&ours::run(&workload, &for_ours)?))),
        Side::new("fio", move || {
            let (size, runtime) = (format!("--size={bytes}"), runtime(time));
            let jobs = format!("--numjobs={threads}");
            let same = ["--ioengine=psync", "--rw=randread", "--bs=4k", "--filename=file0", "--norandommap"];
            peers::fio(&for_fio, &[&same[..], &[&size, &runtime, "--time_based", &jobs]].concat())
        }),
        Side::new("sysbench", move || peers::sysbench_reads(&for_sysbench, bytes, threads, time.as_secs_f64())),
    ])
}

fn runtime(time: Duration) -> String {
    format!("--runtime={}ms", time.as_millis().max(100))
}

fn null(amounts: &Amounts, _: &mut Places) -> Result<Vec<Side<'static>>, Trouble> {
    let (bytes, time) = (amounts.file_bytes, amounts.time);
    let workload = ours::on_one_file(bytes, Operation::Read(ours::random(4096)), 1, NULL, time);
    // The clock's cost is in every report; it takes no long load to learn it.
    let for_clock =
        ours::on_one_file(bytes, Operation::Read(ours::random(4096)), 1, NULL, time.min(Duration::from_millis(10)));
    Ok(vec![
        Side::new("fstone", move || ours::cpu_per_operation(&ours::run(&workload, Path::new("."))?)),
        // Of these, so many go into the one reading of the clock that a latency costs; more on a virtual machine.
        Side::new(CLOCK, move || Ok(ours::run(&for_clock, Path::new("."))?.clock.cost_ns)),
        Side::new("fio", move || {
            let (size, runtime) = (format!("--size={bytes}"), runtime(time));
            let same = ["--ioengine=null", "--rw=randread", "--bs=4k", "--norandommap", "--time_based"];
            peers::fio_cpu_per_read(Path::new("."), &[&same[..], &[&size, &runtime]].concat())
        }),
    ])
}

fn null_threads(amounts: &Amounts, _: &mut Places) -> Result<Vec<Side<'static>>, Trouble> {
    let (bytes, time) = (amounts.file_bytes, amounts.time);
    let with = move |threads: u32| -> Measured {
        let workload = ours::on_one_file(bytes, Operation::Read(ours::random(4096)), threads, NULL, time);
        Ok(ours::per_second(&ours::run(&workload, Path::new("."))?))
    };
    Ok(vec![
        Side::new("fstone, 1 thread", move || with(1)),
        Side::new("fstone", move || with(2)),
        Side::new("arithmetic, 1 thread", move || bare::arithmetic(1, time)),
        Side::new("arithmetic", move || bare::arithmetic(2, time)),
    ])
}

/// Every measurement finds the directory as it must be: empty for creating, full for the others.
fn names(places: &mut Places, count: u64, what: Names) -> Result<Vec<Side<'static>>, Trouble> {
    let (bare_place, our_place) = (places.in_memory()?, places.in_memory()?);
    let around = move |directory: &Path, measure: &dyn Fn(&Path) -> Measured| -> Measured {
        if what != Names::Create {
            bare::names(directory, count, Names::Create)?;
        }
        let measured = measure(directory)?;
        if what != Names::Unlink {
            bare::names(directory, count, Names::Unlink)?;
        }
        Ok(measured)
    };
    Ok(vec![
        Side::new("bare", move || around(&bare_place, &|directory| bare::names(directory, count, what))),
        Side::new("fstone", move || around(&our_place, &|directory| ours::names(directory, count, what, PSYNC))),
    ])
}

fn scale(amounts: &Amounts, what: Names) -> Result<Vec<Side<'static>>, Trouble> {
    let (few, most) = (amounts.names, amounts.most_names);
    let cost = move |count: u64| -> Measured {
        let pretended = |count| {
            let operation = match what {
                Names::Create => Operation::Create { block_bytes: 0, fsync: false },
                Names::Stat => Operation::Stat,
                Names::Unlink => Operation::Unlink,
            };
            let mut files = ours::fileset(count, 0, Existing::Rebuild);
            files.preallocated = if what == Names::Create { 0.0 } else { 1.0 };
            let stop = Stop { once_through: true, ..Stop::default() };
            let action = ours::action(operation, FileChoice::RoundRobin);
            let mut workload = ours::workload(files, action, 1, OpenPolicy::PerOperation, stop);
            workload.io = NULL;
            workload
        };
        ours::cpu_per_operation(&ours::run(&pretended(count), Path::new("."))?)
    };
    Ok(vec![Side::new("fstone, fewest files", move || cost(few)), Side::new("fstone", move || cost(most))])
}

fn ring(amounts: &Amounts, bytes: u64, directory: std::path::PathBuf) -> Result<Vec<Side<'static>>, Trouble> {
    let time = amounts.time;
    let file = file_of(&directory, "file0", bytes)?;
    let workload = ours::on_one_file(bytes, Operation::Read(ours::random(4096)), 1, RING, time);
    let (for_ours, for_fio) = (directory.clone(), directory);
    let fio = move |extra: &[&str]| -> Measured {
        let (size, runtime) = (format!("--size={bytes}"), runtime(time));
        let same = [
            "--ioengine=io_uring",
            "--iodepth=32",
            "--iodepth_batch_submit=32",
            "--iodepth_batch_complete_min=1",
            "--iodepth_batch_complete_max=32",
            "--registerfiles",
            "--fixedbufs",
            "--nonvectored=1",
            "--rw=randread",
            "--bs=4k",
            "--filename=file0",
            "--norandommap",
            "--time_based",
        ];
        peers::fio(&for_fio, &[&same[..], &[&size, &runtime], extra].concat())
    };
    let (without, whole, polled) = (fio.clone(), fio.clone(), fio.clone());
    Ok(vec![
        Side::new("bare", move || bare::ring_reads(&file, bytes, 32, time)),
        Side::new("fstone", move || Ok(ours::per_second(&ours::run(&workload, &for_ours)?))),
        Side::new("fio", move || fio(&[])),
        Side::new("fio, no latencies", move || without(&["--gtod_reduce=1"])),
        Side::new("fio, whole batches", move || whole(&["--iodepth_batch_complete_min=32"])),
        // A kernel thread on the other processor takes the requests: two processors for one thread's work.
        Side::new("fio, submission polled", move || polled(&["--sqthread_poll=1"])),
    ])
}

/// Reads per second of the paced figures.
const PACE: u32 = 20_000;

fn paced(amounts: &Amounts, directory: &Path, io: IoSettings) -> Result<Vec<Side<'static>>, Trouble> {
    let (bytes, time) = (1 << 20, amounts.time);
    file_of(directory, "file0", bytes)?;
    let mut workload = ours::on_one_file(bytes, Operation::Read(ours::random(4096)), 1, io, time);
    workload.phases[0].groups[0].rate_per_second = Some(f64::from(PACE));
    let (for_ours, for_fio) = (directory.to_owned(), directory.to_owned());
    Ok(vec![
        Side::new("fstone", move || ours::mean_latency_ns(&ours::run(&workload, &for_ours)?)),
        Side::new("fio", move || {
            let engine = if io.engine == IoEngineKind::IoUring { "io_uring" } else { "libaio" };
            let (size, runtime) = (format!("--size={bytes}"), runtime(time));
            let (engine, rate) = (format!("--ioengine={engine}"), format!("--rate_iops={PACE}"));
            let same =
                ["--iodepth=32", "--rw=randread", "--bs=4k", "--filename=file0", "--norandommap", "--time_based"];
            peers::fio_mean_latency_ns(&for_fio, &[&same[..], &[&size, &runtime, &engine, &rate]].concat())
        }),
    ])
}

/// How much later than its last operation the interval of a load of 4,000 reads ends.
fn end(places: &mut Places, threads: u32, io: IoSettings) -> Result<Vec<Side<'static>>, Trouble> {
    let directory = places.in_memory()?;
    let bytes = 1 << 20;
    file_of(&directory, "file0", bytes)?;
    let mut workload = ours::on_one_file(bytes, Operation::Read(ours::random(4096)), threads, io, Duration::ZERO);
    workload.phases[0].stop = Stop { operations: Some(4000), ..Stop::default() };
    Ok(vec![Side::new("fstone", move || {
        let report = ours::run(&workload, &directory)?;
        Ok((report.running_ns - report.last_done_ns) as f64 / 1e6)
    })])
}

fn many_threads(amounts: &Amounts, places: &mut Places, what: &'static str) -> Result<Vec<Side<'static>>, Trouble> {
    let (directory, threads) = (places.in_memory()?, amounts.threads);
    Ok(vec![Side::new("fstone", move || inside::measure(what, threads, &directory))])
}

const KEPT_BYTES: u64 = 8 << 10;

/// More files kept open than each thread could have descriptors of its own for.
fn kept(amounts: &Amounts, places: &mut Places, io: IoSettings) -> Result<Vec<Side<'static>>, Trouble> {
    let (files, time, threads) = (may_keep(amounts.names), amounts.time, 8);
    let directory = places.in_memory()?;
    for number in 0..files {
        file_of(&directory, &format!("file{number}"), KEPT_BYTES)?;
    }
    let fileset = ours::fileset(files, KEPT_BYTES, Existing::Require);
    let action = ours::action(Operation::Read(ours::random(4096)), FileChoice::Uniform);
    let mut workload = ours::workload(fileset, action, threads, OpenPolicy::KeepOpen, ours::for_time(time));
    workload.io = io;
    let for_ours = directory.clone();
    Ok(vec![
        Side::new("bare", move || bare::kept_reads(&directory, files, KEPT_BYTES, u64::from(threads), time)),
        Side::new("fstone", move || Ok(ours::per_second(&ours::run(&workload, &for_ours)?))),
    ])
}

/// How many files may be kept open here, of so many: only root may have more than the limit, and not everywhere.
fn may_keep(files: u64) -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const OTHERS: u64 = 1000;
    let hard = getrlimit(Resource::Nofile).maximum;
    let may = |files: Option<u64>| setrlimit(Resource::Nofile, Rlimit { current: files, maximum: files }).is_ok();
    match hard {
        Some(hard) if hard < files + OTHERS && !may(Some(files + OTHERS)) => {
            may(Some(hard));
            hard.saturating_sub(OTHERS)
        }
        Some(hard) if hard < files + OTHERS => files,
        hard => {
            may(hard);
            files
        }
    }
}

const EXT4_BYTES: u64 = 512 << 20;

fn mounted(amounts: &Amounts, places: &mut Places) -> Result<std::path::PathBuf, Trouble> {
    if amounts.smoke {
        return Err(Trouble::Absent("nothing is mounted in smoke mode".into()));
    }
    let directory = places.ext4(2 << 30)?;
    file_of(&directory, "file0", EXT4_BYTES)?;
    rustix::fs::sync();
    Ok(directory)
}

fn aio(amounts: &Amounts, bytes: u64, directory: &Path, io: IoSettings) -> Result<Vec<Side<'static>>, Trouble> {
    let time = amounts.time;
    file_of(directory, "file0", bytes)?;
    let workload = ours::on_one_file(bytes, Operation::Read(ours::random(4096)), 1, io, time);
    let (for_ours, for_fio) = (directory.to_owned(), directory.to_owned());
    Ok(vec![
        Side::new("fstone", move || Ok(ours::per_second(&ours::run(&workload, &for_ours)?))),
        Side::new("fio", move || {
            let (size, runtime) = (format!("--size={bytes}"), runtime(time));
            let direct = format!("--direct={}", u8::from(io.direct));
            let same = [
                "--ioengine=libaio",
                "--iodepth=32",
                "--iodepth_batch_submit=32",
                "--iodepth_batch_complete_min=1",
                "--iodepth_batch_complete_max=32",
                "--rw=randread",
                "--bs=4k",
                "--filename=file0",
                "--norandommap",
                "--time_based",
            ];
            peers::fio(&for_fio, &[&same[..], &[&size, &runtime, &direct]].concat())
        }),
    ])
}

fn ext4(amounts: &Amounts, places: &mut Places, what: &'static str, block: u64) -> Result<Vec<Side<'static>>, Trouble> {
    let directory = mounted(amounts, places)?;
    let bytes = EXT4_BYTES;
    let operation = match what {
        "randread" => Operation::Read(ours::random(block)),
        "randwrite" => Operation::Write(ours::random(block)),
        _ => Operation::Write(Transfer {
            extent: Extent::Bytes(block),
            block_bytes: block,
            pattern: Pattern::Cursor { shared: true },
            fsync: false,
        }),
    };
    let time = amounts.time;
    let mut workload = ours::on_one_file(bytes, operation, 1, IoSettings { direct: true, ..PSYNC }, time);
    if what == "write" {
        workload.phases[0].groups[0].actions = Actions::Mix(vec![Weighted {
            weight: 1,
            action: ours::action(
                Operation::Write(Transfer {
                    extent: Extent::Bytes(block),
                    block_bytes: block,
                    pattern: Pattern::Cursor { shared: true },
                    fsync: false,
                }),
                FileChoice::Concatenated,
            ),
        }]);
    }
    let for_fio = directory.clone();
    Ok(vec![
        Side::new("fstone", move || Ok(ours::per_second(&ours::run(&workload, &directory)?))),
        Side::new("fio", move || {
            let (size, runtime, rw, bs) =
                (format!("--size={bytes}"), runtime(time), format!("--rw={what}"), format!("--bs={block}"));
            let same = ["--ioengine=psync", "--direct=1", "--filename=file0", "--norandommap", "--time_based"];
            peers::fio(&for_fio, &[&same[..], &[&size, &runtime, &rw, &bs]].concat())
        }),
    ])
}
