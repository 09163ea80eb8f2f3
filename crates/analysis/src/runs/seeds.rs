//! Two runs in virtual time, seed by seed.
//!
//! A trial in virtual time has no noise, but a load whose course depends on time can be chaotic: what should not matter moves its
//! figures. A change counts as real if it has the same sign in every guest and exceeds what perturbed guests and other seeds show.

use super::pair::{Exact, Pair};
use crate::{clock::is_virtual, run::Analysis, table::Entry};
use fstone_model::Trial;
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
    let same = |(guest, value): &(Guest, f64)| Some((*guest, (*value, after.iter().find(|(one, _)| one == guest)?.1)));
    let both: Vec<(Guest, (f64, f64))> = before.iter().filter_map(same).collect();
    let mut seeds: Vec<u64> = both.iter().map(|(guest, _)| guest.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    if seeds.is_empty() {
        return None;
    }
    let perturbed = both.iter().map(|(guest, _)| guest).find(|guest| guest.perturbed.is_some()).copied();
    let those = |which: &dyn Fn(&Guest) -> bool| -> Vec<(f64, f64)> {
        both.iter().filter(|(guest, _)| which(guest)).map(|(_, pair)| *pair).collect()
    };
    let of_seeds = those(&|guest| guest.perturbed.is_none());
    let of_guests = those(&|guest| perturbed.is_some_and(|perturbed| perturbed.seed == guest.seed));
    let both = those(&|_| true);
    let guests = [baseline, other].map(|(analysis, row, column)| -> Vec<f64> {
        analysis.rows[row].entries[column].guests.iter().map(|(_, value)| *value).collect()
    });
    let positive = both
        .iter()
        .flat_map(|(before, after)| [before, after])
        .chain(guests.iter().flatten())
        .all(|value| *value > 0.0);
    let scaled = |value: f64| if positive { value.ln() } else { value };
    let pairs = |pairs: &[(f64, f64)]| -> Vec<(f64, f64)> {
        pairs.iter().map(|(before, after)| (scaled(*before), scaled(*after))).collect()
    };
    let (of_seeds, of_guests) = (pairs(&of_seeds), pairs(&of_guests));
    let perturbed = guests.map(|values| values.iter().map(|value| scaled(*value)).collect::<Vec<f64>>());
    // What agrees over seeds is exact only if perturbation, where it was tried, does not make guests fail.
    let unproven = [baseline, other].iter().any(|(analysis, row, column)| analysis.rows[*row].is_unproven(*column));
    let moved = Moved::of(&of_seeds, &of_guests, [&perturbed[0], &perturbed[1]])
        .filter(|moved| !unproven || moved.error > 0.0 || moved.p == 1.0);

    let share = if of_seeds.is_empty() { 1.0 } else { moved.map_or(0.0, |moved| moved.share_of_guests) };
    let mean = |side: fn(&(f64, f64)) -> f64| {
        let of = |pairs: &[(f64, f64)]| pairs.iter().map(side).sum::<f64>() / pairs.len().max(1) as f64;
        match (both.as_slice(), (1.0 - share) * of(&of_seeds) + share * of(&of_guests)) {
            ([one], _) => side(one),
            (_, mean) if positive => mean.exp(),
            (_, mean) => mean,
        }
    };
    let (before, after) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let differences: Vec<f64> = both.iter().map(|(before, after)| after - before).collect();
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
        perturbed_for_threshold: 0,
        even_odds: None,
        before,
        after,
        shift,
        relative,
    })
}

/// Two guests of two runs are alike if they have the same seed and are perturbed in the same way.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Guest {
    seed: u64,
    perturbed: Option<u32>,
}

impl Guest {
    pub(super) fn of(trial: &Trial) -> Self {
        Self { seed: trial.seed, perturbed: trial.id.perturbation().map(|perturbation| perturbation.number) }
    }
}

/// Its figures in all guests, also in those that the table does not have.
fn by_guest((analysis, row, column): (&Analysis<'_>, usize, usize)) -> Vec<(Guest, f64)> {
    let row = &analysis.rows[row];
    let entry: &Entry = &row.entries[column];
    let mut all: Vec<(Guest, f64)> =
        entry.values.iter().map(|value| (Guest::of(row.trials[value.trial]), value.value)).collect();
    for (repetition, value) in &entry.guests {
        let trial = row.guests.iter().find(|trial| trial.id.repetition == *repetition);
        let others = trial.map(|trial| Guest::of(trial)).filter(|guest| !all.iter().any(|(known, _)| known == guest));
        all.extend(others.map(|guest| (guest, *value)));
    }
    all
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
