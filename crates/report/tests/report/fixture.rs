//! Datasets like those that real runs give: made from a seed, so that snapshots hold.

use fstone_model::{
    Cell, Dataset, Figure, Histogram, Inventory, LoadReport, Outcome, Plan, Step, StepResult, Trial,
    dataset::Run,
    inventory::DeviceFacts,
    load::{Audit, CallReport, ClockReport, Expected, OperationReport, SeriesPoint},
    metric::catalog,
    outcome::{NOT_CONSISTENT, Reason},
    result::{CommandRecord, Effective, TrialId},
    study::{
        Column, DeviceSpec, Factor, FilesystemSpec, FsckMode, KernelSpec, Order, Published, PublishedFigure, Repeats,
        StepAction,
    },
};
use std::time::Duration;

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in 0..1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal, mean 0, standard deviation 1.
    pub(crate) fn normal(&mut self) -> f64 {
        // A plain loop: unoptimised, iterators take most of the time of these tests.
        let mut sum = 0.0;
        for _ in 0..12 {
            sum += self.unit();
        }
        sum - 6.0
    }
}

pub(crate) struct Fs(
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) &'static str,
);

/// Starts a plan: one loop device, mkfs, mount, load and fsck.
pub(crate) fn plan(study: &str, title: &str, repeats: u32, columns: &[(&str, &str, &str)]) -> Plan {
    Plan {
        study: study.into(),
        title: title.into(),
        about: "Small files are where filesystems differ most.\n\nLook at the rows that differ in one option.".into(),
        source: format!("title = \"{title}\"\nrepeats = {repeats}\n\n[[step]]\nfsck = {{}}\nshow = [\"time\"]\n"),
        attachments: vec![("small-file.ffsb".into(), "num_filesystems=1\nnum_threadgroups=1\n".into())],
        quick: true,
        warm_up: 0,
        perturbed: 0,
        budget: None,
        repeats: Repeats { min: repeats, max: repeats, until: None },
        order: Order::Blocks,
        seed: 20_080_501,
        factors: Vec::new(),
        cells: Vec::new(),
        columns: columns
            .iter()
            .map(|(header, step, metric)| Column {
                header: (*header).into(),
                step: (*step).into(),
                metric: (*metric).into(),
            })
            .collect(),
        baseline: None,
        compare: None,
        expected_duration: Some(Duration::from_secs(180)),
        published: None,
    }
}

fn steps() -> Vec<Step> {
    let limit = Duration::from_secs(600);
    let step = |name: &str, action| Step { name: name.into(), action, limit, background: false };
    vec![
        step("mkfs", StepAction::Mkfs),
        step("mount", StepAction::Mount),
        step("fsck", StepAction::Fsck { mode: FsckMode::ReadOnly }),
    ]
}

/// Another factor: name, levels, their numbers.
pub(crate) type More<'a> = (&'a str, Vec<String>, Option<Vec<u64>>);

