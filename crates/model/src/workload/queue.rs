//! Requests in flight: which groups can have several, and where a queue depth would have no effect.

use super::{Actions, Extent, OpenPolicy, Operation, Pattern, Phase, ThreadGroup, Workload};

impl Operation {
    /// Whether it is a single transfer, which can be in flight with others.
    pub fn is_one_transfer(&self) -> bool {
        let (Self::Read(transfer) | Self::Write(transfer)) = self else { return false };
        let one = matches!(transfer.extent, Extent::Bytes(bytes) if bytes <= transfer.block_bytes);
        one && !transfer.fsync && !matches!(transfer.pattern, Pattern::Skip { .. })
    }
}

impl Workload {
    /// Why the threads of a group have one request in flight at a time, whatever queue depth is asked for.
    pub fn one_at_a_time(&self, group: &ThreadGroup) -> Option<&'static str> {
        match group.open {
            _ if matches!(group.actions, Actions::Program(_)) => Some("its threads go through a program, step by step"),
            _ if !self.io_of(group).engine.queues() => Some("its I/O engine has one request in flight at a time"),
            OpenPolicy::PerOperation => {
                Some("it opens a file for each operation (open = \"keep-open\" keeps them open)")
            }
            _ if !group.think_time.is_zero() && group.think_every <= 1 => {
                Some("its threads pause after each operation")
            }
            _ if self.data.stamped => Some("its data is stamped, and checked as it is read"),
            _ if !group.actions.all().iter().any(|action| action.operation.is_one_transfer()) => {
                Some("none of its operations is a single read or write of a block")
            }
            OpenPolicy::KeepOpen | OpenPolicy::KeepShared => None,
        }
    }

    /// Why a group of a phase cannot search for the queue depth that meets its latency target, if it has one.
    pub fn unfit_target(&self, phase: &Phase, group: &ThreadGroup) -> Option<&'static str> {
        let target = group.latency_target?;
        let depth_of_one =
            (self.io_of(group).queue_depth < 2).then_some("its queue depth is the largest that is tried");
        let nothing =
            target.latency.is_zero() || target.window.is_zero() || !(target.share > 0.0 && target.share <= 1.0);
        let mixed = (phase.measured && !target.follow)
            .then_some("its phase is measured, and the figures would be of all depths that it tries");
        self.one_at_a_time(group)
            .or(depth_of_one)
            .or(mixed)
            .or(nothing.then_some("latency, window and share must be above 0, and the share at most 1"))
    }

    /// The first group whose queue depth, its own or the workload's, changes nothing: the places of its phase and of itself in
    /// that, and why.
    pub fn unused_depth(&self) -> Option<((usize, usize), &'static str)> {
        self.groups()
            .filter(|(_, group)| self.io_of(group).queue_depth > 1)
            .find_map(|(place, group)| Some((place, self.one_at_a_time(group)?)))
    }

    /// The same load without queue depths that have no effect. If only some groups use the workload's, they have it as
    /// their own.
    #[must_use]
    pub fn without_unused_depths(mut self) -> Self {
        let users: Vec<bool> = self.groups().map(|(_, group)| self.one_at_a_time(group).is_none()).collect();
        let depth = self.io.queue_depth;
        let has_own = |group: &ThreadGroup| group.io.queue_depth.is_some();
        if self.groups().zip(&users).any(|((_, group), uses)| !uses && !has_own(group)) {
            self.io.queue_depth = 1;
        }
        let moved = depth > 1 && self.io.queue_depth == 1;
        let groups = self.phases.iter_mut().flat_map(|phase| &mut phase.groups);
        for (group, uses) in groups.zip(users) {
            match group.io.queue_depth {
                None if uses && moved => group.io.queue_depth = Some(depth),
                Some(own) if own > 1 && !uses => group.io.queue_depth = Some(1),
                _ => {}
            }
        }
        self
    }

    /// All groups, with the places of their phases and of themselves in those.
    fn groups(&self) -> impl Iterator<Item = ((usize, usize), &ThreadGroup)> {
        self.phases
            .iter()
            .enumerate()
            .flat_map(|(phase, of)| of.groups.iter().enumerate().map(move |(group, one)| ((phase, group), one)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Action, FinalSync, IoEngineKind, IoSettings, Phase, Stop, Transfer};
    use std::time::Duration;

    fn workload() -> Workload {
        let transfer =
            Transfer { extent: Extent::Bytes(4096), block_bytes: 4096, pattern: Pattern::FromStart, fsync: false };
        let actions = |operation| Actions::Sequence(vec![Action::new("a", operation, Some(0))]);
        let reads = ThreadGroup {
            open: OpenPolicy::KeepOpen,
            ..ThreadGroup::new("reads", 1, actions(Operation::Read(transfer)))
        };
        let stats = ThreadGroup { name: "stats".into(), actions: actions(Operation::Stat), ..reads.clone() };
        let groups = vec![reads, stats];
        Workload {
            io: IoSettings { engine: IoEngineKind::IoUring, queue_depth: 8, ..IoSettings::default() },
            final_sync: FinalSync::None,
            ..Workload::new("w", Vec::new(), vec![Phase::new("p", groups, Stop::default())])
        }
    }

    #[test]
    fn a_depth_that_a_group_cannot_use_is_found() {
        let mut good = workload();
        good.phases[0].groups.truncate(1);
        assert_eq!(good.unused_depth(), None);
        assert_eq!(good.clone().without_unused_depths(), good);
        let changes: [fn(&mut Workload); 5] = [
            |load| load.phases[0].groups[0].open = OpenPolicy::PerOperation,
            |load| load.phases[0].groups[0].think_time = Duration::from_millis(1),
            |load| load.data.stamped = true,
            |load| load.phases[0].groups[0].actions = workload().phases[0].groups[1].actions.clone(),
            |load| load.io.engine = IoEngineKind::Psync,
        ];
        let reasons = changes.map(|change| {
            let mut bad = good.clone();
            change(&mut bad);
            let mended = bad.clone().without_unused_depths();
            assert_eq!((mended.io.queue_depth, mended.unused_depth()), (1, None));
            bad.unused_depth().expect("nobody queues").1
        });
        let different: std::collections::HashSet<&str> = reasons.into_iter().collect();
        assert_eq!(different.len(), 5, "{different:?}");
    }

    #[test]
    fn a_depth_for_some_groups_is_theirs() {
        let load = workload();
        assert_eq!(load.unused_depth().map(|(place, _)| place), Some((0, 1)));
        let depths = |load: &Workload| {
            let own = load.phases[0].groups.iter().map(|group| group.io.queue_depth);
            (load.io.queue_depth, own.collect::<Vec<_>>())
        };
        assert_eq!(depths(&load.clone().without_unused_depths()), (1, vec![Some(8), None]));
        let mut own = load;
        own.phases[0].groups[1].io.queue_depth = Some(4);
        assert_eq!(own.unused_depth().map(|(place, _)| place), Some((0, 1)));
        let mended = own.without_unused_depths();
        assert_eq!(depths(&mended), (8, vec![None, Some(1)]));
        assert_eq!(mended.unused_depth(), None);
    }
}
