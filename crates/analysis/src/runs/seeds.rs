//! Two runs in virtual time, seed by seed.
//!
//! A trial in virtual time has no noise, so one pair of trials with the same seed is enough to tell what changed for that
//! seed. Differences from seed to seed are due to the layout by chance; a change that has the same sign with every seed counts as real.

use super::pair::Pair;
use crate::{clock::is_virtual, run::Analysis, table::Entry};
use fstone_stats::{Interval, compare::Shift, interval::IntervalMethod};

/// Two figures of runs in virtual time; `None` where they have no seed in common, or are not both in virtual time.
pub(super) fn pair(baseline: (&Analysis<'_>, usize, usize), other: (&Analysis<'_>, usize, usize)) -> Option<Pair> {
    if !is_virtual(baseline.0.dataset) || !is_virtual(other.0.dataset) {
        return None;
    }
    let (before, after) = (by_seed(baseline), by_seed(other));
    let both: Vec<(f64, f64)> = before
        .iter()
        .filter_map(|(seed, value)| Some((*value, after.iter().find(|(other, _)| other == seed)?.1)))
        .collect();
    if both.is_empty() {
        return None;
    }
    let count = both.len() as f64;
    let differences: Vec<f64> = both.iter().map(|(before, after)| after - before).collect();
    let positive = both.iter().all(|(before, after)| *before > 0.0 && *after > 0.0);
    let mean = |values: &mut dyn Iterator<Item = f64>| match (both.len(), positive) {
        (1, _) => values.sum(),
        (_, true) => (values.map(f64::ln).sum::<f64>() / count).exp(),
        (_, false) => values.sum::<f64>() / count,
    };
    let (before, after) = (mean(&mut both.iter().map(|pair| pair.0)), mean(&mut both.iter().map(|pair| pair.1)));
    let shift = spread(&differences, after - before);
    let relative = positive.then(|| {
        let shares: Vec<f64> = both.iter().map(|(before, after)| after / before - 1.0).collect();
        spread(&shares, after / before - 1.0)
    });
    let agree = differences.iter().all(|one| *one > 0.0) || differences.iter().all(|one| *one < 0.0);
    let p = if agree { 0.0 } else { 1.0 };
    let reach = |shift: &Shift| shift.interval.low.abs().max(shift.interval.high.abs());
    Some(Pair {
        p,
        adjusted_p: p,
        smallest_p: 0.0,
        can_differ: true,
        seeds: Some(both.len()),
        detectable: relative.as_ref().map(reach),
        trials_for_threshold: None,
        even_odds: None,
        before,
        after,
        shift,
        relative,
    })
}

fn by_seed((analysis, row, column): (&Analysis<'_>, usize, usize)) -> Vec<(u64, f64)> {
    let row = &analysis.rows[row];
    let entry: &Entry = &row.entries[column];
    entry.values.iter().map(|value| (row.trials[value.trial].seed, value.value)).collect()
}

/// An estimate, from the least to the most of what it is of.
fn spread(values: &[f64], estimate: f64) -> Shift {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let interval = Interval { low, high, confidence: 1.0, method: IntervalMethod::Range, n: values.len() };
    // Rounding must not move the mean of equal values away from them, and the mean of logarithms is not that of differences.
    let near = |end: f64| (estimate - end).abs() <= 1e-12 * (low.abs().max(high.abs()));
    let estimate = if near(low) {
        low
    } else if near(high) {
        high
    } else {
        estimate
    };
    Shift { estimate, interval }.reaching(estimate)
}
