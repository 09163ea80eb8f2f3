//! The analysis through the whole path: simulated trials go into a store, and a report says what they show.

use fstone_analysis::{Analysis, MOST_WORDS};
use fstone_formats::{
    Source,
    study::{self, Overrides},
};
use fstone_model::{
    Better, Cell, Dataset, Figure, Inventory, Outcome, Plan, StepResult, Trial, Unit,
    dataset::Run,
    load_metric::kind_of,
    result::{Effective, TrialId},
    study::{Column, StepAction},
};
use fstone_report::{Options, json};
use fstone_store::Store;
use std::{fs, path::Path};

struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Normal, by the method of Box and Muller.
    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

fn studies() -> Vec<(String, Plan)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let load = |file: &str| fs::read_to_string(directory.join(file)).map_err(|error| error.to_string());
    let types: Vec<_> = fstone_lab::filesystem::types().collect();
    let mut names: Vec<String> = fs::read_dir(&directory)
        .expect("they are part of the source")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    let plan = |name: &String, quick| {
        let source = Source::new(name.clone(), load(name).expect("it is there"));
        let overrides = Overrides { quick, ..Overrides::default() };
        study::compile(&source, &load, &types, &overrides).unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
    };
    let both = |name: &String| {
        [("", false), (" --quick", true)].map(|(word, quick)| (format!("{name}{word}"), plan(name, quick)))
    };
    names.iter().flat_map(both).collect()
}

fn kind(cell: &Cell, column: &Column) -> (Unit, Better) {
    let step = cell.steps.iter().find(|step| step.name == column.step);
    if let Some(StepAction::Command { figures, .. }) = step.map(|step| &step.action)
        && let Some(figure) = figures.iter().find(|figure| figure.name == column.metric)
    {
        return (figure.unit, figure.better);
    }
    kind_of(&column.metric).unwrap_or((Unit::Count, Better::Lower))
}

/// A run of this plan in which each trial has these values, one for each column.
fn simulated(plan: Plan, repeats: u32, mut values: impl FnMut(&Cell, u32) -> Vec<f64>) -> Dataset {
    let mut trials = Vec::new();
    for (repetition, cell) in (0..repeats).flat_map(|block| plan.cells.iter().map(move |cell| (block, cell))) {
        let mut steps: Vec<StepResult> = Vec::new();
        for (column, value) in plan.columns.iter().zip(values(cell, repetition)) {
            let (unit, better) = kind(cell, column);
            let figure = Figure { metric: column.metric.clone(), value, unit, better };
            match steps.iter_mut().find(|step| step.step == column.step) {
                Some(step) => step.figures.push(figure),
                None => steps.push(StepResult {
                    step: column.step.clone(),
                    started_ns: 0,
                    duration_ns: 1_000_000_000,
                    commands: Vec::new(),
                    figures: vec![figure],
                    load: None,
                }),
            }
        }
        trials.push(Trial {
            id: TrialId { cell: cell.index, repetition },
            position: u32::try_from(trials.len()).expect("few"),
            started_unix_ns: 1_795_295_738_000_000_000 + trials.len() as u64,
            duration_ns: 2_000_000_000,
            seed: u64::from(repetition),
            outcome: Outcome::Completed,
            steps,
            effective: Effective { mount: Some("rw".into()), superblock: Vec::new() },
            warnings: Vec::new(),
        });
    }
    let run = Run {
        id: 1,
        identity: String::new(),
        started_unix_ns: 1_795_295_738_000_000_000,
        finished_unix_ns: Some(1_795_295_905_000_000_000),
        command: Vec::new(),
        plan,
        inventory: Inventory::default(),
        note: None,
        blocks: Vec::new(),
    };
    Dataset { run, trials }
}

/// `cargo nextest run -E 'test(/answers_of_all/)' --no-capture` prints them.
#[test]
fn answers_of_all_built_in_studies_are_short() {
    let mut random = Random(37);
    for (name, plan) in studies() {
        let repeats = plan.repeats.min;
        let (columns, cells) = (plan.columns.clone(), plan.cells.len());
        let base: Vec<f64> = columns.iter().map(|_| (9.0 * random.unit()).exp()).collect();
        let levels: Vec<Vec<f64>> =
            (0..cells).map(|_| base.iter().map(|base| base * (0.3 * random.normal()).exp()).collect()).collect();
        let dataset = simulated(plan, repeats, |cell, _| {
            let noise = |(column, level): (&Column, &f64)| match kind(cell, column).0 {
                Unit::Count => (level % 7.0).floor(),
                Unit::Percent => level % 90.0 * (0.05 * random.normal()).exp(),
                _ => level * (0.03 * random.normal()).exp(),
            };
            columns.iter().zip(&levels[cell.index as usize]).map(noise).collect()
        });
        let answer = Analysis::of(&dataset).sentences();
        let words: usize = answer.iter().map(|sentence| sentence.split_whitespace().count()).sum();
        println!("\n{name}, {words} words:\n{}", answer.join("\n"));
        assert!((1..=MOST_WORDS).contains(&words), "{name}: {words} words");
        assert!(!answer.join(" ").contains("NaN"));
    }
}

/// A row's noise, as a logarithm; minus infinity counts nothing. The rows' means are equal.
type Noise = fn(&mut Random, u32) -> f64;

struct Case {
    name: &'static str,
    rows: usize,
    blocks: u32,
    /// How far blocks differ.
    shared: f64,
    noise: Noise,
    missing: bool,
    /// What the first row's level is to the others'.
    factor: f64,
}

fn one_times(random: &mut Random, row: u32, scatter: f64) -> f64 {
    0.02 * if row == 0 { scatter } else { 1.0 } * random.normal()
}

