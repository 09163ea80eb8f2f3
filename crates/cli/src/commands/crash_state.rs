//! `fstone crash-state`: a state that a power cut could have left, as an image to examine.

use crate::{
    args::CrashStateArguments,
    exit::Exit,
    paths,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_files::Temporary;
use fstone_model::units::format_bytes;
use fstone_sandbox::power::{CrashState, Log, States};

pub(crate) fn crash_state(arguments: &CrashStateArguments) -> CommandResult {
    let state: CrashState = arguments.state.parse().or_exit(Exit::BadInput)?;
    let image = &arguments.image;
    paths::require_directory_of(image, " with --image")?;
    let directory = paths::directory_of(image);
    let log = Log::load(&arguments.log, directory)
        .with_context(|| format!("failed to read the log {}", arguments.log.display()))
        .or_exit(Exit::LabFailed)?;
    let events = log.events();
    if state.cut() > events {
        let words = format!("state {state} does not belong to this log, which has {events} events");
        return Err(Failure::new(Exit::BadInput, words));
    }
    let failed = || format!("cannot write the image {}", image.display());
    if image.symlink_metadata().is_ok() {
        return Err(Failure::new(Exit::LabFailed, format!("{}: it is there already", failed())));
    }
    let temporary = Temporary::beside(image).with_context(failed).or_exit(Exit::LabFailed)?;
    let mut states = States::new(log, 0..events + 1, None);
    states.write_image(state, temporary.file()).with_context(failed).or_exit(Exit::LabFailed)?;
    let bytes = temporary.file().metadata().map_or(0, |metadata| metadata.len());
    temporary.publish(image).with_context(failed).or_exit(Exit::LabFailed)?;
    terminal::print(&format!(
        "{}: the disk in state {state}, {}. To look at it: mount -o loop {} DIRECTORY. This replays the filesystem's journal, which \
         changes the image\n",
        image.display(),
        format_bytes(bytes),
        image.display()
    ));
    Ok(Exit::Success)
}
