//! What loads saw over their time and per operation, row by row.

use crate::{run::Analysis, text};
use fstone_model::{
    Histogram, LoadReport,
    load::OperationReport,
    load_metric::{COMMIT, latencies_of, policies},
};
use std::borrow::Cow;

/// All fsyncs of a load, those of its operations too.
const FSYNC: &str = "fsync";

#[derive(Debug)]
pub struct Loads<'a> {
    pub steps: Vec<LoadStep<'a>>,
}

#[derive(Debug)]
pub struct LoadStep<'a> {
    pub step: String,
    /// Names of the operations with any latency, in the order of the workload; then of the fsyncs and commits of its groups' policies, and
    /// of all fsyncs if operations make some.
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
        let operations = report.operations.iter().filter(|operation| operation.latency.count() > 0);
        let names = operations.map(|operation| operation.name.clone());
        let of_groups = policies(report).into_iter().filter(|(name, latency)| name != COMMIT && latency.count() > 0);
        let fsyncs = report.calls.iter().any(|call| call.makes_durable() && call.latency.count() > 0);
        for name in names.chain(of_groups.map(|(name, _)| name)).chain(fsyncs.then(|| FSYNC.to_owned())) {
            let name = text::line(&name);
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
    if let Some((_, of_policy)) = policies(report).into_iter().find(|(name, _)| text::line(name) == operation) {
        return Some(Cow::Owned(of_policy));
    }
    let mut found = report.operations.iter().filter(named).map(|one| &one.latency);
    let Some(first) = found.next() else {
        let all = (operation == FSYNC).then(|| latencies_of(report, FSYNC))?;
        return (all.count() > 0).then_some(Cow::Owned(all));
    };
    // Groups may have an operation in common.
    Some(match found.next() {
        None => Cow::Borrowed(first),
        Some(second) => Cow::Owned(Histogram::merged([first, second].into_iter().chain(found))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::load::{CallReport, GroupFsyncs};

    #[test]
    fn fsyncs_of_a_policy_have_latencies_beside_the_operations() {
        let operation =
            OperationReport { name: "write".into(), latency: Histogram::from_values(&[1000]), ..Default::default() };
        let fsyncs = GroupFsyncs {
            group: "writers".into(),
            latency: Histogram::from_values(&[3000; 8]),
            commits: Histogram::from_values(&[5000; 7]),
            ..GroupFsyncs::default()
        };
        let call = CallReport { group: "g".into(), call: "fsync".into(), latency: Histogram::from_values(&[1; 3]) };
        let report = LoadReport {
            operations: vec![operation],
            calls: vec![call],
            group_fsyncs: vec![fsyncs],
            ..LoadReport::default()
        };
        let mut step = LoadStep { step: "load".into(), operations: Vec::new(), rows: Vec::new() };
        step.add(0, &report);
        let counts: Vec<(&str, u64)> = step
            .operations
            .iter()
            .map(|name| (name.as_str(), step.rows[0].latencies(name).iter().map(|one| one.count()).sum()))
            .collect();
        assert_eq!(counts, [("write", 1), ("writers fsync", 8), ("writers commit", 7), ("fsync", 11)]);
    }
}
