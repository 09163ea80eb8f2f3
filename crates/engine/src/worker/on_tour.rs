//! Which block comes next on a thread's tour.

use super::attempt::{Attempt, Incomplete};
use super::picked::Picked;
use super::thread::Worker;
use super::tour::{Block, Tour};
use crate::fileset::Hold;
use crate::io::Io;
use crate::measure::Call;
use crate::pattern::alignment;
use crate::plan::{TourPlan, Way};
use fstone_model::workload;
use rustix::io::Errno;

#[derive(Debug, Clone, Copy)]
pub(crate) enum NextOfTour {
    /// Its block is kept for it.
    Action(usize),
    /// This file of a fileset is finished, and open no longer.
    Close(usize, u32),
    /// Of a tour that is made once.
    End,
}

impl<E: Io> Worker<'_, E> {
    #[inline]
    pub(crate) fn next_of_tour(&mut self, plan: &TourPlan) -> NextOfTour {
        let Some(mut tour) = self.tour.take() else { return NextOfTour::End };
        let next = self.go_on(&mut tour, plan);
        self.tour = Some(tour);
        next
    }

    fn go_on(&mut self, tour: &mut Tour, plan: &TourPlan) -> NextOfTour {
        loop {
            // Those behind these are not open.
            let open = tour.left.len().min(plan.open.unwrap_or(usize::MAX));
            if plan.order == workload::Tour::Drawn && tour.stay == 0 && open > 1 {
                let drawn = self.random.below(open as u64);
                tour.left.swap(0, drawn as usize);
            }
            let Some(&stop) = tour.left.front() else {
                if self.group.until_walked {
                    return NextOfTour::End;
                }
                if !tour.gave {
                    // There is nothing in any of them: the action fails, for it is given no block.
                    return NextOfTour::Action(0);
                }
                tour.begin_anew();
                continue;
            };
            let of = &plan.filesets[tour.stops[stop as usize].of as usize];
            let index = of.draws.draw(self.direction, |bound| self.random.below(bound));
            let Some(block) = self.block_at(tour, plan, stop as usize, index) else {
                tour.left.pop_front();
                tour.stay = 0;
                if plan.open.is_some() {
                    return NextOfTour::Close(of.fileset, tour.stops[stop as usize].file);
                }
                continue;
            };
            (tour.gave, tour.next) = (true, Some(block));
            tour.stay = if tour.stay == 0 { plan.operations } else { tour.stay } - 1;
            if plan.order == workload::Tour::InTurn && tour.stay == 0 && open > 1 {
                tour.left.pop_front();
                tour.left.insert(open - 1, stop);
            }
            return NextOfTour::Action(index);
        }
    }

    /// The next block of an action in a file of the tour; `None` when there is none left.
    fn block_at(&mut self, tour: &mut Tour, plan: &TourPlan, stop: usize, index: usize) -> Option<Block> {
        let (fileset, file) = (plan.filesets[tour.stops[stop].of as usize].fileset, tour.stops[stop].file);
        if !self.files(fileset).table.is_live(file) {
            return None;
        }
        let (_, size) = self.span(&Picked { fileset, file, hold: Hold::Free, position: None }).ok()?;
        let action = &plan.actions[index];
        let grid_of = |grid: usize| stop * plan.grids + grid;
        let transfer = &action.transfer;
        let at = |place: u64| place * alignment(transfer);
        // Whole blocks, where sizes are drawn of the smallest.
        let left = size.checked_sub(transfer.block_bytes)?;
        let places = left / alignment(transfer) + 1;
        let length = self.drawn_block(index).unwrap_or(transfer.block_bytes);
        let (offset, length) = match action.way {
            Way::On { instead } => {
                let end = tour.stops[stop].ends[action.direction];
                match instead {
                    Some(other) if end > left => return self.block_at(tour, plan, stop, other),
                    _ if end > left => return None,
                    _ => (end, length),
                }
            }
            Way::Drawn => {
                let drawer = tour.drawers[index].as_mut()?;
                (at(drawer.draw(places, &mut self.random, || 0)), length)
            }
            Way::Permuted { grid } => (at(tour.permuted(grid_of(grid), places)?), length),
            Way::Row { grid } => {
                let align = alignment(transfer);
                let (first, row) = tour.row(grid_of(grid), places, length.div_ceil(align))?;
                (first * align, length.min(row * align))
            }
        };
        let length = length.min(size - offset);
        tour.stops[stop].ends[action.direction] = offset + length;
        Some(Block { file, offset, length })
    }

    pub(super) fn by_tour(&mut self, index: usize, fileset: usize, hold: Hold) -> Attempt<Picked> {
        let Some(block) = self.tour.as_mut().and_then(|tour| tour.next.take()) else {
            return Err(Incomplete::fault(Call::Choose, Errno::NODATA));
        };
        self.states[index].piece = block.length;
        self.take(fileset, block.file, hold, Some(block.offset))
    }
}
