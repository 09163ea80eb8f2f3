//! The archive of a made tree, kept so that it is made once.

use super::{SourceTree, Written};
use crate::command::{CommandLine, CommandRunner, RunError};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// Raised whenever the same seed and number of files give another tree, so that no stale archive is used.
const VERSION: u32 = 1;

/// A full-size tree takes a few minutes to pack.
const LIMIT: Duration = Duration::from_secs(3600);

/// Why there is no archive; completes "failed to make a source tree: ".
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file or directory.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// tar could not be run.
    #[error("packing it: {0}")]
    Run(#[from] RunError),
    /// tar failed.
    #[error("packing it: tar ended with {status}: {words}")]
    Tar {
        /// Its exit status.
        status: i32,
        /// What it said.
        words: String,
    },
}

/// The tree as `linux.tar.gz` would be (gzip, so that unpacking waits for the filesystem and not for the decompressor), in
/// `directory`: made when it is not there yet.
///
/// # Errors
/// When it cannot be written or packed; nothing half-made is left under the archive's name.
pub fn archive(tree: SourceTree, directory: &Path, runner: &dyn CommandRunner) -> Result<PathBuf, ArchiveError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ArchiveError::File { path, source }
    };
    let name = format!("source-v{VERSION}-{}-{}", tree.files, tree.seed);
    let archive = directory.join(format!("{name}.tar.gz"));
    if archive.is_file() {
        return Ok(archive);
    }
    fs::create_dir_all(directory).map_err(failed(directory))?;
    // Of this process alone: two runs may make the same tree at once, and the last one's rename stands.
    let scratch = directory.join(format!("{name}.{}.part", std::process::id()));
    let result = make(tree, &scratch, &archive, runner);
    match fs::remove_dir_all(&scratch) {
        Err(error) if error.kind() != io::ErrorKind::NotFound && result.is_ok() => return Err(failed(&scratch)(error)),
        _ => {}
    }
    result.map(|_| archive)
}

fn make(tree: SourceTree, scratch: &Path, archive: &Path, runner: &dyn CommandRunner) -> Result<Written, ArchiveError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ArchiveError::File { path, source }
    };
    let top = scratch.join("linux");
    fs::create_dir_all(&top).map_err(failed(&top))?;
    let written = tree.write(&top).map_err(failed(&top))?;
    let packed = scratch.join("linux.tar.gz");
    let (from, to) = (scratch.display().to_string(), packed.display().to_string());
    let output = runner.run(&CommandLine::new("tar", ["-C", &from, "-czf", &to, "linux"]), LIMIT)?;
    if output.status != 0 {
        return Err(ArchiveError::Tar { status: output.status, words: output.stderr.trim().to_owned() });
    }
    fs::rename(&packed, archive).map_err(failed(archive))?;
    Ok(written)
}
