//! What came of a run, row by row of mdtest's table.

use super::{
    command::Mdtest,
    workload::{Plan, Stage, Test},
};
use crate::loads::letters;
use fstone_model::ranks::{PhaseMeeting, RanksReport, Stonewall};
use std::{collections::BTreeMap, time::Duration};

/// What was done to trees, by iteration: directories of all tasks together, and how long that took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trees {
    pub made: Vec<(u64, Duration)>,
    pub removed: Vec<(u64, Duration)>,
}

/// The place that was worked in, for the lines above the table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Place {
    pub command_line: String,
    /// The directory of `-d`.
    pub path: String,
    /// Size of its filesystem, bytes.
    pub bytes: u64,
    pub free_bytes: u64,
    pub inodes: u64,
    pub free_inodes: u64,
    /// When the run began and ended, as text.
    pub times: [String; 2],
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure<'r> {
    pub(super) iteration: u64,
    /// Items that were done, of all tasks.
    pub(super) items: u64,
    /// From the first task's begin to the last one's end, its sync included.
    pub(super) seconds: f64,
    /// How the tasks met; none for trees.
    pub(super) meeting: Option<&'r PhaseMeeting>,
    /// Part of the time that was the sync, seconds.
    pub(super) sync_seconds: Option<f64>,
    /// What it lacks, if not all tasks did all of it.
    pub(super) lacking: Option<String>,
}

impl Figure<'_> {
    /// Items per second.
    pub(super) fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.items as f64 / self.seconds } else { 0.0 }
    }

    pub(super) fn stonewall(&self) -> Option<Stonewall> {
        self.meeting.and_then(|meeting| meeting.stonewall)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row<'r> {
    pub(super) name: &'static str,
    pub(super) figures: Vec<Figure<'r>>,
}

#[derive(Debug, Clone)]
pub struct Results<'r> {
    pub mdtest: &'r Mdtest,
    pub plan: &'r Plan,
    pub report: &'r RanksReport,
    pub trees: &'r Trees,
    pub place: &'r Place,
}

/// The rows of trees.
const TREES: [&str; 2] = ["Tree creation", "Tree removal"];

impl<'r> Results<'r> {
    /// The names of all rows that mdtest prints, whatever of them was done.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        let (files, directories) = (self.mdtest.files, self.mdtest.directories);
        let tests = Test::ALL.into_iter().filter(move |test| if test.of_directories() { directories } else { files });
        tests.map(Test::name).chain(TREES)
    }

    /// The rows, as mdtest orders them.
    pub(super) fn rows(&self) -> Vec<Row<'r>> {
        let mut tests: BTreeMap<Test, Vec<Figure<'r>>> = BTreeMap::new();
        for stage in &self.plan.stages {
            tests.entry(stage.test).or_default().extend(self.figure(stage));
        }
        let rows = tests.into_iter().map(|(test, figures)| Row { name: test.name(), figures });
        let trees = TREES.into_iter().zip([&self.trees.made, &self.trees.removed]);
        let trees = trees.filter(|(_, times)| !times.is_empty()).map(|(name, times)| Row {
            name,
            figures: (0..)
                .zip(times)
                .map(|(iteration, (items, elapsed))| Figure {
                    iteration,
                    items: *items,
                    seconds: elapsed.as_secs_f64(),
                    meeting: None,
                    sync_seconds: None,
                    lacking: None,
                })
                .collect(),
        });
        rows.chain(trees).filter(|row| !row.figures.is_empty()).collect()
    }

    /// What a stage came to; nothing where no task ended it.
    fn figure(&self, stage: &Stage) -> Option<Figure<'r>> {
        let meeting = self.report.meeting(&stage.phase)?;
        let sync = stage.sync.as_ref().and_then(|name| self.report.meeting(name));
        let sync_seconds = sync.map(PhaseMeeting::seconds);
        let items = self.report.of_phase(&stage.phase).map(|phase| phase.operations).sum();
        let whole = self.mdtest.items.saturating_mul(u64::from(self.report.ranked.ranks));
        Some(Figure {
            iteration: stage.iteration,
            items,
            seconds: meeting.seconds() + sync_seconds.unwrap_or(0.0),
            meeting: Some(meeting),
            sync_seconds,
            lacking: letters::lacking(self.report, meeting, (items, whole), stage.sync.as_deref()),
        })
    }

    /// What `-x` keeps: how many items each task has created, the fewest, so that none is looked for that is not there; and, which mdtest
    /// does not write and does not mind, how many each directory was to have.
    pub fn created(&self) -> Option<String> {
        let stage = self.plan.stages.iter().rev().find(|stage| stage.test == Test::FileCreation)?;
        let created = self.report.of_phase(&stage.phase).map(|phase| phase.operations).min()?;
        Some(format!("{created} {}\n", self.mdtest.each))
    }
}
