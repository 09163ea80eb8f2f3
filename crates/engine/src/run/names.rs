//! How results call the groups and their actions.

use crate::measure::Collector;
use crate::measure::collect::GroupNames;
use fstone_model::workload::{Actions, ThreadGroup};

/// Names and requested shares of groups.
pub(super) fn names(groups: &[&ThreadGroup]) -> Vec<GroupNames> {
    groups
        .iter()
        .map(|group| {
            let shares: Vec<f64> = match &group.actions {
                Actions::Mix(mix) => {
                    let total: u64 = mix.iter().map(|weighted| u64::from(weighted.weight)).sum();
                    mix.iter().map(|weighted| f64::from(weighted.weight) / total.max(1) as f64).collect()
                }
                Actions::Sequence(actions) => vec![0.0; actions.len()],
                Actions::Ratio { .. } => vec![0.0; 2],
            };
            let actions = group.actions.all().iter().map(|action| action.name.clone()).zip(shares).collect();
            GroupNames { group: group.name.clone(), actions }
        })
        .collect()
}

/// A collector for these groups.
pub(super) fn collector_of(groups: &[&ThreadGroup]) -> Collector {
    let actions: Vec<usize> = groups.iter().map(|group| group.actions.all().len()).collect();
    Collector::new(&actions)
}
