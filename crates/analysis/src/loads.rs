//! What loads saw over their time and per operation, row by row.

use crate::{run::Analysis, text};
use fstone_model::{Histogram, LoadReport, load::OperationReport};
use std::borrow::Cow;

#[derive(Debug)]
pub struct Loads<'a> {
    pub steps: Vec<LoadStep<'a>>,
}

#[derive(Debug)]
pub struct LoadStep<'a> {
    pub step: String,
    /// Names of the operations with any latency, in the order of the workload.
    pub operations: Vec<String>,
    pub rows: Vec<LoadRow<'a>>,
}

#[derive(Debug)]
pub struct LoadRow<'a> {
    pub row: usize,
    /// In the order in which the trials ran; never empty.
    pub reports: Vec<&'a LoadReport>,
}

impl<'a> Loads<'a> {
    pub fn of(analysis: &'a Analysis<'a>) -> Self {
        let mut steps: Vec<LoadStep<'a>> = Vec::new();
        for (index, row) in analysis.rows.iter().enumerate() {
            for trial in row.trials.iter().filter(|trial| trial.outcome.is_completed()) {
                for (name, report) in trial.steps.iter().filter_map(|step| Some((&step.step, step.load.as_deref()?))) {
                    let name = text::line(name);
                    let at = steps.iter().position(|step| step.step == name).unwrap_or_else(|| {
                        steps.push(LoadStep { step: name, operations: Vec::new(), rows: Vec::new() });
                        steps.len() - 1
                    });
                    steps[at].add(index, report);
                }
            }
        }
        Self { steps }
    }
}

impl<'a> LoadStep<'a> {
    fn add(&mut self, row: usize, report: &'a LoadReport) {
        for operation in report.operations.iter().filter(|operation| operation.latency.count() > 0) {
            let name = text::line(&operation.name);
            if !self.operations.contains(&name) {
                self.operations.push(name);
            }
        }
        match self.rows.last_mut() {
            Some(last) if last.row == row => last.reports.push(report),
            _ => self.rows.push(LoadRow { row, reports: vec![report] }),
        }
    }
}

impl LoadRow<'_> {
    pub fn latencies(&self, operation: &str) -> Vec<Cow<'_, Histogram>> {
        self.reports.iter().filter_map(|report| latency(report, operation)).collect()
    }
}

fn latency<'a>(report: &'a LoadReport, operation: &str) -> Option<Cow<'a, Histogram>> {
    let named = |one: &&OperationReport| one.latency.count() > 0 && text::line(&one.name) == operation;
    let mut found = report.operations.iter().filter(named).map(|one| &one.latency);
    let first = found.next()?;
    // Groups may have an operation in common.
    Some(match found.next() {
        None => Cow::Borrowed(first),
        Some(second) => Cow::Owned(Histogram::merged([first, second].into_iter().chain(found))),
    })
}
