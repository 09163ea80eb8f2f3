//! In which order trials run, and when a cell has been tried often enough.
//!
//! Trials run in complete randomised blocks: block r holds repetition r of every cell, shuffled, so that whatever drifts
//! over a run (temperature, a neighbour, the age of a device) falls on all cells alike.
//!
//! The order of block r depends on the plan's seed and r alone: a Fisher–Yates shuffle (Durstenfeld 1964, from the last
//! place down) of all cells in the plan's order, drawing from xoshiro256++ seeded by SplitMix64 with
//! `seed ⊕ scatter(r)`. Cells that are done are left out *after* the shuffle, so a run that is resumed goes on in the
//! very order that it would have had. That is the whole of the state mapping: from the finished trials follows which
//! remain, and from seed and block their order; nothing else is remembered. Where a budget of time is dealt out, whose turn it is in a
//! block follows from the trials of the blocks before it ([`super::budget`]).

use super::budget::{Dealer, Judge};
use fstone_model::{
    Plan, Trial,
    result::{Perturbation, TrialId},
    study::Order,
};
use fstone_stats::{
    Sample,
    stopping::{Decision, StoppingRule, decide},
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::{collections::BTreeSet, time::Duration};

/// What is to be run of a plan, and what is done.
#[derive(Debug)]
pub struct Schedule<'a> {
    plan: &'a Plan,
    rule: StoppingRule,
    /// By cell.
    progress: Vec<Progress>,
    block: u32,
    /// What is left of it, last first.
    rest: Vec<u32>,
    dealer: Option<Dealer<'a>>,
    /// The place behind those of all results.
    behind: u32,
    /// The trials that are made here, where others are made elsewhere or not at all.
    only: Option<BTreeSet<TrialId>>,
}

#[derive(Debug, Clone, Default)]
struct Progress {
    /// Repetitions that have a result.
    done: Vec<u32>,
    /// The same of trials in perturbed guests.
    perturbed: Vec<u32>,
    /// Per column, the values of its completed trials, in the order of their repetitions.
    values: Vec<Vec<f64>>,
    /// Its outcome would be the same again.
    given_up: bool,
}

/// Why a plan cannot be scheduled; completes "failed to schedule the trials: ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error("repeats: {0}")]
    Repeats(String),
    #[error("trial {} of cell {} is finished, but this plan has no such cell: it is another plan's", .0.repetition, .0.cell)]
    Foreign(TrialId),
    /// There is a budget and nobody who judges, or the other way round.
    #[error("a plan with a budget needs a judge of its trials, and no other plan has one")]
    Unjudged,
    #[error("the plan's cell {at} is numbered {index}")]
    Numbering { at: usize, index: u32 },
}

