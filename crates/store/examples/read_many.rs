//! How long a store takes to read a run of many trials: `cargo run --release -p fstone-store --example read_many [TRIALS [STORE]]`.
//! As reports read it, the same without load reports, and as it was recorded.
//!
//! The trials have what a trial of `small-file --quick` had on the machine that this was first measured on: 6 steps, 110 figures, 5
//! commands, and a load report of 52 kB of JSON. A STORE that is named is kept, for `fstone report --store STORE`.

use fstone_model::dataset::Run;
use fstone_model::load::{CallReport, OperationReport, SeriesPoint};
use fstone_model::metric::catalog;
use fstone_model::result::{CommandRecord, Effective, TrialId};
use fstone_model::study::{Column, DeviceSpec, Factor, FilesystemSpec, KernelSpec, Order, Repeats, StepAction};
use fstone_model::{
    Better, Cell, Dataset, Figure, Histogram, Inventory, LoadReport, Outcome, Plan, Step, StepResult, Trial, Unit,
};
use fstone_store::{ReadError, Store};
use std::{path::PathBuf, time::Duration, time::Instant};

const ROWS: u32 = 10;
const STEPS: [&str; 6] = ["mkfs", "mount", "load", "sync", "unmount", "fsck"];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let trials: u32 = arguments.next().map_or(10_000, |text| text.parse().expect("a number of trials"));
    let kept = arguments.next().map(PathBuf::from);
    let directory = tempfile::tempdir().expect("a directory");
    let path = kept.unwrap_or_else(|| directory.path().join("fstone.db"));
    let mut store = Store::open(&path).expect("a store");
    if store.runs().expect("readable").is_empty() {
        let run = store.begin_run(&run(trials / ROWS)).expect("recorded");
        for position in 0..trials {
            store.record_trial(run, &trial(position)).expect("recorded");
        }
        store.finish_run(run, 1_780_000_000_000_000_000).expect("recorded");
    }
    for _ in 0..3 {
        let timed = |read: &dyn Fn() -> Result<Dataset, ReadError>| {
            let begin = Instant::now();
            let dataset = read().expect("readable");
            (begin.elapsed().as_secs_f64(), dataset.trials.len())
        };
        let (shown, trials) = timed(&|| store.shown(1));
        let (tables, _) = timed(&|| store.without_series(1));
        let (figures, _) = timed(&|| store.figures(1));
        let (whole, _) = timed(&|| store.dataset(1));
        println!(
            "{trials} trials: shown in {shown:.3} s, without series in {tables:.3} s, figures in {figures:.3} s, whole in {whole:.3} s"
        );
    }
}

fn run(repeats: u32) -> Run {
    let cell = |index: u32| Cell {
        index,
        levels: vec![index],
        label: format!("row {index}"),
        filesystem: FilesystemSpec { name: format!("row {index}"), kind: "ext4".into(), ..FilesystemSpec::default() },
        device: DeviceSpec::Loop {
            size_bytes: 4 << 30,
            direct_io: true,
            sector_bytes: 512,
            directory: None,
            in_memory: false,
            model: None,
        },
        kernel: KernelSpec::Host,
        queue: Vec::new(),
        steps: [StepAction::Mkfs, StepAction::Mount, StepAction::Sync]
            .map(|action| Step {
                name: action.kind().name().into(),
                action,
                limit: Duration::from_secs(60),
                background: false,
            })
            .into(),
    };
    let column = |metric: &str| Column { header: metric.into(), step: "load".into(), metric: metric.into() };
    let plan = Plan {
        study: "many".into(),
        title: "Many trials".into(),
        about: String::new(),
        source: String::new(),
        attachments: Vec::new(),
        quick: false,
        warm_up: 0,
        perturbed: 0,
        budget: None,
        repeats: Repeats { min: repeats, max: repeats, until: None },
        order: Order::Blocks,
        seed: 1,
        factors: vec![Factor {
            name: "filesystem".into(),
            levels: (0..ROWS).map(|row| format!("row {row}")).collect(),
            numbers: None,
        }],
        cells: (0..ROWS).map(cell).collect(),
        columns: [&catalog::TRANSACTIONS_PER_SECOND, &catalog::CPU].map(|metric| column(metric.name)).into(),
        baseline: Some(0),
        compare: None,
        expected_duration: None,
        published: None,
    };
    Run {
        blocks: Vec::new(),
        id: 0,
        identity: "many".into(),
        started_unix_ns: 1_780_000_000_000_000_000,
        finished_unix_ns: None,
        command: vec!["fstone".into()],
        plan,
        inventory: Inventory { host: "machine".into(), kernel: "Linux".into(), ..Inventory::default() },
        note: None,
    }
}

