//! The source trees that a study works on: the one the user names, the system's kernel source, or one made for it.

use crate::{
    exit::Exit,
    paths,
    terminal::{self, Failure, OrExit},
};
use anyhow::Context as _;
use fstone_files::Owner;
use fstone_formats::study::{SourceTree as Wanted, put_source_trees, source_trees};
use fstone_lab::{
    machine::Machine,
    source_archive,
    source_tree::{LINUX_FILES, SourceTree},
};
use fstone_model::{Cell, Plan};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// The seed of trees that are made. Fixed, so that runs on different machines unpack the same tree.
const SEED: u64 = 1;

/// Where Debian's `linux-source-*` packages put their archives.
const SYSTEM_SOURCES: &str = "/usr/src";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Make,
    /// No: nothing is written, and the plan names where they would be.
    Name,
}

/// Finds or makes every source tree that a plan names, and puts their archives' paths into its commands. `named` is the
/// user's own, an archive or a directory; it replaces every tree of the study.
pub(crate) fn provide(plan: &mut Plan, named: Option<&Path>, missing: Missing) -> Result<(), Failure> {
    let wanted = source_trees(plan);
    if let (Some(named), true) = (named, wanted.is_empty()) {
        return Err(Failure::new(
            Exit::BadInput,
            format!("--source {}: the study {} has no use for a source tree", named.display(), plan.study),
        ));
    }
    let mut archives = BTreeMap::new();
    for wanted in wanted {
        archives.insert(wanted, archive_of(wanted, named, missing)?);
    }
    put_source_trees(plan, |tree| archives.get(&tree).map(|path| path.display().to_string()).unwrap_or_default());
    if missing == Missing::Make {
        unpack(plan)?;
    }
    Ok(())
}

fn archive_of(wanted: Wanted, named: Option<&Path>, missing: Missing) -> Result<PathBuf, Failure> {
    let directory = paths::own_cache().join("sources");
    let prepare = |words: &str| {
        terminal::tell(&format!("{words} (kept in {}).", directory.display()));
        paths::create_in_own_cache(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))
            .or_exit(Exit::LabFailed)
    };
    if let Some(named) = named {
        let path = named
            .canonicalize()
            .with_context(|| format!("cannot find the source {}", named.display()))
            .or_exit(Exit::BadInput)?;
        if !path.is_dir() || missing == Missing::Name {
            return Ok(path);
        }
        prepare(&format!("Packing {}", path.display()))?;
        return source_archive::archive_of(&path, &directory, Owner::caller(), &*Machine::host().runner)
            .context("failed to prepare the source tree")
            .or_exit(Exit::LabFailed);
    }
    let files = match wanted {
        Wanted::Made { files } => files,
        Wanted::Kernel => match source_archive::installed(Path::new(SYSTEM_SOURCES)) {
            Some(path) => return Ok(path),
            None => LINUX_FILES,
        },
    };
    let tree = SourceTree { files, seed: SEED };
    let archive = source_archive::archive_path(tree, &directory);
    if archive.is_file() || missing == Missing::Name {
        return Ok(archive);
    }
    prepare(&format!("Making a source tree of {files} files, once"))?;
    source_archive::archive(tree, &directory, &*Machine::host().runner)
        .context("failed to prepare the source tree")
        .or_exit(Exit::LabFailed)
}

/// Filesystems that are made of a tree need it unpacked.
fn unpack(plan: &mut Plan) -> Result<(), Failure> {
    let of = |cell: &Cell| cell.filesystem.tree.clone();
    let archives: BTreeSet<String> =
        plan.cells.iter().filter_map(of).filter(|tree| Path::new(tree).is_file()).collect();
    let directory = paths::own_cache().join("sources");
    for archive in archives {
        let tree = source_archive::unpacked(Path::new(&archive), &directory, Owner::caller(), &*Machine::host().runner)
            .with_context(|| format!("failed to prepare the source tree: unpacking {archive}"))
            .or_exit(Exit::BadInput)?;
        for cell in plan.cells.iter_mut().filter(|cell| cell.filesystem.tree.as_deref() == Some(&archive)) {
            cell.filesystem.tree = Some(tree.display().to_string());
        }
    }
    Ok(())
}
