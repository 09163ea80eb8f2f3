//! With `sudo`: work that does not need root is done as the user who called it.
//!
//! Packages are unpacked, and kernels are compiled and started to ask for their release. None of that needs root,
//! and everything it makes belongs to the caller without a change of owner.

use crate::{
    exit::Exit,
    paths,
    terminal::{Failure, OrExit},
};
use anyhow::Context as _;
use fstone_files::Owner;
use std::{
    env, fs,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::Path,
    process::Command,
};

/// Goes on as the caller when what is made in this directory would be the caller's: this process is replaced then. Where the
/// directory is root's own, root goes on.
pub(crate) fn go_on_as(directory: &Path) -> Result<(), Failure> {
    let Some(owner) = Owner::caller().filter(|owner| owner.user != 0 && belongs_to(directory, *owner)) else {
        return Ok(());
    };
    let mut command = Command::new("/proc/self/exe");
    command
        .args(env::args_os().skip(1))
        .uid(owner.user)
        .gid(owner.group)
        // As whom it goes on, the defaults are others.
        .env("FSTONE_KERNELS", directory);
    if let Some(home) = paths::home_of(owner.user) {
        command.env("HOME", home);
    }
    // Returns only if it fails. Root's supplementary groups are dropped with its user id.
    Err(command.exec())
        .context("cannot continue as the user who called sudo; run this without sudo")
        .or_exit(Exit::CannotHere)
}

/// Whether a directory, or its nearest existing parent, belongs to this user.
fn belongs_to(directory: &Path, owner: Owner) -> bool {
    let directory = std::path::absolute(directory).unwrap_or_default();
    let there = directory.ancestors().find_map(|path| fs::metadata(path).ok());
    there.is_some_and(|found| found.uid() == owner.user)
}