impl<'a> Schedule<'a> {
    pub fn plan(&self) -> &'a Plan {
        self.plan
    }

    /// What is left of a plan when these trials are finished.
    ///
    /// # Errors
    /// When plan and trials do not fit.
    pub fn new(plan: &'a Plan, finished: &[Trial]) -> Result<Self, ScheduleError> {
        match plan.budget {
            None => Self::with(plan, finished, None),
            Some(_) => Err(ScheduleError::Unjudged),
        }
    }

    /// The same for a plan with a budget, which goes by what the judge says after each block.
    ///
    /// # Errors
    /// When plan and trials do not fit.
    pub fn judged(plan: &'a Plan, finished: &[Trial], judge: Box<dyn Judge + 'a>) -> Result<Self, ScheduleError> {
        let budget = plan.budget.ok_or(ScheduleError::Unjudged)?;
        Self::with(plan, finished, Some(Dealer::new(budget, plan.warm_up, plan.cells.len(), judge)))
    }

    /// These trials of a plan and no others, whatever had decided that it is these.
    ///
    /// # Errors
    /// When plan and trials do not fit.
    pub fn exactly(plan: &'a Plan, trials: impl IntoIterator<Item = TrialId>) -> Result<Self, ScheduleError> {
        let only: BTreeSet<TrialId> = trials.into_iter().collect();
        let has = |id: &&TrialId| (id.cell as usize) < plan.cells.len();
        if let Some(id) = only.iter().find(|id| !has(id)) {
            return Err(ScheduleError::Foreign(*id));
        }
        Ok(Self::with(plan, &[], None)?.restricted(only))
    }

    fn with(plan: &'a Plan, finished: &[Trial], dealer: Option<Dealer<'a>>) -> Result<Self, ScheduleError> {
        let repeats = plan.repeats;
        let (min, max) = (repeats.min as usize, repeats.max as usize);
        let rule = match repeats.until {
            Some(share) => StoppingRule::until(min, max, share),
            None => StoppingRule::fixed(min),
        };
        let rule = rule.map_err(|error| ScheduleError::Repeats(error.to_string()))?;
        for (at, cell) in plan.cells.iter().enumerate() {
            if cell.index as usize != at {
                return Err(ScheduleError::Numbering { at, index: cell.index });
            }
        }
        let empty = Progress { values: vec![Vec::new(); plan.columns.len()], ..Progress::default() };
        let progress = vec![empty; plan.cells.len()];
        let mut schedule = Self { plan, rule, progress, block: 0, rest: Vec::new(), dealer, behind: 0, only: None };
        // Block by block, for what was decided between two blocks is decided again.
        let mut finished: Vec<&Trial> = finished.iter().collect();
        finished.sort_by_key(|trial| (trial.id.repetition, trial.position));
        let mut finished = finished.into_iter().peekable();
        while let Some(next) = finished.peek() {
            if schedule.dealer.is_some() && next.id.repetition > schedule.block {
                schedule.rest = schedule.rest_of_block();
                if !schedule.rest.is_empty() || !schedule.advance() {
                    break;
                }
                continue;
            }
            schedule.finish(next)?;
            finished.next();
        }
        schedule.rest = schedule.rest_of_block();
        Ok(schedule)
    }

    /// These blocks of a plan and no others, for a machine that makes some of them; `finished` are trials of these blocks. All
    /// cells take part in each, for what other blocks showed is not known here.
    ///
    /// # Errors
    /// When plan and trials do not fit, and for a plan with a budget, whose blocks follow from each other.
    pub fn only(
        plan: &'a Plan,
        blocks: impl IntoIterator<Item = u32>,
        finished: &[Trial],
    ) -> Result<Self, ScheduleError> {
        let cells = plan.cells.len() as u32;
        let of_block = |repetition| (0..cells).map(move |cell| TrialId { cell, repetition });
        Ok(Self::new(plan, finished)?.restricted(blocks.into_iter().flat_map(of_block).collect()))
    }

    fn restricted(mut self, only: BTreeSet<TrialId>) -> Self {
        self.only = Some(only);
        self.rest = self.rest_of_block();
        self
    }

    pub fn blocks_to_come(&self) -> Vec<u32> {
        let lacking = |block: &u32| {
            (0..self.plan.cells.len()).any(|cell| {
                let progress = &self.progress[cell];
                !progress.given_up && !progress.done.contains(block) && self.trials_of(cell as u32) > *block as usize
            })
        };
        (0..self.plan.repeats.max.max(self.plan.repeats.min)).filter(lacking).collect()
    }

    /// The place of the next trial in the order of all: behind those of the blocks before it, also where these are made elsewhere.
    pub fn position(&self) -> u32 {
        if self.only.is_none() {
            // Blocks of other machines may have left places free before theirs.
            return self.finished().max(self.behind);
        }
        let cells = self.plan.cells.len() as u32;
        let of_block = self.progress.iter().filter(|progress| progress.done.contains(&self.block)).count() as u32;
        self.block.saturating_mul(cells).saturating_add(of_block)
    }

    /// Takes a result in.
    ///
    /// # Errors
    /// When it is of no cell of the plan.
    pub fn finish(&mut self, trial: &Trial) -> Result<(), ScheduleError> {
        let Some(progress) = self.progress.get_mut(trial.id.cell as usize) else {
            return Err(ScheduleError::Foreign(trial.id));
        };
        if let Some(dealer) = &mut self.dealer {
            dealer.take(trial);
        }
        self.behind = self.behind.max(trial.position.saturating_add(1));
        progress.given_up |= trial.outcome.is_final_for_cell();
        if trial.id.perturbation().is_some() {
            progress.perturbed.push(trial.id.repetition);
            return Ok(());
        }
        progress.done.push(trial.id.repetition);
        if trial.outcome.is_completed() {
            for (column, values) in self.plan.columns.iter().zip(&mut progress.values) {
                values.extend(trial.figure(&column.step, &column.metric).map(|figure| figure.value));
            }
        }
        Ok(())
    }

    /// The next trial; `None` when all is done.
    pub fn next_trial(&mut self) -> Option<TrialId> {
        loop {
            if let Some(cell) = self.rest.pop() {
                return Some(TrialId { cell, repetition: self.block });
            }
            if !self.advance() {
                return self.perturbed().next();
            }
        }
    }

    /// The trials in perturbed guests that are still to come, behind all blocks.
    fn perturbed(&self) -> impl Iterator<Item = TrialId> {
        let planned = (0..self.plan.perturbed.min(Perturbation::MOST)).flat_map(|number| {
            let exact = self.plan.cells.iter().filter(|cell| cell.kernel.is_exact());
            exact.map(move |cell| Perturbation { number }.trial(cell.index))
        });
        let all: Vec<TrialId> = match &self.only {
            Some(only) => only.iter().copied().filter(|id| id.perturbation().is_some()).collect(),
            None => planned.collect(),
        };
        all.into_iter().filter(|id| {
            let progress = &self.progress[id.cell as usize];
            !progress.given_up && !progress.perturbed.contains(&id.repetition)
        })
    }

    /// Goes on to the next block; `false` when there is none.
    fn advance(&mut self) -> bool {
        if let Some(dealer) = &mut self.dealer {
            if !dealer.ended {
                let live = |cell: &u32| !self.progress[*cell as usize].given_up;
                dealer.end_block(&(0..).take(self.plan.cells.len()).filter(live).collect::<Vec<u32>>());
            }
            if dealer.ended {
                return false;
            }
        }
        self.block += 1;
        if self.block >= self.plan.repeats.max.max(self.plan.repeats.min) {
            return false;
        }
        self.rest = self.rest_of_block();
        true
    }

    /// What the last look found, once.
    pub fn looked(&mut self) -> Option<String> {
        self.dealer.as_mut()?.words.take()
    }

    /// What follows the last [`Self::next_trial`], as far as it can be said before that trial has ended: the rest of the
    /// block, and the blocks that every cell takes part in unless it is given up. Where each block is dealt out by what the
    /// one before it showed, no more is known than the block. For those who begin trials ahead.
    pub(super) fn upcoming(&self) -> impl Iterator<Item = TrialId> {
        let rest = self.rest.iter().rev().map(|&cell| TrialId { cell, repetition: self.block });
        let known = if self.dealer.is_some() || self.only.is_some() { 0 } else { self.plan.repeats.min };
        let blocks = (self.block + 1..known).flat_map(move |block| {
            let wanted = move |cell: &u32| {
                let progress = &self.progress[*cell as usize];
                !progress.given_up && !progress.done.contains(&block)
            };
            let cells = block_order(self.plan, block).into_iter().filter(wanted);
            cells.map(move |cell| TrialId { cell, repetition: block })
        });
        // The first of them may have been asked for.
        rest.chain(blocks).chain(self.perturbed())
    }

    /// Cells that the current block still has to run, the next one last. Whether a cell takes part is decided when the
    /// block begins, by the blocks before it.
    fn rest_of_block(&self) -> Vec<u32> {
        let mut order = block_order(self.plan, self.block);
        order.retain(|cell| self.takes_part(*cell));
        order.reverse();
        order
    }

    fn takes_part(&self, cell: u32) -> bool {
        let progress = &self.progress[cell as usize];
        let has_turn = match (&self.dealer, &self.only) {
            (Some(dealer), _) => dealer.participants.contains(&cell),
            (None, Some(only)) => only.contains(&TrialId { cell, repetition: self.block }),
            (None, None) => self.trials_of(cell) > self.block as usize,
        };
        !progress.given_up && !progress.done.contains(&self.block) && has_turn
    }

    fn trials_of(&self, cell: u32) -> usize {
        let progress = &self.progress[cell as usize];
        if progress.given_up {
            return progress.done.len();
        }
        if progress.done.len() < self.rule.min() {
            return self.rule.min();
        }
        // A column that no trial has a value for (a typing error in a study, a metric this machine lacks) says nothing.
        let samples: Vec<Sample> = progress
            .values
            .iter()
            .filter(|values| !values.is_empty())
            .filter_map(|values| Sample::new(values.clone()).ok())
            .collect();
        match decide(&self.rule, &samples.iter().collect::<Vec<_>>(), self.plan.seed) {
            Decision::Enough { .. } | Decision::Limit { .. } => progress.done.len(),
            // Failed trials count as tries, or a cell that always fails would be tried for ever.
            Decision::Continue { estimated_total, .. } => {
                estimated_total.max(progress.done.len() + 1).min(self.rule.max())
            }
        }
    }

    /// The trials of a block that only warms up: every cell of which a trial is still to come. They are numbered from the far
    /// end, so that they share neither order nor seed with a trial that counts.
    pub fn warm_up_block(&self, number: u32) -> Vec<TrialId> {
        let repetition = u32::MAX - number;
        let still = |cell: &u32| {
            let progress = &self.progress[*cell as usize];
            match &self.dealer {
                Some(dealer) => !progress.given_up && !dealer.ended && dealer.participants.contains(cell),
                None => self.trials_of(*cell) > progress.done.len(),
            }
        };
        let order = block_order(self.plan, repetition).into_iter().filter(still);
        order.map(|cell| TrialId { cell, repetition }).collect()
    }

    pub fn finished(&self) -> u32 {
        self.progress.iter().map(|progress| (progress.done.len() + progress.perturbed.len()) as u32).sum()
    }

    /// Time left of the budget, if there is one.
    pub fn budget_left(&self) -> Option<Duration> {
        let left = self.dealer.as_ref()?.left_seconds();
        Some(Duration::try_from_secs_f64(left.max(0.0)).unwrap_or(Duration::MAX))
    }

    /// All trials of the run, as far as that is known; under a budget, those of the current block and of the blocks before it.
    pub fn total(&self) -> u32 {
        if self.dealer.is_some() {
            return self.finished() + self.rest.len() as u32;
        }
        if let Some(only) = &self.only {
            let of = |cell: usize| only.iter().filter(|id| id.cell as usize == cell).count();
            let trials = |(cell, progress): (usize, &Progress)| {
                if progress.given_up { progress.done.len() } else { of(cell) }
            };
            return self.progress.iter().enumerate().map(|each| trials(each) as u32).sum();
        }
        let perturbed = self.progress.iter().map(|progress| progress.perturbed.len() as u32).sum::<u32>();
        (0..self.plan.cells.len())
            .map(|cell| self.trials_of(cell as u32).max(self.progress[cell].done.len()) as u32)
            .sum::<u32>()
            + perturbed
            + self.perturbed().count() as u32
    }
}

