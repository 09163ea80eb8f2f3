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
use fstone_model::{Plan, Trial, result::TrialId, study::Order};
use fstone_stats::{
    Sample,
    stopping::{Decision, StoppingRule, decide},
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeSet;

/// What is to be run of a plan, and what is done.
#[derive(Debug)]
pub struct Schedule<'a> {
    plan: &'a Plan,
    rule: StoppingRule,
    /// By cell.
    progress: Vec<Progress>,
    /// The block that is being run.
    block: u32,
    /// What is left of it, last first.
    rest: Vec<u32>,
    /// Whose turn it is, when time is dealt out.
    dealer: Option<Dealer<'a>>,
    /// The place behind those of all results.
    behind: u32,
    /// The blocks that are made here, where others are made elsewhere.
    only: Option<BTreeSet<u32>>,
}

#[derive(Debug, Clone, Default)]
struct Progress {
    /// Repetitions that have a result.
    done: Vec<u32>,
    /// Per column, the values of its completed trials, in the order of their repetitions.
    values: Vec<Vec<f64>>,
    /// Its outcome would be the same again.
    given_up: bool,
}

/// Why a plan cannot be scheduled; completes "failed to schedule the trials: ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The repeats make no sense.
    #[error("repeats: {0}")]
    Repeats(String),
    /// A finished trial is not of this plan.
    #[error("trial {} of cell {} is finished, but this plan has no such cell: it is another plan's", .0.repetition, .0.cell)]
    Foreign(TrialId),
    /// There is a budget and nobody who judges, or the other way round.
    #[error("a plan with a budget needs a judge of its trials, and no other plan has one")]
    Unjudged,
    /// Cells are not numbered as they stand.
    #[error("the plan's cell {at} is numbered {index}")]
    Numbering {
        /// Its place.
        at: usize,
        /// Its number.
        index: u32,
    },
}

impl<'a> Schedule<'a> {
    /// What is left of a plan when these trials are finished.
    ///
    /// # Errors
    /// When plan and trials do not fit.
    pub fn new(plan: &'a Plan, finished: &[Trial]) -> Result<Self, ScheduleError> {
        Self::with(plan, finished, None)
    }

    /// The same for a plan with a budget, which goes by what the judge says after each block.
    ///
    /// # Errors
    /// When plan and trials do not fit.
    pub fn judged(plan: &'a Plan, finished: &[Trial], judge: Box<dyn Judge + 'a>) -> Result<Self, ScheduleError> {
        Self::with(plan, finished, Some(judge))
    }

    fn with(plan: &'a Plan, finished: &[Trial], judge: Option<Box<dyn Judge + 'a>>) -> Result<Self, ScheduleError> {
        let dealer = match (plan.budget, judge) {
            (Some(budget), Some(judge)) => Some(Dealer::new(budget, plan.warm_up, plan.cells.len(), judge)),
            (None, None) => None,
            _ => return Err(ScheduleError::Unjudged),
        };
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
        let mut schedule = Self::new(plan, finished)?;
        schedule.only = Some(blocks.into_iter().collect());
        schedule.rest = schedule.rest_of_block();
        Ok(schedule)
    }