/// Fills in the cells: every combination, the last factor fastest. `filesystems` is the first factor.
pub(crate) fn cross(plan: &mut Plan, filesystems: &[Fs], others: &[More<'_>]) {
    plan.factors.push(Factor {
        name: "filesystem".into(),
        levels: filesystems.iter().map(|fs| fs.0.into()).collect(),
        numbers: None,
    });
    for (name, levels, numbers) in others {
        plan.factors.push(Factor { name: (*name).into(), levels: levels.clone(), numbers: numbers.clone() });
    }
    let mut combinations: Vec<Vec<u32>> = vec![Vec::new()];
    for factor in &plan.factors {
        combinations = combinations
            .into_iter()
            .flat_map(|head| {
                (0..factor.levels.len()).map(move |level| {
                    let mut levels = head.clone();
                    levels.push(u32::try_from(level).expect("few levels"));
                    levels
                })
            })
            .collect();
    }
    for levels in combinations {
        let fs = &filesystems[levels[0] as usize];
        let names: Vec<&str> =
            levels.iter().zip(&plan.factors).map(|(level, factor)| factor.levels[*level as usize].as_str()).collect();
        let label = names.join(" · ");
        plan.cells.push(Cell {
            index: u32::try_from(plan.cells.len()).expect("few cells"),
            label,
            levels,
            filesystem: FilesystemSpec {
                name: fs.0.into(),
                kind: fs.1.into(),
                mkfs: fs.2.split_whitespace().map(str::to_owned).collect(),
                mount: fs.3.into(),
                ..FilesystemSpec::default()
            },
            device: DeviceSpec::Loop {
                size_bytes: 4 << 30,
                direct_io: true,
                sector_bytes: 512,
                directory: None,
                in_memory: false,
                model: None,
            },
            kernel: KernelSpec::Host,
            queue: vec![("scheduler".into(), "none".into())],
            steps: steps(),
        });
    }
}

pub(crate) fn dataset(plan: Plan) -> Dataset {
    Dataset {
        run: Run {
            blocks: Vec::new(),
            id: 3,
            identity: "7d6c2d4e-5f0a-4c51-9a51-0b8f6d0f3c11".into(),
            started_unix_ns: 1_795_295_738_000_000_000,
            finished_unix_ns: Some(1_795_295_905_000_000_000),
            command: ["fstone", "run", &plan.study, "--quick"].map(str::to_owned).to_vec(),
            plan,
            inventory: inventory(),
            note: None,
        },
        trials: Vec::new(),
    }
}

fn inventory() -> Inventory {
    let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    Inventory {
        taken_unix_ns: 1_795_295_737_000_000_000,
        host: "bench1".into(),
        kernel: "Linux 6.18.5 #1 SMP PREEMPT_DYNAMIC x86_64".into(),
        kernel_command_line: "BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro quiet".into(),
        distribution: "Debian GNU/Linux 12 (bookworm)".into(),
        cpu_model: "Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz".into(),
        cpus: 2,
        memory_bytes: 8 << 30,
        virtualization: Some("kvm".into()),
        device: Some(DeviceFacts {
            name: "vda".into(),
            model: None,
            size_bytes: 64 << 30,
            backing_filesystem: Some("ext4".into()),
            queue: vec![pair(("scheduler", "none")), pair(("rotational", "0")), pair(("read_ahead_kb", "128"))],
        }),
        tools: vec![pair(("mke2fs", "1.47.0")), pair(("e2fsck", "1.47.0")), pair(("mkfs.xfs", "6.1.0"))],
        fstone_version: "0.1.0".into(),
        fstone_commit: "f71ade3".into(),
        raw_read_bytes_per_second: Some(412.5 * 1024.0 * 1024.0),
        raw_write_bytes_per_second: Some(380.0 * 1024.0 * 1024.0),
        flushes_per_second: Some(1250.0),
        mounts: "22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw".into(),
        settings: vec![pair(("vm.dirty_ratio", "20")), pair(("vm.dirty_background_ratio", "10"))],
    }
}

/// What a cell is like: the mean of its first column, and the share it varies by.
pub(crate) struct Nature {
    pub(crate) figures: Vec<(f64, f64)>,
}

/// Adds completed trials in shuffled blocks. `nature` says what each cell is like.
pub(crate) fn complete(
    dataset: &mut Dataset,
    repeats: u32,
    random: &mut Random,
    nature: &dyn Fn(&Cell) -> Option<Nature>,
    load: &dyn Fn(&Cell, &mut Random, f64) -> Option<LoadReport>,
) {
    let plan = dataset.run.plan.clone();
    for repetition in 0..repeats {
        let mut cells: Vec<&Cell> = plan.cells.iter().collect();
        for index in (1..cells.len()).rev() {
            cells.swap(index, (random.next() % (index as u64 + 1)) as usize);
        }
        for cell in cells {
            let Some(nature) = nature(cell) else { continue };
            let values: Vec<f64> =
                nature.figures.iter().map(|(mean, spread)| mean * (1.0 + spread * random.normal())).collect();
            let report = load(cell, random, values[0]);
            dataset.trials.push(trial(dataset, &plan, cell, repetition, &values, report));
        }
    }
    renumber(dataset);
}

/// Positions and times follow the order in the list.
pub(crate) fn renumber(dataset: &mut Dataset) {
    let start = dataset.run.started_unix_ns;
    for (position, trial) in dataset.trials.iter_mut().enumerate() {
        trial.position = u32::try_from(position).expect("few trials");
        trial.started_unix_ns = start + position as u64 * 7_000_000_000;
    }
}

fn trial(
    dataset: &Dataset,
    plan: &Plan,
    cell: &Cell,
    repetition: u32,
    values: &[f64],
    load: Option<LoadReport>,
) -> Trial {
    let mut results: Vec<StepResult> = Vec::new();
    let mut started_ns = 0;
    let mut step = |name: &str, figures: Vec<Figure>, load: Option<LoadReport>, argv: &[&str]| {
        results.push(StepResult {
            step: name.into(),
            started_ns,
            duration_ns: 1_500_000_000,
            commands: vec![CommandRecord {
                argv: argv.iter().map(|&word| word.to_owned()).collect(),
                status: Some(0),
                duration_ns: 1_400_000_000,
                output_tail: String::new(),
            }],
            figures,
            load: load.map(Box::new),
        });
        started_ns += 1_500_000_000;
    };
    let mkfs = format!("mkfs.{}", cell.filesystem.kind);
    let mut argv = vec![mkfs.as_str()];
    argv.extend(cell.filesystem.mkfs.iter().map(String::as_str));
    argv.push("/dev/loop0");
    step("mkfs", vec![catalog::TIME.figure(0.21)], None, &argv);
    step("mount", vec![catalog::TIME.figure(0.014)], None, &["mount", "/dev/loop0"]);
    let of = |name: &str| {
        plan.columns
            .iter()
            .zip(values)
            .filter(|(column, _)| column.step == name)
            .map(|(column, value)| catalog::find(&column.metric).expect("a known metric").figure(*value))
            .collect::<Vec<_>>()
    };
    let mut figures = of("load");
    if load.is_some() {
        figures.push(catalog::DEVICE_WRITTEN_BYTES.figure(values[0] * 96_000.0));
        figures.push(catalog::WRITE_AMPLIFICATION.figure(1.0 + values[0] / 40_000.0));
    }
    if !figures.is_empty() {
        step("load", figures, load, &[]);
    }
    let figures = of("fsck");
    if !figures.is_empty() {
        step("fsck", figures, None, &["e2fsck", "-fn", "/dev/loop0"]);
    }
    let features = format!("has_journal extent {}", cell.filesystem.mkfs.join(" "));
    Trial {
        id: TrialId { cell: cell.index, repetition },
        position: u32::try_from(dataset.trials.len()).expect("few trials"),
        started_unix_ns: dataset.run.started_unix_ns,
        duration_ns: 6_900_000_000,
        seed: 1000 + u64::from(cell.index) * 100 + u64::from(repetition),
        outcome: Outcome::Completed,
        steps: results,
        effective: Effective {
            mount: Some(format!("rw,relatime {}", cell.filesystem.mount)),
            superblock: vec![("features".into(), features), ("block size".into(), "4096".into())],
        },
        warnings: Vec::new(),
    }
}

pub(crate) fn unsuccessful(dataset: &mut Dataset, cell: u32, repetition: u32, position: usize, outcome: Outcome) {
    let trial = Trial {
        id: TrialId { cell, repetition },
        position: 0,
        started_unix_ns: 0,
        duration_ns: 300_000_000,
        seed: 7,
        outcome,
        steps: Vec::new(),
        effective: Effective::default(),
        warnings: Vec::new(),
    };
    let position = position.min(dataset.trials.len());
    dataset.trials.insert(position, trial);
    renumber(dataset);
}

/// A load of create, write and readall with `rate` transactions per second over `seconds`.
pub(crate) fn load_report(random: &mut Random, rate: f64, seconds: u64) -> LoadReport {
    let per_second = rate / 16.0;
    let latency = |random: &mut Random, median_ns: f64, count: usize| {
        let values: Vec<u64> = (0..count)
            .map(|_| {
                let stalled = random.unit() < 0.01;
                let ns = median_ns * (0.55 * random.normal()).exp() * if stalled { 40.0 } else { 1.0 };
                ns as u64 + 900
            })
            .collect();
        Histogram::from_values(&values)
    };
    let median_ns = 128.0 / per_second * 1e9 / 3.0;
    let operation = |name: &str, share: f64, factor: f64, random: &mut Random| {
        let invocations = (per_second * share * seconds as f64) as u64;
        OperationReport {
            phase: "run".into(),
            group: "threadgroup0".into(),
            name: name.into(),
            invocations,
            transactions: invocations * 16,
            calls: invocations * 16,
            read_bytes: if name == "readall" { invocations * 65536 } else { 0 },
            written_bytes: if name == "readall" { 0 } else { invocations * 65536 },
            errors: 0,
            missed: 0,
            requested_share: share,
            latency: latency(random, median_ns * factor, 400),
            at_work: None,
        }
    };
    let operations = vec![
        operation("create", 0.25, 1.4, random),
        operation("write", 0.25, 0.9, random),
        operation("readall", 0.5, 0.5, random),
    ];
    let series = (0..seconds)
        .map(|second| {
            // Write-back sets in after a while and takes some throughput away.
            let level = if second % 12 > 8 { 0.62 } else { 1.0 } * (1.0 + 0.05 * random.normal());
            SeriesPoint {
                operations: (per_second * level) as u64,
                transactions: (rate * level) as u64,
                read_bytes: (per_second * level * 32768.0) as u64,
                written_bytes: (per_second * level * 32768.0) as u64,
                latency: latency(random, median_ns / level, 60),
            }
        })
        .collect();
    LoadReport {
        seed: 1,
        setup_ns: 2_100_000_000,
        elapsed_ns: seconds * 1_000_000_000 + 400_000_000,
        running_ns: seconds * 1_000_000_000,
        sync_ns: 400_000_000,
        first_done_ns: seconds * 990_000_000,
        last_done_ns: seconds * 1_000_000_000,
        process_user_ns: seconds * 110_000_000,
        process_system_ns: seconds * 700_000_000,
        threads: 128,
        per_thread: Vec::new(),
        phases: Vec::new(),
        operations,
        group_fsyncs: Vec::new(),
        calls: vec![CallReport {
            group: "threadgroup0".into(),
            call: "write".into(),
            latency: latency(random, 9_000.0, 200),
        }],
        series,
        series_interval_ns: 1_000_000_000,
        series_doublings: 0,
        own_series: Vec::new(),
        errors: Vec::new(),
        audit: Audit {
            rate: None,
            distinct_files: Some(Expected { expected: 4990.0, observed: 4987.0 }),
            distinct_blocks: None,
            mix_error_points: Some(0.4 + random.unit()),
            written_bytes: Some(Expected { expected: 5.0e9, observed: 5.0e9 }),
            null_ns_per_operation: Some(1180.0),
            overhead_share: Some(0.0031),
            verified_bytes: 0,
        },
        clock: ClockReport { source: "tsc".into(), cost_ns: 15.2, resolution_ns: 1.0 },
        ranks: None,
        replay: None,
        warnings: Vec::new(),
    }
}

const SMALL_FILE: [Fs; 8] = [
    Fs("ext3", "ext3", "-I 256", "data=writeback"),
    Fs("xfs", "xfs", "", ""),
    Fs("ext4", "ext4", "-I 256", "data=writeback"),
    Fs("ext4 nodelalloc", "ext4", "-I 256", "data=writeback,nodelalloc"),
    Fs("ext4 uninit_bg nomballoc", "ext4", "-I 256 -O uninit_bg", "data=writeback,nomballoc"),
    Fs("ext4 uninit_bg,flex_bg -G 64", "ext4", "-I 256 -O uninit_bg,flex_bg -G 64", "data=writeback"),
    Fs(
        "ext4 uninit_bg,flex_bg -G 64 journal_async_commit",
        "ext4",
        "-I 256 -O uninit_bg,flex_bg -G 64",
        "data=writeback,journal_async_commit",
    ),
    Fs("btrfs", "btrfs", "", ""),
];

/// The small-file study: 8 rows, one refused, one skipped, one that failed once, warnings and published figures.
pub(crate) fn small_file(repeats: u32) -> Dataset {
    let mut plan = plan(
        "small-file",
        "Small-file random create, write and read",
        repeats,
        &[
            ("transactions per second", "load", "transactions per second"),
            ("CPU", "load", "CPU"),
            ("fsck", "fsck", "time"),
        ],
    );
    cross(&mut plan, &SMALL_FILE, &[]);
    plan.baseline = Some(0);
    let figure = |cell: &str, column: &str, value: Option<f64>, note: Option<&str>| PublishedFigure {
        cell: cell.into(),
        column: column.into(),
        value,
        note: note.map(str::to_owned),
    };
    plan.published = Some(Published {
        memory_bytes: None,
        model: None,
        source: "FFSB 5.1, 2008; kernel 2.6.26-rc2 with the ext4 patch queue; 5 TB on an IBM DS4100; 1800 s.".into(),
        figures: vec![
            figure("ext3", "transactions per second", Some(7090.0), None),
            figure("ext3", "CPU", Some(8.6), None),
            figure("ext3", "fsck", Some(4004.0), None),
            figure("xfs", "transactions per second", None, Some("system hung")),
            figure("ext4", "transactions per second", Some(7898.0), None),
            figure("ext4", "CPU", Some(7.2), None),
            figure("ext4", "fsck", Some(2593.0), None),
            figure("ext4 nodelalloc", "transactions per second", Some(9491.0), None),
            figure("ext4 nodelalloc", "CPU", Some(13.1), None),
            figure("ext4 nodelalloc", "fsck", Some(2827.0), None),
            figure("ext4 uninit_bg,flex_bg -G 64", "transactions per second", Some(9906.0), None),
            figure("ext4 uninit_bg,flex_bg -G 64", "CPU", Some(9.1), None),
            figure("ext4 uninit_bg,flex_bg -G 64", "fsck", Some(245.0), None),
            figure("ext4 uninit_bg nomballoc", "transactions per second", Some(7268.0), None),
            figure("ext4 lazy_bg", "transactions per second", Some(9000.0), None),
        ],
    });
    let mut dataset = dataset(plan);
    let mut random = Random::new(11);
    let nature = |cell: &Cell| {
        let (rate, cpu, fsck) = match cell.index {
            0 => (41_000.0, 61.0, 2.9),
            1 => (52_300.0, 64.0, 0.61),
            2 => (57_800.0, 58.0, 2.1),
            3 => (49_000.0, 71.0, 2.2),
            5 => (58_100.0, 57.0, 0.34),
            6 => (66_000.0, 57.5, 0.33),
            _ => return None,
        };
        Some(Nature { figures: vec![(rate, 0.012), (cpu, 0.03), (fsck, 0.04)] })
    };
    complete(&mut dataset, repeats, &mut random, &nature, &|_, random, rate| Some(load_report(random, rate, 30)));
    unsuccessful(&mut dataset, 4, 0, 2, Outcome::Refused(Reason::new("mount", "ext4: Unknown parameter 'nomballoc'")));
    unsuccessful(
        &mut dataset,
        7,
        0,
        5,
        Outcome::Skipped(Reason::new("mkfs", "mkfs.btrfs is not installed").with_cure("apt-get install btrfs-progs")),
    );
    unsuccessful(
        &mut dataset,
        1,
        repeats,
        99,
        Outcome::Failed(Reason::new(
            "fsck",
            format!("{NOT_CONSISTENT}: xfs_repair -n: exit status 1\nagi unlinked bucket 3 is 67 in ag 0"),
        )),
    );
    for (index, trial) in dataset.trials.iter_mut().enumerate().filter(|(_, trial)| trial.id.cell == 3) {
        trial.warnings.push(format!("achieved mix is {}.{index} percentage points off", 5 + trial.id.repetition));
    }
    dataset
}

const LARGE_FILE: [Fs; 3] = [
    Fs("ext3", "ext3", "-I 256", "data=writeback"),
    Fs("ext4", "ext4", "-I 256", "data=writeback"),
    Fs("xfs", "xfs", "", ""),
];

/// The large-file study: three filesystems × three numbers of threads.
pub(crate) fn large_file(repeats: u32) -> Dataset {
    let mut plan = plan(
        "large-file",
        "Sequential create of large files",
        repeats,
        &[("throughput", "load", "write throughput"), ("CPU", "load", "CPU")],
    );
    let threads = ["4", "16", "64"].map(str::to_owned).to_vec();
    cross(&mut plan, &LARGE_FILE, &[("threads", threads, Some(vec![4, 16, 64]))]);
    plan.baseline = Some(0);
    let mut dataset = dataset(plan);
    let rates = [[32.7, 34.8, 32.8], [44.7, 45.1, 40.5], [45.1, 38.8, 33.3]];
    let nature = |cell: &Cell| {
        let rate = rates[cell.levels[0] as usize][cell.levels[1] as usize] * 1024.0 * 1024.0;
        Some(Nature { figures: vec![(rate, 0.015), (18.0 - 3.0 * f64::from(cell.levels[0]), 0.04)] })
    };
    complete(&mut dataset, repeats, &mut Random::new(5), &nature, &|_, _, _| None);
    dataset
}

pub(crate) fn sweep(repeats: u32) -> Dataset {
    let mut plan = plan(
        "random-io",
        "Random reads and writes over a growing set of files",
        repeats,
        &[("execution time", "load", "execution time")],
    );
    let sizes: Vec<u64> = (0..5).map(|power| 1 << (30 + power)).collect();
    let names = ["1 GiB", "2 GiB", "4 GiB", "8 GiB", "16 GiB"].map(str::to_owned).to_vec();
    cross(&mut plan, &[Fs("ext4", "ext4", "", ""), Fs("xfs", "xfs", "", "")], &[("total size", names, Some(sizes))]);
    let mut dataset = dataset(plan);
    let seconds = [[73.78, 86.8, 99.02, 115.07, 134.69], [75.75, 88.09, 108.99, 124.53, 136.63]];
    let nature =
        |cell: &Cell| Some(Nature { figures: vec![(seconds[cell.levels[0] as usize][cell.levels[1] as usize], 0.01)] });
    complete(&mut dataset, repeats, &mut Random::new(6), &nature, &|_, _, _| None);
    dataset
}

pub(crate) fn alike(repeats: u32) -> Dataset {
    let mut plan = plan(
        "a-a",
        "One filesystem under four names",
        repeats,
        &[("transactions per second", "load", "transactions per second")],
    );
    let names =
        [Fs("one", "ext4", "", ""), Fs("two", "ext4", "", ""), Fs("three", "ext4", "", ""), Fs("four", "ext4", "", "")];
    cross(&mut plan, &names, &[]);
    let mut dataset = dataset(plan);
    let nature = |_: &Cell| Some(Nature { figures: vec![(10_000.0, 0.02)] });
    complete(&mut dataset, repeats, &mut Random::new(8), &nature, &|_, _, _| None);
    dataset
}

/// `cells` rows × `repeats` trials for time and size, each with the same report of a minute's load when there are to be any.
pub(crate) fn many(cells: usize, repeats: u32, with_loads: bool) -> Dataset {
    let mut plan = plan(
        "many",
        "Very many trials",
        repeats,
        &[
            ("transactions per second", "load", "transactions per second"),
            ("CPU", "load", "CPU"),
            ("fsck", "fsck", "time"),
        ],
    );
    let names: Vec<String> = (0..cells).map(|index| format!("option set {index}")).collect();
    cross(&mut plan, &[Fs("ext4", "ext4", "", "")], &[("options", names, None)]);
    let mut dataset = dataset(plan);
    let nature = |cell: &Cell| {
        let rate = 10_000.0 + 37.0 * f64::from(cell.index);
        Some(Nature { figures: vec![(rate, 0.02), (50.0, 0.05), (1.5, 0.05)] })
    };
    let mut random = Random::new(9);
    let load = with_loads.then(|| load_report(&mut random, 10_000.0, 60));
    complete(&mut dataset, repeats, &mut random, &nature, &|_, _, _| load.clone());
    dataset
}

/// One factor varied at a time around a common point: three sweeps, two filesystems.
pub(crate) fn star(repeats: u32) -> Dataset {
    let mut plan = plan(
        "random-io",
        "Random reads and writes: a fixed number of requests",
        repeats,
        &[("execution time", "load", "execution time")],
    );
    let size = |mib: u64| (format!("{mib} MiB"), mib << 20);
    let (sizes, bytes): (Vec<String>, Vec<u64>) = [128, 256, 512].map(size).into_iter().unzip();
    let numbers = |list: [u64; 3]| (list.map(|number| number.to_string()).to_vec(), list.to_vec());
    let ((files, file_numbers), (threads, thread_numbers)) = (numbers([1, 16, 128]), numbers([1, 4, 16]));
    cross(
        &mut plan,
        &[Fs("ext3", "ext3", "", ""), Fs("xfs today", "xfs", "", "")],
        &[
            ("total-size", sizes, Some(bytes)),
            ("files", files, Some(file_numbers)),
            ("threads", threads, Some(thread_numbers)),
        ],
    );
    // 128 files and 16 threads; 256 MiB and 1 thread; 256 MiB in 1 file.
    plan.cells.retain(|cell| {
        let at = |factor: usize, level: u32| cell.levels[factor] == level;
        (at(2, 2) && at(3, 2)) || (at(1, 1) && at(3, 0)) || (at(1, 1) && at(2, 0))
    });
    for (index, cell) in plan.cells.iter_mut().enumerate() {
        cell.index = u32::try_from(index).expect("few cells");
    }
    plan.baseline = Some(0);
    let mut dataset = dataset(plan);
    let nature = |cell: &Cell| {
        let seconds = 2.0 + f64::from(cell.levels[0]) + f64::from(cell.levels[1]) - 0.3 * f64::from(cell.levels[3]);
        Some(Nature { figures: vec![(seconds, 0.02)] })
    };
    complete(&mut dataset, repeats, &mut Random::new(12), &nature, &|_, _, _| None);
    dataset
}
