//! What a plan would run, read and write on this machine, with all permissions of the user who runs it.

use super::Context;
use crate::{
    exit::Exit,
    paths,
    terminal::{self, Failure, OrExit},
};
use fstone_analysis::text::capitalised;
use fstone_files::{Owner, create_file};
use fstone_lab::command::typed;
use fstone_model::{
    Plan,
    study::{DeviceSpec, StepAction},
    text,
};
use fstone_store::Store;
use std::{collections::HashSet, path::PathBuf};

/// What a study would run and read of this machine, with all rights of whoever repeats it, each once: commands, kernels
/// that are files, trees that an mkfs takes in, and paths that are copied.
fn reaches(plan: &Plan) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for cell in &plan.cells {
        found.extend(cell.kernel.path().map(|path| format!("boots the kernel {path}")));
        found.extend(cell.filesystem.tree.as_ref().map(|path| format!("reads the directory {path}")));
        found.extend(
            cell.filesystem
                .own
                .iter()
                .flat_map(|own| own.commands())
                .map(|(which, words)| format!("runs {} (to {} {})", typed(words), which.word(), cell.filesystem.kind)),
        );
        for step in &cell.steps {
            if let StepAction::Load(load) = &step.action {
                found.extend(load.replay.as_ref().map(|replay| format!("reads {}", replay.file)));
            }
            if let StepAction::Service(service) = &step.action {
                let user = service.user.as_ref().map(|user| format!(" as {user}")).unwrap_or_default();
                let told = |(what, words)| format!("runs {}{user} (to {what} {})", typed(words), service.name);
                found.extend(service.commands().map(told));
            }
        }
        found.extend(cell.steps.iter().filter_map(|step| match &step.action {
            StepAction::Command { argv, .. } => Some(format!("runs {}", argv.join(" "))),
            StepAction::CopyIn { source, .. } => Some(format!("reads {source}")),
            // A load with a launcher may have a callout as well.
            StepAction::Load(load) => {
                let launcher = load.launch.as_ref().map(|launch| launch.words().join(" "));
                let programs: Vec<String> = load.callout.clone().into_iter().chain(launcher).collect();
                (!programs.is_empty()).then(|| format!("runs {}", programs.join(" and ")))
            }
            // All others by name: one that is new has to be thought about.
            StepAction::Service(_)
            | StepAction::Mkfs
            | StepAction::Mount
            | StepAction::Remount
            | StepAction::Unmount
            | StepAction::Sync
            | StepAction::DropCaches
            | StepAction::Trim
            | StepAction::Fsck { .. }
            | StepAction::Fragmentation
            | StepAction::PowerCut(_) => None,
            StepAction::Age(past) => past.image().map(|image| format!("reads {}", image.file)),
        }));
    }
    let mut seen = HashSet::new();
    found.retain(|one| seen.insert(one.clone()));
    found
}

pub(super) fn listed(plan: &Plan) -> Option<String> {
    let reaches: Vec<String> = reaches(plan).iter().map(|one| format!("  {}", text::line(one))).collect();
    (!reaches.is_empty())
        .then(|| format!("the bundle's study runs programs or reads files of this machine:\n{}", reaches.join("\n")))
}

pub(super) fn named_places(plan: &Plan) -> Vec<&str> {
    let named = plan.cells.iter().filter_map(|cell| match &cell.device {
        DeviceSpec::Block { path }
        | DeviceSpec::Directory { path: Some(path) }
        | DeviceSpec::Scratch { directory: Some(path) }
        | DeviceSpec::Loop { directory: Some(path), .. } => Some(path.as_str()),
        DeviceSpec::Zram { .. }
        | DeviceSpec::Directory { path: None }
        | DeviceSpec::Scratch { directory: None }
        | DeviceSpec::Loop { directory: None, .. } => None,
    });
    let mut seen = HashSet::new();
    named.filter(|path| seen.insert(*path)).collect()
}

fn all(plan: &Plan) -> Vec<String> {
    let mut all = reaches(plan);
    all.extend(named_places(plan).into_iter().map(|path| format!("works on {path}")));
    all
}

/// Refuses a plan of another machine that runs programs, or uses files and devices of this one, unless the user permits it.
pub(super) fn permit(plan: &Plan, allowed: bool) -> Result<(), Failure> {
    let all = all(plan);
    if all.is_empty() || allowed {
        return Ok(());
    }
    let listed: Vec<String> = all.iter().map(|one| format!("  {}", text::line(one))).collect();
    let listed = format!("the bundle's plan\n{}", listed.join("\n"));
    if terminal::is_interactive() && terminal::agrees(&format!("{}\nMay it?", capitalised(&listed))) {
        return Ok(());
    }
    Err(Failure::new(Exit::CannotHere, format!("{listed}\ncheck them, then permit them with --allow-commands")))
}

/// Where it is noted that this user began a run: by the digest of its identity and plan, outside the store, so that a
/// store from another user cannot contain the note.
fn note(store: &Store, run: u64) -> Result<PathBuf, Failure> {
    Ok(paths::default_begun().join(store.plan_digest(run).or_exit(Exit::LabFailed)?))
}

/// Notes that this user began a run, where its plan reaches what only its user may permit.
pub(crate) fn note_begun(store: &Store, run: u64, plan: &Plan) -> Result<(), Failure> {
    if all(plan).is_empty() {
        return Ok(());
    }
    let note = note(store, run)?;
    let made = paths::create_directory(&paths::default_begun()).and_then(|()| create_file(&note, Owner::caller()));
    if let Err(error) = made {
        terminal::tell(&format!("{}: {error}; this run cannot be resumed", note.display()));
    }
    Ok(())
}

/// A run that has ended or was deleted is not resumed: returns what forgets that it was begun.
pub(super) fn forget_begun(store: &Store, run: u64) -> impl FnOnce() + use<> {
    let note = note(store, run);
    move || {
        // A note that stays permits only what its user once began.
        if let Ok(note) = note {
            let _ = std::fs::remove_file(note);
        }
    }
}

/// Refuses to go on with a run that this user did not begin, when its plan runs programs or reads or writes this
/// machine's files.
pub(super) fn refuse_foreign(context: &Context, store: &Store, run: u64, plan: &Plan) -> Result<(), Failure> {
    let reached = all(plan);
    if reached.is_empty() || note(store, run)?.is_file() {
        return Ok(());
    }
    let listed: Vec<String> = reached.iter().map(|one| format!("  {}", text::line(one))).collect();
    Err(Failure::new(
        Exit::CannotHere,
        format!(
            "run {run} of {} was not started by this user on this machine, or its plan has changed, and it\n{}\n\
             start a new run of the study instead, or `fstone rerun` a bundle of it",
            context.store.display(),
            listed.join("\n")
        ),
    ))
}
