//! Where a thread is on its tour: which files are left, and what was given of each.

use crate::fileset::Files;
use crate::pattern::{Cover, Drawer, distribution_of, permute};
use crate::plan::{ActionOfTour, TourPlan, Way};
use crate::random::derive;
use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct Tour {
    pub(super) stops: Vec<Stop>,
    /// The stops that are not finished, the next one first.
    pub(super) left: VecDeque<u32>,
    /// Operations that are still due on the first of them before another one comes.
    pub(super) stay: u64,
    grids: Vec<Grid>,
    pub(super) drawers: Vec<Option<Drawer>>,
    seed: u64,
    round: u64,
    pub(super) gave: bool,
    pub(super) next: Option<Block>,
}

#[derive(Debug)]
pub(super) struct Stop {
    /// Its fileset's place in the plan.
    pub(super) of: u32,
    pub(super) file: u32,
    /// Where the last block read and the last written end, from the begin of the thread's part on.
    pub(super) ends: [u64; 2],
}

#[derive(Debug)]
enum Grid {
    Untouched,
    Permuted { given: u64, seed: u64 },
    Rows(Box<Cover>),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl Tour {
    /// At the begin of a tour. `layout` gives the seed of where an action's frequent blocks are.
    pub(super) fn new(files: &[Files], plan: &TourPlan, seed: u64, layout: impl Fn(usize) -> u64) -> Self {
        let stops = plan.filesets.iter().zip(0_u32..).flat_map(|(of, place)| {
            files[of.fileset].table.live_files().map(move |file| Stop { of: place, file, ends: [0; 2] })
        });
        let mut stops: Vec<Stop> = stops.collect();
        stops.shrink_to_fit();
        let drawer = |(index, action): (usize, &ActionOfTour)| {
            let distribution = distribution_of(&action.transfer).filter(|_| action.way == Way::Drawn)?;
            Some(Drawer::new(distribution, layout(index)))
        };
        let mut tour = Self {
            left: VecDeque::new(),
            stay: 0,
            grids: std::iter::repeat_with(|| Grid::Untouched).take(stops.len() * plan.grids).collect(),
            drawers: plan.actions.iter().enumerate().map(drawer).collect(),
            stops,
            seed,
            round: 0,
            gave: false,
            next: None,
        };
        tour.left.extend(0..tour.stops.len() as u32);
        tour
    }

    pub(super) fn begin_anew(&mut self) {
        self.round += 1;
        self.gave = false;
        self.stay = 0;
        self.grids.fill_with(|| Grid::Untouched);
        self.stops.iter_mut().for_each(|stop| stop.ends = [0; 2]);
        self.left.extend(0..self.stops.len() as u32);
    }

    /// A place of the permutation of a grid; `None` when each was given.
    pub(super) fn permuted(&mut self, grid: usize, places: u64) -> Option<u64> {
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
    pub(super) fn row(&mut self, grid: usize, places: u64, most: u64) -> Option<(u64, u64)> {
        let seed = derive(self.seed, &[grid as u64, self.round]);
        if !matches!(self.grids[grid], Grid::Rows(_)) {
            self.grids[grid] = Grid::Rows(Box::default());
        }
        let Grid::Rows(cover) = &mut self.grids[grid] else { return None };
        (!cover.is_full()).then(|| cover.next(places, most, seed))
    }
}
