//! What is done, by the filesets that it is done to.

use super::{Action, Phase, ThreadGroup};
use std::collections::HashMap;

/// Actions, or what is known of each, by the filesets that they work on: made once, so that a load of many groups and as many filesets does
/// not go through all actions for each fileset.
#[derive(Debug)]
pub struct ByFileset<T> {
    all: Vec<T>,
    /// Those that work on any fileset, by their places.
    anywhere: Vec<usize>,
    /// Those that work on one.
    on: HashMap<u32, Vec<usize>>,
}

impl<T> ByFileset<T> {
    /// Of these actions, each with what is known of it.
    pub fn of<'w>(actions: impl IntoIterator<Item = (&'w Action, T)>) -> Self {
        let mut by_fileset = Self { all: Vec::new(), anywhere: Vec::new(), on: HashMap::new() };
        for (place, (action, known)) in actions.into_iter().enumerate() {
            by_fileset.all.push(known);
            let Some(fileset) = action.fileset else {
                by_fileset.anywhere.push(place);
                continue;
            };
            by_fileset.on.entry(fileset).or_default().push(place);
            if let Some(to) = action.operation.nature().to.filter(|to| *to != fileset) {
                by_fileset.on.entry(to).or_default().push(place);
            }
        }
        by_fileset
    }

    /// Of those that [work on](Action::works_on) a fileset, in their order.
    pub fn on(&self, fileset: usize) -> impl Iterator<Item = &T> {
        let alone = u32::try_from(fileset).ok().and_then(|fileset| self.on.get(&fileset));
        let mut alone = alone.map_or(&[][..], Vec::as_slice).iter().peekable();
        let mut anywhere = self.anywhere.iter().peekable();
        std::iter::from_fn(move || {
            let first = match (alone.peek(), anywhere.peek()) {
                (Some(one), Some(other)) if one > other => anywhere.next(),
                (Some(_), _) => alone.next(),
                (None, _) => anywhere.next(),
            };
            first.map(|place| &self.all[*place])
        })
    }
}

impl<'w> ByFileset<(&'w ThreadGroup, &'w Action)> {
    pub fn of_phases(phases: impl IntoIterator<Item = &'w Phase>) -> Self {
        let groups = phases.into_iter().flat_map(|phase| &phase.groups);
        Self::of(groups.flat_map(|group| group.actions.all().into_iter().map(move |action| (action, (group, action)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Operation;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_fileset_has_the_actions_that_work_on_it(
            actions in prop::collection::vec((prop::option::of(0u32..4), prop::option::of(0u32..4)), 0..9),
        ) {
            let action = |(fileset, to): (Option<u32>, Option<u32>)| {
                Action::new("a", to.map_or(Operation::Stat, |to| Operation::Move { to }), fileset)
            };
            let actions: Vec<Action> = actions.into_iter().map(action).collect();
            let by_fileset = ByFileset::of(actions.iter().zip(0..));
            for fileset in 0..5 {
                let expected = (0..actions.len()).filter(|place| actions[*place].works_on(fileset));
                prop_assert_eq!(by_fileset.on(fileset).copied().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            }
        }
    }
}
