//! `fstone clean`: undo what a killed run left.

use super::Context;
use crate::{
    args::CleanArguments,
    exit::Exit,
    terminal::{self, CommandResult, OrExit},
};
use anyhow::Context as _;
use fstone_lab::{machine::Machine, place::undo::clean as undo};
use fstone_sandbox::kernel::Store;
use std::fmt::Write as _;

pub(crate) fn clean(context: &Context, arguments: &CleanArguments) -> CommandResult {
    let machine = Machine::host();
    let mut exit = clean_kernels(context, arguments.dry_run);
    let look = |dry_run| {
        let found = undo(&context.work_directory, dry_run, &arguments.allow_destroy_data, &machine);
        found.context("cannot clean").or_exit(Exit::LabFailed)
    };
    let (unseen, found): (Vec<_>, Vec<_>) = look(true)?.into_iter().partition(|leftover| leftover.unseen);
    let mut text = String::new();
    for place in &unseen {
        let _ = writeln!(text, "could not look in {}: {}", place.what, place.error.as_deref().unwrap_or_default());
    }
    if found.is_empty() && unseen.is_empty() {
        if !arguments.dry_run {
            // A journal may name things that were never made or are already gone: it is removed, too.
            look(false)?;
        }
        let _ = writeln!(text, "Nothing is left over in {}.", context.work_directory.display());
        terminal::print(&text);
        return Ok(exit);
    }
    if !found.is_empty() {
        let _ = writeln!(text, "Left over from a run in {}:", context.work_directory.display());
    }
    for leftover in &found {
        let error = leftover.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        let _ = writeln!(text, "  {}{error}", leftover.what);
    }
    // What will be done is printed before it is done.
    terminal::print(&text);
    if arguments.dry_run {
        let all_known = unseen.is_empty() && found.iter().all(|leftover| leftover.error.is_none());
        return Ok(if all_known { Exit::Success } else { Exit::LabFailed });
    }
    for leftover in look(false)? {
        match &leftover.error {
            Some(_) if leftover.unseen => exit = Exit::LabFailed,
            None => terminal::print(&format!("undone: {}\n", leftover.what)),
            Some(error) => {
                terminal::print(&format!("still there: {}: {error}\n", leftover.what));
                exit = Exit::LabFailed;
            }
        }
    }
    Ok(exit)
}

/// What killed processes left of packages with kernels.
fn clean_kernels(context: &Context, dry_run: bool) -> Exit {
    let left = Store::new(&context.kernels).left();
    if !left.is_empty() {
        terminal::print(&format!("Left over in {}:\n", context.kernels.display()));
    }
    for package in &left {
        terminal::print(&format!("  the unpacked package {}\n", package.path().display()));
    }
    let mut exit = Exit::Success;
    for package in left {
        if dry_run {
            package.keep();
            continue;
        }
        let path = package.path().to_owned();
        drop(package);
        let is_gone = !path.exists();
        terminal::print(&format!("{}: {}\n", if is_gone { "undone" } else { "still there" }, path.display()));
        if !is_gone {
            exit = Exit::LabFailed;
        }
    }
    exit
}
