//! `unlink`: files that are removed when no job has them any more.

use super::{
    files::{Filesets, Place},
    job::{Engine, Job},
};
use fstone_model::workload::{Action, Actions, FileChoice, Operation, Phase, Stop, ThreadGroup};
use std::collections::BTreeMap;

/// The filesets that are removed, each behind the last jobs that have it.
pub(super) struct Removals {
    /// The level of the last job of each, and whether one wants it removed.
    last: BTreeMap<u32, (usize, bool)>,
}

impl Removals {
    pub(super) fn of(jobs: &[Job], clones: &[(usize, u32, Place)], levels: &[usize]) -> Self {
        let mut last: BTreeMap<u32, (usize, bool)> = BTreeMap::new();
        for (index, _, place) in clones {
            // What filedelete and filerename leave has no name to remove.
            let removes = jobs[*index].unlink
                && !jobs[*index].engine.of_directories()
                && !matches!(jobs[*index].engine, Engine::FileDelete | Engine::FileRename);
            for fileset in &place.filesets {
                let known = last.entry(*fileset).or_default();
                *known = (known.0.max(levels[*index]), known.1 || removes);
            }
        }
        Self { last }
    }

    pub(super) fn phase(&self, level: usize, filesets: &Filesets<'_>) -> Option<Phase> {
        let is_due =
            |fileset: u32, (last, removes): (usize, bool)| last == level && removes && !filesets.is_device(fileset);
        let due = self.last.iter().filter(|(fileset, of)| is_due(**fileset, **of)).map(|(fileset, _)| *fileset);
        // Files with names of their own by one thread, and those that are numbered by one for each name.
        let (single, numbered): (Vec<u32>, Vec<u32>) = due.partition(|fileset| filesets.files_of(*fileset) == 1);
        let of = |name: &str, of: &[u32]| {
            let unlink = |fileset: &u32| {
                let mut action = Action::new("unlink", Operation::Unlink, Some(*fileset));
                action.choice = FileChoice::RoundRobin;
                action
            };
            let mut group = ThreadGroup::new(name, 1, Actions::Sequence(of.iter().map(unlink).collect()));
            let files = of.iter().map(|fileset| filesets.files_of(*fileset)).sum();
            group.stop = Stop { operations: Some(files), ..Stop::default() };
            group
        };
        let mut groups: Vec<ThreadGroup> = Vec::new();
        if !single.is_empty() {
            groups.push(of("unlink", &single));
        }
        groups.extend(numbered.iter().map(|fileset| of(&format!("unlink {fileset}"), &[*fileset])));
        let name = format!("unlink {}", level + 1);
        (!groups.is_empty()).then(|| Phase::unmeasured(name, groups, Stop::default()))
    }
}
