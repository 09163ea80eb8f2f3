//! A workload as one of many ranks has it: whose files are whose.

use super::{
    Action, Directories, Fileset, PADDED_RANK, Pattern, RANK, RankShift, Region, Sharing, ThreadGroup, Transfer,
    Workload, has_rank,
};

impl Fileset {
    pub fn of_rank(&self, rank: u32) -> Self {
        let mut own = self.clone();
        match self.ranks {
            Sharing::Private => {
                let top = format!("rank{rank}");
                own.directory = if self.directory.is_empty() { top } else { format!("{top}/{}", self.directory) };
            }
            Sharing::Names if own.naming.names_ranks() => {}
            Sharing::Names => {
                own.naming.file_prefix = format!("rank{rank}-{}", self.naming.file_prefix);
                own.naming.directory_prefix = format!("rank{rank}-{}", self.naming.directory_prefix);
            }
            Sharing::Shared | Sharing::Regions => {}
        }
        own.numbered(rank)
    }

    /// The same with the number in place of [`RANK`].
    fn numbered(mut self, rank: u32) -> Self {
        let (number, padded) = (rank.to_string(), format!("{rank:08}"));
        let numbered = |prefix: &str| prefix.replace(RANK, &number).replace(PADDED_RANK, &padded);
        self.naming.prefixes_mut().for_each(|prefix| *prefix = numbered(prefix));
        self
    }

    /// Whether all ranks have their own files in shared directories, which rank 0 makes.
    pub fn has_common_directories(&self) -> bool {
        let none = matches!(self.directories, Directories::Flat { count: 0, .. });
        self.ranks == Sharing::Names && self.naming.names_ranks() && !has_rank(&self.naming.directory_prefix) && !none
    }
}

impl Workload {
    /// What one of several ranks does. `whose` has an entry for each phase; without one, the phase works on the rank's own files.
    pub fn of_rank(&self, rank: u32, ranks: u32, whose: &[RankShift]) -> Self {
        let mut own = self.clone();
        own.filesets = self.filesets.iter().map(|fileset| fileset.of_rank(rank)).collect();
        for (number, phase) in own.phases.iter_mut().enumerate() {
            // Shared files belong to no rank: there, the parts are another rank's.
            let whose = whose.get(number).map_or(rank, |whose| whose.of);
            for group in &mut phase.groups {
                if self.works_on_regions(group) {
                    group.region = of_rank(group.region, rank, ranks, group.threads);
                }
                for operation in group.actions.all_mut().into_iter().map(|action| &mut action.operation) {
                    if let Some(Transfer { pattern: Pattern::Runs(runs), .. }) = operation.transfer_mut() {
                        *runs = runs.of_rank(whose, ranks);
                    }
                }
            }
        }
        own
    }

    pub fn names_ranks(&self) -> bool {
        self.filesets.iter().any(|fileset| fileset.naming.prefixes().any(has_rank))
    }

    /// What a load of a single process does: the same as rank 0, if names have the rank's number in them.
    pub fn alone(&self) -> Self {
        let mut own = self.clone();
        own.filesets = self.filesets.iter().map(|fileset| fileset.clone().numbered(0)).collect();
        own
    }

