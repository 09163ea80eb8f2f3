//! How results call the groups and their actions, and when these were at work.

use crate::measure::Collector;
use crate::measure::collect::GroupNames;
use fstone_model::load::Span;
use fstone_model::workload::{Actions, Phase, ThreadGroup};

/// Names and requested shares of the phases' groups, and when each was at work. A group that no phase came to never was.
pub(super) fn names<'a>(phases: impl Iterator<Item = &'a Phase>, at_work: &[[Span; 2]]) -> Vec<GroupNames> {
    let at_work = at_work.iter().copied().chain(std::iter::repeat([Span::default(); 2]));
    phases
        .flat_map(|phase| phase.groups.iter().map(move |group| (phase, group)))
        .zip(at_work)
        .map(|((phase, group), at_work)| {
            let shares: Vec<f64> = match &group.actions {
                _ if group.direction_rates != [None; 2] => vec![0.0; group.actions.all().len()],
                Actions::Mix(mix) => {
                    let total: u64 = mix.iter().map(|weighted| u64::from(weighted.weight)).sum();
                    mix.iter().map(|weighted| f64::from(weighted.weight) / total.max(1) as f64).collect()
                }
                Actions::Sequence(actions) => vec![0.0; actions.len()],
                Actions::Ratio { .. } => vec![0.0; 2],
                Actions::Program(_) => vec![0.0; group.actions.all().len()],
            };
            let actions = group.actions.all().iter().map(|action| action.name.clone()).zip(shares).collect();
            GroupNames { phase: phase.name.clone(), group: group.name.clone(), actions, at_work }
        })
        .collect()
}

pub(super) fn collector_of(groups: &[&ThreadGroup]) -> Collector {
    let actions: Vec<(usize, bool)> =
        groups.iter().map(|group| (group.actions.all().len(), group.own_series)).collect();
    Collector::new(&actions)
}
