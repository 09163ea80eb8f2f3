//! The settings of a rank, and the result of its load.

use crate::facts::Facts;
use fstone_model::{LoadReport, Workload};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Settings {
    /// What must be the same for all ranks: the workload, the arguments, the build.
    pub subject: String,
    /// The seed of all ranks. Rank 0's counts.
    pub seed: u64,
    /// A rank that gives no sign of life for so long is considered dead.
    pub silence: Duration,
    /// A rank whose load completes nothing for so long is considered hung.
    pub stillness: Duration,
    pub facts: Facts,
    pub workload: Workload,
    /// Set to true from outside, it ends the load of all ranks.
    pub cancel: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Default)]
pub struct Loaded {
    pub report: LoadReport,
    /// What this rank could not do after its load, such as removing files, as a message for people. It becomes the rank's outcome, and ends no
    /// other rank.
    pub unfinished: Option<String>,
}

impl From<LoadReport> for Loaded {
    fn from(report: LoadReport) -> Self {
        Self { report, unfinished: None }
    }
}
