//! An executor that carries nothing out, for tests of the schedule and of what records its trials, and a loader that loads
//! nothing, for tests of everything above it.

use super::{
    error::ExecutorError,
    job::{Executor, Job, TrialEnd},
    load::{LoadFailure, LoadRequest, Loader},
};
use crate::faults::Faults;
use fstone_model::{
    Histogram, LoadReport, Outcome, StepResult, Trial,
    load::OperationReport,
    metric::catalog,
    result::{Effective, TrialId},
};
use std::sync::Arc;

/// Gives outcomes from a script: by default every trial completes in a second, each step with a time.
#[derive(Default)]
pub struct FakeExecutor {
    outcomes: Vec<(u32, Outcome)>,
    times: Option<Box<dyn FnMut(TrialId) -> f64>>,
    cancelled_at: Option<u32>,
    failing_at: Option<u32>,
    pub runs: Vec<TrialId>,
}

impl FakeExecutor {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn ending(mut self, cell: u32, outcome: Outcome) -> Self {
        self.outcomes.push((cell, outcome));
        self
    }

    /// How long each step takes, in seconds.
    #[must_use]
    pub fn taking(mut self, time: impl FnMut(TrialId) -> f64 + 'static) -> Self {
        self.times = Some(Box::new(time));
        self
    }

    #[must_use]
    pub const fn cancelled_at(mut self, position: u32) -> Self {
        self.cancelled_at = Some(position);
        self
    }

    #[must_use]
    pub const fn failing_at(mut self, position: u32) -> Self {
        self.failing_at = Some(position);
        self
    }
}

impl Executor for FakeExecutor {
    fn run(&mut self, job: &Job<'_>) -> Result<TrialEnd, ExecutorError> {
        if self.cancelled_at == Some(job.position) {
            return Ok(TrialEnd::Cancelled);
        }
        if self.failing_at == Some(job.position) {
            let cause = std::io::Error::other("scripted");
            return Err(ExecutorError::Work { path: "fake".into(), cause });
        }
        self.runs.push(job.id);
        let outcome = self.outcomes.iter().find(|(cell, _)| *cell == job.id.cell);
        let outcome = outcome.map_or(Outcome::Completed, |(_, outcome)| outcome.clone());
        let seconds = self.times.as_mut().map_or(1.0, |time| time(job.id));
        let step = |name: &str| StepResult {
            step: name.to_owned(),
            started_ns: 0,
            duration_ns: (seconds * 1e9) as u64,
            commands: Vec::new(),
            figures: vec![catalog::TIME.figure(seconds)],
            load: None,
        };
        let steps = if outcome.is_completed() {
            job.cell.steps.iter().map(|planned| step(&planned.name)).collect()
        } else {
            Vec::new()
        };
        Ok(TrialEnd::Finished(Box::new(Trial {
            id: job.id,
            position: job.position,
            started_unix_ns: 0,
            duration_ns: (seconds * 1e9) as u64,
            seed: job.seed,
            outcome,
            steps,
            effective: Effective::default(),
            warnings: Vec::new(),
        })))
    }
}

/// A loader that does nothing: for tests of everything above it.
#[derive(Debug, Default)]
pub struct FakeLoader {
    faults: Arc<Faults>,
    report: LoadReport,
    failure: Option<LoadFailure>,
}

impl FakeLoader {
    pub fn new() -> Self {
        let operation = OperationReport {
            name: "write".into(),
            invocations: 1,
            transactions: 1,
            written_bytes: 4096,
            latency: Histogram::from_values(&[1_000_000]),
            ..OperationReport::default()
        };
        let report = LoadReport {
            elapsed_ns: 1_000_000_000,
            running_ns: 900_000_000,
            sync_ns: 100_000_000,
            operations: vec![operation],
            ..LoadReport::default()
        };
        Self { report, ..Self::default() }
    }

    #[must_use]
    pub fn with_faults(mut self, faults: Arc<Faults>) -> Self {
        self.faults = faults;
        self
    }

    #[must_use]
    pub fn failing(mut self, failure: LoadFailure) -> Self {
        self.failure = Some(failure);
        self
    }
}

impl Loader for FakeLoader {
    fn load(&self, request: &LoadRequest<'_>) -> Result<LoadReport, LoadFailure> {
        if self.faults.strikes() {
            return Err(LoadFailure::Failed("injected fault".into()));
        }
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        (request.begin)();
        (request.end)();
        Ok(LoadReport { seed: request.seed, ..self.report.clone() })
    }
}
