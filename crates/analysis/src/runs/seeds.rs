//! Two runs in virtual time, seed by seed.
//!
//! A trial in virtual time has no noise, but a load whose course depends on time can be chaotic: what should not matter moves its
//! figures. A change counts as real if it has the same sign in every guest and exceeds what perturbed guests and other seeds show.

use super::pair::{Exact, Pair};
use crate::{
    clock::is_virtual,
    run::Analysis,
    table::{Entry, TrialValue},
};
use fstone_stats::{
    Interval,
    compare::{Moved, Shift},
    interval::IntervalMethod,
};

/// Two figures of runs in virtual time; `None` where they have no seed in common, or are not both in virtual time.
pub(super) fn pair(baseline: (&Analysis<'_>, usize, usize), other: (&Analysis<'_>, usize, usize)) -> Option<Pair> {
    if !is_virtual(baseline.0.dataset) || !is_virtual(other.0.dataset) {
        return None;
    }
    let (before, after) = (by_guest(baseline), by_guest(other));
    let same = |(guest, value): &(Guest, f64)| Some((*guest, *value, after.iter().find(|(one, _)| one == guest)?.1));
    let both: Vec<(Guest, f64, f64)> = before.iter().filter_map(same).collect();
    let mut seeds: Vec<u64> = both.iter().map(|(guest, ..)| guest.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    if seeds.is_empty() {
        return None;
    }
    let both: Vec<(f64, f64)> = both.into_iter().map(|(_, before, after)| (before, after)).collect();
    let of_guests = |(analysis, row, column): (&Analysis<'_>, usize, usize)| -> Vec<f64> {
        analysis.rows[row].entries[column].guests.iter().map(|(_, value)| *value).collect()
    };
    let guests = [baseline, other].map(of_guests);
    let all = || both.iter().flat_map(|(before, after)| [before, after]).chain(guests.iter().flatten());
    let positive = all().all(|value| *value > 0.0);
    let scaled = |value: f64| if positive { value.ln() } else { value };
    let pairs: Vec<(f64, f64)> = both.iter().map(|(before, after)| (scaled(*before), scaled(*after))).collect();
    let guests = guests.map(|values| values.iter().map(|value| scaled(*value)).collect::<Vec<f64>>());
    let moved = Moved::of(&pairs, seeds.len() > 1, [&guests[0], &guests[1]]);

    let count = both.len() as f64;
    let differences: Vec<f64> = both.iter().map(|(before, after)| after - before).collect();
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
    let p = moved.map_or(1.0, |moved| moved.p);
    Some(Pair {
        p,
        adjusted_p: p,
        can_differ: true,
        exact: Some(Exact { seeds: seeds.len(), guests: both.len(), moved, logarithmic: positive }),
        detectable: None,
        trials_for_threshold: None,
        even_odds: None,
        before,
        after,
        shift,
        relative,
    })
}

/// Two guests of two runs are alike if they have the same seed and are perturbed in the same way.
#[derive(Clone, Copy, PartialEq)]
struct Guest {
    seed: u64,
    perturbed: Option<u32>,
}

fn by_guest((analysis, row, column): (&Analysis<'_>, usize, usize)) -> Vec<(Guest, f64)> {
    let row = &analysis.rows[row];
    let entry: &Entry = &row.entries[column];
    let guest = |value: &TrialValue| {
        let trial = row.trials[value.trial];
        let perturbed = trial.id.perturbation().map(|perturbation| perturbation.number);
        (Guest { seed: trial.seed, perturbed }, value.value)
    };
    entry.values.iter().map(guest).collect()
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
