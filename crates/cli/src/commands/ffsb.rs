//! `fstone ffsb`: FFSB profiles, unchanged.

use super::{Context, load};
use crate::{
    args::FfsbArguments,
    exit::Exit,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::{Context as _, anyhow};
use fstone_engine::Ownership;
use fstone_files::read_text;
use fstone_formats::{
    Source,
    ffsb::{self, Placement, Profile},
};
use std::path::Path;

fn read(path: &Path, seconds: Option<u64>) -> Result<Profile, Failure> {
    let name = path.display().to_string();
    let text = read_text(path).with_context(|| format!("cannot read the profile {name}")).or_exit(Exit::BadInput)?;
    let profile = ffsb::parse(&Source::new(name, text), &ffsb::Options { seconds }).or_exit(Exit::BadInput)?;
    if let Some(warnings) = &profile.warnings {
        terminal::tell(&format!("{warnings}\n"));
    }
    Ok(profile)
}

pub(crate) fn ffsb(_context: &Context, arguments: &FfsbArguments) -> CommandResult {
    let profile = read(&arguments.profile, arguments.seconds)?;
    // As in FFSB: a missing directory means that a filesystem is not mounted, and its files would end up elsewhere.
    if let Some(missing) = profile.filesystems.iter().find(|filesystem| !Path::new(&filesystem.location).is_dir()) {
        let location = &missing.location;
        return Err(anyhow!("the profile's location {location} is not a directory; mount or make it first"))
            .or_exit(Exit::BadInput);
    }
    let workload = profile.workload(Placement::AsWritten);
    terminal::print(&ffsb::header(&profile));
    // FFSB removes whatever is in its directories. fstone takes only those that are empty, or its own. Locations are absolute or relative to
    // the current directory, as in FFSB.
    let ownership = Ownership::Anywhere { overwrite: arguments.overwrite };
    let ended = load::run(&workload, Path::new("."), arguments.seed, true, ownership)?;
    let report = &ended.report;
    ended.tell_warnings();
    terminal::print(&ffsb::print(&profile, report));
    Ok(ended.exit(Exit::Interrupted))
}
