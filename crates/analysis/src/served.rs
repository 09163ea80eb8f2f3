//! Whether figures are those of a device on an otherwise idle machine: what was read from memory, and what other programs took.

use crate::{
    ceiling::{BOUNDED, Bounded, Ceiling, is_on_device},
    machines::{Machine, inventory_of, machines},
    notes::Warning,
    number::{Scale, grouped},
    table::{Row, TrialValue, entry},
    text,
};
use fstone_model::{Dataset, Trial, metric::catalog, study::KernelSpec};

/// A load that reads less than this says nothing about where it reads from.
const MIN_READ_BYTES: f64 = (1 << 20) as f64;
/// From this share on a load's reads are mostly the page cache's.
const MOSTLY: f64 = 0.5;

/// Of the machine's CPU time, what is neither the trial's nor kernel threads' nor interrupts'. From here on it is other programs'; on
/// a machine that the run had for itself it was a few per cent.
const OTHERS: f64 = 0.25;

/// In the warning of a trial that overlapped with another run.
const ANOTHER_RUN: &str = "another fstone run was in progress";

pub(super) fn warnings(dataset: &Dataset, rows: &[Row<'_>]) -> Vec<Warning> {
    let mut steps: Vec<&str> = Vec::new();
    for step in rows.iter().flat_map(|row| &row.trials).flat_map(|trial| &trial.steps) {
        if !steps.contains(&step.step.as_str()) {
            steps.push(&step.step);
        }
    }
    let of_step = |step| {
        let beyond = BOUNDED.iter().filter_map(|bounded| better_than_device(dataset, rows, step, bounded));
        let hidden = hidden(rows, step);
        from_memory(rows, step)
            .into_iter()
            .chain(hidden)
            .chain(beyond)
            .chain(shared(dataset, rows, step))
            .collect::<Vec<_>>()
    };
    steps.into_iter().flat_map(of_step).collect()
}

fn from_memory(rows: &[Row<'_>], step: &str) -> Option<Warning> {
    let shares: Vec<(usize, f64)> = rows
        .iter()
        .enumerate()
        .filter_map(|(index, row)| Some((index, least_from_memory(row, step)?)))
        .filter(|(_, share)| *share > MOSTLY)
        .collect();
    let least = shares.iter().map(|(_, share)| *share).reduce(f64::min)?;
    let least = (100.0 * least).floor();
    let part = if least < 100.0 { format!("at least {} %", grouped(least, 0)) } else { "all".to_owned() };
    let text = format!(
        "{}: {part} of the bytes that it read came from memory, so its figures are the page cache's more than a device's",
        text::line(step)
    );
    Some(Warning { text, rows: shares.into_iter().map(|(row, _)| row).collect(), trials: 0 })
}

/// Rows whose reads may have come from memory, which the reads of what ran beside them hide.
fn hidden(rows: &[Row<'_>], step: &str) -> Option<Warning> {
    let is_hidden = |row: &Row<'_>| {
        let seen = least_from_memory(row, step).is_some_and(|share| share > MOSTLY);
        had_company(row, step) && read_bytes(row, step).is_some() && !seen
    };
    let rows: Vec<usize> = (0..rows.len()).filter(|row| is_hidden(&rows[*row])).collect();
    let text = format!(
        "{}: the device also read for what ran beside it, so how much of its own reads came from memory is not known",
        text::line(step)
    );
    (!rows.is_empty()).then_some(Warning { text, rows, trials: 0 })
}

fn had_company(row: &Row<'_>, step: &str) -> bool {
    row.trials.iter().any(|trial| trial.figure(step, catalog::BESIDE.name).is_some())
}

/// What a row's trials read in this step; `None` where that is not known, or next to nothing.
fn read_bytes(row: &Row<'_>, step: &str) -> Option<f64> {
    let rate = entry(row, step, catalog::READ_THROUGHPUT.name);
    let time = entry(row, step, catalog::EXECUTION_TIME.name);
    let all_there = [&rate, &time].iter().all(|entry| entry.values.len() == row.completed);
    let read = rate.values.iter().zip(&time.values).map(|(rate, time)| rate.value * time.value).sum();
    (all_there && row.completed > 0 && read >= MIN_READ_BYTES).then_some(read)
}

/// The share of the bytes that a row's trials read in this step which the device did not read for it; `None` where one of the two is
/// not known. If something ran beside it, it is the least that this can have been.
fn least_from_memory(row: &Row<'_>, step: &str) -> Option<f64> {
    let read = read_bytes(row, step)?;
    let device = entry(row, step, catalog::DEVICE_READ_BYTES.name);
    let sum: f64 = device.values.iter().map(|value| value.value).sum();
    (device.values.len() == row.completed).then(|| (1.0 - sum / read).max(0.0))
}

/// That share, where nothing else made the device read.
pub fn share_from_memory(row: &Row<'_>, step: &str) -> Option<f64> {
    least_from_memory(row, step).filter(|_| !had_company(row, step))
}

fn better_than_device(dataset: &Dataset, rows: &[Row<'_>], step: &str, bounded: &Bounded) -> Option<Warning> {
    let run = &dataset.run;
    let cell_of = |row: &Row<'_>| dataset.run.plan.cells.iter().find(|cell| cell.index == row.cell);
    let machines = machines(dataset);
    let better = |row: &Row<'_>| {
        let values = entry(row, step, bounded.metric.name).values;
        // All figures that a machine made, beside its own device: the best that was measured of that before any of its blocks.
        let beaten = |machine: &Machine<'_>| {
            let made = |value: &&TrialValue| machine.blocks.contains(&row.trials[value.trial].id.repetition);
            let ceilings = machine.blocks.iter().filter_map(|block| bounded.ceiling(inventory_of(run, *block)));
            let ceiling = ceilings.reduce(Ceiling::higher);
            ceiling.is_some_and(|ceiling| ceiling.is_beaten(values.iter().filter(made).map(|value| value.value)))
        };
        cell_of(row).is_some_and(is_on_device) && machines.iter().any(beaten)
    };
    let found: Vec<usize> = rows.iter().enumerate().filter(|(_, row)| better(row)).map(|(index, _)| index).collect();
    let told = if run.blocks.is_empty() {
        let ceiling = bounded.ceiling(&run.inventory)?;
        Scale::of_one(bounded.metric.unit, ceiling.value).with_unit(ceiling.value)
    } else {
        "of the machine that made them".to_owned()
    };
    (!found.is_empty()).then(|| Warning {
        text: format!("{}: {}, {told} {}", text::line(step), bounded.warning, bounded.device),
        rows: found,
        trials: 0,
    })
}

/// Whether other programs took a large part of the machine during a step of a trial; `None` where that is not known.
fn is_shared(dataset: &Dataset, row: &Row<'_>, trial: &Trial, step: &str) -> Option<bool> {
    // A guest has one processor, and its meters count that one. In virtual time there are no other programs.
    let cpus = match dataset.run.plan.cells[row.cell as usize].kernel {
        KernelSpec::Host => f64::from(inventory_of(&dataset.run, trial.id.repetition).cpus),
        KernelSpec::Uml(_) | KernelSpec::Qemu(_) => 1.0,
        KernelSpec::Exact(_) => return None,
    };
    trial.figure(step, catalog::EXECUTION_TIME.name)?;
    is_disturbed(|metric| trial.figure(step, metric).map(|figure| figure.value), cpus)
}

/// Whether other programs took a large part of the machine while the meters ran that these figures are of, by name. `None` where that is not
/// known.
pub fn is_disturbed(value: impl Fn(&str) -> Option<f64>, cpus: f64) -> Option<bool> {
    let value = |metric: &str| value(metric).filter(|_| cpus > 0.0).map(|value| value / 100.0);
    let busy = value(catalog::CPU.name)? - value(catalog::CPU_IRQ.name)?;
    // A process' time is measured in CPUs, that of kernel threads as a share of the machine. Runs of earlier versions have only that of
    // the process that did the step.
    let own = value(catalog::TRIAL_CPU.name).or_else(|| value(catalog::PROCESS_CPU.name))?;
    let known = own / cpus + value(catalog::KERNEL_THREADS_CPU.name)?;
    Some(busy - known > OTHERS)
}

pub(super) fn disturbed(dataset: &Dataset, rows: &[Row<'_>]) -> usize {
    let of_row = |row: &Row<'_>| {
        let is_disturbed = |trial: &&&Trial| {
            trial.warnings.iter().any(|warning| warning.contains(ANOTHER_RUN))
                || trial.steps.iter().any(|step| is_shared(dataset, row, trial, &step.step) == Some(true))
        };
        row.trials.iter().filter(|trial| trial.outcome.is_completed()).filter(is_disturbed).count()
    };
    rows.iter().map(of_row).sum()
}

fn shared(dataset: &Dataset, rows: &[Row<'_>], step: &str) -> Option<Warning> {
    let (mut trials, mut disturbed, mut touched) = (0, 0, Vec::new());
    for (index, row) in rows.iter().enumerate() {
        let completed = row.trials.iter().filter(|trial| trial.outcome.is_completed());
        let found: Vec<bool> = completed.filter_map(|trial| is_shared(dataset, row, trial, step)).collect();
        let of_row = found.iter().filter(|found| **found).count();
        trials += found.len();
        disturbed += of_row;
        if of_row > 0 {
            touched.push(index);
        }
    }
    (disturbed > 0).then(|| Warning {
        text: format!(
            "{}: in {disturbed} of {trials} trials other programs took more than a quarter of the machine's CPU time, which \
             changes figures and widens intervals",
            text::line(step)
        ),
        rows: touched,
        trials: 0,
    })
}
