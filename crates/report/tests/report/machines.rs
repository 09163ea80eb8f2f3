//! Runs whose blocks several machines made.

use crate::fixture::{self, Fs, Nature, Random};
use fstone_analysis::{Analysis, runs};
use fstone_model::{Dataset, Inventory, dataset::BlockOrigin};
use fstone_report::{Options, TerminalOptions};

const COLUMNS: [(&str, &str, &str); 1] = [("transactions per second", "load", "transactions per second")];

/// The larger row's true ratio to the smaller one.
const RATIO: f64 = 1.1;

/// How much every figure scatters beside what its block shares.
const SCATTER: f64 = 0.05;

/// A run of two rows whose blocks are dealt out to four machines, two of which are twice as fast; the fast ones make more of them.
fn dealt(blocks: u32, seed: u64) -> Dataset {
    let mut plan = fixture::plan("small-file", "Small files", blocks, &COLUMNS);
    fixture::cross(&mut plan, &[Fs("ext4", "ext4", "", ""), Fs("xfs", "xfs", "", "")], &[]);
    let mut dataset = fixture::dataset(plan);
    let random = &mut Random::new(seed);
    let of_block: Vec<usize> = (0..blocks).map(|_| [0, 0, 1, 1, 2, 3][(random.next() % 6) as usize]).collect();
    let nature = |cell: &fstone_model::Cell| {
        Some(Nature { figures: vec![(if cell.index == 0 { 1e4 } else { 1e4 * RATIO }, 0.0)] })
    };
    fixture::complete(&mut dataset, blocks, random, &nature, &|_, _, _| None);
    for block in 0..blocks {
        let machine = of_block[block as usize];
        let shared = [2.0, 2.0, 1.0, 1.0][machine] * (0.1 * random.normal()).exp();
        for trial in dataset.trials.iter_mut().filter(|trial| trial.id.repetition == block) {
            for figure in trial.steps.iter_mut().flat_map(|step| &mut step.figures) {
                figure.value *= shared * (SCATTER * random.normal()).exp();
            }
        }
        let name = format!("n{}", machine + 1);
        let inventory =
            Inventory { host: name.clone(), cpus: 4, cpu_model: "Model".into(), ..dataset.run.inventory.clone() };
        dataset.run.blocks.push(BlockOrigin { block, machine: name, inventory });
    }
    dataset
}

/// The share of runs whose interval of the ratio holds the true one, and the median half-width of these intervals.
fn coverage(runs: u64, blocks: u32) -> (f64, f64) {
    let (mut held, mut widths) = (0, Vec::new());
    for seed in 0..runs {
        let dataset = dealt(blocks, 1000 + seed);
        let analysis = Analysis::of(&dataset);
        let panel = analysis.comparisons[0].panels[0].as_ref().expect("two rows");
        let pair = &panel.comparison.pairs[0];
        // Of a panel the rows stand best first.
        let truth = if panel.rows[pair.baseline] == 0 { RATIO } else { 1.0 / RATIO };
        let interval = pair.relative.expect("positive").interval;
        held += u64::from((interval.low..=interval.high).contains(&(truth - 1.0)));
        widths.push((interval.high - interval.low) / 2.0);
    }
    widths.sort_by(f64::total_cmp);
    (held as f64 / runs as f64, widths[widths.len() / 2])
}

/// What is said in docs/method.md: machines that differ by a factor of two are part of what blocks share.
#[test]
fn intervals_hold_the_truth_although_machines_differ_twofold() {
    for blocks in [4, 8] {
        let (held, width) = coverage(2500, blocks);
        println!("{blocks} blocks: {:.1} %, ± {:.1} %", held * 100.0, width * 100.0);
        assert!((0.94..=0.96).contains(&held), "{blocks} blocks: {held}");
        assert!(width < 0.15, "nor are they wide for it: {width}");
    }
}

#[test]
fn what_machines_differ_by_is_neither_drift_nor_outlier() {
    let mut dataset = dealt(12, 7);
    for origin in &mut dataset.run.blocks {
        let name = if origin.block < 9 { "n1" } else { "n2" };
        origin.machine = name.into();
    }
    for trial in &mut dataset.trials {
        let level = if trial.id.repetition < 9 { 1e4 } else { 2e4 };
        for figure in trial.steps.iter_mut().flat_map(|step| &mut step.figures) {
            figure.value = level + f64::from(trial.id.repetition * 37 % 5);
        }
    }
    let marked = |dataset: &Dataset| {
        let analysis = Analysis::of(dataset);
        let outliers = analysis.rows[0].entries[0].values.iter().filter(|value| value.outlier).count();
        (analysis.drifts.len(), outliers)
    };
    assert_eq!(marked(&dataset), (0, 0));
    dataset.run.blocks.clear();
    let (drifts, outliers) = marked(&dataset);
    assert!(drifts > 0 || outliers > 0, "on one machine they would be");
}

