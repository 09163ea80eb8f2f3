//! Runs and trials to record: one fixed pair with everything in it, and strategies for any.

use fstone_model::dataset::Run;
use fstone_model::inventory::DeviceFacts;
use fstone_model::load::{Audit, ClockReport, ErrorReport, Expected, OperationReport, SeriesPoint};
use fstone_model::metric::{Better, Figure, Unit, catalog};
use fstone_model::outcome::Reason;
use fstone_model::result::{CommandRecord, Effective, TrialId};
use fstone_model::study::{DeviceSpec, Factor, FilesystemSpec, KernelSpec, Order, Repeats, StepAction};
use fstone_model::{Cell, Histogram, Inventory, LoadReport, Note, Outcome, Plan, Step, StepResult, Trial};
use fstone_store::{Store, bundle};
use proptest::prelude::*;
use std::path::Path;
use std::time::Duration;

/// Cells of [`run`]: ext4 and xfs, with 1 and 16 threads each.
pub(crate) const CELLS: u32 = 4;

/// A run of 2 filesystems × 2 numbers of threads, at least three times each.
pub(crate) fn run() -> Run {
    let cell = |index: u32| {
        let (filesystem, threads) = (index / 2, index % 2);
        let kind = ["ext4", "xfs"][filesystem as usize];
        let step = |action: StepAction| Step {
            name: action.kind().name().into(),
            action,
            limit: Duration::from_secs(60),
            background: false,
        };
        Cell {
            index,
            levels: vec![filesystem, threads],
            label: format!("{kind} · {}", [1, 16][threads as usize]),
            filesystem: FilesystemSpec {
                name: kind.into(),
                kind: kind.into(),
                mkfs: vec!["-I".into(), "256".into()],
                mount: "noatime".into(),
                tree: None,
                own: None,
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
            steps: vec![step(StepAction::Mkfs), step(StepAction::Mount), step(StepAction::Sync)],
        }
    };
    Run {
        blocks: Vec::new(),
        id: 0,
        identity: "7d6c2d4e-5f0a-4c51-9a51-0b8f6d0f3c11".into(),
        started_unix_ns: 1_780_000_000_000_000_000,
        finished_unix_ns: None,
        note: note("before the patch: “-O2”"),
        command: vec!["fstone".into(), "run".into(), "small-file".into()],
        plan: Plan {
            study: "small-file".into(),
            title: "Small-file random create, write and read".into(),
            about: "About “it”.".into(),
            source: "title = \"…\"\n".into(),
            attachments: vec![("small-file.ffsb".into(), "directio=0\n".into())],
            quick: true,
            warm_up: 0,
            perturbed: 0,
            budget: None,
            repeats: Repeats { min: 3, max: 10, until: Some(0.02) },
            order: Order::Blocks,
            seed: u64::MAX,
            factors: vec![
                Factor { name: "filesystem".into(), levels: vec!["ext4".into(), "xfs".into()], numbers: None },
                Factor { name: "threads".into(), levels: vec!["1".into(), "16".into()], numbers: Some(vec![1, 16]) },
            ],
            cells: (0..CELLS).map(cell).collect(),
            columns: Vec::new(),
            baseline: Some(0),
            compare: None,
            expected_duration: Some(Duration::from_millis(1500)),
            published: None,
        },
        inventory: Inventory {
            host: "machine".into(),
            kernel: "Linux 6.1.0 #1 SMP x86_64".into(),
            raw_read_bytes_per_second: Some(0.1 + 0.2),
            device: Some(DeviceFacts { name: "vda".into(), size_bytes: u64::MAX, ..DeviceFacts::default() }),
            ..Inventory::default()
        },
    }
}

/// A completed trial with a load, two commands and a warning; its figures differ by position.
pub(crate) fn trial(id: TrialId, position: u32) -> Trial {
    let wobble = f64::from(position) / 3.0;
    let load = LoadReport {
        seed: u64::MAX - 1,
        elapsed_ns: 5_000_000_000,
        operations: vec![OperationReport {
            group: "threads".into(),
            name: "readall".into(),
            invocations: 1000,
            transactions: 4000,
            calls: 4100,
            read_bytes: 16 << 20,
            latency: Histogram::from_values(&[1_000, 2_000, 1 << 41]),
            requested_share: 0.5,
            ..OperationReport::default()
        }],
        series: vec![SeriesPoint { operations: 1000, ..SeriesPoint::default() }; 5],
        errors: vec![ErrorReport { operation: "readall".into(), errno: 5, ..ErrorReport::default() }],
        audit: Audit { mix_error_points: Some(wobble), ..Audit::default() },
        clock: ClockReport { source: "tsc".into(), cost_ns: 14.3, resolution_ns: 0.4 },
        ..LoadReport::default()
    };
    let step = |name: &str, figures: Vec<Figure>| StepResult {
        step: name.into(),
        started_ns: 1000,
        duration_ns: 2000,
        commands: Vec::new(),
        figures,
        load: None,
    };
    let mkfs = CommandRecord {
        argv: vec!["mkfs.ext4".into(), "-q".into(), "an image".into()],
        status: Some(0),
        duration_ns: 63_000_000,
        output_tail: String::new(),
    };
    let mount = CommandRecord { argv: vec!["mount".into()], status: None, ..mkfs.clone() };
    Trial {
        id,
        position,
        started_unix_ns: 1_780_000_001_000_000_000 + u64::from(position),
        duration_ns: 7_000_000_000,
        seed: u64::MAX,
        outcome: Outcome::Completed,
        steps: vec![
            StepResult {
                commands: vec![mkfs, mount],
                ..step("mkfs", vec![catalog::TIME.figure(0.063 + wobble / 1000.0)])
            },
            StepResult {
                load: Some(Box::new(load)),
                ..step(
                    "load",
                    vec![catalog::TRANSACTIONS_PER_SECOND.figure(800.0 + wobble), catalog::CPU.figure(40.0 - wobble)],
                )
            },
        ],
        effective: Effective {
            mount: Some("rw,noatime - rw,data=writeback".into()),
            superblock: vec![("features".into(), "has_journal extent".into())],
        },
        warnings: vec!["the device was busy before the trial".into()],
    }
}

pub(crate) fn refused(id: TrialId, position: u32) -> Trial {
    let words = "ext4: Unknown parameter 'nomballoc'";
    Trial {
        outcome: Outcome::Refused(Reason::new("mount", words).with_cure("leave it out")),
        steps: Vec::new(),
        ..trial(id, position)
    }
}

fn text() -> impl Strategy<Value = String> {
    // Control characters, NUL, quotes, and all of Unicode.
    prop_oneof!["[a-z -]{0,12}", "(?s).{0,6}", Just("it's a \"name\"\0\u{1b}[31m; --".to_owned())]
}

/// Every number but not-a-number.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        prop::num::f64::POSITIVE | prop::num::f64::NEGATIVE | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO,
        Just(-0.0),
        Just(f64::MAX),
        Just(5e-324),
        Just(9_007_199_254_740_993.0),
        Just(3.0),
    ]
}