fn trial(position: u32) -> Trial {
    let mut random = Random(u64::from(position) + 1);
    let command = |argv: &[&str]| CommandRecord {
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        status: Some(0),
        duration_ns: 63_000_000,
        output_tail: "clean, 5011/262144 files, 271262/1048576 blocks".into(),
    };
    let mut steps: Vec<StepResult> = STEPS
        .iter()
        .map(|name| StepResult {
            step: (*name).into(),
            started_ns: 1_000_000,
            duration_ns: 2_000_000,
            commands: if *name == "load" { Vec::new() } else { vec![command(&[name, "-q", "/dev/loop0"])] },
            figures: (0..14).map(|number| figure(&format!("figure {number} of {name}"), &mut random)).collect(),
            load: None,
        })
        .collect();
    steps[2].figures.extend([
        catalog::TRANSACTIONS_PER_SECOND.figure(800.0 + random.unit()),
        catalog::CPU.figure(40.0 + random.unit()),
    ]);
    steps[2].figures.extend((0..24).map(|number| figure(&format!("part {number} latency p99"), &mut random)));
    steps[2].load = Some(Box::new(load(&mut random)));
    Trial {
        id: TrialId { cell: position % ROWS, repetition: position / ROWS },
        position,
        started_unix_ns: 1_780_000_000_000_000_000 + u64::from(position),
        duration_ns: 7_000_000_000,
        seed: u64::from(position),
        outcome: Outcome::Completed,
        steps,
        effective: Effective {
            mount: Some("rw,noatime".into()),
            superblock: (0..13).map(|number| (format!("name {number}"), "has_journal extent".into())).collect(),
        },
        warnings: Vec::new(),
    }
}

fn figure(name: &str, random: &mut Random) -> Figure {
    Figure { metric: name.into(), value: 1e3 * random.unit(), unit: Unit::Nanoseconds, better: Better::Lower }
}

fn load(random: &mut Random) -> LoadReport {
    let mut latency = |values: usize| {
        let values: Vec<u64> =
            (0..values).map(|_| (20_000.0 * (8.0 * random.unit() * random.unit()).exp()) as u64).collect();
        Histogram::from_values(&values)
    };
    let operations = ["create", "write", "read"].map(|name| OperationReport {
        group: "threads".into(),
        name: name.into(),
        invocations: 5000,
        transactions: 80_000,
        calls: 81_000,
        read_bytes: 16 << 20,
        latency: latency(1000),
        requested_share: 0.33,
        ..OperationReport::default()
    });
    let calls = ["open", "read", "write", "close"].map(|call| CallReport {
        group: "threads".into(),
        call: call.into(),
        latency: latency(1000),
    });
    let series = (0..8).map(|_| SeriesPoint { operations: 1000, latency: latency(350), ..SeriesPoint::default() });
    LoadReport {
        elapsed_ns: 2_000_000_000,
        running_ns: 1_900_000_000,
        operations: operations.into(),
        series: series.collect(),
        series_interval_ns: 250_000_000,
        calls: calls.into(),
        ..LoadReport::default()
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / u64::MAX as f64
    }
}
