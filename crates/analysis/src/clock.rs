//! Whether a run's seconds are real, or virtual on a modelled drive.

use crate::text::{line, listing};
use fstone_model::{
    Cell, Dataset, Trial,
    dataset::Run,
    inventory::{CHARGE_SETTING, PROCESSOR_SETTING},
};

pub fn is_virtual(dataset: &Dataset) -> bool {
    let cells = &dataset.run.plan.cells;
    !cells.is_empty() && cells.iter().all(|cell| cell.kernel.is_exact())
}

/// Whether no trial has another seed than the first ones. Perturbed guests are all that scatters then, and count as trials of the row.
pub fn has_one_seed(dataset: &Dataset) -> bool {
    let of_block = |trial: &Trial| trial.id.perturbation().is_some() || trial.id.repetition == 0;
    is_virtual(dataset) && dataset.trials.iter().all(of_block)
}

/// Whether there is one trial of each row, in virtual time: its figures are exact for its seed, but how far a perturbed guest would
/// move them is not known.
pub fn is_one_seed(dataset: &Dataset) -> bool {
    let mut rows: Vec<u32> = dataset.trials.iter().map(|trial| trial.id.cell).collect();
    let trials = rows.len();
    rows.sort_unstable();
    rows.dedup();
    is_virtual(dataset) && trials == rows.len()
}

/// The clock, for a table's heading: "virtual time on hdd-7200-2008, 2 µs charged for each system call";
/// `None` for real time.
pub fn heading(run: &Run) -> Option<String> {
    let exact: Vec<&Cell> = run.plan.cells.iter().filter(|cell| cell.kernel.is_exact()).collect();
    let mut models: Vec<String> = exact.iter().filter_map(|cell| cell.device.model()).map(line).collect();
    models.dedup();
    let on = if models.is_empty() { String::new() } else { format!(" on {}", listing(&models)) };
    (!exact.is_empty()).then(|| {
        let call = charge(run).map_or_else(String::new, |charge| format!(", {charge} charged for each system call"));
        let work = processor(run).map_or_else(String::new, |processor| {
            let name = processor.split(':').next().unwrap_or_default();
            format!(" and the kernel's work charged as on {name}")
        });
        format!("virtual time{on}{call}{work}")
    })
}

/// What has to be alike for seconds to be alike, in words.
pub(crate) fn told(dataset: &Dataset) -> String {
    let run = &dataset.run;
    let charge = charge(run).map_or_else(String::new, |charge| format!(", {charge} a system call"));
    let charge = processor(run).map_or(charge.clone(), |processor| format!("{charge}, {processor}"));
    match (run.plan.cells.iter().any(|cell| cell.kernel.is_exact()), is_virtual(dataset)) {
        (_, true) => format!("virtual time{charge}"),
        (true, false) => format!("real time and virtual time{charge}"),
        (false, false) => "real time".to_owned(),
    }
}

fn charge(run: &Run) -> Option<String> {
    setting(run, CHARGE_SETTING)
}

fn processor(run: &Run) -> Option<String> {
    setting(run, PROCESSOR_SETTING)
}

fn setting(run: &Run, wanted: &str) -> Option<String> {
    run.inventory.settings.iter().find(|(name, _)| name == wanted).map(|(_, value)| line(value))
}
