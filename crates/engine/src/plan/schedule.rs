//! When the operations of a group are to begin, where it has a rate.

use crate::random::Random;
use crossbeam_utils::CachePadded;
use fstone_model::workload::operation::Target;
use fstone_model::workload::{Action, Actions, Arrivals, Extent, Rate, SizeDistribution, ThreadGroup};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Parts of a nanosecond in which random gaps are added up: 2^64 of them are 200 days.
const PARTS_PER_NS: f64 = 1024.0;
const NS_PER_SECOND: f64 = 1e9;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Pace {
    /// Operations per second, evenly.
    Even(f64),
    /// Operations per second, each independent of the others.
    Poisson(f64),
    /// Bytes per second, of operations that are expected to move so many each.
    Bytes { per_second: f64, each: u64 },
}

/// The schedule of a group, shared by its threads: whoever is free takes what is due next.
#[derive(Debug)]
pub(crate) enum Schedule {
    /// One rate of all operations.
    Whole(Box<Pacer>),
    Directions(Box<Directions>),
}

/// Operations that do not write and operations that do, of which either or both have a rate.
#[derive(Debug)]
pub(crate) struct Directions {
    pacers: [Option<Pacer>; 2],
    /// Of the operations in the mix.
    weights: [u64; 2],
    /// When the next of each is due, once that was asked.
    next: Mutex<[Option<u64>; 2]>,
}

/// One rate.
#[derive(Debug)]
pub(crate) struct Pacer {
    pace: Pace,
    /// Operations begun, the last arrival in parts of a nanosecond, or bytes.
    state: CachePadded<AtomicU64>,
}

impl Schedule {
    /// `None` where the group goes as fast as it can.
    pub(crate) fn of(group: &ThreadGroup, sizes: &[&SizeDistribution]) -> Option<Self> {
        let pacer = |rate: Rate, actions: &Actions| Pacer::new(rate, group.arrivals, || expected_bytes(actions, sizes));
        if let (Actions::Mix(_), [Some(_), _] | [_, Some(_)]) = (&group.actions, group.direction_rates) {
            let all = [false, true].map(|writes| of_direction(&group.actions, writes));
            let weight = |actions: &Actions| match actions {
                Actions::Mix(mix) => mix.iter().map(|weighted| u64::from(weighted.weight)).sum(),
                _ => 0,
            };
            return Some(Self::Directions(Box::new(Directions {
                pacers: [0, 1].map(|direction| Some(pacer(group.direction_rates[direction]?, &all[direction]))),
                weights: [0, 1].map(|direction| weight(&all[direction])),
                next: Mutex::default(),
            })));
        }
        let operations = group.rate_per_second.map(Rate::Operations);
        let rate = operations.or(group.bytes_per_second.map(Rate::Bytes))?;
        Some(Self::Whole(Box::new(pacer(rate, &group.actions))))
    }

    /// Says what an operation that was scheduled has moved, which may not be what was expected.
    pub(crate) fn settle(&self, writes: bool, moved: u64) {
        match self {
            Self::Whole(pacer) => pacer.settle(moved),
            Self::Directions(directions) => {
                directions.pacers[usize::from(writes)].iter().for_each(|pacer| pacer.settle(moved));
            }
        }
    }
}

/// The actions of a mix that write, or those that do not.
pub(super) fn of_direction(actions: &Actions, writes: bool) -> Actions {
    let Actions::Mix(mix) = actions else { return actions.clone() };
    let of = mix.iter().filter(|weighted| weighted.action.operation.nature().writes() == writes);
    Actions::Mix(of.cloned().collect())
}

impl Directions {
    /// Whether the next operation writes, and when it is to begin, in nanoseconds after the group's start: `None` means at once. The mix says
    /// which it is; if that is not due, it is the other if that is due, and the one that is due first if neither is. Each call is one operation.
    pub(crate) fn next(&self, now: u64, random: &mut Random) -> (bool, Option<u64>) {
        let drawn = usize::from(random.below(self.weights[0] + self.weights[1]) >= self.weights[0]);
        let other = 1 - drawn;
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        for (moment, pacer) in next.iter_mut().zip(&self.pacers) {
            *moment = moment.or_else(|| pacer.as_ref().map(|pacer| pacer.next(random)));
        }
        let at = |direction: usize| next[direction].unwrap_or(0);
        let direction = if self.weights[other] == 0 || at(drawn) <= now.max(at(other)) { drawn } else { other };
        (direction == 1, next[direction].take())
    }
}

