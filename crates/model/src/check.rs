//! What must hold for data that comes from outside: a bundle, a store, a guest. It is checked when it is
//! deserialised, so no other code has to doubt it.
//!
//! An inconsistent [`Histogram`](crate::Histogram) cannot be made at all. Plans, trials and load reports are built field by field
//! in this program, and must be consistent when they come in from outside.

use crate::load_metric::kind_of;
use crate::result::TrialId;
use crate::{
    Cell, Dataset, Figure, LoadReport, Plan, Step, Trial,
    dataset::Run,
    output::From,
    own::MAXIMUM_CLIENTS,
    study::{DeviceSpec, StepAction},
};
use std::collections::HashSet;
use std::hash::Hash;

/// Why data from outside is not a valid plan, trial, load report or run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

trait Check {
    fn check(&self) -> Result<(), Invalid>;
}

fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Invalid> {
    if holds { Ok(()) } else { Err(Invalid(otherwise())) }
}

fn first_double<T: Hash + Eq>(items: impl Iterator<Item = T>) -> Option<T> {
    let mut seen = HashSet::new();
    for item in items {
        if seen.contains(&item) {
            return Some(item);
        }
        seen.insert(item);
    }
    None
}

fn distinct<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Invalid> {
    first_double(names).map_or(Ok(()), |name| Err(Invalid(format!("{what} {name:?} is there twice"))))
}

/// Serialises a type as its fields are, and checks it when it is deserialised. The type derives both traits with
/// `#[serde(remote = "Self")]`.
macro_rules! checked {
    ($type:ident) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let found = Self::deserialize(deserializer)?;
                found.check().map_err(serde::de::Error::custom)?;
                Ok(found)
            }
        }
    };
}

checked!(Plan);
checked!(Trial);
checked!(LoadReport);

impl Check for Plan {
    fn check(&self) -> Result<(), Invalid> {
        distinct("factor", self.factors.iter().map(|factor| factor.name.as_str()))?;
        for factor in &self.factors {
            let numbers = factor.numbers.as_ref().is_none_or(|numbers| numbers.len() == factor.levels.len());
            require(numbers, || format!("factor {:?} does not have a number for each level", factor.name))?;
        }
        for (position, cell) in self.cells.iter().enumerate() {
            require(cell.index as usize == position, || format!("cell {position} is numbered {}", cell.index))?;
            let known = cell.levels.len() == self.factors.len()
                && cell.levels.iter().zip(&self.factors).all(|(level, factor)| (*level as usize) < factor.levels.len());
            require(known, || format!("cell {position} does not have a level for each factor"))?;
            distinct("step", cell.steps.iter().map(|step| step.name.as_str()))?;
            cell.steps.iter().try_for_each(stays_below)?;
            own_is_sound(cell)?;
        }
        let dealt = self.budget.is_none_or(|budget| !budget.time.is_zero() && budget.resolution.is_finite());
        require(dealt, || "its budget is not a time, or its resolution not a share".to_owned())?;
        require(self.warm_up <= 10, || format!("it warms up for {} blocks", self.warm_up))?;
        let baseline = self.baseline.is_none_or(|cell| (cell as usize) < self.cells.len());
        require(baseline, || "its baseline is not one of its cells".to_owned())
    }
}

fn own_is_sound(cell: &Cell) -> Result<(), Invalid> {
    let scratch = matches!(cell.device, DeviceSpec::Scratch { .. });
    let Some(own) = &cell.filesystem.own else {
        return require(!scratch, || format!("nothing says how {:?} is made without a device", cell.filesystem.kind));
    };
    let name = &cell.filesystem.kind;
    require(!own.mount.is_empty(), || format!("filesystem {name:?} has no mount command"))?;
    for (which, words) in own.commands() {
        require(!words[0].is_empty(), || format!("command {} of filesystem {name:?} is empty", which.word()))?;
    }
    require((1..=MAXIMUM_CLIENTS).contains(&own.clients), || format!("{name:?} is mounted {} times", own.clients))?;
    require(own.needs_device() != scratch, || format!("filesystem {name:?} has a device and needs none, or neither"))
}

fn is_below(path: &str) -> bool {
    !path.starts_with('/') && !path.split('/').any(|part| part == "..")
}

/// A stored plan may say no more than a study file: a step writes nothing outside its filesystem.
fn stays_below(step: &Step) -> Result<(), Invalid> {
    match &step.action {
        StepAction::Load(load) => load.filesets.iter().try_for_each(|fileset| {
            require(fileset.stays_below(), || {
                format!("fileset {:?} of step {:?} is not below the load's directory", fileset.name, step.name)
            })
        }),
        StepAction::CopyIn { target, .. } => require(is_below(target), || {
            format!("step {:?} copies to {target:?}, which is not below its filesystem", step.name)
        }),
        StepAction::Command { figures, .. } => figures.iter().try_for_each(|figure| match &figure.from {
            From::File(path) => require(is_below(path), || {
                format!(
                    "figure {:?} of step {:?} is in {path:?}, which is not below its filesystem",
                    figure.name, step.name
                )
            }),
            From::Stdout | From::Stderr => Ok(()),
        }),
        StepAction::Service(service) => {
            let is_name = !service.name.is_empty() && !service.name.contains('/') && is_below(&service.name);
            require(is_name && service.log.as_deref().is_none_or(is_below), || {
                format!("service {:?} has its directory or its log outside its filesystem", service.name)
            })
        }
        StepAction::Age(age) => age.check().map_err(Invalid),
        StepAction::Mkfs
        | StepAction::Mount
        | StepAction::Remount
        | StepAction::Unmount
        | StepAction::Sync
        | StepAction::DropCaches
        | StepAction::Trim
        | StepAction::Fsck { .. }
        | StepAction::Fragmentation
        | StepAction::PowerCut(_) => Ok(()),
    }
}