    /// Why this workload cannot be a load of many ranks; completes "the workload …".
    pub fn unfit_for_ranks(&self) -> Option<String> {
        if self.replay.is_some() {
            return Some("replays a recording, which has threads of its own".into());
        }
        if !self.filesets.iter().all(Fileset::stays_below) {
            return Some("has files out of the load's directory, where the ranks would have the same ones".into());
        }
        if self.data.stamped && self.filesets.iter().any(|fileset| fileset.ranks.is_common()) {
            return Some(
                "stamps its data and shares files between ranks, none of which knows what another wrote".into(),
            );
        }
        for (phase, group) in self.phases.iter().flat_map(|phase| phase.groups.iter().map(move |group| (phase, group)))
        {
            let common = |action: &Action| self.filesets_of(action).any(|fileset| fileset.ranks.is_common());
            let regions = |action: &Action| self.filesets_of(action).any(|fileset| fileset.ranks == Sharing::Regions);
            let (of, place) = (&group.name, &phase.name);
            let actions = group.actions.all();
            let changing = actions.iter().find(|action| {
                let nature = action.operation.nature();
                common(action) && (nature.changes_names() || nature.changes_sizes() || nature.to.is_some())
            });
            if let Some(action) = changing {
                let name = &action.name;
                return Some(format!(
                    "has {name:?} (group {of:?} of phase {place:?}) add, remove, rename or resize files that all ranks share; give the \
                     fileset ranks = \"private\" or \"names\""
                ));
            }
            if actions.iter().any(|action| regions(action)) && !actions.iter().all(|action| regions(action)) {
                return Some(format!(
                    "has group {of:?} of phase {place:?} work on files with a region for each rank and on others; make it two groups"
                ));
            }
            if phase.is_shifted() && self.data.stamped {
                return Some(format!("stamps its data, and phase {place:?} reads what another rank wrote"));
            }
        }
        None
    }

    fn filesets_of<'w>(&'w self, action: &'w Action) -> impl Iterator<Item = &'w Fileset> {
        self.filesets.iter().enumerate().filter(|(index, _)| action.works_on(*index)).map(|(_, fileset)| fileset)
    }

    fn works_on_regions(&self, group: &ThreadGroup) -> bool {
        group
            .actions
            .all()
            .iter()
            .any(|action| self.filesets_of(action).any(|fileset| fileset.ranks == Sharing::Regions))
    }
}

fn of_rank(region: Region, rank: u32, ranks: u32, threads: u32) -> Region {
    match region {
        Region::Whole => Region::OfRank { rank, ranks, split: false },
        Region::Split => Region::OfRank { rank, ranks, split: true },
        // The next rank's threads come after this one's.
        Region::At { offset_bytes, length_bytes, step_bytes } => Region::At {
            offset_bytes: offset_bytes
                .saturating_add(step_bytes.saturating_mul(u64::from(threads)).saturating_mul(u64::from(rank))),
            length_bytes,
            step_bytes,
        },
        Region::OfRank { .. } => region,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Amount, SizeDistribution, name_clashes};

    fn fileset(ranks: Sharing, directory: &str) -> Fileset {
        Fileset {
            ranks,
            directory: directory.into(),
            ..Fileset::new("files", Amount::Files(10), SizeDistribution::Fixed(4096))
        }
    }

    #[test]
    fn ranks_never_have_the_same_names_unless_they_share() {
        for directory in ["", "data", "a/b"] {
            for sharing in [Sharing::Private, Sharing::Names] {
                let of = |rank| fileset(sharing, directory).of_rank(rank);
                for (one, other) in [(0, 1), (1, 11), (1, 10), (2, 22)] {
                    assert_eq!(
                        name_clashes(&[of(one), of(other)]).count(),
                        0,
                        "{sharing:?} {directory:?} {one} {other}"
                    );
                    assert!(of(one).stays_below());
                }
            }
            for sharing in [Sharing::Shared, Sharing::Regions] {
                let of = |rank| fileset(sharing, directory).of_rank(rank);
                assert_eq!(of(0), of(1));
            }
        }
    }

    #[test]
    fn the_parts_of_ranks_are_disjoint_and_all_of_the_file() {
        for (ranks, threads) in [(1, 1), (3, 1), (3, 2), (8, 5)] {
            for size in [0_u64, 1, 4095, 1 << 20, (1 << 20) + 17] {
                let mut end = 0;
                for rank in 0..ranks {
                    let whole = of_rank(Region::Whole, rank, ranks, threads).of(size, 0, u64::from(threads));
                    assert_eq!(whole.0, end, "{rank} of {ranks}");
                    for thread in 0..threads {
                        let region = of_rank(Region::Split, rank, ranks, threads);
                        let (begin, length) = region.of(size, u64::from(thread), u64::from(threads));
                        assert_eq!(begin, end, "{size}: {thread} of {threads} of {rank} of {ranks}");
                        end = begin + length;
                    }
                    assert_eq!(whole.0 + whole.1, end);
                }
                assert_eq!(end, size);
            }
        }
    }
}
