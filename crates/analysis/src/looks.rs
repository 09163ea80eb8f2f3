//! The significance level of a run whose figures were looked at while it was in progress.

use fstone_model::Dataset;
use fstone_stats::{
    Level,
    sequential::{MIN_FREEDOM, level_after},
    stopping::LOOKED,
};

#[derive(Debug, Clone)]
pub(crate) enum Looks {
    AtTheEnd,
    /// After every trial, at the width of intervals.
    AtWidths,
    /// After every block, for as long as a budget lasts.
    Budget {
        /// The part of the budget that was used at the end of each block, by the block's number.
        shares: Vec<(u32, f64)>,
        /// Whether there will be no further look.
        ended: bool,
    },
}

/// Whether rows may be judged by the figures that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judging {
    Now,
    /// So little is new since the last look that its result holds until the next one.
    AtTheNextLook,
    /// The first looks of a few rows would be wrong too often.
    TooSoon,
}

impl Looks {
    pub(crate) fn of(dataset: &Dataset) -> Self {
        let plan = &dataset.run.plan;
        match plan.budget {
            Some(budget) => {
                let ended = dataset.run.finished_unix_ns.is_some();
                Self::Budget { shares: budget.shares(&dataset.trials), ended }
            }
            None if plan.repeats.until.is_some() && plan.repeats.min < plan.repeats.max => Self::AtWidths,
            None => Self::AtTheEnd,
        }
    }

    pub(crate) fn level(&self, blocks: &[Vec<usize>]) -> (Level, Judging) {
        match self {
            Self::AtTheEnd => (Level::FIXED, Judging::Now),
            Self::AtWidths => (LOOKED, Judging::Now),
            Self::Budget { shares, ended } => {
                let enough = |(block, _): &(u32, f64)| freedom_until(blocks, *block as usize) >= MIN_FREEDOM;
                // A row alone has intervals, as one of two has.
                let rows = blocks.len().max(2);
                let from = shares.iter().position(enough).unwrap_or(shares.len());
                let of = |(_, share): &(u32, f64)| *share;
                match level_after(rows, shares[from..].iter().map(of), *ended) {
                    Some((level, is_look)) => (level, if is_look { Judging::Now } else { Judging::AtTheNextLook }),
                    // Not a look, but what a look now would have.
                    None => (
                        level_after(rows, shares.last().map(of), false).map_or(Level::FIXED, |(level, _)| level),
                        Judging::TooSoon,
                    ),
                }
            }
        }
    }
}

/// Degrees of freedom of the residuals of rows + blocks, by the trials until the end of a block.
fn freedom_until(blocks: &[Vec<usize>], last: usize) -> usize {
    let mut seen: Vec<usize> = blocks.iter().flatten().copied().filter(|block| *block <= last).collect();
    let trials = seen.len();
    seen.sort_unstable();
    seen.dedup();
    (trials + 1).saturating_sub(blocks.len() + seen.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_judged_before_enough_is_known_and_the_end_spends_all() {
        let budget =
            |shares: &[f64], ended| Looks::Budget { shares: (0..).zip(shares.iter().copied()).collect(), ended };
        let rows = |blocks: usize| vec![(0..blocks).collect::<Vec<_>>(); 3];
        assert_eq!(freedom_until(&rows(5), 4), 8);
        let (early, may) = budget(&[0.1, 0.2, 0.3], false).level(&rows(3));
        assert!(may == Judging::TooSoon && early.nominal < Level::FIXED.nominal, "{early:?}");
        let (later, may) = budget(&[0.1, 0.2, 0.3, 0.4, 0.5], false).level(&rows(5));
        assert!(may == Judging::Now && later.nominal < Level::FIXED.nominal, "{later:?}");
        let (ended, may) = budget(&[0.3, 0.6, 0.9], true).level(&rows(3));
        assert!(
            may == Judging::Now && (ended.nominal - Level::FIXED.nominal).abs() < 1e-9,
            "the only look has all: {ended:?}"
        );
        let (_, soon) = budget(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.501], false).level(&rows(6));
        assert_eq!(soon, Judging::AtTheNextLook);
        assert_eq!(Looks::AtTheEnd.level(&rows(3)), (Level::FIXED, Judging::Now));
    }

    #[test]
    fn blocks_that_lack_rows_count_for_what_they_have() {
        let blocks = vec![vec![0, 1, 2, 3], vec![0, 1, 2, 3], vec![0, 1]];
        assert_eq!(freedom_until(&blocks, 1), 2);
        assert_eq!(freedom_until(&blocks, 3), 10 + 1 - 3 - 4);
    }
}
