//! When the operations of a group are to begin, where it has a rate.

use crate::random::Random;
use crossbeam_utils::CachePadded;
use fstone_model::workload::operation::Target;
use fstone_model::workload::{Action, Actions, Arrivals, Extent, SizeDistribution, ThreadGroup};
use std::sync::atomic::{AtomicU64, Ordering};

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
pub(crate) struct Schedule {
    pace: Pace,
    /// Operations begun, the last arrival in parts of a nanosecond, or bytes.
    state: CachePadded<AtomicU64>,
}

impl Schedule {
    /// `None` where the group goes as fast as it can.
    pub(crate) fn of(group: &ThreadGroup, sizes: &[&SizeDistribution]) -> Option<Self> {
        let pace = match (group.rate_per_second, group.bytes_per_second, group.arrivals) {
            (Some(rate), _, Arrivals::Even) => Pace::Even(rate),
            (Some(rate), _, Arrivals::Poisson) => Pace::Poisson(rate),
            (None, Some(bytes), _) => {
                Pace::Bytes { per_second: bytes as f64, each: expected_bytes(&group.actions, sizes) }
            }
            (None, None, _) => return None,
        };
        Some(Self { pace, state: CachePadded::default() })
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

    /// Tells what an operation that was scheduled has moved, which may not be what was expected.
    pub(crate) fn settle(&self, moved: u64) {
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

    fn schedule(pace: Pace) -> Schedule {
        Schedule { pace, state: CachePadded::default() }
    }

    fn reading(bytes: u64) -> ThreadGroup {
        let transfer =
            Transfer { extent: Extent::Bytes(bytes), block_bytes: bytes, pattern: Pattern::FromStart, fsync: false };
        ThreadGroup::new("g", 1, Actions::Sequence(vec![Action::new("read", Operation::Read(transfer), Some(0))]))
    }

    #[test]
    fn even_operations_do_not_drift() {
        let even = schedule(Pace::Even(3.0));
        let mut random = Random::new(1);
        let moments: Vec<u64> = (0..4).map(|_| even.next(&mut random)).collect();
        assert_eq!(moments, [0, 333_333_333, 666_666_666, 1_000_000_000]);
    }

    /// A Poisson process: gaps of mean 1 / rate and variance 1 / rate², none of which tells of the next.
    #[test]
    fn poisson_arrivals_have_the_rate_and_the_scatter_that_were_asked_for() {
        const COUNT: usize = 1_000_000;
        for rate in [10.0, 5000.0, 1e7] {
            let poisson = schedule(Pace::Poisson(rate));
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

    #[test]
    fn bytes_are_paced_by_what_was_moved() {
        let group = ThreadGroup { bytes_per_second: Some(1000), ..reading(100) };
        let bytes = Schedule::of(&group, &[&SizeDistribution::Fixed(4096)]).expect("it has a rate");
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