fn cases() -> Vec<Case> {
    let noises: [(&str, bool, Noise); 10] = [
        ("alike", false, |random, row| one_times(random, row, 1.0)),
        ("one row × 3", false, |random, row| one_times(random, row, 3.0)),
        ("one row × 10", false, |random, row| one_times(random, row, 10.0)),
        ("one row × 30", false, |random, row| one_times(random, row, 30.0)),
        ("two rows × 3", false, |random, row| one_times(random, row / 2, 3.0)),
        ("two rows × 10", false, |random, row| one_times(random, row / 2, 10.0)),
        ("all rows × 0.1 to × 3", false, |random, row| {
            0.02 * [0.1, 0.3, 1.0, 3.0][row as usize % 4] * random.normal()
        }),
        ("a trial in ten of a row is zero", false, |random, row| match row {
            0 if random.unit() < 0.1 => f64::NEG_INFINITY,
            0 => 0.2 * random.normal() - 0.9_f64.ln(),
            _ => 0.2 * random.normal(),
        }),
        ("a trial in seven is missing", true, |random, row| one_times(random, row, 1.0)),
        ("the same, one row × 3", true, |random, row| one_times(random, row, 3.0)),
    ];
    let mut cases = Vec::new();
    for (name, missing, noise) in noises {
        for (rows, blocks) in [(2, 3), (5, 3), (9, 3), (9, 5)] {
            cases.push(Case { name, rows, blocks, shared: 0.1, noise, missing, factor: 1.0 });
        }
    }
    let bucket: Noise = |random, _| if random.unit() < 0.5 { 0.0 } else { 0.03 };
    cases.push(Case {
        name: "two values",
        rows: 3,
        blocks: 2,
        shared: 0.0,
        noise: bucket,
        missing: false,
        factor: 1.0,
    });
    for (factor, blocks) in [(2.0, 3), (2.0, 5)] {
        let noise: Noise = |random, _| 0.2 * random.normal();
        cases.push(Case { name: "σ = 0.2", rows: 9, blocks, shared: 0.1, noise, missing: false, factor });
    }
    cases
}

/// Prints how many tables of equal rows have a pair that is called different, and how often a larger row is found.
///
/// `FSTONE_TABLES=1000 FSTONE_CASES='one row' cargo nextest run --run-ignored only --no-capture -E 'test(/equal_rows/)'`
#[test]
#[ignore = "takes minutes; docs/method/calibration.md has what it printed"]
fn tables_of_equal_rows() {
    let variable = |name| std::env::var(name).ok();
    let tables: u32 = variable("FSTONE_TABLES").and_then(|number| number.parse().ok()).unwrap_or(1000);
    let wanted = variable("FSTONE_CASES").unwrap_or_default();
    let (_, plan) = studies().into_iter().find(|(name, _)| name == "small-file.toml").expect("it is built in");
    for case in cases().into_iter().filter(|case| case.name.contains(&wanted)) {
        let mut plan = plan.clone();
        plan.cells.truncate(case.rows);
        plan.columns.truncate(1);
        plan.baseline = Some(0);
        let mut random = Random(2026);
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
        let mut store = Store::open(&directory.path().join("fstone.db")).expect("a store");
        let (mut some, mut one, mut held) = (0, 0, 0);
        for table in 0..tables {
            let blocks: Vec<f64> = (0..case.blocks).map(|_| case.shared * random.normal()).collect();
            let mut dataset = simulated(plan.clone(), case.blocks, |cell, block| {
                let level = if cell.index == 0 { case.factor } else { 1.0 };
                vec![1000.0 * level * (blocks[block as usize] + (case.noise)(&mut random, cell.index)).exp()]
            });
            dataset.run.identity = format!("table {table}");
            if case.missing {
                dataset.trials.retain(|_| random.unit() > 1.0 / 7.0);
            }
            let run = store.begin_run(&dataset.run).expect("recorded");
            dataset.trials.iter().for_each(|trial| store.record_trial(run, trial).expect("recorded"));
            store.finish_run(run, 1_795_295_905_000_000_000).expect("recorded");
            let report = json(&store.dataset(run).expect("read"), &Options::default());
            let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
            let pairs = report["comparisons"].as_array().expect("pairs");
            let of_first = |pair: &serde_json::Value| [&pair["baseline"], &pair["other"]].contains(&&0.into());
            let of_last =
                |pair: &serde_json::Value| [&pair["baseline"], &pair["other"]].contains(&&(case.rows - 1).into());
            let different = || pairs.iter().filter(|pair| pair["differs"] == true);
            some += u32::from(different().any(|pair| case.factor == 1.0 || of_first(pair)));
            one += u32::from(different().any(|pair| of_first(pair) && of_last(pair)));
            let excludes = |pair: &serde_json::Value| {
                let end = |name: &str| pair["shift"]["interval"][name].as_f64();
                end("low").is_some_and(|low| low > 0.0) || end("high").is_some_and(|high| high < 0.0)
            };
            held += u32::from(!pairs.iter().any(excludes));
            store.delete_runs(&[(run, None)]).expect("deleted");
        }
        let share = |count: u32| 100.0 * f64::from(count) / f64::from(tables);
        let Case { name, rows, blocks, factor, .. } = case;
        println!(
            "{name} | {rows} × {blocks} | factor {factor} | some pair {:.1} % | one pair {:.1} % | intervals hold {:.1} %",
            share(some),
            share(one),
            share(held)
        );
        // Five, and three standard errors of 500 tables.
        assert!(factor > 1.0 || share(some) < 8.0, "{name}");
    }
}
