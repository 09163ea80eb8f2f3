//! A command line of IOR, read.

use crate::Diagnostics;
use std::time::Duration;

pub const FILE: &str = "testFile";

#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option by itself")]
pub struct Ior {
    pub file: String,
    pub block_bytes: u64,
    pub transfer_bytes: u64,
    pub segments: u64,
    pub file_per_process: bool,
    pub write: bool,
    pub read: bool,
    /// Whether a task reads another task's data.
    pub reordered: bool,
    /// How many nodes further on, if so.
    pub shift: u32,
    pub random: bool,
    pub fsync: bool,
    pub fsync_per_write: bool,
    pub keep: bool,
    pub repetitions: u64,
    /// Whether its number is in the name of its file even if there is only one.
    pub numbered: bool,
    pub deadline: Option<Duration>,
    /// Whether all go on then to what the fastest has moved.
    pub wear_out: bool,
    pub direct: bool,
    /// The seed of all random numbers; drawn by the caller when `None`.
    pub seed: Option<u64>,
    pub results: Option<String>,
    pub json: bool,
    /// When a task is taken for dead.
    pub silence: Duration,
    /// When a task is taken for hung.
    pub stillness: Duration,
    pub warnings: Option<Diagnostics>,
}

impl Ior {
    pub fn task_bytes(&self) -> u64 {
        self.block_bytes.saturating_mul(self.segments)
    }

    pub fn name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(FILE)
    }

    /// The directory that it is in; the working directory where none is named.
    pub fn directory(&self) -> &str {
        match self.file.rsplit_once('/') {
            Some(("", _)) => "/",
            Some((directory, _)) => directory,
            None => ".",
        }
    }

    /// The name of a task's file in a repetition, or of the one that all share.
    pub fn file_of(&self, repetition: u64, task: u32) -> String {
        let (name, tail) = (self.name(), self.tail(repetition));
        if self.file_per_process { format!("{name}.{task:08}{tail}") } else { format!("{name}{tail}") }
    }

    pub(super) fn offset(&self) -> u32 {
        if self.reordered { self.shift } else { 0 }
    }

    /// What tells the files of repetitions apart, as IOR's with -m.
    pub(super) fn tail(&self, repetition: u64) -> String {
        if self.repetitions == 1 && !self.numbered { String::new() } else { format!(".{repetition}") }
    }
}