/// SQLite's integers are signed.
fn integer() -> impl Strategy<Value = u64> {
    0..=i64::MAX.unsigned_abs()
}

fn unit() -> impl Strategy<Value = Unit> {
    prop::sample::select(vec![
        Unit::Seconds,
        Unit::Nanoseconds,
        Unit::Bytes,
        Unit::BytesPerSecond,
        Unit::PerSecond,
        Unit::Percent,
        Unit::Count,
        Unit::Ratio,
    ])
}

fn figures() -> impl Strategy<Value = Vec<Figure>> {
    let better = prop::sample::select(vec![Better::Higher, Better::Lower, Better::Neither]);
    let value = prop_oneof![number(), Just(f64::INFINITY), Just(f64::NEG_INFINITY)];
    prop::collection::btree_map(text(), (value, unit(), better), 0..5).prop_map(|figures| {
        let figures = figures.into_iter().rev();
        figures.map(|(metric, (value, unit, better))| Figure { metric, value, unit, better }).collect()
    })
}

fn load() -> impl Strategy<Value = LoadReport> {
    let operation = (text(), 0..u64::MAX / 16, 0.0..=1.0, prop::collection::vec(any::<u64>(), 0..5)).prop_map(
        |(name, invocations, requested_share, values)| OperationReport {
            name,
            invocations,
            requested_share,
            latency: Histogram::from_values(&values),
            ..OperationReport::default()
        },
    );
    let expected = (number(), number()).prop_map(|(expected, observed)| Expected { expected, observed });
    (any::<u64>(), prop::collection::vec(operation, 0..3), prop::option::of(expected), number()).prop_map(
        |(seed, operations, rate, cost_ns)| LoadReport {
            seed,
            operations,
            audit: Audit { rate, ..Audit::default() },
            clock: ClockReport { source: "tsc".into(), cost_ns, resolution_ns: -cost_ns },
            ..LoadReport::default()
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<StepResult>> {
    let command = (prop::collection::vec(text(), 0..3), any::<Option<i32>>(), integer(), text())
        .prop_map(|(argv, status, duration_ns, output_tail)| CommandRecord { argv, status, duration_ns, output_tail });
    let commands = prop::collection::vec(command, 0..3);
    let step = (integer(), integer(), commands, figures(), prop::option::of(load()));
    prop::collection::btree_map(text(), step, 0..4).prop_map(|steps| {
        let make = |(step, (started_ns, duration_ns, commands, figures, load))| {
            let load: Option<LoadReport> = load;
            StepResult { step, started_ns, duration_ns, commands, figures, load: load.map(Box::new) }
        };
        steps.into_iter().rev().map(make).collect()
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let reason = (text(), text(), prop::option::of(text()));
    (0..6, reason).prop_map(|(which, (step, words, cure))| {
        let reason = Reason { step, words, cure };
        match which {
            0 => Outcome::Completed,
            1 => Outcome::Refused(reason),
            2 => Outcome::Failed(reason),
            3 => Outcome::Hung(reason),
            4 => Outcome::Crashed(reason),
            _ => Outcome::Skipped(reason),
        }
    })
}

/// Any trials of the cells of [`run`], in the order of their positions.
pub(crate) fn trials() -> impl Strategy<Value = Vec<Trial>> {
    let key = (0..CELLS, any::<u32>());
    let effective = (prop::option::of(text()), prop::collection::vec((text(), text()), 0..3))
        .prop_map(|(mount, superblock)| Effective { mount, superblock });
    let body = (integer(), integer(), any::<u64>(), outcome(), steps(), effective, prop::collection::vec(text(), 0..3));
    prop::collection::btree_map(key, body, 0..5).prop_map(|trials| {
        let make = |(position, ((cell, repetition), body))| {
            let (started_unix_ns, duration_ns, seed, outcome, steps, effective, warnings) = body;
            let id = TrialId { cell, repetition };
            Trial { id, position, started_unix_ns, duration_ns, seed, outcome, steps, effective, warnings }
        };
        (0..).zip(trials.into_iter().rev()).map(make).collect()
    })
}

fn note(text: &str) -> Option<Note> {
    text.to_owned().try_into().ok()
}

pub(crate) fn runs() -> impl Strategy<Value = Run> {
    let texts = prop::array::uniform5(text());
    let numbers = (any::<u64>(), number(), number(), integer(), prop::option::of(integer()));
    (texts, numbers).prop_map(|([study, title, about, host, argument], (seed, until, speed, started, finished))| {
        let mut run = run();
        run.started_unix_ns = started;
        run.finished_unix_ns = finished;
        run.command = vec![argument.clone(), host.clone()];
        run.note = note(&argument);
        run.plan = Plan { study, title, about, seed, ..run.plan };
        run.plan.repeats.until = Some(until);
        run.plan.cells[1].label = argument;
        run.inventory = Inventory { host, raw_read_bytes_per_second: Some(speed), ..run.inventory };
        run
    })
}

pub(crate) fn export(store: &Store, run: u64, path: &Path) -> Result<(), bundle::ExportError> {
    bundle::write(store.dataset(run).expect("read"), path)
}
