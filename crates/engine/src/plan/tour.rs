//! The tour of a group, made ready: which actions there are on each file, and what they share.

use super::draws::Draws;
use crate::pattern::distribution_of;
use fstone_model::workload::{Actions, Distribution, Extent, Pattern, SizeDistribution, ThreadGroup, Tour, Transfer};

/// A tour, ready. Of a group of reads and overwrites of one block each.
#[derive(Debug)]
pub(crate) struct TourPlan {
    pub(crate) order: Tour,
    /// Operations on a file before the next.
    pub(crate) operations: u64,
    /// Files that are open at once; each is closed when it is finished, unless all stay open.
    pub(crate) open: Option<usize>,
    pub(crate) filesets: Vec<FilesetOfTour>,
    pub(crate) actions: Vec<ActionOfTour>,
    pub(crate) grids: usize,
}

#[derive(Debug)]
pub(crate) struct FilesetOfTour {
    pub(crate) fileset: usize,
    pub(crate) draws: Draws,
}

#[derive(Debug)]
pub(crate) struct ActionOfTour {
    /// As it is written, with the smallest block where blocks are drawn.
    pub(crate) transfer: Transfer,
    pub(crate) way: Way,
    /// 0 if it reads, 1 if it writes.
    pub(crate) direction: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Behind the last one; at the file's end by another action, if there is one.
    On {
        instead: Option<usize>,
    },
    Drawn,
    Permuted {
        grid: usize,
    },
    /// The next row of places of this grid that were not taken.
    Row {
        grid: usize,
    },
}

impl TourPlan {
    pub(super) fn of(group: &ThreadGroup) -> Option<Self> {
        let order = group.tour?;
        let Actions::Mix(mix) = &group.actions else { return None };
        let transfers: Vec<Transfer> = mix
            .iter()
            .map(|weighted| {
                let mut transfer = *weighted.action.operation.nature().transfer?;
                let drawn = weighted.action.blocks.as_ref().and_then(SizeDistribution::block_bounds);
                transfer.block_bytes = drawn.map_or(transfer.block_bytes, |(smallest, _)| smallest);
                transfer.extent = Extent::Bytes(transfer.block_bytes);
                Some(transfer)
            })
            .collect::<Option<_>>()?;
        let fileset_of = |index: usize| mix[index].action.fileset;
        let direction_of = |index: usize| usize::from(mix[index].action.operation.nature().writes());
        let alignment_of = |index: usize| match transfers[index].pattern {
            Pattern::Random { distribution: Distribution::Permutation, align_bytes } => Some(align_bytes.max(1)),
            _ => None,
        };
        let alike = |one: usize| {
            (0..mix.len())
                .filter(move |other| fileset_of(*other) == fileset_of(one) && alignment_of(*other) == alignment_of(one))
        };
        let mut grids = 0;
        let mut actions: Vec<ActionOfTour> = Vec::new();
        for (index, transfer) in transfers.iter().enumerate() {
            let way = match (distribution_of(transfer), alignment_of(index)) {
                (None, _) => Way::On {
                    instead: (0..mix.len()).find(|other| {
                        fileset_of(*other) == fileset_of(index)
                            && direction_of(*other) == direction_of(index)
                            && distribution_of(&transfers[*other]).is_some()
                    }),
                },
                (_, None) => Way::Drawn,
                (_, Some(_)) => {
                    // The first action on a grid gives it its number among those of its fileset.
                    let first = alike(index).next().unwrap_or(index);
                    let grid = (0..first)
                        .filter(|other| {
                            fileset_of(*other) == fileset_of(index)
                                && alignment_of(*other).is_some()
                                && alike(*other).next() == Some(*other)
                        })
                        .count();
                    grids = grids.max(grid + 1);
                    // A permutation gives blocks of one size only.
                    let rows = alike(index).any(|other| {
                        mix[other].action.blocks.is_some() || transfers[other].block_bytes != transfer.block_bytes
                    });
                    if rows { Way::Row { grid } } else { Way::Permuted { grid } }
                }
            };
            actions.push(ActionOfTour { transfer: *transfer, way, direction: direction_of(index) });
        }
        let mut filesets: Vec<FilesetOfTour> = Vec::new();
        for (index, weighted) in mix.iter().enumerate().filter(|(_, weighted)| weighted.weight > 0) {
            let fileset = weighted.action.fileset? as usize;
            let place = filesets.iter().position(|of| of.fileset == fileset).unwrap_or_else(|| {
                filesets.push(FilesetOfTour { fileset, draws: Draws::default() });
                filesets.len() - 1
            });
            filesets[place].draws.add(index, weighted.weight, direction_of(index) == 1);
        }
        let open = group.tour_open.map(|files| files.max(1) as usize);
        Some(Self { order, operations: group.tour_operations.max(1), open, filesets, actions, grids })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::workload::{Action, Operation, Weighted};

    fn action(writes: bool, pattern: Pattern, block_bytes: u64, fileset: u32) -> Action {
        let transfer = Transfer { extent: Extent::Bytes(block_bytes), block_bytes, pattern, fsync: false };
        let operation = if writes { Operation::Write(transfer) } else { Operation::Read(transfer) };
        Action::new("one", operation, Some(fileset))
    }

    fn permuted(align_bytes: u64) -> Pattern {
        Pattern::Random { distribution: Distribution::Permutation, align_bytes }
    }

    fn plan(actions: Vec<Action>) -> TourPlan {
        let mix = actions.into_iter().map(|action| Weighted { weight: 1, action }).collect();
        let mut group = ThreadGroup::new("group", 1, Actions::Mix(mix));
        group.tour = Some(Tour::InTurn);
        TourPlan::of(&group).expect("it has a tour")
    }

    fn ways(plan: &TourPlan) -> Vec<Way> {
        plan.actions.iter().map(|action| action.way).collect()
    }

    #[test]
    fn what_is_alike_shares_an_order() {
        let of = plan(vec![
            action(false, permuted(4096), 4096, 0),
            action(true, permuted(4096), 4096, 0),
            action(true, permuted(8192), 8192, 0),
            action(false, permuted(4096), 4096, 1),
        ]);
        let grid = |grid| Way::Permuted { grid };
        assert_eq!((ways(&of), of.grids), (vec![grid(0), grid(0), grid(1), grid(0)], 2));
        assert_eq!(of.filesets.iter().map(|of| of.fileset).collect::<Vec<_>>(), [0, 1]);
        // Blocks of two sizes at the same places.
        let of = plan(vec![action(false, permuted(4096), 4096, 0), action(true, permuted(4096), 8192, 0)]);
        assert_eq!(ways(&of), [Way::Row { grid: 0 }; 2]);
    }

    #[test]
    fn a_cursor_at_the_end_leaves_it_to_what_is_drawn() {
        let cursor = Pattern::Cursor { shared: false };
        let uniform = Pattern::Random { distribution: Distribution::Uniform, align_bytes: 4096 };
        let of = plan(vec![
            action(false, uniform, 4096, 0),
            action(false, cursor, 4096, 0),
            action(true, cursor, 4096, 0),
            action(false, cursor, 4096, 1),
        ]);
        let on = |instead| Way::On { instead };
        assert_eq!(ways(&of), [Way::Drawn, on(Some(0)), on(None), on(None)]);
    }
}
