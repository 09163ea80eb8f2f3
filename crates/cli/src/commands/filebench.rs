//! `fstone filebench`: filebench's personalities, unchanged.

use super::{Context, load};
use crate::{
    args::FilebenchArguments,
    exit::Exit,
    terminal::{self, CommandResult, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_engine::Ownership;
use fstone_files::read_text;
use fstone_formats::{
    Source,
    filebench::{self, Options, Personality, Placement},
};
use std::path::Path;

pub(crate) fn filebench(_context: &Context, arguments: &FilebenchArguments) -> CommandResult {
    let path = arguments.personality.as_deref().or(arguments.script.as_deref()).unwrap_or(Path::new(""));
    let mut personality = read(path, arguments.seconds)?;
    if let Some(warnings) = &personality.warnings {
        terminal::tell(&format!("{warnings}\n"));
    }
    for fileset in &mut personality.workload.filesets {
        fileset.directory = below_root(&fileset.directory)?;
    }
    // filebench removes whatever is where its files go. fstone takes only a directory that is empty, or its own.
    let ownership = if arguments.overwrite { Ownership::Overwrite } else { Ownership::Marked };
    let ended = load::run(&personality.workload, Path::new("/"), arguments.seed, true, ownership)?;
    let report = &ended.report;
    ended.tell_warnings();
    terminal::print(&filebench::print(report));
    ended.tell_errors();
    Ok(ended.exit(Exit::Interrupted))
}

fn read(path: &Path, seconds: Option<u64>) -> Result<Personality, Failure> {
    let name = path.display().to_string();
    let text =
        read_text(path).with_context(|| format!("cannot read the personality {name}")).or_exit(Exit::BadInput)?;
    filebench::parse(&Source::new(name, text), Options { placement: Placement::AsWritten, seconds })
        .or_exit(Exit::BadInput)
}

/// A fileset's place as seen from the root: its path must exist, and the fileset's own directory is made in it.
fn below_root(directory: &str) -> Result<String, Failure> {
    let (path, name) = directory.rsplit_once('/').unwrap_or((".", directory));
    let path = if path.is_empty() { "/" } else { path };
    let failed = || format!("the personality's path {path} does not exist; make it, or mount its filesystem first");
    let base = Path::new(path).canonicalize().with_context(failed).or_exit(Exit::BadInput)?;
    let full = base.join(name).to_string_lossy().into_owned();
    Ok(full.trim_start_matches('/').to_owned())
}
