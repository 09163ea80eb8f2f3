//! `fstone crash-state`: a state that a power cut could have left, as an image to look at.

use crate::{
    args::CrashStateArguments,
    exit::Exit,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_model::units::format_bytes;
use fstone_sandbox::power::{CrashState, Log, States};
use std::{
    fs::{self, OpenOptions},
    path::Path,
};

pub(crate) fn crash_state(arguments: &CrashStateArguments) -> CommandResult {
    let state: CrashState = arguments.state.parse().or_exit(Exit::BadInput)?;
    let image = &arguments.image;
    let directory = image.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let log = Log::load(&arguments.log, directory)
        .with_context(|| format!("failed to read the log {}", arguments.log.display()))
        .or_exit(Exit::LabFailed)?;
    let events = log.events();
    if state.cut() > events {
        let words = format!("state {state} is not of this log, which has {events} events");
        return Err(Failure::new(Exit::BadInput, words));
    }
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(image)
        .with_context(|| format!("cannot make the image {}", image.display()))
        .or_exit(Exit::LabFailed)?;
    let written = States::new(log, 0..events + 1, None).write_image(state, &file);
    if written.is_err() {
        // Half an image is none.
        let _ = fs::remove_file(image);
    }
    written.with_context(|| format!("cannot write the image {}", image.display())).or_exit(Exit::LabFailed)?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    terminal::print(&format!(
        "{}: the disk in state {state}, {}. To look at it: mount -o loop,ro {} DIRECTORY\n",
        image.display(),
        format_bytes(bytes),
        image.display()
    ));
    Ok(Exit::Success)
}
