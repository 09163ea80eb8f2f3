//! One figure of two runs, tested.

use crate::table::Entry;
use fstone_stats::{
    ALPHA, CONFIDENCE, Sample,
    compare::{Moved, Shift, cliffs_delta, independent_comparison},
};

/// Two figures, tested. `shift` and `relative` are between `before` and `after`, whatever stands for the trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The two-sided p-value, for this pair alone.
    pub p: f64,
    /// Holm-adjusted over the comparison: compare this with 5 %.
    pub adjusted_p: f64,
    /// Where both runs are in virtual time: figures are compared guest by guest then.
    pub exact: Option<Exact>,
    /// Whether so many figures can pass the correction, as the other pairs turned out: whether any could have made these two differ.
    pub can_differ: bool,
    /// The smallest difference, as a share of the baseline, that so many trials which scatter like these would have told
    /// in [`fstone_stats::compare::POWER`] of all cases; `None` when none could have been, or it is no share.
    pub detectable: Option<f64>,
    /// About how many trials of the row, in both runs, it takes to find a difference of the threshold as often.
    pub trials_for_threshold: Option<usize>,
    /// How many of them are in perturbed guests.
    pub perturbed_for_threshold: usize,
    /// What stands for the baseline's trials: their median, or their mean if the medians do not show what the test finds; in virtual time
    /// the mean over the seeds that both runs have, or over guests as far as these scatter more.
    pub before: f64,
    pub after: f64,
    /// After less before, in the metric's unit.
    pub shift: Shift,
    /// The same as a share of what was before; `None` unless every figure is positive.
    pub relative: Option<Shift>,
    /// The smallest difference, as a share, that would have been told in half of all cases; `None` as for `detectable`.
    pub even_odds: Option<f64>,
}

/// What two figures in virtual time have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exact {
    pub seeds: usize,
    pub guests: usize,
    /// `None` if nothing shows how far chance moves them.
    pub moved: Option<Moved>,
    /// Whether that is of logarithms.
    pub logarithmic: bool,
}

impl Pair {
    /// Whether a difference was found. An interval may end at 0 then, where figures are equal.
    pub fn differs(&self) -> bool {
        let interval = self.shift.interval;
        let leaves_out = match self.exact {
            Some(_) => !interval.contains(0.0),
            None => self.shift.estimate != 0.0 && (interval.low >= 0.0 || interval.high <= 0.0),
        };
        self.adjusted_p <= ALPHA && leaves_out
    }

    /// Whether the test finds a difference in virtual time that not all guests show.
    pub fn is_mixed(&self) -> bool {
        self.exact.is_some_and(|exact| exact.moved.is_some()) && self.adjusted_p <= ALPHA && !self.differs()
    }

    /// Whether nothing shows how far chance moves the figures: there is no test then, and a difference decides nothing.
    pub fn has_unknown_scatter(&self) -> bool {
        self.exact.is_some_and(|exact| exact.moved.is_none())
    }

    /// The interval of the change as a share of what was before, for this pair alone. In virtual time it is Student's, because the range
    /// over guests is none of the mean.
    pub(super) fn interval_as_share(&self) -> (f64, f64) {
        let before = self.before.abs();
        match (self.exact.and_then(|exact| Some((exact, exact.moved?))), self.relative) {
            (Some((exact, moved)), relative) => {
                let half = moved.half_width(ALPHA);
                match relative.filter(|_| exact.logarithmic) {
                    Some(change) => {
                        let end = |half: f64| (change.estimate.ln_1p() + half).exp_m1();
                        (end(-half), end(half))
                    }
                    None => ((self.shift.estimate - half) / before, (self.shift.estimate + half) / before),
                }
            }
            (None, Some(relative)) => (relative.interval.low, relative.interval.high),
            (None, None) => (self.shift.interval.low / before, self.shift.interval.high / before),
        }
    }

    /// Where no difference was found, no interval may claim one: it was made for this pair alone, the correction for all of them. A range
    /// over guests claims nothing.
    pub(super) fn agree(&mut self) {
        if !self.differs() && self.exact.is_none() {
            self.shift = self.shift.reaching_none();
            self.relative = self.relative.map(Shift::reaching_none);
        }
    }
}

/// Two independent samples; what the correction over all pairs decides is left to it.
pub(super) fn pair(baseline: &Entry, other: &Entry) -> Option<Pair> {
    let sample = |entry: &Entry| Sample::new(entry.values.iter().map(|value| value.value).collect()).ok();
    let (baseline, other) = (sample(baseline)?, sample(other)?);
    let found = independent_comparison(&baseline, &other, CONFIDENCE);
    let direction = if found.test.p <= ALPHA { cliffs_delta(&baseline, &other).signum() } else { 0.0 };
    // The change is that of the figures printed beside it. Its interval is the test's, turned round, and holds it. Where figures are equal,
    // medians may not show what the test finds, and the interval may reach to the other side.
    let medians = (baseline.median(), other.median());
    let shows = |(before, after): &(f64, f64)| (after - before) * direction > 0.0;
    let by_means = direction != 0.0 && !shows(&medians);
    let (before, after) = if by_means { (baseline.mean(), other.mean()) } else { medians };
    // Ranks that neither follows say nothing of a change of the figure.
    let p = if by_means && !shows(&(before, after)) { 1.0 } else { found.test.p };
    let direction = if p < 1.0 { direction } else { 0.0 };
    let of = |shift: Shift, estimate: f64| Shift { estimate, ..shift }.reaching(estimate).on_side(direction);
    Some(Pair {
        p,
        adjusted_p: p,
        exact: None,
        // The correction's to say.
        can_differ: false,
        detectable: None,
        trials_for_threshold: None,
        perturbed_for_threshold: 0,
        before,
        after,
        shift: of(found.shift, after - before),
        relative: found.relative.map(|shift| of(shift, after / before - 1.0)),
        even_odds: None,
    })
}