impl Pacer {
    fn new(rate: Rate, arrivals: Arrivals, each: impl FnOnce() -> u64) -> Self {
        let pace = match (rate, arrivals) {
            (Rate::Operations(rate), Arrivals::Even) => Pace::Even(rate),
            (Rate::Operations(rate), Arrivals::Poisson) => Pace::Poisson(rate),
            (Rate::Bytes(bytes), _) => Pace::Bytes { per_second: bytes as f64, each: each() },
        };
        Self { pace, state: CachePadded::default() }
    }

    /// When the next operation is to begin, in nanoseconds after the group's start. Each call is one operation.
    pub(crate) fn next(&self, random: &mut Random) -> u64 {
        let ns = match self.pace {
            Pace::Even(rate) => self.state.fetch_add(1, Ordering::Relaxed) as f64 / rate * NS_PER_SECOND,
            Pace::Poisson(rate) => {
                // The gap before an arrival, 1 - u being above 0.
                let gap = (-(1.0 - random.unit()).ln() / rate * NS_PER_SECOND * PARTS_PER_NS) as u64;
                (self.state.fetch_add(gap, Ordering::Relaxed).saturating_add(gap)) as f64 / PARTS_PER_NS
            }
            Pace::Bytes { per_second, each } => {
                // Operations that moved less than was expected can leave it below 0 for a moment.
                let before = self.state.fetch_add(each, Ordering::Relaxed).cast_signed().max(0);
                before as f64 / per_second * NS_PER_SECOND
            }
        };
        ns as u64
    }

    fn settle(&self, moved: u64) {
        if let Pace::Bytes { each, .. } = self.pace
            && moved != each
        {
            self.state.fetch_add(moved.wrapping_sub(each), Ordering::Relaxed);
        }
    }
}

/// Bytes that an operation of the group moves on average, as far as that can be told before; 0 where none moves any.
pub(super) fn expected_bytes(actions: &Actions, sizes: &[&SizeDistribution]) -> u64 {
    let of = |action: &Action| bytes_of(action, sizes) as f64;
    let mean = match actions {
        Actions::Mix(mix) => {
            let weights: f64 = mix.iter().map(|weighted| f64::from(weighted.weight)).sum();
            mix.iter().map(|weighted| f64::from(weighted.weight) * of(&weighted.action)).sum::<f64>() / weights
        }
        Actions::Sequence(actions) => actions.iter().map(of).sum::<f64>() / actions.len() as f64,
        Actions::Ratio { first, second, ratio } => (of(first) * ratio + of(second)) / (ratio + 1.0),
        Actions::Program(_) => {
            let all = actions.all();
            all.iter().map(|action| of(action)).sum::<f64>() / all.len() as f64
        }
    };
    // An operation of which next to nothing is expected still takes its turn.
    if mean > 0.0 { (mean as u64).max(1) } else { 0 }
}

