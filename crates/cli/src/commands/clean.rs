//! `fstone clean`: undo what a killed run left.

use super::{Context, age, destroy};
use crate::{
    args::CleanArguments,
    exit::Exit,
    paths,
    terminal::{self, CommandResult, OrExit},
};
use anyhow::Context as _;
use fstone_lab::{
    agent::{GuestOptions, kept, remove_kept},
    machine::Machine,
    place::undo::{clean as undo, is_named},
    trial::{aged_directories, kept_images},
};
use fstone_model::units::format_bytes;
use fstone_sandbox::kernel::Store;
use std::{fmt::Write as _, path::PathBuf, slice};

pub(crate) fn clean(context: &Context, arguments: &CleanArguments) -> CommandResult {
    let kernels = clean_kernels(context, arguments.dry_run);
    let kept = clean_kept(arguments);
    let undone = clean_left(context, arguments);
    // Where aged directories are looked for may not answer.
    let aged = clean_aged(arguments);
    let undone = undone?;
    let is_clean = [kernels, kept, aged].iter().all(|exit| *exit == Exit::Success);
    Ok(if is_clean || undone != Exit::Success { undone } else { Exit::LabFailed })
}

/// What killed runs left in the work directory.
fn clean_left(context: &Context, arguments: &CleanArguments) -> CommandResult {
    let machine = Machine::host();
    let mut exit = Exit::Success;
    let look = |dry_run, may_lose: &[PathBuf]| {
        let found = undo(&context.work_directory, dry_run, may_lose, &machine);
        found.context("cannot clean").or_exit(Exit::LabFailed)
    };
    let (unseen, found): (Vec<_>, Vec<_>) = look(true, &[])?.into_iter().partition(|leftover| leftover.unseen);
    let mut text = String::new();
    for place in &unseen {
        let _ = writeln!(text, "could not look in {}: {}", place.what, place.error.as_deref().unwrap_or_default());
    }
    if found.is_empty() && unseen.is_empty() {
        if !arguments.dry_run {
            // A journal may name things that were never made or are already gone: it is removed, too.
            look(false, &[])?;
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
    let (mut agreed, mut refused) = (Vec::new(), None);
    for disk in &arguments.allow_destroy_data {
        if !found
            .iter()
            .filter_map(|leftover| leftover.disk.as_deref())
            .any(|left| is_named(left, slice::from_ref(disk)))
        {
            continue;
        }
        match destroy::agree_to_erase(disk, &*machine.devices) {
            Ok(()) => agreed.push(disk.clone()),
            Err(refusal) => refused = Some(terminal::tell_failure(&refusal)),
        }
    }
    for leftover in look(false, &agreed)? {
        match &leftover.error {
            Some(_) if leftover.unseen => exit = Exit::LabFailed,
            None => terminal::print(&format!("undone: {}\n", leftover.what)),
            Some(error) => {
                terminal::print(&format!("still there: {}: {error}\n", leftover.what));
                exit = Exit::LabFailed;
            }
        }
    }
    Ok(refused.unwrap_or(exit))
}

/// What was kept of disks and guests to be examined. Stored runs name it, so it is removed on request only.
fn clean_kept(arguments: &CleanArguments) -> Exit {
    let directory = GuestOptions::kept_in(&paths::own_cache());
    let kept = kept(&directory);
    if kept.is_empty() {
        return Exit::Success;
    }
    let bytes = format_bytes(kept.iter().map(|(_, bytes)| bytes).sum());
    let mut text = format!("Kept in {}, to be examined ({bytes}):\n", directory.display());
    for (path, bytes) in &kept {
        let _ = writeln!(text, "  {}, {}", path.file_name().unwrap_or_default().display(), format_bytes(*bytes));
    }
    if !arguments.kept {
        text.push_str("`fstone clean --kept` removes it.\n");
    }
    terminal::print(&text);
    let removed = kept.iter().filter(|_| arguments.kept && !arguments.dry_run);
    terminal::tell_removed(removed.map(|(path, _)| (path.display().to_string(), remove_kept(path))))
}

/// Aged filesystems, which can be made again in the time that it took.
fn clean_aged(arguments: &CleanArguments) -> Exit {
    age::tell_refusal(&paths::aged());
    let images = kept_images(&paths::aged());
    // Their making took longer, and they are beside files of the user's: each is removed by its name.
    terminal::print(&age::in_place(&aged_directories(&paths::aged())));
    let Some(summary) = age::summary(&images) else { return Exit::Success };
    let cure = if arguments.kept { "" } else { "; `fstone age list` lists them, `fstone clean --kept` removes them" };
    terminal::print(&format!("Kept in {}: {summary}{cure}.\n", paths::aged().display()));
    if arguments.kept && !arguments.dry_run { age::remove(&images) } else { Exit::Success }
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
