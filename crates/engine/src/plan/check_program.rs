//! What a program must not ask for.

use crate::error::LoadError;
use crate::fileset::Sizes;
use fstone_model::Workload;
use fstone_model::workload::{
    Action, Actions, FileChoice, MAXIMUM_HANDLES, MAXIMUM_STEPS, Operation, Phase, Step, ThreadGroup,
};

const MAXIMUM_DEPTH: usize = 16;

fn refuse(what: impl Into<String>) -> Result<(), LoadError> {
    Err(LoadError::Unsupported { what: what.into() })
}

/// Refuses what only programs can do elsewhere, and in programs what they cannot.
pub(super) fn check_program(workload: &Workload, phase: &Phase, group: &ThreadGroup) -> Result<(), LoadError> {
    for action in group.actions.all() {
        check_numbers(action)?;
    }
    let Actions::Program(steps) = &group.actions else {
        let by_handle = |action: &&Action| action.handle.is_some() || action.operation.needs_handle();
        return match group.actions.all().into_iter().find(by_handle) {
            Some(action) => refuse(format!("has {:?} work by a handle, which is for programs", action.name)),
            None => Ok(()),
        };
    };
    let (name, all) = (&group.name, Step::all(steps));
    if all.len() > MAXIMUM_STEPS || depth(steps) > MAXIMUM_DEPTH {
        return refuse(format!(
            "has a program in {name:?} of more than {MAXIMUM_STEPS} steps or {MAXIMUM_DEPTH} levels"
        ));
    }
    if group.stop.once_through || phase.stop.once_through {
        return refuse(format!("goes once through the program of {name:?}, which a step has to end (finish)"));
    }
    for step in all {
        check_step(phase, group, step)?;
    }
    group.actions.all().into_iter().try_for_each(|action| check_by_handle(workload, action))
}

fn depth(steps: &[Step]) -> usize {
    let of = |step: &Step| match step {
        Step::Repeat { steps, .. } => 1 + depth(steps),
        _ => 0,
    };
    steps.iter().map(of).max().unwrap_or(0)
}

fn check_step(phase: &Phase, group: &ThreadGroup, step: &Step) -> Result<(), LoadError> {
    let name = &group.name;
    let named = |of: &Option<String>| match of {
        Some(of) if !group.actions.all().iter().any(|action| action.name == *of) => {
            refuse(format!("has a step in {name:?} that goes by the action {of:?}, which is not there"))
        }
        _ => Ok(()),
    };
    match step {
        Step::Perform { times: 0, .. } | Step::Repeat { times: 0, .. } => {
            refuse(format!("has a step in the program of {name:?} that is never gone through"))
        }
        Step::Repeat { steps, .. } if Step::actions(steps).is_empty() => {
            refuse(format!("repeats steps in the program of {name:?} among which there is no operation"))
        }
        Step::Finish { of, .. } => named(of),
        Step::Pace { per_second, of, .. } => {
            if !(per_second.is_finite() && *per_second > 0.0) {
                return refuse(format!("has events in {name:?} at a rate that is not above 0"));
            }
            let rates = paces(phase);
            if rates.iter().any(|rate| rate != per_second) {
                return refuse(format!("has events at different rates in phase {:?}, which has one", phase.name));
            }
            named(of)
        }
        Step::Post { to, .. } if !waits(phase).contains(&to.as_str()) => {
            refuse(format!("posts in {name:?} to {to:?}, for which nobody waits"))
        }
        _ => Ok(()),
    }
}

fn steps_of(phase: &Phase) -> impl Iterator<Item = &Step> {
    phase.groups.iter().flat_map(|group| match &group.actions {
        Actions::Program(steps) => Step::all(steps),
        _ => Vec::new(),
    })
}

fn paces(phase: &Phase) -> Vec<f64> {
    let rate = |step: &Step| if let Step::Pace { per_second, .. } = step { Some(*per_second) } else { None };
    steps_of(phase).filter_map(rate).collect()
}

fn waits(phase: &Phase) -> Vec<&str> {
    steps_of(phase)
        .filter_map(|step| if let Step::Wait { name, .. } = step { Some(name.as_str()) } else { None })
        .collect()
}

fn check_numbers(action: &Action) -> Result<(), LoadError> {
    let Some(numbers) = &action.numbers else { return Ok(()) };
    let free = matches!(action.choice, FileChoice::Uniform | FileChoice::Rotation);
    if action.fileset.is_none() || !free {
        return refuse(format!(
            "draws numbers of files for {:?}, which needs a fileset and no other choice",
            action.name
        ));
    }
    Sizes::new(numbers, 1).map(drop)
}

fn check_by_handle(workload: &Workload, action: &Action) -> Result<(), LoadError> {
    let name = &action.name;
    let Some(handle) = action.handle else {
        if action.operation.needs_handle() {
            return refuse(format!("has {name:?} in a program without a handle"));
        }
        return Ok(());
    };
    let like = if let Operation::Fill { like, .. } = action.operation { like.unwrap_or(0) } else { 0 };
    if handle.max(like) >= MAXIMUM_HANDLES {
        return refuse(format!(
            "has {name:?} work by handle {}, where {} is the last",
            handle.max(like),
            MAXIMUM_HANDLES - 1
        ));
    }
    if workload.data.stamped {
        return refuse(format!("stamps data and has {name:?} work by a handle, which others may hold as well"));
    }
    if !action.operation.works_by_handle() {
        return refuse(format!("has {name:?} work by a handle, which that operation cannot (a file is made empty)"));
    }
    if !matches!(action.choice, FileChoice::Uniform | FileChoice::Rotation) {
        return refuse(format!(
            "has {name:?} work by a handle, and choose its file otherwise than uniformly or in rotation"
        ));
    }
    Ok(())
}
