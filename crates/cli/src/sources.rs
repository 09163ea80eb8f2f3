//! The source trees that a study works on: the one the user names, the system's kernel source, or one made for it.

use crate::{
    exit::Exit,
    paths,
    terminal::{Failure, OrExit},
};
use anyhow::Context as _;
use fstone_formats::study::{SourceTree as Wanted, put_source_trees, source_trees};
use fstone_lab::{
    machine::Machine,
    source_tree::{self, LINUX_FILES, SourceTree},
};
use fstone_model::Plan;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The seed of trees that are made. Fixed, so that runs on different machines unpack the same tree.
const SEED: u64 = 1;

/// Where Debian's `linux-source-*` packages put their archives.
const SYSTEM_SOURCES: &str = "/usr/src";

/// Finds or makes every source tree that a plan names, and puts their archives' paths into its commands.
pub(crate) fn provide(plan: &mut Plan, named: Option<&Path>) -> Result<(), Failure> {
    let mut archives = BTreeMap::new();
    for wanted in source_trees(plan) {
        archives.insert(wanted, archive_of(wanted, named)?);
    }
    put_source_trees(plan, |tree| archives.get(&tree).map(|path| path.display().to_string()).unwrap_or_default());
    Ok(())
}

fn archive_of(wanted: Wanted, named: Option<&Path>) -> Result<PathBuf, Failure> {
    let files = match (wanted, named) {
        (Wanted::Kernel, Some(path)) => {
            return path
                .canonicalize()
                .with_context(|| format!("cannot find the source {}", path.display()))
                .or_exit(Exit::BadInput);
        }
        (Wanted::Kernel, None) => match installed(Path::new(SYSTEM_SOURCES)) {
            Some(path) => return Ok(path),
            None => LINUX_FILES,
        },
        (Wanted::Made { files }, _) => files,
    };
    let directory = paths::default_cache().join("sources");
    paths::create_directory(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))
        .or_exit(Exit::LabFailed)?;
    eprintln!("Making a source tree of {files} files (once; kept in {}).", directory.display());
    source_tree::archive(SourceTree { files, seed: SEED }, &directory, &*Machine::host().runner)
        .context("failed to make a source tree")
        .or_exit(Exit::LabFailed)
}

/// The newest archive of a kernel's source that the system has.
fn installed(directory: &Path) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(directory)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.starts_with("linux-source-") && name.contains(".tar.")
        })
        .collect();
    found.sort();
    found.pop()
}
