//! A command line of mdtest, read.

use crate::Diagnostics;
use std::time::Duration;

/// Where mdtest works by default.
pub(super) const DIRECTORY: &str = "./out";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option by itself")]
pub struct Phases {
    pub create: bool,
    pub stat: bool,
    pub read: bool,
    pub rename: bool,
    pub remove: bool,
}

/// A command line of mdtest.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option by itself")]
pub struct Mdtest {
    pub directory: String,
    /// Files and directories of each task.
    pub items: u64,
    /// Of each directory of the tree.
    pub each: u64,
    /// Levels below the tree's top.
    pub depth: u32,
    pub branching: u32,
    pub leaves_only: bool,
    /// Every task has a tree of its own.
    pub unique: bool,
    pub files: bool,
    pub directories: bool,
    pub phases: Phases,
    pub iterations: u64,
    /// Whose files a task works on, after creating.
    pub shift: u32,
    pub write_bytes: u64,
    pub read_bytes: u64,
    /// fsync of each.
    pub sync_file: bool,
    /// syncfs after each phase.
    pub sync: bool,
    /// Files are taken in random order.
    pub random: bool,
    pub direct: bool,
    /// How long is created at most.
    pub stonewall: Option<Duration>,
    /// Where it is kept how much was created.
    pub status_file: Option<String>,
    pub print_rates: bool,
    pub print_times: bool,
    /// The seed of all random numbers; drawn by the caller when `None`.
    pub seed: Option<u64>,
    /// Where files about the results go.
    pub results: Option<String>,
    pub json: bool,
    /// When a task is taken for dead.
    pub silence: Duration,
    /// When a task is taken for hung.
    pub stillness: Duration,
    pub warnings: Option<Diagnostics>,
}

impl Mdtest {
    /// The name of an iteration's directory, in that of `-d`.
    pub fn test_directory(iteration: u64) -> String {
        format!("test-dir.{iteration}-0")
    }
}
