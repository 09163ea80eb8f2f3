//! Where a thread is on its tour: which files are left, and which block of one comes next.

use super::attempt::{Attempt, Incomplete};
use super::load::Load;
use super::picked::Picked;
use super::thread::Worker;
use crate::fileset::Hold;
use crate::io::Io;
use crate::measure::Call;
use crate::pattern::{Cover, Drawer, alignment, distribution_of, permute};
use crate::plan::{ActionOfTour, GroupPlan, TourPlan, Way};
use crate::random::derive;
use fstone_model::workload;
use rustix::io::Errno;
use std::collections::VecDeque;

const TOUR_STREAM: u64 = 0x746f_7572;

/// Where a thread is on its tour.
#[derive(Debug)]
pub(crate) struct Tour {
    stops: Vec<Stop>,
    /// The stops that are not finished, the next one first.
    left: VecDeque<u32>,
    /// What was given of each grid of each stop.
    grids: Vec<Grid>,
    /// By the number of the action.
    drawers: Vec<Option<Drawer>>,
    seed: u64,
    round: u64,
    /// Whether this round has given anything.
    gave: bool,
    /// What was chosen and not been taken yet.
    next: Option<Block>,
}

/// A file of a tour.
#[derive(Debug)]
struct Stop {
    /// Its fileset's place in the plan.
    of: u32,
    file: u32,
    /// Where the last block read and the last written end, from the begin of the thread's part on.
    ends: [u64; 2],
}

/// What was given of a grid of places.
#[derive(Debug)]
enum Grid {
    Untouched,
    /// So many places of the permutation of this seed.
    Permuted {
        given: u64,
        seed: u64,
    },
    Rows(Box<Cover>),
}

/// A block of a file.
#[derive(Debug, Clone, Copy)]
struct Block {
    file: u32,
    offset: u64,
    length: u64,
}

impl Tour {
    /// At the begin of the group's tour, if it has one.
    pub(super) fn new(load: &Load<'_>, group: &GroupPlan, thread: u64) -> Option<Box<Self>> {
        let plan = group.tour.as_ref()?;
        let files = plan.filesets.iter().zip(0_u32..).flat_map(|(of, place)| {
            load.files[of.fileset].table.live_files().map(move |file| Stop { of: place, file, ends: [0; 2] })
        });
        let mut stops: Vec<Stop> = files.collect();
        stops.shrink_to_fit();
        let seed = derive(load.seed, &[TOUR_STREAM, load.phase_number, group.number as u64, thread]);
        let drawer = |(index, action): (usize, &ActionOfTour)| {
            let distribution = distribution_of(&action.transfer).filter(|_| action.way == Way::Drawn)?;
            Some(Drawer::new(distribution, derive(seed, &[index as u64])))
        };
        let mut tour = Self {
            left: VecDeque::new(),
            grids: std::iter::repeat_with(|| Grid::Untouched).take(stops.len() * plan.grids).collect(),
            drawers: plan.actions.iter().enumerate().map(drawer).collect(),
            stops,
            seed,
            round: 0,
            gave: false,
            next: None,
        };
        tour.left.extend(0..tour.stops.len() as u32);
        Some(Box::new(tour))
    }

    /// All files are finished: begins anew.
    fn begin_anew(&mut self) {
        self.round += 1;
        self.gave = false;
        self.grids.fill_with(|| Grid::Untouched);
        self.stops.iter_mut().for_each(|stop| stop.ends = [0; 2]);
        self.left.extend(0..self.stops.len() as u32);
    }

    /// A place of the permutation of a grid; `None` when each was given.
    fn permuted(&mut self, grid: usize, places: u64) -> Option<u64> {
        let (turn, seed) = match self.grids[grid] {
            Grid::Permuted { given, seed } => (given, seed),
            _ => (0, derive(self.seed, &[grid as u64, self.round])),
        };
        if turn >= places {
            return None;
        }
        self.grids[grid] = Grid::Permuted { given: turn + 1, seed };
        Some(permute(turn, places, seed))
    }

    /// Begin and length of a row of places of a grid that were not given before; `None` when each was.
    fn row(&mut self, grid: usize, places: u64, most: u64) -> Option<(u64, u64)> {
        let seed = derive(self.seed, &[grid as u64, self.round]);
        if !matches!(self.grids[grid], Grid::Rows(_)) {
            self.grids[grid] = Grid::Rows(Box::default());
        }
        let Grid::Rows(cover) = &mut self.grids[grid] else { return None };
        (!cover.is_full()).then(|| cover.next(places, most, seed))
    }
}

impl<E: Io> Worker<'_, E> {
    /// The action that comes next on the tour, whose block is kept for it. `None` at the end of a tour that is made once.
    #[inline]
    pub(crate) fn next_of_tour(&mut self, plan: &TourPlan) -> Option<usize> {
        let mut tour = self.tour.take()?;
        let next = self.go_on(&mut tour, plan);
        self.tour = Some(tour);
        next
    }

    fn go_on(&mut self, tour: &mut Tour, plan: &TourPlan) -> Option<usize> {
        loop {
            if plan.order == workload::Tour::Drawn && tour.left.len() > 1 {
                let drawn = self.random.below(tour.left.len() as u64);
                tour.left.swap(0, drawn as usize);
            }
            let Some(&stop) = tour.left.front() else {
                if self.group.until_walked {
                    return None;
                }
                if !tour.gave {
                    // There is nothing in any of them: the action fails, for it is given no block.
                    return Some(0);
                }
                tour.begin_anew();
                continue;
            };
            let of = &plan.filesets[tour.stops[stop as usize].of as usize];
            let index = of.action(|bound| self.random.below(bound));
            let Some(block) = self.block_at(tour, plan, stop as usize, index) else {
                tour.left.pop_front();
                continue;
            };
            (tour.gave, tour.next) = (true, Some(block));
            if plan.order == workload::Tour::InTurn && tour.left.len() > 1 {
                tour.left.rotate_left(1);
            }
            return Some(index);
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

    /// The file of the block that was chosen.
    pub(super) fn by_tour(&mut self, index: usize, fileset: usize, hold: Hold) -> Attempt<Picked> {
        let Some(block) = self.tour.as_mut().and_then(|tour| tour.next.take()) else {
            return Err(Incomplete::fault(Call::Choose, Errno::NODATA));
        };
        self.states[index].piece = block.length;
        self.take(fileset, block.file, hold, Some(block.offset))
    }
}