fn bytes_of(action: &Action, sizes: &[&SizeDistribution]) -> u64 {
    let nature = action.operation.nature();
    let whole = || match action.fileset {
        Some(index) => sizes.get(index as usize).map_or(0, |size| size.typical_bytes()),
        None => sizes.iter().map(|size| size.typical_bytes()).sum::<u64>() / (sizes.len() as u64).max(1),
    };
    match (nature.transfer.map(|transfer| transfer.extent), nature.target) {
        (Some(Extent::Bytes(bytes)), _) => bytes,
        (Some(Extent::Whole), _) => whole().max(1),
        (None, Target::NewFile) if nature.largest_block > 0 => whole(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fstone_model::workload::{Operation, Pattern, Transfer};

    fn pacer(pace: Pace) -> Pacer {
        Pacer { pace, state: CachePadded::default() }
    }

    fn reading(bytes: u64) -> ThreadGroup {
        let transfer =
            Transfer { extent: Extent::Bytes(bytes), block_bytes: bytes, pattern: Pattern::FromStart, fsync: false };
        ThreadGroup::new("g", 1, Actions::Sequence(vec![Action::new("read", Operation::Read(transfer), Some(0))]))
    }

    #[test]
    fn even_operations_do_not_drift() {
        let even = pacer(Pace::Even(3.0));
        let mut random = Random::new(1);
        let moments: Vec<u64> = (0..4).map(|_| even.next(&mut random)).collect();
        assert_eq!(moments, [0, 333_333_333, 666_666_666, 1_000_000_000]);
    }

    /// A Poisson process: gaps of mean 1 / rate and variance 1 / rate², none of which tells of the next.
    #[test]
    fn poisson_arrivals_have_the_rate_and_the_scatter_that_were_asked_for() {
        const COUNT: usize = 1_000_000;
        for rate in [10.0, 5000.0, 1e7] {
            let poisson = pacer(Pace::Poisson(rate));
            let mut random = Random::new(7);
            let mut before = 0.0;
            let gaps: Vec<f64> = (0..COUNT)
                .map(|_| {
                    let moment = poisson.next(&mut random) as f64;
                    let gap = (moment - before) / NS_PER_SECOND * rate;
                    before = moment;
                    gap
                })
                .collect();
            let n = COUNT as f64;
            let mean = gaps.iter().sum::<f64>() / n;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
            let neighbours = gaps.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum::<f64>() / n;
            // Five standard errors: of a mean 1/√n, of a variance √8/√n, of a covariance 1/√n.
            let error = 5.0 / n.sqrt();
            assert!((mean - 1.0).abs() < error, "{rate}: mean {mean}");
            assert!((variance - 1.0).abs() < 8f64.sqrt() * error, "{rate}: variance {variance}");
            assert!(neighbours.abs() < error, "{rate}: covariance {neighbours}");
        }
    }

    fn directions(pacers: [Option<Pacer>; 2], weights: [u64; 2]) -> Directions {
        Directions { pacers, weights, next: Mutex::default() }
    }

    /// Writes of a second's operations, of a thread for which each takes so long; and whether any began before it was due.
    fn in_a_second(of: &Directions, took_ns: u64) -> (usize, usize) {
        let (mut random, mut now, mut done) = (Random::new(3), 0, [0, 0]);
        loop {
            let (writes, due) = of.next(now, &mut random);
            now = now.max(due.unwrap_or(now));
            if now >= 1_000_000_000 {
                return (done[0], done[1]);
            }
            done[usize::from(writes)] += 1;
            now += took_ns;
        }
    }

    #[test]
    fn reads_and_writes_keep_a_rate_each_whatever_the_mix_says() {
        let even = |rate| Some(pacer(Pace::Even(rate)));
        for weights in [[1, 1], [9, 1], [1, 9]] {
            assert_eq!(in_a_second(&directions([even(400.0), even(100.0)], weights), 1000), (400, 100));
            let (reads, writes) = in_a_second(&directions([None, even(100.0)], weights), 100_000);
            assert_eq!((reads + writes, writes), (10_000, 100), "reads go whenever no write is due");
        }
        // What only reads has no use for a write that is due.
        assert_eq!(in_a_second(&directions([even(100.0), even(1000.0)], [1, 0]), 1000), (100, 0));
        // One that is too slow for both does as the mix says.
        let (reads, writes) = in_a_second(&directions([even(1e6), even(1e6)], [9, 1]), 100_000);
        assert!(reads + writes == 10_000 && (900..1100).contains(&writes), "{reads} {writes}");
        let (reads, writes) = in_a_second(&directions([Some(pacer(Pace::Poisson(4000.0))), even(100.0)], [1, 1]), 1000);
        assert!(writes == 100 && (3600..4400).contains(&reads), "{reads} {writes}");
    }

    #[test]
    fn bytes_are_paced_by_what_was_moved() {
        let group = ThreadGroup { bytes_per_second: Some(1000), ..reading(100) };
        let Some(Schedule::Whole(bytes)) = Schedule::of(&group, &[&SizeDistribution::Fixed(4096)]) else {
            panic!("it has a rate");
        };
        let mut random = Random::new(1);
        let mut next = || bytes.next(&mut random) / 1_000_000;
        assert_eq!((next(), next()), (0, 100));
        bytes.settle(100);
        // A second one moved nothing, so the next but one is due when it would have been without it.
        bytes.settle(0);
        assert_eq!(next(), 100);
        bytes.settle(1000);
        assert_eq!(next(), 1100);
        bytes.settle(0);
        bytes.settle(0);
        assert_eq!(next(), 1000);
    }

    #[test]
    fn what_an_operation_moves_is_expected() {
        let size = SizeDistribution::Uniform { minimum: 1000, maximum: 3000 };
        let sizes = [&size];
        let create = |block_bytes| Action::new("create", Operation::Create { block_bytes, fsync: false }, Some(0));
        let read = reading(500).actions.all()[0].clone();
        assert_eq!(expected_bytes(&Actions::Sequence(vec![create(4096)]), &sizes), 2000);
        assert_eq!(expected_bytes(&Actions::Sequence(vec![create(0)]), &sizes), 0);
        let ratio = Actions::Ratio { first: read.clone(), second: create(4096), ratio: 2.0 };
        assert_eq!(expected_bytes(&ratio, &sizes), 1000);
        assert_eq!(expected_bytes(&Actions::Sequence(vec![read, create(0)]), &sizes), 250);
    }
}
