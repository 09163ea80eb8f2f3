//! What a rank is given to do, and what its load gives back.

use crate::facts::Facts;
use fstone_model::{LoadReport, Workload};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How a load of many ranks is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What all ranks have to have in common: the workload, arguments, the build.
    pub subject: String,
    /// The seed of all ranks. Rank 0's counts.
    pub seed: u64,
    /// A rank that gives no sign of life for so long is taken for dead.
    pub silence: Duration,
    /// A rank whose load completes nothing for so long is taken for hung.
    pub stillness: Duration,
    /// Who this rank is.
    pub facts: Facts,
    /// The workload, as it was written.
    pub workload: Workload,
    /// Set to true from outside, it ends the load of all ranks.
    pub cancel: Arc<AtomicBool>,
}

/// A load that a rank has carried out.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// What it measured.
    pub report: LoadReport,
    /// What this rank could not do after its load, such as removing files, in words for people. That is its outcome then, and ends no other
    /// rank.
    pub unfinished: Option<String>,
}

impl From<LoadReport> for Loaded {
    fn from(report: LoadReport) -> Self {
        Self { report, unfinished: None }
    }
}
