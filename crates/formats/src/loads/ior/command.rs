//! A command line of IOR, read.

use crate::Diagnostics;
use std::time::Duration;

/// The file unless it is told.
pub const FILE: &str = "testFile";

/// A command line of IOR.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option by itself")]
pub struct Ior {
    /// The file's path.
    pub file: String,
    /// Bytes of a piece.
    pub block_bytes: u64,
    /// Bytes of a transfer.
    pub transfer_bytes: u64,
    /// Pieces of each task.
    pub segments: u64,
    /// Each task has a file.
    pub file_per_process: bool,
    /// Whether it is written.
    pub write: bool,
    /// Whether it is read.
    pub read: bool,
    /// Whose data a task reads.
    pub shift: u32,
    /// In random order.
    pub random: bool,
    /// fsync after writing.
    pub fsync: bool,
    /// fsync after each write.
    pub fsync_per_write: bool,
    /// Files stay.
    pub keep: bool,
    /// How often.
    pub repetitions: u64,
    /// When writing and reading stop.
    pub deadline: Option<Duration>,
    /// Whether all go on then to what the fastest has moved.
    pub wear_out: bool,
    /// O_DIRECT.
    pub direct: bool,
    /// The seed of all random numbers; drawn by the caller when `None`.
    pub seed: Option<u64>,
    /// Where files about the results go.
    pub results: Option<String>,
    /// Whether JSON is printed.
    pub json: bool,
    /// When a task is taken for dead.
    pub silence: Duration,
    /// When a task is taken for hung.
    pub stillness: Duration,
    /// What was accepted but may not be what was meant.
    pub warnings: Option<Diagnostics>,
}

impl Ior {
    /// Bytes that each task moves.
    #[must_use]
    pub fn task_bytes(&self) -> u64 {
        self.block_bytes.saturating_mul(self.segments)
    }

    /// The file's name, without the directory that it is in.
    #[must_use]
    pub fn name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(FILE)
    }

    /// The directory that it is in; the working directory where none is named.
    #[must_use]
    pub fn directory(&self) -> &str {
        match self.file.rsplit_once('/') {
            Some(("", _)) => "/",
            Some((directory, _)) => directory,
            None => ".",
        }
    }

    /// The name of a task's file in a repetition, or of the one that all share.
    #[must_use]
    pub fn file_of(&self, repetition: u64, task: u32) -> String {
        let (name, tail) = (self.name(), self.tail(repetition));
        if self.file_per_process { format!("{name}.{task:08}{tail}") } else { format!("{name}{tail}") }
    }

    /// What tells the files of repetitions apart, where there are several: as IOR's with -m.
    pub(super) fn tail(&self, repetition: u64) -> String {
        if self.repetitions == 1 { String::new() } else { format!(".{repetition}") }
    }
}