    /// The blocks of which a trial is still to come, as far as can be said now.
    #[must_use]
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
    #[must_use]
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
        progress.done.push(trial.id.repetition);
        self.behind = self.behind.max(trial.position.saturating_add(1));
        progress.given_up |= trial.outcome.is_final_for_cell();
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
                return None;
            }
        }
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
        rest.chain(blocks)
    }

    /// Cells that the current block still has to run, the next one last. Whether a cell takes part is decided when the
    /// block begins, by the blocks before it.
    fn rest_of_block(&self) -> Vec<u32> {
        if self.only.as_ref().is_some_and(|only| !only.contains(&self.block)) {
            return Vec::new();
        }
        let mut order = block_order(self.plan, self.block);
        order.retain(|cell| self.takes_part(*cell));
        order.reverse();
        order
    }

    fn takes_part(&self, cell: u32) -> bool {
        let progress = &self.progress[cell as usize];
        let has_turn = match &self.dealer {
            Some(dealer) => dealer.participants.contains(&cell),
            None => self.only.is_some() || self.trials_of(cell) > self.block as usize,
        };
        !progress.given_up && !progress.done.contains(&self.block) && has_turn
    }

    /// How many trials a cell will have, as far as can be said now.
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
    #[must_use]
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

    /// Trials that have a result.
    #[must_use]
    pub fn finished(&self) -> u32 {
        self.progress.iter().map(|progress| progress.done.len() as u32).sum()
    }

    /// Trials there will be in all, as far as can be said now.
    #[must_use]
    pub fn total(&self) -> u32 {
        if let Some(dealer) = &self.dealer {
            return self.finished() + self.rest.len() as u32 + dealer.trials_after(&self.rest);
        }
        if let Some(only) = &self.only {
            let trials = |progress: &Progress| if progress.given_up { progress.done.len() } else { only.len() };
            return self.progress.iter().map(|progress| trials(progress) as u32).sum();
        }
        (0..self.plan.cells.len())
            .map(|cell| self.trials_of(cell as u32).max(self.progress[cell].done.len()) as u32)
            .sum()
    }
}