pub fn block_order(plan: &Plan, block: u32) -> Vec<u32> {
    let mut cells: Vec<u32> = plan.cells.iter().map(|cell| cell.index).collect();
    if plan.order == Order::Blocks {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(plan.seed ^ scatter(block));
        for last in (1..cells.len()).rev() {
            cells.swap(last, below(&mut random, last as u64 + 1) as usize);
        }
    }
    cells
}

/// The seed of a trial's random streams: the same for all cells of a block, so that what is compared did the same; another
/// for each block, so that what is averaged did not.
pub fn trial_seed(plan: &Plan, repetition: u32) -> u64 {
    // A perturbed guest does what the first one did.
    let is_perturbed = TrialId { cell: 0, repetition }.perturbation().is_some();
    let repetition = if is_perturbed { 0 } else { repetition };
    // Apart from the order's stream.
    Xoshiro256PlusPlus::seed_from_u64(plan.seed.rotate_left(32) ^ scatter(repetition)).next_u64()
}

/// Different numbers, far apart; 2⁶⁴ / golden ratio, as SplitMix64 steps.
const fn scatter(number: u32) -> u64 {
    (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Uniform in 0..bound: the high word of a 128-bit product, rejecting what would make some results likelier (Lemire 2019,
/// "Fast random integer generation in an interval").
fn below(random: &mut Xoshiro256PlusPlus, bound: u64) -> u64 {
    let threshold = bound.wrapping_neg() % bound;
    loop {
        let product = u128::from(random.next_u64()) * u128::from(bound);
        if product as u64 >= threshold {
            return (product >> 64) as u64;
        }
    }
}

#[cfg(test)]
mod tests;