#[test]
fn every_report_says_which_machine_made_which_blocks() {
    let dataset = dealt(4, 3);
    let analysis = Analysis::of(&dataset);
    let machines = fstone_analysis::machines(&dataset);
    assert!(machines.len() > 1);
    let terminal = fstone_report::terminal(&dataset, &TerminalOptions::default());
    let told = [
        terminal.split_whitespace().collect::<Vec<_>>().join(" "),
        fstone_report::markdown(&dataset, &Options::default()),
        fstone_report::html(&dataset, &Options::default()),
    ];
    for machine in &machines {
        let words = format!("{} ({})", machine.name, machine.blocks_in_words());
        for report in &told {
            assert!(report.contains(&words), "{words}: {report}");
        }
    }
    assert!(told[0].contains("Blocks: made by n"), "{}", told[0]);
    assert!(told[2].contains("4 × Model"), "each with what it is");
    assert!(analysis.columns.iter().all(|column| column.ceiling.is_none()), "no device is all machines'");
    // Two such runs are of the same machines only when these made as many blocks.
    let machines_differ = |a: &Dataset, b: &Dataset| {
        runs::mismatches(a, b).iter().any(|mismatch| mismatch.setting == runs::Setting::Machine)
    };
    assert!(!machines_differ(&dataset, &dataset));
    let mut other = dataset.clone();
    other.run.blocks[0].inventory.host = "elsewhere".into();
    assert!(machines_differ(&dataset, &other));
    other.run.blocks.clear();
    assert!(machines_differ(&dataset, &other));
}

/// A name is given by people: what figures depend on says whether it is the same machine.
#[test]
fn another_machine_of_the_same_name_is_another_one() {
    let mut dataset = dealt(6, 3);
    for origin in &mut dataset.run.blocks {
        origin.machine = "localhost".into();
        origin.inventory.kernel = if origin.block < 4 { "Linux 6.1.0" } else { "Linux 6.2.0" }.into();
        origin.inventory.memory_bytes = (8 << 30) + u64::from(origin.block);
    }
    let machines = fstone_analysis::machines(&dataset);
    let told: Vec<(&str, &[u32])> =
        machines.iter().map(|machine| (machine.name.as_str(), machine.blocks.as_slice())).collect();
    assert_eq!(told, [("localhost", &[0, 1, 2, 3][..]), ("localhost #2", &[4, 5])]);
}

/// One block that was quick is no sign; all that a machine made is.
#[test]
fn faster_than_the_device_is_said_of_machines_and_not_of_blocks() {
    let warned = |of_block: &dyn Fn(u32) -> f64| {
        let mut plan = fixture::plan("small-file", "Small files", 4, &[("reads", "load", "read throughput")]);
        fixture::cross(&mut plan, &[Fs("ext4", "ext4", "", ""), Fs("xfs", "xfs", "", "")], &[]);
        let mut dataset = fixture::dataset(plan);
        let nature = |_: &fstone_model::Cell| Some(Nature { figures: vec![(1e8, 0.0)] });
        fixture::complete(&mut dataset, 4, &mut Random::new(1), &nature, &|_, _, _| None);
        for trial in &mut dataset.trials {
            let value = of_block(trial.id.repetition);
            trial.steps.iter_mut().flat_map(|step| &mut step.figures).for_each(|figure| figure.value = value);
        }
        for block in 0..4 {
            let host = if block < 2 { "n1" } else { "n2" }.to_owned();
            // Measured before each block, never the same.
            let raw_read_bytes_per_second = Some(1e8 * (1.0 + f64::from(block) / 10.0));
            let inventory =
                Inventory { host: host.clone(), raw_read_bytes_per_second, ..dataset.run.inventory.clone() };
            dataset.run.blocks.push(BlockOrigin { block, machine: host, inventory });
        }
        Analysis::of(&dataset).warnings.iter().any(|warning| warning.text.contains("faster than the device"))
    };
    assert!(!warned(&|_| 9e7));
    assert!(!warned(&|block| if block == 3 { 9e8 } else { 9e7 }), "one block");
    assert!(
        !warned(&|block| if block < 2 { 1.2e8 } else { 9e7 }),
        "within what the device did before the machine's other block"
    );
    assert!(warned(&|block| if block < 2 { 9e8 } else { 9e7 }), "all that one machine made");
}
