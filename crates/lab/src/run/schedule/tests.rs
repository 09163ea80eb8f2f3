use super::*;
use crate::{run::budget::Verdict, testing};
use fstone_model::{
    Outcome, StepResult,
    metric::catalog,
    outcome::Reason,
    result::Effective,
    study::{Budget, KernelSpec, Repeats},
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
        let finished: Vec<Trial> = whole[..done].iter().map(|id| trial(*id, Outcome::Completed, noisy(*id))).collect();
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

/// What a run under a budget shows is the time that is left, not a number of trials guessed from the first one.
#[test]
fn a_budget_tells_its_time_and_no_number_of_trials() {
    let plan = budgeted(30);
    let mut schedule = Schedule::judged(&plan, &[], Box::new(FakeJudge::default())).expect("fits");
    let id = schedule.next_trial().expect("the first");
    schedule.finish(&Trial { duration_ns: 1_000, ..second_long(id) }).expect("of this plan");
    assert_eq!((schedule.total(), schedule.finished()), (4, 1), "the block, not 100,000 trials");
    let left = schedule.budget_left().expect("a budget").as_secs_f64();
    assert!(29.9 < left && left < 30.0, "{left}");
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

/// Nobody judges a second time: the trials that were made are made again, block by block, and no others.
#[test]
fn trials_that_a_budget_had_made_are_made_again() {
    let plan = budgeted(30);
    let made = dealt(&plan, &[], 7);
    let mut schedule = Schedule::exactly(&plan, made.iter().rev().copied()).expect("of the plan");
    assert_eq!(schedule.total() as usize, made.len());
    let mut again = Vec::new();
    while let Some(id) = schedule.next_trial() {
        again.push(id);
        schedule.finish(&second_long(id)).expect("of the plan");
    }
    assert_eq!(again, made);
    let foreign = TrialId { cell: 4, repetition: 0 };
    assert_eq!(Schedule::exactly(&plan, [foreign]).unwrap_err(), ScheduleError::Foreign(foreign));
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

#[test]
fn perturbed_guests_follow_the_blocks_with_the_seed_of_the_first() {
    let mut plan = Plan { perturbed: 2, ..plan(2, fixed(2)) };
    assert_eq!(run(&plan, &[], |_| 1.0).len(), 4, "there are none in real time");
    for cell in &mut plan.cells {
        cell.kernel = KernelSpec::Exact("6.1".into());
    }
    let order = run(&plan, &[], |_| 1.0);
    let numbers: Vec<(u32, String)> = order[4..].iter().map(|id| (id.cell, id.number())).collect();
    let expected = [(0, "perturbed 1"), (1, "perturbed 1"), (0, "perturbed 2"), (1, "perturbed 2")];
    assert_eq!(numbers, expected.map(|(cell, number)| (cell, number.to_owned())));
    assert!(order[4..].iter().all(|id| trial_seed(&plan, id.repetition) == trial_seed(&plan, 0)));
    let memory: Vec<u64> =
        order[4..].iter().map(|id| id.perturbation().expect("it is one").memory_bytes(512 << 20) >> 20).collect();
    assert_eq!(memory, [511, 511, 513, 513]);
    // A run that was interrupted goes on with those that it lacks, and they can be made again alone.
    let finished: Vec<Trial> = order[..5].iter().map(|id| trial(*id, Outcome::Completed, 1.0)).collect();
    assert_eq!(run(&plan, &finished, |_| 1.0), order[5..]);
    let without = Plan { perturbed: 0, ..plan };
    let mut order = order;
    order.sort_by_key(|id| (id.perturbation().is_some(), if id.perturbation().is_some() { id.cell } else { 0 }));
    let mut again = Schedule::exactly(&without, order.clone()).expect("of the plan");
    let mut made = Vec::new();
    while let Some(id) = again.next_trial() {
        made.push(id);
        again.finish(&trial(id, Outcome::Completed, 1.0)).expect("of the plan");
    }
    assert_eq!((made, again.total()), (order, 8));
}