impl Check for Trial {
    fn check(&self) -> Result<(), Invalid> {
        distinct("step", self.steps.iter().map(|step| step.step.as_str()))?;
        self.steps.iter().try_for_each(|step| {
            distinct("figure", step.figures.iter().map(|figure| figure.metric.as_str()))?;
            step.figures.iter().try_for_each(|figure| is_its_metric(figure, &step.step))
        })
    }
}

/// Whoever made the figure must not choose its unit or better direction, because that decides what `compare` calls a regression.
fn is_its_metric(figure: &Figure, step: &str) -> Result<(), Invalid> {
    let Some((unit, better)) = kind_of(&figure.metric) else { return Ok(()) };
    require(figure.unit == unit && figure.better == better, || {
        format!(
            "figure {:?} of step {step:?} is in {:?}, better {:?}, where {unit:?}, {better:?} is meant",
            figure.metric, figure.unit, figure.better
        )
    })
}

impl Check for LoadReport {
    /// Many places add up the numbers of a report; this checks once that the sums fit.
    fn check(&self) -> Result<(), Invalid> {
        let fits = |what: &str, counts: &mut dyn Iterator<Item = u64>| {
            let mut sum = Some(0u64);
            for count in counts {
                sum = sum.and_then(|sum| sum.checked_add(count));
            }
            // What is read and written is added up as well.
            require(sum.is_some_and(|sum| sum <= u64::MAX / 4), || format!("the sum of {what} is out of range"))
        };
        let operations = &self.operations;
        fits("operations", &mut operations.iter().map(|one| one.invocations))?;
        fits("transactions", &mut operations.iter().map(|one| one.transactions))?;
        fits("data calls", &mut operations.iter().map(|one| one.calls))?;
        fits("bytes read", &mut operations.iter().map(|one| one.read_bytes))?;
        fits("bytes written", &mut operations.iter().map(|one| one.written_bytes))?;
        fits("failed operations", &mut operations.iter().map(|one| one.errors))?;
        fits("latencies", &mut operations.iter().map(|one| one.latency.count()))?;
        fits(
            "fsyncs",
            &mut self
                .group_fsyncs
                .iter()
                .flat_map(|one| [one.periodic, one.at_end, one.latency.count(), one.commits.count()]),
        )?;
        fits("calls", &mut self.calls.iter().map(|one| one.latency.count()))?;
        fits("errors", &mut self.errors.iter().map(|one| one.count))?;
        fits("times of phases", &mut self.phases.iter().map(|one| one.elapsed_ns))?;
        fits("operations of threads", &mut self.per_thread.iter().map(|one| one.operations))?;
        fits("times of threads", &mut self.per_thread.iter().map(|one| one.busy_ns))?;
        fits("operations over time", &mut self.series.iter().map(|one| one.operations))?;
        fits("transactions over time", &mut self.series.iter().map(|one| one.transactions))?;
        fits("bytes read over time", &mut self.series.iter().map(|one| one.read_bytes))?;
        fits("bytes written over time", &mut self.series.iter().map(|one| one.written_bytes))?;
        let spans = operations.iter().filter_map(|one| one.at_work).flatten();
        require(spans.clone().all(|span| span.begin_ns <= span.end_ns), || "a group ends before it begins".to_owned())?;
        let length = (self.series.len() as u64).checked_mul(self.series_interval_ns);
        require(length.is_some(), || "the length of its series is out of range".to_owned())?;
        let shares = operations.iter().all(|one| (0.0..=1.0).contains(&one.requested_share));
        require(shares, || "a share of the mix is not between 0 and 1".to_owned())
    }
}

impl Plan {
    /// Checks consistency, for code that builds one.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.check()
    }
}

/// Checks the trials of a run as they arrive: each belongs to a cell of the plan, and none occurs twice.
#[derive(Debug)]
pub struct Roll {
    cells: usize,
    seen: HashSet<TrialId>,
}

impl Roll {
    pub fn new(plan: &Plan) -> Self {
        Self { cells: plan.cells.len(), seen: HashSet::new() }
    }

    /// Takes note of a trial.
    ///
    /// # Errors
    /// [`Invalid`]: when it is there twice, or is of a cell that the plan does not have.
    pub fn call(&mut self, id: TrialId) -> Result<(), Invalid> {
        let trial = || format!("repetition {} of cell {}", id.repetition, id.cell);
        let plural = if self.cells == 1 { "" } else { "s" };
        require((id.cell as usize) < self.cells, || format!("{}: the plan has {} cell{plural}", trial(), self.cells))?;
        require(self.seen.insert(id), || format!("{} is there twice", trial()))
    }
}

impl Dataset {
    /// A run with its finished trials.
    pub fn new(run: Run, trials: Vec<Trial>) -> Result<Self, Invalid> {
        let mut roll = Roll::new(&run.plan);
        trials.iter().try_for_each(|trial| roll.call(trial.id))?;
        Ok(Self { run, trials })
    }
}