/// All cells, in the order in which a block runs them.
#[must_use]
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
#[must_use]
pub fn trial_seed(plan: &Plan, repetition: u32) -> u64 {
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
mod tests {
    use super::*;
    use crate::{run::budget::Verdict, testing};
    use fstone_model::{
        Outcome, StepResult,
        metric::catalog,
        outcome::Reason,
        result::Effective,
        study::{Budget, Repeats},
    };
    use fstone_stats::sequential::OpenPair;
    use std::time::Duration;

    fn plan(cells: u32, repeats: Repeats) -> Plan {
        testing::plan((0..cells).map(|index| testing::cell(index, "ext4", "", &[])).collect(), repeats)
    }

    fn fixed(repeats: u32) -> Repeats {
        Repeats { min: repeats, max: repeats, until: None }
    }

    fn trial(id: TrialId, outcome: Outcome, seconds: f64) -> Trial {
        let step = StepResult {
            step: "mkfs".into(),
            started_ns: 0,
            duration_ns: 0,
            commands: Vec::new(),
            figures: vec![catalog::TIME.figure(seconds)],
            load: None,
        };
        Trial {
            id,
            position: 0,
            started_unix_ns: 0,
            duration_ns: 0,
            seed: 0,
            outcome,
            steps: vec![step],
            effective: Effective::default(),
            warnings: Vec::new(),
        }
    }

    /// Runs a schedule to its end; the value of a trial is `seconds` of it.
    fn run(plan: &Plan, finished: &[Trial], seconds: impl Fn(TrialId) -> f64) -> Vec<TrialId> {
        let mut schedule = Schedule::new(plan, finished).expect("fits");
        let mut order = Vec::new();
        while let Some(id) = schedule.next_trial() {
            order.push(id);
            assert!(order.len() < 10_000);
            schedule.finish(&trial(id, Outcome::Completed, seconds(id))).expect("of this plan");
        }
        assert_eq!(schedule.total(), schedule.finished());
        order
    }

    /// Each machine makes its blocks as one machine would have made all of them.
    #[test]
    fn blocks_that_are_dealt_out_are_those_of_one_machine() {
        let plan = plan(5, Repeats { min: 4, max: 4, until: None });
        let all = |mut schedule: Schedule<'_>| {
            let mut made = Vec::new();
            while let Some(id) = schedule.next_trial() {
                let position = schedule.position();
                assert!(schedule.total() > schedule.finished());
                made.push((id, position));
                schedule.finish(&trial(id, Outcome::Completed, 1.0)).expect("of the plan");
            }
            assert_eq!(schedule.total(), schedule.finished());
            made
        };
        let whole = all(Schedule::new(&plan, &[]).expect("a schedule"));
        let mut parts = all(Schedule::only(&plan, [3, 1], &[]).expect("a schedule"));
        parts.extend(all(Schedule::only(&plan, [0, 2], &[]).expect("a schedule")));
        parts.sort_by_key(|(_, position)| *position);
        assert_eq!(parts, whole);
    }

    /// What one block shows decides nothing in another: all cells take part, but for one that is refused here.
    #[test]
    fn blocks_beyond_the_least_are_made_whole() {
        let plan = plan(2, Repeats { min: 2, max: 6, until: Some(0.5) });
        let mut schedule = Schedule::only(&plan, [4, 5], &[]).expect("a schedule");
        let first = schedule.next_trial().expect("a trial");
        assert_eq!((first.repetition, schedule.total()), (4, 4));
        let refused = Outcome::Refused(Reason::new("mount", "unknown option"));
        schedule.finish(&trial(first, refused, 1.0)).expect("of the plan");
        let rest: Vec<TrialId> = std::iter::from_fn(|| schedule.next_trial()).collect();
        let other = 1 - first.cell;
        assert_eq!(rest, [TrialId { cell: other, repetition: 4 }, TrialId { cell: other, repetition: 5 }]);
    }

    #[test]
    fn blocks_to_come_are_those_that_nobody_has_made() {
        let plan = plan(2, Repeats { min: 4, max: 4, until: None });
        let made: Vec<Trial> = [(0, 1), (1, 1), (0, 3)]
            .map(|(cell, repetition)| trial(TrialId { cell, repetition }, Outcome::Completed, 1.0))
            .into();
        assert_eq!(Schedule::new(&plan, &made).expect("a schedule").blocks_to_come(), [0, 2, 3]);
    }

    #[test]
    fn blocks_hold_every_cell_once_and_differ() {
        let plan = plan(6, fixed(5));
        let order = run(&plan, &[], |_| 1.0);
        assert_eq!(order.len(), 30);
        let mut seen = Vec::new();
        for (block, trials) in order.chunks(6).enumerate() {
            assert!(trials.iter().all(|id| id.repetition as usize == block));
            let cells: Vec<u32> = trials.iter().map(|id| id.cell).collect();
            let mut sorted = cells.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
            assert!(!seen.contains(&cells), "block {block} repeats an order");
            seen.push(cells);
        }
        assert_eq!(order, run(&plan, &[], |_| 1.0), "the seed decides");
        let other = Plan { seed: 2, ..plan.clone() };
        assert_ne!(order, run(&other, &[], |_| 1.0));
        let written = Plan { order: Order::AsWritten, ..plan };
        assert!(run(&written, &[], |_| 1.0).iter().enumerate().all(|(at, id)| id.cell as usize == at % 6));
    }

    #[test]
    fn the_order_is_pinned() {
        // A stored plan has to be resumed, and repeated, in this order by every later version.
        assert_eq!(block_order(&plan(6, fixed(1)), 0), PINNED[0]);
        assert_eq!(block_order(&plan(6, fixed(1)), 1), PINNED[1]);
    }
    const PINNED: [[u32; 6]; 2] = [[1, 5, 2, 0, 3, 4], [5, 0, 1, 2, 3, 4]];

    #[test]
    fn shuffles_are_uniform() {
        // Every cell in every place: 4! orders, 24,000 blocks, each expected 1000 times with σ ≈ 31.
        let plan = plan(4, fixed(1));
        let mut counts = std::collections::BTreeMap::new();
        for block in 0..24_000 {
            *counts.entry(block_order(&plan, block)).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_resumed_run_goes_on_in_the_order_it_would_have_had() {
        let plan = plan(5, fixed(3));
        let whole = run(&plan, &[], |_| 1.0);
        for done in 0..=whole.len() {
            let finished: Vec<Trial> = whole[..done].iter().map(|id| trial(*id, Outcome::Completed, 1.0)).collect();
            assert_eq!(run(&plan, &finished, |_| 1.0), whole[done..], "after {done}");
        }
    }

    #[test]
    fn a_resumed_adaptive_run_goes_on_as_well() {
        let plan = plan(3, Repeats { min: 3, max: 12, until: Some(0.05) });
        let noisy = |id: TrialId| 1.0 + 0.2 * f64::from(id.cell) * f64::from((id.repetition * 7 + id.cell) % 5);
        let whole = run(&plan, &[], noisy);
        for done in 0..=whole.len() {
            let finished: Vec<Trial> =
                whole[..done].iter().map(|id| trial(*id, Outcome::Completed, noisy(*id))).collect();
            assert_eq!(run(&plan, &finished, noisy), whole[done..], "after {done}");
        }
    }

    #[test]
    fn steady_cells_stop_early_and_noisy_ones_go_on_to_the_limit() {
        let plan = plan(2, Repeats { min: 3, max: 9, until: Some(0.02) });
        let order = run(&plan, &[], |id| {
            if id.cell == 0 { 1.0 + 1e-4 * f64::from(id.repetition) } else { 1.0 + f64::from(id.repetition * 7 % 5) }
        });
        let count = |cell| order.iter().filter(|id| id.cell == cell).count();
        assert!(count(0) < 9, "{}", count(0));
        assert_eq!(count(1), 9);
    }

    #[test]
    fn what_can_only_end_the_same_way_is_not_tried_again_but_failures_are() {
        let plan = plan(3, fixed(4));
        let mut schedule = Schedule::new(&plan, &[]).expect("fits");
        let mut tries = [0; 3];
        while let Some(id) = schedule.next_trial() {
            tries[id.cell as usize] += 1;
            let outcome = match id.cell {
                0 => Outcome::Refused(Reason::new("mount", "no")),
                1 => Outcome::Failed(Reason::new("load", "no")),
                _ => Outcome::Completed,
            };
            schedule.finish(&trial(id, outcome, 1.0)).expect("of this plan");
        }
        assert_eq!(tries, [1, 4, 4]);
        assert_eq!((schedule.total(), schedule.finished()), (9, 9));
    }

    /// Calls cells 0 and 1 undecided until they have been tried often enough, and all others decided from the second block on.
    #[derive(Default)]
    struct FakeJudge {
        tried: [usize; 4],
        enough: usize,
    }

    impl Judge for FakeJudge {
        fn take(&mut self, trial: &Trial) {
            self.tried[trial.id.cell as usize] += 1;
        }

        fn judge(&mut self) -> Verdict {
            let more = self.enough.saturating_sub(self.tried[0]);
            let pair = |a, b, blocks| OpenPair { rows: (a, b), half_width: None, more_blocks: blocks };
            // The last two could be told apart at a price that nobody can pay.
            let mut open = vec![pair(2, 3, 1e6)];
            open.extend((more > 0).then(|| pair(0, 1, more as f64)));
            let pairs = if self.tried[0] > 1 { 6 } else { 0 };
            Verdict { pairs, open, waiting: Vec::new(), words: format!("{more} more") }
        }
    }

    fn budgeted(seconds: u64) -> Plan {
        let budget = Budget { time: Duration::from_secs(seconds), resolution: 0.05 };
        Plan { budget: Some(budget), ..plan(4, Repeats { min: 2, max: 1000, until: None }) }
    }

    /// Each trial takes a second.
    fn dealt(plan: &Plan, finished: &[Trial], enough: usize) -> Vec<TrialId> {
        let judge = Box::new(FakeJudge { enough, ..FakeJudge::default() });
        let mut schedule = Schedule::judged(plan, finished, judge).expect("fits");
        let mut order = Vec::new();
        while let Some(id) = schedule.next_trial() {
            order.push(id);
            schedule.finish(&second_long(id)).expect("of this plan");
        }
        order
    }

    fn second_long(id: TrialId) -> Trial {
        Trial { duration_ns: 1_000_000_000, ..trial(id, Outcome::Completed, 1.0) }
    }

    #[test]
    fn a_budget_goes_where_it_decides_and_is_kept() {
        let order = dealt(&budgeted(30), &[], 7);
        let count = |cell| order.iter().filter(|id| id.cell == cell).count();
        assert_eq!((count(0), count(1)), (7, 7), "the pair that can be decided is");
        // Then nothing can be decided in what is left, so the open pair has all of it.
        assert_eq!((count(2), count(3), order.len()), (8, 8, 30));
        let short = dealt(&budgeted(9), &[], 7);
        assert_eq!(short.len(), 8, "a third block of two would fit no more");
        let hopeless = dealt(&budgeted(10), &[], 100);
        assert_eq!(hopeless.len(), 10, "no four rows fit, but two do");
        assert_eq!(dealt(&budgeted(3), &[], 7).len(), 4, "the first block tells how long a block takes");
    }

    #[test]
    fn a_run_that_warms_up_has_less_to_deal_out() {
        let plan = Plan { warm_up: 1, ..budgeted(16) };
        assert_eq!(dealt(&plan, &[], 100).len(), 12);
        assert_eq!(dealt(&budgeted(16), &[], 100).len(), 16);
    }

    #[test]
    fn a_budget_that_is_resumed_is_dealt_out_alike() {
        let plan = budgeted(40);
        let whole = dealt(&plan, &[], 7);
        for done in 0..=whole.len() {
            let finished: Vec<Trial> = whole[..done].iter().map(|id| second_long(*id)).collect();
            assert_eq!(dealt(&plan, &finished, 7), whole[done..], "after {done}");
        }
    }

    #[test]
    fn a_budget_needs_a_judge() {
        assert_eq!(Schedule::new(&budgeted(9), &[]).unwrap_err(), ScheduleError::Unjudged);
        let judge = Box::new(FakeJudge::default());
        assert_eq!(Schedule::judged(&plan(4, fixed(1)), &[], judge).unwrap_err(), ScheduleError::Unjudged);
    }

    #[test]
    fn seeds_are_shared_within_a_block_only() {
        let plan = plan(2, fixed(2));
        assert_ne!(trial_seed(&plan, 0), trial_seed(&plan, 1));
        assert_ne!(trial_seed(&plan, 0), trial_seed(&Plan { seed: 9, ..plan.clone() }, 0));
    }

    #[test]
    fn what_warms_up_is_what_is_still_to_be_run() {
        let plan = plan(4, fixed(2));
        let cells = |trials: &[TrialId]| trials.iter().map(|id| id.cell).collect::<Vec<_>>();
        let all = Schedule::new(&plan, &[]).expect("fits").warm_up_block(0);
        assert_eq!(cells(&all), block_order(&plan, u32::MAX));
        assert!(all.iter().all(|id| trial_seed(&plan, id.repetition) != trial_seed(&plan, 0)));
        let done = |cell, repetition| trial(TrialId { cell, repetition }, Outcome::Completed, 1.0);
        let refused = trial(TrialId { cell: 2, repetition: 0 }, Outcome::Refused(Reason::new("mount", "no")), 1.0);
        let finished = [done(0, 0), done(1, 0), refused, done(3, 0), done(0, 1)];
        let mut rest = cells(&Schedule::new(&plan, &finished).expect("fits").warm_up_block(0));
        rest.sort_unstable();
        assert_eq!(rest, [1, 3]);
    }

    #[test]
    fn misfits_are_told() {
        let plan = plan(2, fixed(1));
        let foreign = trial(TrialId { cell: 7, repetition: 0 }, Outcome::Completed, 1.0);
        assert!(matches!(Schedule::new(&plan, &[foreign]), Err(ScheduleError::Foreign(_))));
        let never = Plan { repeats: fixed(0), ..plan.clone() };
        assert!(matches!(Schedule::new(&never, &[]), Err(ScheduleError::Repeats(_))));
        let mut misnumbered = plan.clone();
        misnumbered.cells[1].index = 5;
        assert!(matches!(Schedule::new(&misnumbered, &[]), Err(ScheduleError::Numbering { .. })));
    }
}
