//! Blocks of one run from several machines: which of them a machine may be asked for, and how they are merged.

use super::{RunState, elsewhere, now_unix_ns, reaches};
use crate::{
    args::Blocks,
    exit::Exit,
    terminal::{Failure, OrExit},
};
use fstone_analysis::text::counted;
use fstone_lab::run::schedule::Schedule;
use fstone_model::{Dataset, Plan, text};
use fstone_store::{
    RunSummary, Store,
    bundle::{self, MergeError, MergePart, Merged},
};

/// Refuses blocks that a plan does not have, and plans whose blocks cannot be made independently.
pub(super) fn check_blocks(plan: &Plan, blocks: &Blocks) -> Result<(), Failure> {
    if plan.budget.is_some() {
        return Err(Failure::new(
            Exit::BadInput,
            "with a time budget each block depends on the results of all blocks before it, so blocks cannot be run separately; use a number of repeats (--repeats)",
        ));
    }
    let most = plan.repeats.max.max(plan.repeats.min);
    match blocks.0.last() {
        Some(last) if *last >= most => Err(Failure::new(
            Exit::BadInput,
            format!(
                "there is no block {}: the plan of {} has {}",
                last + 1,
                plan.study,
                counted(most as usize, "block")
            ),
        )),
        _ => Ok(()),
    }
}

/// Blocks for people: "2-4, 6".
pub(super) fn written(blocks: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for block in blocks {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *block => *last = *block,
            _ => ranges.push((*block, *block)),
        }
    }
    let range = |(first, last): &(u32, u32)| {
        if first == last { (first + 1).to_string() } else { format!("{}-{}", first + 1, last + 1) }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

/// The blocks of a dataset that lack a trial, as (block, the label of a cell that it lacks).
pub(super) fn incomplete(dataset: &Dataset) -> Result<Vec<(u32, String)>, Failure> {
    let mut blocks: Vec<u32> = dataset.trials.iter().map(|trial| trial.id.repetition).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let mut lacking = Vec::new();
    for block in blocks {
        let mut schedule = Schedule::only(&dataset.run.plan, [block], &dataset.trials).or_exit(Exit::BadInput)?;
        if let Some(id) = schedule.next_trial() {
            lacking.push((block, dataset.run.plan.cells[id.cell as usize].label.clone()));
        }
    }
    Ok(lacking)
}

/// Merges bundles of whole blocks into a run, and finishes the run when it has all its trials.
pub(super) fn merge(store: &mut Store, run: u64, parts: &[MergePart]) -> Result<Merged, Failure> {
    for (name, staged) in parts {
        let dataset = staged.dataset().or_exit(Exit::LabFailed)?;
        if let Some((block, label)) = incomplete(&dataset)?.first() {
            return Err(Failure::new(
                Exit::CannotHere,
                format!(
                    "cannot merge {name} into run {run}: its block {} is incomplete, it lacks {}; a block comes from one machine, so run it again there",
                    block + 1,
                    text::line(label)
                ),
            ));
        }
    }
    match bundle::merge(store, run, parts) {
        Err(error @ MergeError::Refused { .. }) => {
            Err(Failure::new(Exit::CannotHere, format!("failed to {error}. Nothing was merged")))
        }
        other => other.or_exit(Exit::LabFailed),
    }
}

/// Finishes a run that has all its trials; the blocks of which it lacks some, as far as can be said now.
pub(super) fn finish_if_complete(store: &mut Store, run: u64) -> Result<Vec<u32>, Failure> {
    let dataset = store.figures(run).or_exit(Exit::LabFailed)?;
    let lacking = to_come(&dataset)?;
    if lacking.is_empty() && dataset.run.finished_unix_ns.is_none() {
        store.finish_run(run, now_unix_ns()).or_exit(Exit::LabFailed)?;
        reaches::forget_begun(store, run)();
    }
    Ok(lacking)
}

pub(super) fn to_come(dataset: &Dataset) -> Result<Vec<u32>, Failure> {
    Ok(Schedule::new(&dataset.run.plan, &dataset.trials).or_exit(Exit::LabFailed)?.blocks_to_come())
}

/// Refuses to merge into a run that a process is working on, because it would make the same blocks.
pub(super) fn refuse_going_on(run: &RunSummary) -> Result<(), Failure> {
    let words = match RunState::of(run) {
        RunState::InProgress(holder) => {
            format!(
                "run {} is still in progress (process {}); wait until it ends, or stop it first",
                run.id, holder.process
            )
        }
        RunState::Elsewhere(holder) => {
            format!("run {} was started {}, and may still be in progress there; merge there", run.id, elsewhere(holder))
        }
        RunState::Finished | RunState::Unfinished => return Ok(()),
    };
    Err(Failure::new(Exit::CannotHere, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_written_as_they_are_read() {
        assert_eq!(written(&[0, 1, 2, 4, 6, 7]), "1-3,5,7-8");
        assert_eq!(written(&[3]), "4");
        assert_eq!(written(&[]), "");
    }
}
